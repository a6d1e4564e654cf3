"""Equal records stand in one heap: ninety zeros in a hundred are one point to search among.

Records are moved, too: heaps that are near each other get near numbers, and so do the records of
a heap. What a group touches is then close together in memory. The number of a record after the move
is its *place*; ties are still broken by the row where it stood before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel
from .leaves import order_by_leaves, rounded

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads bits when multiplied


class Heaps(NamedTuple):
    """Records by their values; they leave a heap from the top, the lowest row first."""

    points: Floats  # (heaps, d) the values, heaps leaf by leaf, see `order_by_leaves`
    heap_of: Integers  # (n,) the heap at each place
    rows: Integers  # (n,) the row at each place, ascending in each heap
    tops: Integers  # (heaps,) the place of the lowest row that remains
    ends: Integers  # (heaps,) the first place of the next heap


@kernel
def pile(X: Floats, centre: Floats) -> Heaps:
    """Pile equal records, in O(n d), and move the heaps, in O(n d log n)."""
    n, d = X.shape
    number, firsts = number_equal(X)
    n_heaps = firsts.shape[0]
    order = order_by_leaves(rounded(X, firsts, centre).table, d)
    points, heaps = np.empty((n_heaps, d)), np.empty(n_heaps, dtype=np.int64)
    for heap in range(n_heaps):
        heaps[order[heap]] = heap
        for j in range(d):
            points[heap, j] = X[firsts[order[heap]], j]
    tops, ends = np.zeros(n_heaps, dtype=np.int64), np.zeros(n_heaps, dtype=np.int64)
    for row in range(n):
        ends[heaps[number[row]]] += 1
    for heap in range(1, n_heaps):
        tops[heap] = ends[heap - 1]
        ends[heap] += ends[heap - 1]
    rows, heap_of, filled = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), tops.copy()
    for row in range(n):
        heap = heaps[number[row]]
        rows[filled[heap]], heap_of[filled[heap]] = row, heap
        filled[heap] += 1
    return Heaps(points, heap_of, rows, tops, ends)


@kernel
def number_equal(X: Floats) -> tuple[Integers, Integers]:
    """Number different records in the order in which they are met; return also where."""
    n, d = X.shape
    size = 4
    while size < 2 * n:
        size *= 2
    table, n_heaps = np.full(size, -1), 0
    number, firsts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    bits = X.view(np.uint64)
    for row in range(n):
        code = np.uint64(0)
        for j in range(d):
            code = (code ^ bits[row, j]) * GOLDEN
            code ^= code >> np.uint64(32)
        slot = np.int64(code & np.uint64(size - 1))
        while table[slot] >= 0:
            other, same = firsts[table[slot]], 0
            while same < d and X[other, same] == X[row, same]:
                same += 1
            if same == d:
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot], firsts[n_heaps] = n_heaps, row
            n_heaps += 1
        number[row] = table[slot]
    return number, firsts[:n_heaps].copy()
