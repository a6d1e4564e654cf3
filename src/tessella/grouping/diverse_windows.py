"""Windows of groups whose confidential values must be diverse, or close to the table's."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._types import Bytes, Floats, Integers
from ..diversity import Diversity
from ..kernels.diverse_moves import anneal_diverse
from ..kernels.diversity import nearest_and_other
from ..kernels.groups import renumber, squared_error, weighted_centres


def largest_group(labels: Integers, k: int) -> int:
    """Return how many records a group may have that still gets others.

    Without confidential values no group of 2k needs to be. With them groups may need to be larger,
    about as large as those that were found first; twice that leaves room to move.
    """
    return max(2 * k - 1, 2 * int(np.median(np.bincount(labels))))


def improve_diverse_windows(
    X: Floats, weights: Floats, labels: Integers, rows: Integers, starts: Integers,
    windows: Iterable[int], k: int, diversity: Diversity, count: int, moves: int,
    heat: tuple[float, float], seed: int, halt: Bytes,
) -> None:  # fmt: skip
    """Anneal windows of a labelling numbered by window; keep what is better.

    As `kernels.windows.improve_windows`, for groups that must be diverse.
    """
    for t in windows:
        own = rows[starts[t] : starts[t + 1]]
        n = len(own)
        if n < 2 * k or halt[0] != 0:
            continue
        offset = labels[own].min()
        near_X, near_weights, old = X[own], weights[own], labels[own] - offset
        before = _sse(near_X, near_weights, old)
        if before <= 0.0:
            continue
        here = diversity.take(own)
        near = nearest_and_other(near_X, here.buckets[-1], min(count, n - 1))
        new = old.copy()
        anneal_diverse(
            near_X, near_weights, near, new, k, largest_group(old, k), *here.arrays, moves * n,
            heat[0] * before / n, heat[1] * before / n, seed, t, halt,
        )  # fmt: skip
        new = renumber(new, n // k)
        if _sse(near_X, near_weights, new) < before:
            labels[own] = offset + new


def _sse(X: Floats, weights: Floats, labels: Integers) -> float:
    centres = weighted_centres(X, weights, labels, int(labels.max()) + 1)
    return float(squared_error(X, weights, labels, centres))
