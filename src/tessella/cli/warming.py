"""Kernels are compiled on first use, once: here several processes do it at a time.

`tessella warm-up` compiles what the commands use, before somebody waits for it. A command that
finds nothing compiled starts a process beside itself, which compiles what the command needs last
(the attacks, the bound) while the command reads the file and compiles what it needs first. Both
keep their machine code in the same place, so that a kernel which one has finished is loaded by
the other; a kernel that both begin at the same time is compiled twice, which costs time only.

A *task* is a small piece of work whose kernels are those of a part of the way of the data.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

N = 60  # records of a task: enough for every step, and nothing to compute


def _firms(n: int = N) -> tuple[Any, Any]:
    from ..datasets import make_business_survey

    table, rules = make_business_survey(
        n, random_state=0, inconsistent=0.05, missing=0.01, weights=True, return_rules=True
    )
    return table, rules


def read() -> None:
    """Read a text file with numbers, codes and dates."""
    from ..io import read_file, write_file

    table, _ = _firms()
    table["date"] = "2024-05-17"
    with TemporaryDirectory() as folder:
        write_file(table, Path(folder) / "table.csv")
        read_file(Path(folder) / "table.csv").schema()


def mask() -> None:
    """Mask firms under rules: search for groups, nearest points, whole numbers."""
    from ..release import protect

    table, rules = _firms(4 * N)
    table = table.dropna().drop(columns=["firm", "weight"])  # missing cells cut parts too small
    protect(table, k=3, rules=rules, random_state=0)


def attack() -> None:
    """Link a table of numbers and categories with a masked one, and learn the distance."""
    from ..risk import assess

    table, _ = _firms()
    table = table.drop(columns=["firm", "weight"])
    masked = table.copy()
    for name in masked.select_dtypes("number"):
        masked[name] = masked[name].round(-1)
    assess(table, masked, effort="quick")


def bound() -> None:
    """Bound the loss of every grouping."""
    from ..grouping.bound import lower_bound

    lower_bound(np.random.default_rng(0).normal(size=(N, 4)), 3, effort="quick")


def people() -> None:
    """Mask persons in households, with categories."""
    from ..datasets import make_households
    from ..release import protect

    table, rules = make_households(4 * N, random_state=0, return_rules=True)
    protect(table.drop(columns="person"), k=3, rules=rules, unit="household", random_state=0)


def fuzzy() -> None:
    """Mask with fuzzy clusters."""
    from ..masking import FuzzyMicroaggregation

    X = np.random.default_rng(0).normal(size=(N, 4))
    FuzzyMicroaggregation(k=3, random_state=0).fit_transform(X)


def keys() -> None:
    """Empty cells of categorical keys, and make others coarser."""
    from ..datasets import make_census_keys
    from ..masking import LocalRecoding, LocalSuppression, Recoding

    table, hierarchies = make_census_keys(N, random_state=0, return_hierarchies=True)
    LocalSuppression(k=3, columns=list(hierarchies)).fit_transform(table)
    Recoding(k=3, hierarchies=hierarchies).fit(table)
    LocalRecoding(k=3, hierarchies=hierarchies, effort="quick", random_state=0).fit(table)


def explore() -> None:
    """Try the usual candidates of the map."""
    from ..explore import explore as explore_table

    table, _ = _firms()
    explore_table(table[["employees", "turnover", "wages"]], n_jobs=1, random_state=0)


# The largest first, so that two processes end at about the same time.
TASKS: Mapping[str, Callable[[], None]] = {
    "mask": mask, "attack": attack, "explore": explore, "people": people, "keys": keys,
    "fuzzy": fuzzy, "bound": bound, "read": read,
}  # fmt: skip
BESIDE = ("attack", "bound")  # what a process beside a command compiles


def run(names: list[str]) -> None:
    """Run tasks, until the process that started this one has ended."""
    parent = os.getppid()
    for name in names:
        if os.getppid() != parent:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TASKS[name]()


def start(names: list[str]) -> subprocess.Popen[bytes]:
    """Run tasks in another process, which prints nothing."""
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    return subprocess.Popen([sys.executable, "-P", "-m", __name__, *names], **quiet)


@contextmanager
def compiling_beside() -> Iterator[None]:
    """Let another process compile what a command needs last, where nothing is compiled yet.

    It does not outlive the command: what it has finished is kept.
    """
    from ..kernels import is_compiled
    from ..kernels.gower import count_in_gower_tree  # of the attacks, which come last
    from ..parallel import n_cores

    beside = None if n_cores() < 2 or is_compiled(count_in_gower_tree) else start(list(BESIDE))
    try:
        yield
    finally:
        if beside is not None:
            beside.kill()
            beside.wait()


def warm_up(step: Callable[[int, int, str], object]) -> list[str]:
    """Compile what the commands use, as many processes at a time as there are cores.

    Returns the tasks that failed.
    """
    from ..parallel import n_cores

    waiting, failed = list(TASKS), []
    running: dict[str, subprocess.Popen[bytes]] = {}
    total = len(waiting)
    try:
        while waiting or running:
            while waiting and len(running) < n_cores():
                name = waiting.pop(0)
                running[name] = start([name])
            step(total - len(waiting) - len(running), total, f"compiling: {', '.join(running)}")
            for name, process in list(running.items()):
                with suppress(subprocess.TimeoutExpired):
                    failed += [name] if process.wait(0.2) else []
                    del running[name]
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    return failed


if __name__ == "__main__":
    run(sys.argv[1:])
