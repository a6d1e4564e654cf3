"""Order, cut, and order again from the groups found.

A walk that visits the records group by group holds the groups as stretches, so the best cut of the
walk is never worse than the groups were. Each round therefore lowers the error or leaves it; what
differs between the methods is where the walk begins and how it goes through a group.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import ThreadpoolController

from .._estimator import clone
from .._parameters import SEED, Number, OneOf, Whole, check
from .._types import Floats, Integers
from ..exceptions import BadOptionError
from ..kernels.neighbours import all_rows
from ..kernels.ordering import cut_units, keep_walking, repeat_ordering
from ..parallel import each
from .base import Grouping, Units, for_kernels
from .ordering import ORDERS, farthest_from_centre

Outcome = tuple[Integers, float]  # labels, SSE

GOLDEN = (np.sqrt(5) - 1) / 2
WALKED = 10  # outcomes of RepOrdMic that are walked again, the best ones

# What one start may cost grows with n; so that large tables end, there are fewer of them.
FULL = 5_000  # records up to which every start is taken, and the size of the largest first group
SAMPLE = 20_000  # records on which k-means looks for its centres, at most
OWN = ("mdav", "cbfs", "nearest", "pca", "zscore", "tour")  # orders that are tried if none is given
SLOW_ORDERS = ("mdav", "cbfs")  # not tried beyond that many records unless asked for


def first_records(X: Floats, weights: Floats, count: int) -> Integers:
    """Records at which walks begin: spread evenly from the centre of the table to its edge.

    The golden ratio's multiples, modulo one, are ranks of distance from the centre: however many
    are taken, they are spread well, and no random number is needed.
    """
    centre = np.average(X, axis=0, weights=weights)
    ranked = np.argsort(-np.square(X - centre).sum(axis=1), kind="stable")
    firsts: Integers = ranked[(np.arange(count) * GOLDEN % 1.0 * len(X)).astype(np.int64)]
    return firsts


def fewer(count: int, n: int, least: int = 1) -> int:
    """Scale a number of repetitions down with the square of the number of records.

    A walk takes more than twice as long for twice the records, and more rounds until it ends.
    """
    return max(min(least, count), min(count, count * FULL**2 // n**2))


class IteratedOrdering(Grouping):
    r"""Order, cut, and order again from the groups found, from several first orders.

    Lowers :math:`\mathrm{SSE} = \sum_G \sum_{i \in G} w_i \lVert x_i - \bar x_G \rVert^2` over
    partitions into groups of k or more, round by round.

    Parameters
    ----------
    k : int
        The least number of records in a group.
    orders : sequence of str, optional
        First orders, as in `OrderedGrouping`; the best outcome is kept. If not given "mdav",
        "cbfs", "nearest", "pca", "zscore" and "tour"; for more than 20,000 records the first two
        would take too long and are left out.
    max_rounds : int
        Rounds from each first order, at most, for up to 5,000 records; beyond, the number falls
        with n, to no fewer than 20.
    patience : int
        Stop after this number of rounds in a row that gain less than 1e-5 of the SSE.

    See Also
    --------
    OrderedGrouping : the first round alone.
    RepOrdMic : from clusters of k-means.

    Notes
    -----
    A round walks through all groups and cuts the walk with the least SSE. Two kinds of walk take
    turns. One goes along the groups' centres, nearest next, and lines up the records of a group
    from the previous centre to the next, so that those on the edge can change sides. The other
    enters a group at its record nearest to the last one, and inserts the others on the way to its
    farthest record. Each round begins at another record, ranked by distance from the centre, so
    that other groups meet. No round raises the SSE.

    A method of our own. The cut is that of IMHM [1]_, the improved algorithm of Hansen and
    Mukherjee; between cuts, [1]_ improves its groups by constrained clustering, with parameters
    that its user has to try.

    References
    ----------
    .. [1] R. Mortazavi, S. Jalili, H. Gohargazi (2013), "Multivariate microaggregation by
       iterative optimization", Applied Intelligence 39(3), 529-544.

    Examples
    --------
    >>> from tessella.grouping import IteratedOrdering
    >>> X = [[0, 0], [5, 5], [0, 1], [6, 5], [1, 0], [5, 6]]
    >>> IteratedOrdering(k=3).fit(X).labels_.tolist()
    [0, 1, 0, 1, 0, 1]
    """

    _parameters: ClassVar[dict[str, Any]] = {"max_rounds": [Whole(1)], "patience": [Whole(1)]}

    def __init__(
        self,
        k: int = 3,
        *,
        orders: Sequence[str] | None = None,
        max_rounds: int = 500,
        patience: int = 30,
    ) -> None:
        super().__init__(k)
        self.orders = orders
        self.max_rounds = max_rounds
        self.patience = patience

    def _group_part(self, *given: Any) -> Integers:
        if isinstance(self.orders, str) or (self.orders is not None and len(self.orders) == 0):
            raise BadOptionError("orders", self.orders, 'a list such as ["nearest", "pca"]')
        for order in self.orders or ():
            check({"an order of orders": [OneOf(tuple(ORDERS))]}, {"an order of orders": order})
        return super()._group_part(*given)

    def _group(
        self, X: Floats, weights: Floats, k: int, _: np.random.Generator, units: Units = None
    ) -> Integers:
        remaining, by_unit = all_rows(X), for_kernels(units)
        firsts = first_records(X, weights, fewer(self.max_rounds, len(X), least=20))
        orders = self.orders or [o for o in OWN if len(X) <= SAMPLE or o not in SLOW_ORDERS]

        def run(order: str) -> Outcome:
            labels, _ = cut_units(X, weights, ORDERS[order](X, weights, k), k, by_unit)
            labels, errors = keep_walking(
                X, weights, remaining, labels, firsts, k, self.patience, True, by_unit
            )
            return labels, errors[-1]

        return best_first(each(run, orders))[0][0]

    _group_units = _group


class RepOrdMic(Grouping):
    r"""Repeated record ordering, from clusters of k-means.

    Lowers :math:`\mathrm{SSE} = \sum_G \sum_{i \in G} w_i \lVert x_i - \bar x_G \rVert^2` over
    partitions into groups of k or more: Algorithm 1 of [1]_.

    Parameters
    ----------
    k : int
        The least number of records in a group.
    start : array-like of shape (n,) or clusterer, optional
        The initial clusters: the input of Algorithm 1. Labels of the records, or a clusterer with
        `fit_predict`; k-means with several numbers of clusters if not given.
    max_clusters : int
        Start once from each of k-means with 1, 2, ... max_clusters clusters, no more than there are
        distinct records, and keep the best outcome. Beyond 5,000 records fewer numbers of
        clusters are tried, evenly spread.
    tol : float
        Stop when a round gains less than this, for columns of variance one; other columns scale
        it by their mean variance.
    walks : int
        Walks of the ten best outcomes from other first records, after the paper's algorithm has
        ended: our own, and better the more there are. 0 is the paper's algorithm alone.
    random_state : int, RandomState or None
        Seeds k-means.

    See Also
    --------
    IteratedOrdering : from simple orders, without k-means.

    Notes
    -----
    A round begins at the record farthest from the centre. The rest of its group is inserted on the
    way from there to the group's farthest record, always the record and the gap that lengthen
    the way least; the record of all other groups that is nearest to the last one begins the next
    group. The sequence is cut with the least SSE, and the next round walks the groups found.

    Step 9 of the pseudo code has :math:`x_{t+1}` where :math:`x_{i+1}` is meant. The text inserts
    the record *nearest* to the path, the pseudo code the *cheapest* one: the pseudo code is
    followed, and the two differ by less than two seeds of k-means do. How k-means itself starts is
    not said, and matters: from random records the published figures of Tarragona are met, from
    k-means++ (whose centres sit on outliers) those of EIA. Odd numbers of clusters start from
    random records here, even ones from k-means++.

    Gaps are remembered from one insertion to the next; the nearest record of other groups is found
    in a tree. For more than 5,000 records, first groups are halved along their widest column until
    they have no more than 5,000; beyond 20,000, k-means learns its centres from a random sample.

    References
    ----------
    .. [1] R. Mortazavi (2020), "Repeated record ordering for constrained size clustering",
       International Journal of Engineering 33(7), 1266-1273.

    Examples
    --------
    >>> from tessella.grouping import RepOrdMic
    >>> X = [[0, 0], [5, 5], [0, 1], [6, 5], [1, 0], [5, 6]]
    >>> RepOrdMic(k=3, random_state=0).fit(X).labels_.tolist()
    [0, 1, 0, 1, 0, 1]
    """

    _parameters: ClassVar[dict[str, Any]] = {
        "max_clusters": [Whole(1)],
        "tol": [Number(least=0)],
        "walks": [Whole(0)],
        "random_state": [SEED],
    }

    def __init__(
        self,
        k: int = 3,
        *,
        start: Any = None,
        max_clusters: int = 200,
        tol: float = 1e-7,
        walks: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(k)
        self.start = start
        self.max_clusters = max_clusters
        self.tol = tol
        self.walks = walks
        self.random_state = random_state

    def _group(
        self, X: Floats, weights: Floats, k: int, random: np.random.Generator, units: Units = None
    ) -> Integers:
        remaining, first = all_rows(X), farthest_from_centre(X, weights)
        by_unit = for_kernels(units)
        tolerance = self.tol * mean_variance(X, weights)

        def run(start: Integers) -> Outcome:
            labels, errors = repeat_ordering(
                X, weights, remaining, start, first, k, tolerance, by_unit
            )
            return labels, errors[-1]

        def walk(outcome: Outcome) -> Outcome:
            labels, errors = keep_walking(
                X, weights, remaining, outcome[0], firsts, k, len(firsts) + 1, False, by_unit
            )
            return labels, errors[-1]

        if self.start is None:
            starts = kmeans_starts(X, weights, self.max_clusters, random)
        else:
            starts = [split_large(X, given_start(self.start, X))]
        outcomes = each(run, starts)
        if not self.walks:
            return best_first(outcomes)[0][0]
        firsts = first_records(X, weights, fewer(self.walks, len(X)))
        return best_first(each(walk, best_first(outcomes)[: fewer(WALKED, len(X))]))[0][0]

    _group_units = _group


def best_first(outcomes: list[Outcome]) -> list[Outcome]:
    """Sort outcomes by their error; of equals, the first comes first."""
    return sorted(outcomes, key=lambda outcome: outcome[1])


def mean_variance(X: Floats, weights: Floats) -> float:
    """Return the mean over columns of the variance: one for standardised columns."""
    centre = np.average(X, axis=0, weights=weights)
    return float(np.average(np.square(X - centre).mean(axis=1), weights=weights))


def given_start(start: Any, X: Floats) -> Integers:
    """Return initial clusters as numbers from 0 on: labels, or what a clusterer finds."""
    if hasattr(start, "fit_predict"):
        start = clone(start).fit_predict(X)
    labels = np.asarray(start)
    if labels.shape != (len(X),):
        wish = f"one label for each of {len(X)} records, or a clusterer (with strata, a clusterer)"
        raise BadOptionError("start", f"<{type(start).__name__} {labels.shape}>", wish)
    numbers: Integers = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return numbers


def kmeans_starts(
    X: Floats, weights: Floats, max_clusters: int, random: np.random.Generator
) -> list[Integers]:
    """Cluster the records by k-means with 1, 2, ... max_clusters clusters; return the labels."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    n, seed = len(X), int(random.integers(2**31 - 1))
    sample = np.arange(n) if n <= SAMPLE else np.sort(random.choice(n, SAMPLE, replace=False))
    largest = min(max_clusters, len(np.unique(X[sample], axis=0)))
    numbers = np.unique(np.linspace(largest, 1, fewer(largest, n)).astype(np.int64))
    threads = ThreadpoolController()

    def cluster(number: np.int64) -> Integers:
        init = "random" if number % 2 else "k-means++"
        model = KMeans(int(number), init=init, n_init=1, random_state=seed)
        # one thread each: sums must not depend on the number of cores
        with threads.limit(limits=1, user_api="openmp"):
            model.fit(X[sample], sample_weight=weights[sample])
            return split_large(X, model.predict(X).astype(np.int64))

    with threads.limit(limits=1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal records share a centre
        return each(cluster, numbers)


def split_large(X: Floats, labels: Integers) -> Integers:
    """Halve clusters of more than 5,000 records along their widest column until none is left."""
    labels, n_labels = labels.copy(), int(labels.max()) + 1
    todo = list(range(n_labels))
    while todo:
        rows = np.flatnonzero(labels == todo[-1])
        if len(rows) <= FULL:
            todo.pop()
            continue
        column = np.argmax(np.ptp(X[rows], axis=0))
        order = np.argsort(X[rows, column], kind="stable")
        labels[rows[order[len(rows) // 2 :]]] = n_labels
        todo.append(n_labels)
        n_labels += 1
    return labels
