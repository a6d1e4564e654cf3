"""Killed at any moment: what is there is whole, and belongs together. Real processes and kills."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tessella import publish
from tessella._output import UNFINISHED

from .conftest import make_plan, write_survey

# Two plans take turns, so that there is an old release to be mixed up with a new one.
KILLER = """
import os, random, signal, sys, time
from tests.publishing.conftest import make_plan
from pathlib import Path
import tessella.publishing.workflow, tessella.io.csv_reading, tessella.io.csv_writing
import tessella.io.arrow, tessella.masking.engine
import tessella.grouping.mdav, jinja2, pandas
import tessella.kernels.mdav, tessella.loss.generic
from tessella import publish

home, times = Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(times)
for number in range(times):
    folder = home / str(number)
    child = os.fork()
    if not child:  # publishes until it is killed
        while True:
            for k in (3, 6):
                publish(make_plan(folder, k=k, order="shuffled"), overwrite=True, pictures=False)
    while number % 2 == 0 and not (folder / "manifest.json").exists():
        time.sleep(0.01)  # half of them have finished at least once, however busy the machine
    time.sleep(chance.uniform(0, 0.5))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, status  # and not an error of its own
"""
ROOT = Path(__file__).parents[2]


def kill_at_random(tmp_path: Path, times: int) -> None:
    survey = tmp_path / "survey"
    survey.mkdir()
    write_survey(survey, n=80)
    given = set(os.listdir(survey))
    for name in ("k3", "k6", *range(times)):
        shutil.copytree(survey, tmp_path / str(name))
    for k in (3, 6):
        publish(make_plan(tmp_path / f"k{k}", k=k, order="shuffled"), pictures=False)
    names = ("release.csv", "report.html", "manifest.json")
    whole = {k: {n: (tmp_path / f"k{k}" / n).read_bytes() for n in names} for k in (3, 6)}
    assert whole[3] != whole[6]
    subprocess.run([sys.executable, "-c", KILLER, str(tmp_path), str(times)], check=True, cwd=ROOT)
    seen = 0
    for number in range(times):
        folder = tmp_path / str(number)
        for left in set(os.listdir(folder)) - given - {*names, "internal.html"}:
            assert UNFINISHED in left  # a release that was about to replace the old one
            content = (folder / left).read_bytes()
            assert content in (whole[3]["release.csv"], whole[6]["release.csv"])
        there = {n: (folder / n).read_bytes() for n in names if (folder / n).exists()}
        seen += len(there) == len(names)
        owners = [k for k in (3, 6) if there.items() <= whole[k].items()]
        assert owners, f"{sorted(there)} do not belong together, or are not whole"
        if "manifest.json" in there:  # the set is complete
            assert len(there) == len(names)
            assert (folder / "internal.html").exists()
        if (folder / "internal.html").exists() and len(owners) == 1:
            internal = (folder / "internal.html").read_text()
            assert internal.endswith("</html>\n")
            assert f"k = {owners[0]}" in internal
            assert "release.csv" in there
    assert seen


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork and SIGKILL")
def test_killed_at_random_moments(tmp_path):
    kill_at_random(tmp_path, 4)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork and SIGKILL")
def test_killed_a_hundred_times(tmp_path):
    kill_at_random(tmp_path, 100)
