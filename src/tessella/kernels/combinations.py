"""Counting combinations of keys: rows as digits of one number, numbers counted in a hash table."""

from __future__ import annotations

import numpy as np

from .._types import Integers, SmallIntegers
from . import kernel


@kernel
def mix_digits(
    codes: SmallIntegers, digits: SmallIntegers, strides: Integers, start: Integers
) -> Integers:
    """Return start + sum_j strides[j] digits[j, codes[:, j]], shape (m,).

    `codes` is (m, d); `digits` is (d, nodes), the digit of each node of each column. The caller
    sees to it that no sum passes 2**62.
    """
    m, d = codes.shape
    out = np.empty(m, dtype=np.int64)
    for i in range(m):
        number = start[i]
        for j in range(d):
            number += strides[j] * digits[j, codes[i, j]]
        out[i] = number
    return out


@kernel
def number_equal(values: Integers) -> tuple[Integers, int]:
    """Number values that are not negative 0, 1, ... as they first appear, and count them.

    Open addressing in a table of at least twice as many places: a chain of full places has three
    on average. Fibonacci hashing (the odd number nearest to 2**64 over the golden ratio) spreads
    numbers in a mixed radix, which a plain remainder would put side by side.
    """
    m = len(values)
    bits = 4
    while (1 << bits) < 2 * m:
        bits += 1
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    owner = np.full(1 << bits, -1, dtype=np.int64)
    ids = np.empty(m, dtype=np.int64)
    first = np.empty(m, dtype=np.int64)
    count = 0
    for i in range(m):
        value = values[i]
        place = np.int64((np.uint64(value) * np.uint64(11400714819323198485)) >> shift)
        while True:
            known = owner[place]
            if known < 0:
                owner[place] = count
                first[count] = value
                ids[i] = count
                count += 1
                break
            if first[known] == value:
                ids[i] = known
                break
            place = (place + 1) & mask
    return ids, count
