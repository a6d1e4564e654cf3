"""What is asked of all that a grouping or a clusterer is given: records, k, weights, strata, seed.

Messages never repeat a value of the table: they end up in logs.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from .._types import Floats, Integers
from ..exceptions import BadOptionError, BadTableError, GroupSizeError

__all__ = ["check_k", "check_records", "check_seed", "check_weights", "split_strata"]


def check_records(X: Any, estimator: Any = None, *, reset: bool = True) -> Floats:
    """Return records as a table of floats, checked against what an estimator was fitted on.

    The array is writeable: numba takes a read-only one (pandas gives such) for another type, and
    would compile everything again.
    """
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


def check_k(k: object, n: int) -> int:
    """Return k as an int that n records can honour, or say why not."""
    if isinstance(k, bool | np.bool_) or not isinstance(k, Integral):
        raise GroupSizeError.not_an_integer(k)
    size = int(k)
    if size < 2:
        raise GroupSizeError.too_small(size)
    if size > n:
        raise GroupSizeError.more_than_records(size, n)
    return size


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
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError:
        raise BadOptionError("random_state", random_state, "None or a whole number") from None
    return generator


def split_strata(strata: ArrayLike | None, n: int, k: int) -> list[Integers]:
    """Return the row numbers of each stratum, in the order of the strata's sorted names."""
    if strata is None:
        return [np.arange(n)]
    names = column_or_1d(np.asarray(strata))
    check_consistent_length(names, np.empty(n))
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise BadTableError(
            f"The strata have {int(np.isnan(names).sum())} missing values. "
            "Give every record a stratum; a name such as 'unknown' will do."
        )
    found, place = np.unique(names, return_inverse=True)
    sizes = np.bincount(place, minlength=len(found))
    if (sizes < k).any():
        small = {str(found[s]): int(sizes[s]) for s in np.flatnonzero(sizes < k)}
        raise GroupSizeError.small_strata(k, small)
    order = np.argsort(place, kind="stable")
    return np.split(order, np.cumsum(sizes)[:-1])
