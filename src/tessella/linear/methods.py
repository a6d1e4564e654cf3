"""Ways to round a part of the columns: by a flow, in a lattice, or by a linear program.

Each takes records and their bounds, and gives values with, for each record, how good they are:
PROVED nearest, GOOD (obeys all rows, nearest is not proved), or NOT found.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from .._types import Floats, Integers
from ..exceptions import BadOptionError, BrokenPromiseError, NoWholeSolutionError
from ..kernels.whole_numbers import NEAREST, nearest_flows, nearest_lattice_points
from ..parallel import each
from .project import lengths, orthonormal
from .rows import Row, dependence, milp, whole_row
from .system import LinearSystem

Solved = tuple[Floats, Integers]
# From records, where to begin (the nearest real points, or the records), low and high bounds
Method = Callable[[Floats, Floats, Floats, Floats], Solved]

PROVED, GOOD, NOT = 0, 1, 2
BLOCK = 4096
LARGEST = 2**53  # whole numbers beyond are not all doubles


@dataclass(frozen=True, kw_only=True)
class Component:
    """Columns joined by rows: whole ones and real ones."""

    whole: tuple[int, ...]
    real: tuple[int, ...]
    rows: tuple[Row, ...]  # that join them
    bounds: tuple[Row, ...]  # about one of them


def by_flow(
    part: Component, weights: Floats, without: frozenset[int] = frozenset()
) -> Method | None:
    """Round by successive shortest paths where the rows are those of a network; proved nearest.

    That is the case where all coefficients are 1 or -1 and no column is in more than two rows, in
    which, after some rows change sign, it has opposite signs: sums, sums of sums, a <= b <= c.
    None where it is not. Inequalities at the places `without` follow from others and are left out.
    """
    rows = [row for row in part.rows if row.equal or row.place not in without]
    if part.real or any(abs(a) != 1 for row in rows for a in row.coefficients.values()):
        return None
    where: dict[int, list[int]] = {j: [] for j in part.whole}
    for i, row in enumerate(rows):
        for j in row.coefficients:
            where[j].append(i)
    if any(len(places) > 2 for places in where.values()):
        return None
    # With a 1 and a -1 in each column the matrix is that of a network: rows are nodes, columns
    # arcs; inequalities get an arc of slack to the ground. Such matrices are totally unimodular,
    # so the nearest whole point is found by augmenting along cheapest paths, one unit at a time.
    signs = _signs(rows, where)
    if signs is None:
        return None
    m = ground = len(rows)
    ends = [dict.fromkeys((1, -1), ground) for _ in part.whole]
    for end, j in zip(ends, part.whole):
        for i in where[j]:
            end[int(signs[i] * rows[i].coefficients[j])] = i
    ends += [{signs[i]: i, -signs[i]: ground} for i in range(m) if not rows[i].equal]
    plus = np.array([end[1] for end in ends], dtype=np.int64)
    minus = np.array([end[-1] for end in ends], dtype=np.int64)
    own = [sign * int(row.right) for sign, row in zip(signs, rows)]
    right = np.array([*own, -sum(own)], dtype=np.int64)
    costs = weights[list(part.whole)] / weights[list(part.whole)].max()

    def solve(X: Floats, start: Floats, low: Floats, high: Floats) -> Solved:
        Y, found = nearest_flows(X, start, low, high, costs, plus, minus, right)
        return Y, np.where(found == NEAREST, PROVED, NOT)

    return in_blocks(solve)


def _signs(rows: Sequence[Row], where: dict[int, list[int]]) -> list[int] | None:
    """Signs that give every column of two rows a 1 and a -1, or None."""
    signs = [0] * len(rows)
    for first in range(len(rows)):
        if signs[first]:
            continue
        signs[first], todo = 1, [first]
        while todo:
            i = todo.pop()
            own = rows[i].coefficients
            for j, other in [(col, k) for col in own for k in where[col] if k != i]:
                wanted = int(-signs[i] * own[j] * rows[other].coefficients[j])
                if signs[other] == 0:
                    signs[other] = wanted
                    todo.append(other)
                elif signs[other] != wanted:
                    return None
    return signs


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
                nonzero = [j for j, value in enumerate(values) if value]
                least = min(nonzero, key=lambda j: abs(values[j]))
                for j in nonzero:
                    if j != least:
                        times = (2 * values[j] + values[least]) // (2 * values[least])
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


def by_lattice(part: Component, weights: Floats) -> Method:
    """Round by enumeration of a lattice, nearest points first; proved nearest if it ends in time.

    The whole columns run through all whole solutions of the equations, in a short basis; the real
    columns, if any, go to the nearest point that fits them. What it costs to move those is part of
    the metric, so that the enumeration sees it.
    """
    whole, real = list(part.whole), list(part.real)
    c = len(whole)
    rows, price = _real_rows(part, weights)
    root = np.vstack([np.diag(np.sqrt(weights[whole])), price])
    # All candidates are base + B t with whole t. In the metric of `root`, with root B = Q R, the
    # distance is |R t - target|: triangular, so that the last coordinates bound the rest and the
    # kernel enumerates nearest first (Schnorr and Euchner 1994).
    lattice = whole_solutions(part.rows, whole, real)
    basis = reduced_basis(lattice.basis, root)
    B = _int64(basis, part).reshape(len(basis), c).T.copy()
    orthogonal, R = np.linalg.qr(root @ B)
    T = orthogonal.T @ root
    back = np.linalg.solve(R, T)
    base = list(lattice.base)
    for _ in range(3):  # as near to zero as rounding sees at a time
        steps = [round(t) for t in (back @ np.array([float(x) for x in base])).tolist()]
        base = [x - sum(t * v[j] for t, v in zip(steps, basis)) for j, x in enumerate(base)]
    between = [row for row in part.rows if not row.equal and not _has(row, part.real)]
    metric = (root.T @ root, np.ascontiguousarray(T), np.ascontiguousarray(R))
    limits = _int64([row.dense(whole) for row in between], part).reshape(len(between), c)
    right = _int64([row.right for row in between], part)
    fixed = (_int64(base, part), B, np.ascontiguousarray(back), *metric, limits, right, rows)

    def solve(X: Floats, start: Floats, low: Floats, high: Floats) -> Solved:
        tables = (X, start, low, high)
        W, inside, least, most = (np.ascontiguousarray(table[:, :c]) for table in tables)
        outside = ((start - X) ** 2) @ weights[[*whole, *real]]
        scale = np.sqrt(weights[real])
        bounds = np.hstack([high[:, c:] * scale, -low[:, c:] * scale])
        Z = np.ascontiguousarray(X[:, c:])
        Y, Z, found = nearest_lattice_points(
            W, inside, outside, least, most, weights[whole], *fixed, Z, bounds, weights[real]
        )
        return np.hstack([Y, np.clip(Z, low[:, c:], high[:, c:])]), found

    return in_blocks(solve)


def _real_rows(part: Component, weights: Floats) -> tuple[tuple[Floats, ...], Floats]:
    """Rows with real columns as the kernel has them, and what the real columns pay for whole ones.

    Whole columns that change by y force the real ones to move by at least |price @ y|.
    """
    c, e = len(part.whole), len(part.real)
    root = np.sqrt(weights[list(part.real)])
    spread = 1.0 / root
    equal, unequal = _float_rows(part)
    A = equal[dependence(equal[:, c:-1])[0]]
    A, C = (M / lengths(M[:, c:-1], spread)[:, None] for M in (A, unequal))
    reach = np.vstack([C[:, c:-1], np.diag(root), -np.diag(root)])  # bounds have rows of their own
    m = len(A)
    Q, R = np.zeros((e, e)), np.zeros((e, e))
    Q[:m], R[:m, :m] = orthonormal(A[:, c:-1] * spread)
    real, whole, right = A[:, c:-1], A[:, :c], A[:, -1]
    rows = (real, whole, right, reach, C[:, :c], C[:, -1], reach * spread, spread, Q, R)
    # Whole columns that move by y leave the equations A z = right - whole @ y to the real ones; the
    # least move that meets them has the length of R^-T whole y (orthonormal rows).
    price: Floats = np.asarray(np.linalg.solve(R[:m, :m].T, whole), dtype=np.float64)
    return tuple(np.ascontiguousarray(array) for array in rows), price


def by_relaxing(part: Component, weights: Floats) -> Method:
    """Find the nearest real points, as if no column were whole; its own columns' order."""
    return by_lattice(replace(part, whole=(), real=(*part.whole, *part.real)), weights)


def _float_rows(part: Component) -> tuple[Floats, Floats]:
    """Equations and inequalities with real columns, right-hand sides last."""
    columns = [*part.whole, *part.real]
    tables = []
    for equal in (True, False):
        chosen = [row for row in part.rows if row.equal == equal and _has(row, part.real)]
        cells = [[*row.dense(columns), row.right] for row in chosen]
        tables.append(np.array(cells, dtype=np.float64).reshape(-1, len(columns) + 1))
    return tables[0], tables[1]


def _has(row: Row, columns: Sequence[int]) -> bool:
    return any(j in row.coefficients for j in columns)


def _int64(numbers: Any, part: Component) -> Integers:
    values = np.array(numbers, dtype=object)
    if any(abs(number) >= LARGEST for number in values.ravel()):
        names = ", ".join(repr(row.name) for row in part.rows)
        fewer = f"coefficients with fewer digits: whole solutions go beyond {LARGEST}"
        raise BadOptionError("system", names, fewer)
    return np.array([int(x) for x in values.ravel()], dtype=np.int64).reshape(values.shape)


def by_program(
    part: Component, weights: Floats, *, given: tuple[Floats, Floats], records: Sequence[int]
) -> Method:
    """Round by mixed-integer linear programs: least sum of |moves|, in units of the metric.

    For records that the other ways do not solve. Where there is no solution, a least set of rows is
    named; `given` are the bounds (n x d) that no row explains.
    """
    from scipy.optimize import Bounds, LinearConstraint

    columns = [*part.whole, *part.real]
    d, c = len(columns), len(part.whole)
    price = np.sqrt(weights[columns])

    def program(
        rows: Sequence[Row], x: Floats, low: Floats, high: Floats, *, seconds: float
    ) -> Any:
        """In moves from the rounded record, whose size the solver's tolerances fit."""
        start = np.concatenate([np.rint(x[:c]), x[c:]])
        exact = [int(v) if j < c else float(v) for j, v in enumerate(start)]
        cells = np.array([row.dense(columns) for row in rows], dtype=np.float64).reshape(-1, d)
        sums = [sum(a * v for a, v in zip(row.dense(columns), exact) if a) for row in rows]
        lacks = np.array([float(row.right - total) for row, total in zip(rows, sums)])
        size = np.abs(cells).max(axis=1, initial=0.0)
        cells, lacks = cells / size[:, None], lacks / size
        least = np.where([row.equal for row in rows], lacks, -np.inf)
        eye = np.eye(d)
        limits = [
            LinearConstraint(np.hstack([cells, np.zeros_like(cells)]), least, lacks),
            LinearConstraint(np.hstack([eye, -eye]), -np.inf, x - start),
            LinearConstraint(np.hstack([-eye, -eye]), -np.inf, start - x),
        ]
        found = milp(
            np.concatenate([np.zeros(d), price]),
            integrality=np.concatenate([np.ones(c), np.zeros(2 * d - c)]),
            bounds=Bounds(
                np.concatenate([low - start, np.zeros(d)]),
                np.concatenate([high - start, np.full(d, np.inf)]),
            ),
            constraints=limits if len(rows) else limits[1:],
            options={"time_limit": seconds, "mip_rel_gap": 1e-6},
        )
        if found.x is not None:
            moves = found.x[:d].copy()
            moves[:c] = np.rint(moves[:c])
            found.record = start + moves
        return found

    def solve(X: Floats, _: Floats, low: Floats, high: Floats) -> Solved:
        Y = np.empty_like(X)
        for i in range(len(X)):
            found = program(part.rows, X[i], low[i], high[i], seconds=30.0)
            if found.status == 2:
                own = [np.ceil(given[0][i]), np.floor(given[1][i])]
                own = [np.where(np.arange(d) < c, o, g[i]) for o, g in zip(own, given)]
                rows = [*part.rows, *part.bounds]
                for row in list(rows):
                    fewer = [other for other in rows if other is not row]
                    if program(fewer, X[i], *own, seconds=2.0).status == 2:
                        rows = fewer
                record = records[i] if np.isfinite(own).any() else None
                raise NoWholeSolutionError([row.name for row in rows], record=record)
            if found.x is None:
                raise BrokenPromiseError(
                    f"No whole numbers were found for record {records[i]} ({found.message}), nor a "
                    "proof that there are none; the result is withheld. Widen the bounds, or "
                    "release some of the columns as real numbers."
                )
            Y[i] = found.record
            if part.real:
                Y[i, c:] = _fitted(part, Y[i], low[i, c:], high[i, c:], weights[columns[c:]])
        return Y, np.full(len(X), GOOD)

    return solve


def _fitted(part: Component, y: Floats, low: Floats, high: Floats, weights: Floats) -> Floats:
    """The real columns of a record at the nearest point that fits its whole ones."""
    c, e = len(part.whole), len(part.real)
    equal, unequal = _float_rows(part)
    sides = [(np.eye(e), high), (-np.eye(e), -low)]
    G = np.vstack([unequal[:, c:-1], *(side[np.isfinite(at)] for side, at in sides)])
    h = [unequal[:, -1] - unequal[:, :c] @ y[:c], *(at[np.isfinite(at)] for _, at in sides)]
    right = equal[:, -1] - equal[:, :c] @ y[:c]
    system = LinearSystem(equal[:, c:-1], right, G, np.concatenate(h), columns=range(e))
    return np.asarray(system.project(y[None, c:], metric=weights)[0])


def in_blocks(solve: Method) -> Method:
    """Solve blocks of records on all cores."""

    def blocks(X: Floats, start: Floats, low: Floats, high: Floats) -> Solved:
        def one(first: int) -> Solved:
            chosen = slice(first, first + BLOCK)
            return solve(*(np.ascontiguousarray(t[chosen]) for t in (X, start, low, high)))

        solved = each(one, range(0, len(X), BLOCK))
        if not solved:
            return np.empty_like(X), np.empty(0, dtype=np.int64)
        return np.concatenate([Y for Y, _ in solved]), np.concatenate([f for _, f in solved])

    return blocks
