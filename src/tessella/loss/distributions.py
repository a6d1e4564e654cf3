"""How far the distribution of each column has moved: quantiles and distances of distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from .._types import Floats, Name
from ..exceptions import BadOptionError
from .moments import column_sums
from .pair import Pair, Reading
from .result import Loss, worst

__all__ = [
    "Distances",
    "Distribution",
    "distances",
    "kolmogorov_smirnov",
    "kolmogorov_smirnov_of",
    "quantile_loss",
    "quantile_loss_of",
    "wasserstein",
    "wasserstein_of",
]


QUANTILES = tuple(percent / 100 for percent in range(5, 100, 5))


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution function of weighted values: sorted values, and the share up to each."""

    values: Floats
    share: Floats | None  # None where all weigh the same

    @classmethod
    def of(cls, values: Floats, weights: Floats | None) -> Distribution:
        """Sort values."""
        if weights is None:
            return cls(np.sort(values), None)
        order = np.argsort(values, kind="stable")
        share = np.cumsum(weights[order])
        return cls(values[order], share / share[-1])

    def at(self, points: Floats) -> Floats:
        """Return the share of values that are at most each point."""
        place = np.searchsorted(self.values, points, side="right")
        if self.share is None:
            shares: Floats = place / len(self.values)
            return shares
        upto: Floats = np.where(place > 0, self.share[np.maximum(place, 1) - 1], 0.0)
        return upto

    def quantile(self, shares: Floats) -> Floats:
        """Return the least value that at least a share of all is not above."""
        n = len(self.values)
        if self.share is None:
            # A share such as 0.55 of 20 is 11 and must not become the 12th by rounding.
            place = np.ceil(np.round(shares * n, 9)).astype(np.int64) - 1
        else:
            place = np.searchsorted(np.round(self.share, 12), np.round(shares, 12), side="left")
        quantiles: Floats = self.values[np.clip(place, 0, n - 1)]
        return quantiles


@dataclass(frozen=True, kw_only=True, eq=False)
class Distances:
    """What sorting one column tells: distances, and quantiles of both tables.

    `error` is the standard error of each quantile of the original, had it been drawn.
    """

    largest: float
    area: float
    before: Floats
    after: Floats
    error: Floats


def distances(pair: Pair, name: Name, shares: Sequence[float] = QUANTILES) -> Distances:
    """Return the distances of one column, computed once for each pair of tables."""
    key = ("distances", name, tuple(shares))
    if key not in pair.kept:
        cells = pair.number(name).compressed()
        sides = [Distribution.of(side, cells.weights) for side in (cells.before, cells.after)]
        w = cells.weights
        n = float(len(cells.before)) if w is None else float(w.sum() ** 2 / (w**2).sum())
        wanted = np.asarray(shares, dtype=np.float64)
        pair.kept[key] = Distances(
            largest=_largest(*sides),
            area=_area(*sides),
            before=sides[0].quantile(wanted),
            after=sides[1].quantile(wanted),
            error=_standard_error(sides[0], wanted, n),
        )
    kept: Distances = pair.kept[key]
    return kept


def _largest(a: Distribution, b: Distribution) -> float:
    """Return the largest difference of two distribution functions, met at a value of one."""
    return max(float(np.abs(a.at(points) - b.at(points)).max()) for points in (a.values, b.values))


def _area(a: Distribution, b: Distribution) -> float:
    """Return the area between two distribution functions."""
    if a.share is None and b.share is None and len(a.values) == len(b.values):
        return float(np.abs(a.values - b.values).mean())  # quantile by quantile
    points = np.concatenate([a.values, b.values])
    points.sort(kind="stable")
    return float(np.abs(a.at(points[:-1]) - b.at(points[:-1])) @ np.diff(points))


def _standard_error(a: Distribution, shares: Floats, n: float) -> Floats:
    """Estimate the standard error of quantiles: sqrt(q (1 - q) / n) over the density there.

    One over the density is the slope of the quantile function, taken between q - h and q + h
    (Siddiqui 1960); h shrinks as n^(-1/5) (Bofinger 1975, for a normal distribution).
    """
    from scipy.stats import norm

    z = norm.ppf(shares)
    h = n**-0.2 * (4.5 * norm.pdf(z) ** 4 / (2 * z**2 + 1) ** 2) ** 0.2
    low, high = np.maximum(shares - h, 0.0), np.minimum(shares + h, 1.0)
    slope = (a.quantile(high) - a.quantile(low)) / (high - low)
    errors: Floats = np.sqrt(shares * (1 - shares) / n) * slope
    return errors


def quantile_loss(
    original: Any,
    masked: Any,
    *,
    shares: Sequence[float] = QUANTILES,
    **reading: Unpack[Reading],
) -> Loss:
    """Measure how far quantiles have moved, in standard deviations.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
    shares : sequence of numbers between 0 and 1, default 0.05, 0.10, ... 0.95
        Which quantiles.
    **reading
        `columns`, `schema`, `weights` and `missing`, as in `measure`.

    Notes
    -----
    The mean over quantiles q and columns j of |Q_j(q) - Q'_j(q)| / s_j, with Q the least value
    that a share q does not exceed and s_j the original's standard deviation.

    References
    ----------
    R. J. Hyndman and Y. Fan (1996). Sample quantiles in statistical packages. The American
    Statistician 50(4), 361-365: definition 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import quantile_loss
    >>> x = np.array([[0.0], [0.0], [2.0], [2.0]])
    >>> quantile_loss(x, x + 1, shares=[0.5]).value
    1.0
    """
    wanted = np.asarray(shares, dtype=np.float64)
    if wanted.ndim != 1 or not len(wanted) or not ((wanted > 0) & (wanted < 1)).all():
        raise BadOptionError("shares", shares, "numbers above 0 and below 1")
    return quantile_loss_of(Pair(original, masked, **reading), shares=tuple(wanted.tolist()))


def quantile_loss_of(pair: Pair, *, shares: Sequence[float] = QUANTILES) -> Loss:
    """Measure the loss of quantiles of a pair of tables."""
    by_column = {}
    for name in pair.need_numbers("The loss of quantiles"):
        found = distances(pair, name, shares)
        moved = np.abs(found.before - found.after) / column_sums(pair, name).spread
        by_column[name] = float(moved.mean())
    value = math.fsum(by_column.values()) / len(by_column)
    return Loss(
        name="quantiles",
        value=value,
        by_column=by_column,
        formula=f"the mean over {len(shares)} quantiles and all columns of the absolute difference "
        "over the original's standard deviation",
        source="R. J. Hyndman and Y. Fan (1996). Sample quantiles in statistical packages. "
        "The American Statistician 50(4), definition 1",
        range=(0.0, math.inf),
        verdict=f"quantiles moved by {value:.3g} standard deviations on average{worst(by_column)}",
    )


def kolmogorov_smirnov(original: Any, masked: Any, **reading: Unpack[Reading]) -> Loss:
    """Measure the largest difference of the two distribution functions of each column.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
    **reading
        `columns`, `schema`, `weights` and `missing`, as in `measure`.

    Notes
    -----
    max over t of |F_j(t) - F'_j(t)|, from 0 to 1; the value is the mean over columns.

    References
    ----------
    N. Smirnov (1948). Table for estimating the goodness of fit of empirical distributions.
    Annals of Mathematical Statistics 19(2), 279-281.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import kolmogorov_smirnov
    >>> x, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[1.0], [2.0], [3.0], [9.0]])
    >>> kolmogorov_smirnov(x, y).value
    0.25
    """
    return kolmogorov_smirnov_of(Pair(original, masked, **reading))


def kolmogorov_smirnov_of(pair: Pair) -> Loss:
    """Measure the Kolmogorov-Smirnov distance of a pair of tables."""
    names = pair.need_numbers("The Kolmogorov-Smirnov distance")
    by_column = {name: distances(pair, name).largest for name in names}
    value = math.fsum(by_column.values()) / len(by_column)
    return Loss(
        name="kolmogorov_smirnov",
        value=value,
        by_column=by_column,
        formula="the largest difference of the two distribution functions, averaged over columns",
        source="N. Smirnov (1948). Annals of Mathematical Statistics 19(2), 279-281",
        range=(0.0, 1.0),
        verdict=f"shares below a value are off by at most {100 * max(by_column.values()):.3g} "
        f"points{worst(by_column)}",
    )


def wasserstein(original: Any, masked: Any, **reading: Unpack[Reading]) -> Loss:
    """Measure the area between the two distribution functions of each column.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The tables, with the same records in the same order.
    **reading
        `columns`, `schema`, `weights` and `missing`, as in `measure`.

    Notes
    -----
    W_j = integral of |F_j(t) - F'_j(t)| dt / s_j, the least work that turns one distribution into
    the other, in standard deviations of the original; the value is the mean over columns. It is
    never above the mean absolute error of values.

    References
    ----------
    L. N. Vaserstein (1969). Markov processes over denumerable products of spaces. Problems of
    Information Transmission 5(3), 47-52.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import wasserstein
    >>> wasserstein(np.array([[0.0], [2.0]]), np.array([[3.0], [1.0]])).value
    1.0
    """
    return wasserstein_of(Pair(original, masked, **reading))


def wasserstein_of(pair: Pair) -> Loss:
    """Measure the Wasserstein distance of a pair of tables."""
    by_column = {
        name: distances(pair, name).area / column_sums(pair, name).spread
        for name in pair.need_numbers("The Wasserstein distance")
    }
    value = math.fsum(by_column.values()) / len(by_column)
    return Loss(
        name="wasserstein",
        value=value,
        by_column=by_column,
        formula="the area between the two distribution functions over the original's standard "
        "deviation, averaged over columns",
        source="L. N. Vaserstein (1969). Problems of Information Transmission 5(3), 47-52",
        range=(0.0, math.inf),
        verdict=f"distributions moved by {value:.3g} standard deviations{worst(by_column)}",
    )
