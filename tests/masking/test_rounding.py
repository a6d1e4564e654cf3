"""Rounding: multiples of the base, the nearest or fair ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import BadOptionError, UnknownColumnError
from tessella.masking import Rounding

# By hand


def test_nearest_multiples() -> None:
    table = pd.DataFrame({"age": [21, 38, 62, -13], "income": [1.04, 2.26, 3.55, -0.04]})
    masker = Rounding({"age": 5, "income": 0.1})
    released = masker.fit_transform(table)
    assert released["age"].tolist() == [20, 40, 60, -15]
    assert released["income"].tolist() == [1.0, 2.3, 3.6, 0.0]  # a tie goes to the even multiple
    assert masker.bases_ == {"age": 5.0, "income": 0.1}


def test_a_base_is_the_decimal_that_is_written() -> None:
    X = np.array([[0.31], [0.71], [1.12]])
    assert Rounding(0.1).fit_transform(X)[:, 0].tolist() == [0.3, 0.7, 1.1]  # not 0.30000000000004


# Invariants


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.sampled_from([0.01, 0.25, 1, 7, 1000, 1 / 3]),
    st.booleans(),
)
def test_multiples_less_than_a_base_away(numbers: list[float], base: float, random: bool) -> None:
    X = np.array(numbers)[:, None]
    Y = Rounding(base, random=random, random_state=0).fit_transform(X)
    tiny = 1e-9 * (1 + np.abs(X))
    np.testing.assert_allclose(Y / base, np.rint(Y / base), atol=1e-6, rtol=1e-9)
    assert (np.abs(Y - X) <= base * (1.0 if random else 0.5) + tiny).all()
    assert np.array_equal(Rounding(base, random_state=0).fit_transform(Y), Y) or base == 1 / 3


def test_random_rounding_is_unbiased() -> None:
    """20,000 times 37 in tens: 40 with chance 0.7; five deviations of the mean."""
    X = np.full((20_000, 1), 37.0)
    X[0] = 30.0
    Y = Rounding(10, random=True, random_state=1).fit_transform(X)[1:]
    assert set(np.unique(Y)) == {30.0, 40.0}
    assert abs(Y.mean() - 37.0) < 5 * 10 * np.sqrt(0.7 * 0.3 / len(Y))


def test_a_multiple_stays_when_rounded_at_random() -> None:
    X = np.arange(0.0, 5.0, 0.1).round(1)[:, None]
    np.testing.assert_array_equal(Rounding(0.1, random=True).fit_transform(X), X)


# Bad input


@pytest.mark.parametrize("base", [0, -1, np.nan, np.inf, "5", None, True])
def test_bad_bases(base: Any) -> None:
    with pytest.raises(BadOptionError, match="base"):
        Rounding(base).fit(np.arange(4.0)[:, None])


def test_bases_that_a_column_cannot_hold() -> None:
    table = pd.DataFrame({"age": [21, 38], "x": [0.5, 1.5]})
    with pytest.raises(BadOptionError, match=r"'age'.*round_integers=False"):
        Rounding(2.5).fit(table)
    released = Rounding(2.5, round_integers=False).fit_transform(table)
    assert released["age"].tolist() == [20.0, 37.5]
    paid = pl.DataFrame({"paid": ["1.25", "2.50"]}).select(pl.col("paid").cast(pl.Decimal(9, 2)))
    with pytest.raises(BadOptionError, match="'paid'"):
        Rounding(0.005).fit(paid)
    with pytest.raises(UnknownColumnError, match=r"'agee'.*'age'"):
        Rounding({"agee": 5}).fit(table)
    with pytest.raises(BadOptionError, match=r"base\['x'\]"):
        Rounding({"age": 5}).fit(table)
    with pytest.raises(BadOptionError, match="random"):
        Rounding(5, random="yes").fit(table)  # type: ignore[arg-type]


@pytest.mark.parametrize("base", [1e-300, 1e300])
def test_extreme_bases_give_numbers_or_an_error(base: float) -> None:
    X = np.array([[1.0], [2.0], [3.0]])
    Y = Rounding(base).fit_transform(X)
    assert np.isfinite(Y).all()
