"""Confronting tables: verdicts, amounts and tolerances by hand; what does not fit is named."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tessella.datasets import make_business_survey, make_households
from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    RuleTableError,
    UnknownOptionError,
)
from tessella.frame import View
from tessella.rules import Confrontation, Rules
from tessella.rules.confront import Operands, judge
from tessella.schema import Schema

NAN = float("nan")


def signs(rule, table, **options):
    return Rules.parse(rule).confront(pd.DataFrame(table), **options).signs[:, 0].tolist()


def amounts(rule, table):
    found = Rules.parse(rule).confront(pd.DataFrame(table))
    return dict(zip(found.breaking("R1").tolist(), found.amount("R1").tolist(), strict=True))


@pytest.mark.parametrize(
    ("rule", "table", "expected"),
    [
        ("a <= b", {"a": [1, 2, NAN], "b": [1, 1, 5]}, [1, -1, 0]),
        ("0 <= a <= 9", {"a": [-1, 0, 9, 10, NAN]}, [-1, 1, 1, -1, 0]),
        ("a < 1 and b < 1", {"a": [0, NAN, NAN], "b": [0, 5, 0]}, [1, -1, 0]),
        ("a < 1 or b < 1", {"a": [5, NAN, NAN], "b": [5, 5, 0]}, [-1, 0, 1]),
        ("not a < 1", {"a": [5, 0, NAN]}, [1, -1, 0]),
        ("if a > 0: b > 0", {"a": [1, 1, 0], "b": [1, 0, 0]}, [1, -1, 1]),
        ("if a > 0: b > 0", {"a": [NAN, NAN, 1], "b": [1, 0, NAN]}, [1, 0, 0]),
        ("missing(a)", {"a": [1, NAN]}, [-1, 1]),
        ("known(a)", {"a": [1, NAN]}, [1, -1]),
        ("s == 'x'", {"s": ["x", "y", None]}, [1, -1, 0]),
        ("s != 'z'", {"s": ["x", "y", None]}, [1, 1, 0]),
        ("s in {'x', 'z'}", {"s": ["x", "y", None]}, [1, -1, 0]),
        ("s not in {'x', 'z'}", {"s": ["x", "y", None]}, [-1, 1, 0]),
        ("s == t", {"s": ["x", "y", None, "u"], "t": ["x", "x", "x", None]}, [1, -1, 0, 0]),
        ("a in {1, 2.5}", {"a": [1, 2, 2.5, NAN]}, [1, -1, 1, 0]),
        ("a not in {1}", {"a": [1, 2, NAN]}, [-1, 1, 0]),
        ("(a, s) in {(1, 'x'), (2, 'y')}", {"a": [1, 1, 2], "s": ["x", "y", "y"]}, [1, -1, 1]),
        ("(a, s) in {(1, 'x'), (2, 'y')}", {"a": [1, NAN], "s": [None, "x"]}, [0, 0]),
        ("(a, s) not in {(1, 'x')}", {"a": [1, 1], "s": ["x", "y"]}, [-1, 1]),
        ("a < mean(a)", {"a": [1, 2, 6, NAN]}, [1, 1, -1, 0]),
        ("a <= max(b)", {"a": [1, 9], "b": [2, 4]}, [1, -1]),
        ("sum(a) == 3", {"a": [1, 2]}, [1, 1]),
        ("c == max(a, b)", {"a": [1, 1], "b": [2, 2], "c": [2, 1]}, [1, -1]),
        ("c == min(a, b)", {"a": [1, NAN], "b": [2, 2], "c": [1, 2]}, [1, 0]),
        ("abs(a - b) <= 1", {"a": [1, 1], "b": [2, 3]}, [1, -1]),
        ("a ** 2 == b", {"a": [-3, 2], "b": [9, 5]}, [1, -1]),
        ("-a == b", {"a": [-3], "b": [3]}, [1]),
        ("f", {"f": [True, False]}, [1, -1]),
        ("not f", {"f": [True, False]}, [-1, 1]),
        ("if f == False: a == 0", {"f": [True, False, False], "a": [1, 1, 0]}, [1, -1, 1]),
        ("f == g", {"f": [True, False], "g": [True, True]}, [1, -1]),
        ("observed(a)", {"a": [1, 2, NAN]}, [1, 1, 0]),
    ],
)  # fmt: skip
def test_verdicts_by_hand(rule, table, expected):
    assert signs(rule, table) == expected


def test_amounts_by_hand():
    assert amounts("a + b == c", {"a": [1, 1], "b": [1, 1], "c": [5, 2]}) == {0: 3}
    assert amounts("a <= b", {"a": [7, 1], "b": [5, 2]}) == {0: 2}
    assert amounts("0 <= a <= 9", {"a": [-2, 14, 3]}) == {0: 2, 1: 5}
    assert amounts("a < 3", {"a": [3, 4]}) == {0: 0, 1: 1}
    assert amounts("a in {1, 5, 9}", {"a": [2, 12, 5]}) == {0: 1, 1: 3}
    assert amounts("s in {'x'}", {"s": ["y", "x"]}) == {0: 1}
    assert amounts("a >= 5 and b >= 5", {"a": [4, 5], "b": [2, 4]}) == {0: 3, 1: 1}
    assert amounts("a >= 5 or b >= 5", {"a": [4], "b": [2]}) == {0: 1}
    assert amounts("not (a < 5 or b < 5)", {"a": [4, NAN], "b": [2, 2]}) == {0: 3, 1: 3}
    assert amounts("if a > 0: b == 0", {"a": [1, 0], "b": [-7, 3]}) == {0: 7}
    assert amounts("known(a)", {"a": [NAN, 1]}) == {0: 1}
    assert amounts("a != 3", {"a": [3]}) == {0: 0}
    assert amounts("not (a in {3})", {"a": [3]}) == {0: 1}


def test_whole_numbers_are_compared_exactly_even_as_floats():
    """Off by one among thousands of millions is off, with or without missing values."""
    table = {"a": [3e9, 3e9], "b": [4e9, 4e9], "c": [7e9, 7e9 + 1]}
    assert signs("a + b == c", table) == [1, -1]
    table["a"][0] = NAN
    assert signs("a + b == c", table) == [0, -1]


def test_whole_numbers_beyond_float64_fall_back_to_rounding():
    """The products are about 1e26: a float64 cannot tell them from their neighbours."""
    a, b, c = 226_614_242, 631_969_374, 917_077_201
    assert float(a) * b * c != a * (float(b) * c)
    assert signs("a * b * c == a * (b * c)", {"a": [a], "b": [b], "c": [c]}) == [1]
    assert signs("a * b * c > a * (b * c)", {"a": [a], "b": [b], "c": [c]}) == [-1]


def test_numbers_equal_to_rounding_are_equal():
    table = {"a": [0.1], "b": [0.2], "c": [0.3]}
    assert 0.1 + 0.2 != 0.3
    assert signs("a + b == c", table) == [1]
    assert signs("a + b <= c", table) == [1]
    assert signs("a + b > c", table) == [-1]
    assert signs("a + b != c", table) == [-1]
    assert signs("not a + b == c", table) == [-1]
    assert signs("a + b == c", table, tolerance=0) == [-1]
    assert signs("if a + b == c: a == 0", table) == [-1]
    assert signs("a in {0.30000000000000004}", {"a": [0.3]}) == [1]


def test_rounding_is_measured_by_the_terms_not_by_their_sum():
    """1e8 + 0.1 - 1e8 is 0.1 to 1.5e-8 only: what cancels leaves its rounding error behind."""
    assert signs("a - b == c", {"a": [1e8 + 0.1], "b": [1e8], "c": [0.1]}) == [1]
    assert signs("a - b == c", {"a": [1.1], "b": [1.0], "c": [0.1000001]}) == [-1]
    assert signs("a * b == c", {"a": [1e-5], "b": [1e-5 + 1e-12], "c": [1e-10]}) == [-1]
    assert signs("a > 0", {"a": [1e-100]}) == [1]


def test_a_rules_own_tolerance():
    table = {"a": [10, 11, 12, 13, 8]}
    assert signs("a == 10 ± 2", table) == [1, 1, 1, -1, 1]
    assert signs("a <= 10 ± 2", table) == [1, 1, 1, -1, 1]
    assert signs("a < 10 ± 2", table) == [1, 1, -1, -1, 1]
    assert signs("a > 12 ± 2", table) == [-1, 1, 1, 1, -1]
    assert signs("a >= 12 ± 2", table) == [1, 1, 1, 1, -1]
    assert signs("a in {10, 20} ± 1", table) == [1, 1, -1, -1, -1]
    assert signs("if a == 12: a == 10 ± 1", table) == [1, 1, -1, 1, 1]
    assert signs("x == 0.3 ± 0.1", {"x": [0.4, 0.2, 0.41]}) == [1, 1, -1]
    assert amounts("a == 10 ± 2", table) == {3: 3}


def test_division_by_zero_is_named_unless_guarded():
    table = pd.DataFrame({"a": [1.0, 2.0, 0.0, NAN], "b": [0.0, 1.0, 0.0, 0.0]})
    with pytest.raises(RuleTableError, match=r"R1 .*divides by zero in 2 records \(row 0, 2\)"):
        Rules.parse("a / b <= 3").confront(table)
    assert Rules.parse("if b != 0: a / b <= 3").confront(table).signs[:, 0].tolist() == [1, 1, 1, 1]
    assert Rules.parse("b == 0 or a / b <= 3").confront(table).all_hold
    assert Rules.parse("not (b != 0 and a / b > 3)").confront(table).all_hold
    with pytest.raises(RuleTableError, match="divides by zero in 1 record "):
        Rules.parse("if a == 1: a / b in {1, 2}").confront(table)
    with pytest.raises(RuleTableError, match="divides by zero"):
        Rules.parse("if a / b > 1: a > 1").confront(table)
    with pytest.raises(RuleTableError, match="divides by zero"):
        judge(Rules.parse("a / b > 1")[0].body, Operands(table))
    # 1 / (1 / b) divides twice, and the first division is what is wrong
    with pytest.raises(RuleTableError, match="3 records"):
        Rules.parse("1 / (1 / b) == b").confront(table)


def test_division_in_floats():
    table = {"a": [1.0, 1.0], "b": [3.0, 3.0], "c": [1 / 3, 0.34]}
    assert signs("a / b == c", table) == [1, -1]
    assert signs("a / b * 3 == 1", table) == [1, 1]
    # b - c is 0.1 to 1.5e-8 only, which is no leave to call everything equal
    assert signs("a / (b - c) == 12", {"a": [1.0], "b": [1e8 + 0.1], "c": [1e8]}) == [-1]


def test_numbers_beyond_floats_are_named():
    table = pd.DataFrame({"a": [1e149, 1.0]})
    with pytest.raises(RuleTableError, match="too large to calculate with"):
        Rules.parse("a * a * a == a").confront(table)
    with pytest.raises(BadTableError, match="infinity"):
        Rules.parse("a > 1").confront(pd.DataFrame({"a": [np.inf, 1.0]}))


def test_small_numbers_are_not_all_equal():
    """A bug once met: a square below the smallest float made every quotient equal."""
    assert signs("a / b == 2", {"a": [1e-200, 2e-200], "b": [1e-200, 1e-200]}) == [-1, 1]


def test_dates_of_any_year():
    # a bug once met: in nanoseconds, 9999-12-31 is in 1816
    far = np.array(["9999-12-31", "2020-01-01", "0001-01-01"], dtype="datetime64[s]")
    table = pd.DataFrame({"a": far, "b": np.array(["2020-12-31"] * 3, dtype="datetime64[s]")})
    assert Rules.parse("b <= a").confront(table).signs[:, 0].tolist() == [1, -1, -1]
    assert Rules.parse('a > "2300-01-01"').confront(table).signs[:, 0].tolist() == [1, -1, -1]
    finer = pd.DataFrame({"a": np.array([1, 2], dtype="datetime64[ns]")})
    with pytest.raises(BadTableError, match="to microseconds"):
        Rules.parse('a > "2300-01-01"').confront(finer)


def test_dates():
    start = [dt.date(2024, 1, 1), dt.date(2024, 3, 1), None]
    end = [dt.date(2024, 1, 31), dt.date(2024, 2, 1), dt.date(2024, 1, 1)]
    for table in (
        pd.DataFrame({"start": pd.to_datetime(start), "end": pd.to_datetime(end)}),
        pl.DataFrame({"start": start, "end": end}),
    ):
        found = Rules.parse("start <= end\n'2024-01-01' <= start < '2024-02-01'").confront(table)
        assert found.signs.T.tolist() == [[1, -1, 0], [1, -1, 0]]
        assert found.amount("R1").tolist() == [29]
        with pytest.raises(RuleTableError, match="2024-01-31"):
            Rules.parse("start == 'soon'").confront(table)
        with pytest.raises(RuleTableError, match="a date with a number"):
            Rules.parse("start > 2020").confront(table)


def test_categories_and_kinds_of_frames():
    values = {"s": ["x", "y", None], "a": [1, 2, None]}
    rules = Rules.parse("s in {'x'}\na == 1\nif s == 'y': a > 1")
    tables = [
        pd.DataFrame(values).astype({"s": "category", "a": "Int64"}),
        pd.DataFrame(values),
        pl.DataFrame(values).with_columns(pl.col("s").cast(pl.Categorical)),
        pl.DataFrame(values).to_arrow(),
    ]
    for table in tables:
        assert rules.confront(table).signs.tolist() == [[1, 1, 1], [-1, -1, 1], [0, 0, 0]]
    array = np.array([[1.0, 2.0], [3.0, np.nan]])
    assert Rules.parse("col(0) < col(1)").confront(array).signs[:, 0].tolist() == [1, 0]


def test_lookup_tables(tmp_path):
    (tmp_path / "pairs.csv").write_text("region,district\nnorth,1\nsouth,2\n")
    (tmp_path / "r.rules").write_text('(region, district) in table("pairs.csv")\n')
    rules = Rules.read(tmp_path / "r.rules")
    table = pd.DataFrame({"region": ["north", "north", None], "district": [1, 2, 1]})
    assert rules.confront(table).signs[:, 0].tolist() == [1, -1, 0]
    texts = table.astype({"district": "string"})
    assert rules.confront(texts).signs[:, 0].tolist() == [1, -1, 0]
    (tmp_path / "pairs.csv").write_text("region,district\nnorth,one\n")
    with pytest.raises(RuleTableError, match=r"'one' for it \(1 values are no numbers\)"):
        Rules.read(tmp_path / "r.rules").confront(table)
    (tmp_path / "pairs.csv").write_text("district\n1\n")
    single = Rules.parse('district in table("pairs.csv")', folder=tmp_path)
    assert single.confront(table).signs[:, 0].tolist() == [1, -1, 1]
    assert single.confront(texts).signs[:, 0].tolist() == [1, -1, 1]
    assert Rules.parse('not district in table("pairs.csv")', folder=tmp_path).confront(
        table
    ).amount("R1").tolist() == [1, 1]


def test_missing_codes_of_a_schema():
    table = pd.DataFrame({"a": [5, -9], "s": ["x", "?"]})
    schema = Schema.guess(table).override(a={"missing": (-9,)}, s={"missing": ("?",)})
    rules = Rules.parse("a >= 0\ns == 'x'\nmissing(a)")
    assert rules.confront(table).signs.tolist() == [[1, 1, -1], [-1, -1, -1]]
    assert rules.confront(table, schema=schema).signs.tolist() == [[1, 1, -1], [0, 0, 1]]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("incme > 1", r"'incme' .*Did you mean 'income'"),
        ("zzz > 1", r"'zzz' that the table does not have. It has: income"),
        ("town > 3", r"town > 3 compares text with a number"),
        ("town == 3", r"compares text with a number"),
        ("town == income", r"compares text with a number"),
        ("income == 'x'", r"compares a number with text"),
        ("income in {'x'}", r"a number, and is looked for among text"),
        ("town in {1}", r"text, and is looked for among numbers"),
        ("town + 1 == 2", r"calculates with town, which is text"),
        ("mean(town) == 2", r"needs numbers, and the column holds text"),
        ("town < area", r"asks for an order"),
        ("smokes == 1", r"stands alone"),
        ("smokes > income", r"stands alone"),
        ("smokes + 1 > 1", r"which is yes or no"),
        ("smokes in {1}", r"stands alone"),
        ("income", r"stands as a truth, and its column holds numbers"),
        ("if town: income > 1", r"holds text"),
        ("code > 3", r"numbers written as text"),
        ("code in {1, 2}", r"numbers written as text"),
        ("odd == 1", r"dtype object, which rules cannot compare"),
        ("empty > mean(empty)", r"missing everywhere"),
    ],
)
def test_what_does_not_fit_is_named(rule, words):
    table = pd.DataFrame(
        {
            "income": [1, 2],
            "town": ["x", "y"],
            "area": ["x", "y"],
            "smokes": [True, False],
            "code": ["1", "2"],
            "odd": [[1], {2}],
            "empty": [NAN, NAN],
        }
    )
    with pytest.raises(RuleTableError, match=words):
        Rules.parse(rule).confront(table)


def test_all_that_does_not_fit_is_reported_together():
    table = pd.DataFrame({"a": [1], "s": ["x"]})
    with pytest.raises(RuleTableError) as caught:
        Rules.parse("a > b\ns > 1\nif c > 1: s + 1 == 2\na > 0", origin="r").confront(table)
    assert len(caught.value.problems) == 4
    assert caught.value.problems[0].startswith("R1 (line 1 of r): ")
    with pytest.raises(BadTableError, match="pandas or polars"):
        Rules.parse("a > 1").confront([1, 2])
    for wrong in (-1, 1, "x", True, NAN):
        with pytest.raises(BadOptionError):
            Rules.parse("a > 0").confront(table, tolerance=wrong)


def test_findings():
    table = pd.DataFrame({"a": [1, 2], "b": [NAN, NAN]})
    found = Rules.parse("a > 5\nb > 1\nif a > 9: b > 1\na > 1\nif a > 1: a > 2").confront(table)
    assert [(each.kind, each.rules) for each in found.findings] == [
        ("nobody", ("R1",)),
        ("unknown", ("R2",)),
        ("idle", ("R3",)),
        ("nobody", ("R5",)),
    ]
    assert "Is the rule right?" in str(found)


def test_summary_and_broken():
    table = pd.DataFrame({"a": [1, 5, NAN, 7], "b": [1, 1, 1, 1]})
    found = Rules.parse("low: a <= 4  # small\nif a > 1: b == 0").confront(table)
    assert isinstance(found, Confrontation)
    summary = found.summary()
    assert summary["rule"].tolist() == ["low", "R2"]
    assert summary["applies"].tolist() == [4, 2]
    assert summary["holds"].tolist() == [1, 1]
    assert summary["breaks"].tolist() == [2, 2]
    assert summary["unknown"].tolist() == [1, 1]
    assert summary["share"].tolist() == [1 / 3, 1 / 3]
    assert summary["worst"].tolist() == [3, 1]
    assert summary["label"].tolist() == ["small", ""]
    assert found.broken().to_dict("list") == {
        "row": [1, 1, 3, 3],
        "rule": ["low", "R2", "low", "R2"],
        "amount": [1, 1, 3, 1],
    }
    assert found.breaking().tolist() == [1, 3]
    assert found.breaking(0).tolist() == found.breaking("low").tolist() == [1, 3]
    assert not found.all_hold
    with pytest.raises(UnknownOptionError, match="'low'"):
        found.breaking("high")
    nothing = Rules.parse("b == 1").confront(table)
    assert nothing.all_hold
    assert len(nothing.broken()) == 0
    assert str(nothing).startswith("4 records, 1 rule: no record is known to break any.")
    assert Rules().confront(table).all_hold


def test_the_picture_is_svg(tmp_path):
    table = pd.DataFrame({"a": [1, 5, NAN], "$x_1$": [1, 2, 3]})
    found = Rules.parse("a <= 4\n`$x_1$` > 0\na in {" + ", ".join(map(str, range(60))) + "}")
    figure = found.confront(table).picture()
    figure.savefig(tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text()
    assert drawn.startswith("<?xml")
    assert "#0072b2" in drawn.lower()
    Rules().confront(table).picture().savefig(tmp_path / "y.svg")


def test_fixed_rules_speak_of_the_original_table():
    original = pd.DataFrame({"a": [1, 2, 98765], "s": ["x", "y", "y"]})
    released = pd.DataFrame({"a": [4, 2, 3], "s": ["x", "y", "x"]})
    rules = Rules.parse("if s == 'y': a <= mean(a)\nobserved(a)\nobserved(a, s)\nnot observed(s)")
    assert not rules.is_fixed
    fixed = rules.fix(original)
    assert fixed.is_fixed
    assert fixed == rules  # the same text; the values are not shown
    assert "98765" not in repr(fixed) + repr(fixed[1].body) + repr(fixed[1].body.domain)
    assert fixed.confront(released).signs.tolist() == [
        [1, -1, -1, -1],
        [1, 1, 1, -1],
        [1, -1, -1, -1],
    ]
    assert (
        fixed.fix(released).confront(released).signs.tolist()
        == fixed.confront(released).signs.tolist()
    )
    assert fixed[0].forms[0].high == 98768 / 3
    assert rules[0].forms[0].shape == "interval"
    assert rules.confront(released).signs[:, 1].tolist() == [1, 1, 1]


def test_observed_dates_and_kinds_that_changed():
    dates = [dt.date(2024, 1, 1), dt.date(2024, 3, 1), None]
    fixed = Rules.parse("observed(d)").fix(pl.DataFrame({"d": dates}))
    table = pd.DataFrame({"d": pd.to_datetime(["2024-01-01", "2024-01-02", None])})
    assert fixed.confront(table).signs[:, 0].tolist() == [1, -1, 0]
    with pytest.raises(RuleTableError, match="is text here, and was a date"):
        fixed.confront(pd.DataFrame({"d": ["x"]}))


def test_a_column_twice_and_quotients_of_aggregates():
    assert signs("(a, a) in {(1, 1), (2, 3)}", {"a": [1, 2]}) == [1, -1]
    assert signs("observed(a, a)", {"a": [1, 2]}) == [1, 1]
    table = pd.DataFrame({"a": [1.0, -1.0], "b": [1.0, 0.0]})
    with pytest.raises(RuleTableError, match="divides by zero in 2 records"):
        Rules.parse("1 / mean(a) + 1 / b > 0").confront(table)


def test_conditions_can_be_judged_alone():
    rule = Rules.parse("if a > 1 and s != 'x': b == 0")[0]
    table = pd.DataFrame({"a": [1, 2, NAN, 2], "s": ["y", "y", "y", "x"], "b": [0, 0, 0, 0]})
    assert judge(rule.condition, Operands(table)).tolist() == [-1, 1, 0, -1]


@pytest.mark.parametrize("make", [make_business_survey, make_households])
def test_made_tables_keep_their_rules_and_slips_break_them(make):
    """The slips are known: round(share * n) records, each of which breaks an equality."""
    clean, lines = make(2000, random_state=5, return_rules=True)
    rules = Rules.parse(lines)
    assert rules.confront(clean).all_hold
    assert (rules.confront(clean).signs == 1).all()
    # Firms: 0 <= hours <= 2400 * employees leaves nothing for employees >= 0 to say.
    found = [(finding.kind, finding.rules) for finding in rules.check()]
    assert found == ([("redundant", ("R1", "R2"))] if make is make_business_survey else [])
    spoiled = make(2000, random_state=5, inconsistent=0.1)
    assert len(rules.confront(spoiled).breaking()) == 200
    holes = rules.confront(make(2000, random_state=5, missing=0.2))
    assert holes.all_hold
    assert (holes.signs == 0).any(axis=0).sum() > len(rules) / 2
    other = make(2000, random_state=5, inconsistent=0.1, frame="polars")
    np.testing.assert_array_equal(rules.confront(spoiled).signs, rules.confront(other).signs)


def test_blocks_do_not_show():
    """Bug to be feared: the last block, or a division by zero reported at the wrong row."""
    n = 200_000
    table = pd.DataFrame({"a": np.arange(n, dtype=float), "b": np.ones(n)})
    table.loc[150_000, "b"] = 0.0
    found = Rules.parse("if a == 199999: b == 5\na <= 131072").confront(table)
    assert found.breaking("R1").tolist() == [n - 1]
    assert found.breaking("R2").tolist() == list(range(131_073, n))
    with pytest.raises(RuleTableError, match=r"row 150000\)"):
        Rules.parse("a / b >= 0").confront(table)


def test_columns_named_like_numbers_and_signs():
    table = pd.DataFrame({"a b": [1], "a`b": [2], 3: [3], "": [4], "if": [5], "x\ny": [6]})
    text = '`a b` == 1\ncol("a`b") == 2\ncol(3) == 3\ncol("") == 4\n`if` == 5\ncol("x\\ny") == 6'
    rules = Rules.parse(text)
    assert rules.confront(table).all_hold
    assert Rules.parse(rules.to_text()) == rules


@pytest.mark.parametrize("code", [-9, -9.0, "-9", "-9.0"])
@pytest.mark.parametrize("cell", ["-9", "-9.0"])
def test_a_missing_code_is_one_code_as_number_and_as_text(code: Any, cell: str) -> None:
    table = pd.DataFrame({"town": ["a", cell, "b"], "age": [3.0, float(cell), -0.0]})
    schema = Schema.guess(table).override(town={"missing": [code]}, age={"missing": [code]})
    rules = Rules(["town in {'a', 'b'}", "age >= 0", "known(town)", "age == 0 or age > 2"])
    signs = [[1, 0, 1], [1, 0, 1], [1, -1, 1], [1, 0, 1]]
    assert rules.confront(table, schema=schema).signs.T.tolist() == signs
    assert rules.confront(View(table, schema)).signs.T.tolist() == signs
    without = rules.confront(table)
    assert without.breaking("R1").tolist() == without.breaking("R2").tolist() == [1]


def test_a_view_is_read_once_for_many_confrontations() -> None:
    view = View(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    rules = Rules(["a <= 1", "b == 'x'"])
    first = view.numbers("a")
    assert rules.confront(view).breaking().tolist() == [1]
    assert rules.confront(view.table).breaking().tolist() == [1]
    assert view.numbers("a") is first


def test_a_column_that_the_schema_does_not_describe_has_no_missing_codes() -> None:
    table = pd.DataFrame({"a": [1.0, -9.0], "b": ["x", "-9"]})
    schema = Schema.guess(table[["a"]]).override(a={"missing": [-9]})
    rules = Rules(["a >= 0", "b == 'x'"])
    assert rules.confront(table, schema=schema).signs.tolist() == [[1, 1], [0, -1]]
