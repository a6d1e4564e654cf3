"""Random planes that cut points into cells: keys of rows, heights above a plane, cells of points.

Sums run over coordinates in their order, so that a point has the same height wherever it is
computed, and records that are equal have equal heights.
"""

import numpy as np

from .._types import Floats, Integers
from . import kernel


@kernel
def keys_of_rows(rows: Integers, stream: int) -> Floats:
    """Return a number in [0, 1) for each row, by its number alone."""
    keys = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        z = np.uint64(rows[i]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(stream)
        for _ in range(2):  # splitmix64, twice
            z += np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = z ^ (z >> np.uint64(31))
        keys[i] = np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)
    return keys


@kernel
def heights_above(points: Floats, rows: Integers, direction: Floats) -> Floats:
    """Return the inner products of some points with a direction."""
    out = np.empty(rows.shape[0])
    for r in range(rows.shape[0]):
        total = 0.0
        for q in range(points.shape[1]):
            total += points[rows[r], q] * direction[q]
        out[r] = total
    return out


@kernel
def find_cells(
    points: Floats, keys: Floats, directions: Floats, heights: Floats, ties: Floats,
    below: Integers, above: Integers,
) -> Integers:  # fmt: skip
    """Return the cell of each point: down the tree from plane 0, until a place is -1 - cell.

    A point is below a plane if its height is, or, at the very height, if its key is below the
    plane's: so many equal points are shared out among cells as any others are.
    """
    out = np.empty(points.shape[0], dtype=np.int64)
    for i in range(points.shape[0]):
        place = 0 if below.shape[0] > 0 else -1
        while place >= 0:
            total = 0.0
            for q in range(points.shape[1]):
                total += points[i, q] * directions[place, q]
            under = total < heights[place] or (total == heights[place] and keys[i] < ties[place])
            place = below[place] if under else above[place]
        out[i] = -1 - place
    return out
