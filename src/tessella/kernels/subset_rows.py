"""Subset-row cuts: of three records, at most one group of a partition holds two or more.

A fractional mixture of groups may use halves of three groups that each hold two of the records
a, b, c; no partition can. The cut forbids it (Jepsen, Petersen, Spoorendonk and Pisinger 2008):

    sum over groups G with |G & {a, b, c}| >= 2 of share(G) <= 1.

A cut with a price charges that price to each group that holds two or three of its records.

Cuts are rows of three record numbers; groups are rows of record numbers padded with -1.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers, Truths
from ._jit import kernel


@kernel
def memberships(rows: Integers, n: int) -> tuple[Integers, Integers]:
    """Which rows hold each record: starts (n + 1) and row numbers."""
    starts = np.zeros(n + 1, dtype=np.int64)
    for r in range(rows.shape[0]):
        for at in range(rows.shape[1]):
            if rows[r, at] >= 0:
                starts[rows[r, at] + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    held = np.empty(starts[n], dtype=np.int64)
    for r in range(rows.shape[0]):
        for at in range(rows.shape[1]):
            if rows[r, at] >= 0:
                held[place[rows[r, at]]] = r
                place[rows[r, at]] += 1
    return starts, held


@kernel
def cuts_hit(
    groups: Integers, starts: Integers, held: Integers, n_cuts: int
) -> tuple[Integers, Integers]:
    """Cuts of which each group holds two records or more: starts (groups + 1) and cut numbers."""
    begin = np.zeros(groups.shape[0] + 1, dtype=np.int64)
    hit = np.empty(64, dtype=np.int64)
    count = np.zeros(n_cuts, dtype=np.int64)
    n_hit = 0
    for g in range(groups.shape[0]):
        for at in range(groups.shape[1]):
            if groups[g, at] < 0:
                break
            for e in range(starts[groups[g, at]], starts[groups[g, at] + 1]):
                count[held[e]] += 1
                if count[held[e]] == 2:
                    if n_hit == hit.shape[0]:
                        hit = np.concatenate((hit, np.empty_like(hit)))
                    hit[n_hit] = held[e]
                    n_hit += 1
        for at in range(groups.shape[1]):
            if groups[g, at] < 0:
                break
            for e in range(starts[groups[g, at]], starts[groups[g, at] + 1]):
                count[held[e]] = 0
        begin[g + 1] = n_hit
    return begin, hit[:n_hit]


@kernel
def charges_of_pairs(cuts: Integers, prices: Floats, n: int) -> tuple[Integers, Integers, Floats]:
    """A third of each cut's price on each of its three pairs: starts, partners, amounts.

    Two records of a cut in a group cost the group the whole price, three of them as well: the
    charges of the pairs within a group never exceed what the group is charged.
    """
    starts = np.zeros(n + 1, dtype=np.int64)
    for c in range(cuts.shape[0]):
        for at in range(3):
            starts[cuts[c, at] + 1] += 2
    for i in range(n):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    partners, amounts = np.empty(starts[n], dtype=np.int64), np.empty(starts[n])
    for c in range(cuts.shape[0]):
        for a in range(3):
            for b in range(3):
                if a != b:
                    i = cuts[c, a]
                    partners[place[i]], amounts[place[i]] = cuts[c, b], prices[c] / 3.0
                    place[i] += 1
    return starts, partners, amounts


@kernel
def broken_cuts(
    groups: Integers,
    shares: Floats,
    starts: Integers,
    held: Integers,
    single: Truths,
    least: float,
) -> tuple[Integers, Floats]:
    """Triples of records of which groups hold two or more with shares above 1 + least in all.

    `starts` and `held` say which groups hold each record. Only records marked `single` (which
    stand for themselves alone) enter a cut. Each triple is given once, with the excess over 1.
    """
    n = starts.shape[0] - 1
    cuts, excess = np.empty((64, 3), dtype=np.int64), np.empty(64)
    n_cuts = 0
    pair_ab, pair_bc = np.zeros(n), np.zeros(n)
    near_a, near_b = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for a in range(n):
        if not single[a]:
            continue
        n_a = _partners(groups, shares, starts, held, single, a, near_a, pair_ab)
        for x in range(n_a):
            b = near_a[x]
            n_b = _partners(groups, shares, starts, held, single, b, near_b, pair_bc)
            # The middle record b has a share with both others; a < c, and where a and c have a
            # share as well, b is the lowest of the three so that the triple comes up once.
            for z in range(n_b):
                c = near_b[z]
                if c <= a or (pair_ab[c] > 0.0 and not b < a):
                    continue
                together = 0.0
                for e in range(starts[b], starts[b + 1]):
                    g = held[e]
                    has_a, has_c = False, False
                    for at in range(groups.shape[1]):
                        has_a = has_a or groups[g, at] == a
                        has_c = has_c or groups[g, at] == c
                    if has_a and has_c:
                        together += shares[g]
                over = pair_ab[b] + pair_bc[c] + pair_ab[c] - 2.0 * together - 1.0
                if over > least:
                    if n_cuts == cuts.shape[0]:
                        cuts = np.concatenate((cuts, np.empty_like(cuts)))
                        excess = np.concatenate((excess, np.empty_like(excess)))
                    low, high = min(a, b), max(b, c)
                    cuts[n_cuts, 0] = low
                    cuts[n_cuts, 1] = a + b + c - low - high
                    cuts[n_cuts, 2] = high
                    excess[n_cuts] = over
                    n_cuts += 1
            for z in range(n_b):
                pair_bc[near_b[z]] = 0.0
        for x in range(n_a):
            pair_ab[near_a[x]] = 0.0
    return cuts[:n_cuts], excess[:n_cuts]


@kernel
def _partners(
    groups: Integers,
    shares: Floats,
    starts: Integers,
    held: Integers,
    single: Truths,
    i: int,
    near: Integers,
    pair: Floats,
) -> int:
    """Records that share groups with i, and how much; `pair` must be zero before."""
    count = 0
    for e in range(starts[i], starts[i + 1]):
        g = held[e]
        for at in range(groups.shape[1]):
            j = groups[g, at]
            if j >= 0 and j != i and single[j]:
                if pair[j] == 0.0:
                    near[count] = j
                    count += 1
                pair[j] += shares[g]
    return count
