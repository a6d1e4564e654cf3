"""Events of records, and whether two of them exclude each other more than chance would do it."""

from __future__ import annotations

from dataclasses import dataclass

from ..._types import Integers, Name
from .chance import FEWER, Demands, expected, log_chance, raised

FEWEST = 5  # records of an event that is looked at


@dataclass(frozen=True, eq=False)
class Event:
    """Something that is true or false of a record, as rules write it and its opposite.

    `signs` of shape (n,): 1 where it is true, -1 where it is not, 0 where unknown.
    `value` is the category or number that the column then has, as rules write it, `other` the one
    that it has otherwise, if there is only one; `negates`, whether the opposite only says != value.
    """

    column: Name
    text: str
    opposite: str
    signs: Integers
    source: int  # the number of the column among those that events come from
    value: str | None = None
    other: str | None = None
    negates: bool = False


def excludes(
    both: float, first: float, second: float, records: float, demands: Demands, hypotheses: float
) -> float | None:
    """Return the chance of two literals that exclude each other; None if they do not.

    Of `records` records, `first` and `second` show the one and the other, and `both` both.
    """
    fewer = min(first, second)
    if records <= 0 or fewer < FEWEST or both > (1 - demands.strict) * fewer:
        return None
    by_chance = first * second / records
    if both > FEWER * by_chance:
        return None
    # Among the records of the rarer literal, the other is absent: by chance, in a share of them.
    absent = raised(1 - max(first, second) / records, records)
    chance = expected(log_chance(fewer - both, fewer, absent), hypotheses)
    return chance if chance <= demands.chance else None
