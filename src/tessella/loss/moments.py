"""Moments that the measures share, of columns and of pairs of columns; principal components.

Every figure is over the cells that both tables know, with weights. Columns are put on the scale of
the original first (minus its mean, over its *spread*), so that nothing overflows or cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np

from .._parameters import Number, OneOf, parameters
from .._types import Floats, Name
from .._wording import counted
from .base import (
    ComparedTables,
    Loss,
    PairedNumbers,
    Reading,
    compare,
    refuse_vanishing,
    worst,
)

Of = Literal["eigenvalues", "directions"]

BLOCK = 1 << 15  # records that are multiplied at a time
EPSILON = float(np.finfo(np.float64).eps)
NOTHING = 1e-18  # a variance below, on the original's scale, is rounding


@dataclass(frozen=True, kw_only=True)
class ColumnSums:
    """What one column of numbers loses, value by value.

    `n` counts known cells; variances have divisor n. `spread` is the original's standard
    deviation; of a column that is constant in the original and was changed, that of both tables'
    values together; 1 where nothing varies at all. `square` and `absolute` are means of squared
    and absolute differences, `relative` of absolute differences over the original's value.
    """

    n: int
    mean_before: float
    mean_after: float
    variance_before: float
    variance_after: float
    spread: float
    square: float
    absolute: float
    relative: float
    zeros: int

    @property
    def constant(self) -> bool:
        """Whether the original's known cells all have one value."""
        return self.variance_before == 0.0


def column_sums(pair: ComparedTables, name: Name) -> ColumnSums:
    """Return the sums of one column, computed once for each pair of tables."""
    return pair.once(("sums", name), lambda: _column_sums(pair.number(name).compressed(), name))


def _column_sums(cells: PairedNumbers, name: Name) -> ColumnSums:
    refuse_vanishing(cells, name)
    before, after, w = cells.before, cells.after, cells.weights
    (mean, variance), (mean_after, variance_after) = _centre(before, w), _centre(after, w)
    spread = math.sqrt(variance)
    if not spread:
        pooled = (variance + variance_after) / 2 + (mean - mean_after) ** 2 / 4
        spread = math.sqrt(pooled) or 1.0
    difference = np.abs(before - after)
    relative, zeros = variation(before, after)
    return ColumnSums(
        n=len(before),
        mean_before=mean,
        mean_after=mean_after,
        variance_before=variance,
        variance_after=variance_after,
        spread=spread,
        square=spread**2 * _mean((difference / spread) ** 2, w),
        absolute=_mean(difference, w),
        relative=_mean(relative, w),
        zeros=zeros,
    )


def variation(before: Floats, after: Floats) -> tuple[Floats, int]:
    """Return |a - b| / |a| for each value, 1 where only a is zero, and how often that is so."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = np.abs(before - after) / np.abs(before)
    from_zero = (before == 0) & (after != 0)
    relative[before == after] = 0.0
    relative[from_zero] = 1.0
    return relative, int(from_zero.sum())


def _mean(values: Floats, weights: Floats | None) -> float:
    if weights is None:
        return float(values.mean())
    return float(values @ weights / weights.sum())


def _centre(values: Floats, weights: Floats | None) -> tuple[float, float]:
    """Return mean and variance; exactly the value and zero where there is one value only."""
    first = float(values[0])
    if (values == first).all():
        return first, 0.0
    mean = _mean(values, weights)
    # A sum of n numbers errs by n times the rounding of their absolute values' sum at most. What
    # is below cannot be told from 0, and depends on the order of the records.
    if abs(mean) <= EPSILON * len(values) * _mean(np.abs(values), weights):
        mean = 0.0
    return mean, _mean((values - mean) ** 2, weights)


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Second moments of both tables, and what the sampling error of the original's needs.

    Matrices of shape (d, d), on the original's scale. `covariance` and `correlation` are of the
    original and `..._after` of the masked table, over the records that know both columns;
    `n` is their effective number. `m22` and `m31` are mean products of centred values of the
    original, z_j^2 z_k^2 and z_j^3 z_k. A correlation with a constant column is 0.
    """

    spread: Floats
    n: Floats
    covariance: Floats
    covariance_after: Floats
    correlation: Floats
    correlation_after: Floats
    m22: Floats
    m31: Floats


def moments(pair: ComparedTables) -> Moments:
    """Return the moments of all pairs of columns, computed once for each pair of tables."""
    return pair.once("moments", lambda: _Sweep(pair).run())


class _Sweep:
    """Sums of products of all pairs of columns, a block of records at a time.

    With Z the columns on the original's scale, 0 where unknown, M 1 where a cell is known and w the
    weights, every sum is a product of two matrices of shape (d, block). Means and variances of a
    column are over the records that know the other one, too.
    """

    def __init__(self, pair: ComparedTables) -> None:
        self.pair, self.names = pair, pair.numbers
        d = len(self.names)
        self.sums = [column_sums(pair, name) for name in self.names]
        self.total, self.heavy, self.m22, self.m31 = np.zeros((4, d, d))
        self.mean, self.product, self.square = np.zeros((3, 2, d, d))

    def run(self) -> Moments:
        for start in range(0, self.pair.n_rows, BLOCK):
            self._add(slice(start, min(start + BLOCK, self.pair.n_rows)))
        # Where no record knows both columns, every sum is 0, and so is every figure.
        total = np.maximum(self.total, 1e-300)
        mean = self.mean / total
        self.covariance = self.product / total - mean * mean.transpose(0, 2, 1)
        self.variance = self.square / total - mean**2
        correlation = [self._correlation(side) for side in (0, 1)]
        return Moments(
            spread=np.array([sums.spread for sums in self.sums]),
            n=total**2 / np.maximum(self.heavy, 1e-300),  # Kish's effective number of records
            covariance=self.covariance[0],
            covariance_after=self.covariance[1],
            correlation=correlation[0],
            correlation_after=correlation[1],
            m22=self.m22 / total,
            m31=self.m31 / total,
        )

    def _add(self, rows: slice) -> None:
        Z, M = np.empty((2, len(self.names), rows.stop - rows.start)), None
        for j, (name, sums) in enumerate(zip(self.names, self.sums)):
            cells = self.pair.number(name)
            for side, values in enumerate((cells.before, cells.after)):
                np.subtract(values[rows], sums.mean_before, out=Z[side, j])
                Z[side, j] /= sums.spread
            if cells.known is not None and not cells.known[rows].all():
                M = np.ones(Z.shape[1:]) if M is None else M
                M[j] = cells.known[rows]
                Z[:, j, ~cells.known[rows]] = 0.0
        w = 1.0 if self.pair.weights is None else self.pair.weights[rows]
        known = np.ones(Z.shape[1:]) if M is None else M
        weighted = known * w
        self.total += weighted @ known.T
        self.heavy += (weighted * w) @ known.T
        for side in (0, 1):
            own = Z[side] * w
            self.mean[side] += own @ known.T
            self.product[side] += own @ Z[side].T
            own *= Z[side]
            self.square[side] += own @ known.T
            if side == 0:
                self.m22 += own @ (Z[0] * Z[0]).T
                own *= Z[0]
                self.m31 += own @ Z[0].T

    def _correlation(self, side: int) -> Floats:
        variance = self.variance[side]
        deviation = np.sqrt(np.maximum(variance, 0.0))
        scale = deviation * deviation.T  # a product of variances could overflow
        never = [(sums.variance_before, sums.variance_after)[side] == 0.0 for sums in self.sums]
        nothing = (variance <= NOTHING) | np.array(never)[:, None]
        constant = nothing | nothing.T
        scale[constant] = 1.0
        correlation = np.clip(self.covariance[side] / scale, -1.0, 1.0)
        correlation[constant] = 0.0
        np.fill_diagonal(correlation, np.where(never, 0.0, 1.0))
        symmetric: Floats = (correlation + correlation.T) / 2
        return symmetric


TIE = 1e-9  # shares of variance that differ by less are the same


@parameters(of=[OneOf(get_args(Of))], explained=[Number(above=0, most=1)])
def component_loss(
    original: Any,
    masked: Any,
    *,
    of: Of = "eigenvalues",
    explained: float = 0.8,
    **reading: Unpack[Reading],
) -> Loss:
    """Measure what masking does to principal components: what they explain, where they point.

    Parameters
    ----------
    original, masked, **reading
        The tables, and `columns`, `schema`, `weights` and `on_unpaired`, as in `measure`.
    of : {"eigenvalues", "directions"}
        The shares of variance that components explain, or the space of the leading ones.
    explained : float, default 0.8
        Of directions: the components that together explain so much of the original's variance are
        compared, at most all but one.

    Notes
    -----
    Eigenvalues: with l_1 >= l_2 >= ... those of a correlation matrix over their sum,
    loss = 1/2 sum over i of |l_i - l'_i|, from 0 to 1: the share of variance that is explained by
    another component than before. It does not come apart by columns. (sdcMicro's sum of
    |l_i - l'_i| / l_i has no upper limit and explodes for small eigenvalues.)

    Directions: with V and V' the first m eigenvectors of the two correlation matrices,
    loss = |V V^T - V' V'^T|^2 / (2 m) = 1 - |V^T V'|^2 / m, the mean squared sine of the angles
    between the two spaces: 0 for the same space, 1 for orthogonal ones. Components may turn among
    each other without loss; those that explain just as much as the m-th, and cannot be told from
    it, are taken in part each. The loss of a column is its row's part; the parts sum to the value.

    References
    ----------
    I. T. Jolliffe (2002). Principal Component Analysis. Springer. W. J. Krzanowski (1979).
    Between-groups comparison of principal components. JASA 74, 703-707.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.loss import component_loss
    >>> x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> component_loss(x, x[:, [0, 0]]).value
    0.5
    >>> x = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.5]])
    >>> round(component_loss(x, x * [1, -1], of="directions").value, 9)
    1.0
    """
    pair = compare(original, masked, **reading)
    names = pair.need_numbers("The loss of principal components")
    found = moments(pair)
    shares, before = _decompose(found.correlation)
    shares_after, after = _decompose(found.correlation_after)
    if of == "eigenvalues":
        value = min(1.0, float(np.abs(shares - shares_after).sum()) / 2)
        return Loss(
            name="eigenvalues",
            value=value,
            formula="half the sum of absolute differences of the shares of variance that the "
            "principal components of the correlations explain",
            source="I. T. Jolliffe (2002). Principal Component Analysis. Springer",
            verdict=f"{100 * value:.3g} % of the variance is explained by other components than "
            "before",
            details={"first share before": shares[0], "first share after": shares_after[0]},
        )
    m = int(np.searchsorted(np.cumsum(shares), explained - 1e-12)) + 1
    m = max(1, min(m, len(names) - 1))
    turn = _projector(shares, before, m) - _projector(shares_after, after, m)
    parts = (turn**2).sum(axis=1) / (2 * m)
    by_column = dict(zip(names, parts.tolist()))
    value = min(1.0, float(parts.sum()))
    return Loss(
        name="principal_components",
        value=value,
        by_column=by_column,
        formula=f"the mean squared sine of the angles between the spaces of the first {m} "
        "principal components of the correlations",
        source="W. J. Krzanowski (1979). Between-groups comparison of principal components. "
        "JASA 74, 703-707",
        verdict=f"the space of the first {counted(m, 'component')} turned by "
        f"{np.degrees(np.arcsin(np.sqrt(value))):.3g} degrees on average{worst(by_column)}",
        details={"components": m, "share explained": float(shares[:m].sum())},
    )


def _projector(shares: Floats, vectors: Floats, m: int) -> Floats:
    """Return the matrix that projects on the first m components.

    Components that tie with the m-th are any basis of their space: each is taken by the part of
    them that m has room for, which no rounding changes.
    """
    tied = np.abs(shares - shares[m - 1]) <= TIE
    above = (shares > shares[m - 1]) & ~tied
    taken = above + tied * ((m - above.sum()) / tied.sum())
    projector: Floats = (vectors * taken) @ vectors.T
    return projector


def _decompose(correlation: Floats) -> tuple[Floats, Floats]:
    """Return shares of variance, the largest first, and eigenvectors.

    Cells missing here and there can make a matrix of correlations that no table has, with
    eigenvalues below 0: these count as 0. Where nothing varies, no component explains anything.
    """
    values, vectors = np.linalg.eigh(correlation)
    values = np.maximum(values[::-1], 0.0)
    total = values.sum()
    shares: Floats = values / total if total > 0 else values
    return shares, vectors[:, ::-1]
