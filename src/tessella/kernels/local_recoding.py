"""Local recoding: groups of records that are released as their least common ancestors.

A key is a leaf, a place in depth-first order, so that a group's ancestor in a column follows from
its least and its largest leaf. The cost of a group is

    sum_j mass_j(g) penalty_j(ancestor of g)  +  sum_q (squares - sums^2 / weight),

keys first, then numbers, which get their mean. An *emptied* group has no keys: each costs its mass.
All moves lower the sum of costs, and none takes a group below k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers, SmallIntegers, Truths
from . import kernel

EQUAL = 1e-9  # a gain below is one of rounding


class Trees(NamedTuple):
    """The hierarchies of d keys, padded to one size."""

    table: SmallIntegers  # (d, levels, leaves): the node of each leaf on each level
    levels: Integers  # (d,)
    penalty: Floats  # (d, nodes)


class KeyRecords(NamedTuple):
    """The records: leaves (n, d), their mass (n, d), numbers (n, q), weights and units (n,)."""

    leaves: SmallIntegers
    mass: Floats
    numbers: Floats
    weights: Floats
    units: Integers  # empty where records are counted


# Of a group: its least and largest leaves, mass, sums of numbers and weights, sums of squares.
Sums = tuple[SmallIntegers, SmallIntegers, Floats, Floats, Floats]


class KeyGroups(NamedTuple):
    """A partition under change; members of a group are a list that is linked both ways."""

    label: Integers  # (n,)
    following: Integers  # (n,) the next member, or -1
    previous: Integers  # (n,)
    first: Integers  # (g,) or -1
    size: Integers  # (g,)
    whom: Integers  # (g,) distinct units
    low: SmallIntegers  # (g, d)
    high: SmallIntegers  # (g, d)
    mass: Floats  # (g, d)
    sums: Floats  # (g, q + 1): of numbers, and of weights
    squares: Floats  # (g, q)
    emptied: Truths  # (g,)
    cost: Floats  # (g,)


@kernel
def ancestor_penalty(trees: Trees, j: int, low: int, high: int) -> float:
    """Return the penalty of the least node that covers the leaves from low to high."""
    for level in range(trees.levels[j]):
        node = trees.table[j, level, low]
        if node == trees.table[j, level, high]:
            return float(trees.penalty[j, node])
    return 1.0


@kernel
def _cost(
    trees: Trees, low: SmallIntegers, high: SmallIntegers, mass: Floats, sums: Floats,
    squares: Floats, emptied: bool,
) -> float:  # fmt: skip
    total = 0.0
    for j in range(len(low)):
        if emptied:
            total += mass[j]
        elif mass[j] > 0.0:
            total += mass[j] * ancestor_penalty(trees, j, low[j], high[j])
    weight = sums[len(squares)]
    for q in range(len(squares)):
        if weight > 0.0:
            total += max(0.0, squares[q] - sums[q] * sums[q] / weight)
    return total


@kernel
def _add(
    records: KeyRecords, i: int, low: SmallIntegers, high: SmallIntegers, mass: Floats,
    sums: Floats, squares: Floats,
) -> None:  # fmt: skip
    """Let record i join what is summed."""
    for j in range(len(low)):
        leaf = records.leaves[i, j]
        low[j] = min(low[j], leaf)
        high[j] = max(high[j], leaf)
        mass[j] += records.mass[i, j]
    weight, q = records.weights[i], len(squares)
    for c in range(q):
        x = records.numbers[i, c]
        sums[c] += weight * x
        squares[c] += weight * x * x
    sums[q] += weight


@kernel
def _clear(
    low: SmallIntegers, high: SmallIntegers, mass: Floats, sums: Floats, squares: Floats
) -> None:
    low[:] = 2147483647
    high[:] = -1
    mass[:] = 0.0
    sums[:] = 0.0
    squares[:] = 0.0


@kernel
def _unit(records: KeyRecords, i: int) -> int:
    """Return the unit of a record; its own number where records are counted."""
    return int(records.units[i]) if len(records.units) else i


@kernel
def _shares_unit(records: KeyRecords, groups: KeyGroups, g: int, unit: int, but: int) -> bool:
    """Return whether a group has a member of a unit, other than one record."""
    if len(records.units) == 0:
        return False
    i = groups.first[g]
    while i >= 0:
        if i != but and _unit(records, i) == unit:
            return True
        i = groups.following[i]
    return False


@kernel
def _sum_up(trees: Trees, records: KeyRecords, groups: KeyGroups, g: int) -> None:
    """Compute what is kept of a group from its members."""
    low, high, mass = groups.low[g], groups.high[g], groups.mass[g]
    sums, squares = groups.sums[g], groups.squares[g]
    _clear(low, high, mass, sums, squares)
    i, size = groups.first[g], 0
    while i >= 0:
        _add(records, i, low, high, mass, sums, squares)
        size += 1
        i = groups.following[i]
    groups.size[g] = size
    groups.cost[g] = _cost(trees, low, high, mass, sums, squares, groups.emptied[g])


@kernel
def _unlink(groups: KeyGroups, i: int) -> None:
    g, before, after = groups.label[i], groups.previous[i], groups.following[i]
    if before >= 0:
        groups.following[before] = after
    else:
        groups.first[g] = after
    if after >= 0:
        groups.previous[after] = before


@kernel
def _link(groups: KeyGroups, i: int, g: int) -> None:
    head = groups.first[g]
    groups.following[i], groups.previous[i] = head, -1
    if head >= 0:
        groups.previous[head] = i
    groups.first[g] = i
    groups.label[i] = g


@kernel
def _exchange(
    trees: Trees, records: KeyRecords, groups: KeyGroups, g: int, out: int, joins: int, work: Sums
) -> float:
    """Return the cost of a group without one record and with another, -1 for none."""
    low, high, mass, sums, squares = work
    if out < 0:  # nothing has to be looked for again
        low[:], high[:], mass[:] = groups.low[g], groups.high[g], groups.mass[g]
        sums[:], squares[:] = groups.sums[g], groups.squares[g]
    else:
        _clear(low, high, mass, sums, squares)
        i = groups.first[g]
        while i >= 0:
            if i != out:
                _add(records, i, low, high, mass, sums, squares)
            i = groups.following[i]
    if joins >= 0:
        _add(records, joins, low, high, mass, sums, squares)
    return float(_cost(trees, low, high, mass, sums, squares, groups.emptied[g]))


@kernel
def link_groups(
    trees: Trees, records: KeyRecords, groups: KeyGroups, labels: Integers, n_groups: int
) -> None:
    """Fill in the groups from labels; records labelled -1 are in none."""
    groups.first[:] = -1
    groups.whom[:] = 0
    order = np.argsort(labels, kind="mergesort")
    for at in range(len(order) - 1, -1, -1):
        i = order[at]
        g = labels[i]
        groups.label[i] = g
        if g < 0:
            continue
        if not _shares_unit(records, groups, g, _unit(records, i), -1):
            groups.whom[g] += 1
        _link(groups, i, g)
    for g in range(n_groups):
        _sum_up(trees, records, groups, g)


@kernel
def improve_sweep(
    trees: Trees, records: KeyRecords, groups: KeyGroups, parts: Integers, order: Integers,
    reach: int, k: int, budget: Integers,
) -> float:  # fmt: skip
    """Move and swap records between the groups of neighbours in an order; return what is gained.

    `parts` are the parts that groups must not cross, `budget` (1,) how many further records may
    join emptied groups.
    """
    d, q = records.leaves.shape[1], records.numbers.shape[1]
    work = (
        np.empty(d, np.int32), np.empty(d, np.int32), np.empty(d), np.empty(q + 1), np.empty(q)
    )  # fmt: skip
    gained = 0.0
    n = len(order)
    for at in range(n):
        i = order[at]
        g = groups.label[i]
        if groups.cost[g] <= EQUAL:
            continue  # nothing to gain here; as a target it is looked at by others
        unit_i = _unit(records, i)
        alone_i = not _shares_unit(records, groups, g, unit_i, i)
        can_leave = groups.whom[g] - alone_i >= k
        without = _exchange(trees, records, groups, g, i, -1, work) if can_leave else 0.0
        best, target, partner = EQUAL, -1, -1
        for step in range(-reach, reach + 1):
            if step == 0 or at + step < 0 or at + step >= n:
                continue
            j = order[at + step]
            h = groups.label[j]
            if h == g or parts[j] != parts[i]:
                continue
            full = groups.emptied[h] and budget[0] <= 0
            if can_leave and not full:
                gain = groups.cost[g] - without
                if gain > best:  # before anything is added to h
                    gain += groups.cost[h] - _exchange(trees, records, groups, h, -1, i, work)
                    if gain > best:
                        best, target, partner = gain, h, -1
            if groups.emptied[g] != groups.emptied[h]:
                continue  # one more and one fewer: the two moves are tried alone
            unit_j = _unit(records, j)
            if unit_j != unit_i and (
                _shares_unit(records, groups, g, unit_j, i)
                or _shares_unit(records, groups, h, unit_i, j)
            ):
                # A swap could lower the number of units; it is rare enough to be left out.
                continue
            most = groups.cost[g] + groups.cost[h]
            if most <= best:
                continue
            gain = most - _exchange(trees, records, groups, g, i, j, work)
            if gain > best:
                gain -= _exchange(trees, records, groups, h, j, i, work)
                if gain > best:
                    best, target, partner = gain, h, j
        if target < 0:
            continue
        h = target
        _unlink(groups, i)
        if partner >= 0:
            _unlink(groups, partner)
            _recount(records, groups, g, unit_i, partner, -1)
            _recount(records, groups, h, _unit(records, partner), i, -1)
            _link(groups, partner, g)
        else:
            groups.whom[g] -= alone_i
            if not _shares_unit(records, groups, h, unit_i, -1):
                groups.whom[h] += 1
            budget[0] += groups.emptied[g]
            budget[0] -= groups.emptied[h]
        _link(groups, i, h)
        _sum_up(trees, records, groups, g)
        _sum_up(trees, records, groups, h)
        gained += best
    return gained


@kernel
def _recount(
    records: KeyRecords, groups: KeyGroups, g: int, left: int, joins: int, but: int
) -> None:
    """Count the units of a group that a record of one unit has left and another one joins."""
    if not _shares_unit(records, groups, g, left, but):
        groups.whom[g] -= 1
    if not _shares_unit(records, groups, g, _unit(records, joins), but):
        groups.whom[g] += 1


@kernel
def dissolve_sweep(
    trees: Trees, records: KeyRecords, groups: KeyGroups, parts: Integers, order: Integers,
    place: Integers, reach: int, most: int,
) -> float:  # fmt: skip
    """Give all members of a group to the groups of their neighbours, where that costs less.

    Groups of exactly k lose nobody to moves: this is how one of them ends. Those of more than
    `most` records are left alone.
    """
    d, q = records.leaves.shape[1], records.numbers.shape[1]
    work = (
        np.empty(d, np.int32), np.empty(d, np.int32), np.empty(d), np.empty(q + 1), np.empty(q)
    )  # fmt: skip
    gained = 0.0
    for g in range(len(groups.first)):
        size = groups.size[g]
        if size == 0 or size > most or groups.emptied[g] or groups.cost[g] <= EQUAL:
            continue
        members = np.empty(size, np.int64)
        i, at = groups.first[g], 0
        while i >= 0:
            members[at] = i
            at += 1
            i = groups.following[i]
        before, spent, moved = groups.cost[g], 0.0, 0
        for i in members:
            target, least = -1, before - EQUAL - spent
            for step in range(-reach, reach + 1):
                there = place[i] + step
                if step == 0 or there < 0 or there >= len(order):
                    continue
                j = order[there]
                h = groups.label[j]
                if h == g or parts[j] != parts[i] or groups.emptied[h]:
                    continue
                more = _exchange(trees, records, groups, h, -1, i, work) - groups.cost[h]
                if more < least:
                    target, least = h, more
            if target < 0:
                break
            _unlink(groups, i)
            if not _shares_unit(records, groups, target, _unit(records, i), -1):
                groups.whom[target] += 1
            _link(groups, i, target)
            _sum_up(trees, records, groups, target)
            spent += least
            moved += 1
        if moved == size:
            gained += before - spent
            groups.whom[g] = 0
            _sum_up(trees, records, groups, g)
            continue
        for i in members[:moved]:  # back again
            h = groups.label[i]
            _unlink(groups, i)
            if not _shares_unit(records, groups, h, _unit(records, i), -1):
                groups.whom[h] -= 1
            _link(groups, i, g)
            _sum_up(trees, records, groups, h)
        if moved:
            _sum_up(trees, records, groups, g)
    return gained


@kernel
def _count_whom(records: KeyRecords, rows: Integers) -> int:
    """Count the records, or the distinct units among them."""
    if len(records.units) == 0:
        return len(rows)
    units = np.sort(records.units[rows])
    count = 0
    for at in range(len(units)):
        if at == 0 or units[at] != units[at - 1]:
            count += 1
    return count


@kernel
def _parts_of_children(
    trees: Trees, records: KeyRecords, rows: Integers, j: int, low: int, high: int, k: int,
    ids: Integers,
) -> int:  # fmt: skip
    """Part rows by the children of their ancestor in a column; return how many parts there are.

    Children with k stand alone; the others form one part, or join the smallest that stands.
    """
    level = trees.levels[j] - 1
    while level >= 0 and trees.table[j, level, low] == trees.table[j, level, high]:
        level -= 1
    if level < 0:
        return 0
    m = len(rows)
    leaves = np.empty(m, np.int64)
    for at in range(m):
        leaves[at] = records.leaves[rows[at], j]
    by_leaf = np.argsort(leaves, kind="mergesort")
    stand, smallest, smallest_id, start = 0, m + 1, -1, 0
    for at in range(1, m + 1):
        node = trees.table[j, level, leaves[by_leaf[start]]]
        if at < m and trees.table[j, level, leaves[by_leaf[at]]] == node:
            continue
        child = by_leaf[start:at]
        own = -1
        if _count_whom(records, rows[child]) >= k:
            own = stand
            if at - start < smallest:
                smallest, smallest_id = at - start, stand
            stand += 1
        for row in child:
            ids[row] = own
        start = at
    if stand == 0:
        return 0
    rest = np.flatnonzero(ids[:m] < 0)
    if len(rest) == 0:
        return stand
    if _count_whom(records, rows[rest]) >= k:
        ids[rest] = stand
        return stand + 1
    ids[rest] = smallest_id
    return stand


@kernel
def _cost_of_parts(
    trees: Trees, records: KeyRecords, rows: Integers, ids: Integers, many: int
) -> float:
    d, q = records.leaves.shape[1], records.numbers.shape[1]
    low, high = np.full((many, d), 2147483647, np.int32), np.full((many, d), -1, np.int32)
    mass, sums, squares = np.zeros((many, d)), np.zeros((many, q + 1)), np.zeros((many, q))
    for at in range(len(rows)):
        p = ids[at]
        _add(records, rows[at], low[p], high[p], mass[p], sums[p], squares[p])
    total = 0.0
    for p in range(many):
        total += _cost(trees, low[p], high[p], mass[p], sums[p], squares[p], False)
    return total


@kernel
def split_down(
    trees: Trees, records: KeyRecords, rows: Integers, ends: Integers, k: int, labels: Integers
) -> int:
    """Split groups from above, each time by the column that gains most; return how many there are.

    `rows` has the records group by group, `ends` where each group ends; `labels` (n,) is written.
    """
    d, q = records.leaves.shape[1], records.numbers.shape[1]
    begins, stops = np.empty(len(rows) + 1, np.int64), np.empty(len(rows) + 1, np.int64)
    depth, count = 0, 0
    for g in range(len(ends)):
        begins[depth], stops[depth] = (0 if g == 0 else ends[g - 1]), ends[g]
        depth += 1
    ids, best_ids = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    low, high = np.empty(d, np.int32), np.empty(d, np.int32)
    mass, sums, squares = np.empty(d), np.empty(q + 1), np.empty(q)
    while depth > 0:
        depth -= 1
        a, b = begins[depth], stops[depth]
        own = rows[a:b].copy()
        m = b - a
        best, parts = EQUAL, 0
        if m >= 2 * k:
            _clear(low, high, mass, sums, squares)
            for i in own:
                _add(records, i, low, high, mass, sums, squares)
            whole = _cost(trees, low, high, mass, sums, squares, False)
            for column in range(d + q):
                if whole <= EQUAL:
                    break
                if column < d:
                    many = _parts_of_children(
                        trees, records, own, column, low[column], high[column], k, ids
                    )
                else:  # numbers: two halves
                    by_number = np.argsort(records.numbers[own, column - d], kind="mergesort")
                    ids[by_number[: m // 2]] = 0
                    ids[by_number[m // 2 :]] = 1
                    left = _count_whom(records, own[by_number[: m // 2]])
                    right = _count_whom(records, own[by_number[m // 2 :]])
                    many = 2 if min(left, right) >= k else 0
                if many < 2:
                    continue
                gain = whole - _cost_of_parts(trees, records, own, ids, many)
                if gain > best:
                    best, parts = gain, many
                    best_ids[:m] = ids[:m]
        if parts == 0:
            for i in own:
                labels[i] = count
            count += 1
            continue
        counts = np.zeros(parts + 1, np.int64)
        for at in range(m):
            counts[best_ids[at] + 1] += 1
        starts = np.cumsum(counts)
        for p in range(parts):
            begins[depth], stops[depth] = a + starts[p], a + starts[p + 1]
            depth += 1
        for at in range(m):
            p = best_ids[at]
            rows[a + starts[p]] = own[at]
            starts[p] += 1
    return count
