"""One way in and one way out, whatever the format: nothing but the table is written."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from .._output import whole_or_nothing
from ..exceptions import (
    BadFileError,
    BadOptionError,
    DataNotFoundError,
    TessellaError,
    UnknownOptionError,
)
from ..parallel import return_memory
from . import source as sources
from .source import FORMATS, Format, Metadata, ReadingReport, Source, Statement

if TYPE_CHECKING:
    from .pieces import Pieces

_OPTIONS = dict.fromkeys(option for form in FORMATS.values() for option in form.options)


def read_file(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    codes: Mapping[str, Sequence[Any]] | None = None,
    metadata: Metadata | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    missing: Sequence[str] | Mapping[str, Sequence[str]] | str | None = None,
    header: bool | None = None,
    names: Sequence[str] | None = None,
    skip: int | None = None,
    types: Mapping[str, Any] | None = None,
    dates: Mapping[str, str] | None = None,
    sheet: str | None = None,
    catalog: str | os.PathLike[str] | None = None,
) -> Source:
    r"""Read a table from a file, and say how it was read.

    Parameters
    ----------
    path : path
        A CSV file (also packed by gzip or zstd), Parquet, Arrow/Feather, Excel, SPSS, Stata or SAS;
        or a folder of Parquet files with the same columns.
    format : str, optional
        One of `tessella.io.FORMATS`; without it the ending of the name decides.
    columns : sequence of names, optional
        The columns to read, in this order; all by default.
    codes : mapping of name to values, optional
        Values that stay in the table and stand for "missing", such as {"income": [-9]}.
    metadata : Metadata, optional
        Labels, levels and codes to use instead of those of the file.
    delimiter, quote, encoding, decimal, thousands : str, optional
        How a CSV file is written. What is not given is found out from the whole file, and stated in
        `how`; where it stays open, that is an error. `thousands=""` means no separator.
    missing : sequence of str, or mapping of name to sequence, optional
        Texts of CSV and Excel that mean "missing" and become null. An unquoted empty field is
        always missing. Words such as NA are missing in columns of numbers and dates without being
        named, and stay text in columns of text; `how` tells.
    header : bool, optional
        Whether the first line of a CSV file holds the names. By default it does, and a first line
        of numbers is an error.
    names : sequence of str, optional
        Names instead of those in the first line; with `header=False`, names for a file without.
    skip : int, optional
        Lines of a CSV file before the first one that counts.
    types : mapping of name to type, optional
        Columns of CSV and Excel to be read as "text", "integer", "number", "boolean", "date" or
        "datetime". Otherwise a column has the type that each of its cells has.
    dates : mapping of name to format, optional
        Columns of CSV with dates that are not ISO 8601: {"born": "%d/%m/%Y"}.
    sheet : str, optional
        The sheet of an Excel file; needed if more than one holds something.
    catalog : path, optional
        The .sas7bcat file with the value labels of a SAS file.

    Returns
    -------
    Source
        With `table` (a pyarrow Table), `metadata`, `how` and `schema()`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tessella.io import read_file
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "firms.csv")
    >>> _ = path.write_text("nace;turnover;staff\n0111;1.250,5;3\n4711;980,25;NA\n")
    >>> source = read_file(path)
    >>> source.table.to_pylist()[0]
    {'nace': '0111', 'turnover': 1250.5, 'staff': 3}
    >>> print(source.how)
    encoding: utf-8 (every byte of the file fits)
    delimiter: semicolon (divides the first line and those after it alike)
    fields: 3 in each line (every line was counted)
    line ends: LF
    names: in the first line
    quoting: none
    decimal sign: comma (column 'turnover', line 2)
    thousands: point (column 'turnover', line 2)
    whole numbers: 1 column (staff)
    numbers: 1 column (turnover)
    text: 1 column (nace)
    column 'nace': text (leading zeros as in line 2: codes, not numbers)
    column 'staff': whole numbers (1 empty cells or words as NA read as missing)
    >>> folder.cleanup()
    """
    given = {name: value for name, value in locals().items() if name in _OPTIONS}
    path, form, options = checked_options(path, format=format, columns=columns, **given)
    source: Source = read_by(form, form.reader, path, options)
    return with_metadata(source, metadata, codes)


def read_by(form: Format, reader: str, path: Path, options: Mapping[str, Any]) -> Any:
    """Call a reader of a format, and name the file in whatever it raises."""
    # What the packages of other formats raise for damaged files is not documented.
    foreign = OSError if form.name == "csv" else Exception
    try:
        return form.load(reader)(path, **options)
    except (TessellaError, MemoryError):
        raise
    except foreign as error:
        problem = f"it is no {form.name.capitalize()} file, or a damaged one"
        raise BadFileError(path, problem, "Make it again, or give format=") from error


def checked_options(
    path: str | os.PathLike[str], *, format: str | None = None,
    columns: Sequence[str] | None = None, **options: Any,
) -> tuple[Path, Format, dict[str, Any]]:  # fmt: skip
    """Return the path, its format and the options of the format's reader, or refuse them."""
    path = _existing(path)
    form = sources.find_format(path, format)
    for name, value in options.items():
        if name not in _OPTIONS:
            raise UnknownOptionError("option", name, ["format", "columns", *_OPTIONS])
        if value is not None and name not in form.options:
            raise BadOptionError(name, value, f"nothing: it has no meaning for {form.name}")
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(columns, str):
        raise BadOptionError("columns", columns, "a list of names")
    if columns is not None:
        options["columns"] = list(dict.fromkeys(columns))
    return path, form, options


def _existing(path: str | os.PathLike[str]) -> Path:
    try:
        path = Path(path)
    except TypeError:
        raise BadOptionError("path", path, "the path of a file") from None
    if not path.exists():
        raise DataNotFoundError(f"There is no file {str(path)!r}. Check the name and the folder.")
    if not path.is_file() and not path.is_dir():
        raise BadFileError(path, "this is no ordinary file", "Copy what it gives into one")
    if not os.access(path, os.R_OK):
        raise BadFileError(path, "it may not be read by this user", "Ask for the permission")
    return path


Read = TypeVar("Read", Source, "Pieces")


def with_metadata(
    source: Read, metadata: Metadata | None, codes: Mapping[str, Sequence[Any]] | None
) -> Read:
    """Use metadata and missing codes that were given instead of those of the file."""
    if metadata is not None:
        source = replace(source, metadata=metadata)
    if not codes:
        return source
    variables, statements = dict(source.metadata.variables), list(source.how.statements)
    sources.check_columns(codes, source.columns, who="codes=")
    for name, values in codes.items():
        variables[name] = replace(source.metadata[name], missing=tuple(values))
        shown = ", ".join(map(str, values))
        statements.append(Statement(f"column {name!r}", f"{shown} mean missing", "given"))
    how = ReadingReport(tuple(statements), {**source.how.options, "codes": dict(codes)})
    return replace(source, metadata=Metadata(variables), how=how)


@dataclass(frozen=True, kw_only=True)
class Written:
    """An account of what was written.

    `sha256` is the hash of the file, `size` its length in bytes; `statements` tell every
    conversion that the format asked for. A folder has `parts`: name, hash and length of each file.
    Its own hash is that of the hashes of its parts, in their order, a line each; its length is
    their sum.
    """

    path: Path
    format: str
    n_rows: int
    columns: tuple[str, ...]
    sha256: str
    size: int = 0
    statements: tuple[Statement, ...] = ()
    parts: tuple[tuple[str, str, int], ...] = ()

    def __str__(self) -> str:
        head = f"{self.path}: {self.format}, {self.n_rows:,} records, {len(self.columns)} columns"
        return "\n".join([head, *map(str, self.statements)])

    def to_dict(self) -> dict[str, Any]:
        """Return what a manifest records."""
        parts = [dict(zip(("file", "sha256", "bytes"), part)) for part in self.parts]
        return {
            "file": self.path.name, "format": self.format, "records": self.n_rows,
            "columns": list(self.columns), "sha256": self.sha256, "bytes": self.size,
            "statements": [str(statement) for statement in self.statements],
            **({"parts": parts} if parts else {}),
        }  # fmt: skip


def write_file(
    frame: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    like: Source | Pieces | None = None,
    metadata: Metadata | None = None,
    keep_labels: bool = False,
    overwrite: bool = False,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    safe: bool = True,
    sheet: str = "data",
) -> Written:
    """Write a table to a file, whole or not at all.

    The same table gives the same bytes: no file holds a time, a user, a machine or a path.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The table.
    path : path
        Where to. The ending of the name decides the format, and .csv.gz or .csv.zst the packing.
    format : str, optional
        One of `tessella.io.FORMATS` that can be written.
    like : Source, optional
        Where the table comes from: its labels, levels, missing codes and (for CSV) delimiter and
        decimal sign are used again. The source itself is never overwritten.
    metadata : Metadata, optional
        Labels, levels and missing codes, instead of those of `like`.
    keep_labels : bool
        Whether to write labels of values that do not occur in the table. By default they are left
        out: the label of a suppressed category tells that it existed.
    overwrite : bool
        Whether a file of that name may be replaced.
    delimiter, decimal, encoding : str, optional
        For CSV: the sign between fields (",", or ";" with a decimal comma), the decimal sign
        ("."), the encoding ("utf-8").
    safe : bool
        For CSV: whether text that begins like a formula is made harmless by an apostrophe. In
        Excel files text is always text.
    sheet : str
        For Excel: the name of the sheet.

    Returns
    -------
    Written
        What was written, its hash, and what the format could not hold as it was.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import pandas as pd
    >>> from tessella.io import write_file
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "release.csv")
    >>> release = pd.DataFrame({"town": ["Reus", "=1+1"], "age": [40, 40]})
    >>> for statement in write_file(release, path).statements:
    ...     print(statement)
    formulas: an apostrophe stands before texts that begin as one (town (1))
    delimiter: ','
    >>> print(path.read_text())
    "town","age"
    "Reus",40
    "'=1+1",40
    <BLANKLINE>
    >>> folder.cleanup()
    """
    with staged_file(**locals()) as written:
        return written


@contextmanager
def staged_file(
    frame: Any, path: str | os.PathLike[str], *, format: str | None = None,
    like: Source | Pieces | None = None, metadata: Metadata | None = None,
    keep_labels: bool = False, overwrite: bool = False, private: bool = False,
    confirm: Callable[[Source, list[Statement]], Statement] | None = None, **options: Any,
) -> Iterator[Written]:  # fmt: skip
    """Write a table to a file that gets its name when the block ends well; see `write_file`.

    In the block all bytes are written, and their hash is known; no file has that name yet. What
    they are when read again is given to `confirm`, which returns what is to be stated, or raises.
    Only its owner may read a `private` file.
    """
    from .arrow import scrub, to_arrow

    path = Path(path)
    form = sources.find_format(path, format, write=True)
    if like is not None and path.exists() and path.samefile(like.path):
        raise BadFileError(path, "this is the original", "Give another name to the release")
    table, statements = to_arrow(frame)
    n_rows, names = table.num_rows, table.column_names
    if form.name not in ("csv", "excel"):  # these two write what cells show, and nothing else
        table = scrub(table)
    if metadata is None:
        metadata = like.metadata if like is not None else Metadata()
    options = writer_options(form, path, like, **options)
    tags = like.tags if like is not None else {}
    if form.name in ("stata", "sas-transport"):
        options["tags"] = tags
    kept = _public(table, metadata, tags, keep_labels=keep_labels)
    if form.labels:
        options["metadata"] = kept
    with whole_or_nothing(path, overwrite=overwrite, private=private) as file:
        statements += form.load(form.writer)(table, file, path, **options)
        if kept and not form.labels:
            lost = f"not written: {form.name} has no place for them"
            statements.append(Statement("labels", lost))
        file.flush()
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        size = file.tell()
        os.fsync(file.fileno())  # a full disk shows before anything has a name
        if confirm is not None:
            del frame, table  # what is read again takes their place
            return_memory()
            with _reopened(file, path) as again:
                statements.append(confirm(read_file(again, format=form.name), statements))
        packed = sources.compression_of(path)
        yield Written(
            path=path, format=f"{form.name}, {packed}" if packed else form.name, n_rows=n_rows,
            columns=tuple(names), sha256=digest, size=size, statements=tuple(statements),
        )  # fmt: skip


@contextmanager
def _reopened(file: BinaryIO, path: Path) -> Iterator[Path]:
    """Give an open file, which has no name yet, a path whose ending tells its format."""
    with tempfile.TemporaryDirectory(prefix="tessella-unfinished-") as folder:
        again, own = Path(folder, path.name), f"/proc/self/fd/{file.fileno()}"
        if os.path.exists(own):
            again.symlink_to(own)
        else:
            file.seek(0)
            with open(again, "wb") as copy:
                shutil.copyfileobj(file, copy)
        yield again


def _public(
    table: Any, metadata: Metadata, tags: Mapping[str, Any], *, keep_labels: bool
) -> Metadata:
    """Leave out what speaks of columns and values that are not in the table."""
    occurring = {}
    for name in table.column_names:
        values = table.column(name).unique().to_pylist() if metadata[name].labels else []
        letters = tags.get(name)
        if letters is not None and len(letters) == table.num_rows:
            values += letters.filter(table.column(name).is_null()).unique().to_pylist()
        occurring[name] = values
    return metadata.only(occurring, keep_labels=keep_labels)


def writer_options(
    form: Format, path: Path, like: Source | Pieces | None, *, delimiter: str | None = None,
    decimal: str | None = None, encoding: str | None = None, safe: bool = True,
    sheet: str = "data",
) -> dict[str, Any]:  # fmt: skip
    """Return the options of the format's writer."""
    if form.name != "csv":
        given = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
        for name, value in given.items():
            if value is not None:
                raise BadOptionError(name, value, f"nothing: it has no meaning for {form.name}")
        return {"sheet": sheet} if form.name == "excel" else {}
    known = like.how.options if like is not None and like.format == "csv" else {}
    decimal = decimal or known.get("decimal", ".")
    bare = Path(path.stem) if sources.compression_of(path) else path
    tabbed = "\t" if bare.suffix == ".tsv" else None
    usual = tabbed or known.get("delimiter") or (";" if decimal == "," else ",")
    delimiter = delimiter or (";" if usual == decimal else usual)
    encoding = encoding or "utf-8"
    return {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "safe": safe}
