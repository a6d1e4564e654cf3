"""Lists of nearest records: the screened scan of large windows against the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.kernels.groups import kth_smallest
from tessella.kernels.windows import nearest_in_window, scan_all


@pytest.mark.parametrize("n", [513, 1000])
@pytest.mark.parametrize("d", [1, 5, 12])
@pytest.mark.parametrize("kind", ["normal", "tied", "outlier", "constant", "tiny"])
def test_screening_changes_no_list(n: int, d: int, kind: str) -> None:
    """An independent way to the same answer: exact distances to all records, ties included."""
    random = np.random.default_rng(n + d)
    X = random.normal(size=(n, d))
    if kind == "tied":
        X = np.round(X)
    elif kind == "outlier":
        X[7] = 1e9
    elif kind == "constant":
        X[:] = 0.1
    elif kind == "tiny":
        X = 1e-200 * X + 3.0
    expected = np.empty((n, 24), dtype=np.int32)
    scan_all(X, np.ascontiguousarray(X.T), 0, expected)
    np.testing.assert_array_equal(nearest_in_window(X, 24), expected)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.5, -3.0, 1e300]) | st.floats(-9, 9), min_size=1))
def test_kth_smallest_is_that_of_a_sorted_list(values: list[float]) -> None:
    for k, expected in enumerate(sorted(values)):
        assert kth_smallest(np.array(values), k) == expected
