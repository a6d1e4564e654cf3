"""Which originals lie in the windows of a masked record: counted and listed in a tree of boxes.

A *key* is a whole number that an original has for each variable; a masked record allows a window of
keys, low to high, for each, but for one key in it. Boxes that miss a window are passed by, boxes
that lie within all windows count as a whole: only the borders of the windows are looked at record
by record.
"""

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .groups import doubled
from .linkage import FAN
from .tree import LEAF


class Windows(NamedTuple):
    """Keys of the originals, and what the masked records allow; whole numbers as floats."""

    keys: Floats  # (n, variables), 0 and above
    tree: tuple[Floats, Floats, Floats, Integers]  # `linkage.box_tree` of the keys
    rows: Integers  # (n,) the original at each place of the tree
    low: Floats  # (m, variables)
    high: Floats  # (m, variables), inclusive
    never: Floats  # (m, variables) a key inside the window that is not allowed; -1 for none


@kernel
def _allowed(windows: Windows, i: int, j: int) -> bool:
    for v in range(windows.low.shape[1]):
        key = windows.keys[j, v]
        if key < windows.low[i, v] or key > windows.high[i, v] or key == windows.never[i, v]:
            return False
    return True


@kernel
def _compare_boxes(
    windows: Windows, i: int, block: int, meeting: Integers, within: Integers
) -> None:
    """Count the variables in which each box of a block meets the window, and lies in it."""
    low, high = windows.tree[1][block], windows.tree[2][block]
    for place in range(FAN):
        meeting[place] = within[place] = 0
    for v in range(windows.low.shape[1]):
        least, most, never = windows.low[i, v], windows.high[i, v], windows.never[i, v]
        for place in range(FAN):
            first, last = low[v, place], high[v, place]
            meeting[place] += (last >= least) & (first <= most)
            inside = (first >= least) & (last <= most)
            within[place] += inside & ((never < first) | (never > last))


@kernel
def _compare_leaf(windows: Windows, i: int, leaf: int, within: Integers) -> None:
    """Count the variables in which each original of a leaf is allowed."""
    cells = windows.tree[0][leaf]
    for j in range(LEAF):
        within[j] = 0
    for v in range(windows.low.shape[1]):
        least, most, never = windows.low[i, v], windows.high[i, v], windows.never[i, v]
        for j in range(LEAF):
            key = cells[v, j]
            within[j] += (key >= least) & (key <= most) & (key != never)


@kernel
def find_candidates(
    windows: Windows, truth: Integers, most: int, rows: Integers
) -> tuple[Integers, Integers]:
    """Count the originals that some masked rows allow: (rows, 2), with 1 if the truth is one.

    Beside the counts they are listed, row by row, each list ascending; if there are more than
    `most`, none is.
    """
    n, n_variables = windows.keys.shape
    first_block = windows.tree[3]
    out = np.zeros((rows.shape[0], 2), dtype=np.int64)
    partner, used = np.empty(min(most, 1024), dtype=np.int64), 0
    meeting, within = np.empty(FAN, dtype=np.int64), np.empty(FAN, dtype=np.int64)
    allowed = np.empty(LEAF, dtype=np.int64)
    stack_level, stack_node = np.empty(FAN * 16, dtype=np.int64), np.empty(FAN * 16, dtype=np.int64)
    for place in range(rows.shape[0]):
        i, begun = rows[place], used
        stack_level[0], stack_node[0], height = first_block.shape[0] - 2, 0, 1
        while height > 0:
            height -= 1
            level, node = stack_level[height], stack_node[height]
            _compare_boxes(windows, i, first_block[level] + node, meeting, within)
            size = LEAF * FAN**level  # places below a child
            for seat in range(FAN):
                if meeting[seat] < n_variables:  # empty boxes meet nothing
                    continue
                child = node * FAN + seat
                first, last, whole = child * size, min(n, (child + 1) * size), True
                if within[seat] < n_variables:
                    if level > 0:
                        stack_level[height], stack_node[height] = level - 1, child
                        height += 1
                        continue
                    _compare_leaf(windows, i, child, allowed)
                    whole = False
                if whole and used + last - first > most:  # too many to be listed
                    used += last - first
                    continue
                for at in range(first, last):
                    if whole or allowed[at - first] == n_variables:
                        if used < most:
                            if used == partner.shape[0]:
                                partner = doubled(partner)[:most]
                            partner[used] = windows.rows[at]
                        used += 1
        if used <= most:
            partner[begun:used].sort()
        out[place, 0] = used - begun
        out[place, 1] = 1 if _allowed(windows, i, truth[i]) else 0
    return out, partner[: used if used <= most else 0]
