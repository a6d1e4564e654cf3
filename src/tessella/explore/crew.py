"""Those who try candidates, and where their results are kept: one small file for each point.

A file gets its name when it is on the disk: at any moment, even after the power failed, a point is
there whole or not at all. The folder is **confidential**: it holds risks, and hashes of the table
that would confirm a guess of the whole of it; it holds no value of any record.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from pathlib import Path
from typing import Any

from .._output import whole_or_nothing
from ..exceptions import BadTableError, TessellaError
from ..masking import registry
from .candidate import Candidate, Task
from .evaluate import Point, Settings, evaluate

FORM = 3  # of the files; raised when they, or what figures mean, change
ABOUT = "about.json"
WARNING = (
    "Results of tessella.explore. Confidential: they show how well attacks on the table work. "
    "They hold no value of any record."
)


def fresh_seed() -> int:
    """Return a seed from the operating system's entropy."""
    return secrets.randbits(31)


class Store:
    """A folder of points, found again by candidate, table, settings and seed.

    It is made if it is not there. A folder with other things in it is refused.
    """

    def __init__(self, folder: Any) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise BadTableError(
                f"store={str(folder)!r} is a file, and a folder is needed. Give the name of a "
                "folder that is not there yet."
            )
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = self.folder / ABOUT
        if about.exists():
            self._known = _read(about)
            if self._known.get("form") != FORM:
                raise BadTableError(
                    f"store={str(folder)!r} was written by another version of tessella. Give "
                    "another folder."
                )
        elif any(path for path in self.folder.iterdir() if not path.name.startswith(".")):
            raise BadTableError(
                f"store={str(folder)!r} holds other files than results. Give a folder of its own."
            )
        else:
            self._known = {"form": FORM, "about": WARNING, "seed": fresh_seed()}
            _write(about, self._known)

    @property
    def seed(self) -> int:
        """The seed that was drawn when the folder was made, for those who give none."""
        return int(self._known["seed"])

    def _path(self, candidate: Candidate, task: Task, settings: Settings) -> Path:
        from .. import __version__

        parts = (__version__, candidate.key, task.fingerprint, settings.key, str(settings.seed))
        digest = hashlib.sha256("\x00".join(parts).encode()).hexdigest()
        return self.folder / f"{digest[:40]}.json"

    def find(self, candidate: Candidate, task: Task, settings: Settings) -> Point | None:
        """Return the point of a candidate, or None where it was not tried yet."""
        path = self._path(candidate, task, settings)
        return _point(path) if path.exists() else None

    def keep(self, point: Point, task: Task, settings: Settings) -> None:
        """Write a point; another writer of the same point does no harm."""
        _write(self._path(point.candidate, task, settings), point.to_dict())

    def __iter__(self) -> Iterator[Point]:
        for path in sorted(self.folder.glob("*.json")):
            if path.name != ABOUT:
                yield _point(path)


def _write(path: Path, content: dict[str, Any]) -> None:
    with whole_or_nothing(path, overwrite=True, private=True) as file:
        file.write(json.dumps(content, allow_nan=False, indent=1).encode())


def _point(path: Path) -> Point:
    known = _read(path)
    try:
        return Point.from_dict(known)
    except (KeyError, TypeError, ValueError, TessellaError) as error:
        raise BadTableError(
            f"The result {path.name} in the store is damaged. Remove this file: its point will be "
            "tried again."
        ) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadTableError(
            f"The result {path.name} in the store cannot be read ({error}). Remove this file: its "
            "point will be tried again."
        ) from error
    if not isinstance(known, dict):
        raise BadTableError(f"The result {path.name} in the store is damaged. Remove this file.")
    return known


DIED = (
    "the process that tried it, or another at the same time, was ended from outside, perhaps for "
    "lack of memory; try it again with n_jobs=1"
)
_OWN: dict[str, Any] = {}  # of a worker: the task, the settings, the store


class Crew:
    """Those who try candidates: this process, or `jobs` of its own; results go to the store."""

    def __init__(self, task: Task, settings: Settings, store: Store | None, jobs: int) -> None:
        self.task, self.settings, self.store, self.jobs = task, settings, store, jobs
        self._pool: Any = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=kind is not None)
            self._pool = None

    def try_all(
        self, candidates: list[Candidate], go_on: Callable[[], bool]
    ) -> Iterator[tuple[Point, bool]]:
        """Give each point as it is there, and whether it came from the store.

        `go_on` is asked before each new candidate is begun.
        """
        left = []
        for one in candidates:
            held = self._find(one)
            if held is None:
                left.append(one)
            else:
                yield held, True
        yield from self._try_new(left, go_on)

    def _find(self, one: Candidate) -> Point | None:
        return None if self.store is None else self.store.find(one, self.task, self.settings)

    def _try_new(
        self, left: list[Candidate], go_on: Callable[[], bool]
    ) -> Iterator[tuple[Point, bool]]:
        if self.jobs == 1:
            for one in left:
                if not go_on():
                    return
                yield self._try_here(one), False
            return
        waiting: dict[Future[Point], Candidate] = {}
        todo = iter(left)
        more = True
        while more or waiting:
            while more and len(waiting) < self.jobs:
                following = next(todo, None) if go_on() else None
                more = following is not None
                if following is not None:
                    waiting[self._workers().submit(_try_there, following)] = following
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            if any(isinstance(ready.exception(), BrokenExecutor) for ready in done):
                done = set(waiting)  # with one process all are lost
                # All have ended before the store is asked what they kept: none finishes after it.
                self._pool.shutdown(wait=True, kill_workers=True)
                self._pool = None
            for ready in done:
                yield self._result(ready, waiting.pop(ready)), False

    def _result(self, ready: Future[Point], candidate: Candidate) -> Point:
        """Return a point; where its process died, say so, and keep nothing: it may be repeated."""
        if self._pool is None and (not ready.done() or ready.exception() is not None):
            held = self._find(candidate)
            return Point(candidate=candidate, error=DIED) if held is None else held
        return ready.result()

    def _try_here(self, candidate: Candidate) -> Point:
        from threadpoolctl import threadpool_limits

        with _noting_interrupts() as noted, threadpool_limits(1):
            point = evaluate(candidate, self.task, self.settings)
            if noted:  # a search may end early on Ctrl-C, and be worse for it: not a result
                raise KeyboardInterrupt
        return _kept(point, self.task, self.settings, self.store)

    def _workers(self) -> Any:
        if self._pool is None:
            from joblib.externals.loky import ProcessPoolExecutor

            libraries = ("OMP", "OPENBLAS", "MKL")
            single = {"TESSELLA_CORES": "1", **{f"{one}_NUM_THREADS": "1" for one in libraries}}
            self._pool = ProcessPoolExecutor(
                self.jobs, initializer=_begin, env=single,
                initargs=(self.task, self.settings, self.store, registry.added()),
            )  # fmt: skip
        return self._pool


def _begin(
    task: Task, settings: Settings, store: Store | None, methods: list[registry.Method]
) -> None:
    """Prepare a worker; Ctrl-C is for the process that has started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    for method in methods:  # of others: this process has not imported them
        registry.register(method)
    _OWN.update(task=task, settings=settings, store=store)


def _end_with(parent: int) -> None:
    """End this process when the one that has started it is gone; a point is kept whole or not."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _try_there(candidate: Candidate) -> Point:
    return _kept(evaluate(candidate, _OWN["task"], _OWN["settings"]), **_OWN)


def _kept(point: Point, task: Task, settings: Settings, store: Store | None) -> Point:
    if store is not None:
        store.keep(point, task, settings)
    return point


@contextlib.contextmanager
def _noting_interrupts() -> Iterator[list[int]]:
    """Collect interrupts, and pass them on as usual; only the main thread gets them."""
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    usual = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        noted.append(number)
        if callable(usual):
            usual(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, usual)
