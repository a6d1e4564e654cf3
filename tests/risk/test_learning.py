"""Learning the intruder's distance: small cases against a grid, the order of families, held out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.exceptions import BadOptionError, LinkageError, UnknownOptionError
from tessella.risk import OWA, Choquet, WeightedMean, assess, certify, learn, link
from tessella.risk.aligned import align_tables
from tessella.risk.estimate import wilson
from tessella.risk.learned.search import least_competitors, rows_of
from tessella.schema import Schema

from .brute import choquet, links_of, standardised


def strictly(A, B, weights):
    far = ((A[:, None, :] - B[None, :, :]) ** 2) @ weights
    own = np.diag(far).copy()
    np.fill_diagonal(far, np.inf)
    return int((own < far.min(axis=1) - 1e-9).sum())


def table(n, d, noise, seed):
    rng = np.random.default_rng(seed)
    original = rng.normal(size=(n, d))
    return original, original + noise * rng.normal(size=(n, d)) * rng.uniform(0.2, 2, size=d)


@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_of_a_fine_grid_is_reached(seed):
    """An independent way: three variables, all weights in steps of 1/100."""
    original, masked = table(25, 3, 0.8, seed)
    A, B = standardised(masked), standardised(original)
    grid = max(
        strictly(A, B, np.array([i, j, 100 - i - j]) / 100)
        for i in range(101)
        for j in range(101 - i)
    )
    found = learn(
        original, masked, held_out=False, control=False, effort="thorough", random_state=0
    )
    assert found.links >= grid
    assert found.links == strictly(A, B, found.distance.weights)


@pytest.mark.parametrize("seed", range(3))
def test_owa_reaches_the_grid(seed):
    original, masked = table(25, 3, 0.8, seed)
    parts = np.sort((standardised(masked)[:, None, :] - standardised(original)[None, :, :]) ** 2)
    weights = np.array([(i, j, 50 - i - j) for i in range(51) for j in range(51 - i)]) / 50
    grid = links_of(parts, weights).max()
    found = learn(
        original, masked, "owa", held_out=False, control=False, effort="thorough", random_state=0
    )
    assert found.value >= grid / 25 - 1e-9


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from([0.2, 0.6, 1.2]))
def test_the_order_of_the_families(seed, noise):
    """Invariant: a richer family never links less; `simpler` never exceeds the value."""
    original, masked = table(40, 3, noise, seed)
    shares = {
        name: learn(
            original, masked, name, effort="standard", held_out=False, control=False, random_state=0
        )
        for name in ("weighted mean", "choquet", "bilinear")
    }
    euclid = link(original, masked).value
    assert shares["choquet"].value >= shares["weighted mean"].value >= euclid
    assert shares["bilinear"].value >= shares["weighted mean"].value
    for found in shares.values():
        assert max(found.simpler.values()) <= found.value
        assert found.simpler["Euclidean"] == pytest.approx(euclid)
        assert found.most is None or found.links <= found.most


def test_the_value_is_that_of_linking_with_the_distance():
    original, masked = table(40, 3, 0.6, 1)
    for family in ("weighted mean", "owa", "bilinear", "choquet"):
        found = learn(original, masked, family, effort="standard", random_state=0)
        assert found.value == link(original, masked, distance=found.distance).value
        assert found.held_out.n == 40
        assert found.held_out.low < found.held_out.value < found.held_out.high


def test_rows_decide_as_all_competitors_do():
    """An independent way: Pareto-minimal rows against all pairs, for random weights."""
    rng = np.random.default_rng(4)
    original = rng.integers(0, 6, size=(50, 3)).astype(float)
    masked = original + rng.integers(-1, 2, size=(50, 3))
    sides = align_tables(original, masked)
    competitors = least_competitors(sides, np.arange(50))
    member = WeightedMean.neutral(3)
    rows = rows_of(sides, competitors, member)
    assert len(competitors.records) < 50  # some have no chance
    for _ in range(200):
        w = rng.dirichlet(np.ones(3))
        assert rows.links(rows.along(w)) == strictly(masked, original, w)


def test_identical_masked_records_link_at_most_once():
    original, _ = table(30, 2, 0.5, 0)
    masked = np.repeat(original.reshape(10, 3, 2).mean(axis=1), 3, axis=0)
    found = learn(original, masked, "choquet", effort="standard", random_state=0)
    assert found.links <= found.most <= 10


def test_the_same_seed_gives_the_same_answer():
    original, masked = table(50, 3, 0.6, 9)
    one, two = (
        learn(original, masked, "choquet", effort="standard", random_state=5) for _ in range(2)
    )
    assert (one.distance.theta == two.distance.theta).all()
    assert one.held_out == two.held_out


def test_a_large_table_is_learned_from_some_records():
    original, masked = table(3000, 4, 0.4, 2)
    found = learn(
        original, masked, max_records=300, effort="standard", held_out=False, random_state=0
    )
    assert found.n == 3000
    assert found.most is None
    assert found.value >= link(original, masked).value
    assert any("learned from 300 records" in line for line in found.assumptions)


def test_over_fitting_is_told_apart():
    """Pure noise: what is learned on these records is worth little on others."""
    rng = np.random.default_rng(0)
    original, masked = rng.normal(size=(80, 4)), rng.normal(size=(80, 4))
    found = learn(original, masked, "choquet", effort="standard", random_state=0)
    assert found.value > found.simpler["Euclidean"]
    assert found.held_out.value < found.value
    assert "held out" in str(found)


@pytest.mark.parametrize(
    ("family", "n", "d", "seeds"),
    [
        ("weighted mean", 30, 6, 8),
        ("weighted mean", 100, 6, 8),
        ("choquet", 30, 4, 4),
        ("bilinear", 30, 2, 2),
    ],
)
def test_where_there_is_nothing_to_find_the_control_finds_as_much(family, n, d, seeds):
    """A bug once met: 20 % of an independent table were linked, and guessing was said to be 3 %."""
    values, controls = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        original, masked = rng.normal(size=(n, d)), rng.normal(size=(n, d))
        found = learn(original, masked, family, effort="quick", random_state=seed)
        control = found.controls["shuffled"]
        assert found.baseline == control.value
        low, high = wilson(found.value * n, n)
        assert low <= control.high
        assert control.low <= high
        assert f"on records held out {100 * found.held_out.value:.1f} %" in headline(found)
        assert f"on shuffled records {100 * control.value:.1f} %" in headline(found)
        values.append(found.value)
        controls.append(control.value)
    assert np.mean(values) > 1.5 / n  # more than guessing
    spread = np.std(np.subtract(values, controls), ddof=1) / np.sqrt(seeds)
    assert abs(np.mean(values) - np.mean(controls)) <= 4 * spread + 0.5 / n


def headline(found):
    return str(found).splitlines()[0]


def test_what_the_masking_discloses_is_beyond_the_control():
    original, masked = table(60, 4, 0.3, 1)
    found = learn(original, masked, effort="quick", random_state=0)
    control = found.controls["shuffled"]
    assert found.excess == pytest.approx((found.value - control.value) / (1 - control.value))
    assert found.excess > 0.5
    assert certify(original, masked, effort="quick", random_state=0).excess > 0.5
    assert learn(original, masked, control=False, random_state=0).baseline == 1 / 60


def test_a_table_shuffled_by_the_same_seed_is_not_put_right():
    """The order of the control is drawn from a stream of its own."""
    original = np.random.default_rng(9).normal(size=(40, 3))
    masked = original[np.random.default_rng(0).permutation(40)]
    found = learn(original, masked, effort="quick", held_out=False, random_state=0)
    assert found.controls["shuffled"].value < 0.5


def test_the_control_of_a_large_table_is_counted_over_a_sample():
    original, masked = table(12_000, 3, 0.4, 2)
    found = learn(original, masked, max_records=200, effort="quick", held_out=False, random_state=0)
    control = found.controls["shuffled"]
    assert (found.n, control.n) == (12_000, 10_000)
    assert "10,000 records" in str(control)
    assert any("learned from 200 records" in line for line in control.assumptions)


def test_two_additive_for_many_variables():
    original, masked = table(40, 10, 1.0, 3)
    found = learn(
        original, masked, "choquet", effort="quick", held_out=False, control=False, random_state=0
    )
    assert found.value >= found.simpler["weighted mean"]


def test_constant_and_unmasked_columns():
    """A column that was not masked has no variance of differences, and is trusted."""
    original, masked = table(40, 3, 1.0, 3)
    original[:, 2] = masked[:, 2] = 7.0
    masked[:, 0] = original[:, 0]
    for family in ("weighted mean", "owa", "bilinear", "choquet"):
        assert (
            learn(original, masked, family, effort="quick", held_out=False, random_state=0).value
            > 0
        )
    assert learn(original, masked, effort="quick", random_state=0).value == 1


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"family": "cosine"}, UnknownOptionError, "family='cosine'"),
        ({"effort": 0}, BadOptionError, "effort=0"),
        ({"max_records": 1.5}, BadOptionError, "max_records"),
        ({"family": "choquet", "order": 7}, BadOptionError, "order=7"),
    ],
)
def test_bad_options(options, error, says):
    original, masked = table(10, 3, 1.0, 3)
    with pytest.raises(error, match=says):
        learn(original, masked, **options)


def test_bad_tables():
    for family in ("bilinear", "maxitive"):
        with pytest.raises(LinkageError, match="missing"):
            learn(np.array([[1.0], [np.nan]]), np.array([[1.0], [2.0]]), family, random_state=0)
    with pytest.raises(LinkageError, match="one record"):
        learn(np.ones((1, 2)), np.ones((1, 2)), random_state=0)


def test_components_by_hand():
    """Range of age 40: |30 - 40| / 40 = 0.25; another town 1; a missing age counts as the town."""
    original = pd.DataFrame({"age": [30.0, 40, 70, 35], "town": ["r", "r", "v", "v"]})
    masked = pd.DataFrame({"age": [40.0, 45, 30, np.nan], "town": ["r", "v", "v", "v"]})
    sides = align_tables(original, masked).components("OWA", "each", signed=False)
    squares = sides.differences(np.array([0, 1, 2, 3, 3]), np.array([0, 1, 0, 0, 2])) ** 2
    assert squares == pytest.approx(np.array([[0.25, 0], [0.125, 1], [0, 1], [1, 1], [0, 0]]))
    # By age alone only record 1 is nearest to its own; record 3 has the town only, two originals
    # of which agree. By the town alone 0, 2 and 3 tie with another. By both, an original of the
    # right town is nearer than the own one of 1, and of a nearer age than those of 0 and 2.
    for weights, tied in [([1, 0], [0, 1, 0, 2]), ([0, 1], [2, 0, 2, 2]), ([1, 1], [0, 0, 0, 2])]:
        found = link(original, masked, distance=WeightedMean(weights))
        assert np.where(found.nearer == 0, found.tied, 0).tolist() == tied
    assert found.tied.tolist() == link(original, masked, distance="gower").tied.tolist()


def mixed(n, seed):
    """A number, an ordered and a plain category, some of them changed and some of them missing."""
    rng = np.random.default_rng(seed)
    level = pd.CategoricalDtype(["low", "middle", "high", "top"], ordered=True)
    x, y, z = rng.normal(size=n), rng.integers(0, 4, size=n), rng.integers(0, 5, size=n)
    tables = []
    for share in (0.0, 0.3):
        x = x + share * rng.normal(size=n)
        y, z = (np.where(rng.random(n) < share, rng.integers(0, 4, size=n), one) for one in (y, z))
        frame = pd.DataFrame({"x": x, "level": pd.Categorical.from_codes(y, dtype=level), "z": z})
        frame["z"] = frame["z"].map("abcde".__getitem__)
        tables.append(frame.mask(rng.random((n, 3)) < 0.1))
    return tables


def components(original, masked):
    """Slow and obviously right: one pair and one column after the other."""
    columns = [
        (a, b) if name == "z" else (a.astype(float), b.astype(float))
        for name in original
        for a, b in [
            (masked[name].cat.codes.where(masked[name].notna()), original[name].cat.codes.where(
                original[name].notna())) if name == "level" else (masked[name], original[name])
        ]
    ]  # fmt: skip
    out = np.empty((len(masked), len(original), 3))
    for i, j in np.ndindex(out.shape[:2]):
        cells = []
        for a, b in columns:
            if pd.isna(a[i]) or pd.isna(b[j]):
                cells.append(None)
            elif isinstance(a[i], str):
                cells.append(float(a[i] != b[j]))
            else:
                width = max(a.max(), b.max()) - min(a.min(), b.min())
                cells.append(abs(a[i] - b[j]) / width)
        there = [one for one in cells if one is not None]
        mean = sum(there) / len(there) if there else 1.0
        out[i, j] = [mean if one is None else one for one in cells]
    return out


@pytest.mark.parametrize("seed", range(3))
def test_mixed_tables_against_all_pairs(seed):
    """An independent way: all components, then each distance by its definition."""
    original, masked = mixed(24, seed)
    apart, rng = components(original, masked), np.random.default_rng(seed)
    for _ in range(5):
        w = rng.dirichlet(np.ones(3))
        measure = Choquet.neutral(3).repair(np.r_[0, rng.random(6), 1])
        for member, by in [
            (WeightedMean(w), lambda s, w=w: s @ w),
            (OWA(w), lambda s, w=w: np.sort(s) @ w),
            (measure, lambda s, mu=measure.measure: choquet(s, mu)),
        ]:
            far = np.apply_along_axis(by, 2, apart)
            own = np.diag(far)[:, None]
            same = np.isclose(far, own, rtol=1e-9, atol=1e-20)
            found = link(original, masked, distance=member)
            assert found.nearer.tolist() == ((far < own) & ~same).sum(axis=1).tolist()
            assert found.tied.tolist() == same.sum(axis=1).tolist()


@pytest.mark.parametrize("family", ["weighted mean", "owa", "choquet"])
def test_mixed_tables_are_learned_and_certified(family):
    """An independent way for weights: a grid; for all, what is learned is what `link` counts."""
    original, masked = mixed(24, 1)
    apart = components(original, masked)
    best = certify(
        original, masked, family, time_limit=1e9, effort="quick", held_out=True, random_state=0
    )
    assert best.proved
    assert best.value == link(original, masked, distance=best.distance).value
    assert best.value >= best.simpler["Gower"] == link(original, masked, distance="gower").value
    if family == "choquet":
        return
    apart = np.sort(apart, axis=2) if family == "owa" else apart
    grid = 0
    for i in range(51):
        for j in range(51 - i):
            far = apart @ (np.array([i, j, 50 - i - j]) / 50)
            own = np.diag(far).copy()
            np.fill_diagonal(far, np.inf)
            grid = max(grid, int((far.min(axis=1) > own * (1 + 1e-8) + 1e-12).sum()))
    assert grid <= best.links <= grid + 1  # slivers between the points of the grid


def test_only_a_category_links():
    """Numbers are noise, the category tells all: the attack finds it, plain numbers do not."""
    rng = np.random.default_rng(0)
    names = [f"n{i}" for i in range(40)]
    one, two = (
        pd.DataFrame({"x": rng.normal(size=40), "y": rng.normal(size=40), "id code": names})
        for _ in range(2)
    )
    assert learn(one, two, control=False, random_state=0).links == 40
    assert learn(one, two, known=["x", "y"], control=False, random_state=0).value < 0.3
    found = assess(one, two, attacks=["learned"], effort="quick", random_state=0)
    assert found["learned"].value == 1.0
    kinds = {"x": "continuous", "y": "continuous", "code": "nominal"}
    schema = Schema({name: {"kind": kind} for name, kind in kinds.items()})
    coded = [frame.assign(code=np.arange(40)).drop(columns="id code") for frame in (one, two)]
    assert learn(*coded, schema=schema, control=False, random_state=0).links == 40
    many = learn(one, two, max_records=10, control=False, held_out=False, random_state=0)
    assert many.value == 1.0


def test_census_noise(census):
    """The first six variables of 400 records, noise of 0.3 deviations: more than Euclid, by far
    less on records held out."""
    original = census[:400, :6]
    rng = np.random.default_rng(0)
    masked = original + 0.3 * original.std(axis=0) * rng.normal(size=original.shape)
    found = learn(original, masked, random_state=0)
    assert found.links >= 246
    assert found.simpler["Euclidean"] * 400 == pytest.approx(237)
    assert found.held_out.value < found.value
