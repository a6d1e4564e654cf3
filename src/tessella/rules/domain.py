"""The columns of a `View` as rules compare them, and sets of values that records lie in.

A column holds numbers, texts, dates, or yes and no, by its dtype; nothing is converted from one
to another. What is missing, and what equals what, is the view's answer (`tessella.frame.View`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError, UnknownColumnError
from ..frame import View, group_ids
from ..schema import Schema
from . import expressions as tree

F = TypeVar("F", bound=Callable[..., Any])
Kind = Literal["number", "text", "date", "yes or no"]

_KINDS: dict[str, Kind] = {
    "float": "number", "integer": "number", "decimal": "number", "text": "text",
    "category": "text", "date": "date", "boolean": "yes or no",
}  # fmt: skip


def _once(read: F) -> F:
    """Keep what a method of `Operands` returns for each of its arguments."""

    @wraps(read)
    def kept(self: Operands, *given: Any) -> Any:
        key = (read.__name__, *given)
        if key not in self._kept:
            self._kept[key] = read(self, *given)
        return self._kept[key]

    return cast(F, kept)


class Members:
    """The members of each unit; `ids` tells the units apart, shape (n,)."""

    def __init__(self, ids: Integers) -> None:
        self.ids = ids = group_ids([ids])  # without gaps
        self._order = np.argsort(ids, kind="stable")
        counts = np.bincount(ids)
        self._starts = np.cumsum(counts) - counts
        self._counts, self.largest = counts, int(counts.max())

    def reduce(self, ufunc: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """Return, for each record, a reduction over the members of its unit."""
        return np.asarray(ufunc.reduceat(values[self._order], self._starts)[self.ids])

    def aggregate(self, function: str, values: Floats) -> Floats:
        """Return, for each record, "count", "sum", "mean", "min" or "max" of its unit."""
        ufunc = {"min": np.minimum, "max": np.maximum}.get(function, np.add)
        found = self.reduce(ufunc, values)
        return found / self._counts[self.ids] if function == "mean" else found


class Operands:
    """The columns of one view, as operands of comparisons; what is derived is kept."""

    def __init__(self, table: Any, schema: Schema | None = None) -> None:
        self.view = View.of(table, schema)
        self.n_rows = self.view.n_rows
        self._kept: dict[Any, Any] = {}

    def keep(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Return what was computed for a key before, or compute and keep it."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]

    def units(self, name: Name) -> Members:
        """Return the units that a rule calls by the name of their column, or raise why not."""
        found: Members = self.keep(("units", name), lambda: Members(self._unit_ids(name)))
        return found

    def _unit_ids(self, name: Name) -> Integers:
        schema, text = self.view.schema, tree.column_text(name)
        named = [] if schema is None else schema.names("unit")
        if named and name not in named:
            raise BadTableError(
                f"`by {text}` asks for the members of {name!r}, and the units of this table are "
                f"{named[0]!r}. Write: by {tree.column_text(named[0])}."
            )
        ids = self.view.units
        if ids is None and schema is None and self.view.table.has(name):
            ids = self.view.group_ids([name])
        if ids is None:
            raise BadTableError(
                f"`by {text}` asks for the members of a unit, and nothing says that {name!r} is "
                f'one. Give unit={name!r}, or role = "unit" to column {text} of the plan.'
            )
        return np.asarray(ids)

    def kind(self, name: Name) -> Kind:
        """Return what a column holds, or raise that there is no such column."""
        self.view.table.place(name, who="It")
        facts = self.view.table.facts(name)
        if facts.family not in _KINDS:
            raise BadTableError(
                f"Column {name!r} has dtype {facts.dtype}, which rules cannot compare. "
                "Make it a column of numbers, text, categories, dates or booleans."
            )
        return _KINDS[facts.family]

    def numbers(self, name: Name) -> Floats:
        """Return a column of numbers, or of yes and no as 1 and 0; NaN where missing."""
        return self.view.numbers(name, who="A rule")

    @_once
    def labels(self, name: Name) -> tuple[Integers, list[str]]:
        """Return a code for each record, -1 where missing, and the text of each code."""
        return self.view.labels(name)

    @_once
    def dates(self, name: Name) -> Integers:
        """Return a column of dates as microseconds; what missing cells hold means nothing."""
        codes, texts = self.labels(name)
        try:
            stamps = np.array([*texts, "NaT"], dtype="datetime64[us]").astype(np.int64)
        except ValueError:
            stamps = None
        if stamps is None or any(map(tree.FINER.search, texts)):
            raise BadTableError(
                f"Column {name!r} ({self.view.table.facts(name).dtype}) holds times that rules "
                "cannot compare. Give dates, or times without a time zone, to microseconds."
            )
        return np.asarray(stamps[codes])

    @_once
    def missing(self, name: Name) -> Truths:
        """Return where a column is missing."""
        if self.kind(name) in ("text", "date"):
            return np.asarray(self.labels(name)[0] < 0)
        return np.isnan(self.numbers(name))

    def places(self, name: Name, distinct: NDArray[Any]) -> tuple[Integers, Truths]:
        """For each code of a column of texts, and for -1: its place in a set, and if it has one."""
        key = ("places", name, id(distinct))
        if key not in self._kept:
            place, here = find(np.array([*self.labels(name)[1], ""], dtype=str), distinct)
            here[-1] = False
            self._kept[key] = place, here, distinct  # which is kept, so that its id stays its own
        place, here, _ = self._kept[key]
        return place, here

    @_once
    def translated(self, name: Name, other: Name) -> Integers:
        """Return a column of texts in the codes of another; -2 for words that the other lacks."""
        codes, words = self.labels(name)
        place = {text: at for at, text in enumerate(self.labels(other)[1])}
        table = np.array([*(place.get(word, -2) for word in words), -1], dtype=np.int64)
        return np.asarray(table[codes])

    @_once
    def whole(self, name: Name) -> bool:
        """Return whether all known numbers of a column are whole numbers, whatever its dtype."""
        values = self.numbers(name)
        exact = self.view.table.facts(name).family == "integer"
        # NaN equals nothing, so that only known numbers count.
        return exact or not bool((np.rint(values) != values)[~np.isnan(values)].any())

    @_once
    def largest(self, name: Name) -> float:
        """Return the largest absolute value of a column."""
        values = self.numbers(name)
        return float(np.nan_to_num(max(np.fmax.reduce(values), -np.fmin.reduce(values))))


def find(values: NDArray[Any], distinct: NDArray[Any]) -> tuple[Integers, Truths]:
    """Return the place of each value among the distinct ones, and whether it is there."""
    if not len(distinct):
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=bool)
    place = np.minimum(np.searchsorted(distinct, values), len(distinct) - 1)
    return place, distinct[place] == values


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
    def of_columns(cls, columns: Operands, names: Sequence[Name]) -> Domain:
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

    def holds(self, columns: Operands, names: Sequence[Name], rows: Any) -> Truths:
        """Return which records have a row of the domain; missing values are in no row."""
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
        return np.asarray(find(_combine(places, self.values), self.rows)[1] & found)


def _exact(columns: Operands, name: Name) -> NDArray[Any]:
    """Numbers as floats, dates as whole microseconds."""
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


# Every reason why rules and table do not fit is found before any record is judged.

_A = {"number": "a number", "text": "text", "date": "a date", "yes or no": "yes or no"}
_HOLDS = {"number": "numbers", "text": "text", "date": "dates", "yes or no": "yes or no"}


def misfits(node: tree.Node, columns: Operands) -> list[str]:
    """List, in words, why a truth cannot be judged on a table."""
    found: list[str] = []
    for name in tree.columns_of(node):
        try:
            columns.kind(name)
        except (UnknownColumnError, BadTableError) as error:
            found.append(str(error))
    try:
        if (unit := tree.unit_of(node)) is not None:
            columns.units(unit)
    except BadTableError as error:
        found.append(str(error))
    return found or list(dict.fromkeys(_truth(node, columns)))


def _truth(node: tree.Node, columns: Operands) -> Iterator[str]:
    match node:
        case tree.And() | tree.Or() | tree.Not():
            for each in tree.children(node):
                yield from _truth(each, columns)
        case tree.ColumnRef(name):
            if (kind := columns.kind(name)) != "yes or no":
                holds = f"and its column holds {_HOLDS[kind]}. Compare it with something."
                yield f"{tree.write(node)} stands as a truth, {holds}"
        case tree.Compare():
            for side in node.operands:
                yield from _calculated(side, columns)
            for left, operator, right in node.pairs:
                yield from _pair(left, operator, right, columns)
        case tree.Member(operands, among, _):
            for place, operand in enumerate(operands):
                yield from _calculated(operand, columns)
                yield from _values(operand, among, place, columns)
        case tree.Observed(names, Domain() as domain):
            for name, was in zip(names, domain.kinds, strict=True):
                now = "number" if columns.kind(name) == "yes or no" else columns.kind(name)
                if now != was:
                    yield (
                        f"{tree.write(node)}: column {name!r} is {_A[now]} here, and was {_A[was]} "
                        "in the table that the rules were fixed with."
                    )


def _kind(node: tree.Node, columns: Operands) -> Kind:
    if isinstance(node, tree.ColumnRef):
        return columns.kind(node.name)
    if isinstance(node, tree.Text):
        return "text"
    return "yes or no" if isinstance(node, tree.Flag) else "number"


def _calculated(node: tree.Node, columns: Operands) -> Iterator[str]:
    """Only numbers can be added, multiplied and averaged."""
    if isinstance(node, tree.UnitAggregate) and node.function == "count":
        yield from () if node.operand is None else _truth(node.operand, columns)
        return
    if isinstance(node, tree.Aggregate) and columns.kind(node.column) != "number":
        kind = _HOLDS[columns.kind(node.column)]
        yield f"{tree.write(node)} needs numbers, and the column holds {kind}."
    for below in tree.children(node):
        if (kind := _kind(below, columns)) != "number":
            wrong = f"{tree.write(node)} calculates with {tree.write(below)}, which is {_A[kind]}."
            yield wrong + _as_number(below, columns)
        yield from _calculated(below, columns)


def _pair(left: tree.Node, operator: str, right: tree.Node, columns: Operands) -> Iterator[str]:
    first, second = _kind(left, columns), _kind(right, columns)
    for one, other in ((left, second), (right, first)):
        if isinstance(one, tree.Text) and other == "date":
            if not tree.is_date(one.value):
                yield f"{tree.write(one)} is compared with a date. Write a date as 2024-01-31."
            return
    text = f"{tree.write(left)} {operator} {tree.write(right)}"
    if first != second:
        hint = _as_number(left, columns) or _as_number(right, columns)
        if "yes or no" in (first, second):
            hint = " A column of yes and no stands alone, or is compared with True or False."
        yield f"{text} compares {_A[first]} with {_A[second]}.{hint}"
    elif first in ("text", "yes or no") and operator not in ("==", "!="):
        yield f"{text} asks for an order, and {_A[first]} has none. List the values: x in {{...}}."


def _values(
    operand: tree.Node, among: tree.Literals | tree.Lookup, place: int, columns: Operands
) -> Iterator[str]:
    kind, text = _kind(operand, columns), tree.write(operand)
    if kind == "yes or no":
        yield f"{text} is yes or no: it stands alone, or is compared with True or False."
    elif isinstance(among, tree.Literals):
        texts = isinstance(among.rows[0][place], str)
        if texts == (kind == "number") or kind == "date":
            given = "text" if texts else "numbers"
            hint = _as_number(operand, columns)
            yield f"{text} is {_A[kind]}, and is looked for among {given}.{hint}"
    elif kind == "number":
        if wrong := [row[place] for row in among.rows if not _is_number(row[place])]:
            has = f"{wrong[0]!r} for it ({len(wrong)} values are no numbers)"
            yield f"{text} is a number, and the table {among.path!r} has {has}."
    elif kind == "date":
        yield f"{text} is a date; dates cannot be looked up in a table."


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _as_number(node: tree.Node, columns: Operands) -> str:
    """Tell what to do about a column whose texts or categories look like numbers."""
    if not isinstance(node, tree.ColumnRef) or columns.kind(node.name) != "text":
        return ""
    _, texts = columns.labels(node.name)
    hint = "numbers written as text: convert it, or write its values in quotes."
    return f" Column {node.name!r} holds {hint}" if texts and all(map(_is_number, texts)) else ""
