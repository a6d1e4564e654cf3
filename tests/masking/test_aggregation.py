"""Means and medians of groups, against the obvious way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import BrokenPromiseError
from tessella.masking.microaggregation import released_sets
from tessella.masking.parts import group_means, group_medians
from tessella.masking.selection import Scale

numbers = st.floats(-1e9, 1e9)


@st.composite
def grouped(draw: Any) -> tuple[Any, Any]:
    """Values of shape (n, 2), and a label for each record with every label in use."""
    n = draw(st.integers(1, 20))
    values = np.array(draw(st.lists(st.tuples(numbers, numbers), min_size=n, max_size=n)))
    labels = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    return values, np.unique(labels, return_inverse=True)[1].astype(np.int64)


@given(grouped())
def test_medians_are_those_of_numpy(table: tuple[Any, Any]) -> None:
    values, labels = table
    n_groups = labels.max() + 1
    expected = [np.median(values[labels == g], axis=0) for g in range(n_groups)]
    for weight in (1.0, 0.1):
        found = group_medians(values, np.full(len(values), weight), labels, n_groups)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


@given(grouped(), st.data())
def test_a_weight_is_a_number_of_equal_records(table: tuple[Any, Any], data: Any) -> None:
    values, labels = table
    n = len(labels)
    times = np.array(data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)))
    n_groups = labels.max() + 1
    for aggregate in (group_means, group_medians):
        weighted = aggregate(values, times.astype(float), labels, n_groups)
        repeated = aggregate(
            np.repeat(values, times, axis=0),
            np.ones(times.sum()),
            np.repeat(labels, times),
            n_groups,
        )
        np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-6)


def test_a_mean_stays_between_its_records() -> None:
    """Bug once met: the difference from a far first record of little weight cost all digits."""
    values = np.array([[1e20], [0.0], [0.0]])
    means = group_means(values, np.array([1e-30, 0.1, 0.2]), np.zeros(3, dtype=np.int64), 1)
    assert means[0, 0] >= 0


def test_records_of_a_group_must_be_alike() -> None:
    """By hand: two groups that happen to be alike are one set; strata and states part them."""
    values = np.array([[1.0], [1.0], [1.0], [np.nan], [np.nan]])
    state = np.array([[0], [0], [0], [1], [1]], dtype=np.int16)
    labels, one = np.array([0, 0, 1, 2, 2]), np.zeros(5, dtype=np.int64)
    sets = released_sets(values, state, labels, one, method="x")
    assert (sets == sets[0]).tolist() == [True, True, True, False, False]
    strata = np.array([0, 0, 1, 1, 1])
    assert len(set(released_sets(values, state, labels, strata, method="x"))) == 3
    for wrong in ([0, 0, 0, 0, 1], [0, 1, 1, 1, 2]):
        with pytest.raises(BrokenPromiseError, match="withheld"):
            released_sets(values, state, np.array(wrong), strata, method="x")


def test_a_scale_survives_offsets_and_extremes() -> None:
    """One number of 1e150, a spread of 1e-200, an offset of 1e15: no overflow, no lost digits."""
    values = np.array([[1e150, 1e-200, 1e15 + 1], [-1e150, 3e-200, 1e15 + 3]])
    scale = Scale.of(values, np.ones(2), "zscore", ["a", "b", "c"])
    np.testing.assert_allclose(scale.apply(values), [[1, -1, -1], [-1, 1, 1]])
    np.testing.assert_allclose(scale.deviation, [1e150, 1e-200, 1])
