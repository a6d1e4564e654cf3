"""What a rule says, as a tree: numbers and columns below, truths above.

A *number expression* has a value for each record (`ColumnRef`, `Constant`, `Sum`, ...); a *truth*
is true, false or unknown for each record (`Compare`, `Member`, `And`, ...). The trees are frozen
and compare by what they say; `write` gives the text that reads back as the same tree.
"""

import keyword
import operator as signs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, dataclass_transform

from .._types import Name

Operator = Literal["<", "<=", "==", "!=", ">=", ">"]
Operators = dict[Operator, Operator]
OPPOSITE: Operators = {"<": ">=", "<=": ">", "==": "!=", "!=": "==", ">=": "<", ">": "<="}
MIRROR: Operators = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">=": "<=", ">": "<"}


HOLDS: dict[str, Callable[[Any, Any], Any]] = dict(
    zip(OPPOSITE, (signs.lt, signs.le, signs.eq, signs.ne, signs.ge, signs.gt))
)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Node:
    """Anything that a rule is made of; all that derives from it is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Constant(Node):
    """A number that is written in the rule."""

    value: int | float


class Text(Node):
    """A category or an ISO date that is written in the rule, in quotes."""

    value: str


class Flag(Node):
    """True or False, written in the rule."""

    value: bool


class ColumnRef(Node):
    """The value of a column; where a truth is expected, a column of yes and no."""

    name: Name


class Aggregate(Node):
    """mean, sum, min or max of a whole column: one number, that of the original table.

    `value` is None until `Rules.fix` has seen that table.
    """

    function: str
    column: Name
    value: float | None = field(default=None, compare=False, repr=False)


class UnitAggregate(Node):
    """count, sum, mean, min or max over the members of a record's unit: one number a unit.

    `operand` is a truth in count, None where all members are counted, and else a number
    expression; `unit` names the column whose values tell units apart.
    """

    function: Literal["count", "sum", "mean", "min", "max"]
    operand: Node | None
    unit: Name


class Negative(Node):
    """Minus something."""

    operand: Node


class Sum(Node):
    """Terms that are added (sign 1) or subtracted (sign -1), in this order; the first is added."""

    terms: tuple[Node, ...]
    signs: tuple[int, ...]


class Arithmetic(Node):
    """left * right, left / right, or left ** right."""

    operator: Literal["*", "/", "**"]
    left: Node
    right: Node


class Function(Node):
    """abs of one number, or the smallest or largest of several, within a record."""

    function: Literal["abs", "min", "max"]
    operands: tuple[Node, ...]


class Compare(Node):
    """a <= b < c: every neighbouring pair compares as its operator says."""

    operands: tuple[Node, ...]
    operators: tuple[Operator, ...]

    @property
    def pairs(self) -> Iterator[tuple[Node, Operator, Node]]:
        """Left side, operator and right side of each single comparison."""
        yield from zip(self.operands, self.operators, self.operands[1:], strict=False)


class Literals(Node):
    """Values, or tuples of values, that are written in the rule."""

    rows: tuple[tuple[int | float | str | bool, ...], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literals) and set(self.rows) == set(other.rows)

    def __hash__(self) -> int:
        return hash(frozenset(self.rows))


class Lookup(Node):
    """The rows of a file, as text; read when the rule was."""

    path: str
    rows: tuple[tuple[str, ...], ...] = field(default=(), compare=False, repr=False)


class Member(Node):
    """Number expressions that together are one of some rows, or none of them."""

    operands: tuple[Node, ...]
    among: Literals | Lookup
    inside: bool = True


class Observed(Node):
    """Values of columns that occur, together, in some record of the original table.

    `domain` is None until `Rules.fix` has seen that table.
    """

    columns: tuple[Name, ...]
    domain: Any = field(default=None, compare=False, repr=False)
    inside: bool = True


class Missing(Node):
    """missing(x), or known(x) where `missing` is False: true or false, never unknown."""

    column: Name
    missing: bool = True


class Not(Node):
    """Not so; unknown stays unknown."""

    operand: Node


class And(Node):
    """All of them: false where one is false, else unknown where one is unknown."""

    operands: tuple[Node, ...]


class Or(Node):
    """One of them: true where one is true, else unknown where one is unknown."""

    operands: tuple[Node, ...]


Computed = Constant | Sum | Arithmetic | Negative | Function | Aggregate | UnitAggregate  # numbers


def children(node: Node) -> tuple[Node, ...]:
    """List the nodes directly below."""
    parts = (part if isinstance(part, tuple) else (part,) for part in vars(node).values())
    return tuple(each for part in parts for each in part if isinstance(each, Node))


def walk(node: Node) -> Iterator[Node]:
    """Go through a tree, each node before those below it."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


def transform(node: Node, change: Callable[[Node], Node]) -> Node:
    """Rebuild a tree from the leaves up, with each node changed."""
    changes: dict[str, Any] = {}
    for name, part in vars(node).items():
        if isinstance(part, Node):
            changes[name] = transform(part, change)
        elif isinstance(part, tuple) and part and isinstance(part[0], Node):
            changes[name] = tuple(transform(each, change) for each in part)
    rebuilt = replace(node, **changes) if changes else node  # type: ignore[type-var]
    return change(rebuilt)


def columns_of(node: Node) -> tuple[Name, ...]:
    """List the columns that a tree names, in the order of the text, each once."""
    found: list[Name] = []
    for each in walk(node):
        match each:
            case ColumnRef(name) | Aggregate(_, name) | Missing(name, _):
                found.append(name)
            case Observed(names):
                found += names
    return tuple(dict.fromkeys(found))


def computed_in(node: Node) -> set[Name]:
    """Return the columns that a tree computes with, or compares with others: numbers, no codes."""
    computing = (Negative, Sum, Arithmetic, Function, Aggregate)
    found: set[Name] = set()
    for each in walk(node):
        match each:
            case Compare(operands):
                sides = [columns_of(o) for o in operands if not isinstance(o, UnitAggregate)]
                if sum(map(bool, sides)) > 1:
                    found.update(*sides)
            case UnitAggregate(function, Node() as operand) if function != "count":
                found.update(columns_of(operand))
            case _ if isinstance(each, computing):
                found.update(columns_of(each))
    return found


def needs_original(node: Node) -> bool:
    """Return whether a node stands for something that `Rules.fix` has not looked up yet."""
    if isinstance(node, Aggregate):
        return node.value is None
    return isinstance(node, Observed) and node.domain is None


def unit_of(node: Node) -> Name | None:
    """Return the column of the unit whose members a tree speaks of; None where of one record."""
    return next((each.unit for each in walk(node) if isinstance(each, UnitAggregate)), None)


def looked_up(node: Member | Observed) -> tuple[Name, ...]:
    """List the columns whose values are looked up together, in the order of the rows."""
    if isinstance(node, Observed):
        return node.columns
    return tuple(each.name for each in node.operands if isinstance(each, ColumnRef))


def negated(node: Node) -> Node:
    """Say the opposite, with `not` pushed down to where it vanishes.

    In the logic of true, false and unknown (Kleene) this changes no answer.
    """
    match node:
        case Not(operand):
            return positive(operand)
        case And(operands) | Or(operands):
            other = Or if isinstance(node, And) else And
            return other(tuple(negated(each) for each in operands))
        case Compare():
            single = tuple(Compare((a, b), (OPPOSITE[op],)) for a, op, b in node.pairs)
            return single[0] if len(single) == 1 else Or(single)
        case Member() | Observed():
            return replace(node, inside=not node.inside)
        case Missing():
            return replace(node, missing=not node.missing)
    return Not(node)  # a column of yes and no


def positive(node: Node) -> Node:
    """Say the same with `not` only in front of columns of yes and no."""
    if isinstance(node, Not):
        return negated(node.operand)
    if isinstance(node, And | Or):
        return replace(node, operands=tuple(positive(each) for each in node.operands))
    return node


# How tightly each node binds, as in Python; an operand that binds less tightly is bracketed.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)


def write(node: Node) -> str:
    """Write a tree as text that reads back as the same tree."""
    return _write(node)[0]


def _write(node: Node) -> tuple[str, int]:
    match node:
        case Constant(value):
            return repr(value), _SIGN if value < 0 or str(value)[0] == "-" else _ATOM
        case Text(value):
            return quoted(value), _ATOM
        case Flag(value):
            return str(value), _ATOM
        case ColumnRef(name):
            return column_text(name), _ATOM
        case Aggregate(function, column):
            return f"{function}({column_text(column)})", _ATOM
        case UnitAggregate(function, operand, unit):
            of = "" if operand is None else write(operand)
            return f"{function}({of}) by {column_text(unit)}", _ATOM
        case Missing(column, missing):
            return f"{'missing' if missing else 'known'}({column_text(column)})", _ATOM
        case Observed(columns, _, inside):
            text = f"observed({', '.join(map(column_text, columns))})"
            return (text, _ATOM) if inside else (f"not {text}", _NOT)
        case Function(function, operands):
            return f"{function}({', '.join(map(write, operands))})", _ATOM
        case Negative(operand):
            return f"-{_within(operand, _SIGN)}", _SIGN
        case Sum(terms, signs):
            text = _within(terms[0], _PRODUCT)
            for added, term in zip(signs[1:], terms[1:], strict=True):
                text += f" {'+' if added > 0 else '-'} {_within(term, _PRODUCT)}"
            return text, _SUM
        case Arithmetic("**", left, right):
            return f"{_within(left, _ATOM)} ** {_within(right, _SIGN)}", _POWER
        case Arithmetic(operator, left, right):
            text = f"{_within(left, _PRODUCT)} {operator} {_within(right, _PRODUCT + 1)}"
            return text, _PRODUCT
        case Compare(operands, operators):
            parts = [_within(operands[0], _SUM)]
            for sign, operand in zip(operators, operands[1:], strict=True):
                parts += [sign, _within(operand, _SUM)]
            return " ".join(parts), _COMPARE
        case Member(operands, among, inside):
            subject = ", ".join(map(write, operands))
            subject = _within(operands[0], _SUM) if len(operands) == 1 else f"({subject})"
            return f"{subject} {'in' if inside else 'not in'} {_rows(among)}", _COMPARE
        case Not(operand):
            return f"not {_within(operand, _NOT)}", _NOT
        case And(operands):
            return " and ".join(_within(each, _AND + 1) for each in operands), _AND
        case Or(operands):
            return " or ".join(_within(each, _OR + 1) for each in operands), _OR
    raise TypeError(f"no text for {node!r}")


def _within(node: Node, least: int) -> str:
    text, binds = _write(node)
    return text if binds >= least else f"({text})"


def _rows(among: Literals | Lookup) -> str:
    if isinstance(among, Lookup):
        return f"table({quoted(among.path)})"
    rows = [", ".join(quoted(v) if isinstance(v, str) else repr(v) for v in r) for r in among.rows]
    single = all(len(row) == 1 for row in among.rows)
    return "{" + ", ".join(row if single else f"({row})" for row in rows) + "}"


def quoted(text: str) -> str:
    """Put text in double quotes, on one line."""
    printable = text.isprintable()
    inner = text.replace("\\", "\\\\") if printable else text.encode("unicode_escape").decode()
    return '"' + inner.replace('"', '\\"') + '"'


def column_text(name: Name) -> str:
    """Write a column's name: bare, in backticks, or as col(...)."""
    if not isinstance(name, str):
        return f"col({name!r})"
    dunder = name.startswith("__") and name.endswith("__")
    if name.isidentifier() and not keyword.iskeyword(name) and not dunder:
        return name
    plain = name.isprintable() and "`" not in name and name.strip() == name != ""
    return f"`{name}`" if plain else f"col({quoted(name)})"


FINER = re.compile(r"\.\d{6}\d*[1-9]")  # than a microsecond


def is_date(text: str) -> bool:
    """Return whether text is a date such as 2024-01-31, or a date and time to microseconds."""
    if not re.match(r"\d{4}-\d\d-\d\d", text) or FINER.search(text):
        return False
    try:
        return datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


def stamp_of(text: str) -> int:
    """Return a date as microseconds since 1970."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
