"""Weighted mean, OWA and bilinear form of the differences between two records.

All take differences a - b of standardised values; squares are taken inside. Each is linear in its
parameters, and each has the plain Euclidean distance in it (`neutral`).

Who competes with whom: the rows that decide whether a record is linked.

A *row* is φ(a_i - b_j) - φ(a_i - b_i) for a record i and a competitor j: record i is linked by
parameters θ if all its rows have a positive product with θ. Under a monotone distance a competitor
that another one beats in every variable never decides, so few are kept for each record.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from ..._types import Floats, Integers
from ...exceptions import BadOptionError
from ...kernels import linkage as kernels
from ...kernels.candidates import least_rows, product, unbeaten
from ...parallel import each
from ..aligned import AlignedTables
from .family import Explanation, Family, as_numbers, on_simplex

__all__ = [
    "OWA",
    "Bilinear",
    "Competitors",
    "Rows",
    "WeightedMean",
    "hopeful",
    "least_competitors",
    "near_competitors",
    "rows_of",
]

PIECE = 64  # records for a piece of work


@dataclass(frozen=True, kw_only=True)
class Competitors:
    """For each of some records, the originals that decide whether it is linked.

    Those of records[at] are which[starts[at] : starts[at + 1]]. `hopeless` counts the records that
    were left out because some original is at least as near in every variable.
    """

    records: Integers
    starts: Integers
    which: Integers
    hopeless: int = 0

    def chosen(self, records: Integers) -> Competitors:
        """Return the competitors of some of the records."""
        keep = np.isin(self.records, records)
        sizes = np.diff(self.starts)
        return Competitors(
            records=self.records[keep],
            starts=np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64),
            which=self.which[np.repeat(keep, sizes)],
        )

    def thinned(self, most_rows: int, generator: np.random.Generator) -> Competitors:
        """Return the competitors of as many records, drawn at random, as have `most_rows` rows."""
        if len(self.which) <= most_rows:
            return self
        drawn = generator.permutation(len(self.records))
        sizes = np.cumsum(np.diff(self.starts)[drawn])
        kept = drawn[: max(1, int(np.searchsorted(sizes, most_rows)))]
        return self.chosen(self.records[kept])


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of records in the feature space of a family, dense or sparse."""

    starts: Integers
    matrix: Any

    @property
    def cells(self) -> int:
        """The numbers that one product looks at."""
        return int(getattr(self.matrix, "nnz", self.matrix.size))

    def along(self, theta: Floats) -> Floats:
        """Return the product of each row with θ."""
        if isinstance(self.matrix, np.ndarray):
            return product(self.matrix, theta)
        out: Floats = np.asarray(self.matrix @ theta, dtype=np.float64)
        return out


def hopeful(sides: AlignedTables, records: Integers) -> Integers:
    """Return the records that no other original beats in every variable."""
    work = partial(unbeaten, sides.A, sides.B, sides.truth)
    pieces = np.array_split(records, max(1, -(-len(records) // PIECE)))
    found: Integers = np.concatenate([some[good] for good, some in each(work, pieces)])
    return found


def least_competitors(sides: AlignedTables, records: Integers) -> Competitors:
    """Keep the competitors that no other beats in every variable, and the records with a chance."""
    work = partial(least_rows, sides.A, sides.B, sides.truth)
    pieces = np.array_split(records, max(1, -(-len(records) // PIECE)))
    found = each(work, pieces)
    sizes = np.concatenate([np.diff(starts) for starts, _ in found])
    which = np.concatenate([each_which for _, each_which in found])
    hopeful = sizes > 0
    return Competitors(
        records=records[hopeful],
        starts=np.concatenate([[0], np.cumsum(sizes[hopeful])]).astype(np.int64),
        which=which,
        hopeless=int((~hopeful).sum()),
    )


def near_competitors(
    sides: AlignedTables, records: Integers, turns: list[Floats], count: int
) -> Competitors:
    """Keep the `count` nearest competitors under each of some linear maps.

    For distances that are not monotone; others may decide too, so links by these rows alone are to
    be counted again over all originals.
    """
    from scipy.spatial import cKDTree

    some = min(count + 1, len(sides.B))
    found = []
    for turn in turns:
        tree = cKDTree(sides.B @ turn)
        found.append(tree.query(sides.A[records] @ turn, k=some, workers=1)[1])
    near = np.sort(np.hstack(found), axis=1)
    fresh = np.ones(near.shape, dtype=bool)
    fresh[:, 1:] = near[:, 1:] != near[:, :-1]
    fresh &= near != sides.truth[records][:, None]
    return Competitors(
        records=records,
        starts=np.concatenate([[0], np.cumsum(fresh.sum(axis=1))]).astype(np.int64),
        which=near[fresh].astype(np.int64),
    )


def rows_of(sides: AlignedTables, competitors: Competitors, family: Family) -> Rows:
    """Return the rows of all records and competitors in the feature space of a family."""
    records, sizes = competitors.records, np.diff(competitors.starts)
    own = family.features(sides.A[records] - sides.B[sides.truth[records]])
    owner = np.repeat(np.arange(len(records)), sizes)
    theirs = family.features(sides.A[records[owner]] - sides.B[competitors.which])
    matrix = theirs - own[owner]
    if isinstance(matrix, np.ndarray):
        matrix = np.asfortranarray(matrix)
    return Rows(starts=competitors.starts, matrix=matrix)


def _weights(given: Any) -> Floats:
    expected = "weights of at least 0, not all of them 0"
    weights = as_numbers("weights", given, 1, expected)
    if (weights < 0).any() or not weights.any():
        raise BadOptionError("weights", given, expected)
    out: Floats = weights / weights.sum()
    out.flags.writeable = False
    return out


@dataclass(frozen=True, eq=False)
class _Weighted(Family):
    """A family whose parameters are weights: at least 0, with sum 1."""

    weights: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _weights(self.weights))

    @classmethod
    def neutral(cls, d: int) -> Self:
        """Return the Euclidean distance."""
        return cls(np.full(d, 1 / d))

    @property
    def d(self) -> int:
        """The number of variables."""
        return len(self.weights)

    @property
    def theta(self) -> Floats:
        """The weights."""
        return self.weights

    def project(self, theta: Floats) -> Self:
        """Return the nearest weights."""
        return type(self)(on_simplex(theta))

    def repair(self, theta: Floats) -> Self:
        """Cut what is below zero."""
        kept = np.maximum(theta, 0.0)
        return type(self)(kept) if kept.any() else self.project(theta)

    def slack(self, theta: Floats) -> Floats:
        """Return the weights themselves."""
        return theta


@dataclass(frozen=True, eq=False)
class WeightedMean(_Weighted):
    """The weighted mean of squared differences: d(a, b) = Σ_k w_k (a_k - b_k)².

    Parameters
    ----------
    weights : array-like of shape (d,)
        At least 0; divided by their sum.

    Examples
    --------
    >>> from tessella.risk import WeightedMean
    >>> WeightedMean([3, 1]).evaluate([[2.0, 4.0], [0.0, 2.0]])
    array([7., 1.])
    """

    name: ClassVar[str] = "weighted-mean"

    def features(self, differences: Floats) -> Floats:
        """Return the squares."""
        return differences * differences

    def turn(self) -> Floats:
        """Return the roots of the weights, as a diagonal."""
        out: Floats = np.diag(np.sqrt(self.weights))
        return out

    def explain(self, columns: Sequence[Hashable] | None = None) -> Explanation:
        """Return the weights."""
        return Explanation(
            columns=self.named(columns),
            importance=self.weights,
            interactions=np.zeros((self.d, self.d)),
            text="weighted mean of squared differences, weights:",
        )


@dataclass(frozen=True, eq=False)
class OWA(_Weighted):
    """Yager's ordered weighted average: weights go to the smallest square, the next, ...

    d(a, b) = Σ_k w_k s_(k), with s_(1) ≤ s_(2) ≤ ... the sorted squares (a_k - b_k)².

    Parameters
    ----------
    weights : array-like of shape (d,)
        At least 0, for the smallest square first; divided by their sum.

    References
    ----------
    R. R. Yager (1988) On ordered weighted averaging aggregation operators. IEEE Transactions on
    Systems, Man and Cybernetics 18, 183-190.

    Examples
    --------
    >>> from tessella.risk import OWA
    >>> OWA([1, 0]).evaluate([[2.0, 4.0]]), OWA([0, 1]).evaluate([[2.0, 4.0]])
    (array([4.]), array([16.]))
    """

    name: ClassVar[str] = "OWA"
    kernel_kind = kernels.OWA

    def features(self, differences: Floats) -> Floats:
        """Return the squares in rising order."""
        return np.sort(differences * differences, axis=1)

    def explain(self, columns: Sequence[Hashable] | None = None) -> Explanation:
        """Return the weights of the ranks: all variables are treated alike."""
        self.named(columns)
        ranks = ["smallest", *(f"{k + 1}th smallest" for k in range(1, self.d))]
        return Explanation(
            columns=tuple(ranks),
            importance=self.weights,
            interactions=np.zeros((self.d, self.d)),
            text="ordered weighted average of squared differences, weights by rank:",
        )


@dataclass(frozen=True, eq=False)
class Bilinear(Family):
    """A symmetric bilinear form: d(a, b) = (a - b)ᵀ Q (a - b), Q positive semidefinite.

    Parameters
    ----------
    matrix : array-like of shape (d, d)
        Symmetric, without negative eigenvalue, not zero; divided by its trace. With the inverse of
        a covariance it is a Mahalanobis distance, with a diagonal a weighted mean.

    Examples
    --------
    >>> from tessella.risk import Bilinear
    >>> Bilinear([[0.5, -0.5], [-0.5, 0.5]]).evaluate([[1.0, 1.0], [1.0, -1.0]])
    array([0., 2.])
    """

    name: ClassVar[str] = "bilinear"
    matrix: Floats
    linear = False
    monotone = False

    def __post_init__(self) -> None:
        expected = "a symmetric matrix without negative eigenvalue, not zero"
        matrix = as_numbers("matrix", self.matrix, 2, expected)
        if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, atol=1e-12):
            raise BadOptionError("matrix", self.matrix, expected)
        values = np.linalg.eigvalsh(matrix)
        if values[-1] <= 0 or values[0] < -1e-9 * values[-1]:
            raise BadOptionError("matrix", self.matrix, expected)
        matrix = (matrix + matrix.T) / (2 * np.trace(matrix))
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @classmethod
    def neutral(cls, d: int) -> Bilinear:
        """Return the Euclidean distance."""
        return cls(np.eye(d))

    @property
    def d(self) -> int:
        """The number of variables."""
        return len(self.matrix)

    @property
    def theta(self) -> Floats:
        """The entries on and above the diagonal, row by row."""
        out: Floats = self.matrix[np.triu_indices(self.d)]
        return out

    def features(self, differences: Floats) -> Floats:
        """Return the squares, and twice the products of two differences."""
        first, second = np.triu_indices(self.d)
        twice = np.where(first == second, 1.0, 2.0)
        out: Floats = differences[:, first] * differences[:, second] * twice
        return out

    def _as_matrix(self, theta: Floats) -> Floats:
        upper = np.zeros((self.d, self.d))
        upper[np.triu_indices(self.d)] = theta
        out: Floats = upper + upper.T - np.diag(np.diag(upper))
        return out

    def project(self, theta: Floats) -> Bilinear:
        """Return the nearest form of trace 1: its eigenvalues go to the simplex."""
        values, vectors = np.linalg.eigh(self._as_matrix(theta))
        return Bilinear((vectors * on_simplex(values)) @ vectors.T)

    def repair(self, theta: Floats) -> Bilinear:
        """Cut the eigenvalues that are below zero."""
        values, vectors = np.linalg.eigh(self._as_matrix(theta))
        kept = np.maximum(values, 0.0)
        return Bilinear((vectors * kept) @ vectors.T) if kept.any() else self.project(theta)

    def total(self, theta: Floats) -> float:
        """Return the trace."""
        return float(np.trace(self._as_matrix(theta)))

    def slack(self, theta: Floats) -> Floats:
        """Return the smallest eigenvalue."""
        out: Floats = np.linalg.eigvalsh(self._as_matrix(theta))[:1].astype(np.float64)
        return out

    def turn(self) -> Floats:
        """Return a root of the matrix."""
        values, vectors = np.linalg.eigh(self.matrix)
        out: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
        return out

    def explain(self, columns: Sequence[Hashable] | None = None) -> Explanation:
        """Say the diagonal, and off it the correlations of the form."""
        root = np.sqrt(np.diag(self.matrix))
        off = self.matrix / np.maximum(np.outer(root, root), 1e-300)
        return Explanation(
            columns=self.named(columns),
            importance=np.diag(self.matrix).copy(),
            interactions=np.where(np.eye(self.d, dtype=bool), 0.0, off),
            text="bilinear form of differences, diagonal (interactions: as correlations):",
        )
