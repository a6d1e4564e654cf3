"""Weighted mean, OWA and bilinear form of the differences between two records.

All take differences a - b of standardised values; squares are taken inside. Each is linear in its
parameters, and each has the plain Euclidean distance in it (`neutral`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ..._types import Floats
from ...exceptions import BadOptionError
from ...kernels import linkage as kernels
from .family import Explanation, Family, as_numbers, on_simplex

__all__ = ["OWA", "Bilinear", "WeightedMean"]


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
