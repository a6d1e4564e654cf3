"""Sequences of records: where to cut one into groups of k to 2k - 1, and how to make one short.

*Cuts* have the least squared error. Groups of 2k or more can be split in two without breaking k or
raising the error, so no group needs to be longer than 2k - 1 (Domingo-Ferrer and Mateo-Sanz 2002).
The best cut of the first `end` records is the best cut of the first `start` ones plus the group
between them: a shortest path (Hansen and Mukherjee 2003).

All groups are priced without a subtraction of sums. The sequence is walked in blocks of k; a group
that ends in a block but is at least k long reaches back over the block's beginning, the *seam*.
Left of the seam it is a tail, right of it a head, and

    spread(tail + head) = spread(tail) + spread(head) + |mean(tail) - mean(head)|² · wt·wh / (wt+wh)

with running means taken relative to the record at the seam. Nothing cancels, so neither a large
offset nor an outlier far away costs digits.

A *tour* is closed and visits distinct records: greedy edges, then 2-opt and Or-opt. Both
improvements look only at edges to near neighbours, and a record whose surroundings did not
change since it last failed to improve is not looked at again (don't-look bits). The tour is an
array; a move reverses the shorter of the two paths it could reverse.
"""

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .groups import distance_between
from .neighbours import all_rows, nearest_row, remove_row

# Records reversed in one move, at most: a move costs what it reverses, so this keeps the time near-
# linear (Bentley 1992 limits reversals, too). A guess; tours of up to 50,000 records never meet it.
LONGEST = 25_000
SEGMENT = 3  # records moved together by Or-opt, at most, as Or (1976) has it
GAIN = 1e-10  # share of the lengths involved that counts as a gain; guards against rounding


class Side(NamedTuple):
    """Groups on one side of a seam: row a has the a + 1 records nearest to it."""

    means: Floats  # (rows, d) relative to the record at the seam
    totals: Floats  # (rows,) weights
    spreads: Floats  # (rows,) squared errors


@kernel
def _sides(k: int, d: int) -> tuple[Side, Side]:
    """Room for the tails and the heads of a seam."""
    tails = Side(np.empty((2 * k, d)), np.empty(2 * k), np.empty(2 * k))
    return tails, Side(np.empty((k, d)), np.empty(k), np.empty(k))


@kernel
def _running(
    X: Floats, weights: Floats, order: Integers, seam: int, step: int, count: int, side: Side
) -> None:
    """Fill the first rows of a side; step = 1 walks right, -1 left; positions wrap around."""
    means, totals, spreads = side
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
def labels_of_cut(starts: Integers, order: Integers) -> Integers:
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
    left, right = _sides(k, d)
    (tails, tail_totals, tail_spreads), (heads, head_totals, head_spreads) = left, right
    for seam in range(0, n, k):
        n_heads, n_tails = min(k, n - seam), min(2 * k - 2, seam)
        _running(X, weights, order, seam, 1, n_heads, right)
        _running(X, weights, order, seam, -1, n_tails, left)
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
    return labels_of_cut(starts, order), float(best[n])


@kernel
def _joined(a: int, b: int, left: Side, right: Side) -> float:
    """Spread of the a values left of the seam and the b + 1 values right of it."""
    if a == 0:
        return float(right.spreads[b])
    difference = right.means[b, 0] - left.means[a - 1, 0]
    weight = left.totals[a - 1] * right.totals[b] / (left.totals[a - 1] + right.totals[b])
    apart = weight * difference * difference
    return float(left.spreads[a - 1] + right.spreads[b] + apart)


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
    left, right = _sides(k, 1)
    widest = 1
    while widest < k:
        widest *= 2
    for seam in range(0, n, k):
        n_heads, n_tails = min(k, n - seam), min(2 * k - 2, seam)
        _running(values, weights, order, seam, 1, n_heads, right)
        _running(values, weights, order, seam, -1, n_tails, left)
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
                    error = best[start] + _joined(seam - start, b, left, right)
                    if error <= best[end]:
                        best[end], starts[end] = error, start
            stride //= 2
    return labels_of_cut(starts, order), float(best[n])


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
    left, right = _sides(k, d)
    (tails, tail_totals, tail_spreads), (heads, head_totals, head_spreads) = left, right
    best[0, openings == 0] = 0.0
    found, least = -1, np.inf
    for seam in range(0, n + openings[n_openings - 1], k):
        n_tails = min(2 * k - 2, seam)
        _running(X, weights, order, seam, 1, k, right)
        _running(X, weights, order, seam, -1, n_tails, left)
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


@kernel
def _root(parents: Integers, a: int) -> int:
    """Return the representative of a's fragment; halve the way for the next who asks."""
    while parents[a] != a:
        parents[a] = parents[parents[a]]
        a = parents[a]
    return a


@kernel
def greedy_tour(X: Floats, edges: Integers) -> Integers:
    """Join records by the shortest edges that keep paths paths, then the paths end to end.

    `edges` has shape (e, 2), shortest first. The open ends are joined nearest next.
    """
    n = X.shape[0]
    parents = np.arange(n)
    links = np.full((n, 2), -1)
    for e in range(edges.shape[0]):
        a, b = edges[e]
        if links[a, 1] >= 0 or links[b, 1] >= 0:
            continue
        root_a, root_b = _root(parents, a), _root(parents, b)
        if root_a == root_b:
            continue
        parents[root_a] = root_b
        links[a, 0 if links[a, 0] < 0 else 1] = b
        links[b, 0 if links[b, 0] < 0 else 1] = a
    ends, numbers, n_ends = np.empty(n, dtype=np.int64), np.full(n, -1), 0
    points = np.empty(X.shape)
    for a in range(n):
        if links[a, 1] < 0:
            ends[n_ends], numbers[a] = a, n_ends
            for j in range(X.shape[1]):
                points[n_ends, j] = X[a, j]
            n_ends += 1
    points = points[:n_ends]
    remaining = all_rows(points)
    order = np.empty(n, dtype=np.int64)
    done, entered = 0, 0
    while entered >= 0:
        before, here = -1, ends[entered]
        remove_row(remaining, entered)
        while True:
            order[done] = here
            done += 1
            onward = links[here, 0] if links[here, 0] != before else links[here, 1]
            if onward < 0:
                break
            before, here = here, onward
        if numbers[here] != entered:
            remove_row(remaining, numbers[here])
        entered = nearest_row(remaining, points, numbers[here])
    return order


@kernel
def _reverse(tour: Integers, places: Integers, first: int, last: int) -> None:
    """Reverse the path from one record on to another, or everything else if that is shorter."""
    n = tour.shape[0]
    i, j = places[first], places[last]
    length = (j - i) % n + 1
    if 2 * length > n:
        i, j, length = (j + 1) % n, (i - 1) % n, n - length
    for _ in range(length // 2):
        a, b = tour[i], tour[j]
        tour[i], tour[j] = b, a
        places[b], places[a] = i, j
        i, j = (i + 1) % n, (j - 1) % n


@kernel
def _two_opt(
    X: Floats, neighbours: Integers, tour: Integers, places: Integers, looks: Integers, a: int
) -> bool:
    """Replace an edge at record a and another one by two shorter ones, if there is such a pair."""
    n = tour.shape[0]
    for step in (1, -1):
        b = tour[(places[a] + step) % n]
        own = distance_between(X, a, b)
        for c in neighbours[a]:
            new = distance_between(X, a, c)
            if new >= own:
                break
            e = tour[(places[c] + step) % n]
            if c == b or e == a:
                continue
            gain = own + distance_between(X, c, e) - new - distance_between(X, b, e)
            if gain <= GAIN * own:
                continue
            first, last = (b, c) if step > 0 else (a, e)
            length = (places[last] - places[first]) % n + 1
            if min(length, n - length) > LONGEST:
                continue
            _reverse(tour, places, first, last)
            for changed in (a, b, c, e):
                looks[changed] = 1
            return True
    return False


@kernel
def _move_path(
    tour: Integers, places: Integers, step: int, a: int, b: int, q: int, x: int, a_to_x: bool
) -> None:
    """Turn  p a..b q..x y  (seen along the step) into  p q..x a..b y  or  p q..x b..a y."""
    n = tour.shape[0]
    # Three reversals: p x..q b..a y, then p q..x b..a y, then a..b. Each may have turned the array
    # around, so the direction of a path is read off before it is reversed.
    if step > 0:
        _reverse(tour, places, a, x)
    else:
        _reverse(tour, places, x, a)
    if (places[q] - places[x]) % n < (places[b] - places[x]) % n:
        _reverse(tour, places, x, q)
    else:
        _reverse(tour, places, q, x)
    if a_to_x:
        if (places[a] - places[b]) % n < (places[b] - places[a]) % n:
            _reverse(tour, places, b, a)
        else:
            _reverse(tour, places, a, b)


@kernel
def _or_opt(
    X: Floats, neighbours: Integers, tour: Integers, places: Integers, looks: Integers, a: int
) -> bool:
    """Move a path of up to three records that begins or ends at a next to a neighbour of a."""
    n = tour.shape[0]
    for step in (1, -1):
        p = tour[(places[a] - step) % n]
        for count in range(1, SEGMENT + 1):
            b = tour[(places[a] + step * (count - 1)) % n]
            q = tour[(places[b] + step) % n]
            freed = distance_between(X, p, a) + distance_between(X, b, q)
            freed -= distance_between(X, p, q)
            for c in neighbours[a]:
                new = distance_between(X, a, c)
                if new >= freed:
                    break
                for side in (1, -1):  # the path goes between c and the record on this side
                    e = tour[(places[c] + side * step) % n]
                    c_ahead = (places[c] - places[a]) * step % n
                    e_ahead = (places[e] - places[a]) * step % n
                    if min(c_ahead, e_ahead) < count:  # on the path itself
                        continue
                    gain = freed + distance_between(X, c, e) - new - distance_between(X, b, e)
                    x, y = (c, e) if side > 0 else (e, c)
                    span = (places[x] - places[a]) * step % n + 1
                    if gain <= GAIN * freed or min(span, n - span) > LONGEST:
                        continue
                    _move_path(tour, places, step, a, b, q, x, c == x)
                    for changed in (p, a, b, q, x, y):
                        looks[changed] = 1
                    return True
    return False


@kernel
def shorten(X: Floats, neighbours: Integers, tour: Integers) -> Integers:
    """Improve a closed tour of 8 records or more until no move to a neighbour shortens it.

    `neighbours` has shape (n, m): the nearest other records of each, nearest first.
    """
    n = tour.shape[0]
    tour, places = tour.copy(), np.empty(n, dtype=np.int64)
    for p in range(n):
        places[tour[p]] = p
    looks = np.ones(n, dtype=np.int64)
    all_looked, improved = True, True
    while improved or not all_looked:
        # Bits wake only the ends of changed edges, which misses a few moves: once nobody is awake,
        # everybody looks again, and the tour is done when that finds nothing.
        all_looked = not improved
        if all_looked:
            for a in range(n):
                looks[a] = 1
        improved = False
        for a in range(n):
            while looks[a] == 1:
                looks[a] = 0
                if _two_opt(X, neighbours, tour, places, looks, a) or _or_opt(
                    X, neighbours, tour, places, looks, a
                ):
                    improved = True
    return tour
