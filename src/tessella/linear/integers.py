"""Exact arithmetic about whole solutions: fractions, whole rows, and lattices.

Everything here is done once for a system, in Python's own integers: no rounding, no overflow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .._types import Floats

__all__ = ["Lattice", "as_fraction", "reduced_basis", "whole_row", "without_columns"]


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
