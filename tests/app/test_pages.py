"""From a file to a release, as a browser without scripts does it; and what can go wrong."""

from __future__ import annotations

import json
import os
import re
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from tessella.app import forms
from tessella.app.folder import Folder
from tessella.app.forms import whole_number
from tessella.cli import app
from tessella.datasets import make_business_survey
from tessella.exceptions import TessellaError
from tessella.planfile import read_plan

from .conftest import Visitor, until_reached

HTMX = {"HX-Request": "true"}


# The whole way.


def test_the_whole_way_is_that_of_the_library(visitor, monkeypatch):
    """An independent way to the same answer: the command that is shown gives the same bytes."""
    files = visitor.get("/").text
    assert "firms.csv" in files
    assert "secret" not in files
    page = visitor.get("/files/firms.csv").text
    assert "40 records in 4 columns" in page
    plan = visitor.start()
    visitor.change(f"{plan}/rules", rules="turnover >= 0\ncosts >= 0")
    result = visitor.run(plan).text
    assert "The audit passed" in result
    assert "all 2 rules hold" in result
    home = visitor.folder
    assert not list(home.glob("firms-release*"))  # nothing is published yet
    page = visitor.get(f"{plan}/publish").text
    key = re.search(r'name="run" value="([^"]+)"', page)[1]
    answer = visitor.post(f"{plan}/publish", run=key)
    assert answer.status_code == 303, answer.text
    page = visitor.get(f"{plan}/publish").text
    released = (home / "firms-release.csv").read_bytes()
    for what, mark in (("external report", "How this table"), ("internal report", "CONFIDENTIAL")):
        report = visitor.get(f"/runs/{key}/output/{what}")
        assert mark in report.text
        assert "sandbox" in report.headers["content-security-policy"]
    given = visitor.get(f"/runs/{key}/output/release")
    assert given.content == released
    assert "attachment" in given.headers["content-disposition"]
    manifest = (home / "firms-release-manifest.json").read_bytes()
    assert json.loads(manifest)["k"] == 3
    command = unescape(re.search(r'<pre id="command">(.*?)</pre>', page)[1])
    program, *words = command.split()
    assert program == "tessella"
    monkeypatch.chdir(home)
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert (home / "firms-release.csv").read_bytes() == released
    assert (home / "firms-release-manifest.json").read_bytes() == manifest
    code = unescape(re.search(r'<pre id="python">(.*?)</pre>', page, re.S)[1])
    (home / "firms-release.csv").unlink()
    exec(code, {"__name__": "__main__"})
    assert (home / "firms-release.csv").read_bytes() == released
    listed = visitor.get("/").text
    assert '<span class="tag good">release</span>' in listed
    seen = visitor.get("/verify?release=firms-release.csv&manifest=firms-release-manifest.json")
    values = visitor.fill(seen.text, original="firms.csv")
    answer = visitor.post("/verify", **values)
    assert "<strong>Verified.</strong>" in visitor.wait(answer.headers["location"]).text


def test_a_dirty_survey_with_fourteen_rules_by_forms_alone(visitor):
    home = visitor.folder
    firms, rules = make_business_survey(90, inconsistent=0.1, random_state=3, return_rules=True)
    firms.drop(columns="firm").to_csv(home / "firms.csv", index=False)
    (home / "more.txt").write_text("\n".join(rules))
    plan = visitor.start()
    was = visitor.fill(visitor.get(f"{plan}/rules").text)["was"]
    answer = visitor.post(f"{plan}/rules/file", file="more.txt", was=was)
    assert answer.status_code == 303, answer.text
    assert "14 rules in the plan" in visitor.get(f"{plan}/rules").text
    visitor.change(plan, method="protect:fuzzy", order="kept")
    assert "all 14 rules hold" in visitor.run(plan).text
    (run,) = visitor.app.site.runs.of(plan.rpartition("/")[2])
    read = pd.read_csv(run.path("release"))
    assert read.groupby(list(read)).size().min() >= 3
    assert (read.wages == read.hours * read.hourly_rate).all()
    assert (read.profit == read.turnover - read.costs).all()


def test_households_are_counted_and_said(visitor):
    homes = pd.DataFrame({"hhid": [i // 2 for i in range(80)], "sex": ["f", "m"] * 40})
    homes["age"] = homes.index % 40 + 20
    homes.to_csv(visitor.folder / "homes.csv", index=False)
    assert "of 40 units" in visitor.get(visitor.start("homes.csv", risk="quick") + "/data").text
    page = visitor.run("/plans/homes-plan.toml").text
    assert "at least 3 units share their masked values" in page
    assert "units; k = 3" in page
    assert "on shuffled records" in page or "by guessing" in page
    assert "only here" in page or "riskiest" not in page


def test_a_refusal_tells_its_reason_and_writes_nothing(visitor):
    plan = visitor.start()
    visitor.change(plan, k="300")
    answer = visitor.post(f"{plan}/run")
    page = visitor.wait(answer.headers["location"]).text
    assert "No release" in page
    assert "k = 300 needs at least 300 records, and the table has 40" in page
    assert "Nothing was written" in page
    assert not list((visitor.folder / ".tessella" / "runs").iterdir())


def test_work_can_be_cancelled(visitor, worker_does):
    worker_does("time.sleep(3600)")
    plan = visitor.start()
    answer = visitor.post(f"{plan}/run")
    page = visitor.get(answer.headers["location"]).text
    assert "<progress" in page
    assert "Cancel" in page
    second = visitor.post(f"{plan}/run")
    assert "Other work is under way" in second.text
    visitor.post(f"{answer.headers['location']}/cancel")
    ended = visitor.get(answer.headers["location"]).text
    assert "Cancelled" in ended
    assert not list((visitor.folder / ".tessella" / "runs").iterdir())
    assert visitor.app.jobs.running is None


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGINT")
def test_cancelled_at_any_moment_a_result_is_whole_or_not_there(visitor, worker_does):
    plan = visitor.start()
    for event, count in [("open", 1), ("open", 3), *(("os.link", n) for n in range(1, 6))]:
        mark = worker_does("time.sleep(3600)", event=event, count=count)
        visitor.app.jobs.stop()  # the process that waits has no hook, or that of before
        answer = visitor.post(f"{plan}/run")
        job = visitor.app.jobs.running
        assert until_reached(job, mark)
        visitor.post(f"{answer.headers['location']}/cancel")
        assert job.state == "stopped"
        assert not list((visitor.folder / ".tessella" / "runs").iterdir())


def test_files_that_exist_are_replaced_only_when_allowed(visitor):
    plan = visitor.start()
    visitor.run(plan)
    (visitor.folder / "firms-release.csv").write_text("mine")
    page = visitor.get(f"{plan}/publish").text
    key = re.search(r'name="run" value="([^"]+)"', page)[1]
    answer = visitor.post(f"{plan}/publish", run=key)
    assert answer.status_code == 400
    assert "Replace existing files" in answer.text
    assert (visitor.folder / "firms-release.csv").read_text() == "mine"
    assert not list(visitor.folder.glob("firms-release-*"))  # all or none
    assert visitor.post(f"{plan}/publish", run=key, overwrite="1").status_code == 303
    assert (visitor.folder / "firms-release.csv").read_text() != "mine"


def test_two_results_side_by_side(visitor):
    plan = visitor.start()
    visitor.run(plan)
    assert "fewer than two results" in visitor.get(f"{plan}/compare").text
    visitor.change(plan, k="6")
    assert "The plan has been changed since" in visitor.get(f"{plan}/look").text
    visitor.run(plan)
    page = visitor.get(f"{plan}/compare").text
    assert '<span class="minus">-k = 3</span>' in page
    assert '<span class="plus">+k = 6</span>' in page
    row = re.search(r'<th scope="row">k</th>(.*?)</tr>', page, re.S)[1]
    assert re.findall(r">(\d+)<", row) == ["3", "6"]
    for path in (f"{plan}/look/columns", f"{plan}/look/pair?x=turnover&y=costs"):
        assert "<svg" in visitor.get(path).text
    assert "two different columns" in visitor.get(f"{plan}/look/pair?x=costs&y=costs").text


# Open.


def test_a_plan_is_repeatable_by_a_seed_that_is_drawn(visitor):
    visitor.post("/files/firms.csv/start")
    visitor.post("/files/firms.csv/start")
    one, other = (read_plan(visitor.folder / f"firms-plan{n}.toml").seed for n in ("", "-2"))
    assert one is not None
    assert other is not None
    assert one != other
    assert max(one, other) > 2**40


def test_roles_kinds_and_codes_are_in_the_plan(visitor):
    plan = visitor.start()
    answer = visitor.change(f"{plan}/data", **{
        "role-3": "confidential", "kind-1": "continuous", "missing-2": "-9, x",
        "role-0": "identifier",
    })  # fmt: skip
    assert "Saved: region is identifier" in answer.text
    found = read_plan(visitor.folder / "firms-plan.toml")
    assert found.columns["costs"].role == "confidential"
    assert found.columns["employees"].kind == "continuous"
    assert found.columns["turnover"].missing == [-9, "x"]
    assert found.steps[0].options == {"columns": ["region"]}
    page = visitor.get(f"{plan}/data").text
    assert "<option selected>identifier</option>" in page
    assert "set by you" in page


def test_two_tabs_do_not_undo_each_other(visitor):
    plan = visitor.start()
    first = visitor.fill(visitor.get(f"{plan}/data").text)
    second = dict(first)
    visitor.post(f"{plan}/data", headers=HTMX, **first | {"role-3": "confidential"})
    visitor.post(f"{plan}/data", headers=HTMX, **second | {"role-2": "untouched"})
    columns = read_plan(visitor.folder / "firms-plan.toml").columns
    assert (columns["costs"].role, columns["turnover"].role) == ("confidential", "untouched")
    late = visitor.post(f"{plan}/data", headers=HTMX, **first | {"was": "0" * 32})
    assert "changed elsewhere" in late.text


def test_a_file_that_cannot_be_read_asks_how(visitor):
    (visitor.folder / "odd.csv").write_text("a;b\n1;2,5\n3;4.5;6\n")
    answer = visitor.get("/files/odd.csv")
    assert answer.status_code == 400
    assert "line 3" in answer.text
    assert 'name="delimiter"' in answer.text
    (visitor.folder / "ok.csv").write_text("a;b\n1;2,5\n3;4,5\n")
    assert "decimal sign: comma" in visitor.get("/files/ok.csv?decimal=comma").text
    assert visitor.get("/files/ok.csv?decimal=dot").status_code == 400


def test_a_sheet_is_chosen_from_a_list(visitor):
    with pd.ExcelWriter(visitor.folder / "book.xlsx") as book:
        for name in ("first", "second"):
            firms = make_business_survey(30, random_state=1)[
                ["employees", "turnover", name[:0] or "costs"]
            ]
            firms.rename(columns={"costs": f"costs of {name}"}).to_excel(
                book, sheet_name=name, index=False
            )
    page = visitor.get("/files/book.xlsx").text
    assert "<option selected>first</option><option>second</option>" in page
    assert "costs of first" in page
    assert "costs of second" in visitor.get("/files/book.xlsx?sheet=second").text
    assert visitor.post("/files/book.xlsx/start", sheet="second").status_code == 303
    assert read_plan(visitor.folder / "book-plan.toml").input.options["sheet"] == "second"


def test_files_are_brought_and_nothing_else(visitor):
    table = b"a,b\n1,2\n3,4\n"
    upload = visitor.at("/upload")
    token = {"token": visitor.app.keys.form}

    def send(name: str) -> int:
        return visitor.client.post(upload, data=token, files={"file": (name, table)}).status_code

    assert send("new.csv") == 303
    assert (visitor.folder / "new.csv").read_bytes() == table
    assert send("new.csv") == 303  # another of the same name does not replace it
    assert (visitor.folder / "new-2.csv").exists()
    assert send("../out.csv") == 303  # a browser of old sends paths: the name counts
    assert not (visitor.folder.parent / "out.csv").exists()
    for name in ("evil.exe", ".hidden.csv", "", "noending"):
        assert send(name) == 400
    secret = visitor.folder.parent / "secret.csv"
    assert visitor.post("/bring", path=str(secret)).status_code == 303
    assert (visitor.folder / "secret.csv").read_bytes() == secret.read_bytes()
    for path in ("/etc/passwd", "/nowhere.csv", "", "\0", str(visitor.folder), "~nobody/x.csv"):
        assert visitor.post("/bring", path=path).status_code == 400
    if os.name == "posix":
        assert (visitor.folder / "secret.csv").stat().st_mode & 0o077 == 0


def test_a_table_without_anything_to_mask(visitor):
    (visitor.folder / "ids.csv").write_text("person_id\n" + "".join(f"{i}\n" for i in range(50)))
    answer = visitor.post("/files/ids.csv/start")
    assert answer.status_code == 400
    assert "mask every column" in answer.text
    assert visitor.post("/files/ids.csv/start", masked="1").status_code == 303


# Rules.


def test_rules_are_told_their_mistakes_by_line_and_kept_until_they_are_right(visitor):
    plan = visitor.start()
    wrong = "turnover >= 0\ncosts = 3\nnothing >="
    answer = visitor.change(f"{plan}/rules", rules=wrong)
    assert 'data-line="2"' in answer.text
    assert 'data-line="3"' in answer.text
    assert "An equality is written with ==" in answer.text
    assert not read_plan(visitor.folder / "firms-plan.toml").rules.lines
    assert "costs = 3" in visitor.get(f"{plan}/rules").text  # a reload loses nothing
    visitor.change(f"{plan}/rules", rules="turnover >= 0")
    assert read_plan(visitor.folder / "firms-plan.toml").rules.lines == ["turnover >= 0"]
    assert "costs = 3" not in visitor.get(f"{plan}/rules").text


def test_rules_are_counted_and_contradictions_told(visitor):
    plan = visitor.start()
    text = visitor.change(f"{plan}/rules", rules="employees >= 0\nemployees <= -1\n").text
    assert "40 of 40 records break one" in text
    assert "Contradiction" in text
    assert "1, 2, 3, 4, 5, …" in text
    text = visitor.change(f"{plan}/rules", rules="turnovr >= 0").text
    assert "turnovr" in text
    assert "wrong" in text


def test_a_suggested_rule_is_accepted(visitor):
    table = pd.read_csv(visitor.folder / "firms.csv")
    table["profit"] = table["turnover"] - table["costs"]
    table.to_csv(visitor.folder / "firms.csv", index=False)
    plan = visitor.start()
    page = visitor.get(f"{plan}/rules/suggestions").text
    rules = [unescape(one) for one in re.findall(r'name="rule" value="([^"]+)"', page)]
    assert any("profit" in rule and "==" in rule for rule in rules[:2])
    was = visitor.fill(visitor.get(f"{plan}/rules").text)["was"]
    assert visitor.post(f"{plan}/rules/accept", was=was, rule=rules[0]).status_code == 303
    assert read_plan(visitor.folder / "firms-plan.toml").rules.lines == [rules[0]]
    page = visitor.get(f"{plan}/rules").text
    assert "Every record keeps them" in page
    again = visitor.get(f"{plan}/rules/suggestions", headers=HTMX).text
    assert rules[0] not in [
        unescape(one) for one in re.findall(r'name="rule" value="([^"]+)"', again)
    ]


# Plan.


def test_settings_are_kept_explained_and_undone(visitor):
    plan = visitor.start()
    before = visitor.text(plan)
    answer = visitor.change(plan, k="4")
    assert "Saved: k: 3 → 4" in answer.text
    assert answer.headers["HX-Trigger"] == "explained"
    assert "at least 4;" in visitor.get(f"{plan}/explanation").text
    visitor.change(plan, method="rank swapping")
    assert [s.method for s in read_plan(visitor.folder / "firms-plan.toml").steps] == [
        "rank swapping", "pram",
    ]  # fmt: skip
    for _ in range(2):
        visitor.post(f"{plan}/move", to="undo")
    assert visitor.text(plan) == before
    visitor.post(f"{plan}/move", to="redo")
    assert "k = 4" in visitor.text(plan)
    page = visitor.get(f"{plan}/history").text
    assert "k: 3 → 4" in page
    visitor.post(f"{plan}/move", to="2")
    assert "rank swapping" in visitor.text(plan)
    for odd in ("", "-1", "99", "x"):
        visitor.post(f"{plan}/move", to=odd)
    assert "rank swapping" in visitor.text(plan)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"k": "1"}, "at least 2"), ({"k": "five"}, "at least 2"), ({"seed": "-1"}, "at least 0"),
     ({"method": "<b>"}, "is not known"), ({"output-file": ""}, "a name such as"),
     ({"output-file": "../x.csv"}, "outside"), ({"output-file": "firms.xyz"}, ""),
     ({"dominance": "many"}, "per cent")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_words(visitor, change, said):
    plan = visitor.start()
    before = visitor.text(plan)
    for headers in ({}, HTMX):
        values = visitor.fill(visitor.get(plan).text) | change
        answer = visitor.post(plan, headers=headers, **values)
        assert said in answer.text
        assert "<b>" not in answer.text
        if said:
            assert visitor.text(plan) == before


def test_an_estimate_comes_at_once_and_changes_nothing(visitor):
    plan = visitor.start()
    before = visitor.text(plan)
    values = visitor.fill(visitor.get(plan).text)
    small, large = (
        visitor.post(f"{plan}/estimate", headers=HTMX, **values | {"k": k}).text
        for k in ("3", "15")
    )
    losses = [float(re.search(r"<dd>([\d.]+) %", text)[1]) for text in (small, large)]
    assert losses[0] < losses[1]
    assert "From 40 records" in small
    assert visitor.text(plan) == before
    too_large = visitor.post(f"{plan}/estimate", headers=HTMX, **values | {"k": "300"})
    assert "needs at least 300 records" in too_large.text
    assert too_large.status_code == 200


def test_a_column_is_made_coarser_and_fine_again(visitor):
    plan = visitor.start()
    was = visitor.fill(visitor.get(plan).text)["was"]
    visitor.post(
        f"{plan}/recode", was=was, column="region", recoding="coast: north, west\n*: inland"
    )
    steps = read_plan(visitor.folder / "firms-plan.toml").steps
    assert steps[0].options["groups"] == {"coast": ["north", "west"]}
    assert "coast (north, west)" in visitor.get(plan).text
    visitor.post(f"{plan}/recode", was=was, remove="region")
    assert len(read_plan(visitor.folder / "firms-plan.toml").steps) == 1
    answer = visitor.post(f"{plan}/recode", was=was, column="region", recoding="x")
    assert answer.status_code == 400


# The text.


def test_all_mistakes_of_a_text_at_once_with_lines(visitor):
    plan = visitor.start()
    text = visitor.text(plan)
    wrong = text.replace('kind = "', 'kindd = "', 1).replace("loss = true", "loss = 3")
    for headers in ({}, HTMX):
        values = visitor.fill(visitor.get(f"{plan}/toml").text, text=wrong)
        said = visitor.post(f"{plan}/toml", headers=headers, **values).text
        lines = {int(line) for line in re.findall(r'data-line="(\d+)"', said)}
        at = wrong.split("\n")
        assert next(i for i, one in enumerate(at, 1) if "kindd" in one) in lines
        assert at.index("loss = 3") + 1 in lines
        assert "Did you mean &#39;kind&#39;?" in said
    assert visitor.text(plan) == text
    assert "kindd" in visitor.get(f"{plan}/toml").text  # what was typed is kept
    assert visitor.get(plan).status_code == 200  # the forms show the plan as it was


def test_text_and_forms_are_in_step(visitor):
    plan = visitor.start()
    values = visitor.fill(visitor.get(f"{plan}/toml").text)
    values["text"] = visitor.text(plan).replace("k = 3", "k = 8") + "# mine\n"
    assert "No mistakes" in visitor.post(f"{plan}/toml", headers=HTMX, **values).text
    assert 'value="8"' in visitor.get(plan).text
    visitor.change(plan, k="9")
    assert "k = 9" in visitor.get(f"{plan}/toml").text
    assert visitor.text(plan).endswith("# mine\n")
    late = visitor.post(
        f"{plan}/toml", headers=HTMX, **values | {"text": "# theirs\n" + values["text"]}
    )
    assert "changed elsewhere" in late.text
    assert "k = 9" in visitor.text(plan)


def test_a_broken_plan_leads_to_its_text(visitor):
    (visitor.folder / "bad.toml").write_text("[input\n")
    for page in ("", "/data", "/rules", "/map", "/run"):
        answer = visitor.get(f"/plans/bad.toml{page}")
        assert answer.status_code == 200
        assert "not TOML" in answer.text
    assert "not TOML" in visitor.post("/plans/bad.toml/run").text
    (visitor.folder / "binary.toml").write_bytes(bytes(range(256)))
    assert visitor.get("/plans/binary.toml").status_code == 400
    assert visitor.get("/plans/firms.csv").status_code == 400


# The map.


@pytest.mark.slow
def test_the_map_fills_and_a_point_becomes_the_plan(visitor):
    table = make_business_survey(60, random_state=0)[["employees", "turnover", "costs"]]
    table.to_csv(visitor.folder / "firms.csv", index=False)
    plan = visitor.start()
    assert visitor.post(f"{plan}/map", budget="5", sizes="3, 6").status_code == 303
    job = visitor.app.jobs.latest()[0]
    job._listener.join()
    assert job.state == "done", job.why
    page = visitor.get(f"{plan}/map?risk=50&loss=20").text
    assert "present plan" in page.lower()
    point = next(p for p in job.points if not p["present"] and not p["error"])
    keys = {p["key"] for p in job.points}
    assert len(keys) == len(job.points)
    assert page.count("<title>") >= len(job.points) - 1
    chosen = visitor.client.get(visitor.at(f"{plan}/map"), params={"point": point["key"]}).text
    assert "Make it the plan" in chosen
    assert visitor.post(f"{plan}/map/take", point=point["key"]).status_code == 303
    steps = read_plan(visitor.folder / "firms-plan.toml").steps
    assert steps[-1].method == point["steps"][-1]["method"]
    assert "The audit passed" in visitor.run(plan).text
    visitor.post(f"{plan}/move", to="undo")
    assert "k = 3" in visitor.text(plan)
    for bad in ({"budget": "0"}, {"budget": "many"}, {"sizes": "a"}):
        assert visitor.post(f"{plan}/map", **bad).status_code == 400
    assert visitor.post(f"{plan}/map/take", point="none").status_code == 400


# The rest.


def test_a_page_that_takes_time_says_so_and_comes(visitor, monkeypatch):
    """A table that is being read does not hold up the page."""
    visitor.app.site.patience = 0.0
    page = visitor.get("/files/firms.csv").text
    assert "Reading the file" in page
    key = re.search(r"/waiting/(\w+)", page)[1]
    visitor.app.site.patience = None
    assert "40 records in 4 columns" in visitor.get("/files/firms.csv").text
    assert visitor.get(f"/waiting/{key}").headers["HX-Refresh"] == "true"
    assert visitor.get("/waiting/none").headers["HX-Refresh"] == "true"


def test_the_process_of_the_table_may_die_and_is_started_again(visitor):
    visitor.get("/files/firms.csv")
    process = visitor.app.site.desk._process
    process.kill()
    process.wait()
    (visitor.folder / "b.csv").write_text("a,b\n1,2\n3,4\n")
    assert visitor.get("/files/b.csv").status_code == 200


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
    visitor = Visitor(tmp_path)
    assert "There is no table here" in visitor.get("/").text


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
    assert "problems found" in page
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
    assert visitor.get("/runs/..%2F..%2Fx/output/release").status_code in (400, 404)
    assert visitor.get("/runs/00000000/output/release").status_code == 400


@pytest.mark.parametrize("text", ["1.5", "-3", "３", "1e3", "0x10", "9" * 20, "+5"])
def test_whole_numbers(text):
    with pytest.raises(TessellaError, match="whole number"):
        whole_number({"k": text}, "k", least=2)


def test_forms_by_hand():
    stated = {"decimal": "comma", "missing": "NA, .", "header": "no", "sheet": ""}
    read = {"decimal": ",", "header": False, "missing": ["NA", "."]}
    assert forms.reading_options(stated) == read
    sizes = (812, 1023, 1024, 20_480, 10 * 1024, 2**20 - 1, 2**20, 3 * 2**30, 2**41)
    assert [forms.in_bytes(size) for size in sizes] == [
        "812 B", "1023 B", "1.0 KB", "20 KB", "10 KB", "1024 KB", "1.0 MB", "3.0 GB", "2048 GB",
    ]  # fmt: skip
    assert [forms.duration(s) for s in (0.41, 12.4, 75)] == ["0.4 s", "12 s", "1 min 15 s"]


def test_nothing_else_of_the_folder_is_touched(visitor, tmp_path: Path):
    before = {path.name: path.read_bytes() for path in visitor.folder.iterdir()}
    plan = visitor.start()
    visitor.run(plan)
    after = {path.name: path.read_bytes() for path in visitor.folder.iterdir() if path.is_file()}
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"firms-plan.toml"}
