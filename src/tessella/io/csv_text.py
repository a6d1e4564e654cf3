"""From the bytes of a CSV file to records: compression, encoding, delimiter.

A file becomes text in UTF-8 (marks of byte order, old encodings), and every line of it is proved
to have as many fields.
"""

from __future__ import annotations

import codecs
import csv
import io
import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Bytes
from ..exceptions import BadFileError, BadOptionError
from ..kernels.text import Layout, lay_out
from .source import Statement, compression_of

Buffer = Any  # bytes, bytearray or a map of the file
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_NOT_TEXT = {
    b"PK\x03\x04": "a zip archive or an Excel file",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"$FL2": "an SPSS file",
    b"$FL3": "an SPSS file",
    b"<stata_dta>": "a Stata file",
    b"%PDF": "a PDF",
    b"\xd0\xcf\x11\xe0": "an Excel file of before 2007",
}
_NO_NAMES = "A table needs a line of names at least"  # what to do about an empty file
_PIECE = 1 << 24
_HIGH = re.compile(rb"[\x80-\xff]")
_LETTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_UNUSED = b"\x81\x8d\x8f\x90\x9d"  # bytes that mean nothing in Windows-1252


def read_text(path: Path, encoding: str | None) -> tuple[Buffer, str, list[Statement]]:
    """Return a file as UTF-8 without mark, the name of its encoding, and what was found."""
    raw, found = _unpacked(path)
    for magic, what in _NOT_TEXT.items():
        if raw[: len(magic)] == magic:
            raise BadFileError(path, f"this is {what}, not text", "Give the right format=")
    mark, marked = next(
        ((mark, name) for mark, name in _MARKS if raw[: len(mark)] == mark), (b"", None)
    )
    if mark:
        found.append(Statement("byte order mark", f"{marked}, not part of the first name"))
    if encoding is not None:
        name = _known(encoding)
        if marked and _known(marked)[:6] != name[:6] and name != "utf-8-sig":
            problem = f"it begins with the mark of {marked}, and encoding={encoding!r} was given"
            raise BadFileError(path, problem, f"Give encoding={marked!r} or leave it out")
        why = "given"
    elif marked:
        name, why = marked, "by its mark"
    else:
        name, why = _find_encoding(path, raw)
    name = "utf-8" if name in ("utf-8-sig", "ascii") else name
    found.append(Statement("encoding", name, why))
    if name != "utf-8":
        return _converted(path, raw, name, mark), name, found
    text = raw[len(mark) :] if mark else raw
    if (bad := _first_bad(text)) is not None:
        problem = f"byte {text[bad]:#04x} there is not {name}"
        advice = "Give the right encoding=, for example 'windows-1252', or repair the line"
        raise BadFileError(path, problem, advice, line=_line_at(text, bad))
    return text, name, found


def _known(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        expected = "the name of an encoding, such as 'utf-8' or 'windows-1252'"
        raise BadOptionError("encoding", encoding, expected) from None


def _unpacked(path: Path) -> tuple[Buffer, list[Statement]]:
    """Return the bytes of a file, unpacked if they are packed, whatever the name says."""
    with open(path, "rb") as file:
        head = file.read(8)
        packed = next((how for magic, how in _MAGIC.items() if head.startswith(magic)), None)
        if packed is None and (named := compression_of(path)):
            problem = f"it is named like {named}, and is not"
            raise BadFileError(path, problem, "Rename it, or make it again")
        if not head:
            raise BadFileError(path, "the file is empty", _NO_NAMES)
        if packed is None:
            file.seek(0)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), []
    import pyarrow as pa

    try:
        with pa.OSFile(str(path)) as inner, pa.CompressedInputStream(inner, packed) as stream:
            raw = stream.read()
    except (OSError, pa.ArrowException) as error:
        problem = f"the {packed} around it is broken or ends too early"
        raise BadFileError(path, problem, "Make the file again") from error
    if not raw:
        raise BadFileError(path, "the file is empty", _NO_NAMES)
    return raw, [Statement("compression", packed, "by the first bytes of the file")]


def _pieces(raw: Buffer) -> Iterator[bytes]:
    for begin in range(0, len(raw), _PIECE):
        yield raw[begin : begin + _PIECE]


def _first_bad(raw: Buffer) -> int | None:
    """Return where the first byte stands that is not UTF-8."""
    decoder, done = codecs.getincrementaldecoder("utf-8")(), 0
    for piece in _pieces(raw):
        if piece.isascii() and not decoder.getstate()[0]:
            done += len(piece)
            continue
        waiting = len(decoder.getstate()[0])
        try:
            decoder.decode(piece)
        except UnicodeDecodeError as error:
            return done - waiting + error.start
        done += len(piece)
    if waiting := len(decoder.getstate()[0]):
        return done - waiting
    return None


def _find_encoding(path: Path, raw: Buffer) -> tuple[str, str]:
    head = raw[:4096]
    nuls = head.count(0)
    if nuls > len(head) // 4 and len(head) > 3:
        side = "utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"
        return side, "no mark, and every second byte is 0"
    bad = _first_bad(raw)
    if bad is None:
        return "utf-8", "every byte of the file fits"
    high: set[int] = set()
    letters_of_utf8 = others = 0
    for piece in _pieces(raw):
        high.update(re.sub(rb"[\x00-\x7f]+", b"", piece))
        rest, count = _LETTER.subn(b"", piece)
        letters_of_utf8, others = letters_of_utf8 + count, others + len(_HIGH.findall(rest))
    if letters_of_utf8 > others:
        counts = f"{letters_of_utf8:,} letters of UTF-8 and {others:,} bytes of something else"
        problem = f"there is a byte that is not UTF-8, and the file has {counts}"
        advice = "Repair the line; or give encoding= if the file is something else"
        raise BadFileError(path, problem, advice, line=_line_at(raw, bad))
    if unused := high & set(_UNUSED):
        where = min(raw.find(bytes([byte])) for byte in unused)
        problem = "its letters are neither UTF-8 nor Windows-1252"
        advice = "Give encoding=, for example 'cp850', 'cp437', 'mac_roman' or 'windows-1251'"
        raise BadFileError(path, problem, advice, line=_line_at(raw, where))
    letters = bytes(sorted(high)).decode("windows-1252")
    shown = letters[:12] + ("..." if len(letters) > 12 else "")
    same = "" if any(byte < 0xA0 for byte in high) else ", the same as Latin-1 here"
    return "windows-1252", (
        f"not UTF-8, see line {_line_at(raw, bad)}{same}; beyond ASCII it holds {shown}: "
        "give encoding= if that looks wrong"
    )


def _converted(path: Path, raw: Buffer, name: str, mark: bytes) -> bytearray:
    decoder, out, done = codecs.getincrementaldecoder(name)(), bytearray(), 0
    try:
        for piece in _pieces(raw):
            out += decoder.decode(piece).encode()
            done += len(piece)
        out += decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = 1 + out.count(b"\n") + raw[done : done + start].count(b"\n")
        problem = f"a letter there is not {name}" + (", as the file's mark says" if mark else "")
        advice = "Give the right encoding=, or repair the line"
        raise BadFileError(path, problem, advice, line=line) from None
    return out.removeprefix(codecs.BOM_UTF8)


def _line_at(raw: Buffer, where: int) -> int:
    head = bytes(raw[:where])
    crlf = head.count(b"\r\n")
    return 1 + head.count(b"\n") + head.count(b"\r") - crlf


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
        cls, path: Path, raw: Any, *, delimiter: str | None, quote: str, skip: int
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
            delimiter, why = _find_delimiter(path, text, quote, before)
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
        lines = io.StringIO(head, newline="")
        return next(csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote))

    def line_of(self, record: int) -> int:
        """Return the line of the file in which a record begins; the first record is 0."""
        asked = _lay_out(self.text, self.delimiter, self.quote, wanted=record)
        return int(asked.wanted) + self.before

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
        raise BadFileError(path, "there is no line with text", _NO_NAMES)
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


def _find_delimiter(path: Path, text: Bytes, quote: str, before: int) -> tuple[str, str]:
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
    problem = f"more than one delimiter divides every line alike: {choices}"
    raise BadFileError(path, problem, "Give delimiter=", line=1 + before)
