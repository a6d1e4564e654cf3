"""Which member of a household stands in which slot: like persons meet.

Households are compared slot by slot, so that a child in the slot of another household's parent
costs as much as masking both. Members change slots only with members of their own class (counted
alike, lacking the same cells). They are put in order by the column that leaves the least variance
within slots; then, in turns, slots get the means of their members and households assign their
members to the nearest slots (a k-means whose clusters are slots and whose households use each slot
once; Hungarian assignment). Neither half of a turn raises the variance, so that turns end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._types import Floats, Integers
from ..grouping import MDAV
from ..kernels.groups import weighted_centres

TURNS = 20  # of assignment; made-up and real households stop after 3 to 8
MOST_REFINED = 3000  # households of a shape whose slots are refined by groups: MDAV is quadratic


def assign_slots(
    rows: Integers, classes: Integers, points: Floats, keys: Sequence[Floats]
) -> Integers:
    """Return the record of each slot, shape (households, slots).

    `rows` has the members of each household in the order of their `classes`, of the same shape,
    which are the same in every row; `points` are all records, and `keys` columns to order them by.
    """
    runs = list(_runs(classes))
    if not runs:
        return rows
    ordered = (_ordered(rows, classes, key) for key in keys)
    best = min((rows, *ordered), key=lambda own: _variance(points[own]))
    return _in_turns(best, points, runs, np.zeros(len(rows), dtype=np.int64))


def refine_slots(
    rows: Integers, classes: Integers, points: Floats, common: Floats, k: int
) -> Integers:
    """Assign members anew, to the means of the slots within groups of like households.

    `common` are the columns that households have once, as points. The new assignment is kept if
    groups of it have a smaller sum of squares.
    """
    runs = list(_runs(classes))
    if not runs or not 2 * k <= len(rows) <= MOST_REFINED:
        return rows

    def grouped(own: Integers) -> MDAV:
        return MDAV(k).fit(np.hstack([points[own].reshape(len(own), -1), common]))

    first = grouped(rows)
    refined = _in_turns(rows, points, runs, first.labels_)
    return refined if grouped(refined).inertia_ < first.inertia_ else rows


def _runs(classes: Integers) -> Iterator[slice]:
    """Yield the slots between which members may change: two or more of one class."""
    one = classes[0]
    ends = [0, *(np.flatnonzero(np.diff(one)) + 1), len(one)]
    for start, end in pairwise(ends):
        if end - start > 1:
            yield slice(int(start), int(end))


def _ordered(rows: Integers, classes: Integers, key: Floats) -> Integers:
    return np.take_along_axis(rows, np.lexsort((-key[rows], classes), axis=-1), axis=1)


def _variance(members: Floats) -> float:
    return float(((members - members.mean(axis=0)) ** 2).sum())


def _in_turns(rows: Integers, points: Floats, runs: list[slice], groups: Integers) -> Integers:
    """Turn by turn, assign members to the means of the slots of their household's group."""
    rows, count = rows.copy(), int(groups.max()) + 1
    weights = np.ones(len(rows))
    for _ in range(TURNS):
        changed = False
        for run in runs:
            members = points[rows[:, run]]  # (households, slots, columns)
            flat = np.ascontiguousarray(members.reshape(len(rows), -1))
            centres = weighted_centres(flat, weights, groups, count)
            centres = centres.reshape(count, *members.shape[1:])
            # |x - c|² without |x|², which no assignment changes.
            cost = (centres**2).sum(axis=2)[groups][:, None, :] - 2 * np.einsum(
                "hid,hjd->hij", members, centres[groups]
            )
            stays = np.einsum("hii->h", cost)
            for home, own in enumerate(cost):
                member, slot = linear_sum_assignment(own)
                if own[member, slot].sum() < stays[home] - 1e-9 * (1 + abs(stays[home])):
                    new = np.empty(len(slot), dtype=np.int64)
                    new[slot] = rows[home, run][member]
                    rows[home, run] = new
                    changed = True
        if not changed:
            break
    return rows
