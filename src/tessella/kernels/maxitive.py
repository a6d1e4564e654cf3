"""Choquet integrals of measures that are maxima over small sets.

Sets of up to k columns are the lines of `sets` (S x k; a smaller set repeats its last column),
`values` has the number of each; the measure of any set is the largest value of a set within it.
With the squares of a pair in rising order, every set leaves with its lowest column: one pass over
the sets puts its value there, one pass from the top gives the measures of all upper sets.
"""

import numpy as np

from .._types import Bytes, Floats, Integers, Truths
from . import kernel
from .linkage import SLACK, TINY, sort_squares


@kernel
def _sort(x: Floats, y: Floats, rising: Floats, order: Integers, rank: Integers) -> None:
    """The squares of the differences of two records in rising order, and each column's rank."""
    sort_squares(x, y, rising, order)
    for place in range(x.shape[0]):
        rank[order[place]] = place


@kernel
def _lowest(sets: Integers, one: int, rank: Integers) -> int:
    """The rank of a set's lowest column, with which the set leaves."""
    low = rank[sets[one, 0]]
    for member in range(1, sets.shape[1]):
        low = min(low, rank[sets[one, member]])
    return int(low)


@kernel
def _measures(sets: Integers, values: Floats, rank: Integers, out: Floats) -> None:
    """The measure of the columns from each rank on."""
    d = rank.shape[0]
    for place in range(d):
        out[place] = 0.0
    for one in range(sets.shape[0]):
        low = _lowest(sets, one, rank)
        out[low] = max(out[low], values[one])
    for place in range(d - 2, -1, -1):
        out[place] = max(out[place], out[place + 1])


@kernel
def _integral(rising: Floats, measures: Floats) -> float:
    total, before = 0.0, 0.0
    for place in range(rising.shape[0]):
        total += (rising[place] - before) * measures[place]
        before = rising[place]
    return total


@kernel
def upper_measures(sets: Integers, values: Floats, orders: Integers) -> Floats:
    """The measure of orders[i, r:] for every rank r, in each of some orders of the columns."""
    n, d = orders.shape
    out, rank = np.empty((n, d)), np.empty(d, dtype=np.int64)
    for at in range(n):
        for place in range(d):
            rank[orders[at, place]] = place
        _measures(sets, values, rank, out[at])
    return out


@kernel
def margins(
    sets: Integers, values: Floats, A: Floats, B: Floats, truth: Integers, records: Integers,
    starts: Integers, which: Integers,
) -> Floats:  # fmt: skip
    """How much farther each competitor is than the own original, beyond what counts as a tie."""
    d = A.shape[1]
    rising, measures = np.empty(d), np.empty(d)
    order, rank = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    out = np.empty(which.shape[0])
    for at in range(records.shape[0]):
        x = A[records[at]]
        _sort(x, B[truth[records[at]]], rising, order, rank)
        _measures(sets, values, rank, measures)
        reach = _integral(rising, measures) * (1 + SLACK) + TINY
        for row in range(starts[at], starts[at + 1]):
            _sort(x, B[which[row]], rising, order, rank)
            _measures(sets, values, rank, measures)
            out[row] = _integral(rising, measures) - reach
    return out


@kernel
def _at_values(
    rising: Floats, measures: Floats, low: int, tries: Floats, alive: Truths, out: Floats
) -> None:
    """The integral for each value tried of a set whose lowest column has the rank `low`."""
    sure, before = 0.0, 0.0
    for place in range(rising.shape[0]):
        if place > low:
            sure += (rising[place] - before) * measures[place]
        before = rising[place]
    for one in range(tries.shape[0]):
        if alive[one]:
            total, before = sure, 0.0
            for place in range(low + 1):
                total += (rising[place] - before) * max(measures[place], tries[one])
                before = rising[place]
            out[one] = total


@kernel
def sorted_pairs(
    sets: Integers, A: Floats, B: Floats, ones: Integers, others: Integers
) -> tuple[Floats, Bytes]:
    """The squares of pairs of records in rising order, and the rank at which each set leaves."""
    n, d = ones.shape[0], A.shape[1]
    rising, lows = np.empty((n, d)), np.empty((n, sets.shape[0]), dtype=np.uint8)
    order, rank = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    for at in range(n):
        _sort(A[ones[at]], B[others[at]], rising[at], order, rank)
        for one in range(sets.shape[0]):
            lows[at, one] = _lowest(sets, one, rank)
    return rising, lows


@kernel
def _measures_at(lows: Bytes, values: Floats, without: int, out: Floats) -> None:
    """As `_measures`, with the rank of every set known, leaving out one of the sets."""
    d = out.shape[0]
    for place in range(d):
        out[place] = 0.0
    for one in range(values.shape[0]):
        if one != without and values[one] > out[lows[one]]:
            out[lows[one]] = values[one]
    for place in range(d - 2, -1, -1):
        out[place] = max(out[place], out[place + 1])


@kernel
def links_along(
    own: tuple[Floats, Bytes], theirs: tuple[Floats, Bytes], starts: Integers, values: Floats,
    place: int, tries: Floats,
) -> Integers:  # fmt: skip
    """For each value tried of the set at `place`, how many records are linked strictly.

    `own` and `theirs` are `sorted_pairs` of records with their own originals and, from start to
    start, with competitors.
    """
    d, n_tries = own[0].shape[1], tries.shape[0]
    measures = np.empty(d)
    counts, alive = np.zeros(n_tries, dtype=np.int64), np.empty(n_tries, dtype=np.bool_)
    reach, far = np.empty(n_tries), np.empty(n_tries)
    for at in range(own[0].shape[0]):
        left = n_tries
        alive[:] = True
        _measures_at(own[1][at], values, place, measures)
        _at_values(own[0][at], measures, own[1][at, place], tries, alive, reach)
        for row in range(starts[at], starts[at + 1]):
            _measures_at(theirs[1][row], values, place, measures)
            _at_values(theirs[0][row], measures, theirs[1][row, place], tries, alive, far)
            for one in range(n_tries):
                if alive[one] and not far[one] > reach[one] * (1 + SLACK) + TINY:
                    alive[one] = False
                    left -= 1
            if left == 0:
                break
        for one in range(n_tries):
            counts[one] += alive[one]
    return counts


@kernel
def integrals(sets: Integers, values: Floats, differences: Floats) -> Floats:
    """The integral of the squares of each row."""
    n, d = differences.shape
    rising, measures, zeros = np.empty(d), np.empty(d), np.zeros(d)
    order, rank = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    out = np.empty(n)
    for at in range(n):
        _sort(differences[at], zeros, rising, order, rank)
        _measures(sets, values, rank, measures)
        out[at] = _integral(rising, measures)
    return out


@kernel
def taken(sets: Integers, values: Floats, differences: Floats) -> Floats:
    """How much of each set the integral of each row takes; of equal ones, the first."""
    n, d = differences.shape
    rising, zeros = np.empty(d), np.zeros(d)
    order, rank = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    chosen = np.empty(d, dtype=np.int64)
    out = np.zeros((n, sets.shape[0]))
    for at in range(n):
        _sort(differences[at], zeros, rising, order, rank)
        chosen[:] = -1
        for one in range(sets.shape[0]):
            low = _lowest(sets, one, rank)
            if chosen[low] < 0 or values[one] > values[chosen[low]]:
                chosen[low] = one
        for place in range(d - 1, -1, -1):
            if place < d - 1 and values[chosen[place + 1]] >= values[chosen[place]]:
                chosen[place] = chosen[place + 1]
            below = rising[place - 1] if place > 0 else 0.0
            out[at, chosen[place]] += rising[place] - below
    return out


@kernel
def count_maxitive(
    sets: Integers, values: Floats, A: Floats, B: Floats, truth: Integers, cap: int,
    records: Integers,
) -> tuple[Integers, Integers]:  # fmt: skip
    """The same counts as `linkage.count_by_scan`."""
    n, d = B.shape
    nearer = np.zeros(records.shape[0], dtype=np.int64)
    tied = np.zeros(records.shape[0], dtype=np.int64)
    rising, measures = np.empty(d), np.empty(d)
    order, rank = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    for at in range(records.shape[0]):
        x = A[records[at]]
        own = truth[records[at]]
        _sort(x, B[own], rising, order, rank)
        _measures(sets, values, rank, measures)
        radius = _integral(rising, measures)
        below, reach = radius * (1 - SLACK) - TINY, radius * (1 + SLACK) + TINY
        for step in range(n):
            if nearer[at] >= cap:
                break
            j = own + step
            if j >= n:
                j -= n
            _sort(x, B[j], rising, order, rank)
            # The measure of all columns is 1: no integral is below the smallest square.
            if rising[0] > reach:
                continue
            _measures(sets, values, rank, measures)
            distance = _integral(rising, measures)
            if distance <= reach:
                if distance < below:
                    nearer[at] += 1
                else:
                    tied[at] += 1
    return nearer, tied
