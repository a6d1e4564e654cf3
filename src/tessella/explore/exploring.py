"""Which protection is best for this table: many candidates, tried and compared.

Those of a first list are tried where nobody names others, then those that these make promising.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import pairwise, zip_longest
from typing import Any

from .. import _clock
from .._parameters import NONE, OneOf, Whole, parameters
from .._progress import shows_progress
from .._types import Progress
from ..exceptions import BadOptionError
from ..grouping.base import check_k
from ..masking import registry
from ..parallel import n_cores
from ..risk.attacks import find_attacks
from ..schema import Schema
from .candidate import Candidate, Task
from .crew import Crew, Store, fresh_seed
from .evaluate import ATTACKS, Point, Settings, find_measures, front_of
from .exploration import Exploration

STAYS = 0.9  # the chance that a category stays, beside methods for numbers
# The order in which methods of the package are tried, the most telling ones first.
ORDER = ("protect", "fuzzy microaggregation", "individual ranking", "rank swapping", "noise",
         "shuffling", "rounding", "coding")  # fmt: skip


def default_candidates(task: Task, k: Sequence[int], *, effort: str) -> list[Candidate]:
    """Return the candidates for a table: methods in turn, so that a short list has all of them."""
    setting = registry.Setting(
        n_numbers=len(task.numbers), has_rules=task.rules is not None, effort=effort
    )
    known = registry.methods()
    names = [*ORDER, *(name for name in known if name not in ORDER)]
    kinds = ("numbers", "both") if task.numbers else ("categories",)
    fitting = [known[name] for name in names if known[name].masks in kinds]
    groups = [group for method in fitting for group in _variants(method, setting, task, k)]
    turns = [one for turn in zip_longest(*groups) for one in turn if one is not None]
    if not task.categories:
        return turns
    together = [
        Candidate("protect", k=size, **options)
        for size in k
        for options in ({"grouping": "mdav"}, {"grouping": "search", "options": {"effort": effort}})
    ]
    if not task.numbers:
        return [*turns, *together[::2]]
    return [*together, *(one.with_value("pram", STAYS) for one in turns)]


def _variants(
    method: registry.Method, setting: registry.Setting, task: Task, k: Sequence[int]
) -> list[list[Candidate]]:
    """Return for each variant of a method its candidates, by rising value of what is tuned."""
    tuned = method.tuned
    if tuned is None:
        return []
    values = k if tuned.name == "k" else tuned.values
    fitting = [value for value in values if value * task.n >= tuned.least_records]
    return [
        [Candidate(method.name, **dict(options)).tuned_to(value) for value in fitting]
        for options in method.variants(setting)
    ]


def propose(points: list[Point], untried: list[Candidate], most: int) -> list[Candidate]:
    """Return up to `most` candidates that are worth trying next, the most promising first.

    Between two neighbours of a family that were tried, one of them on the front, the geometric
    middle is tried, the largest gaps first; and beyond an end of a family that is on the front, the
    next value at the same ratio. `untried` are candidates of the first list that were not reached.
    """
    front = {point.candidate for point in front_of(points)}
    families: dict[Candidate, list[Point]] = defaultdict(list)
    for point in points:
        if point.tried and registry.find(point.candidate.method).tuned is not None:
            families[_family(point.candidate)].append(point)
    seen = {point.candidate for point in points}
    found: list[tuple[float, str, Candidate]] = []
    for members in families.values():
        members.sort(key=_place)
        for one, other in pairwise(members):
            if {one.candidate, other.candidate} & front:
                middle = _tuned(one.candidate).between(_place(one), _place(other))
                between = None if middle is None else one.candidate.tuned_to(middle)
                if between is not None and between not in seen:
                    gap = math.hypot(one.loss - other.loss, one.risk - other.risk)
                    found.append((-gap, between.key, between))
        for end, beyond in _ends(members):
            if end.candidate in front and beyond is not None and beyond not in seen:
                found.append((-end.risk / 2, beyond.key, beyond))
    near = [
        one for one in untried if any(_family(one) == _family(held) for held in front)
    ]  # the first list knows better values than the middle does
    chosen = [*near, *(one for _, _, one in sorted(found, key=lambda f: f[:2]))]
    return list(dict.fromkeys([*chosen, *untried]))[:most]


def _tuned(candidate: Candidate) -> registry.Tuned:
    tuned = registry.find(candidate.method).tuned
    assert tuned is not None  # others are in no family
    return tuned


def _family(candidate: Candidate) -> Candidate:
    """Return the candidate with the default of what is tuned: the same for all of its family."""
    entry = registry.find(candidate.method)
    if entry.tuned is None:
        return candidate
    return candidate.tuned_to(entry.defaults[entry.tuned.name])


def _place(point: Point) -> float:
    return float(point.candidate[_tuned(point.candidate).name])  # type: ignore[arg-type]


def _ends(members: list[Point]) -> list[tuple[Point, Candidate | None]]:
    """Return the last members of a family, and what lies beyond them at the same ratio."""
    if len(members) < 2:
        return []
    tuned = _tuned(members[0].candidate)
    out: list[tuple[Point, Candidate | None]] = []
    for end, inner in ((members[0], members[1]), (members[-1], members[-2])):
        beyond = _place(end) ** 2 / _place(inner)
        value: float = round(beyond) if tuned.whole else float(f"{beyond:.3g}")
        inside = tuned.low <= value <= tuned.high and value != _place(end)
        out.append((end, end.candidate.tuned_to(value) if inside else None))
    return out


Found = Callable[[Point], object]
BATCH = 8  # candidates proposed at a time: a fixed number, or results would depend on the cores
FIRST = 0.6  # share of a budget of points that goes to the first list
UNITS = {"s": 1, "sec": 1, "seconds": 1, "min": 60, "minutes": 60, "h": 3600, "hours": 3600}


@shows_progress
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
    progress: Progress | bool | None = None,
    found: Found | None = None,
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
    progress : bool or callable, optional
        True shows a bar, in a notebook too. A callable is called as
        ``progress(done, total, name)`` after each point: how many there are, how many are planned
        so far, and what the newest is.
    found : callable, optional
        Called as ``found(point)`` with each point as it is there, also with those of the store, and
        before `progress`: in whatever order they come; the answer has them in the order planned.
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
    points_left, seconds_left = read_budget(budget)
    kept = None if store is None else Store(store)
    seed = random_state
    if seed is None:
        seed = fresh_seed() if kept is None else kept.seed
    chosen = find_attacks(ATTACKS if attacks is None else attacks, ATTACKS)
    settings = Settings(attacks=chosen, measures=find_measures(measures), effort=effort, seed=seed)
    grid = _first_list(candidates, task, k, effort)
    many = min(n_jobs or n_cores(), len(grid))
    told = progress if callable(progress) else None
    walk = _Walk(grid, points_left, seconds_left, told, found)
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
        seconds=_clock.now() - walk.began,
    )


class _Walk:
    """The way through the candidates: a first list, then what it makes promising."""

    def __init__(
        self, grid: list[Candidate], most: int | None, time: float | None,
        progress: Progress | None = None, tell: Found | None = None,
    ) -> None:  # fmt: skip
        self.grid, self.limit, self.seconds = grid, most, time
        self.progress, self.tell = progress, tell
        self.points: dict[Candidate, Point] = {}
        self.finished, self.reused = True, 0
        self.began = _clock.now()

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
        return self.seconds is None or _clock.now() - self.began < self.seconds

    def _try(self, crew: Crew, batch: list[Candidate], *, planned: int) -> None:
        found: dict[Candidate, Point] = {}
        try:
            for point, reused in crew.try_all(batch, self._in_time):
                found[point.candidate] = point
                self.reused += reused
                if self.tell is not None:
                    self.tell(point)
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


def read_budget(budget: Any) -> tuple[int | None, float | None]:
    """Return a number of points or of seconds."""
    expected = 'a number of points such as 80, or a time such as "5 min"'
    if budget is None:
        return None, None
    if Whole(1).accepts(budget):
        return budget, None
    if isinstance(budget, timedelta) and budget.total_seconds() > 0:
        return None, budget.total_seconds()
    if isinstance(budget, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", budget)
        if match and match[2] in UNITS and float(match[1]) > 0:
            return None, float(match[1]) * UNITS[match[2]]
    raise BadOptionError("budget", budget, expected)
