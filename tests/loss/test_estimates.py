"""Survey estimates, their sampling errors, and what masking does to them."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella import Schema
from tessella.exceptions import BadOptionError
from tessella.loss import estimate_loss
from tessella.loss.estimates import component_ratios, is_amount, moved_shares
from tessella.loss.survey import Amounts, Design
from tessella.rules import Rules

DATA = Path(os.environ.get("TESSELLA_DATA", ""))
INFLUENCES = {
    Amounts.gini: Amounts.gini_influence,
    Amounts.quintile_ratio: Amounts.quintile_ratio_influence,
    Amounts.poverty: Amounts.poverty_influence,
}


def by_name(found) -> dict:
    return {one.name: one for one in (*found.estimates, *found.within)}


# By hand


def test_total_and_mean_by_hand():
    """1, 2, 3, 6: mean 3, variance 14 / 3; the error of the mean is sqrt(14 / 3 / 4)."""
    before = pd.DataFrame({"x": [1.0, 2, 3, 6]})
    found = by_name(estimate_loss(before, before.assign(x=[1.0, 2, 3, 8])))
    total, mean = found["total of x"], found["mean of x"]
    assert (total.before, total.after, mean.before, mean.after) == (12, 14, 3, 3.5)
    assert mean.error == pytest.approx(math.sqrt(14 / 12))
    assert total.error == pytest.approx(4 * mean.error)
    assert mean.ratio == pytest.approx(0.5 / mean.error)
    assert not mean.moved


def test_units_are_what_was_sampled():
    """Every record twice, as members of one household: the mean is as uncertain as without."""
    once = pd.DataFrame({"x": [1.0, 2, 3, 6], "h": [1, 2, 3, 4]})
    twice = pd.concat([once, once])
    schema = Schema.guess(once).override(h={"role": "unit"})
    records = Schema.guess(once).override(h={"role": "identifier"})
    alone, pairs, wrong = (
        by_name(estimate_loss(t, t, schema=s))["mean of x"].error
        for t, s in ((once, schema), (twice, schema), (twice, records))
    )
    assert pairs == pytest.approx(alone)
    assert wrong < alone


def test_strata_leave_the_spread_within():
    """Two strata of constant values have no error, though the whole table varies."""
    table = pd.DataFrame({"x": [1.0, 1, 5, 5]})
    assert by_name(estimate_loss(table, table, strata=[0, 0, 1, 1]))["mean of x"].error == 0
    assert by_name(estimate_loss(table, table))["mean of x"].error > 0


def test_shares_by_hand():
    """50 of 100 have an error of 5 points, 10 of 100 one of 3, times sqrt(100 / 99)."""
    before = pd.DataFrame({"town": list("a" * 50 + "b" * 38 + "c" * 10 + "d" * 2)})
    after = pd.DataFrame({"town": list("a" * 54 + "b" * 41 + "c" * 5)})
    (found,) = moved_shares(before, after, least=3)
    assert (found.column, found.of, found.before, found.after) == ("town", "c", 0.1, 0.05)
    assert found.error == pytest.approx(0.03 * math.sqrt(100 / 99))
    assert [one.of for one in moved_shares(before, after)] == ["c", "d"]
    assert not moved_shares(before, before)


def test_a_weighted_share_has_a_larger_error():
    """Weights 1 and 3 in equal numbers make 100 records count as 80."""
    before = pd.DataFrame({"town": list("ab" * 50)})
    after = pd.DataFrame({"town": list("ab" * 42 + "bb" * 8)})
    weights = np.repeat([1.0, 3.0], 50)
    assert not moved_shares(before, before.assign(town=list("ab" * 47 + "bb" * 3)))
    first, second = moved_shares(before, after, weights=weights)
    assert first.error == pytest.approx(math.sqrt(0.25 / 80 * 100 / 99))
    assert second.error == pytest.approx(first.error)


def test_a_share_counts_households_where_they_were_sampled():
    """Households of two who agree: 7 of 100 records are 3.5 of 50 households, within one error."""
    before = pd.DataFrame({"town": list("a" * 50 + "b" * 50), "h": np.arange(100) // 2})
    after = before.assign(town=list("a" * 56 + "b" * 44))
    schema = Schema.guess(before).override(h={"role": "unit"})
    assert not moved_shares(before, after, schema=schema)
    assert len(moved_shares(before[["town"]], after[["town"]])) == 2


def test_cells_that_are_gone_count_against_their_category():
    before = pd.DataFrame({"town": list("a" * 50 + "b" * 50)})
    after = before.assign(town=["a"] * 50 + ["b"] * 20 + [None] * 30)
    names = [one.of for one in moved_shares(before, after, on_unpaired="skip")]
    assert sorted(names) == ["a", "b"]


def test_inequality_by_hand():
    """1 and 3: G = |1 - 3| * 2 / (2 * 2 * 4) = 0.25. Fifths of 1 to 5: 5 / 1; the poor of 3: 1."""
    assert Amounts(np.array([1.0, 3.0]), np.ones(2)).gini() == pytest.approx(0.25)
    five = Amounts(np.array([5.0, 1, 4, 2, 3]), np.ones(5))
    assert five.quintile_ratio() == pytest.approx(5.0)
    assert five.poverty() == pytest.approx(0.2)  # 1 is below 0.6 * 3, and 2 is not


def test_ratios_of_parts_to_wholes_come_from_rules():
    rules = Rules.of(["net + tax == gross", "cost <= sales", "if net > 5: tax >= 1", "a == 2 * b"])
    pairs = component_ratios(rules, ["net", "tax", "gross", "cost", "sales", "a", "b"])
    assert pairs == [("net", "gross"), ("tax", "gross"), ("cost", "sales")]
    assert component_ratios(rules, ["net", "tax"]) == []
    table = pd.DataFrame({"net": [1.0, 2, 3], "gross": [2.0, 4, 6]})
    (ratio,) = [
        one
        for one in estimate_loss(table, table, ratios=[("net", "gross")]).estimates
        if one.kind == "ratio"
    ]
    assert (ratio.name, ratio.before) == ("ratio of net to gross", 0.5)
    assert ratio.error == pytest.approx(0, abs=1e-15)


def test_amounts_are_skewed_and_poverty_is_about_incomes():
    chance = np.random.default_rng(0)
    n = 500
    table = pd.DataFrame(
        {
            "age": chance.integers(0, 95, n),
            "income": chance.lognormal(9, 0.6, n),
            "turnover": chance.lognormal(9, 1, n),
            "profit": chance.normal(0, 100, n),
        }
    )
    names = [one.name for one in estimate_loss(table, table).estimates]
    assert "Gini coefficient of turnover" in names
    assert [name for name in names if name.startswith("at-risk")] == [
        "at-risk-of-poverty rate of income"
    ]
    assert not any("of age" in name or "of profit" in name for name in names if "Gini" in name)
    found = estimate_loss(table, table, amounts=["age", "profit"])
    assert "at-risk-of-poverty rate of age" in by_name(found)
    assert any("'profit' has negative values" in note for note in found.notes)
    assert not is_amount(np.repeat([0.0, 0.0, 9.0], 50), np.ones(150))


def test_a_weight_that_is_a_guess_is_noted_and_not_used():
    table = pd.DataFrame({"x": [1.0, 2, 3, 6], "sampling_weight": [1.5, 2.5, 1.0, 9.0]})
    guessed = Schema.guess(table)
    found = estimate_loss(table, table, schema=guessed)
    assert by_name(found)["mean of x"].before == 3
    assert any("'sampling_weight' may be a weight" in note for note in found.notes)
    schema = guessed.override(sampling_weight={"role": "weight"})
    found = estimate_loss(table, table, schema=schema)
    assert by_name(found)["mean of x"].before == pytest.approx(63.5 / 14)
    assert not found.notes


def test_what_cannot_be_asked_for():
    table = pd.DataFrame({"x": [1.0, 2.0], "town": ["a", "b"]})
    for options in ({"amounts": ["town"]}, {"ratios": [("x", "y")]}, {"by": ["x"]}):
        with pytest.raises(BadOptionError, match=next(iter(options))):
            estimate_loss(table, table, **options)
    assert estimate_loss(table[:1], table[:1]).estimates == ()


# Independent ways to the same answer


def gini_of(y, w):
    return np.abs(y[:, None] - y).ravel() @ np.outer(w, w).ravel() / (2 * w.sum() * (w @ y))


@given(
    st.lists(st.integers(0, 20), min_size=3, max_size=25).filter(lambda x: sum(x) > 0),
    st.randoms(use_true_random=False),
)
def test_gini_of_all_pairs_and_its_derivative(values, random):
    y = np.array(values, dtype=float)
    w = np.array([random.uniform(0.5, 3) for _ in values])
    amounts = Amounts(y, w)
    assert amounts.gini() == pytest.approx(gini_of(y, w), abs=1e-12)
    step = 1e-6
    slopes = [
        (gini_of(y, w + step * at) - gini_of(y, w - step * at)) / (2 * step)
        for at in np.eye(len(y))
    ]
    assert amounts.gini_influence() == pytest.approx(np.array(slopes), abs=1e-7)


def test_the_derivative_of_the_quintile_ratio():
    chance = np.random.default_rng(3)
    y, w = chance.lognormal(0, 1, 60), chance.uniform(0.5, 3, 60)
    step = 1e-7
    slopes = [
        (Amounts(y, w + step * at).quintile_ratio() - Amounts(y, w - step * at).quintile_ratio())
        / (2 * step)
        for at in np.eye(60)
    ]
    assert Amounts(y, w).quintile_ratio_influence() == pytest.approx(np.array(slopes), rel=1e-4)


def test_errors_are_those_of_a_bootstrap_of_households():
    """Households of one to four with one income, drawn again with replacement, in plain NumPy."""
    chance = np.random.default_rng(7)
    units = np.repeat(np.arange(1_000), chance.integers(1, 5, 1_000))
    y, w = chance.lognormal(0, 0.6, 1_000)[units], chance.uniform(1, 4, 1_000)[units]
    sex = chance.integers(0, 2, len(units))
    design = Design(w, units)
    errors = [design.error(z(Amounts(y, w))) for z in INFLUENCES.values()]
    domains = design.domains(sex, 2)
    errors += [domains.shares()[1][1], domains.means(y)[1][1], design.error(y)]
    again = []
    for _ in range(400):
        times = np.bincount(chance.integers(0, 1_000, 1_000), minlength=1_000)[units]
        v, drawn = w * times, times > 0
        women = v * sex
        sample = Amounts(y[drawn], v[drawn])
        figures = [estimate(sample) for estimate in INFLUENCES]
        again.append([*figures, women.sum() / v.sum(), women @ y / women.sum(), v @ y])
    assert errors == pytest.approx(np.std(again, axis=0, ddof=1), rel=0.15)  # chance: 1 / sqrt(800)


@pytest.mark.parametrize("seed", range(8))
def test_all_domains_at_once_are_each_alone(seed):
    chance = np.random.default_rng(seed)
    n = 200
    w, y = chance.uniform(0.5, 3, n), chance.normal(size=n)
    y[chance.random(n) < 0.1] = np.nan
    codes = chance.integers(-1, 4, n)
    units = chance.integers(0, 60, n) if seed % 2 else None
    units = None if units is None else np.unique(units, return_inverse=True)[1]
    strata = chance.integers(0, 3, n) if seed % 4 > 1 else None
    design = Design(w, units, strata)
    domains = design.domains(codes, 4)
    shares, share_errors = domains.shares()
    means, mean_errors = domains.means(y[codes >= 0])
    some = codes >= 0
    for at in range(4):
        inside, known = codes == at, (codes == at) & ~np.isnan(y)
        whole = w[some].sum()
        assert shares[at] == pytest.approx(w[inside].sum() / whole)
        influence = some * (inside - shares[at]) / whole
        assert share_errors[at] == pytest.approx(design.error(influence))
        mean = np.average(y[known], weights=w[known])
        assert means[at] == pytest.approx(mean)
        influence = np.where(known, np.nan_to_num(y) - mean, 0) / w[known].sum()
        assert mean_errors[at] == pytest.approx(design.error(influence))


@pytest.mark.skipif(not (DATA / "people").is_dir(), reason="TESSELLA_DATA has no folder people")
def test_eusilc_by_the_figures_of_laeken():
    """Alfons and Templ (2013), J. Statistical Software 54(15): 14.44, 3.971 and 26.49."""
    table = pd.read_csv(DATA / "people" / "eusilc.csv", sep=";", decimal=",")
    table = table[["db030", "rb090", "eqIncome", "rb050"]]
    schema = Schema.guess(table).override(db030={"role": "unit"}, rb050={"role": "weight"})
    found = by_name(estimate_loss(table, table, schema=schema, by=["rb090"]))
    poverty = found["at-risk-of-poverty rate of eqIncome"]
    gini = found["Gini coefficient of eqIncome"]
    assert 100 * poverty.before == pytest.approx(14.444, abs=1e-3)
    assert 100 * gini.before == pytest.approx(26.490, abs=1e-3)
    assert found["S80/S20 of eqIncome"].before == pytest.approx(3.9714, abs=1e-3)
    assert 0.4 < 100 * poverty.error < 0.52
    assert 0.28 < 100 * gini.error < 0.36
    assert "mean of eqIncome where rb090 = female" in found


# Invariants


@given(st.integers(0, 10_000))
def test_a_table_is_as_it_was(seed):
    chance = np.random.default_rng(seed)
    n = int(chance.integers(2, 80))
    table = pd.DataFrame(
        {
            "x": chance.normal(size=n).round(1),
            "income": chance.lognormal(size=n),
            "town": chance.choice(list("ab"), n),
        }
    )
    table.loc[chance.random(n) < 0.2, "x"] = np.nan
    found = estimate_loss(table, table, by=True, least=2)
    assert all(one.ratio == 0 for one in (*found.estimates, *found.within))
    assert found.value == 0
    json.dumps(found.to_dict(), allow_nan=False)


def test_weights_and_units_need_no_scale():
    """Ten times the weights: totals are ten times as large, all else stays."""
    chance = np.random.default_rng(5)
    table = pd.DataFrame({"income": chance.lognormal(size=90), "town": list("abc") * 30})
    masked = table.assign(income=table.income.round(), town=list("aabbcc") * 15)
    w = chance.uniform(1, 3, 90)
    one, ten = (
        by_name(estimate_loss(table, masked, weights=times * w, by=True)) for times in (1, 10)
    )
    for name, first in one.items():
        scale = 10 if first.kind == "total" else 1
        assert ten[name].error == pytest.approx(scale * first.error)
        assert ten[name].after == pytest.approx(scale * first.after)


def test_the_sentence_names_no_category_and_no_value():
    table = pd.DataFrame({"town": ["secret"] * 60 + ["b"] * 60, "x": np.arange(120.0)})
    masked = table.assign(town="b", x=100.0)
    found = estimate_loss(table, masked, by=True)
    assert found.moved
    assert found.sentence == (
        "Of 4 estimates 4 moved by more than their sampling error: total of x, mean of x, a share "
        "of town."
    )
    assert "secret" in str(found)  # the table is for the holder
