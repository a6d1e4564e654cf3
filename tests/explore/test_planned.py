"""Exploring a plan: what is prepared, points as they come, the present plan, a point in a plan."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import Study
from tessella.explore import (
    Candidate,
    Point,
    PresentPlan,
    apply_point,
    evaluate_plan,
    explore,
    explore_plan,
    prepare_plan,
)
from tessella.loss import measure
from tessella.planfile import parse_plan
from tessella.release import Step

QUICK = ["euclidean"]
PLAN = """
seed = 1
[input]
file = "firms.csv"
[columns.id]
kind = "nominal"
role = "identifier"
[columns.region]
kind = "nominal"
role = "untouched"
[columns.staff]
kind = "integer"
role = "quasi-identifier"
[columns.pay]
kind = "continuous"
role = "quasi-identifier"
[[steps]]
method = "drop"
columns = ["id"]
[[steps]]
method = "protect"
name = "groups"
k = 3
grouping = "mdav"
strata = ["region"]
[output]
file = "release.csv"
"""


@pytest.fixture
def plan(tmp_path):
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": [f"firm {i}" for i in range(60)],
            "region": random.choice(["n", "s"], 60),
            "staff": random.integers(1, 500, 60),
            "pay": random.normal(100, 20, 60).round(2),
        }
    )
    table.to_csv(tmp_path / "firms.csv", index=False)
    return parse_plan(PLAN, folder=tmp_path)


def mdav(k):
    return Candidate("protect", k=k, grouping="mdav")


@pytest.mark.parametrize("jobs", [1, 2])
def test_found_gets_each_point_once_also_from_a_store(tmp_path, jobs):
    table = np.random.default_rng(0).normal(size=(40, 2))
    given = {"attacks": QUICK, "n_jobs": jobs, "store": tmp_path / "store", "random_state": 1}
    tried = [mdav(k) for k in (2, 3, 4)]
    for candidates, reused in ((tried[:2], 0), (tried, 2)):
        seen: list[Point] = []
        found = explore(table, candidates=candidates, found=seen.append, **given)
        assert sorted(p.candidate.key for p in seen) == [one.key for one in candidates]
        assert [p.candidate for p in found] == candidates
        assert {p.candidate: p.loss for p in seen} == {p.candidate: p.loss for p in found}
        assert found.reused == reused


def test_found_changes_nothing():
    table = np.random.default_rng(0).normal(size=(40, 2))
    given = {"candidates": [mdav(3)], "attacks": QUICK, "n_jobs": 1, "random_state": 1}
    (plain,), (told,) = explore(table, **given), explore(table, found=lambda _: True, **given)
    assert (plain.loss, plain.risk) == (told.loss, told.risk)


def test_a_plan_is_prepared_as_it_says(plan):
    prepared = prepare_plan(plan, plan.read(), k=5)
    assert prepared.columns == ("staff", "pay")
    assert [step.method for step in prepared.steps] == ["drop"]
    assert prepared.notes == ()


def test_cells_that_few_lack_are_suppressed_and_a_note_says_so(plan, tmp_path):
    table = pd.read_csv(tmp_path / "firms.csv")
    table.loc[:1, "pay"] = np.nan
    table.to_csv(tmp_path / "firms.csv", index=False)
    prepared = prepare_plan(plan, plan.read(), k=5)
    assert [step.method for step in prepared.steps] == ["drop", "suppress"]
    (note,) = prepared.notes
    assert "so that 5 records lack the same" in note


def test_explore_a_plan(plan):
    seen: list[Point] = []
    found = explore_plan(
        plan, plan.read(), k=(3,), budget=2, n_jobs=1, random_state=1, found=seen.append,
        present=True,
    )  # fmt: skip
    assert len(found.exploration) == 2
    assert seen == [found.present, *found.exploration]
    assert found.to_dict()["first_steps"] == [{"method": "drop", "columns": ["id"]}]
    assert found.to_dict()["present"]["loss"] == found.present.loss


def test_the_present_plan_has_the_loss_of_its_own_study(plan):
    source = plan.read()
    point = evaluate_plan(plan, source, attacks=QUICK, measures=["sse_sst"], random_state=5)
    study = Study(source.table, schema=plan.schema_of(source), random_state=1)
    for step in plan.steps:
        study.do(step)
    own = measure(*study.views, columns=["staff", "pay"], schema=study.schema)
    assert point.loss == pytest.approx(100 * {one.name: one for one in own}["sse_sst"].value)
    assert point.k_promised == 3
    assert not point.problems
    assert isinstance(point.candidate, PresentPlan)
    assert str(point.candidate) == "the present plan: protect, k = 3"
    assert [step.method for step in point.steps] == ["protect"]


def test_a_present_plan_is_stored_and_read_again(plan, tmp_path):
    given = {"attacks": QUICK, "store": tmp_path / "store", "random_state": 5}
    first = evaluate_plan(plan, plan.read(), **given)
    assert Point.from_dict(first.to_dict()) == first
    assert evaluate_plan(plan, plan.read(), **given) == first  # seconds are those of the first
    explored = explore_plan(plan, plan.read(), k=(3,), budget=1, n_jobs=1, **{
        name: own for name, own in given.items() if name != "attacks"
    })  # fmt: skip
    assert explored.present is None


def test_a_present_plan_that_is_refused_is_a_point_with_an_error(plan):
    steps = [*plan.steps[:1], Step(method="protect", options={"k": 61})]
    point = evaluate_plan(plan.model_copy(update={"steps": steps}), plan.read(), attacks=QUICK)
    assert "k=" in point.error


def point_of(*steps):
    return Point(candidate=mdav(5), loss=1.0, risk=2.0, steps=steps)


def test_a_point_in_a_plan_keeps_what_exploring_does_not_try(plan):
    own = Step(method="protect", options={"k": 5, "grouping": "mdav", "columns": ["staff", "pay"]})
    applied = apply_point(plan, point_of(own))
    drop, protect = applied.steps
    assert drop == plan.steps[0]
    assert protect.options == {**own.options, "strata": ["region"]}
    assert any(text.startswith("strata is kept") for text in applied.kept)
    assert any("groups" in text for text in applied.lost)
    assert list(applied.plan(plan).steps) == list(applied.steps)


def test_a_point_that_has_no_such_option_says_what_is_lost(plan):
    steps = [*plan.steps[:1], Step(method="protect", options={"k": 3, "dominance": 5})]
    own = Step(method="rounding", options={"base": 0.5, "columns": ["staff", "pay"]})
    applied = apply_point(steps, point_of(own))
    assert [step.method for step in applied.steps] == ["drop", "rounding"]
    (lost,) = applied.lost
    assert lost.startswith("dominance of the plan's step 'protect' is lost")


def test_a_stratum_is_not_masked(plan):
    own = Step(method="protect", options={"k": 5, "columns": ["region", "staff", "pay"]})
    (_, protect) = apply_point(plan, point_of(own)).steps
    assert protect.options["columns"] == ["staff", "pay"]
