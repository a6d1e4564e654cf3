"""A share with its interval: by hand, against SciPy, and what it refuses."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tessella.exceptions import BadOptionError
from tessella.risk import Estimate
from tessella.risk.estimate import wilson


@given(st.integers(1, 500), st.data())
def test_wilson_is_scipys(n, data):
    """An independent way."""
    successes = data.draw(st.integers(0, n))
    theirs = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(st.integers(1, 1000), st.floats(0, 1))
def test_the_interval_holds_the_value(n, share):
    estimate = Estimate.of(share * n, n, baseline=0.1, attack="any")
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_exact_has_no_interval_and_prints_so():
    estimate = Estimate.of(1.5, 4, baseline=0.25, attack="guess", exact=True, assumptions=["one"])
    assert estimate.low == estimate.value == estimate.high == 0.375
    assert str(estimate) == "37.5 % of 4 records (all of them; by guessing 25.0 %): guess"
    assert estimate.explain().splitlines()[1] == "- one"


def test_small_shares_are_not_printed_as_zero():
    assert "by guessing 0.0001 %" in str(Estimate.of(1, 9, baseline=1e-6, attack="x"))


def test_what_a_control_leaves_by_hand():
    """91 of 100 are found and 90 of 100 outsiders: one in ten of those that the control misses."""
    plain = {"baseline": 0.5, "attack": "x", "exact": True}
    outside, without = Estimate.of(90, 100, **plain), Estimate.of(80, 100, **plain)
    controls = {"outsiders": outside, "without": without}
    found = Estimate.of(91, 100, controls=controls, **plain)
    assert found.excess == pytest.approx(0.1)
    assert str(found) == (
        "91.0 % of 100 records (all of them; people outside the release 90.0 %, "
        "without the own record 80.0 %, excess 10.0 %, by guessing 50.0 %): x"
    )
    assert "- without the own record: 80.0 %" in found.explain()
    drawn = Estimate.of(90, 100, baseline=0.5, attack="x")  # 82.6 to 94.5 %
    sampled = Estimate.of(91, 100, controls={"outsiders": drawn}, **plain)
    assert sampled.excess_interval == pytest.approx((-0.630, 0.484), abs=1e-3)
    assert "excess 10.0 % (-63.0 to 48.4 %)" in str(sampled)
    assert Estimate.of(80, 100, controls=controls, **plain).excess == pytest.approx(-1.0)
    everybody = Estimate.of(100, 100, **plain)
    assert Estimate.of(100, 100, controls={"without": everybody}, **plain).excess == 0.0
    assert outside.excess is None


def test_it_is_frozen_and_refuses_nonsense():
    estimate = Estimate.of(1, 2, baseline=0.5, attack="x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.value = 0.0  # type: ignore[misc]
    with pytest.raises(BadOptionError, match="at least one"):
        Estimate.of(0, 0, baseline=0.5, attack="x")
    with pytest.raises(BadOptionError, match="between 0 and n=2"):
        Estimate.of(3, 2, baseline=0.5, attack="x")
