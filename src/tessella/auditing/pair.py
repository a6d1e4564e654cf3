"""An original and a released table, read side by side, column by column.

Both are read the same way, with the state of every cell (known, null, NaN, a missing code), so that
cells can be compared and records that look alike be numbered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Floats, Integers, Name, States, Truths
from ..exceptions import BadTableError, IncomparableError
from ..frame import FIRST_CODE, NULL, Facts, Table
from ..schema import Schema

__all__ = ["Cells", "Pair", "number_alike"]


def number_alike(columns: Iterable[Integers]) -> Integers:
    """Give records the same number, from 0, if and only if they agree in every column.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.auditing.pair import number_alike
    >>> number_alike([np.array([5, 7, 5, 5]), np.array([1, 1, 1, 2])])
    array([0, 1, 0, 2])
    """
    import pandas as pd

    numbers: Integers | None = None
    for column in columns:
        own = pd.factorize(np.asarray(column, dtype=np.int64))[0].astype(np.int64, copy=False)
        if numbers is not None:  # below n**2, which an int64 holds
            own = pd.factorize(numbers * (int(own.max()) + 1) + own)[0].astype(np.int64, copy=False)
        numbers = own
    if numbers is None:
        raise ValueError("number_alike needs at least one column")
    return numbers


@dataclass(frozen=True, kw_only=True)
class Cells:
    """One column in both tables.

    `before` and `after` are numbers, NaN where missing, or, where not `numeric`, codes of
    categories in one numbering, -1 where null. `own` numbers the released values as the released
    table tells them apart.
    """

    name: Name
    numeric: bool
    before: NDArray[Any]
    after: NDArray[Any]
    state_before: States
    state_after: States
    own: Integers | None = None

    @cached_property
    def moved(self) -> Truths:
        """Where a known cell became missing, a missing one known, or missing in another way."""
        moved: Truths = self.state_before != self.state_after
        return moved

    @cached_property
    def differs(self) -> Truths:
        """Where the released table does not say the same as the original."""
        known = (self.state_before == 0) & (self.state_after == 0)
        differs: Truths = self.moved | (known & (self.before != self.after))
        return differs

    @cached_property
    def alike(self) -> Integers:
        """Number the released values; each kind of missing is a value of its own.

        Numbers are compared by their bits: a file shows 0.0 and -0.0 apart.
        """
        if self.own is not None:
            return number_alike([self.own])
        bits = np.where(self.state_after == 0, self.after, 0.0).view(np.int64)
        if not self.state_after.any():
            return number_alike([bits])
        return number_alike([bits, self.state_after.astype(np.int64)])


class Pair:
    """Two tables of the same length and columns.

    Parameters
    ----------
    original, released : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables.
    schema : Schema, optional
        Says which values stand for "missing", and which numbers are categories.
    """

    def __init__(self, original: Any, released: Any, schema: Schema | None = None) -> None:
        self.original, self.released = Table.read(original), Table.read(released)
        if self.original.n_rows != self.released.n_rows:
            raise IncomparableError.lengths(self.original.n_rows, self.released.n_rows)
        before, after = self.original.columns, self.released.columns
        if set(before) != set(after):
            lost = [name for name in before if name not in set(after)]
            new = [name for name in after if name not in set(before)]
            raise IncomparableError.columns(lost, new)
        if schema is not None:
            schema.check(self.original)
        self.schema = schema
        self.columns = before
        self.n_rows = self.original.n_rows
        self.unreadable: dict[Name, tuple[bool, bool]] = {}
        self._cells: dict[Name, Cells] = {}

    def __getitem__(self, name: Name) -> Cells:
        if name not in self._cells:
            self._cells[name] = self._read(name)
        return self._cells[name]

    def differences(self) -> Iterator[str]:
        """Say how the two tables differ in form."""
        before, after = self.original, self.released
        if before.kind != after.kind:
            yield f"The original is a {before.kind} table, the released one a {after.kind} table."
        if before.columns != after.columns:
            yield "The columns of the released table are in another order."
        if not before.same_index(after):
            yield "The released table has another index: its rows are not those of the original."
        for name in self.columns:
            if change := self._dtype_change(before.facts(name), after.facts(name)):
                yield f"Column {name!r} {change}."

    def _dtype_change(self, before: Facts, after: Facts) -> str:
        if before.family != after.family:
            return f"held {_described(before)} and now holds {_described(after)}"
        if before.ordered != after.ordered:
            return "held categories " + (
                "in an order that is lost" if before.ordered else "without order and now has one"
            )
        if self.original.kind == self.released.kind and before.dtype != after.dtype:
            if before.family == "category":  # a dtype may list the categories: not in a message
                return "has another set or storage of categories"
            return f"had dtype {before.dtype} and now has {after.dtype}"
        return ""

    def _read(self, name: Name) -> Cells:
        codes = () if self.schema is None else self.schema[name].missing
        tables = (self.original, self.released)
        if all(table.facts(name).numeric for table in tables):
            read = [_numbers(table, name, codes) for table in tables]
            before, after = read
            if before is not None and after is not None:
                return self._as_meant(
                    Cells(
                        name=name,
                        numeric=True,
                        before=before[0],
                        after=after[0],
                        state_before=before[1],
                        state_after=after[1],
                    )
                )
            self.unreadable[name] = before is None, after is None
        return _categories(name, tables, codes)

    def _as_meant(self, cells: Cells) -> Cells:
        """Read numbers as categories where the schema says that they are codes."""
        if self.schema is None or self.schema[cells.name].kind in ("continuous", "integer"):
            return cells
        both = np.concatenate([cells.before, cells.after]) + 0.0  # -0.0 is the category 0.0
        codes = number_alike([np.where(np.isnan(both), 0.0, both).view(np.int64)])
        before, after = np.split(codes, 2)
        return Cells(
            name=cells.name,
            numeric=False,
            before=np.where(cells.state_before == 0, before, -1),
            after=np.where(cells.state_after == 0, after, -1),
            state_before=cells.state_before,
            state_after=cells.state_after,
            own=cells.alike,
        )


def _described(facts: Facts) -> str:
    words = {"category": "categories", "date": "dates", "boolean": "yes and no"}
    return words.get(facts.family, f"{facts.family} ({facts.dtype})")


def _numbers(table: Table, name: Name, codes: tuple[Any, ...]) -> tuple[Floats, States] | None:
    """Read numbers and states, or None if some are infinite or have too many digits."""
    given = [code for code in codes if not isinstance(code, str)]
    try:
        read = table.numeric([name], codes={name: given}, who="The audit")
    except BadTableError:
        return None
    return np.ascontiguousarray(read.values[:, 0]), np.ascontiguousarray(read.state[:, 0])


def _categories(name: Name, tables: tuple[Table, Table], codes: tuple[Any, ...]) -> Cells:
    place: dict[str, int] = {}
    gone = {str(code): FIRST_CODE + at for at, code in enumerate(codes)}
    columns: list[Integers] = []
    states: list[States] = []
    own: Integers | None = None
    for table in tables:
        try:
            own, texts = table.labels(name)
        except BadTableError:
            raise IncomparableError.values(name, table.facts(name).dtype) from None
        common = [place.setdefault(text, len(place)) for text in texts]
        columns.append(np.array([*common, -1], dtype=np.int64)[own])
        states.append(np.array([*(gone.get(t, 0) for t in texts), NULL], dtype=np.int16)[own])
    return Cells(
        name=name,
        numeric=False,
        before=columns[0],
        after=columns[1],
        state_before=states[0],
        state_after=states[1],
        own=own,
    )
