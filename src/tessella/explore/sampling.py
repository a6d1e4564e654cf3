"""A sample of a table that is as dense as the table itself: whole neighbourhoods of records.

A plain sample is thinner than its table: groups of k are then put together from records that lie
far apart, and an intruder has fewer records to mistake for the right one. So a sample has whole
*cells*, neighbourhoods that random planes cut out of the table, with whole units. Cells in which
much is lost are drawn more often, and count less: a few large records carry most of a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from .._parameters import Whole, check
from .._types import Floats, Integers, Name, Truths
from ..frame import Table, View
from ..io import Source
from ..kernels.groups import weighted_centres
from ..kernels.windows import start_in_tiles, tile
from ..masking.selection import corners, measure_column
from ..parallel import each
from ..schema import Schema

MOST = 2_000  # records of a sample
CELL = 125  # records of a cell at most: about 24 cells, of which 2,000 records are made up
# Records that a quick grouping looks at together. With 1,024 the losses of EIA were estimated 12 to
# 57 % too high, with 4,096 up to 14 %; twice as many take twice as long.
TILE = 4_096
LOOKED = 20  # the k by which it is known where much is lost
KEPT = 32  # things that a sample keeps of a table


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sample:
    """Records of a table by which plans are previewed; drawn once. **Confidential.**

    Attributes
    ----------
    table : Table
        The whole table.
    schema : Schema
        What its columns are.
    rows : ndarray of shape (m,)
        The records that were drawn, ascending.
    cells : ndarray of shape (m,)
        The cell of each.
    weights : ndarray of shape (m,)
        How many records of the table each stands for.
    certain : ndarray of shape (m,)
        Whether its cell was drawn for certain.
    seed : int
        Of the draw, and of plans without a seed.
    """

    table: Table
    schema: Schema
    rows: Integers
    cells: Integers
    weights: Floats
    certain: Truths
    seed: int
    _kept: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def draw(
        cls, table: Any, schema: Schema | None = None, *, most: int = MOST, seed: int = 0
    ) -> Sample:
        """Draw a sample: all records where there are at most `most`, otherwise whole cells.

        Parameters
        ----------
        table : Source or table
            The table as it was read.
        schema : Schema, optional
            Kinds and roles; units that it names stay whole. By default it is guessed.
        most : int, default 2000
            About how many records are drawn.
        seed : int, default 0
            The same seed draws the same sample.
        """
        check({"most": [Whole(20)], "seed": [Whole(0)]}, {"most": most, "seed": seed})
        if isinstance(table, Source):
            schema = table.schema() if schema is None else schema
            table = table.table
        source = Table.read(table)
        known = Schema.guess(source) if schema is None else schema
        known.check(source)
        n, everybody = source.n_rows, np.arange(source.n_rows)
        if n <= most:
            return cls(
                table=source, schema=known, rows=everybody, cells=everybody, weights=np.ones(n),
                certain=np.ones(n, dtype=bool), seed=seed,
            )  # fmt: skip
        view = View(source, known)
        names = [c.name for c in known if c.role == "quasi-identifier"] or list(source.columns)
        points, _ = points_of(view, names)
        drawn = _draw_cells(points, view.units, most, seed)
        return cls(table=source, schema=known, seed=seed, **drawn)

    @property
    def n_records(self) -> int:
        """How many records the table has."""
        return self.table.n_rows

    @property
    def is_all(self) -> bool:
        """Whether the sample is the whole table."""
        return len(self.rows) == self.n_records

    def __repr__(self) -> str:
        if self.is_all:
            return f"Sample: all {self.n_records:,} records"
        cells = len(np.unique(self.cells))
        return f"Sample: {len(self.rows):,} of {self.n_records:,} records, in {cells} cells"

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made before under a key, or make it; a few things are kept."""
        if key not in self._kept:
            while len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = make()
        return self._kept[key]


def points_of(view: View, names: Sequence[Name]) -> tuple[Floats, list[Name]]:
    """Return records as points, as `protect` places them, and the columns of numbers, first."""
    weights = view.weights()
    numbers, pieces, others = list[Name](), list[Floats](), list[Floats]()
    for name in names:
        if view.table.facts(name).numeric and view.kind(name) != "nominal":
            _, _, _, centre, deviation = measure_column(view.numbers(name), weights)
            if deviation > 0:
                numbers.append(name)
                pieces.append(np.nan_to_num((view.numbers(name) - centre) / deviation)[:, None])
            continue
        codes = np.maximum(view.categories(name).codes, 0)
        spread = float(codes.std())
        if view.kind(name) == "ordinal" and spread > 0:
            others.append((codes / spread)[:, None])
        elif spread > 0:
            others.append(corners(codes))
    found = [*pieces, *others] or [np.zeros((view.n_rows, 1))]
    return np.ascontiguousarray(np.column_stack(found)), numbers


def _draw_cells(points: Floats, units: Integers | None, most: int, seed: int) -> dict[str, Any]:
    """Draw whole cells, those in which more is lost more often."""
    n = len(points)
    lost = lost_in_groups(points, LOOKED, seed).sum(axis=1)
    places = points
    own = np.arange(n) if units is None else units
    if units is not None:  # whole units: cells are cut by the middles of units
        count = int(units.max()) + 1
        places = weighted_centres(points, np.ones(n), units, count)
    order, starts = tile(places, max(1, round(CELL * len(places) / n)), seed)
    cell_of_place = np.empty(len(places), dtype=np.int64)
    cell_of_place[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    cells = cell_of_place[own]
    sizes = np.bincount(cells, minlength=len(starts) - 1)
    losses = np.bincount(cells, weights=lost, minlength=len(sizes))
    share = sizes / n
    if losses.sum() > 0:
        share = (share + losses / losses.sum()) / 2
    chance = _chances(share, most / sizes.mean())
    # Systematic: cells that lie together have neighbouring numbers, and few of them are drawn.
    ends = np.cumsum(chance) + np.random.default_rng(seed).random()
    chosen = np.floor(ends) > np.floor(ends - chance)
    chosen |= chance >= 1
    rows = np.flatnonzero(chosen[cells])
    here = cells[rows]
    weights = 1 / chance[here]
    return {
        "rows": rows, "cells": here, "weights": weights * n / weights.sum(),
        "certain": chance[here] >= 1,
    }  # fmt: skip


def _chances(share: Floats, count: float) -> Floats:
    """Return the chance of each cell to be among so many, by its share; at most 1."""
    chance = np.zeros(len(share))
    certain = np.zeros(len(share), dtype=bool)
    while True:
        left = max(count - certain.sum(), 0.0)
        rest = share[~certain].sum()
        chance = np.where(certain, 1.0, share * (left / rest if rest > 0 else 0.0))
        more = chance >= 1 - 1e-12
        if (more == certain).all():
            return chance
        certain |= more


def lost_in_groups(points: Floats, k: int, seed: int, largest: int = TILE) -> Floats:
    """Return the squared distances to the means of quick groups of k, by coordinate.

    Groups are made in tiles of up to `largest` records, each by itself, on all cores.
    """
    order, starts = tile(points, max(largest, 4 * k), seed)
    lost = np.empty_like(points)

    def group(ends: tuple[int, int]) -> None:
        rows = order[ends[0] : ends[1]]
        own = np.ascontiguousarray(points[rows])
        whole = np.array([0, len(own)])
        labels = start_in_tiles(own, np.arange(len(own)), whole, min(k, len(own)))
        centres = weighted_centres(own, np.ones(len(own)), labels, int(labels.max()) + 1)
        lost[rows] = (own - centres[labels]) ** 2

    each(group, pairwise(starts.tolist()))
    return lost
