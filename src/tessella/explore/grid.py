"""The candidates that are tried where nobody names others, and those that these make promising."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise, zip_longest

from ..masking import registry
from .candidate import Candidate
from .point import Point, front_of
from .task import Task

__all__ = ["default_candidates", "propose"]

STAYS = 0.9  # the chance that a category stays, beside methods for numbers
# The order in which methods of the package are tried, the most telling ones first.
ORDER = ("protect", "fuzzy microaggregation", "individual ranking", "rank swapping", "noise",
         "rounding", "coding")  # fmt: skip


def default_candidates(task: Task, k: Sequence[int], *, effort: str) -> list[Candidate]:
    """Return the candidates for a table: methods in turn, so that a short list has all of them."""
    setting = registry.Setting(
        n_numbers=len(task.numbers), has_rules=task.rules is not None, effort=effort
    )
    known = registry.methods()
    names = [*ORDER, *(name for name in known if name not in ORDER)]
    kinds = ("numbers", "both") if task.numbers else ("categories",)
    groups = [
        group
        for name in names
        if known[name].masks in kinds
        for group in _variants(known[name], setting, task, k)
    ]
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

    Parameters
    ----------
    points : list of Point
        What was tried.
    untried : list of Candidate
        Candidates of the first list that were not reached.
    most : int
        How many.

    Notes
    -----
    Between two neighbours of a family, one of them on the front, the geometric middle is
    tried, the largest gaps first; and beyond an end of a family that is on the front, the
    next value at the same ratio.
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
                between = _between(one, other)
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


def _between(one: Point, other: Point) -> Candidate | None:
    middle = _tuned(one.candidate).between(_place(one), _place(other))
    return None if middle is None else one.candidate.tuned_to(middle)


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
