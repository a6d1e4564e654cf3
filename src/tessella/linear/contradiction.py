"""Rows that exclude each other, and rows that say nothing new: found, and proved, by name.

A system A v = b, G v <= h has no solution if and only if its rows can be combined, inequalities
with weights >= 0, to 0 <= something negative (Farkas). The weights are the proof; the rows with a
weight are the ones to name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Truths
from ..exceptions import BrokenPromiseError
from .scaling import dependence, equilibrate

__all__ = ["Implied", "contradicting_rows", "implied_rows"]


# Right-hand sides that disagree by less than this share of their size agree.
TOLERANCE = 1e-9
HIGHS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, kw_only=True)
class Implied:
    """A row that every record obeys which obeys certain others."""

    row: str
    because: tuple[str, ...]  # none: the row is true of all numbers

    def __str__(self) -> str:
        if not self.because:
            return f"{self.row!r} is always true"
        return f"{self.row!r} follows from {', '.join(repr(name) for name in self.because)}"


def contradicting_rows(A: Floats, b: Floats, G: Floats, h: Floats, sizes: Floats) -> list[int]:
    """Return the places of a least set of rows without a solution, or none.

    Places count the equalities first. Least: without any one of them, the others have a solution.
    `sizes` has for each row the size of what its right-hand side was computed from.

    References
    ----------
    J. W. Chinneck (2008), "Feasibility and infeasibility in optimization", Springer: the deletion
    filter. J. Gleeson, J. Ryan (1990), "Identifying minimally infeasible subsystems of
    inequalities", ORSA Journal on Computing 2.
    """
    m = len(b)
    for i in range(m):
        if not A[i].any() and abs(b[i]) > 1e-12 * sizes[i]:
            return [i]
    for i in range(len(h)):
        if not G[i].any() and h[i] < -1e-12 * sizes[m + i]:
            return [m + i]
    # With independent rows kept in order, a dependent row and those it is made of are a circuit:
    # any part of it is independent, hence has a solution.
    for i, coefficients in dependence(A)[1].items():
        size = np.abs(coefficients) @ sizes[:m] + sizes[i]
        if abs(coefficients @ b - b[i]) > TOLERANCE * size:
            return [*np.flatnonzero(coefficients).tolist(), i]
    if len(h) == 0:
        return []
    stack, right = np.vstack([A, G]), np.concatenate([b, h])
    kind = np.arange(len(right)) < m
    rows = _proof(stack, right, sizes, kind, list(range(len(right))))
    # The deletion filter: a row that is not needed for some proof goes for good. What remains is
    # irreducible, because each of its rows was needed when it was tried, among no more rows.
    for row in list(rows):
        fewer = _proof(stack, right, sizes, kind, [other for other in rows if other != row])
        if fewer:
            rows = fewer
    return sorted(rows)


def _proof(
    stack: Floats, right: Floats, sizes: Floats, kind: Truths, among: list[int]
) -> list[int]:
    """Rows of a Farkas proof among some rows, or none where they have a solution."""
    if not among:
        return []
    balanced, by_row, by_column = equilibrate(np.column_stack([stack[among], right[among]]))
    M, c, free = balanced[:, :-1], balanced[:, -1], kind[among]
    reach = sizes[among] * by_row * by_column[-1]
    weights = _least_sum(M, c, free)
    size = np.abs(weights) @ reach
    if not -(weights @ c) > TOLERANCE * size:
        return []
    support = np.abs(weights) > 1e-7 * np.abs(weights).max()
    chosen = np.flatnonzero(support)
    # Rounding in the solver must not make a proof: recompute the weights from the rows alone.
    # A vertex has rows of rank one below their number, hence one direction of weights.
    exact = np.linalg.svd(M[chosen].T)[2][-1]
    exact = exact if exact @ weights[chosen] > 0 else -exact
    gap, size = -(exact @ c[chosen]), np.abs(exact) @ reach[chosen]
    straight = np.abs(exact @ M[chosen]).max(initial=0.0) <= 1e-12 * np.abs(exact).sum()
    if straight and gap > TOLERANCE * size and (free[chosen] | (exact > 0)).all():
        return [among[i] for i in chosen]
    off = np.abs(weights @ M).max(initial=0.0)
    if -(weights @ c) > max(1e3 * off, 1e-6 * size):  # not a vertex, yet far beyond rounding
        return [among[i] for i in chosen]
    return []


def _least_sum(M: Floats, c: Floats, free: Truths) -> Floats:
    """Weights y with y M = 0, sum |y| <= 1, y >= 0 unless free, that make y c least."""
    twice = np.flatnonzero(free)  # a free weight is the difference of two
    wide = np.vstack([M, -M[twice]])
    cost = np.concatenate([c, -c[twice]])
    found = _linprog(
        cost,
        A_eq=wide.T,
        b_eq=np.zeros(M.shape[1]),
        A_ub=np.ones((1, len(cost))),
        b_ub=np.ones(1),
        bounds=(0, None),
    )
    weights: Floats = found.x[: len(c)].copy()
    weights[twice] -= found.x[len(c) :]
    return weights


def _linprog(cost: Floats, **problem: Any) -> Any:
    from scipy.optimize import linprog  # takes a quarter of a second to load

    found = linprog(cost, method="highs", options=HIGHS, **problem)
    if found.status != 0:  # tightest tolerances may be out of reach
        found = linprog(cost, method="highs", **problem)
    if found.status != 0:
        raise BrokenPromiseError(
            f"The linear program behind a check of rules was not solved ({found.message}); "
            "no verdict is given. This is a bug in tessella: please report it with the rules."
        )
    return found


def implied_rows(A: Floats, b: Floats, G: Floats, h: Floats, sizes: Floats) -> dict[int, list[int]]:
    """For each row that follows from others, the rows it follows from.

    Of rows that follow from each other, the first are kept: no reason is itself left out. The
    system must have a solution.
    """
    m = len(b)
    stack, right = np.vstack([A, G]), np.concatenate([b, h])
    implied: dict[int, list[int]] = {
        i: np.flatnonzero(coefficients).tolist() for i, coefficients in dependence(A)[1].items()
    }
    for i in range(m, len(right)):
        if not stack[i].any():
            implied[i] = []
    if len(h) == 0:
        return implied
    # From the last to the first, so that of two equal rows the first stays.
    for i in [*reversed(range(m, len(right))), *reversed(range(m))]:
        if i not in implied:
            others = [j for j in range(len(right)) if j != i and j not in implied]
            reasons = _reasons(stack, right, sizes, m, i, others)
            if reasons is not None:
                implied[i] = reasons
    # A reason found early may have been left out later: what is kept implies the rest.
    kept = [j for j in range(len(right)) if j not in implied]
    for i, reasons in implied.items():
        if not set(reasons) <= set(kept):
            implied[i] = _reasons(stack, right, sizes, m, i, kept) or kept
    return dict(sorted(implied.items()))


def _reasons(
    stack: Floats, right: Floats, sizes: Floats, m: int, row: int, others: list[int]
) -> list[int] | None:
    """Rows from which a row follows, or None where it does not; an equation is two halves."""
    kind = np.arange(len(right)) < m
    upper = _half(stack, right, sizes, kind, row, others)
    if upper is None or row >= m:
        return upper
    signs = np.where(np.arange(len(right)) == row, -1.0, 1.0)
    lower = _half(stack * signs[:, None], right * signs, sizes, kind, row, others)
    return None if lower is None else sorted({*upper, *lower})


def _half(
    stack: Floats,
    right: Floats,
    sizes: Floats,
    kind: Truths,
    row: int,
    others: list[int],
) -> list[int] | None:
    """Rows from which stack[row] v <= right[row] follows, or None where it does not."""
    order = [row, *others]
    balanced, by_row, by_column = equilibrate(np.column_stack([stack[order], right[order]]))
    M, c, free = balanced[1:, :-1], balanced[1:, -1], kind[others]
    target, limit = balanced[0, :-1], balanced[0, -1]
    room = 1.0 + abs(limit)  # one more row keeps the program bounded
    found = _linprog(
        -target,
        A_ub=np.vstack([M[~free], target]),
        b_ub=np.append(c[~free], limit + room),
        A_eq=M[free] if free.any() else None,
        b_eq=c[free] if free.any() else None,
        bounds=(None, None),
    )
    size = np.abs(target) @ np.abs(found.x) + sizes[row] * by_row[0] * by_column[-1]
    if -found.fun > limit + TOLERANCE * max(size, 1.0):
        return None
    weights = np.zeros(len(others))
    weights[~free] = found.ineqlin.marginals[:-1]
    if free.any():
        weights[free] = found.eqlin.marginals
    return sorted(others[j] for j in np.flatnonzero(np.abs(weights) > 1e-9))
