"""Large tables in cells: each is grouped by itself, and every round cuts the table elsewhere.

A *cell* holds up to CELL records that lie together. It is cut out by random planes, which are found
in a sample of the table; a tree of them fits any machine and can be sent to every worker. In the
first round records go to cells and are grouped there. In every later round whole groups go to the
cells of a new tree, by their centres, and are improved there: what a border kept apart in one
round lies within a cell of the next, so that no border shows in the loss.

Nothing depends on who computes a cell, nor when: the tree depends on the sample, the sample on the
numbers of the rows, the seed of a cell on its number, and the records of a cell are in the order of
the table. Each cell fits the memory of a core, and nothing else is computed on one core alone but
the tree and the lists of the cells' records.

`search_in_cells` says what is done, in a few verbs; `Cells` are where: in memory (`MemoryCells`),
or in files (`tessella.engines`). The groups are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from .._types import Bytes, Floats, Integers, Truths
from ..diversity import Diversity
from ..frame import count_units
from ..kernels.cut_tree import find_cells, heights_above, keys_of_rows
from ..kernels.groups import members_of, renumber, squared_error, weighted_centres
from ..kernels.windows import start_in_tiles, tile
from ..parallel import each, n_cores
from .base import Units
from .diverse import mend
from .refining import anneal_windows
from .units import balls_of_units

# A cell of a round: 16 windows of LARGE_WINDOW records, what a tile of windows has. With fewer, the
# groups of a window have fewer to be cut from; with more, a core needs more memory.
CELL = 65_536
LARGE = 4 * CELL  # records, above which a table is cut into cells: fewer would leave cores idle
LARGE_WINDOW = 4_096  # records of a window, as many as the cache holds
SAMPLED = 256  # records of a cell in the sample: cells are then within a tenth of their size
SAMPLE, TIES = 1, 2  # streams of the keys of rows

Heat = tuple[float, float]  # temperatures at the beginning and end of a round


@dataclass(frozen=True, eq=False)
class CutTree:
    """Planes, the first of which cuts everything; below and above of it are planes or -1 - cell."""

    directions: Floats
    heights: Floats
    ties: Floats
    below: Integers
    above: Integers

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.below) + 1

    @classmethod
    def grow(cls, points: Floats, keys: Floats, largest: float, seed: Any) -> CutTree:
        """Cut a sample into cells of at most `largest` points, by planes as `tile` draws them."""
        random = np.random.default_rng(seed)
        directions, heights, ties = [], [], []
        below, above = list[int](), list[int]()
        n_cells = 0
        waiting: list[tuple[Integers, list[int], int]] = [(np.arange(len(points)), [], 0)]
        while waiting:
            rows, side, parent = waiting.pop()
            if len(rows) <= max(largest, 1):
                if len(below):
                    side[parent] = -1 - n_cells
                n_cells += 1
                continue
            place = len(below)
            if place:
                side[parent] = place
            a, *others = rows[random.integers(len(rows), size=4)]
            away = [float(np.abs(points[b] - points[a]).sum()) for b in others]
            direction = points[others[int(np.argmax(away))]] - points[a]
            direction /= np.abs(direction).max(initial=0.0) or 1.0  # no height overflows
            found = heights_above(points, rows, direction)
            order = np.lexsort((keys[rows], found))
            cut = int(np.clip(len(rows) * (0.35 + 0.3 * random.random()), 1, len(rows) - 1))
            directions.append(direction)
            heights.append(found[order[cut]])
            ties.append(keys[rows[order[cut]]])
            below.append(0)
            above.append(0)
            waiting.append((rows[order[cut:]], above, place))
            waiting.append((rows[order[:cut]], below, place))
        return cls(
            np.array(directions).reshape(len(below), points.shape[1]), np.array(heights),
            np.array(ties), np.array(below, dtype=np.int64), np.array(above, dtype=np.int64),
        )  # fmt: skip

    def cells_of(self, points: Floats, keys: Floats) -> Integers:
        """Return the cell of each point; `keys` decide between those at the height of a plane."""
        return find_cells(
            points, keys, self.directions, self.heights, self.ties, self.below, self.above
        )

    def without(self, cells: Iterable[int]) -> CutTree:
        """Return a tree in which cells are empty: what was there goes to the other side of a plane.

        Of two cells of the same plane one stays, with what both had.
        """
        heights, closed = self.heights.copy(), set[int]()
        for cell in cells:
            place = -1 - int(cell)
            while True:
                (plane,) = np.flatnonzero((self.below == place) | (self.above == place)).tolist()
                if plane in closed:  # gone to this cell, or from here, just now
                    break
                if np.isfinite(heights[plane]):
                    heights[plane] = -np.inf if self.below[plane] == place else np.inf
                    closed.add(plane)
                    break
                place = plane  # its other side was empty before
        return CutTree(self.directions, heights, self.ties, self.below, self.above)


@dataclass(frozen=True, eq=False)
class CutForest:
    """A tree for each part of a table; the cells count on from tree to tree.

    Cells of parts that are not cut share a *bundle* of up to so many records as a cell may have:
    what is worked on together. Every other cell is a bundle by itself.
    """

    trees: tuple[CutTree, ...]
    starts: Integers  # the first cell of each tree, and the number of all
    bundles: Integers  # of each cell

    @classmethod
    def grow(
        cls, points: Floats, keys: Floats, parts: Integers, sizes: Integers, cell: int, seed: int
    ) -> CutForest:
        """Cut the parts of a sample into cells that have about `cell` records in the table."""
        largest = cell * len(points) / sizes.sum()
        order, starts = members_of(parts, len(sizes))
        trees = []
        for part, (first, end) in enumerate(pairwise(starts)):
            own = order[first:end] if sizes[part] > cell else order[:0]
            trees.append(CutTree.grow(points[own], keys[own], largest, [seed, part]))
        return cls.of(trees, sizes, cell)

    @classmethod
    def of(cls, trees: Sequence[CutTree], sizes: Integers, cell: int) -> CutForest:
        """Number the cells of some trees, and put small ones into bundles."""
        bundles, held, bundle = list[int](), 0, 0
        for tree, size in zip(trees, sizes.tolist()):
            if held and (tree.n_cells > 1 or held + size > cell):
                bundle, held = bundle + 1, 0
            bundles += range(bundle, bundle + tree.n_cells)
            if tree.n_cells > 1:
                bundle += tree.n_cells
            else:
                held += size
        starts = np.cumsum([0, *(tree.n_cells for tree in trees)])
        return cls(tuple(trees), starts, np.array(bundles, dtype=np.int64))

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return int(self.starts[-1])

    def cells_of(self, points: Floats, keys: Floats, parts: Integers | None = None) -> Integers:
        """Return the cell of each point; `parts` are those of the table, where it has several."""
        if len(self.trees) == 1 or parts is None:
            return self.trees[0].cells_of(points, keys)
        found = np.empty(len(points), dtype=np.int64)
        order, starts = members_of(parts, len(self.trees))
        for part in np.flatnonzero(np.diff(starts)).tolist():
            own = order[starts[part] : starts[part + 1]]
            found[own] = self.trees[part].cells_of(points[own], keys[own]) + self.starts[part]
        return found

    def without(self, counts: Integers, k: int, sizes: Integers, cell: int) -> CutForest | None:
        """Return a forest without the cells of fewer than k, or None if it has none to spare."""
        trees, changed = [], False
        for tree, (first, end) in zip(self.trees, pairwise(self.starts.tolist())):
            own = counts[first:end]
            few = np.flatnonzero((own > 0) & (own < k))
            spare = len(few) > 0 and (own > 0).sum() > 1
            trees.append(tree.without(few) if spare else tree)
            changed |= spare
        return CutForest.of(trees, sizes, cell) if changed else None


@dataclass(frozen=True, eq=False)
class GroupedCell:
    """The records of a cell in groups from 0: their centres, first records, and squared error."""

    labels: Integers
    centres: Floats
    first: Integers
    sse: float

    @classmethod
    def of(cls, X: Floats, weights: Floats, labels: Integers) -> GroupedCell:
        """Number the groups by first appearance, and measure them."""
        labels = renumber(labels, int(labels.max()) + 1)
        centres = weighted_centres(X, weights, labels, int(labels.max()) + 1)
        first = np.unique(labels, return_index=True)[1]
        return cls(labels, centres, first, float(squared_error(X, weights, labels, centres)))


def group_cell(
    X: Floats, weights: Floats, units: Units, k: int, seed: int, diversity: Diversity | None = None
) -> GroupedCell:
    """Group the records of a cell for the first time."""
    own = None if units is None else _own(units)
    return GroupedCell.of(X, weights, first_groups(X, weights, own, k, seed, diversity))


def first_groups(
    X: Floats, weights: Floats, units: Units, k: int, seed: int, diversity: Diversity | None = None
) -> Integers:
    """Group records in tiles, of at least k units each: what everything else improves."""
    if units is None:
        order, starts = tile(X, max(256, 4 * k), seed)
        labels = start_in_tiles(X, order, starts, k)
    else:
        labels = balls_of_units(X, weights, units, k, seed)
    return labels if diversity is None else mend(X, weights, labels, k, diversity, seed)


def groups_in_window(labels: Integers) -> int:
    """Return how many groups a window of LARGE_WINDOW records has."""
    return max(2, LARGE_WINDOW * (int(labels.max()) + 1) // len(labels))


def improve_cell(
    X: Floats, weights: Floats, units: Units, labels: Integers, k: int, seed: int, *,
    moves: float, heat: Heat, halt: Bytes, diversity: Diversity | None = None,
) -> GroupedCell:  # fmt: skip
    """Improve the groups of a cell in windows; the result is never worse."""
    # Costs are differences between records: an offset would only take digits from them.
    middle = X - X.mean(axis=0)
    # Windows are drawn by the numbers of groups: by first appearance, whatever they were called.
    labels = renumber(_own(labels), len(labels))
    found = anneal_windows(
        middle, weights, labels, k, None if units is None else _own(units),
        largest=groups_in_window(labels), moves=moves, heat=heat, seed=seed, halt=halt,
        diversity=diversity,
    )  # fmt: skip
    return GroupedCell.of(X, weights, found)


def _own(names: Integers) -> Integers:
    """Number the units or groups of a cell from 0."""
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def seed_of_cell(seed: int, cell: int) -> int:
    """Return the seed of a cell in a round."""
    return int(np.random.SeedSequence([seed, cell]).generate_state(1)[0] >> 1)


class Cells(Protocol):
    """Where the records of a large table are, cell by cell. Records come to cells by a tree."""

    n: int
    sizes: Integers  # how many records each part has
    sse: float

    def sample(self, size: int, seed: int) -> tuple[Integers, Floats, Integers]:
        """Choose about `size` records; return their rows, points and parts."""
        ...

    def sampled(self) -> Floats:
        """Return the centres of the groups of the sampled records."""
        ...

    def send(self, forest: CutForest) -> Integers:
        """Send all records to their cells; return how many units each has."""
        ...

    def group(self, k: int, seed: int, then: CutForest) -> None:
        """Group the records of each cell, and send the groups on to the cells of a forest."""
        ...

    def improve(self, k: int, seed: int, moves: float, heat: Heat, then: CutForest) -> None:
        """Improve the groups of each cell, and send them on."""
        ...


def search_in_cells(
    cells: Cells, k: int, random: np.random.Generator, rounds: Iterable[tuple[float, Heat]], *,
    report: Callable[[str, float], None], cell: int = CELL,
) -> None:  # fmt: skip
    """Group a large table, cell by cell; `rounds` are moves a record, and temperatures.

    A tree is grown before the round ahead of the one that it is for, so that a cell can send its
    groups on as soon as it is done.
    """

    def seed() -> int:
        return int(random.integers(2**31))

    cell = max(cell, 20 * k)
    rows, points, parts = cells.sample(SAMPLED * -(-cells.n // cell), seed())
    keys = keys_of(rows)

    def grow(points: Floats) -> CutForest:
        return CutForest.grow(points, keys, parts, cells.sizes, cell, seed())

    forest, then = (grow(points) for _ in range(2))
    fewer: CutForest | None = forest
    while fewer is not None:  # chance, or units that lie together, can leave cells too small
        counts = cells.send(fewer)
        fewer = fewer.without(counts, k, cells.sizes, cell)
    cells.group(k, seed(), then)
    report("start", cells.sse)
    for moves, heat in rounds:
        then = grow(cells.sampled())
        cells.improve(k, seed(), moves, heat, then)
        report("rounds", cells.sse)


def sampled_among(keys: Floats, size: int, n: int) -> Truths:
    """Tell which rows are in a sample of about `size` of n; that depends on a row's key alone."""
    return keys < size / n


def keys_of(rows: Integers) -> Floats:
    """Return the keys by which rows at the height of a plane are told apart."""
    return keys_of_rows(rows, TIES)


class MemoryCells:
    """Cells of a table in memory, on all cores."""

    def __init__(
        self, X: Floats, weights: Floats, units: Units, halt: Bytes,
        diversity: Diversity | None = None, done: Callable[[float], None] | None = None,
    ) -> None:  # fmt: skip
        self.X, self.weights, self.units, self.halt, self.done = X, weights, units, halt, done
        self.diversity = diversity  # with k units among its conditions
        self.n, self.sizes = len(X), np.array([len(X)])
        self.keys = keys_of(np.arange(self.n))

    def sample(self, size: int, seed: int) -> tuple[Integers, Floats, Integers]:
        """Choose about `size` records; return their rows, points and parts."""
        keys = keys_of_rows(np.arange(self.n), SAMPLE + 4 * seed)
        self.chosen = np.flatnonzero(sampled_among(keys, size, self.n))
        return self.chosen, self.X[self.chosen], np.zeros(len(self.chosen), dtype=np.int64)

    def sampled(self) -> Floats:
        """Return the centres of the groups of the sampled records."""
        return self.centres[self.labels[self.chosen]]

    def send(self, forest: CutForest) -> Integers:
        """Send all records to their cells; return how many units each has.

        A cell whose records together are not diverse counts as one with a single unit: it goes.
        """
        pieces = (slice(first, first + CELL) for first in range(0, self.n, CELL))
        found = each(lambda p: forest.cells_of(self.X[p], self.keys[p]), pieces)
        self.cells, self.n_cells = np.concatenate(found), forest.n_cells
        counts = count_units(self.cells, self.units, forest.n_cells)
        if self.diversity is not None:
            wanted, found_l = self.diversity, self.diversity.measures(self.cells, forest.n_cells)
            for one, own in zip(wanted.requirements, found_l.T):
                counts = np.where(one.holds(own), counts, np.minimum(counts, 1))
        return counts

    def group(self, k: int, seed: int, then: CutForest) -> None:
        """Group the records of each cell, and send the groups on to the cells of a forest."""

        def group(rows: Integers, cell: int) -> GroupedCell:
            own = None if self.units is None else self.units[rows]
            return group_cell(
                self.X[rows], self.weights[rows], own, k, seed_of_cell(seed, cell),
                self._wanted(rows),
            )  # fmt: skip

        self._take(group, then)

    def improve(self, k: int, seed: int, moves: float, heat: Heat, then: CutForest) -> None:
        """Improve the groups of each cell, and send them on."""

        def improve(rows: Integers, cell: int) -> GroupedCell:
            return improve_cell(
                self.X[rows], self.weights[rows], None if self.units is None else self.units[rows],
                self.labels[rows], k, seed_of_cell(seed, cell), moves=moves, heat=heat,
                halt=self.halt, diversity=self._wanted(rows),
            )  # fmt: skip

        self._take(improve, then)

    def _wanted(self, rows: Integers) -> Diversity | None:
        return None if self.diversity is None else self.diversity.take(rows)

    def _take(self, work: Callable[[Integers, int], GroupedCell], then: CutForest) -> None:
        """Do the work of all cells, side by side, and put their groups together."""
        rows, starts = members_of(self.cells, self.n_cells)
        filled = np.flatnonzero(np.diff(starts))
        found = each(
            lambda cell: work(rows[starts[cell] : starts[cell + 1]], int(cell)), filled,
            halt=self.halt, alone=len(filled) >= n_cores(), done=self.done,
        )  # fmt: skip
        labels, first, offset = np.empty(self.n, dtype=np.int64), [], 0
        for cell, own in zip(filled, found):
            there = rows[starts[cell] : starts[cell + 1]]
            labels[there] = own.labels + offset
            first.append(there[own.first])
            offset += len(own.centres)
        self.labels, self.centres = labels, np.concatenate([own.centres for own in found])
        self.sse = float(sum(own.sse for own in found))
        self.cells = then.cells_of(self.centres, self.keys[np.concatenate(first)])[labels]
        self.n_cells = then.n_cells
