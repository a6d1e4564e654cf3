"""Numbers between Arrow and NumPy, without pandas.

pyarrow's own conversions (`pa.array`, `to_numpy`) load pandas, in case there is a Series among what
they are given. That takes longer than reading a small table; plain numbers and truths need it not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._types import Floats, Integers, Truths


def to_numpy(column: Any, *, missing: float = np.nan) -> Any:
    """Return Arrow's numbers or truths as an array, with `missing` where one is missing.

    The array cannot be written to where it is Arrow's own memory.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tessella.frame.arrow import to_numpy
    >>> to_numpy(pa.chunked_array([[1.5, None], [2.5]]))
    array([1.5, nan, 2.5])
    """
    import pyarrow as pa

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    kind = column.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not plain or (column.null_count and np.isnan(missing) and not pa.types.is_float64(kind)):
        return column.to_numpy(zero_copy_only=False)
    found = [_one_chunk(chunk, missing) for chunk in chunks]
    if len(found) == 1:
        return found[0]
    return np.concatenate([*found, np.empty(0, _dtype(kind))])


def _dtype(kind: Any) -> Any:
    return np.dtype({"bool": "bool", "halffloat": "f2", "float": "f4", "double": "f8"}.get(
        str(kind), str(kind)
    ))  # fmt: skip


def _one_chunk(chunk: Any, missing: float) -> Any:
    import pyarrow as pa

    valid, data = chunk.buffers()
    first, last = chunk.offset, chunk.offset + len(chunk)
    if pa.types.is_boolean(chunk.type):
        return _bits(data, first, last)
    values = np.frombuffer(data or b"", _dtype(chunk.type), count=last if data else 0)[first:]
    if not chunk.null_count:
        return values
    return np.where(_bits(valid, first, last), values, np.array(missing, values.dtype))


def _bits(data: Any, first: int, last: int) -> Truths:
    letters = np.frombuffer(data or b"", np.uint8)
    return np.unpackbits(letters, count=last, bitorder="little")[first:].view(np.bool_)


def from_numpy(values: Floats | Integers, null: Truths | None = None) -> Any:
    """Return numbers as an array of Arrow's, float64 or int64; NaN stays a number."""
    import pyarrow as pa

    bits = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    whole = values.dtype.kind in "iu"
    data = np.ascontiguousarray(values, dtype=np.int64 if whole else np.float64)
    kind = pa.int64() if whole else pa.float64()
    return pa.Array.from_buffers(kind, len(data), [bits, pa.py_buffer(data)])


def from_texts(texts: Iterable[str]) -> Any:
    """Return texts as an array of Arrow's."""
    import pyarrow as pa

    written = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, written)], dtype=np.int32)
    data = pa.py_buffer(b"".join(written))
    return pa.StringArray.from_buffers(len(written), pa.py_buffer(ends), data)


def scalar(value: float | str) -> Any:
    """Return a number or a text as one of Arrow's functions takes it."""
    one = from_texts([value]) if isinstance(value, str) else from_numpy(np.array([value]))
    return one[0]
