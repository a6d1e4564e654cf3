"""Rare patterns of missing cells: suppressed until k records lack the same, with as little lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import Schema, Study
from tessella.exceptions import (
    BadOptionError,
    EmptiedColumnWarning,
    GroupSizeError,
    UnknownColumnError,
)
from tessella.frame import Table
from tessella.release.steps import count_rare, suppress


def run(frame: Any, k: int, **options: Any) -> tuple[Any, int]:
    table = Table.read(frame)
    released, _, lost = suppress(table, Schema.guess(frame), k=k, **options)
    return released, lost.total


def test_by_hand() -> None:
    """Four lack b, one lacks a: the one joins them, and a cell is lost in each of the four."""
    nan = np.nan
    frame = pd.DataFrame(
        {"a": [1.0, 2, 3, 4, nan, 6, 7, 8], "b": [nan, nan, nan, nan, 5, 6, 7, 8.0]}
    )
    # To be complete is impossible for it; so it lacks a and b with nobody, or they join: by hand,
    # joining the three complete records costs 3 cells, joining the four costs 4 + 1.
    released, lost = run(frame, 2)
    assert lost == 3
    assert released["a"].isna().tolist() == [False] * 4 + [True] * 4
    assert released["b"].isna().tolist() == [True] * 4 + [False] * 4


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from(["pandas", "polars", "arrow"]))
def test_every_pattern_has_k(seed: int, k: int, library: str) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(k, 40))
    frame = pd.DataFrame(random.integers(0, 9, (n, 4)), columns=list("abcd")).astype("Int64")
    frame = frame.mask(random.random((n, 4)) < random.random() * 0.5)
    frame["t"] = random.choice(["x", "y", None], n)
    given_frame: Any = {
        "pandas": lambda f: f, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas
    }[library](frame)  # fmt: skip
    names = list(frame)
    released, lost = run(given_frame, k, columns=names)
    assert type(released) is type(given_frame)
    after = released if library == "pandas" else released.to_pandas()
    gone, was = after.isna().to_numpy(), frame.isna().to_numpy()
    assert (gone | ~was).all()  # nothing is invented
    assert lost == int((gone & ~was).sum())
    for name in names:
        kept = ~gone[:, names.index(name)]
        assert after[name][kept].tolist() == frame[name][kept].tolist()
    sizes = pd.DataFrame(gone).value_counts()
    assert sizes.min() >= k
    table = Table.read(released)
    assert count_rare(table, Schema.guess(given_frame), k, names) == 0


def test_codes_are_copied_not_nulls() -> None:
    frame = pd.DataFrame({"a": [1, -9, -9, 4, 5], "b": [1, 2, 3, -8, 5]})
    schema = Schema.guess(frame).override(a={"missing": [-9]}, b={"missing": [-8]})
    released, _, lost = suppress(Table.read(frame), schema, k=2)
    assert lost.total == 2  # the two complete ones join the one that lacks b
    assert released["b"].tolist() == [-8, 2, 3, -8, -8]
    assert released["a"].tolist() == frame["a"].tolist()
    assert released.dtypes.tolist() == frame.dtypes.tolist()


def test_it_is_told_where_cells_go() -> None:
    """A bug once met: one gap emptied a whole column, and no word was said of it."""
    frame = pd.DataFrame({"a": np.arange(9.0), "b": [np.nan, *range(8)], "c": np.arange(9.0) ** 2})
    with pytest.warns(EmptiedColumnWarning, match="All values of 'b' are suppressed"):
        study = Study(frame, random_state=0).do("suppress", k=3)
    assert "8 cells suppressed (b 8)." in str(study.protocol)
    frame.loc[1:2, "b"] = np.nan  # three lack it now: nothing needs to go, and nobody is warned
    assert "0 cells suppressed." in str(Study(frame, random_state=0).do("suppress", k=3).protocol)


def test_nothing_to_do_is_nothing_done() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    released, lost = run(frame, 2)
    assert lost == 0
    assert released is frame


def test_in_a_study() -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(80, 3)), columns=list("abc"))
    frame = frame.mask(random.random((80, 3)) < 0.08)
    with pytest.raises(GroupSizeError):
        Study(frame, random_state=0).do("protect", k=5)
    study = Study(frame, random_state=0).do("suppress", k=5).do("protect", k=5)
    assert "cells suppressed" in str(study.protocol)
    assert study.release().audit.passed


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, BadOptionError),
        ({"k": 1}, GroupSizeError),
        ({"k": 99}, GroupSizeError),
        ({"k": 2, "columns": ["z"]}, UnknownColumnError),
        ({"k": 2, "columns": []}, BadOptionError),
    ],
)
def test_bad_input(options: dict[str, Any], error: type[Exception]) -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5]})
    with pytest.raises(error):
        Study(frame).do("suppress", **options)


@pytest.mark.parametrize("seed", range(12))
def test_patterns_are_those_of_k_units(seed):
    """A bug once met: a firm of two patterns was counted twice when these became one."""
    chance = np.random.default_rng(seed)
    n, k = int(chance.integers(30, 90)), int(chance.integers(2, 6))
    frame = pd.DataFrame({"firm": chance.integers(0, 12, n)})
    for name in "abcd":
        frame[name] = np.where(chance.random(n) < 0.3, np.nan, chance.normal(size=n))
    schema = Schema.guess(frame).override(firm={"role": "unit"})
    released = suppress(Table.read(frame), schema, k=k)[0]
    assert count_rare(Table.read(released), schema, k) == 0
    lacks = released[list("abcd")].isna()
    assert (frame["firm"].groupby([lacks[name] for name in "abcd"]).nunique() >= k).all()
    assert (lacks | frame[list("abcd")].notna()).all().all()  # what was missing stays missing
