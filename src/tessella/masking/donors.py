"""Donors: a group whose values break a rule takes those of a record that keeps it.

The last resort of ``fit="project"``. Whatever a rule says, k records with the values of one that
keeps it keep it too. Columns that rules tie together are taken from one donor; all others stay.
A donor knows every cell that the group knows, has the same strata where a rule names them, and is

1. the record of the group that is nearest to its centre, or the nearest one elsewhere;
2. where no original record keeps the rules, a released group that does;
3. a record of other strata that keeps the rules with the strata of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._types import Floats, Integers, Name, Signs, Truths
from ..frame import Table, View, group_ids
from ..kernels.groups import weighted_centres
from ..parallel import n_cores
from ..plan import Block, Plan
from ..rules import Confrontation, Rules
from .repair_dates import UNMOVED
from .selection import corners

if TYPE_CHECKING:
    from .engine import MaskedBlocks


def take_from_donors(
    masked: MaskedBlocks,
    plan: Plan,
    view: View,
    *,
    before: Confrontation,
    after: Confrontation,
    weights: Floats,
    confront: Callable[[Table], Confrontation],
) -> int:
    """Give groups that break a rule the values of donors, in place; count their records.

    `before` and `after` are the original and the masked table, confronted with the same rules, as
    `confront` does it.
    """

    def in_strata_of(row: int) -> Signs:
        """Judge all original records as if they were in the strata of one."""
        rows = np.full(view.n_rows, row)
        return confront(Table.read(view.table.rearrange(dict.fromkeys(plan.strata, rows)))).signs

    changed = np.zeros(view.n_rows, dtype=bool)
    for number, columns, places in _tied_columns(plan.blocks, before.rules):
        broken = (after.signs[:, places] < 0).any(axis=1)
        if broken.any():
            labels, members = masked.labels[number], masked.members(number, weights)
            named = {name for place in places for name in before.rules[place].columns}
            exchange = _Exchange(masked, view, plan, columns, named, labels, members)
            clean, kept = (np.all(f.signs[:, places] >= 0, axis=1) for f in (before, after))
            needy = np.isin(labels, labels[broken])
            changed |= exchange.serve(needy, clean, kept, places, in_strata_of)
    return int(changed.sum())


def _tied_columns(
    blocks: Sequence[Block], rules: Rules
) -> Iterator[tuple[int, list[Name], list[int]]]:
    """Yield the sets of columns that rules tie together: block, columns, places of the rules."""
    for number, block in enumerate(blocks):
        tied: list[tuple[set[Name], list[int]]] = []
        for place, rule in enumerate(rules):
            names, places = set(rule.columns) & set(block.columns), [place]
            if not names or rule.unit is not None:  # no donor keeps what a whole unit must
                continue
            for other in [other for other in tied if other[0] & names]:
                tied.remove(other)
                names, places = names | other[0], [*other[1], *places]
            tied.append((names, places))
        for names, places in tied:
            yield number, [name for name in block.columns if name in names], sorted(places)


class _Exchange:
    """Records as points in the columns of one set, before and after masking."""

    def __init__(
        self, masked: MaskedBlocks, view: View, plan: Plan, columns: list[Name], named: set[Name],
        labels: Integers, members: tuple[Integers, Integers, Floats],
    ) -> None:  # fmt: skip
        self.masked, self.view, self.columns = masked, view, columns
        self.labels, self.members = labels, members  # rows, groups and weights: who counts
        self.states = np.column_stack([view.states(name).astype(np.int64) for name in columns])
        self.strata = view.strata(plan.strata).ids
        self.named = view.strata([name for name in plan.strata if name in named]).ids
        self.original, self.released, self.about = self._points()

    def _points(self) -> tuple[Floats, Floats, Integers]:
        """Return numbers in standard deviations, categories as corners, and whose each axis is."""
        original, released = [], []
        for name in self.columns:
            if name in self.masked.numbers:
                numbers = self.view.numbers(name)
                unit = float(np.nanstd(numbers)) if np.isfinite(numbers).any() else 0.0
                original.append(np.nan_to_num(numbers / (unit or 1.0))[:, None])
                released.append(self.masked.numbers[name][:, None] / (unit or 1.0))
            else:
                found = corners(self.view.codes(name).astype(np.int64))
                original.append(found)
                released.append(found[self.masked.rows[name]])
        about = np.repeat(np.arange(len(original)), [found.shape[1] for found in original])
        return np.hstack(original), np.hstack(released), about

    def serve(
        self, needy: Truths, clean: Truths, kept: Truths, places: list[int],
        in_strata_of: Callable[[int], Signs],
    ) -> Truths:  # fmt: skip
        """Find donors for the needy records, among `clean` originals or `kept` released ones."""
        served = np.zeros(len(needy), dtype=bool)
        lacks = self.states > 0
        keys = group_ids([*self.states.T, self.strata])
        for key in np.unique(keys[needy]):
            rows = np.flatnonzero(needy & (keys == key))
            first = int(rows[0])
            known = ~lacks[first]
            wide = ~(lacks & known).any(axis=1)
            able = wide & (self.named == self.named[first])
            near = able & (self.strata == self.strata[first])
            choices = [
                (own, source) for own in (keys == key, near, able) for source in (clean, kept)
            ]
            found = next(((own & s, s is kept) for own, s in choices if (own & s).any()), None)
            if found is None:
                found = wide & np.all(in_strata_of(first)[:, places] >= 0, axis=1), False
            donors, released = np.flatnonzero(found[0]), found[1]
            if len(donors):
                at = self._nearest(rows, donors, known[self.about], from_released=released)
                self._copy(rows, at, known, from_released=released)
                served[rows] = True
        return served

    def _nearest(
        self, rows: Integers, donors: Integers, axes: Truths, *, from_released: bool
    ) -> Integers:
        """Return a donor for each row: of its own group if that has one, else the nearest one."""
        from scipy.spatial import KDTree

        distinct, groups = np.unique(self.labels[rows], return_inverse=True)
        count = len(distinct)
        needed = np.isin(self.members[1], distinct)
        members, weights = self.members[0][needed], self.members[2][needed]
        inner = np.searchsorted(distinct, self.members[1][needed])
        own = np.ascontiguousarray(self.original[members][:, axes])
        centres = weighted_centres(own, weights, inner, count)
        inside = np.isin(members, donors) & (not from_released)
        away = np.where(inside, ((own - centres[inner]) ** 2).sum(axis=1), np.inf)
        order = np.lexsort((members, away, inner))
        first = order[np.searchsorted(inner[order], np.arange(count))]
        chosen = members[first]
        # A tree is asked only where a group has no donor of its own: with a million records of
        # many equal values that would take longer than everything else.
        if len(alone := np.flatnonzero(~inside[first])):
            points = (self.released if from_released else self.original)[donors][:, axes]
            chosen[alone] = donors[KDTree(points).query(centres[alone], workers=n_cores())[1]]
        return np.asarray(chosen[groups])

    def _copy(self, rows: Integers, at: Integers, known: Truths, *, from_released: bool) -> None:
        for name in (name for name, own in zip(self.columns, known) if own):
            if name in self.masked.numbers:
                numbers = self.masked.numbers[name]
                numbers[rows] = (numbers if from_released else self.view.numbers(name))[at]
            else:
                taken = self.masked.rows[name]
                taken[rows] = taken[at] if from_released else at
                if name in self.masked.dates:
                    dates = self.masked.dates[name]
                    dates[rows] = dates[at] if from_released else UNMOVED
