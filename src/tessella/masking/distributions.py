"""Groups that keep distributions: categories their shares, numbers their quantiles.

*Categories.* The most frequent category takes from every minority: where one of five people in
every group is foreign, none is after masking. Here a group gets the categories of one of its
records, so that every released combination exists and rules among categories hold. Over all groups
of a block the records are chosen together: few cells change, *and* categories and pairs of columns
keep their counts. What one group owes to a minority, another one pays.

*Numbers.* Means lie closer together than what they are means of: tails, zeros and the spread go,
and with them Gini coefficients, poverty rates and quantiles. Here the means of all groups of a
column are mapped by one rising function, so that those who share a value go on sharing it: a group
whose records have the ranks from a to b among all masked ones gets the mean of the original numbers
of these ranks. These are means over a partition of the original distribution, so that its mean (and
its total, with weights) stays as it is. The squared error grows by a quantity of second order:
where masking loses the share L of the variance, by about L squared / 4.

An original number by itself is never seen: the original distribution is first cut into runs of
consecutive numbers with at least k distinct units, each replaced by its mean. A number that at
least k units have, such as 0, is a run of its own, and is released as it is; the others then make
up for what the mean has lost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..frame import View, group_ids
from ..kernels.balance import balance, count_cells
from ..kernels.groups import cut_runs, weighted_centres
from ..parallel import each
from ..plan.plan import MATCHED, Choice, Claim, Plan
from .base import rows_of_strata
from .parts import BlockCells, allowed_of, group_means

if TYPE_CHECKING:
    from .aggregation import PartOfBlock
    from .engine import MaskedBlocks

# The price of deviations, relative to that of changed cells: PRICE times a chi-square statistic,
# for each column and, together, for all tables of two columns that it is in. At 1 categories of 50
# records still lose a fifth; at 30 a tenth more cells change, and shares hardly gain.
PRICE = 10.0
# Where weights differ, categories keep their numbers of records as well, at RECORDS times that
# price. eusilc, k = 6 households: the smallest region moved by 16 % of its records and 7 % of its
# weight; at 1 by 10 and 2 %, at 2 by 6 and 4 %, and at 3 shares move by their sampling errors.
RECORDS = 2.0
# Where a category of at least FREQUENT records strays by more than the share STRAY, its price is
# raised and everything is chosen once more, in every second round with the groups in random order.
# The round whose worst category strays least counts. Small categories need this, for a group gives
# all its records to one: eusilc's 11 households of eight people strayed by 12 to 21 %.
FREQUENT = 50
STRAY = 0.05
RAISED = 3.0
ROUNDS = 24
BINS = 20  # of about the same weight, for numbers and for more than twice as many ranks
PASSES = 20
MOST_CELLS = 1 << 24  # in all tables: 128 megabytes
MOST_STEPS = 200_000_000  # records times tables that are walked through in a pass
FILLED = 0.9  # of the ranks of a level by a common number, which is then released as it is
ROUNDING = 1e-12
LARGEST = 0.1  # share by which levels may move to keep the mean


def keep_shares(
    out: MaskedBlocks, parts: Sequence[PartOfBlock], records: Floats | None = None
) -> None:
    """Choose the categories of all groups of a block, and write them to its records."""
    cells, names = parts[0].cells, parts[0].block.with_operator("member")
    if not names:
        return
    first = np.cumsum([0, *(own.count for own in parts)])
    rows = np.concatenate([own.members for own in parts])
    groups = np.concatenate([own.member_groups + start for own, start in zip(parts, first)])
    weights = np.concatenate([own.member_weights for own in parts])
    allowed = np.concatenate(
        [allowed_of(cells, own.members, names, own.claims, own.strata) for own in parts]
    )
    order = np.argsort(groups, kind="stable")
    rows, groups, weights, allowed = rows[order], groups[order], weights[order], allowed[order]
    chosen = choose_records(
        cells, names, rows, groups, weights, allowed, parts[0].strata,
        None if records is None else records[rows],
    )  # fmt: skip
    found = rows[chosen]
    for own, start in zip(parts, first):
        given = found[start : start + own.count]
        for name in names:
            out.rows[name][own.rows] = given[own.groups]
        _replace_forbidden(out, own, names, given)


def _replace_forbidden(
    out: MaskedBlocks, own: PartOfBlock, names: Sequence[Name], found: Integers
) -> None:
    """Give groups none of whose records keeps the claims what the nearest one that does has.

    Columns that claims tie together are replaced together, others stay. Where no record of the
    part keeps the claims, nothing is replaced.
    """
    from scipy.spatial import KDTree

    for tied in _tied(names, own.claims):
        allowed = allowed_of(own.cells, own.rows, tied, own.claims, own.strata)
        wrong = np.flatnonzero(~allowed[np.searchsorted(own.rows, found)])
        if not len(wrong) or not allowed.any():
            continue
        points, groups = own.embedded[own.members], own.member_groups
        centres = weighted_centres(points, own.member_weights, groups, own.count)[wrong]
        able = own.rows[allowed]
        nearest = able[KDTree(own.embedded[able]).query(centres)[1]]
        mine = np.full(own.count, -1)
        mine[wrong] = nearest
        given = mine[own.groups]
        for name in tied:
            out.rows[name][own.rows[given >= 0]] = given[given >= 0]


def _tied(names: Sequence[Name], claims: Sequence[Claim]) -> list[list[Name]]:
    """Return the sets of columns that claims tie together; columns without claims are in none."""
    sets: list[set[Name]] = []
    for claim in claims:
        about = set(claim.columns) & set(names)
        if about:
            others = [own for own in sets if own & about]
            sets = [own for own in sets if not own & about] + [about.union(*others)]
    return [[name for name in names if name in own] for own in sets]


def choose_records(
    cells: BlockCells,
    names: Sequence[Name],
    rows: Integers,
    groups: Integers,
    weights: Floats,
    allowed: Truths,
    strata: Sequence[Name] = (),
    records: Floats | None = None,
) -> Integers:
    """Return for each group the place in `rows` of the record whose categories it gets.

    Groups are 0, 1, ..., in ascending order. A group without an allowed record chooses among all.
    Where weights differ, categories keep both their weight and their number of records; `records`
    has how many released records a row stands for, by default one.
    """
    count, mass = int(groups[-1]) + 1, np.bincount(groups, weights).astype(np.float64)
    own, costs = [], np.zeros(len(rows))
    for name in names:
        codes, cost = _codes_and_costs(cells, name, rows, groups, weights, mass)
        own.append(codes)
        costs += cost
    others = [name for name in cells.columns
              if name not in names and (name in strata or name not in cells.levels)]  # fmt: skip
    # Codes as they are in the original, and as they are released if a record is chosen: columns
    # that are not chosen here have the value of the group.
    original = np.empty((len(rows), len(own) + len(others)), dtype=np.int32)
    released = np.empty_like(original)
    for at, codes in enumerate(own):
        original[:, at] = released[:, at] = codes

    def give(at: int) -> None:
        name = others[at - len(own)]
        original[:, at], released[:, at] = _given_codes(cells, name, rows, groups, weights, count)

    each(give, range(len(own), original.shape[1]))
    usable = allowed | (np.bincount(groups[allowed], minlength=count) == 0)[groups]
    candidates = _cheapest(groups, group_ids([groups, *own]), costs, usable)
    measures = _measures(weights, records)
    masses = np.column_stack([np.bincount(groups, own).astype(np.float64) for own in measures.T])
    sizes = np.maximum(original, released).max(axis=0) + 1
    tables, prices = _tables(sizes, len(own), len(rows), measures.shape[1])
    counts = count_cells(original, measures, tables, len(prices))
    rates = prices / (counts + mass.mean())
    total = float(len(rows)) if records is None else float(records.sum())
    watched = _frequent(counts, tables, sizes, measures, total)
    order, best, least = np.arange(count), np.empty(0, np.int64), np.inf
    begins, ranges = (
        np.searchsorted(of, np.arange(count + 1)) for of in (groups, groups[candidates])
    )
    codes = np.ascontiguousarray(released[candidates])
    for turn in range(min(ROUNDS, 1 + MOST_STEPS // (len(rows) * len(tables)))):
        found = balance(
            original, measures, begins, codes, ranges, costs[candidates], masses, rates, tables,
            PASSES, order,
        )  # fmt: skip
        given = count_cells(codes[found][groups], measures, tables, len(prices))
        change = np.abs(given - counts)[watched] / counts[watched]
        worst = float(change.max(initial=0.0))
        if worst < least:
            best, least = found, worst
        if worst <= STRAY:
            break
        rates[watched[change > STRAY]] *= RAISED
        order = np.random.default_rng(turn).permutation(count) if turn % 2 else np.arange(count)
    return np.asarray(candidates[best])


def _frequent(
    counts: Floats, tables: Integers, sizes: Integers, measures: Floats, total: float
) -> Integers:
    """Return the cells of single columns that hold FREQUENT or more of all `total` records."""
    last = measures.shape[1] - 1  # the measure that counts records
    least = FREQUENT * measures[:, last].sum() / total
    cells = [
        np.arange(begin, begin + sizes[column])
        for column, other, begin, _, measure in tables
        if other < 0 and measure == last
    ]
    found = np.concatenate(cells)
    return np.asarray(found[counts[found] >= least])


def _measures(weights: Floats, records: Floats | None) -> Floats:
    """Return weights, and beside them numbers of records in the same unit where these differ."""
    numbers = np.ones(len(weights)) if records is None else records
    numbers = numbers * (weights.sum() / numbers.sum())
    if np.allclose(numbers, weights, rtol=1e-9, atol=0.0):
        return weights[:, None]
    return np.column_stack([weights, numbers])


def _codes_and_costs(
    cells: BlockCells,
    name: Name,
    rows: Integers,
    groups: Integers,
    weights: Floats,
    mass: Floats,
) -> tuple[Integers, Floats]:
    """Return the codes of a column in tables, and what its value costs if a group gets it.

    That is the weight of the records of the group with another category; of ranks, their squared
    differences, which are 1 on average for two records drawn at random.
    """
    codes = group_ids([cells.view.codes(name)[rows]])
    if cells.view.kind(name) != "ordinal":
        same = group_ids([groups, codes])
        return codes, mass[groups] - np.bincount(same, weights)[same]
    ranks = cells.column(name)[rows]
    known = ~np.isnan(ranks)
    spread = float(ranks[known].var()) if known.any() else 0.0
    ranks = np.where(known, ranks, 0.0)
    means = group_means(ranks[:, None], weights, groups, len(mass))[groups, 0]
    if codes.max() >= 2 * BINS:
        codes = np.where(known, 1 + np.searchsorted(_edges(ranks[known], weights[known]), ranks), 0)
    return codes, mass[groups] * (ranks - means) ** 2 / (2 * spread or 1.0)


def _given_codes(
    cells: BlockCells, name: Name, rows: Integers, groups: Integers, weights: Floats, count: int
) -> tuple[Integers, Integers]:
    """Return the codes of a stratum, or the bins of numbers, before and as means of groups.

    Bins are those of the means, and of the original numbers those of the same ranks: what means do
    to the distribution of a column, no choice of categories can mend, nor should it try.
    """
    if name in cells.levels:
        codes = group_ids([cells.view.codes(name)[rows]])
        return codes, codes
    values = cells.column(name)[rows]
    known = ~np.isnan(values)
    before, after = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    if not known.any():
        return before, after
    means = group_means(np.where(known, values, 0.0)[:, None], weights, groups, count)[groups, 0]
    after[known] = 1 + np.searchsorted(_edges(means[known], weights[known]), means[known])
    order = np.flatnonzero(known)[np.argsort(values[known], kind="stable")]
    ends = np.cumsum(np.bincount(after[known], weights[known]))[1:]
    middles = np.cumsum(weights[order]) - weights[order] / 2
    before[order] = 1 + np.minimum(np.searchsorted(ends, middles), len(ends) - 1)
    return before, after


def _edges(values: Floats, weights: Floats) -> Floats:
    """Return the values that end bins of about the same weight."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    at = np.searchsorted(total, np.arange(1, BINS) / BINS * total[-1])
    return np.unique(values[order[np.minimum(at, len(order) - 1)]])


def _cheapest(groups: Integers, same: Integers, costs: Floats, usable: Truths) -> Integers:
    """Return, group by group, the usable record that costs least of each combination of codes."""
    order = np.lexsort((costs, same, groups))
    order = order[usable[order]]
    first: Integers = order[np.append(True, np.diff(same[order]) != 0)]
    return first


def _tables(sizes: Integers, d: int, n: int, measures: int = 1) -> tuple[Integers, Floats]:
    """List the tables of one and of two columns as `balance` takes them; the price of each cell.

    The first d columns are chosen, and one of a pair is. Of a pair with more cells than records
    most cells hold one record or none, which says nothing of shares: it is left out. Pairs are
    counted in the first measure, single columns in all.
    """
    width = len(sizes)
    sizes = sizes.astype(np.int64)
    pairs = [(a, b) for a, b in combinations(range(width), 2) if a < d and sizes[a] * sizes[b] <= n]
    pairs.sort(key=lambda pair: int(sizes[pair[0]] * sizes[pair[1]]))
    lines = [(a, -1, 1, int(sizes[a]), m) for m in range(measures) for a in range(d)]
    total = measures * int(sizes[:d].sum())
    for a, b in pairs[: max(0, MOST_STEPS // n - len(lines))]:
        cells = int(sizes[a] * sizes[b])
        if total + cells > MOST_CELLS:
            break
        lines.append((a, b, int(sizes[b]), cells, 0))
        total += cells
    begins = np.cumsum([0, *(cells for *_, cells, _ in lines)])
    tables = np.array([(a, b, begin, q, m) for (a, b, q, _, m), begin in zip(lines, begins)])
    prices = [
        np.full(cells, PRICE / (width - 1) if b >= 0 else PRICE * (RECORDS if measure else 1.0))
        for _, b, _, cells, measure in lines
    ]
    return tables.astype(np.int64), np.concatenate(prices)


def match_numbers(
    out: MaskedBlocks, plan: Plan, view: View, weights: Floats, valid: Truths | None,
    common: Collection[Name] = (),
) -> None:  # fmt: skip
    """Match the columns of a plan that are to keep their distribution, in each stratum.

    `valid` are the records that keep all rules: the distribution is theirs, so that bounds hold.
    Columns of `common` are the same in all records of a unit, and so is what they are mapped to:
    strata that part its records do not count for them.
    """
    choices = [choice for block in plan.blocks for choice in block.choices]
    names = [choice for choice in choices if choice.operator == MATCHED]
    if not names:
        return
    layers = {True: [name for name in plan.strata if name in common], False: plan.strata}
    parts = {shared: rows_of_strata(view.strata(columns).ids) for shared, columns in layers.items()}
    sides = {choice.column: (~view.missing(choice.column), view.numbers(choice.column))
             for choice in names}  # fmt: skip

    def match(choice: Choice) -> None:
        known, numbers = sides[choice.column]
        for part in parts[choice.column in common]:
            rows = part[known[part]]
            found = matched(
                out.numbers[choice.column][rows], numbers[rows], weights[rows],
                plan.k, units=None if view.units is None else view.units[rows],
                valid=None if valid is None else valid[rows],
            )  # fmt: skip
            out.numbers[choice.column][rows] = np.round(found) if choice.whole else found

    each(match, names)


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
