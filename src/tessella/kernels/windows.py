"""Windows: small sets of neighbouring groups, each improved on its own.

A *tiling* cuts all groups into windows of whole groups by random planes and balls. Windows share
no record, so they may be improved side by side; the next tiling cuts elsewhere, so that no border
stays. A window fits the cache, so the cost of a move does not depend on the size of the table.
"""

from __future__ import annotations

import numpy as np

from .._types import Bytes, Floats, Integers
from ._jit import kernel
from .anneal import anneal
from .groups import renumber, squared_error, weighted_centres
from .neighbours import nearest_in_window
from .random_stream import draw, draw_below, start_stream


@kernel
def tile(points: Floats, largest: int, seed: int) -> tuple[Integers, Integers]:
    """Cut points into tiles of at most `largest` by random planes.

    A tile is cut across the line between two of its points, drawn at random: planes follow the
    local spread. Between 35 and 65 % of the points go to one side.

    Returns
    -------
    order : array of shape (n,)
        Row numbers, tile by tile.
    starts : array of shape (n_tiles + 1,)
        Where each tile begins in `order`.
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
            total = 0.0
            for q in range(d):
                total += (points[candidate, q] - points[a, q]) ** 2
            if total > farthest:
                farthest, b = total, candidate
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
    d = points.shape[1]
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
                total = 0.0
                for q in range(d):
                    total += (points[rows[r], q] - points[a, q]) ** 2
                distance[r] = total
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
    first = np.zeros(starts.shape[0], dtype=np.int64)
    for i in range(labels.shape[0]):
        first[window[labels[i]] + 1] += 1
    for t in range(1, first.shape[0]):
        first[t] += first[t - 1]
    filled = first[:-1].copy()
    rows = np.empty(labels.shape[0], dtype=np.int64)
    for i in range(labels.shape[0]):
        t = window[labels[i]]
        rows[filled[t]] = i
        filled[t] += 1
    return rows, first


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
        cost = 0.0
        for q in range(X.shape[1]):
            cost += (X[i, q] - centres[labels[i], q]) ** 2
        total += weights[i] * cost
        squares += (weights[i] * cost) ** 2
    return total / X.shape[0], squares / total if total > 0.0 else 0.0


@kernel
def improve_windows(
    X: Floats, weights: Floats, labels: Integers, rows: Integers, starts: Integers, first: int,
    last: int, k: int, count: int, moves: int, hot: float, cold: float, seed: int, halt: Bytes,
) -> None:  # fmt: skip
    """Anneal windows first .. last - 1 of a labelling numbered by window; keep what is better.

    Each window gets `moves` proposals a record, at temperatures given in its own mean cost of a
    record.
    """
    # The stream of a window is its number t, whatever piece it is part of: the number of cores does
    # not matter. Records are copied, so that a window lies together in the cache.
    d = X.shape[1]
    for t in range(first, last):
        own = rows[starts[t] : starts[t + 1]]
        n = own.shape[0]
        if n < 2 * k or halt[0] != 0:
            continue
        offset = labels[own].min()
        near_X, near_weights = np.empty((n, d)), np.empty(n)
        old = np.empty(n, dtype=np.int64)
        for a in range(n):
            old[a] = labels[own[a]] - offset
            near_weights[a] = weights[own[a]]
            for q in range(d):
                near_X[a, q] = X[own[a], q]
        centres = weighted_centres(near_X, near_weights, old, old.max() + 1)
        before = squared_error(near_X, near_weights, old, centres)
        if before <= 0.0:
            continue
        new = old.copy()
        near = nearest_in_window(near_X, min(count, n - 1))
        anneal(
            near_X, near_weights, near, new, k, moves * n, hot * before / n, cold * before / n,
            seed, t, halt,
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
                total = 0.0
                for q in range(d):
                    total += (X[left[a], q] - X[left[0], q]) ** 2
                distance[a] = total
            # The k nearest in O(n_left), in their order: those below the k-th smallest distance,
            # and of those that tie with it as many as are missing, the first ones.
            bound = np.partition(distance, k - 1)[k - 1]
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
