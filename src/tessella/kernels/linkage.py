"""How many originals lie nearer to a masked record than its own: counted, not listed.

For a masked record x whose own original is at distance r, every other original is *nearer* than r,
*tied* with r, or farther. Linkage asks for the first two counts only, so a search ends as soon as
`cap` nearer ones are seen, and never looks beyond r: no list of neighbours, no n x n.

Distances are summed column by column in float64, in the tree as in a plain scan, and the gap to a
box is summed in the same order: rounding is monotone, so no box is judged farther than a record in
it. Equal means equal within SLACK of r, because standardising rounds: 2 lies as far from 1 as
from 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._jit import inlined, kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAF = 8  # as `nearest.box_tree` has them
FAN = 32
SLACK = 1e-9
TINY = 1e-20  # of squares of standardised values

GOWER, OWA, CHOQUET, PAIRS, SUM = 0, 1, 2, 3, 4


@inlined
def _near_boxes(low: Floats, high: Floats, x: Floats, power: int, out: Floats) -> None:
    for place in range(FAN):
        out[place] = 0.0
    for column in range(x.shape[0]):
        at = x[column]
        if power == 2:
            for place in range(FAN):
                gap = max(max(low[column, place] - at, at - high[column, place]), 0.0)
                out[place] += gap * gap
        else:
            for place in range(FAN):
                out[place] += max(max(low[column, place] - at, at - high[column, place]), 0.0)


@inlined
def _far_leaf(leaf: Floats, x: Floats, power: int, out: Floats) -> None:
    for j in range(LEAF):
        out[j] = 0.0
    for column in range(x.shape[0]):
        at = x[column]
        if power == 2:
            for j in range(LEAF):
                side = leaf[column, j] - at
                out[j] += side * side
        else:
            for j in range(LEAF):
                out[j] += abs(leaf[column, j] - at)


@kernel
def count_in_tree(
    starts: Integers,
    tree: tuple[Floats, Floats, Floats, Integers],
    weights: Integers,
    X: Floats,
    homes: Integers,
    power: int,
    cap: int,
    records: Integers,
) -> tuple[Integers, Integers]:
    """Count the originals nearer than, and tied with, the own one of some masked records.

    `tree` is that of `nearest.box_tree` over the distinct originals, `weights` says how many
    originals each stands for (in the order of leaves), `X` has the masked records (m x d), `homes`
    the leaf of each one's own original and its seat there (m x 2). Power is 2 (squares) or 1.
    A search ends when `cap` nearer ones are seen: then nearer >= cap, and tied is not complete.
    """
    leaves, low, high, first_block = tree
    n_levels = first_block.shape[0] - 1
    d = X.shape[1]
    nearer = np.zeros(records.shape[0], dtype=np.int64)
    tied = np.zeros(records.shape[0], dtype=np.int64)
    x, far, gaps = np.empty(d), np.empty(LEAF), np.empty(FAN)
    stack_level = np.empty(FAN * 16, dtype=np.int64)
    stack_node = np.empty(FAN * 16, dtype=np.int64)
    for at in range(records.shape[0]):
        i = records[at]
        for column in range(d):
            x[column] = X[i, column]
        leaf = homes[i, 0]
        _far_leaf(leaves[leaf], x, power, far)
        radius = far[homes[i, 1]]
        below = radius * (1 - SLACK) - TINY
        reach = radius * (1 + SLACK) + TINY
        for j in range(LEAF):
            if far[j] <= reach:
                if far[j] < below:
                    nearer[at] += weights[starts[leaf] + j]
                else:
                    tied[at] += weights[starts[leaf] + j]
        seen = leaf
        for level in range(n_levels):
            if nearer[at] >= cap:
                break
            # The block that holds what was seen, then downwards into its other nodes.
            stack_level[0], stack_node[0] = level + 1, seen // FAN
            height = 1
            while height > 0 and nearer[at] < cap:
                height -= 1
                beneath, node = stack_level[height] - 1, stack_node[height]
                block = first_block[beneath] + node
                _near_boxes(low[block], high[block], x, power, gaps)
                for place in range(FAN):
                    if gaps[place] > reach:
                        continue
                    child = node * FAN + place
                    if beneath == level and child == seen:
                        continue
                    if beneath > 0:
                        stack_level[height], stack_node[height] = beneath, child
                        height += 1
                        continue
                    _far_leaf(leaves[child], x, power, far)
                    for j in range(LEAF):
                        if far[j] <= reach:
                            if far[j] < below:
                                nearer[at] += weights[starts[child] + j]
                            else:
                                tied[at] += weights[starts[child] + j]
                    if nearer[at] >= cap:
                        break
            seen //= FAN
    return nearer, tied


@inlined
def _measured(
    kind: int, x: Floats, y: Floats, numbers: Floats, sorted_: Floats, order: Integers
) -> float:
    """The distance of two records.

    GOWER: `numbers` has 1 / range of each column, or -1 where categories agree or do not.
    OWA: the weight of the smallest square, of the second smallest, ...
    CHOQUET: the measure of the 2^d sets, by bits. PAIRS: the Möbius masses of the d columns, then
    of the pairs. SUM: the weights of the squares.
    """
    d = x.shape[0]
    total = 0.0
    if kind == GOWER:
        compared = 0
        for column in range(d):
            if np.isnan(x[column]) or np.isnan(y[column]):
                continue
            compared += 1
            if numbers[column] < 0:
                if x[column] != y[column]:
                    total += 1.0
            else:
                total += abs(x[column] - y[column]) * numbers[column]
        return total / compared if compared else 1.0
    if kind == SUM:
        for column in range(d):
            side = x[column] - y[column]
            total += numbers[column] * side * side
        return total
    if kind == PAIRS:
        for column in range(d):
            side = x[column] - y[column]
            sorted_[column] = side * side
            total += numbers[column] * sorted_[column]
        at = d
        for column in range(d):
            for other in range(column + 1, d):
                total += numbers[at] * min(sorted_[column], sorted_[other])
                at += 1
        return total
    for column in range(d):
        side = x[column] - y[column]
        square = side * side
        place = column
        while place > 0 and sorted_[place - 1] > square:
            sorted_[place] = sorted_[place - 1]
            order[place] = order[place - 1]
            place -= 1
        sorted_[place], order[place] = square, column
    if kind == OWA:
        for column in range(d):
            total += numbers[column] * sorted_[column]
        return total
    remaining = (1 << d) - 1
    before = 0.0
    for column in range(d):
        total += (sorted_[column] - before) * numbers[remaining]
        before = sorted_[column]
        remaining &= ~(1 << order[column])
    return total


@kernel
def count_by_scan(
    kind: int,
    numbers: Floats,
    A: Floats,
    B: Floats,
    truth: Integers,
    cap: int,
    records: Integers,
) -> tuple[Integers, Integers]:
    """The same counts as `count_in_tree`, for distances without boxes; B has every original."""
    n, d = B.shape
    nearer = np.zeros(records.shape[0], dtype=np.int64)
    tied = np.zeros(records.shape[0], dtype=np.int64)
    sorted_, order = np.empty(d), np.empty(d, dtype=np.int64)
    for at in range(records.shape[0]):
        x = A[records[at]]
        own = truth[records[at]]
        radius = _measured(kind, x, B[own], numbers, sorted_, order)
        below = radius * (1 - SLACK) - TINY
        reach = radius * (1 + SLACK) + TINY
        # From the own record outwards: neighbours in a sorted file are often near.
        for step in range(n):
            if nearer[at] >= cap:
                break
            j = own + step
            if j >= n:
                j -= n
            distance = _measured(kind, x, B[j], numbers, sorted_, order)
            if distance <= reach:
                if distance < below:
                    nearer[at] += 1
                else:
                    tied[at] += 1
    return nearer, tied


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
            worse = False
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


@kernel
def agreement_patterns(
    A: Floats, B: Floats, limits: Floats, starts: Integers, members: Integers, block: Integers
) -> Integers:
    """Count the pairs of each agreement pattern within blocks.

    Column k agrees when |a - b| <= limits[k]; a missing value agrees with nothing. Originals of
    block g are members[starts[g] : starts[g + 1]]; `block` has the block of each masked record.
    """
    d = A.shape[1]
    counts = np.zeros(1 << d, dtype=np.int64)
    for i in range(A.shape[0]):
        g = block[i]
        for at in range(starts[g], starts[g + 1]):
            j = members[at]
            pattern = 0
            for column in range(d):
                if abs(A[i, column] - B[j, column]) <= limits[column]:
                    pattern |= 1 << column
            counts[pattern] += 1
    return counts


@kernel
def count_by_pattern(
    A: Floats,
    B: Floats,
    limits: Floats,
    scores: Floats,
    starts: Integers,
    members: Integers,
    block: Integers,
    truth: Integers,
    records: Integers,
) -> tuple[Integers, Integers]:
    """Count the originals of the block that score above the own one, and as high."""
    d = A.shape[1]
    nearer = np.zeros(records.shape[0], dtype=np.int64)
    tied = np.zeros(records.shape[0], dtype=np.int64)
    for at in range(records.shape[0]):
        i = records[at]
        g = block[i]
        pattern = 0
        for column in range(d):
            if abs(A[i, column] - B[truth[i], column]) <= limits[column]:
                pattern |= 1 << column
        own = scores[pattern]
        for place in range(starts[g], starts[g + 1]):
            j = members[place]
            pattern = 0
            for column in range(d):
                if abs(A[i, column] - B[j, column]) <= limits[column]:
                    pattern |= 1 << column
            if scores[pattern] > own:
                nearer[at] += 1
            elif scores[pattern] == own:
                tied[at] += 1
    return nearer, tied
