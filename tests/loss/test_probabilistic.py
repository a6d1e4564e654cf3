"""PIL against sampling itself: an independent way to all of its standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.loss import pil


@pytest.fixture(scope="module")
def parts():
    """The parts of PIL for 150 samples drawn with replacement from a skewed, correlated table."""
    random = np.random.default_rng(0)
    n = 1000
    z = random.normal(size=(n, 3))
    x = np.column_stack(
        [np.exp(0.4 * z[:, 0]), z[:, 1] + 0.8 * z[:, 0], random.gamma(4, size=n) + z[:, 2]]
    )
    samples = [pil(x, x[random.integers(0, n, n)]).details for _ in range(150)]
    return {part: [details[part] for details in samples] for part in samples[0]}


@pytest.mark.parametrize("part", ["quantiles", "means", "variances", "covariances", "correlations"])
def test_a_sample_loses_fifty_on_average(parts, part):
    """A difference that is normal with the stated error has a uniform 2 Phi(|z|) - 1."""
    assert np.mean(parts[part]) == pytest.approx(50, abs=6)


def test_the_whole_is_the_mean_of_its_five_parts():
    random = np.random.default_rng(1)
    x = random.normal(size=(200, 3))
    found = pil(x, x + 0.2 * random.normal(size=x.shape))
    assert len(found.details) == 5
    assert found.value == pytest.approx(np.mean(list(found.details.values())))
