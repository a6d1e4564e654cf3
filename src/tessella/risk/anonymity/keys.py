"""The released quasi-identifiers, read as whole numbers that are equal where values are.

A *key* is what an intruder may know of a person: one value for each quasi-identifier. A missing
cell has a negative number, another one for each kind of missing: an intruder who sees the table
can tell a null from a code.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._types import Floats, Integers, Name
from ...exceptions import BadOptionError, BadTableError, UnknownOptionError
from ...frame import Table
from ...schema import Schema

__all__ = [
    "MISSING",
    "Keys",
    "as_names",
    "check_missing",
    "check_share",
    "check_whole",
    "first_of",
    "number",
    "number_values",
    "read_column",
    "read_keys",
    "read_weights",
]


MISSING = {
    "category": "a missing value is a value of its own, and agrees with its like only",
    "any": "a missing value agrees with every value",
}


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Quasi-identifiers of a table: for each column n whole numbers, negative where missing."""

    table: Table
    columns: tuple[Name, ...]
    codes: tuple[Integers, ...]
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of records."""
        return self.table.n_rows


def read_keys(
    release: Any,
    keys: Sequence[Name] | Name | None,
    *,
    schema: Schema | None = None,
    besides: Sequence[Any] = (),
) -> Keys:
    """Read the quasi-identifiers of a released table.

    Parameters
    ----------
    release
        The table.
    keys : name or sequence of names, optional
        The quasi-identifiers. Otherwise those of the schema; without a schema, every column
        except `besides`.
    schema : Schema, optional
        Says roles and missing codes.
    besides : sequence
        What has another part in the call: names of columns, or None or arrays, which are passed
        over.
    """
    table = Table.read(release)
    others = {one for one in besides if isinstance(one, Hashable) and table.has(one)}
    if keys is not None:
        columns = as_names(table, keys, option="keys")
        note = f"known: {', '.join(map(str, columns))}"
        if both := [name for name in columns if name in others]:
            raise BadOptionError("keys", keys, f"{both[0]!r} one part only: it has another already")
    elif schema is not None:
        columns = _by_schema(table, schema, others)
        note = f"known, by the schema: {', '.join(map(str, columns))}"
    else:
        columns = tuple(name for name in table.columns if name not in others)
        if not columns:
            raise BadOptionError("keys", keys, "at least one column that an intruder may know")
        note = f"known, for want of keys= every column: {', '.join(map(str, columns))}"
    codes = tuple(read_column(table, name, schema) for name in columns)
    return Keys(table=table, columns=columns, codes=codes, notes=(note,))


def _by_schema(table: Table, schema: Schema, others: set[Name]) -> tuple[Name, ...]:
    """List the schema's quasi-identifiers that are released; a column it does not know is refused.

    Columns of the schema that the table lacks are no mistake: identifiers are not released.
    """
    known = {column.name for column in schema}
    if unknown := [repr(name) for name in table.columns if name not in known | others]:
        raise BadTableError(
            f"The schema says nothing about these columns: {', '.join(unknown[:8])}. Add them to "
            "the schema, drop them from the table, or give keys=."
        )
    released = [name for name in schema.names("quasi-identifier") if table.has(name)]
    columns = tuple(name for name in released if name not in others)
    if not columns:
        raise BadTableError(
            "The table has none of the schema's quasi-identifiers, so nothing is known to an "
            "intruder. Give keys= the columns that he knows, or say role='quasi-identifier' in the "
            "schema."
        )
    return columns


def as_names(table: Table, given: Any, *, option: str) -> tuple[Name, ...]:
    """Return the columns that are named, each once, or say what is wrong with them."""
    single = isinstance(given, str) or not hasattr(given, "__iter__") or table.has(given)
    names: tuple[Name, ...] = (given,) if single else tuple(given)
    if not names or len(set(names)) < len(names):
        raise BadOptionError(option, given, "at least one column, and each once")
    for name in names:
        table.place(name, who=f"{option}=")
    return names


def read_column(table: Table, name: Name, schema: Schema | None = None) -> Integers:
    """Number the values of a column 0, 1, ...; null is -1, NaN -2, missing codes -3, -4, ..."""
    place = table.place(name)
    known = None if schema is None else next((c for c in schema if c.name == name), None)
    gone = () if known is None else known.missing
    numeric = table.facts(name).numeric or table.facts(name).family == "boolean"
    if numeric and (gone or table.kind not in ("pandas", "numpy")):
        codes = {name: [code for code in gone if not isinstance(code, str)]}
        try:
            read = table.numeric([name], codes=codes)
        except BadTableError:  # infinity or many digits: labels tell them apart too
            pass
        else:
            lacking = -read.state[:, 0].astype(np.int64)
            return np.where(lacking < 0, lacking, number_values(read.values[:, 0]))
    try:
        own, texts = table.labels(name)
    except BadTableError:
        raise BadTableError(
            f"Column {table.columns[place]!r} holds lists or objects that cannot be compared. Give "
            "numbers, text or categories, or leave it out of keys=."
        ) from None
    if gone:
        said = {str(code): at for at, code in enumerate(gone)}
        new = np.array([-3 - said[text] if text in said else -1 for text in texts] + [-1])[own]
        own = np.where(new <= -3, new, own)
    return own.astype(np.int64, copy=False)


def number(columns: Sequence[Integers]) -> Integers:
    """Number records 0, 1, ... as their combinations of values first appear.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk.anonymity.keys import number
    >>> number([np.array([5, -1, 5, 5]), np.array([0, 0, 0, 1])])
    array([0, 1, 0, 2])
    """
    mixed, room = columns[0] - columns[0].min(), int(np.ptp(columns[0])) + 1
    for column in columns[1:]:
        low, width = int(column.min()), int(np.ptp(column)) + 1
        if room * width >= 2**62:  # n combinations at most, however many could be
            mixed = number_values(mixed)
            room = int(mixed.max()) + 1
        if room * width >= 2**62:
            column, low = number_values(column), 0
            width = int(column.max()) + 1
        mixed, room = mixed * width + (column - low), room * width
    return number_values(mixed)


def first_of(classes: Integers) -> Integers:
    """Return the first record of each class, for classes numbered 0, 1, ..."""
    first = np.empty(int(classes.max()) + 1, dtype=np.int64)
    first[classes[::-1]] = np.arange(len(classes))[::-1]
    return first


def number_values(values: NDArray[Any]) -> Integers:
    """Number the values of one array 0, 1, ... as they first appear; NaN is a value."""
    import pandas as pd

    places, _ = pd.factorize(values, use_na_sentinel=False)
    return np.asarray(places, dtype=np.int64)


def read_weights(table: Table, weights: Any, *, schema: Schema | None = None) -> Floats | None:
    """Read sampling weights: a column, one number for each record, or the schema's weight."""
    if weights is None and schema is not None:
        weights = next((name for name in schema.names("weight") if table.has(name)), None)
    if weights is None:
        return None
    if isinstance(weights, Hashable) and (isinstance(weights, str) or table.has(weights)):
        table.place(weights, who="weights=")
        values = table.numeric([weights], who="weights=").values[:, 0]
    else:
        given = table.per_record(weights, who="weights=")
        if given.dtype.kind not in "fiu":
            raise BadTableError(f"weights= has dtype {given.dtype}; numbers are needed.")
        values = given.astype(np.float64)
    wrong = int((~(values > 0) | ~np.isfinite(values)).sum())
    if wrong:
        raise BadTableError(
            f"weights= must be positive numbers, and {wrong} of {len(values)} are zero, negative "
            "or missing. A weight says how many persons a record stands for: correct them, or drop "
            "these records."
        )
    return values


def check_missing(missing: str) -> None:
    """Refuse a treatment of missing values that is not offered."""
    if missing not in MISSING:
        raise UnknownOptionError("missing", missing, MISSING)


def check_share(name: str, given: Any, expected: str = "a share above 0 and at most 1") -> float:
    """Return a share in (0, 1], or say what is expected."""
    whole = isinstance(given, int | float | np.integer | np.floating)
    if not whole or isinstance(given, bool) or not 0 < float(given) <= 1:
        raise BadOptionError(name, given, expected)
    return float(given)


def check_whole(name: str, given: Any, least: int = 1) -> int:
    """Return a whole number of at least `least`, or say what is expected."""
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not whole or given < least:
        raise BadOptionError(name, given, f"a whole number of at least {least}")
    return int(given)
