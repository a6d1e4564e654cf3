"""The partition of a table for grouping: by strata, cases of rules, signs, and missing cells.

The columns of a block as numbers: values, or the codes of categories.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._types import Floats, Integers, Name, Signs
from ...exceptions import BadTableError, GroupSizeError
from ...frame import Strata, View, group_ids
from ...plan import Block
from ...plan.claims import Case, Claim, rows_of
from ...rules import forms
from ...rules.confront import amounts, judge
from ...rules.domain import Operands

__all__ = ["BlockCells", "Part", "partition", "recompute_products"]


@dataclass(eq=False)
class BlockCells:
    """The columns of a block, and of strata, side by side.

    `values` are numbers, or for categories their codes in `levels`; NaN where missing.
    """

    view: View
    columns: tuple[Name, ...]
    values: Floats
    levels: dict[Name, list[str]]

    @classmethod
    def read(
        cls,
        view: View,
        columns: Sequence[Name],
        strata: Sequence[Name] = (),
        measured: Collection[Name] = (),
    ) -> BlockCells:
        """Read some columns, and strata, of which only equality counts.

        Booleans are categories, except where they are `measured`.
        """
        names = (*columns, *strata)
        values = np.empty((view.n_rows, len(names)))
        levels: dict[Name, list[str]] = {}
        for j, name in enumerate(names):
            numeric = view.table.facts(name).numeric and view.kind(name) != "nominal"
            if numeric or name in measured:
                values[:, j] = view.numbers(name, who="The plan")
                continue
            if view.kind(name) in ("continuous", "integer") and name not in strata:
                raise BadTableError(
                    f"Column {name!r} ({view.table.facts(name).dtype}) holds no numbers, and the "
                    f"schema says that it is {view.kind(name)}."
                )
            if name in strata:
                values[:, j], levels[name] = view.table.labels(name)
            else:
                found = view.categories(name)
                values[:, j], levels[name] = found.codes, found.labels
            if view.any_missing(name):
                values[view.missing(name), j] = np.nan
        return cls(view, names, values, levels)

    @property
    def n_rows(self) -> int:
        """The number of records."""
        return self.view.n_rows

    def place(self, name: Name) -> int:
        """Return where a column is."""
        return self.columns.index(name)

    def column(self, name: Name) -> Floats:
        """Return the values of a column."""
        return self.values[:, self.place(name)]

    @cached_property
    def operands(self) -> Operands:
        """The columns as rules judge them, with what was edited in `values` before."""
        return _Edited(self)

    def signs(self, claim: Claim) -> Signs:
        """Return for each record whether it keeps a claim: 1, -1, or 0 where that is unknown."""
        if isinstance(claim.form, forms.ObservedValues):  # every original record has them
            return np.ones(self.n_rows, dtype=np.int8)
        return judge(claim.truth, self.operands, allowance=claim.allowance)

    def amounts(self, claim: Claim) -> Floats:
        """Return by how much records break a claim, in standard deviations if it has a size."""
        broken = self.signs(claim) < 0
        rows = rows_of(claim)
        kinds = {self.operands.kind(name) for name in claim.columns}
        if not broken.any() or not rows or not kinds <= {"number", "yes or no"}:
            return broken.astype(np.float64)
        names = rows[0].coefficients.items()
        total = sum(v * self.operands.numbers(name) for name, v in names)
        known = np.asarray(total)[~np.isnan(total)]
        spread = (float(known.std()) if len(known) else 0.0) or 1.0
        away = amounts(claim.truth, self.operands, allowance=claim.allowance)
        return np.where(broken, away / spread, 0.0)

    def sides(self, form: forms.Multiplicative) -> tuple[Floats, Floats]:
        """Return the products of both sides: factors with positive powers, and the others."""
        left, right = np.ones(self.n_rows), np.full(self.n_rows, form.constant)
        for factor in form.factors:
            value = (self.column(factor.column) + factor.offset) ** abs(factor.power)
            if factor.power > 0:
                left = left * value
            else:
                right = right * value
        return left, right


class _Edited(Operands):
    """The columns of a table, of which some numbers were edited before grouping."""

    def __init__(self, cells: BlockCells) -> None:
        super().__init__(cells.view.table, cells.view.schema)  # type: ignore[arg-type]
        self.cells = cells

    def numbers(self, name: Name) -> Floats:
        """Return the edited numbers of a column, or those of the table."""
        if name in self.cells.columns and name not in self.cells.levels:
            return self.cells.column(name)
        return super().numbers(name)


MISSING_AS = {1: "", 2: " (as NaN)"}


@dataclass(eq=False)
class Part:
    """Records that keep the same claims; `signs` are those of the block's factors."""

    rows: Integers
    claims: tuple[Claim, ...]
    signs: tuple[int, ...]
    merged: int = 0  # records that joined from parts too small to stand alone


def partition(cells: BlockCells, block: Block, strata: Strata, *, k: int, small: str) -> list[Part]:
    """Cut the records into parts that can be grouped on their own, each with at least k."""
    view, rules = cells.view, list(block.cases)
    sizes = np.bincount(strata.ids)
    if few := {strata.names[s]: int(sizes[s]) for s in np.flatnonzero(sizes < k)}:
        raise GroupSizeError.small_strata(k=k, sizes=few)
    keys = [strata.ids]
    for name in rules:
        keys.append(_case_of_each(cells, block.cases[name]))
    for column, offset in block.signs:
        side = np.sign(cells.column(column) + offset)
        keys.append(np.where(np.isnan(side), 2, side).astype(np.int64))
    lacking = [name for name in block.columns if view.any_missing(name)]
    keys += [view.states(name).astype(np.int64) for name in lacking]
    ids = group_ids(keys)
    first = np.unique(ids, return_index=True)[1]
    distinct = np.column_stack([key[first] for key in keys])
    if not rules and not block.signs and lacking:
        _refuse_rare_patterns(distinct, np.bincount(ids), strata, lacking, k)
    order = np.argsort(ids, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(ids))[:-1])
    merged = _join_small(distinct, rows, k, small, fixed=1 + len(rules) + len(block.signs))
    parts = []
    for at, (own_rows, joined) in sorted(merged.items()):
        chosen = distinct[at, 1 : 1 + len(rules)]
        claims = [c for n, way in zip(rules, chosen) if way >= 0 for c in block.cases[n][way]]
        signs = distinct[at, 1 + len(rules) : 1 + len(rules) + len(block.signs)]
        parts.append(Part(own_rows, (*block.always, *claims), tuple(map(int, signs)), joined))
    return parts


def _refuse_rare_patterns(
    keys: Integers, sizes: Integers, strata: Strata, lacking: Sequence[Name], k: int
) -> None:
    """Refuse patterns of missing cells that fewer than k records of a stratum have."""
    small: dict[str, int] = {}
    few = np.flatnonzero(sizes < k)
    for at in few[np.lexsort(keys[few].T[::-1])]:
        stratum, *states = keys[at]
        named = [
            repr(name) + MISSING_AS.get(int(state), " (a code)")
            for name, state in zip(lacking, states)
            if state
        ]
        name = f"without {', '.join(named)}" if named else "complete"
        if len(strata.names) > 1:
            name += f" in stratum {strata.names[stratum]}"
        small[name] = min(int(sizes[at]), small.get(name, k))  # two codes may share a name
    if small:
        raise GroupSizeError.small_patterns(k=k, sizes=small)


def _case_of_each(cells: BlockCells, cases: Sequence[Case]) -> Integers:
    """Return the first case that each record is in.

    A record that is in none breaks the rule: it goes to the case that it is nearest to. Where
    missing values leave it open, it is in none, at -1, and keeps no claim.
    """
    n = cells.n_rows
    chosen = np.full(n, -2, dtype=np.int64)
    unknown, least, nearest = np.zeros(n, bool), np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    for number, case in enumerate(cases):
        signs = np.min([cells.signs(claim) for claim in case], axis=0) if case else np.ones(n)
        amount = np.sum([cells.amounts(claim) for claim in case], axis=0) if case else np.zeros(n)
        chosen[(chosen == -2) & (signs > 0)] = number
        unknown |= signs == 0
        closer = (amount <= least) & (signs < 0)  # of equals the last: the body of a condition
        least[closer], nearest[closer] = amount[closer], number
    return np.where(chosen >= 0, chosen, np.where(unknown, -1, nearest))


def _join_small(
    keys: Integers, rows: list[Integers], k: int, wish: str, *, fixed: int
) -> dict[int, tuple[Integers, int]]:
    """Let parts below k join another, or refuse them; strata and what is missing never mix."""
    parts = {at: (own, 0) for at, own in enumerate(rows)}
    small = [at for at, own in enumerate(rows) if len(own) < k]
    if small and wish == "refuse":
        raise GroupSizeError.small_parts(k=k, sizes=sorted(len(rows[at]) for at in small))
    for at in sorted(small, key=lambda at: len(rows[at])):
        own, joined = parts[at]
        if len(own) >= k:
            continue
        others = [
            other
            for other in parts
            if other != at
            and keys[other, 0] == keys[at, 0]
            and (keys[other, fixed:] == keys[at, fixed:]).all()
        ]
        if not others:
            raise GroupSizeError.small_parts(k=k, sizes=[len(own)])
        best = min(others, key=lambda o: ((keys[o] != keys[at]).sum(), -len(parts[o][0])))
        rest, earlier = parts[best]
        parts[best] = np.sort(np.concatenate([rest, own])), earlier + joined + len(own)
        del parts[at]
    return parts


def recompute_products(cells: BlockCells, block: Block) -> int:
    """Recompute a factor where a product cannot hold for its zeros or signs; count the records.

    Hours of 0 and wages of 100 have no nearest point with a geometric mean: the record is first
    edited, by what the rule says of the factor that stands alone.
    """
    changed = np.zeros(cells.n_rows, dtype=bool)
    for claim in block.always:
        form = claim.form
        if not isinstance(form, forms.Multiplicative) or form.operator != "==":
            continue
        left, right = cells.sides(form)
        wrong = (np.sign(left) != np.sign(right)) & ~np.isnan(left) & ~np.isnan(right)
        alone = form.alone
        if alone is None or not wrong.any():
            continue
        others = form.constant ** float(alone.power) * np.ones(cells.n_rows)
        for factor in form.factors:
            if factor is not alone:
                base = cells.column(factor.column) + factor.offset
                with np.errstate(divide="ignore", invalid="ignore"):
                    others = others * base ** (-alone.power * factor.power)
        fixable = wrong & np.isfinite(others)
        cells.values[fixable, cells.place(alone.column)] = others[fixable] - alone.offset
        changed |= fixable
    return int(changed.sum())
