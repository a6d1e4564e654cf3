"""The classes in which combinations of keys could be released, cheapest first.

For a set Z of keys, the combinations that may be emptied in Z fall into classes by their codes in
the other keys. A class is listed if k respondents fit it and somebody needs it, unless the same
combinations fit a class with fewer empty cells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._types import Floats, Integers, Truths
from ..frame import count_units
from ..kernels.suppression import LENDERS, Fits
from .combinations import SUBSETS, ClassGroups, Combinations, subsets

SMALL = 3  # combinations of fewer than SMALL k respondents may move as a whole; others only lend
MEMBERSHIPS = 3_000_000  # that are listed before dearer classes are left out: about 100 megabytes


@dataclass(frozen=True, kw_only=True, eq=False)
class Classes:
    """The classes that combinations could be released in.

    Attributes
    ----------
    fits : Fits
        Which of the moving combinations fits which class: what the kernels read.
    moving : array of shape (i,)
        The combinations that may move as a whole, by number; the others only lend.
    violating : array of shape (i,), bool
        Which of these have fewer than k respondents.
    emptied : array of shape (c, q), bool
        The empty cells of each class.
    lenders : array of shape (l,)
        The combinations that can spare respondents.
    needs : array of shape (i,)
        The least that a record pays in any class that k respondents fit; 0 where it may stay.
    reach : array of shape (i,)
        What a record pays at least in any class that is not listed, or in which not all that fit
        are.
    partial : array of shape (c,), bool
        Whether combinations fit a class that are not listed as its members or lenders.
    floor : array of shape (c,)
        The least that a record of a combination pays there that is not a member; infinite if none.
    """

    fits: Fits
    moving: Integers
    violating: Truths
    emptied: Truths
    lenders: Integers
    needs: Floats
    reach: Floats
    partial: Truths
    floor: Floats


@dataclass
class _Lists:
    """What is gathered set by set."""

    item: list[Any] = field(default_factory=list)
    of: list[Any] = field(default_factory=list)
    cost: list[Any] = field(default_factory=list)
    lender: list[Any] = field(default_factory=list)
    lender_cost: list[Any] = field(default_factory=list)
    emptied: list[Any] = field(default_factory=list)
    partial: list[Any] = field(default_factory=list)
    floor: list[Any] = field(default_factory=list)
    n_classes: int = 0
    n_members: int = 0


def list_classes(
    found: Combinations, k: int, importance: Floats, never: Truths, units: Integers | None,
    most: int = MEMBERSHIPS,
) -> Classes:  # fmt: skip
    """List the classes of a table: see `Classes`."""
    m, q = found.codes.shape
    empty = found.empty()
    violating = found.respondents < k
    is_moving = found.respondents < SMALL * k
    moving = np.flatnonzero(is_moving)
    place = np.full(m, -1)
    place[moving] = np.arange(len(moving))
    spare = np.maximum(found.respondents - k, 0)
    free = ~never | empty.any(axis=0)
    held = empty @ importance  # what a combination lacks already, and does not pay for
    needs = np.where(violating, np.inf, 0.0)
    reach = np.inf
    groups, lists = ClassGroups(found), _Lists()
    counts: dict[int, Any] = {}  # combinations in the class of each, by set
    columns = np.flatnonzero(free)
    for chosen, weight in subsets(importance[columns]):
        if weight >= reach and not (needs >= weight - held).any():
            break
        keys = columns[list(chosen)]
        mask = int(sum(1 << int(j) for j in keys))
        inside = np.zeros(q, dtype=bool)
        inside[keys] = True
        fit = ~(empty & ~inside).any(axis=1) & ~(inside & never & ~empty).any(axis=1)
        rows = np.flatnonzero(fit)
        if not len(rows):
            continue
        ids = groups.number(list(keys), rows)
        sizes = np.full(m, -1, dtype=np.int32)
        sizes[rows] = np.bincount(ids)[ids]
        counts[mask] = sizes
        cost = weight - held[rows]
        total = _respondents(found, rows, ids, units)
        enough = total >= k
        pays = enough[ids] & (cost < needs[rows])
        fresh = needs[rows] >= cost - 1e-12  # those that have nothing cheaper
        needs[rows[pays]] = cost[pays]
        if np.isinf(reach) and lists.n_members + len(rows) > most:
            reach = weight
        wanted = is_moving[rows] & (fresh if weight >= reach else True)
        asked = np.bincount(ids, weights=wanted & violating[rows]) > 0
        same = dominated(counts, mask, keys, rows, sizes)
        asked[ids[same]] = False
        homes = np.zeros(len(total), dtype=bool)
        homes[ids[(cost <= 1e-12) & is_moving[rows] & ~violating[rows]]] = True
        kept = (enough & asked) | homes
        _gather(lists, rows, ids, cost, kept, wanted | homes[ids], spare, place, inside)
    else:
        if np.isinf(reach) and 2 ** len(columns) > SUBSETS:
            reach = weight  # there are more sets than were looked at
    return _finish(found, lists, moving, violating, needs, reach, held)


def _respondents(
    found: Combinations, rows: Integers, ids: Integers, units: Integers | None
) -> Integers:
    """Count the respondents that fit each class."""
    if units is None:
        return np.bincount(ids, weights=found.respondents[rows]).astype(np.int64)
    own = np.full(len(found.codes), -1)
    own[rows] = ids
    of_record = own[found.of]
    there = of_record >= 0
    return count_units(of_record[there], units[there], int(ids.max()) + 1)


def dominated(
    counts: dict[int, Any], mask: int, keys: Integers, rows: Integers, sizes: Any
) -> Truths:
    """Return whose class has the same members without one of its empty cells."""
    same = np.zeros(len(rows), dtype=bool)
    for j in keys:
        fewer = counts.get(mask & ~(1 << int(j)))
        if fewer is not None:
            same |= fewer[rows] == sizes[rows]
    return same


def _gather(
    lists: _Lists, rows: Integers, ids: Integers, cost: Floats, kept: Truths, wanted: Truths,
    spare: Integers, place: Integers, inside: Truths,
) -> None:  # fmt: skip
    """Add the classes of one set of keys."""
    n = int(kept.sum())
    if not n:
        return
    number = np.full(len(kept), -1)
    number[kept] = np.arange(n)
    own = number[ids]
    there = own >= 0
    member = there & wanted & (place[rows] >= 0)
    lists.item.append(place[rows[member]].astype(np.int32))
    lists.of.append((own[member] + lists.n_classes).astype(np.int32))
    lists.cost.append(cost[member])
    listed, dearest = np.full((n, LENDERS), -1, dtype=np.int32), np.zeros((n, LENDERS))
    lends = np.flatnonzero(there & (spare[rows] > 0))
    order = lends[np.lexsort((-spare[rows[lends]], cost[lends], own[lends]))]
    at = own[order]
    first = np.searchsorted(at, np.arange(n))
    rank = np.arange(len(at)) - first[at]
    few = rank < LENDERS
    listed[at[few], rank[few]] = rows[order[few]]
    dearest[at[few], rank[few]] = cost[order[few]]
    lists.lender.append(listed)
    lists.lender_cost.append(dearest)
    lists.emptied.append(np.tile(inside, (n, 1)))
    lists.partial.append(np.bincount(own[there], weights=~wanted[there] & (place[rows[there]] >= 0),
                                     minlength=n) > 0)  # fmt: skip
    floor = np.full(n, np.inf)
    outside = there & (place[rows] < 0)
    np.minimum.at(floor, own[outside], cost[outside])
    lists.floor.append(floor)
    lists.n_classes += n
    lists.n_members += int(member.sum())


def _finish(
    found: Combinations, lists: _Lists, moving: Integers, violating: Truths, needs: Floats,
    reach: float, held: Floats,
) -> Classes:  # fmt: skip
    q = found.codes.shape[1]
    empty_lists = not lists.item
    item = np.empty(0, dtype=np.int32) if empty_lists else np.concatenate(lists.item)
    of = np.empty(0, dtype=np.int32) if empty_lists else np.concatenate(lists.of)
    cost = np.empty(0) if empty_lists else np.concatenate(lists.cost)
    by_class = np.argsort(of, kind="stable")
    by_item = np.argsort(item, kind="stable")
    c, i = lists.n_classes, len(moving)
    lender = np.concatenate([np.empty((0, LENDERS), dtype=np.int32), *lists.lender])
    lenders = np.unique(lender[lender >= 0])
    lender_of = np.full(len(found.codes) + 1, -1, dtype=np.int32)
    lender_of[lenders] = np.arange(len(lenders))
    at_home = cost <= 1e-12
    home = np.full(i, -1, dtype=np.int32)
    home[item[at_home]] = of[at_home]
    home[violating[moving]] = -1
    lender_item = np.full(len(lenders), -1, dtype=np.int32)
    lends = lender_of[moving]
    lender_item[lends[lends >= 0]] = np.flatnonzero(lends >= 0)
    fits = Fits(
        start=np.searchsorted(item[by_item], np.arange(i + 1)),
        of=of[by_item],
        cost=cost[by_item],
        class_start=np.searchsorted(of[by_class], np.arange(c + 1)),
        member=item[by_class],
        member_cost=cost[by_class],
        lender=lender_of[lender],
        lender_cost=np.concatenate([np.empty((0, LENDERS)), *lists.lender_cost]),
        charge=found.charge[moving],
        size=found.respondents[moving],
        home=home,
        lends=lends,
        lender_item=lender_item,
        lender_price=found.lightest[lenders],
    )
    return Classes(
        fits=fits,
        moving=moving,
        violating=violating[moving],
        emptied=np.concatenate([np.empty((0, q), dtype=bool), *lists.emptied]),
        lenders=lenders,
        needs=needs[moving],
        reach=np.maximum(reach - held[moving], 0.0),
        partial=np.concatenate([np.empty(0, dtype=bool), *lists.partial]),
        floor=np.concatenate([np.empty(0), *lists.floor]),
    )
