"""What kind of rule it is: by hand, and forms that say the same as the rule they came from."""

from __future__ import annotations

import math
import operator

import pandas as pd
import pytest
from hypothesis import strategies as st

from tessella.rules import Rules
from tessella.rules.forms import (
    Always,
    Either,
    Factor,
    General,
    Governing,
    Interval,
    Linear,
    Members,
    Missingness,
    Multiplicative,
    ObservedValues,
    Tuples,
    YesNo,
)
from tests.amounts import few_or_many, try_examples
from tests.rules.strategies import NUMBERS, TEXTS, complete_records, rules

INF = math.inf


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 <= a <= 125", [Interval("a", 0, 125)]),
        ("a > 3", [Interval("a", 3, INF, open_low=True)]),
        ("3 > a", [Interval("a", -INF, 3, open_high=True)]),
        ("-2 * a + 1 <= 5", [Interval("a", -2, INF)]),
        ("a == 3", [Interval("a", 3, 3)]),
        ("a / 4 >= 0.5", [Interval("a", 2, INF)]),
        ("a >= 1 and a < 5 and a >= 2", [Interval("a", 2, 5, open_high=True)]),
        ("not (a < 1 or a > 5)", [Interval("a", 1, 5)]),
        ("abs(a) <= 3", [Interval("a", -3, 3)]),
        ("a != 3", [Members("a", (3,), inside=False)]),
        ("s in {'x', 'y'}", [Members("s", ("x", "y"))]),
        ("not s in {'x', 'y'}", [Members("s", ("x", "y"), inside=False)]),
        ("'x' == s", [Members("s", ("x",))]),
        ("(a, b) in {(1, 2)}", [Tuples(("a", "b"), ((1, 2),))]),
        ("net + tax == gross", [Linear({"net": 1, "tax": 1, "gross": -1}, "==", 0)]),
        ("a <= b + 2 * c", [Linear({"a": 1, "b": -1, "c": -2}, "<=", 0)]),
        ("2 * (a - b) / 4 > 3 - c", [Linear({"a": -0.5, "b": 0.5, "c": -1}, "<", -3)]),
        ("0.1 * a + 0.2 * a == 0.3 * b", [Linear({"a": 0.3, "b": -0.3}, "==", 0)]),
        ("a <= b", [Governing("a", "b")]),
        ("a > b", [Governing("b", "a", strict=True)]),
        ("a - b <= 0", [Governing("a", "b")]),
        ("a <= b <= c", [Governing("a", "b"), Governing("b", "c")]),
        ("max(a, b) <= c", [Governing("a", "c"), Governing("b", "c")]),
        ("a < min(b, 4)", [Governing("a", "b", True), Interval("a", -INF, 4, False, True)]),
        (
            "w == h * r",
            [Multiplicative((Factor("w", 1), Factor("h", -1), Factor("r", -1)), "==", 1)],
        ),
        ("a / b <= 0.5", [Multiplicative((Factor("a", 1), Factor("b", -1)), "<=", 0.5)]),
        ("2 * a ** 2 == 8 * b", [Multiplicative((Factor("a", 2), Factor("b", -1)), "==", 4)]),
        (
            "price * (1 + vat) == retail",
            [
                Multiplicative(
                    (Factor("price", 1), Factor("vat", 1, 1.0), Factor("retail", -1)), "==", 1
                )
            ],
        ),
        ("a * b == 0", [General(("a", "b"), "a * b == 0")]),
        ("a * b + c == d", [General(("a", "b", "c", "d"), "a * b + c == d")]),
        ("a == max(b, c)", [General(("a", "b", "c"), "a == max(b, c)")]),
        ("a + b != c", [General(("a", "b", "c"), "a + b != c")]),
        ("a == a", [Always(True)]),
        ("a < a", [Always(False)]),
        ("a < abs(-2) < 2", [Interval("a", -INF, 2, False, True), Always(False)]),
        ("a - a + 1 > 0", [Always(True)]),
        ("f", [YesNo("f")]),
        ("not f", [YesNo("f", False)]),
        ("f != True", [YesNo("f", False)]),
        ("missing(a)", [Missingness("a", True)]),
        ("not missing(a)", [Missingness("a", False)]),
        ("observed(a, b)", [ObservedValues(("a", "b"))]),
        ("a > 1 or s == 'x'", [Either(((Interval("a", 1, INF, True),), (Members("s", ("x",)),)))]),
    ],
)
def test_forms_by_hand(text, expected):
    assert list(Rules.parse(text)[0].forms) == expected


@pytest.mark.parametrize(
    "text", ["p + p * v == r", "r - p == p * v", "r == (1 + v) * p", "(r - p) / v == p"]
)
def test_one_product_in_several_spellings(text):
    """price * (1 + vat) == retail, where it can be seen; the last cannot."""
    (form,) = Rules.parse(text)[0].forms
    if "/" in text:
        assert isinstance(form, General)
        return
    assert isinstance(form, Multiplicative)
    powers = {(factor.column, factor.offset): factor.power for factor in form.factors}
    sign = powers["p", 0.0]
    assert {factor: sign * power for factor, power in powers.items()} == {
        ("p", 0.0): 1,
        ("v", 1.0): 1,
        ("r", 0.0): -1,
    }
    assert form.constant == 1


def test_a_product_with_a_fraction_in_it():
    """2 p + 3 p v = r, that is p (v + 2/3) / r = 1/3; p = 3, v = 2, r = 24 obeys."""
    (form,) = Rules.parse("2 * p + 3 * p * v == r")[0].forms
    assert holds(form, {"p": 3, "v": 2, "r": 24})
    assert not holds(form, {"p": 3, "v": 2, "r": 25})


@pytest.mark.parametrize(
    ("text", "kind", "affine", "convex", "multiplicative", "conditional"),
    [
        ("0 <= a <= 9", "interval", True, True, False, False),
        ("a + b == c", "linear", True, True, False, False),
        ("a <= b", "governing", True, True, False, False),
        ("0 <= a <= 9 * b", "linear", True, True, False, False),
        ("a == b * c", "multiplicative", False, False, True, False),
        ("0 <= a <= b * c", "multiplicative", False, False, False, False),
        ("s == 'x'", "set", False, False, False, False),
        ("s == 'x' and a > 1", "several", False, False, False, False),
        ("if a > 1: b > 1", "conditional", False, False, False, True),
        ("a > 1 or b > 1", "either", False, False, False, False),
        ("a < mean(a)", "interval", False, False, False, False),
        ("a + b < mean(a)", "linear", False, False, False, False),
        ("f", "yes or no", False, False, False, False),
        ("known(a)", "missing", False, False, False, False),
        ("observed(a)", "observed", False, False, False, False),
        ("a == a", "always", True, True, False, False),
        ("a ** 2 + b ** 2 <= 1", "general", False, False, False, False),
    ],
)
def test_questions(text, kind, affine, convex, multiplicative, conditional):
    rule = Rules.parse(text)[0]
    assert rule.kind == kind
    assert rule.is_affine is affine
    assert rule.is_convex is convex
    assert rule.is_multiplicative is multiplicative
    assert rule.is_conditional is conditional


def holds(form, record):
    """Whether a complete record obeys a form: read from the form alone."""
    match form:
        case Always(holds=value):
            return value
        case Interval(column, low, high, open_low, open_high):
            value = record[column]
            above = value > low if open_low else value >= low
            return above and (value < high if open_high else value <= high)
        case Members(column, values, inside):
            return (record[column] in values) is inside
        case Tuples(columns, rows, inside):
            return (tuple(record[name] for name in columns) in rows) is inside
        case Governing():
            return holds(form.linear, record)
        case Linear(coefficients, sign, constant):
            if set(coefficients) == set(TEXTS):  # bare columns may be text: the same text, then
                return record["s"] == record["t"]
            total = sum(value * record[name] for name, value in coefficients.items())
            return {"==": operator.eq, "<=": operator.le, "<": operator.lt}[sign](total, constant)
        case YesNo(column, value):
            return record[column] is value
        case Missingness(_, missing):
            return not missing
        case Either(options):
            verdicts = [[holds(each, record) for each in option] for option in options]
            unknown = any(None in option for option in verdicts)
            return None if unknown else any(map(all, verdicts))
        case General(_, text):
            table = pd.DataFrame([record])
            return bool(Rules.parse(text).confront(table).signs[0, 0] > 0)
        case Multiplicative(factors, sign, constant):
            bases = [record[f.column] + f.offset for f in factors]
            if min(bases) <= 0:
                return None  # says something of positive factors only
            total = math.prod(base**f.power for base, f in zip(bases, factors, strict=True))
            same = math.isclose(total, constant, rel_tol=1e-9)
            if sign == "==":
                return same
            return not same and total < constant if sign == "<" else same or total < constant
    raise AssertionError(form)


def forms_say_what_the_rule_says(rule, record):
    verdicts = [holds(form, record) for form in rule.forms]
    if None in verdicts:
        return
    table = pd.DataFrame([record])
    body = Rules([type(rule)(body=rule.body, name="R1")])
    assert bool(body.confront(table).signs[0, 0] > 0) is all(verdicts)


@few_or_many(120, 400)
def test_forms_say_what_the_rule_says(count):
    """Independent: each form judged by its own fields, on complete records."""
    try_examples(count, forms_say_what_the_rule_says, rule=rules, record=complete_records)


@pytest.mark.parametrize("line", ["y == x * y", "y < x * y", "x * y <= x * z"])
def test_what_cancels_out_is_not_forgotten(line):
    """A bug once met: y == x * y was taken for x == 1, and it is true of y == 0."""
    assert [form.kind for form in Rules([line])[0].forms] == ["general"]


def products_say_what_the_rule_says(powers, below, values, sign):
    text = " * ".join(f"{name} ** {power}" for name, power in powers.items())
    right = " * ".join(["2", *(f"{name} ** {power}" for name, power in below.items())])
    rule = Rules.parse(f"{text} {sign} {right}")[0]
    record = dict(zip(NUMBERS, values, strict=True))
    verdict = all(holds(form, record) for form in rule.forms)
    assert (Rules([rule]).confront(pd.DataFrame([record])).signs[0, 0] > 0) == verdict


@few_or_many(70, 200)
def test_products_say_what_the_rule_says(count):
    try_examples(
        count,
        products_say_what_the_rule_says,
        powers=st.dictionaries(st.sampled_from(NUMBERS), st.integers(1, 3), min_size=1),
        below=st.dictionaries(st.sampled_from(NUMBERS), st.integers(1, 3)),
        values=st.tuples(*[st.sampled_from([0.5, 1, 2, 3])] * 3),
        sign=st.sampled_from(["==", "<=", "<", ">="]),
    )
