"""The jobs of a release of a table larger than memory: see `tessella.release.large`.

Each gets some rows and a task, and knows nothing of other jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .._types import Integers, Name
from ..engines.base import PIECE, Made
from ..engines.cells import numbers, records
from ..exceptions import RefusedError
from ..frame import Table, View, group_ids
from ..grouping.dominance import DominanceRule
from ..kernels.cut_tree import keys_of_rows
from ..masking.homes import numeric_columns
from ..masking.selection import measure_column
from ..masking.unit_classes import hash_texts
from ..masking.whole import (
    Whole,
    few_units,
    find_parts,
    measure_piece,
    place_piece,
    plans_of_blocks,
    weights_of,
)
from ..plan import Plan
from ..rules import Rules
from ..schema import Schema
from .forms import Form
from .preparing import Suppression, prepared
from .steps import Step

PARTITION = 262_144  # records of a part of the release
SAMPLED = 131_072  # records that a large table is looked at by, before and after
ROW, GROUP, PART, SHARD, KEY = (
    f"tessella {name}" for name in ("row", "group", "part", "shard", "key")
)
LOOK, DRAWN, ORDER = 5, 6, 7  # streams of the keys of rows


@dataclass(frozen=True, eq=False)
class Task:
    """What every job needs to know."""

    form: Form  # of the table as it is
    released: Form  # of the prepared table, and so of the release
    steps: tuple[Step, ...]  # that prepare the table
    given: Schema  # of the table as it is
    schema: Schema  # of the prepared table
    rules: Rules
    plan: Plan
    tolerance: float
    dominance: DominanceRule
    on_dominance: str
    seed: int
    order: int | None  # the stream of keys that the order is drawn from; None keeps it
    doubted: tuple[Name, ...] = ()  # columns that tell the records of a sample apart
    n: int = 0
    suppression: Suppression | None = None  # where a step suppresses cells, once these are counted
    whole_units: bool = False
    asks_units: bool = False  # in the sample units have columns that are constant in them
    # Of tables whose units are masked whole: the columns that are constant in them, and the unit of
    # each column of numbers in the whole table.
    constant: tuple[Name, ...] | None = None
    unit_scale: Mapping[Name, float] | None = None

    @property
    def masked(self) -> list[Name]:
        """The columns of all blocks."""
        return [name for block in self.plan.blocks for name in block.columns]

    @property
    def sampled_by(self) -> str:
        """What the sample of a release has whole: groups, units, or records alone.

        Groups of several blocks cross each other, those of households share members, and a record
        that drew its group is no member of it: there k is counted in all records, and the sample
        cannot show it.
        """
        alone = self.constant is None and all(rule.unit is None for rule in self.rules)
        if len(self.plan.blocks) == 1 and self.plan.keeps_k and alone:
            return "groups"
        return "units" if self.schema.names("unit") else "records"

    def view(self, rows: pa.Table) -> View:
        """Return some rows of the table, prepared."""
        table, _ = prepared(self.form, self.steps, rows, self.given, self.suppression)
        return View(table, self.schema)


def look_at_piece(share: float, number: int, given: Sequence[Any]) -> Made:
    """Draw a share of the rows of a piece, each by its number alone."""
    (rows,) = given
    row = rows_of_piece(number, rows)
    chosen = np.flatnonzero(keys_of_rows(row, LOOK) < share)
    return Made(facts={"sample": pack(rows.take(pa.array(chosen)))})


def rows_of_piece(number: int, rows: pa.Table) -> Integers:
    """Return the places in the table of the rows of a piece."""
    return number * PIECE + np.arange(rows.num_rows)


def pack(rows: pa.Table) -> Any:
    """Return rows as bytes that facts can hold."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def unpack(packed: Any) -> pa.Table:
    """Return rows that were packed."""
    with pa.ipc.open_stream(pa.py_buffer(np.ascontiguousarray(packed))) as stream:
        return stream.read_all()


def count_patterns(task: Task, names: Sequence[Name], k: int, _: int, given: Sequence[Any]) -> Made:
    """Count the patterns of missing cells of a piece, with a row that has each."""
    (rows,) = given
    view = task.view(rows)
    states = np.column_stack([view.states(name).astype(np.int64) for name in names])
    own = group_ids(states.T)
    first = np.unique(own, return_index=True)[1]
    facts = {
        "patterns": states[first], "records": np.bincount(own),
        "donors": pack(task.form.plain(rows).take(pa.array(first))),
    }  # fmt: skip
    units = units_of(view)
    if units is not None:
        facts["units"] = few_units(own, units, k)
    return Made(facts=facts)


def measure_rows(task: Task, first: int, number: int, given: Sequence[Any]) -> Made:
    """Measure a piece: what the whole is put together from; the first one shows some rows."""
    rows, _ = with_numbers(number, given[0])
    view = task.view(rows)
    facts: dict[str, Any] = {}
    for at, plan in enumerate(plans_of_blocks(task.plan)):
        found = measure_piece(plan, view, units_of(view))
        facts |= {f"{at} {name}": own for name, own in found.items()}
    if task.constant is not None:
        numeric, weights = numeric_columns(view, task.masked), weights_of(view)
        facts["units"] = [measure_column(view.numbers(name), weights) for name in numeric]
    for at, step in enumerate(task.steps):
        if step.options.get("groups") is not None:
            texts = Table.read(task.form.dress(rows)).labels(step.options["column"])[1]
            facts[f"texts{at}"] = np.array(texts, dtype=np.str_)
    if task.plan.edit == "refuse":
        before = task.rules.confront(view, tolerance=task.tolerance, schema=task.schema)
        facts["broken"] = np.array([len(own) for own in before.rows], dtype=np.int64)
        facts["breaking"] = len(before.breaking())
    if number == first:
        facts["shown"] = pack(rows.slice(0, 1_000))
    return Made(facts=facts)


def units_of(view: View) -> Integers | None:
    """Return a number for each record's unit that is the same in every piece."""
    if view.unit is None:
        return None
    codes, texts = view.labels(view.unit)
    _ = view.units  # refuses records without one
    return hash_texts(codes, texts)


def with_numbers(number: int, rows: pa.Table) -> tuple[pa.Table, Integers]:
    """Return rows without what they were moved by, in the order of the table, and their numbers."""
    if ROW not in rows.column_names:
        return rows, rows_of_piece(number, rows)
    rows = rows.take(pa.array(np.argsort(numbers(rows, ROW)))).combine_chunks()
    return rows.drop_columns([ROW]), numbers(rows, ROW)


def place_rows(task: Task, whole: Whole, number: int, given: Sequence[Any]) -> Made:
    """Return the records of a piece as points."""
    (rows,) = given
    view = task.view(rows)
    points, parts = place_piece(view, whole), find_parts(view, whole)
    row, units = rows_of_piece(number, rows), units_of(view)
    return Made(records(row, points, weights_of(view), units, parts), np.full(len(row), number))


def send_back(number: int, given: Sequence[Any]) -> Made:
    """Send the groups of a bundle of cells, which becomes a shard, back to their pieces."""
    (rows,) = given
    row = numbers(rows, "row")
    found = {
        ROW: row, GROUP: numbers(rows, "group"), PART: numbers(rows, "part"),
        SHARD: np.full(len(row), number),
    }  # fmt: skip
    return Made(pa.table(found), row // PIECE)


def send_rows(number: int, given: Sequence[Any]) -> Made:
    """Send the rows of a piece, with their groups, to their shards."""
    rows, groups = given
    if groups is None or groups.num_rows != rows.num_rows:
        raise RefusedError("Records were lost on the way. Nothing is released; start again.")
    groups = groups.take(pa.array(np.argsort(numbers(groups, ROW))))
    if not (numbers(groups, ROW) == rows_of_piece(number, rows)).all():
        raise RefusedError("Records were lost on the way. Nothing is released; start again.")
    for name in (ROW, GROUP, PART):
        rows = rows.append_column(name, groups.column(name))
    return Made(rows, numbers(groups, SHARD))


def put_in_order(number: int, given: Sequence[Any]) -> Made:
    """Put the records of a part of the release in their order."""
    (rows,) = given
    order = np.lexsort((numbers(rows, ROW), numbers(rows, KEY)))
    rows = rows.take(pa.array(order)).combine_chunks().drop_columns([ROW, KEY])
    return Made(rows, np.full(rows.num_rows, number))


def hash_part(task: Task, columns: Sequence[str], _: int, given: Sequence[Any]) -> Made:
    """Count the records that are alike in a part of the release, by two hashes of their cells."""
    (rows,) = given
    return _counted(hash_rows(rows.select(columns)), -(-task.n // PARTITION))


def _counted(hashed: Any, parts: int) -> Made:
    distinct, counts = np.unique(hashed, axis=0, return_counts=True)
    found = {"one": distinct[:, 0], "two": distinct[:, 1], "count": counts}
    return Made(pa.table(found), (distinct[:, 0] % np.uint64(parts)).astype(np.int64))


def hash_cells(task: Task, column: str, _: int, given: Sequence[Any]) -> Made:
    """Count the equal cells of a column in a piece, by two hashes."""
    (rows,) = given
    known = task.form.plain(pa.table(task.view(rows).table.native).select([column])).drop_null()
    return _counted(hash_rows(known), -(-task.n // PARTITION))


def count_alone(_: int, given: Sequence[Any]) -> Made:
    """Count the cells that nobody else has, among some of the hashes."""
    return Made(facts={"alone": (_totals(given[0]) == 1).sum()})


def alike_columns(plan: Plan) -> list[list[str]]:
    """List the columns in which records are alike: of each block, and of all where k is of each."""
    blocks = [[*map(str, block.columns)] for block in plan.blocks]
    joint = [name for block in blocks for name in block]
    if not plan.keeps_k:
        return [joint]
    blocks += [joint] if len(blocks) > 1 else []
    return [[*block, *map(str, plan.strata)] for block in blocks]


def hash_rows(rows: pa.Table) -> Any:
    """Return two hashes of each row, shape (n, 2): 128 bits, the same wherever rows are."""
    import pandas as pd

    columns: dict[int, Any] = {}
    for at, column in enumerate(rows.columns):
        kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind):
            # with nulls apart: pandas would change the type of a part of the release that has some
            columns[2 * at + 1] = column.is_null().to_numpy()
            columns[2 * at] = column.fill_null(False if pa.types.is_boolean(kind) else 0).to_numpy()
            continue
        own = column.to_pandas()
        if own.dtype == object:
            own = own.astype("str").where(own.notna(), "\0missing")
        columns[2 * at] = own.array
    frame = pd.DataFrame(columns)
    both = [
        pd.util.hash_pandas_object(frame, index=False, hash_key=key, categorize=True).to_numpy()
        for key in ("tessella counts1", "tessella counts2")
    ]
    return np.column_stack(both)


def count_alike(k: int, _: int, given: Sequence[Any]) -> Made:
    """Count the records that are alike in the whole release, for some of the hashes."""
    (rows,) = given
    totals = _totals(rows)
    facts = {
        "groups": len(totals), "smallest": totals.min(), "records": totals.sum(),
        "below": totals[totals < k].sum(),
    }  # fmt: skip
    return Made(facts=facts)


def _totals(rows: pa.Table) -> Integers:
    both = np.column_stack([numbers(rows, "one"), numbers(rows, "two")])
    _, place = np.unique(both, axis=0, return_inverse=True)
    return np.bincount(place.ravel(), numbers(rows, "count")).astype(np.int64)
