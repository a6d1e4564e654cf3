"""The least SSE of any partition into groups of at least k, by trying them all.

Dynamic programming over sets of records: the group of a set's first record is tried in every way,
the rest is a smaller set. 3^n steps, for n up to about 12.
"""

from __future__ import annotations

import numpy as np


def sse_of(X, weights, rows):
    """Weighted sum of squared distances from some records to their mean."""
    X, weights = X[rows], weights[rows]
    centre = weights @ X / weights.sum()
    return float(weights @ ((X - centre) ** 2).sum(axis=1))


def least_sse(X, k, weights=None):
    """The optimum over all partitions of X into groups of at least k."""
    X = np.asarray(X, dtype=float)
    n = len(X)
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    cost = {
        members: sse_of(X, weights, [i for i in range(n) if members >> i & 1])
        for members in range(1, 2**n)
        if members.bit_count() >= k
    }
    least = [np.inf] * 2**n
    least[0] = 0.0
    for members in range(1, 2**n):
        first = members & -members
        rest = others = members ^ first
        while True:  # every subset of the others joins the first record's group
            group = rest | first
            if group in cost:
                least[members] = min(least[members], cost[group] + least[members ^ group])
            if rest == 0:
                break
            rest = (rest - 1) & others
    return least[-1]


def least_sse_of_strata(X, k, strata, weights=None):
    """The optimum where records of different strata never share a group."""
    X, strata = np.asarray(X, dtype=float), np.asarray(strata)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    return sum(
        least_sse(X[strata == name], k, weights[strata == name]) for name in np.unique(strata)
    )
