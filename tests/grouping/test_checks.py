"""What is given to groupings and clusterers: refused in our words, and without a value in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessella.exceptions import TessellaError
from tessella.fuzzy import FuzzyCMeans
from tessella.grouping import MDAV, Search, lower_bound

RECORDS = np.random.default_rng(0).normal(size=(12, 2))
SECRET = 4711.25


@pytest.mark.parametrize(
    "refused",
    [
        lambda: MDAV(3).fit(np.full(12, SECRET)),
        lambda: FuzzyCMeans(2).fit(np.full(12, SECRET)),
        lambda: lower_bound(np.full(12, SECRET), 3),
        lambda: MDAV(3).fit(SECRET),
        lambda: MDAV(3).fit(np.array([["4711.25 Anna"]] * 12, dtype=object)),
        lambda: FuzzyCMeans(2).fit([["4711.25 Anna", 1.0]] * 12),
        lambda: FuzzyCMeans(2, random_state=0).fit(RECORDS).predict(np.full(2, SECRET)),
    ],
    ids=["1-d", "1-d fuzzy", "1-d bound", "scalar", "text", "text fuzzy", "1-d predicted"],
)
def test_no_value_in_the_message(refused: Any) -> None:
    """Bug once met: scikit-learn's messages print the array they were given."""
    with pytest.raises(TessellaError) as caught:
        refused()
    assert "4711" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("weight", [np.nan, np.inf, 0.0, -1.0])
def test_weights_are_positive_and_finite(weight: float) -> None:
    weights = np.ones(12)
    weights[5] = weight
    for model in (MDAV(3), FuzzyCMeans(2, random_state=0)):
        with pytest.raises(TessellaError, match="positive and finite; 1 are"):
            model.fit(RECORDS, sample_weight=weights)


@pytest.mark.parametrize("weights", [[1.0] * 11, ["heavy"] * 12, [[1.0]] * 12])
def test_one_weight_for_each_record(weights: Any) -> None:
    with pytest.raises(TessellaError, match="12 numbers, one for each record"):
        MDAV(3).fit(RECORDS, sample_weight=weights)


@pytest.mark.parametrize("model", [Search(3, random_state="x"), FuzzyCMeans(2, random_state=-1)])
def test_a_senseless_seed(model: Any) -> None:
    with pytest.raises(TessellaError, match="random_state"):
        model.fit(RECORDS)
