"""PRAM: categories change by the chances that are told, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import BadOptionError, BadTableError, UnknownColumnError
from tessella.masking import PRAM
from tessella.schema import Schema


def towns(n: int = 20_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    town = rng.choice(["Reus", "Valls", "Salou", "Falset"], n, p=[0.6, 0.3, 0.08, 0.02])
    return pd.DataFrame({"town": town})


def as_array(chances: dict[str, dict[str, float]], names: list[str]) -> Any:
    return np.array([[chances[i].get(j, 0.0) for j in names] for i in names])


# By hand


def test_a_sure_exchange() -> None:
    table = pd.DataFrame({"sex": ["f", "m", "f", None], "n": [1, 2, 3, 4]})
    swap = {"sex": {"f": {"m": 1.0}, "m": {"f": 1}}}
    masker = PRAM(matrix=swap, columns=["sex"], random_state=0)
    released = masker.fit_transform(table)
    assert released["sex"].tolist()[:3] == ["m", "f", "m"]
    assert pd.isna(released["sex"].iloc[3])
    assert released["n"].tolist() == [1, 2, 3, 4]
    assert masker.changed_ == {"sex": 1.0}
    assert masker.untouched_ == ["n"]
    assert not hasattr(masker, "transform")


def test_invariant_chances_of_two_categories() -> None:
    """t = (3/4, 1/4), P = ((.8, .2), (.2, .8)): tP = (.65, .35), and R = PQ.

    Q = ((.6/.65, .05/.65), (.15/.35, .2/.35)).
    """
    table = pd.DataFrame({"x": ["a", "a", "a", "b"]})
    masker = PRAM(0.8, invariant=True, random_state=0).fit(table)
    P = np.array([[0.8, 0.2], [0.2, 0.8]])
    Q = np.array([[0.6 / 0.65, 0.05 / 0.65], [0.15 / 0.35, 0.2 / 0.35]])
    R = as_array(masker.matrix_["x"], ["a", "b"])
    np.testing.assert_allclose(R, P @ Q)
    np.testing.assert_allclose([0.75, 0.25] @ R, [0.75, 0.25])


# Statistics: a count of n records with chance q has deviation sqrt(n q (1 - q)); five of these.


@pytest.mark.parametrize("invariant", [False, True])
def test_frequencies_of_changes_are_the_chances(invariant: bool) -> None:
    table = towns()
    masker = PRAM(0.7, invariant=invariant, random_state=1)
    released = masker.fit_transform(table)
    for origin, row in masker.matrix_["town"].items():
        mine = released.loc[table["town"] == origin, "town"]
        assert sum(row.values()) == pytest.approx(1.0)
        for goal in ("Reus", "Valls", "Salou", "Falset"):
            q = row.get(goal, 0.0)
            expected, deviation = len(mine) * q, np.sqrt(len(mine) * q * (1 - q))
            assert abs((mine == goal).sum() - expected) <= 5 * deviation + 1e-9
    if invariant:
        before, after = table["town"].value_counts(), released["town"].value_counts()
        # Each count is a sum of n chances with variance at most n / 4.
        assert (after - before).abs().max() < 5 * np.sqrt(len(table) * 0.25)


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=60),
    st.floats(0, 1),
    st.lists(st.floats(0.1, 9), min_size=60, max_size=60),
)
def test_invariant_chances_keep_weighted_frequencies(
    codes: list[int], p: float, weights: list[float]
) -> None:
    table = pd.DataFrame({"x": [f"c{code}" for code in codes]})
    w = np.array(weights[: len(codes)])
    masker = PRAM(p, invariant=True, random_state=0).fit(table, weights=w)
    names = sorted(set(table["x"]))
    R = as_array(masker.matrix_["x"], names)
    t = np.array([w[table["x"] == name].sum() for name in names])
    np.testing.assert_allclose(R.sum(axis=1), 1.0)
    np.testing.assert_allclose(t @ R, t, rtol=1e-9)
    assert (R >= 0).all()


# Invariants


@given(
    st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=30),
    st.floats(0, 1),
    st.integers(0, 2**31 - 1),
)
def test_no_new_categories_and_missing_stays(values: list[Any], p: float, seed: int) -> None:
    table = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    released = PRAM(p, random_state=seed).fit_transform(table)
    assert released["x"].isna().equals(table["x"].isna())
    assert set(released["x"].dropna()) <= set(table["x"].dropna())


def test_every_kind_of_table_and_column() -> None:
    table = towns(300)
    table["size"] = pd.Categorical(["s", "m", "l"] * 100, ["s", "m", "l", "xl"], ordered=True)
    table["flag"] = [True, False] * 150
    table["code"] = np.array([1, 2, 7] * 100, dtype=np.int16)
    table.index = table.index + 1000
    names = list(table.columns)
    masker = PRAM(0.5, columns=names, random_state=2)
    released = masker.fit_transform(table)
    assert released.dtypes.tolist() == table.dtypes.tolist()
    assert released.index.equals(table.index)
    assert all(0.2 < share < 0.8 for share in masker.changed_.values())
    plain = table.reset_index(drop=True)
    from_polars = PRAM(0.5, columns=names, random_state=2).fit_transform(pl.from_pandas(plain))
    assert from_polars.schema == pl.from_pandas(plain).schema
    arrow = pa.Table.from_pandas(plain)
    from_arrow = PRAM(0.5, columns=names, random_state=2).fit_transform(arrow)
    assert from_arrow.schema == arrow.schema
    for name in names:
        assert from_polars[name].to_list() == released[name].tolist()
        assert from_arrow[name].to_pylist() == released[name].tolist()
    X = np.array([[1, 5], [2, 6], [3, 7]] * 30)
    Y = PRAM(0.2, columns=[0], random_state=1).fit_transform(X)
    assert Y.dtype == X.dtype
    assert set(Y[:, 0]) == {1, 2, 3}
    assert (Y[:, 1] == X[:, 1]).all()
    assert (X[:, 0] == np.array([1, 2, 3] * 30)).all()


def test_strata_have_their_own_categories() -> None:
    table = pd.DataFrame({"x": ["a", "b"] * 50 + ["c", "d"] * 50, "g": ["u"] * 100 + ["v"] * 100})
    masker = PRAM(0.5, strata="g", random_state=0)
    released = masker.fit_transform(table)
    assert set(released["x"][:100]) == {"a", "b"}
    assert set(released["x"][100:]) == {"c", "d"}
    assert masker.strata_ == ["g=u", "g=v"]
    assert [sorted(chances) for chances in masker.matrix_["x"]] == [["a", "b"], ["c", "d"]]


def test_seeds() -> None:
    table = towns(500)
    first, second = (PRAM(0.5, random_state=3).fit_transform(table) for _ in range(2))
    assert first.equals(second)
    assert not PRAM(0.5).fit_transform(table).equals(PRAM(0.5).fit_transform(table))


def test_a_schema_says_roles_kinds_and_missing_codes() -> None:
    table = pd.DataFrame({"town": [1, 2, 9, 1, 2] * 40, "income": np.arange(200.0)})
    schema = Schema.guess(table).override(
        {
            "town": {"kind": "nominal", "role": "quasi-identifier", "missing": (9,)},
            "income": {"role": "confidential", "kind": "continuous"},
        }
    )
    masker = PRAM(0.1, schema=schema, random_state=0)
    released = masker.fit_transform(table)
    assert ((released["town"] == 9) == (table["town"] == 9)).all()
    assert masker.columns_ == ["town"]
    assert sorted(masker.matrix_["town"]) == ["1", "2"]


def test_rules_are_counted_not_restored() -> None:
    table = pd.DataFrame({"sex": ["f", "m"] * 50, "births": [2, 0] * 50})
    masker = PRAM(0.5, columns=["sex"], rules="if sex == 'm': births == 0", random_state=0)
    released = masker.fit_transform(table)
    broken = ((released["sex"] == "m") & (released["births"] > 0)).sum()
    assert masker.restoration_ is not None
    assert masker.restoration_.broken == {"R1": broken}
    assert masker.restoration_.restored == ()


def test_a_saved_masker_holds_no_record() -> None:
    table = towns(50)
    masker = PRAM(0.5).fit(table, weights=np.arange(1.0, 51.0))
    assert not any(
        isinstance(held, np.ndarray) and len(held) == 50 for held in vars(masker).values()
    )
    with pytest.raises(BadOptionError, match="fit_transform"):
        PRAM(0.5, weights=np.arange(1.0, 51.0)).fit(table)


# Bad input


@pytest.mark.parametrize("p", [-0.1, 1.1, np.nan, "0.5", None, True])
def test_bad_chances(p: Any) -> None:
    with pytest.raises(BadOptionError, match=r"^p(=| is not given)"):
        PRAM(p).fit(towns(10))


def test_bad_matrices() -> None:
    table = pd.DataFrame({"x": ["a", "b", "a"]})
    with pytest.raises(BadOptionError, match="matrix"):
        PRAM(matrix=np.eye(2)).fit(table)
    with pytest.raises(BadOptionError, match="matrix"):
        PRAM(matrix={"x": [[1, 0], [0, 1]]}).fit(table)
    with pytest.raises(BadOptionError, match="also a row for 'b'"):
        PRAM(matrix={"x": {"a": {"a": 1}}}).fit(table)
    with pytest.raises(BadOptionError, match="sum to 1"):
        PRAM(matrix={"x": {"a": {"a": 0.5}, "b": {"b": 1}}}).fit(table)
    with pytest.raises(BadOptionError, match="matrix"):
        PRAM(matrix={"x": {"a": {"a": 1.5, "b": -0.5}, "b": {"b": 1}}}).fit(table)
    with pytest.raises(BadOptionError, match=r"'z'.*some record of the table has"):
        PRAM(matrix={"x": {"a": {"z": 1}, "b": {"b": 1}}}).fit(table)
    with pytest.raises(UnknownColumnError, match=r"matrix.*'y'"):
        PRAM(matrix={"y": {}}).fit(table)
    with pytest.raises(UnknownColumnError, match=r"p names.*'y'"):
        PRAM(p={"y": 0.5}).fit(table)
    with pytest.raises(BadOptionError, match="invariant"):
        PRAM(invariant=1).fit(table)  # type: ignore[arg-type]


def test_too_many_categories_are_refused() -> None:
    names = pd.DataFrame({"name": [f"person {i}" for i in range(30_000)]})
    with pytest.raises(BadTableError, match="'name' has 30,000 categories"):
        PRAM().fit(names)


def test_a_matrix_may_lead_to_what_another_stratum_has() -> None:
    table = pd.DataFrame({"x": ["a"] * 4 + ["b"] * 4, "g": [1] * 4 + [2] * 4})
    matrix = {"x": {"a": {"b": 1.0}, "b": {"b": 1.0}}}
    released = PRAM(matrix=matrix, strata="g").fit_transform(table)
    assert set(released["x"]) == {"b"}


def test_numbers_are_not_categories_unless_named() -> None:
    table = pd.DataFrame({"x": ["a", "b"], "code": [1, 2], "y": [0.5, 1.5]})
    with pytest.raises(BadTableError, match=r"PRAM masks categories.*'code' \(integer\), 'y'"):
        PRAM().fit(table)
    with pytest.raises(BadTableError, match="'y'"):
        PRAM(columns=["x", "y"]).fit(table)
    PRAM(columns=["x", "code"]).fit(table)
    mixed = pd.DataFrame({"x": pd.Categorical([1, "1", 2])})  # 1 and "1" read as one category
    assert set(PRAM(columns=["x"]).fit(mixed).matrix_["x"]) == {"1", "2"}
