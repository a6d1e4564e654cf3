"""Anonymity counted in the table: by hand, by brute force, against quadrature and printed figures.

`PRINTED` is the ten-record example of the SDC practice guide of the IHSN, with the figures that
sdcMicro prints for it there.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import nbinom, poisson

from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    UnknownColumnError,
    UnknownOptionError,
)
from tessella.risk import individual_risk, k_anonymity, log_linear_risk, uniques
from tessella.risk.anonymity.population import mean_inverse, mean_inverse_poisson
from tessella.schema import Schema

KEYS = ["residence", "gender", "education", "labour"]
PRINTED = pd.DataFrame(
    {
        "residence": ["U", "U", "U", "U", "R", "U", "U", "U", "U", "U"],
        "gender": ["F", "F", "F", "M", "F", "M", "F", "M", "F", "F"],
        "education": ["si", "si", "pi", "sc", "sc", "sc", "pc", "ps", "si", "si"],
        "labour": ["e", "e", "n", "e", "u", "e", "n", "u", "n", "n"],
        "weight": [180, 180, 215, 76, 186, 76, 180, 215, 186, 76],
        "health": ["y", "y", "y", "y", "y", "n", "n", "y", "n", "y"],
    }
)
FOUR = pd.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30.0, 30.0, 30.0, np.nan]})

small_tables = st.integers(1, 4).flatmap(
    lambda d: st.lists(
        st.lists(st.sampled_from([None, 0, 1, 2]), min_size=d, max_size=d), min_size=1, max_size=25
    )
)


def as_frame(rows):
    columns = {f"k{j}": column for j, column in enumerate(zip(*rows))}
    return pd.DataFrame(columns, dtype="Int64")


def agree(a, b, missing):
    """Slow and obviously right."""
    if missing == "any":
        return all(x is None or y is None or x == y for x, y in zip(a, b))
    return a == b


@given(small_tables, st.sampled_from(["category", "any"]), st.randoms(use_true_random=False))
def test_frequencies_are_those_of_all_pairs(rows, missing, random):
    """An independent way: n x n comparisons."""
    weights = np.array([random.uniform(1, 50) for _ in rows])
    found = k_anonymity(as_frame(rows), missing_as=missing, weights=weights)
    who = np.array([[agree(a, b, missing) for b in rows] for a in rows])
    assert found.frequency.tolist() == who.sum(axis=1).tolist()
    assert found.population == pytest.approx(who @ weights)
    assert found.k == who.sum(axis=1).min()
    assert found.chance.sum() == pytest.approx(found.value * len(rows))
    assert found.histogram["records"].sum() == len(rows)
    if missing == "category":
        assert found.n_classes == len({tuple(row) for row in rows})


def test_k_by_hand():
    assert k_anonymity(FOUR).frequency.tolist() == [2, 2, 1, 1]
    wild = k_anonymity(FOUR, missing_as="any", below=(2, 3))
    assert wild.frequency.tolist() == [2, 2, 2, 2]
    assert wild.below == {2: 0, 3: 4}
    assert wild.chance.tolist() == [0.5] * 4
    assert k_anonymity(FOUR, known="sex").k == 2
    assert k_anonymity(FOUR).smallest(2)["records"].tolist() == [1, 1]
    assert list(k_anonymity(FOUR).histogram.itertuples(index=False, name=None)) == [
        (1, 2, 2),
        (2, 2, 1),
    ]


def test_one_record_is_alone():
    assert k_anonymity(FOUR[:1]).k == 1


def test_missing_codes_and_nulls_are_told_apart():
    """An intruder sees which of them is in the table."""
    table = pd.DataFrame({"age": [-9.0, np.nan, -8.0, 30.0]})
    schema = Schema({"age": {"kind": "integer", "missing": (-9, -8)}})
    assert k_anonymity(table, schema=schema).frequency.tolist() == [1, 1, 1, 1]
    assert k_anonymity(table, schema=schema, missing_as="any").frequency.tolist() == [4, 4, 4, 4]
    text = pd.DataFrame({"age": ["none", None, "30", "30"]})
    schema = Schema({"age": {"kind": "nominal", "missing": ("none",)}})
    assert k_anonymity(text, schema=schema, missing_as="any").frequency.tolist() == [4, 4, 4, 4]


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_every_library_gives_the_same(kind):
    import polars as pl

    other = pl.from_pandas(PRINTED)
    other = other if kind == "polars" else other.to_arrow()
    mine = individual_risk(PRINTED, known=KEYS, weights="weight").chance
    assert individual_risk(other, known=KEYS, weights="weight").chance == pytest.approx(mine)


def test_many_wide_keys_do_not_overflow():
    """The product of the ranges exceeds 64 bits."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2**31, size=(50, 5))
    X = np.vstack([X, X, X[:10]])
    found = k_anonymity(X)
    assert found.k == 2
    assert found.n_classes == 50


def test_the_printed_example():
    """Independent figures: f, F and risk as sdcMicro prints them."""
    found = individual_risk(PRINTED, known=KEYS, weights="weight")
    assert found.frequency.tolist() == [2, 2, 1, 2, 1, 2, 1, 1, 2, 2]
    assert found.population.tolist() == [360, 360, 215, 152, 186, 152, 180, 215, 262, 262]
    risk = [
        0.005424520, 0.005424520, 0.025096439, 0.012563425, 0.028247279,
        0.012563425, 0.029010932, 0.025096439, 0.007403834, 0.007403834,
    ]  # fmt: skip
    assert found.chance == pytest.approx(risk, abs=5e-10)
    assert found.value == pytest.approx(0.01582, abs=5e-6)
    assert found.expected == pytest.approx(0.1582, abs=5e-5)
    assert found.above(0.05) == 0
    assert k_anonymity(PRINTED, known=KEYS, below=(2, 3)).below == {2: 4, 3: 10}


def test_a_missing_value_in_the_printed_example():
    """Independent figures: record 4 lacks two values and agrees with 6 and 8."""
    table = PRINTED.copy()
    table.loc[3, ["education", "labour"]] = None
    found = k_anonymity(table, known=KEYS, missing_as="any")
    assert found.frequency.tolist() == [2, 2, 1, 3, 1, 2, 1, 2, 2, 2]


@given(st.integers(1, 60), st.floats(1e-4, 0.999))
def test_the_mean_of_one_over_F_is_its_sum(f, p):
    """An independent way: the posterior, summed as far as it matters (and its tail bounded)."""
    ours = mean_inverse(np.array([f]), np.array([p]))[0]
    if f / p < 1e5:
        most = int(nbinom.isf(1e-13, f, p)) + 10
        extra = np.arange(most)
        theirs = float((nbinom.pmf(extra, f, p) / (f + extra)).sum())
        assert ours == pytest.approx(theirs, rel=1e-8)
    by_area, _ = quad(lambda u: u ** (f - 1) * p / (p + (1 - p) * u), 0, 1, epsabs=0, limit=500)
    assert ours == pytest.approx(by_area, rel=1e-7)
    assert p / f <= ours * (1 + 1e-12)
    assert ours <= 1 / f + 1e-15


def test_the_mean_of_one_over_F_at_its_ends():
    f = np.array([1, 2, 3, 1000, 10**6, 1, 5])
    p = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1 - 1e-12, 1e-9])
    got = mean_inverse(f, p)
    assert got[:5] == pytest.approx(1 / f[:5])
    assert got[5] == pytest.approx(1.0)
    assert got[6] == pytest.approx(1e-9 / 4, rel=1e-6)  # p/(f-1) as p goes to 0
    assert mean_inverse(np.array([10**6]), np.array([0.1]))[0] == pytest.approx(1e-7, rel=1e-5)


@given(st.integers(1, 900), st.floats(0, 900))
def test_the_poisson_mean_of_one_over_F(f, m):
    """An independent way: the sum."""
    extra = np.arange(int(m + 40 * np.sqrt(m + 1) + 60))
    theirs = float((poisson.pmf(extra, m) / (f + extra)).sum()) if m else 1 / f
    assert mean_inverse_poisson(np.array([f]), np.array([m]))[0] == pytest.approx(theirs, rel=1e-8)


def test_household_risk_by_hand():
    """1 - (1 - r1)(1 - r2), for both; who lives alone keeps the own risk."""
    table = PRINTED.assign(home=[1, 2, 3, 4, 5, 6, 7, 3, 9, 10])
    alone = individual_risk(table, known=KEYS, weights="weight").chance
    found = individual_risk(table, known=KEYS, weights="weight", unit="home")
    both = 1 - (1 - alone[2]) * (1 - alone[7])
    assert found.chance[[2, 7]] == pytest.approx([both, both])
    assert found.chance[0] == pytest.approx(alone[0])
    assert found.individual == pytest.approx(alone)
    certain = individual_risk(table[:2], known="labour", weights=np.ones(2), unit=["a", "a"])
    assert certain.chance == pytest.approx([0.75, 0.75])
    sure = individual_risk(table[:1], known="labour", weights=np.ones(1), unit=["a"])
    assert sure.chance.tolist() == [1.0]


def test_light_weights_are_told():
    found = individual_risk(FOUR, known="sex", weights=np.array([0.5, 0.5, 2.0, 2.0]))
    assert found.chance[:2].tolist() == [0.5, 0.5]
    assert "2 records have a key whose weights sum to less" in found.explain()


def test_uniques_by_hand():
    found = uniques(PRINTED, known=KEYS, weights="weight")
    assert np.flatnonzero(found.sample).tolist() == [2, 4, 6, 7]
    assert found.expected == pytest.approx(1 / 215 + 1 / 186 + 1 / 180 + 1 / 215)
    one_in_hundred = uniques(PRINTED, known=KEYS, fraction=0.01)
    assert one_in_hundred.right_if_unique == pytest.approx(0.04 / (0.04 + 0.99 * 6))
    assert uniques(PRINTED, known=KEYS).value == 0.4
    assert uniques(PRINTED, known="gender", fraction=0.5).right_if_unique == 0.0


def test_the_log_linear_model_keeps_margins():
    """An invariant: with pairs, fitted margins of pairs are those of the table."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.integers(0, 3, size=(400, 3)), columns=list("abc"))
    table["b"] = (table["a"] + table["b"] // 2) % 3
    found = log_linear_risk(table, fraction=0.2, interactions=2)
    saturated = log_linear_risk(table, known=["a", "b"], fraction=0.2, interactions=2)
    counts = k_anonymity(table, known=["a", "b"]).frequency
    assert saturated.fitted == pytest.approx(counts)
    sure = log_linear_risk(table, known=["a", "b"], fraction=1.0, interactions=2)
    assert sure.chance == pytest.approx(1 / counts)
    assert (found.chance > 0).all()
    assert (found.chance <= 1).all()


def test_the_log_linear_model_finds_the_truth():
    """A population whose keys are independent: expected population uniques among the sample's."""
    rng = np.random.default_rng(5)
    N, told, true, matched = 20_000, 0.0, 0.0, 0.0
    for _ in range(5):
        population = np.column_stack(
            [rng.geometric(0.25, N), rng.geometric(0.2, N), rng.geometric(0.15, N)]
        )
        drawn = rng.random(N) < 0.1
        whole = k_anonymity(population).frequency[drawn]
        found = log_linear_risk(population[drawn], fraction=0.1)
        alone = found.frequency == 1
        told += found.population_uniques
        true += ((whole == 1) & alone).sum()
        matched += found.unique_matches - (1 / whole[alone]).sum()
    assert told == pytest.approx(true, rel=0.15)
    assert abs(matched) < 0.1 * true


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"known": "agee"}, UnknownColumnError, "Did you mean 'age'"),
        ({"known": []}, BadOptionError, "at least one column"),
        ({"known": ["sex", "sex"]}, BadOptionError, "each once"),
        ({"missing_as": "drop"}, UnknownOptionError, "'category', 'any'"),
        ({"weights": [1, 2]}, BadTableError, "one value for each of the 4"),
        ({"weights": [1, 2, 0, 1]}, BadTableError, "1 of 4 are zero"),
        ({"weights": "w"}, UnknownColumnError, "names a column 'w'"),
        ({"weights": [1, 2, np.nan, 1]}, BadTableError, "missing"),
        ({"known": "age", "weights": "age"}, BadOptionError, "one part only"),
        ({"below": (0,)}, BadOptionError, "at least 1"),
    ],
)
def test_k_refuses(options, error, says):
    with pytest.raises(error, match=says):
        k_anonymity(FOUR, **options)


def test_others_refuse():
    with pytest.raises(BadOptionError, match="sampling weights"):
        individual_risk(FOUR)
    with pytest.raises(UnknownColumnError, match="unit="):
        individual_risk(FOUR, weights=np.ones(4), unit="home")
    with pytest.raises(BadTableError, match="1 of 4 records have no unit"):
        individual_risk(FOUR, weights=np.ones(4), unit=[1, 2, 3, None])
    with pytest.raises(BadOptionError, match="fraction"):
        uniques(FOUR, fraction=0)
    for both in (uniques, log_linear_risk):
        with pytest.raises(BadOptionError, match="not both"):
            both(FOUR, weights=np.ones(4), fraction=0.5)
    with pytest.raises(BadOptionError, match="interactions"):
        log_linear_risk(FOUR, fraction=0.5, interactions=3)
    with pytest.raises(BadOptionError, match="or weights="):
        log_linear_risk(FOUR)
    with pytest.raises(BadTableError, match="says nothing about"):
        k_anonymity(FOUR, schema=Schema({"sex": {"kind": "nominal"}}))
    schema = Schema({name: {"kind": "nominal", "role": "untouched"} for name in FOUR})
    with pytest.raises(BadTableError, match="none of the schema's quasi-identifiers"):
        k_anonymity(FOUR, schema=schema)
    with pytest.raises(BadTableError, match="lists or objects"):
        k_anonymity(pd.DataFrame({"a": [[1], [2]]}))
