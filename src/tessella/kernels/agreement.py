"""Pairs of records by what they agree in: patterns are bits, one for each column."""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel


@kernel
def agreement_patterns(
    A: Floats, B: Floats, limits: Floats, starts: Integers, members: Integers, block: Integers
) -> Integers:
    """Count the pairs of each agreement pattern within blocks.

    Column k agrees when |a - b| <= limits[k]; a missing value agrees with nothing. Originals of
    block g are members[starts[g] : starts[g + 1]]; `block` has the block of each masked record.
    """
    d = A.shape[1]
    counts = np.zeros(1 << d, dtype=np.int64)
    for i in range(A.shape[0]):
        g = block[i]
        for at in range(starts[g], starts[g + 1]):
            j = members[at]
            pattern = 0
            for column in range(d):
                if abs(A[i, column] - B[j, column]) <= limits[column]:
                    pattern |= 1 << column
            counts[pattern] += 1
    return counts


@kernel
def count_by_pattern(
    A: Floats,
    B: Floats,
    limits: Floats,
    scores: Floats,
    starts: Integers,
    members: Integers,
    block: Integers,
    truth: Integers,
    records: Integers,
) -> tuple[Integers, Integers]:
    """Count the originals of the block that score above the own one, and as high."""
    d = A.shape[1]
    nearer = np.zeros(records.shape[0], dtype=np.int64)
    tied = np.zeros(records.shape[0], dtype=np.int64)
    for at in range(records.shape[0]):
        i = records[at]
        g = block[i]
        pattern = 0
        for column in range(d):
            if abs(A[i, column] - B[truth[i], column]) <= limits[column]:
                pattern |= 1 << column
        own = scores[pattern]
        for place in range(starts[g], starts[g + 1]):
            j = members[place]
            pattern = 0
            for column in range(d):
                if abs(A[i, column] - B[j, column]) <= limits[column]:
                    pattern |= 1 << column
            if scores[pattern] > own:
                nearer[at] += 1
            elif scores[pattern] == own:
                tied[at] += 1
    return nearer, tied
