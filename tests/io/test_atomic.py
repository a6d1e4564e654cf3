"""Whole or not at all: also when a process is killed while it writes. Real processes and kills."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tessella import _output
from tessella._output import UNFINISHED, whole_or_nothing
from tessella.exceptions import BadFileError
from tessella.io import read_file, write_file

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})
KILLER = """
import os, random, signal, sys, time
import numpy as np, pyarrow as pa
from tessella import _output
from tessella.io import write_file
import tessella.io.csv_writing, tessella.io.arrow

folder, way, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
if way == "named":
    _output._open_nameless = lambda *_: None
chance = random.Random(times)
columns = {f"c{j}": np.arange(100_000) + j for j in range(5)} | {"t": ["released"] * 100_000}
for number in range(times):
    child = os.fork()
    if not child:  # writes until it is killed
        table = pa.table(columns)
        while True:
            for ending in ("parquet", "csv", "csv.gz"):
                write_file(table, f"{folder}/{number}.{ending}", overwrite=True)
    while number % 5 == 0 and not os.path.exists(f"{folder}/{number}.parquet"):
        time.sleep(0.01)  # some of them write at least one file, however busy the machine
    time.sleep(chance.uniform(0, 0.6))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, status  # and not an error of its own
"""


@pytest.fixture(params=["nameless", "named"])
def way(request, monkeypatch):
    """Both ways: a file without a name (Linux), and a temporary file beside (everywhere)."""
    if request.param == "named":
        monkeypatch.setattr(_output, "_open_nameless", lambda *_: None)
    return request.param


def test_a_file_appears_whole_with_usual_permissions(tmp_path, way):
    path = tmp_path / "x"
    with whole_or_nothing(path, overwrite=False) as file:
        file.write(b"abc")
        assert not path.exists()
    assert path.read_bytes() == b"abc"
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["plain", "x"]


def test_a_temporary_file_is_private_and_says_what_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(_output, "_open_nameless", lambda *_: None)
    with whole_or_nothing(tmp_path / "x", overwrite=False):
        (found,) = tmp_path.iterdir()
        assert UNFINISHED in found.name
        assert stat.S_IMODE(found.stat().st_mode) == 0o600


def test_a_private_file_is_its_owners_only(tmp_path, way):
    with whole_or_nothing(tmp_path / "x", overwrite=False, private=True) as file:
        file.write(b"abc")
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_after_an_error(tmp_path, way, error):
    path = tmp_path / "x"
    path.write_bytes(b"before")

    def fail():
        with whole_or_nothing(path, overwrite=True) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["x"]


def test_nothing_is_replaced_unless_asked(tmp_path, way):
    path = tmp_path / "x.csv"
    write_file(TABLE, path)
    with pytest.raises(BadFileError, match="the file exists"):
        write_file(TABLE, path)
    write_file(TABLE.slice(0, 1), path, overwrite=True)
    assert read_file(path).n_rows == 1

    def too_late():
        with whole_or_nothing(tmp_path / "new", overwrite=False) as file:
            file.write(b"mine")
            (tmp_path / "new").write_bytes(b"somebody else's")

    with pytest.raises(BadFileError, match="the file exists"):
        too_late()
    assert (tmp_path / "new").read_bytes() == b"somebody else's"
    assert sorted(os.listdir(tmp_path)) == ["new", "x.csv"]


def test_places_that_cannot_be(tmp_path):
    with pytest.raises(BadFileError, match="folder does not exist"):
        write_file(TABLE, tmp_path / "no" / "x.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(BadFileError, match="it is a folder"):
        write_file(TABLE, tmp_path / "d.csv", overwrite=True)


def kill_at_random(tmp_path: Path, way: str, times: int) -> None:
    """Kill writers at random moments; what they leave is whole, or has no name."""
    subprocess.run([sys.executable, "-c", KILLER, str(tmp_path), way, str(times)], check=True)
    whole: dict[str, set[bytes]] = {}
    for path in tmp_path.iterdir():
        if UNFINISHED in path.name:  # of released values; not where a file needs no name
            assert way == "named"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600 or path.stat().st_size
            continue
        whole.setdefault(path.name.partition(".")[2], set()).add(path.read_bytes())
    assert whole
    for ending, contents in whole.items():
        (content,) = contents  # the same bytes each time
        (tmp_path / f"x.{ending}").write_bytes(content)
        assert read_file(tmp_path / f"x.{ending}").n_rows == 100_000


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_killed_at_random_moments(tmp_path):
    kill_at_random(tmp_path, "nameless", 4)


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_killed_at_random_moments_beside(tmp_path):
    kill_at_random(tmp_path, "named", 4)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize("way_of", ["nameless", "named"])
def test_killed_a_hundred_times(tmp_path, way_of):
    kill_at_random(tmp_path, way_of, 100)
