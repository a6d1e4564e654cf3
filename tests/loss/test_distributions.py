"""Quantiles, Kolmogorov-Smirnov and Wasserstein."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tessella.exceptions import BadOptionError
from tessella.loss import distribution_loss, generic_loss

kolmogorov_smirnov = partial(distribution_loss, distance="kolmogorov_smirnov")
quantile_loss = partial(distribution_loss, distance="quantiles")
wasserstein = partial(distribution_loss, distance="wasserstein")

lists = st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=15)


@st.composite
def columns(draw):
    x = draw(lists.filter(lambda values: len(set(values)) > 1))
    y = draw(st.lists(st.integers(-20, 20).map(float), min_size=len(x), max_size=len(x)))
    w = draw(st.lists(st.integers(1, 5).map(float), min_size=len(x), max_size=len(x)))
    return np.array(x), np.array(y), np.array(w)


def table(values):
    return np.asarray(values, dtype=float).reshape(-1, 1)


def test_by_hand():
    x, y = table([1, 2, 3, 4]), table([1, 2, 3, 9])
    assert kolmogorov_smirnov(x, y).value == 0.25  # between 4 and 9 all but one against all
    assert wasserstein(x, y).value == pytest.approx(5 / 4 / np.sqrt(1.25))  # 4 travels to 9
    assert quantile_loss(x, y, shares=[0.75, 0.76]).value == pytest.approx(5 / 2 / np.sqrt(1.25))


def test_a_weight_by_hand():
    x, y = table([0, 1]), table([0, 2])  # shares 3/4 and 1/4
    assert kolmogorov_smirnov(x, y, weights=[3, 1]).value == pytest.approx(0.25)
    assert wasserstein(x, y, weights=[3, 1]).value == pytest.approx(0.25 / np.sqrt(3 / 16))


@given(columns())
def test_against_scipy(drawn):
    x, y, w = drawn
    found = kolmogorov_smirnov(table(x), table(y)).value
    assert found == pytest.approx(stats.ks_2samp(x, y, method="asymp").statistic)
    found = wasserstein(table(x), table(y)).value
    assert found == pytest.approx(stats.wasserstein_distance(x, y) / x.std())
    scale = np.sqrt(np.average((x - np.average(x, weights=w)) ** 2, weights=w))
    found = wasserstein(table(x), table(y), weights=w).value
    assert found == pytest.approx(stats.wasserstein_distance(x, y, w, w) / scale)


def exact_quantiles(values, percents):
    """The record at place ceil(p n / 100), in whole numbers: NumPy's own place may round up."""
    ordered, n = np.sort(values), len(values)
    return np.array([ordered[-(-percent * n // 100) - 1] for percent in percents])


@given(columns(), st.lists(st.integers(1, 99), min_size=1, max_size=4))
def test_quantiles_against_whole_numbers(drawn, percents):
    x, y, w = drawn
    shares = [percent / 100 for percent in percents]
    ends = [exact_quantiles(values, percents) for values in (x, y)]
    found = quantile_loss(table(x), table(y), shares=shares).value
    assert found == pytest.approx(np.abs(ends[0] - ends[1]).mean() / x.std())
    copies = [np.repeat(values, w.astype(int)) for values in (x, y)]
    ends = [exact_quantiles(values, percents) for values in copies]
    found = quantile_loss(table(x), table(y), shares=shares, weights=w).value
    assert found == pytest.approx(np.abs(ends[0] - ends[1]).mean() / copies[0].std())


@given(columns())
def test_wasserstein_is_at_most_the_mean_absolute_error(drawn):
    x, y, w = (table(part) for part in drawn)
    bound = generic_loss(x, y, how="absolute", weights=w[:, 0]).value
    assert wasserstein(x, y, weights=w[:, 0]).value <= bound + 1e-9


def test_swapping_values_keeps_the_distribution():
    x = np.random.default_rng(0).normal(size=(50, 2))
    y = x[::-1]
    assert kolmogorov_smirnov(x, y).value == 0.0
    assert wasserstein(x, y).value == 0.0
    assert quantile_loss(x, y).value == 0.0


def test_a_share_is_not_rounded_to_the_next_record():
    """0.55 * 20 is 11.000000000000002 for a computer; the quantile is the 11th, not the 12th."""
    x = np.arange(20.0)
    y = np.where(x == 11, 11.5, x)
    assert quantile_loss(table(x), table(y), shares=[0.55]).value == 0.0
    assert quantile_loss(table(x), table(y), shares=[0.55], weights=np.ones(20)).value == 0.0


def test_shares_are_checked():
    with pytest.raises(BadOptionError, match="above 0 and below 1"):
        quantile_loss(table([1, 2]), table([1, 2]), shares=[0.5, 1.0])
