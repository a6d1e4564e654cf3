"""Columns as the matrix of a model: numbers as they are, categories as yes or no for each.

Both tables get the same columns, so that coefficients can be compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError
from .compared import ComparedTables

__all__ = ["Design", "design", "target_classes", "target_numbers"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """The same matrix for both tables, over the records that both know.

    `names` says what each column is, `rows` which records are in.
    """

    names: tuple[Name, ...]
    before: Floats
    after: Floats
    rows: Truths
    weights: Floats | None


def design(
    pair: ComparedTables, *, without: Iterable[Name] = (), new_categories: bool = False
) -> Design:
    """Return the columns of a pair as matrices.

    Parameters
    ----------
    pair : ComparedTables
        The tables.
    without : iterable of names
        Columns that are not features, but must be known.
    new_categories : bool
        Whether categories that only the masked table has get a column, or are refused.
    """
    aside = set(without)
    for name in aside:
        pair.original.table.place(name, who="The model")
    names: list[Name] = []
    before: list[Any] = []
    after: list[Any] = []
    rows = np.ones(pair.n_rows, dtype=bool)
    for name in pair.columns:
        known = pair.known(name)
        rows &= known[0] & known[1]
    if not rows.any():
        raise BadTableError("No record is known in all columns of both tables.")
    for name in pair.columns:
        if name in aside:
            continue
        if name in set(pair.numbers):
            cells = pair.number(name)
            names.append(name)
            before.append(cells.before[rows])
            after.append(cells.after[rows])
            continue
        codes = pair.category(name)
        if len(codes.labels) > codes.n_original and not new_categories:
            raise BadTableError(
                f"The masked table has categories in {name!r} that the original does not have, so "
                "that no coefficient can be compared with theirs. Leave the column out."
            )
        for place, label in list(enumerate(codes.labels))[1:]:  # the first is the reference
            names.append(f"{name}={label}")
            before.append((codes.before[rows] == place).astype(np.float64))
            after.append((codes.after[rows] == place).astype(np.float64))
    if not names:
        raise BadTableError("There is no column left as a feature. Name some with features=[...].")
    return Design(
        names=tuple(names),
        before=np.column_stack(before),
        after=np.column_stack(after),
        rows=rows,
        weights=None if pair.weights is None else pair.weights[rows],
    )


def target_numbers(pair: ComparedTables, name: Name, rows: Truths) -> tuple[Floats, Floats]:
    """Return a column of numbers of both tables."""
    if name not in set(pair.numbers):
        raise BadTableError(
            f"The target {name!r} is not a column of numbers. Give one that is, or "
            'kind="logistic" for a target of two categories.'
        )
    cells = pair.number(name)
    return cells.before[rows], cells.after[rows]


def target_classes(
    pair: ComparedTables, name: Name, rows: Truths
) -> tuple[Integers, Integers, list[str]]:
    """Return a column of both tables as classes 0, 1, ... with their labels; numbers too."""
    if name in set(pair.numbers):
        cells = pair.number(name)
        before, after = cells.before[rows], cells.after[rows]
        distinct, codes = np.unique(np.concatenate([before, after]), return_inverse=True)
        one, other = np.split(codes.reshape(-1), 2)
        return one, other, [f"{value:g}" for value in distinct]
    column = pair.category(name)
    one, other = column.before[rows].astype(np.int64), column.after[rows].astype(np.int64)
    return one, other, column.labels
