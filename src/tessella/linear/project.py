"""The nearest point of a polyhedron to each of many points, exactly.

For a record x, minimise sum_j w_j (v_j - x_j)^2 subject to A v = b and G v <= h. The equations are
met by an orthogonal projection whose basis is computed once; the inequalities by a dual active-set
method in a kernel; rounding is then undone on the final rows. Every result is verified against all
rows as they were given. A record that fails is solved again as a nonnegative least squares problem,
and if that fails too, in fractions.
"""

from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Floats, Truths
from ..exceptions import BadTableError, BrokenPromiseError
from ..kernels.polyhedron import FAILED, INSIDE, nearest_points
from ..parallel import each

Rows = tuple[Floats, Floats, Floats, Floats]  # A, b, G, h
BLOCK = 2048
TOLERANCE = 1e-9  # no result that breaks a row by more of its scale is handed out


def lengths(rows: Floats, spread: Floats) -> Floats:
    """Return the length of each row in the metric; squares do not overflow."""
    scaled = rows * spread
    largest = np.abs(scaled).max(axis=1, initial=0.0)
    share = scaled / np.where(largest > 0, largest, 1.0)[:, None]
    return np.asarray(largest * np.sqrt((share**2).sum(axis=1)))


def orthonormal(rows: Floats) -> tuple[Floats, Floats]:
    """Orthonormal basis Q of independent rows, one after the other: rows = R.T @ Q.

    Gram-Schmidt, twice. Unlike a singular value decomposition it keeps zeros: rows without a
    common column have basis vectors without a common column, so the rounding of large columns
    cannot reach small ones.
    """
    m, d = rows.shape
    Q, R = np.zeros((m, d)), np.zeros((m, m))
    for i in range(m):
        rest = rows[i].copy()
        # Twice is enough (Giraud, Langou and Rozloznik 2005): after the second pass what is left is
        # orthogonal to working precision, unless the row was dependent, which the caller excludes.
        for _ in range(2):
            for j in range(i):
                part = Q[j] @ rest
                R[j, i] += part
                rest -= part * Q[j]
        R[i, i] = np.sqrt(rest @ rest)
        Q[i] = rest / R[i, i]
    return Q, R


class Projector:
    """Everything about a system that does not depend on the record.

    `LinearSystem.projector` makes one, from rows that do not contradict each other; calling it
    with an array of shape (n, d) gives the nearest points.

    `sizes` has, for each row, the size of what its right-hand side was computed from; `kept` the
    places of independent equations that span all; `metric` the positive weight of each column.

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


def exact_nearest(
    x: Floats, A: Floats, b: Floats, G: Floats, h: Floats, spread: Floats
) -> Floats | None:
    """Return the nearest point to x with A v = b and G v <= h, or None where there is none.

    The distance is sum_j ((v_j - x_j) / spread_j)^2; the rows of A are independent.
    """
    exact = np.vectorize(Fraction, otypes=[object])
    v, active, limits, right = (exact(given) for given in (x, A, G, h))
    cheap = exact(spread) ** 2
    sizes = (limits * limits) @ cheap
    v = v - cheap * (_shares(active, cheap, active @ v - exact(b)) @ active)
    m = len(active)
    multipliers = np.empty(0, dtype=object)
    for _ in range(20 + 10 * (len(h) + len(x))):
        excess = limits @ v - right
        broken = [(e * e / size, i) for i, (e, size) in enumerate(zip(excess, sizes)) if e > 0]
        if not broken:
            return np.asarray(v, dtype=np.float64)
        _, worst = max(broken)
        row, gained = limits[worst], Fraction(0)
        while True:
            along = _shares(active, cheap, active @ (cheap * row))
            rest = row - along @ active
            length = (cheap * row) @ rest
            pairs = enumerate(zip(multipliers, along[m:]))
            steps = [(multiplier / share, k) for k, (multiplier, share) in pairs if share > 0]
            longest, blocking = min(steps, default=(None, -1))
            full = (row @ v - right[worst]) / length if length > 0 else None
            if full is None and longest is None:
                return None
            step = min(s for s in (full, longest) if s is not None)
            v = v - step * cheap * rest
            multipliers = multipliers - step * along[m:]
            gained += step
            if step == full:
                active = np.vstack([active, row])
                multipliers = np.append(multipliers, gained)
                break
            active = np.delete(active, m + blocking, axis=0)
            multipliers = np.delete(multipliers, blocking)
    return None


def _shares(rows: NDArray[Any], cheap: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Solve (rows · cheap · rows') y = right by Gauss and Jordan; rows are independent."""
    table = np.column_stack([(rows * cheap) @ rows.T, right])
    for k in range(len(table)):
        table[k] = table[k] / table[k, k]
        for i in range(len(table)):
            if i != k and table[i, k]:
                table[i] = table[i] - table[i, k] * table[k]
    return np.asarray(table[:, -1])
