"""Rules in files: text, TOML and the YAML of R's validate, both ways; mistakes all at once."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import _lazy
from tessella.exceptions import (
    BadFileError,
    DataNotFoundError,
    MissingPackageError,
    RuleSyntaxError,
    RuleTranslationError,
)
from tessella.rules import Rules
from tests.amounts import few_or_many, try_examples
from tests.rules.strategies import complete_records, records, rules
from tests.rules.test_oracle import frame

TEXT = """\
age: 0 <= age <= 125  # values in an interval
status in {"employed", "retired"}
net + tax == gross ± 1  # with "quotes" and ünïcödé
"my rule": if sex == "male": `number of births` == 0
"""


def test_text_round_trip(tmp_path):
    rules = Rules.parse(TEXT)
    assert rules.to_text() == TEXT
    path = tmp_path / "a.rules"
    path.write_text(TEXT, encoding="utf-8-sig")
    assert Rules.read(path) == rules
    assert Rules.read(str(path))[0].origin == "a.rules"
    path.write_text(TEXT.replace("\n", "\r\n"), encoding="utf-8")
    assert Rules.read(path) == rules


def test_toml_round_trip(tmp_path):
    rules = Rules.parse(TEXT)
    path = tmp_path / "a.toml"
    path.write_text(rules.to_toml(), encoding="utf-8")
    assert Rules.read(path) == rules
    assert Rules.from_toml(Rules().to_toml()) == Rules()


def test_toml_by_hand(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    text = """
    rules = [
      "a > 1  # label",
      { rule = "a + b == c", name = "sum", label = "adds up", tolerance = 0.5 },
      'a in table("t.csv")',
    ]
    """
    rules = Rules.from_toml(text, folder=tmp_path)
    assert rules.names == ("R1", "sum", "R3")
    assert rules["sum"].tolerance == 0.5
    assert [rule.label for rule in rules] == ["label", "adds up", ""]


def test_toml_reports_every_mistake():
    text = """
    [[rules]]
    rule = "a = b"
    [[rules]]
    rle = "a > b"
    [[rules]]
    rule = "a > b"
    tolerance = "much"
    name = 3
    """
    with pytest.raises(RuleSyntaxError) as caught:
        Rules.from_toml(text, origin="x.toml")
    found = sorted((mistake.where, mistake.message) for mistake in caught.value.mistakes)
    assert [where for where, _ in found] == ["rule 1", "rule 2", "rule 2", "rule 3", "rule 3"]
    assert any("'rle'" in message for _, message in found)


@pytest.mark.parametrize("text", ["rules = 3", "x = 1", "rules = [", "rules = [3]", 'rules = [""]'])
def test_toml_that_holds_no_rules(text):
    with pytest.raises(RuleSyntaxError):
        Rules.from_toml(text)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataNotFoundError, match="no file of rules"):
        Rules.read(tmp_path / "none.rules")
    with pytest.raises(BadFileError, match="a file of rules"):
        Rules.read(tmp_path)
    (tmp_path / "latin.rules").write_bytes("ü > 1".encode("latin-1"))
    with pytest.raises(RuleSyntaxError, match="UTF-8"):
        Rules.read(tmp_path / "latin.rules")


def test_a_file_with_three_mistakes_reports_three(tmp_path):
    path = tmp_path / "b.rules"
    path.write_text("a = 1\nb > 0\nfoo(c) > 1\n\nd in e\n")
    with pytest.raises(RuleSyntaxError, match=r"^3 mistakes in b\.rules:") as caught:
        Rules.read(path)
    assert [mistake.where for mistake in caught.value.mistakes] == ["line 1", "line 3", "line 5"]


VALIDATE = """\
---
options:
  raise: none
  lin.eq.eps: 1.0e-08
---
rules:
- expr: speed >= 0
  name: speed
  label: speed positivity
  description: |
    a long text
  created: 2021-08-19 14:23:40
  origin: x.yaml
  meta: []
- expr: speed/dist <= 1.5
  name: ratio
- expr: if ( x > 0 & !is.na(y) ) y == 2^3
- expr: status %in% c("a", 'b')
- expr: '! a == b | c'
- expr: in_range(age, min = 0, max = 120L)
- expr: in_range(age, 0, 120)
- expr: -x^2 < mean(x, na.rm=TRUE)
- expr: pmax(a, b) == abs(c.d)
- expr: is_complete(a, b)
- expr: code %in% c(1L, -2)
- expr: (net +
    tax) == gross
- expr: "`my col` != TRUE"
"""


def test_validate_by_hand():
    """R's own grouping: ! binds less tightly than ==, ^ more tightly than a sign."""
    rules = Rules.from_validate(VALIDATE, origin="x.yaml")
    assert [rule.text for rule in rules] == [
        "speed >= 0",
        "speed / dist <= 1.5",
        "if x > 0 and not missing(y): y == 2 ** 3",
        'status in {"a", "b"}',
        "not a == b or c",
        "0 <= age <= 120",
        "0 <= age <= 120",
        "-x ** 2 < mean(x)",
        "max(a, b) == abs(`c.d`)",
        "known(a) and known(b)",
        "code in {1, -2}",
        "net + tax == gross",
        "`my col` != True",
    ]
    assert rules.names[:3] == ("speed", "ratio", "R3")
    assert rules[0].label == "speed positivity"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("mean(x) > 1", "na.rm"),
        ("grepl('x', y)", "grepl"),
        ("x ~ y", "Functional"),
        ("G := var_group(a, b)", "assign"),
        ("x %in% 1:5", "ranges"),
        ("x %in% y", "c(...)"),
        ("nrow(.) == 15", "This sign|no \\."),
        ("if (x > 1) y > 1 else z > 1", "else"),
        ("x == NA", "NA"),
        ("x + y", "compares"),
        ("x > 1 ; y > 2", "has no place here"),
        ("x$y > 1", "column"),
        ("x > ", "has no place here"),
        ("system('true') == 0", "system"),
        ("x == 'unclosed", "sign"),
        ("(" * 100 + "x" + ")" * 100 + " > 1", "within"),
    ],
)
def test_what_validate_says_and_we_do_not_is_reported(expression, words):
    text = f"rules:\n- expr: a > 1\n- expr: {expression!r}\n- name: nothing\n"
    with pytest.raises(RuleSyntaxError) as caught:
        Rules.from_validate(text.replace("\\'", "''"))
    first, second = sorted(caught.value.mistakes, key=lambda mistake: mistake.where)
    assert (first.where, second.where) == ("rule 2", "rule 3")
    assert re.search(words, f"{first.message} {first.hint}")


def test_yaml_that_grows_is_refused():
    """Merges of merges of merges: a few lines that would stand for thousands of millions."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 12)]
    with pytest.raises(RuleSyntaxError, match="Anchors"):
        Rules.from_validate("\n".join([*lines, "rules: []"]))


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "- 1",
        "x: 1",
        "rules: 3",
        "include: [other.yaml]\nrules: []",
        "rules: !!python/object/apply:os.system ['true']",
        "a: &a [1, 2]\nb: &b [*a, *a]\nrules: []",
        "[" * 1500,
    ],
)
def test_yaml_that_holds_no_rules(text):
    with pytest.raises(RuleSyntaxError):
        Rules.from_validate(text)


def test_validate_is_written():
    rules = Rules.parse(
        "balance: net + tax == gross ± 1  # the sum\n0 <= a <= 9\n"
        'if s == "x": not b > 1 or c in {1, 2}\n'
        "known(`d.e`) and `f g` < mean(h)\na <= b ± 2\n"
    )
    assert rules.to_validate() == (
        "rules:\n"
        "- expr: abs(net + tax - gross) <= 1.0\n"
        "  name: balance\n"
        "  label: the sum\n"
        "- expr: 0 <= a & a <= 9\n"
        "  name: R2\n"
        "  label: ''\n"
        '- expr: if (s == "x") (!(b > 1)) | (c %in% c(1, 2))\n'
        "  name: R3\n"
        "  label: ''\n"
        "- expr: (!is.na(d.e)) & (`f g` < mean(h, na.rm = TRUE))\n"
        "  name: R4\n"
        "  label: ''\n"
        "- expr: a - b <= 2.0\n"
        "  name: R5\n"
        "  label: ''\n"
    )
    again = Rules.from_validate(rules.to_validate())
    assert again[1].forms == rules[1].forms
    assert again["balance"].label == "the sum"


def test_what_validate_cannot_say_is_reported_by_rule(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    rules = Rules.parse(
        "observed(a)\na > 1\na in table('t.csv')\n(a, b) in {(1, 2)}\ncol(0) > 1\n"
        "a > 1 or b == 2 ± 1",
        folder=tmp_path,
    )
    with pytest.raises(RuleTranslationError) as caught:
        rules.to_validate()
    named = [problem.partition(" ")[0] for problem in caught.value.problems]
    assert named == ["R1", "R3", "R4", "R5", "R6"]


def rules_mean_the_same_after_a_journey_through_r(rule, rows):
    try:
        text = Rules([rule]).to_validate()
    except RuleTranslationError as error:
        assert "rows of values" in str(error)  # noqa: PT017
        return
    again = Rules.from_validate(text)
    table = frame(rows)
    assert again.confront(table).signs.tolist() == Rules([rule]).confront(table).signs.tolist()


@few_or_many(50, 150)
def test_rules_mean_the_same_after_a_journey_through_r(count):
    """Invariant: what validate can say comes back with the same verdict on every record."""
    try_examples(
        count,
        rules_mean_the_same_after_a_journey_through_r,
        rule=rules,
        rows=st.lists(records, min_size=1, max_size=4),
    )


@settings(max_examples=50)
@given(
    label=st.text(st.characters(exclude_categories=["C", "Z"]), max_size=12),
    name=st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=8),
    record=complete_records,
)
def test_names_and_labels_survive_every_format(label, name, record):
    entry = {"rule": "x > 1", "name": name, "label": label}
    if not name.isprintable() or not name.strip():
        return
    from tessella._output import toml_text

    text = "[[rules]]\n" + "\n".join(f"{key} = {toml_text(v)}" for key, v in entry.items())
    rules = Rules.from_toml(text)
    assert Rules.parse(rules.to_text()) == rules
    assert Rules.from_toml(rules.to_toml()) == rules
    assert Rules.from_validate(rules.to_validate()) == rules
    assert rules.confront(pd.DataFrame([record])).summary()["rule"].tolist() == [name]


def test_without_yaml_the_extra_is_named(monkeypatch):
    def missing(package):
        raise ImportError(package)

    monkeypatch.setattr(_lazy, "import_module", missing)
    with pytest.raises(MissingPackageError, match=r"tessella\[validate\]"):
        Rules.from_validate("rules: []")
    with pytest.raises(MissingPackageError, match=r"tessella\[plots\]"):
        Rules.parse("x > 1").confront(pd.DataFrame({"x": [1]})).picture()
