"""Rounding that keeps linear rows: the nearest point with whole numbers where they are due.

For a record x, minimise sum_j w_j (v_j - x_j)^2 over all v that obey every row and lie within the
bounds, with v_j whole in the whole columns. Columns that no row joins are rounded one by one. Of
the others, each part goes the first of these ways that it can:

========  =============================================  ==========================================
way       for                                            gives
========  =============================================  ==========================================
flow      sums, sums of sums, a <= b <= c: coefficients  the nearest point
          1 and -1, each column in at most two rows
lattice   any rational coefficients, real columns too    the nearest point, unless its enumeration
                                                         is cut off: then a near one
program   what is left, record by record                 a near point (least sum of moves), or the
                                                         names of rows without a whole solution
========  =============================================  ==========================================

Rows about one column are *bounds*. The other rows join columns; columns that are joined, directly
or through others, make a *component*. Components are rounded one by one, at no loss: a distance is
a sum over columns.

Equations and inequalities between whole columns are verified in whole numbers, without rounding;
rows with real columns to 1e-9 of their scale. What fails is not handed out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .._types import Floats, Truths
from ..exceptions import BadOptionError, BadTableError, BrokenPromiseError, NoWholeSolutionError
from .methods import (
    LARGEST,
    NOT,
    PROVED,
    Component,
    Method,
    Solved,
    by_flow,
    by_lattice,
    by_program,
    by_relaxing,
)
from .rows import Row, as_fraction, as_metric, as_records, implied_rows, linked_rows, whole_row
from .system import LinearSystem


@dataclass(frozen=True, kw_only=True)
class Rounded:
    """Records after rounding."""

    values: Floats  # (n, d), whole numbers in the whole columns
    nearest: Truths  # (n,), whether no other point that obeys the rows is nearer: proved
    distance: Floats  # (n,), sum_j w_j (v_j - x_j)^2


def round_whole(
    X: ArrayLike,
    system: LinearSystem,
    *,
    whole: ArrayLike | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Rounded:
    """Round records to the nearest points that obey a linear system.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The records, which obey the system or nearly do; far ones are solved too, but slower.
    system : LinearSystem
        The rows. A coefficient means the simplest fraction that is the same double: 1.16 is 29/25.
    whole : array-like of d bool, optional
        The columns that must be whole; all, if not given.
    low, high : array-like, optional
        Bounds, of shape (n, d) or anything that broadcasts to it; infinite where there is none.
    weights : array-like of shape (d,), optional
        A positive weight for each column; 1, if not given.

    Returns
    -------
    Rounded
        With `values`, and for each record whether it is proved to be the nearest.

    Raises
    ------
    ContradictionError
        Where no numbers obey the rows.
    NoWholeSolutionError
        Where numbers do, but not whole ones; a least set of rows is named.

    Notes
    -----
    The nearest point to x is the nearest to its projection onto the equations: what separates the
    two is orthogonal to all that the equations leave free. So the equations' part of a violation
    costs nothing.

    References
    ----------
    R. K. Ahuja, T. L. Magnanti, J. B. Orlin (1993), "Network flows", chapter 14: convex cost flows.
    C. P. Schnorr, M. Euchner (1994), "Lattice basis reduction: improved practical algorithms and
    solving subset sum problems", Mathematical Programming 66.

    Examples
    --------
    >>> from tessella.linear import LinearSystem, round_whole
    >>> rule = LinearSystem.equalities([[1, 1, 1, -1]], [0])
    >>> rounded = round_whole([[1.4, 2.3, 3.45, 7.15], [0.2, 0.3, 0.4, 0.9]], rule)
    >>> rounded.values
    array([[1., 2., 4., 7.],
           [0., 0., 1., 1.]])
    >>> rounded.nearest.all()
    np.True_
    """
    X = as_records(X, system.n_columns)
    n, d = X.shape
    metric = np.ones(d) if weights is None else as_metric(weights, d, "weights")
    due = np.ones(d, dtype=bool) if whole is None else np.asarray(whole)
    if due.dtype != np.bool_ or due.shape != (d,):
        raise BadOptionError("whole", whole, f"{d} of True or False, one for each column")
    given_low, given_high = _bounds(low, high, n, d)
    if not np.isfinite(X).all():
        raise BadTableError(
            "Only finite numbers can be rounded, and the table has missing or infinite ones. "
            "Fill or drop them before."
        )
    system.check()
    equations = LinearSystem(system.A, system.b, columns=range(d))
    target = equations.project(X, metric=metric)
    if (np.abs(target[:, due]) >= LARGEST).any():
        raise BadOptionError("X", "a table", f"numbers below {LARGEST} (2^53) in whole columns")
    rows = exact_rows(system, due)
    labels = range(d) if system.columns is None else system.columns
    least, most = whole_bounds(rows, due, given_low, given_high, labels)
    given = (given_low, given_high)
    work = _Rounding(system=system, rows=rows, due=due, metric=metric, given=given)
    values = np.clip(target, least, most)
    values[:, due] = np.clip(np.rint(target[:, due]), least[:, due], most[:, due])
    proved = np.ones(n, dtype=bool)
    for part in components(rows, due):
        if part.rows:
            columns = [*part.whole, *part.real]
            values[:, columns], found = work.solve(part, target, least, most)
            proved &= found == PROVED
    if work.broken(values).any() or (values < least).any() or (values > most).any():
        raise BrokenPromiseError(
            f"Rounding broke a row or a bound in {int(work.broken(values).sum())} records; the "
            "result is withheld. This is a bug in tessella: please report it with the rows."
        )
    distance = (metric * (values - X) ** 2).sum(axis=1)
    return Rounded(values=values, nearest=proved, distance=distance)


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
                mean = f"between whole numbers, these mean whole coefficients beyond {LARGEST}"
                raise BadOptionError("system", name, f"coefficients with fewer digits: {mean}")
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
        if row.joins:
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
    """Split the columns that have rows into components, in the order of their first columns."""
    return [
        Component(
            whole=tuple(j for j in sorted(columns) if whole[j]),
            real=tuple(j for j in sorted(columns) if not whole[j]),
            rows=tuple(row for row in own if row.joins),
            bounds=tuple(row for row in own if not row.joins),
        )
        for columns, own in sorted(linked_rows(rows), key=lambda part: min(part[0]))
    ]


@dataclass(frozen=True, kw_only=True)
class _Rounding:
    """What all parts of a system share."""

    system: LinearSystem
    rows: list[Row]
    due: Truths
    metric: Floats
    given: tuple[Floats, Floats]

    def solve(self, part: Component, target: Floats, low: Floats, high: Floats) -> Solved:
        """Round one part by the first way that works, each record by its own."""
        columns = [*part.whole, *part.real]
        X, *bounds = (np.ascontiguousarray(table[:, columns]) for table in (target, low, high))
        values, found = np.empty_like(X), np.full(len(X), NOT)
        flow = by_flow(part, self.metric)
        if flow is None and any(not row.equal for row in part.rows):
            flow = by_flow(part, self.metric, self._follows)
        if flow is not None:
            values, found = self._try(flow, part, X, X, *bounds)
        left = np.flatnonzero(found == NOT)
        if len(left):
            # What a flow does not reach from the record itself begins at the nearest real point.
            own = [bound[left] for bound in bounds]
            inside, real = by_relaxing(part, self.metric)(X[left], X[left], *own)
            left = left[real != NOT]
            method = by_lattice(part, self.metric) if flow is None else flow
            own = [bound[left] for bound in bounds]
            values[left], found[left] = self._try(method, part, X[left], inside[real != NOT], *own)
        left = np.flatnonzero(found == NOT)
        if len(left):
            given = self.given[0][left][:, columns], self.given[1][left][:, columns]
            program = by_program(part, self.metric, given=given, records=left.tolist())
            own = [bound[left] for bound in bounds]
            values[left], found[left] = self._try(program, part, X[left], X[left], *own)
        return values, found

    @cached_property
    def _follows(self) -> frozenset[int]:
        s = self.system
        sizes = np.abs(np.concatenate([s.b, s.h]))
        return frozenset(implied_rows(s.A, s.b, s.G, s.h, sizes))

    def _try(self, method: Method, part: Component, *tables: Floats) -> Solved:
        """Solve, and take back what breaks a row."""
        values, found = method(*tables)
        full = np.zeros((len(values), len(self.due)))
        full[:, [*part.whole, *part.real]] = values
        return values, np.where(self.broken(full, part.rows), NOT, found)

    def broken(self, values: Floats, rows: tuple[Row, ...] | None = None) -> Truths:
        """Whether a record breaks a row: exactly where all is whole, else to 1e-9 of its scale."""
        broken = np.zeros(len(values), dtype=bool)
        for row in self.rows if rows is None else rows:
            columns = list(row.coefficients)
            part = values[:, columns]
            if row.among(self.due):
                off = _exact(part, [int(a) for a in row.coefficients.values()], int(row.right))
                broken |= (off != 0) if row.equal else (off > 0)
                broken |= (part != np.rint(part)).any(axis=1)
                continue
            a = np.array([float(x) for x in row.coefficients.values()])
            difference = part @ a - float(row.right)
            scale = np.abs(part) @ np.abs(a) + abs(float(row.right))
            broken |= (np.abs(difference) if row.equal else difference) > 1e-9 * scale
        return broken


def _exact(values: Floats, coefficients: list[int], right: int) -> Floats:
    """A v - right of whole numbers: its sign without rounding, its value where that is small.

    Integers of 64 bits wrap around, which leaves a small result right; doubles round, which leaves
    a large one nearly right. One of the two is always known to be good.
    """
    a = np.array(coefficients, dtype=np.int64)
    with np.errstate(over="ignore"):
        wrapped = values.astype(np.int64) @ a - np.int64(right)
    rough = values @ a.astype(np.float64) - float(right)
    return np.where(np.abs(rough) > 2.0**62, rough, wrapped.astype(np.float64))


def _bounds(low: ArrayLike | None, high: ArrayLike | None, n: int, d: int) -> tuple[Floats, Floats]:
    tables = []
    for name, bound, default in (("low", low, -np.inf), ("high", high, np.inf)):
        try:
            table = np.asarray(default if bound is None else bound, dtype=np.float64)
            tables.append(np.broadcast_to(table, (n, d)))
        except (TypeError, ValueError):
            expected = f"a number, {d} numbers, or numbers of shape ({n}, {d})"
            raise BadOptionError(name, bound, expected) from None
        if np.isnan(tables[-1]).any():
            raise BadOptionError(name, bound, f"numbers, {default} where there is no bound")
    if (tables[0] > tables[1]).any():
        raise BadOptionError("low", low, "bounds that are nowhere above high")
    return tables[0], tables[1]
