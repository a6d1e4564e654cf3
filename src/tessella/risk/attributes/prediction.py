"""Predicting a confidential value: what an intruder learns from the release about a person.

A model that predicts well is no disclosure by itself: it may tell what is true of everybody like
him, whether or not he is in the table. So each person is predicted twice: by models that learned
from the whole release, and by models that learned from a release *without his record*. What the
first get right beyond the second, the record itself has given away.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...exceptions import BadOptionError, BadTableError, LinkageError, OutOfRangeError
from ...frame import Table
from ...schema import Schema
from ..anonymity.keys import check_whole
from ..estimate import Estimate
from ..sides import Sides, read_sides
from .models import MANY_CLASSES, MANY_VALUES, MODELS, Target, predict_target

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Prediction", "predict_confidential"]

Name = Hashable
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, repr=False)
class Prediction(Estimate):
    """How often a confidential value is predicted from the release.

    `value` is the share of persons whose value is predicted rightly (numbers: within the
    tolerance) by the best model that learned from the whole release. Besides the fields of
    `Estimate`:

    Parameters
    ----------
    without : Estimate
        The same by models that learned without the person's record: inference about people like
        him, which the release allows about everybody.
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

    without: Estimate
    model: str
    by_model: Mapping[str, tuple[float, float]]
    r2: float | None = None
    r2_without: float | None = None
    attacked: Integers = field(repr=False)
    chance: Floats = field(repr=False)
    chance_without: Floats = field(repr=False)

    @property
    def disclosed(self) -> float:
        """What the own records have given away: `value` less that without them."""
        return self.value - self.without.value

    @property
    def records(self) -> pd.DataFrame:
        """One line for each attacked person. Confidential: it says about whom he is right."""
        import pandas as pd

        return pd.DataFrame(
            {
                "masked": self.attacked,
                "chance": self.chance,
                "without": self.chance_without,
            }
        )

    def __str__(self) -> str:
        return f"{super().__str__()}\nwithout the own record {100 * self.without.value:.1f} %"

    __repr__ = __str__


def predict_confidential(
    original: Any,
    release: Any,
    target: Name,
    *,
    known: Sequence[Name] | Name | None = None,
    models: Sequence[str] = MODELS,
    tolerance: float = 0.1,
    folds: int = 5,
    id: Name | None = None,
    schema: Schema | None = None,
    random_state: int | None = 0,
) -> Prediction:
    """Predict a confidential variable of the persons from the release.

    Parameters
    ----------
    original, release : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
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
    rest of his part too, so `without` is a little low and `disclosed` a little high: the careful
    side.

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
    n_folds = check_whole("folds", folds, 2)
    before, after = Table.read(original), Table.read(release)
    for table, which in ((before, "the original"), (after, "the release")):
        table.place(target, who=f"target= (in {which})")
    columns = _known(before, after, target, known, id, schema)
    sides = read_sides(before, after, known=columns, id=id, schema=schema)
    goal = read_sides(before, after, known=[target], id=id, schema=schema)
    truth, released = goal.B[goal.truth, 0], goal.A[:, 0]
    aim = Target.of(
        released, is_category=_is_category(goal, before, target, schema), tolerance=tolerance
    )
    attacked = np.flatnonzero(~np.isnan(truth))
    taught = ~np.isnan(released)
    if not len(attacked) or taught.sum() < 2:
        raise BadTableError(
            f"Column {target!r} has no values to predict, or fewer than two to learn from. Choose "
            "another target=."
        )
    parts = _parts(len(truth), n_folds, random_state)
    rights: dict[str, tuple[Floats, Floats]] = {}
    guesses: dict[str, tuple[Floats, Floats]] = {}
    for model in tried:
        X, own = sides.B[sides.truth], np.full(len(truth), np.nan)
        whole = predict_target(model, sides.A[taught], released[taught], X, sides.nominal, aim,
                               random_state)  # fmt: skip
        for part in range(int(parts.max()) + 1):
            out = parts == part
            learn = taught & ~out
            if not learn.any():
                own[out] = aim.guess
                continue
            own[out] = predict_target(model, sides.A[learn], released[learn], X[out], sides.nominal,
                                      aim, random_state)  # fmt: skip
        guesses[model] = (whole[attacked], own[attacked])
        rights[model] = (aim.right(whole, truth)[attacked], aim.right(own, truth)[attacked])
    best = max(tried, key=lambda name: float(rights[name][0].mean()))
    # Without the own record he is given the best model too, or the difference would flatter.
    fair = max(tried, key=lambda name: float(rights[name][1].mean()))
    return _result(sides, aim, target, truth, attacked, rights, guesses, best, fair, n_folds)


def _result(
    sides: Sides,
    aim: Target,
    target: Name,
    truth: Floats,
    attacked: Integers,
    rights: Mapping[str, tuple[Floats, Floats]],
    guesses: Mapping[str, tuple[Floats, Floats]],
    best: str,
    fair: str,
    folds: int,
) -> Prediction:
    n, true = len(attacked), truth[attacked]
    notes = [
        f"known: {', '.join(map(str, sides.columns))}",
        f"target: {target}, {aim.described}",
        f"models tried: {', '.join(rights)}",
        *sides.notes,
    ]
    wide = [
        repr(name)
        for j, name in enumerate(sides.columns)
        if sides.nominal[j] and len(np.unique(sides.A[:, j])) > MANY_VALUES
    ]
    if wide:
        notes.append(f"of {', '.join(wide)}, models tell the {MANY_VALUES} most frequent values")
    if aim.is_category and aim.n_values > MANY_CLASSES and "boosting" in rights:
        notes.append(f"{aim.n_values:,} categories are too many to boost: neighbours instead")
    if n < len(truth):
        notes.append(f"{len(truth) - n:,} persons have no value of the target and are left out")
    baseline = float(aim.right(np.full(n, aim.guess), true).mean())
    without = Estimate.of(
        float(rights[fair][1].sum()),
        n,
        baseline=baseline,
        attack=f"predict from a release without the person ({fair}, {folds} parts)",
        assumptions=notes,
        exact=True,
    )
    explained = [None if aim.is_category else _r2(true, one) for one in guesses[best]]
    result: Prediction = Prediction.of(
        float(rights[best][0].sum()),
        n,
        baseline=baseline,
        attack=f"predict from the release ({best})",
        assumptions=notes,
        exact=True,
        without=without,
        model=best,
        by_model={m: (float(a.mean()), float(b.mean())) for m, (a, b) in rights.items()},
        r2=explained[0],
        r2_without=explained[1],
        attacked=attacked,
        chance=rights[best][0],
        chance_without=rights[fair][1],
    )
    return result


def _r2(true: Floats, guess: Floats) -> float:
    rest, all_ = float(((true - guess) ** 2).sum()), float(((true - true.mean()) ** 2).sum())
    return 1 - rest / all_ if all_ > 0 else float(rest == 0)


def _parts(n: int, folds: int, random_state: int | None) -> Integers:
    parts = np.arange(n) % min(folds, n)
    np.random.default_rng(random_state).shuffle(parts)
    return parts


def _checked_models(models: Sequence[str]) -> tuple[str, ...]:
    tried = (models,) if isinstance(models, str) else tuple(models)
    if not tried or any(model not in MODELS for model in tried) or len(set(tried)) < len(tried):
        raise BadOptionError("models", models, f"some of {', '.join(map(repr, MODELS))}, each once")
    return tried


def _known(
    before: Table, after: Table, target: Name, known: Any, id: Name | None, schema: Schema | None
) -> list[Name]:
    if known is not None:
        single = isinstance(known, str) or not hasattr(known, "__iter__")
        names = [known] if single else list(known)
        if target in names:
            raise BadOptionError("known", known, f"variables other than the target {target!r}")
        if not names:
            raise OutOfRangeError("known", known, "at least one variable")
        return names
    if schema is not None:
        roles = schema.names("quasi-identifier")
        names = [n for n in roles if before.has(n) and after.has(n) and n not in (target, id)]
    else:
        names = [n for n in before.columns if after.has(n) and n not in (target, id)]
    if not names:
        raise LinkageError.nothing_common(
            [name for name in before.columns if name not in (target, id)],
            [name for name in after.columns if name not in (target, id)],
        )
    return names


def _is_category(goal: Sides, before: Table, target: Name, schema: Schema | None) -> bool:
    """Say whether the target is predicted as a category: text, categories, flags, few codes."""
    if bool(goal.nominal[0]) or not before.facts(target).numeric:
        return True
    if schema is not None:
        return schema[target].kind in ("nominal", "ordinal")
    whole = before.facts(target).family == "integer"
    return whole and len(np.unique(goal.B[~np.isnan(goal.B)])) <= 10
