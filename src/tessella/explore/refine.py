"""Where to look next: near the front, halfway between neighbours.

A *family* is all candidates that differ only in the parameter their method is tuned by. Between
two neighbours of a family of which one is on the front lies a candidate not tried yet; the widest
gaps on the map come first. What is proposed depends on nothing but the points there are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

from .candidate import Candidate
from .methods import METHODS
from .point import Point, front_of

__all__ = ["propose"]


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
    """
    front = {point.candidate for point in front_of(points)}
    families: dict[Candidate, list[Point]] = defaultdict(list)
    for point in points:
        if point.tried:
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
    ]  # the first list knows better steps than the middle does
    chosen = [*near, *(one for _, _, one in sorted(found, key=lambda f: f[:2]))]
    return list(dict.fromkeys([*chosen, *untried]))[:most]


def _family(candidate: Candidate) -> Candidate:
    tuned = METHODS[candidate.method].tuned.name
    return candidate.with_value(tuned, METHODS[candidate.method].defaults[tuned])


def _place(point: Point) -> float:
    value = point.candidate[METHODS[point.candidate.method].tuned.name]
    return float(value)  # type: ignore[arg-type]


def _between(one: Point, other: Point) -> Candidate | None:
    tuned = METHODS[one.candidate.method].tuned
    middle = tuned.between(_place(one), _place(other))
    return None if middle is None else one.candidate.with_value(tuned.name, middle)


def _ends(members: list[Point]) -> list[tuple[Point, Candidate | None]]:
    """Return the last members of a family, and what lies beyond them at the same step."""
    if len(members) < 2:
        return []
    tuned = METHODS[members[0].candidate.method].tuned
    out: list[tuple[Point, Candidate | None]] = []
    for end, inner in ((members[0], members[1]), (members[-1], members[-2])):
        beyond = _place(end) ** 2 / _place(inner)
        value: float = round(beyond) if tuned.whole else float(f"{beyond:.3g}")
        inside = tuned.low <= value <= tuned.high and value != _place(end)
        out.append((end, end.candidate.with_value(tuned.name, value) if inside else None))
    return out
