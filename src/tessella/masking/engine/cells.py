"""The columns of a block as numbers: values, or the codes of categories."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._types import Floats, Name, Signs
from ...exceptions import BadTableError
from ...frame import View
from ...plan.claims import Claim, rows_of
from ...rules import forms
from ...rules.confront import Operands, amounts, judge

__all__ = ["BlockCells"]


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
