"""Search: reaches the optimum where it is known, keeps k everywhere, ends when told."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from tessella.exceptions import BadOptionError, UnfinishedWarning, UnknownOptionError
from tessella.grouping import MDAV, Search, cells
from tessella.grouping import search as searching
from tessella.grouping.refining import Pool
from tests.amounts import few_or_many, try_examples
from tests.clock import driven_clock
from tests.reference.optimum import least_sse

Floats = NDArray[np.float64]


def standardised(X: Floats) -> Floats:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def quick(k: int, **options: object) -> Search:
    return Search(k, effort="quick", random_state=0, **options)


def test_two_far_triples_by_hand() -> None:
    X = np.array([[1.0], [2.0], [9.0], [3.0], [10.0], [11.0]])
    found = quick(3).fit(X)
    assert found.labels_.tolist() == [0, 0, 1, 0, 1, 1]
    assert found.inertia_ == pytest.approx(4.0)  # (1 + 0 + 1) twice
    assert found.cluster_centers_.ravel().tolist() == [2.0, 10.0]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_reaches_the_optimum_of_small_tables(seed: int, k: int) -> None:
    """Independent way: dynamic programming over all subsets."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((11, 2)) ** 3
    weights = random.uniform(0.2, 5.0, 11)
    found = quick(k).fit(X, sample_weight=weights)
    assert found.inertia_ == pytest.approx(least_sse(X, k, weights), rel=1e-9)


def no_group_is_smaller_than_k(n: int, d: int, k: int, values: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    X = {
        "normal": random.standard_normal((n, d)),
        "whole": random.integers(0, 3, (n, d)).astype(float),
        "zeros": random.standard_normal((n, d)) * (random.random((n, 1)) < 0.1),
        "heavy": random.standard_cauchy((n, d)) ** 3,
    }[values]
    k = min(k, n)
    with driven_clock():  # cut after a few rounds, or not at all
        limit = int(random.integers(1, 30)) if seed % 2 else None
        found = Search(k, effort="quick", time_limit=limit, random_state=seed).fit(X)
    sizes = np.bincount(found.labels_)
    assert sizes.min() >= k
    assert sizes.max() < 2 * k or n < 2 * k
    assert len(found.labels_) == n


@few_or_many(30, 100)
def test_no_group_is_smaller_than_k(count: int) -> None:
    try_examples(
        count,
        no_group_is_smaller_than_k,
        n=st.integers(4, 60),
        d=st.integers(1, 4),
        k=st.integers(2, 7),
        values=st.sampled_from(["normal", "whole", "zeros", "heavy"]),
        seed=st.integers(0, 10_000),
    )


@pytest.mark.usefixtures("few_moves")
def test_same_seed_same_groups_on_one_core_and_on_two(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    for n in (300, 7_000):  # whole-table runs, and windows alone
        X = random.standard_normal((n, 3))
        monkeypatch.setenv("TESSELLA_CORES", "1")
        one = quick(4).fit(X)
        monkeypatch.setenv("TESSELLA_CORES", "2")
        two = quick(4).fit(X)
        assert np.array_equal(one.labels_, two.labels_)
    other = Search(4, effort="quick", random_state=1).fit(X)
    assert not np.array_equal(other.labels_, two.labels_)


def test_strata_never_mix_and_share_the_work() -> None:
    random = np.random.default_rng(2)
    X, strata = random.standard_normal((600, 2)), random.integers(0, 5, 600)
    found = quick(5).fit(X, strata=strata)
    for group in range(found.n_groups_):
        assert len(set(strata[found.labels_ == group])) == 1
    assert np.bincount(found.labels_).min() >= 5


@pytest.mark.usefixtures("few_moves")
def test_large_tables_keep_k_and_beat_mdav() -> None:
    X = np.random.default_rng(3).standard_normal((12_000, 5))
    found = quick(5).fit(X)
    sizes = np.bincount(found.labels_)
    assert sizes.min() >= 5
    assert sizes.max() <= 9
    assert found.inertia_ < 0.9 * MDAV(5).fit(X).inertia_


@pytest.mark.usefixtures("few_moves")
def test_records_cross_the_borders_between_tiles() -> None:
    """Clusters of k far apart in random order: only a search without borders finds them all."""
    random = np.random.default_rng(4)
    centres = random.uniform(-1000, 1000, (2_000, 3))
    X = (centres[:, None, :] + random.normal(0, 0.01, (2_000, 4, 3))).reshape(-1, 3)
    order = random.permutation(len(X))
    found = quick(4).fit(X[order])
    truth = order // 4
    pairs = {(a, b) for a, b in zip(found.labels_, truth)}
    assert len(pairs) == found.n_groups_ == 2_000


@pytest.mark.usefixtures("few_moves")
def test_many_equal_records_keep_k() -> None:
    """What they cost: `python -m benchmarks.equal_records`."""
    random = np.random.default_rng(5)
    X = np.where(random.random((20_000, 4)) < 0.97, 0.0, random.integers(1, 9, (20_000, 4)))
    assert np.bincount(quick(3).fit(X).labels_).min() >= 3


def test_all_records_equal() -> None:
    found = quick(3).fit(np.full((50, 2), 7.5))
    assert found.inertia_ == 0.0
    assert np.bincount(found.labels_).min() >= 3
    assert (found.cluster_centers_ == 7.5).all()


@pytest.mark.parametrize("units", [None, 30])
@pytest.mark.parametrize("method", [quick(20), MDAV(20)])
@pytest.mark.filterwarnings("ignore:overflow")  # in the loss, which is infinite
def test_records_whose_distances_overflow_keep_k(method: Search, units: int | None) -> None:
    """Search with units ended the process: a ball found no k-th unit at a finite distance."""
    random = np.random.default_rng(0)
    X = random.standard_normal((300, 3))
    X[0] = 1e200
    unit = np.arange(300) if units is None else random.integers(units, size=300)
    labels = method.fit_predict(X, units=None if units is None else unit)
    assert min(len(np.unique(unit[labels == label])) for label in np.unique(labels)) >= 20


def test_an_offset_changes_nothing() -> None:
    """A bug to be feared: with centres far from zero, differences of squares lose all digits."""
    X = np.random.default_rng(6).standard_normal((200, 2)).round(3)
    near, far = quick(3).fit(X), quick(3).fit(X + 1e6)
    assert far.inertia_ == pytest.approx(near.inertia_, rel=0.01)


@pytest.mark.usefixtures("few_moves")
@pytest.mark.parametrize("n", [300, 7_000])  # whole-table runs, and windows alone
def test_ends_when_the_time_is_up(n: int) -> None:
    """Each look at the clock is a second: the limit cuts after so many rounds, and goes on as long
    as there is time, whatever the effort."""
    X = np.random.default_rng(7).standard_normal((n, 4))
    least = []
    for limit in (3, 12):
        with driven_clock() as clock:
            found = Search(3, effort="quick", time_limit=limit, random_state=0).fit(X)
        assert found.stopped_ == "time"
        assert limit <= clock.looks <= 2 * limit + 4
        assert np.bincount(found.labels_).min() >= 3
        least.append(found.inertia_)
    assert least[1] < least[0]


def test_an_alarm_stops_kernels_at_once() -> None:
    """It rings when the search begins: no move is made, the start is what is given."""
    X = np.random.default_rng(7).standard_normal((300, 4))
    names: list[str] = []

    def report(done: int, total: int, name: str) -> None:
        names.append(name)
        if name.startswith("start"):
            ((seconds, ring),) = clock.alarms
            assert 0 < seconds <= 1_000
            ring()

    with driven_clock() as clock:
        found = Search(3, effort="thorough", time_limit=1_000, progress=report, random_state=0).fit(
            X
        )
    assert found.stopped_ == "time"
    assert {name.split(",")[0] for name in names} <= {"start", "runs"}
    assert len({name.rpartition("SSE ")[2] for name in names}) == 1


def test_strata_share_the_time() -> None:
    X = np.random.default_rng(7).standard_normal((300, 2))
    with driven_clock() as clock:
        quick(3, time_limit=30).fit(X, strata=np.repeat([0, 1], [100, 200]))
    first, second = (seconds for seconds, _ in clock.alarms)
    assert first == pytest.approx(10, abs=1)
    assert second == pytest.approx(20, abs=4)


def test_progress_is_reported_and_may_stop() -> None:
    X = np.random.default_rng(8).standard_normal((400, 3))
    calls = []

    def report(done: int, total: int, name: str) -> bool:
        calls.append((done, total, name))
        return len(calls) == 3

    found = quick(3, progress=report).fit(X)
    assert found.stopped_ == "callback"
    least = [float(name.rpartition("SSE ")[2]) for _, _, name in calls]
    assert least == sorted(least, reverse=True)
    assert all(0 <= done <= total == 1000 for done, total, _ in calls)
    assert found.inertia_ <= least[-1] * (1 + 1e-5)  # six digits are reported
    with pytest.raises(TypeError, match="it is now called 'progress'"):
        Search(3, callback=report)


def test_progress_ends_at_a_thousand() -> None:
    X = np.random.default_rng(8).standard_normal((400, 3))
    shares = []
    quick(3, progress=lambda done, *_: shares.append(done)).fit(X, strata=np.arange(400) % 2)
    assert shares == sorted(shares)
    assert shares[-1] == 1000


def test_ctrl_c_gives_the_best_so_far() -> None:
    X = np.random.default_rng(9).standard_normal((500, 3))

    def interrupt(done: int, total: int, name: str) -> None:
        if not name.startswith("start"):
            raise KeyboardInterrupt

    search = quick(3, progress=interrupt)
    with pytest.warns(UnfinishedWarning, match="interrupted"):
        search.fit(X, strata=np.arange(500) % 3)
    assert search.stopped_ == "interrupt"
    assert np.bincount(search.labels_).min() >= 3


def test_a_saved_search_holds_no_rows() -> None:
    X = np.random.default_rng(10).standard_normal((200, 3)) + 123.456
    found = quick(3).fit(X)
    assert 0 < found.gap_ < 1
    saved = pickle.dumps(found)
    assert not any(row.tobytes() in saved for row in X)
    with pytest.raises(AttributeError, match="does not keep"):
        _ = pickle.loads(saved).gap_


@pytest.mark.parametrize("effort", ["best", None, 3])
def test_unknown_effort(effort: object) -> None:
    with pytest.raises(
        (UnknownOptionError, BadOptionError), match="'quick', 'standard', 'thorough'"
    ):
        Search(3, effort=effort).fit(np.zeros((9, 1)))


@pytest.mark.parametrize("limit", [0, -1, "ten"])
def test_senseless_time_limit(limit: object) -> None:
    with pytest.raises(BadOptionError, match="a number above 0"):
        Search(3, time_limit=limit).fit(np.zeros((9, 1)))


def test_pool_is_at_least_as_good_as_what_went_in() -> None:
    """Two partitions, each right in one half: the pool puts the right halves together."""
    X = np.array([0.0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112])[:, None]
    left = np.array([0, 0, 0, 1, 1, 1, 2, 3, 2, 3, 2, 3])
    right = np.array([0, 1, 0, 1, 0, 1, 2, 2, 2, 3, 3, 3])
    pool = Pool(X, np.ones(12), 3)
    pool.add(left)
    pool.add(right)
    assert pool.recombine(left, 0).tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


# Below every method of Mortazavi 2020, Table 2 (see FIGURES): quick effort.
PUBLISHED = {
    "tarragona": {3: 14.80, 5: 21.13, 10: 30.78},
    "census": {3: 5.01, 5: 7.94, 10: 12.23},
    "eia": {3: 0.369, 5: 0.75, 10: 1.99},
}
STANDARD = {
    "tarragona": {3: 14.49, 5: 20.19, 10: 30.14},
    "census": {3: 4.70, 5: 7.33, 10: 11.45},
    "eia": {3: 0.3495, 5: 0.7320, 10: 1.9380},
}
CELLS = [(name, k) for name in PUBLISHED for k in (3, 5, 10)]


def loss(search: Search, X: Floats) -> float:
    return 100 * search.fit(X).inertia_ / float((X**2).sum())


@pytest.mark.parametrize(("name", "k"), CELLS)
def test_quick_is_below_every_published_method(
    name: str, k: int, request: pytest.FixtureRequest
) -> None:
    X = standardised(request.getfixturevalue(name))
    assert loss(quick(k), X) < PUBLISHED[name][k]


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize(("name", "k"), CELLS)
def test_standard_meets_its_marks(name: str, k: int, request: pytest.FixtureRequest) -> None:
    X = standardised(request.getfixturevalue(name))
    assert loss(Search(k, random_state=0), X) <= STANDARD[name][k]


@pytest.mark.usefixtures("few_moves")
def test_long_rounds_report_their_parts_and_may_be_stopped_there(monkeypatch) -> None:
    """A bug once met: progress of 200,000 records stood still for seconds."""
    monkeypatch.setattr(searching, "WHOLE_TABLE", 2_000)
    monkeypatch.setattr(cells, "LARGE_WINDOW", 200)  # so that a round has many windows
    X = np.random.default_rng(8).standard_normal((4_000, 3))
    seen: list[int] = []
    whole = quick(3, progress=lambda done, *_: seen.append(done)).fit(X)
    rounds = len(searching.large_rounds(searching.standard_moves(len(X)) / 16))
    assert len(set(seen)) > 4 * rounds
    assert seen == sorted(seen)

    def stop(done: int, *_: object) -> bool:
        return done > 500

    found = quick(3, progress=stop).fit(X)
    assert found.stopped_ == "callback"
    assert np.bincount(found.labels_).min() >= 3
    assert whole.inertia_ < found.inertia_
