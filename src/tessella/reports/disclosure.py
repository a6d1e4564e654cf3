"""What a published figure discloses: which are withheld, and how far the others are rounded.

Who reads the report has the released table as well, and may know every other record of the
original. A figure of the original with many digits is then an equation for the last one.
"""

from __future__ import annotations

import math
from ast import literal_eval
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from token import NUMBER, STRING
from tokenize import generate_tokens
from typing import Any

import numpy as np

from .._types import Floats, Name
from ..exceptions import BadTableError
from ..parallel import each
from ..release import Study

DIGITS = 3  # of a published figure
FEW = 3  # records below which a count is not published
NEAR = 0.2  # no figure tells a record's part to within 20 %


def rounded(value: float | None, digits: int = DIGITS) -> float | None:
    """Return a figure with few digits, or None where there is none."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def is_small(count: float, n: int, few: int) -> bool:
    """Return whether a count of n records, or of the others, is above 0 and below `few`."""
    return 0 < round(count, 6) < few or 0 < round(n - count, 6) < few


def coarse(value: float, width: float) -> float:
    """Round to a multiple of 1, 2 or 5 times a power of ten: at least `width`, at most 3 digits.

    The step is a round number, so that its size tells `width` within a factor of 2.5 only.

    Examples
    --------
    >>> from tessella.reports.disclosure import coarse
    >>> coarse(12.3456, 0.0), coarse(12.3456, 0.3), coarse(0.0123, 0.3)
    (12.3, 12.5, 0.0)
    """
    return float(f"{_coarse(np.float64(value), width):.12g}") + 0.0


def _coarse(values: Any, width: float) -> Any:
    """Round an array as `coarse` does, but for the twelfth digit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        step = 10.0 ** (np.floor(np.log10(np.abs(values))) - DIGITS + 1)
        if width > 0:
            power = 10.0 ** math.floor(math.log10(width))
            round_number = next(m for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-12))
            step = np.where(width > step, power * round_number, step)
        return np.where(np.isfinite(values) & (values != 0), np.rint(values / step) * step, values)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What is published of a masked column of numbers, each figure with its rounding.

    `x` and `r` are the original and the released numbers, w their weights (1 if there are none).

    Notes
    -----
    *Change of the mean*: c = (m' - m) / abs(m'), where m' is known from the release. A value v that
    is rounded to a multiple of h tells c in [v - h/2, v + h/2], hence the original total

        T = W m' - W c abs(m')   in an interval of length   W h abs(m'),   W = sum of w.

    With h >= 2 NEAR max(w abs(x)) / (W abs(m')) that length is at least 2 NEAR max(w abs(x)): who
    knows all other records knows the last only within an interval of 2 NEAR = 40 % of the largest.

    *Deviation* q = s'/s and *loss* l = SSE/SST tell S = sum w (x - m)² and sum w (x - r)². With
    dS/S = -2 dq/q and dl/l = dSSE/SSE - dSST/SST, steps h of at least 2 NEAR q max(term)/S and
    2 NEAR l (max(e)/SSE + max(term)/SST) leave the largest term open by NEAR of itself.

    Several figures together tell more than one: `is_open` checks the outcome itself. It moves each
    record by NEAR/2 of itself and asks whether all published figures stay as they are. A record
    that moves by d moves the mean by w d/W, SSE by w d (2 (x - r) + d), and SST by
    w d (2 (x - m) + d) - (w d)²/W, so that all records take O(n).
    """

    x: Floats
    r: Floats
    w: Floats
    steps: tuple[float, float, float]

    @classmethod
    def of(cls, x: Floats, r: Floats, w: Floats) -> Figures | None:
        """Return figures with the finest rounding that leaves records open, or None."""
        mean, released = np.average(x, weights=w), np.average(r, weights=w)
        terms, errors = w * (x - mean) ** 2, w * (x - r) ** 2
        share = _largest(terms)
        raw = Figures(x=x, r=r, w=w, steps=(0.0, 0.0, 0.0))
        _, ratio, loss = (float(own[0]) for own in raw._moved(0.0))
        largest = float((w * np.abs(x)).max() / w.sum())
        widths = (
            2 * NEAR * largest / abs(released) if released else 0.0,
            2 * NEAR * ratio * share,
            2 * NEAR * loss * (_largest(errors) + share),
        )
        moved = [raw._moved(factor) for factor in (NEAR / 2, -NEAR / 2)]
        for wider in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0):
            found = Figures(x=x, r=r, w=w, steps=tuple(wider * h for h in widths))  # type: ignore[arg-type]
            if found.is_open(moved):
                return found
        return None

    def _moved(self, factor: float) -> tuple[Floats, Floats, Floats]:
        """Return the three figures if one record were larger by a factor; shape (1,) if by 0."""
        mean, released = np.average(self.x, weights=self.w), np.average(self.r, weights=self.w)
        total, after = ((self.w * own**2).sum() for own in (self.x - mean, self.r - released))
        errors = (self.w * (self.x - self.r) ** 2).sum()
        x, r, w = (own if factor else own[:1] for own in (self.x, self.r, self.w))
        by, more = factor * x, factor * x * w
        total = total + more * (2 * (x - mean) + by) - more**2 / self.w.sum()
        errors = errors + more * (2 * (x - r) + by)
        change = released - mean - more / self.w.sum()
        change = change / abs(released) if released else 0.0 * change
        change[np.abs(change) < 1e-11] = 0.0  # the order of summation
        total[total <= 0] = np.nan
        return change, np.sqrt(after / total), errors / total

    def published(self) -> tuple[float, ...]:
        """Return the change of the mean, the ratio of deviations and the loss, rounded."""
        exact = (float(own[0]) for own in self._moved(0.0))
        return tuple(coarse(own, width) for own, width in zip(exact, self.steps))

    @property
    def unit(self) -> float:
        """How far a record moves an average over records, at most, in standard deviations."""
        spread = math.sqrt(np.average((self.x - self.x.mean()) ** 2, weights=self.w))
        return float((self.w * np.abs(self.x)).max() / self.w.sum() / spread) if spread else 0.0

    def is_open(self, moved: Iterable[tuple[Floats, ...]]) -> bool:
        """Return whether each record could be larger or smaller, with figures `moved` by that."""
        shown = self.published()
        same = np.full(len(self.x), np.isnan(shown).any())
        for figures in moved:
            rounded = [_coarse(own, width) for own, width in zip(figures, self.steps)]
            pairs = zip(rounded, shown)
            same |= np.all([np.isclose(own, one, rtol=1e-9, atol=0) for own, one in pairs], axis=0)
        return bool((same | (self.x == 0)).all())


def _largest(terms: Floats) -> float:
    total = float(terms.sum())
    return float(terms.max()) / total if total > 0 else 0.0


class Extremes:
    """The smallest and largest values of original columns, where few records have them.

    A rule or a threshold that names one was read off the data, or will be taken for it. Zero is not
    meant: a bound by zero is about signs.
    """

    def __init__(self, study: Study, few: int) -> None:
        self._view, self._few = study.replay(()).views[0], few
        self._known: dict[Name, set[float | str]] = {}

    def of(self, column: Name) -> set[float | str]:
        """Return the confidential ends of a column: numbers, or dates as text."""
        if column not in self._known:
            self._known[column] = set()
            if self._view.table.has(column):
                self._known[column] = set(self._ends(column))
        return self._known[column]

    def of_intervals(self, column: Name) -> set[float | str]:
        """Return the same where intervals cut a column, also one of numbers that are categories."""
        known = self._view.table.has(column) and self._view.table.facts(column).numeric
        return {*self.of(column), *(self._numbers(column) if known else ())}

    def _ends(self, column: Name) -> Iterator[float | str]:
        if self._view.is_number(column):
            yield from self._numbers(column)
        elif self._view.table.facts(column).family in ("date", "datetime"):
            place, texts = self._view.labels(column)
            counts = np.bincount(place[place >= 0], minlength=len(texts))
            for day in {min(texts), max(texts)} if texts else ():
                if counts[list(texts).index(day)] < self._few:
                    yield day

    def _numbers(self, column: Name) -> Iterator[float]:
        with suppress(BadTableError):  # infinity, or too many digits
            numbers = self._view.numbers(column)
            seen = numbers[~np.isnan(numbers)]
            for end in {float(seen.min()), float(seen.max())} - {0.0} if len(seen) else ():
                if (seen == end).sum() < self._few:
                    yield end

    def without(self, text: str, columns: Iterable[Name]) -> str:
        """Return the text of a rule with … for each constant that is an end of its columns."""
        ends = set().union(*(self.of(column) for column in columns))
        if not ends:
            return text
        lines = [list(line) for line in text.split("\n")]
        for token in reversed(list(generate_tokens(StringIO(text).readline))):
            row, start, end = token.start[0] - 1, token.start[1], token.end[1]
            if token.type == NUMBER:
                number = float(literal_eval(token.string))
                told = bool({number, -number} & ends)
            else:
                dates = [str(one) for one in ends if isinstance(one, str)]
                value = literal_eval(token.string) if token.type == STRING else ""
                told = bool(value) and any(date.startswith(value) for date in dates)
            if told:
                lines[row][start:end] = "…"
        return "\n".join(map("".join, lines))


def find_figures(study: Study) -> dict[Name, Figures | None]:
    """Return the figures of each masked column of numbers; None where none may be published.

    Notes
    -----
    The change of the mean, the loss and the deviation tell the sums of |x - r|, (x - r)² and
    (x - mean)². Where the largest term s1 of such a sum S and the second s2 leave less than 20 %
    of s1, whoever contributed s2 works s1 out that closely (the p% rule of tabular data): a single
    firm can be most of a column's variation.

    References
    ----------
    L. Willenborg, T. de Waal (2001). Elements of Statistical Disclosure Control. Springer.
    """
    before, after = study.views
    weights = before.weights()
    columns: dict[Name, tuple[Floats, Floats, Floats]] = {}
    for name in study.masked:
        numeric = all(view.table.facts(name).numeric for view in (before, after))
        if not numeric or study.schema[name].kind == "nominal":
            continue
        x, r = before.numbers(name), after.numbers(name)
        w = np.ones(len(x)) if weights is None else weights
        if before.any_missing(name) or after.any_missing(name):
            seen = ~(np.isnan(x) | np.isnan(r))
            x, r, w = x[seen], r[seen], w[seen]
        if len(x) and w.sum() > 0:
            columns[name] = x, r, w

    def find(column: tuple[Floats, Floats, Floats]) -> Figures | None:
        x, r, _ = column
        sums = (np.abs(x - r), (x - r) ** 2, (x - x.mean()) ** 2)
        return None if any(map(_dominates, sums)) else Figures.of(*column)

    return dict(zip(columns, each(find, columns.values())))


def _dominates(terms: Any) -> bool:
    """Return whether who knows the second largest term can work out the largest from the sum."""
    if len(terms) < FEW:
        return bool(terms.any())
    two = np.partition(terms, -2)[-2:]
    largest = float(two.max())
    return largest > 0 and float(terms.sum() - two.sum()) < NEAR * largest
