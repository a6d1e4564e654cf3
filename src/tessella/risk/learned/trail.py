"""The search for the member of a family that links most records, from the simple to the rich.

A *trail* names the members that were tried, the plainest first. Every richer family starts from
what the simpler one found and keeps it on its trail, so the best of a trail never links less than
the best of a simpler family's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from typing import Any, cast

import numpy as np

from ..._types import Floats, Integers
from ..aligned import AlignedTables
from .choquet import Choquet
from .families import OWA, Bilinear, Family, WeightedMean
from .search import (
    Competitors,
    classes_of,
    expected_rows,
    hopeful,
    least_competitors,
    line_search,
    near_competitors,
    rows_of,
    tried,
)

STARTS = {"quick": 1, "standard": 3, "thorough": 6}  # of searches
NEAREST = 40  # competitors of a record under each linear map, for distances that are not monotone
ALL_COMPETITORS = 5000  # originals up to which every competitor is looked at
MOST_ROWS = 250_000  # of one line search
MOST_CELLS = 40_000_000  # numbers held in rows
ROUNDS = 3  # of adding the competitors that were overlooked
SHAKES = 2  # copies of the best that are searched from, for each start
STRENGTHS = (0.3, 1.0, 0.1)  # of the shakes in turn, in logarithms


@dataclass(frozen=True)
class Options:
    """How to look; see `learn`."""

    order: int | None
    effort: str
    max_records: int
    held_out: bool
    control: bool
    within: tuple[int, ...]
    random_state: int | None


@dataclass(frozen=True)
class LinkSearch:
    """The tables, the competitors under monotone distances, and how hard to look.

    `most` bounds the number of links: the records with a chance, one for each class of identical
    masked records. `partial` says that only the nearest competitors are looked at by line search.
    """

    sides: AlignedTables
    options: Options
    competitors: Competitors
    most: int | None
    partial: bool

    @classmethod
    def of(cls, sides: AlignedTables, records: Integers, options: Options) -> LinkSearch:
        """Look at all that can decide in tables of moderate size, at the nearest in others."""
        if len(sides.B) > ALL_COMPETITORS:
            return cls(sides, options, _nearest(sides, records), None, True)
        chance = hopeful(sides, records)
        most = len(np.unique(classes_of(sides.A)[chance]))
        if expected_rows(sides, chance) <= 1.5 * MOST_ROWS:
            found = least_competitors(sides, chance)
            if len(found.which) <= MOST_ROWS:
                return cls(sides, options, found, most, False)
        return cls(sides, options, _nearest(sides, chance), most, True)

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
        plainest = "Euclidean" if self.sides.one_over is None else "Gower"
        trail: dict[str, Family] = {plainest: WeightedMean.neutral(d)}
        gaps = self.sides.gaps(records)
        if family == "owa":
            trail["owa"] = self._search_lines(records, [OWA.neutral(d)], generator)
            return trail
        spread = np.maximum(gaps.var(axis=0), 1e-6 * max(float(gaps.var(axis=0).max()), 1e-12))
        trail["1 / variance"] = WeightedMean(1 / spread)
        plain: list[Family] = [trail["1 / variance"], trail[plainest]]
        weighted = self._search_lines(records, plain, generator)
        if self.partial:  # those who are near under these weights may have been overlooked
            near = _nearest(self.sides, records, cast(WeightedMean, weighted).turn())
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
                Choquet.from_weights(one.theta, order=self.options.order) for one in means
            ]
            if Choquet.is_whole(d, self.options.order):
                owa = self._search_lines(records, [OWA.neutral(d)], generator)
                trail["owa"] = owa
                starts.append(Choquet.from_owa(owa.theta))
            trail["choquet"] = self._search_lines(records, starts, generator, most=2)
        if family == "maxitive":
            trail["maxitive"] = self._search_maxitive(records, means, generator)
        return trail

    def _search_lines(
        self,
        records: Integers,
        starts: list[Family],
        generator: np.random.Generator,
        *,
        most: int = 6,
    ) -> Family:
        """Search by lines from the starts, then from copies of the best."""
        member = starts[0]
        sparse = isinstance(member, Choquet) and member.linear
        width = 4 * member.d if sparse else len(member.theta)
        competitors = self.competitors.chosen(records).thinned(MOST_CELLS // width, generator)
        if not len(competitors.which):  # no weights link anybody
            return member
        rows = rows_of(self.sides, competitors, member)
        strengths = islice(cycle(STRENGTHS), SHAKES * min(most, STARTS[self.options.effort]))
        return _best_of(
            lambda start: line_search(rows, start, generator), starts, strengths, generator
        )

    def _search_maxitive(
        self, records: Integers, means: list[Family], generator: np.random.Generator
    ) -> Family:
        """Search maxitive measures from the largest square, from weights, and shaken copies."""
        from .maxitive import MaxitiveChoquet, search_maxitive

        plain = MaxitiveChoquet.largest(len(self.sides.columns), order=self.options.order)
        competitors = self.competitors.chosen(records)
        if not len(competitors.which):
            return plain
        starts = [plain, *(MaxitiveChoquet.from_weights(w.theta, order=plain.order) for w in means)]
        strengths = STRENGTHS[:1] * min(2, STARTS[self.options.effort])
        search = partial(search_maxitive, self.sides, competitors, generator=generator)
        return _best_of(search, starts, strengths, generator)

    def _search_forms(
        self, records: Integers, means: list[Family], gaps: Floats, generator: np.random.Generator
    ) -> Family:
        """Search forms by lines; competitors that were overlooked join after each round."""
        spread = np.atleast_2d(np.cov(gaps, rowvar=False, ddof=0))
        widest, d = max(float(np.trace(spread)), 1e-12), len(spread)
        inverse: Floats = np.linalg.inv(spread + 1e-6 * widest * np.eye(d)).astype(np.float64)
        forms = [*(Bilinear(np.diag(one.theta)) for one in means), Bilinear(inverse)]
        reached = [tried(self.sides, form, records) for form in forms]
        best, most = max(zip(forms, reached), key=lambda pair: pair[1])
        turns = [form.turn() for form in forms]
        for _ in range(ROUNDS):
            rows = rows_of(self.sides, near_competitors(self.sides, records, turns, NEAREST), best)
            found = cast(Bilinear, line_search(rows, best, generator, sweeps=10)[0])
            turns.append(found.turn())
            now = tried(self.sides, found, records)
            if now > most:
                best, most = found, now
        return best


def _best_of(
    search: Callable[[Any], tuple[Family, int]],
    starts: Sequence[Family],
    strengths: Iterable[float],
    generator: np.random.Generator,
) -> Family:
    """Search from the starts, then from copies of the best, shaken with each of the strengths."""
    best, most = max((search(start) for start in starts), key=lambda found: found[1])
    for strength in strengths:
        blow = strength * generator.normal(size=len(best.theta))
        found, count = search(best.repair(best.essential() * np.exp(blow)))
        if count > most:
            best, most = found, count
    return best


def _nearest(sides: AlignedTables, records: Integers, *turns: Floats) -> Competitors:
    """Return the nearest competitors by equal weights, by trusted ones, and by some maps."""
    d = len(sides.columns)
    spread = sides.gaps(np.arange(len(sides.A))).std(axis=0)
    trusted = 1 / np.maximum(spread, 1e-3 * max(float(spread.max()), 1e-12))
    count = min(max(75_000 // max(len(records), 1), NEAREST // 2), 2 * NEAREST)
    return near_competitors(sides, records, [np.eye(d), np.diag(trusted), *turns], count)
