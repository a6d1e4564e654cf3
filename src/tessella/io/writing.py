"""One way out, whatever the format: whole or not at all, and nothing but the table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..exceptions import BadFileError, BadOptionError
from .atomic import whole_or_nothing
from .formats import Format, compression_of, find_format
from .metadata import Metadata
from .source import Source, Statement

__all__ = ["Written", "staged_file", "write_file"]


@dataclass(frozen=True, kw_only=True)
class Written:
    """An account of what was written.

    `sha256` is the hash of the file, `size` its length in bytes; `statements` tell every
    conversion that the format asked for.
    """

    path: Path
    format: str
    n_rows: int
    columns: tuple[str, ...]
    sha256: str
    size: int = 0
    statements: tuple[Statement, ...] = ()

    def __str__(self) -> str:
        head = f"{self.path}: {self.format}, {self.n_rows:,} records, {len(self.columns)} columns"
        return "\n".join([head, *map(str, self.statements)])

    def to_dict(self) -> dict[str, Any]:
        """Return what a manifest records."""
        return {
            "file": self.path.name,
            "format": self.format,
            "records": self.n_rows,
            "columns": list(self.columns),
            "sha256": self.sha256,
            "bytes": self.size,
            "statements": [str(statement) for statement in self.statements],
        }


def write_file(
    frame: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    like: Source | None = None,
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
    options: dict[str, Any] = {
        "format": format, "like": like, "metadata": metadata, "keep_labels": keep_labels,
        "overwrite": overwrite, "delimiter": delimiter, "decimal": decimal, "encoding": encoding,
        "safe": safe, "sheet": sheet,
    }  # fmt: skip
    with staged_file(frame, path, **options) as written:
        return written


@contextmanager
def staged_file(
    frame: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    like: Source | None = None,
    metadata: Metadata | None = None,
    keep_labels: bool = False,
    overwrite: bool = False,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    safe: bool = True,
    sheet: str = "data",
) -> Iterator[Written]:
    """Write a table to a file that gets its name when the block ends well.

    Parameters
    ----------
    frame, path, **options
        As for `write_file`.

    Yields
    ------
    Written
        All bytes are written, and their hash is known; there is no file of that name yet.
    """
    from .to_arrow import scrub, to_arrow

    path = Path(path)
    form = find_format(path, format, write=True)
    if like is not None and path.exists() and path.samefile(like.path):
        raise BadFileError(path, "this is the original", "Give another name to the release")
    table, statements = to_arrow(frame)
    if form.name not in ("csv", "excel"):  # these two write what cells show, and nothing else
        table = scrub(table)
    if metadata is None:
        metadata = like.metadata if like is not None else Metadata()
    options = _options(form, path, like, delimiter, decimal, encoding, safe, sheet)
    tags = like.tags if like is not None else {}
    if form.name in ("stata", "sas-transport"):
        options["tags"] = tags
    kept = _public(table, metadata, tags, keep_labels=keep_labels)
    with whole_or_nothing(path, overwrite=overwrite) as file:
        statements += _write(form, table, file, path, kept, options)
        file.flush()
        file.seek(0)
        digest = _hash(file)
        size = file.tell()
        os.fsync(file.fileno())  # a full disk shows before anything has a name
        yield Written(
            path=path,
            format=form.name + (f", {packed}" if (packed := compression_of(path)) else ""),
            n_rows=table.num_rows,
            columns=tuple(table.column_names),
            sha256=digest,
            size=size,
            statements=tuple(statements),
        )


def _hash(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while piece := file.read(1 << 20):
        digest.update(piece)
    return digest.hexdigest()


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


def _options(
    form: Format,
    path: Path,
    like: Source | None,
    delimiter: str | None,
    decimal: str | None,
    encoding: str | None,
    safe: bool,
    sheet: str,
) -> dict[str, Any]:
    given = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    stated = {name: value for name, value in given.items() if value is not None}
    if form.name == "excel":
        _refuse(stated, form)
        return {"sheet": sheet}
    if form.name != "csv":
        _refuse(stated, form)
        return {}
    known = like.how.options if like is not None and like.format == "csv" else {}
    decimal = decimal or known.get("decimal", ".")
    tabbed = "\t" if Path(path.stem if compression_of(path) else path).suffix == ".tsv" else None
    usual = tabbed or known.get("delimiter") or (";" if decimal == "," else ",")
    if usual == decimal:
        usual = ";"
    return {
        "delimiter": delimiter or usual,
        "decimal": decimal,
        "encoding": encoding or "utf-8",
        "safe": safe,
    }


def _refuse(stated: Mapping[str, Any], form: Format) -> None:
    for name, value in stated.items():
        raise BadOptionError(name, value, f"nothing: it has no meaning for {form.name}")


def _write(
    form: Format,
    table: Any,
    file: BinaryIO,
    path: Path,
    metadata: Metadata,
    options: dict[str, Any],
) -> list[Statement]:
    """Load the writer of a format, and let it write."""
    if form.name in ("parquet", "feather"):
        from . import columnar

        write = columnar.write_parquet if form.name == "parquet" else columnar.write_feather
        return write(table, file, metadata)
    if form.name in ("csv", "excel"):
        lost = [Statement("labels", f"not written: {form.name} has no place for them")]
        if form.name == "csv":
            from .csv_writing import write_csv

            return write_csv(table, file, path, **options) + (lost if metadata else [])
        from .excel_writing import write_excel

        return write_excel(table, file, path, **options) + (lost if metadata else [])
    from .statistical_writing import write_statistical

    return write_statistical(form.name, table, file, path, metadata, **options)
