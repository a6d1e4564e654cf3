"""Refine groupings: dissolve and shrink the groups of one, or recombine the groups of many.

Pooling: several searches of one table agree on most of it and differ in places, each better here
and worse there. Their groups are the columns of a set partitioning problem

    minimise sum_c SSE(c) x_c   subject to   sum over groups c with record i of x_c = 1,  x binary,

whose optimum is at least as good as every partition that went in. It is solved window by window
with HiGHS; a window grows while its problem stays easy. No clock decides, so that the same seed
gives the same answer on a slow machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import csc_matrix
from scipy.spatial import cKDTree

from .._estimator import clone
from .._parameters import NONE, Instance
from .._types import Bytes, Floats, Integers
from ..diversity import Diversity
from ..kernels.decompose import decompose, partition_of, shrink
from ..kernels.groups import renumber, weighted_centres
from ..kernels.windows import balls, improve_windows, number_by_window, rows_of_windows, tile
from ..linear.rows import linprog, milp
from ..parallel import each, n_cores
from .base import Grouping, Units
from .diverse_windows import improve_diverse_windows

NEAR = 16  # centres around a record whose groups it may join
GAIN = 1e-9  # share of the SSE that a sweep must gain to be followed by another


class IGD(Grouping):
    r"""Iterative group decomposition: refine a grouping while its squared error falls.

    Lowers :math:`\mathrm{SSE} = \sum_G \sum_{i \in G} w_i \lVert x_i - \bar x_G \rVert^2` over
    partitions into groups of k or more, from a given one. Never worse than its start.

    Parameters
    ----------
    k : int
        The least number of records in a group.
    start : Grouping, optional
        The grouping to refine; its own k is replaced. `MDAV` if not given.

    See Also
    --------
    Search : moves, swaps and more, from several starts.

    Notes
    -----
    A sweep has two steps [1]_; both take the groups with the largest error first. *Decompose*: a
    group is dissolved if its records cost less in the groups around it: a record of weight v that
    joins a group of weight W and centre c costs :math:`\frac{vW}{v+W} \lVert x - c \rVert^2`.
    *Shrink*: a group of more than k gives away the record that gains most, as long as one does. A
    group that reaches 2k is split along a short path through its records, and what the split gains
    counts for the move. Sweeps end when they gain nothing.

    A record may join the groups of the 16 nearest centres, found in a tree, where [1]_ looks at
    all groups: hardly ever another choice, and a sweep is near-linear in n.

    References
    ----------
    .. [1] L. Khomnotai, J.-L. Lin, Z.-Q. Peng, A. S. Santra (2018), "Iterative group decomposition
       for refining microaggregation solutions", Symmetry 10(7), 262.

    Examples
    --------
    >>> from tessella.grouping import IGD, OrderedGrouping
    >>> X = [[0, 0], [5, 5], [0, 1], [6, 5], [1, 0], [5, 6], [9, 0], [9, 1]]
    >>> IGD(k=2, start=OrderedGrouping(order="zscore")).fit(X).labels_.tolist()
    [0, 1, 0, 1, 0, 1, 2, 2]
    """

    _parameters: ClassVar[dict[str, Any]] = {
        "start": [Instance(Grouping, "a grouping, such as VMDAV()"), NONE]
    }

    def __init__(self, k: int = 3, *, start: Grouping | None = None) -> None:
        super().__init__(k)
        self.start = start

    def _group(self, X: Floats, weights: Floats, k: int, _: np.random.Generator) -> Integers:
        from .mdav import MDAV

        start = MDAV() if self.start is None else clone(self.start)
        labels = start.set_params(k=k).fit(X, sample_weight=weights).labels_
        return refine(X, weights, labels, k)

    def _group_units(
        self, X: Floats, weights: Floats, k: int, random: np.random.Generator, units: Integers
    ) -> Integers:
        from .mdav import MDAV
        from .units import polish

        start = MDAV() if self.start is None else clone(self.start)
        labels = start.set_params(k=k).fit(X, sample_weight=weights, units=units).labels_
        return polish(X, weights, labels, k, random, units)


def refine(X: Floats, weights: Floats, labels: Integers, k: int) -> Integers:
    """Decompose and shrink groups of k or more until a sweep gains nothing."""
    before = np.inf
    errors = group_errors(X, weights, labels)
    while before - errors.sum() > GAIN * errors.sum():
        before = errors.sum()
        for step in (decompose, shrink):
            partition = partition_of(X, weights, labels, k)
            near = nearest_groups(X, partition.centres[: len(errors)])
            worst_first = np.argsort(-errors, kind="stable")
            step(X, weights, partition, near, worst_first, k)
            labels = renumber(partition.labels, len(X) // k)
            errors = group_errors(X, weights, labels)
    return labels


def group_errors(X: Floats, weights: Floats, labels: Integers) -> Floats:
    """Return the SSE of each group."""
    centres = weighted_centres(X, weights, labels, int(labels.max()) + 1)
    squares = np.square(X - centres[labels]).sum(axis=1)
    return np.bincount(labels, weights=weights * squares).astype(np.float64)


def nearest_groups(X: Floats, centres: Floats) -> Integers:
    """Return the groups with the nearest centres to each record, shape (n, up to NEAR + 1).

    Of groups with equal centres only the first is listed: a heap of equal records neither floods
    the lists nor slows the tree.
    """
    distinct, groups = np.unique(centres, axis=0, return_index=True)
    count = min(NEAR + 1, len(distinct))
    near = cKDTree(distinct).query(X, count, workers=n_cores())[1].reshape(len(X), count)
    found: Integers = groups[near].astype(np.int64)
    return found


# Windows begin with this many records and grow until a problem needs more nodes or columns than
# these. HiGHS spends seconds in the root of a hard problem of 1,000 records and finds little.
FIRST_WINDOW = 256
MOST_NODES = 2
MOST_COLUMNS = 6000
# Pieces of a round that cores take in turn; a fixed number, so that answers do not depend on cores.
PIECES = 64
AT_ONCE = 1_000_000  # numbers of groups that are held together: 8 megabytes
MOST_SPARED = 4  # times k: larger groups of few units are pooled as they are


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Columns that partition a window (none where none were found); easy if proved optimal."""

    columns: Integers
    easy: bool


class Pool:
    """Groups seen so far, each once, with its SSE."""

    def __init__(
        self, X: Floats, weights: Floats, k: int, *, units: Units = None, largest: int = 2**62,
        diversity: Diversity | None = None,
    ) -> None:  # fmt: skip
        self.X, self.weights, self.k, self.largest = X, weights, k, largest
        self.units, self.diversity = units, diversity
        self.groups: dict[bytes, float] = {}

    def add(self, labels: Integers) -> None:
        """Add the groups of a partition, and each group that is one record short of them."""
        order = np.argsort(labels, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            if group.tobytes() in self.groups:
                continue
            self._hold(group[None])
            # A group of more than k often misses an optimum by one record that another wants.
            if len(spared := self._spared(group)):
                others = np.arange(len(group) - 1)
                step = max(1, AT_ONCE // (len(group) * self.X.shape[1]))
                for start in range(0, len(spared), step):
                    without = np.array(spared[start : start + step])[:, None]
                    self._hold(group[others + (others >= without)])

    def _spared(self, group: Integers) -> Sequence[int]:
        """Return the places of records without which it is a group (of k units, if given)."""
        if len(group) <= self.k:
            return ()
        if self.diversity is not None:
            if len(group) > MOST_SPARED * self.k:
                return ()
            places = range(len(group))
            return [a for a in places if self.diversity.allows(np.delete(group, a), self.k)]
        if self.units is None:
            return range(len(group))
        if len(group) > MOST_SPARED * self.k:
            return ()
        own = self.units[group]
        counts = np.bincount(own)
        return [a for a, u in enumerate(own) if counts[u] > 1 or (counts > 0).sum() > self.k]

    def _hold(self, groups: Integers) -> None:
        """Hold groups of one size, of shape (count, size), each with its SSE."""
        own, weights = self.X[groups], self.weights[groups]
        first, heavy = own[:, :1], weights[:, :, None]
        centre = first + ((own - first) * heavy).sum(axis=1, keepdims=True) / heavy.sum(
            axis=1, keepdims=True
        )
        squares = ((own - centre) ** 2).sum(axis=2)
        for group, weight, square in zip(groups, weights, squares):
            key = group.tobytes()
            if key not in self.groups:
                self.groups[key] = float(weight @ square)

    def recombine(self, labels: Integers, seed: int) -> Integers:
        """Improve a partition with the pool's groups, in windows that grow while that is easy."""
        self._build()
        window, turn, growing = float(min(len(labels), FIRST_WINDOW)), 0, True
        while growing or turn < 2:
            rows = self._windows(labels, int(window), seed)
            answers = each(self._solve, rows)
            for own, answer in zip(rows, answers):
                labels = self._take(labels, own, answer)
            whole = window >= min(len(labels), self.largest)
            if growing and all(answer.easy for answer in answers):
                if whole:
                    break
                window = min(len(labels), self.largest, window * np.sqrt(2.0))
            else:  # too hard: two more tilings of the size that was still easy
                window /= np.sqrt(2.0) if growing else 1.0
                growing, turn = False, turn + 1
            seed += 1
        return labels

    def _build(self) -> None:
        """Lay the groups out as the columns of a sparse table, records as rows."""
        self.members = [np.frombuffer(key, dtype=np.int64) for key in self.groups]
        self.cost = np.fromiter(self.groups.values(), dtype=np.float64)
        starts = np.cumsum([0, *map(len, self.members)])
        self.size = np.diff(starts)
        self.table = csc_matrix(
            (np.ones(starts[-1]), np.concatenate(self.members), starts),
            shape=(len(self.X), len(self.cost)),
        )

    def _solve(self, rows: Integers) -> Answer:
        """Find the best partition of a window's records into groups of the pool."""
        inside = np.zeros(len(self.X))
        inside[rows] = 1.0
        columns = np.flatnonzero(self.table.T @ inside == self.size)
        if len(columns) > MOST_COLUMNS:
            return Answer(columns=columns[:0], easy=False)
        answer = partition(self.table[rows][:, columns], self.cost[columns])
        return Answer(columns=columns[answer.columns], easy=answer.easy)

    def _take(self, labels: Integers, rows: Integers, answer: Answer) -> Integers:
        """Put an answer in place if it is better than what is there."""
        if not len(answer.columns):
            return labels
        if self.cost[answer.columns].sum() >= self._cost_of(labels, rows) * (1 - 1e-12):
            return labels
        fresh = int(labels.max()) + 1
        labels = labels.copy()
        for number, column in enumerate(answer.columns):
            labels[self.members[column]] = fresh + number
        return renumber(labels, fresh + len(answer.columns))

    def _cost_of(self, labels: Integers, rows: Integers) -> float:
        order = rows[np.argsort(labels[rows], kind="stable")]
        groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
        return sum(self.groups[group.tobytes()] for group in groups)

    def _windows(self, labels: Integers, window: int, seed: int) -> list[Integers]:
        """Cut the table into windows of whole groups with about `window` records."""
        n_groups = int(labels.max()) + 1
        if window >= len(labels):
            return [np.arange(len(labels))]
        largest = max(2, window * n_groups // len(labels))
        rows, starts = cut_windows(self.X, self.weights, labels, largest, seed)
        return [np.sort(part) for part in np.split(rows, starts[1:-1])]


def cut_windows(
    X: Floats, weights: Floats, labels: Integers, largest: int, seed: int
) -> tuple[Integers, Integers]:
    """Cut a table into windows of up to `largest` groups: rows by window, and where each starts."""
    n_groups = int(labels.max()) + 1
    centres = weighted_centres(X, weights, labels, n_groups)
    order, starts = tile(centres, 16 * largest, seed)
    starts = balls(centres, order, starts, largest, seed)
    rows, starts = rows_of_windows(labels, n_groups, order, starts)
    return rows, starts


def near_count(k: int) -> int:
    """Return how many near records a move looks at."""
    return min(2 * k + 14, 128)


def anneal_windows(
    X: Floats,
    weights: Floats,
    labels: Integers,
    k: int,
    units: Units,
    *,
    largest: int,
    moves: float,
    heat: tuple[float, float],
    seed: int,
    halt: Bytes,
    diversity: Diversity | None = None,
    done: Callable[[float], None] | None = None,
) -> Integers:
    """Anneal a partition in the windows of a fresh tiling, of up to `largest` groups.

    `moves` proposals a record; `heat` is the first and the last temperature, in the mean cost of a
    record. No window is worse than before. `diversity` has k units among its conditions. `done` is
    told the share of the windows that are done.
    """
    rows, starts = cut_windows(X, weights, labels, largest, seed)
    labels = number_by_window(labels, rows, starts, k)
    cuts = np.linspace(0, len(starts) - 1, min(PIECES, len(starts) - 1) + 1).astype(np.int64)

    def improve(piece: tuple[int, int]) -> None:
        if diversity is not None:
            improve_diverse_windows(
                X, weights, labels, rows, starts, range(*piece), k, diversity, near_count(k),
                max(1, int(moves)), heat, seed, halt,
            )  # fmt: skip
            return
        improve_windows(
            X, weights, labels, rows, starts, piece[0], piece[1], k, near_count(k),
            max(1, int(moves)), *heat, seed, halt, units,
        )  # fmt: skip

    each(improve, pairwise(cuts), done=done)
    return renumber(labels, len(labels))


def partition(table: csc_matrix, cost: Floats) -> Answer:
    """Choose columns that cover every row exactly once at the least cost."""
    rows = np.ones(table.shape[0])
    relaxed = linprog(cost, A_eq=table, b_eq=rows, bounds=(0, None), method="highs")
    if relaxed.x is None:
        return Answer(columns=np.empty(0, dtype=np.int64), easy=False)
    if np.abs(relaxed.x - relaxed.x.round()).max() < 1e-7:
        return Answer(columns=np.flatnonzero(relaxed.x > 0.5), easy=True)
    found = milp(
        cost,
        constraints=LinearConstraint(table, rows, rows),
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, 1),
        options={"node_limit": MOST_NODES, "mip_rel_gap": 1e-6},
    )
    if found.x is None:
        return Answer(columns=np.empty(0, dtype=np.int64), easy=False)
    return Answer(columns=np.flatnonzero(found.x > 0.5), easy=bool(found.status == 0))
