"""Interval disclosure: released values so near to the true ones that they give them away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._parameters import Number, OneOf, check, parameters
from .._types import Floats, Integers, Name, Truths
from ..exceptions import BadOptionError, BadTableError
from ..schema import Schema
from .aligned import AlignedTables, align_tables
from .estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

BY = {
    "original rank": "at most {0:g} % of the true values between it and the released value",
    "rank": "released values within {0:g} % of the ranks to each side",
    "sd": "the released value, {0:g} % of the release's standard deviation to each side",
}
QUANTILES = 10_000  # released values that tell what guessing reaches where not all are attacked
WIDTHS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)


@dataclass(frozen=True, kw_only=True, repr=False)
class IntervalDisclosure(Estimate):
    """How many true values lie in an interval around the released ones.

    `value` is the share of true values that do, the mean over records of the share of their
    variables. Besides the fields of `Estimate`:

    Parameters
    ----------
    attacked : array of shape (n,)
        The rows of the masked table that were attacked.
    width : float
        The width to each side, as a share.
    by_variable : dict of name to float
        The share for each variable.
    columns : tuple
        The variables.
    inside : array of bool of shape (n, d)
        Whether each true value lies in its interval.
    chance : array of shape (n,)
        The share of each record's variables that are disclosed.
    """

    attacked: Integers = field(repr=False)
    width: float
    by_variable: Mapping[Name, float]
    columns: tuple[Name, ...]
    inside: Truths = field(repr=False)
    chance: Floats = field(repr=False)
    _curve: Sequence[tuple[float, ...]] = field(repr=False)
    _known: Truths = field(repr=False)

    @property
    def every(self) -> float:
        """The share of records all of whose values lie inside.

        By standard deviations, this is sdcMicro's dRisk; where cells are missing, dRisk counts them
        as inside.
        """
        return self.with_outside(0)

    def with_outside(self, most: int) -> float:
        """Return the share of records with at most so many values outside.

        `with_outside(1)` by standard deviations is what dRisk returned up to sdcMicro 5.5.1.
        """
        return float(((self._known & ~self.inside).sum(axis=1) <= most).mean())

    @property
    def curve(self) -> pd.DataFrame:
        """For each width: the share of values, of records with all inside, and by guessing."""
        import pandas as pd

        return pd.DataFrame(self._curve, columns=["width", "share", "every", "by guessing"])

    @property
    def average(self) -> float:
        """The mean of the shares over all widths of the curve."""
        return float(self.curve["share"].mean())

    @property
    def records(self) -> pd.DataFrame:
        """One line for each record: which variables are disclosed. Confidential."""
        import pandas as pd

        columns: dict[Any, Any] = dict(zip(self.columns, self.inside.T))
        return pd.DataFrame({**columns, "chance": self.chance})


@parameters(by=[OneOf(BY)])
def interval_disclosure(
    original: Any,
    masked: Any = None,
    *,
    width: float = 0.1,
    by: str = "rank",
    widths: Sequence[float] = WIDTHS,
    known: Sequence[Name] | Name | None = None,
    id: Name | None = None,
    schema: Schema | None = None,
    records: Any = None,
) -> IntervalDisclosure:
    """Count the true values that lie in an interval around the released ones.

    Parameters
    ----------
    original, masked : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The true values and the released ones. Row i belongs to row i unless `id` is given.
    width : float
        The width of the interval to each side, as a share: of the number of records (up to 1), or
        of the standard deviation.
    by : {"rank", "original rank", "sd"}
        How the interval is made: by ranks of the released values, by ranks of the true ones (the
        attack "interval" of `assess` and `explore`), or by standard deviations.
    widths : sequence of float
        The widths of `curve`.
    known : sequence of names, optional
        The variables; by default all that both tables have and that have an order. Others named
        here are refused.
    id, schema
        As in `link`.
    records : array-like of int, optional
        Attack these rows of the masked table, as if they were drawn at random; by original ranks.

    Notes
    -----
    For variable v with released values y_1v, ..., y_nv and true value x_iv,

    - by rank: with y_(1) <= ... <= y_(n) and y_iv at ranks a to b (more than one where values are
      tied), the interval is [y_(a - w), y_(b + w)] with w = floor(width · n), cut at the ends;
    - by original rank: x_iv is inside if at most width · n true values lie strictly between it and
      y_iv. By ranks of the release an interval around a value that many share is wide, guessing
      reaches much, and a coarser release seems to disclose more; ranks of the true values weigh all
      releases alike;
    - by sd: [y_iv - width · s, y_iv + width · s], s the standard deviation (n - 1) of the release.

    `baseline` is the exact expectation of the same count if released records were shuffled. A true
    value that is missing has nothing to disclose and is left out (a record without any counts as
    not disclosed); one whose released value is missing is not disclosed.

    References
    ----------
    J. Domingo-Ferrer and V. Torra (2001) A quantitative comparison of disclosure control methods
    for microdata. In: Confidentiality, Disclosure and Data Access, 111-133, by rank, averaged over
    widths of 1 to 10 %. J. M. Mateo-Sanz, F. Sebé and J. Domingo-Ferrer (2004) Outlier protection
    in continuous microdata masking. Privacy in Statistical Databases, LNCS 3050, 201-215, by sd.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.risk import interval_disclosure
    >>> original = np.array([[0.0], [1.0], [2.0], [10.0]])
    >>> masked = np.array([[0.5], [0.5], [6.0], [6.0]])
    >>> interval_disclosure(original, masked, by="sd", width=0.2).inside.ravel()
    array([ True,  True, False, False])
    """
    main = _checked(width, by, "width")
    if records is not None and by != "original rank":
        raise BadOptionError("records", "...", 'records only with by="original rank"')
    sides = _with_order(align_tables(original, masked, known=known, id=id, schema=schema), known)
    X = sides.B[sides.truth]
    there = ~np.isnan(X)
    if not there.any():
        raise BadTableError("The original has no value in these variables: nothing to disclose.")
    rows = np.arange(len(X)) if records is None else np.asarray(records)
    variables = [_Variable(x[rows], y[rows], x) for x, y in zip(X.T, sides.A.T)]
    there, exact = there[rows], len(rows) == len(X)
    inside, guessed = _count(variables, by, main)
    has = there.sum(axis=1)
    baseline = _mean(guessed, has)
    if not exact:  # the attacked records may be no fair sample: guesses are about everybody
        baseline = _guesses(X, sides.A, by, main)
    chance = inside.sum(axis=1) / np.maximum(has, 1)
    shares = inside.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    notes = [f"variables: {', '.join(map(str, sides.columns))}", *sides.notes]
    if gone := int((~there).sum()):
        notes.append(f"{gone:,} true values are missing and left out")
    if gone := int((np.isnan(sides.A[rows]) & there).sum()):
        notes.append(f"{gone:,} released values are missing: not disclosed")
    return IntervalDisclosure.of_chances(
        chance,
        baseline=baseline,
        attack=f"take the interval around the released value ({BY[by].format(100 * main)})",
        assumptions=notes,
        exact=exact,
        attacked=rows,
        width=main,
        by_variable={name: float(share) for name, share in zip(sides.columns, shares)},
        columns=sides.columns,
        inside=inside,
        _curve=_curve(variables, by, widths, there),
        _known=there,
    )


def _checked(width: Any, by: str, name: str) -> float:
    check({name: [Number(above=0, most=None if by == "sd" else 1)]}, {name: width})
    return float(width)


def _with_order(sides: AlignedTables, known: Any) -> AlignedTables:
    """Keep the variables that have an order."""
    if not sides.nominal.any():
        return sides
    named = ", ".join(repr(name) for name, is_ in zip(sides.columns, sides.nominal) if is_)
    if known is not None or sides.nominal.all():
        raise BadTableError(
            f"Intervals need numbers or ordered categories, and these variables have no order: "
            f"{named}. Leave them out of known=; homogeneity or prediction speaks of them."
        )
    kept = sides.select([name for name, is_ in zip(sides.columns, sides.nominal) if not is_])
    return replace(kept, notes=(*sides.notes, f"left out, having no order: {named}"))


class _Variable:
    """One variable of the attacked records, and the true values of everybody, sorted once."""

    def __init__(self, x: Floats, y: Floats, everybody: Floats) -> None:
        self.x, self.has = x, ~np.isnan(y)
        self.true = np.sort(everybody)  # NaN comes last
        self.true = self.true[: np.searchsorted(self.true, np.nan)]
        self.by_x = np.argsort(x)  # NaN comes last
        order = np.argsort(y)[: int(self.has.sum())]
        self.rank = np.zeros(len(y), dtype=np.int64)
        self.rank[order] = np.arange(len(order))
        self.sorted = y[order]
        self.first = np.searchsorted(self.sorted, self.sorted, side="left")
        self.last = np.searchsorted(self.sorted, self.sorted, side="right") - 1
        self.spread = float(np.std(self.sorted, ddof=1)) if len(order) > 1 else 0.0

    def ends(self, by: str, width: float) -> tuple[Floats, Floats]:
        """Return low and high ends for the released values in their order; both rise."""
        if by == "sd":
            return self.sorted - width * self.spread, self.sorted + width * self.spread
        if by == "original rank":
            reach, last = int(width * len(self.true) + 1e-9), len(self.true) - 1
            down = np.searchsorted(self.true, self.sorted, side="left") - 1 - reach
            up = np.searchsorted(self.true, self.sorted, side="right") + reach
            return (
                np.where(down < 0, -np.inf, self.true[np.maximum(down, 0)]),
                np.where(up > last, np.inf, self.true[np.minimum(up, last)]),
            )
        reach = int(np.floor(width * len(self.x) + 1e-9))
        top = len(self.sorted) - 1
        low = self.sorted[np.maximum(self.first - reach, 0)]
        return low, self.sorted[np.minimum(self.last + reach, top)]

    def count(self, by: str, width: float) -> tuple[Truths, Floats]:
        """Say which true values lie inside, and the chance of each by a shuffled release."""
        if not len(self.sorted) or not len(self.true):
            return np.zeros(len(self.x), dtype=bool), np.zeros(len(self.x))
        low, high = self.ends(by, width)
        inside = self.has & (low[self.rank] <= self.x) & (self.x <= high[self.rank])
        along = self.x[self.by_x]
        hits = np.searchsorted(low, along, side="right") - np.searchsorted(high, along, side="left")
        guessed = np.empty(len(self.x))
        guessed[self.by_x] = np.where(np.isnan(along), 0.0, hits / len(along))
        return inside, guessed


def _count(variables: Sequence[_Variable], by: str, width: float) -> tuple[Truths, Floats]:
    counted = [one.count(by, width) for one in variables]
    return np.column_stack([a for a, _ in counted]), np.column_stack([b for _, b in counted])


def _mean(cells: Floats, has: Integers) -> float:
    return float((cells.sum(axis=1) / np.maximum(has, 1)).mean())


def _guesses(X: Floats, Y: Floats, by: str, width: float) -> float:
    """Return the baseline over all records, from QUANTILES of each variable's released values."""
    found = known = 0.0
    for x, y in zip(X.T, Y.T):
        released = np.sort(y)[: int((~np.isnan(y)).sum())]
        quantiles = released[:: max(1, len(released) // QUANTILES)]
        some = _Variable(quantiles, quantiles, x)
        if not len(some.true) or not len(released):
            continue
        low, high = some.ends(by, width)
        hits = np.searchsorted(some.true, high, "right") - np.searchsorted(some.true, low, "left")
        found += float(hits.mean()) * len(released) / len(y)
        known += len(some.true)
    return found / max(known, 1.0)


def _curve(
    variables: Sequence[_Variable], by: str, widths: Sequence[float], there: Truths
) -> list[tuple[float, ...]]:
    has = there.sum(axis=1)
    lines: list[tuple[float, ...]] = []
    for width in widths:
        inside, guessed = _count(variables, by, _checked(width, by, "widths"))
        every = float((~there | inside).all(axis=1).mean())
        share = _mean(inside.astype(np.float64), has)
        lines.append((float(width), share, every, _mean(guessed, has)))
    return lines
