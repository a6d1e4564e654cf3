"""The one reading of a table: what equals what, what is missing (by hand, in every library)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tessella.exceptions import BadTableError, LinkageError, UnpairedError
from tessella.frame import Pair, Table, View, group_ids, matches_code, text_of
from tessella.schema import Schema

FRAME = pd.DataFrame(
    {
        "x": [1.0, -0.0, 0.0, np.nan, -9.0],
        "town": ["-9.0", "Reus", "-9", None, "Reus"],
        "n": [3, 1, 2, 1, 3],
    }
)
LIBRARIES = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


@pytest.fixture(params=LIBRARIES)
def view(request):
    schema = Schema.guess(FRAME).override(
        x={"missing": ["-9"]}, town={"missing": [-9]}, n={"kind": "ordinal"}
    )
    return View(LIBRARIES[request.param](FRAME), schema)


def test_numbers(view):
    np.testing.assert_array_equal(view.numbers("x"), [1.0, 0.0, 0.0, np.nan, np.nan])
    assert not np.signbit(view.numbers("x")[1])
    assert not view.numbers("x").flags.writeable
    assert view.matrix(["x", "n"]).shape == (5, 2)


def test_states(view):
    np.testing.assert_array_equal(view.states("x"), [0, 0, 0, 1, 3])
    np.testing.assert_array_equal(view.states("town"), [3, 0, 3, 1, 0])
    assert not view.any_missing("n")


def test_categories(view):
    assert view.categories("n").labels == ["1", "2", "3"]
    np.testing.assert_array_equal(view.categories("n").codes, [2, 0, 1, 0, 2])
    np.testing.assert_array_equal(
        view.categories("town").codes < 0, [True, False, True, True, False]
    )


def test_group_ids_tell_ways_of_missing_apart(view):
    np.testing.assert_array_equal(view.group_ids(["x"]), [0, 1, 1, 2, 3])
    np.testing.assert_array_equal(view.group_ids(["town"]), [0, 1, 0, 2, 1])


def test_a_column_is_converted_once(view, monkeypatch):
    view.numbers("x"), view.categories("town")

    def again(*_):
        raise AssertionError("converted again")

    monkeypatch.setattr(Table, "_read_numbers", again)
    monkeypatch.setattr(Table, "_read_labels", again)
    View(view.table).numbers("x")
    view.states("town"), view.group_ids(["x", "town"])


def test_nan_is_told_from_null_where_the_library_does():
    view = View(pl.DataFrame({"x": [1.0, float("nan"), None]}))
    np.testing.assert_array_equal(view.states("x"), [0, 2, 1])
    np.testing.assert_array_equal(view.codes("x")[1:], [-2, -1])


def test_group_ids_against_tuples():
    """An independent way: a dict of tuples, also with numbers that need 64 bits."""
    random = np.random.default_rng(0)
    for _ in range(50):
        columns = [random.integers(-(2**40), 2**40, 30) % 7 * 2**37 for _ in range(4)]
        columns.append(random.integers(-2, 2, 30))
        seen: dict[tuple[int, ...], int] = {}
        expected = [
            seen.setdefault(row, len(seen)) for row in zip(*map(np.ndarray.tolist, columns))
        ]
        np.testing.assert_array_equal(group_ids(columns), expected)


@pytest.mark.parametrize(
    ("label", "code", "same"),
    [
        ("-9.0", -9, True),
        ("-9", "-9.0", True),
        ("x", "x", True),
        ("NA", -9, False),
        ("9", -9, False),
    ],
)
def test_codes(label, code, same):
    assert matches_code(label, code) is same


def test_texts_of_numbers():
    assert [text_of(v) for v in (3, 3.0, np.float32(0.5), -0.0, 1e300)] == [
        "3",
        "3",
        "0.5",
        "0",
        "1e+300",
    ]


def test_values_with_the_same_text_are_one():
    codes, labels = Table.read(pd.DataFrame({"a": [3, "3", 3.0]}, dtype=object)).labels("a")
    assert labels == ["3"]
    np.testing.assert_array_equal(codes, [0, 0, 0])


def test_weights_and_strata():
    schema = Schema.guess(FRAME).override(n={"role": "weight"})
    np.testing.assert_array_equal(View(FRAME, schema).weights(), FRAME["n"])
    assert View(FRAME).weights() is None
    with pytest.raises(BadTableError, match="2 of 5"):
        View(FRAME).weights([1, 1, 0, -1, 2])
    strata = View(FRAME).strata(["n"])
    assert strata.names == ("n=3", "n=1", "n=2")
    np.testing.assert_array_equal(strata.ids, [0, 1, 2, 1, 0])
    with_missing = View(FRAME).strata("town")
    assert sum(name == "town=missing" for name in with_missing.names) == 1
    missing = with_missing.ids == with_missing.names.index("town=missing")
    np.testing.assert_array_equal(missing, FRAME["town"].isna())
    with pytest.raises(BadTableError, match="1 missing"):
        View(FRAME).strata(FRAME["town"].to_numpy())


def test_a_pair_aligned_by_identifier():
    masked = FRAME.iloc[[2, 0]].assign(x=[5.0, 1.0])
    original = FRAME.assign(who=list("abcde"))
    pair = Pair(original, masked.assign(who=["c", "a"]), id="who")
    np.testing.assert_array_equal(pair.rows, [2, 0])
    np.testing.assert_array_equal(pair.changed("x"), [True, False])
    before, after = pair.numbers("x")
    np.testing.assert_array_equal(before, [0.0, 1.0])
    np.testing.assert_array_equal(after, [5.0, 1.0])
    with pytest.raises(LinkageError, match="no original"):
        Pair(original, masked.assign(who=["c", "z"]), id="who")
    with pytest.raises(UnpairedError):
        Pair(original, masked)


def test_categories_of_a_pair_share_a_numbering():
    before, after = pd.DataFrame({"a": ["x", "y"]}), pd.DataFrame({"a": ["z", "x"]})
    codes_before, codes_after, labels = Pair(before, after).categories("a")
    assert labels == ["x", "y", "z"]
    assert codes_before.tolist() == [0, 1]
    assert codes_after.tolist() == [2, 0]
