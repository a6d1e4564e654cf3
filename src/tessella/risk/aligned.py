"""The two tables that an intruder compares, read as arrays, record by record.

*A* is the masked table, *B* the original; `truth` says for each row of A which row of B it comes
from. Numbers are float64; categories are numbered in one numbering for both tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadOptionError, LinkageError, UnknownOptionError
from ..frame import Table
from ..schema import Schema

__all__ = ["SCALES", "AlignedTables", "align_tables"]


SMALL = 1e-100  # the largest absolute value of a column that is lifted to be standardised
SCALES = {
    "each": "values standardised file by file (mean 0, deviation 1 in each table)",
    "original": "values standardised by mean and deviation of the original",
    "none": "values as they are",
}


@dataclass(frozen=True, kw_only=True)
class AlignedTables:
    """A masked and an original table, aligned.

    `nominal` says which columns hold categories. `notes` tells what was decided while reading.
    """

    columns: tuple[Name, ...]
    A: Floats
    B: Floats
    truth: Integers
    nominal: Truths
    notes: tuple[str, ...] = ()

    def refuse_mixed(self, distance: str, described: Sequence[str] = ()) -> None:
        """Refuse categories and missing values where a distance has no meaning for them."""
        if self.nominal.any():
            named = [repr(name) for name, holds in zip(self.columns, self.nominal) if holds]
            raise LinkageError.not_numbers(list(described) or named, distance)
        lacking = np.isnan(self.A).sum(axis=0) + np.isnan(self.B).sum(axis=0)
        if lacking.any():
            counts = {repr(name): int(count) for name, count in zip(self.columns, lacking) if count}
            raise LinkageError.missing(counts, distance)

    def scaled(self, scale: str) -> AlignedTables:
        """Standardise both tables; a column that is constant in a table is only centred there."""
        if scale not in SCALES:
            raise UnknownOptionError("scale", scale, SCALES)
        if scale == "none":
            return replace(self, notes=(*self.notes, SCALES[scale]))
        B, flat_b = _standardised(self.B, self.B)
        A, flat_a = _standardised(self.A, self.A if scale == "each" else self.B)
        notes = [*self.notes, SCALES[scale]]
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


def align_tables(
    original: Any,
    masked: Any,
    *,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    schema: Schema | None = None,
) -> AlignedTables:
    """Read two tables side by side, or say why they cannot be compared."""
    before, after = Table.read(original), Table.read(masked)
    if before.n_rows < 2:
        raise LinkageError.one_record()
    truth, notes = _align(before, after, id)
    columns = _known(before, after, known, id, schema)
    A = np.empty((after.n_rows, len(columns)))
    B = np.empty((before.n_rows, len(columns)))
    nominal = np.zeros(len(columns), dtype=bool)
    for place, name in enumerate(columns):
        B[:, place], A[:, place], nominal[place] = _column(before, after, name, schema)
    return AlignedTables(
        columns=columns, A=A, B=B, truth=truth, nominal=nominal, notes=tuple(notes)
    )


def _align(before: Table, after: Table, id: Name | None) -> tuple[Integers, list[str]]:
    if id is None:
        if before.n_rows != after.n_rows:
            raise LinkageError.lengths(before.n_rows, after.n_rows)
        if before.reordered(after):
            raise LinkageError.other_order()
        return np.arange(before.n_rows), ["record i of the masked table comes from record i"]
    places = []
    for table, which in ((before, "the original"), (after, "the masked table")):
        table.place(id, who=f"id= (in {which})")
        place, texts = table.labels(id)
        if (place < 0).any():
            raise LinkageError.identifiers(
                id, f"{int((place < 0).sum())} records of {which} have none"
            )
        if len(texts) < table.n_rows or len(set(texts)) < len(texts):
            raise LinkageError.identifiers(
                id, f"{table.n_rows - len(set(texts))} of {which} are repeated"
            )
        places.append([texts[at] for at in place])
    rows = {text: row for row, text in enumerate(places[0])}
    truth = np.array([rows.get(text, -1) for text in places[1]], dtype=np.int64)
    if (truth < 0).any():
        unknown = int((truth < 0).sum())
        raise LinkageError.identifiers(id, f"{unknown} masked records have no original")
    notes = [f"masked records belong to the originals with the same {id!r}"]
    if after.n_rows < before.n_rows:
        notes.append(
            f"the intruder's file has {before.n_rows:,} records, {after.n_rows:,} were released"
        )
    return truth, notes


def _known(
    before: Table, after: Table, known: Any, id: Name | None, schema: Schema | None
) -> tuple[Name, ...]:
    if known is not None:
        single = isinstance(known, str) or not hasattr(known, "__iter__")
        columns: tuple[Name, ...] = (known,) if single else tuple(known)
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
    columns = tuple(n for n in before.columns if after.has(n) and n not in left_out)
    if not columns:
        mine, theirs = (
            [name for name in table.columns if name not in left_out] for table in (before, after)
        )
        raise LinkageError.nothing_common(mine, theirs)
    return columns


def _column(
    before: Table, after: Table, name: Name, schema: Schema | None
) -> tuple[Floats, Floats, bool]:
    """Read one column of both tables: original, masked, and whether it holds categories."""
    kind = None if schema is None else schema[name].kind
    codes = () if schema is None else schema[name].missing
    facts = (before.facts(name), after.facts(name))
    if "date" in (facts[0].family, facts[1].family):
        raise LinkageError(
            f"Column {name!r} holds dates or times. Convert them to numbers first (days since a "
            "date), or leave it out with known=."
        )
    numbers = all(one.numeric or one.family == "boolean" for one in facts)
    if numbers and kind != "nominal":
        given = {name: [code for code in codes if not isinstance(code, str)]}
        read = [table.numeric([name], codes=given, who="Linkage") for table in (before, after)]
        flags = all(one.family == "boolean" for one in facts)
        return read[0].values[:, 0], read[1].values[:, 0], flags
    orders = [table.order(name) for table in (before, after)]
    ordered = orders[0] is not None and orders[0] == orders[1] and kind != "nominal"
    place = {text: at for at, text in enumerate(orders[0] or ())} if ordered else {}
    gone = {str(code) for code in codes}
    out = []
    for table in (before, after):
        own, texts = table.labels(name)
        at = [
            np.nan if text in gone else float(place.setdefault(text, len(place))) for text in texts
        ]
        out.append(np.array([*at, np.nan])[own])
    return out[0], out[1], not ordered
