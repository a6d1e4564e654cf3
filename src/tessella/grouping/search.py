"""Search: the grouping with the least spread that the given effort can find.

Vocabulary: a *run* anneals the whole table from a start; a *round* cuts the table into windows and
anneals each, keeping what is better; the *pool* holds every group seen and puts the best partition
together from them. All work is counted in moves, never in seconds, unless a time limit is given:
the same seed gives the same groups on every machine and on every number of cores.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from .. import _clock
from .._clock import waiting
from .._parameters import EFFORT, NONE, SEED, Number, check_parameters, parameters
from .._types import Floats, Integers, Progress
from ..diversity import Diversity
from ..exceptions import InterruptedWarning
from ..kernels.diverse_moves import anneal_diverse
from ..kernels.diversity import nearest_and_other
from ..kernels.groups import renumber
from ..kernels.random_moves import anneal
from ..kernels.units import anneal_units, nearest_and_units
from ..kernels.windows import nearest_in_window, spread
from ..parallel import each
from .base import Grouping, Units, sse_of
from .cells import LARGE, MemoryCells, first_groups, groups_in_window, search_in_cells
from .diverse_windows import largest_group
from .refining import Pool, anneal_windows, near_count


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work one word stands for."""

    moves: float  # proposals, relative to the standard
    runs: int  # anneals of the whole table
    pooled: int  # records that are pooled together, at most


# Above this many records a whole-table anneal leaves the cache and windows alone are better.
WHOLE_TABLE = 6_000
EFFORTS = {
    "quick": Effort(moves=1 / 16, runs=2, pooled=512),
    "standard": Effort(moves=1.0, runs=6, pooled=WHOLE_TABLE),
    "thorough": Effort(moves=10.0, runs=16, pooled=WHOLE_TABLE),
}

# Groups in a window of a small table, round after round: small ones find detail, large ones move
# mass. Large tables use windows of LARGE_WINDOW records, as many as the cache holds: the larger
# the window, the fewer records have a near one outside it. Still larger ones are cut into cells.
WINDOWS = (20, 10, 40, 80)

# Temperatures at the beginning and end of an anneal, relative to a record's mean cost. A run begins
# at twice the cost-weighted mean cost (see `spread`), where outliers still move. POLISH is for
# rounds after a run, MIX and REFINE for the first and second half of rounds of a large table.
RUN, POLISH = (2.0, 0.01), (1.0, 0.01)
MIX, REFINE = (0.5, 0.1), (0.2, 0.02)


def standard_moves(n: int) -> float:
    """Proposals a record under standard effort: 200,000, fewer where n is above 1,000.

    The total grows like n up to 1,000 records and like n ** 0.3 beyond.
    """
    return 200_000.0 * float(max(1.0, n / 1_000) ** -0.7)


def large_rounds(moves: float) -> list[tuple[float, tuple[float, float]]]:
    """Return the rounds of a large table: moves a record, and temperatures of each."""
    count = int(np.clip(moves / 250, 6, 60))
    return [(moves / count, MIX if 2 * turn < count else REFINE) for turn in range(count)]


class Watch:
    """Knows when to stop: time is up, `progress` returned True, or somebody pressed Ctrl-C.

    Kernels look at `halt` every few thousand moves; a partition is valid after every move.
    """

    def __init__(self, n: int, time_limit: float | None, progress: Progress | None) -> None:
        self.n_left, self.n, self.time_limit, self.progress = n, n, time_limit, progress
        self.halt = np.zeros(1, dtype=np.uint8)
        self.reason = "done"
        self.began = self.entered = _clock.now()
        self.cancel: Callable[[], None] | None = None

    def enter(self, n: int, moves: float) -> None:
        """Begin with a stratum of n records, which gets its share of the time that is left."""
        self.rows, self.moves, self.spent = n, moves, 0.0
        self.entered = _clock.now()
        if self.time_limit is not None and self.reason in ("done", "time"):
            left = self.time_limit - (self.entered - self.began)
            self.allotted = max(left * n / self.n_left, 1e-3)
            self.halt[0], self.reason = 0, "done"
            self.cancel = _clock.alarm(self.allotted, lambda: self.stop("time"))

    def leave(self) -> None:
        """End with the stratum."""
        self.n_left -= self.rows
        if self.cancel is not None:
            self.cancel()

    def stop(self, reason: str) -> None:
        """Ask every kernel to return."""
        self.halt[0], self.reason = 1, reason

    def over(self) -> bool:
        """Return whether the stratum's time is used up."""
        late = self.time_limit is not None and _clock.now() - self.entered >= self.allotted
        if late and not self.halt[0]:
            self.stop("time")
        return bool(self.halt[0])

    def report(self, stage: str, sse: float, *, moves: float = 0.0) -> None:
        """Call `progress`, which may return True to stop; `moves` are those of a round under way.

        Long rounds report their parts, so that somebody who waits sees that work goes on, and can
        stop it.
        """
        if self.progress is None or self.halt[0]:
            return
        share = (self.spent + moves) / self.moves
        if self.time_limit is not None:
            share = (_clock.now() - self.entered) / self.allotted
        done = (self.n - self.n_left + min(1.0, share) * self.rows) / self.n
        if self.progress(round(1000 * done), 1000, f"{stage}, SSE {sse:.6g}"):
            self.stop("callback")


class Search(Grouping):
    """Least spread in groups of at least k, by annealing, windows and pooling.

    Minimises SSE(labels) = sum_g sum_{i in g} w_i |x_i - c_g|^2 over all partitions whose groups
    have at least k records; no group of an optimum has more than 2k - 1.

    Parameters
    ----------
    k : int, default=3
        The least number of records in a group.
    effort : {"quick", "standard", "thorough"}, default="standard"
        How much work: about one second, ten seconds, minutes for a table of a thousand records.
        Work is counted in moves, so the result does not depend on the machine.
    time_limit : float, optional
        Seconds after which the search ends with the best it has. It then works as long as it may,
        whatever the effort, and the result depends on the machine.
    progress : callable, optional
        Called as ``progress(done, total, name)`` after each step, and within long ones: thousandths
        of the work, or of the time under a limit; 1000; and "start", "runs", "rounds" or "pool"
        with the least SSE so far.
        If it returns True, the search ends with its best.
    random_state : int, RandomState or None, default=None
        An integer makes the result repeatable.

    Attributes
    ----------
    labels_, cluster_centers_, inertia_, n_groups_, gap_
        As for every grouping.
    stopped_ : {"done", "time", "callback", "interrupt"}
        Why the search ended. Ctrl-C ends it with its best and a warning; press it again while
        the next call runs to leave for good.

    Notes
    -----
    Tables of up to 6,000 records: several anneals of the whole table, each polished in windows,
    their groups pooled into a set partitioning problem, then more rounds of windows, and pooled
    again. Larger tables: rounds of windows only, from a start made in tiles; every round cuts
    elsewhere, so that no border between tiles remains. Above 262,144 records each round first cuts
    the table into cells, which cores take one by one (see `tessella.grouping.cells`); less than 1 %
    of the work is then done on one core alone. Memory grows with n d. Time grows with n up to 1,000
    records and like n ** 0.3 beyond.

    References
    ----------
    J. Domingo-Ferrer and J. M. Mateo-Sanz, "Practical data-oriented microaggregation for
    statistical disclosure control", IEEE TKDE 14 (2002): groups of 2k or more are never optimal.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.grouping import Search
    >>> X = np.array([[1.0], [2.0], [9.0], [3.0], [10.0], [11.0]])
    >>> Search(k=3, effort="quick", random_state=0).fit(X).labels_
    array([0, 0, 1, 0, 1, 1])
    """

    _parameters: ClassVar[dict[str, Any]] = {
        "effort": [EFFORT],
        "time_limit": [Number(above=0), NONE],
        "random_state": [SEED],
    }

    @parameters({"callback": "progress"})
    def __init__(
        self,
        k: int = 3,
        *,
        effort: str = "standard",
        time_limit: float | None = None,
        progress: Progress | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(k)
        self.effort = effort
        self.time_limit = time_limit
        self.progress = progress
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        units: ArrayLike | None = None,
        diversity: Diversity | None = None,
    ) -> Self:
        """Partition the records; see `Grouping.fit`."""
        check_parameters(self)
        self._watch = Watch(_n_rows(X), self.time_limit, self.progress or waiting())
        try:
            super().fit(
                X, y, sample_weight=sample_weight, strata=strata, units=units, diversity=diversity
            )
            self.stopped_ = self._watch.reason
        finally:
            del self._watch
        if self.stopped_ == "interrupt":
            warnings.warn(
                "The search was interrupted and gives the best grouping it had. k is kept; "
                "the loss may be higher than it need be.",
                InterruptedWarning,
                stacklevel=2,
            )
        return self

    def _group(
        self, X: Floats, weights: Floats, k: int, random: np.random.Generator, units: Units = None,
        diversity: Diversity | None = None,
    ) -> Integers:  # fmt: skip
        effort = EFFORTS[self.effort]
        # The whole table sets the work: a hundred strata cost what one table of their size does.
        moves = standard_moves(self._watch.n) * effort.moves
        self._watch.enter(len(X), moves)
        if len(X) > LARGE:
            return self._search_cells(X, weights, k, random, units, moves, diversity)
        table = StratumSearch(X, weights, k, self._watch, random, units, diversity)
        table.start()
        try:
            if len(X) <= WHOLE_TABLE:
                self._search_whole(table, moves, effort)
            else:
                self._search_windows(table, moves)
        except KeyboardInterrupt:
            self._watch.stop("interrupt")
        finally:
            self._watch.leave()
        return table.best

    _group_units = _group
    _group_diverse = _group

    def _search_whole(self, table: StratumSearch, moves: float, effort: Effort) -> None:
        pool = Pool(
            table.X, table.weights, table.k, units=table.units, largest=effort.pooled,
            diversity=table.diversity,
        )  # fmt: skip
        runs = effort.runs
        while True:
            found = table.run_many(runs, 0.5 * moves / runs)
            for labels in found:
                for r in range(3):
                    labels = table.round(
                        labels, WINDOWS[r % len(WINDOWS)], 0.05 * moves / runs, POLISH
                    )
                pool.add(labels)
                table.offer(labels, "runs")
            pool.add(table.best)
            table.recombine(pool)
            count = max(4, round(0.35 * moves / 1000))
            for r in range(count):
                if table.watch.over():
                    break
                labels = table.round(
                    table.best, WINDOWS[r % len(WINDOWS)], 0.35 * moves / count, POLISH
                )
                table.offer(labels, "rounds")
                pool.add(table.best)
            table.recombine(pool)
            if table.watch.over() or self.time_limit is None:
                return

    def _search_windows(self, table: StratumSearch, moves: float) -> None:
        for share, heat in self._rounds(moves):
            table.offer(table.round(table.best, table.large(), share, heat), "rounds")

    def _search_cells(
        self, X: Floats, weights: Floats, k: int, random: np.random.Generator, units: Units,
        moves: float, diversity: Diversity | None,
    ) -> Integers:  # fmt: skip
        watch = self._watch
        wanted = None if diversity is None else diversity.with_units(units, k)
        each_round = moves / len(large_rounds(moves))

        def part(share: float) -> None:
            if hasattr(cells, "sse"):  # not in the start, which has no moves
                watch.report("rounds", cells.sse, moves=share * each_round)

        def report(stage: str, sse: float) -> None:
            watch.spent += each_round if stage == "rounds" else 0.0
            watch.report(stage, sse)

        cells = MemoryCells(X, weights, units, watch.halt, wanted, part)

        try:
            search_in_cells(cells, k, random, self._rounds(moves), report=report)
        except KeyboardInterrupt:
            if not hasattr(cells, "labels"):
                raise
            watch.stop("interrupt")
        finally:
            watch.leave()
        return cells.labels

    def _rounds(self, moves: float) -> Iterator[tuple[float, tuple[float, float]]]:
        """Yield the rounds of a large table, until time is up."""
        planned = large_rounds(moves)
        for turn in itertools.count() if self.time_limit is not None else range(len(planned)):
            if self._watch.over():
                return
            yield planned[min(turn, len(planned) - 1)]


class StratumSearch:
    """One stratum under search: its records, and the best partition so far."""

    def __init__(
        self,
        X: Floats,
        weights: Floats,
        k: int,
        watch: Watch,
        random: np.random.Generator,
        units: Units = None,
        diversity: Diversity | None = None,
    ) -> None:
        # Costs are differences between records: an offset would only take digits from them.
        self.X = X - X.mean(axis=0)
        self.weights, self.k, self.watch, self.random = weights, k, watch, random
        self.units = units
        self.diversity = None if diversity is None else diversity.with_units(units, k)

    def _seed(self) -> int:
        return int(self.random.integers(2**31))

    def start(self) -> None:
        """Group in tiles: the partition that everything else improves."""
        self.best = first_groups(
            self.X, self.weights, self.units, self.k, self._seed(), self.diversity
        )
        self.sse = sse_of(self.X, self.weights, self.best)
        self.watch.report("start", self.sse)

    def offer(self, labels: Integers, stage: str) -> None:
        """Keep a partition if it is the best so far, and report."""
        labels = renumber(labels, int(labels.max()) + 1)
        sse = sse_of(self.X, self.weights, labels)
        if sse < self.sse:
            self.best, self.sse = labels, sse
        self.watch.report(stage, self.sse)

    def run_many(self, runs: int, moves: float) -> list[Integers]:
        """Anneal the whole table several times, each from the best so far."""
        if self.diversity is not None:
            return self._run_diverse(self.diversity, runs, moves)
        X, units, count = self.X, self.units, min(near_count(self.k), len(self.X) - 1)
        n_units = 0 if units is None else int(units.max()) + 1
        if units is None:
            near = nearest_in_window(X, count)
        else:
            near = nearest_and_units(X, units, n_units, count)
        mean, heavy = spread(X, self.weights, self.best)
        seed = self._seed()

        def run(number: int) -> Integers:
            labels = self.best.copy()
            work = (
                near, labels, self.k, int(moves * len(labels)), RUN[0] * heavy, RUN[1] * mean,
                seed, number, self.watch.halt,
            )  # fmt: skip
            if mean > 0.0 and units is None:
                anneal(X, self.weights, *work)
            elif mean > 0.0 and units is not None:
                anneal_units(X, self.weights, units, n_units, *work)
            self.watch.spent += moves
            return renumber(labels, len(labels))

        return each(run, range(runs))

    def _run_diverse(self, diversity: Diversity, runs: int, moves: float) -> list[Integers]:
        X, k = self.X, self.k
        near = nearest_and_other(X, diversity.buckets[-1], min(near_count(k), len(X) - 1))
        mean, heavy = spread(X, self.weights, self.best)
        seed, most = self._seed(), largest_group(self.best, k)

        def run(number: int) -> Integers:
            labels = self.best.copy()
            if mean > 0.0:
                anneal_diverse(
                    X, self.weights, near, labels, k, most, *diversity.arrays,
                    int(moves * len(labels)), RUN[0] * heavy, RUN[1] * mean, seed, number,
                    self.watch.halt,
                )  # fmt: skip
            self.watch.spent += moves
            return renumber(labels, len(labels))

        return each(run, range(runs))

    def recombine(self, pool: Pool) -> None:
        """Put the best partition together from a pool that holds the groups of `best`."""
        if not self.watch.over():
            self.offer(pool.recombine(self.best, self._seed()), "pool")

    def large(self) -> int:
        """Size of a large table's windows, in groups."""
        return groups_in_window(self.best)

    def round(
        self, labels: Integers, largest: int, moves: float, heat: tuple[float, float]
    ) -> Integers:
        """Improve a partition in the windows of a fresh tiling, of up to `largest` groups."""
        labels = anneal_windows(
            self.X, self.weights, labels, self.k, self.units, largest=largest, moves=moves,
            heat=heat, seed=self._seed(), halt=self.watch.halt, diversity=self.diversity,
            done=partial(self._report_part, moves) if len(labels) > WHOLE_TABLE else None,
        )  # fmt: skip
        self.watch.spent += moves
        return labels

    def _report_part(self, moves: float, share: float) -> None:
        self.watch.report("rounds", self.sse, moves=share * moves)


def _n_rows(X: ArrayLike) -> int:
    """Count records before validation, which reports what is wrong with X."""
    shape = getattr(X, "shape", None)
    return max(1, int(shape[0]) if shape else len(np.atleast_1d(np.asarray(X, dtype=object))))
