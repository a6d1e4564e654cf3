r"""Local recoding: each group of at least k records is released as its least common ancestors.

Groups come from several starts: the classes of the best full-domain recoding, split further; the
whole table, split from above; and `Search` on coordinates in which the squared distance of two
records is the sum of their keys' penalties. Each is improved by moves, swaps and dissolved groups
that lower the true loss, and the best is taken: it is never worse than full-domain recoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Integers, Truths
from ..grouping.search import Search
from ..kernels.local_recoding import (
    KeyGroups,
    KeyRecords,
    Trees,
    dissolve_sweep,
    improve_sweep,
    link_groups,
    split_down,
)
from .coded import CodedKey

REACH = 4  # neighbours on each side, in an order of records, whose groups are looked at
# Sweeps over all records without gain after which a start is done, and all sweeps at most.
SWEEPS = {"quick": (3, 12), "standard": (8, 60), "thorough": (16, 300)}
DIMENSIONS = 12  # of the coordinates for Search
HASHED = 512  # coordinates of nodes, above which several share one


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalGroups:
    """A partition of the records, and what it loses.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The group of each record.
    emptied : ndarray of shape (n,)
        The records whose keys are emptied.
    loss : float
        The sum of penalties of known cells, and of squared deviations of numbers.
    start : str
        Which start led there.
    """

    labels: Integers
    emptied: Truths
    loss: float
    start: str


def stacked(keys: Sequence[CodedKey]) -> Trees:
    """Return the hierarchies of keys as arrays of one size."""
    levels = np.array([key.n_levels for key in keys], dtype=np.int64)
    leaves = max(key.table.shape[1] for key in keys)
    table = np.zeros((len(keys), int(levels.max()), leaves), dtype=np.int32)
    penalty = np.zeros((len(keys), max(len(key.penalty) for key in keys)))
    for j, key in enumerate(keys):
        table[j, : key.n_levels, : key.table.shape[1]] = key.table
        penalty[j, : len(key.penalty)] = key.penalty
    return Trees(table, levels, penalty)


class LocalRecoder:
    """Searches groups of records by the loss of their least common ancestors.

    Parameters
    ----------
    keys : sequence of CodedKey
        The keys; without any, only numbers count.
    numbers : ndarray of shape (n, q)
        Numbers, in standard deviations.
    k : int
        How many records, or units, a group has.
    parts : ndarray of shape (n,)
        What groups must not cross.
    weights : ndarray of shape (n,)
        The weight of each record.
    units : ndarray of shape (n,), optional
        Whom k counts.
    effort : {"quick", "standard", "thorough"}
        How many sweeps.
    random_state : int or None
        What draws the orders of records.
    """

    def __init__(
        self,
        keys: Sequence[CodedKey],
        numbers: Floats,
        *,
        k: int,
        parts: Integers,
        weights: Floats,
        units: Integers | None,
        effort: str,
        random_state: Any,
    ) -> None:
        self.keys, self.k, self.parts, self.effort = tuple(keys), k, parts, effort
        self.trees = stacked(self.keys)
        self.seed = int(random_state.randint(2**31 - 1))
        self.random = np.random.default_rng(self.seed)
        self.records = KeyRecords(
            leaves=np.ascontiguousarray(np.column_stack([k.codes for k in keys]), dtype=np.int32),
            mass=np.column_stack([weights * key.known for key in keys]),
            numbers=np.ascontiguousarray(numbers),
            weights=np.ascontiguousarray(weights),
            units=np.empty(0, dtype=np.int64) if units is None else units.astype(np.int64),
        )
        self.units = units

    def best_of(self, starts: Sequence[tuple[str, Integers, Truths]], budget: int) -> LocalGroups:
        """Improve each start, given by its groups and emptied records, and return the best."""
        found = [
            self.improve(name, self.split(own, gone), gone, budget) for name, own, gone in starts
        ]
        return min(found, key=lambda one: one.loss)

    def starts(self) -> list[tuple[str, Integers, Truths]]:
        """Return the starts that need no lattice: parts, and groups of Search."""
        n = len(self.parts)
        none = np.zeros(n, dtype=bool)
        search = Search(self.k, effort="quick", random_state=self.seed)
        search.fit(
            self.coordinates(), sample_weight=self.records.weights, strata=self.parts,
            units=self.units,
        )  # fmt: skip
        return [("parts", self.parts, none), ("search", search.labels_, none)]

    def coordinates(self) -> Floats:
        """Return coordinates whose squared distances are sums of penalties and of squares.

        One coordinate for each node n, of size sqrt((penalty of its parent - its own) / 2): two
        leaves differ in those from each up to their ancestor, which sum to its penalty. Many nodes
        are hashed into few coordinates with random signs, and then turned to their principal axes.
        """
        n = len(self.parts)
        many = sum(len(key.penalty) for key in self.keys)
        hashed = many > HASHED
        width = min(many, HASHED)
        X = np.zeros((n, width))
        start = 0
        for key in self.keys:
            for level in range(key.n_levels - 1):
                own, above = key.table[level][key.codes], key.table[level + 1][key.codes]
                rise = np.maximum(key.penalty[above] - key.penalty[own], 0.0)
                rise = np.where(key.known, rise, 1.0 if level == key.n_levels - 2 else 0.0)
                place = start + own
                sign = np.ones(n)
                if hashed:
                    slots = self.random.integers(0, width, len(key.penalty))
                    signs = self.random.choice([-1.0, 1.0], len(key.penalty))
                    place, sign = slots[own], signs[own]
                np.add.at(X, (np.arange(n), place), sign * np.sqrt(rise / 2))
            start += len(key.penalty)
        X -= X.mean(axis=0)
        if width > DIMENSIONS:
            values, axes = np.linalg.eigh(X.T @ X)
            X = X @ axes[:, np.argsort(values)[::-1][:DIMENSIONS]]
        return np.ascontiguousarray(np.column_stack([X, self.records.numbers]))

    def split(self, labels: Integers, emptied: Truths) -> Integers:
        """Split groups from above; emptied records are in no group."""
        rows = np.flatnonzero(~emptied)
        rows = rows[np.argsort(labels[rows], kind="stable")]
        own = labels[rows]
        ends = np.flatnonzero(np.append(own[1:] != own[:-1], True)) + 1 if len(rows) else rows
        out = np.full(len(labels), -1, dtype=np.int64)
        if len(rows):
            split_down(self.trees, self.records, rows, ends, self.k, out)
        return out

    def improve(self, start: str, labels: Integers, emptied: Truths, budget: int) -> LocalGroups:
        """Move records between groups until sweeps gain nothing; emptied ones are groups, too."""
        labels = labels.copy()
        n_groups = int(labels.max()) + 1
        strata, own = np.unique(self.parts[emptied], return_inverse=True)
        labels[emptied] = n_groups + own
        gone = np.zeros(n_groups + len(strata), dtype=bool)
        gone[n_groups:] = True
        groups = self._groups(labels, gone)
        left = np.array([budget - int(emptied.sum())])
        idle, (patience, most) = 0, SWEEPS[self.effort]
        for turn in range(most):
            order = self._order()
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            gain = improve_sweep(
                self.trees, self.records, groups, self.parts, order, REACH, self.k, left
            )
            gain += dissolve_sweep(
                self.trees, self.records, groups, self.parts, order, place, REACH, 2 * self.k
            )
            if turn % 4 == 3 and bool((groups.size[~gone] >= 2 * self.k).any()):
                groups, gone, more = self._split_again(groups, gone)
                gain += more
            total = float(groups.cost.sum())
            idle = 0 if gain > 1e-4 * max(total, 1e-12) else idle + 1
            if idle >= patience or total <= 1e-9:
                break
        return LocalGroups(
            labels=np.unique(groups.label, return_inverse=True)[1].reshape(-1),
            emptied=gone[groups.label],
            loss=float(groups.cost.sum()),
            start=start,
        )

    def _split_again(self, groups: KeyGroups, gone: Truths) -> tuple[KeyGroups, Truths, float]:
        """Split groups that have grown."""
        emptied = gone[groups.label]
        labels = self.split(groups.label, emptied)
        n_groups = int(labels.max()) + 1
        _, own = np.unique(groups.label[emptied], return_inverse=True)
        labels[emptied] = n_groups + own.reshape(-1)
        flags = np.zeros(int(labels.max()) + 1, dtype=bool)
        flags[n_groups:] = True
        after = self._groups(labels, flags)
        return after, flags, float(groups.cost.sum() - after.cost.sum())

    def _groups(self, labels: Integers, emptied: Truths) -> KeyGroups:
        n, (_, d), q = len(labels), self.records.leaves.shape, self.records.numbers.shape[1]
        many = len(emptied)
        groups = KeyGroups(
            label=np.empty(n, np.int64), following=np.full(n, -1), previous=np.full(n, -1),
            first=np.full(many, -1), size=np.zeros(many, np.int64), whom=np.zeros(many, np.int64),
            low=np.empty((many, d), np.int32), high=np.empty((many, d), np.int32),
            mass=np.zeros((many, d)), sums=np.zeros((many, q + 1)), squares=np.zeros((many, q)),
            emptied=emptied, cost=np.zeros(many),
        )  # fmt: skip
        link_groups(self.trees, self.records, groups, labels, many)
        return groups

    def _order(self) -> Integers:
        """Draw an order of records: by keys in random order, each first on a random level."""
        fine: list[Any] = [self.random.random(len(self.parts))]
        coarse: list[Any] = []
        for j in self.random.permutation(len(self.keys)):
            key = self.keys[j]
            fine.append(key.codes)
            coarse.append(key.table[self.random.integers(0, key.n_levels)][key.codes])
        for numbers in self.records.numbers.T:
            fine.insert(int(self.random.integers(1, len(fine) + 1)), numbers)
            steps = np.rint(numbers * self.random.choice([0.5, 1.0, 2.0]))
            coarse.insert(int(self.random.integers(0, len(coarse) + 1)), steps)
        columns = [*fine, *coarse]
        return np.lexsort((*columns, self.parts)).astype(np.int64)


def nodes_of_groups(key: CodedKey, labels: Integers) -> Integers:
    """Return the least common ancestor of each record's group."""
    many = int(labels.max()) + 1
    low = np.full(many, key.table.shape[1], dtype=np.int64)
    high = np.full(many, -1, dtype=np.int64)
    np.minimum.at(low, labels, key.codes)
    np.maximum.at(high, labels, key.codes)
    node = key.table[-1][low].copy()
    for level in key.table[-2::-1]:
        node = np.where(level[low] == level[high], level[low], node)
    found: Integers = node[labels]
    return found
