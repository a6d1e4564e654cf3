"""What masking does to clusters and to classifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, Unpack, get_args

import numpy as np

from .._parameters import OneOf, Whole, parameters
from .._types import Floats, Name
from ..exceptions import BadOptionError, BadTableError, ClusterCountError
from ..grouping.base import check_seed
from .compared import Reading, compare
from .regression import design, target_classes, with_target
from .result import Loss, worst

__all__ = ["classifier_loss", "clustering_loss"]

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
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
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
    **reading
        `columns`, `schema` and `on_unpaired`, as in `measure`; weights are not used. Records that
        lack a value are left out.

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
    whole = isinstance(n_clusters, int | np.integer) and not isinstance(n_clusters, bool)
    if not whole or n_clusters < 1:
        raise ClusterCountError.not_an_integer(c=n_clusters)
    matrix = design(compare(original, masked, **reading), new_categories=True)
    mean, scale = matrix.before.mean(axis=0), matrix.before.std(axis=0)
    scale[scale == 0] = 1.0
    before, after = ((side - mean) / scale for side in (matrix.before, matrix.after))
    if n_clusters > len(before):
        raise ClusterCountError.more_than_records(c=n_clusters, n=len(before))
    if method == "fuzzy":
        return _fuzzy(before, after, n_clusters, model, n_init, random_state)
    return _k_means(before, after, n_clusters, n_init, random_state)


def _k_means(before: Floats, after: Floats, c: int, n_init: int, random_state: Any) -> Loss:
    from sklearn.cluster import KMeans

    seed = int(check_seed(random_state).randint(2**31 - 1))
    distinct = len(np.unique(before, axis=0))
    if distinct < c:
        raise ClusterCountError.more_than_distinct(c=c, distinct=distinct, n=len(before))

    def fit(table: Floats, start: Any, n_start: int) -> Any:
        return _quietly(KMeans(c, init=start, n_init=n_start, random_state=seed), table)

    one, other = fit(before, "k-means++", n_init), fit(after, "k-means++", n_init)
    crossed = fit(before, other.cluster_centers_, 1)
    one = crossed if crossed.inertia_ < one.inertia_ * (1 - 1e-7) else one
    crossed = fit(after, one.cluster_centers_, 1)
    other = crossed if crossed.inertia_ <= other.inertia_ * (1 + 1e-7) else other
    counts = np.zeros((c, c))
    np.add.at(counts, (one.labels_, other.labels_), 1)
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-counts)
    kept = counts[rows, columns]
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
        range=(0.0, 1.0),
        verdict=f"{100 * value:.3g} % of the records change their cluster{worst(by_cluster)}",
        details={"inertia before": float(one.inertia_), "inertia after": float(other.inertia_)},
    )


def _quietly(model: Any, table: Floats) -> Any:
    """Fit k-means; that a masked table has fewer different records than clusters is no news."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(table)


def _fuzzy(
    before: Floats, after: Floats, c: int, model: Any, n_init: int, random_state: Any
) -> Loss:
    from ..fuzzy import FuzzyCMeans, cluster_loss

    chosen = FuzzyCMeans(c, m=1.2) if model is None else model
    found = cluster_loss(before, after, chosen, n_init=n_init, random_state=random_state)
    d1, d2, n = float(found.d1 or 0.0), float(found.d2 or 0.0), len(before)
    floor = float(found.floor.d2 or 0.0) / (2 * n)
    value = min(1.0, d2 / (2 * n))
    return Loss(
        name="fuzzy_clustering",
        value=value,
        formula="the sum of squared differences of memberships, over twice the number of records",
        source="V. Torra, Y. Endo and S. Miyamoto (2009). On the comparison of some fuzzy "
        "clustering methods for privacy preserving data mining. Kybernetika 45(3)",
        range=(0.0, 1.0),
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
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
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
    **reading
        `columns`, `schema` and `on_unpaired`, as in `measure`; weights are not used. Records that
        lack a value are left out.

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
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= n:
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
