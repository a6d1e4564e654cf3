"""The same columns as every kind of table."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from tessella.datasets import load_expenditure, make_business_survey, make_clusters
from tessella.exceptions import MissingPackageError, UnknownOptionError

FRAMES = ["pandas", "polars", "arrow", "numpy"]


def as_pandas(table):
    if isinstance(table, np.ndarray):
        return pd.DataFrame(table)
    return table if isinstance(table, pd.DataFrame) else table.to_pandas()


@pytest.mark.parametrize("frame", FRAMES)
def test_every_frame_holds_the_same_values(frame):
    wanted = make_business_survey(200, random_state=0, missing=0.1)
    table = as_pandas(make_business_survey(200, random_state=0, missing=0.1, frame=frame))
    assert list(table.columns) == list(wanted.columns)
    for name in wanted:
        if wanted[name].dtype == "category":
            np.testing.assert_array_equal(table[name].astype(str), wanted[name].astype(str))
        else:
            got, true = (
                column.astype("Float64").astype(float) for column in (table[name], wanted[name])
            )
            np.testing.assert_array_equal(got, true)


def test_frames_keep_whole_numbers_and_categories():
    options = {"n": 50, "random_state": 0, "missing": 0.2}
    pl = pytest.importorskip("polars")
    schema = make_business_survey(frame="polars", **options).schema
    assert schema["turnover"] == pl.Int64
    assert schema["branch"] == pl.Categorical
    pa = pytest.importorskip("pyarrow")
    schema = make_business_survey(frame="arrow", **options).schema
    assert schema.field("turnover").type == pa.int64()
    assert pa.types.is_dictionary(schema.field("branch").type)
    table = make_business_survey(frame="numpy", **options)
    assert table.dtype.names[0] == "firm"
    assert table["firm"].dtype == np.int64
    assert table["branch"].dtype.kind == "U"
    assert np.isnan(table["turnover"]).any()


def test_numbers_alone_are_a_plain_array():
    X = make_clusters(40, d=3, frame="numpy", random_state=0)
    assert X.shape == (40, 3)
    assert X.dtype == np.float64
    assert load_expenditure(frame="numpy").shape == (12, 3)


def test_an_unknown_frame_is_named_with_the_choices():
    with pytest.raises(UnknownOptionError, match=r"frame='excel'.*'pandas'"):
        make_clusters(10, frame="excel")


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingPackageError, match=r'tessella\[polars\].*pip install "polars>=1'):
        make_clusters(10, frame="polars")
