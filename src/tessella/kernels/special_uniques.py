"""Minimal sample uniques: the smallest sets of columns that single a row out.

Sets of columns are bit masks, visited in increasing order, depth first: a set comes after all its
subsets, and its partition is that of the set without the lowest bit, refined by one column. Rows
that are alone in their part leave it, since no larger set is minimal for them.
"""

from __future__ import annotations

import numpy as np

from .._types import Integers, Truths
from ._jit import kernel

__all__ = ["minimal_uniques"]


@kernel
def is_minimal(mask: int, at: int, found: Integers, before: Integers) -> bool:
    """Say whether none of a row's sets so far, a chain from `at`, is within `mask`."""
    while at >= 0:
        if found[at] & mask == found[at]:
            return False
        at = before[at]
    return True


@kernel
def minimal_uniques(
    codes: Integers, n_codes: Integers, alone: Truths, most: int
) -> tuple[Integers, Integers]:
    """Return pairs of row and mask: the minimal sets of at most `most` columns.

    `codes` is (d, u), from 0 below `n_codes`, or -1 where a row has no value and takes no part in
    sets with the column; rows are distinct, and only those that are `alone` can be unique.
    """
    d, u = codes.shape
    rows = np.empty((most + 1, u), dtype=np.int64)
    starts = np.empty((most + 1, u + 1), dtype=np.int64)
    n_parts = np.zeros(most + 1, dtype=np.int64)
    rows[0] = np.arange(u)
    starts[0, 0], starts[0, 1] = 0, u
    n_parts[0] = 1
    masks = np.zeros(most + 1, dtype=np.int64)
    following = np.zeros(most + 1, dtype=np.int64)  # the next column to add at each depth
    limit = np.zeros(most + 1, dtype=np.int64)  # columns below the lowest of the set
    limit[0] = d

    widest = 1
    for j in range(d):
        widest = max(widest, n_codes[j])
    counts = np.zeros(widest, dtype=np.int64)
    where = np.zeros(widest, dtype=np.int64)
    touched = np.empty(widest, dtype=np.int64)

    owner = np.empty(1024, dtype=np.int64)
    found = np.empty(1024, dtype=np.int64)
    before = np.empty(1024, dtype=np.int64)
    last = np.full(u, -1, dtype=np.int64)
    n_found = 0

    depth = 0
    while depth >= 0:
        column = following[depth]
        if column >= limit[depth] or n_parts[depth] == 0:
            depth -= 1
            continue
        following[depth] += 1
        mask = masks[depth] | (1 << column)
        deeper = depth + 1
        go_on = deeper < most and column > 0
        kept, parts = 0, 0
        for part in range(n_parts[depth]):
            low, high = starts[depth, part], starts[depth, part + 1]
            n_touched = 0
            for place in range(low, high):
                row = rows[depth, place]
                code = codes[column, row]
                if code < 0:
                    continue
                if counts[code] == 0:
                    touched[n_touched] = code
                    n_touched += 1
                counts[code] += 1
                where[code] = row
            for t in range(n_touched):
                code = touched[t]
                if counts[code] > 1:
                    continue
                row = where[code]
                if alone[row] and is_minimal(mask, last[row], found, before):
                    if n_found == len(found):
                        room = np.empty(n_found, dtype=np.int64)
                        owner = np.concatenate((owner, room))
                        found = np.concatenate((found, room))
                        before = np.concatenate((before, room))
                    owner[n_found], found[n_found], before[n_found] = row, mask, last[row]
                    last[row] = n_found
                    n_found += 1
            if go_on:
                end = kept
                for t in range(n_touched):
                    code = touched[t]
                    where[code] = end
                    if counts[code] > 1:
                        end += counts[code]
                for place in range(low, high):
                    row = rows[depth, place]
                    code = codes[column, row]
                    if code >= 0 and counts[code] > 1:
                        rows[deeper, where[code]] = row
                        where[code] += 1
                # A part without a row that could be unique is of no more use: close the gap.
                begin = kept
                for t in range(n_touched):
                    size = counts[touched[t]]
                    if size < 2:
                        continue
                    useful = False
                    for place in range(begin, begin + size):
                        if alone[rows[deeper, place]]:
                            useful = True
                            break
                    if useful:
                        starts[deeper, parts] = kept
                        for place in range(begin, begin + size):
                            rows[deeper, kept] = rows[deeper, place]
                            kept += 1
                        parts += 1
                    begin += size
            for t in range(n_touched):
                counts[touched[t]] = 0
        if go_on:
            starts[deeper, parts] = kept
            n_parts[deeper] = parts
            masks[deeper] = mask
            following[deeper] = 0
            limit[deeper] = column
            depth = deeper
    return owner[:n_found].copy(), found[:n_found].copy()
