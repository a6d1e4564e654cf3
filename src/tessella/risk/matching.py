"""Matching of records: by the agreement of variables, and one to one.

*Probabilistic linkage* (Fellegi and Sunter): each variable of a pair agrees or does not. Agreement
speaks for a match by log(m/u), with m the chance to agree in a true pair and u in any other; both
are estimated from the tables by EM, without knowing who is who. A masked record is linked to the
original with the highest sum.

*One-to-one linkage*: every original is used at most once, and the sum of distances is least. Only
the nearest candidates of each record enter the assignment problem. Its *prices* then tell whether a
pair left out could improve it: pairs that could are let in, until none can. The result is optimal
over all pairs, and no n x n matrix is held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from .._parameters import Number, OneOf, Whole, check, parameters
from .._types import Floats, Integers, Name
from ..exceptions import BadOptionError, LinkageError
from ..kernels.candidates import lower_prices
from ..kernels.groups import number_equal
from ..kernels.linkage import agreement_patterns, count_by_pattern
from ..schema import Schema
from .aligned import (
    COVARIANCES,
    STANDARDISED,
    AlignedTables,
    Measure,
    Points,
    align_tables,
    as_list,
    as_points,
    in_pieces,
)
from .estimate import Estimate
from .linkage import Linkage, checked_within, linkage

if TYPE_CHECKING:
    import pandas as pd

MOST_VARIABLES = 16  # of a probabilistic linkage
PIECE = 512  # records for a piece of work
QUANTILE = 0.9
EDGE = 1e-6  # chances stay this far from 0 and 1
MOST_RECORDS = 5000  # of a one-to-one linkage
SUMMED = ("euclidean", "mahalanobis", "manhattan")
ROUNDS = 60
BLOCK = 256
ADDED = 4  # pairs that a record may let in at once


@dataclass(frozen=True, kw_only=True, repr=False)
class Probabilistic(Linkage):
    """A linkage by agreement; `chances_m` and `chances_u` are those of each variable."""

    columns: tuple[Name, ...]
    limits: Floats = field(repr=False)
    chances_m: Floats = field(repr=False)
    chances_u: Floats = field(repr=False)
    converged: bool

    @property
    def agreement(self) -> pd.DataFrame:
        """What agreement and disagreement of each variable say, as logarithms of base 2."""
        import pandas as pd

        m, u = self.chances_m, self.chances_u
        figures = {"agrees within": self.limits, "m": m, "u": u}
        says = {"if it agrees": np.log2(m / u), "if not": np.log2((1 - m) / (1 - u))}
        return pd.DataFrame({"variable": list(self.columns), **figures, **says})


def link_probabilistic(
    original: Any,
    masked: Any = None,
    *,
    known: Sequence[Name] | Name | None = None,
    block: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    schema: Schema | None = None,
    agree: Mapping[Name, float] | None = None,
    within: Sequence[int] = (1, 3, 5, 10),
) -> Probabilistic:
    """Link by agreement of variables, weighed by EM; for mixed tables.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The two tables, as for `link`.
    known : sequence of names, optional
        The variables to compare, at most 16.
    block : sequence of names, optional
        Only pairs that are equal in these variables are compared; a record whose blocking
        variables were changed cannot be found.
    id, schema, within
        As for `link`.
    agree : mapping of name to number, optional
        How far two numbers may lie apart and still agree. By default as far as 90 % of the values
        were moved by masking: the intruder is taken to know the method.

    Notes
    -----
    With γ the pattern of agreements of a pair,

        P(γ) = p Π_k m_k^γ_k (1 - m_k)^(1-γ_k) + (1 - p) Π_k u_k^γ_k (1 - u_k)^(1-γ_k);

    p is known (each masked record has one original), m and u maximise the likelihood of the counts
    of patterns. Missing values do not agree.

    References
    ----------
    I. P. Fellegi, A. B. Sunter (1969) A theory for record linkage. Journal of the American
    Statistical Association 64, 1183-1210.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella.risk import link_probabilistic
    >>> table = pd.DataFrame({"age": [31, 45, 31, 62], "town": ["Reus", "Reus", "Valls", "Valls"]})
    >>> link_probabilistic(table, table).value
    1.0
    """
    ks = checked_within(within)
    sides = align_tables(original, masked, known=known, id=id, schema=schema)
    groups = _blocks(sides, block)
    if block is not None and known is None:
        names = [name for name in sides.columns if name not in as_list(block)]
        if not names:
            raise LinkageError.nothing_common(original=[], masked=[])
        sides = sides.select(names)
    if len(sides.columns) > MOST_VARIABLES:
        raise LinkageError.too_many(
            what="Probabilistic linkage by agreement of variables", given=len(sides.columns),
            most=MOST_VARIABLES, instead="Give known= the variables that say most.",
        )  # fmt: skip
    everyone = np.arange(len(sides.A))
    limits = _limits(sides, agree)

    def patterns(records: Integers) -> Integers:
        return agreement_patterns(
            sides.A[records], sides.B, limits, groups.starts, groups.members, groups.masked[records]
        )

    counts = np.sum(in_pieces(patterns, everyone, PIECE), axis=0)
    (m, u), converged = _em(counts, len(sides.A))
    agrees = (np.arange(1 << len(m))[:, None] >> np.arange(len(m))) & 1
    scores: Floats = agrees @ np.log2(m / u) + (1 - agrees) @ np.log2((1 - m) / (1 - u))
    scores = np.round(scores, 9)

    def count(attacked: Integers, cap: int) -> tuple[Integers, Integers]:
        work = partial(
            count_by_pattern, sides.A, sides.B, limits, scores, groups.starts, groups.members,
            groups.masked, sides.truth,
        )  # fmt: skip
        parts = in_pieces(work, attacked, PIECE)
        nearer, tied = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        lost = groups.masked[attacked] != groups.original[sides.truth[attacked]]
        return np.where(lost, cap, nearer), tied

    notes = [*sides.notes, "numbers agree within the limits of `agreement`"]
    if block is not None:
        notes.append(f"only pairs equal in {block!r} are compared")
    if not converged:
        notes.append("EM was stopped before it converged: the weights are approximate")
    how = Measure(count, "Fellegi-Sunter weights", tuple(notes))
    return linkage(
        sides,
        how,
        everyone,
        within=ks,
        make=Probabilistic,
        columns=sides.columns,
        limits=limits,
        chances_m=m,
        chances_u=u,
        converged=converged,
    )


class _Blocks(NamedTuple):
    """The block of each record, and the originals of each block."""

    original: Integers
    masked: Integers
    starts: Integers
    members: Integers


def _blocks(sides: AlignedTables, block: Any) -> _Blocks:
    n = len(sides.B)
    numbers = np.zeros(n + len(sides.A), dtype=np.int64)
    if block is not None:
        pair = cast(Any, sides.pair)
        read = align_tables(pair.original, pair.masked, known=block, id=pair.id, schema=pair.schema)
        both = np.vstack([read.B, read.A])
        if np.isnan(both).any():
            raise LinkageError(
                f"The blocking variables {block!r} have missing values, so some records belong to "
                "no block. Fill them, or block by other variables."
            )
        numbers = number_equal(both)[0]
    first, second = numbers[:n], numbers[n:]
    members = np.argsort(first, kind="stable").astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=numbers.max() + 1))])
    return _Blocks(first, second, starts.astype(np.int64), members)


def _limits(sides: AlignedTables, agree: Mapping[Name, float] | None) -> Floats:
    given = dict(agree or {})
    limits = np.zeros(len(sides.columns))
    for place, name in enumerate(sides.columns):
        if name in given:
            limit = given.pop(name)
            check({f"agree[{name!r}]": [Number(least=0)]}, {f"agree[{name!r}]": limit})
            limits[place] = limit
        elif not sides.nominal[place]:
            moved = np.abs(sides.A[:, place] - sides.B[sides.truth, place])
            moved = moved[~np.isnan(moved)]
            limits[place] = np.quantile(moved, QUANTILE) * (1 + 1e-9) if len(moved) else 0.0
    if given:
        raise BadOptionError("agree", sorted(map(str, given)), "names of compared variables")
    return limits


def _em(counts: Integers, matches: int, sweeps: int = 1000) -> tuple[tuple[Floats, Floats], bool]:
    """Return m and u of each variable, and whether they converged."""
    seen = np.flatnonzero(counts)
    weight = counts[seen].astype(np.float64)
    d = len(counts).bit_length() - 1
    agrees = ((seen[:, None] >> np.arange(d)) & 1).astype(np.float64)
    total = float(weight.sum())
    share = min(matches / max(total, 1.0), 0.5)
    m = np.full(d, 0.9)
    u = np.clip(weight @ agrees / max(total, 1.0), EDGE, 1 - EDGE)
    for _ in range(sweeps):
        match = share * np.exp(agrees @ np.log(m) + (1 - agrees) @ np.log(1 - m))
        other = (1 - share) * np.exp(agrees @ np.log(u) + (1 - agrees) @ np.log(1 - u))
        belief = weight * match / (match + other)
        rest = weight - belief
        new_m = np.clip(belief @ agrees / max(float(belief.sum()), 1e-300), EDGE, 1 - EDGE)
        new_u = np.clip(rest @ agrees / max(float(rest.sum()), 1e-300), EDGE, 1 - EDGE)
        moved = max(float(np.abs(new_m - m).max()), float(np.abs(new_u - u).max()))
        m, u = new_m, new_u
        if moved < 1e-10:
            return (m, u), True
    return (m, u), False


@dataclass(frozen=True, kw_only=True, repr=False)
class Assignment(Estimate):
    """A one-to-one linkage.

    Besides the fields of `Estimate`:

    Parameters
    ----------
    assigned : array of shape (n,)
        The original that each masked record was given.
    chance : array of shape (n,)
        The chance that it is the right one; masked records with equal values share theirs.
    cost : float
        The sum of distances.
    optimal : bool
        Whether no other one-to-one linkage has a smaller sum, proved by prices.
    """

    assigned: Integers = field(repr=False)
    chance: Floats = field(repr=False)
    cost: float
    optimal: bool


@parameters(
    {"scale": "standardise"},
    distance=[OneOf(SUMMED)],
    standardise=[OneOf(STANDARDISED)],
    covariance=[OneOf(COVARIANCES)],
    candidates=[Whole(1)],
)
def link_one_to_one(
    original: Any,
    masked: Any = None,
    *,
    distance: str = "euclidean",
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    standardise: str = "each",
    covariance: str = "difference",
    candidates: int = 16,
) -> Assignment:
    """Link all records at once, each original at most once, with the least sum of distances.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The two tables, up to 5,000 records each.
    distance : {"euclidean", "mahalanobis", "manhattan"}
        Squared distances are summed for the first two.
    known, id, standardise, covariance
        As for `link`.
    candidates : int
        The number of nearest originals to begin with.

    Notes
    -----
    With prices u, v such that u_i + v_j = d_ij for assigned pairs, v ≤ 0, and v_j = 0 for originals
    that nobody has, the assignment is optimal if and only if u_i + v_j ≤ d_ij for every pair.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk import link, link_one_to_one
    >>> original = np.array([[0.0], [1.0], [2.0], [10.0]])
    >>> masked = np.array([[0.0], [1.9], [2.1], [9.0]])
    >>> link_one_to_one(original, masked, standardise="none").assigned
    array([0, 1, 2, 3])
    """
    sides = align_tables(original, masked, known=known, id=id)
    largest = max(len(sides.A), len(sides.B))
    if largest > MOST_RECORDS:
        instead = "Link records one by one with link()."
        raise LinkageError.too_many(
            what="One-to-one linkage", given=largest, most=MOST_RECORDS, instead=instead
        )
    points = as_points(sides, distance, standardise=standardise, covariance=covariance)
    assigned, optimal = _solve(points, candidates)
    chance = _chances(points, sides.truth, assigned)
    cost = float(_costs(points, np.arange(len(assigned)), assigned).sum())
    proof = "the least sum, proved by prices" if optimal else "the least sum is not proved"
    return Assignment.of_chances(
        chance,
        baseline=1 / len(sides.B),
        attack=f"one-to-one linkage, {points.name}",
        assumptions=(
            f"known: {', '.join(map(str, sides.columns))}",
            *points.notes,
            "the intruder knows that every masked record is among his",
            proof,
        ),
        assigned=assigned,
        cost=cost,
        optimal=optimal,
    )


def _costs(points: Points, rows: Integers, columns: Integers) -> Floats:
    out: Floats = (np.abs(points.A[rows] - points.B[columns]) ** points.power).sum(axis=1)
    return out


def _solve(points: Points, candidates: int) -> tuple[Integers, bool]:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching
    from scipy.spatial import cKDTree

    m, n = len(points.A), len(points.B)
    some = min(max(candidates, 2), n)
    near = cKDTree(points.B).query(points.A, k=some, p=points.power)[1].reshape(m, -1)
    # Any way to serve everybody makes the problem solvable; it knows nothing of who is who.
    anyhow = np.random.default_rng(0).permutation(n)[:m]
    pairs = np.union1d(np.arange(m)[:, None] * n + near, np.arange(m) * n + anyhow)
    assigned = np.arange(m)
    for _ in range(ROUNDS):
        rows, columns = pairs // n, pairs % n
        costs = _costs(points, rows, columns)
        # Zeros would be read as "no pair"; one more for every pair changes no assignment.
        # Whole numbers keep its sums exact: with rounding errors the solver may never end.
        whole = np.rint(costs / (float(costs.max()) or 1.0) * 2.0**36) + 1.0
        graph = csr_matrix((whole, (rows, columns)), shape=(m, n))
        at, given = min_weight_full_bipartite_matching(graph)
        assigned = np.empty(m, dtype=np.int64)
        assigned[at] = given
        prices = np.zeros(n)
        own = _costs(points, np.arange(m), assigned)
        if lower_prices(assigned[rows], columns.astype(np.int64), costs - own[rows], prices) < 0:
            return assigned, False
        better = _improving(points, own - prices[assigned], prices)
        if not len(better):
            return assigned, True
        pairs = np.union1d(pairs, better)
    return assigned, False


def _improving(points: Points, own: Floats, prices: Floats) -> Integers:
    """Return pairs whose distance is below the sum of their prices, the worst of each record."""
    n = len(prices)
    found = []
    tolerance = 1e-9 * max(1.0, float(np.abs(own).max()))
    for first in range(0, len(own), BLOCK):
        rows = np.arange(first, min(first + BLOCK, len(own)))
        cost = np.zeros((len(rows), n))
        for column in range(points.A.shape[1]):
            side = np.abs(points.A[rows, column][:, None] - points.B[:, column])
            cost += side * side if points.power == 2 else side
        slack = cost - prices - own[rows][:, None]
        worst = np.argpartition(slack, min(ADDED, n - 1), axis=1)[:, :ADDED]
        open_ = np.take_along_axis(slack, worst, axis=1) < -tolerance
        found.append((rows[:, None] * n + worst)[open_])
    return np.concatenate(found).astype(np.int64)


def _chances(points: Points, truth: Integers, assigned: Integers) -> Floats:
    """Records with equal masked values share what was assigned to them; equal originals too."""
    masked = np.unique(points.A, axis=0, return_inverse=True)[1].reshape(-1)
    alike, counts = np.unique(points.B, axis=0, return_inverse=True, return_counts=True)[1:]
    alike = alike.reshape(-1)
    width = int(alike.max()) + 1
    given, times = np.unique(masked * width + alike[assigned], return_counts=True)
    wanted = masked * width + alike[truth]
    place = np.minimum(np.searchsorted(given, wanted), len(given) - 1)
    reached = np.where(given[place] == wanted, times[place], 0)
    return reached / np.bincount(masked)[masked] / counts[alike[truth]]
