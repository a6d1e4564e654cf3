"""Windows: small sets of neighbouring groups, each improved on its own.

A *tiling* cuts all groups into windows of whole groups by random planes and balls. Windows share
no record, so they may be improved side by side; the next tiling cuts elsewhere, so that no border
stays. A window fits the cache, so the cost of a move does not depend on the size of the table.
"""

from typing import Any

import numpy as np

from .._types import Bytes, Floats, Integers, SmallIntegers
from . import kernel
from .groups import (
    insert,
    kth_smallest,
    members_of,
    renumber,
    squared_distance,
    squared_error,
    weighted_centres,
)
from .random_moves import anneal, draw, draw_below, start_stream
from .units import anneal_units, nearest_and_units

# Windows of fewer records than this are scanned in double precision alone.
SCREENED = 512
HALVINGS = 16  # of the range of least distances: the limit is then within 1 % of the best


@kernel
def tile(points: Floats, largest: int, seed: int) -> tuple[Integers, Integers]:
    """Cut points into tiles of at most `largest` by random planes.

    A tile is cut across the line between two of its points, drawn at random: planes follow the
    local spread. Between 35 and 65 % of the points go to one side. Returns row numbers (n,), tile
    by tile, and where each tile begins (n_tiles + 1,).
    """
    n, d = points.shape
    stream = start_stream(seed, 0)
    order = np.arange(n)
    ends = np.empty(n + 1, dtype=np.int64)  # a stack: ends of the segments still to be cut
    starts = np.empty(n + 1, dtype=np.int64)
    starts[0] = 0
    n_tiles, depth, begin = 0, 1, 0
    ends[0] = n
    while depth > 0:
        end = ends[depth - 1]
        if end - begin <= largest:
            depth -= 1
            begin = end
            n_tiles += 1
            starts[n_tiles] = end
            continue
        # A random plane, as in random projection trees (Dasgupta and Freund 2008).
        rows = order[begin:end].copy()
        a = rows[draw_below(stream, rows.shape[0])]
        farthest, b = -1.0, a
        for _ in range(3):  # of three, the one farthest from a: a longer base, a better plane
            candidate = rows[draw_below(stream, rows.shape[0])]
            away = squared_distance(points, candidate, points, a)
            if away > farthest:
                farthest, b = away, candidate
        height = np.empty(rows.shape[0])
        for r in range(rows.shape[0]):
            total = 0.0
            for q in range(d):
                total += points[rows[r], q] * (points[b, q] - points[a, q])
            height[r] = total
        order[begin:end] = rows[np.argsort(height, kind="mergesort")]  # stable: no ties by chance
        # Not always in the middle: else the outermost planes of all tilings would nearly agree.
        # The bounds 0.35 and 0.65 are a guess; they keep the depth below 1.7 log2(n).
        cut = begin + int(rows.shape[0] * (0.35 + 0.3 * draw(stream)))
        ends[depth] = min(max(cut, begin + 1), end - 1)
        depth += 1
    return order, starts[: n_tiles + 1].copy()


@kernel
def balls(points: Floats, order: Integers, starts: Integers, largest: int, seed: int) -> Integers:
    """Cut every tile further into balls: a point drawn at random with its nearest, repeatedly.

    A ball is what a group can exchange records with; planes alone leave slivers where points are
    sparse. `order` is rearranged in place; returns where each ball begins.
    """
    stream = start_stream(seed, 1)
    ball_starts = np.empty(order.shape[0] + 1, dtype=np.int64)
    ball_starts[0] = 0
    n_balls = 0
    for t in range(starts.shape[0] - 1):
        begin, end = starts[t], starts[t + 1]
        while end - begin > largest:
            rows = order[begin:end].copy()
            a = rows[draw_below(stream, rows.shape[0])]
            distance = np.empty(rows.shape[0])
            for r in range(rows.shape[0]):
                distance[r] = squared_distance(points, rows[r], points, a)
            order[begin:end] = rows[np.argsort(distance, kind="mergesort")]
            begin += largest
            n_balls += 1
            ball_starts[n_balls] = begin
        n_balls += 1
        ball_starts[n_balls] = end
    return ball_starts[: n_balls + 1].copy()


@kernel
def rows_of_windows(
    labels: Integers, n_groups: int, order: Integers, starts: Integers
) -> tuple[Integers, Integers]:
    """Turn windows of groups into windows of records: row numbers, and where each begins."""
    window = np.empty(n_groups, dtype=np.int64)
    for t in range(starts.shape[0] - 1):
        for a in range(starts[t], starts[t + 1]):
            window[order[a]] = t
    return members_of(window[labels], starts.shape[0] - 1)


@kernel
def number_by_window(labels: Integers, rows: Integers, starts: Integers, k: int) -> Integers:
    """Renumber groups so that each window has a range of numbers of its own, from its lowest on.

    A window of n records never has more than n // k groups, and a sum of floors is at most the
    floor of the sum: numbers stay below the table's n // k, and room is left for new groups.
    """
    new = np.full(labels.max() + 1, -1, dtype=np.int64)
    out = np.empty_like(labels)
    offset = 0
    for t in range(starts.shape[0] - 1):
        number = offset
        for a in range(starts[t], starts[t + 1]):
            old = labels[rows[a]]
            if new[old] < 0:
                new[old] = number
                number += 1
            out[rows[a]] = new[old]
        offset += (starts[t + 1] - starts[t]) // k
    return out


@kernel
def spread(X: Floats, weights: Floats, labels: Integers) -> tuple[float, float]:
    """Mean cost of a record, and the mean weighted by the cost itself.

    Where a few records carry most of the SSE the second is far above the first: it is the
    temperature at which those records still move.
    """
    centres = weighted_centres(X, weights, labels, labels.max() + 1)
    total, squares = 0.0, 0.0
    for i in range(X.shape[0]):
        cost = weights[i] * squared_distance(X, i, centres, labels[i])
        total += cost
        squares += cost**2
    return total / X.shape[0], squares / total if total > 0.0 else 0.0


@kernel
def improve_windows(
    X: Floats, weights: Floats, labels: Integers, rows: Integers, starts: Integers, first: int,
    last: int, k: int, count: int, moves: int, hot: float, cold: float, seed: int, halt: Bytes,
    units: Integers | None,
) -> None:  # fmt: skip
    """Anneal windows first .. last - 1 of a labelling numbered by window; keep what is better.

    Each window gets `moves` proposals a record, at temperatures given in its own mean cost of a
    record. Groups are whole in a window, so records of their units elsewhere do not matter.
    """
    # The stream of a window is its number t, whatever piece it is part of: the number of cores does
    # not matter. Records are copied, so that a window lies together in the cache.
    for t in range(first, last):
        own = rows[starts[t] : starts[t + 1]]
        n = own.shape[0]
        if n < 2 * k or halt[0] != 0:
            continue
        offset = labels[own].min()
        near_X, near_weights, old = X[own], weights[own], labels[own] - offset
        centres = weighted_centres(near_X, near_weights, old, old.max() + 1)
        before = squared_error(near_X, near_weights, old, centres)
        if before <= 0.0:
            continue
        new = old.copy()
        if units is None:
            near = nearest_in_window(near_X, min(count, n - 1))
            anneal(
                near_X, near_weights, near, new, k, moves * n, hot * before / n, cold * before / n,
                seed, t, halt,
            )  # fmt: skip
        else:
            near_units = renumber(units[own], units.max() + 1)
            n_units = near_units.max() + 1
            near = nearest_and_units(near_X, near_units, n_units, min(count, n - 1))
            anneal_units(
                near_X, near_weights, near_units, n_units, near, new, k, moves * n,
                hot * before / n, cold * before / n, seed, t, halt,
            )  # fmt: skip
        # Annealing ends at a low temperature, not at its best state, and sums of updates have
        # rounding errors: both partitions are measured afresh, and the better one is kept.
        new = renumber(new, n // k)
        centres = weighted_centres(near_X, near_weights, new, new.max() + 1)
        if squared_error(near_X, near_weights, new, centres) < before:
            for a in range(n):
                labels[own[a]] = offset + new[a]


@kernel
def start_in_tiles(X: Floats, order: Integers, starts: Integers, k: int) -> Integers:
    """Make groups of k inside each tile: the farthest from the tile's mean with its nearest.

    Fewer than 2k records are left over in a tile; they go on to the next, which is near in space.
    Groups have k records, the last one up to 2k - 1.
    """
    n, d = X.shape
    labels = np.empty(n, dtype=np.int64)
    left = np.empty(n, dtype=np.int64)
    n_left, number = 0, 0
    for t in range(starts.shape[0] - 1):
        for a in range(starts[t], starts[t + 1]):
            left[n_left] = order[a]
            n_left += 1
        mean = np.zeros(d)
        for a in range(n_left):
            for q in range(d):
                mean[q] += X[left[a], q] / n_left
        far = np.empty(n_left)
        for a in range(n_left):
            total = 0.0
            for q in range(d):
                total += (X[left[a], q] - mean[q]) ** 2
            far[a] = -total
        left[:n_left] = left[:n_left][np.argsort(far, kind="mergesort")]
        while n_left >= 2 * k:
            distance = np.empty(n_left)
            for a in range(n_left):
                distance[a] = squared_distance(X, left[a], X, left[0])
            # The k nearest in O(n_left), in their order: those below the k-th smallest distance,
            # and of those that tie with it as many as are missing, the first ones.
            bound = kth_smallest(distance.copy(), k - 1)
            kept, n_closer = 0, 0
            for a in range(n_left):
                if distance[a] < bound:
                    n_closer += 1
            ties = k - n_closer
            for a in range(n_left):
                take = distance[a] < bound
                if distance[a] == bound and ties > 0:
                    take = True
                    ties -= 1
                if take:
                    labels[left[a]] = number
                else:
                    left[kept] = left[a]
                    kept += 1
            n_left = kept
            number += 1
    for a in range(n_left):
        labels[left[a]] = number if n_left >= k else number - 1
    return labels


@kernel
def nearest_in_window(X: Floats, count: int) -> SmallIntegers:
    """List for each record its `count` nearest others, nearest first, shape (n, count).

    A scan: a window is small enough for the cache, where no tree is faster, and in many columns no
    projection rules out enough. Each record scans from its own place on, round the table: of many
    equal records each lists other ones.

    Large windows are screened in single precision, two records at once. Only what may be among the
    nearest, given the rounding there, is computed again in double precision, so the lists are those
    of a scan in double precision, to the last tie. An outlier makes the rounding of all others
    coarse: where the screen lets an eighth of the records through, it is given up.
    """
    n = len(X)
    near = np.empty((n, count), dtype=np.int32)
    columns = np.ascontiguousarray(X.T)
    # About 30 of 64 blocks hold one of the 24 nearest, so few others are below the limit.
    block = 64
    while block > 4 and n < 8 * count * block // 3:
        block //= 2
    n_blocks = -(-n // block)
    done = 0
    if n >= SCREENED and 2 * count <= n // block:
        small = single_precision(columns)
        rough = np.full((2, n_blocks * block), np.inf, dtype=np.float32)
        least = np.empty(n_blocks, dtype=np.int32)
        looked = 0
        while done < n and (done < 32 or 8 * looked < done * n):
            squares_to_two(small, done, min(done + 1, n - 1), rough)
            for i in range(done, min(done + 2, n)):
                row = rough[i - done]
                row[i] = np.float32(np.inf)
                least_of_blocks(row.view(np.int32), block, least)
                limit = upper_bound(least, count)
                looked += screen(X, i, row, least, block, limit, near[i])
            done += 2
    scan_all(X, columns, done, near)
    return near


@kernel
def scan_all(X: Floats, columns: Floats, first: int, near: SmallIntegers) -> None:
    """Fill the lists of the records from the first on by exact distances to all others.

    They are summed column by column, which the processor does four at a time without changing the
    order of any sum.
    """
    d, n = columns.shape
    count = near.shape[1]
    distance, exact = np.empty(count), np.empty(n)
    for i in range(first, n):
        exact[:] = 0.0
        for q in range(d):
            x, column = X[i, q], columns[q]
            for j in range(n):
                exact[j] += (x - column[j]) * (x - column[j])
        held = 0
        for step in range(1, n):
            j = i + step if i + step < n else i + step - n
            if held < count or exact[j] < distance[count - 1]:
                held = insert(distance, near[i], held, exact[j], j)


@kernel
def single_precision(columns: Floats) -> Any:
    """Return columns less their means, divided by the largest of all, float32 in [-1, 1]."""
    d, n = columns.shape
    moved = np.empty((d, n))
    scale = 0.0
    for q in range(d):
        mean = columns[q].mean()
        for j in range(n):
            moved[q, j] = columns[q, j] - mean
            scale = max(scale, abs(moved[q, j]))
    if scale == 0.0:
        scale = 1.0
    return (moved / scale).astype(np.float32)


@kernel
def squares_to_two(small: Any, i: int, k: int, rough: Any) -> None:
    """Squared distances of all records to records i and k; columns are loaded once for both."""
    d, n = small.shape
    first, second = rough[0], rough[1]
    first[:n] = np.float32(0.0)
    second[:n] = np.float32(0.0)
    q = 0
    while q + 2 <= d:
        a, b = small[q], small[q + 1]
        ai, bi, ak, bk = a[i], b[i], a[k], b[k]
        for j in range(n):
            first[j] += (ai - a[j]) * (ai - a[j]) + (bi - b[j]) * (bi - b[j])
            second[j] += (ak - a[j]) * (ak - a[j]) + (bk - b[j]) * (bk - b[j])
        q += 2
    if q < d:
        a = small[q]
        ai, ak = a[i], a[k]
        for j in range(n):
            first[j] += (ai - a[j]) * (ai - a[j])
            second[j] += (ak - a[j]) * (ak - a[j])


@kernel
def least_of_blocks(rough: Any, block: int, least: Any) -> None:
    """Least value of each block; the bits of floats that are not negative sort as integers do.

    Minima of integers are computed eight at a time, those of floats, with their NaN, one by one.
    """
    for t in range(len(least)):
        lowest = rough[t * block]
        for j in range(t * block + 1, (t + 1) * block):
            lowest = min(lowest, rough[j])
        least[t] = lowest


@kernel
def upper_bound(least: Any, count: int) -> Any:
    """Return a value that the least values of `count` blocks do not exceed.

    So many records are at most that far: it bounds the distance of the last one listed.
    """
    low, high = np.int32(-1), least.max()
    for _ in range(HALVINGS):
        middle = np.int32((np.int64(low) + np.int64(high)) // 2)
        below = np.int32(0)
        for value in least:
            below += np.int32(value <= middle)
        if below >= count:
            high = middle
        else:
            low = middle
    return high


@kernel
def screen(
    X: Floats, i: int, rough: Any, least: Any, block: int, bound: Any, near: SmallIntegers
) -> int:  # fmt: skip
    """Fill the list of record i; return how many distances were computed exactly.

    A coordinate in [-1, 1] has an error of at most 6e-8, a difference of three times that, its
    square and the sum of d of them a further share of d times 6e-8. That room is given twice:
    from the bound to exact distances, and back.
    """
    n, d = X.shape
    bounds = np.empty(1, dtype=np.int32)
    bounds[0] = bound
    room, give = 4e-7 * np.sqrt(d), 1 + 2e-7 * (d + 8)
    away = (np.sqrt(np.float64(bounds.view(np.float32)[0])) * give + room) * give + room
    limit = np.float32(away * away * give)
    bounds.view(np.float32)[0] = limit
    bound = bounds[0]
    distance = np.empty(near.shape[0])
    held, looked = 0, 0
    begin, end = i + 1, n
    for _ in range(2):  # from the next record to the last, then from the first on
        j = begin
        while j < end:
            t = j // block
            stop = min(end, (t + 1) * block)
            if least[t] <= bound:
                for a in range(j, stop):
                    if rough[a] <= limit:
                        looked += 1
                        total = squared_distance(X, i, X, a)
                        if held < len(distance) or total < distance[-1]:
                            held = insert(distance, near, held, total, a)
            j = stop
        begin, end = 0, i
    return looked
