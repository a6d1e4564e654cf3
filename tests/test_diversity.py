"""Measures of diversity against fractions, by hand, and closed under union; what options mean."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.diversity import (
    KINDS,
    Condition,
    Diversity,
    DiversityRule,
    Requirement,
    measure_classes,
)
from tessella.exceptions import BadOptionError, BadTableError, DiversityError
from tessella.frame import View

from .reference import diversity as slow

CODES = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 6)), min_size=1, max_size=60)
ALL = [*KINDS]


def conditions(codes, kind, limit=1.0, c=0.0):
    asked = Requirement(kind=kind, limit=limit, c=c)
    return Diversity.of_conditions([Condition(name="x", requirement=asked, codes=codes)])


def split(rows):
    """Groups numbered from 0 without gaps, and the ranks of their values, -1 where missing."""
    groups, values = np.array(rows).T
    known = values >= 0
    codes = np.full(len(values), -1)
    codes[known] = np.unique(values[known], return_inverse=True)[1]
    return np.unique(groups, return_inverse=True)[1], codes


@given(CODES, st.sampled_from(ALL), st.sampled_from([0.5, 1.0, 2.0, 3.0]))
def test_measures_are_those_counted_with_fractions(rows, kind, c):
    groups, codes = split(rows)
    if (codes < 0).all():
        return
    found = conditions(codes, kind, c=c).measures(groups)[:, 0]
    values = [None if code < 0 else code for code in codes.tolist()]
    for g, own in enumerate(found):
        inside = [v for v, at in zip(values, groups) if at == g]
        assert own == pytest.approx(float(slow.measure(kind, inside, values, c)), abs=1e-12)


@given(CODES, st.sampled_from(ALL), st.sampled_from([0.5, 1.0, 2.0, 3.0]))
def test_what_two_groups_have_their_union_has(rows, kind, c):
    groups, codes = split(rows)
    if (codes < 0).all():
        return
    wanted = conditions(codes, kind, c=c)
    apart, whole = wanted.measures(groups)[:, 0], wanted.attainable()[0]
    if kind in ("equal", "ordered"):
        assert whole <= apart.max() + 1e-12
    else:
        assert whole >= apart.min() - 1e-12


def test_the_salaries_of_li_et_al():
    """Independent figures: the classes of the paper have t = 0.375 and 0.167, to three digits."""
    salaries = np.arange(9)  # 3, 4, ..., 11 thousand
    classes = np.array([0, 0, 0, 2, 1, 1, 2, 2, 1])
    found = measure_classes(classes, salaries, "ordered")
    assert found[0] == pytest.approx(0.375)
    other = measure_classes(np.array([1, 0, 1, 1, 1, 0, 1, 0, 1]), salaries, "ordered")
    assert 0 < other[0] < 0.375


def test_recursive_by_hand():
    """Counts 4, 2, 1: 4 < 2 (4 + 2 + 1), 4 < 2 (2 + 1), not 4 < 2 (1)."""
    codes = np.array([0] * 4 + [1] * 2 + [2])
    assert measure_classes(np.zeros(7, dtype=int), codes, "recursive", c=2.0).tolist() == [2.0]
    assert measure_classes(np.zeros(7, dtype=int), codes, "recursive", c=1.0).tolist() == [1.0]
    assert measure_classes(np.zeros(7, dtype=int), codes, "recursive", c=0.5).tolist() == [0.0]


def test_missing_values_count_for_nothing():
    """Beside one known value two missing ones make no second; without any there is no l, and t is
    1."""
    values = pd.Series(["a", None, None, "a", "b", None, None])
    groups = np.array([0, 0, 0, 1, 1, 2, 2])
    assert Diversity.of(values, l=2).measures(groups)[:, 0].tolist() == [1, 2, 0]
    found = Diversity.of(values, t={"equal": 0.5}).measures(groups)[:, 0]
    assert found.tolist() == pytest.approx([1 / 3, 1 / 6, 1.0])


def test_missing_codes_of_the_schema_are_missing():
    from tessella import Schema

    table = pd.DataFrame({"ill": [1, 1, 9, 2, 2, 2]})
    schema = Schema({"ill": {"kind": "nominal", "role": "confidential", "missing": (9,)}})
    rule = DiversityRule.of(l=2, confidential=["ill"])
    found = rule.read(View.of(table, schema))
    assert found.measures(np.array([0, 0, 0, 1, 1, 1]))[:, 0].tolist() == [1, 1]


def test_t_takes_the_distance_that_a_column_has():
    table = pd.DataFrame({
        "income": [1.5, 2.5, 3.5], "ill": ["a", "b", "c"],
        "size": pd.Categorical(["s", "m", "l"], ["s", "m", "l"], ordered=True),
    })  # fmt: skip
    rule = DiversityRule.of(t=0.3, confidential=["income", "ill", "size"])
    found = rule.read(View.of(table))
    assert [one.kind for one in found.requirements] == ["ordered", "equal", "ordered"]
    rule = DiversityRule.of(t={"ordered": 0.3}, confidential=["ill"])
    with pytest.raises(BadTableError, match="no order"):
        rule.read(View.of(table))


@pytest.mark.parametrize("given", [1, 0, 2.5, True, "3", {"entropy": 1}, {"recursive": 3},
                                   {"recursive": [0, 2]}, {"recursive": [2, 1]}, {"t": 2},
                                   {"entropy": 2, "distinct": 2}, [2, 3]])  # fmt: skip
def test_l_that_is_none(given):
    with pytest.raises(BadOptionError, match="recursive"):
        Requirement.of_l(given)


@pytest.mark.parametrize("given", [1, -0.1, float("nan"), "0.2", True, {"entropy": 0.2}])
def test_t_that_is_none(given):
    with pytest.raises(BadOptionError, match="ordered"):
        Requirement.of_t(given)


@pytest.mark.parametrize("given", [2, {"entropy": 2.5}, {"recursive": [0.5, 3]}])
def test_options_of_a_rule_make_the_same_rule(given):
    rule = DiversityRule.of(l=given, t={"equal": 0.25}, confidential="ill")
    assert DiversityRule.of(**rule.options) == rule


def test_no_rule_without_l_or_t_and_no_column_without_a_rule():
    assert DiversityRule.of() is None
    with pytest.raises(BadOptionError, match="l or t beside"):
        DiversityRule.of(confidential=["ill"])
    with pytest.raises(BadOptionError, match="names of the columns"):
        DiversityRule.of(l=2)
    with pytest.raises(DiversityError, match="no known value"):
        Diversity.of(pd.Series([None, None], dtype="float64"), l=2)


def test_a_refusal_says_what_is_attainable():
    wanted = Diversity.of(["a", "a", "b"], l={"entropy": 2})
    with pytest.raises(DiversityError, match=r"entropy l 1\.89"):
        wanted.refuse_unattainable()
    with pytest.raises(DiversityError, match=r"1 of the strata.*south \(1\)"):
        Diversity.of(["a", "b", "a", "a"], l=2).refuse_unattainable(
            {"north": [0, 1], "south": [2, 3]}
        )


@given(CODES)
def test_buckets_grow_finer_and_the_last_are_the_values(rows):
    _, codes = split(rows)
    if (codes < 0).all():
        return
    wanted = conditions(codes, "ordered", 0.2)
    assert (wanted.buckets[0] == 0).all()
    last = wanted.buckets[-1]
    assert ((last[:, None] == last) == (codes[:, None] == codes)).all()
