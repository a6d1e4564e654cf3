"""Specific losses: what a given analysis makes of the masked table, beside the original.

An *analysis* is any function of a table that returns a number, an array of numbers, or a mapping of
names to numbers. A regression is the one that is ready made: how far the intervals of its
coefficients overlap. Columns become the matrix of a model, numbers as they are, categories as yes
or no for each; both tables get the same columns, so that coefficients can be compared one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np
from scipy.special import expit, stdtrit

from .._parameters import Number, OneOf, parameters
from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadTableError, UnpairedError
from .base import ComparedTables, Loss, Reading, compare, worst


def specific_loss(
    f: Callable[[Any], Any],
    original: Any,
    masked: Any,
    *,
    distance: Callable[[Floats, Floats], float] | None = None,
    name: str | None = None,
) -> Loss:
    """Measure how far the result of an analysis has moved.

    Parameters
    ----------
    f : callable
        Takes a table of the kind given and returns a number, an array of finite numbers, or a
        mapping of names to numbers. It should give the same answer for the same table: seed it.
    original, masked : any
        What f takes; they need not have the same records.
    distance : callable, optional
        Takes the two results as arrays of one dimension and returns a number of at least 0, and 0
        for equal results.
    name : str, optional
        What to call the measure; otherwise the name of f.

    Returns
    -------
    Loss
        From 0 to 1 with the default distance. `by_column` has each entry of the result.

    Notes
    -----
    loss = |f(X) - f(Y)| / (|f(X)| + |f(Y)|), with Euclidean norms: 0 for the same result, 1 where
    one is zero and the other not, or where they are opposite. Entry by entry it is
    |a - b| / (|a| + |b|), the distance of Canberra.

    References
    ----------
    V. Torra, Y. Endo and S. Miyamoto (2009). On the comparison of some fuzzy clustering methods
    for privacy preserving data mining: towards the development of specific information loss
    measures. Kybernetika 45(3).

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import specific_loss
    >>> x, y = np.array([[1.0], [3.0]]), np.array([[2.0], [4.0]])
    >>> specific_loss(lambda table: table.mean(), x, y).value
    0.2
    """
    called = name or getattr(f, "__name__", "analysis").strip("<>")
    names, before = _result(f(original), "original")
    others, after = _result(f(masked), "masked table")
    if names != others or before.shape != after.shape:
        raise UnpairedError(
            f"The analysis gives {len(before)} numbers for the original and {len(after)} for the "
            "masked table, or other names. Write it so that both results have the same entries."
        )
    gap = np.abs(before - after)
    size = np.abs(before) + np.abs(after)
    entries = np.divide(gap, size, out=np.zeros_like(gap), where=size > 0)
    by_column = dict(zip(names, entries.tolist()))
    if distance is None:
        unit = float(size.max()) or 1.0  # squares of very small numbers would vanish
        norms = [float(np.linalg.norm(part / unit)) for part in (gap, before, after)]
        value = min(1.0, norms[0] / ((norms[1] + norms[2]) or 1.0))
        formula = "the distance of the two results over the sum of their norms"
    else:
        value = float(distance(before, after))
        formula = f"the distance {getattr(distance, '__name__', 'given')!r} of the two results"
    return Loss(
        name=called,
        value=value,
        by_column=by_column,
        formula=formula,
        source="V. Torra, Y. Endo and S. Miyamoto (2009). Specific information loss measures. "
        "Kybernetika 45(3)",
        range=(0.0, 1.0 if distance is None else math.inf),
        verdict=f"the result of {called!r} moved by {value:.3g}{worst(by_column)}",
    )


def _result(given: Any, table: str) -> tuple[list[Name], Floats]:
    """Return names and numbers of what an analysis gave."""
    names: list[Name] | None = None
    if isinstance(given, Mapping):
        names, given = list(given), list(given.values())
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadTableError(
            f"The analysis of the {table} gives {type(given).__name__}, which is not numbers. "
            "Return a number, an array of numbers, or a mapping of names to numbers."
        ) from None
    if not numbers.size or not np.isfinite(numbers).all():
        raise BadTableError(
            f"The analysis of the {table} gives nothing, or numbers that are missing or infinite. "
            "Return finite numbers only."
        )
    if names is None:
        names = list(range(numbers.size)) if numbers.ndim < 2 else list(np.ndindex(numbers.shape))
    return names, numbers.reshape(-1)


Kind = Literal["linear", "logistic"]

STEPS = 100  # of Newton's method; a likelihood with a maximum needs about ten
BLOCK = 65_536  # records for which squares of features are held at a time
TABLES = ("original", "masked table")


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """The same matrix for both tables, over the records that both know.

    `names` says what each column is, `rows` which records are in.
    """

    names: tuple[Name, ...]
    before: Floats
    after: Floats
    rows: Truths
    weights: Floats | None


def design(
    pair: ComparedTables, *, without: Iterable[Name] = (), new_categories: bool = False
) -> Design:
    """Return the columns of a pair as matrices, without some that must be known all the same.

    Categories that only the masked table has get a column, or are refused.
    """
    aside = set(without)
    for name in aside:
        pair.original.table.place(name, who="The model")
    columns: list[tuple[Name, Any, Any]] = []  # what it is, and its values in both tables
    rows = np.logical_and.reduce([side for name in pair.columns for side in pair.known(name)])
    if not rows.any():
        raise BadTableError("No record is known in all columns of both tables.")
    for name in pair.columns:
        if name in aside:
            continue
        if name in set(pair.numbers):
            cells = pair.number(name)
            columns.append((name, cells.before[rows], cells.after[rows]))
            continue
        codes = pair.category(name)
        if len(codes.labels) > codes.n_original and not new_categories:
            raise BadTableError(
                f"The masked table has categories in {name!r} that the original does not have, so "
                "that no coefficient can be compared with theirs. Leave the column out."
            )
        one, other = codes.before[rows], codes.after[rows]
        for place, label in list(enumerate(codes.labels))[1:]:  # the first is the reference
            columns.append((f"{name}={label}", one == place, other == place))
    if not columns:
        raise BadTableError("There is no column left as a feature. Name some with features=[...].")
    names, *sides = zip(*columns)
    before, after = (np.column_stack(side).astype(np.float64, copy=False) for side in sides)
    return Design(
        names=names,
        before=before,
        after=after,
        rows=rows,
        weights=None if pair.weights is None else pair.weights[rows],
    )


def target_classes(
    pair: ComparedTables, name: Name, rows: Truths
) -> tuple[Integers, Integers, list[str]]:
    """Return a column of both tables as classes 0, 1, ... with their labels; numbers too."""
    if name in set(pair.numbers):
        cells = pair.number(name)
        before, after = cells.before[rows], cells.after[rows]
        distinct, codes = np.unique(np.concatenate([before, after]), return_inverse=True)
        one, other = np.split(codes.reshape(-1), 2)
        return one, other, [f"{value:g}" for value in distinct]
    column = pair.category(name)
    one, other = column.before[rows].astype(np.int64), column.after[rows].astype(np.int64)
    return one, other, column.labels


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """Coefficients, the intercept first, their standard errors, and degrees of freedom."""

    coefficients: Floats
    errors: Floats
    freedom: float


@parameters(kind=[OneOf(get_args(Kind))], level=[Number(above=0, below=1)])
def regression_loss(
    original: Any,
    masked: Any,
    *,
    target: Name,
    features: Iterable[Name] | None = None,
    kind: Kind = "linear",
    level: float = 0.95,
    **reading: Unpack[Reading],
) -> Loss:
    """Measure how far the confidence intervals of a regression's coefficients have moved apart.

    Parameters
    ----------
    original, masked, **reading
        As in `measure`. Records that lack a value in any column used are left out.
    target : name
        The column to explain: numbers, or for a logistic regression two categories.
    features : iterable of names, optional
        The columns that explain it, otherwise all others. A category is a yes or no for each but
        the first.
    kind : {"linear", "logistic"}, default "linear"
        Least squares, or maximum likelihood for a target of two categories.
    level : float, default 0.95
        The level of the intervals.

    Returns
    -------
    Loss
        1 minus the mean overlap, from 0 (the same intervals) to 1 (no interval meets its
        counterpart). `by_column` has each coefficient, `details` the mean distance of coefficients
        in standard errors of the original's.

    Notes
    -----
    With intervals (l, u) and (l', u') of a coefficient and (i, j) what they have in common,
    overlap = 1/2 ((j - i) / (u - l) + (j - i) / (u' - l')), and 0 where they do not meet. Weights
    are taken as relative precisions, scaled to sum to the number of records.

    References
    ----------
    A. F. Karr, C. N. Kohnen, A. Oganian, J. P. Reiter and A. P. Sanil (2006). A framework for
    evaluating the utility of data altered to protect confidentiality. The American Statistician
    60(3), 224-232.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import regression_loss
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> regression_loss(x, x, target=2).value
    0.0
    """
    pair = compare(original, masked, **with_target(reading, target, features))
    matrix = design(pair, without=[target])
    if kind == "linear":
        if target not in set(pair.numbers):
            raise BadTableError(
                f"The target {target!r} is not a column of numbers. Give one that is, or "
                'kind="logistic" for a target of two categories.'
            )
        cells = pair.number(target)
        fit, targets = fit_linear, (cells.before[matrix.rows], cells.after[matrix.rows])
    else:
        one, other, labels = target_classes(pair, target, matrix.rows)
        if len(labels) != 2:
            raise BadTableError(
                f"A logistic regression explains two categories; the target {target!r} has "
                f"{len(labels)} in the two tables."
            )
        fit, targets = fit_logistic, (one.astype(np.float64), other.astype(np.float64))
    fits = [
        fit(X, y, matrix.weights, table)
        for X, y, table in zip((matrix.before, matrix.after), targets, TABLES)
    ]
    overlaps = _overlap(fits[0], fits[1], level)
    names: list[Name] = ["(intercept)", *matrix.names]
    by_column = dict(zip(names, (1 - overlaps).tolist()))
    value = 1 - float(overlaps.mean())
    gap = np.abs(fits[0].coefficients - fits[1].coefficients)
    apart = np.divide(gap, fits[0].errors, out=np.zeros_like(gap), where=fits[0].errors > 0)
    return Loss(
        name=f"{kind}_regression",
        value=value,
        by_column=by_column,
        formula=f"1 minus the mean overlap of the {100 * level:g} % confidence intervals of the "
        "coefficients",
        source="A. F. Karr, C. N. Kohnen, A. Oganian, J. P. Reiter and A. P. Sanil (2006). "
        "The American Statistician 60(3), 224-232",
        verdict=f"confidence intervals overlap by {100 * (1 - value):.3g} % on average, "
        f"{int((overlaps == 0).sum())} of {len(overlaps)} not at all{worst(by_column)}",
        details={"coefficients apart, in standard errors": float(apart.mean())},
    )


def with_target(reading: Reading, target: Name, features: Iterable[Name] | None) -> Reading:
    """Return the reading of the target and its features only."""
    if features is not None:
        names = [features] if isinstance(features, str) else list(features)
        if target in names:
            raise BadTableError(f"The target {target!r} is also among the features.")
        return {**reading, "columns": [*names, target]}
    if (columns := reading.get("columns")) is not None:
        return {**reading, "columns": list(dict.fromkeys([*columns, target]))}
    return reading


def _overlap(first: Fit, second: Fit, level: float) -> Floats:
    ends = []
    for fit in (first, second):
        half = stdtrit(fit.freedom, 0.5 + level / 2) * fit.errors  # the quantile of Student's t
        ends.append((fit.coefficients - half, fit.coefficients + half))
    (low, high), (low_after, high_after) = ends
    common = np.minimum(high, high_after) - np.maximum(low, low_after)
    shares = []
    for width in (high - low, high_after - low_after):
        point = np.where(low == low_after, 1.0, 0.0)  # a perfect fit: an interval of no width
        shares.append(np.divide(common, width, out=point, where=width > 0))
    overlaps: Floats = np.clip((shares[0] + shares[1]) / 2, 0.0, 1.0)
    return overlaps


def fit_linear(X: Floats, y: Floats, weights: Floats | None, table: str) -> Fit:
    """Fit by least squares, on columns of mean 0 and spread 1, and scale back."""
    n, p = X.shape
    if n <= p + 1:
        raise BadTableError(
            f"A regression on {p} features needs more than {p + 1} records, and has {n}."
        )
    Z, mean, scale = _scaled(X)
    root = np.ones(n) if weights is None else np.sqrt(weights / weights.mean())
    A = np.column_stack([np.ones(n), Z]) * root[:, None]
    inverse = _inverse(A.T @ A, table)
    solution = np.linalg.lstsq(A, y * root, rcond=None)[0]
    freedom = n - p - 1
    residual = y * root - A @ solution
    covariance = inverse * float(residual @ residual) / freedom
    return _scale_back(solution, covariance, mean, scale, freedom)


def fit_logistic(X: Floats, y: Floats, weights: Floats | None, table: str) -> Fit:
    """Fit by maximum likelihood with Newton's method, on columns of mean 0 and spread 1."""
    n = len(X)
    if not 0 < y.sum() < n:
        raise BadTableError(f"The target has one category only in the {table}.")
    Z, mean, scale = _scaled(X)
    w = np.ones(n) if weights is None else weights / weights.mean()
    solution, inverse = newton(np.column_stack([np.ones(n), Z]), y, w, table)
    return _scale_back(solution, inverse, mean, scale, np.inf)


def newton(A: Floats, y: Floats, w: Floats, table: str) -> tuple[Floats, Floats]:
    """Maximise the likelihood of a logistic model; return coefficients and their covariance."""
    solution = np.zeros(A.shape[1])
    best = -float(w.sum()) * np.log(2.0)
    inverse = _inverse(_gram(A, w / 4), table)
    for _ in range(STEPS):
        step = inverse @ (A.T @ (w * (y - expit(A @ solution))))
        size = 1.0
        while True:  # halve a step that goes too far
            tried = solution + size * step
            score = A @ tried
            likelihood = float(w @ (y * score - np.logaddexp(0.0, score)))
            if likelihood >= best - 1e-9 * abs(best) or size < 1e-6:
                break
            size /= 2
        solution, best = tried, likelihood
        p = expit(A @ solution)
        try:
            inverse = _inverse(_gram(A, w * p * (1 - p)), table)
        except BadTableError:  # it had an inverse at the start: chances have gone to 0 and 1
            break
        if np.abs(size * step).max() < 1e-9 * (1 + np.abs(solution).max()):
            return solution, inverse
    raise BadTableError(
        f"The logistic regression has no maximum in the {table}: the features separate the "
        "categories, or nearly. Leave out the feature that does."
    )


def _gram(A: Floats, weights: Floats) -> Floats:
    """Return A^T diag(w) A, a block of records at a time."""
    total = np.zeros((A.shape[1], A.shape[1]))
    for start in range(0, len(A), BLOCK):
        block = A[start : start + BLOCK]
        total += (block * weights[start : start + BLOCK, None]).T @ block
    return total


def _inverse(information: Floats, table: str) -> Floats:
    """Invert an information matrix, or say that features depend on each other."""
    diagonal = np.sqrt(np.maximum(np.diag(information), 1e-300))
    scaled = information / np.outer(diagonal, diagonal)
    values, vectors = np.linalg.eigh(scaled)
    if values[0] < 1e-12 * values[-1]:
        raise BadTableError(
            f"The features of the {table} depend on each other, or one is constant, so that no "
            "single set of coefficients fits. Leave out the column that follows from the others."
        )
    inverse: Floats = (vectors / values) @ vectors.T / np.outer(diagonal, diagonal)
    return inverse


def _scaled(X: Floats) -> tuple[Floats, Floats, Floats]:
    mean = X.mean(axis=0)
    scale = X.std(axis=0)
    scale[scale == 0] = 1.0
    return (X - mean) / scale, mean, scale


def _scale_back(
    solution: Floats, covariance: Floats, mean: Floats, scale: Floats, freedom: float
) -> Fit:
    """Return coefficients and errors in the units of the columns."""
    back = np.diag(np.concatenate([[1.0], 1 / scale]))
    back[0, 1:] = -mean / scale
    errors = np.sqrt(np.maximum(np.diag(back @ covariance @ back.T), 0.0))
    return Fit(coefficients=back @ solution, errors=errors, freedom=freedom)
