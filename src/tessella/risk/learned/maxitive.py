"""Choquet integrals of k-maxitive measures: what counts is the best small set of variables.

A measure is *k-maxitive* when the measure of any set is the largest of those of its subsets of at
most k variables. One number for each of these sets says it all, for any number of variables. With
k = 1 it is a possibility measure, with k = d any fuzzy measure.

They are searched set by set. The integral is not linear in these parameters, but with all others
fixed it takes one pass to know it for many values of one: each step counts the links at all of
them, exactly, and goes to the middle of the widest stretch of the best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np

from ..._parameters import Whole, check
from ..._types import Floats, Integers
from ...exceptions import BadOptionError
from ...kernels import maxitive as kernels
from ...kernels.candidates import count_positive, lowest
from ...parallel import each
from ..aligned import AlignedTables
from .choquet import lifted, shapley_of
from .families import Family, WeightedMean, as_numbers
from .search import PATIENCE, Competitors, starts_of

PIECE = 256  # records for a piece of work
LOWEST = 8  # rows of each record that a sweep looks at; all are counted after it
TRIES = 12  # values of a set
MOST_STEPS = 150  # sets in one sweep
MOST_SETS = 5000  # that have a number of their own
EXACT = 14  # variables up to which all sets are looked at to explain
ORDERS = 2000  # of the variables, drawn to explain more


def search_maxitive(
    sides: AlignedTables,
    competitors: Competitors,
    start: MaxitiveChoquet,
    generator: np.random.Generator,
    *,
    sweeps: int = 8,
) -> tuple[MaxitiveChoquet, int]:
    """Return a member that links at least as many of the records as the start."""
    starts = competitors.starts
    best, level = start, _level(sides, competitors, start)
    most = int(count_positive(starts, level, 0.0))
    kept = np.zeros(len(level), dtype=bool)
    idle = 0
    for _ in range(sweeps):
        chosen = lowest(starts, level, LOWEST, kept)
        some = replace(
            competitors, starts=starts_of(chosen)[starts], which=competitors.which[chosen]
        )
        pieces = [_sorted(sides, best.sets, piece) for piece in some.pieces(PIECE)]
        values = best.essential()
        for place in generator.permutation(len(values))[:MOST_STEPS]:
            tries = _tries(values, int(place), generator)
            work = partial(_links, values, int(place), tries)
            values[place] = _middle(tries, np.sum(each(work, pieces), axis=0))
            if not values.any():
                values[place] = 1.0
        moved = best.repair(values)
        new_level = _level(sides, competitors, moved)
        count = int(count_positive(starts, new_level, 0.0))
        idle = 0 if count > most else idle + 1
        if count >= most:
            best, level, most = moved, new_level, count
        else:
            kept |= new_level <= 0  # rows that were overlooked
        if idle >= PATIENCE:
            break
    return best, most


def _sorted(sides: AlignedTables, sets: Integers, some: Competitors) -> tuple[Any, Any, Integers]:
    """Return the squares of some records and of their competitors, sorted, and their starts."""
    own = kernels.sorted_pairs(sets, sides.A, sides.B, some.records, sides.truth[some.records])
    theirs = kernels.sorted_pairs(sets, sides.A, sides.B, some.records[some.owner], some.which)
    return own, theirs, some.starts


def _links(values: Floats, place: int, tries: Floats, piece: Any) -> Integers:
    own, theirs, starts = piece
    return kernels.links_along(own, theirs, starts, values, place, tries)


def _level(sides: AlignedTables, competitors: Competitors, member: MaxitiveChoquet) -> Floats:
    """How much farther each competitor is than the own original."""
    work = partial(kernels.margins, member.sets, member.measure, sides.A, sides.B, sides.truth)
    pieces = competitors.pieces(PIECE)
    return np.concatenate(each(lambda some: work(some.records, some.starts, some.which), pieces))


def _tries(values: Floats, place: int, generator: np.random.Generator) -> Floats:
    """Return values of a set: where it stands, 0, 1, and values between those of other sets."""
    others = np.unique(np.append(np.delete(values, place), [0.0, values.max()]))
    between = (others[1:] + others[:-1]) / 2
    if len(between) > TRIES:
        between = generator.choice(between, size=TRIES, replace=False)
    here = values[place] * np.exp(0.2 * generator.normal(size=2))
    tries = np.concatenate([between, here, [0.0, values[place], values.max()]])
    return np.unique(np.minimum(tries, values.max()))


def _middle(tries: Floats, counts: Integers) -> float:
    """Return the middle value of the longest run of the largest count."""
    good = np.flatnonzero(counts == counts.max())
    runs = np.split(good, np.flatnonzero(np.diff(good) > 1) + 1)
    longest = max(runs, key=len)
    return float(tries[longest[len(longest) // 2]])


def checked_order(d: int, order: Any) -> int:
    """Return the order of a maxitive measure, by default 2, or raise an error."""
    if order is None:
        return min(2, d)
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= d:
        raise BadOptionError("order", order, f"a whole number from 1 to {d}, the variables")
    sets = sum(comb(d, size) for size in range(1, order + 1))
    if sets > MOST_SETS:
        expected = f"lower: {sets:,} sets have a number of their own, {MOST_SETS:,} are possible"
        raise BadOptionError("order", order, expected)
    return order


@lru_cache(maxsize=16)
def _small_sets(d: int, order: int) -> list[tuple[int, ...]]:
    return [some for size in range(1, order + 1) for some in combinations(range(d), size)]


@lru_cache(maxsize=16)
def sets_of(d: int, order: int) -> Integers:
    """Return all sets of 1 to `order` variables, small ones first; each repeats its last variable.

    For d = 3 and order 2: [0, 0], [1, 1], [2, 2], [0, 1], [0, 2], [1, 2].
    """
    found = [(*some, *[some[-1]] * (order - len(some))) for some in _small_sets(d, order)]
    out = np.array(found, dtype=np.int64)
    out.flags.writeable = False
    return out


@lru_cache(maxsize=16)
def _just_below(d: int, order: int) -> list[tuple[Integers, Integers]]:
    """For each size above 1, the places of its sets, and of the sets with one variable less."""
    place = {some: at for at, some in enumerate(_small_sets(d, order))}
    out = []
    for size in range(2, order + 1):
        sets = list(combinations(range(d), size))
        lower = [[place[part] for part in combinations(some, size - 1)] for some in sets]
        out.append((np.array([place[some] for some in sets]), np.array(lower)))
    return out


@dataclass(frozen=True, eq=False)
class MaxitiveChoquet(Family):
    """The Choquet integral of squared differences with respect to a k-maxitive measure.

    d(a, b) = Σ_i (s_(i) - s_(i-1)) μ({(i), ..., (d)}) with s_(1) ≤ s_(2) ≤ ... the sorted squares
    (a_k - b_k)², and μ(A) = max of μ(B) over B ⊆ A with |B| ≤ `order`. `explain` gives Shapley
    values and interaction indices as for `Choquet`, exact for a possibility measure and for up to
    14 variables; beyond, means over 2,000 random orders of the variables, always the same ones.

    Parameters
    ----------
    measure : array-like
        A number of at least 0 for every set of up to `order` variables: single ones first, then
        pairs (1, 2), (1, 3), ..., then threes. A set never counts less than a part of it (numbers
        are lifted to that); all are divided by the largest.
    variables : int
        The number of variables d.
    order : int
        The size of sets with a number of their own: 1 for a possibility measure.

    References
    ----------
    R. Mesiar (1999) Generalizations of k-order additive discrete fuzzy measures. Fuzzy Sets and
    Systems 102, 423-428.
    T. Calvo, B. De Baets (1998) Aggregation operators defined by k-order additive/maxitive fuzzy
    measures. International Journal of Uncertainty, Fuzziness and Knowledge-Based Systems 6.

    Examples
    --------
    >>> from tessella.risk import MaxitiveChoquet
    >>> largest = MaxitiveChoquet([1, 1, 1], 3)
    >>> largest.evaluate([[1.0, 2.0, 3.0]])
    array([9.])
    >>> together = MaxitiveChoquet([0, 0, 0, 1, 1, 1], 3, 2)  # any two: the second largest
    >>> together.evaluate([[1.0, 2.0, 3.0]])
    array([4.])
    """

    name: ClassVar[str] = "maxitive Choquet"
    measure: Floats
    variables: int
    order: int = 1
    linear = False
    sets: Integers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check({"variables": [Whole(1)]}, {"variables": self.variables})
        checked_order(self.variables, self.order)
        sets = sets_of(self.variables, self.order)
        expected = f"{len(sets):,} numbers of at least 0, not all of them 0"
        numbers = as_numbers("measure", self.measure, 1, expected)
        if len(numbers) != len(sets) or (numbers < 0).any() or not numbers.any():
            raise BadOptionError("measure", self.measure, expected)
        self._keep(sets=sets, d=self.variables)
        closed = self._closed(numbers)
        closed /= closed.max()
        self._keep(measure=closed, theta=closed)

    @classmethod
    def largest(cls, d: int, *, order: int | None = None) -> MaxitiveChoquet:
        """Return the largest square alone (Chebyshev's distance): every variable has measure 1."""
        size = checked_order(d, order)
        return cls(np.ones(len(sets_of(d, size))), d, size)

    @classmethod
    def from_weights(cls, weights: Any, *, order: int | None = None) -> MaxitiveChoquet:
        """Return the integral whose small sets have the sum of their weights.

        With an order of d it is the weighted mean; with less, only small sets add up.
        """
        w = WeightedMean(weights).weights
        sets = sets_of(len(w), checked_order(len(w), order))
        first = np.ones(sets.shape, dtype=bool)
        first[:, 1:] = sets[:, 1:] != sets[:, :-1]
        return cls(np.where(first, w[sets], 0.0).sum(axis=1), len(w), sets.shape[1])

    @property
    def whole(self) -> Floats:
        """The measure of all 2^d sets, by bits, for up to 14 variables."""
        if self.d > EXACT:
            raise BadOptionError("the number of variables", self.d, f"at most {EXACT}")
        bits = np.bitwise_or.reduce(1 << self.sets, axis=1)
        measure = np.zeros(1 << self.d)
        measure[bits] = self.measure
        return lifted(measure)

    @property
    def _below(self) -> list[tuple[Integers, Integers]]:
        return _just_below(self.d, self.order)

    def _closed(self, theta: Floats) -> Floats:
        """Lift every set to the largest of its parts."""
        out = theta.copy()
        for places, lower in self._below:
            out[places] = np.maximum(out[places], out[lower].max(axis=1))
        return out

    def essential(self) -> Floats:
        """Return the measure with 0 for every set that counts no more than some part of it."""
        out: Floats = self.measure.copy()
        for places, lower in self._below:
            same = self.measure[places] <= self.measure[lower].max(axis=1)
            out[places[same]] = 0.0
        return out

    def features(self, differences: Floats) -> Floats:
        """Return how much of each set the integral takes with these parameters.

        The integral is linear in its parameters only as long as their order stays the same.
        """
        return kernels.taken(self.sets, self.measure, np.ascontiguousarray(differences))

    def evaluate(self, differences: Any) -> Floats:
        """Return the distance of each row of differences a - b, shape (n,)."""
        rows = np.atleast_2d(np.ascontiguousarray(differences, dtype=np.float64))
        self.refuse_other(rows.shape[1])
        return kernels.integrals(self.sets, self.measure, rows)

    def scan(self) -> Callable[..., tuple[Integers, Integers]]:
        """Return the kernel that counts nearer originals."""
        return partial(kernels.count_maxitive, self.sets, self.measure)

    def total(self, theta: Floats) -> float:
        """Return the measure of all variables."""
        return float(theta.max())

    def slack(self, theta: Floats) -> Floats:
        """Return by how much each set exceeds the largest of its parts."""
        parts = [theta[places] - theta[lower].max(axis=1) for places, lower in self._below]
        return np.concatenate([theta[: self.d], *parts])

    def repair(self, theta: Floats) -> MaxitiveChoquet:
        """Lift every set to the largest of its parts, and divide by the largest."""
        kept = np.maximum(theta, 0.0)
        return MaxitiveChoquet(kept, self.d, self.order) if kept.any() else self.project(theta)

    def project(self, theta: Floats) -> MaxitiveChoquet:
        """Return a measure whose largest difference from `theta` is least.

        The middle between lifting every set to its parts and lowering it to what contains it is a
        nearest monotone function in the largest difference; cut to [0, 1] it stays one. Some set
        must have measure 1: to raise the one with the largest number costs least. (The nearest
        in the sum of squares is not unique and hard to find, because this condition is not convex.)
        """
        upper = self._closed(np.asarray(theta, dtype=np.float64))
        lower = np.array(theta, dtype=np.float64)
        for places, parts in reversed(self._below):
            for column in range(parts.shape[1]):
                np.minimum.at(lower, parts[:, column], lower[places])
        middle = np.clip((upper + lower) / 2, 0.0, 1.0)
        top = len(middle) - comb(self.d, self.order)  # where the largest sets begin
        middle[top + int(np.argmax(theta[top:]))] = 1.0
        return MaxitiveChoquet(middle, self.d, self.order)

    @property
    def text(self) -> str:  # type: ignore[override]
        """What the numbers of `explain` are."""
        title = f"Choquet integral of squared differences, {self.order}-maxitive, Shapley values"
        sampled = self.order > 1 and self.d > EXACT
        return title + (f" (from {ORDERS:,} random orders):" if sampled else ":")

    def _importance(self) -> tuple[Floats, Floats]:
        if self.order == 1:
            return _possible(self.measure)
        return shapley_of(self.whole) if self.d <= EXACT else self._sampled()

    def _sampled(self) -> tuple[Floats, Floats]:
        """Average what variables add, alone and in pairs, over random orders.

        In a random order the variables behind two neighbours are a set of every size with the same
        chance, as the interaction index wants it.
        """
        generator = np.random.default_rng(0)
        orders = generator.permuted(np.tile(np.arange(self.d), (ORDERS, 1)), axis=1)
        here = np.hstack(
            [kernels.upper_measures(self.sets, self.measure, orders), np.zeros((ORDERS, 1))]
        )
        shapley = np.zeros(self.d)
        np.add.at(shapley, orders, here[:, :-1] - here[:, 1:])
        sums, counts = np.zeros((self.d, self.d)), np.zeros((self.d, self.d))
        for place in range(self.d - 1):
            swapped = orders.copy()
            swapped[:, [place, place + 1]] = orders[:, [place + 1, place]]
            other = kernels.upper_measures(self.sets, self.measure, swapped)[:, place + 1]
            more = here[:, place] - here[:, place + 1] - other + here[:, place + 2]
            for one, two in ((place, place + 1), (place + 1, place)):
                np.add.at(sums, (orders[:, one], orders[:, two]), more)
                np.add.at(counts, (orders[:, one], orders[:, two]), 1.0)
        return shapley / ORDERS, sums / np.maximum(counts, 1.0)


def _possible(weights: Floats) -> tuple[Floats, Floats]:
    """Shapley values and interactions of a possibility measure.

    It is a sum over ranks i of (π_(i) - π_(i-1)) [A meets the variables of rank i and above], whose
    terms share equally among these variables and have interaction -1 / (their number - 1).
    """
    d = len(weights)
    order = np.argsort(weights, kind="stable")
    steps = np.diff(weights[order], prepend=0.0)
    above = d - np.arange(d)
    shared = -np.cumsum(np.where(above > 1, steps / np.maximum(above - 1, 1), 0.0))
    rank = np.argsort(order)
    interactions = np.where(np.eye(d, dtype=bool), 0.0, shared[np.minimum.outer(rank, rank)])
    return np.cumsum(steps / above)[rank], interactions
