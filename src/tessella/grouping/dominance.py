"""Dominance: released groups whose total gives away the value of a single record.

A released group shows its size and its mean, hence a total. Where one record *contributes* nearly
all of it, the total is that record's value. Which totals are sensitive is decided by the rules for
tables of magnitudes: the p% rule and (n,k)-dominance. The contribution of a record is its weight
times the absolute value of its cell: rules about shares of a total know no signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from .._parameters import Number, OneOf, Whole
from .._types import Floats, Integers, Truths
from ..exceptions import BadOptionError
from ..kernels.groups import renumber

NEAR = 0.1  # a value that is worked out to within this share of itself is disclosed
MOST = 10  # times k: the size up to which dominated groups are enlarged
ON_DOMINANCE = OneOf(("report", "enlarge", "refuse"))
STEPS = 60  # of a bisection: a cap to the last digit of a float


@dataclass(frozen=True)
class DominanceRule:
    """When a total is sensitive: by p, or by n and k.

    Parameters
    ----------
    p : float, optional
        The p% rule: the record with the second largest contribution works out the largest to
        within p per cent of it, x1 + ... + xm - x1 - x2 < p/100 x1.
    n, k : int and float, optional
        The (n,k) rule: the n largest contribute more than k per cent of the total.

    References
    ----------
    A. Hundepool et al. (2012). Statistical disclosure control, section 4.2. Wiley.
    """

    p: float | None = None
    n: int | None = None
    k: float | None = None

    @classmethod
    def of(cls, wish: Any) -> DominanceRule:
        """Read a rule: a number p, {"p": 10}, or {"n": 1, "k": 85}."""
        if isinstance(wish, cls):
            return wish
        given = dict(wish) if isinstance(wish, Mapping) else {"p": wish}
        percent = Number(above=0, below=100)
        by_p = set(given) == {"p"} and percent.accepts(given["p"])
        by_n = set(given) == {"n", "k"} and Whole(1).accepts(given["n"])
        if not by_p and not (by_n and percent.accepts(given["k"])):
            expected = "p in per cent, such as 10, {'p': 10}, or {'n': 1, 'k': 85}"
            raise BadOptionError("dominance", wish, expected)
        return cls(**given)

    def __str__(self) -> str:
        return f"p% rule, p = {self.p:g}" if self.p is not None else f"({self.n},{self.k:g}) rule"

    @property
    def depth(self) -> int:
        """How many of the largest contributions it looks at."""
        return 2 if self.n is None else self.n

    @property
    def at_risk(self) -> int:
        """How many records of a sensitive group it is about."""
        return 1 if self.n is None else self.n

    def sensitive(self, total: Floats, largest: Floats) -> Truths:
        """Judge totals by their largest contributions, of shape (depth, m), the largest first.

        A released total may be below the largest contribution, where values were coded: then it
        tells that contribution as far as it is near.
        """
        known = largest.sum(axis=0)
        left = np.abs(total - known)
        if self.p is not None:
            near: Truths = (largest[0] > 0) & (left < self.p / 100 * largest[0])
        else:
            near = (known > 0) & (left < (100 / (self.k or 100) - 1) * known)
        return near


def checked_dominance(dominance: Any, on_dominance: Any) -> DominanceRule:
    """Read the rule about groups that a record dominates, and check what is to be done."""
    if not ON_DOMINANCE.accepts(on_dominance):
        raise BadOptionError("on_dominance", on_dominance, str(ON_DOMINANCE))
    return DominanceRule.of(dominance)


@dataclass(frozen=True, kw_only=True, eq=False)
class Dominated:
    """What groups give away of one column.

    `groups` are the sensitive groups, `rows` the records that they are about, `within` the cells
    that anybody gets to within 10 % as size times mean.
    """

    groups: Integers
    rows: Integers
    within: Truths
    guess: Floats


def find_dominated(
    groups: Integers, x: Floats, released: Floats, weights: Floats | None, rule: DominanceRule
) -> Dominated:
    """Judge the totals of groups, numbered from 0, in a column; in O(n log n).

    The total that is seen is that of the released values. Where these are means, it is the sum of
    the contributions; where values were coded or rounded it may be far from it. A group is
    sensitive if both are. NaN is a missing cell. A record that is alone is in no group.
    """
    known = ~(np.isnan(x) | np.isnan(released))
    sizes = np.bincount(groups[known], minlength=int(groups.max()) + 1)
    at = np.flatnonzero(known & (sizes[groups] > 1))
    within, guess = np.zeros(len(x), dtype=bool), np.full(len(x), np.nan)
    if not len(at):
        none = np.empty(0, dtype=np.int64)
        return Dominated(groups=none, rows=none, within=within, guess=guess)
    at = at[np.argsort(groups[at], kind="stable")]
    w = np.ones(len(at)) if weights is None else weights[at]
    values, own = x[at], groups[at]
    starts, place = _runs(own)
    shown = np.add.reduceat(w * released[at], starts)
    parts = w * np.abs(values)
    total, signed = np.add.reduceat(parts, starts), np.add.reduceat(w * values, starts)
    largest, rows = _largest(parts, starts, place, rule.depth)
    flagged = rule.sensitive(total, largest) & rule.sensitive(total + shown - signed, largest)
    guess[at] = shown[place] / w
    within[at] = (values != 0) & (np.abs(guess[at] - values) <= NEAR * np.abs(values))
    risky = rows[: rule.at_risk, flagged]
    return Dominated(
        groups=own[starts[flagged]], rows=at[risky[risky >= 0]], within=within, guess=guess
    )


def _largest(
    parts: Floats, starts: Integers, place: Integers, depth: int
) -> tuple[Floats, Integers]:
    """Return the largest parts of each run and where they are, -1 for none: (depth, runs)."""
    left = parts.copy()
    values = np.zeros((depth, len(starts)))
    rows = np.full((depth, len(starts)), -1)
    for i in range(depth):
        top = np.maximum.reduceat(left, starts)
        hit = np.flatnonzero((left == top[place]) & (left >= 0))
        first = hit[np.r_[True, place[hit[1:]] != place[hit[:-1]]]] if len(hit) else hit
        values[i] = np.maximum(top, 0.0)
        rows[i, place[first]] = first
        left[first] = -1.0
    return values, rows


def _is_dominated(values: Floats, weights: Floats, rule: DominanceRule) -> Truths:
    """Judge each column of a single group's cells, (m, d)."""
    parts = np.nan_to_num(weights[:, None] * np.abs(values))
    depth = min(rule.depth, len(parts))
    largest = np.zeros((rule.depth, parts.shape[1]))
    largest[:depth] = np.partition(parts, -depth, axis=0)[-depth:]
    largest = np.sort(largest, axis=0)[::-1]
    return rule.sensitive(parts.sum(axis=0), largest)


def least_cap(groups: Integers, x: Floats, weights: Floats | None, rule: DominanceRule) -> float:
    """Return the largest t for which nobody dominates any group once all |x| are cut at t.

    The share of the largest falls with t, so that a bisection finds it in each group; 0 where no
    cut helps, as all others of a group are 0. NaN is a missing cell.
    """
    order = np.argsort(groups, kind="stable")
    starts, place = _runs(groups[order])
    size = np.nan_to_num(np.abs(x[order]))
    w = np.ones(len(x)) if weights is None else weights[order]
    high = np.maximum.reduceat(size, starts)
    low = np.zeros_like(high)
    for _ in range(STEPS):
        middle = (low + high) / 2
        parts = w * np.minimum(size, middle[place])
        largest, _ = _largest(parts, starts, place, rule.depth)
        flagged = rule.sensitive(np.add.reduceat(parts, starts), largest)
        low, high = np.where(flagged, low, middle), np.where(flagged, middle, high)
    return float(low.min())


def _runs(groups: Integers) -> tuple[Integers, Integers]:
    """Return where each run of equal numbers starts, and in which run each place is."""
    fresh = np.r_[True, groups[1:] != groups[:-1]]
    return np.flatnonzero(fresh), np.cumsum(fresh) - 1


def enlarge(
    labels: Integers,
    points: Floats,
    values: Floats,
    weights: Floats,
    rule: DominanceRule,
    parts: list[Integers],
    most: int,
) -> Integers:
    """Merge each dominated group with the nearest of its part until nobody dominates it.

    Groups that nobody dominates give such a group when merged: what is left of the total beside the
    largest only grows. A group that takes more than `most` records stays dominated.
    """
    out = labels.copy()
    for rows in parts:
        own = np.unique(labels[rows], return_inverse=True)[1]
        members = dict(enumerate(np.split(rows[np.argsort(own, kind="stable")],
                                          np.cumsum(np.bincount(own))[:-1])))  # fmt: skip
        todo = [g for g, m in members.items() if _is_dominated(values[m], weights[m], rule).any()]
        if not todo or len(members) == 1:
            continue
        centres = np.array([points[m].mean(axis=0) for m in members.values()])
        tree, home = KDTree(centres), list(range(len(centres)))  # home: into which one merged
        while todo:
            group = _home(home, todo.pop())
            inside = members[group]
            if not _is_dominated(values[inside], weights[inside], rule).any():
                continue
            other = _nearest_other(tree, home, points[inside].mean(axis=0), group)
            if other is None or len(inside) + len(members[other]) > most:
                continue
            members[group] = np.concatenate([inside, members.pop(other)])
            home[other] = group
            todo.append(group)
        for group, inside in members.items():
            out[inside] = labels[members[group][0]]
    return renumber(out, int(out.max()) + 1)


def _home(home: list[int], group: int) -> int:
    while home[group] != group:
        home[group] = group = home[home[group]]
    return group


def _nearest_other(tree: KDTree, home: list[int], point: Floats, group: int) -> int | None:
    """Return the group that has the nearest centre not of this group."""
    count = 1
    while count < len(home):
        count = min(4 * count, len(home))
        for near in tree.query(point, k=count)[1]:
            if (other := _home(home, int(near))) != group:
                return other
    return None
