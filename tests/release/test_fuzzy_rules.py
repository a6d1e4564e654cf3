"""Fuzzy microaggregation under rules: one method by every door, and every rule holds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import FuzzyMicroaggregation, Rules, Schema, Study, protect
from tessella.datasets import load_census, load_eia, make_business_survey
from tessella.explore import Candidate, explore
from tessella.masking import choose_fuzziness
from tessella.risk import assess, attack
from tests.reference import fuzzy as reference

FUZZY = "fuzzy microaggregation"
CENSUS = ["PTOTVAL == PEARNVAL + POTHVAL", "FEDTAX <= TAXINC", "TAXINC <= AGI", "FEDTAX > 0"]
EIA = [
    "TOTREVENUE == RESREVENUE + COMREVENUE + INDREVENUE + OTHREVENUE",
    "TOTSALES == RESSALES + COMSALES + INDSALES + OTHRSALES",
]
RULES = [
    "net + tax == gross", "tax <= net", "hours * wage == pay", "net >= 0",
    'if sex == "m": births == 0', 'sex in {"m", "f"}',
]  # fmt: skip


def masked_all(table: pd.DataFrame) -> Schema:
    return Schema.guess(table).override({n: {"role": "quasi-identifier"} for n in table})


def people(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Sums, products, a condition and a category; some records break each."""
    random = np.random.default_rng(seed)
    net = random.integers(100, 900, n)
    table = pd.DataFrame({"net": net, "tax": (net * random.uniform(0.1, 0.3, n)).astype(int)})
    table["gross"] = table.net + table.tax
    table["hours"], table["wage"] = random.integers(10, 45, n), random.integers(8, 40, n)
    table["pay"] = table.hours * table.wage
    table["sex"] = random.choice(["m", "f"], n)
    table["births"] = np.where(table.sex == "f", random.integers(0, 4, n), 0)
    table.loc[:5, "gross"] += 50
    table.loc[3:9, "births"] = 2
    table.loc[8:12, "pay"] += 9
    return table


def breaking(table: pd.DataFrame) -> int:
    """By hand, not by the rules' own judge."""
    wrong = (table.net + table.tax != table.gross) | (table.tax > table.net) | (table.net < 0)
    wrong |= table.hours * table.wage != table.pay
    wrong |= ((table.sex == "m") & (table.births != 0)) | ~table.sex.isin(["m", "f"])
    return int(wrong.sum())


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("at_least_k", [True, False])
@pytest.mark.parametrize("wishes", [{"m2": 1.3}, {"lambda1": 50.0, "lambda2": 20.0}])
def test_every_kind_of_rule_holds_where_the_original_breaks_them(seed, at_least_k, wishes):
    table = people(100, seed=seed)
    assert breaking(table) > 10
    study = Study(table, schema=masked_all(table), rules=RULES, random_state=seed)
    release = study.do(FUZZY, k=5, at_least_k=at_least_k, **wishes).release()
    assert breaking(release.table) == 0
    assert (release.table.dtypes == table.dtypes).all()
    sizes = release.table.groupby(list(table)).size()
    if at_least_k:
        assert sizes.min() >= 5
        assert release.audit.k == 5
    else:
        assert release.audit.k is None
        known, pair = study.disclosed, study.views  # categories that were drawn are no evidence
        found = attack(*pair, known, known=known["columns"])
        assert release.probabilistic[0].named == (found.belief > (1 + 1e-9) / 5).sum() > 0
    options = {"at_least_k": at_least_k, **wishes}
    other = protect(
        table, k=5, schema=masked_all(table), rules=RULES, grouping="fuzzy", options=options,
        random_state=seed,
    )  # fmt: skip
    pd.testing.assert_frame_equal(other.table, release.table)


def test_without_rules_every_door_gives_what_the_masker_gives():
    table = people()[["net", "hours", "births"]].astype({"hours": float})
    alone = FuzzyMicroaggregation(4, at_least_k=True, random_state=3).fit_transform(table)
    schema = Schema.guess(table).override(births={"kind": "integer"})  # as the masker takes it
    step = Study(table, schema=schema, random_state=3).do(FUZZY, k=4).release().table
    pd.testing.assert_frame_equal(step, alone)
    pd.testing.assert_frame_equal(
        protect(table, k=4, schema=schema, grouping="fuzzy", random_state=3).table, alone
    )
    strata = people()[["net", "hours", "sex"]]
    drawn = FuzzyMicroaggregation(4, strata="sex", random_state=3).fit_transform(strata)
    study = Study(strata, random_state=3).do(FUZZY, k=4, strata=["sex"], at_least_k=False)
    pd.testing.assert_frame_equal(study.release().table, drawn)


def test_the_masker_takes_rules_as_protect_does():
    table = people().drop(columns=["sex", "births"])
    rules = RULES[:4]
    alone = FuzzyMicroaggregation(
        5, rules=Rules(rules), at_least_k=True, random_state=2
    ).fit_transform(table)
    released = protect(table, k=5, rules=rules, grouping="fuzzy", random_state=2).table
    pd.testing.assert_frame_equal(alone, released)


def test_linear_rules_are_kept_by_constrained_clustering():
    """An independent way: the papers' formulas by whole matrices, from our centres, do not move."""
    random = np.random.default_rng(0)
    net, tax = random.normal(100, 20, 120), random.normal(30, 5, 120)
    X = np.column_stack([net, tax, net + tax + random.normal(0, 4, 120)])  # all break the rule
    rules = Rules(["col(0) + col(1) == col(2)", "col(0) >= 2 * col(1)"])
    masker = FuzzyMicroaggregation(
        k=None, c=4, m1=1.3, m2=1.2, rules=rules, scale=None, tol=1e-10, random_state=0
    )
    plan = masker._prepare(pd.DataFrame(X))
    (part,) = plan.parts
    found = part.outward(part.fit(plan.options.with_("tol", 1e-12), plan.k).cluster_centers_)
    assert np.abs(found[:, 0] + found[:, 1] - found[:, 2]).max() < 1e-9
    means = reference.means(X, reference.degrees(X, found, 1.3) ** 1.3, np.ones(120))
    system = ([[1.0, 1, -1]], [0.0], [[-1.0, 2, 0]], [0.0])
    again = reference.projected(means, *system)
    np.testing.assert_allclose(again, found, atol=0.05)


def test_products_are_constrained_clustering_of_logarithms():
    """Centres found in logarithms: log a + log b == log v holds at each of them."""
    random = np.random.default_rng(1)
    a, b = random.lognormal(2, 0.5, 90), random.lognormal(1, 0.4, 90)
    table = pd.DataFrame({"a": a, "b": b, "v": a * b})
    masker = FuzzyMicroaggregation(6, rules=Rules(["v == a * b"]), random_state=0)
    (part,) = masker._prepare(table).parts
    logs = part.fit(masker._prepare(table).options, 6).cluster_centers_ * part.unit + part.centre
    np.testing.assert_allclose(logs[:, 0] + logs[:, 1], logs[:, 2], atol=1e-9)
    released = masker.fit_transform(table)
    np.testing.assert_allclose(released.a * released.b, released.v, rtol=1e-12)


def test_a_survey_by_hand():
    """Two firms' kinds, three records each; centres far apart, so that the draw is certain.

    Hours and wages have geometric means, whole: of 8, 8, 8 and 10, 10, 10 these are themselves.
    """
    table = pd.DataFrame({
        "hours": [8, 8, 8, 90, 90, 90], "wage": [10, 10, 10, 50, 50, 50],
        "pay": [80, 80, 81, 4500, 4500, 4500], "bonus": [1, 2, 3, 70, 80, 90],
        "kind": ["a", "a", "a", "b", "b", "b"],
    })  # fmt: skip
    table["total"] = table["pay"] + table["bonus"]
    rules = ["pay == hours * wage", "total >= bonus", 'kind in {"a", "b"}']
    release = protect(
        table, k=3, schema=masked_all(table), rules=rules, grouping="fuzzy",
        options={"m2": 1.1}, random_state=0,
    )  # fmt: skip
    expected = pd.DataFrame({
        "hours": [8] * 3 + [90] * 3, "wage": [10] * 3 + [50] * 3, "pay": [80] * 3 + [4500] * 3,
        "bonus": [2] * 3 + [80] * 3, "kind": ["a"] * 3 + ["b"] * 3, "total": [82] * 3 + [4580] * 3,
    })  # fmt: skip
    pd.testing.assert_frame_equal(release.table, expected)
    assert release.inconsistent == 1


def test_categories_are_drawn_by_membership_and_keep_their_rules():
    """In one group of 39, 29 are north/cold: drawn about three times of four; one breaks a rule."""
    table = pd.DataFrame({"x": np.random.default_rng(0).normal(size=39)})
    table["place"] = ["north"] * 29 + ["south"] * 10
    table["air"] = ["cold"] * 29 + ["warm"] * 9 + ["cold"]
    rules = '(place, air) in {("north", "cold"), ("south", "warm")}'
    found = []
    for seed in range(60):
        release = protect(
            table, k=20, schema=masked_all(table), rules=rules, grouping="fuzzy", random_state=seed
        )
        (pair,) = {*zip(release.table.place, release.table.air)}
        assert pair in {("north", "cold"), ("south", "warm")}
        found.append(pair[0] == "north")
    assert 0.5 < np.mean(found) < 0.95


def test_the_plan_says_which_rule_went_where():
    table = people()
    study = Study(table, schema=masked_all(table), rules=RULES, random_state=0).do(FUZZY, k=5)
    told = study.plan.explain()
    assert "a draw from fuzzy clusters, whose centres keep the rules" in told
    assert (
        "net, tax, gross: the centre of the cluster, the mean of the records with weights" in told
    )
    assert "hours, wage, pay: the centre of the cluster in logarithms" in told
    assert "sex: the category of a record that is drawn by kappa" in told
    assert "R5" in told
    assert "records are separated" in told
    free = Study(table, schema=masked_all(table), rules=RULES, random_state=0)
    assert "Probabilistic" in free.do(FUZZY, k=5, at_least_k=False).plan.explain()


def test_groups_that_grow_have_one_value_and_keep_the_rules():
    """Dominated groups are put together; their value is the mean of all their records."""
    table = people().drop(columns=["sex", "births"])
    table.loc[20, ["net", "tax", "gross"]] = [90_000, 20_000, 110_000]
    release = protect(
        table, k=4, rules=RULES[:2], schema=masked_all(table), grouping="fuzzy", random_state=0,
        on_dominance="enlarge", dominance={"n": 1, "k": 99},
    )  # fmt: skip
    assert release.table.groupby(list(table)).size().min() >= 4
    assert (release.table.net + release.table.tax == release.table.gross).all()


@pytest.mark.parametrize("at_least_k", [True, False])
def test_lambda_is_chosen_under_rules_by_bisection(at_least_k):
    table = people(140).drop(columns=["sex", "births"])
    masker = FuzzyMicroaggregation(
        5, rules=Rules(RULES[:4]), lambda1=100.0, lambda2=50.0, at_least_k=at_least_k
    )
    found = choose_fuzziness(table, masker, min_bits=0.5)
    assert found.bits == pytest.approx(0.5, rel=0.15)
    assert found.lambda1 == 100.0
    assert found.masker.lambda2 == found.lambda2 != 50.0
    drawn = found.masker.set_params(random_state=0).fit(table)
    assert drawn.uncertainty_[0].entropy.mean() == pytest.approx(0.5, rel=0.25)
    more = choose_fuzziness(table, masker, min_bits=1.0, lambda1=[30.0, 100.0])
    assert set(more.trade_off.columns) == {"lambda1", "lambda2", "loss", "bits", "chosen"}
    assert more.lambda2 < found.lambda2  # fuzzier


def test_the_intruder_who_knows_it_is_tried_by_both_doors():
    table = people()
    for method, options in ((FUZZY, {}), ("protect", {"grouping": "fuzzy"})):
        study = Study(table, schema=masked_all(table), rules=RULES, random_state=0)
        study.do(method, k=5, **options)
        known = study.disclosed
        assert known["method"] == FUZZY
        assert known["m2"] == 1.2
        assert set(known["logarithms"]) == {"hours", "wage", "pay"}
        tried = assess(study.reference, study.table, method=known, effort="quick",
                       attacks=["transparency"], schema=study.schema)  # fmt: skip
        assert tried["transparency"].value <= 1
        shown = study.protocol.public()[0]["options"]
        assert (shown if method == FUZZY else shown["options"])["m2"] == 1.2


def test_explore_tries_fuzzy_candidates_that_keep_the_rules():
    table = people()
    candidates = [Candidate(FUZZY, k=5), Candidate(FUZZY, k=5, at_least_k=True)]
    found = explore(
        table, candidates=candidates, rules=RULES, schema=masked_all(table), effort="quick",
        attacks=["euclidean", "transparency"], random_state=0, n_jobs=1,
    )  # fmt: skip
    assert [point.k_promised for point in found.points] == [None, 5]
    for point in found.points:
        assert point.passed
        assert point.rules_broken == 0
        assert "transparency" in point.risks


@pytest.mark.slow
@pytest.mark.parametrize("at_least_k", [True, False])
@pytest.mark.parametrize("name", ["Census", "EIA", "business"])
def test_public_tables_and_a_dirty_survey(name, at_least_k):
    """The bars of the method: no rule broken, k or the posterior counted, loss of Census."""
    if name == "business":
        table, rules = make_business_survey(
            600, inconsistent=0.05, random_state=1, return_rules=True
        )
        table = table.drop(columns="firm")
    else:
        table, rules = {"Census": (load_census(), CENSUS), "EIA": (load_eia(), EIA)}[name]
    study = Study(table, schema=masked_all(table), rules=rules, random_state=0)
    release = study.do(FUZZY, k=5, at_least_k=at_least_k).release()
    assert int(release.audit.rule_frame()["breaks_after"].sum()) == 0
    if at_least_k:
        assert release.table.groupby(list(table), dropna=False).size().min() >= 5
    else:
        assert release.probabilistic[0].named is not None
    if name == "Census":
        plain = Study(table, schema=masked_all(table), random_state=0)
        free = plain.do(FUZZY, k=5, at_least_k=at_least_k).release()
        assert release.loss == pytest.approx(free.loss, rel=0.02)


def test_kappa_is_an_operator_of_crisp_groups():
    """With m2 = 1 groups are those of the crisp search, and their values means by kappa."""
    X = np.random.default_rng(4).normal(size=(60, 2))
    table = pd.DataFrame(X, columns=["a", "b"])
    options = {"m1": 1.5, "m2": 1.0}
    release = protect(table, k=5, grouping="fuzzy", options=options, scale=None, random_state=0)
    plain = protect(
        table, k=5, grouping="fuzzy", options={**options, "m1": 1.0}, scale=None, random_state=0
    )
    labels, released = release.labels[0], release.table.to_numpy()
    assert (labels == plain.labels[0]).all()
    centres = np.array([X[labels == label].mean(axis=0) for label in range(labels.max() + 1)])
    np.testing.assert_allclose(plain.table.to_numpy(), centres[labels])
    u = reference.degrees(X, centres, 1.5)[np.arange(60), labels] ** 1.5
    for label in range(len(centres)):
        own = labels == label
        kappa = np.maximum(u[own], u[own].max() / 2)  # none counts less than half of another
        np.testing.assert_allclose(released[own], [kappa @ X[own] / kappa.sum()] * own.sum())


def test_centres_that_coincide_are_counted_in_the_account():
    """By hand: ten threes a kind; of kind a, the two below 40 are both moved to 40."""
    random = np.random.default_rng(0)
    x = np.repeat(10.0 * np.r_[1:3, 5:13, 1:11], 3) + random.normal(0, 0.1, 60)
    table = pd.DataFrame({"kind": ["a"] * 30 + ["b"] * 30, "x": x})
    rules = ['if kind == "a": x >= 40']
    study = Study(table, schema=masked_all(table), rules=rules, random_state=0)
    study.do(FUZZY, k=3, strata=["kind"], at_least_k=False)
    assert study.table["x"][:30].nunique() <= 9
    assert "1 fewer than planned" in study.protocol.entries[0].account
    plain = Study(table, schema=masked_all(table), random_state=0)
    plain.do(FUZZY, k=3, strata=["kind"], at_least_k=False)
    assert "fewer" not in plain.protocol.entries[0].account
