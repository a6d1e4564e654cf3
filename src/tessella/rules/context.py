"""What is known of the columns of a record, from forms about one column each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .._types import Name
from .expressions import (
    Aggregate,
    Arithmetic,
    ColumnRef,
    Compare,
    Constant,
    Function,
    Literals,
    Member,
    Negative,
    Node,
    Sum,
    Text,
    children,
    is_date,
    walk,
)
from .forms import (
    Always,
    Either,
    Form,
    Governing,
    Interval,
    Linear,
    Members,
    Missingness,
    Multiplicative,
    YesNo,
)
from .rule import Rule

__all__ = ["Context", "key_of", "uses"]


@dataclass
class _Known:
    """What is known of one column."""

    interval: Interval
    allowed: frozenset[Any] | None = None
    excluded: frozenset[Any] = frozenset()
    missing: frozenset[bool] = frozenset()

    def copy(self) -> _Known:
        return _Known(self.interval, self.allowed, self.excluded, self.missing)

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
        if self.allowed is not None:
            return frozenset(value for value in self.allowed if self.may_be(value))
        if self.interval.low == self.interval.high and not self.interval.empty:
            return frozenset(v for v in [_token(self.interval.low)] if self.may_be(v))
        return None

    def may_be(self, value: Any) -> bool:
        """Whether a value is not ruled out."""
        if value in self.excluded or (self.allowed is not None and value not in self.allowed):
            return False
        return not isinstance(value, float) or _inside(value, self.interval)

    @property
    def empty(self) -> bool:
        """Whether no value is left."""
        if len(self.missing) == 2 or self.interval.empty:
            return True
        return self.possible is not None and not self.possible

    def implies(self, form: Form) -> bool:
        """Whether what is known makes a form true."""
        left = self.possible
        match form:
            case Missingness(_, missing):
                return missing in self.missing
            case YesNo(_, value):
                return left is not None and left <= {_flag(value)}
            case Interval():
                if left is not None:
                    return all(isinstance(v, float) and _inside(v, form) for v in left)
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


def _inside(value: float, interval: Interval) -> bool:
    return not interval.meet(Interval(interval.column, value, value)).empty


@dataclass
class Context:
    """What some forms say together; forms about several columns are known by what they say."""

    forms: Iterable[Form] = ()
    _columns: dict[Name, _Known] = field(default_factory=dict)
    _said: set[object] = field(default_factory=set)
    _never: bool = False

    def __post_init__(self) -> None:
        for form in self.forms:
            self._learn(form)
        self.forms = ()

    def _learn(self, form: Form) -> None:
        self._said.add(key_of(form))
        if isinstance(form, Always):
            self._never |= not form.holds
        elif isinstance(form, Interval | Members | YesNo | Missingness):
            known = self._columns.setdefault(form.column, _Known(Interval(form.column)))
            known.learn(form)

    def plus(self, forms: Iterable[Form]) -> Context:
        """Return what is known with some more forms."""
        more = Context()
        more._columns = {name: known.copy() for name, known in self._columns.items()}
        more._said, more._never = set(self._said), self._never
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
        if form == Always(True) or key_of(form) in self._said:
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
            scale = ordered[0][1] if operator == "==" else abs(ordered[0][1])
            return (
                tuple((name, round(value / scale, 12)) for name, value in ordered),
                operator,
                round(constant / scale, 12),
            )
        case Multiplicative(factors, operator, constant):
            sign = 1
            ordered_factors = sorted(factors, key=lambda each: (str(each.column), each.offset))
            if operator == "==" and ordered_factors[0].power < 0 and constant > 0:
                sign, constant = -1, 1 / constant
            powers = tuple((f.column, f.offset, sign * f.power) for f in ordered_factors)
            return (powers, operator, round(constant, 12))
        case Members(column, values, inside):
            return ("set", column, frozenset(map(_token, values)), inside)
        case Either(options):
            return frozenset(frozenset(map(key_of, option)) for option in options)
    return repr(form)


def uses(rule: Rule) -> Iterator[tuple[Name, str]]:
    """Say which columns a rule uses as "text" and which as "number"; some may be either."""
    trees = [rule.body] if rule.condition is None else [rule.condition, rule.body]
    for node in (node for tree in trees for node in walk(tree)):
        if isinstance(node, Compare):
            for left, _, right in node.pairs:
                for one, other in ((left, right), (right, left)):
                    if isinstance(one, ColumnRef):
                        yield from ((one.name, kind) for kind in _kind(other))
        elif isinstance(node, Member) and isinstance(node.among, Literals):
            for operand, value in zip(node.operands, node.among.rows[0], strict=True):
                if isinstance(operand, ColumnRef):
                    yield operand.name, "text" if isinstance(value, str) else "number"
        elif isinstance(node, Sum | Arithmetic | Negative | Function):
            for below in children(node):
                if isinstance(below, ColumnRef):
                    yield below.name, "number"
        elif isinstance(node, Aggregate):
            yield node.column, "number"


def _kind(other: Node) -> Iterator[str]:
    if isinstance(other, Text) and not is_date(other.value):
        yield "text"
    elif isinstance(other, Constant | Sum | Arithmetic | Negative | Function | Aggregate):
        yield "number"
