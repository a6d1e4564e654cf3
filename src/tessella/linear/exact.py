"""The nearest point of a polyhedron in fractions: slow, and right whatever the scales.

The same dual active-set method as the kernel's, without rounding and hence without tolerances: a
row is broken or not, depends on others or not. A record takes up to a second; it is the last
resort where columns of very different size are joined by nearly parallel rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .._types import Floats

__all__ = ["exact_nearest"]

Vector = list[Fraction]


def exact_nearest(
    x: Floats, A: Floats, b: Floats, G: Floats, h: Floats, spread: Floats
) -> Floats | None:
    """Return the nearest point to x with A v = b and G v <= h, or None where there is none.

    The distance is sum_j ((v_j - x_j) / spread_j)^2; the rows of A are independent.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.linear.exact import exact_nearest
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
            steps = [
                (multiplier / share, k)
                for k, (multiplier, share) in enumerate(zip(multipliers, along[m:]))
                if share > 0
            ]
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
