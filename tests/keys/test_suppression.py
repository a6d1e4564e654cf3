"""Local suppression against enumeration, and what must be true of any release."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.exceptions import RefusedError
from tessella.frame import count_units, group_ids
from tessella.keys import category, suppression
from tessella.keys.bound import price_bound
from tessella.keys.classes import list_classes
from tessella.keys.combinations import Combinations
from tessella.keys.matches import count_matches
from tessella.keys.suppression import Task, suppress_keys, suppress_subsets
from tessella.keys.wildcard import suppress_by_wildcard
from tests.reference.local_suppression import fewest_by_wildcard, fewest_cells, matches

HEAVY = (pytest.mark.slow, pytest.mark.heavy)


def task_of(codes, k, *, never=(), limit=None, importance=None, **others):
    q = codes.shape[1]
    return Task(
        codes=codes,
        k=k,
        importance=np.ones(q) if importance is None else np.asarray(importance, dtype=float),
        never=np.isin(np.arange(q), never),
        limit=np.full(q, np.inf) if limit is None else np.asarray(limit, dtype=float),
        **others,
    )


def draw_table(seed, n=None, q=None, empties=True):
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 9)) if n is None else n
    q = int(random.integers(1, 5)) if q is None else q
    return random.integers(0 if empties and seed % 3 == 0 else 1, 4, size=(n, q)), random


def smallest(codes, units=None):
    return int(count_units(group_ids(codes.T), units).min())


def agrees_with_enumeration(seed):
    codes, random = draw_table(seed)
    k = int(random.integers(2, 4))
    importance = random.integers(1, 4, size=codes.shape[1])
    never = [0] if seed % 4 == 0 else []
    best = fewest_cells(codes.tolist(), k, importance.tolist(), never=never)
    task = task_of(codes, k, never=never, importance=importance)
    if best is None:
        with pytest.raises(RefusedError, match="never="):
            suppress_keys(task)
        return
    done = suppress_keys(task)
    assert done.cost == best
    assert done.proved_optimal
    assert smallest(done.codes) >= k
    assert ((done.codes == codes) | (done.codes == 0)).all()


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_enumeration(seed):
    """An independent way to the same answer, with empty cells, importance and keys to keep."""
    agrees_with_enumeration(seed)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(30, 560))
def test_agrees_with_enumeration_on_many(seed):
    agrees_with_enumeration(seed)


@pytest.mark.parametrize("seed", range(12))
def test_limits_agree_with_enumeration(seed, monkeypatch):
    monkeypatch.setattr(suppression, "ROUNDS", 4)  # of 5 records the programme knows the best
    codes, random = draw_table(seed, n=5, q=2, empties=False)
    limit = random.integers(1, 5, size=2)
    best = fewest_cells(codes.tolist(), 2, [1, 1], limit=limit.tolist())
    task = task_of(codes, 2, limit=limit)
    if best is None:
        with pytest.raises(RefusedError, match="limit"):
            suppress_keys(task)
    else:
        done = suppress_keys(task)
        assert done.cost == best
        assert (((done.codes == 0).sum(axis=0)) <= limit).all()


@pytest.mark.parametrize("seed", range(6))
def test_search_reaches_k_and_bound_is_below(seed, monkeypatch):
    """Too many combinations for the programme: strata, units and costs of records included."""
    monkeypatch.setattr(category, "ATTEMPTS", 10)  # k is reached and the bound below after any
    random = np.random.default_rng(seed)
    codes = random.integers(1, 4, size=(600, 8))
    others = {}
    if seed % 3 == 1:
        others["units"] = random.integers(0, 300, size=600)
    if seed % 3 == 2:
        others |= {"strata": random.integers(0, 3, 600), "costs": random.uniform(0.5, 2, 600)}
    done = suppress_keys(task_of(codes, 3, **others))
    seen = group_ids([others.get("strata", np.zeros(600, dtype=int)), *done.codes.T])
    assert count_units(seen, others.get("units")).min() >= 3
    assert 0 < done.bound <= done.cost
    assert 0 <= done.gap < 0.5


def test_bound_holds_against_the_optimum_by_hand():
    """Two records that agree in nothing lose both keys each; the third pair stays."""
    codes = np.array([[1, 1], [1, 1], [2, 2], [3, 3]])
    done = suppress_keys(task_of(codes, 2))
    assert done.codes.tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]
    assert (done.cost, done.bound, done.gap) == (4.0, 4.0, 0.0)


@pytest.mark.parametrize("seed", range(20))
def test_matches_are_those_of_comparing_all_pairs(seed):
    random = np.random.default_rng(seed)
    codes = random.integers(0, 3, size=(12, 3))
    found = count_matches(codes, np.ones(12, dtype=np.int64), np.zeros(12, dtype=np.int64))
    assert found.tolist() == matches(codes.tolist())


@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(s, marks=HEAVY) for s in range(20, 60))]
)
def test_wildcard_reaches_k_and_costs_no_more_than_each_alone(seed):
    codes, _ = draw_table(seed, n=30, q=3)
    done = suppress_by_wildcard(task_of(codes, 3))
    assert min(matches(done.codes.tolist())) >= 3
    assert done.bound <= done.cost
    strict = suppress_keys(task_of(codes, 3))
    assert done.cost <= strict.cost


@pytest.mark.parametrize("empties", [False, True])
def test_wildcard_agrees_with_enumeration(empties):
    """Also where cells of the original are empty: who matched before is helped by nobody twice."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        codes = random.integers(0 if empties else 1, 4, size=(7, 3))
        k, importance = int(random.integers(2, 4)), random.integers(1, 3, size=3)
        best = fewest_by_wildcard(codes.tolist(), k, importance.tolist())
        done = suppress_by_wildcard(task_of(codes, k, importance=importance))
        assert best is None or (done.cost == best and done.bound <= best)


def test_prices_are_no_bound_above_the_optimum():
    """However few classes are listed: what is left out must not make the bound too high."""
    for seed in range(60):
        codes, random = draw_table(seed)
        k, q = int(random.integers(2, 4)), codes.shape[1]
        importance = random.integers(1, 4, size=q).astype(float)
        best = fewest_cells(codes.tolist(), k, importance.tolist())
        found = Combinations.count(codes)
        for most in (3, 10, 10**6):
            classes = list_classes(found, k, importance, np.zeros(q, dtype=bool), None, most=most)
            assert price_bound(found, classes, k, 1.5 * best + 1).bound <= best + 1e-6


@pytest.mark.parametrize("solve", [suppress_keys, suppress_by_wildcard])
def test_subsets_reach_k_each(solve):
    random = np.random.default_rng(3)
    codes = random.integers(1, 7, size=(60, 4))
    done = suppress_subsets(task_of(codes, 3), 2, solve=solve)
    for a in range(4):
        for b in range(a):
            own = done.codes[:, [a, b]]
            reached = smallest(own) if solve is suppress_keys else min(matches(own.tolist()))
            assert reached >= 3
    assert done.bound <= done.cost


def test_same_seed_same_release():
    codes = np.random.default_rng(0).integers(1, 6, size=(120, 7))
    first, second = (suppress_keys(task_of(codes, 2), seed=5) for _ in range(2))
    assert np.array_equal(first.codes, second.codes)
