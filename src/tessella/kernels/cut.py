"""Where to cut a sequence of records into groups of k to 2k - 1, with the least squared error.

Groups of 2k or more can be split in two without breaking k or raising the error, so no group needs
to be longer than 2k - 1 (Domingo-Ferrer and Mateo-Sanz 2002). The best cut of the first `end`
records is the best cut of the first `start` ones plus the group between them: a shortest path
(Hansen and Mukherjee 2003).

All groups are priced without a subtraction of sums. The sequence is walked in blocks of k; a group
that ends in a block but is at least k long reaches back over the block's beginning, the *seam*.
Left of the seam it is a tail, right of it a head, and

    spread(tail + head) = spread(tail) + spread(head) + |mean(tail) - mean(head)|² · wt·wh / (wt+wh)

with running means taken relative to the record at the seam. Nothing cancels, so neither a large
offset nor an outlier far away costs digits.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel


@kernel
def _running(
    X: Floats,
    weights: Floats,
    order: Integers,
    seam: int,
    step: int,
    count: int,
    means: Floats,
    totals: Floats,
    spreads: Floats,
) -> None:
    """Fill row a with mean, weight and spread of the a + 1 records nearest to the seam.

    step = 1 walks right from the seam, step = -1 left; positions wrap around. Means are relative
    to the record at the seam.
    """
    n, d = order.shape[0], X.shape[1]
    origin = order[seam % n]
    first = seam if step > 0 else seam - 1
    for a in range(count):
        row = order[(first + step * a) % n]
        if a == 0:
            totals[0], spreads[0] = weights[row], 0.0
            for j in range(d):
                means[0, j] = X[row, j] - X[origin, j]
            continue
        totals[a] = totals[a - 1] + weights[row]
        share = weights[row] / totals[a]
        squares = 0.0
        for j in range(d):
            difference = X[row, j] - X[origin, j] - means[a - 1, j]
            squares += difference * difference
            means[a, j] = means[a - 1, j] + difference * share
        spreads[a] = spreads[a - 1] + totals[a - 1] * share * squares


@kernel
def _labels_of(starts: Integers, order: Integers) -> Integers:
    """Follow the groups back from the last record; number them along the sequence."""
    n = order.shape[0]
    count, end = 0, n
    while end > 0:
        count += 1
        end = starts[end]
    labels = np.empty(n, dtype=np.int64)
    end = n
    while end > 0:
        count -= 1
        for p in range(starts[end], end):
            labels[order[p]] = count
        end = starts[end]
    return labels


@kernel
def best_cut(X: Floats, weights: Floats, order: Integers, k: int) -> tuple[Integers, float]:
    """Cut the records, taken in this order, at the least error: labels of shape (n,), SSE.

    `order` holds every row number once, and n >= k. O(n k d) time, O(n + k d) memory.
    """
    n, d = X.shape
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    starts = np.zeros(n + 1, dtype=np.int64)
    tails, tail_totals, tail_spreads = np.empty((2 * k, d)), np.empty(2 * k), np.empty(2 * k)
    heads, head_totals, head_spreads = np.empty((k, d)), np.empty(k), np.empty(k)
    for seam in range(0, n, k):
        n_heads, n_tails = min(k, n - seam), min(2 * k - 2, seam)
        _running(X, weights, order, seam, 1, n_heads, heads, head_totals, head_spreads)
        _running(X, weights, order, seam, -1, n_tails, tails, tail_totals, tail_spreads)
        for a in range(n_tails - 1, -1, -1):
            start = seam - a - 1
            if best[start] == np.inf:
                continue
            base = best[start] + tail_spreads[a]
            # a + 1 records in the tail and b + 1 in the head: k to 2k - 1 together
            for b in range(max(0, k - a - 2), min(n_heads, 2 * k - 2 - a)):
                end = seam + b + 1
                error = base + head_spreads[b]
                if error >= best[end]:
                    continue
                squares = 0.0
                for j in range(d):
                    difference = heads[b, j] - tails[a, j]
                    squares += difference * difference
                together = tail_totals[a] + head_totals[b]
                error += tail_totals[a] * head_totals[b] / together * squares
                if error < best[end]:
                    best[end], starts[end] = error, start
        if n_heads == k and best[seam] + head_spreads[k - 1] < best[seam + k]:
            best[seam + k], starts[seam + k] = best[seam] + head_spreads[k - 1], seam
    return _labels_of(starts, order), float(best[n])


@kernel
def _joined(
    a: int,
    b: int,
    tails: Floats,
    tail_totals: Floats,
    tail_spreads: Floats,
    heads: Floats,
    head_totals: Floats,
    head_spreads: Floats,
) -> float:
    """Spread of the a values left of the seam and the b + 1 values right of it."""
    if a == 0:
        return float(head_spreads[b])
    difference = heads[b, 0] - tails[a - 1, 0]
    weight = tail_totals[a - 1] * head_totals[b] / (tail_totals[a - 1] + head_totals[b])
    apart = weight * difference * difference
    return float(tail_spreads[a - 1] + head_spreads[b] + apart)


@kernel
def best_sorted_cut(
    values: Floats, weights: Floats, order: Integers, k: int
) -> tuple[Integers, float]:
    """Cut one column, taken in ascending order, at the least error: labels of shape (n,), SSE.

    `values` has shape (n, 1). O(n log k) time, O(n) memory.

    Along sorted values the spread obeys the quadrangle inequality (a longer group suffers more
    from one more value beyond its end), so the best start never moves back as the end moves on.
    All ends of a block see starts at or before the seam, whose best errors are known: the middle
    end is solved first and bounds the search of both halves, and so on. Of equal starts the last
    is taken, which keeps groups below 2k.
    """
    n = order.shape[0]
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    starts = np.zeros(n + 1, dtype=np.int64)
    tails, tail_totals, tail_spreads = np.empty((2 * k, 1)), np.empty(2 * k), np.empty(2 * k)
    heads, head_totals, head_spreads = np.empty((k, 1)), np.empty(k), np.empty(k)
    widest = 1
    while widest < k:
        widest *= 2
    for seam in range(0, n, k):
        n_heads, n_tails = min(k, n - seam), min(2 * k - 2, seam)
        _running(values, weights, order, seam, 1, n_heads, heads, head_totals, head_spreads)
        _running(values, weights, order, seam, -1, n_tails, tails, tail_totals, tail_spreads)
        stride = widest
        while stride >= 1:
            for b in range(stride - 1, n_heads, 2 * stride):
                end = seam + b + 1
                low, high = max(0, end - 2 * k + 1), end - k
                if b >= stride:
                    low = max(low, starts[end - stride])
                if b + stride < n_heads:
                    high = min(high, starts[end + stride])
                for start in range(low, high + 1):
                    if best[start] == np.inf or best[start] > best[end]:
                        continue
                    error = best[start] + _joined(
                        seam - start,
                        b,
                        tails,
                        tail_totals,
                        tail_spreads,
                        heads,
                        head_totals,
                        head_spreads,
                    )
                    if error <= best[end]:
                        best[end], starts[end] = error, start
            stride //= 2
    return _labels_of(starts, order), float(best[n])


@kernel
def best_opening(
    X: Floats, weights: Floats, order: Integers, k: int, openings: Integers
) -> tuple[int, float]:
    """Where to open a closed sequence so that its best cut is least: opening, SSE.

    `openings` are ascending positions below 2k. No group is longer than 2k - 1, so a group begins
    at one of the positions 0 .. 2k - 2: with all of them the cut is the best of the closed
    sequence. Groups are priced once and serve all openings: O(n k (d + openings)) time and
    O(k (d + openings)) memory.
    """
    n, d = X.shape
    n_openings, ring = openings.shape[0], 3 * k
    best = np.full((ring, n_openings), np.inf)  # row p % ring: the errors of cuts up to p
    tails, tail_totals, tail_spreads = np.empty((2 * k, d)), np.empty(2 * k), np.empty(2 * k)
    heads, head_totals, head_spreads = np.empty((k, d)), np.empty(k), np.empty(k)
    best[0, openings == 0] = 0.0
    found, least = -1, np.inf
    for seam in range(0, n + openings[n_openings - 1], k):
        n_tails = min(2 * k - 2, seam)
        _running(X, weights, order, seam, 1, k, heads, head_totals, head_spreads)
        _running(X, weights, order, seam, -1, n_tails, tails, tail_totals, tail_spreads)
        for b in range(k):
            end = seam + b + 1
            here = best[end % ring]
            for s in range(n_openings):
                here[s] = 0.0 if openings[s] == end else np.inf
            for a in range(max(-1, k - b - 2), min(n_tails, 2 * k - 2 - b)):
                error = head_spreads[b]
                if a >= 0:
                    squares = 0.0
                    for j in range(d):
                        difference = heads[b, j] - tails[a, j]
                        squares += difference * difference
                    together = tail_totals[a] + head_totals[b]
                    error += tail_spreads[a]
                    error += tail_totals[a] * head_totals[b] / together * squares
                before = best[(seam - a - 1) % ring]
                for s in range(n_openings):
                    here[s] = min(here[s], before[s] + error)
            for s in range(n_openings):
                if end == n + openings[s] and here[s] < least:
                    found, least = openings[s], here[s]
    return found, least
