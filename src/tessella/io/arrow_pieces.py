"""Parquet and Arrow in pieces: files by their groups of rows, and folders of Parquet files.

A folder is one table: its files, in the order of their names, have the same columns. Files and
folders whose names begin with "." or "_" are notes of those who wrote them, and are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..exceptions import BadFileError
from .arrow import (
    bare_schema,
    broken,
    describe,
    in_bare_schema,
    notes_of,
    opened_feather,
    refuse_names,
)
from .pieces import PIECE_BYTES, PIECE_ROWS, Pieces
from .source import FORMATS, Metadata, ReadingReport, Statement, Variable

_BUFFER = 1 << 20  # bytes of a column that are read from a Parquet file at a time
_SAMPLES = 8  # groups of rows that tell how long a row is
_SAMPLED = 4096  # rows of each of them


@dataclass(frozen=True)
class _ParquetFile:
    """What a Parquet file says of itself; `groups` are the rows of each of its groups."""

    path: Path
    schema: pa.Schema
    notes: Mapping[bytes, bytes]
    groups: tuple[int, ...]


def open_parquet(path: Path, *, columns: Sequence[str] | None = None) -> Pieces:
    """Look at a Parquet file, or a folder of them, so that it can be read in pieces."""
    files = [_look(file) for file in _parquet_files(path)]
    refuse_names(files[0].path, files[0].schema.names, columns)
    schema = files[0].schema
    for file in files[1:]:
        _refuse_other_columns(path, files[0], file)
        nullable = [one.nullable or file.schema.field(one.name).nullable for one in schema]
        schema = pa.schema([one.with_nullable(own) for one, own in zip(schema, nullable)])
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    width = _bytes_of_row(files, schema.names)
    n_rows = sum(sum(file.groups) for file in files)
    metadata, statements = _describe_all(path, files)
    return Pieces.of(
        path, format="parquet", metadata=metadata.only(dict.fromkeys(schema.names)),
        how=ReadingReport.of("parquet", statements, columns=columns), columns=schema.names,
        n_rows=n_rows, size=width * n_rows, files=[file.path for file in files],
        read=partial(_parquet_tables, [file.path for file in files], schema, width),
    )  # fmt: skip


def _parquet_tables(files: Sequence[Path], schema: pa.Schema, width: float) -> Iterator[pa.Table]:
    n_rows = min(PIECE_ROWS, max(1, int(PIECE_BYTES / max(width, 1))))
    for path in files:
        try:
            with pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as file:
                for batch in file.iter_batches(batch_size=n_rows, columns=schema.names):
                    yield pa.Table.from_batches([batch]).select(schema.names).cast(schema)
        except (pa.ArrowException, OSError) as error:
            raise broken(path, "Parquet") from error
    yield schema.empty_table()


def _parquet_files(path: Path) -> list[Path]:
    """Return the file, or all Parquet files of a folder and of those in it, in a fixed order."""
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    for place, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        for name in folders:
            if "=" in name:
                problem = f"the name of its folder {name!r} holds the value of a column"
                advice = "Write the table anew, with that column in the files"
                raise BadFileError(path, problem, advice)
        wanted = [name for name in names if name[0] not in "._"]
        endings = FORMATS["parquet"].endings
        found += [Path(place, name) for name in wanted if name.lower().endswith(endings)]
    if not found:
        problem = "this is a folder without Parquet files"
        raise BadFileError(path, problem, "Give a file, or a folder of .parquet files")
    return sorted(found, key=lambda file: file.relative_to(path).parts)


def _look(path: Path) -> _ParquetFile:
    try:
        with pq.ParquetFile(path) as file:
            known = file.metadata
            groups = tuple(known.row_group(place).num_rows for place in range(known.num_row_groups))
            return _ParquetFile(path, bare_schema(file.schema_arrow), notes_of(file), groups)
    except (pa.ArrowException, OSError) as error:
        raise broken(path, "Parquet") from error


def _refuse_other_columns(folder: Path, first: _ParquetFile, other: _ParquetFile) -> None:
    """Refuse a file of a folder that has other columns, or other types, than the first file."""
    refuse_names(other.path, other.schema.names, None)
    for name in dict.fromkeys([*first.schema.names, *other.schema.names]):
        types = [
            str(file.schema.field(name).type) if name in file.schema.names else None
            for file in (first, other)
        ]
        if types[0] == types[1]:
            continue
        own, known = (f"it as {kind}" if kind else "none" for kind in reversed(types))
        file = str(other.path.relative_to(folder))
        problem = f"column {name!r}: its file {file!r} has {own}, {first.path.name!r} has {known}"
        advice = "All files of a folder must have the same columns and types: write it anew"
        raise BadFileError(folder, problem, advice)


def _bytes_of_row(files: Sequence[_ParquetFile], names: Sequence[str]) -> float:
    """Estimate the bytes of a row in memory from the first rows of some groups."""
    groups = [
        (file.path, place) for file in files for place, n_rows in enumerate(file.groups) if n_rows
    ]
    size = n_rows = 0
    for path, place in groups[:: max(1, -(-len(groups) // _SAMPLES))]:
        try:
            with pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as file:
                batches = file.iter_batches(_SAMPLED, row_groups=[place], columns=list(names))
                batch = next(batches)
        except (pa.ArrowException, OSError) as error:
            raise broken(path, "Parquet") from error
        size, n_rows = size + batch.nbytes, n_rows + batch.num_rows
    return size / max(n_rows, 1)


def _describe_all(path: Path, files: Sequence[_ParquetFile]) -> tuple[Metadata, list[Statement]]:
    """Return what the files of a folder say of their columns: labels are those of all."""
    metadata, statements = describe(files[0].notes, files[0].schema.names, "parquet")
    if path.is_dir():
        statements.insert(1, Statement("files", f"{len(files):,}", "of a folder, by their names"))
    variables: dict[str, Variable] = dict(metadata.variables)
    for file in files[1:]:
        for name, variable in describe(file.notes, (), "parquet")[0].variables.items():
            known = variables.setdefault(name, variable)
            labels = {**known.labels, **variable.labels}
            variables[name] = replace(known, labels=labels)
    return Metadata(variables), statements


def open_feather(path: Path, *, columns: Sequence[str] | None = None) -> Pieces:
    """Look at an Arrow file or stream, so that it can be read in pieces."""
    with opened_feather(path) as reader:
        schema = reader.schema
        refuse_names(path, schema.names, columns)
    names = list(schema.names if columns is None else columns)
    n_rows = size = 0
    fields = [schema.get_field_index(name) for name in names]
    for batch in _batches(path, fields):
        n_rows, size = n_rows + batch.num_rows, size + batch.nbytes
    metadata, statements = describe(dict(schema.metadata or {}), schema.names, "feather")
    return Pieces.of(
        path, format="feather", metadata=metadata.only(dict.fromkeys(names)),
        how=ReadingReport.of("feather", statements, columns=columns), columns=names, n_rows=n_rows,
        size=size, read=partial(_feather_tables, path, schema, names, fields),
    )  # fmt: skip


def _feather_tables(
    path: Path, schema: pa.Schema, names: list[str], fields: list[int]
) -> Iterator[pa.Table]:
    for batch in _batches(path, fields):
        yield in_bare_schema(pa.Table.from_batches([batch]).select(names))
    yield bare_schema(pa.schema([schema.field(name) for name in names])).empty_table()


def _batches(path: Path, fields: list[int]) -> Iterator[Any]:
    with opened_feather(path, included_fields=sorted(fields)) as reader:
        if hasattr(reader, "num_record_batches"):
            for place in range(reader.num_record_batches):
                yield reader.get_batch(place)
        else:
            yield from reader
