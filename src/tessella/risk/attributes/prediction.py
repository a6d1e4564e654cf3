"""Predicting a confidential value: what an intruder learns from the release about a person.

A model that predicts well is no disclosure by itself: it may tell what is true of everybody like
him, whether or not he is in the table. So each person is predicted twice: by models that learned
from the whole release, and by models that learned from a release *without his record*. What the
first get right beyond the second, the record itself has given away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import SEED, Number, Whole, parameters
from ..._types import Floats, Integers, Name, Truths
from ...exceptions import BadOptionError, BadTableError, LinkageError
from ...frame import View
from ...schema import Schema
from ..aligned import AlignedTables, align_tables
from ..estimate import Estimate
from .models import MANY_CLASSES, MANY_VALUES, MODELS, Target, predict_target

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Prediction", "predict_confidential"]


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
    outsiders : Estimate or None
        The same for persons of the original who are not in the release (where `id` tells them),
        by the whole release.
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
    outsiders: Estimate | None = None
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


@parameters(
    {"release": "masked"},
    tolerance=[Number(least=0)],
    folds=[Whole(2)],
    random_state=[SEED],
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
    matters, hold some persons back before masking and give `id`: `outsiders` is about them.

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
    aim = Target.of(released, is_category=_is_category(goal, before, target), tolerance=tolerance)
    attacked = np.flatnonzero(~np.isnan(truth))
    taught = ~np.isnan(released)
    if not len(attacked) or taught.sum() < 2:
        raise BadTableError(
            f"Column {target!r} has no values to predict, or fewer than two to learn from. Choose "
            "another target=."
        )
    file = _File(sides=sides, released=released, truth=truth, target=target, aim=aim)
    parts = _parts(len(truth), folds, random_state)
    tries = {model: _try(file, model, parts, random_state) for model in tried}
    outsiders = np.setdiff1d(np.arange(len(sides.B)), sides.truth)
    outside = goal.B[outsiders, 0]
    outsiders, outside = outsiders[~np.isnan(outside)], outside[~np.isnan(outside)]
    strange: dict[str, float] = {}
    if len(outsiders):
        for model in tried:
            guess = file.predict(model, taught, sides.B[outsiders], random_state)
            strange[model] = float(aim.right(guess, outside).sum())
    return _result(file, tries, attacked, folds, strange, len(outsiders))


@dataclass(frozen=True, kw_only=True)
class _File:
    """What the intruder has, and what is true."""

    sides: AlignedTables
    released: Floats
    truth: Floats
    target: Name
    aim: Target

    def predict(self, model: str, learn: Truths, X: Floats, random_state: int | None) -> Floats:
        """Teach a model with some released records and predict for X."""
        if not learn.any():
            return np.full(len(X), self.aim.guess)
        Z, y = self.sides.A[learn], self.released[learn]
        return predict_target(model, Z, y, X, self.sides.nominal, self.aim, random_state)


@dataclass(frozen=True, kw_only=True)
class _Try:
    """The predictions of one model with and without the own record, and where they are right."""

    guess: Floats
    guess_without: Floats
    right: Floats
    right_without: Floats


def _try(file: _File, model: str, parts: Integers, random_state: int | None) -> _Try:
    X, taught = file.sides.B[file.sides.truth], ~np.isnan(file.released)
    guess = file.predict(model, taught, X, random_state)
    without = np.full(len(X), np.nan)
    for part in range(int(parts.max()) + 1):
        out = parts == part
        without[out] = file.predict(model, taught & ~out, X[out], random_state)
    return _Try(
        guess=guess,
        guess_without=without,
        right=file.aim.right(guess, file.truth),
        right_without=file.aim.right(without, file.truth),
    )


def _result(
    file: _File,
    tries: Mapping[str, _Try],
    attacked: Integers,
    folds: int,
    strange: Mapping[str, float],
    n_strange: int,
) -> Prediction:
    best = max(tries, key=lambda name: float(tries[name].right[attacked].mean()))
    # Without the own record he is given the best model too, or the difference would flatter.
    fair = max(tries, key=lambda name: float(tries[name].right_without[attacked].mean()))
    n, aim = len(attacked), file.aim
    true, mine, other = file.truth[attacked], tries[best], tries[fair]
    baseline = float(aim.right(np.full(n, aim.guess), true).mean())
    notes = _notes(file, tuple(tries), n)
    without = Estimate.of(
        float(other.right_without[attacked].sum()),
        n,
        baseline=baseline,
        attack=f"predict from a release without the person ({fair}, {folds} parts)",
        assumptions=notes,
        exact=True,
    )
    outsiders = None
    if strange:
        top = max(strange, key=lambda name: strange[name])
        outsiders = Estimate.of(
            strange[top],
            n_strange,
            baseline=baseline,
            attack=f"predict persons who are not in the release ({top})",
            assumptions=notes,
        )
    numbers = not aim.is_category
    result: Prediction = Prediction.of(
        float(mine.right[attacked].sum()),
        n,
        baseline=baseline,
        attack=f"predict from the release ({best})",
        assumptions=notes,
        exact=True,
        without=without,
        outsiders=outsiders,
        model=best,
        by_model={
            name: (float(one.right[attacked].mean()), float(one.right_without[attacked].mean()))
            for name, one in tries.items()
        },
        r2=_r2(true, mine.guess[attacked]) if numbers else None,
        r2_without=_r2(true, other.guess_without[attacked]) if numbers else None,
        attacked=attacked,
        chance=mine.right[attacked],
        chance_without=other.right_without[attacked],
    )
    return result


def _notes(file: _File, tried: tuple[str, ...], n: int) -> list[str]:
    sides, aim = file.sides, file.aim
    notes = [
        f"known: {', '.join(map(str, sides.columns))}",
        f"target: {file.target}, {aim.described}",
        f"models tried: {', '.join(tried)}",
        *sides.notes,
    ]
    wide = [
        repr(name)
        for j, name in enumerate(sides.columns)
        if sides.nominal[j] and len(np.unique(sides.A[:, j])) > MANY_VALUES
    ]
    if wide:
        notes.append(f"of {', '.join(wide)}, models tell the {MANY_VALUES} most frequent values")
    if aim.is_category and aim.n_values > MANY_CLASSES and "boosting" in tried:
        notes.append(f"{aim.n_values:,} categories are too many to boost: neighbours instead")
    if n < len(file.truth):
        gone = len(file.truth) - n
        notes.append(f"{gone:,} persons have no value of the target and are left out")
    return notes


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
    before: View, after: View, target: Name, known: Any, id: Name | None, schema: Schema | None
) -> list[Name]:
    if known is not None:
        single = isinstance(known, str) or not hasattr(known, "__iter__")
        names = [known] if single else list(known)
        if target in names:
            raise BadOptionError("known", known, f"variables other than the target {target!r}")
        if not names:
            raise BadOptionError("known", known, "at least one variable")
        return names
    if schema is not None:
        roles = schema.names("quasi-identifier")
        names = [
            n for n in roles if before.table.has(n) and after.table.has(n) and n not in (target, id)
        ]
    else:
        names = [n for n in before.columns if after.table.has(n) and n not in (target, id)]
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
