"""Written and read again: values, types, labels and missing codes as promised. Invariants."""

from __future__ import annotations

import csv
import datetime as dt
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessella.exceptions import BadFileError, BadTableError
from tessella.io import Metadata, Span, Variable, read_file, write_file

TYPED = ("csv", "csv.gz", "csv.zst", "parquet", "feather", "xlsx")
LABELLED = ("parquet", "feather", "sav", "zsav")
ALL = (*TYPED, "sav", "zsav", "dta", "xpt")

TABLE = pa.table(
    {
        "whole": pa.array([1, None, -3, 2**40], pa.int64()),
        "number": [1.5, None, 2.0, 1 / 3],
        "round": [1.0, 2.0, None, 4.0],
        "text": ["00123", "ñ,;\"'", None, "12"],
        "truth": [True, None, False, True],
        "date": [dt.date(2020, 2, 29), None, dt.date(1950, 1, 1), dt.date(2100, 1, 1)],
        "moment": pa.array(
            [dt.datetime(2020, 2, 29, 23, 59, 59), None, dt.datetime(1950, 1, 1), None],
            pa.timestamp("us"),
        ),
    }
)


def there_and_back(table, path, **options):
    written = write_file(table, path, overwrite=True, **options)
    return written, read_file(path)


@pytest.mark.parametrize("ending", TYPED)
def test_values_and_types(tmp_path, ending):
    _, source = there_and_back(TABLE, tmp_path / f"release.{ending}")
    assert source.table.equals(TABLE)


@pytest.mark.parametrize("ending", ["sav", "zsav", "dta", "xpt"])
def test_values_and_types_of_statistical_formats(tmp_path, ending):
    written, source = there_and_back(TABLE, tmp_path / f"release.{ending}")
    expected = TABLE.set_column(4, "truth", TABLE["truth"].cast(pa.int64()))
    if ending == "dta":
        expected = TABLE.set_column(4, "truth", TABLE["truth"].cast(pa.int32()))
    assert source.table.equals(expected)
    assert "column 'truth': written as 0 and 1" in str(written)


@pytest.mark.parametrize("ending", ALL)
def test_the_same_table_gives_the_same_bytes_from_every_library(tmp_path, ending):
    frames = {
        "arrow": TABLE,
        "chunked": pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
        "polars": pl.from_arrow(TABLE),
        "pandas": pd.DataFrame(
            {
                "whole": pd.array([1, None, -3, 2**40], dtype="Int64"),
                "number": [1.5, np.nan, 2.0, 1 / 3],
                "round": [1.0, 2.0, np.nan, 4.0],
                "text": ["00123", "ñ,;\"'", None, "12"],
                "truth": pd.array([True, None, False, True], dtype="boolean"),
                "date": [dt.date(2020, 2, 29), None, dt.date(1950, 1, 1), dt.date(2100, 1, 1)],
                "moment": pd.array(TABLE["moment"].to_pylist(), dtype="datetime64[us]"),
            }
        ),
    }
    hashes = {
        name: write_file(frame, tmp_path / f"{name}.{ending}").sha256
        for name, frame in frames.items()
    }
    assert len(set(hashes.values())) == 1, hashes


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize(
    "kind", ["int8", "int16", "uint8", "uint32", "uint64", "float32", "date32", "time64[us]"]
)
def test_widths_are_kept(tmp_path, ending, kind):
    plain = pa.int32() if kind == "date32" else pa.int64()
    column = pa.array([1, None, 7], plain).cast(pa.type_for_alias(kind))
    _, source = there_and_back(pa.table({"x": column}), tmp_path / f"x.{ending}")
    assert source.table["x"].combine_chunks().equals(column)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("ordered", [True, False])
def test_categories_are_kept(tmp_path, ending, ordered):
    grades = pd.Categorical(
        ["low", None, "high", "low"], categories=["low", "middle", "high"], ordered=ordered
    )
    _, source = there_and_back(pd.DataFrame({"grade": grades}), tmp_path / f"x.{ending}")
    read = source.table["grade"].combine_chunks()
    assert read.to_pylist() == ["low", None, "high", "low"]
    assert read.type.ordered == ordered
    assert read.dictionary.to_pylist() == ["low", "high"]


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_categories_become_codes_with_labels(tmp_path, ending):
    grades = pd.Categorical(["low", None, "high"], categories=["low", "no", "high"], ordered=True)
    _, source = there_and_back(pd.DataFrame({"grade": grades}), tmp_path / f"x.{ending}")
    assert source.table["grade"].to_pylist() == [1, None, 2]
    assert source.metadata["grade"].labels == {1: "low", 2: "high"}
    if ending == "sav":
        assert source.schema()["grade"].kind == "ordinal"


METADATA = Metadata(
    {
        "work": Variable(
            label="Trabajo, año 2020",
            labels={1: "yes", 2: "no", -9: "refused"},
            missing=(-9, Span(90, 99)),
            level="nominal",
        ),
        "income": Variable(label="Income", level="scale", format="F10.3"),
        "town": Variable(label="Town", labels={"R": "Reus"}, missing=("X",), level="nominal"),
    }
)
SURVEY = pa.table(
    {
        "work": pa.array([1, 2, -9, 95], pa.int64()),
        "income": [1.25, None, 3.5, 4.0],
        "town": ["R", "X", None, "R"],
    }
)


@pytest.mark.parametrize("ending", LABELLED)
def test_labels_levels_and_codes(tmp_path, ending):
    _, source = there_and_back(SURVEY, tmp_path / f"x.{ending}", metadata=METADATA)
    assert source.table.equals(SURVEY)
    for name, variable in METADATA.variables.items():
        read = source.metadata[name]
        assert (read.label, read.labels, read.level) == (
            variable.label,
            variable.labels,
            variable.level,
        )
        assert set(read.missing) == set(variable.missing)
    assert source.metadata["income"].format == "F10.3"
    schema = source.schema()
    assert set(schema["work"].missing) == {-9, 95}
    assert schema["work"].kind == "nominal"
    assert schema["town"].missing == ("X",)
    again = write_file(source.table, tmp_path / f"y.{ending}", like=source)
    assert again.sha256 == write_file(source.table, tmp_path / f"z.{ending}", like=source).sha256
    assert read_file(tmp_path / f"y.{ending}").metadata == source.metadata


def test_letters_of_stata_survive(tmp_path):
    """By another library: pyreadstat writes .a and .b, we read, write, and it reads them again."""
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"x": [1, "a", 2, "b", None], "y": [0.5, 1.5, 2.5, 3.5, 4.5]})
    labels = {"x": {1: "one", "a": "refused", "b": "unknown"}}
    pyreadstat.write_dta(
        frame,
        str(tmp_path / "in.dta"),
        missing_user_values={"x": ["a", "b"]},
        variable_value_labels=labels,
    )
    source = read_file(tmp_path / "in.dta")
    assert source.table["x"].to_pylist() == [1, None, 2, None, None]
    assert source.tags["x"].to_pylist() == [None, "a", None, "b", None]
    assert source.schema()["x"].kind == "integer"
    write_file(source.table, tmp_path / "out.dta", like=source)
    read, told = pyreadstat.read_dta(
        str(tmp_path / "out.dta"), user_missing=True, output_format="dict"
    )
    assert list(read["x"]) == [1, "a", 2, "b", None]
    assert told.variable_value_labels["x"] == labels["x"]


def test_csv_keeps_the_dialect_of_its_source(tmp_path):
    (tmp_path / "in.csv").write_text("a;b\n1,5;x\n2,25;y\n", encoding="utf-16")
    source = read_file(tmp_path / "in.csv")
    written = write_file(source.table, tmp_path / "out.csv", like=source)
    assert written.path.read_text() == '"a";"b"\n1,5;"x"\n2,25;"y"\n'
    assert read_file(written.path).table.equals(source.table)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "windows-1252"])
def test_csv_in_other_encodings(tmp_path, encoding):
    table = pa.table({"año": ["ñ", "é"], "n": [1, 2]})
    write_file(table, tmp_path / "x.csv", encoding=encoding)
    assert read_file(tmp_path / "x.csv").table.equals(table)
    with pytest.raises(BadFileError, match="line 3: 'ж' is no letter of latin-1"):
        write_file(pa.table({"a": ["x", "ж"]}), tmp_path / "y.csv", encoding="latin-1")
    assert not (tmp_path / "y.csv").exists()


# Invariants, for tables that nobody thought of.

LETTERS = st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs",))
PLAIN = st.characters(
    codec="utf-8", exclude_categories=("Cs", "Cc", "Cn"), exclude_characters="\ufffe\uffff"
)


def tables(letters):
    whole = st.one_of(st.none(), st.integers(-(2**53), 2**53))
    number = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))
    texts = st.one_of(st.none(), st.text(letters, max_size=8))
    date = st.one_of(st.none(), st.dates(dt.date(1900, 3, 1), dt.date(2999, 1, 1)))
    n = st.shared(st.integers(1, 6), key="n")

    def column(cells, kind):
        return n.flatmap(lambda n: st.lists(cells, min_size=n, max_size=n)).map(
            lambda cells: pa.array(cells, kind)
        )

    return st.builds(
        lambda *columns: pa.table(
            dict(zip("abcd", columns)) | {"z": pa.array([1] * len(columns[0]))}
        ),
        column(whole, pa.int64()),
        column(number, pa.float64()),
        column(texts, pa.string()),
        column(date, pa.date32()),
    )


SLOW = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def same_but_empty_columns(read, wrote):
    """CSV and Excel cannot tell the type of a column without a value."""
    for name in wrote.column_names:
        if wrote[name].null_count == len(wrote):
            assert read[name].null_count == len(read)
        else:
            assert read[name].type == wrote[name].type, name
            assert read[name].to_pylist() == wrote[name].to_pylist()


@SLOW
@given(table=tables(LETTERS))
def test_csv_of_any_table(tmp_path, table):
    _, source = there_and_back(table, tmp_path / "x.csv", safe=False)
    same_but_empty_columns(source.table, table)


@SLOW
@given(
    table=tables(LETTERS), decimal=st.sampled_from([".", ","]), delimiter=st.sampled_from(";\t|")
)
def test_csv_of_any_table_and_dialect(tmp_path, table, decimal, delimiter):
    path = tmp_path / "x.csv"
    options = {"decimal": decimal, "delimiter": delimiter}
    write_file(table, path, overwrite=True, safe=False, **options)
    same_but_empty_columns(read_file(path, **options).table, table)


@SLOW
@given(table=tables(LETTERS), ending=st.sampled_from(["parquet", "feather"]))
def test_columnar_formats_of_any_table(tmp_path, table, ending):
    assert there_and_back(table, tmp_path / f"x.{ending}")[1].table.equals(table)


@SLOW
@given(table=tables(PLAIN))
def test_excel_of_any_table(tmp_path, table):
    same_but_empty_columns(there_and_back(table, tmp_path / "x.xlsx")[1].table, table)


@SLOW
@given(table=tables(PLAIN), ending=st.sampled_from(["sav", "zsav", "dta", "xpt"]))
def test_statistical_formats_of_any_table(tmp_path, table, ending):
    """Each cell comes back, or the file is refused because it cannot hold a number."""
    path = tmp_path / f"x.{ending}"
    try:
        _, source = there_and_back(table, path)
    except BadFileError:
        numbers = [abs(v) for v in table["b"].to_pylist() if v]
        if "sav" in ending:  # numbers at the end of the range have meanings of their own there
            assert max(numbers) > 0.999 * sys.float_info.max
        else:
            assert max(numbers, default=0) > 1e70 or min(numbers, default=1) < 1e-70
        return
    for name in table.column_names:
        expected = table[name].to_pylist()
        if name == "c":
            expected = [(text or "").rstrip(" ") or None for text in expected]
        assert source.table[name].to_pylist() == expected, name


def test_whole_floats_of_any_size(tmp_path):
    """A bug once met: 1e10 was written as 1e+10.0."""
    numbers = [sign * 10.0**power for power in range(-20, 23) for sign in (1, -1)]
    numbers += [1.0, -0.0, 2.0**53, 12345678901.0, 12345678901.5, 1e15 - 1, 1e15, None]
    table = pa.table({"x": numbers, "y": pa.array(numbers, pa.float64())})
    path = write_file(table, tmp_path / "x.csv").path
    assert read_file(path).table.equals(table)
    with open(path, newline="") as opened:
        cells = [row["x"] for row in csv.DictReader(opened)]
    assert [float(cell) for cell in cells[:-1]] == numbers[:-1]
    assert "12345678901.0" in path.read_text()


@pytest.mark.parametrize("ending", ALL)
def test_no_negative_zero_is_written(tmp_path, ending):
    """By hand: 0.0 and -0.0 are one number, and files hold the one without a sign."""
    table = pa.table({"x": [-0.0, 0.0, -1.5], "s": pa.array([-0.0, None, -2.0], pa.float64())})
    _, source = there_and_back(table, tmp_path / f"x.{ending}")
    for column, expected in (("x", [0.0, 0.0, -1.5]), ("s", [0.0, None, -2.0])):
        assert [str(value) for value in source.table[column].to_pylist()] == [
            str(value) for value in expected
        ]


# What a format cannot hold is stated, or refused.


def test_what_cannot_be_written_is_refused(tmp_path):
    cases = [
        ("x.xlsx", {"a": [2**60]}, "beyond"),
        ("x.sav", {"a": [2**60]}, "beyond"),
        ("x.xlsx", {"a": [dt.date(1850, 1, 1)]}, "before March 1900"),
        ("x.xlsx", {"a": ["x" * 40_000]}, "40,000 letters"),
        ("x.xlsx", {"a": ["\x01"]}, "control character"),
        ("x.xlsx", {"a": [1, None]}, "every cell of that record"),
        ("x.sav", {"a": ["x\0y"]}, "byte 0"),
        ("x.csv", {"a": ["x\0y"]}, "byte 0"),
        ("x.sav", {"a b": [1]}, "cannot hold this table"),
        ("x.dta", {"a": [float("inf")]}, "infinity"),
        ("x.xlsx", {"a": [float("inf")]}, "infinity"),
        ("x.xpt", {"a": [1e300]}, "another one when read back"),
        ("x.dta", {"a": [1e308]}, "cannot hold this table"),
        ("x.por", {"a": [1]}, "can be read, not written"),
    ]
    for name, columns, message in cases:
        with pytest.raises((BadFileError, ValueError), match=message):
            write_file(pa.table(columns), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_frames_that_cannot_be_written(tmp_path):
    path = tmp_path / "x.csv"
    named = pd.DataFrame({"a": [1]}, index=pd.Index([5], name="id"))
    with pytest.raises(BadTableError, match="'id'"):
        write_file(named, path)
    with pytest.raises(BadTableError, match="more than one column"):
        write_file(pd.DataFrame([[1, 2]], columns=["a", "a"]), path)
    with pytest.raises(BadTableError, match="different types"):
        write_file(pd.DataFrame({"a": [1, "x"]}), path)
    with pytest.raises(BadTableError, match="lists"):
        write_file(pa.table({"a": [[1, 2]]}), path)
    with pytest.raises(BadTableError, match="intervals"):
        write_file(pd.DataFrame({"a": pd.cut([1, 2, 3], 2)}), path)
    with pytest.raises(BadTableError, match="periods"):
        write_file(pd.DataFrame({"a": pd.period_range("2020-01", periods=3, freq="M")}), path)
    with pytest.raises(BadTableError, match="no columns"):
        write_file(pd.DataFrame(), path)
    with pytest.raises(BadTableError, match=r"builtins\.dict"):
        write_file({"a": [1]}, path)


def test_what_is_converted_is_said(tmp_path):
    table = pa.table(
        {
            "n": pa.array([Decimal("1.10"), None]),
            "z": pa.array([dt.datetime(2020, 1, 1), None], pa.timestamp("us", "Europe/Madrid")),
            "m": pa.array([dt.datetime(2020, 1, 1, 0, 0, 0, 123456), None]),
            "s": ["x  ", "y"],
        }
    )
    for ending in ("sav", "dta", "xpt", "xlsx"):
        told = str(write_file(table, tmp_path / f"x.{ending}"))
        assert "'n'" in told
        assert "UTC" in told
        assert "milliseconds" in told
        assert ("spaces at the end" in told) == (ending != "xlsx")
    nan = pa.table({"x": [float("nan"), 1.0]})
    assert "NaN" in str(write_file(nan, tmp_path / "x.csv"))
    assert str(read_file(write_file(nan, tmp_path / "x.parquet").path).table["x"][0]) == "nan"


@pytest.mark.parametrize("ending", ["sav", "dta", "xpt"])
def test_empty_texts_that_become_missing_are_told(tmp_path, ending):
    """A bug once met: without a missing text beside them, not a word was said."""
    written = write_file(pa.table({"town": ["Reus", "", "Valls"]}), tmp_path / f"t.{ending}")
    assert any("empty and missing texts are one" in str(one) for one in written.statements)
    assert read_file(tmp_path / f"t.{ending}").table["town"].to_pylist() == ["Reus", None, "Valls"]
