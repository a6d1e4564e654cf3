"""Compare two fuzzy partitions, and tell what masking does to a fuzzy clustering.

Two clusterings name their clusters differently, so clusters are *aligned* first: each with the
nearest of the other (the paper's rule, which may use one twice), or one to one with the least
sum of squared distances. Where one has more clusters, several of them are aligned with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from .._estimator import clone
from .._parameters import Number, OneOf, parameters
from .._types import Floats, Integers
from ..exceptions import BadTableError
from ..grouping.base import check_seed
from .base import FuzzyClusterer

SAME = 1e-7  # objectives that differ by less, as a share, are of the same basin


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """How far two fuzzy partitions are from each other.

    `d1` is the sum over clusters of squared distances of centres, as the paper prints it, and
    `d1_unsquared` that of distances, as the paper's tables were computed; both None where only
    memberships are known. `d2` is the sum over records and clusters of squared differences of
    memberships, None where no records are known. `pairing[i]` is the cluster of the second aligned
    with cluster i of the first; where the second has more clusters, and the alignment is optimal,
    the cluster of the first aligned with cluster i of the second.
    """

    d1: float | None
    d1_unsquared: float | None
    d2: float | None
    pairing: Integers
    alignment: str

    def __str__(self) -> str:
        parts = [f"{n} = {v:.4g}" for n, v in (("d1", self.d1), ("d2", self.d2)) if v is not None]
        return f"{', '.join(parts)} ({self.alignment} alignment of {len(self.pairing)} clusters)"


@parameters(alignment=[OneOf(("greedy", "optimal"))])
def compare(
    first: Any,
    second: Any,
    *,
    records: ArrayLike | Sequence[ArrayLike] | None = None,
    alignment: str = "optimal",
) -> Comparison:
    """Compare two fuzzy partitions.

    Parameters
    ----------
    first, second : fitted clusterer, or ndarray of shape (n, c)
        A model of `tessella.fuzzy`, or a matrix of memberships with rows that sum to one.
    records : array-like of shape (n, d), or a pair of them, optional
        Where the memberships of models are taken: the same records for both, or an original and a
        masked table with the same rows. Without them d2 is left out. With them, clusters of
        matrices have a mean and a spread, and d1 compares these.
    alignment : {"optimal", "greedy"}, default "optimal"
        One to one with the least sum of squares, or each cluster of the first with the nearest of
        the second, as in the paper. Aligned by centres, or by memberships where there are none.
        With different numbers of clusters the optimal one gives every cluster of the larger
        partition one of the smaller, none of which is left out.

    Notes
    -----
    d1 = sum over i of |a_i - b_p(i)|^2 and d2 = sum over records k and clusters i of
    (u_ki - v_kp(i))^2, with p the alignment. With the optimal one d1 is symmetric and zero only
    for equal centres; with the greedy one it need not be. The tables of [1]_ were computed with
    |a_i - b_p(i)| in place of its square, against its formula: see `Comparison.d1_unsquared`.

    Where several clusters are aligned with one, d2 compares the sum of their memberships: a cluster
    that was only cut in two is no loss. Clusters that no single centre stands for are given by
    their memberships, and |a_i - b_j|^2 is then the squared Wasserstein distance of normal
    distributions with their means m and covariances S,
    |m_i - m_j|^2 + tr(S_i + S_j - 2 (S_i^(1/2) S_j S_i^(1/2))^(1/2)) [2]_: that of the means where
    the spreads are equal.

    References
    ----------
    .. [1] V. Torra, Y. Endo and S. Miyamoto (2009). On the comparison of some fuzzy clustering
       methods for privacy preserving data mining: towards the development of specific information
       loss measures. Kybernetika 45(3).
    .. [2] D. C. Dowson and B. V. Landau (1982). The Fréchet distance between multivariate normal
       distributions. Journal of Multivariate Analysis 12(3).

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.fuzzy import compare
    >>> u = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> compare(u, u[:, ::-1]).d2
    0.0
    """
    models = all(hasattr(thing, "cluster_centers_") for thing in (first, second))
    memberships = _memberships(first, second, records)
    far = None
    if models:
        costs = far = _squares(first.cluster_centers_, second.cluster_centers_)
    elif memberships is not None:
        costs = _squares(memberships[0].T, memberships[1].T)
        if records is not None:
            far = _wasserstein(*map(_moments, _two(records), memberships))
    else:
        raise BadTableError(
            "A model and a matrix of memberships can only be compared on records: give records=..."
        )
    swapped = alignment == "optimal" and costs.shape[0] < costs.shape[1]
    pairing = _align(costs.T if swapped else costs, alignment)
    d1 = d1_unsquared = d2 = None
    if far is not None:
        own = (far.T if swapped else far)[np.arange(len(pairing)), pairing]
        d1, d1_unsquared = float(own.sum()), float(np.sqrt(own).sum())
    if memberships is not None:
        u, v = memberships[::-1] if swapped else memberships
        if alignment == "greedy":
            d2 = float(((u - v[:, pairing]) ** 2).sum())
        else:
            joined = u @ (pairing[:, None] == np.arange(v.shape[1]))
            d2 = float(((joined - v) ** 2).sum())
    return Comparison(d1=d1, d1_unsquared=d1_unsquared, d2=d2, pairing=pairing, alignment=alignment)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterLoss:
    """The cluster-specific information loss, and what of it is chance.

    `optimal` and `greedy` compare the best fits of original and masked table under both
    alignments. `floor` compares two equally good fits of the original table itself: a loss
    below it means nothing. `objectives` are those of the original and the masked table.
    """

    optimal: Comparison
    greedy: Comparison
    floor: Comparison
    objectives: tuple[float, float]

    @property
    def d1(self) -> float | None:
        """Sum of squared distances between aligned centres."""
        return self.optimal.d1

    @property
    def d2(self) -> float | None:
        """Sum of squared differences between aligned memberships."""
        return self.optimal.d2

    def __str__(self) -> str:
        return (
            f"cluster loss: {self.optimal}; floor: {self.floor}; objective "
            f"{self.objectives[0]:.6g} before, {self.objectives[1]:.6g} after"
        )


@parameters(tie=[Number(0)])
def cluster_loss(
    original: ArrayLike,
    masked: ArrayLike,
    model: FuzzyClusterer,
    *,
    n_init: int = 20,
    tie: float = 0.01,
    random_state: Any = None,
) -> ClusterLoss:
    """Tell what masking does to a fuzzy clustering: the specific loss of the 2009 paper.

    Parameters
    ----------
    original, masked : array-like of shape (n, d)
        Tables with the same rows, on the scale on which distances are meant.
    model : fuzzy clusterer
        Its parameters are used; the model itself is not fitted.
    n_init : int, default 20
        Starts on each side. The masked side also starts from the original's centres, and
        the original's from the masked side's, so that a better basin found on one side is tried on
        the other and local optima do not masquerade as loss.
    tie : float, default 0.01
        Fits of the masked table whose objectives differ by less than this share are equally good,
        and the one that continues the original's is compared. Where the least objective leaps from
        one of two nearly equal optima to the other, nothing is lost.
    random_state : int, RandomState or None, default None
        Seeds the starts.

    Returns
    -------
    ClusterLoss

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.fuzzy import FuzzyCMeans, cluster_loss
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> round(cluster_loss(X, X, FuzzyCMeans(3, m=1.5), random_state=0).d2, 12)
    0.0
    """
    before, after = np.asarray(original, dtype=np.float64), np.asarray(masked, dtype=np.float64)
    if before.shape != after.shape:
        raise BadTableError(
            f"The original has shape {before.shape} and the masked table {after.shape}; they must "
            "have the same rows and columns."
        )
    if not isinstance(model, FuzzyClusterer):
        raise BadTableError(
            f"model is a {type(model).__name__}; give a clusterer such as FuzzyCMeans(10, m=1.5)."
        )
    seeds = check_seed(random_state).randint(2**31 - 1, size=3).tolist()
    model = _with_fixed_fuzziness(model, before, seeds[0])
    fits = [
        _fit(model, table, n_init, seed) for table, seed in ((before, seeds[0]), (after, seeds[1]))
    ]
    best = float("inf")
    for _ in range(5):  # each side tries the other's basin, until neither finds a better one
        crossed = _fit_from(fits[1], before, unless=_about(fits[0].objective_, -SAME))
        fits = [crossed or fits[0], fits[1]]
        best = min(best, fits[1].objective_)
        fits[1] = _fit_from(fits[0], after, unless=_about(best, max(tie, SAME))) or fits[1]
        if crossed is None:
            break
    again, pair = _fit(model, before, n_init, seeds[2]), (before, after)
    return ClusterLoss(
        optimal=compare(*fits, records=pair),
        greedy=compare(*fits, records=pair, alignment="greedy"),
        floor=compare(fits[0], again, records=before),
        objectives=(fits[0].objective_, fits[1].objective_),
    )


def _fit(model: FuzzyClusterer, table: Floats, n_init: int, seed: int) -> FuzzyClusterer:
    fitted: FuzzyClusterer = clone(model).set_params(n_init=n_init, random_state=seed).fit(table)
    return fitted


def _about(objective: float, share: float) -> float:
    """Return an objective that is larger by a share of its size; it may be negative."""
    return objective + share * abs(objective)


def _fit_from(fitted: FuzzyClusterer, table: Floats, *, unless: float) -> FuzzyClusterer | None:
    """Descend from the centres of another fit; None if the objective is not below a limit."""
    tried: FuzzyClusterer = clone(fitted).set_params(init=fitted.cluster_centers_).fit(table)
    return tried if tried.objective_ < unless else None


def _with_fixed_fuzziness(model: FuzzyClusterer, table: Floats, seed: int) -> FuzzyClusterer:
    """Replace "auto" by what the original table asks for: both sides must be as fuzzy."""
    name, used = model._fuzziness
    if model._is_auto():
        model = clone(model)
        model.set_params(**{name: getattr(_fit(model, table, 1, seed), used)})
    return model


def _memberships(first: Any, second: Any, records: Any) -> list[Floats] | None:
    """Return both matrices of memberships, or None if there are no records to take them at."""
    models = [hasattr(thing, "cluster_centers_") for thing in (first, second)]
    if any(models) and records is None:
        return None
    out = []
    for thing, is_model, table in zip((first, second), models, _two(records)):
        out.append(thing.membership(table) if is_model else _matrix(thing))
    if len(out[0]) != len(out[1]):
        raise BadTableError(
            f"The partitions have shapes {out[0].shape} and {out[1].shape}: they must have the "
            "same records."
        )
    return out


def _two(records: Any) -> list[Any]:
    """Return the records of each side."""
    return list(records) if isinstance(records, tuple) else [records, records]


def _moments(records: Any, u: Floats) -> tuple[Floats, Floats]:
    """Return the means (c, d) and covariances (c, d, d) of clusters."""
    X = np.asarray(records, dtype=np.float64)
    if X.ndim != 2 or len(X) != len(u):
        raise BadTableError(f"records has shape {X.shape}; give one row for each of {len(u)}.")
    weights = (u / np.maximum(u.sum(axis=0), np.finfo(float).tiny)).T
    means = weights @ X
    return means, np.stack([(X - m).T @ ((X - m) * w[:, None]) for m, w in zip(means, weights)])


def _wasserstein(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> Floats:
    """Squared Wasserstein distances of normal distributions: tr (S T)^(1/2) by eigenvalues."""
    far = _squares(first[0], second[0])
    for i, S in enumerate(first[1]):
        root = _root(S)
        for j, T in enumerate(second[1]):
            cross = np.sqrt(np.linalg.eigvalsh(root @ T @ root).clip(0)).sum()
            far[i, j] += max(0.0, float(np.trace(S) + np.trace(T) - 2 * cross))
    return far


def _root(S: Floats) -> Floats:
    values, vectors = np.linalg.eigh(S)
    root: Floats = (vectors * np.sqrt(values.clip(0))) @ vectors.T
    return root


def _matrix(given: Any) -> Floats:
    try:
        u = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        u = np.empty(0)
    if u.ndim != 2 or not np.isfinite(u).all() or (u < 0).any():
        raise BadTableError("Memberships must be a matrix of numbers of at least 0, (n, c).")
    if np.abs(u.sum(axis=1) - 1).max(initial=0.0) > 1e-6:
        raise BadTableError("The memberships of a record must sum to one.")
    return u


def _squares(a: Floats, b: Floats) -> Floats:
    """Squared distances of the rows of two small matrices."""
    if a.shape[1] != b.shape[1]:
        raise BadTableError(f"The partitions differ in columns: {a.shape} and {b.shape}.")
    squares: Floats = np.stack([((row - b) ** 2).sum(axis=1) for row in a])
    return squares


def _align(costs: Floats, alignment: str) -> Integers:
    """Return for each row its column: the nearest, or at the least sum with every column used.

    Rows beyond the number of columns choose freely, so each has a further column of its own that
    costs what its nearest does.
    """
    nearest: Integers = costs.argmin(axis=1)
    if alignment == "greedy":
        return nearest
    rows, columns = costs.shape
    free = np.repeat(costs.min(axis=1, keepdims=True), rows - columns, axis=1)
    chosen = linear_sum_assignment(np.hstack([costs, free]))[1]
    return np.where(chosen < columns, chosen, nearest)
