"""What the values of one column tell about another: numbers of units, and codes of places.

Records of one unit are told apart by a column that counts them (year, visit, person number), and
share what describes the unit (sex, sector). So pairs of records with the same number of a unit
never agree in the first and always in the second. By chance they would in a share that is known:
only what chance would do about once in e^20 tables counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from .._types import Floats, Integers, Name, Truths

LOOKED_AT = 20_000  # records whose pairs are compared
BY_CHANCE = 20.0  # pairs that chance would make agree (differ), where none does


@dataclass(frozen=True, kw_only=True)
class Relations:
    """Columns that count the records of each value of a column, and columns that describe it."""

    counting: tuple[Name, ...] = ()
    describing: tuple[Name, ...] = ()


@dataclass(frozen=True, eq=False)
class Codes:
    """Some records of a column: whole numbers in the order of its values, -1 where missing."""

    codes: Integers
    ordered: bool  # whether it holds numbers, whose order means something


Read = Callable[[Name, Integers], Codes]  # the values of a column in some records


def relate(name: Name, others: Iterable[Name], read: Read, rows: Integers) -> Relations:
    """Find how other columns relate to one, in some records."""
    rows, own = _by_value(name, read, rows)
    same = own[1:] == own[:-1]
    counting, describing = [], []
    for other in others:
        if other == name or _differs_and_agrees((values := read(other, rows)).codes, same):
            continue
        found = _compare(own, values.codes)
        if found == "differ":
            counting.append(other)
        elif found == "agree" and _is_label(own, values):
            describing.append(other)
    return Relations(counting=tuple(counting), describing=tuple(describing))


def is_constant(name: Name, unit: Name, read: Read, rows: Integers) -> bool:
    """Return whether a column has one value, or none, in each unit."""
    rows, own = _by_value(unit, read, rows)
    values = read(name, rows).codes
    return bool((values[1:] == values[:-1])[own[1:] == own[:-1]].all())


def _by_value(name: Name, read: Read, rows: Integers) -> tuple[Integers, Integers]:
    """Return records in the order of their values, with these: all records of the first values."""
    own = read(name, rows).codes
    counts = np.cumsum(np.bincount(own[own >= 0]))
    last = max(int(np.searchsorted(counts, LOOKED_AT, side="right")), 1)
    taken = np.flatnonzero((own >= 0) & (own < last))
    taken = taken[np.argsort(own[taken], kind="stable")]
    return rows[taken], own[taken]


def _differs_and_agrees(values: Integers, same: Truths) -> bool:
    """Return whether neighbours with the same value do both: so most columns are rejected."""
    known = same & (values[1:] >= 0) & (values[:-1] >= 0)
    agree = values[1:] == values[:-1]
    return bool((known & agree).any() and (known & ~agree).any())


def _compare(own: Integers, values: Integers) -> str:
    """Return whether pairs of records with the same value "agree" or "differ", or neither: "".

    The most common value does not count: firms without staff agree in hours and in wages, all 0.
    """
    known = values >= 0
    own, values = own[known], values[known]
    if len(own) < 2:
        return ""
    within = _pairs(own)
    usual = float(np.unique(own, return_counts=True)[1].max())
    evidence = within - usual * (usual - 1) / 2
    agreeing = _pairs(own * (int(values.max()) + 1) + values)
    chance = _pairs(values) / (len(values) * (len(values) - 1) / 2)
    if agreeing == 0 and evidence * chance >= BY_CHANCE:
        return "differ"
    return "agree" if agreeing == within and evidence * (1 - chance) >= BY_CHANCE else ""


def _pairs(values: Integers) -> float:
    counts: Floats = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1)).sum() / 2)


def _is_label(own: Integers, other: Codes) -> bool:
    """Return whether a column describes the values of another as labels, not as an amount.

    Classes of an amount (age, and groups of age) and functions of it (its square) change along it
    in few steps, or rise and fall in long runs; what describes the numbers of units changes as
    often as in any order of them, and turns as often.
    """
    known = other.codes >= 0
    levels, first = np.unique(own[known], return_index=True)
    values = other.codes[known][first]
    shares = np.unique(values, return_counts=True)[1] / len(levels)
    expected = 1 + (len(levels) - 1) * (1 - float((shares**2).sum()))
    changes = np.flatnonzero(np.diff(values))
    if len(changes) + 1 < max(5.0, expected / 2):
        return False
    if not other.ordered or len(shares) == 2:
        return True
    rises = np.sign(np.diff(values)[changes])
    return bool(np.mean(rises[1:] != rises[:-1]) > 0.4)  # two thirds in any order, none of a curve
