"""Tables that are not in memory: what they are read by, and how the same kind is given back.

A polars LazyFrame, a DuckDB relation, an Ibis table, a Spark DataFrame, and the path of a Parquet
file or of a folder of them. None of them is ever collected whole unless it fits in one cell.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..engines.work import processes
from ..exceptions import BadFileError, BadOptionError
from ..io.folders import PART, whole_folder_or_nothing
from ..schema import Schema
from .forms import Form
from .result import Release
from .steps import Step
from .study import Study

BATCH = 65_536  # rows that are read at once


@dataclass(eq=False)
class Lazy:
    """A table that is not in memory: rows in, files or rows out."""

    native: Any

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, in pieces."""
        raise NotImplementedError

    def whole(self) -> pa.Table:
        """Return all rows, of a table that fits in memory."""
        return pa.concat_tables(list(self.tables())).unify_dictionaries().combine_chunks()

    def of_rows(self, rows: pa.Table) -> Any:
        """Return rows as a table of the same kind."""
        raise NotImplementedError

    def of_files(self, folder: Path) -> Any:
        """Return the Parquet files of a folder as a table of the same kind."""
        raise NotImplementedError


class LazyPolars(Lazy):
    """A polars LazyFrame; it is run once, into a file beside the work on it."""

    file: Path | None = None

    def _stored(self) -> Path:
        if self.file is None:
            self.file = temporary_folder() / "table.parquet"
            self.native.sink_parquet(self.file)
        return self.file

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(pq.read_metadata(self._stored()).num_rows)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, in pieces."""
        import polars

        for first in range(0, self.n_rows, BATCH):  # by polars, which knows its own types
            frame = polars.scan_parquet(self._stored()).slice(first, BATCH).collect()
            yield frame.cast(dict(self.native.collect_schema())).to_arrow()

    def of_rows(self, rows: pa.Table) -> Any:
        """Return rows as a LazyFrame."""
        import polars

        return polars.from_arrow(rows).lazy()  # type: ignore[union-attr]

    def of_files(self, folder: Path) -> Any:
        """Return the files of a folder as a LazyFrame."""
        import polars

        return polars.scan_parquet(sorted(folder.glob("*.parquet")))


class LazyDuck(Lazy):
    """A relation of DuckDB; what is given back belongs to the same connection."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.native.count("*").fetchall()[0][0])

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, in pieces."""
        own = self.native
        find = getattr(own, "to_arrow_reader", None) or own.fetch_arrow_reader
        for batch in find(BATCH):
            yield pa.Table.from_batches([batch])

    def of_rows(self, rows: pa.Table) -> Any:
        """Return rows as a relation."""
        folder = temporary_folder()
        pq.write_table(rows, folder / "part-00000.parquet")
        return self.of_files(folder)

    def of_files(self, folder: Path) -> Any:
        """Return the files of a folder as a relation."""
        listed = ", ".join("'" + str(p).replace("'", "''") + "'" for p in _files(folder))
        return self.native.query("tessella_table", f"SELECT * FROM read_parquet([{listed}])")


class LazyIbis(Lazy):
    """A table of Ibis, of any of its backends; what is given back is read by the same one."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.native.count().execute())

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, in pieces."""
        for batch in self.native.to_pyarrow_batches(chunk_size=BATCH):
            yield pa.Table.from_batches([batch])

    def of_rows(self, rows: pa.Table) -> Any:
        """Return rows as a table of Ibis."""
        import ibis  # type: ignore[import-untyped,unused-ignore]

        return ibis.memtable(rows)

    def of_files(self, folder: Path) -> Any:
        """Return the files of a folder as a table of Ibis."""
        return self.native.get_backend().read_parquet([str(path) for path in _files(folder)])


class LazyFolder(Lazy):
    """The path of a Parquet file, or of a folder of them; what is given back is a folder."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self._pieces().n_rows)

    def _pieces(self) -> Any:
        from ..io.pieces import open_pieces

        return open_pieces(Path(self.native))

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, in pieces."""
        yield from self._pieces().tables()

    def of_rows(self, rows: pa.Table) -> Any:
        """Write rows into a folder."""
        folder = temporary_folder()
        pq.write_table(rows, folder / "part-00000.parquet")
        return folder

    def of_files(self, folder: Path) -> Any:
        """Return the folder."""
        return folder


class LazySpark(Lazy):
    """A DataFrame of Spark: the engine of its session works on it."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.native.count())

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows: of a table that fits in memory only."""
        if hasattr(self.native, "toArrow"):  # of Spark 4
            yield self.native.toArrow()
        else:
            yield pa.Table.from_pandas(self.native.toPandas(), preserve_index=False)

    def of_rows(self, rows: pa.Table) -> Any:
        """Return rows as a DataFrame of Spark."""
        from ..engines.spark import SparkEngine

        engine = SparkEngine(self.native.sparkSession)
        return engine.frame(engine.load([rows]), rows.schema)


def lazy_of(table: Any) -> Lazy | None:
    """Return how a table that is not in memory is read, or None for one that is."""
    kind = type(table)
    place = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(table, str | os.PathLike):
        return LazyFolder(Path(table))
    if place.startswith("polars.") and kind.__name__ == "LazyFrame":
        return LazyPolars(table)
    if "duckdb" in kind.__module__ and kind.__name__ == "DuckDBPyRelation":
        return LazyDuck(table)
    if place.startswith("ibis.") and kind.__name__ == "Table":
        return LazyIbis(table)
    if place.startswith("pyspark.sql.") and kind.__name__ == "DataFrame":
        return LazySpark(table)
    return None


def temporary_folder() -> Path:
    """Make a folder that only its owner can read, removed when Python ends."""
    folder = Path(tempfile.mkdtemp(prefix="tessella-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _files(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.parquet"))
    if not found:
        raise BadOptionError("folder", folder, "a folder with the files of a release")
    return found


def _refuse_folder(folder: Path | None) -> None:
    """Refuse a folder with files: they would be taken for parts of the release."""
    if folder is not None and folder.exists() and (folder.is_file() or any(folder.iterdir())):
        problem = "it is not empty, and all files in it would be taken for the release"
        raise BadFileError(folder, problem, "Give a new folder")


def protect_lazily(
    lazy: Lazy, step: Step, *, schema: Schema | None, rules: Any, weights: Any, unit: Any,
    tolerance: float, seed: int | None, memory: int | None, folder: Path | None,
) -> Release:  # fmt: skip
    """Mask a table that is not in memory by one step; the table that is released is of its kind."""
    from .large import load, look, make_task, release_large

    _refuse_folder(folder)
    out = temporary_folder() if folder is None else folder
    drawn = secrets.randbits(128) if seed is None else seed
    engine: Any
    with tempfile.TemporaryDirectory(prefix="tessella-work-") as work, ExitStack() as stack:
        if isinstance(lazy, LazySpark):
            from ..engines.spark import SparkEngine

            engine = SparkEngine(lazy.native.sparkSession)  # it keeps what is released
            table, form = engine.load_frame(lazy.native), Form({}, {})
        else:
            from ..engines.local import LocalEngine

            engine = LocalEngine(Path(work, "jobs"), {}, n_jobs=processes(memory))
            stack.callback(engine.close)
            table, form = load(engine, lazy.tables())
        began = perf_counter()
        sample = look(engine, table, form)
        first = Study(
            sample, schema=schema, rules=rules, weights=weights, unit=unit, tolerance=tolerance,
            random_state=seed,
        )  # fmt: skip
        task = make_task(
            form, first.schema, first.rules, [step], sample, tolerance=tolerance, seed=drawn,
            order=None,
        )  # fmt: skip
        done = release_large(engine, table, task)
        study = done.study(first.rules, [step], seconds=perf_counter() - began, seed=seed)
        release = done.with_counts(study.release())
        if isinstance(lazy, LazySpark):
            return replace(release, table=engine.frame(done.rows, done.sample_released.schema))
        if folder is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
        writing = (
            nullcontext(out) if folder is None else whole_folder_or_nothing(out, overwrite=False)
        )
        with writing as place:
            for number, rows in enumerate(done.rows.tables()):
                pq.write_table(
                    task.released.dress(rows), place / PART.format(number), compression="zstd"
                )
    return replace(release, table=lazy.of_files(out))
