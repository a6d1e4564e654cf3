"""Linear algebra modulo a prime: exact, and numbers do not grow."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from ..._types import Integers

PRIME = 2**31 - 1  # products of two numbers below it fit in 63 bits
SIMPLEST = 10_000  # of a == p/q * b, the largest p and q


def null_vectors(matrix: Integers) -> Iterator[Integers]:
    """Yield a basis of the vectors that are orthogonal to all rows, modulo the prime.

    Gauss-Jordan elimination: each column without a pivot gives the one vector that expresses it by
    the pivot columns before it.
    """
    rows = matrix % PRIME
    pivots: list[int] = []
    for column in range(rows.shape[1]):
        at = len(pivots)
        if at == len(rows):
            break
        below = np.flatnonzero(rows[at:, column])
        if not len(below):
            continue
        pivot = at + int(below[0])
        rows[[at, pivot]] = rows[[pivot, at]]
        rows[at] = rows[at] * pow(int(rows[at, column]), -1, PRIME) % PRIME
        factors = rows[:, column].copy()
        factors[at] = 0
        rows = (rows - factors[:, None] * rows[at] % PRIME) % PRIME
        pivots.append(column)
    for column in range(rows.shape[1]):
        if column not in pivots:
            vector = np.zeros(rows.shape[1], dtype=np.int64)
            vector[column] = 1
            vector[pivots] = -rows[: len(pivots), column] % PRIME
            yield vector


def small_fraction(residue: int) -> Fraction | None:
    """Return p/q with p and q up to 10,000 that is a residue modulo the prime, if there is one.

    By continued fractions of residue / prime (Wang 1981); unique, as 2 * 10,000**2 is below the
    prime.
    """
    first, second = (PRIME, 0), (residue % PRIME, 1)
    while second[0] > SIMPLEST:
        quotient = first[0] // second[0]
        first, second = second, (first[0] - quotient * second[0], first[1] - quotient * second[1])
    p, q = second
    if q == 0 or abs(q) > SIMPLEST or p == 0:
        return None
    return Fraction(p, q)
