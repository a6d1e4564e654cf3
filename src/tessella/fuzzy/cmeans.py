"""Fuzzy c-means: every record belongs to every centre, to a degree.

A sweep computes degrees from centres, then centres from degrees. Both halves are sums over
records, so a table may be swept in pieces, on any number of cores, and give the same answer.

With tolerance, records may be displaced, within limits, towards their centres: data carry errors of
a known size. A record is then not a point but a ball or a box around it, and the clustering may
choose where in it the record stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._parameters import Constraint, OneOf
from .._types import Floats
from ..exceptions import BadOptionError, BadTableError
from ..kernels.degrees import NEAREST, Centres, Law
from ..kernels.memberships import Sums, sweep_tolerant
from .base import TRIAL_TRIES, FuzzyClusterer, Step, check_number
from .field import Field, Swept, arrange, critical_lambda, critical_m, entropy_law, power_law

RESTING, REST_ITER = 1e-9, 200  # displacements rest, in the field's units; steps until then
LARGEST_AUTO = 2.0  # the m that is customary where the table allows it
MILDER = 0.7  # the next fuzziness that is tried after a collapse


class FuzzyCMeans(FuzzyClusterer):
    """Fuzzy c-means, the memberships raised to the power m.

    Minimises J(u, v) = sum over records i and centres c of w_i u_ic^m |x_i - v_c|^2, subject to
    sum over c of u_ic = 1 and u_ic >= 0.

    Parameters
    ----------
    n_clusters : int, default 3
        The number of centres, c.
    m : float or "auto", default "auto"
        Fuzziness. 1 is k-means, exactly; the larger, the more a record belongs to all centres.
        "auto" takes 2, or what the table bears without collapse; see `m_`.
    init : {"k-means++", "records"} or array-like of shape (n_clusters, d)
        First centres: records that are spread out, records at random, or given ones (one start).
    n_init : int, default 20
        The number of starts; the best objective is kept.
    max_iter : int, default 1000
        The largest number of sweeps of a start.
    tol : float, default 1e-5
        Centres rest when none moves farther than this share of the table's spread (the root of
        the mean squared distance to the mean).
    fall : float, default 0
        Centres rest, too, when a sweep lowers the objective by less than this share.
    accelerate : bool, default True
        Leap ahead where the last sweeps lead, wherever the objective falls there: the same kind of
        rest in fewer sweeps. False steps as the textbook does.
    on_collapse : {"error", "merge"}, default "error"
        What to do with centres that coincide: refuse, or merge them and have fewer, as long as no
        more than a tenth of them go; see `n_clusters_`.
    constraints : pair (A, b), LinearSystem or parsed rules, optional
        What every centre obeys: A v = b, or linear equations and inequalities between columns.
    neglect : float, default 1e-12
        The share of a record's membership that may be left out by not visiting far centres; 0
        visits all. See Notes.
    random_state : int, RandomState or None, default None
        Seeds the starts.

    Attributes
    ----------
    m_ : float
        The fuzziness used.

    Notes
    -----
    Given centres, u_ic = 1 / sum over r of (|x_i - v_c|^2 / |x_i - v_r|^2)^(1/(m-1)); a record on
    a centre belongs to it with degree one. Given degrees, v_c is the mean of the records with
    weights w_i u_ic^m, projected on the constraints. Centres are visited from the nearest box of
    sixteen on, until what all others can add to the sum is below `neglect`: each membership is then
    exact up to that share, and the objective up to (m - 1) times that share.

    Collapse (centres that coincide, memberships of 1/c) is an error that says which m would work.

    References
    ----------
    J. C. Bezdek (1981). Pattern recognition with fuzzy objective function algorithms. Plenum.
    V. Torra (2020). Fuzzy clustering-based microaggregation to achieve probabilistic k-anonymity
    for data with constraints. Journal of Intelligent and Fuzzy Systems 39(5).

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.fuzzy import FuzzyCMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]])
    >>> found = FuzzyCMeans(2, m=1.5, random_state=0).fit(X)
    >>> np.sort(found.cluster_centers_.ravel()).round(2)
    array([1., 9.])
    >>> found.membership([[1.0], [5.0]]).round(2).max(axis=1)
    array([1. , 0.5])
    """

    _fuzziness, _shrink = ("m", "m_"), MILDER

    def __init__(
        self, n_clusters: int = 3, *, m: Any = "auto", init: Any = "k-means++",
        n_init: int = 20, max_iter: int = 1000, tol: float = 1e-5, fall: float = 0.0,
        accelerate: bool = True, on_collapse: str = "error", constraints: Any = None,
        neglect: float = 1e-12, random_state: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            n_clusters=n_clusters, m=m, init=init, n_init=n_init, max_iter=max_iter, tol=tol,
            fall=fall, accelerate=accelerate, on_collapse=on_collapse,
            constraints=constraints, neglect=neglect, random_state=random_state,
        )  # fmt: skip

    def membership(self, X: ArrayLike, *, m: float | None = None) -> Floats:
        """Return the degrees to which records belong to the centres; rows sum to one.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The records.
        m : float, optional
            Another fuzziness than that of the fit.

        Returns
        -------
        u : ndarray of shape (n, n_clusters)
        """
        used = getattr(self, "m_", 1.0) if m is None else check_number("m", m, 1.0)
        return self._memberships(X, power_law(used, self.neglect))

    def _law_at(self, amount: float) -> Law:
        return power_law(1 + amount, self.neglect)

    def _law(self, field: Field, c: int) -> Law:
        if self._is_auto():
            first = min(LARGEST_AUTO, 1 + (critical_m(field) - 1) / 2) - 1
            found = self._mildest(field, c, first)
            self.m_ = 1 + (first * MILDER**TRIAL_TRIES if found is None else found)
        else:
            self.m_ = check_number("m", self.m, 1.0)
        return power_law(self.m_, self.neglect)

    def _milder(self, law: Law) -> Law:  # noqa: ARG002
        self.m_ = 1 + MILDER * (self.m_ - 1)
        return power_law(self.m_, self.neglect)

    def _advice(self, field: Field, c: int, law: Law) -> str:
        if law.kind == NEAREST:
            return "Give fewer clusters."
        limit = critical_m(field)
        found = self._mildest(field, c, MILDER * (min(limit, self.m_) - 1))
        known = f"Above m of about {limit:.3g} all centres fall to the mean. " if limit < 10 else ""
        if found is None:
            return f"{known}No m above 1 was found to work in a trial: give fewer clusters."
        digits = 1 - math.floor(math.log10(found))
        works = 1 + math.floor(found * 10**digits) / 10**digits  # rounded down to two digits
        return f'{known}In a trial m={works:.4g} kept all centres apart: give that, or m="auto".'


class EntropyFuzzyCMeans(FuzzyClusterer):
    """Fuzzy c-means with entropy: memberships fall off exponentially with the squared distance.

    Minimises J(u, v) = sum over records i and centres c of w_i (u_ic |x_i - v_c|^2 + u_ic ln(u_ic)
    / lambda), subject to sum over c of u_ic = 1 and u_ic >= 0.

    Parameters
    ----------
    n_clusters : int, default 3
        The number of centres, c.
    lambda_ : float or "auto", default "auto"
        The larger, the crisper; per squared unit of the table. "auto" takes one that suits
        the spread of that many clusters and does not collapse; see `lambda_used_`.
    init, n_init, max_iter, tol, fall, accelerate, on_collapse, constraints, neglect, random_state
        As for `FuzzyCMeans`.

    Attributes
    ----------
    lambda_used_ : float
        The lambda used.

    Notes
    -----
    Given centres, u_ic is proportional to exp(-lambda |x_i - v_c|^2), computed from differences to
    the nearest centre: nothing overflows. Given degrees, v_c is the mean of the records with
    weights w_i u_ic, projected on the constraints. A record on a centre may have a degree below
    one. With a share `neglect` of the mass left out, the objective is exact up to neglect / lambda
    a record.

    References
    ----------
    S. Miyamoto and M. Mukaidono (1997). Fuzzy c-means as a regularization and maximum entropy
    approach. IFSA World Congress.
    V. Torra (2020). Fuzzy clustering-based microaggregation to achieve probabilistic k-anonymity
    for data with constraints. Journal of Intelligent and Fuzzy Systems 39(5).

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.fuzzy import EntropyFuzzyCMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]])
    >>> found = EntropyFuzzyCMeans(2, lambda_=1.0, random_state=0).fit(X)
    >>> np.sort(found.cluster_centers_.ravel()).round(2)
    array([1., 9.])
    """

    _fuzziness, _shrink = ("lambda_", "lambda_used_"), 0.5

    def __init__(
        self, n_clusters: int = 3, *, lambda_: Any = "auto", init: Any = "k-means++",
        n_init: int = 20, max_iter: int = 1000, tol: float = 1e-5, fall: float = 0.0,
        accelerate: bool = True, on_collapse: str = "error", constraints: Any = None,
        neglect: float = 1e-12, random_state: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            n_clusters=n_clusters, lambda_=lambda_, init=init, n_init=n_init, max_iter=max_iter,
            tol=tol, fall=fall, accelerate=accelerate, on_collapse=on_collapse,
            constraints=constraints, neglect=neglect, random_state=random_state,
        )  # fmt: skip

    def membership(self, X: ArrayLike, *, lambda_: float | None = None) -> Floats:
        """Return the degrees to which records belong to the centres; rows sum to one.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The records.
        lambda_ : float, optional
            Another one than that of the fit.

        Returns
        -------
        u : ndarray of shape (n, n_clusters)
        """
        used = getattr(self, "lambda_used_", 1.0)
        if lambda_ is not None:
            used = check_number("lambda_", lambda_, 0.0, open_end=True)
        return self._memberships(X, entropy_law(used, self.neglect))

    def _law_at(self, amount: float) -> Law:
        return entropy_law(1 / amount, self.neglect)

    def _law(self, field: Field, c: int) -> Law:
        if not self._is_auto():
            self.lambda_used_ = check_number("lambda_", self.lambda_, 0.0, open_end=True)
            return field.law(entropy_law(self.lambda_used_, self.neglect))
        # With c clusters of equal size the variance within is that of the table times c^(-2/d),
        # as for a space filled evenly; the temperature of half of it keeps neighbours apart.
        limit = critical_lambda(field)
        if limit == float("inf"):  # one place, one centre
            self.lambda_used_ = 1.0
            return entropy_law(1.0)
        first = 1 / (2 * limit * c ** (2 / field.records.shape[1]))
        found = self._mildest(field, c, first)
        law = self._law_at(first * self._shrink**TRIAL_TRIES if found is None else found)
        self.lambda_used_ = law.rate * field.scale * field.scale
        return law

    def _milder(self, law: Law) -> Law:
        self.lambda_used_ *= 2
        return entropy_law(2 * law.rate, self.neglect)

    def _advice(self, field: Field, c: int, law: Law) -> str:
        limit = critical_lambda(field)
        found = self._mildest(field, c, 0.5 / max(limit, law.rate))
        outer = limit * field.scale * field.scale
        known = f"Below lambda_ of about {outer:.3g} all centres fall to the mean. "
        if found is None:
            return f"{known}None was found to work in a trial: give fewer clusters."
        works = field.scale / found * field.scale
        return (
            f"{known}In a trial lambda_={works:.4g} kept all centres apart: give that, or "
            'lambda_="auto".'
        )


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
        reach, displaced = self._reach(field, self.kappa), field.records.copy()

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
