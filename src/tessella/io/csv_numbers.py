"""How the numbers of a CSV file are written: the signs before decimals and between thousands."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ..exceptions import BadFileError, BadOptionError
from ..kernels import text as forms
from .column_types import SIGNS, FormCounts, NumberFormat
from .source import Statement

_NAMES = ("point", "comma", "space", "apostrophe", "no-break space", "narrow no-break space")
_NAMED = dict(zip(SIGNS, _NAMES))


def _decimals(sign: str) -> list[int]:
    """Forms that only a decimal sign explains."""
    place = SIGNS.index(sign)
    base = (forms.GROUPS_POINT, forms.GROUPS_COMMA)[place]
    return [forms.POINT + place, forms.POWER_POINT + place, *range(base, base + len(SIGNS))]


def _grouped(sign: str) -> list[int]:
    """Forms that only this sign between thousands explains."""
    place = SIGNS.index(sign)
    return [base + place for base in (forms.GROUPS, forms.GROUPS_POINT, forms.GROUPS_COMMA)]


@dataclass(frozen=True)
class Evidence:
    """Columns that may hold numbers, and the line of each row."""

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
        """Return the line of a place."""
        return self.line_of(place[1])

    def unclear(self, place: tuple[str, int], problem: str) -> BadFileError:
        """Return the error for signs that may mean either."""
        where = f"in the numbers of column {place[0]!r}"
        problem = f"{where}, {problem}, and no other number of the file tells"
        advice = "Give decimal=',' or decimal='.'"
        return BadFileError(self.path, problem, advice, line=self.line(place))


def find_number_format(
    seen: Evidence, decimal: str | None, thousands: str | None, delimiter: str
) -> tuple[NumberFormat, list[Statement]]:
    """Decide from the columns of numbers how numbers are written, or say why that is open."""
    if decimal not in (None, ".", ","):
        raise BadOptionError("decimal", decimal, "'.' or ','")
    if thousands not in (None, "", *SIGNS):
        raise BadOptionError("thousands", thousands, "'' for none, or one of '.', ',', ' ', \"'\"")
    if decimal is not None and decimal == thousands:
        raise BadOptionError("thousands", thousands, "another sign than decimal")
    asked = thousands is not None
    telling = [one for one in seen.columns if one.numeric and (asked or not one.coded)]
    seen = replace(seen, columns=telling)
    point, comma = seen.first(_decimals(".")), seen.first(_decimals(","))
    if decimal is not None:
        why = "given"
    elif point and comma:
        other = f"column {point[0]!r} a decimal point in line {seen.line(point)}"
        problem = f"column {comma[0]!r} has a decimal comma there, and {other}"
        advice = "Give decimal='.' or decimal=',': columns written otherwise are then read as text"
        raise BadFileError(seen.path, problem, advice, line=seen.line(comma))
    elif place := point or comma:
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


def _without_decimals(seen: Evidence, thousands: str | None, delimiter: str) -> tuple[str, str]:
    """Decide the decimal sign where no number surely has one."""
    if thousands in (".", ","):
        return ("." if thousands == "," else ","), "the other sign separates thousands"
    maybe = {sign: seen.first([forms.POINT_OR_GROUP + place]) for place, sign in enumerate(".,")}
    surely = {sign: seen.first(_grouped(sign)) for sign in ".,"}
    if surely["."] and surely[","]:
        raise seen.unclear(surely[","], "thousands are separated by points here, commas there")
    for sign, other in ((",", "."), (".", ",")):
        if surely[sign]:
            return other, f"a {_NAMED[sign]} separates thousands"
    if thousands is None or thousands == "":
        if maybe[","] and (maybe["."] or thousands is None):
            raise seen.unclear(maybe[","], "1,234 may be a thousand or a little more than one")
        if maybe[","]:
            return ",", "thousands are not separated, as given"
        if maybe["."] and delimiter == ";" and thousands is None:
            raise seen.unclear(maybe["."], "1.234 may be a thousand or a little more than one")
    if maybe["."]:
        column, row = maybe["."]
        return ".", (
            f"column {column!r}, line {seen.line((column, row))}, looks like 1.234; if that means "
            "thousands, give thousands='.'"
        )
    return ".", "no number has decimals"


def _find_thousands(seen: Evidence, decimal: str) -> tuple[str, str]:
    found: dict[str, tuple[str, int]] = {}
    for place, sign in enumerate(SIGNS):
        if sign == decimal:
            continue
        which = _grouped(sign)
        if sign in ".,":
            which.append(forms.POINT_OR_GROUP + place)
        if where := seen.first(which):
            found[sign] = where
    if len(found) > 1:
        (sign, where), (other, there) = list(found.items())[:2]
        elsewhere = f"a {_NAMED[other]} in column {there[0]!r}, line {seen.line(there)}"
        here = f"a {_NAMED[sign]} in column {where[0]!r} there"
        problem = f"thousands are separated by {here}, and by {elsewhere}"
        advice = "Give thousands=: columns written otherwise are then read as text"
        raise BadFileError(seen.path, problem, advice, line=seen.line(where))
    for sign, where in found.items():
        return sign, f"column {where[0]!r}, line {seen.line(where)}"
    return "", "no number has a separator"
