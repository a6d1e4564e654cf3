"""The models that an intruder teaches with a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import Floats, Integers, Truths

__all__ = ["MANY_CLASSES", "MANY_VALUES", "MODELS", "Target", "predict_target"]


MODELS = ("nearest", "neighbours", "boosting")
NEIGHBOURS = 20
MANY_CLASSES = 30  # boosting grows a tree for each: above, only neighbours are asked
MANY_VALUES = 200  # rarer values of a category are not told apart


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is predicted, when a prediction is right, and the best guess without a model."""

    is_category: bool
    reach: float
    guess: float
    described: str
    n_values: int

    @classmethod
    def of(cls, released: Floats, *, is_category: bool, tolerance: float) -> Target:
        """Describe a target from its released values."""
        seen = np.sort(released[~np.isnan(released)])
        if is_category or not len(seen):
            values, counts = np.unique(seen, return_counts=True)
            guess = float(values[counts.argmax()]) if len(values) else np.nan
            return cls(
                is_category=True,
                reach=0.0,
                guess=guess,
                described="a category",
                n_values=len(values),
            )
        reach = tolerance * float(seen.std())
        ends = np.searchsorted(seen, seen + 2 * reach, side="right") - 1
        start = int((ends - np.arange(len(seen))).argmax())
        return cls(
            is_category=False,
            reach=reach,
            guess=float((seen[start] + seen[ends[start]]) / 2),
            described=f"a number, right within {100 * tolerance:g} % of its standard deviation",
            n_values=len(np.unique(seen)),
        )

    def right(self, guess: Floats, truth: Floats) -> Floats:
        """Return 1 where a prediction is right, 0 where not; a missing truth is never met."""
        if self.is_category:
            same: Floats = (guess == truth).astype(np.float64)
            return same
        near = np.abs(guess - truth) <= self.reach * (1 + 1e-9) + 1e-12 * np.abs(truth)
        return near.astype(np.float64)


def predict_target(
    model: str,
    Z: Floats,
    y: Floats,
    X: Floats,
    nominal: Truths,
    target: Target,
    random_state: int | None,
) -> Floats:
    """Learn y from Z, (m, d), and predict for X, (n, d); NaN is missing, categories are numbers."""
    if model == "boosting":
        return _boosting(Z, y, X, nominal, target, random_state)
    own, asked = _as_points(Z, X, nominal)
    if model == "nearest":
        return _nearest(own, y, asked, target)
    return _neighbours(own, y, asked, target)


def _as_points(Z: Floats, X: Floats, nominal: Truths) -> tuple[Floats, Floats]:
    """Put both tables where differences mean the same: deviations of the release, 0 or 1.

    What is missing stands in the middle, and one column more says that it is missing.
    """
    parts: list[tuple[Floats, Floats]] = []
    for j in range(Z.shape[1]):
        z, x = Z[:, j], X[:, j]
        if nominal[j]:
            most = _most_frequent(z)
            parts += [((z == v) / np.sqrt(2), (x == v) / np.sqrt(2)) for v in most]
            continue
        seen = z[~np.isnan(z)]
        centre, spread = (seen.mean(), seen.std()) if len(seen) else (0.0, 0.0)
        spread = spread if spread > 0 else 1.0
        parts.append((np.nan_to_num((z - centre) / spread), np.nan_to_num((x - centre) / spread)))
        if np.isnan(z).any() or np.isnan(x).any():
            parts.append((np.isnan(z).astype(np.float64), np.isnan(x).astype(np.float64)))
    if not parts:  # categories that the release never has
        return np.zeros((len(Z), 1)), np.zeros((len(X), 1))
    return np.column_stack([a for a, _ in parts]), np.column_stack([b for _, b in parts])


def _most_frequent(z: Floats) -> Floats:
    values, counts = np.unique(z[~np.isnan(z)], return_counts=True)
    kept: Floats = np.sort(values[np.argsort(-counts, kind="stable")[:MANY_VALUES]])
    return kept


def _nearest(own: Floats, y: Floats, asked: Floats, target: Target) -> Floats:
    """Say what the nearest released records say; identical ones speak together."""
    from sklearn.neighbors import NearestNeighbors

    distinct, place = np.unique(own, axis=0, return_inverse=True)
    values = _together(place.reshape(-1), len(distinct), y, target)
    at = NearestNeighbors(n_neighbors=1).fit(distinct).kneighbors(asked, return_distance=False)
    found: Floats = values[at[:, 0]]
    return found


def _together(place: Integers, n: int, y: Floats, target: Target) -> Floats:
    """Return the mean, or the most frequent category (the least of equals), of each group."""
    if not target.is_category:
        return np.bincount(place, weights=y, minlength=n) / np.bincount(place, minlength=n)
    values, code = np.unique(y, return_inverse=True)
    pairs, counts = np.unique(place * len(values) + code.reshape(-1), return_counts=True)
    group = pairs // len(values)
    order = np.lexsort((pairs, -counts, group))
    first = np.searchsorted(group[order], np.arange(n))
    best: Floats = values[pairs[order][first] % len(values)]
    return best


def _neighbours(own: Floats, y: Floats, asked: Floats, target: Target) -> Floats:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    k = min(NEIGHBOURS, len(y))
    if target.is_category:
        values, code = np.unique(y, return_inverse=True)
        model: Any = KNeighborsClassifier(n_neighbors=k)
        found: Floats = values[model.fit(own, code.reshape(-1)).predict(asked)]
        return found
    model = KNeighborsRegressor(n_neighbors=k)
    return np.asarray(model.fit(own, y).predict(asked), dtype=np.float64)


def _boosting(
    Z: Floats, y: Floats, X: Floats, nominal: Truths, target: Target, random_state: int | None
) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    values, code = np.unique(y, return_inverse=True)
    if len(values) == 1 or (target.is_category and len(values) > MANY_CLASSES):
        own, asked = _as_points(Z, X, nominal)
        return _neighbours(own, y, asked, target)
    has = ~np.isnan(Z).all(axis=0)
    if not has.any():
        return np.full(len(X), target.guess)
    Z, X, categories = _for_trees(Z[:, has], X[:, has], nominal[has])
    options = {
        "categorical_features": categories,
        "early_stopping": False,
        "random_state": random_state,
    }
    if target.is_category:
        model: Any = HistGradientBoostingClassifier(**options)
    else:
        model = HistGradientBoostingRegressor(**options)
    # Its threads wait for each other in loops: on a machine that is shared, one is faster.
    with threadpool_limits(1, user_api="openmp"):
        guess = model.fit(Z, code.reshape(-1) if target.is_category else y).predict(X)
    found: Floats = values[guess] if target.is_category else np.asarray(guess, dtype=np.float64)
    return found


def _for_trees(Z: Floats, X: Floats, nominal: Truths) -> tuple[Floats, Floats, Truths]:
    """Number categories from 0; those that the release never has, or rarely, are unknown."""
    Z, X = Z.copy(), X.copy()
    for j in np.flatnonzero(nominal):
        values = _most_frequent(Z[:, j])
        for table in (Z, X):
            at = np.searchsorted(values, table[:, j]).astype(np.float64)
            seen = np.isin(table[:, j], values)
            table[:, j] = np.where(seen, at, np.nan)
    return Z, X, nominal
