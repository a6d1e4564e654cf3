"""Tables written piece by piece: the same as whole, or nothing at all."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import stat

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tessella.exceptions import BadFileError, BadTableError
from tessella.io import Metadata, Variable, csv_reading, read_file, write_file
from tessella.io.pieces import open_pieces, staged_pieces

from .test_pieces import TABLE, assert_same, joined, written

LABELS = Metadata({"n": Variable(label="N", labels={1: "one", 900: "nine hundred", 5000: "none"})})


def some(table, n_rows=300):
    return (table.slice(begin, n_rows) for begin in range(0, table.num_rows, n_rows))


def test_parquet_out(tmp_path):
    path = tmp_path / "x.parquet"
    like = read_file(written(tmp_path, "n\n1\n"), metadata=LABELS)
    with staged_pieces(some(TABLE), path, like=like) as done:
        assert not path.exists()
    again = read_file(path)
    assert again.table.equals(TABLE)
    assert again.metadata["n"].labels == {1: "one", 900: "nine hundred"}
    assert pq.ParquetFile(path).metadata.num_row_groups == 4
    assert done.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (done.size, done.n_rows, done.format) == (path.stat().st_size, 1000, "parquet")
    assert done.columns == tuple(TABLE.column_names)
    assert [str(one) for one in done.statements] == ["labels: under the key 'tessella' of the file"]
    with staged_pieces(some(TABLE), path, like=like, keep_labels=True, overwrite=True):
        pass
    assert read_file(path).metadata == LABELS
    assert sorted(os.listdir(tmp_path)) == ["x.csv", "x.parquet"]


def test_a_folder_out(tmp_path):
    path = tmp_path / "release"
    like = read_file(written(tmp_path, "n\n1\n"), metadata=LABELS)
    with staged_pieces(some(TABLE), path, like=like) as done:
        assert not path.exists()
        (beside,) = (found for found in tmp_path.iterdir() if found.name.startswith("."))
        assert stat.S_IMODE(beside.stat().st_mode) == 0o700
    again = assert_same(path)
    assert joined(again).equals(TABLE)
    assert again.metadata["n"].labels == {1: "one", 900: "nine hundred"}
    plain = tmp_path / "plain"
    plain.mkdir()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    digests = b""
    for name, digest, size in done.parts:
        content = (path / name).read_bytes()
        assert (digest, size) == (hashlib.sha256(content).hexdigest(), len(content))
        digests += digest.encode() + b"\n"
    assert [name for name, _, _ in done.parts] == [
        f"part-0000{place}.parquet" for place in range(4)
    ]
    assert sorted(os.listdir(path)) == [name for name, _, _ in done.parts]
    assert done.sha256 == hashlib.sha256(digests).hexdigest()
    assert done.size == sum(part[2] for part in done.parts)
    assert done.to_dict()["parts"][0] == dict(zip(("file", "sha256", "bytes"), done.parts[0]))
    assert sorted(os.listdir(tmp_path)) == ["plain", "release", "x.csv"]


def test_a_folder_is_replaced_only_if_asked_and_if_it_holds_parts_alone(tmp_path):
    path = tmp_path / "release"
    path.mkdir()  # an empty one is no loss
    with staged_pieces([TABLE], path):
        pass

    def write(**options):
        with staged_pieces(some(TABLE, 500), f"{path}/", **options):
            pass

    with pytest.raises(BadFileError, match="exists"):
        write()
    write(overwrite=True)
    assert len(os.listdir(path)) == 2
    (path / "mine.txt").touch()
    with pytest.raises(BadFileError, match=r"'mine.txt'.*would be lost"):
        write(overwrite=True)
    assert sorted(os.listdir(path))[0] == "mine.txt"
    assert os.listdir(tmp_path) == ["release"]
    with (
        pytest.raises(BadFileError, match="it is a file"),
        staged_pieces([TABLE], f"{path}/mine.txt/"),
    ):
        pass


MIXED = pa.table(
    {
        "=name": ["=1+1", "x", None, '"', "-5", "a\nb"] * 50,
        "x": [1.5, float("nan"), None, 1e20, 3.0, -0.0] * 50,
        "at": pa.array([0, 1_000_000, None, 5, 6, 7] * 50, pa.timestamp("us")),
        "c": pa.array(["x", "y", None] * 100).dictionary_encode(),
    }
)


@pytest.mark.parametrize("cells", [40, 1 << 21])
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "csv.zst"])
@pytest.mark.parametrize("n_rows", [7, 1000])
def test_csv_out_has_the_bytes_of_the_whole(tmp_path, monkeypatch, cells, ending, n_rows):
    monkeypatch.setattr("tessella.io.csv_writing._CELLS", cells)
    like = read_file(written(tmp_path, "n;x\n1;1,5\n"), metadata=LABELS)
    for source in (None, like, open_pieces(like.path, metadata=LABELS)):
        whole = tmp_path / f"whole.{ending}"
        expected = write_file(MIXED, whole, like=source, overwrite=True)
        path = tmp_path / f"pieces.{ending}"
        with staged_pieces(some(MIXED, n_rows), path, like=source, overwrite=True) as done:
            pass
        assert path.read_bytes() == whole.read_bytes()
        assert done.sha256 == expected.sha256
        assert done.statements == expected.statements
        assert (done.n_rows, done.size) == (expected.n_rows, expected.size)
        assert (done.columns, done.format) == (expected.columns, expected.format)


def test_csv_labels_are_stated_to_be_lost(tmp_path):
    like = open_pieces(written(tmp_path, "n\n1\n"), metadata=LABELS)
    table = pa.table({"n": [1, 2]})
    with staged_pieces([table], tmp_path / "y.csv", like=like) as done:
        pass
    assert done.statements == write_file(table, tmp_path / "z.csv", like=like).statements


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet", "x"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_when_the_rows_end_early(tmp_path, name, error):
    def rows():
        yield TABLE
        yield TABLE
        raise error

    with pytest.raises(error), staged_pieces(rows(), tmp_path / name):
        pass
    with pytest.raises(error), staged_pieces([TABLE], tmp_path / name):
        raise error
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x"])
def test_nothing_is_left_when_the_disk_is_full(tmp_path, name, monkeypatch):
    with staged_pieces([TABLE], tmp_path / name):
        pass
    before = read_file(tmp_path / name).table

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    full_disk = pytest.raises(BadFileError, match="no space left")
    with full_disk, staged_pieces(some(TABLE, 50), tmp_path / name, overwrite=True):
        pass
    assert read_file(tmp_path / name).table.equals(before)
    assert os.listdir(tmp_path) == [name]


def test_places_that_are_refused(tmp_path):
    source = written(tmp_path, "n\n1\n")
    like = open_pieces(source)
    with (
        pytest.raises(BadFileError, match="original"),
        staged_pieces([TABLE], source, like=like, overwrite=True),
    ):
        pass
    with staged_pieces([TABLE], tmp_path / "release"):
        pass
    for path in (tmp_path / "release", tmp_path / "release" / "part-00000.parquet"):
        with (
            pytest.raises(BadFileError, match="original"),
            staged_pieces([TABLE], tmp_path / "release", like=open_pieces(path), overwrite=True),
        ):
            pass
    for name in ("x.xlsx", "x.feather", "x.sav"):
        with (
            pytest.raises(BadFileError, match="not written in pieces"),
            staged_pieces([TABLE], tmp_path / name),
        ):
            pass
    with (
        pytest.raises(BadFileError, match="folder does not exist"),
        staged_pieces([TABLE], tmp_path / "no" / "x"),
    ):
        pass
    with pytest.raises(BadFileError, match="ending"), staged_pieces([TABLE], tmp_path / "x.v2"):
        pass


def test_tables_that_are_refused(tmp_path):
    path = tmp_path / "x.parquet"
    with pytest.raises(BadTableError, match="no table"), staged_pieces([], path):
        pass
    other = TABLE.cast(TABLE.schema.set(0, pa.field("n", pa.int64())))
    differ = pytest.raises(BadTableError, match="'n': it is int32 in the first and int64")
    with differ, staged_pieces([TABLE, other], path):
        pass
    assert os.listdir(tmp_path) == []
    with staged_pieces([TABLE.slice(0, 0), TABLE, TABLE.slice(0, 0)], tmp_path / "x") as done:
        pass
    assert len(done.parts) == 1
    with staged_pieces([TABLE.slice(0, 0)], path) as done:
        pass
    assert read_file(path).table.schema == TABLE.schema


def test_nothing_underneath_missing_cells_is_written(tmp_path):
    """A bug once met in whole files: values stay in memory under missing cells."""
    secret = pa.array([11.5, 12.5, 13.5]).to_numpy()
    buffer = pa.py_buffer(secret.tobytes())
    column = pa.Array.from_buffers(pa.float64(), 3, [pa.py_buffer(b"\x05"), buffer])
    with staged_pieces([pa.table({"a": column})], tmp_path / "x"):
        pass
    (part,) = (tmp_path / "x").iterdir()
    assert read_file(part).table["a"].to_pylist() == [11.5, None, 13.5]
    assert secret[1].tobytes() not in part.read_bytes()


def test_what_is_read_in_pieces_is_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_reading, "CHUNK", 200)
    path = tmp_path / "x.csv"
    write_file(MIXED, path)
    pieces = open_pieces(path)
    with staged_pieces(pieces.tables(), tmp_path / "y", like=pieces):
        pass
    assert read_file(tmp_path / "y").table.equals(read_file(path).table)
    with staged_pieces(open_pieces(tmp_path / "y").tables(), tmp_path / "z.csv.gz", like=pieces):
        pass
    whole = write_file(read_file(path).table, tmp_path / "w.csv", like=pieces)
    packed = (tmp_path / "z.csv.gz").read_bytes()
    assert gzip.decompress(packed) == whole.path.read_bytes()
