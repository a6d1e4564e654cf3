"""Choquet integrals of squared differences: sets of variables have weights of their own.

A *fuzzy measure* μ gives a weight to every set of variables, 0 to none, 1 to all, and never less
to a larger set. Up to eight variables μ is kept whole (2^d values). Beyond, it is *2-additive*: its
Möbius *masses* are zero on sets of three or more, so d + d(d-1)/2 numbers say it all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from ..._types import Floats, Integers
from ...exceptions import BadOptionError
from ...kernels import linkage as kernels
from .families import OWA, Family, WeightedMean, as_numbers

FULL = 8  # variables up to which the measure is kept whole
SWEEPS = 2000  # of Dykstra's algorithm


def masses_of(measure: Floats) -> Floats:
    """Return the Möbius masses of a measure over 2^d sets, by bits.

    m(S) = Σ_{T ⊆ S} (-1)^(|S| - |T|) μ(T), so that μ(S) = Σ_{T ⊆ S} m(T).
    """
    masses = measure.copy()
    for lower, upper in _steps(len(measure)):
        masses[upper] -= masses[lower]
    return masses


def measure_of(masses: Floats) -> Floats:
    """Return the measure whose Möbius masses are given."""
    measure = masses.copy()
    for lower, upper in _steps(len(masses)):
        measure[upper] += measure[lower]
    return measure


@lru_cache(maxsize=16)
def _steps(size: int) -> list[tuple[Integers, Integers]]:
    """For each variable, the sets without it and the same sets with it."""
    sets = np.arange(size)
    bits = [1 << k for k in range(size.bit_length() - 1)]
    return [(sets[(sets & bit) == 0], sets[(sets & bit) == 0] | bit) for bit in bits]


@lru_cache(maxsize=16)
def _all_steps(size: int) -> tuple[Integers, Integers]:
    """The steps of all variables, one variable after the other."""
    lower, upper = zip(*_steps(size))
    return np.concatenate(lower), np.concatenate(upper)


def lifted(measure: Floats) -> Floats:
    """Lift every set to the largest of its subsets, in place: one pass suffices."""
    for lower, upper in _steps(len(measure)):
        measure[upper] = np.maximum(measure[upper], measure[lower])
    return measure


def shapley_of(measure: Floats) -> tuple[Floats, Floats]:
    """Return Shapley values and interaction indices of a measure over 2^d sets (Grabisch 1997)."""
    d = len(measure).bit_length() - 1
    masses, sizes, sets = masses_of(measure), _sizes(1 << d), np.arange(1 << d)
    has = [(sets >> k) & 1 == 1 for k in range(d)]
    shapley = np.array([(masses[has[k]] / sizes[has[k]]).sum() for k in range(d)])
    interactions = np.zeros((d, d))
    for k, other in combinations(range(d), 2):
        both = has[k] & has[other]
        interactions[k, other] = (masses[both] / (sizes[both] - 1)).sum()
        interactions[other, k] = interactions[k, other]
    return shapley, interactions


def _sizes(size: int) -> Floats:
    return np.array([s.bit_count() for s in range(size)], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Choquet(Family):
    """The Choquet integral of squared differences with respect to a fuzzy measure.

    d(a, b) = Σ_i (s_(i) - s_(i-1)) μ({(i), ..., (d)}), with s_(1) ≤ s_(2) ≤ ... the sorted squares
    (a_k - b_k)². Weighted mean (μ additive) and OWA (μ depends on sizes only) are among them.
    `explain` gives Shapley values φ_k = Σ_{S ∋ k} m(S) / |S| and interaction indices
    I_kl = Σ_{S ∋ k, l} m(S) / (|S| - 1), with the Möbius masses m of μ.

    Parameters
    ----------
    measure : array-like of shape (2^d,)
        μ of each set; the set of place 5 = 101 in bits has the first and the third variable.
        For a 2-additive integral, see `Choquet.two_additive`.

    References
    ----------
    G. Choquet (1954) Theory of capacities. Annales de l'institut Fourier 5, 131-295.
    M. Grabisch (1997) k-order additive discrete fuzzy measures. Fuzzy Sets and Systems 92, 167-189.

    Examples
    --------
    >>> from tessella.risk import Choquet
    >>> both = Choquet([0.0, 0.0, 0.0, 1.0])  # variables count only together: the minimum
    >>> both.evaluate([[2.0, 3.0]])
    array([4.])
    """

    name: ClassVar[str] = "Choquet"
    text = "Choquet integral of squared differences, Shapley values:"
    measure: Floats
    additive: int = 0  # 2 where `measure` holds masses of single variables and pairs

    def __post_init__(self) -> None:
        expected = "2^d numbers, 0 for no variable and never less for more variables"
        numbers = as_numbers("measure", self.measure, 1, expected)
        if self.additive == 2:
            d = round((float(np.sqrt(8 * len(numbers) + 1)) - 1) / 2)
        else:
            d = len(numbers).bit_length() - 1
            if len(numbers) != 1 << d or d < 1 or abs(numbers[0]) > 1e-12:
                raise BadOptionError("measure", self.measure, expected)
            if d > FULL:
                raise BadOptionError(
                    "the number of variables of a full measure", d,
                    f"at most {FULL}, or a 2-additive measure: Choquet.two_additive",
                )  # fmt: skip
        kind = kernels.PAIRS if self.additive == 2 else kernels.CHOQUET
        self._keep(d=d, linear=self.additive != 2, kernel_kind=kind)
        total = self.total(numbers)
        if total <= 0 or self.slack(numbers).min() < -1e-9 * total:
            raise BadOptionError("measure", self.measure, expected)
        numbers = numbers / total
        self._keep(measure=numbers, theta=numbers)

    @classmethod
    def neutral(cls, d: int, *, order: int | None = None) -> Choquet:
        """Return the Euclidean distance, as a full (d up to 8) or 2-additive integral."""
        return cls.from_weights(np.full(d, 1 / d), order=order)

    @classmethod
    def from_weights(cls, weights: Any, *, order: int | None = None) -> Choquet:
        """Return the integral that is a weighted mean."""
        w = WeightedMean(weights).weights
        if not cls.is_whole(len(w), order):
            return cls.two_additive(w, np.zeros((len(w), len(w))))
        masses = np.zeros(1 << len(w))
        masses[1 << np.arange(len(w))] = w
        return cls(measure_of(masses))

    @classmethod
    def from_owa(cls, weights: Any) -> Choquet:
        """Return the full integral that is an OWA: μ(S) sums the weights of the |S| largest."""
        w = OWA(weights).weights
        sums = np.concatenate([[0.0], np.cumsum(w[::-1])])
        return cls(sums[_sizes(1 << len(w)).astype(np.int64)])

    @classmethod
    def two_additive(cls, singles: Any, pairs: Any) -> Choquet:
        """Return the integral with Möbius masses on single variables and on pairs.

        Parameters
        ----------
        singles : array-like of shape (d,)
            m({k}).
        pairs : array-like of shape (d, d)
            m({k, l}), symmetric; the diagonal is not read. m({k}) + Σ_l min(m({k, l}), 0) must be
            at least 0 for every k.
        """
        one = as_numbers("singles", singles, 1, "the mass of each variable")
        two = as_numbers("pairs", pairs, 2, "a symmetric matrix with the mass of each pair")
        if two.shape != (len(one), len(one)) or not np.allclose(two, two.T):
            raise BadOptionError("pairs", pairs, "a symmetric matrix with the mass of each pair")
        return cls(np.concatenate([one, two[np.triu_indices(len(one), 1)]]), additive=2)

    @staticmethod
    def is_whole(d: int, order: int | None) -> bool:
        """Return whether the measure is kept whole: for order d, by default up to 8 variables."""
        if order is None:
            return d <= FULL
        if isinstance(order, bool) or order not in ((2, d) if d <= FULL else (2,)) or order > d:
            offered = f"2, or {d} (a whole measure)" if d <= FULL else "2"
            raise BadOptionError("order", order, offered)
        return order == d

    def features(self, differences: Floats) -> Any:
        """Return how much of each set (or mass) an integral takes; sparse for a whole measure."""
        squares = differences * differences
        n, d = squares.shape
        if self.additive == 2:
            first, second = np.triu_indices(d, 1)
            return np.hstack([squares, np.minimum(squares[:, first], squares[:, second])])
        from scipy.sparse import csr_matrix

        order = np.argsort(squares, axis=1, kind="stable")
        rising = np.take_along_axis(squares, order, axis=1)
        steps = np.diff(rising, axis=1, prepend=0.0)
        gone = np.cumsum(1 << order, axis=1) - (1 << order)
        sets = ((1 << d) - 1) - gone
        ends = np.arange(0, n * d + 1, d)
        return csr_matrix((steps.ravel(), sets.ravel(), ends), shape=(n, 1 << d))

    def total(self, theta: Floats) -> float:
        """Return the measure of all variables."""
        return float(theta.sum() if self.additive == 2 else theta[-1])

    def repair(self, theta: Floats) -> Choquet:
        """Lift every set to the largest of its subsets, or single masses to what pairs take."""
        if self.additive == 2:
            taken = np.minimum(self._pairs(theta), 0.0).sum(axis=1)
            masses = theta.copy()
            masses[: self.d] = np.maximum(theta[: self.d], -taken)
            return Choquet(masses, additive=2) if masses.sum() > 0 else self.project(theta)
        measure = np.maximum(theta, 0.0)
        measure[0] = 0.0
        measure = lifted(measure)
        return Choquet(measure) if measure[-1] > 0 else self.project(theta)

    def slack(self, theta: Floats) -> Floats:
        """Return by how much each variable raises each set (for masses: the least of them)."""
        if self.additive == 2:
            out: Floats = theta[: self.d] + np.minimum(self._pairs(theta), 0.0).sum(axis=1)
            return out
        without, same_with = _all_steps(len(theta))
        raised: Floats = theta[same_with] - theta[without]
        return raised

    def _pairs(self, theta: Floats) -> Floats:
        """Return the masses of pairs as a symmetric matrix."""
        from scipy.spatial.distance import squareform

        out: Floats = squareform(theta[self.d :], checks=False)
        return out

    def project(self, theta: Floats) -> Choquet:
        """Return the nearest measure, by Dykstra's algorithm over one set for each variable."""
        theta = np.asarray(theta, dtype=np.float64)
        if self.additive == 2:
            return Choquet(_nearest_masses(theta, self.d), additive=2)
        return Choquet(_nearest_measure(theta))

    def _importance(self) -> tuple[Floats, Floats]:
        if self.additive != 2:
            return shapley_of(self.measure)
        interactions = self._pairs(self.measure)
        return self.measure[: self.d] + interactions.sum(axis=1) / 2, interactions


def _dykstra(
    x: Floats, projections: Sequence[Callable[[Floats], Floats]], affine: Callable[[Floats], Floats]
) -> Floats:
    """Project on what some convex sets and an affine one have in common.

    Each convex set remembers its last move and takes it back first; an affine set need not (J. P.
    Boyle, R. L. Dykstra 1986, Lecture Notes in Statistics 37, 28-47).
    """
    held = np.zeros((len(projections), len(x)))
    for _ in range(SWEEPS):
        start = np.vstack([x, held])
        for place, project in enumerate(projections):
            before = x + held[place]
            x = project(before)
            held[place] = before - x
        x = affine(x)
        # x may rest for many sweeps while what is held still moves: both must have come to rest.
        if np.abs(np.vstack([x, held]) - start).max() < 1e-12:
            break
    return x


def _nearest_measure(theta: Floats) -> Floats:
    """Project on the measures: adding a variable never lowers a set, and the ends are 0 and 1."""

    def never_less(lower: Integers, upper: Integers, x: Floats) -> Floats:
        over = np.maximum(x[lower] - x[upper], 0.0) / 2
        x = x.copy()
        x[lower] -= over
        x[upper] += over
        return x

    def with_ends(x: Floats) -> Floats:
        return np.concatenate([[0.0], x[1:-1], [1.0]])

    steps = [partial(never_less, lower, upper) for lower, upper in _steps(len(theta))]
    return lifted(with_ends(np.clip(_dykstra(theta, steps, with_ends), 0.0, 1.0)))


def _nearest_masses(theta: Floats, d: int) -> Floats:
    first, second = np.triu_indices(d, 1)
    own = [np.flatnonzero((first == k) | (second == k)) + d for k in range(d)]

    def covered(k: int, x: Floats) -> Floats:
        """Lift a single mass and its negative pairs until it covers what they take."""
        pairs = x[own[k]]
        # The least lift with single + lift + Σ min(pair + lift, 0) >= 0: a sum of minima is the
        # least sum over any of the pairs, and among equally many the most negative decide.
        taken = x[k] + np.concatenate([[0.0], np.cumsum(np.sort(pairs[pairs < 0]))])
        lift = max(0.0, float((-taken / np.arange(1, len(taken) + 1)).max()))
        x = x.copy()
        x[own[k]] = np.where(pairs < 0, np.minimum(pairs + lift, 0.0), pairs)
        x[k] += lift
        return x

    def with_sum(x: Floats) -> Floats:
        out: Floats = x + (1 - x.sum()) / len(x)
        return out

    x = _dykstra(theta, [partial(covered, k) for k in range(d)], with_sum)
    for k in range(d):
        x[k] = max(x[k], -float(np.minimum(x[own[k]], 0.0).sum()))
    out: Floats = x / x.sum()
    return out
