"""From the text of a CSV file to records: delimiter, quotes, line ends.

Every line of the file is proved to have as many fields. A large text is read in *parts* of whole
records; what is known of the whole is the sum over its parts, so that parts of any size give the
same answer.
"""

from __future__ import annotations

import csv
import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from .._types import Bytes
from ..exceptions import BadFileError, BadOptionError
from ..kernels.text import Layout, end_of_records, lay_out
from .csv_text import NO_NAMES, Text
from .source import Statement

_CANDIDATES = (",", ";", "\t", "|")
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space", ":": "colon"}
_SAMPLE = 1 << 18
_LONGEST = 1 << 28  # bytes of a record, where a text is read in blocks: it must fit into memory
_SUMMED = ("records", "agreeing", "blank", "inner", "lf", "crlf", "cr", "quoted", "bare")


def named(delimiter: str) -> str:
    """Name a delimiter for people."""
    return _NAMES.get(delimiter, repr(delimiter))


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some whole records of a text: `size` bytes; `line` and `record` count what is before them."""

    size: int
    layout: Layout
    line: int
    record: int


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A text whose records all have the same number of fields.

    `text` begins with the first record; `before` counts the lines of the file that stand before it.
    It is read in blocks of `size` bytes, or in one. `head` is the first record as it stands.
    """

    path: Path
    text: Text
    size: int | None
    delimiter: str
    quote: str
    head: str
    layout: Layout
    parts: tuple[Part, ...]
    before: int

    @classmethod
    def find(
        cls, text: Text, *, delimiter: str | None, quote: str, skip: int, size: int | None
    ) -> tuple[Lines, list[Statement]]:
        """Find the delimiter if none is given, and refuse a file in which a line does not fit."""
        for name, given in (("delimiter", delimiter), ("quote", quote)):
            if given is not None and (len(given) != 1 or not given.isascii() or given in "\r\n"):
                raise BadOptionError(name, given, "one ASCII character")
        text, before, found = _after_preamble(text, skip)
        why = "given"
        if delimiter is None and found:
            delimiter, why = found, "by the first line, sep="
        elif delimiter is None:
            delimiter, why = _find_delimiter(text, quote, before, size)
        head, parts = _lay_out_parts(text, delimiter, quote, before, size)
        layout = _joined(parts)
        lines = cls(
            path=text.path, text=text, size=size, delimiter=delimiter, quote=quote, head=head,
            layout=layout, parts=tuple(parts), before=before,
        )  # fmt: skip
        lines._refuse_misfits(sniffed=why != "given")
        statements = [
            Statement("delimiter", named(delimiter) if layout.fields > 1 else "none", why),
            Statement("fields", f"{layout.fields:,} in each line", "every line was counted"),
            *lines._line_ends(),
        ]
        return lines, statements

    def header(self) -> list[str]:
        """Return the fields of the first record."""
        csv.field_size_limit(max(csv.field_size_limit(), len(self.head) + 1))
        lines = io.StringIO(self.head, newline="")
        return next(csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote))

    def chunks(self) -> Iterator[Bytes]:
        """Give the text of each part."""
        blocks, rest = self.text.blocks(self.size), np.empty(0, np.uint8)
        for part in self.parts:
            while len(rest) < part.size:
                block = next(blocks, None)
                if block is None:
                    problem, advice = "it was changed while it was read", "Read it again"
                    raise BadFileError(self.path, problem, advice)
                rest = np.concatenate([rest, block]) if len(rest) else block
            yield rest[: part.size]
            rest = rest[part.size :]

    def line_of(self, record: int) -> int:
        """Return the line of the file in which a record begins; the first record is 0."""
        place = bisect_right([part.record for part in self.parts], record) - 1
        part = self.parts[place]
        (chunk,) = islice(self.chunks(), place, place + 1)
        expected, wanted = self.layout.fields if place else 0, record - part.record
        asked = lay_out(chunk, ord(self.delimiter), ord(self.quote), expected, wanted)
        return int(asked.wanted) + part.line + self.before

    def _refuse_misfits(self, *, sniffed: bool) -> None:
        layout, sign = self.layout, named(self.delimiter)
        who = "seems to be" if sniffed else "was given as"
        first = "1 field" if layout.fields == 1 else f"{layout.fields} fields"
        faults = (
            (layout.nul, "there is a byte 0, which no text has",
             "The file is damaged, or in another encoding: give encoding=, such as 'utf-16'"),
            (layout.unclosed, "a quote opens there and never closes",
             "Close it, or double it if it belongs to the text"),
            (layout.stray, "text follows a closing quote",
             f"Double quotes that belong to the text; after a closing one a {sign} or the end of "
             "the line must follow"),
            (layout.ragged, f"the first line has {first}, this one {layout.ragged_fields} (the "
             f"delimiter {who} a {sign})",
             "Repair the line, quote a field that holds the delimiter, give delimiter=, or skip= "
             "if lines stand before the names"),
        )  # fmt: skip
        for line, problem, advice in faults:
            if line:
                raise BadFileError(self.path, problem, advice, line=line + self.before)
        if layout.fields == 1 and not sniffed:
            self._refuse_other_delimiter()

    def _refuse_other_delimiter(self) -> None:
        """Refuse a delimiter that splits nothing where another splits every line."""
        sample = _sample(self.text)
        for other in _CANDIDATES:
            seen = _lay_out(sample, other, self.quote)
            if seen.fields > 1 and seen.agreeing == seen.records:
                gives = f"a {named(other)} gives {seen.fields} fields in each"
                problem = f"a {named(self.delimiter)}, as given, divides no line, and {gives}"
                advice = f"Give delimiter={other!r}, or leave it out"
                raise BadFileError(self.path, problem, advice, line=1 + self.before)

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


def _lay_out(text: Bytes, delimiter: str, quote: str) -> Layout:
    return lay_out(text, ord(delimiter), ord(quote), 0, -1)


def _lay_out_parts(
    text: Text, delimiter: str, quote: str, before: int, size: int | None
) -> tuple[str, list[Part]]:
    """Read a text in parts of whole records; return its first record as it stands, too."""
    parts: list[Part] = []
    head, fields, line, record = "", 0, 0, 0
    for chunk, whole in _cut(text.blocks(size), delimiter, quote):
        if not whole:
            problem = f"a record begins there that has not ended after {len(chunk):,} bytes"
            advice = "Look for a quote that opens and never closes"
            raise BadFileError(text.path, problem, advice, line=line + before + 1)
        layout = lay_out(chunk, ord(delimiter), ord(quote), fields, -1)
        if not parts:
            head = chunk[: layout.header_end].tobytes().decode().lstrip("\r\n")
        parts.append(Part(size=len(chunk), layout=layout, line=line, record=record))
        fields, line, record = layout.fields, line + _n_lines(layout), record + layout.records
    return head, parts


def _cut(blocks: Iterator[Bytes], delimiter: str, quote: str) -> Iterator[tuple[Bytes, bool]]:
    """Cut a text into chunks of whole records; a longer record than `_LONGEST` is not whole.

    The first chunk holds more than blank lines: it begins with the names.
    """
    chunk, first = next(blocks), True
    for block in blocks:
        end = int(end_of_records(chunk, ord(delimiter), ord(quote)))
        if first and not ((chunk[:end] != 10) & (chunk[:end] != 13)).any():
            end = 0
        if end:
            yield chunk[:end], True
            first = False
        elif len(chunk) > _LONGEST:
            yield chunk, False
        chunk = np.concatenate([chunk[end:], block])
    yield chunk, True


def _n_lines(layout: Layout) -> int:
    """Return how many lines end in a text."""
    return layout.inner + layout.lf + layout.crlf + layout.cr


def _joined(parts: Sequence[Part]) -> Layout:
    """Return the layout of the whole text: that of its parts, added up."""
    whole = parts[0].layout
    for part in parts[1:]:
        own = part.layout
        summed = {name: getattr(whole, name) + getattr(own, name) for name in _SUMMED}
        firsts = {
            name: getattr(own, name) + part.line
            for name in ("ragged", "first_blank", "nul", "stray", "unclosed")
            if getattr(own, name) and not getattr(whole, name)
        }
        if "ragged" in firsts:
            firsts["ragged_fields"] = own.ragged_fields
        longest = max(whole.longest, own.longest)
        whole = whole._replace(longest=longest, **summed, **firsts)
    return whole


def _after_preamble(text: Text, skip: int) -> tuple[Text, int, str]:
    """Leave out the lines to skip, and the line `sep=;` of Excel; return what it says, too."""
    if isinstance(skip, bool) or not isinstance(skip, int) or skip < 0:
        raise BadOptionError("skip", skip, "the number of lines before the names, 0 or more")
    before, found = skip, ""
    text = _without_lines(text, skip)
    head = _head(text, 8)[:8].tobytes()
    if head[:4].lower() == b"sep=" and head[5:6] in (b"\r", b"\n"):
        found = head[4:5].decode("latin-1")
        text, before = _without_lines(text, 1), before + 1
    if not any((block > 32).any() for block in text.blocks(_SAMPLE)):
        raise BadFileError(text.path, "there is no line with text", NO_NAMES)
    return text, before, found


def _head(text: Text, size: int) -> Bytes:
    """Return the beginning of a text: some bytes more than asked for, or all there are."""
    blocks, length = [], 0
    for block in text.blocks(_SAMPLE):
        blocks.append(block)
        length += len(block)
        if length >= size:
            break
    return np.concatenate(blocks) if blocks else np.empty(0, np.uint8)


def _without_lines(text: Text, count: int) -> Text:
    """Leave out so many lines; they are no records, and a quote means nothing there."""
    for _ in range(count):
        at, after_cr = 0, False
        for block in text.blocks(_SAMPLE):
            if after_cr:
                at += int(block[0] == 10)
                break
            ends = np.flatnonzero((block == 10) | (block == 13))
            if not len(ends):
                at += len(block)
                continue
            end = int(ends[0])
            at += end + 1
            if block[end] == 10:
                break
            if end + 1 < len(block):
                at += int(block[end + 1] == 10)
                break
            after_cr = True
        text = replace(text, begin=text.begin + at)
    return text


def _sample(text: Text) -> Bytes:
    """Return the first lines, the last of them whole."""
    size = _SAMPLE
    while True:
        head = _head(text, size + 1)
        if len(head) <= size:
            return head
        ends = np.flatnonzero((head[:size] == 10) | (head[:size] == 13))
        if len(ends):
            return head[: int(ends[-1]) + 1]
        size *= 4  # a first line as long as that


def _find_delimiter(text: Text, quote: str, before: int, size: int | None) -> tuple[str, str]:
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
        whole = {
            sign: _joined(_lay_out_parts(text, sign, quote, before, size)[1]) for sign in fitting
        }
        fitting = [sign for sign in fitting if whole[sign].agreeing == whole[sign].records]
        if len(fitting) == 1:
            return fitting[0], "the only one that divides every line alike"
    if len(fitting) > 1:
        return _choose(text.path, fitting, seen, before)
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
    problem = f"more than one delimiter divides every line alike: {choices}"
    raise BadFileError(path, problem, "Give delimiter=", line=1 + before)
