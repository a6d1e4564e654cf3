"""SPSS, Stata and SAS, through pyreadstat: values, labels, levels, and codes for "missing".

These formats keep most numbers as floats. A column becomes integers if the file says so, by its
storage (Stata) or by a display format without decimals, and every value is whole.

What a format cannot hold is converted and stated, or refused; what was written is read back and
compared before it counts. The time of writing, which SPSS, Stata and SAS transport record, is set
to midnight of 1 January 1980.
"""

import contextlib
import datetime as dt
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, get_args

import pyarrow as pa
import pyarrow.compute as pc

from .._lazy import optional
from .._wording import listed
from ..exceptions import BadFileError
from .arrow import as_float64, check_finite, check_whole, decoded, to_milliseconds
from .source import Level, Metadata, Source, Span, Statement, Variable, check_columns

_TITLES = {"spss": "SPSS", "stata": "Stata", "sas-transport": "SAS transport"}
_FAULTS = (ValueError, OverflowError, TypeError)
_INT32 = (-2_147_483_647, 2_147_483_620)  # of Stata: the rest stands for "missing"
_WHOLE = re.compile(r"(F|N|COMMA|DOT|%)?-?\d*(\.0?)?[fF]?")
_STORED = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "float": pa.float32()}
_LETTERS = frozenset("_abcdefghijklmnopqrstuvwxyz")


_READERS = {"spss": "read_sav", "spss-portable": "read_por", "stata": "read_dta",
            "sas": "read_sas7bdat", "sas-transport": "read_xport"}  # fmt: skip


def _package() -> Any:
    return optional("pyreadstat", extra="stats", purpose="Reading SPSS, Stata and SAS files")


def _raw_read(name: str, path: str | Path, **options: Any) -> tuple[dict[str, Any], Any]:
    """Call the reader of pyreadstat for a format; columns come as lists."""
    if name in ("spss", "stata", "sas"):
        options["user_missing"] = True  # or codes for "missing" would vanish
    cells, meta = getattr(_package(), _READERS[name])(str(path), output_format="dict", **options)
    return dict(cells), meta


def _read_file(
    name: str, path: Path, *, columns: Sequence[str] | None = None, encoding: str | None = None,
    catalog: str | os.PathLike[str] | None = None,
) -> Source:  # fmt: skip
    """Read a file of SPSS, Stata or SAS; the options are those of `read_file`."""
    options = {"encoding": encoding, "catalog_file": None if catalog is None else str(catalog)}
    package = _package()
    try:
        given = {option: value for option, value in options.items() if value is not None}
        cells, meta = _raw_read(name, path, **given)
    except (package.ReadstatError, package.PyreadstatError, ValueError) as error:
        problem = f"it is no {name} file that can be read ({error})"
        advice = "Make it again, give format= or, if letters are the matter, encoding="
        raise BadFileError(path, problem, advice) from error
    wanted = list(cells) if columns is None else list(columns)
    check_columns(wanted, list(cells))
    statements = [Statement("format", name)]
    if encoding is not None:
        statements.append(Statement("encoding", encoding, "given"))
    elif stored := getattr(meta, "file_encoding", None):
        statements.append(Statement("encoding", stored, "stored in the file"))
    arrays, tags = {}, {}
    for column in wanted:
        arrays[column], letters = _column(cells.pop(column), meta, column, name)
        if letters is not None:
            tags[column] = letters
    if whole := [column for column in arrays if pa.types.is_int64(arrays[column].type)]:
        statements.append(Statement("whole numbers", "by format without decimals", listed(whole)))
    if tags:
        kept = "null in the table, kept apart"
        statements.append(Statement("letters of missing values", kept, ", ".join(tags)))
    if getattr(meta, "notes", None) or getattr(meta, "file_label", None):
        statements.append(Statement("notes and label of the file", "left out"))
    metadata = Metadata({column: _variable(meta, column, arrays[column]) for column in wanted})
    return Source.read(
        path, name, pa.table(arrays), statements, metadata=metadata, tags=tags, encoding=encoding,
        columns=columns,
    )  # fmt: skip


def _column(cells: Any, meta: Any, column: str, name: str) -> tuple[pa.Array, pa.Array | None]:
    """Return a column in its type, and the letters of its missing cells if it has any."""
    stored = (meta.readstat_variable_types or {}).get(column) or ""
    form = (meta.original_variable_types or {}).get(column) or ""
    cells = list(cells)
    if stored.startswith("string"):
        # An empty text is how these formats write a missing one.
        return pa.array([cell or None for cell in cells], pa.string()), None
    letters = None
    if name in ("stata", "sas") and any(isinstance(cell, str) for cell in cells):
        marks = [cell.lower() if isinstance(cell, str) else None for cell in cells]
        letters = pa.array(marks, pa.string())
        cells = [None if isinstance(cell, str) else cell for cell in cells]
    filled = next((cell for cell in cells if cell is not None), None)
    if isinstance(filled, dt.datetime):
        # SPSS counts seconds in a float since 1582: microseconds are noise.
        moments = pc.round_temporal(pa.array(cells, pa.timestamp("us")), unit="millisecond")
        return moments, letters
    if isinstance(filled, dt.date):
        return pa.array(cells, pa.date32()), letters
    if isinstance(filled, dt.time):
        return pa.array(cells, pa.time64("us")), letters
    if stored in _STORED:
        return pa.array(cells, _STORED[stored], from_pandas=True), letters
    values = pa.array(cells, pa.float64(), from_pandas=True)
    return (values.cast(pa.int64()) if _is_whole(values, form, name) else values), letters


def _is_whole(values: pa.Array, form: str, name: str) -> bool:
    """Return whether the display format has no decimals, and no value has any."""
    if name == "stata":
        stated = re.fullmatch(r"%-?0?\d+\.0f", form)
    else:
        stated = _WHOLE.fullmatch(form.upper()) if form else None
    whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), 2.0**53))
    return bool(stated and pc.all(whole).as_py() and values.null_count < len(values))


def _variable(meta: Any, column: str, values: pa.Array) -> Variable:
    level = (meta.variable_measure or {}).get(column)
    whole = pa.types.is_integer(values.type)
    labels = (meta.variable_value_labels or {}).get(column) or {}
    missing: list[Any] = []
    for span in (meta.missing_ranges or {}).get(column, []):
        low, high = span["lo"], span["hi"]
        missing.append(_plain(low, whole) if low == high else Span(low, high))
    missing += [letter.lower() for letter in (meta.missing_user_values or {}).get(column, [])]
    return Variable(
        label=(meta.column_names_to_labels or {}).get(column) or "",
        labels={_plain(value, whole): text for value, text in labels.items()},
        missing=tuple(missing),
        level=level if level in get_args(Level) else None,
        format=(meta.original_variable_types or {}).get(column) or "",
    )


def _plain(value: Any, whole: bool) -> Any:
    """Return 1 for 1.0 in a column of whole numbers, and letters for missing in lower case."""
    if isinstance(value, str):
        return value.lower() if whole and value.lower() in _LETTERS else value
    if isinstance(value, float) and value.is_integer() and whole:
        return int(value)
    return value


@dataclass
class _Prepared:
    """Columns as pyreadstat wants them, and what it should write about them."""

    cells: dict[str, list[Any]] = field(default_factory=dict)
    labels: dict[str, dict[Any, str]] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    letters: dict[str, list[str]] = field(default_factory=dict)
    floats: set[str] = field(default_factory=set)
    statements: list[Statement] = field(default_factory=list)

    def say(self, name: str, found: str, why: str) -> None:
        self.statements.append(Statement(f"column {name!r}", found, why))


def _write_file(
    name: str, table: pa.Table, file: BinaryIO, path: Path, *, metadata: Metadata,
    tags: Mapping[str, pa.Array] | None = None,
) -> list[Statement]:  # fmt: skip
    """Write a table of `to_arrow` as SPSS, Stata or SAS transport."""
    ready = _Prepared()
    for column in table.column_names:
        _prepare(name, path, column, table.column(column).combine_chunks(), ready)
        _describe(name, column, metadata, ready)
    for column, letters in (tags or {}).items():
        _put_letters(name, column, letters, ready)
    with _named(file) as place:
        _write(name, path, place, ready, metadata)
        _compare(name, path, place, ready)
    _stop_the_clock(name, file)
    return ready.statements


def _prepare(name: str, path: Path, column: str, values: Any, ready: _Prepared) -> None:
    """Turn a column into what the format can hold, and say so where that is not the same."""
    title, kind = _TITLES[name], values.type
    if pa.types.is_dictionary(kind):
        texts = pa.types.is_string(kind.value_type)
        if texts and name != "sas-transport":
            names = values.dictionary.to_pylist()
            ready.labels[column] = dict(enumerate(names, start=1))
            ready.levels[column] = "ordinal" if kind.ordered else "nominal"
            ready.formats[column] = "F8.0" if name == "spss" else "%12.0g"
            ready.cells[column] = pc.add(values.indices, 1).to_pylist()
            ready.say(column, "codes 1, 2, ... with labels", f"categories in {title}")
            return
        ready.say(column, "written as plain values", f"{title} has no categories")
        values = decoded(values)
        kind = values.type
    if pa.types.is_duration(kind):
        advice = f"{title} cannot: make it a number"
        raise BadFileError(path, f"column {column!r} holds lengths of time", advice)
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            ready.say(column, "written in UTC", f"{title} has no time zones")
        moments, exact = to_milliseconds(values)
        if not exact:
            ready.say(column, "rounded to milliseconds", f"{title} has no more")
        ready.cells[column] = moments.to_pylist()
    elif pa.types.is_boolean(kind):
        ready.say(column, "written as 0 and 1", f"{title} has no truths")
        ready.cells[column] = values.cast(pa.int8()).to_pylist()
        ready.formats[column] = {"spss": "F1.0", "stata": "", "sas-transport": "F1"}[name]
    elif pa.types.is_integer(kind):
        _prepare_whole(name, path, column, values, ready)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        floats = as_float64(values)
        if pa.types.is_decimal(kind):
            ready.say(column, "written as a number", f"{title} has no decimals of fixed length")
        check_finite(floats, column, path, title)
        numbers = [None if v is None or math.isnan(v) else v for v in floats.to_pylist()]
        ready.cells[column], ready.floats = numbers, ready.floats | {column}
    elif pa.types.is_string(kind):
        _prepare_text(path, column, values, ready, title)
    else:  # dates and times of day
        ready.cells[column] = values.to_pylist()


def _prepare_whole(name: str, path: Path, column: str, values: Any, ready: _Prepared) -> None:
    largest = check_whole(values, column, path, _TITLES[name])
    numbers = ready.cells[column] = values.to_pylist()
    width = max(8, len(str(largest)) + 1)
    long = any(number is not None and not _INT32[0] <= number <= _INT32[1] for number in numbers)
    if name == "stata":
        ready.formats[column] = "%21.0f" if long else ""
    else:
        ready.formats[column] = f"F{width}.0" if name == "spss" else f"F{width}"
    if long or name == "sas-transport":
        ready.floats.add(column)


def _prepare_text(path: Path, column: str, values: Any, ready: _Prepared, title: str) -> None:
    texts = values.to_pylist()
    if any(text is not None and "\0" in text for text in texts):
        advice = f"{title} ends there: remove it"
        raise BadFileError(path, f"a text of column {column!r} holds a byte 0", advice)
    if any(text is not None and text != text.rstrip(" ") for text in texts):
        ready.say(column, "spaces at the end of texts left out", f"{title} pads texts with spaces")
    if "" in texts:
        ready.say(column, "empty and missing texts are one", f"so it is in {title}")
    ready.cells[column] = [(text or "").rstrip(" ") for text in texts]


def _describe(name: str, column: str, metadata: Metadata, ready: _Prepared) -> None:
    """Add labels, level and format, as far as the format has them."""
    variable, title = metadata[column], _TITLES[name]
    if variable.labels:
        letters = {v: t for v, t in variable.labels.items() if isinstance(v, str)}
        text = any(isinstance(cell, str) for cell in ready.cells[column])
        fits = variable.labels if text == bool(letters) or name == "stata" else {}
        if name == "stata" and not text:
            fits = {v: t for v, t in fits.items() if isinstance(v, str) or float(v).is_integer()}
        no_place = name == "sas-transport" or (name == "stata" and text)
        if no_place or len(fits) < len(variable.labels):
            ready.say(column, "labels of values not written", f"{title} has no place for them")
        elif column not in ready.labels:
            ready.labels[column] = dict(fits)
    if variable.level and name == "spss":
        ready.levels[column] = variable.level
    if name == "spss" and column in ready.floats and re.fullmatch(r"F\d+\.\d+", variable.format):
        ready.formats.setdefault(column, variable.format)
    codes = [code for code in variable.missing if code not in _LETTERS]
    if codes and name != "spss":
        shown = ", ".join(map(str, codes))
        ready.say(column, f"codes written as ordinary values: {shown}", f"so it is in {title}")


def _put_letters(name: str, column: str, letters: Any, ready: _Prepared) -> None:
    """Give missing cells the letter they had, where row by row the table is still the same."""
    cells = ready.cells.get(column)
    if cells is None:
        return
    if name == "sas-transport" or len(letters) != len(cells):
        why = "the table has other records" if len(letters) != len(cells) else "not in transport"
        ready.say(column, "letters of missing values not written", why)
        return
    marks = letters.to_pylist()
    ready.cells[column] = [mark if cell is None else cell for cell, mark in zip(cells, marks)]
    if used := sorted({cell for cell in ready.cells[column] if isinstance(cell, str)}):
        ready.letters[column] = used
    if known := ready.labels.get(column):
        ready.labels[column] = {
            v: t for v, t in known.items() if not isinstance(v, str) or v in used
        }


@contextlib.contextmanager
def _named(file: BinaryIO) -> Iterator[str]:
    """Give a path by which the open file can be written; elsewhere, a private copy."""
    file.flush()
    own = f"/proc/self/fd/{file.fileno()}"
    if os.path.exists(own):
        yield own
        return
    with tempfile.TemporaryDirectory(prefix="tessella-unfinished-") as folder:
        copy = Path(folder, "release")
        yield str(copy)
        file.write(copy.read_bytes())


def _write(name: str, path: Path, place: str, ready: _Prepared, metadata: Metadata) -> None:
    import pandas as pd

    package = _package()
    columns = {}
    for column, cells in ready.cells.items():
        number = column in ready.floats and column not in ready.letters
        empty = all(cell is None for cell in cells)  # its type would be guessed
        columns[column] = pd.Series(cells, dtype=float if number or empty else object)
    frame = pd.DataFrame(columns)
    options: dict[str, Any] = {
        "column_labels": {c: metadata[c].label for c in columns if metadata[c].label},
        "variable_format": {c: form for c, form in ready.formats.items() if form},
    }
    if name != "sas-transport":
        options["variable_value_labels"] = {c: v for c, v in ready.labels.items() if v}
    try:
        if name == "spss":
            spans = {c: _spans(metadata[c].missing, ready.cells[c]) for c in columns}
            package.write_sav(
                frame, place, compress=path.suffix.lower() == ".zsav",
                variable_measure=ready.levels,
                missing_ranges={c: found for c, found in spans.items() if found}, **options,
            )  # fmt: skip
        elif name == "stata":
            package.write_dta(frame, place, missing_user_values=ready.letters or None, **options)
        else:
            package.write_xport(frame, place, **options)
    except (package.ReadstatError, package.PyreadstatError, *_FAULTS) as error:
        if "Unable to write" in str(error):  # nothing else is known of a full disk
            raise OSError("its bytes were not taken, the disk may be full") from error
        problem = f"{_TITLES[name]} cannot hold this table ({str(error).rstrip('.')})"
        advice = "Rename or convert what is named, or write another format"
        raise BadFileError(path, problem, advice) from error


def _spans(missing: tuple[Any, ...], cells: list[Any]) -> list[Any]:
    """Return codes as pyreadstat wants them; in a column of numbers, letters have no place."""
    text = any(isinstance(cell, str) for cell in cells)
    return [
        {"lo": code.low, "hi": code.high} if isinstance(code, Span) else code
        for code in missing
        if isinstance(code, str) == text
    ]


def _compare(name: str, path: Path, place: str, ready: _Prepared) -> None:
    """Read the file back, and refuse it if any cell is another."""
    package = _package()
    try:
        cells, _ = _raw_read(name, place)
    except (package.ReadstatError, package.PyreadstatError) as error:
        raise OSError("it was cut off, the disk may be full") from error
    for column, wrote in ready.cells.items():
        if len(cells[column]) < len(wrote):
            raise OSError("it was cut off, the disk may be full")
        if len(cells[column]) != len(wrote) or not all(map(_is_same, wrote, cells[column])):
            other = f"a value of column {column!r} is another one when read back from"
            size = "It is too large or too small for the format"
            advice = f"{size}: write another one. Nothing was written"
            raise BadFileError(path, f"{other} {_TITLES[name]}", advice)


def _is_same(wrote: Any, read: Any) -> bool:
    if wrote is None:
        return read is None or (isinstance(read, float) and math.isnan(read))
    if wrote == "":
        return not read
    if wrote == read or not (hasattr(wrote, "microsecond") and hasattr(read, "microsecond")):
        return bool(wrote == read)
    with contextlib.suppress(TypeError):  # moments, to half a millisecond
        return bool(abs((wrote - read).total_seconds()) < 5e-4)
    return bool(wrote.replace(microsecond=0) == read.replace(microsecond=0))


def _stop_the_clock(name: str, file: BinaryIO) -> None:
    """Overwrite the time of writing, so that the same table gives the same bytes."""
    file.flush()
    file.seek(0)
    head = file.read(2000)
    if name == "spss":  # creation date and time, at bytes 92 and 101 of the header
        changed = head[:92] + b"01 Jan 8000:00:00" + head[109:]
    elif name == "stata":
        changed = re.sub(rb"(<timestamp>\x11)[^<]{17}<", rb"\g<1>01 Jan 1980 00:00<", head, count=1)
    else:
        time = rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d"
        changed = re.sub(time, b"01JAN80:00:00:00", head[:720]) + head[720:]
    file.seek(0)
    file.write(changed)
    file.flush()


read_spss, read_portable, read_stata, read_sas, read_transport = (
    partial(_read_file, name) for name in _READERS
)
write_spss, write_stata, write_transport = (partial(_write_file, name) for name in _TITLES)
