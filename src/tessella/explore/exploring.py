"""Which protection is best for this table: many candidates, tried and compared."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from datetime import timedelta
from time import perf_counter
from typing import Any

from .._parameters import NONE, OneOf, Whole, parameters
from .._types import Progress
from ..exceptions import BadOptionError
from ..grouping.base import check_k
from ..masking import registry
from ..parallel import n_cores
from ..schema import Schema
from .candidate import Candidate
from .evaluate import Settings, evaluate
from .exploration import Exploration
from .grid import default_candidates, propose
from .measures import find_attacks, find_measures
from .point import Point
from .store import Store, fresh_seed
from .task import Task

__all__ = ["Crew", "explore"]

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


BATCH = 8  # candidates proposed at a time: a fixed number, or results would depend on the cores
FIRST = 0.6  # share of a budget of points that goes to the first list
UNITS = {"s": 1, "sec": 1, "seconds": 1, "min": 60, "minutes": 60, "h": 3600, "hours": 3600}


@parameters(
    {"jobs": "n_jobs"},
    effort=[OneOf(("quick", "standard"))],
    n_jobs=[Whole(1), NONE],
    random_state=[Whole(0), NONE],
)
def explore(
    table: Any,
    *,
    candidates: Iterable[Candidate] | None = None,
    k: Sequence[int] = (3, 5, 10, 20),
    rules: Any = None,
    columns: Any = None,
    schema: Schema | None = None,
    attacks: Iterable[Any] | None = None,
    measures: Iterable[str] | None = None,
    effort: str = "quick",
    budget: int | timedelta | str | None = None,
    n_jobs: int | None = None,
    store: Any = None,
    progress: Progress | None = None,
    random_state: int | None = None,
) -> Exploration:
    """Try many ways to protect a table, and compare what they cost with what they protect.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The original table; it is not changed.
    candidates : iterable of Candidate, optional
        What to try; otherwise a dozen methods, each with several values of its parameter.
    k : sequence of int, default (3, 5, 10, 20)
        The sizes of groups to try, where candidates are not named.
    rules : Rules, text, or list of lines, optional
        What every released record must obey. Microaggregation then goes through `protect`; other
        maskers move records back to the rules. Who breaks one all the same is not on the front.
    columns : list of names, optional
        The columns to mask; the others are released as they are. By default all, or the
        quasi-identifiers of the schema.
    schema : Schema, optional
        Kinds and missing codes of the columns; guessed if not given.
    attacks : iterable of str or Attack, optional
        Names of attacks of `tessella.risk`, or attacks of your own. The worst
        one is the risk of a candidate.
    measures : iterable of str, optional
        Names of `tessella.explore.MEASURES`; the first is the loss that counts. By default
        "values", "sse_sst", "il1s" and "pil".
    effort : {"quick", "standard"}, default "quick"
        How hard `Search` searches and how many records a distance is learned from.
    budget : int, timedelta or text, optional
        How many points ("80" is an int), or how long ("5 min"). Three fifths of the points go to
        the first list, the rest between neighbours on the front; time ends the search wherever it
        is. Without a budget, all of the first list is tried, and nothing else.
    n_jobs : int, optional
        How many processes; by default one for each core. The answer is the same.
    store : path of a folder, optional
        Where results are kept as they come. The same call finds them again, after an
        interruption, too: nothing is lost, nothing is tried twice. **Confidential.**
    progress : callable, optional
        Called as ``progress(done, total, name)`` after each point: how many there are, how many
        are planned so far, and what the newest is.
    random_state : int, optional
        The seed; each candidate has its own, made from it. Otherwise one is drawn from the
        operating system's entropy, and kept in the store.

    Returns
    -------
    Exploration
        Also after Ctrl-C: then with what there is, and `finished` is False.

    Notes
    -----
    Loss and risk go from 0 to 100. The score of a candidate is their mean (Domingo-Ferrer and
    Torra 2001), with the largest share that any attack finds as the risk, not a mean of attacks:
    an intruder chooses.

    References
    ----------
    J. Domingo-Ferrer and V. Torra (2001). A quantitative comparison of disclosure control methods
    for microdata. In Confidentiality, Disclosure and Data Access, Elsevier, 111-133.
    G. T. Duncan, S. A. Keller-McNulty and S. L. Stokes (2001). Disclosure risk vs. data utility:
    the R-U confidentiality map. National Institute of Statistical Sciences, report 121.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.explore import Candidate, explore
    >>> table = np.random.default_rng(0).normal(size=(50, 2))
    >>> tried = [Candidate("protect", k=k, grouping="mdav") for k in (2, 5)]
    >>> found = explore(table, candidates=tried, attacks=["euclidean"], n_jobs=1, random_state=1)
    >>> [(point.k_reached, round(point.risk)) for point in found]
    [(2, 46), (5, 20)]
    """
    task = Task.of(table, columns=columns, rules=rules, schema=schema)
    points_left, seconds_left = _budget(budget)
    kept = None if store is None else Store(store)
    settings = Settings(
        attacks=find_attacks(attacks),
        measures=find_measures(measures),
        effort=effort,
        seed=_seed(random_state, kept),
    )
    grid = _first_list(candidates, task, k, effort)
    many = min(n_jobs or n_cores(), len(grid))
    walk = _Walk(grid, points_left, seconds_left, progress)
    with Crew(task, settings, kept, many) as crew:
        try:
            walk.go(crew)
        except KeyboardInterrupt:
            crew.__exit__(KeyboardInterrupt)
            walk.finished = False
    return Exploration(
        points=tuple(walk.points.values()),
        measures=settings.measures,
        attacks=tuple(attack.name for attack in settings.attacks),
        n_records=task.n,
        n_columns=len(task.masked),
        finished=walk.finished,
        reused=walk.reused,
        seconds=perf_counter() - walk.began,
    )


class _Walk:
    """The way through the candidates: a first list, then what it makes promising."""

    def __init__(
        self,
        grid: list[Candidate],
        points: int | None,
        seconds: float | None,
        progress: Progress | None,
    ) -> None:
        self.grid, self.limit, self.seconds, self.progress = grid, points, seconds, progress
        self.points: dict[Candidate, Point] = {}
        self.finished, self.reused = True, 0
        self.began = perf_counter()

    def go(self, crew: Crew) -> None:
        first = self.grid
        if self.limit is not None:
            first = first[: max(1, round(FIRST * self.limit))]
        self._try(crew, first, planned=len(first))
        if self.limit is None and self.seconds is None:
            return
        while self._in_time() and (self.limit is None or len(self.points) < self.limit):
            most = BATCH if self.limit is None else min(BATCH, self.limit - len(self.points))
            untried = [one for one in self.grid if one not in self.points]
            batch = propose(list(self.points.values()), untried, most)
            if not batch:
                return
            self._try(crew, batch, planned=self.limit or len(self.points) + len(batch))

    def _in_time(self) -> bool:
        return self.seconds is None or perf_counter() - self.began < self.seconds

    def _try(self, crew: Crew, batch: list[Candidate], *, planned: int) -> None:
        found: dict[Candidate, Point] = {}
        try:
            for point, reused in crew.try_all(batch, self._in_time):
                found[point.candidate] = point
                self.reused += reused
                done = len(self.points) + len(found)
                if self.progress is not None:
                    self.progress(done, max(planned, done), str(point.candidate))
        finally:  # in the order planned, whoever was ready first
            self.points.update({one: found[one] for one in batch if one in found})
        self.finished = len(found) == len(batch)


def _first_list(
    candidates: Iterable[Candidate] | None, task: Task, k: Sequence[int], effort: str
) -> list[Candidate]:
    if candidates is None:
        if isinstance(k, int):
            k = (k,)
        sizes = sorted({check_k(each, task.n) for each in k})
        if not sizes:
            raise BadOptionError("k", k, "at least one size of groups")
        return default_candidates(task, sizes, effort=effort)
    if isinstance(candidates, Candidate) or not isinstance(candidates, Iterable):
        raise BadOptionError("candidates", candidates, "a list of tessella.explore.Candidate")
    named = list(candidates)
    for one in named:
        if not isinstance(one, Candidate):
            raise BadOptionError("candidates", one, "a list of tessella.explore.Candidate")
    if not named:
        raise BadOptionError("candidates", named, "at least one candidate")
    return list(dict.fromkeys(named))


def _budget(budget: Any) -> tuple[int | None, float | None]:
    """Return a number of points or of seconds."""
    expected = 'a number of points such as 80, or a time such as "5 min"'
    if budget is None:
        return None, None
    if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0:
        return budget, None
    if isinstance(budget, timedelta) and budget.total_seconds() > 0:
        return None, budget.total_seconds()
    if isinstance(budget, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", budget)
        if match and match[2] in UNITS and float(match[1]) > 0:
            return None, float(match[1]) * UNITS[match[2]]
    raise BadOptionError("budget", budget, expected)


def _seed(random_state: int | None, store: Store | None) -> int:
    if random_state is None:
        return fresh_seed() if store is None else store.seed
    return random_state
