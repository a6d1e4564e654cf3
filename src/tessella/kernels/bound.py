"""What lower bounds are computed from: cheap prices, costs of groups, corrections of prices.

A record's *price* is its share of a lower bound. Prices are *sound* if no group of at least k
records costs less than its records' prices together; then their sum is a lower bound.

Groups are rows of record numbers, padded with -1 where sizes differ.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel


@kernel
def weighted_prices(
    near: Integers, squares: Floats, weights: Floats, own: Floats, complete: bool, k: int
) -> Floats:
    """Sound prices of records with unequal weights, from their nearest others.

    W SSE(G) = sum_{i<j} w_i w_j d_ij gives SSE(G) = sum_i (w_i / 2) r_i(G) with the ratio
    r_i(G) = sum_{j in G, j != i} w_j d_ij / (w_i + sum_{j in G, j != i} w_j), and (w_i / 2) times
    the least ratio is a sound price. A ratio t is attainable iff some k - 1 others have
    sum w_j (d_ij - t) <= t w_i (more than k - 1 never help: at the least ratio the chosen terms sum
    to t w_i >= 0, so fewer than k - 1 others are nearer than t, and further ones only add). Hence
    Dinkelbach's iteration, from above: choose the k - 1 smallest terms at t, let t be their ratio,
    repeat.

    Only the nearest others are listed. Where they are not all (`complete` is false), k - 1 records
    of the lightest weight at the distance of the last one stand for the rest: the least ratio t
    is below that distance D, and every record beyond has w_j (d_ij - t) >= w_min (D - t). The
    answer may then be too small, never too large.

    `own` holds the weights of the records asked about, `weights` those of all.
    """
    n, listed = near.shape
    n_others = listed if complete else listed + k - 1
    lightest = weights.min()
    prices = np.empty(n)
    w, d = np.empty(n_others), np.empty(n_others)
    chosen, terms = np.empty(k - 1, dtype=np.int64), np.empty(k - 1)
    for i in range(n):
        for at in range(n_others):
            w[at] = weights[near[i, at]] if at < listed else lightest
            d[at] = squares[i, at] if at < listed else squares[i, listed - 1]
        ratio, better = np.inf, d[k - 2]  # the k - 1 nearest have a ratio below
        while better < ratio:
            ratio = better
            count = 0
            for at in range(n_others):
                term = w[at] * (d[at] - ratio)
                if count < k - 1:
                    count += 1
                elif term >= terms[count - 1]:
                    continue
                place = count - 1
                while place > 0 and terms[place - 1] > term:
                    terms[place], chosen[place] = terms[place - 1], chosen[place - 1]
                    place -= 1
                terms[place], chosen[place] = term, at
            above, below = 0.0, own[i]
            for taken in chosen:
                above += w[taken] * d[taken]
                below += w[taken]
            better = above / below
        prices[i] = 0.5 * own[i] * ratio
    return prices


@kernel
def group_costs(X: Floats, weights: Floats, groups: Integers) -> Floats:
    """SSE of each group; sums run over differences from the first record."""
    d = X.shape[1]
    costs = np.zeros(groups.shape[0])
    centre = np.empty(d)
    for g in range(groups.shape[0]):
        first, total, size = groups[g, 0], 0.0, 0
        centre[:] = 0.0
        while size < groups.shape[1] and groups[g, size] >= 0:
            i = groups[g, size]
            total += weights[i]
            for column in range(d):
                centre[column] += weights[i] * (X[i, column] - X[first, column])
            size += 1
        for at in range(size):
            i = groups[g, at]
            for column in range(d):
                side = X[i, column] - X[first, column] - centre[column] / total
                costs[g] += weights[i] * side * side
    return costs


@kernel
def sums_over(groups: Integers, values: Floats) -> Floats:
    """Sum of the values of each group's records."""
    sums = np.zeros(groups.shape[0])
    for g in range(groups.shape[0]):
        for at in range(groups.shape[1]):
            if groups[g, at] < 0:
                break
            sums[g] += values[groups[g, at]]
    return sums


@kernel
def make_sound(prices: Floats, copies: Floats, groups: Integers, profits: Floats) -> Floats:
    """Lower prices until none of these groups has a profit; given in order of falling profit.

    What a group is over its cost is taken from its records that stand for the fewest `copies`,
    evenly, records lowered before first counting what they gave. Lowering a price cannot give
    another group a profit.
    """
    given = np.zeros(prices.shape[0])
    level = np.empty(groups.shape[1])
    for g in range(groups.shape[0]):
        over, fewest = profits[g], np.inf
        for at in range(groups.shape[1]):
            if groups[g, at] >= 0:
                over -= given[groups[g, at]]
                fewest = min(fewest, copies[groups[g, at]])
        if over <= 0.0:
            continue
        count = 0
        for at in range(groups.shape[1]):
            if groups[g, at] >= 0 and copies[groups[g, at]] == fewest:
                level[count] = given[groups[g, at]]
                count += 1
        # Fill up the lowest, as water would: after m of them the level is (over + sum) / m.
        for m in range(1, count):
            moved, place = level[m], m
            while place > 0 and level[place - 1] > moved:
                level[place] = level[place - 1]
                place -= 1
            level[place] = moved
        filled, total = 0.0, 0.0
        for m in range(count):
            total += level[m]
            filled = (over + total) / (m + 1)
            if m + 1 == count or filled <= level[m + 1]:
                break
        for at in range(groups.shape[1]):
            if groups[g, at] >= 0 and copies[groups[g, at]] == fewest:
                given[groups[g, at]] = max(given[groups[g, at]], filled)
    return prices - given


@kernel
def few_per_record(groups: Integers, n: int, most: int) -> Integers:
    """Row numbers of groups, in order, that have a record in fewer than `most` chosen before."""
    count = np.zeros(n, dtype=np.int64)
    chosen = np.empty(groups.shape[0], dtype=np.int64)
    n_chosen = 0
    for g in range(groups.shape[0]):
        wanted = False
        for at in range(groups.shape[1]):
            if groups[g, at] >= 0 and count[groups[g, at]] < most:
                wanted = True
        if wanted:
            chosen[n_chosen] = g
            n_chosen += 1
            for at in range(groups.shape[1]):
                if groups[g, at] >= 0:
                    count[groups[g, at]] += 1
    return chosen[:n_chosen]
