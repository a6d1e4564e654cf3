"""Work in a process of its own: foreign lines, death, and a deaf ear. Real processes and kills."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tessella.app import jobs
from tessella.app.jobs import Job, Jobs

from .conftest import Visitor, until_reached

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and C's own output")

NOISE = r"""
import ctypes
for line in (b"HighsMipSolverData tmpSolver.run();\n", b"null\n", b"[1]\n", b'{{"kind": "done"}}\n',
             b'{{"kind": "step"}}\n', b"\xff\xfe\n", b"\n", b"\0\n", b"x" * 70_000, b"half"):
    os.write({descriptor}, line)
ctypes.CDLL(None).puts(b"by puts")
"""


def verify(visitor: Visitor) -> Job:
    return visitor.app.jobs.start(
        "verify", folder=str(visitor.folder), original="firms.csv", release="firms.csv", k=None,
        rules=None, strata=None, id=None, manifest=None,
    )  # fmt: skip


def ended(job: Job) -> Job:
    job._listener.join()
    return job


@pytest.mark.parametrize("when", ["before the work", "within the work"])
def test_foreign_lines_are_skipped(visitor: Visitor, worker_does: Any, when: str) -> None:
    """Before the work begins they are on the very pipe of the messages."""
    noise = NOISE.format(descriptor=1)
    within = "within" in when
    mark = worker_does(noise if within else "pass", first="pass" if within else f"exec({noise!r})")
    job = ended(verify(visitor))
    assert mark.exists()
    assert job.state == "done", job.why
    assert job.result["names"] == {"original": "firms.csv", "release": "firms.csv"}


def test_foreign_lines_between_the_messages() -> None:
    """By hand: only whole lines with the key of the work count, whatever else they look like."""
    job = Job(task="verify", asked={})
    key = job.key.encode()
    whole = b' {"kind": "done"}\n'
    for line in (
        b"", b"\n", b"\xff\n", b"null\n", whole, b"other" + whole, b"half " + key + whole,
        key + whole[:9],
    ):  # fmt: skip
        job._receive(line)
        assert job.state == "running"
    job._receive(key + b' {"kind": "step", "at": 1, "of": 2, "name": "reading"}\n')
    assert (job.at, job.of, job.step) == (1, 2, "reading")
    job._receive(key + b' {"kind": "done", "result": {"a": 1}}\n')
    assert (job.state, job.result) == ("done", {"a": 1})
    job._receive(key + b' {"kind": "refused", "why": "late"}\n')
    assert (job.state, job.why) == ("done", "")


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ("os._exit(7)", "code 7"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "code -9"),
        ("os.write(2, b'Segmentation fault\\n'); os.abort()", "Segmentation fault"),
        ("os.close(0); os.close(1); os._exit(0)", "code 0"),
        ("raise RuntimeError('of a library')", "RuntimeError: of a library"),
        # A child of it lives on, and holds all of its pipes open.
        ("(home / 'child').write_text(str(os.getpid())) and time.sleep(3600) if os.fork() == 0 "
         "else os._exit(3)", "code 3"),
    ],
)  # fmt: skip
def test_a_worker_that_dies_is_noticed(
    visitor: Visitor, worker_does: Any, monkeypatch: pytest.MonkeyPatch, action: str, says: str
) -> None:
    monkeypatch.setattr(jobs, "PATIENCE", 0.2)
    mark = worker_does(action)
    job = ended(verify(visitor))
    child = mark.parent / "child"
    if "fork" in action:
        while not child.exists() or not child.read_text():
            time.sleep(0.01)
        os.kill(int(child.read_text()), signal.SIGKILL)
    assert job.state == "broken"
    assert says in job.why
    assert job.seconds >= 0
    page = visitor.get(f"/work/{job.key}")
    assert page.status_code == 200
    assert "ended unexpectedly" in page.text
    if "fork" in action:  # the next work is not disturbed
        (mark.parent / "sitecustomize.py").write_text("")
        assert ended(verify(visitor)).state == "done"


def test_a_worker_killed_from_outside(visitor: Visitor, worker_does: Any) -> None:
    mark = worker_does("time.sleep(3600)")
    job = verify(visitor)
    assert until_reached(job, mark)
    os.kill(job._process.pid, signal.SIGKILL)
    assert ended(job).state == "broken"
    assert visitor.app.jobs.running is None


def test_a_worker_that_does_not_listen_is_ended(
    visitor: Visitor, worker_does: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PATIENCE", 0.2)
    mark = worker_does("signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)")
    job = verify(visitor)
    assert until_reached(job, mark)
    job.stop()
    assert job.state == "stopped"
    assert ended(job)._process.returncode == -signal.SIGKILL


def test_cancelled_though_started_in_the_background(visitor: Visitor, worker_does: Any) -> None:
    """A background shell ignores SIGINT, and its children inherit that: the work must not."""
    mark = worker_does("time.sleep(3600)")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        job = verify(visitor)
    finally:
        signal.signal(signal.SIGINT, before)
    assert until_reached(job, mark)
    job._process.send_signal(signal.SIGINT)
    assert ended(job).state == "stopped"  # by itself, not killed
    assert job._process.returncode == 0


def test_a_waiting_worker_that_died_is_replaced(folder: Path) -> None:
    work = Jobs()
    try:
        work.prepare()
        first = work._ready
        assert first is not None
        first.kill()
        first.wait()
        job = work.start(
            "verify", folder=str(folder), original="firms.csv", release="firms.csv", k=None,
            rules=None, strata=None, id=None, manifest=None,
        )  # fmt: skip
        assert ended(job).state == "done", job.why
    finally:
        work.stop()
