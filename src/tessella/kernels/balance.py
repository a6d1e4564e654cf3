"""Counts that are kept: which record gives each group its categories.

Vocabulary: a *table* counts the records by one column or by two, in a *measure*: by their weights,
or as they are; its *cells* are numbered through all tables. The *deviation* of a cell is what was
released in it less what the original has in it. A *candidate* is a record whose categories a group
may get.
"""

from typing import Any

import numpy as np

from .._types import Floats, Integers
from . import kernel

# A move must gain more than rounding may feign, or two choices could alternate for ever.
LEAST_GAIN = 1e-9
# A pass in which one group of so many changes is the last.
STALLED = 2_000


@kernel
def _cell(codes: Any, i: int, tables: Integers, t: int) -> int:
    """Return the cell of a record in a table: begin + code of one column, or of two."""
    first, second = tables[t, 0], tables[t, 1]
    cell: int = tables[t, 2] + codes[i, first]
    if second >= 0:
        cell = tables[t, 2] + codes[i, first] * tables[t, 3] + codes[i, second]
    return cell


@kernel
def count_cells(codes: Any, weights: Floats, tables: Integers, n_cells: int) -> Floats:
    """Return the weight of the records in each cell, in the measure of its table."""
    counts = np.zeros(n_cells)
    for i in range(codes.shape[0]):
        for t in range(tables.shape[0]):
            counts[_cell(codes, i, tables, t)] += weights[i, tables[t, 4]]
    return counts


@kernel
def _best(
    codes: Any, first: int, last: int, costs: Floats, mass: Floats, deviations: Floats,
    rates: Floats, tables: Integers, current: int,
) -> int:  # fmt: skip
    """Return the candidate of a group, from `first` to `last`, that costs least to give.

    A cell with deviation v costs r v^2, so that giving it to a group of weight m costs another
    r ((v + m)^2 - v^2) = r m (2 v + m). `current` stays unless another is better, see LEAST_GAIN.
    """
    best, least = current, np.inf
    for c in range(first, last):
        price = costs[c]
        for t in range(tables.shape[0]):
            cell = _cell(codes, c, tables, t)
            m = mass[tables[t, 4]]
            price += rates[cell] * m * (2.0 * deviations[cell] + m)
        if c == current:
            price -= LEAST_GAIN * (1.0 + abs(price))
        if price < least:
            best, least = c, price
    return best


@kernel
def _give(
    codes: Any, c: int, sign: float, mass: Floats, deviations: Floats, tables: Integers
) -> None:
    for t in range(tables.shape[0]):
        deviations[_cell(codes, c, tables, t)] += sign * mass[tables[t, 4]]


@kernel
def balance(
    original: Any, weights: Floats, begins: Integers, codes: Any, ranges: Integers,
    costs: Floats, mass: Floats, rates: Floats, tables: Integers, passes: int,
    order: Integers,
) -> Integers:  # fmt: skip
    """Choose a candidate for each group, so that cells keep their weights at little cost.

    Minimises sum_g costs[chosen_g] + sum_cells rates * deviations^2. A first pass carries what is
    owed from group to group: a cell's deviation counts the records of the groups visited so far
    (error diffusion, as in halftoning). Then each group in turn takes its best candidate given all
    others, until hardly one changes or `passes` are over. For large categories the order of groups
    does not matter: a path along near ones and one at random gave shares that agree to the third
    digit. A small one, in few groups, is met by some orders better than by others.

    Parameters
    ----------
    original, weights : arrays of shape (n, d) and (n, measures)
        Codes of the records, group by group: those of group g from `begins[g]` to `begins[g + 1]`.
    codes, costs : arrays of shape (m, d) and (m,)
        Codes of the candidates, group by group in `ranges`, and what each costs its group.
    mass : array of shape (groups, measures)
        The weight of each group.
    rates : array of shape (cells,)
        The price of a squared deviation in each cell.
    tables : array of shape (tables, 5)
        First column, second column or -1, first cell, number of codes of the second column, and
        measure.
    order : array of shape (groups,)
        In which the groups are visited.
    """
    n_groups = mass.shape[0]
    deviations = np.zeros(rates.shape[0])
    chosen = np.empty(n_groups, dtype=np.int64)
    for g in order:
        for i in range(begins[g], begins[g + 1]):
            _give(original, i, -1.0, weights[i], deviations, tables)
        chosen[g] = _best(
            codes, ranges[g], ranges[g + 1], costs, mass[g], deviations, rates, tables, -1
        )
        _give(codes, chosen[g], 1.0, mass[g], deviations, tables)
    for _ in range(passes):
        changed = 0
        for g in order:
            if ranges[g + 1] - ranges[g] < 2:
                continue
            _give(codes, chosen[g], -1.0, mass[g], deviations, tables)
            best = _best(
                codes, ranges[g], ranges[g + 1], costs, mass[g], deviations, rates, tables,
                chosen[g],
            )  # fmt: skip
            changed += best != chosen[g]
            chosen[g] = best
            _give(codes, best, 1.0, mass[g], deviations, tables)
        if changed * STALLED <= n_groups:
            break
    return chosen
