"""Ordering and cutting as a textbook says it: every group priced anew, every record looked at."""

from __future__ import annotations

import numpy as np

from tests.reference.optimum import sse_of


def plain_cut(X, weights, order, k, longest=None):
    """The best cut of the records in this order, into groups of k to 2k - 1: labels, SSE.

    Groups may be as long as `longest` instead, to show that 2k - 1 is enough.
    """
    n, longest = len(order), longest or 2 * k - 1
    best, starts = [0.0] + [np.inf] * n, [0] * (n + 1)
    for end in range(k, n + 1):
        for start in range(max(0, end - longest), end - k + 1):
            error = best[start] + sse_of(X, weights, order[start:end])
            if error < best[end]:
                best[end], starts[end] = error, start
    labels, end, group = np.empty(n, dtype=np.int64), n, 0
    while end > 0:
        labels[order[starts[end] : end]] = group
        end, group = starts[end], group + 1
    return labels, best[n]


def sse_of_labels(X, weights, labels):
    return sum(sse_of(X, weights, np.flatnonzero(labels == g)) for g in np.unique(labels))


def distances_to(X, row):
    """Euclidean distances of all records to one."""
    return np.sqrt(((X - X[row]) ** 2).sum(axis=1))


def plain_nearest_next(X, first):
    """From record to the nearest one not yet visited, of equals the lowest row."""
    order, left = [first], set(range(len(X))) - {first}
    while left:
        squares = ((X - X[order[-1]]) ** 2).sum(axis=1)
        order.append(min(left, key=lambda i: (squares[i], i)))
        left.remove(order[-1])
    return np.array(order)


def plain_insertion_path(X, members, entered):
    """Steps 5 to 11 of Algorithm 1 (Mortazavi 2020), with all costs computed anew each time."""
    away = distances_to(X, entered)
    others = [i for i in members if i != entered]
    if not others:
        return [entered]
    path = [entered, max(others, key=lambda i: (away[i], -i))]
    left = set(others) - {path[1]}
    while left:
        costs = {}
        for t in sorted(left):
            d = distances_to(X, t)
            for i in range(len(path) - 1):
                costs[t, i] = d[path[i]] + d[path[i + 1]] - distances_to(X, path[i])[path[i + 1]]
        t, i = min(costs, key=costs.get)
        path.insert(i + 1, t)
        left.remove(t)
    return path


def plain_group_path(X, labels, first):
    """Steps 3 to 12 of Algorithm 1: all records, group by group."""
    sequence, unseen, entered = [], set(range(len(X))), first
    while True:
        sequence += plain_insertion_path(X, np.flatnonzero(labels == labels[entered]), entered)
        unseen -= set(sequence)
        if not unseen:
            return np.array(sequence)
        squares = ((X - X[sequence[-1]]) ** 2).sum(axis=1)
        entered = min(unseen, key=lambda i: (squares[i], i))


def plain_repeat_ordering(X, weights, labels, k, tolerance):
    """Algorithm 1 from given labels: labels, and the SSE of each round."""
    centre = weights @ X / weights.sum()
    first = int(np.argmax(((X - centre) ** 2).sum(axis=1)))
    errors = []
    while True:
        found, error = plain_cut(X, weights, plain_group_path(X, labels, first), k)
        errors.append(error)
        if len(errors) > 1 and errors[-2] - error < tolerance:
            return (found if error < errors[-2] else labels), errors
        labels = found
