"""Coverings: k groups of k for every record, the best memberships, and exact draws."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from benchmarks.overlapping import frequencies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from tessella.exceptions import GroupSizeError
from tessella.grouping import lower_bound
from tessella.grouping.covering import cyclic_covering, find_covering
from tessella.kernels.covering import draw_matching
from tests.amounts import few_or_many, try_examples


def normal(n, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def quick(X, k, weights=None, seed=0):
    return find_covering(
        X, np.ones(len(X)) if weights is None else weights, k, effort="quick", seed=seed
    )


def is_covering(members, k):
    every = np.bincount(members.ravel(), minlength=len(members))
    return (every == k).all() and all(len(set(group)) == k for group in members.tolist())


def sse(X, w, group):
    own = list(group)
    mean = np.average(X[own], axis=0, weights=w[own])
    return float(w[own] @ ((X[own] - mean) ** 2).sum(axis=1))


def least_covering(X, w, k):
    """An independent way: an integer programme over all groups of k."""
    groups = list(combinations(range(len(X)), k))
    holds = np.array([[i in group for group in groups] for i in range(len(X))], float)
    found = milp(
        [sse(X, w, group) for group in groups],
        constraints=LinearConstraint(holds, k, k),
        integrality=np.ones(len(groups)),
        bounds=Bounds(0, k),
    )
    return found.fun / k


def least_memberships(X, w, k, centres):
    """The problem as it is stated: memberships in given centres, with whole sums."""
    n, c = len(X), len(centres)
    cost = w[:, None] * ((X[:, None] - centres) ** 2).sum(axis=2)
    rows, low, high = [], [], []
    for i in range(n):
        rows.append(np.concatenate([np.repeat(np.arange(n) == i, c), np.zeros(c)]))
        low, high = [*low, 1], [*high, 1]
    for j in range(c):
        rows.append(np.concatenate([np.tile(np.arange(c) == j, n), -1.0 * (np.arange(c) == j)]))
        low, high = [*low, 0], [*high, 0]
        for i in range(n):
            one = np.zeros(n * c + c)
            one[i * c + j], one[n * c + j] = k, -1
            rows.append(one)
            low, high = [*low, -np.inf], [*high, 0]
    found = milp(
        np.concatenate([cost.ravel(), np.zeros(c)]),
        constraints=LinearConstraint(np.array(rows, float), low, high),
        integrality=np.concatenate([np.zeros(n * c), np.ones(c)]),
    )
    return found.fun


def test_by_hand():
    """Records 0 to 4 with k = 2: a pair, and a triangle whose pairs cost 1/2, 1/2 and 2."""
    X = np.arange(5.0)[:, None]
    found = quick(X, 2)
    assert found.crisp == pytest.approx(2.5)
    assert (
        found.sse
        == pytest.approx((2 * 0.5 + 0.5 + 0.5 + 2) / 2)
        == least_covering(X, np.ones(5), 2)
    )
    assert found.bound == pytest.approx(2.0)


def test_a_cyclic_covering_takes_successors():
    members = cyclic_covering(np.array([0, 1, 0, 1, 0, 1, 0]), 3)
    assert members[:4].tolist() == [[0, 2, 4], [2, 4, 6], [4, 6, 0], [6, 0, 2]]
    assert is_covering(members, 3)


@pytest.mark.parametrize("k", [2, 3])
def test_the_best_covering_of_few_records(k):
    for seed, n in enumerate([7, 8, 5, 4]):
        X, w = normal(n, seed=seed), np.random.default_rng(seed).integers(1, 4, n).astype(float)
        found = quick(X, k, w, seed)
        best = least_covering(X, w, k)
        assert found.sse == pytest.approx(best)
        assert found.bound <= best * (1 + 1e-9)


def test_no_memberships_are_better_than_the_best_covering():
    """The statement of the docstring, against the problem as it is stated."""
    for seed in range(3):
        X, w, random = normal(6, seed=seed), np.ones(6), np.random.default_rng(seed)
        best, found = least_covering(X, w, 3), quick(X, 3, seed=seed)
        means = np.array([X[list(g)].mean(axis=0) for g in combinations(range(6), 3)])
        for centres in (means, X, random.normal(size=(8, 2))):
            assert least_memberships(X, w, 3, centres) >= best * (1 - 1e-7)
        own = found.centres(X, w)
        assert least_memberships(X, w, 3, own) == pytest.approx(best)


def every_record_is_in_k_groups_of_k(seed, k, n, values):
    random = np.random.default_rng(seed)
    X = random.integers(0, values, (max(n, k), 2)).astype(float)
    w = random.integers(1, 3, len(X)).astype(float)
    found = quick(X, k, w, seed)
    assert is_covering(found.members, k)
    assert found.sse == pytest.approx(sum(sse(X, w, g) for g in found.members) / k, abs=1e-9)
    assert found.bound <= found.sse + 1e-9 <= found.crisp + 2e-9


@few_or_many(15, 30)
def test_every_record_is_in_k_groups_of_k(count):
    """An invariant, with equal records and weights: counts, and the order of three losses."""
    try_examples(
        count,
        every_record_is_in_k_groups_of_k,
        st.integers(0, 10**6),
        st.integers(2, 5),
        st.integers(2, 40),
        st.integers(1, 30),
    )


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(12, 60), st.integers(1, 4))
def test_no_group_has_two_records_of_a_unit(seed, k, n, size):
    """An invariant, down to units of exactly n / k records, for which all places are needed."""
    random = np.random.default_rng(seed)
    X = np.repeat(random.normal(size=(-(-n // size), 2)), size, axis=0)[:n]  # a unit is alike
    units = random.permutation(np.arange(n) // size)
    if seed % 3 == 0:
        units[: n // k] = -1
    w, most = np.ones(n), np.unique(units, return_counts=True)[1].max()
    if most * k > n:
        with pytest.raises(GroupSizeError, match="A unit has"):
            find_covering(X, w, k, effort="quick", seed=seed, units=units)
        return
    found = find_covering(X, w, k, effort="quick", seed=seed, units=units)
    assert is_covering(found.members, k)
    assert all(len(set(group)) == k for group in units[found.members].tolist())
    assert found.bound <= found.sse * (1 + 1e-9) + 1e-9


@pytest.mark.usefixtures("few_moves")
def test_windows_of_a_large_table():
    X = normal(7_000, 3)
    found = quick(X, 4)
    assert is_covering(found.members, 4)
    assert lower_bound(X, 4, effort="quick").value <= found.bound <= found.sse < found.crisp


@pytest.mark.usefixtures("few_moves")
def test_the_same_seed_gives_the_same_groups():
    X = normal(300, 4)
    again = [quick(X, 3, seed=5).members for _ in range(2)]
    assert (again[0] == again[1]).all()


# The draw


def all_draws(members, seed):
    """Enumerate the draws with their probabilities; words 0 to 5 are as good as all of them.

    Each is taken modulo 2 or 3 where k is at most 3; a draw without enough words comes back empty.
    """
    chances, open_ = Counter(), [[]]
    sides = 2 if members.shape[1] == 2 else 6
    while open_:
        words = open_.pop()
        drawn = draw_matching(members, np.array(words, dtype=np.int64), seed)
        if len(drawn):
            chances[tuple(drawn.tolist())] += Fraction(1, sides ** len(words))
        else:
            open_ += [[*words, word] for word in range(sides)]
    return chances


COVERINGS = {
    "pairs in a circle": [[0, 1], [1, 2], [2, 3], [3, 0]],
    "a pair and a triangle": [[0, 1], [1, 0], [2, 3], [3, 4], [4, 2]],
    "equal groups": [[0, 1, 2], [2, 1, 0], [1, 0, 2]],
    "all triples of four": [[0, 1, 2], [1, 2, 3], [2, 3, 0], [3, 0, 1]],
    "five in a circle": [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0], [4, 0, 1]],
}


@pytest.mark.parametrize("name", COVERINGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_pair_is_drawn_with_probability_one_in_k(name, seed):
    members = np.array(COVERINGS[name])
    n, k = members.shape
    chances = all_draws(members, seed)
    assert sum(chances.values()) == 1
    for drawn in chances:
        assert sorted(drawn) == list(range(n))
        assert all(i in group for i, group in zip(drawn, members))
    for p in range(n):
        for i in members[p]:
            assert sum(c for drawn, c in chances.items() if drawn[p] == i) == Fraction(1, k)


@pytest.mark.parametrize("values", [[0, 1, 2, 3], [0, 0, 1, 2], [0, 1, 0, 1]])
@pytest.mark.parametrize("name", ["pairs in a circle", "all triples of four"])
def test_the_exact_posterior_given_the_whole_released_table(name, values):
    """Bayes by enumeration of all draws in all orders, also where groups have equal means."""
    members = np.array(COVERINGS[name])
    n, k = members.shape
    joint = Counter()
    for drawn, chance in all_draws(members, 0).items():
        for order in permutations(range(n)):
            table = tuple(values[p] for p in order)
            for row, p in enumerate(order):
                joint[table, row, drawn[p]] += chance
    total = Counter()
    for (table, row, _), chance in joint.items():
        total[table, row] += chance
    posteriors = {key: chance / total[key[:2]] for key, chance in joint.items()}
    assert max(posteriors.values()) <= Fraction(1, k)
    for (table, row, i), posterior in posteriors.items():
        alike = [p for p in range(n) if values[p] == table[row]]
        u = Fraction(sum(i in members[p] for p in alike), k)
        assert posterior == u / len(alike)


def test_frequencies_of_many_draws():
    found, error = frequencies(quick(normal(60), 3), 4_000)
    assert np.abs(found - 1 / 3).max() < 5 * error


@pytest.mark.slow
@pytest.mark.heavy
def test_frequencies_of_very_many_draws():
    """A million take ten minutes: python -m benchmarks.overlapping --draws 1000000."""
    found, error = frequencies(quick(normal(300), 5), 100_000)
    assert np.abs(found - 1 / 5).max() < 5.5 * error
    assert ((found - 1 / 5) ** 2).mean() == pytest.approx(error**2, rel=0.2)
