"""Counting by wildcard: an empty cell equals every value.

Combinations that lack the same cells are compared as usual, by what they have. Those that lack
cells M and those that lack M' match if they agree in all keys outside of M and M': for each pair of
sets of missing cells, of which there are few, one sort of the combinations that lack them.
"""

from __future__ import annotations

import numpy as np

from .._types import Integers, SmallIntegers
from ..frame import group_ids

Codes = Integers | SmallIntegers


def count_matches(codes: Codes, records: Integers, strata: Integers) -> Integers:
    """Count the records that match each combination, its own included.

    Parameters
    ----------
    codes : array of shape (m, q)
        Combinations, 0 where a cell is empty.
    records, strata : arrays of shape (m,)
        How many records have each, and in which stratum they are; only there they match.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.keys.matches import count_matches
    >>> codes = np.array([[1, 1], [1, 2], [1, 0], [2, 0]])
    >>> count_matches(codes, np.ones(4, dtype=int), np.zeros(4, dtype=int))
    array([2, 2, 3, 1])
    """
    lacking = group_ids((codes == 0).T)
    kinds = np.unique(lacking, return_index=True)[1]
    rows = [np.flatnonzero(lacking == lacking[first]) for first in kinds]
    total = np.zeros(len(codes), dtype=np.int64)
    for here, own in zip(kinds, rows):
        for there, counted in zip(kinds, rows):
            if not records[counted].any():
                continue
            known = np.flatnonzero((codes[here] != 0) & (codes[there] != 0))
            both = [np.r_[strata[own], strata[counted]]]
            both += [np.r_[codes[own, j], codes[counted, j]] for j in known]
            ids = group_ids(both)
            sums = np.bincount(ids[len(own) :], records[counted], int(ids.max()) + 1)
            total[own] += sums[ids[: len(own)]].astype(np.int64)
    return total
