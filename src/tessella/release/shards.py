"""The job that masks: a shard of a table larger than memory is a table of its own.

Its records were grouped before (see `tessella.engines.cells`), or it is a cell that finds groups by
itself (see `tessella.release.cells`). It is masked and audited by the same code as any other table,
in the scale of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from .._types import Floats, Integers, Name
from ..engines.base import Made
from ..engines.cells import numbers
from ..frame import View
from ..grouping.cells import seed_of_cell
from ..kernels.cut_tree import keys_of_rows
from ..masking.whole import (
    Whole,
    find_parts,
    place_piece,
    plans_of_blocks,
    read_block,
    weights_of,
)
from ..plan import Plan
from . import jobs
from .centres import shares_centres
from .jobs import DRAWN, GROUP, KEY, PART, ROW, Task, pack, units_of, with_numbers
from .promises import ATTACKED, Promise, known_of_plan, naming_chance
from .result import Planned, Protocol, Release, as_planned, judge, mask_planned


def mask_shard(task: Task, wholes: Sequence[Whole], number: int, given: Sequence[Any]) -> Made:
    """Mask, audit and measure a shard, and send its records to the parts of the release.

    Its records were grouped before, or it is a cell, which finds groups by itself.
    """
    rows, row = with_numbers(number, given[0])
    part = group = None
    if GROUP in rows.column_names:
        group, part = numbers(rows, GROUP), numbers(rows, PART)
        rows = rows.drop_columns([GROUP, PART])
    view = task.view(rows)
    release, planned, inconsistent = _release_shard(task, wholes, view, number, part, group)
    released = task.form.plain(release.table)
    groups = [_by_first_row(own, row) for own in release.labels]  # as released: some were enlarged
    key = row / max(task.n, 1) if task.order is None else keys_of_rows(row, task.order)
    parts = -(-task.n // jobs.PARTITION)
    share = min(1.0, jobs.SAMPLED / task.n)
    together: Any = {"groups": groups[0], "records": row, "units": units_of(view)}[task.sampled_by]
    chosen = pa.array(np.flatnonzero(keys_of_rows(together, DRAWN) < share))
    audit = release.audit
    lines = list(audit.blocks)
    if audit.joint is not None and len(lines) > 1:
        lines.append(audit.joint)
    facts = {
        "records": len(row), "smallest": [line.k for line in lines],
        "below": [line.n_below or 0 for line in lines], "inconsistent": inconsistent,
        "breaking": release.inconsistent, "edited": release.edited, "donated": release.donated,
        "merged": release.merged, "coincided": planned.masked.coincided,
        "dominated": audit.dominated,
        "dominated_columns": np.array(_dominated_columns(release), dtype=np.str_),
        "squares": _squares(task, wholes, view, View(release.table, release.schema)),
        "sample": pack(rows.take(chosen)), "released": pack(released.take(chosen)),
        "labels": np.array([own[chosen.to_numpy()] for own in groups]),
        "rows": row[chosen.to_numpy()],
        **_chance_of_naming(task, view, planned),
    }  # fmt: skip
    released = released.append_column(KEY, pa.array(key)).append_column(ROW, pa.array(row))
    return Made(released, np.minimum((key * parts).astype(np.int64), parts - 1), facts)


def _by_first_row(labels: Integers, row: Integers) -> Integers:
    """Name groups by the first row that each has: no group of another shard is named so."""
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    return row[first][place]


def _release_shard(
    task: Task, wholes: Sequence[Whole], view: View, number: int, part: Integers | None,
    group: Integers | None,
) -> tuple[Release, Planned, list[int]]:  # fmt: skip
    """Mask and judge the records of a shard as a table of its own."""
    before = task.rules.confront(view, tolerance=task.tolerance, schema=task.schema)
    plan = _plan_of_shard(task, view.n_rows)
    shards = None
    if part is not None:
        shards = [wholes[0].shard(part, group)]
    elif task.constant is None:
        shards = [own.shard(find_parts(view, own), None, place_piece(view, own)) for own in wholes]
    planned = mask_planned(
        view.table, task.schema, k=plan.k, before=before, plan=plan, weights=weights_of(view),
        tolerance=task.tolerance, dominance=task.dominance, on_dominance=task.on_dominance,
        whole_units=task.whole_units, random_state=_seed_of_shard(task, number), shards=shards,
    )  # fmt: skip
    promise = Promise.of_plan(plan)
    found = judge(
        view, planned.table, expected=View.of(as_planned(view.table, plan), task.schema),
        masked=task.masked, before=before, planned=planned,
        promised=promise.audited if plan.keeps_k else {},
        tolerance=task.tolerance, protocol=Protocol(()),
    )  # fmt: skip
    return found, planned, [len(own) for own in before.rows]


def _plan_of_shard(task: Task, n: int) -> Plan:
    """Return the plan with the units of the whole table, and a shard's share of fuzzy centres."""
    plan = task.plan
    if task.unit_scale is not None:
        plan = replace(plan, scale=task.unit_scale)
    if plan.is_fuzzy and plan.options.get("c"):
        share = max(1, round(plan.options["c"] * n / task.n))
        plan = replace(plan, options={**plan.options, "c": share})
    return plan


def _seed_of_shard(task: Task, number: int) -> Any:
    """Return where the chance of a shard comes from; what protects has more than 31 bits."""
    if not task.plan.is_drawn:
        return seed_of_cell(task.seed, number) % 2**31
    return np.random.RandomState(np.random.SeedSequence([task.seed, number]).generate_state(8))


def _chance_of_naming(task: Task, view: View, planned: Planned) -> dict[str, Any]:
    """Count the records that an intruder names who knows the method, where k is not promised."""
    plan = task.plan
    if plan.keeps_k:
        return {}
    if shares_centres(task):
        reason = "all cells share the centres, and they are masked apart."
        return {"named": -1, "attacked": 0, "not_named": np.array([reason])}
    attacked = -(-ATTACKED * view.n_rows // task.n)
    found = naming_chance(
        view.table, planned.table.native, known_of_plan(planned, view, task.schema),
        task.masked, plan.k, bounded=plan.is_overlapping, attacked=attacked,
    )()  # fmt: skip
    named = -1 if found.named is None else found.named
    return {"named": named, "attacked": found.records, "not_named": np.array([found.reason])}


def _dominated_columns(release: Release) -> list[str]:
    """List the columns in which totals of released groups give a record away."""
    return [str(line.column) for line in release.audit.dominance if line.rows]


def _squares(task: Task, wholes: Sequence[Whole], view: View, released: View) -> Floats:
    """Return, for each column of numbers, squared differences in deviations, and their weight."""
    names, weights = masked_numbers(task, view), weights_of(view)
    out = np.zeros((len(names), 2))
    for j, (name, deviation) in enumerate(zip(names, deviations(wholes))):
        before, after = view.numbers(name), released.numbers(name)
        seen = ~np.isnan(before)
        own = ((before[seen] - after[seen]) / (deviation or 1.0)) ** 2
        out[j] = (weights[seen] * own).sum(), weights[seen].sum()
    return out


def deviations(wholes: Sequence[Whole]) -> list[float]:
    """List the standard deviations of the masked columns of numbers, in the order of these."""
    return [deviation for whole in wholes for deviation in whole.scale.deviation.tolist()]


def masked_numbers(task: Task, view: View) -> list[Name]:
    """List the masked columns of numbers, in the order of the scales of the blocks."""
    read = (read_block(plan, view) for plan in plans_of_blocks(task.plan))
    return [name for cells, block in read for name in cells.numbers(block)]
