"""Local suppression as facility location with a lower bound: which combination joins which class.

A *combination* p of keys has `size[p]` records, all of which go to one *class*: a released
combination, in which some cells are empty. A class with members needs k respondents. What its
members lack it borrows: single records of *lenders*, combinations that have more than k at home and
fit the class. So a class r costs

    sum over members p of charge[p] w_pr  +  sum over its loans of w_lr,

w being the importance of the cells that are emptied, and 0 without members. A combination joins a
class that borrows at no cost but its own: it takes the place of what was borrowed.

*Search* is ruin and recreate (Schrimpf et al. 2000; Christiaens and Vanden Berghe 2020): a few
combinations that fit a common class are taken out, and put back one by one where that is cheapest,
in random order; the result is kept if it is not dearer. Every class that is touched is noted first,
so that a bad attempt is undone exactly, its loans included.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._types import Floats, Integers, SmallIntegers, Stream
from . import kernel
from .random_moves import draw, draw_below, start_stream

LENDERS = 4  # of each class that are listed, the cheapest first, of these the largest
MOST_OUT = 12  # combinations that are taken out at once
NEVER = 1e300  # the cost of what cannot be


class Fits(NamedTuple):
    """Which combination fits which class, by combination and by class, and who lends to it."""

    start: Integers  # (m + 1,): the classes of a combination, cheapest first
    of: SmallIntegers
    cost: Floats  # for each record, of the cells that are emptied
    class_start: Integers  # (c + 1,)
    member: SmallIntegers
    member_cost: Floats
    lender: SmallIntegers  # (c, LENDERS), -1 where there is none
    lender_cost: Floats
    charge: Floats  # (m,): the sum of the records' own costs, their number if all cost the same
    size: Integers  # (m,): respondents
    home: SmallIntegers  # (m,): the class of a combination that may stay as it is, or -1
    lends: SmallIntegers  # (m,): which lender a combination is, or -1
    lender_item: SmallIntegers  # (l,): which combination of these a lender is, or -1
    lender_price: Floats  # (l,): what a record of a lender costs


class Assignment(NamedTuple):
    """Who is where now."""

    at: SmallIntegers  # (m,): the class of each combination, -1 if out
    paid: Floats  # (m,): its cost for each record
    spare: Integers  # (l,): what a lender can still give
    spare_all: Integers  # (l,): what it could give at first
    away: Integers  # (l,): 1 where the lender has left its home
    members: SmallIntegers  # (c,): combinations in a class
    respondents: Integers  # (c,)
    members_cost: Floats  # (c,)
    loans_cost: Floats  # (c,)
    loans: SmallIntegers  # (c, LENDERS)


class Undo(NamedTuple):
    """The classes that an attempt touched, as they were before."""

    stamp: Integers  # (c,)
    classes: SmallIntegers
    counts: Integers  # members and respondents
    costs: Floats  # of members and of loans
    loans: SmallIntegers
    number: Integers  # (2,): classes noted, attempt


@kernel
def note(r: int, now: Assignment, undo: Undo) -> None:
    """Keep a class as it is, once in an attempt."""
    if undo.stamp[r] == undo.number[1]:
        return
    undo.stamp[r] = undo.number[1]
    a = undo.number[0]
    undo.number[0] += 1
    undo.classes[a] = r
    undo.counts[a, 0], undo.counts[a, 1] = now.members[r], now.respondents[r]
    undo.costs[a, 0], undo.costs[a, 1] = now.members_cost[r], now.loans_cost[r]
    for s in range(LENDERS):
        undo.loans[a, s] = now.loans[r, s]


@kernel
def loans_needed(r: int, lacking: int, fits: Fits, now: Assignment) -> float:
    """Return what it costs to borrow so many for a class, its own loans given back first."""
    cost = 0.0
    for s in range(LENDERS):
        if lacking <= 0:
            return cost
        lender = fits.lender[r, s]
        if lender < 0:
            break
        if not now.away[lender]:
            given = min(lacking, now.spare[lender] + now.loans[r, s])
            cost += given * fits.lender_cost[r, s] * fits.lender_price[lender]
            lacking -= given
    return cost if lacking <= 0 else NEVER


@kernel
def borrow(r: int, lacking: int, fits: Fits, now: Assignment) -> None:
    """Give a class's loans back, and borrow so many anew."""
    now.loans_cost[r] = 0.0
    for s in range(LENDERS):
        lender = fits.lender[r, s]
        if lender < 0:
            break
        now.spare[lender] += now.loans[r, s]
        now.loans[r, s] = 0
    for s in range(LENDERS):
        lender = fits.lender[r, s]
        if lacking <= 0 or lender < 0:
            break
        if not now.away[lender]:
            given = min(lacking, now.spare[lender])
            now.spare[lender] -= given
            now.loans[r, s] = given
            now.loans_cost[r] += given * fits.lender_cost[r, s] * fits.lender_price[lender]
            lacking -= given


@kernel
def put(p: int, r: int, w: float, k: int, fits: Fits, now: Assignment, undo: Undo) -> None:
    """Let a combination join a class."""
    note(r, now, undo)
    now.at[p], now.paid[p] = r, w
    now.members[r] += 1
    now.respondents[r] += fits.size[p]
    now.members_cost[r] += fits.charge[p] * w
    if fits.lends[p] >= 0 and r == fits.home[p]:
        now.away[fits.lends[p]] = 0
    borrow(r, k - now.respondents[r], fits, now)


@kernel
def take_out(p: int, k: int, fits: Fits, now: Assignment, undo: Undo) -> None:
    """Take a combination out of its class, which may then lack respondents for a while."""
    r = now.at[p]
    note(r, now, undo)
    now.members[r] -= 1
    now.respondents[r] -= fits.size[p]
    now.members_cost[r] -= fits.charge[p] * now.paid[p]
    now.at[p] = -1
    if fits.lends[p] >= 0 and r == fits.home[p]:
        now.away[fits.lends[p]] = 1
    if now.members[r] == 0:
        now.members_cost[r] = 0.0
        borrow(r, 0, fits, now)
    else:
        borrow(r, k - now.respondents[r], fits, now)


@kernel
def may_leave(p: int, fits: Fits, now: Assignment) -> Any:
    """Tell whether a combination may be moved: one that has lent records may not."""
    lender = fits.lends[p]
    return lender < 0 or now.at[p] != fits.home[p] or now.spare[lender] == now.spare_all[lender]


@kernel
def cheapest_class(
    p: int, k: int, blink: float, stream: Stream, fits: Fits, now: Assignment
) -> Any:
    """Return where a combination joins at least cost (a place among its classes), and the cost.

    Of equally cheap classes one is drawn; a class is overlooked with probability `blink`. What
    `loans_needed` does is written out: a call hands over all arrays, which costs more than it does.
    """
    of, costs, lenders, lender_cost = fits.of, fits.cost, fits.lender, fits.lender_cost
    price, members, respondents = fits.lender_price, now.members, now.respondents
    loans_cost, loans = now.loans_cost, now.loans
    spare, away = now.spare, now.away
    charge, size = fits.charge[p], fits.size[p]
    best, least, ties = -1, NEVER, 0
    for a in range(fits.start[p], fits.start[p + 1]):
        r, cost = of[a], charge * costs[a]
        if members[r] == 0 and cost > least:  # of an empty class no loan can be given back
            continue
        lacking = k - respondents[r] - size
        if lacking > 0:
            for s in range(LENDERS):
                lender = lenders[r, s]
                if lender < 0 or lacking <= 0:
                    break
                if not away[lender]:
                    given = min(lacking, spare[lender] + loans[r, s])
                    cost += given * lender_cost[r, s] * price[lender]
                    lacking -= given
            if lacking > 0:
                continue
        cost -= loans_cost[r]
        if cost > least + 1e-9 or (blink > 0.0 and draw(stream) < blink):
            continue
        if cost < least - 1e-9:
            best, least, ties = a, cost, 1
        else:
            ties += 1
            if draw_below(stream, ties) == 0:
                best = a
    return best, least


@kernel
def undo_all(
    out: SmallIntegers, n_out: int, old: SmallIntegers, old_paid: Floats, fits: Fits,
    now: Assignment, undo: Undo,
) -> None:  # fmt: skip
    """Return to what was before an attempt."""
    for a in range(undo.number[0]):  # give back what is borrowed now, all of it first
        r = undo.classes[a]
        for s in range(LENDERS):
            if fits.lender[r, s] >= 0:
                now.spare[fits.lender[r, s]] += now.loans[r, s]
    for a in range(undo.number[0]):
        r = undo.classes[a]
        now.members[r], now.respondents[r] = undo.counts[a, 0], undo.counts[a, 1]
        now.members_cost[r], now.loans_cost[r] = undo.costs[a, 0], undo.costs[a, 1]
        for s in range(LENDERS):
            now.loans[r, s] = undo.loans[a, s]
            if fits.lender[r, s] >= 0:
                now.spare[fits.lender[r, s]] -= now.loans[r, s]
    for a in range(n_out):
        p = out[a]
        now.at[p], now.paid[p] = old[a], old_paid[a]
        if fits.lends[p] >= 0:
            now.away[fits.lends[p]] = 0 if old[a] == fits.home[p] else 1


@kernel
def cost_of_touched(now: Assignment, undo: Undo) -> Any:
    """Return what the touched classes cost before and cost now."""
    before = after = 0.0
    for a in range(undo.number[0]):
        r = undo.classes[a]
        before += undo.costs[a, 0] + undo.costs[a, 1]
        after += now.members_cost[r] + now.loans_cost[r]
    return before, after


@kernel
def all_reach(k: int, now: Assignment, undo: Undo) -> bool:
    """Tell whether all touched classes have k respondents, with what they borrowed."""
    for a in range(undo.number[0]):
        r = undo.classes[a]
        if now.members[r] > 0 and now.respondents[r] + now.loans[r].sum() < k:
            return False
    return True


@kernel
def remove_some(
    p: int, r: int, k: int, most: int, stream: Stream, fits: Fits, now: Assignment, undo: Undo,
    out: SmallIntegers, old: SmallIntegers, old_paid: Floats, place: SmallIntegers,
) -> int:  # fmt: skip
    """Take out a combination, those that share its class, and some that fit class r."""
    n = 0
    here = now.at[p]
    for which in range(2):
        low = fits.class_start[here if which == 0 else r]
        width = fits.class_start[(here if which == 0 else r) + 1] - low
        first = draw_below(stream, width)
        looked = min(width, 4 * most)
        for a in range(looked):
            other = fits.member[low + (first + a) % width]
            if n >= most or now.at[other] < 0 or (which == 0 and now.at[other] != here):
                continue
            if which == 1 and (now.at[other] == r or draw(stream) < 0.5):
                continue
            if may_leave(other, fits, now):
                out[n], old[n], old_paid[n] = other, now.at[other], now.paid[other]
                n += 1
                take_out(other, k, fits, now, undo)
        if which == 0 and now.at[p] >= 0:
            out[n], old[n], old_paid[n] = p, now.at[p], now.paid[p]
            n += 1
            take_out(p, k, fits, now, undo)
    for a in range(n):
        place[a] = out[a]
    for a in range(n - 1, 0, -1):  # Fisher and Yates
        b = draw_below(stream, a + 1)
        place[a], place[b] = place[b], place[a]
    return n


@kernel
def gather_in(
    r: int, n: int, k: int, fits: Fits, now: Assignment, undo: Undo, place: SmallIntegers
) -> None:
    """Put those that are out and fit class r into it, until it has k."""
    for b in range(n):
        p = place[b]
        if now.respondents[r] >= k:
            return
        for a in range(fits.start[p], fits.start[p + 1]):
            if fits.of[a] == r:
                put(p, r, fits.cost[a], k, fits, now, undo)
                break


@kernel
def put_back(
    n: int, k: int, blink: float, stream: Stream, fits: Fits, now: Assignment, undo: Undo,
    place: SmallIntegers,
) -> bool:  # fmt: skip
    """Put those that are out where it is cheapest; tell whether there was a place for each."""
    for b in range(n):
        p = place[b]
        if now.at[p] >= 0:
            continue
        a, cost = cheapest_class(p, k, blink, stream, fits, now)
        if a < 0:
            a, cost = cheapest_class(p, k, 0.0, stream, fits, now)
        if a < 0 or cost >= NEVER:
            return False
        put(p, fits.of[a], fits.cost[a], k, fits, now, undo)
    return all_reach(k, now, undo)


@kernel
def search(
    moving: SmallIntegers, guide: SmallIntegers, k: int, attempts: int, warm: float, seed: int,
    fits: Fits, now: Assignment, undo: Undo,
) -> float:  # fmt: skip
    """Ruin and recreate, in place; return how much cheaper the assignment became.

    `moving` are the combinations that attempts begin with, `guide` has the classes of each, the
    most promising first, which are tried most often; a result that is dearer by x is kept
    with probability exp(-x / temperature), falling from `warm` to 0.
    """
    stream = start_stream(seed, 0)
    out, old = np.empty(MOST_OUT + 2, dtype=np.int32), np.empty(MOST_OUT + 2, dtype=np.int32)
    old_paid, place = np.empty(MOST_OUT + 2), np.empty(MOST_OUT + 2, dtype=np.int32)
    gained = 0.0
    for attempt in range(attempts):
        undo.number[0] = 0
        undo.number[1] += 1
        p = moving[draw_below(stream, len(moving))]
        if now.at[p] < 0 or not may_leave(p, fits, now):
            continue
        width = fits.start[p + 1] - fits.start[p]
        u = draw(stream)
        r = guide[fits.start[p] + int(u * u * u * width)]
        most = 2 + draw_below(stream, MOST_OUT - 2)
        n = remove_some(p, r, k, most, stream, fits, now, undo, out, old, old_paid, place)
        if draw(stream) < 0.5:
            gather_in(r, n, k, fits, now, undo, place)
        done = put_back(n, k, 0.02, stream, fits, now, undo, place)
        before, after = cost_of_touched(now, undo)
        heat = warm * (1.0 - attempt / attempts)
        worse = after - before
        kept = done and (worse <= 1e-9 or (heat > 0.0 and draw(stream) < np.exp(-worse / heat)))
        if kept:
            gained -= worse
        else:
            undo_all(out, n, old, old_paid, fits, now, undo)
    return gained


@kernel
def open_greedily(
    order: SmallIntegers, dearest: float, k: int, fits: Fits, now: Assignment, undo: Undo
) -> int:
    """Assign combinations that are out, class by class in an order; return how many stay out.

    A class is opened with all that are out and fit, if it then has k and costs at most `dearest`
    for each record that joins.
    """
    for r in order:
        undo.number[0] = 0
        undo.number[1] += 1
        size, records, cost = 0, 0.0, 0.0
        for a in range(fits.class_start[r], fits.class_start[r + 1]):
            p = fits.member[a]
            if now.at[p] < 0:
                size += fits.size[p]
                records += fits.charge[p]
                cost += fits.charge[p] * fits.member_cost[a]
        if size == 0:
            continue
        lacking = k - now.respondents[r] - size
        if lacking > 0:
            cost += loans_needed(r, lacking, fits, now)
        if cost > dearest * records + 1e-9:
            continue
        for a in range(fits.class_start[r], fits.class_start[r + 1]):
            p = fits.member[a]
            if now.at[p] < 0:
                put(p, r, fits.member_cost[a], k, fits, now, undo)
    left = 0
    for p in range(len(now.at)):
        left += now.at[p] < 0
    return left
