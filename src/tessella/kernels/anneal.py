"""Simulated annealing of one window of records under groups of k to 2k - 1.

The state is a labelling with, for each group, its members, total weight and centre, all kept up
to date move by move. Four moves, each proposed from a list of near records:

- *relocate*: a record leaves a group with more than k for the group of a near record;
- *swap*: a record changes places with a member of the group of a near record;
- *dissolve*: a small group is given up, each member joins the best group near it;
- *open*: a record and the nearest that may leave their groups form a new group.

Costs are differences of SSE in centre form, exact up to rounding. With a group of weight W and
centre c, a record (w, x) that joins adds W w / (W + w) |x - c|^2, one that leaves takes away
W w / (W - w) |x - c|^2; and when a record (w, x) leaves while (w', x') joins, with u = x - c and
v = x' - c, the change is w'|v|^2 - w|u|^2 - |w' v - w u|^2 / (W - w + w').
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Bytes, Floats, Integers, SmallIntegers
from ._jit import kernel
from .chance import draw, draw_below, start_stream

# Share of proposals that dissolve or open a group, for k up to 5. Between 0.02 and 0.2 the result
# hardly changes. Such a move costs as much as 16 k others, so the share falls as k grows.
STRUCTURAL = 0.05
# Near records whose groups a record of a dissolved group may join.
LOOKS = 16
# The temperature falls geometrically, in this many plateaus.
PLATEAUS = 256


# Windows of fewer records than this are scanned in double precision alone.
SCREENED = 512
HALVINGS = 16  # of the range of least distances: the limit is then within 1 % of the best


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
def insert(distance: Floats, near: SmallIntegers, held: int, total: float, j: int) -> int:
    """Put a record into a list by distance, and return how many it holds; the farthest may go."""
    place = min(held, len(distance) - 1)
    while place > 0 and distance[place - 1] > total:
        distance[place] = distance[place - 1]
        near[place] = near[place - 1]
        place -= 1
    distance[place] = total
    near[place] = j
    return min(held + 1, len(distance))


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


@kernel
def leave(
    X: Floats, weights: Floats, i: Any, labels: Integers, size: Integers, mass: Floats,
    centre: Floats, member: Integers, place: Integers,
) -> None:  # fmt: skip
    """Take record i out of its group, which keeps at least one record or becomes empty."""
    g, w = labels[i], weights[i]
    last = member[g, size[g] - 1]
    member[g, place[i]] = last
    place[last] = place[i]
    size[g] -= 1
    mass[g] -= w
    if size[g] > 0:
        share = w / mass[g]
        for q in range(X.shape[1]):
            centre[g, q] -= share * (X[i, q] - centre[g, q])


@kernel
def join(
    X: Floats, weights: Floats, i: Any, g: int, labels: Integers, size: Integers, mass: Floats,
    centre: Floats, member: Integers, place: Integers,
) -> None:  # fmt: skip
    """Put record i, now in no group, into group g."""
    w = weights[i]
    if size[g] == 0:
        mass[g] = w
        for q in range(X.shape[1]):
            centre[g, q] = X[i, q]
    else:
        mass[g] += w
        share = w / mass[g]
        for q in range(X.shape[1]):
            centre[g, q] += share * (X[i, q] - centre[g, q])
    labels[i] = g
    place[i] = size[g]
    member[g, size[g]] = i
    size[g] += 1


@kernel
def squared_distance(X: Floats, i: Any, centre: Floats, g: int) -> Any:
    """Squared distance from record i to the centre of group g."""
    total = 0.0
    for q in range(X.shape[1]):
        difference = X[i, q] - centre[g, q]
        total += difference * difference
    return total


@kernel
def swap_cost(
    X: Floats, weights: Floats, i: int, t: int, g: int, h: int, mass: Floats, centre: Floats
) -> Any:
    """Change of SSE when record i of group g and record t of group h change places."""
    wi, wt = weights[i], weights[t]
    spread, moved_g, moved_h = 0.0, 0.0, 0.0
    for q in range(X.shape[1]):
        from_g, to_g = X[i, q] - centre[g, q], X[t, q] - centre[g, q]
        from_h, to_h = X[t, q] - centre[h, q], X[i, q] - centre[h, q]
        spread += wt * (to_g * to_g - from_h * from_h) + wi * (to_h * to_h - from_g * from_g)
        step_g, step_h = wt * to_g - wi * from_g, wi * to_h - wt * from_h
        moved_g += step_g * step_g
        moved_h += step_h * step_h
    return spread - moved_g / (mass[g] - wi + wt) - moved_h / (mass[h] - wt + wi)


@kernel
def swap(
    X: Floats, weights: Floats, i: int, t: int, labels: Integers, mass: Floats,
    centre: Floats, member: Integers, place: Integers,
) -> None:  # fmt: skip
    """Let records i and t change places."""
    g, h = labels[i], labels[t]
    wi, wt = weights[i], weights[t]
    mass[g] += wt - wi
    mass[h] += wi - wt
    for q in range(X.shape[1]):
        centre[g, q] += (wt * (X[t, q] - centre[g, q]) - wi * (X[i, q] - centre[g, q])) / mass[g]
        centre[h, q] += (wi * (X[i, q] - centre[h, q]) - wt * (X[t, q] - centre[h, q])) / mass[h]
    member[g, place[i]], member[h, place[t]] = t, i
    place[i], place[t] = place[t], place[i]
    labels[i], labels[t] = h, g


@kernel
def anneal(
    X: Floats, weights: Floats, near: SmallIntegers, labels: Integers, k: int, steps: int,
    hot: float, cold: float, seed: int, number: int, halt: Bytes,
) -> None:  # fmt: skip
    """Anneal the labelling in place, from temperature hot to cold.

    The labelling is a valid partition after every move; when halt[0] is set from outside, the
    kernel returns within a plateau.

    Parameters
    ----------
    X, weights : arrays of shape (n, d) and (n,)
    near : array of shape (n, count)
        For each record, others that it may be grouped with, nearest first.
    labels : array of shape (n,)
        A partition into groups of k to 2k - 1, numbered below n // k. Changed in place.
    """
    n, d = X.shape
    count, cap, n_groups = near.shape[1], 2 * k - 1, n // k
    stream = start_stream(seed, number)
    size = np.zeros(n_groups, dtype=np.int64)
    mass = np.zeros(n_groups)
    centre = np.zeros((n_groups, d))
    member = np.empty((n_groups, cap), dtype=np.int64)
    place = np.empty(n, dtype=np.int64)
    for i in range(n):
        join(X, weights, i, labels[i], labels, size, mass, centre, member, place)
    free = np.empty(n_groups, dtype=np.int64)
    n_free = 0
    for g in range(n_groups):
        if size[g] == 0:
            free[n_free] = g
            n_free += 1
    moved = np.empty(cap, dtype=np.int64)
    origin = np.empty(cap, dtype=np.int64)
    structural = STRUCTURAL * min(1.0, 5.0 / k)
    looks = min(LOOKS, count)
    plateau = max(1, steps // PLATEAUS)
    cooling = (cold / hot) ** (plateau / steps)
    temperature = hot
    for step in range(steps):
        if step % plateau == plateau - 1:
            temperature *= cooling
            if halt[0] != 0:
                return
        i = draw_below(stream, n)
        g = labels[i]
        kind = draw(stream)
        if kind >= structural:
            towards = draw(stream)
            j = near[i, int(count * towards * towards)]
            h = labels[j]
            if h == g:
                continue
            if size[g] > k and size[h] < cap and draw(stream) < 0.5:
                w = weights[i]
                cost = squared_distance(X, i, centre, h) * mass[h] * w / (mass[h] + w)
                cost -= squared_distance(X, i, centre, g) * mass[g] * w / (mass[g] - w)
                if cost <= 0.0 or cost < -temperature * np.log(draw(stream)):
                    leave(X, weights, i, labels, size, mass, centre, member, place)
                    join(X, weights, i, h, labels, size, mass, centre, member, place)
            else:
                t = member[h, draw_below(stream, size[h])]
                if t == j:  # the near record is the reason to go there
                    continue
                cost = swap_cost(X, weights, i, t, g, h, mass, centre)
                if cost <= 0.0 or cost < -temperature * np.log(draw(stream)):
                    swap(X, weights, i, t, labels, mass, centre, member, place)
            continue
        allowance = -temperature * np.log(1.0 - draw(stream))
        held = 0
        if kind < 0.5 * structural:
            # Larger groups are not worth giving up: their records have relocations open to them.
            if size[g] > k + 1:
                continue
            for a in range(size[g]):
                allowance += weights[member[g, a]] * squared_distance(X, member[g, a], centre, g)
            while size[g] > 0 and allowance >= 0.0:
                x = member[g, size[g] - 1]
                w = weights[x]
                best, target = np.inf, -1
                for r in range(looks):
                    h = labels[near[x, r * count // looks]]
                    if h == g or size[h] >= cap:
                        continue
                    cost = squared_distance(X, x, centre, h) * mass[h] * w / (mass[h] + w)
                    if cost < best:
                        best, target = cost, h
                if target < 0:
                    break
                allowance -= best
                leave(X, weights, x, labels, size, mass, centre, member, place)
                join(X, weights, x, target, labels, size, mass, centre, member, place)
                moved[held], origin[held] = x, g
                held += 1
            if size[g] == 0 and allowance >= 0.0:
                free[n_free] = g
                n_free += 1
                continue
        else:
            if n_free == 0 or size[g] <= k:
                continue
            new = free[n_free - 1]
            for r in range(-1, count):
                x = i if r < 0 else np.int64(near[i, r])
                h = labels[x]
                if size[h] <= k or h == new:
                    continue
                w = weights[x]
                allowance += squared_distance(X, x, centre, h) * mass[h] * w / (mass[h] - w)
                if held > 0:
                    cost = squared_distance(X, x, centre, new) * mass[new] * w / (mass[new] + w)
                    allowance -= cost
                leave(X, weights, x, labels, size, mass, centre, member, place)
                join(X, weights, x, new, labels, size, mass, centre, member, place)
                moved[held], origin[held] = x, h
                held += 1
                if held == k:
                    break
            if held == k and allowance >= 0.0:
                n_free -= 1
                continue
        for a in range(held - 1, -1, -1):
            leave(X, weights, moved[a], labels, size, mass, centre, member, place)
            join(X, weights, moved[a], origin[a], labels, size, mass, centre, member, place)
