"""Every page of the documentation that shows something to run is run."""

from __future__ import annotations

import re
import shutil
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from tessella.cli import app

from .page import FENCE, run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = {  # run beside the tests of what they are about
    "anonymity", "attacks", "attributes", "explore", "formats", "fuzzy", "maskers",
    "microaggregation", "protect", "reports", "risk", "rules",
}  # fmt: skip
RECIPE = "architecture"  # run by tests/test_recipe.py
SLOW = {
    "howto/explore", "howto/large", "howto/protect", "howto/scripts", "tutorial",
}  # fmt: skip  # search, and start processes
PAGES = {str(path.relative_to(DOCS).with_suffix("")): path for path in sorted(DOCS.rglob("*.md"))}
RUN = [
    name
    for name, path in PAGES.items()
    if name not in {*ELSEWHERE, RECIPE}
    and any(kind != "sh" for kind, _ in FENCE.findall(path.read_text()))
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the files of examples/, as a reader of the pages has it."""
    for file in (ROOT / "examples").iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # as where an environment is active
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in RUN]
)
def test_the_page_is_true(name):
    assert run(PAGES[name]) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_the_commands_of_the_readme_are_true():
    assert run(ROOT / "README.md") == 2


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_of_pages_outside_the_site_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text()):
        assert link.startswith("https://") or (ROOT / link).exists(), link


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_pages_that_are_run_elsewhere_are_all_doctests(name):
    blocks = FENCE.findall(PAGES[name].read_text())
    assert {kind for kind, _ in blocks} <= {"python", "toml", "sh"}
    assert all(">>>" in body for kind, body in blocks if kind == "python")


def test_what_cannot_be_run_here_is_not_tessella():
    for path in [*PAGES.values(), ROOT / "README.md"]:
        for kind, body in FENCE.findall(path.read_text()):
            if kind == "sh":
                assert not any(line.startswith("tessella ") for line in body.splitlines()), path


def test_names_and_options_that_pages_mention_exist():
    """A bug once met: pages that spoke of functions by names they no longer had."""
    rooms = "datasets|exceptions|fuzzy|grouping|io|linear|loss|masking|pictures|risk"
    options = {
        option
        for command in typer.main.get_command(app).commands.values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help", "--version", "--install-completion"}
    for path in [*PAGES.values(), ROOT / "README.md"]:
        if path.stem == "benchmarks":
            continue
        text = path.read_text()
        for room, name in re.findall(rf"`(?:tessella\.)?({rooms})\.(\w+)", text):
            assert name in import_module(f"tessella.{room}").__all__, f"{path.name}: {room}.{name}"
        told = re.findall(
            r"(?<![\w-])(--[a-z][a-z-]+)", re.sub(r"^```sh.*?^```", "", text, flags=re.S | re.M)
        )
        assert set(told) <= options, f"{path.name}: {sorted(set(told) - options)}"


def test_the_example_file_is_made_up():
    """Written by `make_business_survey(300, inconsistent=0.04, weights=True, random_state=7)`."""
    import pandas as pd

    from tessella import datasets

    made = datasets.make_business_survey(300, inconsistent=0.04, weights=True, random_state=7)
    kept = pd.read_csv(ROOT / "examples" / "firms.csv")
    pd.testing.assert_frame_equal(kept, made, check_dtype=False, check_categorical=False)
