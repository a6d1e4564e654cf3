"""CSV out: the same table gives the same bytes, and text is quoted so that it stays text."""

import codecs
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..exceptions import BadFileError, BadOptionError
from ..frame.arrow import from_texts, scalar
from ..parallel import each
from .source import Statement, compression_of

_CELLS = 1 << 21  # that are turned into text at a time
_MARKS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16": codecs.BOM_UTF16_LE}  # how such files begin


def write_csv(table: pa.Table, file: BinaryIO, path: Path, **options: Any) -> list[Statement]:
    """Write a table of `to_arrow`; the options are those of `write_file`."""
    return write_csv_pieces(iter([table]), file, path, **options)


def write_csv_pieces(
    tables: Iterator[pa.Table], file: BinaryIO, path: Path, *, delimiter: str = ",",
    decimal: str = ".", encoding: str = "utf-8", safe: bool = True,
) -> list[Statement]:  # fmt: skip
    """Write tables of the same columns, one or more, one after the other."""
    _check_options(delimiter, decimal, encoding)
    first = next(tables)
    schema: pa.Schema = first.schema
    names = [neutralise_name(name) if safe else name for name in schema.names]
    formulas: Counter[str] = Counter()
    nans: Counter[str] = Counter()

    def cells(column: tuple[str, pa.ChunkedArray]) -> pa.Array:
        """Return a column of a batch as CSV writes it, null where a cell is empty."""
        name, chunked = column
        values = pa.concat_arrays(chunked.chunks)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_string(values.type):
            texts, count = _quoted(values, safe=safe)
            formulas[name] += count
            return texts
        if pa.types.is_floating(values.type):
            nan = pc.is_nan(values)
            if count := pc.sum(nan).as_py():
                nans[name] += count
                values = pc.if_else(nan, pa.scalar(None, values.type), values)
        return _plain(values, decimal, name)

    packed = compression_of(path)
    encode = _encoder(path, encoding)
    # The stream closes what it writes to: a second descriptor of the same file.
    inner = os.fdopen(os.dup(file.fileno()), "wb")
    packing = nullcontext(inner)
    if packed is not None:
        packing = pa.CompressedOutputStream(pa.PythonFile(inner, mode="w"), packed)
    with inner, packing as out:
        head = delimiter.join('"' + name.replace('"', '""') + '"' for name in names) + "\n"
        out.write(_MARKS.get(codecs.lookup(encoding).name, b"") + encode(head.encode(), 1))
        begin = 0
        for rows in _batches(chain([first], tables), max(1, _CELLS // len(names))):
            lines = _lines(each(cells, zip(rows.column_names, rows.columns)), delimiter)
            data = _bytes_of(lines)
            if (np.frombuffer(data, np.uint8) == 0).any():
                advice = "No text file can: remove it"
                raise BadFileError(path, "a text of the table holds a byte 0", advice)
            out.write(encode(data, 2 + begin))
            begin += rows.num_rows
    return _statements(schema, names, delimiter, +formulas, +nans, safe=safe)


def _batches(tables: Iterable[pa.Table], n_rows: int) -> Iterator[pa.Table]:
    """Cut tables anew, so that the same rows are written together whatever tables they come in."""
    kept: list[pa.Table] = []
    held = 0
    for table in tables:
        kept.append(table)
        held += table.num_rows
        if held < n_rows:
            continue
        joined = pa.concat_tables(kept)
        for begin in range(0, held - n_rows + 1, n_rows):
            yield joined.slice(begin, n_rows)
        kept, held = [joined.slice(held - held % n_rows)], held % n_rows
    if held:
        yield pa.concat_tables(kept)


def _statements(
    schema: pa.Schema, names: list[str], delimiter: str, formulas: Mapping[str, int],
    nans: Mapping[str, int], *, safe: bool,
) -> list[Statement]:  # fmt: skip
    """State what CSV cannot hold, or must not."""
    statements = [
        Statement(f"column {field.name!r}", "text", "CSV keeps no order")
        for field in schema
        if pa.types.is_dictionary(field.type) and field.type.ordered
    ]
    for about, found, counts in (
        ("formulas", "an apostrophe stands before texts that begin as one", formulas),
        ("NaN", "written as missing, which CSV cannot tell apart", nans),
    ):
        if counts:
            columns = [name for name in schema.names if name in counts]
            shown = ", ".join(f"{name} ({counts[name]:,})" for name in columns)
            statements.append(Statement(about, found, shown))
    if not safe:
        statements.append(Statement("formulas", "written as they are", "safe=False was given"))
    if names != schema.names:
        found = "an apostrophe stands before some"
        statements.append(Statement("names", found, "they began as formulas"))
    return [*statements, Statement("delimiter", repr(delimiter))]


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


def _encoder(path: Path, encoding: str) -> Callable[[Any, int], Any]:
    name = codecs.lookup(encoding).name
    name = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(name, name)
    if name == "utf-8":
        return lambda data, _: data

    def encode(data: bytes, line: int) -> bytes:
        text = bytes(data).decode()
        try:
            return text.encode(name)
        except UnicodeEncodeError as error:
            problem = f"{text[error.start]!r} is no letter of {encoding}"
            line += text.count("\n", 0, error.start)
            raise BadFileError(path, problem, "Write encoding='utf-8'", line=line) from None

    return encode


def _lines(cells: list[pa.Array], delimiter: str) -> pa.Array:
    if len(cells) == 1:  # a blank line would be no record to some readers
        cells = [pc.fill_null(cells[0], '""')]
    lines = pc.binary_join_element_wise(
        *cells, scalar(delimiter), null_handling="replace", null_replacement=""
    )
    return pc.binary_join_element_wise(lines, scalar(""), scalar("\n"))


def _plain(column: pa.Array, decimal: str, name: str) -> pa.Array:
    """Return the texts of a column that needs no quotes."""
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        texts = _float_texts(column) if pa.types.is_floating(kind) else column.cast(pa.string())
        return pc.replace_substring(texts, ".", decimal) if decimal != "." else texts
    if pa.types.is_timestamp(kind):
        seconds = column.cast(pa.timestamp("s", kind.tz), safe=False)
        if pc.all(pc.equal(seconds.cast(kind), column)).as_py() is not False:
            column = seconds
    elif pa.types.is_duration(kind):
        expected = "a number: CSV has no lengths of time. Convert it"
        raise BadOptionError(f"column {name!r}", str(kind), expected)
    return column.cast(pa.string())


def _float_texts(column: pa.Array) -> pa.Array:
    """Write floats in the fewest digits that give them back, as the float64 that a reader makes.

    The fewest of a float32 give another float64: 0.1 is not 0.10000000149. As in Python a whole
    float keeps its ".0", so that it is not read as an integer; and it is written out below 1e15,
    where Arrow uses powers of ten from 1e10.
    """
    column = pc.add(column.cast(pa.float64()), scalar(0.0))  # -0.0 + 0.0 is 0.0: no -0.0 is written
    texts = column.cast(pa.string())
    size = pc.abs(column)
    whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(size, scalar(1e15)))
    if not pc.any(whole).as_py():
        return texts
    large = pc.and_(whole, pc.greater_equal(size, scalar(1e9)))
    if pc.any(large).as_py():
        digits = pc.if_else(large, column, pa.scalar(None, column.type)).cast(pa.int64())
        texts = pc.if_else(large, digits.cast(pa.string()), texts)
    return pc.if_else(whole, pc.binary_join_element_wise(texts, scalar("0"), scalar(".")), texts)


def _quoted(texts: pa.Array, *, safe: bool) -> tuple[pa.Array, int]:
    """Return texts in quotes, formulas neutralised if `safe`, and the number of formulas.

    Equal texts are quoted once, which pays where they repeat.
    """
    coded = texts.dictionary_encode()
    repeat = 2 * len(coded.dictionary) <= len(texts)
    distinct = coded.dictionary if repeat else texts
    marked, risky = neutralise(distinct) if safe else (distinct, None)
    quoted = _in_quotes(marked)
    if repeat:
        quoted = quoted.take(coded.indices)
        risky = None if risky is None else risky.take(coded.indices)
    return quoted, 0 if risky is None else int(pc.sum(risky).as_py() or 0)


def _in_quotes(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring(texts, '"')).as_py():
        texts = pc.replace_substring(texts, '"', '""')
    return pc.binary_join_element_wise(scalar('"'), texts, scalar('"'), scalar(""))


# Text that a spreadsheet would run as a formula, such as `=HYPERLINK(...)`, when somebody opens a
# release in one (OWASP: CSV injection). Numbers with a sign, "-5" or "+3,5", and a lone dash are
# no formulas. The second half: full-width forms, which some spreadsheets read as the plain ones.
_BEGINS = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_HARMLESS = r"^[+-]([0-9]+([.,][0-9]+)*([eE][+-]?[0-9]+)?)?$"


def neutralise(texts: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """Put an apostrophe before each text that begins like a formula; return also which do."""
    begins = pc.match_substring_regex(texts, _BEGINS)
    if not pc.any(begins).as_py():
        return texts, None
    risky = pc.and_not(begins, pc.match_substring_regex(texts, _HARMLESS))
    return pc.if_else(risky, pc.binary_join_element_wise("'", texts, ""), texts), risky


def neutralise_name(name: str) -> str:
    """Do the same for a name of a column."""
    return str(neutralise(from_texts([name]))[0][0])


def _bytes_of(lines: pa.Array) -> Any:
    """Return the letters of all lines as one piece of memory."""
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int32)
    begin, end = int(ends[lines.offset]), int(ends[lines.offset + len(lines)])
    return memoryview(data)[begin:end] if data is not None else b""
