"""An engine does the jobs of a step, and brings what they make to the jobs of the next step.

The work on a large table goes in *steps*; the *jobs* of a step do not know of each other. Each gets
the rows that were sent to its number, and makes rows that go to numbers of the next step, and
*facts*: small things that the driver adds up. So an engine needs two verbs: `load` a table in
pieces, and `work`. Nothing that a job makes may depend on who does it, nor when: what is made is
then the same on every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from .._types import Integers
from ..exceptions import BadTableError

PIECE = 131_072  # rows of a piece of a table as it is read
EMPTY = "The table is empty. Give a table with at least one record."

Facts = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Made:
    """What a job makes: rows, where each goes, and facts."""

    rows: pa.Table | None = None
    to: Integers | None = None
    facts: Facts = field(default_factory=dict)


# A job takes its number and its rows, of each of the steps before it; None where it has none.
Job = Callable[[int, Sequence[Any]], Made]


class Moved(Protocol):
    """What the jobs of a step have made: rows on their way, and the facts of each job."""

    facts: dict[int, Facts]  # by the number of the job, which count up

    @property
    def sizes(self) -> dict[int, int]:
        """How many rows go to each number, where there are any; the numbers count up."""
        ...

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows that go to each number, one after the other, as the numbers count up."""
        ...


class Engine(Protocol):
    """Where the jobs are done."""

    name: str

    def load(self, tables: Iterable[pa.Table]) -> Moved:
        """Take a table, in its order and in pieces of any size; PIECE rows go to each number."""
        ...

    def work(
        self, name: str, given: Sequence[Moved], job: Job, *, last: Sequence[Moved] = ()
    ) -> Moved:
        """Do a job for every number that rows of `given` go to; `last` are not needed after it."""
        ...

    def close(self) -> None:
        """End what works for the engine."""
        ...


def in_order(rows: pa.Table, to: Integers) -> tuple[pa.Table, Integers, Integers]:
    """Return rows in the order of where they go, the numbers that get any, and where they begin."""
    order = np.argsort(to, kind="stable")
    keys, starts = np.unique(to[order], return_index=True)
    if not (order == np.arange(len(order))).all():
        rows = rows.take(pa.array(order))
    return rows, keys, np.append(starts, len(order))


def addressed(made: Made) -> tuple[pa.Table | None, dict[str, Any]]:
    """Return rows in the order of where they go, if any, and facts with where those of each begin.

    The numbers are the fact `to_keys`; the rows of each begin where the fact `to_starts` says.
    """
    if made.rows is None or made.to is None or not made.rows.num_rows:
        return None, {**made.facts, "to_keys": [], "to_starts": [0]}
    rows, keys, starts = in_order(made.rows, made.to)
    return rows, {**made.facts, "to_keys": keys, "to_starts": starts}


def sizes_of(facts: Mapping[int, Facts]) -> dict[int, int]:
    """Return how many rows go to each number, from the facts of the jobs that made them."""
    found: dict[int, int] = {}
    for own in facts.values():
        for key, size in zip(own["to_keys"], np.diff(own["to_starts"])):
            found[int(key)] = found.get(int(key), 0) + int(size)
    return dict(sorted(found.items()))


def in_pieces(tables: Iterable[pa.Table], size: int | None = None) -> Iterator[pa.Table]:
    """Cut a table anew, into pieces of PIECE rows: the same, whatever the pieces that it came in.

    Columns of texts that are stored as codes become texts: codes mean something in a piece only.
    """
    size = PIECE if size is None else size
    kept: list[pa.Table] = []
    held = 0
    shape: pa.Schema | None = None
    for table in map(plain, tables):
        if shape is None:
            shape = table.schema
        if table.schema != shape:
            raise BadTableError(
                "The pieces of the table differ in their columns or types: "
                f"{_difference(shape, table.schema)}."
            )
        for first in range(0, table.num_rows, size):
            part = table.slice(first, size)
            kept.append(part)
            held += part.num_rows
            if held >= size:
                whole = pa.concat_tables(kept)
                yield whole.slice(0, size).combine_chunks()
                held -= size
                kept = [whole.slice(size)] if held else []
    if held:
        yield pa.concat_tables(kept).combine_chunks()


def plain(table: pa.Table) -> pa.Table:
    """Return the columns as engines move them, without what their readers have noted."""
    columns, fields = [], []
    for one in table.schema:
        column = table.column(one.name)
        if pa.types.is_dictionary(one.type):
            column = column.cast(one.type.value_type)
        if pa.types.is_string(column.type) or pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        columns.append(column)
        fields.append(pa.field(one.name, column.type))
    return pa.table(columns, schema=pa.schema(fields))


def _difference(one: pa.Schema, two: pa.Schema) -> str:
    names = [*one.names, *(name for name in two.names if name not in one.names)]
    for name in names:
        types = [str(own.field(name).type) if name in own.names else "none" for own in (one, two)]
        if types[0] != types[1]:
            return f"{name!r} is {types[0]} in one and {types[1]} in another"
    return "their order differs"
