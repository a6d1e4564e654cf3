"""How many originals lie nearer to a masked record than its own: counted, not listed.

For a masked record x whose own original is at distance r, every other original is *nearer* than r,
*tied* with r, or farther. Linkage asks for the first two counts only, so a search ends as soon as
`cap` nearer ones are seen, and never looks beyond r: no list of neighbours, no n x n.

Distances are summed column by column in float64, in the tree as in a plain scan, and the gap to a
box is summed in the same order: rounding is monotone, so no box is judged farther than a record in
it. Equal means equal within SLACK of r, because standardising rounds: 2 lies as far from 1 as
from 3.

Probabilistic linkage counts by *pattern*: bits, one for each column in which two records agree.
"""

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .tree import LEAF

# Boxes in a block: as many as records in a leaf, so that blocks end where `order_by_leaves` cuts.
FAN = LEAF
SLACK = 1e-9
TINY = 1e-20  # of squares of standardised values
OWA, CHOQUET, PAIRS, SUM = 1, 2, 3, 4


@kernel
def box_tree(X: Floats, rows: Integers) -> tuple[Floats, Floats, Floats, Integers]:
    """Boxes over the leaves of some rows of X, in the order of leaves, 16 to a block.

    Level 0 has the leaves; a node of level h + 1 holds the 16 nodes of one block of level h.
    Returns the records of each leaf (leaf, column, 16; padded with infinity), the low and the high
    corners of each block's boxes (block, column, 16; padded with empty boxes), and the first block
    of each level (and one more, where the last ends).
    """
    n, d = rows.shape[0], X.shape[1]
    n_leaves = (n + LEAF - 1) // LEAF
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
    for at in range(n):
        leaf, row = at // LEAF, rows[at]
        block, place = leaf // FAN, leaf % FAN
        for column in range(d):
            x = X[row, column]
            leaves[leaf, column, at % LEAF] = x
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
def _near_boxes(low: Floats, high: Floats, x: Floats, power: int, out: Floats) -> None:
    for place in range(FAN):
        out[place] = 0.0
    for column in range(x.shape[0]):
        at = x[column]
        if power == 2:
            for place in range(FAN):
                gap = max(max(low[column, place] - at, at - high[column, place]), 0.0)
                out[place] += gap * gap
        else:
            for place in range(FAN):
                out[place] += max(max(low[column, place] - at, at - high[column, place]), 0.0)


@kernel
def _far_leaf(leaf: Floats, x: Floats, power: int, out: Floats) -> None:
    for j in range(LEAF):
        out[j] = 0.0
    for column in range(x.shape[0]):
        at = x[column]
        if power == 2:
            for j in range(LEAF):
                side = leaf[column, j] - at
                out[j] += side * side
        else:
            for j in range(LEAF):
                out[j] += abs(leaf[column, j] - at)


@kernel
def count_in_tree(
    tree: tuple[Floats, Floats, Floats, Integers], weights: Integers,
    X: Floats, homes: Integers, power: int, cap: int, records: Integers,
) -> tuple[Integers, Integers]:  # fmt: skip
    """Count the originals nearer than, and tied with, the own one of some masked records.

    `tree` is that of `box_tree` over the distinct originals, `weights` says how many
    originals each stands for (in the order of leaves), `X` has the masked records (m x d), `homes`
    the place of each one's own original in that order (m). Power is 2 (squares) or 1.
    A search ends when `cap` nearer ones are seen: then nearer >= cap, and tied is not complete.
    """
    leaves, low, high, first_block = tree
    n_levels = first_block.shape[0] - 1
    d = X.shape[1]
    nearer = np.zeros(records.shape[0], dtype=np.int64)
    tied = np.zeros(records.shape[0], dtype=np.int64)
    x, far, gaps = np.empty(d), np.empty(LEAF), np.empty(FAN)
    stack_level = np.empty(FAN * 16, dtype=np.int64)
    stack_node = np.empty(FAN * 16, dtype=np.int64)
    for at in range(records.shape[0]):
        i = records[at]
        for column in range(d):
            x[column] = X[i, column]
        leaf = homes[i] // LEAF
        _far_leaf(leaves[leaf], x, power, far)
        radius = far[homes[i] % LEAF]
        below = radius * (1 - SLACK) - TINY
        reach = radius * (1 + SLACK) + TINY
        for j in range(LEAF):
            if far[j] <= reach:
                if far[j] < below:
                    nearer[at] += weights[leaf * LEAF + j]
                else:
                    tied[at] += weights[leaf * LEAF + j]
        seen = leaf
        for level in range(n_levels):
            if nearer[at] >= cap:
                break
            # The block that holds what was seen, then downwards into its other nodes.
            stack_level[0], stack_node[0] = level + 1, seen // FAN
            height = 1
            while height > 0 and nearer[at] < cap:
                height -= 1
                beneath, node = stack_level[height] - 1, stack_node[height]
                block = first_block[beneath] + node
                _near_boxes(low[block], high[block], x, power, gaps)
                for place in range(FAN):
                    if gaps[place] > reach:
                        continue
                    child = node * FAN + place
                    if beneath == level and child == seen:
                        continue
                    if beneath > 0:
                        stack_level[height], stack_node[height] = beneath, child
                        height += 1
                        continue
                    _far_leaf(leaves[child], x, power, far)
                    for j in range(LEAF):
                        if far[j] <= reach:
                            if far[j] < below:
                                nearer[at] += weights[child * LEAF + j]
                            else:
                                tied[at] += weights[child * LEAF + j]
                    if nearer[at] >= cap:
                        break
            seen //= FAN
    return nearer, tied


@kernel
def sort_squares(x: Floats, y: Floats, rising: Floats, order: Integers) -> None:
    """The squares of the differences of two records in rising order, and their columns."""
    for column in range(x.shape[0]):
        side = x[column] - y[column]
        square, place = side * side, column
        while place > 0 and rising[place - 1] > square:
            rising[place], order[place] = rising[place - 1], order[place - 1]
            place -= 1
        rising[place], order[place] = square, column


@kernel
def _measured(
    kind: int, x: Floats, y: Floats, numbers: Floats, sorted_: Floats, order: Integers
) -> float:
    """The distance of two records.

    OWA: `numbers` has the weight of the smallest square, of the second smallest, ...
    CHOQUET: the measure of the 2^d sets, by bits. PAIRS: the Möbius masses of the d columns, then
    of the pairs. SUM: the weights of the squares.
    """
    d = x.shape[0]
    total = 0.0
    if kind == SUM:
        for column in range(d):
            side = x[column] - y[column]
            total += numbers[column] * side * side
        return total
    if kind == PAIRS:
        for column in range(d):
            side = x[column] - y[column]
            sorted_[column] = side * side
            total += numbers[column] * sorted_[column]
        at = d
        for column in range(d):
            for other in range(column + 1, d):
                total += numbers[at] * min(sorted_[column], sorted_[other])
                at += 1
        return total
    sort_squares(x, y, sorted_, order)
    if kind == OWA:
        for column in range(d):
            total += numbers[column] * sorted_[column]
        return total
    remaining = (1 << d) - 1
    before = 0.0
    for column in range(d):
        total += (sorted_[column] - before) * numbers[remaining]
        before = sorted_[column]
        remaining &= ~(1 << order[column])
    return total


@kernel
def count_by_scan(
    kind: int, numbers: Floats, A: Floats, B: Floats, truth: Integers, cap: int,
    records: Integers,
) -> tuple[Integers, Integers]:  # fmt: skip
    """The same counts as `count_in_tree`, for distances without boxes; B has every original."""
    n, d = B.shape
    nearer = np.zeros(records.shape[0], dtype=np.int64)
    tied = np.zeros(records.shape[0], dtype=np.int64)
    sorted_, order = np.empty(d), np.empty(d, dtype=np.int64)
    for at in range(records.shape[0]):
        x = A[records[at]]
        own = truth[records[at]]
        radius = _measured(kind, x, B[own], numbers, sorted_, order)
        below = radius * (1 - SLACK) - TINY
        reach = radius * (1 + SLACK) + TINY
        # From the own record outwards: neighbours in a sorted file are often near.
        for step in range(n):
            if nearer[at] >= cap:
                break
            j = own + step
            if j >= n:
                j -= n
            distance = _measured(kind, x, B[j], numbers, sorted_, order)
            if distance <= reach:
                if distance < below:
                    nearer[at] += 1
                else:
                    tied[at] += 1
    return nearer, tied


@kernel
def _pattern(A: Floats, i: int, B: Floats, j: int, limits: Floats) -> int:
    """Bits of the columns in which two records differ by no more than the limits."""
    pattern = 0
    for column in range(limits.shape[0]):
        if abs(A[i, column] - B[j, column]) <= limits[column]:
            pattern |= 1 << column
    return pattern


@kernel
def agreement_patterns(
    A: Floats, B: Floats, limits: Floats, starts: Integers, members: Integers, block: Integers
) -> Integers:
    """Count the pairs of each agreement pattern within blocks.

    Column k agrees when |a - b| <= limits[k]; a missing value agrees with nothing. Originals of
    block g are members[starts[g] : starts[g + 1]]; `block` has the block of each masked record.
    """
    counts = np.zeros(1 << A.shape[1], dtype=np.int64)
    for i in range(A.shape[0]):
        g = block[i]
        for at in range(starts[g], starts[g + 1]):
            j = members[at]
            counts[_pattern(A, i, B, j, limits)] += 1
    return counts


@kernel
def count_by_pattern(
    A: Floats, B: Floats, limits: Floats, scores: Floats, starts: Integers, members: Integers,
    block: Integers, truth: Integers, records: Integers,
) -> tuple[Integers, Integers]:  # fmt: skip
    """Count the originals of the block that score above the own one, and as high."""
    nearer = np.zeros(records.shape[0], dtype=np.int64)
    tied = np.zeros(records.shape[0], dtype=np.int64)
    for at in range(records.shape[0]):
        i = records[at]
        g = block[i]
        own = scores[_pattern(A, i, B, truth[i], limits)]
        for place in range(starts[g], starts[g + 1]):
            score = scores[_pattern(A, i, B, members[place], limits)]
            if score > own:
                nearer[at] += 1
            elif score == own:
                tied[at] += 1
    return nearer, tied
