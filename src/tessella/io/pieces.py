"""Files in pieces: tables larger than memory, in and out.

A *piece* is some rows of a table, in their order: no more than fit easily into memory. All pieces
of a file together are what `read_file` gives for it, with the same types.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from .._output import State, state_of, whole_or_nothing
from ..exceptions import BadFileError, BadTableError
from .files import Written, checked_options, read_by, with_metadata, writer_options
from .folders import PART, whole_folder_or_nothing
from .source import (
    FORMATS,
    Metadata,
    ReadingReport,
    Source,
    Statement,
    compression_of,
    find_format,
)

PIECE_ROWS = 131_072
PIECE_BYTES = 1 << 26


@dataclass(frozen=True, kw_only=True, repr=False)
class Pieces:
    """A table in a file that is read piece by piece.

    Attributes
    ----------
    path : Path
        The file, or a folder of Parquet files.
    format : str
        "csv", "parquet" or "feather".
    metadata : Metadata
        Labels, levels, missing codes and formats.
    how : ReadingReport
        How the file is read; it prints.
    columns : tuple of str
        The names of the columns.
    n_rows : int
        The number of records.
    size : int
        An estimate of the bytes of the whole table in memory.
    """

    path: Path
    format: str
    metadata: Metadata
    how: ReadingReport
    columns: tuple[str, ...]
    n_rows: int
    size: int
    read: Callable[[], Iterator[Any]] = field(compare=False)
    found: Mapping[Path, State] = field(compare=False)

    @classmethod
    def of(
        cls, path: Path, *, size: float, columns: Iterable[str], read: Callable[[], Iterator[Any]],
        files: Sequence[Path] = (), metadata: Metadata | None = None, **known: Any,
    ) -> Pieces:  # fmt: skip
        """Put together what a reader found; `files` are those it reads, `path` without."""
        return cls(
            path=path, columns=tuple(columns), size=int(size), metadata=metadata or Metadata(),
            read=read, found={file: state_of(file) for file in files or [path]}, **known,
        )  # fmt: skip

    @property
    def tags(self) -> Mapping[str, Any]:
        """No cell of these formats carries a letter; see `Source`."""
        return {}

    def tables(self) -> Iterator[Any]:
        """Give the rows in their order, as tables of Arrow; one of no rows if there are none.

        A cell that does not fit the type of its column is an error when its piece is read. So is a
        file that was changed since it was opened.
        """
        for file, state in self.found.items():
            if state_of(file) != state:
                problem = "it was changed since it was opened"
                raise BadFileError(file, problem, "Open it again, when nobody writes to it")
        some = False
        for table in self.read():
            for piece in cut(table):
                some = True
                yield piece
            if not some and not self.n_rows:
                yield table
                return

    def __repr__(self) -> str:
        size = f"{self.n_rows:,} records, {len(self.columns)} columns"
        return f"Pieces({str(self.path)!r}, {self.format}, {size})"


def cut(table: Any) -> Iterator[Any]:
    """Cut a table into pieces of no more than `PIECE_ROWS` rows and about `PIECE_BYTES` bytes."""
    fitting = int(PIECE_BYTES * table.num_rows / max(table.nbytes, 1))
    n_rows = min(PIECE_ROWS, max(1, fitting))
    for begin in range(0, table.num_rows, n_rows):
        yield table.slice(begin, n_rows)


def open_pieces(
    path: str | os.PathLike[str], *, codes: Mapping[str, Sequence[Any]] | None = None,
    metadata: Metadata | None = None, **options: Any,
) -> Pieces:  # fmt: skip
    r"""Look at a file so that it can be read in pieces; the options are those of `read_file`.

    A CSV file is read twice for that, part by part: every line is counted and every cell looked
    at, so that types and signs are the same as those of `read_file`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tessella.io.pieces import open_pieces
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "firms.csv")
    >>> _ = path.write_text("nace,staff\n0111,3\n4711,NA\n")
    >>> pieces = open_pieces(path)
    >>> pieces.n_rows, pieces.columns
    (2, ('nace', 'staff'))
    >>> [table.num_rows for table in pieces.tables()]
    [2]
    >>> folder.cleanup()
    """
    path, form, known = checked_options(path, **options)
    if not form.pieces:
        several = ", ".join(name for name, other in FORMATS.items() if other.pieces)
        problem = f"{form.name} is read whole, and only {several} in pieces"
        raise BadFileError(path, problem, "Convert it to Parquet or CSV first")
    pieces: Pieces = read_by(form, form.pieces, path, known)
    return with_metadata(pieces, metadata, codes)


@contextmanager
def staged_pieces(
    tables: Iterable[Any], path: str | os.PathLike[str], *, like: Pieces | Source | None = None,
    keep_labels: bool = False, overwrite: bool = False,
) -> Iterator[Written]:  # fmt: skip
    """Write tables of the same columns as one, as they come; see `write_file` and `staged_file`.

    The path decides the format: .parquet (a group of rows for each table) or .csv, also .csv.gz
    and .csv.zst; and a name without ending, or a folder, means a folder of Parquet files, one for
    each table. In the block all bytes are written, and their hash is known; the file or folder gets
    its name when the block ends well. No more than a table or two is in memory.

    Parameters
    ----------
    tables : iterable of frames
        Each of a kind that `write_file` takes. Tables of no rows are left out, if there are others.
    path : path
        Where to.
    like : Pieces or Source, optional
        Where the rows come from: its labels and (for CSV) its dialect are used again.
    keep_labels : bool
        Whether to write labels of values that do not occur.
    overwrite : bool
        Whether a file of that name may be replaced, or a folder that holds parts of a table only.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import pyarrow as pa
    >>> from tessella.io.pieces import staged_pieces
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "release")
    >>> with staged_pieces((pa.table({"age": [20, 30]}) for _ in range(3)), path) as written:
    ...     print(written.n_rows, [name for name, _, _ in written.parts])
    6 ['part-00000.parquet', 'part-00001.parquet', 'part-00002.parquet']
    >>> sorted(file.name for file in path.iterdir())
    ['part-00000.parquet', 'part-00001.parquet', 'part-00002.parquet']
    >>> folder.cleanup()
    """
    ends_as_folder = os.fspath(path).endswith(("/", os.sep))
    path = Path(path)
    in_folder = ends_as_folder or path.is_dir() or not path.suffix
    form = FORMATS["parquet"] if in_folder else find_format(path, None, write=True)
    if form.name not in ("csv", "parquet"):
        advice = "Write .parquet or .csv; or a name without ending, for a folder of Parquet files"
        raise BadFileError(path, f"{form.name} is not written in pieces", advice)
    if like is not None and path.exists() and _is_within(like.path, path):
        raise BadFileError(path, "this is the original", "Give another name to the release")
    metadata = like.metadata if like is not None else Metadata()
    rows = _Outgoing(tables, metadata, keep_labels=keep_labels, scrubbed=form.name != "csv")
    if in_folder:
        with whole_folder_or_nothing(path, overwrite=overwrite) as folder:
            parts = _write_parts(rows, folder)
            lines = "".join(f"{digest}\n" for _, digest, _ in parts)
            digest = hashlib.sha256(lines.encode()).hexdigest()
            yield rows.written(path, form.name, digest, sum(part[2] for part in parts), parts)
        return
    options = writer_options(form, path, like)
    with whole_or_nothing(path, overwrite=overwrite) as file:
        rows.statements += form.load(form.writer + "_pieces")(
            iter(rows), file, path, **({"metadata": rows.public} if form.labels else options)
        )
        if rows.public() and not form.labels:
            lost = f"not written: {form.name} has no place for them"
            rows.statements.append(Statement("labels", lost))
        digest, size = _on_disk(file)
        packed = compression_of(path)
        yield rows.written(path, f"{form.name}, {packed}" if packed else form.name, digest, size)


def _is_within(inner: Path, outer: Path) -> bool:
    return inner.resolve().is_relative_to(outer.resolve()) or inner.samefile(outer)


class _Outgoing:
    """Tables on their way out: cleaned, of the same columns; what they hold is counted."""

    def __init__(
        self, tables: Iterable[Any], metadata: Metadata, *, keep_labels: bool, scrubbed: bool
    ) -> None:
        self.tables, self.metadata = tables, metadata
        self.keep_labels, self.scrubbed = keep_labels, scrubbed
        self.statements: list[Statement] = []
        self.schema: Any = None
        self.n_rows = 0
        self.occurring: dict[str, set[Any]] = {}

    def __iter__(self) -> Iterator[Any]:
        from .arrow import scrub, to_arrow

        for frame in self.tables:
            table, statements = to_arrow(frame)
            self.statements += [one for one in statements if one not in self.statements]
            self._refuse_other_columns(table.schema)
            if not table.num_rows:
                continue
            self.n_rows += table.num_rows
            for name, seen in self.occurring.items():
                seen.update(values_of(table, name))
            yield scrub(table) if self.scrubbed else table
        if self.schema is None:
            raise BadTableError("There is no table to write. Give one at least, if of no rows.")
        if not self.n_rows:
            yield self.schema.empty_table()

    def public(self, table: Any = None) -> Metadata:
        """Return what speaks of the columns and values that were written, or of one table."""
        seen: dict[str, Any] = dict(self.occurring)
        if table is not None:
            seen = {name: values_of(table, name) for name in seen}
        names = dict.fromkeys(self.schema.names, ())
        return self.metadata.only({**names, **seen}, keep_labels=self.keep_labels)

    def written(
        self, path: Path, format: str, digest: str, size: int,
        parts: Sequence[tuple[str, str, int]] = (),
    ) -> Written:  # fmt: skip
        """Return the account."""
        return Written(
            path=path, format=format, n_rows=self.n_rows, columns=tuple(self.schema.names),
            sha256=digest, size=size, statements=tuple(self.statements), parts=tuple(parts),
        )  # fmt: skip

    def _refuse_other_columns(self, schema: Any) -> None:
        if self.schema is None:
            self.schema = schema
            self.occurring = {name: set() for name in schema.names if self.metadata[name].labels}
        if schema.equals(self.schema):
            return
        for name in dict.fromkeys([*self.schema.names, *schema.names]):
            one, two = (
                str(own.field(name).type) if name in own.names else "none"
                for own in (self.schema, schema)
            )
            if one != two:
                raise BadTableError(
                    f"The tables to write differ in column {name!r}: it is {one} in the first and "
                    f"{two} in another. Give all of them the same columns and types."
                )
        raise BadTableError("The tables to write have their columns in different orders.")


def values_of(table: Any, name: str) -> list[Any]:
    """Return the different values of a column."""
    values: list[Any] = table.column(name).unique().to_pylist()
    return values


def _write_parts(rows: _Outgoing, folder: Path) -> list[tuple[str, str, int]]:
    """Write each table to a file of its own; return the name, hash and length of each."""
    from .arrow import write_parquet

    parts: list[tuple[str, str, int]] = []
    for number, table in enumerate(rows):
        name = PART.format(number)
        with open(folder / name, "x+b") as file:
            stated = write_parquet(table, file, folder / name, metadata=rows.public(table))
            rows.statements += [one for one in stated if one not in rows.statements]
            parts.append((name, *_on_disk(file)))
    return parts


def _on_disk(file: BinaryIO) -> tuple[str, int]:
    """Wait until a file is on the disk: a full one shows before the file has its name."""
    file.flush()
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    size = file.tell()
    os.fsync(file.fileno())
    return digest, size
