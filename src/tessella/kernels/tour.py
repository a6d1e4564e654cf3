"""A short closed tour through distinct records: greedy edges, then 2-opt and Or-opt.

Both improvements look only at edges to near neighbours, and a record whose surroundings did not
change since it last failed to improve is not looked at again (don't-look bits). The tour is an
array; a move reverses the shorter of the two paths it could reverse.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel
from .neighbours import all_rows, nearest_row, remove_row

# Records reversed in one move, at most: a move costs what it reverses, so this keeps the time near-
# linear (Bentley 1992 limits reversals, too). A guess; tours of up to 50,000 records never meet it.
LONGEST = 25_000
SEGMENT = 3  # records moved together by Or-opt, at most, as Or (1976) has it
GAIN = 1e-10  # share of the lengths involved that counts as a gain; guards against rounding


@kernel
def _length(X: Floats, a: int, b: int) -> float:
    """Euclidean distance of two records."""
    total = 0.0
    for j in range(X.shape[1]):
        difference = X[a, j] - X[b, j]
        total += difference * difference
    return float(np.sqrt(total))


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
        own = _length(X, a, b)
        for c in neighbours[a]:
            new = _length(X, a, c)
            if new >= own:
                break
            e = tour[(places[c] + step) % n]
            if c == b or e == a:
                continue
            gain = own + _length(X, c, e) - new - _length(X, b, e)
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
            freed = _length(X, p, a) + _length(X, b, q) - _length(X, p, q)
            for c in neighbours[a]:
                new = _length(X, a, c)
                if new >= freed:
                    break
                for side in (1, -1):  # the path goes between c and the record on this side
                    e = tour[(places[c] + side * step) % n]
                    c_ahead = (places[c] - places[a]) * step % n
                    e_ahead = (places[e] - places[a]) * step % n
                    if min(c_ahead, e_ahead) < count:  # on the path itself
                        continue
                    gain = freed + _length(X, c, e) - new - _length(X, b, e)
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
