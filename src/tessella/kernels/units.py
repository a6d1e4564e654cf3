"""Groups of at least k distinct units, where a unit (a household, a firm, a patient) may have
several records.

A group may hold any number of records of a unit. One with 2k or more units can be split in two
without breaking k or raising the error, so no group needs more than 2k - 1 units; a group has no
largest number of records. Hence groups are rings of records, and *capacity* counts units. A table
of groups and units counts records: a window keeps it small.

*Balls*: a record and the nearest others, until k units are met. All records of a ball stay
together: those of an isolated unit need k - 1 others once, and not one by one.

*Annealing* is that of `random_moves`, with units counted: the same four moves, and
records that are *pulled*, since the nearest records of an isolated one may all be of its own unit.
"""

from typing import Any

import numpy as np

from .._types import Bytes, Floats, Integers, SmallIntegers
from . import kernel
from .groups import insert, squared_distance
from .random_moves import (
    LOOKS,
    PLATEAUS,
    STRUCTURAL,
    draw,
    draw_below,
    start_stream,
    swap_cost,
)

WALK = 15  # records beyond the near one among which a partner of a swap is drawn
# Share of proposals in which the near record comes, instead of the record going there. A guess.
PULLED = 0.3
LARGE = 8  # times k: a group of more records is dissolved less often, as that takes longer


@kernel
def nearest_and_units(X: Floats, units: Integers, n_units: int, count: int) -> SmallIntegers:
    """List for each record, in turns, its nearest others and the nearest ones of other units.

    Shape (n, 2 count). Of each other unit only the nearest record is listed; where there are fewer
    units, they come again. A scan, as in `windows.scan_all`.
    """
    n, d = X.shape
    columns = np.ascontiguousarray(X.T)
    near = np.empty((n, 2 * count), dtype=np.int32)
    rows, distance = np.empty(count, dtype=np.int64), np.empty(count)
    least, which, exact = np.empty(n_units), np.empty(n_units, dtype=np.int64), np.empty(n)
    for i in range(n):
        exact[:] = 0.0
        for q in range(d):
            x, column = X[i, q], columns[q]
            for j in range(n):
                exact[j] += (x - column[j]) * (x - column[j])
        least[:] = np.inf
        held = 0
        for step in range(1, n):
            j = i + step if i + step < n else i + step - n
            if exact[j] < least[units[j]]:
                least[units[j]], which[units[j]] = exact[j], j
            if held < count or exact[j] < distance[count - 1]:
                held = insert(distance, rows, held, exact[j], j)
        for a in range(count):
            near[i, 2 * a] = rows[a]
        held = 0
        for u in range(n_units):
            if u != units[i] and (held < count or least[u] < distance[count - 1]):
                held = insert(distance, rows, held, least[u], which[u])
        for a in range(count):
            near[i, 2 * a + 1] = rows[a % held] if held > 0 else near[i, 2 * a]
    return near


@kernel
def start_of_units(
    X: Floats, order: Integers, starts: Integers, units: Integers, n_units: int, k: int
) -> Integers:
    """Take balls out of each tile: the record farthest from the tile's mean, with its nearest.

    A tile is left when it has fewer than 2k units; what is left goes on to the next one, which is
    near in space. In the end the records of fewer than k units are left, at -1.
    """
    n, d = X.shape
    labels = np.full(n, -1)
    left = np.empty(n, dtype=np.int64)
    remaining = np.zeros(n_units, dtype=np.int64)
    least, nearest, which = np.empty(n_units), np.empty(k), np.empty(k, dtype=np.int64)
    taken = np.full(n_units, -1)
    n_left, n_held, number, last = 0, 0, 0, starts.shape[0] - 2
    for t in range(last + 1):
        for a in range(starts[t], starts[t + 1]):
            left[n_left] = order[a]
            n_left += 1
            n_held += remaining[units[order[a]]] == 0
            remaining[units[order[a]]] += 1
        enough = k if t == last else min(2 * k, n_units)
        if n_held < enough:
            continue
        mean = np.zeros((1, d))
        for a in range(n_left):
            for q in range(d):
                mean[0, q] += X[left[a], q] / n_left
        far = np.empty(n_left)
        for a in range(n_left):
            far[a] = -squared_distance(X, left[a], mean, 0)
        left[:n_left] = left[:n_left][np.argsort(far, kind="mergesort")]
        distance = np.empty(n_left)
        while n_held >= enough:
            for a in range(n_left):
                least[units[left[a]]] = np.inf
            for a in range(n_left):
                distance[a] = squared_distance(X, left[a], X, left[0])
                u = units[left[a]]
                least[u] = min(least[u], distance[a])
            # The ball ends at the k-th nearest unit; of records as far as that one it takes those
            # that bring a unit which is missing, the first ones.
            held = 0
            for a in range(n_left):
                u = units[left[a]]
                if distance[a] == least[u]:
                    least[u] = -1.0
                    held = insert(nearest, which, held, distance[a], u)
            bound, n_taken, kept = nearest[k - 1], 0, 0
            for a in range(n_left):
                u = units[left[a]]
                if distance[a] < bound and taken[u] != number:
                    taken[u] = number
                    n_taken += 1
            for a in range(n_left):
                u = units[left[a]]
                take = distance[a] < bound
                if distance[a] == bound and taken[u] != number and n_taken < k:
                    take, taken[u] = True, number
                    n_taken += 1
                if take:
                    labels[left[a]] = number
                    remaining[u] -= 1
                    n_held -= remaining[u] == 0
                else:
                    left[kept] = left[a]
                    kept += 1
            n_left = kept
            number += 1
    return labels


# The state of a search is passed as plain arrays: each array of a tuple is counted, atomically,
# whenever it is looked at. `records` has labels (-1 in no group), units and the neighbours in the
# ring, `groups` a record of the group, its records and its units, `counts` the records of each unit
# in each group.
LABEL, UNIT, AFTER, BEFORE = 0, 1, 2, 3
HEAD, SIZE, HELD = 0, 1, 2


@kernel
def has_unit(records: Integers, counts: SmallIntegers, i: Any, g: int) -> bool:
    """Say whether group g holds a record of i's unit other than i."""
    return bool(counts[g, records[i, UNIT]] > (records[i, LABEL] == g))


@kernel
def leave(
    X: Floats, weights: Floats, records: Integers, groups: Integers, counts: SmallIntegers,
    masses: Floats, centres: Floats, i: Any,
) -> None:  # fmt: skip
    """Take record i out of its group, which keeps at least one record or becomes empty."""
    g, w = records[i, LABEL], weights[i]
    counts[g, records[i, UNIT]] -= 1
    groups[g, HELD] -= counts[g, records[i, UNIT]] == 0
    a, b = records[i, BEFORE], records[i, AFTER]
    records[a, AFTER], records[b, BEFORE], groups[g, HEAD] = b, a, b
    records[i, LABEL] = -1
    groups[g, SIZE] -= 1
    masses[g] -= w
    if groups[g, SIZE] > 0:
        share = w / masses[g]
        for q in range(X.shape[1]):
            centres[g, q] -= share * (X[i, q] - centres[g, q])


@kernel
def join(
    X: Floats, weights: Floats, records: Integers, groups: Integers, counts: SmallIntegers,
    masses: Floats, centres: Floats, i: Any, g: int,
) -> None:  # fmt: skip
    """Put record i, now in no group, into group g."""
    w = weights[i]
    if groups[g, SIZE] == 0:
        masses[g] = w
        groups[g, HEAD] = records[i, AFTER] = records[i, BEFORE] = i
        for q in range(X.shape[1]):
            centres[g, q] = X[i, q]
    else:
        b = groups[g, HEAD]
        a = records[b, BEFORE]
        records[a, AFTER], records[i, BEFORE], records[i, AFTER], records[b, BEFORE] = i, a, b, i
        masses[g] += w
        share = w / masses[g]
        for q in range(X.shape[1]):
            centres[g, q] += share * (X[i, q] - centres[g, q])
    groups[g, HELD] += counts[g, records[i, UNIT]] == 0
    counts[g, records[i, UNIT]] += 1
    records[i, LABEL] = g
    groups[g, SIZE] += 1


@kernel
def joining(X: Floats, weights: Floats, masses: Floats, centres: Floats, i: Any, g: int) -> float:
    """By how much the SSE rises when record i joins group g."""
    w, W = weights[i], masses[g]
    return float(squared_distance(X, i, centres, g) * W * w / (W + w))


@kernel
def leaving(X: Floats, weights: Floats, masses: Floats, centres: Floats, i: Any, g: int) -> float:
    """By how much the SSE falls when record i leaves its group."""
    w, W = weights[i], masses[g]
    return float(squared_distance(X, i, centres, g) * W * w / (W - w))


@kernel
def may_swap(
    records: Integers, groups: Integers, counts: SmallIntegers, i: Any, t: Any, k: int
) -> bool:
    """Say whether both groups keep k units, and get no more than 2k - 1, if i and t swap."""
    if records[i, UNIT] == records[t, UNIT]:
        return True
    g, h = records[i, LABEL], records[t, LABEL]
    in_g = (
        groups[g, HELD]
        - (not has_unit(records, counts, i, g))
        + (not has_unit(records, counts, t, g))
    )
    in_h = (
        groups[h, HELD]
        - (not has_unit(records, counts, t, h))
        + (not has_unit(records, counts, i, h))
    )
    return bool(k <= min(in_g, in_h) and max(in_g, in_h) < 2 * k)


@kernel
def dissolve(
    X: Floats, weights: Floats, records: Integers, groups: Integers, counts: SmallIntegers,
    masses: Floats, centres: Floats, near: SmallIntegers, g: int, k: int, allowance: float,
    moved: Integers,
) -> bool:  # fmt: skip
    """Give the records of group g to near groups with room; return whether it was worth it."""
    count, n_moved = near.shape[1], 0
    looks = min(LOOKS, count)
    i = groups[g, HEAD]
    for _ in range(groups[g, SIZE]):
        allowance += weights[i] * squared_distance(X, i, centres, g)
        i = records[i, AFTER]
    while groups[g, SIZE] > 0 and allowance >= 0.0:
        i = groups[g, HEAD]
        best, target = np.inf, -1
        for r in range(looks):
            h = records[near[i, r * count // looks], LABEL]
            if h in (g, target):
                continue
            cost = joining(X, weights, masses, centres, i, h)
            if cost < best and (groups[h, HELD] < 2 * k - 1 or has_unit(records, counts, i, h)):
                best, target = cost, h
        if target < 0:
            break
        allowance -= best
        leave(X, weights, records, groups, counts, masses, centres, i)
        join(X, weights, records, groups, counts, masses, centres, i, target)
        moved[n_moved] = i
        n_moved += 1
    if groups[g, SIZE] == 0 and allowance >= 0.0:
        return True
    for a in range(n_moved - 1, -1, -1):
        leave(X, weights, records, groups, counts, masses, centres, moved[a])
        join(X, weights, records, groups, counts, masses, centres, moved[a], g)
    return False


@kernel
def open_group(
    X: Floats, weights: Floats, records: Integers, groups: Integers, counts: SmallIntegers,
    masses: Floats, centres: Floats, near: SmallIntegers, i: Any, new: int, k: int, one_each: bool,
    allowance: float, moved: Integers, origin: Integers,
) -> bool:  # fmt: skip
    """Open an empty group with i and the nearest records that may leave, until it has k units.

    With `one_each` it takes one record of a unit. Returns whether k units were found and were
    worth it; otherwise all are back in their groups of `origin`.
    """
    n_moved = 0
    for r in range(-1, near.shape[1]):
        x = i if r < 0 else np.int64(near[i, r])
        h = records[x, LABEL]
        if h == new or (n_moved > 0 and one_each and has_unit(records, counts, x, new)):
            continue
        if groups[h, HELD] <= k and not has_unit(records, counts, x, h):
            continue
        allowance += leaving(X, weights, masses, centres, x, h)
        leave(X, weights, records, groups, counts, masses, centres, x)
        if n_moved > 0:
            allowance -= joining(X, weights, masses, centres, x, new)
        join(X, weights, records, groups, counts, masses, centres, x, new)
        moved[n_moved], origin[n_moved] = x, h
        n_moved += 1
        if groups[new, HELD] == k:
            break
    if n_moved > 0 and groups[new, HELD] == k and allowance >= 0.0:
        return True
    for a in range(n_moved - 1, -1, -1):
        leave(X, weights, records, groups, counts, masses, centres, moved[a])
        join(X, weights, records, groups, counts, masses, centres, moved[a], origin[a])
    return False


@kernel
def most_groups(units: Integers, n_units: int, k: int) -> int:
    """Return the largest number of groups of k units that the records suffice for.

    m groups have mk places for units, and a unit of c records takes min(c, m) of them. From above,
    the number falls until the places can be filled.
    """
    records = np.zeros(n_units, dtype=np.int64)
    for u in units:
        records[u] += 1
    m, fits = units.shape[0], units.shape[0] // k
    while fits < m:
        m = fits
        fits = np.minimum(records, m).sum() // k
    return int(m)


@kernel
def anneal_units(
    X: Floats, weights: Floats, units: Integers, n_units: int, near: SmallIntegers,
    labels: Integers, k: int, steps: int, hot: float, cold: float, seed: int, number: int,
    halt: Bytes,
) -> None:  # fmt: skip
    """Anneal the labelling in place, as `random_moves.anneal`, under groups of k units or more.

    `labels` (n,) is a partition into groups of at least k units, numbered below n // k, and remains
    one after every move. A group of more than 2k - 1 units gets no further ones.
    """
    n, d = X.shape
    count, n_groups = near.shape[1], most_groups(units, n_units, k)
    stream = start_stream(seed, number)
    records, groups = np.full((n, 4), -1), np.zeros((n_groups, 3), dtype=np.int64)
    counts = np.zeros((n_groups, n_units), dtype=np.int32)
    masses, centres = np.zeros(n_groups), np.zeros((n_groups, d))
    records[:, UNIT] = units
    for i in range(n):
        join(X, weights, records, groups, counts, masses, centres, i, labels[i])
    free, n_free = np.empty(n_groups, dtype=np.int64), 0
    for g in range(n_groups):
        if groups[g, SIZE] == 0:
            free[n_free] = g
            n_free += 1
    moved, origin = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    structural = STRUCTURAL * min(1.0, 5.0 / k)
    plateau = max(1, steps // PLATEAUS)
    cooling = (cold / hot) ** (plateau / steps)
    temperature = hot
    for step in range(steps):
        if step % plateau == plateau - 1:
            temperature *= cooling
            if halt[0] != 0:
                break
        i = draw_below(stream, n)
        kind = draw(stream)
        if kind >= structural:
            towards = draw(stream)
            j: Any = np.int64(near[i, int(count * towards * towards)])
            if records[j, LABEL] == records[i, LABEL]:
                continue
            if draw(stream) < PULLED:
                i, j = j, i
            g, h = records[i, LABEL], records[j, LABEL]
            if (
                draw(stream) < 0.5
                and (groups[g, HELD] > k or has_unit(records, counts, i, g))
                and (groups[h, HELD] < 2 * k - 1 or has_unit(records, counts, i, h))
            ):
                cost = joining(X, weights, masses, centres, i, h)
                cost -= leaving(X, weights, masses, centres, i, g)
                if cost <= 0.0 or cost < -temperature * np.log(draw(stream)):
                    leave(X, weights, records, groups, counts, masses, centres, i)
                    join(X, weights, records, groups, counts, masses, centres, i, h)
            else:
                t = j
                for _ in range(1 + draw_below(stream, min(WALK, groups[h, SIZE] - 1))):
                    t = records[t, AFTER]
                cost = swap_cost(X, weights, i, t, g, h, masses, centres)
                if (cost <= 0.0 or cost < -temperature * np.log(draw(stream))) and may_swap(
                    records, groups, counts, i, t, k
                ):
                    leave(X, weights, records, groups, counts, masses, centres, i)
                    leave(X, weights, records, groups, counts, masses, centres, t)
                    join(X, weights, records, groups, counts, masses, centres, i, h)
                    join(X, weights, records, groups, counts, masses, centres, t, g)
            continue
        g = records[i, LABEL]
        allowance = -temperature * np.log(1.0 - draw(stream))
        if kind < 0.5 * structural:
            if groups[g, HELD] > k + 1 or draw(stream) * groups[g, SIZE] >= LARGE * k:
                continue
            if dissolve(
                X, weights, records, groups, counts, masses, centres, near, g, k, allowance, moved
            ):
                free[n_free] = g
                n_free += 1
        elif n_free > 0:
            n_free -= open_group(
                X, weights, records, groups, counts, masses, centres, near, i, free[n_free - 1], k,
                draw(stream) < 0.5, allowance, moved, origin,
            )  # fmt: skip
    labels[:] = records[:, LABEL]
