"""Sums that the measures share: of one column, and of pairs of columns.

Every figure is over the cells that both tables know, with weights. Columns are put on the scale of
the original first (minus its mean, over its *spread*), so that nothing overflows or cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._types import Floats, Name
from ..exceptions import BadTableError
from .compared import ComparedTables, PairedNumbers

__all__ = ["ColumnSums", "Moments", "column_sums", "moments", "variation"]


SWEEPS = 5  # columns are held in so many blocks: a fifth of both tables at a time
SMALL = 1e-100  # a column of smaller numbers is refused
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
    key = ("sums", name)
    if key not in pair.kept:
        cells = pair.number(name).compressed()
        _refuse_vanishing(cells, name)
        pair.kept[key] = _column_sums(cells)
    kept: ColumnSums = pair.kept[key]
    return kept


def _refuse_vanishing(cells: PairedNumbers, name: Name) -> None:
    """Refuse numbers so small that their squares are zero: every loss would seem to be none."""
    peak = max(float(np.abs(side).max()) for side in (cells.before, cells.after))
    first = cells.before[0]
    if 0 < peak < SMALL and not all((side == first).all() for side in (cells.before, cells.after)):
        raise BadTableError(
            f"Column {name!r} has no number of {SMALL:g} or more: the squares of such numbers "
            "vanish, and with them what is lost. Give it in another unit, in both tables: "
            "multiply it by a power of ten."
        )


def _column_sums(cells: PairedNumbers) -> ColumnSums:
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
    return mean, _mean((values - mean) ** 2, weights)


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Second moments of both tables, and what the sampling error of the original's needs.

    Matrices of shape (d, d), on the original's scale. `covariance` and `correlation` are of the
    original and `..._after` of the masked table, over the records that know both columns;
    `n` is their effective number. `m22` and `m31` are mean products of centred values of the
    original, z_j^2 z_k^2 and z_j^3 z_k. A correlation with a constant column is 0.
    """

    columns: tuple[Name, ...]
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
    if "moments" not in pair.kept:
        pair.kept["moments"] = _Sweep(pair).run()
    kept: Moments = pair.kept["moments"]
    return kept


class _Sweep:
    """Products of every column with a block of columns, block by block."""

    def __init__(self, pair: ComparedTables) -> None:
        self.pair, self.names = pair, pair.numbers
        d = len(self.names)
        self.sums = [column_sums(pair, name) for name in self.names]
        self.covariance, self.variance = np.zeros((2, d, d)), np.zeros((2, d, d))
        self.n, self.m22, self.m31 = np.zeros((3, d, d))

    def run(self) -> Moments:
        d = len(self.names)
        size = max(1, d // SWEEPS)
        for start in range(0, d, size):
            self._block(range(start, min(start + size, d)))
        correlation = [self._correlation(side) for side in (0, 1)]
        return Moments(
            columns=self.names,
            spread=np.array([sums.spread for sums in self.sums]),
            n=self.n,
            covariance=self.covariance[0],
            covariance_after=self.covariance[1],
            correlation=correlation[0],
            correlation_after=correlation[1],
            m22=self.m22,
            m31=self.m31,
        )

    def _scaled(self, j: int) -> tuple[Floats, Floats, Floats | None]:
        """Return a column of both tables on the original's scale, 0 where unknown, and a mask."""
        cells, sums = self.pair.number(self.names[j]), self.sums[j]
        scaled = []
        for side in (cells.before, cells.after):
            values = side - sums.mean_before
            values /= sums.spread
            if cells.known is not None:
                values[~cells.known] = 0.0
            scaled.append(values)
        mask = None if cells.known is None else cells.known.astype(np.float64)
        return scaled[0], scaled[1], mask

    def _block(self, block: range) -> None:
        n, w = self.pair.n_rows, self.pair.weights
        held = np.empty((2, len(block), n))
        masks: Floats | None = None
        for place, j in enumerate(block):
            held[0, place], held[1, place], mask = self._scaled(j)
            if mask is not None:
                masks = np.ones((len(block), n)) if masks is None else masks
                masks[place] = mask
        first, last = block[0], block[-1] + 1
        squares = [own * own for own in held]
        for k in range(len(self.names)):
            *sides, mask = self._scaled(k)
            weight = _times(w, mask)
            # Where no record knows both columns, every sum is 0, and so is every figure.
            total = np.maximum(_count(masks, weight, n), 1e-300)
            heavy = np.maximum(_count(masks, _times(weight, w), n), 1e-300)
            here = np.s_[first:last, k]
            self.n[here] = total**2 / heavy  # Kish's effective number of records
            for side, values in enumerate(sides):
                own = held[side]
                mean_own = _against(own, weight) / total
                weighted = values if weight is None else values * weight
                mean_other = _count(masks, weighted, n) / total
                self.covariance[side][here] = own @ weighted / total - mean_own * mean_other
                square = _against(squares[side], weight) / total
                self.variance[side][here] = square - mean_own**2
            z = sides[0]
            power = z * z if weight is None else z * z * weight
            self.m22[here] = squares[0] @ power / total
            power *= z
            self.m31[k, first:last] = held[0] @ power / total

    def _correlation(self, side: int) -> Floats:
        variance = self.variance[side]
        scale = np.sqrt(np.maximum(variance * variance.T, 0.0))
        never = [(sums.variance_before, sums.variance_after)[side] == 0.0 for sums in self.sums]
        nothing = (variance <= NOTHING) | np.array(never)[:, None]
        constant = nothing | nothing.T
        scale[constant] = 1.0
        correlation = np.clip(self.covariance[side] / scale, -1.0, 1.0)
        correlation[constant] = 0.0
        np.fill_diagonal(correlation, 1.0)
        for j, is_constant in enumerate(never):
            correlation[j, j] = 0.0 if is_constant else 1.0
        symmetric: Floats = (correlation + correlation.T) / 2
        return symmetric


def _times(first: Floats | None, second: Floats | None) -> Floats | None:
    if first is None or second is None:
        return second if first is None else first
    product: Floats = first * second
    return product


def _against(block: Floats, weight: Floats | None) -> Floats:
    sums: Floats = block.sum(axis=1) if weight is None else block @ weight
    return sums


def _count(masks: Floats | None, weight: Floats | None, n: int) -> Floats | float:
    """Sum a weight over the records that each column of a block knows."""
    if masks is None:
        return float(n) if weight is None else float(weight.sum())
    return masks.sum(axis=1) if weight is None else masks @ weight
