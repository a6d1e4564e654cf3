"""Categories that keep their shares: the record that gives each group its categories.

The most frequent category takes from every minority: where one of five people in every group is
foreign, none is after masking. Here a group gets the categories of one of its records, so that
every released combination exists and rules among categories hold. Over all groups of a block the
records are chosen together: few cells change, *and* categories and pairs of columns keep their
counts. What one group owes to a minority, another one pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..frame import group_ids
from ..kernels.balance import balance, count_cells
from ..kernels.groups import weighted_centres
from ..plan.plan import Claim
from .parts import BlockCells, allowed_of, group_means

if TYPE_CHECKING:
    from .aggregation import PartOfBlock
    from .engine import MaskedBlocks

# The price of deviations, relative to that of changed cells: PRICE times a chi-square statistic,
# for each column and, together, for all tables of two columns that it is in. At 1 categories of 50
# records still lose a fifth; at 30 a tenth more cells change, and shares hardly gain.
PRICE = 10.0
BINS = 20  # of about the same weight, for numbers and for more than twice as many ranks
PASSES = 20
MOST_CELLS = 1 << 24  # in all tables: 128 megabytes
MOST_STEPS = 200_000_000  # records times tables that are walked through in a pass


def keep_shares(out: MaskedBlocks, parts: Sequence[PartOfBlock]) -> None:
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
    chosen = choose_records(cells, names, rows, groups, weights, allowed, parts[0].strata)
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
) -> Integers:
    """Return for each group the place in `rows` of the record whose categories it gets.

    Groups are 0, 1, ..., in ascending order. A group without an allowed record chooses among all.
    """
    count, mass = int(groups[-1]) + 1, np.bincount(groups, weights).astype(np.float64)
    own, costs = [], np.zeros(len(rows))
    for name in names:
        codes, cost = _codes_and_costs(cells, name, rows, groups, weights, mass)
        own.append(codes)
        costs += cost
    other = [_given_codes(cells, name, rows, groups, weights, count)
             for name in cells.columns if name not in names
             and (name in strata or name not in cells.levels)]  # fmt: skip
    # Codes as they are in the original, and as they are released if a record is chosen: columns
    # that are not chosen here have the value of the group.
    original, released = (
        np.column_stack([*own, *(codes[side] for codes in other)]).astype(np.int32)
        for side in (0, 1)
    )
    usable = allowed | (np.bincount(groups[allowed], minlength=count) == 0)[groups]
    candidates = _cheapest(groups, group_ids([groups, *own]), costs, usable)
    tables, prices = _tables(np.maximum(original, released).max(axis=0) + 1, len(own), len(rows))
    counts = count_cells(original, weights, tables, len(prices))
    found = balance(
        original, weights, np.searchsorted(groups, np.arange(count + 1)),
        np.ascontiguousarray(released[candidates]),
        np.searchsorted(groups[candidates], np.arange(count + 1)), costs[candidates], mass,
        prices / (counts + mass.mean()), tables, PASSES,
    )  # fmt: skip
    return np.asarray(candidates[found])


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


def _tables(sizes: Integers, d: int, n: int) -> tuple[Integers, Floats]:
    """List the tables of one and of two columns as `balance` takes them; the price of each cell.

    The first d columns are chosen, and one of a pair is. Of a pair with more cells than records
    most cells hold one record or none, which says nothing of shares: it is left out.
    """
    width = len(sizes)
    sizes = sizes.astype(np.int64)
    pairs = [(a, b) for a, b in combinations(range(width), 2) if a < d and sizes[a] * sizes[b] <= n]
    pairs.sort(key=lambda pair: int(sizes[pair[0]] * sizes[pair[1]]))
    lines = [(a, -1, 1, int(sizes[a])) for a in range(d)]
    total = int(sizes[:d].sum())
    for a, b in pairs[: max(0, MOST_STEPS // n - d)]:
        cells = int(sizes[a] * sizes[b])
        if total + cells > MOST_CELLS:
            break
        lines.append((a, b, int(sizes[b]), cells))
        total += cells
    begins = np.cumsum([0, *(cells for *_, cells in lines)])
    tables = np.array([(a, b, begin, q) for (a, b, q, _), begin in zip(lines, begins)])
    prices = [np.full(c, PRICE if b < 0 else PRICE / (width - 1)) for _, b, _, c in lines]
    return tables.astype(np.int64), np.concatenate(prices)
