"""Columns written back into a frame of the library they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError
from .arrow import from_numpy

if TYPE_CHECKING:
    from .table import Table


def write(table: Table, written: Mapping[Name, Any]) -> Any:
    """Return the frame with other numbers, where they are null, and whether they become floats."""
    return WRITERS[table.kind](table, written)


def rearrange(table: Table, places: Mapping[int, Integers]) -> Any:
    """Return the frame with cells of some columns taken from other rows."""
    if table.kind == "pandas":
        frame = table._frame.copy()
        for place, taken in places.items():
            column = table._frame.iloc[:, place]
            # A series, not an array: pandas takes an array of objects that are texts for `str`.
            frame.isetitem(place, column.take(taken).set_axis(column.index))
        return frame
    if table.kind == "numpy":
        out = table._like.copy()
        for place, taken in places.items():
            out[:, place] = table._like[taken, place]
        return out
    frame = table._frame
    for place, taken in places.items():
        if table.kind == "polars":
            frame = frame.with_columns(table._frame.to_series(place).gather(taken))
        else:
            field = frame.schema.field(place)
            frame = frame.set_column(
                place, field, table._frame.column(place).take(from_numpy(taken))
            )
    return frame


def empty(table: Table, cells: Mapping[int, Truths]) -> Any:
    """Return the frame with cells of some columns missing, in a dtype that has room for that."""
    if table.kind == "numpy":
        out = table._like.astype(np.result_type(table._like, np.float64))
        for place, gone in cells.items():
            out[gone, place] = np.nan
        return out
    if table.kind == "pandas":
        frame = table._frame.copy()
        for place, gone in cells.items():
            column = _with_room(table._frame.iloc[:, place])
            frame.isetitem(place, column.mask(gone) if gone.any() else column)
        return frame
    frame = table._frame
    for place, gone in cells.items():
        if table.kind == "polars":
            import polars as pl

            rows = pl.Series(np.arange(table.n_rows)).set(pl.Series(gone), None)
            frame = frame.with_columns(table._frame.to_series(place).gather(rows))
        else:
            import pyarrow as pa

            field = frame.schema.field(place).with_nullable(True)
            rows = pa.array(np.arange(table.n_rows), mask=gone)
            frame = frame.set_column(place, field, table._frame.column(place).take(rows))
    return frame


def _with_room(column: Any) -> Any:
    """Return a column of pandas in a dtype that has missing cells: int64 becomes Int64."""
    dtype = column.dtype
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iub":
        return column
    return column.convert_dtypes()


def redate(table: Table, series: Any, place: int, stamps: Integers, where: Truths) -> Any:
    """Return the frame with other dates, in microseconds, in some cells of a column."""
    rows = np.flatnonzero(where)
    given = stamps[rows].astype("datetime64[us]")
    new = nw.new_series("", given, nw.Datetime("us"), backend=series.implementation)
    column = series.scatter(rows, new.cast(series.dtype)).to_native()
    if table.kind == "pandas":
        frame = table._frame.copy()
        frame.isetitem(place, column)
        return frame
    if table.kind == "polars":
        return table._frame.with_columns(column)
    return table._frame.set_column(place, table._frame.schema.field(place), column)


def select(table: Table, places: Sequence[int]) -> Any:
    """Return the frame with some columns only."""
    if table.kind == "numpy":
        return table._like[:, list(places)]
    if table.kind == "pandas":
        return table._frame.iloc[:, list(places)]
    return table._frame.select([table.columns[place] for place in places])


def take(table: Table, rows: Integers) -> Any:
    """Return the frame with other rows."""
    if table.kind == "numpy":
        return table._like[rows]
    if table.kind == "pandas":
        return table._frame.iloc[rows].reset_index(drop=True)
    return table._frame[rows] if table.kind == "polars" else table._frame.take(from_numpy(rows))


def blank(table: Table, place: int, where: Truths) -> Any:
    """Return the frame with some cells of one column missing."""
    if table.kind == "numpy":
        raise BadTableError("An array of numbers has no room for missing cells: give a data frame.")
    rows = np.arange(len(where))
    if table.kind == "polars":
        import polars as pl

        taken = pl.Series(rows, dtype=pl.UInt32).set(pl.Series(where), None)
        return table._frame.with_columns(table._frame.to_series(place).gather(taken))
    if table.kind == "pyarrow":
        import pyarrow as pa

        column = table._frame.column(place).take(pa.array(rows, mask=where))
        return table._frame.set_column(place, table._frame.schema.field(place), column)
    frame = table._frame.copy()
    column = frame.iloc[:, place]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iub":
        names = {"i": "Int", "u": "UInt"}
        kind = column.dtype.kind
        bits = 8 * column.dtype.itemsize
        column = column.astype("boolean" if kind == "b" else f"{names[kind]}{bits}")
    frame.isetitem(place, column.mask(where))
    return frame


def relabel(table: Table, place: int, codes: Integers, distinct: list[str], ordered: bool) -> Any:
    """Return the frame with one column made of categories; -1 is missing."""
    if table.kind == "numpy":
        raise BadTableError("An array of numbers has no room for categories: give a data frame.")
    if table.kind == "pandas":
        import pandas as pd

        frame = table._frame.copy()
        frame.isetitem(place, pd.Categorical.from_codes(codes, pd.Index(distinct), ordered=ordered))
        return frame
    texts = [distinct[code] if code >= 0 else None for code in codes]
    name = str(table.columns[place])
    if table.kind == "polars":
        import polars as pl

        dtype = pl.Enum(distinct) if ordered else pl.Categorical
        return table._frame.with_columns(pl.Series(name, texts, dtype=dtype))
    import pyarrow as pa

    coded = pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=codes < 0, type=pa.int32()), pa.array(distinct, pa.string()),
        ordered=ordered,
    )  # fmt: skip
    return table._frame.set_column(place, name, coded)


def _arrow_array(values: Floats, null: Truths, dtype: Any) -> Any:
    return from_numpy(values, null).cast(dtype)


def _pandas_array(values: Floats, null: Truths, dtype: Any, as_float: bool) -> Any:
    import pandas as pd

    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        arrow = _arrow_array(values, null, pa.float64() if as_float else dtype.pyarrow_dtype)
        return pd.array(arrow, dtype=pd.ArrowDtype(arrow.type))
    if isinstance(dtype, np.dtype):
        return values.astype(np.float64 if as_float else dtype)
    target: Any = pd.Float64Dtype() if as_float else dtype
    array = pd.array(values.astype(target.numpy_dtype), dtype=target)
    array[null] = pd.NA
    return array


def _write_pandas(table: Table, written: Mapping[Name, Any]) -> Any:
    frame, dtypes = table._frame.copy(), list(table._frame.dtypes)
    for name, (values, null, as_float) in written.items():
        place = table.place(name)
        frame.isetitem(place, _pandas_array(values, null, dtypes[place], as_float))
    return frame


def _write_numpy(table: Table, written: Mapping[Name, Any]) -> NDArray[Any]:
    frame = _write_pandas(table, written)
    out = np.empty_like(table._like, dtype=np.result_type(*frame.dtypes))
    for place, name in enumerate(table.columns):
        column = frame.iloc[:, place].to_numpy()
        if column.dtype.kind != out.dtype.kind == "f":
            table.raw(name)  # refuses integers that a float cannot hold
        out[:, place] = column
    return out


def _write_polars(table: Table, written: Mapping[Name, Any]) -> Any:
    import polars as pl

    columns = []
    for name, (values, null, as_float) in written.items():
        dtype = pl.Float64 if as_float else table._frame.schema[name]
        if dtype.is_decimal():  # a cast from floats cuts digits off in some versions
            form = f".{table.facts(name).decimals}f"
            exact = [None if gone else Decimal(format(v, form)) for v, gone in zip(values, null)]
            columns.append(pl.Series(str(name), exact, dtype=dtype))
            continue
        column = pl.Series(str(name), values.astype(np.int64) if dtype.is_integer() else values)
        columns.append((column.set(pl.Series(null), None) if null.any() else column).cast(dtype))
    return table._frame.with_columns(columns)


def _write_arrow(table: Table, written: Mapping[Name, Any]) -> Any:
    import pyarrow as pa

    frame = table._frame
    for name, (values, null, as_float) in written.items():
        place = table.place(name)
        field = frame.schema.field(place)
        field = field.with_type(pa.float64()) if as_float else field
        frame = frame.set_column(place, field, _arrow_array(values, null, field.type))
    return frame


WRITERS = {
    "numpy": _write_numpy,
    "pandas": _write_pandas,
    "polars": _write_polars,
    "pyarrow": _write_arrow,
}


def gather(table: Table, columns: Mapping[Name, tuple[Name, Integers]]) -> Any:
    """Return a frame of new columns, each made of cells of a column of the table.

    `columns` has for each new name the column, and the rows that its cells are taken from.
    """
    places = {new: (table.place(name), rows) for new, (name, rows) in columns.items()}
    if table.kind == "polars":
        import polars as pl

        series = [
            table._frame.to_series(at).gather(rows).alias(str(new))
            for new, (at, rows) in places.items()
        ]
        return pl.DataFrame(series)
    if table.kind == "pyarrow":
        import pyarrow as pa

        return pa.table({n: table._frame.column(at).take(rows) for n, (at, rows) in places.items()})
    import pandas as pd

    taken = {n: table._frame.iloc[:, at].take(rows) for n, (at, rows) in places.items()}
    return pd.concat([c.reset_index(drop=True).rename(n) for n, c in taken.items()], axis=1)
