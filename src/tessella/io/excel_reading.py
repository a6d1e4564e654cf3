"""Excel in, through openpyxl: cells have types, and a column has the one that all of them have."""

import datetime as dt
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from .._lazy import optional
from ..exceptions import BadFileError, UnknownOptionError
from .column_types import CORRECT, TOKENS, Missing, Type, check_types, missing_words
from .source import Source, Statement, check_columns

_DECIMALS = re.compile(r"0\.0|\.#|%|E\+")
_CLOCK = re.compile(r"[hs]", re.IGNORECASE)
_LITERAL = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')


def read_excel(
    path: Path, *, sheet: str | None = None, missing: Missing = None,
    types: Mapping[str, Type] | None = None, columns: Sequence[str] | None = None,
) -> Source:  # fmt: skip
    """Read one sheet of an Excel file; the options are those of `read_file`."""
    openpyxl = optional("openpyxl", extra="excel", purpose="Reading Excel files")
    check_types(types or {})
    with _opened(openpyxl, path, data_only=True) as book:
        name, rows, statements = _choose(path, book, sheet)
    if _has_formulas(path):
        statements += _check_formulas(openpyxl, path, name, rows)
    first = next(iter(rows))
    titles, width = _names(path, first, rows[first], rows, statements)
    body = {place: cells for place, cells in rows.items() if place > first}
    for place in range(first + 1, max(rows)):
        if place not in rows:
            problem = "this row is blank, and the table goes on below it"
            raise BadFileError(path, problem, "Delete the row, or fill it", line=place)
    wanted = titles if columns is None else list(columns)
    check_columns((*wanted, *(types or {})), titles)
    words = missing_words(missing, titles)
    arrays = {}
    for j, title in enumerate(titles[:width]):
        if title not in wanted:
            continue
        column = _Column(path=path, name=title, words=words.get(title, ()))
        for place, cells in body.items():
            column.add(place, cells[j] if j < len(cells) else None)
        arrays[title] = column.typed((types or {}).get(title), statements)
    table = pa.table({title: arrays[title] for title in wanted})
    return Source.read(
        path, "excel", table, statements, sheet=name, missing=missing, types=types, columns=columns
    )


@contextmanager
def _opened(openpyxl: Any, path: Path, *, data_only: bool) -> Iterator[Any]:
    with open(path, "rb") as file:  # which openpyxl leaves open where a sheet is damaged
        with warnings.catch_warnings():  # of styles and extensions, which are not read
            warnings.simplefilter("ignore", UserWarning)
            book = openpyxl.load_workbook(file, read_only=True, data_only=data_only)
        try:
            yield book
        finally:
            book.close()


def sheet_names(path: Path) -> list[str]:
    """List the sheets of an Excel file, in its order; none of one that cannot be opened."""
    openpyxl = optional("openpyxl", extra="excel", purpose="Reading Excel files")
    broken = (OSError, KeyError, ValueError, zipfile.BadZipFile)
    try:
        with _opened(openpyxl, path, data_only=True) as book:
            return [str(name) for name in book.sheetnames]
    except (*broken, openpyxl.utils.exceptions.InvalidFileException):
        return []  # whoever reads it says what is wrong


Rows = dict[int, tuple[Any, ...]]


def _choose(path: Path, book: Any, wanted: str | None) -> tuple[str, Rows, list[Statement]]:
    """Return the sheet that was named, or the only one that holds something."""
    if wanted is not None and wanted not in book.sheetnames:
        raise UnknownOptionError("sheet", wanted, book.sheetnames)
    full: dict[str, Rows] = {}
    for sheet in book.worksheets:
        if wanted is None or sheet.title == wanted:
            sheet.reset_dimensions()  # what the file says of them may be wrong
            rows = {
                place: tuple(None if cell.value is None else cell for cell in cells)
                for place, cells in enumerate(sheet.iter_rows(), start=1)
                if any(cell.value is not None for cell in cells)
            }
            if rows:
                full[sheet.title] = rows
    if not full:
        where = f"sheet {wanted!r} is" if wanted else "all sheets are"
        raise BadFileError(path, f"{where} empty", "A table needs a row of names at least")
    if len(full) > 1:
        problem = f"{len(full)} sheets hold something: {', '.join(full)}"
        raise BadFileError(path, problem, "Give sheet=, the name of one of them")
    ((name, rows),) = full.items()
    why = "given" if wanted else "the only one that is not empty"
    return name, rows, [Statement("format", "excel"), Statement("sheet", name, why)]


def _has_formulas(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(
            re.search(rb"<f[ >/]", archive.read(name))
            for name in archive.namelist()
            if name.startswith("xl/worksheets/")
        )


def _check_formulas(openpyxl: Any, path: Path, name: str, rows: Rows) -> list[Statement]:
    """Refuse a formula whose result was not stored: it would be read as missing."""
    count = 0
    with _opened(openpyxl, path, data_only=False) as book:
        sheet = book[name]
        sheet.reset_dimensions()
        for place, cells in enumerate(sheet.iter_rows(), start=1):
            for j, cell in enumerate(cells):
                if getattr(cell, "data_type", "") != "f":
                    continue
                count += 1
                if place not in rows or j >= len(rows[place]) or rows[place][j] is None:
                    problem = f"cell {cell.coordinate} is a formula without a stored result"
                    advice = "Open and save the file in a spreadsheet, or store values"
                    raise BadFileError(path, problem, advice, line=place)
    return [Statement("formulas", f"{count:,}, read as their stored results")] if count else []


def _names(
    path: Path, line: int, cells: tuple[Any, ...], rows: Rows, statements: list[Statement]
) -> tuple[list[str], int]:
    width = max(
        max((j + 1 for j, cell in enumerate(row) if cell is not None), default=0)
        for row in rows.values()
    )
    padded = [*cells, *[None] * (width - len(cells))][:width]
    titles = [None if cell is None else cell.value for cell in padded]
    if titles and all(not isinstance(title, str) for title in titles if title is not None):
        problem = "the first row holds no text: names are missing"
        raise BadFileError(path, problem, "Put names above", line=line)
    statements.append(Statement("names", f"in row {line}"))
    for place, title in enumerate(titles):
        if title is None or (isinstance(title, str) and not title.strip()):
            titles[place] = f"column_{place + 1}"
            statements.append(Statement("names", f"column {place + 1} has none: {titles[place]}"))
        elif not isinstance(title, str):
            titles[place] = str(title)
            statements.append(Statement("names", f"{title} is no text, and is taken as such"))
    names = [_unescaped(str(title)) for title in titles]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        problem = f"the name {twice[0]!r} stands over two columns"
        raise BadFileError(path, problem, "Rename one", line=line)
    return names, width


def _unescaped(text: str) -> str:
    """Undo the way in which Excel writes control characters, _x000D_ for example."""
    if "_x" not in text:
        return text
    return re.sub(r"_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), text)


@dataclass
class _Column:
    """The cells of a column while they are read."""

    path: Path
    name: str
    words: Sequence[str]
    values: list[Any] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    decimals: bool = False
    clock: bool = False

    def add(self, row: int, cell: Any) -> None:
        value = None if cell is None else cell.value
        if cell is not None and cell.data_type == "e" and value != "#N/A":
            problem = f"column {self.name!r} holds the error {value}"
            raise BadFileError(
                self.path, problem, "Correct the formula, or empty the cell", line=row
            )
        if isinstance(value, str):
            value = _unescaped(value)
            value = None if value in self.words else value
        elif value is not None and str(value) in self.words:
            value = None
        if isinstance(value, int | float) and not isinstance(value, bool):
            form = _LITERAL.sub("", cell.number_format or "")
            self.decimals |= bool(_DECIMALS.search(form)) or not float(value).is_integer()
        elif isinstance(value, dt.datetime):
            form = _LITERAL.sub("", cell.number_format or "")
            self.clock |= bool(_CLOCK.search(form)) or value.time() != dt.time()
        self.values.append(value)
        self.rows.append(row)
        self.kinds[_kind(value)] += 1

    def typed(self, wanted: Type | None, statements: list[Statement]) -> pa.Array:
        kinds = {kind: count for kind, count in self.kinds.items() if kind != "none"}
        if wanted == "text" or not kinds or set(kinds) == {"text"}:
            return self._texts(statements)
        if "text" in kinds and len(kinds) == 2:
            if gone := self._drop_tokens():
                found = f"{gone:,} words as NA read as missing"
                statements.append(Statement(f"column {self.name!r}", found))
            kinds = {kind: count for kind, count in self.kinds.items() if kind != "none" and count}
        if len(kinds) > 1:
            return self._mixed(kinds, statements)
        (kind,) = kinds
        if kind == "number" and wanted in (None, "integer", "number"):
            if self.decimals or wanted == "number":
                if wanted == "integer":
                    raise self._unfit("whole numbers")
                return pa.array(self.values, pa.float64())
            return pa.array([None if v is None else int(v) for v in self.values], pa.int64())
        if kind == "truth" and wanted in (None, "boolean"):
            return pa.array(self.values, pa.bool_())
        if kind == "moment" and wanted in (None, "date", "datetime"):
            if (self.clock and wanted != "date") or wanted == "datetime":
                return pa.array([_milli(value) for value in self.values], pa.timestamp("us"))
            return pa.array([None if v is None else v.date() for v in self.values], pa.date32())
        if kind == "time" and wanted is None:
            return pa.array(self.values, pa.time64("us"))
        raise self._unfit(str(wanted or "cells of one type"))

    def _drop_tokens(self) -> int:
        gone = 0
        for place, value in enumerate(self.values):
            if isinstance(value, str) and value.strip(" ") in ("", *TOKENS):
                self.values[place] = None
                gone += 1
        self.kinds["text"] -= gone
        return gone

    def _mixed(self, kinds: Mapping[str, int], statements: list[Statement]) -> pa.Array:
        """Refuse numbers or dates with a few other cells; take other mixtures as text."""
        total, common = sum(kinds.values()), max(kinds, key=lambda kind: kinds[kind])
        if common != "text" and 2 * kinds[common] >= total:
            cells = zip(self.rows, self.values)
            row = next(row for row, value in cells if _kind(value) not in (common, "none"))
            counts = f"{kinds[common]:,} cells of one type ({common}) and {total - kinds[common]:,}"
            raise BadFileError(
                self.path,
                f"column {self.name!r} holds {counts} of another, the first in this row",
                CORRECT.format(name=self.name),
                line=row,
            )
        return self._texts(statements)

    def _texts(self, statements: list[Statement]) -> pa.Array:
        if others := sum(1 for v in self.values if v is not None and not isinstance(v, str)):
            found = f"{others:,} cells turned into text"
            statements.append(Statement(f"column {self.name!r}", found))
        return pa.array([None if v is None else _as_text(v) for v in self.values], pa.string())

    def _unfit(self, wanted: str) -> BadFileError:
        advice = f"Leave the column out of types=, or give types={{{self.name!r}: 'text'}}"
        return BadFileError(self.path, f"column {self.name!r} does not hold {wanted}", advice)


def _kind(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, dt.datetime | dt.date):
        return "moment"
    return "time" if isinstance(value, dt.time) else "text"


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    return str(value)


def _milli(moment: dt.datetime | None) -> dt.datetime | None:
    """Round to milliseconds: what lies below is the rounding of a day's fraction."""
    if moment is None:
        return None
    micro = round(moment.microsecond, -3)
    return moment.replace(microsecond=0) + dt.timedelta(microseconds=micro)
