"""A folder with a survey, its rules and a plan, as a steward has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tessella import datasets
from tessella.planfile import PlanFile, parse_plan

PLAN = """
version = 1
seed = {seed}
[input]
file = "{file}"
[rules]
file = "rules.txt"
[columns.firm]
kind = "integer"
role = "identifier"
[columns.region]
kind = "nominal"
[columns.branch]
kind = "nominal"
[columns.export_share]
kind = "continuous"
{numbers}
[[steps]]
method = "drop"
columns = ["firm"]
[[steps]]
method = "protect"
k = {k}
grouping = "mdav"
fit = "project"
small = "merge"
[measures]
risk = "{risk}"
[output]
file = "{release}"
external_report = "report.html"
internal_report = "internal.html"
manifest = "manifest.json"
order = "{order}"
"""
NUMBERS = [
    "employees", "hours", "hourly_rate", "wages", "materials", "other_costs", "costs", "turnover",
    "profit",
]  # fmt: skip


def write_survey(home: Path, n: int = 100) -> None:
    firms, rules = datasets.make_business_survey(
        n, random_state=2, inconsistent=0.02, return_rules=True
    )
    firms.to_csv(home / "firms.csv", index=False)
    plain = firms.astype({"region": str, "branch": str})
    plain.to_parquet(home / "firms.parquet", index=False)
    (home / "rules.txt").write_text("\n".join(rules))


def make_plan(
    home: Path, *, file: str = "firms.csv", release: str = "release.csv", k: int = 4,
    seed: int = 77123456, risk: str = "none", order: str = "kept",
) -> PlanFile:  # fmt: skip
    numbers = "\n".join(f'[columns.{name}]\nkind = "integer"' for name in NUMBERS)
    text = PLAN.format(
        file=file, release=release, k=k, seed=seed, risk=risk, order=order, numbers=numbers
    )
    return parse_plan(text, folder=home)


@pytest.fixture
def plan_in() -> Callable[..., PlanFile]:
    return make_plan


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_survey(tmp_path)
    return tmp_path
