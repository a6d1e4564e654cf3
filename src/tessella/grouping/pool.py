"""Pooling: the best partition that can be put together from the groups of many.

Several searches of one table agree on most of it and differ in places, each better here and worse
there. Their groups are the columns of a set partitioning problem

    minimise sum_c SSE(c) x_c   subject to   sum over groups c with record i of x_c = 1,  x binary,

whose optimum is at least as good as every partition that went in. It is solved window by window
with HiGHS; a window grows while its problem stays easy. No clock decides, so that the same seed
gives the same answer on a slow machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csc_matrix

from .._types import Floats, Integers
from ..kernels.groups import renumber, weighted_centres
from ..kernels.windows import balls, rows_of_windows, tile
from ..parallel import each

__all__ = ["Pool"]


# Windows begin with this many records and grow until a problem needs more nodes or columns than
# these. HiGHS spends seconds in the root of a hard problem of 1,000 records and finds little.
FIRST_WINDOW = 256
MOST_NODES = 2
MOST_COLUMNS = 6000


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Columns that partition a window (none where none were found); easy if proved optimal."""

    columns: Integers
    easy: bool


class Pool:
    """Groups seen so far, each once, with its SSE."""

    def __init__(self, X: Floats, weights: Floats, k: int, *, largest: int = 2**62) -> None:
        self.X, self.weights, self.k, self.largest = X, weights, k, largest
        self.groups: dict[bytes, float] = {}

    def add(self, labels: Integers) -> None:
        """Add the groups of a partition, and each group that is one record short of them."""
        order = np.argsort(labels, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            if not self._hold(group):
                continue
            # A group of more than k often misses an optimum by one record that another wants.
            for a in range(len(group) if len(group) > self.k else 0):
                self._hold(np.delete(group, a))

    def _hold(self, group: Integers) -> bool:
        key = group.tobytes()
        if key in self.groups:
            return False
        own, weights = self.X[group], self.weights[group]
        centre = own[0] + np.average(own - own[0], axis=0, weights=weights)
        self.groups[key] = float(weights @ ((own - centre) ** 2).sum(axis=1))
        return True

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
                window, growing, turn = (
                    window / np.sqrt(2.0) if growing else window,
                    False,
                    turn + 1,
                )
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
        total = 0.0
        for group in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            total += self.groups[group.tobytes()]
        return total

    def _windows(self, labels: Integers, window: int, seed: int) -> list[Integers]:
        """Cut the table into windows of whole groups with about `window` records."""
        n_groups = int(labels.max()) + 1
        if window >= len(labels):
            return [np.arange(len(labels))]
        largest = max(2, window * n_groups // len(labels))
        centres = weighted_centres(self.X, self.weights, labels, n_groups)
        order, starts = tile(centres, 16 * largest, seed)
        starts = balls(centres, order, starts, largest, seed)
        rows, starts = rows_of_windows(labels, n_groups, order, starts)
        return [np.sort(part) for part in np.split(rows, starts[1:-1])]


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
