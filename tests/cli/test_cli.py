"""The command line: quick to help, honest in the demo, short in its errors."""

from __future__ import annotations

import re
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

import tessella
from tessella import Rules, protect
from tessella.cli import app, main
from tessella.datasets import make_business_survey

QUICK = ["demo", "--n", "300", "--method", "mdav"]


def told(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def error_of(capsys, monkeypatch, *arguments: str) -> str:
    """The error of a command that must fail with exit code 2, on one line."""
    monkeypatch.setattr(sys, "argv", ["tessella", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def test_version_and_help():
    assert told("--version").strip() == f"tessella {tessella.__version__}"
    assert "demo" in told("--help")
    assert told("-h") == told("--help")
    for option in ("--n", "--k", "--seed", "--method"):
        assert option in told("demo", "--help")


@pytest.fixture(scope="module")
def account() -> str:
    return told(*QUICK)


def test_the_demo_tells_all_it_should(account):
    for title in (
        "What is released", "Rules", "Groups", "Loss", "Money columns", "What this does not do",
        "Time",
    ):  # fmt: skip
        assert f"\n{title}" in account
    assert "compiling, once" in account
    assert "every row" in account


def test_the_figures_of_the_demo_are_those_of_the_release(account):
    """Independent: protect the same survey here and compare what is told with what is so."""
    firms, rules = make_business_survey(300, random_state=1, inconsistent=0.02, return_rules=True)
    firms = firms.drop(columns="firm")
    release = protect(
        firms, k=5, rules=rules, strata=["branch"], fit="project", small="merge", method="mdav",
        random_state=1,
    )  # fmt: skip
    sizes = pd.Series(release.labels[0]).value_counts()
    text = " ".join(account.split())
    assert f"{len(sizes)} groups of {sizes.min()} to {sizes.max()} firms" in text
    assert f"{release.loss:.1f} % of the variation" in text
    for name, loss in release.column_loss.items():
        assert re.search(rf"{name} +{loss:.1f} %", account)
    alike = release.table.groupby(list(release.table), observed=True).size().min()
    assert alike >= 5
    assert f"occurs at least {alike} times" in text
    broken = len(Rules(rules).confront(firms).breaking())
    assert f"{broken} firms broke a rule; no released record does" in text
    products = (firms["wages"] != firms["hours"] * firms["hourly_rate"]).sum()
    assert re.search(rf"wages == hours \* hourly_rate +│ +{products} │ +0 │", account)


def test_what_to_try_next_works(account):
    lines = account.partition("Try next")[2].splitlines()[1:]
    code = "\n".join(line.strip() for line in lines if line.strip())
    space: dict[str, object] = {}
    exec(code.replace("k=5", "k=5, method='mdav'"), space)
    assert len(space["release"].table) == 300


def test_a_small_survey_masks_the_branch():
    text = " ".join(told("demo", "--n", "60", "--k", "3", "--method", "mdav").split())
    assert "mode region, branch" in text
    assert "as it is" not in text.partition("Groups")[0]


def test_a_seed_gives_another_survey(account):
    assert told(*QUICK, "--seed", "2") != account


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--k", "1"], "k=1 protects nobody"),
        (["--k", "301"], "needs at least 301 records"),
        (["--k", "10000000000"], "needs at least 10000000000 records"),
        (["--n", "0"], "n=0 cannot be used"),
        (["--seed", "-1"], "random_state=-1 cannot be used"),
        (["--method", "magic"], "method='magic' is not known. Give one of: 'search', 'mdav'"),
        (["--k", "five"], "Invalid value for '--k'"),
        (["--speed"], "No such option"),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_code_2(capsys, monkeypatch, arguments, reason):
    assert reason in error_of(capsys, monkeypatch, *QUICK, *arguments)


def test_no_such_command(capsys, monkeypatch):
    assert "No such command" in error_of(capsys, monkeypatch, "mask-everything")


def test_as_a_real_process():
    command = [sys.executable, "-m", "tessella"]
    run = subprocess.run([*command, *QUICK], capture_output=True, text=True, check=True)
    assert "every row" in run.stdout
    assert run.stderr == ""
    run = subprocess.run(
        [*command, "demo", "--k", "1"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("Error: k=1 protects nobody")
