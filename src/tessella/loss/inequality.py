"""Inequality and poverty of amounts such as incomes, and how each record moves them.

Influences are derivatives by the weight of a record, as `sampling` takes them. Ties need no order:
every figure is the same however records with one value are sorted.

References
----------
M. Langel and Y. Tillé (2013). Variance estimation of the Gini index: revisiting a result several
times published. Journal of the Royal Statistical Society A 176(2), 521-540.
M. Langel and Y. Tillé (2011). Statistical inference for the quintile share ratio. Journal of
Statistical Planning and Inference 141(8), 2976-2985.
G. Osier (2009). Variance estimation for complex indicators of poverty and inequality using
linearization techniques. Survey Research Methods 3(3), 167-195.
"""

from __future__ import annotations

import math

import numpy as np

from .._types import Floats

POOR = 0.6  # of the median: Eurostat's threshold


class Amounts:
    """Non-negative amounts with their weights, in ascending order; at least one is positive.

    They are divided by a power of two, exactly: no figure here has a unit, and no square overflows.
    """

    def __init__(self, values: Floats, weights: Floats) -> None:
        self.order = np.argsort(values, kind="stable")
        self.y, self.w = values[self.order], weights[self.order]
        self.y = np.ldexp(self.y, -math.frexp(float(self.y[-1]))[1])
        self.below = np.cumsum(self.w)  # weight of all up to a record, with it
        self.sum_below = np.cumsum(self.w * self.y)
        self.n, self.total = float(self.below[-1]), float(self.sum_below[-1])

    def _unsorted(self, influence: Floats) -> Floats:
        found = np.empty_like(influence)
        found[self.order] = influence
        return found

    def quantile(self, share: float) -> float:
        """Return the least value up to which there is at least this share of the weight."""
        place = int(np.searchsorted(self.below, share * self.n * (1 - 1e-12)))
        return float(self.y[min(place, len(self.y) - 1)])

    @property
    def median(self) -> float:
        """The weighted median."""
        return self.quantile(0.5)

    def gini(self) -> float:
        """Return G = sum over pairs of w_i w_j |y_i - y_j| / (2 N Y), N and Y weighted totals."""
        before = self.below - self.w
        return float((self.w * self.y) @ (self.below + before) / (self.n * self.total)) - 1

    def gini_influence(self) -> Floats:
        """Return [y (2 N(y) - N) + Y - 2 Y(y) - G (Y + N y)] / (N Y), N(y), Y(y) up to y."""
        apart = self.y * (2 * self.below - self.n) + self.total - 2 * self.sum_below
        fall = self.gini() * (self.total + self.n * self.y)
        return self._unsorted((apart - fall) / (self.n * self.total))

    def _lowest(self, share: float) -> float:
        """Return the total of the lowest share of the weight; a record may be in it in part."""
        goal = share * self.n
        place = min(int(np.searchsorted(self.below, goal)), len(self.y) - 1)
        before = self.below[place] - self.w[place]
        full = self.sum_below[place] - self.w[place] * self.y[place]
        return float(full + (goal - before) * self.y[place])

    def quintile_ratio(self) -> float:
        """Return S80/S20: the total of the highest fifth over that of the lowest."""
        lowest = self._lowest(0.2)
        return (self.total - self._lowest(0.8)) / lowest if lowest > 0 else math.nan

    def quintile_ratio_influence(self) -> Floats:
        """Return (y - z80 - R z20) / S20, with z the influence of the total of the lowest share.

        One more record below the quantile q moves the total of the lowest share a by y - q + a q,
        any other by a q.
        """
        lowest, ratio = self._lowest(0.2), self.quintile_ratio()
        z20, z80 = (
            np.minimum(self.y - q, 0.0) + share * q
            for share, q in ((0.2, self.quantile(0.2)), (0.8, self.quantile(0.8)))
        )
        return self._unsorted((self.y - z80 - ratio * z20) / lowest)

    def poverty(self) -> float:
        """Return the at-risk-of-poverty rate: the share below 60 % of the median."""
        poor = np.searchsorted(self.y, POOR * self.median)
        return float(self.below[poor - 1] / self.n) if poor else 0.0

    def poverty_influence(self) -> Floats:
        """Return [1(y < t) - R - 0.6 f(t) / f(m) (1(y <= m) - 1/2)] / N: t = 0.6 m moves with m.

        With g the density of log y, which is less skewed, 0.6 f(t) / f(m) is g(log t) / g(log m).
        It is estimated by a Gaussian kernel of Silverman's width.
        """
        median = self.median
        line = POOR * median
        poor = (self.y < line) - self.poverty()
        positive = self.y > 0
        logs, w = np.log(self.y[positive]), self.w[positive]
        upper, lower = self.quantile(0.75), self.quantile(0.25)
        mean = w @ logs / w.sum()
        spread = math.sqrt(float(w @ (logs - mean) ** 2) / float(w.sum()))
        if 0 < lower < upper:
            spread = min(spread, math.log(upper / lower) / 1.349)
        width = 0.9 * spread / math.pow(float(w.sum()) ** 2 / float(w @ w), 0.2)
        moved = 0.0
        if width > 0:
            at_line, at_median = (
                float(w @ np.exp(-0.5 * ((logs - math.log(place)) / width) ** 2))
                for place in (line, median)
            )
            moved = at_line / at_median
        return self._unsorted((poor - moved * ((self.y <= median) - 0.5)) / self.n)
