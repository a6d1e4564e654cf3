"""Previews: by hand, against the plan's own study, invariants, density, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tessella import Schema, Study
from tessella.exceptions import BadOptionError, GroupSizeError, PlanError, UnknownColumnError
from tessella.explore import Preview, Sample, preview
from tessella.planfile import PlanFile
from tessella.release import Step


def plan_of(*steps, **given):
    """Return a plan with these steps: (method, options)."""
    made = [Step(method=method, options=options) for method, options in steps]
    known = {"input": {"file": "t.csv"}, "output": {"file": "r.csv"}, "seed": 1, "steps": made}
    return PlanFile.model_validate(known | given)


def mdav(k, **options):
    return "protect", {"k": k, "grouping": "mdav", **options}


@pytest.fixture(scope="module")
def mixed():
    random = np.random.default_rng(1)
    a = random.normal(size=300)
    return pd.DataFrame(
        {
            "a": a,
            "b": np.where(random.random(300) < 0.2, np.nan, a + random.normal(size=300)),
            "sex": random.choice(["f", "m"], 300),
            "region": random.choice(["n", "s"], 300),
        }
    )


KINDS = Schema(
    {
        "a": {"kind": "continuous"},
        "b": {"kind": "continuous"},
        "sex": {"kind": "nominal"},
        "region": {"kind": "nominal", "role": "untouched"},
    }
)


def cloud(n, d=6, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])


@pytest.fixture(scope="module")
def dense():
    return cloud(40_000)


@pytest.fixture(scope="module")
def sampled(dense):
    return Sample.draw(dense, Schema({n: {"kind": "continuous"} for n in dense}))


def test_by_hand():
    # Groups 10, 11, 12 and 50, 51, 52: SSE = 4, SST = 2404; each mean is nearest to 11 or 51.
    table = pd.DataFrame({"x": [10.0, 11, 12, 50, 51, 52]})
    found = preview(plan_of(mdav(3)), Sample.draw(table, Schema({"x": {"kind": "continuous"}})))
    assert found.loss == pytest.approx(100 * 4 / 2404)
    assert found.loss_low == found.loss == found.loss_high
    assert found.risk == pytest.approx(100 / 3)
    assert found.baseline == pytest.approx(100 / 6)
    assert (found.k_promised, found.k_reached, found.is_sample) == (3, 3, False)
    assert found.column_loss == {"x": pytest.approx(found.loss)}


@pytest.mark.parametrize(
    "steps",
    [
        [mdav(3)],
        [mdav(3, strata=["region"])],
        [mdav(3, blocks=[["a"], ["b", "sex"]])],
        [("suppress", {"k": 3}), mdav(4)],
        [
            ("drop", {"columns": ["b"]}),
            mdav(5, columns=["a"]),
            ("pram", {"p": 0.8, "columns": ["sex"]}),
        ],
        [("recode", {"column": "a", "breaks": [0.0]}), mdav(3)],
    ],
    ids=["plain", "strata", "blocks", "suppress", "drop, pram", "recode"],
)
def test_a_small_table_has_the_loss_of_its_release(mixed, steps):
    plan = plan_of(*steps)
    study = Study(mixed, schema=KINDS, random_state=1)
    for step in plan.steps:
        study.do(step)
    release = study.judged()
    found = preview(plan, Sample.draw(mixed, KINDS))
    assert found.loss == pytest.approx(release.loss, rel=1e-9)
    assert found.column_loss == pytest.approx({str(n): v for n, v in release.column_loss.items()})


def test_rules_hold_and_are_named_where_they_contradict():
    random = np.random.default_rng(0)
    net = random.integers(10, 100, 60)
    table = pd.DataFrame({"net": net, "gross": net + random.integers(0, 9, 60)})
    schema = Schema({n: {"kind": "integer"} for n in table})
    fine = plan_of(mdav(3), rules={"lines": ["net <= gross"]})
    assert preview(fine, Sample.draw(table, schema)).k_reached >= 3
    wrong = plan_of(mdav(3), rules={"lines": ["net <= 5", "net >= 7"]})
    with pytest.raises(PlanError, match="No record can keep these rules"):
        preview(wrong, Sample.draw(table, schema))


def test_a_search_is_brief_and_a_note_says_so(mixed):
    found = preview(plan_of(("protect", {"k": 3})), Sample.draw(mixed, KINDS))
    assert any("for a moment" in note for note in found.notes)
    assert found.k_reached >= 3


def test_same_seed_same_answer(dense, sampled):
    plan = plan_of(mdav(5))
    again = Sample.draw(dense, sampled.schema)
    assert (again.rows == sampled.rows).all()
    first = preview(plan, sampled)
    assert first == preview(plan, again) == preview(plan, sampled)
    assert (Sample.draw(dense, sampled.schema, seed=1).rows != sampled.rows[0]).any()


def test_a_sample_is_as_dense_as_its_table(dense, sampled):
    # An independent way: the whole table, grouped by the same method.
    plan = plan_of(mdav(5))
    study = Study(dense, schema=sampled.schema, random_state=1).do(plan.steps[0])
    before, after = (view.matrix(dense.columns) for view in study.views)
    true = 100 * float((((before - after) / before.std(axis=0)) ** 2).mean())
    found = preview(plan, sampled)
    assert found.is_sample
    assert found.records < 3_000
    assert true / 1.2 < found.loss < true * 1.2
    plain = preview(plan, Sample.draw(dense.sample(2_000, random_state=0), sampled.schema))
    assert plain.loss > 1.5 * true


def test_weights_of_a_sample_count_the_table(sampled):
    assert sampled.weights.sum() == pytest.approx(40_000)
    assert 1_000 < len(sampled.rows) < 3_000


def test_units_stay_whole():
    table = cloud(6_000, 2)
    table["home"] = np.random.default_rng(0).integers(0, 2_000, 6_000)
    schema = Schema(
        {
            "x0": {"kind": "continuous"},
            "x1": {"kind": "continuous"},
            "home": {"kind": "nominal", "role": "unit"},
        }
    )
    drawn = Sample.draw(table, schema, most=600)
    inside = table.home.iloc[drawn.rows]
    others = table.home.drop(index=drawn.rows)
    assert not set(inside) & set(others)
    assert preview(plan_of(mdav(3)), drawn).k_reached >= 3


def test_steps_without_groups_are_done_in_all_records(dense, sampled):
    plan = plan_of(("noise", {"amount": 0.2}))
    study = Study(dense, schema=sampled.schema, random_state=1).do(plan.steps[0])
    found = preview(plan, sampled)
    assert found.loss == pytest.approx(study.judged().loss)
    assert found.k_promised is None
    assert found.promise == "No k is promised."


def test_steps_without_groups_under_rules_take_a_plain_sample():
    table = cloud(5_000, 2)
    schema = Schema({n: {"kind": "continuous"} for n in table})
    plan = plan_of(("noise", {"amount": 0.2}), rules={"lines": ["x0 <= 100"]})
    found = preview(plan, Sample.draw(table, schema, most=500))
    assert found.is_sample
    assert found.loss_low < 4 < found.loss_high  # 100 * 0.2 ** 2, as no rule is ever near
    assert any("among all of them it is lower" in note for note in found.notes)


def test_a_step_without_groups_beside_one_with_groups_is_rough(dense, sampled):
    steps = mdav(3, columns=["x0", "x1"]), ("noise", {"amount": 0.2, "columns": ["x2"]})
    found = preview(plan_of(*steps), sampled)
    assert any("Figures of 'x2' are rough" in note for note in found.notes)


def test_a_k_that_only_the_sample_is_too_small_for_is_no_refusal():
    table = cloud(5_000, 2)
    table["stratum"] = np.where(np.arange(5_000) < 60, "few", "many")
    schema = Schema(
        {
            "x0": {"kind": "continuous"},
            "x1": {"kind": "continuous"},
            "stratum": {"kind": "nominal", "role": "untouched"},
        }
    )
    drawn = Sample.draw(table, schema, most=300)
    found = preview(plan_of(mdav(50, strata=["stratum"])), drawn)
    assert any("left out" in note for note in found.notes)
    assert found.loss > 0
    none = preview(plan_of(mdav(2_000)), drawn)
    assert math.isnan(none.loss)
    assert none.to_dict()["loss"] is None
    with pytest.raises(GroupSizeError):  # of the table itself: 60 records are fewer than 70
        preview(plan_of(mdav(70, strata=["stratum"])), drawn)
    with pytest.raises(GroupSizeError):
        preview(plan_of(mdav(5_001)), Sample.draw(table.head(1_000), schema))


def test_what_is_refused(mixed):
    drawn = Sample.draw(mixed, KINDS)
    with pytest.raises(UnknownColumnError, match="incme"):
        preview(plan_of(mdav(3, columns=["incme"])), drawn)
    with pytest.raises(BadOptionError, match="Sample"):
        preview(plan_of(mdav(3)), mixed)
    with pytest.raises(BadOptionError, match="plan"):
        preview("plan.toml", drawn)
    with pytest.raises(BadOptionError, match="most"):
        Sample.draw(mixed, KINDS, most=0)


def test_it_prints_and_is_plain_data(mixed):
    found = preview(plan_of(mdav(3)), Sample.draw(mixed, KINDS))
    assert isinstance(found, Preview)
    assert "From all 300 records." in str(found)
    assert "At least 3 records share their released values." in str(found)
    assert set(found.changed) == {"sex"}
    known = found.to_dict()
    assert known["is_sample"] is False
    assert known["notes"] == list(found.notes)
    assert {"loss", "risk", "baseline", "records", "n_records", "k_reached"} <= set(known)


def test_a_later_step_that_breaks_k_is_noted(mixed):
    steps = mdav(3), ("noise", {"amount": 0.1, "columns": ["a"]})
    found = preview(plan_of(*steps), Sample.draw(mixed, KINDS))
    assert found.k_reached == 1
    assert any("There would be no release." in note for note in found.notes)


def test_columns_that_no_step_masks_are_noted(mixed):
    found = preview(plan_of(mdav(3, columns=["a"])), Sample.draw(mixed, KINDS))
    assert any("'b'" in note and "'sex'" in note for note in found.notes)
