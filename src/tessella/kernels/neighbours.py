"""Exact nearest neighbours in a `tree`: several at once, or one at a time among rows that remain.

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

import math
from typing import Any, NamedTuple

import numpy as np

from .._types import Floats, Integers, Singles, Truths
from . import kernel, spliced
from .tree import LANES, STEP, Duplicates, Tree, build_tree, group_equal, remove_point

# Points that wait to be measured in float64: by the time they are, the limit has fallen and most
# need not be. A guess.
PENDING = 64
FARTHEST = np.float32(3e38)  # beyond every finite distance, and below that of an empty box
NOBODY = np.iinfo(np.int64).max  # where fewer records remain than were asked for
ROUNDING = 2.0**-24  # half a unit in the last place of float32, relative


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
    smallest: Singles  # (most,) the smallest rounded squares so far


@spliced
def add_squares(points: Any, start: int, lanes: int, query: Any, out: Any) -> None:
    """Squared distances from a query to the records in so many lanes, column by column."""
    at = np.uint64(start)
    for i in range(lanes):
        out[i] = 0.0
    for column in range(0, query.shape[0], STEP):
        for i in range(lanes):
            total = out[i]
            for j in range(STEP):
                side = points[at + np.uint64(j * lanes + i)] - query[column + j]
                total += side * side
            out[i] = total
        at += np.uint64(STEP * lanes)


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
def make_scratch(d: int, most: int) -> Scratch:
    """Allocate what searches for up to `most` records among points of d columns write on."""
    return Scratch(
        np.zeros((d + STEP - 1) // STEP * STEP, dtype=np.float32),
        np.empty(LANES, dtype=np.float32),
        np.empty(LANES, dtype=np.float32),
        np.empty(LANES + 1, dtype=np.int64),
        np.empty(16 * LANES, dtype=np.float32),
        np.empty(16 * LANES, dtype=np.int64),
        np.empty(PENDING, dtype=np.int64),
        np.empty(PENDING, dtype=np.float32),
        np.empty(most, dtype=np.float32),
    )


@kernel
def nearest(
    tree: Tree, scratch: Scratch, duplicates: Duplicates, point: Floats, home: int,
    distances: Floats, found: Integers,
) -> None:  # fmt: skip
    """Find as many of the nearest remaining records of a point as `found` has room for.

    Sets squared distances and places, nearest first, of equals the lowest row first; places are
    NOBODY where fewer records remain. `home` is the place in the tree of a point near the query, or
    -1: its leaf is searched first, so that the limit is low before any box is opened.
    """
    m = found.shape[0]
    children, points, boxes, centre = tree.below, tree.points, tree.boxes, tree.centre
    query, gaps, lanes, open = scratch.query, scratch.gaps, scratch.lanes, scratch.open
    bounds, nodes = scratch.bounds, scratch.nodes
    pending, squares, smallest = scratch.pending, scratch.squares, scratch.smallest
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
            add_squares(points, leaf * columns * LANES, LANES, query, lanes)
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
    pending: Integers, squares: Singles, waiting: np.int64, limit: np.float32,
    duplicates: Duplicates, point: Floats, distances: Floats, found: Integers,
) -> None:  # fmt: skip
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


class Remaining(NamedTuple):
    """The rows of a table that were not removed yet, for one nearest row at a time."""

    tree: Tree
    duplicates: Duplicates
    place_of: Integers  # (n,) the place of each row
    removed: Truths  # (n,) by place
    scratch: Scratch
    distance: Floats  # (1,) what the last search found
    found: Integers  # (1,)


@kernel
def all_rows(X: Floats) -> Remaining:
    """Build the tree of all rows of a table, in O(n d log n)."""
    n, d = X.shape
    centre = np.zeros(d)
    for i in range(n):
        for j in range(d):
            centre[j] += X[i, j] / n
    duplicates = group_equal(X, centre)
    tree = build_tree(duplicates.points, np.arange(duplicates.points.shape[0]), centre, True)
    place_of = np.empty(n, dtype=np.int64)
    for place in range(n):
        place_of[duplicates.rows[place]] = place
    return _remaining(tree, duplicates, place_of, np.zeros(n, dtype=np.bool_))


@kernel
def copy_rows(remaining: Remaining) -> Remaining:
    """Copy what removing rows and searching change, so that several walks share the rest."""
    tree, same = remaining.tree, remaining.duplicates
    own_tree = Tree(
        tree.points.copy(), tree.boxes.copy(), tree.members, tree.places, tree.below,
        tree.parents, tree.seats, tree.centre, tree.scale, tree.reach,
    )  # fmt: skip
    own = Duplicates(same.points, same.point_of, same.rows, same.firsts.copy(), same.ends)
    return _remaining(own_tree, own, remaining.place_of, remaining.removed.copy())


@kernel
def _remaining(tree: Tree, same: Duplicates, place_of: Integers, removed: Truths) -> Remaining:
    """Add the scratch of searches for one row."""
    scratch = make_scratch(tree.centre.shape[0], 1)
    found = np.empty(1, dtype=np.int64)
    return Remaining(tree, same, place_of, removed, scratch, np.empty(1), found)


# Removing and finding one row are spliced into the walks: each passing of `Remaining` would count
# references of 26 arrays, twice, atomically. With calls, a walk through 20,000 rows of 2 or 3
# columns took 25 to 40 % longer.
@spliced
def remove_row(remaining: Remaining, row: int) -> None:
    """Remove a row, which may be any of several equal ones.

    `firsts` moves on to the next row that remains, which is all that a search for one row looks at.
    """
    tree, duplicates, removed = remaining.tree, remaining.duplicates, remaining.removed
    place = remaining.place_of[row]
    distinct = duplicates.point_of[place]
    removed[place] = True
    first, end = duplicates.firsts[distinct], duplicates.ends[distinct]
    while first < end and removed[first]:
        first += 1
    if first == end and duplicates.firsts[distinct] < end:
        remove_point(
            tree.points, tree.boxes, tree.parents, tree.seats, tree.centre.shape[0],
            tree.places[distinct],
        )  # fmt: skip
    duplicates.firsts[distinct] = first


@spliced
def nearest_row(remaining: Remaining, X: Floats, row: int) -> int:
    """Return the row nearest to a row of X, of equals the lowest; -1 if none remains.

    X is the table that the tree was built of; `row` itself may be removed already.
    """
    duplicates, tree = remaining.duplicates, remaining.tree
    distance, found = remaining.distance, remaining.found
    home = tree.places[duplicates.point_of[remaining.place_of[row]]]
    nearest(tree, remaining.scratch, duplicates, X[row], home, distance, found)
    return int(duplicates.rows[found[0]]) if found[0] != NOBODY else -1


@kernel
def nearest_others(
    remaining: Remaining, first: int, last: int, rows: Integers, squares: Floats
) -> None:
    """Set the nearest other rows, and the squared distances, of the rows at some places.

    `rows` and `squares` have shape (n, count), n > count; each row is found as its own neighbour
    and left out, so one more is looked for.
    """
    duplicates, tree, count = remaining.duplicates, remaining.tree, rows.shape[1]
    scratch = make_scratch(tree.centre.shape[0], count + 1)
    distances, found = np.empty(count + 1), np.empty(count + 1, dtype=np.int64)
    for place in range(first, last):
        distinct, row = duplicates.point_of[place], duplicates.rows[place]
        point, home = duplicates.points[distinct], tree.places[distinct]
        nearest(tree, scratch, duplicates, point, home, distances, found)
        # Of more than `count` equal rows a high one may be crowded out of its own list.
        to = 0
        for i in range(count + 1):
            if found[i] != place and to < count:
                rows[row, to], squares[row, to] = duplicates.rows[found[i]], distances[i]
                to += 1
