"""Slips: by hand, and against made-up surveys whose clean numbers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tessella.datasets import make_business_survey, make_households
from tessella.rules import Rules, Slip, correct_slips


def test_a_wrong_unit_is_found_in_the_column_that_has_it():
    """By hand: of profit == turnover - costs either side can be wrong; only one by 1,000."""
    table = pd.DataFrame({"turnover": [500, 900_000], "costs": [300, 600], "profit": [200, 300]})
    corrected, (slip,) = correct_slips(table, "profit == turnover - costs")
    assert slip == Slip(row=1, column="turnover", was=900_000.0, now=900.0)
    assert slip.what == "1,000 times too large"
    assert corrected["turnover"].tolist() == [500, 900]
    assert table["turnover"].tolist() == [500, 900_000]
    assert corrected.dtypes.equals(table.dtypes)


def test_the_least_change_is_taken_where_nothing_tells_which():
    """By hand: 7 is off; a sum of three has three candidates, b has the widest spread."""
    table = pd.DataFrame({"a": [1, 2, 3, 4], "b": [10, 2000, 30, 400], "c": [11, 2002, 33, 411]})
    corrected, (slip,) = correct_slips(table, "a + b == c\na <= 4")
    assert (slip.row, slip.what) == (3, "another number")
    assert slip.column in ("b", "c")
    assert (corrected["a"] + corrected["b"]).tolist() == corrected["c"].tolist()


def test_a_record_with_two_wrong_numbers_stays():
    """By hand: two equations without a common column are both broken."""
    table = pd.DataFrame({"a": [1, 1], "b": [1, 2], "c": [5, 5], "d": [5, 6]})
    corrected, slips = correct_slips(table, "a == b\nc == d")
    assert slips == ()
    pd.testing.assert_frame_equal(corrected, table)


def test_missing_cells_stay_missing():
    table = pd.DataFrame({"x": [1.0, np.nan, 30.0], "y": [2.0, 5.0, 4.0], "z": [3.0, 9.0, 7.0]})
    corrected, (slip,) = correct_slips(table, "x + y == z")
    assert (slip.row, slip.column, slip.now) == (2, "x", 3.0)
    assert corrected["x"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize("seed", range(5))
def test_slips_of_a_survey_become_what_they_were(seed):
    """The same seed gives the clean table: what is named is exact, and no clean cell changes."""
    clean, rules = make_business_survey(400, random_state=seed, return_rules=True)
    dirty = make_business_survey(400, random_state=seed, inconsistent=0.1)
    corrected, slips = correct_slips(dirty, rules)
    broken = set(Rules.of(rules).confront(dirty).breaking().tolist())
    assert {slip.row for slip in slips} <= broken
    assert len(slips) >= 0.9 * len(broken)
    named = [slip for slip in slips if slip.what != "another number"]
    assert len(named) >= 5
    exact = [slip.now == clean[slip.column].iloc[slip.row] for slip in named]
    assert all(exact)
    untouched = [row for row in range(400) if row not in broken]
    pd.testing.assert_frame_equal(corrected.iloc[untouched], dirty.iloc[untouched])
    left = set(Rules.of(rules).confront(corrected).breaking().tolist())
    assert left == broken - {slip.row for slip in slips}


def test_households_in_polars():
    dirty, rules = make_households(
        300, random_state=1, inconsistent=0.05, missing=0.02, frame="polars", return_rules=True
    )
    corrected, slips = correct_slips(dirty, rules)
    assert slips
    assert isinstance(corrected, pl.DataFrame)
    assert corrected.schema == dirty.schema
    assert corrected.null_count().equals(dirty.null_count())
