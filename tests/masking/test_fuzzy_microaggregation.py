"""Fuzzy microaggregation: a draw with known chances, and a promise of k where one is made."""

from __future__ import annotations

import doctest
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from tessella import FuzzyMicroaggregation, Microaggregation
from tessella.datasets import load_expenditure
from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    CollapsedError,
    ContradictionError,
    GroupSizeError,
    MissingValuesError,
    UnknownColumnError,
    UnreachableError,
)
from tessella.fuzzy import FuzzyCMeans
from tessella.fuzzy.drawing import draw_part, find_centres
from tessella.fuzzy.field import power_law
from tessella.grouping.base import SystemChance
from tessella.linear import LinearSystem
from tessella.masking import choose_fuzziness
from tests.amounts import few_or_many, try_examples
from tests.reference import fuzzy as reference

from .simple import counts

SUM = LinearSystem.equalities([[1, 1, -1]], [0], columns=["net", "tax", "gross"])


def normal(n=400, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def incomes(n=300, seed=0):
    random = np.random.default_rng(seed)
    net, tax = random.lognormal(7, 0.5, n).round(2), random.lognormal(5, 0.5, n).round(2)
    return pd.DataFrame(
        {"net": net, "tax": tax, "gross": net + tax, "age": random.integers(18, 90, n)}
    )


# The draw


def test_centres_are_drawn_with_their_memberships():
    """An independent way: the papers' memberships, and the counts of many draws."""
    X = normal(60, 2)
    fitted = find_centres(X, np.ones(60), FuzzyCMeans(m=1.1, random_state=0), 10, None)
    u = reference.degrees(X, fitted.cluster_centers_, 1.5)
    drawn, random = np.zeros_like(u), np.random.default_rng(0)
    for _ in range(4000):
        found = draw_part(
            X, np.ones(60), fitted.cluster_centers_, power_law(1.5), k=10, chance=random
        )
        drawn[np.arange(60), found.labels] += 1
    assert np.abs(drawn / 4000 - u).max() < 5 * 0.5 / np.sqrt(4000)


def test_what_is_told_of_the_draw():
    """An independent way: whole matrices."""
    X, k = normal(90, 2), 6
    fitted = find_centres(X, np.ones(90), FuzzyCMeans(m=1.1, random_state=0), k, None)
    V = fitted.cluster_centers_
    found = draw_part(X, np.ones(90), V, power_law(1.4), k=k, chance=SystemChance())
    u = reference.degrees(X, V, 1.4)
    expected = u.sum(axis=0)
    candidates = u / expected
    excess = np.maximum(candidates - 1 / k, 0).sum(axis=0)
    assert found.expected_sizes == pytest.approx(expected)
    assert found.entropy == pytest.approx(-(u * np.log2(u)).sum(axis=1), abs=1e-9)
    assert found.naming_chance == pytest.approx((u * candidates).sum(axis=1), abs=1e-9)
    assert found.distance_to_k == pytest.approx(u @ excess, abs=1e-9)
    assert found.expected_square == pytest.approx((u * reference.squares(X, V)).sum(axis=1))


def test_six_records():
    table = pd.DataFrame({"age": [21, 22, 23, 61, 62, 66], "income": [1.0, 2, 3, 8, 8, 8]})
    masker = FuzzyMicroaggregation(k=3, random_state=0)
    released = masker.fit_transform(table)
    assert released["age"].tolist() == [22, 22, 22, 63, 63, 63]
    assert masker.uncertainty_[0].realised_sizes.tolist() == [3, 3]
    assert "2 centres, 0 of them drawn by nobody" in str(masker.uncertainty_[0])


def test_randomness_is_the_systems_unless_seeded():
    X = normal()
    again = [FuzzyMicroaggregation(5, m2=1.5).fit(X).labels_ for _ in range(2)]
    assert (again[0] != again[1]).any()
    seeded = [FuzzyMicroaggregation(5, m2=1.5, random_state=7).fit_transform(X) for _ in range(2)]
    assert (seeded[0] == seeded[1]).all()
    chances = SystemChance().random(100_000)
    assert 0 <= chances.min() < chances.max() < 1
    assert np.abs(np.histogram(chances, 10, (0, 1))[0] / 1e5 - 0.1).max() < 0.006


# Proposition 8 of Torra (2020)


def expected_loss(**wishes: Any) -> float:
    return float(FuzzyMicroaggregation(random_state=0, **wishes).fit(normal()).expected_loss_)


def test_loss_rises_with_m2_and_with_k():
    by_m2 = [expected_loss(k=5, m2=m2) for m2 in (1, 1.1, 1.3, 1.6, 2, 4)]
    assert by_m2 == sorted(by_m2)
    by_k = [expected_loss(k=k) for k in (2, 4, 8, 16, 50, 400)]
    assert by_k == sorted(by_k)


def test_with_one_centre_everything_is_at_the_mean():
    X = normal()
    released = FuzzyMicroaggregation(k=None, c=1, scale=None).fit_transform(X)
    assert released == pytest.approx(np.tile(X.mean(axis=0), (400, 1)))


def test_with_a_centre_for_each_record_nothing_is_lost():
    X = normal(50)
    masker = FuzzyMicroaggregation(k=None, c=50, m1=1, m2=1, random_state=0)
    assert masker.fit_transform(X) == pytest.approx(X)
    assert masker.loss_ == pytest.approx(0)
    assert masker.uncertainty_[0].naming_chance == pytest.approx(1)


def test_for_large_m1_it_collapses_and_says_so():
    with pytest.raises(CollapsedError, match="In a trial m="):
        FuzzyMicroaggregation(k=20, m1=6).fit(normal(400, 8))


def test_for_large_m2_groups_have_k_records_on_average_and_nobody_is_named():
    masker = FuzzyMicroaggregation(k=5, m2=1000, random_state=0).fit(normal())
    told = masker.uncertainty_[0]
    assert told.expected_sizes == pytest.approx(5, rel=0.02)
    assert told.entropy == pytest.approx(np.log2(80), rel=1e-3)
    assert told.naming_chance.max() < 1.1 / 400
    assert told.distance_to_k.max() == 0
    assert told.share_protected == 1


# The promise of k


def k_is_kept_where_it_is_promised(seed, k, m2, kind):
    random = np.random.default_rng(seed)
    n = int(random.integers(k, 80))
    X = random.normal(size=(n, int(random.integers(1, 4))))
    X = {
        "normal": X,
        "whole": X.round(),
        "zeros": X * (random.random((n, 1)) < 0.1),
        "heavy": np.exp(4 * X),
    }[kind]
    strata = None if n < 4 * k else np.arange(n) % 2
    masker = FuzzyMicroaggregation(k, m2=m2, at_least_k=True, random_state=seed)
    released = masker.fit_transform(X, strata=strata)
    assert counts(released, *([] if strata is None else [strata])).min() >= k
    assert masker.joint_k_ >= k
    assert masker.uncertainty_[0].naming_chance.max() <= 1 / k + 1e-9


@pytest.mark.usefixtures("few_moves")
@few_or_many(15, 30)
def test_k_is_kept_where_it_is_promised(count):
    try_examples(
        count,
        k_is_kept_where_it_is_promised,
        st.integers(0, 10**6),
        st.integers(2, 6),
        st.sampled_from([1, 1.2, 2.0]),
        st.sampled_from(["normal", "whole", "zeros", "heavy"]),
    )


@pytest.mark.usefixtures("few_moves")
@pytest.mark.parametrize(("k", "m2"), [(3, 1.4), (10, 1.2)])
def test_with_the_promise_less_is_lost_than_by_mdav(census, k, m2):
    """And yet it is fuzzy."""
    masker = FuzzyMicroaggregation(k, m2=m2, at_least_k=True, random_state=0).fit(census)
    crisp = Microaggregation(k, grouping="mdav").fit(census)
    assert masker.loss_ < crisp.loss_
    assert masker.joint_k_ >= k
    assert masker.uncertainty_[0].entropy.mean() > 0.03


@pytest.mark.usefixtures("few_moves")
def test_without_fuzziness_it_is_the_crisp_search():
    X = normal()
    masker = FuzzyMicroaggregation(5, m1=1, m2=1, at_least_k=True, random_state=0).fit(X)
    assert masker.uncertainty_[0].entropy.max() == 0
    assert masker.loss_ < Microaggregation(5, grouping="mdav").fit(X).loss_


@pytest.mark.usefixtures("few_moves")
def test_other_draws_come_out_of_the_promise_too():
    X = normal()
    found = [
        FuzzyMicroaggregation(5, m2=1.6, at_least_k=True, random_state=s).fit_transform(X)
        for s in range(2)
    ]
    assert (found[0] != found[1]).any()


# Tables


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_every_kind_of_table_gets_the_same_release(frame):
    data = incomes().to_dict("list")
    release = FuzzyMicroaggregation(5, random_state=3).fit_transform(frame(data))
    assert type(release) is type(frame(data))
    values = FuzzyMicroaggregation(5, random_state=3).fit_transform(pd.DataFrame(data))
    for name in data:
        assert np.asarray(release[name]).tolist() == values[name].tolist()
    assert values["age"].dtype == np.int64


def test_strata_blocks_and_entropy():
    table = incomes().assign(region=["north", "south", "west"] * 100)
    masker = FuzzyMicroaggregation(
        5, lambda1=5000.0, lambda2=500.0, strata="region",
        blocks=[["net", "tax", "gross"], ["age"]],
        random_state=0,
    )  # fmt: skip
    released = masker.fit_transform(table)
    assert masker.labels_.shape == (300, 2)
    assert len(masker.uncertainty_) == 2
    for j, columns in enumerate((["net", "tax", "gross"], ["age"])):
        for label in np.unique(masker.labels_[:, j]):
            own = masker.labels_[:, j] == label
            assert table.loc[own, "region"].nunique() == 1
            assert len(released.loc[own, columns].drop_duplicates()) == 1


def test_missing_cells_stay_where_they_are():
    table = incomes()
    table.loc[:19, "tax"] = np.nan
    with pytest.raises(MissingValuesError):
        FuzzyMicroaggregation(5).fit(table)
    masker = FuzzyMicroaggregation(5, on_missing="pattern", rules=SUM, random_state=0)
    released = masker.fit_transform(table)
    assert (released["tax"].isna() == table["tax"].isna()).all()
    known = released.dropna()
    assert (known["net"] + known["tax"] - known["gross"]).abs().max() < 1e-9


@pytest.mark.parametrize("at_least_k", [False, True])
@pytest.mark.parametrize("wishes", [{}, {"lambda1": 20.0, "lambda2": 10.0}])
def test_rules_hold_in_the_release_even_where_the_table_breaks_them(at_least_k, wishes):
    table = incomes()
    table["gross"] += np.random.default_rng(1).normal(0, 20, len(table))
    masker = FuzzyMicroaggregation(5, rules=SUM, at_least_k=at_least_k, random_state=0, **wishes)
    released = masker.fit_transform(table)
    size = released["gross"].abs().max()
    assert (released["net"] + released["tax"] - released["gross"]).abs().max() <= 1e-12 * size
    if at_least_k:
        assert masker.joint_k_ >= 5


def test_the_papers_table():
    """Table 2 of Torra (2020), noise of 1.5: c = 4 centres for k = 3."""
    table = load_expenditure()
    noise = np.random.default_rng(0).normal(0, 1.5, table.shape)
    rule = ([[1.16, 1.07, -1.0]], [0.0])
    masker = FuzzyMicroaggregation(3, rules=rule, random_state=0)
    released = np.asarray(masker.fit_transform(table + noise))
    assert len(masker.uncertainty_[0].expected_sizes) == 4
    assert np.abs(released @ [1.16, 1.07, -1.0]).max() < 1e-9


def test_a_rule_across_blocks_is_refused():
    with pytest.raises(BadOptionError, match="net"):
        FuzzyMicroaggregation(5, rules=SUM, blocks=[["net", "tax"], ["gross", "age"]]).fit(
            incomes()
        )


def test_a_saved_masker_holds_no_record():
    table = pd.DataFrame(normal(4000, 4), columns=list("abcd"))
    masker = FuzzyMicroaggregation(5, random_state=0).fit(table, strata=np.arange(4000) % 2)
    text = pickle.dumps(masker)
    for value in table.to_numpy().ravel()[:200]:
        assert value.tobytes() not in text
    for array in (masker.labels_, masker.uncertainty_[0].naming_chance):
        assert array[:8].tobytes() not in text
    assert pickle.loads(text).loss_ == masker.loss_


# Choosing the fuzziness


def test_one_m1_may_be_given_alone():
    found = choose_fuzziness(normal(100), FuzzyMicroaggregation(5), min_bits=0.5, m1=1.1)
    assert found.m1 == 1.1
    with pytest.raises(BadOptionError, match="m1"):
        choose_fuzziness(normal(100), FuzzyMicroaggregation(5), min_bits=0.5, m1=["fuzzy"])


@pytest.mark.parametrize("at_least_k", [False, True])
def test_a_wish_is_just_met(at_least_k):
    X = normal(200)
    masker = FuzzyMicroaggregation(5, at_least_k=at_least_k)
    low = choose_fuzziness(X, masker, max_loss=30, m1=[1.0, 1.1])
    assert 20 < low.loss <= 30
    sure = choose_fuzziness(X, masker, min_bits=0.5, m1=[1.0, 1.1])
    assert sure.bits == pytest.approx(0.5, rel=0.1)
    assert sure.masker.m2 == sure.m2 != masker.m2
    told = sure.masker.set_params(random_state=0).fit(X)
    assert told.expected_loss_ == pytest.approx(sure.loss, rel=0.15)
    assert told.uncertainty_[0].entropy.mean() == pytest.approx(sure.bits, rel=0.15)
    assert {"m1", "m2", "loss", "bits", "chosen"} == set(sure.trade_off.columns)
    assert "bits of uncertainty" in str(sure)


def test_the_picture_has_a_line_for_each_m1(tmp_path):
    found = choose_fuzziness(normal(200), FuzzyMicroaggregation(5), min_bits=1, m1=[1.0, 1.1])
    figure = found.picture()
    assert [line.get_label() for line in figure.axes[0].lines[:2]] == ["m1 = 1", "m1 = 1.1"]
    figure.savefig(tmp_path / "trade.svg")
    assert (tmp_path / "trade.svg").stat().st_size > 1000


def test_a_wish_that_cannot_be_met():
    with pytest.raises(UnreachableError, match=r"max_loss=.* cannot be met"):
        choose_fuzziness(normal(200), FuzzyMicroaggregation(10), max_loss=0.1, m1=[1.0])
    with pytest.raises(UnreachableError, match="min_bits=9 cannot"):
        choose_fuzziness(normal(200), FuzzyMicroaggregation(10), min_bits=9, m1=[1.0])
    with pytest.raises(BadTableError, match="one wish"):
        choose_fuzziness(normal(200), FuzzyMicroaggregation(10))


# Bad input


@pytest.mark.parametrize("k", [1, 0, -3, 2.5, "5", True])
def test_senseless_k(k):
    with pytest.raises(GroupSizeError):
        FuzzyMicroaggregation(k).fit(normal())


def test_more_than_there_is():
    with pytest.raises(GroupSizeError, match="at least 401 records"):
        FuzzyMicroaggregation(401).fit(normal())
    with pytest.raises(GroupSizeError, match="strata"):
        FuzzyMicroaggregation(5).fit(normal(), strata=[0] * 397 + [1] * 3)


@pytest.mark.parametrize(
    ("wishes", "match"),
    [
        ({"m1": 0.9}, "m1="), ({"m2": 0.5}, "m2="), ({"m2": np.nan}, "m2="),
        ({"m1": "auto"}, "m1="),
        ({"lambda1": 0.0, "lambda2": 1.0}, "lambda1="),
        ({"lambda1": 1.0, "lambda2": -1.0}, "lambda2="),
        ({"c": 0}, "c="), ({"c": 2.5}, "c="), ({"c": 401}, "c="), ({"k": None}, "k is not given"),
    ],
)  # fmt: skip
def test_senseless_numbers(wishes, match):
    with pytest.raises(BadOptionError, match=match):
        FuzzyMicroaggregation(**{"k": 5, **wishes}).fit(normal())


def test_senseless_wishes():
    with pytest.raises(BadTableError, match="both lambda1 and lambda2"):
        FuzzyMicroaggregation(5, lambda1=1.0).fit(normal())
    with pytest.raises(BadTableError, match="leave out c"):
        FuzzyMicroaggregation(5, c=10, at_least_k=True).fit(normal())
    wrong = LinearSystem.equalities([[1.0, -1.0]], [0.0], columns=["net", "brutto"])
    with pytest.raises(UnknownColumnError, match="'brutto'"):
        FuzzyMicroaggregation(5, rules=wrong).fit(incomes())
    with pytest.raises(ContradictionError):
        FuzzyMicroaggregation(5, rules=([[1, 0, 0], [1, 0, 0]], [0, 1])).fit(normal())


def test_equal_records_and_constant_columns():
    masker = FuzzyMicroaggregation(5, random_state=0)
    assert (masker.fit_transform(np.ones((20, 2))) == 1).all()
    assert masker.loss_ == 0
    X = np.column_stack([normal(100, 1), np.full(100, 3.0)])
    assert (FuzzyMicroaggregation(5, random_state=0).fit_transform(X)[:, 1] == 3).all()


# The user's page


def test_the_page_does_what_it_says():
    page = Path(__file__).parents[2] / "docs" / "fuzzy.md"
    ran = doctest.testfile(str(page), module_relative=False)
    assert ran.attempted > 5
    assert ran.failed == 0
