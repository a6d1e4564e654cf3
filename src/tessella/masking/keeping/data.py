"""The columns of a block as numbers: values, or the codes of categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import Floats, Integers, Name, Signs, States, Truths
from ...exceptions import BadTableError
from ...frame import Table
from ...plan.claims import Claim, rows_of
from ...rules import Rules, forms
from ...rules.confront import judge
from ...schema import Schema

__all__ = ["Data", "is_code"]


ROUNDING = 1e-9  # numbers are equal if they differ by less than this, times the size of the terms


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

    def numbers(self, name: Name) -> Floats:
        """Return a column as numbers, also where it holds codes of categories; NaN for texts."""
        if name not in self.levels:
            return self.column(name)
        said = np.array([*(_number(text) for text in self.levels[name]), np.nan])
        return said[np.nan_to_num(self.column(name), nan=-1).astype(np.int64)]

    def signs(self, claim: Claim) -> Signs:
        """Say for each record whether it keeps a claim: 1, -1, or 0 where that is unknown."""
        form, n = claim.form, self.table.n_rows
        if isinstance(form, forms.Missingness):
            lacks = self.missing[:, self.place(form.column)]
            return np.where(lacks == form.missing, 1, -1).astype(np.int8)
        if isinstance(form, forms.ObservedValues):
            return np.ones(n, dtype=np.int8)
        if isinstance(form, forms.General | forms.Unfixed):
            body = Rules.parse([form.text])[0].body
            return judge(body, self.table, schema=self.schema)
        keeps = self._amounts(claim) <= 0
        unknown = self.missing[:, [self.place(name) for name in claim.columns]].any(axis=1)
        return np.where(unknown, 0, np.where(keeps, 1, -1)).astype(np.int8)

    def amounts(self, claim: Claim) -> Floats:
        """Return by how much records break a claim, in standard deviations if it has a size."""
        if isinstance(claim.form, forms.General | forms.Unfixed | forms.Missingness):
            return (self.signs(claim) < 0).astype(np.float64)
        return np.maximum(np.nan_to_num(self._amounts(claim)), 0.0)

    def _amounts(self, claim: Claim) -> Floats:
        """Return how far records are from keeping a claim; 0 or less where they keep it."""
        form = claim.form
        match form:
            case forms.Linear() | forms.Governing() | forms.Interval():
                same = self._same_texts(form)
                return self._linear_amounts(claim) if same is None else np.where(same, 0.0, 1.0)
            case forms.Members(column, values, inside):
                return np.where(self._among(column, values) == inside, 0.0, 1.0)
            case forms.YesNo(column, value):
                return np.where(self._among(column, (str(value),)), 0.0, 1.0)
            case forms.Tuples(columns, rows, inside):
                return np.where(self._joint(columns, rows) == inside, 0.0, 1.0)
            case forms.Multiplicative():
                left, right = self.sides(form)
                off = np.abs(left - right) if form.operator == "==" else left - right
                size = np.maximum(np.abs(left), np.abs(right))
                return np.where(off <= ROUNDING * size + claim.tolerance, 0.0, 1.0)
        return np.zeros(self.table.n_rows)

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

    def _linear_amounts(self, claim: Claim) -> Floats:
        worst = np.full(self.table.n_rows, -np.inf)
        for row in rows_of(claim):
            terms = [value * self.numbers(name) for name, value in row.coefficients.items()]
            size = np.abs(terms).sum(axis=0) + abs(row.right)
            off = np.sum(terms, axis=0) - row.right
            slack = ROUNDING * size
            if row.operator == "==":
                off = np.abs(off) - slack
            elif row.operator == "<=":
                off = off - slack
            else:
                off = np.where(off < -slack, off, np.maximum(off, slack) + 1e-300)
            sums = np.sum(terms, axis=0)
            known = sums[~np.isnan(sums)]
            spread = (float(known.std()) if len(known) else 0.0) or 1.0
            worst = np.fmax(worst, np.where(off > 0, off / spread + 1e-300, 0.0))
        return worst

    def _same_texts(self, form: forms.Form) -> Truths | None:
        """Say where two columns of texts are the same; None if the form says something else."""
        if not isinstance(form, forms.Linear):
            return None
        names = list(form.coefficients)
        if form.operator != "==" or len(names) != 2 or not set(names) <= set(self.levels):
            return None
        texts = [
            np.array([*self.levels[name], ""])[
                np.nan_to_num(self.column(name), nan=-1).astype(np.int64)
            ]
            for name in names
        ]
        return np.asarray(texts[0] == texts[1])

    def _among(self, column: Name, values: Sequence[object]) -> Truths:
        if column not in self.levels:
            return np.isin(self.column(column), [v for v in values if isinstance(v, int | float)])
        allowed = {str(value) for value in values}
        known = np.array([*(text in allowed for text in self.levels[column]), False])
        return known[np.nan_to_num(self.column(column), nan=-1).astype(np.int64)]

    def _joint(self, columns: Sequence[Name], rows: Sequence[Sequence[object]]) -> Truths:
        allowed = {tuple(self._token(c, v) for c, v in zip(columns, row)) for row in rows}
        own = self.values[:, [self.place(name) for name in columns]]
        distinct, place = np.unique(own, axis=0, return_inverse=True)
        known = np.array([tuple(row) in allowed for row in distinct.tolist()])
        return known[place.ravel()]

    def _token(self, column: Name, value: object) -> float:
        """Return the number that stands for a value that a rule names; NaN if there is none."""
        if column in self.levels:
            texts = self.levels[column]
            return float(texts.index(str(value))) if str(value) in texts else np.nan
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return np.nan


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
