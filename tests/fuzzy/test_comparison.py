"""Comparing two fuzzy partitions."""

from __future__ import annotations

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
        found.append(cluster_loss(Z, masked, model, n_init=5, random_state=0))
    assert found[0].d1 < 1e-20
    assert found[0].d2 < 1e-20
    assert spearmanr(levels, [loss.d2 for loss in found]).statistic >= 0.95
    assert spearmanr(levels, [loss.d1 for loss in found]).statistic >= 0.95


def test_bad_input():
    with pytest.raises(UnknownOptionError, match="alignment"):
        compare(At(0), At(1), alignment="best")
    with pytest.raises(BadTableError, match="differ in shape"):
        compare(At(0), At(1, 2))
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
