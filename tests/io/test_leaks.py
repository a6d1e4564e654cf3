"""What must not be in a file is not in its bytes. The files are searched, not our reading of them.

Formats pack their contents, so a word is looked for in the raw bytes and in what other programs
unpack from them: zip parts, gzip and zstd streams, dictionaries and footers of Parquet and Arrow.
"""

from __future__ import annotations

import gzip
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tessella.exceptions import BadFileError
from tessella.io import Metadata, Variable, read_file, write_file

ALL = ("csv", "csv.gz", "csv.zst", "parquet", "feather", "xlsx", "sav", "zsav", "dta", "xpt")
SECRET = "SUPPRESSED"


def unpacked(path):
    """All bytes that a curious reader can get out of a file."""
    raw = path.read_bytes()
    parts = [raw]
    if path.suffix == ".gz":
        parts.append(gzip.decompress(raw))
    if path.suffix == ".zst":
        parts.append(pa.input_stream(str(path), compression="zstd").read())
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as archive:
            parts += [archive.read(name) for name in archive.namelist()]
    if path.suffix == ".parquet":
        file = pq.ParquetFile(path)
        parts += [str(file.metadata).encode(), str(file.schema_arrow.metadata).encode()]
        # The pages again, without packing; categories that no record has stay in a dictionary.
        pq.write_table(file.read(), path.with_suffix(".plain"), compression="none")
        parts.append(path.with_suffix(".plain").read_bytes())
    if path.suffix == ".feather":
        with pa.OSFile(str(path)) as opened, pa.ipc.open_file(opened) as reader:
            parts.append(str(reader.schema.metadata).encode())
            for j in range(reader.num_record_batches):
                for column in reader.get_batch(j).columns:
                    held = [column]
                    if pa.types.is_dictionary(column.type):
                        held = [column.indices, column.dictionary]
                    for array in held:
                        parts += [bytes(b) for b in array.buffers() if b is not None]
    return b"\0".join(parts)


def written(frame, tmp_path, ending, **options):
    return unpacked(write_file(frame, tmp_path / f"release.{ending}", **options).path)


@pytest.mark.parametrize("ending", ALL)
def test_no_category_that_no_record_has(tmp_path, ending):
    kept = ["low", "high", "low"]
    pandas = pd.DataFrame({"c": pd.Categorical(kept, categories=["low", SECRET, "high"])})
    assert SECRET.encode() not in written(pandas, tmp_path, ending)
    polars = pl.DataFrame({"c": pl.Series([*kept, SECRET], dtype=pl.Categorical)}).head(3)
    assert SECRET.encode() not in written(polars, tmp_path, ending, overwrite=True)
    enum = pl.DataFrame({"c": pl.Series(kept, dtype=pl.Enum(["low", SECRET, "high"]))})
    assert SECRET.encode() not in written(enum, tmp_path, ending, overwrite=True)


@pytest.mark.parametrize("ending", ALL)
def test_no_label_of_a_value_that_does_not_occur(tmp_path, ending):
    labels = {1: "kept", 2: SECRET}
    metadata = Metadata({"x": Variable(labels=labels), "gone": Variable(label=SECRET)})
    table = pa.table({"x": [1, 1, None]}).append_column("y", pa.array([1, 2, 3]))
    content = written(table, tmp_path, ending, metadata=metadata)
    assert SECRET.encode() not in content
    if ending in ("parquet", "feather", "sav", "dta"):
        assert b"kept" in content
        assert SECRET.encode() in written(
            table, tmp_path, ending, metadata=metadata, keep_labels=True, overwrite=True
        )


@pytest.mark.parametrize("ending", ALL)
def test_nothing_underneath_missing_cells_or_outside_of_a_slice(tmp_path, ending):
    """Arrow and pandas keep the value of a cell that was made missing; a slice keeps the whole."""
    hidden = np.array([1, 0x5345435245545321, 3])  # the letters SECRETS! backwards
    mask = np.array([False, True, False])
    pandas = pd.DataFrame({"n": pd.arrays.IntegerArray(hidden, mask), "z": [1, 2, 3]})
    assert b"!STERCES" not in written(pandas, tmp_path, ending)
    texts = pa.array(["a", SECRET, "c"])
    offsets, data = texts.buffers()[1:]
    validity = pa.array([True, False, True]).buffers()[1]
    masked = pa.Array.from_buffers(pa.string(), 3, [validity, offsets, data])
    table = pa.table({"s": masked, "z": [1, 2, 3]})
    assert SECRET.encode() not in written(table, tmp_path, ending, overwrite=True)
    sliced = pa.table({"s": [SECRET, "b", SECRET], "z": [1, 2, 3]}).slice(1, 1)
    assert SECRET.encode() not in written(sliced, tmp_path, ending, overwrite=True)


@pytest.mark.parametrize("ending", ALL)
def test_no_index_attribute_or_note(tmp_path, ending):
    frame = pd.DataFrame({"x": [1, 2]}, index=[SECRET, "other"])
    frame.attrs["note"] = SECRET
    assert SECRET.encode() not in written(frame, tmp_path, ending)
    table = pa.table({"x": [1, 2]}).replace_schema_metadata({"note": SECRET, "pandas": SECRET})
    field = pa.field("x", pa.int64(), metadata={"note": SECRET})
    table = table.cast(pa.schema([field], metadata=table.schema.metadata))
    assert SECRET.encode() not in written(table, tmp_path, ending, overwrite=True)


def test_no_note_or_label_of_the_file_of_the_original(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"x": [1, 2]})
    pyreadstat.write_sav(frame, str(tmp_path / "in.sav"), file_label=SECRET, note=SECRET)
    assert SECRET.encode() in (tmp_path / "in.sav").read_bytes()
    source = read_file(tmp_path / "in.sav")
    assert SECRET not in str(source.how) + str(source.metadata)
    for ending in ALL:
        assert SECRET.encode() not in written(source.table, tmp_path, ending, like=source)


@pytest.mark.parametrize("ending", ALL)
def test_no_time_user_or_path(tmp_path, ending):
    import getpass
    import socket

    content = written(pd.DataFrame({"x": [1, 2]}), tmp_path, ending)
    for word in (str(tmp_path), socket.gethostname(), "2026", "2027"):
        assert len(word) < 4 or word.encode() not in content
    if len(getpass.getuser()) > 4:
        assert getpass.getuser().encode() not in content


def test_the_original_is_never_overwritten(tmp_path):
    path = tmp_path / "original.csv"
    path.write_text("a,b\n1,2\n")
    source = read_file(path)
    (tmp_path / "link.csv").symlink_to(path)
    (tmp_path / "hard.csv").hardlink_to(path)
    for name in ("original.csv", "link.csv", "hard.csv"):
        with pytest.raises(BadFileError, match="this is the original"):
            write_file(source.table, tmp_path / name, like=source, overwrite=True)
    assert path.read_text() == "a,b\n1,2\n"


# Formulas.

FORMULAS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "\uff1d1+1",
    "+34 600",
    "--",
]
HARMLESS = ["-5", "+3,5", "-1.5e3", "-", "x=1", "'=1", "", "1-2", " x"]


def test_formulas_in_csv_are_neutralised_and_told(tmp_path):
    table = pa.table({"=name": [*FORMULAS, *HARMLESS], "n": [-1] * 20})
    done = write_file(table, tmp_path / "x.csv")
    read = pd.read_csv(done.path, keep_default_na=False)  # another reader
    assert list(read.columns) == ["'=name", "n"]
    for cell in [*read.columns, *read["'=name"]]:
        assert cell[:1] not in tuple("=+-@\t\r\n\uff1d") or cell in HARMLESS
    assert read["'=name"].tolist()[len(FORMULAS) :] == HARMLESS
    assert (read["n"] == -1).all()
    assert f"=name ({len(FORMULAS)})" in str(done)
    again = read_file(done.path).table  # reading does not undo it in silence
    assert again["'=name"].to_pylist()[0] == "'=1+1"
    assert "safe=False" in str(write_file(table, tmp_path / "y.csv", safe=False))
    assert read_file(tmp_path / "y.csv").table["=name"].to_pylist() == table["=name"].to_pylist()


def test_formulas_in_categories_are_neutralised(tmp_path):
    frame = pd.DataFrame({"c": pd.Categorical(["=1+1", "x", "=1+1"])})
    done = write_file(frame, tmp_path / "x.csv")
    assert done.path.read_text() == '"c"\n"\'=1+1"\n"x"\n"\'=1+1"\n'
    assert "c (2)" in str(done)


def test_text_in_excel_is_never_a_formula(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    table = pa.table({"=name": [*FORMULAS, *HARMLESS, "#N/A", "#REF!"]})
    path = write_file(table, tmp_path / "x.xlsx").path
    sheet = openpyxl.load_workbook(path).active
    cells = [sheet.cell(row, 1) for row in range(1, sheet.max_row + 1)]
    assert {cell.data_type for cell in cells if cell.value is not None} <= {"s", "inlineStr"}
    assert cells[1].quotePrefix
    with zipfile.ZipFile(path) as archive:
        assert b"<f" not in archive.read("xl/worksheets/sheet1.xml").replace(b"<fo", b"")
