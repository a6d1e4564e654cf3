"""Tables that are not in memory: the same kind back, the same promises, the same bytes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tessella import Schema, datasets, protect
from tessella.exceptions import RefusedError
from tessella.grouping.search import MIX, REFINE
from tessella.release import large, protecting

SMALL = 600
ONE = "500MB"  # memory for one process


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """A search of two rounds."""
    monkeypatch.setattr(large, "large_rounds", lambda _: [(20.0, MIX), (20.0, REFINE)])


@pytest.fixture(scope="module")
def firms():
    table, rules = datasets.make_business_survey(
        1_000, random_state=3, inconsistent=0.02, return_rules=True, frame="arrow"
    )
    return table.drop_columns(["firm"]), rules


@pytest.fixture(scope="module")
def few(firms):
    """A table of one cell, how it is protected, and what this gives in memory."""
    table, rules = firms
    table = table.slice(0, 120)
    options = {"k": 4, "rules": rules, "random_state": 1, "options": {"effort": "quick"}}
    return table, options, protect(table, **options).table.to_pandas()


def lazily(kind, table, tmp_path):
    """Return a table as one that is not in memory."""
    if kind == "polars":
        return pl.from_arrow(table).lazy()
    if kind == "path":
        pq.write_table(table, tmp_path / "table.parquet", row_group_size=400)
        return tmp_path / "table.parquet"
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.connect().from_arrow(table)
    ibis = pytest.importorskip("ibis")
    return ibis.polars.connect().create_table("firms", table)


def as_pandas(kind, table):
    if kind == "polars":
        assert isinstance(table, pl.LazyFrame)
        return table.collect().to_pandas()
    if kind == "path":
        return pd.read_parquet(table)
    if kind == "duckdb":
        return table.df()
    return table.to_pyarrow().to_pandas()


KINDS = ("polars", "path", "duckdb", "ibis")
pytestmark = pytest.mark.filterwarnings("ignore:.*future.infer_string")  # of Ibis


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_kind_back_and_every_promise_kept(firms, kind, tmp_path, monkeypatch):
    """Counted by plain pandas in what is given back."""
    monkeypatch.setattr(protecting, "LARGE", SMALL)
    table, rules = firms
    given = lazily(kind, table, tmp_path)
    release = protect(given, k=4, rules=rules, random_state=1, memory=ONE)
    if kind != "path":
        assert type(release.table).__name__ == type(given).__name__
    found = as_pandas(kind, release.table)
    assert list(found.columns) == table.column_names
    assert len(found) == table.num_rows
    assert found.groupby(list(found.columns), observed=True).size().min() >= 4
    assert (found.wages + found.materials + found.other_costs == found.costs).all()
    assert (found.turnover - found.costs == found.profit).all()
    assert release.audit.passed
    assert release.inconsistent == 20
    original = table.to_pandas()  # records are in the order of the original
    squares = ((original.employees - found.employees) ** 2).mean() / original.employees.var(ddof=0)
    assert release.column_loss["employees"] == pytest.approx(100 * squares, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_fits_in_one_cell_has_the_same_values_as_in_memory(few, kind, tmp_path):
    table, options, expected = few
    release = protect(lazily(kind, table, tmp_path), **options, memory=ONE)
    found = as_pandas(kind, release.table)
    for name in expected.columns:
        assert found[name].tolist() == expected[name].tolist()


def test_all_kinds_give_the_same_values_near_those_in_memory(firms, tmp_path, monkeypatch):
    monkeypatch.setattr(protecting, "LARGE", SMALL)
    table, rules = firms
    found = []
    memory = protect(table, k=4, rules=rules, random_state=1, options={"effort": "quick"})
    for kind in ("polars", "path"):
        release = protect(
            lazily(kind, table, tmp_path), k=4, rules=rules, random_state=1, memory=ONE
        )
        found.append(as_pandas(kind, release.table))
        assert release.loss == pytest.approx(memory.loss, rel=0.1)
    for name in table.column_names:
        assert found[0][name].tolist() == found[1][name].tolist()


def test_missing_cells_strata_weights_and_ordered_categories(tmp_path, monkeypatch):
    monkeypatch.setattr(protecting, "LARGE", SMALL)
    random = np.random.default_rng(0)
    n = 4_000
    frame = pd.DataFrame({
        "age": random.integers(18, 90, n).astype(float),
        "income": random.lognormal(10, 0.5, n).round(2),
        "school": pd.Categorical(
            random.choice(["none", "school", "degree"], n), ["none", "school", "degree"],
            ordered=True,
        ),
        "sex": pd.Categorical(random.choice(["f", "m"], n)),
        "weight": random.uniform(1, 3, n),
    })  # fmt: skip
    frame.loc[random.random(n) < 0.1, "income"] = np.nan
    table = pa.Table.from_pandas(frame, preserve_index=False)
    release = protect(
        lazily("path", table, tmp_path),
        k=5,
        strata="sex",
        weights="weight",
        random_state=2,
        memory=ONE,
    )
    found = pd.read_parquet(release.table)
    assert found.income.isna().tolist() == frame.income.isna().tolist()
    assert found.sex.tolist() == frame.sex.tolist()
    keys = ["age", "income", "school", "sex"]
    assert found.groupby(keys, observed=True, dropna=False).size().min() >= 5
    (schooling,) = {pq.read_schema(path).field("school").type for path in release.table.iterdir()}
    assert schooling.ordered


def test_units_are_counted_in_pieces_too(tmp_path, monkeypatch):
    monkeypatch.setattr(protecting, "LARGE", SMALL)
    random = np.random.default_rng(0)
    table = pa.table({
        "who": [f"u{i}" for i in random.integers(0, 900, 4_000)],
        "a": random.standard_normal(4_000), "b": random.standard_normal(4_000),
    })  # fmt: skip
    release = protect(lazily("path", table, tmp_path), k=4, unit="who", random_state=2, memory=ONE)
    found = pd.read_parquet(release.table)
    assert list(found.columns) == ["a", "b"]
    found["who"] = table.column("who").to_pandas()
    assert found.groupby(["a", "b"]).who.nunique().min() >= 4
    assert release.audit.unit == "who"


@pytest.mark.parametrize("values", [4_000, 500])
def test_columns_that_tell_records_apart_are_counted_in_all_of_them(tmp_path, monkeypatch, values):
    """In a sample of 300 most of 500 values stand alone; in 4,000 records none does."""
    monkeypatch.setattr(protecting, "LARGE", SMALL)
    monkeypatch.setattr("tessella.release.large.SAMPLED", 300)
    random = np.random.default_rng(0)
    table = pa.table({
        "code": [f"c{i % values:05d}" for i in random.permutation(4_000)],
        "a": random.standard_normal(4_000), "b": random.standard_normal(4_000),
    })  # fmt: skip
    schema = Schema.guess(table).override(code={"role": "untouched", "kind": "nominal"})
    given = lazily("path", table, tmp_path)
    if values == 4_000:
        with pytest.raises(RefusedError, match="code"):
            protect(given, k=4, schema=schema, random_state=2, memory=ONE)
        return
    release = protect(given, k=4, schema=schema, random_state=2, memory=ONE)
    assert pd.read_parquet(release.table).code.tolist() == table.column("code").to_pylist()
