"""The store: whole files only, nothing lost, nothing run twice, also after SIGKILL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from tessella.exceptions import BadTableError
from tessella.explore import Candidate, explore
from tessella.explore.candidate import Task
from tessella.explore.crew import Store
from tessella.risk import Attack, Estimate


def mdav(k, **options):
    return Candidate("protect", k=k, grouping="mdav", **options)


CANDIDATES = [mdav(k) for k in (3, 4, 5, 6, 7)]


@pytest.fixture
def table():
    return np.random.default_rng(0).normal(size=(60, 2))


def counting(counted):
    def run(case):
        counted.append(case.tag)
        return Estimate.of(1, 60, baseline=0.0, attack="counted")

    return [Attack(name="counted", about="identity", run=run)]


def test_nothing_is_tried_twice(table, tmp_path):
    counted = []
    settings = {"attacks": counting(counted), "n_jobs": 1, "store": tmp_path / "s"}
    first = explore(table, candidates=CANDIDATES[:3], **settings)
    second = explore(table, candidates=CANDIDATES, **settings)
    assert counted == CANDIDATES
    assert (first.reused, second.reused) == (0, 3)
    assert second.points[:3] == first.points  # the seed was kept, too
    assert [point.candidate for point in second] == CANDIDATES


@pytest.mark.parametrize(
    "change",
    [
        lambda t, o: (t + 1e-9, o),
        lambda t, o: (t, o | {"measures": ["pil"]}),
        lambda t, o: (t, o | {"effort": "standard"}),
        lambda t, o: (t, o | {"random_state": 5}),
        lambda t, o: (t, o | {"columns": [0]}),
        lambda t, o: (t, o | {"rules": "x0 <= 100"}),
    ],
)
def test_another_question_has_another_answer(table, tmp_path, change):
    counted = []
    options = {"attacks": counting(counted), "n_jobs": 1, "store": tmp_path, "random_state": 0}
    explore(table, candidates=CANDIDATES[:1], **options)
    if "rules" in change(table, {})[1]:
        pytest.importorskip("pandas")
        import pandas as pd

        table = pd.DataFrame(table, columns=["x0", "x1"])
        explore(table, candidates=CANDIDATES[:1], **options)
    before = len(counted)
    table, options = change(table, options)
    explore(table, candidates=CANDIDATES[:1], **options)
    assert len(counted) == before + 1


def test_interrupted_and_resumed(table, tmp_path):
    counted = []

    def stop(done, total, name):
        if done == 2:
            raise KeyboardInterrupt

    settings = {"attacks": counting(counted), "n_jobs": 1, "store": tmp_path / "s"}
    explore(table, candidates=CANDIDATES, progress=stop, **settings)
    assert len(counted) == 2
    resumed = explore(table, candidates=CANDIDATES, **settings)
    assert counted == CANDIDATES
    assert resumed.finished


def test_the_store_holds_no_value(table, tmp_path):
    explore(table, candidates=CANDIDATES[:2], attacks=["euclidean"], n_jobs=1, store=tmp_path / "s")
    texts = [path.read_text() for path in (tmp_path / "s").iterdir()]
    assert any("Confidential" in text for text in texts)
    for value in table.ravel():
        assert not any(f"{value:.6g}" in text for text in texts)
    assert os.stat(tmp_path / "s").st_mode & 0o077 == 0


def test_a_half_written_file_is_not_a_result(table, tmp_path):
    """A bug once met elsewhere: the power fails in the middle of a file."""
    counted = []
    settings = {"attacks": counting(counted), "n_jobs": 1, "store": tmp_path / "s"}
    explore(table, candidates=CANDIDATES[:1], **settings)
    (tmp_path / "s" / ".abc.json.1.2").write_text('{"loss": 1')  # what is left of a killed writer
    again = explore(table, candidates=CANDIDATES[:2], **settings)
    assert len(counted) == 2
    assert len(list(Store(tmp_path / "s"))) == 2
    assert again.reused == 1


def test_other_folders_are_refused(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(BadTableError, match="is a file"):
        Store(tmp_path / "f")
    with pytest.raises(BadTableError, match="other files"):
        Store(tmp_path)
    Store(tmp_path / "s")
    (tmp_path / "s" / "about.json").write_text(json.dumps({"form": 99}))
    with pytest.raises(BadTableError, match="another version"):
        Store(tmp_path / "s")
    (tmp_path / "s" / "about.json").write_text("nonsense")
    with pytest.raises(BadTableError, match="cannot be read"):
        Store(tmp_path / "s")


SCRIPT = """
import os, sys, time
import numpy as np
from tessella.explore import Candidate, explore
from tessella.risk import Attack, Estimate

store, log, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])

def slow(case):
    note("began", case)
    time.sleep(0.08)
    note("ended", case)
    return Estimate.of(1, 60, baseline=0.0, attack="slow")

def note(what, case):
    with open(log, "a") as file:
        file.write(f"{what} {case.tag['k']}\\n")

table = np.random.default_rng(0).normal(size=(60, 2))
candidates = [Candidate("protect", k=k, grouping="mdav") for k in range(3, 15)]
found = explore(
    table, candidates=candidates, n_jobs=jobs, store=store,
    attacks=[Attack(name="slow", about="identity", run=slow)],
)
print(len(found), found.reused)
"""


def workers_of(session):
    """The worker processes of a session that are still there."""
    listed = subprocess.run(
        ["ps", "-o", "cmd", "-s", str(session)], capture_output=True, text=True, check=False
    ).stdout
    return [line for line in listed.splitlines() if "popen_loky" in line]


@pytest.mark.slow
def test_a_process_that_dies_is_told_and_not_kept(table, tmp_path):
    """The kernel ends processes that take too much memory; what was in flight is tried again."""

    def deadly(case):
        if case.tag["k"] == 5 and not (tmp_path / "survives").exists():
            os._exit(1)
        return Estimate.of(1, 60, baseline=0.0, attack="deadly")

    settings = {
        "attacks": [Attack(name="deadly", about="identity", run=deadly)], "n_jobs": 2,
        "store": tmp_path / "s",
    }  # fmt: skip
    tried = explore(table, candidates=CANDIDATES, **settings)
    assert [point.candidate for point in tried] == CANDIDATES
    assert any(point.candidate["k"] == 5 for point in tried.refused)
    assert all("memory" in point.error for point in tried.refused)
    assert len(tried.refused) <= 2
    (tmp_path / "survives").touch()
    again = explore(table, candidates=CANDIDATES, **settings)
    assert not again.refused
    assert again.reused == 5 - len(tried.refused)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_killed_in_the_middle_and_resumed(tmp_path, jobs):
    """A real process, killed by SIGKILL when about a third is done."""
    log, store = tmp_path / "log", tmp_path / "store"
    call = [sys.executable, "-c", SCRIPT, str(store), str(log), str(jobs)]
    with subprocess.Popen(call, start_new_session=True) as process:
        while not log.exists() or log.read_text().count("ended") < 4:
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    session = process.pid
    while jobs > 1 and workers_of(session):  # they notice within a second or two
        time.sleep(0.1)
    kept = len(list(Store(store)))
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["12", str(kept)]
    began = Counter(line.split()[1] for line in log.read_text().splitlines() if "began" in line)
    assert set(began) == {str(k) for k in range(3, 15)}
    # Only what was in flight when the process died was begun again.
    assert sum(began.values()) <= 12 + jobs
    assert kept >= 4 - jobs


def test_a_damaged_point_is_named(tmp_path):
    table = np.random.default_rng(0).normal(size=(20, 2))
    settings = {
        "candidates": [mdav(3)],
        "attacks": ["euclidean"],
        "n_jobs": 1,
    }
    explore(table, store=tmp_path / "s", random_state=0, **settings)
    (path,) = (p for p in (tmp_path / "s").glob("*.json") if p.name != "about.json")
    good = json.loads(path.read_text())
    for bad in (
        {},
        good | {"loss": "x"},
        good | {"more": 1},
        good | {"candidate": {}},
    ):
        path.write_text(json.dumps(bad))
        with pytest.raises(BadTableError, match="is damaged"):
            explore(table, store=tmp_path / "s", random_state=0, **settings)


def test_messages_of_others_are_not_stored(tmp_path):
    """They may quote a value of a record, and the store promises to hold none."""
    table = np.random.default_rng(0).normal(size=(20, 2))

    def stumble(case):
        warnings.warn("strange value 'Ana Puig'", UserWarning, stacklevel=1)
        raise ValueError("could not convert 'Ana Puig'")

    clumsy = Attack(name="clumsy", about="identity", run=stumble)
    tried = explore(
        table, candidates=[mdav(3)], attacks=[clumsy], n_jobs=1, store=tmp_path / "s",
        random_state=0,
    )  # fmt: skip
    assert "unexpected ValueError" in tried.points[0].error
    assert "Puig" not in repr(tried)
    assert all("Puig" not in path.read_text() for path in (tmp_path / "s").iterdir())


def test_another_order_of_categories_is_another_table():
    words = pd.Categorical(list("abc") * 8, categories=list("abc"), ordered=True)
    one = pd.DataFrame({"word": words})
    other = pd.DataFrame({"word": words.reorder_categories(list("cab"), ordered=True)})
    assert Task.of(one).fingerprint != Task.of(other).fingerprint
