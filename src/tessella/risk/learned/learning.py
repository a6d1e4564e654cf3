"""The worst case by learning: the distance that links most records.

The intruder is given everything: the original, the masked table, and the parameters of a distance
that suit him best. `learn` looks for them from several starts by exact line search. What it finds
is a lower bound of the worst case; the same search on half of the records, tried on the other half,
tells how much of it is knowledge about the masking and how much is fitting to these records. The
same search after the masked records were shuffled tells how much is fitting alone: its *control*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._clock import waiting
from ..._parameters import EFFORT, FLAG, SEED, OneOf, Whole, parameters
from ..._types import Integers, Name
from ...schema import Schema
from ..aligned import AlignedTables, Measure, align_tables, count_family
from ..estimate import Estimate
from ..linkage import Linkage, checked_within, linkage
from .choquet import Choquet
from .families import Family, WeightedMean
from .search import MemberLinks, tried
from .trail import LinkSearch, Options

FAMILIES = ("weighted mean", "owa", "bilinear", "choquet", "maxitive")
MOST_PAIRS = 400_000_000  # that a scan counts; beyond, a sample of records is attacked
SCANNED = ("owa", "choquet", "maxitive")  # families without a tree
SIGNED = ("bilinear", "maxitive")  # families that are learned from numbers only
LOWER = "a lower bound of the worst case"
CONTROLLED = 10_000  # records over which the links of the control are counted, at most
HALVES, COUNTING = (0.4, 0.55), 0.7  # shares of the work that are done when these parts begin


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

    def beside(self) -> str:
        """Return the share on records held out, then what belongs beside any estimate."""
        apart = self.held_out
        out = "" if apart is None else f"on records held out {100 * apart.value:.1f} %, "
        return out + super().beside()

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
    control=[FLAG],
    random_state=[SEED],
)
def learn(
    original: Any,
    masked: Any = None,
    family: str = "weighted mean",
    *,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    schema: Schema | None = None,
    standardise: str = "each",
    order: int | None = None,
    effort: str = "thorough",
    max_records: int = 2000,
    held_out: bool = True,
    control: bool = True,
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
    known, id, schema, standardise, within
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
    control : bool
        Also learn, with the same effort, after the masked records were shuffled: what the search
        reaches where there is nothing to find is the `baseline`. Links of more than 10,000 records
        are counted over a sample. False leaves the baseline at guessing, 1 / n.
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

    Numbers without a missing cell are compared by φ of squared standardised differences. Where some
    variable has categories or missing cells, weighted mean, OWA and Choquet integral take Gower's
    components instead of squares: |a_k - b_k| / range for a number or an ordered category, 0 or 1
    for others; one that is missing counts as the mean of the pair's others. So equal weights are
    Gower's distance, which leaves it out.

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
    ks = checked_within(within)
    options = Options(order, effort, max_records, held_out, control, ks, random_state)
    sides = prepared(
        original, masked, family, order, known=known, id=id, schema=schema, standardise=standardise
    )
    return learned(sides, family, options)


def prepared(
    original: Any, masked: Any, family: str, order: int | None, *, standardise: str, **reading: Any
) -> AlignedTables:
    """Read and standardise both tables; `known`, `id` and `schema` are as for `learn`."""
    sides = align_tables(original, masked, **reading)
    if family == "choquet":
        Choquet.is_whole(len(sides.columns), order)
    if family == "maxitive":
        from .maxitive import checked_order

        checked_order(len(sides.columns), order)
    return sides.components(family, standardise, signed=family in SIGNED)


def learned(
    sides: AlignedTables, family: str, options: Options, *, proved: WeightedMean | None = None
) -> Learned:
    """Learn on sides that are scaled; `proved` weights are among what is tried."""
    generator = np.random.default_rng(options.random_state)
    search = _Searched.of(sides, family, options, generator, SEARCHING, proved=proved)
    trail, reached, some, best = search.trail, search.reached, search.records, search.best
    strictest = max(reached, key=lambda name: (reached[name].links, name == best))
    apart = None
    if options.held_out and len(some) >= 4:
        apart = _held_out(search.search, family, some, generator)
    notes = (
        "the intruder has the original file and the parameters that link most of it",
        f"parameters learned from {len(some):,} records: {LOWER}",
        *sides.notes,
    )
    name = f"best {family} distance found" + (f" ({best})" if best != family else "")
    _report(COUNTING, "counting links")
    found = linkage(
        sides,
        Measure(count_family(sides, trail[best]), name, notes),
        search.attacked,
        within=options.within,
        make=Learned,
        distance=trail[best],
        held_out=apart,
        simpler={
            name: one.chances / len(search.attacked)
            for name, one in reached.items()
            if name != family
        },
        most=search.search.most if len(some) == len(sides.A) and family != "bilinear" else None,
        links=reached[strictest].links,
        strictest=trail[strictest],
    )
    if not options.control:
        return found
    control = _control(sides, family, options)
    return replace(found, baseline=control.value, controls={"shuffled": control})


@dataclass(frozen=True, kw_only=True)
class _Searched:
    """A search that has ended: on which records, its trail, and what each member reaches."""

    search: LinkSearch
    records: Integers
    trail: Mapping[str, Family]
    attacked: Integers
    reached: Mapping[str, MemberLinks]

    @classmethod
    def of(
        cls,
        sides: AlignedTables,
        family: str,
        options: Options,
        generator: np.random.Generator,
        report: Part,
        *,
        proved: WeightedMean | None = None,
        counted: int | None = None,
    ) -> _Searched:
        """Learn from some records, and count over all, or over `counted` of them."""
        m, n = len(sides.A), len(sides.B)
        some = _drawn(m, options.max_records, generator)
        report(0.0, "which records compete")
        search = LinkSearch.of(sides, some, options)
        report(0.3, "searching")
        trail = search.fit(family, some, generator, proved=proved)
        passes = 1 + len(trail[family].theta) // 20 if family == "maxitive" else 1
        if sides.one_over is not None:
            passes = 4  # components are computed for every pair
        if (family in SCANNED or sides.one_over is not None) and m * n * passes > MOST_PAIRS:
            counted = max(options.max_records, 1000)
        attacked = np.arange(m) if counted is None else _drawn(m, counted, generator)
        reached = {}
        for at, (name, member) in enumerate(trail.items()):
            report(0.6 + 0.4 * at / len(trail), f"{name}: links of {len(attacked):,} records")
            reached[name] = tried(sides, member, attacked)
        return cls(search=search, records=some, trail=trail, attacked=attacked, reached=reached)

    @property
    def best(self) -> str:
        """The member that links most records."""
        return max(self.reached, key=lambda name: self.reached[name])


def _control(sides: AlignedTables, family: str, options: Options) -> Estimate:
    """Search with the same effort where nothing is to be found: in shuffled records.

    The order is drawn from a stream of its own: whoever shuffled the table by the same seed would
    otherwise have it put right.
    """
    generator = np.random.default_rng(options.random_state).spawn(1)[0]
    mixed = replace(sides, truth=generator.permutation(sides.truth))
    found = _Searched.of(mixed, family, options, generator, SHUFFLED, counted=CONTROLLED)
    return Estimate.of(
        found.reached[found.best].chances,
        len(found.attacked),
        baseline=1 / len(sides.B),
        attack=f"the same search for a {family} distance in shuffled records",
        assumptions=(
            "one order of the masked records, drawn at random",
            f"parameters learned from {len(found.records):,} records",
        ),
    )


@dataclass(frozen=True)
class Part:
    """A part of the work, which reports how far it is itself."""

    low: float
    high: float
    where: str = ""

    def __call__(self, share: float, what: str) -> None:
        """Report that this share of the part is done and what begins."""
        _report(self.low + (self.high - self.low) * share, f"{what}{self.where}")


SEARCHING, SHUFFLED = Part(0.0, 0.4), Part(0.75, 1.0, ", shuffled")


def _report(share: float, what: str) -> None:
    """Report to whoever waits which share of the work is done and what begins."""
    if (progress := waiting()) is not None:
        progress(round(100 * share), 100, f"learned distance: {what}")


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
    for at, (seen, unseen) in enumerate((halves, halves[::-1])):
        _report(HALVES[at], "learning on one half")
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
