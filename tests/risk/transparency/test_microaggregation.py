"""The attack on microaggregation in blocks: by hand, against all partitions, invariants."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import Schema, Study
from tessella.exceptions import (
    AttackError,
    BadOptionError,
    SmallJointGroupsWarning,
    UnknownOptionError,
)
from tessella.masking import Microaggregation
from tessella.risk import assess, attack

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


PEOPLE = pd.DataFrame({
    "sex": [1, 1, 2, 2, 1, 1, 2, 2], "town": [10, 10, 20, 30, 10, 10, 20, 20],
    "income": [11.0, 13.0, 11.0, 13.0, 80.0, 90.0, 80.0, 90.0],
})  # fmt: skip
# Each two share their income and the categories of one of them; two groups share one income.
RELEASED = PEOPLE.assign(town=[10, 10, 20, 20] * 2, income=[12.0] * 4 + [85.0] * 4)
CODED = {"kind": "nominal", "missing": ()}


def coded(table):
    return Schema.guess(table).override(sex=CODED, town=CODED, income={"kind": "continuous"})


@pytest.mark.parametrize("apart", [None, [["income"], ["sex", "town"]]])
def test_codes_of_categories_show_groups_as_numbers_do(apart):
    given = {"method": "microaggregation", "k": 2, "blocks": apart, "means": False}
    given["columns"] = ["sex", "town", "income"]
    found = attack(PEOPLE, RELEASED, given, schema=coded(PEOPLE))
    assert found.size.tolist() == [2] * 8
    assert found.covered == 1
    words = PEOPLE.astype({"sex": str, "town": str}), RELEASED.astype({"sex": str, "town": str})
    assert (attack(*words, given).size == found.size).all()
    alone = attack(PEOPLE, RELEASED, given | {"columns": ["income"], "blocks": None},
                   known=["income"])  # fmt: skip
    assert alone.size.tolist() == [4] * 8


def test_a_category_rules_nobody_out_of_a_group_that_is_not_known():
    schema = coded(PEOPLE)
    given = {"k": 2, "grouping": "unknown", "schema": schema, "effort": "quick"}
    numbers = attack(PEOPLE, RELEASED, "microaggregation", known=["income"],
                     columns=["income", "town"], **given)  # fmt: skip
    both = attack(PEOPLE, RELEASED, "microaggregation", known=["income", "town"],
                  columns=["income", "town"], **given)  # fmt: skip
    assert both.covered == numbers.covered == 1
    # Codes 10, 20 and 30 mean nothing, whatever their means are.
    only = attack(PEOPLE, RELEASED, "microaggregation", columns=["town"], known=["town"], **given)
    assert only.size.tolist() == [8] * 8


@pytest.mark.parametrize(
    ("kind", "dtype"), [("nominal", "int64"), ("ordinal", "int64"), ("nominal", "str")]
)
def test_an_intruder_who_knows_the_plan_uses_masked_categories(kind, dtype):
    """A bug once met: with codes of categories the attack was not tried; with words, in part."""
    draw = np.random.default_rng(2)
    table = pd.DataFrame({
        "sex": draw.integers(1, 3, 120), "job": draw.integers(1, 9, 120),
        "age": draw.integers(18, 90, 120), "income": draw.lognormal(7, 1, 120).round(),
    })  # fmt: skip
    table = table.astype({"sex": dtype, "job": dtype})
    own = {"kind": kind, "missing": (), "role": "quasi-identifier"}
    schema = Schema.guess(table).override(sex=own, job=own)
    study = Study(table, schema=schema, random_state=0).do("protect", k=3)
    original, masked = study.views
    found = assess(original, masked, method=study.disclosed, schema=schema,
                   known=study.masked, effort="quick")  # fmt: skip
    assert "transparency" not in found.skipped
    told = found["transparency"]
    groups = len(masked.table.native.drop_duplicates())
    # He repeats the grouping, so that he is right about one record of each group.
    assert told.covered == 1
    assert told.value == pytest.approx(groups / 120)
    assert not any("not used" in line for line in told.assumptions)


def test_categories_that_another_step_drew_anew_show_no_groups():
    draw = np.random.default_rng(2)
    table = pd.DataFrame({
        "sex": draw.integers(1, 3, 60), "age": draw.integers(18, 90, 60),
        "income": draw.lognormal(7, 1, 60).round(),
    })  # fmt: skip
    schema = Schema.guess(table).override(sex=CODED)
    study = Study(table, schema=schema, random_state=0)
    study.do("protect", k=3, columns=["age", "income"]).do("pram", columns=["sex"])
    found = assess(*study.views, method=study.disclosed, schema=schema, known=study.masked,
                   effort="quick")  # fmt: skip
    assert "transparency" not in found.skipped
    assert any("not used" in line and "sex" in line for line in found["transparency"].assumptions)
