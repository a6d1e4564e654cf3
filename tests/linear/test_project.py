"""The nearest point that obeys every row: exact, verified, and untouched where it can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.isotonic import isotonic_regression

from tessella.datasets import load_expenditure
from tessella.exceptions import BadOptionError, BadTableError, ContradictionError
from tessella.linear import LinearSystem
from tessella.linear.project import exact_nearest
from tests.linear.systems import census_rules, eia_rules, feasible, slow_projection

# by hand


@pytest.mark.parametrize("missing", [1e-3, 1e-5, 1e-7, 1e-9, 1e-11])
def test_a_small_number_beside_a_large_one_meets_its_bound(missing):
    """What the rounding of the total could explain is mended all the same where there is a way."""
    system = LinearSystem([[1, 1]], [1e9], [[0, -1]], [-0.5])
    found = system.project([[1e9 - 0.5 + missing, 0.5 - missing]])
    assert found[0, 1] >= 0.5
    assert found == pytest.approx(np.array([[1e9 - 0.5, 0.5]]), rel=0, abs=1.2e-7)  # a step of 1e9


def test_onto_a_plane_and_into_an_octant():
    plane = LinearSystem.equalities([[1, 1, 1]], [3])
    assert plane.project([[2.0, 2.0, 2.0]]).tolist() == [[1, 1, 1]]
    octant = LinearSystem.inequalities(-np.eye(3), np.zeros(3))
    assert octant.project([[-1.0, 2.0, -3.0]]).tolist() == [[0, 2, 0]]


def test_onto_a_simplex():
    """(1, 0.2, -0.5) to the probabilities: the last coordinate goes to 0, the rest move alike."""
    simplex = LinearSystem([[1, 1, 1]], [1], -np.eye(3), np.zeros(3))
    assert simplex.project([[1.0, 0.2, -0.5]])[0] == pytest.approx([0.9, 0.1, 0.0], abs=1e-15)
    assert (simplex.project(np.random.default_rng(0).normal(size=(100, 3))) >= 0).all()


def test_the_metric_says_what_is_cheap_to_move():
    rule = LinearSystem.equalities([[1, -1]], [0])
    assert rule.project([[0.0, 4.0]])[0] == pytest.approx([2, 2], rel=1e-15)
    assert rule.project([[0.0, 4.0]], metric=[3, 1])[0] == pytest.approx([1, 1])


def test_a_row_taken_in_may_have_to_go_again():
    """The most broken row first, which the second makes idle: the method must drop it."""
    system = LinearSystem.inequalities([[1, 0.9], [1, 0]], [0, -1])
    x = np.array([1.0, 1.0])
    assert system.project([x])[0] == pytest.approx(slow_projection(system, x))
    system = LinearSystem.inequalities([[0.6, 0.8], [0, 1]], [0, -5])
    x = np.array([9.0, 3.0])
    assert system.project([x])[0] == pytest.approx(slow_projection(system, x))


def test_contradictions_are_named_not_averaged():
    system = LinearSystem.equalities([[1, 1], [1, 1]], [1, 2], names=["one", "two"])
    with pytest.raises(ContradictionError, match="'one'; 'two'"):
        system.project([[0.0, 0.0]])


def test_inside_is_untouched_bit_for_bit():
    rng = np.random.default_rng(1)
    parts = rng.lognormal(8, 2, size=(500, 4))
    X = np.column_stack([parts, parts.sum(axis=1)])
    X[:, 4] *= 1 + rng.choice([-1, 1], 500) * 2e-16
    system = LinearSystem([[1, 1, 1, 1, -1]], [0], -np.eye(5), np.zeros(5))
    assert system.project(X).tobytes() == X.tobytes()


def test_bounds_are_met_to_the_bit():
    system = LinearSystem([[1, 1, -1]], [0], [[1, 0, 0], [0, -1, 0]], [0.1, -0.3])
    V = system.project(np.random.default_rng(2).normal(size=(1000, 3)))
    assert (V[:, 0] <= 0.1).all()
    assert (V[:, 1] >= 0.3).all()
    assert system.holds(V, tolerance=1e-14).all()


def test_columns_of_a_million_and_a_thousandth():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 6)) * [1e6, 1e6, 1e6, 1e-3, 1e-3, 1e-3] + [1e9, 0, 0, 5e-3, 0, 0]
    A = [[1, 1, -1, 0, 0, 0], [0, 0, 0, 1, 1, -1], [1, 0, 0, -1e9, 0, 0]]
    G = [[0, 1, -1, 0, 0, 0], [0, 0, 0, 0, 1, -1], [0, 0, 0, -1, 0, 0]]
    system = LinearSystem(A, [0, 0, 0], G, [0, 0, -1e-4])
    for metric in (None, [1e-12, 1e-12, 1e-12, 1e6, 1e6, 1e6]):
        V = system.project(X, metric=metric)
        assert system.holds(V, tolerance=1e-12).all()


def test_repeated_rows_and_rows_through_one_corner():
    """Twenty half-planes through the origin, each thrice: degenerate at the answer."""
    angle = np.linspace(0, np.pi / 2, 20)
    G = np.repeat(np.column_stack([np.cos(angle), np.sin(angle)]), 3, axis=0)
    system = LinearSystem.inequalities(G, np.zeros(60))
    X = np.random.default_rng(4).normal(size=(2000, 2))
    V = system.project(X)
    hull = LinearSystem.inequalities([[1, 0], [0, 1]], [0, 0])  # the others follow from these
    assert hull.project(X) == pytest.approx(V, abs=1e-12)


def test_two_inequalities_that_make_an_equation():
    system = LinearSystem.inequalities([[1, 1, -1], [-1, -1, 1]], [0, 0])
    X = np.random.default_rng(5).normal(size=(100, 3)) * 1e5
    V = system.project(X)
    assert pytest.approx(V, abs=1e-9) == LinearSystem.equalities([[1, 1, -1]], [0]).project(X)
    assert system.holds(V, tolerance=1e-12).all()


def test_a_single_point_is_left():
    system = LinearSystem.equalities([[1, 1], [1, -1], [1, 0]], [0, 0, 0])
    assert system.project([[1.0, 3.0]]).tolist() == [[0, 0]]


def test_many_starts_give_the_same_as_one(monkeypatch):
    rng = np.random.default_rng(6)
    system = LinearSystem([[1, 1, 1, -1]], [0], -np.eye(4), np.zeros(4))
    X = rng.normal(size=(5000, 4))
    both = system.project(X)
    monkeypatch.setenv("TESSELLA_CORES", "1")
    assert (system.project(X) == both).all()
    assert (np.vstack([system.project(X[i : i + 1]) for i in range(50)]) == both[:50]).all()


def test_no_records():
    assert LinearSystem.equalities([[1, 1]], [0]).project(np.empty((0, 2))).shape == (0, 2)


def test_bad_input():
    rule = LinearSystem.equalities([[1, 1]], [0])
    with pytest.raises(BadTableError, match="missing or infinite"):
        rule.project([[np.nan, 1.0]])
    for metric in ([1.0], [1.0, 0.0], [1.0, np.inf]):
        with pytest.raises(BadOptionError, match="2 positive numbers"):
            rule.project([[1.0, 1.0]], metric=metric)


def test_the_noisy_expenditure_table_is_repaired():
    rule = LinearSystem.equalities([[1.16, 1.07, -1]], [0])
    X = load_expenditure(noisy=True, frame="numpy")
    a = np.array([1.16, 1.07, -1])
    expected = X - np.outer(X @ a / (a @ a), a)  # the projection onto one plane, in closed form
    assert rule.project(X) == pytest.approx(expected, rel=1e-13)
    assert rule.holds(rule.project(X), tolerance=1e-14).all()


# independent ways


@given(feasible(), st.integers(0, 2**32), st.booleans())
def test_against_every_active_set(made, seed, weighted):
    system, point = made
    d = system.n_columns
    rng = np.random.default_rng(seed)
    x = point + rng.normal(size=d) * 10 * rng.integers(0, 2, size=d)
    metric = rng.choice([0.1, 1.0, 25.0], size=d) if weighted else None
    V = system.project(x[None], metric=metric)
    assert V[0] == pytest.approx(slow_projection(system, x, metric), abs=1e-7)
    broken = system.violation(V)  # by rounding at most: of the row's scale, or of the move
    move = np.abs(V - x).max()
    assert ((broken.relative <= 1e-12) | (broken.absolute <= 1e-14 * move)).all()
    # idempotent; and by the second method, used where the first fails
    assert system.project(V, metric=metric) == pytest.approx(V, abs=1e-12)
    assert system.projector(metric)._least_distance(x) == pytest.approx(V[0], abs=1e-7)


@given(feasible(max_columns=10, max_rows=8), st.integers(0, 2**32))
def test_no_feasible_point_is_nearer(made, seed):
    system, point = made
    d = system.n_columns
    rng = np.random.default_rng(seed)
    X = point + rng.normal(size=(20, d)) * 10
    V = system.project(X)
    assert (system.violation(V).absolute <= 1e-11 * (1 + np.abs(X).max())).all()
    # Obtuse angles: (x - v) (w - v) <= 0 for every feasible w, and only for the nearest v.
    for W in (V, point[None], 0.5 * V + 0.5 * point):
        for w in W:
            assert (((X - V) * (w - V)).sum(axis=1) <= 1e-8).all()


@given(feasible(max_columns=4, max_rows=3), st.integers(0, 2**32))
def test_fractions_agree(made, seed):
    """The last resort, on whole numbers, where the two ways need no tolerance to agree."""
    system, point = made
    x = point + np.random.default_rng(seed).integers(-9, 10, size=len(point))
    projector = system.projector()
    exact = exact_nearest(
        x, projector.A, projector.b, projector.G, projector.h + 1e-13, projector.spread
    )
    assert exact == pytest.approx(system.project(x[None])[0], abs=1e-9)


def test_fractions_find_no_point_where_there_is_none():
    G = np.array([[1.0], [-1.0]])
    nothing = np.empty((0, 1)), np.empty(0)
    assert exact_nearest(np.zeros(1), *nothing, G, np.array([1.0, -2.0]), np.ones(1)) is None
    assert exact_nearest(np.zeros(1), *nothing, G, np.array([3.0, -2.0]), np.ones(1)) == [2.0]


@pytest.mark.parametrize("seed", range(5))
def test_eleven_orders_of_magnitude_in_one_metric(seed):
    """Nearly parallel normals, since the smallest columns rule the metric: never an answer off."""
    rng = np.random.default_rng(seed)
    d, m, p = 9, 4, 12
    unit = 10.0 ** rng.uniform(-4, 7, size=d)
    A = rng.integers(-2, 3, size=(m, d)) / unit * 10.0 ** rng.uniform(-3, 3, size=(m, 1))
    G = rng.integers(-2, 3, size=(p, d)) / unit * 10.0 ** rng.uniform(-3, 3, size=(p, 1))
    point = unit * (rng.normal(size=d) * 10 + rng.choice([0, 1000], size=d))
    system = LinearSystem(A, A @ point, G, G @ point + np.abs(G) @ unit * rng.integers(0, 2, p))
    X = point + unit * rng.normal(size=(10, d)) * 5
    assert system.holds(system.project(X), tolerance=1e-12).all()
    assert system.holds(system.project(X, metric=1 / unit**2), tolerance=1e-12).all()


def test_a_chain_of_orders_is_isotonic_regression():
    """v1 <= v2 <= ... <= v15, by scikit-learn's pool of adjacent violators."""
    rng = np.random.default_rng(8)
    X, weights = rng.normal(size=(100, 15)).round(1), rng.uniform(0.5, 2, size=15)
    chain = LinearSystem.inequalities(np.eye(14, 15) - np.eye(14, 15, k=1), np.zeros(14))
    for x, v in zip(X, chain.project(X, metric=weights)):
        assert v == pytest.approx(isotonic_regression(x, sample_weight=weights), abs=1e-12)


def test_against_slsqp():
    rng = np.random.default_rng(7)
    A, G = rng.normal(size=(3, 8)), rng.normal(size=(6, 8))
    point, metric = rng.normal(size=8), rng.uniform(0.2, 5, size=8)
    system = LinearSystem(A, A @ point, G, G @ point + 0.1)
    X = point + rng.normal(size=(10, 8))
    for x, v in zip(X, system.project(X, metric=metric)):
        found = minimize(
            lambda w, x=x: (metric * (w - x) ** 2).sum(),
            point,
            jac=lambda w, x=x: 2 * metric * (w - x),
            method="SLSQP",
            constraints=[
                {"type": "eq", "fun": lambda w: A @ w - system.b, "jac": lambda w: A},
                {"type": "ineq", "fun": lambda w: system.h - G @ w, "jac": lambda w: -G},
            ],
            options={"ftol": 1e-15, "maxiter": 500},
        )
        assert v == pytest.approx(found.x, abs=1e-6)


# public tables


def test_census_keeps_its_rules(census):
    """PTOTVAL == PEARNVAL + POTHVAL, FEDTAX <= TAXINC <= AGI: untouched, and after noise again."""
    system = census_rules()
    assert system.holds(census, tolerance=0).all()
    assert (system.project(census) == census).all()
    noisy = census + np.random.default_rng(0).normal(size=census.shape) * census.std(axis=0) / 10
    V = system.project(noisy, metric=1 / census.var(axis=0))
    assert system.holds(V, tolerance=1e-12).all()
    free = [system.columns.index(name) for name in ("AFNLWGT", "EMCONTRB", "INTVAL")]
    assert (V[:, free] == np.maximum(noisy[:, free], 0)).all()


def test_eia_totals_are_repaired(eia):
    system = eia_rules()
    held = system.holds(eia)
    assert 0 < (~held).sum() < len(eia)
    V = system.project(eia, metric=1 / eia.var(axis=0))
    assert system.holds(V, tolerance=1e-12).all()
    assert (V[held] == eia[held]).all()
    assert (V[:, 0] == eia[:, 0]).all()
