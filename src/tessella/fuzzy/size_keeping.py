"""The draw of fuzzy microaggregation under the promise of k: every centre gets at least k records.

Algorithm 1 draws each record's centre on its own, and some centre gets one record. Here all are
drawn together, from the same product of memberships *given that* every group has at least k: a
Markov chain starts at a good crisp grouping and lets records change places (`kernels.exchange`).
Two limits keep it quick and the groups small: a record stands only at one of its 24 nearest
centres, and no group grows beyond 2k - 1 records (or the largest crisp one).
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree
from scipy.special import entr, logsumexp

from .._types import Floats, Integers
from ..grouping.base import Grouping
from ..grouping.search import Search
from ..kernels.degrees import EXPONENTIAL, NEAREST, POWER, TINY, Law
from ..kernels.exchange import Standing, exchange, stand
from ..kernels.groups import weighted_centres
from .drawing import Chance, Drawing
from .field import Field

__all__ = ["crisp_groups", "draw_keeping_k"]


LIST = 24  # centres where a record may stand: the nearest ones
MIXING = 100  # sweeps (n steps each) until the assignment is taken
FAINT = 1e-12  # the least weight of a record in the mean of its group, before its own
LOOKS = 200  # further sweeps, from which each record's distribution is estimated


def crisp_groups(X: Floats, weights: Floats, *, k: int, chance: Chance) -> Grouping:
    """Group the records, with little loss, for `draw_keeping_k` to start from."""
    seed = int(chance.random(1)[0] * 2**31)
    return Search(k, effort="quick", random_state=seed).fit(X, sample_weight=weights)


def draw_keeping_k(
    X: Floats,
    weights: Floats,
    crisp: Grouping,
    first: Law,
    second: Law,
    *,
    k: int,
    chance: Chance,
) -> Drawing:
    """Let the records of groups change places, and give each group a fuzzy mean.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The records of the part, on the scale of distances.
    weights : ndarray of shape (n,)
        Positive weights.
    crisp : Grouping
        Fitted groups of at least k, where the chain starts; see `crisp_groups`.
    first : Law
        The fuzziness of the centres: a record counts in the mean of its group by its degree there,
        to the power m1 (or with lambda1), so outliers count less.
    second : Law
        The fuzziness of the draw.
    k : int
        The least number of records at a centre.
    chance : Chance
        The source of random numbers.
    """
    field = Field.of(X, weights, crisp.n_groups_)
    centres = field.inward(crisp.cluster_centers_)
    lists = _nearest(field, centres, crisp.labels_)
    squares = _squares(field.records, centres, lists)
    slots = (lists == crisp.labels_[:, None]).argmax(axis=1)
    most = max(2 * k - 1, int(np.bincount(crisp.labels_).max()))
    degrees = _log_degrees(squares, slots, field.law(second))
    standing = stand(lists, degrees, slots, len(centres), most)
    visits, everyone = np.zeros_like(lists), np.arange(field.n)
    for _ in range(MIXING):
        _sweep(standing, k, chance, None)
    drawn = slots.copy()
    for _ in range(LOOKS):
        _sweep(standing, k, chance, visits)
    labels = lists[everyone, drawn]
    own = _log_degrees(squares, drawn, field.law(first))
    power = 1 + 1 / first.rate if first.kind == POWER else 1.0
    shares = np.exp(power * (own[everyone, drawn] - logsumexp(own, axis=1)))
    means = weighted_centres(
        field.records, weights * np.maximum(shares, FAINT), labels, len(centres)
    )
    return _account(X, field.outward(means), labels, lists, visits / LOOKS, k)


def _nearest(field: Field, centres: Floats, labels: Integers) -> Integers:
    """List the nearest centres of each record, its own among them, as (n, t)."""
    t = min(len(centres), LIST)
    found = KDTree(centres).query(field.records, k=t)[1]
    lists = np.asarray(found, dtype=np.int64).reshape(field.n, t)
    absent = ~(lists == labels[:, None]).any(axis=1)
    lists[absent, -1] = labels[absent]
    return lists


def _squares(records: Floats, centres: Floats, lists: Integers) -> Floats:
    """Squared distances of records to the centres of their lists, as (n, t)."""
    squares = np.empty(lists.shape)
    for j in range(lists.shape[1]):
        squares[:, j] = ((records - centres[lists[:, j]]) ** 2).sum(axis=1)
    return squares


def _log_degrees(squares: Floats, slots: Integers, law: Law) -> Floats:
    """Logarithms of degrees, up to a constant a record; a crisp record stays in its slot."""
    if law.kind == NEAREST:
        return np.where(np.arange(squares.shape[1]) == slots[:, None], 0.0, -np.inf)
    if law.kind == EXPONENTIAL:
        return -law.rate * squares
    logs: Floats = -law.rate * np.log(squares + TINY)
    return logs


def _sweep(standing: Standing, k: int, chance: Chance, visits: Integers | None) -> None:
    n = len(standing.lists)
    none = np.empty((0, 0), dtype=np.int64)
    exchange(standing, k, chance.random(4 * n).reshape(n, 4), none if visits is None else visits)


def _account(
    X: Floats, centres: Floats, labels: Integers, lists: Integers, shares: Floats, k: int
) -> Drawing:
    """Say what could be expected, from where each record stood in the long run."""
    flat = lists.ravel()
    expected: Floats = np.bincount(flat, shares.ravel(), minlength=len(centres)).astype(np.float64)
    candidates = np.divide(shares, expected[lists], out=np.zeros_like(shares), where=shares > 0)
    beyond = np.bincount(flat, np.maximum(candidates - 1 / k, 0.0).ravel(), minlength=len(centres))
    return Drawing(
        labels=labels,
        centres=centres,
        expected_sizes=expected,
        entropy=entr(shares).sum(axis=1) / np.log(2),
        naming_chance=(shares * candidates).sum(axis=1),
        distance_to_k=(shares * beyond[lists]).sum(axis=1),
        expected_square=(shares * _squares(X, centres, lists)).sum(axis=1),
    )
