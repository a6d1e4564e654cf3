r"""Coverings: n groups of k that hold every record k times, with less loss than any grouping.

*The problem.* Memberships u of n records (of weight w) in centres v, with

    minimise sum_ij w_i u_ij |x_i - v_j|^2   subject to   sum_j u_ij = 1,
    s_j = sum_i u_ij whole,   0 <= u_ij <= s_j / k.

Assignments of records to centres with s_j records at centre j are the vertices of a transportation
polytope, so u is a mixture of them. Whichever is drawn, the same centres are released equally
often: who knows all but the draw names the source of a record released at j with probability
u_ij / s_j <= 1/k. A partition into groups of at least k is one choice (u is 0 or 1).

*Its optimum is a covering.* Let s and v be given. In units of 1/k, u is a flow from records that
send k each to centres that take k s_j, at most s_j on a pair: all whole numbers, so some optimal
flow f = k u is whole. Column j of f has sum k s_j and no entry above s_j, hence is a sum of s_j
sets of k records (deal its entries, record by record, to s_j sets in turn). Each of these sets may
have a centre of its own, its mean, at no higher cost and with s = 1. So the best memberships are
**n groups of k different records, every record in exactly k of them**, and cost 1/k of the sum of
their SSE. A group of m >= k records, in circular order, each with its k - 1 successors, is such a
covering, and costs at most its SSE.

*Its bound.* Let s be any positive numbers. Column j, divided by s_j, is a distribution with no
probability above 1/k, a mixture of uniform ones on k records. So u is a mixture of groups, and
costs at least what shares of groups cost that cover each record once: the programme that column
generation solves before cuts. Its value bounds memberships and partitions; cuts, partitions only.

*How it is found.* The cyclic covering of `Search`'s groups is annealed. Then column generation
gives prices, the bound, and a pool of groups. An integer programme takes whole multiples of them:
first beside the groups that the relaxed one takes k times, then in place of the groups of window
after window, where it is never worse. Tables too large for that are annealed in windows. Equal
records are one kind, as in `column_generation`: a kind of c records stands in groups k c times, at
most c times in each, and its places are dealt to the records in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import csr_array
from scipy.spatial import KDTree

from .._types import Floats, Integers
from ..exceptions import GroupSizeError
from ..kernels.bound import sums_over
from ..kernels.covering import anneal_covering, covering_costs, improve_covering
from ..kernels.groups import weighted_centres
from ..kernels.windows import balls, nearest_in_window, tile
from ..linear.rows import linprog, milp
from ..parallel import each
from .bound import ROUNDING, cheap_prices
from .cells import LARGE_WINDOW
from .column_generation import ColumnGeneration, PricingProblem, Proposal
from .refining import PIECES
from .search import EFFORTS, WHOLE_TABLE, Search, standard_moves

# Temperatures in the mean cost of a group, as in `search`. Groups that overlap have exchanges at
# nearly no cost, so a run ends five times colder than one of groups that do not.
RUN, ROUNDS = (2.0, 0.002), ((0.3, 0.003), (0.1, 0.001))
MOST_STEPS = 150  # of column generation
MOST_SETS = 400_000  # that its search looks at in a piece, or it ends
# Integer programmes: places in a window, rounds of windows, branches, groups to choose from. With
# twice the places, or columns, a programme for k = 5 takes minutes and gains little.
WINDOW, TURNS, MOST_NODES, MOST_COLUMNS = 768, 2, 5, 2_000
PRICED = {"quick": 2_000, "standard": 6_000, "thorough": 20_000}  # records times k - 2, at most


@dataclass(frozen=True, kw_only=True, eq=False)
class Covering:
    """Groups of k in which every record stands k times.

    Attributes
    ----------
    members : ndarray of shape (n, k)
        The records of each group; a record belongs to a group with membership 1/k.
    sse : float
        The expected sum of squares: 1/k of the groups' SSE.
    crisp : float
        The SSE of the grouping that it was found from.
    bound : float
        What no memberships with these probabilities, and no grouping, falls below.
    """

    members: Integers
    sse: float
    crisp: float
    bound: float

    def centres(self, X: Floats, weights: Floats) -> Floats:
        """Return the weighted mean of each group."""
        labels = np.repeat(np.arange(len(self.members)), self.members.shape[1])
        flat = self.members.ravel()
        means: Floats = weighted_centres(X[flat], weights[flat], labels, len(self.members))
        return means


def find_covering(
    X: Floats, weights: Floats, k: int, *, effort: str, seed: int, units: Integers | None = None
) -> Covering:
    """Find a covering with little loss, never above that of a `Search` of the same effort.

    With `units`, numbers of shape (n,), no group has two records of a unit; `Search` does not ask
    for that here, and may then lose less.
    """
    n = len(X)
    owner = np.arange(n) if units is None else np.unique(units, return_inverse=True)[1]
    apart = int(owner.max()) + 1 == n
    if (most := int(np.bincount(owner).max())) * k > n:
        raise GroupSizeError.crowded(k=k, most=most, n=n)
    if n < 2 * k:
        labels = np.zeros(n, dtype=np.int64)
    else:
        labels = Search(k, effort=effort, random_state=seed).fit_predict(X, sample_weight=weights)
    centres = weighted_centres(X, weights, labels, int(labels.max()) + 1)
    crisp = float(weights @ ((X - centres[labels]) ** 2).sum(axis=1))
    work = CoveringSearch(X - X.mean(axis=0), weights, k, np.random.default_rng(seed), owner)
    start = cyclic_covering(labels, k)
    work.offer(start if apart else separate_units(X, start, owner))
    bound = work.sse
    if n > k:
        moves = standard_moves(n) * EFFORTS[effort].moves
        bound = float(cheap_prices(X, weights, k).sum()) * (1.0 - ROUNDING)
        if n <= WHOLE_TABLE:
            work.run(moves / 8)
        work.rounds(moves / 8)
        if apart and n >= 2 * k and n * (k - 2) <= PRICED[effort]:
            bound = max(bound, work.generate_columns())
    return Covering(members=work.best, sse=work.sse, crisp=crisp, bound=min(bound, work.sse))


def cyclic_covering(labels: Integers, k: int) -> Integers:
    """Return the groups of each record and its k - 1 successors in its group of at least k."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    size = np.repeat(sizes, sizes)
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    within = np.arange(len(labels)) - start
    members: Integers = order[start[:, None] + (within[:, None] + np.arange(k)) % size[:, None]]
    return members


def separate_units(X: Floats, members: Integers, owner: Integers) -> Integers:
    """Exchange records between near groups until no group has two records of a unit.

    An exchange takes a record out of a group that has its unit twice, and makes no group worse.
    Where none is found all places are dealt anew, unit by unit, to the groups in turn: a unit has
    at most n of the n k places, so no two of them in a group.
    """
    members, (n, k) = members.copy(), members.shape
    groups = (np.argsort(members.ravel(), kind="stable") // k).reshape(n, k)  # of each record
    tree = KDTree(X)
    for g in range(n):
        while (at := _repeated(owner[members[g]])) >= 0:
            i = members[g, at]
            others = np.delete(owner[members[g]], at)
            for near in (32, n):
                h = np.unique(groups[tree.query(X[i], min(near, n))[1]])
                free = (owner[members[h]] == owner[i]).sum(axis=1) == 0
                fits = free[:, None] & ~np.isin(owner[members[h]], others)
                if fits.any():
                    break
            else:
                flat = np.repeat(np.argsort(owner, kind="stable"), k)
                return flat.reshape(k, n).T.copy()
            away = np.where(fits, ((X[members[h]] - X[i]) ** 2).sum(axis=2), np.inf)
            row, b = np.unravel_index(away.argmin(), away.shape)
            t, other = members[h[row], b], h[row]
            members[g, at], members[other, b] = t, i
            groups[i, groups[i] == g] = other
            groups[t, groups[t] == other] = g
    return members


def _repeated(owners: Integers) -> int:
    """Return the place of an entry that stands in a row before, or -1."""
    first = np.unique(owners, return_index=True)[1]
    left = np.setdiff1d(np.arange(len(owners)), first)
    return int(left[0]) if len(left) else -1


class CoveringSearch:
    """One table under search, and its best covering so far."""

    def __init__(
        self, X: Floats, weights: Floats, k: int, random: np.random.Generator, owner: Integers
    ) -> None:
        self.X, self.weights, self.k, self.random, self.owner = X, weights, k, random, owner
        self.sse, self.count = np.inf, min(2 * k + 14, 128, len(X) - 1)
        self.halt = np.zeros(1, dtype=np.uint8)

    def _seed(self) -> int:
        return int(self.random.integers(2**31))

    def offer(self, members: Integers) -> None:
        """Keep a covering if it is the best so far."""
        sse = float(covering_costs(self.X, self.weights, members).sum()) / self.k
        if sse < self.sse:
            self.best, self.sse = members, sse

    def run(self, moves: float) -> None:
        """Anneal the whole table, from a temperature at which its outliers still move."""
        members = self.best.copy()
        costs = covering_costs(self.X, self.weights, members)
        if self.sse > 0.0:
            near = nearest_in_window(self.X, self.count)
            anneal_covering(
                self.X, self.weights, self.owner, near, members, int(moves * len(members)),
                RUN[0] * float((costs**2).sum() / costs.sum()) / self.k,
                RUN[1] * float(costs.mean()), self._seed(), 0, self.halt,
            )  # fmt: skip
            self.offer(members)

    def rounds(self, moves: float) -> None:
        """Improve the groups of window after window, each round in other windows."""
        count = int(np.clip(moves / 250, 4, 30))
        for turn in range(count):
            largest, heat = (LARGE_WINDOW // 2 if turn % 2 else 256), ROUNDS[2 * turn >= count]
            self.offer(self._round(self.best.copy(), largest, moves / count, heat))

    def _round(
        self, members: Integers, largest: int, moves: float, heat: tuple[float, float]
    ) -> Integers:
        seed = self._seed()
        order, starts = cut_windows(self.X[members].mean(axis=1), largest, seed)
        cuts = np.linspace(0, len(starts) - 1, min(PIECES, len(starts) - 1) + 1).astype(np.int64)

        def improve(piece: tuple[int, int]) -> None:
            improve_covering(
                self.X, self.weights, self.owner, members, order, starts, piece[0], piece[1],
                self.count, moves, *heat, seed, self.halt,
            )  # fmt: skip

        each(improve, pairwise(cuts))
        return members

    def generate_columns(self) -> float:
        """Take the best groups that column generation finds, and return its bound."""
        problem = PricingProblem(self.X, self.weights, self.k)
        pool = CoveringPool(self, problem)
        bound = pool.generate()
        found = pool.covering()
        if found is not None:
            self.offer(pool.dealt(found))
        self.offer(pool.dealt(pool.improve(pool.kinds(self.best), self._seed())))
        return bound


class RootPrices(ColumnGeneration):
    """Column generation without cuts, whose bound holds for coverings; it counts its work."""

    steps = 0

    def _propose(self) -> Proposal | None:
        self.steps += 1
        over = self.steps > MOST_STEPS or self._most > MOST_SETS
        return None if over else super()._propose()

    def _cut(self, proposal: Proposal, values: list[float]) -> bool:  # noqa: ARG002
        return False


class CoveringPool:
    """Groups of k, as sorted rows of kinds, of which coverings are put together."""

    def __init__(self, table: CoveringSearch, problem: PricingProblem) -> None:
        self.problem, self.search = problem, table

    def kinds(self, members: Integers) -> Integers:
        """Return groups of records as sorted rows of kinds."""
        rows: Integers = np.sort(self.problem.kind_of[members], axis=1)
        return rows

    def dealt(self, rows: Integers) -> Integers:
        """Return groups of records: the places of a kind go to its records in turn."""
        problem, flat = self.problem, rows.ravel()
        records = np.argsort(problem.kind_of, kind="stable")
        copies = problem.copies.astype(np.int64)
        first = np.cumsum(copies) - copies
        order = np.argsort(flat, kind="stable")
        counts = np.bincount(flat, minlength=len(copies))
        turn = np.empty(len(flat), dtype=np.int64)
        turn[order] = np.arange(len(flat)) - np.repeat(np.cumsum(counts) - counts, counts)
        dealt: Integers = records[first[flat] + turn % copies[flat]].reshape(rows.shape)
        return dealt

    def generate(self) -> float:
        """Fill the pool by column generation; return the bound on memberships."""
        problem, k = self.problem, self.problem.k
        known = np.unique(self.kinds(self.search.best), axis=0)
        wide = np.full((len(known), 2 * k - 1), -1, dtype=np.int64)
        wide[:, :k] = known
        columns = RootPrices(problem, wide, lambda: np.inf)
        columns.run(lambda value: value)
        groups = columns.groups[(columns.groups >= 0).sum(axis=1) == k]
        held = np.concatenate([known, groups[:, :k]])
        self.rows, first = np.unique(held, axis=0, return_index=True)
        self.cost = problem.costs(self.rows)
        # What a group costs above its records' prices: those of the covering come first, so that
        # it can be put together again, then those that the prices nearly pay.
        excess = self.cost - sums_over(self.rows, columns.prices)
        self.excess = np.where(first < len(known), -np.inf, excess)
        m = len(self.rows)
        places = (np.repeat(np.arange(m), k), self.rows.ravel())  # a kind may have several of a row
        self.table = csr_array((np.ones(m * k), places), shape=(m, problem.n_kinds))
        rounding = ROUNDING * float(problem.copies @ np.abs(columns.prices))
        return problem.scale * (columns.value - rounding)

    def covering(self) -> Integers | None:
        """Round the programme over the pool: groups it takes k times, and the best of the rest."""
        problem, k = self.problem, self.problem.k
        wanted = problem.copies * k
        relaxed = linprog(self.cost, A_eq=self.table.T, b_eq=wanted, method="highs-ds")
        if relaxed.x is None:
            return None
        taken = np.where(relaxed.x > k - 1e-6, k, 0)
        rest = np.rint(wanted - self.table.T @ taken).astype(np.int64)
        chosen = np.repeat(self.rows, taken, axis=0)
        if rest.any():
            found = self._best(rest)
            if found is None:
                return None
            chosen = np.concatenate([chosen, found])
        return chosen

    def improve(self, rows: Integers, seed: int) -> Integers:
        """Put better groups of the pool in place of those of a window, for every window."""
        for turn in range(TURNS):
            largest = max(2, WINDOW // self.problem.k)
            order, starts = cut_windows(self.problem.X[rows].mean(axis=1), largest, seed + turn)
            parts = np.split(order, starts[1:-1])
            for part, found in zip(parts, each(lambda part: self._improved(rows[part]), parts)):
                rows[part] = found
        return rows

    def _improved(self, rows: Integers) -> Integers:
        found = self._best(np.bincount(rows.ravel(), minlength=self.problem.n_kinds))
        before = self.problem.costs(rows).sum() * (1 - 1e-12)
        return rows if found is None or self.problem.costs(found).sum() >= before else found

    def _best(self, wanted: Integers) -> Integers | None:
        """Return groups that hold each kind as often as wanted, at little cost; None if unknown."""
        inside = np.flatnonzero((wanted[self.rows] > 0).all(axis=1))
        kinds = np.flatnonzero(wanted)
        if not len(inside):
            return None
        inside = inside[np.argsort(self.excess[inside], kind="stable")[:MOST_COLUMNS]]
        found = milp(
            self.cost[inside],
            constraints=LinearConstraint(self.table[inside][:, kinds].T, *2 * [wanted[kinds]]),
            integrality=np.ones(len(inside)),
            bounds=Bounds(0, wanted.sum()),
            options={"node_limit": MOST_NODES, "mip_rel_gap": 1e-5},
        )
        if found.x is None:
            return None
        times = np.rint(found.x).astype(np.int64)
        kept: Integers = np.repeat(self.rows[inside], times, axis=0)
        whole = np.array_equal(np.bincount(kept.ravel(), minlength=len(wanted)), wanted)
        return kept if whole else None


def cut_windows(centres: Floats, largest: int, seed: int) -> tuple[Integers, Integers]:
    """Cut groups into windows of at most `largest`: their order, and where each starts."""
    if largest >= len(centres):
        return np.arange(len(centres)), np.array([0, len(centres)])
    order, starts = tile(centres, 16 * largest, seed)
    return order, balls(centres, order, starts, largest, seed)
