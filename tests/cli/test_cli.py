"""The command line: quick to help, honest in the demo, exit codes that a script can use."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import tessella
from tessella import Rules
from tessella.cli import app, main
from tessella.cli.terminal import as_json, columns_of, options_of
from tessella.datasets import make_business_survey
from tessella.exceptions import BadOptionError, BadTableError, CommandError, TessellaError
from tessella.planfile import read_plan

COMMANDS = [
    "demo", "warm-up", "check", "plan", "protect", "loss", "risk", "explore", "report", "verify",
    "schema", "app", "suggest",
]  # fmt: skip
FIRMS = 100


def run(*arguments: str, code: int = 0) -> str:
    """Run a command in this process; return what it printed as its result."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def error_of(capsys: Any, monkeypatch: Any, *arguments: str, code: int = 2) -> str:
    """The error of a command that must fail, on one line."""
    monkeypatch.setattr(sys, "argv", ["tessella", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == code
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a survey, its rules, and a release."""
    folder = tmp_path_factory.mktemp("cli")
    firms, rules = make_business_survey(
        FIRMS, random_state=0, inconsistent=0.02, weights=False, return_rules=True
    )
    firms.to_csv(folder / "firms.csv", index=False)
    (folder / "rules.txt").write_text("\n".join(rules))
    run(
        "protect", str(folder / "firms.csv"), "-k", "4", "--rules", str(folder / "rules.txt"),
        "--seed", "1", "--quiet",
    )  # fmt: skip
    return folder


# Help


def test_version_and_help() -> None:
    assert run("--version").strip() == f"tessella {tessella.__version__}"
    assert run("-h") == run("--help")
    for command in COMMANDS:
        assert command in run("--help")
        assert "Usage" in run(command, "--help")


# From file to release


def test_dominance_on_the_command_line(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    income = [*(1000 + 7 * i for i in range(59)), 987_654_321]
    file = tmp_path / "t.csv"
    pd.DataFrame({"income": income, "age": [20 + i % 40 for i in range(60)]}).to_csv(file)
    plan = tomllib.loads(run("plan", str(file), "-k", "3", "--dominance", "n=1,k=85", "-q",
                             "--on-dominance", "enlarge"))  # fmt: skip
    assert plan["steps"][-1]["dominance"] == {"n": 1, "k": 85}
    assert plan["steps"][-1]["on_dominance"] == "enlarge"
    command = ["protect", str(file), "-k", "3", "-q"]
    assert "income" in error_of(capsys, monkeypatch, *command, "--on-dominance", "refuse", code=1)
    assert not (tmp_path / "t-release.csv").exists()
    for wrong in ("x", "p=", "n=1", "110", "n=1.5,k=85"):
        text = error_of(capsys, monkeypatch, *command, "--dominance", wrong)
        assert "--dominance" in text
        assert "n=1,k=85" in text
    text = error_of(capsys, monkeypatch, *command, "--on-dominance", "warn")
    assert "report, enlarge or refuse" in text
    text = error_of(capsys, monkeypatch, "protect", "--plan", "p.toml", "--dominance", "10")
    assert "Leave out --dominance: the plan says it" in text


def test_check_tells_who_breaks_which_rule(home: Path) -> None:
    """Independent: confront the table here."""
    text = run("check", str(home / "firms.csv"), "--rules", str(home / "rules.txt"), code=1)
    firms = pd.read_csv(home / "firms.csv")
    found = Rules.read(home / "rules.txt").confront(firms)
    for rule, rows in zip(found.rules, found.rows):
        said = f"broken by {len(rows)} of {FIRMS}" if len(rows) else "holds"
        assert re.search(rf"{rule.name} +{said}", text)
    first = int(found.breaking()[0]) + 1
    assert f"records {first}" in text
    data = json.loads(
        run("check", str(home / "firms.csv"), "--rules", str(home / "rules.txt"), "--json", code=1)
    )
    assert [rule["broken"] for rule in data["rules"]] == [len(rows) for rows in found.rows]
    assert run("check", str(home / "firms.csv")).startswith(f"{FIRMS} records, 13 columns")


def test_schema_for_a_plan(home: Path) -> None:
    known = tomllib.loads(run("schema", str(home / "firms.csv"), "--toml"))["columns"]
    assert known["firm"]["role"] == "identifier"
    assert known["export_share"]["kind"] == "continuous"
    assert json.loads(run("schema", str(home / "firms.csv"), "--json"))["firm"]["why"]


def test_plan_then_protect_then_verify(home: Path, tmp_path: Path) -> None:
    source = str(home / "firms.csv")
    text = run("plan", source, "-k", "4", "--rules", str(home / "rules.txt"), "--seed", "1")
    assert tomllib.loads(text)["seed"] == 1
    plan = tmp_path / "plan.toml"
    run("plan", source, "-k", "4", "-r", str(home / "rules.txt"), "--seed", "1", "-o", str(plan))
    told = json.loads(run("protect", "--plan", str(plan), "--json"))
    assert {"release", "external report", "internal report", "manifest"} <= set(told["files"])
    again = tmp_path / "firms-release.csv"
    assert again.read_bytes() == (home / "firms-release.csv").read_bytes()  # same plan, same seed
    manifest = told["files"]["manifest"]
    good = json.loads(run("verify", source, str(again), "--manifest", manifest, "--json"))
    assert good["problems"] == []
    spoilt = pd.read_csv(again)
    spoilt.loc[0, "turnover"] += 1
    spoilt.to_csv(tmp_path / "spoilt.csv", index=False)
    problems = json.loads(
        run("verify", source, str(tmp_path / "spoilt.csv"), "-k", "4", "--json", code=1)
    )
    assert problems["problems"]


def test_roles_as_sdcmicro_states_them(home: Path) -> None:
    text = run(
        "plan", str(home / "firms.csv"), "-k", "3", "--keys", "region, branch", "--numeric-keys",
        "employees,turnover", "--confidential", "profit", "--others", "untouched",
    )  # fmt: skip
    known = tomllib.loads(text)["columns"]
    roles = {name: column["role"] for name, column in known.items()}
    assert roles["region"] == roles["turnover"] == "quasi-identifier"
    assert (roles["profit"], roles["wages"], roles["firm"]) == (
        "confidential", "untouched", "identifier",
    )  # fmt: skip


def test_loss_and_risk_of_files(home: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    run("plan", str(home / "firms.csv"), "-k", "4", "--seed", "1", "-o", str(plan))
    plan.write_text(plan.read_text().replace('order = "shuffled"', 'order = "kept"'))
    run("protect", "--plan", str(plan), "--quiet")
    both = [str(home / "firms.csv"), str(tmp_path / "firms-release.csv")]
    text = run("loss", *both)
    assert "sse_sst" in text
    assert "Estimates beside their sampling errors: " in text
    for command in ("loss", "risk"):  # in random order: figures would be wrong
        with pytest.raises(BadTableError, match="in random order"):
            run(command, both[0], str(home / "firms-release.csv"))
    plain = json.loads(run("loss", *both, "--json"))
    planned = json.loads(run("loss", *both, "--plan", str(plan), "--json"))
    assert plain["losses"] == planned["losses"]  # the manifest tells as much
    losses = json.loads(run("loss", *both, "--json", "--columns", "turnover,wages"))
    names = {one["name"] for one in losses["estimates"]["estimates"]}
    assert {"mean of turnover", "Gini coefficient of wages"} <= names
    who = tmp_path / "who.csv"
    found = json.loads(
        run("risk", *both, "--known", "employees,turnover,region", "--effort", "quick", "--json",
            "--records", str(who))
    )  # fmt: skip
    assert 0 <= found["value"] <= 1
    frame = pd.read_csv(who)
    assert len(frame) == FIRMS
    best = max(a["value"] for a in found["attacks"] if a["about"] == "identity")
    assert found["value"] == best


def test_a_plan_undoes_the_random_order(tmp_path: Path, home: Path) -> None:
    """`loss`, `risk` and `verify` give what the plan reported; by chance they would be far off."""
    plan, source = tmp_path / "plan.toml", str(home / "firms.csv")
    run("plan", source, "-k", "4", "-r", str(home / "rules.txt"), "-o", str(plan))
    done = json.loads(run("protect", "--plan", str(plan), "--json"))
    files = [source, done["files"]["release"], "--plan", str(plan)]
    losses = json.loads(run("loss", *files, "--json"))
    reported = json.loads(Path(done["files"]["summary"]).read_text())["confidential"]["loss"]
    assert [one["value"] for one in losses["losses"]] == pytest.approx(
        [one["value"] for one in reported], rel=1e-3
    )
    found = json.loads(run("risk", *files, "--json"))
    first, again = ([{**a, "seconds": 0} for a in f["attacks"]] for f in (done["risk"], found))
    assert first == again
    verified = json.loads(run("verify", *files, "--json"))
    assert (verified["problems"], verified["aligned"]) == ([], True)
    assert verified["loss"]["losses"] == losses["losses"]
    blind = json.loads(run("verify", *files[:2], "--json"))  # by the manifest beside it
    assert (blind["problems"], blind["aligned"]) == ([], False)
    with pytest.raises(CommandError, match="the plan says it"):
        run("verify", *files, "-k", "4")


def test_reports_again_from_a_summary(home: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    run("plan", str(home / "firms.csv"), "-k", "4", "--seed", "1", "-o", str(plan))
    run("protect", "--plan", str(plan), "--quiet")
    out, own = tmp_path / "again.html", tmp_path / "own.html"
    summary = str(tmp_path / "firms-release-summary.json")
    run("report", summary, "--external", str(out), "--internal", str(own), "--quiet")
    assert out.read_bytes() == (tmp_path / "firms-release-report.html").read_bytes()
    assert own.read_bytes() == (tmp_path / "firms-release-confidential.html").read_bytes()


def test_explore_a_file(tmp_path: Path) -> None:
    firms = make_business_survey(80, random_state=0)[["employees", "turnover", "wages"]]
    firms.to_csv(tmp_path / "firms.csv", index=False)
    text = run(
        "explore", str(tmp_path / "firms.csv"), "-k", "3", "--budget", "8", "--seed", "1", "--out",
        str(tmp_path / "map.parquet"), "--picture", str(tmp_path / "map.svg"), "--max-risk", "100",
    )  # fmt: skip
    assert "Best:" in text
    (tmp_path / "plan.toml").write_text(
        '[input]\nfile = "firms.csv"\n' + text[text.index("[[steps]]") :]
        + '[output]\nfile = "release.csv"\n'
    )  # fmt: skip
    run("protect", "--plan", str(tmp_path / "plan.toml"))  # as it was printed
    assert (tmp_path / "release.csv").exists()
    assert len(pd.read_parquet(tmp_path / "map.parquet")) >= 1
    assert (tmp_path / "map.svg").read_text().startswith("<?xml")


# The demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("demo") / "new"
    return run("demo", "--n", "400", "--method", "mdav", "--out", str(folder)), folder


def test_the_demo_ends_with_a_release_and_two_reports(demo: tuple[str, Path]) -> None:
    text, folder = demo
    assert {path.name for path in folder.iterdir()} == {
        "firms.csv", "firms-corrected.csv", "rules.txt", "plan.toml", "firms-release.csv",
        "firms-release-report.html", "firms-release-confidential.html",
        "firms-release-manifest.json", "firms-release-summary.json",
    }  # fmt: skip
    for title in (
        "First, wrong figures",
        "What was done",
        "Rules",
        "Groups",
        "Loss",
        "Risk",
        "Files",
        "Turnover before and after",
        "Try next",
    ):
        assert f"\n{title}" in text


def test_the_figures_of_the_demo_are_those_of_the_files(demo: tuple[str, Path]) -> None:
    """Independent: count in the files with pandas."""
    text, folder = demo
    flat = " ".join(text.split())
    before, corrected, after = (
        pd.read_csv(folder / f"{n}.csv") for n in ("firms", "firms-corrected", "firms-release")
    )
    masked = [name for name in after if name != "weight"]
    least = int(after.groupby(masked, dropna=False).size().min())
    assert least >= 5
    assert f"occurs at least {least} times" in flat
    numbers = ["wages", "costs", "turnover", "profit", "materials", "other_costs"]
    changed = (before[numbers] != corrected[numbers]) & before[numbers].notna()
    assert before.drop(columns=numbers).equals(corrected.drop(columns=numbers))
    assert changed.sum(axis=1).max() == 1  # a slip is one number of a record
    assert f"For {changed.any(axis=1).sum()} of them, one figure alone" in flat
    apart = (before[numbers] - corrected[numbers]) ** 2
    moved = 100 * apart.sum() / (len(before) * before[numbers].var(ddof=0))
    assert f"removes {moved.max():.0f} % of the variation of {moved.idxmax()}" in flat
    assert re.search(r"wages == hours \* hourly_rate +│ +0 │ +0 │", text)
    known = after[["wages", "hours", "hourly_rate"]].dropna()
    assert (known["wages"] == known["hours"] * known["hourly_rate"]).all()
    assert list(before.drop(columns="firm")) == list(after)


def test_the_demo_runs_again_in_the_same_folder(demo: tuple[str, Path]) -> None:
    _, folder = demo
    before = (folder / "firms-release.csv").read_bytes()
    run("demo", "--n", "400", "--method", "mdav", "--out", str(folder), "--overwrite")
    assert (folder / "firms-release.csv").read_bytes() == before


def test_check_writes_a_corrected_file(tmp_path: Path) -> None:
    """By hand: 45,000 is 45; the original and other formats of cells stay."""
    (tmp_path / "t.csv").write_text("name;net;tax;gross\nanna;80;20;100\nbert;45000;15;60\n")
    (tmp_path / "r.txt").write_text("net + tax == gross\n")
    given = ["check", str(tmp_path / "t.csv"), "--rules", str(tmp_path / "r.txt"), "--correct"]
    text = run(*given, str(tmp_path / "c.csv"), code=1)
    assert "row 2: net 45,000 must be 45: 1,000 times too large" in text
    lines = (tmp_path / "c.csv").read_text().replace('"', "").splitlines()
    assert lines == ["name;net;tax;gross", "anna;80;20;100", "bert;45;15;60"]
    assert "45000" in (tmp_path / "t.csv").read_text()
    again = CliRunner().invoke(app, [*given, str(tmp_path / "c.csv")])
    assert again.exit_code != 0
    assert "exists" in str(again.exception)
    own = CliRunner().invoke(app, [*given, str(tmp_path / "t.csv"), "--overwrite"])
    assert own.exit_code != 0
    assert "45000" in (tmp_path / "t.csv").read_text()


# Errors


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["demo", "--k", "1"], "--k 1 protects nobody"),
        (["demo", "--n", "50", "--k", "51"], "needs at least 51 records"),
        (["demo", "--n", "0"], "--n 0 cannot be used"),
        (["demo", "--seed", "-1"], "--seed -1 cannot be used"),
        (["demo", "--n", "60", "--method", "magic"], "--method magic is not known"),
        (["demo", "--k", "five"], "Invalid value for '--k'"),
        (["demo", "--speed"], "No such option"),
        (["mask-everything"], "No such command"),
        (["check", "none.csv"], "no file"),
        (["protect"], "tessella protect needs a plan (--plan PLAN)"),
        (["protect", "a.csv", "--plan", "b.toml"], "Leave out FILE: the plan says it"),
        (["protect", "--plan", "none.toml"], "There is no plan 'none.toml'"),
        (["report", "none.json"], "--external FILE, --internal FILE, or both"),
        (["report", "none.json", "--external", "x.html"], "There is no file"),
        (["plan", "one.csv", "-k", "3"], "the table has 1 record. No k is small enough"),
        (["protect", "one.csv", "-k", "3"], "the table has 1 record. No k is small enough"),
        (["explore", "a.csv", "-k", "three"], "whole numbers between commas"),
    ],
)  # fmt: skip
def test_bad_usage_is_a_sentence_and_exit_code_2(
    capsys: Any, monkeypatch: Any, tmp_path: Path, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("income,age\n1200,34\n")
    assert reason in error_of(capsys, monkeypatch, *arguments)
    made = [path for path in tmp_path.rglob("*") if path.is_file() and "release" in path.name]
    assert not made


def test_a_refusal_is_exit_code_1_and_nothing_is_written(
    capsys: Any, monkeypatch: Any, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "rules.txt").write_text("turnover >= 10\nturnover <= 5\n")
    text = error_of(
        capsys, monkeypatch, "protect", str(home / "firms.csv"), "-k", "4", "--rules",
        str(tmp_path / "rules.txt"), "--release", str(tmp_path / "out.csv"), code=1,
    )  # fmt: skip
    assert "No record can keep these rules" in text
    assert [path.name for path in tmp_path.iterdir()] == ["rules.txt"]


def test_options_by_hand() -> None:
    given = ["delimiter=tab", "decimal=comma", 'columns=a,"b,c"', "skip=2"]
    assert options_of(given) == {
        "delimiter": "\t", "decimal": ",", "columns": ["a", "b,c"], "skip": 2,
    }  # fmt: skip
    for wrong in ("decimal", "=x", "skip=two", "header=maybe"):
        with pytest.raises(BadOptionError):
            options_of([wrong])
    assert columns_of("a, b") == ["a", "b"]
    assert json.loads(as_json({"a": float("nan"), 1: (1, None)})) == {"a": None, "1": [1, None]}


# Real processes


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tessella", *arguments]


def test_result_and_talk_go_apart(home: Path) -> None:
    done = subprocess.run(
        command("plan", str(home / "firms.csv"), "-k", "4"),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert tomllib.loads(done.stdout)["version"] == 1
    assert "Reading firms.csv" in done.stderr
    quiet = CliRunner().invoke(app, ["plan", str(home / "firms.csv"), "-k", "4", "--quiet"])
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


def test_an_interruption_that_became_another_error(capsys: Any, monkeypatch: Any) -> None:
    """Bug once met: Ctrl-C while numba loads a kernel comes out as a SystemError."""

    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as cause:
            raise SystemError("returned a result with an exception set") from cause

    monkeypatch.setattr("tessella.cli.app", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert "Stopped" in capsys.readouterr().err
    monkeypatch.setattr("tessella.cli.app", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main()


# A background shell ignores SIGINT, and so do the processes that it starts.
INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tessella.cli import main
main()
"""


def test_interrupted_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C in the middle: exit code 130, no file, no traceback."""
    firms = make_business_survey(20_000, random_state=0).drop(columns="firm")
    firms.to_csv(tmp_path / "firms.csv", index=False)
    log = tmp_path / "said.txt"
    with log.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTIBLE, "protect", str(tmp_path / "firms.csv"), "-k", "4",
             "--release", str(tmp_path / "out.csv")],
            stderr=said, stdout=said,
        )  # fmt: skip
        try:
            while "Masking and measuring" not in log.read_text():  # it masks: imports are over then
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            code = process.wait()
        finally:
            process.kill()
            process.wait()
    text = log.read_text()
    assert code == 130, text
    assert "Traceback" not in text
    assert "Stopped" in text
    assert {path.name for path in tmp_path.iterdir()} == {"firms.csv", "said.txt"}


def test_a_grouping_and_its_options(home: Path, tmp_path: Path) -> None:
    run(
        "plan", str(home / "firms.csv"), "-k", "4", "--rules", str(home / "rules.txt"),
        "--grouping", "fuzzy", "--option", "m2=1.4", "--option", "at_least_k=false",
        "-o", str(tmp_path / "plan.toml"),
    )  # fmt: skip
    step = read_plan(tmp_path / "plan.toml").steps[-1]
    assert step.options["grouping"] == "fuzzy"
    assert step.options["options"] == {"m2": 1.4, "at_least_k": False}


def test_suggest_prints_rules_that_can_be_checked(home: Path, tmp_path: Path) -> None:
    printed = run("suggest", str(home / "firms.csv"), "-q")
    assert printed.splitlines()[0].startswith(
        "costs == wages + materials + other_costs  # holds in"
    )
    out = tmp_path / "found.rules"
    run("suggest", str(home / "firms.csv"), "-q", "--out", str(out))
    assert out.read_text() == printed
    assert "holds" in run("check", str(home / "firms.csv"), "--rules", str(out), code=1)
    data = json.loads(run("suggest", str(home / "firms.csv"), "--json"))
    assert [one["rule"] for one in data["suggestions"]] == [r.text for r in Rules.parse(printed)]
    rest = run("suggest", str(home / "firms.csv"), "-q", "--rules", str(home / "rules.txt"))
    assert 0 < len(rest.splitlines()) < len(printed.splitlines())
    assert "costs == wages" not in rest


def test_suggest_overwrites_nothing(home: Path, capsys: Any, monkeypatch: Any) -> None:
    table, rules = str(home / "firms.csv"), str(home / "rules.txt")
    assert "this is the table" in error_of(capsys, monkeypatch, "suggest", table, "--out", table)
    assert "--overwrite" in error_of(capsys, monkeypatch, "suggest", table, "--out", rules)
    assert "holds" in error_of(capsys, monkeypatch, "suggest", table, "--holds", "2")


# What is there already is not replaced, and what was read never is


def refusal(*arguments: str) -> str:
    """The words of an error, as the command line prints them."""
    result = CliRunner().invoke(app, list(arguments))
    assert isinstance(result.exception, TessellaError), result.output
    return str(result.exception)


@pytest.fixture
def inputs(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files that nobody could get back: a table, rules, a plan, what it released."""
    monkeypatch.chdir(tmp_path)
    firms = pd.read_csv(home / "firms.csv")[["region", "employees", "turnover"]]
    firms.to_csv("firms.csv", index=False)
    Path("rules.txt").write_text("employees >= 0\n")
    run("plan", "firms.csv", "-k", "4", "--rules", "rules.txt", "--option", "effort=quick",
        "-o", "plan.toml", "-q")  # fmt: skip
    text = Path("plan.toml").read_text().replace('risk = "quick"', 'risk = "none"')
    Path("plan.toml").write_text(text)
    run("protect", "--plan", "plan.toml", "-q")
    return tmp_path


def refused_for_good(names: Iterable[str], *arguments: str) -> None:
    """Refuse each file as the last argument, with --overwrite too; it stays as it was."""
    for name in names:
        before = Path(name).read_bytes()
        assert f"{name}: this is the " in refusal(*arguments, name)
        assert f"{name}: this is the " in refusal(*arguments, f"./{name}", "--overwrite")
        assert Path(name).read_bytes() == before


def test_explore_replaces_nothing_unasked_and_no_input_ever(inputs: Path) -> None:
    """A bug once met: the plan was replaced by steps, without a question."""
    for option, place, link in (("--out", "best.toml", "t.toml"), ("--picture", "a.svg", "t.svg")):
        Path(link).hardlink_to("firms.csv")
        wish = ["explore", "firms.csv", "-k", "3", "--budget", "3", "--columns", "turnover"]
        Path(place).write_text("mine")
        assert "Give another name, or --overwrite to replace it" in refusal(*wish, option, place)
        refused_for_good([link], *wish, option)
        refused_for_good([link], "explore", "--plan", "plan.toml", option)
        said = CliRunner().invoke(app, [*wish, option, place, "--overwrite"])
        assert said.exit_code == 0
        assert f"{place} is written." in said.stderr
        assert Path(place).read_text() != "mine"
    refused_for_good(["plan.toml"], "explore", "--plan", "plan.toml", "--out")
    Path("rules.toml").hardlink_to("rules.txt")
    refused_for_good(["rules.toml"], "explore", "firms.csv", "--rules", "rules.toml", "--out")
    refused_for_good(["rules.toml"], "explore", "--plan", "plan.toml", "--out")
    said = CliRunner().invoke(app, [*wish, "--out", "new.parquet"])
    assert "new.parquet is written." in said.stderr


def test_the_demo_replaces_nothing_unasked(inputs: Path) -> None:
    """A bug once met: in a folder with a firms.csv or a plan.toml, these became the demo's."""
    for name in ("firms.csv", "rules.txt", "plan.toml", "firms-release.csv"):
        before = Path(name).read_bytes()
        said = refusal("demo", "-n", "60", "--out", ".")
        assert f"{name}: the file exists. Give another --out, or --overwrite" in said
        assert Path(name).read_bytes() == before
        Path(name).unlink()


def test_steps_of_explore_say_where_they_belong(inputs: Path) -> None:
    """A bug once met: the file had steps alone, and did not say that it is a part of a plan."""
    wish = ["explore", "firms.csv", "-k", "3", "--budget", "3", "--columns", "turnover", "-q"]
    run(*wish, "-o", "plan-2.toml")
    text = Path("plan-2.toml").read_text()
    assert text.startswith("# The steps of the best candidate that tessella explore found.")
    assert "    tessella plan firms.csv -k 3 -o plan-3.toml\n" in text  # plan-2 is this file
    assert tomllib.loads(text).keys() == {"steps"}
    run("explore", "--plan", "plan.toml", "-k", "3", "--budget", "3", "-q", "-o", "best.toml")
    comment, _, steps = Path("best.toml").read_text().partition("\n\n")
    assert "in place of all [[steps]] of plan.toml." in comment
    assert "tessella plan " not in comment
    plan = re.sub(r"\[\[steps\]\].*(?=\[measures\])", "", Path("plan.toml").read_text(), flags=re.S)
    Path("plan.toml").write_text(plan.replace("[measures]", steps + "\n[measures]"))
    run("protect", "--plan", "plan.toml", "--overwrite", "-q")


def test_no_command_replaces_what_it_reads(inputs: Path) -> None:
    """A bug once met: the table became a plan, or a report, with --overwrite."""
    table, rules = "firms.csv", "rules.txt"
    refused_for_good([table, rules], "plan", table, "-k", "3", "--rules", rules, "--out")
    refused_for_good([table, rules], "check", table, "--rules", rules, "--correct")
    refused_for_good([table, rules], "suggest", table, "--rules", rules, "--out")
    summary = "firms-release-summary.json"
    named = [summary, table, rules, "firms-release.csv", "firms-release-manifest.json"]
    for option in ("--external", "--internal"):
        refused_for_good(named, "report", summary, option)
        # A summary does not know the plan's own name, nor where a copy is.
        Path("moved.csv").write_bytes(Path(table).read_bytes())
        for other in ("plan.toml", "moved.csv"):
            before = Path(other).read_bytes()
            said = refusal("report", summary, option, other, "--overwrite")
            assert f"{other}: it is no report" in said
            assert Path(other).read_bytes() == before
    page = Path("firms-release-report.html").read_bytes()
    Path("firms-release-report.html").write_bytes(page[:100])
    run("report", summary, "--external", "firms-release-report.html", "--overwrite", "-q")
    assert Path("firms-release-report.html").read_bytes() == page


def test_records_replace_nothing_unasked_and_no_input_ever(inputs: Path) -> None:
    """A bug once met: the message proposed overwrite=True, which no command line has."""
    wish = ["risk", "firms.csv", "firms-release.csv", "--plan", "plan.toml", "--effort", "quick"]
    Path("who.csv").write_text("mine")
    said = refusal(*wish, "--records", "who.csv")
    assert said.endswith("Give another name, or --overwrite to replace it.")
    refused_for_good(["firms.csv", "firms-release.csv"], *wish, "--records")
    summary = Path("firms-release-summary.json").rename("s.csv")  # whatever it is called
    named = Path("plan.toml").read_text().replace("firms-release-summary.json", summary.name)
    Path("plan.toml").write_text(named)
    refused_for_good(["s.csv"], *wish, "--records")
    run(*wish, "--records", "who.csv", "--overwrite", "-q")
    assert len(pd.read_csv("who.csv")) == FIRMS


def test_a_release_does_not_replace_a_hierarchy(inputs: Path) -> None:
    """By hand: the file of a hierarchy is read, as the rules are."""
    forms = 'hierarchies = { region = { file = "h.csv" } }'
    Path("h.csv").write_text("north;all\nsouth;all\n")
    Path("h.toml").write_text(
        f'[input]\nfile = "firms.csv"\n[[steps]]\nmethod = "recoding"\nk = 3\n{forms}\n'
        '[output]\nfile = "h.csv"\n'
    )
    assert "this is the hierarchy h.csv" in refusal("protect", "--plan", "h.toml", "--overwrite")
