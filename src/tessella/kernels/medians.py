"""Medians of consecutive runs of sorted values."""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel


@kernel
def medians_of_runs(values: Floats, weights: Floats, starts: Integers) -> Floats:
    """Weighted median of each run `starts[g]:starts[g + 1]`, whose values are in order.

    Where half of the weight is reached exactly, the mean of that value and the next.
    """
    n_runs = starts.shape[0] - 1
    medians = np.empty(n_runs)
    for g in range(n_runs):
        first, end = starts[g], starts[g + 1]
        total = 0.0
        for i in range(first, end):
            total += weights[i]
        # Equal weights such as 0.1 add up to half of their total only to rounding.
        slack = 1e-12 * total
        reached, i = weights[first], first
        while reached < total / 2 - slack and i + 1 < end:
            i += 1
            reached += weights[i]
        medians[g] = values[i]
        if reached <= total / 2 + slack and i + 1 < end:
            medians[g] = (values[i] + values[i + 1]) / 2
    return medians
