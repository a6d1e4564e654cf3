"""The columns of a block as numbers: values, or the codes of categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._types import Floats, Integers, Name, Signs, States, Truths
from ...exceptions import BadTableError
from ...frame import Table
from ...plan.claims import Claim, rows_of
from ...rules import forms
from ...rules.confront import Operands, amounts, judge
from ...schema import Schema

__all__ = ["Data", "is_code"]


@dataclass(eq=False)
class Data:
    """What a table holds, column by column.

    `values` are numbers, or for categories the place of the category in `levels`.
    """

    table: Table
    schema: Schema
    columns: tuple[Name, ...]
    values: Floats
    missing: Truths
    state: States  # 0 where there is a value, else the way in which it is missing
    levels: dict[Name, list[str]]

    @classmethod
    def read(
        cls, table: Table, schema: Schema, columns: Sequence[Name], strata: Sequence[Name] = ()
    ) -> Data:
        """Read some columns, and strata, of which only equality counts."""
        columns = [*columns, *strata]
        values = np.empty((table.n_rows, len(columns)))
        state = np.zeros((table.n_rows, len(columns)), dtype=np.int16)
        levels: dict[Name, list[str]] = {}
        for j, name in enumerate(columns):
            if table.facts(name).numeric and schema[name].kind != "nominal":
                codes = {name: schema[name].missing}
                read = table.numeric([name], codes=codes, who="The plan")
                values[:, j], state[:, j] = read.values[:, 0], read.state[:, 0]
            else:
                if schema[name].kind in ("continuous", "integer") and name not in strata:
                    raise BadTableError(
                        f"Column {name!r} ({table.facts(name).dtype}) holds no numbers, and the "
                        f"schema says that it is {schema[name].kind}."
                    )
                place, texts = table.labels(name)
                state[place < 0, j] = 1
                for at, text in enumerate(texts):
                    if is_code(text, schema[name].missing):
                        state[place == at, j] = 3 + at
                if schema[name].kind == "ordinal" and name not in strata:
                    place, texts = _in_order(table, name, place, texts)
                values[:, j], levels[name] = place, texts
        values[state != 0] = np.nan
        return cls(table, schema, tuple(columns), values, state != 0, state, levels)

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
            return np.ones(self.table.n_rows, dtype=np.int8)
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
        left, right = np.ones(self.table.n_rows), np.full(self.table.n_rows, form.constant)
        for factor in form.factors:
            value = (self.column(factor.column) + factor.offset) ** abs(factor.power)
            if factor.power > 0:
                left = left * value
            else:
                right = right * value
        return left, right


class _Edited(Operands):
    """The columns of a table, of which some numbers were edited before grouping."""

    def __init__(self, data: Data) -> None:
        super().__init__(data.table, data.schema)
        self.data = data

    def numbers(self, name: Name) -> Floats:
        """Return the edited numbers of a column, or those of the table."""
        if name in self.data.columns and name not in self.data.levels:
            return self.data.column(name)
        return super().numbers(name)


def is_code(text: str, codes: Sequence[object]) -> bool:
    """Say whether a text is one of the codes for "missing": -9, -9.0 and "-9" are the same."""
    return any(text == str(code) or _number(text) == _number(str(code)) for code in codes)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _in_order(
    table: Table, name: Name, place: Integers, texts: list[str]
) -> tuple[Integers, list[str]]:
    """Number ordinal categories by their order, not by their appearance."""
    order = sorted(texts) if table.facts(name).family == "date" else table.order(name)
    if order is None:
        raise BadTableError(
            f"Column {name!r} is ordinal, and its dtype does not say in which order. Give an "
            "ordered categorical or numbers, or override its kind to 'nominal'."
        )
    rank = np.array([*(order.index(text) for text in texts), -1], dtype=np.int64)
    return rank[place], order
