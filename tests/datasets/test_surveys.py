"""Business survey and households: rules hold exactly, seeds repeat, spoiled cells are known."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.datasets import make_business_survey, make_households
from tessella.exceptions import BadOptionError
from tests.reference.rules import broken

MAKERS = {"business": make_business_survey, "households": make_households}


@pytest.fixture(params=MAKERS, scope="module")
def make(request):
    return MAKERS[request.param]


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 150), seed=st.integers(0, 2**32), name=st.sampled_from(sorted(MAKERS)))
def test_every_record_of_a_clean_table_obeys_every_rule(n, seed, name):
    table, rules = MAKERS[name](n, random_state=seed, return_rules=True)
    assert len(table) == n
    assert not set().union(*broken(rules, table.to_dict("records")))


def test_sums_and_products_hold_exactly_in_a_large_table():
    firms = make_business_survey(200_000, largest=1_000_000, random_state=4)
    assert (firms["wages"] == firms["hours"] * firms["hourly_rate"]).all()
    assert (firms["costs"] == firms["wages"] + firms["materials"] + firms["other_costs"]).all()
    assert (firms["profit"] == firms["turnover"] - firms["costs"]).all()
    assert (firms["hours"] <= 2400 * firms["employees"]).all()
    assert firms["turnover"].max() > 10**10  # giants, and still exact
    persons = make_households(200_000, random_state=4)
    parts = ["earnings", "pensions", "benefits", "capital"]
    assert (persons["income"] == persons[parts].sum(axis=1)).all()
    assert (persons["net"] + persons["tax"] == persons["income"]).all()


def test_every_rule_can_break(make):
    """A rule that nothing can break would test nothing: shuffle each column, and all break."""
    table, rules = make(400, random_state=0, return_rules=True)
    random = np.random.default_rng(0)
    numbers = table.select_dtypes("number").columns
    worse = {name: random.permutation(table[name].to_numpy()) for name in table}
    for name in numbers:
        worse[name] = worse[name] * random.choice([-1, 1, 1000], len(table))
    for name in table.columns.difference(numbers):
        worse[name] = np.where(random.random(len(table)) < 0.5, worse[name], "nowhere")
    seen = set().union(*broken(rules, pd.DataFrame(worse).to_dict("records")))
    domains = {rule for rule in rules if " in {" in rule}
    assert seen >= domains
    assert len(seen) >= len(rules) - 2  # a conditional rule may be lucky


def test_rules_name_only_columns_of_the_table(make):
    table, rules = make(20, random_state=0, return_rules=True)
    for rule in rules:
        words = re.findall(r"[a-z_][a-z_0-9]*", re.sub(r'"[^"]*"', "", rule.partition("#")[0]))
        assert set(words) - {"if", "in"} <= set(table.columns)


def test_the_same_seed_gives_the_same_table(make):
    options = {"inconsistent": 0.1, "missing": 0.1, "weights": True}
    first = make(300, random_state=7, **options)
    pd.testing.assert_frame_equal(first, make(300, random_state=7, **options))
    assert not first.equals(make(300, random_state=8, **options))
    generator = np.random.default_rng(7)
    pd.testing.assert_frame_equal(first, make(300, random_state=generator, **options))


def test_no_seed_gives_another_table_each_time(make):
    assert not make(50).equals(make(50))


def test_the_seed_decides_the_same_table_for_every_option(make):
    """Spoiled tables are the clean table with known cells changed."""
    clean, rules = make(500, random_state=3, return_rules=True)
    spoiled = make(500, random_state=3, inconsistent=0.2)
    changed = clean.ne(spoiled).to_numpy()
    assert (changed.sum(axis=1) <= 1).all()
    assert changed.any(axis=1).sum() == 100
    breaks = [bool(found) for found in broken(rules, spoiled.to_dict("records"))]
    np.testing.assert_array_equal(breaks, changed.any(axis=1))

    holes = make(500, random_state=3, missing=0.1)
    filled = holes.fillna(clean.astype(holes.dtypes)).astype(clean.dtypes)
    pd.testing.assert_frame_equal(filled, clean)
    pd.testing.assert_frame_equal(make(500, random_state=3, weights=True)[clean.columns], clean)


def test_missing_values_come_as_often_as_asked_and_not_in_keys():
    firms = make_business_survey(20_000, random_state=1, missing=0.1, weights=True)
    share = firms.isna().mean()
    assert (share[["firm", "region", "branch", "weight"]] == 0).all()
    figures = share.drop(["firm", "region", "branch", "weight"])
    assert figures.between(0.09, 0.11).all()
    assert firms["turnover"].dtype == "Int64"  # whole numbers stay whole


def test_share_of_firms_without_employees_is_exact():
    firms = make_business_survey(1000, self_employed=0.3, random_state=1)
    assert (firms["employees"] == 0).sum() == 300
    assert (firms.loc[firms["employees"] == 0, ["hours", "hourly_rate", "wages"]] == 0).all(
        axis=None
    )
    assert (make_business_survey(100, self_employed=1.0)["wages"] == 0).all()
    assert (make_business_survey(100, self_employed=0)["wages"] > 0).all()


@pytest.mark.parametrize("largest", [1, 249, 100_000])
def test_sizes_of_firms_follow_the_stated_law(largest):
    """P(e > x) for the firms that have employees, to four deviations."""
    firms = make_business_survey(100_000, largest=largest, self_employed=0, random_state=2)
    sizes = firms["employees"]
    assert sizes.between(1, largest).all()
    beyond = (1 + largest / 3) ** -1.3
    for x in (1, 5, 20, 100):
        p = max(0.0, ((1 + x / 3) ** -1.3 - beyond) / (1 - beyond))
        assert abs((sizes > x).mean() - p) <= 4 * np.sqrt(p * (1 - p) / len(sizes))


def test_firms_are_unique_and_have_few_names():
    firms = make_business_survey(5000, random_state=0, weights=True)
    assert firms["firm"].is_unique
    assert (firms.dtypes[["region", "branch"]] == "category").all()
    assert firms["weight"].between(1, 20).all()


def test_households_have_one_head_and_consistent_members():
    persons = make_households(5000, random_state=0, weights=True)
    homes = persons.groupby("household", sort=False)
    assert (persons["relation"].eq("head").groupby(persons["household"]).sum() == 1).all()
    assert (homes["region"].nunique() == 1).all()
    assert (homes["weight"].nunique() == 1).all()
    assert (homes["person"].max() == homes.size()).all()
    assert (homes["person"].nunique() == homes.size()).all()
    assert not persons.duplicated(["household", "person"]).any()


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 0},
        {"n": 2.5},
        {"n": True},
        {"inconsistent": -0.1},
        {"missing": 1.5},
        {"missing": "some"},
        {"missing": float("nan")},
        {"random_state": -1},
        {"random_state": "seed"},
    ],
)
def test_wrong_arguments_are_named(make, wrong):
    name = next(iter(wrong))
    with pytest.raises(BadOptionError, match=rf"^{name}=.* Give "):
        make(**wrong)
