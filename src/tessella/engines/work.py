"""Work that may be interrupted: steps in a folder, jobs done by processes, resumed where it ended.

The work goes in *steps*, each a folder; the *jobs* of a step may be done in any order and by any
process. A job writes what it makes, and last its *notes*: what the driver needs to know. A file
gets its name when it is whole, so a job that has its notes is done.

So whoever is killed, and whenever, leaves files that are whole; who comes again with the same task
finds the jobs that are done, and goes on. Nothing in the files may depend on who wrote them, nor
when. One driver at a time holds the folder; its workers end when it does.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import parallel
from .._output import held
from ..exceptions import BadFileError, RefusedError

PATIENCE = 3  # times that a worker may be lost, one after the other, before the work is given up
UNFINISHED = ".unfinished"
OF_PROCESS = 400 << 20  # bytes that a process takes, at most

Notes = Mapping[str, Any]


class LostWorkersError(RefusedError):
    """Processes ended again and again; what is done is kept."""


class Workshop:
    """A folder in which a task is worked on.

    Parameters
    ----------
    folder : Path
        Where the files are; it holds the table's own values and is as confidential.
    task : mapping
        What is done, as plain values: other work in the same folder is refused.
    n_jobs : int
        How many processes work.
    """

    def __init__(self, folder: Path, task: Mapping[str, Any], *, n_jobs: int = 1) -> None:
        self.folder, self.n_jobs = folder, n_jobs
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.holding = ExitStack()
        self.holding.enter_context(held([folder]))
        try:
            self._claim(task)
        except BaseException:
            self.holding.close()
            raise
        self.turn = 0  # number of the step
        self.pool: ProcessPoolExecutor | None = None

    def _claim(self, task: Mapping[str, Any]) -> None:
        """Take the folder for a task, or go on with it; remove what was left unfinished."""
        text = json.dumps(task, sort_keys=True)
        stated = self.folder / "task.json"
        there = [path for path in self.folder.iterdir() if not path.name.startswith(".")]
        if (stated.exists() and stated.read_text() != text) or (there and not stated.exists()):
            self.refuse("of another task")
        if not there:
            write_whole(stated, text.encode())
        for unfinished in self.folder.rglob(f".*{UNFINISHED}"):
            unfinished.unlink()

    def refuse(self, what: str) -> NoReturn:
        """Refuse the folder for what it has."""
        raise BadFileError(
            self.folder, f"this folder has files {what}", "Give a new folder, or remove these files"
        )

    def close(self) -> None:
        """End the processes, and let others have the folder."""
        self._end_workers()
        self.holding.close()

    def _end_workers(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)
            self.pool = None

    def step(self, name: str) -> Path:
        """Begin a step."""
        step = self.folder / f"step-{self.turn:04d}-{name}"
        self.turn += 1
        step.mkdir(exist_ok=True)
        return step

    def run(self, step: Path, work: Callable[..., None], jobs: list[Any]) -> list[Notes]:
        """Do the jobs of a step that are not done; return the notes of all.

        A job is a tuple, the second of which is its number.
        """
        for _ in self.map(work, [job for job in jobs if not notes_of(step, job[1]).exists()]):
            pass
        return [read_notes(step, job[1]) for job in jobs]

    def map(self, work: Callable[..., Any], jobs: list[Any]) -> Iterator[Any]:
        """Yield what the jobs give, in their order; a worker that is lost is replaced."""
        if self.n_jobs == 1:
            yield from map(work, jobs)
            return
        found: dict[int, Any] = {}
        lost = 0
        while len(found) < len(jobs):
            left = [at for at in range(len(jobs)) if at not in found]
            before = len(found)
            try:
                pool = self._pool()
                futures = {pool.submit(work, jobs[at]): at for at in left}
                for future in as_completed(futures):
                    found[futures[future]] = future.result()
            except BrokenProcessPool:
                self._end_workers()
                lost = lost + 1 if len(found) == before else 0
                if lost >= PATIENCE:
                    raise LostWorkersError(
                        f"A process that worked on a cell has ended {lost} times, one after the "
                        "other, maybe for want of memory. Nothing is released. What is done is "
                        "kept: start again, with fewer processes."
                    ) from None
        yield from (found[at] for at in range(len(jobs)))

    def _pool(self) -> ProcessPoolExecutor:
        if self.pool is None:
            self.pool = ProcessPoolExecutor(
                self.n_jobs, mp_context=get_context("spawn"), initializer=_begin_work
            )
        return self.pool


def processes(memory: int | None) -> int:
    """Return how many processes work: as many as there are cores, and as fit in the memory."""
    if memory is None:
        return parallel.n_cores()
    return max(1, min(parallel.n_cores(), memory // OF_PROCESS))


def _begin_work() -> None:
    """Make a process a worker: on one core, and for as long as its driver is there."""
    parallel.stay_on_one_core()
    driver = parent_process()

    def follow() -> None:
        if driver is not None:
            driver.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def notes_of(step: Path, number: int) -> Path:
    """Return the file of the notes of a job."""
    return step / f"{number:06d}.npz"


def write_whole(path: Path, content: Any) -> None:
    """Write a file whole, or not at all."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(6)}{UNFINISHED}")
    try:
        with open(unfinished, "wb", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            file.write(content)
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def write_notes(step: Path, number: int, facts: Mapping[str, Any]) -> None:
    """Write the notes of a job, which is then done."""
    write_whole(notes_of(step, number), pack_notes(facts))


def read_notes(step: Path, number: int) -> Notes:
    """Read the notes of a job."""
    return unpack_notes(notes_of(step, number).read_bytes())


def pack_notes(facts: Mapping[str, Any]) -> bytes:
    """Return notes as the bytes of an npz file."""
    notes = io.BytesIO()
    np.savez(notes, **facts)
    return notes.getvalue()


def unpack_notes(notes: bytes) -> Notes:
    """Return the notes of an npz file, all of them arrays."""
    with np.load(io.BytesIO(notes)) as kept:
        return {name: kept[name] for name in kept.files}
