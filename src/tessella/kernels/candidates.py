"""Which originals a masked record can come from: lists that meet, and what is left of them.

A *pair* is a masked record and an original that can be the same; pairs are held as lists: those of
masked record i are `partner[start[i] : start[i + 1]]`, ascending.

Where distances have parameters, the originals near a record *compete* for it: each gives a *row*, a
linear function of the parameters that is positive where the own original is nearer. The rows of a
record lie between two starts, too.
"""

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers, Truths
from . import kernel
from .groups import insert

MANY = 256  # possible exchanges between two tied values; beyond, one is taken to exist


@kernel
def in_all_lists(
    members: Integers, first: Integers, chosen: Integers, start: Integers, partner: Integers
) -> Integers:
    """Intersect, for each masked record, one ascending list of originals from each block.

    List l is members[first[l] : first[l + 1]]; record i takes the lists chosen[i]. With an empty
    `partner` the originals are only counted; return the counts.
    """
    m, blocks = chosen.shape
    counts = np.zeros(m, dtype=np.int64)
    for i in range(m):
        short = 0
        for b in range(1, blocks):
            one, other = chosen[i, b], chosen[i, short]
            if first[one + 1] - first[one] < first[other + 1] - first[other]:
                short = b
        for at in range(first[chosen[i, short]], first[chosen[i, short] + 1]):
            j, inside = members[at], True
            for b in range(blocks):
                if b != short and not _has(members, first, chosen[i, b], j):
                    inside = False
                    break
            if inside:
                if partner.shape[0] > 0:
                    partner[start[i] + counts[i]] = j
                counts[i] += 1
    return counts


@kernel
def _find(members: Integers, low: int, high: int, wanted: int) -> int:
    """Return the place of a number among members[low:high], ascending; -1 if it is not there."""
    end = high
    while low < high:
        middle = (low + high) // 2
        if members[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and members[low] == wanted else -1


@kernel
def _has(members: Integers, first: Integers, which: int, wanted: int) -> bool:
    return _find(members, first[which], first[which + 1], wanted) >= 0


class Exchanges(NamedTuple):
    """Values as numbers of their classes, and who has them; -1 is missing. Classes are tied values.

    Those who have class c of variable v are `originals[v, from_o[v, c] : from_o[v, c + 1]]`, and
    in the same way the masked records that got it.
    """

    own: Integers  # (n, variables) class of each original's value
    got: Integers  # (m, variables) class of each masked record's value
    originals: Integers  # (variables, n)
    from_o: Integers  # (variables, classes + 1)
    masked: Integers  # (variables, m)
    from_m: Integers  # (variables, classes + 1)


@kernel
def drop_unanswered(start: Integers, partner: Integers, alive: Truths, known: Exchanges) -> int:
    """Drop pairs that some variable's exchange leaves without its other half; return how many.

    If masked record i comes from original j, then j gave its value x away and got y. Values are
    exchanged in twos, so one of the originals with y got x: some masked record with x must come
    from some original with y. Dropped pairs count at once.
    """
    dropped = 0
    for i in range(start.shape[0] - 1):
        for at in range(start[i], start[i + 1]):
            if alive[at] and not _answered(start, partner, alive, known, i, partner[at]):
                alive[at] = False
                dropped += 1
    return dropped


@kernel
def _answered(
    start: Integers, partner: Integers, alive: Truths, known: Exchanges, i: int, j: int
) -> bool:
    for v in range(known.own.shape[1]):
        y, x = known.got[i, v], known.own[j, v]
        if y < 0 or x == y:
            continue
        first_m, last_m = known.from_m[v, x], known.from_m[v, x + 1]
        first_o, last_o = known.from_o[v, y], known.from_o[v, y + 1]
        if (last_m - first_m) * (last_o - first_o) > MANY:
            continue
        found = False
        for a in range(first_m, last_m):
            other = known.masked[v, a]
            for b in range(first_o, last_o):
                at = _find(partner, start[other], start[other + 1], known.originals[v, b])
                if at >= 0 and alive[at]:
                    found = True
                    break
            if found:
                break
        if not found:
            return False
    return True


@kernel
def drop_taken(start: Integers, partner: Integers, alive: Truths, n: int) -> int:
    """Drop pairs with an original that another masked record must come from; return how many."""
    m, dropped = start.shape[0] - 1, 0
    owner = np.full(n, -1, dtype=np.int64)  # of originals that a masked record must come from
    for i in range(m):
        count, last = 0, -1
        for at in range(start[i], start[i + 1]):
            if alive[at]:
                count += 1
                last = partner[at]
        if count == 1:
            owner[last] = i
    for i in range(m):
        for at in range(start[i], start[i + 1]):
            if alive[at] and owner[partner[at]] >= 0 and owner[partner[at]] != i:
                alive[at] = False
                dropped += 1
    return dropped


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
            if held < count or level[row] < values[held - 1]:
                held = insert(values, places, held, level[row], row)
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
