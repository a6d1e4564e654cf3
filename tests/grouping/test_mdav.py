"""MDAV, V-MDAV and CBFS: the published figures, and the very partition of a plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tessella.exceptions import BadOptionError
from tessella.grouping import CBFS, MDAV, VMDAV
from tessella.kernels.tree import group_equal
from tests.reference import mdav as reference

Floats = NDArray[np.float64]

FIGURES = {  # IL, checked to four decimals
    "tarragona": {3: 16.9326, 5: 22.4619, 10: 33.1929},
    "census": {3: 5.6922, 5: 9.0884, 10: 14.1559},
    "eia": {3: 0.4829, 5: 1.6667, 10: 3.8397},
}


@pytest.mark.parametrize(("name", "k"), [(name, k) for name in FIGURES for k in (3, 5, 10)])
def test_published_figures(name: str, k: int, request: pytest.FixtureRequest) -> None:
    X = request.getfixturevalue(name)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert round(100 * MDAV(k).fit(X).inertia_ / X.size, 4) == FIGURES[name][k]


def made(kind: str, n: int, d: int, seed: int) -> Floats:
    random = np.random.default_rng(seed)
    normal = random.standard_normal((n, d))
    return {
        "normal": normal,
        "whole": np.round(normal),
        "zeros": normal.round(1) * (random.random((n, 1)) < 0.1),
        "heavy": np.exp(3 * normal),
        "clusters": normal * 0.01 + random.integers(0, 5, (n, 1)),
    }[kind]


KINDS = ["normal", "whole", "zeros", "heavy", "clusters"]


def renumbered(labels: NDArray[np.int64]) -> list[int]:
    seen: dict[int, int] = {}
    return [seen.setdefault(int(label), len(seen)) for label in labels]


@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(4, 150),
    d=st.integers(1, 6),
    k=st.integers(2, 9),
    weighted=st.booleans(),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=80)
def test_same_partition_as_the_reference(
    kind: str, n: int, d: int, k: int, weighted: bool, seed: int
) -> None:
    """Equal distances are decided by the row number, here and there."""
    k = min(k, n // 2)
    X = made(kind, n, d, seed)
    weights = (
        np.random.default_rng(seed).integers(1, 4, n).astype(float) if weighted else np.ones(n)
    )
    expected = renumbered(reference.mdav(X, weights, k))
    assert MDAV(k).fit(X, sample_weight=weights).labels_.tolist() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_same_partition_on_a_table_large_enough_for_the_tree(kind: str) -> None:
    X = made(kind, 2_500, 3, 1)
    expected = renumbered(reference.mdav(X, np.ones(len(X)), 7))
    assert MDAV(7).fit(X).labels_.tolist() == expected


@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(4, 90),
    k=st.integers(2, 6),
    gamma=st.sampled_from([0.0, 0.2, 1.1, 5.0]),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=60)
def test_vmdav_and_cbfs_against_the_reference(
    kind: str, n: int, k: int, gamma: float, seed: int
) -> None:
    k = min(k, n // 2)
    X, weights = made(kind, n, 2, seed), np.ones(n)
    expected = renumbered(reference.vmdav(X, weights, k, gamma))
    assert VMDAV(k, gamma=gamma).fit(X).labels_.tolist() == expected
    assert CBFS(k).fit(X).labels_.tolist() == renumbered(reference.cbfs(X, weights, k))


def test_by_hand() -> None:
    """Two triples and a stray record, k = 3: the farthest begins, the stray stays with the rest."""
    X = np.array([[0.0], [1.0], [2.0], [100.0], [101.0], [102.0], [50.0]])
    assert MDAV(3).fit(X).labels_.tolist() == [0, 0, 0, 1, 1, 1, 0]


@pytest.mark.parametrize("method", [MDAV, VMDAV, CBFS])
def test_ninety_per_cent_zeros_keep_k(method: type) -> None:
    sizes = np.bincount(method(5).fit(made("zeros", 20_000, 4, 0)).labels_)
    assert sizes.min() >= 5


def test_ninety_per_cent_zeros_are_few_points() -> None:
    """Why they cost no time: tree and sectors hold each distinct point once, however often it
    occurs. The seconds: `python -m benchmarks.equal_records`."""
    X = made("zeros", 20_000, 4, 0) + 0.0  # no zero is negative
    same = group_equal(X, X.mean(axis=0))
    assert len(same.points) == len(np.unique(X, axis=0)) < 0.11 * len(X)
    zero = int(np.flatnonzero(~same.points.any(axis=1))[0])
    assert same.ends[zero] - same.firsts[zero] == (~X.any(axis=1)).sum()


@pytest.mark.parametrize("gamma", [-0.1, np.nan, np.inf, "much", True])
def test_senseless_gamma(gamma: object) -> None:
    with pytest.raises(BadOptionError, match="gamma"):
        VMDAV(3, gamma=gamma).fit(np.zeros((9, 1)))
