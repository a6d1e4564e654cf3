"""Who can be in a group of which only the mean and the size are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from ..._types import Floats, Integers, Truths
from ...masking.scale import Scale
from .scene import Scene, number_equal_rows

__all__ = ["Groups", "possible_members"]


STEPS = 100  # of the search for prices
SINGLE = 2.0**-23  # of a number's size: what rounding it to a float32 may change
ROOM = 1e-9  # of the numbers' size: what sums in floating point may lack


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """Groups that a release shows in one block."""

    number: Integers  # (m,) the group of each masked record
    sizes: Integers  # (groups,)
    centres: Floats  # (groups, d) as released, NaN where missing
    leader: Integers  # (groups,) a masked record of each


def possible_members(
    scene: Scene, places: list[int], groups: Groups, *, margin: int | None, scale: Any
) -> tuple[Integers, Integers]:
    """Return pairs of group and original that are possible, or near, as two arrays."""
    B = scene.sides.B[:, places]
    names = [scene.sides.columns[j] for j in places]
    half = _half_steps(B, scene.sides.A[:, places])
    wish = {n: scale[n] for n in names if n in scale} if isinstance(scale, dict) else scale
    measured = Scale.of(B, np.ones(scene.n), wish, names)
    gaps = np.concatenate([np.isnan(B), np.isnan(groups.centres)])
    layer = scene.strata[scene.sides.truth[groups.leader]]
    parts = number_equal_rows([np.concatenate([scene.strata, layer]), gaps])
    lists, members = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for part in np.unique(parts):
        rows = np.flatnonzero(parts[: scene.n] == part)
        here = np.flatnonzero(parts[scene.n :] == part)
        if len(rows) == 0 or len(here) == 0:
            continue
        X, C = measured.apply(B[rows]), measured.apply(groups.centres[here])
        step = np.where(gaps[rows[0]], 0.0, half / measured.unit)
        if margin is None:
            allowed = _allowed(X, C, groups.sizes[here], step)
            record, group = np.nonzero(allowed)
        else:
            t = min(margin, len(here))
            near = np.asarray(KDTree(C).query(X, k=t)[1]).reshape(len(X), t)
            record, group = np.repeat(np.arange(len(X)), t), near.ravel()
        lists.append(here[group])
        members.append(rows[record])
    return np.concatenate(lists), np.concatenate(members)


def _half_steps(B: Floats, A: Floats) -> Floats:
    """Return how far released means may be from the exact ones: half of 1 if all are whole.

    Means that a float32 holds exactly were perhaps rounded to one.
    """
    whole = (np.isnan(A) | (np.round(A) == A)).all(axis=0)
    with np.errstate(over="ignore"):
        single = (np.isnan(A) | (A.astype(np.float32) == A)).all(axis=0) & ~whole
    size = np.nanmax(np.abs(np.concatenate([B, np.zeros((1, B.shape[1]))])), axis=0)
    steps: Floats = np.where(whole, 0.5, 0.0) + np.where(single, SINGLE, ROOM) * size
    return steps


def _allowed(X: Floats, C: Floats, sizes: Integers, step: Floats) -> Truths:
    """Say which of the records (n, d) can be in which of the groups: (n, groups)."""
    return _mean_is_left(X, C, sizes, step) & _loss_is_left(X, C, sizes, step)


def _mean_is_left(X: Floats, C: Floats, sizes: Integers, step: Floats) -> Truths:
    """Whether s - 1 originals can make up the rest of a group's sum, column by column."""
    allowed = np.ones((len(X), len(C)), dtype=bool)
    others = np.minimum(sizes - 1, len(X))
    for j in range(X.shape[1]):
        sums = np.concatenate([[0.0], np.cumsum(np.sort(X[:, j]))])
        least, most = sums[others], sums[-1] - sums[len(X) - others]
        room = sizes * step[j] + ROOM * np.abs(X[:, j]).sum()
        total = sizes * C[:, j]
        allowed &= (X[:, j, None] >= total - most - room) & (X[:, j, None] <= total - least + room)
    return allowed


def _loss_is_left(X: Floats, C: Floats, sizes: Integers, step: Floats) -> Truths:
    """Whether the loss suffices for a record to be so far from its centre."""
    if len(C) == 1:
        return np.ones((len(X), 1), dtype=bool)
    X, C = X - X.mean(axis=0), C - X.mean(axis=0)
    squares = float((X * X).sum())
    # With a rounded centre c' = c + e, the sum of |x - c'|^2 is that of |x|^2 less that of
    # s |c'|^2, plus 2 s e c', of which only |e| <= step is known.
    loss = squares - float(sizes @ (C * C).sum(axis=1)) + ROOM * squares
    loss += 2 * float(sizes @ (np.abs(C) @ step))
    cost = cdist(X, C, "sqeuclidean")
    prices, best, bound = np.zeros(len(C)), np.zeros(len(C)), -np.inf
    for number in range(STEPS):  # subgradient steps, in length the gap by the square (Polyak)
        priced = cost + prices
        cheapest = priced.argmin(axis=1)
        value = float(priced[np.arange(len(X)), cheapest].sum() - sizes @ prices)
        if value > bound:
            best, bound = prices, value
        crowd = np.bincount(cheapest, minlength=len(C)) - sizes
        size = float(crowd @ crowd)
        if size == 0 or loss <= bound:
            break
        prices = prices + (loss - value) / size * crowd * 0.98**number
    priced = cost + best
    above = priced - priced.min(axis=1, keepdims=True)
    allowed: Truths = above <= max(loss - bound, 0.0) + ROOM * squares
    return allowed
