"""Local suppression where an empty cell equals every value: see `kernels.wildcard`.

A record may be left as it is, or lose the fewest cells (by importance) with which k records of the
original agree in what it keeps. All releases in which everybody who matches fewer than k does the
latter keep the promise; most need not, because others were emptied. The fewest that must are
searched for; the bound is the dual of the covering programme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import csr_array

from .._types import Floats, Integers, Truths
from ..frame import group_ids
from ..kernels.wildcard import Cover, empties, improve, raise_cover_prices, return_all
from ..linear.rows import linprog, milp
from .combinations import ClassGroups, Combinations, subsets
from .matches import count_matches
from .suppression import (
    RISE,
    ROUNDS,
    Suppression,
    Task,
    conclude,
    no_release,
    refuse_impossible,
)

ATTEMPTS, MOST = 200, 2_000_000  # for each combination, and of all
COLUMNS = 20_000  # of a programme that is relaxed; a tenth of it is solved in whole numbers
NODES = 100
PAIRS = 50_000_000  # members of classes, squared: what one pass over prices looks at


@dataclass(frozen=True, eq=False)
class Emptied:
    """Records of combinations that are emptied in classes, some of a combination or all."""

    item: Integers
    target: Integers
    amounts: Integers

    def cost(self, need: Floats) -> float:
        """Return what it costs."""
        return float(need[self.item] @ self.amounts)


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """The combinations that match too few, and the classes in which they could be emptied."""

    rows: Integers  # of the combinations
    cover: Cover
    keys: Truths  # (classes, q): what is emptied


def suppress_by_wildcard(task: Task, *, seed: int = 0) -> Suppression:
    """Empty cells until every record matches k, at little cost."""
    found = task.count(task.codes)
    refuse_impossible(task)
    matches = count_matches(found.codes, found.records, found.strata)
    if (matches >= task.k).all():
        return Suppression(codes=task.codes, cost=0.0, bound=0.0)
    weights, bound = task.importance.copy(), None
    for _ in range(ROUNDS):
        options = list_options(found, matches, task.k, weights, task.never)
        chosen = _search(options, seed)
        if bound is None:
            chosen, bound = _programme(options, chosen)
            bound = max(bound, _price_bound(options))
        released = _release(task, found, options, chosen)
        over = task.over_limit(released)
        if not over.any():
            return conclude(task, released, bound)
        weights = np.where(over, weights * RISE, weights)
    raise no_release(task)


def list_options(
    found: Combinations, matches: Integers, k: int, importance: Floats, never: Truths
) -> Options:
    """List for each combination that matches too few the least it could be emptied in."""
    violating = np.flatnonzero(matches < k)
    empty = found.empty()
    needs = np.full(len(found.codes), np.inf)
    groups, columns = ClassGroups(found), np.flatnonzero(~never)
    item, of, option, keys = [], [], [], []
    asked: list[tuple[Integers, Integers]] = []
    n_classes = 0
    for chosen, weight in subsets(importance[columns], 2 ** min(len(columns), 14)):
        if not chosen:
            continue
        if (needs[violating] < weight - 1e-12).all():
            break
        own = columns[list(chosen)]
        rows = violating[~empty[violating][:, own].any(axis=1)]
        if not len(rows):
            continue
        open_rows = rows[needs[rows] >= weight - 1e-12]
        enough = np.zeros(len(found.codes), dtype=bool)
        enough[open_rows[_support(found, groups, own, open_rows, empty) >= k]] = True
        if not enough.any():
            continue
        needs[enough] = weight
        if empty.any():  # who is helped is found pair by pair: see `_helped`
            asked.append((np.flatnonzero(enough), own))
            continue
        ids = groups.number(list(own), rows)
        kept = np.bincount(ids, weights=enough[rows]) > 0
        number = np.cumsum(kept) - 1
        there = kept[ids]
        item.append(rows[there])
        of.append(number[ids[there]] + n_classes)
        option.append(enough[rows[there]])
        inside = np.zeros(len(never), dtype=bool)
        inside[own] = True
        keys.append(np.tile(inside, (int(kept.sum()), 1)))
        n_classes += int(kept.sum())
    for rows, own in asked:
        source, helped = _helped(found, rows, own, violating)
        item += [rows, helped]
        of += [np.arange(len(rows)) + n_classes, source + n_classes]
        option += [np.ones(len(rows), dtype=bool), np.zeros(len(helped), dtype=bool)]
        inside = np.zeros(len(never), dtype=bool)
        inside[own] = True
        keys.append(np.tile(inside, (len(rows), 1)))
        n_classes += len(rows)
    return _options(found, violating, matches, k, needs, item, of, option, keys, n_classes)


def _helped(
    found: Combinations, rows: Integers, own: Integers, violating: Integers
) -> tuple[Integers, Integers]:
    """Find whom combinations help that are emptied in some keys: pairs of a place and a row.

    Where cells of the original are empty, combinations with the same codes in the other keys may
    have matched before or not: so each emptied one is a class of its own, of those of `violating`
    that match it then and did not before.
    """
    asked = found.codes[rows].astype(np.int64)
    asked[:, own] = 0
    others = found.codes[violating].astype(np.int64)
    kinds = group_ids((asked == 0).T), group_ids((others == 0).T)
    sources, helped = [], []
    for here in np.unique(kinds[0], return_index=True)[1]:
        mine = np.flatnonzero(kinds[0] == kinds[0][here])
        for there in np.unique(kinds[1], return_index=True)[1]:
            theirs = np.flatnonzero(kinds[1] == kinds[1][there])
            both = [np.r_[found.strata[rows[mine]], found.strata[violating[theirs]]]]
            known = np.flatnonzero((asked[here] != 0) & (others[there] != 0))
            both += [np.r_[asked[mine, j], others[theirs, j]] for j in known]
            ids = group_ids(both)
            order = np.argsort(ids[len(mine) :], kind="stable")
            sorted_ids = ids[len(mine) :][order]
            first, last = (np.searchsorted(sorted_ids, ids[: len(mine)], side=s)
                           for s in ("left", "right"))  # fmt: skip
            count = last - first
            source = np.repeat(np.arange(len(mine)), count)
            at = np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count)
            sources.append(mine[source])
            helped.append(violating[theirs[order[first[source] + at]]])
    source, target = np.concatenate(sources), np.concatenate(helped)
    a, b = found.codes[rows[source]], found.codes[target]
    new = ((a != b) & (a != 0) & (b != 0)).any(axis=1)
    return source[new], target[new]


def _support(
    found: Combinations, groups: ClassGroups, own: Integers, rows: Integers, empty: Truths
) -> Integers:
    """Count the records of the original that match combinations with some keys emptied."""
    if not empty.any():
        ids = groups.number(list(own), np.arange(len(found.codes)))
        return np.bincount(ids, weights=found.records)[ids[rows]].astype(np.int64)
    asked = found.codes[rows].copy()
    asked[:, own] = 0
    both = count_matches(
        np.concatenate([asked, found.codes]),
        np.r_[np.zeros(len(rows), dtype=np.int64), found.records],
        np.r_[found.strata[rows], found.strata],
    )
    return both[: len(rows)]


def _options(
    found: Combinations, violating: Integers, matches: Integers, k: int, needs: Floats,
    item: list[Any], of: list[Any], option: list[Any], keys: list[Any], n_classes: int,
) -> Options:  # fmt: skip
    place = np.full(len(found.codes), -1)
    place[violating] = np.arange(len(violating))
    items, classes = place[np.concatenate(item)], np.concatenate(of)
    may = np.concatenate(option)
    by_item = np.lexsort((~may, items))
    by_class = np.argsort(classes, kind="stable")
    cover = Cover(
        start=np.searchsorted(items[by_item], np.arange(len(violating) + 1)),
        of=classes[by_item].astype(np.int32),
        option=may[by_item],
        n_options=np.bincount(items[may], minlength=len(violating)),
        class_start=np.searchsorted(classes[by_class], np.arange(n_classes + 1)),
        member=items[by_class].astype(np.int32),
        member_option=may[by_class],
        lacking=k - matches[violating],
        records=found.records[violating],
        need=needs[violating] * found.charge[violating] / found.records[violating],
    )
    return Options(rows=violating, cover=cover, keys=np.concatenate(keys))


def _search(options: Options, seed: int) -> Emptied:
    """Choose combinations that are emptied, each in one class."""
    cover = options.cover
    m = len(options.rows)
    owner = np.repeat(np.arange(m), np.diff(cover.start))
    sizes = np.bincount(cover.of, weights=cover.records[owner])
    best = np.lexsort((-np.where(cover.option, sizes[cover.of], -1.0), owner))
    first = best[np.searchsorted(owner[best], np.arange(m))]
    emptied, at = np.zeros(m, dtype=np.int64), np.full(m, -1, dtype=np.int32)
    helped = np.zeros(m, dtype=np.int64)
    for p in range(m):
        empties(p, int(cover.of[first[p]]), int(cover.records[p]), cover, emptied, at, helped)
    # Those first that help the fewest: the others' help stays.
    order = np.lexsort((sizes[cover.of[first]], -cover.need * cover.records)).astype(np.int32)
    return_all(order, cover, emptied, at, helped)
    improve(int(min(ATTEMPTS * m, MOST)), seed, cover, emptied, at, helped)
    return_all(order, cover, emptied, at, helped)
    item = np.flatnonzero(at >= 0)
    return Emptied(item, at[item].astype(np.int64), cover.records[item])


def _price_bound(options: Options) -> float:
    """Return a bound from prices: see `raise_cover_prices`."""
    cover = options.cover
    c, m = len(options.keys), len(options.rows)
    of_member = np.repeat(np.arange(c), np.diff(cover.class_start))
    size = np.diff(cover.class_start)
    least = np.full(c, np.inf)
    may = cover.member_option
    np.minimum.at(least, of_member[may], cover.need[cover.member[may]])
    ratio = np.zeros(c)
    np.maximum.at(ratio, of_member[may], (cover.lacking / cover.records)[cover.member[may]])
    # With these, no class is paid more than its least cost: each member has at most its share.
    share = least / np.maximum(size - 1 + ratio, 1e-12)
    prices = np.full(m, np.inf)
    np.minimum.at(prices, cover.member, share[of_member])
    sums = np.zeros(c)
    np.add.at(sums, of_member, prices[cover.member])
    order = np.argsort(prices, kind="stable").astype(np.int32)
    if (size.astype(np.float64) ** 2).sum() > PAIRS:
        return float(cover.lacking @ prices) * (1 - 1e-9)
    raise_cover_prices(order, cover, prices, sums)
    return float(raise_cover_prices(order[::-1].copy(), cover, prices, sums)) * (1 - 1e-9)


def _programme(options: Options, chosen: Emptied) -> tuple[Emptied, float]:
    r"""Relax the covering programme, and solve it where it is small.

    minimise sum need_p x_pc; y_p = 1 if all records of p are emptied: n_p y_p <= sum_c x_pc <= n_p,
    sum over classes c of p and q != p of x_qc + lacking_p y_p >= lacking_p.
    """
    cover = options.cover
    m, c = len(options.rows), len(options.keys)
    owner = np.repeat(np.arange(m), np.diff(cover.start))
    at = np.flatnonzero(cover.option)
    n = len(at)
    if n + m + c > COLUMNS:
        return chosen, 0.0
    # Columns: x of options, y of combinations, X of classes (their sums of x).
    x, y, X = np.arange(n), n + np.arange(m), n + m + np.arange(c)
    width = n + m + c
    full, ones = np.ones(n), np.ones(len(owner))
    sums = csr_array(
        (np.r_[full, -np.ones(c)], (np.r_[cover.of[at], np.arange(c)], np.r_[x, X])),
        shape=(c, width),
    )
    helped = csr_array(
        (np.r_[ones, -full, cover.lacking.astype(float)],
         (np.r_[owner, owner[at], np.arange(m)], np.r_[X[cover.of], x, y])),
        shape=(m, width),
    )  # fmt: skip
    records = cover.records.astype(np.float64)
    emptied = csr_array(
        (np.r_[full, -records], (np.r_[owner[at], np.arange(m)], np.r_[x, y])), shape=(m, width)
    )
    most = csr_array((full, (owner[at], x)), shape=(m, width))
    cost = np.r_[cover.need[owner[at]], np.zeros(m + c)]
    upper = np.r_[records[owner[at]], np.ones(m), np.full(c, np.inf)]
    constraints = [
        LinearConstraint(sums, 0, 0),
        LinearConstraint(helped, cover.lacking, np.inf),
        LinearConstraint(emptied, 0, np.inf),
        LinearConstraint(most, 0, records),
    ]
    known = chosen.cost(cover.need)
    if n + m > COLUMNS // 10:
        from scipy.sparse import vstack

        result = linprog(
            cost, A_ub=vstack([-helped, -emptied, most], format="csr"),
            b_ub=np.r_[-cover.lacking, np.zeros(m), records], A_eq=sums, b_eq=np.zeros(c),
            bounds=np.column_stack([np.zeros(width), upper]), method="highs",
        )  # fmt: skip
        return chosen, 0.0 if result.status else float(result.fun) - 1e-6 * (1 + result.fun)
    whole = np.r_[np.ones(n + m), np.zeros(c)]
    result = milp(
        cost, constraints=constraints, bounds=Bounds(np.zeros(width), upper), integrality=whole,
        options={"node_limit": NODES, "mip_rel_gap": 0.0},
    )  # fmt: skip
    bound = getattr(result, "mip_dual_bound", None)
    bound = 0.0 if bound is None else float(bound) - 1e-6 * (1 + abs(bound))
    if result.x is None or result.fun > known - 1e-6:
        return chosen, bound
    amounts = np.rint(result.x[:n]).astype(np.int64)
    return Emptied(owner[at], cover.of[at].astype(np.int64), amounts), bound


def _release(task: Task, found: Combinations, options: Options, chosen: Emptied) -> Integers:
    """Return the released codes."""
    released = task.codes.copy()
    order = np.argsort(found.of, kind="stable")
    begins = np.searchsorted(found.of[order], np.arange(len(found.codes)))
    used = np.zeros(len(found.codes), dtype=np.int64)
    for item, target, number in zip(chosen.item, chosen.target, chosen.amounts):
        p = options.rows[item]
        rows = order[begins[p] + used[p] : begins[p] + used[p] + number]
        used[p] += number
        released[rows] = np.where(options.keys[target], 0, released[rows])
    return released
