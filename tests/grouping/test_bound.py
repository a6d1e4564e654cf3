"""Lower bounds: never above the optimum, and as near to it as promised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from tessella._parameters import EFFORT
from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    GroupSizeError,
    UnfinishedWarning,
    UnknownOptionError,
)
from tessella.grouping import bound as module
from tessella.grouping import lower_bound
from tessella.grouping.base import Grouping
from tessella.grouping.bound import bound_of_parts
from tests.amounts import few_or_many, try_examples
from tests.clock import driven_clock
from tests.reference.optimum import least_sse, least_sse_of_strata, sse_of


@pytest.fixture(autouse=True, scope="module")
def as_long_as_it_takes():
    """Standard effort ends after a minute: on a busy machine that is another bound."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STANDARD_SECONDS", 1e9)
        yield


# Bounds on IL computed by other code, and the least IL that we know of: the truth lies between.
KNOWN = {"tarragona": (14.4588, 14.49), "census": (4.66, 4.70), "eia": (0.3428, 0.3495)}


def table(kind, n, random):
    """Small tables: smooth, on a coarse grid with many ties, heavy-tailed, with an offset."""
    if kind == "normal":
        return random.normal(size=(n, 3))
    if kind == "grid":
        return random.integers(0, 3, size=(n, 2)).astype(float)
    if kind == "heavy":
        return random.standard_t(1, size=(n, 2))
    return np.repeat(random.normal(size=(-(-n // 2), 2)), 2, axis=0)[:n] * 1e3 + 1e5


def zscore(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def information_loss(value, X):
    return 100 * value / X.size


@pytest.mark.parametrize("kind", ["normal", "grid", "heavy", "offset"])
@pytest.mark.parametrize("weights", ["equal", "few", "wild"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_no_bound_exceeds_the_optimum(kind, weights, k):
    random = np.random.default_rng([k, len(kind), len(weights)])
    for n in (2 * k - 1, 2 * k, 9):
        X = table(kind, n, random)
        w = {
            "equal": np.full(n, 2.5),
            "few": random.integers(1, 4, size=n).astype(float),
            "wild": np.exp(2 * random.normal(size=n)),
        }[weights]
        optimum = least_sse(X, k, w)
        quick = lower_bound(X, k, effort="quick", sample_weight=w)
        best = lower_bound(X, k, effort="thorough", sample_weight=w)
        slack = 1e-9 * optimum
        assert quick.value <= best.value + slack <= optimum + 2 * slack
        assert best.finished


def test_column_generation_often_meets_the_optimum():
    random = np.random.default_rng(5)
    met = 0
    for _ in range(10):
        X = random.normal(size=(10, 2))
        bound = lower_bound(X, 3, effort="thorough").value
        met += bound >= least_sse(X, 3) * (1 - 1e-4)
    assert met >= 7


def test_strata_are_bounded_apart():
    random = np.random.default_rng(2)
    X, strata = random.normal(size=(14, 2)), np.array(list("aaaaabbbbbbbbb"))
    w = random.uniform(0.5, 2.0, size=14)
    optimum = least_sse_of_strata(X, 3, strata, w)
    for effort in ("quick", "standard"):
        bound = lower_bound(X, 3, effort=effort, strata=strata, sample_weight=w)
        assert bound.value <= optimum * (1 + 1e-9)
    assert bound.method.startswith("column generation")
    assert "exact, one group" in bound.method
    parts = [np.arange(5), np.arange(5, 14)]
    quick = lower_bound(X, 3, effort="quick", strata=strata, sample_weight=w)
    assert bound_of_parts(X, w, parts, 3) == pytest.approx(quick.value, rel=1e-12)


@pytest.mark.parametrize("k", [2, 4, 7])
def test_one_group_is_exact(k):
    X = np.random.default_rng(k).normal(size=(2 * k - 1, 3))
    bound = lower_bound(X, k, effort="quick")
    assert bound.value == pytest.approx(sse_of(X, np.ones(len(X)), range(len(X))))
    assert bound.method == "exact, one group"


def test_regular_simplices_far_apart_are_exact():
    # Four records at squared distances 2, 2 and 8 of each other: six pairs over four, 3 + 3 + 12.
    # Every record pays the same, and nobody else is near.
    X = np.concatenate([np.eye(4), np.eye(4) + 100, 2 * np.eye(4) - 300])
    assert lower_bound(X, 4, effort="quick").value == pytest.approx(18.0)
    assert lower_bound(X, 4).value == pytest.approx(18.0)


def test_tight_clusters_far_apart_are_exact_by_columns():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(3, 2)) + 50 * i for i in range(6)])
    labels = np.repeat(np.arange(6), 3)
    bound = lower_bound(X, 3, labels=labels)
    assert bound.gap < 1e-8
    assert bound.upper == pytest.approx(bound.value)
    assert lower_bound(X, 3, upper=bound.upper).gap < 1e-4


def test_identical_records_cost_nothing():
    for effort in ("quick", "standard", "thorough"):
        bound = lower_bound(np.ones((40, 3)), 5, effort=effort, upper=0.0)
        assert bound.value == 0.0
        assert bound.gap == 0.0
        assert bound.finished


def test_integers_and_zeros_in_large_numbers():
    random = np.random.default_rng(0)
    X = random.integers(0, 4, size=(3000, 4)) * (random.uniform(size=(3000, 1)) < 0.1) * 1.0
    w = np.where(random.uniform(size=3000) < 0.5, 1.0, 2.0)
    order = np.lexsort(X.T)
    labels = np.empty(3000, dtype=int)
    labels[order] = np.arange(3000) // 3
    for weights in (None, w):
        with driven_clock():
            bound = lower_bound(X, 3, sample_weight=weights, labels=labels, time_limit=100)
        assert 0.0 <= bound.value <= bound.upper


def no_grouping_is_below(seed, k):
    random = np.random.default_rng(seed)
    n = int(random.integers(2 * k, 40))
    X = np.round(random.standard_t(2, size=(n, 2)), int(random.integers(0, 3)))
    labels = random.permutation(np.arange(n) // k % (n // k))
    with driven_clock():  # cut anywhere
        limit = int(random.integers(1, 200))
        bound = lower_bound(X, k, labels=labels, effort="standard", time_limit=limit)
    quick = lower_bound(X, k, effort="quick", upper=bound.upper)
    assert quick.value <= bound.value * (1 + 1e-9) + 1e-12
    assert bound.value <= bound.upper


@few_or_many(12, 25)
def test_no_grouping_is_below(count):
    try_examples(count, no_grouping_is_below, st.integers(0, 10**6), st.integers(2, 5))


@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_bounds_scale_with_table_and_weights(seed):
    random = np.random.default_rng(seed)
    X, w = random.normal(size=(12, 2)), random.uniform(1, 2, size=12)
    for effort in ("quick", "standard"):
        one = lower_bound(X, 3, effort=effort, sample_weight=w).value
        other = lower_bound(X[::-1] * 1e-3, 3, effort=effort, sample_weight=7 * w[::-1]).value
        assert other == pytest.approx(7e-6 * one, rel=1e-4)


def test_weights_of_one_are_no_weights():
    X = np.random.default_rng(1).normal(size=(60, 3))
    plain, weighted = lower_bound(X, 4), lower_bound(X, 4, sample_weight=np.ones(60))
    assert plain.value == weighted.value


def test_same_bound_on_one_core(monkeypatch):
    X = np.random.default_rng(1).normal(size=(150, 4))
    bound = lower_bound(X, 4)
    monkeypatch.setenv("TESSELLA_CORES", "1")
    assert lower_bound(X, 4).value == bound.value


def test_efforts_are_ordered_and_history_rises():
    X = np.random.default_rng(8).normal(size=(200, 5))
    values = [lower_bound(X, 3, effort=effort).value for effort in EFFORT.options]
    assert values[0] * 1.2 < values[1]
    assert values[1] <= values[2] * (1 + 1e-4)
    seen = []
    bound = lower_bound(X, 3, progress=lambda *call: seen.append(call))
    steps = [value for _, value in bound.history]
    assert steps == sorted(steps)
    assert steps[0] == pytest.approx(values[0])
    assert steps[-1] == bound.value == pytest.approx(reached(seen[-1][2]), rel=1e-5)
    shares = [done for done, _, _ in seen]
    assert shares == sorted(shares)
    assert all(0 <= done <= total == 100 for done, total, _ in seen)


def reached(name):
    """The bound so far, of which `progress` is given six digits."""
    return float(name.removeprefix("lower bound "))


def test_progress_counts_records_of_strata_that_are_done():
    X, seen = np.random.default_rng(8).normal(size=(90, 3)), []
    strata = np.repeat([0, 1], [30, 60])
    lower_bound(X, 3, strata=strata, effort="thorough", progress=lambda *call: seen.append(call))
    assert {done for done, _, _ in seen} == {0, 33}


def test_progress_can_stop():
    X = np.random.default_rng(8).normal(size=(200, 5))
    calls = []

    def stop(done, total, name):
        calls.append(reached(name))
        return len(calls) == 3

    bound = lower_bound(X, 3, progress=stop)
    assert len(calls) == 3
    assert bound.value == pytest.approx(calls[-1], rel=1e-5)
    assert bound.value <= lower_bound(X, 3).value
    assert not bound.finished
    assert "unfinished" in bound.method


def test_time_limit_stops_with_a_valid_bound():
    """Each look at the clock is a second: the limit cuts after so much work, and more is better."""
    X = np.random.default_rng(8).normal(size=(150, 4))
    quick, whole = (lower_bound(X, 4, effort=effort).value for effort in ("quick", "thorough"))
    values = []
    for limit in (10, 100):
        with driven_clock() as clock:
            bound = lower_bound(X, 4, time_limit=limit)
        assert limit <= clock.looks <= limit + 50
        assert not bound.finished
        assert "unfinished" in bound.method
        values.append(bound.value)
    assert quick <= values[0] < values[1] < whole


def test_ctrl_c_gives_what_there_is():
    X = np.random.default_rng(8).normal(size=(100, 3))
    calls = []

    def press(done, total, name):
        calls.append(reached(name))
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.warns(UnfinishedWarning, match="interrupted"):
        bound = lower_bound(X, 3, progress=press)
    assert bound.value >= calls[0]
    with pytest.raises(TypeError, match="it is now called 'progress'"):
        lower_bound(X, 3, callback=press)
    assert "interrupted" in bound.method


def test_left_out_column_generation_is_said(monkeypatch):
    monkeypatch.setattr(module, "MOST_RECORDS", 50)
    X = np.random.default_rng(8).normal(size=(60, 3))
    bound = lower_bound(X, 3, effort="thorough")
    assert bound.method == "nearest neighbours, more than 50 records: no column generation"
    assert not bound.finished


def test_gap_of_a_grouping_uses_the_quick_bound():
    class InOrder(Grouping):
        def _group(self, X, weights, k, random):
            return np.minimum(np.arange(len(X)) // k, len(X) // k - 1)

    X = np.random.default_rng(8).normal(size=(50, 2))
    grouping = InOrder(4).fit(X)
    quick = lower_bound(X, 4, effort="quick", upper=grouping.inertia_)
    assert grouping.gap_ == pytest.approx(quick.gap)


def test_prints_well():
    X = np.random.default_rng(8).normal(size=(1000, 2))
    text = str(lower_bound(X, 3, effort="quick", upper=100.0))
    assert "SSE of 1,000 records in groups of at least 3" in text
    assert "nearest neighbours" in text
    assert "% avoidable" in text
    assert "avoidable" not in str(lower_bound(X, 3, effort="quick"))


def test_bad_input_is_explained():
    X = np.random.default_rng(8).normal(size=(12, 2))
    with pytest.raises(UnknownOptionError, match="effort='hard' is not known"):
        lower_bound(X, 3, effort="hard")
    with pytest.raises(GroupSizeError, match="k=13 needs at least 13 records"):
        lower_bound(X, 13)
    with pytest.raises(GroupSizeError, match="whole number"):
        lower_bound(X, 2.5)
    with pytest.raises(BadOptionError, match="time_limit=0"):
        lower_bound(X, 3, time_limit=0)
    with pytest.raises(BadOptionError, match="none with groups of at least 3 is below"):
        lower_bound(X, 3, effort="quick", upper=1e-3)
    with pytest.raises(BadTableError, match="a group of 1 records although k=3"):
        lower_bound(X, 3, labels=[0] * 11 + [1])
    with pytest.raises(BadTableError, match="several strata"):
        lower_bound(X, 3, labels=[0] * 6 + [1] * 6, strata=[0] * 5 + [1] * 7)
    with pytest.raises(BadTableError, match="positive"):
        lower_bound(X, 3, sample_weight=[0.0] + [1.0] * 11)
    with pytest.raises(ValueError, match="NaN"):
        lower_bound(np.where(X > 1, np.nan, X), 3)


@pytest.mark.parametrize("name", ["tarragona", "census", "eia"])
@pytest.mark.parametrize("k", [3, 5, 10])
def test_quick_bound_of_the_public_tables(name, k, request):
    X = zscore(request.getfixturevalue(name))
    squares = np.sort(cKDTree(X).query(X, 2 * k - 1)[0] ** 2, axis=1)[:, 1:]
    sizes = np.arange(k, 2 * k)
    expected = (np.cumsum(squares, axis=1)[:, k - 2 :] / (2 * sizes)).min(axis=1).sum()
    bound = lower_bound(X, k, effort="quick")
    assert bound.value == pytest.approx(expected)


def raised_to(X, k, loss):
    """The bound, as a loss, once it has reached one, however long that takes."""

    def far_enough(done, total, name):
        return information_loss(reached(name), X) >= loss * (1 + 1e-5)

    bound = lower_bound(X, k, effort="thorough", progress=far_enough)
    return information_loss(bound.value, X)


@pytest.mark.parametrize("name", ["tarragona", "census"])
def test_column_generation_on_the_public_tables(name, request):
    X = zscore(request.getfixturevalue(name))
    proved, known = KNOWN[name]
    bound = raised_to(X, 3, (1 - 2e-3) * proved)
    assert 0.99 * known <= bound <= known
    assert bound == pytest.approx(proved, rel=2e-3)


@pytest.mark.slow
@pytest.mark.heavy
def test_column_generation_on_eia(eia):
    X = zscore(eia)
    proved = KNOWN["eia"][0]
    assert raised_to(X, 3, (1 - 1e-3) * proved) == pytest.approx(proved, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "k", "known"), [("tarragona", 5, 20.19), ("census", 5, 7.33)])
def test_column_generation_for_larger_groups(name, k, known, request):
    X = zscore(request.getfixturevalue(name))
    assert 0.98 * known <= raised_to(X, k, 0.98 * known) <= known
