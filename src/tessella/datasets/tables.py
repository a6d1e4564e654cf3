"""From named columns to the table a person asked for: pandas, polars, Arrow or NumPy.

A column is an array of numbers, a masked array (some values are missing), or `CategoryColumn` (a
number for each record and the names that the numbers stand for).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._lazy import optional
from .._parameters import FLAG, SEED, Number, OneOf, Whole
from .._types import Signs

__all__ = ["COMMON", "SHARE", "CategoryColumn", "ColumnData", "leave_out", "make_slips", "to_frame"]


@dataclass(frozen=True)
class CategoryColumn:
    """One of a few names for each record."""

    codes: Signs
    names: tuple[str, ...]

    def text(self) -> NDArray[np.str_]:
        """Return the name of each record."""
        return np.array(self.names)[self.codes]


ColumnData = NDArray[Any] | CategoryColumn


def to_frame(columns: Mapping[str, ColumnData], frame: str) -> Any:
    """Return the columns as a table of the kind asked for.

    Whole numbers with missing values stay whole: pandas gets its nullable `Int64`, polars and
    Arrow get nulls. NumPy has no missing integers: they become float64 with NaN. A NumPy table
    is a float64 array of shape (n, d) where all columns are numbers, and a structured array, one
    field for each column, where some are text.
    """
    return _MAKERS[frame](columns)


def _to_pandas(columns: Mapping[str, ColumnData]) -> Any:
    import pandas as pd

    def convert(column: ColumnData) -> Any:
        if isinstance(column, CategoryColumn):
            return pd.Categorical.from_codes(column.codes, pd.Index(column.names))
        if isinstance(column, np.ma.MaskedArray) and column.dtype.kind == "i":
            return pd.arrays.IntegerArray(column.data, np.ma.getmaskarray(column))
        return _with_nan(column)

    return pd.DataFrame({name: convert(column) for name, column in columns.items()})


def _to_polars(columns: Mapping[str, ColumnData]) -> Any:
    pl = optional("polars", extra="polars", purpose='frame="polars"')

    def convert(column: ColumnData) -> Any:
        if isinstance(column, CategoryColumn):
            # Categorical, not Enum: polars' Enum has an order, and these names have none.
            return pl.Series(column.names, dtype=pl.Categorical).gather(column.codes)
        if isinstance(column, np.ma.MaskedArray):
            missing = pl.Series(np.ma.getmaskarray(column))
            return pl.Series(column.data).set(missing, None)
        return pl.Series(column)

    return pl.DataFrame({name: convert(column) for name, column in columns.items()})


def _to_arrow(columns: Mapping[str, ColumnData]) -> Any:
    pa = optional("pyarrow", extra="arrow", purpose='frame="arrow"')

    def convert(column: ColumnData) -> Any:
        if isinstance(column, CategoryColumn):
            return pa.DictionaryArray.from_arrays(column.codes, list(column.names))
        if isinstance(column, np.ma.MaskedArray):
            return pa.array(column.data, mask=np.ma.getmaskarray(column))
        return pa.array(column)

    return pa.table({name: convert(column) for name, column in columns.items()})


def _to_numpy(columns: Mapping[str, ColumnData]) -> Any:
    values = {
        name: column.text() if isinstance(column, CategoryColumn) else _with_nan(column)
        for name, column in columns.items()
    }
    if all(column.dtype.kind in "if" for column in values.values()):
        return np.column_stack([column.astype(np.float64) for column in values.values()])
    length = len(next(iter(values.values())))
    table = np.empty(length, dtype=[(name, column.dtype) for name, column in values.items()])
    for name, column in values.items():
        table[name] = column
    return table


def _with_nan(column: NDArray[Any]) -> NDArray[Any]:
    if not isinstance(column, np.ma.MaskedArray):
        return column
    filled = column.data.astype(np.float64)
    filled[np.ma.getmaskarray(column)] = np.nan
    return filled


_MAKERS: dict[str, Callable[[Mapping[str, ColumnData]], Any]] = {
    "arrow": _to_arrow,
    "numpy": _to_numpy,
    "pandas": _to_pandas,
    "polars": _to_polars,
}

SHARE = [Number(0, 1)]
COMMON: dict[str, Any] = {  # arguments that have one meaning in all functions of this folder
    "n": [Whole(1)],
    "d": [Whole(1)],
    "inconsistent": SHARE,
    "missing": SHARE,
    "weights": [FLAG],
    "random_state": [SEED],
    "frame": [OneOf(tuple(_MAKERS))],
    "return_rules": [FLAG],
    "return_truth": [FLAG],
}

# Slips of the pen in totals, and values that were never given. Both leave the table's own random
# numbers alone: a spoiled table is the clean table of the same seed with some cells changed, so the
# truth behind every changed cell is known.


def make_slips(
    columns: dict[str, ColumnData], totals: Sequence[str], share: float, random: np.random.Generator
) -> None:
    """Change one total in `share` of the records: unit, sign, or a few units off.

    Each of `totals` stands alone on one side of an equality, so the change of one of them breaks
    it. The number of changed records is exact: round(share * n).
    """
    n = len(columns[totals[0]])  # type: ignore[arg-type]
    spoiled = random.permutation(n)[: round(share * n)]
    which = random.integers(len(totals), size=len(spoiled))
    how = random.integers(3, size=len(spoiled))
    off = random.integers(1, 10, size=len(spoiled))
    for t, total in enumerate(totals):
        rows, slip = spoiled[which == t], how[which == t]
        column = np.array(columns[total])
        true = column[rows]
        seen = np.select([slip == 0, slip == 1], [1000 * true, -true], true + off[which == t])
        column[rows] = np.where(seen == true, true + 1, seen)  # 1000 times nothing is nothing
        columns[total] = column


def leave_out(
    columns: dict[str, ColumnData], names: Sequence[str], share: float, random: np.random.Generator
) -> None:
    """Make each value of the named columns missing with probability `share`."""
    for name in names:
        values = np.asarray(columns[name])
        columns[name] = np.ma.MaskedArray(values, random.random(len(values)) < share)
