"""Tolerance: records that may move."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.exceptions import BadOptionError, BadTableError, UnknownOptionError
from tessella.fuzzy import FuzzyCMeans, TolerantFuzzyCMeans, compare
from tessella.fuzzy.field import Field, arrange, power_law
from tessella.kernels.memberships import sweep_tolerant
from tests.reference import fuzzy as reference

X = np.random.default_rng(3).normal(size=(150, 3))


@pytest.mark.parametrize("shape", ["ball", "box"])
def test_no_tolerance_is_fuzzy_c_means(shape):
    plain = FuzzyCMeans(4, m=1.4, random_state=0, n_init=3, accelerate=False).fit(X)
    found = TolerantFuzzyCMeans(4, kappa=0, m=1.4, shape=shape, random_state=0, n_init=3).fit(X)
    np.testing.assert_allclose(found.cluster_centers_, plain.cluster_centers_, atol=1e-12)
    np.testing.assert_allclose(found.membership(X), plain.membership(X), atol=1e-12)


@pytest.mark.parametrize("shape", ["ball", "box"])
def test_one_sweep_is_the_stated_minimum(shape):
    """Degrees at home, then the displacement of the paper's step 3, then centres of x + e."""
    V, m, kappa = X[:5] + 0.05, 1.5, 0.2
    u = reference.degrees(X, V, m) ** m
    best = (u @ V) / u.sum(axis=1, keepdims=True) - X
    if shape == "ball":
        length = np.linalg.norm(best, axis=1, keepdims=True)
        best *= np.minimum(1, kappa / length)
    else:
        best = np.clip(best, -kappa, kappa)
    field = Field.of(X, np.ones(len(X)), 5)
    moved, packed = field.records.copy(), arrange(field.inward(V))
    reach = np.full((len(X), 1 if shape == "ball" else 3), kappa * field.scale)
    law = power_law(m)
    for rows in field.pieces:
        sums = sweep_tolerant(
            field.records, moved, reach, shape == "box", field.weights, rows, packed, law
        )
    np.testing.assert_allclose(field.outward(moved), X + best, atol=1e-12)
    centres = np.moveaxis(sums.points, 1, 2).reshape(-1, 3)[:5] / sums.weights.ravel()[:5, None]
    expected = u.T @ (X + best) / u.sum(axis=0)[:, None]
    np.testing.assert_allclose(field.outward(centres), expected, atol=1e-12)


def test_the_objective_falls_with_kappa():
    """The published values rise; the stated objective cannot."""
    found = [
        TolerantFuzzyCMeans(4, kappa=kappa, m=1.5, random_state=0).fit(X).objective_
        for kappa in (0, 0.1, 0.2, 0.4)
    ]
    assert found == sorted(found, reverse=True)


def test_one_kappa_for_each_record():
    kappa = np.zeros(len(X))
    kappa[:10] = 0.5
    found = TolerantFuzzyCMeans(4, kappa=kappa, m=1.5, random_state=0).fit(X)
    u, plain = found.membership(X), reference.degrees(X, found.cluster_centers_, found.m_)
    np.testing.assert_allclose(u[10:], plain[10:], atol=1e-9)
    assert np.abs(u[:10] - plain[:10]).max() > 0.01


def test_one_kappa_for_each_column_of_a_box():
    found = TolerantFuzzyCMeans(3, kappa=[[0.0, 9.0, 9.0]], shape="box", m=1.2, n_init=5,
                                random_state=0)  # fmt: skip
    plain = FuzzyCMeans(3, m=1.2, n_init=5, random_state=0)
    assert found.fit(X).objective_ < plain.fit(X).objective_


@pytest.mark.parametrize("kappa", [-0.1, np.nan, np.inf, "wide", [-1.0] * 150])
def test_senseless_kappa(kappa):
    with pytest.raises(BadOptionError, match="kappa"):
        TolerantFuzzyCMeans(3, kappa=kappa).fit(X)


def test_senseless_shapes():
    with pytest.raises(BadTableError, match="one for each of the 150"):
        TolerantFuzzyCMeans(3, kappa=[0.1, 0.2]).fit(X)
    with pytest.raises(BadTableError, match="kappa has shape"):
        TolerantFuzzyCMeans(3, kappa=[[0.1, 0.2, 0.3]]).fit(X)
    with pytest.raises(UnknownOptionError, match="shape"):
        TolerantFuzzyCMeans(3, shape="round").fit(X)


def test_tolerance_of_errors_of_a_known_size():
    """Values rounded to multiples of 0.5 are off by 0.25 at most; errors by (chi2)^(1/2) s."""
    fit = {"n_clusters": 2, "m": 1.5, "n_init": 1, "random_state": 0}
    box = TolerantFuzzyCMeans(**fit, kappa={"rounding": 0.5}, shape="box").fit(X)
    np.testing.assert_allclose(box.kappa_, [[0.25] * 3])
    ball = TolerantFuzzyCMeans(**fit, kappa={"rounding": [0.5, 1, 1]}).fit(X)
    assert ball.kappa_ == pytest.approx(0.75)
    noise = np.random.default_rng(0).normal(size=(200_000, 3)) * [0.1, 0.1, 0.1]
    ball = TolerantFuzzyCMeans(**fit, kappa={"noise": 0.1}).fit(X)
    covered = (np.linalg.norm(noise, axis=1) <= ball.kappa_).mean()
    assert covered == pytest.approx(0.95, abs=0.003)
    box = TolerantFuzzyCMeans(**fit, kappa={"noise": 0.1}, shape="box").fit(X)
    assert (np.abs(noise) <= box.kappa_).mean() == pytest.approx(0.95, abs=0.003)


def test_tolerance_is_chosen_where_it_steadies_the_clusters():
    """Independent: the d2 of fresh halves, at the tolerance chosen and at none."""
    random = np.random.default_rng(1)
    Z = random.normal(size=(300, 6)) + random.integers(0, 3, size=(300, 1)) * 0.8
    found = TolerantFuzzyCMeans(6, m=1.3, kappa="auto", n_init=3, random_state=0).fit(Z)
    assert found.kappa_ > 0
    spread = {}
    for kappa in (0.0, found.kappa_):
        whole = TolerantFuzzyCMeans(6, m=1.3, kappa=kappa, init=found.cluster_centers_).fit(Z)
        halves = [np.random.default_rng(100 + i).permutation(300)[:150] for i in range(20)]
        fits = [
            TolerantFuzzyCMeans(6, m=1.3, kappa=kappa, init=whole.cluster_centers_).fit(Z[rows])
            for rows in halves
        ]
        spread[kappa] = np.mean([compare(whole, fit, records=Z).d2 for fit in fits])
    assert spread[found.kappa_] < spread[0.0]


def test_clusters_far_apart_need_no_tolerance():
    Z = np.random.default_rng(0).normal(size=(120, 2)) * 0.01 + np.arange(120)[:, None] % 3
    found = TolerantFuzzyCMeans(3, m=1.5, kappa="auto", n_init=2, random_state=0).fit(Z)
    assert compare(found, FuzzyCMeans(3, m=1.5, random_state=0).fit(Z)).d1 < 1e-3


@pytest.mark.parametrize("kappa", ["wide", {"rounding": -1}, {"error": 1}, {}, {"noise": [1, 2]}])
def test_tolerances_that_are_none(kappa):
    with pytest.raises(BadOptionError, match="kappa"):
        TolerantFuzzyCMeans(2, kappa=kappa).fit(X)
