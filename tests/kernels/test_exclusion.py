"""The bound of a cell: never below what some point links, and right where a hand can tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.kernels.exclusion import by_majorants, most_together, raise_majorant


def undecided_records(seed, n, k, rows):
    """Rows of some records, as values at the corners of a cell: each is positive somewhere."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, rows + 1, size=n)
    values = rng.normal(loc=rng.uniform(-0.6, 0.6), size=(sizes.sum(), k))
    if seed % 3 == 0:  # ties, zeros and multiples
        values = np.round(values)
    values[(values <= 0).all(axis=1), seed % k] = 1.0
    masks = ((values > 0) @ (1 << np.arange(k))).astype(np.int64)
    return values, masks, np.r_[0, np.cumsum(sizes)].astype(np.int64)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(2, 5), st.integers(1, 4))
def test_no_point_of_a_cell_links_more_than_its_bound(seed, n, k, rows):
    """Invariant: at corners, on edges and inside; groups that are handed down hold as well."""
    values, masks, starts = undecided_records(seed, n, k, rows)
    groups, no = np.arange(n), np.empty(0, dtype=np.int64)
    bound = most_together((values, masks, no, no, starts), n, groups, 0)
    rng = np.random.default_rng(seed + 1)
    points = np.vstack(
        [np.eye(k), rng.dirichlet(np.full(k, 0.2), 200), rng.dirichlet(np.ones(k), 400)]
    )
    linked = np.minimum.reduceat(values @ points.T, starts[:-1], axis=0) > 1e-12
    assert linked.sum(axis=0).max() <= bound <= n
    for group in np.unique(groups):  # a clique: at most one of its records at any point
        assert linked[groups == group].sum(axis=0).max() <= 1
    for some in (groups, np.arange(n)):
        count = int(some.max()) + 1
        assert linked.sum(axis=0).max() <= by_majorants(values, starts, n, some, count, 0) <= count


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 5))
def test_a_majorant_is_at_least_one_where_a_record_is_linked(seed, k, rows):
    """Invariant, also for the union with a record whose majorant was there before."""
    values, _, starts = undecided_records(seed, 2, k, rows)
    rng = np.random.default_rng(seed + 1)
    height, over = np.zeros(k), np.empty(k)
    point = rng.dirichlet(np.ones(k))
    points = np.vstack([np.eye(k), rng.dirichlet(np.full(k, 0.3), 400)])
    for record in range(2):
        first, last = starts[record : record + 2]
        raise_majorant(values, first, last, point, height, over)
        for one in range(record + 1):
            linked = (values[starts[one] : starts[one + 1]] @ points.T > 0).all(axis=0)
            assert (points[linked] @ height >= 1 - 1e-9).all()
        assert (height >= 0).all()


@pytest.mark.parametrize(("other", "cliques", "most"), [(-4.0, 1, 1), (-2.0, 3, 2), (-1.0, 3, 3)])
def test_three_records_by_hand(other, cliques, most):
    """Rows (3, b, b), (b, 3, b), (b, b, 3). With b = -4 half of two is negative everywhere: a
    clique. With b = -2 a record is linked where its weight is above 0.4: any two, not three; the
    majorants of y = 1/2 are (2.5, 0, 0) and so on, 2.5 in sum. With b = -1 the middle links all."""
    no, starts, masks = np.empty(0, dtype=np.int64), np.arange(4), np.array([1, 2, 4])
    values = np.full((3, 3), other) + (3.0 - other) * np.eye(3)
    groups = np.arange(3)
    assert most_together((values, masks, no, no, starts), 3, groups, 0) == cliques
    assert by_majorants(values, starts, 3, groups, cliques, 0) == most
