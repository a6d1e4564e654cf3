"""Comparing two fuzzy partitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import spearmanr

from tessella.exceptions import BadTableError, UnknownOptionError
from tessella.fuzzy import FuzzyCMeans, TolerantFuzzyCMeans, cluster_loss, compare

X = np.random.default_rng(0).normal(size=(200, 2)) + np.arange(200)[:, None] % 3 * 4.0


def fitted(table=X, seed=0, c=3):
    return FuzzyCMeans(c, m=1.5, random_state=seed).fit(table)


class At:
    """Centres alone."""

    def __init__(self, *centres):
        self.cluster_centers_ = np.array(centres, dtype=float)[:, None]


def test_by_hand():
    """Centres 0, 1, 9 and 0.4, 10, 11. Greedy: 0.16 + 0.36 + 1; the optimum: 0.16 + 81 + 4."""
    greedy = compare(At(0, 1, 9), At(0.4, 10, 11), alignment="greedy")
    assert greedy.pairing.tolist() == [0, 0, 1]
    assert greedy.d1 == pytest.approx(1.52)
    best = compare(At(0, 1, 9), At(0.4, 10, 11))
    assert best.pairing.tolist() == [0, 1, 2]
    assert best.d1 == pytest.approx(0.16 + 81 + 4)


def test_the_greedy_rule_is_not_symmetric_and_the_optimal_one_is():
    a, b = At(0, 1, 9), At(0.4, 10, 11)
    there, back = (compare(*pair, alignment="greedy").d1 for pair in ((a, b), (b, a)))
    assert there != pytest.approx(back)
    assert compare(a, b).d1 == pytest.approx(compare(b, a).d1)
    assert compare(At(0, 0), At(0, 5), alignment="greedy").d1 == 0  # though they differ
    assert compare(At(0, 0), At(0, 5)).d1 == 25


def test_memberships_by_hand():
    u = np.array([[1.0, 0.0], [0.5, 0.5]])
    v = np.array([[0.0, 1.0], [0.4, 0.6]])
    assert compare(u, v).d2 == pytest.approx(0.02)
    assert compare(u, v).d1 is None
    assert "d2 = 0.02" in str(compare(u, v))


def test_distances_squared_and_not_by_hand():
    """Centres 0, 1, 9 and 0.4, 10, 11: distances 0.4, 9 and 2."""
    found = compare(At(0, 1, 9), At(0.4, 10, 11))
    assert found.d1 == pytest.approx(0.16 + 81 + 4)
    assert found.d1_unsquared == pytest.approx(0.4 + 9 + 2)


def test_published_distances_are_not_squared(census):
    """The tables have 0.32 where the printed formula gives 0.013: 13 columns, p = 0.04."""
    Z = (census - census.mean(axis=0)) / census.std(axis=0)
    noise = np.random.default_rng(0).normal(size=Z.shape)
    found = cluster_loss(Z, Z + 0.04 * noise, FuzzyCMeans(10, m=1.5), n_init=6, random_state=0)
    assert 0.25 < found.optimal.d1_unsquared < 0.36
    assert found.d1 < 0.02


def test_different_numbers_of_clusters_by_hand():
    """Centres 0, 1, 10 and 0.5, 9: {0, 1} go to 0.5 and 10 to 9, from either side."""
    for pair in ((At(0, 1, 10), At(0.5, 9)), (At(0.5, 9), At(0, 1, 10))):
        found = compare(*pair)
        assert found.pairing.tolist() == [0, 0, 1]
        assert found.d1 == pytest.approx(0.25 + 0.25 + 1)
    # None of the smaller is left out, though 0 is nearest to all.
    assert compare(At(0, 1, 2), At(0, 50)).pairing.tolist() == [0, 0, 1]


def test_alignments_of_different_numbers_against_all_of_them():
    """Independent: every map of the larger onto the smaller, tried one by one."""
    random = np.random.default_rng(5)
    for _ in range(30):
        many, few = At(*random.normal(size=5)), At(*random.normal(size=3))
        costs = (many.cluster_centers_ - few.cluster_centers_.T) ** 2
        onto = (p for p in product(range(3), repeat=5) if len(set(p)) == 3)
        best = min(sum(costs[i, j] for i, j in enumerate(p)) for p in onto)
        assert compare(many, few).d1 == pytest.approx(best)


def test_a_cluster_that_is_cut_in_two_is_no_loss():
    u = np.random.default_rng(2).dirichlet(np.ones(3), size=50)
    cut = np.column_stack([u[:, 0] * 0.3, u[:, 1], u[:, 0] * 0.7, u[:, 2]])
    assert compare(u, cut).d2 == pytest.approx(0)
    assert compare(cut, u).d2 == pytest.approx(0)


def test_clusters_without_a_centre_by_hand():
    """Means of 0, deviations 1 and 3, and 2 and 3: a squared distance of (2 - 1)^2."""
    u = np.repeat(np.eye(2), 2, axis=0)
    before, after = (np.array([[-a], [a], [-b], [b]]) for a, b in ((1.0, 3.0), (2.0, 3.0)))
    found = compare(u, u, records=(before, after))
    assert found.d1 == pytest.approx(1)
    assert found.d1_unsquared == pytest.approx(1)
    shifted = compare(u, u, records=(before, before + 5))
    assert shifted.d1 == pytest.approx(50)


def test_models_with_their_clusters_in_another_order_are_the_same():
    first, second = fitted(), fitted()
    second.cluster_centers_ = second.cluster_centers_[[2, 0, 1]]
    for alignment in ("greedy", "optimal"):
        found = compare(first, second, records=X, alignment=alignment)
        assert found.d1 == 0
        assert found.d2 < 1e-24


def test_the_same_table_has_no_loss():
    found = cluster_loss(X, X, FuzzyCMeans(5, m=1.5), random_state=0)
    for both in (found, found.greedy):
        assert both.d1 < 1e-20
        assert both.d2 < 1e-20
    assert found.objectives[0] == pytest.approx(found.objectives[1], rel=1e-12)
    assert str(found).startswith("cluster loss: d1 = ")


@pytest.mark.parametrize("model", [FuzzyCMeans(3), TolerantFuzzyCMeans(3, kappa=0.2)])
def test_auto_is_settled_once_for_both_tables(model):
    noise = np.random.default_rng(1).normal(size=X.shape)
    small = cluster_loss(X, X + 0.01 * noise, model, n_init=3, random_state=0)
    large = cluster_loss(X, X + 0.5 * noise, model, n_init=3, random_state=0)
    assert small.d2 < large.d2
    assert model.m == "auto"


def test_loss_rises_with_noise(census):
    """The paper's levels; its own tables do not reach this, because of local optima."""
    Z = (census - census.mean(axis=0)) / census.std(axis=0)
    noise = np.random.default_rng(0).normal(size=Z.shape)
    levels = [0.0, 0.01, 0.02, *np.arange(0.04, 0.21, 0.02)]
    model, found = FuzzyCMeans(10, m=1.5), []
    for p in levels:
        masked = Z + p * noise
        masked = (masked - masked.mean(axis=0)) / masked.std(axis=0)
        found.append(cluster_loss(Z, masked, model, n_init=3, random_state=0))
    assert found[0].d1 < 1e-20
    assert found[0].d2 < 1e-20
    assert spearmanr(levels, [loss.d2 for loss in found]).statistic >= 0.95
    assert spearmanr(levels, [loss.d1 for loss in found]).statistic >= 0.95


def test_bad_input():
    with pytest.raises(UnknownOptionError, match="alignment"):
        compare(At(0), At(1), alignment="best")
    with pytest.raises(BadTableError, match="differ in columns"):
        compare(fitted(), At(1, 2, 3))
    with pytest.raises(BadTableError, match="one row for each"):
        compare(np.ones((4, 2)) / 2, np.ones((4, 2)) / 2, records=np.ones((3, 1)))
    with pytest.raises(BadTableError, match="records="):
        compare(fitted(), np.ones((200, 3)) / 3)
    with pytest.raises(BadTableError, match="sum to one"):
        compare(np.ones((4, 2)), np.ones((4, 2)) / 2)
    with pytest.raises(BadTableError, match="same records"):
        compare(np.ones((4, 2)) / 2, np.ones((5, 2)) / 2)
    with pytest.raises(BadTableError, match="same rows"):
        cluster_loss(X, X[:-1], FuzzyCMeans(3))
    with pytest.raises(BadTableError, match="model is a str"):
        cluster_loss(X, X, "fuzzy")
