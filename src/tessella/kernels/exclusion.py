"""How many undecided records of a cell one point can link, bounded from above.

A record's *region* are the points λ (weights of the k corners) of a cell at which all its rows are
positive; a row is its values a_v at the corners, its product with λ is Σ_v λ_v a_v. The most
regions that share a point are bounded in two steps.

*Cliques*. Two rows of which some convex combination is positive at no corner are positive together
nowhere in the cell, so their records exclude each other. Records of which every two do (a clique)
give at most one link. A partition into cliques stays one in every part of the cell, so children
inherit it, and only ever merge.

*Majorants*. For any y >= 0 on the rows of a record the linear function with the values

    h_v = max(0, 1 + Σ_r y_r a_rv)      at the corners

is at least 1 on the region, where every row is positive, and at least 0 elsewhere; with the largest
h_v of its members at each corner, the same holds for the union of a clique. So the links at λ are
at most Σ_v λ_v H_v with H the sum over cliques, and the links in the cell at most max_v H_v.
y = 0 gives the number of cliques; the best y gives the linear relaxation of the union of polyhedra
(Balas 1998), computed here as a game: points λ against y. Any y will do, so nothing
has to be solved exactly: a few rounds came within 3 % of the linear programme's optimum (without
cliques, two cells of Census).

Only `exclude` and `raise_majorant` have to be right to the last bit: `GAP` keeps the first away
from rounding, `STEEPEST` and `ROUNDING` the second.

References
----------
E. Balas (1998) Disjunctive programming: properties of the convex hull of feasible points. Discrete
Applied Mathematics 89, 3-44.

Y. Freund and R. E. Schapire (1999) Adaptive game playing using multiplicative weights. Games and
Economic Behavior 29, 79-103.
"""

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .groups import insert

GAP = 1e-13  # of the share of one row in a combination of two
WORD = 62  # records in a word of a set; the signs of int64 stay out of it
# With 32 and 800 in place of the next two (and smaller batches of cells), a tenth more records were
# left open after the same time (1,000 and 4,000 x 6).
ENOUGH = 64  # records that exclude a record: more are not looked for
ROWS = 1_500  # that are compared, but one of each record at least
TESTS = 1_000_000  # pairs of rows after which no more kinds of them are compared
# Cliques above which majorants join. Used in all cells, they left up to 0.9 % more of the records
# open at up to 2,000 records, and between 0.2 % more and 3 % less at 4,000, than cliques alone.
CROWDED = 1_000
ROUNDS = 6  # of the game
MIXES = 40  # steps that weigh its rounds against each other
RATE = 3.0  # of the steps of λ
STEEPEST = 1e4  # of a majorant's values: rounding, 1e-16 of it for each record, stays far below
ROUNDING = 1e-6  # what is added to a sum of majorants
NEAR = 0.005  # of the bound: rounds that would improve less are left out
FRONT = 4  # rows of a record that its majorants are made of
STEPS = 2  # rows that make up a majorant


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
def _bits(word: int) -> int:
    """Count the bits, by halves, fours and bytes."""
    word -= (word >> 1) & 0x5555555555555555
    word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F
    word += word >> 8
    word += word >> 16
    return (word + (word >> 32)) & 0x7F


@kernel
def _note(excludes: Integers, degree: Integers, a: int, b: int) -> None:
    """Record that a and b exclude each other."""
    excludes[a, b // WORD] |= 1 << (b % WORD)
    excludes[b, a // WORD] |= 1 << (a % WORD)
    degree[a] += 1
    degree[b] += 1


@kernel
def _narrowest(values: Floats, starts: Integers, left: int, some: int) -> tuple[Integers, Integers]:
    """Return up to `some` rows of each record, with their owners: the least positive ones.

    By the share of what is above zero in the values at the corners. In two cells
    of 1,000 records of Census one row of each found three quarters of the exclusions that all rows
    found, in an eighth of the time; cliques were 4 % more and 0.2 % more.
    """
    k = values.shape[1]
    rows, owner = np.empty(starts[left], np.int64), np.empty(starts[left], np.int64)
    shares, places = np.empty(some), np.empty(some, dtype=np.int64)
    count = 0
    for at in range(left):
        held = 0
        for row in range(starts[at], starts[at + 1]):
            above, size = 0.0, 0.0
            for v in range(k):
                above += max(values[row, v], 0.0)
                size += abs(values[row, v])
            if held < some or above / size < shares[held - 1]:
                held = insert(shares, places, held, above / size, row)
        for place in range(held):
            rows[count], owner[count] = places[place], at
            count += 1
    return rows[:count], owner[:count]


@kernel
def _conflicts(
    values: Floats, masks: Integers, starts: Integers, left: int, groups: Integers
) -> tuple[Integers, Integers]:
    """Return which records exclude each other, as sets of bits, and how many each excludes."""
    k = values.shape[1]
    excludes = np.zeros((left, (left + WORD - 1) // WORD), dtype=np.int64)
    degree = np.zeros(left, dtype=np.int64)
    by_group = np.argsort(groups[:left])
    for place in range(left):  # those of a clique do
        a = by_group[place]
        for before in range(place - 1, -1, -1):
            b = by_group[before]
            if groups[a] != groups[b]:
                break
            _note(excludes, degree, a, b)
    # Only rows that are positive together at no corner can exclude each other: rows by mask, those
    # that are positive at few corners first.
    some, owner = _narrowest(values, starts, left, max(1, ROWS // left))
    rows = some.shape[0]
    keys = np.empty(rows, dtype=np.int64)
    for place in range(rows):
        mask = masks[some[place]]
        keys[place] = (_bits(mask) << k) | mask
    order = np.argsort(keys)
    compared = np.empty((rows, k))  # in the order of comparison, for the cache
    owners = owner[order]
    ends = np.empty(rows + 1, dtype=np.int64)
    kinds = 0
    for place in range(rows):
        compared[place] = values[some[order[place]]]
        if place == 0 or keys[order[place]] != keys[order[place - 1]]:
            ends[kinds] = place
            kinds += 1
    ends[kinds] = rows
    full, tests = (1 << k) - 1, 0
    for one in range(kinds):
        mask = keys[order[ends[one]]] & full
        for two in range(one):
            if mask & keys[order[ends[two]]]:
                continue
            for r in range(ends[one], ends[one + 1]):
                if tests > TESTS:
                    return excludes, degree
                a = owners[r]
                for s in range(ends[two], ends[two + 1]):
                    b = owners[s]
                    tests += 1
                    if degree[a] >= ENOUGH and degree[b] >= ENOUGH:
                        continue
                    if a == b or (excludes[a, b // WORD] >> (b % WORD)) & 1:
                        continue
                    if exclude(compared, r, s):
                        _note(excludes, degree, a, b)
    return excludes, degree


@kernel
def _cover(excludes: Integers, degree: Integers, labels: Integers) -> int:
    """Partition the records into cliques, greedily; those that exclude fewest come first."""
    left, words = excludes.shape
    open_ = np.zeros(words, dtype=np.int64)
    for a in range(left):
        open_[a // WORD] |= 1 << (a % WORD)
    common = np.empty(words, dtype=np.int64)
    count = 0
    for a in np.argsort(degree):
        if not (open_[a // WORD] >> (a % WORD)) & 1:
            continue
        labels[a] = count
        open_[a // WORD] &= ~(1 << (a % WORD))
        for word in range(words):
            common[word] = excludes[a, word] & open_[word]
        while True:
            # The next of the clique is the one that leaves most others in it.
            best, best_common = -1, -1
            for word in range(words):
                rest = common[word]
                while rest:
                    low = rest & -rest
                    b = word * WORD + _bits(low - 1)
                    rest ^= low
                    shared = 0
                    for other in range(words):
                        if common[other]:
                            shared += _bits(excludes[b, other] & common[other])
                    if shared > best_common:
                        best, best_common = b, shared
            if best < 0:
                break
            labels[best] = count
            open_[best // WORD] &= ~(1 << (best % WORD))
            for word in range(words):
                common[word] &= excludes[best, word]
        count += 1
    return count


@kernel
def raise_majorant(
    values: Floats, first: int, last: int, point: Floats, height: Floats, over: Floats
) -> None:
    """Raise `height`, the majorant of a clique so far, to one of the record with some rows too.

    Its values are 1 + Σ_r y_r a_rv with y >= 0 such that the clique's majorant is low at `point`:
    Σ_v point_v max(height_v, 1 + Σ_r y_r a_rv) falls along one row after the other, each time the
    one along which it falls lowest. Along a row it is convex and piecewise linear, with a break
    where a corner's value passes `height`; its least is at the break where the slope turns.
    `over` (k) is scratch: how far the record's values lie above the heights.
    """
    k = values.shape[1]
    level = 0.0
    for v in range(k):
        over[v] = 1.0 - height[v]
        level += point[v] * max(over[v], 0.0)
    for _ in range(STEPS):
        best, best_step, lowest = -1, 0.0, level - 1e-9
        for r in range(first, last):
            slope, steepest = 0.0, 0.0
            for v in range(k):
                a = values[r, v]
                steepest = max(steepest, abs(a))
                if over[v] > 0.0 or (over[v] == 0.0 and a > 0.0):
                    slope += point[v] * a
            if slope >= 0.0:
                continue
            step, passed = 0.0, 0
            while slope < 0.0:
                near, corner = STEEPEST / steepest, -1
                for v in range(k):
                    if over[v] * values[r, v] >= 0.0 or (passed >> v) & 1:
                        continue
                    if -over[v] / values[r, v] < near:
                        near, corner = -over[v] / values[r, v], v
                if corner < 0:
                    break
                passed |= 1 << corner
                step = near
                slope += point[corner] * abs(values[r, corner])
            total = 0.0
            for v in range(k):
                total += point[v] * max(over[v] + step * values[r, v], 0.0)
            if total < lowest:
                best, best_step, lowest = r, step, total
        if best < 0:
            break
        level = lowest
        for v in range(k):
            over[v] += best_step * values[best, v]
    for v in range(k):
        height[v] += max(over[v], 0.0)


@kernel
def _step(weights: Floats, gains: Floats, rate: float) -> None:
    """Multiply weights by the exponential of their gains; they keep the sum 1."""
    top, total = gains.max(), 0.0
    for v in range(weights.shape[0]):
        weights[v] *= np.exp(rate * (gains[v] - top))
        total += weights[v]
    for v in range(weights.shape[0]):
        weights[v] /= total


@kernel
def _least_mix(sums: Floats, rounds: int) -> float:
    """Bound the links by a mean of the rounds' majorants: any weights hold, some are near best."""
    k = sums.shape[1]
    weights, point = np.full(rounds, 1.0 / rounds), np.full(k, 1.0 / k)
    corner, gains = np.zeros(k), np.zeros(rounds)
    least = np.inf
    for _ in range(MIXES):
        for v in range(k):
            corner[v] = 0.0
            for t in range(rounds):
                corner[v] += weights[t] * sums[t, v]
        least = min(least, corner.max())
        _step(point, corner, 40.0 / least)
        for t in range(rounds):
            gains[t] = 0.0
            for v in range(k):
                gains[t] -= point[v] * sums[t, v]
        _step(weights, gains, 40.0 / least)
    return least


@kernel
def by_majorants(
    values: Floats, starts: Integers, left: int, groups: Integers, count: int, enough: int
) -> int:
    """Bound the links of `count` cliques by majorants, down to `enough` if possible."""
    k = values.shape[1]
    some, owner = _narrowest(values, starts, left, FRONT)
    rows = np.empty((some.shape[0], k))  # side by side, for the cache
    ends = np.zeros(left + 1, dtype=np.int64)
    for place in range(some.shape[0]):
        rows[place] = values[some[place]]
        ends[owner[place] + 1] = place + 1
    point, over = np.full(k, 1.0 / k), np.empty(k)
    heights, sums = np.empty((count, k)), np.zeros((ROUNDS, k))
    bound, reached = float(count), 0.0
    for t in range(ROUNDS):
        heights[:] = 0.0
        here = 0.0
        for at in range(left):
            raise_majorant(rows, ends[at], ends[at + 1], point, heights[groups[at]], over)
        for group in range(count):
            level = 0.0
            for v in range(k):
                level += point[v] * heights[group, v]
            here += min(level, 1.0)
            for v in range(k):  # the constant 1 is a majorant, too
                sums[t, v] += heights[group, v] if level < 1.0 else 1.0
        bound = min(bound, _least_mix(sums, t + 1))
        # No mean of majorants will be lower than the lowest one is at some point.
        reached = max(reached, here)
        if int(bound + ROUNDING) <= enough or bound - reached <= NEAR * bound:
            break
        _step(point, sums[t], RATE / bound)
    return int(bound + ROUNDING)


@kernel
def most_together(
    undecided: tuple[Floats, Integers, Integers, Integers, Integers], left: int, groups: Integers,
    enough: int,
) -> int:  # fmt: skip
    """Bound the undecided records that one point links.

    `groups` has the clique of each, and gets new ones, numbered from 0. What costs more is left out
    once the number is down to `enough`.
    """
    values, masks, _, _, starts = undecided
    count, last = 0, -1
    for at in np.argsort(groups[:left]):
        if count == 0 or groups[at] != last:
            last = groups[at]
            count += 1
        groups[at] = count - 1
    if count <= enough:
        return count
    excludes, degree = _conflicts(values, masks, starts, left, groups)
    labels = np.empty(left, dtype=np.int64)
    fewer = _cover(excludes, degree, labels)
    if fewer < count:  # a greedy cover may be larger than the one that was inherited
        count = fewer
        groups[:left] = labels
    if count <= max(enough, CROWDED):
        return count
    return by_majorants(values, starts, left, groups, count, enough)
