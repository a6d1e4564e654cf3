"""From the bytes of a file to text in UTF-8: compression, marks of byte order, old encodings."""

from __future__ import annotations

import codecs
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..exceptions import BadFileError, BadOptionError
from .formats import compression_of
from .source import Statement

__all__ = ["read_text"]

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
            raise BadFileError(
                path,
                f"it begins with the mark of {marked}, and encoding={encoding!r} was given",
                f"Give encoding={marked!r} or leave it out",
            )
        why = "given"
    elif marked:
        name, why = marked, "by its mark"
    else:
        name, why = _sniff(path, raw)
    name = "utf-8" if name in ("utf-8-sig", "ascii") else name
    found.append(Statement("encoding", name, why))
    if name != "utf-8":
        return _converted(path, raw, name, mark), name, found
    if not mark:
        if (bad := _first_bad(raw)) is not None:
            raise _undecodable(path, raw, bad, name)
        return raw, name, found
    text = raw[len(mark) :]
    if (bad := _first_bad(text)) is not None:
        raise _undecodable(path, text, bad, name)
    return text, name, found


def _known(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise BadOptionError(
            "encoding", encoding, "the name of an encoding, such as 'utf-8' or 'windows-1252'"
        ) from None


def _unpacked(path: Path) -> tuple[Buffer, list[Statement]]:
    """Return the bytes of a file, unpacked if they are packed, whatever the name says."""
    with open(path, "rb") as file:
        head = file.read(8)
        packed = next((how for magic, how in _MAGIC.items() if head.startswith(magic)), None)
        if packed is None and (named := compression_of(path)):
            raise BadFileError(
                path, f"it is named like {named}, and is not", "Rename it, or make it again"
            )
        if not head:
            raise BadFileError(path, "the file is empty", "A table needs a line of names at least")
        if packed is None:
            file.seek(0)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), []
    import pyarrow as pa

    try:
        with pa.OSFile(str(path)) as inner, pa.CompressedInputStream(inner, packed) as stream:
            raw = stream.read()
    except (OSError, pa.ArrowException) as error:
        raise BadFileError(
            path, f"the {packed} around it is broken or ends too early", "Make the file again"
        ) from error
    if not raw:
        raise BadFileError(path, "the file is empty", "A table needs a line of names at least")
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


def _sniff(path: Path, raw: Buffer) -> tuple[str, str]:
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
        raise BadFileError(
            path,
            f"there is a byte that is not UTF-8, and the file has {letters_of_utf8:,} letters of "
            f"UTF-8 and {others:,} bytes of something else",
            "Repair the line; or give encoding= if the file is something else",
            line=_line(raw, bad),
        )
    if unused := high & set(_UNUSED):
        where = min(raw.find(bytes([byte])) for byte in unused)
        raise BadFileError(
            path,
            "its letters are neither UTF-8 nor Windows-1252",
            "Give encoding=, for example 'cp850', 'cp437', 'mac_roman' or 'windows-1251'",
            line=_line(raw, where),
        )
    letters = bytes(sorted(high)).decode("windows-1252")
    shown = letters[:12] + ("..." if len(letters) > 12 else "")
    same = "" if any(byte < 0xA0 for byte in high) else ", the same as Latin-1 here"
    return "windows-1252", (
        f"not UTF-8, see line {_line(raw, bad)}{same}; beyond ASCII it holds {shown}: "
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
        raise BadFileError(
            path,
            f"a letter there is not {name}" + (", as the file's mark says" if mark else ""),
            "Give the right encoding=, or repair the line",
            line=line,
        ) from None
    return out.removeprefix(codecs.BOM_UTF8)


def _undecodable(path: Path, raw: Buffer, where: int, name: str) -> BadFileError:
    return BadFileError(
        path,
        f"byte {raw[where]:#04x} there is not {name}",
        "Give the right encoding=, for example 'windows-1252', or repair the line",
        line=_line(raw, where),
    )


def _line(raw: Buffer, where: int) -> int:
    head = bytes(raw[:where])
    crlf = head.count(b"\r\n")
    return 1 + head.count(b"\n") + head.count(b"\r") - crlf
