"""Ten real files with unedited plans: nothing printed names Python, and every command works.

A newcomer follows the tool alone: drafts a plan, runs it as it is, and pastes every command that
is proposed on the way. `PYTHON` in `test_hints` says what no output may have. The files are those
that TESSELLA_DATA names, and some made from them; a made-up survey stands in for them elsewhere.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from typer import BadParameter
from typer.main import get_command
from typer.testing import CliRunner

from tessella import Rules
from tessella.cli import app
from tessella.datasets import make_business_survey
from tessella.datasets.public import data_folders

from .test_hints import message, python_in

GROUP = get_command(app)
UsageError = BadParameter.__bases__[0]
# A command in a sentence ends where the sentence, a bracket or the line does, or a column.
PROPOSED = re.compile(
    r"\btessella (?P<words>[a-z][a-z-]*\b.*?)(?=[.,;:)`](?:\s|$)|[)`]|\s*[│#]|  |$)", re.M
)
OPEN = {"FILE", "PLAN", "K", "SUMMARY", "ORIGINAL", "RELEASE", "RULES", "THIS-FILE", "YOUR.csv"}
# Notes of a Parquet file are listed by their keys, and a writer may have called one after itself.
FACTS = re.compile(r"other notes of the file: left out \(.*\)")
RULE = re.compile(r"^(?![#$ ]).*  # holds in .*$", re.M)  # the language of rules has min(x) by unit


def proposals(text: str) -> Iterator[list[str]]:
    """The commands that a text proposes, in words, without the file that takes the output."""
    text = re.sub(r"^# +|^ *Usage: .*", "", text, flags=re.M)
    for found in PROPOSED.finditer(text):
        words = shlex.split(found["words"].split(" > ")[0])
        if words[0] in GROUP.commands or any(word.startswith("-") for word in words):
            yield words


def refuse_dead(words: list[str]) -> None:
    """Let the command read its own options: it raises for one that it does not have."""
    assert words[0] in GROUP.commands, f"there is no command: tessella {shlex.join(words)}"
    if words[1:]:  # the bare name of a command is a name
        given = ["5" if word == "K" else word for word in words[1:]]
        try:
            GROUP.commands[words[0]].make_context(words[0], given)
        except UsageError as error:
            raise AssertionError(f"tessella {shlex.join(words)}: {error.message}") from None


def looked_at(text: str) -> str:
    """Return what was printed, after a look at every word of it."""
    assert not python_in(RULE.sub("", FACTS.sub("", text))), text
    for words in proposals(text):
        refuse_dead(words)
    return text


def run(*arguments: str, code: int = 0) -> str:
    """Run a command and look at all that it prints; return its result."""
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "400"})
    assert result.exit_code == code, (arguments, result.output, result.exception)
    looked_at(result.output)
    return result.stdout


def read_page(path: Path) -> str:
    """Return the words of a page, without its pictures."""
    page = re.sub(r"<(script|style|svg)\b.*?</\1>", "", path.read_text("utf-8"), flags=re.S)
    return unescape(re.sub(r"<[^>]+>", " ", page))


def follow(file: str, *reading: str) -> str:
    """Go from a file to its release; return the name of the plan."""
    plan = f"{file.split('.')[0]}.toml"
    text = run("plan", file, "-k", "5", *reading, "-q")
    Path(plan).write_text(text)
    outputs = tomllib.loads(text)["output"]
    proposed = list(proposals(text))
    assert [words[0] for words in proposed] == ["protect", "report", "verify"]
    for words in proposed:
        assert not (OPEN - {"THIS-FILE"}) & set(words)  # what the plan knows is no placeholder
        run(*(plan if word == "THIS-FILE" else word for word in words))
    said = run("loss", file, outputs["file"], "--plan", plan)
    assert "Estimates beside their sampling errors" in said
    for what in ("external_report", "internal_report"):
        looked_at(read_page(Path(outputs[what])))
    return plan


def follow_without_plan(file: str, *reading: str) -> None:
    """Run `protect FILE`, and what is proposed where a file exists and where kinds are guessed."""
    wish = ["protect", file, "-k", "3", "--effort", "quick", *reading]
    assert "--overwrite" in looked_at(message(*wish))
    result = CliRunner().invoke(app, [*wish, "--overwrite"], env={"COLUMNS": "400"})
    assert result.exit_code == 0, result.output
    for words in proposals(looked_at(result.output)):
        if OPEN.isdisjoint(words) and words[0] != "warm-up":
            run(*words)
    if "unsure" in result.output:
        assert Path("plan.toml").exists()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# The help


def test_every_command_of_the_help_can_be_pasted() -> None:
    texts = {name: run(name, "--help") for name in GROUP.commands}
    text = run("--help") + "".join(texts.values())
    found = [shlex.join(words) for words in proposals(text)]
    assert {"demo", "check FILE", "plan FILE -k 5", "protect --plan plan.toml"} <= set(found)
    for words in texts.values():
        assert "Usage" in words


def test_a_dead_command_is_found() -> None:
    """By hand: what the check must see, and what is no command."""
    text = "Run it (tessella protect --plan p.toml), then: tessella verify A B -k 5. tessella can."
    assert [words[0] for words in proposals(text)] == ["protect", "verify"]
    assert list(proposals("In a release of tessella none does. tessella warm-up")) == [["warm-up"]]
    for dead in (
        "tessella protcet FILE -k 3",
        "tessella plan FILE --nothing",
        "tessella check a b",
    ):
        with pytest.raises(AssertionError, match=r"no command|No such|unexpected"):
            looked_at(dead)
    for python in ("Give strict=False.", "call assess()", "a PlanError", "rows 0, 1 (from 0)"):
        with pytest.raises(AssertionError):
            looked_at(python)


# Files


def test_a_made_up_survey_from_the_help_to_the_release() -> None:
    firms = make_business_survey(200, random_state=0, inconsistent=0.02, weights=False)
    firms = firms.rename(columns={"branch": "Größe"}).drop(columns="firm")
    firms.to_csv("firms.csv", index=False, sep=";", decimal=",", encoding="latin-1")
    assert "encoding = " in run("plan", "firms.csv", "-k", "5", "-q")
    assert "--read encoding=NAME" in run("check", "firms.csv")
    follow("firms.csv")
    run("suggest", "firms.csv", "-o", "found.rules")
    assert isinstance(Rules.read("found.rules"), Rules)
    result = CliRunner().invoke(app, ["check", "firms.csv", "--rules", "found.rules"])
    looked_at(result.output)
    looked_at(str(message("risk", "firms.csv", "firms-release.csv")))  # in random order
    run("risk", "firms.csv", "firms-release.csv", "--plan", "firms.toml", "--effort", "quick")


def test_the_demo_and_what_it_proposes_next() -> None:
    result = CliRunner().invoke(app, ["demo", "-n", "60", "-o", "a demo"], env={"COLUMNS": "400"})
    assert result.exit_code == 0, result.output
    names = [words[:2] for words in proposals(looked_at(result.output))]
    assert ["explore", "a demo/firms-corrected.csv"] in names
    assert ["app", "a demo"] in names


def test_what_is_unsure_has_a_way_out_without_a_plan() -> None:
    """A bug once met: the warning spoke of lines of a plan that did not exist."""
    table = make_business_survey(120, random_state=0)
    table[["employees", "turnover"]].assign(afnlwgt=range(1000, 1120)).to_csv("t.csv", index=False)
    run("protect", "t.csv", "-k", "3", "--effort", "quick")
    follow_without_plan("t.csv")
    assert Path("plan.toml").exists()
    follow_without_plan("t.csv")  # a bug once met: the name was taken
    assert Path("plan-2.toml").exists()
    result = CliRunner().invoke(app, ["explore", "t.csv", "-k", "3", "--budget", "3"])
    drafted = [words for words in proposals(result.output) if words[0] == "plan"]
    assert [words[-1] for words in drafted] == ["plan-3.toml"]


def test_the_way_to_a_plan_keeps_what_was_asked_for() -> None:
    """A bug once met: the proposed commands forgot rules, strata and the name of the release."""
    firms = make_business_survey(150, random_state=0)
    firms = firms.assign(afnlwgt=range(1000, 1150), turnover=firms.turnover.mask(firms.index == 7))
    firms = firms.assign(remark=["=1+1", "none", "none"] * 50)
    firms[["firm", "region", "employees", "turnover", "afnlwgt", "remark"]].to_csv("firms.csv")
    Path("my.rules").write_text("employees >= 1\n")
    given = ["-k", "3", "--rules", "my.rules", "--strata", "region", "--confidential", "remark",
             "--option", "effort=quick", "--release", "mine.csv"]  # fmt: skip
    result = CliRunner().invoke(app, ["protect", "firms.csv", *given])  # 80 letters wide
    assert result.exit_code == 0, result.output
    assert "The rule holds; 30 of 150 records broke it before." in result.output
    assert re.search(r"^Not released: .*firm", result.output, re.M)
    assert re.search(r"cells suppressed \(.*turnover \d", result.output)
    assert "In the file, formulas: an apostrophe stands before" in result.output
    draft, again = [words for words in proposals(result.output) if words[0] in ("plan", "protect")]
    assert draft == ["plan", "firms.csv", *given, "-o", "plan.toml"]
    before = pd.read_csv("mine.csv").columns.tolist()
    run(*draft)
    plan = tomllib.loads(Path("plan.toml").read_text())
    assert plan["columns"]["remark"]["role"] == "confidential"
    run(*again)
    assert pd.read_csv("mine.csv").columns.tolist() == before
    run("loss", "firms.csv", "mine.csv", "--plan", "plan.toml")  # a column without a value


def data(name: str) -> Path:
    for folder in data_folders():
        if (Path(folder) / name).is_file():
            return Path(folder) / name
    pytest.skip(f"needs {name} in the folder that TESSELLA_DATA names")


def wages(target: str) -> None:
    pd.read_csv(data("people/cps1985.csv")).to_excel(target, index=False)


def power(target: str) -> None:
    pd.read_csv(data("eia.csv")).to_parquet(target)


def survey(target: str) -> None:
    pd.read_csv(data("people/testdata.csv")).to_csv(target, index=False)


def incomes(target: str) -> None:
    """Semicolons, decimal commas, Latin-1 with umlauts in names and cells."""
    table = pd.read_csv(data("census.csv"))
    table = table.rename(columns={"PTOTVAL": "Einkünfte", "FEDTAX": "Größe"})
    towns = ["Köln", "München", "Düsseldorf", "Bonn"]
    table = table.assign(
        Straße=[towns[i * i % 4] for i in range(len(table))], INTVAL=table.INTVAL / 10
    )
    table.to_csv(target, sep=";", decimal=",", encoding="latin-1", index=False)


FILES: dict[str, str | Callable[[str], None]] = {
    "tarragona.csv": "tarragona.csv", "census.csv": "census.csv", "eia.csv": "eia.csv",
    "national2019.csv": "nist/national/national2019.csv", "apistrat.dta": "people/apistrat.dta",
    "cps1985.csv": "people/cps1985.csv", "eus_small.sav": "people/eus_small.sav",
    "eusilc.csv": "people/eusilc.csv", "testdata.csv": "people/testdata.csv",
    "wages.xlsx": wages, "power.parquet": power, "survey.csv.gz": survey, "incomes.csv": incomes,
}  # fmt: skip
ASKED = {"national2019.csv": "--read missing=N"}  # what the tool asks for, to be pasted
SHORT = {"tarragona.csv", "census.csv", "apistrat.dta", "wages.xlsx", "incomes.csv"}


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_a_real_file_from_the_help_to_the_release(file: str) -> None:
    origin, reading = FILES[file], []
    if callable(origin):
        origin(file)
    else:
        Path(file).write_bytes(data(origin).read_bytes())
    if file in ASKED:
        assert ASKED[file] in looked_at(message("plan", file, "-k", "5"))
        reading = shlex.split(ASKED[file])
    run("check", file, *reading)
    follow(file, *reading)
    if file in SHORT:
        follow_without_plan(file, *reading)
        run("suggest", file, *reading)
        run("explore", file, "--budget", "2", *reading)
