"""The nearest point of {v : A v = b, G v <= h} to each of many points: a dual active-set method.

Start at the nearest point of the equations alone, and take in one broken inequality after the
other: walk towards it along what the active rows leave free, and drop an active row as soon as its
multiplier would become negative. Each row taken in raises the least distance, so no active set
comes twice, however degenerate or repeated the rows (Goldfarb and Idnani 1983, with the identity
as Hessian).

Vocabulary: `spread` is 1 / sqrt(weight) of each column; a *normal* is a row times spread, of length
one, and rows and right-hand sides come scaled likewise; Q (rows orthonormal) and R (upper
triangular) span the active normals, the m equations first: normals = R.T @ Q.
"""

import numpy as np

from .._types import Floats, Integers
from . import kernel

INSIDE, MOVED, FAILED = 0, 1, 2
UNTOUCHED = 1e-12  # of a row's scale: a point that keeps all rows so well is not moved
TIGHT = 1e-13  # of a row's scale: an inequality broken by more is taken in
NOISE = 1e-15  # of a move: what rounding leaves of it
APART = 1e-18  # squared length of what a normal has outside of the active ones' span


@kernel
def _excess(row: Floats, right: float, v: Floats) -> float:
    total = -right
    for j in range(v.shape[0]):
        total += row[j] * v[j]
    return total


@kernel
def _scale(row: Floats, size: float, v: Floats, x: Floats) -> float:
    total = size
    for j in range(v.shape[0]):
        total += abs(row[j]) * max(abs(v[j]), abs(x[j]))
    return total


@kernel
def _move(v: Floats, x: Floats, spread: Floats) -> float:
    largest = 0.0
    for j in range(v.shape[0]):
        largest = max(largest, abs(v[j] - x[j]) / spread[j])
    return largest


@kernel
def _rounding(
    A: Floats, b_size: Floats, G: Floats, h_size: Floats, R: Floats, q: int, active: Integers,
    v: Floats, x: Floats, noise: Floats,
) -> float:  # fmt: skip
    """What rounding does along each row of Q, in units of NOISE, into `noise`; return the sum."""
    m, total = b_size.shape[0], 0.0
    for k in range(q):
        i = active[k]
        size = _scale(A[k], b_size[k], v, x) if k < m else _scale(G[i], h_size[i], v, x)
        noise[k] = size / abs(R[k, k])
        total += noise[k]
    return total


@kernel
def _reaching(j: int, Q: Floats, q: int, noise: Floats) -> float:
    """How much of that reaches column j: nothing, where no active row does. Q keeps zeros."""
    total = 0.0
    for k in range(q):
        total += abs(Q[k, j]) * noise[k]
    return total


@kernel
def _keeps_all(
    A: Floats, b: Floats, b_size: Floats, G: Floats, h: Floats, h_size: Floats, v: Floats,
    x: Floats, noise: float,
) -> bool:  # fmt: skip
    for i in range(b.shape[0]):
        off = abs(_excess(A[i], b[i], v))
        if not off <= UNTOUCHED * _scale(A[i], b_size[i], v, x) + noise:
            return False
    for i in range(h.shape[0]):
        off = _excess(G[i], h[i], v)
        if not off <= 0.0 and not off <= UNTOUCHED * _scale(G[i], h_size[i], v, x) + noise:
            return False
    return True


@kernel
def _split_off(normal: Floats, Q: Floats, q: int, along: Floats, rest: Floats) -> float:
    """Write a normal as along @ Q[:q] + rest; return the squared length of the rest."""
    d = normal.shape[0]
    for j in range(d):
        rest[j] = normal[j]
    for k in range(q):
        along[k] = 0.0
    for _ in range(2):
        for k in range(q):
            part = 0.0
            for j in range(d):
                part += Q[k, j] * rest[j]
            along[k] += part
            for j in range(d):
                rest[j] -= part * Q[k, j]
    length = 0.0
    for j in range(d):
        length += rest[j] * rest[j]
    return length


@kernel
def _append(Q: Floats, R: Floats, q: int, along: Floats, rest: Floats, length: float) -> None:
    root = np.sqrt(length)
    for k in range(q):
        R[k, q] = along[k]
    R[q, q] = root
    for j in range(rest.shape[0]):
        Q[q, j] = rest[j] / root


@kernel
def _put_on_rows(
    A: Floats, b: Floats, G: Floats, h: Floats, spread: Floats, Q: Floats, R: Floats, m: int,
    q: int, active: Integers, y: Floats, v: Floats,
) -> None:  # fmt: skip
    """Move v to the nearest point at which the equations and the active inequalities are tight."""
    for k in range(q):
        off = _excess(A[k], b[k], v) if k < m else _excess(G[active[k]], h[active[k]], v)
        for i in range(k):
            off -= R[i, k] * y[i]
        y[k] = off / R[k, k]
    for j in range(v.shape[0]):
        step = 0.0
        for k in range(q):
            step += y[k] * Q[k, j]
        v[j] -= step * spread[j]


@kernel
def _walk(
    x: Floats, A: Floats, b: Floats, b_size: Floats, G: Floats, h: Floats, h_size: Floats,
    normals: Floats, spread: Floats, Q: Floats, R: Floats, active: Integers, work: Floats,
    v: Floats, lenient: bool,
) -> int:  # fmt: skip
    """As `nearest_point`; lenient, what rounding of the active rows explains breaks no row."""
    d, m, p = x.shape[0], b.shape[0], h.shape[0]
    along, rest, multiplier, decrease, y = work[0], work[1], work[2], work[3], work[4]
    noise, most = work[5], 0.0
    for j in range(d):
        v[j] = x[j]
    if _keeps_all(A, b, b_size, G, h, h_size, v, x, 0.0):
        return INSIDE
    _put_on_rows(A, b, G, h, spread, Q, R, m, m, active, y, v)
    _put_on_rows(A, b, G, h, spread, Q, R, m, m, active, y, v)
    q = m
    done = False
    for _ in range(20 + 10 * (p + d)):
        worst, excess = -1, 4.0 * NOISE * _move(v, x, spread)
        if lenient:
            most = _rounding(A, b_size, G, h_size, R, q, active, v, x, noise)
        for i in range(p):
            off = _excess(G[i], h[i], v)
            if off > excess and off > TIGHT * _scale(G[i], h_size[i], v, x):
                taken = False
                for k in range(m, q):
                    if active[k] == i:
                        taken = True
                if taken:
                    continue
                reach = 0.0
                if lenient and off <= 4.0 * NOISE * d * most:
                    for j in range(d):
                        reach += abs(normals[i, j]) * _reaching(j, Q, q, noise)
                if off > 4.0 * NOISE * reach:
                    worst, excess = i, off
        if worst < 0:
            done = True
            break
        gained = 0.0
        while True:
            length = _split_off(normals[worst], Q, q, along, rest)
            # normals[worst] = sum of decrease * active normals + equations + rest
            blocking, longest = -1, np.inf
            for k in range(q - 1, m - 1, -1):
                part = along[k]
                for i in range(k + 1, q):
                    part -= R[k, i] * decrease[i]
                decrease[k] = part / R[k, k]
            for k in range(m, q):
                if decrease[k] > 1e-14 and multiplier[k] < longest * decrease[k]:
                    blocking, longest = k, multiplier[k] / decrease[k]
            full = excess / length if length > APART and q < d else np.inf
            step = min(full, longest)
            if step == np.inf:
                return FAILED  # no point obeys all rows, as far as doubles can tell
            if full < np.inf:
                for j in range(d):
                    v[j] -= step * rest[j] * spread[j]
                excess -= step * length
            for k in range(m, q):
                multiplier[k] = max(0.0, multiplier[k] - step * decrease[k])
            gained += step
            if full <= longest:
                _append(Q, R, q, along, rest, length)
                active[q], multiplier[q] = worst, gained
                q += 1
                break
            for k in range(blocking, q - 1):
                active[k], multiplier[k] = active[k + 1], multiplier[k + 1]
            q -= 1
            for k in range(blocking, q):
                length = _split_off(normals[active[k]], Q, k, along, rest)
                _append(Q, R, k, along, rest, length)
    if not done:
        return FAILED
    # Rounding of the walk is undone: the final rows are met from where the walk ended.
    for _ in range(3):
        _put_on_rows(A, b, G, h, spread, Q, R, m, q, active, y, v)
    # Where nothing but noise is left of a number, the answer is 0, and rows between such numbers
    # would be all noise; unless that breaks a row, because the number is small and meant.
    move = _move(v, x, spread)
    for j in range(d):
        rest[j] = v[j]
        if v[j] != x[j] and abs(v[j]) <= 4.0 * NOISE * (abs(x[j]) + spread[j] * (move + most)):
            reach = move + (_reaching(j, Q, q, noise) if lenient else 0.0)
            if abs(v[j]) <= 4.0 * NOISE * (abs(x[j]) + spread[j] * reach):
                rest[j] = 0.0
    flushed = rest[:d]
    if _keeps_all(A, b, b_size, G, h, h_size, flushed, flushed, 0.0):
        for j in range(d):
            v[j] = flushed[j]
        return MOVED
    return MOVED if _keeps_all(A, b, b_size, G, h, h_size, v, x, 8.0 * NOISE * move) else FAILED


@kernel
def nearest_point(
    x: Floats, A: Floats, b: Floats, b_size: Floats, G: Floats, h: Floats, h_size: Floats,
    normals: Floats, spread: Floats, Q: Floats, R: Floats, active: Integers, work: Floats,
    v: Floats,
) -> int:  # fmt: skip
    """Put the point nearest to x into v; INSIDE (v is x), MOVED, or FAILED (v is not to be used).

    Q and R (d x d) begin with the basis of the m equations, which stays; `active` (d integers) and
    `work` (6 x d) are scratch; `normals` are those of G; `b_size` and `h_size` are the sizes of
    what the right-hand sides were computed from, |b| and |h| or more.
    """
    # Rows that lead to a point of an inequality miss it by their rounding, and what they leave free
    # may not mend that. Where nothing is excused by it, small numbers beside large ones are exact.
    for lenient in (True, False):
        found = _walk(
            x, A, b, b_size, G, h, h_size, normals, spread, Q, R, active, work, v, lenient
        )
        if found != FAILED:
            return found
    return FAILED


@kernel
def nearest_points(
    X: Floats, A: Floats, b: Floats, b_size: Floats, G: Floats, h: Floats, h_size: Floats,
    normals: Floats, spread: Floats, Q: Floats, R: Floats,
) -> tuple[Floats, Integers]:  # fmt: skip
    """Nearest points to the rows of X (n x d), and how each was found."""
    n, d = X.shape
    V = np.empty((n, d))
    found = np.empty(n, dtype=np.int64)
    Q, R = Q.copy(), R.copy()
    active = np.zeros(d + 1, dtype=np.int64)
    work = np.zeros((6, d + 1))
    for i in range(n):
        found[i] = nearest_point(
            X[i], A, b, b_size, G, h, h_size, normals, spread, Q, R, active, work, V[i]
        )
    return V, found
