"""A tree of boxes whose points can be removed, and the points made ready for it.

Ninety zeros in a hundred are one point to search among, so equal rows become one *distinct point*.
Distinct points are numbered leaf by leaf (`order_by_leaves`) and rows are moved likewise, so that
what a group touches is close together in memory. The number of a row after the move is its *place*;
ties are still broken by the row number before the move.

Points are ordered on a rounded copy: float32, centred, and scaled by a power of two, so that no
value overflows or underflows. The order decides only speed: every search measures in float64.

A leaf holds up to sixteen points, a node up to sixteen boxes, both column by column: one vector
register holds the same column of all sixteen. Boxes tighten when points are removed.
"""

import math
from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers, Singles
from . import kernel, spliced
from .groups import members_of, number_equal

LEAF = 16  # points in a leaf: one vector register of float32 on AVX-512, two on AVX2
# The rounded copy has a multiple of this number of columns, the last ones zeros: the loop over
# columns is unrolled so many times. Tables of microdata mostly have up to 10 or 15 columns.
STEP = 5
SAMPLE = 16  # points looked at to find a wide column; a wrong choice costs time, never correctness
LANES = LEAF  # and one pass over the lanes handles STEP columns


class Duplicates(NamedTuple):
    """Rows grouped by their values; those of a point are removed in the order of their numbers."""

    points: Floats  # (distinct, d) the values, in the order of `order_by_leaves`
    point_of: Integers  # (n,) the distinct point at each place
    rows: Integers  # (n,) the row at each place, ascending for each distinct point
    firsts: Integers  # (distinct,) the place of the lowest row that remains
    ends: Integers  # (distinct,) the first place of the next distinct point


@kernel
def group_equal(X: Floats, centre: Floats) -> Duplicates:
    """Group equal rows, in O(n d), and order the distinct points, in O(n d log n)."""
    d = X.shape[1]
    number, seen_at = number_equal(X)
    n_distinct = seen_at.shape[0]
    order = order_by_leaves(rounded(X, seen_at, centre).table, d)
    points, renumbered = np.empty((n_distinct, d)), np.empty(n_distinct, dtype=np.int64)
    for distinct in range(n_distinct):
        renumbered[order[distinct]] = distinct
        for j in range(d):
            points[distinct, j] = X[seen_at[order[distinct]], j]
    number = renumbered[number]
    rows, begins = members_of(number, n_distinct)
    return Duplicates(points, number[rows], rows, begins[:-1].copy(), begins[1:].copy())


class RoundedPoints(NamedTuple):
    """A rounded copy of some points."""

    table: Singles  # (columns, points)
    scale: float  # with which they are multiplied, after the centre is subtracted
    reach: float  # the longest of them, after that


@kernel
def rounded(points: Floats, which: Integers, centre: Floats) -> RoundedPoints:
    """Copy some points centred, scaled and rounded, columns first, padded with zeros."""
    d = points.shape[1]
    largest, longest = 0.0, 0.0
    for i in which:
        length = 0.0
        for j in range(d):
            side = abs(points[i, j] - centre[j])
            largest = max(largest, side)
            length += side * side
        longest = max(longest, length)
    scale = 0.5 ** max(math.frexp(largest)[1], -1000)
    table = np.zeros(((d + STEP - 1) // STEP * STEP, which.shape[0]), dtype=np.float32)
    for i in range(which.shape[0]):
        for j in range(d):
            table[j, i] = np.float32((points[which[i], j] - centre[j]) * scale)
    return RoundedPoints(table, scale, math.sqrt(longest) * scale)


@kernel
def _median(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """Median of three."""
    return max(min(a, b), min(max(a, b), c))


@kernel
def _halve(
    values: Singles, order: Integers, first: int, last: int, middle: int, spare_values: Singles,
    spare_order: Integers,
) -> None:  # fmt: skip
    """Reorder first..last-1 so that no value before `middle` is larger than one after it.

    Quickselect that copies instead of swapping: both copies are always written and only the
    counters depend on the comparison, so there is no branch to mispredict. The pivot is the median
    of three medians of three (Tukey's ninther).
    """
    while last - first > 1:
        step = (last - first) // 9
        if step == 0:  # few: sort by insertion
            for i in range(first + 1, last):
                value, record, to = values[i], order[i], i
                while to > first and values[to - 1] > value:
                    values[to], order[to] = values[to - 1], order[to - 1]
                    to -= 1
                values[to], order[to] = value, record
            return
        pivot = _median(
            _median(values[first], values[first + step], values[first + 2 * step]),
            _median(values[first + 3 * step], values[first + 4 * step], values[first + 5 * step]),
            _median(values[first + 6 * step], values[first + 7 * step], values[last - 1]),
        )
        kept, spared = first, 0
        for i in range(first, last):
            value, record = values[i], order[i]
            values[kept], order[kept] = value, record
            spare_values[spared], spare_order[spared] = value, record
            smaller = value < pivot
            kept += smaller
            spared += not smaller
        equal, larger = kept, last
        for i in range(spared):
            if spare_values[i] == pivot:
                values[equal], order[equal] = pivot, spare_order[i]
                equal += 1
            else:
                larger -= 1
                values[larger], order[larger] = spare_values[i], spare_order[i]
        if middle < kept:
            last = kept
        elif middle < equal:
            return
        else:
            first = equal


@kernel
def order_by_leaves(table: Singles, d: int) -> Integers:
    """Order the points of a rounded table, of which d columns count, leaf by leaf.

    The table is cut in two along a wide column, and so on. Cuts fall on multiples of 16 points, in
    larger parts of 16^2, in yet larger ones of 16^3 ...: all leaves but the last are full, and so
    are the nodes of sixteen leaves, the nodes of sixteen such nodes ...
    """
    n = table.shape[1]
    order, spare_order = np.arange(n), np.empty(n, dtype=np.int64)
    values, spare_values = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    firsts, lasts, height = np.zeros(64, dtype=np.int64), np.full(64, n), 1
    while height > 0:
        height -= 1
        first, last = firsts[height], lasts[height]
        if last - first <= LEAF:
            continue
        unit = LEAF
        while unit * LEAF < last - first:
            unit *= LEAF
        middle = first + ((last - first + unit - 1) // unit + 1) // 2 * unit
        widest, width = 0, np.float32(-1.0)
        step = max(1, (last - first) // SAMPLE)
        for j in range(d):
            low = high = table[j, order[first]]
            for i in range(first, last, step):
                value = table[j, order[i]]
                low = value if value < low else low
                high = value if value > high else high
            if high - low > width:
                widest, width = j, high - low
        for i in range(first, last):
            values[i] = table[widest, order[i]]
        _halve(values, order, first, last, middle, spare_values, spare_order)
        lasts[height], firsts[height + 1], lasts[height + 1] = middle, middle, last
        height += 2
    return order


class Tree(NamedTuple):
    """Boxes of boxes of points; nodes are numbered upwards, the parents of leaves first."""

    points: Singles  # (leaves, columns, 16), flat; NaN where no record is
    boxes: Singles  # (nodes, columns, 2, 16), flat: low and negated high sides of the children
    members: Integers  # (leaves, 16), flat: which distinct point
    places: Integers  # (distinct,) where each point stands in `members`
    below: Integers  # (nodes,) the first child; a leaf f counts as node `nodes` + f
    parents: Integers  # (nodes,) -1 for the root
    seats: Integers  # (nodes,) which child of its parent
    centre: Floats  # (d,) what was subtracted,
    scale: float  # and then multiplied with
    reach: float  # the longest point after that


@kernel
def build_tree(points: Floats, which: Integers, centre: Floats, ordered: bool) -> Tree:
    """Build the tree of some points in O(n d log n), or O(n d) if they are in order of leaves."""
    d = points.shape[1]
    copy = rounded(points, which, centre)
    columns, n = copy.table.shape
    order = np.arange(n) if ordered else order_by_leaves(copy.table, d)
    n_leaves = (n + LANES - 1) // LANES
    below, parents, seats = _number_nodes(n_leaves)
    tree = Tree(
        np.zeros(n_leaves * columns * LANES, dtype=np.float32),
        _empty_boxes(below.shape[0], columns, d), np.full(n_leaves * LANES, -1),
        np.empty(points.shape[0], dtype=np.int64), below, parents, seats, centre.copy(),
        copy.scale, copy.reach,
    )  # fmt: skip
    for leaf in range(n_leaves):
        _fill(tree, leaf, copy.table, which, order)
    _enclose(tree)
    return tree


@kernel
def _number_nodes(n_leaves: int) -> tuple[Integers, Integers, Integers]:
    """Number the nodes over some leaves, level by level: first children, parents, seats."""
    count, n_nodes = n_leaves, 0
    while count > 1 or n_nodes == 0:
        count = (count + LANES - 1) // LANES
        n_nodes += count
    below, parents = np.empty(n_nodes, dtype=np.int64), np.full(n_nodes, -1)
    seats = np.zeros(n_nodes, dtype=np.int64)
    first, count, beneath = 0, n_leaves, n_nodes
    while first < n_nodes:
        count = (count + LANES - 1) // LANES
        for node in range(first, first + count):
            below[node] = beneath + (node - first) * LANES
            if count > 1:
                parents[node] = first + count + (node - first) // LANES
                seats[node] = (node - first) % LANES
        first, beneath = first + count, first
    return below, parents, seats


@kernel
def _empty_boxes(n_nodes: int, columns: int, d: int) -> Singles:
    """Boxes at an infinite distance; the padding columns add nothing."""
    boxes = np.zeros(n_nodes * columns * 2 * LANES, dtype=np.float32)
    for node in range(n_nodes):
        first = node * columns * 2 * LANES
        for i in range(first, first + d * 2 * LANES):
            boxes[i] = np.inf
    return boxes


@kernel
def _fill(tree: Tree, leaf: int, table: Singles, which: Integers, order: Integers) -> None:
    """Set the points of a leaf, and its box."""
    columns, d, first = table.shape[0], tree.centre.shape[0], leaf * LANES
    count = min(LANES, which.shape[0] - first)
    for slot in range(count):
        distinct = which[order[first + slot]]
        tree.members[first + slot], tree.places[distinct] = distinct, first + slot
    for slot in range(count, LANES):
        tree.points[leaf * columns * LANES + slot] = np.nan
    node, seat = leaf // LANES, leaf % LANES
    for j in range(d):
        low, high = np.float32(np.inf), np.float32(-np.inf)
        for slot in range(count):
            value = table[j, order[first + slot]]
            tree.points[(leaf * columns + j) * LANES + slot] = value
            low = value if value < low else low
            high = value if value > high else high
        tree.boxes[2 * (node * columns + j) * LANES + seat] = low
        tree.boxes[(2 * (node * columns + j) + 1) * LANES + seat] = -high


@kernel
def _enclose(tree: Tree) -> None:
    """Set the boxes of all nodes from the leaves' boxes upwards."""
    columns = (tree.centre.shape[0] + STEP - 1) // STEP * STEP
    for node in range(tree.below.shape[0] - 1):
        for j in range(tree.centre.shape[0]):
            for side in range(2):
                at = (2 * (node * columns + j) + side) * LANES
                above = (2 * (tree.parents[node] * columns + j) + side) * LANES
                tree.boxes[above + tree.seats[node]] = _smallest(tree.boxes, at, np.float32(1.0))


@kernel
def _smallest(values: Singles, first: int, sign: np.float32) -> np.float32:
    """Smallest of sixteen values, or of their negatives; NaN where there is no value."""
    smallest = np.float32(np.inf)
    for i in range(first, first + LANES):
        value = sign * values[i]
        smallest = value if value < smallest else smallest
    return smallest


@spliced
def remove_point(
    points: Singles, boxes: Singles, parents: Integers, seats: Integers, d: int, place: int
) -> None:
    """Remove the point at a place from the tree, and tighten the boxes that it held open.

    Only a point on the face of a box holds it open; the loop over parents ends at the first box
    whose face another point or child holds. The arrays are those of the `Tree`, and the function is
    spliced: numba counts references of every array that is passed.
    """
    columns, leaf, slot = (d + STEP - 1) // STEP * STEP, place // LANES, place % LANES
    for j in range(d):
        first = (leaf * columns + j) * LANES
        gone = points[first + slot]
        points[first + slot] = np.nan
        for side in range(2):
            sign = np.float32(1.0 - 2.0 * side)
            node, seat = leaf // LANES, leaf % LANES
            if boxes[(2 * (node * columns + j) + side) * LANES + seat] != sign * gone:
                continue
            smallest = _smallest(points, first, sign)
            while smallest != sign * gone:  # else a point with the same value remains
                at = (2 * (node * columns + j) + side) * LANES
                boxes[at + seat] = smallest
                node, seat = parents[node], seats[node]
                if node < 0:
                    break
                above = (2 * (node * columns + j) + side) * LANES + seat
                if boxes[above] != sign * gone:
                    break
                smallest = _smallest(boxes, at, np.float32(1.0))
