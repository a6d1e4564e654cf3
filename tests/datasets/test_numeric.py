"""Clusters and heavy tails: the stated truth is true."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import kstest, spearmanr

from tessella.datasets import make_clusters, make_heavy_tailed
from tessella.exceptions import BadOptionError


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(6, 200),
    d=st.integers(1, 8),
    low=st.integers(1, 3),
    more=st.integers(0, 4),
    seed=st.integers(0, 10**6),
)
def test_clusters_are_as_far_apart_as_stated(n, d, low, more, seed):
    if -(-n // (low + more)) > n // low:
        return
    X, truth = make_clusters(
        n, d=d, sizes=(low, low + more), random_state=seed, frame="numpy", return_truth=True
    )
    sizes = np.bincount(truth.labels)
    assert X.shape == (n, d)
    assert sizes.sum() == n
    assert sizes.min() >= low
    assert sizes.max() <= low + more
    assert np.linalg.norm(X - truth.centres[truth.labels], axis=1).max() <= truth.spread + 1e-9
    if len(truth.centres) > 1:
        assert pdist(truth.centres).min() >= truth.separation * truth.spread - 1e-9


def test_many_columns_have_room():
    _, truth = make_clusters(300, d=70, random_state=0, return_truth=True)
    assert pdist(truth.centres).min() >= 10


def test_the_planted_clusters_are_the_optimum_of_a_small_table():
    """Independent: every grouping of 8 records into groups of at least 3."""
    X, truth = make_clusters(
        8, d=2, sizes=(3, 5), separation=6.48, random_state=5, frame="numpy", return_truth=True
    )
    assert truth.is_optimum(3)

    def sse(part):
        return float(((X[part] - X[part].mean(axis=0)) ** 2).sum())

    records = set(range(8))
    best = {frozenset([frozenset(records)]): sse(list(records))}
    for size in (3, 4):
        for one in itertools.combinations(range(8), size):
            other = sorted(records - set(one))
            best[frozenset([frozenset(one), frozenset(other)])] = sse(list(one)) + sse(other)
    planted = frozenset(
        frozenset(np.flatnonzero(truth.labels == g).tolist()) for g in range(len(truth.centres))
    )
    assert min(best, key=best.get) == planted


def test_the_optimum_is_only_claimed_where_it_is_proved():
    near = make_clusters(60, separation=6.0, random_state=0, return_truth=True)[1]
    far = make_clusters(60, separation=6.5, random_state=0, return_truth=True)[1]
    large = make_clusters(60, sizes=(3, 6), separation=9, random_state=0, return_truth=True)[1]
    assert not near.is_optimum(3)  # 2 + 2 sqrt(5) = 6.47
    assert far.is_optimum(3)
    assert not far.is_optimum(4)  # some clusters have 3 records
    assert not large.is_optimum(3)  # a cluster of 6 may be two groups


@pytest.mark.parametrize(
    "wrong", [{"sizes": (5, 3)}, {"sizes": 4}, {"n": 4, "sizes": (3, 3)}, {"d": 0}, {"spread": -1}]
)
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(BadOptionError, match=r"^(sizes|d|spread).*Give "):
        make_clusters(**wrong)


@pytest.mark.parametrize("make", [make_clusters, make_heavy_tailed])
def test_the_same_seed_gives_the_same_table(make):
    pd.testing.assert_frame_equal(make(100, random_state=1), make(100, random_state=1))
    assert not make(100, random_state=1).equals(make(100, random_state=2))


def test_tails_follow_the_stated_law():
    table, truth = make_heavy_tailed(20_000, tail=1.5, random_state=3, return_truth=True)
    for name, scale in zip(table, truth.scale):
        law = lambda x, s=scale: 1 - (1 + x / s) ** -truth.tail  # noqa: E731
        assert kstest(table[name], law).pvalue > 0.001
    ranks = spearmanr(table["x1"], table["x2"]).statistic
    assert ranks == pytest.approx(6 / np.pi * np.arcsin(0.5 / 2), abs=0.02)


def test_zeros_and_whole_numbers_come_as_asked():
    table = make_heavy_tailed(5000, d=3, zeros=0.9, whole=True, random_state=0)
    assert (table.dtypes == np.int64).all()
    assert (table == 0).mean().between(0.88, 0.94).all()
    assert (make_heavy_tailed(1000, tail=0.2, whole=True, random_state=0) >= 0).all(axis=None)
