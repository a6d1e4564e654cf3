"""Files in pieces: the same as whole, whatever the size of the pieces; or nothing at all.

Most tests compare with `read_file` and `write_file`, which are tested on their own.
"""

from __future__ import annotations

import csv
import io
import os
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tessella.exceptions import BadFileError, TessellaError, UnknownOptionError
from tessella.io import Metadata, Variable, csv_lines, csv_reading, csv_text, read_file, write_file
from tessella.io import pieces as in_pieces
from tessella.io.pieces import open_pieces

DATA = os.environ.get("TESSELLA_DATA")


@pytest.fixture
def small(monkeypatch):
    """Read in very small blocks, and give very small pieces."""

    def use(chunk=200, rows=7, piece=64):
        monkeypatch.setattr(csv_reading, "CHUNK", chunk)
        monkeypatch.setattr(csv_text, "_PIECE", piece)
        monkeypatch.setattr(in_pieces, "PIECE_ROWS", rows)

    use()
    return use


def joined(pieces):
    return pa.concat_tables(pieces.tables())


def assert_same(path, **options):
    """Whole and in pieces give the same table, account and error."""
    whole, error = None, None
    try:
        whole = read_file(path, **options)
    except TessellaError as raised:
        error = raised
    if error is not None:
        with pytest.raises(type(error)) as in_parts:
            joined(open_pieces(path, **options))
        assert str(in_parts.value) == str(error)
        return None
    pieces = open_pieces(path, **options)
    for _ in range(2):  # again and again
        table = joined(pieces)
        table.validate(full=True)
        assert table.schema == whole.table.schema
        assert table.equals(whole.table)
    assert pieces.how == whole.how
    assert pieces.metadata == whole.metadata
    assert (pieces.n_rows, pieces.columns) == (whole.n_rows, whole.columns)
    assert (pieces.path, pieces.format) == (whole.path, whole.format)
    return pieces


def written(folder, text, name="x.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


INTEGERS = st.integers(-9999, 9999).map(str)
CELLS = {
    "integer": INTEGERS,
    "number": st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: f"{value:.4f}"),
    "comma": st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: f"{v:.2f}".replace(".", ",")),
    "date": st.dates(date(1950, 1, 1), date(2050, 1, 1)).map(str),
    "moment": st.datetimes().map(lambda at: at.replace(fold=0).isoformat()),
    "truth": st.sampled_from(["true", "false"]),
    "missing": st.sampled_from(["", "NA"]),
    "code": st.sampled_from(["007", "12", "1,234", " 5 ", "1.234.567"]),
    "text": st.text(st.sampled_from('ab ,;"\n\r\u00e9'), max_size=6),
}


@st.composite
def columns(draw):
    """A column whose first rows are of one kind, and the last ones perhaps of another."""
    first, last = draw(st.sampled_from(list(CELLS))), draw(st.sampled_from(list(CELLS)))
    n_first = draw(st.integers(0, 12))
    return [draw(CELLS[first if row < n_first else last]) for row in range(12)]


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    cells=st.lists(columns(), min_size=1, max_size=4),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    delimiter=st.sampled_from(",;\t"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "windows-1252", "utf-16"]),
    chunk=st.integers(16, 150),
    given_types=st.booleans(),
)
@example([["1"] * 6 + ["x"] * 6], "\n", ",", csv.QUOTE_MINIMAL, "utf-8", 16, False)
def test_any_csv_is_read_as_it_is_whole(
    tmp_path, small, cells, end, delimiter, quoting, encoding, chunk, given_types
):
    small(chunk=chunk, rows=3)
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerow([f"c{place}" for place in range(len(cells))])
    writer.writerows(zip(*cells))
    path = written(tmp_path, out.getvalue(), encoding=encoding)
    assert_same(path, **({"types": {"c0": "text"}, "missing": ["12"]} if given_types else {}))


LONG = 40
BY_HAND = {
    "integers, then text": "a,b\n" + "1,x\n" * LONG + "y,x\n" * LONG,
    "a text among integers": "a,b\n" + "1,x\n" * LONG + "y,x\n",
    "dates, then text": "a,b\n" + "2020-01-01,x\n" * LONG + "later,x\n" * 2 * LONG,
    "a date that is none": "a,b\n" + "2020-01-01,x\n" * LONG + "2020-02-30,x\n" + "2020-01-01,x\n",
    "moments, then finer ones": "a\n" + "2020-01-01T00:00:00.5\n" * LONG
    + "2020-01-01T00:00:00.1234567\n",
    "zones come late": "a\n" + "2020-01-01T00:00:00Z\n" * LONG + "2020-01-01T00:00:00+02:00\n",
    "moments, then with zones": "a\n" + "2020-01-01T00:00:00\n" * LONG + "2020-01-01T00:00:00Z\n",
    "nothing but missing": "a,b\n" + ",1\n" * LONG,
    "missing at first": "a,b\n" + ",1\n" * LONG + "2,1\n",
    "names only": "a,b\n",
    "names only, no end": "a,b",
    "long names only": ",".join(f"column number {place}" for place in range(40)) + "\n",
    "decimal comma that comes late": "a;b\n" + "1;2\n" * LONG + "1,5;2\n",
    "both signs": "a;b\n" + "1,5;2\n" * LONG + "1,5;2.75\n",
    "thousands that come late": "a;b\n" + "1;2\n" * LONG + "1.234,5;2\n",
    "unclear": "a;b\n" + "1;2\n" * LONG + "1,234;2\n",
    "one column": "a\n" + "x\n\n" * LONG,
    "one column, blank at the end": "a\n" + "x\n" * LONG + "\n\n",
    "one column, many blanks": "\n\n" + "a\n" + "\n" * 500 + "1\n",
    "blank lines": "\n\na,b\n" + "1,2\n\n" * LONG,
    "lines that end in quotes": 'a,b\n' + '"x\ny\r\nz",1\n' * LONG,
    "a field longer than a block": 'a,b\n1,"' + "x\n" * 500 + '"\n2,y\n',
    "doubled quotes": "a,b\n" + '"say ""yes""",1\n' * LONG,
    "quotes within": "a,b\n" + 'x"y,1\n' * LONG,
    "quoted numbers": 'a,b\n' + '"1",2\n' * LONG,
    "quoted numbers, then bare": 'a,b\n' + '"1",2\n' * LONG + "1,2\n",
    "quoted names": '"2020","2021"\n' + "1,2\n" * LONG,
    "quoted names and numbers": '"2020","2021"\n' + '"1","2"\n' * LONG,
    "line ends of all kinds": "a,b\n" + "1,2\r\n1,2\r1,2\n" * LONG,
    "sep": "sep=;\n" + "a;b\n" + "1;2\n" * LONG,
    "two delimiters until late": "a;b,c\n" + "1;2,3\n" * LONG + "1,2\n",
    "two delimiters": "a;b,c\n" + "1;2,3\n" * LONG,
    "leading zeros": "a,b\n" + "1,2\n" * LONG + "007,2\n",
    "ragged": "a,b\n" + "1,2\n" * LONG + '"x\ny",3\n1,2,3\n' + "1,2\n" * LONG,
    "unclosed": "a,b\n" + "1,2\n" * LONG + '1,"2\n' + "1,2\n" * LONG,
    "stray": "a,b\n" + "1,2\n" * LONG + '"1"x,2\n' + "1,2\n" * LONG,
    "a byte 0": "a,b\n" + "1,2\n" * LONG + "\0,2\n" + "1,2\n" * LONG,
    "too large": "a,b\n" + "1.5,2\n" * LONG + "1e999,2\n" + "1.5,2\n",
    "no names": "1,2\n" * LONG,
    "a name twice": "a,a\n" + "1,2\n" * LONG,
    "empty": "",
    "blank": "\n \n\n",
}  # fmt: skip


@pytest.mark.parametrize("what", BY_HAND)
@pytest.mark.parametrize("chunk", [16, 50, 200])
def test_csv_files_that_only_the_whole_decides(tmp_path, small, what, chunk):
    small(chunk=chunk)
    assert_same(written(tmp_path, BY_HAND[what]))


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["c", "a"]},
        {"missing": ["7"]},
        {"missing": {"a": ["8"], "c": ["0.0"]}},  # the cell of the second column comes first
        {"missing": {"b": "x", "a": ["3", "4"]}},
        {"types": {"a": "text"}},
        {"types": {"b": "integer"}},
        {"types": {"z": "integer"}},
        {"dates": {"d": "%d/%m/%Y"}},
        {"dates": {"d": "%m/%d/%Y"}},
        {"header": False},
        {"names": ["p", "q", "r", "s"]},
        {"names": ["p", "q"]},
        {"skip": 3, "header": False},
        {"skip": 3, "names": list("pqrs")},
        {"delimiter": ";"},
        {"decimal": ","},
        {"thousands": ""},
        {"codes": {"a": [3]}},
        {"metadata": Metadata({"a": Variable(label="A")})},
        {"encoding": "latin-1"},
        {"columns": ["nothing"]},
        {"sheet": "x"},
        {"format": "parquet"},
    ],
    ids=str,
)
def test_options(tmp_path, small, options):
    rows = [f"{row % 9},x,{row / 4},{row % 28 + 1:02d}/02/2020" for row in range(50)]
    assert_same(written(tmp_path, "a,b,c,d\n" + "\n".join(rows)), **options)


def test_an_option_that_there_is_not(tmp_path):
    with pytest.raises(UnknownOptionError, match="seperator"):
        open_pieces(written(tmp_path, "a\n1\n"), seperator=",")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_to_skip_in_small_blocks(tmp_path, small, monkeypatch, end):
    monkeypatch.setattr(csv_lines, "_SAMPLE", 5)
    text = end.join(['say "no', "", "and more than five letters", "a,b", "1,2", "3,4", ""])
    for skip in range(5):
        assert_same(written(tmp_path, text), skip=skip)
    pieces = assert_same(written(tmp_path, text), skip=3)
    assert joined(pieces).to_pydict() == {"a": [1, 3], "b": [2, 4]}


@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16", "utf-16-le", "utf-8-sig", "utf-8"])
def test_letters_that_come_late(tmp_path, small, encoding):
    text = "a,b\r\n" + "x,1\r\n" * 100 + "caf\u00e9,2\r\n"
    pieces = assert_same(written(tmp_path, text, encoding=encoding))
    assert joined(pieces)["a"][-1].as_py() == "caf\u00e9"
    cut_short = tmp_path / "short.csv"
    cut_short.write_bytes(text.encode(encoding)[: -len("9,2\r\n".encode(encoding)) // 2])
    assert_same(cut_short)
    assert_same(written(tmp_path, text, encoding=encoding), encoding="utf-8")
    assert_same(written(tmp_path, text, encoding=encoding), encoding="ascii")


@pytest.mark.parametrize("bad", [b"\xe9", b"\x81", b"\xc3\xa9 \xc3\xa9 \xe9"])
def test_lines_of_bad_letters(tmp_path, small, bad):
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\r\n" + b"x,1\r\n" * 100 + b"z" + bad + b",2\r\n")
    assert_same(path)
    assert_same(path, encoding="utf-8")


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_packed_csv(tmp_path, small, ending):
    path = tmp_path / f"x.csv.{ending}"
    with pa.output_stream(str(path), compression={"gz": "gzip", "zst": "zstd"}[ending]) as out:
        out.write(("a;b\n" + "1,5;x\n" * 200 + "2;y\n").encode())
    pieces = assert_same(path)
    assert pieces.n_rows == 201
    path.write_bytes(path.read_bytes()[:-5])
    assert_same(path)
    path.write_bytes(b"a,b\n1,2\n")
    assert_same(path)


def test_pieces_are_small_and_their_size_is_known(tmp_path, small):
    path = written(tmp_path, "a,b\n" + "".join(f"{row},text {row}\n" for row in range(500)))
    pieces = assert_same(path)
    sizes = [table.num_rows for table in pieces.tables()]
    assert max(sizes) <= 7
    assert pieces.size == pytest.approx(read_file(path).table.nbytes, rel=0.1)
    assert repr(pieces) == f"Pieces({str(path)!r}, csv, 500 records, 2 columns)"


def test_wide_rows_make_pieces_of_fewer(tmp_path, monkeypatch):
    table = pa.table({"a": ["x" * 1000] * 100})
    pq.write_table(table, tmp_path / "x.parquet")
    monkeypatch.setattr("tessella.io.arrow_pieces.PIECE_BYTES", 10_000)
    pieces = open_pieces(tmp_path / "x.parquet")
    assert pieces.size == pytest.approx(table.nbytes, rel=0.05)
    assert max(piece.num_rows for piece in pieces.tables()) < 11
    assert joined(pieces).equals(table)


def test_the_right_line_of_a_bad_cell(tmp_path, small):
    """By hand: the header, 60 records of two lines each, then the cell in line 122."""
    path = written(tmp_path, "a,b\n" + '1,"x\ny"\n' * 60 + "z,w\n" + '1,"x\ny"\n' * 60)
    with pytest.raises(BadFileError, match=r"line 122") as error:
        open_pieces(path)
    assert "1 of 121 cells" in str(error.value)
    pieces = open_pieces(path, types={"a": "integer"})
    with pytest.raises(BadFileError, match=r"line 122.*'z'"):
        joined(pieces)


def test_a_record_without_end_is_refused_before_it_fills_memory(tmp_path, small, monkeypatch):
    monkeypatch.setattr(csv_lines, "_LONGEST", 500)
    path = written(tmp_path, "a,b\n" + "1,x\n" * 60 + '2,"y\n' + "1,x\n" * 1000)
    with pytest.raises(BadFileError, match=r"line 62.*not ended"):
        open_pieces(path)


def test_a_file_that_was_changed(tmp_path, small):
    path = written(tmp_path, "a,b\n" + "1,x\n" * 60)
    pieces = open_pieces(path)
    written(tmp_path, "a,b\n" + "1,x\n" * 61)
    with pytest.raises(BadFileError, match="changed"):
        joined(pieces)


@pytest.mark.skipif(not DATA, reason="TESSELLA_DATA names no folder with real tables")
def test_real_csv_files(small):
    paths = sorted(Path(DATA).rglob("*.csv"))
    some = [path for path in paths if path.stat().st_size < 3e6][:12]
    assert some
    for path in some:
        small(chunk=max(1000, path.stat().st_size // 7), rows=997, piece=1 << 16)
        assert_same(path)


TABLE = pa.table(
    {
        "n": pa.array([*range(997), None, 5, 6], pa.int32()),
        "x": pa.array([row / 7 for row in range(1000)]),
        "t": pa.array([None if row % 5 == 0 else f"text {row % 50}" for row in range(1000)]),
        "d": pa.array([date(2020, 1, 1 + row % 28) for row in range(1000)]),
    }
)


@pytest.mark.parametrize("columns", [None, ["t", "n"]])
@pytest.mark.parametrize("group", [64, 1000])
def test_parquet_of_many_groups(tmp_path, small, columns, group):
    noted = TABLE.schema.field("n").with_metadata({"of": "pandas"})
    table = TABLE.cast(TABLE.schema.set(0, noted)).replace_schema_metadata({"pandas": "{}"})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=group)
    pieces = assert_same(path, columns=columns)
    assert pieces.size > 0
    assert "pandas" in str(pieces.how)


@pytest.mark.parametrize("ending", ["feather", "arrow"])
@pytest.mark.parametrize("columns", [None, ["t", "n"]])
def test_arrow_files_and_streams(tmp_path, small, ending, columns):
    path = tmp_path / f"x.{ending}"
    if ending == "feather":
        feather.write_feather(TABLE, path, chunksize=100, compression="lz4")
    else:
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, TABLE.schema) as writer:
            writer.write_table(TABLE, max_chunksize=100)
    pieces = assert_same(path, columns=columns)
    assert max(table.num_rows for table in pieces.tables()) <= 7
    path.write_bytes(path.read_bytes()[:-200])
    assert_same(path)


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_tables_of_no_rows(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    write_file(TABLE.slice(0, 0), path)
    pieces = assert_same(path)
    assert [table.num_rows for table in pieces.tables()] == [0]


def test_categories(tmp_path, small):
    coded = pa.table({"c": pa.array(["x", "y", None, "z"] * 100).dictionary_encode()})
    path = tmp_path / "x.parquet"
    pq.write_table(coded, path, row_group_size=30)
    pieces = open_pieces(path)
    assert joined(pieces).schema == read_file(path).table.schema
    assert joined(pieces)["c"].to_pylist() == coded["c"].to_pylist()


@pytest.mark.parametrize("ending", ["xlsx", "sav", "dta"])
def test_formats_that_are_read_whole(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    write_file(pa.table({"a": [1.5]}), path)
    with pytest.raises(BadFileError, match="Convert it to Parquet or CSV first"):
        open_pieces(path)


def folder_of(tmp_path, tables):
    folder = tmp_path / "table"
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name)
    return folder


def test_a_folder_of_parquet_files(tmp_path, small):
    odd = TABLE.slice(600).select(["d", "t", "x", "n"])
    folder = folder_of(
        tmp_path,
        {
            "b.parquet": TABLE.slice(400, 200),
            "a/2.parquet": TABLE.slice(200, 200),
            "a/1.parquet": TABLE.slice(0, 200),
            "c.pq": odd,
            "_temporary/0.parquet": odd,
            ".hidden.parquet": odd,
        },
    )
    (folder / "_SUCCESS").touch()
    (folder / "read me.txt").touch()
    pieces = assert_same(folder)
    assert joined(pieces).equals(TABLE)
    assert "files: 4" in str(pieces.how)
    assert_same(folder, columns=["t", "n"])
    assert_same(folder, codes={"n": [5]})


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (TABLE.drop_columns(["t"]), r"'t'.*'b.parquet' has none"),
        (TABLE.append_column("new", TABLE["n"]), r"'new'.*'b.parquet' has it as int32.*has none"),
        (TABLE.cast(TABLE.schema.set(0, pa.field("n", pa.int64()))), r"'n'.*as int64.*as int32"),
    ],
)
def test_files_of_a_folder_that_differ(tmp_path, other, said):
    folder = folder_of(tmp_path, {"a.parquet": TABLE, "b.parquet": other})
    assert_same(folder)
    with pytest.raises(BadFileError, match=said):
        open_pieces(folder)


def test_folders_that_are_no_table(tmp_path):
    with pytest.raises(BadFileError, match="without Parquet files"):
        read_file(tmp_path)
    with pytest.raises(BadFileError, match="folder"):
        read_file(tmp_path, format="csv")
    folder = folder_of(tmp_path, {"year=2020/a.parquet": TABLE})
    with pytest.raises(BadFileError, match="'year=2020' holds the value of a column"):
        open_pieces(folder)
    (folder / "year=2020").rename(folder / "a")
    (folder / "a" / "b.parquet").write_bytes(b"PAR1 no")
    assert_same(folder)
