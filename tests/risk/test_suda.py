"""Special uniques: by hand, by enumeration of all sets, and against printed figures."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import BadOptionError, UnknownOptionError
from tessella.risk import suda
from tessella.risk.anonymity.suda import _spread

from .test_anonymity import KEYS, PRINTED

tables = st.integers(1, 6).flatmap(
    lambda d: st.lists(
        st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=d, max_size=d),
        min_size=1,
        max_size=30,
    )
)


def enumerated(rows, most, missing):
    """Slow and obviously right: every set of columns of every record."""
    d, found = len(rows[0]), set()

    def unique(i, columns):
        own = [rows[i][j] for j in columns]
        if missing == "ignore" and None in own:
            return False
        return sum([row[j] for j in columns] == own for row in rows) == 1

    for i in range(len(rows)):
        for size in range(1, most + 1):
            for columns in combinations(range(d), size):
                smaller = any(
                    unique(i, s) for r in range(1, size) for s in combinations(columns, r)
                )
                if unique(i, columns) and not smaller:
                    found.add((i, columns))
    return found


@given(tables, st.integers(1, 6), st.sampled_from(["category", "ignore"]))
def test_the_sets_are_those_of_enumeration(rows, most, missing):
    """An independent way."""
    d = len(rows[0])
    table = pd.DataFrame({f"k{j}": c for j, c in enumerate(zip(*rows))}, dtype="Int64")
    found = suda(table, max_size=most, missing_as=missing)
    sets = {
        (int(i), tuple(j for j in range(d) if mask >> j & 1))
        for i, mask in zip(found.owner, found.sets)
    }
    assert len(sets) == len(found.owner)
    assert sets == enumerated(rows, min(most, d), missing)
    assert sum(found.by_size.values()) == len(sets)


@given(tables, st.integers(1, 6), st.sampled_from(["category", "ignore"]))
def test_a_record_in_no_set_has_no_chance(rows, most, missing):
    """An independent way, and a bug once met: unique by what it lacks, and ignored all the same."""
    table = pd.DataFrame({f"k{j}": c for j, c in enumerate(zip(*rows))}, dtype="Int64")
    found = suda(table, max_size=most, missing_as=missing, fraction=0.3)
    sets = enumerated(rows, len(rows[0]), missing)
    small = {i for i, columns in sets if len(columns) <= most}
    assert set(np.flatnonzero(found.score)) == small
    if found.right_if_unique > 0:
        assert set(np.flatnonzero(found.chance)) == {i for i, _ in sets}


def test_ignored_values_single_nobody_out_by_hand():
    """Row 1 has nothing that row 0 has not, row 3 has nothing at all: only 0 and 2 are unique."""
    table = pd.DataFrame({"a": [1, 1, 2, None], "b": [5, None, 5, None]}, dtype="Int64")
    found = suda(table, missing_as="ignore", fraction=0.1)
    assert found.right_if_unique == pytest.approx(0.1 * 2 / (0.1 * 2 + 0.9 * 1))
    dis = found.right_if_unique  # both have one set that counts 1
    assert found.chance.tolist() == pytest.approx([dis, 0.0, dis, 0.0])
    assert (found.sets_of(0), found.sets_of(2)) == ([("a", "b")], [("a",)])
    assert suda(table, fraction=0.1).chance.all()


@pytest.mark.parametrize("max_size", [3, 4])
def test_the_printed_example(max_size):
    """Independent figures: the scores of the guide's table, and the four sets of record 5."""
    found = suda(PRINTED, known=KEYS, max_size=max_size)
    assert found.score.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert found.sets_of(4) == [
        ("residence",),
        ("gender", "education"),
        ("gender", "labour"),
        ("education", "labour"),
    ]


def test_dis_suda_of_the_printed_example():
    """Independent figures: sdcMicro printed these chances for these (other) scores."""
    score = np.array([0, 0, 1.75, 0, 3.25, 0, 1.75, 2.75, 0, 0])
    dis = suda(PRINTED, known=KEYS, fraction=0.01).right_if_unique
    assert dis == pytest.approx(0.04 / (0.04 + 6 * 0.99))
    chance = _spread(score, score > 0, dis, 4)
    printed = [0.005120313, 0.010702061, 0.005120313, 0.008775093]
    assert chance[score > 0] == pytest.approx(printed, abs=5e-9)


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=20), st.floats(0.001, 1))
def test_the_harmonic_mean_is_the_files(scores, right):
    """An invariant of DIS-SUDA."""
    chance = _spread(np.array(scores), np.ones(len(scores), dtype=bool), right, 6)
    assert len(scores) / (1 / chance).sum() == pytest.approx(right)
    assert np.all(np.diff(chance[np.argsort(scores)]) >= -1e-12)


def test_by_hand():
    """d = 3, M = 3: a set of one counts 2 · 1, of two 1, of three 1."""
    table = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [5, 5, 5, 6]})
    found = suda(table)
    assert found.sets_of(3) == [("c",), ("a", "b")]
    assert found.sets_of(0) == [("a", "b")]
    assert found.sets_of(1) == [("a", "b"), ("b", "c")]
    assert found.score.tolist() == [1, 2, 2, 3]
    assert found.contributions[3].tolist() == pytest.approx([1 / 3, 1 / 3, 2 / 3])
    assert found.by_variable["c"] == pytest.approx(4 / 8)
    assert found.by_size == {1: 1, 2: 6, 3: 0}
    assert found.records["smallest"].tolist() == [2, 2, 2, 1]


def test_uniques_without_a_small_set_keep_the_chance_of_the_file():
    table = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    found = suda(table, max_size=1, fraction=0.1)
    assert found.score.tolist() == [0, 0, 0, 0]
    assert found.chance == pytest.approx([found.right_if_unique] * 4)
    assert "4 sample uniques have no such set" in found.explain()


def test_no_uniques_no_risk():
    found = suda(pd.DataFrame({"a": [1, 1, 2, 2]}))
    assert found.value == 0
    assert found.by_variable == {"a": 0.0}


def test_it_refuses():
    with pytest.raises(BadOptionError, match="max_size"):
        suda(PRINTED, max_size=0)
    with pytest.raises(UnknownOptionError, match="'ignore'"):
        suda(PRINTED, missing_as="any")
    with pytest.raises(BadOptionError, match="at most 62"):
        suda(np.zeros((3, 63)))
    with pytest.raises(BadOptionError, match="fraction"):
        suda(PRINTED, fraction=1.5)
