"""What maskers without groups have in common: kinds of tables, missing cells, seeds, refusals."""

from __future__ import annotations

import doctest
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.base import clone

from tessella.exceptions import BadOptionError, BadTableError, RuleSyntaxError, TessellaError
from tessella.grouping.base import SystemChance
from tessella.masking import (
    PRAM,
    IndividualRanking,
    NoiseAddition,
    RankSwapping,
    Rounding,
    Shuffling,
    TopBottomCoding,
)
from tessella.masking.base import normal
from tessella.schema import Schema

MASKERS = [
    NoiseAddition(0.3, random_state=3),
    NoiseAddition(0.3, correlated=False, random_state=3),
    RankSwapping(10, random_state=3),
    IndividualRanking(3),
    IndividualRanking(3, grouping="fixed"),
    Rounding(4, random_state=3),
    Rounding(4, random=True, random_state=3),
    TopBottomCoding(0.2, bottom=0.1),
    TopBottomCoding(0.2, bottom=0.1, replace="mean", k=2),
    Shuffling(random_state=3),
    Shuffling(0.3, random_state=3),
]
RANDOM = [m for m in MASKERS if isinstance(m, NoiseAddition | RankSwapping | Shuffling)] + [
    MASKERS[6]
]


def name_of(masker: Any) -> str:
    return str(masker)[:40]


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": rng.gamma(2.0, 900.0, n).round(2),
            "hours": rng.integers(0, 60, n),
        },
        index=[f"r{i}" for i in range(n)],
    )


every = pytest.mark.parametrize("masker", MASKERS, ids=name_of)


# Invariants


@every
def test_every_kind_of_table_gives_the_same_numbers(masker: Any) -> None:
    table = people()
    before = table.copy()
    released = clone(masker).fit_transform(table)
    pd.testing.assert_frame_equal(table, before)
    assert released.index.equals(table.index)
    assert released.dtypes.tolist() == table.dtypes.tolist()
    assert list(released.columns) == list(table.columns)
    from_polars = clone(masker).fit_transform(pl.from_pandas(table))
    from_arrow = clone(masker).fit_transform(pa.Table.from_pandas(table, preserve_index=False))
    assert from_polars.schema == pl.from_pandas(table).schema
    numbers = released.to_numpy()
    np.testing.assert_array_equal(from_polars.to_numpy(), numbers)
    np.testing.assert_array_equal(from_arrow.to_pandas().to_numpy(), numbers)
    wide = clone(masker).set_params(round_integers=False).fit_transform(table)
    assert set(wide.dtypes.astype(str)) == {"float64"}
    from_numpy = clone(masker).fit_transform(table.to_numpy(dtype=float))
    np.testing.assert_allclose(from_numpy, wide.to_numpy(), rtol=1e-12)


@every
def test_missing_cells_stay_missing_and_others_do_not(masker: Any) -> None:
    table = people().astype({"age": "Int64"})
    table.loc[table.index[:5], "age"] = pd.NA
    table.loc[table.index[3:9], "income"] = np.nan
    released = clone(masker).fit_transform(table)
    pd.testing.assert_frame_equal(released.isna(), table.isna())
    assert released["age"].dtype == "Int64"


@every
def test_missing_codes_stay(masker: Any) -> None:
    table = people().reset_index(drop=True)
    table.loc[:6, "hours"] = -99999
    schema = Schema.guess(table).override(
        {
            "hours": {"role": "quasi-identifier", "kind": "integer", "missing": (-99999,)},
            "age": {"role": "quasi-identifier", "kind": "integer"},
            "income": {"role": "quasi-identifier", "kind": "continuous"},
        }
    )
    released = clone(masker).set_params(schema=schema).fit_transform(table)
    assert ((released["hours"] == -99999) == (table["hours"] == -99999)).all()


@every
def test_other_columns_are_released_as_they_are(masker: Any) -> None:
    table = people()
    table["town"] = ["Reus", "Valls"] * 30
    with pytest.raises(BadTableError, match=f"{type(masker).__name__} masks numbers.*'town'"):
        clone(masker).fit_transform(table)
    fitted = clone(masker).set_params(columns=["income"])
    released = fitted.fit_transform(table)
    assert released["town"].equals(table["town"])
    assert released["age"].equals(table["age"])
    assert not released["income"].equals(table["income"])
    assert fitted.untouched_ == ["age", "hours", "town"]
    assert fitted.columns_ == ["income"]


@every
def test_strata_are_masked_apart(masker: Any) -> None:
    """What is released of one stratum does not depend on the numbers of another."""
    table = people()
    table["town"] = ["Reus", "Valls"] * 30
    other = table.copy()
    there = table["town"] == "Valls"
    other.loc[there, "income"] *= 7.0
    mine = clone(masker).set_params(strata="town").fit_transform(table)
    theirs = clone(masker).set_params(strata="town").fit_transform(other)
    pd.testing.assert_frame_equal(mine[~there], theirs[~there])


@every
def test_loss_is_recomputed_from_the_released_table(masker: Any) -> None:
    """An independent way: 100 SSE / SST by its definition, weights included."""
    table, weights = people(), np.random.default_rng(1).uniform(1, 9, 60)
    fitted = clone(masker)
    released = fitted.fit_transform(table, weights=weights)
    for name, loss in fitted.column_loss_.items():
        x, y = table[name].to_numpy(float), released[name].to_numpy(float)
        total = weights @ (x - np.average(x, weights=weights)) ** 2
        assert loss == pytest.approx(100 * (weights @ (x - y) ** 2) / total)
    assert fitted.loss_ == pytest.approx(np.mean(list(fitted.column_loss_.values())))
    changed = {name: (table[name] != released[name]).mean() for name in table}
    assert fitted.changed_ == pytest.approx(changed)


@every
def test_a_saved_masker_holds_no_record(masker: Any) -> None:
    table = people()
    fitted = clone(masker).fit(table, weights=np.linspace(1, 2, 60))
    saved = pickle.loads(pickle.dumps(fitted))
    assert saved.weights is None
    with pytest.raises(BadOptionError, match="fit_transform"):
        clone(masker).set_params(weights=np.linspace(1, 2, 60)).fit(table)
    assert not hasattr(fitted, "transform")
    arrays = [v for v in vars(saved).values() if isinstance(v, np.ndarray)]
    assert all(v.dtype.kind != "f" for v in arrays)


@pytest.mark.parametrize("masker", RANDOM, ids=name_of)
def test_a_seed_repeats_and_no_seed_does_not(masker: Any) -> None:
    table = people()
    first, second = (clone(masker).fit_transform(table) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    unseeded = [clone(masker).set_params(random_state=None).fit_transform(table) for _ in range(2)]
    assert not unseeded[0].equals(unseeded[1])
    other = clone(masker).set_params(random_state=4).fit_transform(table)
    assert not other.equals(first)


@every
def test_decimals_keep_their_places(masker: Any) -> None:
    numbers = people()["income"]
    table = pl.DataFrame(
        {"paid": [Decimal(f"{x:.2f}") for x in numbers]}, schema={"paid": pl.Decimal(12, 2)}
    )
    released = clone(masker).fit_transform(table)
    assert released.schema == table.schema


# An independent way to the same distribution


def test_normal_numbers_are_normal() -> None:
    """Kolmogorov-Smirnov at 1 in a million, and the tails at their very ends."""
    drawn = normal(np.random.default_rng(5), 50_000)
    assert stats.kstest(drawn, "norm").pvalue > 1e-6
    assert np.isfinite(normal(SystemChance(), 1000)).all()

    class Ends:
        def random(self, size: int) -> Any:
            return np.array([0.0, 2.0**-53, 0.5, 1 - 2.0**-53])[:size]

    ends = normal(Ends(), 4)
    assert np.isfinite(ends).all()
    np.testing.assert_allclose(
        ends,
        [*stats.norm.ppf([2.0**-54, 1.5 * 2.0**-53, 0.5]), -stats.norm.ppf(2.0**-53)],
        rtol=1e-9,
        atol=1e-15,
    )


# Bad input


@every
def test_bad_tables_and_rules(masker: Any) -> None:
    for bad in (people()["age"], [[1, 2]], {"a": [1]}):
        with pytest.raises(TessellaError):
            clone(masker).fit_transform(bad)
    with pytest.raises(BadOptionError, match="rules"):
        clone(masker).set_params(rules=7).fit_transform(people())
    with pytest.raises(RuleSyntaxError):
        clone(masker).set_params(rules="age = 3").fit_transform(people())
    with pytest.raises(TessellaError, match=r"'agee'.*'age'"):
        clone(masker).set_params(rules="agee >= 3").fit_transform(people())
    with pytest.raises(TessellaError, match="infinity"):
        clone(masker).fit_transform(people().assign(income=np.inf))


def test_the_page_on_maskers_is_true() -> None:
    page = Path(__file__).parents[2] / "docs" / "maskers.md"
    ran = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert ran.attempted > 0
    assert ran.failed == 0


def test_every_masker_is_at_the_door() -> None:
    from tessella import masking

    assert {type(masker).__name__ for masker in MASKERS} | {PRAM.__name__} <= set(masking.__all__)
