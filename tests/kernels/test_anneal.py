"""Annealing moves: each cost against the SSE before and after, computed from scratch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from tessella.kernels.groups import squared_error, weighted_centres
from tessella.kernels.random_moves import anneal, swap_cost
from tessella.kernels.windows import balls, nearest_in_window, rows_of_windows, start_in_tiles, tile


def sse(X, weights, labels):  # type: ignore[no-untyped-def]
    labels = np.unique(labels, return_inverse=True)[1]
    return squared_error(X, weights, labels, weighted_centres(X, weights, labels, labels.max() + 1))


def test_swap_cost_is_the_difference_of_sse() -> None:
    random = np.random.default_rng(0)
    X, weights = random.standard_normal((20, 3)), random.uniform(0.1, 4, 20)
    labels = np.arange(20) % 4
    centre = weighted_centres(X, weights, labels, 4)
    mass = np.bincount(labels, weights)
    for i in range(20):
        for t in range(20):
            if labels[i] != labels[t]:
                after = labels.copy()
                after[i], after[t] = labels[t], labels[i]
                change = sse(X, weights, after) - sse(X, weights, labels)
                cost = swap_cost(X, weights, i, t, labels[i], labels[t], mass, centre)
                assert cost == pytest.approx(change, abs=1e-11)


@given(seed=st.integers(0, 1000), k=st.integers(2, 6), groups=st.integers(2, 12))
@settings(max_examples=40)
def test_nothing_rises_when_cold_and_sizes_stay_in_bounds(seed: int, k: int, groups: int) -> None:
    """A wrong cost of any of the four moves would let the SSE rise at temperature nought."""
    random = np.random.default_rng(seed)
    n = groups * k + random.integers(0, k)
    X, weights = random.standard_normal((n, 2)), random.uniform(0.5, 2, n)
    labels = np.minimum(np.arange(n) // k, groups - 1)
    near = nearest_in_window(X, min(2 * k + 4, n - 1))
    before = sse(X, weights, labels)
    for leg in range(5):
        anneal(X, weights, near, labels, k, 400, 1e-300, 1e-300, seed, leg, np.zeros(1, np.uint8))
        after = sse(X, weights, labels)
        assert after <= before * (1 + 1e-12)
        before = after
        sizes = np.bincount(labels)
        assert set(sizes[sizes > 0]) <= set(range(k, 2 * k))
        assert labels.max() < n // k


def test_hot_annealing_keeps_a_partition() -> None:
    """Dissolving and opening happen by the thousand here; members and labels must agree."""
    random = np.random.default_rng(1)
    X = random.standard_normal((100, 2))
    labels = np.arange(100) // 3
    labels[99] = 0
    near = nearest_in_window(X, 20)
    seen = set()
    for leg in range(30):
        anneal(X, np.ones(100), near, labels, 3, 2_000, 5.0, 0.5, 7, leg, np.zeros(1, np.uint8))
        sizes = np.bincount(labels)
        assert sizes[sizes > 0].min() >= 3
        assert sizes.max() <= 5
        seen.add(int((sizes > 0).sum()))
    assert len(seen) > 1  # the number of groups does change


def test_halt_ends_an_anneal_at_once() -> None:
    X = np.random.default_rng(2).standard_normal((60, 2))
    labels = np.arange(60) // 3
    steps = 20_000
    halted = labels.copy()
    anneal(
        X, np.ones(60), nearest_in_window(X, 9), halted, 3, steps, 1e-300, 1e-300, 0, 0,
        np.ones(1, np.uint8),
    )  # fmt: skip
    free = labels.copy()
    anneal(
        X, np.ones(60), nearest_in_window(X, 9), free, 3, steps, 1e-300, 1e-300, 0, 0,
        np.zeros(1, np.uint8),
    )  # fmt: skip
    assert sse(X, np.ones(60), free) < sse(X, np.ones(60), halted)


def test_nearest_against_scipy() -> None:
    X = np.random.default_rng(3).standard_normal((80, 3))
    distances = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(distances, np.inf)
    assert np.array_equal(nearest_in_window(X, 7), np.argsort(distances, axis=1)[:, :7])


def test_equal_records_do_not_all_list_the_same_few() -> None:
    near = nearest_in_window(np.zeros((50, 2)), 4)
    assert len(np.unique(near)) == 50


@given(n=st.integers(1, 300), largest=st.integers(1, 40), seed=st.integers(0, 99))
def test_tiles_and_balls_hold_every_point_once(n: int, largest: int, seed: int) -> None:
    points = np.random.default_rng(seed).integers(0, 4, (n, 2)).astype(float)
    order, starts = tile(points, 4 * largest, seed)
    assert np.diff(starts).max() <= 4 * largest
    starts = balls(points, order, starts, largest, seed)
    assert sorted(order) == list(range(n))
    assert starts[0] == 0
    assert starts[-1] == n
    assert np.diff(starts).min() > 0
    assert np.diff(starts).max() <= largest


@given(n=st.integers(4, 200), k=st.integers(2, 9), seed=st.integers(0, 99))
def test_start_has_groups_of_k(n: int, k: int, seed: int) -> None:
    k = min(k, n // 2)
    X = np.random.default_rng(seed).integers(0, 5, (n, 2)).astype(float)
    order, starts = tile(X, 24, seed)
    sizes = np.bincount(start_in_tiles(X, order, starts, k))
    assert sizes.min() >= k
    assert sizes.max() < 2 * k


def test_windows_hold_whole_groups() -> None:
    labels = np.array([0, 1, 2, 0, 1, 2, 3, 3])
    rows, starts = rows_of_windows(labels, 4, np.array([2, 0, 3, 1]), np.array([0, 2, 4]))
    assert rows.tolist() == [0, 2, 3, 5, 1, 4, 6, 7]
    assert starts.tolist() == [0, 4, 8]
