"""Annealing of groups that must keep conditions on their confidential values.

The moves are those of `random_moves`, and groups are rings of records as in `units`, for a group
that needs rare values may need any number of records. Whether a group keeps its conditions depends
on its members alone, so a move is first judged by its cost and then by walking round the one or two
groups that it changes: O(s log s) for s members and nothing kept beside, however many values the
confidential columns have.
"""

from typing import Any

import numpy as np

from .._types import Bytes, Floats, Integers, SmallIntegers
from . import kernel
from .diversity import fits, lack
from .groups import squared_distance
from .random_moves import LOOKS, PLATEAUS, draw, draw_below, start_stream, swap_cost
from .units import AFTER, HEAD, LABEL, LARGE, PULLED, SIZE, WALK, join, joining, leave, leaving

# Share of proposals that dissolve or open a group: less than in `random_moves`, as such a move
# judges groups for each record that it looks at, and takes most of the time from 0.05 on.
STRUCTURAL = 0.02


@kernel
def gather(
    records: Integers, groups: Integers, g: Any, without: Any, also: Any, members: Integers
) -> int:
    """List the members of group g without one record and with another; -1 for none."""
    count, i = 0, groups[g, HEAD]
    for _ in range(groups[g, SIZE]):
        if i != without:
            members[count] = i
            count += 1
        i = records[i, AFTER]
    if also >= 0:
        members[count] = also
        count += 1
    return count


@kernel
def may_change(
    records: Integers, groups: Integers, g: Any, without: Any, also: Any, k: int, codes: Integers,
    kinds: Integers, limits: Floats, tables: Floats, starts: Integers, members: Integers,
    room: Integers,
) -> bool:  # fmt: skip
    """Say whether group g keeps all conditions without one record and with another."""
    count = gather(records, groups, g, without, also, members)
    return fits(members, count, k, codes, kinds, limits, tables, starts, room)


@kernel
def same_codes(codes: Integers, i: Any, t: Any) -> bool:
    """Say whether two records count alike in every condition: groups stay what they are."""
    c = 0
    while c < codes.shape[1] and codes[i, c] == codes[t, c]:
        c += 1
    return bool(c == codes.shape[1])


@kernel
def dissolve(
    X: Floats, weights: Floats, records: Integers, groups: Integers, counts: SmallIntegers,
    masses: Floats, centres: Floats, near: SmallIntegers, g: int, k: int, most: int,
    codes: Integers, kinds: Integers, limits: Floats, tables: Floats, starts: Integers,
    allowance: float, moved: Integers, members: Integers, room: Integers,
) -> bool:  # fmt: skip
    """Give the records of group g to near groups that keep all conditions; return if worth it."""
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
            if h in (g, target) or groups[h, SIZE] >= most:
                continue
            cost = joining(X, weights, masses, centres, i, h)
            if cost < best and may_change(
                records, groups, h, -1, i, k, codes, kinds, limits, tables, starts, members, room
            ):
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
    masses: Floats, centres: Floats, near: SmallIntegers, i: Any, new: int, k: int, most: int,
    useful: bool, codes: Integers, kinds: Integers, limits: Floats, tables: Floats,
    starts: Integers, allowance: float, moved: Integers, origin: Integers, members: Integers,
    room: Integers,
) -> bool:  # fmt: skip
    """Open an empty group with i and the nearest records that may leave, until it keeps all.

    With `useful` it takes only records that bring it nearer to its limits. Returns whether it came
    to keep them and was worth it; otherwise all are back in their groups of `origin`.
    """
    n_moved, missing = 0, np.inf
    for r in range(-1, near.shape[1]):
        x = i if r < 0 else np.int64(near[i, r])
        h = records[x, LABEL]
        if h == new or groups[h, SIZE] <= k:
            continue
        less = np.inf
        if useful or n_moved + 1 >= k:
            count = 1
            members[0] = x
            if n_moved > 0:
                count = gather(records, groups, new, -1, x, members)
            less = lack(members, count, codes, kinds, limits, tables, starts, room)
            if useful and n_moved > 0 and less > 0.0 and less >= missing:
                continue
        if not may_change(
            records, groups, h, x, -1, k, codes, kinds, limits, tables, starts, members, room
        ):
            continue
        missing = less
        allowance += leaving(X, weights, masses, centres, x, h)
        leave(X, weights, records, groups, counts, masses, centres, x)
        if n_moved > 0:
            allowance -= joining(X, weights, masses, centres, x, new)
        join(X, weights, records, groups, counts, masses, centres, x, new)
        moved[n_moved], origin[n_moved] = x, h
        n_moved += 1
        if n_moved == most or (n_moved >= k and missing == 0.0):
            break
    if n_moved >= k and missing == 0.0 and allowance >= 0.0:
        return True
    for a in range(n_moved - 1, -1, -1):
        leave(X, weights, records, groups, counts, masses, centres, moved[a])
        join(X, weights, records, groups, counts, masses, centres, moved[a], origin[a])
    return False


@kernel
def anneal_diverse(
    X: Floats, weights: Floats, near: SmallIntegers, labels: Integers, k: int, most: int,
    codes: Integers, kinds: Integers, limits: Floats, tables: Floats, starts: Integers,
    steps: int, hot: float, cold: float, seed: int, number: int, halt: Bytes,
) -> None:  # fmt: skip
    """Anneal the labelling in place, as `random_moves.anneal`, under conditions of `diversity`.

    `labels` (n,) is a partition into groups of at least k records that keep all conditions,
    numbered below n // k, and remains one after every move. A group of `most` records gets no
    further ones: only time would be lost by larger ones, whose halves cost less.
    """
    n, d = X.shape
    count, n_groups = near.shape[1], n // k
    stream = start_stream(seed, number)
    # All records are of one unit: k units are a condition among others.
    records, groups = np.zeros((n, 4), dtype=np.int64), np.zeros((n_groups, 3), dtype=np.int64)
    records[:, LABEL] = -1
    counts = np.zeros((n_groups, 1), dtype=np.int32)
    masses, centres = np.zeros(n_groups), np.zeros((n_groups, d))
    for i in range(n):
        join(X, weights, records, groups, counts, masses, centres, i, labels[i])
    free, n_free = np.empty(n_groups, dtype=np.int64), 0
    for g in range(n_groups):
        if groups[g, SIZE] == 0:
            free[n_free] = g
            n_free += 1
    moved, origin = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    members, room = np.empty(n + 1, dtype=np.int64), np.empty((2, n + 1), dtype=np.int64)
    # Such a move judges a group for each record of another, so its cost grows with both sizes.
    structural = STRUCTURAL * min(1.0, 5.0 * (labels.max() + 1) / n)
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
            if draw(stream) < 0.5 and groups[g, SIZE] > k and groups[h, SIZE] < most:
                cost = joining(X, weights, masses, centres, i, h)
                cost -= leaving(X, weights, masses, centres, i, g)
                if (
                    (cost <= 0.0 or cost < -temperature * np.log(draw(stream)))
                    and may_change(
                        records, groups, g, i, -1, k, codes, kinds, limits, tables, starts,
                        members, room,
                    )
                    and may_change(
                        records, groups, h, -1, i, k, codes, kinds, limits, tables, starts,
                        members, room,
                    )
                ):  # fmt: skip
                    leave(X, weights, records, groups, counts, masses, centres, i)
                    join(X, weights, records, groups, counts, masses, centres, i, h)
            else:
                t = j
                for _ in range(1 + draw_below(stream, min(WALK, groups[h, SIZE] - 1))):
                    t = records[t, AFTER]
                cost = swap_cost(X, weights, i, t, g, h, masses, centres)
                if (cost <= 0.0 or cost < -temperature * np.log(draw(stream))) and (
                    same_codes(codes, i, t)
                    or (
                        may_change(
                            records, groups, g, i, t, k, codes, kinds, limits, tables, starts,
                            members, room,
                        )
                        and may_change(
                            records, groups, h, t, i, k, codes, kinds, limits, tables, starts,
                            members, room,
                        )
                    )
                ):  # fmt: skip
                    leave(X, weights, records, groups, counts, masses, centres, i)
                    leave(X, weights, records, groups, counts, masses, centres, t)
                    join(X, weights, records, groups, counts, masses, centres, i, h)
                    join(X, weights, records, groups, counts, masses, centres, t, g)
            continue
        g = records[i, LABEL]
        allowance = -temperature * np.log(1.0 - draw(stream))
        if kind < 0.5 * structural:
            if groups[g, SIZE] > k + 1 and draw(stream) * groups[g, SIZE] >= LARGE * k:
                continue
            if dissolve(
                X, weights, records, groups, counts, masses, centres, near, g, k, most, codes,
                kinds, limits, tables, starts, allowance, moved, members, room,
            ):  # fmt: skip
                free[n_free] = g
                n_free += 1
        elif n_free > 0:
            n_free -= open_group(
                X, weights, records, groups, counts, masses, centres, near, i, free[n_free - 1], k,
                most, draw(stream) < 0.5, codes, kinds, limits, tables, starts, allowance, moved,
                origin, members, room,
            )  # fmt: skip
    labels[:] = records[:, LABEL]
