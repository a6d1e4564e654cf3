"""The few shapes that rules have, once their text is taken apart.

A rule is a conjunction of *forms*; each says which records obey it in a way that a planner, a
projection or a solver can use. The names follow the classification of edit constraints in Torra
(2008): values in an interval or a set (EC-PV), one variable that governs another (EC-GV), linear
(EC-LC) and non-linear (EC-NLC) constraints, values that exist in the data.
"""

from __future__ import annotations

import math
import operator as signs
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from .._types import Name
from ..linear.rows import Row
from .expressions import (
    MIRROR,
    Aggregate,
    And,
    ColumnRef,
    Compare,
    Flag,
    Function,
    Lookup,
    Member,
    Missing,
    Negative,
    Node,
    Not,
    Observed,
    Operator,
    Or,
    Text,
    columns_of,
    looked_up,
    positive,
    transform,
    walk,
    write,
)
from .polynomials import Polynomial, Product, as_product_equality, polynomial, product

__all__ = [
    "Always",
    "Either",
    "Factor",
    "Form",
    "General",
    "Governing",
    "Interval",
    "Linear",
    "Members",
    "Missingness",
    "Multiplicative",
    "ObservedValues",
    "Tuples",
    "Unfixed",
    "YesNo",
    "forms_of",
    "linear_rows",
]

Value = int | float | str | bool


class Form:
    """One of the shapes of a rule; `convex`: whether the records that obey it form a convex set."""

    kind: ClassVar[str] = "form"
    convex: ClassVar[bool] = False
    affine: ClassVar[bool] = False


@dataclass(frozen=True)
class Interval(Form):
    """low <= column <= high; an open end excludes the bound itself."""

    kind: ClassVar[str] = "interval"
    convex: ClassVar[bool] = True
    affine: ClassVar[bool] = True
    column: Name
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    @property
    def empty(self) -> bool:
        """Whether no number lies inside."""
        return self.low > self.high or (self.low == self.high and (self.open_low or self.open_high))

    def meet(self, other: Interval) -> Interval:
        """Return what lies in both."""
        low, open_low = max((self.low, self.open_low), (other.low, other.open_low))
        high, closed = min((self.high, not self.open_high), (other.high, not other.open_high))
        return Interval(self.column, low, high, open_low, not closed)


@dataclass(frozen=True)
class Members(Form):
    """A column that is one of some values (`inside`), or none of them."""

    kind: ClassVar[str] = "set"
    column: Name
    values: tuple[Value, ...]
    inside: bool = True


@dataclass(frozen=True)
class Tuples(Form):
    """Columns that together are one of some rows, or none of them.

    The rows of a lookup table are text; `path` names the file.
    """

    kind: ClassVar[str] = "tuples"
    columns: tuple[Name, ...]
    rows: tuple[tuple[Value, ...], ...]
    inside: bool = True
    path: str | None = None


@dataclass(frozen=True)
class Linear(Form):
    """The sum of coefficients times columns is ==, <= or < a constant.

    a == b is read as a - b == 0; only the table knows whether these columns are numbers.
    """

    kind: ClassVar[str] = "linear"
    convex: ClassVar[bool] = True
    affine: ClassVar[bool] = True
    coefficients: Mapping[Name, float]
    operator: Operator
    constant: float


@dataclass(frozen=True)
class Governing(Form):
    """lower <= upper, or lower < upper where `strict`: one column bounds another."""

    kind: ClassVar[str] = "governing"
    convex: ClassVar[bool] = True
    affine: ClassVar[bool] = True
    lower: Name
    upper: Name
    strict: bool = False

    @property
    def linear(self) -> Linear:
        """The same as a linear form."""
        return Linear({self.lower: 1.0, self.upper: -1.0}, "<" if self.strict else "<=", 0.0)


@dataclass(frozen=True)
class Factor:
    """(column + offset) ** power."""

    column: Name
    power: int
    offset: float = 0.0


@dataclass(frozen=True)
class Multiplicative(Form):
    """The product of the factors is ==, <= or < a constant.

    For an inequality, both sides were divided by what stood on the right: it says the same as the
    rule where every factor is positive.
    """

    kind: ClassVar[str] = "multiplicative"
    factors: tuple[Factor, ...]
    operator: Operator
    constant: float

    @property
    def alone(self) -> Factor | None:
        """The factor that equals a product of the others, if there is one."""
        for factor in self.factors:
            others = [other for other in self.factors if other is not factor]
            if abs(factor.power) == 1 and all(o.power * factor.power < 0 for o in others):
                return factor
        return None


@dataclass(frozen=True)
class YesNo(Form):
    """A column of yes and no that has one of the two."""

    kind: ClassVar[str] = "yes or no"
    column: Name
    value: bool = True


@dataclass(frozen=True)
class Missingness(Form):
    """A column that is missing, or that is known."""

    kind: ClassVar[str] = "missing"
    column: Name
    missing: bool


@dataclass(frozen=True)
class ObservedValues(Form):
    """Columns whose values occur together in the original table."""

    kind: ClassVar[str] = "observed"
    columns: tuple[Name, ...]
    inside: bool = True


@dataclass(frozen=True)
class Either(Form):
    """At least one of several conjunctions of forms."""

    kind: ClassVar[str] = "either"
    options: tuple[tuple[Form, ...], ...]


@dataclass(frozen=True)
class Always(Form):
    """A truth that depends on no record: every record obeys, or none does."""

    kind: ClassVar[str] = "always"
    convex: ClassVar[bool] = True
    affine: ClassVar[bool] = True
    holds: bool


@dataclass(frozen=True)
class General(Form):
    """A comparison of none of the other shapes."""

    kind: ClassVar[str] = "general"
    columns: tuple[Name, ...]
    text: str


@dataclass(frozen=True)
class Unfixed(Form):
    """What a rule with mean(x) and the like will be once `Rules.fix` has seen the original table.

    `shape` is the kind of the form that it becomes.
    """

    kind: ClassVar[str] = "unfixed"
    columns: tuple[Name, ...]
    shape: str
    text: str


def linear_rows(form: Form, name: str, tolerance: float = 0.0) -> list[Row]:
    """Return what a form says in linear rows; none if it is of another shape.

    With a tolerance, an equation becomes two inequalities, and < becomes <=. An interval was
    divided by its coefficient, so that a tolerance has another unit there: it is not made use of.
    """
    if isinstance(form, Governing):
        form = form.linear
    if isinstance(form, Linear):
        coefficients, right = dict(form.coefficients), form.constant
        if form.operator == "==" and tolerance > 0:
            opposite = {column: -value for column, value in coefficients.items()}
            return [
                Row(name, coefficients, "<=", right + tolerance),
                Row(name, opposite, "<=", tolerance - right),
            ]
        operator = "<=" if form.operator == "<" and tolerance > 0 else form.operator
        return [Row(name, coefficients, operator, right + tolerance)]
    if not isinstance(form, Interval):
        return []
    if form.low == form.high:
        return [Row(name, {form.column: 1.0}, "==", form.low)]
    ends = [(1.0, form.high, form.open_high), (-1.0, 0.0 - form.low, form.open_low)]
    return [
        Row(name, {form.column: sign}, "<" if is_open and not tolerance else "<=", end)
        for sign, end, is_open in ends
        if end < math.inf
    ]


def forms_of(node: Node) -> tuple[Form, ...]:
    """Take a truth apart into forms that must all hold."""
    if any(isinstance(each, Aggregate) and each.value is None for each in walk(node)):
        # Any value shows the shape; this one cancels against nothing that people write.
        shapes = {form.kind for form in forms_of(_with_aggregates(node, 0.7390851332151607))}
        shape = shapes.pop() if len(shapes) == 1 else "several"
        return (Unfixed(columns_of(node), shape, write(node)),)
    return _tidy(list(_forms(positive(node))))


def _with_aggregates(node: Node, value: float) -> Node:
    return transform(
        node, lambda each: replace(each, value=value) if isinstance(each, Aggregate) else each
    )


def _tidy(forms: list[Form]) -> tuple[Form, ...]:
    """Join the intervals of each column; leave out repetitions and what is always true."""
    tidy: dict[object, Form] = {}
    for form in forms:
        if isinstance(form, Interval):
            known = tidy.get(("interval", form.column))
            tidy["interval", form.column] = (
                form.meet(known) if isinstance(known, Interval) else form
            )
        else:
            tidy[repr(form)] = form
    kept = [form for form in tidy.values() if form != Always(True)]
    return tuple(kept) or (Always(True),)


def _forms(node: Node) -> Iterator[Form]:
    match node:
        case And(operands):
            for each in operands:
                yield from _forms(each)
        case Or(operands):
            yield Either(tuple(_tidy(list(_forms(each))) for each in operands))
        case Compare():
            for left, operator, right in node.pairs:
                yield from _compared(left, operator, right)
        case Member((ColumnRef(name),), among, inside) if not isinstance(among, Lookup):
            yield Members(name, tuple(row[0] for row in among.rows), inside)
        case Member(operands, among, inside) if all(isinstance(o, ColumnRef) for o in operands):
            path = among.path if isinstance(among, Lookup) else None
            yield Tuples(looked_up(node), among.rows, inside, path)
        case Missing(column, missing):
            yield Missingness(column, missing)
        case Observed(columns, _, inside):
            yield ObservedValues(columns, inside)
        case ColumnRef(name):
            yield YesNo(name)
        case Not(ColumnRef(name)):
            yield YesNo(name, False)
        case _:
            yield General(columns_of(node), write(node))


def _compared(left: Node, operator: Operator, right: Node) -> Iterator[Form]:
    if isinstance(left, Text | Flag):
        left, operator, right = right, MIRROR[operator], left
    if isinstance(left, ColumnRef) and isinstance(right, Text | Flag) and operator in ("==", "!="):
        same = operator == "=="
        if isinstance(right, Flag):
            yield YesNo(left.name, right.value is same)
        else:
            yield Members(left.name, (right.value,), same)
        return
    if operator in (">", ">="):
        left, operator, right = right, MIRROR[operator], left
    # What a largest value stays below, each value stays below; so too for abs and min.
    if operator in ("<", "<=") and isinstance(left, Function) and left.function in ("max", "abs"):
        below = (
            left.operands if left.function == "max" else (*left.operands, *_minus(left.operands))
        )
        for each in below:
            yield from _compared(each, operator, right)
    elif operator in ("<", "<=") and isinstance(right, Function) and right.function == "min":
        for each in right.operands:
            yield from _compared(left, operator, each)
    else:
        yield _shape(left, operator, right)


def _minus(operands: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(Negative(each) for each in operands)


_HOLDS = {"<": signs.lt, "<=": signs.le, "==": signs.eq, "!=": signs.ne}


def _shape(left: Node, operator: Operator, right: Node) -> Form:
    text = Compare((left, right), (operator,))
    general = General(columns_of(text), write(text))
    first, second = polynomial(left), polynomial(right)
    difference = None if first is None or second is None else first.plus(second, -1)
    try:
        if difference is not None and difference.degree <= 1:
            return _affine(difference, operator) or general
        return _product(left, operator, right, difference) or general
    except OverflowError:  # a coefficient beyond the floats
        return general


def _affine(difference: Polynomial, operator: Operator) -> Form | None:
    coefficients, bound = difference.coefficients, -difference.constant
    if not coefficients:
        return Always(_HOLDS[operator](0, bound))
    if len(coefficients) == 1:
        ((name, coefficient),) = coefficients.items()
        return _interval(name, operator, bound / coefficient, coefficient < 0)
    if operator == "!=":
        return None
    values = {name: float(value) for name, value in coefficients.items()}
    if operator != "==" and not bound and sorted(values.values()) == [-1.0, 1.0]:
        upper, lower = sorted(values, key=lambda name: values[name])
        return Governing(lower, upper, operator == "<")
    return Linear(values, operator, float(bound))


def _interval(name: Name, operator: Operator, bound: Fraction, flipped: bool) -> Form:
    value = float(bound)
    if operator == "!=":
        return Members(name, (int(value) if value.is_integer() else value,), False)
    if operator == "==":
        return Interval(name, value, value)
    is_open = operator == "<"
    if flipped:
        return Interval(name, low=value, open_low=is_open)
    return Interval(name, high=value, open_high=is_open)


def _product(
    left: Node, operator: Operator, right: Node, difference: Polynomial | None
) -> Form | None:
    if operator == "!=":
        return None
    first, second = product(left), product(right)
    quotient: Product | None = None
    if first is not None and second is not None and first.scale and second.scale:
        if operator == "==" or (first.scale > 0 and second.scale > 0):
            quotient = first.times(second, -1)
            # y == x * y is also true where y is 0: what cancels out must not be forgotten.
            if quotient is not None and set(quotient.powers) != {*first.powers, *second.powers}:
                quotient = None
            if quotient is not None:
                quotient = Product(1 / quotient.scale, quotient.powers)
    elif operator == "==" and difference is not None:
        quotient = as_product_equality(difference)
    if quotient is None or not quotient.powers:
        return None
    factors = [Factor(n, power, float(offset)) for (n, offset), power in quotient.powers.items()]
    return Multiplicative(tuple(factors), operator, float(quotient.scale))
