"""Fuzzy c-means with tolerance: records may be displaced, within limits, towards their centres.

Data carry errors of a known size. A record is then not a point but a ball or a box around it, and
the clustering may choose where in it the record stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from .._estimator import clone
from .._parameters import Constraint, OneOf
from .._types import Floats
from ..exceptions import BadOptionError, BadTableError
from ..grouping.base import check_records, check_seed
from ..kernels.degrees import Centres, Law
from ..kernels.memberships import Sums, sweep_tolerant
from .base import Step
from .cmeans import FuzzyCMeans
from .comparison import compare
from .field import Field, Swept, arrange, power_law

RESTING, REST_ITER = 1e-9, 200  # displacements rest, in the field's units; steps until then

# Tolerances that "auto" tries, as shares of the typical distance from a record to its centre, and
# the halves of the table that each is tried on. Beyond 1 every record may stand on its centre.
SHARES, HALVES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0), 8
COVERED = 0.95  # of errors of a known deviation: the share that lies within the tolerance


class TolerantFuzzyCMeans(FuzzyCMeans):
    """Fuzzy c-means for records that are known up to a tolerance.

    Minimises J(u, e, v) = sum over records i and centres c of w_i u_ic^m |x_i + e_i - v_c|^2,
    subject to sum over c of u_ic = 1, u_ic >= 0, and |e_i| <= kappa_i (ball) or |e_ij| <= kappa_ij
    (box).

    Parameters
    ----------
    n_clusters : int, default 3
        The number of centres, c.
    kappa : float, array-like, "auto" or dict, default 0.1
        How far a record may be displaced: one number, or one for each record, shape (n,). With
        boxes also one for each column, shape (1, d), or each cell, shape (n, d). With 0 the
        clustering is that of `FuzzyCMeans`. Where the size of the errors is known, {"rounding": h}
        covers values rounded to multiples of h, and {"noise": s} 95 % of normal errors of
        deviation s, each one number or one a column. "auto" takes what is most stable: see Notes.
    shape : {"ball", "box"}, default "ball"
        Whether the limit is on the length of the displacement or on each column.
    m, init, n_init, max_iter, tol, fall, accelerate, on_collapse, constraints, neglect
        As for `FuzzyCMeans`; sweeps are never accelerated here.
    random_state : int, RandomState or None, default None
        Seeds the starts.

    Attributes
    ----------
    kappa_ : float or ndarray
        The tolerance used.

    Notes
    -----
    "auto" fits random halves of the table and compares the memberships of all records with those of
    the whole table's fit (d2 of `compare`), for tolerances up to the typical distance of a record
    to its centre; it takes the least tolerance whose mean d2 is within one standard error of the
    smallest. A table that is clustered as stably without tolerance gets 0.

    One sweep does three things, each of which minimises J with the others fixed: degrees from the
    displaced records and the centres; displacements e_i, which bring the record to the mean of
    the centres with weights u_ic^m, or as near to it as the limit allows; and centres from the
    displaced records. J never rises from step to step, and its optimum cannot rise with kappa.

    Murata et al. and Torra, Endo and Miyamoto (2009) print the last step with x_i in place of
    x_i + e_i. That is no minimum of the stated J; their objective values rise with kappa.

    References
    ----------
    R. Murata, Y. Endo, H. Haruyama and S. Miyamoto (2006). On fuzzy c-means for data with
    tolerance. Journal of Advanced Computational Intelligence and Intelligent Informatics 10(5).
    Y. Hasegawa, Y. Endo, Y. Hamasuna and S. Miyamoto (2007). Fuzzy c-means for data with tolerance
    defined as hyper-rectangle. MDAI.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.fuzzy import FuzzyCMeans, TolerantFuzzyCMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]])
    >>> plain = FuzzyCMeans(2, m=1.5, random_state=0).fit(X)
    >>> tolerant = TolerantFuzzyCMeans(2, m=1.5, kappa=0.5, random_state=0).fit(X)
    >>> tolerant.objective_ < plain.objective_
    True
    """

    _parameters: ClassVar[Mapping[str, Sequence[Constraint]]] = {
        **FuzzyCMeans._parameters,
        "shape": [OneOf(("ball", "box"))],
    }

    def __init__(
        self, n_clusters: int = 3, *, kappa: Any = 0.1, shape: str = "ball", m: Any = "auto",
        init: Any = "k-means++", n_init: int = 20, max_iter: int = 1000, tol: float = 1e-5,
        fall: float = 0.0, accelerate: bool = True, on_collapse: str = "error",
        constraints: Any = None, neglect: float = 1e-12, random_state: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            n_clusters, m=m, init=init, n_init=n_init, max_iter=max_iter, tol=tol,
            fall=fall, accelerate=accelerate, on_collapse=on_collapse,
            constraints=constraints, neglect=neglect, random_state=random_state,
        )  # fmt: skip
        self.kappa = kappa
        self.shape = shape

    def fit(
        self, X: ArrayLike, y: object = None, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Find centres, and the tolerance if it is to be found: see `FuzzyCMeans.fit`."""
        self.kappa_ = self._tolerance(X, sample_weight)
        return super().fit(X, y, sample_weight=sample_weight)

    def membership(self, X: ArrayLike, *, m: float | None = None, kappa: Any = None) -> Floats:
        """Return the degrees to which displaced records belong to the centres.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The records. Each is displaced as in the fit, with the centres held fixed.
        m : float, optional
            Another fuzziness than that of the fit, once records are displaced.
        kappa : float or array-like, optional
            The tolerance of these records, if it is not that of the fit.

        Returns
        -------
        u : ndarray of shape (n, n_clusters)
        """
        field, centres = self._field_of(X)
        law = power_law(self.m_, self.neglect)
        displaced, packed = field.records.copy(), arrange(centres)
        reach = self._reach(field, self.kappa_ if kappa is None else kappa)
        for _ in range(REST_ITER):
            before = displaced.copy()
            self._sweep(field, displaced, reach, packed, law)
            if np.abs(displaced - before).max(initial=0.0) <= RESTING:
                break
        return super().membership(field.outward(displaced), m=m)

    def _may_leap(self, law: Law) -> bool:  # noqa: ARG002
        """Never: a leap that is taken back would leave records displaced for it."""
        return False

    def _step(self, field: Field, law: Law, *, alone: bool) -> Step:
        """Return a function that sweeps records and displaces them, starting at home."""
        reach, displaced = self._reach(field, self.kappa_), field.records.copy()

        def step(centres: Floats) -> Swept:
            packed = arrange(centres)
            sums = self._sweep(field, displaced, reach, packed, law, alone=alone)
            return Swept.of(sums, packed, centres)

        return step

    def _sweep(
        self, field: Field, displaced: Floats, reach: Floats, packed: Centres, law: Law,
        *, alone: bool = False,
    ) -> list[Sums]:  # fmt: skip
        """Sweep the records once, and displace them."""
        records, weights, box = field.records, field.weights, self.shape == "box"
        return field.on_pieces(
            lambda rows: sweep_tolerant(records, displaced, reach, box, weights, rows, packed, law),
            alone=alone,
        )

    def _tolerance(self, X: ArrayLike, weights: ArrayLike | None) -> Any:
        """Return the tolerance in numbers: as given, of errors of a known size, or most stable."""
        if isinstance(self.kappa, str) and self.kappa == "auto":
            return self._stable(check_records(X, self), weights)
        if not isinstance(self.kappa, Mapping):
            return self.kappa
        from scipy.stats import chi2, norm

        d, box = check_records(X, self).shape[1], self.shape == "box"
        try:
            ((kind, size),) = self.kappa.items()
            each = np.broadcast_to(np.asarray(size, dtype=np.float64), d)
            if kind not in ("rounding", "noise") or not (np.isfinite(each) & (each >= 0)).all():
                raise ValueError
        except (TypeError, ValueError):
            wish = '{"rounding": 0.5} or {"noise": 0.1}, sizes of at least 0, one or one a column'
            raise BadOptionError("kappa", self.kappa, wish) from None
        if kind == "rounding":
            return each[None] / 2 if box else float(np.sqrt((each**2).sum()) / 2)
        if box:
            return each[None] * norm.ppf((1 + COVERED) / 2)
        # The squared length is a sum of s_j^2 times chi-squared variables: Satterthwaite's g chi2_h
        # with the same two moments, exact where all s_j are equal.
        squares, fourths = float((each**2).sum()), float((each**4).sum())
        if squares == 0:
            return 0.0
        return float(np.sqrt(fourths / squares * chi2.ppf(COVERED, squares**2 / fourths)))

    def _stable(self, X: Floats, weights: ArrayLike | None) -> float:
        """Return the least tolerance that is as stable as any, by d2 on halves of the table."""
        mass = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        seeds = check_seed(self.random_state).randint(2**31 - 1, size=1 + HALVES).tolist()
        shared = {n: v for n, v in self.get_params().items() if n not in ("kappa", "shape")}
        plain = FuzzyCMeans(**shared).set_params(random_state=seeds[0])
        plain.fit(X, sample_weight=weights)
        squares = ((X - plain.cluster_centers_[plain.labels_]) ** 2).sum(axis=1)
        size = float(np.sqrt(np.average(squares, weights=mass)))
        draws = [np.random.default_rng(seed).permutation(len(X)) for seed in seeds[1:]]
        halves = [np.sort(rows[: (len(X) + 1) // 2]) for rows in draws]
        trial = clone(self).set_params(m=plain.m_, init=plain.cluster_centers_)
        trial.set_params(n_clusters=plain.n_clusters_)
        found = np.empty((len(SHARES), HALVES))
        for at, share in enumerate(SHARES):
            whole = trial.set_params(kappa=share * size).fit(X, sample_weight=mass)
            start, u = clone(trial).set_params(init=whole.cluster_centers_), whole.membership(X)
            fits = (clone(start).fit(X[rows], sample_weight=mass[rows]) for rows in halves)
            found[at] = [compare(u, fit.membership(X)).d2 for fit in fits]
        means, errors = found.mean(axis=1), found.std(axis=1, ddof=1) / np.sqrt(HALVES)
        best = int(means.argmin())
        return float(SHARES[int(np.argmax(means <= means[best] + errors[best]))] * size)

    def _reach(self, field: Field, kappa: Any) -> Floats:
        """Return the limits in the field's units: (n, 1) for balls, (n, d) for boxes."""
        n, d = field.records.shape
        wide = d if self.shape == "box" else 1
        try:
            given = np.array(kappa, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.array(np.nan)
        if given.ndim == 1:
            given = given[:, None]
        fits = given.ndim == 0 or (given.shape[0] in (1, n) and given.shape[1] in (1, wide))
        if not fits:
            raise BadTableError(
                f"kappa has shape {np.shape(kappa)}; give one number, or one for each of the {n} "
                'records, or with shape="box" one for each column (1, d) or cell (n, d).'
            )
        if not np.isfinite(given).all() or (given < 0).any():
            shown = kappa if given.ndim == 0 else float(given[~(given >= 0)].min(initial=np.nan))
            raise BadOptionError("kappa", shown, "finite distances of at least 0")
        return np.ascontiguousarray(np.broadcast_to(given * field.scale, (n, wide)))
