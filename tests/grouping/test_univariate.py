"""One column: exact, fast for every k, and honest about weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import check_estimator

from tessella.exceptions import BadTableError, GroupSizeError
from tessella.grouping import UnivariateOptimal
from tessella.kernels.sequence import best_cut, best_sorted_cut
from tests.reference.optimum import least_sse
from tests.reference.sequences import plain_cut, sse_of_labels

# smooth numbers, and few different ones: ties break what ties can
values = st.lists(st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float), min_size=4, max_size=40)


def sorted_order(x):
    return np.argsort(x, kind="stable")


# by hand


def test_two_clumps():
    grouping = UnivariateOptimal(k=2).fit([10.0, 1.0, 11.0, 2.0, 12.0])
    assert grouping.labels_.tolist() == [0, 1, 0, 1, 0]
    assert grouping.inertia_ == 2.5


def test_a_column_and_a_row_of_numbers_are_the_same():
    x = np.array([3.0, 1.0, 2.0, 8.0, 9.0, 7.0])
    expected = UnivariateOptimal(k=3).fit(x[:, None]).labels_
    for given_as in (x, x.tolist(), tuple(x), x.astype(np.float32)):
        assert (UnivariateOptimal(k=3).fit(given_as).labels_ == expected).all()


def test_weights_may_break_contiguity():
    """The counterexample of the docstring: the best contiguous cut is not the best of all."""
    x, weights = np.array([0.0, 1.0, 2.0, 3.0]), np.array([100.0, 100.0, 1.0, 1.0])
    contiguous = UnivariateOptimal(k=2).fit(x, sample_weight=weights).inertia_
    assert contiguous == pytest.approx(50.5)
    apart = sse_of_labels(x[:, None], weights, np.array([0, 1, 0, 1]))
    assert apart == pytest.approx(7.92, abs=0.01)
    assert least_sse(x[:, None], 2, weights) == pytest.approx(apart)


def test_several_columns_are_refused_with_a_hint():
    with pytest.raises(BadTableError, match=r"has 2\. .* Search or OrderedGrouping"):
        UnivariateOptimal(k=2).fit(np.arange(12.0).reshape(6, 2))


def test_k_above_n_is_refused():
    with pytest.raises(GroupSizeError, match="k=5 needs"):
        UnivariateOptimal(k=5).fit([1.0, 2.0])


def test_fewer_than_2k_records_are_one_group():
    assert UnivariateOptimal(k=3).fit([5.0, 1.0, 9.0, 2.0, 7.0]).n_groups_ == 1


# an independent way to the same answer


@given(values, st.integers(2, 4))
def test_no_partition_at_all_is_better(x, k):
    x = np.array(x[:10])
    k = min(k, len(x))
    found = UnivariateOptimal(k=k).fit(x).inertia_
    rounded = 10 * (np.finfo(float).eps * np.abs(x).max()) ** 2  # equal values, and their mean
    least = least_sse(x[:, None], k)
    assert found == pytest.approx(least, rel=1e-9, abs=1e-9 * np.ptp(x) + rounded)


@given(values, st.integers(2, 9), st.data())
def test_no_contiguous_partition_is_better(x, k, data):
    x = np.array(x)
    k, small = min(k, len(x)), 1e-9 * np.ptp(x) + 1e-28 * (1 + np.abs(x).max()) ** 2
    weights = np.array(data.draw(st.lists(st.floats(0.1, 9), min_size=len(x), max_size=len(x))))
    order = sorted_order(x)
    labels, error = best_sorted_cut(x[:, None], weights, order, k)
    _, expected = plain_cut(x[:, None], weights, order, k, longest=len(x))
    assert error == pytest.approx(expected, rel=1e-9, abs=small)
    assert error == pytest.approx(sse_of_labels(x[:, None], weights, labels), rel=1e-9, abs=small)


@pytest.mark.parametrize("k", [2, 7, 64, 333, 1999])
@pytest.mark.parametrize("kind", ["lognormal", "integers", "zeros", "lattice", "cauchy"])
def test_large_k_is_as_good_as_trying_every_start(k, kind):
    random = np.random.default_rng(k)
    n = 4 * k + 37 if k > 64 else 3000
    x = {
        "lognormal": lambda: random.lognormal(0, 2, n),
        "integers": lambda: random.integers(0, 9, n).astype(float),
        "zeros": lambda: np.where(random.random(n) < 0.9, 0.0, random.normal(size=n)),
        "lattice": lambda: np.arange(n, dtype=float),
        "cauchy": lambda: random.standard_cauchy(n),
    }[kind]()
    weights = random.uniform(0.5, 2, n)
    order = sorted_order(x)
    labels, error = best_sorted_cut(x[:, None], weights, order, k)
    _, expected = best_cut(x[:, None], weights, order, k)  # all k starts of every end
    assert error == pytest.approx(expected, rel=1e-11, abs=1e-300)
    sizes = np.bincount(labels)
    assert k <= sizes.min()
    assert sizes.max() < 2 * k


@pytest.mark.slow
def test_microagg1d_agrees():
    microagg1d = pytest.importorskip("microagg1d")
    random = np.random.default_rng(0)
    for k in (2, 3, 10):  # its default method, "simple", misses the optimum at k = 3 and 10
        x = np.sort(random.lognormal(size=2000))
        labels = microagg1d.univariate_microaggregation(x, k, method="wilber")
        expected = sse_of_labels(x[:, None], np.ones(len(x)), labels)
        assert UnivariateOptimal(k=k).fit(x).inertia_ == pytest.approx(expected, rel=1e-10)


# invariants


@given(values, st.integers(2, 6))
def test_groups_are_contiguous_and_have_k_to_2k_records(x, k):
    x = np.array(x)
    if len(x) < 2 * k:
        return
    labels = best_sorted_cut(x[:, None], np.ones(len(x)), sorted_order(x), k)[0]
    sizes = np.bincount(labels)
    assert k <= sizes.min() <= sizes.max() < 2 * k
    along = labels[sorted_order(x)]
    assert (np.diff(along) >= 0).all()
    assert all(x[labels == a].max() <= x[labels == b].min() for a, b in pairwise(range(len(sizes))))


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
def test_a_large_offset_costs_no_digits(offset):
    """Multiples of 2^-10 stay exact at this offset, so the SSE must be the same to rounding."""
    random = np.random.default_rng(1)
    x = random.integers(0, 2**14, 5000) / 2.0**10
    plain = UnivariateOptimal(k=4).fit(x)
    shifted = UnivariateOptimal(k=4).fit(x + offset)
    order = sorted_order(x)
    error = best_sorted_cut((x + offset)[:, None], np.ones(5000), order, 4)[1]
    assert error == pytest.approx(plain.inertia_, rel=1e-12)
    assert sse_of_labels(x[:, None], np.ones(5000), shifted.labels_) == pytest.approx(
        plain.inertia_, rel=1e-12
    )


def test_far_outliers_cost_no_digits():
    """Two clusters 2^50 apart: each must be cut as if it were alone."""
    left = np.random.default_rng(2).integers(0, 64, 40).astype(float)
    alone = UnivariateOptimal(k=3).fit(left).inertia_
    labels = UnivariateOptimal(k=3).fit(np.concatenate([left, left + 2.0**50])).labels_
    assert set(labels[:40]).isdisjoint(labels[40:])
    for own in (labels[:40], labels[40:]):
        assert sse_of_labels(left[:, None], np.ones(40), own) == pytest.approx(alone, rel=1e-12)


# the promise of size, and of scikit-learn


@pytest.mark.parametrize("k", [5, 1000])
def test_a_million_values(k):
    """How long they take: `python -m benchmarks.univariate`."""
    x = np.random.default_rng(3).lognormal(size=1_000_000)
    sizes = np.bincount(UnivariateOptimal(k=k).fit(x).labels_)
    assert sizes.min() >= k
    assert sizes.max() < 2 * k


class FirstColumn(UnivariateOptimal):
    """scikit-learn's checks have tables of several columns; this one looks at the first only."""

    def _group(self, X, weights, k, random):
        return super()._group(np.ascontiguousarray(X[:, :1]), weights, k, random)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
        return tags


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scikit_learn():
    expected = {
        "check_sample_weight_equivalence_on_dense_data": "k counts records, not weights",
        "check_clustering": "groups of three cannot follow three blobs",
        "check_fit1d": "one-dimensional input is welcome here",
    }
    check_estimator(FirstColumn(), expected_failed_checks=expected)
