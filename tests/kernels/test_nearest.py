"""Neighbours by the tree of boxes are those of a plain scan."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from tessella.grouping.column_generation import nearest_others


def scan(X, count):
    d = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(d, np.inf)
    return np.sort(d, axis=1)[:, :count]


@pytest.mark.parametrize("n", [3, 8, 9, 16, 17, 129, 700])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_distances_are_those_of_a_scan(n, d):
    X = np.random.default_rng([n, d]).standard_t(2, size=(n, d))
    count = min(7, n - 1)
    rows, squares = nearest_others(X, count)
    np.testing.assert_allclose(squares, scan(X, count), rtol=1e-12)
    np.testing.assert_allclose(((X[:, None] - X[rows]) ** 2).sum(axis=2), squares, rtol=1e-12)
    assert all(len({i, *row}) == count + 1 for i, row in enumerate(rows.tolist()))


def test_against_scipy():
    random = np.random.default_rng(3)
    X = random.normal(size=(20_000, 5)) @ random.normal(size=(5, 5))
    expected = cKDTree(X).query(X, 5)[0][:, 1:] ** 2
    np.testing.assert_allclose(nearest_others(X, 4)[1], expected, rtol=1e-9)


def test_ties_and_duplicates_in_large_numbers():
    X = np.random.default_rng(0).integers(0, 2, size=(3000, 3)) * 1.0
    X[:2500] = 0.0
    rows, squares = nearest_others(X, 6)
    np.testing.assert_array_equal(squares[:300], scan(X[:3000], 6)[:300])
    assert all(len({i, *row}) == 7 for i, row in enumerate(rows.tolist()))


def test_same_answer_on_one_core(monkeypatch):
    X = np.random.default_rng(1).normal(size=(2000, 4))
    rows, squares = nearest_others(X, 5)
    monkeypatch.setenv("TESSELLA_CORES", "1")
    again = nearest_others(X, 5)
    np.testing.assert_array_equal(rows, again[0])
    np.testing.assert_array_equal(squares, again[1])
