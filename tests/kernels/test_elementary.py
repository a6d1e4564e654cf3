"""Exponentials and powers, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.kernels.degrees import exponentials, powers


def test_exponentials():
    ends = [0.0, -1e-300, -1e-9, -699.9, -800.0, -np.inf]
    x = np.concatenate([ends, -np.geomspace(1e-8, 690, 5000)])
    found = x.copy()
    exponentials(found, np.empty_like(x))
    expected = np.where(x > -700, np.exp(x), 0.0)
    np.testing.assert_allclose(found, expected, rtol=2e-15, atol=0)


@pytest.mark.parametrize("power", [0.1, 0.5, 1, 2, 2.5, 5, 10, 64, 65, 1 / 0.3, 1000.5])
def test_powers(power):
    ends = [0.0, 1.0, 1e-280, 0.5, np.sqrt(0.5)]
    x = np.concatenate([ends, np.random.default_rng(0).random(4000)])
    found, kept = np.empty_like(x), x.copy()
    powers(x, float(power), found, np.empty_like(x))
    assert (x == kept).all()
    expected = kept**power
    seen = expected > 1e-280
    size = power + 2 + np.abs(np.log(expected[seen]))  # what rounding of factors or logs adds up to
    assert (np.abs(found[seen] / expected[seen] - 1) <= 5e-16 * size).all()
    assert (found[~seen] <= 1e-270).all()
    assert found[0] == 0.0
    assert found[1] == 1.0
