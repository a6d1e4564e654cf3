"""From a file to a release, as a browser without scripts does it; and what can go wrong."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from tessella.app import forms
from tessella.app.folder import Folder
from tessella.app.forms import first_values, schema_of, whole_number
from tessella.cli.commands import app as command
from tessella.datasets import make_business_survey
from tessella.exceptions import TessellaError
from tessella.io import read_file
from tessella.planfile import read_plan
from tessella.publishing import publish

from .conftest import Visitor, until_reached

HTMX = {"HX-Request": "true"}


def drafted(visitor: Visitor, **changes: str) -> str:
    """Draft a plan; return its text."""
    page = visitor.get("/files/firms.csv").text
    values = visitor.fill(page, **{"k": "3", "seed": "1", "plan": "p.toml", **changes})
    answer = visitor.post("/files/firms.csv/draft", **values)
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"] == visitor.at("/plans/p.toml")
    return (visitor.folder / "p.toml").read_text()


def quick(visitor: Visitor, text: str) -> dict[str, str]:
    """The form of the plan's page, with a plan that takes no time."""
    page = visitor.get("/plans/p.toml").text
    return visitor.fill(page, text=text.replace('risk = "quick"', 'risk = "none"'))


def test_a_release_shows_attacks_beside_their_controls(visitor):
    """A bug once met: the worst attack stood alone, without what it finds by chance."""
    text = drafted(visitor)
    page = visitor.get("/plans/p.toml").text
    answer = visitor.post("/plans/p.toml/protect", **visitor.fill(page, text=text))
    page = visitor.wait(answer.headers["location"]).text
    assert "Compared with" in page
    assert "on shuffled records" in page
    assert "excess" in page


def test_where_units_are_counted_the_page_says_so_and_shows_their_risk(visitor):
    homes = pd.DataFrame({"hhid": [i // 2 for i in range(80)], "sex": ["f", "m"] * 40})
    homes["age"], homes["pweight"] = homes.index % 40 + 20, homes.index % 3 + 50
    homes.to_csv(visitor.folder / "homes.csv", index=False)
    page = visitor.get("/files/homes.csv").text
    assert "<dt>unit</dt>" in page
    chosen = {"k": "3", "seed": "1", "plan": "p.toml", "role-3": "weight"}
    visitor.post("/files/homes.csv/draft", **visitor.fill(page, **chosen))
    text = (visitor.folder / "p.toml").read_text()
    assert 'role = "unit"' in text
    page = visitor.get("/plans/p.toml").text
    answer = visitor.post("/plans/p.toml/protect", **visitor.fill(page, text=text))
    page = visitor.wait(answer.headers["location"]).text
    assert "records of at least 2 other respondents" in page
    assert "Units alike, at least" in page
    assert "Household risk" in page


def test_the_whole_way_is_that_of_the_library(visitor):
    """An independent way to the same answer: the app's release has the library's bytes."""
    files = visitor.get("/").text
    assert "firms.csv" in files
    assert "secret" not in files
    text = drafted(visitor, **{"rules-file": "rules.txt"})
    answer = visitor.post("/plans/p.toml/protect", **quick(visitor, text))
    assert answer.status_code == 303
    page = visitor.wait(answer.headers["location"]).text
    assert "The audit passed" in page
    assert "all 2 rules hold" in page
    home = visitor.folder
    released = (home / "firms-release.csv").read_bytes()
    given = visitor.get(f"{answer.headers['location']}/output/release")
    assert given.content == released
    assert "attachment" in given.headers["content-disposition"]
    for what, mark in (("external report", "How this table"), ("internal report", "CONFIDENTIAL")):
        report = visitor.get(f"{answer.headers['location']}/output/{what}")
        assert mark in report.text
        assert "sandbox" in report.headers["content-security-policy"]
    manifest = visitor.get(f"{answer.headers['location']}/output/manifest")
    assert json.loads(manifest.text)["k"] == 3
    publish(read_plan(home / "p.toml"), overwrite=True)
    assert (home / "firms-release.csv").read_bytes() == released
    listed = visitor.get("/").text
    assert '<span class="tag good">release</span>' in listed
    assert listed.count('<span class="tag secret">confidential</span>') == 1

    seen = visitor.get("/verify?release=firms-release.csv&manifest=firms-release-manifest.json")
    values = visitor.fill(seen.text, original="firms.csv")
    assert values["release"] == "firms-release.csv"
    answer = visitor.post("/verify", **values)
    assert "<strong>Verified.</strong>" in visitor.wait(answer.headers["location"]).text


def test_fuzzy_masking_under_rules_gives_the_same_bytes_by_every_door(visitor):
    """A dirty survey with 14 rules, by a plan file: app, command, and a study in Python."""
    home = visitor.folder
    firms, rules = make_business_survey(90, inconsistent=0.1, random_state=3, return_rules=True)
    firms = firms.drop(columns="firm")
    firms.to_csv(home / "firms.csv", index=False)
    (home / "rules.txt").write_text("\n".join(rules))
    text = drafted(visitor, **{"rules-file": "rules.txt"})
    assert text.count('method = "protect"') == 1
    step = 'method = "fuzzy microaggregation"\nm1 = 1.05\nm2 = 1.3'
    text = text.replace('method = "protect"', step)
    text = re.sub(r"(?m)^# *order = .*$|^order = .*$", "", text)
    text = text.replace("[output]", '[output]\norder = "kept"')
    answer = visitor.post("/plans/p.toml/protect", **quick(visitor, text))
    assert answer.status_code == 303, answer.text
    assert "all 14 rules hold" in visitor.wait(answer.headers["location"]).text
    released = (home / "firms-release.csv").read_bytes()
    done = CliRunner().invoke(command, ["protect", "--plan", str(home / "p.toml"), "--overwrite"])
    assert done.exit_code == 0, done.output
    assert (home / "firms-release.csv").read_bytes() == released
    plan = read_plan(home / "p.toml")
    study = plan.study(read_file(home / "firms.csv"))
    for one in plan.steps:
        study.do(one)
    table = study.release().table
    read = pd.read_csv(home / "firms-release.csv")
    pd.testing.assert_frame_equal(read, table.to_pandas()[list(read)], check_dtype=False)
    assert read.groupby(list(read)).size().min() >= 3
    assert (read.wages == read.hours * read.hourly_rate).all()
    assert (read.costs == read.wages + read.materials + read.other_costs).all()
    assert (read.profit == read.turnover - read.costs).all()
    shown = json.loads((home / "firms-release-manifest.json").read_text())["steps"][-1]["options"]
    assert (shown["m2"], shown["at_least_k"]) == (1.3, True)


def test_a_refusal_tells_its_reason_and_writes_nothing(visitor):
    values = quick(visitor, drafted(visitor))
    values["text"] = values["text"].replace("k = 3", "k = 300")
    answer = visitor.post("/plans/p.toml/protect", **values)
    page = visitor.wait(answer.headers["location"]).text
    assert "No release" in page
    assert "k = 300 needs at least 300 records, and the table has 40" in page
    assert "Nothing was written" in page
    assert not list(visitor.folder.glob("firms-release*"))


def test_work_can_be_cancelled(visitor, worker_does):
    worker_does("time.sleep(3600)")
    values = quick(visitor, drafted(visitor))
    answer = visitor.post("/plans/p.toml/protect", **values)
    page = visitor.get(answer.headers["location"]).text
    assert "<progress" in page
    assert "Cancel" in page
    second = visitor.post("/plans/p.toml/protect", **visitor.fill(page, **values))
    assert "Other work is under way" in second.text
    visitor.post(f"{answer.headers['location']}/cancel")
    ended = visitor.get(answer.headers["location"]).text
    assert "Cancelled" in ended
    assert not list(visitor.folder.glob("firms-release*"))
    assert visitor.app.jobs.running is None


@pytest.mark.slow
def test_files_that_exist_are_replaced_only_when_allowed(visitor):
    values = quick(visitor, drafted(visitor))
    (visitor.folder / "firms-release.csv").write_text("mine")
    answer = visitor.post("/plans/p.toml/protect", **values)
    assert answer.status_code == 400
    assert "would replace" in answer.text
    assert 'name="overwrite"' in answer.text
    assert (visitor.folder / "firms-release.csv").read_text() == "mine"
    saved = visitor.fill(answer.text, text=values["text"], overwrite="1")
    answer = visitor.post("/plans/p.toml/protect", **saved)
    assert "The audit passed" in visitor.wait(answer.headers["location"]).text
    assert (visitor.folder / "firms-release.csv").read_text() != "mine"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGINT")
def test_cancelled_at_any_moment_the_files_are_whole_and_together(visitor, worker_does):
    """Wherever it is: when it begins, and at each of the names that it gives to files."""
    text = drafted(visitor)
    whole = 4  # release, two reports, manifest
    for event, count in [("open", 1), ("open", 3), *(("os.link", n) for n in range(1, whole + 1))]:
        mark = worker_does("time.sleep(3600)", event=event, count=count)
        visitor.app.jobs.stop()  # the process that waits has no hook, or that of before
        values = quick(visitor, text) | {"overwrite": "1"}
        answer = visitor.post("/plans/p.toml/protect", **values)
        job = visitor.app.jobs.running
        assert until_reached(job, mark)
        visitor.post(f"{answer.headers['location']}/cancel")
        assert job.state == "stopped"
        there = list(visitor.folder.glob("firms-release*"))
        assert len(there) in (0, whole)
        assert not list(visitor.folder.glob(".*"))
        for path in there:
            path.unlink()


# The file's page.


def test_rules_are_told_their_mistakes_by_line(visitor):
    values = visitor.fill(
        visitor.get("/files/firms.csv").text, rules="turnover >= 0\ncosts = 3\nnothing >="
    )
    for headers in ({}, HTMX):
        answer = visitor.post("/files/firms.csv/rules", headers=headers, **values)
        assert 'data-line="2"' in answer.text
        assert 'data-line="3"' in answer.text
        assert "An equality is written with ==" in answer.text
        assert ("<html" in answer.text) == (not headers)
    drafting = visitor.post("/files/firms.csv/draft", **values)
    assert drafting.status_code == 400
    assert "costs = 3" in drafting.text  # what was typed is still there
    assert not list(visitor.folder.glob("*-rules*"))


def test_rules_about_columns_that_are_not_there(visitor):
    values = visitor.fill(visitor.get("/files/firms.csv").text, rules="turnovr >= 0")
    answer = visitor.post("/files/firms.csv/rules", headers=HTMX, **values)
    assert "turnovr" in answer.text
    assert "wrong" in answer.text


def test_rules_are_counted(visitor):
    values = visitor.fill(
        visitor.get("/files/firms.csv").text, rules="employees >= 0\nemployees <= -1\n"
    )
    answer = visitor.post("/files/firms.csv/rules", headers=HTMX, **values)
    assert "40 of 40 records break one" in answer.text
    assert "Contradiction" in answer.text


def test_typed_rules_become_a_file(visitor):
    text = drafted(visitor, rules="turnover >= 0\r\ncosts >= 0\r\n")
    assert 'file = "p-rules.txt"' in text
    assert (visitor.folder / "p-rules.txt").read_text() == "turnover >= 0\ncosts >= 0\n"


def test_what_a_person_says_of_columns_is_in_the_plan(visitor):
    drafted(visitor, **{"role-3": "confidential", "kind-1": "continuous", "stratum-0": "1"})
    plan = read_plan(visitor.folder / "p.toml")
    assert plan.columns["costs"].role == "confidential"
    assert plan.columns["employees"].kind == "continuous"
    assert plan.steps[-1].options["strata"] == ["region"]
    assert plan.seed == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [({"k": "1"}, "at least 2"), ({"k": "five"}, "at least 2"), ({"k": ""}, "fewest records"),
     ({"seed": "-1"}, "at least 0"), ({"role-1": "boss"}, "is not known"),
     ({"kind-1": "<b>"}, "is not known"), ({"plan": "rules.txt"}, ".toml"),
     ({"rules-file": "../x"}, "no name of a file"),
     ({"rules-file": "rules.txt", "rules": "costs >= 0"}, "not both")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_words(visitor, change, said):
    before = sorted(visitor.folder.iterdir())
    values = visitor.fill(visitor.get("/files/firms.csv").text, **change)
    answer = visitor.post("/files/firms.csv/draft", **values)
    assert answer.status_code == 400
    assert said in answer.text
    assert "<b>" not in answer.text
    assert sorted(visitor.folder.iterdir()) == before


def test_an_existing_plan_is_not_replaced(visitor):
    drafted(visitor)
    page = visitor.get("/files/firms.csv").text
    assert visitor.fill(page)["plan"] == "firms-plan.toml"
    answer = visitor.post("/files/firms.csv/draft", **visitor.fill(page, plan="p.toml"))
    assert answer.status_code == 400
    assert "the file exists" in answer.text


def test_a_file_that_cannot_be_read_asks_how(visitor):
    (visitor.folder / "odd.csv").write_text("a;b\n1;2,5\n3;4.5;6\n")
    answer = visitor.get("/files/odd.csv")
    assert answer.status_code == 400
    assert "line 3" in answer.text
    assert 'name="delimiter"' in answer.text
    (visitor.folder / "ok.csv").write_text("a;b\n1;2,5\n3;4,5\n")
    assert "decimal sign: comma" in visitor.get("/files/ok.csv?decimal=comma").text
    assert visitor.get("/files/ok.csv?decimal=dot").status_code == 400


def test_a_guessed_weight_is_not_let_out(tmp_path: Path):
    (tmp_path / "t.csv").write_text("weight,x\n" + "".join(f"{i}.5,{i * i}\n" for i in range(1, 9)))
    guess = read_file(tmp_path / "t.csv").schema()
    assert guess["weight"].role == "weight"
    first = first_values(guess)
    assert first["role-0"] == "quasi-identifier"
    assert schema_of(guess, first)["weight"].role == "quasi-identifier"
    assert schema_of(guess, {})["weight"].role == "quasi-identifier"  # a form without its field
    said = schema_of(guess, first | {"role-0": "weight"})["weight"]
    assert (said.role, said.guessed) == ("weight", False)


@pytest.mark.parametrize("text", ["1.5", "-3", "３", "1e3", "0x10", "9" * 20, "+5"])
def test_whole_numbers(text):
    with pytest.raises(TessellaError, match="whole number"):
        whole_number({"k": text}, "k", least=2)


# The plan's page.


def test_all_mistakes_of_a_plan_at_once_with_lines(visitor):
    text = drafted(visitor)
    wrong = text.replace('kind = "', 'kindd = "', 1).replace("loss = true", "loss = 3")
    values = visitor.fill(visitor.get("/plans/p.toml").text, text=wrong)
    for headers in ({}, HTMX):
        said = visitor.post("/plans/p.toml/check", headers=headers, **values).text
        lines = {int(line) for line in re.findall(r'data-line="(\d+)"', said)}
        at = wrong.split("\n")
        assert next(i for i, one in enumerate(at, 1) if "kindd" in one) in lines
        assert at.index("loss = 3") + 1 in lines
        assert "Did you mean &#39;kind&#39;?" in said
    answer = visitor.post("/plans/p.toml/protect", **values)
    assert "cannot be run yet" in answer.text


def test_a_check_looks_at_the_file_and_the_rules(visitor):
    text = drafted(visitor, **{"rules-file": "rules.txt"})
    values = visitor.fill(visitor.get("/plans/p.toml").text, text=text)
    fine = visitor.post("/plans/p.toml/check", headers=HTMX, **values).text
    assert "No mistakes" in fine
    assert "40 records" in fine
    (visitor.folder / "rules.txt").write_text("turnover = 0\n")
    assert "==" in visitor.post("/plans/p.toml/check", headers=HTMX, **values).text
    (visitor.folder / "rules.txt").unlink()
    assert "wrong" in visitor.post("/plans/p.toml/check", headers=HTMX, **values).text


def test_saving_keeps_what_others_wrote(visitor):
    text = drafted(visitor)
    values = visitor.fill(visitor.get("/plans/p.toml").text, text=text + "# mine\n")
    saved = visitor.post("/plans/p.toml/save", **values)
    assert "is saved" in saved.text
    assert (visitor.folder / "p.toml").read_text().endswith("# mine\n")
    (visitor.folder / "p.toml").write_text("# theirs\n")
    late = visitor.post("/plans/p.toml/save", **visitor.fill(saved.text, text="# mine again\n"))
    assert late.status_code == 400
    assert "changed outside" in late.text
    assert (visitor.folder / "p.toml").read_text() == "# theirs\n"


def test_only_plans_are_saved(visitor):
    before = (visitor.folder / "firms.csv").read_bytes()
    page = visitor.get("/plans/firms.csv").text
    answer = visitor.post("/plans/firms.csv/save", **visitor.fill(page, text="gone"))
    assert answer.status_code == 400
    assert (visitor.folder / "firms.csv").read_bytes() == before


# The rest.


def test_what_is_in_a_folder(folder):
    (folder / "data.txt").write_text("a,b\n1,2\n")
    (folder / "broken.toml").write_text("[input\n")
    (folder / "r.toml").write_text('rules = ["x >= 0"]\n')
    (folder / "other.json").write_text("[1]")
    (folder / "note.md").write_text("no")
    (folder / "x.parquet").write_bytes(b"")
    (folder / "inner").mkdir()
    found = {entry.name: entry.what for entry in Folder(folder).entries()}
    assert found == {
        "firms.csv": "table", "data.txt": "table", "x.parquet": "table", "rules.txt": "rules",
        "r.toml": "rules", "broken.toml": "plan",
    }  # fmt: skip


def test_an_empty_folder_says_what_to_do(tmp_path):
    assert "There is no table here" in Visitor(tmp_path).get("/").text


def test_verify_asks_for_both_files(visitor):
    answer = visitor.post("/verify", original="firms.csv")
    assert answer.status_code == 400
    answer = visitor.post("/verify", original="firms.csv", release="../secret.csv")
    assert answer.status_code == 400


@pytest.mark.slow
def test_a_release_that_is_not_safe_is_told(visitor):
    table = pd.read_csv(visitor.folder / "firms.csv")
    table.assign(turnover=table["turnover"] + 1).to_csv(visitor.folder / "bad.csv", index=False)
    answer = visitor.post("/verify", original="firms.csv", release="bad.csv", k="3")
    page = visitor.wait(answer.headers["location"]).text
    assert "not as it must be" in page
    assert "fewer than 3" in page


@pytest.mark.slow
def test_files_that_cannot_be_compared(visitor):
    (visitor.folder / "other.csv").write_text("a,b\n1,2\n3,4\n")
    answer = visitor.post("/verify", original="firms.csv", release="other.csv")
    page = visitor.wait(answer.headers["location"]).text
    assert "no column in common" in page
    assert "Traceback" not in page


def test_pages_that_are_not_there(visitor):
    for path in ("/nothing", "/work/none", "/work/none/progress", "/static/../pages.py"):
        assert visitor.get(path).status_code == 404
    assert visitor.get("/files/none.csv").status_code == 400


def test_forms_by_hand():
    stated = {"decimal": "comma", "missing": "NA, .", "header": "no", "sheet": ""}
    read = {"decimal": ",", "header": False, "missing": ["NA", "."]}
    assert forms.reading_options(stated) == read
    sizes = (812, 1023, 1024, 20_480, 10 * 1024, 2**20 - 1, 2**20, 3 * 2**30, 2**41)
    assert [forms.in_bytes(size) for size in sizes] == [
        "812 B", "1023 B", "1.0 KB", "20 KB", "10 KB", "1024 KB", "1.0 MB", "3.0 GB", "2048 GB",
    ]  # fmt: skip
    assert [forms.duration(s) for s in (0.41, 12.4, 75)] == ["0.4 s", "12 s", "1 min 15 s"]
