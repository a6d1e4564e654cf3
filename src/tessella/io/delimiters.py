"""Which sign stands between fields, and whether every line of a file has as many of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Bytes
from ..exceptions import BadFileError, BadOptionError
from ..kernels.delimited import Layout, lay_out
from .source import Statement

__all__ = ["Lines", "named"]


_CANDIDATES = (",", ";", "\t", "|")
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space", ":": "colon"}
_SAMPLE = 1 << 18


def named(delimiter: str) -> str:
    """Name a delimiter for people."""
    return _NAMES.get(delimiter, repr(delimiter))


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A text whose records all have the same number of fields.

    `text` begins with the first record; `before` counts the lines of the file that stand before it.
    """

    path: Path
    text: Bytes
    delimiter: str
    quote: str
    layout: Layout
    before: int

    @classmethod
    def find(
        cls,
        path: Path,
        raw: Any,
        *,
        delimiter: str | None,
        quote: str,
        skip: int,
    ) -> tuple[Lines, list[Statement]]:
        """Find the delimiter if none is given, and refuse a file in which a line does not fit."""
        for name, given in (("delimiter", delimiter), ("quote", quote)):
            if given is not None and (len(given) != 1 or not given.isascii() or given in "\r\n"):
                raise BadOptionError(name, given, "one ASCII character")
        text, before, found = _after_preamble(path, np.frombuffer(raw, np.uint8), skip)
        why = "given"
        if delimiter is None and found:
            delimiter, why = found, "by the first line, sep="
        elif delimiter is None:
            delimiter, why = _sniff(path, text, quote, before)
        layout = _lay_out(text, delimiter, quote)
        lines = cls(
            path=path, text=text, delimiter=delimiter, quote=quote, layout=layout, before=before
        )
        lines._refuse_misfits(sniffed=why != "given")
        statements = [
            Statement("delimiter", named(delimiter) if layout.fields > 1 else "none", why),
            Statement("fields", f"{layout.fields:,} in each line", "every line was counted"),
            *lines._line_ends(),
        ]
        return lines, statements

    def head(self) -> str:
        """Return the first record as it stands."""
        return self.text[: self.layout.header_end].tobytes().decode().lstrip("\r\n")

    def header(self) -> list[str]:
        """Return the fields of the first record."""
        head = self.head()
        csv.field_size_limit(max(csv.field_size_limit(), len(head) + 1))
        read = csv.reader(
            io.StringIO(head, newline=""), delimiter=self.delimiter, quotechar=self.quote
        )
        return next(read)

    def line_of(self, record: int) -> int:
        """Return the line of the file in which a record begins; the first record is 0."""
        asked = _lay_out(self.text, self.delimiter, self.quote, wanted=record)
        return int(asked.wanted) + self.before

    def _refuse_misfits(self, *, sniffed: bool) -> None:
        layout, path, at = self.layout, self.path, self.before
        if layout.nul:
            raise BadFileError(
                path,
                "there is a byte 0, which no text has",
                "The file is damaged, or in another encoding: give encoding=, such as 'utf-16'",
                line=layout.nul + at,
            )
        if layout.unclosed:
            raise BadFileError(
                path,
                "a quote opens there and never closes",
                "Close it, or double it if it belongs to the text",
                line=layout.unclosed + at,
            )
        if layout.stray:
            raise BadFileError(
                path,
                "text follows a closing quote",
                f"Double quotes that belong to the text; after a closing one a "
                f"{named(self.delimiter)} or the end of the line must follow",
                line=layout.stray + at,
            )
        if layout.ragged:
            who = "seems to be" if sniffed else "was given as"
            raise BadFileError(
                path,
                f"the first line has {_fields(layout.fields)}, this one {layout.ragged_fields} "
                f"(the delimiter {who} a {named(self.delimiter)})",
                "Repair the line, quote a field that holds the delimiter, give delimiter=, or "
                "skip= if lines stand before the names",
                line=layout.ragged + at,
            )
        if layout.fields == 1 and not sniffed:
            self._refuse_other_delimiter()

    def _refuse_other_delimiter(self) -> None:
        """Refuse a delimiter that splits nothing where another splits every line."""
        sample = _sample(self.text)
        for other in _CANDIDATES:
            seen = _lay_out(sample, other, self.quote)
            if seen.fields > 1 and seen.agreeing == seen.records:
                raise BadFileError(
                    self.path,
                    f"a {named(self.delimiter)}, as given, divides no line, and a {named(other)} "
                    f"gives {seen.fields} fields in each",
                    f"Give delimiter={other!r}, or leave it out",
                    line=1 + self.before,
                )

    def _line_ends(self) -> list[Statement]:
        layout = self.layout
        kinds = {"LF": layout.lf, "CR LF": layout.crlf, "CR": layout.cr}
        used = [kind for kind, count in kinds.items() if count]
        statements = [Statement("line ends", " and ".join(used) or "none")]
        if layout.inner:
            statements.append(Statement("line ends in quoted fields", f"{layout.inner:,}"))
        if layout.blank:
            meaning = "read as missing" if layout.fields == 1 else "no records, left out"
            first = f"the first is line {layout.first_blank + self.before}"
            statements.append(Statement("blank lines", f"{layout.blank:,}, {meaning}", first))
        return statements


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _lay_out(text: Bytes, delimiter: str, quote: str, *, wanted: int = -1) -> Layout:
    return lay_out(text, ord(delimiter), ord(quote), 0, wanted)


def _after_preamble(path: Path, text: Bytes, skip: int) -> tuple[Bytes, int, str]:
    """Leave out the lines to skip, and the line `sep=;` of Excel; return what it says, too."""
    if isinstance(skip, bool) or not isinstance(skip, int) or skip < 0:
        raise BadOptionError("skip", skip, "the number of lines before the names, 0 or more")
    begin = 0
    for _ in range(skip):
        begin = _next_line(text, begin)
    before, found = skip, ""
    head = text[begin : begin + 8].tobytes()
    if head[:4].lower() == b"sep=" and head[5:6] in (b"\r", b"\n"):
        found = head[4:5].decode("latin-1")
        begin, before = _next_line(text, begin), before + 1
    if not any((text[at : at + _SAMPLE] > 32).any() for at in range(begin, len(text), _SAMPLE)):
        raise BadFileError(
            path, "there is no line with text", "A table needs a line of names at least"
        )
    return text[begin:], before, found


def _next_line(text: Bytes, begin: int) -> int:
    for at in range(begin, len(text), _SAMPLE):
        piece = text[at : at + _SAMPLE]
        ends = np.flatnonzero((piece == 10) | (piece == 13))
        if len(ends):
            end = at + int(ends[0])
            return end + 1 + int(text[end] == 13 and end + 1 < len(text) and text[end + 1] == 10)
    return len(text)


def _sample(text: Bytes) -> Bytes:
    """Return the first lines, the last of them whole."""
    if len(text) <= _SAMPLE:
        return text
    ends = np.flatnonzero((text[:_SAMPLE] == 10) | (text[:_SAMPLE] == 13))
    return text[: int(ends[-1]) + 1] if len(ends) else text


def _sniff(path: Path, text: Bytes, quote: str, before: int) -> tuple[str, str]:
    """Return the delimiter by which the first lines have equally many fields, more than one."""
    sample = _sample(text)
    seen = {sign: _lay_out(sample, sign, quote) for sign in _CANDIDATES}
    several = {sign: layout for sign, layout in seen.items() if layout.fields > 1}
    if not several:
        return ",", "no comma, semicolon, tab or bar in the first line: one column"
    fitting = [sign for sign, layout in several.items() if layout.agreeing == layout.records]
    if len(fitting) == 1:
        return fitting[0], "divides the first line and those after it alike"
    if len(fitting) > 1:
        whole = {sign: _lay_out(text, sign, quote) for sign in fitting}
        fitting = [sign for sign in fitting if whole[sign].agreeing == whole[sign].records]
        if len(fitting) == 1:
            return fitting[0], "the only one that divides every line alike"
    if len(fitting) > 1:
        return _choose(path, fitting, seen, before)
    # None fits everywhere: take the one that fits best, so that the line at fault is named.
    best = max(several, key=lambda sign: (several[sign].agreeing, several[sign].fields))
    return best, "fits most lines"


def _choose(
    path: Path, fitting: Sequence[str], seen: dict[str, Layout], before: int
) -> tuple[str, str]:
    """Choose among delimiters that all divide every line alike, if the names leave no doubt."""
    records = max(seen[sign].records for sign in fitting)
    if records == 1:  # names only: nothing but their number to go by
        most = max(fitting, key=lambda sign: seen[sign].fields)
        if all(seen[sign].fields < seen[most].fields for sign in fitting if sign != most):
            return most, "gives the most names"
    choices = ", ".join(f"{named(sign)} ({seen[sign].fields} fields)" for sign in fitting)
    raise BadFileError(
        path,
        f"more than one delimiter divides every line alike: {choices}",
        "Give delimiter=",
        line=1 + before,
    )
