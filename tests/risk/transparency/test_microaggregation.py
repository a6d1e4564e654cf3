"""The attack on microaggregation in blocks: by hand, against all partitions, invariants."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.exceptions import (
    AttackError,
    BadOptionError,
    SmallJointGroupsWarning,
    UnknownOptionError,
)
from tessella.masking import Microaggregation
from tessella.risk import attack

from .brute import grouped, possible_pairs

ORIGINAL = np.array([[1.0, 1.0], [2.0, 8.0], [8.0, 2.0], [9.0, 9.0]])
MASKED = np.array([[1.5, 1.5], [1.5, 8.5], [8.5, 1.5], [8.5, 8.5]])
APART = [[0], [1]]


def mask(table, masker):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallJointGroupsWarning)
        return masker.fit_transform(table)


def test_four_records_by_hand():
    one = attack(ORIGINAL, MASKED, "microaggregation", k=2, blocks=APART, known=[1])
    both = attack(ORIGINAL, MASKED, "microaggregation", k=2, blocks=APART)
    assert one.size.tolist() == [2, 2, 2, 2]
    assert both.size.tolist() == [1, 1, 1, 1]
    assert both.value == both.covered == 1
    assert "2 blocks" in both.attack


def test_unknown_groups_by_hand():
    """0, 1, 9, 10 with means 0.5 and 9.5: only 0 and 1 have so small a sum."""
    original = np.array([[0.0], [1.0], [9.0], [10.0]])
    masked = np.array([[0.5], [0.5], [9.5], [9.5]])
    found = attack(original, masked, "microaggregation", k=2, grouping="unknown")
    assert found.size.tolist() == [2, 2, 2, 2]
    assert found.covered == 1


def test_more_effort_never_leaves_more_candidates():
    # a bug once met: thorough effort did not use that pairs belong together one to one
    X = np.random.default_rng(0).normal(size=(12, 2)).round(1)
    masked = mask(X, Microaggregation(2, blocks=APART, random_state=0))
    options = {"k": 2, "blocks": APART, "grouping": "unknown"}
    sizes = [
        int(attack(X, masked, "microaggregation", effort=effort, **options).size.sum())
        for effort in ("quick", "standard", "thorough")
    ]
    assert sizes == [14, 12, 12]  # 12 is one for each


def test_means_that_say_nothing_by_hand():
    """Corners of a square, in pairs with the same mean: anybody may be anywhere."""
    original = np.array([[0.0], [4.0], [1.0], [3.0]])
    masked = np.array([[2.0], [2.0], [2.0], [2.0]])
    found = attack(original, masked, "microaggregation", k=2, grouping="unknown")
    assert found.size.tolist() == [4, 4, 4, 4]


@given(st.data())
@settings(max_examples=60)
def test_against_all_partitions(data):
    """An independent way: every partition of every block, every assignment; none is lost."""
    n = data.draw(st.integers(4, 6))
    column = st.lists(st.integers(0, 6), min_size=n, max_size=n)
    original = np.array(data.draw(st.lists(column, min_size=3, max_size=3)), dtype=float).T
    blocks = [[0, 1], [2]]
    masked = mask(original, Microaggregation(2, grouping="mdav", blocks=blocks))
    released = [[tuple(round(float(v), 9) for v in row) for row in masked[:, b]] for b in blocks]
    reachable = [grouped(original[:, b], 2) for b in blocks]
    pairs = possible_pairs(released, reachable)
    found = attack(original, masked, "microaggregation", k=2, blocks=blocks, grouping="unknown")
    known = attack(original, masked, "microaggregation", k=2, blocks=blocks)
    assert found.covered == known.covered == 1
    assert (found.size >= pairs.sum(axis=1)).all()
    assert (found.size >= known.size).all()


@given(st.integers(0, 10_000), st.integers(12, 60), st.sampled_from(["mdav", "vmdav", "cbfs"]))
@settings(max_examples=40)
def test_the_truth_is_always_among_them(seed, n, method):
    """Invariant: ties, constants, missing cells, strata, rounded means; any k."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "few": rng.integers(0, 4, n),
            "many": rng.normal(size=n),
            "flat": np.ones(n),
            "whole": rng.integers(0, 30, n) * 10,
            "gaps": np.where(np.arange(n) % 4 == 0, np.nan, rng.normal(size=n)),
            "half": np.repeat(["a", "b"], [n // 2, n - n // 2]),
        }
    )
    blocks = [["few", "many"], ["flat", "whole"], ["gaps"]] if n >= 24 else [["many", "whole"]]
    masker = Microaggregation(
        3, grouping=method, blocks=blocks, on_missing="pattern", strata=[None, "half"][seed % 2],
        columns=[name for block in blocks for name in block],
    )  # fmt: skip
    masked = mask(table, masker)
    repeated = attack(table, masked, masker)
    unknown = attack(table, masked, masker, grouping="unknown")
    assert repeated.covered == unknown.covered == 1
    assert (unknown.size >= repeated.size).all()
    partly = attack(table, masked, masker, known=["many", "whole"])
    assert partly.covered == 1


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_repeated_grouping_is_the_joint_release(seed):
    """Who repeats the grouping is right once for each different released record."""
    rng = np.random.default_rng(seed)
    original = rng.normal(size=(40, 4))
    masker = Microaggregation(3, grouping="mdav", blocks=2)
    masked = mask(original, masker)
    found = attack(original, masked, masker)
    assert found.value == pytest.approx(len(np.unique(masked, axis=0)) / 40)
    assert found.size.min() == masker.joint_k_


def test_a_margin_is_a_guess_and_says_so():
    rng = np.random.default_rng(1)
    original = rng.normal(size=(100, 4))
    masked = mask(original, Microaggregation(3, grouping="mdav", blocks=2))
    shares = [
        attack(
            original, masked, "microaggregation", k=3, blocks=2, grouping="unknown", margin=margin
        ).covered
        for margin in (1, 3, 1000)
    ]
    assert shares[0] < shares[1] < shares[2] == 1
    found = attack(
        original, masked, "microaggregation", k=3, blocks=2, grouping="unknown", margin=1
    )
    assert "this is a guess" in found.explain()
    assert found.single < 1


def test_medians_and_weights_need_a_margin():
    rng = np.random.default_rng(1)
    original = rng.normal(size=(30, 2))
    masker = Microaggregation(3, grouping="mdav", aggregate="median")
    masked = masker.fit_transform(original)
    assert attack(original, masked, masker).covered == 1
    with pytest.raises(BadOptionError, match="medians and weighted means"):
        attack(original, masked, masker, grouping="unknown")
    assert attack(original, masked, masker, grouping="unknown", margin=3).n == 30


def test_what_cannot_be_is_told():
    with pytest.raises(AttackError, match="are shared by fewer than 3 records"):
        attack(ORIGINAL, MASKED, "microaggregation", k=3, blocks=APART)
    with pytest.raises(AttackError, match="for 4 of 4 masked records"):
        attack(ORIGINAL, MASKED[::-1], "microaggregation", k=2, blocks=APART, grouping="unknown")
    with pytest.raises(UnknownOptionError, match="grouping"):
        attack(ORIGINAL, MASKED, "microaggregation", k=2, grouping="none")
    with pytest.raises(BadOptionError, match="margin"):
        attack(ORIGINAL, MASKED, "microaggregation", k=2, blocks=APART, margin=0)


def test_means_rounded_to_float32_keep_the_truth():
    """A bug once met: the truth was lost to rounding, and the table refused."""
    random = np.random.default_rng(1)
    for _ in range(8):
        original = np.round(100 * random.normal(size=(21, 3)), 1).astype(np.float32)
        masker = Microaggregation(3)
        masked = masker.fit_transform(original)
        assert attack(original, masked, masker, grouping="unknown").covered == 1
