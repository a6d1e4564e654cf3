"""Collapse: too much fuzziness puts centres on top of each other, and c clusters are fewer.

The place where all centres are at the mean is always a rest of the loop. It attracts the loop when
the table has no direction in which it is much wider than in others:

- with the exponent m, if m > 1 / (1 - 2 F), F the largest eigenvalue of the mean of z z' / |z|^2,
  z a record minus the mean (Yu, Cheng and Huang 2004), for F < 1/2;
- with entropy, if lambda < 1 / (2 V), V the largest eigenvalue of the covariance (Rose 1998).

Fewer centres may coincide long before; that is found by looking at them.

References
----------
J. Yu, Q. Cheng and H. Huang (2004). Analysis of the weighting exponent in the FCM. IEEE
Transactions on Systems, Man, and Cybernetics B 34(1).
K. Rose (1998). Deterministic annealing for clustering, compression, classification, regression,
and related optimization problems. Proceedings of the IEEE 86(11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from .._types import Floats, Integers
from ..kernels.degrees import Law
from .field import Field

__all__ = ["Collapse", "critical_lambda", "critical_m", "find_collapse", "retreat"]


CLOSE = 0.01  # centres nearer than this share of their clusters' radius coincide
LOOKED_AT = 10_000  # records
EVEN = 1.01  # the largest degrees are on average less than this times 1/c: all degrees are 1/c


@dataclass(frozen=True, eq=False)
class Collapse:
    """How many of c centres coincide with another."""

    coincide: int
    c: int
    even: bool  # all degrees are 1/c
    spare: Integers  # the centres that could go: all but the first of those that coincide


def find_collapse(field: Field, centres: Floats, law: Law) -> Collapse | None:
    """Look for centres that coincide, compared with the radius of their own clusters."""
    c = len(centres)
    if c < 2:
        return None
    field = field.sample(max(LOOKED_AT, 4 * c))  # radii need no more to be told from gaps
    totals = field.spread(centres, law)
    radius = np.sqrt(totals[:, 1] / np.maximum(totals[:, 0], 1e-300))
    gap, other = (found[:, 1] for found in KDTree(centres).query(centres, k=2))
    close = np.flatnonzero(gap <= CLOSE * np.minimum(radius, radius[other]))
    outlook, _ = field.draw(centres, law, np.full(field.n, -1.0))
    even = bool(np.average(outlook.largest, weights=field.weights) * c < EVEN)
    if len(close) == 0 and not even:
        return None
    return Collapse(len(close), c, even, _all_but_first(close, other[close], c))


def _all_but_first(ones: Integers, others: Integers, c: int) -> Integers:
    """Return what is linked to a centre of a lower number."""
    links = coo_array((np.ones(len(ones)), (ones, others)), shape=(c, c))
    _, place = connected_components(links, directed=False)
    first = np.unique(place, return_index=True)[1]
    return np.flatnonzero(first[place] < np.arange(c))


def critical_m(field: Field) -> float:
    """Return the m above which the mean attracts all centres; infinity if it never does."""
    squares = (field.records**2).sum(axis=1)
    away = squares > 0
    if not away.any():
        return 1.0
    unit = field.records[away] * np.sqrt(field.weights[away] / squares[away])[:, None]
    share = float(np.linalg.eigvalsh(unit.T @ unit / field.weights.sum())[-1])
    return 1 / (1 - 2 * share) if share < 0.5 else float("inf")


def critical_lambda(field: Field) -> float:
    """Return the lambda, in the field's units, below which the mean attracts all centres."""
    scaled = field.records * np.sqrt(field.weights / field.weights.sum())[:, None]
    wide = float(np.linalg.eigvalsh(scaled.T @ scaled)[-1])
    return 1 / (2 * wide) if wide > 0 else float("inf")


def retreat(
    collapses: Callable[[float], bool], first: float, *, shrink: float, tries: int = 12
) -> float | None:
    """Multiply a fuzziness by `shrink` until it no longer collapses; None if it always does."""
    value = first
    for _ in range(tries):
        if not collapses(value):
            return value
        value *= shrink
    return None
