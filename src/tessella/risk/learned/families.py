"""Distances with parameters: what all families share, and the three plain ones.

Every distance of a family is *linear in its parameters*: d(a, b) = Σ_p θ_p φ_p(a - b), with
*features* φ that depend on the records only. A record is linked when its own original beats every
other, so the parameters that link it form one convex cone: what learning builds on. Only k-maxitive
integrals are not: their features also depend on the order of the parameters.

All take differences a - b of standardised values; squares are taken inside. Weighted mean, OWA and
bilinear form have the plain Euclidean distance in them (`neutral`). In tables with categories or
missing cells Gower's components, from 0 to 1, take the place of squares (all but bilinear forms).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from ..._lazy import optional
from ..._types import Floats, Integers
from ...exceptions import BadOptionError
from ...kernels import linkage as kernels


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What a distance pays attention to.

    Parameters
    ----------
    columns : tuple of str
        The variables.
    importance : array of shape (d,)
        The share of each in the distance; the Shapley values where variables interact.
    interactions : array of shape (d, d)
        Above zero where two variables count more together than apart, below where one can stand
        for the other; zeros where the family has none.
    text : str
        What the numbers are.
    """

    columns: tuple[str, ...]
    importance: Floats
    interactions: Floats
    text: str

    def __str__(self) -> str:
        width = max(len(name) for name in self.columns)
        lines = [self.text]
        for place in np.argsort(-self.importance, kind="stable"):
            share = self.importance[place]
            bar = "█" * round(30 * max(share, 0))
            lines.append(f"  {self.columns[place]:<{width}}  {share:6.3f}  {bar}".rstrip())
        pairs = combinations(range(len(self.columns)), 2)
        strongest = sorted(((abs(self.interactions[pair]), *pair) for pair in pairs), reverse=True)
        strongest = [one for one in strongest[:5] if one[0] > 1e-9]
        if strongest:
            lines.append("strongest interactions:")
        for _, k, other in strongest:
            strength = self.interactions[k, other]
            lines.append(f"  {self.columns[k]} with {self.columns[other]}: {strength:+.3f}")
        return "\n".join(lines)

    __repr__ = __str__

    def picture(self) -> Any:
        """Draw importance as bars and interactions as a map; return a matplotlib figure."""
        figures = optional("matplotlib.figure", extra="plots", purpose="A picture")
        d = len(self.columns)
        figure = figures.Figure(figsize=(9, 1.6 + 0.36 * d), layout="constrained")
        bars, grid = figure.subplots(1, 2)
        names = [name.replace("$", r"\$") for name in self.columns]
        bars.barh(np.arange(d), self.importance, color="#0072B2", height=0.7)
        bars.set_yticks(np.arange(d), names)
        bars.invert_yaxis()
        bars.set_xlabel("importance")
        bars.spines[["top", "right"]].set_visible(False)
        most = float(np.abs(self.interactions).max()) or 1.0
        image = grid.imshow(self.interactions, cmap="RdBu_r", vmin=-most, vmax=most)
        grid.set_xticks(np.arange(d), names, rotation=90)
        grid.set_yticks(np.arange(d), names)
        figure.colorbar(image, ax=grid, label="interaction")
        return figure


class Family(ABC):
    """A distance with parameters.

    See `WeightedMean`, `OWA`, `Bilinear`, `Choquet`, `MaxitiveChoquet`. The distance is linear in
    `theta`, the vector of its parameters; `d` is the number of variables.
    """

    name: ClassVar[str]
    text: str  # what the numbers of `explain` are
    kernel_kind: int = -1
    linear: bool = True  # whether `slack` is linear
    signed: bool = False  # whether the sign of a difference counts: then all must be numbers
    d: int
    theta: Floats

    def _keep(self, **attributes: Any) -> None:
        """Set attributes of a frozen member; its arrays cannot be written to."""
        for name, value in attributes.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @abstractmethod
    def features(self, differences: Floats) -> Any:
        """Return φ of each row of differences a - b, shape (n, parameters), dense or sparse."""

    @abstractmethod
    def project(self, theta: Floats) -> Family:
        """Return the member of the family whose parameters are nearest to `theta`."""

    @abstractmethod
    def repair(self, theta: Floats) -> Family:
        """Return some member near to `theta`, quickly; `theta` itself where it is feasible."""

    @abstractmethod
    def slack(self, theta: Floats) -> Floats:
        """Return numbers that are all at least 0 if and only if `theta` is feasible.

        Each is concave along every line, so the feasible steps of a line are one interval.
        """

    def total(self, theta: Floats) -> float:
        """Return what is 1 for a member: distances are compared, so their scale means nothing."""
        return float(theta.sum())

    def essential(self) -> Floats:
        """Return parameters that `repair` turns into this member, as many zeros as possible."""
        return self.theta

    def turn(self) -> Floats | None:
        """Return T such that d(a, b) = |aT - bT|², or None if there is none."""
        return None

    def scan(self) -> Callable[..., tuple[Integers, Integers]]:
        """Return the kernel that counts nearer originals where no tree can."""
        return partial(kernels.count_by_scan, self.kernel_kind, self.theta)

    def evaluate(self, differences: Any) -> Floats:
        """Return the distance of each row of differences a - b, shape (n,)."""
        rows = np.atleast_2d(np.asarray(differences, dtype=np.float64))
        self.refuse_other(rows.shape[1])
        return np.asarray(self.features(rows) @ self.theta)

    def refuse_other(self, d: int) -> None:
        """Refuse records with another number of variables."""
        if d != self.d:
            raise BadOptionError(
                "the number of variables", d, f"{self.d}, as many as the distance has"
            )

    def named(self, columns: Sequence[Hashable] | None) -> tuple[str, ...]:
        """Name the variables, V1, V2, ... by default."""
        if columns is None:
            return tuple(f"V{k + 1}" for k in range(self.d))
        self.refuse_other(len(columns))
        return tuple(str(name) for name in columns)

    def explain(self, columns: Sequence[Hashable] | None = None) -> Explanation:
        """Return what the distance pays attention to."""
        importance, interactions = self._importance()
        return Explanation(
            columns=self.named(columns),
            importance=importance,
            interactions=interactions,
            text=self.text,
        )

    def _importance(self) -> tuple[Floats, Floats]:
        """Return the importance of each variable, and the interactions of each pair."""
        return self.theta, np.zeros((self.d, self.d))


def as_numbers(name: str, given: Any, dimensions: int, expected: str) -> Floats:
    """Read parameters, or say what is expected."""
    try:
        numbers = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadOptionError(name, given, expected) from None
    if numbers.ndim != dimensions or not numbers.size or not np.isfinite(numbers).all():
        raise BadOptionError(name, given, expected)
    numbers.flags.writeable = False
    return numbers


def on_simplex(v: Floats) -> Floats:
    """Return the nearest vector of weights: at least 0, with sum 1 (Duchi et al. 2008)."""
    falling = np.sort(v)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    weights = np.maximum(v - excess[last], 0.0)
    out: Floats = weights / weights.sum()
    return out


@dataclass(frozen=True, eq=False)
class _Weighted(Family):
    """A family whose parameters are weights: at least 0, with sum 1."""

    weights: Floats

    def __post_init__(self) -> None:
        expected = "weights of at least 0, not all of them 0"
        weights = as_numbers("weights", self.weights, 1, expected)
        if (weights < 0).any() or not weights.any():
            raise BadOptionError("weights", self.weights, expected)
        weights = weights / weights.sum()
        self._keep(weights=weights, theta=weights, d=len(weights))

    @classmethod
    def neutral(cls, d: int) -> Self:
        """Return the Euclidean distance."""
        return cls(np.full(d, 1 / d))

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
    text = "weighted mean of squared differences, weights:"
    kernel_kind = kernels.SUM

    def features(self, differences: Floats) -> Floats:
        """Return the squares."""
        return differences * differences

    def turn(self) -> Floats:
        """Return the roots of the weights, as a diagonal."""
        return np.diag(np.sqrt(self.weights))


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
    text = "ordered weighted average of squared differences, weights by rank:"
    kernel_kind = kernels.OWA

    def features(self, differences: Floats) -> Floats:
        """Return the squares in rising order."""
        return np.sort(differences * differences, axis=1)

    def named(self, columns: Sequence[Hashable] | None) -> tuple[str, ...]:
        """Name the ranks: all variables are treated alike."""
        size = len(super().named(columns))
        endings = {1: "st", 2: "nd", 3: "rd"}
        tens = [k % 10 if k % 100 not in (11, 12, 13) else 0 for k in range(2, size + 1)]
        return "smallest", *(
            f"{k}{endings.get(ten, 'th')} smallest" for k, ten in enumerate(tens, start=2)
        )


@lru_cache(maxsize=64)
def _entries(d: int) -> Integers:
    """Return where each entry of a symmetric matrix is among those on and above the diagonal."""
    first, second = np.triu_indices(d)
    out = np.empty((d, d), dtype=np.int64)
    out[first, second] = out[second, first] = np.arange(len(first))
    out.flags.writeable = False
    return out


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
    text = "bilinear form of differences, diagonal (interactions: as correlations):"
    matrix: Floats
    linear = False
    signed = True

    def __post_init__(self) -> None:
        expected = "a symmetric matrix without negative eigenvalue, not zero"
        matrix = as_numbers("matrix", self.matrix, 2, expected)
        if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, atol=1e-12):
            raise BadOptionError("matrix", self.matrix, expected)
        values = np.linalg.eigvalsh(matrix)
        if values[-1] <= 0 or values[0] < -1e-9 * values[-1]:
            raise BadOptionError("matrix", self.matrix, expected)
        matrix = (matrix + matrix.T) / (2 * np.trace(matrix))
        # The parameters are the entries on and above the diagonal, row by row.
        self._keep(matrix=matrix, theta=matrix[np.triu_indices(len(matrix))], d=len(matrix))

    @classmethod
    def neutral(cls, d: int) -> Bilinear:
        """Return the Euclidean distance."""
        return cls(np.eye(d))

    def features(self, differences: Floats) -> Floats:
        """Return the squares, and twice the products of two differences."""
        first, second = np.triu_indices(self.d)
        twice = np.where(first == second, 1.0, 2.0)
        return differences[:, first] * differences[:, second] * twice

    def _as_matrix(self, theta: Floats) -> Floats:
        matrix: Floats = theta[_entries(self.d)] + 0.0  # no minus before a zero
        return matrix

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
        return np.linalg.eigvalsh(self._as_matrix(theta))[:1].astype(np.float64)

    def turn(self) -> Floats:
        """Return a root of the matrix."""
        values, vectors = np.linalg.eigh(self.matrix)
        out: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
        return out

    def _importance(self) -> tuple[Floats, Floats]:
        """Return the diagonal, and off it the correlations of the form."""
        root = np.sqrt(np.diag(self.matrix))
        off = self.matrix / np.maximum(np.outer(root, root), 1e-300)
        return np.diag(self.matrix).copy(), np.where(np.eye(self.d, dtype=bool), 0.0, off)
