"""Column generation: the best prices, hence the best bound, that a linear programme can give.

Over all groups G of at least k records, the bound is the optimum of

    maximise sum_i y_i   subject to   sum_{i in G} y_i <= SSE(G) for every G,

the dual of choosing shares of groups that cover each record once. There are far too many groups,
so the programme knows some, is solved, and the *pricing problem* (see `pricing`) gives all groups
that its prices overpay; these are added, and so on. Prices move within a box around the best sound
ones (Marsten, Hogan and Blankenship 1975), because far from sound ones too many groups are
profitable. After every question the prices are lowered until they are sound again, so a valid bound
is at hand at any moment, and no tolerance of the solver enters it.

When the programme is solved, shares of groups may still be fractional. Subset-row cuts forbid some
of them, and their prices enter the bound: sum_i y_i - sum_c price_c, where a group is charged
for the cuts of which it holds two records or more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from .._types import Floats, Integers
from ..kernels.bound import (
    broken_cuts,
    cuts_hit,
    few_per_record,
    make_sound,
    memberships,
    sums_over,
)
from .pricing import Cuts, PricingProblem

__all__ = ["ColumnGeneration"]


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

    Parameters
    ----------
    problem : PricingProblem
    groups : ndarray of shape (m, 2k - 1)
        Groups to begin with, as sorted rows of kinds padded with -1; may be empty.
    left : callable
        Tells how many seconds are left; none or fewer to stop.
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

    def run(self, *, with_cuts: bool, note: Callable[[float], object]) -> None:
        """Raise the bound until nothing is to be gained, or time is up; `note` hears each value."""
        if self._unit <= 0.0:  # every record has k - 1 twins: the optimum is 0
            self.finished = True
            return
        near = NEAR if with_cuts else DONE
        values = [self.value]  # at each round of cuts
        while not self._over():
            proposal = self._propose()
            if proposal is None:
                return
            before = self.value
            learned = len(self.groups)
            whole = self._try(proposal)
            learned = len(self.groups) - learned
            note(self.value)
            gained = self.value - before
            settled = proposal.hoped - self.value <= near * self.value
            if settled and proposal.binding <= near * self.value:
                values.append(self.value)
                if with_cuts and self._cut(proposal, values):
                    continue
                if near <= DONE:
                    self.finished = True
                    return
                near /= 10
            elif settled:
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
        groups, whole = problem.profitable(prices, cuts, self._most, self._over)
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

    def _over(self) -> bool:
        return self.left() <= 0.0

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
