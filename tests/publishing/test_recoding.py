"""A plan with recoding, from files to files: k by plain pandas in the written file, verified."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import publish, verify
from tessella.planfile import parse_plan
from tessella.publishing import reopen
from tests.masking.test_recoding import people, smallest

PLAN = """
seed = 1
[input]
file = "people.csv"
[columns.zip]
kind = "nominal"
[columns.age]
kind = "integer"
[columns.sex]
kind = "nominal"
[columns.income]
kind = "continuous"
role = "confidential"
[[steps]]
method = "recoding"
k = 5
suppress = 0.05
hierarchies = {zip = {prefix = [3, 2, 0]}, age = {width = [5, 10, 20]}, sex = {file = "sex.csv"}}
[measures]
risk = "none"
[output]
file = "release.csv"
manifest = "manifest.json"
order = "kept"
"""


@pytest.mark.filterwarnings("ignore:The records are released in the order")
def test_from_plan_to_verified_file(tmp_path):
    people(400).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "sex.csv").write_text("m;*\nf;*\n")
    plan = parse_plan(PLAN, folder=tmp_path)
    assert parse_plan(plan.to_toml(), folder=tmp_path).steps == plan.steps
    done = publish(plan)
    assert "Certainty penalty" in str(done)
    written = pd.read_csv(tmp_path / "release.csv", dtype=str)
    assert smallest(written, ["zip", "age", "sex"]) >= 5
    manifest = (tmp_path / "manifest.json").read_text()
    assert str(tmp_path) not in manifest
    found = verify(
        tmp_path / "people.csv", tmp_path / "release.csv", manifest=tmp_path / "manifest.json"
    )
    assert found.passed
    assert reopen(plan).verify().passed
    # A value that does not cover the original is found.
    written["age"] = np.where(written["age"].notna(), "below 20", None)
    written.to_csv(tmp_path / "other.csv", index=False)
    assert not verify(
        tmp_path / "people.csv", tmp_path / "other.csv", aligned=True,
        hierarchies={"age": {"width": [5, 10, 20]}},
    ).passed  # fmt: skip
