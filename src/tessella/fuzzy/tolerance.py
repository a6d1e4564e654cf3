"""Fuzzy c-means with tolerance: records may be displaced, within limits, towards their centres.

Data carry errors of a known size. A record is then not a point but a ball or a box around it, and
the clustering may choose where in it the record stands.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._types import Floats
from ..exceptions import BadOptionError, BadTableError, UnknownOptionError
from ..kernels.degrees import Law
from ..kernels.sweep import sweep_tolerant
from .base import Step
from .cmeans import FuzzyCMeans
from .field import Field, Swept, arrange, power_law

__all__ = ["TolerantFuzzyCMeans"]


SHAPES = ("ball", "box")
SETTLED, SETTLE_ITER = 1e-9, 200  # displacements rest, in the field's units; steps until then


class TolerantFuzzyCMeans(FuzzyCMeans):
    """Fuzzy c-means for records that are known up to a tolerance.

    Minimises J(u, e, v) = sum over records i and centres c of w_i u_ic^m |x_i + e_i - v_c|^2,
    subject to sum over c of u_ic = 1, u_ic >= 0, and |e_i| <= kappa_i (ball) or |e_ij| <= kappa_ij
    (box).

    Parameters
    ----------
    n_clusters : int, default 3
        The number of centres, c.
    kappa : float or array-like, default 0.1
        How far a record may be displaced: one number, or one for each record, shape (n,). With
        boxes also one for each column, shape (1, d), or each cell, shape (n, d). With 0 the
        clustering is that of `FuzzyCMeans`.
    shape : {"ball", "box"}, default "ball"
        Whether the limit is on the length of the displacement or on each column.
    m, init, n_init, max_iter, tol, fall, accelerate, on_collapse, constraints, neglect
        As for `FuzzyCMeans`; sweeps are never accelerated here.
    random_state : int, RandomState or None, default None
        Seeds the starts.

    Notes
    -----
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

    def __init__(
        self,
        n_clusters: int = 3,
        *,
        kappa: Any = 0.1,
        shape: str = "ball",
        m: Any = "auto",
        init: Any = "k-means++",
        n_init: int = 20,
        max_iter: int = 1000,
        tol: float = 1e-5,
        fall: float = 0.0,
        accelerate: bool = True,
        on_collapse: str = "error",
        constraints: Any = None,
        neglect: float = 1e-12,
        random_state: Any = None,
    ) -> None:
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
        """Find centres; the parameters are those of `FuzzyCMeans.fit`."""
        if self.shape not in SHAPES:
            raise UnknownOptionError("shape", self.shape, SHAPES)
        super().fit(X, y, sample_weight=sample_weight)
        return self

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
        reach = self._reach(field, self.kappa if kappa is None else kappa)
        for _ in range(SETTLE_ITER):
            before = displaced.copy()
            field.on_pieces(
                lambda rows: sweep_tolerant(
                    field.records, displaced, reach, self.shape == "box", field.weights, rows,
                    packed, law,
                )
            )  # fmt: skip
            if np.abs(displaced - before).max(initial=0.0) <= SETTLED:
                break
        return super().membership(field.outward(displaced), m=m)

    def _may_leap(self, law: Law) -> bool:  # noqa: ARG002
        """Never: a leap that is taken back would leave records displaced for it."""
        return False

    def _step(self, field: Field, law: Law, *, alone: bool) -> Step:
        """Return a function that sweeps records and displaces them, starting at home."""
        reach, displaced = self._reach(field, self.kappa), field.records.copy()
        box = self.shape == "box"

        def step(centres: Floats) -> Swept:
            packed = arrange(centres)
            sums = field.on_pieces(
                lambda rows: sweep_tolerant(
                    field.records, displaced, reach, box, field.weights, rows, packed, law
                ),
                alone=alone,
            )
            return Swept.of(sums, packed, centres)

        return step

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
