"""Originals that compete for a masked record, and what a line of parameters does to the links."""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers, Truths
from ._jit import kernel


@kernel
def least_rows(
    A: Floats, B: Floats, truth: Integers, records: Integers
) -> tuple[Integers, Integers]:
    """For each record the originals that no other beats in every column (Pareto-minimal).

    Returns where each record's originals start (and one more, where the last end) and which they
    are. A record that some original beats, being at least as near in every column, gets none: no
    monotone aggregation of the columns links it.
    """
    n, d = B.shape
    m = records.shape[0]
    starts = np.zeros(m + 1, dtype=np.int64)
    found = np.empty(16 * m + n, dtype=np.int64)
    squares, sums = np.empty((n, d)), np.empty(n)
    kept = np.empty(n, dtype=np.int64)
    front = np.empty((n, d))
    for at in range(m):
        i = records[at]
        own = truth[i]
        beaten = False
        for j in range(n):
            sums[j] = 0.0
            for column in range(d):
                side = A[i, column] - B[j, column]
                squares[j, column] = side * side
                sums[j] += side * side
        for j in range(n):
            worse = False
            for column in range(d):
                if squares[j, column] > squares[own, column]:
                    worse = True
                    break
            if not worse and j != own:
                beaten = True
                break
        count = 0
        if not beaten:
            for j in np.argsort(sums):
                if j == own:
                    continue
                dominated = False
                for member in range(count):
                    below = True
                    for column in range(d):
                        if front[member, column] > squares[j, column]:
                            below = False
                            break
                    if below:
                        dominated = True
                        # The last to dominate is likely to dominate again: it moves ahead.
                        if member > 0:
                            other = member // 2
                            kept[member], kept[other] = kept[other], kept[member]
                            for column in range(d):
                                value = front[member, column]
                                front[member, column] = front[other, column]
                                front[other, column] = value
                        break
                if not dominated:
                    kept[count] = j
                    front[count] = squares[j]
                    count += 1
        starts[at + 1] = starts[at] + count
        if starts[at + 1] > found.shape[0]:
            wider = np.empty(2 * starts[at + 1] + n, dtype=np.int64)
            wider[: starts[at]] = found[: starts[at]]
            found = wider
        found[starts[at] : starts[at + 1]] = kept[:count]
    return starts, found[: starts[m]].copy()


@kernel
def unbeaten(A: Floats, B: Floats, truth: Integers, records: Integers) -> tuple[Truths, Integers]:
    """Whether no other original is at least as near to a record in every column as its own.

    Returns the answers, and the records as they were given.
    """
    n, d = B.shape
    out = np.ones(records.shape[0], dtype=np.bool_)
    own_squares = np.empty(d)
    for at in range(records.shape[0]):
        i = records[at]
        own = truth[i]
        for column in range(d):
            side = A[i, column] - B[own, column]
            own_squares[column] = side * side
        for j in range(n):
            worse = j == own
            for column in range(d):
                side = A[i, column] - B[j, column]
                if side * side > own_squares[column]:
                    worse = True
                    break
            if not worse:
                out[at] = False
                break
    return out, records


@kernel
def lowest(starts: Integers, level: Floats, count: int, kept: Truths) -> Truths:
    """Mark the `count` lowest rows of each record, and those that are kept in any case."""
    out = kept.copy()
    values, places = np.empty(count), np.empty(count, dtype=np.int64)
    for at in range(starts.shape[0] - 1):
        held = 0
        for row in range(starts[at], starts[at + 1]):
            if held == count and not level[row] < values[held - 1]:
                continue
            place = held if held < count else count - 1
            while place > 0 and values[place - 1] > level[row]:
                values[place], places[place] = values[place - 1], places[place - 1]
                place -= 1
            values[place], places[place] = level[row], row
            held = min(held + 1, count)
        for place in range(held):
            out[places[place]] = True
    return out


@kernel
def widest_step(lows: Floats, highs: Floats) -> tuple[int, float, float]:
    """The most open intervals that overlap, and the ends of the widest stretch where they do.

    Takes the sorted lower and the sorted upper ends. Where one interval ends and another begins at
    the same place, they do not overlap.
    """
    m = lows.shape[0]
    most, first, last = 0, 0.0, 0.0
    begun, ended = 0, 0
    while ended < m:
        if begun < m and lows[begun] < highs[ended]:
            here = lows[begun]
            begun += 1
        else:
            here = highs[ended]
            ended += 1
        if ended == m:
            break
        following = highs[ended]
        if begun < m and lows[begun] < following:
            following = lows[begun]
        open_ = begun - ended
        width = following - here
        if width > 0.0 and (open_ > most or (open_ == most and width > last - first)):
            most, first, last = open_, here, following
    return most, first, last


@kernel
def spans(
    starts: Integers, level: Floats, slope: Floats, first: float, last: float, margin: float
) -> tuple[Floats, Floats]:
    """For each record, the steps t within [first, last] at which all its rows are positive.

    A row is level + t · slope, and positive above `margin`; a record's rows are those between two
    starts. Rows are linear, so the steps form one interval; where it is empty, low > high.
    """
    m = starts.shape[0] - 1
    lows, highs = np.empty(m), np.empty(m)
    for at in range(m):
        low, high = first, last
        for row in range(starts[at], starts[at + 1]):
            need = margin - level[row]
            rise = slope[row]
            if rise > 0:
                low = max(low, need / rise)
            elif rise < 0:
                high = min(high, need / rise)
            elif need >= 0:
                low, high = np.inf, -np.inf
            if low >= high:
                low, high = np.inf, -np.inf
                break
        lows[at], highs[at] = low, high
    return lows, highs


@kernel
def product(matrix: Floats, theta: Floats) -> Floats:
    """The product of each row with θ; the matrix lies column by column."""
    rows, columns = matrix.shape
    out = np.zeros(rows)
    for first in range(0, rows, 1024):  # a stretch of sums stays in the cache
        last = min(first + 1024, rows)
        for column in range(columns):
            weight = theta[column]
            if weight != 0.0:
                for row in range(first, last):
                    out[row] += weight * matrix[row, column]
    return out


@kernel
def count_positive(starts: Integers, level: Floats, margin: float) -> int:
    """Count the records all of whose rows lie above the margin."""
    count = 0
    for at in range(starts.shape[0] - 1):
        good = True
        for row in range(starts[at], starts[at + 1]):
            if not level[row] > margin:
                good = False
                break
        count += good
    return count


@kernel
def lower_prices(rows: Integers, columns: Integers, excess: Floats, prices: Floats) -> int:
    """Lower the prices until none exceeds that of the arc's tail plus its excess; count the sweeps.

    Bellman and Ford from all columns at price 0. Arcs lead from the column rows[a] to columns[a].
    Gives up after as many sweeps as there are columns: then some circle is negative.
    """
    for sweep in range(prices.shape[0] + 1):
        moved = False
        for arc in range(rows.shape[0]):
            reached = prices[rows[arc]] + excess[arc]
            if reached < prices[columns[arc]] - 1e-12:
                prices[columns[arc]] = reached
                moved = True
        if not moved:
            return sweep
    return -1
