"""Plan files: what is written can be read, and every mistake is told at once, with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella import datasets, protect
from tessella._output import plain_data, toml_text, toml_value
from tessella.exceptions import BadFileError, DataNotFoundError, PlanFileError
from tessella.io import read_file
from tessella.planfile import PlanFile, draft, parse_plan, read_plan
from tessella.planfile.model import lines_of_keys
from tessella.release import Step

LEAST = """
[input]
file = "firms.csv"
[[steps]]
method = "protect"
k = 5
[output]
file = "release.csv"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("plans")
    firms, rules = datasets.make_business_survey(
        300, random_state=0, inconsistent=0.02, return_rules=True
    )
    firms.to_csv(home / "firms.csv", index=False)
    (home / "rules.txt").write_text("\n".join(rules))
    return home


# Round trips


def test_a_draft_can_be_read_and_run(folder: Path) -> None:
    text = draft(
        read_file(folder / "firms.csv"), k=4, rules=folder / "rules.txt", folder=folder, seed=3
    )
    (folder / "plan.toml").write_text(text)
    plan = read_plan(folder / "plan.toml")
    assert plan.columns["firm"].role == "identifier"
    assert [step.method for step in plan.steps] == ["drop", "protect"]
    study = plan.study(plan.read())
    for step in plan.steps:
        study.do(step)
    release = study.release()
    assert release.audit.passed
    assert len(release.rules) == 14
    again = parse_plan(plan.to_toml(), folder=folder)
    assert again == plan


@pytest.mark.parametrize(
    ("wishes", "options"),
    [({}, None), ({"grouping": "mdav"}, None),
     ({"options": {"effort": "thorough"}}, {"effort": "thorough"})],
)  # fmt: skip
def test_a_draft_searches_quickly_and_says_so(tmp_path, wishes, options):
    """A draft says what to write for less loss; wishes count."""
    (tmp_path / "a.csv").write_text("x\n" + "".join(f"{i * i}\n" for i in range(30)))
    text = draft(read_file(tmp_path / "a.csv"), k=3, folder=tmp_path, wishes=wishes)
    assert parse_plan(text).steps[-1].options.get("options") == options
    assert ("time_limit = 600" in text) == (not wishes)


def test_a_search_without_options_is_a_quick_one():
    table = pd.DataFrame({"x": [i * i % 101 for i in range(80)]})
    plain, quick, long = (
        protect(table, k=3, options=options, random_state=0)
        for options in (None, {"effort": "quick"}, {"effort": "standard"})
    )
    assert plain.table.equals(quick.table)
    assert long.loss <= quick.loss


def test_a_guessed_weight_is_masked_until_somebody_says_otherwise(tmp_path: Path) -> None:
    lines = "\n".join(f"{i % 7},{1.5 + i % 3}" for i in range(30))
    (tmp_path / "a.csv").write_text(f"age,weight\n{lines}\n")
    text = draft(read_file(tmp_path / "a.csv"), k=3, folder=tmp_path)
    assert parse_plan(text).columns["weight"].role == "quasi-identifier"
    assert "named like a sampling weight" in text


@pytest.mark.parametrize(
    "more",
    [
        {"seed": 7},
        {"rules": {"lines": ['a >= 0', 'b in {"x", "y"}'], "tolerance": 1e-6}},
        {"columns": {"a b.c": {"kind": "nominal", "labels": [[1, 'say "x"\n']], "missing": [-9]}}},
        {"measures": {"risk": "thorough", "known": ["a"], "time_limit": 10}},
        {"steps": [{"method": "protect", "k": 3, "grouping": "mdav"},
                   {"method": "individual ranking", "k": 3, "grouping": "optimal"}]},
        {"steps": [{"method": "noise", "amount": 0.1, "name": "first"},
                   {"method": "recode", "column": "a", "groups": {"low": [1, 2]}},
                   {"method": "protect", "k": 3, "blocks": [["a", "b"], ["c"]],
                    "options": {"effort": "quick"}}]},
    ],
)  # fmt: skip
def test_what_is_written_is_read_again(more: dict[str, Any]) -> None:
    import tomllib

    known = tomllib.loads(LEAST) | more
    plan = PlanFile.model_validate(known | {"steps": list(map(Step.from_dict, known["steps"]))})
    assert parse_plan(plan.to_toml()) == plan


def test_the_method_of_a_step_is_not_that_of_its_grouping() -> None:
    """A bug once met: a plan that groups by MDAV was written as a step called mdav."""
    step = Step(method="protect", options={"k": 3, "grouping": "mdav"})
    assert step.to_dict() == {"method": "protect", "k": 3, "grouping": "mdav"}
    assert Step.from_dict(step.to_dict()) == step


@given(
    st.recursive(
        st.text() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_values_survive_toml(value: Any) -> None:
    import tomllib

    assert tomllib.loads(f"x = {toml_value(value)}") == {"x": value}


# Mistakes


MISTAKES = [
    ("sed = 3", 'sed: \'sed\' is not known here.\n  Did you mean \'seed\'?'),
    ("version = 2", "version: It must be 1."),
    ("seed = -1", "seed: It should be greater than or equal to 0."),
    ('[columns.a]\nkind = "integr"', "columns.a.kind: It must be 'continuous'"),
    ('[columns.a]\nkind = "integer"\nrol = "x"', "Did you mean 'role'?"),
    ('[rules]\nlines = ["a >= "]', "rules.lines: 1 mistake in the rules"),
    ('[rules]\nfile = "a"\nlines = ["a > 0"]', "Give a file or lines, not both."),
    ('[measures]\nrisk = "fast"', "measures.risk: It must be 'none', 'quick'"),
    ('[[steps]]\nmethod = "nois"', "steps, number 2: method of a step: 'nois' is not known."),
    ('[[steps]]\nmethod = "noise"\namount = -1', "steps, number 2: amount = -1 cannot be used."),
    ('[[steps]]\nmethod = "noise"\nrandom_state = 1', "random_state"),
    ('[[steps]]\nmethod = "protect"\nk = 2.5', "k = 2.5 cannot be used."),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "told"), MISTAKES)
def test_a_mistake_has_its_line(wrong: str, told: str) -> None:
    text = f"{wrong}\n{LEAST}" if "[" not in wrong else f"{LEAST}{wrong}\n"
    with pytest.raises(PlanFileError) as caught:
        parse_plan(text)
    assert told in str(caught.value)
    (mistake,) = caught.value.mistakes
    first = int(mistake.where.split(",")[0].removeprefix("line "))
    lines = wrong.split("\n")
    assert text.split("\n")[first - 1] in lines


def test_all_mistakes_at_once() -> None:
    head = "\n".join(wrong for wrong, _ in MISTAKES[:1])
    tail = "\n".join(wrong for wrong, _ in MISTAKES[3:4] + MISTAKES[8:11])
    with pytest.raises(PlanFileError, match="5 mistakes in the plan") as caught:
        parse_plan(f"{head}\n{LEAST}{tail}")
    places = [m.where for m in caught.value.mistakes]
    assert places == sorted(places, key=lambda where: int(where.split()[1].strip(",")))


@pytest.mark.parametrize("name", ["input", "steps", "output"])
def test_what_is_missing(name: str) -> None:
    parts = {"input": '[input]\nfile = "a"\n', "output": '[output]\nfile = "b"\n',
             "steps": '[[steps]]\nmethod = "protect"\nk = 3\n'}  # fmt: skip
    with pytest.raises(PlanFileError, match=name):
        parse_plan("".join(text for part, text in parts.items() if part != name))


def test_bad_text(tmp_path: Path) -> None:
    with pytest.raises(PlanFileError, match=r"line 2: This is not TOML"):
        parse_plan("version = 1\nx = = 2\n")
    with pytest.raises(DataNotFoundError, match="There is no plan"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes("seed = 1 # ä".encode("latin-1"))
    with pytest.raises(BadFileError, match="UTF-8"):
        read_plan(tmp_path / "latin.toml")
    (tmp_path / "same.toml").write_text(
        LEAST.replace("release.csv", "x.csv") + 'manifest = "x.csv"'
    )
    with pytest.raises(PlanFileError, match="same name"):
        read_plan(tmp_path / "same.toml")


def test_a_column_that_the_plan_does_not_know() -> None:
    text = LEAST.replace("k = 5", 'k = 5\nstrata = ["brunch"]')
    with pytest.raises(PlanFileError, match=r"(?s)line 7.*no column 'brunch'.*'branch'"):
        parse_plan(text + '[columns.branch]\nkind = "nominal"\n')


def test_lines_by_hand() -> None:
    text = 'a = """\n[b]\n"""\nc = [\n  "[d]",\n]\n[e.f]\n"g h".i = 1\n[[j]]\n[[j]]\n[j.k]\nl = 2\n'
    assert lines_of_keys(text) == {
        ("a",): 1, ("c",): 4, ("e", "f"): 7, ("e", "f", "g h", "i"): 8, ("j", 0): 9, ("j",): 9,
        ("j", 1): 10, ("j", 1, "k"): 11, ("j", 1, "k", "l"): 12,
    }  # fmt: skip


def test_plain_data_and_toml_by_hand():
    assert plain_data({1: (2.5, float("nan")), "when": None}) == {"1": [2.5, None], "when": None}
    assert toml_text('say "k"') == '"say \\"k\\""'
    given = {"k": 5, "columns": ["a", "b c"], "scale": 0.1}
    assert toml_value(given) == '{ k = 5, columns = ["a", "b c"], scale = 0.1 }'


def test_a_plan_without_columns_takes_for_numbers_what_rules_compute_with(tmp_path):
    """A bug once met: amounts that looked like codes were masked as categories, by donors."""
    draw = np.random.default_rng(0)
    part, rest = draw.integers(1, 4, 400), draw.integers(100, 9_000, 400)
    table = pd.DataFrame({"branch": part, "rest": rest, "total": part + rest})
    table.to_csv(tmp_path / "t.csv", index=False)
    steps = '[[steps]]\nmethod = "protect"\nk = 3\n[output]\nfile = "r.csv"\n'
    kinds = []
    for rules in ("", '[rules]\nlines = ["branch + rest == total"]\n'):
        plan = parse_plan(f'[input]\nfile = "t.csv"\n{rules}{steps}', folder=tmp_path)
        kinds.append(plan.schema_of(plan.read())["branch"].kind)
    assert kinds == ["nominal", "integer"]


@pytest.mark.parametrize("line", ['loss = "no"', "loss = 1"])
def test_words_and_numbers_are_no_truth_values(line):
    """A bug once met: "no" was read as false, and "unsure = 0" took a warning away."""
    text = 'input = { file = "t.csv" }\noutput = { file = "r.csv" }\n'
    text += f'[[steps]]\nmethod = "protect"\nk = 3\n[measures]\n{line}\n'
    with pytest.raises(PlanFileError, match=r"measures\.loss: It must be true or false"):
        parse_plan(text)


@pytest.mark.parametrize("text", ["", "\n", " \n"])
def test_an_empty_plan_is_called_empty(tmp_path: Path, text: str) -> None:
    """A bug once met: a command that fails leaves `> plan.toml` empty; that was 3 mistakes."""
    path = tmp_path / "my plan.toml"
    path.write_text(text)
    with pytest.raises(BadFileError, match="the plan is empty") as refused:
        read_plan(path)
    hint = str(refused.value).split("Draft one: ")[1]
    assert hint == f"tessella plan FILE -k K -o '{path}' --overwrite."


def test_commands_in_a_draft_can_be_pasted(tmp_path: Path) -> None:
    """A bug once met: SUMMARY, ORIGINAL and RELEASE stood where the plan itself has the names."""
    stem = f"firms of {'a long year ' * 8}"  # longer than a line of a plan
    datasets.make_business_survey(60, random_state=0).to_csv(tmp_path / f"{stem}.csv")
    source = read_file(tmp_path / f"{stem}.csv")
    text = draft(source, k=3, folder=tmp_path, name="my plan.toml")
    commands = [line[1:].strip() for line in text.splitlines() if line.startswith("#     tess")]
    assert commands == [
        "tessella protect --plan 'my plan.toml'",
        f"tessella report '{stem}-release-summary.json' --external '{stem}-release-report.html' "
        "--overwrite",
        f"tessella verify '{stem}.csv' '{stem}-release.csv' --plan 'my plan.toml'",
    ]
    parse_plan(text)
    assert "tessella protect --plan THIS-FILE" in draft(source, k=3)
