"""Groups from the outside in: MDAV, V-MDAV and CBFS, exact as a plain scan and much faster.

All three take one group after another out of the records that remain, each around a *seed* that is
far out. What a plain scan finds in O(n) per group, two structures find among fewer records: the
farthest one (`farthest`), the nearest ones (`tree`). They only narrow the search. Every choice is
made on the distances that a scan would compute, ties to the lowest row.

It is one kernel for three ways, because a kernel is compiled together with all that it calls.
"""

from __future__ import annotations

import math

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel
from .duplicates import Duplicates
from .farthest import Sectors, farthest, remove_from_block
from .tree import Scratch, Tree, make_scratch, nearest, remove_point

MDAV, VMDAV, CBFS = 0, 1, 2

# Tree and sectors are built anew when this share of their points is left: leaves are then more than
# half empty. Doubled, they are built anew whenever a fifth of the points is gone.
WEAR = 0.4
# They are also built anew when seeds have cost as much as so many searches through all sectors: the
# centre has moved, and distances from the old one bound too little. A guess.
SEARCHES = 500
FEW = 256  # as few points as this are searched to the end: building costs more than it saves


@kernel
def add_record(sums: Floats, X: Floats, row: int, weight: float) -> None:
    """Add a weighted record to sums of shape (2, d + 1); take it away with a negative weight.

    The first row holds the sums of w x and, last, of w; the second what rounding lost of them
    (Neumaier 1974): the mean of what remains does not drift while a million records leave.
    """
    d = X.shape[1]
    for j in range(d + 1):
        term = weight * X[row, j] if j < d else weight
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
    duplicates: Duplicates,
    weights: Floats,
    k: int,
    way: int,
    gamma: float,
    labels: Integers,
    sums: Floats,
    tree: Tree,
    sectors: Sectors,
) -> float:
    """Take groups out until too few records are left, or tree and sectors have served.

    Labels and weights are by place, see `Duplicates`. Groups are numbered in the order in which
    they are taken, -1 are the records that remain. `sums` are those of the records that remain;
    `tree` and `sectors` hold their points, the sectors around the centre from which seeds are
    measured.
    Returns the share of the sectors that a search for a seed looked at, on average.
    """
    points, point_of, d = duplicates.points, duplicates.point_of, duplicates.points.shape[1]
    aim, centre, distances, scratch = (
        np.empty(d),
        sectors.centre.copy(),
        np.empty(k),
        make_scratch(d),
    )
    members, group_sums = np.empty(2 * k, dtype=np.int64), np.zeros((2, d + 1))
    group, left, n_points = labels.max() + 1, 0, sectors.counts.sum()
    for label in labels:
        left += label < 0
    enough = WEAR * n_points if n_points > FEW else 0.0
    n_blocks, looked, searches = sectors.counts.shape[0], 0, 0
    while left >= (2 * k if way == MDAV else k) and n_points >= enough:
        if looked > SEARCHES * n_blocks:
            break
        if way != VMDAV:  # which measures from the centre of all records throughout
            mean_of(sums, centre)
        for turn in range(2 if way == MDAV and left >= 3 * k else 1):
            for j in range(d):
                aim[j] = centre[j] if turn == 0 else points[point_of[members[0]], j]
            members[0], taken, size = farthest(sectors, duplicates, aim), 0, 1
            looked += sectors.state[0]
            searches += 1
            for j in range(d):
                aim[j] = points[point_of[members[0]], j]
            group_sums[:] = 0.0
            while taken < size:
                n_points -= _remove(members, taken, size, duplicates, tree, sectors)
                taken = size
                if size < k:
                    if way == CBFS:
                        last = members[size - 1]
                        add_record(group_sums, points, point_of[last], weights[last])
                        mean_of(group_sums, aim)
                    size = size + 1 if way == CBFS else k
                    home = tree.places[point_of[members[0]]]
                    nearest(
                        tree, scratch, duplicates, aim, home,
                        distances[taken:size], members[taken:size],
                    )  # fmt: skip
            if way == VMDAV:
                size = _extend(members, k, left - k, gamma, duplicates, tree, scratch, sectors)
            for i in range(size):
                labels[members[i]] = group
                add_record(sums, points, point_of[members[i]], -weights[members[i]])
            group += 1
            left -= size
    return float(looked / (searches * n_blocks))


@kernel
def _remove(
    members: Integers, first: int, last: int, duplicates: Duplicates, tree: Tree, sectors: Sectors
) -> int:
    """Remove records, and points of which no record remains; return how many points.

    `members` from `first` to `last` are each the lowest remaining row of its point in turn.
    """
    point_of, firsts, ends = duplicates.point_of, duplicates.firsts, duplicates.ends
    points, boxes, parents, seats = tree.points, tree.boxes, tree.parents, tree.seats
    blocks, counts, tree_places, sector_places = (
        sectors.points,
        sectors.counts,
        tree.places,
        sectors.places,
    )
    d, gone, single = tree.centre.shape[0], 0, duplicates.points.shape[0] == point_of.shape[0]
    for i in range(first, last):
        distinct = members[i] if single else point_of[members[i]]
        firsts[distinct] += 1
        if single or firsts[distinct] == ends[distinct]:
            remove_point(points, boxes, parents, seats, d, tree_places[distinct])
            remove_from_block(blocks, counts, d, sector_places[distinct])
            gone += 1
    return gone


@kernel
def sums_of(X: Floats, weights: Floats) -> Floats:
    """Return the sums of all records, see `add_record`."""
    sums = np.zeros((2, X.shape[1] + 1))
    for row in range(X.shape[0]):
        add_record(sums, X, row, weights[row])
    return sums


@kernel
def _extend(
    members: Integers,
    k: int,
    outside: int,
    gamma: float,
    duplicates: Duplicates,
    tree: Tree,
    scratch: Scratch,
    sectors: Sectors,
) -> int:
    """Let records that are much nearer to the group than to the others join it, up to 2k - 1.

    A record that is nearest to the group, at distance a, and at distance b from the nearest other
    one outside, joins if a < gamma b. Returns the size of the group.
    """
    points, point_of, rows = duplicates.points, duplicates.point_of, duplicates.rows
    found, squares = np.empty(2, dtype=np.int64), np.empty(2)
    near, near_squares = np.full(2 * k, -1), np.full(2 * k, np.inf)
    size = k
    while size < 2 * k - 1 and outside > 0:
        best = 0
        for i in range(size):
            if near[i] < 0:
                point = point_of[members[i]]
                nearest(
                    tree, scratch, duplicates, points[point], tree.places[point],
                    squares[:1], found[:1],
                )  # fmt: skip
                near[i], near_squares[i] = found[0], squares[0]
            if near_squares[i] < near_squares[best] or (
                near_squares[i] == near_squares[best] and rows[near[i]] < rows[near[best]]
            ):
                best = i
        joining = near[best]
        found[0], squares[0] = -1, np.inf
        if outside > 1:
            point = point_of[joining]
            nearest(tree, scratch, duplicates, points[point], tree.places[point], squares, found)
            if found[0] == joining:
                found[0], squares[0] = found[1], squares[1]
        if not math.sqrt(near_squares[best]) < gamma * math.sqrt(squares[0]):
            break
        for i in range(size):
            if near[i] == joining:
                near[i] = -1
        members[size], near[size], near_squares[size] = joining, found[0], squares[0]
        _remove(members, size, size + 1, duplicates, tree, sectors)
        size += 1
        outside -= 1
    return size
