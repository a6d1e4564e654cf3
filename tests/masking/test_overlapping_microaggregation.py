"""Overlapping microaggregation: a posterior of at most 1/k for every record, and what it costs."""

from __future__ import annotations

import pickle
from collections import Counter
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tessella import Microaggregation, Rules, Schema, Study, protect
from tessella.exceptions import (
    AttackError,
    BadOptionError,
    BadTableError,
    GroupSizeError,
    MissingValuesError,
    PlanError,
    RefusedError,
    UnknownOptionError,
)
from tessella.frame import View
from tessella.kernels.covering import draw_matching
from tessella.masking import NoiseAddition, OverlappingMicroaggregation, overlapping_groups
from tessella.masking.engine import mask_keeping_rules
from tessella.plan import make_plan
from tessella.risk import attack
from tests.grouping.test_covering import all_draws

STEP = "overlapping microaggregation"


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
    assert (np.unique(np.asarray(masker.centres_, float), axis=0) == values).all()


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_posterior_is_at_most_one_in_k(k):
    table = incomes(70)[["net", "tax"]]
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
    squares = ((X[:, None] - masker.centres_.to_numpy()) ** 2 / unit).sum(axis=2)
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
    with pytest.raises(RefusedError, match="R2"):
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
    release = study.do(STEP, k=3, effort="quick").release()
    text = str(release)
    assert "at most 1/3" in text
    assert "need not be alike" in text
    assert release.probabilistic[0].named == 0
    original, masked = study.views
    assert attack(original, masked, study.disclosed).largest.max() <= 1 / 3 + 1e-12
    assert study.protocol.entries[0].options["posterior"] == "at most 1/3"


# Every kind of column and of rule


RULES = [
    "net + tax == gross", "tax <= net", "hours * wage == pay", "net >= 0",
    'if sex == "m": births == 0', 'sex in {"m", "f"}', 'if region == "b": kind != "z"',
    "first <= last", "rate in {1, 2, 5}",
]  # fmt: skip


def people(n=60, seed=0):
    """Sums, products, conditions, categories and dates; some records break each."""
    random = np.random.default_rng(seed)
    net = random.integers(100, 900, n)
    table = pd.DataFrame({"net": net, "tax": (net * random.uniform(0.1, 0.3, n)).astype(int)})
    table["gross"] = table.net + table.tax
    table["hours"], table["wage"] = random.integers(10, 45, n), random.integers(8, 40, n)
    table["pay"] = table.hours * table.wage
    table["sex"] = random.choice(["m", "f"], n)
    table["births"] = np.where(table.sex == "f", random.integers(0, 4, n), 0)
    table["region"] = random.choice(list("abc"), n)
    table["kind"] = np.where(table.region == "b", "x", random.choice(list("xyz"), n))
    table["first"] = pd.Timestamp(2020, 1, 1) + pd.to_timedelta(random.integers(0, 900, n), "D")
    table["last"] = table["first"] + pd.to_timedelta(random.integers(0, 90, n), "D")
    table["rate"] = random.choice([1, 2, 5], n)
    table.loc[:5, "gross"] += 50
    table.loc[3:9, "births"] = 2
    table.loc[8:12, "pay"] += 9
    table.loc[12:14, "last"] = pd.Timestamp(2019, 1, 1)
    return table


def masked_all(table):
    return Schema.guess(table).override({n: {"role": "quasi-identifier"} for n in table})


def breaking(table):
    """By hand, not by the rules' own judge."""
    wrong = (table.net + table.tax != table.gross) | (table.tax > table.net) | (table.net < 0)
    wrong |= table.hours * table.wage != table.pay
    wrong |= ((table.sex == "m") & (table.births != 0)) | ~table.sex.isin(["m", "f"])
    wrong |= ((table.region == "b") & (table.kind == "z")) | (table["first"] > table["last"])
    return int((wrong | ~table.rate.isin([1, 2, 5])).sum())


@pytest.mark.parametrize("seed", [0, 1])
def test_every_kind_of_rule_holds_by_every_door(seed):
    table = people(seed=seed)
    schema, given = masked_all(table), {"rules": RULES, "random_state": seed}
    study = Study(table, schema=schema, **given).do(STEP, k=3, effort="quick")
    release = study.release()
    assert breaking(table) > 10
    assert breaking(release.table) == 0
    assert (release.table.dtypes == table.dtypes).all()
    assert release.audit.k is None
    assert release.probabilistic[0].named == 0
    original, masked = study.views
    found = attack(original, masked, study.disclosed)
    assert found.largest.max() <= 1 / 3 + 1e-12
    assert found.covered == 1
    other = protect(
        table, k=3, schema=schema, grouping="overlapping", options={"effort": "quick"}, **given
    )
    pd.testing.assert_frame_equal(other.table, release.table)
    assert "at most 1/3" in str(other)
    assert other.protocol.entries[0].options["posterior"] == "at most 1/3"


class Masking:
    """A table whose draw is given: the whole way from the plan to what is written."""

    def __init__(self, table, rules, k, monkeypatch, **more):
        schema = masked_all(table).override(**more)
        self.k, self.monkeypatch, self.view = k, monkeypatch, View(table, schema)
        self.plan = make_plan(
            schema, Rules(rules).fix(table, schema=schema), k=k, grouping="overlapping",
            options={"effort": "quick"},
        )  # fmt: skip

    def release(self, draw):
        """Return what is released, and the groups; `draw` has what `draw_matching` has."""
        view = self.view
        self.monkeypatch.setattr(overlapping_groups, "draw_matching", draw)
        table, blocks, after = mask_keeping_rules(
            self.plan, view, before=self.plan.rules.confront(view, schema=view.schema),
            strata=view.strata(()), weights=np.arange(view.n_rows) % 3 + 1.0, random_state=0,
        )  # fmt: skip
        assert after.all_hold
        assert blocks.overlap.posterior <= 1 / self.k
        return table.native, blocks.covered


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_released_does_not_depend_on_the_draw(seed, monkeypatch):
    """The theorem's premise, for every kind of column: another draw, the same released records."""
    masking = Masking(people(45, seed), RULES, 3, monkeypatch)
    found = []
    for turn in range(2):
        released, covered = masking.release(
            lambda members, words, s, turn=turn: draw_matching(members, np.roll(words, turn), s)
        )
        found.append((released, [part.members.tolist() for part in covered]))
    (first, groups), *others = found
    names = list(first)
    for other, same in others:
        assert same == groups
        assert not other.equals(first)
        pd.testing.assert_frame_equal(
            *(t.sort_values(names, ignore_index=True) for t in (first, other))
        )


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_posterior_with_categories_by_enumeration(seed, monkeypatch):
    """Bayes over all draws, each carried through to the written table, in random order."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame({"kind": random.choice(list("ab"), 5), "age": random.integers(0, 9, 5)})
    masking = Masking(table, ['if kind == "b": age >= 4'], 2, monkeypatch, age={"kind": "integer"})
    parts = []

    def kept(members, words, s):
        parts.append(members)
        return draw_matching(members, words, s)

    masking.release(kept)
    joint, total = Counter(), Counter()
    for draws in product(*(all_draws(members, 0).items() for members in parts)):
        at = iter([np.array(drawn) for drawn, _ in draws])
        released, _ = masking.release(lambda *_, at=at: next(at))
        rows = list(released.itertuples(index=False, name=None))
        for i, row in enumerate(rows):  # in random order he sees the multiset, and looks at a row
            chance = prod(own for _, own in draws)
            joint[tuple(sorted(rows)), row, i] += chance
            total[tuple(sorted(rows)), row] += chance
    assert len({table for table, _ in total}) == 1
    assert sum(total.values()) == 5
    assert max(chance / total[key[:2]] for key, chance in joint.items()) <= Fraction(1, 2)


def test_weights_and_strata_with_categories():
    table = people(120).assign(weight=lambda t: np.arange(120) % 7 + 1.0)
    schema = masked_all(table).override(weight={"role": "weight"}, rate={"kind": "integer"})
    study = Study(table, schema=schema, rules=RULES[:6], random_state=1)
    release = study.do(STEP, k=4, effort="quick", strata=["region"]).release()
    assert (release.table[["region", "weight"]] == table[["region", "weight"]]).all(axis=None)
    assert release.probabilistic[0].named == 0
    facts = study._states[-1].planned.masked.overlap
    assert facts.posterior <= 1 / 4
    for u in facts.memberships.toarray().T:
        assert table["region"][u > 0].nunique() == 1


def test_nobodys_household_is_named_either():
    """Posteriors of units, by whole matrices: all records of a household together."""
    table = people(90).assign(home=np.random.default_rng(0).integers(0, 40, 90))
    schema = masked_all(table).override(home={"role": "unit"})
    study = Study(table, schema=schema, rules=RULES[:4], random_state=1)
    release = study.do(STEP, k=3, effort="quick").release()
    facts = study._states[-1].planned.masked.overlap
    u = facts.memberships.toarray()
    by_home = pd.DataFrame(u).groupby(table["home"].to_numpy()).sum().to_numpy()
    assert (by_home / facts.sizes).max() <= facts.posterior + 1e-12 <= 1 / 3 + 2e-12
    assert "home" not in release.table
    with pytest.raises(GroupSizeError, match="A unit has"):
        Study(table.assign(home=np.arange(90).clip(40)), schema=schema).do(STEP, k=3)


def test_what_would_break_the_promise_is_refused():
    table = incomes().drop(columns="region")
    with pytest.raises(PlanError, match="one block"):
        protect(table, k=3, grouping="overlapping", blocks=[["net"], ["tax", "gross"]])
    with pytest.raises(BadOptionError, match="on_dominance"):
        protect(table, k=3, grouping="overlapping", on_dominance="enlarge")
    with pytest.raises(UnknownOptionError, match="effort"):
        protect(table, k=3, grouping="overlapping", options={"m2": 1.2})
    with pytest.raises(BadOptionError, match="kept"):
        Study(table).do(STEP, order="shuffled")
    with pytest.raises(BadOptionError, match="OverlappingMicroaggregation"):
        Microaggregation(3, grouping="overlapping").fit_transform(table)
