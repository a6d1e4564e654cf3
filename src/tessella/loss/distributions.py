"""How far the distribution of each column has moved, and how surprising its statistics are.

A difference of means says little without the error that sampling alone would make. Probabilistic
information loss compares each statistic of the masked table with the original's in units of that
error, and the probability of a smaller difference is the loss: 0 for none, 100 for one that chance
does not make.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np

from .._parameters import OneOf, parameters
from .._types import Floats, Name
from ..exceptions import BadOptionError
from .base import ComparedTables, Loss, Reading, compare, worst
from .moments import column_sums, moments

# Of moments on the original's scale. Moments of values that were moved away from 0 by 10,000
# standard deviations differ by 1e-12; a standard error, where there is one, is larger by far.
ROUNDING = 1e-9


def pil(original: Any, masked: Any, **reading: Unpack[Reading]) -> Loss:
    """Measure the probabilistic information loss, PIL, from 0 to 100.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.

    Returns
    -------
    Loss
        The value is the mean of the parts, which `details` has: quantiles, means, variances and,
        with two columns or more, covariances and correlations.

    Notes
    -----
    With t a statistic of the original and t' the masked table's,
    PIL = 100 (2 Phi(|t - t'| / e) - 1), where Phi is the normal distribution function and e the
    large-sample standard error of t in a sample of the table's size from the original as
    population; with m_ab central moments:

    - mean: e^2 = m_2 / n;
    - covariance (a variance is that of a column with itself): e^2 = (m_22 - m_11^2) / n;
    - correlation r: e^2 = (m_22 / (m_20 m_02) + r^2/4 (m_40/m_20^2 + m_04/m_02^2
      + 2 m_22 / (m_20 m_02)) - r (m_31 / m_20 + m_13 / m_02) / sqrt(m_20 m_02)) / n;
    - quantile q: e^2 = q (1 - q) / (n f^2), with f the density there, estimated from spacings;
      5 %, 10 %, ... 95 %.

    Each part is the mean over columns, or pairs of columns. Where e is 0 (a constant column), the
    loss is 0 for no difference and 100 for any. With weights, n is the effective number of
    records, (sum w)^2 / sum w^2.

    References
    ----------
    J. M. Mateo-Sanz, J. Domingo-Ferrer and F. Sebe (2005). Probabilistic information loss measures
    in confidentiality protection of continuous microdata. Data Mining and Knowledge Discovery
    11(2), 181-193.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import pil
    >>> x = np.arange(100.0).reshape(-1, 2)
    >>> pil(x, x).value
    0.0
    >>> pil(x, x + 100).details["means"]
    100.0
    """
    pair = compare(original, masked, **reading)
    names = pair.need_numbers("PIL")
    parts: dict[str, Floats] = {  # for each part the loss of each column
        "quantiles": np.array([_of_quantiles(distances(pair, name)) for name in names]),
        **_of_moments(pair, names),
    }
    details = {part: float(losses.mean()) for part, losses in parts.items()}
    by_column = dict(zip(names, np.mean(list(parts.values()), axis=0).tolist()))
    value = float(np.mean(list(details.values())))
    return Loss(
        name="pil",
        value=value,
        by_column=by_column,
        formula="100 times the probability that a sample's statistic is nearer to the original's "
        "than the masked table's is, averaged over quantiles, means, variances, covariances and "
        "correlations",
        source="J. M. Mateo-Sanz, J. Domingo-Ferrer and F. Sebe (2005). Probabilistic information "
        "loss measures in confidentiality protection of continuous microdata. Data Mining and "
        "Knowledge Discovery 11(2), 181-193",
        range=(0.0, 100.0),
        verdict=f"a statistic is further off than in {value:.3g} % of samples, on average; most: "
        f"{max(details, key=details.__getitem__)}{worst(by_column)}",
        details=details,
    )


def _loss(difference: Floats, error: Floats, *, rounding: float = ROUNDING) -> Floats:
    """Return 100 (2 Phi(|difference| / error) - 1); a difference of rounding is none."""
    from scipy.special import erf

    gap = np.where(np.abs(difference) > rounding, np.abs(difference), 0.0)
    z = np.divide(gap, error, out=np.full(gap.shape, np.inf), where=error > 0)
    z[gap == 0] = 0.0
    losses: Floats = 100.0 * erf(z / np.sqrt(2.0))
    return losses


def _of_quantiles(found: Distances) -> float:
    return float(_loss(found.before - found.after, found.error, rounding=0.0).mean())


def _of_moments(pair: ComparedTables, names: tuple[Name, ...]) -> dict[str, Floats]:
    found, d = moments(pair), len(names)
    sums = [column_sums(pair, name) for name in names]
    n = np.maximum(found.n, 1.0)
    spread = found.spread
    gap = np.array([s.mean_before - s.mean_after for s in sums]) / spread
    variance = np.array([s.variance_before for s in sums]) / spread**2
    error = _error(found.m22, found.covariance**2, n)
    constant = np.array([s.constant for s in sums])
    error[constant | constant[:, None]] = 0.0
    moved = found.covariance - found.covariance_after
    of_covariances = _loss(moved, error)
    # The variance in its own terms: exact where nothing changed, whatever the rounding of sums.
    own = np.array([s.variance_before - s.variance_after for s in sums]) / spread**2
    parts = {
        "means": _loss(gap, np.sqrt(variance / np.diag(n))),
        "variances": _loss(own, np.diag(error).copy()),
    }
    if d > 1:
        moved = found.correlation - found.correlation_after
        of_correlations = _loss(moved, _correlation_error(found.correlation, found, n))
        others = ~np.eye(d, dtype=bool)
        parts["covariances"] = (of_covariances * others).sum(axis=1) / (d - 1)
        parts["correlations"] = (of_correlations * others).sum(axis=1) / (d - 1)
    return parts


def _correlation_error(r: Floats, found: Any, n: Floats) -> Floats:
    m20 = np.diag(found.covariance)[:, None]
    scale = m20 * m20.T
    scale = np.where(scale > 0, scale, 1.0)
    fourth = np.diag(found.m22)[:, None] / np.where(m20 > 0, m20, 1.0) ** 2
    third = found.m31 / np.where(m20 > 0, m20, 1.0)
    even = found.m22 / scale + r**2 / 4 * (fourth + fourth.T + 2 * found.m22 / scale)
    return _error(even, r * (third + third.T) / np.sqrt(scale), n)


def _error(mean_square: Floats, square: Floats, n: Floats) -> Floats:
    """Return the standard error from two terms of its square; what is left by rounding is 0.

    It is 0 where nothing varies: of two records, every product of deviations is the same.
    """
    variance = mean_square - square
    error: Floats = np.sqrt(np.where(variance > ROUNDING * mean_square, variance, 0.0) / n)
    return error


Distance = Literal["kolmogorov_smirnov", "wasserstein", "quantiles"]


QUANTILES = tuple(percent / 100 for percent in range(5, 100, 5))
FORMULAS = {
    "kolmogorov_smirnov": "the largest difference of the two distribution functions, averaged over "
    "columns",
    "wasserstein": "the area between the two distribution functions over the original's standard "
    "deviation, averaged over columns",
    "quantiles": "the mean over {} quantiles and all columns of the absolute difference over the "
    "original's standard deviation",
}
SOURCES = {
    "kolmogorov_smirnov": "N. Smirnov (1948). Annals of Mathematical Statistics 19(2), 279-281",
    "wasserstein": "L. N. Vaserstein (1969). Problems of Information Transmission 5(3), 47-52",
    "quantiles": "R. J. Hyndman and Y. Fan (1996). Sample quantiles in statistical packages. "
    "The American Statistician 50(4), definition 1",
}


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
            return place / len(self.values)
        return np.where(place > 0, self.share[np.maximum(place, 1) - 1], 0.0)

    def quantile(self, shares: Floats) -> Floats:
        """Return the least value that at least a share of all is not above."""
        n = len(self.values)
        if self.share is None:
            # A share such as 0.55 of 20 is 11 and must not become the 12th by rounding.
            place = np.ceil(np.round(shares * n, 9)).astype(np.int64) - 1
        else:
            place = np.searchsorted(np.round(self.share, 12), np.round(shares, 12), side="left")
        return self.values[np.clip(place, 0, n - 1)]


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


def distances(pair: ComparedTables, name: Name, shares: Sequence[float] = QUANTILES) -> Distances:
    """Return the distances of one column, computed once for each pair of tables."""

    def find() -> Distances:
        cells = pair.number(name).compressed()
        before, after, w = cells.before, cells.after, cells.weights
        sides = [Distribution.of(side, w) for side in (before, after)]
        n = float(len(before)) if w is None else float(w.sum() ** 2 / (w**2).sum())
        wanted = np.asarray(shares, dtype=np.float64)
        return Distances(
            largest=largest_gap(*sides),
            area=_area(*sides),
            before=sides[0].quantile(wanted),
            after=sides[1].quantile(wanted),
            error=_standard_error(sides[0], wanted, n),
        )

    return pair.once(("distances", name, tuple(shares)), find)


def largest_gap(a: Distribution, b: Distribution) -> float:
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
    from scipy.special import ndtri

    z = ndtri(shares)
    density = np.exp(-(z**2) / 2.0) / np.sqrt(2 * np.pi)
    h = n**-0.2 * (4.5 * density**4 / (2 * z**2 + 1) ** 2) ** 0.2
    low, high = np.maximum(shares - h, 0.0), np.minimum(shares + h, 1.0)
    slope = (a.quantile(high) - a.quantile(low)) / (high - low)
    errors: Floats = np.sqrt(shares * (1 - shares) / n) * slope
    return errors


@parameters(distance=[OneOf(get_args(Distance))])
def distribution_loss(
    original: Any,
    masked: Any,
    *,
    distance: Distance = "kolmogorov_smirnov",
    shares: Sequence[float] = QUANTILES,
    **reading: Unpack[Reading],
) -> Loss:
    """Measure how far the distribution of each column has moved.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.
    distance : {"kolmogorov_smirnov", "wasserstein", "quantiles"}
        The largest difference of the two distribution functions, the area between them, or the
        mean distance of quantiles; the last two in standard deviations of the original.
    shares : sequence of numbers between 0 and 1, default 0.05, 0.10, ... 0.95
        Which quantiles.

    Notes
    -----
    With F_j and F'_j the distribution functions of column j, Q_j and Q'_j their quantiles (the
    least value that a share does not exceed) and s_j the original's standard deviation:

    - Kolmogorov-Smirnov: max over t of |F_j(t) - F'_j(t)|, from 0 to 1;
    - Wasserstein: integral of |F_j(t) - F'_j(t)| dt / s_j, the least work that turns one
      distribution into the other, never above the mean absolute error of values;
    - quantiles: the mean over q of |Q_j(q) - Q'_j(q)| / s_j.

    The value is the mean over columns.

    References
    ----------
    N. Smirnov (1948). Table for estimating the goodness of fit of empirical distributions.
    Annals of Mathematical Statistics 19(2), 279-281. L. N. Vaserstein (1969). Markov processes
    over denumerable products of spaces. Problems of Information Transmission 5(3), 47-52. R. J.
    Hyndman and Y. Fan (1996). Sample quantiles in statistical packages. The American Statistician
    50(4), 361-365: definition 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import distribution_loss
    >>> x, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[1.0], [2.0], [3.0], [9.0]])
    >>> distribution_loss(x, y).value
    0.25
    >>> x = np.array([[0.0], [0.0], [2.0], [2.0]])
    >>> distribution_loss(x, x + 1, distance="quantiles", shares=[0.5]).value
    1.0
    """
    wanted = np.asarray(shares, dtype=np.float64)
    if wanted.ndim != 1 or not len(wanted) or not ((wanted > 0) & (wanted < 1)).all():
        raise BadOptionError("shares", shares, "numbers above 0 and below 1")
    pair = compare(original, masked, **reading)
    by_column = {
        name: _distance(pair, name, distance, tuple(wanted.tolist()))
        for name in pair.need_numbers("A distance of distributions")
    }
    value = math.fsum(by_column.values()) / len(by_column)
    most = worst(by_column)
    largest = 100 * max(by_column.values())
    verdicts = {
        "kolmogorov_smirnov": f"shares below a value are off by at most {largest:.3g} points{most}",
        "wasserstein": f"distributions moved by {value:.3g} standard deviations{most}",
        "quantiles": f"quantiles moved by {value:.3g} standard deviations on average{most}",
    }
    return Loss(
        name=distance,
        value=value,
        by_column=by_column,
        formula=FORMULAS[distance].format(len(wanted)),
        source=SOURCES[distance],
        range=(0.0, 1.0 if distance == "kolmogorov_smirnov" else math.inf),
        verdict=verdicts[distance],
    )


def _distance(pair: ComparedTables, name: Name, kind: Distance, shares: tuple[float, ...]) -> float:
    found = distances(pair, name, shares)
    if kind == "kolmogorov_smirnov":
        return found.largest
    spread = column_sums(pair, name).spread
    if kind == "wasserstein":
        return found.area / spread
    return float((np.abs(found.before - found.after) / spread).mean())
