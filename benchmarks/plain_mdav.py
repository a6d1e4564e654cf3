"""MDAV by a plain scan, as tight as one core allows: what `MDAV` is timed against.

The records that remain are kept without holes, column by column; distances are computed for blocks
of 256 records that fit the first cache, four columns in one pass, vectorised over the records; the
nearest and the farthest from a seed are found in the same pass, and only blocks that hold
a candidate are looked through. The centre is kept up to date record by record, by the same sums
as in the library, so that both see the same centre to the last bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tessella.kernels.mdav import add_record, mean_of, sums_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BLOCK = 256
NOBODY = np.iinfo(np.int64).max

tight = njit(cache=True, nogil=True, error_model="numpy")


@tight
def measure_block(columns: Floats, start: int, size: int, point: Floats, out: Floats) -> None:
    """Squared distances of a block's records, added up in the order of the columns."""
    d = columns.shape[0]
    for i in range(size):
        out[i] = 0.0
    for j in range(0, d - 3, 4):
        a, b = columns[j, start : start + size], columns[j + 1, start : start + size]
        c, e = columns[j + 2, start : start + size], columns[j + 3, start : start + size]
        p, q, r, s = point[j], point[j + 1], point[j + 2], point[j + 3]
        for i in range(size):
            total = out[i] + (a[i] - p) * (a[i] - p)
            total += (b[i] - q) * (b[i] - q)
            total += (c[i] - r) * (c[i] - r)
            total += (e[i] - s) * (e[i] - s)
            out[i] = total
    for j in range(d - d % 4, d):
        a, p = columns[j, start : start + size], point[j]
        for i in range(size):
            out[i] += (a[i] - p) * (a[i] - p)


@tight
def count_at_least(values: Floats, size: int, bound: float) -> int:
    count = 0
    for i in range(size):
        count += values[i] >= bound
    return count


@tight
def count_at_most(values: Floats, size: int, bound: float) -> int:
    count = 0
    for i in range(size):
        count += values[i] <= bound
    return count


@tight
def search(
    columns: Floats,
    rows: Integers,
    left: int,
    point: Floats,
    near: Floats,
    near_rows: Integers,
    block: Floats,
) -> int:
    """Find the nearest records of a point, as many as there is room for, and the farthest."""
    m = near.shape[0]
    near[:], near_rows[:] = np.inf, NOBODY
    far, far_row = -1.0, NOBODY
    for start in range(0, left, BLOCK):
        size = min(BLOCK, left - start)
        measure_block(columns, start, size, point, block)
        if m > 0 and count_at_most(block, size, near[m - 1]) > 0:
            for i in range(size):
                if block[i] <= near[m - 1]:
                    distance, row, to = block[i], rows[start + i], m - 1
                    if distance == near[to] and row > near_rows[to]:
                        continue
                    while to > 0 and (
                        near[to - 1] > distance
                        or (near[to - 1] == distance and near_rows[to - 1] > row)
                    ):
                        near[to], near_rows[to] = near[to - 1], near_rows[to - 1]
                        to -= 1
                    near[to], near_rows[to] = distance, row
        if count_at_least(block, size, far) > 0:
            for i in range(size):
                if block[i] > far or (block[i] == far and rows[start + i] < far_row):
                    far, far_row = block[i], rows[start + i]
    return far_row


@tight
def plain_mdav(X: Floats, weights: Floats, k: int) -> Integers:
    """Group by MDAV; groups are numbered in the order in which they are taken out."""
    n, d = X.shape
    columns, rows, places = X.T.copy(), np.arange(n), np.arange(n)
    labels, sums, centre = np.full(n, -1), sums_of(X, weights), np.empty(d)
    block, near = np.empty(BLOCK), np.empty(k - 1)
    members, left, group = np.empty(k, dtype=np.int64), n, 0
    while left >= 2 * k:
        mean_of(sums, centre)
        turns = 2 if left >= 3 * k else 1
        seed = search(columns, rows, left, centre, near[:0], members[:0], block)
        for _ in range(turns):
            # The seed comes out before the search: the nearest do not hold it. The farthest of the
            # rest is the next seed unless it is in the group, which takes a tie of all records.
            members[k - 1] = seed
            left = take_out(columns, rows, places, left, seed)
            seed = search(columns, rows, left, X[members[k - 1]], near, members[: k - 1], block)
            for i in range(k):
                if i < k - 1:
                    left = take_out(columns, rows, places, left, members[i])
                labels[members[i]] = group
                add_record(sums, X, members[i], -weights[members[i]])
            if turns == 2 and labels[seed] == group:
                seed = search(columns, rows, left, X[members[k - 1]], near[:0], members[:0], block)
            group += 1
    for i in range(left):
        labels[rows[i]] = group
    return labels


@tight
def take_out(columns: Floats, rows: Integers, places: Integers, left: int, row: int) -> int:
    """Let the last record that remains fill the gap; return how many remain."""
    place, last = places[row], left - 1
    for j in range(columns.shape[0]):
        columns[j, place] = columns[j, last]
    rows[place] = rows[last]
    places[rows[place]] = place
    return last
