"""Restoring: every linear rule holds in the release, by the least move, or there is no release."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone

from tessella import Rules
from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    ContradictionError,
    NoWholeSolutionError,
    RefusedError,
    RuleTableError,
    TessellaError,
)
from tessella.masking import (
    IndividualRanking,
    NoiseAddition,
    RankSwapping,
    Restoration,
    Rounding,
    Shuffling,
    TopBottomCoding,
    restore,
)
from tessella.masking import repair as engine
from tests.amounts import few_or_many, try_examples

MASKERS = [
    NoiseAddition(0.2, random_state=1),
    NoiseAddition(0.2, correlated=False, random_state=1),
    NoiseAddition(0.4, keep_moments=True, random_state=1),
    RankSwapping(5, random_state=1),
    Shuffling(0.3, random_state=1),
    IndividualRanking(5),
    Rounding(1000, random=True, random_state=1),
    TopBottomCoding(0.05, bottom=0.05),
]
CENSUS = [
    "PTOTVAL == PEARNVAL + POTHVAL",
    "FEDTAX <= TAXINC",
    "TAXINC <= AGI",
    "PTOTVAL > 0",
    "FEDTAX > 0",
    "FICA > 0",
]
EIA = [
    "TOTREVENUE == RESREVENUE + COMREVENUE + INDREVENUE + OTHREVENUE",
    "TOTSALES == RESSALES + COMSALES + INDSALES + OTHRSALES",
]


# By hand


def test_an_equation_shares_out_what_is_off() -> None:
    """Columns of equal spread; net + tax exceeds gross by 3: each gives a third."""
    spread = [-1.0, 0.0, 1.0]
    original = pd.DataFrame({"net": spread, "tax": spread, "gross": spread})
    masked = pd.DataFrame({"net": [80.0, 1, 2], "tax": [23.0, 1, 2], "gross": [100.0, 2, 4]})
    table, told = restore(masked, "balance: net + tax == gross", original=original)
    np.testing.assert_allclose(table.iloc[0], [79.0, 22.0, 101.0])
    assert table.iloc[1:].equals(masked.iloc[1:])
    assert told.restored == ("balance",)
    assert told.broken == {"balance": 0}
    assert told.moved == 1
    assert told.mean_move == pytest.approx(np.sqrt(3 / (2 / 3)) / 3)
    assert masked["net"].iloc[0] == 80.0


def test_whole_numbers_stay_whole_and_strict_means_the_next() -> None:
    masked = pd.DataFrame({"a": [5, 7, 9], "b": [5, 3, 12]})
    table, _ = restore(
        masked, "a < b\na >= 6", original=pd.DataFrame({"a": [0, 2, 4], "b": [0, 2, 4]})
    )
    assert table.dtypes.tolist() == masked.dtypes.tolist()
    assert table.iloc[0].tolist() == [6, 7]
    assert table.iloc[1].tolist() == [6, 7]
    assert table.iloc[2].tolist() == [9, 12]


def test_decimals_keep_the_rule_to_the_cent() -> None:
    rows = {"net": ["80.01", "10.00"], "tax": ["23.11", "1.50"], "gross": ["100.00", "11.49"]}
    masked = pl.DataFrame(
        {name: [Decimal(x) for x in column] for name, column in rows.items()},
        schema=dict.fromkeys(rows, pl.Decimal(9, 2)),
    )
    table, _ = restore(masked, "net + tax == gross")
    assert table.schema == masked.schema
    assert (table["net"] + table["tax"] == table["gross"]).all()


def test_what_is_not_restored_is_told() -> None:
    masked = pd.DataFrame({"a": [1.0, 5], "b": [2.0, 4], "town": ["x", "y"], "kept": [3.0, 3.0]})
    rules = Rules.parse(
        "order: a <= b\nproduct: a * b == 2\nif a > 3: b > 9\nb in {2, 3}\na <= kept\n"
        "town in {'x'}\na <= mean(a)\nkept == 3"
    )
    table, told = restore(masked, rules, columns=["a", "b"])
    assert told.restored == ("order",)
    reasons = dict(told.not_restored)
    assert "multiplicative" in reasons["product"]
    assert "conditional" in reasons["R3"]
    assert "set" in reasons["R4"]
    assert "'kept'" in reasons["R5"]
    assert "no masked column" in reasons["R6"]
    assert "original" in reasons["R7"]
    assert "no masked column" in reasons["R8"]
    assert (table["a"] <= table["b"]).all()
    assert told.broken["R6"] == 1
    assert "not restored: product" in str(told)
    original = masked.assign(a=[1.0, 2.0])
    table, told = restore(masked, "a <= mean(a)", columns=["a"], original=original)
    assert told.restored == ("R1",)
    assert table["a"].max() <= 1.5


def test_an_allowance_is_used() -> None:
    """Off by 4 where 1 is allowed: moved until it is off by 1."""
    masked = pd.DataFrame({"a": [5.0, 1.0], "b": [1.0, 5.0]})
    table, _ = restore(masked, "a == b ± 1")
    np.testing.assert_allclose(table, [[3.5, 2.5], [2.5, 3.5]])


# The public tables


@pytest.mark.parametrize("masker", MASKERS, ids=lambda m: str(m)[:30])
def test_census_keeps_its_rules(masker: Any, census: Any) -> None:
    from tessella.datasets import load_census

    rules, table = Rules(CENSUS), load_census()
    plain = clone(masker).fit(table)
    fitted = clone(masker).set_params(rules=rules)
    released = fitted.fit_transform(table)
    assert released.dtypes.tolist() == table.dtypes.tolist()
    assert rules.confront(released).all_hold
    assert (released["PTOTVAL"] == released["PEARNVAL"] + released["POTHVAL"]).all()
    assert (released["FEDTAX"] > 0).all()
    assert set(fitted.restoration_.restored) == set(rules.names)
    # The originals keep the rules, so moving to them moves nearer, up to rounding to whole numbers.
    assert fitted.loss_ <= plain.loss_ + 1e-3
    assert len(census) == len(released)


@pytest.mark.parametrize("masker", MASKERS, ids=lambda m: str(m)[:30])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_eia_keeps_its_totals_although_the_original_does_not(
    masker: Any, dtype: str, eia: Any
) -> None:
    from tessella.datasets import load_eia

    rules, table = Rules(EIA), load_eia().astype(dtype)
    assert not rules.confront(table).all_hold
    released = clone(masker).set_params(rules=rules).fit_transform(table)
    assert rules.confront(released).all_hold
    assert len(eia) == len(released)


# An independent way to the same answer


def an_equation_against_the_formula(rows: list[Any], data: Any) -> None:
    a = np.array([data.draw(st.sampled_from([-2.0, -1.0, 1.0, 0.5, 3.0])) for _ in range(3)])
    b = data.draw(st.floats(-50, 50).map(lambda x: round(x, 2)))
    X = np.array(rows)
    s = X.std(axis=0)
    assume((s > 1e-3).all())
    masked = pd.DataFrame(X, columns=["x", "y", "z"])
    table, _ = restore(masked, f"{a[0]}*x + {a[1]}*y + {a[2]}*z == {b}")
    expected = X - np.outer((X @ a - b) / ((s * a) ** 2).sum(), s**2 * a)
    np.testing.assert_allclose(table, expected, atol=1e-6)


@few_or_many(35, 100)
def test_an_equation_against_the_formula(count: int) -> None:
    """v = x - s^2 a (a x - b) / sum (s a)^2."""
    try_examples(
        count,
        an_equation_against_the_formula,
        st.lists(st.tuples(*[st.floats(-100, 100)] * 3), min_size=2, max_size=8),
        st.data(),
    )


def test_inequalities_against_scipy() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 3)) * [1, 5, 20]
    s = X.std(axis=0)
    table, _ = restore(
        pd.DataFrame(X, columns=list("abc")), "a <= b\nb + c <= 4\n-1 <= a\na + b + c >= 0"
    )
    G = np.array([[1, -1, 0], [0, 1, 1], [-1, 0, 0], [-1, -1, -1]], dtype=float)
    h = np.array([0.0, 4.0, 1.0, 0.0])
    for x, v in zip(X, table.to_numpy()):
        found = minimize(
            lambda y, x=x: (((y - x) / s) ** 2).sum(), np.zeros(3), method="SLSQP",
            constraints={"type": "ineq", "fun": lambda y: h - G @ y}, options={"ftol": 1e-14},
        )  # fmt: skip
        assert (((v - x) / s) ** 2).sum() <= found.fun + 1e-6
        assert (G @ v <= h + 1e-9).all()


# Invariants


NAMES = ["x", "y", "z"]


@st.composite
def rule_lines(draw: Any) -> str:
    sides = st.lists(
        st.tuples(st.sampled_from([-2, -1, 1, 2, 3, 0.5]), st.sampled_from(NAMES)),
        min_size=1, max_size=3,
    )  # fmt: skip
    left = " + ".join(f"{a}*{name}" for a, name in draw(sides))
    operator = draw(st.sampled_from(["==", "<=", "<", ">", ">="]))
    return f"{left} {operator} {draw(st.integers(-20, 20))}"


def rules_hold_or_there_is_no_release(
    lines: list[str], rows: list[Any], whole: list[bool], gaps: bool
) -> None:
    rules = Rules(lines)
    masked = pd.DataFrame(rows, columns=NAMES)
    for name, own in zip(NAMES, whole):
        masked[name] = masked[name].astype("Int64" if own else float) if own else masked[name] / 7
    if gaps:
        masked.loc[0, "y"] = pd.NA if whole[1] else np.nan
    refused = False
    try:
        table, told = restore(masked, rules)
    except (ContradictionError, NoWholeSolutionError) as error:
        refused = bool(error.rows)
    if refused:
        return
    assert rules.confront(table).all_hold
    assert table.dtypes.tolist() == masked.dtypes.tolist()
    assert table.isna().equals(masked.isna())
    assert told.restored == rules.names
    again, still = restore(table, rules)
    assert rules.confront(again).all_hold
    if all(whole):  # then nothing is left to rounding
        assert still.moved == 0


@few_or_many(35, 100)
def test_rules_hold_or_there_is_no_release(count: int) -> None:
    try_examples(
        count,
        rules_hold_or_there_is_no_release,
        st.lists(rule_lines(), min_size=1, max_size=4),
        st.lists(st.tuples(*[st.integers(-1000, 1000)] * 3), min_size=2, max_size=6),
        st.lists(st.booleans(), min_size=3, max_size=3),
        st.booleans(),
    )


def test_every_kind_of_table() -> None:
    masked = pd.DataFrame(
        {"a": [5, 1, 4], "b": [1, 3, 2], "town": ["x", "y", "z"]}, index=[7, 8, 9]
    )
    table, _ = restore(masked, "a <= b")
    assert table.index.equals(masked.index)
    assert table["town"].equals(masked["town"])
    from_polars, _ = restore(pl.from_pandas(masked), "a <= b")
    from_arrow, _ = restore(pa.Table.from_pandas(masked, preserve_index=False), "a <= b")
    assert from_polars["a"].to_list() == table["a"].tolist() == from_arrow["a"].to_pylist()
    array, _ = restore(masked[["a", "b"]].to_numpy(), "col(0) <= col(1)")
    assert array.dtype == np.int64
    assert array[:, 0].tolist() == table["a"].tolist()


def test_unsigned_numbers_stay_in_their_dtype() -> None:
    masked = pd.DataFrame(
        {"a": np.array([0, 250], dtype=np.uint8), "b": np.array([9, 3], dtype=np.uint8)}
    )
    table, _ = restore(masked, "a == b + 7")
    assert (table["a"].astype(int) == table["b"].astype(int) + 7).all()
    assert table.dtypes.tolist() == masked.dtypes.tolist()


def test_noise_below_zero_is_brought_back_into_an_unsigned_column() -> None:
    table = pd.DataFrame({"age": np.arange(40, dtype=np.uint8), "n": np.arange(40.0) ** 2})
    with pytest.raises(BadTableError, match="outside of its dtype"):
        NoiseAddition(1.0, random_state=0).fit(table)
    released = NoiseAddition(1.0, rules="age >= 0", random_state=0).fit_transform(table)
    assert released["age"].dtype == np.uint8


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_strict_rules_hold_by_more_than_rounding(size: float) -> None:
    """Whatever the unit: far from zero, rounding is large beside the spread."""
    rng = np.random.default_rng(0)
    X = size * (1e5 + rng.normal(size=(200, 2)))
    rules = Rules.parse("col(0) < col(1)\ncol(1) > 0")
    table, _ = restore(X, rules)
    assert rules.confront(table).all_hold
    assert (table[:, 0] < table[:, 1]).all()
    moved = np.abs(table - X).max()
    assert moved < 6 * size


# A bug once met


def test_terms_that_cancel_count_in_the_rounding_of_a_strict_rule() -> None:
    masked = pd.DataFrame({"y": [0.0, 1 / 7], "z": [0.0, -1 / 7]})
    rules = Rules.parse("-2*y + -2*z + 2*y < 0")
    table, _ = restore(masked, rules)
    assert rules.confront(table).all_hold


def test_a_narrow_open_interval_has_numbers_inside() -> None:
    """Its margin must not be wider than itself."""
    table, _ = restore(pd.DataFrame({"a": [1.0, 2.0, -3.0]}), "0 < a < 1e-12")
    assert ((table["a"] > 0) & (table["a"] < 1e-12)).all()


# Bad input, and what must never come out


def test_contradictions_are_named() -> None:
    masked = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 3.0]})
    with pytest.raises(ContradictionError, match=r"R1: a < b.*R2: b < a"):
        restore(masked, "a < b\nb < a")
    with pytest.raises(ContradictionError, match="R1: a >= 3 and a < 2"):
        restore(masked, "a >= 3 and a < 2")
    with pytest.raises(ContradictionError):
        NoiseAddition(rules="a + b == 3\na + b == 4").fit(masked)
    with pytest.raises(NoWholeSolutionError, match="2"):
        restore(masked.astype(int), "2*a + 4*b == 7")


def test_coarse_floats_are_refused_with_the_reason() -> None:
    masked = pd.DataFrame({"a": [0.1, 0.7], "b": [0.3, 0.9], "c": [0.123, 0.8]}, dtype=np.float32)
    with pytest.raises(BadTableError, match=r"'a' .float32. has too few digits"):
        restore(masked, "a + b == 7*c")


def test_a_broken_promise_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """If moving did nothing, the check of the written table would say so."""
    monkeypatch.setattr(engine, "_nearest", lambda X, *_: X)
    with pytest.raises(RefusedError, match=r"R1: a <= b \(1 records\)"):
        restore(pd.DataFrame({"a": [3.0, 1.0], "b": [1.0, 2.0]}), "a <= b")


def test_bad_input() -> None:
    masked = pd.DataFrame({"a": [3.0, 1.0], "b": [1.0, 2.0]})
    with pytest.raises(BadOptionError, match="rules"):
        restore(masked, None)
    with pytest.raises(RuleTableError, match=r"'c'"):
        restore(masked, "a <= c")
    with pytest.raises(BadTableError, match="2 records and the original 1"):
        restore(masked, "a <= b", original=masked.iloc[:1])
    with pytest.raises(TessellaError, match="'aa'"):
        restore(masked, "a <= b", columns=["aa"])


def test_a_restoration_is_told_in_words() -> None:
    told = Restoration(restored=("x",), not_restored={}, broken={"x": 0}, moved=3, mean_move=0.25)
    assert str(told).startswith("1 of 1 rules restored; 3 records moved; all records by 0.25 ")


def test_a_missing_cell_is_no_zero():
    """Records that differ in a missing cell and a 0 were taken for equal ones."""
    table = pd.DataFrame({"x": [1.0, 1.0], "y": [np.nan, 0.0]})
    restored, _ = restore(table, ["x == 0"], original=table)
    assert restored["x"].tolist() == [0.0, 0.0]
    assert restored["y"].isna().tolist() == [True, False]
