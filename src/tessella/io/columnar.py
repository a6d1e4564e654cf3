"""Parquet and Arrow/Feather: every type and every label is kept, and no trace of the original.

Labels, levels and missing codes are stored under one key of the file, `tessella`, as JSON. Keys of
other programs (pandas keeps its index there) are neither read nor copied.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from ..exceptions import BadFileError, UnknownColumnError
from .metadata import Metadata
from .source import ReadingReport, Source, Statement

__all__ = ["read_feather", "read_parquet", "write_feather", "write_parquet"]

_KEY = b"tessella"
_ROWS = 1 << 20  # of a row group, and of a batch


def read_parquet(path: Path, *, columns: Sequence[str] | None = None) -> Source:
    """Read a Parquet file."""
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            _refuse_names(path, schema.names, columns)
            table = file.read(columns=None if columns is None else list(columns))
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, "Parquet") from error
    return _source(path, table, schema, columns, "parquet")


def read_feather(path: Path, *, columns: Sequence[str] | None = None) -> Source:
    """Read an Arrow file (Feather, version 2) or stream."""
    try:
        with pa.memory_map(str(path)) as mapped:
            magic = mapped.read(6)
            mapped.seek(0)
            if magic[:4] == b"FEA1":
                raise BadFileError(
                    path, "this is Feather version 1", "Write it again as version 2, or as Parquet"
                )
            opened = ipc.open_file if magic == b"ARROW1" else ipc.open_stream
            with opened(mapped) as reader:
                table = reader.read_all()
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, "Arrow") from error
    _refuse_names(path, table.column_names, columns)
    return _source(path, table, table.schema, columns, "feather")


def write_parquet(table: pa.Table, file: BinaryIO, metadata: Metadata) -> list[Statement]:
    """Write a table of `to_arrow` as Parquet."""
    table, statements = _with_key(table, metadata)
    pq.write_table(table, file, compression="zstd", row_group_size=_ROWS)
    return statements


def write_feather(table: pa.Table, file: BinaryIO, metadata: Metadata) -> list[Statement]:
    """Write a table of `to_arrow` as an Arrow file."""
    table, statements = _with_key(table, metadata)
    options = ipc.IpcWriteOptions(compression="lz4")
    with ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=_ROWS)
    return statements


def _with_key(table: pa.Table, metadata: Metadata) -> tuple[pa.Table, list[Statement]]:
    if not metadata:
        return table.replace_schema_metadata(None), []
    described = json.dumps(metadata.to_dict(), ensure_ascii=False, default=str).encode()
    statements = [Statement("labels", "under the key 'tessella' of the file")]
    return table.replace_schema_metadata({_KEY: described}), statements


def _refuse_names(path: Path, names: Sequence[str], columns: Sequence[str] | None) -> None:
    for name in columns or ():
        if name not in names:
            raise UnknownColumnError(name, names, who="read_file")
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise BadFileError(
            path, f"it has more than one column named {twice!r}", "Rename or drop one of them"
        )


def _source(
    path: Path, table: pa.Table, schema: Any, columns: Sequence[str] | None, name: str
) -> Source:
    statements = [Statement("format", name), Statement("types", "as stored in the file")]
    kept = dict(schema.metadata or {})
    metadata = Metadata()
    if _KEY in kept:
        metadata = Metadata.from_dict(json.loads(kept.pop(_KEY)))
        statements.append(Statement("labels", "read from the key 'tessella'"))
    if kept:
        keys = ", ".join(sorted(key.decode(errors="replace") for key in kept))
        statements.append(Statement("other notes of the file", "left out", keys))
    rows = [name for name in table.column_names if name.startswith("__index_level_")]
    if rows:
        statements.append(
            Statement(f"column {rows[0]!r}", "kept", "an index of pandas without a name")
        )
    if columns is not None:
        table = table.select(list(columns))
    bare = pa.schema([field.remove_metadata() for field in table.schema])
    options: dict[str, Any] = {"format": name}
    if columns is not None:
        options["columns"] = list(columns)
    return Source(
        table=table.cast(bare) if bare != table.schema else table.replace_schema_metadata(None),
        metadata=metadata.only(dict.fromkeys(table.column_names)),
        how=ReadingReport(tuple(statements), options),
        format=name,
        path=path,
    )


def _broken(path: Path, what: str) -> BadFileError:
    return BadFileError(
        path, f"it is no {what} file, or a damaged one", "Make it again, or give format="
    )
