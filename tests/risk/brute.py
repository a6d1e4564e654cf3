"""Slow and obviously right: all distances of all pairs, then counting."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np


def standardised(X):
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread == 0, 1, spread)


def euclidean(a, b):
    return ((a - b) ** 2).sum()


def manhattan(a, b):
    return np.abs(a - b).sum()


def counts(A, B, truth, distance: Callable):
    nearer, tied = [], []
    for i, a in enumerate(A):
        far = np.array([distance(a, b) for b in B])
        own = far[truth[i]]
        near = np.isclose(far, own, rtol=1e-9, atol=1e-20)
        nearer.append(int(((far < own) & ~near).sum()))
        tied.append(int(near.sum()))
    return np.array(nearer), np.array(tied)


def gower(A, B, nominal):
    """Distances of all pairs: the mean over columns that both have, 1 where there are none."""
    low, high = (end.reduce(np.vstack([A, B])) for end in (np.fmin, np.fmax))
    total, compared = np.zeros((len(A), len(B))), np.zeros((len(A), len(B)))
    for j, is_category in enumerate(nominal):
        apart = np.abs(A[:, j, None] - B[:, j]) / (high[j] - low[j] or 1.0)
        apart = np.where(np.isnan(apart), 0.0, np.where(is_category, apart > 0, apart))
        total += apart
        compared += ~(np.isnan(A[:, j, None]) | np.isnan(B[:, j]))
    return np.where(compared > 0, total / np.maximum(compared, 1), 1.0)


def choquet(squares, measure):
    """By definition: measure of the set where the square reaches a level, integrated."""
    levels = np.unique(np.concatenate([[0.0], squares]))
    total = 0.0
    for low, high in pairwise(levels):
        reached = sum(1 << k for k, s in enumerate(squares) if s >= high)
        total += (high - low) * measure[reached]
    return total


def links_of(parts, weights):
    """How many records each row of weights links, of the parts (n, n, d) that it adds up."""
    far = parts @ weights.T
    own = np.einsum("iiw->iw", far).copy()
    np.einsum("iiw->iw", far)[:] = np.inf
    return (far.min(axis=1) > own * (1 + 1e-9)).sum(axis=0)
