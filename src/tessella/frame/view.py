"""A table read once with its schema: the one reading that every room shares.

A `View` gives the columns of a table as arrays: numbers, categories, states of cells, weights,
strata, and ids of equal records. A column is converted at most once as numbers and once as labels
for each `Table`, on first use; views of one table with different schemas share the conversions.

**What equals what.** Numbers are equal as float64: 0.0 equals -0.0, and NaN equals NaN. Texts are
equal letter by letter; the label of a number is its shortest text without ".0", so that 3, 3.0 and
the category 3 are one. A missing cell equals a cell that is missing in the same way only: null, NaN
(polars and Arrow tell it from null) and each missing code are told apart, as an intruder can who
sees the table.

**What is missing.** Null, NaN, and the codes that the schema names for the column; without a schema
there are no codes. The codes -9, -9.0, "-9" and "-9.0" are one code, in columns of numbers and of
texts alike; a code that does not read as a number matches texts only. The empty text is a text.

**What a weight is.** A positive, finite number for each record; None stands for ones. The schema's
weight counts where its role was confirmed, not where it was guessed.

**What a unit is.** Whom k counts: the household, firm or patient of a record, by the schema's role.

**Memory.** For n records a column takes at most 8 n bytes as numbers (nothing where the frame holds
complete float64), 8 n more where the schema's codes occur in it, 2 n for states where cells are
missing, and 1 to 4 n as labels. `Table.forget` drops all of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from .._types import Floats, Integers, Name, States, Truths
from ..exceptions import BadTableError, UnknownColumnError
from .columns import (
    FIRST_CODE,
    NAN,
    NULL,
    NUMBER,
    Numbers,
    as_number,
    group_ids,
    matches_code,
    number_labels,
    number_values,
)
from .table import Table

HUGE = 1e150  # the square of anything larger is infinite


class _Column(Protocol):
    """What a view needs to know of a column."""

    @property
    def kind(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def missing(self) -> Sequence[Any]: ...
    @property
    def guessed(self) -> bool: ...


class SchemaLike(Protocol):
    """What a view asks of a schema; `tessella.Schema` is one."""

    def __getitem__(self, name: Name, /) -> _Column: ...
    def names(self, *roles: Any) -> list[Name]:
        """List the columns that have one of these roles."""


@dataclass(frozen=True, eq=False)
class Categories:
    """A column as categories: `codes` of shape (n,), -1 where missing, and the text of each."""

    codes: Integers
    labels: list[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Strata:
    """The stratum of each record, 0, 1, ..., their names, and the columns that make them."""

    ids: Integers
    names: tuple[str, ...]
    columns: tuple[Name, ...] = ()


class View:
    """A table read with its schema.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table, 2-d numpy.ndarray, Table or View
        The table; it is never changed, and must not be while the view is used.
    schema : Schema, optional
        Says which values stand for "missing", which numbers are categories, what weighs.
    units : array of shape (n,), optional
        The unit of each record, for a table that does not hold its column: a released one.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella import Schema
    >>> from tessella.frame import View
    >>> table = pd.DataFrame({"age": [31, -9, 48], "town": ["Reus", None, "Reus"]})
    >>> view = View(table, Schema.guess(table).override(age={"missing": [-9]}))
    >>> view.numbers("age"), view.states("age"), view.categories("town").codes
    (array([31., nan, 48.]), array([0, 3, 0], dtype=int16), array([ 0, -1,  0]))
    >>> view.group_ids(["town"])
    array([0, 1, 0])
    """

    def __init__(
        self, table: Any, schema: SchemaLike | None = None, units: Integers | None = None
    ) -> None:
        self.table = Table.read(table)
        self._given_units = units
        self.schema = schema
        self.columns = self.table.columns
        self.n_rows = self.table.n_rows
        self._numbers: dict[Name, Floats] = {}
        self._states: dict[Name, States] = {}

    @classmethod
    def of(cls, table: Any, schema: SchemaLike | None = None) -> View:
        """Return a view as it is if it has this schema, or make one that shares its columns."""
        if isinstance(table, View):
            if schema is None or schema is table.schema:
                return table
            return cls(table, schema, table._given_units)
        return cls(table, schema)

    def kind(self, name: Name) -> str:
        """Return "continuous", "integer", "ordinal" or "nominal", by the schema or the dtype."""
        facts = self.table.facts(name)
        if self.schema is not None:
            return self.schema[name].kind
        if facts.numeric:
            return "integer" if facts.family == "integer" else "continuous"
        return "ordinal" if facts.ordered or facts.family == "date" else "nominal"

    def is_number(self, name: Name) -> bool:
        """Return whether a column holds numbers that are measured, not codes of categories."""
        return self.table.facts(name).numeric and self.kind(name) in ("continuous", "integer")

    def missing_codes(self, name: Name) -> tuple[Any, ...]:
        """Return the values that stand for "missing" in a column."""
        try:
            return () if self.schema is None else tuple(self.schema[name].missing)
        except UnknownColumnError:  # a column that the schema does not describe
            return ()

    def numbers(self, name: Name, *, who: str = "The call") -> Floats:
        """Return a column of numbers or booleans as float64, NaN where missing; read-only.

        Raises
        ------
        BadTableError
            If the column holds something else, or numbers that are infinite or huge.
        """
        if name not in self._numbers:
            self._numbers[name] = self._read_numbers(name, who)
        return self._numbers[name]

    def _read_numbers(self, name: Name, who: str) -> Floats:
        self.table.refuse_text((name,), who)
        raw, _ = self.table.raw(name)
        numbers = raw
        if codes := _code_numbers(self.missing_codes(name)):
            gone = np.isin(raw, codes)
            if gone.any():
                numbers = np.where(gone, np.nan, raw)
                numbers.flags.writeable = False
        if beyond := _count_huge(numbers):
            raise _huge({repr(name): beyond}, who)
        return numbers

    def matrix(self, names: Iterable[Name], *, who: str = "The call") -> Floats:
        """Return columns of numbers side by side, shape (n, d) in C order; a copy."""
        return self.read(names, who=who).values

    def read(self, names: Iterable[Name], *, who: str = "The call") -> Numbers:
        """Return columns of numbers side by side, with the states of their cells; copies."""
        names = tuple(names)
        self.table.refuse_text(names, who)
        values = np.empty((self.n_rows, len(names)))
        state = np.empty((self.n_rows, len(names)), dtype=np.int16)
        huge: dict[str, int] = {}
        for j, name in enumerate(names):
            state[:, j] = self.states(name)
            values[:, j] = np.where(state[:, j] == NUMBER, self.table.raw(name)[0], np.nan)
            if beyond := _count_huge(values[:, j]):
                huge[repr(name)] = beyond
        if huge:
            raise _huge(huge, who)
        return Numbers(columns=names, values=values, state=state)

    def states(self, name: Name) -> States:
        """Return for each cell 0 if known, 1 if null, 2 if NaN, 3 + i if it is missing code i."""
        if name not in self._states:
            self._states[name] = self._read_states(name)
        return self._states[name]

    def _read_states(self, name: Name) -> States:
        facts, codes = self.table.facts(name), self.missing_codes(name)
        if facts.numeric or facts.family == "boolean":
            try:
                raw, null = self.table.raw(name)
            except BadTableError:  # more digits than a float64 holds: labels tell them apart
                return self._label_states(name, codes)
            state = np.where(np.isnan(raw), np.int16(NAN), np.int16(NUMBER))
            if null is not None:
                state[null] = NULL
            for place in range(len(codes) - 1, -1, -1):  # the first code that matches counts
                state[np.isin(raw, _code_numbers(codes[place : place + 1]))] = FIRST_CODE + place
        else:
            state = self._label_states(name, codes)
        if not state.any():
            return np.broadcast_to(np.int16(NUMBER), (self.n_rows,))
        state.flags.writeable = False
        return state

    def _label_states(self, name: Name, codes: Sequence[Any]) -> States:
        place, labels = self._labels(name)
        state = np.full(len(labels) + 1, NUMBER, dtype=np.int16)
        state[-1] = NULL
        for at, label in enumerate(labels if codes else ()):
            matched = (i for i, code in enumerate(codes) if matches_code(label, code))
            if (first := next(matched, None)) is not None:
                state[at] = FIRST_CODE + first
        return state[place]

    def missing(self, name: Name) -> Truths:
        """Return where a column lacks a value, in whatever way."""
        lacking: Truths = self.states(name) != NUMBER
        return lacking

    def any_missing(self, name: Name) -> bool:
        """Return whether a column lacks a value anywhere."""
        return bool(self.states(name).any())

    def categories(self, name: Name) -> Categories:
        """Return any column as categories, numbered as they first appear, by rank if ordinal."""
        codes, labels = self.labels(name)
        if self.kind(name) != "ordinal":
            return Categories(codes, labels)
        order = self.in_order(name, labels)
        place = {label: rank for rank, label in enumerate(order)}
        rank = np.array([*(place.get(label, -1) for label in labels), -1], dtype=np.int64)
        return Categories(rank[codes], order)

    def labels(self, name: Name) -> tuple[Integers, list[str]]:
        """Return a code for each cell of any column, -1 where missing, and the text of each code.

        Codes count up as values first appear; a value that stands for "missing" keeps its code.
        """
        codes, labels = self._labels(name)
        if self.any_missing(name):
            codes[self.missing(name)] = -1
        return codes, labels

    def _labels(self, name: Name) -> tuple[Integers, list[str]]:
        try:
            return self.table.labels(name)
        except BadTableError:
            raise BadTableError(
                f"Column {name!r} ({self.table.facts(name).dtype}) holds lists or objects that "
                "cannot be compared. Give numbers, text, categories, dates or booleans, or drop it."
            ) from None

    def in_order(self, name: Name, labels: Iterable[str]) -> list[str]:
        """Return the categories of an ordinal column by rank; all that its dtype has."""
        facts = self.table.facts(name)
        if facts.family == "date" or facts.numeric:
            return sorted(labels, key=None if facts.family == "date" else float)
        order = self.table.order(name)
        if order is None:
            raise BadTableError(
                f"Column {name!r} is ordinal, and its dtype does not say in which order. Give an "
                "ordered categorical or numbers, or override its kind to 'nominal'."
            )
        return order

    def codes(self, name: Name) -> Integers:
        """Return whole numbers that are equal where cells are; -state where a cell is missing."""
        facts = self.table.facts(name)
        if facts.numeric:
            try:
                codes = number_values(self.table.raw(name)[0])
            except BadTableError:
                codes = self._labels(name)[0]
        else:
            codes = self._labels(name)[0]
        if self.any_missing(name):
            state = self.states(name)
            codes = np.where(state != NUMBER, -state.astype(np.int64), codes)
        return codes

    def group_ids(self, names: Iterable[Name]) -> Integers:
        """Number records 0, 1, ... as their combinations of cells first appear."""
        return group_ids(self.codes(name) for name in names)

    def weights(self, given: Any = None) -> Floats | None:
        """Return the weight of each record, or None where all weigh the same.

        Parameters
        ----------
        given : name or array-like of shape (n,), optional
            The weights; otherwise the schema's weight, where its role is confirmed.
        """
        if given is None and self.schema is not None:
            named = [n for n in self.schema.names("weight") if not self.schema[n].guessed]
            named = [name for name in named if self.table.has(name)]
            if len(named) > 1:
                listed = ", ".join(map(repr, named))
                raise BadTableError(
                    f"The schema names several weights: {listed}. Choose with weights=..."
                )
            given = named[0] if named else None
        if given is None:
            return None
        if self.is_name(given):
            return positive(self.numbers(given, who="weights"))
        array = self.table.per_record(given, who="weights")
        if array.dtype.kind not in "fiu":
            raise BadTableError(f"weights has dtype {array.dtype}; numbers are needed.")
        return positive(array.astype(np.float64))

    @cached_property
    def unit(self) -> Name | None:
        """The column that names the units, if the schema has one and the table holds it."""
        named = [] if self.schema is None else self.schema.names("unit")
        named = [name for name in named if self.table.has(name)]
        if len(named) > 1:
            raise BadTableError(
                f"The schema names several units: {', '.join(map(repr, named))}. Give the role "
                "'unit' to one, and 'identifier' to the others."
            )
        return named[0] if named else None

    @cached_property
    def units(self) -> Integers | None:
        """The unit of each record, numbered as they first appear, or None where none is named."""
        return self._given_units if self.unit is None else self.read_units(self.unit)

    def read_units(self, given: Any = None) -> Integers | None:
        """Return the unit of each record, by a column or by one value for each; else `units`."""
        if given is None:
            return self.units
        if self.is_name(given):
            self.table.place(given, who="unit=")
            lacking, own = self.missing(given), self.group_ids([given])
        else:
            own, _ = number_labels(self.table.per_record(given, who="unit="))
            lacking = own < 0
        if count := int(lacking.sum()):
            raise BadTableError(
                f"{count} of {self.n_rows} records have no unit. Give each one, a number of "
                "its own where it stands alone."
            )
        return own

    def is_name(self, given: Any) -> bool:
        """Return whether an argument names a column, rather than giving a value a record."""
        return isinstance(given, str) or (isinstance(given, Hashable) and self.table.has(given))

    def strata(self, given: Any = None) -> Strata:
        """Return the strata that columns or an array make; without them, one of all records.

        Parameters
        ----------
        given : name, sequence of names or array-like of shape (n,), optional
            Columns whose combinations are the strata, or one value for each record. A missing cell
            of a column is a value of its own; a value for each record must be there.
        """
        if given is None or (isinstance(given, list | tuple) and not len(given)):
            return Strata(ids=np.zeros(self.n_rows, dtype=np.int64), names=("all records",))
        columns = self.stratum_columns(given)
        if columns is None:
            ids, names = number_labels(self.table.per_record(given, who="strata"))
            if missing := int((ids < 0).sum()):
                raise BadTableError(
                    f"strata has {missing} missing values. Give every record a stratum; a name "
                    "such as 'unknown' will do."
                )
            return Strata(ids=ids, names=tuple(names))
        for name in columns:
            self.table.place(name, who="strata")
        ids = self.group_ids(columns)
        _, first = np.unique(ids, return_index=True)
        texts = []
        for name in columns:
            codes, labels = self._labels(name)
            own = (labels[code] if code >= 0 else "missing" for code in codes[first].tolist())
            texts.append([f"{name}={text}" for text in own])
        return Strata(ids=ids, names=tuple(map(", ".join, zip(*texts))), columns=columns)

    def stratum_columns(self, given: Any) -> tuple[Name, ...] | None:
        """Return the columns that are named, or None for one value for each record."""
        if self.is_name(given):
            return (given,)
        if not isinstance(given, list | tuple):
            return None
        known = all(isinstance(name, Hashable) and self.table.has(name) for name in given)
        repeated = known and len(set(given)) < len(given)
        if len(given) == self.n_rows and (repeated or not known):
            return None
        if repeated:
            raise BadTableError("strata names a column more than once.")
        return tuple(given)


def positive(weights: Floats) -> Floats:
    """Return weights if all are positive and finite, or raise an error that counts the others."""
    wrong = int((~(np.isfinite(weights) & (weights > 0))).sum())
    if wrong:
        raise BadTableError(
            f"weights must be positive numbers; {wrong} of {len(weights)} are zero, negative, "
            "missing or infinite. A record without weight still counts towards k: give it a small "
            "weight or leave it out of the table."
        )
    return weights


def _count_huge(numbers: Floats) -> int:
    if max(np.fmax.reduce(numbers), -np.fmin.reduce(numbers)) > HUGE:  # NaN is not
        return int((np.abs(numbers) > HUGE).sum())
    return 0


def _huge(counts: dict[str, int], who: str) -> BadTableError:
    named = ", ".join(f"{name} ({count})" for name, count in counts.items())
    return BadTableError(
        f"{who} meets values that are infinity or larger than {HUGE:g} in: {named}. No "
        "mean or distance is defined there: correct these cells or mark them as missing."
    )


def _code_numbers(codes: Sequence[Any]) -> list[float]:
    numbers = [as_number(code) for code in codes]
    return [number for number in numbers if not np.isnan(number)]
