"""Groups whose confidential values are diverse, or close to those of the table.

A *condition* is about one confidential column: a kind, a limit, and for t the distribution of the
table. A group keeps it or not by the multiset of its known codes alone, whatever their order; codes
below 0 are missing and count for nothing. With counts r_1 >= r_2 >= ... of the codes of a group,
shares p, and shares q of the table, the *measure* is

- DISTINCT: the number of codes;
- ENTROPY: exp(-sum p log p), the number of equally frequent codes that are as diverse;
- RECURSIVE: the largest l with r_1 < c (r_l + r_(l+1) + ...), 0 if there is none;
- EQUAL: half the sum of |p - q|, the earth mover's distance where any two codes are 1 apart;
- ORDERED: the same where m codes stand on a line from 0 to 1:
  1 / (m - 1) times the sum of |P(<= i) - Q(<= i)|.

All of them are *closed under union*: two groups that keep a condition keep it together. Numbers of
codes add up; entropy is concave and distances are convex in the distribution, and that of a
union is a mixture; and r_1 is subadditive while the tail, a total less its l - 1 largest counts, is
superadditive. So a group that is merged often enough keeps a condition if all records together do,
and no partition has a better worst group than the one group of all.

Conditions are passed as plain arrays: `codes` (n, q), `kinds` (q,), `limits` (q, 2) with l or t and
c, `tables` (2, ...) with shares or running shares and their running sums, and `starts` (q + 1,)
where those of each condition begin. At least k units is one more condition, DISTINCT units.
"""

from typing import Any

import numpy as np

from .._types import Floats, Integers, SmallIntegers
from . import kernel
from .groups import insert, squared_distance
from .random_moves import draw_below, start_stream

DISTINCT, ENTROPY, RECURSIVE, EQUAL, ORDERED = 0, 1, 2, 3, 4
# By how much a measure may miss its limit, relative for l: sums of rounded shares differ in the
# last digits. An audit allows twice as much, so that what is a tie here is none there.
SLACK = 5e-10
SHORT = 24  # codes that are sorted by insertion; longer lists by quicksort


@kernel
def gap_between(
    level: float, low: int, high: int, running: Floats, areas: Floats, start: int
) -> float:
    """Sum |level - Q(<= i)| over low <= i < high: Q rises, and crosses the level once."""
    first, last = low, high
    while first < last:
        middle = (first + last) // 2
        if running[start + middle] < level:
            first = middle + 1
        else:
            last = middle
    below = level * (first - low) - (areas[start + first] - areas[start + low])
    above = areas[start + high] - areas[start + first] - level * (high - first)
    return float(below + above)


@kernel
def measure(
    codes: Integers, size: int, kind: int, ratio: float, tables: Floats, start: int, stop: int,
    counts: Integers,
) -> float:  # fmt: skip
    """Measure a group by its known codes, sorted; `counts` is room for how often each occurs.

    Without a known code l is 0 and t is 1: nothing is known that could be diverse, or close.
    """
    if size == 0:
        return 1.0 if kind >= EQUAL else 0.0
    n_codes, m = 0, stop - start - 1
    total, level, place = 0.0, 0.0, 0
    for a in range(size):
        if a == 0 or codes[a] != codes[a - 1]:
            counts[n_codes] = 0
            n_codes += 1
            if kind == ORDERED:
                total += gap_between(level, place, codes[a], tables[0], tables[1], start)
                place = codes[a]
        counts[n_codes - 1] += 1
        if a + 1 == size or codes[a + 1] != codes[a]:
            share = counts[n_codes - 1] / size
            if kind == ENTROPY:
                total -= share * np.log(share)
            elif kind == EQUAL:
                # Codes that the group lacks add their whole share: 1 less the shares of others.
                total += abs(share - tables[0, start + codes[a]]) - tables[0, start + codes[a]]
            level = (a + 1) / size
    if kind == DISTINCT:
        return float(n_codes)
    if kind == ENTROPY:
        return float(np.exp(total))
    if kind == EQUAL:
        return max(0.0, (total + 1.0) / 2)
    if kind == ORDERED:
        total += gap_between(1.0, place, m - 1, tables[0], tables[1], start)
        return total / (m - 1) if m > 1 else 0.0
    # The largest counts leave the tail one by one. As r_1 < c tail gets harder to keep, the first
    # that fails is the last one looked at, mostly the second or third: no sort is needed.
    first, reached, tail = counts[:n_codes].max(), 0, size
    while reached < n_codes and first < ratio * tail:
        largest = 0
        for a in range(1, n_codes):
            if counts[a] > counts[largest]:
                largest = a
        tail -= counts[largest]
        counts[largest] = 0
        reached += 1
    return float(reached)


@kernel
def measure_of(
    members: Integers, count: int, c: int, codes: Integers, kinds: Integers, limits: Floats,
    tables: Floats, starts: Integers, room: Integers,
) -> float:  # fmt: skip
    """Measure the group of the first `count` members under condition c; `room` is (2, n)."""
    found, known = room[0], 0
    for a in range(count):
        code = codes[members[a], c]
        if code < 0:
            continue
        at = known
        if count <= SHORT:
            while at > 0 and found[at - 1] > code:
                found[at] = found[at - 1]
                at -= 1
        found[at] = code
        known += 1
    if count > SHORT:
        found[:known].sort()
    return measure(found, known, kinds[c], limits[c, 1], tables, starts[c], starts[c + 1], room[1])


@kernel
def shortfall(value: float, kind: int, limit: float) -> float:
    """By how much a measure misses its limit; 0 where it does not."""
    if kind >= EQUAL:
        return 0.0 if value <= limit + SLACK else value - limit
    return 0.0 if value >= limit * (1.0 - SLACK) else (limit - value) / limit


@kernel
def lack(
    members: Integers, count: int, codes: Integers, kinds: Integers, limits: Floats,
    tables: Floats, starts: Integers, room: Integers,
) -> float:  # fmt: skip
    """Sum by how much a group misses its limits."""
    total = 0.0
    for c in range(kinds.shape[0]):
        value = measure_of(members, count, c, codes, kinds, limits, tables, starts, room)
        total += shortfall(value, kinds[c], limits[c, 0])
    return total


@kernel
def fits(
    members: Integers, count: int, k: int, codes: Integers, kinds: Integers, limits: Floats,
    tables: Floats, starts: Integers, room: Integers,
) -> bool:  # fmt: skip
    """Say whether a group has k records and keeps every condition."""
    if count < k:
        return False
    for c in range(kinds.shape[0]):
        value = measure_of(members, count, c, codes, kinds, limits, tables, starts, room)
        if shortfall(value, kinds[c], limits[c, 0]) > 0.0:
            return False
    return True


@kernel
def measure_groups(
    rows: Integers, ends: Integers, codes: Integers, kinds: Integers, limits: Floats,
    tables: Floats, starts: Integers,
) -> Floats:  # fmt: skip
    """Measure groups given as rows and where each begins, shape (groups, q)."""
    n_groups = ends.shape[0] - 1
    found = np.empty((n_groups, kinds.shape[0]))
    room = np.empty((2, rows.shape[0]), dtype=np.int64)
    for g in range(n_groups):
        own = rows[ends[g] : ends[g + 1]]
        for c in range(kinds.shape[0]):
            found[g, c] = measure_of(
                own, own.shape[0], c, codes, kinds, limits, tables, starts, room
            )
    return found


@kernel
def choose_partners(
    lacking: Integers, near: Integers, rows: Integers, ends: Integers, k: int, codes: Integers,
    kinds: Integers, limits: Floats, tables: Floats, starts: Integers,
) -> Integers:  # fmt: skip
    """Choose for lacking groups one of their near groups: the first with which it keeps all.

    Where it keeps all with none of them, the one with which it lacks least, of equals the nearest.
    Groups are taken once: those whose near ones are all taken already get none, -1.
    """
    taken = np.zeros(ends.shape[0], dtype=np.bool_)
    room = np.empty((2, rows.shape[0]), dtype=np.int64)
    members = np.empty(rows.shape[0], dtype=np.int64)
    chosen = np.full(lacking.shape[0], -1)
    for a in range(lacking.shape[0]):
        g = lacking[a]
        if taken[g]:
            continue
        count = ends[g + 1] - ends[g]
        members[:count] = rows[ends[g] : ends[g + 1]]
        least = np.inf
        for h in near[a]:
            if h == g or taken[h]:
                continue
            both = count + ends[h + 1] - ends[h]
            members[count:both] = rows[ends[h] : ends[h + 1]]
            missing = lack(members, both, codes, kinds, limits, tables, starts, room)
            missing += max(0, k - both)
            if missing < least:
                least, chosen[a] = missing, h
            if missing == 0.0:
                break
        if chosen[a] >= 0:
            taken[g], taken[chosen[a]] = True, True
    return chosen


@kernel
def heights_along(X: Floats, rows: Integers, stream: Any) -> Floats:
    """Return how far rows are along a line between two of them that are far apart."""
    a = rows[draw_below(stream, rows.shape[0])]
    for _ in range(2):  # from any row to the farthest, and from there to the farthest again
        farthest, b = -1.0, a
        for i in rows:
            away = squared_distance(X, i, X, a)
            if away > farthest:
                farthest, b = away, i
        a, b = b, a
    height = np.zeros(rows.shape[0])
    for r in range(rows.shape[0]):
        for q in range(X.shape[1]):
            height[r] += X[rows[r], q] * (X[b, q] - X[a, q])
    return height


@kernel
def halve(rows: Integers, height: Floats, bucket: Integers, cut: int) -> int:
    """Sort rows so that the lower part of each bucket comes first; return how many these are.

    Each bucket gives the share cut / n of its rows, those that are lowest; what is rounded off in
    one is carried to the next, so that about `cut` rows are given.
    """
    n = rows.shape[0]
    order = np.argsort(height, kind="mergesort")
    order = order[np.argsort(bucket[rows[order]], kind="mergesort")]
    lower, upper = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    n_lower, begin, carried = 0, 0, 0.5
    while begin < n:
        end = begin
        while end < n and bucket[rows[order[end]]] == bucket[rows[order[begin]]]:
            end += 1
        carried += (end - begin) * cut / n
        given = min(end - begin, int(carried))
        carried -= given
        for a in range(begin, end):
            if a < begin + given:
                lower[n_lower] = rows[order[a]]
                n_lower += 1
            else:
                upper[a - n_lower] = rows[order[a]]
        begin = end
    rows[:n_lower], rows[n_lower:] = lower[:n_lower], upper[: n - n_lower]
    return n_lower


@kernel
def split_groups(
    X: Floats, order: Integers, ends: Integers, k: int, buckets: Integers, codes: Integers,
    kinds: Integers, limits: Floats, tables: Floats, starts: Integers, seed: int,
) -> Integers:  # fmt: skip
    """Split groups in two as long as both halves keep all conditions; return the labels.

    `order` has the rows of the groups, `ends` where each begins. `buckets` (levels, n) put like
    codes together, ever finer, the first level all: a group is cut across its longest line, then
    each bucket by itself, so that both halves get their share of it; twice, along two lines.
    """
    stream = start_stream(seed, 2)
    n_levels = buckets.shape[0]
    labels = np.full(X.shape[0], -1)
    room = np.empty((2, order.shape[0]), dtype=np.int64)
    stack = np.empty(order.shape[0] + 1, dtype=np.int64)
    order, number = order.copy(), 0
    for g in range(ends.shape[0] - 1):
        begin, depth = ends[g], 1
        stack[0] = ends[g + 1]
        while depth > 0:
            end = stack[depth - 1]
            size, middle = end - begin, -1
            if size >= 2 * k:
                cut = max(k, (size // (2 * k)) * k)
                for turn in range(2 * n_levels):
                    rows = order[begin:end]
                    if turn % n_levels == 0:
                        height = heights_along(X, rows, stream)
                        first = rows.copy()
                    rows[:] = first
                    lower = halve(rows, height, buckets[turn % n_levels], cut)
                    if fits(
                        rows[:lower], lower, k, codes, kinds, limits, tables, starts, room
                    ) and fits(
                        rows[lower:], size - lower, k, codes, kinds, limits, tables, starts, room
                    ):
                        middle = begin + lower
                        break
            if middle >= 0:
                stack[depth] = middle
                depth += 1
                continue
            for a in range(begin, end):
                labels[order[a]] = number
            number += 1
            begin = end
            depth -= 1
    return labels


@kernel
def nearest_and_other(X: Floats, values: Integers, count: int) -> SmallIntegers:
    """List for each record, in turns, its nearest others and the nearest with another value.

    Shape (n, 2 count). Where there are fewer of other values, they come again. A scan, as in
    `windows.scan_all`.
    """
    n, d = X.shape
    columns = np.ascontiguousarray(X.T)
    near = np.empty((n, 2 * count), dtype=np.int32)
    exact = np.empty(n)
    rows, distance = np.empty((2, count), dtype=np.int64), np.empty((2, count))
    for i in range(n):
        exact[:] = 0.0
        for q in range(d):
            x, column = X[i, q], columns[q]
            for j in range(n):
                exact[j] += (x - column[j]) * (x - column[j])
        held, other = 0, 0
        for step in range(1, n):
            j = i + step if i + step < n else i + step - n
            if held < count or exact[j] < distance[0, count - 1]:
                held = insert(distance[0], rows[0], held, exact[j], j)
            if values[j] != values[i] and (other < count or exact[j] < distance[1, count - 1]):
                other = insert(distance[1], rows[1], other, exact[j], j)
        for a in range(count):
            near[i, 2 * a] = rows[0, a]
            near[i, 2 * a + 1] = rows[1, a % other] if other > 0 else rows[0, a]
    return near
