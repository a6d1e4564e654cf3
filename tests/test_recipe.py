"""The recipe of docs/architecture.md: one file makes a step, a candidate and a row of reports."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from tessella import Study
from tessella.explore import Candidate, explore
from tessella.masking import registry
from tessella.planfile import parse_plan
from tessella.publishing import publish
from tessella.reports import external_report, summarise

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The file of the page, imported."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path_factory.mktemp("recipe") / "jitter.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location("jitter", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["jitter"] = module
    spec.loader.exec_module(module)
    yield module
    registry._REGISTERED.pop("jitter")
    del sys.modules["jitter"]


@pytest.fixture
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame({"net": random.uniform(0, 9, 60), "tax": random.uniform(0, 3, 60)})


def test_a_step_of_a_study_that_keeps_rules(toy: ModuleType, table: pd.DataFrame) -> None:
    study = Study(table, rules="tax <= net + 9", random_state=1).do("jitter", share=0.5)
    release = study.release()
    assert (release.table["tax"] <= release.table["net"] + 9).all()
    assert not release.table.equals(table)
    summary = summarise(study, release, pictures=False)
    assert "Every number was moved by up to 0.5 of the range" in external_report(summary)


def test_a_step_of_a_plan_file(toy: ModuleType, table: pd.DataFrame, tmp_path: Path) -> None:
    table.to_csv(tmp_path / "table.csv", index=False)
    plan = parse_plan(
        'seed = 3\n[input]\nfile = "table.csv"\n[[steps]]\nmethod = "jitter"\nshare = 0.2\n'
        '[measures]\nrisk = "none"\n'
        '[output]\nfile = "release.csv"\nexternal_report = "report.html"\n',
        folder=tmp_path,
    )
    publish(plan)
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "jitter" in report
    assert "Every number was moved by up to 0.2 of the range" in report


def test_a_candidate_whose_step_gives_the_same_table(toy: ModuleType, table: pd.DataFrame) -> None:
    one = Candidate("jitter", share=0.1)
    assert str(one) == "jitter within 0.1 of the range"
    study = Study(table, random_state=5).do(one.to_step(table))
    pd.testing.assert_frame_equal(study.table, one.mask(table, random_state=5))
    found = explore(
        table, k=(3,), attacks=["euclidean"], measures=["values"], n_jobs=1, random_state=0,
        budget=28,
    )  # fmt: skip
    tried = [point for point in found if point.candidate.method == "jitter"]
    assert tried
    assert all(point.passed for point in tried)
    assert tried[0].to_step().options["columns"] == ["net", "tax"]


def test_a_name_belongs_to_one_masker(toy: ModuleType) -> None:
    with pytest.raises(ValueError, match="no other method"):
        registry.register(registry.Method(name="noise", masker=toy.Jitter))
