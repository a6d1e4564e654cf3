"""SPSS, Stata and SAS transport out, through pyreadstat; read back and compared before it counts.

What a format cannot hold is converted and stated, or refused. The time of writing, which the three
formats record, is set to midnight of 1 January 1980.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from ..exceptions import BadFileError
from .metadata import Metadata, Span
from .source import Statement
from .statistical_reading import pyreadstat, raw_read

__all__ = ["write_statistical"]

_TITLES = {"spss": "SPSS", "stata": "Stata", "sas-transport": "SAS transport"}
_FAULTS = (OSError, ValueError, OverflowError, TypeError)
_INT32 = (-2_147_483_647, 2_147_483_620)  # of Stata: the rest stands for "missing"


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


def write_statistical(
    name: str,
    table: pa.Table,
    file: BinaryIO,
    path: Path,
    metadata: Metadata,
    *,
    tags: Mapping[str, pa.Array] | None = None,
) -> list[Statement]:
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
        values = values.dictionary.take(values.indices)
        kind = values.type
    if pa.types.is_duration(kind):
        raise BadFileError(
            path, f"column {column!r} holds lengths of time", f"{title} cannot: make it a number"
        )
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            ready.say(column, "written in UTC", f"{title} has no time zones")
            values = values.cast(pa.timestamp(kind.unit, "UTC")).cast(pa.timestamp(kind.unit))
        exact = values.cast(pa.timestamp("us"), safe=False)
        rounded = pc.round_temporal(exact, unit="millisecond")
        if not pc.all(pc.equal(rounded.cast(values.type), values)).as_py() and len(values):
            ready.say(column, "rounded to milliseconds", f"{title} has no more")
        ready.cells[column] = rounded.to_pylist()
    elif pa.types.is_boolean(kind):
        ready.say(column, "written as 0 and 1", f"{title} has no truths")
        ready.cells[column] = values.cast(pa.int8()).to_pylist()
        ready.formats[column] = {"spss": "F1.0", "stata": "", "sas-transport": "F1"}[name]
    elif pa.types.is_integer(kind):
        _prepare_whole(name, path, column, values, ready)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        floats = values.cast(pa.float64())
        if pa.types.is_decimal(kind):
            ready.say(column, "written as a number", f"{title} has no decimals of fixed length")
        if pc.any(pc.is_inf(floats)).as_py():
            raise BadFileError(
                path, f"column {column!r} holds infinity", f"{title} cannot: mark it as missing"
            )
        numbers = [None if v is None or math.isnan(v) else v for v in floats.to_pylist()]
        ready.cells[column], ready.floats = numbers, ready.floats | {column}
    elif pa.types.is_string(kind):
        _prepare_text(path, column, values, ready, title)
    else:  # dates and times of day
        ready.cells[column] = values.to_pylist()


def _prepare_whole(name: str, path: Path, column: str, values: Any, ready: _Prepared) -> None:
    numbers = values.to_pylist()
    largest = max((abs(number) for number in numbers if number is not None), default=0)
    if largest > 2**53:
        raise BadFileError(
            path,
            f"column {column!r} holds whole numbers beyond 2**53",
            f"{_TITLES[name]} keeps 15 digits: write it as text",
        )
    ready.cells[column] = numbers
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
        raise BadFileError(
            path, f"a text of column {column!r} holds a byte 0", f"{title} ends there: remove it"
        )
    if any(text is not None and text != text.rstrip(" ") for text in texts):
        ready.say(column, "spaces at the end of texts left out", f"{title} pads texts with spaces")
    if "" in texts and None in texts:
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
        if (
            name == "sas-transport"
            or (name == "stata" and text)
            or len(fits) < len(variable.labels)
        ):
            ready.say(column, "labels of values not written", f"{title} has no place for them")
        elif column not in ready.labels:
            ready.labels[column] = dict(fits)
    if variable.level and name == "spss":
        ready.levels[column] = variable.level
    if variable.format and column not in ready.formats and column in ready.floats:
        own = variable.format.startswith("%") == (name == "stata")
        if own and name == "spss" and re.fullmatch(r"F\d+\.\d+", variable.format):
            ready.formats[column] = variable.format
    codes = [code for code in variable.missing if isinstance(code, Span) or not _letter(code)]
    if codes and name != "spss":
        shown = ", ".join(map(str, codes))
        ready.say(column, f"codes written as ordinary values: {shown}", f"so it is in {title}")


def _letter(code: Any) -> bool:
    return isinstance(code, str) and len(code) == 1 and (code.islower() or code == "_")


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
    used = sorted({cell for cell in ready.cells[column] if isinstance(cell, str)})
    if used:
        ready.letters[column] = used
    known = ready.labels.get(column)
    if known:
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

    package = pyreadstat()
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
                frame,
                place,
                compress=path.suffix.lower() == ".zsav",
                variable_measure=ready.levels,
                missing_ranges={c: found for c, found in spans.items() if found},
                **options,
            )
        elif name == "stata":
            package.write_dta(frame, place, missing_user_values=ready.letters or None, **options)
        else:
            package.write_xport(frame, place, **options)
    except (package.ReadstatError, package.PyreadstatError, *_FAULTS) as error:
        raise BadFileError(
            path,
            f"{_TITLES[name]} cannot hold this table ({str(error).rstrip('.')})",
            "Rename or convert what is named, or write another format",
        ) from error


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
    cells, _ = raw_read(name, place)
    for column, wrote in ready.cells.items():
        read = cells[column]
        if len(read) != len(wrote):
            raise _changed(path, column, name)
        for one, other in zip(wrote, read):
            if one == other or (one is None and other is None) or one == "" == (other or ""):
                continue
            if hasattr(one, "microsecond") and hasattr(other, "microsecond"):
                if _close(one, other):
                    continue
            elif isinstance(other, float) and math.isnan(other) and one is None:
                continue
            raise _changed(path, column, name)


def _close(one: Any, other: Any) -> bool:
    with contextlib.suppress(TypeError):
        return bool(abs((one - other).total_seconds()) < 5e-4)
    return bool(one.replace(microsecond=0) == other.replace(microsecond=0))


def _changed(path: Path, column: str, name: str) -> BadFileError:
    return BadFileError(
        path,
        f"a value of column {column!r} is another one when read back from {_TITLES[name]}",
        "It is too large or too small for the format: write another one. Nothing was written",
    )


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
        changed = (
            re.sub(rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d", b"01JAN80:00:00:00", head[:720])
            + head[720:]
        )
    file.seek(0)
    file.write(changed)
    file.flush()
