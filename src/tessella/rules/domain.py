"""Sets of values, or of rows of values, and which records lie in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Integers, Name, Truths
from ..exceptions import BadTableError
from .columns import Columns, find

__all__ = ["Domain"]


@dataclass(frozen=True, repr=False)
class Domain:
    """Rows of values of some columns.

    `values` has, for each column, its distinct values, sorted: floats, or text. A row is the
    number whose digits are the places of its values, in the mixed base of their counts; `rows`
    has these numbers, sorted.
    """

    values: tuple[NDArray[Any], ...]
    rows: Integers

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the values of each column are: "text", "date" or "number"."""
        return tuple({"U": "text", "i": "date"}.get(v.dtype.kind, "number") for v in self.values)

    def __repr__(self) -> str:
        return f"<Domain: {len(self.rows)} rows of {len(self.values)} columns>"

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]], numeric: Sequence[bool]) -> Domain:
        """Build a domain from rows that are written out; raise ValueError if a number is none."""
        parts = [
            np.array([float(row[at]) if number else str(row[at]) for row in rows])
            for at, number in enumerate(numeric)
        ]
        values = tuple(np.unique(part) for part in parts)
        places = [np.searchsorted(known, part) for known, part in zip(values, parts)]
        return cls(values, np.unique(_combine(places, values)))

    @classmethod
    def of_columns(cls, columns: Columns, names: Sequence[Name]) -> Domain:
        """Build the domain of all rows that some columns have together, where all are known."""
        values: list[NDArray[Any]] = []
        places: list[Integers] = []
        known = np.ones(columns.n_rows, dtype=bool)
        for name in names:
            known &= ~columns.missing(name)
            if columns.kind(name) == "text":
                codes, texts = columns.labels(name)
                distinct, place = np.unique(np.array(texts, dtype=str), return_inverse=True)
                place = np.append(place, 0)[codes]
            else:
                distinct, place = np.unique(_exact(columns, name), return_inverse=True)
            values.append(distinct)
            places.append(place)
        places = [place[known] for place in places]
        return cls(tuple(values), np.unique(_combine(places, values)))

    def holds(self, columns: Columns, names: Sequence[Name], rows: Any) -> Truths:
        """Say which records have a row of the domain; missing values are in no row."""
        places: list[Integers] = []
        found: Truths | bool = True
        for name, distinct in zip(names, self.values):
            if columns.kind(name) == "text":
                codes = columns.labels(name)[0][rows]
                place, here = columns.places(name, distinct)
                place, here = place[codes], here[codes]
            else:
                place, here = find(_exact(columns, name)[rows], distinct)
            places.append(place)
            found = here & found
        if len(self.rows) == len(self.values[0]) and len(self.values) == 1:
            return np.asarray(found)  # one column, every value: nothing to combine
        combined = _combine(places, self.values)
        _, inside = find(combined, self.rows)
        result: Truths = inside & found
        return result


def _exact(columns: Columns, name: Name) -> NDArray[Any]:
    """Numbers as floats, dates as whole nanoseconds."""
    return columns.dates(name) if columns.kind(name) == "date" else columns.numbers(name)


def _combine(places: Sequence[Integers], values: Sequence[NDArray[Any]]) -> Integers:
    count = 1.0
    combined = np.zeros(len(places[0]), dtype=np.int64)
    for place, distinct in zip(places, values):
        count *= max(len(distinct), 1)
        combined = combined * max(len(distinct), 1) + place
    if count >= 2**63:
        raise BadTableError(
            "A rule asks for rows of columns that have more than 2**63 possible rows together. "
            "Ask for fewer columns at once."
        )
    return combined
