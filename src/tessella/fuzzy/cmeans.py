"""Fuzzy c-means: every record belongs to every centre, to a degree.

A sweep computes degrees from centres, then centres from degrees. Both halves are sums over
records, so a table may be swept in pieces, on any number of cores, and give the same answer.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from .._types import Floats
from ..kernels.degrees import NEAREST, Law
from .base import TRIAL_TRIES, FuzzyClusterer, check_number
from .field import Field, critical_lambda, critical_m, entropy_law, power_law

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

    m: Any

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

    lambda_: Any

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
