"""How probable each original is for a released record whose values were drawn by degrees."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel
from .degrees import EXPONENTIAL, NEAREST, TINY, Law

EQUAL = 1e-9  # logarithms that differ by less are equal


class Draws(NamedTuple):
    """Originals and released records in the same columns, block after block."""

    originals: Floats  # (n, d) sorted by part
    released: Floats  # (m, d) the centre of each block, at the columns of the block
    cuts: Integers  # (blocks + 1,) where the columns of each block begin
    base: Floats  # (n,) what the degrees of an original have in common, as a logarithm
    least: Floats  # (n, blocks) squared distance to the nearest centre
    first: Integers  # (parts + 1,) where the originals of each part begin
    part: Integers  # (m,) the part that a released record comes from, -1 for none


@kernel
def log_chance(draws: Draws, law: Law, i: int, j: int) -> float:
    """Logarithm of the probability that original j was given the centres of released record i."""
    product, total = 1.0, 0.0
    for b in range(draws.cuts.shape[0] - 1):
        square = 0.0
        for column in range(draws.cuts[b], draws.cuts[b + 1]):
            gap = draws.originals[j, column] - draws.released[i, column]
            square += gap * gap
        if law.kind == EXPONENTIAL:
            total -= law.rate * square
        elif law.kind == NEAREST:
            if square > draws.least[j, b] * (1 + EQUAL) + TINY:
                return -np.inf
        elif square < 1e-100 or square > 1e100:
            total -= law.rate * math.log(square + TINY)
        else:
            product *= square  # one logarithm for many blocks
            if product < 1e-150 or product > 1e150:
                total -= law.rate * math.log(product)
                product = 1.0
    if law.kind != EXPONENTIAL and law.kind != NEAREST:
        total -= law.rate * math.log(product)
    return float(draws.base[j] + total)


@kernel
def weigh_originals(draws: Draws, law: Law, rows: Integers, out: Floats) -> None:
    """Write for released records, into out (m, 5): the largest log chance, the log of their sum,
    the entropy in nats, how many originals are possible, and how many are most probable.
    """
    widest = 0
    for p in range(draws.first.shape[0] - 1):
        widest = max(widest, draws.first[p + 1] - draws.first[p])
    logs = np.empty(widest)
    for i in rows:
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = -np.inf, -np.inf, 0.0, 0.0, 0.0
        if draws.part[i] < 0:
            continue
        start, end = draws.first[draws.part[i]], draws.first[draws.part[i] + 1]
        most = -np.inf
        for j in range(start, end):
            logs[j - start] = log_chance(draws, law, i, j)
            most = max(most, logs[j - start])
        if most == -np.inf:
            continue
        total, mean = 0.0, 0.0
        for j in range(end - start):
            away = logs[j] - most
            if away > -np.inf:
                out[i, 3] += 1
            if away > -700.0:
                share = math.exp(away)
                total += share
                mean += share * away
            if away >= -EQUAL:
                out[i, 4] += 1
        out[i, 0], out[i, 1] = most, most + math.log(total)
        out[i, 2] = max(math.log(total) - mean / total, 0.0)


@kernel
def log_chances(draws: Draws, law: Law, rows: Integers, columns: Integers) -> Floats:
    """Return the log chances of pairs of released record and original, one by one."""
    out = np.full(rows.shape[0], -np.inf)
    for at in range(rows.shape[0]):
        part, j = draws.part[rows[at]], columns[at]
        if part >= 0 and draws.first[part] <= j < draws.first[part + 1]:
            out[at] = log_chance(draws, law, rows[at], j)
    return out
