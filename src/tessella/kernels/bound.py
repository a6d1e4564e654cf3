"""What lower bounds are computed from: cheap prices, costs of groups, corrections of prices.

A record's *price* is its share of a lower bound. Prices are *sound* if no group of at least k
records costs less than its records' prices together; then their sum is a lower bound.

A *subset-row cut* holds: of three records, at most one group of a partition holds two or more. A
fractional mixture of groups may use halves of three groups that each hold two of the records
a, b, c; no partition can. The cut forbids it (Jepsen, Petersen, Spoorendonk and Pisinger 2008):

    sum over groups G with |G & {a, b, c}| >= 2 of share(G) <= 1.

A cut with a price charges that price to each group that holds two or three of its records.

Groups are rows of record numbers, padded with -1 where sizes differ; cuts are rows of three.
"""

import numpy as np

from .._types import Floats, Integers, Truths
from . import kernel
from .groups import doubled, insert


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
                if count < k - 1 or term < terms[count - 1]:
                    count = insert(terms, chosen, count, term, at)
            above, below = 0.0, own[i]
            for taken in chosen:
                above += w[taken] * d[taken]
                below += w[taken]
            better = above / below
        prices[i] = 0.5 * own[i] * ratio
    return prices


@kernel
def unit_prices(
    rows: Integers, near: Integers, squares: Floats, weights: Floats, units: Integers, n_units: int,
    complete: bool, k: int,
) -> tuple[Floats, Truths]:  # fmt: skip
    """Sound prices of some records where every group has k distinct units, and which are final.

    As in `weighted_prices`, half of w_i times the least ratio r_i(G) over all groups G of i is a
    sound price. Here G holds k - 1 units other than i's, and any number of records. A ratio t is
    attainable iff the least sum of w_j (d_ij - t) over such G is at most t w_i. The sum is least
    with all records nearer than t, of any unit (each has a negative term), and, where they are of
    fewer than k - 1 other units, with the cheapest record of each of the cheapest units that are
    missing. Hence Dinkelbach's iteration again: choose at t, let t be the ratio of the chosen,
    repeat while it falls.

    `near` lists the nearest, the record itself maybe among them. Where they are not all, k - 1
    units with a record of the lightest weight at the distance D of the last one stand for the rest.
    All that is chosen is at most D away, so t is below D, and every record beyond has
    w_j (d_ij - t) >= w_min (D - t): the answer may be too small, never too large. It is final if
    the list is complete or has k - 1 other units.
    """
    listed, lightest = near.shape[1], weights.min()
    prices, final = np.empty(rows.shape[0]), np.empty(rows.shape[0], dtype=np.bool_)
    # of each unit: 0 if not met, 1 if a record is chosen, 2 if not, with its cheapest record
    state, cheapest = np.zeros(n_units, dtype=np.int64), np.empty(n_units, dtype=np.int64)
    met = np.empty(n_units, dtype=np.int64)
    terms, chosen = np.empty(k - 1), np.empty(k - 1, dtype=np.int64)
    for r in range(rows.shape[0]):
        i = rows[r]
        last = squares[r, listed - 1]
        ratio, better, n_met = np.inf, last, 0
        while better < ratio:
            ratio, above, below = better, 0.0, weights[i]
            for a in range(n_met):
                state[met[a]] = 0
            n_met, covered = 0, 0
            for at in range(listed):
                j, u = near[r, at], units[near[r, at]]
                if j == i or (u == units[i] and squares[r, at] >= ratio):
                    continue
                if squares[r, at] < ratio:
                    above += weights[j] * squares[r, at]
                    below += weights[j]
                if u == units[i]:
                    continue
                if state[u] == 0:
                    met[n_met] = u
                    n_met += 1
                if squares[r, at] < ratio:
                    covered += state[u] != 1
                    state[u] = 1
                elif state[u] == 0 or (
                    state[u] == 2
                    and weights[j] * (squares[r, at] - ratio)
                    < weights[near[r, cheapest[u]]] * (squares[r, cheapest[u]] - ratio)
                ):
                    state[u], cheapest[u] = 2, at
            missing, count = k - 1 - covered, 0
            if missing > 0:
                for a in range(n_met):
                    if state[met[a]] == 2:
                        at = cheapest[met[a]]
                        term = weights[near[r, at]] * (squares[r, at] - ratio)
                        if count < missing or term < terms[count - 1]:
                            count = insert(terms[:missing], chosen, count, term, at)
                if not complete:
                    term = lightest * (last - ratio)
                    while count < missing or term < terms[count - 1]:
                        count = insert(terms[:missing], chosen, count, term, -1)
                for a in range(missing):
                    at = chosen[a]
                    w = lightest if at < 0 else weights[near[r, at]]
                    above += w * (last if at < 0 else squares[r, at])
                    below += w
            better = above / below
        prices[r] = 0.5 * weights[i] * ratio
        final[r] = complete or n_met >= k - 1
        for a in range(n_met):
            state[met[a]] = 0
    return prices, final


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
                        hit = doubled(hit)
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
    groups: Integers, shares: Floats, starts: Integers, held: Integers, single: Truths,
    least: float,
) -> tuple[Integers, Floats]:  # fmt: skip
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
                        cuts, excess = doubled(cuts), doubled(excess)
                    low, high = min(a, b), max(b, c)
                    cuts[n_cuts, 0], cuts[n_cuts, 2] = low, high
                    cuts[n_cuts, 1] = a + b + c - low - high
                    excess[n_cuts] = over
                    n_cuts += 1
            for z in range(n_b):
                pair_bc[near_b[z]] = 0.0
        for x in range(n_a):
            pair_ab[near_a[x]] = 0.0
    return cuts[:n_cuts], excess[:n_cuts]


@kernel
def _partners(
    groups: Integers, shares: Floats, starts: Integers, held: Integers, single: Truths, i: int,
    near: Integers, pair: Floats,
) -> int:  # fmt: skip
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
