"""The attack "dominance": size times mean of a released group, taken for the value of a record.

Whoever sees that a group has 5 records and a mean of 200 million knows a total of a billion, and
if one record has nearly all of it, that record's value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name
from ..exceptions import BadTableError
from ..frame import Pair, View, group_ids
from ..grouping.dominance import NEAR, DominanceRule, find_dominated
from .assessment import Attack, Case
from .estimate import Estimate

RULE = DominanceRule(p=100 * NEAR)
ALONE = 0.05  # of the records that a further column may leave alone and still be of the same block


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
