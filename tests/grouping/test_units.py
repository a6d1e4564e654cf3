"""k distinct units: every grouping, counted by plain pandas; against all partitions; and without
units nothing changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tessella.exceptions import BadTableError, BrokenPromiseError, GroupSizeError
from tessella.grouping import (
    CBFS,
    IGD,
    MDAV,
    VMDAV,
    Grouping,
    IteratedOrdering,
    OrderedGrouping,
    RepOrdMic,
    Search,
    UnivariateOptimal,
    lower_bound,
)
from tessella.grouping import bound as bounds
from tessella.grouping import search as searching
from tessella.grouping.base import check_k


class Pairs(Grouping):
    """Knows nothing of units: k neighbouring rows each."""

    def _group(self, X: Any, weights: Any, k: int, random: Any) -> Any:
        return np.minimum(np.arange(len(X)) // k, len(X) // k - 1)


def groupings(k: int, seed: int) -> list[Grouping]:
    return [
        MDAV(k),
        VMDAV(k, gamma=0.2 + seed % 3),
        CBFS(k),
        OrderedGrouping(k, order=("mdav", "nearest", "pca", "tour", "given")[seed % 5]),
        IteratedOrdering(k, orders=["zscore"], max_rounds=4),
        RepOrdMic(k, max_clusters=3, walks=2 * (seed % 2), random_state=seed),
        IGD(k, start=CBFS() if seed % 2 else None),
        UnivariateOptimal(k),
        Pairs(k),
        Search(k, time_limit=0.01, random_state=seed),
    ]


def random_table(seed: int) -> tuple[Any, Any, Any, int]:
    """Records, their units and weights, and k: units of one record up to nearly all of them."""
    random = np.random.default_rng(seed)
    n, d, k = int(random.integers(4, 50)), int(random.integers(1, 4)), int(random.integers(2, 6))
    n_units = int(random.integers(k, k + n))
    shares = random.dirichlet(np.full(n_units, random.choice([0.05, 1.0, 20.0])))
    units = np.r_[np.arange(k), random.choice(n_units, n, p=shares)]
    X = random.normal(size=(n_units, d))[units] * random.choice([0, 5])
    X += random.normal(size=X.shape)
    if seed % 4 == 0:
        X = X.round(0)
    weights = random.integers(1, 9, len(X)).astype(float) if seed % 3 == 0 else np.ones(len(X))
    return X, units, weights, k


def check_promise(seed: int, share: int = 1) -> None:
    """Fit every grouping, or each `share`-th of them in turn."""
    X, units, weights, k = random_table(seed)
    names = np.array([f"unit {u}" for u in units], dtype=object)
    for grouping in groupings(k, seed)[seed % share :: share]:
        table = X[:, :1] if isinstance(grouping, UnivariateOptimal) else X
        labels = grouping.fit(table, sample_weight=weights, units=names).labels_
        fewest = pd.Series(units).groupby(labels).nunique().min()
        assert fewest >= k, (type(grouping).__name__, seed)


def test_every_group_of_every_grouping_holds_k_units():
    for seed in range(100):
        check_promise(seed, share=3)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("seeds", [range(s, s + 100) for s in range(100, 2500, 100)])
def test_every_group_of_every_grouping_holds_k_units_in_2400_tables(seeds):
    for seed in seeds:
        check_promise(seed)


@cache
def partitions(n: int) -> Sequence[list[tuple[int, ...]]]:
    """All partitions of n records."""
    if n == 0:
        return [[]]
    found = []
    for parts in partitions(n - 1):
        found.append([*parts, (n - 1,)])
        for at in range(len(parts)):
            found.append([*parts[:at], (*parts[at], n - 1), *parts[at + 1 :]])
    return found


def sse(X: Any, weights: Any, rows: Sequence[int]) -> float:
    own, w = X[list(rows)], weights[list(rows)]
    return float(w @ ((own - w @ own / w.sum()) ** 2).sum(axis=1))


def least_sse(X: Any, weights: Any, allowed: Callable[[list[int]], bool]) -> float:
    """The least SSE of all partitions into groups that are allowed: an oracle for few records."""

    @cache
    def cost(part: tuple[int, ...]) -> float:
        return sse(X, weights, part) if allowed(list(part)) else np.inf

    return min(sum(map(cost, parts)) for parts in partitions(len(X)))


def least_with_units(X: Any, units: Any, weights: Any, k: int) -> float:
    return least_sse(X, weights, lambda part: len(set(units[part])) >= k)


def tiny_table(seed: int) -> tuple[Any, Any, Any, int]:
    random = np.random.default_rng(seed)
    n, k = 8, 2 + seed % 2
    units = np.r_[np.arange(k), random.integers(0, k + 1 + seed % 4, n - k)]
    X = random.normal(size=(9, 2))[units] * (seed % 3) + random.normal(size=(n, 2))
    return X, units, random.integers(1, 4, n).astype(float) if seed % 5 == 0 else np.ones(n), k


def test_search_finds_the_least_of_all_partitions():
    missed = 0
    for seed in range(40):
        X, units, weights, k = tiny_table(seed)
        least = least_with_units(X, units, weights, k)
        found = (
            Search(k, effort="quick", random_state=0)
            .fit(X, sample_weight=weights, units=units)
            .inertia_
        )
        assert found >= least * (1 - 1e-9)
        missed += found > least * (1 + 1e-9)
    assert missed <= 1


def test_no_partition_is_below_the_bound():
    sharper = 0
    for seed in range(60):
        X, units, weights, k = tiny_table(seed)
        least = least_with_units(X, units, weights, k)
        plain = lower_bound(X, k, effort="quick", sample_weight=weights).value
        bound = lower_bound(X, k, effort="quick", sample_weight=weights, units=units).value
        assert plain * (1 - 1e-9) <= bound <= least * (1 + 1e-9)
        sharper += bound > 1.05 * plain
    assert sharper > 30


@pytest.mark.parametrize("weighted", [False, True])
def test_a_price_is_the_least_share_of_a_group(weighted, monkeypatch):
    """Against all groups of a record; with short lists prices may only be lower."""
    random = np.random.default_rng(3)
    n, k = 10, 3
    X, units = random.normal(size=(n, 2)), random.integers(0, 5, n)
    weights = random.integers(1, 5, n).astype(float) if weighted else np.ones(n)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    least = np.full(n, np.inf)
    for mask in range(1, 2**n):
        rows = [i for i in range(n) if mask >> i & 1]
        if len(set(units[rows])) >= k:
            shares = weights[rows] * (squares[rows][:, rows] @ weights[rows]) / 2
            least[rows] = np.minimum(least[rows], shares / weights[rows].sum())
    assert bounds.prices_of_units(X, weights, k, units) == pytest.approx(least, rel=1e-9)
    for most in range(3, n):
        monkeypatch.setattr(bounds, "MOST_LISTED", most)
        monkeypatch.setattr(bounds, "LISTED", 1)
        assert (bounds.prices_of_units(X, weights, k, units) <= least * (1 + 1e-9)).all()


def test_the_gap_counts_units():
    X, units, weights, k = random_table(2)
    grouping = Search(k, effort="quick", random_state=0).fit(X, sample_weight=weights, units=units)
    bound = lower_bound(X, k, effort="quick", sample_weight=weights, units=units)
    assert grouping.gap_ == pytest.approx(1 - bound.value / grouping.inertia_)
    assert f"{len(set(units))} units in groups of at least {k} units" in str(bound)
    labels = grouping.labels_
    better = lower_bound(X, k, sample_weight=weights, units=units, labels=labels)
    assert bound.value <= better.value <= grouping.inertia_ * (1 + 1e-9)
    with pytest.raises(BadTableError, match="a group of 1 units although"):
        lower_bound(X, k, units=np.r_[np.zeros(len(X) - k), np.arange(k)], labels=labels)


def test_an_isolated_unit_brings_all_its_records():
    """By hand: ten records of a unit far out share one group with the nearest other unit."""
    X = np.r_[np.linspace(0, 1, 6), 100 + np.linspace(0, 0.1, 10)][:, None]
    units = np.r_[np.arange(6), np.full(10, 6)]
    for grouping in (MDAV(2), Search(2, effort="quick", random_state=0)):
        labels = grouping.fit(X, units=units).labels_
        assert len(set(labels[6:])) == 1
        assert labels[5] == labels[6]
        assert len(set(labels[:5])) == 2


def test_the_cut_of_a_path_is_the_best_of_all_cuts():
    for seed in range(40):
        X, units, weights, k = tiny_table(seed)
        least = np.inf
        for mask in range(2**7):
            cuts = [0, *(p + 1 for p in range(7) if mask >> p & 1), 8]
            parts = [list(range(a, b)) for a, b in pairwise(cuts)]
            if all(len(set(units[part])) >= k for part in parts):
                least = min(least, sum(sse(X, weights, part) for part in parts))
        found = OrderedGrouping(k, order="given").fit(X, sample_weight=weights, units=units)
        assert found.inertia_ == pytest.approx(least, rel=1e-9)


def plain_mdav(X: Any, units: Any, k: int) -> Any:
    """MDAV of units by plain scans: all records up to the k-th unit met, going outwards."""
    labels, left = np.full(len(X), -1), np.arange(len(X))

    def take(seed: int) -> None:
        nonlocal left
        order = left[np.lexsort([left, ((X[left] - X[seed]) ** 2).sum(axis=1), left != seed])]
        end = next(e for e in range(len(order) + 1) if len(set(units[order[:e]])) == k)
        labels[order[:end]] = labels.max() + 1
        left = np.setdiff1d(left, order[:end])

    while len(set(units[left])) >= k:
        far = left[((X[left] - X[left].mean(axis=0)) ** 2).sum(axis=1).argmax()]
        take(far)
        if len(set(units[left])) >= k:
            take(left[((X[left] - X[far]) ** 2).sum(axis=1).argmax()])
    centres = np.array([X[labels == g].mean(axis=0) for g in range(labels.max() + 1)])
    for row in left:
        labels[row] = ((centres - X[row]) ** 2).sum(axis=1).argmin()
    return labels


@pytest.mark.parametrize("seed", range(8))
def test_mdav_is_that_of_a_plain_scan(seed):
    random = np.random.default_rng(seed)
    n, k = 700, 2 + seed % 4
    units = random.choice(60 + 80 * (seed % 3), n)
    X = random.normal(size=(300, 3))[units] + 0.3 * random.normal(size=(n, 3))
    expected = plain_mdav(X, units, k)
    labels = MDAV(k).fit(X, units=units).labels_
    assert pd.Series(expected).groupby(labels).nunique().max() == 1
    assert expected.max() == labels.max()


def test_large_tables_are_searched_in_windows(monkeypatch):
    """An invariant: units of one record to hundreds; few moves, and a small whole table."""
    monkeypatch.setattr(searching, "WHOLE_TABLE", 500)
    monkeypatch.setattr(searching, "standard_moves", lambda _: 6_000.0)
    random = np.random.default_rng(0)
    n = 1_500
    units = np.where(random.random(n) < 0.3, 0, random.integers(1, 300, n))
    X = random.normal(size=(900, 2))[units] + 0.2 * random.normal(size=(n, 2))
    grouping = Search(3, effort="quick", random_state=1).fit(X, units=units)
    assert pd.Series(units).groupby(grouping.labels_).nunique().min() >= 3
    assert grouping.inertia_ < MDAV(3).fit(X, units=units).inertia_
    again = Search(3, effort="quick", random_state=1).fit(X, units=units)
    assert (again.labels_ == grouping.labels_).all()


def test_units_that_are_all_different_change_nothing():
    X = np.random.default_rng(0).normal(size=(60, 2))
    strata = np.arange(60) % 2
    for grouping in groupings(3, 1)[:-1]:
        table = X[:, :1] if isinstance(grouping, UnivariateOptimal) else X
        plain = grouping.fit(table, strata=strata).labels_
        # each pair of rows is a unit, and its rows are in different strata
        assert (grouping.fit(table, strata=strata, units=np.arange(60) // 2).labels_ == plain).all()
        assert (grouping.fit(table, strata=strata, units=np.arange(60)).labels_ == plain).all()


def test_labels_without_units_are_what_they_were():
    """Hashes of labels before units were known."""
    expected = {
        MDAV(3): "d7e2e7990a",
        VMDAV(4, gamma=0.5): "dfabec70ef",
        CBFS(3): "d6c941d600",
        OrderedGrouping(3): "8adc3266b5",
        IteratedOrdering(3, max_rounds=20): "b23730082d",
        IGD(3): "3ffdd0fe41",
        Search(3, effort="quick", random_state=0): "b0c977fa9a",
    }
    random = np.random.default_rng(0)
    X, w = random.lognormal(size=(400, 4)).round(1), random.integers(1, 5, 400).astype(float)
    for grouping, digest in expected.items():
        found = [
            grouping.fit(X).labels_,
            grouping.fit(X, sample_weight=w).labels_,
            grouping.fit(X, strata=np.arange(400) % 3).labels_,
        ]
        assert hashlib.sha1(np.concatenate(found).tobytes()).hexdigest()[:10] == digest


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_every_record_has_a_unit(missing):
    units = np.array(["secret 4711"] * 5 + [missing] + list("abcdef"), dtype=object)
    with pytest.raises(BadTableError, match="1 missing value") as caught:
        MDAV(3).fit(np.ones((12, 1)), units=units)
    assert "4711" not in str(caught.value)


def test_one_record_or_unit_gets_no_advice_that_nothing_allows():
    """A bug once met: "Give a smaller k", where the least k, 2, is too large."""
    for n, n_units in ((1, None), (1, 1), (6, 1)):
        with pytest.raises(GroupSizeError, match="No k is small enough") as refused:
            check_k(2, n, n_units)
        assert "smaller k" not in str(refused.value)
    with pytest.raises(GroupSizeError, match="Give a smaller k"):
        check_k(3, 2)


def test_too_few_units_are_refused_in_units():
    X, strata = np.arange(12.0)[:, None], ["a"] * 6 + ["b"] * 6
    with pytest.raises(GroupSizeError, match="needs at least 3 units, and the table has 2 in 12"):
        MDAV(3).fit(X, units=np.arange(12) % 2)
    with pytest.raises(GroupSizeError, match=r"fewer units: b \(2\)"):
        MDAV(3).fit(X, strata=strata, units=[1, 2, 3, 4, 5, 6, 7, 7, 7, 8, 8, 8])


def test_a_grouping_that_breaks_the_promise_is_withheld():
    class Broken(Pairs):
        def _group_units(self, X, weights, k, random, units):
            return self._group(X, weights, k, random)

    with pytest.raises(BrokenPromiseError, match="a group of 1 units although k=3"):
        Broken(3).fit(np.arange(9.0)[:, None], units=[0, 0, 0, 1, 2, 3, 4, 5, 6])
