"""Groups that satisfy l and t: groups that do not are merged, split again, and improved.

What is asked for is closed under union (see `tessella.kernels.diversity`), so merging always ends:
at the latest with one group, which satisfies it or nothing does. A merged group is then split in
two, ever again, as long as both halves satisfy it.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from .._types import Floats, Integers
from ..diversity import Diversity
from ..kernels.diversity import choose_partners, split_groups
from ..kernels.groups import members_of, renumber, weighted_centres
from .refining import anneal_windows
from .units import COLD, MOVES, ROUNDS, WINDOW

# Near groups that one which lacks something may join: the first with which it lacks nothing. With
# twice as many, partners come from farther away, and what is won in values is lost in distance.
PARTNERS = 8


def merge_lacking(
    X: Floats, weights: Floats, labels: Integers, k: int, diversity: Diversity
) -> Integers:
    """Merge groups that do not satisfy `diversity` with near ones until all do.

    In every round groups are merged in pairs, at least one of them.
    """
    labels = renumber(labels, int(labels.max()) + 1)
    while not (kept := diversity.kept(labels)).all():
        n_groups = len(kept)
        if n_groups == 1:
            break  # refused before: see `Diversity.refuse_unattainable`
        centres = weighted_centres(X, weights, labels, n_groups)
        lacking = np.flatnonzero(~kept)
        count = min(PARTNERS + 1, n_groups)
        near = cKDTree(centres).query(centres[lacking], count)[1].reshape(len(lacking), count)
        # Of many groups in one place a group may not find itself: any of them will do.
        rows, ends = members_of(labels, n_groups)
        chosen = choose_partners(lacking, near.astype(np.int64), rows, ends, k, *diversity.arrays)
        new = np.arange(n_groups)
        new[lacking[chosen >= 0]] = chosen[chosen >= 0]
        labels = new[labels]
        labels = renumber(labels, int(labels.max()) + 1)
    return labels


def mend(
    X: Floats, weights: Floats, labels: Integers, k: int, diversity: Diversity, seed: int
) -> Integers:
    """Merge groups that lack something, and split what was merged as far as that goes."""
    labels = renumber(labels, int(labels.max()) + 1)
    merged = merge_lacking(X, weights, labels, k, diversity)
    first = np.unique(merged, return_index=True)[1]
    sizes = np.bincount(labels)[labels]
    grown = np.bincount(merged) > sizes[first]  # groups of more than one
    if not grown.any():
        return labels
    rows, ends = members_of(merged, len(grown))
    chosen = np.flatnonzero(grown)
    order = np.concatenate([rows[ends[g] : ends[g + 1]] for g in chosen])
    starts = np.append(0, np.cumsum(np.diff(ends)[chosen]))
    found = split_groups(X, order, starts, k, diversity.buckets, *diversity.arrays, seed)
    out = np.where(found >= 0, found + len(grown), merged)
    return renumber(out, int(out.max()) + 1)


def regroup_diverse(
    X: Floats,
    weights: Floats,
    labels: Integers,
    k: int,
    random: np.random.Generator,
    diversity: Diversity,
) -> Integers:
    """Mend a partition some of whose groups do not satisfy `diversity`, then improve it."""
    labels = renumber(labels, int(labels.max()) + 1)
    if diversity.kept(labels).all():
        return labels
    labels = mend(X, weights, labels, k, diversity, int(random.integers(2**31)))
    for _ in range(ROUNDS):
        labels = anneal_windows(
            X, weights, labels, k, None, largest=WINDOW, moves=MOVES, heat=COLD,
            seed=int(random.integers(2**31)), halt=np.zeros(1, dtype=np.uint8),
            diversity=diversity,
        )  # fmt: skip
    return labels
