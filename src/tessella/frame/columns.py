"""What single columns hold: facts of their dtype, their values as numbered texts, ids of equals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import narwhals as nw
import numpy as np
from narwhals import dependencies as libraries
from numpy.typing import NDArray

from .._types import Floats, Integers, Name, States, Truths
from ..exceptions import BadTableError
from .arrow import to_numpy

NUMBER, NULL, NAN, FIRST_CODE = 0, 1, 2, 3  # states of cells

MIXED = ("mixed", "mixed-integer", "mixed-integer-float")  # what pandas calls objects of two types
HASHED = 10_000  # values from which on loading pandas, which numbers them sooner, is worth it

Family = Literal["float", "integer", "decimal", "boolean", "text", "category", "date", "other"]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a column's dtype says of it.

    `decimals` is the number of decimals that the dtype can hold: 0 for integers and booleans, the
    scale of a decimal, None for floats and for columns that are not numbers. `digits` is the number
    of all digits that a decimal can hold.
    """

    name: Name
    family: Family
    dtype: str
    decimals: int | None = None
    digits: int | None = None
    ordered: bool = False

    @property
    def numeric(self) -> bool:
        """Whether the column holds numbers; booleans and dates do not."""
        return self.family in ("float", "integer", "decimal")


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Columns read as numbers.

    `values` has shape (n, d) and NaN where a number is missing. `state`, of the same shape, is 0
    for a number, 1 for a null, 2 for a NaN beside nulls (polars and Arrow tell them apart), and
    3, 4, ... for the column's first, second, ... missing code.
    """

    columns: tuple[Name, ...]
    values: Floats
    state: States

    @property
    def missing(self) -> Truths:
        """Whether each cell lacks a number, shape (n, d)."""
        lacking: Truths = self.state != NUMBER
        return lacking

    def count_missing(self) -> dict[Name, int]:
        """Count the missing cells of each column that has any."""
        counts = self.missing.sum(axis=0)
        return {name: int(count) for name, count in zip(self.columns, counts) if count}


def facts_of(name: Name, series: nw.Series[Any]) -> Facts:
    """Return what the dtype of a column tells."""
    native = _dtype(series.to_native())
    family = _family(series.dtype, native)
    decimals, digits = {"integer": 0, "boolean": 0}.get(family), None
    if family == "decimal":
        fixed = getattr(native, "pyarrow_dtype", native)
        decimals, digits = int(fixed.scale), fixed.precision
    return Facts(
        name=name,
        family=family,
        dtype=str(native),
        decimals=decimals,
        digits=digits,
        ordered=isinstance(series.dtype, nw.Enum) or bool(getattr(native, "ordered", False)),
    )


def describe(series: nw.Series[Any], facts: Facts) -> str:
    """Describe what a column of something else than numbers holds."""
    if facts.family in ("category", "date"):
        return {"category": "categories", "date": "dates or times"}[facts.family]
    values = series.drop_nulls().head(10_000).to_list()
    texts = [value for value in values if isinstance(value, str)]
    if values and len(texts) == len(values):
        as_numbers = sum(_reads_as_number(text) for text in texts)
        if as_numbers == len(texts):
            return "numbers written as text; convert with pandas.to_numeric or a cast"
        return "text, some of it numbers" if as_numbers else "text"
    return "text among other values" if texts else "objects that are not numbers of a dtype"


def number_labels(values: Any) -> tuple[Integers, list[str]]:
    """Number the distinct values of an array 0, 1, ... as they first appear; -1 where missing.

    Examples
    --------
    >>> from tessella.frame import number_labels
    >>> import numpy as np
    >>> number_labels(np.array(["north", "south", "north"]))
    (array([0, 1, 0]), ['north', 'south'])
    """
    import pandas as pd

    objects = str(getattr(values, "dtype", "")) == "object"
    if objects and pd.api.types.infer_dtype(values) in MIXED:
        # True equals 1 in Python, and a file shows them as two values.
        texts = [str(v) if isinstance(v, bool | np.bool_) else v for v in values]
        values = np.array([*texts, None], dtype=object)[:-1]
    try:
        place, distinct = pd.factorize(values)
    except TypeError:
        raise BadTableError(
            "The values cannot be told apart (lists or objects). Give numbers, text or categories."
        ) from None
    return np.asarray(place, dtype=np.int64), [text_of(value) for value in distinct]


def text_of(value: object) -> str:
    """Return the text that stands for a value: of a number the shortest, without ".0".

    Examples
    --------
    >>> from tessella.frame import text_of
    >>> text_of(3), text_of(3.0), text_of(2.50), text_of("3.0")
    ('3', '3', '2.5', '3.0')
    """
    if isinstance(value, float | np.floating):
        return repr(float(value) + 0.0).removesuffix(".0")
    if isinstance(value, Decimal) and value.is_finite():
        return format(value.normalize() + 0, "f")
    return str(value)


def number_arrow(values: Any) -> tuple[Integers, list[str]]:
    """Number the distinct values of Arrow's as `number_labels` does, without a list of them all."""
    import pyarrow as pa

    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):  # no rows, or too much text for one chunk
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_dictionary(array.type):  # its dictionary may be in another order
        array = array.cast(array.type.value_type)
    coded = array.dictionary_encode()
    place = to_numpy(coded.indices, missing=-1)
    return place.astype(np.int64), [text_of(v) for v in coded.dictionary.to_pylist()]


def _dtype(native: Any) -> Any:
    return native.type if libraries.is_pyarrow_chunked_array(native) else native.dtype


def _family(dtype: Any, native: Any) -> Family:
    if str(getattr(native, "pyarrow_dtype", native)).startswith("decimal"):
        return "decimal"  # Arrow's 256-bit decimals are unknown to narwhals
    families: dict[Family, bool] = {
        "boolean": isinstance(dtype, nw.Boolean),
        "decimal": isinstance(dtype, nw.Decimal),
        "integer": dtype.is_integer(),
        "float": dtype.is_float(),
        "date": dtype.is_temporal(),
        "category": isinstance(dtype, nw.Categorical | nw.Enum),
        "text": isinstance(dtype, nw.String),
    }
    return next((family for family, holds in families.items() if holds), "other")


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def group_ids(columns: Iterable[Integers]) -> Integers:
    """Give records the same number, from 0 as they first appear, iff they agree in every column.

    Parameters
    ----------
    columns : arrays of whole numbers, each of shape (n,)
        What is compared; negative numbers are values as others are.

    Notes
    -----
    Columns are digits of one whole number in a mixed radix. Where 2**62 would be passed, what there
    is so far is numbered anew: at most n combinations occur, however many could.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.frame import group_ids
    >>> group_ids([np.array([5, -1, 5, 5]), np.array([0, 0, 0, 1])])
    array([0, 1, 0, 2])
    """
    mixed: Integers | None = None
    radix = 1
    for column in columns:
        digits = np.asarray(column, dtype=np.int64)
        low, width = int(digits.min()), int(digits.max()) - int(digits.min()) + 1
        if mixed is None:
            if width >= 2**62:
                digits, low = number_values(digits), 0
                width = int(digits.max()) + 1
            mixed, radix = digits - low, width
            continue
        if radix * width >= 2**62:
            mixed = number_values(mixed)
            radix = int(mixed.max()) + 1
        if radix * width >= 2**62:
            digits, low = number_values(digits), 0
            width = int(digits.max()) + 1
        mixed, radix = mixed * width + (digits - low), radix * width
    if mixed is None:
        raise ValueError("group_ids needs at least one column")
    return number_values(mixed)


def count_units(sets: Integers, units: Integers | None, n_sets: int | None = None) -> Integers:
    """Count the distinct units in each set of records; without units, the records.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.frame import count_units
    >>> count_units(np.array([0, 0, 0, 1]), np.array([7, 7, 8, 7]))
    array([2, 1])
    """
    n_sets = int(sets.max()) + 1 if n_sets is None else n_sets
    if units is not None:
        first = np.unique(group_ids([sets, units]), return_index=True)[1]
        sets = sets[first]
    return np.bincount(sets, minlength=n_sets)


def matches_code(label: str, code: object) -> bool:
    """Return whether a text is a code for "missing": -9, -9.0, "-9" and "-9.0" are the same."""
    return label == text_of(code) or label == code or as_number(label) == as_number(code)


def number_values(values: NDArray[Any]) -> Integers:
    """Number the values of one array 0, 1, ... as they first appear; NaN is a value."""
    if len(values) < HASHED and values.dtype.kind in "biuf":
        _, first, places = np.unique(values, return_index=True, return_inverse=True)
        number = np.empty(len(first), dtype=np.int64)
        number[np.argsort(first)] = np.arange(len(first))
        return number[places]
    import pandas as pd

    places, _ = pd.factorize(values, use_na_sentinel=False)
    return np.asarray(places, dtype=np.int64)


def as_number(value: object) -> float:
    """Return the number that a code or text reads as; NaN if it is none."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return np.nan
