"""Units of different regions that are paired at random, to exchange what belongs to their place.

Donors stand in *pools*: units of one pool may be exchanged. Within a pool they stand in *blocks*,
one a region, in random order. A draw picks a block of another region with a chance that is
proportional to the free units in it, and takes its last free unit: a uniform draw among all free
units of the pool that are in another region, in O(blocks of the pool) however many units it has.
"""

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from . import kernel


class Donors(NamedTuple):
    """Units by pool and region; see the top of this file."""

    pool: Integers  # (u,) of every unit
    block: Integers  # (u,) where a unit stands as a donor; -1 for units that are none
    first: Integers  # (p + 1,) the blocks of pool i are first[i], ..., first[i + 1] - 1
    region: Integers  # (b,) of each block
    start: Integers  # (b + 1,) where the members of each block start
    members: Integers  # (number of donors,)


@kernel
def pair_units(
    todo: Integers, chances: Floats, region: Integers, need: Integers, donors: Donors,
    partner: Integers,
) -> None:  # fmt: skip
    """Give each unit of `todo` that has no partner one of its pool, from another region.

    `partner` (u,) is -1 for free units, and is written. A unit is passed over where `need`, which
    counts down for both regions of a pair, is not above 0 in its region. `chances`, one a unit of
    `todo`, are uniform in [0, 1).
    """
    left = np.zeros(donors.region.shape[0], dtype=np.int64)  # free units
    for at in range(donors.members.shape[0]):
        if partner[donors.members[at]] < 0:
            left[donors.block[donors.members[at]]] += 1
    top = donors.start[1:].copy()  # what is above was taken, or is taken and was passed over
    for t in range(todo.shape[0]):
        i = todo[t]
        if partner[i] >= 0 or need[region[i]] <= 0:
            continue
        low, high = donors.first[donors.pool[i]], donors.first[donors.pool[i] + 1]
        total = 0
        for b in range(low, high):
            if donors.region[b] != region[i]:
                total += left[b]
        if total == 0:
            continue
        wanted, b = int(chances[t] * total), low  # chances[t] < 1
        while donors.region[b] == region[i] or wanted >= left[b]:
            if donors.region[b] != region[i]:
                wanted -= left[b]
            b += 1
        top[b] -= 1
        while partner[donors.members[top[b]]] >= 0:
            top[b] -= 1
        j = donors.members[top[b]]
        partner[i], partner[j] = j, i
        left[b] -= 1
        if donors.block[i] >= 0:
            left[donors.block[i]] -= 1
        need[region[i]] -= 1
        need[region[j]] -= 1
