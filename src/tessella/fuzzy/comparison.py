"""Compare two fuzzy partitions, and tell what masking does to a fuzzy clustering.

Two clusterings name their clusters differently, so clusters are *aligned* first: each with the
nearest of the other (the paper's rule, which may use one twice), or one to one with the least
sum of squared distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from .._parameters import Number, OneOf, parameters
from .._types import Floats, Integers
from ..exceptions import BadTableError
from ..grouping.base import check_seed
from .base import FuzzyClusterer

SAME = 1e-7  # objectives that differ by less, as a share, are of the same basin


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """How far two fuzzy partitions are from each other.

    `d1` is the sum over clusters of squared distances of centres, None where only memberships
    are known; `d2` the sum over records and clusters of squared differences of memberships, None
    where no records are known. `pairing[i]` is the cluster of the second aligned with cluster i of
    the first.
    """

    d1: float | None
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
    """Compare two fuzzy partitions of the same number of clusters.

    Parameters
    ----------
    first, second : fitted clusterer, or ndarray of shape (n, c)
        A model of `tessella.fuzzy`, or a matrix of memberships with rows that sum to one.
    records : array-like of shape (n, d), or a pair of them, optional
        Where the memberships of models are taken: the same records for both, or an original and a
        masked table with the same rows. Without them d2 is left out.
    alignment : {"optimal", "greedy"}, default "optimal"
        One to one with the least sum of squares, or each cluster of the first with the nearest of
        the second, as in the paper. Aligned by centres, or by memberships where there are none.

    Notes
    -----
    d1 = sum over i of |a_i - b_p(i)|^2 and d2 = sum over records k and clusters i of
    (u_ki - v_kp(i))^2, with p the alignment. With the optimal one d1 is symmetric and zero only
    for equal centres; with the greedy one it need not be.

    References
    ----------
    V. Torra, Y. Endo and S. Miyamoto (2009). On the comparison of some fuzzy clustering methods
    for privacy preserving data mining: towards the development of specific information loss
    measures. Kybernetika 45(3).

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
    if models:
        costs = _squares(first.cluster_centers_, second.cluster_centers_)
    elif memberships is not None:
        costs = _squares(memberships[0].T, memberships[1].T)
    else:
        raise BadTableError(
            "A model and a matrix of memberships can only be compared on records: give records=..."
        )
    pairing = _align(costs, alignment)
    d1 = d2 = None
    if models:
        d1 = float(costs[np.arange(len(pairing)), pairing].sum())
    if memberships is not None:
        d2 = float(((memberships[0] - memberships[1][:, pairing]) ** 2).sum())
    return Comparison(d1=d1, d2=d2, pairing=pairing, alignment=alignment)


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
    tables = list(records) if isinstance(records, tuple) else [records, records]
    out = []
    for thing, is_model, table in zip((first, second), models, tables):
        out.append(thing.membership(table) if is_model else _matrix(thing))
    if out[0].shape != out[1].shape:
        raise BadTableError(
            f"The partitions have shapes {out[0].shape} and {out[1].shape}: they must have the "
            "same records and the same number of clusters."
        )
    return out


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
    if a.shape != b.shape:
        raise BadTableError(f"The partitions differ in shape: {a.shape} and {b.shape}.")
    squares: Floats = np.stack([((row - b) ** 2).sum(axis=1) for row in a])
    return squares


def _align(costs: Floats, alignment: str) -> Integers:
    greedy = alignment == "greedy"
    pairing: Integers = costs.argmin(axis=1) if greedy else linear_sum_assignment(costs)[1]
    return pairing
