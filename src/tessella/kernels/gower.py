"""Gower's distance over all pairs: how many originals lie nearer to a masked record than its own.

Originals are scanned in blocks that stay in the cache while all records of a piece of work pass
over them. A distance is given up as soon as its sum exceeds what could still be near or tied:
where records differ in a category, a few columns suffice.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel
from .linkage import SLACK, TINY

BLOCK = 2048  # originals: 20 columns are 320 kB, which a core's second cache holds
ROUNDING = 1e-12  # the sum may exceed its bound by this much before it is given up


@kernel
def _gower(x: Floats, y: Floats, one_over: Floats, most: float) -> float:
    """Return the mean difference of the columns that both have, or any number above `most`.

    `one_over` has 1 / range of each column, or -1 where categories agree or do not. At most d
    columns are compared, so a sum above d * most cannot have a mean of `most` or less.
    """
    d = x.shape[0]
    bound = most * d * (1 + ROUNDING)
    total, compared = 0.0, 0
    for column in range(d):
        a, b = x[column], y[column]
        if np.isnan(a) or np.isnan(b):
            continue
        compared += 1
        if one_over[column] < 0:
            if a != b:
                total += 1.0
        else:
            total += abs(a - b) * one_over[column]
        if total > bound:
            return np.inf
    return total / compared if compared else 1.0


@kernel
def count_gower(
    one_over: Floats, A: Floats, B: Floats, truth: Integers, cap: int, records: Integers
) -> tuple[Integers, Integers]:
    """Count the originals nearer than, and tied with, the own one of some masked records.

    A record is left as soon as `cap` nearer ones are seen: then tied is not complete.
    """
    n, m = B.shape[0], records.shape[0]
    nearer, tied = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    below, reach = np.empty(m), np.empty(m)
    for at in range(m):
        radius = _gower(A[records[at]], B[truth[records[at]]], one_over, np.inf)
        below[at] = radius * (1 - SLACK) - TINY
        reach[at] = radius * (1 + SLACK) + TINY
    n_blocks = (n + BLOCK - 1) // BLOCK
    # From the block of the first record's own original: neighbours in a sorted file are often near.
    start = truth[records[0]] // BLOCK if m else 0
    for step in range(n_blocks):
        first = (start + step) % n_blocks * BLOCK
        last = min(first + BLOCK, n)
        for at in range(m):
            if nearer[at] >= cap:
                continue
            x = A[records[at]]
            for j in range(first, last):
                distance = _gower(x, B[j], one_over, reach[at])
                if distance <= reach[at]:
                    if distance < below[at]:
                        nearer[at] += 1
                    else:
                        tied[at] += 1
    return nearer, tied
