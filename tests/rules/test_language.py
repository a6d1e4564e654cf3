"""The language: by hand for every construct, every error with its place, hostile text refused."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import BadOptionError, RuleSyntaxError
from tessella.rules import Rules
from tessella.rules.expressions import (
    Aggregate,
    And,
    Arithmetic,
    ColumnRef,
    Compare,
    Constant,
    Flag,
    Function,
    Literals,
    Lookup,
    Member,
    Missing,
    Negative,
    Not,
    Observed,
    Or,
    Text,
)

a, b, c = ColumnRef("a"), ColumnRef("b"), ColumnRef("c")


def body(text):
    return Rules.parse(text)[0].body


def mistakes(text, **options):
    with pytest.raises(RuleSyntaxError) as caught:
        Rules.parse(text, **options)
    return caught.value.mistakes


def spot(text, **options):
    """The characters above the carets of the only mistake."""
    (mistake,) = mistakes(text, **options)
    return mistake.text[mistake.start : mistake.start + mistake.width]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a == 1", Compare((a, Constant(1)), ("==",))),
        ("a == -1.5", Compare((a, Constant(-1.5)), ("==",))),
        ("0 <= a < b", Compare((Constant(0), a, b), ("<=", "<"))),
        ("a != 'x'", Compare((a, Text("x")), ("!=",))),
        ("a == True", Compare((a, Flag(True)), ("==",))),
        ("a - b - c >= 0", None),
        ("-a > 2", Compare((Negative(a), Constant(2)), (">",))),
        ("+a > 2", Compare((a, Constant(2)), (">",))),
        ("a ** 2 > 1", Compare((Arithmetic("**", a, Constant(2)), Constant(1)), (">",))),
        ("(a ** 2) ** 3 > (-b) ** 2", None),
        ("(a * b) ** 2 > -(b ** 2) * (a / (b * c))", None),
        ("abs(a) < 1", Compare((Function("abs", (a,)), Constant(1)), ("<",))),
        ("max(a, b) < 1", Compare((Function("max", (a, b)), Constant(1)), ("<",))),
        ("a < max(b)", Compare((a, Aggregate("max", "b")), ("<",))),
        ("a < mean(b)", Compare((a, Aggregate("mean", "b")), ("<",))),
        ("a in {1, 2}", Member((a,), Literals(((1,), (2,))))),
        ("a in (1, 2)", Member((a,), Literals(((1,), (2,))))),
        ("a in [-1]", Member((a,), Literals(((-1,),)))),
        ("a not in {'x'}", Member((a,), Literals((("x",),)), inside=False)),
        ("(a, b) in {(1, 'x'), (2, 'y')}", Member((a, b), Literals(((1, "x"), (2, "y"))))),
        ("observed(a)", Observed(("a",))),
        ("observed(a, b)", Observed(("a", "b"))),
        ("missing(a)", Missing("a")),
        ("known(a)", Missing("a", False)),
        ("not a", Not(a)),
        ("a and b or c", Or((And((a, b)), c))),
        ("`a b` > 1", Compare((ColumnRef("a b"), Constant(1)), (">",))),
        ("col('a \"b') > 1", Compare((ColumnRef('a "b'), Constant(1)), (">",))),
        ("col(0) > 1", Compare((ColumnRef(0), Constant(1)), (">",))),
        ("`if` > 1", Compare((ColumnRef("if"), Constant(1)), (">",))),
        ("mean > 1", Compare((ColumnRef("mean"), Constant(1)), (">",))),
    ],
)
def test_every_construct(text, expected):
    read = body(text)
    assert expected is None or read == expected
    assert body(Rules.parse(text)[0].text) == read


def test_subtraction_groups_to_the_left():
    assert body("a - b - c >= 0") == body("(a - b) - c >= 0") != body("a - (b - c) >= 0")


def test_the_rules_of_the_issue_read_as_their_kinds(tmp_path):
    (tmp_path / "districts.csv").write_text("region,district\nnorth,1\nsouth,2\n")
    text = """
    0 <= age <= 125                              # values in an interval
    status in {"employed", "retired", "other"}   # values in a set
    (region, district) in table("districts.csv") # pairs that exist
    net + tax == gross                           # linear
    harvested <= planted                         # one variable governs another
    wage_sum == hours * rate                     # multiplicative
    price * (1 + vat) == retail
    if sex == "male": pregnancies == 0           # conditional
    if age < 17: income < mean(income)
    observed(age)                                # only values that exist in the data
    """
    rules = Rules.parse(text, folder=tmp_path)
    kinds = "interval set tuples linear governing multiplicative multiplicative conditional"
    assert [rule.kind for rule in rules] == [*kinds.split(), "conditional", "observed"]
    assert rules[3].label == "linear"
    assert rules[3].line == 5
    assert rules["R8"].columns == ("sex", "pregnancies")
    assert isinstance(rules[2].body.among, Lookup)
    assert rules[2].body.among.rows == (("north", "1"), ("south", "2"))


def test_names_labels_tolerances():
    rules = Rules.parse(
        "balance: a + b == c ± 1.5  # with # inside\n\n# nothing\na > 0\nif b > 1: c == 2 +/- 1e-3"
    )
    assert rules.names == ("balance", "R2", "R3")
    assert [rule.tolerance for rule in rules] == [1.5, None, 0.001]
    assert rules[0].label == "with # inside"
    assert rules[1].label == ""
    assert [rule.line for rule in rules] == [1, 4, 5]
    assert Rules.parse("'x' == a  # l")[0].name == "R1"
    assert Rules.parse('"my rule": a > 1')["my rule"].text == "a > 1"


def test_signs_inside_quotes_and_backticks_mean_nothing():
    rule = Rules.parse("if `a: #±` == 'x: # ± 1': b == \"#\"  # label")[0]
    assert rule.columns == ("a: #±", "b")
    assert rule.label == "label"
    assert rule.tolerance is None


def test_names_are_taken_as_written():
    """A bug of Python's parser for us: it folds micro sign to Greek mu (NFKC)."""
    assert Rules.parse("\u00b5 > 1").columns == ("\u00b5",)
    assert Rules.parse("größe > 1 and \ufb01x < 2").columns == ("größe", "\ufb01x")


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("a = b", "=", "=="),
        ("a == b && c == d", "&&", "and"),
        ("(a > 1) & (b > 1)", "(a > 1) & (b > 1)", "and"),
        ("a > 1 | b > 1", "1 | b", "or"),
        ("a ≤ 3", "≤", "<="),
        ("!a", "!", "not"),
        ("a <> b", "<>", "!="),
        ("foo(a) > 1", "foo", "Rules know"),
        ("meen(a) > 1", "meen", "Did you mean mean"),
        ("a.b > 1", "a.b", "`a.b`"),
        ("a[0] > 1", "a[0]", "square"),
        ("a ^ 2 > 1", "a ^ 2", "**"),
        ("a % 2 == 0", "a % 2", "only"),
        ("a // 2 == 0", "a // 2", "only"),
        ("a == None", "None", "missing"),
        ("a is None", "a is None", "missing"),
        ("a in b", "b", "set"),
        ("a in {}", "{}", "set"),
        ("a in range(3)", "range(3)", "0 <= x"),
        ("1 in {1, 2}", "1", "column"),
        ("a in {1, 'x'}", "'x'", "one set"),
        ("a + b in {'x'}", "'x'", "text"),
        ("a < 'x'", "'x'", "order"),
        ("a + 1 == 'x'", "'x'", "quotes"),
        ("'x' + 1 == a", "'x'", "calculate"),
        ("a + b", "a + b", "compares"),
        ("1 < 2", "1 < 2", "no column"),
        ("'a' == 'b'", "'a' == 'b'", "no column"),
        ("True", "True", "no column"),
        ("a / 0 > 1", "0", "zero"),
        ("a / (2 - 2) > 1", "2 - 2", "zero"),
        ("a > 1 if b else c", "a > 1 if b else c", "if condition: rule"),
        ("if a > 1", "if", "if condition: rule"),
        ("if a > 1: if b > 1: c > 1", "if", "once"),
        ("if : a > 1", " ", "missing"),
        ("if a > 1:", ":", "missing"),
        ("a > (1", "(", "one line"),
        ("a > 1)", ")", "closes nothing"),
        ("a == 'x", "'x", "never ends"),
        ("`a > 1", "`a > 1", "backtick"),
        ("a == b ± x", "± x", "tolerance"),
        ("a == b ± 1 ± 2", "±", "tolerance"),
        ("if a == 1 ± 2: b == 1", "±", "tolerance"),
        ("a != b ± 1", "± 1", "!="),
        ("a == 'x' ± 1", "± 1", "numbers"),
        ("a > 9007199254740993", "9007199254740993", "2**53"),
        ("a > 1e200", "1e200", "1e+150"),
        ("mean(a + 1) > 2", "a + 1", "column"),
        ("mean(a, b) > 2", "mean(a, b)", "one argument"),
        ("min() > 2", "min()", "argument"),
        ("abs(a, b) > 2", "abs(a, b)", "one argument"),
        ("mean(x=a) > 2", "mean(x=a)", "named"),
        ("observed(a) > 2", "observed(a)", "truth"),
        ("mean(a)", "mean(a)", "truth"),
        ("missing(a > 1)", "a > 1", "column"),
        ("a == b in {1}", "a == b in {1}", "chain"),
        ("(a, b) in {1, 2}", "1", "2 values"),
        ("(a, b + 1) in {(1, 2)}", "b + 1", "Only columns"),
        ("(a, b) > 1", "a, b", "in a row"),
        ("table('x.csv') == a", "table('x.csv')", "after `in`"),
        ("é == x.y", "x.y", "No name of a column has a dot"),
        ('"": a > 1', '"":', "empty"),
    ],
)
def test_mistakes_are_pointed_at(text, where, words):
    (mistake,) = mistakes(text)
    assert mistake.where == "line 1"
    found = mistake.text[mistake.start : mistake.start + mistake.width]
    assert where.strip("()") in found or found in where
    assert words in f"{mistake.message} {mistake.hint}"
    drawn = str(mistake).splitlines()
    assert drawn[1].strip() == text.strip()
    assert set(drawn[2].strip()) == {"^"}


def test_the_caret_stands_under_the_spot():
    text = "age >= 0\n  wörter.x > 1\nif `my col` > 1: foo(x) == 2\n"
    with pytest.raises(RuleSyntaxError) as caught:
        Rules.parse(text, origin="a.rules")
    assert str(caught.value) == (
        "2 mistakes in a.rules:\n"
        "line 2: No name of a column has a dot.\n"
        "      wörter.x > 1\n"
        "      ^^^^^^^^\n"
        "  Write such a name in backticks: `a.b`.\n"
        "line 3: Rules have no function 'foo'.\n"
        "    if `my col` > 1: foo(x) == 2\n"
        "                     ^^^\n"
        "  Rules know abs, col, count, known, max, mean, min, missing, observed, sum, table."
    )


def test_condition_and_rule_are_both_reported():
    assert len(mistakes("if foo(a) > 1: b = 2")) == 2


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true') == 0",
        "().__class__.__bases__[0].__subclasses__() == a",
        "a.__class__ == b",
        "__builtins__ == a",
        "exec('x') == a",
        "eval('1') == a",
        "open('x') == a",
        "getattr(a, 'b') == 1",
        "(lambda: 1)() == a",
        "lambda: a > 1",
        "[x for x in a] == b",
        "{x for x in a} == b",
        "{x: 1 for x in a} == b",
        "(x for x in a) == b",
        "a in {x for x in b}",
        "a in {*b}",
        "(x := 3) > a",
        "f'{a}' == b",
        "f'{__import__(1)}' == b",
        "a == b'x'",
        "a == 1j",
        "a == ...",
        "(yield a) == 1",
        "await a == 1",
        "a ** 11 > 1",
        "a ** b > 1",
        "a ** 11.5 > 1",
        "a ** -1 > 1",
        "9 ** 9 ** 9 > a",
        "a > ((((10 ** 10) ** 10) ** 10) ** 10)",
        "print(a) == 1",
        "abs.__call__(a) > 1",
        "abs(*a) > 1",
        "abs(**a) > 1",
        "col(b) > 1",
        "col(f'{a}') > 1",
        "table('/etc/passwd') == a",
        "a in table(b)",
        "a; b > 1",
        "import os",
        "a > 1\\",
        "a == 'x' 'y' + b",
        "a\x00 > 1",
        'a == "\\N{DIGIT ONE}" + 1',
        "a > 1 # fine\x0b__import__ > (",
    ],
)
def test_hostile_rules_are_refused(text):
    if "fine" in text:  # what stands in a comment is a label, whatever it is
        assert Rules.parse(text)[0].text == "a > 1"
        return
    assert mistakes(text)


def calls_of(function: Callable[[], object]) -> int:
    """Count the calls of Python functions: the work, on whatever machine."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = function()
    finally:
        sys.setprofile(before)
    assert found
    return calls


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "a" + ")" * 5000 + " > 1",
        "-" * 15_000 + "a > 1",
        "not " * 4000 + "a",
        " + ".join(["a"] * 4000) + " > 1",
        " * ".join(["a"] * 4000) + " > 1",
        " and ".join(["a > 1"] * 1500) + " and (" + "(" * 40 + "a" + ")" * 40 + "",
        "a > " + "9" * 15_000,
        "a > 1" + " " * 2_000_000,
        "a == '" + "x" * 1_000_000 + "'",
        "a in {" + "1, " * 400_000 + "}",
        "(" * 49 + "a ** 10" + ") ** 10" * 49 + " > 1 > (",
        "a" * 1_000_000,
        "`" * 9_999,
        "a == '" + "\\" * 9_999,
        "a" + "[0" * 40 + "]" * 40 + " > 1",
    ],
)
def test_hostile_sizes_are_refused_with_little_work(text):
    assert calls_of(lambda: mistakes(text)) < 20 * len(text)


def test_a_total_of_many_parts():
    names = [f"part_{at}" for at in range(900)]
    rule = Rules.parse(f"total == {' + '.join(names)}")[0]
    assert rule.kind == "linear"
    assert len(rule.forms[0].coefficients) == 901
    assert Rules.parse(rule.text)[0] == rule
    table = pd.DataFrame({name: [1, 1] for name in names} | {"total": [900, 899]})
    found = Rules([rule]).confront(table)
    assert found.signs[:, 0].tolist() == [1, -1]
    assert found.amount("R1").tolist() == [1]
    assert Rules([rule]).check() == []


def test_powers_within_powers_do_not_blow_up():
    """Reading is little work, and so is finding out that it is of no simple kind."""
    for text in (
        "(" * 40 + "3 * a + b" + " + c) ** 10" * 40 + " > 1",
        "(a + b + c + d + e + f + g + h + i + j) ** 10 == (k + l + m) ** 10",
    ):
        assert Rules.parse(text)[0].kind == "general"
        assert calls_of(lambda text=text: Rules.parse(text)) < 200 * len(text)


def test_a_thousand_mistakes_are_counted_and_twenty_shown():
    found = mistakes("\n".join(["a = b"] * 1000))
    assert len(found) == 1000
    with pytest.raises(RuleSyntaxError, match=r"(?s)1000 mistakes.*\.\.\. and 980 more"):
        Rules.parse(["a = b"] * 1000)


def test_a_huge_text_is_refused_before_it_is_read():
    with pytest.raises(RuleSyntaxError, match="are allowed"):
        Rules.parse("a > 1\n" * 2_000_000)


@given(text=st.text(max_size=60) | st.text("ab1 +-*/()<>=!.,:#'\"`{}[]±\\ifnotandori", max_size=60))
def test_any_text_is_rules_or_mistakes(text):
    """Invariant: no other exception, and mistakes that can be drawn."""
    found = None
    try:
        rules = Rules.parse(text)
    except RuleSyntaxError as error:
        found = error
    if found is None:
        assert Rules.parse(rules.to_text()) == rules
    else:
        assert found.mistakes
        assert str(found)


def test_names_are_unique():
    (mistake,) = mistakes("x: a > 1\nx: b > 1")
    assert "line 1" in mistake.message
    assert mistakes("R2: a > 1\nb > 1")
    assert Rules.parse("R2: a > 1\nR1: b > 1").names == ("R2", "R1")


def test_lookup_tables(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.csv").write_text("\ufeffb,a\n1,2\n1,2\n3,4\n", encoding="utf-8")
    (tmp_path / "ragged.csv").write_text("a,b\n1\n")
    (tmp_path / "gap.csv").write_text("a,b\n1,\n")
    (tmp_path / "none.csv").write_text("a,b\n")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    (tmp_path / "latin.csv").write_bytes("a\n\xe9\n".encode("latin-1"))
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    rules = Rules.parse('(a, b) in table("sub/x.csv")', folder=tmp_path)
    assert rules[0].body.among.rows == (("2", "1"), ("4", "3"))

    def problem(text, folder=tmp_path):
        (mistake,) = mistakes(text, folder=folder)
        return f"{mistake.message} {mistake.hint}"

    assert "no table 'nothing.csv'" in problem('a in table("nothing.csv")')
    assert "Did you mean 'ragged.csv'" in problem('a in table("raged.csv")')
    assert "no column 'c'" in problem('c in table("none.csv")')
    assert "outside" in problem('a in table("../x.csv")')
    assert "outside" in problem('a in table("/etc/passwd")')
    assert "outside" in problem('root in table("link.csv")')
    assert "folder" in problem('a in table("none.csv")', None)
    assert "cells" in problem('a in table("ragged.csv")')
    assert "empty cell" in problem('b in table("gap.csv")')
    assert "no rows" in problem('a in table("none.csv")')
    assert "two columns" in problem('a in table("twice.csv")')
    assert "UTF-8" in problem('a in table("latin.csv")')
    assert "no table" in problem('a in table("sub")')
    assert "no table" in problem('a in table("x\\0.csv")')
    assert "Only columns" in problem('a + 1 in table("none.csv")')


def test_reading_lists():
    assert Rules.parse(["a > 1", "", "b > 1"]) == Rules(["a > 1", "b > 1"])
    with pytest.raises(BadOptionError, match="one rule in each"):
        Rules.parse(["a > 1\nb > 1"])
    with pytest.raises(BadOptionError, match="one rule in each"):
        Rules.parse([3])
    with pytest.raises(BadOptionError, match="either"):
        Rules(["a > 1", Rules(["b > 1"])[0]])
    with pytest.raises(BadOptionError, match=r"Rules\.parse"):
        Rules("a > 1")


def test_collection():
    rules = Rules.parse("a > 1\nb > 2  # second\na + b == c")
    assert len(rules) == 3
    assert rules.columns == ("a", "b", "c")
    assert rules.for_columns(["c"]).names == ("R3",)
    assert rules.for_columns("a").names == ("R1", "R3")
    assert rules.for_columns(["a", "b"], only=True).names == ("R1", "R2")
    assert rules.of_kind("interval").names == ("R1", "R2")
    assert rules[1:].names == ("R2", "R3")
    assert str(rules[1:]) == "R2: b > 2  # second\nR3: a + b == c"
    assert Rules.parse(str(rules[1:])) == rules[1:]
    assert repr(rules[:1]) == "<Rules: 1 on 1 columns>\na > 1"
    assert repr(rules[1]) == "<Rule R2: b > 2  # second>"
    assert list(Rules()) == []
    assert hash(rules) == hash(Rules.parse(rules.to_text()))
