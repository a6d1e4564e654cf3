"""First centres that are spread out: records drawn by their distance from those already chosen."""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel


@kernel
def spread_out(X: Floats, weights: Floats, chances: Floats) -> Integers:
    """Choose records as centres; `chances` of shape (c, tries) are uniform in [0, 1).

    The next centre is drawn with probability proportional to weight * squared distance to the
    nearest centre so far; of several tries the one is taken that leaves the least sum of these.
    In O(n c tries d).
    """
    n, d = X.shape
    c, tries = chances.shape
    chosen = np.empty(c, dtype=np.int64)
    squares, trial, best = weights.copy(), np.empty(n), np.empty(n)
    cumulated = np.empty(n)
    for step in range(c):
        total = 0.0
        for i in range(n):
            total += squares[i]
            cumulated[i] = total
        least = np.inf
        for attempt in range(tries):
            row = min(np.searchsorted(cumulated, chances[step, attempt] * total, "right"), n - 1)
            while row > 0 and squares[row] == 0.0:  # rounding at the upper end
                row -= 1
            left = 0.0
            for i in range(n):
                square = 0.0
                for j in range(d):
                    side = X[i, j] - X[row, j]
                    square += side * side
                square *= weights[i]
                trial[i] = square if step == 0 else min(square, squares[i])
                left += trial[i]
            if left < least:
                least = left
                chosen[step] = row
                best, trial = trial, best
            if step == 0:
                break
        squares, best = best, squares
    return chosen
