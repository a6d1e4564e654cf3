"""The pricing problem of column generation: find every group worth more than it costs.

Identical records (same values, same weight) are merged into one *kind* with a number of copies:
by symmetry they may as well offer the same price, and a table of integers with many duplicates
becomes small. Groups are rows of kinds, padded with -1; a kind may come up more than once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._types import Floats, Integers
from ..kernels import neighbours
from ..kernels.bound import charges_of_pairs, group_costs, weighted_prices
from ..kernels.pricing import best_hopes, best_shares, profitable_groups
from ..parallel import each

__all__ = ["PricingProblem", "cheap_prices", "nearest_others"]


# Records whose root pairs make one piece of work.
PIECE = 64
# Listed neighbours for the cheap bound with unequal weights, in multiples of k.
LISTED = 4
# Pieces of work of a search for neighbours: a fixed number, whatever the number of cores.
NEIGHBOUR_PIECES = 256


def nearest_others(X: Floats, count: int) -> tuple[Integers, Floats]:
    """Find the `count` nearest others of each record.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The records, n > count.
    count : int
        How many others.

    Returns
    -------
    rows : ndarray of shape (n, count)
        Row numbers, nearest first, of equally near ones the lowest.
    squares : ndarray of shape (n, count)
        Squared distances.

    Examples
    --------
    >>> import numpy as np
    >>> rows, squares = nearest_others(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> rows.ravel(), squares.ravel()
    (array([1, 0, 1]), array([1., 1., 4.]))
    """
    n = len(X)
    remaining = neighbours.all_rows(X)
    rows, squares = np.empty((n, count), dtype=np.int64), np.empty((n, count))

    def find(piece: tuple[int, int]) -> None:
        neighbours.nearest_others(remaining, *piece, rows, squares)

    each(find, pairwise(np.unique(np.linspace(0, n, NEIGHBOUR_PIECES + 1).astype(np.int64))))
    return rows, squares


def cheap_prices(X: Floats, weights: Floats, k: int) -> Floats:
    """Sound prices from nearest neighbours alone; n >= 2k.

    With equal weights w, SSE(G) = w / (2 |G|) times the sum over i and j in G of d_ij, so record i
    pays at least w / (2s) times the sum of its s - 1 smallest d_ij. Among s >= k the least is at
    s = k: the next neighbour is at least as far as the mean of those before, so it raises the
    sum by more than s raises the divisor.
    """
    n = len(X)
    if (weights == weights[0]).all():
        _, squares = nearest_others(X, k - 1)
        return np.asarray(weights[0] * squares.sum(axis=1) / (2 * k))
    listed = min(LISTED * k, n - 1)
    near, squares = nearest_others(X, listed)
    prices: Floats = weighted_prices(near, squares, weights, weights, listed == n - 1, k)
    return prices


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """Subset-row cuts and what each charges."""

    triples: Integers  # (cuts, 3), kinds
    prices: Floats  # (cuts,)


class _OverError(Exception):
    """Ends a search whose time is up."""


class PricingProblem:
    """The records of one stratum, n >= 2k, on a scale where the mean weight is 1.

    Attributes
    ----------
    X : ndarray of shape (kinds, d)
    weights : ndarray of shape (kinds,)
        Weight of one copy, divided by `scale`.
    copies : ndarray of shape (kinds,)
    kind_of : ndarray of shape (n,)
        The kind of each record.
    cheap : ndarray of shape (kinds,)
        Sound prices from nearest neighbours.
    near : ndarray of shape (kinds, k)
        A kind and the kinds of its k - 1 nearest others: a group of k.
    """

    def __init__(self, X: Floats, weights: Floats, k: int) -> None:
        self.k = k
        self.equal = bool((weights == weights[0]).all())
        self.scale = float(weights[0] if self.equal else weights.mean())
        merged = np.column_stack([X, weights])
        found, first, self.kind_of, copies = np.unique(
            merged, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        self.kind_of = self.kind_of.ravel()
        self.n, self.n_kinds = len(X), len(found)
        self.copies = copies.astype(np.float64)
        self.X = np.ascontiguousarray(X[first])
        self.weights = weights[first] / self.scale
        # No group needs more than 2k - 1 copies of a kind, so no more enter the search.
        kept = np.minimum(copies, 2 * k - 1)
        self._kind = np.repeat(np.arange(self.n_kinds), kept)
        self._record = np.concatenate(([0], np.cumsum(kept)[:-1]))
        self._twin = (
            np.where(np.diff(self._kind, prepend=-1) == 0, np.arange(len(self._kind)), 0) - 1
        )
        self._table = np.ascontiguousarray(self.X[self._kind].T)
        self._weights = np.ascontiguousarray(self.weights[self._kind])
        self._find_neighbours()

    def _find_neighbours(self) -> None:
        k, n = self.k, len(self._kind)
        listed = 2 * k - 2 if self.equal else min(LISTED * k, n - 1)
        near, squares = nearest_others(np.ascontiguousarray(self._table.T), listed)
        first = self._record
        self._sums = np.zeros((2 * k - 1, n))  # of the nearest 0, 1, 2, ... squared distances
        np.cumsum(squares[:, : 2 * k - 2], axis=1, out=self._sums[1:].T)
        if self.equal:
            self.cheap = self._sums[k - 1, first] / (2 * k)
        else:
            self.cheap = weighted_prices(
                near[first], squares[first], self._weights, self.weights, listed == n - 1, k
            )
        self.near = np.column_stack([np.arange(self.n_kinds), self._kind[near[first, : k - 1]]])

    def costs(self, groups: Integers) -> Floats:
        """SSE of groups."""
        found: Floats = group_costs(self.X, self.weights, groups)
        return found

    def sizes_to_search(self, prices: Floats, cuts: Cuts) -> range:
        """Return the sizes at which a profitable group may exist if any does.

        Sum SSE(G - i) over the records i of a group of s + 1, each with weight W - w_i:
        sum (W - w_i) SSE(G - i) = (s - 1) W SSE(G), while the prices of G - i, summed likewise,
        make (s - 1) W y(G) + sum_i w_i y_i. So where no group of s makes a profit and
        sum_i w_i y_i >= 0, none of s + 1 does: size k decides. With equal weights a negative sum
        means a negative y(G), no profit either. Cuts spoil the argument.
        """
        if len(cuts.prices) or (not self.equal and (prices < 0).any()):
            return range(self.k, 2 * self.k)
        return range(self.k, self.k + 1)

    def profitable(
        self, prices: Floats, cuts: Cuts, most: int, over: Callable[[], bool]
    ) -> tuple[Integers, bool]:
        """Find every group of k to 2k - 1 whose prices exceed its cost and its charges.

        Groups that only seem so by rounding, or because charges are underestimated, may be among
        them. The search gives up a piece after `most` sets, and all once `over()`; the second
        answer says whether it came to its end.
        """
        found = [np.empty((0, 2 * self.k - 1), dtype=np.int64)]
        whole = True
        if not (prices > 0).any():
            return found[0], True
        charges = charges_of_pairs(self._record[cuts.triples], cuts.prices, len(self._kind))
        for size in self.sizes_to_search(prices, cuts):
            try:
                groups, ended = self._profitable(size, prices, charges, most, over)
            except _OverError:
                whole = False
                break
            wide = np.full((len(groups), 2 * self.k - 1), -1, dtype=np.int64)
            wide[:, :size] = np.sort(self._kind[groups], axis=1)
            found.append(wide)
            whole = whole and ended
        return np.concatenate(found), whole

    def _profitable(
        self,
        size: int,
        prices: Floats,
        charges: tuple[Integers, Integers, Floats],
        most: int,
        over: Callable[[], bool],
    ) -> tuple[Integers, bool]:
        offers = np.ascontiguousarray(prices[self._kind])
        terms = (self._table, self._weights, offers, self._weights * offers / (size - 1))
        grid = self._grid(size, float(offers.max()))

        def in_pieces(kernel: Callable[[tuple[int, int]], Any]) -> list[Any]:
            def work(first: int) -> Any:
                if over():
                    raise _OverError
                return kernel((first, min(first + PIECE, len(offers))))

            return each(work, range(0, len(offers), PIECE))

        if self.equal:
            # All of y_j enters the value of a set Q of r once for each other record of Q, and
            # r - 1 distances are at least the r - 1 smallest.
            r = np.arange(size)[:, None]
            shares = (r - 1) * offers * (size / (size - 1)) - 0.5 * self._sums[r[:, 0] - 1]
            shares += 2 * r * grid
            shares[:2] = 0.0
        else:
            shares = np.hstack(in_pieces(lambda p: best_shares(terms, size, grid, *p)))
        hoped = in_pieces(lambda p: best_hopes(terms, shares[size - 1], size, grid, *p))
        hopes = (np.concatenate([h[0] for h in hoped]), np.concatenate([h[1] for h in hoped]))
        twins = self._twin
        answers = in_pieces(
            lambda p: profitable_groups(terms, shares, hopes, charges, twins, size, grid, *p, most)
        )
        return np.concatenate([a[0] for a in answers]), all(a[1] for a in answers)

    def _grid(self, size: int, highest: float) -> float:
        """A power of two on which sums of a group's p are exact and p is still fine.

        No p exceeds `largest`; sums of fewer than 2^b of them stay below 2^52 grids if p itself
        stays below 2^(50 - b). The grid is 2^(b - 50) (1 + d / 4) of the largest or more, above
        the rounding errors of p, which are about (d + 8) 2^-52 of it.
        """
        largest = 2.0 * float(self._weights.max()) * highest * (1 + 1 / (size - 1))
        pairs = size * (size - 1) // 2
        bits = 50 - math.ceil(math.log2(pairs + 1)) - math.ceil(math.log2(1 + len(self._table) / 4))
        return math.ldexp(1.0, math.frexp(largest)[1] - bits)
