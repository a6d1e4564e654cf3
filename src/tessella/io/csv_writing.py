"""CSV out: the same table gives the same bytes, and text is quoted so that it stays text."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..exceptions import BadFileError, BadOptionError
from .formats import compression_of
from .formulas import neutralise, neutralise_name
from .source import Statement

__all__ = ["write_csv"]

_CELLS = 1 << 21  # that are turned into text at a time


def write_csv(
    table: pa.Table,
    file: BinaryIO,
    path: Path,
    *,
    delimiter: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    safe: bool = True,
) -> list[Statement]:
    """Write a settled table; the options are those of `write_file`."""
    _check_options(delimiter, decimal, encoding)
    table, said = _prepared(table, safe=safe)
    names = [neutralise_name(name) if safe else name for name in table.column_names]
    if names != table.column_names:
        said.append(
            Statement("names", "an apostrophe stands before some", "they began as formulas")
        )
    said.append(Statement("delimiter", repr(delimiter)))
    squeezed = compression_of(path)
    encode = _encoder(path, encoding)
    # The stream closes what it writes to: a second descriptor of the same file.
    inner = os.fdopen(os.dup(file.fileno()), "wb")
    with inner, _squeezing(inner, squeezed) as out:
        out.write(_mark(encoding) + encode((_line(names, delimiter) + "\n").encode(), 1))
        done = 0
        for rows in _batches(table):
            lines = _lines(rows, delimiter, decimal)
            data = _bytes_of(lines)
            if (np.frombuffer(data, np.uint8) == 0).any():
                raise BadFileError(
                    path, "a text of the table holds a byte 0", "No text file can: remove it"
                )
            out.write(encode(data, 2 + done))
            done += rows.num_rows
    return said


def _squeezing(inner: BinaryIO, squeezed: str | None) -> Any:
    if squeezed is None:
        return nullcontext(inner)
    return pa.CompressedOutputStream(pa.PythonFile(inner, mode="w"), squeezed)


def _check_options(delimiter: str, decimal: str, encoding: str) -> None:
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n".-+' + "0123456789":
        raise BadOptionError("delimiter", delimiter, "one ASCII sign that no number has")
    if decimal not in (".", ","):
        raise BadOptionError("decimal", decimal, "'.' or ','")
    if decimal == delimiter:
        raise BadOptionError("delimiter", delimiter, "another sign than decimal, such as ';'")
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise BadOptionError("encoding", encoding, "the name of an encoding") from None


def _mark(encoding: str) -> bytes:
    """Return the mark that files of this encoding begin with."""
    marks = {"utf-8-sig": codecs.BOM_UTF8, "utf-16": codecs.BOM_UTF16_LE}
    return marks.get(codecs.lookup(encoding).name, b"")


def _encoder(path: Path, encoding: str) -> Callable[[Any, int], Any]:
    name = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(
        codecs.lookup(encoding).name, codecs.lookup(encoding).name
    )
    if name == "utf-8":
        return lambda data, _: data

    def encode(data: bytes, line: int) -> bytes:
        text = bytes(data).decode()
        try:
            return text.encode(name)
        except UnicodeEncodeError as error:
            raise BadFileError(
                path,
                f"{text[error.start]!r} is no letter of {encoding}",
                "Write encoding='utf-8'",
                line=line + text.count("\n", 0, error.start),
            ) from None

    return encode


def _prepared(table: pa.Table, *, safe: bool) -> tuple[pa.Table, list[Statement]]:
    """Replace what CSV cannot hold or must not: categories, NaN, formulas."""
    said: list[Statement] = []
    columns: dict[str, Any] = {}
    formulas, nans = {}, {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        kind = column.type
        if pa.types.is_dictionary(kind):
            if kind.ordered:
                said.append(Statement(f"column {name!r}", "text", "CSV keeps no order"))
            column = column.dictionary.take(column.indices)
            kind = column.type
        if pa.types.is_string(kind):
            column, count = neutralise(column) if safe else (column, 0)
            if count:
                formulas[name] = count
        elif pa.types.is_floating(kind) and (count := pc.sum(pc.is_nan(column)).as_py()):
            nans[name] = count
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        columns[name] = column
    if formulas:
        shown = ", ".join(f"{name} ({count:,})" for name, count in formulas.items())
        said.append(
            Statement("formulas", "an apostrophe stands before texts that begin as one", shown)
        )
    if nans:
        shown = ", ".join(f"{name} ({count:,})" for name, count in nans.items())
        said.append(Statement("NaN", "written as missing, which CSV cannot tell apart", shown))
    if not safe:
        said.append(Statement("formulas", "written as they are", "safe=False was given"))
    return pa.table(columns), said


def _batches(table: pa.Table) -> Iterator[pa.Table]:
    rows = max(1, _CELLS // table.num_columns)
    for begin in range(0, table.num_rows, rows):
        yield table.slice(begin, rows)


def _lines(rows: pa.Table, delimiter: str, decimal: str) -> pa.Array:
    cells = [_cells(column.combine_chunks(), decimal, name) for name, column in _named(rows)]
    if len(cells) == 1:  # a blank line would be no record to some readers
        cells = [pc.fill_null(cells[0], '""')]
    lines = pc.binary_join_element_wise(
        *cells, delimiter, null_handling="replace", null_replacement=""
    )
    return pc.binary_join_element_wise(lines, "", "\n")


def _named(rows: pa.Table) -> Iterator[tuple[str, Any]]:
    return zip(rows.column_names, rows.columns)


def _cells(column: pa.Array, decimal: str, name: str) -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind):
        return _quoted(column)
    if pa.types.is_floating(kind):
        texts = _float_texts(column)
        return pc.replace_substring(texts, ".", decimal) if decimal != "." else texts
    if pa.types.is_decimal(kind):
        texts = column.cast(pa.string())
        return pc.replace_substring(texts, ".", decimal) if decimal != "." else texts
    if pa.types.is_timestamp(kind):
        seconds = column.cast(pa.timestamp("s", kind.tz), safe=False)
        if pc.all(pc.equal(seconds.cast(kind), column)).as_py() is not False:
            column = seconds
        return column.cast(pa.string())
    if pa.types.is_duration(kind):
        raise BadOptionError(
            f"column {name!r}", str(kind), "a number: CSV has no lengths of time. Convert it"
        )
    return column.cast(pa.string())


def _float_texts(column: pa.Array) -> pa.Array:
    """Write floats in the fewest digits that give them back.

    As in Python a whole float keeps its ".0", so that it is not read as an integer; and it is
    written out below 1e15, where Arrow uses powers of ten from 1e10.
    """
    texts = column.cast(pa.string())
    size = pc.abs(column)
    whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(size, 1e15))
    if not pc.any(whole).as_py():
        return texts
    large = pc.and_(whole, pc.greater_equal(size, 1e9))
    if pc.any(large).as_py():
        digits = pc.if_else(large, column, pa.scalar(None, column.type)).cast(pa.int64())
        texts = pc.if_else(large, digits.cast(pa.string()), texts)
    return pc.if_else(whole, pc.binary_join_element_wise(texts, "0", "."), texts)


def _quoted(texts: pa.Array) -> pa.Array:
    doubled = texts
    if pc.any(pc.match_substring(texts, '"')).as_py():
        doubled = pc.replace_substring(texts, '"', '""')
    return pc.binary_join_element_wise('"', doubled, '"', "")


def _line(names: list[str], delimiter: str) -> str:
    return delimiter.join('"' + name.replace('"', '""') + '"' for name in names)


def _bytes_of(lines: pa.Array) -> Any:
    """Return the letters of all lines as one piece of memory."""
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int32)
    begin, end = int(ends[lines.offset]), int(ends[lines.offset + len(lines)])
    return memoryview(data)[begin:end] if data is not None else b""
