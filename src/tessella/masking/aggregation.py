"""One value for each group and column: the mean or the median, on the column's own grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._types import Floats, Integers
from ..kernels.groups import medians_of_runs, weighted_centres

__all__ = ["AGGREGATES", "group_means", "group_medians"]


def group_means(values: Floats, weights: Floats, labels: Integers, n_groups: int) -> Floats:
    """Weighted mean of each group, shape (n_groups, d), never outside of the group's range.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.masking.aggregation import group_means
    >>> values = np.array([[1.0], [2.0], [6.0], [8.0]])
    >>> group_means(values, np.ones(4), np.array([0, 0, 0, 0]), 1)
    array([[4.25]])
    """
    means = weighted_centres(np.ascontiguousarray(values), weights, labels, n_groups)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(n_groups))
    for j in range(values.shape[1]):  # rounding may carry a mean past an end by an ulp
        column = values[order, j]
        low, high = np.minimum.reduceat(column, starts), np.maximum.reduceat(column, starts)
        np.clip(means[:, j], low, high, out=means[:, j])
    return means


def group_medians(values: Floats, weights: Floats, labels: Integers, n_groups: int) -> Floats:
    """Weighted median of each group and column, shape (n_groups, d).

    Notes
    -----
    With the values of a group in order, the median is the first value whose cumulated weight
    exceeds half of the group's. Where the cumulated weight is exactly half (an even number of
    equal weights), it is the mean of that value and the next: without weights, the usual median.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.masking.aggregation import group_medians
    >>> values = np.array([[1.0], [2.0], [6.0], [8.0]])
    >>> group_medians(values, np.ones(4), np.array([0, 0, 0, 0]), 1)
    array([[4.]])
    """
    medians = np.empty((n_groups, values.shape[1]))
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_groups))])
    for j in range(values.shape[1]):
        order = np.lexsort((values[:, j], labels))
        medians[:, j] = medians_of_runs(values[order, j], weights[order], starts)
    return medians


AGGREGATES: dict[str, Callable[[Floats, Floats, Integers, int], Floats]] = {
    "mean": group_means,
    "median": group_medians,
}
