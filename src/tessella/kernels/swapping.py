"""Exchange partners within a window of ranks, each drawn uniformly among those still free.

Free ranks are counted in a tree (Fenwick 1994), so a draw takes O(log n) however wide the window.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel

__all__ = ["draw_partners"]


@kernel
def draw_partners(chances: Floats, window: int) -> Integers:
    """Return the partner of each rank 0, ..., n - 1; a rank without one is its own.

    From rank 0 upward, a free rank i gets a partner that is uniform among the free ranks in
    i + 1, ..., i + window; neither is free any more. `chances` (n,) are uniform in [0, 1).
    """
    n = chances.shape[0]
    partner = np.arange(n)
    free = np.ones(n, dtype=np.bool_)
    tree = np.zeros(n + 1, dtype=np.int64)  # tree[i] counts the i & -i ranks below i
    top = 1
    while top * 2 <= n:
        top *= 2
    for i in range(1, n + 1):
        tree[i] = i & -i
    for i in range(n):
        if not free[i]:
            continue
        free[i] = False
        at = i + 1
        while at <= n:
            tree[at] -= 1
            at += at & -at
        below, at = 0, i + 1
        while at > 0:
            below += tree[at]
            at -= at & -at
        within, at = 0, min(i + window, n - 1) + 1
        while at > 0:
            within += tree[at]
            at -= at & -at
        count = within - below
        if count == 0:
            continue
        wanted = below + int(chances[i] * count)  # chances[i] < 1
        j, step = 0, top  # the rank with `wanted` free ranks below it
        while step > 0:
            if j + step <= n and tree[j + step] <= wanted:
                j += step
                wanted -= tree[j]
            step //= 2
        free[j] = False
        at = j + 1
        while at <= n:
            tree[at] -= 1
            at += at & -at
        partner[i] = j
        partner[j] = i
    return partner
