"""Linear equalities between columns, and how many records obey them, in whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..._types import Integers, Truths
from .chance import Demands
from .columns import LARGEST, Figure

MOST_TERMS = 12
FIRST_LOOK = 300  # records that a vector is tried on first
EVERY = slice(None)


@dataclass(frozen=True, eq=False)
class Equality:
    """The sum of coefficients times columns is a constant, up to a slack.

    Columns are places among the figures; constant and slack are in units of 10**-decimals.
    """

    terms: tuple[tuple[int, int], ...]  # place and coefficient, by place; the first is positive
    constant: int = 0
    slack: int = 0
    decimals: int = 0

    @property
    def places(self) -> tuple[int, ...]:
        """The columns."""
        return tuple(place for place, _ in self.terms)

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two of them the same."""
        return self.terms, Fraction(self.constant, 10**self.decimals)


class Counts:
    """Counts how many records of the sample obey equalities, exactly."""

    def __init__(self, figures: Sequence[Figure], demands: Demands) -> None:
        self.figures, self.demands = figures, demands

    def residual(self, equality: Equality, rows: slice = EVERY) -> Integers | None:
        """Return the sum minus the constant of each record; None where it could overflow."""
        columns = [self.figures[place] for place in equality.places]
        decimals = max(equality.decimals, *(one.decimals for one in columns))
        size = abs(equality.constant) * 10 ** (decimals - equality.decimals)
        for (_, coefficient), one in zip(equality.terms, columns):
            size += abs(coefficient) * one.largest * 10 ** (decimals - one.decimals)
        if size >= LARGEST:
            return None
        found = -equality.constant * 10 ** (decimals - equality.decimals)
        total = np.full(len(columns[0].values[rows]), found, dtype=np.int64)
        for (_, coefficient), one in zip(equality.terms, columns):
            assert one.whole is not None
            total += coefficient * 10 ** (decimals - one.decimals) * one.whole[rows]
        return total

    def judged(self, equality: Equality, rows: slice = EVERY) -> Truths:
        """Return the records that say something: all known, and two of the terms not 0."""
        filled = np.zeros(len(self.figures[0].known[rows]), dtype=np.int64)
        known = np.ones(len(filled), dtype=bool)
        for place in equality.places:
            one = self.figures[place]
            assert one.whole is not None
            known &= one.known[rows]
            filled += one.whole[rows] != 0
        return known & (filled + (equality.constant != 0) >= 2)

    def in_own_units(self, equality: Equality) -> Equality:
        """Return an equality in units of the last decimal of its columns."""
        decimals = max(self.figures[place].decimals for place in equality.places)
        constant = Fraction(equality.constant * 10**decimals, 10**equality.decimals)
        if constant.denominator != 1:
            return equality
        return replace(equality, constant=int(constant), decimals=decimals)

    def most_slack(self, equality: Equality) -> int:
        """Return by how many units rounding can have moved a sum: half a unit for each term."""
        columns = [self.figures[place] for place in equality.places]
        plain = all(abs(coefficient) == 1 for _, coefficient in equality.terms)
        return len(columns) // 2 if plain and not any(one.is_code for one in columns) else 0

    def promises(self, equality: Equality) -> bool:
        """Return whether at least half of the records obey, or do but for rounding."""
        allowed = self.slack(replace(equality, slack=self.most_slack(equality)))
        # Records are sorted by their values: every so many of them stand for all.
        apart = len(self.figures[0].values) // FIRST_LOOK
        for rows in (slice(None, None, max(apart, 1)), slice(None)):
            residual, judged = self.residual(equality, rows), self.judged(equality, rows)
            if residual is None:
                return False
            if judged.any() and (np.abs(residual[judged]) <= allowed).mean() < 0.5:
                return False
        return bool(judged.any())

    def share(self, equality: Equality) -> float:
        """Return the share of the records that say something which obey."""
        residual, judged = self.residual(equality), self.judged(equality)
        if residual is None or not judged.any():
            return 0.0
        return float((np.abs(residual[judged]) <= self.slack(equality)).mean())

    def slack(self, equality: Equality) -> int:
        """Return the slack of an equality in the units of its residual."""
        columns = [self.figures[place] for place in equality.places]
        decimals = max(equality.decimals, *(one.decimals for one in columns))
        return int(equality.slack * 10 ** (decimals - equality.decimals))

    def holds(self, equality: Equality) -> bool:
        """Return whether enough records obey."""
        return self.share(equality) >= self.demands.holds

    def broken(self, equality: Equality) -> int:
        """Return how many records are known to break an equality."""
        residual = self.residual(equality)
        if residual is None:
            return len(self.figures[0].values)
        known = np.logical_and.reduce([self.figures[place].known for place in equality.places])
        return int((known & (np.abs(residual) > self.slack(equality))).sum())

    def completed(self, candidates: Iterable[Equality]) -> list[Equality]:
        """Add the column that is what most of the broken records are off by, if there is one.

        A part that is nearly always 0 may be 0 in all records that a vector was found in.
        """
        found = {one.key: one for one in candidates}
        waiting = list(found.values())
        while waiting:
            equality = waiting.pop()
            residual, judged = self.residual(equality), self.judged(equality)
            if residual is None or len(equality.terms) >= MOST_TERMS:
                continue
            off = judged & (residual != 0)
            if off.sum() < 3 or any(abs(c) != 1 for _, c in equality.terms):
                continue
            for place, one in enumerate(self.figures):
                if place in equality.places:
                    continue
                for sign in (1, -1):
                    longer = _extended(equality, place, sign)
                    rest = self.residual(longer)
                    here = off & one.known
                    if rest is None or here.sum() < 3 or (rest[here] == 0).mean() < 0.5:
                        continue
                    if longer.key not in found:
                        found[longer.key] = longer
                        waiting.append(longer)
        return list(found.values())

    def pruned(self, equality: Equality) -> Equality:
        """Leave out terms without which no more records break the equality."""
        for place in equality.places:
            rest = tuple(term for term in equality.terms if term[0] != place)
            if len(rest) < 2:
                break
            sign = 1 if rest[0][1] > 0 else -1
            shorter = replace(
                equality,
                terms=tuple((p, sign * c) for p, c in rest),
                constant=sign * equality.constant,
            )
            if self.broken(shorter) <= self.broken(equality):
                return self.pruned(shorter)
        return equality

    def with_slack(self, equality: Equality) -> Equality:
        """Allow for rounding, where that is what most of the broken records are off by.

        t rounded terms are off by t / 2 units of the last decimal at most; each unit must more
        than halve the number of records that break the rule, and mend one in a hundred, at least 5.
        """
        least = max(0.01 * len(self.figures[0].values), 5)
        while equality.slack < self.most_slack(equality):
            wider = replace(equality, slack=equality.slack + 1)
            before, after = self.broken(equality), self.broken(wider)
            if before - after < least or 2 * after > before:
                break
            equality = wider
        return equality


def _extended(equality: Equality, place: int, sign: int) -> Equality:
    terms = sorted([*equality.terms, (place, sign)])
    first = terms[0][1]
    return replace(
        equality, terms=tuple((p, c * first) for p, c in terms), constant=equality.constant * first
    )


def rank_of(equalities: Sequence[Equality], d: int) -> int:
    """Return how many of the equalities are independent, constants included."""
    rows = [[Fraction(0)] * (d + 1) for _ in equalities]
    for row, one in zip(rows, equalities):
        for place, coefficient in one.terms:
            row[place] = Fraction(coefficient)
        row[d] = Fraction(one.constant, 10**one.decimals)
    rank = 0
    for column in range(d + 1):
        at = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if at is None:
            continue
        rows[rank], rows[at] = rows[at], rows[rank]
        pivot = rows[rank]
        for i in range(rank + 1, len(rows)):
            if factor := rows[i][column] / pivot[column]:
                rows[i] = [a - factor * b for a, b in zip(rows[i], pivot)]
        rank += 1
    return rank
