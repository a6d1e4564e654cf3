"""Giving records of a group to the groups around it: all of them, or those it has too many of.

A record of weight v that joins a group of weight W raises the squared error by v·W / (v+W) times
its squared distance from the centre; one that leaves lowers it by v·W / (W-v) times that. So
a move is priced without looking at any other record. A group that grows to 2k is split, and what
the split gains counts for the move that caused it.
"""

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .groups import squared_distance, weighted_centres
from .ordering import insertion_path
from .sequence import best_cut

GAIN = 1e-9  # share of the error at stake that counts as a gain; guards against rounding


class Partition(NamedTuple):
    """Groups as chains of records, with room for every group there can be."""

    labels: Integers  # (n,)
    nexts: Integers  # (n,) the record that follows in the chain, -1 at its end
    heads: Integers  # (n // k,) the first record of each group, -1 if the group is empty
    sizes: Integers  # (n // k,)
    totals: Floats  # (n // k,) weights of the groups
    centres: Floats  # (n // k, d)


@kernel
def partition_of(X: Floats, weights: Floats, labels: Integers, k: int) -> Partition:
    """Chain the records of each group, lowest row first."""
    n = X.shape[0]
    room = n // k
    nexts, heads = np.full(n, -1), np.full(room, -1)
    sizes, totals = np.zeros(room, dtype=np.int64), np.zeros(room)
    for i in range(n - 1, -1, -1):
        nexts[i] = heads[labels[i]]
        heads[labels[i]] = i
        sizes[labels[i]] += 1
        totals[labels[i]] += weights[i]
    centres = weighted_centres(X, weights, labels, room)
    partition = Partition(labels.copy(), nexts, heads, sizes, totals, centres)
    for g in range(room):
        if sizes[g] == 0:
            _empty(partition, g)
    return partition


@kernel
def _members(partition: Partition, g: int) -> Integers:
    """Rows of a group, along its chain."""
    members = np.empty(partition.sizes[g], dtype=np.int64)
    i = partition.heads[g]
    for a in range(members.shape[0]):
        members[a] = i
        i = partition.nexts[i]
    return members


@kernel
def _error(X: Floats, weights: Floats, partition: Partition, g: int) -> float:
    """SSE of a group."""
    total = 0.0
    i = partition.heads[g]
    while i >= 0:
        total += weights[i] * squared_distance(X, i, partition.centres, g)
        i = partition.nexts[i]
    return total


@kernel
def _join(X: Floats, weights: Floats, partition: Partition, i: int, g: int) -> None:
    """Put a record at the head of a group's chain."""
    partition.labels[i] = g
    partition.nexts[i] = partition.heads[g]
    partition.heads[g] = i
    partition.sizes[g] += 1
    partition.totals[g] += weights[i]
    share = weights[i] / partition.totals[g]
    for j in range(X.shape[1]):
        partition.centres[g, j] += (X[i, j] - partition.centres[g, j]) * share


@kernel
def _leave(X: Floats, weights: Floats, partition: Partition, i: int) -> None:
    """Take a record out of its group, of which others remain."""
    g = partition.labels[i]
    if partition.heads[g] == i:
        partition.heads[g] = partition.nexts[i]
    else:
        before = partition.heads[g]
        while partition.nexts[before] != i:
            before = partition.nexts[before]
        partition.nexts[before] = partition.nexts[i]
    partition.sizes[g] -= 1
    partition.totals[g] -= weights[i]
    share = weights[i] / partition.totals[g]
    for j in range(X.shape[1]):
        partition.centres[g, j] -= (X[i, j] - partition.centres[g, j]) * share


@kernel
def _empty(partition: Partition, g: int) -> None:
    """Forget a group; its records belong nowhere for now."""
    partition.heads[g], partition.sizes[g], partition.totals[g] = -1, 0, 0.0
    for j in range(partition.centres.shape[1]):
        partition.centres[g, j] = 0.0


@kernel
def _cut_group(
    X: Floats, weights: Floats, partition: Partition, members: Integers, g: int, k: int
) -> tuple[Integers, float]:
    """Put members on a short path from the farthest one, and cut it: part of each, SSE."""
    m = members.shape[0]
    farthest, reach = 0, -1.0
    for a in range(m):
        squares = squared_distance(X, members[a], partition.centres, g)
        if squares > reach:
            farthest, reach = a, squares
    path = insertion_path(X, members, farthest)
    members[:] = path
    return best_cut(X[path], weights[path], np.arange(m), k)


@kernel
def _split_gain(X: Floats, weights: Floats, partition: Partition, g: int, k: int) -> float:
    """What a group of 2k or more gains by being split; nothing for a smaller one."""
    if partition.sizes[g] < 2 * k:
        return 0.0
    _, error = _cut_group(X, weights, partition, _members(partition, g), g, k)
    return _error(X, weights, partition, g) - error


@kernel
def _split(X: Floats, weights: Floats, partition: Partition, g: int, k: int) -> None:
    """Split a group of 2k or more; its parts beyond the first take numbers that are free."""
    if partition.sizes[g] < 2 * k:
        return
    members = _members(partition, g)
    parts, _ = _cut_group(X, weights, partition, members, g, k)
    _empty(partition, g)
    for a in range(members.shape[0]):  # parts are numbered along the path
        if a > 0 and parts[a] != parts[a - 1]:
            while partition.sizes[g] > 0:
                g = (g + 1) % partition.sizes.shape[0]
        _join(X, weights, partition, members[a], g)


@kernel
def _undo_join(partition: Partition, g: int, total: float, centre: Floats) -> None:
    """Take the head of a chain out again; weight and centre return to the last bit."""
    partition.heads[g] = partition.nexts[partition.heads[g]]
    partition.sizes[g] -= 1
    partition.totals[g] = total
    for j in range(centre.shape[0]):
        partition.centres[g, j] = centre[j]


@kernel
def _cheapest(
    X: Floats, weights: Floats, partition: Partition, near: Integers, i: int, own: int, k: int
) -> tuple[int, float]:
    """Of the groups near a record, the one that it would join at the least cost, and the cost."""
    found, least = -1, np.inf
    for g in near[i]:
        if g == own or partition.sizes[g] == 0:
            continue
        share = weights[i] * partition.totals[g] / (weights[i] + partition.totals[g])
        cost = share * squared_distance(X, i, partition.centres, g)
        if partition.sizes[g] >= 2 * k - 1:
            total, centre = partition.totals[g], partition.centres[g].copy()
            label, behind = partition.labels[i], partition.nexts[i]
            cost += _split_gain(X, weights, partition, g, k)
            _join(X, weights, partition, i, g)
            cost -= _split_gain(X, weights, partition, g, k)
            _undo_join(partition, g, total, centre)
            partition.labels[i], partition.nexts[i] = label, behind
        if cost < least or (cost == least and g < found):
            found, least = g, cost
    return found, least


@kernel
def decompose(
    X: Floats, weights: Floats, partition: Partition, near: Integers, turns: Integers, k: int
) -> None:
    """Dissolve every group whose records cost less in the groups around it.

    `near` has shape (n, m): the groups that a record may join. `turns` are the groups to try, in
    the order in which they are tried.
    """
    d = X.shape[1]
    targets = np.empty(2 * k, dtype=np.int64)
    old_totals, old_centres = np.empty(2 * k), np.empty((2 * k, d))
    for group in turns:
        if partition.sizes[group] == 0:
            continue
        _split(X, weights, partition, group, k)
        members = _members(partition, group)
        error, total = _error(X, weights, partition, group), partition.totals[group]
        centre = partition.centres[group].copy()
        _empty(partition, group)
        spent, placed = 0.0, 0
        for i in members:
            target, cost = _cheapest(X, weights, partition, near, i, group, k)
            spent += cost
            if target < 0:  # its cost is infinite
                break
            targets[placed], old_totals[placed] = target, partition.totals[target]
            for j in range(d):
                old_centres[placed, j] = partition.centres[target, j]
            _join(X, weights, partition, i, target)
            placed += 1
        if spent < error * (1.0 - GAIN):
            for t in range(placed):
                _split(X, weights, partition, targets[t], k)
            continue
        for t in range(placed - 1, -1, -1):
            _undo_join(partition, targets[t], old_totals[t], old_centres[t])
        for i in members[::-1]:
            _join(X, weights, partition, i, group)
        partition.totals[group] = total
        for j in range(d):
            partition.centres[group, j] = centre[j]


@kernel
def shrink(
    X: Floats, weights: Floats, partition: Partition, near: Integers, turns: Integers, k: int
) -> None:
    """Let every group of more than k give away records, as long as the error falls.

    The record whose move gains most goes first. `near` and `turns` as in `decompose`.
    """
    for group in turns:
        while partition.sizes[group] > k:
            leaver, target, gain = -1, -1, 0.0
            i = partition.heads[group]
            while i >= 0:
                share = weights[i] / (partition.totals[group] - weights[i])
                share *= partition.totals[group]
                freed = share * squared_distance(X, i, partition.centres, group)
                other, cost = _cheapest(X, weights, partition, near, i, group, k)
                if other >= 0 and freed - cost > max(gain, GAIN * freed):
                    leaver, target, gain = i, other, freed - cost
                i = partition.nexts[i]
            if leaver < 0:
                break
            _leave(X, weights, partition, leaver)
            _join(X, weights, partition, leaver, target)
            _split(X, weights, partition, target, k)
