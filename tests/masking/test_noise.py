"""Noise: it has the covariance that it says, and never silently none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from tessella.exceptions import BadOptionError, BadTableError, UnchangedWarning
from tessella.masking import NoiseAddition

Floats = NDArray[np.float64]


def correlated(n: int, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    mix = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, -1.0], [0.0, 0.0, 0.5]])
    return np.asarray(rng.standard_normal((n, 3)) @ mix + [100.0, -5.0, 0.0])


# Statistics of the distribution: entries of a sample covariance of n normal records have standard
# deviation at most sqrt(2 / n) of the product of the deviations; five of these is one in a million.


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_correlated_noise_has_the_covariance_of_the_records(scale: float) -> None:
    X = correlated(20_000)
    noise = NoiseAddition(scale, random_state=1).fit_transform(X) - X
    expected = scale**2 * np.cov(X.T, bias=True)
    deviations = np.sqrt(np.diag(expected))
    off = (np.cov(noise.T, bias=True) - expected) / np.outer(deviations, deviations)
    assert np.abs(off).max() < 5 * np.sqrt(2 / len(X))
    assert np.abs(noise.mean(axis=0) / deviations).max() < 5 / np.sqrt(len(X))


def test_uncorrelated_noise_has_the_variances_alone() -> None:
    X = correlated(20_000)
    masker = NoiseAddition(0.2, correlated=False, random_state=1)
    noise = masker.fit_transform(X) - X
    expected = np.diag(0.04 * X.var(axis=0))
    deviations = np.sqrt(np.diag(expected))
    off = (np.cov(noise.T, bias=True) - expected) / np.outer(deviations, deviations)
    assert np.abs(off).max() < 5 * np.sqrt(2 / len(X))
    # 100 SSE / SST is 100 scale^2 in expectation: a mean of 3 n squares.
    assert masker.loss_ == pytest.approx(4.0, rel=5 * np.sqrt(2 / len(X)))


def test_weights_count_in_the_covariance() -> None:
    """Records of weight 0, nearly, do not lend their spread to the noise."""
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(0, 1, 10_000), rng.normal(0, 1000, 10_000)])[:, None]
    weights = np.repeat([1.0, 1e-12], 10_000)
    noise = NoiseAddition(1.0, random_state=0).fit_transform(X, weights=weights) - X
    assert noise.std() == pytest.approx(1.0, rel=0.06)


def test_each_stratum_has_its_own_spread() -> None:
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"x": np.concatenate([rng.normal(0, 1, 5000), rng.normal(0, 50, 5000)])})
    table["g"] = np.repeat(["a", "b"], 5000)
    released = NoiseAddition(0.5, strata="g", random_state=0).fit_transform(table)
    spread = (released["x"] - table["x"]).groupby(table["g"]).std()
    assert spread["a"] == pytest.approx(0.5, rel=0.1)
    assert spread["b"] == pytest.approx(25.0, rel=0.1)


# Invariants


@pytest.mark.parametrize("correlated_noise", [True, False])
def test_moments_are_kept_to_rounding(correlated_noise: bool) -> None:
    X = correlated(500)
    X = np.column_stack([X, X[:, 0] - X[:, 1]])  # a singular covariance
    weights = np.random.default_rng(3).uniform(1, 5, 500)
    masker = NoiseAddition(0.8, correlated=correlated_noise, keep_moments=True, random_state=4)
    Y = masker.fit_transform(X, weights=weights)
    before, after = (np.cov(Z.T, bias=True, aweights=weights) for Z in (X, Y))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-6)
    means = [np.average(Z, axis=0, weights=weights) for Z in (X, Y)]
    np.testing.assert_allclose(means[1], means[0], atol=1e-9)
    assert masker.loss_ > 20


def test_correlated_noise_keeps_equations_of_all_records() -> None:
    X = correlated(200)
    X = np.column_stack([X, X @ [1.0, 2.0, -1.0] + 4.0])
    Y = NoiseAddition(1.0, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Y @ [1.0, 2.0, -1.0, -1.0], -4.0, atol=1e-6)


def test_kims_factor_is_near_the_map_that_keeps_moments() -> None:
    """An independent way: with the same seed, y = m + (x + e - m) / sqrt(1 + s^2)."""
    X, s = correlated(20_000), 0.7
    plain = NoiseAddition(s, random_state=4).fit_transform(X)
    kim = X.mean(axis=0) + (plain - X.mean(axis=0)) / np.sqrt(1 + s**2)
    kept = NoiseAddition(s, keep_moments=True, random_state=4).fit_transform(X)
    assert (np.abs(kept - kim) / X.std(axis=0)).max() < 0.1


# Bugs once met


def test_a_column_that_varies_among_incomplete_records_only_gets_noise() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[:20, 0] = 1.0
    X[20:, 1] = np.nan
    Y = NoiseAddition(0.5, random_state=0).fit_transform(X)
    assert (Y[:, 0] != X[:, 0]).all()
    assert (Y[:20, 1] != X[:20, 1]).all()


def test_a_column_of_one_value_stays() -> None:
    X = np.column_stack([np.arange(9.0), np.full(9, 3.0)])
    masker = NoiseAddition(0.5, random_state=0)
    assert (masker.fit_transform(X)[:, 1] == 3.0).all()
    assert masker.changed_ == {0: 1.0, 1: 0.0}
    assert masker.column_loss_[1] == 0.0


def test_noise_that_is_rounded_away_is_said() -> None:
    table = pd.DataFrame({"children": [0, 1, 2, 3] * 25})
    with pytest.warns(UnchangedWarning, match=r"'children'.*round_integers=False"):
        NoiseAddition(0.05, random_state=0).fit_transform(table)
    released = NoiseAddition(0.05, round_integers=False, random_state=0).fit_transform(table)
    assert (released["children"] != table["children"]).all()


# Bad input


@pytest.mark.parametrize("amount", [0, -1, np.nan, np.inf, "0.1", True, None])
def test_bad_amounts(amount: Any) -> None:
    with pytest.raises(BadOptionError, match="amount"):
        NoiseAddition(amount).fit(correlated(10))


def test_bad_options() -> None:
    with pytest.raises(BadOptionError, match="correlated"):
        NoiseAddition(correlated="yes").fit(correlated(10))  # type: ignore[arg-type]
    with pytest.raises(BadOptionError, match="keep_moments"):
        NoiseAddition(keep_moments=1).fit(correlated(10))  # type: ignore[arg-type]


def test_strata_too_small_to_have_a_spread_are_refused() -> None:
    table = pd.DataFrame(correlated(20), columns=list("abc"))
    table["g"] = ["x"] * 17 + ["y"] * 3
    with pytest.raises(BadTableError, match=r"'g=y' has 3 complete records.*at least 4"):
        NoiseAddition(strata="g").fit(table)
    NoiseAddition(strata="g", correlated=False).fit(table)
    with pytest.raises(BadTableError, match="has 1 numbers"):
        NoiseAddition(correlated=False).fit(table[["a"]].iloc[:1])
    table.loc[:15, "a"] = np.nan
    with pytest.raises(BadTableError, match="complete records"):
        NoiseAddition(keep_moments=True).fit(table[["a", "b"]])
