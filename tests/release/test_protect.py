"""protect: every rule of the taxonomy masked and audited, impossible pairs refused."""

from __future__ import annotations

import doctest
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessella import Microaggregation, Rules, Schema, Study, make_plan, protect
from tessella.datasets import make_business_survey, make_households
from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    GroupSizeError,
    MissingValuesError,
    PlanError,
    RefusedError,
    RuleSyntaxError,
    RuleTableError,
    TessellaError,
)
from tests.masking.simple import counts

N = 150


def people(n=N, seed=0):
    random = np.random.default_rng(seed)
    sex = random.choice(["male", "female"], n)
    age = random.integers(5, 90, n)
    income = np.where(age < 17, 0, random.lognormal(9.5, 0.6, n)).round(2)
    hours = np.where(random.random(n) < 0.2, 0.0, random.uniform(1, 40, n))
    rate = random.lognormal(3, 0.3, n)
    planted = random.lognormal(3, 1, n)
    price, vat = random.lognormal(3, 0.5, n), random.choice([0.07, 0.16, 0.21], n)
    tax = (income * 0.3).round(2)
    return pd.DataFrame(
        {
            "sex": sex,
            "pregnancies": np.where(sex == "male", 0, random.poisson(1.0, n)),
            "age": age,
            "income": income,
            "tax": tax,
            "gross": income + tax,
            "hours": hours,
            "rate": rate,
            "wage_sum": hours * rate,
            "planted": planted,
            "harvested": planted * random.random(n),
            "price": price,
            "vat": vat,
            "retail": price * (1 + vat),
            "region": random.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
            "grade": pd.Categorical(
                random.choice(["low", "middle", "high"], n), ["low", "middle", "high"], ordered=True
            ),
        }
    )


def keep(table, rules, *, k=4, **wishes):
    """Protect, and look again: k by comparing all with all, rules by confronting."""
    wishes = {"random_state": 0, "grouping": "mdav", **wishes}
    release = protect(table, k=k, rules=rules, **wishes)
    fixed = Rules(rules).fix(table)
    assert fixed.confront(release.table).all_hold
    codes = [pd.factorize(release.table[c], use_na_sentinel=False)[0] for c in release.table]
    assert counts(np.column_stack(codes).astype(float)).min() >= k
    assert (release.table.dtypes == table.dtypes).all()
    assert release.audit.passed
    return release


TAXONOMY = {
    "EC-PV": ["0 <= age <= 125"],
    "EC-PV, a set": ["vat in {0.07, 0.16, 0.21}"],
    "EC-PV, pairs": ['(sex, region) in {("male", "north"), ("male", "south"), ("male", "west"), '
                     '("female", "north"), ("female", "south"), ("female", "west")}'],
    "EC-GV1": ['if sex == "male": pregnancies == 0'],
    "EC-GV2": ["if age < 17: income < mean(income)"],
    "EC-GV3": ["harvested <= planted"],
    "EC-LC1": ["income + tax == gross"],
    "EC-NLC1": ["price * (1 + vat) == retail"],
    "EC-NLC2": ["wage_sum == hours * rate"],
    "categorical": ['region in {"north", "south", "west"}', 'grade in {"low", "middle", "high"}'],
    "domain": ["observed(age)"],
    "domain, pairs": ["observed(age, sex)"],
}  # fmt: skip
COLUMNS = {
    name: list(dict.fromkeys(c for rule in Rules(rules) for c in rule.columns))
    for name, rules in TAXONOMY.items()
}


@pytest.mark.parametrize("name", TAXONOMY)
def test_each_row_of_the_taxonomy(name):
    keep(people()[[*COLUMNS[name], "tax"] if "tax" not in COLUMNS[name] else COLUMNS[name]],
         TAXONOMY[name])  # fmt: skip


@pytest.mark.parametrize("name", ["EC-PV", "EC-GV3", "EC-LC1", "EC-NLC1", "EC-NLC2", "EC-GV1"])
def test_a_plain_mask_would_break_it_or_a_broken_table_does(name):
    """The check can fail: the table's own values, shuffled, break the rule (intervals apart)."""
    random = np.random.default_rng(0)
    table = people()[COLUMNS[name]].apply(lambda column: random.permutation(column))
    if name != "EC-PV":
        assert not Rules(TAXONOMY[name]).confront(table).all_hold


POSSIBLE = [
    ("EC-PV", "EC-LC1"), ("EC-GV1", "EC-GV2"), ("EC-GV3", "EC-LC1"), ("EC-NLC1", "EC-NLC2"),
    ("EC-LC1", "EC-NLC2"), ("domain", "EC-LC1"), ("EC-GV1", "EC-NLC2"), ("categorical", "EC-LC1"),
    ("EC-PV", "domain"),
]  # fmt: skip


@pytest.mark.parametrize("pair", POSSIBLE)
def test_pairs_of_the_taxonomy(pair):
    rules = [rule for name in pair for rule in TAXONOMY[name]]
    columns = list(dict.fromkeys(c for name in pair for c in COLUMNS[name]))
    keep(people()[columns], rules)


@pytest.mark.parametrize(
    "rules",
    [
        ["income + tax == gross", "observed(income)"],
        ["wage_sum == hours * rate", "wage_sum + tax == gross"],
        ["wage_sum == hours * rate", "observed(rate)"],
        ["price * (1 + vat) == retail", "vat in {0.07, 0.16, 0.21}"],
    ],
)
def test_impossible_pairs_are_explained(rules):
    table = people().drop(columns=["sex", "region", "grade"])
    with pytest.raises(PlanError, match="No operator keeps these rules together"):
        protect(table, k=4, rules=rules, fit="closed")


def test_where_no_operator_is_known_the_nearest_point_is():
    table = people()[["income", "tax", "gross"]]
    keep(table, ["income + tax == gross", "observed(income)"])
    table = people()[["price", "vat", "retail"]]
    keep(table, ["price * (1 + vat) == retail", "vat in {0.07, 0.16, 0.21}"])
    table = people()[["hours", "rate", "wage_sum"]].assign(bonus=lambda t: 5 + t.hours)
    table["paid"] = table.wage_sum + table.bonus
    keep(table, ["wage_sum == hours * rate", "wage_sum + bonus == paid"])


# Zeros, signs, whole numbers


@pytest.mark.parametrize("whole", [False, True])
def test_wages_with_zeros(whole):
    """A fifth of the hours are zero; k holds in every part."""
    table = people(600)[["hours", "rate"]]
    if whole:
        table = table.round().astype(int)
    table["wage_sum"] = table.hours * table.rate
    release = keep(table, ["wage_sum == hours * rate"], k=5)
    assert ((release.table.hours == 0) == (table.hours == 0)).all()
    off = (release.table.wage_sum - release.table.hours * release.table.rate).abs()
    assert (off <= 1e-9 * release.table.wage_sum).all()
    assert (off == 0).all() or not whole


def test_negative_factors():
    random = np.random.default_rng(0)
    a, b = random.normal(size=200) * 5, random.normal(size=200) * 2
    release = keep(pd.DataFrame({"a": a, "b": b, "c": a * b}), ["c == a * b"])
    assert (np.sign(release.table.a) == np.sign(a)).all()


def test_whole_numbers_stay_whole_and_keep_sums():
    random = np.random.default_rng(0)
    parts = random.integers(0, 1000, (400, 5))
    table = pd.DataFrame(parts, columns=list("abcde")).assign(total=parts.sum(axis=1))
    release = keep(table, ["a + b + c + d + e == total", "a >= 0", "b <= 1000"])
    assert (release.table.dtypes == np.int64).all()
    change = (release.table.mean() - table.mean()).abs()
    assert (change < 0.5).all()


def test_strict_bounds_of_whole_numbers():
    table = pd.DataFrame(
        {
            "age": [15, 16, 16, 16, 17, 17, 18, 40] * 4,
            "weight_kg": np.random.default_rng(0).normal(70, 9, 32),
        }
    )
    release = keep(table, ["if age < 17: weight_kg >= 0", "age > 14"], k=3)
    assert (release.table.age > 14).all()


def test_records_may_be_near_by_their_logarithms():
    """Values over three orders of magnitude: small ones come apart by ratio, not by size."""
    random = np.random.default_rng(0)
    table = pd.DataFrame({"a": random.lognormal(0, 2, 60), "b": random.lognormal(0, 2, 60)})
    table["c"] = table.a * table.b
    spread = {}
    for distance in ("original", "representation"):
        release = keep(table, ["c == a * b"], k=3, distance=distance)
        spread[distance] = np.abs(np.log(release.table / table)).to_numpy().mean()
    assert spread["representation"] < 0.8 * spread["original"]


# Tables that break their rules


def test_a_table_that_breaks_its_rules_gives_a_release_that_keeps_them():
    table = people()[["income", "tax", "gross", "harvested", "planted"]]
    random = np.random.default_rng(1)
    table["gross"] += random.normal(0, 50, N)
    table.loc[:20, "harvested"] *= 100
    rules = ["income + tax == gross", "harvested <= planted"]
    release = keep(table, rules)
    assert release.inconsistent == N
    with pytest.raises(RefusedError, match="edit='refuse'"):
        protect(table, k=4, rules=rules, edit="refuse")


def test_products_that_cannot_hold_are_edited_first():
    table = people()[["hours", "rate", "wage_sum"]]
    table.loc[table.hours == 0, "wage_sum"] = 99.0
    release = keep(table, ["wage_sum == hours * rate"])
    assert release.edited == (table.hours == 0).sum() == release.inconsistent


def test_conditions_that_records_break():
    table = people()[["sex", "pregnancies", "tax"]]
    table.loc[table.sex == "male", "pregnancies"] = 2
    release = keep(table, ['if sex == "male": pregnancies == 0'])
    assert release.inconsistent == (table.sex == "male").sum()


def test_census(census):
    from tessella.datasets import load_census

    table = load_census().head(300)
    rules = [
        "PTOTVAL == PEARNVAL + POTHVAL", "FEDTAX <= TAXINC", "TAXINC <= AGI",
        *(f"{name} > 0" for name in table.columns),
    ]  # fmt: skip
    quick = {"grouping": "search", "options": {"effort": "quick"}}
    for k in (3, 10):
        release = keep(table, rules, k=k, **quick)
        plain = Microaggregation(k, random_state=0, **quick).fit(table)
        assert release.loss <= 1.01 * plain.loss_
        assert (release.table.dtypes == np.int64).all()


def test_eia(eia):
    from tessella.datasets import load_eia

    table = load_eia()
    rules = [
        "TOTREVENUE == RESREVENUE + COMREVENUE + INDREVENUE + OTHREVENUE",
        "TOTSALES == RESSALES + COMSALES + INDSALES + OTHRSALES",
    ]
    schema = Schema.guess(table).override({n: {"role": "quasi-identifier"} for n in table.columns})
    release = protect(table, k=5, rules=rules, schema=schema, grouping="mdav", random_state=0)
    assert release.inconsistent > 400
    assert Rules(rules).confront(release.table).all_hold
    plain = Microaggregation(5, grouping="mdav").fit(table)
    assert release.loss <= 1.02 * plain.loss_


def test_the_business_survey_with_all_its_rules():
    table, rules = make_business_survey(500, random_state=1, return_rules=True)
    table = table.drop(columns="firm")
    with pytest.raises(PlanError, match="'wages' is in a linear rule"):
        protect(table, k=4, rules=rules, fit="closed")
    keep(table, rules)
    broken = make_business_survey(500, random_state=1, inconsistent=0.1).drop(columns="firm")
    assert keep(broken, rules).inconsistent == 50


def test_households_with_all_their_rules():
    table, rules = make_households(300, random_state=1, return_rules=True)
    table = table.drop(columns=["household", "person"])
    keep(table, rules)


# The rest of the promise


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_every_kind_of_table_gets_the_same_release(frame):
    data = people()[["income", "tax", "gross", "sex", "age"]].to_dict("list")
    rules = ["income + tax == gross", 'if sex == "male": age >= 0']
    release = protect(frame(data), k=4, rules=rules, random_state=3, grouping="mdav")
    other = protect(pd.DataFrame(data), k=4, rules=rules, random_state=3, grouping="mdav")
    assert type(release.table) is type(frame(data))
    for name in data:
        assert np.asarray(release.table[name]).tolist() == other.table[name].tolist()


def test_arrays():
    X = np.random.default_rng(0).normal(size=(60, 3))
    release = protect(X, k=4, rules=["col(0) <= col(1) + 100"], random_state=0)
    assert release.table.shape == (60, 3)


def test_fuzzy_groups_keep_rules_and_k():
    table = people()[["income", "tax", "gross", "age"]]
    first = keep(table, ["income + tax == gross"], grouping="fuzzy", options={"m2": 1.5})
    second = keep(table, ["income + tax == gross"], grouping="fuzzy", options={"m2": 1.5},
                  random_state=1)  # fmt: skip
    assert (first.table != second.table).any(axis=None)


def test_missing_values():
    table = people()[["income", "tax", "gross"]]
    table.loc[:30, "tax"] = np.nan
    release = keep(table, ["income + tax == gross"])
    assert (release.table.tax.isna() == table.tax.isna()).all()
    with pytest.raises(MissingValuesError):
        protect(table, k=4, rules=["income + tax == gross"], on_missing="error")


def test_weights_are_used_and_released():
    table = people()[["income", "tax", "gross"]].assign(w=np.linspace(1, 9, N))
    release = protect(table, k=4, rules=["income + tax == gross"], weights="w", random_state=0)
    assert (release.table.w == table.w).all()
    before = np.average(table.income, weights=table.w)
    assert np.average(release.table.income, weights=table.w) == pytest.approx(before)


def test_parts_too_small():
    table = people()[["sex", "pregnancies", "tax"]]
    table.loc[:1, "sex"] = "other"
    rules = ['if sex == "other": pregnancies == 7']
    table.loc[:1, "pregnancies"] = 7
    table.loc[2:, "pregnancies"] = 1
    with pytest.raises(GroupSizeError, match='small="merge"'):
        protect(table, k=4, rules=rules, small="refuse")
    release = keep(table, rules)
    assert release.merged == 2
    assert "2 records joined another part" in str(release)


# Donors: a group whose point breaks a rule takes the values of a record that keeps it


def test_a_group_that_breaks_a_rule_takes_the_nearest_record_that_keeps_it():
    table = pd.DataFrame({"a": [1, 1, 1, 50, 50, 50], "b": [0, 9, 4, 3, 3, 3]})
    table["free"] = [0, 0, 3, 4, 4, 4]
    # The last three are nearer to b <= 1 and to b >= 5 than to a < 4, and no b is both.
    rules = ["a < 4 or b <= 1", "a < 4 or b >= 5"]
    release = keep(table, rules, k=3)
    assert release.table["a"].tolist() == [1] * 6
    assert release.table["b"].tolist() == [4] * 6  # of the third record
    assert release.table["free"].tolist() == [1] * 3 + [4] * 3  # no rule ties it to the others
    assert release.donated == 3
    assert "3 records share the values of a record that keeps all rules" in str(release)
    with pytest.raises(RefusedError, match=r'R1, R2.*fit="project"'):
        protect(table, k=3, rules=rules, fit="closed", random_state=0)


def test_a_donor_is_of_the_stratum_that_a_rule_names():
    table = pd.DataFrame({"a": [4, 5, 6, 1, 1, 2, 7, 8, 9], "s": list("xxxxxxyyy")})
    rules = ['if s == "x": a ** 2 >= 16', 'if s == "y": a ** 2 >= 49']
    release = protect(table, k=3, rules=rules, strata="s", grouping="mdav", random_state=0)
    assert (release.table["a"][:6] >= 4).all()
    assert (release.table["a"][:6] < 7).all()
    assert (release.table["a"][6:] >= 7).all()


def test_what_no_record_keeps_is_refused_with_rules_and_records():
    table = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [5.0, 6, 7, 8]})
    with pytest.raises(RefusedError) as told:
        protect(table, k=2, rules=["named: a * b + a >= 1000"], random_state=0)
    for words in ("named", "4 records break named: rows 0, 1, 2, 3", "No record keeps them"):
        assert words in str(told.value)


@pytest.mark.parametrize("dtype", ["float32", "float32[pyarrow]", "decimal"])
def test_dtypes_of_few_digits_keep_sums_and_products_by_their_points(dtype):
    import pyarrow as pa

    random = np.random.default_rng(0)
    numbers = random.integers(1, 4000, (40, 3)) / 8
    table = pd.DataFrame(numbers, columns=list("abc"))
    kind = pd.ArrowDtype(pa.decimal128(12, 3)) if dtype == "decimal" else dtype
    table = table.astype(kind)
    table["sum"] = numbers[:, 0] + numbers[:, 1]
    table["product"] = numbers[:, 2] * (np.arange(40) % 9)
    table["count"] = np.arange(40) % 9
    rules = ["a + b == sum", "product == c * count"]
    assert keep(table, rules, k=3).donated == 0


def test_strata():
    table = people()[["income", "tax", "gross", "region"]]
    release = protect(table, k=4, rules=["income + tax == gross"], strata="region", random_state=0)
    assert (release.table.region == table.region).all()
    joint = release.table.groupby(list(release.table.columns)).size()
    assert joint.min() >= 4


def test_blocks():
    table = people()[["income", "tax", "gross", "hours", "rate", "wage_sum"]]
    rules = ["income + tax == gross", "wage_sum == hours * rate"]
    blocks = [["income", "tax", "gross"], ["hours", "rate", "wage_sum"]]
    release = protect(table, k=4, rules=rules, blocks=blocks, random_state=0, grouping="mdav")
    for block in blocks:
        assert release.table.groupby(block).size().min() >= 4
    assert Rules(rules).confront(release.table).all_hold


def test_a_plan_may_be_made_first():
    table = people()[["income", "tax", "gross"]]
    release = protect(table, k=4, rules=["income + tax == gross"], random_state=0)
    again = protect(table, k=4, plan=release.plan, random_state=0)
    assert (again.table == release.table).all(axis=None)
    with pytest.raises(GroupSizeError):
        protect(table, k=5, plan=release.plan)


# Anything goes in; a release that keeps its promises comes out, or a refusal


TEMPLATES = [
    "{x} + {y} == {z}", "{x} <= {y}", "{x} < {y} + 3", "0 <= {x} <= 10", "{x} * {y} == {z}",
    "{x} * (1 + {y}) == {z}", "observed({x})", "{x} in {{0, 1, 2}}", "if {x} < 2: {y} >= 1",
    'if s == "u": {x} == 0', 's in {{"u", "v"}}', "{x} != 3", "{x} + {y} <= {z} ± 1",
    'if {x} > {y}: s == "v"', "{x} * {y} <= {z}", "{x} == 2 * {y}", 'if s != "u": {x} <= {y}',
]  # fmt: skip


def keep_or_refuse(data):
    """Protect a random table under random rules: what is released keeps them all."""
    seed = data.draw(st.integers(0, 10**6))
    random = np.random.default_rng(seed)
    n, k = int(random.integers(6, 40)), int(random.integers(2, 4))
    whole = data.draw(st.booleans())
    values = random.integers(-1, 6, (n, 4)).astype(float)
    values = values if whole else values + random.normal(size=(n, 4)).round(2)
    table = pd.DataFrame(values, columns=list("abcd")).astype(int if whole else float)
    table["s"] = random.choice(["u", "v"], n)
    if data.draw(st.booleans()):
        table["c"] = table.a + table.b
    lines = []
    for _ in range(data.draw(st.integers(1, 4))):
        x, y, z = random.permutation(list("abcd"))[:3]
        lines.append(data.draw(st.sampled_from(TEMPLATES)).format(x=x, y=y, z=z))
    wishes = {
        "fit": data.draw(st.sampled_from(["closed", "project"])),
        "small": data.draw(st.sampled_from(["refuse", "merge"])),
    }
    try:
        release = protect(table, k=k, rules=lines, grouping="mdav", random_state=0, **wishes)
    except TessellaError:
        return
    assert Rules(lines).fix(table).confront(release.table).all_hold
    codes = [pd.factorize(release.table[c])[0] for c in release.table]
    assert counts(np.column_stack(codes).astype(float)).min() >= k
    assert (release.table.dtypes == table.dtypes).all()


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_random_rules_and_tables(data):
    keep_or_refuse(data)


@pytest.mark.slow
@pytest.mark.heavy
@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_many_random_rules_and_tables(data):
    keep_or_refuse(data)


# Bad input


@pytest.mark.parametrize(
    ("rules", "error", "match"),
    [
        (["incme >= 0"], RuleTableError, "Did you mean 'income'"),
        (["sex > 3"], RuleTableError, "sex"),
        (["income / hours <= 3"], RuleTableError, "divides by zero"),
        (["income ==", "3 +", "x = y"], RuleSyntaxError, "3 mistakes"),
        (['(sex, region) in table("nowhere.csv")'], (RuleSyntaxError, TessellaError), "nowhere"),
        (["income >= 0", "income <= -1"], PlanError, "No record can keep"),
        (["income < income"], PlanError, "No record can keep"),
    ],
)
def test_bad_rules(rules, error, match):
    with pytest.raises(error, match=match):
        protect(people(), k=4, rules=rules)


def test_a_rule_that_no_record_satisfies_is_kept_all_the_same():
    release = keep(people()[["income", "tax"]], ["income >= 100000"])
    assert release.inconsistent == N


def test_redundant_rules_are_named_in_the_plan():
    release = keep(people()[["income", "tax"]], ["income >= 0", "income >= -1", "tax <= 1e9"])
    assert "redundant: R2" in release.plan.explain()


def test_identifiers_are_refused():
    with pytest.raises(PlanError, match="must not be released: 'firm'"):
        protect(make_business_survey(100, random_state=0), k=4)


@pytest.mark.parametrize("k", [1, 2.5, N + 1])
def test_senseless_k(k):
    with pytest.raises(GroupSizeError):
        protect(people(), k=k)


# The user's page


def test_the_page_does_what_it_says():
    page = Path(__file__).parents[2] / "docs" / "protect.md"
    ran = doctest.testfile(str(page), module_relative=False)
    assert ran.attempted > 4
    assert ran.failed == 0


def test_categories_that_must_agree_and_codes_that_are_compared():
    random = np.random.default_rng(0)
    home = random.choice(["a", "b", "c"], 200)
    table = pd.DataFrame(
        {
            "home": home,
            "work": home,
            "code": random.integers(1, 6, 200),
            "x": random.normal(size=200),
        }
    )
    schema = Schema.guess(table).override(code={"kind": "nominal"})
    rules = ["home == work", "code <= 5", 'if home == "a": code >= 1', "code in {1, 2, 3, 4, 5}"]
    release = protect(table, k=4, rules=rules, schema=schema, grouping="mdav", random_state=0)
    assert (release.table.home == release.table.work).all()
    assert release.table.code.dtype == table.code.dtype
    assert set(release.table.code) <= {1, 2, 3, 4, 5}


# Bugs once met


def test_a_plan_is_for_its_own_table_and_says_all_there_is_to_say():
    table = people()[["income", "tax"]]
    plan = make_plan(Schema.guess(table), Rules(["income >= 0"]), k=4)
    with pytest.raises(PlanError, match="other columns; they differ in: 'gross'"):
        protect(people()[["income", "tax", "gross"]], k=4, plan=plan)
    with pytest.raises(BadOptionError, match="rules, strata"):
        protect(table, k=4, plan=plan, rules=["tax >= 0"], strata=["tax"])


def test_a_product_that_is_whole_stays_whole():
    """c is whole and a is not: a is what is computed last."""
    table = pd.DataFrame({"a": np.arange(1, 13) + 0.5, "b": 2.0})
    table["c"] = table.a * table.b
    release = keep(table, ["c == a * b"], k=3)
    assert (release.table.c % 1 == 0).all()


def test_whole_columns_that_are_said_to_be_continuous_become_floats():
    table = people()[["age", "pregnancies"]]
    schema = Schema.guess(table).override({name: {"kind": "continuous"} for name in table})
    release = protect(table, k=3, schema=schema, grouping="mdav", random_state=0)
    assert (release.table.dtypes == np.float64).all()


def test_fuzzy_takes_the_options_of_its_masker_and_no_others():
    with pytest.raises(TessellaError, match="effort"):
        protect(people()[["income", "tax"]], k=4, grouping="fuzzy", options={"effort": "quick"})
    with pytest.raises(TessellaError, match="leave out c"):
        protect(people()[["income", "tax"]], k=4, grouping="fuzzy", options={"c": 9})
    with pytest.raises(TessellaError, match="m2"):
        protect(people()[["income", "tax"]], k=4, grouping="fuzzy", options={"m2": "x"})


def test_missing_codes_of_categories_and_of_numbers():
    table = people()[["income"]].assign(job=["x", "y", "refused"] * 50, code=[1.0, 2.0, -9.0] * 50)
    schema = Schema.guess(table).override(
        job={"missing": ["refused"], "kind": "nominal"}, code={"missing": [-9], "kind": "nominal"}
    )
    with pytest.raises(MissingValuesError, match="job"):
        protect(table, k=4, schema=schema, on_missing="error")
    release = protect(table, k=4, schema=schema, grouping="mdav", random_state=0)
    assert ((release.table.job == "refused") == (table.job == "refused")).all()
    assert ((release.table.code == -9) == (table.code == -9)).all()


def test_values_that_are_not_allowed_are_replaced_by_ones_that_are():
    table = people()[["income"]].assign(code=np.where(np.arange(N) < 9, 3, np.arange(N) % 2 + 1))
    release = keep(table, ["code in {1, 2}"])
    assert release.inconsistent == 9
    town = pd.DataFrame({"s": ["a", "b"] * 30, "t": ["p"] * 60, "x": np.arange(60.0)})
    rules = ['(s, t) in {("a", "p")}']
    out = protect(town, k=3, rules=rules, strata="t", grouping="mdav", random_state=0,
                  schema=Schema.guess(town).override(x={"role": "quasi-identifier"}))  # fmt: skip
    assert set(out.table.s) == {"a"}


def test_dates_are_ordered_and_may_be_strata():
    table = people()[["income"]].assign(
        day=pd.date_range("2020-01-01", periods=N), year=pd.to_datetime(["2020", "2021"] * (N // 2))
    )
    release = protect(table, k=4, strata="year", grouping="mdav", random_state=0)
    assert (release.table.year == table.year).all()
    assert release.table.day.dtype == table.day.dtype
    assert set(release.table.day) <= set(table.day)


def test_many_categories_need_no_room_for_each():
    random = np.random.default_rng(0)
    codes = [f"p{i % 3000}" for i in range(6000)]
    table = pd.DataFrame({"a": random.normal(size=6000), "code": codes})
    schema = Schema({"a": {"kind": "continuous"}, "code": {"kind": "nominal"}})
    assert protect(table, k=3, grouping="mdav", random_state=0, schema=schema).audit.passed


def test_a_saved_release_holds_no_observed_value_and_no_group():
    table = people()[["income", "tax"]]
    table["income"] = np.random.default_rng(5).gamma(2, 12345.678, N)
    release = protect(table, k=4, rules=["observed(income)"], grouping="mdav", random_state=0)
    saved = pickle.dumps(release)
    hidden = set(table.income) - set(release.table.income)
    assert hidden
    assert not any(np.float64(value).tobytes() in saved for value in hidden)
    assert pickle.loads(saved).labels == []


def test_a_refusal_tells_no_value_of_a_record():
    with pytest.raises(RefusedError) as told:
        protect(people()[["age", "tax"]], k=4, rules=["age < 20"], edit="refuse")
    assert "R1 (age < 20): " in str(told.value)
    assert "worst" not in str(told.value)


@pytest.mark.parametrize(
    "wishes",
    [
        {"strata": 3.5}, {"weights": ["tax"]}, {"schema": {"a": 1}}, {"plan": {"k": 4}},
        {"blocks": 0}, {"blocks": ["income", "tax"]}, {"options": [1]}, {"random_state": "x"},
        {"scale": {"income": 1.0}},
    ],
)  # fmt: skip
def test_senseless_wishes(wishes):
    with pytest.raises(TessellaError):
        protect(people()[["income", "tax"]], k=4, **wishes)


def test_blocks_and_a_scale_by_name():
    blocks, scale = [["income"], ["tax"]], {"income": 1.0, "tax": 2.0}
    assert protect(people()[["income", "tax"]], k=4, blocks=blocks, scale=scale, random_state=0)
    with pytest.raises(BadTableError, match="positive numbers"):
        protect(people()[["income", "tax"]].assign(w=np.nan), k=4, weights="w")


def test_records_that_join_a_part_of_zeros_keep_its_product() -> None:
    """Bug once met: zeros were pinned to the mean of a part that records had joined."""
    firms, rules = make_business_survey(
        2000, random_state=1, inconsistent=0.02, missing=0.005, weights=True, return_rules=True
    )
    firms = firms.drop(columns="firm")
    schema = Schema.guess(firms).override(weight={"role": "weight"})
    study = Study(firms, schema=schema, rules=rules, random_state=0).do("suppress", k=5)
    study.do("protect", k=5, fit="project", small="merge", grouping="mdav")
    assert study.release().audit.passed


def test_the_loss_of_repair_is_what_broken_records_add():
    table = pd.DataFrame(np.random.default_rng(0).normal(9, 3, (40, 2)), columns=["a", "b"])
    table["total"] = table["a"] + table["b"]
    clean = protect(table, k=4, rules="total == a + b", random_state=0)
    assert clean.repair_loss == 0.0
    table.loc[7, "total"] = 900.0
    dirty = protect(table, k=4, rules="total == a + b", random_state=0)
    masked, spread = dirty.table, table.std(ddof=0)
    squares = (((masked - table) / spread) ** 2).mean(axis=1)
    assert dirty.loss == pytest.approx(100 * squares.mean())
    assert dirty.repair_loss == pytest.approx(100 * (squares.mean() - squares.drop(7).mean()))
    assert dirty.repair_loss > 0.5 * dirty.loss
