"""From the bytes of a CSV file to text: compression, and encoding.

A file becomes text in UTF-8, without marks of byte order and whatever its encoding was. It is read
in blocks, and again as often as needed; or it is held, whole.
"""

from __future__ import annotations

import codecs
import mmap
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .._types import Bytes
from ..exceptions import BadFileError, BadOptionError
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
NO_NAMES = "A table needs a line of names at least"  # what to do about an empty file
_PIECE = 1 << 24  # bytes that are looked at together for their encoding
_HIGH = re.compile(rb"[\x80-\xff]")
_LETTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_UNUSED = b"\x81\x8d\x8f\x90\x9d"  # bytes that mean nothing in Windows-1252


@dataclass(frozen=True, kw_only=True)
class _File:
    """The bytes of a file, unpacked if they are packed; `held` are all of them, if kept."""

    path: Path
    packed: str | None = None
    held: Buffer | None = None

    @classmethod
    def open(cls, path: Path) -> _File:
        """Find out whether a file is packed, whatever its name says."""
        with open(path, "rb") as file:
            head = file.read(8)
        packed = next((how for magic, how in _MAGIC.items() if head.startswith(magic)), None)
        if packed is None and (named := compression_of(path)):
            problem = f"it is named like {named}, and is not"
            raise BadFileError(path, problem, "Rename it, or make it again")
        file_found = cls(path=path, packed=packed)
        if not file_found.head(1):
            raise BadFileError(path, "the file is empty", NO_NAMES)
        return file_found

    def hold(self) -> _File:
        """Return it with all its bytes; those of a file that is not packed stay on the disk."""
        if self.packed is None:
            with open(self.path, "rb") as file:
                return replace(self, held=mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return replace(self, held=b"".join(self.pieces(_PIECE)))

    def pieces(self, size: int) -> Iterator[bytes]:
        """Give the bytes in pieces of this size."""
        if self.held is not None:
            for begin in range(0, len(self.held), size):
                yield self.held[begin : begin + size]
            return
        try:
            with ExitStack() as opened:
                if self.packed is None:
                    stream = opened.enter_context(open(self.path, "rb"))
                else:
                    inner = opened.enter_context(pa.OSFile(str(self.path)))
                    stream = opened.enter_context(pa.CompressedInputStream(inner, self.packed))
                while piece := stream.read(size):
                    yield piece
        except (OSError, pa.ArrowException) as error:
            if self.packed is None:
                raise
            problem = f"the {self.packed} around it is broken or ends too early"
            raise BadFileError(self.path, problem, "Make the file again") from error

    def head(self, size: int) -> bytes:
        """Return the first bytes."""
        return next(self.pieces(size), b"")


@dataclass(frozen=True, kw_only=True)
class Text:
    """A file as text in UTF-8, which can be read again and again.

    `begin` are the bytes in front that are left out; `convert` says that the file is not in UTF-8.
    """

    path: Path
    encoding: str
    file: _File
    begin: int = 0
    convert: bool = False

    @classmethod
    def find(cls, path: Path, encoding: str | None, *, whole: bool) -> tuple[Text, list[Statement]]:
        """Find the encoding if none is given; a `whole` text is held, not read block by block."""
        file, found = _File.open(path), []
        if file.packed:
            found.append(Statement("compression", file.packed, "by the first bytes of the file"))
        file = file.hold() if whole else file
        head = file.head(4096)
        for magic, what in _NOT_TEXT.items():
            if head.startswith(magic):
                raise BadFileError(path, f"this is {what}, not text", "Give the right format=")
        mark, marked = next(
            ((mark, name) for mark, name in _MARKS if head.startswith(mark)), (b"", None)
        )
        if mark:
            found.append(Statement("byte order mark", f"{marked}, not part of the first name"))
        if encoding is not None:
            name = _known(encoding)
            if marked and _known(marked)[:6] != name[:6] and name != "utf-8-sig":
                problem = (
                    f"it begins with the mark of {marked}, and encoding={encoding!r} was given"
                )
                raise BadFileError(path, problem, f"Give encoding={marked!r} or leave it out")
            why = "given"
        elif marked:
            name, why = marked, "by its mark"
        else:
            name, why = _find_encoding(file, head)
        name = "utf-8" if name in ("utf-8-sig", "ascii") else name
        found.append(Statement("encoding", name, why))
        text = cls(path=path, encoding=name, file=file, convert=name != "utf-8")
        if not text.convert:
            _refuse_other_bytes(file, name)
            return replace(text, begin=len(mark)), found
        if whole:
            held = b"".join(_converted(file, name, _PIECE))
            return replace(text, file=_File(path=path, held=held), convert=False), found
        return text, found

    def blocks(self, size: int | None = None) -> Iterator[Bytes]:
        """Give the text in blocks of about this size; in one without."""
        held = self.file.held
        if held is not None and size is None:
            yield np.frombuffer(held, np.uint8)[self.begin :]
            return
        size = size or _PIECE
        left = self.begin
        pieces = _converted(self.file, self.encoding, size) if self.convert else None
        for piece in pieces or self.file.pieces(size):
            block = np.frombuffer(piece, np.uint8)[left:]
            left -= min(left, len(piece))
            if len(block):
                yield block


def _known(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        expected = "the name of an encoding, such as 'utf-8' or 'windows-1252'"
        raise BadOptionError("encoding", encoding, expected) from None


def _refuse_other_bytes(file: _File, name: str) -> None:
    bad = _first_bad(file.pieces(_PIECE))
    if bad is not None:
        where, byte = bad
        problem = f"byte {byte:#04x} there is not {name}"
        advice = "Give the right encoding=, for example 'windows-1252', or repair the line"
        raise BadFileError(file.path, problem, advice, line=_line_at(file, where))


def _first_bad(pieces: Iterable[bytes]) -> tuple[int, int] | None:
    """Return where the first byte stands that is not UTF-8, and the byte."""
    decoder, done = codecs.getincrementaldecoder("utf-8")(), 0
    for piece in pieces:
        waiting = decoder.getstate()[0]
        if piece.isascii() and not waiting:
            done += len(piece)
            continue
        try:
            decoder.decode(piece)
        except UnicodeDecodeError as error:
            return done - len(waiting) + error.start, (waiting + piece)[error.start]
        done += len(piece)
    if waiting := decoder.getstate()[0]:
        return done - len(waiting), waiting[0]
    return None


def _find_encoding(file: _File, head: bytes) -> tuple[str, str]:
    nuls = head.count(0)
    if nuls > len(head) // 4 and len(head) > 3:
        side = "utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"
        return side, "no mark, and every second byte is 0"
    bad = _first_bad(file.pieces(_PIECE))
    if bad is None:
        return "utf-8", "every byte of the file fits"
    high: set[int] = set()
    letters_of_utf8 = others = 0
    for piece in file.pieces(_PIECE):
        high.update(re.sub(rb"[\x00-\x7f]+", b"", piece))
        rest, count = _LETTER.subn(b"", piece)
        letters_of_utf8, others = letters_of_utf8 + count, others + len(_HIGH.findall(rest))
    if letters_of_utf8 > others:
        counts = f"{letters_of_utf8:,} letters of UTF-8 and {others:,} bytes of something else"
        problem = f"there is a byte that is not UTF-8, and the file has {counts}"
        advice = "Repair the line; or give encoding= if the file is something else"
        raise BadFileError(file.path, problem, advice, line=_line_at(file, bad[0]))
    if high & set(_UNUSED):
        problem = "its letters are neither UTF-8 nor Windows-1252"
        advice = "Give encoding=, for example 'cp850', 'cp437', 'mac_roman' or 'windows-1251'"
        raise BadFileError(file.path, problem, advice, line=_line_at(file, _first_unused(file)))
    letters = bytes(sorted(high)).decode("windows-1252")
    shown = letters[:12] + ("..." if len(letters) > 12 else "")
    same = "" if any(byte < 0xA0 for byte in high) else ", the same as Latin-1 here"
    return "windows-1252", (
        f"not UTF-8, see line {_line_at(file, bad[0])}{same}; beyond ASCII it holds {shown}: "
        "give encoding= if that looks wrong"
    )


def _first_unused(file: _File) -> int:
    done = 0
    for piece in file.pieces(_PIECE):
        if found := re.search(rb"[%b]" % _UNUSED, piece):
            return done + found.start()
        done += len(piece)
    return done


def _converted(file: _File, name: str, size: int) -> Iterator[bytes]:
    """Give the text in UTF-8, in pieces made of pieces of this size."""
    decoder, line, piece, begun = codecs.getincrementaldecoder(name)(), 1, b"", False
    pieces = file.pieces(size)
    try:
        while True:
            piece = next(pieces, b"")
            text = decoder.decode(piece, final=not piece).encode()
            line += text.count(b"\n")
            if text:
                yield text if begun else text.removeprefix(codecs.BOM_UTF8)
                begun = True
            if not piece:
                return
    except UnicodeError as error:
        line += piece[: getattr(error, "start", 0)].count(b"\n")
        marked = any(file.head(4).startswith(mark) for mark, _ in _MARKS)
        problem = f"a letter there is not {name}" + (", as the file's mark says" if marked else "")
        advice = "Give the right encoding=, or repair the line"
        raise BadFileError(file.path, problem, advice, line=line) from None


def _line_at(file: _File, where: int) -> int:
    """Return the line of a byte; CR, LF and CR LF end one."""
    line, before = 1, b""
    for piece in file.pieces(_PIECE):
        head = piece[:where]
        line += head.count(b"\n") + head.count(b"\r") - head.count(b"\r\n")
        line -= before == b"\r" and head[:1] == b"\n"  # the two stand in different pieces
        before, where = head[-1:], where - len(head)
        if not where:
            break
    return line
