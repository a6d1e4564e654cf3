"""Put the records in an order, then cut the order at its best places.

An *order* is an array of row numbers; an order that knows no end is a *tour*. However good the
order, the cut is optimal for it, so a better order can only come from knowing more of the data. One
column has a best order: sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_limits

from .._parameters import OneOf
from .._types import Floats, Integers
from ..diversity import Diversity
from ..exceptions import BadTableError
from ..kernels.neighbours import all_rows
from ..kernels.ordering import cut_units, group_path, nearest_next
from ..kernels.sequence import best_opening, best_sorted_cut, greedy_tour, shorten
from ..parallel import n_cores
from .base import Grouping, Units, for_kernels


class UnivariateOptimal(Grouping):
    r"""The grouping of one column with the least squared error.

    Over all partitions of n numbers into groups :math:`G` of k or more it minimises

    .. math:: \mathrm{SSE} = \sum_G \sum_{i \in G} w_i (x_i - \bar x_G)^2 .

    Parameters
    ----------
    k : int
        The least number of records in a group.

    See Also
    --------
    OrderedGrouping : several columns, put in an order first.
    Search : several columns.

    Notes
    -----
    Some best partition has groups that are contiguous in the sorted column and shorter than 2k, so
    it is a shortest path along the sorted values [1]_. The error of a group obeys the quadrangle
    inequality, so the path is found in :math:`O(n \log k)` instead of :math:`O(nk)`; together with
    the sort, a million values take a fraction of a second, whatever k.

    With unequal weights the answer is the best of all *contiguous* partitions. Another may be
    better, since k counts records and not weights: for the values 0, 1, 2, 3 with weights 100,
    100, 1, 1 and k = 2, the groups {0, 1}, {2, 3} have SSE 50.5, and {0, 2}, {1, 3} about 7.9:
    two heavy records do better apart, each with a light one.

    With units the answer is the best of all contiguous partitions, too, and others may be better.

    References
    ----------
    .. [1] S. L. Hansen, S. Mukherjee (2003), "A polynomial algorithm for optimal univariate
       microaggregation", IEEE Transactions on Knowledge and Data Engineering 15(4), 1043-1044.

    Examples
    --------
    >>> from tessella.grouping import UnivariateOptimal
    >>> grouping = UnivariateOptimal(k=2).fit([[1.0], [9.0], [2.0], [10.0], [11.0]])
    >>> grouping.labels_.tolist()
    [0, 1, 0, 1, 1]
    >>> grouping.inertia_
    2.5
    """

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        units: ArrayLike | None = None,
        diversity: Diversity | None = None,
    ) -> Self:
        """Partition values of shape (n,) or (n, 1); see `Grouping.fit`."""
        numbers = isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 0
        if numbers or getattr(X, "ndim", 0) == 1:
            X = np.asarray(X).reshape(-1, 1)
        return super().fit(
            X, y, sample_weight=sample_weight, strata=strata, units=units, diversity=diversity
        )

    def _group(
        self, X: Floats, weights: Floats, k: int, _: np.random.Generator, units: Units = None
    ) -> Integers:
        if X.shape[1] != 1:
            raise BadTableError(
                f"UnivariateOptimal groups one column, and the table has {X.shape[1]}. Give one "
                "column, or take Search or OrderedGrouping, which group records of many columns."
            )
        order = np.argsort(X[:, 0], kind="stable")
        if units is not None:
            return cut_units(X, weights, order, k, units)[0]
        return best_sorted_cut(X, weights, order, k)[0]

    one_column = True
    _group_units = _group

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False  # of many columns, as scikit-learn's checks would give
        return tags


NEIGHBOURS = 10  # of each record, tried as its neighbours on a tour
OPENINGS = 99  # of a tour, at most: all 2k - 1 up to k = 50


def farthest_from_centre(X: Floats, weights: Floats) -> int:
    """Return the row farthest from the weighted mean, of equals the lowest."""
    centre = np.average(X, axis=0, weights=weights)
    return int(np.argmax(np.square(X - centre).sum(axis=1)))


def by_component(X: Floats, weights: Floats, k: int) -> Integers:  # noqa: ARG001
    """Order along the first principal component."""
    centred = X - np.average(X, axis=0, weights=weights)
    with threadpool_limits(limits=1):  # sums must not depend on the number of cores
        _, vectors = np.linalg.eigh((centred * weights[:, None]).T @ centred)
        axis = vectors[:, -1]
        axis *= 1 if axis[np.argmax(np.abs(axis))] > 0 else -1
        scores = centred @ axis
    return np.argsort(scores, kind="stable")


def by_sum(X: Floats, weights: Floats, k: int) -> Integers:  # noqa: ARG001
    """Order along the sum of the columns' z-scores; constant columns carry nothing."""
    centred = X - np.average(X, axis=0, weights=weights)
    spread = np.sqrt(np.average(np.square(centred), axis=0, weights=weights))
    z = np.divide(centred, spread, out=np.zeros_like(X), where=spread > 0)
    return np.argsort(z.sum(axis=1), kind="stable")


def by_nearest(X: Floats, weights: Floats, k: int) -> Integers:  # noqa: ARG001
    """Walk to the nearest record not yet visited, from the one farthest from the centre."""
    return nearest_next(X, all_rows(X), farthest_from_centre(X, weights))


def by_groups(method: str, X: Floats, weights: Floats, k: int) -> Integers:
    """Visit the groups of MDAV or CBFS, the nearest next, each along a short path."""
    from . import mdav

    heuristic = getattr(mdav, method)(k)
    labels = heuristic._group(X, weights, k, np.random.default_rng(0))
    first = farthest_from_centre(X, weights)
    return group_path(X, all_rows(X), labels, int(labels.max()) + 1, first)


def by_making(method: str, X: Floats, weights: Floats, k: int) -> Integers:
    """Visit the groups of MDAV or CBFS in the order in which they were made."""
    from . import mdav

    labels = getattr(mdav, method)(k)._group(X, weights, k, np.random.default_rng(0))
    order: Integers = np.argsort(labels, kind="stable")
    return order


def by_tour(X: Floats, weights: Floats, k: int) -> Integers:
    """Order along a short closed tour, opened where its best cut is best."""
    distinct, which = np.unique(X, axis=0, return_inverse=True)
    places = np.empty(len(distinct), dtype=np.int64)
    places[closed_tour(distinct)] = np.arange(len(distinct))
    order = np.argsort(places[which.ravel()], kind="stable")
    openings = np.unique(np.linspace(0, 2 * k - 2, min(2 * k - 1, OPENINGS)).astype(np.int64))
    opening, _ = best_opening(X, weights, order, k, openings)
    return np.roll(order, -opening)


def closed_tour(X: Floats) -> Integers:
    """Return a short tour through distinct records."""
    n = len(X)
    if n < 8:
        return np.arange(n)
    count = min(NEIGHBOURS, n - 1)
    neighbours = cKDTree(X).query(X, count + 1, workers=n_cores())[1].astype(np.int64)
    others = neighbours != np.arange(n)[:, None]
    others[others.all(axis=1), -1] = False  # a record crowded out of its own list
    neighbours = neighbours[others].reshape(n, count)
    pairs = np.column_stack([np.repeat(np.arange(n), count), neighbours.ravel()])
    pairs.sort(axis=1)
    codes = np.unique(pairs[:, 0] * n + pairs[:, 1])
    edges = np.column_stack(np.divmod(codes, n))
    lengths = np.square(X[edges[:, 0]] - X[edges[:, 1]]).sum(axis=1)
    tour = greedy_tour(X, edges[np.argsort(lengths, kind="stable")])
    return shorten(X, neighbours, tour)


ORDERS: dict[str, Callable[[Floats, Floats, int], Integers]] = {
    "given": lambda X, *_: np.arange(len(X)),
    "mdav-mhm": partial(by_making, "MDAV"),
    "cbfs-mhm": partial(by_making, "CBFS"),
    "mdav": partial(by_groups, "MDAV"),
    "cbfs": partial(by_groups, "CBFS"),
    "nearest": by_nearest,
    "pca": by_component,
    "zscore": by_sum,
    "tour": by_tour,
}


class OrderedGrouping(Grouping):
    r"""Put the records in an order, then cut the order with the least squared error.

    Among all partitions of the ordered records into stretches of k or more it minimises

    .. math:: \mathrm{SSE} = \sum_G \sum_{i \in G} w_i \lVert x_i - \bar x_G \rVert^2 .

    Parameters
    ----------
    k : int
        The least number of records in a group.
    order : {"mdav", "cbfs", "nearest", "pca", "zscore", "tour", "mdav-mhm", "cbfs-mhm", "given"}
        How to order the records:

        - "mdav", "cbfs": by the groups of `MDAV` or `CBFS`, so never worse than they are (with
          units they may be better: groups of k units need not be runs of an order). From the
          record farthest from the centre, each group is visited along a short path, then the
          group with the nearest record;
        - "nearest": the nearest record next, from the one farthest from the centre;
        - "pca": along the first principal component;
        - "zscore": along the sum of the columns' z-scores;
        - "tour": along a short travelling salesman's tour, cut as a ring;
        - "mdav-mhm", "cbfs-mhm": by the groups of MDAV or CBFS in the order of their making [1]_;
        - "given": as the rows stand: IMHM, Algorithm 2 of [5]_.

    See Also
    --------
    IteratedOrdering : orders again from the groups found, until nothing is gained.
    UnivariateOptimal : one column.

    Notes
    -----
    The cut is a shortest path over groups of k to 2k - 1 records, in O(nkd) [1]_, [2]_. "nearest"
    and "tour" use trees: near n log n for a handful of columns, and slower the more independent
    columns there are. "mdav" and "cbfs" cost what MDAV and CBFS cost.

    The tour starts from greedy edges and is shortened by 2-opt and Or-opt. A ring has no first
    record; the cut is the best over all places to open it (k up to 50; 99 places for larger k).

    How MDAV-MHM [1]_ joins groups to an order is open. In the order of their making, "mdav-mhm",
    the cut finds almost nothing to gain, as in the published figures of Tarragona; "mdav", along a
    path from group to group, is ours and loses less.

    References
    ----------
    .. [1] J. Domingo-Ferrer, A. Martínez-Ballesté, J. M. Mateo-Sanz, F. Sebé (2006), "Efficient
       multivariate data-oriented microaggregation", The VLDB Journal 15(4), 355-369.
    .. [2] R. Mortazavi, S. Jalili, H. Gohargazi (2013), "Multivariate microaggregation by
       iterative optimization", Applied Intelligence 39(3), 529-544.
    .. [3] D. R. Monedero et al. (2019), "Efficient k-anonymous microaggregation of multivariate
       numerical data via principal component analysis", Information Sciences 503, 417-443.
    .. [4] R. Mortazavi, S. Jalili (2014), "Fast data-oriented microaggregation algorithm for large
       numerical datasets", Knowledge-Based Systems 67, 195-205.
    .. [5] R. Mortazavi (2020), "Repeated record ordering for constrained size clustering",
       International Journal of Engineering 33(7), 1266-1273.

    Examples
    --------
    >>> from tessella.grouping import OrderedGrouping
    >>> X = [[0, 0], [5, 5], [0, 1], [6, 5], [1, 0], [5, 6]]
    >>> OrderedGrouping(k=3, order="nearest").fit(X).labels_.tolist()
    [0, 1, 0, 1, 0, 1]
    """

    _parameters: ClassVar[dict[str, Any]] = {"order": [OneOf(tuple(ORDERS))]}

    def __init__(self, k: int = 3, *, order: str = "mdav") -> None:
        super().__init__(k)
        self.order = order

    def _group(
        self, X: Floats, weights: Floats, k: int, _: np.random.Generator, units: Units = None
    ) -> Integers:
        order = ORDERS[self.order](X, weights, k)
        return cut_units(X, weights, order, k, for_kernels(units))[0]

    _group_units = _group
