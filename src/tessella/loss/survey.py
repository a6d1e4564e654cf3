"""Estimates of a survey with their sampling errors, by linearisation, before and after masking.

What they give has figures of the original, and is as confidential as that.

An estimate is a function of weighted sums; its *influence* z_i is how fast it moves with the weight
of record i (Deville 1999). Its variance is that of the total of w_i z_i. Under sampling of units
with replacement within strata, with t_u the sum of w_i z_i over the records of unit u,

    V = sum over strata h of  n_h / (n_h - 1)  sum over units u of h of  (t_u - mean of h)^2.

There is no correction for finite populations: where a large part of the population is in the
sample, the error is less. Weights count as fixed; calibration would make the error smaller.

`Amounts` are incomes and the like. Their figures need no order of ties: they are the same however
records with one value are sorted.

References
----------
J.-C. Deville (1999). Variance estimation for complex statistics and estimators: linearization and
residual techniques. Survey Methodology 25(2), 193-203.
M. Langel and Y. Tillé (2013). Variance estimation of the Gini index: revisiting a result several
times published. Journal of the Royal Statistical Society A 176(2), 521-540.
M. Langel and Y. Tillé (2011). Statistical inference for the quintile share ratio. Journal of
Statistical Planning and Inference 141(8), 2976-2985.
G. Osier (2009). Variance estimation for complex indicators of poverty and inequality using
linearization techniques. Survey Research Methods 3(3), 167-195.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .._notebook import COMPARED, Display, Displayed, Section
from .._types import Floats, Integers, Name
from ..frame import group_ids

if TYPE_CHECKING:
    import pandas as pd

POOR = 0.6  # of the median: Eurostat's threshold
SHOWN = 20  # estimates that a printed result lists
NAMED = 3  # estimates that a sentence names
SOURCE = (
    "J.-C. Deville (1999). Variance estimation for complex statistics and estimators: "
    "linearization and residual techniques. Survey Methodology 25(2), 193-203"
)


def sum_by(place: Integers, values: Floats, n: int) -> Floats:
    """Add values up by place, from 0 to n - 1."""
    found: Floats = np.bincount(place, weights=values, minlength=n).astype(np.float64, copy=False)
    return found


class Design:
    """How records were sampled: their weights, the units they belong to, and the units' strata.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        How many each record stands for.
    units, strata : ndarray of shape (n,), optional
        The unit and the stratum of each record, numbered from 0; otherwise each record is a unit,
        and all are in one stratum. Records of one unit in two strata are two units.
    """

    def __init__(
        self, weights: Floats, units: Integers | None = None, strata: Integers | None = None
    ) -> None:
        self.weights, self.units = weights, units
        if units is not None and strata is not None:
            self.units = group_ids([strata, units])
        self.n_units = len(weights) if self.units is None else int(self.units.max()) + 1
        self.stratum = np.zeros(self.n_units, dtype=np.int64)
        if strata is not None:
            self.stratum[np.arange(len(weights)) if self.units is None else self.units] = strata
        size = np.bincount(self.stratum)
        self.size = np.maximum(size, 1)
        # A stratum of one unit shows no spread of its own: its unit counts around the mean of all.
        self.factor = np.where(size > 1, size / np.maximum(size - 1, 1), 1.0)
        self.lone = size == 1

    def error(self, influence: Floats) -> float:
        """Return the standard error of an estimate with this influence of each record."""
        totals = self._by_unit(self.weights * influence)
        peak = float(np.abs(totals).max())
        if not peak > 0:
            return 0.0
        totals = totals / peak  # whose squares do not overflow
        means = sum_by(self.stratum, totals, len(self.size)) / self.size
        means[self.lone] = totals.mean() if self.n_units > 1 else 0.0
        squares = sum_by(self.stratum, (totals - means[self.stratum]) ** 2, len(self.size))
        return peak * float(np.sqrt(squares @ self.factor))

    def _by_unit(self, values: Floats) -> Floats:
        return values if self.units is None else sum_by(self.units, values, self.n_units)

    def domains(self, codes: Integers, n_domains: int) -> Domains:
        """Return the records by domain, `codes` from 0, -1 for those in none."""
        return Domains(self, codes.astype(np.int64), n_domains)


class Domains:
    """Parts of a table, such as its categories: sums and errors of all of them at a time.

    A *cell* is what one unit has in one domain. Sums over strata and domains have the shape
    (strata, domains).
    """

    def __init__(self, design: Design, codes: Integers, n_domains: int) -> None:
        self.design, self.n = design, n_domains
        self.rows = np.flatnonzero(codes >= 0)
        self.codes = codes[self.rows]
        self.weights = design.weights[self.rows]
        self.size = np.bincount(self.codes, minlength=n_domains)
        if design.units is None:
            self.cell, unit, self.domain = None, self.rows, self.codes
        else:
            keys = design.units[self.rows] * n_domains + self.codes
            distinct, self.cell = np.unique(keys, return_inverse=True)
            unit, self.domain = np.divmod(distinct, n_domains)
        self.unit = unit
        self.place = design.stratum[unit] * n_domains + self.domain

    def sums(self, values: Floats) -> Floats:
        """Return the weighted sum of values, one for each record of `rows`, in each domain."""
        return sum_by(self.codes, self.weights * values, self.n)

    def _over_strata(self, values: Floats) -> Floats:
        strata = len(self.design.size)
        return sum_by(self.place, values, strata * self.n).reshape(strata, self.n)

    def _cells(self, values: Floats) -> Floats:
        return values if self.cell is None else sum_by(self.cell, values, len(self.domain))

    def _errors(self, squares: Floats, sums: Floats) -> Floats:
        """Return errors from sums over the units of a stratum; the influence sums to 0 over all."""
        design = self.design
        centred = np.where(design.lone[:, None], 0.0, sums**2 / design.size[:, None])
        errors: Floats = np.sqrt(np.maximum(design.factor @ (squares - centred), 0.0))
        return errors

    def means(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the mean of known values, NaN where missing, in each domain, and its error."""
        known = ~np.isnan(values)
        filled = np.where(known, values, 0.0)
        peak = float(np.abs(filled).max(initial=0.0)) or 1.0
        filled /= peak  # whose squares do not overflow
        total = self.sums(known.astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            means = self.sums(filled) / total
            influence = np.where(known, filled - means[self.codes], 0.0) / total[self.codes]
        own = self._cells(self.weights * np.nan_to_num(influence))
        errors = self._errors(self._over_strata(own**2), self._over_strata(own))
        return peak * means, peak * np.where(total > 0, errors, np.nan)

    def shares(self) -> tuple[Floats, Floats]:
        """Return the share of each domain in those that are in one, and its error.

        The influence of the share p is (1 - p) / W in the domain and -p / W in the others. With t
        what a unit has in the domain and T in all, (t - p T)^2 is summed term by term, so that no
        unit without a record in the domain is visited.
        """
        inside = self._cells(self.weights)
        everything = sum_by(self.unit, inside, self.design.n_units)
        whole = everything.sum()
        shares = sum_by(self.domain, inside, self.n) / whole
        stratum, strata = self.design.stratum, len(self.design.size)
        all_squares = sum_by(stratum, everything**2, strata)[:, None]
        squares = self._over_strata(inside**2) - 2 * shares * self._over_strata(
            inside * everything[self.unit]
        )
        squares += shares**2 * all_squares
        sums = self._over_strata(inside) - shares * sum_by(stratum, everything, strata)[:, None]
        return shares, self._errors(np.maximum(squares, 0.0), sums) / whole


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


@dataclass(frozen=True, kw_only=True)
class SurveyEstimate:
    """One estimate from the original and from the masked table; confidential.

    `of` is the category of a share and the denominator of a ratio, `within` a column and its
    category where the estimate is about the records of that category, `n` how many of the original
    it is based on, and `error` the sampling error of `before`.
    """

    kind: str
    column: Name
    of: str = ""
    within: tuple[Name, str] | None = None
    n: int
    before: float
    after: float
    error: float

    @property
    def name(self) -> str:
        """The estimate in words."""
        beside = {"share": f" = {self.of}", "ratio": f" to {self.of}"}.get(self.kind, "")
        where = "" if self.within is None else " where {} = {}".format(*self.within)
        return f"{self.kind} of {self.column}{beside}{where}"

    @property
    def difference(self) -> float:
        """The masking error: the masked table's estimate less the original's; 0 if rounding."""
        apart = self.after - self.before
        return apart if abs(apart) > 1e-12 * max(abs(self.before), abs(self.after)) else 0.0

    @property
    def ratio(self) -> float:
        """The size of the masking error over the sampling error; infinite where that is 0."""
        if not self.difference:
            return 0.0
        return abs(self.difference) / self.error if self.error > 0 else math.inf

    @property
    def moved(self) -> bool:
        """Whether masking moved the estimate by more than its sampling error."""
        return self.ratio > 1 + 1e-9

    def to_dict(self) -> dict[str, Any]:
        """Return plain texts and numbers; a ratio without limit is None."""
        return {
            "name": self.name,
            "kind": self.kind,
            "column": str(self.column),
            "of": self.of,
            "within": None if self.within is None else [str(part) for part in self.within],
            "n": self.n,
            "before": self.before,
            "after": self.after,
            "masking_error": self.difference,
            "sampling_error": self.error,
            "ratio": self.ratio if math.isfinite(self.ratio) else None,
            "moved": self.moved,
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class EstimateLoss(Displayed):
    """Estimates before and after masking, those first that moved most for their sampling error.

    Attributes
    ----------
    estimates : tuple of SurveyEstimate
        Totals, means, shares, ratios, and figures of inequality and poverty of all records.
    within : tuple of SurveyEstimate
        Means within categories, where they were asked for.
    notes : tuple of str
        What was left out, and why.
    """

    estimates: tuple[SurveyEstimate, ...]
    within: tuple[SurveyEstimate, ...] = ()
    notes: tuple[str, ...] = ()
    name: str = "estimates"
    formula: str = (
        "the share of estimates that differ by more than one sampling error of the original's"
    )
    source: str = SOURCE
    range: tuple[float, float] = (0.0, 1.0)

    @property
    def moved(self) -> tuple[SurveyEstimate, ...]:
        """The estimates of all records that moved by more than their sampling error."""
        return tuple(one for one in self.estimates if one.moved)

    @property
    def value(self) -> float:
        """The share of estimates that moved by more than their sampling error."""
        return len(self.moved) / len(self.estimates) if self.estimates else 0.0

    @property
    def by_column(self) -> Mapping[Name, float]:
        """The largest ratio of masking to sampling error of each column's estimates."""
        found: dict[Name, float] = {}
        for one in self.estimates:
            found[one.column] = max(found.get(one.column, 0.0), one.ratio)
        return MappingProxyType(found)

    @property
    def verdict(self) -> str:
        """How many estimates moved by more than their sampling error: kinds and columns only."""
        n, moved = len(self.estimates), self.moved
        if not n:
            return "no estimate could be compared"
        if not moved:
            return f"all {n:,} estimates stayed within their sampling errors"
        what = [f"{'a ' * (one.kind == 'share')}{one.kind} of {one.column}" for one in moved]
        names = list(dict.fromkeys(what))
        more, whose = len(names) - NAMED, "its" if len(moved) == 1 else "their"
        return (
            f"of {n:,} estimates {len(moved):,} moved by more than {whose} sampling error: "
            + ", ".join(names[:NAMED])
            + (f" and {more:,} more" if more > 0 else "")
        )

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        return f"{self.verdict[0].upper()}{self.verdict[1:]}."

    def _rows(self) -> list[list[str]]:
        rows = [["", "before", "after", "masking", "sampling", "ratio"]]
        for one in self.estimates[:SHOWN]:
            figures = [f"{x:.5g}" for x in (one.before, one.after, one.difference)]
            rows.append([one.name, *figures, *(f"{x:.3g}" for x in (one.error, one.ratio))])
        return rows

    @property
    def _more(self) -> list[str]:
        left = len(self.estimates) - SHOWN
        return [f"... and {left:,} that moved less"] if left > 0 else []

    def _display(self) -> Display:
        return Display(
            title="Estimates beside their sampling errors",
            verdict=[self.sentence],
            sections=[
                Section(rows=self._rows(), more=self._more, texts=(0,)),
                *([Section(title="Notes", lines=self.notes)] if self.notes else []),
            ],
            confidential=COMPARED,
        )

    def __str__(self) -> str:
        lines = [f"Estimates beside their sampling errors: {self.verdict}."]
        if self.estimates:
            width = max(len(one.name) for one in self.estimates[:SHOWN])
            for name, *figures in self._rows():
                lines.append(f"  {name.ljust(width)}" + "".join(f"  {x:>11}" for x in figures))
        lines += [f"  {line}" for line in self._more]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers."""
        return {
            "name": self.name, "value": self.value, "verdict": self.verdict,
            "formula": self.formula, "source": self.source, "range": list(self.range),
            "estimates": [one.to_dict() for one in self.estimates],
            "within": [one.to_dict() for one in self.within],
            "notes": list(self.notes),
        }  # fmt: skip

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row for each estimate, those within categories last."""
        import pandas as pd

        return pd.DataFrame([one.to_dict() for one in (*self.estimates, *self.within)])
