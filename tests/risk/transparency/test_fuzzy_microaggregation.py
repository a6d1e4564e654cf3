"""The attack on fuzzy microaggregation: by hand, against Bayes written out, and permanents."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.exceptions import AttackError, BadOptionError, BadTableError, SmallJointGroupsWarning
from tessella.fuzzy.drawing import draw_part, find_centres
from tessella.fuzzy.field import power_law
from tessella.masking import FuzzyMicroaggregation
from tessella.risk import attack

from .brute import degrees, permanent

ORIGINAL = np.array([[0.0], [1.0], [2.0], [3.0]])
MASKED = np.array([[0.0], [0.0], [3.0], [3.0]])


def test_four_records_by_hand():
    """Degrees at centre 0 are 1, 4/5, 1/5, 0; their sum is 2."""
    found = attack(ORIGINAL, MASKED, "fuzzy microaggregation", m2=2, effort="quick")
    assert found.belief == pytest.approx([0.5, 0.4, 0.4, 0.5])
    assert found.largest == pytest.approx([0.5] * 4)
    assert found.chance.tolist() == [1, 0, 0, 1]
    assert found.value == 0.5
    assert found.single == 0
    shares = np.array([0.5, 0.4, 0.1])
    assert found.effective == pytest.approx([np.exp(-(shares * np.log(shares)).sum())] * 4)
    assert found.covered == 1


def test_entropy_by_hand():
    """One unit is 1, lambda = 1: degrees at centre 0 are 1 / (1 + e^(D0 - D3))."""
    found = attack(
        ORIGINAL, MASKED, "fuzzy microaggregation", lambda2=1, scale=None, effort="quick"
    )
    u = 1 / (1 + np.exp(np.array([0, 1, 4, 9]) - np.array([9, 4, 1, 0])))
    assert found.belief == pytest.approx([*(u / u.sum())[:2], *(u / u.sum())[1::-1]])


def test_crisp_is_a_set():
    """With m2 = 1 the candidates are the records nearest to the centre."""
    found = attack(ORIGINAL, MASKED, "fuzzy microaggregation", m2=1, effort="quick")
    assert found.size.tolist() == [2, 2, 2, 2]
    assert found.chance.tolist() == [0.5] * 4


@given(st.integers(0, 1000), st.sampled_from([1.1, 1.5, 2.0, 3.0]))
@settings(max_examples=40)
def test_against_bayes_written_out(seed, m2):
    """An independent way: degrees by definition, products over blocks, normalised."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 3))
    first, second = rng.normal(size=(3, 2)), rng.normal(size=(4, 1))
    labels = np.column_stack([rng.permutation(12) % 3, rng.permutation(12) % 4])
    masked = np.column_stack([first[labels[:, 0]], second[labels[:, 1]]])
    u, v = degrees(X[:, :2], first, m2), degrees(X[:, 2:], second, m2)
    chances = (u[:, labels[:, 0]] * v[:, labels[:, 1]]).T  # masked, original
    posterior = chances / chances.sum(axis=1, keepdims=True)
    found = attack(
        X, masked, "fuzzy microaggregation", m2=m2, blocks=[[0, 1], [2]], scale=None, effort="quick"
    )
    assert found.belief == pytest.approx(np.diag(posterior), rel=1e-6, abs=1e-12)
    assert found.largest == pytest.approx(posterior.max(axis=1), rel=1e-6)
    logs = np.log(np.maximum(posterior, 1e-300))
    assert found.effective == pytest.approx(np.exp(-(posterior * logs).sum(axis=1)), rel=1e-5)
    two = np.sort(posterior, axis=1)[:, -2:]
    if (two[:, 0] < (1 - 1e-6) * two[:, 1]).all():  # of candidates that are as likely one is drawn
        right = posterior.argmax(axis=1) == np.arange(12)
        assert found.value == pytest.approx(right.mean())


def test_scaling_is_nearer_to_the_permanents():
    """What all records together say is a ratio of permanents; scaling comes nearer to it."""
    alone, scaled = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, centres = rng.normal(size=(6, 1)), np.array([[-1.0], [0.0], [1.0]])
        u = degrees(X, centres, 1.7)
        labels = np.array([rng.choice(3, p=row) for row in u])
        if len(np.unique(labels)) < 3:
            continue
        chances = u[:, labels].T
        whole = permanent(chances)
        exact = [
            chances[i, i] * permanent(np.delete(np.delete(chances, i, 0), i, 1)) / whole
            for i in range(6)
        ]
        options = {"m2": 1.7, "scale": None}
        masked = centres[labels]
        quick = attack(X, masked, "fuzzy microaggregation", effort="quick", **options)
        full = attack(X, masked, "fuzzy microaggregation", **options)
        alone.append(np.abs(quick.belief - exact).mean())
        scaled.append(np.abs(full.belief - exact).mean())
    assert len(alone) > 8
    assert np.mean(scaled) < 0.6 * np.mean(alone)


def test_belief_averages_to_the_naming_chance():
    """The masker's own account of a draw, another way: the sum over centres of u * belief."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 2))
    masker = FuzzyMicroaggregation(5, m2=1.5, scale=None)
    plan = masker._prepare(X)
    part = plan.parts[0]
    fitted = find_centres(part.records, part.weights, plan.options.model(part.system), 5, None)
    law = power_law(1.5)
    told = draw_part(
        part.records, part.weights, fitted.cluster_centers_, law, k=5,
        chance=np.random.default_rng(0),
    )  # fmt: skip
    centres = part.outward(fitted.cluster_centers_)
    u = degrees(X, centres, 1.5)
    mean = np.zeros(30)
    for shift in range(len(centres)):  # every record at every centre once
        labels = (np.arange(30) + shift) % len(centres)
        found = attack(
            X, centres[labels], "fuzzy microaggregation", m2=1.5, scale=None, effort="quick"
        )
        mean += u[np.arange(30), labels] * found.belief
    assert mean == pytest.approx(told.naming_chance, rel=1e-6)


def test_he_is_right_as_often_as_he_believes():
    """Calibration: over draws, the share of right names is the mean of the largest posterior."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    values, beliefs = [], []
    for seed in range(8):
        masker = FuzzyMicroaggregation(3, m2=1.6, blocks=1, random_state=seed)
        found = attack(X, masker.fit_transform(X), masker, effort="quick")
        values.append(found.value)
        beliefs.append(found.largest.mean())
    assert np.mean(values) == pytest.approx(np.mean(beliefs), abs=0.02)


@given(st.integers(0, 1000), st.integers(12, 26), st.booleans())
@settings(max_examples=25)
def test_the_truth_is_always_possible(seed, n, at_least_k):
    """Invariant: whole numbers, constants, missing cells, strata; equal rows share a posterior."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "few": rng.integers(0, 4, n),
            "many": rng.normal(size=n),
            "flat": np.ones(n),
            "gaps": np.where(np.arange(n) % 3 == 0, np.nan, rng.normal(size=n)),
            "half": np.repeat(["a", "b"], [n // 2, n - n // 2]),
        }
    )
    masker = FuzzyMicroaggregation(
        2, m2=1.4, blocks=[["few", "many"], ["flat", "gaps"]], on_missing="pattern",
        columns=["few", "many", "flat", "gaps"], strata=[None, "half"][seed % 2],
        at_least_k=at_least_k, random_state=seed,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallJointGroupsWarning)
        masked = masker.fit_transform(table)
    for effort in ("quick", "standard"):
        found = attack(table, masked, masker, effort=effort)
        assert found.covered == 1
        assert ((found.belief > 0) & (found.belief <= found.largest + 1e-9)).all()
        assert (found.effective >= 1 - 1e-9).all()
        assert (found.effective <= found.size + 1e-6).all()
        assert ("at least k records" in found.explain()) == at_least_k


def test_given_centres_undo_rounding():
    """Bug once met: products of squares that underflow. Records stand on whole centres."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(0, 1000, (10, 5)), 3, axis=0).astype(float)
    masker = FuzzyMicroaggregation(3, m1=1.1, m2=1.1, blocks=1, random_state=0)
    masked = masker.fit_transform(X)
    found = attack(X, masked, masker)
    assert found.covered == 1
    assert found.value == pytest.approx(1 / 3, abs=0.1)


def test_a_sample_and_whole_blocks_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    masker = FuzzyMicroaggregation(3, m2=1.3, blocks=2, random_state=0)
    masked = masker.fit_transform(X)
    whole = attack(X, masked, masker, effort="quick")
    found = attack(X, masked, masker, sample=40, random_state=1)
    assert (found.chance == whole.chance[found.attacked]).all()
    first = attack(X, masked, masker, known=[0, 1, 2], effort="quick")
    assert (first.belief == attack(X, masked, masker, known=[0, 1], effort="quick").belief).all()
    assert "cannot use: 1" in first.explain()
    with pytest.raises(AttackError, match="no block of columns as a whole"):
        attack(X, masked, masker, known=[0, 2])


def test_bad_input_is_told():
    with pytest.raises(BadTableError, match="one of m2 and lambda2"):
        attack(ORIGINAL, MASKED, "fuzzy microaggregation")
    with pytest.raises(BadOptionError, match="m2"):
        attack(ORIGINAL, MASKED, "fuzzy microaggregation", m2=0.5)
    with pytest.raises(BadOptionError, match="one for each of 1 blocks"):
        attack(ORIGINAL, MASKED, "fuzzy microaggregation", m2=2, centres=[])


@pytest.mark.parametrize("seed", range(4))
def test_crisp_draws_that_keep_k_lose_no_truth(seed):
    """Bug once met: with m2 = 1, records that k had moved were not among the candidates."""
    X = np.random.default_rng(seed).normal(size=(60, 2))
    masker = FuzzyMicroaggregation(3, m2=1.0, at_least_k=True, random_state=seed)
    found = attack(X, masker.fit_transform(X), masker)
    assert found.covered == 1.0
    assert any("moved from their nearest centre" in line for line in found.assumptions)
