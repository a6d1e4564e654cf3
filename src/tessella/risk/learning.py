"""The worst case by learning: the distance that links most records.

The intruder is given everything: the original, the masked table, and the parameters of a distance
that suit him best. `learn` looks for them from several starts by exact line search. What it finds
is a lower bound of the worst case; the same search on half of the records, tried on the other half,
tells how much of it is knowledge about the masking and how much is fitting to these records.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..exceptions import OutOfRangeError, UnknownOptionError
from .choquet import Choquet
from .climbing import climb
from .distances import OWA, Bilinear, WeightedMean
from .estimate import Estimate
from .family import Family
from .linkage import Linkage, Measure, checked_within, count_family, linkage
from .rows import Competitors, least_competitors, near_competitors, rows_of
from .sides import Sides, read_sides

__all__ = ["FAMILIES", "Learned", "learn"]

Name = Hashable
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FAMILIES = ("weighted mean", "owa", "bilinear", "choquet")
NEAREST = 40  # competitors of a record under each linear map, for distances that are not monotone
ALL_COMPETITORS = 5000  # originals up to which every competitor is looked at
MOST_ROWS = 250_000  # that are climbed over
MOST_PAIRS = 400_000_000  # that a scan counts; beyond, a sample of records is attacked
SCANNED = ("owa", "choquet")  # families without a tree
MOST_CELLS = 40_000_000  # numbers held in rows
LOWER = "a lower bound of the worst case"
ROUNDS = 3  # of adding the competitors that were overlooked


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
    """

    distance: Family = field(repr=False)
    held_out: Estimate | None
    simpler: Mapping[str, float]
    most: int | None

    @property
    def links(self) -> int:
        """The number of records whose own original is strictly nearest."""
        return int(((self.nearer == 0) & (self.tied == 1)).sum())

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


def learn(
    original: Any,
    masked: Any,
    family: str = "weighted mean",
    *,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    scale: str = "each",
    order: int | None = None,
    effort: int = 6,
    max_records: int = 2000,
    held_out: bool = True,
    within: Sequence[int] = (1, 3, 5, 10),
    random_state: int | None = 0,
) -> Learned:
    """Find parameters of a distance that link as many records as possible.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The two tables, as for `link`.
    family : {"weighted mean", "owa", "bilinear", "choquet"}
        The family of distances.
    known, id, scale, within
        As for `link`.
    order : int, optional
        For "choquet": 2 for a 2-additive measure; by default whole up to eight variables.
    effort : int
        The number of starts.
    max_records : int
        In larger tables, learn from so many records drawn at random, fewer where they have too
        many competitors to hold. Links are counted over all records, for OWA and Choquet beyond
        4e8 pairs over a sample.
    held_out : bool
        Also learn on each half of the records and try it on the other.
    random_state : int or None
        Seed of starts and directions.

    Returns
    -------
    Learned

    Notes
    -----
    The problem is: minimise Σ_i K_i such that, for every i and every j ≠ i,

        Σ_p θ_p (φ_p(a_i - b_j) - φ_p(a_i - b_i)) + C K_i > 0,   K_i ∈ {0, 1},   θ feasible.

    Weighted mean and OWA start from equal weights, the former also from w_k ∝ 1 / Var(a_k - b_k);
    the bilinear form and the Choquet integral start from what the simpler families found. The best
    of all of them over the whole table is given, so a richer family never links less.

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
    if family not in FAMILIES:
        raise UnknownOptionError("family", family, FAMILIES)
    for name, given in (("effort", effort), ("max_records", max_records)):
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise OutOfRangeError(name, given, "a whole number of at least 1")
    ks = checked_within(within)
    sides = read_sides(original, masked, known=known, id=id)
    sides.refuse_mixed(family)
    sides = sides.scaled(scale)
    if family == "choquet":
        Choquet.is_whole(len(sides.columns), order)
    generator = np.random.default_rng(random_state)
    m, n = len(sides.A), len(sides.B)
    some = _drawn(m, max_records, generator)
    search = _Search.of(sides, some, order, effort)
    trail = search.fit(family, some, generator)
    attacked = np.arange(m)
    if family in SCANNED and m * n > MOST_PAIRS:
        attacked = _drawn(m, max(max_records, 1000), generator)
    shares = {name: _share(sides, member, attacked) for name, member in trail.items()}
    best = max(shares, key=lambda name: shares[name])
    apart = _held_out(search, family, some, generator) if held_out and len(some) >= 4 else None
    notes = (
        "the intruder has the original file and the parameters that link most of it",
        f"parameters learned from {len(some):,} records: {LOWER}",
        *sides.notes,
    )
    name = f"best {family} distance found" + (f" ({best})" if best != family else "")
    how = Measure(count_family(sides, trail[best]), name, notes)
    found: Learned = linkage(
        sides,
        how,
        attacked,
        within=ks,
        make=Learned,
        distance=trail[best],
        held_out=apart,
        simpler={name: share for name, share in shares.items() if name != family},
        most=search.most if len(some) == m and family != "bilinear" else None,
    )
    return found


@dataclass(frozen=True)
class _Search:
    """The tables, the competitors under monotone distances, and how hard to look.

    `most` bounds the number of links: the records with a chance, one for each class of identical
    masked records. `partial` says that only the nearest competitors are looked at while climbing.
    """

    sides: Sides
    competitors: Competitors
    order: int | None
    effort: int
    most: int | None
    partial: bool

    @classmethod
    def of(cls, sides: Sides, records: Integers, order: int | None, effort: int) -> _Search:
        """Look at all that can decide in tables of moderate size, at the nearest in others."""
        if len(sides.B) <= ALL_COMPETITORS:
            found = least_competitors(sides, records)
            hopeful = sides.A[found.records]
            most = len(np.unique(hopeful, axis=0)) if len(hopeful) else 0
            if len(found.which) <= MOST_ROWS:
                return cls(sides, found, order, effort, most, False)
            found = _nearest(sides, found.records, [])
            return cls(sides, found, order, effort, most, True)
        return cls(sides, _nearest(sides, records, []), order, effort, None, True)

    def fit(
        self, family: str, records: Integers, generator: np.random.Generator
    ) -> dict[str, Family]:
        """Learn a family and the simpler ones on some records; the plainest comes first."""
        d = len(self.sides.columns)
        trail: dict[str, Family] = {"Euclidean": WeightedMean.neutral(d)}
        gaps = self.sides.A[records] - self.sides.B[self.sides.truth[records]]
        if family == "owa":
            trail["owa"] = self._climb(records, [OWA.neutral(d)], generator)
            return trail
        spread = np.maximum(gaps.var(axis=0), 1e-6 * max(float(gaps.var(axis=0).max()), 1e-12))
        trail["1 / variance"] = WeightedMean(1 / spread)
        plain: list[Family] = [trail["1 / variance"], trail["Euclidean"]]
        weighted = self._climb(records, plain, generator)
        if self.partial:  # those who are near under these weights may have been overlooked
            near = _nearest(self.sides, records, [cast(WeightedMean, weighted).turn()])
            again = replace(self, competitors=near)._climb(records, [weighted], generator)
            both = [weighted, again]
            weighted = max(both, key=lambda member: _share(self.sides, member, records))
        trail["weighted mean"] = weighted
        assert isinstance(weighted, WeightedMean)
        if family == "bilinear":
            trail["bilinear"] = self._climb_forms(records, weighted, gaps, generator)
        if family == "choquet":
            starts: list[Family] = [Choquet.from_weights(weighted.theta, order=self.order)]
            if Choquet.is_whole(d, self.order):
                owa = self._climb(records, [OWA.neutral(d)], generator)
                trail["owa"] = owa
                starts.append(Choquet.from_owa(owa.theta))
            trail["choquet"] = self._climb(records, starts, generator, extra=2)
        return trail

    def _most_rows(self, member: Family) -> int:
        sparse = member.name == "Choquet" and member.linear
        return MOST_CELLS // (4 * member.d if sparse else len(member.theta))

    def _climb(
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
            (climb(rows, start, generator) for start in starts), key=lambda found: found[1]
        )
        for _ in range(self.effort if extra is None else min(extra, self.effort)):
            shaken = best.repair(best.theta * np.exp(generator.normal(size=len(best.theta))))
            found, count = climb(rows, shaken, generator)
            if count > most:
                best, most = found, count
        return best

    def _climb_forms(
        self,
        records: Integers,
        weighted: Family,
        gaps: Floats,
        generator: np.random.Generator,
    ) -> Family:
        """Climb over forms; competitors that were overlooked join after each round."""
        spread = np.atleast_2d(np.cov(gaps, rowvar=False, ddof=0))
        widest, d = max(float(np.trace(spread)), 1e-12), len(spread)
        inverse: Floats = np.linalg.inv(spread + 1e-6 * widest * np.eye(d)).astype(np.float64)
        forms: list[Family] = [
            Bilinear(np.diag(weighted.theta)),
            Bilinear(inverse),
        ]
        shares = [_share(self.sides, form, records) for form in forms]
        best, best_share = max(zip(forms, shares), key=lambda pair: pair[1])
        turns = [cast(Bilinear, form).turn() for form in forms]
        for _ in range(ROUNDS):
            rows = rows_of(self.sides, near_competitors(self.sides, records, turns, NEAREST), best)
            found, _ = climb(rows, best, generator, sweeps=10)
            assert isinstance(found, Bilinear)
            turns.append(found.turn())
            share = _share(self.sides, found, records)
            if share > best_share:
                best, best_share = found, share
        return best


def _drawn(m: int, some: int, generator: np.random.Generator) -> Integers:
    if m <= some:
        return np.arange(m)
    return np.sort(generator.choice(m, size=some, replace=False))


def _nearest(sides: Sides, records: Integers, turns: list[Floats]) -> Competitors:
    """Return the nearest competitors by equal weights, by trusted ones, and by some maps."""
    d = len(sides.columns)
    spread = (sides.A - sides.B[sides.truth]).std(axis=0)
    trusted = 1 / np.maximum(spread, 1e-3 * max(float(spread.max()), 1e-12))
    count = min(max(75_000 // max(len(records), 1), NEAREST // 2), 2 * NEAREST)
    return near_competitors(sides, records, [np.eye(d), np.diag(trusted), *turns], count)


def _share(sides: Sides, member: Family, records: Integers) -> float:
    """Return the share of records linked over all originals, ties as chances."""
    nearer, tied = count_family(sides, member)(records, 1)
    return float(np.where(nearer == 0, 1 / np.maximum(tied, 1), 0.0).mean())


def _held_out(
    search: _Search, family: str, records: Integers, generator: np.random.Generator
) -> Estimate:
    """Learn on one half and try the other, both ways."""
    mixed = generator.permutation(records)
    halves = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
    right = 0.0
    for seen, unseen in (halves, halves[::-1]):
        trail = search.fit(family, np.sort(seen), generator)
        own = {name: _share(search.sides, member, seen) for name, member in trail.items()}
        best = max(own, key=lambda name: own[name])
        right += _share(search.sides, trail[best], unseen) * len(unseen)
    held: Estimate = Estimate.of(
        right,
        len(records),
        baseline=1 / len(search.sides.B),
        attack=f"nearest record, {family} learned on the other half of the records",
        assumptions=("two halves drawn at random, each tried with what the other taught",),
    )
    return held
