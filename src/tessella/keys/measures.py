r"""What recoding costs: measures that are computed from the counts of combinations alone.

A measure is *separable* if it is a sum over cells, each of a number that only its column and its
released node decide. Then the loss of a node of the lattice, before anything is emptied, is known
from the frequencies of columns, and bounds from below what the node and all coarser ones lose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats, Integers
from ..exceptions import UnknownOptionError
from .coded import CodedKey

NAMES = ("certainty penalty", "entropy", "precision", "discernibility", "average class size")


@dataclass(frozen=True, kw_only=True, eq=False)
class Separable:
    """A sum over cells.

    Attributes
    ----------
    cost : tuple of lists of ndarray
        For each key and level what a known cell costs that is released as a node of that level.
    emptied : ndarray of shape (d,)
        For each key what an emptied cell costs: no less than any node.
    offset, scale : float
        The loss is (sum of costs + offset) / scale.
    """

    cost: tuple[list[Floats], ...]
    emptied: Floats
    offset: float = 0.0
    scale: float = 1.0

    def plain(self, keys: Sequence[CodedKey], weights: Floats) -> list[Floats]:
        """Return for each key what its levels cost if nothing is emptied."""
        found = []
        for key, cost in zip(keys, self.cost):
            leaves = key.table.shape[1]
            mass = np.bincount(key.codes, weights * key.known, minlength=leaves)
            found.append(np.array([float(mass @ own[at]) for own, at in zip(cost, key.table)]))
        return found

    def least_extra(self, keys: Sequence[CodedKey], weights: Floats) -> list[Floats]:
        """Return for each key and level the least that emptying a cell can cost in addition."""
        lightest, found = float(weights.min()), []
        for key, cost, gone in zip(keys, self.cost, self.emptied):
            if not key.known.all():  # nothing is lost where nothing was known
                found.append(np.zeros(key.n_levels))
                continue
            here = np.unique(key.codes)
            extra = [gone - own[at[here]].max() for own, at in zip(cost, key.table)]
            found.append(lightest * np.maximum(extra, 0.0))
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class OfClasses:
    """A function of the sizes of classes and of the number of records that are emptied.

    `value(sizes, emptied)` must not fall where classes are merged, nor where one is emptied.
    """

    value: Callable[[Integers, int], float]


def find_measure(name: Any, keys: Sequence[CodedKey], weights: Floats) -> Separable | OfClasses:
    """Return the measure of a name."""
    if name not in NAMES:
        raise UnknownOptionError("measure", name, NAMES)
    n = len(weights)
    mass = np.array([float(weights @ key.known) for key in keys])
    total = max(float(mass.sum()), 1e-300)
    if name == "certainty penalty":
        return Separable(
            cost=tuple([key.penalty] * key.n_levels for key in keys),
            emptied=np.ones(len(keys)),
            scale=total,
        )
    if name == "precision":
        cost = tuple(
            [np.full(len(key.penalty), level / max(1, key.n_levels - 1)) for level in
             range(key.n_levels)] for key in keys
        )  # fmt: skip
        return Separable(cost=cost, emptied=np.ones(len(keys)), scale=total)
    if name == "entropy":
        shares = [key.shares(weights) for key in keys]
        logs = [np.log2(np.where(share > 0, share, 1.0)) for share in shares]
        own = [
            -float((weights * key.known) @ log[key.codes_as_nodes]) for key, log in zip(keys, logs)
        ]
        return Separable(
            cost=tuple([log] * key.n_levels for key, log in zip(keys, logs)),
            emptied=np.zeros(len(keys)),
            offset=sum(own),
            scale=max(sum(own), 1e-300),
        )
    if name == "discernibility":
        return OfClasses(value=lambda sizes, gone: _discernibility(sizes, gone, n))
    return OfClasses(value=lambda sizes, gone: n / max(1, len(sizes) + (gone > 0)))


def _discernibility(sizes: Integers, emptied: int, n: int) -> float:
    """Return the sum of squared sizes, and n for each emptied record, over n squared."""
    kept = sizes.astype(np.float64)
    return float((kept * kept).sum() + float(emptied) * n) / float(n) ** 2
