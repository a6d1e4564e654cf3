"""The Spark engine: jobs done by the executors of a cluster, rows kept on their disks.

What the jobs of a step make is an RDD of pairs: the number that rows go to, and these rows as a
`Fragment`; and, for each job, no number and its `News` for the driver. A step sends every fragment
to the partition of its number, one partition a job, and the driver collects the news, never rows.

Steps are RDDs and not data frames, for three reasons. A partitioner of our own gives each job a
task of its own, where hashing would put several into one. Rows that are not needed any more are
removed at once. And the plan of a data frame contains the plans of all steps before it, so that
each step would take longer to plan than the last.

A task that fails is done again by Spark, and makes the same. Steps that are lost with an executor
are computed again from those before them; the table itself is not, since its source may give the
rows in another order the second time. It survives the loss of an executor if the Spark context has
a checkpoint directory; else the work ends with an error.

Spark moves at most 2 GB in one piece: what one job sends to one number must be less.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, NamedTuple
from zipimport import zipimporter

import numpy as np
import pyarrow as pa

from .. import parallel
from .._lazy import optional
from .._types import Integers
from ..exceptions import BadOptionError, BadTableError, RefusedError, TessellaError
from . import base
from .base import EMPTY, Facts, Job, Moved, addressed, in_pieces, plain, sizes_of
from .work import pack_notes, unpack_notes

# Tasks of a step, at most: pieces of a billion rows. With more numbers, a task does several jobs.
MOST_TASKS = 8_192
# Bytes of rows that go from the driver in one task, and in all tasks of one submission. Spark
# refuses tasks above `spark.rpc.message.maxSize`, 128 MB; the driver holds one submission only.
TASK, SUBMISSION = 1 << 23, 1 << 27

Rows = Any  # an RDD of (number, Fragment) and (None, News)


class Fragment(NamedTuple):
    """Rows on their way."""

    step: int  # which made them
    source: int  # the job of the step that made them, or their first row in a table: their order
    rows: bytes  # as an Arrow stream


class News(NamedTuple):
    """What the driver is to know of a job: its notes, or why it has failed."""

    number: int
    notes: bytes
    error: TessellaError | None


class MovedFragments:
    """Rows in the fragments of a step; `kept` are the RDDs that hold them on disks."""

    def __init__(
        self, engine: SparkEngine, step: int, rows: Rows, kept: Sequence[Any],
        facts: dict[int, Facts],
    ) -> None:  # fmt: skip
        self.engine, self.step, self.rows, self.kept, self.facts = engine, step, rows, kept, facts

    @cached_property
    def sizes(self) -> dict[int, int]:
        """How many rows go to each number."""
        return sizes_of(self.facts)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows that go to each number: the driver has those of one task at a time."""
        gathered = self.engine._gathered([self])
        for at in range(gathered.getNumPartitions()):
            found = self.engine.context.runJob(gathered, _in_pairs, [at])
            for number in sorted({number for number, _ in found}):
                own = [_unpacked(rows) for other, rows in found if other == number]
                yield pa.concat_tables(own)


class SparkEngine:
    """Jobs on a Spark cluster: see `Engine`.

    Parameters
    ----------
    session : pyspark.sql.SparkSession, optional
        Where the jobs are done. None takes the active session, and builds one if there is none.
        Sessions of Spark Connect have no RDDs and are refused.
    master : str, optional
        The cluster for which a session is built, as `local[2]`; None takes Spark's settings.

    Notes
    -----
    The executors need tessella, in the same version as the driver.

    The executors' disks hold the table's own values, and so does the checkpoint directory, which
    Spark empties with `spark.cleaner.referenceTracking.cleanCheckpoints` only. Both are as
    confidential as the table: see `spark.local.dir` and `spark.io.encryption.enabled`.
    """

    name = "spark"

    def __init__(self, session: Any = None, *, master: str | None = None) -> None:
        self.pyspark = self._module("pyspark")
        self.built = False
        if session is None:
            session = self.pyspark.sql.SparkSession.getActiveSession()
        if session is None:
            session = self._build(master)
        self.session = session
        try:
            self.context = session.sparkContext
        except Exception:  # of a class that differs from version to version
            expected = "a session with a Spark context: one of Spark Connect has none"
            raise BadOptionError("session", session, expected) from None
        self.turn = 0  # number of the step
        self.kept: set[Any] = set()  # RDDs on disks

    @staticmethod
    def _module(name: str) -> Any:
        return optional(name, extra="spark", purpose="The Spark engine")

    def _build(self, master: str | None) -> Any:
        self.built = self.pyspark.SparkContext._active_spark_context is None
        builder = self.pyspark.sql.SparkSession.builder.appName("tessella")
        if master is not None:
            builder = builder.master(master)
            if master.startswith("local"):  # else workers are whatever python3 is on the path
                os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return builder.getOrCreate()

    def close(self) -> None:
        """Remove all rows, and stop the session if it was built here.

        What is to be kept of a `frame` must be written before.
        """
        if self.built:
            self.session.stop()
            return
        self._forget(list(self.kept))

    def load(self, tables: Iterable[pa.Table]) -> MovedFragments:
        """Send a table to the executors, of which the driver holds a few pieces at a time."""
        step, kept, count = self._step(), [], 0
        waiting: list[tuple[int, Fragment]] = []
        held = 0
        with self._named("load"):
            for number, piece in enumerate(in_pieces(tables)):
                for rows in _slices(piece, TASK):
                    waiting.append((number, Fragment(step, count, _packed(rows))))
                    held += len(waiting[-1][1].rows)
                    count += rows.num_rows
                    if held >= SUBMISSION:
                        kept.append(self._submit(waiting))
                        waiting, held = [], 0
            if not count:
                raise BadTableError(EMPTY)
            if waiting:
                kept.append(self._submit(waiting))
        return MovedFragments(self, step, self.context.union(kept), kept, _facts_of_pieces(count))

    def load_frame(self, frame: Any) -> MovedFragments:
        """Take a Spark data frame where it is, its rows in the order of its partitions."""
        step, size = self._step(), base.PIECE
        with self._named("load"):
            with _without_pandas():
                packed = frame.mapInArrow(_pack, "count long, rows binary")
            kept = packed.rdd.map(tuple)
            self._keep_for_good(kept)
            counts = kept.mapPartitions(_count).collect()
            if not sum(counts):
                raise BadTableError(EMPTY)
        starts = [0, *accumulate(counts)]
        rows = kept.mapPartitionsWithIndex(partial(_number, step, size, starts))
        return MovedFragments(self, step, rows, [kept], _facts_of_pieces(starts[-1]))

    def work(
        self, name: str, given: Sequence[Moved], job: Job, *, last: Sequence[Moved] = ()
    ) -> MovedFragments:
        """Do a job for every number that rows of `given` go to."""
        step = self._step()
        sides: list[MovedFragments] = list(given)  # type: ignore[arg-type]
        do = partial(_do_all, job, [own.step for own in sides], step)
        made = self._gathered(sides).mapPartitions(do).setName(f"tessella: {name}")
        self._keep(made)
        try:
            with self._named(name):
                news = sorted(made.filter(_is_news).values().collect())
            for one in news:
                if one.error is not None:
                    raise one.error
        except BaseException:
            self._forget([made])
            raise
        facts = {one.number: unpack_notes(one.notes) for one in news}
        moved = MovedFragments(self, step, made, [made], facts)
        for own in (*last, moved) if not moved.sizes else last:
            self._forget(own.kept)  # type: ignore[attr-defined]
        return moved

    def frame(self, moved: MovedFragments, schema: pa.Schema) -> Any:
        """Return the rows of a step as a Spark data frame, in the order of where they go.

        The rows stay where they are until the frame is used, which must be before `close`.
        """
        shape = pa.schema([pa.field(one.name, _for_spark(one.type)) for one in schema])
        types = self._module("pyspark.sql.pandas.types").from_arrow_schema(
            shape, prefer_timestamp_ntz=True
        )
        rows = self._gathered([moved]).mapPartitions(_in_order)
        frame = self.session.createDataFrame(rows, "rows binary", verifySchema=False)

        def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return _unpack(shape, batches)

        with _without_pandas():
            return frame.mapInArrow(unpack, types)

    def _step(self) -> int:
        self.turn += 1
        return self.turn

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Show the name of a step in Spark's user interface, and say if Spark gives the step up."""
        py4j = self._module("py4j.protocol")
        self.context.setJobDescription(f"tessella: {name}")
        try:
            yield
        except (py4j.Py4JJavaError, self.pyspark.errors.PySparkException) as error:
            raise RefusedError(
                f"Spark has given up the step {name!r}. Nothing is released. If executors or their "
                "Python processes were lost, maybe for want of memory, give them more "
                f"(spark.executor.memoryOverhead). Spark's own message: {error}"
            ) from error
        finally:
            self.context.setJobDescription(None)

    def _submit(self, fragments: list[tuple[int, Fragment]]) -> Any:
        """Send fragments to the executors, and let go of them here."""
        n = len(fragments)
        # What is parallelized is held by the driver's JVM for as long as anything refers to it. The
        # RDD made of it, with the same partitions, ceases to do so when it has been checkpointed;
        # objects of py4j that do are cycles, which Python may leave uncollected for long.
        sent = self.context.parallelize(fragments, n).coalesce(n)
        self._keep_for_good(sent)
        sent._jrdd.count()  # in Java: no row need go through Python
        gc.collect()
        return sent

    def _keep(self, rows: Any) -> None:
        """Have rows written to disks when they are first used."""
        self.kept.add(rows.persist(self.pyspark.StorageLevel.DISK_ONLY))

    def _keep_for_good(self, rows: Any) -> None:
        """Have rows written to disks when they are first used, never to be computed again."""
        self._keep(rows)
        if self.context.getCheckpointDir():
            rows.checkpoint()
        else:
            rows.localCheckpoint()

    def _forget(self, kept: Iterable[Any]) -> None:
        """Remove rows, and the copy that was sent to make them."""
        for rows in kept:
            # Spark removes such copies when its driver collects garbage, maybe after many steps.
            rows._jrdd.rdd().cleanShuffleDependencies(False)
            rows.unpersist()
            self.kept.discard(rows)

    def _gathered(self, sides: Sequence[MovedFragments]) -> Any:
        """Return all fragments, each in the partition of its number; the partitions count up."""
        numbers = np.array(sorted({number for own in sides for number in own.sizes}))
        n = max(min(len(numbers), MOST_TASKS), 1)
        each = list({own.step: own.rows for own in sides}.values())
        rows = each[0] if len(each) == 1 else self.context.union(each)
        return rows.filter(_is_rows).partitionBy(n, partial(_partition_of, numbers, n))


@contextmanager
def _without_pandas() -> Iterator[None]:
    """Call what Spark keeps beside its pandas, of whose version it warns: none of it is used."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
        yield


def _is_rows(one: tuple[int | None, Any]) -> bool:
    return one[0] is not None


def _is_news(one: tuple[int | None, Any]) -> bool:
    return one[0] is None


def _partition_of(numbers: Integers, n: int, number: int) -> int:
    return int(np.searchsorted(numbers, number)) * n // len(numbers)


def _packed(rows: pa.Table) -> bytes:
    content = pa.BufferOutputStream()
    with pa.ipc.new_stream(content, rows.schema) as stream:
        stream.write_table(rows)
    return content.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _unpacked(rows: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(rows)) as stream:
        return stream.read_all()


def _slices(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    """Cut rows into parts of about so many bytes."""
    length = -(-rows.num_rows // -(-rows.nbytes // size)) if rows.nbytes else rows.num_rows
    for first in range(0, rows.num_rows, length):
        yield rows.slice(first, length)


def _facts_of_pieces(count: int) -> dict[int, Facts]:
    """Return the facts of a table of so many rows that has been cut into pieces."""
    return {
        number: {
            "to_keys": np.array([number]),
            "to_starts": np.array([0, min(base.PIECE, count - first)]),
        }
        for number, first in enumerate(range(0, count, base.PIECE))
    }


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make one row of each batch of a data frame."""
    for batch in batches:
        if batch.num_rows:
            rows = _packed(plain(pa.Table.from_batches([batch])))
            yield pa.record_batch({"count": [batch.num_rows], "rows": pa.array([rows])})


def _count(fragments: Iterator[tuple[int, bytes]]) -> Iterator[int]:
    yield sum(count for count, _ in fragments)


def _number(
    step: int, size: int, starts: list[int], partition: int, fragments: Iterator[tuple[int, bytes]]
) -> Iterator[tuple[int, Fragment]]:
    """Cut the fragments of a partition, which begins at a known row, where pieces end."""
    row = starts[partition]
    for _, packed in fragments:
        rows = _unpacked(packed)
        first = 0
        while first < rows.num_rows:
            part = rows.slice(first, size - row % size)
            yield row // size, Fragment(step, row, _packed(part))
            first, row = first + part.num_rows, row + part.num_rows


def _do_all(
    job: Job, steps: list[int], step: int, fragments: Iterator[tuple[int, Fragment]]
) -> Iterator[tuple[int | None, Fragment | News]]:
    """Do the jobs of a partition; `steps` made what is given to them."""
    parallel.stay_on_one_core()
    here: dict[int, list[Fragment]] = {}
    for number, fragment in fragments:
        here.setdefault(number, []).append(fragment)
    for number in sorted(here):
        own = sorted(here.pop(number))
        try:
            rows, facts = addressed(job(number, [_table(own, side) for side in steps]))
        except TessellaError as error:  # to the driver, as it is: it is no failure of Spark
            yield None, News(number, b"", error)
            continue
        if rows is not None:
            starts = facts["to_starts"].tolist()
            for key, first, end in zip(facts["to_keys"].tolist(), starts[:-1], starts[1:]):
                yield key, Fragment(step, number, _packed(rows.slice(first, end - first)))
        yield None, News(number, pack_notes(facts), None)
    _close_archives()


def _close_archives() -> None:
    """Let Python forget the archive that Spark itself is imported from.

    Spark tells Python at every task to look at its search path anew, and Python below 3.13 then
    reads the contents of all archives again (CPython issue 103200): 0.2 seconds a task. What an
    archive has is kept elsewhere, so that imports from it still work, and are as quick.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def _table(fragments: Sequence[Fragment], step: int) -> pa.Table | None:
    found = [_unpacked(one.rows) for one in fragments if one.step == step]
    return pa.concat_tables(found) if found else None


def _in_pairs(fragments: Iterator[tuple[int, Fragment]]) -> list[tuple[int, bytes]]:
    return [(number, one.rows) for number, one in sorted(fragments)]


def _in_order(fragments: Iterator[tuple[int, Fragment]]) -> Iterator[tuple[bytes]]:
    for _, one in sorted(fragments):
        yield (one.rows,)


def _unpack(shape: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make the rows of a data frame of one row for each fragment."""
    for batch in batches:
        for rows in batch.column(0):
            yield from _unpacked(rows.as_buffer()).select(shape.names).cast(shape).to_batches()


def _for_spark(kind: pa.DataType) -> pa.DataType:
    """Return the type that Spark has for texts, bytes, codes and times."""
    if pa.types.is_dictionary(kind):
        return _for_spark(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return kind
