"""Numbers between Arrow and NumPy: pyarrow's own conversions, which load pandas, say the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.frame.arrow import from_numpy, from_texts, to_numpy

KINDS = {
    pa.float64(): st.floats(width=64), pa.float32(): st.floats(width=32),
    pa.int64(): st.integers(-(2**63), 2**63 - 1), pa.int32(): st.integers(-9, 9),
    pa.uint8(): st.integers(0, 255), pa.bool_(): st.booleans(),
}  # fmt: skip


@given(st.data())
def test_arrays_are_those_of_pyarrow(data):
    """An independent way, with chunks, slices and missing cells."""
    kind = data.draw(st.sampled_from(list(KINDS)))
    cells = KINDS[kind] if data.draw(st.booleans()) else KINDS[kind] | st.none()
    lists = data.draw(st.lists(st.lists(cells, max_size=20), min_size=1, max_size=3))
    chunks = [pa.array(one, kind) for one in lists]
    cut = data.draw(st.integers(0, 5))
    column = pa.chunked_array([chunk.slice(min(cut, len(chunk))) for chunk in chunks])
    expected = column.to_numpy(zero_copy_only=False)
    for found in (to_numpy(column), to_numpy(column.combine_chunks())):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_what_is_no_number_is_converted_by_pyarrow():
    assert to_numpy(pa.chunked_array([["a", None]])).tolist() == ["a", None]
    assert to_numpy(pa.array([1, None])).tolist() == pytest.approx([1, np.nan], nan_ok=True)


@given(st.lists(st.tuples(st.floats(), st.booleans()), max_size=30))
def test_numbers_are_those_of_pyarrow(cells):
    values = np.array([value for value, _ in cells], dtype=np.float64)
    null = np.array([gone for _, gone in cells], dtype=bool)
    found = from_numpy(np.column_stack([values, values])[:, 0], null)
    found.validate(full=True)
    expected = pa.array(values, mask=null, from_pandas=False)
    assert found.is_valid().equals(expected.is_valid())
    np.testing.assert_array_equal(found.to_numpy(False), expected.to_numpy(False))


@given(st.lists(st.text()))
def test_texts_are_those_of_pyarrow(texts):
    texts = [text.encode(errors="replace").decode() for text in texts]
    found = from_texts(texts)
    found.validate(full=True)
    assert found.equals(pa.array(texts, pa.string()))
