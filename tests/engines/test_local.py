"""The local engine: the same groups as in memory, whoever is killed, and whenever."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tessella.engines import base
from tessella.engines.base import Made
from tessella.engines.cells import EngineCells, numbers, records
from tessella.engines.local import LocalEngine
from tessella.engines.work import Workshop
from tessella.exceptions import BadFileError, BadTableError, RefusedError
from tessella.grouping import cells as in_cells
from tessella.grouping.cells import MemoryCells, search_in_cells
from tessella.grouping.search import MIX, REFINE

ROUNDS = [(20.0, MIX), (20.0, REFINE)]
HALT = np.zeros(1, dtype=np.uint8)


def table(n, *, seed=0, units=None):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 3)) * (random.random((n, 3)) < 0.7)
    weights = random.uniform(0.5, 2.0, n)
    return X, weights, None if units is None else random.integers(units, size=n)


def pieces(X, weights, units, size):
    for first in range(0, len(X), size):
        own = slice(first, first + size)
        columns = {f"x{j}": column for j, column in enumerate(X[own].T)}
        columns["weight"] = weights[own]
        if units is not None:
            columns["unit"] = units[own]
        yield pa.table(columns)


def as_records(size, number, given):
    (rows,) = given
    names = [name for name in rows.column_names if name.startswith("x")]
    X = np.column_stack([rows.column(name).to_numpy() for name in names])
    row = number * size + np.arange(len(X))
    units = rows.column("unit").to_numpy() if "unit" in rows.column_names else None
    return Made(records(row, X, rows.column("weight").to_numpy(), units), np.full(len(X), number))


def by_memory(X, weights, units, *, k, cell, seed=1):
    cells = MemoryCells(X, weights, units, HALT)
    search_in_cells(
        cells, k, np.random.default_rng(seed), ROUNDS, report=lambda *_: None, cell=cell
    )
    return cells


def by_files(folder, X, weights, units, *, k, cell, seed=1, n_jobs=1, size=700, rounds=ROUNDS):
    engine = LocalEngine(folder, {"k": k, "seed": seed}, n_jobs=n_jobs)
    try:
        table = engine.work(
            "records",
            [engine.load(pieces(X, weights, units, size))],
            partial(as_records, base.PIECE),
        )
        cells = EngineCells(engine, table, [len(X)], has_units=units is not None)
        search_in_cells(
            cells, k, np.random.default_rng(seed), rounds, report=lambda *_: None, cell=cell
        )
        last = engine.work("last", [cells.current], groups_of)
    finally:
        engine.close()
    found = np.full(len(X), -1)
    for own in last.facts.values():
        assert (found[own["rows"]] == -1).all()
        found[own["rows"]] = own["groups"]
    assert (found >= 0).all()
    return cells, found


def groups_of(_, given):
    (rows,) = given
    return Made(facts={"rows": numbers(rows, "row"), "groups": numbers(rows, "group")})


def first_rows(labels):
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return first[inverse]


@cache
def whole(units):
    """What one process finds in memory; two tests compare with it."""
    return by_memory(*table(10_000, units=units), k=4, cell=6_000)


@pytest.mark.parametrize("units", [None, 300])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_groups_as_in_memory(tmp_path, monkeypatch, units, n_jobs):
    """Cells have several windows, which are drawn by the numbers of groups."""
    monkeypatch.setattr(base, "PIECE", 2_000)  # the pieces of another number than those given
    X, weights, unit = table(10_000, units=units)
    memory = whole(units)
    cells, found = by_files(tmp_path, X, weights, unit, k=4, cell=6_000, n_jobs=n_jobs)
    np.testing.assert_array_equal(found, first_rows(memory.labels))
    assert cells.sse == pytest.approx(memory.sse, rel=1e-12)


def test_small_windows_in_many_cells_are_the_same_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(in_cells, "LARGE_WINDOW", 60)
    X, weights, unit = table(3_000)
    memory = by_memory(X, weights, unit, k=4, cell=300)
    _, found = by_files(tmp_path, X, weights, unit, k=4, cell=300)
    np.testing.assert_array_equal(found, first_rows(memory.labels))


def test_cells_that_are_too_small_join_others(tmp_path):
    """Two units have nearly all records: most cells have fewer than k units."""
    X, weights, unit = table(3_000, units=2)
    unit[:9] = np.arange(9)
    memory = by_memory(X, weights, unit, k=3, cell=300)
    _, found = by_files(tmp_path, X, weights, unit, k=3, cell=300)
    np.testing.assert_array_equal(found, first_rows(memory.labels))


def test_only_the_last_rows_stay_and_are_for_their_owner(tmp_path):
    X, weights, unit = table(2_000)
    by_files(tmp_path, X, weights, unit, k=4, cell=500)
    kept = {path.parent.name[10:] for path in tmp_path.rglob("*.rows")}
    assert kept == {"read", "records", "cells"}
    assert {path.stat().st_mode & 0o077 for path in tmp_path.rglob("*.rows")} == {0}
    assert not list(tmp_path.rglob(".*"))


def test_units_that_lie_together_leave_few_cells_and_one_copy(tmp_path):
    """Cells of too few units are joined in a few passes, and rows of old passes removed."""
    X = np.sort(np.random.default_rng(0).standard_normal((3_000, 1)), axis=0)
    unit = np.arange(3_000) // 100
    by_files(tmp_path, X, np.ones(3_000), unit, k=4, cell=80, rounds=ROUNDS[:1])
    assert len(list(tmp_path.glob("step-*-send"))) <= 8
    kept = {path.parent.name[10:] for path in tmp_path.rglob("*.rows")}
    assert kept == {"read", "records", "cells"}


def test_work_with_units_goes_on(tmp_path):
    X, weights, unit = table(2_000, units=300)
    _, first = by_files(tmp_path, X, weights, unit, k=4, cell=300, rounds=ROUNDS[:1])
    _, again = by_files(tmp_path, X, weights, unit, k=4, cell=300, rounds=ROUNDS[:1])
    np.testing.assert_array_equal(first, again)


def test_other_work_in_the_folder_is_refused(tmp_path):
    LocalEngine(tmp_path, {"k": 3}).close()
    LocalEngine(tmp_path, {"k": 3}).close()
    with pytest.raises(BadFileError, match="another task"):
        LocalEngine(tmp_path, {"k": 4})
    (tmp_path / "task.json").rename(tmp_path / "other.json")
    with pytest.raises(BadFileError, match="another task"):
        LocalEngine(tmp_path, {"k": 3})


def test_another_table_in_the_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "PIECE", 500)
    X, weights, unit = table(2_000)
    by_files(tmp_path, X, weights, unit, k=4, cell=300, rounds=[])
    for other in (X + 1, X[:1_900], X[:1_500], np.vstack([X, X]), np.hstack([X, X])):
        with pytest.raises(BadFileError, match="another table"):
            by_files(tmp_path, other, np.ones(len(other)), None, k=4, cell=300, rounds=[])
    with pytest.raises(BadFileError, match="another table"):
        by_files(tmp_path, X, weights, np.arange(2_000), k=4, cell=300, rounds=[])
    by_files(tmp_path, X, weights, unit, k=4, cell=300, rounds=[])


def test_a_file_that_was_cut_short_is_noticed(tmp_path):
    X, weights, unit = table(2_000)
    by_files(tmp_path, X, weights, unit, k=4, cell=300, rounds=ROUNDS[:1])
    (last,) = {path.parent for path in tmp_path.rglob("*.rows") if "cells" in path.parent.name}
    cut = sorted(last.glob("*.rows"))[0]
    os.truncate(cut, cut.stat().st_size - 300)
    with pytest.raises(BadFileError, match="damaged"):
        by_files(tmp_path, X, weights, unit, k=4, cell=300, rounds=ROUNDS)


@pytest.mark.parametrize("wrong", ["empty", "infinite", "no weight", "mixed"])
def test_tables_that_cannot_be_searched(tmp_path, wrong):
    X, weights, unit = table(200, units=50)
    given = {
        "empty": pieces(X[:0], weights, None, 100),
        "infinite": pieces(np.where(X.max() == X, np.inf, X), weights, None, 100),
        "no weight": pieces(X, np.where(np.arange(200) == 7, 0.0, weights), None, 100),
        "mixed": [*pieces(X[:100], weights, None, 100), *pieces(X[100:], weights, unit, 100)],
    }[wrong]
    engine = LocalEngine(tmp_path, {})
    with pytest.raises(BadTableError):
        engine.work("records", [engine.load(given)], partial(as_records, base.PIECE))
    engine.close()


def test_pieces_are_the_same_however_they_come():
    X, weights, unit = table(500, units=9)
    found = [
        list(base.in_pieces(pieces(X, weights, unit, size), 70)) for size in (1, 64, 70, 71, 500)
    ]
    for other in found[1:]:
        assert all(one.equals(two) for one, two in zip(found[0], other, strict=True))
    assert [piece.num_rows for piece in found[0]] == [70] * 7 + [10]


DRIVER = """
import sys
from pathlib import Path
from tests.engines.test_local import by_files, table
if __name__ == "__main__":
    by_files(Path(sys.argv[1]), *table(6_000, seed=3), k=4, cell=600, n_jobs=int(sys.argv[2]))
    print("done")
"""


def drive(folder: Path, n_jobs: int) -> subprocess.Popen[bytes]:
    script = folder.parent / "driver.py"
    script.write_text(DRIVER)
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, str(script), str(folder), str(n_jobs)], stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"  # one that has ended and that nobody has asked for is no worker


def workers_of(process: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if path.read_text().rsplit(")", 1)[1].split()[1] == str(process):
                found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_workers_end_with_their_driver(tmp_path):
    process = drive(tmp_path / "work", 2)
    while process.poll() is None and n_done(tmp_path / "work") < 9:
        time.sleep(0.01)
    workers = workers_of(process.pid)
    process.kill()
    process.wait()
    assert len(workers) >= 2
    for _ in range(1_000):
        if not any(map(is_running, workers)):
            break
        time.sleep(0.01)
    assert not any(map(is_running, workers))


def n_done(folder: Path) -> int:
    return len(list(folder.rglob("*.npz")))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills a process as POSIX does")
def test_a_driver_that_is_killed_goes_on_where_it_was(tmp_path):
    X, weights, unit = table(6_000, seed=3)
    _, expected = by_files(tmp_path / "whole", X, weights, unit, k=4, cell=600)
    folder = tmp_path / "killed"
    kills = 0
    for more in (1, 7, 5, 11):  # jobs that it may do until it is killed
        before = n_done(folder)
        process = drive(folder, 1)
        while process.poll() is None and n_done(folder) < before + more:
            time.sleep(0.002)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills >= 2
    assert drive(folder, 1).wait() == 0
    _, found = by_files(folder, X, weights, unit, k=4, cell=600)
    np.testing.assert_array_equal(found, expected)


def _die_once(flag: Path, job: int) -> int:
    if job == 2 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * job


def _die(_: int) -> None:
    os.kill(multiprocessing.current_process().pid, signal.SIGKILL)


@pytest.mark.skipif(os.name != "posix", reason="kills a process as POSIX does")
def test_a_worker_that_is_killed_is_replaced_but_not_for_ever(tmp_path):
    work = Workshop(tmp_path / "work", {}, n_jobs=2)
    try:
        assert list(work.map(partial(_die_once, tmp_path / "flag"), list(range(5)))) == [
            0, 10, 20, 30, 40,
        ]  # fmt: skip
        with pytest.raises(RefusedError, match="kept"):
            list(work.map(_die, [1, 2]))
    finally:
        work.close()


def _find_damage(_: int) -> None:
    raise BadFileError("some.rows", "the file is damaged", "Remove it", line=3)


def test_an_error_of_a_worker_arrives_as_it_is(tmp_path):
    """Its class has no argument for the message, as pickle would have it; the pool broke once."""
    work = Workshop(tmp_path / "work", {}, n_jobs=2)
    try:
        with pytest.raises(BadFileError, match="line 3: the file is damaged") as caught:
            list(work.map(_find_damage, [1, 2]))
        assert (caught.value.path, caught.value.line) == ("some.rows", 3)
    finally:
        work.close()
