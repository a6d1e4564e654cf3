"""The order of the families: a richer one never links less, in any call, with ties and groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.risk import WeightedMean, certify, learn, link

KINDS = ("normal", "integers", "groups", "twins", "both")


def tables(kind, n, d, seed):
    rng = np.random.default_rng(seed)
    original = rng.normal(size=(n, d))
    masked = original + 0.7 * rng.normal(size=(n, d)) * rng.uniform(0.2, 2, size=d)
    if kind in ("integers", "both"):
        original = rng.integers(0, 4, size=(n, d)).astype(float)
        masked = original + rng.integers(-1, 2, size=(n, d))
    if kind in ("groups", "both"):
        masked = np.repeat(masked.reshape(-1, 4, d).mean(axis=1), 4, axis=0)
    if kind == "twins":
        original[n // 2 :] = original[: n - n // 2]
        masked = original + 0.3 * rng.normal(size=(n, d))
    return original, masked


def strict(found):
    return int(((found.nearer == 0) & (found.tied == 1)).sum())


def in_order(found, euclid):
    """The slides: Choquet and bilinear above the weighted mean, all above Euclid."""
    mean = found["weighted mean"]
    assert mean.value >= euclid.value
    assert mean.links >= strict(euclid)
    for name in ("choquet", "bilinear", "maxitive"):
        assert found[name].value >= mean.value
        assert found[name].links >= mean.links
    assert found["owa"].value >= euclid.value


@settings(max_examples=10)
@given(
    st.integers(0, 10**6),
    st.sampled_from(KINDS),
    st.integers(1, 4),
    st.sampled_from(["quick", "standard"]),
)
def test_separate_calls_of_learn(seed, kind, d, effort):
    original, masked = tables(kind, 24, d, seed)
    found = {
        name: learn(
            original, masked, name, effort=effort, held_out=False, control=False, random_state=seed
        )
        for name in ("weighted mean", "owa", "choquet", "bilinear", "maxitive")
    }
    in_order(found, link(original, masked))
    for one in found.values():
        assert max(one.simpler.values()) <= one.value
        again = link(original, masked, distance=one.strictest)
        assert strict(again) == one.links >= strict(one)
        assert one.value == link(original, masked, distance=one.distance).value
        assert one.most is None or one.links <= one.most


@settings(max_examples=5)
@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(1, 3))
def test_separate_calls_of_certify(seed, kind, d):
    original, masked = tables(kind, 20, d, seed)
    found = {
        name: certify(original, masked, name, effort="quick", time_limit=1e9, random_state=seed)
        for name in ("weighted mean", "owa", "choquet", "bilinear", "maxitive")
    }
    assert found["weighted mean"].proved
    in_order(found, link(original, masked))
    for name, one in found.items():
        assert max(one.simpler.values()) <= one.value
        assert one.links <= one.most
        assert strict(link(original, masked, distance=one.strictest)) == one.links
        learned = learn(original, masked, name, effort="quick", held_out=False, random_state=seed)
        assert learned.links <= one.links
        assert learned.value <= one.value


def test_chances_decide_before_links():
    """By hand: originals come in three pairs that are equal in the first variable: 6 · 1/2. The
    second links two records strictly and no other. Neither figure may fall below."""
    original = np.array([[0, 0], [0, 10], [50, 20], [50, 20], [90, 30], [90, 30]], dtype=float)
    masked = np.array([[0, 0], [0, 10], [50, 1], [50, 11], [90, 2], [90, 9]], dtype=float)
    found = learn(original, masked, standardise="none", held_out=False, random_state=0)
    first = link(original, masked, distance=WeightedMean([1, 0]), standardise="none")
    second = link(original, masked, distance=WeightedMean([0, 1]), standardise="none")
    assert (first.value * 6, strict(first)) == (pytest.approx(3), 0)
    assert (second.value * 6, strict(second)) == (pytest.approx(2), 2)
    assert found.value >= max(first.value, second.value)
    assert found.links >= 2


def test_a_start_in_the_middle_of_a_richer_family():
    """The certified weights are among what is tried, and told."""
    original, masked = tables("normal", 30, 3, 4)
    best = certify(original, masked, "bilinear", effort="quick", time_limit=1e9, random_state=0)
    plain = certify(original, masked, effort="quick", time_limit=1e9, random_state=0)
    assert plain.proved
    assert best.simpler["certified weighted mean"] == plain.value
    assert f"begun with the weighted mean: {plain.links} links, proved" in best.method
