"""Local suppression where an empty cell is a value of its own: search for a cheap assignment.

Combinations are assigned to classes: greedily, the classes first that cost least a record, then by
ruin and recreate (`kernels.suppression`). Loans are dealt to single records at the end. Where units
are counted, members of one class may share a unit; what is short for that is put right in a further
round, in which what is released so far is the table to be suppressed.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ..kernels.suppression import (
    LENDERS,
    MOST_OUT,
    NEVER,
    Assignment,
    Undo,
    loans_needed,
    may_leave,
    open_greedily,
    put,
    search,
    take_out,
)
from .bound import Prices, price_bound
from .classes import Classes
from .combinations import Combinations

ATTEMPTS = 100  # for each combination with too few respondents
LEAST, MOST = 1_000, 600_000  # of all attempts
WARM = 0.3  # the first temperature, in units of the least importance
STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, np.inf)  # of what an opened class may cost


def assign(
    found: Combinations, classes: Classes, k: int, unit: float, seed: int
) -> tuple[Assignment, Prices]:
    """Assign combinations to classes at little cost; return it with a bound.

    A greedy assignment comes first, then prices, then a search among the classes that gain most, or
    lose least, at these prices. `unit` is the least importance of a key.
    """
    spare = found.respondents[classes.lenders] - k
    now, undo = _all_at_home(classes, spare), _undo(len(classes.emptied))
    _open(classes, k, unit, now, undo)
    prices = price_bound(found, classes, k, cost_of(now))
    moving = np.flatnonzero(classes.violating & (now.at >= 0)).astype(np.int32)
    if len(moving):
        fits = classes.fits
        owner = np.repeat(np.arange(len(fits.start) - 1), np.diff(fits.start))
        guide = fits.of[np.lexsort((-prices.gains[fits.of], owner))]
        attempts = int(np.clip(ATTEMPTS * len(moving), LEAST, MOST))
        search(moving, guide, k, attempts, WARM * unit, seed, fits, now, undo)
        search(moving, guide, k, attempts // 4, 0.0, seed + 1, fits, now, undo)
    return now, prices


def cost_of(now: Assignment) -> float:
    """Return what an assignment costs."""
    return float(now.members_cost.sum() + now.loans_cost.sum())


def _all_at_home(classes: Classes, spare: Integers) -> Assignment:
    """Let all that may stay be at home, and the others be out."""
    fits, c, i = classes.fits, len(classes.emptied), len(classes.moving)
    now = Assignment(
        at=np.full(i, -1, dtype=np.int32),
        paid=np.zeros(i),
        spare=spare.copy(),
        spare_all=spare,
        away=np.zeros(len(spare), dtype=np.int64),
        members=np.zeros(c, dtype=np.int32),
        respondents=np.zeros(c, dtype=np.int64),
        members_cost=np.zeros(c),
        loans_cost=np.zeros(c),
        loans=np.zeros((c, LENDERS), dtype=np.int32),
    )
    stay = np.flatnonzero(fits.home >= 0)
    home = fits.home[stay]
    now.at[stay] = home
    np.add.at(now.members, home, 1)
    np.add.at(now.respondents, home, fits.size[stay])
    return now


def _undo(c: int) -> Undo:
    most = 4 * MOST_OUT
    return Undo(
        stamp=np.full(c, -1), classes=np.empty(most, dtype=np.int32),
        counts=np.empty((most, 2), dtype=np.int64), costs=np.empty((most, 2)),
        loans=np.empty((most, LENDERS), dtype=np.int32), number=np.zeros(2, dtype=np.int64),
    )  # fmt: skip


def _open(classes: Classes, k: int, unit: float, now: Assignment, undo: Undo) -> None:
    """Open classes in the order of what they cost for each record that is out and fits."""
    fits = classes.fits
    of = np.repeat(np.arange(len(classes.emptied)), np.diff(fits.class_start))
    for step in STEPS:
        out = now.at[fits.member] < 0
        joining = np.bincount(
            of[out], weights=fits.size[fits.member[out]], minlength=len(now.members)
        )
        charge = np.bincount(of[out], weights=fits.charge[fits.member[out]], minlength=len(joining))
        paid = np.bincount(
            of[out], weights=(fits.charge[fits.member] * fits.member_cost)[out],
            minlength=len(joining),
        )  # fmt: skip
        lacking = np.maximum(k - now.respondents - joining, 0)
        each = np.where(fits.lender[:, 0] >= 0, fits.lender_cost[:, 0], np.inf)
        loans = np.where(
            lacking > 0, np.multiply(lacking, each, where=lacking > 0, out=np.zeros(len(each))), 0.0
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(charge > 0, (paid + loans) / charge, np.inf)
        order = np.argsort(ratio, kind="stable")
        order = order[ratio[order] <= step * unit + 1e-9] if np.isfinite(step) else order
        if not open_greedily(order.astype(np.int32), step * unit, k, fits, now, undo):
            return
    _gather_rest(classes, k, now, undo)


def _gather_rest(classes: Classes, k: int, now: Assignment, undo: Undo) -> None:
    """Let combinations that found no class take others along, from their homes."""
    fits = classes.fits
    for p in np.flatnonzero(now.at < 0):
        if now.at[p] >= 0:
            continue
        for a in range(fits.start[p], fits.start[p + 1]):
            r = int(fits.of[a])
            if _take_along(int(p), r, float(fits.cost[a]), k, classes, now, undo):
                break


def _take_along(
    p: int, r: int, w: float, k: int, classes: Classes, now: Assignment, undo: Undo
) -> bool:
    """Put a combination into a class with as many others, out or at home, as k needs."""
    fits = classes.fits
    places = np.arange(fits.class_start[r], fits.class_start[r + 1])
    others = fits.member[places]
    can = np.array([bool(o != p and now.at[o] != r and (now.at[o] < 0 or (
        now.at[o] == fits.home[o] and may_leave(o, fits, now)))) for o in others])  # fmt: skip
    places, others = places[can], others[can]
    order = np.lexsort((fits.charge[others], now.at[others] >= 0))
    joined, chosen = int(now.respondents[r] + fits.size[p]), []
    for a in order:
        if joined >= k:
            break
        chosen.append(a)
        joined += int(fits.size[others[a]])
    if joined < k and loans_needed(r, k - joined, fits, now) >= NEVER:
        return False
    undo.number[0] = 0
    undo.number[1] += 1
    for a in chosen:
        if now.at[others[a]] >= 0:
            take_out(others[a], k, fits, now, undo)
        put(others[a], r, float(fits.member_cost[places[a]]), k, fits, now, undo)
        undo.number[0] = 0
    put(p, r, w, k, fits, now, undo)
    return True


def release(found: Combinations, classes: Classes, now: Assignment, codes: Integers,
            units: Integers | None, costs: Floats | None, k: int) -> Integers:  # fmt: skip
    """Return the codes that are released, shape (n, q): 0 in the cells that an assignment empties.

    A class borrows the records of a lender that cost least; where units are counted, one of each
    unit, and of units that the class has not yet.
    """
    released = codes.copy()
    gone = np.full(len(found.codes), -1)
    placed = now.at >= 0
    gone[classes.moving[placed]] = now.at[placed]
    at = gone[found.of]
    moved = np.flatnonzero(at >= 0)
    released[moved] = np.where(classes.emptied[at[moved]], 0, released[moved])
    borrowing = np.flatnonzero(now.loans.sum(axis=1) > 0)
    if not len(borrowing):
        return released
    order = np.argsort(found.of, kind="stable")
    if costs is not None:
        order = np.lexsort((costs, found.of))
    ends = np.searchsorted(found.of[order], np.arange(len(found.codes) + 1))
    used = np.zeros(len(found.codes), dtype=np.int64)
    members: dict[int, list[int]] = {}
    if units is not None:
        for row in moved[np.isin(at[moved], borrowing)]:
            members.setdefault(int(at[row]), []).append(int(units[row]))
    for r in borrowing:
        there = set(members.get(int(r), ()))
        for s in range(LENDERS):
            amount = int(now.loans[r, s])
            if not amount:
                continue
            lender = int(classes.lenders[classes.fits.lender[r, s]])
            rows = order[ends[lender] : ends[lender + 1]]
            if units is None:
                taken = rows[used[lender] : used[lender] + amount]
                used[lender] += amount
            else:
                taken = _of_other_units(rows, released, codes, units, there, amount, k)
            released[taken] = np.where(classes.emptied[r], 0, released[taken])
    return released


def _of_other_units(
    rows: Integers, released: Integers, codes: Integers, units: Integers, there: set[int],
    amount: int, k: int,
) -> Integers:  # fmt: skip
    """Choose records of a lender of units that a class lacks, so that k units stay behind."""
    still = rows[(released[rows] == codes[rows]).all(axis=1)]
    left: dict[int, int] = {}
    for row in still:
        left[int(units[row])] = left.get(int(units[row]), 0) + 1
    spare, taken = len(left) - k, list[int]()
    for row in still:
        unit = int(units[row])
        if len(taken) == amount:
            break
        if unit in there or (left[unit] == 1 and spare < 1):
            continue
        spare -= left[unit] == 1
        left[unit] -= 1
        there.add(unit)
        taken.append(int(row))
    return np.array(taken, dtype=np.int64)
