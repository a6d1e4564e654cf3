"""Scales on which rows and columns of a system can be compared, and which rows depend on others."""

from __future__ import annotations

import numpy as np

from .._types import Floats

__all__ = ["DEPENDENT", "dependence", "equilibrate", "orthonormal"]


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
        for _ in range(20):
            for axis, scale in ((1, rows), (0, columns)):
                now = logs + rows[:, None] + columns
                none = ~counts.any(axis=axis)
                low = np.where(none, 0.0, np.where(counts, now, np.inf).min(axis=axis))
                high = np.where(none, 0.0, np.where(counts, now, -np.inf).max(axis=axis))
                scale -= 0.5 * (low + high)
    rows, columns = np.exp2(np.round(rows)), np.exp2(np.round(columns))
    return np.asarray(matrix * rows[:, None] * columns), rows, columns


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
