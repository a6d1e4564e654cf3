"""CSV files of every dialect: a clear error with the line, or the right result. By hand."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from tessella.exceptions import (
    BadFileError,
    BadOptionError,
    DataNotFoundError,
    UnknownColumnError,
    UnknownOptionError,
)
from tessella.io import read_file
from tessella.io.pieces import open_pieces
from tessella.planfile.hints import for_command


@pytest.fixture
def read(tmp_path):
    def reading(content, name="file.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_file(path, **options)

    return reading


def rows(source):
    return [list(row.values()) for row in source.table.to_pylist()]


def said(source, about):
    return [str(s) for s in source.how.statements if s.about == about]


# The right result.


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,x\n2,y\n", [[1, "x"], [2, "y"]]),
        ("a;b\n1;x\n2;y", [[1, "x"], [2, "y"]]),
        ("a\tb\r\n1\tx\r\n2\ty\r\n", [[1, "x"], [2, "y"]]),
        ("a|b\r1|x\r2|y\r", [[1, "x"], [2, "y"]]),
        ("a;b\n1,5;x\n-2,25;y\n", [[1.5, "x"], [-2.25, "y"]]),
        ("sep=;\na;b\n1;x\n", [[1, "x"]]),
        ('a,b\n"1,5",x\n"2,5",y\n', [[1.5, "x"], [2.5, "y"]]),
        ('a,b\nu,"x\ny"\nv,"say ""so"""\n', [["u", "x\ny"], ["v", 'say "so"']]),
        ('a,b\r\nu,"x\r\ny"\r\n', [["u", "x\r\ny"]]),
        ('a,b\n1,5" pipe\n', [[1, '5" pipe']]),
        ("a,b\n1,\n,y\n", [[1, None], [None, "y"]]),
        ('a,b\n1,""\n2,\n', [[1, ""], [2, None]]),
        ("a\n1\n\n3\n", [[1], [None], [3]]),
        ("a,b\n1,2\n\n3,4\n\n\n", [[1, 2], [3, 4]]),
        ("a,b\n", []),
        ("a,b", []),
        ("a,b\n,1\n,2\n", [[None, 1], [None, 2]]),
        ("\n\na,b\n1,2\n", [[1, 2]]),
        ("a,b\nNA,x\n3,NA\n", [[None, "x"], [3, "NA"]]),
        ("a , b\n 1 , x \n", [[1, " x "]]),
        ("a,b\nTRUE,1\nFALSE,2\n", [[True, 1], [False, 2]]),
        (
            "a,b\n2020-02-29,1\n1969-07-20,2\n",
            [[dt.date(2020, 2, 29), 1], [dt.date(1969, 7, 20), 2]],
        ),
        ("a,b\n1e3,1\n2.5E-1,2\n", [[1000.0, 1], [0.25, 2]]),
    ],
)
def test_the_right_result(read, content, expected):
    assert rows(read(content)) == expected


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"],
)
def test_encodings(read, encoding):
    source = read("año;b\nñandú;1\n".encode(encoding))
    assert source.columns == ("año", "b")
    assert rows(source) == [["ñandú", 1]]
    assert said(source, "encoding")


def test_a_given_encoding_is_obeyed(read):
    assert rows(read("a;b\nж;1\n".encode("cp1251"), encoding="cp1251")) == [["ж", 1]]
    assert rows(read("a;b\n€;1\n".encode("cp1252"))) == [["€", 1]]


def test_names_that_are_missing_are_given_and_told(read):
    source = read(",a\n1,x\n")
    assert source.columns == ("column_1", "a")
    assert "names: column 1 has none, and is called column_1" in said(source, "names")


def test_ten_thousand_columns(read):
    names = ",".join(f"c{j}" for j in range(10_000))
    source = read(names + "\n" + ",".join(["7"] * 10_000) + "\n")
    assert source.table.shape == (1, 10_000)
    assert set(source.table.schema.types) == {pa.int64()}


def test_a_record_longer_than_a_block(read):
    long = "x" * 6_000_000
    source = read(f'a,b\n1,"{long}\n{long}"\n2,y\n')
    assert rows(source)[0][1] == f"{long}\n{long}"


def test_no_header(read):
    assert read("1,2\n3,4\n", header=False).columns == ("column_1", "column_2")
    assert read("1,2\n3,4\n", header=False, names=["x", "y"]).table.to_pylist()[1] == {
        "x": 3,
        "y": 4,
    }
    assert read("2019,2020\n3,4\n", header=True).columns == ("2019", "2020")
    assert read('"2019","2020"\n3,4\n').columns == ("2019", "2020")


def test_lines_before_the_names(read):
    source = read("Survey of 2020\n\na,b\n1,2\n3,x\n5,6\n", skip=2, types={"b": "text"})
    assert rows(source) == [[1, "2"], [3, "x"], [5, "6"]]
    with pytest.raises(BadFileError, match="line 5: column 'b' holds numbers"):
        read("Survey of 2020\n\na,b\n1,2\n3,x\n5,6\n", skip=2)


def test_some_columns_in_another_order(read):
    assert read("a,b,c\n1,2,3\n", columns=["c", "a"]).table.to_pylist() == [{"c": 3, "a": 1}]


@pytest.mark.parametrize("text", ["00123", "007", "-01", "0012.5"])
def test_codes_with_leading_zeros_stay_text(read, text):
    assert rows(read(f"a,b\n{text},1\n12,2\n")) == [[text, 1], ["12", 2]]


@pytest.mark.parametrize("text", ["12345678901234567890", "0x1F", "+34600111222", "1_000", "12b"])
def test_what_looks_a_little_like_a_number_stays_text(read, text):
    assert rows(read(f"a,b\n{text},1\n{text},2\n")) == [[text, 1], [text, 2]]


def test_quotes_declare_text_where_others_are_not_quoted(read):
    assert rows(read('code,n\n"12",1\n"13",2\n')) == [["12", 1], ["13", 2]]
    assert rows(read('code,n\n"12","1"\n"13","2"\n')) == [[12, 1], [13, 2]]


def test_missing_as_given(read):
    content = "a,b\n-9,x\n1,-9\n2,y\n"
    assert rows(read(content, missing={"a": ["-9"]})) == [[None, "x"], [1, "-9"], [2, "y"]]
    assert rows(read(content, missing="-9")) == [[None, "x"], [1, None], [2, "y"]]
    assert rows(read("a,b\nrefused,x\n1,y\n2,z\n", missing=["refused"]))[0] == [None, "x"]


def test_codes_stay_in_the_table(read):
    source = read("a,b\n-9,x\n1,y\n", codes={"a": [-9]})
    assert rows(source) == [[-9, "x"], [1, "y"]]
    assert source.schema()["a"].missing == (-9,)


def test_dates_in_other_forms(read):
    content = "a,b\n31/12/2020,1\n01/02/2021,2\n"
    assert rows(read(content))[0] == ["31/12/2020", 1]
    assert rows(read(content, dates={"a": "%d/%m/%Y"}))[1] == [dt.date(2021, 2, 1), 2]
    with pytest.raises(BadFileError, match=r"line 2: .*'31/12/2020'"):
        read(content, dates={"a": "%m/%d/%Y"})


def test_moments(read):
    first = "2020-01-02T03:04:05.25,2020-01-02T03:04:05+02:00"
    source = read(f"a,b\n{first}\n2020-01-02 03:04,2020-01-02 03:04Z\n")
    assert source.table.schema.types == [pa.timestamp("us"), pa.timestamp("us", "UTC")]
    assert rows(source)[0][0] == dt.datetime(2020, 1, 2, 3, 4, 5, 250_000)
    assert rows(source)[0][1] == dt.datetime(2020, 1, 2, 1, 4, 5, tzinfo=dt.UTC)


# A clear error, with the line.


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"", None, "the file is empty"),
        (b"\n\n", None, "no line with text"),
        ("a,a,b\n1,2,3\n", 1, "the name 'a' stands over columns 1, 2"),
        ("a,b\n1,2\n1,2,3\n", 3, "the first line has 2 fields, this one 3"),
        ("a,b\n1,2\n3\n", 3, "this one 1"),
        ('a,b\n"x\ny",2\n\n1,2,3\n', 5, "this one 3"),
        (b"a,b\n1,2\n3,\0\n", 3, "a byte 0"),
        ('a,b\n1,2\n"3,4\n5,6\n', 3, "never closes"),
        ('a,b\n"x"y,2\n', 2, "text follows a closing quote"),
        ("a,b\n1,2\n2,x\n3,4\n", 3, "column 'b' holds numbers"),
        ("a,b\n2020-01-01,1\nsoon,2\n", 3, "column 'a' holds dates"),
        ("a,b\n2020-02-28,1\n2021-02-29,2\n", 3, "'2021-02-29'"),
        ("1,2\n3,4\n", 1, "holds numbers or dates, not names"),
        ("name,31.5\nx,4\n", 1, "not names"),
        ("a;b\n1,234;x\n2,345;y\n", 2, "1,234 may be a thousand"),
        ("a;b\n1.234;x\n2.345;y\n", 2, "1.234 may be a thousand"),
        ("a;b\nx;1,5\ny;2,5\nz;3.5\n", 2, "a decimal point in line 4"),
        ("a;b\n1,5;2.5\n", 2, "decimal comma there, and column 'b' a decimal point in line 2"),
        ("a,b;c\n1,2;3\n", 1, "more than one delimiter"),
        ("a,b\nñ,1\né,2\n".encode() + b"\xf1,3\n", 4, "byte that is not UTF-8"),
        (b"a,b\n\x81,1\n", 2, "neither UTF-8 nor Windows-1252"),
        ("a,b\n1,1e400\n2,3\n", 2, "1e400"),
        ("'a','b'\n'1','2'\n", 1, "apostrophes"),
        (b"PK\x03\x04rest", None, "zip archive"),
    ],
)
def test_a_clear_error(read, content, line, message):
    with pytest.raises(BadFileError, match=message.replace("(", r"\(")) as caught:
        read(content)
    assert caught.value.line == line
    assert str(caught.value).endswith(".")


def test_a_wrong_delimiter_is_found_out(read):
    with pytest.raises(BadFileError, match="a semicolon gives 2 fields"):
        read("a;b\n1;2\n", delimiter=",")
    assert rows(read("a;b\n1;2\n", delimiter=";")) == [[1, 2]]


def test_a_broken_line_far_below_the_sample(read):
    good = "a,b\n" + "1,2\n" * 200_000
    with pytest.raises(BadFileError) as caught:
        read(good + "1,2,3\n" + "1,2\n" * 10)
    assert caught.value.line == 200_002
    with pytest.raises(BadFileError) as caught:
        read(good + "1,x\n")
    assert caught.value.line == 200_002
    assert str(caught.value).count("1 of 200,001 cells") == 1


def test_bad_bytes_in_utf8_have_a_line(read):
    with pytest.raises(BadFileError, match="is not utf-8") as caught:
        read(b"a,b\n1,2\n\xff,3\n", encoding="utf-8")
    assert caught.value.line == 3
    with pytest.raises(BadFileError, match="mark of utf-16"):
        read("a,b\n1,2\n".encode("utf-16"), encoding="utf-8")


def test_packed_files_that_are_not(read):
    with pytest.raises(BadFileError, match="named like gzip, and is not"):
        read("a,b\n1,2\n", name="x.csv.gz")


def test_options_that_are_wrong(read, tmp_path):
    with pytest.raises(UnknownColumnError, match="'c'"):
        read("a,b\n1,2\n", columns=["c"])
    with pytest.raises(UnknownColumnError, match="'c'"):
        read("a,b\n1,2\n", types={"c": "text"})
    with pytest.raises(UnknownOptionError, match="float"):
        read("a,b\n1,2\n", types={"a": "float"})
    for option in ({"delimiter": ";;"}, {"decimal": "x"}, {"thousands": "x"}, {"encoding": "no"}):
        with pytest.raises(BadOptionError):
            read("a,b\n1,2\n", **option)
    with pytest.raises(BadOptionError, match="no meaning for csv"):
        read("a,b\n1,2\n", sheet="x")
    with pytest.raises(DataNotFoundError, match="There is no file"):
        read_file(tmp_path / "none.csv")
    with pytest.raises(BadFileError, match="no format is known"):
        read("x", name="file.docx")
    with pytest.raises(BadFileError, match="folder"):
        read_file(tmp_path)


@pytest.mark.parametrize(
    "ending", ["parquet", "feather", "xlsx", "sav", "dta", "xpt", "por", "sas7bdat"]
)
@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", bytes(range(256)) * 20])
def test_files_that_are_not_what_they_are_called(read, ending, content):
    with pytest.raises(BadFileError):
        read(content, name=f"file.{ending}")


# How numbers are written.


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ('a,b\n"1,234",1.5\n"2,345,678",2\n', {}, [[1234, 1.5], [2345678, 2.0]]),
        ("a;b\n1.234,5;1\n12;2\n", {}, [[1234.5, 1], [12.0, 2]]),
        ("a;b\n1 234;0,5\n12;2\n", {}, [[1234, 0.5], [12, 2.0]]),
        ("a;b\n1\u202f234,5;1\n12;2\n", {}, [[1234.5, 1], [12.0, 2]]),
        ("a;b\n1'234.5;1\n12;2\n", {}, [[1234.5, 1], [12.0, 2]]),
        ("a;b\n1,234;x\n", {"decimal": ","}, [[1.234, "x"]]),
        ("a;b\n1,234;x\n", {"decimal": "."}, [[1234, "x"]]),
        ("a;b\n1,234;x\n", {"thousands": ","}, [[1234, "x"]]),
        ("a;b\n1,234;x\n", {"thousands": ""}, [[1.234, "x"]]),
        ("a;b\n1.234;x\n", {"thousands": "."}, [[1234, "x"]]),
        ("a,b\n1.234,x\n", {}, [[1.234, "x"]]),
        ("a;b\n1,5;2.5\n", {"decimal": ","}, [[1.5, "2.5"]]),
        ("a,b\n192.168.100.200,1.5\n", {}, [["192.168.100.200", 1.5]]),
        ("a,b\n1.2.3,1.5\n", {}, [["1.2.3", 1.5]]),
        ("a;b\n12.345.678;1\n23.456.789;2\n", {}, [["12.345.678", 1], ["23.456.789", 2]]),
        ("a;b\n12.345.678;1\n", {"thousands": "."}, [[12345678, 1]]),
        ("a;b\n600 123 456;1,5\n", {}, [["600 123 456", 1.5]]),
    ],
)
def test_how_numbers_are_written(read, content, options, expected):
    assert rows(read(content, **options)) == expected


def test_an_account_gives_the_same_reading_again(read, tmp_path):
    source = read("a;b;c;d\n1.234,5;0012;NA;x\n7;0013;3;NA\n")
    again = read_file(tmp_path / "file.csv", **source.how.options)
    assert again.table.equals(source.table)
    assert "decimal sign: comma (column 'a', line 2)" in source.how.to_dict()["statements"]


# Words among numbers


def refusal(path, rows, head="a,b,c", **options):
    path.write_text("\n".join([head, *rows]) + "\n")
    with pytest.raises(BadFileError) as refused:
        read_file(path, **options)
    return str(refused.value)


def test_a_word_among_numbers_is_named_in_all_columns_at_once(tmp_path):
    """A bug once met: --read missing.MSP=WORD, and then the next column, one at a time."""
    path = tmp_path / "t.csv"
    rows = [f"{i},{i},x" for i in range(20)] + ["N,N,x"] * 5 + ["3,U,x"] * 6
    said = refusal(path, rows)
    assert "column 'a' holds numbers, and something else in 5 of 31 cells" in said
    assert "the first in this line ('N'); so does 'b' ('U', 'N' in 11, first in line 22)" in said
    assert "give missing=['N', 'U'] if they mean missing in all columns; or" in said
    assert "line 22" in said
    found = read_file(path, missing=["N", "U"]).table
    assert [str(one.type) for one in found.schema] == ["int64", "int64", "string"]
    said = refusal(path, [*rows, "1,1,N"])
    assert "missing in all columns ('c' too)" in said
    command = for_command(said, {"read": "--read"})
    assert "--read missing=N --read missing=U if they mean" in command
    assert "--read missing.a=N or --read types.a=text" in command


def test_of_one_mixed_column_the_word_is_named(tmp_path):
    said = refusal(tmp_path / "t.csv", [f"{i},1,x" for i in range(10)] + ["N/K,1,x"] * 5)
    assert "('N/K'). Correct it; or give missing={'a': ['N/K']} if it means missing" in said
    assert "(missing=['N/K'] in all columns), or types={'a': 'text'}" in said


@pytest.mark.parametrize(
    "others",
    [
        ["Mary"] * 4,  # so few may be a person
        ["12a"] * 9,  # no word
        [*["N"] * 9, "12a"],
        [*"UVWXYZ"] * 5,  # more than may be categories
        ["this is a remark of somebody"] * 9,
    ],
)
def test_other_texts_among_numbers_are_not_named(tmp_path, others):
    rows = [f"{i},{i},x" for i in range(40)]
    said = refusal(tmp_path / "t.csv", rows + [f"{text},1,x" for text in others])
    assert "first in this line. Correct it; or give missing={'a': [...]} if it means" in said
    assert others[0] not in said.partition("Correct it")[2]
    both = refusal(tmp_path / "t.csv", rows + [f"{text},N,x" for text in others] + ["1,N,x"] * 5)
    assert "missing={'a': [...], 'b': ['N']} if they mean missing, or types={'a': 'text'}" in both
    command = for_command(both, {"read": "--read"})
    assert "--read missing.a=WORD --read missing.b=N if they mean" in command


def test_words_are_found_in_a_file_that_is_read_in_pieces(tmp_path):
    path = tmp_path / "t.csv"
    said = refusal(path, [f"{i},1,x" for i in range(10)] + ["N,1,x"] * 5)
    with pytest.raises(BadFileError) as refused:
        open_pieces(path)
    assert str(refused.value) == said
