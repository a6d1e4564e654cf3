"""Column generation: the best prices, hence the best bound, that a linear programme can give.

Over all groups G of at least k records, the bound is the optimum of

    maximise sum_i y_i   subject to   sum_{i in G} y_i <= SSE(G) for every G,

the dual of choosing shares of groups that cover each record once. There are far too many groups,
so the programme knows some, is solved, and the *pricing problem* gives all groups that its prices
overpay; these are added, and so on. Prices move within a box around the best sound ones (Marsten,
Hogan and Blankenship 1975), because far from sound ones too many groups are profitable. After
every question the prices are lowered until they are sound again, so a valid bound is at hand at any
moment, and no tolerance of the solver enters it.

When the programme is solved, shares of groups may still be fractional. Subset-row cuts forbid some
of them, and their prices enter the bound: sum_i y_i - sum_c price_c, where a group is charged
for the cuts of which it holds two records or more.

The pricing problem finds every group worth more than it costs. Identical records (same values, same
weight) are merged into one *kind* with a number of copies: by symmetry they may as well offer the
same price, and a table of integers with many duplicates becomes small. Groups are rows of kinds,
padded with -1; a kind may come up more than once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from .._types import Floats, Integers
from ..kernels import neighbours
from ..kernels.bound import (
    broken_cuts,
    charges_of_pairs,
    cuts_hit,
    few_per_record,
    group_costs,
    make_sound,
    memberships,
    sums_over,
    weighted_prices,
)
from ..kernels.pricing import best_hopes, best_shares, profitable_groups
from ..linear.rows import linprog
from ..parallel import each

PIECE = 64  # records whose root pairs make one piece of work
LISTED = 4  # neighbours listed for the cheap bound with unequal weights, in multiples of k
NEIGHBOUR_PIECES = 256  # of a search for neighbours: a fixed number, whatever the number of cores


def nearest_others(X: Floats, count: int) -> tuple[Integers, Floats]:
    """Find row numbers and squared distances, (n, count), of the nearest others of each record.

    The nearest is first, of equally near ones the lowest row.
    """
    n = len(X)
    remaining = neighbours.all_rows(X)
    rows, squares = np.empty((n, count), dtype=np.int64), np.empty((n, count))

    def find(piece: tuple[int, int]) -> None:
        neighbours.nearest_others(remaining, *piece, rows, squares)

    each(find, pairwise(np.unique(np.linspace(0, n, NEIGHBOUR_PIECES + 1).astype(np.int64))))
    return rows, squares


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """Subset-row cuts and what each charges."""

    triples: Integers  # (cuts, 3), kinds
    prices: Floats  # (cuts,)


class _OverError(Exception):
    """Ends a search whose time is up."""


class PricingProblem:
    """The records of one stratum, n >= 2k, on a scale where the mean weight is 1.

    `X`, `weights` (of one copy, divided by `scale`) and `copies` are of kinds; `cheap` are sound
    prices of them from nearest neighbours, and a row of `near` is a kind with the kinds of its
    k - 1 nearest others: a group of k. `kind_of` has the kind of each record.
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
        same = np.diff(self._kind, prepend=-1) == 0
        self._twin = np.where(same, np.arange(len(same)), 0) - 1
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


# None of these numbers enters the validity of a bound, only how soon it rises. They were set by
# hand, and what happens if one is doubled was not measured.
#
# The box around sound prices, as a multiple of a record's cheap price and its surroundings'. It
# grows while proposals keep their word and shrinks when they do not, so the first size matters
# little.
FIRST_REACH, LEAST_REACH, MOST_REACH = 0.3, 0.03, 4.0
# How far a cut's price may move, as a multiple of the same.
CUT_REACH = 10.0
# Sets that a piece of the search for profitable groups may look at, at first; fourfold when a
# search ends there although few groups were found.
FIRST_MOST = 100_000
# Groups, and cuts, added at once that share a record.
GROUPS_PER_RECORD, CUTS_PER_RECORD = 10, 3
# Groups known for each kind of record before the least useful half is forgotten.
GROUPS_KNOWN = 50
# How much a cut must be broken to be added.
LEAST_EXCESS = 0.01
# How near programme and bound are, relatively, when cuts are sought, and at the end.
NEAR, DONE = 1e-3, 1e-5
# Rounds of cuts that together must gain a relative DONE, or no more are sought.
PATIENCE = 8
# Prices are lowered by this share of the mean price, so that groups at their cost stay silent.
QUIET = 1e-9


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What the linear programme proposes."""

    prices: Floats
    cut_prices: Floats
    hoped: float  # the bound if all these prices were sound
    binding: float  # how much the box holds them back
    groups: Integers  # that the programme saw
    shares: Floats


class ColumnGeneration:
    """Raise prices; `value` is a valid bound after every step.

    `groups` to begin with are sorted rows of kinds, (m, 2k - 1), padded with -1; `left` returns how
    many seconds are left.
    """

    def __init__(
        self, problem: PricingProblem, groups: Integers, left: Callable[[], float]
    ) -> None:
        self.problem, self.left = problem, left
        self.prices = problem.cheap
        self.cuts = Cuts(triples=np.empty((0, 3), np.int64), prices=np.empty(0))
        self.value = self._worth(self.prices, self.cuts.prices)
        self.finished = False
        self.groups, self.costs = groups[:0], np.empty(0)
        self._known: set[bytes] = set()
        near = np.full((problem.n_kinds, 2 * problem.k - 1), -1, dtype=np.int64)
        near[:, : problem.k] = np.sort(problem.near, axis=1)
        self._learn(near)
        self._learn(groups)
        self._unit = self.value / problem.n
        self._reach, self._most = FIRST_REACH, FIRST_MOST
        self._spread = self._surroundings()

    def run(self, note: Callable[[float], object]) -> None:
        """Raise the bound until nothing is gained or time is up; `note` is given each value."""
        if self._unit <= 0.0:  # every record has k - 1 twins: the optimum is 0
            self.finished = True
            return
        near, values = NEAR, [self.value]  # values at each round of cuts
        while self.left() > 0.0:
            proposal = self._propose()
            if proposal is None:
                return
            before = self.value
            learned = len(self.groups)
            whole = self._try(proposal)
            learned = len(self.groups) - learned
            note(self.value)
            gained = self.value - before
            reached = proposal.hoped - self.value <= near * self.value
            if reached and proposal.binding <= near * self.value:
                values.append(self.value)
                if self._cut(proposal, values):
                    continue
                if near <= DONE:
                    self.finished = True
                    return
                near /= 10
            elif reached:
                self._reach = min(self._reach * 2.0, MOST_REACH)
            elif gained > 0.5 * (proposal.hoped - before):
                self._reach = min(self._reach * 1.3, MOST_REACH)
            elif not whole and (learned < self.problem.n_kinds or self._reach <= LEAST_REACH):
                self._most *= 4  # not many groups are overpaid, the search is just long
            elif gained <= 0.0:
                self._reach = max(self._reach * 0.6, LEAST_REACH)

    def _propose(self) -> Proposal | None:
        """Solve the programme over the known groups, prices in the box around the sound ones."""
        problem, cuts, n = self.problem, self.cuts, self.problem.n_kinds
        box = self._reach * self._spread
        cut_box = CUT_REACH * self._spread[cuts.triples].max(axis=1, initial=0.0)
        hits = self._hits(self.groups)
        slack = self.costs - sums_over(self.groups, self.prices) + hits @ cuts.prices
        room = sums_over(self.groups, box) + hits @ np.minimum(cuts.prices, cut_box)
        seen = np.flatnonzero(slack < room)
        groups = self.groups[seen]
        holds = groups >= 0
        starts = np.concatenate([[0], np.cumsum(holds.sum(axis=1))])
        members = csr_array((np.ones(starts[-1]), groups[holds], starts), shape=(len(groups), n))
        centre = np.concatenate([self.prices, cuts.prices]) / self._unit
        radius = np.concatenate([box, cut_box]) / self._unit
        low = centre - radius
        low[n:] = np.maximum(low[n:], 0.0)
        worth = np.concatenate([problem.copies, -np.ones(len(cuts.prices))])
        for method in ("highs-ipm", "highs-ds"):
            answer = linprog(
                -worth,
                A_ub=hstack([members, -hits[seen]], format="csr"),
                b_ub=self.costs[seen] / self._unit,
                bounds=np.column_stack([low, centre + radius]),
                method=method,
                options={"time_limit": max(self.left(), 0.0)},
            )
            if answer.status == 0:
                break
        else:
            return None
        pull = np.abs(answer.upper.marginals)
        pull[:n] += np.abs(answer.lower.marginals[:n])
        return Proposal(
            prices=answer.x[:n] * self._unit,
            cut_prices=np.maximum(answer.x[n:], 0.0) * self._unit,
            hoped=-answer.fun * self._unit,
            binding=float(pull @ radius) * self._unit,
            groups=groups,
            shares=-answer.ineqlin.marginals,
        )

    def _try(self, proposal: Proposal) -> bool:
        """Find what the proposal overpays, learn it, and keep the proposal if its bound is best.

        Returns whether the search was exhaustive; only then is there a bound.
        """
        problem = self.problem
        prices = proposal.prices - QUIET * self._unit
        cuts = Cuts(triples=self.cuts.triples, prices=proposal.cut_prices)
        groups, whole = problem.profitable(prices, cuts, self._most, lambda: self.left() <= 0.0)
        profits = sums_over(groups, prices) - problem.costs(groups)
        profits -= self._hits(groups) @ cuts.prices
        sizes = (groups >= 0).sum(axis=1)
        order = np.argsort(-profits / sizes, kind="stable")[: (profits > 0.0).sum()]
        groups, profits = groups[order], profits[order]
        self._learn(groups[few_per_record(groups, problem.n_kinds, GROUPS_PER_RECORD)])
        if not whole:
            return False
        prices = make_sound(prices, problem.copies, groups, profits)
        value = self._worth(prices, cuts.prices)
        if value > self.value:
            self.prices, self.cuts, self.value = prices, cuts, value
        return True

    def _cut(self, proposal: Proposal, values: list[float]) -> bool:
        """Add cuts that the proposal's shares break; return whether any is new."""
        if len(values) > PATIENCE and values[-1] - values[-1 - PATIENCE] < DONE * self.value:
            return False
        n = self.problem.n_kinds
        used = proposal.shares > 1e-7
        groups = proposal.groups[used]
        single = self.problem.copies == 1
        triples, excess = broken_cuts(
            groups, proposal.shares[used], *memberships(groups, n), single, LEAST_EXCESS
        )
        useful = self.cuts.prices > 0.0
        old, prices = self.cuts.triples[useful], self.cuts.prices[useful]
        triples = triples[np.argsort(-excess, kind="stable")]
        known = {cut.tobytes() for cut in old}
        triples = triples[[cut.tobytes() not in known for cut in triples]]
        triples = triples[few_per_record(triples, n, CUTS_PER_RECORD)]
        self.cuts = Cuts(
            triples=np.concatenate([old, triples]),
            prices=np.concatenate([prices, np.zeros(len(triples))]),
        )
        self._reach = max(self._reach, FIRST_REACH)
        return len(triples) > 0

    def _learn(self, groups: Integers) -> None:
        """Add groups that the programme does not know; forget some if they become too many."""
        new = []
        for row, group in enumerate(groups):
            key = group.tobytes()
            if key not in self._known:
                self._known.add(key)
                new.append(row)
        self.groups = np.concatenate([self.groups, groups[new]])
        self.costs = np.concatenate([self.costs, self.problem.costs(groups[new])])
        if len(self.groups) > GROUPS_KNOWN * self.problem.n_kinds + 1000:
            slack = self.costs - sums_over(self.groups, self.prices)
            kept = np.sort(np.argsort(slack, kind="stable")[: len(slack) // 2])
            self.groups, self.costs = self.groups[kept], self.costs[kept]
            self._known = {group.tobytes() for group in self.groups}

    def _hits(self, groups: Integers) -> csr_array:
        """Which cuts charge which groups, as a matrix of zeros and ones."""
        n_cuts = len(self.cuts.triples)
        starts, hit = cuts_hit(
            groups, *memberships(self.cuts.triples, self.problem.n_kinds), n_cuts
        )
        return csr_array((np.ones(len(hit)), hit, starts), shape=(len(groups), n_cuts))

    def _worth(self, prices: Floats, cut_prices: Floats) -> float:
        return float(self.problem.copies @ prices - cut_prices.sum())

    def _surroundings(self) -> Floats:
        """How far a kind's price may sensibly move: as far as its own and its neighbours' go."""
        cheap, near = self.problem.cheap, self.problem.near
        out = cheap[near].mean(axis=1)
        into, count = np.zeros(len(cheap)), np.zeros(len(cheap))
        np.add.at(into, near[:, 1:], cheap[:, None])
        np.add.at(count, near[:, 1:], 1.0)
        spread: Floats = np.maximum(out, into / np.maximum(count, 1.0))
        return spread
