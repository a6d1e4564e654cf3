"""The search for profitable groups misses none, and the small kernels around it are right."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.grouping.column_generation import Cuts, PricingProblem
from tessella.kernels.bound import (
    broken_cuts,
    charges_of_pairs,
    cuts_hit,
    few_per_record,
    group_costs,
    make_sound,
    memberships,
    weighted_prices,
)
from tests.reference.optimum import sse_of

PAIRS = list(combinations(range(9), 2))
NO_CUTS = Cuts(triples=np.empty((0, 3), np.int64), prices=np.empty(0))


def table(kind, n, random):
    """Small tables: smooth, on a coarse grid with many ties, heavy-tailed, with twins."""
    if kind == "normal":
        return random.normal(size=(n, 2))
    if kind == "grid":
        return random.integers(0, 3, size=(n, 2)).astype(float)
    if kind == "heavy":
        return random.standard_t(1, size=(n, 2))
    return np.repeat(random.normal(size=(n // 2, 2)), 2, axis=0)


def all_groups(problem, sizes):
    """Every group as a sorted tuple of kinds, with its cost, by trying all."""
    kinds = np.repeat(np.arange(problem.n_kinds), problem.copies.astype(int))
    for size in sizes:
        for group in {tuple(kinds[list(rows)]) for rows in combinations(range(len(kinds)), size)}:
            yield group, sse_of(problem.X, problem.weights, list(group))


def overpaid(problem, prices, cuts, sizes, least):
    """Groups whose prices exceed costs and charges by more than `least`, by trying all."""
    found = set()
    for group, cost in all_groups(problem, sizes):
        held = [len(set(cut) & set(group)) >= 2 for cut in cuts.triples.tolist()]
        if prices[list(group)].sum() - cost - cuts.prices[held].sum() > least:
            found.add(group)
    return found


def asked(problem, prices, cuts):
    """The same by the kernel."""
    groups, whole = problem.profitable(prices, cuts, 10**9, lambda: False)
    assert whole
    rows = [tuple(kind for kind in group if kind >= 0) for group in groups.tolist()]
    assert len(set(rows)) == len(rows)  # each found once
    return set(rows)


@pytest.mark.parametrize("kind", ["normal", "grid", "heavy", "twins"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_every_profitable_group_is_found(kind, weighted, k):
    random = np.random.default_rng([k, weighted, len(kind)])
    for _ in range(3):
        X = table(kind, 10, random)
        weights = random.integers(1, 4, size=10).astype(float) if weighted else np.ones(10)
        problem = PricingProblem(X, weights, k)
        prices = problem.cheap * random.uniform(0.5, 2.5, size=problem.n_kinds)
        prices += random.normal(scale=0.1, size=problem.n_kinds)
        sizes = range(k, 2 * k)
        found = asked(problem, prices, NO_CUTS)
        searched = problem.sizes_to_search(prices, NO_CUTS)
        assert overpaid(problem, prices, NO_CUTS, searched, 1e-9) <= found
        assert found <= overpaid(problem, prices, NO_CUTS, searched, -1e-9)
        if not found:  # then there is none of any size
            assert not overpaid(problem, prices, NO_CUTS, sizes, 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_charges_of_cuts_do_not_hide_a_profitable_group(weighted):
    random = np.random.default_rng(7)
    for _ in range(6):
        X = random.normal(size=(9, 2))
        weights = random.uniform(0.5, 2.0, size=9) if weighted else np.ones(9)
        problem = PricingProblem(X, weights, 3)
        triples = random.choice(list(combinations(range(9), 3)), 5, replace=False)
        cuts = Cuts(triples=triples, prices=random.uniform(0, 0.5, size=5))
        prices = problem.cheap * random.uniform(1.0, 3.0, size=9)
        found = asked(problem, prices, cuts)
        assert overpaid(problem, prices, cuts, range(3, 6), 1e-9) <= found
        assert found <= overpaid(problem, prices, NO_CUTS, range(3, 6), -1e-9)


def test_search_gives_up_when_told_and_says_so():
    X = np.random.default_rng(0).normal(size=(60, 3))
    problem = PricingProblem(X, np.ones(60), 4)
    _, whole = problem.profitable(problem.cheap * 3, NO_CUTS, 50, lambda: False)
    assert not whole
    groups, whole = problem.profitable(problem.cheap * 3, NO_CUTS, 10**6, lambda: True)
    assert not whole
    assert len(groups) == 0


def test_a_million_identical_groups_are_one():
    # A bug once met: with 200 equal records, every choice of three was looked at.
    X = np.concatenate([np.zeros((200, 2)), np.random.default_rng(0).normal(size=(20, 2))])
    problem = PricingProblem(X, np.ones(220), 3)
    assert problem.n_kinds == 21
    prices = np.full(21, 0.01)
    groups, whole = problem.profitable(prices, NO_CUTS, 10**6, lambda: False)
    assert whole
    equal = int(np.argmax(problem.copies))
    assert [equal] * 3 in groups[:, :3].tolist()
    assert len(groups) <= 30


@given(st.integers(0, 10**6))
def test_lowered_prices_overpay_none_of_the_groups(seed):
    random = np.random.default_rng(seed)
    prices = random.normal(size=12)
    groups = np.sort(random.integers(-1, 12, size=(20, 5)), axis=1)[:, ::-1].copy()
    groups = groups[groups[:, 0] >= 0]
    costs = random.uniform(0, 2, size=len(groups))
    worth = np.array([prices[g[g >= 0]].sum() for g in groups])
    order = np.argsort(costs - worth)
    copies = random.integers(1, 4, size=12).astype(float)
    lowered = make_sound(prices, copies, groups[order], (worth - costs)[order])
    assert (lowered <= prices).all()
    for group, cost in zip(groups, costs):
        assert lowered[group[group >= 0]].sum() <= cost + 1e-12 or (worth <= costs).all()


@given(st.integers(0, 10**6))
def test_weighted_prices_are_the_least_ratio(seed):
    random = np.random.default_rng(seed)
    n, k = 8, int(random.integers(2, 5))
    X, w = random.normal(size=(n, 2)), np.exp(random.normal(size=n))
    d = ((X[:, None] - X) ** 2).sum(axis=2)
    near = np.argsort(d, axis=1, kind="stable")[:, 1:]
    least = [
        min(
            0.5 * w[i] * (w[list(q)] @ d[i, list(q)]) / (w[i] + w[list(q)].sum())
            for size in range(k - 1, n)
            for q in combinations([j for j in range(n) if j != i], size)
        )
        for i in range(n)
    ]
    squares = np.take_along_axis(d, near, axis=1)
    np.testing.assert_allclose(weighted_prices(near, squares, w, w, True, k), least, rtol=1e-12)
    few = weighted_prices(near[:, :k], squares[:, :k], w, w, False, k)
    assert (few <= np.array(least) * (1 + 1e-12)).all()


def test_costs_of_groups_by_hand():
    X = np.array([[0.0], [2.0], [4.0]]) + 1e9
    groups = np.array([[0, 1, -1], [0, 1, 2]])
    np.testing.assert_allclose(group_costs(X, np.ones(3), groups), [2.0, 8.0])
    np.testing.assert_allclose(group_costs(X, np.array([1.0, 3.0, 1.0]), groups), [3.0, 8.0])


def test_few_per_record_by_hand():
    groups = np.array([[0, 1], [0, 1], [1, 2], [0, 2]])
    assert few_per_record(groups, 3, 1).tolist() == [0, 2]
    assert few_per_record(groups, 3, 2).tolist() == [0, 1, 2, 3]


@given(st.integers(0, 10**6))
def test_broken_cuts_are_all_found_once(seed):
    random = np.random.default_rng(seed)
    groups = np.array([np.sort(random.choice(9, 4, replace=False)) for _ in range(12)])
    groups[::3, 3] = -1
    shares = random.uniform(0.05, 0.6, size=12)
    pairs = [sum(s for s, g in zip(shares, groups) if {a, b} <= set(g)) for a, b in PAIRS]
    shares /= max(1.0, *pairs)  # a pair is never more than once in a mixture of partitions
    single = random.uniform(size=9) < 0.8
    cuts, excess = broken_cuts(groups, shares, *memberships(groups, 9), single, 0.05)
    found = dict(zip(map(tuple, cuts.tolist()), excess))
    assert len(found) == len(cuts)
    expected = {}
    for triple in combinations(np.flatnonzero(single).tolist(), 3):
        held = np.array([len(set(triple) & set(g)) >= 2 for g in groups.tolist()])
        if shares[held].sum() > 1.05:
            expected[triple] = shares[held].sum() - 1
    assert found == pytest.approx(expected)


def test_cuts_hit_and_charges_by_hand():
    cuts = np.array([[0, 1, 2], [1, 2, 3]])
    groups = np.array([[0, 1, 4], [1, 2, -1], [0, 4, -1], [1, 2, 3]])
    starts, hit = cuts_hit(groups, *memberships(cuts, 5), 2)
    assert [sorted(hit[a:b]) for a, b in pairwise(starts)] == [[0], [0, 1], [], [0, 1]]
    starts, partners, amounts = charges_of_pairs(cuts, np.array([3.0, 6.0]), 5)
    of_two = sorted(zip(partners[starts[2] : starts[3]], amounts[starts[2] : starts[3]]))
    assert of_two == [(0, 1.0), (1, 1.0), (1, 2.0), (3, 2.0)]
