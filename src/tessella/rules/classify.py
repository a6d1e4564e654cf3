"""What a truth says, as forms; numbers as polynomials and as products, with exact coefficients.

Coefficients are fractions of the decimals that were written, so that 0.1 * x + 0.2 * x is exactly
0.3 * x. An expression that is no polynomial of moderate size, or no product of simple factors,
gives None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from itertools import product as pairs_of

from .._types import Name
from ..linear.rows import as_fraction
from . import expressions as tree
from . import forms

MOST_TERMS = 500
LARGEST_DEGREE = 20

Monomial = tuple[tuple[Name, int], ...]  # columns with their powers, sorted; () is the constant


@dataclass(frozen=True)
class Polynomial:
    """A sum of coefficients times monomials; no coefficient is zero."""

    terms: Mapping[Monomial, Fraction]

    @property
    def degree(self) -> int:
        """The largest number of columns, with repetition, in a term."""
        return max((sum(power for _, power in term) for term in self.terms), default=0)

    @property
    def constant(self) -> Fraction:
        """The term without columns."""
        return self.terms.get((), Fraction(0))

    @property
    def coefficients(self) -> dict[Name, Fraction]:
        """For a polynomial of degree one or less: each column's coefficient."""
        return {term[0][0]: value for term, value in self.terms.items() if term}

    def plus(self, other: Polynomial, factor: int = 1) -> Polynomial:
        """Add a multiple of another polynomial."""
        more = ((term, factor * value) for term, value in other.terms.items())
        return _collect(chain(self.terms.items(), more))

    def times(self, other: Polynomial) -> Polynomial | None:
        """Multiply, unless the result grows too large."""
        if self.degree + other.degree > LARGEST_DEGREE:
            return None
        if len(self.terms) * len(other.terms) > MOST_TERMS:
            return None
        pairs = pairs_of(self.terms.items(), other.terms.items())
        return _collect((combine(first, second), a * b) for (first, a), (second, b) in pairs)


@dataclass(frozen=True)
class Product:
    """scale times the product of (column + offset) ** power; no power is zero."""

    scale: Fraction
    powers: Mapping[tuple[Name, Fraction], int | Fraction]

    def times(self, other: Product, sign: int = 1) -> Product | None:
        """Multiply with another product, or divide by it where the sign is -1."""
        if sign < 0 and not other.scale:
            return None
        powers = dict(self.powers)
        for factor, power in other.powers.items():
            powers[factor] = powers.get(factor, 0) + sign * power
        scale = self.scale * other.scale if sign > 0 else self.scale / other.scale
        return Product(scale, {factor: power for factor, power in powers.items() if power})


def _collect(terms: Iterable[tuple[Monomial, Fraction]]) -> Polynomial:
    """Add up the coefficients of equal monomials."""
    total: dict[Monomial, Fraction] = {}
    for monomial, value in terms:
        total[monomial] = total.get(monomial, Fraction(0)) + value
    return Polynomial({monomial: value for monomial, value in total.items() if value})


def combine(first: Monomial, second: Monomial, sign: int = 1) -> Monomial:
    """Multiply two monomials, or divide by the second where the sign is -1."""
    powers = dict(first)
    for name, power in second:
        powers[name] = powers.get(name, 0) + sign * power
    kept = [(name, power) for name, power in powers.items() if power]
    return tuple(sorted(kept, key=lambda each: (type(each[0]).__name__, str(each[0]))))


def polynomial(node: tree.Node) -> Polynomial | None:
    """Return a number expression as a polynomial in its columns."""
    match node:
        case tree.Constant(value):
            return _constant(Fraction(repr(value)))
        case tree.Aggregate(value=float(value)):
            return _constant(Fraction(repr(value)))
        case tree.ColumnRef(name):
            return Polynomial({((name, 1),): Fraction(1)})
        case tree.Negative(operand):
            inner = polynomial(operand)
            return None if inner is None else Polynomial({}).plus(inner, -1)
        case tree.Function(function, operands):
            parts = [polynomial(each) for each in operands]
            values = [part.constant for part in parts if part is not None and not part.degree]
            if len(values) < len(parts):
                return None
            if function == "abs":
                return _constant(abs(values[0]))
            return _constant(min(values) if function == "min" else max(values))
        case tree.Sum(terms, signs):
            found = [polynomial(term) for term in terms]
            summands = [(sign, part.terms) for sign, part in zip(signs, found) if part is not None]
            if len(summands) < len(terms):
                return None
            return _collect(
                (m, sign * value) for sign, part in summands for m, value in part.items()
            )
        case tree.Arithmetic(operator, left, right):
            first, second = polynomial(left), polynomial(right)
            if first is None or second is None:
                return None
            return _calculate(operator, first, second)
    return None


def _constant(value: Fraction) -> Polynomial:
    return Polynomial({(): value} if value else {})


def _calculate(operator: str, first: Polynomial, second: Polynomial) -> Polynomial | None:
    if operator == "*":
        return first.times(second)
    if operator == "/":
        if second.degree or not second.constant:
            return None
        return first.times(_constant(1 / second.constant))
    power = int(second.constant)
    if power != second.constant or first.degree * power > LARGEST_DEGREE:
        return None
    result: Polynomial | None = _constant(Fraction(1))
    for _ in range(power):
        result = None if result is None else result.times(first)
    return result


def constant(node: tree.Node) -> float | None:
    """Return the value of an expression without columns, or None; infinite where it overflows."""
    found = None if tree.columns_of(node) else polynomial(node)
    try:
        return None if found is None else float(found.constant)
    except OverflowError:
        return math.inf


def product(node: tree.Node) -> Product | None:
    """Return a number expression as a product of factors `column + offset`."""
    match node:
        case tree.Negative(operand):
            inner = product(operand)
            return None if inner is None else Product(-inner.scale, inner.powers)
        case tree.Arithmetic("*" | "/" as operator, left, right):
            first, second = product(left), product(right)
            if first is None or second is None:
                return None
            return first.times(second, 1 if operator == "*" else -1)
        case tree.Arithmetic("**", left, tree.Constant(power)):
            inner = product(left)
            if (
                inner is None
                or sum(abs(float(p)) for p in inner.powers.values()) * power > LARGEST_DEGREE
            ):
                return None
            whole = int(power) if int(power) == power else None
            if whole is None and (inner.scale <= 0 or list(inner.powers.values()) not in ([], [1])):
                return None  # the root of x * x is x only where x is not negative
            powers = {f: each * (whole or as_fraction(power)) for f, each in inner.powers.items()}
            scale = inner.scale**whole if whole else as_fraction(float(inner.scale) ** power)
            return Product(scale, powers)
    sum_ = polynomial(node)
    if sum_ is None or sum_.degree > 1 or len(sum_.coefficients) > 1:
        return None
    if not sum_.coefficients:
        return Product(sum_.constant, {})
    ((name, coefficient),) = sum_.coefficients.items()
    return Product(coefficient, {(name, sum_.constant / coefficient): 1})


def as_product_equality(difference: Polynomial) -> Product | None:
    """Rewrite polynomial == 0 as product == scale, where two or three terms allow it.

    a * b - c == 0 is a * b / c == 1, and p + p * v - r == 0 is p * (v + 1) / r == 1.
    """
    terms = list(difference.terms.items())
    if len(terms) == 2:
        (first, a), (second, b) = terms
        return Product(-b / a, {(n, Fraction(0)): p for n, p in combine(first, second, -1)})
    if len(terms) != 3:
        return None
    for at, (rest, c) in enumerate(terms):
        pair = [each for place, each in enumerate(terms) if place != at]
        for (first, a), (second, b) in (pair, pair[::-1]):
            extra = combine(first, second, -1)
            if len(extra) == 1 and extra[0][1] == 1:
                # a·m·x + b·m = a·m·(x + b/a), and this is -c·rest.
                powers = {(n, Fraction(0)): p for n, p in combine(second, rest, -1)}
                if not powers:
                    continue
                factor = (extra[0][0], b / a)
                return Product(-c / a, {**powers, factor: 1})
    return None


def forms_of(node: tree.Node) -> tuple[forms.Form, ...]:
    """Take a truth apart into forms that must all hold."""
    if (unit := tree.unit_of(node)) is not None:
        return (forms.AcrossMembers(tree.columns_of(node), unit, tree.write(node)),)
    if any(isinstance(each, tree.Aggregate) and each.value is None for each in tree.walk(node)):
        # Any value shows the shape; this one cancels against nothing that people write.
        def fix(each: tree.Node) -> tree.Node:
            if isinstance(each, tree.Aggregate):
                return replace(each, value=0.7390851332151607)
            return each

        shapes = {form.kind for form in forms_of(tree.transform(node, fix))}
        shape = shapes.pop() if len(shapes) == 1 else "several"
        return (forms.Unfixed(tree.columns_of(node), shape, tree.write(node)),)
    return _tidy(_forms(tree.positive(node)))


def _tidy(found: Iterable[forms.Form]) -> tuple[forms.Form, ...]:
    """Join the intervals of each column; leave out repetitions and what is always true."""
    tidy: dict[object, forms.Form] = {}
    for form in found:
        if isinstance(form, forms.Interval):
            known = tidy.get(("interval", form.column))
            form = form.meet(known) if isinstance(known, forms.Interval) else form
            tidy["interval", form.column] = form
        else:
            tidy[repr(form)] = form
    kept = [form for form in tidy.values() if form != forms.Always(True)]
    return tuple(kept) or (forms.Always(True),)


def _forms(node: tree.Node) -> Iterator[forms.Form]:
    match node:
        case tree.And(operands):
            for each in operands:
                yield from _forms(each)
        case tree.Or(operands):
            yield forms.Either(tuple(_tidy(_forms(each)) for each in operands))
        case tree.Compare():
            for left, operator, right in node.pairs:
                yield from _compared(left, operator, right)
        case tree.Member((tree.ColumnRef(name),), tree.Literals(rows), inside):
            yield forms.Members(name, tuple(row[0] for row in rows), inside)
        case tree.Member(operands, among, inside) if len(tree.looked_up(node)) == len(operands):
            path = among.path if isinstance(among, tree.Lookup) else None
            yield forms.Tuples(tree.looked_up(node), among.rows, inside, path)
        case tree.Missing(column, missing):
            yield forms.Missingness(column, missing)
        case tree.Observed(columns, _, inside):
            yield forms.ObservedValues(columns, inside)
        case tree.ColumnRef(name):
            yield forms.YesNo(name)
        case tree.Not(tree.ColumnRef(name)):
            yield forms.YesNo(name, False)
        case _:
            yield forms.General(tree.columns_of(node), tree.write(node))


def _compared(left: tree.Node, operator: tree.Operator, right: tree.Node) -> Iterator[forms.Form]:
    if isinstance(left, tree.Text | tree.Flag):
        left, operator, right = right, tree.MIRROR[operator], left
    if operator in (">", ">="):
        left, operator, right = right, tree.MIRROR[operator], left
    match left, operator, right:
        case tree.ColumnRef(name), "==" | "!=", tree.Flag(value):
            yield forms.YesNo(name, value is (operator == "=="))
        case tree.ColumnRef(name), "==" | "!=", tree.Text(value):
            yield forms.Members(name, (value,), operator == "==")
        # What a largest value stays below, each value stays below; so too for abs and min.
        case tree.Function("max" | "abs" as function, operands), "<" | "<=", _:
            opposites = map(tree.Negative, operands) if function == "abs" else ()
            for each in (*operands, *opposites):
                yield from _compared(each, operator, right)
        case _, "<" | "<=", tree.Function("min", operands):
            for each in operands:
                yield from _compared(left, operator, each)
        case _:
            yield _shape(left, operator, right)


def _shape(left: tree.Node, operator: tree.Operator, right: tree.Node) -> forms.Form:
    text = tree.Compare((left, right), (operator,))
    general = forms.General(tree.columns_of(text), tree.write(text))
    first, second = polynomial(left), polynomial(right)
    difference = None if first is None or second is None else first.plus(second, -1)
    try:
        if difference is not None and difference.degree <= 1:
            return _affine(difference, operator) or general
        return _product(left, operator, right, difference) or general
    except OverflowError:  # a coefficient beyond the floats
        return general


def _affine(difference: Polynomial, operator: tree.Operator) -> forms.Form | None:
    coefficients, bound = difference.coefficients, -difference.constant
    if not coefficients:
        return forms.Always(tree.HOLDS[operator](0, bound))
    if len(coefficients) == 1:
        ((name, coefficient),) = coefficients.items()
        return _interval(name, operator, bound / coefficient, coefficient < 0)
    if operator == "!=":
        return None
    values = {name: float(value) for name, value in coefficients.items()}
    if operator != "==" and not bound and sorted(values.values()) == [-1.0, 1.0]:
        upper, lower = sorted(values, key=lambda name: values[name])
        return forms.Governing(lower, upper, operator == "<")
    return forms.Linear(values, operator, float(bound))


def _interval(name: Name, operator: tree.Operator, bound: Fraction, flipped: bool) -> forms.Form:
    value = float(bound)
    if operator == "!=":
        return forms.Members(name, (int(value) if value.is_integer() else value,), False)
    if operator == "==":
        return forms.Interval(name, value, value)
    is_open = operator == "<"
    if flipped:
        return forms.Interval(name, low=value, open_low=is_open)
    return forms.Interval(name, high=value, open_high=is_open)


def _product(
    left: tree.Node, operator: tree.Operator, right: tree.Node, difference: Polynomial | None
) -> forms.Form | None:
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
    factors = tuple(
        forms.Factor(n, int(p) if p == int(p) else float(p), float(offset))
        for (n, offset), p in quotient.powers.items()
    )
    return forms.Multiplicative(factors, operator, float(quotient.scale))
