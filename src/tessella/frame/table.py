"""Tables in, the same kind of table out; no other room touches frames.

A *table* is a pandas or polars data frame, a pyarrow table or a two-dimensional NumPy array. It is
read by column, as float64 or as numbered labels, each converted once and kept, and written back
by column: the library, index, column order, dtypes, categories and attributes stay.
NumPy columns are named 0, 1, ...; pandas names need not be strings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals import dependencies as libraries
from numpy.typing import NDArray

from .._types import Floats, Integers, Name, Truths
from .._wording import counted
from ..exceptions import BadTableError, UnknownColumnError
from . import writing
from .arrow import to_numpy
from .columns import Facts, describe, facts_of, number_arrow, number_labels, text_of

EXACT = 2**53  # every whole number up to here is a float64

# What to do with the things that are often given instead of a table, by class name or by method.
_INSTEAD = {
    "LazyFrame": "Call .collect() on it first",
    "RecordBatch": "Wrap it: pyarrow.Table.from_batches([batch])",
    "Series": "It is one column: call .to_frame() on it first",
    "DuckDBPyRelation": "Call .df(), .pl() or .arrow() on it first",
    **dict.fromkeys(("dict", "list", "tuple"), "Wrap it: pandas.DataFrame(...)"),
    **dict.fromkeys(("str", "PosixPath", "WindowsPath"), "Read the file first: pandas.read_csv"),
}
_WAYS_OUT = ("toPandas", "to_native", "compute", "to_pandas", "toarray")


class Table:
    """A table of any accepted kind; `Table.read` is the way in, `replace` the way out.

    Attributes
    ----------
    columns : tuple
        The names of the columns, in order, as the table's library has them.
    n_rows : int
        The number of records.
    kind : {"pandas", "polars", "pyarrow", "numpy"}
        The library of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.frame import Table
    >>> table = Table.read(pd.DataFrame({"age": [31, 48], "town": ["Reus", "Valls"]}))
    >>> table.columns, table.n_rows, table.kind
    (('age', 'town'), 2, 'pandas')
    >>> table.facts("age").family, table.facts("town").family
    ('integer', 'text')
    >>> table.replace({"age": [40, 40]})
       age   town
    0   40   Reus
    1   40  Valls
    """

    def __init__(self, frame: Any, *, kind: str, columns: Sequence[Name], like: Any = None) -> None:
        self._frame = frame  # a NumPy array is held as a pandas frame over the same memory
        self._like = like
        self.kind = kind
        self.columns = tuple(columns)
        self.n_rows = int(frame.shape[0])
        self._facts: dict[Name, Facts] = {}
        self._series_of: dict[int, nw.Series[Any]] = {}
        self._numbers: dict[Name, tuple[Floats, Truths | None]] = {}
        self._labels: dict[Name, tuple[NDArray[np.signedinteger[Any]], list[str]]] = {}
        self._places = {name: place for place, name in enumerate(self.columns)}

    @classmethod
    def read(cls, native: Any) -> Table:
        """Recognise a table, or say what is accepted.

        Parameters
        ----------
        native : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
            The table; it is never changed. A `Table` is returned as it is, and a `View` gives its
            table.
        """
        if isinstance(native, Table):
            return native
        if isinstance(inner := getattr(native, "table", None), Table):  # a View
            return inner
        if libraries.is_numpy_array(native):
            table = cls._read_array(native)
        elif libraries.is_pandas_dataframe(native):
            if native.columns.nlevels > 1:
                raise BadTableError(
                    f"The table's columns have {native.columns.nlevels} levels (a MultiIndex); "
                    "one name for each column is needed. Flatten them: table.columns = "
                    "['_'.join(map(str, c)) for c in table.columns]."
                )
            table = cls(native, kind="pandas", columns=list(native.columns))
        elif libraries.is_polars_dataframe(native):
            table = cls(native, kind="polars", columns=native.columns)
        elif libraries.is_pyarrow_table(native):
            table = cls(native, kind="pyarrow", columns=native.column_names)
        else:
            raise _not_a_table(native)
        _refuse_duplicates(table.columns)
        if not table.columns or not table.n_rows:
            raise BadTableError(
                f"The table is empty: it has {counted(table.n_rows, 'record')} and "
                f"{counted(len(table.columns), 'column')}. Give a table with at least one of each."
            )
        return table

    @classmethod
    def _read_array(cls, array: NDArray[Any]) -> Table:
        import pandas as pd

        if array.dtype.names is not None:
            raise BadTableError(
                "The NumPy array is structured (its dtype has named fields). "
                "Give a frame instead: pandas.DataFrame(array)."
            )
        if isinstance(array, np.ma.MaskedArray):
            raise BadTableError(
                "The NumPy array is a masked array. "
                "Give array.filled(numpy.nan), so that missing values are seen as missing."
            )
        if array.ndim != 2:
            raise BadTableError(
                f"The NumPy array has {array.ndim} dimension(s); a table has two, records and "
                "columns. Give array.reshape(-1, 1) for one column."
            )
        if array.dtype.kind not in "fiub":
            raise BadTableError(
                f"The NumPy array has dtype {array.dtype}, which is not numbers. Give an array of "
                "floats or integers, or a pandas or polars frame if columns differ in type."
            )
        plain = np.asarray(array)
        names = range(plain.shape[1])
        return cls(pd.DataFrame(plain, copy=False), kind="numpy", columns=names, like=plain)

    @property
    def native(self) -> Any:
        """The table as it was given."""
        return self._frame if self._like is None else self._like

    def place(self, column: Name, *, who: str = "The call") -> int:
        """Return the position of a column, or say that there is none."""
        try:
            return self._places[column]
        except (KeyError, TypeError):
            raise UnknownColumnError(column, self.columns, who=who) from None

    def has(self, column: object) -> bool:
        """Say whether the table has a column of this name."""
        try:
            return column in self._places
        except TypeError:
            return False

    def facts(self, column: Name) -> Facts:
        """Say what the dtype of a column tells."""
        if column not in self._facts:
            self._facts[column] = facts_of(column, self._series(column))
        return self._facts[column]

    def labels(self, column: Name) -> tuple[Integers, list[str]]:
        """Number the values of any column 0, 1, ... as they first appear; -1 where missing.

        Values with the same text are one: text is what a file shows. Kept in as few bytes as the
        number of labels needs.
        """
        if column not in self._labels:
            codes, labels = self._read_labels(column)
            if len(place := dict.fromkeys(labels)) < len(labels):  # 3 and "3" of an object column
                at = {label: number for number, label in enumerate(place)}
                codes = np.array([*(at[label] for label in labels), -1])[codes]
                labels = list(place)
            narrow = np.min_scalar_type(-len(labels) - 1)
            self._labels[column] = codes.astype(narrow), labels
        codes, labels = self._labels[column]
        return codes.astype(np.int64), labels

    def _read_labels(self, column: Name) -> tuple[Integers, list[str]]:
        series = self._series(column)
        if self.kind in ("pandas", "numpy"):
            return number_labels(series.to_native())
        if self.facts(column).family in ("text", "category", "integer", "boolean", "date"):
            native = series.to_native()
            return number_arrow(native.to_arrow() if self.kind == "polars" else native)
        return number_labels(np.array([*series.to_list(), None], dtype=object)[:-1])

    def order(self, column: Name) -> list[str] | None:
        """Return the categories of an ordered column, the lowest first; None if it has no order."""
        series = self._series(column)
        if not self.facts(column).ordered:
            return None
        native = series.to_native()
        if self.kind == "pyarrow":
            return [text_of(value) for value in native.combine_chunks().dictionary.to_pylist()]
        return [text_of(value) for value in native.dtype.categories]

    def per_record(self, values: Any, *, who: str) -> NDArray[Any]:
        """Return a caller's array as one value for each record, in the table's order."""
        if self.kind == "pandas" and libraries.is_pandas_series(values):
            if not values.index.equals(self._frame.index):
                raise BadTableError(
                    f"{who} is a pandas Series whose index is not the table's. Reindex it to the "
                    "table's index, or give .to_numpy() if it is already in the table's order."
                )
            values = values.to_numpy()
        array = np.asarray(values)
        if array.shape != (self.n_rows,):
            raise BadTableError(
                f"{who} has shape {array.shape}; one value for each of the {self.n_rows} records "
                "is needed, or the name of a column."
            )
        return array

    def count_unused(self, column: Name) -> int:
        """Count the categories that a column's dtype or dictionary lists and no record has."""
        series = self._series(column)
        if self.facts(column).family != "category":
            return 0
        native = series.to_native()
        if isinstance(series.dtype, nw.Enum):
            listed: Iterable[Any] = series.dtype.categories
        elif self.kind == "pyarrow":
            listed = [value for chunk in native.chunks for value in chunk.dictionary.to_pylist()]
        else:  # a Categorical of polars lists nothing of its own
            listed = getattr(native.dtype, "categories", ()) if self.kind == "pandas" else ()
        used = set(self.labels(column)[1])
        return len({text_of(value) for value in listed if value is not None} - used)

    def same_index(self, other: Table) -> bool:
        """Say whether two tables have the same index, names included; only pandas has one."""
        if self.kind != "pandas" or other.kind != "pandas":
            return True
        mine, theirs = self._frame.index, other._frame.index
        return bool(mine.equals(theirs) and list(mine.names) == list(theirs.names))

    def reordered(self, other: Table) -> bool:
        """Say whether another table's index has the same labels in another order."""
        if self.same_index(other):
            return False
        mine, theirs = self._frame.index, other._frame.index
        return len(mine) == len(theirs) and not mine.equals(theirs) and set(mine) == set(theirs)

    def replace(
        self,
        values: Mapping[Name, Any],
        *,
        keep: Mapping[Name, Truths] | None = None,
        as_float: Collection[Name] = (),
    ) -> Any:
        """Return a new table of the same kind with other numbers in some columns.

        Parameters
        ----------
        values : mapping of name to array-like of shape (n,)
            The new numbers, finite except in the cells of `keep`. A column of integers takes
            whole numbers within its dtype only: rounding is the caller's decision.
        keep : mapping of name to boolean array of shape (n,), optional
            Cells that stay as they are, missing cells for example.
        as_float : collection of names
            Columns of integers, decimals or booleans that become float64 (in the column's own
            family of dtypes).
        """
        written = {}
        for name, given in values.items():
            self.place(name, who="replace")
            stays = (keep or {}).get(name, np.zeros(self.n_rows, dtype=bool))
            new, null = np.asarray(given, dtype=np.float64), np.zeros(self.n_rows, dtype=bool)
            if stays.any():
                number, lacking = self.raw(name)
                new = np.where(stays, number, new)
                null = null if lacking is None else lacking & stays
            new = new + 0.0  # a copy, and no minus before a zero
            if not np.isfinite(new[~stays]).all():
                raise BadTableError(f"Column {name!r} would receive values that are not finite.")
            floating = name in as_float or self.facts(name).family == "float"
            if not floating:
                self._refuse_misfit(name, new[~null])
                new = np.where(null, 0.0, new)
            written[name] = (new, null, floating and self.facts(name).family != "float")
        return writing.write(self, written)

    def rearrange(self, rows: Mapping[Name, Integers]) -> Any:
        """Return a new table of the same kind in which some columns take cells from other rows.

        Parameters
        ----------
        rows : mapping of name to array of shape (n,)
            For each cell of a column, the row that it is taken from. Dtypes and categories stay.
        """
        places = {self.place(name, who="rearrange"): taken for name, taken in rows.items()}
        return writing.rearrange(self, places)

    def empty(self, cells: Mapping[Name, Truths]) -> Any:
        """Return a table with cells missing, in a dtype that has such: int64 becomes Int64."""
        return writing.empty(self, {self.place(name): gone for name, gone in cells.items()})

    def redate(self, column: Name, stamps: Integers, where: Truths) -> Any:
        """Return a table with other dates in some cells, as microseconds since 1970."""
        return writing.redate(self, self._series(column), self.place(column), stamps, where)

    def select(self, columns: Sequence[Name]) -> Any:
        """Return a table of the same kind with some of the columns, in the order given."""
        return writing.select(self, [self.place(name, who="select") for name in columns])

    def take(self, rows: Integers) -> Any:
        """Return a table of the same kind with other rows; a pandas index counts up anew."""
        return writing.take(self, rows)

    def relabel(
        self,
        column: Name,
        texts: Sequence[str | None],
        *,
        ordered: bool = False,
        order: Sequence[str] | None = None,
    ) -> Any:
        """Return a table in which a column holds other texts; its values become categories.

        Parameters
        ----------
        column : name
            The column.
        texts : sequence of str or None
            The new text of each distinct value, in the order of `labels(column)`; None makes it
            missing. Cells that are missing stay missing.
        ordered : bool
            Whether the new categories are ordered.
        order : sequence of str, optional
            Their order; by default as they first occur in `texts`. Those that do not occur are left
            out.
        """
        place, _ = self.labels(column)
        used = dict.fromkeys(text for text in texts if text is not None)
        distinct = [text for text in (used if order is None else order) if text in used]
        number = {text: at for at, text in enumerate(distinct)}
        codes = np.array([-1 if text is None else number[text] for text in texts] + [-1])
        return writing.relabel(self, self.place(column), codes[place], distinct, ordered)

    def _series(self, column: Name) -> nw.Series[Any]:
        place = self.place(column)
        if place not in self._series_of:
            if self.kind == "polars":
                native = self._frame.to_series(place)
            elif self.kind == "pyarrow":
                native = self._frame.column(place)
            else:
                native = self._frame.iloc[:, place]
            self._series_of[place] = nw.from_native(native, series_only=True)
        return self._series_of[place]

    def raw(self, column: Name) -> tuple[Floats, Truths | None]:
        """Read one column as float64, NaN where null, and where it is null (None: nowhere).

        Converted once and kept; not to be written into, because the numbers may be the frame's own
        memory.
        """
        if column not in self._numbers:
            self._numbers[column] = self._read_numbers(column)
        return self._numbers[column]

    def forget(self) -> None:
        """Drop the columns that were converted; they are converted again when needed."""
        self._numbers.clear()
        self._labels.clear()

    def _read_numbers(self, column: Name) -> tuple[Floats, Truths | None]:
        series, facts = self._series(column), self.facts(column)
        gone = series.is_null()
        in_arrow = self.kind == "pyarrow"
        null: Truths | None = (
            to_numpy(gone.to_native()) if in_arrow else gone.to_numpy().astype(bool)
        )
        if null is not None and not null.any():
            null = None
        if facts.family in ("integer", "decimal") and (null is None or not null.all()):
            largest = max(abs(int(end)) for end in (series.min(), series.max()))
            if largest * 10 ** (facts.decimals or 0) > EXACT:
                raise BadTableError(
                    f"Column {column!r} ({facts.dtype}) holds numbers of more digits than a "
                    "float64 keeps (beyond 2**53, about 9e15). They are rarely measurements: drop "
                    "the column if it is an identifier, or divide it by a power of ten."
                )
        if in_arrow:
            numbers = to_numpy(series.cast(nw.Float64).to_native())
        elif self.kind in ("pandas", "numpy"):
            numbers = series.to_native().to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            numbers = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        if facts.decimals:  # Arrow's cast is off by an ulp at times
            numbers = np.round(numbers, facts.decimals)
        if facts.family == "float" and np.signbit(numbers[numbers == 0.0]).any():
            numbers = numbers + 0.0  # -0.0 is 0.0
        numbers = np.ascontiguousarray(numbers).view()
        numbers.flags.writeable = False
        return numbers, null

    def refuse_text(self, columns: Sequence[Name], who: str) -> None:
        """Raise an error that names the columns that hold something else than numbers."""
        named = []
        for name in columns:
            self.place(name, who=who)
            facts = self.facts(name)
            if not (facts.numeric or facts.family == "boolean"):
                named.append(f"{name!r} ({facts.dtype}: {describe(self._series(name), facts)})")
        if named:
            raise BadTableError(
                f"{who} needs numbers, and these columns hold something else: {', '.join(named)}. "
                "Convert them to numbers first, or leave them out."
            )

    def _refuse_misfit(self, name: Name, new: Floats) -> None:
        facts = self.facts(name)
        if facts.family != "decimal" and (new != np.rint(new)).any():
            raise BadTableError(
                f"Column {name!r} ({facts.dtype}) holds whole numbers and would receive others. "
                "Round them, or let the column become floats."
            )
        low, high = (0, 1) if facts.family == "boolean" else (-EXACT, EXACT)
        width = str(self._series(name).dtype).lower()
        if facts.family == "decimal":  # the cast rounds to the dtype's scale
            new, high = np.rint(new * 10.0 ** (facts.decimals or 0)), 10 ** (facts.digits or 38) - 1
            low = -high
        elif facts.family == "integer" and "128" not in width:
            low, high = int(np.iinfo(width).min), int(np.iinfo(width).max)
        if ((new < low) | (new > high)).any():
            raise BadTableError(
                f"Column {name!r} ({facts.dtype}) would receive numbers outside of its dtype. "
                "Convert it to a wider one, such as float64, or give up the rule that asks for "
                "such numbers."
            )


def _refuse_duplicates(columns: Iterable[Name]) -> None:
    twice = [repr(name) for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise BadTableError(
            f"The table has more than one column named {', '.join(twice[:8])}. "
            "Rename or drop them, so that each name means one column."
        )


def _not_a_table(given: Any) -> BadTableError:
    kind = type(given)
    ways = [f"Call .{way}() on it first" for way in _WAYS_OUT if hasattr(given, way)]
    hint = _INSTEAD.get(kind.__name__) or next(iter(ways), "Convert it to one of these first")
    return BadTableError(
        "tessella reads a pandas or polars DataFrame, a pyarrow Table or a 2-d NumPy array, and "
        f"was given {kind.__module__}.{kind.__qualname__}. {hint}."
    )
