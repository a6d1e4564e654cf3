"""How a file writes its numbers: which sign before the decimals, which between thousands.

Decided from every cell of the file. "1,5" can only be a decimal comma and "1,234,567" only
thousands; "1,234" alone can be both, and is not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .._types import Integers
from ..exceptions import BadFileError, BadOptionError
from ..kernels import numerals as forms
from .source import Statement

__all__ = ["FormCounts", "NumberFormat", "find_number_format"]


_SIGNS = forms.SEPARATORS
_NAMED = {
    ".": "point",
    ",": "comma",
    " ": "space",
    "'": "apostrophe",
    "\u00a0": "no-break space",
    "\u202f": "narrow no-break space",
}
_NUMBERS = [
    form
    for form in range(forms.SPACED)
    if form in (forms.WHOLE, forms.INFINITE) or form >= forms.POINT
]


@dataclass(frozen=True, kw_only=True)
class FormCounts:
    """How the texts of a column form: how many of each form, and the first row of each."""

    name: str
    counts: Integers
    firsts: Integers

    def n(self, *which: int) -> int:
        """Count the texts of these forms."""
        return int(self.counts[list(which)].sum())

    def first(self, *which: int) -> int:
        """Return the first row that has one of these forms, or -1."""
        rows = [int(self.firsts[form]) for form in which if self.firsts[form] >= 0]
        return min(rows, default=-1)

    @property
    def filled(self) -> int:
        """The number of texts that are not empty and no usual word for "missing"."""
        return int(self.counts[: forms.SPACED].sum()) - self.n(forms.EMPTY, forms.TOKEN)

    @property
    def coded(self) -> bool:
        """Whether every text is grouped as 12.345.678 or 600 123 456: numbers of somebody, perhaps.

        Amounts would have some below a thousand, or with decimals.
        """
        spaced = [forms.GROUPS + place for place, sign in enumerate(_SIGNS) if sign != ","]
        return 0 < self.filled == self.n(*spaced)

    @property
    def numeric(self) -> bool:
        """Whether each of them is a number by some format, and none a code as 007."""
        return 0 < self.filled == self.n(*_NUMBERS)


@dataclass(frozen=True)
class NumberFormat:
    """The signs before decimals and between thousands; the latter may be empty.

    `given` says that somebody named the sign between thousands.
    """

    decimal: str = "."
    thousands: str = ""
    given: bool = False

    @property
    def whole(self) -> tuple[int, ...]:
        """Forms of whole numbers."""
        found = [forms.WHOLE]
        if self.thousands:
            found.append(forms.GROUPS + _SIGNS.index(self.thousands))
            if self.thousands in ".,":
                found.append(forms.POINT_OR_GROUP + _SIGNS.index(self.thousands))
        return tuple(found)

    @property
    def broken(self) -> tuple[int, ...]:
        """Forms of numbers with decimals or a power of ten, and infinity."""
        sign = _SIGNS.index(self.decimal)
        found = [forms.POINT + sign, forms.POINT_OR_GROUP + sign]
        found += [forms.POWER, forms.POWER_POINT + sign, forms.INFINITE]
        if self.thousands:
            base = (forms.GROUPS_POINT, forms.GROUPS_COMMA)[sign]
            found.append(base + _SIGNS.index(self.thousands))
        return tuple(found)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Forms of all numbers."""
        return self.whole + self.broken


def _decimals(sign: str) -> list[int]:
    """Forms that only a decimal sign explains."""
    place = _SIGNS.index(sign)
    base = (forms.GROUPS_POINT, forms.GROUPS_COMMA)[place]
    return [forms.POINT + place, forms.POWER_POINT + place, *range(base, base + len(_SIGNS))]


def _grouped(sign: str) -> list[int]:
    """Forms that only this sign between thousands explains."""
    place = _SIGNS.index(sign)
    return [base + place for base in (forms.GROUPS, forms.GROUPS_POINT, forms.GROUPS_COMMA)]


@dataclass(frozen=True)
class _Evidence:
    path: Path
    columns: list[FormCounts]
    line_of: Callable[[int], int]

    def first(self, which: Iterable[int]) -> tuple[str, int] | None:
        """Return the first column, and its row, in which one of these forms occurs."""
        which = list(which)
        for column in self.columns:
            if column.n(*which):
                return column.name, column.first(*which)
        return None

    def line(self, place: tuple[str, int]) -> int:
        return self.line_of(place[1])


def find_number_format(
    path: Path,
    columns: Iterable[FormCounts],
    line_of: Callable[[int], int],
    *,
    decimal: str | None,
    thousands: str | None,
    delimiter: str,
) -> tuple[NumberFormat, list[Statement]]:
    """Decide from the columns of numbers how numbers are written, or say why that is open.

    `line_of` gives the line of a row.
    """
    _check_options(decimal, thousands)
    asked = thousands is not None
    telling = [column for column in columns if column.numeric and (asked or not column.coded)]
    seen = _Evidence(path, telling, line_of)
    point, comma = seen.first(_decimals(".")), seen.first(_decimals(","))
    if decimal is not None:
        why = "given"
    elif point and comma:
        raise BadFileError(
            path,
            f"column {comma[0]!r} has a decimal comma there, and column {point[0]!r} a decimal "
            f"point in line {seen.line(point)}",
            "Give decimal='.' or decimal=',': columns written otherwise are then read as text",
            line=seen.line(comma),
        )
    elif point or comma:
        place = point or comma
        assert place is not None
        decimal = "." if point else ","
        why = f"column {place[0]!r}, line {seen.line(place)}"
    else:
        decimal, why = _without_decimals(seen, thousands, delimiter)
    if thousands is None:
        thousands, because = _find_thousands(seen, decimal)
    else:
        because = "given"
    statements = [Statement("decimal sign", _NAMED[decimal], why)]
    statements.append(Statement("thousands", _NAMED.get(thousands, "not separated"), because))
    return NumberFormat(decimal, thousands, given=asked), statements


def _check_options(decimal: str | None, thousands: str | None) -> None:
    if decimal not in (None, ".", ","):
        raise BadOptionError("decimal", decimal, "'.' or ','")
    if thousands not in (None, "", *_SIGNS):
        raise BadOptionError("thousands", thousands, "'' for none, or one of '.', ',', ' ', \"'\"")
    if decimal is not None and decimal == thousands:
        raise BadOptionError("thousands", thousands, "another sign than decimal")


def _without_decimals(seen: _Evidence, thousands: str | None, delimiter: str) -> tuple[str, str]:
    """Decide the decimal sign where no number surely has one."""
    if thousands in (".", ","):
        return ("." if thousands == "," else ","), "the other sign separates thousands"
    maybe = {sign: seen.first([forms.POINT_OR_GROUP + place]) for place, sign in enumerate(".,")}
    surely = {sign: seen.first(_grouped(sign)) for sign in ".,"}
    if surely["."] and surely[","]:
        raise _unclear(seen, surely[","], "thousands are separated by points here, commas there")
    for sign, other in ((",", "."), (".", ",")):
        if surely[sign]:
            return other, f"a {_NAMED[sign]} separates thousands"
    if thousands is None or thousands == "":
        if maybe[","] and (maybe["."] or thousands is None):
            raise _unclear(seen, maybe[","], "1,234 may be a thousand or a little more than one")
        if maybe[","]:
            return ",", "thousands are not separated, as given"
        if maybe["."] and delimiter == ";" and thousands is None:
            raise _unclear(seen, maybe["."], "1.234 may be a thousand or a little more than one")
    if maybe["."]:
        column, row = maybe["."]
        return ".", (
            f"column {column!r}, line {seen.line((column, row))}, looks like 1.234; if that means "
            "thousands, give thousands='.'"
        )
    return ".", "no number has decimals"


def _unclear(seen: _Evidence, place: tuple[str, int] | None, problem: str) -> BadFileError:
    assert place is not None
    return BadFileError(
        seen.path,
        f"in the numbers of column {place[0]!r}, {problem}, and no other number of the file tells",
        "Give decimal=',' or decimal='.'",
        line=seen.line(place),
    )


def _find_thousands(seen: _Evidence, decimal: str) -> tuple[str, str]:
    found: dict[str, tuple[str, int]] = {}
    for place, sign in enumerate(_SIGNS):
        if sign == decimal:
            continue
        which = _grouped(sign)
        if sign in ".,":
            which.append(forms.POINT_OR_GROUP + place)
        if where := seen.first(which):
            found[sign] = where
    if len(found) > 1:
        (sign, where), (other, there) = list(found.items())[:2]
        raise BadFileError(
            seen.path,
            f"thousands are separated by a {_NAMED[sign]} in column {where[0]!r} there, and by a "
            f"{_NAMED[other]} in column {there[0]!r}, line {seen.line(there)}",
            "Give thousands=: columns written otherwise are then read as text",
            line=seen.line(where),
        )
    for sign, where in found.items():
        return sign, f"column {where[0]!r}, line {seen.line(where)}"
    return "", "no number has a separator"
