"""Steps taken, taken back, brought again and replayed: only what remains counts."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import Schema, Study, protect
from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    PlanError,
    RefusedError,
    UnknownColumnError,
    UnknownOptionError,
)
from tessella.release import Step


def firms(n: int = 60) -> pd.DataFrame:
    random = np.random.default_rng(0)
    net = random.integers(10, 500, n)
    tax = random.integers(1, 90, n)
    return pd.DataFrame(
        {
            "firm_id": np.arange(n),
            "age": random.integers(18, 90, n),
            "net": net,
            "tax": tax,
            "gross": net + tax,
            "branch": random.choice(["food", "steel", "glass"], n),
        }
    )


RULES = ["net + tax == gross", "net >= 0"]
STEPS = [
    Step(method="noise", options={"amount": 0.2, "columns": ["age", "net", "tax", "gross"]}),
    Step(method="rank swapping", options={"percent": 10, "columns": ["age"]}),
    Step(method="rounding", options={"base": 5, "columns": ["age"]}),
    Step(method="pram", options={"p": 0.7, "columns": ["branch"]}),
    Step(method="protect", options={"k": 3, "columns": ["net", "tax", "gross"]}),
]


# Invariant: the table depends on the original, the steps that remain and the seed


@settings(max_examples=12, deadline=None)
@given(st.lists(st.sampled_from(["do", "do", "undo", "redo"]), max_size=9), st.data())
def test_what_was_undone_leaves_no_trace(moves: list[str], data: st.DataObject) -> None:
    study = Study(firms(), rules=RULES, random_state=3).do("drop", columns=["firm_id"])
    undone = 0
    for move in moves:
        if move == "do":
            study.do(data.draw(st.sampled_from(STEPS)))
            undone = 0
        elif move == "undo" and len(study.steps) > 1:
            study.undo()
            undone += 1
        elif move == "redo" and undone:
            study.redo()
            undone -= 1
    again = study.replay()
    assert again.steps == study.steps
    pd.testing.assert_frame_equal(again.table, study.table)
    assert [entry.seed for entry in again.protocol] == [entry.seed for entry in study.protocol]


def test_undo_has_no_limit() -> None:
    study = Study(firms(), random_state=0).do("drop", columns="firm_id")
    before = study.table
    for base in (2, 3, 5, 7, 11):
        study.do("rounding", base=base, columns=["age"])
    study.undo(5)
    assert study.table is before
    assert len(study.redo(5).steps) == 6
    study.undo(2).do("noise", columns=["net"], amount=0.1)
    with pytest.raises(BadOptionError, match="from 1 to 0 steps to bring back"):
        study.redo()
    with pytest.raises(BadOptionError):
        study.undo(9)


def test_a_step_has_a_seed_of_its_own() -> None:
    one = Study(firms(), random_state=1).do("drop", columns="firm_id")
    alone = one.do(STEPS[1]).table["age"].tolist()
    other = one.undo().do(STEPS[3]).do(STEPS[1])
    seeds = [entry.seed for entry in other.protocol]
    assert len(set(seeds)) == 3
    assert seeds[0] is None  # nothing is drawn
    assert other.table["age"].tolist() != alone  # at another place, another seed


def test_without_a_seed_chance_cannot_be_repeated() -> None:
    study = Study(firms()).do("drop", columns="firm_id").do(STEPS[0])
    assert study.replay().table["net"].tolist() != study.table["net"].tolist()
    assert all(entry.seed is None for entry in study.protocol)


@pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas])
def test_every_library_gets_the_same_release(library: Any) -> None:
    def run(table: Any) -> Any:
        study = Study(table, rules=RULES, random_state=5).do("drop", columns=["firm_id"])
        study.do("recode", column="age", breaks=[30, 60]).do(STEPS[3])
        return study.do("protect", k=4).release().table

    mine, theirs = run(firms()), run(library(firms()))
    assert (
        type(theirs).__module__.split(".")[0] == library(firms()).__class__.__module__.split(".")[0]
    )
    plain = theirs.to_pandas()
    for name in mine:
        assert plain[name].astype(str).tolist() == mine[name].astype(str).tolist()


# The release of a study


def test_one_protecting_step_is_protect() -> None:
    table = firms().drop(columns="firm_id")
    study = Study(table, rules=RULES, random_state=0).do("protect", k=5)
    seed = study.protocol.entries[0].seed
    plain = protect(table, k=5, rules=RULES, random_state=seed)
    release = study.release()
    pd.testing.assert_frame_equal(release.table, plain.table)
    assert release.loss == plain.loss
    assert release.audit.passed


def test_loss_is_measured_against_the_original_not_the_last_step() -> None:
    table = firms().drop(columns="firm_id")
    kept = Schema.guess(table).override(age={"role": "untouched"}, branch={"role": "untouched"})
    study = Study(table, schema=kept, rules=RULES, random_state=0)
    study.do("noise", amount=0.5, columns=["net", "tax", "gross"])
    both = study.do("protect", k=5, columns=["net", "tax", "gross"]).release()
    expected = np.mean(
        [
            ((table[c] - both.table[c]) ** 2).sum() / ((table[c] - table[c].mean()) ** 2).sum()
            for c in ("net", "tax", "gross")
        ]
    )
    assert both.loss == pytest.approx(100 * expected)


def test_a_step_that_breaks_k_afterwards_is_refused() -> None:
    study = Study(firms().drop(columns="firm_id"), random_state=0)
    study.do("protect", k=5).do("noise", amount=0.5, columns=["net"])
    with pytest.raises(RefusedError, match="withheld"):
        study.release()
    assert study.undo().release().audit.passed


def test_identifiers_are_not_released() -> None:
    with pytest.raises(BadTableError, match="firm_id"):
        Study(firms()).do("noise", amount=0.1, columns=["net"])
    with pytest.raises(PlanError, match="firm_id"):
        Study(firms()).release()
    with pytest.raises(PlanError, match="firm_id"):
        Study(firms()).do("protect", k=3)


def test_a_rule_about_a_dropped_column_is_told() -> None:
    study = Study(firms(), rules=RULES).do("drop", columns=["firm_id", "tax"])
    assert "No longer judged: R1" in str(study.protocol)
    assert study.do("protect", k=3).release().rules.names == ("R2",)


def test_recode_by_hand() -> None:
    table = pd.DataFrame({"age": [17, 18, 64, 65, None], "town": ["a", "b", "c", "a", None]})
    schema = Schema.guess(table).override(town={"role": "quasi-identifier"})
    study = Study(table, schema=schema)
    study.do("recode", column="age", breaks=[18, 65])
    assert study.table["age"].tolist()[:4] == [
        "below 18", "18 to below 65", "18 to below 65", "65 or more",
    ]  # fmt: skip
    assert study.table["age"].isna().tolist() == [False] * 4 + [True]
    assert study.schema["age"].kind == "ordinal"
    assert list(study.table["age"].cat.categories) == ["below 18", "18 to below 65", "65 or more"]
    study.do("recode", column="town", groups={"coast": ["a", "b"]}, other="inland")
    assert study.table["town"].tolist()[:4] == ["coast", "coast", "inland", "coast"]
    assert "'a'" not in str(study.protocol.public())


# What is published of a protocol


def test_seeds_are_confidential() -> None:
    study = Study(firms(), random_state=77).do("drop", columns="firm_id").do("protect", k=3)
    release = study.release()
    seed = str(release.protocol.entries[1].seed)
    assert seed in str(release.protocol.confidential())
    assert seed not in str(release.protocol.public()) + str(release.protocol) + repr(study)
    saved = pickle.loads(pickle.dumps(release))
    assert [entry.seed for entry in saved.protocol] == [None, None]
    assert Step.from_dict(study.steps[1].to_dict()) == study.steps[1]


# Bad input


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda s: s.do("shuffle"), UnknownOptionError),
        (lambda s: s.do("noise", sigma=1), UnknownOptionError),
        (lambda s: s.do("noise", random_state=1), UnknownOptionError),
        (lambda s: s.do("drop"), BadOptionError),
        (lambda s: s.do("protect"), BadOptionError),
        (lambda s: s.do("drop", columns=["nobody"]), UnknownColumnError),
        (lambda s: s.do("recode", column="age"), BadOptionError),
        (lambda s: s.do("recode", column="age", breaks=[5, 3]), BadOptionError),
        (lambda s: s.do("recode", column="branch", groups={"x": ["wood"]}), BadOptionError),
        (lambda s: s.do("drop", columns="firm_id").do(STEPS[2]).do("drop", columns=[]), PlanError),
        (lambda s: s.do(3), BadOptionError),
        (lambda s: Study(s.table, random_state="x"), BadOptionError),
        (lambda s: s.do("rounding"), BadOptionError),
    ],
)  # fmt: skip
def test_bad_steps(wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        wrong(Study(firms(), rules=RULES))
