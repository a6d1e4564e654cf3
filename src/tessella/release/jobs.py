"""The jobs of a release of a table larger than memory: see `tessella.release.large`.

Each gets some rows and a task, and knows nothing of other jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from .._types import Floats, Integers, Name
from ..engines.base import PIECE, Made
from ..engines.cells import numbers, records
from ..exceptions import RefusedError
from ..frame import Table, View, group_ids
from ..grouping.cells import seed_of_cell
from ..grouping.dominance import DominanceRule
from ..kernels.cut_tree import keys_of_rows
from ..masking.whole import (
    Whole,
    few_units,
    measure_piece,
    place_piece,
    read_block,
    weights_of,
)
from ..plan import Plan
from ..rules import Rules
from ..schema import Schema
from .forms import Form
from .preparing import Suppression, prepared
from .promises import Promise
from .result import Protocol, Release, as_planned, judge, mask_planned
from .steps import Step

PARTITION = 262_144  # records of a part of the release
SAMPLED = 131_072  # records that a large table is looked at by, before and after
ROW, GROUP, PART, SHARD, KEY = (
    f"tessella {name}" for name in ("row", "group", "part", "shard", "key")
)
LOOK, DRAWN, ORDER = 5, 6, 7  # streams of the keys of rows
OF_SEARCH = ("effort",)


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
    units = _units(view)
    if units is not None:
        facts["units"] = few_units(own, units, k)
    return Made(facts=facts)


def measure_rows(task: Task, number: int, given: Sequence[Any]) -> Made:
    """Measure a piece: what the whole is put together from."""
    (rows,) = given
    view = task.view(rows)
    facts = measure_piece(task.plan, view, _units(view))
    for at, step in enumerate(task.steps):
        if step.options.get("groups") is not None:
            texts = Table.read(task.form.dress(rows)).labels(step.options["column"])[1]
            facts[f"texts{at}"] = np.array(texts, dtype=np.str_)
    if task.plan.edit == "refuse":
        before = task.rules.confront(view, tolerance=task.tolerance, schema=task.schema)
        facts["broken"] = np.array([len(own) for own in before.rows], dtype=np.int64)
        facts["breaking"] = len(before.breaking())
    if number == 0:
        facts["shown"] = pack(rows.slice(0, 1_000))
    return Made(facts=facts)


def _units(view: View) -> Integers | None:
    """Return a number for each record's unit that is the same in every piece."""
    if view.unit is None:
        return None
    codes, texts = view.labels(view.unit)
    _ = view.units  # refuses records without one
    hashed = pd.util.hash_array(np.array(texts, dtype=object), categorize=False)
    return (hashed >> np.uint64(1)).astype(np.int64)[codes]


def place_rows(task: Task, whole: Whole, number: int, given: Sequence[Any]) -> Made:
    """Return the records of a piece as points."""
    (rows,) = given
    view = task.view(rows)
    points, parts = place_piece(task.plan, view, whole)
    found = records(rows_of_piece(number, rows), points, weights_of(view), _units(view), parts)
    return Made(found, np.full(len(points), number))


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


def mask_shard(task: Task, whole: Whole, number: int, given: Sequence[Any]) -> Made:
    """Mask, audit and measure a shard, and send its records to the parts of the release."""
    (rows,) = given
    rows = rows.take(pa.array(np.argsort(numbers(rows, ROW)))).combine_chunks()
    row, group, part = (numbers(rows, name) for name in (ROW, GROUP, PART))
    rows = rows.drop_columns([ROW, GROUP, PART])
    view = task.view(rows)
    release, inconsistent = _release_shard(task, whole, view, part, group, number)
    released = task.form.plain(release.table)
    _, first, place = np.unique(release.labels[0], return_index=True, return_inverse=True)
    group = row[first][place]  # as they are released: some were enlarged
    key = row / max(task.n, 1) if task.order is None else keys_of_rows(row, task.order)
    parts = -(-task.n // PARTITION)
    share = min(1.0, SAMPLED / task.n)
    chosen = pa.array(np.flatnonzero(keys_of_rows(group, DRAWN) < share))
    facts = {
        "records": len(row), "smallest": min(line.k for line in release.audit.blocks),
        "inconsistent": inconsistent,
        "breaking": release.inconsistent, "edited": release.edited, "donated": release.donated,
        "dominated": release.audit.dominated,
        "dominated_columns": np.array(_dominated_columns(release), dtype=np.str_),
        "squares": _squares(task, whole, view, View(release.table, release.schema)),
        "sample": pack(rows.take(chosen)), "released": pack(released.take(chosen)),
        "labels": group[chosen.to_numpy()], "rows": row[chosen.to_numpy()],
    }  # fmt: skip
    released = released.append_column(KEY, pa.array(key)).append_column(ROW, pa.array(row))
    return Made(released, np.minimum((key * parts).astype(np.int64), parts - 1), facts)


def _release_shard(
    task: Task, whole: Whole, view: View, part: Integers, group: Integers, number: int
) -> tuple[Release, list[int]]:
    """Mask and judge the records of a shard as a table of its own."""
    before = task.rules.confront(view, tolerance=task.tolerance, schema=task.schema)
    plan = task.plan
    planned = mask_planned(
        view.table, task.schema, k=plan.k, before=before, plan=plan, weights=weights_of(view),
        tolerance=task.tolerance, dominance=task.dominance, on_dominance=task.on_dominance,
        whole_units=False, random_state=seed_of_cell(task.seed, number) % 2**31,
        shard=whole.shard(part, group),
    )  # fmt: skip
    promise = Promise.of_plan(plan)
    columns = [name for block in plan.blocks for name in block.columns]
    found = judge(
        view, planned.table, expected=View.of(as_planned(view.table, plan), task.schema),
        masked=columns, before=before, planned=planned,
        promised=vars(promise) | {"strata": [*promise.strata] or None},
        tolerance=task.tolerance, protocol=Protocol(()),
    )  # fmt: skip
    return found, [len(own) for own in before.rows]


def _dominated_columns(release: Release) -> list[str]:
    """List the columns in which totals of released groups give a record away."""
    return [str(line.column) for line in release.audit.dominance if line.rows]


def _squares(task: Task, whole: Whole, view: View, released: View) -> Floats:
    """Return, for each column of numbers, squared differences in deviations, and their weight."""
    names, weights = masked_numbers(task, view), weights_of(view)
    out = np.zeros((len(names), 2))
    for j, name in enumerate(names):
        before, after = view.numbers(name), released.numbers(name)
        seen = ~np.isnan(before)
        spread = whole.scale.deviation[j] or 1.0
        own = ((before[seen] - after[seen]) / spread) ** 2
        out[j] = (weights[seen] * own).sum(), weights[seen].sum()
    return out


def masked_numbers(task: Task, view: View) -> list[Name]:
    """List the masked columns of numbers, in the order of the whole's scale."""
    cells, block = read_block(task.plan, view)
    return cells.numbers(block)


def put_in_order(number: int, given: Sequence[Any]) -> Made:
    """Put the records of a part of the release in their order."""
    (rows,) = given
    order = np.lexsort((numbers(rows, ROW), numbers(rows, KEY)))
    rows = rows.take(pa.array(order)).combine_chunks().drop_columns([ROW, KEY])
    return Made(rows, np.full(rows.num_rows, number))


def hash_part(task: Task, number: int, given: Sequence[Any]) -> Made:  # noqa: ARG001
    """Count the records that are alike in a part of the release, by two hashes of their cells."""
    (rows,) = given
    hashed = hash_rows(rows.select(alike_columns(task.plan)))
    return _counted(hashed, -(-task.n // PARTITION))


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


def alike_columns(plan: Plan) -> list[str]:
    """List the columns in which records of a group are alike."""
    return [*(str(name) for block in plan.blocks for name in block.columns), *map(str, plan.strata)]


def hash_rows(rows: pa.Table) -> Any:
    """Return two hashes of each row, shape (n, 2): 128 bits, the same wherever rows are."""
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


def count_alike(number: int, given: Sequence[Any]) -> Made:  # noqa: ARG001
    """Count the records that are alike in the whole release, for some of the hashes."""
    (rows,) = given
    totals = _totals(rows)
    return Made(facts={"groups": len(totals), "smallest": totals.min(), "records": totals.sum()})


def _totals(rows: pa.Table) -> Integers:
    both = np.column_stack([numbers(rows, "one"), numbers(rows, "two")])
    _, place = np.unique(both, axis=0, return_inverse=True)
    return np.bincount(place.ravel(), numbers(rows, "count")).astype(np.int64)
