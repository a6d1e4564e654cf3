"""Local suppression by enumeration: slow, and obviously right."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations, product
from math import prod


def fewest_cells(codes, k, importance, never=(), limit=None):
    """The least cost of emptied cells (0) with which every row occurs k times; None if none.

    A partition of records into groups that agree in what they keep: dynamic programming over sets
    of records, or, with limits, all choices of cells.
    """
    n, q = len(codes), len(codes[0])
    if limit is not None:
        return _all_choices(codes, k, importance, never, limit)
    groups = {}
    for size in range(k, n + 1):
        for members in combinations(range(n), size):
            columns = [
                j for j in range(q) if any(codes[i][j] != codes[members[0]][j] for i in members)
            ]
            lost = [(i, j) for i in members for j in columns if codes[i][j] != 0]
            if not any(j in never for _, j in lost):
                groups[frozenset(members)] = sum(importance[j] for _, j in lost)

    @cache
    def best(left):
        if not left:
            return 0.0
        first = min(left)
        rest = [
            cost + best(left - group)
            for group, cost in groups.items()
            if first in group and group <= left
        ]
        return min(rest, default=float("inf"))

    found = best(frozenset(range(n)))
    return None if found == float("inf") else found


def _all_choices(codes, k, importance, never, limit):
    q, best = len(codes[0]), None
    sets = [s for size in range(q + 1) for s in combinations(range(q), size)]
    for chosen in product(sets, repeat=len(codes)):
        lost = [(i, j) for i, own in enumerate(chosen) for j in own if codes[i][j] != 0]
        counts = Counter(j for _, j in lost)
        if any(j in never for _, j in lost) or any(counts[j] > limit[j] for j in range(q)):
            continue
        rows = Counter(
            tuple(0 if j in own else code for j, code in enumerate(row))
            for row, own in zip(codes, chosen)
        )
        cost = sum(importance[j] for _, j in lost)
        if min(rows.values()) >= k and (best is None or cost < best):
            best = cost
    return best


def matches(codes):
    """How many rows match each, an empty cell (0) being equal to every value."""
    return [
        sum(all(a == b or a == 0 or b == 0 for a, b in zip(row, other)) for other in codes)
        for row in codes
    ]


def fewest_by_wildcard(codes, k, importance):
    """The least cost by wildcard, where a record stays or loses the least it would need alone.

    None where there are too many choices to look at.
    """
    q = len(codes[0])
    choices = []
    for row, reached in zip(codes, matches(codes)):
        enough = {}
        for size in range(1, q + 1) if reached < k else ():
            for own in combinations([j for j in range(q) if row[j]], size):
                left = [0 if j in own else code for j, code in enumerate(row)]
                if matches([left, *codes])[0] - 1 >= k:
                    enough[own] = sum(importance[j] for j in own)
        least = min(enough.values(), default=0)
        choices.append([(), *(own for own, cost in enough.items() if cost == least)])
    if prod(map(len, choices)) > 20_000:
        return None
    best = float("inf")
    for chosen in product(*choices):
        cost = sum(importance[j] for own in chosen for j in own)
        released = [
            [0 if j in own else code for j, code in enumerate(row)]
            for row, own in zip(codes, chosen)
        ]
        if cost < best and min(matches(released)) >= k:
            best = cost
    return best
