"""Points made ready for a tree: equal rows grouped, near points side by side.

Ninety zeros in a hundred are one point to search among, so equal rows become one *distinct point*.
Distinct points are numbered leaf by leaf (`order_by_leaves`) and rows are moved likewise, so that
what a group touches is close together in memory. The number of a row after the move is its *place*;
ties are still broken by the row number before the move.

Points are ordered on a rounded copy: float32, centred, and scaled by a power of two, so that no
value overflows or underflows. The order decides only speed: every search measures in float64.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers, Singles
from ._jit import kernel

LEAF = 16  # points in a leaf: one vector register of float32 on AVX-512, two on AVX2
# The rounded copy has a multiple of this number of columns, the last ones zeros: the loop over
# columns is unrolled so many times. Tables of microdata mostly have up to 10 or 15 columns.
STEP = 5
SAMPLE = 16  # points looked at to find a wide column; a wrong choice costs time, never correctness
# 2^64 over the golden ratio (Knuth, The Art of Computer Programming 3, 6.4): spreads bits.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Duplicates(NamedTuple):
    """Rows grouped by their values; those of a point are removed in the order of their numbers."""

    points: Floats  # (distinct, d) the values, in the order of `order_by_leaves`
    point_of: Integers  # (n,) the distinct point at each place
    rows: Integers  # (n,) the row at each place, ascending for each distinct point
    firsts: Integers  # (distinct,) the place of the lowest row that remains
    ends: Integers  # (distinct,) the first place of the next distinct point


@kernel
def group_equal(X: Floats, centre: Floats) -> Duplicates:
    """Group equal rows, in O(n d), and order the distinct points, in O(n d log n)."""
    n, d = X.shape
    number, seen_at = number_equal(X)
    n_distinct = seen_at.shape[0]
    order = order_by_leaves(rounded(X, seen_at, centre).table, d)
    points, renumbered = np.empty((n_distinct, d)), np.empty(n_distinct, dtype=np.int64)
    for distinct in range(n_distinct):
        renumbered[order[distinct]] = distinct
        for j in range(d):
            points[distinct, j] = X[seen_at[order[distinct]], j]
    # A counting sort of the rows by distinct point; it is stable, so rows stay ascending.
    firsts, ends = np.zeros(n_distinct, dtype=np.int64), np.zeros(n_distinct, dtype=np.int64)
    for row in range(n):
        ends[renumbered[number[row]]] += 1
    for distinct in range(1, n_distinct):
        firsts[distinct] = ends[distinct - 1]
        ends[distinct] += ends[distinct - 1]
    rows, point_of, filled = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), firsts.copy()
    for row in range(n):
        distinct = renumbered[number[row]]
        rows[filled[distinct]], point_of[filled[distinct]] = row, distinct
        filled[distinct] += 1
    return Duplicates(points, point_of, rows, firsts, ends)


@kernel
def number_equal(X: Floats) -> tuple[Integers, Integers]:
    """Number distinct rows in the order in which they are met; return also where each was met.

    A hash table with linear probing, at most half full. A hash that collides costs a comparison;
    rows are equal only if all their values are. -0.0 and 0.0 have different hashes and may stay
    apart: callers lose time by that, nothing else.
    """
    n, d = X.shape
    size = 4
    while size < 2 * n:
        size *= 2
    table, n_distinct = np.full(size, -1), 0
    number, seen_at = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    bits = X.view(np.uint64)
    for row in range(n):
        code = np.uint64(0)
        for j in range(d):
            code = (code ^ bits[row, j]) * GOLDEN
            code ^= code >> np.uint64(32)
        slot = np.int64(code & np.uint64(size - 1))
        while table[slot] >= 0:
            other, same = seen_at[table[slot]], 0
            while same < d and X[other, same] == X[row, same]:
                same += 1
            if same == d:
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot], seen_at[n_distinct] = n_distinct, row
            n_distinct += 1
        number[row] = table[slot]
    return number, seen_at[:n_distinct].copy()


class RoundedPoints(NamedTuple):
    """A rounded copy of some points."""

    table: Singles  # (columns, points)
    scale: float  # with which they are multiplied, after the centre is subtracted
    reach: float  # the longest of them, after that


@kernel
def rounded(points: Floats, which: Integers, centre: Floats) -> RoundedPoints:
    """Copy some points centred, scaled and rounded, columns first, padded with zeros."""
    d = points.shape[1]
    largest, longest = 0.0, 0.0
    for i in which:
        length = 0.0
        for j in range(d):
            side = abs(points[i, j] - centre[j])
            largest = max(largest, side)
            length += side * side
        longest = max(longest, length)
    scale = 0.5 ** max(math.frexp(largest)[1], -1000)
    table = np.zeros(((d + STEP - 1) // STEP * STEP, which.shape[0]), dtype=np.float32)
    for i in range(which.shape[0]):
        for j in range(d):
            table[j, i] = np.float32((points[which[i], j] - centre[j]) * scale)
    return RoundedPoints(table, scale, math.sqrt(longest) * scale)


@kernel
def _median(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """Median of three."""
    return max(min(a, b), min(max(a, b), c))


@kernel
def _halve(
    values: Singles,
    order: Integers,
    first: int,
    last: int,
    middle: int,
    spare_values: Singles,
    spare_order: Integers,
) -> None:
    """Reorder first..last-1 so that no value before `middle` is larger than one after it.

    Quickselect that copies instead of swapping: both copies are always written and only the
    counters depend on the comparison, so there is no branch to mispredict. The pivot is the median
    of three medians of three (Tukey's ninther).
    """
    while last - first > 1:
        step = (last - first) // 9
        if step == 0:  # few: sort by insertion
            for i in range(first + 1, last):
                value, record, to = values[i], order[i], i
                while to > first and values[to - 1] > value:
                    values[to], order[to] = values[to - 1], order[to - 1]
                    to -= 1
                values[to], order[to] = value, record
            return
        pivot = _median(
            _median(values[first], values[first + step], values[first + 2 * step]),
            _median(values[first + 3 * step], values[first + 4 * step], values[first + 5 * step]),
            _median(values[first + 6 * step], values[first + 7 * step], values[last - 1]),
        )
        kept, spared = first, 0
        for i in range(first, last):
            value, record = values[i], order[i]
            values[kept], order[kept] = value, record
            spare_values[spared], spare_order[spared] = value, record
            smaller = value < pivot
            kept += smaller
            spared += not smaller
        equal, larger = kept, last
        for i in range(spared):
            if spare_values[i] == pivot:
                values[equal], order[equal] = pivot, spare_order[i]
                equal += 1
            else:
                larger -= 1
                values[larger], order[larger] = spare_values[i], spare_order[i]
        if middle < kept:
            last = kept
        elif middle < equal:
            return
        else:
            first = equal


@kernel
def order_by_leaves(table: Singles, d: int) -> Integers:
    """Order the points of a rounded table, of which d columns count, leaf by leaf.

    The table is cut in two along a wide column, and so on. Cuts fall on multiples of 16 points, in
    larger parts of 16^2, in yet larger ones of 16^3 ...: all leaves but the last are full, and so
    are the nodes of sixteen leaves, the nodes of sixteen such nodes ...
    """
    n = table.shape[1]
    order, spare_order = np.arange(n), np.empty(n, dtype=np.int64)
    values, spare_values = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    firsts, lasts, height = np.zeros(64, dtype=np.int64), np.full(64, n), 1
    while height > 0:
        height -= 1
        first, last = firsts[height], lasts[height]
        if last - first <= LEAF:
            continue
        unit = LEAF
        while unit * LEAF < last - first:
            unit *= LEAF
        middle = first + ((last - first + unit - 1) // unit + 1) // 2 * unit
        widest, width = 0, np.float32(-1.0)
        step = max(1, (last - first) // SAMPLE)
        for j in range(d):
            low = high = table[j, order[first]]
            for i in range(first, last, step):
                value = table[j, order[i]]
                low = value if value < low else low
                high = value if value > high else high
            if high - low > width:
                widest, width = j, high - low
        for i in range(first, last):
            values[i] = table[widest, order[i]]
        _halve(values, order, first, last, middle, spare_values, spare_order)
        lasts[height], firsts[height + 1], lasts[height + 1] = middle, middle, last
        height += 2
    return order
