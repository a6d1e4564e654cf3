"""The worst case by learning: the distance that links most records.

The intruder is given everything: the original, the masked table, and the parameters of a distance
that suit him best. `learn` looks for them from several starts by exact line search. What it finds
is a lower bound of the worst case; the same search on half of the records, tried on the other half,
tells how much of it is knowledge about the masking and how much is fitting to these records.

A *trail* names the members that were tried, the plainest first. Every richer family starts from
what the simpler one found and keeps it on its trail, so the best of a trail never links less than
the best of a simpler family's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, islice
from typing import Any, cast

import numpy as np

from ..._parameters import EFFORT, FLAG, SEED, OneOf, Whole, parameters
from ..._types import Floats, Integers, Name
from ..aligned import AlignedTables, Measure, align_tables, count_family
from ..estimate import Estimate
from ..linkage import Linkage, checked_within, linkage
from .choquet import Choquet
from .families import OWA, Bilinear, Family, WeightedMean
from .search import (
    Competitors,
    expected_rows,
    hopeful,
    least_competitors,
    line_search,
    near_competitors,
    rows_of,
    tried,
)

STARTS = {"quick": 1, "standard": 3, "thorough": 6}  # of searches
FAMILIES = ("weighted mean", "owa", "bilinear", "choquet", "maxitive")
MOST_PAIRS = 400_000_000  # that a scan counts; beyond, a sample of records is attacked
SCANNED = ("owa", "choquet", "maxitive")  # families without a tree
LOWER = "a lower bound of the worst case"
NEAREST = 40  # competitors of a record under each linear map, for distances that are not monotone
ALL_COMPETITORS = 5000  # originals up to which every competitor is looked at
MOST_ROWS = 250_000  # of one line search
MOST_CELLS = 40_000_000  # numbers held in rows
ROUNDS = 3  # of adding the competitors that were overlooked
SHAKES = 2  # copies of the best that are searched from, for each start
STRENGTHS = (0.3, 1.0, 0.1)  # of the shakes in turn, in logarithms


@dataclass(frozen=True, kw_only=True, repr=False)
class Learned(Linkage):
    """What the best distance found links, and what it is worth on records it was not fitted to.

    Besides the fields of `Linkage`:

    Parameters
    ----------
    distance : Family
        The distance with the parameters found; `link(..., distance=found.distance)` uses it.
    held_out : Estimate or None
        The share of records linked by parameters that were learned without them.
    simpler : mapping of str to float
        The shares that simpler distances link, on the same records; none is above `value`.
    most : int or None
        No distance of a monotone family links more records than this strictly; None where it was
        not counted.
    links : int
        The most attacked records that one of the distances tried links strictly: no other original
        is as near as the own one.
    strictest : Family
        The distance that does; `distance` itself unless chances at ties count for more elsewhere.
    """

    distance: Family = field(repr=False)
    held_out: Estimate | None
    simpler: Mapping[str, float]
    most: int | None
    links: int
    strictest: Family = field(repr=False)

    def __str__(self) -> str:
        lines = [super().__str__()]
        lines += [f"  {name}: {100 * share:.1f} %" for name, share in self.simpler.items()]
        if self.held_out is not None:
            low, high = self.held_out.low, self.held_out.high
            lines.append(
                f"  on records held out: {100 * self.held_out.value:.1f} % "
                f"({100 * low:.1f} to {100 * high:.1f} %)"
            )
        return "\n".join(lines)

    __repr__ = __str__


@parameters(
    {"scale": "standardise"},
    family=[OneOf(FAMILIES)],
    effort=[EFFORT],
    max_records=[Whole(1)],
    held_out=[FLAG],
    random_state=[SEED],
)
def learn(
    original: Any,
    masked: Any = None,
    family: str = "weighted mean",
    *,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    standardise: str = "each",
    order: int | None = None,
    effort: str = "thorough",
    max_records: int = 2000,
    held_out: bool = True,
    within: Sequence[int] = (1, 3, 5, 10),
    random_state: int | None = None,
) -> Learned:
    """Find parameters of a distance that link as many records as possible.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The two tables, as for `link`.
    family : {"weighted mean", "owa", "bilinear", "choquet", "maxitive"}
        The family of distances; "maxitive" is the Choquet integral of a k-maxitive measure.
    known, id, standardise, within
        As for `link`.
    order : int, optional
        For "choquet": 2 for a 2-additive measure; by default whole up to eight variables. For
        "maxitive": the size of sets with a number of their own; by default 2.
    effort : {"quick", "standard", "thorough"}
        The number of starts: 1, 3 or 6.
    max_records : int
        In larger tables, learn from so many records drawn at random, fewer where they have too
        many competitors to hold. Links are counted over all records, for distances without a tree
        (OWA, Choquet) beyond 4e8 pairs over a sample.
    held_out : bool
        Also learn on each half of the records and try it on the other.
    random_state : int or None
        Seed of starts and directions.

    Notes
    -----
    The problem is: minimise Σ_i K_i such that, for every i and every j ≠ i,

        Σ_p θ_p (φ_p(a_i - b_j) - φ_p(a_i - b_i)) + C K_i > 0,   K_i ∈ {0, 1},   θ feasible.

    Weighted mean and OWA start from equal weights, the former also from w_k ∝ 1 / Var(a_k - b_k);
    the bilinear form and Choquet integrals start from what the simpler families found. The best of
    all of them over the whole table is given: the same call for a richer family never gives a lower
    `value` or fewer `links`, unless it had to attack a sample. A k-maxitive integral contains the
    weighted mean only for k = d, so what is given for k < d may be a weighted mean.

    References
    ----------
    V. Torra, G. Navarro-Arribas (2020) Fuzzy meets privacy: a short overview. INFUS 2020.
    D. Abril, G. Navarro-Arribas, V. Torra (2012) Choquet integral for record linkage. Annals of
    Operations Research 195, 97-110.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk import learn
    >>> rng = np.random.default_rng(7)
    >>> original = rng.normal(size=(60, 2))
    >>> masked = original + rng.normal(size=(60, 2)) * [0.01, 3.0]
    >>> found = learn(original, masked)
    >>> found.value > 2 * found.simpler["Euclidean"]
    True
    >>> bool(found.distance.weights[0] > 0.9)
    True
    """
    options = Options(order, effort, max_records, held_out, checked_within(within), random_state)
    sides = prepared(original, masked, family, order, known=known, id=id, standardise=standardise)
    return learned(sides, family, options)


@dataclass(frozen=True)
class Options:
    """How to look; see `learn`."""

    order: int | None
    effort: str
    max_records: int
    held_out: bool
    within: tuple[int, ...]
    random_state: int | None


def prepared(
    original: Any, masked: Any, family: str, order: int | None, *, standardise: str, **reading: Any
) -> AlignedTables:
    """Read and standardise both tables; `known` and `id` are as for `learn`."""
    sides = align_tables(original, masked, **reading)
    sides.refuse_mixed(family)
    if family == "choquet":
        Choquet.is_whole(len(sides.columns), order)
    if family == "maxitive":
        from .maxitive import checked_order

        checked_order(len(sides.columns), order)
    return sides.scaled(standardise)


def learned(
    sides: AlignedTables, family: str, options: Options, *, proved: WeightedMean | None = None
) -> Learned:
    """Learn on sides that are scaled; `proved` weights are among what is tried."""
    generator = np.random.default_rng(options.random_state)
    m, n = len(sides.A), len(sides.B)
    some = _drawn(m, options.max_records, generator)
    search = LinkSearch.of(sides, some, options)
    trail = search.fit(family, some, generator, proved=proved)
    attacked = np.arange(m)
    passes = 1 + len(trail[family].theta) // 20 if family == "maxitive" else 1
    if family in SCANNED and m * n * passes > MOST_PAIRS:
        attacked = _drawn(m, max(options.max_records, 1000), generator)
    reached = {name: tried(sides, member, attacked) for name, member in trail.items()}
    best = max(reached, key=lambda name: reached[name])
    strictest = max(reached, key=lambda name: (reached[name].links, name == best))
    apart = None
    if options.held_out and len(some) >= 4:
        apart = _held_out(search, family, some, generator)
    notes = (
        "the intruder has the original file and the parameters that link most of it",
        f"parameters learned from {len(some):,} records: {LOWER}",
        *sides.notes,
    )
    name = f"best {family} distance found" + (f" ({best})" if best != family else "")
    return linkage(
        sides,
        Measure(count_family(sides, trail[best]), name, notes),
        attacked,
        within=options.within,
        make=Learned,
        distance=trail[best],
        held_out=apart,
        simpler={
            name: one.chances / len(attacked) for name, one in reached.items() if name != family
        },
        most=search.most if len(some) == m and family != "bilinear" else None,
        links=reached[strictest].links,
        strictest=trail[strictest],
    )


def _drawn(m: int, some: int, generator: np.random.Generator) -> Integers:
    if m <= some:
        return np.arange(m)
    return np.sort(generator.choice(m, size=some, replace=False))


def _held_out(
    search: LinkSearch, family: str, records: Integers, generator: np.random.Generator
) -> Estimate:
    """Learn on one half and try the other, both ways."""
    mixed = generator.permutation(records)
    halves = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
    right = 0.0
    for seen, unseen in (halves, halves[::-1]):
        trail = search.fit(family, np.sort(seen), generator)
        own = {name: tried(search.sides, member, seen) for name, member in trail.items()}
        best = max(own, key=lambda name: own[name])
        right += tried(search.sides, trail[best], unseen).chances
    return Estimate.of(
        right,
        len(records),
        baseline=1 / len(search.sides.B),
        attack=f"nearest record, {family} learned on the other half of the records",
        assumptions=("two halves drawn at random, each tried with what the other taught",),
    )


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
        most = len(np.unique(sides.A[chance], axis=0)) if len(chance) else 0
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
    spread = (sides.A - sides.B[sides.truth]).std(axis=0)
    trusted = 1 / np.maximum(spread, 1e-3 * max(float(spread.max()), 1e-12))
    count = min(max(75_000 // max(len(records), 1), NEAREST // 2), 2 * NEAREST)
    return near_competitors(sides, records, [np.eye(d), np.diag(trusted), *turns], count)
