"""Best-first search of a space of parameters: cells are halved until none can link more.

Every open cell has a bound; the largest of them, or what was found if that is more, bounds the
links of the whole family at any time.
"""

from __future__ import annotations

import heapq
import time
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from ..._types import Floats, Integers, SmallIntegers
from ...kernels.cells import explore
from ...kernels.linkage import SLACK
from ...parallel import each
from ..aligned import AlignedTables
from ..linkage import count_family
from .choquet import Choquet
from .distances import OWA, Competitors, WeightedMean
from .family import Family

__all__ = ["CellSearch", "corners_of", "decisive_rows", "ready"]


BATCH = 64  # cells that are searched before results are compared; not a matter of cores
BUDGET = 50_000  # rows looked at in one cell before it comes back
HELD = 150_000_000  # rows held by open cells; beyond, cells that are nearly done come first
ROUNDING = 8 * float(np.finfo(np.float64).eps)


def ready() -> None:
    """Have the kernel ready, so that its compilation, once, is not taken for the proof's time."""
    no = np.empty(0, dtype=np.int64)
    one = np.zeros(1, np.int64)
    explore(np.zeros((1, 2)), one, np.eye(2), 0, 0, no, one, no, 0, 0)


def corners_of(member: Family) -> list[Floats]:
    """Return simplices that cover the parameters of a family.

    Weights are one simplex. Measures are cut by the order of their values (Stanley 1986): every
    order of the sets that never puts a larger set first is one simplex, its corners the measures
    that are 1 from some set on.
    """
    if not isinstance(member, Choquet):
        return [np.eye(member.d)]
    size = 1 << member.d
    middle = range(1, size - 1)
    found = []
    for rising in permutations(middle):
        place = {one: at for at, one in enumerate(rising)}
        if any(one & other == one and place[one] > place[other] and one != other
               for one in middle for other in middle):  # fmt: skip
            continue
        corners = np.zeros((size - 1, size))
        corners[:, size - 1] = 1.0
        for at, one in enumerate(rising):
            corners[: at + 1, one] = 1.0
        found.append(corners)
    return found


def decisive_rows(sides: AlignedTables, competitors: Competitors, member: Family) -> Floats:
    """Return rows whose product with θ is above zero wherever linkage may see a strict link.

    Linkage wants a competitor farther by SLACK; half of it, and an allowance for the rounding of
    standardised values, are left to the intruder.
    """
    records = competitors.records
    owner = np.repeat(np.arange(len(records)), np.diff(competitors.starts))
    A, own_B = sides.A[records], sides.B[sides.truth[records]]
    their_B = sides.B[competitors.which]
    own, theirs = A - own_B, A[owner] - their_B
    dense = [member.features(one) for one in (own, theirs)]
    phi_own, phi = (one.toarray() if hasattr(one, "toarray") else one for one in dense)
    rows = phi - (1 + SLACK / 2) * phi_own[owner]
    slip = ROUNDING * (
        np.where(
            their_B == own_B[owner], 0.0, (np.abs(A[owner]) + np.abs(their_B)) * np.abs(theirs)
        )
        + np.where(
            their_B == own_B[owner], 0.0, (np.abs(A) + np.abs(own_B))[owner] * np.abs(own[owner])
        )
    )
    if isinstance(member, WeightedMean):
        rows += slip
    elif isinstance(member, OWA):
        rows += slip.max(axis=1)[:, None]
    else:
        rows[:, -1] += slip.max(axis=1)  # the measure of all variables is 1
    return np.ascontiguousarray(rows)


class _Cell(NamedTuple):
    """An open cell; cells compare by their bound, the largest first, then by age."""

    rank: int
    age: int
    corners: Floats
    depth: int
    linked: int
    records: SmallIntegers
    sizes: SmallIntegers
    which: SmallIntegers


class CellSearch:
    """Best-first search of cells; `most` is valid at any time."""

    def __init__(
        self,
        sides: AlignedTables,
        competitors: Competitors,
        classes: Integers,
        member: Family,
        links: int,
    ) -> None:
        self.sides, self.member = sides, member
        self.rows = decisive_rows(sides, competitors, member)
        self.classes = np.ascontiguousarray(classes[competitors.records])
        self.starts = competitors.starts
        self.links = links
        self.better: Family | None = None
        self.cells = 0
        self.most = len(competitors.records)

    def run(self, corners: list[Floats], most: int, until: float) -> None:
        """Halve cells until none can link more than what was found, or time is over."""
        sizes = np.diff(self.starts).astype(np.int32)
        everyone = np.arange(len(sizes), dtype=np.int32)
        every_row = np.arange(len(self.rows), dtype=np.int32)
        open_ = [
            _Cell(-most, age, one, 0, 0, everyone, sizes, every_row)
            for age, one in enumerate(corners)
        ]
        born, held = len(open_), 0
        while open_ and time.perf_counter() < until:
            if held > HELD:
                open_.sort()
                batch, open_ = open_[-BATCH:], open_[:-BATCH]
            else:
                batch = [heapq.heappop(open_) for _ in range(min(BATCH, len(open_)))]
            held -= sum(len(cell.which) for cell in batch)
            batch = [cell for cell in batch if -cell.rank > self.links]
            for cell, answer in zip(batch, each(partial(self._explored, until), batch)):
                if answer is None:
                    heapq.heappush(open_, cell)
                    continue
                seen, theta, halved, left = answer
                self.cells += halved
                if seen > self.links:
                    self._try(theta)
                for bound, child in _children(left):
                    if bound > self.links:
                        rank = max(-bound, cell.rank)
                        heapq.heappush(open_, _Cell(rank, born, *child))
                        born += 1
                        held += len(child[-1])
        self.most = max([self.links, *(-cell.rank for cell in open_)])

    def _explored(self, until: float, cell: _Cell) -> Any:
        if time.perf_counter() > until:  # the cell stays open
            return None
        starts = np.concatenate([[0], np.cumsum(cell.sizes)]).astype(np.int64)
        return explore(
            self.rows, self.classes, cell.corners, cell.depth, cell.linked,
            cell.records.astype(np.int64), starts, cell.which.astype(np.int64), self.links, BUDGET,
        )  # fmt: skip

    def _try(self, theta: Floats) -> None:
        """Count the links of some parameters over all originals, as `link` does."""
        member = self.member.repair(theta)
        nearer, tied = count_family(self.sides, member)(np.arange(len(self.sides.A)), 1)
        count = int(((nearer == 0) & (tied == 1)).sum())
        if count > self.links:
            self.links, self.better = count, member


def _children(left: Any) -> list[tuple[int, tuple[Any, ...]]]:
    corners, depths, linked, bounds, row_ends, record_ends, which, records, sizes = left
    out = []
    for at in range(len(linked)):
        some = slice(record_ends[at], record_ends[at + 1])
        rows = which[row_ends[at] : row_ends[at + 1]].astype(np.int32)
        child = (
            corners[at].copy(), int(depths[at]), int(linked[at]), records[some].astype(np.int32),
            sizes[some].astype(np.int32), rows,
        )  # fmt: skip
        out.append((int(bounds[at]), child))
    return out
