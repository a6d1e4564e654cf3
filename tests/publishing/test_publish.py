"""From a plan file to a release on disk: whole, the same each time, telling nothing it must not."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tessella import Rules, publish, verify
from tessella.cli import app
from tessella.exceptions import (
    BadFileError,
    BadOptionError,
    PlanError,
    RefusedError,
    SmallJointGroupsWarning,
    TessellaError,
    TessellaWarning,
)
from tessella.grouping import Search
from tessella.io import read_file
from tessella.planfile import parse_plan
from tessella.planfile.hints import for_plan

from .conftest import make_plan, write_survey

PUBLIC = ("release.csv", "report.html", "manifest.json")
BEFORE = {"firms.csv", "firms.parquet", "rules.txt"}


def new_files(home) -> set[str]:
    return set(os.listdir(home)) - BEFORE


# End to end


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_plan_becomes_a_release_with_reports(home, ending):
    plan = make_plan(home, file=f"firms.{ending}", release=f"release.{ending}", risk="quick")
    heard = []
    done = publish(plan, progress=lambda *step: heard.append(step))
    assert new_files(home) == {
        f"release.{ending}", "report.html", "internal.html", "manifest.json",
    }  # fmt: skip
    table = read_file(home / f"release.{ending}").table.to_pandas()
    assert "firm" not in table
    assert table.groupby(list(table)).size().min() >= 4  # counted by another library
    rules = Rules.read(home / "rules.txt")
    assert rules.confront(table).all_hold
    told = json.loads((home / "manifest.json").read_text())
    assert [file["what"] for file in told["files"]] == ["release", "external report"]
    for file in told["files"]:
        content = (home / file["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
        assert len(content) == file["bytes"]
    assert stat.S_IMODE((home / "internal.html").stat().st_mode) == 0o600
    totals = {total for _, total, _ in heard}
    assert totals == {heard[-1][0]}
    assert [done for done, _, _ in heard] == sorted(done for done, _, _ in heard)
    names = [entry.method for entry in done.protocol]
    assert names == [
        "read", "check", "drop", "protect", "audit", "measure loss", "measure risk",
        "measure risk of the original", "report", "write",
    ]  # fmt: skip
    internal = (home / "internal.html").read_text()
    assert "77123456" in internal
    assert done.risk.value < done.risk_before.value
    assert "Risk: the worst of" in str(done)
    again = verify(
        home / f"firms.{ending}", home / f"release.{ending}", manifest=home / "manifest.json"
    )
    assert again.passed, again
    assert again.hashes == {f"release.{ending}": True, "report.html": True}
    assert again.loss["sse_sst"].value == pytest.approx(done.loss["sse_sst"].value)


def test_steps_are_logged_without_values(home, caplog):
    with caplog.at_level(logging.INFO, logger="tessella"):
        publish(make_plan(home), pictures=False)
    said = [re.sub(r": [\d.]+ s$", "", record.getMessage()) for record in caplog.records]
    assert said == ["read", "check", "drop", "protect", "audit", "measure loss", "report", "write"]


def test_without_reports_only_the_release_is_written(home):
    plan = make_plan(home)
    less = plan.model_copy(update={"output": plan.output.model_copy(update={
        "external_report": None, "internal_report": None, "manifest": None,
        "summary": "summary.json"})})  # fmt: skip
    publish(less)
    assert new_files(home) == {"release.csv", "summary.json"}
    told = json.loads((home / "summary.json").read_text())
    assert sorted(told) == ["confidential", "format", "public"]
    assert stat.S_IMODE((home / "summary.json").stat().st_mode) == 0o600


# The same plan and seed


def bytes_of(home, names=PUBLIC) -> list[bytes]:
    return [(home / name).read_bytes() for name in names]


@pytest.mark.parametrize("order", ["kept", "shuffled"])
def test_the_same_plan_gives_the_same_bytes(home, monkeypatch, order):
    seen = []
    for cores in ("1", "2"):
        monkeypatch.setenv("TESSELLA_CORES", cores)
        publish(make_plan(home, order=order, risk="quick"), overwrite=True, pictures=False)
        seen.append(bytes_of(home))
    assert seen[0] == seen[1]
    publish(make_plan(home, order=order, seed=5), overwrite=True, pictures=False)
    assert (bytes_of(home)[0] == seen[0][0]) == (order == "kept")  # MDAV draws nothing


def test_the_same_bytes_from_pandas_polars_and_arrow(tmp_path):
    polars = pytest.importorskip("polars")
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    write_survey(tmp_path)
    frame = pd.read_csv(tmp_path / "firms.csv")
    seen = []
    for kind in ("pandas", "polars", "arrow", "csv"):
        home = tmp_path / kind
        home.mkdir()
        shutil.copy(tmp_path / "rules.txt", home)
        if kind == "pandas":
            frame.to_parquet(home / "firms.parquet")
        elif kind == "polars":
            polars.from_pandas(frame).write_parquet(home / "firms.parquet")
        elif kind == "arrow":
            pq.write_table(pa.Table.from_pandas(frame), home / "firms.parquet")
        else:
            shutil.copy(tmp_path / "firms.csv", home)
        file = "firms.csv" if kind == "csv" else "firms.parquet"
        publish(make_plan(home, file=file, order="shuffled"), pictures=False)
        seen.append(bytes_of(home))
    assert all(one == seen[0] for one in seen)


def test_shuffling_permutes_the_records_and_says_so(home):
    publish(make_plan(home), pictures=False)
    kept = pd.read_csv(home / "release.csv")
    assert "in random order" not in (home / "report.html").read_text()
    publish(make_plan(home, order="shuffled"), overwrite=True, pictures=False)
    shuffled = pd.read_csv(home / "release.csv")
    assert not kept.equals(shuffled)
    names = list(kept)
    pd.testing.assert_frame_equal(
        kept.sort_values(names, ignore_index=True), shuffled.sort_values(names, ignore_index=True)
    )
    assert "in random order" in (home / "report.html").read_text()
    assert json.loads((home / "manifest.json").read_text())["order"] == "shuffled"


OVERLAPPING = """
version = 1
seed = 1
[input]
file = "numbers.csv"
[columns.a]
kind = "continuous"
[columns.b]
kind = "continuous"
[columns.c]
kind = "nominal"
[rules]
lines = ["a <= b", 'if c == "x": a > 0']
[[steps]]
method = "overlapping microaggregation"
k = 3
effort = "quick"
[measures]
risk = "quick"
[output]
file = "release.csv"
external_report = "report.html"
manifest = "manifest.json"
"""


def test_a_posterior_is_promised_in_random_order_only(tmp_path):
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(60, 2)).round(3), columns=["a", "b"])
    table["c"] = random.choice(list("xyz"), 60)
    table.to_csv(tmp_path / "numbers.csv", index=False)
    published = publish(parse_plan(OVERLAPPING, folder=tmp_path), pictures=False)
    assert json.loads((tmp_path / "manifest.json").read_text())["order"] == "shuffled"
    report = (tmp_path / "report.html").read_text()
    for text in ("in random order", "at most 1/3", "this is not 3 equal records"):
        assert text in report
    assert "names 0 of 60 records" in str(published)
    read = pd.read_csv(tmp_path / "release.csv")
    assert (read.a <= read.b).all()
    assert (read.a[read.c == "x"] > 0).all()
    (tmp_path / "plan.toml").write_text(OVERLAPPING)
    written = (tmp_path / "release.csv").read_bytes()
    done = CliRunner().invoke(
        app, ["protect", "--plan", str(tmp_path / "plan.toml"), "--overwrite"]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "release.csv").read_bytes() == written
    with pytest.raises(PlanError, match='order = "shuffled"'):
        publish(
            parse_plan(OVERLAPPING + 'order = "kept"', folder=tmp_path), overwrite=True,
            pictures=False,
        )  # fmt: skip


def test_without_a_seed_the_order_is_another_each_time(home):
    plan = make_plan(home, order="shuffled").model_copy(update={"seed": None})
    seen = []
    for _ in range(2):
        publish(plan, overwrite=True, pictures=False)
        seen.append((home / "release.csv").read_bytes())
    assert seen[0] != seen[1]
    assert "No seed" in (home / "internal.html").read_text()


# Warnings


WARNING = """
seed = 1
[input]
file = "firms.csv"
[[steps]]
method = "drop"
columns = ["firm", "region", "branch", "hourly_rate", "materials", "other_costs", "costs",
           "export_share"]
[[steps]]
method = "microaggregation"
k = 4
grouping = "mdav"
blocks = [["employees", "hours", "wages"], ["turnover", "profit"]]
columns = ["employees", "hours", "wages", "turnover", "profit"]
[measures]
risk = "none"
[output]
file = "release.csv"
internal_report = "internal.html"
"""


def test_a_warning_is_heard_and_in_the_internal_report(home):
    with pytest.warns(SmallJointGroupsWarning) as heard:
        done = publish(parse_plan(WARNING, folder=home), pictures=False)
    first, second = done.warnings
    assert first == for_plan(str(heard[0].message))  # k = 4, as a plan has it
    assert second.startswith("Dominance")  # one firm has most of the turnover of its group
    assert "Warnings" in (home / "internal.html").read_text()


def test_to_whom_warnings_are_errors_nothing_is_written(home):
    with pytest.raises(SmallJointGroupsWarning):
        publish(parse_plan(WARNING, folder=home), pictures=False)
    assert new_files(home) == set()


# What must not be told


def spellings(value: float) -> Iterator[str]:
    """Ways to write a number."""
    yield from (repr(value), f"{value:.6g}", f"{value:.2f}", f"{value:,.2f}", f"{value:.1f}")
    if float(value).is_integer():
        yield from (f"{int(value)}", f"{int(value):,}", f"{int(value):,}".replace(",", " "))


LEAKY = """
seed = 918273645
[input]
file = "secret-people.csv"
[rules]
lines = ['if job == "lighthouse keeper": income >= 0', "income >= 0"]
[columns.full_name]
kind = "nominal"
role = "identifier"
[columns.tax_number]
kind = "integer"
role = "identifier"
[columns.income]
kind = "continuous"
[columns.plot]
kind = "integer"
[columns.job]
kind = "nominal"
[[steps]]
method = "drop"
name = "take out the Quills"
columns = ["full_name", "tax_number"]
[[steps]]
method = "recode"
column = "job"
[steps.groups]
rare = ["lighthouse keeper", "sword swallower"]
[[steps]]
method = "protect"
k = 5
grouping = "mdav"
[output]
file = "open.csv"
external_report = "open.html"
internal_report = "closed.html"
manifest = "open.json"
"""


def test_public_files_tell_no_original_value(tmp_path):
    """Greps for every original value of every identifying column, in several spellings."""
    random = np.random.default_rng(3)
    n = 150
    table = pd.DataFrame({
        "full_name": [f"Zacharias Quill {i:03d}" for i in range(n)],
        "tax_number": 40_000_019 + 7 * random.permutation(n),
        "income": np.round(random.lognormal(10.3, 0.8, n), 2),
        "plot": 1_000_003 + 97 * random.permutation(n),
        "job": random.choice(
            ["clerk", "cook", "lighthouse keeper", "sword swallower"], n, p=[0.5, 0.4, 0.05, 0.05]
        ),
    })  # fmt: skip
    table.to_csv(tmp_path / "secret-people.csv", index=False)
    plan = parse_plan(LEAKY, folder=tmp_path)
    done = publish(plan)
    public = "".join((tmp_path / name).read_text() for name in ("open.html", "open.json"))
    tokens = set(re.findall(r"[\w.,]*\d[\w.,]*", public))
    for name in ("tax_number", "income", "plot"):
        for value in table[name].tolist():
            assert not tokens.intersection(spellings(value)), (name, value)
        for extreme in (table[name].min(), table[name].max()):
            shown = {f"{extreme:.{digits}g}" for digits in range(3, 8)}
            assert not tokens & shown, name
    for i in range(n):
        assert f"Quill {i:03d}" not in public
    seeds = {str(entry.seed) for entry in done.protocol if entry.seed is not None}
    assert seeds
    for secret in (
        "918273645", *seeds, str(tmp_path), "secret-people", "full_name", "tax_number", "Quill",
        "lighthouse", "swallower", "closed.html", "chance of", "attack", "intruder",
    ):  # fmt: skip
        assert secret not in public, secret
    internal = (tmp_path / "closed.html").read_text()
    for told in ("918273645", "secret-people.csv", "tax_number", "lighthouse keeper"):
        assert told in internal


def test_the_manifest_has_no_hash_of_the_original(home):
    publish(make_plan(home), pictures=False)
    digest = hashlib.sha256((home / "firms.csv").read_bytes()).hexdigest()
    assert digest not in (home / "manifest.json").read_text()


# What is refused leaves nothing


def test_files_that_exist_are_refused_before_reading(home):
    (home / "report.html").write_text("mine")
    plan = make_plan(home, file="there is no such file.csv")
    with pytest.raises(BadFileError, match="the file exists"):
        publish(plan)
    assert new_files(home) == {"report.html"}


def test_the_original_is_never_an_output(home):
    for name in ("firms.csv", "rules.txt"):
        plan = make_plan(home, release=name)
        with pytest.raises(BadFileError, match="this is the"):
            publish(plan, overwrite=True)
    assert new_files(home) == set()


def test_a_folder_that_is_not_there_is_refused(home):
    with pytest.raises(BadFileError, match="folder does not exist"):
        publish(make_plan(home, release="no/release.csv"))


def test_a_format_that_cannot_be_written_is_refused_at_once(home):
    with pytest.raises(TessellaError, match="sas7bdat"):
        publish(make_plan(home, file="none.csv", release="release.sas7bdat"))


def test_knowledge_of_a_column_that_is_dropped_is_refused(home):
    plan = make_plan(home, risk="quick")
    asked = plan.measures.model_copy(update={"known": ["firm"]})
    with pytest.raises(TessellaError, match=r"measures\.known"):
        publish(plan.model_copy(update={"measures": asked}))
    assert new_files(home) == set()


def test_a_step_that_fails_leaves_nothing(home):
    with pytest.raises(TessellaError):
        publish(make_plan(home, k=500))
    assert new_files(home) == set()


def test_a_release_that_is_refused_leaves_nothing(home):
    """Rounding alone breaks the sums, and the audit sees it."""
    text = """
    [input]
    file = "firms.csv"
    [rules]
    lines = ["profit == turnover - costs", "wages == hours * hourly_rate"]
    [[steps]]
    method = "drop"
    columns = ["firm", "region", "branch"]
    [[steps]]
    method = "rounding"
    base = 1000
    columns = ["profit", "wages"]
    [output]
    file = "release.csv"
    external_report = "report.html"
    """
    with pytest.raises(TessellaError):
        publish(parse_plan(text, folder=home))
    assert new_files(home) == set()


def test_old_files_stay_when_a_new_release_is_refused(home):
    publish(make_plan(home), pictures=False)
    before = bytes_of(home)
    with pytest.raises(TessellaError):
        publish(make_plan(home, k=500), overwrite=True)
    assert bytes_of(home) == before


@pytest.mark.parametrize("late", ["release.csv", "internal.html", "report.html", "manifest.json"])
def test_a_file_that_appears_on_the_way_stops_all_of_it(home, late):
    def watch(done, total, name):
        if name == "write":
            (home / late).write_text("somebody else's")

    with pytest.raises(BadFileError, match="the file exists"):
        publish(make_plan(home), progress=watch, pictures=False)
    assert new_files(home) == {late}
    assert (home / late).read_text() == "somebody else's"


def test_what_is_not_a_plan_is_refused():
    with pytest.raises(BadOptionError, match="a plan file"):
        publish({"steps": []})


def test_refused_is_an_error_of_its_own():
    assert issubclass(RefusedError, TessellaError)


def test_a_search_that_was_stopped_is_no_release(home, monkeypatch):
    """Bug once met: Ctrl-C in the search went on to publish the best grouping that it had."""

    def stopped(*_):
        raise KeyboardInterrupt

    plan = make_plan(home)
    (*_, step) = plan.steps
    options = {
        name: own for name, own in step.options.items() if name not in ("grouping", "options")
    }
    plan = plan.model_copy(update={"steps": [*plan.steps[:-1], replace(step, options=options)]})
    before = {path.name for path in home.iterdir()}
    monkeypatch.setattr(Search, "_search_whole", stopped)
    monkeypatch.setattr(Search, "_search_windows", stopped)
    with pytest.raises(KeyboardInterrupt):
        publish(plan)
    assert {path.name for path in home.iterdir()} == before


def test_a_kept_order_is_a_warning_and_every_record_is_named_by_its_place(home):
    with pytest.warns(TessellaWarning, match='order = "shuffled"'):
        done = publish(make_plan(home, order="kept", risk="quick"), pictures=False)
    assert done.risk["order"].value == 1.0
    done = publish(make_plan(home, order="shuffled", risk="quick"), overwrite=True, pictures=False)
    assert done.risk["order"].value < 0.2
    text = make_plan(home).to_toml().replace('order = "kept"\n', "")
    assert parse_plan(text, folder=home).output.order == "shuffled"


# What the account says


def test_the_account_says_how_many_records_broke_a_rule(home):
    done = publish(make_plan(home))
    firms, rules = pd.read_csv(home / "firms.csv"), Rules.read(home / "rules.txt")
    broke = len(rules.confront(firms).breaking())
    assert broke > 0
    said = f"Rules: all {len(rules)} hold; {broke} of {len(firms)} records broke one before."
    assert said in str(done)
    corrected = rules.confront(firms).breaking()
    firms.drop(index=corrected).to_csv(home / "firms.csv", index=False)
    again = publish(make_plan(home), overwrite=True)
    assert f"Rules: all {len(rules)} hold.\n" in str(again)


def test_a_condition_that_no_record_can_meet_is_warned_of(home):
    with (home / "rules.txt").open("a") as file:
        file.write("\nif employees > 100000: employees < 3\n")
    done = publish(make_plan(home))
    (said,) = [one for one in done.warnings if "can obey it" in one]
    assert "employees < 3" in said
    assert said.endswith("No released record meets this condition.")


UNITS = """
[input]
file = "people.csv"
[columns.hh]
kind = "integer"
role = "unit"
[columns.name]
kind = "nominal"
role = "identifier"
[columns.age]
kind = "integer"
[columns.income]
kind = "continuous"
[columns.land]
kind = "nominal"
[columns.health]
kind = "nominal"
role = "confidential"
[columns.w]
kind = "continuous"
role = "weight"
[[steps]]
method = "drop"
columns = ["name"]
[[steps]]
method = "protect"
k = 3
strata = ["land"]
grouping = "mdav"
[measures]
risk = "none"
[output]
file = "release.csv"
units = "{units}"
"""


@pytest.mark.parametrize("units", ["left out", "renumbered"])
def test_the_account_names_all_columns_left_out_and_released_as_they_are(tmp_path, units):
    """A bug once met: the unit was left out, and the weight released, without a word."""
    draw, n = np.random.default_rng(1), 120
    pd.DataFrame({
        "hh": np.repeat(np.arange(n // 2), 2), "name": [f"p{i}" for i in range(n)],
        "age": np.repeat(draw.integers(16, 90, n // 2), 2),
        "income": np.repeat(draw.lognormal(3, 1, n // 2).round(1), 2),
        "land": np.repeat(["a", "b"], n // 2), "health": draw.choice(list("xyz"), n),
        "w": draw.choice([1.5, 2.0], n),
    }).to_csv(tmp_path / "people.csv", index=False)  # fmt: skip
    said = str(publish(parse_plan(UNITS.format(units=units), folder=tmp_path)))
    there = set(pd.read_csv(tmp_path / "release.csv"))
    unit = ", hh (the units that k counts)" if units == "left out" else ""
    assert ("hh" in there) == (units == "renumbered")
    assert f"\nNot released: name{unit}.\n" in said
    assert (
        "\nReleased as they are, and not counted in k: health, w (they can help to identify).\n"
        "Strata, released as they are: land.\n"
    ) in said
