"""Global linkage: every original is used at most once, and the sum of distances is least.

Only the nearest candidates of each record enter the assignment problem. Its *prices* then tell
whether a pair left out could improve it: pairs that could are let in, until none can. The result is
optimal over all pairs, and no n x n matrix is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._parameters import OneOf, Whole, parameters
from .._types import Floats, Integers, Name
from ..exceptions import LinkageError
from ..kernels.candidates import lower_prices
from .aligned import align_tables
from .estimate import Estimate
from .linkage import Points, as_points

__all__ = ["Assignment", "link_one_to_one"]


MOST = 5000
SUMMED = ("euclidean", "mahalanobis", "manhattan")
ROUNDS = 60
BLOCK = 256
ADDED = 4  # pairs that a record may let in at once


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


@parameters({"scale": "standardise"}, distance=[OneOf(SUMMED)], candidates=[Whole(1)])
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

    Returns
    -------
    Assignment

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
    if largest > MOST:
        raise LinkageError.too_many(
            what="One-to-one linkage",
            given=largest,
            most=MOST,
            instead="Link records one by one with link().",
        )
    points = as_points(sides, distance, standardise=standardise, covariance=covariance)
    assigned, optimal = _solve(points, candidates)
    chance = _chances(points, sides.truth, assigned)
    cost = float(_costs(points, np.arange(len(assigned)), assigned).sum())
    proof = "the least sum, proved by prices" if optimal else "the least sum is not proved"
    found: Assignment = Assignment.of(
        float(chance.sum()),
        len(assigned),
        baseline=1 / len(sides.B),
        attack=f"one-to-one linkage, {points.name}",
        assumptions=(
            f"known: {', '.join(map(str, sides.columns))}",
            *points.notes,
            "the intruder knows that every masked record is among his",
            proof,
        ),
        exact=True,
        assigned=assigned,
        chance=chance,
        cost=cost,
        optimal=optimal,
    )
    return found


def _costs(points: Points, rows: Integers, columns: Integers) -> Floats:
    out: Floats = (np.abs(points.A[rows] - points.B[columns]) ** points.power).sum(axis=1)
    return out


def _solve(points: Points, candidates: int) -> tuple[Integers, bool]:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching
    from scipy.spatial import cKDTree

    m, n = len(points.A), len(points.B)
    tree = cKDTree(points.B)
    pairs = _nearest_pairs(tree, points, min(max(candidates, 2), n))
    # Any way to serve everybody makes the problem solvable; it knows nothing of who is who.
    anyhow = np.random.default_rng(0).permutation(n)[:m]
    pairs = np.union1d(pairs, np.arange(m) * n + anyhow)
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


def _nearest_pairs(tree: Any, points: Points, some: int) -> Integers:
    near = tree.query(points.A, k=some, p=points.power)[1].reshape(len(points.A), -1)
    n = len(points.B)
    pairs: Integers = np.unique((np.arange(len(points.A))[:, None] * n + near).ravel())
    return pairs.astype(np.int64)


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
    out: Floats = reached / np.bincount(masked)[masked] / counts[alike[truth]]
    return out
