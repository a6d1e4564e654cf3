"""Rules across the members of a unit: how they are written, and which records break them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import Rules, Schema
from tessella.exceptions import RuleSyntaxError, RuleTableError
from tessella.frame import View
from tessella.rules.forms import AcrossMembers

HOMES = pd.DataFrame(
    {
        "home": [7, 7, 3, 3, 3, 9],
        "relat": [1, 2, 1, 1, 3, 1],
        "age": [40, 38, 12, 15, 2, 70],
        "income": [10, 5, 1, 2, None, 8],
        "total": [15, 15, 3, 3, 3, 9],
        "owner": [True, True, False, False, False, True],
    }
)


def signs(rule, table=HOMES, **options):
    return Rules.parse(rule).confront(table, **options).signs[:, 0].tolist()


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("count(relat == 1) == 1 by home", [1, 1, -1, -1, -1, 1]),
        ("max(age) by home >= 16", [1, 1, -1, -1, -1, 1]),
        ("min(age) >= 2 by home", [1] * 6),
        ("mean(age) by home == 39", [1, 1, -1, -1, -1, -1]),
        ("count() <= 2 by home", [1, 1, -1, -1, -1, 1]),
        ("sum(income) by home == total", [1, 1, 0, 0, 0, -1]),  # an income is missing
        ("sum(income) by home == total ± 1", [1, 1, 0, 0, 0, 1]),
        ("sum(income) == total ± 1 by home", [1, 1, 0, 0, 0, 1]),
        ("count(income > 4) == 2 by home", [1, 1, 0, 0, 0, -1]),
        ("count(owner) by home == count() by home", [1, 1, -1, -1, -1, 1]),
        ("if owner: max(age) - min(age) <= 1 by home", [-1, -1, 1, 1, 1, 1]),
        ("if count() by home > 2: max(age) by home >= 16", [1, 1, -1, -1, -1, 1]),
        # Of one member it is untrue: its unit breaks the rule.
        ("age * 2 > max(age) by home", [1, 1, -1, -1, -1, 1]),
        ("sum(age * 2) by home == 2 * sum(age) by home", [1] * 6),
    ],
)
def test_verdicts_by_hand(rule, expected):
    assert signs(rule) == expected
    again = Rules.parse(Rules.parse(rule)[0].text)
    assert again == Rules.parse(rule)
    assert signs(again[0].text) == expected


def test_amounts_by_hand():
    """A unit breaks a rule as its worst member does, and all its members do."""
    found = Rules.parse("max(age) by home >= 16\nage * 2 > max(age) by home").confront(HOMES)
    assert found.breaking("R1").tolist() == [2, 3, 4]
    assert found.amount("R1").tolist() == [1, 1, 1]
    assert found.amount("R2").tolist() == [11, 11, 11]


def test_what_a_rule_across_members_is():
    rule = Rules.parse("heads: count(relat == 1) == 1 by home  # one head")[0]
    assert (rule.kind, rule.unit, rule.columns) == ("across members", "home", ("relat",))
    assert rule.forms == (AcrossMembers(("relat",), "home", rule.text),)
    assert str(rule) == "heads: count(relat == 1) by home == 1  # one head"
    assert not rule.is_affine
    assert not rule.is_convex
    assert Rules.parse("max(age) >= 16")[0].unit is None
    assert Rules.parse("if count(x) by h == 1: y > 0")[0].unit == "h"


def test_names_of_units_and_columns_called_by():
    assert Rules.parse("max(x) by `my home` >= 1")[0].unit == "my home"
    assert Rules.parse("max(x) by col(0) >= 1")[0].unit == 0
    assert Rules.parse('max(x) >= 1 by col("a b")')[0].unit == "a b"
    assert Rules.parse(Rules.parse("max(x) by `my home` >= 1")[0].text)[0].unit == "my home"
    for plain in ("by > 1", "x > 1 and by > 2", "x > by", "a == 'x by y'", "if by > 1: x > 2"):
        assert Rules.parse(plain)[0].unit is None


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("count(relat == 1) == 1", "count(relat == 1)", "by household"),
        ("age >= 16 by home", "by home", "aggregate"),
        ("max(age) by home >= min(age) by town", "by town", "one unit"),
        ("sum(max(age)) by home > 3", "max(age)", "within another"),
        ("count(age) by home + 1", "count(age) by home + 1", "compares"),
        ("count(age + 1) by home == 1", "age + 1", "compares"),
        ("max(age) by >= 16", " by", "unit's column"),
        ("max(age) by 3 >= 16", " by", "unit's column"),
        ("sum(a > 1) by home == 1", "a > 1", "comparison"),
        ("count(a, b) by home == 1", "count(a, b)", "one argument"),
        ("count(relat == 1) by home", "count(relat == 1)", "Compare it"),
    ],
)
def test_mistakes_are_pointed_at(text, where, words):
    with pytest.raises(RuleSyntaxError) as caught:
        Rules.parse(text)
    (mistake,) = caught.value.mistakes
    found = mistake.text[mistake.start : mistake.start + mistake.width]
    assert found == where or found in where
    assert words in f"{mistake.message} {mistake.hint}"


def test_units_that_a_table_lacks_are_named():
    released = HOMES.drop(columns="home")
    with pytest.raises(RuleTableError, match="unit='home'"):
        signs("max(age) by home >= 16", released)
    units = np.array([0, 0, 1, 1, 1, 2])
    assert signs("max(age) by home >= 16", View(released, units=units)) == [1, 1, -1, -1, -1, 1]
    schema = Schema.guess(HOMES).with_unit("home")
    assert signs("max(age) by home >= 16", HOMES, schema=schema) == [1, 1, -1, -1, -1, 1]
    assert signs("max(age) by home >= 16", View(released, schema, units)) == [1, 1, -1, -1, -1, 1]
    with pytest.raises(RuleTableError, match="Write: by home"):
        signs("max(age) by relat >= 16", HOMES, schema=schema)
    with pytest.raises(RuleTableError, match="unit='relat'"):
        signs("max(age) by relat >= 16", HOMES, schema=Schema.guess(HOMES))
    with pytest.raises(RuleTableError, match="calculates with name"):
        signs("max(name) by home >= 16", HOMES.assign(name="x"))
    with pytest.raises(RuleTableError, match="stands as a truth"):
        signs("count(age) by home == 1")
    with pytest.raises(RuleTableError, match="divides by zero"):
        signs("max(1 / (age - 2)) by home < 3")


def test_checks_go_on_beside_them():
    rules = Rules.parse(
        "count(relat == 1) == 1 by home\ncount(relat == 1) by home == 1\nage >= 0\nage >= -1\n"
        "max(age) by home >= 16\nsum(relat) by home == total"
    )
    kinds = [(found.kind, found.rules) for found in rules.check()]
    assert kinds == [("duplicate", ("R1", "R2")), ("redundant", ("R4", "R3"))]
    text = Rules.parse("relat == 'head'\nsum(relat) by home == total").check()
    assert [found.kind for found in text] == ["conflict"]


def test_rules_across_members_travel_through_r():
    rules = Rules.parse("sum(income) by home == total\ncount(relat == 1) == 1 by home")
    written = rules.to_validate()
    assert "sum_by(income, by = home) == total" in written
    assert "sum_by(relat == 1, by = home) == 1" in written
    assert Rules.from_validate(written) == rules
    read = Rules.from_validate(
        "rules:\n- expr: sum_by(income, by=home) == total\n- expr: exists_one(relat == 1, by=home)"
    )
    assert signs(read[0].text) == signs(rules[0].text)
    assert signs(read[1].text) == signs(rules[1].text)


NUMBERS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-2, 2) | st.none(), st.integers(0, 1)), min_size=1
)


@settings(max_examples=60)
@given(rows=NUMBERS, bound=st.integers(-3, 3))
def test_the_same_verdict_as_pandas(rows, bound):
    """Independent: aggregates of pandas, unknown where a value of the unit is missing."""
    table = pd.DataFrame(rows, columns=["home", "x", "y"])
    table["x"] = table["x"].astype("float64")
    for name in ("sum", "mean", "min", "max"):
        units = table.groupby("home")["x"]
        value = units.transform(name).where(units.transform("count") == units.transform("size"))
        expected = np.where(value.isna(), 0, np.where(value >= bound, 1, -1))
        assert signs(f"{name}(x) by home >= {bound}", table) == expected.tolist()
    count = table["y"].eq(1).groupby(table["home"]).transform("sum")
    expected = [1 if each == bound else -1 for each in count]
    assert signs(f"count(y == 1) == {bound} by home", table) == expected
