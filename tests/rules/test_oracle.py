"""Random rules on random tables: the verdict of plain Python, and the same rule from its text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.rules import Rules
from tessella.rules.expressions import negated, positive
from tests.amounts import few_or_many, try_examples
from tests.reference.kleene import verdict
from tests.rules.strategies import FLAG, NUMBERS, TEXTS, records, rules


def frame(rows):
    table = pd.DataFrame(rows)
    for name in NUMBERS:
        table[name] = table[name].astype("Float64")
    for name in TEXTS:
        table[name] = table[name].astype("string")
    table[FLAG] = table[FLAG].astype("boolean")
    return table


def expected(text, rows):
    return [{True: 1, False: -1, None: 0}[verdict(text, row)] for row in rows]


def the_same_verdict_as_plain_python(rule, rows):
    found = Rules([rule]).confront(frame(rows))
    assert found.signs[:, 0].tolist() == expected(rule.text, rows)
    np.testing.assert_array_equal(found.breaking("R1"), np.flatnonzero(found.signs[:, 0] < 0))
    assert (found.amount("R1") >= 0).all()


@few_or_many(120, 400)
def test_the_same_verdict_as_plain_python(count):
    """Independent: a reader of Python's tree that looks at one record at a time."""
    try_examples(
        count,
        the_same_verdict_as_plain_python,
        rule=rules,
        rows=st.lists(records, min_size=1, max_size=6),
    )


def not_pushed_down_changes_no_verdict(rule, rows):
    table = frame(rows)
    plain = Rules([rule]).confront(table).signs
    pushed = Rules([replace(rule, body=positive(rule.body))]).confront(table).signs
    np.testing.assert_array_equal(plain, pushed)
    whole = Rules([replace(rule, body=rule.truth, condition=None)]).confront(table).signs
    np.testing.assert_array_equal(plain, whole)
    opposite = replace(rule, body=negated(rule.truth), condition=None)
    np.testing.assert_array_equal(plain, -Rules([opposite]).confront(table).signs)


@few_or_many(40, 100)
def test_not_pushed_down_changes_no_verdict(count):
    """Invariant: De Morgan holds for true, false and unknown."""
    try_examples(
        count,
        not_pushed_down_changes_no_verdict,
        rule=rules,
        rows=st.lists(records, min_size=1, max_size=4),
    )


def a_rule_reads_back_from_its_text(rule):
    again = Rules.parse(rule.text)
    assert again == Rules([rule])
    assert again.to_text() == Rules([rule]).to_text()
    assert Rules.from_toml(Rules([rule]).to_toml()) == again


@few_or_many(100, 300)
def test_a_rule_reads_back_from_its_text(count):
    try_examples(count, a_rule_reads_back_from_its_text, rule=rules)


@settings(max_examples=100)
@given(
    text=st.sampled_from(
        ["x + y == z", "x <= y", "0 <= x <= 2", "x * y > z", "x in [1, 2]", "abs(x - y) <= 1"]
    ),
    rows=st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=1, max_size=8),
)
def test_the_same_verdict_as_pandas(text, rows):
    table = pd.DataFrame(rows, columns=list(NUMBERS))
    by_pandas = table.eval(text).to_numpy()
    signs = Rules.parse(text).confront(table).signs[:, 0]
    np.testing.assert_array_equal(signs, np.where(by_pandas, 1, -1))


@settings(max_examples=60)
@given(rule=rules, rows=st.lists(records, min_size=1, max_size=5))
def test_the_same_verdict_on_every_kind_of_frame(rule, rows):
    import polars as pl

    table = frame(rows)
    kinds = {
        **dict.fromkeys(NUMBERS, pl.Float64),
        **dict.fromkeys(TEXTS, pl.String),
        FLAG: pl.Boolean,
    }
    other = pl.DataFrame(
        {name: [row[name] for row in rows] for name in kinds}, schema=kinds, strict=False
    )
    signs = Rules([rule]).confront(table).signs
    np.testing.assert_array_equal(signs, Rules([rule]).confront(other).signs)
    np.testing.assert_array_equal(signs, Rules([rule]).confront(other.to_arrow()).signs)
