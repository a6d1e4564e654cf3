"""From rules to operators, and why there is none."""

from __future__ import annotations

import pytest

from tessella import Rules, Schema
from tessella.exceptions import (
    BadOptionError,
    PlanError,
    UnknownColumnError,
    UnknownOptionError,
)
from tessella.plan import make_plan
from tessella.plan.plan import cases_of, rows_of

SCHEMA = Schema(
    {
        **{name: {"kind": "continuous"} for name in ("a", "b", "c", "d", "hours", "rate", "wages")},
        "n": {"kind": "integer"},
        "sex": {"kind": "nominal"},
        "grade": {"kind": "ordinal"},
        "region": {"kind": "nominal"},
    }
)


def plan(*lines, **wishes):
    return make_plan(SCHEMA, Rules(lines), **{"k": 3, "strata": ["region"], **wishes})


def operators(*lines, **wishes):
    (block,) = plan(*lines, **wishes).blocks
    return {choice.column: choice.operator for choice in block.choices}


def test_without_rules():
    found = operators()
    assert {found[name] for name in ("a", "b", "hours", "n")} == {"matched mean"}
    assert {operators(aggregate="mean")[name] for name in ("a", "n")} == {"mean"}
    assert found["sex"] == "member"
    assert found["grade"] == "member"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("0 <= a <= 125", {"a": "matched mean", "b": "matched mean"}),
        ("a + b == c", {"a": "mean", "b": "mean", "c": "mean"}),
        ("a <= b", {"a": "mean", "b": "mean"}),
        ("wages == hours * rate", dict.fromkeys(("wages", "hours", "rate"), "geometric mean")),
        ("a * (1 + b) == c", dict.fromkeys("abc", "geometric mean")),
        ("observed(a)", {"a": "median"}),
        ("observed(a, b)", {"a": "medoid", "b": "medoid"}),
        ("a in {1, 2, 3}", {"a": "median"}),
        ('if sex == "male": n == 0', {"sex": "member", "n": "mean"}),
        ('(sex, grade) in {("male", "low"), ("female", "high")}', {"sex": "member"}),
    ],
)
def test_the_operator_of_each_kind(rule, expected):
    found = operators(rule)
    assert {name: found[name] for name in expected} == expected


def test_order_statistics_spread_along_an_order():
    assert operators("observed(a)", "a <= b", "b <= c")["c"] == "median"


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (
            ["wages == hours * rate", "wages + a == b"],
            ["'wages'", "linear rule (R2", "product (R1"],
        ),
        (["observed(a)", "a + b == c"], ["'a'", "only values that exist (R1", "order statistics"]),
        (["observed(hours)", "wages == hours * rate"], ["'hours'", "R2: wages == hours * rate"]),
        (["a * b + c == d"], ["R1 (a * b + c == d)", "neither linear nor a product"]),
        (["a * b == c", "(1 + a) * d == rate"], ["'a'", "another number added"]),
        (["observed(a)", "a <= b", "b + c == d"], ["'b' is in order with values that exist"]),
        (["observed(a)", "a <= b", "b == c * d"], ["R2 (a <= b)", "in order with a product"]),
    ],
)
def test_impossible_pairs_are_explained(rules, words):
    with pytest.raises(PlanError) as told:
        plan(*rules, fit="closed")
    for word in [*words, "Give up one of them", 'fit="project"']:
        assert word in str(told.value)
    assert plan(*rules).explain()


def test_what_project_does_instead():
    found = operators("wages == hours * rate", "wages + a == b", "c <= d")
    assert {found[name] for name in ("wages", "hours", "rate", "a", "b")} == {"project"}
    assert found["c"] == found["d"] == "mean"
    assert operators("observed(a)", "a + b == c")["b"] == "medoid"


def test_the_plan_explains_itself():
    told = plan("a + b == c", 'if sex == "male": n == 0', "wages == hours * rate").explain()
    assert "Records with different region never share a group." in told
    assert 'R2 (if sex == "male": n == 0) can be true in 2 ways' in told
    assert "R1 is linear, and only means keep a linear rule" in told
    assert "separated by the signs of" in told
    assert "Released as they are: region." in told


def test_cases_by_hand():
    (rule,) = Rules(["if a < 17 or b == 2: c <= d and n in {1, 2} ± 0.5"])
    cases = cases_of(rule)
    # not (a < 17 or b == 2) is a >= 17 and (b < 2 or b > 2): two ways; the body is the third.
    assert len(cases) == 3
    assert [sorted(map(str, claim.columns)) for claim in cases[2]] == [["c", "d"], ["n"]]
    assert [row.right for claim in cases[2] for row in rows_of(claim)] == [0.5]


def test_a_way_that_other_rules_exclude_is_none():
    (block,) = plan("if a < 15: b == 0", "b > 0", "if a > 20: b < 5").blocks
    assert [(claim.form.column, claim.form.low) for claim in block.always] == [("a", 15), ("b", 0)]
    assert list(block.cases) == ["R3"]


def test_a_tolerance_makes_two_inequalities():
    ((claim,),) = cases_of(Rules(["a + b == c ± 1"])[0])
    assert [(row.operator, row.right) for row in rows_of(claim)] == [("<=", 1), ("<=", 1)]


def test_blocks():
    both = plan("a + b == c", columns=["a", "b", "c", "d"], blocks=[["a", "b", "c"], ["d"]])
    assert [block.columns for block in both.blocks] == [("a", "b", "c"), ("d",)]
    assert both.blocks[1].rules == ()
    with pytest.raises(PlanError, match="different blocks"):
        plan("a + b == c", columns=["a", "b", "c"], blocks=[["a", "b"], ["c"]])
    with pytest.raises(BadOptionError, match="exactly one block"):
        plan(columns=["a", "b"], blocks=[["a"]])


def test_rules_with_columns_that_stay():
    with pytest.raises(PlanError, match="'d', which would be released"):
        plan("a + d == c", columns=["a", "c"])
    assert (
        "R1 (a + b == c) is about columns that are not masked."
        in plan("a + b == c", columns=["d"]).explain()
    )
    assert plan('if region == "north": a == 0', columns=["a"])


def test_bad_input():
    with pytest.raises(UnknownOptionError, match="fit"):
        plan(fit="best")
    with pytest.raises(UnknownColumnError, match="'x'"):
        plan(columns=["x"])
    with pytest.raises(BadOptionError, match="no strata"):
        plan(columns=["region", "a"])
    with pytest.raises(PlanError, match="can never be true"):
        plan("a < a")
    with pytest.raises(PlanError, match="too many"):
        plan(" and ".join(f"(a != {i} or b != {i})" for i in range(7)))
