"""What the pieces of a large table must know of the whole, and what its shards are given.

A *piece* is some rows of a table as it was read; a *shard* some rows in whole groups. Pieces are
measured apart, and their sums make up the whole: scale, categories, strata, and the parts that are
grouped apart (see `partition`). With it each piece tells where its records lie, as points. A shard
is masked by itself: with groups that were found before, or with those that it finds.

All this is about one block of columns; a plan of several blocks is as many plans of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name
from ..exceptions import GroupSizeError
from ..frame import View, group_ids
from ..plan import Block, Plan
from .aggregation import COMPUTED
from .fuzzy_groups import Logarithms
from .parts import BlockCells, KeysOfParts, Part, join_small, keys_of_parts, part_of
from .repair_products import recompute_products
from .selection import Scale, corners, measure_column, merge_columns

Facts = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Whole:
    """What is known of a whole table: of one block of masked columns."""

    plan: Plan  # of this block alone
    scale: Scale
    logarithms: Scale  # of the columns that fuzzy groups have as logarithms
    levels: Mapping[Name, list[str]]  # the categories of each column, by rank if ordinal
    spreads: Mapping[Name, float]  # of the ranks of ordinal ones
    strata: Mapping[str, int]  # by name
    keys: Integers  # what puts records apart, distinct and in order
    part: Integers  # of each of them
    parts: tuple[Part, ...]  # without rows
    sizes: Integers  # records of each part
    centres: Mapping[tuple[int, ...], Floats] | None = None  # fuzzy ones, by key of their part

    def shard(
        self, parts: Integers, labels: Integers | None, points: Floats | None = None
    ) -> Shard:
        """Return what a shard is given, of whose records parts and groups, or points, are known."""
        found = []
        for part in np.unique(parts).tolist():
            known = self.parts[part]
            rows = np.flatnonzero(parts == part)
            found.append(Part(rows, known.claims, known.signs, 0, known.key))
        return Shard(self.scale, self.logarithms, tuple(found), labels, points, self.centres)


@dataclass(frozen=True, eq=False)
class Shard:
    """What is known of some rows of a table, and one block: its scale, and their parts.

    `labels` are their groups, where they were grouped before; `points` where they lie, as records
    of the whole table, where they were not; `centres` those of the whole, where they are given.
    """

    scale: Scale
    logarithms: Scale
    parts: tuple[Part, ...]
    labels: Integers | None
    points: Floats | None
    centres: Mapping[tuple[int, ...], Floats] | None = None

    def embed(self, plan: Plan) -> Floats | None:
        """Return the points, where a plan groups records by their values."""
        return self.points if plan.distance == "original" or plan.is_fuzzy else None


def plans_of_blocks(plan: Plan) -> list[Plan]:
    """Return a plan for each block."""
    return [replace(plan, blocks=(block,)) for block in plan.blocks]


def read_block(plan: Plan, view: View) -> tuple[BlockCells, Block]:
    """Read the one block of a plan, edited as it is before grouping."""
    (block,) = plan.blocks
    cells = BlockCells.read(view, block.columns, plan.strata, block.with_operator(*COMPUTED))
    recompute_products(cells, block)
    return cells, block


def weights_of(view: View) -> Floats:
    """Return the weight of each record, 1 without weights."""
    found = view.weights()
    return np.ones(view.n_rows) if found is None else found


def measure_piece(plan: Plan, view: View, units: Integers | None) -> dict[str, Any]:
    """Measure a piece: columns of numbers, categories, and what puts its records apart."""
    cells, block = read_block(plan, view)
    weights = weights_of(view)
    numbers = cells.numbers(block)
    values = cells.matrix(numbers)
    logs = Logarithms.values_of(block, numbers, values)[1]
    facts: dict[str, Any] = {
        "numbers": np.array([measure_column(own, weights) for own in values.T]),
        "logarithms": np.array([measure_column(own, weights) for own in logs.T]),
    }
    for at, name in enumerate(block.columns):
        if name in cells.levels:
            codes = cells.column(name)
            known = codes[~np.isnan(codes)].astype(np.int64)
            counts = np.bincount(known, minlength=len(cells.levels[name]))
            seen = np.flatnonzero(counts)
            facts[f"levels{at}"] = np.array([cells.levels[name][i] for i in seen], dtype=np.str_)
            facts[f"counts{at}"] = counts[seen]
    strata, names = _strata(plan, view)
    keys = keys_of_parts(cells, block, strata)
    distinct, place = _distinct(keys.values)
    facts |= {
        "strata": np.array(names, dtype=np.str_), "keys": distinct,
        "records": np.bincount(place, minlength=len(distinct)),
    }  # fmt: skip
    if units is not None:
        facts["units"] = few_units(place, units, plan.k)
    return facts


def few_units(sets: Integers, units: Integers, k: int) -> Integers:
    """Return pairs of a set and a unit that it has: up to k of each, enough to tell it has k."""
    pairs = np.unique(np.column_stack([sets, units]), axis=0)
    starts = np.searchsorted(pairs[:, 0], np.arange(int(sets.max()) + 1))
    return pairs[np.arange(len(pairs)) - starts[pairs[:, 0]] < k]


def _strata(plan: Plan, view: View) -> tuple[Integers, list[str]]:
    """Return the stratum of each record, and a text for each that no other stratum has."""
    found = view.strata(plan.strata)
    if not plan.strata:
        return found.ids, list(found.names)
    first = np.unique(found.ids, return_index=True)[1]
    columns = [view.table.labels(name) for name in plan.strata]
    texts = [[labels[codes[at]] for at in first] for codes, labels in columns]
    return found.ids, [json.dumps(own) for own in zip(*texts)]


def put_together(
    plan: Plan, shown: View, pieces: Sequence[Facts], *, partitioned: bool = True
) -> Whole:
    """Make the whole of what was measured in its pieces; `shown` is any piece.

    Households are not `partitioned`: records are separated by what all members have.
    """
    (block,) = plan.blocks
    cells = BlockCells.read(shown, block.columns, plan.strata, block.with_operator(*COMPUTED))
    numbers = cells.numbers(block)
    merged, logs = (
        [merge_columns(list(own)) for own in zip(*(piece[what] for piece in pieces))]
        for what in ("numbers", "logarithms")
    )
    wish = plan.scale
    if isinstance(wish, Mapping):
        wish = {name: wish[name] for name in numbers if name in wish}
    scale = Scale.of_measures(merged, wish, numbers)
    levels, spreads = {}, {}
    for at, name in enumerate(block.columns):
        if name not in cells.levels:
            continue
        counts: dict[str, int] = {}
        for own in pieces:
            for label, count in zip(own[f"levels{at}"].tolist(), own[f"counts{at}"].tolist()):
                counts[label] = counts.get(label, 0) + count
        ordered = shown.kind(name) == "ordinal"
        levels[name] = shown.in_order(name, counts) if ordered else sorted(counts)
        sizes = [counts.get(label, 0) for label in levels[name]]  # some may not occur
        ranks = np.repeat(np.arange(len(sizes)), sizes)
        spreads[name] = float(np.std(ranks)) if len(ranks) else 0.0
    strata = {name: at for at, name in enumerate(sorted({n for p in pieces for n in p["strata"]}))}
    none = np.zeros(0, dtype=np.int64)
    parts = _parts(plan, block, pieces, strata) if partitioned else (none, none, (), none)
    return Whole(
        plan, scale, Logarithms.scale_of(logs), levels, spreads, strata, *parts
    )  # fmt: skip


def _parts(
    plan: Plan, block: Block, pieces: Sequence[Facts], strata: Mapping[str, int]
) -> tuple[Integers, Integers, tuple[Part, ...], Integers]:
    """Find the parts of the whole: keys of records, the part of each, the parts, their sizes."""
    translated = []
    for own in pieces:
        keys = own["keys"].copy()
        keys[:, 0] = np.array([strata[name] for name in own["strata"].tolist()])[keys[:, 0]]
        translated.append(keys)
    keys, place = np.unique(np.concatenate(translated), axis=0, return_inverse=True)
    place = place.ravel()
    records = np.bincount(place, np.concatenate([own["records"] for own in pieces])).astype(int)
    counted, units = records, None
    if "units" in pieces[0]:
        firsts = np.cumsum([0, *(len(own["keys"]) for own in pieces)])
        pairs = [
            np.column_stack([place[own["units"][:, 0] + first], own["units"][:, 1]])
            for own, first in zip(pieces, firsts)
        ]
        units = np.unique(np.concatenate(pairs), axis=0)
        counted = np.bincount(units[:, 0], minlength=len(keys))
    _refuse_few(plan, keys, counted, strata, units)
    fixed = KeysOfParts.fixed_of(block)
    became = join_small(keys, records, counted, plan.k, plan.small, fixed=fixed, units=units)
    kept, part = np.unique(became, return_inverse=True)
    sizes = np.bincount(part.ravel(), records).astype(int)
    found = tuple(
        part_of(block, keys[at], np.arange(0), int(sizes[number] - records[at]))
        for number, at in enumerate(kept.tolist())
    )
    return keys, part.ravel(), found, sizes


def _refuse_few(
    plan: Plan, keys: Integers, counted: Integers, strata: Mapping[str, int],
    units: Integers | None,
) -> None:  # fmt: skip
    """Refuse strata of fewer than k."""
    names, few = list(strata), {}
    for stratum in range(len(names)):
        own = np.flatnonzero(keys[:, 0] == stratum)
        size = int(counted[own].sum())
        if units is not None:
            size = len(np.unique(units[np.isin(units[:, 0], own), 1]))
        if size < plan.k:
            told = names[stratum]
            if plan.strata:
                told = ", ".join(f"{c}={v}" for c, v in zip(plan.strata, json.loads(told)))
            few[told] = size
    if few:
        what = "records" if units is None else "units"
        raise GroupSizeError.small_strata(k=plan.k, sizes=few, what=what)


def find_parts(view: View, whole: Whole) -> Integers:
    """Return the part of each record of a piece."""
    cells, block = read_block(whole.plan, view)
    own, names = _strata(whole.plan, view)
    ids = np.array([whole.strata[name] for name in names])[own]
    keys = keys_of_parts(cells, block, ids).values
    return whole.part[_find_rows(whole.keys, keys)]


def place_piece(view: View, whole: Whole) -> Floats:
    """Return the records of a piece as points: see `embed`."""
    plan = whole.plan
    cells, block = read_block(plan, view)
    given = plan.scale if isinstance(plan.scale, Mapping) else {}
    numbers = cells.numbers(block)
    pieces = [whole.scale.apply(cells.matrix(numbers))] if numbers else []
    for name in block.columns:
        if name not in cells.levels:
            continue
        ranks = {label: rank for rank, label in enumerate(whole.levels[name])}
        own = np.array([ranks.get(label, 0) for label in cells.levels[name]] or [0])
        codes = own[np.nan_to_num(cells.column(name), nan=0.0).astype(np.int64)]
        unit = given.get(name, 1.0)
        if view.kind(name) == "ordinal":
            pieces.append((codes / ((whole.spreads[name] or 1.0) * unit))[:, None])
        else:
            pieces.append(corners(codes, len(ranks)) / unit)
    points = np.column_stack(pieces) if pieces else np.zeros((view.n_rows, 0))
    if not points.shape[1]:
        points = np.zeros((view.n_rows, 1))
    return np.ascontiguousarray(points)


def _distinct(rows: Integers) -> tuple[Integers, Integers]:
    """Return the distinct rows in order, and where each row is among them; few are distinct."""
    ids = group_ids(rows.T)
    shown = rows[np.unique(ids, return_index=True)[1]]
    distinct, place = np.unique(shown, axis=0, return_inverse=True)
    return distinct, place.ravel()[ids]


def _find_rows(table: Integers, rows: Integers) -> Integers:
    """Return where each row is in a table of distinct rows in order."""
    distinct, place = _distinct(rows)
    both, where = np.unique(np.concatenate([table, distinct]), axis=0, return_inverse=True)
    assert len(both) == len(table), "every row was counted before"
    found: Integers = where.ravel()[len(table) :][place]
    return found
