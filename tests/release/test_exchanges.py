"""Shuffling and record swapping as steps: of a study, a plan file and its reports, and explored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import Schema, Study, publish
from tessella.explore import Candidate, explore
from tessella.planfile import parse_plan
from tessella.reports import external_report, summarise
from tessella.risk import assess

pytestmark = pytest.mark.filterwarnings("ignore::tessella.exceptions.UnchangedWarning")

PLAN = """
seed = 1
[input]
file = "people.csv"
[columns.home]
role = "unit"
kind = "nominal"
[columns.state]
kind = "nominal"
role = "quasi-identifier"
[columns.town]
kind = "nominal"
role = "quasi-identifier"
[columns.sex]
kind = "nominal"
role = "untouched"
[columns.age]
kind = "integer"
role = "untouched"
[columns.pay]
kind = "continuous"
role = "quasi-identifier"
[[steps]]
method = "record swapping"
geography = ["state", "town"]
keys = ["sex"]
similar = [["sex", "age"], ["sex"], []]
k = 3
rate = 0.1
[[steps]]
method = "shuffling"
columns = ["pay"]
given = ["sex", "age"]
[measures]
risk = "quick"
[output]
file = "release.csv"
order = "kept"
external_report = "report.html"
"""


def people(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.integers(1, 4, n)
    home = np.repeat(np.arange(n), size)
    town = rng.integers(0, 6, n)[home]
    age = rng.integers(2, 9, len(home))
    return pd.DataFrame({
        "home": home, "state": [f"s{x}" for x in town // 3], "town": [f"t{x}" for x in town],
        "sex": rng.choice(["f", "m"], len(home)), "age": age,
        "pay": (900 * age * rng.gamma(4, 0.25, len(home))).round(2),
    })  # fmt: skip


def test_a_plan_file_swaps_and_shuffles(tmp_path):
    table = people()
    table.to_csv(tmp_path / "people.csv", index=False)
    plan = parse_plan(PLAN, folder=tmp_path)
    assert parse_plan(plan.to_toml(), folder=tmp_path).steps == plan.steps
    done = publish(plan)
    released = pd.read_csv(tmp_path / "release.csv")
    assert list(released) == ["state", "town", "sex", "age", "pay"]
    pd.testing.assert_frame_equal(released[["sex", "age"]], table[["sex", "age"]])
    assert sorted(released.pay) == sorted(table.pay)
    sizes = table.groupby("home").home.transform("size")
    for one in (table, released):
        one["size"] = sizes.to_numpy()
    names = ["state", "town", "size"]
    assert table.groupby(names).size().equals(released.groupby(names).size())
    assert (table.town != released.town).any()
    assert done.release.audit.k is None
    text = (tmp_path / "report.html").read_text()
    assert "exchanged their places (state, town)" in text
    assert "Rank correlations among the shuffled columns, and with sex, age," in text
    again = publish(parse_plan(PLAN, folder=tmp_path), overwrite=True)
    assert again.release.table.equals(done.release.table)


def test_the_attack_that_knows_is_tried_on_what_a_study_discloses():
    table = people()
    roles = {name: {"role": "untouched"} for name in ("sex", "age")}
    known = Schema.guess(table).override(
        {"home": {"role": "unit", "kind": "nominal"}, "pay": {"role": "confidential"}, **roles,
         "state": {"role": "quasi-identifier"}, "town": {"role": "quasi-identifier"}}
    )  # fmt: skip
    study = Study(table, schema=known, random_state=0)
    study.do("record swapping", geography=["state", "town"], keys=["sex", "age"], rate=0.2)
    found = assess(
        *study.views, schema=known, method=study.disclosed, attacks=["transparency"],
        known=["state", "town", "sex", "age"],
    )  # fmt: skip
    assert not found.skipped
    summary = summarise(study, study.release(), pictures=False)
    assert "k = 3" not in external_report(summary)  # what is aimed at is no promise


def test_candidates_are_explored():
    table = people()
    numbers = table[["pay"]].assign(rent=(table.pay * (1 + table.age % 3) / 7).round(2))
    tried = [Candidate("shuffling", amount=amount) for amount in (0.2, 1)]
    found = explore(numbers, candidates=tried, attacks=["transparency"], n_jobs=1, random_state=1)
    low, high = found
    assert low.passed
    assert high.passed
    assert low.risk > high.risk
    assert low.loss < high.loss
    assert [str(one) for one in tried] == ["shuffling, amount 0.2", "shuffling"]
    places = Candidate("record swapping", geography=["state", "town"], keys=["sex"], rate=0.3)
    drawn = Candidate("pram", p=0.7)
    cut = table.drop(columns=["home", "pay"])
    both = explore(
        cut, candidates=[places, drawn], columns=["state", "town"], attacks=["learned"], n_jobs=1,
        random_state=1,
    )  # fmt: skip
    assert all(point.tried for point in both)
    assert {point.candidate for point in both} == {places, drawn}
    assert all(0 < point.loss < 100 for point in both)
