"""Distances with parameters: by hand, against definitions, projections against a solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from tessella.exceptions import BadOptionError
from tessella.risk import OWA, Bilinear, Choquet, WeightedMean, link
from tessella.risk.learned.choquet import masses_of, measure_of
from tessella.risk.learned.families import on_simplex

from .brute import choquet

# Four originals, and one masked record at the origin that belongs to the first of them.
ORIGINAL = np.array([[2.0, 2.0], [1.0, 2.5], [3.0, 0.5], [9.0, 9.0]])
MASKED = np.vstack([np.zeros((1, 2)), ORIGINAL[1:]])


def numbers(*shape, low=-3, high=3):
    return arrays(np.float64, shape, elements=st.floats(low, high, width=32))


def random_measure(theta):
    d = len(theta).bit_length() - 1
    return Choquet.neutral(d).repair(np.abs(theta) + 1e-3 * np.arange(len(theta)))


@pytest.mark.parametrize(
    ("distance", "first", "squares"),
    [
        # Squares of the first masked record: (4, 4), (1, 6.25), (9, 0.25), (81, 81).
        (WeightedMean([1, 1]), 3, [4, 3.625, 4.625, 81]),
        (WeightedMean([1, 3]), 2, [4, 4.9375, 2.4375, 81]),
        (OWA([0, 1]), 1, [4, 6.25, 9, 81]),
        (OWA([1, 0]), 3, [4, 1, 0.25, 81]),
        (Bilinear([[1, -0.5], [-0.5, 1]]), 1, [2, 2.375, 3.875, 40.5]),
        (Choquet([0, 0.5, 1, 1]), 2, [4, 6.25, 4.625, 81]),
        (Choquet.two_additive([1, 1], [[0, -1], [-1, 0]]), 1, [4, 6.25, 9, 81]),
    ],
)
def test_four_records_by_hand(distance, first, squares):
    """`first` is the rank of the own original, worked out from the listed distances."""
    assert distance.evaluate(-ORIGINAL) == pytest.approx(squares)
    rank = 1 + sum(value < squares[0] for value in squares)
    found = link(ORIGINAL, MASKED, distance=distance, standardise="none")
    assert found.rank[0] == rank
    assert found.rank[1:].tolist() == [1, 1, 1]
    del first


@given(numbers(16), numbers(5, 4))
def test_the_integral_is_that_of_the_definition(theta, differences):
    measure = random_measure(theta)
    slow = [choquet(row**2, measure.measure) for row in differences]
    assert measure.evaluate(differences) == pytest.approx(slow, abs=1e-9)


@given(numbers(4, low=0.015625), numbers(5, 4))
def test_simpler_families_are_among_the_richer(weights, differences):
    """Invariant: weighted mean = Choquet = bilinear; OWA = Choquet."""
    mean, owa = WeightedMean(weights), OWA(weights)
    expected = mean.evaluate(differences)
    assert Choquet.from_weights(weights).evaluate(differences) == pytest.approx(expected)
    assert Choquet.from_weights(weights, order=2).evaluate(differences) == pytest.approx(expected)
    assert Bilinear(np.diag(weights)).evaluate(differences) == pytest.approx(expected)
    expected = owa.evaluate(differences)
    assert Choquet.from_owa(weights).evaluate(differences) == pytest.approx(expected)


@given(numbers(16), numbers(6, 4))
def test_two_additive_is_the_whole_with_the_same_masses(theta, differences):
    pairs = np.zeros((4, 4))
    pairs[np.triu_indices(4, 1)] = theta[4:10]
    narrow = Choquet.neutral(4, order=2).repair(
        np.concatenate([np.abs(theta[:4]) + 1e-3, theta[4:10]])
    )
    masses = np.zeros(16)
    masses[1 << np.arange(4)] = narrow.measure[:4]
    first, second = np.triu_indices(4, 1)
    masses[(1 << first) | (1 << second)] = narrow.measure[4:]
    whole = Choquet(measure_of(masses))
    assert whole.evaluate(differences) == pytest.approx(narrow.evaluate(differences), abs=1e-9)
    one, two = narrow.explain(), whole.explain()
    assert one.importance == pytest.approx(two.importance, abs=1e-9)
    assert one.interactions == pytest.approx(two.interactions, abs=1e-9)


def test_moebius_by_hand_and_back():
    measure = np.array([0.0, 0.2, 0.3, 1.0])
    assert masses_of(measure) == pytest.approx([0, 0.2, 0.3, 0.5])
    assert measure_of(masses_of(measure)) == pytest.approx(measure)


def test_shapley_and_interaction_by_hand():
    told = Choquet([0.0, 0.2, 0.3, 1.0]).explain(["age", "income"])
    assert told.importance == pytest.approx([0.45, 0.55])
    assert told.interactions[0, 1] == pytest.approx(0.5)
    assert "age with income: +0.500" in str(told)


@given(numbers(16))
def test_shapley_values_sum_to_one(theta):
    assert random_measure(theta).explain().importance.sum() == pytest.approx(1)


def nearest(theta, constraints, start):
    """An independent way: a general solver."""
    found = minimize(
        lambda x: ((x - theta) ** 2).sum(), start, jac=lambda x: 2 * (x - theta),
        constraints=constraints, method="SLSQP", options={"maxiter": 500, "ftol": 1e-14},
    )  # fmt: skip
    return found.x


@settings(max_examples=25)
@given(numbers(8))
def test_projection_of_a_measure(theta):
    member = Choquet.neutral(3)
    got = member.project(theta)
    constraints = [
        {"type": "ineq", "fun": member.slack},
        {"type": "eq", "fun": lambda x: np.array([x[0], x[-1] - 1])},
    ]
    other = nearest(theta, constraints, member.theta)
    assert ((got.theta - theta) ** 2).sum() <= ((other - theta) ** 2).sum() + 1e-6
    assert got.slack(got.theta).min() >= -1e-12
    assert got.project(got.theta).theta == pytest.approx(got.theta, abs=1e-9)


@settings(max_examples=25)
@given(numbers(6))
def test_projection_of_masses(theta):
    """Against the linear constraints m_k + Σ_{l in T} m_kl >= 0 for every T."""
    member = Choquet.neutral(3, order=2)
    got = member.project(theta)
    place = {(0, 1): 3, (0, 2): 4, (1, 2): 5}
    rows = []
    for k in range(3):
        others = [place[tuple(sorted((k, other)))] for other in range(3) if other != k]
        for pick in ([], others[:1], others[1:], others):
            row = np.zeros(6)
            row[[k, *pick]] = 1
            rows.append(row)
    G = np.array(rows)
    constraints = [
        {"type": "ineq", "fun": lambda x: G @ x},
        {"type": "eq", "fun": lambda x: x.sum() - 1},
    ]
    other = nearest(theta, constraints, member.theta)
    assert (G @ got.theta).min() >= -1e-9
    assert ((got.theta - theta) ** 2).sum() <= ((other - theta) ** 2).sum() + 1e-5


@given(numbers(5))
def test_projection_on_the_simplex_meets_its_conditions(theta):
    """Invariant: w = max(theta - t, 0) for one t, with sum 1."""
    w = on_simplex(theta)
    assert w.sum() == pytest.approx(1)
    shift = (theta - w)[w > 0]
    assert np.ptp(shift) < 1e-9
    assert (theta[w == 0] <= shift[0] + 1e-9).all()


@given(numbers(6))
def test_projection_of_a_form(theta):
    got = Bilinear.neutral(3).project(theta)
    assert np.trace(got.matrix) == pytest.approx(1)
    assert np.linalg.eigvalsh(got.matrix)[0] >= -1e-12
    again = Bilinear.neutral(3).project(got.theta)
    assert again.matrix == pytest.approx(got.matrix, abs=1e-9)


def test_turns_are_distances():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(9, 3))
    root = rng.normal(size=(3, 3))
    for member in (WeightedMean([1, 2, 5]), Bilinear(root @ root.T)):
        assert ((rows @ member.turn()) ** 2).sum(axis=1) == pytest.approx(member.evaluate(rows))


def test_pictures_are_drawn():
    figure = Choquet([0.0, 0.2, 0.3, 1.0]).explain(["a$", "b"]).picture()
    assert len(figure.axes) == 3
    figure = OWA([1, 2, 3]).explain().picture()
    assert len(figure.axes) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: WeightedMean([1, -1]),
        lambda: WeightedMean([0, 0]),
        lambda: WeightedMean("abc"),
        lambda: OWA([[1, 2]]),
        lambda: Bilinear([[1, 2], [2, 1]]),
        lambda: Bilinear([[1, 2], [0, 1]]),
        lambda: Bilinear([[np.nan]]),
        lambda: Choquet([0, 0.5, 0.2]),
        lambda: Choquet([0, 2, 0.5, 1]),
        lambda: Choquet([0.5, 0.5, 0.5, 1]),
        lambda: Choquet.two_additive([0.5, 0.5], [[0, -1], [-1, 0]]),
        lambda: Choquet.two_additive([0.5, 0.5], [[0, 1], [0, 0]]),
    ],
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(BadOptionError, match="cannot be used"):
        wrong()


def test_orders_that_are_not_offered():
    with pytest.raises(BadOptionError, match="order=5"):
        Choquet.neutral(4, order=5)
    with pytest.raises(BadOptionError, match="order=9"):
        Choquet.neutral(9, order=9)
    with pytest.raises(BadOptionError, match="at most 8"):
        Choquet(np.linspace(0, 1, 512))
    with pytest.raises(BadOptionError, match="variables"):
        WeightedMean([1, 1]).evaluate([[1.0, 2.0, 3.0]])
    assert Choquet.neutral(12).additive == 2


def test_ranks_are_named():
    # a bug once met: the "2th smallest"
    shown = OWA([1] * 23).named(None)
    assert shown[:4] == ("smallest", "2nd smallest", "3rd smallest", "4th smallest")
    assert [shown[k - 1].split()[0] for k in (11, 12, 13, 21, 22, 23)] == [
        "11th", "12th", "13th", "21st", "22nd", "23rd",
    ]  # fmt: skip
