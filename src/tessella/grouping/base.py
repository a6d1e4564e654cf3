"""What every grouping shares: checks, strata, weights, and the promise of k.

A *grouping* partitions records into groups of at least k. A method only answers one question:
given the records of one stratum, which goes with which (`_group`). Everything else is here, once.

Messages never repeat a value of the table: they end up in logs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from .._estimator import Clusterer, refuse_unfitted
from .._parameters import Constraint, Whole, check_parameters
from .._types import Floats, Integers
from ..diversity import Diversity
from ..exceptions import BadOptionError, BadTableError, BrokenPromiseError, GroupSizeError
from ..frame import count_units
from ..kernels.groups import renumber, squared_error, weighted_centres

LARGEST = 1e140  # of a coordinate: squares of a thousand of them can be added up

Units = Integers | None  # the unit of each record; None where each record is a unit of its own
NO_UNITS: Integers = np.empty(0, dtype=np.int64)


def check_records(X: Any, estimator: Any = None, *, reset: bool = True) -> Floats:
    """Return records as a table of floats, checked against what an estimator was fitted on.

    The array is writeable: numba takes a read-only one (pandas gives such) for another type, and
    would compile everything again. Finite floats need no scikit-learn, and at most another order;
    everything else is converted, or refused, by its own checks.
    """
    named = hasattr(estimator, "feature_names_in_")
    if not named and reset and _is_checked(X):
        if estimator is not None:
            estimator.n_features_in_ = X.shape[1]
        return cast(Floats, np.require(X, requirements=["C", "W"]))
    from sklearn.utils.validation import check_array, validate_data

    asked: dict[str, Any] = {"dtype": np.float64, "order": "C", "force_writeable": True}
    try:
        if estimator is None:
            return np.asarray(check_array(X, input_name="X", **asked), dtype=np.float64)
        return np.asarray(validate_data(estimator, X, reset=reset, **asked), dtype=np.float64)
    except ValueError as error:
        text = str(error)
        if "array=" in text or "scalar array" in text:
            raise BadTableError(
                "Records are expected as a table with two dimensions, not as a single column or "
                "row of numbers. Reshape your data: X.reshape(-1, 1) for one column."
            ) from None
        if "could not convert" in text:
            raise BadTableError(
                "The records have values that are not numbers. Code the categories as numbers, or "
                "leave their columns out."
            ) from None
        raise


def _is_checked(X: Any) -> bool:
    """Return whether records are an array whose values all checks of scikit-learn leave."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.size > 0
        and bool(np.isfinite(X).all())
    )


def one_each(values: ArrayLike, n: int, what: str) -> Any:
    """Return values as an array with one for each record, or raise an error."""
    found = np.asarray(values)
    if found.shape not in ((n,), (n, 1)):
        raise BadTableError(f"{what} must be {n}, one for each record.")
    return found.ravel()


def check_k(k: object, n: int, n_units: int | None = None) -> int:
    """Return k as an int that n records, of so many units, can honour, or say why not."""
    if not Whole().accepts(k):
        raise GroupSizeError.not_an_integer(k=k)
    size = int(cast(int, k))
    if size < 2:
        raise GroupSizeError.too_small(k=size)
    if size > n:
        raise too_few(size, n)
    if n_units is not None and size > n_units:
        raise too_few(size, n, n_units)
    return size


def too_few(k: int, n: int, n_units: int | None = None) -> GroupSizeError:
    """Return the error for a table that is smaller than k; no advice that no table can follow."""
    if n_units is None:
        single, several = GroupSizeError.single_record, GroupSizeError.more_than_records
        return single(k=k, n=n) if n < 2 else several(k=k, n=n)
    single, several = GroupSizeError.single_unit, GroupSizeError.more_than_units
    return single(k=k, n=n) if n_units < 2 else several(k=k, n=n, n_units=n_units)


def check_units(units: ArrayLike | None, n: int) -> Units:
    """Number the units 0, 1, ...; None where each record is a unit of its own."""
    if units is None:
        return None
    import pandas as pd

    names = one_each(units, n, "The units")
    numbers, found = pd.factorize(names)
    if (numbers < 0).any():
        raise BadTableError(
            f"The units have {int((numbers < 0).sum())} missing values. Give every record the unit "
            "that it belongs to; one that belongs to nobody else needs a name of its own."
        )
    return None if len(found) == n else numbers.astype(np.int64)


def one_group(n: int, k: int, units: Units) -> bool:
    """Whether two groups of k do not fit.

    A unit with two records or more can be in both groups, any other in one: the sum of min(records
    of a unit, 2) is the number of places that two groups can fill, and they need 2k.
    """
    places = n if units is None else int(np.minimum(np.bincount(units), 2).sum())
    return places < 2 * k


def check_weights(sample_weight: ArrayLike | None, X: Floats) -> Floats:
    """Return one positive weight for each record."""
    if sample_weight is None:
        return np.ones(len(X))
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.ndim == 0:
        weights = np.full(len(X), float(weights))
    if weights.shape != (len(X),):
        raise BadTableError(f"Sample weights must be {len(X)} numbers, one for each record.")
    if not (weights > 0).all() or np.isinf(weights).any():
        wrong = int((~(weights > 0) | np.isinf(weights)).sum())
        raise BadTableError(
            f"Sample weights must be positive and finite; {wrong} are zero, negative, infinite or "
            "missing. A record without weight still counts towards k: give it a small weight or "
            "leave it out of the table."
        )
    return weights


def check_seed(random_state: Any) -> np.random.RandomState:
    """Return the generator that scikit-learn makes of a `random_state`, or say what is wrong."""
    if random_state is None or random_state is np.random:
        return np.random.mtrand._rand  # NumPy's own, as seeded there
    if isinstance(random_state, np.random.RandomState):
        return random_state
    with suppress(TypeError, ValueError):
        if isinstance(random_state, Integral):
            return np.random.RandomState(int(random_state))
    raise BadOptionError("random_state", random_state, "None or a whole number")


def for_kernels(units: Units) -> Integers:
    """Return units as kernels of orders and of MDAV take them: an empty array, which needs no
    machine code of its own, where there are none.
    """
    return NO_UNITS if units is None else units


def split_strata(strata: ArrayLike | None, n: int, k: int, units: Units = None) -> list[Integers]:
    """Return the row numbers of each stratum, in the order of the strata's sorted names."""
    if strata is None:
        return [np.arange(n)]
    names = one_each(strata, n, "The names of the strata")
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise BadTableError(
            f"The strata have {int(np.isnan(names).sum())} missing values. "
            "Give every record a stratum; a name such as 'unknown' will do."
        )
    found, place = np.unique(names, return_inverse=True)
    sizes = np.bincount(place, minlength=len(found))
    held = count_units(place, units)
    if (held < k).any():
        small = {str(found[s]): int(held[s]) for s in np.flatnonzero(held < k)}
        what = "records" if units is None else "units"
        raise GroupSizeError.small_strata(k=k, sizes=small, what=what)
    order = np.argsort(place, kind="stable")
    return np.split(order, np.cumsum(sizes)[:-1])


def refuse_unattainable(
    diversity: Diversity | None, parts: list[Integers], n: int, strata: Any = None
) -> None:
    """Refuse a diversity that a stratum does not have, and one of another number of records."""
    if diversity is None:
        return
    if not isinstance(diversity, Diversity):
        expected = "a tessella.diversity.Diversity, such as Diversity.of(values, l=2)"
        raise BadOptionError("diversity", type(diversity).__name__, expected)
    if len(diversity.codes) != n:
        raise BadTableError(f"The confidential values must be {n}, one for each record.")
    names = None if strata is None else np.asarray(strata)
    diversity.refuse_unattainable(
        None if names is None else {str(names[rows[0]]): rows for rows in parts}
    )


def within_range(X: Floats) -> Floats:
    """Return records in a unit in which no squared distance overflows; as a rule, as they are."""
    largest = float(np.abs(X).max(initial=0.0))
    return X if largest < LARGEST else np.ldexp(X, -int(np.frexp(largest)[1]))


def sse_of(X: Floats, weights: Floats, labels: Integers) -> float:
    """Return the (weighted) sum of squared distances from records to the mean of their group."""
    centres = weighted_centres(X, weights, labels, int(labels.max()) + 1)
    return float(squared_error(X, weights, labels, centres))


class Grouping(Clusterer):
    """Base of all groupings; a method implements `_group`.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The group of each record; groups are numbered in the order of first appearance.
    cluster_centers_ : ndarray of shape (n_groups_, d)
        The (weighted) mean of each group.
    inertia_ : float
        SSE: the (weighted) sum of squared distances from records to their centres.
    n_groups_ : int
        The number of groups.
    gap_ : float
        Share of `inertia_` that is not yet proved unavoidable, computed on demand.
    """

    one_column: ClassVar[bool] = False  # whether it groups tables of one column only
    # What parameters may be; k is checked with the number of records.
    _parameters: ClassVar[Mapping[str, Sequence[Constraint]]] = {}

    def __init__(self, k: int = 3) -> None:
        self.k = k

    def fit(
        self,
        X: ArrayLike,
        y: object = None,  # noqa: ARG002
        *,
        sample_weight: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        units: ArrayLike | None = None,
        diversity: Diversity | None = None,
    ) -> Self:
        """Partition the records.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The records, already on the scale on which distances are meant.
        y : ignored
            Present for scikit-learn.
        sample_weight : array-like of shape (n,), optional
            Positive weights of the records in centres and SSE. k counts records, never weights: a
            record of weight 100 is still one respondent.
        strata : array-like of shape (n,), optional
            Records of different strata never share a group.
        units : array-like of shape (n,), optional
            The unit (household, firm, patient) that each record belongs to: numbers or names. k
            then counts distinct units. A group may hold several records of a unit, and any number
            of records. Each record is a unit of its own if not given.
        diversity : Diversity, optional
            What the confidential values of every group must be besides: see `tessella.diversity`.
            `Search` keeps it in every move; groups of other methods are merged, split and improved
            until they do. l and t count records, also where k counts units.

        Returns
        -------
        self
        """
        check_parameters(self)
        records = check_records(X, self)
        known = check_units(units, len(records))
        k = check_k(self.k, len(records), None if known is None else int(known.max()) + 1)
        weights = check_weights(sample_weight, records)
        parts = split_strata(strata, len(records), k, known)
        refuse_unattainable(diversity, parts, len(records), strata)
        seeds = self._seeds(len(parts))
        self.labels_, self.n_groups_ = np.empty(len(records), dtype=np.int64), 0
        for rows, seed in zip(parts, seeds):
            whole = len(rows) == len(records)
            own = None if known is None else check_units(known[rows], len(rows))
            found = self._group_part(
                within_range(records if whole else records[rows]),
                weights if whole else weights[rows],
                k,
                seed,
                own,
                diversity if diversity is None or whole else diversity.take(rows),
            )
            self.labels_[rows] = found + self.n_groups_
            self.n_groups_ += int(found.max()) + 1
        self._finish(records, weights, parts, k, known, diversity)
        return self

    def _group(
        self, X: Floats, weights: Floats, k: int, random: np.random.Generator, /
    ) -> Integers:
        """Return the group number of each record; n >= 2k. Overridden by each method."""
        raise NotImplementedError

    def _group_units(
        self, X: Floats, weights: Floats, k: int, random: np.random.Generator, units: Integers, /
    ) -> Integers:
        """Return groups of at least k units: those of `_group` mended, unless a method can do it.

        A method whose `_group` takes units as well says so: `_group_units = _group`.
        """
        from .units import regroup

        return regroup(X, weights, self._group(X, weights, k, random), k, random, units)

    def _group_diverse(
        self, X: Floats, weights: Floats, k: int, random: np.random.Generator, units: Units,
        diversity: Diversity, /,
    ) -> Integers:  # fmt: skip
        """Return groups that satisfy `diversity`, too: mended, unless a method can do it."""
        from .diverse import regroup_diverse

        if units is None:
            labels = self._group(X, weights, k, random)
        else:
            labels = self._group_units(X, weights, k, random, units)
        return regroup_diverse(X, weights, labels, k, random, diversity.with_units(units, k))

    def _group_part(
        self, X: Floats, weights: Floats, k: int, seed: int, units: Units,
        diversity: Diversity | None = None,
    ) -> Integers:  # fmt: skip
        if one_group(len(X), k, units):
            return np.zeros(len(X), dtype=np.int64)
        random = np.random.default_rng(seed)
        if diversity is not None:
            return self._group_diverse(X, weights, k, random, units, diversity)
        if units is None:
            return self._group(X, weights, k, random)
        return self._group_units(X, weights, k, random, units)

    def _seeds(self, count: int) -> Integers:
        """One seed for each stratum, drawn from random_state where the method has one."""
        params = self.get_params(deep=False)
        if "random_state" not in params:
            return np.zeros(count, dtype=np.int64)
        seeds: Integers = check_seed(params["random_state"]).randint(2**31 - 1, size=count)
        return seeds

    def _finish(
        self, X: Floats, weights: Floats, parts: list[Integers], k: int, units: Units,
        diversity: Diversity | None,
    ) -> None:  # fmt: skip
        self.labels_ = renumber(self.labels_, self.n_groups_)
        smallest = int(np.bincount(self.labels_, minlength=self.n_groups_).min())
        name = type(self).__name__
        if smallest < k:
            raise BrokenPromiseError.group_too_small(k=k, smallest=smallest, method=name)
        if units is not None and (smallest := int(count_units(self.labels_, units).min())) < k:
            raise BrokenPromiseError.too_few_units(k=k, smallest=smallest, method=name)
        if diversity is not None and not (kept := diversity.kept(self.labels_)).all():
            raise BrokenPromiseError.not_diverse(count=int((~kept).sum()), method=name)
        self.cluster_centers_ = weighted_centres(X, weights, self.labels_, self.n_groups_)
        self.inertia_ = float(squared_error(X, weights, self.labels_, self.cluster_centers_))
        self._fitted_on = (X, weights, parts, units, diversity)

    @property
    def gap_(self) -> float:
        """Share of the SSE not proved unavoidable: (SSE - lower bound) / SSE.

        Computed when asked for, with the quick bound; `lower_bound(X, k, effort=...)` gives
        tighter ones.
        """
        from .bound import bound_of_parts

        refuse_unfitted(self, "labels_")
        if not hasattr(self, "_fitted_on"):
            raise AttributeError(
                "gap_ needs the records, which a saved grouping does not keep. "
                "Ask for gap_ before saving, or call lower_bound(X, k)."
            )
        if self.inertia_ == 0:
            return 0.0
        X, weights, parts, units, diversity = self._fitted_on
        bound = bound_of_parts(X, weights, parts, int(self.k), units, diversity)
        return float(max(0.0, (self.inertia_ - bound) / self.inertia_))

    def __getstate__(self) -> dict[str, Any]:
        """Leave the original rows behind when saved or copied."""
        state = vars(self).copy()
        state.pop("_fitted_on", None)
        return state


class Chance(Protocol):
    """Where random numbers come from: a seeded generator, or the operating system."""

    def random(self, size: int) -> Floats:
        """Return numbers that are uniform in [0, 1)."""
        ...


class SystemChance:
    """Random numbers of the operating system: nobody can draw them again."""

    def random(self, size: int) -> Floats:
        """Return numbers that are uniform in [0, 1), with 53 bits."""
        words = np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
        return np.asarray((words >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def chance_of(random_state: Any) -> Chance:
    """Return the operating system's random numbers for None, else a seeded generator."""
    if random_state is None:
        return SystemChance()
    seed = check_seed(random_state).randint(2**31 - 1, size=4)
    return np.random.default_rng(seed.tolist())
