"""Shuffling: columns are permuted, covariances of scores stay, nothing else of a record does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tessella.exceptions import BadOptionError, BadTableError, UnchangedWarning, UnknownColumnError
from tessella.frame import View
from tessella.masking import Shuffling
from tessella.masking.shuffling import ScoreModel, key_scores, normal_scores


def people(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    town = rng.choice(["Reus", "Valls", "Salou"], n)
    pay = (np.exp(0.02 * age + (town == "Reus") + rng.normal(0, 0.5, n)) * 900).round(2)
    rent = np.where(rng.random(n) < 0.3, 0, 0.3 * pay * rng.gamma(4, 0.25, n)).round(0)
    return pd.DataFrame({"age": age, "town": town, "pay": pay, "rent": rent})


# By hand.


def test_scores_are_those_of_mean_ranks():
    found = normal_scores(np.array([10.0, 30.0, np.nan, 10.0, 40.0]))
    ranks = np.array([1.5, 3.0, np.nan, 1.5, 4.0])
    np.testing.assert_allclose(found, stats.norm.ppf((ranks - 0.5) / 4), rtol=1e-14)


def test_hardly_any_amount_leaves_every_number_where_it_is():
    table = people()[["age", "pay"]].drop_duplicates()
    released = Shuffling(1e-9, columns=["pay"], given="age", random_state=1).fit_transform(table)
    pd.testing.assert_frame_equal(released, table)


def test_keys_are_scores_indicators_and_a_category_for_missing():
    table = pd.DataFrame({
        "town": ["a", "b", "c", "a"], "age": [30.0, np.nan, 20.0, 40.0],
        "size": pd.Categorical(["s", "l", "l", None], categories=["s", "l"], ordered=True),
    })  # fmt: skip
    found = key_scores(View(table), ["town", "age", "size"], np.arange(4))
    assert found.shape == (4, 2 + 2 + 2)  # a simplex of three, and score and gap of two
    away = ((found[:, None, :2] - found[None, :, :2]) ** 2).sum(axis=2)
    town = table.town.to_numpy(dtype=str)
    np.testing.assert_allclose(away, 1.0 * (town[:, None] != town), atol=1e-12)
    np.testing.assert_allclose(found[:, 2], [0, 0, *stats.norm.ppf([1 / 6, 5 / 6])], atol=1e-12)
    assert found[:, 3].tolist() == [0, 1, 0, 0]
    assert found[0, 4] < found[1, 4] == found[2, 4]
    assert found[:, 5].tolist() == [0, 0, 0, 1]


# Invariants.


@st.composite
def tables(draw):
    n, d = draw(st.integers(24, 60)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = pd.DataFrame(rng.integers(0, draw(st.sampled_from([3, 30, 10**6])), (n, d + 1)) * 1.0)
    table.columns = [f"x{j}" for j in range(d)] + ["key"]
    table["part"] = rng.choice(["a", "b"], n)
    holes = rng.random((n, d)) < draw(st.sampled_from([0.0, 0.1]))
    table.iloc[:, :d] = table.iloc[:, :d].mask(holes)
    return table


@given(tables(), st.sampled_from([0.2, 1.0]), st.booleans(), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
@pytest.mark.filterwarnings("ignore::tessella.exceptions.UnchangedWarning")
def test_a_released_column_is_a_permutation_within_its_stratum(table, amount, apart, seed):
    columns = [name for name in table if name.startswith("x")]
    masker = Shuffling(
        amount, columns=columns, given=["key"], strata="part" if apart else None, random_state=seed
    )
    try:
        released = masker.fit_transform(table)
    except BadTableError as error:  # too few complete records, now and then
        if "complete records" not in str(error):
            raise
        return
    pd.testing.assert_frame_equal(released[["key", "part"]], table[["key", "part"]])
    pd.testing.assert_frame_equal(released.isna(), table.isna())
    parts = table.groupby("part").groups.values() if apart else [table.index]
    for rows in parts:
        for name in columns:
            assert sorted(released.loc[rows, name].dropna()) == sorted(
                table.loc[rows, name].dropna()
            )


@pytest.mark.parametrize("amount", [0.1, 0.6, 1.0])
def test_covariances_of_scores_are_kept_exactly(amount):
    """And what is drawn is uncorrelated with what it replaces: by amount = 1, given the keys."""
    table = people()
    scores = np.column_stack([normal_scores(table[name].to_numpy()) for name in ("pay", "rent")])
    keys = key_scores(View(table), ["age", "town"], np.arange(len(table)))
    model = ScoreModel.of(scores, keys)
    drawn = model.draw(np.random.default_rng(1).normal(size=scores.shape), amount)
    before, after = np.hstack([scores, keys]), np.hstack([drawn, keys])
    np.testing.assert_allclose(np.cov(after.T), np.cov(before.T), atol=1e-10)
    np.testing.assert_allclose(drawn.mean(axis=0), scores.mean(axis=0), atol=1e-10)
    # An independent way: partial covariances by the blocks of the joint covariance.
    joint = np.cov(np.hstack([drawn, scores, keys]).T, bias=True)
    rest = joint[:4, :4] - joint[:4, 4:] @ np.linalg.pinv(joint[4:, 4:]) @ joint[4:, :4]
    kept = np.sqrt(1 - amount**2)
    np.testing.assert_allclose(rest[:2, 2:], kept * rest[2:, 2:], atol=1e-10)
    np.testing.assert_allclose(rest[:2, :2], rest[2:, 2:], atol=1e-10)


@pytest.mark.parametrize("amount", [0.3, 1.0])
def test_rank_correlations_stay_and_ranks_do_not(amount):
    table = people(3000)
    masker = Shuffling(amount, columns=["pay", "rent"], given=["age", "town"], random_state=2)
    released = masker.fit_transform(table)
    numbers = ["age", "pay", "rent"]
    before, after = (one[numbers].corr("spearman") for one in (table, released))
    assert (before - after).abs().max().max() < 0.05
    own = stats.spearmanr(table.pay, released.pay).statistic
    # z* and z share what the keys explain, and the part of the rest that was not drawn anew.
    share = masker.explained_["pay"]
    expected = share + (1 - share) * np.sqrt(1 - amount**2)
    assert abs(own - expected) < 0.05
    by_town = [one.groupby("town").pay.apply(np.median) for one in (table, released)]
    assert (by_town[0] / by_town[1] - 1).abs().max() < 0.1


def test_without_keys_the_release_does_not_depend_on_who_is_who():
    """With amount = 1, rows in another order give the same table but for ties in ranks."""
    table = people()[["pay", "age"]]
    table["age"] += np.random.default_rng(1).random(len(table))
    released = Shuffling(random_state=4).fit_transform(table)
    own = [abs(stats.spearmanr(table[name], released[name]).statistic) for name in table]
    assert max(own) < 0.1


# Refusals.


def test_what_cannot_be_shuffled_is_refused():
    table = people(60)
    with pytest.raises(BadOptionError, match="not shuffled"):
        Shuffling(columns=["pay"], given=["pay"]).fit_transform(table)
    with pytest.raises(BadOptionError, match="each column once"):
        Shuffling(columns=["pay"], given=["age", "age"]).fit_transform(table)
    with pytest.raises(UnknownColumnError):
        Shuffling(columns=["pay"], given=["ages"]).fit_transform(table)
    for amount in (0, 1.1, True):
        with pytest.raises(BadOptionError, match="amount"):
            Shuffling(amount, columns=["pay"]).fit_transform(table)
    with pytest.raises(BadTableError, match=r"7 complete records.* at least 8"):
        Shuffling(columns=["pay", "rent"], given="age").fit_transform(table.head(7))
    Shuffling(columns=["pay", "rent"], given="age").fit_transform(table.head(8))


def test_keys_that_tell_the_ranks_are_named():
    table = people(200)
    table["tax"] = (0.2 * table.pay).round(3)
    with pytest.warns(UnchangedWarning, match="explain 100 % of the ranks of 'pay'"):
        Shuffling(columns=["pay"], given=["tax"]).fit_transform(table)
