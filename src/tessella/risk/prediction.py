"""Predicting a confidential value: what an intruder learns from the release about a person.

A model that predicts well is no disclosure by itself: it may tell what is true of everybody like
him, whether or not he is in the table. So each person is predicted twice: by models that learned
from the whole release, and by models that learned from a release *without his record*. What the
first get right beyond the second, the record itself has given away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._parameters import SEED, Number, Whole, parameters
from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadOptionError, BadTableError, LinkageError
from ..frame import View
from ..schema import Schema
from .aligned import AlignedTables, align_tables, as_list
from .estimate import Estimate, RecordEstimate

MODELS = ("nearest", "neighbours", "boosting")
NEIGHBOURS = 20
MANY_CLASSES = 30  # boosting grows a tree for each: above, only neighbours are asked
MANY_VALUES = 200  # rarer values of a category are not told apart


@dataclass(frozen=True, kw_only=True, repr=False)
class Prediction(RecordEstimate):
    """How often a confidential value is predicted from the release.

    `value` is the share of persons whose value is predicted rightly (numbers: within the
    tolerance) by the best model that learned from the whole release. Besides the fields of
    `Estimate`:

    Parameters
    ----------
    model : str
        The model that is right most often, of those tried.
    by_model : dict of str to (float, float)
        For each model, the share with and without the own record.
    r2, r2_without : float or None
        For numbers, the share of variance explained; None for categories.
    attacked : array of shape (n,)
        The rows of the release whose persons were attacked.
    chance, chance_without : arrays of shape (n,)
        1 where the prediction is right, else 0.
    """

    _columns = ("masked=attacked", "chance", "without=chance_without")
    model: str
    by_model: Mapping[str, tuple[float, float]]
    r2: float | None = None
    r2_without: float | None = None
    attacked: Integers = field(repr=False)
    chance: Floats = field(repr=False)
    chance_without: Floats = field(repr=False)

    @property
    def without(self) -> Estimate:
        """The same by models that learned without the person's record.

        It is inference about people like him, which the release allows about everybody.
        """
        return self.controls["without"]

    @property
    def outsiders(self) -> Estimate | None:
        """The same for persons of the original who are not in the release, where `id` tells them.

        It is the control that counts: they have nothing in the release that could be disclosed.
        """
        return self.controls.get("outsiders")

    @property
    def disclosed(self) -> float:
        """What the own records have given away: `value` less that without them."""
        return self.value - self.without.value


@parameters(
    {"release": "masked"}, tolerance=[Number(least=0)], folds=[Whole(2)], random_state=[SEED]
)
def predict_confidential(
    original: Any,
    masked: Any,
    target: Name,
    *,
    known: Sequence[Name] | Name | None = None,
    models: Sequence[str] = MODELS,
    tolerance: float = 0.1,
    folds: int = 5,
    id: Name | None = None,
    schema: Schema | None = None,
    random_state: int | None = None,
) -> Prediction:
    """Predict a confidential variable of the persons from the release.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        What is true, and what is released. Row i belongs to row i unless `id` is given.
    target : name
        The confidential variable, in both tables.
    known : sequence of names, optional
        The variables that the intruder knows of each person (their true values) and that the
        release has; otherwise the schema's quasi-identifiers, or all but the target.
    models : sequence of {"nearest", "neighbours", "boosting"}
        What he tries: the value of the nearest record (all that are equally masked together), the
        20 nearest, and gradient boosting. The one that is right most often counts.
    tolerance : float
        For numbers: a prediction within this share of the release's standard deviation is right.
    folds : int
        How many parts the persons are cut into, to learn without them.
    id, schema
        As in `link`.
    random_state : int or None
        Seeds the parts and the boosting.

    Notes
    -----
    The intruder learns y = g(z) from released records (z, y) and predicts g(x_i) from the true
    known values x_i of person i:

        value   = (1/n) Σ_i [g(x_i) is right about person i],  g from all released records,
        without = (1/n) Σ_i [g_(-i)(x_i) is right],            g_(-i) without the part of person i.

    `baseline` guesses without a model: the most frequent released category, or the number that most
    released values are within the tolerance of. `disclosed` = value - without is about the person;
    without - baseline is what the table says of people like him. Models without a person miss the
    rest of his part too, so `without` is a little low. His row is left out, but what it did to
    others is not: a group's mean keeps his share of it, and `without` is then too high. Where this
    matters, hold some persons back before masking and give `id`: `outsiders` is about them, and
    `excess` = (value - outsiders) / (1 - outsiders) is what the release discloses.

    References
    ----------
    M. Giomi, F. Boenisch, C. Wehmeyer and B. Tasnádi (2023) A unified framework for quantifying
    privacy risk in synthetic data. Proceedings on Privacy Enhancing Technologies 2023(2), 312-328,
    for the comparison with persons who are not in the release.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tessella.risk import predict_confidential
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.normal(size=200), "ill": rng.integers(0, 2, 200)})
    >>> schema_free = predict_confidential(table, table, "ill", models=["nearest"])
    >>> schema_free.value, 0.35 < schema_free.without.value < 0.65
    (1.0, True)
    """
    tried = _checked_models(models)
    before, after = View.of(original, schema), View.of(masked, schema)
    for view, which in ((before, "the original"), (after, "the masked table")):
        view.table.place(target, who=f"target= (in {which})")
    columns = _known(before, after, target, known, id, schema)
    sides = align_tables(before, after, known=columns, id=id, schema=schema)
    goal = align_tables(before, after, known=[target], id=id, schema=schema)
    truth, released = goal.B[goal.truth, 0], goal.A[:, 0]
    attacked, taught = np.flatnonzero(~np.isnan(truth)), ~np.isnan(released)
    if not len(attacked) or taught.sum() < 2:
        raise BadTableError(
            f"Column {target!r} has no values to predict, or fewer than two to learn from. Choose "
            "another target=."
        )
    aim = _Target.of(released[taught], _is_category(goal, before, target), tolerance)

    def guess(model: str, learn: Truths, X: Floats) -> Floats:
        """Teach a model with some released records and predict for X."""
        if not learn.any():
            return np.full(len(X), aim.guess)
        return _predict(model, sides.A[learn], released[learn], X, sides.nominal, aim, random_state)

    X, true, n = sides.B[sides.truth], truth[attacked], len(attacked)
    parts = np.arange(len(X)) % min(folds, len(X))
    np.random.default_rng(random_state).shuffle(parts)
    guesses, without = {}, {}
    for model in tried:
        guesses[model] = guess(model, taught, X)[attacked]
        apart = np.full(len(X), np.nan)
        for part in range(int(parts.max()) + 1):
            out = parts == part
            apart[out] = guess(model, taught & ~out, X[out])
        without[model] = apart[attacked]
    right = {model: aim.right(guesses[model], true) for model in tried}
    right_without = {model: aim.right(without[model], true) for model in tried}
    best = max(tried, key=lambda model: float(right[model].mean()))
    # Without the own record he is given the best model too, or the difference would flatter.
    fair = max(tried, key=lambda model: float(right_without[model].mean()))
    notes = _notes(sides, target, aim, tried, len(truth) - n)
    baseline = float(aim.right(np.full(n, aim.guess), true).mean())
    common: dict[str, Any] = {"baseline": baseline, "assumptions": notes}
    strangers = np.setdiff1d(np.flatnonzero(~np.isnan(goal.B[:, 0])), sides.truth)
    controls = {}
    if len(strangers):
        others = {model: guess(model, taught, sides.B[strangers]) for model in tried}
        hits = {m: float(aim.right(others[m], goal.B[strangers, 0]).sum()) for m in tried}
        top = max(tried, key=lambda model: hits[model])
        attack = f"predict persons who are not in the release ({top})"
        controls["outsiders"] = Estimate.of(hits[top], len(strangers), attack=attack, **common)
    attack = f"predict from a release without the person ({fair}, {folds} parts)"
    controls["without"] = Estimate.of(
        float(right_without[fair].sum()), n, attack=attack, exact=True, **common
    )
    return Prediction.of_chances(
        right[best],
        attack=f"predict from the release ({best})",
        controls=controls,
        model=best,
        by_model={m: (float(right[m].mean()), float(right_without[m].mean())) for m in tried},
        r2=None if aim.is_category else _r2(true, guesses[best]),
        r2_without=None if aim.is_category else _r2(true, without[fair]),
        attacked=attacked,
        chance_without=right_without[fair],
        **common,
    )


def _notes(
    sides: AlignedTables, target: Name, aim: _Target, tried: tuple[str, ...], gone: int
) -> list[str]:
    notes = [
        f"known: {', '.join(map(str, sides.columns))}",
        f"target: {target}, {aim.described}",
        f"models tried: {', '.join(tried)}",
        *sides.notes,
    ]
    counts = [len(np.unique(column)) for column in sides.A.T]
    many = np.flatnonzero(sides.nominal & (np.array(counts) > MANY_VALUES))
    if wide := [repr(sides.columns[j]) for j in many]:
        notes.append(f"of {', '.join(wide)}, models tell the {MANY_VALUES} most frequent values")
    if aim.is_category and aim.n_values > MANY_CLASSES and "boosting" in tried:
        notes.append(f"{aim.n_values:,} categories are too many to boost: neighbours instead")
    if gone:
        notes.append(f"{gone:,} persons have no value of the target and are left out")
    return notes


def _r2(true: Floats, guess: Floats) -> float:
    rest, all_ = float(((true - guess) ** 2).sum()), float(((true - true.mean()) ** 2).sum())
    return 1 - rest / all_ if all_ > 0 else float(rest == 0)


def _checked_models(models: Sequence[str]) -> tuple[str, ...]:
    tried = (models,) if isinstance(models, str) else tuple(models)
    if not tried or any(model not in MODELS for model in tried) or len(set(tried)) < len(tried):
        raise BadOptionError("models", models, f"some of {', '.join(map(repr, MODELS))}, each once")
    return tried


def _known(
    before: View, after: View, target: Name, known: Any, id: Name | None, schema: Schema | None
) -> list[Name]:
    if known is not None:
        names = list(as_list(known))
        if target in names:
            raise BadOptionError("known", known, f"variables other than the target {target!r}")
        if not names:
            raise BadOptionError("known", known, "at least one variable")
        return names
    listed = before.columns if schema is None else schema.names("quasi-identifier")
    shared = [name for name in listed if before.table.has(name) and after.table.has(name)]
    names = [name for name in shared if name not in (target, id)]
    if not names:
        raise LinkageError.nothing_common(
            original=[name for name in before.columns if name not in (target, id)],
            masked=[name for name in after.columns if name not in (target, id)],
        )
    return names


def _is_category(goal: AlignedTables, before: View, target: Name) -> bool:
    """Say whether the target is predicted as a category: text, categories, flags, few codes."""
    if bool(goal.nominal[0]) or not before.table.facts(target).numeric:
        return True
    if before.schema is not None:
        return before.kind(target) in ("nominal", "ordinal")
    whole = before.table.facts(target).family == "integer"
    return whole and len(np.unique(goal.B[~np.isnan(goal.B)])) <= 10


@dataclass(frozen=True)
class _Target:
    """What is predicted, when a prediction is right, and the best guess without a model."""

    is_category: bool
    reach: float
    guess: float
    described: str
    n_values: int

    @classmethod
    def of(cls, released: Floats, is_category: bool, tolerance: float) -> _Target:
        """Describe a target from its released values."""
        values, counts = np.unique(released, return_counts=True)
        if is_category:
            reach, guess, described = 0.0, float(values[counts.argmax()]), "a category"
        else:
            seen = np.sort(released)
            reach = tolerance * float(seen.std())
            ends = np.searchsorted(seen, seen + 2 * reach, side="right") - 1
            start = int((ends - np.arange(len(seen))).argmax())
            guess = float((seen[start] + seen[ends[start]]) / 2)
            described = f"a number, right within {100 * tolerance:g} % of its standard deviation"
        return cls(is_category, reach, guess, described, len(values))

    def right(self, guess: Floats, truth: Floats) -> Floats:
        """Return 1 where a prediction is right, 0 where not; a missing truth is never met."""
        if self.is_category:
            near: Truths = guess == truth
        else:
            near = np.abs(guess - truth) <= self.reach * (1 + 1e-9) + 1e-12 * np.abs(truth)
        return near.astype(np.float64)


def _predict(
    model: str, Z: Floats, y: Floats, X: Floats, nominal: Truths, target: _Target, seed: int | None
) -> Floats:
    """Learn y from Z, (m, d), and predict for X, (n, d); NaN is missing, categories are numbers."""
    if model == "boosting":
        return _boosting(Z, y, X, nominal, target, seed)
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
    return np.sort(values[np.argsort(-counts, kind="stable")[:MANY_VALUES]])


def _nearest(own: Floats, y: Floats, asked: Floats, target: _Target) -> Floats:
    """Say what the nearest released records say; identical ones speak together."""
    from sklearn.neighbors import NearestNeighbors

    distinct, place = np.unique(own, axis=0, return_inverse=True)
    values = _together(place.reshape(-1), len(distinct), y, target)
    at = NearestNeighbors(n_neighbors=1).fit(distinct).kneighbors(asked, return_distance=False)
    found: Floats = values[at[:, 0]]
    return found


def _together(place: Integers, n: int, y: Floats, target: _Target) -> Floats:
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


def _neighbours(own: Floats, y: Floats, asked: Floats, target: _Target) -> Floats:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    kind = KNeighborsClassifier if target.is_category else KNeighborsRegressor
    return _fitted(kind(n_neighbors=min(NEIGHBOURS, len(y))), own, y, asked, target)


def _fitted(model: Any, Z: Floats, y: Floats, X: Floats, target: _Target) -> Floats:
    """Fit a model of scikit-learn, to numbered categories or to numbers, and predict."""
    if not target.is_category:
        return np.asarray(model.fit(Z, y).predict(X), dtype=np.float64)
    values, code = np.unique(y, return_inverse=True)
    found: Floats = values[model.fit(Z, code.reshape(-1)).predict(X)]
    return found


def _boosting(
    Z: Floats, y: Floats, X: Floats, nominal: Truths, target: _Target, seed: int | None
) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    n_values = len(np.unique(y))
    if n_values == 1 or (target.is_category and n_values > MANY_CLASSES):
        own, asked = _as_points(Z, X, nominal)
        return _neighbours(own, y, asked, target)
    has = ~np.isnan(Z).all(axis=0)
    if not has.any():
        return np.full(len(X), target.guess)
    Z, X = _for_trees(Z[:, has], X[:, has], nominal[has])
    kind = HistGradientBoostingClassifier if target.is_category else HistGradientBoostingRegressor
    model = kind(categorical_features=nominal[has], early_stopping=False, random_state=seed)
    # Its threads wait for each other in loops: on a machine that is shared, one is faster.
    with threadpool_limits(1, user_api="openmp"):
        return _fitted(model, Z, y, X, target)


def _for_trees(Z: Floats, X: Floats, nominal: Truths) -> tuple[Floats, Floats]:
    """Number categories from 0; those that the release never has, or rarely, are unknown."""
    Z, X = Z.copy(), X.copy()
    for j in np.flatnonzero(nominal):
        values = _most_frequent(Z[:, j])
        for table in (Z, X):
            at = np.searchsorted(values, table[:, j]).astype(np.float64)
            seen = np.isin(table[:, j], values)
            table[:, j] = np.where(seen, at, np.nan)
    return Z, X
