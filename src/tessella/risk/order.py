"""The attack "order": what the order of the released records gives away.

In the order of the original, the place of a record is its name to everybody who knows that order.
And where the records of a household stand together, whoever knows that a household begins with its
head rebuilds the households: with 4 and 5 records next to each other, k records no longer hide one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from .._types import Floats, Integers, Truths
from ..frame import View, group_ids
from .assessment import Attack, Case
from .estimate import Estimate

VALUES = 30  # of a column that may say where a unit begins


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
