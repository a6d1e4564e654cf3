"""SPSS, Stata and SAS in, through pyreadstat: values, labels, levels, and codes for "missing".

These formats keep most numbers as floats. A column becomes integers if the file says so, by its
storage (Stata) or by a display format without decimals, and every value is whole.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._lazy import optional
from ..exceptions import BadFileError, UnknownColumnError
from .metadata import Level, Metadata, Span, Variable
from .source import ReadingReport, Source, Statement

__all__ = ["READERS"]

_WHOLE = re.compile(r"(F|N|COMMA|DOT|%)?-?\d*(\.0?)?[fF]?")
_STORED = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "float": pa.float32()}
_LETTERS = frozenset("_abcdefghijklmnopqrstuvwxyz")


def pyreadstat() -> Any:
    """Import pyreadstat, or name the extra that brings it."""
    return optional("pyreadstat", extra="stats", purpose="Reading SPSS, Stata and SAS files")


def _reader(name: str) -> Callable[..., Source]:
    def read(
        path: Path,
        *,
        columns: Sequence[str] | None = None,
        encoding: str | None = None,
        catalog: str | os.PathLike[str] | None = None,
    ) -> Source:
        return _read(name, path, columns=columns, encoding=encoding, catalog=catalog)

    return read


READERS = {
    name: _reader(name) for name in ("spss", "spss-portable", "stata", "sas", "sas-transport")
}


def raw_read(name: str, path: str | Path, **options: Any) -> tuple[dict[str, Any], Any]:
    """Call the reader of pyreadstat for a format; columns come as lists."""
    package = pyreadstat()
    readers = {
        "spss": package.read_sav,
        "spss-portable": package.read_por,
        "stata": package.read_dta,
        "sas": package.read_sas7bdat,
        "sas-transport": package.read_xport,
    }
    if name in ("spss", "stata", "sas"):
        options["user_missing"] = True  # or codes for "missing" would vanish
    cells, meta = readers[name](str(path), output_format="dict", **options)
    return dict(cells), meta


def _read(
    name: str,
    path: Path,
    *,
    columns: Sequence[str] | None,
    encoding: str | None,
    catalog: str | os.PathLike[str] | None,
) -> Source:
    options: dict[str, Any] = {}
    if encoding is not None:
        options["encoding"] = encoding
    if catalog is not None:
        options["catalog_file"] = str(catalog)
    package = pyreadstat()
    try:
        cells, meta = raw_read(name, path, **options)
    except (package.ReadstatError, package.PyreadstatError, OSError, ValueError) as error:
        raise BadFileError(
            path,
            f"it is no {name} file that can be read ({error})",
            "Make it again, give format= or, if letters are the matter, encoding=",
        ) from error
    wanted = list(cells) if columns is None else list(columns)
    for column in wanted:
        if column not in cells:
            raise UnknownColumnError(column, list(cells), who="read_file")
    statements = [Statement("format", name), *_of_encoding(meta, encoding)]
    arrays, tags = {}, {}
    for column in wanted:
        arrays[column], letters = _column(cells.pop(column), _facts(meta, column), name)
        if letters is not None:
            tags[column] = letters
    metadata = Metadata({column: _variable(meta, column, arrays[column]) for column in wanted})
    statements += _statements(arrays, meta, tags)
    keep: dict[str, Any] = {"format": name}
    keep |= {key: value for key, value in (("encoding", encoding),) if value is not None}
    if columns is not None:
        keep["columns"] = wanted
    return Source(
        table=pa.table(arrays),
        metadata=metadata,
        how=ReadingReport(tuple(statements), keep),
        format=name,
        path=path,
        tags=tags,
    )


def _facts(meta: Any, column: str) -> tuple[str, str]:
    """Return how a column is stored, and its display format."""
    stored = (meta.readstat_variable_types or {}).get(column) or ""
    return stored, (meta.original_variable_types or {}).get(column) or ""


def _column(cells: Any, facts: tuple[str, str], name: str) -> tuple[pa.Array, pa.Array | None]:
    stored, form = facts
    cells = list(cells)
    filled = next((cell for cell in cells if cell is not None), None)
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
    if _says_whole(form, name) and _all_whole(values):
        values = values.cast(pa.int64())
    return values, letters


def _says_whole(form: str, name: str) -> bool:
    if name == "stata":
        return bool(re.fullmatch(r"%-?0?\d+\.0f", form))
    return bool(form) and bool(_WHOLE.fullmatch(form.upper()))


def _all_whole(values: pa.Array) -> bool:
    whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), 2.0**53))
    return bool(pc.all(whole).as_py()) and values.null_count < len(values)


def _variable(meta: Any, column: str, values: pa.Array) -> Variable:
    label = (meta.column_names_to_labels or {}).get(column) or ""
    level = (meta.variable_measure or {}).get(column)
    whole = pa.types.is_integer(values.type)
    labels = (meta.variable_value_labels or {}).get(column) or {}
    levels: Mapping[str, Level] = {"nominal": "nominal", "ordinal": "ordinal", "scale": "scale"}
    missing: list[Any] = []
    for span in (meta.missing_ranges or {}).get(column, []):
        low, high = span["lo"], span["hi"]
        missing.append(_plain(low, whole) if low == high else Span(low, high))
    missing += [letter.lower() for letter in (meta.missing_user_values or {}).get(column, [])]
    return Variable(
        label=label,
        labels={_plain(value, whole): text for value, text in labels.items()},
        missing=tuple(missing),
        level=levels.get(level or ""),
        format=(meta.original_variable_types or {}).get(column) or "",
    )


def _plain(value: Any, whole: bool) -> Any:
    """Return 1 for 1.0 in a column of whole numbers, and letters for missing in lower case."""
    if isinstance(value, str):
        return value.lower() if whole and value.lower() in _LETTERS else value
    if isinstance(value, float) and value.is_integer() and whole:
        return int(value)
    return value


def _of_encoding(meta: Any, encoding: str | None) -> list[Statement]:
    if encoding is not None:
        return [Statement("encoding", encoding, "given")]
    stored = getattr(meta, "file_encoding", None)
    return [Statement("encoding", stored, "stored in the file")] if stored else []


def _statements(
    arrays: Mapping[str, pa.Array], meta: Any, tags: Mapping[str, Any]
) -> list[Statement]:
    statements = []
    whole = [name for name, values in arrays.items() if pa.types.is_int64(values.type)]
    if whole:
        shown = ", ".join(whole[:8]) + (", ..." if len(whole) > 8 else "")
        statements.append(Statement("whole numbers", "by format without decimals", shown))
    if tags:
        shown = ", ".join(tags)
        statements.append(
            Statement("letters of missing values", "null in the table, kept apart", shown)
        )
    if getattr(meta, "notes", None) or getattr(meta, "file_label", None):
        statements.append(Statement("notes and label of the file", "left out"))
    return statements
