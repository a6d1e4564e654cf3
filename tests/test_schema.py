"""Schemas: careful guesses that say why, and overrides that stick."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import BadTableError, UnknownColumnError, UnknownOptionError
from tessella.frame import Table
from tessella.schema import Column, Schema

N = 20


def guess(values: Any, name: Any = "x") -> Column:
    return Schema.guess(pd.DataFrame({name: values}))[name]


@pytest.mark.parametrize(
    ("values", "kind", "word"),
    [
        (np.linspace(0, 1, N), "continuous", "numbers"),
        (np.arange(N) * 3, "integer", "whole numbers"),
        ([1.0, 2.0, np.nan] * 5, "integer", "whole numbers stored with decimals"),
        (["a", "b"] * 10, "nominal", "text"),
        ([True, False] * 10, "nominal", "yes or no"),
        (pd.Categorical(["a", "b"] * 10), "nominal", "categories"),
        (pd.Categorical(["a", "b"] * 10, ordered=True), "ordinal", "ordered categories"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"] * 10), "ordinal", "dates"),
        ([np.nan] * N, "continuous", "no value at all"),
        ([7] * N, "integer", "one value only"),
        ([1, 2] * 10, "integer", "if they are codes, the kind is nominal"),
        ([-9, 1, 2, 45] * 5, "integer", "-9 taken as missing"),
        ([1.5, np.inf] * 10, "continuous", "holds infinity"),
    ],
)
def test_kinds(values: Any, kind: str, word: str) -> None:
    column = guess(values)
    assert (column.kind, column.role) == (kind, "quasi-identifier")
    assert word in column.why
    assert "to be masked" in column.why
    assert column.guessed


@pytest.mark.parametrize(
    ("name", "values", "role", "word"),
    [
        ("x", [f"person {i}" for i in range(N)], "identifier", "all 20 values are distinct text"),
        ("x", [f"p{i}" for i in range(N - 1)] + ["p0"], "identifier", "19 of 20 texts"),
        ("x", range(100, 100 + N), "identifier", "one number for each record"),
        ("x", [*range(10, 30, 2), *range(11, 31, 2)], "identifier", "one number for each record"),
        ("x", np.array([2**60, 5] * 10), "identifier", "more than 15 digits"),
        ("id", [3, 3, 1, 2] * 5, "identifier", "named like an identifier"),
        ("personID", [3, 3, 1, 2] * 5, "identifier", "named"),
        ("UTILITYID", [3, 3, 1, 2] * 5, "identifier", "named"),
        ("UTILNAME", ["a", "b"] * 10, "identifier", "named"),
        ("e-mail", [None, "a@b"] * 10, "identifier", "named"),
        ("email", ["c@b", "a@b"] * 10, "identifier", "named"),
        ("hhid", [1, 1, 2, 2] * 5, "unit", "household number"),
        ("household_id", [1, 1, 2, 2] * 5, "unit", "household number"),
        ("HH", [1, 1, 2, 2] * 5, "unit", "household number"),
        ("household_income", [1, 1, 2, 2] * 5, "quasi-identifier", "whole"),
        ("wgt", [1.5, 2.5] * 10, "weight", "confirm the role"),
        ("AFNLWGT", [150, 250] * 10, "weight", "released as it is"),
        ("survey_weight", [1.5, 2.5] * 10, "weight", "sampling weight"),
        ("weight", [1.5, -2.5] * 10, "quasi-identifier", "numbers"),
        ("weight", [1.5, 2.5, np.nan, 3] * 5, "quasi-identifier", "numbers"),
        ("birth_weight", [1.5, 2.5] * 10, "quasi-identifier", "numbers"),
        ("paid", [1.5, 2.5] * 10, "quasi-identifier", "numbers"),
        (0, [1.5, 2.5] * 10, "quasi-identifier", "numbers"),
    ],
)
def test_roles(name: Any, values: Any, role: str, word: str) -> None:
    column = guess(values, name)
    assert column.role == role
    assert word in column.why


@given(
    st.text(max_size=12),
    st.lists(st.integers() | st.none(), min_size=1, max_size=8)
    | st.lists(st.floats() | st.none(), min_size=1, max_size=8)
    | st.lists(st.text() | st.none(), min_size=1, max_size=8),
)
def test_a_guess_never_calls_a_column_harmless(name: str, values: list[Any]) -> None:
    column = guess(values, name)
    assert column.role in ("identifier", "unit", "weight", "quasi-identifier")
    assert column.guessed
    assert column.why


def test_libraries_agree() -> None:
    columns = {"id": [1, 2, 3], "x": [0.5, None, 1.5], "town": ["a", "a", "b"], "b": [True] * 3}
    guesses = [Schema.guess(make(columns)) for make in (pd.DataFrame, pl.DataFrame, pa.table)]
    assert guesses[1] == guesses[2]
    assert [(c.name, c.kind, c.role) for c in guesses[0]] == [
        (c.name, c.kind, c.role) for c in guesses[1]
    ]
    numpy = Schema.guess(np.array([[1.5, 2.0], [1.0, 3.0]]))
    assert [(c.name, c.kind) for c in numpy] == [(0, "continuous"), (1, "integer")]
    assert Schema.guess(Table.read(pd.DataFrame(columns))) == guesses[0]
    assert guess([[1], [2]]).kind == "nominal"  # a column of lists is no reason to fail


def test_overrides() -> None:
    schema = Schema.guess(pd.DataFrame({"wgt": [1.5, 2.5], "income": [10, 20], 0: [1, 2]}))
    changed = schema.override(
        {0: {"kind": "nominal", "labels": {1: "yes"}}},
        income={"role": "confidential", "missing": -9},
    )
    assert changed["income"].role == "confidential"
    assert changed["income"].missing == (-9,)
    assert changed["income"].kind == "integer"
    assert not changed["income"].guessed
    assert changed["income"].why == "given"
    assert changed[0].labels == {1: "yes"}
    assert changed[0].guessed  # its role still is
    assert schema["income"].role == "quasi-identifier"
    assert not schema.override(wgt={"role": "weight"})["wgt"].guessed
    assert schema.override(wgt={"missing": [-1]})["wgt"].why == schema["wgt"].why
    assert changed.names("confidential", "weight") == ["wgt", "income"]
    assert len(changed) == 3


def test_plain_dicts_and_back() -> None:
    schema = Schema.guess(pd.DataFrame({"wgt": [1.5, 2.5], "sex": [1, 2]})).override(
        sex={"kind": "nominal", "missing": [-8, -9], "labels": {1: "f", 2: "m"}}
    )
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert again["sex"].labels == {1: "f", 2: "m"}
    assert Schema(schema.columns) == schema
    assert Schema({"sex": schema["sex"]})["sex"] == schema["sex"]


def test_it_prints_as_a_table() -> None:
    schema = Schema(
        {"income": {"kind": "continuous"}, "id": {"kind": "integer", "role": "identifier"}}
    )
    assert str(schema).splitlines() == [
        "column  kind        role              why",
        "income  continuous  quasi-identifier  given",
        "id      integer     identifier        given",
    ]
    assert repr(schema) == str(schema)


def test_a_schema_must_fit_its_table() -> None:
    table = pd.DataFrame({"income": [1], "age": [2]})
    Schema.guess(table).check(table)
    with pytest.raises(UnknownColumnError, match=r"schema names a column 'incme'.*'income'"):
        Schema({"incme": {"kind": "integer"}, "age": {"kind": "integer"}}).check(table)
    with pytest.raises(BadTableError, match=r"says nothing about.*'age'"):
        Schema({"income": {"kind": "integer"}}).check(table)


@pytest.mark.parametrize(
    ("known", "error", "words"),
    [
        ({"kind": "number"}, UnknownOptionError, "kind of column 'x': 'number'.*'continuous'"),
        ({"kind": "integer", "role": "key"}, UnknownOptionError, "role.*'quasi-identifier'"),
        ({"role": "identifier"}, BadTableError, "no kind"),
        ({"kind": "integer", "rôle": "x"}, UnknownOptionError, "property of column 'x'"),
        ("integer", BadTableError, "give a mapping"),
    ],
)
def test_bad_descriptions(known: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Schema({"x": known})


def test_bad_overrides() -> None:
    schema = Schema({"income": {"kind": "integer"}})
    with pytest.raises(UnknownColumnError, match=r"schema names.*'incme'.*'income'"):
        schema.override(incme={"kind": "nominal"})
    with pytest.raises(UnknownOptionError, match="property"):
        schema.override(income={"knd": "nominal"})
    with pytest.raises(BadTableError, match="give a mapping"):
        schema.override(income="nominal")  # type: ignore[arg-type]
    with pytest.raises(UnknownColumnError, match="'income'"):
        schema["incom"]


# As sdcMicro states it


def test_keys_by_hand():
    table = pd.DataFrame(
        {"sex": [1, 2], "age": pd.Categorical(["a", "b"], ordered=True), "w": [1.5, 2.5],
         "hh": [1, 1], "x": [1.0, 2.5], "ill": ["y", "n"], "name": ["A", "B"], "z": [1, 2]}
    )  # fmt: skip
    schema = Schema.from_keys(
        table, keys=["sex", "age"], numeric_keys=["x"], weight="w", unit="hh",
        confidential="ill", identifiers=["name"], others="untouched",
    )  # fmt: skip
    assert schema.names("quasi-identifier") == ["sex", "age", "x"]
    assert (schema["sex"].kind, schema["age"].kind, schema["x"].kind) == (
        "nominal", "ordinal", "continuous",
    )  # fmt: skip
    assert schema.names("weight", "unit", "confidential", "identifier", "untouched") == [
        "w", "hh", "ill", "name", "z",
    ]  # fmt: skip
    assert not any(column.guessed for column in schema)


def test_keys_that_are_wrong():
    table = pd.DataFrame({"a": [1, 2], "b": [1, 2]})
    with pytest.raises(BadTableError, match="These columns have no role: 'b'"):
        Schema.from_keys(table, keys=["a"])
    with pytest.raises(BadTableError, match="named twice"):
        Schema.from_keys(table, keys=["a"], confidential=["a"], others="untouched")
    with pytest.raises(UnknownColumnError):
        Schema.from_keys(table, keys=["c"], others="untouched")
    with pytest.raises(UnknownOptionError):
        Schema.from_keys(table, keys=["a"], others="whatever")
