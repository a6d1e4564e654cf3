"""The columns of a table as rules see them: numbers, texts, dates, or yes and no.

Each is read once, when a rule first needs it. Missing values are NaN among numbers and code -1
among texts and dates; nothing is converted from one kind to another.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError
from ..frame import Table
from ..schema import Schema

__all__ = ["Columns", "Kind", "find"]

Kind = Literal["number", "text", "date", "yes or no"]

_KINDS: dict[str, Kind] = {
    "float": "number",
    "integer": "number",
    "decimal": "number",
    "text": "text",
    "category": "text",
    "date": "date",
    "boolean": "yes or no",
}


class Columns:
    """The columns of one table; `schema` may name values that stand for "missing"."""

    def __init__(self, table: Any, schema: Schema | None = None) -> None:
        self.table = Table.read(table)
        self.n_rows = self.table.n_rows
        self._codes = {column.name: column.missing for column in schema} if schema else {}
        self._numbers: dict[Name, Floats] = {}
        self._labels: dict[Name, tuple[Integers, list[str]]] = {}
        self._dates: dict[Name, Integers] = {}
        self._whole: dict[Name, bool] = {}
        self._largest: dict[Name, float] = {}
        self._missing: dict[Name, Truths] = {}
        self._places: dict[Any, tuple[Integers, Truths, NDArray[Any]]] = {}
        self._translated: dict[tuple[Name, Name], Integers] = {}

    def kind(self, name: Name) -> Kind:
        """Say what a column holds, or that there is no such column."""
        self.table.place(name, who="It")
        facts = self.table.facts(name)
        if facts.family not in _KINDS:
            raise BadTableError(
                f"Column {name!r} has dtype {facts.dtype}, which rules cannot compare. "
                "Make it a column of numbers, text, categories, dates or booleans."
            )
        return _KINDS[facts.family]

    def numbers(self, name: Name) -> Floats:
        """Return a column of numbers, or of yes and no as 1 and 0; NaN where missing."""
        if name not in self._numbers:
            codes = [code for code in self._codes.get(name, ()) if not isinstance(code, str)]
            read = self.table.numeric([name], codes={name: codes}, who="A rule")
            self._numbers[name] = np.ascontiguousarray(read.values[:, 0])
        return self._numbers[name]

    def labels(self, name: Name) -> tuple[Integers, list[str]]:
        """Return a code for each record, -1 where missing, and the text of each code."""
        if name not in self._labels:
            codes, texts = self.table.labels(name)
            gone = {str(code) for code in self._codes.get(name, ())}
            if gone & set(texts):
                codes = np.where(
                    np.isin(codes, [texts.index(t) for t in gone & set(texts)]), -1, codes
                )
            self._labels[name] = codes, texts
        return self._labels[name]

    def dates(self, name: Name) -> Integers:
        """Return a column of dates as nanoseconds; what missing cells hold means nothing."""
        if name not in self._dates:
            codes, texts = self.labels(name)
            try:
                stamps = np.array([*texts, "NaT"], dtype="datetime64[ns]").astype(np.int64)
            except ValueError:
                raise BadTableError(
                    f"Column {name!r} ({self.table.facts(name).dtype}) holds times that rules "
                    "cannot compare. Give dates, or times without a time zone."
                ) from None
            self._dates[name] = stamps[codes]
        return self._dates[name]

    def missing(self, name: Name) -> Truths:
        """Say where a column is missing."""
        if name not in self._missing:
            if self.kind(name) in ("text", "date"):
                self._missing[name] = self.labels(name)[0] < 0
            else:
                self._missing[name] = np.isnan(self.numbers(name))
        return self._missing[name]

    def places(self, name: Name, distinct: NDArray[Any]) -> tuple[Integers, Truths]:
        """For each code of a column of texts, and for -1: its place in a set, and if it has one."""
        key = (name, id(distinct))
        if key not in self._places:
            place, here = find(np.array([*self.labels(name)[1], ""], dtype=str), distinct)
            here[-1] = False
            self._places[key] = place, here, distinct  # which is kept, so that its id stays its own
        place, here, _ = self._places[key]
        return place, here

    def translated(self, name: Name, other: Name) -> Integers:
        """Return a column of texts in the codes of another; -2 for words that the other lacks."""
        if (name, other) not in self._translated:
            codes, words = self.labels(name)
            place = {text: at for at, text in enumerate(self.labels(other)[1])}
            table = np.array([*(place.get(word, -2) for word in words), -1], dtype=np.int64)
            self._translated[name, other] = table[codes]
        return self._translated[name, other]

    def whole(self, name: Name) -> bool:
        """Say whether all known numbers of a column are whole numbers, whatever its dtype."""
        if name not in self._whole:
            values = self.numbers(name)
            exact = self.table.facts(name).family == "integer"
            # NaN equals nothing, so that only known numbers speak.
            self._whole[name] = exact or not bool(
                (np.rint(values) != values)[~np.isnan(values)].any()
            )
        return self._whole[name]

    def largest(self, name: Name) -> float:
        """Return the largest absolute value of a column."""
        if name not in self._largest:
            values = self.numbers(name)
            ends = [np.fmax.reduce(values), -np.fmin.reduce(values)]
            self._largest[name] = float(np.nan_to_num(max(ends)))
        return self._largest[name]


def find(values: NDArray[Any], distinct: NDArray[Any]) -> tuple[Integers, Truths]:
    """Return the place of each value among the distinct ones, and whether it is there."""
    if not len(distinct):
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=bool)
    place = np.minimum(np.searchsorted(distinct, values), len(distinct) - 1)
    return place, distinct[place] == values
