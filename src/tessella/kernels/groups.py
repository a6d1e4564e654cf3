"""Sums over the groups of a labelling: centres, squared error, medians."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel


@kernel
def renumber(labels: Integers, n_labels: int) -> Integers:
    """Number groups 0, 1, ... in the order in which the records first meet them."""
    new = np.full(n_labels, -1, dtype=np.int64)
    out = np.empty(labels.shape[0], dtype=np.int64)
    count = 0
    for i in range(labels.shape[0]):
        if new[labels[i]] < 0:
            new[labels[i]] = count
            count += 1
        out[i] = new[labels[i]]
    return out


@kernel
def weighted_centres(X: Floats, weights: Floats, labels: Integers, n_groups: int) -> Floats:
    """Weighted mean of each group, shape (n_groups, d).

    The sum runs over differences from the group's first record: a group of equal records has
    exactly that record as its centre, and a large offset costs no digits.
    """
    n, d = X.shape
    first = np.full(n_groups, -1, dtype=np.int64)
    total = np.zeros(n_groups)
    centres = np.zeros((n_groups, d))
    for i in range(n):
        g = labels[i]
        if first[g] < 0:
            first[g] = i
        total[g] += weights[i]
        for j in range(d):
            centres[g, j] += weights[i] * (X[i, j] - X[first[g], j])
    for g in range(n_groups):
        for j in range(d):
            centres[g, j] = X[first[g], j] + centres[g, j] / total[g]
    return centres


@kernel
def squared_error(X: Floats, weights: Floats, labels: Integers, centres: Floats) -> float:
    """Sum over records of weight times squared distance to the record's centre."""
    total = 0.0
    for i in range(X.shape[0]):
        own = 0.0
        for j in range(X.shape[1]):
            difference = X[i, j] - centres[labels[i], j]
            own += difference * difference
        total += weights[i] * own
    return total


@kernel
def medians_of_runs(values: Floats, weights: Floats, starts: Integers) -> Floats:
    """Weighted median of each run `starts[g]:starts[g + 1]`, whose values are in order.

    Where half of the weight is reached exactly, the mean of that value and the next.
    """
    n_runs = starts.shape[0] - 1
    medians = np.empty(n_runs)
    for g in range(n_runs):
        first, end = starts[g], starts[g + 1]
        total = 0.0
        for i in range(first, end):
            total += weights[i]
        # Equal weights such as 0.1 add up to half of their total only to rounding.
        slack = 1e-12 * total
        reached, i = weights[first], first
        while reached < total / 2 - slack and i + 1 < end:
            i += 1
            reached += weights[i]
        medians[g] = values[i]
        if reached <= total / 2 + slack and i + 1 < end:
            medians[g] = (values[i] + values[i + 1]) / 2
    return medians


@kernel
def squared_distance(X: Floats, i: Any, centre: Floats, g: int) -> Any:
    """Squared distance from record i to the centre of group g."""
    total = 0.0
    for q in range(X.shape[1]):
        difference = X[i, q] - centre[g, q]
        total += difference * difference
    return total
