"""Specific losses: what a given analysis makes of the masked table, beside the original.

An *analysis* is any function of a table that returns a number, an array of numbers, or a mapping of
names to numbers.

The propensity score: can a model tell masked records from original ones?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations_with_replacement
from typing import Any, Unpack

import numpy as np

from .._parameters import Whole, parameters
from .._types import Floats, Name
from ..exceptions import BadTableError, UnpairedError
from .compared import Reading, compare
from .regression import BLOCK, Design, design
from .result import Loss, worst

__all__ = ["propensity_loss", "specific_loss"]

STEPS = 50


@parameters(degree=[Whole(1, 2)])
def propensity_loss(
    original: Any, masked: Any, *, degree: int = 2, **reading: Unpack[Reading]
) -> Loss:
    """Measure how well a logistic model tells masked records from original ones: pMSE.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
    degree : {1, 2}, default 2
        Features as they are, or with their squares and products too. With 1 the model sees little
        more than means, which microaggregation keeps.
    **reading
        `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`. Records that lack a value
        in any column are left out.

    Returns
    -------
    Loss
        From 0 (no record can be recognised) to 0.25 (every one). `details` has the ratio to what
        is expected of a sample drawn from the original; below 1, masking shows less than sampling.

    Notes
    -----
    Both tables stacked, N = 2 n rows, a logistic model for "is masked" gives each row a score p_i:
    pMSE = 1/N sum of (p_i - 1/2)^2, weighted if there are weights. With q coefficients beside the
    intercept, a sample of n records drawn from the original has an expected q / (8 N). Features
    that follow from others are left out of the model, and do not count in q. Where features
    separate the tables, coefficients have no limit; they are held where the likelihood has come
    within a billionth of the best.

    References
    ----------
    M.-J. Woo, J. P. Reiter, A. Oganian and A. F. Karr (2009). Global measures of data utility for
    microdata masked for disclosure limitation. Journal of Privacy and Confidentiality 1(1),
    111-124. J. Snoke, G. M. Raab, B. Nowok, C. Dibben and A. Slavkovic (2018). General and
    specific utility measures for synthetic data. JRSS A 181(3), 663-688, for the expectation.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import propensity_loss
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> propensity_loss(x, x).value
    0.0
    """
    matrix = design(compare(original, masked, **reading), new_categories=True)
    terms = _Terms(matrix, degree)
    scores = terms.scores()
    weights = np.ones(len(matrix.before)) if matrix.weights is None else matrix.weights
    squares = sum(((side - 0.5) ** 2) @ weights for side in scores)
    value = min(0.25, float(squares / (2 * weights.sum())))
    n = float(weights.sum() ** 2 / (weights**2).sum())
    expected = terms.rank / (8 * 2 * n)
    ratio = value / expected if expected else 0.0
    return Loss(
        name="propensity",
        value=value,
        formula="the mean squared difference from 1/2 of the scores of a logistic model that tells "
        "masked records from original ones",
        source="M.-J. Woo, J. P. Reiter, A. Oganian and A. F. Karr (2009). Global measures of data "
        "utility. Journal of Privacy and Confidentiality 1(1), 111-124",
        range=(0.0, 0.25),
        verdict=f"masked records can be recognised with pMSE {value:.3g}, {ratio:.3g} times what a "
        "sample of the original would show",
        details={"ratio": ratio, "expected": expected, "coefficients": terms.rank},
    )


class _Terms:
    """The features of a propensity model, made a block of records at a time.

    Features are centred and scaled over both tables, then rotated to the directions that vary, so
    that features that follow from others do no harm.
    """

    def __init__(self, matrix: Design, degree: int) -> None:
        self.sides = (matrix.before, matrix.after)
        self.n, self.degree = len(matrix.before), degree
        w = np.ones(self.n) if matrix.weights is None else matrix.weights
        self.weights = w / w.mean()
        self.mean = (matrix.before.mean(axis=0) + matrix.after.mean(axis=0)) / 2
        scale = np.sqrt(sum(((side - self.mean) ** 2).mean(axis=0) for side in self.sides) / 2)
        self.scale = np.where(scale > 0, scale, 1.0)
        d = matrix.before.shape[1]
        self.pairs = list(combinations_with_replacement(range(d), 2)) if degree == 2 else []
        self.turn = np.eye(d + len(self.pairs))
        self.centre = np.zeros(d + len(self.pairs))
        self._rotate()

    @property
    def rank(self) -> int:
        """Count the coefficients beside the intercept."""
        return self.turn.shape[1]

    def _rotate(self) -> None:
        size = len(self.centre)
        total, square = np.zeros(size), np.zeros((size, size))
        for _, _, features, _ in self._raw_blocks():
            total += features.sum(axis=0)
            square += features.T @ features
        mean = total / (2 * self.n)
        covariance = square / (2 * self.n) - np.outer(mean, mean)
        deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        varies = deviation > 1e-9 * np.maximum(1.0, np.abs(mean))
        inverse = np.where(varies, 1 / np.where(varies, deviation, 1.0), 0.0)
        values, vectors = np.linalg.eigh(covariance * np.outer(inverse, inverse))
        keep = values > 1e-9 * max(values[-1], 1e-300)
        self.centre = mean
        self.turn = inverse[:, None] * vectors[:, keep] / np.sqrt(values[keep])

    def _raw_blocks(self) -> Any:
        """Give side, place, features before rotation, and weights, a block at a time."""
        for side, table in enumerate(self.sides):
            for start in range(0, self.n, BLOCK // 4):
                here = slice(start, start + BLOCK // 4)
                z = (table[here] - self.mean) / self.scale
                products = [z[:, j] * z[:, k] for j, k in self.pairs]
                yield side, here, np.column_stack([z, *products]), self.weights[here]

    def _blocks(self) -> Any:
        for side, here, features, weights in self._raw_blocks():
            turned = (features - self.centre) @ self.turn
            yield side, here, np.column_stack([np.ones(len(turned)), turned]), weights

    def scores(self) -> Floats:
        """Fit the model with Newton's method and return the scores of both tables, (2, n)."""
        solution = np.zeros(self.rank + 1)
        best, gradient, information = self._look(solution)
        for _ in range(STEPS):
            ridge = 1e-9 * np.trace(information) / len(solution)
            step = np.linalg.solve(information + ridge * np.eye(len(solution)), gradient)
            size = 1.0
            while size > 1e-4:  # halve a step that goes too far
                likelihood, *found = self._look(solution + size * step)
                if likelihood > best:
                    break
                size /= 2
            else:
                break
            gained = likelihood - best
            solution, best = solution + size * step, likelihood
            gradient, information = found
            if gained < 1e-9 * self.n:
                break
        scores = np.empty((2, self.n))
        for side, here, features, _ in self._blocks():
            scores[side, here] = _expit(features @ solution)
        return scores

    def _look(self, solution: Floats) -> tuple[float, Floats, Floats]:
        """Return likelihood, gradient and information at some coefficients."""
        likelihood, gradient = 0.0, np.zeros(len(solution))
        information = np.zeros((len(solution), len(solution)))
        for side, _, features, weights in self._blocks():
            score = features @ solution
            p = _expit(score)
            likelihood += float(weights @ (side * score - np.logaddexp(0.0, score)))
            gradient += features.T @ (weights * (side - p))
            information += (features * (weights * p * (1 - p))[:, None]).T @ features
        return likelihood, gradient, information


def _expit(score: Floats) -> Floats:
    from scipy.special import expit

    chances: Floats = expit(score)
    return chances


Analysis = Callable[[Any], Any]
Distance = Callable[[Floats, Floats], float]


def specific_loss(
    f: Analysis,
    original: Any,
    masked: Any,
    *,
    distance: Distance | None = None,
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
