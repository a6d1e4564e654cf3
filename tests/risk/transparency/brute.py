"""Slow and obviously right: everything that the method could have done, one by one."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np


def swaps(n, window):
    """All ways to exchange n ranks, as the method does it: from below, with a free one in reach."""

    def go(i, partner):
        if i == n:
            yield tuple(partner)
        elif partner[i] is not None:
            yield from go(i + 1, partner)
        else:
            free = [j for j in range(i + 1, min(i + window, n - 1) + 1) if partner[j] is None]
            if not free:
                yield from go(i + 1, [*partner[:i], i, *partner[i + 1 :]])
            for j in free:
                chosen = list(partner)
                chosen[i], chosen[j] = j, i
                yield from go(i + 1, chosen)

    return list(go(0, [None] * n))


def orders(values):
    """All orders of records by ascending value."""
    ranks = [np.flatnonzero(values == v).tolist() for v in np.unique(values)]
    for parts in product(*(list(permutations(tied)) for tied in ranks)):
        yield [record for part in parts for record in part]


def swapped(values, window):
    """All columns that rank swapping can make of a column."""
    found = set()
    for order in orders(values):
        for partner in swaps(len(values), window):
            out = [0.0] * len(values)
            for rank, other in enumerate(partner):
                out[order[rank]] = float(values[order[other]])
            found.add(tuple(out))
    return found


def cut(values, k):
    """All columns that runs of at least k of the sorted column can make, with their means."""

    def sizes(n):
        if n == 0:
            yield []
        for s in range(k, n + 1):
            for rest in sizes(n - s):
                yield [s, *rest]

    found = set()
    for order in orders(values):
        for parts in sizes(len(values)):
            out, at = [0.0] * len(values), 0
            for s in parts:
                for record in order[at : at + s]:
                    out[record] = round(float(values[order[at : at + s]].mean()), 9)
                at += s
            found.add(tuple(out))
    return found


def partitions(records, k):
    """All partitions into groups of at least k."""

    def go(rest):
        if not rest:
            yield []
            return
        head, tail = rest[0], rest[1:]
        for mask in range(1 << len(tail)):
            group = [head, *(t for b, t in enumerate(tail) if mask >> b & 1)]
            if len(group) >= k:
                left = [t for b, t in enumerate(tail) if not mask >> b & 1]
                for others in go(left):
                    yield [group, *others]

    return list(go(list(records)))


def grouped(X, k):
    """All tables that microaggregation can make of a table, rows as tuples."""
    found = set()
    for groups in partitions(range(len(X)), k):
        out = [()] * len(X)
        for group in groups:
            mean = tuple(round(float(v), 9) for v in X[group].mean(axis=0))
            for record in group:
                out[record] = mean
        found.add(tuple(out))
    return found


def possible_pairs(released, reachable):
    """Pairs of some assignment, one to one, that agrees with the release in every block.

    `released` holds a sequence of n values (or rows) for each block, `reachable` the set of all
    sequences that the method can make of the originals in it.
    """
    n = len(released[0])
    pairs = np.zeros((n, n), dtype=bool)
    for originals in permutations(range(n)):  # masked record i comes from originals[i]
        agrees = True
        for values, made in zip(released, reachable, strict=True):
            got = [None] * n
            for i, j in enumerate(originals):
                got[j] = values[i]
            if tuple(got) not in made:
                agrees = False
                break
        if agrees:
            pairs[np.arange(n), originals] = True
    return pairs


def degrees(X, centres, m):
    """Degrees by definition."""
    squares = ((X[:, None] - centres[None]) ** 2).sum(axis=2)
    ratios = (squares[:, :, None] / squares[:, None, :]) ** (1 / (m - 1))
    return 1 / ratios.sum(axis=2)


def permanent(M):
    n = len(M)
    return sum(np.prod(M[np.arange(n), p]) for p in map(list, permutations(range(n))))
