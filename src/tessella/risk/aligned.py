"""The two tables that an intruder compares, as matrices, aligned record by record.

*A* is the masked table, *B* the original; `truth` is, for each row of A, the row of B that it comes
from. Numbers are float64; categories are numbered in one numbering for both tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadOptionError, LinkageError, UnknownOptionError
from ..frame import Pair, View
from ..schema import Schema

__all__ = ["STANDARDISED", "AlignedTables", "align", "align_tables", "as_list"]


SMALL = 1e-100  # the largest absolute value of a column that is lifted to be standardised
STANDARDISED = {
    "each": "values standardised file by file (mean 0, deviation 1 in each table)",
    "original": "values standardised by mean and deviation of the original",
    "none": "values as they are",
}


@dataclass(frozen=True, kw_only=True)
class AlignedTables:
    """A masked and an original table, aligned.

    `nominal` marks the columns of categories, `notes` lists what was decided while reading, `pair`
    is where the columns were read from.
    """

    columns: tuple[Name, ...]
    A: Floats
    B: Floats
    truth: Integers
    nominal: Truths
    notes: tuple[str, ...] = ()
    pair: Pair | None = None

    def select(self, known: Any) -> AlignedTables:
        """Return some of the columns."""
        names = as_list(known)
        if names == self.columns:
            return self
        at: Any = [self.columns.index(name) for name in names]
        if at == list(range(at[0], at[0] + len(at))):  # neighbours: no copy of a large table
            at = slice(at[0], at[0] + len(at))
        return replace(
            self, columns=names, A=self.A[:, at], B=self.B[:, at], nominal=self.nominal[at]
        )

    def refuse_mixed(self, distance: str, described: Sequence[str] = ()) -> None:
        """Refuse categories and missing values where a distance has no meaning for them."""
        if self.nominal.any():
            named = [repr(name) for name, holds in zip(self.columns, self.nominal) if holds]
            raise LinkageError.not_numbers(named=list(described) or named, distance=distance)
        lacking = np.isnan(self.A).sum(axis=0) + np.isnan(self.B).sum(axis=0)
        if lacking.any():
            counts = {repr(name): int(count) for name, count in zip(self.columns, lacking) if count}
            raise LinkageError.missing(counts=counts, distance=distance)

    def scaled(self, standardise: str) -> AlignedTables:
        """Standardise both tables; a column that is constant in a table is only centred there."""
        if standardise not in STANDARDISED:
            raise UnknownOptionError("standardise", standardise, STANDARDISED)
        if standardise == "none":
            return replace(self, notes=(*self.notes, STANDARDISED[standardise]))
        B, flat_b = _standardised(self.B, self.B)
        A, flat_a = _standardised(self.A, self.A if standardise == "each" else self.B)
        notes = [*self.notes, STANDARDISED[standardise]]
        for flat, where in ((flat_a & flat_b, "both tables"), (flat_b & ~flat_a, "the original")):
            if flat.any():
                named = ", ".join(repr(name) for name, is_ in zip(self.columns, flat) if is_)
                notes.append(f"constant in {where}, so of no use to the intruder: {named}")
        return replace(self, A=A, B=B, notes=tuple(notes))


def _standardised(X: Floats, by: Floats) -> tuple[Floats, Truths]:
    # Squares of numbers below 1e-160 vanish, and the column would seem constant: a power of two
    # lifts such a column without rounding, and standardised values do not depend on units.
    peak = np.abs(by).max(axis=0)
    small = (peak > 0) & (peak < SMALL)
    if small.any():
        lift = np.where(small, np.exp2(-np.frexp(peak)[1].clip(-1000, 0).astype(np.float64)), 1.0)
        same = X is by
        by = by * lift
        X = by if same else X * lift
    centre = by.mean(axis=0)
    spread = by.std(axis=0)
    # A constant column has a deviation of rounding errors, not always of zero.
    flat = (by == by[0]).all(axis=0) | (spread == 0)
    spread = np.where(flat, 1.0, spread)
    out = np.ascontiguousarray((X - centre) / spread)
    if X is by:
        out[:, flat] = 0.0
    return out, flat


def as_list(given: Any) -> tuple[Name, ...]:
    """Return one name or several as a tuple."""
    single = isinstance(given, str) or not hasattr(given, "__iter__")
    return (given,) if single else tuple(given)


def align_tables(
    original: Any,
    masked: Any = None,
    *,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    schema: Schema | None = None,
) -> AlignedTables:
    """Read the known columns of two tables, or raise an error if they cannot be compared.

    Aligned tables in the place of the original are read no further: `known` selects columns.
    """
    if isinstance(original, AlignedTables):
        return original if known is None else original.select(known)
    before, after = View.of(original, schema), View.of(masked, schema)
    pair = align(before, after, id)
    columns = _known(pair, known, id, schema)
    A = np.empty((after.n_rows, len(columns)))
    B = np.empty((before.n_rows, len(columns)))
    nominal = np.zeros(len(columns), dtype=bool)
    for place, name in enumerate(columns):
        B[:, place], A[:, place], nominal[place] = _column(pair, name)
    if id is None:
        notes = ["record i of the masked table comes from record i"]
    else:
        notes = [f"masked records belong to the originals with the same {id!r}"]
    if after.n_rows < before.n_rows:
        notes.append(
            f"the intruder's file has {before.n_rows:,} records, {after.n_rows:,} were released"
        )
    return AlignedTables(
        columns=columns, A=A, B=B, truth=pair.rows, nominal=nominal, notes=tuple(notes), pair=pair
    )


def align(original: View, masked: View, id: Name | None) -> Pair:
    """Pair two views; what cannot be paired cannot be linked."""
    if original.n_rows < 2:
        raise LinkageError.one_record()
    if id is None and original.n_rows != masked.n_rows:
        raise LinkageError.lengths(original=original.n_rows, masked=masked.n_rows)
    if id is None and original.table.reordered(masked.table):
        raise LinkageError.other_order(labels="the same labels in another order")
    return Pair(original, masked, id=id)


def _known(pair: Pair, known: Any, id: Name | None, schema: Schema | None) -> tuple[Name, ...]:
    before, after = pair.original.table, pair.masked.table
    if known is not None:
        columns = as_list(known)
        for name in columns:
            before.place(name, who="known= (in the original)")
            after.place(name, who="known= (in the masked table)")
        if not columns:
            raise BadOptionError("known", known, "at least one variable, or None for all")
        if len(set(columns)) < len(columns):
            raise BadOptionError("known", known, "each variable once")
        return columns
    left_out = set() if id is None else {id}
    if schema is not None:
        schema.check(before)
        left_out |= set(schema.names("identifier", "household", "weight"))
    columns = tuple(name for name in pair.columns if name not in left_out)
    if not columns:
        mine, theirs = (
            [name for name in table.columns if name not in left_out] for table in (before, after)
        )
        raise LinkageError.nothing_common(original=mine, masked=theirs)
    return columns


def _column(pair: Pair, name: Name) -> tuple[Any, Any, bool]:
    """Read one column of both tables: original, masked, and whether it holds categories."""
    views, facts = (pair.original, pair.masked), pair.facts(name)
    if "date" in (facts[0].family, facts[1].family):
        raise LinkageError(
            f"Column {name!r} holds dates or times. Convert them to numbers first (days since a "
            "date), or leave it out with known=."
        )
    nominal = pair.schema is not None and pair.schema[name].kind == "nominal"
    if not nominal and all(one.numeric or one.family == "boolean" for one in facts):
        flags = all(one.family == "boolean" for one in facts)
        return *(view.numbers(name, who="Linkage") for view in views), flags  # type: ignore[return-value]
    orders = [view.table.order(name) for view in views]
    ordered = not nominal and orders[0] is not None and orders[0] == orders[1]
    place = {text: at for at, text in enumerate(orders[0] or ())} if ordered else {}
    out = []
    for view in views:
        own, labels = view.table.labels(name)
        at = [float(place.setdefault(label, len(place))) for label in labels]
        cells = np.array([*at, np.nan])[own]
        if view.any_missing(name):
            cells[view.missing(name)] = np.nan
        out.append(cells)
    return out[0], out[1], not ordered
