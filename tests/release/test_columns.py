"""Columns of every dtype go through a study: kept as they are, masked, or refused in our words."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tessella import Schema, Study, make_plan, protect
from tessella.exceptions import BadTableError
from tessella.explore import Candidate, explore
from tessella.frame import View
from tessella.loss import measure
from tessella.reports import external_report, internal_report, summarise
from tessella.risk import assess
from tessella.rules import Rules

N = 24
X = np.random.default_rng(0).normal(50, 10, N)


@pytest.mark.parametrize(
    "values",
    [["a", "b"], ["a", "b", None], ["a", np.nan], ["a", pd.NA], ["a", 3], [True, False, None],
     ["a", None, np.nan], [Decimal("1.5"), Decimal("2.5")], [dt.date(2020, 1, 1)], [None]],
)  # fmt: skip
@pytest.mark.parametrize("index", [range(N), [7] * N])
def test_object_columns_stay_object_columns(values, index):
    # a bug once met: pandas 3 made `str` of texts that were put back, and the audit refused it
    column = pd.Series([values[i % len(values)] for i in range(N)], dtype=object)
    table = pd.DataFrame({"x": X, "g": column}).set_axis(index)
    released = protect(table, k=3, random_state=0).table
    assert released["g"].dtype == object
    assert released.index.equals(table.index)
    assert set(map(repr, released["g"])) <= set(map(repr, table["g"]))
    assert (released["g"].isna() == table["g"].isna()).all()


def test_an_object_column_whose_rare_values_are_gone_is_still_one():
    # "other" objects before, all of them texts after: the dtype is the same
    table = pd.DataFrame({"x": X, "g": pd.Series(["a"] * (N - 1) + [3], dtype=object)})
    released = protect(table, k=3, random_state=0).table
    assert set(released["g"]) == {"a"}


MISSING: dict[str, Any] = {
    "date": pd.Series([pd.NaT] * N, dtype="datetime64[ns]"),
    "duration": pd.Series([pd.NaT] * N, dtype="timedelta64[ns]"),
    "ordered": pd.Series(pd.Categorical([None] * N, categories=["a", "b"], ordered=True)),
    "category": pd.Series(pd.Categorical([None] * N, categories=["a", "b"])),
    "text": pd.Series([None] * N, dtype="str"),
    "object": pd.Series([None] * N, dtype=object),
    "float": pd.Series([np.nan] * N),
    "single": pd.Series([np.nan] * N, dtype="float32"),
    "integer": pd.Series([None] * N, dtype="Int64"),
    "boolean": pd.Series([None] * N, dtype="boolean"),
    "decimal": pd.Series([None] * N, dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
    "day": pd.Series([None] * N, dtype=pd.ArrowDtype(pa.date32())),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_column_without_any_value_goes_all_the_way(kind):
    # a bug once met: "Input X contains NaN" of scikit-learn for dates and ordered categories
    table = pd.DataFrame({"x": X, "y": X[::-1], "g": MISSING[kind]})
    study = Study(table, random_state=0).do("protect", k=3, grouping="mdav")
    release = study.release()
    assert release.table["g"].isna().all()
    assert release.table["g"].dtype == table["g"].dtype
    make_plan(Schema.guess(table), Rules(), k=3).explain()
    loss = measure(table, release.table)
    known = None if kind not in ("date", "duration", "day") else ["x", "y"]  # links no dates yet
    risk = assess(
        table, release.table, known=known, effort="quick", attacks=["k-anonymity", "gower"]
    )
    summary = summarise(study, release, loss=loss, risk=risk, pictures=True)
    assert "<html" in internal_report(summary)
    assert "<html" in external_report(summary)


def test_a_column_without_any_value_is_explored():
    table = pd.DataFrame({"x": X, "y": X[::-1], "g": MISSING["ordered"]})
    tried = [Candidate("protect", k=3, grouping="mdav")]
    found = explore(table, candidates=tried, attacks=["gower"], n_jobs=1, random_state=0)
    assert [point.tried for point in found] == [True]


@pytest.mark.parametrize(
    "make",
    [lambda t: t, pl.from_arrow, lambda t: t.to_pandas(types_mapper=pd.ArrowDtype)],
    ids=["pyarrow", "polars", "pandas"],
)
def test_decimals_that_do_not_fit_are_refused_in_our_words(make):
    # a bug once met: ArrowInvalid and InvalidOperationError
    table = make(pa.table({"x": X, "d": pa.array([99999] * N, pa.decimal128(5, 0))}))
    with pytest.raises(BadTableError, match=r"'d' .* outside of its dtype\. Convert it to a wider"):
        protect(table, k=3, rules="d + x >= 200000", fit="project", random_state=0)
    wide = make(pa.table({"x": X, "d": pa.array([99999] * N, pa.decimal128(6, 0))}))
    assert protect(wide, k=3, rules="d + x >= 200000", fit="project", random_state=0)


def test_decimals_are_read_as_the_nearest_floats():
    cents = [Decimal(n).scaleb(-2) for n in range(1, 2000)]
    table = pa.table({"d": pa.array(cents, pa.decimal128(9, 2))})
    for native in (table, pl.from_arrow(table), table.to_pandas(types_mapper=pd.ArrowDtype)):
        assert View(native).numbers("d").tolist() == [float(cent) for cent in cents]
