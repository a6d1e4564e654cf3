"""What rounding needs to know about a system, exactly: rows in fractions, components, lattices.

Rows about one column are *bounds*. The other rows join columns; columns that are joined, directly
or through others, make a *component*. Components are rounded one by one, at no loss: a distance is
a sum over columns. Everything here is done once for a system, in Python's own integers: no
rounding, no overflow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .._types import Floats, Truths
from ..exceptions import BadOptionError, NoWholeSolutionError
from .rows import Row
from .system import LinearSystem

__all__ = [
    "LARGEST",
    "Component",
    "Lattice",
    "as_fraction",
    "components",
    "exact_rows",
    "reduced_basis",
    "whole_bounds",
    "whole_row",
    "whole_solutions",
    "without_columns",
]


def as_fraction(x: float) -> Fraction:
    """Return the fraction that a number stands for.

    The simplest fraction with a denominator up to a million that is the same double, so 1.16 is
    29/25 and 1/3 is a third; otherwise the shortest decimal that is the same double.

    Examples
    --------
    >>> from tessella.linear.integers import as_fraction
    >>> as_fraction(1.16), as_fraction(1 / 3)
    (Fraction(29, 25), Fraction(1, 3))
    """
    number = float(x)
    simple = Fraction(number).limit_denominator(1_000_000)
    return simple if float(simple) == number else Fraction(repr(number))


def whole_row(coefficients: Sequence[Fraction], right: Fraction) -> tuple[list[int], Fraction]:
    """Multiply a row so that its coefficients are whole and without a common factor."""
    common = math.lcm(*(a.denominator for a in coefficients))
    whole = [int(a * common) for a in coefficients]
    factor = math.gcd(*whole) or 1
    return [a // factor for a in whole], right * common / factor


def without_columns(
    rows: list[tuple[list[Fraction], Fraction]], columns: Sequence[int]
) -> list[tuple[list[Fraction], Fraction]]:
    """Combine equations so that some columns vanish: all that they say about the others."""
    left = [(list(a), right) for a, right in rows]
    for column in columns:
        pivot = next((i for i, (a, _) in enumerate(left) if a[column] != 0), None)
        if pivot is None:
            continue
        chosen, right = left.pop(pivot)
        for i, (a, b) in enumerate(left):
            if a[column] != 0:
                ratio = a[column] / chosen[column]
                left[i] = ([x - ratio * y for x, y in zip(a, chosen)], b - ratio * right)
    return left


class Lattice:
    """All whole solutions of whole equations: y = base + basis @ t, t whole.

    Notes
    -----
    Unimodular operations on columns bring the matrix into a lower triangular form, row after row;
    the columns that become zero are a basis of the whole null space. A row without a whole quotient
    proves that there is no whole solution: `solvable` is False then.

    Examples
    --------
    >>> from tessella.linear.integers import Lattice
    >>> lattice = Lattice([[2, 3]], [1], 2)
    >>> lattice.base[0] * 2 + lattice.base[1] * 3, len(lattice.basis)
    (1, 1)
    >>> Lattice([[2, -2]], [1], 2).solvable
    False
    """

    def __init__(self, rows: list[list[int]], right: list[int], d: int) -> None:
        # Columns of the identity, carried along with the columns of the matrix.
        columns = [[int(i == j) for i in range(d)] for j in range(d)]
        self.base = [0] * d
        self.solvable = True
        for row, b in zip(rows, right):
            values = [sum(a * x for a, x in zip(row, column)) for column in columns]
            # Euclid's algorithm on all columns at once: reduce by the smallest until one is left.
            # The quotients are rounded to the nearest, not down, which keeps remainders below half
            # of the divisor and the entries of the basis small.
            while sum(value != 0 for value in values) > 1:
                least = min(
                    (j for j in range(len(values)) if values[j]), key=lambda j: abs(values[j])
                )
                for j in range(len(values)):
                    if j != least and values[j]:
                        times = _nearest_quotient(values[j], values[least])
                        values[j] -= times * values[least]
                        columns[j] = [x - times * y for x, y in zip(columns[j], columns[least])]
            lacks = b - sum(a * x for a, x in zip(row, self.base))
            # Only one column still changes this row: it alone meets the right-hand side, and is
            # spent then. Invariant: base keeps all rows so far; no column left changes them.
            place = next((j for j, value in enumerate(values) if value), None)
            if place is None:
                self.solvable &= lacks == 0
                continue
            times, rest = divmod(lacks, values[place])
            self.solvable &= rest == 0
            self.base = [x + times * y for x, y in zip(self.base, columns[place])]
            del columns[place]
        self.basis = columns


def _nearest_quotient(a: int, b: int) -> int:
    return (2 * a + b) // (2 * b)


def reduced_basis(basis: list[list[int]], root: Floats) -> list[list[int]]:
    """Shorten a lattice basis in the metric |root @ y| (Lenstra, Lenstra and Lovász 1982)."""
    # Invariant: vectors[:k] is reduced (projections on earlier ones at most 1/2; no orthogonal part
    # much shorter than the one before, factor 0.99: near 1 gives shorter vectors, 1 may not end).
    # A short basis is what makes the enumeration of `by_lattice` narrow. Vectors are whole numbers
    # of any size; only the decisions are taken in floats, so that rounding costs length, not truth.
    vectors = [list(vector) for vector in basis]
    k = 1
    for _ in range(1000 * (len(vectors) + 1)):
        if k >= len(vectors):
            break
        for j in range(k - 1, -1, -1):
            _, along = _gram_schmidt(vectors[: k + 1], root)
            times = round(along[k, j])
            if times:
                vectors[k] = [x - times * y for x, y in zip(vectors[k], vectors[j])]
        lengths, along = _gram_schmidt(vectors[: k + 1], root)
        if lengths[k] >= (0.99 - along[k, k - 1] ** 2) * lengths[k - 1]:
            k += 1
        else:
            vectors[k], vectors[k - 1] = vectors[k - 1], vectors[k]
            k = max(k - 1, 1)
    return vectors


def _gram_schmidt(vectors: list[list[int]], root: Floats) -> tuple[Floats, Floats]:
    """Squared lengths of the orthogonal parts, and the coefficients."""
    points = np.array([[float(x) for x in vector] for vector in vectors]) @ root.T
    count = len(points)
    along, parts = np.zeros((count, count)), points.copy()
    for i in range(count):
        for j in range(i):
            along[i, j] = points[i] @ parts[j] / (parts[j] @ parts[j])
            parts[i] -= along[i, j] * parts[j]
    return (parts**2).sum(axis=1), along


LARGEST = 2**53  # whole numbers beyond are not all doubles


@dataclass(frozen=True, kw_only=True)
class Component:
    """Columns joined by rows: whole ones and real ones."""

    whole: tuple[int, ...]
    real: tuple[int, ...]
    rows: tuple[Row, ...]  # that join them
    bounds: tuple[Row, ...]  # about one of them


def exact_rows(system: LinearSystem, whole: Truths) -> list[Row]:
    """Read the rows in fractions, and those between whole columns in whole numbers.

    Whole numbers that obey a v <= h with whole a also obey a v <= floor(h); where a v = b has a
    right-hand side that is not whole, there is no solution.
    """
    both = [(system.A, system.b, True), (system.G, system.h, False)]
    given = [(a, r, equal) for M, right, equal in both for a, r in zip(M, right)]
    rows = []
    for place, (a, r, equal) in enumerate(given):
        places = np.flatnonzero(a).tolist()
        if not places:
            continue
        name, right = system.names[place], as_fraction(r)
        values = [as_fraction(a[j]) for j in places]
        if whole[places].all():
            numbers, right = whole_row(values, right)
            if equal and right.denominator != 1:
                raise NoWholeSolutionError([name])
            right = right if equal else Fraction(math.floor(right))
            if any(abs(number) >= LARGEST for number in (int(right), *numbers)):
                raise BadOptionError(
                    "system", name, "coefficients with fewer digits: between whole numbers, these "
                    f"mean whole coefficients beyond {LARGEST}"
                )  # fmt: skip
            values = [Fraction(number) for number in numbers]
        rows.append(Row(name, dict(zip(places, values)), "==" if equal else "<=", right, place))
    return rows


def whole_bounds(
    rows: list[Row], whole: Truths, low: Floats, high: Floats, columns: Sequence[object]
) -> tuple[Floats, Floats]:
    """Join given bounds (n x d) with the rows about one column; whole columns get whole bounds."""
    low, high = low.copy(), high.copy()
    low[:, whole], high[:, whole] = np.ceil(low[:, whole]), np.floor(high[:, whole])
    names: dict[int, list[str]] = {}
    for row in rows:
        if _joins(row):
            continue
        ((j, a),) = row.coefficients.items()
        bound = row.right / a
        names.setdefault(j, []).append(row.name)
        if row.equal or a > 0:
            upper = math.floor(bound) if whole[j] else float(bound)
            high[:, j] = np.minimum(high[:, j], upper)
        if row.equal or a < 0:
            lower = math.ceil(bound) if whole[j] else float(bound)
            low[:, j] = np.maximum(low[:, j], lower)
    crossed = low > high
    if crossed.any():
        i, j = np.argwhere(crossed)[0].tolist()
        raise NoWholeSolutionError([*names.get(j, []), f"low and high of {columns[j]!r}"], record=i)
    return low, high


def components(rows: list[Row], whole: Truths) -> list[Component]:
    """Split the columns into components; a column without rows is one of its own."""
    d = len(whole)
    joined = list(range(d))

    def root(j: int) -> int:
        while joined[j] != j:
            j = joined[j]
        return j

    for row in rows:
        for j in row.coefficients:
            joined[root(j)] = root(_first(row))
    groups: dict[int, list[int]] = {}
    for j in range(d):
        groups.setdefault(root(j), []).append(j)
    return [
        Component(
            whole=tuple(j for j in columns if whole[j]),
            real=tuple(j for j in columns if not whole[j]),
            rows=tuple(row for row in rows if _joins(row) and root(_first(row)) == label),
            bounds=tuple(row for row in rows if not _joins(row) and root(_first(row)) == label),
        )
        for label, columns in groups.items()
    ]


def _joins(row: Row) -> bool:
    return len(row.coefficients) > 1


def _first(row: Row) -> int:
    first: int = next(iter(row.coefficients))
    return first


def whole_solutions(rows: Sequence[Row], whole: Sequence[int], real: Sequence[int]) -> Lattice:
    """All whole values of the whole columns for which equations can hold, by real ones' help.

    Raises NoWholeSolutionError, naming a least set of rows, where there are none.
    """
    equal = [row for row in rows if row.equal]
    lattice = _lattice(equal, whole, real)
    if lattice.solvable:
        return lattice
    for row in list(equal):
        fewer = [other for other in equal if other is not row]
        if not _lattice(fewer, whole, real).solvable:
            equal = fewer
    raise NoWholeSolutionError([row.name for row in equal])


def _lattice(rows: Sequence[Row], whole: Sequence[int], real: Sequence[int]) -> Lattice:
    columns = [*whole, *real]
    dense = [(row.dense(columns), row.right) for row in rows]
    left = without_columns(dense, range(len(whole), len(columns)))
    pairs = [whole_row(a[: len(whole)], right) for a, right in left]
    # 0 = 0 up to the digits of the coefficients: `LinearSystem.check` has judged such rows.
    pairs = [(a, right) for a, right in pairs if any(a)]
    if any(right.denominator != 1 for _, right in pairs):
        return Lattice([[0] * len(whole)], [1], len(whole))  # 0 = 1: without a solution
    return Lattice([a for a, _ in pairs], [int(right) for _, right in pairs], len(whole))
