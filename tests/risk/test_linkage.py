"""Linking by distance: four records by hand, all pairs as an oracle, invariants, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tessella.exceptions import BadOptionError, LinkageError, UnknownColumnError, UnknownOptionError
from tessella.risk import OWA, Bilinear, Choquet, WeightedMean, link, link_one_to_one
from tessella.schema import Schema

from .brute import choquet, counts, euclidean, gower, manhattan, standardised

# Two columns, four records; the second masked record lies nearest to the third original.
ORIGINAL = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 1.0], [9.0, 9.0]])
MASKED = np.array([[0.2, 0.0], [2.5, 1.0], [3.0, 1.0], [7.0, 7.0]])


def test_euclidean_by_hand():
    found = link(ORIGINAL, MASKED, standardise="none")
    assert found.rank.tolist() == [1, 2, 1, 1]
    assert found.chance.tolist() == [1, 0, 1, 1]
    assert found.value == 0.75
    assert found.baseline == 0.25
    assert found.within == {1: 0.75, 3: 1.0}
    assert found.records.columns.tolist() == ["masked", "original", "rank", "tied", "chance"]


def test_manhattan_by_hand():
    """From (0, 0) the original (2, 2) is nearer than (3, 0) by squares, not by sums."""
    original, masked = np.array([[3.0, 0.0], [2.0, 2.0]]), np.array([[0.0, 0.0], [2.0, 2.0]])
    assert link(original, masked, standardise="none").rank.tolist() == [2, 1]
    assert link(original, masked, standardise="none", distance="manhattan").rank.tolist() == [1, 1]


def test_mahalanobis_by_hand():
    """The first column is masked by 10, the second by 0.1: only the second should be trusted."""
    original = np.array([[0.0, 0.0], [10.0, 1.0], [20.0, 2.0], [30.0, 3.0]])
    masked = original + np.array([[10.0, 0.1], [-10.0, 0.1], [10.0, -0.1], [-10.0, -0.1]])
    euclid = link(original, masked, standardise="none")
    found = link(original, masked, standardise="none", distance="mahalanobis")
    assert euclid.value == 0.0
    assert found.value == 1.0
    assert "difference masked - original" in found.attack


def test_mahalanobis_against_the_inverse():
    """An independent way, for each covariance."""
    rng = np.random.default_rng(3)
    original = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3))
    masked = original + rng.normal(size=(40, 3))
    A, B = standardised(masked), standardised(original)
    spreads = {
        "difference": np.cov((A - B).T),
        "original": np.cov(B.T),
        "pooled": np.cov(A.T) + np.cov(B.T),
    }
    for covariance, spread in spreads.items():
        inverse = np.linalg.inv(spread)
        nearer, _ = counts(A, B, range(40), lambda a, b, Q=inverse: (a - b) @ Q @ (a - b))
        found = link(original, masked, distance="mahalanobis", covariance=covariance)
        assert found.nearer.tolist() == nearer.tolist()


def test_gower_by_hand():
    """Range of age 40: |30 - 40| / 40 = 0.25; another town 1; a missing value does not count."""
    original = pd.DataFrame({"age": [30.0, 40, 70, 35], "town": ["r", "r", "v", "v"]})
    masked = pd.DataFrame({"age": [40.0, 40, 70, np.nan], "town": ["r", "r", "v", "v"]})
    found = link(original, masked, distance="gower")
    # Record 0: own 0.25/2, record 1 is at 0. Record 3: towns only, records 2 and 3 agree.
    assert found.rank.tolist() == [2, 1, 1, 1]
    assert found.tied.tolist() == [1, 1, 1, 2]
    assert found.value == (0 + 1 + 1 + 0.5) / 4


def test_gower_knows_the_order_of_categories():
    order = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    original = pd.DataFrame({"level": pd.Series(["low", "high", "high"], dtype=order)})
    masked = pd.DataFrame({"level": pd.Series(["middle", "high", "high"], dtype=order)})
    assert link(original, masked, distance="gower").tied.tolist() == [3, 2, 2]
    plain = original.astype(str), masked.astype(str)
    assert link(*plain, distance="gower").tied.tolist() == [3, 2, 2]
    schema = Schema({"level": {"kind": "nominal"}})
    assert link(original, masked, distance="gower", schema=schema).tied.tolist() == [3, 2, 2]


@pytest.mark.parametrize("lacking", [0.0, 0.05, 0.7])
@pytest.mark.parametrize("n", [3, 40, 700])
@pytest.mark.parametrize("cap", [10, 5000])
def test_gower_against_all_pairs(monkeypatch, n, lacking, cap):
    """An independent way: ties, equal records, a constant, 100 categories, cells missing in both.

    With 0.7 of the cells missing some pairs have no column in common.
    """
    rng = np.random.default_rng([n, cap, int(100 * lacking)])
    monkeypatch.setattr("tessella.risk.linkage.FULL_RANKS", cap)
    levels = (2, 5, 100, 3, 9, 1, 1000)
    nominal = np.array([1, 1, 1, 0, 0, 0, 0], dtype=bool)
    B = rng.integers(0, levels, size=(n, 7)).astype(float)
    B[::7] = B[0]
    A = np.where(rng.random(B.shape) < 0.2, rng.permuted(B, axis=0), B)
    A[:, 6] += rng.normal(size=n).round(1)
    for table in (A, B):
        table[rng.random(table.shape) < lacking] = np.nan
    frames = [pd.DataFrame(table).rename(columns="c{}".format) for table in (B, A)]
    schema = Schema(
        {f"c{j}": {"kind": "nominal" if nominal[j] else "continuous"} for j in range(7)}
    )
    found = link(*frames, distance="gower", schema=schema)
    far = gower(A, B, nominal)
    own = np.diag(far)[:, None]
    near = np.isclose(far, own, rtol=1e-9, atol=1e-20)
    nearer, tied = ((far < own) & ~near).sum(axis=1), near.sum(axis=1)
    cut = nearer >= found.cap
    assert found.cap == (n if n <= cap else 10)
    assert found.nearer.tolist() == np.where(cut, found.cap, nearer).tolist()
    assert found.tied.tolist() == np.where(cut, 0, tied).tolist()


def test_ties_are_a_chance():
    """Two originals alike, and a masked value halfway between two."""
    original = np.array([[1.0], [1.0], [3.0], [7.0]])
    masked = np.array([[1.0], [2.0], [2.0], [7.0]])
    found = link(original, masked, standardise="none")
    assert found.chance == pytest.approx([1 / 2, 1 / 3, 1 / 3, 1])
    assert found.chance_within(2) == pytest.approx([1, 2 / 3, 2 / 3, 1])


def test_ties_survive_standardising():
    """A bug once met: 0.1 steps are not equal after rounding, and must count as equal."""
    original = np.arange(1.0, 40.0).reshape(-1, 1) * 0.1
    masked = original.copy()
    masked[5] = (original[5] + original[6]) / 2
    found = link(original, masked, standardise="original")
    assert found.tied[5] == 2


integers = arrays(np.float64, st.tuples(st.integers(2, 40), st.integers(1, 4)),
                  elements=st.integers(-3, 3).map(float))  # fmt: skip


def tree_and_scan_are_all_pairs(original, data):
    """An independent way, full of ties: small integers."""
    shape = st.just(original.shape)
    masked = data.draw(arrays(np.float64, shape, elements=st.integers(-3, 3).map(float)))
    n, d = original.shape
    w = 1.0 + np.arange(d)
    q = np.eye(d) + 0.5 * np.ones((d, d))
    size = np.array([bin(s).count("1") / d for s in range(1 << d)]) ** 2
    pairs = np.full((d, d), 0.3) - 0.3 * np.eye(d)
    cases = [
        ("euclidean", euclidean),
        ("manhattan", manhattan),
        (WeightedMean(w), lambda a, b: (w * (a - b) ** 2).sum()),
        (OWA(w), lambda a, b: (w * np.sort((a - b) ** 2)).sum()),
        (Bilinear(q), lambda a, b: (a - b) @ q @ (a - b)),
        (Choquet(size), lambda a, b: choquet((a - b) ** 2, size)),
        (
            Choquet.two_additive(np.ones(d), pairs),
            lambda a, b: euclidean(a, b) + sum(
                pairs[k, h] * min((a[k] - b[k]) ** 2, (a[h] - b[h]) ** 2)
                for k in range(d) for h in range(k)
            ),
        ),
    ]  # fmt: skip
    for distance, slow in cases:
        found = link(original, masked, distance=distance, standardise="none")
        nearer, tied = counts(masked, original, range(n), slow)
        assert found.nearer.tolist() == nearer.tolist()
        assert found.tied.tolist() == tied.tolist()


@settings(max_examples=25)
@given(integers, st.data())
def test_tree_and_scan_are_all_pairs(original, data):
    tree_and_scan_are_all_pairs(original, data)


@pytest.mark.slow
@pytest.mark.heavy
@settings(max_examples=300)
@given(integers, st.data())
def test_tree_and_scan_are_all_pairs_of_many_tables(original, data):
    tree_and_scan_are_all_pairs(original, data)


@pytest.mark.parametrize("distance", ["euclidean", "manhattan"])
def test_a_tree_of_many_levels(distance):
    """An independent way, beyond 32 leaves of 8 and with 300 equal rows."""
    rng = np.random.default_rng(1)
    original = np.vstack([rng.normal(size=(2500, 3)), np.ones((300, 3))])
    masked = original + 0.2 * rng.normal(size=original.shape)
    A, B = standardised(masked), standardised(original)
    found = link(original, masked, distance=distance)
    power = {"euclidean": 2, "manhattan": 1}[distance]
    for i in range(0, 2800, 97):
        far = (np.abs(B - A[i]) ** power).sum(axis=1)
        near = np.isclose(far, far[i], rtol=1e-9)
        assert found.tied[i] == near.sum()
        assert found.nearer[i] == ((far < far[i]) & ~near).sum()


def test_ranks_are_cut_above_5000_records():
    rng = np.random.default_rng(2)
    original = rng.normal(size=(6000, 2))
    masked = original + rng.normal(size=original.shape)
    found = link(original, masked, within=(1, 4))
    whole = link(original, masked, within=(1, 4, 6000))
    assert found.cap == 4
    assert found.rank.max() == 5
    assert found.value == whole.value
    assert found.within == {k: whole.within[k] for k in (1, 4)}
    assert (found.nearer == np.minimum(whole.nearer, 4)).all()


def test_one_core_and_many_agree(monkeypatch):
    rng = np.random.default_rng(2)
    original = rng.normal(size=(5000, 3))
    masked = original + 0.3 * rng.normal(size=original.shape)
    monkeypatch.setenv("TESSELLA_CORES", "1")
    one = link(original, masked)
    monkeypatch.setenv("TESSELLA_CORES", "3")
    assert (link(original, masked).nearer == one.nearer).all()


def test_a_sample_has_an_interval_that_holds_the_whole():
    rng = np.random.default_rng(5)
    original = rng.normal(size=(1000, 3))
    masked = original + 0.3 * rng.normal(size=original.shape)
    whole = link(original, masked)
    hits = 0
    for seed in range(40):
        part = link(original, masked, sample=200, random_state=seed)
        assert part.n == 200
        assert (part.nearer == whole.nearer[part.attacked]).all()
        hits += part.low <= whole.value <= part.high
    assert hits >= 36  # 95 % and more, as the sample is not small beside the whole


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_aligned_by_an_identifier(frame):
    """The masked table is shuffled and shorter; the intruder still has four candidates."""
    original = frame({"key": ["a", "b", "c", "d"], "x": [0.0, 1.0, 2.0, 9.0]})
    masked = frame({"x": [8.0, 0.1, 1.8], "key": ["d", "a", "b"]})
    found = link(original, masked, id="key", standardise="none")
    assert found.truth.tolist() == [3, 0, 1]
    assert found.rank.tolist() == [1, 1, 2]
    assert found.baseline == 0.25
    assert any("3 were released" in line for line in found.assumptions)


def test_known_variables_and_schema():
    table = pd.DataFrame({"x": [1.0, 2, 3], "y": [3.0, 1, 2], "w": [1.0, 1, 5]})
    assert link(table, table, known="x").assumptions[0] == "known: x"
    schema = Schema.guess(table).override(w={"role": "weight"})
    assert link(table, table, schema=schema).assumptions[0] == "known: x, y"


def test_constant_columns_are_told():
    table = pd.DataFrame({"x": [1.0, 2, 3], "same": [0.1, 0.1, 0.1]})
    found = link(table, table)
    assert any("constant in both tables" in line and "same" in line for line in found.assumptions)
    assert link(table, table, known="same").value == pytest.approx(1 / 3)


def test_nothing_masked_is_all_found_and_everything_masked_is_guessing():
    """Invariant."""
    table = np.random.default_rng(0).normal(size=(50, 2))
    assert link(table, table, distance="mahalanobis").value == 1
    for distance in ("euclidean", "manhattan", "gower"):
        assert link(table, table, distance=distance).value == 1
        flat = np.tile(table.mean(axis=0), (50, 1))
        assert link(table, flat, distance=distance).chance.sum() == pytest.approx(1)


FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0], "t": ["a", "b", "c"]})
GONE = pd.DataFrame({"x": [1.0, np.nan, 3.0]})


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: link(FRAME, FRAME.head(2)), LinkageError, "3 records and the masked table 2.*id="),
        (lambda: link(FRAME, FRAME), LinkageError, "hold something else: 't'.*gower"),
        (lambda: link(GONE, GONE), LinkageError, r"missing in: 'x' \(2\).*gower"),
        (lambda: link(FRAME.head(1), FRAME.head(1)), LinkageError, "one record"),
        (lambda: link(FRAME[["x"]], FRAME[["t"]]), LinkageError, "no variable in common"),
        (lambda: link(FRAME[["x"]], FRAME[["x"]], id="x"), LinkageError, "no variable in common"),
        (lambda: link(FRAME, FRAME, known=["z"]), UnknownColumnError, "'z'"),
        (lambda: link(FRAME, FRAME, known=[]), BadOptionError, "at least one variable"),
        (lambda: link(FRAME, FRAME, known=["x", "x"]), BadOptionError, "once"),
        (lambda: link(FRAME, FRAME, id="k"), UnknownColumnError, "'k'"),
        (lambda: link(FRAME, FRAME, known="x", distance="cosine"), UnknownOptionError, "cosine"),
        (
            lambda: link(FRAME, FRAME, known="x", standardise="rank"),
            UnknownOptionError,
            "standardise='rank'",
        ),
        (
            lambda: link_one_to_one(FRAME, FRAME, known="x", covariance="both"),
            UnknownOptionError,
            "covariance='both'",
        ),
        (
            lambda: link(FRAME, FRAME, known="x", distance="mahalanobis", covariance="both"),
            UnknownOptionError,
            "covariance='both'",
        ),
        (lambda: link(FRAME, FRAME, known="x", within=(0,)), BadOptionError, "at least 1"),
        (lambda: link(FRAME, FRAME, known="x", sample=9), BadOptionError, "from 1 to 3"),
        (
            lambda: link(FRAME, FRAME, known="x", distance=WeightedMean([1, 1])),
            BadOptionError,
            "as many as the distance",
        ),
        (
            lambda: link(FRAME.assign(t="a"), FRAME, id="t"),
            LinkageError,
            "2 of the original are repeated",
        ),
        (
            lambda: link(FRAME, FRAME.assign(t=["a", "b", "z"]), id="t"),
            LinkageError,
            "1 masked records have no original",
        ),
    ],
)
def test_bad_input_is_told(call, error, says):
    with pytest.raises(error, match=f"(?s){says}"):
        call()


def test_census_first_400(census):
    """First six columns, MDAV in pairs of columns k = 3, 8, 5: near the 333 found elsewhere."""
    from tessella.masking import Microaggregation

    original = census[:400, :6]
    masked = original.copy()
    for place, k in zip((0, 2, 4), (3, 8, 5)):
        pair = original[:, place : place + 2]
        masked[:, place : place + 2] = Microaggregation(k=k, grouping="mdav").fit_transform(pair)
    found = link(original, masked)
    assert 0.5 < found.value <= 1
    assert found.within[10] >= found.within[3] >= found.value


def test_small_units_are_no_constants():
    """A bug once met: a column in units of 1e-200 was called constant, and nobody was linked."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    for distance in ("euclidean", "manhattan", "mahalanobis"):
        for unit in (1e-110, 1e-200, 1e-300):
            assert link(X * unit, X * unit, distance=distance).value == 1
    Y = X + 0.5 * np.random.default_rng(1).normal(size=X.shape)
    for scale in ("each", "original"):
        found = link(X * 1e-200, Y * 1e-200, standardise=scale)
        assert found.nearer.tolist() == link(X, Y, standardise=scale).nearer.tolist()
