"""Exact nearest neighbours of every record of a table, by a tree of tight boxes.

The table is cut in halves along its widest column until a leaf holds at most eight records. Boxes
are kept 32 siblings side by side, column by column, and so are the records of a leaf: one pass over
the columns measures the distance to 32 boxes or eight records at once. A record looks
into its own surroundings first, then farther up the tree; a box that is farther away than the
record's worst neighbour so far is skipped with everything in it, so the answer is exact.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel

LEAF = 8
FAN = 32


@kernel
def _split(values: Floats, order: Integers, first: int, last: int, middle: int) -> None:
    """Reorder so that values at first..middle-1 are at most those at middle..last-1."""
    left, right = first, last - 1
    while left < right:
        pivot = values[order[(left + right) // 2]]
        low, high = left, right
        while low <= high:
            while values[order[low]] < pivot:
                low += 1
            while values[order[high]] > pivot:
                high -= 1
            if low <= high:
                order[low], order[high] = order[high], order[low]
                low += 1
                high -= 1
        if middle <= high:
            right = high
        elif middle >= low:
            left = low
        else:
            return


@kernel
def halves(X: Floats, depth: int) -> tuple[Integers, Integers]:
    """Cut the columns-first table X (d x n) `depth` times in halves, each along its widest column.

    Returns the records in the order of the 2^depth leaves, and where each leaf starts (and one
    more, where the last ends).
    """
    d, n = X.shape
    order = np.arange(n)
    starts = np.empty(2**depth + 1, dtype=np.int64)
    starts[0], starts[2**depth] = 0, n
    stride = 2**depth
    while stride > 1:
        for node in range(0, 2**depth, stride):
            first, last = starts[node], starts[node + stride]
            widest, width = 0, -1.0
            for column in range(d):
                smallest, largest = np.inf, -np.inf
                for at in range(first, last):
                    x = X[column, order[at]]
                    smallest, largest = min(smallest, x), max(largest, x)
                if largest - smallest > width:
                    widest, width = column, largest - smallest
            middle = (first + last) // 2
            _split(X[widest], order, first, last, middle)
            starts[node + stride // 2] = middle
        stride //= 2
    return order, starts


@kernel
def box_tree(X: Floats, starts: Integers) -> tuple[Floats, Floats, Floats, Integers]:
    """Boxes over the leaves of X (d x n, in the order of leaves), 32 to a block.

    Level 0 has the leaves; a node of level h + 1 holds the 32 nodes of one block of level h.
    Returns the records of each leaf (leaf, column, 8; padded with infinity), the low and the high
    corners of each block's boxes (block, column, 32; padded with empty boxes), and the first block
    of each level (and one more, where the last ends).
    """
    d = X.shape[0]
    n_leaves = starts.shape[0] - 1
    first_block = np.zeros(32, dtype=np.int64)
    n_levels, n_nodes = 0, n_leaves
    while True:
        n_blocks = (n_nodes + FAN - 1) // FAN
        first_block[n_levels + 1] = first_block[n_levels] + n_blocks
        n_levels += 1
        if n_blocks == 1:
            break
        n_nodes = n_blocks
    leaves = np.full((n_leaves, d, LEAF), np.inf)
    low = np.full((first_block[n_levels], d, FAN), np.inf)
    high = np.full((first_block[n_levels], d, FAN), -np.inf)
    for leaf in range(n_leaves):
        block, place = leaf // FAN, leaf % FAN
        for column in range(d):
            for at in range(starts[leaf], starts[leaf + 1]):
                x = X[column, at]
                leaves[leaf, column, at - starts[leaf]] = x
                low[block, column, place] = min(low[block, column, place], x)
                high[block, column, place] = max(high[block, column, place], x)
    for level in range(1, n_levels):
        for node in range(first_block[level] - first_block[level - 1]):
            block, place = first_block[level] + node // FAN, node % FAN
            inner = first_block[level - 1] + node
            for column in range(d):
                low[block, column, place] = low[inner, column].min()
                high[block, column, place] = high[inner, column].max()
    return leaves, low, high, first_block[: n_levels + 1].copy()


@kernel
def _gaps(low: Floats, high: Floats, x: Floats, out: Floats) -> None:
    """Squared distances from x to the boxes of a block."""
    for place in range(FAN):
        out[place] = 0.0
    for column in range(x.shape[0]):
        at = x[column]
        for place in range(FAN):
            gap = max(max(low[column, place] - at, at - high[column, place]), 0.0)
            out[place] += gap * gap


@kernel
def _scan(
    leaf: Floats, begin: int, me: int, x: Floats, squares: Floats, places: Integers, near: Floats
) -> None:
    """Let the records of a leaf into the sorted list of neighbours."""
    for j in range(LEAF):
        squares[j] = 0.0
    for column in range(x.shape[0]):
        at = x[column]
        for j in range(LEAF):
            side = leaf[column, j] - at
            squares[j] += side * side
    last = near.shape[0] - 1
    for j in range(LEAF):
        if squares[j] < near[last] and begin + j != me:
            at_place = last
            while at_place > 0 and near[at_place - 1] > squares[j]:
                near[at_place] = near[at_place - 1]
                places[at_place] = places[at_place - 1]
                at_place -= 1
            near[at_place], places[at_place] = squares[j], begin + j


@kernel
def nearest_in_leaves(
    starts: Integers,
    tree: tuple[Floats, Floats, Floats, Integers],
    count: int,
    first_leaf: int,
    last_leaf: int,
) -> tuple[Integers, Floats]:
    """The `count` nearest others of each record of some leaves, as places in the leaves' order.

    Returns places and squared distances, nearest first; n must be larger than count.
    """
    leaves, low, high, first_block = tree
    n_levels = first_block.shape[0] - 1
    d = leaves.shape[1]
    first_record = starts[first_leaf]
    n_here = starts[last_leaf] - first_record
    places = np.full((n_here, count), -1, dtype=np.int64)
    near = np.full((n_here, count), np.inf)
    x, squares, gaps = np.empty(d), np.empty(LEAF), np.empty(FAN)
    stack_level = np.empty(FAN * 8, dtype=np.int64)
    stack_node, stack_gap = np.empty(FAN * 8, dtype=np.int64), np.empty(FAN * 8)
    for leaf in range(first_leaf, last_leaf):
        for i in range(starts[leaf], starts[leaf + 1]):
            row = i - first_record
            for column in range(d):
                x[column] = leaves[leaf, column, i - starts[leaf]]
            _scan(leaves[leaf], starts[leaf], i, x, squares, places[row], near[row])
            seen = leaf
            for level in range(n_levels):
                # The block that holds what was seen, then downwards into its other nodes.
                stack_level[0], stack_node[0], stack_gap[0] = level + 1, seen // FAN, 0.0
                height = 1
                while height > 0:
                    height -= 1
                    if stack_gap[height] >= near[row, count - 1]:
                        continue
                    below, node = stack_level[height] - 1, stack_node[height]
                    block = first_block[below] + node
                    _gaps(low[block], high[block], x, gaps)
                    for place in range(FAN):
                        child = node * FAN + place
                        if gaps[place] >= near[row, count - 1]:
                            continue
                        if below == level and child == seen:
                            continue
                        if below == 0:
                            _scan(
                                leaves[child], starts[child], i, x, squares, places[row], near[row]
                            )
                        else:
                            stack_level[height], stack_node[height] = below, child
                            stack_gap[height] = gaps[place]
                            height += 1
                seen //= FAN
    return places, near
