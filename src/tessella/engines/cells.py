"""Cells on an engine: a table larger than memory, searched by its jobs.

Records are in *bundles*, one a job: a cell, or all cells of parts of the table that are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from .._types import Floats, Integers
from ..exceptions import BadTableError
from ..grouping.base import LARGEST
from ..grouping.cells import (
    SAMPLE,
    CutForest,
    GroupedCell,
    Heat,
    group_cell,
    improve_cell,
    keys_of,
    sampled_among,
    seed_of_cell,
)
from ..kernels.cut_tree import keys_of_rows
from .base import Engine, Made, Moved

HALT = np.zeros(1, dtype=np.uint8)

Sample = tuple[int, int, int]  # how many, of which seed, of how many


def records(
    row: Integers, points: Floats, weights: Floats | None, units: Integers | None,
    parts: Integers | None = None,
) -> pa.Table:  # fmt: skip
    """Return records as they move between cells: row, part, group, weight, unit and point."""
    weight = np.ones(len(row)) if weights is None else weights
    if not ((np.abs(points) < LARGEST).all() and np.isfinite(weight).all()):
        raise BadTableError("Points and weights must be finite, and below 1e140.")
    if (weight <= 0).any():
        raise BadTableError("Weights must be above 0. Leave records without weight out.")
    part = np.zeros(len(row), dtype=np.int64) if parts is None else parts
    columns = {"row": row, "part": part, "group": row, "weight": weight}
    if units is not None:
        columns["unit"] = units
    flat = pa.array(np.ascontiguousarray(points).ravel())
    points_ = pa.FixedSizeListArray.from_arrays(flat, max(points.shape[1], 1))
    return pa.table({**{name: pa.array(own) for name, own in columns.items()}, "x": points_})


def numbers(rows: pa.Table, name: str) -> Any:
    """Return a column of records as an array of its own.

    What pyarrow gives is read-only, for which kernels are compiled apart, and may round otherwise.
    """
    column = rows.column(name).combine_chunks()
    if name == "x":
        return column.flatten().to_numpy().reshape(len(column), -1).copy()
    return column.to_numpy().copy()


class EngineCells:
    """Cells of records on an engine: see `tessella.grouping.cells.Cells`.

    `sizes` are how many records each part of the table has.
    """

    def __init__(self, engine: Engine, table: Moved, sizes: ArrayLike, *, has_units: bool) -> None:
        self.engine, self.table, self.sizes = engine, table, np.asarray(sizes)
        self.has_units, self.n = has_units, int(self.sizes.sum())
        self.current: Moved | None = None

    def sample(self, size: int, seed: int) -> tuple[Integers, Floats, Integers]:
        """Choose about `size` records; return their rows, points and parts."""
        self.drawn: Sample = (size, seed, self.n)
        found = self.engine.work("sample", [self.table], partial(_sample, self.drawn)).facts
        rows, points, parts = (
            np.concatenate([own[name] for own in found.values()])
            for name in ("rows", "points", "parts")
        )
        return rows, points, parts

    def sampled(self) -> Floats:
        """Return the centres of the groups of the sampled records."""
        facts = self._facts()
        rows = np.concatenate([own["sample_rows"] for own in facts])
        return np.concatenate([own["sample_centres"] for own in facts])[np.argsort(rows)]

    def send(self, forest: CutForest) -> Integers:
        """Send all records to their cells; return how many units each has."""
        before = [] if self.current is None else [self.current]  # cells were too small
        self.current = self.engine.work("send", [self.table], partial(_send, forest), last=before)
        counts = np.zeros(forest.n_cells, dtype=np.int64)
        if not self.has_units:
            for own in self._facts():
                np.add.at(counts, own["cells"], own["counts"])
            return counts
        found = self.engine.work("units", [self.current], _count_units)
        for own in found.facts.values():
            counts[own["cells"]] = own["counts"]
        return counts

    def group(self, k: int, seed: int, then: CutForest) -> None:
        """Group the records of each cell, and send the groups on to the cells of a forest."""
        self._work(then, {"k": k, "seed": seed})

    def improve(self, k: int, seed: int, moves: float, heat: Heat, then: CutForest) -> None:
        """Improve the groups of each cell, and send them on."""
        self._work(then, {"k": k, "seed": seed, "moves": moves, "heat": heat})

    def _work(self, then: CutForest, options: dict[str, Any]) -> None:
        """Let each bundle work on its records, and send them on."""
        assert self.current is not None, "records are sent first"
        job = partial(_work, self.has_units, then, options, self.drawn)
        self.current = self.engine.work("cells", [self.current], job, last=[self.current])
        self.sse = float(sum(float(own["sse"]) for own in self._facts()))

    def _facts(self) -> list[Any]:
        assert self.current is not None
        return list(self.current.facts.values())


def _sample(drawn: Sample, number: int, given: Sequence[Any]) -> Made:  # noqa: ARG001
    (rows,) = given
    row = numbers(rows, "row")
    chosen = _is_drawn(drawn, row)
    facts = {
        "rows": row[chosen], "points": numbers(rows, "x")[chosen],
        "parts": numbers(rows, "part")[chosen],
    }  # fmt: skip
    return Made(facts=facts)


def _is_drawn(drawn: Sample, row: Integers) -> Any:
    size, seed, n = drawn
    return sampled_among(keys_of_rows(row, SAMPLE + 4 * seed), size, n)


def _send(forest: CutForest, number: int, given: Sequence[Any]) -> Made:  # noqa: ARG001
    """Send the records of a piece of the table to their cells."""
    (rows,) = given
    cells = forest.cells_of(
        numbers(rows, "x"), keys_of(numbers(rows, "row")), numbers(rows, "part")
    )
    there, counts = np.unique(cells, return_counts=True)
    sent = rows.append_column("cell", pa.array(cells))
    return Made(sent, forest.bundles[cells], {"cells": there, "counts": counts})


def _count_units(number: int, given: Sequence[Any]) -> Made:  # noqa: ARG001
    (rows,) = given
    cells, unit = numbers(rows, "cell"), numbers(rows, "unit")
    there = np.unique(cells)
    counts = [len(np.unique(unit[cells == cell])) for cell in there]
    return Made(facts={"cells": there, "counts": counts})


def _work(
    has_units: bool, then: CutForest, options: dict[str, Any], drawn: Sample, number: int,  # noqa: ARG001
    given: Sequence[Any],
) -> Made:  # fmt: skip
    """Group or improve the records of the cells of a bundle, and send them to their next cells."""
    (rows,) = given
    rows = rows.take(pa.array(np.lexsort((numbers(rows, "row"), numbers(rows, "cell")))))
    rows = rows.combine_chunks()
    cells = numbers(rows, "cell")
    there, starts = np.unique(cells, return_index=True)
    X, weights, row, group = (numbers(rows, name) for name in ("x", "weight", "row", "group"))
    part = numbers(rows, "part")
    unit = numbers(rows, "unit") if has_units else None
    groups, to = np.empty(len(row), dtype=np.int64), np.empty(len(row), dtype=np.int64)
    sse, sample_rows, sample_centres = 0.0, [], []
    for cell, first, end in zip(there.tolist(), starts, np.append(starts[1:], len(row))):
        own = slice(first, end)
        units = None if unit is None else unit[own]
        found = _find(X[own], weights[own], units, group[own], options, cell)
        groups[own] = row[own][found.first][found.labels]
        keys = keys_of(row[own][found.first])
        parts = np.full(len(keys), part[first])
        to[own] = then.cells_of(found.centres, keys, parts)[found.labels]
        chosen = _is_drawn(drawn, row[own])
        sample_rows.append(row[own][chosen])
        sample_centres.append(found.centres[found.labels[chosen]])
        sse += found.sse
    facts = {
        "sse": sse, "sample_rows": np.concatenate(sample_rows),
        "sample_centres": np.concatenate(sample_centres),
    }  # fmt: skip
    for name, values in (("group", groups), ("cell", to)):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, pa.array(values))
    return Made(rows, then.bundles[to], facts)


def _find(
    X: Floats, weights: Floats, units: Integers | None, group: Integers, options: dict[str, Any],
    cell: int,
) -> GroupedCell:  # fmt: skip
    k, seed = options["k"], seed_of_cell(options["seed"], cell)
    if "moves" not in options:
        return group_cell(X, weights, units, k, seed)
    return improve_cell(
        X, weights, units, group, k, seed, moves=options["moves"], heat=options["heat"], halt=HALT,
    )  # fmt: skip
