"""Tables of Arrow: every frame becomes one before it is written; Parquet and Feather hold them.

A frame can carry more than its cells: categories that no record has, an index, notes. All of that
is left behind by `to_arrow`, and frames of different libraries with the same cells become the same
table. Values underneath missing cells and rows outside of a slice are removed by `scrub`, which
copies; only the formats that would write them need it.

In Parquet and Feather files labels, levels and missing codes are stored under one key, `tessella`,
as JSON. Keys of other programs (pandas keeps its index there) are neither read nor copied.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from narwhals import dependencies as libraries

from ..exceptions import BadFileError, BadTableError, TessellaError
from .source import Metadata, Source, Statement, check_columns

KEY = b"tessella"
_ROWS = 1 << 20  # of a row group, and of a batch


def to_arrow(frame: Any) -> tuple[pa.Table, list[Statement]]:
    """Return a frame of any accepted kind as an Arrow table of its visible cells."""
    statements: list[Statement] = []
    names, columns = _columns(frame, statements)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise BadTableError(
            f"The table has more than one column named {', '.join(map(repr, twice[:8]))}. Rename "
            "or drop them, so that each name means one column."
        )
    if not names:
        raise BadTableError("The table has no columns. Give a table with at least one.")
    for place, name in enumerate(names):  # one by one, letting go of what was converted
        columns[place] = _plain(name, columns[place])
    return pa.table(dict(zip(names, columns))), statements


def scrub(table: pa.Table) -> pa.Table:
    """Return a table whose memory holds its visible cells only, and no -0.0."""
    columns = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # more than 2 GB of text, or no rows
            column = pa.concat_arrays(column.chunks)
        columns[name] = column if pa.types.is_dictionary(column.type) else _scrubbed(column)
    return pa.table(columns)


def _columns(frame: Any, statements: list[Statement]) -> tuple[list[str], list[Any]]:
    if isinstance(frame, Source):
        raise BadTableError(
            "This is the source itself, as it was read. Give the table to write, and like=source "
            "for its labels and dialect."
        )
    if libraries.is_pyarrow_table(frame):
        return list(frame.column_names), list(frame.columns)
    if libraries.is_polars_dataframe(frame):
        table = frame.to_arrow()
        return list(table.column_names), list(table.columns)
    if libraries.is_numpy_array(frame) and frame.ndim == 2 and frame.dtype.names is None:
        names = [str(place) for place in range(frame.shape[1])]
        return names, [_from_pandas(name, frame[:, j]) for j, name in enumerate(names)]
    if not libraries.is_pandas_dataframe(frame):
        raise BadTableError(
            "write_file writes a pandas or polars DataFrame, a pyarrow Table or a 2-d NumPy "
            f"array, and was given {type(frame).__module__}.{type(frame).__qualname__}."
        )
    if frame.columns.nlevels > 1:
        raise BadTableError("The table's columns have several levels. Flatten them first.")
    _look_at_index(frame.index, statements)
    names = [str(name) for name in frame.columns]
    if any(not isinstance(name, str) for name in frame.columns):
        statements.append(Statement("names", "written as text", "some are not text in the frame"))
    return names, [_from_pandas(name, frame.iloc[:, j]) for j, name in enumerate(names)]


def _look_at_index(index: Any, statements: list[Statement]) -> None:
    named = [name for name in index.names if name is not None]
    if named:
        raise BadTableError(
            f"The index of the frame has a name, {named[0]!r}, as a column has; an index is never "
            "written. Call .reset_index() to write it, or .reset_index(drop=True) to leave it out."
        )
    if not (type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1):
        statements.append(Statement("index", "not written", "it has no name"))


def _from_pandas(name: str, values: Any) -> Any:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BadTableError(
            f"Column {name!r} holds values of different types, or of none that a file can hold. "
            "Convert it to numbers, text or dates first."
        ) from error


def _plain(name: str, column: Any) -> Any:
    """Return a column in a type that every writer knows."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        raise _unwritable(name, kind)
    if pa.types.is_dictionary(kind):
        if isinstance(column, pa.ChunkedArray):
            column = column.unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # no rows
            column = pa.concat_arrays(column.chunks)
        return _only_used(name, column)
    if pa.types.is_run_end_encoded(kind):
        return _plain(name, pc.run_end_decode(column))
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.string())
    if pa.types.is_large_string(kind) or str(kind) == "string_view":
        return column.cast(pa.string())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_nested(kind) or "binary" in str(kind):
        raise _unwritable(name, kind)
    return column


def _unwritable(name: str, kind: Any) -> BadTableError:
    return BadTableError(
        f"Column {name!r} has the type {kind}: periods, intervals, lists, structures and bytes are "
        "not written. Make numbers, dates or text out of it, such as .astype(str), or drop it."
    )


def _scrubbed(column: pa.Array) -> pa.Array:
    """Return a column with nothing underneath its missing cells.

    Arrow keeps a value in each missing cell, whatever it was before it went missing, and writes it
    to Feather files.
    """
    kind = column.type
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        column = pc.add(column, pa.scalar(0, kind))  # -0.0 + 0.0 is 0.0
    if not column.null_count:
        # A slice points into the whole; concatenating two copies its own cells only.
        return pa.concat_arrays([column, column.slice(0, 0)])
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    bits = pa.array(valid).buffers()[1]
    if pa.types.is_string(kind) or pa.types.is_boolean(kind):
        filled = pc.fill_null(column, "" if pa.types.is_string(kind) else False)
        return pa.Array.from_buffers(kind, len(column), [bits, *filled.buffers()[1:]])
    width = kind.bit_width // 8
    data = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * width :]
    data = data[: len(column) * width].reshape(len(column), width).copy()
    data[~valid] = 0
    return pa.Array.from_buffers(kind, len(column), [bits, pa.py_buffer(data)])


def _only_used(name: str, column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Leave out the categories that no record has; the order of the others stays."""
    values = column.dictionary
    if isinstance(values, pa.ExtensionArray) or pa.types.is_nested(values.type):
        raise _unwritable(name, values.type)
    if values.null_count or len(pc.unique(values)) < len(values):
        ordered = column.type.ordered
        column = column.cast(values.type).dictionary_encode()
        values = column.dictionary
        column = pa.DictionaryArray.from_arrays(column.indices, values, ordered=ordered)
    place = column.indices.cast(pa.int64())
    used = np.unique(place.drop_null().to_numpy())
    renumber = np.zeros(len(values) + 1, np.int32)
    renumber[used] = np.arange(len(used), dtype=np.int32)
    present = place.is_valid().to_numpy(zero_copy_only=False)
    new = renumber[np.where(present, pc.fill_null(place, 0).to_numpy(), len(values))]
    indices = pa.array(new, pa.int32(), mask=~present)
    kept = _scrubbed(_plain(name, values.take(pa.array(used))))
    return pa.DictionaryArray.from_arrays(indices, kept, ordered=column.type.ordered)


def decoded(column: pa.DictionaryArray) -> pa.Array:
    """Return categories as plain values."""
    return column.dictionary.take(column.indices)


def as_float64(numbers: pa.Array) -> pa.Array:
    """Return floats or decimals as the nearest float64, which Arrow's cast misses at times."""
    floats = numbers.cast(pa.float64())
    if not pa.types.is_decimal(numbers.type):
        return floats
    near = floats.to_numpy(zero_copy_only=False)
    return pa.array(np.round(near, numbers.type.scale), from_pandas=True)


def to_milliseconds(moments: pa.Array) -> tuple[pa.Array, bool]:
    """Return moments in UTC rounded to milliseconds, and whether nothing was lost by that."""
    unit = moments.type.unit
    if moments.type.tz is not None:
        moments = moments.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit))
    rounded = pc.round_temporal(moments.cast(pa.timestamp("us"), safe=False), unit="millisecond")
    exact = pc.all(pc.equal(rounded.cast(moments.type), moments)).as_py()
    return rounded, bool(exact) or not len(moments)


def check_finite(floats: pa.Array, name: str, path: Path, title: str) -> None:
    """Raise an error if a column holds infinity, for a format that has no such number."""
    if pc.any(pc.is_inf(floats)).as_py():
        advice = f"{title} cannot: mark it as missing"
        raise BadFileError(path, f"column {name!r} holds infinity", advice)


def check_whole(integers: pa.Array, name: str, path: Path, title: str) -> int:
    """Return the largest absolute value, or raise an error if a float does not hold it."""
    largest = max(abs(int(end or 0)) for end in pc.min_max(integers).as_py().values())
    if largest > 2**53:
        problem = f"column {name!r} holds whole numbers beyond 2**53"
        raise BadFileError(path, problem, f"{title} keeps 15 digits: write it as text")
    return largest


def read_parquet(path: Path, *, columns: Sequence[str] | None = None) -> Source:
    """Read a Parquet file, or a folder of them."""
    if path.is_dir():
        from .arrow_pieces import open_parquet

        pieces = open_parquet(path, columns=columns)
        table = pa.concat_tables(pieces.tables()).unify_dictionaries()
        return Source(
            table=table, metadata=pieces.metadata, how=pieces.how, format="parquet", path=path
        )
    try:
        with pq.ParquetFile(path) as file:
            names, notes = file.schema_arrow.names, notes_of(file)
            refuse_names(path, names, columns)
            table = file.read(columns=None if columns is None else list(columns))
    except (pa.ArrowException, OSError) as error:
        raise broken(path, "Parquet") from error
    return _source(path, table, notes, columns, "parquet")


def notes_of(file: pq.ParquetFile) -> dict[bytes, bytes]:
    """Return the notes of a Parquet file, without those of Arrow on its types."""
    notes = {**(file.metadata.metadata or {}), **(file.schema_arrow.metadata or {})}
    return {key: note for key, note in notes.items() if key != b"ARROW:schema"}


def read_feather(path: Path, *, columns: Sequence[str] | None = None) -> Source:
    """Read an Arrow file (Feather, version 2) or stream."""
    with opened_feather(path) as reader:
        table = reader.read_all()
    refuse_names(path, table.column_names, columns)
    return _source(path, table, dict(table.schema.metadata or {}), columns, "feather")


@contextmanager
def opened_feather(path: Path, **options: Any) -> Iterator[Any]:
    """Open an Arrow file or stream; the options are those of `pyarrow.ipc.IpcReadOptions`."""
    try:
        with pa.memory_map(str(path)) as mapped:
            magic = mapped.read(6)
            mapped.seek(0)
            if magic[:4] == b"FEA1":
                advice = "Write it again as version 2, or as Parquet"
                raise BadFileError(path, "this is Feather version 1", advice)
            opened = ipc.open_file if magic == b"ARROW1" else ipc.open_stream
            with opened(mapped, options=ipc.IpcReadOptions(**options)) as reader:
                yield reader
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, TessellaError):
            raise
        raise broken(path, "Arrow") from error


def write_parquet(table: Any, file: BinaryIO, _: Path, *, metadata: Metadata) -> list[Statement]:
    """Write a table of `to_arrow` as Parquet."""
    table, statements = with_key(table, metadata)
    pq.write_table(table, file, compression="zstd", row_group_size=_ROWS)
    return statements


def write_parquet_pieces(
    tables: Iterator[pa.Table], file: BinaryIO, _: Path, *, metadata: Callable[[], Metadata]
) -> list[Statement]:
    """Write tables of the same columns as Parquet, a group of rows each; labels come at the end."""
    first = next(tables)
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        for table in chain([first], tables):
            writer.write_table(table, row_group_size=_ROWS)
        noted, statements = with_key(first.slice(0, 0), metadata())
        if noted.schema.metadata and not hasattr(writer, "add_key_value_metadata"):
            return [Statement("labels", "not written", "that needs pyarrow 17 or later")]
        if noted.schema.metadata:
            writer.add_key_value_metadata(noted.schema.metadata)
    return statements


def write_feather(table: Any, file: BinaryIO, _: Path, *, metadata: Metadata) -> list[Statement]:
    """Write a table of `to_arrow` as an Arrow file."""
    table, statements = with_key(table, metadata)
    options = ipc.IpcWriteOptions(compression="lz4")
    with ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=_ROWS)
    return statements


def with_key(table: pa.Table, metadata: Metadata) -> tuple[pa.Table, list[Statement]]:
    """Return a table that notes its labels under our key, and what is to be stated."""
    if not metadata:
        return table.replace_schema_metadata(None), []
    described = json.dumps(metadata.to_dict(), ensure_ascii=False, default=str).encode()
    statements = [Statement("labels", "under the key 'tessella' of the file")]
    return table.replace_schema_metadata({KEY: described}), statements


def refuse_names(path: Path, names: Sequence[str], columns: Sequence[str] | None) -> None:
    """Refuse names of columns that stand twice, and to read columns that are not there."""
    check_columns(columns or (), names)
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        problem = f"it has more than one column named {twice!r}"
        raise BadFileError(path, problem, "Rename or drop one of them")


def describe(
    notes: Mapping[bytes, bytes], names: Sequence[str], format: str
) -> tuple[Metadata, list[Statement]]:
    """Return what the notes of a file say of its columns, and what is to be stated of them."""
    statements = [Statement("format", format), Statement("types", "as stored in the file")]
    metadata = Metadata()
    if KEY in notes:
        metadata = Metadata.from_dict(json.loads(notes[KEY]))
        statements.append(Statement("labels", "read from the key 'tessella'"))
    if others := sorted(key.decode(errors="replace") for key in notes if key != KEY):
        statements.append(Statement("other notes of the file", "left out", ", ".join(others)))
    rows = [name for name in names if name.startswith("__index_level_")]
    if rows:
        why = "an index of pandas without a name"
        statements.append(Statement(f"column {rows[0]!r}", "kept", why))
    return metadata, statements


def bare_schema(schema: pa.Schema) -> pa.Schema:
    """Return names and types, without notes."""
    return pa.schema([field.remove_metadata() for field in schema])


def in_bare_schema(table: pa.Table) -> pa.Table:
    """Return a table without notes, neither on itself nor on its columns."""
    bare = bare_schema(table.schema)
    return table.cast(bare) if bare != table.schema else table.replace_schema_metadata(None)


def _source(
    path: Path, table: pa.Table, notes: Mapping[bytes, bytes], columns: Sequence[str] | None,
    name: str,
) -> Source:  # fmt: skip
    metadata, statements = describe(notes, table.column_names, name)
    if columns is not None:
        table = table.select(list(columns))
    kept = metadata.only(dict.fromkeys(table.column_names))
    plain = in_bare_schema(table)
    return Source.read(path, name, plain, statements, metadata=kept, columns=columns)


def broken(path: Path, what: str) -> BadFileError:
    """Return the error for a file that cannot be read."""
    problem = f"it is no {what} file, or a damaged one"
    return BadFileError(path, problem, "Make it again, or give format=")
