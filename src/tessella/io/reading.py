"""One way in, whatever the format."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..exceptions import BadFileError, BadOptionError, DataNotFoundError
from .source import FORMATS, Metadata, Source, Statement, check_columns, find_format

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
        A CSV file (also packed by gzip or zstd), Parquet, Arrow/Feather, Excel, SPSS, Stata or SAS.
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
    whole numbers: 1 columns (staff)
    numbers: 1 columns (turnover)
    text: 1 columns (nace)
    column 'nace': text (leading zeros as in line 2: codes, not numbers)
    column 'staff': whole numbers (1 empty cells or words as NA read as missing)
    >>> folder.cleanup()
    """
    given = dict(locals())
    path = _existing(path)
    form = find_format(path, format)
    options = {name: given[name] for name in _OPTIONS if given[name] is not None}
    for name in options:
        if name not in form.options:
            raise BadOptionError(name, options[name], f"nothing: it has no meaning for {form.name}")
    if isinstance(columns, str):
        raise BadOptionError("columns", columns, "a list of names")
    if columns is not None:
        options["columns"] = list(dict.fromkeys(columns))
    source = form.load(form.reader)(path, **options)
    return _with_metadata(source, metadata, codes)


def _existing(path: str | os.PathLike[str]) -> Path:
    try:
        path = Path(path)
    except TypeError:
        raise BadOptionError("path", path, "the path of a file") from None
    if path.is_dir():
        raise BadFileError(path, "this is a folder", "Give a file")
    if not path.exists():
        raise DataNotFoundError(f"There is no file {str(path)!r}. Check the name and the folder.")
    if not os.access(path, os.R_OK):
        raise BadFileError(path, "it may not be read by this user", "Ask for the permission")
    return path


def _with_metadata(
    source: Source, metadata: Metadata | None, codes: Mapping[str, Sequence[Any]] | None
) -> Source:
    if metadata is not None:
        source = replace(source, metadata=metadata)
    if not codes:
        return source
    variables, statements = dict(source.metadata.variables), list(source.how.statements)
    check_columns(codes, source.columns, who="codes=")
    for name, values in codes.items():
        variables[name] = replace(source.metadata[name], missing=tuple(values))
        shown = ", ".join(map(str, values))
        statements.append(Statement(f"column {name!r}", f"{shown} mean missing", "given"))
    how = replace(
        source.how,
        statements=tuple(statements),
        options={**source.how.options, "codes": dict(codes)},
    )
    return replace(source, metadata=Metadata(variables), how=how)
