"""What every fuzzy clusterer shares: checks, starts, the loop, and the refusal to collapse.

A clusterer answers three questions: by which law degrees follow from distances (`_law`), how
records are swept (`_step`), and what to advise when centres coincide (`_milder`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from .._types import Floats, Integers
from ..exceptions import (
    BadOptionError,
    BadTableError,
    ClusterCountError,
    CollapsedError,
    UnfinishedWarning,
    UnknownOptionError,
)
from ..grouping.base import check_records, check_seed, check_weights
from ..kernels.degrees import NEAREST, Law
from ..kernels.duplicates import number_equal
from ..parallel import each
from .collapse import find_collapse
from .constraints import Constraints
from .field import Field, Swept
from .loop import Run, alternate
from .starts import first_centres, given_centres

__all__ = ["FuzzyClusterer", "check_number"]

Step = Callable[[Floats], Swept]

LARGEST = 25_000_000  # memberships that are handed out at once: 200 MB
TRIAL = 2_000_000  # records times centres of a trial
TRIAL_ITER, TRIAL_TOL = 300, 1e-4
TRIES = 9  # milder fuzziness, or mergers, after a collapse
MERGED = 0.1  # share of centres that may be merged
ON_COLLAPSE = ("error", "merge")


def check_number(name: str, value: object, low: float, *, open_end: bool = False) -> float:
    """Return a finite number that is at least (or more than) `low`, or say what is wrong."""
    fits = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    number = float(value) if fits else math.nan  # type: ignore[arg-type]
    if not (number > low if open_end else number >= low) or math.isinf(number):
        more = "more than" if open_end else "at least"
        raise BadOptionError(name, value, f"a finite number of {more} {low:g}")
    return number


def check_clusters(c: object, X: Floats) -> int:
    """Return the number of clusters as an int that the table can have, or say why not."""
    if isinstance(c, bool | np.bool_) or not isinstance(c, Integral) or c < 1:
        raise ClusterCountError.not_an_integer(c)
    count = int(c)
    if count > len(X):
        raise ClusterCountError.more_than_records(count, len(X))
    for rows in (4 * count, len(X)):  # a few records are mostly enough to know
        distinct = len(number_equal(X[:rows])[1])
        if distinct >= count:
            return count
    raise ClusterCountError.more_than_distinct(count, distinct, len(X))


class FuzzyClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all fuzzy clusterers.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters_, d)
        The centres.
    n_clusters_ : int
        Their number: `n_clusters`, or fewer where centres were merged.
    labels_ : ndarray of shape (n,)
        The centre of each record's largest membership, the nearest one.
    objective_ : float
        The objective of the best start.
    objectives_ : ndarray of shape (n_init,)
        The objectives of all starts: their spread tells how hard the table is.
    history_ : list of float
        The objective at each sweep of the best start; it never rises.
    n_iter_ : int
        Sweeps of the best start.
    """

    def __init__(
        self,
        n_clusters: int = 3,
        *,
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
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.fall = fall
        self.accelerate = accelerate
        self.on_collapse = on_collapse
        self.constraints = constraints
        self.neglect = neglect
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: object = None,  # noqa: ARG002
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find centres.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The records, already on the scale on which distances are meant.
        y : ignored
            Present for scikit-learn.
        sample_weight : array-like of shape (n,), optional
            Positive weights of the records in the objective.

        Returns
        -------
        self
        """
        records = check_records(X, self)
        self._check_wishes()
        c = check_clusters(self.n_clusters, records)
        given = given_centres(self.init, c, records.shape[1])
        field = Field.of(records, check_weights(sample_weight, records), c)
        constraints = Constraints.of(self.constraints, self._column_names(records.shape[1]), field)
        starts = self._starts(field, c, given)
        best, law = self._fit_field(field, starts, constraints)
        self.n_clusters_ = len(best.centres)
        self.cluster_centers_ = constraints.polish(field.outward(best.centres))
        self.history_ = [field.objective(value) for value in best.history]
        self.objective_ = self.history_[-1]
        self.n_iter_ = len(best.history) - (not best.rests)
        self.labels_ = field.nearest(best.centres, law.neglect)
        if not best.rests:
            warnings.warn(UnfinishedWarning.of_sweeps(self.n_iter_, self.tol), stacklevel=2)
        return self

    def predict(self, X: ArrayLike) -> Integers:
        """Return for each record the nearest centre, that of its largest membership."""
        field, centres = self._field_of(X)
        return field.nearest(centres, self.neglect)

    def _memberships(self, X: ArrayLike, law: Law) -> Floats:
        """Return degrees of shape (n, n_clusters); rows sum to one."""
        field, centres = self._field_of(X)
        if field.n * len(centres) > LARGEST:
            raise BadTableError(
                f"{field.n} records times {len(centres)} centres are more memberships than should "
                f"be held at once. Ask for some of the rows at a time: at most "
                f"{LARGEST // len(centres)}."
            )
        return field.degrees(centres, field.law(law))

    def __sklearn_is_fitted__(self) -> bool:
        """Tell by the centres: `lambda_` is a parameter, in spite of its name."""
        return hasattr(self, "cluster_centers_")

    def _field_of(self, X: ArrayLike) -> tuple[Field, Floats]:
        check_is_fitted(self)
        records = check_records(X, self, reset=False)
        field = Field.of(records, np.ones(len(records)), len(self.cluster_centers_))
        return field, field.inward(self.cluster_centers_)

    def _fit_field(
        self, field: Field, starts: list[Floats], constraints: Constraints
    ) -> tuple[Run, Law]:
        """Descend from all starts; return the best run and its law, or refuse a collapse."""
        law = self._law(field, len(starts[0]))
        for _ in range(TRIES):
            runs = self._descend(field, starts, law, constraints)
            best = min(runs, key=lambda run: run.objective)
            collapse = find_collapse(field, best.centres, law)
            if collapse is None:
                self.objectives_ = np.array([field.objective(run.objective) for run in runs])
                return best, law
            if self.on_collapse == "merge" and len(collapse.spare) <= MERGED * collapse.c:
                starts = [np.delete(best.centres, collapse.spare, axis=0)]
            elif self._is_auto():
                law = self._milder(law)
            else:
                break
        assert collapse is not None
        raise CollapsedError(
            self._told(field, law),
            coincide=collapse.coincide,
            c=collapse.c,
            even=collapse.even,
            advice=self._advice(field, len(starts[0]), law),
        )

    def _descend(
        self, field: Field, starts: list[Floats], law: Law, constraints: Constraints
    ) -> list[Run]:
        """Run the loop from each start; several starts share the cores, a single one its pieces."""
        alone = len(starts) > 1

        def descend(centres: Floats) -> Run:
            return alternate(
                field,
                centres,
                law,
                step=self._step(field, law, alone=alone),
                settle=constraints.settle,
                max_iter=self.max_iter,
                tol=self.tol,
                fall=self.fall,
                accelerate=self.accelerate and self._may_leap(law),
            )

        return each(descend, starts)

    def _collapses(self, field: Field, c: int, law: Law) -> bool:
        """Try a law on a part of the records, from one start."""
        count = min(field.n, max(2 * c, TRIAL // c))
        rows = np.random.default_rng(0).choice(field.n, count, replace=False)
        part = Field.of(field.records[rows], field.weights[rows], c)
        law = part.law(law)
        start = first_centres(part, c, "k-means++", np.random.default_rng(1))
        run = alternate(
            part,
            start,
            law,
            step=lambda centres: part.sweep(centres, law),
            settle=lambda centres: centres,
            max_iter=TRIAL_ITER,
            tol=TRIAL_TOL,
            accelerate=True,
        )
        return find_collapse(part, run.centres, law) is not None

    def _step(self, field: Field, law: Law, *, alone: bool) -> Step:
        """Return a function that sweeps the records once."""
        return lambda centres: field.sweep(centres, law, alone=alone)

    def _may_leap(self, law: Law) -> bool:
        """Tell whether steps lead on smoothly; with m = 1 they end in few steps anyway."""
        return law.kind != NEAREST

    def _law(self, field: Field, c: int) -> Law:
        raise NotImplementedError

    def _milder(self, law: Law) -> Law:
        raise NotImplementedError

    def _is_auto(self) -> bool:
        raise NotImplementedError

    def _told(self, field: Field, law: Law) -> str:
        raise NotImplementedError

    def _advice(self, field: Field, c: int, law: Law) -> str:
        raise NotImplementedError

    def _check_wishes(self) -> None:
        if self.on_collapse not in ON_COLLAPSE:
            raise UnknownOptionError("on_collapse", self.on_collapse, ON_COLLAPSE)
        for name in ("n_init", "max_iter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise BadOptionError(name, value, "a whole number of at least 1")
        for name in ("tol", "fall"):
            check_number(name, getattr(self, name), 0.0)
        if not check_number("neglect", self.neglect, 0.0) <= 0.01:
            raise BadOptionError("neglect", self.neglect, "a share between 0 and 0.01")

    def _starts(self, field: Field, c: int, given: Floats | None) -> list[Floats]:
        if given is not None:
            return [field.inward(given)]
        seed = check_seed(self.random_state).randint(2**31 - 1, size=4)
        streams = np.random.SeedSequence(seed.tolist()).spawn(int(self.n_init))
        return each(
            lambda stream: first_centres(field, c, self.init, np.random.default_rng(stream)),
            streams,
        )

    def _column_names(self, d: int) -> list[Any]:
        return list(getattr(self, "feature_names_in_", range(d)))
