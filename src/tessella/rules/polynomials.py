"""Number expressions as polynomials and as products, with exact coefficients.

Coefficients are fractions of the decimals that were written, so that 0.1 * x + 0.2 * x is exactly
0.3 * x. An expression that is no polynomial of moderate size, or no product of simple factors,
gives None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from .._types import Name
from .expressions import (
    Aggregate,
    Arithmetic,
    ColumnRef,
    Constant,
    Function,
    Negative,
    Node,
    Sum,
    columns_of,
)

__all__ = ["Polynomial", "Product", "constant", "polynomial", "product"]

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
        terms = dict(self.terms)
        for term, value in other.terms.items():
            terms[term] = terms.get(term, Fraction(0)) + factor * value
        return Polynomial({term: value for term, value in terms.items() if value})

    def times(self, other: Polynomial) -> Polynomial | None:
        """Multiply, unless the result grows too large."""
        if self.degree + other.degree > LARGEST_DEGREE:
            return None
        if len(self.terms) * len(other.terms) > MOST_TERMS:
            return None
        terms: dict[Monomial, Fraction] = {}
        for first, a in self.terms.items():
            for second, b in other.terms.items():
                term = combine(first, second)
                terms[term] = terms.get(term, Fraction(0)) + a * b
        return Polynomial({term: value for term, value in terms.items() if value})


@dataclass(frozen=True)
class Product:
    """scale times the product of (column + offset) ** power; no power is zero."""

    scale: Fraction
    powers: Mapping[tuple[Name, Fraction], int]

    def times(self, other: Product, sign: int = 1) -> Product | None:
        """Multiply with another product, or divide by it where the sign is -1."""
        if sign < 0 and not other.scale:
            return None
        powers = dict(self.powers)
        for factor, power in other.powers.items():
            powers[factor] = powers.get(factor, 0) + sign * power
        scale = self.scale * other.scale if sign > 0 else self.scale / other.scale
        return Product(scale, {factor: power for factor, power in powers.items() if power})


def combine(first: Monomial, second: Monomial, sign: int = 1) -> Monomial:
    """Multiply two monomials, or divide by the second where the sign is -1."""
    powers = dict(first)
    for name, power in second:
        powers[name] = powers.get(name, 0) + sign * power
    kept = [(name, power) for name, power in powers.items() if power]
    return tuple(sorted(kept, key=lambda each: (type(each[0]).__name__, str(each[0]))))


def polynomial(node: Node) -> Polynomial | None:
    """Return a number expression as a polynomial in its columns."""
    match node:
        case Constant(value):
            return _constant(Fraction(repr(value)))
        case Aggregate(value=float(value)):
            return _constant(Fraction(value))
        case ColumnRef(name):
            return Polynomial({((name, 1),): Fraction(1)})
        case Negative(operand):
            inner = polynomial(operand)
            return None if inner is None else Polynomial({}).plus(inner, -1)
        case Function(function, operands):
            parts = [polynomial(each) for each in operands]
            values = [part.constant for part in parts if part is not None and not part.degree]
            if len(values) < len(parts):
                return None
            if function == "abs":
                return _constant(abs(values[0]))
            return _constant(min(values) if function == "min" else max(values))
        case Sum(terms, signs):
            total: dict[Monomial, Fraction] = {}
            for sign, term in zip(signs, terms, strict=True):
                part = polynomial(term)
                if part is None:
                    return None
                for monomial, factor in part.terms.items():
                    total[monomial] = total.get(monomial, Fraction(0)) + sign * factor
            return Polynomial({monomial: factor for monomial, factor in total.items() if factor})
        case Arithmetic(operator, left, right):
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
    if first.degree * power > LARGEST_DEGREE:
        return None
    result: Polynomial | None = _constant(Fraction(1))
    for _ in range(power):
        result = None if result is None else result.times(first)
    return result


def constant(node: Node) -> float | None:
    """Return the value of an expression without columns, or None; infinite where it overflows."""
    found = None if columns_of(node) else polynomial(node)
    try:
        return None if found is None else float(found.constant)
    except OverflowError:
        return math.inf


def product(node: Node) -> Product | None:
    """Return a number expression as a product of factors `column + offset`."""
    match node:
        case Negative(operand):
            inner = product(operand)
            return None if inner is None else Product(-inner.scale, inner.powers)
        case Arithmetic("*" | "/" as operator, left, right):
            first, second = product(left), product(right)
            if first is None or second is None:
                return None
            return first.times(second, 1 if operator == "*" else -1)
        case Arithmetic("**", left, Constant(power)):
            inner = product(left)
            if inner is None or sum(map(abs, inner.powers.values())) * power > LARGEST_DEGREE:
                return None
            powers = {factor: each * int(power) for factor, each in inner.powers.items()}
            return Product(inner.scale ** int(power), powers)
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
