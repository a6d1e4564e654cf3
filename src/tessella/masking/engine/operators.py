"""One value for each group and column, by the operator that the plan chose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._types import Floats, Integers, Name, Truths
from ...frame import group_ids
from ...kernels.groups import weighted_centres
from ...plan.claims import Claim
from ..aggregation import group_means
from .partition import BlockCells

__all__ = [
    "allowed_of",
    "log_means",
    "lower_medians",
    "medians_among",
    "medoids",
    "modes",
]


def log_means(values: Floats, weights: Floats, labels: Integers, count: int) -> Floats:
    """Weighted geometric mean of positive values, shape (groups, d)."""
    return np.asarray(np.exp(group_means(np.log(values), weights, labels, count)))


def lower_medians(values: Floats, weights: Floats, labels: Integers, count: int) -> Integers:
    """Return, for each group, the place of the record with the lower weighted median of a column.

    It is the first value, in order, at which half of the weight is reached.
    """
    order = np.lexsort((np.arange(len(values)), values, labels))
    sorted_weights = weights[order]
    starts = np.searchsorted(labels[order], np.arange(count))
    before = np.concatenate([[0.0], np.cumsum(sorted_weights)])
    ends = np.append(starts[1:], len(values))
    half = before[starts] + 0.5 * (before[ends] - before[starts])
    at = np.searchsorted(before[1:], half * (1 - 1e-12), side="left")
    return np.asarray(order[np.clip(at, starts, ends - 1)])


def medoids(
    embedded: Floats, weights: Floats, labels: Integers, count: int, valid: Truths
) -> Integers:
    """Return, for each group, the place of the valid record nearest to the group's mean.

    A group without an valid record takes the nearest one of the whole part; -1 if there is none.
    """
    centres = weighted_centres(embedded, weights, labels, count)
    squares = ((embedded - centres[labels]) ** 2).sum(axis=1)
    squares = np.where(valid, squares, np.inf)
    order = np.lexsort((np.arange(len(labels)), squares, labels))
    first = order[np.searchsorted(labels[order], np.arange(count))]
    if not valid.any():
        return np.full(count, -1, dtype=np.int64)
    good = np.flatnonzero(valid)
    for group in np.flatnonzero(~valid[first]):
        away = ((embedded[good] - centres[group]) ** 2).sum(axis=1)
        first[group] = good[away.argmin()]
    return first


def medians_among(
    values: Floats, weights: Floats, labels: Integers, count: int, allowed: Truths
) -> Integers:
    """Return the lower median of the allowed records of each group.

    A group without any takes the allowed record of the part that is nearest to its own median;
    where the part has none, its own median.
    """
    found = lower_medians(values, weights, labels, count)
    if allowed.all() or not allowed.any():
        return found
    good = np.flatnonzero(allowed)
    has = np.bincount(labels[good], minlength=count) > 0
    _, inner = np.unique(labels[good], return_inverse=True)
    own = good[lower_medians(values[good], weights[good], inner, int(has.sum()))]
    order = good[np.argsort(values[good], kind="stable")]
    at = np.clip(np.searchsorted(values[order], values[found]), 1, len(order)) - 1
    after = np.minimum(at + 1, len(order) - 1)
    nearer = np.abs(values[order[after]] - values[found]) < np.abs(
        values[order[at]] - values[found]
    )
    nearest = np.where(nearer, order[after], order[at])
    nearest[has] = own
    return nearest


def modes(
    cells: BlockCells,
    rows: Integers,
    columns: Sequence[Name],
    weights: Floats,
    labels: Integers,
    count: int,
    claims: Sequence[Claim],
    strata: Sequence[Name] = (),
) -> Integers:
    """Return, for each group, the row of a record with the most frequent allowed combination.

    A group without an allowed one takes the most frequent allowed one of the part; where the part
    has none, its own. Of equally frequent ones that of the first record is taken.
    """
    code = group_ids([cells.view.codes(name)[rows] for name in columns])
    first = np.unique(code, return_index=True)[1]
    allowed = allowed_of(cells, rows, columns, claims, strata)[first]
    pairs, place = np.unique(labels * len(first) + code, return_inverse=True)
    often = np.bincount(place.ravel(), weights)
    group, combination = pairs // len(first), pairs % len(first)
    order = np.lexsort((first[combination], -often, ~allowed[combination], group))
    best = combination[order[np.searchsorted(group[order], np.arange(count))]]
    everywhere = np.bincount(code, weights)
    if allowed.any():
        usual = np.lexsort((first, -everywhere, ~allowed))[0]
        best = np.where(allowed[best], best, usual)
    return np.asarray(rows[first[best]])


def allowed_of(
    cells: BlockCells,
    rows: Integers,
    columns: Sequence[Name],
    claims: Sequence[Claim],
    strata: Sequence[Name] = (),
) -> Truths:
    """Return which records keep all claims about these columns, and strata, and no others."""
    keeps = np.ones(len(rows), dtype=bool)
    for claim in claims:
        about = set(claim.columns)
        if about & set(columns) and about <= {*columns, *strata}:
            keeps &= cells.signs(claim)[rows] >= 0
    return keeps
