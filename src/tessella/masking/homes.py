"""The units of a view: their members, classes and shapes; and the cells that are released.

Members of one *class* may share a group: rules count them alike, they lack the same cells, and they
are in the same strata.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, Signs
from ..frame import Strata, View, count_units, group_ids
from ..grouping.base import check_seed
from ..plan import Plan, make_plan
from ..plan.plan import MATCHED
from ..rules import Rules
from ..rules import expressions as tree
from .engine import MaskedBlocks
from .repair_dates import UNMOVED
from .selection import Scale, corners
from .wide import counted_truths, free_mark, in_standard_order, signs_of

# Balanced columns have two categories, the rarer of them with at least this share. A flip of such a
# column hardly shows in its counts, and each is in tables by everything else. Columns with a rare
# category keep its count (`keep_shares`), and would set few households apart.
FREQUENT = 0.25
MOST_BALANCED = 2  # such columns: each may double the kinds of members
MOST_KINDS = 8  # that count where households are compared: those with most members
# How far apart, in units, are households with and without members of a kind. By MDAV in eusilc,
# k = 3: at 1 3.3 % of the sexes flip and numbers lose 12.9 %; at 4 0.7 and 13.1 %, at 6 0.4 and
# 13.4 %, at 8 0.3 and 13.7 %; where such households never share a group, 0.02 and 16.0 %.
PRESENCE = 6.0


def constant_columns(view: View) -> list[Name]:
    """List the columns whose cells, missing or not, are the same in all records of each unit."""
    units = view.units
    if units is None:
        return []
    _, first, ids = np.unique(units, return_index=True, return_inverse=True)
    codes = ((name, view.codes(name)) for name in view.columns if name != view.unit)
    return [name for name, own in codes if (own == own[first][ids]).all()]


def numeric_columns(view: View, names: Sequence[Name]) -> list[Name]:
    """List the columns that are compared as numbers: yes and no are 1 and 0."""
    facts = {name: view.table.facts(name) for name in names}
    return [
        name
        for name, own in facts.items()
        if (own.numeric and view.kind(name) != "nominal") or own.family == "boolean"
    ]


@dataclass(eq=False)
class Homes:
    """The units of a view: their members, classes of members, shapes."""

    plan: Plan
    view: View
    rules: Rules
    weights: Floats

    def __post_init__(self) -> None:
        given: Integers = self.view.units  # type: ignore[assignment]
        _, self.first, self.units = np.unique(given, return_index=True, return_inverse=True)
        self.masked = [name for block in self.plan.blocks for name in block.columns]
        self.common = set(constant_columns(self.view))
        self.persons = {n for n in (*self.masked, *self.plan.strata) if n not in self.common}
        self.mark = free_mark(self.view.columns)
        self.sizes = np.bincount(self.units)
        self.counted = signs_of(counted_truths(self.rules), self.view)
        self.bounds = signs_of(counted_truths(self.rules, bounds=True), self.view)
        self.classes = self.class_of_each(self.counted)
        kept = [*self.masked, *self.plan.strata]
        self.common_key = self._keys([name for name in kept if name in self.common])

    def _keys(self, names: Sequence[Name]) -> Integers:
        """Number what keeps records apart: strata, and what is missing in other columns."""
        keys = [
            self.view.codes(name) if name in self.plan.strata else self.view.states(name)
            for name in names
            if name in self.plan.strata or self.view.any_missing(name)
        ]
        n = self.view.n_rows
        return group_ids([np.zeros(n, np.int64), *(np.asarray(k, dtype=np.int64) for k in keys)])

    def class_of_each(self, signs: dict[tree.Node, Signs]) -> Integers:
        """Number members that may share a group; those whom rules count come first."""
        apart = self._keys([n for n in (*self.masked, *self.plan.strata) if n in self.persons])
        return in_standard_order([*(own.astype(np.int64) for own in signs.values()), -apart])

    @cached_property
    def fine_classes(self) -> Integers:
        """The class of each member, where bounds of counts keep members apart, too."""
        return self.class_of_each(self.bounds)

    @cached_property
    def members(self) -> list[Integers]:
        """The records of each unit, in the order of their classes."""
        order = np.lexsort((self.classes, self.units))
        return np.split(order, np.cumsum(self.sizes)[:-1])

    def reasons(self, classes: Integers) -> list[str]:
        """Say, for each class of members, by what it is kept apart from others."""
        first = np.unique(classes, return_index=True)[1]
        reasons = []
        for row in first:
            judged = [(tree.write(t), signs[row]) for t, signs in self.bounds.items()]
            own = [text if sign > 0 else f"not {text}" for text, sign in judged if sign]
            lacking = [n for n in self.masked if n in self.persons and self.view.states(n)[row]]
            own.append(f"without {', '.join(map(repr, lacking))}" if lacking else "complete")
            reasons.append(" and ".join(own))
        return reasons

    @cached_property
    def scale(self) -> Any:
        """The unit of each column of numbers over all records, or what the plan gives."""
        if self.plan.scale is None:
            return None
        names = numeric_columns(self.view, self.masked)
        wish = self.plan.scale
        if isinstance(wish, dict):
            wish = {name: wish[name] for name in names if name in wish}
        units = Scale.of(self.view.matrix(names), self.weights, wish, names).unit
        return dict(zip(names, units.tolist()))

    @cached_property
    def member_points(self) -> tuple[Floats, list[Floats]]:
        """Records as points in the columns of members, and columns to put members in order by."""
        return self._points([name for name in self.masked if name in self.persons])

    @cached_property
    def common_points(self) -> Floats:
        """Records as points in the columns that are constant within units."""
        return self._points([name for name in self.masked if name in self.common])[0]

    @cached_property
    def balanced(self) -> list[Name]:
        """Columns of members with two categories, the rarer of which is frequent, as of sexes."""
        numeric = numeric_columns(self.view, self.masked)
        names = [n for n in self.masked if n in self.persons and n not in numeric]
        counts = {name: np.bincount(self.view.categories(name).codes[~self.view.missing(name)])
                  for name in names if self.view.kind(name) == "nominal"}  # fmt: skip
        shares = {
            name: float(own[own > 0].min() / own.sum())
            for name, own in counts.items()
            if (own > 0).sum() == 2
        }
        frequent = [name for name, share in shares.items() if share >= FREQUENT]
        return sorted(frequent, key=lambda name: -shares[name])[:MOST_BALANCED]

    def split(self, cells: Integers, rows: Integers) -> Integers:
        """Split cells of members by balanced columns, where all parts have k units or more."""
        for name in self.balanced:
            codes = self.view.categories(name).codes[rows]
            parts = group_ids([cells, codes])
            few = count_units(parts, self.units[rows]) < self.plan.k
            whole = np.bincount(cells, few[parts]) > 0
            cells = group_ids([cells, np.where(whole[cells], 0, codes + 2)])  # codes are >= -1
        return cells

    @cached_property
    def composition(self) -> Floats:
        """Units as points by their members, kind by kind: if there are any, their mean and spread.

        Kinds are classes, by balanced columns. What its members are counts in a unit by the share
        of its members that are of the kind, as it does in the released records. How many there are
        does not count: in testdata, which has no column of sizes, twice as many cells of common
        columns changed where it did.
        """
        codes = [self.view.categories(name).codes for name in self.balanced]
        kinds = group_ids([self.fine_classes, *codes])
        counts = table_of(self.units, kinds)
        frequent = np.argsort(-counts.sum(axis=0), kind="stable")[:MOST_KINDS]
        pieces = [PRESENCE * (counts[:, frequent] > 0)]
        for kind in frequent:
            rows = np.flatnonzero(kinds == kind)
            points = self.member_points[0][rows]
            points = points[:, np.ptp(points, axis=0) > 0]
            units, number = self.units[rows], np.maximum(counts[:, kind], 1)
            share = np.sqrt(counts[:, kind] / self.sizes)
            for own in (points - points.mean(axis=0)).T:
                mean, square = (np.bincount(units, v, len(number)) / number for v in (own, own**2))
                spread = np.sqrt(np.maximum(square - mean**2, 0.0))
                pieces.append(np.column_stack([share * mean, share * spread]))
        return np.ascontiguousarray(np.hstack(pieces))

    def composition_for(self, size: int) -> Floats:
        """Return the composition as it counts where so many units share their common columns.

        Of more units, members find their like inside, and their own groups lose less: squares count
        by as much less as there are more.
        """
        return np.asarray(self.composition * np.sqrt(self.plan.k / size))

    def _points(self, names: Sequence[Name]) -> tuple[Floats, list[Floats]]:
        pieces, keys = [np.zeros((self.view.n_rows, 0))], []
        units, numeric = self.scale or {}, numeric_columns(self.view, names)
        for name in names:
            if name in numeric:
                numbers = np.nan_to_num(self.view.numbers(name) / units.get(name, 1.0))
                pieces.append(numbers[:, None])
                keys.append(numbers)
            else:
                codes = self.view.categories(name).codes
                pieces.append(corners(codes))
                keys.append(-codes.astype(np.float64))
        return np.ascontiguousarray(np.hstack(pieces)), keys

    def plan_for(
        self, view: View, rules: Rules, blocks: list[list[Name]], strata: Sequence[Name],
        scale: Any, k: int | None = None, *, matched: bool = False,
    ) -> Plan:  # fmt: skip
        """Plan the masking of a table that was made of this one.

        With `matched`, columns of the same names as here keep their distribution, if they do here.
        """
        own, schema = self.plan, view.schema
        planned = make_plan(
            schema, rules, k=own.k if k is None else k,  # type: ignore[arg-type]
            columns=[name for block in blocks for name in block], strata=strata, blocks=blocks,
            fit=own.fit, edit=own.edit, small=own.small, on_missing=own.on_missing,
            distance=own.distance, scale=scale, grouping=own.grouping, options=own.options,
            aggregate=MATCHED if matched else "mean",  # in the whole table all are, at the end
        )  # fmt: skip
        kept = {name for block in own.blocks for name in block.with_operator(MATCHED)}
        return planned.with_means([name for name in self.masked if name not in kept])


@dataclass(eq=False)
class Cells:
    """Where each released cell comes from: a computed number, or the cell of a record."""

    view: View
    plan: Plan
    blocks: MaskedBlocks = field(default_factory=MaskedBlocks)

    def __post_init__(self) -> None:
        n, out = self.view.n_rows, self.blocks
        for _ in self.plan.blocks:
            out.labels.append(np.full(n, -1, dtype=np.int64))
            out.households.append(np.full(n, -1, dtype=np.int64))
        self.computed: set[Name] = set()
        for block in self.plan.blocks:
            for name in block.columns:
                out.numbers[name] = np.zeros(n)
                out.rows[name] = np.arange(n)

    def take(
        self, masked: MaskedBlocks, name: Name, to: Integers, source: Integers, as_named: Name
    ) -> None:
        """Take the column `as_named` of a masked table whose records are `source` rows of ours."""
        out = self.blocks
        if as_named in masked.numbers:
            self.computed.add(name)
            out.numbers[name][to] = masked.numbers[as_named]
            out.rows[name][to] = -1
            return
        out.rows[name][to] = source[masked.rows[as_named]]
        if as_named in masked.dates:
            stamps = out.dates.setdefault(name, np.full(self.view.n_rows, UNMOVED))
            stamps[to] = masked.dates[as_named]

    def counts(self, masked: MaskedBlocks, members: int = 1) -> None:
        """Add up what happened to records, of which each masked one had so many."""
        out = self.blocks
        out.donated += masked.donated * members
        out.edited += masked.edited * members
        out.merged += masked.merged * members

    def label(self, block: int, rows: Integers, labels: Integers, homes: Integers) -> None:
        """Number the groups of some records, and of their households, on."""
        for known, new in ((self.blocks.labels, labels), (self.blocks.households, homes)):
            known[block][rows] = group_ids([new]) + known[block].max() + 1

    def finished(self, names: Collection[Name]) -> MaskedBlocks:
        """Return what `write_blocks` writes of some columns: all computed, or all taken."""
        dates = {name: own for name, own in self.blocks.dates.items() if name in names}
        out = replace(self.blocks, numbers={}, rows={}, dates=dates)
        for name in names:
            rows = self.blocks.rows[name]
            if name in self.computed:
                taken = rows >= 0
                original = np.nan_to_num(self.view.numbers(name))
                own = self.blocks.numbers[name]
                out.numbers[name] = np.where(taken, original[rows], own)
            else:
                out.rows[name] = rows
        return out


class Seeds:
    """Seeds for one masking after the other; None where chance comes from the system."""

    def __init__(self, random_state: Any) -> None:
        self.chance = None if random_state is None else check_seed(random_state)

    def next(self) -> int | None:
        """Return the next seed."""
        return None if self.chance is None else int(self.chance.randint(2**31 - 1))


def table_of(units: Integers, classes: Integers) -> Integers:
    """Count the members of each class in each unit."""
    table = np.zeros((int(units.max()) + 1, int(classes.max()) + 1), dtype=np.int64)
    np.add.at(table, (units, classes), 1)
    return table


def one_stratum(n: int) -> Strata:
    """Return the one stratum of n households."""
    return Strata(ids=np.zeros(n, dtype=np.int64), names=("all households",))
