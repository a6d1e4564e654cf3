"""Fuzzy microaggregation of one part of a table: find centres, then draw one for each record.

Memberships are probabilities. An intruder who knows the centres, the fuzziness, and even all
original records, still does not know which centre a record was given.

`draw_part` is Algorithm 1 of Torra (2020): each record's centre is drawn on its own, and some
centre gets one record. `draw_keeping_k` draws all together, from the same product of memberships
*given that* every group has at least k: a Markov chain starts at a good crisp grouping and lets
records change places (`kernels.random_moves`). Two limits keep it quick and the groups small: a
record stands only at one of its 24 nearest centres, and no group grows beyond 2k - 1 records (or
the largest crisp one).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree
from scipy.special import entr, logsumexp

from .._estimator import clone
from .._types import Floats, Integers
from ..exceptions import ClusterCountError
from ..grouping.base import Chance, Grouping
from ..grouping.mdav import MDAV
from ..grouping.search import Search
from ..kernels.degrees import EXPONENTIAL, NEAREST, POWER, TINY, Law
from ..kernels.groups import weighted_centres
from ..kernels.memberships import excess, recognise
from ..kernels.random_moves import Standing, exchange, stand
from ..linear import LinearSystem
from .base import FuzzyClusterer
from .field import Field, arrange

LIST = 24  # centres where a record may stand: the nearest ones
MIXING = 100  # sweeps (n steps each) until the assignment is taken
FAINT = 1e-12  # the least weight of a record in the mean of its group, before its own
LOOKS = 200  # further sweeps, from which each record's distribution is estimated


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """Centres, the one drawn for each record, and what could be expected of the draw."""

    labels: Integers  # (n,) the centre drawn
    centres: Floats  # (c, d) in the units of the records
    expected_sizes: Floats  # (c,) expected number of records at each centre
    entropy: Floats  # (n,) of each record's distribution over centres, in bits
    naming_chance: Floats  # (n,) that an intruder who knows all but the draw names the record
    distance_to_k: Floats  # (n,) of the candidates for a record to "nobody above 1/k"
    expected_square: Floats  # (n,) expected squared distance to the centre drawn
    shares: Floats  # (n,) how much a record counts in the mean of its group; none if all count


def draw_part(
    X: Floats, weights: Floats, centres: Floats, law: Law, *, k: int, chance: Chance
) -> Drawing:
    """Draw a centre for each record, steps 2 and 3 of Algorithm 1 of Torra (2020).

    `X` of shape (n, d) are the records of the part, on the scale of distances, with positive
    `weights`; for the `centres` see `find_centres`. `law` is the fuzziness of the draw (m2 or
    lambda2), in the units of X. Sizes are measured against `k`.
    """
    field = Field.of(X, weights, len(centres))
    inner, inner_law = field.inward(centres), field.law(law)
    outlook, expected = field.draw(inner, inner_law, chance.random(len(X)))
    packed, seen = arrange(inner), np.empty((len(X), 2))
    excesses = np.sum(
        field.on_pieces(
            lambda rows: excess(field.records, rows, packed, inner_law, expected, 1 / k)
        ),
        axis=0,
    )
    field.on_pieces(
        lambda rows: recognise(field.records, rows, packed, inner_law, expected, excesses, seen)
    )
    return Drawing(
        labels=outlook.drawn,
        centres=centres,
        expected_sizes=expected,
        entropy=outlook.entropy,
        naming_chance=seen[:, 0],
        distance_to_k=seen[:, 1],
        expected_square=outlook.square / field.scale / field.scale,
        shares=np.empty(0),
    )


def find_centres(
    X: Floats, weights: Floats, model: FuzzyClusterer, k: int, c: int | None
) -> FuzzyClusterer:
    """Fit a model of the centres: c of them, or n // k, which start at those of MDAV's groups."""
    model = clone(model)
    if c is not None:
        model.set_params(n_clusters=c)
    elif len(X) < 2 * k:
        model.set_params(n_clusters=1, n_init=1)
    else:
        found = MDAV(k).fit(X, sample_weight=weights).cluster_centers_
        # Groups of equal records have equal centres, of which one is enough.
        first = np.sort(np.unique(found, axis=0, return_index=True)[1])
        model.set_params(n_clusters=len(first), init=found[first])
    try:
        fitted: FuzzyClusterer = model.fit(X, sample_weight=weights)
    except ClusterCountError:
        if c is not None:
            raise
        places = np.unique(X, axis=0)  # fewer than there are groups: each is a centre
        model.set_params(n_clusters=len(places), init=places)
        fitted = model.fit(X, sample_weight=weights)
    return fitted


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
    system: LinearSystem | None = None,
) -> Drawing:
    """Let the records of groups change places, and give each group a fuzzy mean.

    The chain starts at `crisp`, fitted groups of at least k; see `crisp_groups`. `first` is the
    fuzziness of the centres: a record counts in the mean of its group by its degree there, to the
    power m1 (or with lambda1), but at least half as much as any other: else an outlier, which alone
    is near to its centre, would be released as it is. `second` is the fuzziness of the draw.
    Centres, before and after it, are moved to the nearest points that keep a `system`.
    """
    field = Field.of(X, weights, crisp.n_groups_)
    first_centres = crisp.cluster_centers_
    centres = field.inward(first_centres if system is None else system.project(first_centres))
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
    shares = _kappa(squares, drawn, field.law(first))[everyone, drawn]
    largest = np.full(len(centres), FAINT)
    np.maximum.at(largest, labels, shares)
    shares = np.maximum(shares, largest[labels] / 2)
    means = field.outward(weighted_centres(field.records, weights * shares, labels, len(centres)))
    means = means if system is None else system.project(means)
    return _account(X, means, labels, lists, visits / LOOKS, k, shares)


def nearby_shares(X: Floats, drawing: Drawing, first: Law) -> tuple[Integers, Integers, Floats]:
    """Return pairs of a record and one of its nearest centres, and kappa = u^m of each, not 0.

    u are degrees with the fuzziness `first`. The centre that a record drew counts at least a bit.
    """
    field = Field.of(X, np.ones(len(X)), len(drawing.centres))
    centres = field.inward(drawing.centres)
    lists = _nearest(field, centres, drawing.labels)
    squares = _squares(field.records, centres, lists)
    shares = _kappa(squares, squares.argmin(axis=1), field.law(first))
    shares = np.maximum(shares, FAINT * (lists == drawing.labels[:, None]))
    at, slot = np.nonzero(shares)
    return at, lists[at, slot], shares[at, slot]


def _kappa(squares: Floats, slots: Integers, law: Law) -> Floats:
    """Return the degrees to the power with which they count in a mean, as (n, t)."""
    logs = _log_degrees(squares, slots, law)
    power = 1 + 1 / law.rate if law.kind == POWER else 1.0
    kappa: Floats = np.exp(power * (logs - logsumexp(logs, axis=1, keepdims=True)))
    return kappa


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
    X: Floats,
    centres: Floats,
    labels: Integers,
    lists: Integers,
    stood: Floats,
    k: int,
    shares: Floats,
) -> Drawing:
    """Say what could be expected, from where each record stood in the long run."""
    flat = lists.ravel()
    expected: Floats = np.bincount(flat, stood.ravel(), minlength=len(centres)).astype(np.float64)
    candidates = np.divide(stood, expected[lists], out=np.zeros_like(stood), where=stood > 0)
    beyond = np.bincount(flat, np.maximum(candidates - 1 / k, 0.0).ravel(), minlength=len(centres))
    return Drawing(
        labels=labels,
        centres=centres,
        expected_sizes=expected,
        entropy=entr(stood).sum(axis=1) / np.log(2),
        naming_chance=(stood * candidates).sum(axis=1),
        distance_to_k=(stood * beyond[lists]).sum(axis=1),
        expected_square=(stood * _squares(X, centres, lists)).sum(axis=1),
        shares=shares,
    )
