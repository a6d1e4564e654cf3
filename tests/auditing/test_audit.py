"""The audit as a whole: form, what it keeps to itself, other ways to the same answer, bad input."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tessella import Microaggregation, Rules, Schema, audit
from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    GroupSizeError,
    IncomparableError,
    RuleSyntaxError,
    RuleTableError,
    SmallJointGroupsWarning,
    UnknownColumnError,
)

from .six import MASKED, SIX, line, public_text

# By hand: form


@pytest.mark.parametrize(
    ("released", "said"),
    [
        (SIX[["net", "sex", "tax"]], "another order"),
        (SIX.set_axis(list("abcdef")), "another index"),
        (SIX.rename_axis("person"), "another index"),
        (SIX.astype({"net": float}), "'net' held integer (int64) and now holds float (float64)"),
        (SIX.astype({"net": "int32"}), "'net' was stored as int64 and now is as int32"),
        (SIX.astype({"sex": "category"}), "'sex' held text"),
        (SIX.astype({"net": str}), "'net' held integer (int64) and now holds text"),
        (pl.from_pandas(SIX), "a pandas table, the released one a polars table"),
    ],
)
def test_another_form_is_a_problem_that_is_named(released, said):
    result = audit(SIX, released)
    assert len(result.problems) == 1
    assert said in result.problems[0]


def test_categories_that_lose_their_order():
    table = pd.DataFrame({"c": pd.Categorical(["a", "b"], ordered=True)})
    released = pd.DataFrame({"c": pd.Categorical(["a", "b"])})
    assert "an order that is lost" in audit(table, released).problems[0]


def test_a_dtype_does_not_tell_its_categories():
    table = pl.DataFrame({"c": pl.Series(["a", "Zorro"], dtype=pl.Enum(["a", "Zorro"]))})
    released = pl.DataFrame({"c": pl.Series(["a", "a"], dtype=pl.Enum(["a"]))})
    result = audit(table, released)
    assert "another set" in result.problems[0]
    assert "Zorro" not in public_text(result)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_categories_that_only_the_dtype_still_knows(kind):
    """The codebook's z was never used; the b that masking took away still stands in the dtype."""
    before, after = ["a", "a", "b"], ["a", "a", "a"]
    make: dict[str, Any] = {
        "pandas": lambda v: pd.DataFrame({"c": pd.Categorical(v, categories=["a", "b", "z"])}),
        "polars": lambda v: pl.DataFrame({"c": pl.Series(v, dtype=pl.Enum(["a", "b", "z"]))}),
        "pyarrow": lambda v: pa.table(
            {"c": pa.DictionaryArray.from_arrays([["a", "b", "z"].index(x) for x in v],
                                                 ["a", "b", "z"])}
        ),
    }  # fmt: skip
    result = audit(make[kind](before), make[kind](after))
    assert result.passed
    assert any("still lists 2 categories" in note for note in result.notes)
    same = audit(make[kind](before), make[kind](before))
    assert not any("still lists" in note for note in same.notes)


def test_what_the_schema_forbids_to_release():
    schema = Schema.guess(SIX).override(tax={"role": "identifier"}, net={"role": "unit"})
    problems = audit(SIX, SIX, schema=schema).problems
    assert [p.split(" has")[0] for p in problems] == ["Column 'net'", "Column 'tax'"]


def test_infinity_is_a_problem_only_if_it_is_new():
    table = pd.DataFrame({"x": [1.0, 2.0]})
    bad = pd.DataFrame({"x": [1.0, np.inf]})
    assert "in the released table only" in audit(table, bad).problems[0]
    assert audit(bad, bad).passed
    assert audit(bad, bad).columns[0].kind == "categories"


def test_long_numbers_are_compared_as_they_are():
    """Two numbers that one float64 would stand for are told apart."""
    table = pd.DataFrame({"n": [2**60, 2**60 + 1], "x": [1, 2]})
    result = audit(table, table, blocks=[["n"]], k=2)
    assert result.blocks[0].k == 1
    assert any("compared as categories" in note for note in result.notes)


# Confidential


def test_nothing_public_tells_a_single_record():
    """The richest, the oldest and the one who broke a rule are not to be found in the account."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {"age": [123, *rng.integers(20, 90, 29)], "income": [7654321.5, *rng.normal(size=29)]}
    )
    released = table.assign(age=50, income=table["income"].mean())
    rules = ["age <= 120", "observed(income)", "income <= max(income)"]
    result = audit(table, released, k=3, rules=rules)
    text = public_text(result)
    assert "7654321.5" not in text
    assert "123" not in text.replace(f"{table['age'].mean()}", "")
    assert result.rules[0].worst_before == 3.0
    confidential = result.to_dict(confidential=True)
    assert confidential["columns"][1]["high_before"] == 7654321.5
    assert confidential["rules"][0]["worst_before"] == 3.0
    assert result.column_frame(confidential=True)["high_before"].tolist() == [123, 7654321.5]


def test_a_total_that_differs_in_one_cell_is_withheld():
    """Or the released table and the original total would give the cell back."""
    released = SIX.assign(net=[10, 12, 14, 20, 25, 31])
    result = audit(SIX, released)
    net = line(result, "net")
    assert net.few
    told = net.to_dict()
    assert told["total_before"] is told["mean_before"] is told["total_change"] is None
    assert net.to_dict(confidential=True)["total_before"] == 111
    assert "withheld" in str(result)
    assert "18.5" not in public_text(result)
    assert not line(audit(SIX, MASKED), "net").few
    assert line(audit(SIX, MASKED, k=5), "net").few  # four cells differ


def test_the_account_and_the_numbers():
    result = audit(SIX, MASKED, k=3, strata="sex", rules=Rules(["tax <= net", "net <= 20"]))
    text = str(result)
    assert text.startswith("Audit of 6 records in 3 columns, of which 2 changed: 1 problem.")
    assert text.index("R2") < text.index("R1  ")  # what is broken comes first
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()
    assert result.to_dict()["blocks"][0]["by_stratum"][1] == {
        "records": 3, "combinations": 1, "smallest": 3, "below": 0,
    }  # fmt: skip
    assert result.column_frame()["mean_after"].tolist()[1:] == [18.5, 3.5]
    assert audit(SIX, MASKED).rule_frame().empty
    with pytest.raises(AttributeError):
        result.k = 2  # type: ignore[misc]


def test_long_audits_are_cut_in_words_only():
    wide = pd.DataFrame({f"c{j}": [1, 2, 3] for j in range(30)})
    result = audit(wide, wide.assign(**dict.fromkeys(wide, 2)), k=3)
    assert "... and 10 more" in str(result)
    assert len(result.column_frame()) == 30


# The four kinds of frame, and maskers


def test_every_kind_of_frame_gives_the_same_audit():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.normal(size=(40, 3)).round(1), columns=["a", "b", "c"])
    table.loc[:4, "b"] = np.nan
    released = table.assign(a=table["a"].mean(), c=table["c"].round())
    wishes: dict[str, Any] = {"k": 4, "rules": ["a <= 2", "c <= a"], "strata": [1, 2] * 20}
    whole = audit(table, released, **wishes).to_dict(confidential=True)
    for kind in (pl.from_pandas, pa.Table.from_pandas):
        same = audit(kind(table), kind(released), **wishes).to_dict(confidential=True)
        assert same == whole
    numbered = wishes | {"rules": ["col(0) <= 2", "col(2) <= col(0)"]}
    array = audit(table.to_numpy(), released.to_numpy(), **numbered).to_dict(confidential=True)
    named = dict(enumerate(table.columns))
    for each in array["columns"]:
        each["column"] = named[each["column"]]
    assert array["columns"] == whole["columns"]
    assert array["blocks"][0]["by_stratum"] == whole["blocks"][0]["by_stratum"]
    assert [r["breaks_after"] for r in array["rules"]] == [
        r["breaks_after"] for r in whole["rules"]
    ]


def test_texts_categories_dates_and_decimals_in_every_frame():
    table = pd.DataFrame(
        {
            "t": ["x", None, "x", "y"],
            "c": pd.Categorical(["u", "v", None, "u"]),
            "d": pd.to_datetime(["2024-01-01", "2024-01-02", None, "2024-01-01"]),
            "b": [True, False, True, True],
            "m": pd.array([Decimal("1.10"), None, Decimal("1.10"), Decimal("2.00")],
                          dtype=pd.ArrowDtype(pa.decimal128(6, 2))),
        }
    )  # fmt: skip
    released = table.iloc[[0, 1, 2, 0]].reset_index(drop=True)
    for kind in (lambda frame: frame, pl.from_pandas, pa.Table.from_pandas):
        result = audit(kind(table), kind(released), k=2, blocks=[[n] for n in table.columns])
        assert [each.changed for each in result.columns] == [1, 0, 0, 0, 1]
        assert [block.smallest[0] for block in result.blocks] == [1, 1, 1, 1, 1]
        assert [block.combinations[0] for block in result.blocks] == [2, 3, 3, 2, 2]
        assert [each.kind for each in result.columns] == [*["categories"] * 4, "numbers"]
        assert result.joint is not None
        assert result.joint.combinations == (3,)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_microaggregation_passes(k):
    rng = np.random.default_rng(k)
    table = pd.DataFrame({"g": rng.integers(0, 3, 90), "x": rng.normal(size=90),
                          "y": rng.integers(0, 50, 90)})  # fmt: skip
    released = Microaggregation(k, strata="g").fit_transform(table)
    result = audit(table, released, k=k, strata="g", rules=["0 <= y <= 50"])
    assert result.passed
    assert result.joint is not None
    assert result.joint.k >= k


@pytest.mark.parametrize("column", ["x", "y"])
def test_one_cell_tampered_with_fails(column):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "y": rng.integers(0, 50, 60)})
    released = Microaggregation(5).fit_transform(table)
    assert audit(table, released, k=5).passed
    for row in (0, 31, 59):
        spoiled = released.copy()
        spoiled.loc[row, column] += 1
        result = audit(table, spoiled, k=5)
        assert not result.passed
        assert result.blocks[0].k in (1, 4)


def test_public_tables(census):
    """Blocks of four columns, masked apart: k within each, and not over all of them."""
    masker = Microaggregation(3, grouping="mdav", blocks=4)
    with pytest.warns(SmallJointGroupsWarning):
        masked = masker.fit_transform(census)
    blocks = [list(range(start, min(start + 4, 13))) for start in range(0, 13, 4)]
    result = audit(census, masked, k=3, blocks=blocks)
    assert result.passed
    assert result.joint is not None
    assert result.joint.k == masker.joint_k_ < 3


# An independent way to the same answer


def alike_counts(columns: list[list[Any]]) -> NDArray[np.int64]:
    """How many records look like each record: every pair, every cell, in plain Python."""

    def same(a: Any, b: Any) -> bool:
        if a is None or b is None:
            return a is b
        if isinstance(a, float) and isinstance(b, float) and (a != a or b != b):
            return a != a and b != b
        return bool(a == b)

    rows = list(zip(*columns))
    return np.array([sum(all(map(same, r, q)) for q in rows) for r in rows])


cells = st.one_of(st.none(), st.sampled_from([0.5, 1.0, 2.0, float("nan"), -9.0]))
texts = st.one_of(st.none(), st.sampled_from(["a", "b", "1"]))


@settings(max_examples=150)
@given(data=st.data(), n=st.integers(1, 12), k=st.integers(2, 4), coded=st.booleans())
def test_k_is_what_comparing_all_with_all_gives(data, n, k, coded):
    x = data.draw(st.lists(cells, min_size=n, max_size=n))
    t = data.draw(st.lists(texts, min_size=n, max_size=n))
    s = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    table = pl.DataFrame(
        {"x": x, "t": t, "s": s}, schema={"x": pl.Float64, "t": pl.String, "s": pl.Int64}
    )
    schema = Schema(
        {"x": {"kind": "continuous", "missing": (-9,) if coded else ()}, "t": {"kind": "nominal"},
         "s": {"kind": "nominal"}}
    )  # fmt: skip
    result = audit(table, table, k=k, blocks=[["x"], ["t"]], strata="s", schema=schema)
    order = [name.removeprefix("s=") for name in result.strata]
    for block, columns in [*zip(result.blocks, ([x], [t])), (result.joint, [x, t])]:
        assert block is not None
        counts = alike_counts([*columns, s])
        for place, stratum in enumerate(order):
            there = counts[np.array(s) == int(stratum)]
            assert block.records[place] == len(there)
            assert block.smallest[place] == there.min()
            assert block.combinations[place] == round(sum(1 / there))
            assert block.below is not None
            assert block.below[place] == (there < k).sum()
    broken = any(block.n_below for block in result.blocks)
    assert result.passed == (not broken)


@settings(max_examples=60)
@given(
    before=st.lists(cells, min_size=5, max_size=5),
    after=st.lists(cells, min_size=5, max_size=5),
)
def test_what_changed_is_what_comparing_cells_gives(before, after):
    tables = [pl.DataFrame({"x": v}, schema={"x": pl.Float64}) for v in (before, after)]
    (x,) = audit(*tables).columns
    same = [alike_counts([[a, b]])[0] == 2 for a, b in zip(before, after)]
    assert x.changed == 5 - sum(same)
    known = [value for value in after if value is not None and value == value]
    assert x.missing_after == 5 - len(known)
    assert x.total_after == pytest.approx(sum(known))


# Bad input


def test_tables_that_cannot_be_compared():
    with pytest.raises(IncomparableError, match="6 records and the masked table 5"):
        audit(SIX, SIX.head(5))
    with pytest.raises(IncomparableError, match="only in the original: 'tax'"):
        audit(SIX, SIX.drop(columns="tax"))
    with pytest.raises(IncomparableError, match="only in the masked table: 'new'"):
        audit(SIX, SIX.assign(new=1))
    lists = pd.DataFrame({"x": [[1], [2]]})
    with pytest.raises(IncomparableError, match="'x'"):
        audit(lists, lists)


@pytest.mark.parametrize(
    ("wishes", "error", "said"),
    [
        ({"k": 2.5}, GroupSizeError, "whole number"),
        ({"k": True}, GroupSizeError, "whole number"),
        ({"k": 1}, GroupSizeError, "protects nobody"),
        ({"tolerance": -1}, BadOptionError, "tolerance"),
        ({"tolerance": "0"}, BadOptionError, "tolerance"),
        ({"schema": {"net": 1}}, BadOptionError, "tessella.Schema"),
        ({"schema": Schema({"net": {"kind": "integer"}})}, BadTableError, "says nothing about"),
        ({"blocks": [["nett"]]}, UnknownColumnError, "Did you mean 'net'"),
        ({"blocks": ["net"]}, BadOptionError, "list of lists"),
        ({"blocks": [["net"], ["net"]]}, BadTableError, "more than once"),
        ({"blocks": [["net"], []]}, BadTableError, "empty"),
        ({"blocks": []}, BadTableError, "empty"),
        ({"strata": "sexx"}, UnknownColumnError, "Did you mean 'sex'"),
        ({"strata": ["sex", "towns"]}, UnknownColumnError, "towns"),
        ({"strata": ["sex", "sex"]}, BadTableError, "more than once"),
        ({"strata": [["sex"]]}, UnknownColumnError, "strata"),
        ({"strata": []}, BadTableError, "empty"),
        ({"strata": np.zeros(4)}, BadTableError, "one value for each of the 6 records"),
        ({"rules": 5}, BadOptionError, "list of texts"),
        ({"rules": "net = 5"}, RuleSyntaxError, "=="),
        ({"rules": "nett > 5"}, RuleTableError, "Did you mean 'net'"),
    ],
)
def test_bad_wishes(wishes, error, said):
    with pytest.raises(error, match=said):
        audit(SIX, MASKED, **wishes)


def test_bad_weights():
    two = {
        "net": {"kind": "integer", "role": "weight"},
        "tax": {"kind": "integer", "role": "weight"},
    }
    with pytest.raises(BadTableError, match="several weights"):
        audit(SIX, SIX, schema=Schema({"sex": {"kind": "nominal"}, **two}))
    spoiled = SIX.assign(net=-1)
    one = Schema.guess(SIX).override(net={"role": "weight"})
    with pytest.raises(BadTableError, match="positive numbers; 6 of 6"):
        audit(spoiled, SIX, schema=one)


def test_not_a_table():
    with pytest.raises(BadTableError, match="pandas or polars"):
        audit([1, 2], SIX)
