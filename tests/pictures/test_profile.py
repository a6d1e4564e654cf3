"""What pages show of columns, in numbers: by hand, against NumPy and pandas, odd columns."""

from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import Schema
from tessella.frame import View
from tessella.pictures.profile import compare_columns, compare_pair, preview_rows, profile_columns
from tessella.pictures.writing import clean, date_text, per_cent, short_number

HOSTILE = "<script>alert(1)</script>\x00\ud800"


def profile(values: Any, **known: Any) -> dict[str, Any]:
    table = pd.DataFrame({"a": values})
    schema = Schema({"a": known}) if known else None
    return profile_columns(table, schema)[0]


# By hand.


def test_three_whole_numbers():
    one = profile([31, 48, 48])
    assert (one["low"], one["high"], one["distinct"], one["missing"]) == (31, 48, 2, 0)
    assert one["quartiles"] == [39.5, 48, 48]
    assert one["mean"] == pytest.approx(127 / 3)
    histogram = one["histogram"]
    assert histogram["edges"][0] == 31
    assert histogram["edges"][-1] == 49
    assert histogram["counts"] == [1, *[0] * 16, 2]  # a bin for each number from 31 to 48


def test_missing_codes_are_missing():
    one = profile([1.0, -9.0, 3.0, None], kind="continuous", missing=[-9])
    assert (one["missing"], one["low"], one["high"], sum(one["histogram"]["counts"])) == (
        2,
        1,
        3,
        2,
    )
    town = profile(["a", "refused", "a"], kind="nominal", missing=["refused"])
    assert (town["missing"], town["distinct"]) == (1, 1)
    assert town["categories"] == [{"value": "a", "text": "a", "count": 2}]


def test_labels_and_rank():
    one = profile([2, 1, 2, 3], kind="ordinal", labels={1: "low", 2: "middle"})
    assert [c["text"] for c in one["categories"]] == ["low", "middle", "3"]
    nominal = profile([2, 1, 2, 3], kind="nominal")
    assert [(c["text"], c["count"]) for c in nominal["categories"]] == [
        ("2", 2),
        ("1", 1),
        ("3", 1),
    ]


def test_only_some_categories_are_named():
    one = profile([f"c{i}" for i in range(30)] + ["c7"])
    assert one["categories"][0] == {"value": "c7", "text": "c7", "count": 2}
    assert len(one["categories"]) == 12
    assert one["others"] == {"values": 18, "records": 18}


def test_a_heavy_tail_is_a_flagged_bin():
    one = profile([*np.arange(1000) / 10, 1e6])
    histogram = one["histogram"]
    assert histogram["tails"] == [False, True]
    assert histogram["edges"][-1] == 1e6
    assert histogram["edges"][-2] == 100
    assert histogram["counts"][-1] == 1


def test_dates_have_readable_ends():
    days = [datetime.datetime(2020, 2, 28), datetime.datetime(2020, 3, 1), None]
    one = profile(pd.to_datetime(pd.Series(days)))
    assert (one["shape"], one["missing"]) == ("dates", 1)
    assert (one["texts"]["low"], one["texts"]["high"]) == ("2020-02-28", "2020-03-01")
    assert one["high"] - one["low"] == 2


def test_first_rows():
    table = pd.DataFrame({"a": [1.0, np.nan, 2.5], "b": ["x" * 500, "y\nz", None]})
    schema = Schema.guess(table).override(a={"labels": {1: "one"}})
    rows = preview_rows(table, schema, 2)
    assert rows[0][0] == "1 (one)"
    assert len(rows[0][1]) == 60
    assert rows[1] == ["", "y z"]


def test_numbers_for_readers():
    numbers = (0, -1.5, 999.9, 9999.4, 9999.9, 12_345, 999_950, 9.99e14)
    texts = ["0", "−1.5", "1,000", "9,999", "10 k", "12.3 k", "1 m", "999 T"]
    assert [short_number(x) for x in numbers] == texts
    assert per_cent(0.0001) == "< 0.1 %"
    assert date_text(1e9) == "?"
    assert clean("a\u202eb") == "ab"


# Odd columns.

ODD: dict[str, Any] = {
    "all missing": [np.nan] * 4,
    "all None": [None] * 4,
    "constant": [2.5] * 4,
    "infinite": [np.inf, -np.inf, 0.0, 1.0],
    "only infinite": [np.inf] * 4,
    "huge": [1e308, -1e308, 0.0, 1e308],
    "tiny": [1e-310, 2e-310, 0.0, 3e-310],
    "close": [1e15 + 0.125, 1e15 + 0.25, 1e15, 1e15],
    "mixed": [1, "a", None, 2.5],
    "lists": [[1], [2], [1], None],
    "digits": [2**60 + 1, 2**60 + 2, 2**60 + 3, 5],
    "truths": [True, False, True, True],
    "empty": ["", "", "a", None],
    "hostile": pd.Series([HOSTILE, "b", "b", "\n"], dtype=object),
    "dates": pd.to_datetime(["2020-01-01", None, "1700-01-01", "2200-01-01"]),
    "spans": pd.to_timedelta([1, 2, 3, None], unit="h"),
    "zones": pd.to_datetime(["2020-01-01T10:00Z"] * 4),
    "times": [datetime.time(12), datetime.time(13), None, datetime.time(12)],
    "category": pd.Categorical(["a", "b", "a", None], categories=["b", "a", "c"], ordered=True),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_columns_are_counted(name):
    table = pd.DataFrame({name: pd.Series(ODD[name])})
    for schema in (None, Schema.guess(table) if name != "lists" else None):
        one = profile_columns(table, schema)[0]
        json.dumps(one, allow_nan=False)
        if one["shape"] != "unreadable":
            assert counted(one) == 4
        view = View(table, schema)
        both = compare_columns(view, view, [name])[0]
        json.dumps(both, allow_nan=False)
        assert not both["distance"]
        for other in (name, *list(ODD)[:3]):
            two = pd.DataFrame({name: pd.Series(ODD[name]), "other": pd.Series(ODD[other])})
            pair = compare_pair(View(two), View(two), name, "other")
            json.dumps(pair, allow_nan=False)
    assert len(preview_rows(table)) == 4


def counted(one: dict[str, Any]) -> int:
    if "categories" in one:
        known = sum(c["count"] for c in one["categories"]) + one["others"]["records"]
    else:
        known = sum(one["histogram"]["counts"]) if one["histogram"] else 0
    return int(known + one["missing"] + one["infinite"])


def test_a_column_that_is_not_released():
    before = View(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 3.0]}))
    after = View(pd.DataFrame({"b": [1.0, 3.0]}))
    assert [one["shape"] for one in compare_columns(before, after, ["a", "b"])] == [
        "absent",
        "numbers",
    ]
    assert compare_pair(before, after, "a", "b")["shape"] == "none"


def test_numbers_that_became_categories():
    before = View(pd.DataFrame({"a": [11.5, 12.5, 27.5]}))
    after = View(pd.DataFrame({"a": ["10 to 19", "10 to 19", "20 to 29"]}))
    one = compare_columns(before, after, ["a"])[0]
    assert one["recoded"]
    assert one["distinct"] == [3, 2]


# An independent way.


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(st.floats(allow_nan=True, width=64), st.integers(-50, 50).map(float)),
        min_size=1, max_size=60,
    )
)  # fmt: skip
def test_counts_are_those_of_numpy(values):
    one = profile(np.array(values))
    known = np.array([v for v in values if np.isfinite(v)])
    assert counted(one) == len(values)
    json.dumps(one, allow_nan=False)
    if not len(known):
        return
    edges, counts = one["histogram"]["edges"], one["histogram"]["counts"]
    assert len(counts) <= 24
    assert edges == sorted(edges)
    assert edges[0] <= known.min()
    assert edges[-1] >= known.max()
    assert one["distinct"] == len(set(known.tolist()))
    for low, high, count in zip(edges[:-2], edges[1:-1], counts):
        assert count == ((known >= low) & (known < high)).sum()
    if np.abs(known).max() < 1e100:
        assert one["quartiles"] == pytest.approx(np.quantile(known, [0.25, 0.5, 0.75]).tolist())
        assert one["mean"] == pytest.approx(known.mean(), abs=1e-9 * np.abs(known).max())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 80), st.integers(1, 80))
def test_comparisons_are_those_of_pandas(seed, n, m):
    rng = np.random.default_rng(seed)

    def table(size: int) -> pd.DataFrame:
        return pd.DataFrame({
            "x": rng.normal(size=size).round(1),
            "y": np.where(rng.random(size) < 0.1, np.nan, rng.lognormal(0, 3, size)),
            "c": rng.choice([*"abcdefghijklmnop"], size),
            "d": rng.choice(["u", "v", None], size),
        })  # fmt: skip

    before, after = table(n), table(m)
    views = View(before), View(after)
    shuffled = View(after.sample(frac=1, random_state=1))
    names = list(before)
    compared = compare_columns(*views, names)
    assert compared == compare_columns(views[0], shuffled, names)
    for one in compared:
        for side, frame in enumerate((before, after)):
            assert one["missing"][side] == frame[one["name"]].isna().sum()
            if "categories" in one:
                counts = frame[one["name"]].value_counts()
                for c in one["categories"]:
                    assert c["counts"][side] == counts.get(c["value"], 0)
                known = sum(c["counts"][side] for c in one["categories"])
                assert known + one["others"]["records"][side] == frame[one["name"]].count()
            elif one["histogram"]:
                assert sum(one["histogram"]["counts"][side]) == frame[one["name"]].count()
    grid = compare_pair(*views, "x", "y")
    if grid["shape"] == "grid":
        for side, frame in enumerate((before, after)):
            both = frame[["x", "y"]].dropna()
            assert np.sum(grid["counts"][side]) == len(both) == grid["n"][side]
            for method in ("pearson", "spearman"):
                ours = grid[method][side]
                if ours is not None:
                    assert ours == pytest.approx(both["x"].corr(both["y"], method=method), abs=1e-6)
    quartiles = compare_pair(*views, "c", "y")
    if quartiles["shape"] == "quartiles":
        for row in quartiles["rows"]:
            own = before.loc[before["c"] == row["text"], "y"].dropna()
            assert row["counts"][0] == len(own)
            if len(own):
                assert row["quartiles"][0] == pytest.approx(
                    own.quantile([0.25, 0.5, 0.75]).tolist()
                )
    shares = compare_pair(*views, "c", "d")
    if shares["shape"] == "shares":
        for side in (0, 1):
            assert np.sum(shares["shares"][side]) == pytest.approx(1 if shares["n"][side] else 0)


def test_the_distance_is_that_of_scipy():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=100).round(1), rng.normal(0.3, size=80).round(1)
    one = compare_columns(View(pd.DataFrame({"a": x})), View(pd.DataFrame({"a": y})), ["a"])[0]
    assert one["distance"] == pytest.approx(ks_2samp(x, y).statistic)
