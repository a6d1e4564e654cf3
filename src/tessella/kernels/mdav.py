"""Groups from the outside in: MDAV, V-MDAV and CBFS, exact as a plain scan and much faster.

All three take one group after another out of the records that remain, each around a *seed* that is
far out. What a plain scan finds in O(n) per group, two structures find among fewer records: the
farthest one (`outward`), the nearest ones (`nearby`). They only narrow the search. Every choice is
made on the distances that a scan would compute, ties to the lowest row.

It is one kernel for three ways, because a kernel is compiled together with all that it calls.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from . import nearby, outward
from ._jit import kernel
from .nearby import Tree, nearest
from .outward import Shells, farthest

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

take_from_tree, take_from_shells = nearby.take_out, outward.take_out

MDAV, VMDAV, CBFS = 0, 1, 2

WEAR = 0.4  # tree and shells have served when this share of their records is left,
SEARCHES = 30  # or when seeds have cost as many searches through all shells;
FEW = 256  # for as few records as this they serve to the end


@kernel
def add_record(sums: Floats, x: Floats, weight: float) -> None:
    """Add a weighted record to sums of shape (2, d + 1); take it away with a negative weight.

    The first row holds the sums of w x and, last, of w; the second what rounding lost of them
    (Neumaier 1974): the mean of what remains does not drift while a million records leave.
    """
    d = x.shape[0]
    for j in range(d + 1):
        term = weight * x[j] if j < d else weight
        total = sums[0, j] + term
        if abs(sums[0, j]) >= abs(term):
            sums[1, j] += (sums[0, j] - total) + term
        else:
            sums[1, j] += (term - total) + sums[0, j]
        sums[0, j] = total


@kernel
def mean_of(sums: Floats, mean: Floats) -> None:
    """Set the weighted mean of the records in the sums."""
    d = mean.shape[0]
    weight = sums[0, d] + sums[1, d]
    for j in range(d):
        mean[j] = (sums[0, j] + sums[1, j]) / weight


@kernel
def take_groups(
    X: Floats,
    weights: Floats,
    k: int,
    way: int,
    gamma: float,
    labels: Integers,
    sums: Floats,
    tree: Tree,
    shells: Shells,
) -> None:
    """Take groups out until too few records are left, or tree and shells have served.

    Groups are numbered in the order in which they are taken, -1 are the records that remain.
    `sums` are those of the records that remain, `tree` and `shells` hold them, the shells around
    the centre from which the first seed of all is measured.
    """
    d = X.shape[1]
    aim, centre, distances = np.empty(d), shells.centre.copy(), np.empty(2 * k)
    members, group_sums = np.empty(2 * k, dtype=np.int64), np.zeros((2, d + 1))
    group, left, worn = labels.max() + 1, shells.counts.sum(), 0
    enough = WEAR * left if left > FEW else 0.0
    least = 2 * k if way == MDAV else k
    while left >= least and left >= enough and worn <= SEARCHES * shells.counts.shape[0]:
        if way != VMDAV:  # which measures from the centre of all records throughout
            mean_of(sums, centre)
        for turn in range(2 if way == MDAV and left >= 3 * k else 1):
            if turn == 0:
                aim[:] = centre
            members[0], size = farthest(shells, aim), 1
            worn += shells.state[1] if turn == 0 else 0
            aim[:] = X[members[0]]  # from here the second seed is farthest
            take_from_tree(tree, members[0])
            group_sums[:] = 0.0
            while size < k:
                if way == CBFS:
                    add_record(group_sums, X[members[size - 1]], weights[members[size - 1]])
                    mean_of(group_sums, aim)
                wanted = 1 if way == CBFS else k - 1
                nearest(tree, X, aim, distances[:wanted], members[size : size + wanted])
                for _ in range(wanted):
                    take_from_tree(tree, members[size])
                    size += 1
            if way == VMDAV:
                size = _extend(tree, X, members, k, left - k, gamma)
            for i in range(size):
                labels[members[i]] = group
                take_from_shells(shells, members[i])
                add_record(sums, X[members[i]], -weights[members[i]])
            group += 1
            left -= size


@kernel
def sums_of(X: Floats, weights: Floats) -> Floats:
    """Return the sums of all records, see `add_record`."""
    sums = np.zeros((2, X.shape[1] + 1))
    for row in range(X.shape[0]):
        add_record(sums, X[row], weights[row])
    return sums


@kernel
def _extend(tree: Tree, X: Floats, members: Integers, k: int, outside: int, gamma: float) -> int:
    """Let records that are much nearer to the group than to the others join it, up to 2k - 1.

    A record that is nearest to the group, at distance a, and at distance b from the nearest other
    one outside, joins if a < gamma b. Returns the size of the group.
    """
    rows, squares = np.empty(2, dtype=np.int64), np.empty(2)
    near_rows, near_squares = np.full(2 * k, -1), np.full(2 * k, np.inf)
    size, known = k, 0
    while size < 2 * k - 1 and outside > 0:
        best = 0
        for i in range(size):
            if i >= known or near_rows[i] < 0:
                nearest(tree, X, X[members[i]], squares[:1], rows[:1])
                near_rows[i], near_squares[i] = rows[0], squares[0]
            if near_squares[i] < near_squares[best] or (
                near_squares[i] == near_squares[best] and near_rows[i] < near_rows[best]
            ):
                best = i
        known, row = size, near_rows[best]
        rows[0], squares[0] = -1, np.inf
        if outside > 1:
            nearest(tree, X, X[row], squares, rows)
            if rows[0] == row:
                rows[0], squares[0] = rows[1], squares[1]
        if not math.sqrt(near_squares[best]) < gamma * math.sqrt(squares[0]):
            break
        take_from_tree(tree, row)
        outside -= 1
        for i in range(size):
            if near_rows[i] == row:
                near_rows[i] = -1
        members[size], near_rows[size], near_squares[size] = row, rows[0], squares[0]
        size += 1
        known = size
    return size
