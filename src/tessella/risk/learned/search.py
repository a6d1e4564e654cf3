"""Where learning looks: the tables, who competes with whom, and the families from plain to rich.

A *trail* names the members that were tried, the plainest first. Every richer family starts from
what the simpler one found and keeps it on its trail, so the best of a trail never links less than
the best of a simpler family's.

Exact line search for the parameters that link most records.

Along a line θ + t·v each record is linked on one interval of t (its rows are linear), so the number
of links is a staircase whose every step is known: the best t is found exactly by sorting the ends
of the intervals. Lines are single parameters, random directions, and directions that help a record
that is not linked yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..._types import Floats, Integers, Truths
from ...kernels.candidates import count_positive, lowest, spans, widest_step
from ..aligned import AlignedTables
from ..linkage import count_family
from .choquet import Choquet
from .distances import (
    OWA,
    Bilinear,
    Competitors,
    Rows,
    WeightedMean,
    hopeful,
    least_competitors,
    near_competitors,
    rows_of,
)
from .family import Family
from .maxitive import MaxitiveChoquet, search_maxitive

__all__ = [
    "ALL_COMPETITORS",
    "MARGIN",
    "LinkSearch",
    "MemberLinks",
    "line_search",
    "links",
    "tried",
]

MARGIN = 1e-9  # of standardised squares: a record is linked when its rows exceed it
FAR = 1e3  # how far a line is followed; parameters sum to 1
WORK = 1.5e9  # numbers looked at in one search; a limit of time would depend on the machine
LARGE = 100_000  # numbers in all rows: beyond, lines are searched on the lowest rows
LOWEST = 8  # rows of each record then
PATIENCE = 2  # sweeps without a new link


def links(rows: Rows, theta: Floats) -> int:
    """Count the records that are linked by their rows alone."""
    return int(count_positive(rows.starts, rows.along(theta), MARGIN))


def line_search(
    rows: Rows, start: Family, generator: np.random.Generator, *, sweeps: int = 30
) -> tuple[Family, int]:
    """Return a member of the family that links at least as many of the records as the start.

    Each line goes to the middle of the widest best step, also where the number of links stays the
    same: a wide step leaves room for the next line.
    """
    family, theta = start, start.theta.copy()
    level = rows.along(theta)
    best = int(count_positive(rows.starts, level, MARGIN))
    idle, misled = 0, 0
    kept = np.zeros(len(level), dtype=bool)
    lines = len(theta) / 8 + 40  # single parameters cost little
    affordable = max(3, int(WORK / max(min(rows.cells, LARGE) * lines, 1.0)))
    for _ in range(min(sweeps, affordable)):
        some, chosen = _nearest_to_break(rows, level, kept)
        moved = _sweep(some, family, theta, level[chosen], generator)
        exact = family.repair(moved)  # rounding may have left the feasible set by a hair
        new_level = rows.along(exact.theta)
        count = int(count_positive(rows.starts, new_level, MARGIN))
        if count < best and len(some.starts) and not chosen.all() and misled < PATIENCE:
            kept |= new_level <= MARGIN  # rows that were overlooked: once more from here with them
            misled += 1
            continue
        before = best
        if count >= best:
            theta, level, best = exact.theta.copy(), new_level, count
        idle = 0 if best > before else idle + 1
        if idle >= PATIENCE:
            break
    found = family.repair(theta)
    count = links(rows, found.theta)
    at_start = links(rows, start.theta)
    return (found, count) if count >= at_start else (start, at_start)


def _sweep(
    rows: Rows, family: Family, theta: Floats, level: Floats, generator: np.random.Generator
) -> Floats:
    """Follow one line after the other as long as none of them loses a link."""
    best = int(count_positive(rows.starts, level, MARGIN))
    for direction in _directions(rows, family, theta, level, generator):
        slope = rows.along(direction)
        low, high = _feasible(family, theta, direction)
        count, step = _best_step(rows, level, slope, low, high)
        if count >= best and step != 0:
            theta = theta + step * direction
            scale = _size(family, theta)
            theta, level = theta / scale, (level + step * slope) / scale
            best = count
    return theta


def _nearest_to_break(rows: Rows, level: Floats, kept: Truths) -> tuple[Rows, Truths]:
    """Return the few rows of each record that are lowest, those kept, and which they are.

    Where rows are many, lines are searched on these alone and counted on all after each sweep.
    """
    if rows.cells <= LARGE:
        return rows, np.ones(len(level), dtype=bool)
    chosen = lowest(rows.starts, level, LOWEST, kept)
    ends = np.concatenate([[0], np.cumsum(chosen)])[rows.starts]
    matrix = rows.matrix[np.flatnonzero(chosen)]
    if isinstance(matrix, np.ndarray):
        matrix = np.asfortranarray(matrix)
    return Rows(starts=ends.astype(np.int64), matrix=matrix), chosen


def _size(family: Family, theta: Floats) -> float:
    return float(family.total(theta))


def _directions(
    rows: Rows, family: Family, theta: Floats, level: Floats, generator: np.random.Generator
) -> Iterator[Floats]:
    size = len(theta)
    for place in generator.permutation(size):
        direction = np.zeros(size)
        direction[place] = 1.0
        yield direction
    for _ in range(min(size, 16)):  # towards random members, and away from them
        yield family.repair(theta * generator.exponential(size=size)).theta - theta
    worst = np.minimum.reduceat(level, rows.starts[:-1]) if len(level) else level
    open_ = np.flatnonzero(worst <= MARGIN)
    if not len(open_):
        return
    near = open_[np.argsort(-worst[open_], kind="stable")][: max(8, len(open_) // 2)]
    for at in generator.permutation(near)[: min(2 * size, 24)]:
        first, last = rows.starts[at], rows.starts[at + 1]
        row = rows.matrix[first + int(np.argmin(level[first:last]))]
        row = np.asarray(row.todense()).ravel() if hasattr(row, "todense") else row
        length = float(np.linalg.norm(row))
        if length > 0:
            reach = 10.0 ** generator.uniform(-2.5, 0)
            yield family.repair(theta + reach * row / length).theta - theta


def _feasible(family: Family, theta: Floats, direction: Floats) -> tuple[float, float]:
    """Return the steps that stay in the feasible set, as far as FAR."""
    if family.linear:
        slack, change = family.slack(theta), family.slack(direction)
        slack = np.maximum(slack, 0.0)
        falls, rises = change < -1e-15, change > 1e-15
        high = float((slack[falls] / -change[falls]).min()) if falls.any() else FAR
        low = float((-slack[rises] / change[rises]).max()) if rises.any() else -FAR
        return max(low, -FAR), min(high, FAR)
    return -_reach(family, theta, -direction), _reach(family, theta, direction)


def _reach(family: Family, theta: Floats, direction: Floats) -> float:
    """Return the longest feasible step, by bisection: slacks are concave along a line."""
    tolerance = -1e-12
    inside, outside = 0.0, 1.0
    while outside < FAR and family.slack(theta + outside * direction).min() >= tolerance:
        inside, outside = outside, 4 * outside
    for _ in range(30):
        middle = (inside + outside) / 2
        if family.slack(theta + middle * direction).min() >= tolerance:
            inside = middle
        else:
            outside = middle
    return inside


def _best_step(
    rows: Rows, level: Floats, slope: Floats, low: float, high: float
) -> tuple[int, float]:
    """Return the largest number of links on a line, and the middle of the widest such step."""
    if not low < high:
        return -1, 0.0
    lows, highs = spans(rows.starts, level, slope, low, high, MARGIN)
    open_ = lows < highs
    if not open_.any():
        return 0, 0.0
    most, first, last = widest_step(np.sort(lows[open_]), np.sort(highs[open_]))
    if most == 0:
        return 0, 0.0
    if last - first > 2.0:  # an open end: a moderate step into it
        step = first + 1.0 if first > -FAR else last - 1.0
        return most, 0.0 if first < 0.0 < last else step
    return most, (first + last) / 2


NEAREST = 40  # competitors of a record under each linear map, for distances that are not monotone
ALL_COMPETITORS = 5000  # originals up to which every competitor is looked at
MOST_ROWS = 250_000  # of one line search
MOST_CELLS = 40_000_000  # numbers held in rows
ROUNDS = 3  # of adding the competitors that were overlooked
SHAKES = 2  # copies of the best that are searched from, for each start
STRENGTHS = (0.3, 1.0, 0.1)  # of the shakes in turn, in logarithms
SAMPLED = 32  # records that tell how many competitors there are


@dataclass(frozen=True, order=True)
class MemberLinks:
    """What a member links over all originals: the sum of chances decides, then strict links."""

    chances: float
    links: int


def tried(sides: AlignedTables, member: Family, records: Integers) -> MemberLinks:
    """Count what a member links, ties as chances, and what it links strictly."""
    nearer, tied = count_family(sides, member)(records, 1)
    chances = np.where(nearer == 0, 1 / np.maximum(tied, 1), 0.0)
    return MemberLinks(float(chances.sum()), int(((nearer == 0) & (tied == 1)).sum()))


@dataclass(frozen=True)
class LinkSearch:
    """The tables, the competitors under monotone distances, and how hard to look.

    `most` bounds the number of links: the records with a chance, one for each class of identical
    masked records. `partial` says that only the nearest competitors are looked at by line search.
    """

    sides: AlignedTables
    competitors: Competitors
    order: int | None
    starts: int
    most: int | None
    partial: bool

    @classmethod
    def of(
        cls, sides: AlignedTables, records: Integers, order: int | None, starts: int
    ) -> LinkSearch:
        """Look at all that can decide in tables of moderate size, at the nearest in others."""
        if len(sides.B) > ALL_COMPETITORS:
            return cls(sides, _nearest(sides, records, []), order, starts, None, True)
        chance = hopeful(sides, records)
        most = len(np.unique(sides.A[chance], axis=0)) if len(chance) else 0
        few = chance[:: max(1, len(chance) // SAMPLED)]
        rows = len(least_competitors(sides, few).which) * len(chance) / max(len(few), 1)
        if rows <= 1.5 * MOST_ROWS:
            found = least_competitors(sides, chance)
            if len(found.which) <= MOST_ROWS:
                return cls(sides, found, order, starts, most, False)
        return cls(sides, _nearest(sides, chance, []), order, starts, most, True)

    def fit(
        self,
        family: str,
        records: Integers,
        generator: np.random.Generator,
        *,
        proved: WeightedMean | None = None,
    ) -> dict[str, Family]:
        """Learn a family and the simpler ones on some records; the plainest comes first.

        The weighted mean always comes first and takes the same draws of the generator, so it is the
        same member for every richer family. `proved` weights join the trail and the starts.
        """
        d = len(self.sides.columns)
        trail: dict[str, Family] = {"Euclidean": WeightedMean.neutral(d)}
        gaps = self.sides.A[records] - self.sides.B[self.sides.truth[records]]
        if family == "owa":
            trail["owa"] = self._search_lines(records, [OWA.neutral(d)], generator)
            return trail
        spread = np.maximum(gaps.var(axis=0), 1e-6 * max(float(gaps.var(axis=0).max()), 1e-12))
        trail["1 / variance"] = WeightedMean(1 / spread)
        plain: list[Family] = [trail["1 / variance"], trail["Euclidean"]]
        weighted = self._search_lines(records, plain, generator)
        if self.partial:  # those who are near under these weights may have been overlooked
            near = _nearest(self.sides, records, [cast(WeightedMean, weighted).turn()])
            again = replace(self, competitors=near)._search_lines(records, [weighted], generator)
            both = [weighted, again]
            weighted = max(both, key=lambda member: tried(self.sides, member, records))
        trail["weighted mean"] = weighted
        means = [weighted]
        if proved is not None:
            trail["certified weighted mean"] = proved
            means.append(proved)
        if family == "bilinear":
            trail["bilinear"] = self._search_forms(records, means, gaps, generator)
        if family == "choquet":
            starts: list[Family] = [
                Choquet.from_weights(one.theta, order=self.order) for one in means
            ]
            if Choquet.is_whole(d, self.order):
                owa = self._search_lines(records, [OWA.neutral(d)], generator)
                trail["owa"] = owa
                starts.append(Choquet.from_owa(owa.theta))
            trail["choquet"] = self._search_lines(records, starts, generator, extra=2)
        if family == "maxitive":
            trail["maxitive"] = self._search_maxitive(records, means, generator)
        return trail

    def _most_rows(self, member: Family) -> int:
        sparse = member.name == "Choquet" and member.linear
        return MOST_CELLS // (4 * member.d if sparse else len(member.theta))

    def _search_lines(
        self,
        records: Integers,
        starts: list[Family],
        generator: np.random.Generator,
        *,
        extra: int | None = None,
    ) -> Family:
        """Climb from the starts, then from shaken copies of the best."""
        competitors = self.competitors.chosen(records)
        competitors = competitors.thinned(self._most_rows(starts[0]), generator)
        if not len(competitors.which):  # no weights link anybody
            return starts[0]
        rows = rows_of(self.sides, competitors, starts[0])
        best, most = max(
            (line_search(rows, start, generator) for start in starts), key=lambda found: found[1]
        )
        for turn in range(SHAKES * (self.starts if extra is None else min(extra, self.starts))):
            blow = STRENGTHS[turn % len(STRENGTHS)] * generator.normal(size=len(best.theta))
            shaken = best.repair(best.theta * np.exp(blow))
            found, count = line_search(rows, shaken, generator)
            if count > most:
                best, most = found, count
        return best

    def _search_maxitive(
        self, records: Integers, means: list[Family], generator: np.random.Generator
    ) -> Family:
        """Search maxitive measures from the largest square, from weights, and shaken copies."""
        best = MaxitiveChoquet.largest(len(self.sides.columns), order=self.order)
        competitors = self.competitors.chosen(records)
        if not len(competitors.which):
            return best
        starts = [best, *(MaxitiveChoquet.from_weights(w.theta, order=best.order) for w in means)]
        found = [search_maxitive(self.sides, competitors, one, generator) for one in starts]
        best, most = max(found, key=lambda pair: pair[1])
        for _ in range(min(2, self.starts)):
            blow = np.exp(STRENGTHS[0] * generator.normal(size=len(best.theta)))
            shaken = best.repair(best.essential() * blow)
            one, count = search_maxitive(self.sides, competitors, shaken, generator)
            if count > most:
                best, most = one, count
        return best

    def _search_forms(
        self,
        records: Integers,
        means: list[Family],
        gaps: Floats,
        generator: np.random.Generator,
    ) -> Family:
        """Search forms by lines; competitors that were overlooked join after each round."""
        spread = np.atleast_2d(np.cov(gaps, rowvar=False, ddof=0))
        widest, d = max(float(np.trace(spread)), 1e-12), len(spread)
        inverse: Floats = np.linalg.inv(spread + 1e-6 * widest * np.eye(d)).astype(np.float64)
        forms: list[Family] = [
            *(Bilinear(np.diag(one.theta)) for one in means),
            Bilinear(inverse),
        ]
        reached = [tried(self.sides, form, records) for form in forms]
        best, most = max(zip(forms, reached), key=lambda pair: pair[1])
        turns = [cast(Bilinear, form).turn() for form in forms]
        for _ in range(ROUNDS):
            rows = rows_of(self.sides, near_competitors(self.sides, records, turns, NEAREST), best)
            found, _ = line_search(rows, best, generator, sweeps=10)
            assert isinstance(found, Bilinear)
            turns.append(found.turn())
            now = tried(self.sides, found, records)
            if now > most:
                best, most = found, now
        return best


def _nearest(sides: AlignedTables, records: Integers, turns: list[Floats]) -> Competitors:
    """Return the nearest competitors by equal weights, by trusted ones, and by some maps."""
    d = len(sides.columns)
    spread = (sides.A - sides.B[sides.truth]).std(axis=0)
    trusted = 1 / np.maximum(spread, 1e-3 * max(float(spread.max()), 1e-12))
    count = min(max(75_000 // max(len(records), 1), NEAREST // 2), 2 * NEAREST)
    return near_competitors(sides, records, [np.eye(d), np.diag(trusted), *turns], count)
