"""Files that other libraries wrote are read right, and files that we wrote are read by them."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import os
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from tessella.exceptions import BadFileError, UnknownOptionError
from tessella.io import read_file, write_file

FRAME = pd.DataFrame(
    {
        "whole": pd.array([1, None, -3], dtype="Int64"),
        "number": [1.5, np.nan, 1 / 3],
        "code": ["007", "010", None],
        "text": ['say "so"', "a,b", "line\nend"],
        "truth": pd.array([True, None, False], dtype="boolean"),
        "moment": pd.to_datetime(["2020-01-02 03:04:05", None, "1999-12-31 00:00:00"]),
    }
)
EXPECTED = [
    [1, None, -3],
    [1.5, None, 1 / 3],
    ["007", "010", None],
    ['say "so"', "a,b", "line\nend"],
    [True, None, False],
    [dt.datetime(2020, 1, 2, 3, 4, 5), None, dt.datetime(1999, 12, 31)],
]
TYPES = [pa.int64(), pa.float64(), pa.string(), pa.string(), pa.bool_(), pa.timestamp("us")]


def columns(source):
    return [column.to_pylist() for column in source.table.columns]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sep": ";"},
        {"sep": "\t"},
        {"sep": ";", "decimal": ","},
        {"quoting": csv.QUOTE_ALL},
        {"quoting": csv.QUOTE_NONNUMERIC},
        {"lineterminator": "\r\n"},
        {"encoding": "utf-16"},
        {"encoding": "utf-8-sig"},
        {"na_rep": "NA"},
        {"na_rep": "NULL"},
    ],
    ids=str,
)
def test_csv_by_pandas(tmp_path, options):
    FRAME.to_csv(tmp_path / "x.csv", index=False, **options)
    words = {name: [options["na_rep"]] for name in ("code",)} if "na_rep" in options else None
    types = {"truth": "boolean", "moment": "datetime"}
    quoted = options.get("quoting")
    source = read_file(tmp_path / "x.csv", missing=words, types=types if quoted else None)
    expected = [list(column) for column in EXPECTED]
    if quoted:  # quotes around nothing: an empty text
        expected[2][2] = ""
    assert columns(source) == expected
    assert source.table.schema.types == TYPES


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_packed_csv_by_pandas(tmp_path, packing):
    ending = {"gzip": "csv.gz", "zstd": "csv.zst"}[packing]
    if packing == "zstd":
        plain = FRAME.to_csv(index=False).encode()
        with pa.output_stream(str(tmp_path / "x.csv.zst"), compression="zstd") as out:
            out.write(plain)
    else:
        FRAME.to_csv(tmp_path / f"x.{ending}", index=False)
    assert columns(read_file(tmp_path / f"x.{ending}")) == EXPECTED
    broken = (tmp_path / f"x.{ending}").read_bytes()[:-20]
    (tmp_path / f"y.{ending}").write_bytes(broken)
    with pytest.raises(BadFileError, match="broken or ends too early"):
        read_file(tmp_path / f"y.{ending}")


def test_csv_by_polars_and_arrow(tmp_path):
    pl.from_pandas(FRAME).write_csv(tmp_path / "p.csv")
    assert columns(read_file(tmp_path / "p.csv")) == EXPECTED
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    pcsv.write_csv(table, tmp_path / "a.csv")
    assert columns(read_file(tmp_path / "a.csv")) == EXPECTED


def test_row_numbers_of_pandas_and_r_are_kept_and_told(tmp_path):
    FRAME.to_csv(tmp_path / "x.csv")
    source = read_file(tmp_path / "x.csv")
    assert source.columns[0] == "column_1"
    assert source.table["column_1"].to_pylist() == [0, 1, 2]


def test_ours_is_read_by_others(tmp_path):
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    path = write_file(table, tmp_path / "x.csv", safe=False).path
    options = {"dtype": {"whole": "Int64", "code": "str", "truth": "boolean"}}
    read = pd.read_csv(path, parse_dates=["moment"], **options)
    assert read["whole"].tolist() == FRAME["whole"].tolist()
    assert read["text"].tolist() == FRAME["text"].tolist()
    assert read["moment"].tolist()[0] == FRAME["moment"].tolist()[0]
    assert pl.read_csv(path)["number"].to_list() == EXPECTED[1]
    with gzip.open(write_file(table, tmp_path / "x.csv.gz", safe=False).path) as opened:
        assert opened.read() == path.read_bytes()
    parquet = write_file(table, tmp_path / "x.parquet").path
    assert pq.read_table(parquet).equals(
        table.replace_schema_metadata(None).cast(pq.read_table(parquet).schema)
    )
    assert pl.read_parquet(parquet)["whole"].to_list() == EXPECTED[0]
    feather = write_file(table, tmp_path / "x.feather").path
    assert pl.read_ipc(feather)["text"].to_list() == EXPECTED[3]
    excel = pd.read_excel(write_file(table, tmp_path / "x.xlsx").path, dtype={"code": str})
    assert excel["moment"].tolist()[0] == FRAME["moment"].tolist()[0]
    assert excel["code"].tolist()[:2] == ["007", "010"]


# Parquet and Arrow.


def test_parquet_by_pandas_and_polars(tmp_path):
    frame = FRAME.assign(
        grade=pd.Categorical(["b", "a", None], categories=["b", "x", "a"], ordered=True)
    )
    frame.to_parquet(tmp_path / "x.parquet")
    source = read_file(tmp_path / "x.parquet")
    assert columns(source)[:6] == EXPECTED
    assert source.table["grade"].type.ordered
    assert source.schema()["grade"].kind == "ordinal"
    assert "other notes of the file: left out (pandas)" in str(source.how)
    frame.iloc[[2, 0, 1]].to_parquet(tmp_path / "i.parquet")
    assert "__index_level_0__" in read_file(tmp_path / "i.parquet").columns
    assert read_file(tmp_path / "x.parquet", columns=["text", "whole"]).columns == ("text", "whole")
    polars = pl.from_pandas(FRAME).with_columns(c=pl.Series(["x", "y", "x"], dtype=pl.Categorical))
    polars.write_parquet(tmp_path / "p.parquet")
    source = read_file(tmp_path / "p.parquet")
    assert columns(source)[:6] == EXPECTED
    polars.write_ipc(tmp_path / "p.arrow")
    assert columns(read_file(tmp_path / "p.arrow"))[:6] == EXPECTED
    FRAME.to_feather(tmp_path / "x.feather")
    assert columns(read_file(tmp_path / "x.feather")) == EXPECTED
    write_file(source.table, tmp_path / "again.parquet", like=source)
    assert columns(read_file(tmp_path / "again.parquet"))[:6] == EXPECTED


def test_arrow_streams(tmp_path):
    table = pa.table({"x": [1, 2]})
    with pa.ipc.new_stream(str(tmp_path / "x.arrow"), table.schema) as out:
        out.write_table(table)
    assert read_file(tmp_path / "x.arrow").table.equals(table)


# Excel.


@pytest.fixture
def sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")

    def make(*rows, **others):
        book = openpyxl.Workbook()
        book.active.title = "data"
        for row in rows:
            book.active.append(row)
        for title, cells in others.items():
            extra = book.create_sheet(title)
            for row in cells:
                extra.append(row)
        book.save(tmp_path / "x.xlsx")
        return tmp_path / "x.xlsx"

    return make


def test_excel_by_pandas(tmp_path):
    FRAME.to_excel(tmp_path / "x.xlsx", index=False)
    source = read_file(tmp_path / "x.xlsx")
    assert columns(source) == EXPECTED
    assert source.table.schema.types == TYPES


def test_excel_by_openpyxl(sheet):
    source = read_file(
        sheet(
            ["whole", "number", "date", "code", "na"],
            [1, 1.5, dt.date(2020, 1, 2), "007", 1],
            [2, 2, None, "12", "NA"],
            [None, None, dt.date(2021, 1, 2), None, None],
        )
    )
    assert source.table.schema.types == [
        pa.int64(),
        pa.float64(),
        pa.date32(),
        pa.string(),
        pa.int64(),
    ]
    assert source.table["na"].to_pylist() == [1, None, None]
    assert "column 'na': 1 words as NA read as missing" in str(source.how)


def test_sheets_of_excel(sheet):
    two = sheet(["a"], [1], other=[["b"], [2]])
    with pytest.raises(BadFileError, match="2 sheets hold something: data, other"):
        read_file(two)
    assert read_file(two, sheet="other").columns == ("b",)
    with pytest.raises(UnknownOptionError, match="'nothing'"):
        read_file(two, sheet="nothing")
    one = sheet(["a"], [1], empty=[])
    assert read_file(one).table.to_pylist() == [{"a": 1}]
    with pytest.raises(BadFileError, match="all sheets are empty"):
        read_file(sheet())


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        ([["a", "a"], [1, 2]], 1, "stands over two columns"),
        ([["a"], [1], [2], ["x"]], 4, "1 of another, the first in this row"),
        ([["a"], [1], [None], [2]], 3, "this row is blank"),
        ([[1, 2], [3, 4]], 1, "holds no text"),
        ([["a", "b"], [1, "=1+1"]], 2, "cell B2 is a formula without a stored result"),
        ([["a", "b"], [1, "#DIV/0!"]], 2, "holds the error #DIV/0!"),
    ],
)
def test_excel_that_is_wrong(sheet, rows, line, message):
    with pytest.raises(BadFileError, match=message) as caught:
        read_file(sheet(*rows))
    assert caught.value.line == line


def test_excel_with_stored_results_of_formulas(tmp_path, sheet):
    """By hand: a formula with its result in the XML."""
    path = sheet(["a", "b"], [1, "=1+1"])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    parts[name] = parts[name].replace(b"<f>1+1</f><v></v>", b"<f>1+1</f><v>2</v>")
    parts[name] = parts[name].replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>")
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    source = read_file(path)
    assert source.table.to_pylist() == [{"a": 1, "b": 2}]
    assert "formulas: 1, read as their stored results" in str(source.how)


def test_types_and_missing_in_excel(sheet):
    path = sheet(["a", "b"], [1, "x"], [-9, 5], ["y", "z"], [3, None])
    assert read_file(path, types={"a": "text"}).table["a"].to_pylist() == ["1", "-9", "y", "3"]
    source = read_file(path, missing={"a": ["-9", "y"]})
    assert source.table["a"].to_pylist() == [1, None, None, 3]
    assert source.table["b"].to_pylist() == ["x", "5", "z", None]


# SPSS, Stata, SAS.


def test_spss_by_pyreadstat(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame(
        {
            "work": [1.0, 2.0, -9.0, np.nan],
            "income": [1.5, 2.0, 99.0, np.nan],
            "town": ["R", "T", "", "XX"],
            "born": [dt.date(1990, 1, 2), None, dt.date(1950, 1, 1), None],
        }
    )
    pyreadstat.write_sav(
        frame,
        str(tmp_path / "x.sav"),
        column_labels={"work": "Has work?"},
        variable_value_labels={"work": {1: "yes", 2: "no", -9: "refused"}, "town": {"R": "Reus"}},
        missing_ranges={"work": [-9], "income": [{"lo": 90, "hi": 99}], "town": ["XX"]},
        variable_measure={"work": "nominal", "income": "scale"},
        variable_format={"work": "F4.0", "income": "F8.2"},
        note="do not copy",
    )
    source = read_file(tmp_path / "x.sav")
    assert source.table.schema.types == [pa.int64(), pa.float64(), pa.string(), pa.date32()]
    assert source.table["work"].to_pylist() == [1, 2, -9, None]
    assert source.table["town"].to_pylist() == ["R", "T", None, "XX"]
    schema = source.schema()
    assert schema["work"].labels == {1: "yes", 2: "no", -9: "refused"}
    assert schema["work"].missing == (-9,)
    assert schema["work"].kind == "nominal"
    assert schema["income"].missing == (99.0,)
    assert schema["income"].kind == "continuous"
    assert schema["town"].missing == ("XX",)
    done = write_file(source.table, tmp_path / "y.sav", like=source)
    read, told = pyreadstat.read_sav(str(done.path), user_missing=True)
    assert told.column_names_to_labels["work"] == "Has work?"
    assert told.variable_value_labels == {
        "work": {1.0: "yes", 2.0: "no", -9.0: "refused"},
        "town": {"R": "Reus"},
    }
    assert told.missing_ranges["income"] == [{"lo": 90.0, "hi": 99.0}]
    assert told.variable_measure["work"] == "nominal"
    assert told.original_variable_types["income"] == "F8.2"
    assert told.notes == []
    assert read["work"].tolist()[:3] == [1.0, 2.0, -9.0]


def test_stata_by_pandas(tmp_path):
    pytest.importorskip("pyreadstat")
    frame = pd.DataFrame(
        {
            "byte": np.array([1, 2, 3], np.int8),
            "short": np.array([1, 2, 300], np.int16),
            "long": np.array([1, 2, 70_000], np.int32),
            "single": np.array([1.5, 2.5, np.nan], np.float32),
            "real": [1.5, np.nan, 3.0],
            "text": ["é", "", "long " * 600],
            "day": pd.to_datetime(["2020-01-02", None, "1950-01-01"]),
            "grade": pd.Categorical(["low", "high", "low"], categories=["low", "high"]),
        }
    )
    frame.columns = [f"x_{name}" for name in frame.columns]
    frame.to_stata(
        tmp_path / "x.dta",
        write_index=False,
        version=118,
        convert_dates={"x_day": "td"},
        variable_labels={"x_byte": "a byte"},
    )
    source = read_file(tmp_path / "x.dta")
    types = [pa.int8(), pa.int16(), pa.int32(), pa.float32(), pa.float64(), pa.string()]
    assert source.table.schema.types[:7] == [*types, pa.date32()]
    assert source.table["x_text"].to_pylist() == ["é", None, ("long " * 600)]
    assert source.metadata["x_byte"].label == "a byte"
    assert source.metadata["x_grade"].labels == {0: "low", 1: "high"}
    assert source.schema()["x_grade"].kind == "nominal"
    done = write_file(source.table, tmp_path / "y.dta", like=source)
    again = pd.read_stata(done.path)
    assert again["x_grade"].tolist() == ["low", "high", "low"]
    assert again["x_long"].tolist() == [1, 2, 70_000]
    assert again["x_day"].tolist()[0] == pd.Timestamp("2020-01-02")


def test_sas_transport_by_pyreadstat_and_to_pandas(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"N": [1.5, np.nan], "T": ["x", ""], "D": [dt.date(2020, 1, 2), None]})
    pyreadstat.write_xport(
        frame, str(tmp_path / "x.xpt"), file_format_version=5, column_labels={"N": "number"}
    )
    source = read_file(tmp_path / "x.xpt")
    assert columns(source) == [[1.5, None], ["x", None], [dt.date(2020, 1, 2), None]]
    assert source.metadata["N"].label == "number"
    table = pa.table({"n": [1, 2], "x": [0.5, None], "t": ["a", "b"]})
    done = write_file(table, tmp_path / "y.xpt")
    read, told = pyreadstat.read_xport(str(done.path))
    assert read["n"].tolist() == [1, 2]
    assert told.original_variable_types["n"] == "F8"


def test_frames_of_a_source(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,c\n1,2020-01-01,x\n,,\n")
    source = read_file(tmp_path / "x.csv")
    pandas = source.to_pandas()
    assert str(pandas["a"].dtype) == "Int64"
    assert pandas["b"].tolist()[0] == dt.date(2020, 1, 1)
    assert source.to_polars().schema["b"] == pl.Date
    assert "2 records, 3 columns" in repr(source)


def test_excel_with_entities_or_damage_is_refused_in_our_words(tmp_path):
    # a bug once met: a traceback of the XML parser, while rows were read
    write_file(pa.table({"town": ["Reus", "Valls"]}), tmp_path / "x.xlsx")
    with zipfile.ZipFile(tmp_path / "x.xlsx") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    page = "xl/worksheets/sheet1.xml"
    head, _, body = parts[page].partition(b"\n")
    doctype = b'\n<!DOCTYPE x [<!ENTITY e "a"><!ENTITY f "&e;&e;">]>\n'
    for wrong in (
        head + doctype + body.replace(b"Reus", b"&f;&g;"), head + body[:-30], b"", b"\xff" * 99,
    ):  # fmt: skip
        with zipfile.ZipFile(tmp_path / "y.xlsx", "w") as archive:
            for name, content in (parts | {page: wrong}).items():
                archive.writestr(name, content)
        with pytest.raises(BadFileError, match="no Excel file, or a damaged one"):
            read_file(tmp_path / "y.xlsx")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(BadFileError, match="no ordinary file"):
        read_file(tmp_path / "pipe.csv")
