"""What single columns hold: facts of their dtype, and their values as numbered texts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import narwhals as nw
import numpy as np
from narwhals import dependencies as libraries

from .._types import Integers, Name
from ..exceptions import BadTableError

__all__ = ["Facts", "describe", "facts_of", "number_arrow", "number_labels", "text_of"]

Family = Literal["float", "integer", "decimal", "boolean", "text", "category", "date", "other"]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a column's dtype says of it.

    `decimals` is the number of decimals that the dtype can hold: 0 for integers and booleans, the
    scale of a decimal, None for floats and for columns that are not numbers.
    """

    name: Name
    family: Family
    dtype: str
    decimals: int | None = None
    ordered: bool = False

    @property
    def numeric(self) -> bool:
        """Whether the column holds numbers; booleans and dates do not."""
        return self.family in ("float", "integer", "decimal")


def facts_of(name: Name, series: nw.Series[Any]) -> Facts:
    """Return what the dtype of a column tells."""
    native = _dtype(series.to_native())
    family = _family(series.dtype, native)
    decimals = {"integer": 0, "boolean": 0}.get(family)
    if family == "decimal":
        decimals = int(getattr(native, "pyarrow_dtype", native).scale)
    return Facts(
        name=name,
        family=family,
        dtype=str(native),
        decimals=decimals,
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
    place = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
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
