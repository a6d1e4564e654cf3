"""Groups of at least k distinct units: a first partition, and a partition that is mended.

The promise never fails for want of a method: records of groups with too few units are grouped
again, and what is left joins groups that keep the promise; a group that gets more keeps it.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats, Integers
from ..frame import count_units
from ..kernels.groups import renumber
from ..kernels.units import start_of_units
from ..kernels.windows import tile
from .mdav import join_nearest
from .refining import anneal_windows

# A last improvement: so many rounds of windows of so many groups, proposals a record in each, and
# temperatures at which hardly anything is accepted that costs.
ROUNDS, WINDOW, MOVES, COLD = 4, 40, 500.0, (0.02, 0.001)


def balls_of_units(X: Floats, weights: Floats, units: Integers, k: int, seed: int) -> Integers:
    """Group all records in balls of k units; the last ones, of fewer units, join the nearest."""
    order, starts = tile(X, max(256, 4 * k), seed)
    labels = start_of_units(X, order, starts, units, int(units.max()) + 1, k)
    return join_nearest(X, weights, labels)


def regroup(
    X: Floats,
    weights: Floats,
    labels: Integers,
    k: int,
    random: np.random.Generator,
    units: Integers,
) -> Integers:
    """Mend a partition some of whose groups have fewer than k units, then improve it."""
    labels = renumber(labels, int(labels.max()) + 1)
    kept, _ = _without_few(labels, units, k)
    too_few = kept < 0
    if not too_few.any():
        return labels
    labels = kept
    found, own = np.unique(units[too_few], return_inverse=True)
    if len(found) >= k:  # always so where all groups have too few
        part = np.ascontiguousarray(X[too_few])
        order, starts = tile(part, max(256, 4 * k), int(random.integers(2**31)))
        again = start_of_units(part, order, starts, own, len(found), k)
        labels[too_few] = np.where(again >= 0, again + labels.max() + 1, -1)
    labels = join_nearest(X, weights, labels)
    return polish(X, weights, renumber(labels, int(labels.max()) + 1), k, random, units)


def join_few_units(
    X: Floats, weights: Floats, labels: Integers, units: Integers, k: int
) -> Integers:
    """Let the records of groups with fewer than k units join the nearest groups that have k.

    Where no group has k units, all records are put into one.
    """
    kept, names = _without_few(labels, units, k)
    if not len(names):
        return np.full_like(labels, labels[0])
    return np.asarray(names[join_nearest(X, weights, kept)])


def _without_few(labels: Integers, units: Integers, k: int) -> tuple[Integers, Integers]:
    """Number the groups of at least k units from 0, -1 for other records; also their old names."""
    enough = count_units(labels, units)[labels] >= k
    kept = np.full(len(labels), -1)
    names, kept[enough] = np.unique(labels[enough], return_inverse=True)
    return kept, names


def polish(
    X: Floats,
    weights: Floats,
    labels: Integers,
    k: int,
    random: np.random.Generator,
    units: Integers,
) -> Integers:
    """Improve a partition by moves between near groups; the result is never worse."""
    for _ in range(ROUNDS):
        labels = anneal_windows(
            X, weights, labels, k, units, largest=WINDOW, moves=MOVES, heat=COLD,
            seed=int(random.integers(2**31)), halt=np.zeros(1, dtype=np.uint8),
        )  # fmt: skip
    return labels
