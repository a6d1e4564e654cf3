"""Which records look alike: what k-anonymity counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Floats, Integers, States
from ..exceptions import BrokenPromiseError

__all__ = ["number_alike", "released_sets"]


def number_alike(columns: Iterable[NDArray[Any]]) -> Integers:
    """Give records the same number if and only if they agree in every column.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.masking.alike import number_alike
    >>> number_alike([np.array([5.0, 7.0, 5.0]), np.array([1, 1, 1])])
    array([0, 1, 0])
    """
    numbers: Integers | None = None
    for column in columns:
        _, own = np.unique(column, return_inverse=True)
        if numbers is not None:  # at most n**2, which an int64 holds
            _, own = np.unique(numbers * (int(own.max()) + 1) + own, return_inverse=True)
        numbers = own.astype(np.int64, copy=False)
    if numbers is None:
        raise ValueError("number_alike needs at least one column")
    return numbers


def released_sets(
    values: Floats, state: States, labels: Integers, strata: Integers, *, method: str
) -> Integers:
    """Number the sets of records that share a stratum and all their released values.

    The values come from the released table itself. Records of one group must be alike in it, or
    the promise is broken; groups may happen to be alike with each other.
    """
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    leader = first[place]
    filled = np.where(state == 0, values, 0.0)
    differs = (filled != filled[leader]).any(axis=1) | (strata != strata[leader])
    differs |= (state != state[leader]).any(axis=1)
    if differs.any():
        raise BrokenPromiseError.group_not_alike(int(differs.sum()), method)
    seen = number_alike([strata[first], *filled[first].T, *state[first].T])
    return seen[place]
