"""From named columns to the table a person asked for: pandas, polars, Arrow or NumPy.

A column is an array of numbers, a masked array (some values are missing), or `Categories` (a
number for each record and the names that the numbers stand for).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._lazy import optional
from .._types import Signs
from ..exceptions import BadOptionError, UnknownOptionError

__all__ = ["Categories", "Column", "check_count", "check_real", "generator", "to_frame"]


@dataclass(frozen=True)
class Categories:
    """One of a few names for each record."""

    codes: Signs
    names: tuple[str, ...]

    def text(self) -> NDArray[np.str_]:
        """Return the name of each record."""
        return np.array(self.names)[self.codes]


Column = NDArray[Any] | Categories


def to_frame(columns: Mapping[str, Column], frame: str) -> Any:
    """Return the columns as a table of the kind asked for.

    Whole numbers with missing values stay whole: pandas gets its nullable `Int64`, polars and
    Arrow get nulls. NumPy has no missing integers: they become float64 with NaN. A NumPy table
    is a float64 array of shape (n, d) where all columns are numbers, and a structured array, one
    field for each column, where some are text.
    """
    if frame not in _MAKERS:
        raise UnknownOptionError("frame", frame, _MAKERS)
    return _MAKERS[frame](columns)


def _to_pandas(columns: Mapping[str, Column]) -> Any:
    import pandas as pd

    def convert(column: Column) -> Any:
        if isinstance(column, Categories):
            return pd.Categorical.from_codes(column.codes, pd.Index(column.names))
        if isinstance(column, np.ma.MaskedArray) and column.dtype.kind == "i":
            return pd.arrays.IntegerArray(column.data, np.ma.getmaskarray(column))
        return _with_nan(column)

    return pd.DataFrame({name: convert(column) for name, column in columns.items()})


def _to_polars(columns: Mapping[str, Column]) -> Any:
    pl = optional("polars", extra="polars", purpose='frame="polars"')

    def convert(column: Column) -> Any:
        if isinstance(column, Categories):
            # Categorical, not Enum: polars' Enum has an order, and these names have none.
            return pl.Series(column.names, dtype=pl.Categorical).gather(column.codes)
        if isinstance(column, np.ma.MaskedArray):
            missing = pl.Series(np.ma.getmaskarray(column))
            return pl.Series(column.data).set(missing, None)
        return pl.Series(column)

    return pl.DataFrame({name: convert(column) for name, column in columns.items()})


def _to_arrow(columns: Mapping[str, Column]) -> Any:
    pa = optional("pyarrow", extra="arrow", purpose='frame="arrow"')

    def convert(column: Column) -> Any:
        if isinstance(column, Categories):
            return pa.DictionaryArray.from_arrays(column.codes, list(column.names))
        if isinstance(column, np.ma.MaskedArray):
            return pa.array(column.data, mask=np.ma.getmaskarray(column))
        return pa.array(column)

    return pa.table({name: convert(column) for name, column in columns.items()})


def _to_numpy(columns: Mapping[str, Column]) -> Any:
    values = {
        name: column.text() if isinstance(column, Categories) else _with_nan(column)
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


_MAKERS: dict[str, Callable[[Mapping[str, Column]], Any]] = {
    "arrow": _to_arrow,
    "numpy": _to_numpy,
    "pandas": _to_pandas,
    "polars": _to_polars,
}


def check_count(name: str, given: object, *, least: int) -> int:
    """Return a whole number of at least `least`, or say what was expected."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise BadOptionError(name, given, f"a whole number of at least {least}")
    return int(given)


def check_real(name: str, given: object, *, least: float, most: float = np.inf) -> float:
    """Return a finite number from `least` to `most`, or say what was expected."""
    number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
    if not number or not least <= given <= most or np.isinf(given):  # type: ignore[operator, call-overload]
        top = "" if np.isinf(most) else f" and at most {most:g}"
        raise BadOptionError(name, given, f"a number of at least {least:g}{top}")
    return float(given)  # type: ignore[arg-type]


def generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """Return NumPy's generator for a seed, a generator, or None (entropy of the system)."""
    if random_state is not None and not isinstance(random_state, np.random.Generator):
        random_state = check_count("random_state", random_state, least=0)
    return np.random.default_rng(random_state)
