"""Tables of numbers whose truth is known, and how columns become a table of the kind asked for.

A column is an array of numbers, a masked array (some values are missing), or `CategoryColumn` (a
number for each record and the names that the numbers stand for).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._lazy import optional
from .._parameters import FLAG, SEED, Number, OneOf, Whole, check, parameters
from .._types import Floats, Integers, Signs
from ..exceptions import BadOptionError


@dataclass(frozen=True)
class CategoryColumn:
    """One of a few names for each record."""

    codes: Signs
    names: tuple[str, ...]

    def text(self) -> NDArray[np.str_]:
        """Return the name of each record."""
        return np.array(self.names)[self.codes]


ColumnData = NDArray[Any] | CategoryColumn


def to_frame(columns: Mapping[str, ColumnData], frame: str) -> Any:
    """Return the columns as a table of the kind asked for.

    Whole numbers with missing values stay whole: pandas gets its nullable `Int64`, polars and
    Arrow get nulls. NumPy has no missing integers: they become float64 with NaN. A NumPy table
    is a float64 array of shape (n, d) where all columns are numbers, and a structured array, one
    field for each column, where some are text.
    """
    return _MAKERS[frame](columns)


def _to_pandas(columns: Mapping[str, ColumnData]) -> Any:
    import pandas as pd

    def convert(column: ColumnData) -> Any:
        if isinstance(column, CategoryColumn):
            return pd.Categorical.from_codes(column.codes, pd.Index(column.names))
        if isinstance(column, np.ma.MaskedArray) and column.dtype.kind == "i":
            return pd.arrays.IntegerArray(column.data, np.ma.getmaskarray(column))
        return _with_nan(column)

    return pd.DataFrame({name: convert(column) for name, column in columns.items()})


def _to_polars(columns: Mapping[str, ColumnData]) -> Any:
    pl = optional("polars", extra="polars", purpose='frame="polars"')
    # Arrow's dictionaries become Categorical, not Enum, which has an order: these names have none.
    return pl.from_arrow(_to_arrow(columns))


def _to_arrow(columns: Mapping[str, ColumnData]) -> Any:
    import pyarrow as pa

    def convert(column: ColumnData) -> Any:
        if isinstance(column, CategoryColumn):
            return pa.DictionaryArray.from_arrays(column.codes, list(column.names))
        if isinstance(column, np.ma.MaskedArray):
            return pa.array(column.data, mask=np.ma.getmaskarray(column))
        return pa.array(column)

    return pa.table({name: convert(column) for name, column in columns.items()})


def _to_numpy(columns: Mapping[str, ColumnData]) -> Any:
    values = {
        name: column.text() if isinstance(column, CategoryColumn) else _with_nan(column)
        for name, column in columns.items()
    }
    if all(column.dtype.kind in "if" for column in values.values()):
        return np.column_stack([column.astype(np.float64) for column in values.values()])
    length = len(next(iter(values.values())))
    table = np.empty(length, dtype=[(name, column.dtype) for name, column in values.items()])
    for name, column in values.items():
        table[name] = column
    return table


def _with_nan(column: NDArray[Any]) -> NDArray[Any]:
    if not isinstance(column, np.ma.MaskedArray):
        return column
    filled = column.data.astype(np.float64)
    filled[np.ma.getmaskarray(column)] = np.nan
    return filled


_MAKERS: dict[str, Callable[[Mapping[str, ColumnData]], Any]] = {
    "arrow": _to_arrow,
    "numpy": _to_numpy,
    "pandas": _to_pandas,
    "polars": _to_polars,
}

SHARE = [Number(0, 1)]
COMMON: dict[str, Any] = {  # arguments that have one meaning in all functions of this folder
    "n": [Whole(1)],
    "d": [Whole(1)],
    "inconsistent": SHARE,
    "missing": SHARE,
    "weights": [FLAG],
    "random_state": [SEED],
    "frame": [OneOf(tuple(_MAKERS))],
    "return_rules": [FLAG],
    "return_truth": [FLAG],
}

# Slips of the pen in totals, and values that were never given. Both leave the table's own random
# numbers alone: a spoiled table is the clean table of the same seed with some cells changed, so the
# truth behind every changed cell is known.


def make_slips(
    columns: dict[str, ColumnData], totals: Sequence[str], share: float, random: np.random.Generator
) -> None:
    """Change one total in `share` of the records: unit, sign, or a few units off.

    Each of `totals` stands alone on one side of an equality, so the change of one of them breaks
    it. The number of changed records is exact: round(share * n).
    """
    n = len(columns[totals[0]])  # type: ignore[arg-type]
    spoiled = random.permutation(n)[: round(share * n)]
    which = random.integers(len(totals), size=len(spoiled))
    how = random.integers(3, size=len(spoiled))
    off = random.integers(1, 10, size=len(spoiled))
    for t, total in enumerate(totals):
        rows, slip = spoiled[which == t], how[which == t]
        column = np.array(columns[total])
        true = column[rows]
        seen = np.select([slip == 0, slip == 1], [1000 * true, -true], true + off[which == t])
        column[rows] = np.where(seen == true, true + 1, seen)  # 1000 times nothing is nothing
        columns[total] = column


def leave_out(
    columns: dict[str, ColumnData], names: Sequence[str], share: float, random: np.random.Generator
) -> None:
    """Make each value of the named columns missing with probability `share`."""
    for name in names:
        values = np.asarray(columns[name])
        columns[name] = np.ma.MaskedArray(values, random.random(len(values)) < share)


# Tables of numbers: where the clusters are, how heavy the tails.

LARGEST = 2.0**53  # up to here, float64 holds every whole number


@dataclass(frozen=True, kw_only=True)
class ClusterTruth:
    """What `make_clusters` knows of its table."""

    labels: Integers  # the cluster of each record
    centres: Floats  # shape (clusters, d)
    spread: float  # no record is farther from its centre
    separation: float  # no two centres are nearer than separation * spread

    def is_optimum(self, k: int) -> bool:
        """Tell whether the clusters are proved to be the one grouping of least SSE for this k.

        True where all clusters have k to 2k - 1 records and separation > 2 + 2 sqrt(2k - 1); the
        Notes of `make_clusters` have the proof. False means: not proved.
        """
        sizes = np.bincount(self.labels)
        fits = bool(k <= sizes.min() and sizes.max() <= 2 * k - 1)
        return fits and bool(self.separation > 2 + 2 * np.sqrt(2 * k - 1))


@dataclass(frozen=True, kw_only=True)
class TailTruth:
    """What `make_heavy_tailed` knows of its table."""

    tail: float  # the tail index of every column
    scale: Floats  # shape (d,)
    correlation: float  # between any two columns, of the normal scores
    zeros: float  # chance of a zero


@parameters(separation=[Number(0)], spread=[Number(0)], **COMMON)
def make_clusters(
    n: int = 1000,
    *,
    d: int = 2,
    sizes: tuple[int, int] = (3, 5),
    separation: float = 10.0,
    spread: float = 1.0,
    random_state: int | np.random.Generator | None = None,
    frame: str = "pandas",
    return_truth: bool = False,
) -> Any:
    """Make small clusters that stand clear of each other: a grouping problem with known optimum.

    Parameters
    ----------
    n : int
        The number of records.
    d : int
        The number of columns, named x1, x2, ...
    sizes : (int, int)
        The smallest and the largest number of records of a cluster.
    separation : float
        Least distance between two centres, in units of `spread`.
    spread : float
        Greatest distance of a record from its centre; records fill the ball evenly.
    random_state : int, numpy.random.Generator or None
        The same seed gives the same table.
    frame : {"pandas", "polars", "arrow", "numpy"}
        The kind of table.
    return_truth : bool
        Also return the truth.

    Returns
    -------
    table : frame of shape (n, d)
    truth : ClusterTruth
        Only with `return_truth`.

    Notes
    -----
    If every cluster has k to 2k - 1 records and separation > 2 + 2 sqrt(2k - 1), the clusters are
    the only grouping of least SSE, at any n. Let r be the spread and t = separation - 2. Records
    of different clusters are at least t r apart. A cluster has no room for two groups, so every
    cluster that is not a group itself has records in a group that mixes. A group of s records
    from c >= 2 clusters has at least (c - 1)(s - c / 2) pairs of different clusters, so its SSE,
    the sum of squared distances over all pairs divided by s, is at least
    (c - 1)(1 - c / 2s) t² r² >= c t² r² / 4. Leaving a cluster broken saves at most
    (2k - 1) r². Mixing loses if t² / 4 > 2k - 1.

    The distances are those of the table as it is: scaling the columns changes them.

    Examples
    --------
    >>> from tessella.datasets import make_clusters
    >>> table, truth = make_clusters(100, random_state=0, return_truth=True)
    >>> table.shape, len(truth.centres), truth.is_optimum(3)
    ((100, 2), 25, True)
    """
    random = np.random.default_rng(random_state)
    counts = _cluster_sizes(n, sizes, random)
    labels = random.permutation(np.repeat(np.arange(len(counts)), counts))
    centres = _apart(len(counts), d, random) * (separation * spread)
    direction = random.normal(size=(n, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    X = centres[labels] + direction * (spread * random.random((n, 1)) ** (1 / d))

    table = to_frame({f"x{j + 1}": X[:, j] for j in range(d)}, frame)
    if not return_truth:
        return table
    return table, ClusterTruth(labels=labels, centres=centres, spread=spread, separation=separation)


@parameters(tail=[Number(0.1)], correlation=SHARE, zeros=SHARE, whole=[FLAG], **COMMON)
def make_heavy_tailed(
    n: int = 1000,
    *,
    d: int = 5,
    tail: float = 2.0,
    correlation: float = 0.5,
    zeros: float = 0.0,
    whole: bool = False,
    random_state: int | np.random.Generator | None = None,
    frame: str = "pandas",
    return_truth: bool = False,
) -> Any:
    """Make correlated columns with Pareto tails: money, in any country, in any year.

    Parameters
    ----------
    n, random_state, frame, return_truth
        As for `make_clusters`.
    d : int
        The number of columns, named x1, x2, ...; their scales go from 10 to 10,000.
    tail : float
        The tail index: moments of this order and above do not exist. Below 2, no variance.
    correlation : float
        Correlation of the normal scores of any two columns, 0 to 1.
    zeros : float
        Chance of each value to be zero instead.
    whole : bool
        Round down to whole numbers, of at most 2**53.

    Returns
    -------
    table : frame of shape (n, d)
    truth : TailTruth
        Only with `return_truth`.

    Notes
    -----
    P(x_j > v) = (1 - zeros) (1 + v / scale_j) ** -tail for v >= 0 (Lomax margins), joined by a
    Gaussian copula with one common factor.

    Examples
    --------
    >>> from tessella.datasets import make_heavy_tailed
    >>> table, truth = make_heavy_tailed(10_000, random_state=0, return_truth=True)
    >>> bool(abs(table["x1"].median() - truth.scale[0] * (2 ** (1 / truth.tail) - 1)) < 0.2)
    True
    """
    from scipy.special import ndtr

    random = np.random.default_rng(random_state)
    common, own = random.normal(size=(n, 1)), random.normal(size=(n, d))
    above = ndtr(np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own)
    scale = np.logspace(1, 4, d)
    X = scale * (above ** (-1 / tail) - 1)
    X[random.random((n, d)) < zeros] = 0.0
    if whole:
        X = np.floor(np.minimum(X, LARGEST)).astype(np.int64)

    table = to_frame({f"x{j + 1}": X[:, j] for j in range(d)}, frame)
    if not return_truth:
        return table
    return table, TailTruth(tail=tail, scale=scale, correlation=correlation, zeros=zeros)


def _cluster_sizes(n: int, sizes: tuple[int, int], random: np.random.Generator) -> Integers:
    """Draw sizes between the two given that add up to n."""
    try:
        low, high = sizes
    except (TypeError, ValueError):
        raise BadOptionError("sizes", sizes, "the smallest and the largest size") from None
    check({"sizes[0]": [Whole(1)]}, {"sizes[0]": low})
    check({"sizes[1]": [Whole(low)]}, {"sizes[1]": high})
    fewest, most = -(-n // high), n // low
    if fewest > most:
        raise BadOptionError("sizes", sizes, f"sizes that can add up to n={n}")
    count = int(np.clip(round(2 * n / (low + high)), fewest, most))
    places = random.permutation(count * (high - low))[: n - count * low]
    return low + np.bincount(places // max(high - low, 1), minlength=count)


def _apart(count: int, d: int, random: np.random.Generator) -> Floats:
    """Place points at random, no two nearer than 1: jittered cells of a lattice, one point each."""
    axes = min(d, 60)  # cells are numbered by one int64
    side = max(2, int(np.ceil((2.0 * count) ** (1 / axes))))
    chosen = random.choice(side**axes, size=count, replace=False)
    cells = np.empty((count, d))
    for j in range(axes):
        chosen, cells[:, j] = np.divmod(chosen, side)
    cells[:, axes:] = random.integers(side, size=(count, d - axes))
    # Neighbouring cells are 5/3 apart and a point moves by up to 1/3 from its cell's middle.
    return (5 * cells + random.uniform(-1, 1, (count, d))) / 3
