"""Records that no point of a cell links together: how many are left when such sets count once.

Two rows of which some convex combination is positive at no corner of a cell are positive together
nowhere in it, so their records exclude each other. Records of which every two exclude each other
(a clique) give at most one link; a greedy cover by cliques bounds the links of a cell from above.
Removing rows or merging sets never makes a bound too small, so only `exclude` and `covers` have to
be right to the last bit; `GAP` keeps the former away from rounding.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel

GAP = 1e-13  # of the share of one row in a combination of two
WORD = 62  # records in a word of a set; the signs of int64 stay out of it
ENOUGH = 24  # records that exclude a record: more are not looked for
HOPE = 0.6  # of the undecided: rarely fewer are left when pairs are compared
TESTS = 100_000  # pairs of rows after which no more kinds of them are compared


@kernel
def exclude(values: Floats, r: int, s: int) -> bool:
    """Whether some combination of two rows, positive together nowhere, is positive nowhere."""
    low, high = 0.0, 1.0
    for v in range(values.shape[1]):
        x, y = values[r, v], values[s, v]
        if y > 0.0:
            low = max(low, y / (y - x))
        elif x > 0.0:
            high = min(high, y / (y - x))
        else:
            continue
        if low > high - GAP:
            return False
    return True


@kernel
def covers(values: Floats, s: int, r: int) -> bool:
    """Whether row r is at least some multiple of row s, so that s positive makes r positive."""
    low, high = 0.0, np.inf
    for v in range(values.shape[1]):
        x, y = values[r, v], values[s, v]
        if y > 0.0:
            high = min(high, x / y)
        elif x < 0.0:
            low = max(low, x / y) if y < 0.0 else np.inf
        else:
            continue
        if low > high:
            return False
    return True


@kernel
def _bits(word: int) -> int:
    """Count the bits, by halves, fours and bytes."""
    word -= (word >> 1) & 0x5555555555555555
    word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F
    word += word >> 8
    word += word >> 16
    return (word + (word >> 32)) & 0x7F


@kernel
def most_together(
    undecided: tuple[Floats, Integers, Integers, Integers, Integers],
    left: int,
    classes: Integers,
    enough: int,
    thorough: bool,
) -> int:
    """Bound the undecided records that one point links: sets that exclude each other count once.

    Pairs are compared where that may bring the number down to `enough`, or if asked to be thorough.
    """
    values, masks, _, records, starts = undecided
    k = values.shape[1]
    count = 0
    for at in range(left):
        fresh = True
        for other in range(at):
            if classes[records[other]] == classes[records[at]]:
                fresh = False
                break
        count += fresh
    if count <= enough or not (thorough or HOPE * count <= enough):
        return count
    words = (left + WORD - 1) // WORD
    excludes = np.zeros((left, words), dtype=np.int64)
    degree = np.zeros(left, dtype=np.int64)
    rows = starts[left]
    # Only rows that are positive together at no corner can exclude each other: rows by mask, those
    # that are positive at few corners first.
    keys, owner = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    for at in range(left):
        for row in range(starts[at], starts[at + 1]):
            keys[row], owner[row] = (_bits(masks[row]) << k) | masks[row], at
        for other in range(at):
            if classes[records[other]] == classes[records[at]]:
                excludes[at, other // WORD] |= 1 << (other % WORD)
                excludes[other, at // WORD] |= 1 << (at % WORD)
                degree[at] += 1
                degree[other] += 1
    order = np.argsort(keys)
    ends = np.empty(rows + 1, dtype=np.int64)
    kinds = 0
    for place in range(rows):
        if place == 0 or keys[order[place]] != keys[order[place - 1]]:
            ends[kinds] = place
            kinds += 1
    ends[kinds] = rows
    tests = 0
    for one in range(kinds):
        mask = masks[order[ends[one]]]
        for two in range(one):
            if mask & masks[order[ends[two]]]:
                continue
            for place in range(ends[one], ends[one + 1]):
                r = order[place]
                a = owner[r]
                for other in range(ends[two], ends[two + 1]):
                    s = order[other]
                    b = owner[s]
                    tests += 1
                    if degree[a] >= ENOUGH and degree[b] >= ENOUGH:
                        continue
                    if a == b or (excludes[a, b // WORD] >> (b % WORD)) & 1:
                        continue
                    if exclude(values, r, s):
                        excludes[a, b // WORD] |= 1 << (b % WORD)
                        excludes[b, a // WORD] |= 1 << (a % WORD)
                        degree[a] += 1
                        degree[b] += 1
        if tests > TESTS:
            break
    open_ = np.zeros(words, dtype=np.int64)
    for a in range(left):
        open_[a // WORD] |= 1 << (a % WORD)
    common = np.empty(words, dtype=np.int64)
    count = 0
    for a in np.argsort(degree):
        if not (open_[a // WORD] >> (a % WORD)) & 1:
            continue
        count += 1
        open_[a // WORD] &= ~(1 << (a % WORD))
        for word in range(words):
            common[word] = excludes[a, word] & open_[word]
        while True:
            # The next of the set is the one that leaves most others in it.
            best, best_common = -1, -1
            for word in range(words):
                rest = common[word]
                while rest:
                    low = rest & -rest
                    b = word * WORD + _bits(low - 1)
                    rest ^= low
                    shared = 0
                    for other in range(words):
                        shared += _bits(excludes[b, other] & common[other])
                    if shared > best_common:
                        best, best_common = b, shared
            if best < 0:
                break
            open_[best // WORD] &= ~(1 << (best % WORD))
            for word in range(words):
                common[word] &= excludes[best, word]
    return count
