"""Candidates tried one after another, or by several processes, and kept as they come.

A process and not a thread for each: maskers warn, and warnings of threads cannot be told apart.
Each process uses one core, so that the answer does not depend on how many there are.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Any

from ..masking import registry
from .candidate import Candidate
from .evaluate import Settings, evaluate
from .point import Point
from .store import Store
from .task import Task

__all__ = ["Crew"]

DIED = (
    "the process that tried it, or another at the same time, was ended from outside, perhaps for "
    "lack of memory; try it again with n_jobs=1"
)
_OWN: dict[str, Any] = {}  # of a worker: the task, the settings, the store


class Crew:
    """Those who try candidates: this process, or `jobs` of its own.

    Parameters
    ----------
    task, settings
        What is tried, and how.
    store : Store or None
        Where results are kept; each as soon as it is there.
    jobs : int
        How many processes; 1 works in this one.
    """

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
        names = {one: self._name(one) for one in candidates}
        left = []
        for one in candidates:
            held = None if self.store is None else self.store.find(names[one])
            if held is None:
                left.append(one)
            else:
                yield held, True
        yield from self._try_new(left, names, go_on)

    def _name(self, candidate: Candidate) -> str:
        return "" if self.store is None else self.store.name(candidate, self.task, self.settings)

    def _try_new(
        self, left: list[Candidate], names: dict[Candidate, str], go_on: Callable[[], bool]
    ) -> Iterator[tuple[Point, bool]]:
        if self.jobs == 1:
            for one in left:
                if not go_on():
                    return
                yield _try_here(one, names[one], self.task, self.settings, self.store), False
            return
        waiting: dict[Future[Point], Candidate] = {}
        todo = iter(left)
        more = True
        while more or waiting:
            while more and len(waiting) < self.jobs:
                following = next(todo, None) if go_on() else None
                more = following is not None
                if following is not None:
                    begun = self._workers().submit(_try_there, following, names[following])
                    waiting[begun] = following
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            if any(isinstance(ready.exception(), BrokenExecutor) for ready in done):
                done = set(waiting)  # with one process all are lost
                self._pool = None
            for ready in done:
                yield self._result(ready, waiting.pop(ready)), False

    def _result(self, ready: Future[Point], candidate: Candidate) -> Point:
        """Return a point; where its process died, say so, and keep nothing: it may be repeated."""
        if self._pool is None and (not ready.done() or ready.exception() is not None):
            held = None if self.store is None else self.store.find(self._name(candidate))
            return Point(candidate=candidate, error=DIED) if held is None else held
        return ready.result()

    def _workers(self) -> Any:
        if self._pool is None:
            from joblib.externals.loky import ProcessPoolExecutor

            single = dict.fromkeys(
                ("TESSELLA_CORES", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
                "1",
            )
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


def _try_there(candidate: Candidate, name: str) -> Point:
    point = evaluate(candidate, _OWN["task"], _OWN["settings"])
    if _OWN["store"] is not None:
        _OWN["store"].keep(name, point)
    return point


def _try_here(
    candidate: Candidate, name: str, task: Task, settings: Settings, store: Store | None
) -> Point:
    from threadpoolctl import threadpool_limits

    with _noting_interrupts() as noted, threadpool_limits(1):
        point = evaluate(candidate, task, settings)
        if noted:  # a search may end early on Ctrl-C, and be worse for it: not a result
            raise KeyboardInterrupt
    if store is not None:
        store.keep(name, point)
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
