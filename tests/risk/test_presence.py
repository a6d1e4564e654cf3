"""k-map, delta-presence and beta-likeness: by hand, and against counting everybody one by one."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tessella import Schema
from tessella.cli import app
from tessella.exceptions import BadOptionError, BadTableError, UnknownColumnError
from tessella.frame import View, common_codes
from tessella.risk import assess, beta_likeness, delta_presence, k_map

PEOPLE = pd.DataFrame({"sex": list("ffffmmm"), "age": [30, 30, 30, 40, 30, 40, 40]})


# By hand.


def test_k_map_by_hand():
    release = pd.DataFrame({"sex": ["f", "m", None], "age": [30, 30, 40.0]})
    found = k_map(release, PEOPLE, below=(2, 4))
    assert found.matches.tolist() == [3, 1, 3]
    assert (found.k, found.nobody, found.below) == (1, 0, {2: 1 / 3, 4: 1.0})
    assert found.value == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)
    assert found.baseline == pytest.approx(1 / 7)
    strict = k_map(release, PEOPLE, missing_as="category")
    assert (strict.k, strict.nobody) == (0, 1)
    assert strict.records.matches.tolist() == [3, 1, 0]


def test_presence_by_hand():
    release = pd.DataFrame({"sex": ["f", "f", "m"], "age": [30, 30, 30]})
    found = delta_presence(release, PEOPLE)
    assert found.presence.tolist() == [2 / 3] * 3 + [0, 1, 0, 0]
    assert (found.delta_min, found.delta_max, found.overfull) == (0, 1, 0)
    assert found.value == pytest.approx((3 * 2 / 3 + 4) / 7)
    assert found.baseline == pytest.approx(4 / 7)
    # A suppressed sex: one of four persons of 30, beside what the others tell.
    release.loc[2, "sex"] = None
    hidden = delta_presence(release, PEOPLE)
    np.testing.assert_allclose(
        hidden.presence, [2 / 3 + 0.25] * 3 + [0, 0.25, 0, 0], rtol=1e-12
    )  # fmt: skip


def test_counts_stand_for_persons_and_units_for_their_records():
    counted = PEOPLE.groupby(["sex", "age"]).size().rename("persons").reset_index()
    release = pd.DataFrame({"sex": ["f", "m"], "age": [30, 40]})
    for measure in (k_map, delta_presence):
        one, two = measure(release, PEOPLE), measure(release, counted, counts="persons")
        assert (one.value, one.baseline) == pytest.approx((two.value, two.baseline))
    homes = PEOPLE.assign(home=[1, 1, 2, 2, 3, 3, 3])
    inside = release.assign(home=[1, 3])
    found = k_map(inside, homes, unit="home", known=["sex", "age"])
    assert found.matches.tolist() == [2, 1]
    assert delta_presence(inside, homes, unit="home", known=["sex", "age"]).delta_max == 1
    schema = Schema.guess(inside).override(
        home={"role": "unit"}, age={"role": "quasi-identifier"}, sex={"role": "quasi-identifier"}
    )
    assert k_map(inside, homes, schema=schema).matches.tolist() == [2, 1]
    with pytest.raises(BadTableError, match="does not name them"):
        k_map(inside, PEOPLE, schema=schema)


def test_keys_agree_whatever_their_type():
    release = pl.DataFrame({"sex": ["f"], "age": ["30"]})
    assert k_map(release, PEOPLE).matches.tolist() == [3]
    one, other = View(pd.DataFrame({"a": [1.0, None]})), View(pd.DataFrame({"a": [2, 1]}))
    own, theirs = common_codes(one, other, "a")
    assert own[0] == theirs[1] != theirs[0]
    assert own[1] < 0


def test_missing_values_of_the_population_are_nobody():
    people = pd.DataFrame({"age": [30, None, 30]})
    assert k_map(pd.DataFrame({"age": [30.0]}), people).k == 2
    schema = Schema.guess(people).override(age={"missing": [-9], "role": "quasi-identifier"})
    coded = pd.DataFrame({"age": [30, -9, 30]})
    assert k_map(pd.DataFrame({"age": [-9, 30]}), coded, schema=schema).matches.tolist() == [3, 2]


def test_what_cannot_be_compared_is_refused():
    release = PEOPLE.head(2)
    with pytest.raises(UnknownColumnError):
        k_map(release, PEOPLE[["sex"]])
    with pytest.raises(BadTableError, match="empty"):
        k_map(release, PEOPLE.head(0))
    for wrong in (PEOPLE.assign(n=-1), PEOPLE.assign(n=0), PEOPLE.assign(n=np.nan)):
        with pytest.raises(BadOptionError, match="counts"):
            k_map(release, wrong, counts="n", known=["sex", "age"])


# An independent way: everybody is compared with everybody.


@st.composite
def two_tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(1, 3))
    people = pd.DataFrame(rng.integers(0, 3, (draw(st.integers(1, 30)), d)) * 1.0)
    release = pd.DataFrame(rng.integers(0, 3, (draw(st.integers(1, 15)), d)) * 1.0)
    release = release.mask(rng.random(release.shape) < draw(st.sampled_from([0, 0.3])))
    people = people.mask(rng.random(people.shape) < draw(st.sampled_from([0, 0.2])))
    people.columns = release.columns = [f"k{j}" for j in range(d)]
    return release, people, rng.integers(0, 6, len(people)), rng.integers(0, 5, len(release))


def agrees(record, person) -> bool:
    return all(math.isnan(r) or r == p for r, p in zip(record, person))


@given(two_tables())
@settings(max_examples=150, deadline=None)
def test_all_pairs(tables):
    release, people, homes, own = tables
    pairs = np.array([[agrees(r, p) for p in people.to_numpy()] for r in release.to_numpy()])
    found = k_map(release, people)
    assert found.matches.tolist() == pairs.sum(axis=1).tolist()
    assert found.k == pairs.sum(axis=1).min()
    by_home = k_map(
        release.assign(home=own), people.assign(home=homes), unit="home", known=list(release)
    )
    assert by_home.matches.tolist() == [len(set(homes[row])) for row in pairs]
    lacking = release.isna().to_numpy()
    presence = np.zeros(len(people))
    for pattern in np.unique(lacking, axis=0):
        rows = (lacking == pattern).all(axis=1)
        for j in range(len(people)):
            f = pairs[rows, j].sum()
            if f:
                F = pairs[rows][pairs[rows, j]][0].sum()
                presence[j] += min(1.0, f / F)
    got = delta_presence(release, people)
    np.testing.assert_allclose(got.presence, np.minimum(presence, 1), rtol=1e-12)
    assert got.delta_max == got.presence.max()


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_beta_is_the_largest_gain_by_its_definition(seed, n, m):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"key": rng.integers(0, 4, n), "ill": rng.integers(0, m, n)})
    p = table.ill.value_counts(normalize=True)
    gains, passes = {}, []
    for key, own in table.groupby("key"):
        q = own.ill.value_counts(normalize=True)
        gain = ((q - p[q.index]) / p[q.index]).clip(lower=0)
        gains[key] = gain.max()
        if (gain > -np.log(p[q.index]) * (1 + 1e-9)).any():
            passes.append(key)
    found = beta_likeness(table, "ill")
    assert found.worst == pytest.approx(max(gains.values()), abs=1e-12)
    expected = [gains[key] for key in table.key.drop_duplicates()]
    np.testing.assert_allclose(found.by_class, expected, atol=1e-12)
    assert found.beyond == pytest.approx(table.key.isin(passes).mean())
    enhanced = beta_likeness(table, "ill", kind="enhanced")
    assert math.isinf(enhanced.worst) == bool(passes)
    if not passes:
        assert enhanced.worst == found.worst


def test_classes_like_the_table_gain_nothing():
    table = pd.DataFrame({"key": [1, 1, 2, 2], "ill": list("ynyn")})
    assert beta_likeness(table, "ill", kind="enhanced").worst == 0


# Assessments and the command.


def test_an_assessment_with_a_population_and_one_without(tmp_path):
    release = PEOPLE.head(5)
    options = {"known": ["sex", "age"], "effort": "quick", "random_state": 0}
    plain = assess(release, release, **options)
    assert not {"k-map", "delta-presence"} & {*plain.skipped, *(one.name for one in plain.tried)}
    found = assess(release, release, population=PEOPLE, **options)
    assert found["k-map"].value == k_map(release, PEOPLE).value
    assert found["delta-presence"].delta_max == 1
    asked = assess(release, release, attacks=["k-map"])
    assert "give population=" in asked.skipped["k-map"]
    for name, table in (("o", release), ("r", release), ("p", PEOPLE)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in ("o", "r")]
    command = ["risk", *files, "--known", "sex,age", "--effort", "quick", "--quiet"]
    more = ["--population", str(tmp_path / "p.csv")]
    text = CliRunner().invoke(app, [*command, *more])
    assert text.exit_code == 0, text.output
    assert "k-map: k = 1" in text.output
    assert "delta-presence: from 0 to 1" in text.output
    data = json.loads(CliRunner().invoke(app, [*command, *more, "--json"]).stdout)
    assert data["k-map"]["k"] == 1
    assert data["delta-presence"]["delta_max"] == 1
    wrong = CliRunner().invoke(app, [*command, "--population-counts", "n"])
    assert wrong.exit_code != 0
