"""Constrained centres: equations 5 and 11 of Torra (2020), and any number of rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.datasets import load_expenditure
from tessella.exceptions import (
    BadTableError,
    CollapsedError,
    ContradictionError,
    UnknownColumnError,
)
from tessella.fuzzy import EntropyFuzzyCMeans, FuzzyCMeans
from tessella.linear import LinearSystem
from tessella.rules import Rules
from tests.reference import fuzzy as reference

ALPHA = np.array([1.16, 1.07, -1.0])
RULE = (ALPHA[None], [0.0])


def noisy(seed=0, scale=1.5):
    X = np.asarray(load_expenditure(frame="numpy"), dtype=float)
    return X + np.random.default_rng(seed).normal(0, scale, X.shape)


def test_equation_5_is_the_projection_of_the_means():
    """One step, by the paper's formula written out and by ours."""
    X, V = noisy(), noisy()[:4] + 0.5
    V = V - np.outer(V @ ALPHA, ALPHA) / (ALPHA @ ALPHA)  # a start that keeps the rule
    u = reference.degrees(X, V, 1.4)
    expected = reference.constrained_means(X, u**1.4, np.ones(12), ALPHA, 0.0)
    found = FuzzyCMeans(4, m=1.4, init=V, constraints=RULE, accelerate=False, max_iter=1, tol=0)
    with pytest.warns(match="still move"):
        found.fit(X)
    np.testing.assert_allclose(found.cluster_centers_, expected, rtol=1e-10)


def test_equation_11_is_the_projection_of_the_means():
    X, V = noisy(), noisy()[:4] + 0.5
    V = V - np.outer(V @ ALPHA, ALPHA) / (ALPHA @ ALPHA)
    u = reference.entropy_degrees(X, V, 0.01)
    expected = reference.constrained_means(X, u, np.ones(12), ALPHA, 0.0)
    found = EntropyFuzzyCMeans(
        4, lambda_=0.01, init=V, constraints=RULE, accelerate=False, max_iter=1, tol=0
    )
    with pytest.warns(match="still move"):
        found.fit(X)
    np.testing.assert_allclose(found.cluster_centers_, expected, rtol=1e-9)


ROWS = {
    2: ([[1.16, 1.07, -1.0, 0.0]], [0.0], [[1.0, -1.0, 0.0, 0.0]], [4.0]),
    3: ([[1.16, 1.07, -1.0, 0.0], [0.0, 0.0, 1.0, -2.0]], [0.0, 1.0], [[1, -1, 0, 0]], [4.0]),
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("law", ["m", "lambda_"])
def test_several_rows_against_whole_matrices(rows, law):
    """Twelve sweeps of the papers' formulas, each centre projected by trying all active sets."""
    X = np.column_stack([noisy(), noisy(1)[:, 2] / 2])
    A, b, G, h = (np.asarray(part, dtype=float) for part in ROWS[rows])
    V = start = reference.projected(X[:4] + 0.5, A, b, G, h)
    for _ in range(12):
        u = reference.degrees(X, V, 1.4) if law == "m" else reference.entropy_degrees(X, V, 0.01)
        V = reference.means(X, u**1.4 if law == "m" else u, np.ones(12))
        V = reference.projected(V, A, b, G, h)
    shared = {"init": start, "constraints": LinearSystem(A, b, G, h), "accelerate": False,
              "max_iter": 12, "tol": 0}  # fmt: skip
    model = FuzzyCMeans(4, m=1.4, **shared)
    if law == "lambda_":
        model = EntropyFuzzyCMeans(4, lambda_=0.01, **shared)
    with pytest.warns(match="still move"):
        model.fit(X)
    np.testing.assert_allclose(model.cluster_centers_, V, rtol=1e-7)
    assert np.abs(V @ A.T - b).max() < 1e-9
    assert (V @ G.T - h).max() < 1e-9


@pytest.mark.parametrize("make", [FuzzyCMeans(4, m=1.4), EntropyFuzzyCMeans(4, lambda_=0.005)])
def test_where_the_data_keep_the_rule_nothing_changes(make):
    """Propositions 5 and 7. The last total of the paper's table is rounded: it is recomputed."""
    X = np.asarray(load_expenditure(frame="numpy"), dtype=float)
    X[:, 2] = X[:, :2] @ ALPHA[:2]
    plain = make.set_params(constraints=None, random_state=0, tol=1e-9).fit(X)
    centres = plain.cluster_centers_.copy()
    bound = make.set_params(constraints=RULE, random_state=0, tol=1e-9).fit(X)
    np.testing.assert_allclose(bound.cluster_centers_, centres, rtol=1e-6)


def test_a_column_outside_the_rule_is_as_without_it():
    """Proposition 5, first part: given the same degrees."""
    X = np.column_stack([noisy(), np.arange(12.0)])
    V = X[:4] + 0.1
    u = reference.degrees(X, V, 1.3) ** 1.3
    alpha = np.append(ALPHA, 0.0)
    with_rule = reference.constrained_means(X, u, np.ones(12), alpha, 0.0)
    assert with_rule[:, 3] == pytest.approx(reference.means(X, u, np.ones(12))[:, 3])
    system = LinearSystem.equalities(alpha[None], [0.0])
    assert (system.project(V)[:, 3] == V[:, 3]).all()


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_any_number_of_rows_hold(seed, n_equal, n_unequal, entropy):
    """Rank-deficient systems too: one row is repeated."""
    random = np.random.default_rng(seed)
    d = 4
    X = random.normal(size=(60, d)) * 10.0 ** random.integers(-2, 4)
    inside = random.normal(size=d) * np.abs(X).max()
    A, G = random.integers(-3, 4, (n_equal, d)).astype(float), random.normal(size=(n_unequal, d))
    A = np.vstack([A, 2 * A[:1]])
    system = LinearSystem(A, A @ inside, G, G @ inside + random.uniform(0, 1, n_unequal))
    make = EntropyFuzzyCMeans(3, lambda_=10 / X.var()) if entropy else FuzzyCMeans(3, m=1.2)
    try:
        found = make.set_params(n_init=2, random_state=0, constraints=system, tol=1e-3).fit(X)
    except CollapsedError:  # the rows leave too little room for three centres
        return
    V = found.cluster_centers_
    size = 1 + np.abs(V).max() * np.abs(system.A).sum(axis=1) + np.abs(system.b)
    assert (np.abs(V @ system.A.T - system.b) <= 1e-9 * size).all()
    if n_unequal:
        size = 1 + np.abs(V).max() * np.abs(system.G).sum(axis=1) + np.abs(system.h)
        assert (V @ system.G.T - system.h <= 1e-9 * size).all()


def test_contradictory_rows_are_named():
    system = LinearSystem.equalities(
        [[1, 0, 0], [1, 0, 0], [0, 1, 0]], [1, 2, 3], names=["a is one", "a is two", "b is three"]
    )
    with pytest.raises(ContradictionError, match="a is one") as told:
        FuzzyCMeans(2, m=1.2, constraints=system).fit(noisy())
    assert "a is two" in str(told.value)
    assert "b is three" not in str(told.value)


def test_named_columns_are_found_by_name():
    import pandas as pd

    X = pd.DataFrame(noisy(), columns=["v1", "v2", "v3"]).assign(other=np.arange(12.0))
    system = LinearSystem.equalities([[-1.0, 1.07, 1.16]], [0.0], columns=["v3", "v2", "v1"])
    found = FuzzyCMeans(3, m=1.2, random_state=0, constraints=system).fit(X)
    assert np.abs(found.cluster_centers_[:, :3] @ ALPHA).max() < 1e-9
    wrong = LinearSystem.equalities([[1.0, -1.0]], [0.0], columns=["v1", "v4"])
    with pytest.raises(UnknownColumnError, match="'v4'"):
        FuzzyCMeans(3, m=1.2, constraints=wrong).fit(X)


def test_parsed_rules():
    import pandas as pd

    X = pd.DataFrame(noisy(), columns=["v1", "v2", "v3"])
    rules = Rules(["v3 == 1.16 * v1 + 1.07 * v2", "v1 <= v2", "20 <= v1"])
    found = FuzzyCMeans(3, m=1.2, random_state=0, constraints=rules).fit(X)
    V = found.cluster_centers_
    assert np.abs(V @ ALPHA).max() < 1e-9
    assert (V[:, 0] <= V[:, 1] + 1e-9).all()
    assert (V[:, 0] >= 20 - 1e-9).all()
    with pytest.raises(BadTableError, match="not linear"):
        FuzzyCMeans(3, constraints=Rules(["v1 * v2 == v3"])).fit(X)


@pytest.mark.parametrize("wish", ["a + b == c", 3, ([[1.0, 2.0]], [0.0])])
def test_senseless_constraints(wish):
    with pytest.raises(BadTableError, match="constraints"):
        FuzzyCMeans(3, m=1.2, constraints=wish).fit(noisy())
