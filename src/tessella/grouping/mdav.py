"""Groups of about k around extreme records: MDAV, and its kin V-MDAV and CBFS.

Each repeats one step: take a record far out, put a group around it, take the group out. What is
far out is far from the centre of all that remain, so groups form from the outside in.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.spatial import cKDTree

from .._parameters import Number
from .._types import Floats, Integers
from ..kernels import mdav as WAYS
from ..kernels.groups import weighted_centres
from ..kernels.mdav import build_sectors, mean_of, sums_of, take_groups
from ..kernels.tree import build_tree, group_equal
from .base import Grouping, Units, for_kernels

# One sector is best where records are densest in the middle, many where they are in clusters. Which
# it is shows while groups are formed: if a search looks at more than MUCH of all points, the other
# is tried. Both numbers are guesses, and only time depends on them.
SECTOR = 1024  # points in a sector, if there are many
MUCH = 0.2
MANY = 1_000  # records without a group beyond which a tree finds the nearest


def outside_in(
    X: Floats, weights: Floats, k: int, way: int, *, gamma: float = 0.0, units: Units = None
) -> Integers:
    """Take groups out until fewer than 2k records (MDAV) or k (the others) are left, at -1.

    With units, until fewer than k units are left.
    """
    sums, centre = sums_of(X, weights), np.empty(X.shape[1])
    mean_of(sums, centre)
    duplicates = group_equal(X, centre)
    by_place, weights = np.full(len(X), -1), weights[duplicates.rows]
    in_sectors = False
    least = 2 * k if way == WAYS.MDAV and units is None else k
    by_unit = None if units is None else units[duplicates.rows]

    def left() -> int:
        alone = by_place < 0
        return int(alone.sum()) if by_unit is None else len(np.unique(by_unit[alone]))

    while left() >= least:
        if way != WAYS.VMDAV:
            mean_of(sums, centre)
        remaining = np.flatnonzero(duplicates.firsts < duplicates.ends)
        in_order = len(remaining) == len(duplicates.points)
        tree = build_tree(duplicates.points, remaining, centre, in_order)
        near = tree.members[tree.members >= 0]
        sectors = build_sectors(duplicates.points, near, centre, SECTOR if in_sectors else 2**62)
        share = take_groups(
            duplicates, weights, k, way, gamma, by_place, sums, tree, sectors, for_kernels(by_unit),
        )  # fmt: skip
        if share > MUCH:  # try the other way
            in_sectors = not in_sectors
    labels = np.empty_like(by_place)
    labels[duplicates.rows] = by_place
    return labels


def join_nearest(X: Floats, weights: Floats, labels: Integers) -> Integers:
    """Let each record without a group (-1) join the one whose centre is nearest.

    The centres are those of the groups as they were formed, so the order of joining is of no
    matter; of equally near groups, the first formed.
    """
    alone = np.flatnonzero(labels < 0)
    if len(alone) == 0:
        return labels
    formed = labels >= 0
    n_groups = int(labels.max()) + 1
    centres = weighted_centres(X[formed], weights[formed], labels[formed], n_groups)
    if len(alone) > MANY:  # as there may be of few units; of equally near groups, any
        labels[alone] = cKDTree(centres).query(X[alone])[1]
        return labels
    for row in alone:
        squares = np.zeros(n_groups)
        for column in range(X.shape[1]):
            squares += np.square(centres[:, column] - X[row, column])
        labels[row] = squares.argmin()
    return labels


class MDAV(Grouping):
    r"""Maximum distance to average vector: groups of exactly k around far records, two at a time.

    Parameters
    ----------
    k : int
        The number of records in a group; the last group may have up to 2k - 1.

    See Also
    --------
    Search : groups with much less squared error.
    VMDAV : groups of k to 2k - 1.
    OrderedGrouping : cuts an order of MDAV's groups, without units never worse than MDAV.

    Notes
    -----
    With :math:`\bar x = \sum w_i x_i / \sum w_i` over the records that remain [1]_:

    - while 3k or more remain, r is the record farthest from :math:`\bar x`. It forms a group with
      its k - 1 nearest records; then s, the record farthest from r of those left, does the same;
    - if 2k or more remain, the one farthest from :math:`\bar x` forms a group in the same way;
    - the rest, k to 2k - 1 records, is the last group.

    With units, a group takes the nearest records until it has k units, as long as k units remain;
    each record that is left joins the group with the nearest centre.

    Of equally far or near records the one with the lowest row number is taken. The partition is
    that of a plain scan in :math:`O(n^2 d / k)`, to the last record; the time is much less, because
    the farthest are looked for among the outermost records, the nearest in a tree of boxes. The
    fewer independent columns, the greater the gain: it grows like :math:`n^{1.2}` with four columns
    and :math:`n^{1.6}` with ten.

    References
    ----------
    .. [1] J. Domingo-Ferrer, V. Torra (2005), "Ordinal, continuous and heterogeneous k-anonymity
       through microaggregation", Data Mining and Knowledge Discovery 11(2), 195-212.

    Examples
    --------
    >>> from tessella.grouping import MDAV
    >>> X = [[0, 0], [5, 5], [0, 1], [6, 5], [1, 0], [5, 6]]
    >>> MDAV(k=3).fit(X).labels_.tolist()
    [0, 1, 0, 1, 0, 1]
    """

    def _group(
        self, X: Floats, weights: Floats, k: int, _: np.random.Generator, units: Units = None
    ) -> Integers:
        labels = outside_in(X, weights, k, WAYS.MDAV, units=units)
        if units is not None:
            return join_nearest(X, weights, labels)
        labels[labels < 0] = labels.max() + 1
        return labels

    _group_units = _group


class VMDAV(Grouping):
    r"""Variable-size MDAV: groups of k around far records, extended to 2k - 1 where it fits.

    Parameters
    ----------
    k : int
        The least number of records in a group.
    gamma : float
        How willing groups are to grow. The authors advise 0.2 for scattered records and 1.1 for
        records in clusters; 0.2 is the default because it does the least harm where there are
        none. With 0 no group grows.

    See Also
    --------
    MDAV : groups of exactly k.

    Notes
    -----
    While k or more records have no group, the one farthest from the mean of *all* records forms a
    group with its k - 1 nearest [1]_. Then, up to 2k - 1 members, let e be the record without a
    group that is nearest to a member. It joins if

    .. math:: \min_{i \in G} \lVert e - x_i \rVert < \gamma \min_{j \notin G, j \ne e}
              \lVert e - x_j \rVert ,

    j over records without a group, or if it is the last one (for :math:`\gamma > 0`); otherwise the
    group is done. In the end, fewer than k records are left; each joins the group with the nearest
    centre. Ties go to the lowest row number.

    References
    ----------
    .. [1] A. Solanas, A. Martínez-Ballesté (2006), "V-MDAV: a multivariate microaggregation with
       variable group size", 17th COMPSTAT Symposium of the IASC, Rome.

    Examples
    --------
    >>> from tessella.grouping import VMDAV
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1], [9, 8], [8, 9], [9, 9]]
    >>> VMDAV(k=3, gamma=1.1).fit(X).labels_.tolist()
    [0, 0, 0, 0, 1, 1, 1]
    """

    _parameters: ClassVar[dict[str, Any]] = {"gamma": [Number(least=0)]}

    def __init__(self, k: int = 3, *, gamma: float = 0.2) -> None:
        super().__init__(k)
        self.gamma = gamma

    def _group(
        self, X: Floats, weights: Floats, k: int, _: np.random.Generator, units: Units = None
    ) -> Integers:
        labels = outside_in(X, weights, k, WAYS.VMDAV, gamma=float(self.gamma), units=units)
        return join_nearest(X, weights, labels)

    _group_units = _group


class CBFS(Grouping):
    r"""Centroid-based fixed size: groups of k, each grown from a far record around its own mean.

    Parameters
    ----------
    k : int
        The least number of records in a group; all have k but those that the last, fewer than k,
        records join.

    See Also
    --------
    MDAV : groups around the far record itself.

    Notes
    -----
    While k or more records remain, the one farthest from their weighted mean starts a group, and
    the record nearest to the group's weighted mean joins it until it has k [1]_. Each of the fewer
    than k records left joins the group with the nearest centre. Ties go to the lowest row number.
    One search for each record, where MDAV needs one for each group.

    References
    ----------
    .. [1] M. Laszlo, S. Mukherjee (2005), "Minimum spanning tree partitioning algorithm for
       microaggregation", IEEE Transactions on Knowledge and Data Engineering 17(7), 902-911.

    Examples
    --------
    >>> from tessella.grouping import CBFS
    >>> X = [[0, 0], [5, 5], [0, 1], [6, 5], [1, 0], [5, 6]]
    >>> CBFS(k=3).fit(X).labels_.tolist()
    [0, 1, 0, 1, 0, 1]
    """

    def _group(
        self, X: Floats, weights: Floats, k: int, _: np.random.Generator, units: Units = None
    ) -> Integers:
        labels = outside_in(X, weights, k, WAYS.CBFS, units=units)
        return join_nearest(X, weights, labels)

    _group_units = _group
