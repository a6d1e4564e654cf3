"""How two tables are read: kinds, columns, order, missing cells, weights, schemas, bad input."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import Schema
from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    UnknownColumnError,
    UnknownOptionError,
    UnpairedError,
)
from tessella.loss import (
    contingency_loss,
    estimate_loss,
    generic_loss,
    lost_cells,
    measure,
    sse_sst,
)


@pytest.fixture
def original():
    return pd.DataFrame(
        {
            "pay": [10.0, 20, 40, 90],
            "age": [31, 44, 58, 62],
            "town": ["Reus", "Valls", "Reus", "Salou"],
            "owner": [True, False, False, True],
        }
    )


@pytest.fixture
def masked(original):
    return original.assign(pay=[15.0, 15, 65, 65], town=["Reus", "Reus", "Reus", "Valls"])


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "mixed"])
def test_every_kind_of_frame_gives_the_same_losses(original, masked, kind):
    into = {"polars": (pl.from_pandas,) * 2, "mixed": (pl.from_pandas, pa.Table.from_pandas)}
    first, second = into.get(kind, (pa.Table.from_pandas,) * 2)
    expected = measure(original, masked)
    found = measure(first(original), second(masked))
    assert found.to_dict() == expected.to_dict()
    assert found.numbers == ("pay", "age")
    assert found.categories == ("town", "owner")


def test_columns_are_matched_by_name(original, masked):
    shuffled = masked[["town", "age", "owner", "pay"]]
    assert measure(original, shuffled).to_dict() == measure(original, masked).to_dict()


def test_some_columns(original, masked):
    assert measure(original, masked, columns=["pay"]).numbers == ("pay",)
    assert list(sse_sst(original, masked, columns="pay").by_column) == ["pay"]
    with pytest.raises(UnknownColumnError, match="Did you mean 'pay'"):
        measure(original, masked, columns=["pai"])
    with pytest.raises(BadTableError, match="twice"):
        measure(original, masked, columns=["pay", "pay"])
    with pytest.raises(BadTableError, match="no column to compare"):
        measure(original, masked, columns=[])


def test_different_shapes(original, masked):
    with pytest.raises(UnpairedError, match="4 records and the masked table 3"):
        measure(original, masked.head(3))
    with pytest.raises(UnpairedError, match="only in the original: 'pay'"):
        measure(original, masked.drop(columns="pay"))
    with pytest.raises(UnpairedError, match="only in the masked table: 'extra'"):
        measure(original, masked.assign(extra=1))
    with pytest.raises(UnpairedError, match="only in the original: 'pay'"):
        measure(original, masked.drop(columns="pay"), columns=["pay"])


def test_another_order_of_rows(original, masked):
    with pytest.raises(UnpairedError, match="same labels in another order"):
        measure(original, masked.iloc[::-1])
    with pytest.raises(UnpairedError, match="reset_index"):
        measure(original, masked.set_index(pd.Index([7, 8, 9, 10])))


def test_numbers_that_became_words(original, masked):
    binned = masked.assign(age=["30-45", "30-45", "46-65", "46-65"])
    with pytest.raises(UnpairedError, match="'age' holds numbers"):
        measure(original, binned)
    schema = Schema.guess(original).override(age={"kind": "ordinal"})
    found = contingency_loss(original, binned, columns=["age"], schema=schema)
    assert found.value == 1.0  # no category in common


def test_not_a_table(original):
    with pytest.raises(BadTableError, match="pandas or polars"):
        measure(original, [1, 2])
    with pytest.raises(BadOptionError, match="Give a tessella"):
        measure(original, original, schema={"pay": "number"})
    with pytest.raises(BadTableError, match="lists or objects"):
        measure(pd.DataFrame({"a": [[1], [2]]}), pd.DataFrame({"a": [[1], [2]]}))


# Missing cells


def test_missing_on_one_side_is_an_error(original, masked):
    masked.loc[1, "pay"] = np.nan
    with pytest.raises(UnpairedError, match="1 only in the masked table, 0 only in the original"):
        measure(original, masked)
    masked.loc[1, ["pay", "town"]] = [15.0, None]
    with pytest.raises(UnpairedError, match="'town'"):
        measure(original, masked)
    with pytest.raises(UnknownOptionError, match="skip"):
        measure(original, masked, on_unpaired="drop")


def test_skip_compares_what_both_know():
    x = np.array([[1.0, 1], [2, 2], [5, 3], [6, 4], [9, 5]])
    y = np.array([[1.5, 1], [1.5, 2], [5.5, 3], [5.5, 4], [np.nan, 6]])
    found = measure(x, y, on_unpaired="skip")
    assert found["sse_sst"].by_column == {0: pytest.approx(1 / 17), 1: pytest.approx(1 / 10)}
    assert found["lost_cells"].by_column == {0: pytest.approx(1 / 5), 1: 0.0}
    r = [np.corrcoef(t[:4].T)[0, 1] for t in (x, y)]
    assert found["correlations_absolute"].value == pytest.approx(abs(r[0] - r[1]))
    assert any("compared in 4 of 5" in note for note in found.notes)


def test_missing_in_both_is_left_out(original, masked):
    without = measure(original.drop(index=1), masked.drop(index=1), columns=["pay", "town"])
    for table in (original, masked):
        table.loc[1, "pay"] = np.nan
        table.loc[1, "town"] = None
    found = measure(original, masked, columns=["pay", "town"])
    for part in without:
        assert found[part.name].value == pytest.approx(part.value), part.name


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_pairwise_moments_against_pandas(seed):
    """pandas leaves out missing cells pair by pair as well."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 30, 4))
    x[rng.random(x.shape) < 0.2] = np.nan
    y[np.isnan(x)] = np.nan
    frames = [pd.DataFrame(t) for t in (x, y)]
    upper = np.triu_indices(4, 1)
    r = [t.corr().to_numpy()[upper] for t in frames]
    found = generic_loss(x, y, of="correlations", how="absolute")
    assert found.value == pytest.approx(np.abs(r[0] - r[1]).mean())
    diagonal = np.triu_indices(4)
    known = (~np.isnan(x)).astype(float)
    n = (known.T @ known)[diagonal]  # pandas has no other divisor than n - 1 where cells lack
    c = [t.cov().to_numpy()[diagonal] * (n - 1) / n for t in frames]
    found = generic_loss(x, y, of="covariances", how="square", standardise=False)
    assert found.value == pytest.approx(((c[0] - c[1]) ** 2).mean())


def test_no_record_knows_both_columns():
    x = np.array([[1.0, np.nan], [2, np.nan], [np.nan, 3], [np.nan, 5]])
    found = measure(x, x + 1)
    assert found["correlations_square"].value == 0.0
    assert all(np.isfinite(part.value) for part in found)


def test_nothing_known_in_a_column(original, masked):
    original["pay"] = np.nan
    found = measure(original, masked, on_unpaired="skip")
    assert "pay" not in found.numbers
    assert any("no cell that both tables know" in note for note in found.notes)


def test_missing_codes_of_a_schema():
    x = pd.DataFrame({"pay": [1, 2, 5, 6, -9], "job": ["a", "b", "?", "b", "a"]})
    y = pd.DataFrame({"pay": [1.5, 1.5, 5.5, 5.5, -9], "job": ["a", "a", "?", "b", "a"]})
    schema = Schema(
        {
            "pay": {"kind": "continuous", "missing": [-9]},
            "job": {"kind": "nominal", "missing": ["?"]},
        }
    )
    found = measure(x, y, schema=schema)
    assert found["sse_sst"].value == pytest.approx(1 / 17)
    assert any("'job' is compared in 4 of 5" in note for note in found.notes)


def test_lost_cells_by_hand():
    x = pd.DataFrame({"a": [1.0, 2, np.nan, 4], "b": ["u", "v", "w", None]})
    y = pd.DataFrame({"a": [1.0, np.nan, 3, 4], "b": ["u", None, None, None]})
    found = lost_cells(x, y)
    assert found.by_column == {"a": pytest.approx(1 / 3), "b": pytest.approx(2 / 3)}
    assert found.details["known in the masked table only"] == 1
    assert lost_cells(x, x).value == 0.0
    assert lost_cells(x, y, weights=[1, 2, 1, 1]).by_column["a"] == pytest.approx(2 / 4)


def test_cells_that_were_suppressed_before_masking_are_lost_by_hand():
    """A bug once met: the original was taken as it was after cells had been emptied."""
    read = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": ["u", "v", None, None], "c": [5.0, 6, 7, 8]})
    emptied = read.assign(a=[1.0, None, 3, 4], b=[None] * 4)
    masked = emptied.assign(a=[2.0, None, None, 4])
    found = measure(emptied, masked, on_unpaired="skip", as_read=read)
    assert found["lost_cells"].by_column == {"a": 2 / 4, "b": 1.0, "c": 0.0}
    found = measure(emptied, masked, on_unpaired="skip")
    assert found["lost_cells"].by_column == {"a": 1 / 3, "c": 0.0}


# Weights and roles


def test_weights_by_name_array_and_role(original, masked):
    for table in (original, masked):
        table["weight"] = [1.0, 2, 3, 4]
    by_name = measure(original, masked, weights="weight")
    assert by_name.numbers == ("pay", "age")
    columns = ["pay", "age", "town", "owner"]
    by_array = measure(original[columns], masked[columns], weights=[1, 2, 3, 4])
    schema = Schema.guess(original).override(weight={"role": "weight"})
    by_role = measure(original, masked, schema=schema)
    assert by_name.to_dict() == by_array.to_dict() == by_role.to_dict()
    assert by_name["sse_sst"].value != measure(original, masked)["sse_sst"].value


def test_identifiers_of_a_schema_are_left_out(original, masked):
    original["id"] = ["w", "x", "y", "z"]
    schema = Schema.guess(original).override(id={"role": "identifier"})
    assert "id" not in measure(original, masked, schema=schema).categories


@pytest.mark.parametrize("weights", [[1, 2, 3, 0], [1, 2, 3, np.nan], [1, 2, 3, -1]])
def test_bad_weights(original, masked, weights):
    with pytest.raises(BadTableError, match="positive numbers; 1 of 4"):
        measure(original, masked, weights=weights)


def test_weights_of_another_length_or_kind(original, masked):
    with pytest.raises(BadTableError, match="one value for each of the 4 records"):
        measure(original, masked, weights=[1, 2])
    with pytest.raises(BadTableError, match="numbers are needed"):
        measure(original, masked, weights=["a", "b", "c", "d"])
    with pytest.raises(UnknownColumnError, match="wieght"):
        measure(original, masked, weights="wieght")


HOSTILE = {
    "nothing": [None] * 30,
    "only_nan": np.full(30, np.nan),
    "infinite": np.where(np.arange(30) == 3, np.inf, 1.5),
    "beyond": 2**53 + 7 * np.arange(30),
    "near_largest": np.linspace(-1e149, 1e149, 30),
    "vanishing": np.arange(30) * 1e-200,
    "one_value": np.full(30, 4.0),
    "one_text": ["same"] * 30,
    "dates": pd.date_range("2001-01-31", periods=30),
    "durations": pd.to_timedelta(np.arange(30), unit="D"),
    "lists": [[1, 2]] * 30,
    "unique": [f"id {i}" for i in range(30)],
}


@pytest.mark.parametrize("spoilt", ["original", "masked", "both"])
@pytest.mark.parametrize("name", HOSTILE)
def test_an_odd_column_is_left_out_and_the_others_are_measured(name, spoilt):
    """Whatever a column holds, in either table: every measure of the others is what it was."""
    chance = np.random.default_rng(0)
    before = pd.DataFrame({"x": chance.lognormal(size=30), "town": list("abc") * 10})
    after = before.assign(x=before.x.round(1), town=list("aabbc") * 6)
    usual = chance.normal(size=30)
    odd = {
        side: table.assign(odd=HOSTILE[name] if spoilt in (side, "both") else usual)
        for side, table in (("original", before), ("masked", after))
    }
    found = measure(odd["original"], odd["masked"], on_unpaired="skip")
    alone = measure(before, after, on_unpaired="skip")
    assert found["sse_sst"].by_column["x"] == pytest.approx(alone["sse_sst"].by_column["x"])
    assert found["entropy"].by_column["town"] == alone["entropy"].by_column["town"]
    estimates = estimate_loss(odd["original"], odd["masked"], by=True, on_unpaired="skip")
    names = [one.name for one in estimates.estimates]
    assert "mean of x" in names
    assert "share of town = a" in names
    for result in (found, estimates):
        json.dumps(result.to_dict(), allow_nan=False)
        assert str(result)


def test_a_column_that_is_gone_is_among_the_lost_cells():
    before = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    found = measure(before, before.assign(y=np.nan), on_unpaired="skip")
    assert found["lost_cells"].by_column == {"x": 0.0, "y": 1.0}
    assert found.numbers == ("x",)


def test_a_table_of_nothing_that_can_be_compared_has_notes():
    nothing = pd.DataFrame({"x": [np.nan, np.nan], "y": [None, None]})
    found = measure(nothing, nothing, on_unpaired="skip")
    assert len(found) == 0
    assert len(found.notes) == 2
    with pytest.raises(BadTableError, match="no column to compare"):
        measure(nothing, nothing)
