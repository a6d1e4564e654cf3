"""Numbers that keep their distribution: means of groups, matched to the column's own quantiles.

Means lie closer together than what they are means of: tails, zeros and the spread go, and with them
Gini coefficients, poverty rates and quantiles. Here the means of all groups of a column are mapped
by one rising function, so that those who share a value go on sharing it: a group whose records have
the ranks from a to b among all masked ones gets the mean of the original numbers of these ranks.
These are means over a partition of the original distribution, so that its mean (and its total, with
weights) stays as it is. The squared error grows by a quantity of second order: where
masking loses the share L of the variance, by about L squared / 4.

An original number by itself is never seen: the original distribution is first cut into runs of
consecutive numbers with at least k distinct units, each replaced by its mean. A number that at
least k units have, such as 0, is a run of its own, and is released as it is; the others then make
up for what the mean has lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._types import Floats, Integers, Truths
from ..frame import View, group_ids
from ..kernels.groups import cut_runs
from ..plan.plan import MATCHED, Plan

if TYPE_CHECKING:
    from .engine import MaskedBlocks

FILLED = 0.9  # of the ranks of a level by a common number, which is then released as it is
ROUNDING = 1e-12
LARGEST = 0.1  # share by which levels may move to keep the mean


def match_numbers(
    out: MaskedBlocks, plan: Plan, view: View, weights: Floats, valid: Truths | None
) -> None:
    """Match the columns of a plan that are to keep their distribution, in each stratum.

    `valid` are the records that keep all rules: the distribution is theirs, so that bounds hold.
    """
    choices = [choice for block in plan.blocks for choice in block.choices]
    names = [choice for choice in choices if choice.operator == MATCHED]
    if not names:
        return
    strata = view.strata(plan.strata).ids
    records = np.argsort(strata, kind="stable")
    parts = np.split(records, np.cumsum(np.bincount(strata))[:-1])
    for choice in names:
        known = ~view.missing(choice.column)
        for part in parts:
            rows = part[known[part]]
            found = matched(
                out.numbers[choice.column][rows], view.numbers(choice.column)[rows], weights[rows],
                plan.k, units=None if view.units is None else view.units[rows],
                valid=None if valid is None else valid[rows],
            )  # fmt: skip
            out.numbers[choice.column][rows] = np.round(found) if choice.whole else found


def matched(
    masked: Floats,
    values: Floats,
    weights: Floats,
    k: int,
    *,
    units: Integers | None = None,
    valid: Truths | None = None,
) -> Floats:
    """Return masked numbers, mapped by a rising function to the distribution of the original ones.

    Where fewer than k valid units are there, nothing is mapped.
    """
    used = weights > 0 if valid is None else valid & (weights > 0)
    order = np.flatnonzero(used)[np.argsort(values[used], kind="stable")]
    if len(order) < k:
        return masked
    own = np.arange(len(order)) if units is None else group_ids([units[order]])
    if int(own.max()) + 1 < k:
        return masked
    runs, common = cut_runs(values[order], _previous(own), k)
    # Neighbours count alike: with weights, the mean of a run could be the number of one of them.
    levels = np.bincount(runs, values[order]) / np.bincount(runs)
    mass = np.bincount(runs, weights[order])
    mean = float(np.average(values[order], weights=weights[order]))
    ends = np.append(0.0, np.cumsum(mass))
    sums = np.append(0.0, np.cumsum(mass * levels)) / ends[-1]
    places = np.unique(masked, return_inverse=True)[1]
    shares = np.bincount(places, weights)
    if shares.sum() <= 0:
        return masked
    upto = np.append(0.0, np.cumsum(shares)) / shares.sum()
    widths = np.diff(upto)
    # The mean of the original numbers between two ranks: a difference of their running sums, or
    # the level of the run that both are in, exactly.
    ends /= ends[-1]
    first = np.searchsorted(ends, upto[:-1], side="right") - 1
    last = np.maximum(np.searchsorted(ends, upto[1:]) - 1, 0)
    alone = (first >= last) | (widths <= 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.diff(np.interp(upto, ends, sums)) / widths
    found = np.where(alone, levels[np.minimum(first, len(levels) - 1)], found)
    found, exact = _as_they_are(found, upto, values[order], weights[order], common)
    found = _mean_kept(found, exact, widths, mean)
    released = np.append(levels[[0, -1]], values[order[common[:, 0]]])
    return np.clip(found, released.min(), released.max())[places]


def _previous(units: Integers) -> Integers:
    """Return for each place that of the record before it that is of the same unit, or -1."""
    order = np.argsort(units, kind="stable")
    before = np.full(len(units), -1, dtype=np.int64)
    same = units[order[1:]] == units[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return before


def _as_they_are(
    found: Floats, upto: Floats, values: Floats, weights: Floats, common: Integers
) -> tuple[Floats, Truths]:
    """Release common numbers as they are, where they fill nearly all ranks of a level.

    `common` are the places of the first and after the last record of each.
    """
    if not len(common):
        return found, np.zeros(len(found), dtype=bool)
    ends = np.append(0.0, np.cumsum(weights))
    ends /= ends[-1]
    low, high = ends[common[:, 0]], ends[common[:, 1]]
    at = np.searchsorted(high, (upto[:-1] + upto[1:]) / 2)  # the one that may hold the middle
    at = np.minimum(at, len(common) - 1)
    shared = np.minimum(high[at], upto[1:]) - np.maximum(low[at], upto[:-1])
    exact = shared > FILLED * np.diff(upto)
    return np.where(exact, values[common[at, 0]], found), exact


def _mean_kept(found: Floats, exact: Truths, widths: Floats, mean: float) -> Floats:
    """Move the levels that are free in proportion to their size, so that the mean is kept.

    None passes a level that stays: the function goes on rising.
    """
    amount = float((widths * np.abs(found))[~exact].sum())
    change = (mean - float((widths * found).sum())) / amount if amount else 0.0
    if abs(change) < ROUNDING:
        return found
    moved = found + np.clip(change, -LARGEST, LARGEST) * np.abs(found)
    low = np.maximum.accumulate(np.where(exact, found, -np.inf))
    high = np.minimum.accumulate(np.where(exact, found, np.inf)[::-1])[::-1]
    return np.where(exact, found, np.clip(moved, low, high))
