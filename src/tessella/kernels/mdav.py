"""Groups from the outside in: MDAV, V-MDAV and CBFS, exact as a plain scan and much faster.

All three take one group after another out of the records that remain, each around a *seed* that is
far out. What a plain scan finds in O(n) per group, two structures find among fewer records: the
farthest one (`Sectors`), the nearest ones (`tree`). They only narrow the search. Every choice is
made on the distances that a scan would compute, ties to the lowest row.

It is one kernel for three ways, because a kernel is compiled together with all that it calls.

A *sector* holds points that are near each other; in it, *blocks* of 64 points stand by their
distance from the centre, the outermost first. Measured from the centre, a point x of a block is no
longer than the block's radius R and lies in the box of its sector, low <= x <= high. From a
query p it is thus at most

    |x - p|^2 <= R^2 + |p|^2 - 2 A + 2 min(R |p_S|, -B),

where low and high bound each product x_j p_j from below: A sums the bounds that are positive, B
those that are negative, and S has the columns of the latter (on these, Cauchy-Schwarz gives the
R |p_S|). The bound falls with R, so a sector is left at the first block that cannot hold
the farthest point. Far out there are few records: a search ends soon in many columns too, where
boxes alone prune nothing.

Distances are summed in the order of the columns, as a plain scan would, and ties go to the lowest
row: sectors and scan agree to the last bit.
"""

import math
from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .neighbours import Scratch, add_squares, make_scratch, nearest
from .tree import STEP, Duplicates, Tree, remove_point

# Points in a block: long enough that measuring a block outweighs bounding it, short enough that
# the outermost block is soon used up. A guess.
LANES = 64
MDAV, VMDAV, CBFS = 0, 1, 2
# Tree and sectors are built anew when this share of their points is left: leaves are then more than
# half empty. Doubled, they are built anew whenever a fifth of the points is gone.
WEAR = 0.4
# They are also built anew when seeds have cost as much as so many searches through all sectors: the
# centre has moved, and distances from the old one bound too little. A guess.
SEARCHES = 500
FEW = 256  # as few points as this are searched to the end: building costs more than it saves


class Sectors(NamedTuple):
    """Points by place and by distance from a centre."""

    points: Floats  # (blocks, columns, 64), flat; NaN where no point is
    radii: Floats  # (blocks,)
    members: Integers  # (blocks, 64), flat: which distinct point
    places: Integers  # (distinct,) where each point stands in `members`
    counts: Integers  # (blocks,) how many points remain
    heads: Integers  # (sectors,) the first block that is not empty
    ends: Integers  # (sectors,) where the sector's blocks end
    low: Floats  # (d, sectors) the box of each sector, measured from the centre
    high: Floats
    centre: Floats  # (d,)
    query: Floats  # scratch of the search, from here on
    lanes: Floats
    above: Floats  # (sectors,) A
    below: Floats  # (sectors,) B
    across: Floats  # (sectors,) |p_S|^2, then its root
    state: Integers  # how many blocks the last search looked at


@kernel
def _outermost_first(squares: Floats, size: int) -> Integers:
    """Order by sectors of a size, in them by square, the largest first, to one part in a thousand.

    A radix sort on the leading 22 bits, which order floats that are not negative, then by sector.
    """
    n = squares.shape[0]
    keys = squares.view(np.int64)
    order, other = np.arange(n), np.empty(n, dtype=np.int64)
    for shift in (42, 53):
        starts = np.zeros(2049, dtype=np.int64)
        for i in range(n):
            starts[2048 - ((keys[i] >> shift) & 2047)] += 1
        for digit in range(2048):
            starts[digit + 1] += starts[digit]
        for at in range(n):
            i = order[at]
            digit = 2047 - ((keys[i] >> shift) & 2047)
            other[starts[digit]] = i
            starts[digit] += 1
        order, other = other, order
    filled = np.zeros(n // size + 1, dtype=np.int64)
    for at in range(n):
        i = order[at]
        other[i // size * size + filled[i // size]] = i
        filled[i // size] += 1
    return other


@kernel
def build_sectors(points: Floats, by_place: Integers, centre: Floats, size: int) -> Sectors:
    """Arrange some points around a centre, in sectors of a size, a multiple of 64; in O(n d).

    The points of a sector follow each other in `by_place`.
    """
    n, d = by_place.shape[0], points.shape[1]
    squares = np.zeros(n)
    n_sectors = (n + size - 1) // size
    low, high = np.full((d, n_sectors), np.inf), np.full((d, n_sectors), -np.inf)
    for i in range(n):
        for j in range(d):
            side = points[by_place[i], j] - centre[j]
            squares[i] += side * side
            low[j, i // size] = min(low[j, i // size], side)
            high[j, i // size] = max(high[j, i // size], side)
    order = _outermost_first(squares, size)
    n_blocks, columns = (n + LANES - 1) // LANES, (d + STEP - 1) // STEP * STEP
    sectors = Sectors(
        np.zeros(n_blocks * columns * LANES), np.zeros(n_blocks), np.full(n_blocks * LANES, -1),
        np.empty(points.shape[0], dtype=np.int64), np.zeros(n_blocks, dtype=np.int64),
        np.empty(n_sectors, dtype=np.int64), np.empty(n_sectors, dtype=np.int64), low, high,
        centre.copy(), np.zeros(columns), np.empty(LANES), np.empty(n_sectors),
        np.empty(n_sectors), np.empty(n_sectors), np.zeros(1, dtype=np.int64),
    )  # fmt: skip
    for sector in range(n_sectors):
        sectors.heads[sector] = sector * size // LANES
        sectors.ends[sector] = min(n_blocks, (sector + 1) * size // LANES)
        radius = 0.0
        for block in range(sectors.ends[sector] - 1, sectors.heads[sector] - 1, -1):
            for lane in range(LANES):
                place = block * LANES + lane
                if place >= n:
                    sectors.points[block * columns * LANES + lane] = np.nan
                    continue
                distinct = by_place[order[place]]
                sectors.members[place], sectors.places[distinct] = distinct, place
                sectors.counts[block] += 1
                for j in range(d):
                    sectors.points[(block * columns + j) * LANES + lane] = points[distinct, j]
                radius = max(radius, squares[order[place]])
            sectors.radii[block] = math.sqrt(radius)
    return sectors


@kernel
def remove_from_block(points: Floats, counts: Integers, d: int, place: int) -> None:
    """Remove the point at a place from its block; the arrays are those of the `Sectors`."""
    columns, block, lane = (d + STEP - 1) // STEP * STEP, place // LANES, place % LANES
    points[block * columns * LANES + lane] = np.nan
    counts[block] -= 1


@kernel
def _bound_sectors(sectors: Sectors, point: Floats) -> float:
    """Set the query and the parts A, B, |p_S| of the sectors' bounds; return the length of p."""
    above, below, across = sectors.above, sectors.below, sectors.across
    n_sectors = above.shape[0]
    for s in range(n_sectors):
        above[s] = below[s] = across[s] = 0.0
    length = 0.0
    for j in range(sectors.centre.shape[0]):
        sectors.query[j] = point[j]
        p = point[j] - sectors.centre[j]
        length += p * p
        low, high = sectors.low[j], sectors.high[j]
        for s in range(n_sectors):
            a, b = low[s] * p, high[s] * p
            least = a if a < b else b
            above[s] += least if least > 0.0 else 0.0
            below[s] += least if least < 0.0 else 0.0
            across[s] += p * p if least < 0.0 else 0.0
    for s in range(n_sectors):
        across[s] = math.sqrt(across[s])
    return math.sqrt(length)


@kernel
def farthest(sectors: Sectors, duplicates: Duplicates, point: Floats) -> int:
    """Return the place of the remaining record farthest from a point, of equals the lowest row."""
    points, radii, counts, lanes = sectors.points, sectors.radii, sectors.counts, sectors.lanes
    columns, n_sectors = sectors.query.shape[0], sectors.heads.shape[0]
    length = _bound_sectors(sectors, point)
    # Rounding, and underflow of squares, by which a computed distance may exceed the bound.
    margin, tiny = 1e-14 * (sectors.centre.shape[0] + 10), 1e-150
    start, outermost = 0, -1.0
    for s in range(n_sectors):
        while sectors.heads[s] < sectors.ends[s] and counts[sectors.heads[s]] == 0:
            sectors.heads[s] += 1
        if sectors.heads[s] < sectors.ends[s]:
            radius = radii[sectors.heads[s]]
            bound = radius * radius - 2.0 * sectors.above[s]
            bound += 2.0 * min(radius * sectors.across[s], -sectors.below[s])
            if bound > outermost:
                start, outermost = s, bound
    best, found = -1.0, -1
    sectors.state[0] = 0
    for turn in range(n_sectors + 1):  # the most promising sector first, then all others
        s = start if turn == 0 else turn - 1
        if turn > 0 and s == start:
            continue
        for block in range(sectors.heads[s], sectors.ends[s]):
            radius = radii[block] + tiny
            bound = radius * radius + length * length
            bound += 2.0 * min(radius * sectors.across[s], -sectors.below[s])
            if bound * (1.0 + margin) - 2.0 * sectors.above[s] * (1.0 - margin) < best:
                break
            sectors.state[0] += 1
            add_squares(points, block * columns * LANES, LANES, sectors.query, lanes)
            for i in range(LANES):
                if lanes[i] >= best:
                    place = duplicates.firsts[sectors.members[block * LANES + i]]
                    if lanes[i] > best or duplicates.rows[place] < duplicates.rows[found]:
                        best, found = lanes[i], place
    return found


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
    duplicates: Duplicates, weights: Floats, k: int, way: int, gamma: float, labels: Integers,
    sums: Floats, tree: Tree, sectors: Sectors, units: Integers,
) -> float:  # fmt: skip
    """Take groups out until too few records are left, or tree and sectors have served.

    Labels and weights are by place, see `Duplicates`. Groups are numbered in the order in which
    they are taken, -1 are the records that remain. `sums` are those of the records that remain;
    `tree` and `sectors` hold their points, the sectors around the centre from which seeds are
    measured. With units, by place, a group takes the nearest records until it has k units, and
    groups are taken until fewer than k units are left.
    Returns the share of the sectors that a search for a seed looked at, on average.
    """
    points, point_of, d = duplicates.points, duplicates.point_of, duplicates.points.shape[1]
    aim, centre, distances = np.empty(d), sectors.centre.copy(), np.empty(k)
    scratch = make_scratch(d, max(k, 2))
    by_unit = units.shape[0] > 0
    members = np.empty(labels.shape[0] if by_unit else 2 * k, dtype=np.int64)
    group_sums = np.zeros((2, d + 1))
    group, left, n_points = labels.max() + 1, 0, sectors.counts.sum()
    for label in labels:
        left += label < 0
    least, n_units = 2 * k if way == MDAV else k, left
    # Records of each unit that remain, and the last group that has it.
    n_all = units.max() + 1 if by_unit else 0
    remaining, seen = np.zeros(n_all, dtype=np.int64), np.full(n_all, -1)
    if by_unit:
        least, n_units = k, 0
        for place in range(labels.shape[0]):
            if labels[place] < 0:
                n_units += remaining[units[place]] == 0
                remaining[units[place]] += 1
    enough = WEAR * n_points if n_points > FEW else 0.0
    n_blocks, looked, searches = sectors.counts.shape[0], 0, 0
    while n_units >= least and n_points >= enough:
        if looked > SEARCHES * n_blocks:
            break
        if way != VMDAV:  # which measures from the centre of all records throughout
            mean_of(sums, centre)
        for turn in range(2 if way == MDAV else 1):
            if n_units < least:
                break
            for j in range(d):
                aim[j] = centre[j] if turn == 0 else points[point_of[members[0]], j]
            members[0], taken, size, held = farthest(sectors, duplicates, aim), 0, 1, 0
            looked += sectors.state[0]
            searches += 1
            for j in range(d):
                aim[j] = points[point_of[members[0]], j]
            group_sums[:] = 0.0
            while taken < size:
                n_points -= _remove(members, taken, size, duplicates, tree, sectors)
                if by_unit:
                    for i in range(taken, size):
                        held += seen[units[members[i]]] != group
                        seen[units[members[i]]] = group
                else:
                    held = size
                taken = size
                if held < k:
                    if way == CBFS:
                        last = members[size - 1]
                        add_record(group_sums, points, point_of[last], weights[last])
                        mean_of(group_sums, aim)
                    size += 1 if way == CBFS else k - held
                    home = tree.places[point_of[members[0]]]
                    nearest(
                        tree, scratch, duplicates, aim, home,
                        distances[: size - taken], members[taken:size],
                    )  # fmt: skip
            if way == VMDAV:
                size = _extend(
                    members, size, k, left - size, gamma, duplicates, tree, scratch, sectors
                )
            for i in range(size):
                labels[members[i]] = group
                add_record(sums, points, point_of[members[i]], -weights[members[i]])
                if by_unit:
                    remaining[units[members[i]]] -= 1
                    n_units -= remaining[units[members[i]]] == 0
            group += 1
            left -= size
            if not by_unit:
                n_units = left
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
    blocks, counts = sectors.points, sectors.counts
    tree_places, sector_places = tree.places, sectors.places
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
    members: Integers, size: int, k: int, outside: int, gamma: float, duplicates: Duplicates,
    tree: Tree, scratch: Scratch, sectors: Sectors,
) -> int:  # fmt: skip
    """Let records that are much nearer to the group than to the others join it, up to 2k - 1.

    A record that is nearest to the group, at distance a, and at distance b from the nearest other
    one outside, joins if a < gamma b. Returns the size of the group.
    """
    points, point_of, rows = duplicates.points, duplicates.point_of, duplicates.rows
    found, squares = np.empty(2, dtype=np.int64), np.empty(2)
    near, near_squares = np.full(2 * k, -1), np.full(2 * k, np.inf)
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
