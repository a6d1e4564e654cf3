"""Where outputs go: no file twice, however it is spelled; of two runs at once, one wins whole."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tessella import publish
from tessella._output import refuse_same_file
from tessella.cli import app, main
from tessella.exceptions import BadFileError
from tessella.planfile import read_plan

from .conftest import make_plan, write_survey
from .test_kill import ROOT


def with_output(plan, **names):
    return plan.model_copy(update={"output": plan.output.model_copy(update=names)})


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    "other", ["./release.csv", "sub/../release.csv", "link/release.csv", "{home}/release.csv"]
)
@pytest.mark.parametrize("what", ["external_report", "internal_report", "manifest"])
def test_two_outputs_are_never_one_file(home, what, other, overwrite):
    (home / "sub").mkdir()
    (home / "link").symlink_to(home, target_is_directory=True)
    plan = with_output(make_plan(home), **{what: other.format(home=home)})
    before = set(os.listdir(home))
    with pytest.raises(BadFileError, match="this is the release, too"):
        publish(plan, overwrite=overwrite)
    assert set(os.listdir(home)) == before


def test_links_to_one_file_are_one_file(home):
    (home / "release.csv").write_text("old")
    os.link(home / "release.csv", home / "hard.html")
    (home / "soft.html").symlink_to(home / "release.csv")
    (home / "dangling.html").symlink_to(home / "manifest.json")
    for name in ("hard.html", "soft.html", "dangling.html"):
        with pytest.raises(BadFileError, match="too"):
            publish(with_output(make_plan(home), external_report=name), overwrite=True)
    assert (home / "release.csv").read_text() == "old"


def test_no_input_is_an_output_however_it_is_spelled(home):
    (home / "sub").mkdir()
    (home / "plan.csv").write_text(
        make_plan(home).to_toml().replace("release.csv", "sub/../plan.csv")
    )
    for plan, what in (
        (home / "plan.csv", "the plan"),
        (with_output(make_plan(home), manifest="sub/../rules.txt"), "the file of rules"),
        (with_output(make_plan(home), internal_report="sub/../firms.csv"), "the original"),
    ):
        with pytest.raises(BadFileError, match=what):
            publish(plan, overwrite=True)
    assert read_plan(home / "plan.csv")


def test_different_files_are_different(tmp_path):
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text("")
    paths = {"release": tmp_path / "a", "report": tmp_path / "b", "new": tmp_path / "c"}
    refuse_same_file(paths, {"the original": tmp_path / "d"})


RUN = """
import sys, time
from pathlib import Path
from tests.publishing.conftest import make_plan
from tessella import publish
from tessella.exceptions import BadFileError

home, me, k, other = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
met = False

def meet(done, total, name):  # both runs have looked at their outputs before either reads
    global met
    if not met:
        met = True
        Path(home, "at-" + me).touch()
        while not Path(home, "at-" + other).exists():
            time.sleep(0.005)

try:
    publish(make_plan(home, k=k), overwrite=True, pictures=False, progress=meet)
except BadFileError as error:
    print(error)
    sys.exit(3)
"""


def publish_at_once(home: Path, rounds: int) -> None:
    write_survey(home, n=80)
    for number in range(rounds):
        for name in ("at-a", "at-b"):
            (home / name).unlink(missing_ok=True)
        old = (home / "manifest.json").read_bytes() if number else b""
        runs = [
            subprocess.Popen(
                [sys.executable, "-c", RUN, str(home), *map(str, own)], cwd=ROOT,
                stdout=subprocess.PIPE, text=True,
            )
            for own in (("a", 3, "b"), ("b", 6, "a"))
        ]  # fmt: skip
        answers = [run.communicate()[0] for run in runs]
        codes = [run.returncode for run in runs]
        assert sorted(codes) == [0, 3], answers
        assert "another process wrote" in answers[codes.index(3)]
        told = json.loads((home / "manifest.json").read_text())
        assert told["k"] == (3, 6)[codes.index(0)]
        assert (home / "manifest.json").read_bytes() != old or told["k"] == json.loads(old)["k"]
        for file in told["files"]:
            content = (home / file["file"]).read_bytes()
            assert hashlib.sha256(content).hexdigest() == file["sha256"]
        assert f"k = {told['k']}" in (home / "internal.html").read_text()
    left = {"firms.csv", "firms.parquet", "rules.txt", "release.csv", "report.html",
            "internal.html", "manifest.json", "at-a", "at-b"}  # fmt: skip
    assert set(os.listdir(home)) == left  # no lock stays


def test_of_two_at_once_one_wins_whole(tmp_path):
    publish_at_once(tmp_path, 2)


@pytest.mark.slow
@pytest.mark.heavy
def test_of_two_at_once_one_wins_whole_25_times(tmp_path):
    publish_at_once(tmp_path, 25)


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_files_with_seeds_and_risks_are_their_owners(home, monkeypatch):
    """`tessella plan --seed -o`, `explore -o`, `risk --records`: as confidential as the data."""

    monkeypatch.chdir(home)

    def run(*arguments: str) -> None:
        done = CliRunner().invoke(app, [*arguments, "--quiet"], catch_exceptions=False)
        assert done.exit_code == 0, done.output

    run("plan", "firms.csv", "-k", "5", "--seed", "7", "-o", "plan.toml")
    columns = ("--columns", "employees,turnover", "--budget", "2", "-k", "3")
    run("explore", "firms.csv", *columns, "-o", "best.toml")
    run("explore", "firms.csv", *columns, "-o", "points.parquet", "--picture", "map.svg")
    run("risk", "firms.csv", "firms.csv", "--known", "employees", "--records", "who.csv",
        "--effort", "quick")  # fmt: skip
    for name in ("plan.toml", "best.toml", "points.parquet", "map.svg", "who.csv"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600, name


def test_a_report_never_replaces_the_other_or_its_summary(home, monkeypatch, capsys):
    plan = with_output(make_plan(home), summary="summary.json")
    publish(plan, pictures=False)
    monkeypatch.chdir(home)
    command = ["tessella", "report", "summary.json", "--overwrite"]
    for more in (["--external", "x.html", "--internal", "./x.html"],
                 ["--external", "./summary.json"]):  # fmt: skip
        monkeypatch.setattr(sys, "argv", [*command, *more])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2, capsys.readouterr().err
        assert not (home / "x.html").exists()
    assert json.loads((home / "summary.json").read_text())["format"] == 1
