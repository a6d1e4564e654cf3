"""The farthest of the records that remain: shells around a centre, the outermost first.

With c the centre, |x - p| <= |x - c| + |p - c|: once the next shell is too near to the centre to
beat the best record so far, no later one can. Records far out are few, so a search from the mean
(or from any record, whose farthest one lies opposite) ends after a few shells, in many columns
too, where boxes prune nothing.

Distances are summed in the order of the columns, as a plain scan would, and ties go to the lowest
row: shells and scan agree to the last bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._jit import kernel, spliced

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LANES = 64  # records in a shell
STEP = 5  # columns that one pass over the lanes handles; shells are padded to it with zeros
NOBODY = np.iinfo(np.int64).max


class Shells(NamedTuple):
    """Records by their distance from a centre, in shells of 64."""

    points: Floats  # (shells, columns, 64), flat; NaN where no record is
    radii: Floats  # (shells,) no record of this shell or a later one is farther from the centre
    rows: Integers  # (shells, 64), flat
    places: Integers  # (n,) where each row stands in `rows`
    counts: Integers  # (shells,) how many records remain
    centre: Floats  # (d,)
    query: Floats  # scratch of the search, from here on
    lanes: Floats
    state: Integers  # the first shell that is not empty, and how many the last search looked at


@spliced
def add_squares(points: Floats, start: int, query: Floats, out: Floats) -> None:
    """Squared distances from a query to the records of a shell, column by column."""
    at = np.uint64(start)
    for i in range(LANES):
        out[i] = 0.0
    for column in range(0, query.shape[0], STEP):
        for i in range(LANES):
            total = out[i]
            for j in range(STEP):
                side = points[at + np.uint64(j * LANES + i)] - query[column + j]
                total += side * side
            out[i] = total
        at += np.uint64(STEP * LANES)


@kernel
def _outward_order(squares: Floats) -> Integers:
    """Order by size, the largest first, to one part in a thousand: that is all a shell needs.

    A radix sort on the leading 22 bits, which order floats that are not negative.
    """
    keys = squares.view(np.int64)
    order, other = np.arange(squares.shape[0]), np.empty(squares.shape[0], dtype=np.int64)
    for shift in (42, 53):
        starts = np.zeros(2049, dtype=np.int64)
        for key in keys:
            starts[2048 - ((key >> shift) & 2047)] += 1
        for digit in range(2048):
            starts[digit + 1] += starts[digit]
        for i in order:
            digit = 2047 - ((keys[i] >> shift) & 2047)
            other[starts[digit]] = i
            starts[digit] += 1
        order, other = other, order
    return order


@kernel
def arrange(X: Floats, rows: Integers, centre: Floats) -> Shells:
    """Arrange some records in shells around a centre, in O(n d)."""
    n, d = rows.shape[0], X.shape[1]
    squares = np.zeros(n)
    for i in range(n):
        for j in range(d):
            side = X[rows[i], j] - centre[j]
            squares[i] += side * side
    order = _outward_order(squares)
    n_shells, columns = (n + LANES - 1) // LANES, (d + STEP - 1) // STEP * STEP
    points = np.zeros((n_shells, columns, LANES))
    radii, counts = np.zeros(n_shells), np.zeros(n_shells, dtype=np.int64)
    found, places = np.full(n_shells * LANES, -1), np.empty(X.shape[0], dtype=np.int64)
    radius = 0.0
    for shell in range(n_shells - 1, -1, -1):
        counts[shell] = min(LANES, n - shell * LANES)
        for slot in range(counts[shell], LANES):
            points[shell, 0, slot] = np.nan
        for slot in range(counts[shell]):
            place = shell * LANES + slot
            row = rows[order[place]]
            found[place], places[row] = row, place
            for j in range(d):
                points[shell, j, slot] = X[row, j]
            radius = max(radius, squares[order[place]])
        radii[shell] = math.sqrt(radius)
    return Shells(
        points.reshape(-1),
        radii,
        found,
        places,
        counts,
        centre.copy(),
        np.zeros(columns),
        np.empty(LANES),
        np.zeros(2, dtype=np.int64),
    )


@kernel
def take_out(shells: Shells, row: int) -> None:
    """Take a record out of its shell."""
    shell, slot = shells.places[row] // LANES, shells.places[row] % LANES
    shells.points[shell * shells.query.shape[0] * LANES + slot] = np.nan
    shells.counts[shell] -= 1


@kernel
def _reached(lanes: Floats, best: float) -> int:
    """Count the distances that are not smaller than the best."""
    count = 0
    for i in range(lanes.shape[0]):
        count += lanes[i] >= best
    return count


@kernel
def farthest(shells: Shells, point: Floats) -> int:
    """Return the row of the remaining record farthest from a point, of equals the lowest row."""
    columns, d = shells.query.shape[0], shells.centre.shape[0]
    offset = 0.0
    for j in range(d):
        shells.query[j] = point[j]
        side = point[j] - shells.centre[j]
        offset += side * side
    offset = math.sqrt(offset)
    while shells.counts[shells.state[0]] == 0:
        shells.state[0] += 1
    # Rounding, and underflow of squares, by which a computed distance may exceed the bound.
    margin, tiny = 1.0 + 1e-15 * (d + 10), 1e-150
    best, found = -1.0, NOBODY
    shells.state[1] = 0
    for shell in range(shells.state[0], shells.radii.shape[0]):
        bound = (shells.radii[shell] + offset) * margin + tiny
        if bound * bound < best:
            break
        shells.state[1] += 1
        add_squares(shells.points, shell * columns * LANES, shells.query, shells.lanes)
        if _reached(shells.lanes, best) == 0:
            continue
        for i in range(LANES):
            row, distance = shells.rows[shell * LANES + i], shells.lanes[i]
            if distance > best or (distance == best and row < found):
                best, found = distance, row
    return found
