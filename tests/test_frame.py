"""Tables in and out: what was not masked is the same, to the dtype."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tessella.exceptions import BadTableError, UnknownColumnError
from tessella.frame import Table, View, number_labels
from tessella.schema import Schema

WIDTHS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
MONEY = pd.ArrowDtype(pa.decimal128(9, 2))


def pandas_table() -> pd.DataFrame:
    """A column of nearly everything that pandas has."""
    table = pd.DataFrame(
        {
            7: [1.5, 2.5, np.nan],
            **{width: np.array([1, 2, 3], dtype=width) for width in WIDTHS},
            "float32": np.array([0.1, 0.2, 0.3], dtype=np.float32),
            "Int64": pd.array([1, None, 3], dtype="Int64"),
            "Float32": pd.array([1.25, None, 3], dtype="Float32"),
            "boolean": pd.array([True, None, False], dtype="boolean"),
            "bool": [True, False, True],
            "arrow_int": pd.array([1, None, 3], dtype=pd.ArrowDtype(pa.int16())),
            "arrow_money": pd.array([Decimal("1.25"), None, Decimal("3.00")], dtype=MONEY),
            "category": pd.Categorical(["b", "a", None], categories=["c", "b", "a"]),
            "ordered": pd.Categorical(["b", "a", "b"], categories=["b", "a"], ordered=True),
            "when": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
            "zone": pd.to_datetime(["2020-01-01"] * 3).tz_localize("Europe/Madrid"),
            "text": ["x", None, "z"],
            "object": np.array([1, "a", None], dtype=object),
        },
        index=pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)], names=["one", "two"]),
    )  # fmt: skip
    table.columns.name = "columns"
    table.attrs["source"] = "survey"
    return table


def polars_table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "float": [1.5, float("nan"), None],
            **{w: pl.Series([1, None, 3], dtype=getattr(pl, w.title().replace("Ui", "UI")))
               for w in WIDTHS},
            "float32": pl.Series([0.5, None, 1.5], dtype=pl.Float32),
            "money": pl.Series([Decimal("1.25"), None, Decimal("3.00")], dtype=pl.Decimal(9, 2)),
            "bool": [True, None, False],
            "enum": pl.Series(["b", "a", None], dtype=pl.Enum(["b", "a"])),
            "category": pl.Series(["b", "a", None], dtype=pl.Categorical),
            "day": [datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1)],
            "text": ["x", None, "z"],
            "list": [[1], [2, 3], None],
        }
    )  # fmt: skip


def arrow_table() -> pa.Table:
    fields = [
        pa.field("int", pa.int16(), metadata={"label": "whole"}),
        pa.field("float", pa.float32()),
        pa.field("must", pa.float64(), nullable=False),
        pa.field("money", pa.decimal128(9, 2)),
        pa.field("category", pa.dictionary(pa.int8(), pa.string(), ordered=True)),
        pa.field("text", pa.large_string()),
    ]
    columns = [
        pa.chunked_array([[1, None], [3]], pa.int16()),
        pa.chunked_array([[1.5, float("nan")], [None]], pa.float32()),
        pa.array([1.0, 2.0, 3.0]),
        pa.array([Decimal("1.25"), None, Decimal("3.00")], pa.decimal128(9, 2)),
        pa.array(["b", "a", None]).cast(pa.dictionary(pa.int8(), pa.string(), ordered=True)),
        pa.array(["x", None, "z"], pa.large_string()),
    ]
    return pa.table(columns, schema=pa.schema(fields, metadata={"file": "survey"}))


def same(left: Any, right: Any) -> None:
    """Equal to the dtype, in every library."""
    assert type(left) is type(right)
    if isinstance(left, pd.DataFrame):
        pd.testing.assert_frame_equal(left, right, check_freq=True, check_flags=True)
        assert left.attrs == right.attrs
    elif isinstance(left, pl.DataFrame):
        assert_frame_equal(left, right, check_exact=True)
    elif isinstance(left, pa.Table):
        assert left.schema.equals(right.schema, check_metadata=True)
        assert left.to_pydict().__repr__() == right.to_pydict().__repr__()  # nan equals nan
    else:
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


def rewritten(native: Any) -> Any:
    """Every number written back over itself, missing cells kept."""
    table = Table.read(native)
    numeric = [c for c in table.columns if table.facts(c).numeric or table.facts(c).decimals == 0]
    numbers = View(table).read(numeric)
    return table.replace(
        {name: numbers.values[:, j] for j, name in enumerate(numeric)},
        keep={name: numbers.missing[:, j] for j, name in enumerate(numeric)},
    )


@pytest.mark.parametrize(
    "native",
    [
        pandas_table(),
        polars_table(),
        arrow_table(),
        np.array([[1.5, np.nan], [2.5, 3.0]]),
        np.array([[1, 2], [3, 4]], dtype=np.int16),
        np.asfortranarray(np.array([[1, 2], [3, 4]], dtype=np.float32)),
        np.array([[True, False], [False, True]]),
    ],
    ids=["pandas", "polars", "arrow", "floats", "integers", "float32", "booleans"],
)
def test_writing_what_was_read_changes_nothing(native: Any) -> None:
    same(rewritten(native), native)


def test_only_the_named_columns_change_and_never_the_original() -> None:
    native = pandas_table()
    untouched = native.copy(deep=True)
    masked = Table.read(native).replace({"int8": [9, 9, 9], 7: [0.5, 0.5, 0.5]})
    same(native, untouched)
    assert masked["int8"].tolist() == [9, 9, 9]
    assert masked["int8"].dtype == np.int8
    assert masked[7].tolist() == [0.5, 0.5, 0.5]
    same(masked.drop(columns=["int8", 7]), untouched.drop(columns=["int8", 7]))
    masked.loc[:, "text"] = "changed"
    masked.attrs["source"] = "changed"
    same(native, untouched)


def test_a_frame_of_a_subclass_stays_one() -> None:
    class Survey(pd.DataFrame):
        @property
        def _constructor(self) -> type[Survey]:
            return Survey

    assert type(Table.read(Survey({"a": [1.0, 2.0]})).replace({"a": [0, 0]})) is Survey


def test_index_may_repeat_and_be_unsorted() -> None:
    native = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[5, 5, 1])
    assert Table.read(native).replace({"a": [7, 8, 9]})["a"].tolist() == [7, 8, 9]


def test_integers_become_floats_of_the_same_family_when_asked() -> None:
    half = [0.5, 0.5, 0.5]
    table = pandas_table()
    names = ["int8", "Int64", "arrow_int", "bool"]
    out = Table.read(table).replace(dict.fromkeys(names, half), as_float=names)
    assert [str(out[name].dtype) for name in names] == [
        "float64", "Float64", "double[pyarrow]", "float64",
    ]  # fmt: skip
    polars = Table.read(polars_table()).replace({"int8": half}, as_float=["int8"])
    assert polars["int8"].dtype == pl.Float64
    arrow = Table.read(arrow_table()).replace({"int": half}, as_float=["int"])
    assert arrow.schema.field("int").type == pa.float64()
    assert arrow.schema.field("int").metadata == {b"label": b"whole"}
    array = Table.read(np.array([[1, 2], [3, 4]])).replace({0: [0.5, 0.5]}, as_float=[0])
    same(array, np.array([[0.5, 2], [0.5, 4]]))


@pytest.mark.parametrize("native", [pandas_table(), polars_table(), arrow_table()])
def test_a_column_of_integers_takes_whole_numbers_of_its_width_only(native: Any) -> None:
    table = Table.read(native)
    name = next(c for c in table.columns if table.facts(c).family == "integer")
    with pytest.raises(BadTableError, match="whole numbers"):
        table.replace({name: [0.5, 1, 1]})
    with pytest.raises(BadTableError, match="outside of its dtype"):
        table.replace({name: [70_000, 1, 1]})


def test_numbers_that_are_not_finite_are_never_written() -> None:
    with pytest.raises(BadTableError, match=r"'a'.*not finite"):
        Table.read(pd.DataFrame({"a": [1.0, 2.0]})).replace({"a": [1.0, np.nan]})


def test_money_is_rounded_to_the_cent() -> None:
    for native in (arrow_table(), polars_table()):
        out = Table.read(native).replace({"money": [1.004, 2.499, 7.0]})
        assert [str(value) for value in out["money"].to_pandas()] == ["1.00", "2.50", "7.00"]


def test_states_tell_null_nan_and_codes_apart() -> None:
    table = Table.read(pl.DataFrame({"a": [1.0, None, float("nan"), -9.0, -8.0]}))
    schema = Schema({"a": {"kind": "integer", "missing": [-8, -9]}})
    numbers = View(table, schema).read(["a"])
    assert numbers.state[:, 0].tolist() == [0, 1, 2, 4, 3]
    assert np.isnan(numbers.values[1:, 0]).all()
    assert numbers.count_missing() == {"a": 4}


def test_facts() -> None:
    facts = {str(c): Table.read(pandas_table()).facts(c) for c in pandas_table().columns}
    assert {name: fact.family for name, fact in facts.items() if name not in WIDTHS} == {
        "7": "float", "float32": "float", "Int64": "integer", "Float32": "float",
        "boolean": "boolean", "bool": "boolean", "arrow_int": "integer", "arrow_money": "decimal",
        "category": "category", "ordered": "category", "when": "date", "zone": "date",
        "text": "text", "object": "other",
    }  # fmt: skip
    assert facts["arrow_money"].decimals == 2
    assert facts["ordered"].ordered
    assert not facts["category"].ordered
    arrow = Table.read(arrow_table())
    assert (arrow.facts("money").decimals, arrow.facts("category").ordered) == (2, True)
    assert Table.read(polars_table()).facts("money").decimals == 2
    wide = Table.read(pa.table({"a": pa.array([1], pa.int64()).cast(pa.decimal256(40, 2))}))
    assert wide.facts("a").family == "decimal"


def test_labels_are_numbered_as_they_appear_in_every_library() -> None:
    columns = {"text": ["b", None, "a", "b"], "number": [2.0, None, 1.0, 2.0]}
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        table = Table.read(make(columns))
        place, names = table.labels("text")
        assert (place.tolist(), names) == ([0, -1, 1, 0], ["b", "a"])
        assert table.labels("number")[0].tolist() == [0, -1, 1, 0]
    with pytest.raises(BadTableError, match="told apart"):
        number_labels(np.array([[1], [2], None], dtype=object))


def test_a_series_must_have_the_index_of_the_table() -> None:
    table = Table.read(pd.DataFrame({"a": [1.0, 2.0]}, index=[3, 4]))
    same_index = pd.Series([5, 6], index=[3, 4])
    assert table.per_record(same_index, who="weights").tolist() == [5, 6]
    with pytest.raises(BadTableError, match=r"weights is a pandas Series whose index"):
        table.per_record(pd.Series([5, 6]), who="weights")
    with pytest.raises(BadTableError, match=r"weights has shape \(3,\).*2 records"):
        table.per_record([1, 2, 3], who="weights")


class Elsewhere:
    def to_pandas(self) -> None: ...


@pytest.mark.parametrize(
    ("native", "words"),
    [
        (pl.DataFrame({"a": [1]}).lazy(), r"LazyFrame.*\.collect\(\)"),
        (pd.Series([1.0]), r"Series.*to_frame"),
        (pl.Series([1.0]), r"Series.*to_frame"),
        (pa.RecordBatch.from_pydict({"a": [1]}), "from_batches"),
        (Elsewhere(), r"pandas or polars DataFrame.*Elsewhere.*\.to_pandas\(\)"),
        ([[1.0, 2.0]], r"list.*pandas\.DataFrame"),
        ({"a": [1]}, r"dict.*pandas\.DataFrame"),
        ("data.csv", "read_csv"),
        (None, "NoneType"),
        (np.array([1.0, 2.0]), r"1 dimension.*reshape\(-1, 1\)"),
        (np.zeros((2, 2, 2)), "3 dimension"),
        (np.zeros(2, dtype=[("a", "f8")]), r"structured.*pandas\.DataFrame"),
        (np.ma.masked_array(np.zeros((2, 2))), "filled"),
        (np.array([["1", "2"]]), "not numbers"),
        (np.array([[1, "a"]], dtype=object), "object.*pandas or polars"),
        (np.array([[1j]]), "complex"),
        (np.empty((0, 3)), "empty: it has 0 records and 3 columns"),
        (np.empty((3, 0)), "empty: it has 3 records and 0 columns"),
        (pd.DataFrame(), "empty"),
        (pl.DataFrame(), "empty"),
        (pa.table({}), "empty"),
        (pd.DataFrame({"a": []}), "0 records"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column named 'a'"),
        (pa.table([[1], [2]], names=["a", "a"]), "more than one column named 'a'"),
        (pd.DataFrame([[1, 2]], columns=[["a", "a"], ["x", "y"]]), "MultiIndex.*Flatten"),
    ],
)  # fmt: skip
def test_what_is_not_a_table_is_named(native: Any, words: str) -> None:
    with pytest.raises(BadTableError, match=f"(?s){words}"):
        Table.read(native)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["1", "2.5", " 3"], r"'c'.*numbers written as text; convert with pandas\.to_numeric"),
        (["1", "many", None], "text, some of it numbers"),
        (["few", "many", None], r": text\)"),
        (pd.Series([1, "two", 3.0], dtype=object), "text among other values"),
        (pd.Series([1, 2, pd.NA], dtype=object), "objects that are not numbers of a dtype"),
        (pd.Categorical([1, 2, 1]), "categories"),
        (pd.to_datetime(["2020-01-01"] * 3), "dates or times"),
    ],
)
def test_what_is_not_numbers_is_named(column: Any, words: str) -> None:
    with pytest.raises(BadTableError, match=words):
        View(pd.DataFrame({"c": column})).read(["c"])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_infinity_is_named(make: Any) -> None:
    table = Table.read(make({"fine": [1.0, 2.0], "wild": [np.inf, 1.0], "low": [1.0, -np.inf]}))
    with pytest.raises(BadTableError, match=r"infinity.*'wild' \(1\), 'low' \(1\)"):
        View(table).read(["fine", "wild", "low"])


@pytest.mark.parametrize("value", [2**53 + 1, -(2**60) - 1, -(2**63)])
def test_digits_are_never_lost(value: int) -> None:
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        table = Table.read(make({"id": [value, 1], "a": [1.0, 2.0]}))
        with pytest.raises(BadTableError, match=r"'id'.*digits"):
            View(table).read(["id"])
        released = Table.read(table.replace({"a": [3.0, 3.0]}))
        assert released._series("id").to_list() == [value, 1]
    big = np.array([[value, 1], [1, 2]])
    with pytest.raises(BadTableError, match=r"Column 0.*digits"):
        Table.read(big).replace({1: [0.5, 0.5]}, as_float=[1])
    same(Table.read(big).replace({1: [5, 5]}), np.array([[value, 5], [1, 5]]))


def test_unknown_columns_get_the_near_miss() -> None:
    table = Table.read(pd.DataFrame({"income": [1.0], 2: [1.0]}))
    with pytest.raises(UnknownColumnError, match=r"columns names a column 'incme'.*'income'"):
        table.place("incme", who="columns")
    with pytest.raises(UnknownColumnError, match=r"3.*It has: income, 2"):
        View(table).read([3])
    assert not table.has(["income"])


@given(
    st.lists(st.integers(-(2**53), 2**53) | st.none(), min_size=1, max_size=20),
    st.sampled_from(["Int64", "int64[pyarrow]"]),
)
def test_whole_numbers_survive_every_round_trip(values: list[int | None], dtype: str) -> None:
    same(rewritten(pd.DataFrame({"a": pd.array(values, dtype=dtype)})),
         pd.DataFrame({"a": pd.array(values, dtype=dtype)}))  # fmt: skip
    column = pl.DataFrame({"a": pl.Series(values, dtype=pl.Int64)})
    same(rewritten(column), column)
    arrow = pa.table({"a": pa.array(values, pa.int64())})
    same(rewritten(arrow), arrow)


@given(st.lists(st.floats(-1e150, 1e150) | st.just(np.nan), min_size=1, max_size=20))
def test_floats_survive_every_round_trip(values: list[float]) -> None:
    values = [value + 0.0 for value in values]  # -0.0 is never written
    for native in (
        pd.DataFrame({0: values}),
        pl.DataFrame({"a": values}),
        pa.table({"a": values}),
        np.array(values).reshape(-1, 1),
    ):
        same(rewritten(native), native)


# Other columns, other rows, other categories


def _frames() -> list[Any]:

    frame = pd.DataFrame({"age": [31, 48, 31, 70], "town": ["Reus", None, "Valls", "Reus"]})
    return [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)]


@pytest.mark.parametrize("frame", _frames(), ids=["pandas", "polars", "pyarrow"])
def test_select_take_and_relabel(frame: Any) -> None:
    table = Table.read(frame)
    assert Table.read(table.select(["town"])).columns == ("town",)
    turned = Table.read(table.take(np.array([3, 0])))
    assert View(turned).numbers("age").tolist() == [70.0, 31.0]
    _, texts = table.labels("age")
    coded = Table.read(table.relabel("age", ["young", "old", "old"], ordered=True))
    assert texts == ["31", "48", "70"]
    assert coded.labels("age")[0].tolist() == [0, 1, 0, 1]
    assert coded.order("age") == ["young", "old"]
    gone = Table.read(table.relabel("town", ["south", None]))
    assert (gone.labels("town")[0] < 0).tolist() == [False, True, True, False]
    assert type(table.select(["age"])) is type(frame)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["text", "integer", "boolean", "date", "category"]),
    st.lists(st.integers(0, 5) | st.none(), min_size=1, max_size=30),
)
def test_every_library_numbers_labels_alike(family: str, cells: list[int | None]) -> None:
    """pandas is the oracle; Arrow in several chunks, with a dictionary in another order."""
    made = {
        "text": lambda c: "abcxyz"[c],
        "integer": lambda c: c,
        "boolean": lambda c: c > 2,
        "date": lambda c: datetime.date(2024, 1, 1 + c),
        "category": lambda c: "abcxyz"[c],
    }[family]
    values = [None if cell is None else made(cell) for cell in cells]
    want = number_labels(np.array([*values, None], dtype=object)[:-1])
    arrow = (
        pa.chunked_array([pa.array(values[:3]), pa.array(values[3:], pa.array(values).type)])
        if values[:3] != [None] * len(values[:3])
        else pa.chunked_array([pa.array(values)])
    )
    if pa.types.is_null(arrow.type):
        return
    if family == "category":
        codes = [None if v is None else "zyxcba".index(v) for v in values]
        plain = pa.array(list("zyxcba"))
        arrow = pa.chunked_array(
            [pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), plain)]
        )
    for table in (pa.table({"v": arrow}), pl.from_arrow(pa.table({"v": arrow}))):
        place, texts = Table.read(table).labels("v")
        assert place.tolist() == want[0].tolist()
        assert texts == want[1]


def test_true_and_1_of_objects_are_two_values():
    """They are equal in Python; a file shows them as two, so that k must count them as two."""
    mixed = pd.DataFrame({"a": pd.Series([1, True, 1, "x", None, False], dtype=object)})
    codes, texts = Table.read(mixed).labels("a")
    assert codes.tolist() == [0, 1, 0, 2, -1, 3]
    assert texts == ["1", "True", "x", "False"]
