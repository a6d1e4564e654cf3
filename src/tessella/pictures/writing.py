"""How pages write values: short numbers, dates, and texts of any origin cut to a length."""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import datetime, timedelta

LONGEST = 60  # characters of a category or cell that are kept
EPOCH = datetime(1970, 1, 1)
DAYS = (-719_162, 2_932_896)  # of the years 1 and 9999, counted from 1970

# What XML 1.0 has no way to write: most control characters, lone surrogates, two non-characters.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Marks that turn the direction of what follows them, or stand for nothing that can be seen.
_TURNING = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_UNITS = ((1e12, " T"), (1e9, " bn"), (1e6, " m"), (1e3, " k"))


def clean(text: object, longest: int = LONGEST) -> str:
    r"""Return a text on one line, of writable characters, cut where it is too long.

    Examples
    --------
    >>> from tessella.pictures.writing import clean
    >>> clean("north\x00 and\nsouth"), clean("abcdefgh", 5)
    ('north� and south', 'abcd…')
    """
    start = str(text)[: 4 * longest + 4]  # enough where every other character is white space
    line = " ".join(_TURNING.sub("", _UNWRITABLE.sub("\ufffd", start)).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def short_number(value: float | None) -> str:
    """Write a number in three or four digits: 0.25, 1,250, 12.5 k, 3.4 m.

    Examples
    --------
    >>> from tessella.pictures.writing import short_number
    >>> [short_number(x) for x in (0, 0.25, 1250, 12_500, -3_412_345, 1e-9, 4e20)]
    ['0', '0.25', '1,250', '12.5 k', '−3.41 m', '1e−9', '4e20']
    """
    if value is None or not math.isfinite(value):
        return "?" if value is None or math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size and (size < 1e-4 or size >= 1e15):
        text = re.sub(r"e([+-])0*(\d+)", lambda m: f"e{m[1].replace('+', '')}{m[2]}", f"{size:.3g}")
    elif size >= 9999.5:
        unit, letter = next((u, letter) for u, letter in _UNITS if size >= 0.9995 * u)
        text = f"{size / unit:.3g}{letter}" if size / unit < 999.5 else f"{size / unit:.0f}{letter}"
    elif size >= 999.5:
        text = f"{size:,.0f}"
    else:
        text = f"{size:.3g}"
    return (f"−{text}" if value < 0 else text).replace("e-", "e−")


def whole_number(count: float) -> str:
    """Write a count with its thousands apart."""
    return f"{count:,.0f}"


def per_cent(share: float | None) -> str:
    """Write a share of 0 to 1 in per cent: small ones do not become 0, nor large ones 100.

    Examples
    --------
    >>> from tessella.pictures.writing import per_cent
    >>> [per_cent(x) for x in (0, 1e-5, 0.004, 0.123, 0.9999, 1, None)]
    ['0 %', '< 0.1 %', '0.4 %', '12 %', '> 99.9 %', '100 %', '?']
    """
    if share is None or not math.isfinite(share):
        return "?"
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    percent = 100 * share
    return f"{percent:.1f} %" if 0 < percent < 9.95 or 99 < percent < 100 else f"{percent:.0f} %"


def date_text(days: float | None) -> str:
    """Write a date that is given in days since 1970; with hours if it has any.

    Examples
    --------
    >>> from tessella.pictures.writing import date_text
    >>> date_text(0), date_text(19000.75)
    ('1970-01-01', '2022-01-08 18:00')
    """
    if days is None or not DAYS[0] <= days <= DAYS[1]:
        return "?"
    moment = EPOCH + timedelta(minutes=round(days * 1440))
    # strftime leaves out leading zeros of early years on some systems.
    date = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    midnight = not (moment.hour or moment.minute)
    return date if midnight else f"{date} {moment.hour:02}:{moment.minute:02}"


def width_of(text: str, size: float) -> float:
    """Estimate the width of a text in a sans-serif type; wide characters take a whole square."""
    return size * sum(_advance(character) for character in text)


def _advance(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if unicodedata.combining(character):
        return 0.0
    if character in "il.,:;'|!()[] tfjr":
        return 0.33
    return 0.82 if character in "mwMW@%…" else 0.66 if character.isupper() else 0.58


def fit(text: object, width: float, size: float) -> str:
    """Cut a text so that it is no wider than `width`."""
    line = clean(text, 200)
    if width_of(line, size) <= width:
        return line
    while line and width_of(f"{line}…", size) > width:
        line = line[:-1]
    return f"{line.rstrip()}…"
