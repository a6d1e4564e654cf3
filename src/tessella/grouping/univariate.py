"""One column: the best grouping there is, after one sort."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._types import Floats, Integers
from ..exceptions import BadTableError
from ..kernels.sequence import best_sorted_cut
from .base import Grouping

__all__ = ["UnivariateOptimal"]


class UnivariateOptimal(Grouping):
    r"""The grouping of one column with the least squared error.

    Over all partitions of n numbers into groups :math:`G` of k or more it minimises

    .. math:: \mathrm{SSE} = \sum_G \sum_{i \in G} w_i (x_i - \bar x_G)^2 .

    Parameters
    ----------
    k : int
        The least number of records in a group.

    Attributes
    ----------
    labels_, cluster_centers_, inertia_, n_groups_
        See `Grouping`.

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
    ) -> Self:
        """Partition the records.

        Parameters
        ----------
        X : array-like of shape (n,) or (n, 1)
            The values.
        y : ignored
            Present for scikit-learn.
        sample_weight : array-like of shape (n,), optional
            Positive weights of the records in centres and SSE; k counts records.
        strata : array-like of shape (n,), optional
            Records of different strata never share a group.

        Returns
        -------
        self
        """
        numbers = isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 0
        if numbers or getattr(X, "ndim", 0) == 1:
            X = np.asarray(X).reshape(-1, 1)
        return super().fit(X, y, sample_weight=sample_weight, strata=strata)

    def _group(
        self,
        X: Floats,
        weights: Floats,
        k: int,
        random: np.random.Generator,  # noqa: ARG002
    ) -> Integers:
        if X.shape[1] != 1:
            raise BadTableError(
                f"UnivariateOptimal groups one column, and the table has {X.shape[1]}. Give one "
                "column, or take Search or OrderedGrouping, which group records of many columns."
            )
        order = np.argsort(X[:, 0], kind="stable")
        return best_sorted_cut(X, weights, order, k)[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False  # of many columns, as scikit-learn's checks would give
        return tags
