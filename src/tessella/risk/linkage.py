"""Distance-based record linkage: each masked record to the nearest original.

For a masked record, the originals *nearer* than its own and those *tied* with it are counted.
None nearer and t tied: the guess is right with chance 1/t. Counting needs no list of neighbours:
a tree of boxes answers for Euclidean, Mahalanobis, Manhattan and weighted distances, a scan on all
cores for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._parameters import NONE, SEED, OneOf, Whole, check, parameters
from .._types import Floats, Integers, Name
from ..exceptions import BadOptionError, UnknownOptionError
from ..kernels.groups import number_equal
from ..kernels.linkage import LEAF, box_tree, count_gower, count_in_tree, halves
from ..parallel import each
from ..schema import Schema
from .aligned import STANDARDISED, AlignedTables, align_tables
from .estimate import Estimate
from .learned.family import Family

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COVARIANCES", "DISTANCES", "Linkage", "drawn", "link"]

Counts = tuple[Integers, Integers]
Count = Callable[[Integers, int], Counts]

DISTANCES = ("euclidean", "mahalanobis", "manhattan", "gower")
COVARIANCES = {
    "difference": "of the difference masked - original",
    "original": "of the original",
    "pooled": "mean of those of the two tables",
}
PIECE = 2048  # records for a piece of work
FULL_RANKS = 5000  # up to here, ranks are counted to the end
FLOOR = 1e-10  # of the largest eigenvalue: below, a direction counts as this wide


@dataclass(frozen=True, kw_only=True, repr=False)
class Linkage(Estimate):
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
        Ranks above are not told apart.
    within : dict of int to float
        For each k, the share of records whose own original is among the k nearest.
    """

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

    @property
    def records(self) -> pd.DataFrame:
        """One line for each attacked record. Confidential: it says who can be found."""
        import pandas as pd

        return pd.DataFrame(
            {
                "masked": self.attacked,
                "original": self.truth,
                "rank": self.rank,
                "tied": self.tied,
                "chance": self.chance,
            }
        )


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

    Returns
    -------
    Linkage

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
    if records is not None:
        attacked = _chosen(m, records, sample)
    else:
        attacked = drawn(m, sample, random_state)
    found: Linkage = linkage(sides, how, attacked, within=ks)
    return found


class Measure(NamedTuple):
    """What counts nearer and tied originals, and what to say of it."""

    counting: Count
    name: str
    notes: tuple[str, ...]


def linkage(
    sides: AlignedTables,
    how: Measure,
    attacked: Integers,
    *,
    within: Sequence[int],
    make: type[Linkage] = Linkage,
    **more: Any,
) -> Any:
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


class Points(NamedTuple):
    """Both tables as points: the distance is the sum of |difference|^power."""

    A: Floats
    B: Floats
    power: int
    name: str
    notes: tuple[str, ...]


def measure(
    sides: AlignedTables, distance: str | Family, *, standardise: str, covariance: str
) -> Measure:
    """Prepare the counting for a distance."""
    if isinstance(distance, Family):
        sides.refuse_mixed(distance.name)
        sides = sides.scaled(standardise)
        return Measure(count_family(sides, distance), f"{distance.name} distance", sides.notes)
    if distance == "gower":
        count = _by_gower(sides)
        note = "numbers divided by their range in both tables, missing values left out"
        return Measure(count, "Gower's distance", (*sides.notes, note))
    points = as_points(sides, distance, standardise=standardise, covariance=covariance)
    count = _by_tree(points.A, points.B, sides.truth, points.power)
    return Measure(count, points.name, points.notes)


def as_points(sides: AlignedTables, distance: str, *, standardise: str, covariance: str) -> Points:
    """Turn both tables so that a plain sum of powers is the distance."""
    if distance not in DISTANCES:
        raise UnknownOptionError("distance", distance, (*DISTANCES, "a family of distances"))
    sides.refuse_mixed(distance.capitalize())
    sides = sides.scaled(standardise)
    if distance == "mahalanobis":
        turn, narrow = _whitening(sides, covariance)
        name = f"Mahalanobis distance (covariance {COVARIANCES[covariance]})"
        return Points(sides.A @ turn, sides.B @ turn, 2, name, (*sides.notes, *narrow))
    power = 2 if distance == "euclidean" else 1
    return Points(sides.A, sides.B, power, f"{distance.capitalize()} distance", sides.notes)


def count_family(sides: AlignedTables, family: Family) -> Count:
    """Count for a distance with parameters, on sides that are already scaled."""
    family.refuse_other(len(sides.columns))
    turn = family.turn()
    if turn is not None:
        return _by_tree(sides.A @ turn, sides.B @ turn, sides.truth, 2)
    return _by_scan(sides, family.scan())


def _by_tree(A: Floats, B: Floats, truth: Integers, power: int) -> Count:
    member, first = number_equal(np.ascontiguousarray(B))
    weights = np.bincount(member)
    columns_first = np.empty((B.shape[1], len(first)))
    for j, column in enumerate(columns_first):  # B[first].T would be two more copies at once
        column[:] = B[first, j]
    depth = max(0, int(np.ceil(np.log2(len(first) / LEAF))))
    order, starts = halves(columns_first, depth)
    tree = box_tree(np.ascontiguousarray(columns_first[:, order]), starts)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    own = place[member[truth]]
    leaf = np.searchsorted(starts, own, side="right") - 1
    homes = np.column_stack([leaf, own - starts[leaf]])
    heavy = weights.astype(np.int64)[order]
    X = np.ascontiguousarray(A)

    def count(attacked: Integers, cap: int) -> Counts:
        along = np.argsort(own[attacked], kind="stable")  # neighbours share what is in the cache
        pieces = np.array_split(attacked[along], max(1, -(-len(attacked) // PIECE)))
        work = partial(count_in_tree, starts, tree, heavy, X, homes, power, cap)
        return _in_order(each(work, pieces), along)

    return count


def _by_gower(sides: AlignedTables) -> Count:
    """Count by Gower's distance, categories first: one that differs often decides alone."""
    order = np.argsort(~sides.nominal, kind="stable")
    first = replace(sides, A=sides.A[:, order], B=sides.B[:, order])
    return _by_scan(first, partial(count_gower, _one_over_ranges(sides)[order]))


def _by_scan(sides: AlignedTables, kernel: Callable[..., Counts]) -> Count:
    A, B = np.ascontiguousarray(sides.A), np.ascontiguousarray(sides.B)

    def count(attacked: Integers, cap: int) -> Counts:
        size = max(1, min(PIECE, 50_000_000 // len(B)))
        pieces = np.array_split(attacked, max(1, -(-len(attacked) // size)))
        work = partial(kernel, A, B, sides.truth, cap)
        return _in_order(each(work, pieces), np.arange(len(attacked)))

    return count


def _in_order(counted: list[Counts], along: Integers) -> Counts:
    nearer, tied = np.empty(len(along), dtype=np.int64), np.empty(len(along), dtype=np.int64)
    nearer[along] = np.concatenate([one for one, _ in counted])
    tied[along] = np.concatenate([one for _, one in counted])
    return nearer, tied


def _within(nearer: Integers, tied: Integers, k: int) -> Floats:
    chance: Floats = np.clip((k - nearer) / np.maximum(tied, 1), 0.0, 1.0)
    return chance


def _one_over_ranges(sides: AlignedTables) -> Floats:
    out = np.full(len(sides.columns), -1.0)
    for place in np.flatnonzero(~sides.nominal):
        both = np.concatenate([sides.A[:, place], sides.B[:, place]])
        both = both[~np.isnan(both)]
        width = float(np.ptp(both)) if len(both) else 0.0
        out[place] = 1 / width if width > 0 else 0.0
    return out


def _whitening(sides: AlignedTables, covariance: str) -> tuple[Floats, tuple[str, ...]]:
    """Return T with T Tᵀ the inverse of the covariance, narrow directions widened to the floor."""
    if covariance not in COVARIANCES:
        raise UnknownOptionError("covariance", covariance, COVARIANCES)
    if covariance == "difference":
        spread = np.cov(sides.A - sides.B[sides.truth], rowvar=False, ddof=0)
    else:
        spread = np.cov(sides.B, rowvar=False, ddof=0)
        if covariance == "pooled":
            spread = (spread + np.cov(sides.A, rowvar=False, ddof=0)) / 2
    values, vectors = np.linalg.eigh(np.atleast_2d(spread))
    largest = max(float(values[-1]), 0.0)
    if largest == 0:  # nothing was masked, or nothing varies
        return np.eye(len(sides.columns)), ("the covariance is zero: plain Euclidean distance",)
    floor = FLOOR * largest
    narrow = int((values < floor).sum())
    note = (
        f"the covariance has {narrow} directions without spread, widened to {FLOOR:g} of the widest"
    )
    return vectors / np.sqrt(np.maximum(values, floor)), (note,) if narrow else ()


def checked_within(within: Sequence[int]) -> tuple[int, ...]:
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
