"""Changing places: the chain has the distribution that it says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tessella.kernels.random_moves import exchange, stand


def exact_shares(lists, weights, c, k, most):
    """An independent way: all assignments, one by one."""
    n, t = lists.shape
    shares, total = np.zeros((n, t)), 0.0
    for slots in product(range(t), repeat=n):
        sizes = np.bincount(lists[np.arange(n), slots], minlength=c)
        if sizes.min() >= k and sizes.max() <= most:
            weight = np.exp(weights[np.arange(n), slots].sum())
            total += weight
            shares[np.arange(n), slots] += weight
    return shares / total


@pytest.mark.parametrize(("n", "c", "k", "most"), [(6, 3, 2, 3), (7, 3, 2, 3), (8, 2, 3, 5)])
def test_the_long_run_is_the_product_given_k(n, c, k, most):
    random = np.random.default_rng(n)
    lists = np.array([random.permutation(c) for _ in range(n)])
    weights = random.normal(size=(n, c))
    labels = np.arange(n) % c
    slots = (lists == labels[:, None]).argmax(axis=1)
    standing, visits = stand(lists, weights, slots, c, most), np.zeros_like(lists)
    for _ in range(20_000):
        exchange(standing, k, random.random((n, 4)), visits)
    expected = exact_shares(lists, weights, c, k, most)
    assert visits / 20_000 == pytest.approx(expected, abs=0.02)


def test_sizes_hold_and_the_books_agree():
    random = np.random.default_rng(0)
    n, c, k, t = 60, 12, 4, 5
    labels = np.arange(n) % c
    lists = np.array([[own, *random.choice(np.delete(np.arange(c), own), t - 1, replace=False)]
                      for own in labels])  # fmt: skip
    standing = stand(lists, random.normal(size=(n, t)), np.zeros(n, dtype=np.int64), c, 7)
    none = np.empty((0, 0), dtype=np.int64)
    for _ in range(200):
        exchange(standing, k, random.random((n, 4)), none)
        now = lists[np.arange(n), standing.slots]
        sizes = np.bincount(now, minlength=c)
        assert sizes.tolist() == standing.sizes.tolist()
        assert sizes.min() >= k
        assert sizes.max() <= 7
        for i in range(n):
            assert standing.members[now[i], standing.places[i]] == i
