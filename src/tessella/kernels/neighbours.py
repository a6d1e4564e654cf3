"""Neighbours of the rows of a table: the nearest that remains, the nearest others of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers, Truths
from ._jit import kernel
from .duplicates import Duplicates, group_equal
from .tree import NOBODY, Scratch, Tree, build_tree, make_scratch, nearest, remove_point


class Remaining(NamedTuple):
    """The rows of a table that were not removed yet, for one nearest row at a time."""

    tree: Tree
    duplicates: Duplicates
    place_of: Integers  # (n,) the place of each row
    removed: Truths  # (n,) by place
    scratch: Scratch


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
    return Remaining(tree, duplicates, place_of, np.zeros(n, dtype=np.bool_), make_scratch(d))


@kernel
def copy_rows(remaining: Remaining) -> Remaining:
    """Copy what removing rows and searching change, so that several walks share the rest."""
    tree, duplicates = remaining.tree, remaining.duplicates
    return Remaining(
        Tree(
            tree.points.copy(),
            tree.boxes.copy(),
            tree.members,
            tree.places,
            tree.below,
            tree.parents,
            tree.seats,
            tree.centre,
            tree.scale,
            tree.reach,
        ),
        Duplicates(
            duplicates.points,
            duplicates.point_of,
            duplicates.rows,
            duplicates.firsts.copy(),
            duplicates.ends,
        ),
        remaining.place_of,
        remaining.removed.copy(),
        make_scratch(tree.centre.shape[0]),
    )


@kernel
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
            tree.points,
            tree.boxes,
            tree.parents,
            tree.seats,
            tree.centre.shape[0],
            tree.places[distinct],
        )
    duplicates.firsts[distinct] = first


@kernel
def nearest_row(remaining: Remaining, X: Floats, row: int) -> int:
    """Return the row nearest to a row of X, of equals the lowest; -1 if none remains.

    X is the table that the tree was built of; `row` itself may be removed already.
    """
    duplicates, tree = remaining.duplicates, remaining.tree
    distance, found = np.empty(1), np.empty(1, dtype=np.int64)
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
    scratch = make_scratch(tree.centre.shape[0])
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
