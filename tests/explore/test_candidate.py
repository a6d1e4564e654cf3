"""Candidates are data: equal, hashed, named and described by what they are."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import BadOptionError, BadTableError, UnknownOptionError
from tessella.explore import Candidate
from tessella.explore.candidate import BLOCKINGS, cut_columns, steps_to_toml
from tessella.masking import registry
from tessella.planfile import parse_plan

# Record swapping names no geography by itself: it has no candidate of its own.
TRIED = [name for name, method in registry.methods().items() if method.tuned is not None]


def test_order_of_options_does_not_matter():
    """By hand."""
    one = Candidate("protect", k=3, grouping="mdav", blocks={"size": 2, "by": "order"})
    other = Candidate("protect", blocks={"by": "order", "size": 2}, grouping="mdav", k=3)
    assert one == other
    assert hash(one) == hash(other)
    assert one.key == 'protect(blocks={"by": "order", "size": 2}, grouping="mdav", k=3)'
    assert one != one.with_value("blocks", {"size": 3, "by": "order"})


def test_what_is_not_given_is_the_default():
    assert Candidate("protect") == Candidate("protect", k=3)
    assert Candidate("noise", amount=np.float64(0.1)) == Candidate("noise", amount=0.1)
    assert Candidate("noise", keep_moments=False) == Candidate("noise", pram=None)


@pytest.mark.parametrize("method", TRIED)
def test_every_method_describes_itself_and_can_be_stored(method):
    one = Candidate(method)
    assert str(one) != one.key
    assert one.label in {one.label.strip()} - {""}
    assert pickle.loads(pickle.dumps(one)) == one
    assert registry.find(method).tuned.name in one


MIXED = pd.DataFrame(np.random.default_rng(0).integers(0, 99, (60, 4)), columns=list("abcd"))
MIXED = MIXED.assign(d=MIXED.d / 8, town=np.random.default_rng(1).choice(list("rsv"), 60))


@pytest.mark.parametrize("method", TRIED)
@pytest.mark.parametrize("pram", [None, 0.9])
@pytest.mark.parametrize("rules", [None, ["a >= 0", "b <= 200"]])
def test_the_plan_of_its_steps_releases_the_same_table(method, pram, rules, tmp_path):
    """What a candidate does is what its steps do, written as TOML and read again."""
    kind = registry.find(method).masks
    names = {"both": [*"abcd", "town"], "numbers": list("abcd"), "categories": ["town"]}[kind]
    table = MIXED if pram else MIXED[names]
    if kind == "categories" and (pram or rules):
        return
    if method == "protect":
        one = Candidate(method, grouping="mdav", blocks={"size": 2, "by": "correlation"})
    else:
        one = Candidate(method)
    one = one if pram is None else one.with_value("pram", pram)
    table.to_csv(tmp_path / "table.csv", index=False)
    lines = "" if rules is None else f"[rules]\nlines = {rules}\n"
    plan = parse_plan(
        'seed = 7\n[input]\nfile = "table.csv"\n' + lines
        + steps_to_toml(one.to_steps(table)) + '[output]\nfile = "out.csv"\n',
        folder=tmp_path,
    )  # fmt: skip
    study = plan.study(plan.read())
    for step in plan.steps:
        study.do(step)
    masked = one.mask(table, rules=rules, random_state=7)
    pd.testing.assert_frame_equal(study.table.to_pandas(), masked, check_dtype=False)
    assert not masked.equals(table)


def test_steps_that_depend_on_the_table_need_it():
    with pytest.raises(BadOptionError, match="the table"):
        Candidate("noise", pram=0.9).to_steps()
    first, second = Candidate("noise", pram=0.9).to_steps(MIXED)
    assert (first.method, first.options["columns"]) == ("noise", list("abcd"))
    assert second.options == {"p": 0.9, "invariant": True, "columns": ["town"]}
    with pytest.raises(BadOptionError, match="to_steps"):
        Candidate("noise", pram=0.9).to_step(MIXED)


def test_unknown_names_are_refused():
    with pytest.raises(UnknownOptionError, match="noize"):
        Candidate("noize")
    with pytest.raises(UnknownOptionError, match="size"):
        Candidate("protect", size=3)
    with pytest.raises(BadOptionError, match="a number"):
        Candidate("protect", k={3})


@given(st.integers(1, 9), st.integers(1, 6), st.sampled_from(sorted(BLOCKINGS)), st.integers(0, 9))
def test_blocks_are_a_partition(d, size, by, seed):
    """An invariant: every column in one block, all but one block full."""
    values = np.random.default_rng(seed).normal(size=(20, d))
    blocks = cut_columns(values, size, by, seed=seed)
    assert sorted(place for block in blocks for place in block) == list(range(d))
    assert sorted(map(len, blocks))[1:] == [size] * (len(blocks) - 1)


def test_blocks_by_correlation_and_by_contrast():
    """By hand: a and c are one column, b and d another."""
    a, b = np.random.default_rng(0).normal(size=(2, 60))
    values = np.column_stack([a, b, -3 * a, b])
    assert cut_columns(values, 2, "correlation") == [[0, 2], [1, 3]]
    assert all(set(block) not in ({0, 2}, {1, 3}) for block in cut_columns(values, 2, "contrast"))
    assert cut_columns(values, 3, "order") == [[0, 1, 2], [3]]


def test_blocks_with_missing_cells_and_a_constant_column():
    values = np.random.default_rng(0).normal(size=(20, 4))
    values[3, 1], values[:, 2] = np.nan, 7.0
    for by in BLOCKINGS:
        assert len(cut_columns(values, 2, by)) == 2


def test_a_candidate_masks_a_table():
    """By hand: two groups of three."""
    table = np.array([[1.0], [2.0], [3.0], [11.0], [12.0], [13.0]])
    masked = Candidate("protect", k=3, grouping="mdav").mask(table)
    assert masked[:, 0].tolist() == [2, 2, 2, 12, 12, 12]


def test_categories_need_a_way():
    table = pd.DataFrame({"x": [1.5, 2, 3, 4], "town": list("aabb")})
    with pytest.raises(BadTableError, match=r"pram=0\.8"):
        Candidate("noise").mask(table)
    made = Candidate("noise", pram=0.9).mask(table, random_state=0)
    assert set(made["town"]) <= {"a", "b"}
    with pytest.raises(BadTableError, match="hold numbers"):
        Candidate("pram").mask(table)
