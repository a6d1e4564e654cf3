"""Excel out: one sheet of typed cells, written by hand, since the standard asks for little.

Six small parts in a zip file whose times are all the same; text is always text, so that nothing
in it can run. No temporary file is needed, and no package.
"""

import datetime as dt
import math
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.compute as pc

from ..exceptions import BadFileError, BadOptionError
from .arrow import as_float64, check_finite, check_whole, decoded, to_milliseconds
from .source import Statement

Writing = tuple[Any, Callable[[Any], str]]  # values, and what writes one

_ROWS, _COLUMNS, _LETTERS = 1_048_576, 16_384, 32_767
_MIDNIGHT = (1980, 1, 1, 0, 0, 0)
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SPACE = "http://schemas.openxmlformats.org/"
_MAIN = f'xmlns="{_SPACE}spreadsheetml/2006/main"'
_OFFICE = f"{_SPACE}officeDocument/2006/relationships"
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ESCAPED = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")

# Styles of cells, by number.
_PLAIN, _DATE, _MOMENT, _TIME, _QUOTE, _FLOAT = range(6)
_STYLES = (
    f"{_HEAD}<styleSheet {_MAIN}>"
    '<numFmts count="4"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/>'
    '<numFmt numFmtId="166" formatCode="hh:mm:ss"/>'
    '<numFmt numFmtId="167" formatCode="0.0##############"/></numFmts>'
    '<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="6"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    + "".join(
        f'<xf numFmtId="{form}" fontId="0" fillId="0" borderId="0" xfId="0" '
        f'{"applyNumberFormat" if form else "quotePrefix"}="1"/>'
        for form in (164, 165, 166, 0, 167)
    )
    + '</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/>'
    "</cellStyles></styleSheet>"
)
_TYPES = (
    f'{_HEAD}<Types xmlns="{_SPACE}package/2006/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    + "".join(
        f'<Override PartName="/xl/{part}.xml" ContentType='
        f'"application/vnd.openxmlformats-officedocument.spreadsheetml.{kind}+xml"/>'
        for part, kind in zip(
            ("workbook", "worksheets/sheet1", "styles"), ("sheet.main", "worksheet", "styles")
        )
    )
    + "</Types>"
)


def _links(*targets: tuple[str, str]) -> str:
    links = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, start=1)
    )
    return (
        f'{_HEAD}<Relationships xmlns="{_SPACE}package/2006/relationships">{links}</Relationships>'
    )


def write_excel(
    table: pa.Table, file: BinaryIO, path: Path, *, sheet: str = "data"
) -> list[Statement]:
    """Write a table of `to_arrow` as the only sheet of an Excel file."""
    _refuse(table, path, sheet)
    statements: list[Statement] = []
    columns = [
        _column(name, table.column(name).combine_chunks(), path, statements)
        for name in table.column_names
    ]
    book = (
        f'{_HEAD}<workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets>'
        f'<sheet name={quoteattr(sheet)} sheetId="1" r:id="rId1"/></sheets></workbook>'
    )
    parts = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _links(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": book,
        "xl/_rels/workbook.xml.rels": _links(
            ("worksheet", "worksheets/sheet1.xml"), ("styles", "styles.xml")
        ),
        "xl/styles.xml": _STYLES,
    }
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in parts.items():
            archive.writestr(_entry(name), text)
        with archive.open(_entry("xl/worksheets/sheet1.xml"), "w", force_zip64=True) as out:
            out.write(f"{_HEAD}<worksheet {_MAIN}><sheetData>".encode())
            out.write(_first_row(table.column_names, path).encode())
            for piece in _rows(columns, table.num_rows, path):
                out.write(piece.encode())
            out.write(b"</sheetData></worksheet>")
    return statements


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _MIDNIGHT)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # the same on every system
    entry.external_attr = 0o644 << 16
    return entry


def _refuse(table: pa.Table, path: Path, sheet: str) -> None:
    if table.num_rows >= _ROWS or table.num_columns > _COLUMNS:
        has = f"the table has {table.num_rows:,} and {table.num_columns:,}"
        room = f"a sheet has room for {_ROWS - 1:,} records and {_COLUMNS:,} columns"
        raise BadFileError(path, f"{room}, and {has}", "Write CSV or Parquet")
    if not 1 <= len(sheet) <= 31 or re.search(r"[\[\]:*?/\\\x00-\x1f]", sheet):
        raise BadOptionError("sheet", sheet, "1 to 31 characters, none of [ ] : * ? / \\")


def _letters(column: int) -> str:
    """Return the name of a column in a sheet: A, B, ..., Z, AA, ..."""
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


def _first_row(names: list[str], path: Path) -> str:
    cells = "".join(
        f'<c r="{_letters(j)}1"{_text(name, path, "the names")}' for j, name in enumerate(names)
    )
    return f'<row r="1">{cells}</row>'


def _rows(columns: list[Any], n: int, path: Path) -> Iterator[str]:
    """Give the rows of the sheet, some hundreds at a time."""
    letters = [_letters(j) for j in range(len(columns))]
    for begin in range(0, n, 500):
        pieces = []
        cells = [
            [cell(value) for value in values.slice(begin, 500).to_pylist()]
            for values, cell in columns
        ]
        for place, row in enumerate(zip(*cells), start=begin + 2):
            filled = "".join(
                f'<c r="{letter}{place}"{cell}' for letter, cell in zip(letters, row) if cell
            )
            if not filled:
                blank = (
                    "every cell of that record is missing, and a blank row is no record in Excel"
                )
                advice = "Leave the record out, or write another format"
                raise BadFileError(path, blank, advice, line=place)
            pieces.append(f'<row r="{place}">{filled}</row>')
        yield "".join(pieces)


def _column(name: str, values: Any, path: Path, statements: list[Statement]) -> Writing:
    """Return the values of a column, and the function that writes the rest of a cell."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        statements.append(Statement(f"column {name!r}", "plain values", "Excel has no categories"))
        values = decoded(values)
        kind = values.type
    if pa.types.is_string(kind):
        return values, lambda text: "" if text is None else _text(text, path, f"column {name!r}")
    if pa.types.is_boolean(kind):
        return values, lambda truth: "" if truth is None else f' t="b"><v>{int(truth)}</v></c>'
    if pa.types.is_integer(kind):
        check_whole(values, name, path, "Excel")
        return values, lambda number: "" if number is None else f"><v>{number}</v></c>"
    if pa.types.is_decimal(kind):
        statements.append(Statement(f"column {name!r}", "numbers", "Excel has no fixed decimals"))
        values = as_float64(values)
        kind = values.type
    if pa.types.is_floating(kind):
        return _floats(name, values, path, statements)
    if pa.types.is_date(kind):
        _refuse_early(name, values, path)
        first = dt.date(1899, 12, 30)
        return values, _styled(_DATE, lambda date: (date - first).days)
    if pa.types.is_timestamp(kind):
        return _moments(name, values, path, statements)
    if pa.types.is_time(kind):
        return values.cast(pa.time64("us"), safe=False), _styled(_TIME, _share_of_day)
    advice = "Excel has none like it: convert the column"
    raise BadFileError(path, f"column {name!r} has the type {kind}", advice)


def _floats(name: str, values: Any, path: Path, statements: list[Statement]) -> Writing:
    check_finite(values, name, path, "Excel")
    if count := pc.sum(pc.is_nan(values)).as_py():
        statements.append(Statement(f"column {name!r}", f"{count:,} NaN written as missing"))
    whole = pc.all(pc.or_kleene(pc.is_nan(values), pc.equal(values, pc.floor(values)))).as_py()
    style = f' s="{_FLOAT}"' if whole else ""  # or they would be read as integers

    def cell(number: float | None) -> str:
        if number is None or math.isnan(number):
            return ""
        return f"{style}><v>{number + 0.0!r}</v></c>"  # no -0.0

    return values, cell


def _moments(name: str, values: Any, path: Path, statements: list[Statement]) -> Writing:
    if values.type.tz is not None:
        statements.append(Statement(f"column {name!r}", "in UTC", "Excel has no time zones"))
    rounded, exact = to_milliseconds(values)
    if not exact:
        statements.append(Statement(f"column {name!r}", "rounded to milliseconds"))
    _refuse_early(name, rounded, path)
    first = dt.datetime(1899, 12, 30)
    return rounded, _styled(_MOMENT, lambda moment: (moment - first) / dt.timedelta(days=1))


def _styled(style: int, number: Callable[[Any], float]) -> Callable[[Any], str]:
    return lambda value: "" if value is None else f' s="{style}"><v>{number(value)!r}</v></c>'


def _share_of_day(time: dt.time) -> float:
    seconds = time.hour * 3600 + time.minute * 60 + time.second + time.microsecond / 1e6
    return seconds / 86400


def _refuse_early(name: str, values: Any, path: Path) -> None:
    """Refuse dates before March 1900: Excel counts a 29 February 1900 that never was."""
    first = pc.min(values).as_py()
    if first is not None and (first.year, first.month) < (1900, 3):
        advice = "Excel cannot: write them as text, or write another format"
        raise BadFileError(path, f"column {name!r} holds dates before March 1900", advice)


def _text(text: str, path: Path, where: str) -> str:
    if len(text) > _LETTERS:
        problem = f"a text of {where} has {len(text):,} letters"
        raise BadFileError(path, problem, f"Excel takes {_LETTERS:,}")
    if _FORBIDDEN.search(text):
        problem = f"a text of {where} holds a control character"
        raise BadFileError(path, problem, "Excel cannot: remove it")
    style = f' s="{_QUOTE}"' if _FORMULA.match(text) else ""
    safe = escape(_ESCAPED.sub("_x005F_", text), {"\r": "&#13;"})
    return f'{style} t="inlineStr"><is><t xml:space="preserve">{safe}</t></is></c>'
