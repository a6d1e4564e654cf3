"""The Spark engine, on a real Spark of this machine: the same groups as in memory."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tessella import protect
from tessella.engines import base, spark
from tessella.engines.base import Made
from tessella.engines.cells import EngineCells
from tessella.engines.local import LocalEngine
from tessella.engines.spark import SparkEngine
from tessella.exceptions import (
    BadFileError,
    BadOptionError,
    BadTableError,
    MissingPackageError,
    RefusedError,
)
from tessella.grouping.cells import search_in_cells
from tessella.release import cells as release_cells
from tessella.release import protecting

from .test_local import ROUNDS, as_records, by_memory, first_rows, groups_of, pieces, table

pyspark = pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves its sockets to Python
    pytest.mark.filterwarnings("ignore:distutils Version classes:DeprecationWarning"),  # 3.5
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]

SETTINGS = (
    "--conf spark.ui.enabled=false --conf spark.ui.showConsoleProgress=false "
    "--driver-memory 700m pyspark-shell"
)


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module", params=["local[2,4]"])  # a task may fail three times
def session(request, disk):
    """A session that an engine has built, whose workers find what the tests import."""
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("PYSPARK_PYTHON", sys.executable)
        settings.setenv("PYSPARK_SUBMIT_ARGS", SETTINGS)
        settings.setenv("SPARK_LOCAL_DIRS", str(disk))
        settings.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        # Not by the environment: another test may have started the Java that is there.
        paths = os.pathsep.join(sys.path)
        pyspark.SparkContext.setSystemProperty("spark.executorEnv.PYTHONPATH", paths)
        builder = SparkEngine(master=request.param)
        builder.session.sparkContext.setLogLevel("OFF")
        assert builder.built
        yield builder.session
        builder.close()
        assert pyspark.SparkContext._active_spark_context is None


@pytest.fixture
def engine(session):
    """An engine that leaves nothing behind; what others have left goes when Java collects it."""
    before = kept_by(session)
    engine = SparkEngine(session)
    yield engine
    engine.close()
    assert not kept_by(session) - before


def kept_by(session):
    """Return the numbers of the RDDs whose rows are on disks."""
    return set(session.sparkContext._jsc.getPersistentRDDs())


def groups_by(engine, table, n, units, *, k, cell, seed=1):
    cells = EngineCells(engine, table, [n], has_units=units is not None)
    search_in_cells(
        cells, k, np.random.default_rng(seed), ROUNDS, report=lambda *_: None, cell=cell
    )
    last = engine.work("last", [cells.current], groups_of)
    found = np.full(n, -1)
    for own in last.facts.values():
        found[own["rows"]] = own["groups"]
    return cells, found


@pytest.mark.parametrize("units", [None, 150])
@pytest.mark.parametrize("session", ["local[1]", "local[2,4]"], indirect=True)
def test_the_same_groups_as_in_memory(engine, monkeypatch, units):
    monkeypatch.setattr(base, "PIECE", 1_500)
    X, weights, unit = table(6_000, units=units)
    memory = by_memory(X, weights, unit, k=4, cell=2_000)
    loaded = engine.load(pieces(X, weights, unit, 700))
    records = engine.work("records", [loaded], partial(as_records, base.PIECE), last=[loaded])
    cells, found = groups_by(engine, records, len(X), unit, k=4, cell=2_000)
    np.testing.assert_array_equal(found, first_rows(memory.labels))
    assert cells.sse == pytest.approx(memory.sse, rel=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        {"grouping": "fuzzy", "options": {"at_least_k": False, "c": 9}},
        {"grouping": "mdav", "unit": "home", "rules": ["count(head == 'yes') by home == 1"]},
    ],
)
def test_a_release_by_cells_is_the_same_as_by_processes(session, tmp_path, monkeypatch, given):
    """Fuzzy centres that all cells share, and households in whole units."""
    monkeypatch.setattr(protecting, "LARGE", 500)
    monkeypatch.setattr(release_cells, "CELL", 300)
    random = np.random.default_rng(0)
    home = np.repeat(np.arange(500), random.integers(1, 4, 500))
    first = np.diff(home, prepend=-1) > 0
    rows = pa.table({
        "home": home, "rent": random.lognormal(6, 0.4, 500)[home],
        "age": random.integers(20, 90, len(home)), "head": np.where(first, "yes", "no"),
    })  # fmt: skip
    rows = rows if "unit" in given else rows.select(["rent", "age"])
    pq.write_table(rows, tmp_path / "t.parquet")
    frame = session.read.parquet(str(tmp_path / "t.parquet")).coalesce(1)
    before = kept_by(session)
    release = protect(frame, k=4, random_state=1, **given)
    assert len(kept_by(session) - before) == 1  # what is released, and nothing of the table
    by_spark = [tuple(row) for row in release.table.collect()]
    local = protect(tmp_path / "t.parquet", k=4, random_state=1, memory="500MB", **given)
    assert by_spark == list(pd.read_parquet(local.table).itertuples(index=False, name=None))


def describe(number, given):
    """State which rows a job got, of each side; send rows on by their value."""
    one, two = given
    facts = {
        "number": number,
        "one": [] if one is None else one.column("x").to_pylist(),
        "two": [] if two is None else two.column("x").to_pylist(),
    }
    return Made(two, None if two is None else two.column("x").to_numpy() % 3, facts)


def spread(number, given):
    (rows,) = given
    return Made(rows, rows.column("x").to_numpy() % 7 * 10, {"number": number})


def numbered(n, size=4):
    return [pa.table({"x": np.arange(first, min(first + size, n))}) for first in range(0, n, size)]


def steps(engine):
    """Work with two sides, a number that one of them lacks, and a step that makes no rows."""
    loaded = engine.load(numbered(50))
    sent = engine.work("spread", [loaded], spread)
    both = engine.work("describe", [loaded, sent], describe)
    none = engine.work("nothing", [both], nothing)
    return [sent, both, none, engine.work("nothing", [none], nothing)]


def nothing(number, given):
    return Made(facts={"rows": given[0].column("x").to_pylist()})


def test_facts_and_sizes_as_of_the_local_engine(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "PIECE", 6)
    local = LocalEngine(tmp_path, {})
    for ours, theirs in zip(steps(engine), steps(local), strict=True):
        assert ours.sizes == theirs.sizes
        assert list(ours.sizes) == sorted(ours.sizes)
        assert list(ours.facts) == list(theirs.facts) == sorted(ours.facts)
        for number, facts in theirs.facts.items():
            assert facts.keys() == ours.facts[number].keys()
            for name, values in facts.items():
                np.testing.assert_array_equal(ours.facts[number][name], values)
                assert ours.facts[number][name].dtype == values.dtype
    local.close()


def partition(number, given):
    return Made(facts={"partition": pyspark.TaskContext.get().partitionId()})


@pytest.mark.parametrize("most", [100, 5])
def test_jobs_are_spread_over_tasks(engine, monkeypatch, most):
    """A task for each job; where that is too many, jobs of about the same number to each."""
    monkeypatch.setattr(base, "PIECE", 2)
    monkeypatch.setattr(spark, "MOST_TASKS", most)
    found = engine.work("partition", [engine.load(numbered(26))], partition).facts
    tasks, jobs = np.unique([own["partition"] for own in found.values()], return_counts=True)
    assert len(tasks) == min(most, 13)
    assert jobs.max() - jobs.min() <= 1


def test_a_table_goes_to_the_executors_in_several_submissions(engine, monkeypatch):
    monkeypatch.setattr(base, "PIECE", 20)
    monkeypatch.setattr(spark, "TASK", 60)  # bytes: a piece is cut into three
    monkeypatch.setattr(spark, "SUBMISSION", 2_000)
    loaded = engine.load(numbered(50))
    assert len(loaded.kept) > 1
    assert loaded.sizes == {0: 20, 1: 20, 2: 10}
    found = engine.work("nothing", [loaded], nothing).facts
    assert [own["rows"].tolist() for own in found.values()] == [
        list(range(20)), list(range(20, 40)), list(range(40, 50)),
    ]  # fmt: skip


@pytest.mark.parametrize("checkpoints", [False, True])
def test_rows_of_a_data_frame_are_numbered_by_partition(
    engine, session, tmp_path, monkeypatch, checkpoints
):
    """Partitions of any size, some of them empty; batches that are no divisors of a piece."""
    monkeypatch.setattr(base, "PIECE", 30)
    context = session.sparkContext
    monkeypatch.setattr(context, "getCheckpointDir", lambda: checkpoints)
    if checkpoints:
        context.setCheckpointDir(str(tmp_path))
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    bounds = [0, 0, 41, 42, 42, 90, 100, 100]
    parts = context.parallelize(range(7), 7).flatMap(
        lambda part: [(x, str(x)) for x in range(bounds[part], bounds[part + 1])]
    )
    loaded = engine.load_frame(session.createDataFrame(parts, "x long, name string"))
    session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert loaded.sizes == {0: 30, 1: 30, 2: 30, 3: 10}
    found = engine.work("nothing", [loaded], nothing).facts
    assert [own["rows"].tolist() for own in found.values()] == [
        list(range(first, min(first + 30, 100))) for first in (0, 30, 60, 90)
    ]
    types = engine.work("types", [loaded], types_of).facts[0]["types"].tolist()
    assert types == ["int64", "large_string"]  # as in a table that is loaded
    assert bool(list(tmp_path.rglob("part-*"))) == checkpoints


def types_of(number, given):
    return Made(facts={"types": [str(kind) for kind in given[0].schema.types]})


def test_a_data_frame_of_random_order_is_numbered_once(engine, session, monkeypatch):
    """Each use of the frame gives another order; each step must see the same."""
    monkeypatch.setattr(base, "PIECE", 9)
    frame = session.range(40, numPartitions=3).selectExpr("id as x", "uuid() as name")
    loaded = engine.load_frame(frame)
    one, two = (engine.work("names", [loaded], names).facts for _ in range(2))
    for number, own in one.items():
        np.testing.assert_array_equal(own["names"], two[number]["names"])


def names(number, given):
    return Made(facts={"names": given[0].column("name").to_pylist()})


def fail(error, number, given):
    if number in (2, 5):
        raise error
    return Made(given[0], np.zeros(given[0].num_rows, dtype=int))


@pytest.mark.parametrize(
    "error",
    [
        BadTableError("Weights must be above 0."),
        RefusedError("Nothing is released."),
        BadFileError("some.rows", "the file is damaged", "Remove it", line=3),
    ],
)
def test_an_error_of_a_job_reaches_the_driver_as_it_is(engine, session, monkeypatch, error):
    monkeypatch.setattr(base, "PIECE", 6)
    loaded = engine.load(numbered(50))
    before = kept_by(session)
    with pytest.raises(type(error)) as caught:
        engine.work("fail", [loaded], partial(fail, error))
    assert type(caught.value) is type(error)
    assert str(caught.value) == str(error)
    assert vars(caught.value) == vars(error)
    assert kept_by(session) <= before


def test_an_error_that_is_none_of_ours_is_spark_giving_up(engine):
    loaded = engine.load(numbered(5))
    with pytest.raises(RefusedError, match=r"'fail'(?s:.*)Nothing is released(?s:.*)KeyError"):
        engine.work("fail", [loaded], raise_key_error)


def raise_key_error(number, given):
    raise KeyError("a mistake in a job")


def test_rows_are_removed_when_they_are_not_needed(engine, session, monkeypatch):
    monkeypatch.setattr(base, "PIECE", 6)
    before = kept_by(session)
    loaded = engine.load(numbered(50))
    assert len(table := kept_by(session) - before) == 1
    sent = engine.work("spread", [loaded], spread)
    again = engine.work("spread", [sent], spread, last=[loaded, sent])
    assert len(last := kept_by(session) - before) == 1
    assert not last & table
    engine.work("nothing", [again], nothing)  # which makes no rows, so nothing is kept
    assert kept_by(session) - before == last
    assert again.sizes == {10 * x: len(range(x, 50, 7)) for x in range(7)}


def test_a_step_that_is_lost_is_computed_again(engine, session, monkeypatch):
    """As if its executor were lost, when the steps before it have been removed already."""
    monkeypatch.setattr(base, "PIECE", 6)
    loaded = engine.load(numbered(50))
    sent = engine.work("spread", [loaded], spread)
    again = engine.work("spread", [sent], spread, last=[sent])
    expected = engine.work("nothing", [again], nothing).facts
    engine._forget(again.kept)
    found = engine.work("nothing", [again], nothing).facts
    assert list(found) == list(expected)
    for number, own in found.items():
        np.testing.assert_array_equal(own["rows"], expected[number]["rows"])


def test_a_frame_has_the_rows_of_a_step_in_order(engine, session, monkeypatch):
    monkeypatch.setattr(base, "PIECE", 6)
    when = pa.array(np.arange(20).astype("datetime64[s]"))
    given = pa.table({
        "x": np.arange(20), "text": [f"text {x}" if x % 3 else None for x in range(20)],
        "when": when, "half": np.arange(20) / 2,
        "code": pa.array(["a", "b"] * 10).dictionary_encode(),
    })  # fmt: skip
    loaded = engine.load([given])
    for moved in (loaded, engine.work("home", [engine.work("away", [loaded], away)], home)):
        frame = engine.frame(moved, given.schema)
        assert frame.schema.simpleString() == (
            "struct<x:bigint,text:string,when:timestamp_ntz,half:double,code:string>"
        )
        rows = [tuple(row) for row in frame.collect()]
        assert rows == list(zip(*(column.to_pylist() for column in given.columns)))
        part = engine.frame(moved, given.select(["half", "x"]).schema)
        assert [tuple(row) for row in part.collect()] == [(x / 2, x) for x in range(20)]


def away(number, given):
    (rows,) = given
    return Made(rows, rows.column("x").to_numpy() // 5)


def home(number, given):
    (rows,) = given
    return Made(rows, rows.column("x").to_numpy() // 9)


def test_a_worker_that_is_killed_is_replaced(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "PIECE", 6)
    loaded = engine.load(numbered(50))
    expected = engine.work("spread", [loaded], spread)
    flag = tmp_path / "killed"
    found = engine.work("spread", [loaded], partial(spread_or_die, flag))
    assert flag.exists()
    assert found.sizes == expected.sizes
    assert list(found.facts) == list(expected.facts)
    rows = [engine.work("nothing", [own], nothing).facts for own in (found, expected)]
    for number, own in rows[0].items():
        np.testing.assert_array_equal(own["rows"], rows[1][number]["rows"])


def spread_or_die(flag: Path, number, given):
    if number == 3 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return spread(number, given)


@pytest.mark.parametrize("wrong", ["empty", "infinite", "mixed"])
def test_tables_that_cannot_be_searched(engine, session, wrong):
    X, weights, unit = table(200, units=50)
    given = {
        "empty": pieces(X[:0], weights, None, 100),
        "infinite": pieces(np.where(X.max() == X, np.inf, X), weights, None, 100),
        "mixed": [*pieces(X[:100], weights, None, 100), *pieces(X[100:], weights, unit, 100)],
    }[wrong]
    with pytest.raises(BadTableError):
        engine.work("records", [engine.load(given)], partial(as_records, base.PIECE))
    with pytest.raises(BadTableError, match="empty"):
        engine.load_frame(session.range(0))


def test_an_engine_takes_the_active_session_and_leaves_it(session):
    engine = SparkEngine()
    assert engine.session.sparkContext is session.sparkContext
    engine.close()
    assert session.range(3).count() == 3


def test_a_session_without_a_context_is_refused():
    class Remote:
        @property
        def sparkContext(self):
            raise RuntimeError("not supported in Spark Connect")

    with pytest.raises(BadOptionError, match="Spark Connect"):
        SparkEngine(Remote())


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingPackageError, match=r"tessella\[spark\]"):
        SparkEngine()
