"""CSV in: look at every byte once, say what was found, and give each column its type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from .._types import Bytes
from ..exceptions import BadFileError, BadOptionError
from ..frame.arrow import from_texts
from ..kernels import text as forms
from ..kernels.text import Layout
from ..parallel import each
from . import column_types as inferring
from .column_types import FormCounts, Missing, Type, count_forms
from .csv_lines import Lines
from .csv_numbers import Evidence, find_number_format
from .csv_text import Text
from .pieces import Pieces
from .source import Metadata, ReadingReport, Source, Statement, check_columns

CHUNK = 1 << 24  # bytes of a CSV file read together; 32 MB took 60 MB more, and no less time
_NUMBERS = ("integer", "number")


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The options of `read_file` for CSV."""

    delimiter: str | None = None
    quote: str = '"'
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    missing: Missing = None
    header: bool | None = None
    names: Sequence[str] | None = None
    skip: int = 0
    types: Mapping[str, Type] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[str] | None = None


def read_csv(path: Path, **options: Any) -> Source:
    """Read a CSV file; the options are those of `read_file`."""
    cells = _Cells.find(path, _Options(**options), size=None)
    ((_, texts, gone),) = cells.texts()
    seen = _count(texts)
    columns: list[Any] = texts.columns
    del texts  # so that each column of text is freed when it is converted
    inference, kinds, how = cells.decide(seen, gone)

    def convert(place: int) -> Any:
        texts, columns[place] = columns[place], None
        return inference.convert(texts, seen[place], kinds[seen[place].name])

    converted = each(convert, range(len(columns)))
    table = pa.table(dict(zip(kinds, converted)))
    pa.default_memory_pool().release_unused()
    return Source(table=table, metadata=Metadata(), how=how, format="csv", path=path)


def open_csv(path: Path, **options: Any) -> Pieces:
    """Look at a CSV file part by part, so that it can be read so; see `read_csv`."""
    cells = _Cells.find(path, _Options(**options), size=CHUNK)
    seen: list[FormCounts] = []
    gone: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    n_rows = 0
    for _, texts, missing in cells.texts():
        counted = _count(texts)
        seen = [one.joined(own, n_rows) for one, own in zip(seen, counted)] if seen else counted
        gone += missing
        letters += Counter({name: texts.column(name).nbytes for name in texts.column_names})
        n_rows += texts.num_rows
    inference, kinds, how = cells.decide(seen, gone)

    def tables() -> Iterator[pa.Table]:
        for row, texts, _ in cells.texts():
            line_of = lambda own, row=row: inference.line_of(row + own)  # noqa: E731
            here = replace(inference, line_of=line_of)
            convert = lambda one: here.convert(texts.column(one.name), one, kinds[one.name])  # noqa: B023, E731
            yield pa.table(dict(zip(kinds, each(convert, seen))))

    widths = {"boolean": 0.25, "date": 4.125}  # of a cell in Arrow, with its bit for "missing"
    size = sum(
        letters[name] if kind == "text" else widths.get(kind, 8.125) * n_rows
        for name, kind in kinds.items()
    )
    return Pieces.of(
        path, format="csv", how=how, columns=kinds, n_rows=n_rows, size=size, read=tables
    )


def _count(texts: pa.Table) -> list[FormCounts]:
    return each(lambda name: count_forms(name, texts.column(name)), texts.column_names)


@dataclass(frozen=True, kw_only=True)
class _Cells:
    """A CSV file whose records and names are known: its cells as text, part by part."""

    options: _Options
    lines: Lines
    titles: list[str]
    wanted: list[str]
    missing: Mapping[str, list[str]]
    found: list[Statement]

    @classmethod
    def find(cls, path: Path, options: _Options, *, size: int | None) -> _Cells:
        """Find encoding, delimiter and names, in blocks of `size` bytes or all at once."""
        text, found = Text.find(path, options.encoding, whole=size is None)
        lines, statements = Lines.find(
            text, delimiter=options.delimiter, quote=options.quote, skip=options.skip, size=size
        )
        found += statements
        titles, statements = _names(lines, header=options.header, names=options.names)
        found += statements
        wanted = titles if options.columns is None else list(options.columns)
        check_columns(wanted, titles)
        missing = inferring.missing_words(options.missing, wanted)
        return cls(
            options=options, lines=lines, titles=titles, wanted=wanted, missing=missing, found=found
        )

    @property
    def has_header(self) -> bool:
        """Whether the first record holds the names."""
        return self.options.header is not False

    def line_of(self, row: int) -> int:
        """Return the line of the file in which a row begins."""
        return self.lines.line_of(row + self.has_header)

    def texts(self) -> Iterator[tuple[int, pa.Table, Counter[str]]]:
        """Give for each part its first row, its cells, and how many of them mean "missing".

        A cell is null where nothing stands and "" where an empty quotation stands. A part that
        holds the names alone is left out if there are others.
        """
        row = 0
        for place, (part, chunk) in enumerate(zip(self.lines.parts, self.lines.chunks())):
            named = self.has_header and not place
            n_rows = part.layout.records - named
            if not n_rows and (place or self.lines.layout.records > self.has_header):
                continue
            body = chunk[part.layout.header_end :] if named else chunk
            for end in (13, 10):  # the end of the header's line
                if named and len(body) and body[0] == end:
                    body = body[1:]
            cells = _parsed(self.lines, part.layout, body, self.titles, self.wanted, n_rows)
            yield row, *_without_missing(cells, self.missing)
            row += n_rows

    def decide(
        self, seen: Sequence[FormCounts], gone: Counter[str]
    ) -> tuple[inferring.TypeInference, dict[str, Type], ReadingReport]:
        """Decide on the format of numbers and the types of columns; say how and why."""
        options, lines, found = self.options, self.lines, list(self.found)
        if options.missing is not None:
            counts = [f"{name} ({gone[name]:,})" for name in self.missing if gone[name]]
            shown = ", ".join(counts[:8])
            found.append(Statement("missing", f"{gone.total():,} cells, as given", shown))
        types, dates = options.types, options.dates
        inferring.check_types(types)
        check_columns((*types, *dates), self.titles)
        quoted, statements = _declared_by_quotes(lines, self.titles, seen)
        found += statements
        no_numbers = {*quoted, *dates}
        no_numbers |= {name for name, kind in types.items() if kind not in _NUMBERS}
        telling = [one for one in seen if one.name not in no_numbers]
        number_format, statements = find_number_format(
            Evidence(lines.path, telling, self.line_of),
            options.decimal, options.thousands, lines.delimiter,
        )  # fmt: skip
        found += statements
        inference = inferring.TypeInference(
            path=lines.path, number_format=number_format, line_of=self.line_of,
            types=types, dates=dates, quoted=quoted,
        )  # fmt: skip
        kinds = inference.types_of(seen, lambda: (texts for _, texts, _ in self.texts()))
        found += inferring.state_types(seen, kinds)
        how = ReadingReport.of(
            "csv", found, delimiter=lines.delimiter, quote=options.quote,
            encoding=lines.text.encoding, decimal=number_format.decimal,
            thousands=number_format.thousands, header=self.has_header, skip=options.skip,
            missing=options.missing, names=options.names, dates=dates or None,
            columns=options.columns,
            types={name: kind for name, (kind, _) in kinds.items() if name not in dates},
        )  # fmt: skip
        return inference, {name: kind for name, (kind, _) in kinds.items()}, how


def _names(
    lines: Lines, *, header: bool | None, names: Sequence[str] | None
) -> tuple[list[str], list[Statement]]:
    """Return the names of the columns, or refuse a first line that cannot be names."""
    first, line = lines.header(), 1 + lines.before
    statements: list[Statement] = []
    in_quotes = lines.quote in lines.head
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
    return lines.delimiter.join(quoted) == lines.head and bool(lines.layout.bare.any())


def _refuse_data(lines: Lines, first: Sequence[str]) -> None:
    """Refuse a first line that is rather a record than names."""
    seen = count_forms("", pa.chunked_array([from_texts(first)]))
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


def _parsed(
    lines: Lines, layout: Layout, body: Bytes, titles: Sequence[str], wanted: Sequence[str],
    records: int,
) -> pa.Table:  # fmt: skip
    """Return the cells of some records as text."""
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
                column_types=dict.fromkeys(titles, pa.string()), include_columns=list(wanted),
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


def _without_missing(
    texts: pa.Table, missing: Mapping[str, list[str]]
) -> tuple[pa.Table, Counter[str]]:
    """Replace the texts that stand for "missing", as given, by null; count them."""
    counts: Counter[str] = Counter()
    for name, words in missing.items():
        column = texts.column(name)
        gone = pc.is_in(column, value_set=pa.array(words, pa.string()))
        if count := pc.sum(gone).as_py():
            counts[name] = count
            place = texts.column_names.index(name)
            blank = pa.scalar(None, pa.string())
            texts = texts.set_column(place, name, pc.if_else(gone, blank, column))
    return texts, counts


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
