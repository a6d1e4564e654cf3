"""Rows of linear systems: read and checked, on balanced scales, and where they contradict.

A `Row` is the one form in which an equation or inequality travels through the package: rules
write rows, plans and repairs select and close them, `LinearSystem.of_rows` makes matrices of them.

A system A v = b, G v <= h has no solution if and only if its rows can be combined, inequalities
with weights >= 0, to 0 <= something negative (Farkas). The weights are the proof; the rows with a
weight are the ones to name.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._output import reserved_stdout
from .._types import Floats, Truths
from ..exceptions import BadOptionError, BadTableError


def _solve(solver: str, *args: Any, **options: Any) -> Any:
    """Call a solver of `scipy.optimize`, which prints nothing on standard output."""
    from scipy.optimize import linprog, milp  # take a quarter of a second to load

    with reserved_stdout():
        return (linprog if solver == "linprog" else milp)(*args, **options)


linprog, milp = partial(_solve, "linprog"), partial(_solve, "milp")  # all programs go through these


@dataclass(frozen=True, eq=False)
class Row:
    """coefficients · record == right, <= right, or < right.

    Columns are known by name, or by position within a system; numbers are floats, or fractions
    where whole solutions are looked for.
    """

    name: str  # of the rule that it comes from, or its text
    coefficients: Mapping[Any, Any]
    operator: str
    right: Any
    place: int = -1  # among the rows of a system

    @property
    def equal(self) -> bool:
        """Whether it is an equation."""
        return self.operator == "=="

    @property
    def strict(self) -> bool:
        """Whether it is a strict inequality."""
        return self.operator == "<"

    def dense(self, columns: Sequence[Any]) -> list[Any]:
        """Return the coefficients on some columns."""
        return [self.coefficients.get(name, 0) for name in columns]

    @property
    def joins(self) -> bool:
        """Whether it is about more than one column."""
        return len(self.coefficients) > 1

    def among(self, mask: Truths) -> bool:
        """Whether all columns of the row, known by position, are in the mask."""
        return all(mask[j] for j in self.coefficients)


def linked_rows(rows: Iterable[Row]) -> list[tuple[set[Any], list[Row]]]:
    """Split rows into parts that share no column; return the columns and the rows of each."""
    parts: list[tuple[set[Any], list[Row]]] = []
    for row in rows:
        columns, joined = set(row.coefficients), [row]
        apart = []
        for names, own in parts:
            if names & columns:
                columns |= names
                joined = own + joined
            else:
                apart.append((names, own))
        parts = [*apart, (columns, joined)]
    return [(columns, sorted(own, key=lambda row: row.place)) for columns, own in parts]


def as_records(X: ArrayLike, d: int) -> Floats:
    """Read numbers of shape (n, d), in C order; a frame's columns could be in any order."""
    if not isinstance(X, np.ndarray | list | tuple):
        raise BadTableError(
            f"A linear system reads arrays, and was given a {type(X).__name__}. Give its "
            "columns as an array of shape (n, d), in the order of the system's columns."
        )
    try:
        values = np.asarray(X)
        if values.dtype.kind not in "biuf":
            raise TypeError
        records = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        message = "A linear system reads numbers, and the table has cells that are none."
        raise BadTableError(message) from None
    if records.ndim != 2 or records.shape[1] != d:
        raise BadTableError(
            f"The linear system is about {d} columns, and the table has shape {records.shape}. "
            f"Give an array of shape (n, {d})."
        )
    return records


def width(A: Any, G: Any, columns: Sequence[Hashable] | None) -> int:
    """Count the columns of a system, from whatever says it."""
    for matrix in (A, G):
        if matrix is not None and np.ndim(matrix) == 2 and np.shape(matrix)[1] > 0:
            return int(np.shape(matrix)[1])
    if columns is not None and len(columns) > 0:
        return len(columns)
    raise BadOptionError("A", A, "a matrix with one row for each equation, or name the columns")


def read_rows(name: str, matrix: Any, side: str, right: Any, wide: int) -> tuple[Floats, Floats]:
    """Read a matrix and its right-hand side; none at all is no rows."""
    if (matrix is None) != (right is None):
        missing = side if right is None else name
        raise BadOptionError(missing, None, f"both {name} and {side}, or neither")
    out = []
    for label, value, shape in ((name, matrix, (-1, wide)), (side, right, (-1,))):
        try:
            numbers = np.array([] if value is None else value, dtype=np.float64)
            numbers = numbers.reshape(shape) if numbers.size == 0 else numbers
        except (TypeError, ValueError):
            raise BadOptionError(label, value, "numbers") from None
        if numbers.ndim != len(shape) or (len(shape) == 2 and numbers.shape[1] != wide):
            expected = f"a matrix with {wide} columns" if len(shape) == 2 else "one number a row"
            raise BadOptionError(label, value, expected)
        if not np.isfinite(numbers).all():
            raise BadOptionError(label, value, "finite numbers; leave out a row without a limit")
        numbers.flags.writeable = False
        out.append(numbers)
    if len(out[0]) != len(out[1]):
        raise BadOptionError(side, right, f"{len(out[0])} numbers, one for each row of {name}")
    return out[0], out[1]


def as_metric(metric: ArrayLike, d: int, name: str = "metric") -> Floats:
    """Read d positive numbers."""
    weights = np.asarray(metric, dtype=np.float64)
    if weights.shape != (d,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise BadOptionError(name, metric, f"{d} positive numbers, one for each column")
    return weights


def as_sum(coefficients: Floats, labels: Sequence[str]) -> str:
    """Write a sum as a person would: 1.16*a + b - c."""
    text = ""
    for a, label in zip(coefficients, labels):
        if a == 0:
            continue
        sign = ("-" if a < 0 else "") if not text else (" - " if a < 0 else " + ")
        text += sign + ("" if abs(a) == 1 else f"{abs(a):.12g}*") + label
    return text or "0"


def as_fraction(x: float) -> Fraction:
    """Return the fraction that a number stands for.

    The simplest fraction with a denominator up to a million that is the same double, so 1.16 is
    29/25 and 1/3 is a third; otherwise the shortest decimal that is the same double.
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


# A row whose part outside of the other rows' span is shorter than this, on balanced scales, is
# taken to lie in the span: coefficients are typed or computed to 12 digits or more.
DEPENDENT = 1e-11


def equilibrate(matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """Balance a matrix: row and column scales that bring all its entries near one.

    Returns the balanced matrix diag(rows) @ matrix @ diag(columns), and the two scales: powers of
    two, so that nothing is rounded. Each scale in turn is the inverse geometric mean of the
    smallest and the largest entry, so that small rows keep their voice beside large ones; what is
    below 1e-15 of its row is taken for rounding and does not count. Zero rows and columns keep the
    scale 1.

    References
    ----------
    J. A. Tomlin (1975), "On scaling linear programming problems", Mathematical Programming Study
    4: geometric mean scaling.
    """
    sizes = np.abs(np.asarray(matrix, dtype=np.float64))
    rows, columns = np.zeros(sizes.shape[0]), np.zeros(sizes.shape[1])
    if sizes.size:
        counts = sizes > 1e-15 * sizes.max(axis=1, keepdims=True)
        logs = np.log2(np.where(counts, sizes, 1.0))
        # Each half step makes the extremes of one side symmetric about 2^0 and disturbs the other
        # side less and less. Of 2,000 random matrices over 16 orders of magnitude, 10 rounds gave
        # the scales of 200 rounds in 81 %, 20 in 94 %, 40 in 99 %. Others are only balanced a
        # little less well: any powers of two are exact.
        sides = [(axis, scale, ~counts.any(axis=axis)) for axis, scale in ((1, rows), (0, columns))]
        for _ in range(20):
            moved = False
            for axis, scale, none in sides:
                now = logs + rows[:, None] + columns
                low = np.where(none, 0.0, np.where(counts, now, np.inf).min(axis=axis))
                high = np.where(none, 0.0, np.where(counts, now, -np.inf).max(axis=axis))
                step = 0.5 * (low + high)
                scale -= step
                moved |= bool(step.any())
            if not moved:  # nor would it be in any further round
                break
    rows, columns = np.exp2(np.round(rows)), np.exp2(np.round(columns))
    return np.asarray(matrix * rows[:, None] * columns), rows, columns


def dependence(A: Floats) -> tuple[list[int], dict[int, Floats]]:
    """Find the rows that are combinations of rows before them.

    Returns the places of the independent rows, and for each dependent row its coefficients on
    *all* rows: A[i] = coefficients @ A, up to rounding; zero on dependent rows, and zero where a
    row plays no part.
    """
    balanced, scale, _ = equilibrate(A)
    norms = np.sqrt((balanced**2).sum(axis=1))
    unit = balanced / np.where(norms > 0, norms, 1.0)[:, None]
    scale = scale / np.where(norms > 0, norms, 1.0)
    m, d = A.shape
    kept: list[int] = []
    combined: dict[int, Floats] = {}
    Q = np.zeros((min(m, d), d))
    for i in range(m):
        rest = unit[i].copy()
        for _ in range(2):
            for j in range(len(kept)):
                rest -= (Q[j] @ rest) * Q[j]
        length = np.sqrt(rest @ rest)
        if length > DEPENDENT and len(kept) < d:
            Q[len(kept)] = rest / length
            kept.append(i)
            continue
        coefficients = np.zeros(m)
        if kept and norms[i] > 0:
            part = np.linalg.lstsq(unit[kept].T, unit[i], rcond=None)[0]
            # A row that plays no part has a coefficient of rounding only; naming it would make a
            # contradiction point at innocent rules.
            part[np.abs(part) < 1e3 * DEPENDENT] = 0.0
            coefficients[kept] = part * scale[kept] / scale[i]
        combined[i] = coefficients
    return kept, combined


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
    stack, right = np.vstack([A, G]), np.concatenate([b, h])
    kind = np.arange(len(right)) < m
    off = np.where(kind, np.abs(right), -right)
    empty = np.flatnonzero(~stack.any(axis=1) & (off > 1e-12 * sizes))
    if len(empty):
        return [int(empty[0])]
    # With independent rows kept in order, a dependent row and those it is made of are a circuit:
    # any part of it is independent, hence has a solution.
    for i, coefficients in dependence(A)[1].items():
        size = np.abs(coefficients) @ sizes[:m] + sizes[i]
        if abs(coefficients @ b - b[i]) > TOLERANCE * size:
            return [*np.flatnonzero(coefficients).tolist(), i]
    if len(h) == 0:
        return []
    rows = _proof(stack, right, sizes, kind, list(range(len(right))))
    # The deletion filter: a row that is not needed for some proof goes for good. What remains is
    # irreducible, because each of its rows was needed when it was tried, among no more rows.
    for row in list(rows):
        rows = _proof(stack, right, sizes, kind, [other for other in rows if other != row]) or rows
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
    weights = least_sum(M, c, free)
    size = np.abs(weights) @ reach
    if not -(weights @ c) > TOLERANCE * size:
        return []
    chosen = np.flatnonzero(np.abs(weights) > 1e-7 * np.abs(weights).max())
    # Rounding in the solver must not make a proof: recompute the weights from the rows alone.
    # A vertex has rows of rank one below their number, hence one direction of weights.
    exact = np.linalg.svd(M[chosen].T)[2][-1]
    exact = exact if exact @ weights[chosen] > 0 else -exact
    gap, size = -(exact @ c[chosen]), np.abs(exact) @ reach[chosen]
    proved = gap > TOLERANCE * size and (free[chosen] | (exact > 0)).all()
    proved = proved and _cancels(exact, M[chosen], 1e-12)
    # Not a vertex, yet far beyond rounding, will do as well.
    far = -(weights @ c) > 1e-6 * np.abs(weights) @ reach
    proved = proved or (far and _cancels(weights, M, 1e-9))
    return [among[i] for i in chosen] if proved else []


def _cancels(weights: Floats, M: Floats, tolerance: float) -> bool:
    """Whether weighted rows add up to nothing, in each column by the size of what is added."""
    sizes = np.abs(weights) @ np.abs(M)
    return bool((np.abs(weights @ M) <= tolerance * sizes).all())


def least_sum(M: Floats, c: Floats, free: Truths) -> Floats:
    """Weights y with y M = 0, sum |y| <= 1, y >= 0 unless free, that make y c least.

    They are zero, and prove nothing, where numbers of many digits are too much for the solver.
    """
    twice = np.flatnonzero(free)  # a free weight is the difference of two
    wide = np.vstack([M, -M[twice]])
    cost = np.concatenate([c, -c[twice]])
    found = _linprog(
        cost, A_eq=wide.T, b_eq=np.zeros(M.shape[1]), A_ub=np.ones((1, len(cost))),
        b_ub=np.ones(1), bounds=(0, None),
    )  # fmt: skip
    if found is None:
        return np.zeros(len(c))
    weights: Floats = found.x[: len(c)].copy()
    weights[twice] -= found.x[len(c) :]
    return weights


def _linprog(cost: Floats, **problem: Any) -> Any:
    """Return the solution of a linear program, or None where the solver gives up."""
    found = linprog(cost, method="highs", options=HIGHS, **problem)
    if found.status != 0:  # tightest tolerances may be out of reach
        found = linprog(cost, method="highs", **problem)
    return found if found.status == 0 else None


def implied_rows(A: Floats, b: Floats, G: Floats, h: Floats, sizes: Floats) -> dict[int, list[int]]:
    """For each row that follows from others, the rows it follows from.

    Of rows that follow from each other, the first are kept: no reason is itself left out. The
    system must have a solution.
    """
    m = len(b)
    stack, right = np.vstack([A, G]), np.concatenate([b, h])
    implied = {i: np.flatnonzero(made_of).tolist() for i, made_of in dependence(A)[1].items()}
    implied |= {m + i: [] for i in np.flatnonzero(~G.any(axis=1)).tolist()}
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
    stack: Floats, right: Floats, sizes: Floats, kind: Truths, row: int, others: list[int]
) -> list[int] | None:
    """Rows from which stack[row] v <= right[row] follows, or None where it does not."""
    order = [row, *others]
    balanced, by_row, by_column = equilibrate(np.column_stack([stack[order], right[order]]))
    M, c, free = balanced[1:, :-1], balanced[1:, -1], kind[others]
    target, limit = balanced[0, :-1], balanced[0, -1]
    room = 1.0 + abs(limit)  # one more row keeps the program bounded
    found = _linprog(
        -target, A_ub=np.vstack([M[~free], target]), b_ub=np.append(c[~free], limit + room),
        A_eq=M[free] if free.any() else None, b_eq=c[free] if free.any() else None,
        bounds=(None, None),
    )  # fmt: skip
    if found is None:  # nothing is claimed without a solution
        return None
    size = np.abs(target) @ np.abs(found.x) + sizes[row] * by_row[0] * by_column[-1]
    if -found.fun > limit + TOLERANCE * max(size, 1.0):
        return None
    weights = np.zeros(len(others))
    weights[~free] = found.ineqlin.marginals[:-1]
    if free.any():
        weights[free] = found.eqlin.marginals
    return sorted(others[j] for j in np.flatnonzero(np.abs(weights) > 1e-9))
