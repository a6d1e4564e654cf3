"""What the values of a column tell: how unique they are, and whether they are numbers or codes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from .._types import Floats, Integers
from ..exceptions import BadTableError
from ..frame import Facts, Table, View

ENOUGH = 50  # records; in fewer, a few distinct values say nothing about codes
FEW = 12  # distinct whole numbers of a column of codes, or of counts
SCATTERED = 25  # distinct whole numbers with gaps, each in 20 records: codes of a longer list
TAIL = 0.02  # share of records in the tail of a distribution
UNIQUE = 0.9  # share of records with a value of their own, above which a column is nearly unique
UNMASKED = 0.5  # the same share of a column that is released as it is, above which it is refused
LOOKED_AT = 500  # texts whose form is compared
MATCHING = 0.8  # share of them that must have it

# Special codes that surveys use: 77, 88 and 99, 97 and 98, with more digits, or negative.
_ALIKE = {sign * (10**digits - 1) // 9 for sign in (7, 8, 9) for digits in range(1, 9)}
_LAST = {10**digits - less for digits in range(2, 9) for less in (1, 2, 3, 4)}
_LOW = {-code for code in _ALIKE | _LAST}
_HIGH = {code for code in _ALIKE | _LAST if code > 9}

_FORMS = {
    "email addresses": r"[^@\s]+@[^@\s]+\.[^@\s]+",
    "IBANs": r"[A-Z]{2}\d{2} ?(?:[A-Z0-9]{4} ?){2,7}[A-Z0-9]{0,4}",
    "IP addresses": r"(?:\d{1,3}\.){3}\d{1,3}|(?:[0-9A-Fa-f]{0,4}:){3,7}[0-9A-Fa-f]{0,4}",
    "hardware addresses": r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}",
    "national identity numbers": r"\d{3}-\d{2}-\d{4}|[XYZ]?\d{7,8}-?[A-Z]",
    "coordinates": r"(?:POINT ?)?\(?[-+]?\d{1,3}\.\d{3,}°?[NS]?[,; ]\s*"
    r"[-+]?\d{1,3}\.\d{3,}°?[EW]?\)?",
    "telephone numbers": r"(?=(?:\D*\d){7,15}\D*$)(?:\+|00?|\()[\d\s()./-]{6,22}",
}
_PERSON = re.compile(
    r"[^\W\d_a-z][\w.'’-]*,?(?: (?:d[aeiu]|de la|van|von|el|al|ben))*(?: [^\W\d_a-z][\w.'’-]*){1,3}"
)


@dataclass(frozen=True, eq=False)
class Values:
    """What a guess looks at: distinct values with their counts, and the numbers in file order.

    `numbers` has no missing cells; it is None where the column holds none, or more digits than
    float64. `distinct` has the numbers, rising, or the texts; `counts` how many records have each.
    """

    n_rows: int
    n: int
    counts: Integers
    numbers: Floats | None = None
    levels: Floats | None = None
    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table, facts: Facts, missing: tuple[Any, ...] = ()) -> Values:
        """Read a column once: numbers as float64, anything else as labels."""
        if facts.numeric:
            try:
                read = View(table, _Codes(missing) if missing else None).numbers(facts.name)
            except BadTableError:  # too many digits, or infinity: the guess says so
                pass
            else:
                numbers = read[~np.isnan(read)]
                levels, counts = np.unique(numbers, return_counts=True)
                return cls(table.n_rows, len(numbers), counts, numbers, levels)
        try:
            place, labels = table.labels(facts.name)
        except BadTableError:  # lists and other things without equality
            ones = np.ones(table.n_rows, dtype=np.int64)
            return cls(table.n_rows, table.n_rows, ones)
        gone = {at for at, label in enumerate(labels) if label in missing}
        seen = place[(place >= 0) & ~np.isin(place, list(gone))]
        counts = np.bincount(seen, minlength=len(labels))
        texts = tuple(label for label, count in zip(labels, counts) if count)
        return cls(table.n_rows, len(seen), counts[counts > 0], texts=texts)

    @property
    def distinct(self) -> int:
        """The number of distinct values."""
        return len(self.counts)

    @property
    def own(self) -> float:
        """The share of records that have a value which no other record has."""
        return float((self.counts == 1).sum()) / max(self.n, 1)

    @cached_property
    def whole(self) -> bool:
        """Whether there are numbers, and all are whole."""
        levels = self.levels
        return levels is not None and len(levels) > 0 and bool((levels == np.rint(levels)).all())

    @property
    def nearly_unique(self) -> bool:
        """Whether most records have a value of their own."""
        return self.n > 9 and self.own >= UNIQUE

    # Identifiers

    def why_numbered(self) -> str:
        """Return why whole numbers number the records, or "".

        A measured number repeats by chance: n values on a range of R whole numbers have at least
        n (n - 1) / 2R equal pairs, the fewest if all are as likely. Numbers that were given out
        have none, and are spread evenly, or rise with the records. An amount that happens to be
        unique has a density that falls: the distance from an even spread tells them apart.
        """
        if not self.whole or self.levels is None or self.numbers is None or self.n < 10:
            return ""
        width = float(np.ptp(self.levels))
        if self.n_rows == self.distinct and width < 1.5 * self.n_rows and not self.are_years:
            return "one number for each record, close together"
        if not self.nearly_unique:
            return ""
        if self.levels[0] >= 10**8 and len(str(int(self.levels[0]))) == len(
            str(int(self.levels[-1]))
        ):
            return "nearly unique numbers of the same many digits"
        even = (self.levels - self.levels[0]) / max(width, 1.0)
        apart = float(np.abs(even - np.linspace(0, 1, self.distinct)).max())
        steps = np.diff(self.numbers)
        rising = self.distinct == self.n and ((steps > 0).all() or (steps < 0).all())
        if rising and self.n >= ENOUGH and apart < 0.15:
            return "unique whole numbers that rise with the records"
        pairs = float((self.counts * (self.counts - 1.0)).sum()) / 2
        expected = self.n * (self.n - 1.0) / 2 / (width + 1)
        if expected >= 10 and pairs <= expected / 10 and apart < 0.1:
            return "whole numbers that repeat less than by chance"
        return ""

    @property
    def are_years(self) -> bool:
        """Whether all numbers are years of our time."""
        levels = self.levels
        return levels is not None and len(levels) > 0 and 1850 <= levels[0] <= levels[-1] <= 2100

    @cached_property
    def form(self) -> str:
        """The form that most texts have: "email addresses", "names of people", ..., or ""."""
        looked = self.texts[:LOOKED_AT]
        for form, pattern in _FORMS.items():
            if looked and _share(re.compile(pattern), looked) >= MATCHING:
                return form
        many = self.distinct >= 20 and self.distinct > 0.3 * self.n
        many = many and len(looked) > 0  # lists and objects have no text
        return "names of people" if many and _share(_PERSON, looked) >= MATCHING else ""

    @property
    def within(self) -> float:
        """The largest absolute number."""
        return float(np.abs(self.levels).max()) if self.levels is not None and self.n else np.inf

    # Codes

    @cached_property
    def codes(self) -> tuple[float, ...]:
        """Special codes: a heap apart from the ordinary values, such as 97, 98, -9.

        A code below is negative beside values that are not; one above is at a distance from the
        ordinary values that they do not have among themselves (their five largest), and more
        common than they are, or further away. A record or two make no code.
        """
        levels, counts = self.levels, self.counts
        if levels is None or len(levels) < 3:
            return ()
        low = 0
        while low < len(levels) and levels[low] < 0 and float(levels[low]) in _LOW:
            low += 1
        found = list(levels[:low]) if 0 < low < len(levels) and levels[low] >= 0 else []
        low = len(found)
        high = len(levels)
        while high > low and float(levels[high - 1]) in _HIGH:
            high -= 1
        if high < len(levels) and high - low >= 2:
            top = slice(max(low, high - 5), high)
            step = max(float(np.diff(levels[top]).max()), 1.0)
            gap = float(levels[high] - levels[high - 1])
            count, usual = counts[high:].max(), counts[top].max()
            heap = count >= usual + 5 * np.sqrt(usual + 1)  # five standard errors
            few = self.n >= 20 and 2 * counts[high:].sum() < self.n  # codes are not the most
            if few and count >= 3 and (gap > 10 * step or (gap > 2 * step and heap)):
                found += list(levels[high:])
        apart = np.isin(levels, found)
        common = apart.any() and counts[apart].max() > 1
        return tuple(float(code) for code in found) if common else ()

    @cached_property
    def ordinary(self) -> Floats:
        """The distinct numbers without special codes, in steps of their greatest common divisor."""
        assert self.levels is not None
        levels = self.levels[~np.isin(self.levels, self.codes)]
        step = np.gcd.reduce(np.diff(levels).astype(np.int64)) if len(levels) > 1 else 1
        return levels / max(int(step), 1)

    @property
    def has_gaps(self) -> bool:
        """Whether whole numbers between the ordinary ones do not occur.

        A gap in a thin tail is none: one family of eleven beside many of up to nine.
        """
        assert self.levels is not None
        counts = self.counts[~np.isin(self.levels, self.codes)]
        below = np.cumsum(counts)[:-1] / max(int(counts.sum()), 1)
        return bool((np.diff(self.ordinary)[np.minimum(below, 1 - below) > TAIL] > 1).any())

    @property
    def few(self) -> bool:
        """Whether there are as few distinct whole numbers as a list of codes has."""
        if not self.whole or self.n < ENOUGH or self.within > 2**53:
            return False
        count = len(self.ordinary)
        return count <= min(FEW, self.n // 5) or (
            self.has_gaps and count <= min(SCATTERED, self.n // 20) and not self.codes
        )

    @property
    def one_peak(self) -> bool:
        """Whether counts rise to one value and fall from it, roughly.

        Counts of things and ordered answers do; codes of a list in any order mostly do not. A value
        may be half as common again as the one before it, and two standard errors more.
        """
        counts = self.counts.astype(np.float64)
        peak = int(counts.argmax())
        falling = (*pairwise(counts[peak:]), *pairwise(counts[peak::-1]))
        return all(b <= 1.5 * a + 2 * np.sqrt(a + b) for a, b in falling)


@dataclass(frozen=True)
class _Codes:
    """A schema of missing codes alone, as a view reads it."""

    missing: tuple[Any, ...]
    kind: str = "continuous"
    role: str = "quasi-identifier"
    guessed: bool = True

    def __getitem__(self, name: object) -> _Codes:
        return self

    def names(self, *roles: Any) -> list[Any]:  # noqa: ARG002
        return []


def _share(pattern: re.Pattern[str], texts: tuple[str, ...]) -> float:
    return sum(bool(pattern.fullmatch(text.strip())) for text in texts) / len(texts)
