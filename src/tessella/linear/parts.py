"""What rounding needs to know about a system, exactly: rows of fractions, bounds, components.

Rows about one column are *bounds*. The other rows join columns; columns that are joined, directly
or through others, make a *component*. Components are rounded one by one, at no loss: a distance is
a sum over columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .._types import Floats, Truths
from ..exceptions import BadOptionError, NoWholeSolutionError
from .integers import Lattice, as_fraction, whole_row, without_columns
from .rows import Row
from .system import LinearSystem

__all__ = ["LARGEST", "Component", "components", "exact_rows", "whole_bounds", "whole_solutions"]


LARGEST = 2**53  # whole numbers beyond are not all doubles


@dataclass(frozen=True, kw_only=True)
class Component:
    """Columns joined by rows: whole ones and real ones."""

    whole: tuple[int, ...]
    real: tuple[int, ...]
    rows: tuple[Row, ...]  # that join them
    bounds: tuple[Row, ...]  # about one of them


def exact_rows(system: LinearSystem, whole: Truths) -> list[Row]:
    """Read the rows in fractions, and those between whole columns in whole numbers.

    Whole numbers that obey a v <= h with whole a also obey a v <= floor(h); where a v = b has a
    right-hand side that is not whole, there is no solution.
    """
    both = [(system.A, system.b, True), (system.G, system.h, False)]
    given = [(a, r, equal) for M, right, equal in both for a, r in zip(M, right)]
    rows = []
    for place, (a, r, equal) in enumerate(given):
        places = np.flatnonzero(a).tolist()
        if not places:
            continue
        name, right = system.names[place], as_fraction(r)
        values = [as_fraction(a[j]) for j in places]
        if whole[places].all():
            numbers, right = whole_row(values, right)
            if equal and right.denominator != 1:
                raise NoWholeSolutionError([name])
            right = right if equal else Fraction(math.floor(right))
            if any(abs(number) >= LARGEST for number in (int(right), *numbers)):
                raise BadOptionError(
                    "system", name, "coefficients with fewer digits: between whole numbers, these "
                    f"mean whole coefficients beyond {LARGEST}"
                )  # fmt: skip
            values = [Fraction(number) for number in numbers]
        rows.append(Row(name, dict(zip(places, values)), "==" if equal else "<=", right, place))
    return rows


def whole_bounds(
    rows: list[Row], whole: Truths, low: Floats, high: Floats, columns: Sequence[object]
) -> tuple[Floats, Floats]:
    """Join given bounds (n x d) with the rows about one column; whole columns get whole bounds."""
    low, high = low.copy(), high.copy()
    low[:, whole], high[:, whole] = np.ceil(low[:, whole]), np.floor(high[:, whole])
    names: dict[int, list[str]] = {}
    for row in rows:
        if _joins(row):
            continue
        ((j, a),) = row.coefficients.items()
        bound = row.right / a
        names.setdefault(j, []).append(row.name)
        if row.equal or a > 0:
            upper = math.floor(bound) if whole[j] else float(bound)
            high[:, j] = np.minimum(high[:, j], upper)
        if row.equal or a < 0:
            lower = math.ceil(bound) if whole[j] else float(bound)
            low[:, j] = np.maximum(low[:, j], lower)
    crossed = low > high
    if crossed.any():
        i, j = np.argwhere(crossed)[0].tolist()
        raise NoWholeSolutionError([*names.get(j, []), f"low and high of {columns[j]!r}"], record=i)
    return low, high


def components(rows: list[Row], whole: Truths) -> list[Component]:
    """Split the columns into components; a column without rows is one of its own."""
    d = len(whole)
    joined = list(range(d))

    def root(j: int) -> int:
        while joined[j] != j:
            j = joined[j]
        return j

    for row in rows:
        for j in row.coefficients:
            joined[root(j)] = root(_first(row))
    groups: dict[int, list[int]] = {}
    for j in range(d):
        groups.setdefault(root(j), []).append(j)
    return [
        Component(
            whole=tuple(j for j in columns if whole[j]),
            real=tuple(j for j in columns if not whole[j]),
            rows=tuple(row for row in rows if _joins(row) and root(_first(row)) == label),
            bounds=tuple(row for row in rows if not _joins(row) and root(_first(row)) == label),
        )
        for label, columns in groups.items()
    ]


def _joins(row: Row) -> bool:
    return len(row.coefficients) > 1


def _first(row: Row) -> int:
    first: int = next(iter(row.coefficients))
    return first


def whole_solutions(rows: Sequence[Row], whole: Sequence[int], real: Sequence[int]) -> Lattice:
    """All whole values of the whole columns for which equations can hold, by real ones' help.

    Raises NoWholeSolutionError, naming a least set of rows, where there are none.
    """
    equal = [row for row in rows if row.equal]
    lattice = _lattice(equal, whole, real)
    if lattice.solvable:
        return lattice
    for row in list(equal):
        fewer = [other for other in equal if other is not row]
        if not _lattice(fewer, whole, real).solvable:
            equal = fewer
    raise NoWholeSolutionError([row.name for row in equal])


def _lattice(rows: Sequence[Row], whole: Sequence[int], real: Sequence[int]) -> Lattice:
    columns = [*whole, *real]
    dense = [(row.dense(columns), row.right) for row in rows]
    left = without_columns(dense, range(len(whole), len(columns)))
    pairs = [whole_row(a[: len(whole)], right) for a, right in left]
    # 0 = 0 up to the digits of the coefficients: `LinearSystem.check` has judged such rows.
    pairs = [(a, right) for a, right in pairs if any(a)]
    if any(right.denominator != 1 for _, right in pairs):
        return Lattice([[0] * len(whole)], [1], len(whole))  # 0 = 1: without a solution
    return Lattice([a for a, _ in pairs], [int(right) for _, right in pairs], len(whole))
