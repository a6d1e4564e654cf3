"""Do rules and table fit? Every reason why not is found before any record is judged."""

from __future__ import annotations

from collections.abc import Iterator

from ..exceptions import BadTableError, UnknownColumnError
from .domain import Domain, Kind, Operands
from .expressions import (
    Aggregate,
    And,
    Column,
    Comparison,
    Flag,
    Literals,
    Lookup,
    Member,
    Missing,
    Node,
    Not,
    Observed,
    Or,
    Text,
    children,
    columns_of,
    write,
)
from .literals import is_date

__all__ = ["misfits"]

_A = {"number": "a number", "text": "text", "date": "a date", "yes or no": "yes or no"}
_HOLDS = {"number": "numbers", "text": "text", "date": "dates", "yes or no": "yes or no"}


def misfits(node: Node, columns: Operands) -> list[str]:
    """List, in words, why a truth cannot be judged on a table."""
    found: list[str] = []
    for name in columns_of(node):
        try:
            columns.kind(name)
        except (UnknownColumnError, BadTableError) as error:
            found.append(str(error))
    return found or list(dict.fromkeys(_truth(node, columns)))


def _truth(node: Node, columns: Operands) -> Iterator[str]:
    match node:
        case And(operands) | Or(operands):
            for each in operands:
                yield from _truth(each, columns)
        case Not(operand):
            yield from _truth(operand, columns)
        case Column(name):
            kind = columns.kind(name)
            if kind != "yes or no":
                yield (
                    f"{write(node)} stands as a truth, and its column holds {_HOLDS[kind]}. "
                    "Compare it with something."
                )
        case Comparison():
            for side in node.operands:
                yield from _calculated(side, columns)
            for left, operator, right in node.pairs:
                yield from _pair(left, operator, right, columns)
        case Member(operands, among, _):
            for place, operand in enumerate(operands):
                yield from _calculated(operand, columns)
                yield from _values(operand, among, place, columns)
        case Observed(names, Domain() as domain):
            for name, was in zip(names, domain.kinds, strict=True):
                now = "number" if columns.kind(name) == "yes or no" else columns.kind(name)
                if now != was:
                    yield (
                        f"{write(node)}: column {name!r} is {_A[now]} here, and was {_A[was]} in "
                        "the table that the rules were fixed with."
                    )
        case Missing() | Observed():
            return


def _kind(node: Node, columns: Operands) -> Kind:
    match node:
        case Column(name):
            return columns.kind(name)
        case Text():
            return "text"
        case Flag():
            return "yes or no"
    return "number"


def _calculated(node: Node, columns: Operands) -> Iterator[str]:
    """Only numbers can be added, multiplied and averaged."""
    if isinstance(node, Aggregate) and columns.kind(node.column) != "number":
        kind = _HOLDS[columns.kind(node.column)]
        yield f"{write(node)} needs numbers, and the column holds {kind}."
    for below in children(node):
        kind = _kind(below, columns)
        if kind != "number":
            hint = _as_number(below, columns)
            yield f"{write(node)} calculates with {write(below)}, which is {_A[kind]}.{hint}"
        yield from _calculated(below, columns)


def _pair(left: Node, operator: str, right: Node, columns: Operands) -> Iterator[str]:
    first, second = _kind(left, columns), _kind(right, columns)
    for one, other in ((left, second), (right, first)):
        if isinstance(one, Text) and other == "date":
            if is_date(one.value):
                return
            yield f"{write(one)} is compared with a date. Write a date as 2024-01-31."
            return
    said = f"{write(left)} {operator} {write(right)}"
    if first != second:
        hint = _as_number(left, columns) or _as_number(right, columns)
        if "yes or no" in (first, second):
            hint = " A column of yes and no stands alone, or is compared with True or False."
        yield f"{said} compares {_A[first]} with {_A[second]}.{hint}"
    elif first in ("text", "yes or no") and operator not in ("==", "!="):
        yield f"{said} asks for an order, and {_A[first]} has none. List the values: x in {{...}}."


def _values(
    operand: Node, among: Literals | Lookup, place: int, columns: Operands
) -> Iterator[str]:
    kind = _kind(operand, columns)
    if kind == "yes or no":
        yield f"{write(operand)} is yes or no: it stands alone, or is compared with True or False."
    elif isinstance(among, Literals):
        texts = isinstance(among.rows[0][place], str)
        if texts == (kind == "number") or kind == "date":
            given = "text" if texts else "numbers"
            yield (
                f"{write(operand)} is {_A[kind]}, and is looked for among {given}."
                f"{_as_number(operand, columns)}"
            )
    elif kind == "number":
        wrong = [row[place] for row in among.rows if not _is_number(row[place])]
        if wrong:
            yield (
                f"{write(operand)} is a number, and the table {among.path!r} has "
                f"{wrong[0]!r} for it ({len(wrong)} values are no numbers)."
            )
    elif kind == "date":
        yield f"{write(operand)} is a date; dates cannot be looked up in a table."


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _as_number(node: Node, columns: Operands) -> str:
    """Tell what to do about a column whose texts or categories look like numbers."""
    if not isinstance(node, Column) or columns.kind(node.name) != "text":
        return ""
    _, texts = columns.labels(node.name)
    if texts and all(map(_is_number, texts)):
        return (
            f" Column {node.name!r} holds numbers written as text: convert it, or write its "
            "values in quotes."
        )
    return ""
