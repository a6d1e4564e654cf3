"""Fuzzy microaggregation of one part of a table: find centres, then draw one for each record.

Memberships are probabilities. An intruder who knows the centres, the fuzziness, and even all
original records, still does not know which centre a record was given.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from .._types import Floats, Integers
from ..grouping.base import check_seed
from ..grouping.mdav import MDAV
from ..kernels.degrees import Law
from ..kernels.memberships import excess, recognise
from .base import FuzzyClusterer
from .field import Field, arrange

__all__ = ["Chance", "Drawing", "SystemChance", "chance_of", "draw_part", "find_centres"]


class Chance(Protocol):
    """Where random numbers come from: a seeded generator, or the operating system."""

    def random(self, size: int) -> Floats:
        """Return numbers that are uniform in [0, 1)."""
        ...


class SystemChance:
    """Random numbers of the operating system: nobody can draw them again."""

    def random(self, size: int) -> Floats:
        """Return numbers that are uniform in [0, 1), with 53 bits."""
        words = np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
        return np.asarray((words >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def chance_of(random_state: Any) -> Chance:
    """Return the operating system's random numbers for None, else a seeded generator."""
    if random_state is None:
        return SystemChance()
    seed = check_seed(random_state).randint(2**31 - 1, size=4)
    return np.random.default_rng(seed.tolist())


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


def draw_part(
    X: Floats, weights: Floats, fitted: FuzzyClusterer, law: Law, *, k: int, chance: Chance
) -> Drawing:
    """Draw a centre for each record, steps 2 and 3 of Algorithm 1 of Torra (2020).

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The records of the part, on the scale of distances.
    weights : ndarray of shape (n,)
        Positive weights.
    fitted : fuzzy clusterer
        With the centres; see `find_centres`.
    law : Law
        The fuzziness of the draw (m2 or lambda2), in the units of X.
    k : int
        What sizes are measured against.
    chance : Chance
        The source of random numbers.
    """
    field = Field.of(X, weights, fitted.n_clusters_)
    inner, inner_law = field.inward(fitted.cluster_centers_), field.law(law)
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
        centres=fitted.cluster_centers_,
        expected_sizes=expected,
        entropy=outlook.entropy,
        naming_chance=seen[:, 0],
        distance_to_k=seen[:, 1],
        expected_square=outlook.square / field.scale / field.scale,
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
    fitted: FuzzyClusterer = model.fit(X, sample_weight=weights)
    return fitted
