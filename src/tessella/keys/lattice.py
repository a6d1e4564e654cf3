r"""Full-domain recoding: one level for each key, such that every combination has k, at least loss.

The *lattice* has a node for each choice of levels; coarser is higher. Records of combinations with
fewer than k (*violating* records) may be emptied within a budget. Two facts prune the search:

- Merging combinations never makes one smaller: the number of violating records does not rise with
  the levels (Samarati 2001). A node with more of them than the budget excludes all finer ones.
- An emptied cell costs no less than any of its ancestors, so that the loss of a node is at least
  what it would lose with nothing emptied, its *plain* loss, which rises with the levels. Once the
  least plain loss of the nodes that are left is no less than the best loss found, that is optimal.

Nodes are looked at by rising plain loss; before each, a path from it to the top is searched by
bisection for the border of the budget, which excludes many nodes at once (Kohlmayer et al. 2012).
Combinations are counted on those of the finer node that has the fewest: records are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Integers, Truths
from ..exceptions import BadOptionError, GroupSizeError
from ..frame import group_ids
from .coded import CodedKey, Combinations, combinations_of
from .measures import OfClasses, Separable, find_measure

LARGEST = 2**24  # nodes of a lattice: an order of all of them is held
SMALLER = 0.7  # of the rows of a table that one made of it has, if it is kept
KEPT = 64  # tables of combinations that are kept to count others on
LIMIT = 100_000  # nodes that are counted, unless something else is asked for
LIMIT_OF_TABLES = 1_000  # the same where each needs a table to be made
EXCLUDED, COUNTED = 1, 2  # what is known of a node
EQUAL = 1e-12  # losses that differ by less are equal; relatively, above 1

# From levels and the records that are emptied to a loss.
TableMeasure = Callable[[tuple[int, ...], Truths], float]


@dataclass(frozen=True, kw_only=True, eq=False)
class FullDomain:
    """The best node that was found, and how good it is.

    Attributes
    ----------
    levels : tuple of int
        The level of each key.
    loss : float
        Its loss.
    bound : float
        No node loses less; equal to `loss` where it is proved to be the best.
    emptied : ndarray of shape (n,)
        The records whose keys are emptied.
    n_counted, n_nodes : int
        The nodes whose combinations were counted, and all.
    """

    levels: tuple[int, ...]
    loss: float
    bound: float
    emptied: Truths
    n_counted: int
    n_nodes: int

    @property
    def proved(self) -> bool:
        """Whether no other node can lose less."""
        return self.bound >= self.loss - EQUAL * max(1.0, abs(self.loss))


@dataclass(frozen=True, kw_only=True, eq=False)
class Emptied:
    """What is emptied at a node that is within the budget."""

    gone: Truths  # of each combination of leaves
    records: int
    sizes: Integers  # records of the classes that are left
    feasible: bool  # whether those emptied have k, too


class Lattice:
    """Levels of keys, and the search for those with the least loss.

    Parameters
    ----------
    keys : sequence of CodedKey
        The keys.
    k : int
        How many records, or units, every combination must have in its stratum.
    stratum, weights : ndarray of shape (n,)
        The stratum and the weight of each record.
    units : ndarray of shape (n,), optional
        Whom k counts.
    allowed : int
        How many records may be emptied. Those that are, are one more combination, and have k, too.
    measure : str or callable
        A name of `tessella.keys.measures`, or a function of levels and emptied records, of which
        nothing is assumed: then all nodes within the budget are tried.
    limit : int, optional
        How many nodes are counted at most.
    """

    def __init__(
        self,
        keys: Sequence[CodedKey],
        *,
        k: int,
        stratum: Integers,
        weights: Floats,
        units: Integers | None = None,
        allowed: int = 0,
        measure: str | TableMeasure = "certainty penalty",
        limit: int | None = None,
    ) -> None:
        self.keys, self.k, self.allowed = tuple(keys), k, allowed
        self.shape = tuple(key.n_levels for key in self.keys)
        size = float(np.prod(np.array(self.shape, dtype=np.float64)))
        if size > LARGEST:
            raise BadOptionError(
                "hierarchies", f"{size:.3g} choices of levels",
                f"fewer keys or levels, up to {LARGEST:,} choices; or local recoding, which has "
                'no such limit: method="local recoding"',
            )  # fmt: skip
        self.n_nodes = int(size)
        self.bottom, self.of_record = combinations_of(self.keys, stratum, units)
        known = [np.bincount(self.of_record, weights * key.known) for key in self.keys]
        self.mass = np.column_stack(known)
        self.stratum, self.units, self.weights = stratum, units, weights
        named = measure if isinstance(measure, str) else "certainty penalty"
        self.measure = find_measure(named, self.keys, weights)
        self.table_measure = None if isinstance(measure, str) else measure
        self.limit = limit or (LIMIT if self.table_measure is None else LIMIT_OF_TABLES)
        self.known = np.zeros(self.shape, dtype=np.uint8)
        self.plain, self.extra = np.zeros(self.shape), np.zeros(self.shape)
        if self.table_measure is None and isinstance(self.measure, Separable):
            scale, offset = self.measure.scale, self.measure.offset
            self.plain = self._sums(self.measure.plain(self.keys, weights), offset) / scale
            self.extra = self._sums(self.measure.least_extra(self.keys, weights)) / scale
        elif self.table_measure is not None:  # nothing is known of it
            self.plain = np.full(self.shape, -np.inf)
        self.violating = np.zeros(self.shape, dtype=np.int64)  # at least so many records do
        self._tables: dict[tuple[int, ...], Combinations] = {(0,) * len(self.keys): self.bottom}
        self.best: FullDomain | None = None
        self._least = 1e300
        self._n_counted = 0

    @property
    def _enough(self) -> float:
        """A node must lose less than this to be better than the best."""
        return self._least - EQUAL * max(1.0, abs(self._least))

    def search(self) -> FullDomain:
        """Return the node with the least loss, or refuse where no node has k."""
        order = np.argsort(self._preference(), axis=None, kind="stable")
        for place in order.tolist():
            levels = tuple(int(at) for at in np.unravel_index(place, self.shape))
            if self.known[levels] or self._bound(levels) >= self._enough:
                continue
            if self._n_counted >= self.limit:
                break
            self._bisect(levels)
            if not self.known[levels] and self._bound(levels) < self._enough:
                self._try(levels)
        if self.best is None:
            self._refuse()
        best: Any = self.best
        left = (self.plain + self.violating * self.extra)[self.known == 0]
        least = float(left.min()) if len(left) else np.inf
        return FullDomain(
            levels=best.levels, loss=best.loss, bound=min(best.loss, least), emptied=best.emptied,
            n_counted=self._n_counted, n_nodes=self.n_nodes,
        )  # fmt: skip

    def count_violating(self, levels: tuple[int, ...]) -> int:
        """Count the records in combinations of fewer than k, by those of a finer node."""
        finer = [
            (len(table.records), at)
            for at, table in self._tables.items()
            if all(a <= b for a, b in zip(at, levels))
        ]
        _, at = min(finer)
        table = self._tables[at]
        classes, many = table.classes(self.keys, levels)
        few = count_units_of(classes, table, many) < self.k
        violating = int(table.records[few[classes]].sum())
        if many < SMALLER * len(table.records):  # worth keeping
            if len(self._tables) > KEPT:  # the oldest goes; the leaves stay
                del self._tables[list(self._tables)[1]]
            self._tables[levels] = table.raised(self.keys, levels, classes)
        return violating

    def empty(self, levels: tuple[int, ...]) -> Emptied:
        """Decide what is emptied at a node that is within the budget."""
        bottom = self.bottom
        classes, many = bottom.classes(self.keys, levels)
        sizes = np.bincount(classes, bottom.records, minlength=many).astype(np.int64)
        gone = count_units_of(classes, bottom, many) < self.k
        feasible = not gone.any() or self._fill_up(classes, sizes, gone, levels)
        return Emptied(
            gone=gone[classes], records=int(sizes[gone].sum()), sizes=sizes[~gone],
            feasible=feasible,
        )  # fmt: skip

    def _fill_up(
        self, classes: Integers, sizes: Integers, gone: Truths, levels: tuple[int, ...]
    ) -> bool:
        """Empty one more class in each stratum whose emptied records have fewer than k.

        Emptied records look alike: fewer than k of them would be a small combination of their own.
        Any class that is left has k, so that one is enough: the cheapest within the budget.
        """
        bottom = self.bottom
        home = np.empty(len(sizes), dtype=np.int64)
        home[classes] = bottom.stratum
        left = self.allowed - int(sizes[gone].sum())
        out = np.flatnonzero(gone[classes])
        strata, own = np.unique(bottom.stratum[out], return_inverse=True)
        whom = bottom.records[out]
        if bottom.unit is not None:
            first = np.unique(group_ids([own, bottom.unit[out]]), return_index=True)[1]
            own, whom = own[first], np.ones(len(first), dtype=np.int64)
        short = np.bincount(own, whom, minlength=len(strata)) < self.k
        if not short.any():
            return True
        cost = np.bincount(classes, self._extra_of_rows(levels), minlength=len(sizes))
        for stratum in strata[short].tolist():
            fit = np.flatnonzero(~gone & (home == stratum) & (sizes <= left))
            if not len(fit):
                return False
            chosen = fit[np.lexsort((sizes[fit], cost[fit]))[0]]
            gone[chosen] = True
            left -= int(sizes[chosen])
        return True

    def _extra_of_rows(self, levels: tuple[int, ...]) -> Floats:
        """Return what emptying each combination of leaves costs beyond recoding it."""
        extra = np.zeros(len(self.bottom.records))
        if isinstance(self.measure, Separable):
            for j, (key, level) in enumerate(zip(self.keys, levels)):
                own = self.measure.cost[j][level][key.upward[level][self.bottom.codes[:, j]]]
                extra += self.mass[:, j] * (self.measure.emptied[j] - own)
        return extra

    def loss(self, levels: tuple[int, ...], found: Emptied) -> float:
        """Return what a node loses, with what is emptied there."""
        if self.table_measure is not None:
            return float(self.table_measure(levels, found.gone[self.of_record]))
        if isinstance(self.measure, OfClasses):
            return self.measure.value(found.sizes, found.records)
        extra = 0.0
        if found.records:
            extra = float(self._extra_of_rows(levels)[found.gone].sum()) / self.measure.scale
        return float(self.plain[levels]) + extra

    def _sums(self, columns: Sequence[Floats], offset: float = 0.0) -> Floats:
        """Return for every node the sum of what its level of each key has."""
        total = np.full(self.shape, offset)
        for j, own in enumerate(columns):
            total += own.reshape([-1 if at == j else 1 for at in range(len(columns))])
        return total

    def _bound(self, levels: tuple[int, ...]) -> float:
        """Return what a node loses at least: recoding, and emptying those that violate k."""
        return float(self.plain[levels] + self.violating[levels] * self.extra[levels])

    def _preference(self) -> Floats:
        """Return in which order nodes are looked at: finer ones first."""
        if self.table_measure is None and isinstance(self.measure, Separable):
            return self.plain
        usual: Any = find_measure("certainty penalty", self.keys, self.weights)
        steps = self._sums([np.arange(size, dtype=np.float64) for size in self.shape])
        plain = self._sums(usual.plain(self.keys, self.weights)) / usual.scale
        ordered: Floats = plain + 1e-9 * steps
        return ordered

    def _bisect(self, levels: tuple[int, ...]) -> None:
        """Find the border of the budget on a path from a node to the top."""
        path = self._path(levels)
        low, high = 0, len(path) - 1
        while low <= high and self._n_counted < self.limit:
            middle = (low + high) // 2
            if self._try(path[middle]):
                high = middle - 1
            else:
                low = middle + 1

    def _path(self, levels: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return nodes from one to the top, each time by the step that costs least."""
        path, here = [levels], list(levels)
        while True:
            steps = []
            for j, size in enumerate(self.shape):
                if here[j] + 1 < size:
                    above = (*here[:j], here[j] + 1, *here[j + 1 :])
                    steps.append((float(self.plain[above]), above))
            if not steps:
                return path
            cheapest, above = min(steps)
            if cheapest >= self._enough:
                return path  # what is above cannot be better than the best
            here = list(above)
            path.append(above)

    def _try(self, levels: tuple[int, ...]) -> bool:
        """Count a node, once; return whether it is within the budget."""
        if self.known[levels]:
            return bool(self.known[levels] == COUNTED)
        violating = self.count_violating(levels)
        self._n_counted += 1
        finer = tuple(slice(0, level + 1) for level in levels)
        if violating > self.allowed:
            self.known[finer] = EXCLUDED
            return False
        self.known[levels] = COUNTED
        np.maximum(self.violating[finer], violating, out=self.violating[finer])
        found = self.empty(levels)
        if isinstance(self.measure, OfClasses) and self.table_measure is None:
            plain = self.measure.value(self._sizes_before(levels), 0)
            coarser = tuple(slice(level, None) for level in levels)
            np.maximum(self.plain[coarser], plain, out=self.plain[coarser])
        if found.feasible:
            loss = self.loss(levels, found)
            if self.best is None or loss < self._enough:
                self._least = loss
                self.best = FullDomain(
                    levels=levels, loss=loss, bound=loss, n_nodes=self.n_nodes,
                    emptied=found.gone[self.of_record], n_counted=self._n_counted,
                )  # fmt: skip
        return True

    def _sizes_before(self, levels: tuple[int, ...]) -> Integers:
        classes, many = self.bottom.classes(self.keys, levels)
        return np.bincount(classes, self.bottom.records, minlength=many).astype(np.int64)

    def _refuse(self) -> None:
        violating = self.count_violating(tuple(size - 1 for size in self.shape))
        whom = "units" if self.units is not None else "records"
        raise GroupSizeError(
            f"No recoding brings every combination of keys to {self.k} {whom}: even with all keys "
            f"at their root {violating:,} records are in strata with fewer, and "
            f"{self.allowed:,} may be emptied. Give a smaller k, merge strata, or leave them out."
        )


def count_units_of(classes: Integers, table: Combinations, many: int) -> Integers:
    """Count whom each class of combinations has: records, or distinct units."""
    if table.unit is None:
        return np.bincount(classes, table.records, minlength=many).astype(np.int64)
    first = np.unique(group_ids([classes, table.unit]), return_index=True)[1]
    return np.bincount(classes[first], minlength=many)
