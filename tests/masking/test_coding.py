"""Top and bottom coding: what is extreme becomes one number, the rest stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import (
    BadOptionError,
    GroupSizeError,
    UnknownColumnError,
    UnknownOptionError,
)
from tessella.masking import TopBottomCoding

TEN = pd.DataFrame({"income": [3, 1, 900, 4, 5, 2, 60, 6, 7, 8]})


# By hand


def test_thresholds_by_share() -> None:
    masker = TopBottomCoding(top=0.2, bottom=0.1)
    released = masker.fit_transform(TEN)["income"].tolist()
    assert released == [3, 2, 8, 4, 5, 2, 8, 6, 7, 8]
    assert masker.coded_ == {"income": (1, 2)}


def test_thresholds_by_value_and_means() -> None:
    """Above 6 are 900, 60, 7 and 8, mean 243.75; rounded to 244 among whole numbers."""
    masker = TopBottomCoding(top=6, by="value", replace="mean")
    assert masker.fit_transform(TEN)["income"].tolist() == [3, 1, 244, 4, 5, 2, 244, 6, 244, 244]
    kept = TopBottomCoding(top=6, by="value", replace="mean", round_integers=False)
    assert kept.fit_transform(TEN)["income"].mean() == pytest.approx(TEN["income"].mean())


def test_weights_make_shares() -> None:
    """The 900 weighs as much as all others: it is no extreme 20 %, it is half."""
    weights = np.where(TEN["income"] == 900, 9.0, 1.0)
    masker = TopBottomCoding(top=0.2)
    assert masker.fit_transform(TEN, weights=weights)["income"].equals(TEN["income"])
    assert masker.coded_ == {"income": (0, 0)}


def test_each_column_and_each_stratum_its_own() -> None:
    table = pd.DataFrame({"a": np.arange(20), "b": np.arange(20), "g": ["x"] * 10 + ["y"] * 10})
    masker = TopBottomCoding({"a": 0.1}, bottom={"b": 0.2}, strata="g")
    released = masker.fit_transform(table)
    assert masker.coded_ == {"a": (0, 2), "b": (4, 0)}
    assert released["a"].tolist() == [*range(9), 8, *range(10, 19), 18]
    assert released["b"].tolist() == [2, 2, *range(2, 10), 12, 12, *range(12, 20)]


# Invariants


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=40),
    st.floats(0.01, 0.5),
    st.floats(0.01, 0.45),
)
def test_no_more_than_the_share_is_coded(numbers: list[int], top: float, bottom: float) -> None:
    X = np.array(numbers, dtype=float)[:, None]
    masker = TopBottomCoding(top, bottom=bottom)
    Y = masker.fit_transform(X)
    low, high = masker.coded_[0]
    assert high <= top * len(X) * (1 + 1e-9)
    assert low <= bottom * len(X) * (1 + 1e-9)
    assert (Y != X).sum() == low + high
    np.testing.assert_array_equal(Y, np.clip(X, Y.min(), Y.max()))
    again = np.quantile(X, 1 - top, method="inverted_cdf")
    if abs((top * len(X)) % 1 - 0.5) < 0.49:  # away from whole numbers, where rounding decides
        assert Y.max() == again


# Bad input


def test_a_mean_of_few_is_refused() -> None:
    with pytest.raises(GroupSizeError, match=r"Only 2 numbers of 'income'.*k=3"):
        TopBottomCoding(0.2, replace="mean").fit(TEN)
    TopBottomCoding(0.2, replace="mean", k=2).fit(TEN)
    with pytest.raises(GroupSizeError):
        TopBottomCoding(0.2, replace="mean", k=1).fit(TEN)


@pytest.mark.parametrize("top", [0, 1, -0.1, 1.5, np.nan, "0.1", True])
def test_bad_shares(top: Any) -> None:
    with pytest.raises(BadOptionError, match="top"):
        TopBottomCoding(top).fit(TEN)


def test_bad_input() -> None:
    with pytest.raises(BadOptionError, match="nothing would be coded"):
        TopBottomCoding(None).fit(TEN)
    with pytest.raises(UnknownOptionError, match="by"):
        TopBottomCoding(by="share").fit(TEN)
    with pytest.raises(UnknownOptionError, match="replace"):
        TopBottomCoding(replace="median").fit(TEN)
    with pytest.raises(UnknownColumnError, match=r"'incme'.*'income'"):
        TopBottomCoding({"incme": 0.1}).fit(TEN)
    with pytest.raises(BadOptionError, match="leave something between"):
        TopBottomCoding(0.6, bottom=0.4).fit(TEN)
    with pytest.raises(BadOptionError, match="a bottom below the top"):
        TopBottomCoding(5, bottom=5, by="value").fit(TEN)
    with pytest.raises(BadOptionError, match="can hold"):
        TopBottomCoding(5.5, by="value").fit(TEN)
