"""Gower's distance: numbers, categories and missing cells, counted in a tree.

The distance of two records is the mean difference over the columns that both have: |a - b| / range
of a number, 0 or 1 of a category; 1 where they have no column in common. Categories stand first:
columns 0 to c - 1 are whole numbers from 0, the others are numbers.

Originals lie sixteen to a leaf, leaves sixteen to a node, as in `linkage`. As in `neighbours`, the
search runs on a rounded copy (float32) and decides nothing by it: records that may be near are
measured in float64, columns in their order. In the copy numbers are shares of their range, so that
a column of either kind differs by min(|a - b|, 1), and a missing cell is NaN, which adds nothing.

A box has the ends of each column, and reaches everywhere where it has a missing cell. What x and a
box cannot be nearer than, summed over columns, is at most the sum of x and any record in it; the
sum over the number of columns that x has is at most the distance, which is divided by the columns
that both have.
"""

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers, Singles
from . import kernel, spliced
from .linkage import FAN, SLACK, TINY
from .tree import LEAF, STEP

ZERO, ONE = np.float32(0.0), np.float32(1.0)
ROUNDING = 2.0**-24  # half a unit in the last place of a float32 below 1


class GowerTree(NamedTuple):
    """Boxes of boxes of originals; `first_block` as in `linkage.box_tree`.

    The columns of the rounded copy are padded with NaN to a multiple of STEP.
    """

    originals: Floats  # (n, d), in the order of leaves
    weights: Integers  # (n,) how many records each stands for
    cells: Singles  # (leaves, columns, 16), flat
    boxes: Singles  # (blocks, columns, 2, 16), flat: low and negated high ends
    first_block: Integers
    scale: Floats  # (d,) 1 / range of numbers, 0 for a constant; 1 for categories
    origin: Floats  # (d,) what is subtracted before rounding: the least number, 0 for categories
    n_categories: int


@kernel
def build_gower_tree(
    B: Floats, weights: Integers, scale: Floats, origin: Floats, n_categories: int
) -> GowerTree:
    """Build the tree of distinct originals (n x d), in the order of leaves."""
    n, d = B.shape
    n_leaves, columns = (n + LEAF - 1) // LEAF, (d + STEP - 1) // STEP * STEP
    first_block = np.zeros(32, dtype=np.int64)
    n_levels, n_nodes = 0, n_leaves
    while n_levels == 0 or n_nodes > 1:
        n_nodes = (n_nodes + FAN - 1) // FAN
        first_block[n_levels + 1] = first_block[n_levels] + n_nodes
        n_levels += 1
    cells = np.full(n_leaves * columns * LEAF, np.nan, dtype=np.float32)
    boxes = np.full(first_block[n_levels] * columns * 2 * FAN, np.inf, dtype=np.float32)
    for at in range(n):
        leaf = at // LEAF
        for j in range(d):
            share = np.float32((B[at, j] - origin[j]) * scale[j])
            cells[(leaf * columns + j) * LEAF + at % LEAF] = share
            box = (leaf // FAN * columns + j) * 2 * FAN + leaf % FAN
            boxes[box] = -np.inf if np.isnan(share) else min(boxes[box], share)
            boxes[box + FAN] = -np.inf if np.isnan(share) else min(boxes[box + FAN], -share)
    for level in range(1, n_levels):
        for node in range(first_block[level] - first_block[level - 1]):
            for j in range(2 * columns):
                inner = ((first_block[level - 1] + node) * 2 * columns + j) * FAN
                box = ((first_block[level] + node // FAN) * 2 * columns + j) * FAN + node % FAN
                boxes[box] = boxes[inner : inner + FAN].min()
    ends = first_block[: n_levels + 1].copy()
    return GowerTree(B, weights, cells, boxes, ends, scale, origin, n_categories)


@spliced
def _sum_boxes(boxes: Singles, start: int, query: Singles, out: Singles) -> None:
    """Set the least sums that records in sixteen boxes can have."""
    at = np.uint64(start)
    for i in range(FAN):
        out[i] = ZERO
    for column in range(0, query.shape[0], STEP):
        for i in range(FAN):
            total = out[i]
            for j in range(STEP):
                x = query[column + j]
                under = boxes[at + np.uint64(2 * j * FAN + i)] - x
                over = boxes[at + np.uint64((2 * j + 1) * FAN + i)] + x
                gap = under if under > over else over
                gap = ONE if gap > ONE else gap
                total += gap if gap > ZERO else ZERO
            out[i] = total
        at += np.uint64(2 * STEP * FAN)


@spliced
def _sum_leaf(cells: Singles, start: int, query: Singles, out: Singles) -> None:
    """Set the sums over columns of the sixteen originals of a leaf."""
    at = np.uint64(start)
    for i in range(LEAF):
        out[i] = ZERO
    for column in range(0, query.shape[0], STEP):
        for i in range(LEAF):
            total = out[i]
            for j in range(STEP):
                gap = abs(cells[at + np.uint64(j * LEAF + i)] - query[column + j])
                gap = ONE if gap > ONE else gap
                total += gap if gap > ZERO else ZERO
            out[i] = total
        at += np.uint64(STEP * LEAF)


@spliced
def _distance(A: Floats, i: int, tree: GowerTree, at: int) -> float:
    """Return Gower's distance of a masked record and an original."""
    total, compared = 0.0, 0
    for column in range(A.shape[1]):
        gap = abs(A[i, column] - tree.originals[at, column])
        if gap == gap:
            compared += 1
            if column >= tree.n_categories:
                total += gap * tree.scale[column]
            elif gap > 0.0:
                total += 1.0
    return total / compared if compared else 1.0


@kernel
def count_in_gower_tree(
    tree: GowerTree, A: Floats, homes: Integers, cap: int, records: Integers
) -> tuple[Integers, Integers]:
    """Count the originals nearer than, and tied with, the own one of some masked records.

    `homes` has the place of each masked record's own original in the order of leaves. Boxes are
    visited from the nearest on, for a search ends when `cap` nearer originals are seen: then
    nearer >= cap, and tied is not complete.
    """
    n, d = tree.originals.shape
    cells, boxes, weights, first_block = tree.cells, tree.boxes, tree.weights, tree.first_block
    n_leaves, columns = (n + LEAF - 1) // LEAF, (d + STEP - 1) // STEP * STEP
    nearer = np.zeros(records.shape[0], dtype=np.int64)
    tied = np.zeros(records.shape[0], dtype=np.int64)
    sums, query = np.empty(LEAF, dtype=np.float32), np.full(columns, np.nan, dtype=np.float32)
    order = np.empty(FAN, dtype=np.int64)
    stack_level = np.empty(FAN * 16, dtype=np.int64)
    stack_node = np.empty(FAN * 16, dtype=np.int64)
    # A rounded share is off by ROUNDING at most, a difference by three times that, and each of d
    # additions to a sum of at most d by d times that.
    blur = (3.0 + d) * d * ROUNDING
    for at in range(records.shape[0]):
        i, present = records[at], 0
        for j in range(d):
            query[j] = (A[i, j] - tree.origin[j]) * tree.scale[j]
            present += not np.isnan(A[i, j])
        radius = _distance(A, i, tree, homes[i])
        below = radius * (1 - SLACK) - TINY
        reach = radius * (1 + SLACK) + TINY
        limit = np.float32(reach * present * (1 + 4 * ROUNDING) + blur)
        stack_level[0], stack_node[0], height = first_block.shape[0] - 2, 0, 1
        while height > 0 and nearer[at] < cap:
            height -= 1
            level, node = stack_level[height], stack_node[height]
            n_below = n_leaves
            if level > 0:
                n_below = first_block[level] - first_block[level - 1]
            _sum_boxes(boxes, (first_block[level] + node) * columns * 2 * FAN, query, sums)
            # Farthest first where they are stacked, nearest first where they are leaves.
            count = 0
            for place in range(min(FAN, n_below - node * FAN)):
                if sums[place] > limit:
                    continue
                to = count
                while to > 0 and sums[order[to - 1]] < sums[place]:
                    order[to] = order[to - 1]
                    to -= 1
                order[to] = place
                count += 1
            if level > 0:
                for seat in range(count):
                    stack_level[height] = level - 1
                    stack_node[height] = node * FAN + order[seat]
                    height += 1
                continue
            while count > 0 and nearer[at] < cap:
                count -= 1
                leaf = node * FAN + order[count]
                _sum_leaf(cells, leaf * columns * LEAF, query, sums)
                hits = 0
                for j in range(LEAF):
                    hits += sums[j] <= limit
                if hits == 0:
                    continue
                for j in range(min(LEAF, n - leaf * LEAF)):
                    if sums[j] <= limit:
                        distance = _distance(A, i, tree, leaf * LEAF + j)
                        if distance < below:
                            nearer[at] += weights[leaf * LEAF + j]
                        elif distance <= reach:
                            tied[at] += weights[leaf * LEAF + j]
    return nearer, tied


@kernel
def gower_components(
    A: Floats, B: Floats, one_over: Floats, records: Integers, which: Integers
) -> Floats:
    """Return how far masked records and originals are apart in each column, from 0 to 1.

    A component that is missing counts as the mean of the pair's others, so the mean of all is
    Gower's distance; where nothing can be compared, all are 1.
    """
    d = A.shape[1]
    out = np.empty((records.shape[0], d))
    for at in range(records.shape[0]):
        x, y = A[records[at]], B[which[at]]
        total, compared = 0.0, 0
        for column in range(d):
            a, b = x[column], y[column]
            if one_over[column] < 0 and not (np.isnan(a) or np.isnan(b)):
                out[at, column] = 1.0 if a != b else 0.0
            else:
                out[at, column] = abs(a - b) * one_over[column]
            if not np.isnan(out[at, column]):
                total += out[at, column]
                compared += 1
        if compared < d:
            mean = total / compared if compared else 1.0
            for column in range(d):
                if np.isnan(out[at, column]):
                    out[at, column] = mean
    return out
