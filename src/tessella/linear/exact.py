"""Exact proofs that linear rows have no solution.

Rows a_i v == b_i, a_i v <= b_i, a_i v < b_i have none if and only if there are weights y, y_i >= 0
on inequalities, with sum_i y_i a_i = 0 and y b < 0, or y b = 0 and y_i > 0 on a strict row (Farkas;
Motzkin for strict rows). A linear program in floats proposes the rows; their weights are then
computed and checked in fractions. What is not proved so is not claimed, whatever the floats say.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .._types import Floats
from .rows import Row, as_fraction, equilibrate, least_sum

STRICT = 1e-5  # what a strict row is taken to be off, on balanced scales, to propose its weight


def refutation(rows: Sequence[Row]) -> list[int]:
    """Return the places of rows that no numbers obey together, least and proved, or none.

    Coefficients are the fractions that their doubles stand for: see `as_fraction`.
    """
    found = _proved(rows, list(range(len(rows))))
    # The deletion filter; from the last, so that of rows that say the same the first are named.
    for place in reversed(found):
        if place in found:
            found = _proved(rows, [other for other in found if other != place]) or found
    return found


def _proved(rows: Sequence[Row], among: list[int]) -> list[int]:
    """Return the places of the rows of one proof among some rows, or none."""
    own = [rows[place] for place in among]
    columns = list(dict.fromkeys(name for row in own for name in row.coefficients))
    matrix = np.array([row.dense(columns) for row in own], dtype=np.float64)
    right = np.array([row.right for row in own], dtype=np.float64)
    if not columns or not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return []
    M, by_row, _ = equilibrate(matrix)
    c = right * by_row
    c /= np.abs(c).max() or 1.0
    free = np.array([row.equal for row in own])
    strict = np.array([row.strict for row in own], dtype=np.float64)
    slack = np.vstack([np.column_stack([M, c]), np.eye(M.shape[1] + 1)[-1:]])
    # Both ways of a proof at once; where their rows mix in no proof, each way on its own: the least
    # y b, and the most weight on strict rows with y b + s = 0, s >= 0.
    tries = ((M, c - STRICT * strict), (M, c), (slack, np.append(-strict, 0.0)))
    for attempt, (matrix, cost) in enumerate(tries):
        kind = np.append(free, False)[: len(cost)]
        weights = least_sum(matrix, cost, kind)[: len(own)]
        chosen = np.flatnonzero(np.abs(weights) > 1e-7 * np.abs(weights).max())
        if not len(chosen) and not attempt:
            return []
        if len(chosen) and _is_proof([own[i] for i in chosen], weights[chosen]):
            return [among[i] for i in chosen]
    return []


def _is_proof(rows: Sequence[Row], guess: Floats) -> bool:
    """Return whether weights near to some guess prove, in fractions, that rows have no solution."""
    weights = _null_vector(
        [[as_fraction(row.coefficients.get(name, 0)) for row in rows]
         for name in {name for row in rows for name in row.coefficients}],
        [Fraction(float(y / np.abs(guess).max())).limit_denominator(10**6) for y in guess],
    )  # fmt: skip
    total = sum((y * as_fraction(row.right) for y, row in zip(weights, rows)), Fraction(0))
    if any(y < 0 for y, row in zip(weights, rows) if not row.equal):
        return False
    if all(row.equal or not y for y, row in zip(weights, rows)):
        return total != 0
    return total < 0 or (not total and any(y and row.strict for y, row in zip(weights, rows)))


def _null_vector(matrix: list[list[Fraction]], guess: list[Fraction]) -> list[Fraction]:
    """Return y with matrix @ y = 0, equal to the guess wherever it can be chosen."""
    pivots: list[int] = []
    for j in range(len(guess)):
        at = next((i for i in range(len(pivots), len(matrix)) if matrix[i][j]), None)
        if at is None:
            continue
        top = len(pivots)
        matrix[top], matrix[at] = matrix[at], matrix[top]
        matrix[top] = [value / matrix[top][j] for value in matrix[top]]
        for i in range(len(matrix)):
            if i != top and matrix[i][j]:
                factor = matrix[i][j]
                matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[top])]
        pivots.append(j)
    y = [Fraction(0) if j in pivots else value for j, value in enumerate(guess)]
    for i, j in enumerate(pivots):
        y[j] = -sum((a * b for a, b in zip(matrix[i], y)), Fraction(0))
    return y
