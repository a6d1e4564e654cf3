"""Groups of rows: equal rows, groups of a labelling, first centres, and rows that are alone.

Minimal sample uniques are the smallest sets of columns that single a row out. Sets of columns are
bit masks, visited in increasing order, depth first: a set comes after all its subsets, and its
partition is that of the set without the lowest bit, refined by one column. Rows that are alone in
their part leave it, since no larger set is minimal for them.
"""

from typing import Any

import numpy as np

from .._types import Floats, Integers, Truths
from . import kernel

# 2^64 over the golden ratio (Knuth, The Art of Computer Programming 3, 6.4): spreads bits.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def doubled(array: Any) -> Any:
    """Return an array with room for as many more."""
    return np.concatenate((array, np.empty_like(array)))


@kernel
def renumber(labels: Integers, n_labels: int) -> Integers:
    """Number groups 0, 1, ... in the order in which the records first meet them."""
    new = np.full(n_labels, -1, dtype=np.int64)
    out = np.empty(labels.shape[0], dtype=np.int64)
    count = 0
    for i in range(labels.shape[0]):
        if new[labels[i]] < 0:
            new[labels[i]] = count
            count += 1
        out[i] = new[labels[i]]
    return out


@kernel
def members_of(labels: Integers, n_groups: int) -> tuple[Integers, Integers]:
    """Rows sorted by group, ascending within a group, and where each group begins (and ends)."""
    begins = np.zeros(n_groups + 1, dtype=np.int64)
    for i in range(labels.shape[0]):
        begins[labels[i] + 1] += 1
    for g in range(n_groups):
        begins[g + 1] += begins[g]
    rows, filled = np.empty(labels.shape[0], dtype=np.int64), begins.copy()
    for i in range(labels.shape[0]):
        rows[filled[labels[i]]] = i
        filled[labels[i]] += 1
    return rows, begins


@kernel
def insert(values: Floats, places: Any, held: int, value: float, place: int) -> int:
    """Put a value into an ascending list, the last of equals; return how many it holds.

    `places` go along with the values. Where the list is full, its last value goes.
    """
    at = min(held, len(values) - 1)
    while at > 0 and values[at - 1] > value:
        values[at], places[at] = values[at - 1], places[at - 1]
        at -= 1
    values[at], places[at] = value, place
    return min(held + 1, len(values))


@kernel
def kth_smallest(values: Floats, k: int) -> float:
    """Return the value with k smaller or equal ones before it; the values change their order.

    Quickselect (Hoare 1961), O(n) on average. NumPy's partition takes numba ten times as long to
    compile.
    """
    first, last = 0, len(values) - 1
    while first < last:
        pivot = values[(first + last) // 2]
        low, high = first, last
        while low <= high:
            while values[low] < pivot:
                low += 1
            while values[high] > pivot:
                high -= 1
            if low <= high:
                values[low], values[high] = values[high], values[low]
                low += 1
                high -= 1
        # Here values[first..high] <= pivot <= values[low..last], and between lies the pivot alone.
        if k <= high:
            last = high
        elif k >= low:
            first = low
        else:
            break
    return float(values[k])


@kernel
def weighted_centres(X: Floats, weights: Floats, labels: Integers, n_groups: int) -> Floats:
    """Weighted mean of each group, shape (n_groups, d).

    The sum runs over differences from the group's first record: a group of equal records has
    exactly that record as its centre, and a large offset costs no digits.
    """
    n, d = X.shape
    first = np.full(n_groups, -1, dtype=np.int64)
    total = np.zeros(n_groups)
    centres = np.zeros((n_groups, d))
    for i in range(n):
        g = labels[i]
        if first[g] < 0:
            first[g] = i
        total[g] += weights[i]
        for j in range(d):
            centres[g, j] += weights[i] * (X[i, j] - X[first[g], j])
    for g in range(n_groups):
        for j in range(d):
            centres[g, j] = X[first[g], j] + centres[g, j] / total[g]
    return centres


@kernel
def squared_distance(X: Floats, i: Any, centre: Floats, g: int) -> Any:
    """Squared distance from record i to the centre of group g."""
    total = 0.0
    for q in range(X.shape[1]):
        difference = X[i, q] - centre[g, q]
        total += difference * difference
    return total


@kernel
def distance_between(X: Floats, a: int, b: int) -> float:
    """Euclidean distance of two records of a table."""
    return float(np.sqrt(squared_distance(X, a, X, b)))


@kernel
def squared_error(X: Floats, weights: Floats, labels: Integers, centres: Floats) -> float:
    """Sum over records of weight times squared distance to the record's centre."""
    total = 0.0
    for i in range(X.shape[0]):
        total += weights[i] * squared_distance(X, i, centres, labels[i])
    return total


@kernel
def medians_of_runs(values: Floats, weights: Floats, starts: Integers) -> Floats:
    """Weighted median of each run `starts[g]:starts[g + 1]`, whose values are in order.

    Where half of the weight is reached exactly, the mean of that value and the next.
    """
    n_runs = starts.shape[0] - 1
    medians = np.empty(n_runs)
    for g in range(n_runs):
        first, end = starts[g], starts[g + 1]
        total = 0.0
        for i in range(first, end):
            total += weights[i]
        # Equal weights such as 0.1 add up to half of their total only to rounding.
        slack = 1e-12 * total
        reached, i = weights[first], first
        while reached < total / 2 - slack and i + 1 < end:
            i += 1
            reached += weights[i]
        medians[g] = values[i]
        if reached <= total / 2 + slack and i + 1 < end:
            medians[g] = (values[i] + values[i + 1]) / 2
    return medians


@kernel
def number_equal(X: Floats) -> tuple[Integers, Integers]:
    """Number distinct rows in the order in which they are met; return also where each was met.

    A hash table with linear probing, at most half full. A hash that collides costs a comparison;
    rows are equal only if all their values are. -0.0 and 0.0 have different hashes and may stay
    apart: callers lose time by that, nothing else.
    """
    n, d = X.shape
    size = 4
    while size < 2 * n:
        size *= 2
    table, n_distinct = np.full(size, -1), 0
    number, seen_at = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    bits = X.view(np.uint64)
    for row in range(n):
        code = np.uint64(0)
        for j in range(d):
            code = (code ^ bits[row, j]) * GOLDEN
            code ^= code >> np.uint64(32)
        slot = np.int64(code & np.uint64(size - 1))
        while table[slot] >= 0:
            other, same = seen_at[table[slot]], 0
            while same < d and X[other, same] == X[row, same]:
                same += 1
            if same == d:
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot], seen_at[n_distinct] = n_distinct, row
            n_distinct += 1
        number[row] = table[slot]
    return number, seen_at[:n_distinct].copy()


@kernel
def spread_out(X: Floats, weights: Floats, chances: Floats) -> Integers:
    """Choose records as centres; `chances` of shape (c, tries) are uniform in [0, 1).

    The next centre is drawn with probability proportional to weight * squared distance to the
    nearest centre so far; of several tries the one is taken that leaves the least sum of these.
    In O(n c tries d).
    """
    n = X.shape[0]
    c, tries = chances.shape
    chosen = np.empty(c, dtype=np.int64)
    squares, trial, best = weights.copy(), np.empty(n), np.empty(n)
    cumulated = np.empty(n)
    for step in range(c):
        total = 0.0
        for i in range(n):
            total += squares[i]
            cumulated[i] = total
        least = np.inf
        for attempt in range(tries):
            row = min(np.searchsorted(cumulated, chances[step, attempt] * total, "right"), n - 1)
            while row > 0 and squares[row] == 0.0:  # rounding at the upper end
                row -= 1
            left = 0.0
            for i in range(n):
                square = squared_distance(X, i, X, row) * weights[i]
                trial[i] = square if step == 0 else min(square, squares[i])
                left += trial[i]
            if left < least:
                least = left
                chosen[step] = row
                best, trial = trial, best
            if step == 0:
                break
        squares, best = best, squares
    return chosen


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
                        owner, found, before = doubled(owner), doubled(found), doubled(before)
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


@kernel
def cut_runs(values: Floats, previous: Integers, k: int) -> tuple[Integers, Integers]:
    """Cut ascending numbers into runs of at least k distinct units; equal ones share a run.

    `previous` has the place of the record before each one that is of the same unit, or -1: a record
    brings a new unit to a run that began after that place. A number that k units have is *common*
    and ends a run before it and after it; fewer units that are left over between two runs join the
    one before them. Returns the run of each record, and for each common number the places where
    its records begin and end.
    """
    n = len(values)
    borders, common = np.empty(n + 1, dtype=np.int64), np.empty((n, 2), dtype=np.int64)
    borders[0] = 0
    runs, commons, units, at = 0, 0, 0, 0  # the last border is where the present run begins
    while at < n:
        end, own = at, 0
        while end < n and values[end] == values[at]:
            own += previous[end] < at
            units += previous[end] < borders[runs]
            end += 1
        if own >= k:
            if runs > 0:  # those left over, if any, are too few: a run would have ended
                borders[runs] = at
            common[commons, 0], common[commons, 1] = at, end
            commons += 1
        if units >= k:
            runs += 1
            borders[runs], units = end, 0
        at = end
    if borders[runs] < n and runs > 0:  # the last run takes what is left over
        borders[runs] = n
    ids = np.zeros(n, dtype=np.int64)
    for run in range(1, runs):
        ids[borders[run] : borders[run + 1]] = run
    return ids, common[:commons]
