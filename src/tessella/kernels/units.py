"""Groups of at least k distinct units, where a unit (a household, a firm, a patient) may have
several records.

A group may hold any number of records of a unit. One with 2k or more units can be split in two
without breaking k or raising the error, so no group needs more than 2k - 1 units; a group has no
largest number of records. Hence groups are rings of records, and *capacity* counts units. How many
units a group holds is counted move by move: whether it holds another record of a unit is looked up
among the records of the unit or those of the group, whichever are fewer.

*Balls*: a record and the nearest others, until k units are met. All records of a ball stay
together: those of an isolated unit need k - 1 others once, and not one by one.

*Annealing* is that of `random_moves`, with units counted: the same four moves, and
records that are *pulled*, since the nearest records of an isolated one may all be of its own unit.
"""

from typing import Any, NamedTuple

import numpy as np

from .._types import Bytes, Floats, Integers, SmallIntegers
from . import kernel
from .groups import insert, members_of, squared_distance
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


class Rings(NamedTuple):
    """A partition of records; the records of a group are a ring."""

    X: Floats
    weights: Floats
    units: Integers  # (n,)
    rows: Integers  # (n,) by unit
    begins: Integers  # (units + 1,) where the rows of each unit begin
    labels: Integers  # (n,); -1 for a record in no group
    after: Integers  # (n,) the next record of the ring
    before: Integers  # (n,)
    heads: Integers  # (groups,) a record of each group
    sizes: Integers  # (groups,) records
    held: Integers  # (groups,) units
    masses: Floats  # (groups,) weights
    centres: Floats  # (groups, d)


@kernel
def has_unit(rings: Rings, i: Any, g: int) -> bool:
    """Say whether group g holds a record of i's unit other than i."""
    u = rings.units[i]
    first, last = rings.begins[u], rings.begins[u + 1]
    if last - first <= rings.sizes[g]:
        for a in range(first, last):
            j = rings.rows[a]
            if rings.labels[j] == g and j != i:
                return True
        return False
    j = rings.heads[g]
    for _ in range(rings.sizes[g]):
        if rings.units[j] == u and j != i:
            return True
        j = rings.after[j]
    return False


@kernel
def leave(rings: Rings, i: Any) -> None:
    """Take record i out of its group, which keeps at least one record or becomes empty."""
    g, w = rings.labels[i], rings.weights[i]
    rings.held[g] -= not has_unit(rings, i, g)
    a, b = rings.before[i], rings.after[i]
    rings.after[a], rings.before[b], rings.heads[g] = b, a, b
    rings.labels[i] = -1
    rings.sizes[g] -= 1
    rings.masses[g] -= w
    if rings.sizes[g] > 0:
        share = w / rings.masses[g]
        for q in range(rings.X.shape[1]):
            rings.centres[g, q] -= share * (rings.X[i, q] - rings.centres[g, q])


@kernel
def join(rings: Rings, i: Any, g: int) -> None:
    """Put record i, now in no group, into group g."""
    w = rings.weights[i]
    if rings.sizes[g] == 0:
        rings.masses[g], rings.held[g] = w, 1
        rings.heads[g] = rings.after[i] = rings.before[i] = i
        for q in range(rings.X.shape[1]):
            rings.centres[g, q] = rings.X[i, q]
    else:
        rings.held[g] += not has_unit(rings, i, g)
        b = rings.heads[g]
        a = rings.before[b]
        rings.after[a], rings.before[i], rings.after[i], rings.before[b] = i, a, b, i
        rings.masses[g] += w
        share = w / rings.masses[g]
        for q in range(rings.X.shape[1]):
            rings.centres[g, q] += share * (rings.X[i, q] - rings.centres[g, q])
    rings.labels[i] = g
    rings.sizes[g] += 1


@kernel
def joining(rings: Rings, i: Any, g: int) -> float:
    """By how much the SSE rises when record i joins group g."""
    w, W = rings.weights[i], rings.masses[g]
    return float(squared_distance(rings.X, i, rings.centres, g) * W * w / (W + w))


@kernel
def leaving(rings: Rings, i: Any) -> float:
    """By how much the SSE falls when record i leaves its group."""
    g = rings.labels[i]
    w, W = rings.weights[i], rings.masses[g]
    return float(squared_distance(rings.X, i, rings.centres, g) * W * w / (W - w))


@kernel
def may_swap(rings: Rings, i: Any, t: Any, k: int) -> bool:
    """Say whether both groups keep k units, and get no more than 2k - 1, if i and t swap."""
    if rings.units[i] == rings.units[t]:
        return True
    g, h = rings.labels[i], rings.labels[t]
    in_g = rings.held[g] - (not has_unit(rings, i, g)) + (not has_unit(rings, t, g))
    in_h = rings.held[h] - (not has_unit(rings, t, h)) + (not has_unit(rings, i, h))
    return bool(k <= min(in_g, in_h) and max(in_g, in_h) < 2 * k)


@kernel
def dissolve(
    rings: Rings, near: SmallIntegers, g: int, k: int, allowance: float, moved: Integers
) -> bool:
    """Give the records of group g to near groups with room; return whether it was worth it."""
    count, n_moved = near.shape[1], 0
    looks = min(LOOKS, count)
    i = rings.heads[g]
    for _ in range(rings.sizes[g]):
        allowance += rings.weights[i] * squared_distance(rings.X, i, rings.centres, g)
        i = rings.after[i]
    while rings.sizes[g] > 0 and allowance >= 0.0:
        i = rings.heads[g]
        best, target = np.inf, -1
        for r in range(looks):
            h = rings.labels[near[i, r * count // looks]]
            if h in (g, target):
                continue
            cost = joining(rings, i, h)
            if cost < best and (rings.held[h] < 2 * k - 1 or has_unit(rings, i, h)):
                best, target = cost, h
        if target < 0:
            break
        allowance -= best
        leave(rings, i)
        join(rings, i, target)
        moved[n_moved] = i
        n_moved += 1
    if rings.sizes[g] == 0 and allowance >= 0.0:
        return True
    for a in range(n_moved - 1, -1, -1):
        leave(rings, moved[a])
        join(rings, moved[a], g)
    return False


@kernel
def open_group(
    rings: Rings, near: SmallIntegers, i: Any, new: int, k: int, one_each: bool, allowance: float,
    moved: Integers, origin: Integers,
) -> bool:  # fmt: skip
    """Open an empty group with i and the nearest records that may leave, until it has k units.

    With `one_each` it takes one record of a unit. Returns whether k units were found and were
    worth it; otherwise all are back in their groups of `origin`.
    """
    n_moved = 0
    for r in range(-1, near.shape[1]):
        x = i if r < 0 else np.int64(near[i, r])
        h = rings.labels[x]
        if h == new or (n_moved > 0 and one_each and has_unit(rings, x, new)):
            continue
        if rings.held[h] <= k and not has_unit(rings, x, h):
            continue
        allowance += leaving(rings, x)
        leave(rings, x)
        if n_moved > 0:
            allowance -= joining(rings, x, new)
        join(rings, x, new)
        moved[n_moved], origin[n_moved] = x, h
        n_moved += 1
        if rings.held[new] == k:
            break
    if n_moved > 0 and rings.held[new] == k and allowance >= 0.0:
        return True
    for a in range(n_moved - 1, -1, -1):
        leave(rings, moved[a])
        join(rings, moved[a], origin[a])
    return False


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
    count, n_groups = near.shape[1], n // k
    stream = start_stream(seed, number)
    rows, begins = members_of(units, n_units)
    rings = Rings(
        X, weights, units, rows, begins, np.full(n, -1), np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64), np.empty(n_groups, dtype=np.int64),
        np.zeros(n_groups, dtype=np.int64), np.zeros(n_groups, dtype=np.int64),
        np.zeros(n_groups), np.zeros((n_groups, d)),
    )  # fmt: skip
    sizes, held, own = rings.sizes, rings.held, rings.labels
    for i in range(n):
        join(rings, i, labels[i])
    free, n_free = np.empty(n_groups, dtype=np.int64), 0
    for g in range(n_groups):
        if sizes[g] == 0:
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
            if own[j] == own[i]:
                continue
            if draw(stream) < PULLED:
                i, j = j, i
            g, h = own[i], own[j]
            if (
                draw(stream) < 0.5
                and (held[g] > k or has_unit(rings, i, g))
                and (held[h] < 2 * k - 1 or has_unit(rings, i, h))
            ):
                cost = joining(rings, i, h) - leaving(rings, i)
                if cost <= 0.0 or cost < -temperature * np.log(draw(stream)):
                    leave(rings, i)
                    join(rings, i, h)
            else:
                t = j
                for _ in range(1 + draw_below(stream, min(WALK, sizes[h] - 1))):
                    t = rings.after[t]
                cost = swap_cost(X, weights, i, t, g, h, rings.masses, rings.centres)
                if (cost <= 0.0 or cost < -temperature * np.log(draw(stream))) and may_swap(
                    rings, i, t, k
                ):
                    leave(rings, i)
                    leave(rings, t)
                    join(rings, i, h)
                    join(rings, t, g)
            continue
        g = own[i]
        allowance = -temperature * np.log(1.0 - draw(stream))
        if kind < 0.5 * structural:
            if (
                held[g] <= k + 1
                and (sizes[g] <= LARGE * k or draw(stream) * sizes[g] < LARGE * k)
                and dissolve(rings, near, g, k, allowance, moved)
            ):
                free[n_free] = g
                n_free += 1
        elif n_free > 0:
            n_free -= open_group(
                rings, near, i, free[n_free - 1], k, draw(stream) < 0.5, allowance, moved, origin
            )
    labels[:] = own
