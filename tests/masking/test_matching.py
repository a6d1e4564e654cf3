"""Numbers that keep their distribution: by hand, against a plain version, over random tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import Rules, Schema, protect
from tessella.exceptions import BadOptionError
from tessella.kernels.groups import cut_runs
from tessella.masking.distributions import _previous, matched
from tessella.plan import make_plan


def plain_runs(values, units, k):
    """Runs of at least k units, with sets; the runs as lists of places."""
    runs, pending = [], []
    for value in sorted(set(values)):
        own = [i for i, v in enumerate(values) if v == value]
        if len({units[i] for i in own}) >= k:
            if pending and runs:
                runs[-1] += pending
                pending = []
            runs.append([*pending, *own])
            pending = []
        else:
            pending += own
            if len({units[i] for i in pending}) >= k:
                runs.append(pending)
                pending = []
    if pending:
        if runs:
            runs[-1] += pending
        else:
            runs = [pending]
    return runs


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_runs_are_those_of_plain_sets(seed, k):
    chance = np.random.default_rng(seed)
    n = int(chance.integers(1, 40))
    values = np.sort(chance.integers(0, 12, n)).astype(float)
    units = chance.integers(0, 15, n)
    found, common = cut_runs(values, _previous(units), k)
    if len(set(units)) < k:
        return
    expected = plain_runs(values.tolist(), units.tolist(), k)
    assert [np.flatnonzero(found == run).tolist() for run in range(found.max() + 1)] == expected
    for first, end in common:
        assert len(set(values[first:end])) == 1
        assert len(set(units[first:end])) >= k


def test_by_hand():
    """Groups 0 0 6 | 0 0 6 | 12 14 16 have the means 2, 2, 14.

    Runs are the four 0, which are common, and 6 6 12 with the two that are left over, of mean 10.8.
    The lower six ranks have four 0 and two of 10.8, the upper three 10.8: the mean of all is 6.
    """
    values = np.array([0, 0, 6, 0, 0, 6, 12, 14, 16.0])
    means = np.array([2, 2, 2, 2, 2, 2, 14, 14, 14.0])
    found = matched(means, values, np.ones(9), 3)
    np.testing.assert_allclose(found, [3.6] * 6 + [10.8] * 3)


def test_a_common_number_is_released_as_it_is():
    """Eight of 0, masked as seven of 0 and 0.1: these ranks are of 0, and the mean stays."""
    values = np.array([0.0] * 8 + [2, 4, 6, 8])
    means = np.array([0.0] * 7 + [0.1] * 2 + [5, 5, 5])
    found = matched(means, values, np.ones(12), 2)
    assert (found[:7] == 0).all()
    np.testing.assert_allclose(found[7:], [1.5, 1.5, 17 / 3, 17 / 3, 17 / 3])


def test_a_common_number_beside_fewer_than_k_others():
    """The two others join the run of zeros, which are released as zeros all the same."""
    values = np.array([0.0] * 10 + [30, 60])
    means = np.array([0.0] * 9 + [30.0] * 3)
    found = matched(means, values, np.ones(12), 3)
    assert (found[:9] == 0).all()
    assert (found >= 0).all()
    assert found.max() < 30


def test_the_spread_comes_back_and_the_mean_stays():
    chance = np.random.default_rng(0)
    values = chance.lognormal(size=6_000)
    weights = chance.uniform(1, 3, 6_000)
    labels = chance.integers(0, 20, 6_000) + 20 * np.argsort(np.argsort(values)) // 400 * 20
    sums = np.bincount(labels, weights)
    means = (np.bincount(labels, weights * values) / np.maximum(sums, 1e-12))[labels]
    shrunk = 0.5 * means + 0.5 * means.mean()
    found = matched(shrunk, values, weights, 3)
    assert np.average(found, weights=weights) == pytest.approx(np.average(values, weights=weights))
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.quantile(found, share) == pytest.approx(np.quantile(values, share), rel=0.1)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.booleans())
def test_rising_equal_and_between_means_of_k(seed, k, repeating):
    chance = np.random.default_rng(seed)
    n = int(chance.integers(k, 60))
    values = chance.choice([0.0, 0.0, 5.0, chance.normal(), 1e6 * chance.normal()], n)
    values = values + chance.integers(0, 2, n) * chance.normal(size=n)
    units = chance.integers(0, max(k, n // 2), n) if repeating else np.arange(n)
    labels = chance.integers(0, max(1, n // k), n)
    weights = chance.uniform(0.1, 5, n)
    means = np.bincount(labels, weights * values) / np.maximum(np.bincount(labels, weights), 1e-9)
    masked = means[labels]
    found = matched(masked, values, weights, k, units=units)
    if len(np.unique(units)) < k:
        assert (found == masked).all()
        return
    order = np.argsort(masked, kind="stable")
    assert (np.diff(found[order]) >= -1e-9 * np.abs(values).max()).all()
    for level in np.unique(masked):
        assert len(np.unique(found[masked == level])) == 1
    ends = [v for v in np.unique(values) if len(np.unique(units[values == v])) >= k] + [
        np.mean(values[places])
        for places in (np.array(run) for run in plain_runs(values.tolist(), units.tolist(), k))
    ]
    slack = 1e-9 * np.abs(values).max()
    assert found.min() >= min(ends) - slack
    assert found.max() <= max(ends) + slack


def test_without_a_valid_record_nothing_is_moved():
    """A bug once met: no record keeps the rules, and the units of none were numbered."""
    means, units = np.array([2.0, 2, 2, 5, 5, 5]), np.arange(6)
    valid = np.zeros(6, dtype=bool)
    found = matched(means, means + 1, np.ones(6), 3, units=units, valid=valid)
    assert found.tolist() == means.tolist()


def test_a_weight_shows_no_number():
    """One of three weighs a million times as much: the mean of the three is not its number."""
    values = np.array([1.0, 2, 3, 10, 20, 30])
    weights = np.array([1, 1, 1, 1e6, 1, 1])
    means = np.array([2.0, 2, 2, 10.0001, 10.0001, 10.0001])
    assert (matched(means, values, weights, 3)[3:] > 17).all()


def people(n, seed=0):
    chance = np.random.default_rng(seed)
    region = chance.choice(list("abc"), n)
    income = np.where(chance.random(n) < 0.3, 0.0, chance.lognormal(9, 0.8, n).round(2))
    age = chance.integers(0, 95, n)
    sex = chance.choice(["f", "m"], n)
    return pd.DataFrame({"region": region, "sex": sex, "age": age, "income": income})


def spread(values):
    return np.quantile(values, [0.1, 0.25, 0.5, 0.75, 0.9])


def test_numbers_beside_categories_keep_their_distribution_by_default():
    table = people(800)
    quick = {"random_state": 0, "options": {"effort": "quick"}}
    kept = protect(table, k=8, **quick).table
    means = protect(table, k=8, aggregate="mean", **quick).table
    assert (kept.groupby(list(kept.columns)).size() >= 8).all()
    assert kept["income"].mean() == pytest.approx(table["income"].mean())
    assert kept["income"].std() == pytest.approx(table["income"].std(), rel=0.03)
    assert means["income"].std() < 0.98 * table["income"].std()
    assert (kept["income"] == 0).mean() == pytest.approx((table["income"] == 0).mean(), abs=0.01)
    assert (means["income"] == 0).mean() < 0.9 * (table["income"] == 0).mean()
    np.testing.assert_allclose(spread(kept["age"]), spread(table["age"]), atol=2)
    assert kept["age"].dtype == table["age"].dtype


def test_each_stratum_keeps_its_mean():
    table = people(300)
    found = protect(table, k=3, strata=["region"], random_state=0).table
    for name, own in table.groupby("region"):
        after = found[found["region"] == name]
        assert after["income"].mean() == pytest.approx(own["income"].mean())


def test_bounds_hold_and_columns_of_other_rules_have_means():
    table = people(200)
    table["tax"] = (0.2 * table["income"]).round(2)
    table.loc[:4, "income"] = [-1.0, -2.5, -4.0, -5.5, -7.0]
    rules = ["income >= 0", "tax <= income", "age >= 0", "age <= 94"]
    plan = make_plan(Schema.guess(table), Rules(rules), k=3)
    operators = {choice.column: choice.operator for choice in plan.blocks[0].choices}
    assert operators["age"] == "matched mean"
    assert operators["income"] == operators["tax"] == "mean"
    found = protect(table.drop(columns=["tax"]), k=3, rules=["income >= 0"], random_state=0)
    assert found.plan.blocks[0].choice("income").operator == "matched mean"
    assert "moved to its rank" in found.plan.explain()
    assert (found.table["income"] >= 0).all()


def test_without_categories_means_stay_means_unless_asked_for():
    table = people(60)[["age", "income"]]
    assert protect(table, k=3, random_state=0).table.equals(
        protect(table, k=3, random_state=0, aggregate="mean").table
    )
    found = protect(table, k=3, random_state=0, aggregate="matched mean").table
    assert found["income"].std() == pytest.approx(table["income"].std(), rel=0.05)


def test_drawn_groups_are_not_matched():
    table = people(60)
    plan = protect(table, k=3, grouping="overlapping", random_state=0).plan
    assert all(choice.operator != "matched mean" for choice in plan.blocks[0].choices)
    with pytest.raises(BadOptionError, match="aggregate"):
        protect(table, k=3, grouping="overlapping", aggregate="matched mean", random_state=0)
