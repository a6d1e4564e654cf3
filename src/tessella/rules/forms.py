"""The few shapes that rules have, once their text is taken apart.

A rule is a conjunction of *forms*; each says which records obey it in a way that a planner, a
projection or a solver can use. The names follow the classification of edit constraints in Torra
(2008): values in an interval or a set (EC-PV), one variable that governs another (EC-GV), linear
(EC-LC) and non-linear (EC-NLC) constraints, values that exist in the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, dataclass_transform

from .._types import Name
from ..linear.rows import Row, as_fraction
from .expressions import Operator

__all__ = [
    "AcrossMembers", "Always", "Either", "Factor", "Form", "General", "Governing", "Interval",
    "Linear", "Members", "Missingness", "Multiplicative", "ObservedValues", "Tuples", "Unfixed",
    "YesNo", "linear_rows",
]  # fmt: skip

Value = int | float | str | bool


@dataclass_transform(frozen_default=True)
class Form:
    """One of the shapes of a rule; `convex`: whether the records that obey it form a convex set."""

    kind: ClassVar[str]
    convex: ClassVar[bool]
    affine: ClassVar[bool]

    def __init_subclass__(cls, *, kind: str, affine: bool = False) -> None:
        cls.kind, cls.affine, cls.convex = kind, affine, affine
        dataclass(frozen=True)(cls)


class Interval(Form, kind="interval", affine=True):
    """low <= column <= high; an open end excludes the bound itself."""

    column: Name
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    @property
    def empty(self) -> bool:
        """Whether no number lies inside."""
        return self.low > self.high or (self.low == self.high and (self.open_low or self.open_high))

    def holds(self, value: float) -> bool:
        """Return whether a number lies inside."""
        return not self.meet(Interval(self.column, value, value)).empty

    def meet(self, other: Interval) -> Interval:
        """Return what lies in both."""
        low, open_low = max((self.low, self.open_low), (other.low, other.open_low))
        high, closed = min((self.high, not self.open_high), (other.high, not other.open_high))
        return Interval(self.column, low, high, open_low, not closed)


class Members(Form, kind="set"):
    """A column that is one of some values (`inside`), or none of them."""

    column: Name
    values: tuple[Value, ...]
    inside: bool = True


class Tuples(Form, kind="tuples"):
    """Columns that together are one of some rows, or none of them.

    The rows of a lookup table are text; `path` names the file.
    """

    columns: tuple[Name, ...]
    rows: tuple[tuple[Value, ...], ...]
    inside: bool = True
    path: str | None = None


class Linear(Form, kind="linear", affine=True):
    """The sum of coefficients times columns is ==, <= or < a constant.

    a == b is read as a - b == 0; only the table knows whether these columns are numbers.
    """

    coefficients: Mapping[Name, float]
    operator: Operator
    constant: float


class Governing(Form, kind="governing", affine=True):
    """lower <= upper, or lower < upper where `strict`: one column bounds another."""

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
    power: float  # a whole number is an int
    offset: float = 0.0


class Multiplicative(Form, kind="multiplicative"):
    """The product of the factors is ==, <= or < a constant.

    For an inequality, both sides were divided by what stood on the right: it says the same as the
    rule where every factor is positive.
    """

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


class YesNo(Form, kind="yes or no"):
    """A column of yes and no that has one of the two."""

    column: Name
    value: bool = True


class Missingness(Form, kind="missing"):
    """A column that is missing, or that is known."""

    column: Name
    missing: bool


class ObservedValues(Form, kind="observed"):
    """Columns whose values occur together in the original table."""

    columns: tuple[Name, ...]
    inside: bool = True


class Either(Form, kind="either"):
    """At least one of several conjunctions of forms."""

    options: tuple[tuple[Form, ...], ...]


class Always(Form, kind="always", affine=True):
    """A truth that depends on no record: every record obeys, or none does."""

    holds: bool


class General(Form, kind="general"):
    """A comparison of none of the other shapes."""

    columns: tuple[Name, ...]
    text: str


class AcrossMembers(Form, kind="across members"):
    """What must be true of the members of a unit together, such as one head in each household."""

    columns: tuple[Name, ...]
    unit: Name
    text: str


class Unfixed(Form, kind="unfixed"):
    """What a rule with mean(x) and the like will be once `Rules.fix` has seen the original table.

    `shape` is the kind of the form that it becomes.
    """

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


@dataclass
class _Known:
    """What is known of one column."""

    interval: Interval
    allowed: frozenset[Any] | None = None
    excluded: frozenset[Any] = frozenset()
    missing: frozenset[bool] = frozenset()

    def learn(self, form: Form) -> None:
        match form:
            case Interval():
                self.interval = self.interval.meet(form)
            case Members(_, values, True):
                values_ = frozenset(map(_token, values))
                self.allowed = values_ if self.allowed is None else self.allowed & values_
            case Members(_, values, False):
                self.excluded |= frozenset(map(_token, values))
            case YesNo(_, value):
                self.learn(Members(form.column, (_flag(value),)))
            case Missingness(_, missing):
                self.missing |= {missing}

    @property
    def possible(self) -> frozenset[Any] | None:
        """The values that are left, where they can be listed."""
        listed = self.allowed
        if listed is None and self.interval.low == self.interval.high and not self.interval.empty:
            listed = frozenset([_token(self.interval.low)])
        return None if listed is None else frozenset(filter(self.may_be, listed))

    def may_be(self, value: Any) -> bool:
        """Whether a value is not ruled out."""
        if value in self.excluded or (self.allowed is not None and value not in self.allowed):
            return False
        return not isinstance(value, float) or self.interval.holds(value)

    @property
    def empty(self) -> bool:
        """Whether no value is left."""
        if True in self.missing:  # then nothing else can be broken
            return False in self.missing
        if self.interval.empty:
            return True
        return self.possible is not None and not self.possible

    def implies(self, form: Form) -> bool:
        """Whether what is known makes a form true."""
        left = self.possible
        match form:
            case Missingness(_, missing):
                return missing in self.missing
            case _ if True in self.missing:
                return False
            case YesNo(_, value):
                return left is not None and left <= {_flag(value)}
            case Interval():
                if left is not None:
                    return all(isinstance(v, float) and form.holds(v) for v in left)
                return self.interval.meet(form) == self.interval
            case Members(_, values, True):
                return left is not None and left <= set(map(_token, values))
            case Members(_, values, False):
                # Text is never a number: a column that only has an interval says nothing of it.
                return not any(map(self.may_be, map(_token, values)))
        return False


def _token(value: Any) -> Any:
    return value if isinstance(value, str) else float(value)


def _flag(value: bool) -> str:
    return f"\0{value}"


class Context:
    """What some forms say together; forms about several columns are known by what they say."""

    def __init__(self, forms: Iterable[Form] = ()) -> None:
        self._columns: dict[Name, _Known] = {}
        self._stated: set[object] = set()
        self._never = False
        for form in forms:
            self._learn(form)

    def _learn(self, form: Form) -> None:
        self._stated.add(key_of(form))
        if isinstance(form, Always):
            self._never |= not form.holds
        elif isinstance(form, Interval | Members | YesNo | Missingness):
            known = self._columns.setdefault(form.column, _Known(Interval(form.column)))
            known.learn(form)

    def plus(self, forms: Iterable[Form]) -> Context:
        """Return what is known with some more forms."""
        more = Context()
        more._columns = {name: replace(known) for name, known in self._columns.items()}
        more._stated, more._never = set(self._stated), self._never
        for form in forms:
            more._learn(form)
        return more

    @property
    def empty(self) -> bool:
        """Whether no record can be so."""
        return self._never or any(known.empty for known in self._columns.values())

    def empty_in(self, column: Name) -> bool:
        """Whether one column can have no value."""
        return column in self._columns and self._columns[column].empty

    def implies(self, form: Form) -> bool:
        """Whether a form must be true."""
        if form == Always(True) or key_of(form) in self._stated:
            return True
        if isinstance(form, Either):
            return any(self.implies_all(option) for option in form.options)
        if isinstance(form, Interval | Members | YesNo | Missingness):
            return form.column in self._columns and self._columns[form.column].implies(form)
        return False

    def implies_all(self, forms: Iterable[Form]) -> bool:
        """Whether all of some forms must be true."""
        return all(self.implies(form) for form in forms)


def key_of(form: Form) -> object:
    """Return something that is the same for two forms that say the same in another way."""
    match form:
        case Governing():
            return key_of(form.linear)
        case Linear(coefficients, operator, constant):
            ordered = sorted(coefficients.items(), key=lambda each: str(each[0]))
            scale = as_fraction(ordered[0][1])
            scale = scale if operator == "==" else abs(scale)
            scaled = tuple((name, as_fraction(value) / scale) for name, value in ordered)
            return (scaled, operator, as_fraction(constant) / scale)
        case Multiplicative(factors, operator, constant):
            sign = 1
            ordered_factors = sorted(factors, key=lambda each: (str(each.column), each.offset))
            if operator == "==" and ordered_factors[0].power < 0 and constant > 0:
                sign, constant = -1, 1 / constant
            powers = tuple((f.column, f.offset, sign * f.power) for f in ordered_factors)
            return (powers, operator, as_fraction(constant))
        case Members(column, values, inside):
            return ("set", column, frozenset(map(_token, values)), inside)
        case Either(options):
            return frozenset(frozenset(map(key_of, option)) for option in options)
    return repr(form)
