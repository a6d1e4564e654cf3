"""Rows of linear systems, and the arrays of numbers that users give, checked.

A `Row` is the one form in which an equation or inequality travels through the package: rules
write rows, plans and repairs select and close them, `LinearSystem.of_rows` makes matrices of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import Floats, Truths
from ..exceptions import BadOptionError, BadTableError

__all__ = ["Row", "as_metric", "as_records", "as_sum", "read_rows", "width"]


@dataclass(frozen=True, eq=False)
class Row:
    """coefficients · record == right, <= right, or < right.

    Columns are known by name, or by position within a system; numbers are floats, or fractions
    where whole solutions are looked for.
    """

    name: str  # of the rule that it comes from, or its text
    coefficients: Mapping[Any, Any]
    operator: str
    right: Any
    place: int = -1  # among the rows of a system

    @property
    def equal(self) -> bool:
        """Whether it is an equation."""
        return self.operator == "=="

    @property
    def strict(self) -> bool:
        """Whether it is a strict inequality."""
        return self.operator == "<"

    def dense(self, columns: Sequence[Any]) -> list[Any]:
        """Return the coefficients on some columns."""
        return [self.coefficients.get(name, 0) for name in columns]

    def among(self, mask: Truths) -> bool:
        """Whether all columns of the row, known by position, are in the mask."""
        return all(mask[j] for j in self.coefficients)


def as_records(X: ArrayLike, d: int) -> Floats:
    """Read numbers of shape (n, d), in C order; a frame's columns could be in any order."""
    if not isinstance(X, np.ndarray | list | tuple):
        raise BadTableError(
            f"A linear system reads arrays, and was given a {type(X).__name__}. Give its "
            "columns as an array of shape (n, d), in the order of the system's columns."
        )
    try:
        values = np.asarray(X)
        if values.dtype.kind not in "biuf":
            raise TypeError
        records = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadTableError(
            "A linear system reads numbers, and the table has cells that are none."
        ) from None
    if records.ndim != 2 or records.shape[1] != d:
        raise BadTableError(
            f"The linear system is about {d} columns, and the table has shape {records.shape}. "
            f"Give an array of shape (n, {d})."
        )
    return records


def width(A: Any, G: Any, columns: Sequence[Hashable] | None) -> int:
    """Count the columns of a system, from whatever says it."""
    for matrix in (A, G):
        if matrix is not None and np.ndim(matrix) == 2 and np.shape(matrix)[1] > 0:
            return int(np.shape(matrix)[1])
    if columns is not None and len(columns) > 0:
        return len(columns)
    raise BadOptionError("A", A, "a matrix with one row for each equation, or name the columns")


def read_rows(name: str, matrix: Any, side: str, right: Any, wide: int) -> tuple[Floats, Floats]:
    """Read a matrix and its right-hand side; none at all is no rows."""
    if (matrix is None) != (right is None):
        missing = side if right is None else name
        raise BadOptionError(missing, None, f"both {name} and {side}, or neither")
    out = []
    for label, value, shape in ((name, matrix, (-1, wide)), (side, right, (-1,))):
        try:
            numbers = np.array([] if value is None else value, dtype=np.float64)
            numbers = numbers.reshape(shape) if numbers.size == 0 else numbers
        except (TypeError, ValueError):
            raise BadOptionError(label, value, "numbers") from None
        if numbers.ndim != len(shape) or (len(shape) == 2 and numbers.shape[1] != wide):
            expected = f"a matrix with {wide} columns" if len(shape) == 2 else "one number a row"
            raise BadOptionError(label, value, expected)
        if not np.isfinite(numbers).all():
            raise BadOptionError(label, value, "finite numbers; leave out a row without a limit")
        numbers.flags.writeable = False
        out.append(numbers)
    if len(out[0]) != len(out[1]):
        raise BadOptionError(side, right, f"{len(out[0])} numbers, one for each row of {name}")
    return out[0], out[1]


def as_metric(metric: ArrayLike, d: int, name: str = "metric") -> Floats:
    """Read d positive numbers."""
    weights = np.asarray(metric, dtype=np.float64)
    if weights.shape != (d,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise BadOptionError(name, metric, f"{d} positive numbers, one for each column")
    return weights


def as_sum(coefficients: Floats, labels: Sequence[str]) -> str:
    """Write a sum as a person would: 1.16*a + b - c."""
    text = ""
    for a, label in zip(coefficients, labels):
        if a == 0:
            continue
        sign = ("-" if a < 0 else "") if not text else (" - " if a < 0 else " + ")
        text += sign + ("" if abs(a) == 1 else f"{abs(a):.12g}*") + label
    return text or "0"
