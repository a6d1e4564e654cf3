"""One value for each group and column, by the operator that the plan chose."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...kernels.groups import weighted_centres
from ...plan.claims import Claim
from ...rules import forms
from .data import Data

__all__ = ["log_means", "lower_medians", "means", "medoids", "modes"]

Name = Hashable
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]


def means(values: Floats, weights: Floats, labels: Integers, count: int) -> Floats:
    """Weighted mean of each group and column, shape (groups, d); NaN where all is missing."""
    known = np.where(np.isnan(values), 0.0, values)
    out: Floats = weighted_centres(np.ascontiguousarray(known), weights, labels, count)
    first = np.unique(labels, return_index=True)[1]
    out[np.isnan(values[first])] = np.nan
    return out


def log_means(values: Floats, weights: Floats, labels: Integers, count: int) -> Floats:
    """Weighted geometric mean of positive values, shape (groups, d)."""
    return np.asarray(np.exp(means(np.log(values), weights, labels, count)))


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
    embedded: Floats, weights: Floats, labels: Integers, count: int, obedient: Truths
) -> Integers:
    """Return, for each group, the place of the obedient record nearest to the group's mean.

    A group without an obedient record takes the nearest one of the whole part; -1 if there is none.
    """
    centres = weighted_centres(embedded, weights, labels, count)
    squares = ((embedded - centres[labels]) ** 2).sum(axis=1)
    squares = np.where(obedient, squares, np.inf)
    order = np.lexsort((np.arange(len(labels)), squares, labels))
    first = order[np.searchsorted(labels[order], np.arange(count))]
    if not obedient.any():
        return np.full(count, -1, dtype=np.int64)
    good = np.flatnonzero(obedient)
    for group in np.flatnonzero(~obedient[first]):
        away = ((embedded[good] - centres[group]) ** 2).sum(axis=1)
        first[group] = good[away.argmin()]
    return first


def modes(
    data: Data,
    rows: Integers,
    columns: Sequence[Name],
    weights: Floats,
    labels: Integers,
    count: int,
    claims: Sequence[Claim],
) -> Integers:
    """Return, for each group, the row of a record with the most frequent allowed combination.

    What a claim does not allow is chosen only if the whole part has nothing else; of equally
    frequent ones that of the first record is taken.
    """
    own = data.values[rows][:, [data.place(name) for name in columns]]
    own = np.where(np.isnan(own), -1.0, own)
    _, first, code = np.unique(own, axis=0, return_index=True, return_inverse=True)
    code = code.ravel()
    allowed = _allowed(data, rows, columns, claims)[first]
    table = np.zeros((count, len(first)))
    np.add.at(table, (labels, code), weights)
    everywhere = np.bincount(code, weights, minlength=len(first))
    # Groups prefer what is allowed and theirs, then what is allowed, then the first met.
    score = np.where(allowed, 1e6, 0.0) * (1 + (table > 0)) * weights.sum() + table
    score += 1e-9 * everywhere / weights.sum()
    met = np.argsort(first)
    best = met[score[:, met].argmax(axis=1)]
    return np.asarray(rows[first[best]])


def _allowed(
    data: Data, rows: Integers, columns: Sequence[Name], claims: Sequence[Claim]
) -> Truths:
    """Say which records keep all claims about these columns and no others."""
    keeps = np.ones(len(rows), dtype=bool)
    for claim in claims:
        if set(claim.columns) <= set(columns) and not isinstance(claim.form, forms.ObservedValues):
            keeps &= data.signs(claim)[rows] >= 0
    return keeps
