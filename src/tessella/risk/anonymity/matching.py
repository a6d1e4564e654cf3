"""Who agrees with whom on the keys: how many records, and how much weight.

Records that agree on every key form a *class*. Where a missing value agrees with every value there
are no classes (a record may agree with two that disagree), but each record has a number of matches
all the same. They are counted by missing pattern: records that lack the same keys agree with those
of another pattern if and only if they agree on the keys that both patterns have.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from ..._types import Floats, Integers
from .keys import Keys, check_missing, first_of, number

__all__ = ["Matches", "count_matches"]


@dataclass(frozen=True, kw_only=True)
class Matches:
    """For each record: its class, how many records agree with it, and their weight."""

    classes: Integers
    count: Integers
    weight: Floats | None

    @property
    def sizes(self) -> Integers:
        """The number of records of each class, missing values taken as values."""
        return np.bincount(self.classes)


def count_matches(
    keys: Keys, *, missing: str = "category", weights: Floats | None = None
) -> Matches:
    """Count for each record those that agree with it on the keys, itself included."""
    check_missing(missing)
    classes = number(keys.codes)
    sizes = np.bincount(classes)
    mass: Any = None if weights is None else np.bincount(classes, weights=weights)
    if missing == "any":
        first = first_of(classes)  # one record for each class will do
        X = np.column_stack([column[first] for column in keys.codes])
        given = [sizes.astype(np.float64)] + ([] if mass is None else [mass])
        found = _with_wildcards(X, np.column_stack(given))
        sizes, mass = np.rint(found[:, 0]).astype(np.int64), None if mass is None else found[:, 1]
    return Matches(
        classes=classes,
        count=sizes[classes],
        weight=None if mass is None else mass[classes],
    )


def _with_wildcards(X: Integers, masses: Floats) -> Floats:
    """Sum masses, (c, w), over the rows of X, (c, d), that agree where both have a value."""
    lacking = X < 0
    pattern = number(list(lacking.astype(np.int64).T))
    rows = [np.flatnonzero(pattern == p) for p in range(int(pattern.max()) + 1)]
    out = np.zeros_like(masses)
    for p, q in combinations_with_replacement(range(len(rows)), 2):
        both = np.flatnonzero(~lacking[rows[p][0]] & ~lacking[rows[q][0]])
        pair = [rows[p]] if p == q else [rows[p], rows[q]]
        together = np.concatenate(pair)
        if len(both):
            alike = number([X[together, column] for column in both])
        else:
            alike = np.zeros(len(together), dtype=np.int64)
        parts = np.split(alike, [len(rows[p])]) if p != q else [alike]
        n_alike = int(alike.max()) + 1
        for mine, theirs in ((0, 1), (1, 0)) if p != q else ((0, 0),):
            for w in range(masses.shape[1]):
                sums = np.bincount(
                    parts[theirs], weights=masses[pair[theirs], w], minlength=n_alike
                )
                out[pair[mine], w] += sums[parts[mine]]
    return out
