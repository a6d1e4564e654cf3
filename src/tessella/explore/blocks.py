"""Which columns are masked together: ways to cut the columns of a table into blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._types import Floats

__all__ = ["BLOCKINGS", "cut_columns"]


def cut_columns(values: Floats, size: int, by: str, *, seed: int = 0) -> list[list[int]]:
    """Cut columns into blocks of `size`; the last may be smaller.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        The columns; missing cells are NaN.
    size : int
        How many columns a block has.
    by : {"order", "correlation", "contrast", "random"}
        Neighbours in the table; columns that are correlated; columns that are not; by lot.
    seed : int, default 0
        The lot.

    Returns
    -------
    list of lists of int
        The places of the columns of each block, in ascending order.

    Notes
    -----
    A block is begun with the column whose |correlation| with the others left is largest in sum
    ("correlation") or least ("contrast"), and takes, one by one, the column whose mean
    |correlation| with the block is largest or least.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.explore.blocks import cut_columns
    >>> a, b = np.random.default_rng(0).normal(size=(2, 50))
    >>> cut_columns(np.column_stack([a, b, -a, b + 1]), 2, "correlation")
    [[0, 2], [1, 3]]
    """
    return sorted(sorted(block) for block in BLOCKINGS[by](values, size, seed))


def _in_order(values: Floats, size: int, seed: int) -> list[list[int]]:  # noqa: ARG001
    return _pieces(list(range(values.shape[1])), size)


def _at_random(values: Floats, size: int, seed: int) -> list[list[int]]:
    lot = np.random.default_rng(seed).permutation(values.shape[1])
    return _pieces(lot.tolist(), size)


def _correlated(values: Floats, size: int, seed: int) -> list[list[int]]:  # noqa: ARG001
    return _greedy(_closeness(values), size)


def _contrasting(values: Floats, size: int, seed: int) -> list[list[int]]:  # noqa: ARG001
    return _greedy(-_closeness(values), size)


def _pieces(places: list[int], size: int) -> list[list[int]]:
    return [places[at : at + size] for at in range(0, len(places), size)]


def _closeness(values: Floats) -> Floats:
    """Return |correlations|, a missing cell counted as the column's mean; 0 on the diagonal."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, values, 0.0)
    centred = np.where(known, centred - centred.sum(axis=0) / count, 0.0)
    length = np.sqrt((centred**2).sum(axis=0))
    centred /= np.where(length > 0, length, 1.0)
    close: Floats = np.abs(centred.T @ centred)
    np.fill_diagonal(close, 0.0)
    return np.round(close, 9)  # ties of rounding are broken by place


def _greedy(close: Floats, size: int) -> list[list[int]]:
    left, blocks = list(range(len(close))), []
    while left:
        first = max(left, key=lambda j: (close[j, left].sum(), -j))
        block = [first]
        left.remove(first)
        while left and len(block) < size:
            here = tuple(block)
            best = max(left, key=lambda j, here=here: (close[j, here].mean(), -j))  # type: ignore[misc]
            block.append(best)
            left.remove(best)
        blocks.append(block)
    return blocks


# How columns can be cut, by the name that a candidate uses.
BLOCKINGS: dict[str, Callable[[Floats, int, int], list[list[int]]]] = {
    "order": _in_order,
    "correlation": _correlated,
    "contrast": _contrasting,
    "random": _at_random,
}
