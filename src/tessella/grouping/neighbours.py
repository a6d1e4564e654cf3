"""The nearest other records of every record, exact, on all cores."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .._types import Floats, Integers
from ..kernels.nearest import LEAF, box_tree, halves, nearest_in_leaves
from ..parallel import each

__all__ = ["nearest_others"]


PIECES = 256


def nearest_others(X: Floats, count: int) -> tuple[Integers, Floats]:
    """Find the `count` nearest others of each record.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The records, n > count.
    count : int
        How many others.

    Returns
    -------
    rows : ndarray of shape (n, count)
        Row numbers, nearest first; which of several equally near ones is left open.
    squares : ndarray of shape (n, count)
        Squared distances.

    Examples
    --------
    >>> import numpy as np
    >>> rows, squares = nearest_others(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> rows.ravel(), squares.ravel()
    (array([1, 0, 1]), array([1., 1., 4.]))
    """
    n = len(X)
    depth = 0
    while n > LEAF << depth:
        depth += 1
    columns = np.ascontiguousarray(X.T)
    order, starts = halves(columns, depth)
    tree = box_tree(np.ascontiguousarray(columns[:, order]), starts)
    cuts = np.unique(np.linspace(0, len(starts) - 1, PIECES + 1).astype(np.int64))
    rows, squares = np.empty((n, count), dtype=np.int64), np.empty((n, count))

    def find(piece: tuple[int, int]) -> None:
        places, near = nearest_in_leaves(starts, tree, count, *piece)
        mine = order[starts[piece[0]] : starts[piece[1]]]
        rows[mine], squares[mine] = order[places], near

    each(find, pairwise(cuts))
    return rows, squares
