"""Records change places between groups, at random, while every group keeps at least k.

A Markov chain over assignments. Record i may stand at any centre of its list, with a weight for
each; the chain's distribution is the product of the records' weights, restricted to
assignments in which every group has from k to `most` records. A step picks a record i and a centre
b of its list. If i's group can spare it, i moves; if not, i changes places with a record of b.
Either is proposed as often as its reverse, so it is accepted with the ratio of the weights
(Metropolis).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel


class Standing(NamedTuple):
    """Where everyone stands."""

    lists: Integers  # (n, t) the centres where a record may stand
    weights: Floats  # (n, t) logarithms of the weights
    slots: Integers  # (n,) the place in its list where a record stands
    members: Integers  # (c, most) the records of each group
    places: Integers  # (n,) the place of a record among the members of its group
    sizes: Integers  # (c,)


@kernel
def stand(lists: Integers, weights: Floats, slots: Integers, c: int, most: int) -> Standing:
    """Set up from the place in its list where each record stands."""
    n = lists.shape[0]
    members, sizes = np.full((c, most), -1), np.zeros(c, dtype=np.int64)
    places = np.empty(n, dtype=np.int64)
    for i in range(n):
        group = lists[i, slots[i]]
        places[i] = sizes[group]
        members[group, sizes[group]] = i
        sizes[group] += 1
    return Standing(lists, weights, slots, members, places, sizes)


@kernel
def exchange(standing: Standing, k: int, chances: Floats, visits: Integers) -> int:
    """Take one step for each row of `chances`, of shape (steps, 4), uniform in [0, 1).

    If `visits` is not empty, of shape (n, t), it counts where each record stands after the last
    step. Returns the number of steps that were accepted.
    """
    lists, weights, slots, members, places, sizes = standing
    n, t = lists.shape
    most, accepted = members.shape[1], 0
    for step in range(chances.shape[0]):
        i = int(chances[step, 0] * n)
        here, there = slots[i], int(chances[step, 1] * t)
        a, b = lists[i, here], lists[i, there]
        if a == b:
            continue
        gain = weights[i, there] - weights[i, here]
        if sizes[a] > k:
            if sizes[b] < most and math.log(max(chances[step, 3], 1e-300)) < gain:
                last = members[a, sizes[a] - 1]
                members[a, places[i]], places[last] = last, places[i]
                sizes[a] -= 1
                members[b, sizes[b]], places[i], slots[i] = i, sizes[b], there
                sizes[b] += 1
                accepted += 1
            continue
        j = members[b, int(chances[step, 2] * sizes[b])]
        back = 0
        while back < t and lists[j, back] != a:
            back += 1
        if back == t:
            continue
        gain += weights[j, back] - weights[j, slots[j]]
        if math.log(max(chances[step, 3], 1e-300)) < gain:
            members[a, places[i]], members[b, places[j]] = j, i
            places[i], places[j] = places[j], places[i]
            slots[i], slots[j] = there, back
            accepted += 1
    if visits.shape[0] > 0:
        for i in range(n):
            visits[i, slots[i]] += 1
    return accepted
