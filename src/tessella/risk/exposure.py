"""Attacks on what a release shows as a whole: the order of its records, totals of its groups.

"order": in the order of the original, the place of a record is its name to everybody who knows that
order. And where the records of a household stand together, whoever knows that a household begins
with its head rebuilds the households: with 4 and 5 records next to each other, k records no longer
hide one.

"individual risk", "k-map" and "delta-presence": whoever knows how large the population is, or has a
list of it, finds who else has the keys of a record, and how many of them are in the release.

"dominance": whoever sees that a group has 5 records and a mean of 200 million knows a total of a
billion, and if one record has nearly all of it, that record's value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError
from ..frame import Pair, View, group_ids
from ..grouping.dominance import NEAR, DominanceRule, find_dominated
from .anonymity.individual import IndividualRisk, individual_risk
from .anonymity.presence import KMap, Presence, delta_presence, k_map
from .assessment import Attack, Case
from .estimate import Estimate

VALUES = 30  # of a column that may say where a unit begins
RULE = DominanceRule(p=100 * NEAR)
ALONE = 0.05  # of the records that a further column may leave alone and still be of the same block


@dataclass(frozen=True, kw_only=True)
class OrderRisk(Estimate):
    """The share of records that the order gives away; `baseline` is that of a random order.

    Parameters
    ----------
    named : int
        Records that stand where they stood in the original.
    rebuilt : int or None
        Units whose records are exactly one run of the release, cut by the best of the public cuts;
        None without units.
    chance : array of shape (n,)
        1 for records that are named or whose unit is rebuilt, 0 for others; in the released order.
    """

    named: int
    rebuilt: int | None
    chance: Floats = field(repr=False)


def attack_order(case: Case) -> OrderRisk:
    """Name records by their place, and cut the release into units.

    A unit is taken to begin where a column has some value, where a column changes, or where any of
    those changes that are constant within units. The cut that rebuilds most units counts: the
    intruder is lucky. O(n) for each cut.
    """
    pair = case.tables.pair
    order = case.order
    assert pair is not None
    assert order is not None
    masked, units = pair.masked, pair.masked.read_units(case.unit)
    named = (pair.rows[order] == np.arange(len(order))) & (len(order) > 1)
    found, rebuilt = named.astype(np.float64), None
    assumptions = ["he knows the order of the original"]
    baseline = 1 / len(order)
    if units is not None and len(np.unique(units)) < len(units):
        cuts = list(_cuts(masked, units))
        best, rebuilt = _rebuild(cuts, units, order)
        drawn = np.random.default_rng(case.seed).permutation(len(order))
        by_chance, _ = _rebuild(cuts, units, drawn)
        found, baseline = np.maximum(found, best), max(baseline, float(by_chance.mean()))
        assumptions.append(f"he knows where units begin: {rebuilt:,} of them are rebuilt")
    return OrderRisk.of_chances(
        found,
        baseline=baseline,
        named=int(named.sum()),
        rebuilt=rebuilt,
        attack="take the place of a record for its name, and neighbours for one unit",
        assumptions=tuple(assumptions),
    )


def _cuts(masked: View, units: Integers) -> Iterator[tuple[str, Integers]]:
    """Yield columns as codes: a unit may begin at one value ("value"), or at a change."""
    first = np.unique(units, return_index=True)[1]
    constant = []
    for name in masked.columns:
        codes = np.unique(masked.codes(name), return_inverse=True)[1]
        if (codes == codes[first][units]).all():
            constant.append(codes)
        if codes.max() < VALUES:
            yield "value", codes
        yield "change", codes
    if len(constant) > 1:
        yield "change", group_ids(constant)


def _rebuild(
    cuts: list[tuple[str, Integers]], units: Integers, order: Integers
) -> tuple[Floats, int]:
    """Return which records are in rebuilt units, in the released order, and how many units are."""
    own, size = units[order], np.bincount(units)
    best, most = np.zeros(len(order)), 0
    for kind, codes in cuts:
        placed = codes[order]
        starts: list[Truths] = []
        if kind == "value":
            starts = [placed == value for value in range(int(codes.max()) + 1)]
        else:
            starts = [np.append(True, placed[1:] != placed[:-1])]
        for start in starts:
            hit, count = _exact(start, own, size)
            if count > most:
                best, most = hit.astype(np.float64), count
    return best, most


def _exact(start: Truths, own: Integers, size: Integers) -> tuple[Truths, int]:
    """Return the records of runs that are exactly one unit, and the number of these runs."""
    start = start.copy()
    start[0] = True
    run = np.cumsum(start) - 1
    at = np.flatnonzero(start)
    lengths = np.diff(np.append(at, len(own)))
    whole = np.ones(len(at), dtype=bool)
    whole[run[own != own[at][run]]] = False
    whole &= lengths == size[own[at]]
    return whole[run], int(whole.sum())


ORDER = Attack(
    "order", "table", attack_order, "quick",
    lambda case: "" if case.order is not None else "the order of the release is not given: order=",
    "takes the place of a record for its name, and neighbours for one household",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Dominance(Estimate):
    """The share of records of which a value is within 10 % of size times mean of their group.

    `baseline` counts those of which the same value is as near to the released one.

    Parameters
    ----------
    cells : mapping of name to int
        How many values of each column are that near.
    chance : array of shape (n,)
        1 for the records that have such a value, 0 for others.
    """

    cells: dict[Name, int]
    chance: Floats = field(repr=False)


def attack_dominance(case: Case) -> Dominance:
    """Compare size times mean of each released group with the originals; exact, in O(n log n).

    Groups are found in the released table: columns of one block leave hardly anybody alone. With
    weights w, the guess for record i of a group is (sum of w) mean / w_i. Zeros are no values that
    somebody dominates by.
    """
    pair = _pair(case)
    masked = pair.masked
    weights = masked.weights(case.weights)
    hit = np.zeros(masked.n_rows, dtype=bool)
    plain, cells = hit.copy(), {}
    for names, groups in _blocks(case):
        for name in names:
            x, released = pair.numbers(name)
            within = find_dominated(groups, x, released, weights, RULE).within
            hit |= within
            plain |= within & (np.abs(released - x) <= NEAR * np.abs(x))
            if within.any():
                cells[name] = int(within.sum())
    return Dominance.of_chances(
        hit.astype(np.float64),
        baseline=float(plain.mean()),
        cells=cells,
        attack="size times mean of a group, within 10 % of a value",
        assumptions=(
            "he knows which group the record is in, and that it has most of the group's total",
            "by guessing: the released value itself is as near to the same value",
            *(f"{count:,} values of {name}" for name, count in cells.items()),
        ),
    )


def skip_reason(case: Case) -> str:
    """Return why there are no groups with totals; an empty text if there are."""
    blocks = _blocks(case)
    if not blocks:
        return "no column of numbers was masked"
    alone = all(np.bincount(groups).max() < 2 for _, groups in blocks)
    return "no two records share their released values" if alone else ""


def _magnitudes(case: Case) -> list[Name]:
    """List the columns of numbers in both tables that were changed."""
    found: list[Name] = []
    pair = _pair(case)
    for name in pair.masked.columns:  # blocks are found in the order of the released table
        if name not in pair.columns or name == case.id or not pair.is_number(name):
            continue
        try:
            x, released = pair.numbers(name)
        except BadTableError:  # too many digits to be compared as numbers
            continue
        if (x != released)[~(np.isnan(x) & np.isnan(released))].any():
            found.append(name)
    return found


def _blocks(case: Case) -> list[tuple[list[Name], Integers]]:
    """Return the blocks of masked numbers and the groups of each, as the release shows them."""
    return case.keep("released groups", lambda: _find_blocks(_pair(case).masked, _magnitudes(case)))


def _pair(case: Case) -> Pair:
    """Return the two tables as the other attacks read them."""
    pair = case.tables.pair
    assert pair is not None
    return pair


def _find_blocks(view: View, names: list[Name]) -> list[tuple[list[Name], Integers]]:
    """Put columns together as long as hardly any record is left alone by that."""
    blocks: list[tuple[list[Name], Integers]] = []
    most = ALONE * view.n_rows
    for name in names:
        own: Any = group_ids([view.codes(name)])
        for place, (members, groups) in enumerate(blocks):
            joint = group_ids([groups, own])
            if _alone(joint) <= max(_alone(groups), _alone(own)) + most:
                blocks[place] = ([*members, name], joint)
                break
        else:
            blocks.append(([name], own))
    return blocks


def _alone(groups: Integers) -> int:
    return int((np.bincount(groups) == 1).sum())


DOMINANCE = Attack(
    "dominance", "attribute", attack_dominance, "quick", skip_reason,
    "takes size times mean of a group for its largest value, within 10 %",
)  # fmt: skip


def attack_individual(case: Case) -> IndividualRisk:
    """Look for a record's person in the population that weights tell of."""
    given = {"weights": case.weights, "unit": case.unit, "schema": case.schema}
    return individual_risk(case.masked, known=case.keys, **given)


def _no_weights(case: Case) -> str:
    weights = View.of(case.masked, case.schema).weights() if case.weights is None else True
    return "there are no sampling weights" if weights is None else ""


INDIVIDUAL = Attack(
    "individual risk", "table", attack_individual, "quick", _no_weights,
    "looks for a record's person in the population",
)  # fmt: skip


def _in_population(case: Case) -> dict[str, Any]:
    """Return the options of both measures."""
    return {
        "known": case.keys, "schema": case.schema, "unit": case.unit,
        "counts": case.population_counts,
    }  # fmt: skip


def attack_k_map(case: Case) -> KMap:
    """Look the released keys up in the population."""
    return k_map(case.masked, case.population, **_in_population(case))


def attack_presence(case: Case) -> Presence:
    """Say of everybody in the population whether they are in the release."""
    return delta_presence(case.masked, case.population, **_in_population(case))


def _no_population(case: Case) -> str:
    return "" if case.population is not None else "no population is given: give population="


WITH_POPULATION = "population"  # the effort of attacks that are tried where a population is given
K_MAP = Attack(
    "k-map", "table", attack_k_map, WITH_POPULATION, _no_population,
    "looks the released keys up in a list of the population",
)  # fmt: skip
PRESENCE = Attack(
    "delta-presence", "table", attack_presence, WITH_POPULATION, _no_population,
    "infers from the keys who of the population is in the release",
)  # fmt: skip
