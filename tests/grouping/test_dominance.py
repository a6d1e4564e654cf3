"""Groups whose total gives a record away: by hand, and against plain pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella.exceptions import BadOptionError
from tessella.grouping.dominance import DominanceRule, enlarge, find_dominated, least_cap

P10 = DominanceRule(p=10)


def by_pandas(frame: pd.DataFrame, rule: DominanceRule) -> set[int]:
    """The sensitive groups of a frame with g, x, w, one after the other."""
    found = set()
    for g, own in frame.dropna(subset="x").groupby("g"):
        c = (own.w * own.x.abs()).sort_values(ascending=False).tolist()
        if len(c) < 2 or not c[0]:
            continue
        if rule.p is not None:
            told = sum(c[2:]) < rule.p / 100 * c[0] * (1 - 1e-12)
        else:
            told = sum(c[: rule.n]) * (1 - 1e-12) > rule.k / 100 * sum(c)
        if told:
            found.add(g)
    return found


def test_one_large_income_by_hand():
    """Total 987,734,321.125; beside the two largest 60,000 are left, 0.006 % of the largest."""
    x = np.array([987_654_321.125, 20_000, 20_000, 20_000, 20_000])
    mean = np.full(5, x.mean())
    found = find_dominated(np.zeros(5, int), x, mean, None, P10)
    assert found.groups.tolist() == [0]
    assert found.rows.tolist() == [0]
    assert found.within.tolist() == [True, False, False, False, False]
    assert found.guess[0] / x[0] - 1 == pytest.approx(80_000 / 987_654_321.125)
    # Cut at t, the others leave 60,000 beside the two largest: t may be ten times that.
    assert least_cap(np.zeros(5, int), x, None, P10) == pytest.approx(600_000)
    # (1,85): t / (t + 80,000) is at most 85 %.
    assert least_cap(np.zeros(5, int), x, None, DominanceRule(n=1, k=85)) == pytest.approx(
        80_000 * 85 / 15
    )


@pytest.mark.parametrize(
    ("x", "told"),
    [
        ([100, 50, 11, 0], False), ([100, 50, 9, 0], True), ([100, 50, 10, 0], False),
        ([-100, 50, 9, 0], True), ([0, 0, 0, 0], False), ([5, 5], True), ([5], False),
        ([np.nan, 100, 50, 9], True),
    ],
)  # fmt: skip
def test_the_p_rule_by_hand(x, told):
    x = np.array(x, dtype=float)
    released = np.where(np.isnan(x), np.nan, np.nanmean(x))
    found = find_dominated(np.zeros(len(x), int), x, released, None, P10)
    assert bool(len(found.groups)) == told


@pytest.mark.parametrize("rule", [P10, DominanceRule(p=50), DominanceRule(n=1, k=60),
                                  DominanceRule(n=3, k=90)], ids=str)  # fmt: skip
@pytest.mark.parametrize("seed", range(8))
def test_random_tables_agree_with_pandas(rule, seed):
    chance = np.random.default_rng(seed)
    n = 400
    frame = pd.DataFrame({
        "g": chance.integers(0, 90, n),
        "x": chance.lognormal(3, 2, n) * chance.choice([1, 1, -1], n),
        "w": chance.uniform(0.5, 20, n) if seed % 2 else 1.0,
    })  # fmt: skip
    frame.loc[chance.random(n) < 0.1, "x"] = 0.0
    frame.loc[chance.random(n) < 0.05, "x"] = np.nan
    mean = frame.groupby("g").apply(
        lambda own: np.average(own.x.dropna(), weights=own.w[own.x.notna()])
        if own.x.notna().any() else np.nan, include_groups=False,
    )  # fmt: skip
    released = frame.g.map(mean).where(frame.x.notna())
    weights = frame.w.to_numpy()
    found = find_dominated(
        frame.g.to_numpy(), frame.x.to_numpy(), released.to_numpy(), weights, rule
    )
    assert set(found.groups.tolist()) == by_pandas(frame, rule)
    total = (frame.w * frame.x).groupby(frame.g).transform("sum")
    many = frame.x.groupby(frame.g).transform("count") > 1
    near = many & ((total / frame.w - frame.x).abs() <= 0.1 * frame.x.abs()) & (frame.x != 0)
    assert found.within.tolist() == near.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_enlarged_groups_keep_the_rule_or_are_as_large_as_allowed(seed):
    chance = np.random.default_rng(seed)
    x = chance.lognormal(3, 2, (300, 2))
    order = np.argsort(x[:, 0])
    labels = np.empty(300, dtype=np.int64)
    labels[order] = np.arange(300) // 3
    parts = [np.arange(0, 300, 2), np.arange(1, 300, 2)]
    labels = labels * 2 + np.arange(300) % 2
    _, labels = np.unique(labels, return_inverse=True)
    weights = np.ones(300)
    out = enlarge(labels, x, x, weights, P10, parts=parts, most=12)
    sizes = np.bincount(out)
    assert pd.Series(out).groupby(labels).nunique().max() == 1  # groups are merged, never cut
    assert pd.Series(np.arange(300) % 2).groupby(out).nunique().max() == 1
    assert sizes.max() <= max(12, np.bincount(labels).max())
    told: set[int] = set()
    for column in x.T:
        told |= by_pandas(pd.DataFrame({"g": out, "x": column, "w": weights}), P10)
    before: set[int] = set()
    for column in x.T:
        before |= by_pandas(pd.DataFrame({"g": labels, "x": column, "w": weights}), P10)
    assert len(told) < len(before)


@pytest.mark.parametrize(
    "wish", [0, 100, "10", {"p": 10, "n": 1}, {"n": 0, "k": 85}, {"n": 1}, None]
)
def test_senseless_rules(wish):
    with pytest.raises(BadOptionError, match="'n': 1, 'k': 85"):
        DominanceRule.of(wish)
