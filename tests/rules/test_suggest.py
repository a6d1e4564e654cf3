"""Suggested rules: what is found in tables whose rules are known, and what is not made up."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from benchmarks.suggestions import false_ones, follows, planted_table, random_table

from tessella import Rules, Schema
from tessella._clock import reported_to
from tessella.datasets import load_census, load_eia, make_business_survey, make_households
from tessella.exceptions import BadOptionError, BadTableError, DataNotFoundError
from tessella.rules import Suggestion, Suggestions
from tessella.rules.finding.chance import decimal_text, log_chance
from tessella.rules.finding.columns import as_figure
from tessella.rules.finding.elimination import PRIME, null_vectors, small_fraction
from tests.amounts import HEAVY


def texts(found, *kinds):
    return [one.text for one in found if not kinds or one.kind in kinds]


def numbers(n=200, seed=0, **more):
    """Independent columns of whole numbers, wide enough that nothing agrees by chance."""
    generator = np.random.default_rng(seed)
    made = {name: generator.integers(1, 10_000, n) for name in "abc"}
    return pd.DataFrame(made | more)


# By hand.


def test_a_sum_by_hand():
    """Thirty records, one of them wrong: the answer is on the line."""
    table = numbers(30)
    table["total"] = table["a"] + table["b"] + table["c"]
    table.loc[7, "total"] += 1
    first = Rules.suggest(table)[0]
    assert first.text == "total == a + b + c"
    assert (first.kind, first.records, first.breaks) == ("sum", 30, 1)
    assert first.holds == 1 - 1 / 30
    assert first.columns == ("total", "a", "b", "c")
    assert first.why == "total is the total of a, b and c"
    assert str(first) == "total == a + b + c  # holds in 96.7 %, 1 of 30 break it"


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda t: t["a"] - t["b"], "x == a - b"),
        (lambda t: 12 * t["a"], "x == 12 * a"),
        (lambda t: 2.5 * t["a"], "x == 2.5 * a"),
        (lambda t: t["a"] * 2 / 3, None),  # has no end in decimals
        (lambda t: t["a"] + 7, "x == a + 7"),
        (lambda t: 20_000 - t["a"], "a == 20000 - x"),
        (lambda t: t["a"], "a == x"),
        (lambda t: t["a"] / 10 + t["b"] / 100, None),  # coefficients of more than two columns
        (lambda t: t["a"] * t["b"], "x == a * b"),
        (lambda t: (t["a"] / t["b"]).round(3), "if b != 0: x == a / b ± 0.0005"),
        (lambda t: (0.2 * t["a"]).round(), "x == 0.2 * a ± 0.5"),
        (lambda t: np.floor(0.0765 * t["a"]), "x == 0.0765 * a ± 1"),
    ],
)
def test_equalities_by_hand(make, rule):
    table = numbers()
    table["x"] = make(table)
    found = texts(Rules.suggest(table), "sum", "difference", "ratio", "product", "equality")
    assert found == ([] if rule is None else [rule])


def test_rounding_is_stated():
    generator = np.random.default_rng(0)
    exact = generator.uniform(0, 1e6, (500, 3))
    table = pd.DataFrame(np.rint(exact), columns=list("abc"))
    table["total"] = np.where(generator.random(500) < 0.05, 1, 0) + table.sum(axis=1)
    assert Rules.suggest(table)[0].text == "total == a + b + c ± 1"


@pytest.mark.parametrize("parts", [2, 4, 6])
def test_sums_of_rounded_parts_are_found(parts):
    """Total and parts are rounded each alone: fewer than half of the records add up exactly."""
    generator = np.random.default_rng(parts)
    exact = generator.lognormal(8, 1, (800, parts))
    table = pd.DataFrame(np.rint(exact), columns=[f"p{at}" for at in range(parts)])
    total = np.rint(exact.sum(axis=1))
    wrong = generator.random(800) < 0.03
    table["total"] = total + np.where(wrong, 500, 0)
    table["other"] = generator.integers(0, 5000, 800)
    assert ((table.filter(like="p").sum(axis=1) == table["total"]).mean()) < 0.75
    (found,) = Rules.suggest(table).of_kind("sum")
    assert set(found.columns) == {"total", *table.filter(like="p").columns}
    assert found.holds >= 0.95
    assert 1 <= found.rule.tolerance <= (parts + 1) / 2


def test_decimals_are_added_as_whole_numbers():
    """0.1 + 0.2 is 0.30000000000000004, and the same as 0.3."""
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"a": generator.integers(1, 999, 60) / 10})
    table["b"] = generator.integers(1, 999, 60) / 100
    table["c"] = table["a"] + table["b"]
    assert Rules.suggest(table)[0].text == "c == a + b"
    assert as_figure("c", table["c"].to_numpy(), np.ones(60, dtype=bool)).decimals == 2


def test_a_part_that_is_nearly_always_0_belongs_to_the_sum():
    table = numbers(2000)
    table["rare"] = np.where(np.arange(2000) % 100 == 3, 55, 0)
    table["total"] = table[["a", "b", "rare"]].sum(axis=1)
    assert texts(Rules.suggest(table), "sum") == ["total == a + b + rare"]


def test_records_that_are_all_0_tell_nothing():
    zeros = np.zeros(2000, dtype=int)  # all but 30 records: a == b + c, a == b, ... in 98 %
    table = pd.DataFrame({name: zeros.copy() for name in "abc"})
    table.loc[:9, "a"] = np.arange(10)
    table.loc[10:19, "b"] = np.arange(10)
    table.loc[20:29, "c"] = np.arange(10)
    assert not texts(Rules.suggest(table), "sum", "difference", "equality", "ordering")


def test_only_what_does_not_follow_is_suggested():
    table = numbers()
    table["d"] = table["a"] + table["b"]
    table["e"] = table["d"] + table["c"]
    found = texts(Rules.suggest(table), "sum", "difference")
    assert sorted(found) == ["d == a + b", "e == c + d"]
    assert not texts(Rules.suggest(table), "ordering")  # parts of sums


def test_orderings_by_hand():
    table = numbers()
    generator = np.random.default_rng(1)
    table["planted"] = generator.integers(10, 1000, 200)
    table["harvested"] = np.floor(table["planted"] * generator.random(200))
    table["sold"] = np.floor(table["harvested"] * generator.random(200))
    table["huge"] = 10**7 + generator.integers(0, 1000, 200)  # larger in any order of records
    found = texts(Rules.suggest(table), "ordering")
    assert sorted(found) == ["harvested <= planted", "sold <= harvested"]
    dates = pd.DataFrame({"start": pd.Timestamp("2024-01-01") + pd.to_timedelta(table["a"], "h")})
    dates["end"] = dates["start"] + pd.to_timedelta(table["b"], "h")
    assert texts(Rules.suggest(dates), "ordering") == ["start <= end"]


def test_units_of_factors_are_not_ordered():
    firms = make_business_survey(2000, random_state=5)
    names = {name for one in Rules.suggest(firms).of_kind("ordering") for name in one.columns}
    assert not names & {"hours", "hourly_rate", "employees"}


def test_bounds_and_values_by_hand():
    generator = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "share": np.round(generator.random(300), 3),
            "score": np.minimum(generator.normal(80, 20, 300).round(), 100),
            "change": generator.integers(-50, 50, 300),
            "count": generator.integers(0, 50, 300),
            "length": generator.integers(1, 5000, 300),
            "year": generator.integers(1900, 2000, 300),
            "town": generator.choice(["Reus", "Valls"], 300),
        }
    )
    table.loc[5, "town"] = "reus"  # a slip
    table.loc[7, "town"] = "Olot"  # a small town
    found = Rules.suggest(table)
    assert set(texts(found, "bound")) == {
        "0 <= share <= 1", "0 <= score <= 100", "count >= 0", "length > 0", "year >= 0",
    }  # fmt: skip
    assert texts(found, "values") == ['town in {"Olot", "Reus", "Valls"}']
    assert [one.chance for one in found.of_kind("bound", "values")] == [None] * 6
    assert found.of_kind("values")[0].breaks == 1


def test_implications_by_hand():
    generator = np.random.default_rng(0)
    age = generator.integers(0, 90, 600)
    sex = generator.choice(["f", "m"], 600)
    table = pd.DataFrame({"age": age, "sex": sex})
    table["pregnant"] = np.where((sex == "f") & (generator.random(600) < 0.3), "yes", "no")
    table["income"] = np.where(age < 16, 0, generator.integers(1, 5000, 600))
    found = texts(Rules.suggest(table), "implication")
    assert 'if sex == "m": pregnant == "no"' in found or 'if pregnant == "yes": sex == "f"' in found
    assert "if age < 16: income == 0" in found
    assert "if income == 0: age < 16" in found
    assert len(found) == 3


def test_a_code_list_is_one_rule():
    generator = np.random.default_rng(0)
    town = generator.choice(["Reus", "Valls", "Lleida", "Olot"], 400)
    province = pd.Series(town).map({"Lleida": "L", "Olot": "G"}).fillna("T")
    found = texts(Rules.suggest(pd.DataFrame({"town": town, "province": province})), "implication")
    rows = '("Lleida", "L"), ("Olot", "G"), ("Reus", "T"), ("Valls", "T")'
    assert found == [f"(town, province) in {{{rows}}}"]


def test_names_and_categories_may_hold_anything():
    """Signs of the language inside of names and texts are no signs."""
    generator = np.random.default_rng(0)
    odd = ['a: "b" == 1', "if x != {2}: y", "# ± 3, by home"]
    kind = generator.integers(0, 3, 400)
    table = pd.DataFrame({"a == 0": np.array(odd)[kind], 'if "x": y': np.array(list("uvw"))[kind]})
    table["not in {1}: "] = np.where(kind == 0, 0, generator.integers(1, 9000, 400))
    table["by home"] = np.where(kind == 1, 0, generator.integers(1, 9000, 400))
    found = Rules.suggest(table)
    assert Rules.parse(found.to_text()) == found.rules()
    assert found.rules().confront(table).all_hold
    assert len(found.of_kind("implication")) >= 3


def test_constant_in_units_by_hand():
    generator = np.random.default_rng(0)
    home = np.repeat(np.arange(100), 3)
    table = pd.DataFrame({"home": home, "rooms": generator.integers(1, 9, 100)[home]})
    table["town"] = np.array(["Reus", "Valls"])[generator.integers(0, 2, 100)][home]
    table["age"] = generator.integers(0, 90, 300)
    schema = Schema.guess(table).with_unit("home")
    found = Rules.suggest(table, schema=schema)
    rules = found.of_kind("constant in unit").rules()
    assert {rule.columns[0] for rule in rules} == {"rooms", "town"}
    assert rules.confront(table, schema=schema).all_hold
    table.loc[0, ["rooms", "town"]] = [table["rooms"][1] + 1, "Olot"]
    assert [len(rows) for rows in rules.confront(table, schema=schema).rows] == [3, 3]


# Invariants.

MADE = [
    lambda: make_business_survey(400, inconsistent=0.04, missing=0.03, random_state=9),
    lambda: make_households(500, inconsistent=0.02, random_state=9),
    lambda: random_table(4)[0],
    lambda: planted_table(3, 0.03)[0],
]


@pytest.mark.parametrize("make", MADE)
def test_counts_are_those_of_confront(make):
    """Every suggestion reads back as the same rule, and holds as often as it says."""
    table = make()
    schema = Schema.guess(table)
    found = Rules.suggest(table, schema=schema)
    assert len(found) > 3
    again = Rules.parse(found.to_text())
    assert [rule.text for rule in again] == texts(found)
    assert again == found.rules()
    summary = again.confront(table, schema=schema).summary()
    assert summary["breaks"].tolist() == [one.breaks for one in found]
    for one, rule in zip(found, again):
        if rule.condition is None:
            assert (
                one.records == int(summary.set_index("rule").loc[rule.name, "holds"]) + one.breaks
            )
        assert one.holds >= (0.95 if one.chance is not None else 0.99)
        assert one.chance is None or one.chance <= 0.01


@pytest.mark.parametrize("make", MADE)
def test_the_order_of_records_and_columns_does_not_matter(make):
    table = make()
    schema = Schema.guess(table)
    usual = Rules.suggest(table, schema=schema)
    mixed = table.sample(frac=1, random_state=3).reset_index(drop=True)
    assert Rules.suggest(mixed, schema=schema).to_dict() == usual.to_dict()
    turned = Rules.suggest(table[table.columns[::-1]], schema=schema)
    kinds = ("ordering", "bound", "values")
    assert set(texts(turned, *kinds)) == set(texts(usual, *kinds))
    for kinds in (("sum", "difference"), ("product",)):
        assert {frozenset(one.columns) for one in usual.of_kind(*kinds)} == {
            frozenset(one.columns) for one in turned.of_kind(*kinds)
        }


def test_scaling_by_ten_keeps_sums():
    firms = make_business_survey(500, inconsistent=0.03, random_state=2)
    money = ["wages", "materials", "other_costs", "costs", "turnover", "profit"]
    usual = Rules.suggest(firms).of_kind("sum", "difference")
    for factor in (10, 0.1):
        scaled = firms.assign(**{name: firms[name] * factor for name in money})
        assert Rules.suggest(scaled).of_kind("sum", "difference").to_dict() == usual.to_dict()


def test_every_kind_of_table_gives_the_same():
    firms = make_business_survey(300, random_state=2)
    schema = Schema.guess(firms)
    usual = Rules.suggest(firms, schema=schema).to_dict()
    assert Rules.suggest(pl.from_pandas(firms), schema=schema).to_dict() == usual
    array = numbers(60).assign(d=lambda t: t["a"] + t["b"]).to_numpy()
    assert Rules.suggest(array)[0].text == "col(3) == col(0) + col(1)"


# Independent ways to the same answer.


@pytest.mark.parametrize("seed", range(4))
def test_planted_rules_are_found(seed):
    table, rules = planted_table(seed, 0.03)
    found = Rules.suggest(table)
    missed = [rule for rule in rules if not follows(rule, found.rules())]
    assert not missed
    total = next(one for one in found if one.columns[0] == "total")
    parts = [name for name in table.columns if name.startswith("p") and name[1:].isdigit()]
    assert total.breaks == int((table["total"] != table[parts].sum(axis=1)).sum())


@pytest.mark.parametrize("seed", [40, 41, *(pytest.param(s, marks=HEAVY) for s in range(42, 46))])
@pytest.mark.parametrize("dirt", [0.0, 0.05])
def test_the_business_survey(seed, dirt):
    """At least 10 of the 14 rules that it was made by; no seed of these chose anything."""
    firms, rules = make_business_survey(
        1000, inconsistent=dirt, missing=0.01, random_state=seed, return_rules=True
    )
    found = Rules.suggest(firms)
    assert sum(follows(rule, found.rules()) for rule in rules) >= 12
    assert texts(found)[:3] == [
        "costs == wages + materials + other_costs", "profit == turnover - costs",
        "wages == hours * hourly_rate",
    ]  # fmt: skip


def test_the_households():
    persons, rules = make_households(4000, random_state=3, return_rules=True)
    found = Rules.suggest(persons).rules()
    missed = [rule.partition("#")[0].strip() for rule in rules if not follows(rule, found)]
    assert len(missed) <= 4, missed


@pytest.mark.parametrize("seed", range(15))
def test_nothing_is_found_in_independent_columns(seed):
    table, schema = random_table(1000 + seed)
    assert not false_ones(Rules.suggest(table, schema=schema))


@pytest.mark.slow
def test_false_ones_stay_below_the_stated_rate():
    """200 tables, of which chance may make 2 false suggestions at 0.01 a table."""
    count = 0
    for seed in range(200):
        table, schema = random_table(seed)
        count += len(false_ones(Rules.suggest(table, schema=schema, false_rate=0.01)))
    assert count <= 2


def test_the_bound_of_chance_is_one():
    """Independent: the exact tail of SciPy's binomial."""
    from scipy.stats import binom

    for held, records, p in ((9, 10, 0.5), (50, 50, 0.1), (30, 100, 0.2), (5, 10, 0.6)):
        assert np.exp(log_chance(held, records, p)) >= 0.999 * binom.sf(held - 1, records, p)


def test_vectors_are_orthogonal():
    generator = np.random.default_rng(0)
    rows = generator.integers(0, PRIME, (5, 9))
    vectors = list(null_vectors(rows))
    assert len(vectors) == 4
    for vector in vectors:
        assert all(int(np.dot(row.astype(object), vector)) % PRIME == 0 for row in rows)
    for p, q in ((3, 7), (-12, 1), (9999, 10_000)):
        found = small_fraction(p * pow(q, -1, PRIME))
        assert (found.numerator, found.denominator) == (p, q)
    assert small_fraction(123_456_789) is None


def test_decimals_are_written_exactly():
    assert [decimal_text(*given) for given in ((5, 1), (-5, 3), (1200, 2), (3, -2))] == [
        "0.5", "-0.005", "12", "300",
    ]  # fmt: skip


# The public tables.


def public(load):
    try:
        return load()
    except DataNotFoundError:
        pytest.skip("needs the public tables in the folder that TESSELLA_DATA names")


def test_census():
    found = Rules.suggest(public(load_census))
    assert texts(found)[:3] == [
        "PTOTVAL == POTHVAL + PEARNVAL", "TAXINC <= AGI", "FEDTAX <= TAXINC",
    ]  # fmt: skip
    assert [one.breaks for one in found[:3]] == [0, 0, 0]
    names = load_census().columns
    assert texts(found)[3 : 3 + len(names)] == sorted(f"{name} > 0" for name in names)
    assert all(one.breaks > 0 for one in found[3 + len(names) :])  # exceptions come last


def test_eia():
    found = Rules.suggest(public(load_eia))
    for one, what, share in zip(found, ("REVENUE", "SALES"), (0.9956, 0.9954)):
        other = "OTHREVENUE" if what == "REVENUE" else "OTHRSALES"
        assert one.text == f"TOT{what} == RES{what} + COM{what} + IND{what} + {other} ± 1"
        assert round(one.holds, 4) == share


# Tables that are hardly tables.


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [1], "b": [2]}),
        pd.DataFrame({"a": [1, 2], "b": [2, 4], "c": [3, 6]}),
        pd.DataFrame({"a": [5] * 50, "b": [7] * 50}),
        pd.DataFrame({"a": [np.nan] * 50, "b": range(50)}),
        pd.DataFrame({"a": [f"text {i}" for i in range(50)]}),
        pd.DataFrame({"a": [None] * 20, "b": ["x"] * 20}),
        pd.DataFrame({"a": [2**53 - i for i in range(40)], "b": [2**52 - i for i in range(40)]}),
        pd.DataFrame({"a": [2**60 + i for i in range(40)], "b": range(40)}),
        pd.DataFrame({"a": [1e300 * i for i in range(1, 41)], "b": range(40)}),
        pd.DataFrame({"if": [True, False] * 20, "a b": [1, 2] * 20, "`": [0.5, 1.5] * 20}),
        pd.DataFrame({0: range(40), ("x", 1): range(40)}),
    ],
)
def test_nothing_goes_wrong(table):
    try:
        found = Rules.suggest(table)
    except BadTableError:
        return
    assert isinstance(found, Suggestions)
    assert Rules.parse(found.to_text()) == found.rules()


def test_an_empty_table_is_refused():
    with pytest.raises(BadTableError, match="empty"):
        Rules.suggest(pd.DataFrame({"a": []}))


def test_large_numbers_are_added_exactly():
    """A sum that is off by 1 in 2**51 is off."""
    generator = np.random.default_rng(0)
    table = pd.DataFrame({name: generator.integers(2**50, 2**51, 100) for name in "ab"})
    table["c"] = table["a"] - table["b"] // 2
    table["b"] //= 2
    schema = Schema({name: {"kind": "integer"} for name in "abc"})
    assert Rules.suggest(table, schema=schema)[0].text == "a == b + c"
    table["c"] += 1
    assert Rules.suggest(table, schema=schema)[0].text == "a == b + c - 1"


def test_missing_values_are_not_counted():
    table = numbers(300).astype(float)
    table["total"] = table["a"] + table["b"] + table["c"]
    generator = np.random.default_rng(5)
    for name in table.columns:
        table.loc[generator.random(300) < 0.3, name] = np.nan
    first = Rules.suggest(table)[0]
    assert first.text == "total == a + b + c"
    assert first.records == len(table.dropna())


def test_codes_for_missing_are_the_schemas():
    table = numbers(300)
    table["total"] = table["a"] + table["b"]
    table.loc[:99, "b"] = -9
    schema = Schema.guess(table).override(b={"missing": [-9]})
    first = Rules.suggest(table, schema=schema)[0]
    assert (first.text, first.records, first.breaks) == ("total == a + b", 200, 0)


# How it is used.


def test_known_rules_are_not_suggested_again():
    firms, rules = make_business_survey(400, random_state=4, return_rules=True)
    every = Rules.suggest(firms)
    rest = Rules.suggest(firms, known=Rules.parse(rules))
    assert set(texts(rest)) < set(texts(every))
    assert "costs == wages + materials + other_costs" not in texts(rest)
    assert "employees >= 0" not in texts(rest)
    assert not Rules.suggest(firms, known=every.rules()).of_kind("sum", "product", "implication")


def test_suggestions_are_a_sequence_that_prints():
    found = Rules.suggest(make_business_survey(300, random_state=1))
    assert isinstance(found[0], Suggestion)
    assert isinstance(found[1:3], Suggestions)
    assert len(found[1:3].rules()) == 2
    assert str(found).splitlines()[0] == f"300 records, {len(found)} suggested rules:"
    assert str(found[:0]) == "300 records, 0 suggested rules."
    given = json.loads(json.dumps(found.to_dict()))
    assert set(given) == {"records", "false_rate", "suggestions"}
    assert set(given["suggestions"][0]) == {
        "rule", "kind", "columns", "holds", "records", "breaks", "chance", "why",
    }  # fmt: skip


def test_a_stricter_demand_finds_less():
    firms = make_business_survey(500, inconsistent=0.1, random_state=1)
    assert len(Rules.suggest(firms, holds=1).of_kind("sum", "difference")) == 0
    assert len(Rules.suggest(firms, holds=0.9).of_kind("sum", "difference")) == 2
    for wrong in (0.2, 1.5, "much"):
        with pytest.raises(BadOptionError, match="holds"):
            Rules.suggest(firms, holds=wrong)


def test_progress_is_reported():
    told = []
    with reported_to(lambda done, total, name: told.append((done, total, name))):
        Rules.suggest(make_business_survey(100, random_state=1))
    assert [done for done, _, _ in told] == list(range(6))
    assert {total for _, total, _ in told} == {6}


def test_a_large_table_is_sampled_and_counted_whole():
    firms = make_business_survey(30_000, inconsistent=0.02, random_state=1)
    found = Rules.suggest(firms)
    assert found[0].text == "costs == wages + materials + other_costs"
    assert found[0].records == 30_000
    parts = firms[["wages", "materials", "other_costs"]].sum(axis=1)
    assert found[0].breaks == int((firms["costs"] != parts).sum())
    same = Rules.suggest(firms, random_state=0)
    assert same.to_dict() == found.to_dict()
