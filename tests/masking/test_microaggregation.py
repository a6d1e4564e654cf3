"""Microaggregation: k is kept in what is released, and nothing happens in silence."""

from __future__ import annotations

import doctest
import pickle
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn.base import clone

from tessella.exceptions import (
    BadTableError,
    BrokenPromiseError,
    GroupSizeError,
    SmallJointGroupsWarning,
    UnknownOptionError,
)
from tessella.grouping import Search
from tessella.masking.engine import METHODS
from tessella.masking.microaggregation import Microaggregation
from tessella.schema import Schema
from tests.amounts import few_or_many, try_examples

from .simple import SIX, Slices, counts, masker


class Liar(Slices):
    """Claims groups of k, and changes its mind afterwards."""

    def _finish(self, *given: Any) -> None:
        super()._finish(*given)
        self.labels_[0] = (self.labels_[0] + 1) % self.n_groups_


# By hand


def test_six_records() -> None:
    """Groups {0, 2, 4} and {1, 3, 5}: ages 22 and 63, incomes 2 and 8.

    SSE of the ages 1 + 1 + 0 and 4 + 1 + 9, in all 16; of the incomes 1 + 1 + 0 and 0 + 1 + 1, in
    all 4. SST of the incomes, whose mean is 5: 16 + 9 + 4 + 16 + 9 + 4 = 58.
    """
    table = pd.DataFrame(SIX)
    mask = masker(3)
    released = mask.fit_transform(table)
    assert released.to_dict("list") == {
        "age": [22, 63, 22, 63, 22, 63],
        "income": [2.0, 8.0, 2.0, 8.0, 2.0, 8.0],
    }
    assert released.dtypes.tolist() == table.dtypes.tolist()
    assert mask.labels_.tolist() == [0, 1, 0, 1, 0, 1]
    assert mask.joint_k_ == 3
    assert mask.joint_group_sizes_.tolist() == [3, 3]
    ages = np.array(SIX["age"])
    age_loss = 100 * 16 / ((ages - ages.mean()) ** 2).sum()
    assert mask.column_loss_ == pytest.approx({"age": age_loss, "income": 100 * 4 / 58})
    assert mask.loss_ == pytest.approx(
        (age_loss + 100 * 4 / 58) / 2
    )  # z-scored columns weigh alike
    assert mask.blocks_ == [["age", "income"]]
    assert mask.untouched_ == []
    assert not hasattr(mask, "transform")


def test_medians_by_hand() -> None:
    """Groups of four: the median of an even group is between its two middle values."""
    table = np.array([[1.0], [2.0], [4.0], [100.0], [200.0], [201.0], [205.0], [900.0]])
    released = masker(4, aggregate="median").fit_transform(table)
    assert released[:, 0].tolist() == [3.0] * 4 + [203.0] * 4
    weights = [1, 1, 5, 1, 0.1, 0.1, 0.1, 0.1]  # 4.0 has more than half; equal tenths are even
    released = masker(4, aggregate="median").fit_transform(table, weights=weights)
    assert released[:, 0].tolist() == [4.0] * 4 + [203.0] * 4


def test_weighted_means_by_hand() -> None:
    table = pd.DataFrame({"x": [1.0, 2.0, 10.0, 20.0], "w": [3.0, 1.0, 1.0, 1.0]})
    mask = masker(2, weights="w", round_integers=False)
    released = mask.fit_transform(table)
    assert released["x"].tolist() == [1.25, 1.25, 15.0, 15.0]
    assert released["w"].tolist() == table["w"].tolist()
    assert mask.untouched_ == ["w"]
    same = masker(2, round_integers=False).fit_transform(table[["x"]], weights=table["w"])
    assert same["x"].tolist() == released["x"].tolist()


def test_blocks_by_hand() -> None:
    """Sorted one way in a, the other way round in pairs in b: each pair of groups meets once."""
    table = pd.DataFrame({"a": [0.0, 1.0, 10.0, 11.0], "b": [0.0, 10.0, 1.0, 11.0]})
    mask = masker(2, blocks=[["a"], ["b"]], round_integers=False)
    with pytest.warns(
        SmallJointGroupsWarning, match=r"k=2 holds within each block.*4 of 4 records"
    ):
        released = mask.fit_transform(table)
    assert released["a"].tolist() == [0.5, 0.5, 10.5, 10.5]
    assert released["b"].tolist() == [0.5, 10.5, 0.5, 10.5]
    assert mask.labels_.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert mask.joint_k_ == 1
    assert mask.joint_group_sizes_.tolist() == [1, 1, 1, 1]
    assert len(mask.groupings_) == 2


def test_blocks_that_agree_keep_k_and_do_not_warn() -> None:
    table = np.column_stack([np.arange(6.0), np.arange(6.0) * 2])
    mask = masker(3, blocks=1)
    mask.fit(table)
    assert mask.joint_k_ == 3
    assert mask.labels_.shape == (6, 2)


def test_whole_numbers_stay_whole_and_the_loss_is_that_of_the_release() -> None:
    table = pd.DataFrame({"n": pd.Series([1, 2, 3, 4], dtype="int8")})
    mask = masker(2)
    released = mask.fit_transform(table)
    assert released["n"].tolist() == [2, 2, 4, 4]  # 1.5 and 3.5, half to even
    assert released["n"].dtype == np.int8
    assert mask.loss_ == pytest.approx(100 * 2 / 5)
    exact = masker(2, round_integers=False)
    released = exact.fit_transform(table)
    assert released["n"].tolist() == [1.5, 1.5, 3.5, 3.5]
    assert released["n"].dtype == np.float64
    assert exact.loss_ == pytest.approx(100 * 1 / 5)


def test_money_stays_money() -> None:
    cents = [Decimal("0.10"), Decimal("0.15"), Decimal("7.00"), Decimal("7.01")]
    released = masker(2).fit_transform(pa.table({"m": cents}))
    assert [str(value) for value in released["m"].to_pylist()] == ["0.12", "0.12", "7.00", "7.00"]


def test_booleans_only_when_asked() -> None:
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 9.0, 9.5, 9.9], "b": [True, True, False] * 2})
    with pytest.raises(BadTableError, match=r"'b' \(boolean\)"):
        masker(3).fit(table)
    released = masker(3, columns=["x", "b"], scale={"x": 0.01, "b": 1}).fit_transform(table)
    assert released["b"].dtype == bool
    assert released["b"].tolist() == [True] * 6


# Invariants

tables = st.tuples(st.integers(6, 24), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-1e6, 1e6) | st.just(0.0))
)
ks = st.integers(2, 3)


@given(tables, ks, st.sampled_from(["mean", "median"]), st.integers(1, 4))
def test_k_holds_in_each_block_of_the_release(
    table: NDArray[np.float64], k: int, aggregate: str, width: int
) -> None:
    mask = masker(k, aggregate=aggregate, blocks=width)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallJointGroupsWarning)
        released = mask.fit_transform(table)
    for block in mask.blocks_:
        assert counts(released[:, block]).min() >= k
    joint = counts(released)
    assert mask.joint_k_ == joint.min()
    assert sorted(np.repeat(mask.joint_group_sizes_, mask.joint_group_sizes_)) == sorted(joint)
    assert (released >= table.min(axis=0)).all()
    assert (released <= table.max(axis=0)).all()
    assert mask.loss_ >= 0


@given(tables, ks, st.data())
def test_means_are_preserved(table: NDArray[np.float64], k: int, data: Any) -> None:
    weights = data.draw(arrays(np.float64, len(table), elements=st.floats(0.01, 100)))
    released = masker(k, round_integers=False).fit_transform(table, weights=weights)
    size = np.abs(table).max(axis=0) + 1e-300
    np.testing.assert_allclose(
        np.average(released, axis=0, weights=weights) / size,
        np.average(table, axis=0, weights=weights) / size,
        rtol=0, atol=1e-9,
    )  # fmt: skip


@given(tables, ks, st.data())
def test_k_holds_in_each_stratum_or_the_strata_are_refused(
    table: NDArray[np.float64], k: int, data: Any
) -> None:
    strata = np.where(data.draw(arrays(np.bool_, len(table))), "a", "b")
    mask = masker(k)
    if min(np.unique(strata, return_counts=True)[1]) < k:
        with pytest.raises(GroupSizeError, match="strata"):
            mask.fit(table, strata=strata)
        return
    released = mask.fit_transform(table, strata=strata)
    assert counts(released, strata).min() >= k
    for name in "ab":
        assert set(mask.labels_[strata == name]).isdisjoint(mask.labels_[strata != name])


@settings(max_examples=80)
@given(tables, ks, st.integers(1, 4), st.data())
def test_k_holds_with_missing_cells_or_the_patterns_are_refused(
    table: NDArray[np.float64], k: int, width: int, data: Any
) -> None:
    lacks = data.draw(arrays(np.bool_, table.shape, elements=st.booleans(), fill=st.just(False)))
    rare = data.draw(st.booleans())
    if rare:  # a column lacks its first half, so that patterns are large enough to be kept
        lacks = np.zeros_like(lacks)
        lacks[: len(table) // 2, 0] = True
    holes = np.where(lacks, np.nan, table)
    mask = masker(k, on_missing="pattern", blocks=width)
    patterns = [counts(lacks[:, j : j + width]) for j in range(0, table.shape[1], width)]
    if min(pattern.min() for pattern in patterns) < k:
        with pytest.raises(GroupSizeError, match="missing patterns"):
            mask.fit(holes)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallJointGroupsWarning)
        released = mask.fit_transform(holes)
    np.testing.assert_array_equal(np.isnan(released), lacks)
    for block in mask.blocks_:
        assert counts(released[:, block]).min() >= k
    seen = ~lacks
    for j in range(table.shape[1]):
        whole = (
            table[seen[:, j], j] % 1 == 0
        ).all()  # such a column stays whole: means are rounded
        if seen[:, j].any() and not whole:
            assert released[seen[:, j], j].sum() == pytest.approx(
                table[seen[:, j], j].sum(), rel=1e-9, abs=1e-9 * np.abs(table[:, j]).sum() + 1e-300
            )


def the_unit_of_measurement_does_not_matter(
    table: NDArray[np.float64], scale: str, power: int
) -> None:
    assume((np.ptp(table, axis=0) > 1e-3).all())
    # Whole ones stay whole, and 9999 may be taken for a code.
    real = {name: {"kind": "continuous", "missing": ()} for name in range(table.shape[1])}
    schema = Schema.guess(table).override(real)
    plain, other = (masker(2, scale=scale, schema=schema) for _ in range(2))
    plain.fit(table)
    other.fit(table * 2.0**power)
    assert plain.labels_.tolist() == other.labels_.tolist()
    assert plain.loss_ == pytest.approx(other.loss_, rel=1e-9, abs=1e-9)


@few_or_many(35, 100)
def test_the_unit_of_measurement_does_not_matter(count: int) -> None:
    try_examples(
        count,
        the_unit_of_measurement_does_not_matter,
        tables,
        st.sampled_from(["zscore", "range"]),
        st.integers(-3, 3),
    )


def test_ties_in_large_numbers() -> None:
    random = np.random.default_rng(0)
    table = np.where(random.random((300, 4)) < 0.9, 0, random.integers(0, 4, (300, 4)))
    mask = masker(5)
    released = mask.fit_transform(table)
    assert released.dtype == table.dtype
    assert counts(released.astype(float)).min() >= 5


def test_constant_columns_carry_no_distance() -> None:
    random = np.random.default_rng(0)
    table = random.normal(size=(20, 2))
    padded = np.column_stack([table, np.full(20, 0.1), np.full(20, 1e9)])
    alone, together = masker(3), masker(3)
    released = together.fit_transform(padded)
    np.testing.assert_array_equal(alone.fit_transform(table), released[:, :2])
    np.testing.assert_array_equal(released[:, 2:], padded[:, 2:])
    assert alone.loss_ == pytest.approx(together.loss_)
    assert together.column_loss_[2] == 0
    flat = masker(3)
    flat.fit(padded[:, 2:])
    assert flat.loss_ == 0


# An independent way to the same answer


def test_all_libraries_give_the_same_numbers() -> None:
    random = np.random.default_rng(1)
    columns = {
        "x": random.lognormal(size=60),
        "n": random.integers(0, 50, 60),
        "region": random.choice(["north", "south"], 60).tolist(),
        "w": random.uniform(1, 3, 60),
    }
    columns["x"][:20] = np.nan
    wishes = {"on_missing": "pattern", "strata": "region", "weights": "w", "aggregate": "median"}
    pandas = masker(3, **wishes).fit_transform(pd.DataFrame(columns))
    hidden = {**columns, "x": [None if np.isnan(x) else x for x in columns["x"]]}
    for make in (pl.DataFrame, pa.table):
        other = masker(3, **wishes).fit_transform(make(hidden))
        assert type(other) is type(make(hidden))
        for name in ("x", "n", "w"):
            np.testing.assert_array_equal(
                np.array(other[name].to_numpy(), dtype=float), pandas[name].to_numpy(dtype=float)
            )
    array = np.column_stack([columns["x"], columns["n"]])
    other = masker(3, on_missing="pattern", aggregate="median").fit_transform(
        array, strata=columns["region"], weights=columns["w"]
    )
    np.testing.assert_array_equal(other[:, 0], pandas["x"])
    np.testing.assert_array_equal(np.rint(other[:, 1]), pandas["n"])


def test_the_loss_is_that_of_the_definition() -> None:
    random = np.random.default_rng(2)
    table, weights = random.lognormal(size=(50, 3)), random.uniform(0.5, 2, 50)
    units = {0: 2.0, 1: 0.5, 2: 10.0}
    for scale in ("zscore", "range", None, units):
        mask = masker(4, scale=scale)
        released = mask.fit_transform(table, weights=weights)
        centre = np.average(table, axis=0, weights=weights)
        unit = {
            "zscore": np.sqrt(np.average((table - centre) ** 2, axis=0, weights=weights)),
            "range": np.ptp(table, axis=0),
            None: np.ones(3),
        }[scale] if not isinstance(scale, dict) else np.array(list(scale.values()))  # fmt: skip
        lost = (weights[:, None] * ((table - released) / unit) ** 2).sum(axis=0)
        total = (weights[:, None] * ((table - centre) / unit) ** 2).sum(axis=0)
        assert mask.loss_ == pytest.approx(100 * lost.sum() / total.sum())
        assert list(mask.column_loss_.values()) == pytest.approx(list(100 * lost / total))
        assert lost.sum() == pytest.approx(mask.groupings_[0].inertia_)


# What is released is what is counted


def test_a_grouping_that_breaks_its_promise_is_caught() -> None:
    with pytest.raises(BrokenPromiseError, match=r"withheld"):
        masker(2, grouping=Liar()).fit_transform(np.arange(8.0).reshape(-1, 1))


def test_a_saved_masker_holds_no_record() -> None:
    random = np.random.default_rng(3)
    table = pd.DataFrame(random.normal(size=(40, 3)), columns=["a", "b", "c"])
    strata, weights = np.repeat([111.25, 222.5], 20), random.uniform(1, 2, 40)
    mask = masker(4)
    mask.fit(table, strata=strata, weights=weights)
    saved = pickle.dumps(mask)
    scaled = (table - np.average(table, axis=0, weights=weights)) / table.std()
    for original in (table.to_numpy(), scaled.to_numpy(), weights, strata):
        for value in original.ravel()[:60]:
            assert np.float64(value).tobytes() not in saved
    again = pickle.loads(saved)
    assert not hasattr(again, "labels_")  # who shares a group with whom is confidential
    assert again.loss_ == mask.loss_
    again.fit(table, strata=strata, weights=weights)
    assert again.labels_.tolist() == mask.labels_.tolist()
    named = masker(4, columns=["a", "b"], weights=None)
    named.fit(table)
    assert pickle.loads(pickle.dumps(named)).fit(table).loss_ == named.loss_


def test_missing_cells_of_different_meaning_are_told_apart() -> None:
    """NaN, null and each missing code are visible in the release, so each must be shared by k."""
    table = pl.DataFrame({"x": [1.0, 2.0, None, None, float("nan"), -9.0, -9.0, 7.0]})
    schema = Schema({"x": {"kind": "continuous", "missing": [-9]}})
    with pytest.raises(GroupSizeError, match=r"1 of the missing patterns.*'x' \(as NaN\): 1"):
        masker(2, on_missing="pattern", schema=schema).fit(table)
    enough = table.filter(~pl.col("x").is_nan().fill_null(False))
    released = masker(2, on_missing="pattern", schema=schema).fit_transform(enough)
    assert released["x"].to_list() == [10 / 3, 10 / 3, None, None, -9.0, -9.0, 10 / 3]


def test_a_mean_may_not_look_like_a_missing_code() -> None:
    schema = Schema({"x": {"kind": "continuous", "missing": [-9]}})
    table = pd.DataFrame({"x": [-8.0, -10.0, -9.0, -9.0, 3.0, 4.0]})
    with pytest.raises(BadTableError, match=r"equals its missing code -9"):
        masker(2, on_missing="pattern", schema=schema).fit(table)


# Every method


@pytest.mark.filterwarnings("ignore::tessella.exceptions.SmallJointGroupsWarning")
@pytest.mark.parametrize("method", METHODS)
def test_methods_by_name(method: str) -> None:
    table = np.random.default_rng(5).lognormal(size=(60, 3))
    table[:25] = np.round(table[:25])
    strata = [0] * 30 + [1] * 30
    wishes = {"grouping": method, "random_state": 7}
    mask = Microaggregation(4, **wishes, blocks=1 if method == "univariate" else None)
    released = mask.fit_transform(table, strata=strata)
    for block in mask.blocks_:
        assert counts(released[:, block], np.array(strata)).min() >= 4
    np.testing.assert_array_equal(clone(mask).fit_transform(table, strata=strata), released)
    saved = pickle.dumps(mask)
    scaled = (table - table.mean(axis=0)) / table.std(axis=0)
    for original in (table[25:], scaled[25:]):
        assert not [x for x in original.ravel() if np.float64(x).tobytes() in saved]


def test_univariate_wants_blocks_of_one() -> None:
    with pytest.raises(BadTableError, match=r"UnivariateOptimal groups one column.*blocks=1"):
        Microaggregation(2, grouping="univariate").fit(pd.DataFrame(SIX))


def test_options_of_a_method() -> None:
    table = np.random.default_rng(5).lognormal(size=(40, 2))
    by_name = Microaggregation(3, options={"effort": "quick"}, random_state=1).fit(table)
    assert by_name.groupings_[0].effort == "quick"
    given = Microaggregation(3, grouping=Search(effort="quick"), random_state=1).fit(table)
    assert given.labels_.tolist() == by_name.labels_.tolist()
    with pytest.raises(UnknownOptionError, match=r"'efort' is not known.*'effort'"):
        Microaggregation(3, options={"efort": "quick"}).fit(table)


@pytest.mark.parametrize(
    ("name", "losses"),
    [("tarragona", [16.9326, 22.4619, 33.1929]), ("census", [5.6922, 9.0884, 14.1559])],
)
def test_mdav_through_the_masker(
    name: str, losses: list[float], request: pytest.FixtureRequest
) -> None:
    """The published losses, from the released table."""
    table = request.getfixturevalue(name)
    for k, loss in zip([3, 5, 10], losses):
        mask = Microaggregation(k, grouping="mdav", round_integers=False).fit(table)
        assert mask.loss_ == pytest.approx(loss, abs=5e-5)


# The user's page


def test_the_page_does_what_it_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "microaggregation.md"
    ran = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert ran.attempted > 20
    assert ran.failed == 0
