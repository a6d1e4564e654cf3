"""Orders are orders, walks are those of the textbook, and the cut of an order is its best."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tessella.exceptions import BadOptionError, UnknownOptionError
from tessella.grouping import MDAV, OrderedGrouping
from tessella.grouping.ordering import ORDERS, by_component, by_sum, by_tour, closed_tour
from tessella.kernels.neighbours import all_rows, nearest_row, remove_row
from tessella.kernels.ordering import centre_path, group_path, insertion_path, nearest_next
from tessella.kernels.sequence import best_cut, best_opening, greedy_tour, shorten
from tests.amounts import few_or_many, try_examples
from tests.reference.sequences import (
    plain_cut,
    plain_group_path,
    plain_insertion_path,
    plain_nearest_next,
    sse_of_labels,
)

# few different values: ties in large numbers; and any seed of smooth ones
coarse = st.integers(1, 4).flatmap(
    lambda d: st.integers(6, 40).flatmap(
        lambda n: arrays(np.float64, (n, d), elements=st.integers(0, 3).map(float))
    )
)
seeds = st.integers(0, 2**31)


def smooth(seed, n=30, d=3):
    return np.random.default_rng(seed).normal(size=(n, d))


def length(X, tour):
    return np.sqrt(((X[tour] - X[np.roll(tour, -1)]) ** 2).sum(axis=1)).sum()


# the cut


@given(coarse, seeds, st.integers(2, 5))
def test_the_cut_is_the_textbooks(X, seed, k):
    random = np.random.default_rng(seed)
    order, weights = random.permutation(len(X)), random.uniform(0.1, 5, len(X))
    k = min(k, len(X))
    labels, error = best_cut(X, weights, order, k)
    _, expected = plain_cut(X, weights, order, k)
    assert error == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert error == pytest.approx(sse_of_labels(X, weights, labels), rel=1e-9, abs=1e-9)
    sizes = np.bincount(labels)
    assert sizes.min() >= k
    assert sizes.max() < 2 * k or len(X) < 2 * k
    assert (np.diff(labels[order]) >= 0).all()  # contiguous


@given(seeds, st.integers(2, 6))
def test_groups_of_2k_are_never_needed(seed, k):
    X = smooth(seed, n=4 * k + 3)
    order, weights = np.arange(len(X)), np.ones(len(X))
    _, error = best_cut(X, weights, order, k)
    assert error == pytest.approx(plain_cut(X, weights, order, k, longest=len(X))[1], rel=1e-9)


@given(coarse, seeds, st.integers(2, 4))
def test_a_ring_is_cut_as_well_as_from_any_record(X, seed, k):
    order, weights = np.random.default_rng(seed).permutation(len(X)), np.ones(len(X))
    k = min(k, len(X) // 2)
    opening, error = best_opening(X, weights, order, k, np.arange(2 * k - 1))
    everywhere = [best_cut(X, weights, np.roll(order, -p), k)[1] for p in range(len(X))]
    assert error == pytest.approx(min(everywhere), rel=1e-9, abs=1e-9)
    assert everywhere[opening] == pytest.approx(error, rel=1e-9, abs=1e-9)


def test_offsets_and_outliers_cost_no_digits():
    random = np.random.default_rng(0)
    X = random.integers(0, 64, (60, 2)).astype(float)
    far = np.vstack([X, X + 2.0**48, [[-(2.0**52), 0], [-(2.0**52), 0]]])
    weights, order = np.ones(len(far)), np.arange(len(far))
    labels, _ = best_cut(far, weights, order, 2)
    alone = best_cut(X, np.ones(60), np.arange(60), 2)[1]
    for own in (labels[:60], labels[60:120]):
        assert sse_of_labels(X, np.ones(60), own) == pytest.approx(alone, rel=1e-12)


# walks


@given(coarse)
def test_nearest_next_is_the_scans_ties_included(X):
    first = len(X) // 2
    assert (nearest_next(X, all_rows(X), first) == plain_nearest_next(X, first)).all()


@pytest.mark.parametrize(("n", "d"), [(1, 1), (33, 1), (500, 2), (700, 9)])
def test_nearest_next_is_the_scans(n, d):
    X = smooth(n, n, d)
    assert (nearest_next(X, all_rows(X), 0) == plain_nearest_next(X, 0)).all()


def test_an_empty_tree_has_nobody():
    X = smooth(0, 40)
    tree = all_rows(X)
    for row in range(40):
        assert nearest_row(tree, X, row) == row
        remove_row(tree, row)
    assert nearest_row(tree, X, 0) == -1


def test_values_whose_squares_overflow_are_still_visited():
    X = np.array([[0.0], [1e200], [-1e200], [1e180]])
    assert sorted(nearest_next(X, all_rows(X), 0)) == [0, 1, 2, 3]


@pytest.mark.parametrize("m", [1, 2, 3, 9, 40])
def test_insertion_path_is_the_papers(m):
    X = smooth(m, 60)
    members = np.sort(np.random.default_rng(m).choice(60, m, replace=False))
    for entry in range(min(m, 5)):
        expected = plain_insertion_path(X, members, members[entry])
        assert insertion_path(X, members, entry).tolist() == expected


def test_insertion_path_without_a_table_of_distances(monkeypatch):
    """Large groups compute distances when needed; the path is the same."""
    X = smooth(5, 1100, 2)  # more than the table holds
    path = insertion_path(X, np.arange(1100), 3)
    assert sorted(path) == list(range(1100))
    assert path[0] == 3
    away = ((X - X[3]) ** 2).sum(axis=1)
    assert path[-1] == np.argmax(away)
    from tessella.kernels import ordering

    monkeypatch.setattr(ordering, "TABLE", 0)
    expected = insertion_path.py_func(X[:60], np.arange(60), 3)
    assert (insertion_path(X[:60], np.arange(60), 3) == expected).all()


@given(seeds)
def test_group_path_is_the_papers(seed):
    X = smooth(seed)
    labels = np.random.default_rng(seed).integers(0, 6, len(X))
    expected = plain_group_path(X, labels, 4)
    assert (group_path(X, all_rows(X), labels, 6, 4) == expected).all()


@given(coarse, seeds)
def test_walks_visit_everyone_once_and_groups_in_one_go(X, seed):
    labels = np.unique(np.random.default_rng(seed).integers(0, 5, len(X)), return_inverse=True)[1]
    n_groups, weights = labels.max() + 1, np.ones(len(X))
    for order in (
        group_path(X, all_rows(X), labels, n_groups, 0),
        centre_path(X, weights, labels, n_groups, 0),
    ):
        assert sorted(order) == list(range(len(X)))
        assert (np.diff(labels[order]) != 0).sum() == n_groups - 1
        assert labels[order[0]] == labels[0]


def test_centre_path_by_hand():
    """Three groups on a line, walked from the left: records from left to right."""
    X = np.array([[5.0], [0.0], [6.0], [1.0], [11.0], [10.0]])
    labels = np.array([1, 0, 1, 0, 2, 2])
    assert centre_path(X, np.ones(6), labels, 3, 1).tolist() == [1, 3, 0, 2, 5, 4]


# tours


def test_a_circle_is_its_own_shortest_tour():
    angles = np.random.default_rng(1).permutation(100) * 2 * np.pi / 100
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    assert length(X, closed_tour(X)) == pytest.approx(200 * np.sin(np.pi / 100))


@pytest.mark.parametrize("n", [8, 9, 11, 30, 400])
def test_moves_shorten_and_keep_everyone(n):
    X = smooth(n, n, 2)
    count = min(7, n - 1)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squares, -1)
    neighbours = np.argsort(squares, axis=1)[:, 1 : count + 1].copy()
    for tour in (np.arange(n), greedy_tour(X, np.empty((0, 2), dtype=np.int64))):
        shorter = shorten(X, neighbours, tour)
        assert sorted(shorter) == list(range(n))
        assert length(X, shorter) <= length(X, tour) * (1 - (n > 11) * 0.01)
        again = shorten(X, neighbours, shorter)
        assert length(X, again) == pytest.approx(length(X, shorter), rel=1e-9)  # nothing left


def test_tours_are_near_the_known_constant():
    """The shortest tour of n random points in the unit square is about 0.7124 sqrt(n) long."""
    X = np.random.default_rng(3).random((20_000, 2))
    assert length(X, closed_tour(X)) < 1.08 * 0.7124 * np.sqrt(20_000)


def test_equal_records_stand_together_on_a_tour():
    X = np.repeat(smooth(4, 15, 2), 6, axis=0)[np.random.default_rng(0).permutation(90)]
    order = by_tour(X, np.ones(90), 2)
    _, which = np.unique(X, axis=0, return_inverse=True)
    changes = (which.ravel()[order] != np.roll(which.ravel()[order], 1)).sum()
    assert changes == 15


# orders by hand


def test_component_follows_the_long_axis():
    X = np.array([[0.0, 0], [10, 1], [5, 0], [15, 1]])
    assert by_component(X, np.ones(4), 2).tolist() == [0, 2, 1, 3]


def test_weights_turn_the_component():
    X = np.array([[-3.0, 0], [3, 0], [0, -2], [0, 2]])
    assert by_component(X, np.ones(4), 2)[[0, -1]].tolist() == [0, 1]
    assert by_component(X, np.array([1.0, 1, 9, 9]), 2)[[0, -1]].tolist() == [2, 3]


def test_sum_of_zscores_gives_columns_the_same_say_and_constant_ones_none():
    X = np.array([[0.0, 3000, 7], [1, 1000, 7], [2, 3000, 7], [3, 0, 7]])
    z = (X[:, :2] - X[:, :2].mean(0)) / X[:, :2].std(0)
    assert by_sum(X, np.ones(4), 2).tolist() == np.argsort(z.sum(axis=1)).tolist()


# the grouping


@few_or_many(25, 100)
@pytest.mark.parametrize("order", ORDERS)
def test_k_holds(order, count):
    def holds(X, k):
        k = min(k, len(X))
        labels = OrderedGrouping(k=k, order=order).fit(X).labels_
        assert np.bincount(labels).min() >= k

    try_examples(count, holds, coarse, st.integers(2, 5))


@pytest.mark.parametrize("order", ORDERS)
def test_many_equal_records_keep_k(order):
    random = np.random.default_rng(0)
    n = 20_000 if order not in ("mdav", "cbfs") else 4_000
    X = np.where(random.random((n, 4)) < 0.9, 0.0, random.integers(0, 5, (n, 4)).astype(float))
    assert np.bincount(OrderedGrouping(k=3, order=order).fit(X).labels_).min() >= 3


@pytest.mark.parametrize("order", ORDERS)
def test_the_number_of_cores_changes_nothing(order, monkeypatch):
    X = smooth(7, 500, 4)
    outcomes = []
    for cores in ("1", "2"):
        monkeypatch.setenv("TESSELLA_CORES", cores)
        outcomes.append(OrderedGrouping(k=4, order=order).fit(X).labels_)
    assert (outcomes[0] == outcomes[1]).all()


@pytest.mark.parametrize("weights", [False, True])
def test_never_worse_than_the_groups_it_orders(weights):
    X = smooth(8, 300, 3)
    sample_weight = np.random.default_rng(8).uniform(0.5, 3, 300) if weights else None
    mdav = MDAV(k=4).fit(X, sample_weight=sample_weight)
    ordered = OrderedGrouping(k=4, order="mdav").fit(X, sample_weight=sample_weight)
    assert ordered.inertia_ <= mdav.inertia_ * (1 + 1e-12)


def test_unknown_orders_are_refused_even_for_small_tables():
    with pytest.raises(UnknownOptionError, match=r"order='tsp' is not known.*'tour'"):
        OrderedGrouping(k=3, order="tsp").fit(smooth(0, 4))
    with pytest.raises(BadOptionError):
        OrderedGrouping(k=3, order=["pca"]).fit(smooth(0, 9))


MDAV_MHM = {  # Mortazavi 2020, Table 2
    "tarragona": {3: 16.93, 5: 22.46, 10: 33.19},
    "census": {3: 5.65, 5: 9.09, 10: 14.22},
    "eia": {3: 0.41, 5: 1.26, 10: 3.77},
}


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("name", MDAV_MHM)
def test_published_figures_of_mdav_mhm_are_met_to_3_percent(name, k, request):
    X = request.getfixturevalue(name)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    loss = 100 * OrderedGrouping(k=k, order="mdav").fit(X).inertia_ / X.size
    assert loss < 1.03 * MDAV_MHM[name][k]
