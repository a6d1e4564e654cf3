"""What models learn of a masked table: clusters, classifiers, and which records are masked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from itertools import combinations_with_replacement
from typing import Any, Literal, Unpack, get_args

import numpy as np
from scipy.special import expit

from .._parameters import OneOf, Whole, parameters
from .._types import Floats, Name
from ..exceptions import BadOptionError, BadTableError
from ..fuzzy.base import check_clusters
from ..grouping.base import check_seed
from .base import Loss, Reading, compare, worst
from .specific import BLOCK, Design, design, target_classes, with_target

Method = Literal["k-means", "fuzzy"]


@parameters(method=[OneOf(get_args(Method))], n_init=[Whole(1)])
def clustering_loss(
    original: Any,
    masked: Any,
    *,
    n_clusters: int = 5,
    method: Method = "k-means",
    model: Any = None,
    n_init: int = 10,
    random_state: Any = 0,
    **reading: Unpack[Reading],
) -> Loss:
    """Measure how many records change their cluster, or how far memberships move.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema` and `on_unpaired`, as in `measure`; weights are not
        used. Records that lack a value are left out.
    n_clusters : int, default 5
        The number of clusters.
    method : {"k-means", "fuzzy"}, default "k-means"
        Crisp clusters, or memberships.
    model : clusterer of tessella.fuzzy, optional
        For "fuzzy"; otherwise FuzzyCMeans(n_clusters, m=1.2).
    n_init : int, default 10
        Starts on each side.
    random_state : int, RandomState or None, default 0
        Seeds the starts; both sides start alike.

    Notes
    -----
    Columns of both tables are put on the scale of the original's mean and standard deviation.
    k-means: the least share of records whose cluster changes, over all ways to match clusters one
    to one; it is below 1. Each side also starts from the other's centres, and the better fit
    counts, so that a local optimum is not taken for a loss. Fuzzy: d2 / (2 n), with d2 the sum
    over records and clusters of squared differences of memberships; `details` has d1, d2, and
    the floor that two fits of the original differ by.

    References
    ----------
    M. Meila (2007). Comparing clusterings: an information based distance. Journal of Multivariate
    Analysis 98(5), 873-895, for the classification error. V. Torra, Y. Endo and S. Miyamoto
    (2009). On the comparison of some fuzzy clustering methods for privacy preserving data mining.
    Kybernetika 45(3).

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import clustering_loss
    >>> x = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> clustering_loss(x, np.array([[0.0], [10.5], [10.5], [10.5]]), n_clusters=2).value
    0.25
    """
    matrix = design(compare(original, masked, **reading), new_categories=True)
    mean, scale = matrix.before.mean(axis=0), matrix.before.std(axis=0)
    scale[scale == 0] = 1.0
    before, after = ((side - mean) / scale for side in (matrix.before, matrix.after))
    n_clusters = check_clusters(n_clusters, before)
    if method == "fuzzy":
        return _fuzzy(before, after, n_clusters, model, n_init, random_state)
    return _k_means(before, after, n_clusters, n_init, random_state)


def _k_means(before: Floats, after: Floats, c: int, n_init: int, random_state: Any) -> Loss:
    from scipy.optimize import linear_sum_assignment
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    seed = int(check_seed(random_state).randint(2**31 - 1))

    def fit(table: Floats, start: Any, n_start: int) -> Any:
        with warnings.catch_warnings():
            # A masked table may have fewer different records than clusters.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return KMeans(c, init=start, n_init=n_start, random_state=seed).fit(table)

    one, other = fit(before, "k-means++", n_init), fit(after, "k-means++", n_init)
    crossed = fit(before, other.cluster_centers_, 1)
    one = crossed if crossed.inertia_ < one.inertia_ * (1 - 1e-7) else one
    crossed = fit(after, one.cluster_centers_, 1)
    other = crossed if crossed.inertia_ <= other.inertia_ * (1 + 1e-7) else other
    counts = np.zeros((c, c))
    np.add.at(counts, (one.labels_, other.labels_), 1)
    kept = counts[linear_sum_assignment(-counts)]
    sizes = counts.sum(axis=1)
    by_cluster: dict[Name, float] = {
        f"cluster {i + 1}": 1 - kept[i] / max(sizes[i], 1) for i in range(c)
    }
    value = 1 - float(kept.sum()) / len(before)
    return Loss(
        name="k_means",
        value=value,
        by_column=by_cluster,
        formula="the least share of records whose cluster changes, over all ways to match clusters",
        source="M. Meila (2007). Comparing clusterings. Journal of Multivariate Analysis 98(5), "
        "873-895",
        verdict=f"{100 * value:.3g} % of the records change their cluster{worst(by_cluster)}",
        details={"inertia before": float(one.inertia_), "inertia after": float(other.inertia_)},
    )


def _fuzzy(before: Floats, after: Floats, c: int, model: Any, n_init: int, seed: Any) -> Loss:
    from ..fuzzy import FuzzyCMeans, cluster_loss

    chosen = FuzzyCMeans(c, m=1.2) if model is None else model
    found = cluster_loss(before, after, chosen, n_init=n_init, random_state=seed)
    d1, d2, n = float(found.d1 or 0.0), float(found.d2 or 0.0), len(before)
    floor = float(found.floor.d2 or 0.0) / (2 * n)
    value = min(1.0, d2 / (2 * n))
    return Loss(
        name="fuzzy_clustering",
        value=value,
        formula="the sum of squared differences of memberships, over twice the number of records",
        source="V. Torra, Y. Endo and S. Miyamoto (2009). On the comparison of some fuzzy "
        "clustering methods for privacy preserving data mining. Kybernetika 45(3)",
        verdict=f"memberships moved by {value:.3g}; two fits of the original differ by {floor:.3g}",
        details={"d1": d1, "d2": d2, "floor": floor, "floor d1": float(found.floor.d1 or 0.0)},
    )


def classifier_loss(
    original: Any,
    masked: Any,
    *,
    target: Name,
    features: Iterable[Name] | None = None,
    classifier: Any = None,
    score: Callable[[Any, Any], float] | None = None,
    folds: int = 5,
    random_state: Any = 0,
    **reading: Unpack[Reading],
) -> Loss:
    """Measure how much worse a classifier is when it learns from the masked table.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema` and `on_unpaired`, as in `measure`; weights are not
        used. Records that lack a value are left out.
    target : name
        The column to predict.
    features : iterable of names, optional
        The columns to predict it from, otherwise all others.
    classifier : scikit-learn classifier, optional
        Otherwise a random forest of 100 trees with at least 5 records in a leaf.
    score : callable, optional
        Takes true and predicted classes and returns a number up to 1; otherwise the share that is
        right.
    folds : int, default 5
        Each record is predicted by classifiers that did not learn from it.
    random_state : int, RandomState or None, default 0
        Seeds folds and forest.

    Returns
    -------
    Loss
        The score of learning from the original minus that of learning from the masked table, both
        predicting original records that were held back. Below 0 the masked table teaches better.

    References
    ----------
    J. Herranz, S. Matwin, J. Nin and V. Torra (2010). Classifying data from protected statistical
    datasets. Computers & Security 29(8), 875-890.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import classifier_loss
    >>> x = np.column_stack([np.arange(40.0), np.arange(40) >= 20])
    >>> classifier_loss(x, x, target=1).value
    0.0
    """
    from sklearn.base import clone, is_classifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import accuracy_score
    from sklearn.model_selection import KFold

    seed = int(check_seed(random_state).randint(2**31 - 1))
    chosen = classifier
    if chosen is None:
        chosen = RandomForestClassifier(100, min_samples_leaf=5, random_state=seed)
    if not (hasattr(chosen, "fit") and is_classifier(chosen)):
        raise BadOptionError("classifier", chosen, "a scikit-learn classifier")
    pair = compare(original, masked, **with_target(reading, target, features))
    matrix = design(pair, without=[target], new_categories=True)
    one, other, labels = target_classes(pair, target, matrix.rows)
    n = len(one)
    if not Whole(2, n).accepts(folds):
        raise BadOptionError("folds", folds, f"a whole number from 2 to {n}, the records")
    if len(np.unique(one)) < 2 or len(labels) > max(50, n // 5):
        raise BadTableError(
            f"The target {target!r} has {len(labels)} different values; a classifier needs at "
            "least two classes, and several records of each."
        )
    predicted = np.empty((2, n), dtype=np.int64)
    for learn, test in KFold(folds, shuffle=True, random_state=seed).split(matrix.before):
        for side, (X, y) in enumerate(((matrix.before, one), (matrix.after, other))):
            fitted = clone(chosen).fit(X[learn], y[learn])
            predicted[side, test] = fitted.predict(matrix.before[test])
    rate = accuracy_score if score is None else score
    before, after = (float(rate(one, side)) for side in predicted)
    by_class: dict[Name, float] = {}
    for place, label in enumerate(labels):
        here = one == place
        if here.any():
            right = (predicted[:, here] == place).mean(axis=1)
            by_class[f"{target}={label}"] = float(right[0] - right[1])
    value = before - after
    return Loss(
        name="classifier",
        value=value,
        by_column=by_class,
        formula="the score of a classifier that learns from the original minus that of one that "
        "learns from the masked table, on original records that were held back",
        source="J. Herranz, S. Matwin, J. Nin and V. Torra (2010). Classifying data from protected "
        "statistical datasets. Computers & Security 29(8), 875-890",
        range=(-1.0, 1.0),
        verdict=f"learnt from the masked table, the score is {after:.3g} instead of {before:.3g}",
        details={"score before": before, "score after": after},
    )


STEPS = 50


@parameters(degree=[Whole(1, 2)])
def propensity_loss(
    original: Any, masked: Any, *, degree: int = 2, **reading: Unpack[Reading]
) -> Loss:
    """Measure how well a logistic model tells masked records from original ones: pMSE.

    Parameters
    ----------
    original, masked, **reading
        As in `measure`. Records that lack a value in any column are left out.
    degree : {1, 2}, default 2
        Features as they are, or with their squares and products too. With 1 the model sees little
        more than means, which microaggregation keeps.

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
            scores[side, here] = expit(features @ solution)
        return scores

    def _look(self, solution: Floats) -> tuple[float, Floats, Floats]:
        """Return likelihood, gradient and information at some coefficients."""
        likelihood, gradient = 0.0, np.zeros(len(solution))
        information = np.zeros((len(solution), len(solution)))
        for side, _, features, weights in self._blocks():
            score = features @ solution
            p = expit(score)
            likelihood += float(weights @ (side * score - np.logaddexp(0.0, score)))
            gradient += features.T @ (weights * (side - p))
            information += (features * (weights * p * (1 - p))[:, None]).T @ features
        return likelihood, gradient, information
