"""Every group whose records offer more than the group costs.

Each record i offers a price y_i. A group G of s records with weights w costs its spread SSE(G), and
its *profit* is the sum of its prices minus its cost. Prices that leave no group with a profit
prove that no grouping costs less than their sum, so the search for profitable groups must be
exhaustive; these kernels are exact and need no n x n matrix.

Profit is a sum over pairs. With W the weight of G and d_ij the squared distance,

    W SSE(G)    = sum_{i<j} w_i w_j d_ij
    W profit(G) = sum_{i<j} p_ij,
    p_ij        = (w_i y_i + w_j y_j) / (s - 1) + w_i y_j + w_j y_i - w_i w_j d_ij,

where s is fixed. Call the sum of p over the pairs of a set its *value*, and the part of it that
one record takes part in the record's *tie*. Ties sum to twice the value, so in a set of m the
lowest tie is at most 2 / m of it, and taking that record out leaves at least (m - 2) / m of it.
Hence **every profitable group can be peeled, lowest tie first, down to a pair, and each set on the
way has a positive value**. Read backwards: grow sets from pairs, keep a set only if its value is
positive and its newest record has its lowest tie. Each set has one parent (reverse search, Avis
and Fukuda 1996), so each is met once; near good prices few are met.

Values p are rounded up to multiples of a power of two so coarse that sums of them are exact: the
order of additions does not matter, ties are ties, and no profitable group is lost to rounding.

*Terms* are the tuple (X, weights, prices, own): the table with columns first (d x n), then three
arrays of length n, own being w_i y_i / (s - 1). *Charges* (starts, partners, amounts) lower p for
some pairs; they come from cuts (see `bound`).
"""

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .groups import doubled

Terms = tuple[Floats, Floats, Floats, Floats]
Charges = tuple[Integers, Integers, Floats]
NOTHING = -1e300  # p of a record with itself: below every sum, and finite so that sums stay so
# Numbers kept of computed rows of p: 16 MB a core, chosen to stay within a large last-level cache,
# not tuned. Only time depends on it: rows that are not kept are computed again.
MOST_CACHED = 2_000_000
MOST_SLOTS = 256  # rows kept, at most; a set has fewer than 2k records, so most would lie idle


@kernel
def _round_up(value: float, grid: float) -> float:
    # Adding and taking away 1.5 * 2^52 grids leaves a multiple of the grid. The grid added first
    # covers this rounding and that of the few operations before.
    big = 6755399441055744.0 * grid
    return (value + grid + big) - big


@kernel
def _insert(best: Floats, count: int, value: float) -> None:
    """Keep the `count` largest values in descending order, by insertion: count is below 2k."""
    if value > best[count - 1]:
        place = count - 1
        while place > 0 and best[place - 1] < value:
            best[place] = best[place - 1]
            place -= 1
        best[place] = value


@kernel
def _p(terms: Terms, square: float, grid: float, i: int, j: int) -> float:
    _, weights, prices, own = terms
    return _round_up(
        (own[i] + own[j])
        + (weights[i] * prices[j] + weights[j] * prices[i])
        - weights[i] * weights[j] * square,
        grid,
    )


@kernel
def _charged(
    p: float, amount: float, i: int, j: int, weights: Floats, spare: float, grid: float
) -> float:
    # A charge is per group, and p is scaled by the group's weight, which is at least this.
    return _round_up(p - amount * (weights[i] + weights[j] + spare), grid)


@kernel
def _row(
    terms: Terms, coordinates: Floats, who: Integers, count: int, grid: float, i: int, out: Floats
) -> None:
    """Compute p of record i with each record of `who`; the loops over records are vectorised."""
    for at in range(count):
        out[at] = 0.0
    for column in range(coordinates.shape[0]):
        here = terms[0][column, i]
        for at in range(count):
            side = coordinates[column, at] - here
            out[at] += side * side
    for at in range(count):
        out[at] = _p(terms, out[at], grid, i, who[at])


@kernel
def best_shares(terms: Terms, size: int, grid: float, first: int, last: int) -> Floats:
    """Half the sum of a record's r - 1 largest p, for r up to size - 1; row r of the answer.

    Summed over the records of a set of r, this is at least the set's value.
    """
    n = terms[0].shape[1]
    everyone = np.arange(n)
    shares = np.zeros((size, last - first))
    best, row = np.empty(size), np.empty(n)
    for i in range(first, last):
        _row(terms, terms[0], everyone, n, grid, i, row)
        row[i] = NOTHING
        best[:] = NOTHING
        for j in range(n):
            _insert(best, size, row[j])
        for r in range(2, size):
            shares[r, i - first] = shares[r - 1, i - first] + 0.5 * best[r - 2]
    return shares


@kernel
def best_hopes(
    terms: Terms, share: Floats, size: int, grid: float, first: int, last: int
) -> tuple[Floats, Floats]:
    """What a record can hope for with its size - 1, and with its size - 2, best partners.

    A set Q beside record i has the value sum_{j in Q} p_ij + value(Q), which is at most
    sum_{j in Q} (p_ij + share_j).
    """
    n = terms[0].shape[1]
    everyone = np.arange(n)
    whole, all_but_one = np.empty(last - first), np.empty(last - first)
    best, row = np.empty(size), np.empty(n)
    for i in range(first, last):
        _row(terms, terms[0], everyone, n, grid, i, row)
        row[i] = NOTHING
        best[:] = NOTHING
        for j in range(n):
            _insert(best, size - 1, row[j] + share[j])
        total = 0.0
        for place in range(size - 2):
            total += best[place]
        all_but_one[i - first] = total
        whole[i - first] = total + best[size - 2]
    return whole, all_but_one


@kernel
def _lowest_tie(
    terms: Terms, charges: Charges, local: Integers, cached: Floats, slot_of: Integers,
    member: Integers, tie: Floats, level: int, other: int, other_tie: float, spare: float,
    grid: float,
) -> bool:  # fmt: skip
    """Would this record have the lowest tie of the set, the highest number deciding a draw?"""
    X, weights = terms[0], terms[1]
    starts, partners, amounts = charges
    j = local[other]
    for m in range(level):
        i = local[member[m]]
        slot = slot_of[member[m]]
        if slot >= 0:
            p = cached[slot, other]
        else:
            square = 0.0
            for column in range(X.shape[0]):
                side = X[column, j] - X[column, i]
                square += side * side
            p = _p(terms, square, grid, i, j)
            for at in range(starts[i], starts[i + 1]):
                if partners[at] == j:
                    p = _charged(p, amounts[at], i, j, weights, spare, grid)
        if tie[m] + p < other_tie or (tie[m] + p == other_tie and i > j):
            return False
    return True


@kernel
def _partners(
    shares: Floats, hopes: tuple[Floats, Floats], size: int, i: int, row: Floats,
    place_of: Integers,
) -> int:  # fmt: skip
    """Number the records that may share a profitable group with i, i itself 0; count them.

    A group with i and j is worth at most p_ij, plus what j's share and i's best size - 2 others
    add, and likewise with i and j exchanged: both bounds must be positive.
    """
    whole, all_but_one = hopes
    count = 1
    for j in range(row.shape[0]):
        place_of[j] = -1
        if (
            j != i
            and whole[j] > 0.0
            and row[j] + shares[size - 1, j] + all_but_one[i] > 0.0
            and row[j] + shares[size - 1, i] + all_but_one[j] > 0.0
        ):
            place_of[j] = count
            count += 1
    place_of[i] = 0
    return count


@kernel
def _keep_candidates(
    line: Floats, share: Floats, value: float, candidates: tuple[Integers, Floats, int],
    out: tuple[Integers, Floats], hope: Floats, best: Floats,
) -> int:  # fmt: skip
    """Keep the candidates that may still complete a set to a profitable group; count them.

    `line` has p of the newest record, `share` bounds what each candidate adds beside its tie, and
    `best` has one place for each record that is missing. A completion is worth at most the value of
    the set plus the sum of the missing records' ties and shares. With the best of all others in its
    place, a candidate must lift that above 0, or no completion holds it (branch and bound).
    """
    old, old_tie, n_old = candidates
    new, new_tie = out
    missing = best.shape[0]
    best[:] = NOTHING
    for at in range(n_old):
        other = old[at]
        new_tie[at] = old_tie[at] + line[other]
        hope[at] = new_tie[at] + share[other]
        _insert(best, missing, hope[at])
    without_last = value
    for place in range(missing - 1):
        without_last += best[place]
    kept = 0
    if without_last + best[missing - 1] > 0.0:
        for at in range(n_old):
            if without_last + hope[at] > 0.0:  # kept <= at: what is overwritten was read
                new[kept], new_tie[kept] = old[at], new_tie[at]
                kept += 1
    return kept


@kernel
def profitable_groups(
    terms: Terms, shares: Floats, hopes: tuple[Floats, Floats], charges: Charges,
    twins: Integers, size: int, grid: float, first: int, last: int, most: int,
) -> tuple[Integers, bool]:  # fmt: skip
    """All groups of `size` records with a positive value and their root pair in first..last-1.

    `twins[j]` is the record identical to j that comes just before it, or -1: of identical records
    a group takes the first ones. The search gives up after `most` sets. Returns one group a row,
    and whether the search came to its end.

    The root pair of a set is the pair that is left when it is peeled, lowest tie first; i is its
    lower record, so every set belongs to one i. For each i, the records that may be in a set with
    it are copied side by side (*local* numbers, i is 0) and searched depth first. On the stack,
    level m has the set member[:m], its value, the ties of its members, and the candidates that may
    still join it, with their ties to the set.
    """
    X, weights, _, _ = terms
    n_columns, n = X.shape
    starts, partners, amounts = charges
    spare = (size - 2) * weights.min()
    found = np.empty((64, size), dtype=np.int64)
    n_found, n_sets = 0, 0

    everyone, row = np.arange(n), np.empty(n)
    place_of = np.full(n, -1, dtype=np.int64)  # local number of each record, -1 if it has none
    capacity, n_slots = 0, 0  # arrays below are allocated when an i needs longer ones
    local = slot_of = owner = np.empty(0, dtype=np.int64)
    coordinates = cached = np.empty((n_columns, 0))
    candidate = np.empty((size, 0), dtype=np.int64)
    candidate_tie, hope = np.empty((size, 0)), np.empty(0)
    share = np.empty((size, 0))

    n_candidates = np.zeros(size, dtype=np.int64)
    cursor = np.zeros(size, dtype=np.int64)  # the next candidate of each level
    member = np.zeros(size, dtype=np.int64)
    tie, value = np.zeros((size, size)), np.zeros(size)
    best = np.empty(size)

    for i in range(first, last):
        if twins[i] >= 0 or hopes[0][i] <= 0.0:
            continue
        _row(terms, X, everyone, n, grid, i, row)
        for at in range(starts[i], starts[i + 1]):
            j = partners[at]
            row[j] = _charged(row[j], amounts[at], i, j, weights, spare, grid)
        count = _partners(shares, hopes, size, i, row, place_of)
        if count < size:
            continue
        if count > capacity:
            capacity = 2 * count
            n_slots = max(size + 1, min(MOST_SLOTS, MOST_CACHED // capacity))
            local, slot_of = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            owner = np.empty(n_slots, np.int64)
            coordinates, cached = np.empty((n_columns, capacity)), np.empty((n_slots, capacity))
            candidate = np.empty((size, capacity), np.int64)
            candidate_tie, share = np.empty((size, capacity)), np.empty((size, capacity))
            hope = np.empty(capacity)
        for j in range(n):
            if place_of[j] >= 0:
                local[place_of[j]] = j
                for column in range(n_columns):
                    coordinates[column, place_of[j]] = X[column, j]
                for r in range(size):
                    share[r, place_of[j]] = shares[r, j]
        # Rows of p are kept in slots: `slot_of` a record, `owner` of a slot. Slot 0 is i's own for
        # good; the others are taken in turn, the oldest first.
        slot_of[:count] = -1
        owner[:] = -1
        slot_of[0], owner[0], next_slot = 0, 0, 1
        for other in range(count):
            cached[0, other] = row[local[other]]

        member[0], value[1], tie[1, 0] = 0, 0.0, 0.0
        n_candidates[1] = count - 1
        for other in range(1, count):
            candidate[1, other - 1] = other
            candidate_tie[1, other - 1] = cached[0, other]
        for root in range(1, count):
            j = local[root]
            if j < i or cached[0, root] <= 0.0 or (twins[j] >= 0 and twins[j] != i):
                continue
            if size == 2:
                found = found if n_found < found.shape[0] else doubled(found)
                found[n_found, 0], found[n_found, 1] = i, j
                n_found += 1
                continue
            level, newest, newest_tie = 1, root, cached[0, root]
            while level > 1 or newest >= 0:
                if newest >= 0:  # one level down: the newest record joins the set
                    n_sets += 1
                    if n_sets > most:
                        return found[:n_found], False
                    slot = slot_of[newest]
                    if slot < 0:
                        a, slot = local[newest], next_slot
                        next_slot = next_slot + 1 if next_slot + 1 < n_slots else 1
                        if owner[slot] >= 0:
                            slot_of[owner[slot]] = -1
                        owner[slot], slot_of[newest] = newest, slot
                        line = cached[slot]
                        _row(terms, coordinates, local, count, grid, a, line)
                        line[newest] = NOTHING
                        for at in range(starts[a], starts[a + 1]):
                            place = place_of[partners[at]]
                            if place >= 0:
                                line[place] = _charged(
                                    line[place], amounts[at], a, partners[at], weights, spare, grid
                                )
                    line = cached[slot]
                    for m in range(level):
                        tie[level + 1, m] = tie[level, m] + line[member[m]]
                    tie[level + 1, level] = newest_tie
                    value[level + 1] = value[level] + newest_tie
                    member[level] = newest
                    level += 1
                    n_candidates[level] = _keep_candidates(
                        line, share[size - level], value[level],
                        (candidate[level - 1], candidate_tie[level - 1], n_candidates[level - 1]),
                        (candidate[level], candidate_tie[level]), hope, best[: size - level],
                    )  # fmt: skip
                    cursor[level] = 0
                # The next candidate that makes a child of this set: positive value, after its twin,
                # and of the lowest tie, or the set has another parent and is met there.
                newest = -1
                while cursor[level] < n_candidates[level] and newest < 0:
                    other = candidate[level, cursor[level]]
                    newest_tie = candidate_tie[level, cursor[level]]
                    cursor[level] += 1
                    if value[level] + newest_tie <= 0.0:
                        continue
                    twin = twins[local[other]]
                    fits = twin < 0
                    for m in range(level):
                        fits = fits or local[member[m]] == twin
                    if fits and _lowest_tie(
                        terms, charges, local, cached, slot_of, member, tie[level], level,
                        other, newest_tie, spare, grid,
                    ):  # fmt: skip
                        newest = other
                if newest < 0:
                    level -= 1
                elif level + 1 == size:  # a group: no deeper, the next candidate is its sibling
                    found = found if n_found < found.shape[0] else doubled(found)
                    for m in range(level):
                        found[n_found, m] = local[member[m]]
                    found[n_found, level] = local[newest]
                    n_found += 1
                    n_sets += 1
                    newest = -1
    return found[:n_found], True
