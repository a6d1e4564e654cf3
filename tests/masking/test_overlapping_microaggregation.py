"""Overlapping microaggregation: a posterior of at most 1/k for every record, and what it costs."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tessella import Rules, Study
from tessella.exceptions import (
    AttackError,
    BadTableError,
    ContradictionError,
    GroupSizeError,
    MissingValuesError,
    RefusedError,
)
from tessella.masking import NoiseAddition, OverlappingMicroaggregation
from tessella.risk import attack


def incomes(n=120, seed=0):
    random = np.random.default_rng(seed)
    net, tax = random.integers(500, 5000, n), random.integers(50, 900, n)
    return pd.DataFrame(
        {"net": net, "tax": tax, "gross": net + tax, "region": random.choice(list("ab"), n)}
    )


def masker_of(k=3, **options):
    return OverlappingMicroaggregation(k, **{"effort": "quick", "random_state": 0} | options)


def check_theorem(masker, released):
    """Count from the released table alone: sizes of centres, and rows and sums of memberships."""
    u, k = masker.memberships_.toarray(), masker.k
    values, sizes = np.unique(np.asarray(released, float), axis=0, return_counts=True)
    assert sorted(sizes) == sorted(masker.sizes_)
    assert np.allclose(u.sum(axis=1), 1)
    assert np.allclose(u.sum(axis=0), masker.sizes_)
    assert (u <= masker.sizes_ / k + 1e-12).all()
    assert masker.posterior_ == (u / masker.sizes_).max() <= 1 / k
    assert (np.unique(masker.centres_, axis=0) == values).all()


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_posterior_is_at_most_one_in_k(k):
    table = incomes()[["net", "tax"]]
    masker = masker_of(k)
    released = masker.fit_transform(table)
    check_theorem(masker, released)
    assert masker.lower_bound_ <= masker.expected_loss_ * 1.001  # rounded to whole numbers
    assert masker.expected_loss_ <= masker.crisp_loss_ * 1.001


def test_the_loss_is_that_of_the_memberships():
    """An independent way: whole matrices."""
    X = np.random.default_rng(0).normal(size=(90, 3))
    masker = masker_of(4, order="kept")
    released = masker.fit_transform(X)
    squares = ((X[:, None] - masker.centres_) ** 2 / X.var(axis=0)).sum(axis=2)
    assert masker.expected_loss_ == pytest.approx(
        100 * (masker.memberships_.toarray() * squares).sum() / X.size
    )
    assert (released == masker.centres_[masker.labels_]).all()
    assert masker.loss_ == pytest.approx(
        100 * squares[np.arange(90), masker.labels_].sum() / X.size
    )
    assert released.mean(axis=0) == pytest.approx(X.mean(axis=0))  # every record counts k times


def test_records_are_released_in_random_order():
    table = incomes().set_index(np.arange(120) + 1000)
    kept = masker_of(order="kept", columns=["net", "tax", "gross"]).fit_transform(table)
    masker = masker_of(columns=["net", "tax", "gross"])
    released = masker.fit_transform(table)
    assert (kept.index == table.index).all()
    assert (kept["region"] == table["region"]).all()
    assert (released.index == np.arange(120)).all()
    assert (masker.order_ != np.arange(120)).any()
    assert (released.to_numpy() == kept.to_numpy()[masker.order_]).all()


def test_strata_and_missing_cells_are_apart():
    table = incomes().astype({"net": float})
    table.loc[table.index % 5 == 0, "net"] = np.nan
    masker = masker_of(strata="region", on_missing="pattern", order="kept")
    released = masker.fit_transform(table)
    part = table["region"] + table["net"].isna().astype(str)
    assert (released["region"] == table["region"]).all()
    assert (released["net"].isna() == table["net"].isna()).all()
    for u in masker.memberships_.toarray().T:
        assert part[u > 0].nunique() == 1
    assert masker.posterior_ <= 1 / 3
    with pytest.raises(MissingValuesError):
        masker_of().fit_transform(table.drop(columns="region"))


def test_weights_count_in_means_and_loss():
    table = incomes()[["net", "tax"]].astype(float)
    weights = np.random.default_rng(0).integers(1, 9, 120).astype(float)
    masker = masker_of(order="kept")
    masker.fit_transform(table, weights=weights)
    X, centre = table.to_numpy(), np.average(table, axis=0, weights=weights)
    unit = np.average((X - centre) ** 2, axis=0, weights=weights)
    squares = ((X[:, None] - masker.centres_) ** 2 / unit).sum(axis=2)
    lost = weights @ (masker.memberships_.toarray() * squares).sum(axis=1)
    assert masker.expected_loss_ == pytest.approx(100 * lost / (2 * weights.sum()))


def test_rules_hold_and_touch_no_probability():
    table, rules = incomes().drop(columns="region"), "net + tax == gross\nnet >= tax"
    table.loc[:20, "gross"] += 300  # broken in the input
    masker = masker_of(rules=rules)
    released = masker.fit_transform(table)
    assert (released.dtypes == table.dtypes).all()
    assert Rules.parse(rules).confront(released).all_hold
    check_theorem(masker, released)
    kept = masker_of(rules=rules, order="kept")
    assert attack(table, kept.fit_transform(table), kept).largest.max() <= 1 / 3 + 1e-12


def test_what_it_cannot_keep_is_refused():
    table = incomes().drop(columns="region")
    masker = masker_of(rules="net * tax == gross")
    masker.fit_transform(table)
    assert len(masker.restoration_.not_restored) == 1
    with pytest.raises(ContradictionError):
        masker_of(rules="net >= 5\nnet <= 4").fit_transform(table)
    with pytest.raises(GroupSizeError):
        masker_of(200).fit_transform(table)
    with pytest.raises(BadTableError, match="region"):
        masker_of().fit_transform(incomes())


def test_randomness_is_the_systems_unless_seeded():
    table = incomes()[["net", "tax"]]
    loose = [masker_of(random_state=None).fit_transform(table) for _ in range(2)]
    assert not loose[0].equals(loose[1])
    assert masker_of().fit_transform(table).equals(masker_of().fit_transform(table))


def test_frames_stay_what_they_are_and_nothing_of_a_record_is_saved():
    table = incomes()[["net", "tax"]]
    masker = masker_of()
    there = masker.fit_transform(pl.from_pandas(table))
    assert isinstance(there, pl.DataFrame)
    assert (there.to_numpy() == masker_of().fit_transform(table).to_numpy()).all()
    saved = pickle.loads(pickle.dumps(masker))
    assert not {"memberships_", "labels_", "order_"} & set(vars(saved))
    with pytest.raises(AttackError, match="saved masker"):
        attack(table, there.to_pandas(), saved)


# The intruder who knows the method


def test_the_attack_finds_the_posterior():
    table = incomes()[["net", "tax"]]
    masker = masker_of(order="kept")
    released = masker.fit_transform(table)
    found = attack(table, released, masker)
    posterior = masker.memberships_.toarray() / masker.sizes_
    assert found.belief == pytest.approx(posterior[np.arange(120), masker.labels_])
    assert found.largest == pytest.approx(posterior.max(axis=0)[masker.labels_])
    assert found.largest.max() <= 1 / 3 + 1e-12
    assert found.covered == 1
    part = attack(table, released, masker, known=["net"], sample=50, random_state=0)
    assert part.largest.max() <= 1 / 3 + 1e-12
    with pytest.raises(AttackError, match="cannot come from"):
        attack(table, NoiseAddition(0.1, random_state=0).fit_transform(table), masker)


def test_columns_that_stay_are_known():
    """What agrees with the region of a record is left; by hand from the memberships."""
    table = incomes()
    masker = masker_of(order="kept", columns=["net", "tax", "gross"])
    released = masker.fit_transform(table)
    found = attack(table, released, masker)
    u = masker.memberships_.toarray()[:, masker.labels_]
    u *= table["region"].to_numpy()[:, None] == table["region"].to_numpy()
    assert found.belief == pytest.approx(np.diag(u) / u.sum(axis=0))


def test_a_study_says_which_of_the_two_is_promised():
    study = Study(incomes().drop(columns="region"), random_state=0)
    release = study.do("overlapping microaggregation", k=3, effort="quick").release()
    text = str(release)
    assert "at most 1/3" in text
    assert "need not be alike" in text
    assert release.probabilistic[0].named == 0
    original, masked = study.views
    assert attack(original, masked, study.disclosed).largest.max() <= 1 / 3 + 1e-12
    assert study.protocol.entries[0].options["posterior"] == "at most 1/3"


def test_a_study_keeps_linear_rules_and_withholds_others():
    table = incomes().drop(columns="region")
    options = {"k": 3, "effort": "quick"}
    study = Study(table, rules="net + tax == gross", random_state=0)
    release = study.do("overlapping microaggregation", **options).release()
    assert release.audit.passed
    assert release.probabilistic[0].named == 0
    study = Study(table, rules="if net > 2000: tax > 400", random_state=0)
    with pytest.raises(RefusedError, match="tax > 400"):
        study.do("overlapping microaggregation", **options).release()
