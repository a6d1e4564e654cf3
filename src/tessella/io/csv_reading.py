"""CSV in: look at every byte once, say what was found, and give each column its type."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from ..exceptions import BadFileError, BadOptionError
from ..kernels import text as forms
from ..parallel import each
from . import column_types as inferring
from .column_types import SIGNS, FormCounts, Missing, NumberFormat, Type, count_forms
from .csv_text import Lines, read_text
from .source import Source, Statement, check_columns

_NUMBERS = ("integer", "number")
_NAMES = ("point", "comma", "space", "apostrophe", "no-break space", "narrow no-break space")
_NAMED = dict(zip(SIGNS, _NAMES))


def read_csv(
    path: Path, *, delimiter: str | None = None, quote: str = '"', encoding: str | None = None,
    decimal: str | None = None, thousands: str | None = None, missing: Missing = None,
    header: bool | None = None, names: Sequence[str] | None = None, skip: int = 0,
    types: Mapping[str, Type] | None = None, dates: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
) -> Source:  # fmt: skip
    """Read a CSV file; the options are those of `read_file`."""
    raw, encoding, found = read_text(path, encoding)
    lines, statements = Lines.find(path, raw, delimiter=delimiter, quote=quote, skip=skip)
    found += statements
    titles, statements = _names(lines, header=header, names=names)
    found += statements
    has_header = header is not False
    line_of = lambda row: lines.line_of(row + has_header)  # noqa: E731
    texts = _texts(lines, titles, columns, has_header=has_header)
    texts, statements = _without_missing(texts, missing)
    found += statements
    names_read, columns_read = texts.column_names, texts.columns
    del texts  # so that each column of text is freed when it is converted
    seen = each(
        lambda place: count_forms(names_read[place], columns_read[place]), range(len(names_read))
    )
    inferring.check_types(types or {})
    check_columns((*(types or {}), *(dates or {})), titles)
    quoted, statements = _declared_by_quotes(lines, titles, seen)
    found += statements
    no_numbers = {*quoted, *(dates or {})}
    no_numbers |= {name for name, kind in (types or {}).items() if kind not in _NUMBERS}
    evidence = _Evidence(path, [one for one in seen if one.name not in no_numbers], line_of)
    number_format, statements = _find_number_format(evidence, decimal, thousands, lines.delimiter)
    found += statements
    inference = inferring.TypeInference(
        path=path, number_format=number_format, line_of=line_of,
        types=types or {}, dates=dates or {}, quoted=quoted,
    )  # fmt: skip
    kinds = {column.name: inference.type_of(column) for column in seen}
    found += inferring.state_types(seen, kinds)

    def convert(place: int) -> Any:
        texts, columns_read[place] = columns_read[place], None
        return inference.convert(texts, seen[place], kinds[names_read[place]][0])

    table = pa.table(dict(zip(names_read, each(convert, range(len(names_read))))))
    pa.default_memory_pool().release_unused()
    return Source.read(
        path, "csv", table, found, delimiter=lines.delimiter, quote=quote, encoding=encoding,
        decimal=number_format.decimal, thousands=number_format.thousands, header=has_header,
        skip=skip, missing=missing, names=names, dates=dates, columns=columns,
        types={name: kind for name, (kind, _) in kinds.items() if name not in (dates or {})},
    )  # fmt: skip


def _names(
    lines: Lines, *, header: bool | None, names: Sequence[str] | None
) -> tuple[list[str], list[Statement]]:
    """Return the names of the columns, or refuse a first line that cannot be names."""
    first, line = lines.header(), 1 + lines.before
    statements: list[Statement] = []
    in_quotes = lines.quote in lines.head()
    if header is None and names is None and not _quoted_unlike_data(lines, first):
        _refuse_data(lines, first)
    if names is not None:
        titles = [str(name) for name in names]
        statements.append(Statement("names", "given"))
        if len(titles) != len(first):
            expected = f"one name for each of {len(first)} columns"
            raise BadOptionError("names", f"{len(titles)} names", expected)
    elif header is False:
        titles = [f"column_{place}" for place in range(1, len(first) + 1)]
        why = "the file has none, as given"
        statements.append(Statement("names", "column_1, column_2, ...", why))
    else:
        titles = list(first) if in_quotes else [title.strip() for title in first]
        where = "in the first line" if line == 1 else f"in line {line}"
        statements.append(Statement("names", where))
        if titles != first:
            statements.append(Statement("names", "spaces around them left out"))
        for place, title in enumerate(titles):
            if not title:
                titles[place] = f"column_{place + 1}"
                found = f"column {place + 1} has none, and is called {titles[place]}"
                statements.append(Statement("names", found))
    twice = [title for title, count in Counter(titles).items() if count > 1]
    if twice:
        places = [place for place, title in enumerate(titles, start=1) if title == twice[0]]
        more = f", and {len(twice) - 1} more names stand twice" if len(twice) > 1 else ""
        problem = f"the name {twice[0]!r} stands over columns {', '.join(map(str, places))}{more}"
        advice = "Rename them in the file, or give names=[...]"
        raise BadFileError(lines.path, problem, advice, line=line)
    return titles, statements


def _quoted_unlike_data(lines: Lines, first: Sequence[str]) -> bool:
    """Say whether all of the first line is quoted and some of the rest is not: names, then."""
    mark = lines.quote
    quoted = (mark + name.replace(mark, mark * 2) + mark for name in first)
    return lines.delimiter.join(quoted) == lines.head() and bool(lines.layout.bare.any())


def _refuse_data(lines: Lines, first: Sequence[str]) -> None:
    """Refuse a first line that is rather a record than names."""
    seen = count_forms("", pa.chunked_array([list(first)], pa.string()))
    telling = [forms.DATE, forms.MOMENT, forms.ZONED, *range(forms.POINT, forms.SPACED)]
    numbers = seen.n(forms.WHOLE, forms.LONG, forms.PADDED, *telling)
    if seen.n(*telling) or (numbers and numbers + seen.n(forms.EMPTY, forms.TOKEN) == len(first)):
        problem = "the first line holds numbers or dates, not names of columns"
        advice = (
            "Give header=False if the file has no names, names=[...] to name the columns, or "
            "header=True if these are the names"
        )
        raise BadFileError(lines.path, problem, advice, line=1 + lines.before)
    if all(len(name) > 1 and name[0] == name[-1] == "'" for name in first):
        advice = 'Give quote="\'" if fields are quoted so'
        problem = "the names stand in apostrophes"
        raise BadFileError(lines.path, problem, advice, line=1 + lines.before)


def _texts(
    lines: Lines, titles: Sequence[str], columns: Sequence[str] | None, *, has_header: bool
) -> pa.Table:
    """Return all cells as text: null where nothing stands, "" where an empty quotation stands."""
    wanted = list(titles) if columns is None else list(columns)
    check_columns(wanted, titles)
    layout = lines.layout
    records = layout.records - has_header
    begin = layout.header_end if has_header else 0
    body = lines.text[begin:]
    for end in (13, 10):  # the end of the header's line
        if has_header and len(body) and body[0] == end:
            body = body[1:]
    if not records:
        return pa.table({name: pa.array([], pa.string()) for name in wanted})
    try:
        table = pcsv.read_csv(
            pa.BufferReader(pa.py_buffer(body)),
            read_options=pcsv.ReadOptions(
                column_names=list(titles), block_size=max(1 << 22, 2 * layout.longest + 64)
            ),
            parse_options=pcsv.ParseOptions(
                delimiter=lines.delimiter, quote_char=lines.quote,
                newlines_in_values=bool(layout.inner), ignore_empty_lines=layout.fields > 1,
            ),
            convert_options=pcsv.ConvertOptions(
                column_types=dict.fromkeys(titles, pa.string()), include_columns=wanted,
                null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
                check_utf8=False,  # every byte was looked at
            ),
        )  # fmt: skip
    except pa.ArrowInvalid as error:
        problem = f"its lines could not be read ({error})"
        raise BadFileError(lines.path, problem, "Repair the file") from error
    if table.num_rows != records:
        problem = f"{records:,} records were counted and {table.num_rows:,} were read"
        advice = "That is a fault of tessella: please report it, with the dialect of the file"
        raise BadFileError(lines.path, problem, advice)
    return table


def _without_missing(texts: pa.Table, missing: Missing) -> tuple[pa.Table, list[Statement]]:
    """Replace the texts that stand for "missing", as given, by null."""
    if missing is None:
        return texts, []
    counts: Counter[str] = Counter()
    for name, words in inferring.missing_words(missing, texts.column_names).items():
        column = texts.column(name)
        gone = pc.is_in(column, value_set=pa.array(words, pa.string()))
        if count := pc.sum(gone).as_py():
            counts[name] = count
            place = texts.column_names.index(name)
            blank = pa.scalar(None, pa.string())
            texts = texts.set_column(place, name, pc.if_else(gone, blank, column))
    shown = ", ".join(f"{name} ({count:,})" for name, count in list(counts.items())[:8])
    return texts, [Statement("missing", f"{counts.total():,} cells, as given", shown)]


def _declared_by_quotes(
    lines: Lines, titles: Sequence[str], seen: Sequence[FormCounts]
) -> tuple[frozenset[str], list[Statement]]:
    """Find the columns that are quoted throughout without need, where others are not quoted.

    A writer that quotes "12" in one column and not in another says that the one is text.
    """
    layout = lines.layout
    place = {title: j for j, title in enumerate(titles)}
    typed = {column.name: not column.n(forms.OTHER) and column.filled > 0 for column in seen}
    bare = any(typed[column.name] and layout.bare[place[column.name]] for column in seen)
    quotes = int(layout.quoted.sum())
    if not quotes:
        return frozenset(), [Statement("quoting", "none")]
    if not bare:
        of_all = "of every value: they say nothing of types"
        return frozenset(), [Statement("quoting", "of text" if layout.bare.any() else of_all)]
    commas = [form for form in range(forms.SPACED) if form in _WITH_COMMA]
    declared = frozenset(
        column.name
        for column in seen
        if layout.quoted[place[column.name]]
        and not layout.bare[place[column.name]]
        and not (lines.delimiter == "," and column.n(*commas) == column.filled)
    )
    return declared, [Statement("quoting", "of some columns and not of others")]


_WITH_COMMA = frozenset(
    {forms.COMMA, forms.COMMA_OR_GROUP, forms.POWER_COMMA, forms.GROUPS + 1, forms.GROUPS_POINT + 1}
    | set(range(forms.GROUPS_COMMA, forms.POWER))
)


def _decimals(sign: str) -> list[int]:
    """Forms that only a decimal sign explains."""
    place = SIGNS.index(sign)
    base = (forms.GROUPS_POINT, forms.GROUPS_COMMA)[place]
    return [forms.POINT + place, forms.POWER_POINT + place, *range(base, base + len(SIGNS))]


def _grouped(sign: str) -> list[int]:
    """Forms that only this sign between thousands explains."""
    place = SIGNS.index(sign)
    return [base + place for base in (forms.GROUPS, forms.GROUPS_POINT, forms.GROUPS_COMMA)]


@dataclass(frozen=True)
class _Evidence:
    path: Path
    columns: list[FormCounts]
    line_of: Callable[[int], int]

    def first(self, which: Iterable[int]) -> tuple[str, int] | None:
        """Return the first column, and its row, in which one of these forms occurs."""
        which = list(which)
        for column in self.columns:
            if column.n(*which):
                return column.name, column.first(*which)
        return None

    def line(self, place: tuple[str, int]) -> int:
        return self.line_of(place[1])

    def unclear(self, place: tuple[str, int], problem: str) -> BadFileError:
        where = f"in the numbers of column {place[0]!r}"
        problem = f"{where}, {problem}, and no other number of the file tells"
        advice = "Give decimal=',' or decimal='.'"
        return BadFileError(self.path, problem, advice, line=self.line(place))


def _find_number_format(
    seen: _Evidence, decimal: str | None, thousands: str | None, delimiter: str
) -> tuple[NumberFormat, list[Statement]]:
    """Decide from the columns of numbers how numbers are written, or say why that is open."""
    if decimal not in (None, ".", ","):
        raise BadOptionError("decimal", decimal, "'.' or ','")
    if thousands not in (None, "", *SIGNS):
        raise BadOptionError("thousands", thousands, "'' for none, or one of '.', ',', ' ', \"'\"")
    if decimal is not None and decimal == thousands:
        raise BadOptionError("thousands", thousands, "another sign than decimal")
    asked = thousands is not None
    telling = [one for one in seen.columns if one.numeric and (asked or not one.coded)]
    seen = replace(seen, columns=telling)
    point, comma = seen.first(_decimals(".")), seen.first(_decimals(","))
    if decimal is not None:
        why = "given"
    elif point and comma:
        other = f"column {point[0]!r} a decimal point in line {seen.line(point)}"
        problem = f"column {comma[0]!r} has a decimal comma there, and {other}"
        advice = "Give decimal='.' or decimal=',': columns written otherwise are then read as text"
        raise BadFileError(seen.path, problem, advice, line=seen.line(comma))
    elif place := point or comma:
        decimal = "." if point else ","
        why = f"column {place[0]!r}, line {seen.line(place)}"
    else:
        decimal, why = _without_decimals(seen, thousands, delimiter)
    if thousands is None:
        thousands, because = _find_thousands(seen, decimal)
    else:
        because = "given"
    statements = [Statement("decimal sign", _NAMED[decimal], why)]
    statements.append(Statement("thousands", _NAMED.get(thousands, "not separated"), because))
    return NumberFormat(decimal, thousands, given=asked), statements


def _without_decimals(seen: _Evidence, thousands: str | None, delimiter: str) -> tuple[str, str]:
    """Decide the decimal sign where no number surely has one."""
    if thousands in (".", ","):
        return ("." if thousands == "," else ","), "the other sign separates thousands"
    maybe = {sign: seen.first([forms.POINT_OR_GROUP + place]) for place, sign in enumerate(".,")}
    surely = {sign: seen.first(_grouped(sign)) for sign in ".,"}
    if surely["."] and surely[","]:
        raise seen.unclear(surely[","], "thousands are separated by points here, commas there")
    for sign, other in ((",", "."), (".", ",")):
        if surely[sign]:
            return other, f"a {_NAMED[sign]} separates thousands"
    if thousands is None or thousands == "":
        if maybe[","] and (maybe["."] or thousands is None):
            raise seen.unclear(maybe[","], "1,234 may be a thousand or a little more than one")
        if maybe[","]:
            return ",", "thousands are not separated, as given"
        if maybe["."] and delimiter == ";" and thousands is None:
            raise seen.unclear(maybe["."], "1.234 may be a thousand or a little more than one")
    if maybe["."]:
        column, row = maybe["."]
        return ".", (
            f"column {column!r}, line {seen.line((column, row))}, looks like 1.234; if that means "
            "thousands, give thousands='.'"
        )
    return ".", "no number has decimals"


def _find_thousands(seen: _Evidence, decimal: str) -> tuple[str, str]:
    found: dict[str, tuple[str, int]] = {}
    for place, sign in enumerate(SIGNS):
        if sign == decimal:
            continue
        which = _grouped(sign)
        if sign in ".,":
            which.append(forms.POINT_OR_GROUP + place)
        if where := seen.first(which):
            found[sign] = where
    if len(found) > 1:
        (sign, where), (other, there) = list(found.items())[:2]
        elsewhere = f"a {_NAMED[other]} in column {there[0]!r}, line {seen.line(there)}"
        here = f"a {_NAMED[sign]} in column {where[0]!r} there"
        problem = f"thousands are separated by {here}, and by {elsewhere}"
        advice = "Give thousands=: columns written otherwise are then read as text"
        raise BadFileError(seen.path, problem, advice, line=seen.line(where))
    for sign, where in found.items():
        return sign, f"column {where[0]!r}, line {seen.line(where)}"
    return "", "no number has a separator"
