"""Where learning looks: the tables, who competes with whom, and the families from plain to rich.

A *trail* names the members that were tried, the plainest first. Every richer family starts from
what the simpler one found and keeps it on its trail, so the best of a trail never links less than
the best of a simpler family's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..._types import Floats, Integers
from ..aligned import AlignedTables
from ..linkage import count_family
from .choquet import Choquet
from .competitors import Competitors, hopeful, least_competitors, near_competitors, rows_of
from .distances import OWA, Bilinear, WeightedMean
from .family import Family
from .line_search import line_search
from .maxitive import MaxitiveChoquet
from .maxitive_search import search_maxitive

__all__ = ["ALL_COMPETITORS", "Search", "Tried", "tried"]


NEAREST = 40  # competitors of a record under each linear map, for distances that are not monotone
ALL_COMPETITORS = 5000  # originals up to which every competitor is looked at
MOST_ROWS = 250_000  # of one line search
MOST_CELLS = 40_000_000  # numbers held in rows
ROUNDS = 3  # of adding the competitors that were overlooked
SHAKES = 2  # copies of the best that are searched from, for each start
STRENGTHS = (0.3, 1.0, 0.1)  # of the shakes in turn, in logarithms
SAMPLED = 32  # records that tell how many competitors there are


@dataclass(frozen=True, order=True)
class Tried:
    """What a member links over all originals: the sum of chances decides, then strict links."""

    chances: float
    links: int


def tried(sides: AlignedTables, member: Family, records: Integers) -> Tried:
    """Count what a member links, ties as chances, and what it links strictly."""
    nearer, tied = count_family(sides, member)(records, 1)
    chances = np.where(nearer == 0, 1 / np.maximum(tied, 1), 0.0)
    return Tried(float(chances.sum()), int(((nearer == 0) & (tied == 1)).sum()))


@dataclass(frozen=True)
class Search:
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
    def of(cls, sides: AlignedTables, records: Integers, order: int | None, starts: int) -> Search:
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
