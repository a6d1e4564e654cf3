"""Kernels that are compiled ahead or beside a command, and what is printed about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba import njit

from tessella.cli import warming
from tessella.cli.terminal import COMPILING
from tessella.datasets import make_business_survey
from tessella.kernels import watch_compilation


def test_the_first_compilation_is_reported_once():
    """By hand: two functions are compiled, one call; none for a compiled one, nor after."""
    calls: list[str] = []
    one, other, last = (njit(lambda x, by=by: x * by) for by in (2, 3, 4))
    with watch_compilation(lambda: calls.append("first")):
        assert (one(1), other(1)) == (2, 3)
    assert calls == ["first"]
    with watch_compilation(lambda: calls.append("second")):
        assert one(2) == 4
    assert last(1) == 4
    assert calls == ["first"]


@pytest.mark.parametrize("task", ["read", "bound", "attack"])
def test_a_task_runs(task):
    """What a process beside a command does must not fail where nobody looks."""
    warming.run([task])


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(set(warming.TASKS) - {"read", "bound", "attack"}))
def test_a_longer_task_runs(task):
    warming.run([task])


def test_a_task_that_fails_is_reported(monkeypatch):
    monkeypatch.setattr(warming, "TASKS", {"read": warming.read, "no such task": warming.read})
    steps: list[tuple[int, int, str]] = []
    # Another process does not know the second task.
    assert warming.warm_up(lambda *step: steps.append(step)) == ["no such task"]
    assert {total for _, total, _ in steps} == {2}


def test_one_core_compiles_alone(monkeypatch):
    monkeypatch.setenv("TESSELLA_CORES", "1")
    monkeypatch.setattr("tessella.kernels.is_compiled", lambda _: False)

    def start(names):
        raise AssertionError(names)

    monkeypatch.setattr(warming, "start", start)
    with warming.compiling_beside():
        pass


def test_what_compiles_beside_a_command_ends_with_it(monkeypatch):
    """The real process, on a command that ends at once."""
    monkeypatch.setenv("TESSELLA_CORES", "2")
    monkeypatch.setattr("tessella.kernels.is_compiled", lambda _: False)
    started: list[subprocess.Popen[bytes]] = []
    start = warming.start

    def noted(names):
        started.append(start(names))
        return started[0]

    monkeypatch.setattr(warming, "start", noted)
    with warming.compiling_beside():
        assert started[0].args[-2:] == list(warming.BESIDE)
    assert started[0].returncode is not None


@pytest.mark.slow
def test_compilation_is_announced_only_where_it_happens(tmp_path: Path):
    """Two real commands, the second of which finds everything compiled."""
    make_business_survey(60, random_state=0).to_csv(tmp_path / "firms.csv", index=False)
    cache = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "TESSELLA_CORES": "1",
             "TESSELLA_AHEAD": "0"}  # fmt: skip
    command = [sys.executable, "-m", "tessella", "check", str(tmp_path / "firms.csv")]
    first, second = (
        subprocess.run(command, env=cache, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert COMPILING in " ".join(first.stderr.split())
    assert "ompil" not in second.stderr
    assert first.stdout == second.stdout
