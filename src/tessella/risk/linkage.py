"""Distance-based record linkage: each masked record to the nearest original.

For a masked record, the originals *nearer* than its own and those *tied* with it are counted.
None nearer and t tied: the guess is right with chance 1/t. `link_by_knowledge` repeats it over the
number of variables that the intruder knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._lazy import optional
from .._parameters import NONE, SEED, OneOf, Whole, check, parameters
from .._types import Floats, Integers, Name
from ..exceptions import BadOptionError
from ..schema import Schema
from .aligned import COVARIANCES, STANDARDISED, AlignedTables, Measure, align_tables, measure
from .estimate import RecordEstimate
from .learned.families import Family

if TYPE_CHECKING:
    import pandas as pd

Found = TypeVar("Found", bound="Linkage")

FULL_RANKS = 5000  # up to here, ranks are counted to the end


@dataclass(frozen=True, kw_only=True, repr=False)
class Linkage(RecordEstimate):
    """What linking a masked table with its original found, record by record.

    Besides the fields of `Estimate`:

    Parameters
    ----------
    attacked : array of shape (n,)
        The rows of the masked table that were attacked.
    truth : array of shape (n,)
        The row of the original that each comes from.
    nearer, tied : arrays of shape (n,)
        How many originals are nearer than the own one, and how many as near (the own one counts).
        `nearer` is cut at `cap`, and `tied` is 0 there.
    cap : int
        Ranks above are not distinguished.
    within : dict of int to float
        For each k, the share of records whose own original is among the k nearest.
    """

    _columns = ("masked=attacked", "original=truth", "rank", "tied", "chance")
    attacked: Integers = field(repr=False)
    truth: Integers = field(repr=False)
    nearer: Integers = field(repr=False)
    tied: Integers = field(repr=False)
    cap: int
    within: Mapping[int, float]

    @property
    def chance(self) -> Floats:
        """Chance that the guess for each record is right: 1 / tied where none is nearer."""
        return self.chance_within(1)

    def chance_within(self, k: int) -> Floats:
        """Chance that the own original is among the k nearest, ties in random order."""
        if not 1 <= k <= self.cap:
            raise BadOptionError("k", k, f"a whole number from 1 to {self.cap}")
        return _within(self.nearer, self.tied, k)

    @property
    def rank(self) -> Integers:
        """Rank of the own original, 1 for the nearest, ties at their best; cut at cap + 1."""
        return self.nearer + 1


@parameters(
    {"scale": "standardise"},
    standardise=[OneOf(STANDARDISED)],
    covariance=[OneOf(COVARIANCES)],
    sample=[Whole(1), NONE],
    random_state=[SEED],
)
def link(
    original: Any,
    masked: Any = None,
    *,
    distance: str | Family = "euclidean",
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    schema: Schema | None = None,
    standardise: str = "each",
    covariance: str = "difference",
    within: Sequence[int] = (1, 3, 5, 10),
    sample: int | None = None,
    records: Any = None,
    random_state: int | None = None,
) -> Linkage:
    """Link each masked record to the nearest original and count the right links.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The file that the intruder has, and the one that is released. Row i belongs to row i unless
        `id` is given.
    distance : {"euclidean", "mahalanobis", "manhattan", "gower"} or a family
        How he compares; or a `WeightedMean`, `OWA`, `Bilinear` or `Choquet`.
    known : sequence of names, optional
        The variables that he knows; by default all that both tables have (and that a schema does
        not call identifier, household or weight).
    id : name, optional
        A column of both tables that says which records belong together; it is not linked by. The
        masked table may then have fewer records.
    schema : Schema, optional
        Says which numbers are categories and which values are missing.
    standardise : {"each", "original", "none"}
        Standardise each file by itself, both by the original, or not. Gower's distance divides
        by ranges instead.
    covariance : {"difference", "original", "pooled"}
        For "mahalanobis": the covariance of masked - original (the intruder knows how it was
        masked), of the original, or the mean of both tables'.
    within : sequence of int
        The k for which the share within the k nearest is given.
    sample : int, optional
        Attack so many masked records, drawn at random, and give an interval.
    records : array-like of int, optional
        Attack these rows of the masked table, as if they were drawn at random.
    random_state : int, optional
        Seed of the draw.

    Notes
    -----
    Record i counts 1/t_i if no original is nearer to a_i than b_i and t_i are as near, else 0:

        value = (1/n) Σ_i [no j: d(a_i, b_j) < d(a_i, b_i)] / #{j : d(a_i, b_j) = d(a_i, b_i)}.

    Distances that agree to 1e-9 of their size count as equal. For up to 5,000 originals ranks are
    counted to the end, above to the largest k of `within`.

    References
    ----------
    V. Torra (2022) Guide to Data Privacy, Springer, chapter 5.
    J. C. Gower (1971) A general coefficient of similarity. Biometrics 27, 857-871.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk import link
    >>> original = np.array([[0.0], [1.0], [2.0], [10.0]])
    >>> masked = np.array([[0.0], [1.9], [2.1], [9.0]])
    >>> found = link(original, masked, standardise="none")
    >>> found
    75.0 % of 4 records (all of them; by guessing 25.0 %): nearest record, Euclidean distance
    >>> found.rank
    array([1, 2, 1, 1])
    """
    sides = align_tables(original, masked, known=known, id=id, schema=schema)
    ks = checked_within(within)
    how = measure(sides, distance, standardise=standardise, covariance=covariance)
    m = len(sides.A)
    attacked = drawn(m, sample, random_state) if records is None else _chosen(m, records, sample)
    return linkage(sides, how, attacked, within=ks, make=Linkage)


def linkage(
    sides: AlignedTables,
    how: Measure,
    attacked: Integers,
    *,
    within: Sequence[int],
    make: type[Found],
    **more: Any,
) -> Found:
    """Count for the attacked records and put the result together."""
    n = len(sides.B)
    cap = n if n <= FULL_RANKS else max(within)
    nearer, tied = how.counting(attacked, cap)
    cut = nearer >= cap
    nearer, tied = np.where(cut, cap, nearer), np.where(cut, 0, tied)
    shares = {k: float(_within(nearer, tied, k).mean()) for k in within if k <= n}
    return make.of(
        float(_within(nearer, tied, 1).sum()),
        len(attacked),
        baseline=1 / n,
        attack=f"nearest record, {how.name}",
        assumptions=(f"known: {', '.join(map(str, sides.columns))}", *how.notes),
        exact=len(attacked) == len(sides.A),
        attacked=attacked,
        truth=sides.truth[attacked],
        nearer=nearer,
        tied=tied,
        cap=cap,
        within=shares,
        **more,
    )


def _within(nearer: Integers, tied: Integers, k: int) -> Floats:
    return np.clip((k - nearer) / np.maximum(tied, 1), 0.0, 1.0)


def checked_within(within: Sequence[int]) -> tuple[int, ...]:
    """Return the k of `within` and 1, ascending."""
    ks = tuple(within)
    if not ks or not all(Whole(1).accepts(k) for k in ks):
        raise BadOptionError("within", within, "whole numbers of at least 1, such as (1, 3, 5)")
    return tuple(sorted({1, *ks}))


def drawn(m: int, sample: int | None, random_state: int | None) -> Integers:
    """Return the masked rows to attack: all, or so many drawn at random, ascending."""
    if sample is None:
        return np.arange(m)
    check({"sample": [Whole(1, m)]}, {"sample": sample})
    generator = np.random.default_rng(random_state)
    return np.sort(generator.choice(m, size=sample, replace=False))


def _chosen(m: int, records: Any, sample: int | None) -> Integers:
    rows = np.asarray(records)
    whole = rows.ndim == 1 and rows.dtype.kind in "iu" and len(rows) > 0
    if not whole or rows.min() < 0 or rows.max() >= m or len(np.unique(rows)) < len(rows):
        raise BadOptionError("records", type(records).__name__, f"different rows from 0 to {m - 1}")
    if sample is not None:
        raise BadOptionError("sample", sample, "either a sample or records")
    return rows.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """Linkage for each number of known variables.

    Parameters
    ----------
    columns : tuple
        The variables that could be known.
    linkages : tuple of (tuple of names, Linkage)
        Every set of variables that was tried, and what it links.
    complete : bool
        Whether every set of variables was tried.
    """

    columns: tuple[Name, ...]
    linkages: tuple[tuple[tuple[Name, ...], Linkage], ...]
    complete: bool

    @property
    def curve(self) -> pd.DataFrame:
        """For each number of variables the least, mean and largest share, and the worst set."""
        import pandas as pd

        tried = pd.DataFrame(
            {"known": len(names), "share": one.value, "worst set": ", ".join(map(str, names))}
            for names, one in self.linkages
        )
        shares = tried.groupby("known")["share"]
        curve = shares.agg(sets="size", least="min", mean=lambda some: np.mean(some.to_numpy()))
        curve["largest"] = shares.max()
        curve["worst set"] = tried["worst set"].to_numpy()[shares.idxmax()]
        return curve.reset_index()

    def __str__(self) -> str:
        head = "share of records linked, by the number of variables the intruder knows"
        how = "all sets" if self.complete else "some of the sets"
        return f"{head} ({how}):\n{self.curve.to_string(index=False)}"

    __repr__ = __str__

    def picture(self) -> Any:
        """Draw the curve with its range; return a matplotlib figure."""
        figures = optional("matplotlib.figure", extra="plots", purpose="A picture")
        figure = figures.Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot()
        curve = self.curve
        axes.fill_between(
            curve["known"], 100 * curve["least"], 100 * curve["largest"], color="#0072B2", alpha=0.2
        )
        axes.plot(curve["known"], 100 * curve["mean"], color="#0072B2", marker="o")
        axes.set(xlabel="variables that the intruder knows", ylim=(0, 100))
        axes.set_ylabel("records linked, per cent (mean and range)")
        axes.spines[["top", "right"]].set_visible(False)
        return figure


@parameters(
    {"scale": "standardise"},
    choose=[OneOf(("subsets", "first"))],
    most_sets=[Whole(1)],
    random_state=[SEED],
)
def link_by_knowledge(
    original: Any,
    masked: Any,
    *,
    known: Any = None,
    choose: str = "subsets",
    most_sets: int = 20,
    random_state: int | None = None,
    **options: Any,
) -> Knowledge:
    """Link with one known variable, with two, and so on.

    Parameters
    ----------
    original, masked
        The two tables, as for `link`.
    known : sequence of names, optional
        The variables that could be known; by default all that both tables have.
    choose : {"subsets", "first"}
        All sets of each size (at most `most_sets`, then drawn at random), or the first 1, 2, ...
        variables.
    most_sets : int
        How many sets of each size are tried at most.
    random_state : int or None
        Seed of the draw.
    **options
        For `link`: distance, id, standardise, sample and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk import link_by_knowledge
    >>> rng = np.random.default_rng(0)
    >>> original = rng.normal(size=(200, 3))
    >>> known = link_by_knowledge(original, original + 0.3 * rng.normal(size=(200, 3)))
    >>> known.curve["sets"].tolist()
    [3, 3, 1]
    >>> bool(known.curve["mean"].is_monotonic_increasing)
    True
    """
    reading = {key: options.pop(key) for key in ("id", "schema") if key in options}
    tables = align_tables(original, masked, known=known, **reading)
    columns = tables.columns
    generator = np.random.default_rng(random_state)
    sets: list[tuple[Name, ...]] = []
    complete = choose == "subsets"
    for count in range(1, len(columns) + 1):
        if choose == "first":
            sets.append(columns[:count])
        elif comb(len(columns), count) <= most_sets:
            sets += combinations(columns, count)
        else:
            complete = False
            drawn: set[tuple[int, ...]] = set()
            while len(drawn) < most_sets:
                places = generator.choice(len(columns), size=count, replace=False)
                drawn.add(tuple(sorted(int(place) for place in places)))
            sets += [tuple(columns[place] for place in places) for places in sorted(drawn)]
    linkages = tuple((names, link(tables, known=names, **options)) for names in sets)
    return Knowledge(columns=columns, linkages=linkages, complete=complete)
