"""What every fuzzy clusterer shares: checks, starts, the loop, and the refusal to collapse.

A clusterer names its fuzziness (`_fuzziness`, and the attribute that holds the one used), and
answers three questions: by which law degrees follow from distances (`_law`, `_law_at`), how records
are swept (`_step`), and what to advise when centres coincide (`_milder`, `_advice`).

They run one alternating loop (`alternate`): degrees from centres, centres from degrees, until they
rest. Each half minimises the same objective with the other half held fixed, so it never rises.
Variants differ in two parts only: how records are swept (`step`), and where centres may be
(`project`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from .._estimator import Clusterer, refuse_unfitted
from .._parameters import Constraint, Number, OneOf, Whole, check, check_parameters
from .._types import Floats, Integers
from ..exceptions import BadTableError, ClusterCountError, CollapsedError, UnfinishedWarning
from ..grouping.base import check_records, check_seed, check_weights
from ..kernels.degrees import NEAREST, Law
from ..kernels.groups import number_equal
from ..parallel import each
from .field import Constraints, Field, Swept, find_collapse, first_centres, given_centres, power_law

Step = Callable[[Floats], Swept]

LARGEST = 25_000_000  # memberships that are handed out at once: 200 MB
TRIAL = 2_000_000  # records times centres of a trial
TRIAL_ITER, TRIAL_TOL = 300, 1e-4
TRIES = 9  # milder fuzziness, or mergers, after a collapse
TRIAL_TRIES = 12  # milder fuzziness in trials
MERGED = 0.1  # share of centres that may be merged
WINDOW = 6  # steps that a leap looks back on
RIDGE = 1e-10  # relative, against steps that are nearly parallel


def check_number(name: str, value: Any, low: float, *, open_end: bool = False) -> float:
    """Return a finite number that is at least (or more than) `low`, or raise an error."""
    check({name: [Number(above=low) if open_end else Number(low)]}, {name: value})
    return float(value)


def check_clusters(c: Any, X: Floats) -> int:
    """Return the number of clusters as an int that the table can have, or raise an error."""
    if not Whole(1).accepts(c):
        raise ClusterCountError.not_an_integer(c=c)
    count = int(c)
    if count > len(X):
        raise ClusterCountError.more_than_records(c=count, n=len(X))
    for rows in (4 * count, len(X)):  # a few records are mostly enough to know
        distinct = len(number_equal(X[:rows])[1])
        if distinct >= count:
            return count
    raise ClusterCountError.more_than_distinct(c=count, distinct=distinct, n=len(X))


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One descent, from a start to a rest."""

    centres: Floats
    history: list[float]  # the objective of the centres of each sweep; the last is theirs
    rests: bool  # whether the centres came to rest

    @property
    def objective(self) -> float:
        """The last, and least, value of the objective."""
        return self.history[-1]


def alternate(
    field: Field,
    centres: Floats,
    law: Law,
    *,
    step: Callable[[Floats], Swept],
    project: Callable[[Floats], Floats],
    max_iter: int,
    tol: float,
    fall: float = 0.0,
    accelerate: bool = False,
) -> Run:
    """Move centres until none moves by more than tol, in units of the table's spread.

    `step` sweeps the records: centres in; objective, better centres and their weights out.
    `project` brings each centre to the nearest place where it may be. Centres rest, too, when a
    sweep lowers the objective by less than the share `fall`. With `accelerate` they leap ahead
    where the last steps lead, if the objective falls there.
    """
    history: list[float] = []
    centres, rests = project(centres), False
    ahead = Ahead()
    safe = centres
    for _ in range(max_iter):
        swept = step(centres)
        if history and swept.objective > history[-1] and ahead.leapt:
            ahead, centres = Ahead(), safe  # the leap went uphill: take the plain step instead
            swept = step(centres)
        history.append(swept.objective)
        better = project(_fill_empty(field, swept, law))
        moved = float(((better - centres) ** 2).sum(axis=1).max()) ** 0.5
        lowered = len(history) < 2 or history[-2] - history[-1] >= fall * abs(history[-1])
        if moved <= tol * field.size or not lowered:
            rests = True  # they stay: a descent from a place of rest ends exactly there
            break
        safe = better
        centres = project(ahead.leap(centres, better)) if accelerate else better
    if not rests:
        last = step(centres).objective
        if last > history[-1]:
            centres, last = safe, step(safe).objective
        history.append(last)
    return Run(centres=centres, history=history, rests=rests)


class Ahead:
    """Anderson's extrapolation: from the last steps to where they lead.

    With steps f_k = g_k - v_k from places v_k to g_k, the combination of the last places whose
    steps nearly cancel is a better guess than the last place alone. The caller checks that the
    objective falls.

    References
    ----------
    H. F. Walker and P. Ni (2011). Anderson acceleration for fixed-point iterations. SIAM Journal on
    Numerical Analysis 49(4).
    """

    def __init__(self) -> None:
        self.places: list[Floats] = []
        self.steps: list[Floats] = []
        self.leapt = False

    def leap(self, place: Floats, better: Floats) -> Floats:
        """Return the next place, after a step from `place` to `better`."""
        self.places, self.steps = self.places[-WINDOW:], self.steps[-WINDOW:]
        self.places.append(better.ravel())
        self.steps.append((better - place).ravel())
        self.leapt = len(self.steps) > 2
        if not self.leapt:
            return better
        steps = np.diff(np.array(self.steps), axis=0)
        places = np.diff(np.array(self.places), axis=0)
        gram = steps @ steps.T
        gram[np.diag_indices_from(gram)] *= 1 + RIDGE
        share = np.linalg.lstsq(gram, steps @ self.steps[-1], rcond=None)[0]
        leap: Floats = self.places[-1] - share @ places
        return leap.reshape(better.shape)


def _fill_empty(field: Field, swept: Swept, law: Law) -> Floats:
    """Move centres that no record belongs to onto the records that are worst off.

    Another centre harms no record, so the objective does not rise.
    """
    empty = np.flatnonzero(swept.weights == 0)
    if len(empty) == 0:
        return swept.centres
    centres = swept.centres.copy()
    outlook, _ = field.draw(centres, power_law(1, law.neglect), np.full(field.n, -1.0))
    worst = np.argsort(-(field.weights * outlook.square), kind="stable")[: len(empty)]
    centres[empty] = field.records[worst]
    return centres


class FuzzyClusterer(Clusterer):
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

    # Subclasses list these in the signatures of their own constructors, as scikit-learn asks.
    n_clusters: int
    init: Any
    n_init: int
    max_iter: int
    tol: float
    fall: float
    accelerate: bool
    on_collapse: str
    constraints: Any
    neglect: float
    random_state: Any

    _parameters: ClassVar[Mapping[str, Sequence[Constraint]]] = {
        "n_init": [Whole(1)],
        "max_iter": [Whole(1)],
        "tol": [Number(0)],
        "fall": [Number(0)],
        "on_collapse": [OneOf(("error", "merge"))],
        "neglect": [Number(0, 0.01)],
    }
    _fuzziness: ClassVar[tuple[str, str]]  # its parameter, and the attribute with the one used
    _shrink: ClassVar[float]  # how much milder the next one is that is tried after a collapse

    def __init__(self, **parameters: Any) -> None:
        for name, value in parameters.items():
            setattr(self, name, value)

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
        check_parameters(self)
        c = check_clusters(self.n_clusters, records)
        given = given_centres(self.init, c, records.shape[1])
        field = Field.of(records, check_weights(sample_weight, records), c)
        columns = list(getattr(self, "feature_names_in_", range(records.shape[1])))
        constraints = Constraints.of(self.constraints, columns, field)
        starts = self._starts(field, c, given)
        best, law = self._fit_field(field, starts, constraints)
        self.n_clusters_ = len(best.centres)
        self.cluster_centers_ = constraints.polish(field.outward(best.centres))
        self.history_ = [field.objective(value) for value in best.history]
        self.objective_ = self.history_[-1]
        self.n_iter_ = len(best.history) - (not best.rests)
        self.labels_ = field.nearest(best.centres, law.neglect)
        if not best.rests:
            warnings.warn(
                UnfinishedWarning.of_sweeps(sweeps=self.n_iter_, tol=self.tol), stacklevel=2
            )
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
        refuse_unfitted(self, "cluster_centers_")
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
            f"{self._fuzziness[0]}={getattr(self, self._fuzziness[1]):g}",
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
                project=constraints.project,
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
            project=lambda centres: centres,
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

    def _is_auto(self) -> bool:
        given = getattr(self, self._fuzziness[0])
        return isinstance(given, str) and given == "auto"

    def _mildest(self, field: Field, c: int, first: float) -> float | None:
        """Shrink an amount of fuzziness until a trial does not collapse; None if all do."""
        amounts = (first * self._shrink**power for power in range(TRIAL_TRIES))
        return next((x for x in amounts if not self._collapses(field, c, self._law_at(x))), None)

    def _law_at(self, amount: float) -> Law:
        """Return the law of an amount of fuzziness; with 0 records would be crisp."""
        raise NotImplementedError

    def _law(self, field: Field, c: int) -> Law:
        raise NotImplementedError

    def _milder(self, law: Law) -> Law:
        raise NotImplementedError

    def _advice(self, field: Field, c: int, law: Law) -> str:
        raise NotImplementedError

    def _starts(self, field: Field, c: int, given: Floats | None) -> list[Floats]:
        if given is not None:
            return [field.inward(given)]
        seed = check_seed(self.random_state).randint(2**31 - 1, size=4)
        streams = np.random.SeedSequence(seed.tolist()).spawn(int(self.n_init))
        return each(
            lambda stream: first_centres(field, c, self.init, np.random.default_rng(stream)),
            streams,
        )
