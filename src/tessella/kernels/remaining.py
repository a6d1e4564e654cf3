"""The nearest of the records that remain: a k-d tree whose records can be taken out.

A node knows the box around its remaining records and their lowest row number, and both tighten
when a record is taken out, so the search never walks through emptied country. Distances are summed
in the order of the columns, as a plain scan would, and box distances in the same order, so a box
is never judged farther than a record in it: tree and scan agree to the last bit, ties included
(the lowest row wins).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel

LEAF = 32  # records in a leaf, at most; their distances are computed side by side
NOBODY = np.iinfo(np.int64).max  # the lowest row of an empty node


class Tree(NamedTuple):
    """Records that remain; a leaf's remaining records come first in its part of `rows`."""

    rows: Integers  # (n,) row numbers, leaf by leaf
    points: Floats  # (d, n) the records, in the order of `rows`
    places: Integers  # (n,) where each row stands in `rows`
    leaves: Integers  # (n,) the node of each row's leaf
    parents: Integers  # (nodes,) -1 for the root, which is node 0
    children: Integers  # (nodes,) the left child, the right one is next to it; -1 for a leaf
    firsts: Integers  # (nodes,) where each node's part of `rows` begins
    counts: Integers  # (nodes,) how many records remain
    lowest: Integers  # (nodes,) the lowest row that remains
    low: Floats  # (nodes, d) the box around the records that remain
    high: Floats  # (nodes, d)


@kernel
def _select(X: Floats, rows: Integers, first: int, last: int, middle: int, column: int) -> None:
    """Rearrange rows[first:last] so that none before `middle` is larger in the column."""
    low, high = first, last - 1
    while low < high:
        pivot = X[rows[(low + high) // 2], column]
        i, j = low, high
        while i <= j:
            while X[rows[i], column] < pivot:
                i += 1
            while X[rows[j], column] > pivot:
                j -= 1
            if i <= j:
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@kernel
def _widest(X: Floats, rows: Integers, first: int, last: int) -> int:
    """Return the column in which rows[first:last] reach farthest, or -1 if they are all equal."""
    widest, width = -1, 0.0
    for j in range(X.shape[1]):
        low = high = X[rows[first], j]
        for p in range(first + 1, last):
            low, high = min(low, X[rows[p], j]), max(high, X[rows[p], j])
        if high - low > width:
            widest, width = j, high - low
    return widest


@kernel
def _divide(X: Floats, rows: Integers, first: int, last: int) -> int:
    """Rearrange rows[first:last] into two sides of a plane; return where the second begins.

    The plane goes through the median of the widest column. Records that tie with the median stay
    together: a plane through a heap of equal values (zeros, say) would put the heap on both sides
    and separate nothing. A side with more than half of the records is then constant in that
    column, so the tree is at most log2(n) + d deep.
    """
    middle = (first + last) // 2
    column = _widest(X, rows, first, last)
    if column < 0:
        return middle
    _select(X, rows, first, last, middle, column)
    median = X[rows[middle], column]
    below = middle
    for p in range(middle - 1, first - 1, -1):
        if X[rows[p], column] == median:
            below -= 1
            rows[p], rows[below] = rows[below], rows[p]
    above = middle + 1
    for p in range(middle + 1, last):
        if X[rows[p], column] == median:
            rows[p], rows[above] = rows[above], rows[p]
            above += 1
    if below == first or (above < last and above - middle < middle - below):
        return above
    return below


@kernel
def plant(X: Floats) -> Tree:
    """Build the tree of all records in O(n log n)."""
    n, d = X.shape
    rows, places, leaves = np.arange(n), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    parents, children = np.full(2 * n, -1), np.full(2 * n, -1)
    firsts, counts = np.zeros(2 * n, dtype=np.int64), np.zeros(2 * n, dtype=np.int64)
    counts[0] = n
    n_nodes, node = 1, 0
    while node < n_nodes:
        first, last = firsts[node], firsts[node] + counts[node]
        if counts[node] <= LEAF:
            for p in range(first, last):
                places[rows[p]], leaves[rows[p]] = p, node
        else:
            middle = _divide(X, rows, first, last)
            children[node] = n_nodes
            parents[n_nodes] = parents[n_nodes + 1] = node
            firsts[n_nodes], counts[n_nodes] = first, middle - first
            firsts[n_nodes + 1], counts[n_nodes + 1] = middle, last - middle
            n_nodes += 2
        node += 1
    points = np.empty((d, n))
    for p in range(n):
        for j in range(d):
            points[j, p] = X[rows[p], j]
    tree = Tree(
        rows,
        points,
        places,
        leaves,
        parents[:n_nodes].copy(),
        children[:n_nodes].copy(),
        firsts[:n_nodes].copy(),
        counts[:n_nodes].copy(),
        np.full(n_nodes, NOBODY),
        np.empty((n_nodes, d)),
        np.empty((n_nodes, d)),
    )
    for node in range(n_nodes - 1, -1, -1):
        _enclose(tree, node)
    return tree


@kernel
def copied(tree: Tree) -> Tree:
    """Copy a tree, so that records can be taken out of the copy."""
    return Tree(
        tree.rows.copy(),
        tree.points.copy(),
        tree.places.copy(),
        tree.leaves,
        tree.parents,
        tree.children,
        tree.firsts,
        tree.counts.copy(),
        tree.lowest.copy(),
        tree.low.copy(),
        tree.high.copy(),
    )


@kernel
def _enclose(tree: Tree, node: int) -> bool:
    """Recompute box and lowest row of a node from what is below it; say whether either changed."""
    left = tree.children[node]
    first, last = tree.firsts[node], tree.firsts[node] + tree.counts[node]
    lowest = NOBODY
    if left >= 0:
        lowest = min(tree.lowest[left], tree.lowest[left + 1])
    else:
        for p in range(first, last):
            lowest = min(lowest, tree.rows[p])
    changed = lowest != tree.lowest[node]
    tree.lowest[node] = lowest
    for j in range(tree.points.shape[0]):
        low, high = np.inf, -np.inf
        if left >= 0:
            low = min(tree.low[left, j], tree.low[left + 1, j])
            high = max(tree.high[left, j], tree.high[left + 1, j])
        else:
            for p in range(first, last):
                low, high = min(low, tree.points[j, p]), max(high, tree.points[j, p])
        changed = changed or low != tree.low[node, j] or high != tree.high[node, j]
        tree.low[node, j], tree.high[node, j] = low, high
    return bool(changed)


@kernel
def take_out(tree: Tree, row: int) -> None:
    """Take a record out of the tree."""
    node, place = tree.leaves[row], tree.places[row]
    last = tree.firsts[node] + tree.counts[node] - 1
    other = tree.rows[last]
    tree.rows[place], tree.rows[last] = other, row
    tree.places[other], tree.places[row] = place, last
    for j in range(tree.points.shape[0]):
        tree.points[j, place], tree.points[j, last] = tree.points[j, last], tree.points[j, place]
    changed = True
    while node >= 0:
        tree.counts[node] -= 1
        if changed:
            changed = _enclose(tree, node)
        node = tree.parents[node]


@kernel
def _box_distance(tree: Tree, node: int, point: Floats) -> float:
    """Squared distance from a point to a node's box; infinite where nobody remains."""
    total = 0.0
    for j in range(point.shape[0]):
        outside = max(tree.low[node, j] - point[j], point[j] - tree.high[node, j], 0.0)
        total += outside * outside
    return total


@kernel
def nearest_remaining(tree: Tree, point: Floats) -> int:
    """Return the row of the nearest record that remains, of equals the lowest; -1 if none does."""
    deepest = 64 + point.shape[0]  # more than log2(n) + d
    nodes, bounds, distances = np.empty(deepest, dtype=np.int64), np.empty(deepest), np.empty(LEAF)
    nodes[0], bounds[0], height = 0, _box_distance(tree, 0, point), 1
    found, least = -1, np.inf
    while height > 0:
        height -= 1
        node = nodes[height]
        if bounds[height] > least or tree.counts[node] == 0:
            continue
        if bounds[height] == least and 0 <= found < tree.lowest[node]:
            continue
        near = tree.children[node]
        if near < 0:
            first, count = tree.firsts[node], tree.counts[node]
            distances[:count] = 0.0
            for j in range(point.shape[0]):
                for q in range(count):
                    difference = tree.points[j, first + q] - point[j]
                    distances[q] += difference * difference
            for q in range(count):
                row = tree.rows[first + q]
                if distances[q] < least or (distances[q] == least and (found < 0 or row < found)):
                    found, least = row, distances[q]
            continue
        far = near + 1
        near_bound, far_bound = _box_distance(tree, near, point), _box_distance(tree, far, point)
        if far_bound < near_bound or (
            far_bound == near_bound and tree.lowest[far] < tree.lowest[near]
        ):
            near, far, near_bound, far_bound = far, near, far_bound, near_bound
        nodes[height], bounds[height] = far, far_bound
        nodes[height + 1], bounds[height + 1] = near, near_bound
        height += 2
    return found
