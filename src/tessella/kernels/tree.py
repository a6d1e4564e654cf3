"""Exact nearest neighbours in a tree of boxes whose points can be removed.

A leaf holds up to sixteen points, a node up to sixteen boxes, both column by column: one vector
register holds the same column of all sixteen. Boxes tighten when points are removed.
Equal rows are one point (see `duplicates`).

The search runs on rounded copies (float32, centred, scaled by a power of two), half the memory and
twice the lanes, and decides nothing by them. Let s be a rounded squared distance, t the true one on
the same scale, and e the most by which rounding two records moves their distance. Then

    |sqrt(s) - sqrt(t)| <= e + d 2^-24 sqrt(s),

so every record that can be among the m nearest has s <= (sqrt(s_m) + 2 e)^2 (1 + ...), with s_m the
m-th smallest s: the *limit*. Records within the limit are measured in float64, columns summed in
their order as a plain scan would, and ties go to the lowest row: tree and scan agree to the last
bit. A box bounds the rounded distances of its records in the same arithmetic, and rounding is
monotone, so no box is judged farther than a record in it.

`benchmarks/trees.py` compares it with SciPy's cKDTree, which cannot remove points: cKDTree takes
about twice as long or more to find the neighbours of every record.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers, Singles
from ._jit import kernel, spliced
from .duplicates import LEAF, STEP, Duplicates, order_by_leaves, rounded

LANES = LEAF  # and one pass over the lanes handles STEP columns
# Points that wait to be measured in float64: by the time they are, the limit has fallen and most
# need not be. A guess.
PENDING = 64
FARTHEST = np.float32(3e38)  # beyond every finite distance, and below that of an empty box
NOBODY = np.iinfo(np.int64).max  # where fewer records remain than were asked for
ROUNDING = 2.0**-24  # half a unit in the last place of float32, relative


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


class Scratch(NamedTuple):
    """What a search writes on."""

    query: Singles
    gaps: Singles
    lanes: Singles
    open: Integers
    bounds: Singles
    nodes: Integers
    pending: Integers
    squares: Singles


@spliced
def add_squares(points: Singles, start: int, query: Singles, out: Singles) -> None:
    """Squared distances from a query to sixteen records, column by column."""
    at = np.uint64(start)
    for i in range(LANES):
        out[i] = np.float32(0.0)
    for column in range(0, query.shape[0], STEP):
        for i in range(LANES):
            total = out[i]
            for j in range(STEP):
                side = points[at + np.uint64(j * LANES + i)] - query[column + j]
                total += side * side
            out[i] = total
        at += np.uint64(STEP * LANES)


@spliced
def add_gaps(boxes: Singles, start: int, query: Singles, out: Singles) -> None:
    """Squared distances from a query to sixteen boxes."""
    at = np.uint64(start)
    for i in range(LANES):
        out[i] = np.float32(0.0)
    for column in range(0, query.shape[0], STEP):
        for i in range(LANES):
            total = out[i]
            for j in range(STEP):
                x = query[column + j]
                under = boxes[at + np.uint64(2 * j * LANES + i)] - x
                over = boxes[at + np.uint64((2 * j + 1) * LANES + i)] + x
                gap = under if under > over else over
                gap = gap if gap > np.float32(0.0) else np.float32(0.0)
                total += gap * gap
            out[i] = total
        at += np.uint64(2 * STEP * LANES)


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
        _empty_boxes(below.shape[0], columns, d),
        np.full(n_leaves * LANES, -1),
        np.empty(points.shape[0], dtype=np.int64),
        below,
        parents,
        seats,
        centre.copy(),
        copy.scale,
        copy.reach,
    )
    for leaf in range(n_leaves):
        _fill(tree, leaf, copy.table, which, order)
    _enclose(tree)
    return tree


@kernel
def make_scratch(d: int) -> Scratch:
    """Allocate what searches among points of d columns write on."""
    return Scratch(
        np.zeros((d + STEP - 1) // STEP * STEP, dtype=np.float32),
        np.empty(LANES, dtype=np.float32),
        np.empty(LANES, dtype=np.float32),
        np.empty(LANES + 1, dtype=np.int64),
        np.empty(16 * LANES, dtype=np.float32),
        np.empty(16 * LANES, dtype=np.int64),
        np.empty(PENDING, dtype=np.int64),
        np.empty(PENDING, dtype=np.float32),
    )


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


@kernel
def remove_point(
    points: Singles, boxes: Singles, parents: Integers, seats: Integers, d: int, place: int
) -> None:
    """Remove the point at a place from the tree, and tighten the boxes that it held open.

    Only a point on the face of a box holds it open; the loop over parents ends at the first box
    whose face another point or child holds. The arrays are those of the `Tree`: numba counts
    references of every array of a tuple that is passed, so they are passed one by one.
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


@kernel
def nearest(
    tree: Tree,
    scratch: Scratch,
    duplicates: Duplicates,
    point: Floats,
    home: int,
    distances: Floats,
    found: Integers,
) -> None:
    """Find as many of the nearest remaining records of a point as `found` has room for.

    Sets squared distances and places, nearest first, of equals the lowest row first; places are
    NOBODY where fewer records remain. `home` is the place in the tree of a point near the query, or
    -1: its leaf is searched first, so that the limit is low before any box is opened.
    """
    m = found.shape[0]
    children, points, boxes, centre = tree.below, tree.points, tree.boxes, tree.centre
    query, gaps, lanes, open = scratch.query, scratch.gaps, scratch.lanes, scratch.open
    bounds, nodes = scratch.bounds, scratch.nodes
    pending, squares = scratch.pending, scratch.squares
    firsts, ends = duplicates.firsts, duplicates.ends
    single = duplicates.points.shape[0] == duplicates.rows.shape[0]  # no two rows are equal
    n_nodes, columns, d = children.shape[0], query.shape[0], centre.shape[0]
    length = 0.0
    for j in range(d):
        x = (point[j] - centre[j]) * tree.scale
        query[j] = x
        length += x * x
    # 2 e of the module's docstring, and the relative error of a sum of d squares and of the root;
    # 2.02 and 16 instead of 2 and the few operations there are leave room to spare.
    blur = 2.02 * ROUNDING * (tree.reach + math.sqrt(length))
    margin = 1.0 + (1.5 * d + 16.0) * ROUNDING
    smallest = np.empty(m, dtype=np.float32)  # the m smallest rounded squares so far
    for i in range(m):
        distances[i], found[i], smallest[i] = np.inf, NOBODY, FARTHEST
    limit, waiting = FARTHEST, np.int64(0)  # typed: a literal has _measure compiled once more
    # A stack of nodes to visit, the nearest on top. From n_nodes on, a number is that of a leaf.
    bounds[0], nodes[0], height = 0.0, n_nodes - 1, 1
    home_leaf = home // LANES if home >= 0 else -1
    if home >= 0:
        bounds[1], nodes[1], height = 0.0, n_nodes + home_leaf, 2
    while height > 0:
        height -= 1
        if bounds[height] > limit:
            continue
        node = nodes[height]
        if node >= n_nodes:
            below, n_open, open[0], gaps[0] = node, 1, 0, np.float32(0.0)
        else:
            below = children[node]
            add_gaps(boxes, 2 * node * columns * LANES, query, gaps)
            n_open = _open_children(gaps, limit, below < n_nodes or limit == FARTHEST, open)
            if below < n_nodes:
                for o in range(n_open):
                    bounds[height], nodes[height] = gaps[open[o]], below + open[o]
                    height += 1
                continue
        while n_open > 0:
            n_open -= 1
            leaf = below - n_nodes + open[n_open]
            if gaps[open[n_open]] > limit or (leaf == home_leaf and node < n_nodes):
                continue
            add_squares(points, leaf * columns * LANES, query, lanes)
            hits = 0
            for i in range(LANES):
                hits += lanes[i] <= limit
            if hits == 0:
                continue
            for i in range(LANES):
                if not lanes[i] <= limit:  # a comparison with NaN, a removed point, is false
                    continue
                if waiting == PENDING:
                    _measure(pending, squares, waiting, limit, duplicates, point, distances, found)
                    waiting = np.int64(0)
                distinct = tree.members[leaf * LANES + i]
                pending[waiting], squares[waiting] = distinct, lanes[i]
                waiting += 1
                for _ in range(1 if single else min(m, ends[distinct] - firsts[distinct])):
                    to = m - 1
                    if lanes[i] >= smallest[to]:
                        break
                    while to > 0 and smallest[to - 1] > lanes[i]:
                        smallest[to] = smallest[to - 1]
                        to -= 1
                    smallest[to] = lanes[i]
                root = (math.sqrt(smallest[m - 1]) + blur) * margin
                limit = np.float32(min(root * root, FARTHEST))
    _measure(pending, squares, waiting, limit, duplicates, point, distances, found)


@spliced
def _open_children(gaps: Singles, limit: np.float32, in_order: bool, open: Integers) -> int:
    """List the children whose boxes are within the limit; sorted, the nearest last, if asked."""
    n_open = 0
    if in_order:
        for i in range(LANES):
            if gaps[i] < FARTHEST and gaps[i] <= limit:
                to = n_open
                while to > 0 and gaps[open[to - 1]] < gaps[i]:
                    open[to] = open[to - 1]
                    to -= 1
                open[to] = i
                n_open += 1
    else:
        for i in range(LANES):  # without a branch: always written, counted where it is near
            open[n_open] = i
            n_open += gaps[i] <= limit
    return n_open


@kernel
def _measure(
    pending: Integers,
    squares: Singles,
    waiting: np.int64,
    limit: np.float32,
    duplicates: Duplicates,
    point: Floats,
    distances: Floats,
    found: Integers,
) -> None:
    """Measure the waiting points in float64 and sort their records into the nearest."""
    rows = duplicates.rows
    for i in range(waiting):
        if squares[i] > limit:
            continue
        distinct, distance = pending[i], 0.0
        for j in range(point.shape[0]):
            side = duplicates.points[distinct, j] - point[j]
            distance += side * side
        for place in range(duplicates.firsts[distinct], duplicates.ends[distinct]):
            to = found.shape[0] - 1
            if _after(distance, place, distances[to], found[to], rows):
                break
            while to > 0 and _after(distances[to - 1], found[to - 1], distance, place, rows):
                distances[to], found[to] = distances[to - 1], found[to - 1]
                to -= 1
            distances[to], found[to] = distance, place


@kernel
def _after(distance: float, place: int, other: float, other_place: int, rows: Integers) -> bool:
    """Whether a record comes after another one, which may be nobody."""
    if distance != other or other_place == NOBODY:
        return distance > other
    return place == NOBODY or rows[place] > rows[other_place]
