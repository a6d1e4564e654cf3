"""How good can any grouping be? Lower bounds on the SSE of groups of at least k records.

Vocabulary: every record has a *price*; prices are *sound* if no group of at least k records has a
smaller SSE than its records' prices together. The groups of a partition hold each record once, so
the sum of sound prices is at most the SSE of every partition: a lower bound, whatever way the
prices were found.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from .. import _clock
from .._parameters import EFFORT, NONE, Number, parameters
from .._types import Floats, Integers, Progress
from ..diversity import Diversity
from ..exceptions import BadOptionError, BadTableError, UnfinishedWarning
from ..frame import count_units
from ..kernels.bound import unit_prices, weighted_prices
from ..parallel import n_cores
from .base import (
    Units,
    check_k,
    check_records,
    check_units,
    check_weights,
    one_each,
    one_group,
    refuse_unattainable,
    split_strata,
    sse_of,
)
from .column_generation import LISTED, ColumnGeneration, PricingProblem, nearest_others

# Seconds that standard effort takes at most, unless a time limit says otherwise.
STANDARD_SECONDS = 60.0
# Records of a stratum beyond which column generation is left out: it looks at all pairs.
MOST_RECORDS = 50_000
# Nearest records listed for a record, at most, to find others of k - 1 units, and cells of a list.
MOST_LISTED, MOST_CELLS = 4_096, 4_000_000
# Rounding errors of sums of n terms are far below this share of them.
ROUNDING = 1e-12

ONE_GROUP = "exact, one group"
NEIGHBOURS = "nearest neighbours"
NEIGHBOUR_UNITS = "nearest units"
NEIGHBOUR_VALUES = "nearest confidential values"
COLUMNS = "column generation"
CUTS = "column generation with cuts"
PROOFS = {
    ONE_GROUP: "Two groups of at least k do not fit: this is the SSE of a single one.",
    NEIGHBOURS: (
        "In a group of at least k, a record's squared distances to the others are at least those "
        "to its k - 1 nearest neighbours, which were found exactly."
    ),
    NEIGHBOUR_UNITS: (
        "A group of at least k units has records of k - 1 units other than a record's own, and any "
        "further records: the least weighted mean of squared distances from the record to such a "
        "group was found from its nearest neighbours, and half of it, times the weight, is "
        "what the record costs in any group."
    ),
    NEIGHBOUR_VALUES: (
        "A group satisfies k without l and t, so that what a record costs in any group of at least "
        "k bounds it. And it has records of as many confidential values as l or t need: the least "
        "cost of a record in such a group was found from its nearest neighbours. The larger counts."
    ),
    COLUMNS: (
        "Every record has a price. An exhaustive search in double precision, after the last step, "
        "left no group of at least k records that costs less than its records' prices, which "
        "sum to the bound; the solver's tolerances do not enter."
    ),
    CUTS: (
        "Every record has a price, and some triples of records have a charge, paid by a group that "
        "holds two or three of them: in a partition at most one group does. An exhaustive search "
        "in double precision, after the last step, left no group of at least k records that costs "
        "less than its records' prices without its charges; all prices without all charges "
        "make the bound; the solver's tolerances do not enter."
    ),
}


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    """A number that the SSE of no grouping falls below, and why.

    Attributes
    ----------
    value : float
        The bound, on the scale of SSE (`inertia_` of a grouping).
    method : str
        How it was found; says so where a stronger method was left out or did not end.
    k, n : int
        The least size of a group, the number of records.
    n_units : int or None
        The number of units, where k counts units.
    proof : str
        Why the bound holds.
    finished : bool
        Whether the method came to its end: more time would not help.
    seconds : float
        Time taken.
    history : tuple of (seconds, value)
        How the bound rose.
    upper : float or None
        The SSE of a known grouping.
    """

    value: float
    method: str
    k: int
    n: int
    proof: str
    finished: bool
    seconds: float
    history: tuple[tuple[float, float], ...] = ()
    upper: float | None = None
    n_units: int | None = None

    @property
    def gap(self) -> float | None:
        """Share of the known grouping's SSE that is not proved unavoidable."""
        if self.upper is None:
            return None
        return max(0.0, 1.0 - self.value / self.upper) if self.upper > 0 else 0.0

    def __str__(self) -> str:
        units = "" if self.n_units is None else f" of {self.n_units:,} units"
        lines = [
            f"SSE of {self.n:,} records{units} in groups of at least {self.k}{units and ' units'}",
            f"  never below  {self.value:.6g}  ({self.method}, {self.seconds:.1f} s)",
        ]
        if self.gap is not None:
            lines.append(f"  reached      {self.upper:.6g}  (at most {self.gap:.2%} avoidable)")
        return "\n".join(lines)


@parameters({"callback": "progress"}, effort=[EFFORT], time_limit=[Number(above=0), NONE])
def lower_bound(
    X: ArrayLike,
    k: int = 3,
    *,
    effort: str = "standard",
    sample_weight: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    units: ArrayLike | None = None,
    diversity: Diversity | None = None,
    upper: float | None = None,
    labels: ArrayLike | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> LowerBound:
    """Compute a number that the SSE of no partition into groups of at least k falls below.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The records, on the scale on which they are grouped.
    k : int, default=3
        The least number of records in a group.
    effort : {"quick", "standard", "thorough"}, default="standard"
        "quick": nearest neighbours, any n and k, typically 60 to 75 % of the least SSE known.
        "standard": column generation with cuts, up to one minute, typically 90 to 100 %.
        "thorough": the same to its end, however long.
    sample_weight : array-like of shape (n,), optional
        Positive weights of the records in centres and SSE.
    strata : array-like of shape (n,), optional
        Records of different strata never share a group.
    units : array-like of shape (n,), optional
        The unit of each record; k then counts distinct units, as in `Grouping.fit`. The quick bound
        looks for the nearest records of k - 1 other units; column generation bounds groups of
        at least k records, which those of k units are, and counts where it is higher.
    diversity : Diversity, optional
        What the confidential values of every group must be, as in `Grouping.fit`. Whatever bounds
        all groups bounds those that satisfy it, and the quick bound is raised by the number of
        values that a group must have; column generation knows nothing of them.
    upper : float, optional
        The SSE of a known grouping: the bound then has a `gap`, and work ends once they meet.
    labels : array-like of shape (n,), optional
        A known grouping, instead of `upper`; its groups also help to find the bound.
    time_limit : float, optional
        Seconds after which column generation ends with the best bound it has.
    progress : callable, optional
        Called as ``progress(done, total, name)``: per cent of the records whose strata are done or
        of the time limit, whichever is more, and the bound so far in `name`. A true answer ends the
        work. So does Ctrl-C, with a warning.

    Returns
    -------
    LowerBound

    Notes
    -----
    SSE(G) = 1/(2|G|) sum_{i,j in G} |x_i - x_j|^2, hence the quick bound

        sum_i 1/(2k) sum of the k - 1 smallest |x_i - x_j|^2.

    It is one choice of prices y with y(G) <= SSE(G) for all groups G. Column generation looks for
    the best choice, a linear programme with as many constraints as there are groups: those that
    matter are found by an exhaustive search for groups that the prices overpay, which is fast
    because such a group can be taken apart, record by record, through sets that are overpaid too.
    Cuts on triples of records (of three, at most one group holds two) raise the bound further.
    The optimum of the linear programme without cuts is the same with groups of exactly k.

    Memory grows with n d; the time of column generation with n^2 and steeply with k. Strata of more
    than 50,000 records are left at the quick bound, and `method` says so.

    References
    ----------
    D. Aloise, P. Hansen and L. Liberti, "An improved column generation algorithm for minimum
    sum-of-squares clustering", Mathematical Programming 131 (2012).
    M. Jepsen, B. Petersen, S. Spoorendonk and D. Pisinger, "Subset-row inequalities applied to the
    vehicle-routing problem with time windows", Operations Research 56 (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.grouping import lower_bound
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [4.0]])
    >>> round(lower_bound(X, k=3, effort="quick").value, 4)
    6.1667
    >>> bound = lower_bound(X, k=3, labels=[0, 0, 0, 1, 1, 1, 0], effort="thorough")
    >>> round(bound.value, 4), bound.gap < 1e-6
    (10.75, True)
    """
    records = check_records(X)
    known = check_units(units, len(records))
    k = check_k(k, len(records), None if known is None else int(known.max()) + 1)
    weights = check_weights(sample_weight, records)
    parts = split_strata(strata, len(records), k, known)
    groups: Integers | None = None
    if labels is not None:
        groups = _check_labels(labels, parts, len(records), k, known, diversity)
        upper = sse_of(records, weights, groups)
    refuse_unattainable(diversity, parts, len(records), strata)
    work = _Work(records, weights, parts, k, upper, progress, known, diversity)
    if effort != "quick":
        if time_limit is None and effort == "standard":
            time_limit = STANDARD_SECONDS
        work.improve(groups, time_limit)
    return work.result()


def bound_of_parts(
    X: Floats, weights: Floats, parts: list[Integers], k: int, units: Units = None,
    diversity: Diversity | None = None,
) -> float:  # fmt: skip
    """Sum the quick bound over strata, given as arrays of row numbers."""
    return float(
        sum(
            _quick(X[rows], weights[rows], k, _of_part(units, rows), _taken(diversity, rows))
            for rows in parts
        )
    )


def _of_part(units: Units, rows: Integers) -> Units:
    return None if units is None else check_units(units[rows], len(rows))


def _taken(diversity: Diversity | None, rows: Integers) -> Diversity | None:
    return None if diversity is None else diversity.take(rows)


def _quick(
    X: Floats, weights: Floats, k: int, units: Units, diversity: Diversity | None = None
) -> float:
    if one_group(len(X), k, units):
        return sse_of(X, weights, np.zeros(len(X), dtype=np.int64))
    prices = cheap_prices(X, weights, k) if units is None else (
        prices_of_units(X, weights, k, units)
    )  # fmt: skip
    if diversity is not None:
        # Each price is at most what the record costs in any group that is allowed, and so is the
        # larger of two; a group of l values is one of l units that are called by their values.
        for values, least in diversity.least_values():
            if least > 1:
                prices = np.maximum(prices, prices_of_units(X, weights, least, values))
    return float(prices.sum()) * (1.0 - ROUNDING)


def prices_of_units(X: Floats, weights: Floats, k: int, units: Integers) -> Floats:
    """Sound prices from nearest neighbours where k counts units; see `unit_prices`.

    Lists are made longer for the records that do not find k - 1 other units on theirs.
    """
    n, n_units = len(X), int(units.max()) + 1
    tree, prices, rows = cKDTree(X), np.empty(n), np.arange(n)
    count = min(LISTED * k, n)
    while len(rows):
        final = np.empty(len(rows), dtype=bool)
        step = max(1, MOST_CELLS // count)
        for first in range(0, len(rows), step):
            piece = rows[first : first + step]
            away, near = tree.query(X[piece], count, workers=n_cores())
            prices[piece], final[first : first + step] = unit_prices(
                piece, near.astype(np.int64), np.square(away), weights, units, n_units,
                count == n, k,
            )  # fmt: skip
        if count == min(MOST_LISTED, n):
            break
        rows, count = rows[~final], min(4 * count, MOST_LISTED, n)
    return prices


def cheap_prices(X: Floats, weights: Floats, k: int) -> Floats:
    """Sound prices from nearest neighbours alone; n >= 2k.

    With equal weights w, SSE(G) = w / (2 |G|) times the sum over i and j in G of d_ij, so record i
    pays at least w / (2s) times the sum of its s - 1 smallest d_ij. Among s >= k the least is at
    s = k: the next neighbour is at least as far as the mean of those before, so it raises the
    sum by more than s raises the divisor.
    """
    n = len(X)
    if (weights == weights[0]).all():
        _, squares = nearest_others(X, k - 1)
        return np.asarray(weights[0] * squares.sum(axis=1) / (2 * k))
    listed = min(LISTED * k, n - 1)
    near, squares = nearest_others(X, listed)
    prices: Floats = weighted_prices(near, squares, weights, weights, listed == n - 1, k)
    return prices


def _check_labels(
    labels: ArrayLike, parts: list[Integers], n: int, k: int, units: Units,
    diversity: Diversity | None = None,
) -> Integers:  # fmt: skip
    """Return group numbers 0, 1, ... of a grouping that keeps k and the strata, or say why not."""
    names = one_each(labels, n, "The labels")
    _, groups = np.unique(names, return_inverse=True)
    smallest = int(count_units(groups, units).min())
    if smallest < k:
        what = "records" if units is None else "units"
        raise BadTableError(
            f"The labels have a group of {smallest} {what} although k={k}. "
            f"Give a grouping of at least k {what} each: a bound for k says nothing about others."
        )
    if diversity is not None and not diversity.kept(groups).all():
        raise BadTableError(
            "The labels have groups that do not satisfy `diversity`. Give a grouping that was "
            "fitted with it, or leave it out."
        )
    if sum(len(np.unique(groups[rows])) for rows in parts) > groups.max() + 1:
        raise BadTableError(
            "The labels have groups with records of several strata. "
            "Give a grouping that keeps the strata apart, or leave out strata."
        )
    return np.asarray(groups, dtype=np.int64)


class _Work:
    """The bounds of all strata, from the quick ones upwards; stops when asked to."""

    def __init__(
        self,
        X: Floats,
        weights: Floats,
        parts: list[Integers],
        k: int,
        upper: float | None,
        progress: Progress | None,
        units: Units = None,
        diversity: Diversity | None = None,
    ) -> None:
        self.began = _clock.now()
        self.X, self.weights, self.parts, self.k = X, weights, parts, k
        self.progress, self.n_done = progress, 0
        self.stopped = False
        self.deadline = self.end = np.inf
        self.n_units = None if units is None else int(units.max()) + 1
        self.values, self.methods = [], []
        for rows in parts:
            own = _of_part(units, rows)
            self.values.append(_quick(X[rows], weights[rows], k, own, _taken(diversity, rows)))
            alone = one_group(len(rows), k, own)
            cheap = NEIGHBOURS if own is None else NEIGHBOUR_UNITS
            cheap = cheap if diversity is None else NEIGHBOUR_VALUES
            self.methods.append(ONE_GROUP if alone else cheap)
        self.remarks: set[str] = set()
        self.history: list[tuple[float, float]] = []
        self.upper = None if upper is None else float(upper)
        self.note()

    def seconds(self) -> float:
        return _clock.now() - self.began

    def left(self) -> float:
        """Seconds left for this stratum; none once stopped, or if bound and grouping have met."""
        return 0.0 if self.stopped or self.met() else self.deadline - _clock.now()

    def met(self) -> bool:
        return self.upper is not None and sum(self.values) >= self.upper * (1.0 - 1e-9)

    def note(self) -> None:
        """Add to the history and call `progress`, which may return True to stop."""
        value = float(sum(self.values))
        if not self.history or value > self.history[-1][1]:
            self.history.append((self.seconds(), value))
        if self.progress is not None:
            share = max(self.n_done / len(self.X), self.seconds() / (self.end - self.began))
            done = round(100 * min(1.0, share))
            self.stopped |= bool(self.progress(done, 100, f"lower bound {value:.6g}"))

    def improve(self, groups: Integers | None, time_limit: float | None) -> None:
        """Raise the bounds of the strata by column generation, each in its share of the time."""
        left = sum(len(rows) for rows in self.parts)
        self.end = np.inf if time_limit is None else self.began + time_limit
        try:
            for part, rows in enumerate(self.parts):
                now = _clock.now()
                self.deadline = now + (self.end - now) * len(rows) / left
                self.n_done = len(self.X) - left
                left -= len(rows)
                if self.methods[part] == ONE_GROUP:
                    continue
                if len(rows) > MOST_RECORDS:
                    self.remarks.add(f"more than {MOST_RECORDS:,} records: no column generation")
                else:
                    self._improve(part, rows, None if groups is None else groups[rows])
        except KeyboardInterrupt:
            self.stopped = True
            self.remarks.add("interrupted")
            warnings.warn(
                "The bound was interrupted. It is valid; more time may give a higher one.",
                UnfinishedWarning,
                stacklevel=3,
            )

    def _improve(self, part: int, rows: Integers, groups: Integers | None) -> None:
        problem = PricingProblem(self.X[rows], self.weights[rows], self.k)
        known = np.empty((0, 2 * self.k - 1), dtype=np.int64)
        if groups is not None:
            known = _rows_of_kinds(problem, groups)
        columns = ColumnGeneration(problem, known, self.left)

        def rise(value: float) -> None:
            worth = problem.scale * value
            worth -= ROUNDING * problem.scale * float(problem.copies @ np.abs(columns.prices))
            if worth > self.values[part]:
                self.values[part] = worth
                self.methods[part] = CUTS if (columns.cuts.prices > 0).any() else COLUMNS
            self.note()

        columns.run(rise)
        if columns.finished:
            rise(columns.value)
        elif not self.met():
            self.remarks.add("unfinished")

    def result(self) -> LowerBound:
        """Sum up."""
        value = float(sum(self.values))
        if self.upper is not None and value > self.upper * (1.0 + 1e-9):
            expected = "the SSE of a grouping of this table, on this scale and with these weights"
            expected += f"; none with groups of at least {self.k} is below {value:.6g}"
            raise BadOptionError("upper", self.upper, expected)
        kinds = sorted(set(self.methods))
        return LowerBound(
            value=value if self.upper is None else min(value, self.upper),
            method=", ".join([" and ".join(kinds), *sorted(self.remarks)]),
            k=self.k,
            n=len(self.X),
            n_units=self.n_units,
            proof=" ".join(PROOFS[kind] for kind in kinds),
            finished=not self.remarks,
            seconds=self.seconds(),
            history=tuple(self.history),
            upper=self.upper,
        )


def _rows_of_kinds(problem: PricingProblem, labels: Integers) -> Integers:
    """Return the groups of a labelling as sorted rows of kinds; groups of 2k or more left out."""
    order = np.argsort(labels, kind="stable")
    kinds = problem.kind_of[order]
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1, append=-1))
    width = 2 * problem.k - 1
    rows = [np.sort(kinds[a:b]) for a, b in pairwise(starts) if b - a <= width]
    known = np.full((len(rows), width), -1, dtype=np.int64)
    for at, row in enumerate(rows):
        known[at, : len(row)] = row
    return known
