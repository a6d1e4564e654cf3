"""A released table as its file holds it: read again, and compared with what was audited.

A format may hold a cell otherwise than a table does: categories as codes with labels, yes and no as
1 and 0, a time zone as UTC. `as_audited` turns these back. What then still differs must be
something that the writer has stated, and keeps rules and k as well; numbers never differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import time
from typing import Any

import numpy as np

from .._types import Integers, Name
from .._wording import listed
from ..exceptions import BadTableError, RefusedError
from ..frame import Pair, Table, View
from ..io import Source
from ..io.source import Statement
from ..rules import Rules
from ..schema import Schema
from .conduct import audit


def as_audited(source: Source, like: Table) -> Any:
    """Return the columns of a file in the kinds that another table has, where no cell changes."""
    from ..io.csv_writing import neutralise_name

    wanted = {neutralise_name(str(name)): str(name) for name in like.columns}
    table = source.table.rename_columns([wanted.get(name, name) for name in source.columns])
    read = Table.read(table)
    for place, name in enumerate(table.column_names):
        if like.has(name):
            family, labels = like.facts(name).family, source.metadata[source.columns[place]].labels
            column = _column(table.column(place), read.facts(name).family, family, labels)
            if like.kind == "pyarrow":
                kind = like.native.schema.field(name).type
                column = _coded(_zoned(column, getattr(kind, "tz", None)), kind)
                if family == "text" and read.facts(name).family == "text":
                    column = column.cast(kind)  # large or not: the same text
            table = table.set_column(place, name, column)
    return table


def _column(column: Any, own: str, wanted: str, labels: Any) -> Any:
    """Return a column of one family as another one, or as it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if own == wanted:
        return column
    if column.null_count == len(column):
        types = {"integer": pa.int64(), "boolean": pa.bool_(), "date": pa.timestamp("us"),
                 "float": pa.float64(), "decimal": pa.float64()}  # fmt: skip
        return pa.chunked_array([pa.nulls(len(column), types.get(wanted, pa.string()))])
    if wanted == "boolean" and own in ("integer", "float"):
        zero_or_one = pc.all(pc.or_(pc.equal(column, 0), pc.equal(column, 1))).as_py()
        return pc.equal(column, 1) if zero_or_one else column
    if wanted in ("text", "category") and own in ("integer", "float") and labels:
        coded = column.combine_chunks().dictionary_encode()
        texts = [labels.get(value) for value in coded.dictionary.to_pylist()]
        if None not in texts and len(set(texts)) == len(texts):
            return pa.chunked_array([pa.array(texts).take(coded.indices)])
    if wanted == "date" and own == "text":  # times of day
        coded = column.combine_chunks().dictionary_encode()
        with suppress(ValueError):
            times = [time.fromisoformat(text) for text in coded.dictionary.to_pylist()]
            return pa.chunked_array([pa.array(times).take(coded.indices)])
    return column


def _coded(column: Any, kind: Any) -> Any:
    """Return categories with codes of the width that they had: files have one of their own."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind) and pa.types.is_dictionary(column.type):
        with suppress(pa.ArrowException):  # more categories than there are such codes
            return column.cast(
                pa.dictionary(kind.index_type, column.type.value_type, column.type.ordered)
            )
    return column


def _zoned(column: Any, zone: str | None) -> Any:
    """Return moments of a file, which are in UTC, in the time zone that they were written from."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if zone is None or not pa.types.is_timestamp(column.type) or column.type.tz == zone:
        return column
    moments = column if column.type.tz else pc.assume_timezone(column, "UTC")
    return moments.cast(pa.timestamp(column.type.unit, zone))


def confirm_stored(
    released: Table,
    source: Source,
    statements: Sequence[Statement],
    *,
    rules: Rules,
    schema: Schema,
    tolerance: float,
    k: int | None = None,
    blocks: Sequence[Sequence[Name]] | None = None,
    strata: Sequence[Name] | None = None,
    units: Integers | None = None,
    l: Any = None,  # noqa: E741
    t: Any = None,
    confidential: Sequence[Name] | None = None,
    wildcard: Sequence[Sequence[Name]] = (),
) -> Statement:
    """Return that a file holds what was audited, or refuse it.

    `released` is the audited table, of Arrow; `source` the file, read again; `statements` what the
    writer could not keep. Equal cells need no second audit: k and rules are functions of them.
    Columns are compared one by one, so that little memory is needed.
    """
    stored = Table.read(as_audited(source, released))
    if stored.columns != released.columns or stored.n_rows != released.n_rows:
        raise _refused(
            source, f"it has {stored.n_rows:,} records in the columns {listed(stored.columns)}"
        )
    changed = [name for name in released.columns if not _same(released, stored, name)]
    said = " ".join(map(str, statements))
    for name in changed:
        if str(name) not in said or released.facts(name).numeric:
            raise _refused(source, f"column {name!r} holds other values")
    if not changed:
        return Statement("read again", "every cell is as audited")
    view, moved = View(stored, schema, units), set(changed)
    about = Rules(rule for rule in rules if moved & set(rule.columns))
    about_groups = {*(strata or ()), *(confidential or ())}
    touched = [block for block in blocks or () if moved & {*block, *about_groups}]
    wanted = {"l": l, "t": t, "confidential": confidential} if touched else {}
    found = audit(
        view, view, rules=about, schema=schema, tolerance=tolerance, k=k if touched else None,
        blocks=touched or None, strata=strata if touched else None, wildcard=wildcard, **wanted,
    )  # fmt: skip
    if not found.passed:
        raise _refused(source, "; ".join(found.problems))
    why = f"other texts, as stated, in {listed(changed)}"
    return Statement("read again", "k and rules hold", why)


def _same(released: Table, stored: Table, name: Name) -> bool:
    """Return whether a column is the same cell by cell; null and NaN are one in most formats."""
    column, again = Table.read(released.select([name])), Table.read(stored.select([name]))
    if column.native.equals(again.native):
        return True
    if all(t.facts(name).numeric or t.facts(name).family == "boolean" for t in (column, again)):
        try:
            return np.array_equal(column.raw(name)[0], again.raw(name)[0], equal_nan=True)
        except BadTableError:  # more digits than a float64 holds: texts tell them apart
            pass
    before, after, _ = Pair(column, again).labels(name)
    return bool((before == after).all())


def _refused(source: Source, what: str) -> RefusedError:
    return RefusedError(
        f"The release is withheld, for the file is not what was audited when it is read again as "
        f"{source.format}: {what}. Write another format, such as .parquet, or convert the column "
        "first."
    )
