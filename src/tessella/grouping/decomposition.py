"""Refine a grouping: dissolve groups into their neighbours, or let them give records away."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.spatial import cKDTree
from sklearn.base import clone

from .._parameters import NONE, Instance
from .._types import Floats, Integers
from ..kernels.decompose import decompose, partition_of, shrink
from ..kernels.groups import renumber, weighted_centres
from ..parallel import n_cores
from .base import Grouping

__all__ = ["IGD"]


NEAR = 16  # centres around a record whose groups it may join
GAIN = 1e-9  # share of the SSE that a sweep must gain to be followed by another


class IGD(Grouping):
    r"""Iterative group decomposition: refine a grouping while its squared error falls.

    Lowers :math:`\mathrm{SSE} = \sum_G \sum_{i \in G} w_i \lVert x_i - \bar x_G \rVert^2` over
    partitions into groups of k or more, from a given one. Never worse than its start.

    Parameters
    ----------
    k : int
        The least number of records in a group.
    start : Grouping, optional
        The grouping to refine; its own k is replaced. `MDAV` if not given.

    Attributes
    ----------
    labels_, cluster_centers_, inertia_, n_groups_
        See `Grouping`.

    See Also
    --------
    Search : moves, swaps and more, from several starts.

    Notes
    -----
    A sweep has two steps [1]_; both take the groups with the largest error first. *Decompose*: a
    group is dissolved if its records cost less in the groups around it: a record of weight v that
    joins a group of weight W and centre c costs :math:`\frac{vW}{v+W} \lVert x - c \rVert^2`.
    *Shrink*: a group of more than k gives away the record that gains most, as long as one does. A
    group that reaches 2k is split along a short path through its records, and what the split gains
    counts for the move. Sweeps end when they gain nothing.

    A record may join the groups of the 16 nearest centres, found in a tree, where [1]_ looks at
    all groups: hardly ever another choice, and a sweep is near-linear in n.

    References
    ----------
    .. [1] L. Khomnotai, J.-L. Lin, Z.-Q. Peng, A. S. Santra (2018), "Iterative group decomposition
       for refining microaggregation solutions", Symmetry 10(7), 262.

    Examples
    --------
    >>> from tessella.grouping import IGD, OrderedGrouping
    >>> X = [[0, 0], [5, 5], [0, 1], [6, 5], [1, 0], [5, 6], [9, 0], [9, 1]]
    >>> IGD(k=2, start=OrderedGrouping(order="zscore")).fit(X).labels_.tolist()
    [0, 1, 0, 1, 0, 1, 2, 2]
    """

    _parameters: ClassVar = {"start": [Instance(Grouping, "a grouping, such as VMDAV()"), NONE]}

    def __init__(self, k: int = 3, *, start: Grouping | None = None) -> None:
        super().__init__(k)
        self.start = start

    def _group(
        self,
        X: Floats,
        weights: Floats,
        k: int,
        random: np.random.Generator,  # noqa: ARG002
    ) -> Integers:
        from .mdav import MDAV

        start = MDAV() if self.start is None else clone(self.start)
        labels = start.set_params(k=k).fit(X, sample_weight=weights).labels_
        return refine(X, weights, labels, k)


def refine(X: Floats, weights: Floats, labels: Integers, k: int) -> Integers:
    """Decompose and shrink groups of k or more until a sweep gains nothing."""
    before = np.inf
    errors = group_errors(X, weights, labels)
    while before - errors.sum() > GAIN * errors.sum():
        before = errors.sum()
        for step in (decompose, shrink):
            partition = partition_of(X, weights, labels, k)
            near = nearest_groups(X, partition.centres[: len(errors)])
            worst_first = np.argsort(-errors, kind="stable")
            step(X, weights, partition, near, worst_first, k)
            labels = renumber(partition.labels, len(X) // k)
            errors = group_errors(X, weights, labels)
    return labels


def group_errors(X: Floats, weights: Floats, labels: Integers) -> Floats:
    """Return the SSE of each group."""
    centres = weighted_centres(X, weights, labels, int(labels.max()) + 1)
    squares = np.square(X - centres[labels]).sum(axis=1)
    errors: Floats = np.bincount(labels, weights=weights * squares).astype(np.float64)
    return errors


def nearest_groups(X: Floats, centres: Floats) -> Integers:
    """Return the groups with the nearest centres to each record, shape (n, up to NEAR + 1).

    Of groups with equal centres only the first is listed: a heap of equal records neither floods
    the lists nor slows the tree.
    """
    distinct, groups = np.unique(centres, axis=0, return_index=True)
    count = min(NEAR + 1, len(distinct))
    near = cKDTree(distinct).query(X, count, workers=n_cores())[1].reshape(len(X), count)
    found: Integers = groups[near].astype(np.int64)
    return found
