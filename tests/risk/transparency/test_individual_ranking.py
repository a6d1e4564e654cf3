"""The attack on individual ranking: by hand, against all cuts one by one, invariants, bad input."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.exceptions import AttackError, GroupSizeError
from tessella.masking import IndividualRanking, Microaggregation
from tessella.risk import attack

from .brute import cut, possible_pairs

ORIGINAL = np.array([[1.0, 5.0], [2.0, 1.0], [8.0, 2.0], [9.0, 7.0]])
MASKED = np.array([[1.5, 6.0], [1.5, 1.5], [8.5, 1.5], [8.5, 6.0]])


def test_four_records_by_hand():
    one = attack(ORIGINAL, MASKED, "individual ranking", k=2, known=[0])
    both = attack(ORIGINAL, MASKED, "individual ranking", k=2)
    assert one.size.tolist() == [2, 2, 2, 2]
    assert one.value == 0.5
    assert one.single == 0
    assert both.size.tolist() == [1, 1, 1, 1]
    assert both.value == both.single == both.covered == 1


def test_a_tie_across_groups_by_hand():
    """1 2 | 2 3: either 2 may be in the first group or in the second."""
    original = np.array([[1.0], [2.0], [2.0], [3.0]])
    masked = np.array([[1.5], [1.5], [2.5], [2.5]])
    found = attack(original, masked, "individual ranking", k=2)
    assert found.size.tolist() == [3, 3, 3, 3]


def test_groups_that_round_to_the_same_value_are_one():
    original = np.array([[10], [10], [10], [11], [30], [31]])
    masked = np.array([[10], [10], [10], [10], [30], [30]])
    found = attack(original, masked, "individual ranking", k=2)
    assert found.size.tolist() == [4, 4, 4, 4, 2, 2]


@given(st.data())
@settings(max_examples=60)
def test_against_all_cuts(data):
    """An independent way: every cut into runs, every assignment; none of them is lost."""
    n = data.draw(st.integers(4, 6))
    column = st.lists(st.integers(0, 5), min_size=n, max_size=n)
    original = np.array(data.draw(st.lists(column, min_size=2, max_size=2)), dtype=float).T
    masker = IndividualRanking(2, grouping=data.draw(st.sampled_from(["optimal", "fixed"])))
    masked = masker.fit_transform(original)
    released = [[round(float(v), 9) for v in masked[:, j]] for j in range(2)]
    reachable = [cut(original[:, j], 2) for j in range(2)]
    for known in ([0], [1], [0, 1]):
        pairs = possible_pairs([released[j] for j in known], [reachable[j] for j in known])
        found = attack(original, masked, "individual ranking", k=2, known=known)
        assert found.covered == 1
        assert (found.size >= pairs.sum(axis=1)).all()
        if len(known) == 1:
            assert (found.size == pairs.sum(axis=1)).all()


@given(st.integers(0, 10_000), st.integers(12, 60), st.sampled_from(["optimal", "fixed"]))
@settings(max_examples=40)
def test_the_truth_is_always_among_them(seed, n, method):
    """Invariant: ties, constants, missing values, strata, weights, rounded means."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "few": rng.integers(0, 4, n),
            "many": rng.normal(size=n),
            "flat": np.ones(n),
            "gaps": np.where(np.arange(n) % 4 == 0, np.nan, rng.integers(0, 50, n)),
            "weight": rng.random(n) + 0.1,
            "half": np.repeat(["a", "b"], [n // 2, n - n // 2]),
        }
    )
    strata = [None, "half"][seed % 2]
    columns = ["few", "many", "flat"] + (["gaps"] if n >= 24 else [])
    masker = IndividualRanking(
        3, grouping=method, columns=columns, strata=strata, weights=["weight", None][seed % 2]
    )
    masked = masker.fit_transform(table)
    found = attack(table, masked, masker)
    assert found.covered == 1
    fewer = attack(table, masked, masker, known=["few"])
    assert fewer.covered == 1
    assert fewer.value <= found.value


def test_univariate_microaggregation_is_the_same():
    rng = np.random.default_rng(0)
    original = rng.normal(size=(60, 3))
    with pytest.warns(UserWarning, match="share all their released values"):
        masked = Microaggregation(3, grouping="univariate", blocks=1).fit_transform(original)
    found = attack(original, masked, "individual ranking", k=3)
    assert found.covered == 1
    assert found.value == len(np.unique(masked, axis=0)) / 60


def test_what_cannot_be_is_told():
    with pytest.raises(AttackError, match="4 of its released values are shared by fewer than 3"):
        attack(ORIGINAL, MASKED, "individual ranking", k=3)
    with pytest.raises(AttackError, match="for 4 of 4 masked records the true original"):
        attack(ORIGINAL, MASKED[::-1], "individual ranking", k=2)
    named = pd.DataFrame(ORIGINAL, columns=["a", "b"]).assign(i=range(4))
    with pytest.raises(AttackError, match="needs all records: the original has 4 and the masked"):
        attack(named, named.iloc[:2], "individual ranking", k=2, id="i")
    with pytest.raises(GroupSizeError):
        attack(ORIGINAL, MASKED, "individual ranking", k=1)


@pytest.mark.parametrize("method", ["optimal", "fixed"])
def test_census(census, method):
    """k = 3 and three known variables: nearly all records, but for columns that repeat others."""
    masked = IndividualRanking(3, grouping=method).fit_transform(census)
    values = []
    for known in list(combinations(range(13), 3))[::7]:
        found = attack(census, masked, "individual ranking", k=3, known=known)
        assert found.covered == 1
        values.append(found.value)
    assert np.median(values) > 0.99
