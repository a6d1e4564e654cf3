"""The nearest point of a polyhedron to each of many points, exactly.

For a record x, minimise sum_j w_j (v_j - x_j)^2 subject to A v = b and G v <= h. The equations are
met by an orthogonal projection whose basis is computed once; the inequalities by a dual active-set
method in a kernel; rounding is then undone on the final rows. Every result is verified against all
rows as they were given. A record that fails is solved again as a nonnegative least squares problem,
and if that fails too, in fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .._types import Floats, Truths
from ..exceptions import BadTableError, BrokenPromiseError
from ..kernels.polyhedron import FAILED, INSIDE, nearest_points
from ..parallel import each
from .rows import orthonormal

Rows = tuple[Floats, Floats, Floats, Floats]  # A, b, G, h
BLOCK = 2048
TOLERANCE = 1e-9  # no result that breaks a row by more of its scale is handed out


def lengths(rows: Floats, spread: Floats) -> Floats:
    """Return the length of each row in the metric; squares do not overflow."""
    scaled = rows * spread
    largest = np.abs(scaled).max(axis=1, initial=0.0)
    share = scaled / np.where(largest > 0, largest, 1.0)[:, None]
    return np.asarray(largest * np.sqrt((share**2).sum(axis=1)))


class Projector:
    """Everything about a system that does not depend on the record.

    `LinearSystem.projector` makes one, from rows that do not contradict each other; calling it
    with an array of shape (n, d) gives the nearest points.

    Parameters
    ----------
    rows : tuple of ndarray
        A, b, G and h.
    sizes : ndarray of shape (rows,)
        The size of what each right-hand side was computed from.
    kept : list of int
        The places of independent equations that span all.
    metric : ndarray of shape (d,)
        The positive weight of each column.

    References
    ----------
    D. Goldfarb, A. Idnani (1983), "A numerically stable dual method for solving strictly convex
    quadratic programs", Mathematical Programming 27. C. L. Lawson, R. J. Hanson (1974), "Solving
    least squares problems", chapter 23: least distance programming, the second method.
    """

    def __init__(self, rows: Rows, *, sizes: Floats, kept: list[int], metric: Floats) -> None:
        d = len(metric)
        self._rows = A, b, G, h = rows
        self._sizes = sizes
        self.spread = 1.0 / np.sqrt(metric)
        used = G.any(axis=1)  # 0 <= 1 bounds nothing
        size, bound = lengths(A[kept], self.spread), lengths(G[used], self.spread)
        self.A, self.b = A[kept] / size[:, None], b[kept] / size
        self.G, self.h = G[used] / bound[:, None], h[used] / bound
        self.normals = self.G * self.spread
        self.b_size = sizes[: len(b)][kept] / size
        self.h_size = sizes[len(b) :][used] / bound
        self.Q, self.R = np.zeros((d, d)), np.zeros((d, d))
        m = len(kept)
        self.Q[:m], self.R[:m, :m] = orthonormal(self.A * self.spread)

    def __call__(self, X: Floats) -> Floats:
        """Return the nearest point to each row of X, shape (n, d)."""
        if not np.isfinite(X).all():
            raise BadTableError(
                "Only finite numbers have a nearest point, and the table has missing or infinite "
                "ones. Fill or drop them before."
            )
        starts = range(0, len(X), BLOCK)
        # Copies, or a kernel would be compiled once more for a table that is not writeable.
        blocks = each(lambda start: self._block(X[start : start + BLOCK].copy()), starts)
        return np.concatenate(blocks) if blocks else np.empty_like(X)

    def _block(self, X: Floats) -> Floats:
        equations, limits = (self.A, self.b, self.b_size), (self.G, self.h, self.h_size)
        metric = (self.normals, self.spread, self.Q, self.R)
        V, found = nearest_points(X, *equations, *limits, *metric)
        self._snap_to_bounds(V, found != INSIDE)
        for i in np.flatnonzero((found == FAILED) | (self._worst(V) > TOLERANCE)):
            V[i] = self._least_distance(X[i])
        return V

    def _worst(self, V: Floats, X: Floats | None = None) -> Floats:
        """The largest share of any row's scale by which each point breaks that row.

        With X, the rounding of the move from there does not count.
        """
        A, b, G, h = self._rows
        worst = np.zeros(len(V))
        size, move = np.abs(V), np.zeros(len(V))
        if X is not None:
            size = np.maximum(size, np.abs(X))
            move = (np.abs(V - X) / self.spread).max(axis=1, initial=0.0)
        both = self._sizes[: len(b)], self._sizes[len(b) :]
        for M, right, sizes, equal in ((A, b, both[0], True), (G, h, both[1], False)):
            off = V @ M.T - right
            off = np.abs(off) if equal else np.maximum(off, 0.0)
            scale = size @ np.abs(M).T + sizes
            scale += 1e-5 * np.outer(move, lengths(M, self.spread))
            share = np.divide(off, scale, out=np.zeros_like(off), where=off != 0)
            worst = np.maximum(worst, share.max(axis=1, initial=0.0))
        worst[np.isnan(worst)] = np.inf
        return worst

    def _snap_to_bounds(self, V: Floats, moved: Truths) -> None:
        """Where a bound on one column is met up to rounding, meet it to the bit."""
        _, _, G, h = self._rows
        for row, right in zip(G, h):
            places = np.flatnonzero(row)
            if len(places) != 1:
                continue
            bound, column = right / row[places[0]], V[:, places[0]]
            beyond = column > bound if row[places[0]] > 0 else column < bound
            near = np.abs(column - bound) <= 1e-11 * abs(bound)
            column[moved & beyond & near] = bound

    def _least_distance(self, x: Floats) -> Floats:
        """Solve one record as a nonnegative least squares problem, and verify it."""
        from scipy.optimize import nnls

        m, d = len(self.b), len(x)
        full, _ = np.linalg.qr(np.vstack([self.Q[:m], np.eye(d)]).T)
        free = full[:, m:d].T  # orthonormal, orthogonal to the equations
        start = self._on_equations(x)
        # Least |z| with C z <= f, for v = start + spread * (z @ free).
        C, f = self.normals @ free.T, self.h - self.G @ start
        open_ = np.flatnonzero((C**2).sum(axis=1) > 1e-18)  # not decided by the equations
        C, f = C[open_], f[open_]
        unit = max(1.0, float(np.abs(f).max(initial=0.0)))
        E = np.vstack([-C.T, -f / unit])
        goal = np.append(np.zeros(d - m), 1.0)
        weights = np.zeros(len(f))
        if E.size > 0 and d > m:  # SciPy's solver does not survive empty matrices
            with suppress(RuntimeError):  # unfinished: the check below has the last word
                weights, _ = nnls(E, goal, maxiter=100 * (len(f) + d))
        rest = E @ weights - goal
        z = -rest[:-1] / rest[-1] * unit if rest[-1] != 0 else np.zeros(d - m)
        v = start + self.spread * (z @ free)
        active = open_[weights > 1e-12 * weights.max(initial=0.0)]
        v = self._polished(v, active)
        noise = 1e-14 * self.spread * np.abs(x / self.spread).max()
        both = np.vstack([v, np.where(np.abs(v) <= noise, 0.0, v)])
        worst = self._worst(both)
        if worst.min() <= 1e-12:
            return np.asarray(both[worst.argmin()])
        v = both[worst.argmin()]
        scale = np.abs(self.G) @ np.maximum(np.abs(x), np.abs(v)) + self.h_size
        for share in (0.0, 1e-13, 1e-11):  # or rows that meet up to rounding exclude each other
            right = self.h + share * scale
            exact = exact_nearest(x, self.A, self.b, self.G, right, self.spread)
            if exact is not None:
                v = exact
                break
        if not min(self._worst(v[None])[0], self._worst(v[None], x[None])[0]) <= TOLERANCE:
            raise BrokenPromiseError(
                "No point that obeys all linear rows to 1e-9 of their scale was found for a "
                "record, although the rows do not contradict each other; the result is withheld. "
                "Rows whose coefficients differ by many orders of magnitude may be the reason."
            )
        return np.asarray(v)

    def _on_equations(self, x: Floats) -> Floats:
        m = len(self.b)
        for _ in range(2):
            y = np.linalg.solve(self.R[:m, :m].T, self.A @ x - self.b)
            x = x - self.spread * (y @ self.Q[:m])
        return x

    def _polished(self, v: Floats, active: NDArray[np.intp]) -> Floats:
        """Meet the equations and the active rows, from a point that nearly does."""
        rows = np.vstack([self.A, self.G[active]])
        right = np.concatenate([self.b, self.h[active]])
        for _ in range(2):
            step = np.linalg.lstsq(rows * self.spread, rows @ v - right, rcond=1e-12)[0]
            v = v - self.spread * step
        return v


# In fractions: slow, and right whatever the scales. The dual active-set method of the kernel,
# without rounding and hence without tolerances: a row is broken or not, depends on others or not.
# A record takes up to a second; it is the last resort where columns of very different size are
# joined by nearly parallel rows.

Vector = list[Fraction]


def exact_nearest(
    x: Floats, A: Floats, b: Floats, G: Floats, h: Floats, spread: Floats
) -> Floats | None:
    """Return the nearest point to x with A v = b and G v <= h, or None where there is none.

    The distance is sum_j ((v_j - x_j) / spread_j)^2; the rows of A are independent.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.linear.project import exact_nearest
    >>> G, h = np.array([[-1.0, 0.0], [0.0, -1.0]]), np.zeros(2)
    >>> exact_nearest(np.array([3.0, -1.0]), np.array([[1.0, 1.0]]), np.ones(1), G, h, np.ones(2))
    array([1., 0.])
    """
    cheap = [Fraction(float(s)) ** 2 for s in spread]
    active = [_vector(row) for row in A]
    limits = [(_vector(row), Fraction(right)) for row, right in zip(G, h.tolist())]
    sizes = [_dot(row, row, cheap) for row, _ in limits]
    v = _vector(x)
    off = [_dot(row, v) - right for row, right in zip(active, _vector(b))]
    _walk(v, cheap, active, _solved(_gram(active, cheap), off))
    m = len(active)
    multipliers: Vector = []
    for _ in range(20 + 10 * (len(h) + len(x))):
        excess = [_dot(row, v) - right for row, right in limits]
        broken = [(e * e / size, i) for i, (e, size) in enumerate(zip(excess, sizes)) if e > 0]
        if not broken:
            return np.array([float(number) for number in v])
        _, worst = max(broken)
        (row, right), gained = limits[worst], Fraction(0)
        while True:
            along = _solved(_gram(active, cheap), [_dot(a, row, cheap) for a in active])
            rest = list(row)
            for a, share in zip(active, along):
                rest = [r - share * y for r, y in zip(rest, a)]
            length = _dot(row, rest, cheap)
            pairs = enumerate(zip(multipliers, along[m:]))
            steps = [(multiplier / share, k) for k, (multiplier, share) in pairs if share > 0]
            longest, blocking = min(steps, default=(None, -1))
            full = (_dot(row, v) - right) / length if length > 0 else None
            if full is None and longest is None:
                return None
            step = min(s for s in (full, longest) if s is not None)
            _walk(v, cheap, [rest], [step])
            multipliers = [u - step * share for u, share in zip(multipliers, along[m:])]
            gained += step
            if step == full:
                active.append(row)
                multipliers.append(gained)
                break
            del active[m + blocking], multipliers[blocking]
    return None


def _vector(numbers: Floats) -> Vector:
    return [Fraction(number) for number in numbers.tolist()]


def _dot(a: Vector, b: Vector, weights: Vector | None = None) -> Fraction:
    if weights is None:
        return sum((x * y for x, y in zip(a, b) if x and y), Fraction(0))
    return sum((x * y * w for x, y, w in zip(a, b, weights) if x and y), Fraction(0))


def _walk(v: Vector, cheap: Vector, rows: Sequence[Vector], steps: Vector) -> None:
    for row, step in zip(rows, steps):
        for j, a in enumerate(row):
            if a:
                v[j] -= step * a * cheap[j]


def _gram(rows: list[Vector], cheap: Vector) -> list[Vector]:
    return [[_dot(a, b, cheap) for b in rows] for a in rows]


def _solved(matrix: list[Vector], right: Vector) -> Vector:
    """Gauss, for a matrix that is positive definite: no pivot is zero."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for k, pivot in enumerate(rows):
        for i in range(k + 1, len(rows)):
            if rows[i][k]:
                share = rows[i][k] / pivot[k]
                rows[i] = [x - share * y for x, y in zip(rows[i], pivot)]
    solution: Vector = [Fraction(0)] * len(rows)
    for k in reversed(range(len(rows))):
        known = _dot(rows[k][k + 1 : -1], solution[k + 1 :])
        solution[k] = (rows[k][-1] - known) / rows[k][k]
    return solution
