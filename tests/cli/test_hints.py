"""Every hint of a command is something to paste: an option or a line of a plan, never Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tessella.cli import app
from tessella.planfile import parse_plan
from tessella.planfile.hints import for_command, for_plan

# What no message of a command may have, and why: whoever reads it may not know Python.
PYTHON = {
    "an argument with a value, or without one (options, --read='x=y', are none)":
        r"(?<![-\w.])[a-z_]+=(?:[\[{\"']|True|False|None|(?=[\s,.;)]))",
    "a call": r"\b[a-z_.]+\((?!s\))[^)]*\)",
    "a value": r"\b(?:None|True|False)\b",
    "a name in a module": r"\btessella\.[a-z]\w*",
    "an error or a warning by its class": r"\b[A-Z]\w+(?:Error|Warning)\b",
    "a type of a column": r"\bdtypes?\b|\b(?:u?int|float)\d+\b|\blarge_string\b|\(object: ",
    "a library": r"\b(?:numpy|pydantic|DataFrame|ndarray)\b",
    "a traceback, or a line of code": r"Traceback|\.py\b|site-packages|^  File ",
    "a library's words for wrong types": r"Input should|unable to parse|valid (?:string|list)\b",
    "rows from 0": r"\(from 0\)",
}  # fmt: skip


def python_in(text: str) -> list[str]:
    """What of Python a text has, each with the reason why it may not."""
    return [
        f"{why}: {found[0]!r}"
        for why, pattern in PYTHON.items()
        for found in re.finditer(pattern, text, re.M)
    ]


PLAN = '[input]\nfile = "{file}"\n{input}\n{rules}\n{steps}\n[output]\nfile = "out.csv"\n'
PROTECT = '[[steps]]\nmethod = "protect"\nk = 3\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files that are read with a hint, and some that cannot be masked as asked."""
    folder = tmp_path_factory.mktemp("hints")
    draw = np.random.default_rng(0)
    table = pd.DataFrame({
        "age": draw.integers(16, 90, 60), "income": draw.normal(1000, 200, 60).round(2),
        "town": draw.choice(list("abc"), 60), "wealth": draw.random(60).round(3),
    })  # fmt: skip
    table.to_csv(folder / "t.csv", index=False)
    table.iloc[:5].to_csv(folder / "few.csv", index=False)
    table.iloc[:50].to_csv(folder / "short.csv", index=False)
    table.assign(income=table.income.where(table.index != 2)).to_csv(
        folder / "lacking.csv", index=False
    )
    mixed = table.astype({"age": object, "income": object})
    mixed.loc[3:9, ["age", "income"]] = "N"
    mixed.to_csv(folder / "mixed.csv", index=False)
    pd.DataFrame(
        {"person_id": range(30), "email": [f"a{i}@b.org" for i in range(30)]}
    ).to_csv(folder / "ids.csv", index=False)  # fmt: skip
    texts = {
        "two signs.csv": "a;b|c\n1;2|3\n1;2|3\n", "no names.csv": "1,2\n3,4\n5,6\n",
        "twice.csv": "a,a\n3,4\n5,6\n", "amount.csv": "a;b\n1.250;x\n1.300;y\n",
        "x.dat": "a,b\n1,2\n", "not.parquet": "a,b\n1,2\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "old.csv").write_bytes(b"name,x\nJos\xe9,1\n\x81,3\n")
    (folder / "binary.csv").write_bytes(np.random.default_rng(0).bytes(500))
    (folder / "header.csv").write_text("age,income\n")
    (folder / "dots.rules").write_text("income.tax > 3\n")
    (folder / "never.rules").write_text("income >= 10\nincome <= 5\n")
    return folder


@pytest.fixture(autouse=True)
def _here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)


def message(*arguments: str) -> str:
    """The error of a command, or what it printed."""
    result = CliRunner().invoke(app, list(arguments))
    error = result.exception
    if error is None or isinstance(error, SystemExit):
        return result.output
    assert type(error).__module__.startswith("tessella"), repr(error)
    return str(error)


BAD = [
    "check mixed.csv", "check 'two signs.csv'", "check 'no names.csv'", "check twice.csv",
    "check amount.csv", "check x.dat", "check not.parquet", "check old.csv",
    "check t.csv --read 'delimiter=;'", "check t.csv --read encoding=utf-16",
    "check t.csv --read thousands=x", "check t.csv --read bogus=x", "check t.csv --read sheet=a",
    "check t.csv --read missing.zzz=1", "check t.csv --read types.zzz=text",
    "plan ids.csv -k 3", "plan t.csv -k 3 --keys town", "plan t.csv -k 3 --unit zzz",
    "plan t.csv -k 3 --weight town --others untouched", "plan t.csv -k 3 --household town",
    "protect few.csv -k 10", "protect t.csv -k 3 --strata income",
    "protect t.csv -k 3 --grouping magic", "protect t.csv -k 3 --grouping univariate",
    "protect t.csv -k 3 --effort odd", "protect t.csv -k 3 --grouping fuzzy --option c=5",
    "protect ids.csv -k 3", "protect t.csv -k 3 -o t.odd", "protect mixed.csv -k 3",
    "verify t.csv short.csv -k 3 --id zzz", "verify t.csv t.csv --id town",
    "loss t.csv short.csv", "loss t.csv 'no names.csv'", "risk t.csv short.csv",
    "risk t.csv t.csv --known zzz", "risk t.csv t.csv --confidential zzz",
    "risk t.csv t.csv --effort quick", "risk t.csv t.csv --id town",
    "explore few.csv -k 10", "explore t.csv --budget soon", "explore t.csv --effort odd",
    "explore ids.csv", "check binary.csv", "check header.csv", "check none.csv", "check .",
    "check t.csv --read foo", "check t.csv --read skip=two", "check t.csv --read columns=zzz",
    "check t.csv --read names=a,b", "check t.csv --read types.age=odd",
    "check t.csv --rules none.rules", "check t.csv --rules .", "check t.csv --rules dots.rules",
    "check t.csv --correct x.csv", "plan t.csv -k five", "plan t.csv -k 3 --seed -1",
    "plan t.csv -k 3 --strata zzz", "plan t.csv -k 3 --keys zzz", "plan t.csv -k 3 -o t.csv",
    "plan t.csv -k 3 --dominance x", "protect", "protect t.csv -k 3 --confidential zzz",
    "protect t.csv -k 3 --option foo=3", "protect t.csv -k 3 --time -1", "protect t.csv --plan p",
    "protect t.csv -k 3 --l 3", "protect t.csv -k 3 --rules never.rules", "protect --plan none",
    "protect --plan binary.csv", "explore", "explore t.csv --columns zzz",
    "explore t.csv --rules never.rules --budget 2", "explore t.csv --out t.odd",
    "explore t.csv --picture t.odd", "explore t.csv --max-risk low", "suggest t.csv --unit zzz",
    "suggest t.csv --holds 2", "verify t.csv binary.csv", "verify t.csv mixed.csv",
    "verify t.csv t.csv --strata zzz", "loss t.csv mixed.csv", "loss t.csv t.csv --columns zzz",
    "risk t.csv t.csv --time-limit -3", "report none.json --external x.html", "report t.csv",
    "report t.csv --external x.html", "chek t.csv", "check t.csv --colour",
]  # fmt: skip

STEPS = {
    "missing": (PROTECT + 'on_missing = "error"\n', 'on_missing = "pattern"'),
    "univariate": (PROTECT + 'grouping = "univariate"\n', "blocks = 1"),
    "moments": (
        '[[steps]]\nmethod = "noise"\namount = 0.1\nkeep_moments = true\n'
        'columns = ["age", "income", "wealth"]\n' + PROTECT, "keep_moments = false",
    ),
    "fuzzy": (
        PROTECT + 'grouping = "fuzzy"\noptions = { c = 5 }\n',
        "options = { at_least_k = false }",
    ),
    "edit": (PROTECT + 'edit = "refuse"\n', 'edit = "fix"'),
    "identifiers": (PROTECT, 'columns = ["person_id", "email"]'),
    "column as a text": (PROTECT + 'columns = "age"\n', 'columns = ["age"]'),
    "dominance": (PROTECT + 'dominance = "ten"\n', "{ n = 1, k = 85 }"),
    "method": ('[[steps]]\nmethod = "noise"\namount = 0.1\n', "The method 'noise' masks numbers"),
    "grouping": (PROTECT + 'grouping = "magic"\n', "'univariate', 'fuzzy', 'overlapping'"),
    "option": (PROTECT + 'options = { effrt = "quick" }\n', "Give one of: 'effort', 'time_limit'."),
    "twice": (PROTECT + "[output]\n", "Cannot declare [output] twice"),
    "seed": (PROTECT + "[measures]\ntime_limit = \"long\"\n", "It must be a number."),
    "lists": (PROTECT + "[columns.age]\nkind = \"integer\"\nmissing = 99\n", "It must be a list"),
    "recode": ('[[steps]]\nmethod = "recode"\ncolumn = "town"\n' + PROTECT, "breaks = [10, 20]"),
}  # fmt: skip


@pytest.mark.parametrize("words", BAD)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_message_of_a_command_has_python(words: str) -> None:
    text = message(*shlex.split(words))
    assert not python_in(text), text


@pytest.mark.parametrize("wish", ["-k 1", "-k 61", "-k 3 --grouping magic"])
def test_no_plan_is_drafted_for_what_cannot_be(wish: str) -> None:
    result = CliRunner().invoke(app, ["plan", "t.csv", *shlex.split(wish)])
    assert result.exit_code != 0
    assert "[[steps]]" not in result.output


@pytest.mark.parametrize("name", STEPS)
def test_messages_of_a_plan_are_lines_of_a_plan(name: str, home: Path) -> None:
    steps, hint = STEPS[name]
    rules = '[rules]\nlines = ["income <= 900"]\n' if name == "edit" else ""
    file = {"missing": "lacking.csv", "moments": "lacking.csv", "identifiers": "ids.csv"}
    text = PLAN.format(file=file.get(name, "t.csv"), input="", rules=rules, steps=steps)
    (home / f"{name}.toml").write_text(text)
    said = message("protect", "--plan", f"{name}.toml")
    assert hint in said
    assert not python_in(said), said


PASTED = {
    "check mixed.csv": ["--read missing=N", "--read missing.age=N", "--read types.age=text"],
    "check 'no names.csv'": ["--read header=false", "--read header=true"],
    "check amount.csv": ["--read decimal=comma", "--read decimal=point"],
    "check x.dat": ["--read format=NAME"],
    "check t.csv --read 'delimiter=;'": ["--read delimiter=comma"],
}


@pytest.mark.parametrize("words", PASTED)
def test_options_for_reading_work_when_they_are_pasted(words: str) -> None:
    """What is left open is filled in: the name of the format."""
    said = message(*shlex.split(words))
    command = " ".join(words.split(" --read")[:1])
    for option in PASTED[words]:
        assert option in said
        filled = option.replace("NAME", "csv")
        if filled == "--read missing.age=N" or "types.age" in filled:
            filled += " --read missing.income=N"  # for each column
        result = CliRunner().invoke(app, shlex.split(f"{command} {filled}"))
        assert result.exit_code == 0, (filled, result.output, result.exception)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_command_in_a_hint_runs(home: Path) -> None:
    """A file of which all columns would be dropped: the command of the hint drafts a plan."""
    said = message("plan", "ids.csv", "-k", "3")
    command = said[said.index("tessella plan") :]
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    assert 'role = "quasi-identifier"' in result.stdout


def test_lines_for_a_plan_work_when_they_are_pasted(home: Path) -> None:
    plan = {"file": "mixed.csv", "rules": "", "steps": PROTECT}
    (home / "mixed.toml").write_text(PLAN.format(input="", **plan))
    said = message("protect", "--plan", "mixed.toml")
    line = re.search(r"give (missing = .*?) in \[input\] if it means missing in all columns", said)
    assert line is not None, said
    (home / "mixed.toml").write_text(PLAN.format(input=line[1], **plan))
    result = CliRunner().invoke(app, ["protect", "--plan", "mixed.toml", "-q"])
    assert result.exit_code == 0, result.exception
    again = message("protect", "--plan", "mixed.toml")
    assert "--overwrite" in again  # an option of the command, as no plan has it
    assert CliRunner().invoke(
        app, ["protect", "--plan", "mixed.toml", "-q", "--overwrite"]
    ).exit_code == 0  # fmt: skip


READING = {
    "delimiter = 5": "'delimiter' must be text in quotes", "skip = 1.5": "'skip' must be a whole",
    "header = 1": "'header' must be true or false", 'types = "text"': "'types' must be a table",
}  # fmt: skip


@pytest.mark.parametrize("line", READING)
def test_options_of_reading_have_types(line: str, home: Path) -> None:
    """A bug once met: a number for the delimiter ended in a TypeError."""
    (home / "read.toml").write_text(PLAN.format(file="t.csv", input=line, rules="", steps=PROTECT))
    assert READING[line] in message("protect", "--plan", "read.toml")


def test_a_release_that_cannot_be_read_is_not_helped_by_options(home: Path) -> None:
    """A bug once met: --read was offered, which is for the original."""
    assert "--read" in message("verify", "mixed.csv", "t.csv")
    said = message("verify", "t.csv", "mixed.csv")
    assert "mixed.csv, line" in said
    assert "--read" not in said


def test_lines_to_paste_stand_on_one_line() -> None:
    """A bug once met: a comment of a plan broke a line of TOML in two."""
    said = "word " * 18
    line = 'options = { effort = "standard" }'
    plan = parse_plan(PLAN.format(file="t.csv", input="", rules="", steps=PROTECT))
    text = plan.to_toml(notes={"output": [f"{said}write {line} or more."]})
    assert any(line in one for one in text.splitlines())


def test_by_hand() -> None:
    text = "Give small='merge', fit=\"project\", aligned=True or strata=['a b']."
    assert for_plan(text) == (
        'Give small = "merge", fit = "project", aligned=True or strata = ["a b"].'
    )
    flags = {"strata": "--strata", "aligned": "--aligned"}
    assert for_command(text, flags, planned=True) == (
        'Give small = "merge", fit = "project", --aligned or --strata \'a b\'.'
    )
    assert for_plan(
        "The rows 0, 9, ... (from 0): give {'p': 10}, or 3 or None. NoiseAddition."
    ) == ("The records 1, 10, ...: give { p = 10 }, or 3, or leave it out. the method 'noise'.")
    assert for_plan("The schema names a column 'x'.") == "[columns] of the plan names a column 'x'."
    assert for_command("a == b, x=1.5y, a.k=3", flags) == "a == b, x=1.5y, a.k=3"
