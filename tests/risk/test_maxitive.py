"""k-maxitive measures: by hand, against the definition over all sets, projections by a grid."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tessella.exceptions import BadOptionError
from tessella.risk import (
    OWA,
    Choquet,
    MaxitiveChoquet,
    WeightedMean,
    certify,
    learn,
    link,
)
from tessella.risk.aligned import align_tables
from tessella.risk.learned.choquet import shapley_of
from tessella.risk.learned.maxitive import search_maxitive, sets_of
from tessella.risk.learned.search import least_competitors

from .brute import choquet

# Four originals, and one masked record at the origin that belongs to the first of them.
ORIGINAL = np.array([[2.0, 2.0], [1.0, 2.5], [3.0, 0.5], [9.0, 9.0]])
MASKED = np.vstack([np.zeros((1, 2)), ORIGINAL[1:]])


def drawn(rng, d, order):
    size = len(sets_of(d, order))
    values = rng.random(size) * rng.integers(0, 2, size=size)
    values[rng.integers(size)] = 1.0
    return MaxitiveChoquet(values, d, order)


def by_definition(member):
    """μ of all 2^d sets, slowly: the largest number of a small set within each."""
    named = {frozenset(some): value for some, value in zip(member.sets.tolist(), member.measure)}
    out = np.zeros(1 << member.d)
    for bits in range(1 << member.d):
        inside = {k for k in range(member.d) if bits >> k & 1}
        out[bits] = max((v for some, v in named.items() if some <= inside), default=0.0)
    return out


@pytest.mark.parametrize(
    ("member", "squares"),
    [
        # Squares of the first masked record: (4, 4), (1, 6.25), (9, 0.25), (81, 81).
        (MaxitiveChoquet([1, 1], 2), [4, 6.25, 9, 81]),  # the larger
        (MaxitiveChoquet([0, 0, 1], 2, 2), [4, 1, 0.25, 81]),  # the smaller
        (MaxitiveChoquet([1, 0], 2), [4, 1, 9, 81]),  # the first
        (MaxitiveChoquet([0.5, 1], 2), [4, 6.25, 0.25 + 8.75 / 2, 81]),
        (MaxitiveChoquet([0.5, 0.2, 1], 2, 2), [4, 1 + 0.2 * 5.25, 0.25 + 0.5 * 8.75, 81]),
    ],
)
def test_four_records_by_hand(member, squares):
    assert member.evaluate(-ORIGINAL) == pytest.approx(squares)
    found = link(ORIGINAL, MASKED, distance=member, standardise="none")
    assert found.rank[0] == 1 + sum(value < squares[0] for value in squares)
    assert found.rank[1:].tolist() == [1, 1, 1]


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 5), st.data())
def test_the_integral_is_that_of_the_definition(seed, d, data):
    """An independent way: the whole measure, then the definition of the integral."""
    rng = np.random.default_rng(seed)
    member = drawn(rng, d, data.draw(st.integers(1, d)))
    whole = by_definition(member)
    assert member.whole == pytest.approx(whole)
    differences = rng.integers(-3, 4, size=(6, d)).astype(float)
    slow = [choquet(row**2, whole) for row in differences]
    assert member.evaluate(differences) == pytest.approx(slow, abs=1e-9)
    assert member.features(differences) @ member.theta == pytest.approx(slow, abs=1e-9)
    assert (member.slack(member.theta) >= 0).all()
    assert member.total(member.theta) == 1
    again = MaxitiveChoquet(member.essential(), d, member.order)
    assert again.measure == pytest.approx(member.measure)


@given(st.integers(0, 10**6), st.integers(2, 5))
def test_order_d_is_any_measure(seed, d):
    """Invariant: with an order of d, weighted mean and every whole measure are among them."""
    rng = np.random.default_rng(seed)
    w = rng.random(d) + 0.01
    differences = rng.normal(size=(5, d))
    same = MaxitiveChoquet.from_weights(w, order=d).evaluate(differences)
    assert same == pytest.approx(WeightedMean(w).evaluate(differences))
    whole = Choquet.neutral(d).repair(rng.random(1 << d) + 0.01)
    bits = np.bitwise_or.reduce(1 << sets_of(d, d), axis=1)
    some = MaxitiveChoquet(whole.measure[bits], d, d)
    assert some.evaluate(differences) == pytest.approx(whole.evaluate(differences))
    top = OWA([0.0] * (d - 1) + [1.0]).evaluate(differences)
    assert MaxitiveChoquet.largest(d, order=1).evaluate(differences) == pytest.approx(top)


@given(arrays(np.float64, 6, elements=st.floats(-1, 2, width=16)))
def test_projection_is_nearest_in_the_largest_difference(theta):
    """An independent way: a grid over all measures of order 2 on three variables."""
    member = MaxitiveChoquet.largest(3, order=2)
    near = member.project(theta)
    assert (near.slack(near.theta) >= -1e-12).all()
    assert near.measure.max() == 1
    reached = np.abs(near.measure - theta).max()
    steps = np.linspace(0, 1, 5)
    singles = np.array(list(product(steps, repeat=3)))
    least = np.inf
    for pairs in product(steps, repeat=3):
        if max(pairs) < 1:
            continue
        limits = np.array([min(pairs[0], pairs[1]), min(pairs[0], pairs[2]), min(pairs[1:])])
        fits = singles[(singles <= limits).all(axis=1)]
        off = np.abs(np.hstack([fits, np.tile(pairs, (len(fits), 1))]) - theta).max(axis=1)
        least = min(least, off.min())
    assert reached <= least + 1e-9
    assert member.project(near.measure).measure == pytest.approx(near.measure)


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_a_possibility_explains_itself_in_closed_form(seed, d):
    """An independent way: Möbius masses of the whole measure."""
    member = drawn(np.random.default_rng(seed), d, 1)
    told = member.explain()
    shapley, interactions = shapley_of(member.whole)
    assert told.importance == pytest.approx(shapley, abs=1e-12)
    assert told.interactions == pytest.approx(interactions, abs=1e-12)
    assert told.importance.sum() == pytest.approx(1)


def test_shapley_by_hand():
    """Possibilities 0.4 and 1: the first 0.4 is shared, the rest belongs to the second."""
    told = MaxitiveChoquet([0.4, 1.0], 2).explain(["age", "income"])
    assert told.importance == pytest.approx([0.2, 0.8])
    assert told.interactions[0, 1] == pytest.approx(-0.4)
    assert "1-maxitive" in str(told)


def test_random_orders_are_near_the_exact_values():
    member = drawn(np.random.default_rng(3), 8, 3)
    exact = member.explain()
    shapley, interactions = member._sampled()
    assert np.abs(shapley - exact.importance).max() < 0.03
    assert np.abs(interactions - exact.interactions).max() < 0.12
    many = drawn(np.random.default_rng(3), 20, 2).explain()
    assert many.importance.sum() == pytest.approx(1)
    assert "random orders" in many.text


def test_climbing_counts_as_linkage_does():
    """Four variables with ties: links by rows alone are those over all originals."""
    rng = np.random.default_rng(1)
    original = rng.integers(0, 6, size=(60, 4)).astype(float)
    masked = original + rng.integers(-1, 2, size=(60, 4))
    sides = align_tables(original, masked)
    start = MaxitiveChoquet.from_weights([1, 1, 1, 1], order=2)
    found, count = search_maxitive(sides, least_competitors(sides, np.arange(60)), start, rng)
    counted = link(original, masked, distance=found, standardise="none")
    assert ((counted.nearer == 0) & (counted.tied == 1)).sum() == count
    counted = link(original, masked, distance=start, standardise="none")
    assert ((counted.nearer == 0) & (counted.tied == 1)).sum() <= count


def test_learning_reaches_a_grid_of_possibilities():
    """An independent way: all possibilities of three variables in steps of 1/10."""
    rng = np.random.default_rng(5)
    original = rng.normal(size=(30, 3))
    masked = original + rng.normal(size=(30, 3)) * [0.2, 0.6, 1.5]
    sides = align_tables(original, masked)
    grid = max(
        link(sides, distance=MaxitiveChoquet(w, 3)).value
        for w in product(np.linspace(0, 1, 11), repeat=3)
        if max(w) == 1
    )
    found = learn(original, masked, "maxitive", order=1, held_out=False, random_state=0)
    assert found.value >= grid - 1 / 30  # coordinates may end one short of the best
    richer = learn(original, masked, "maxitive", order=3, held_out=False, random_state=0)
    assert richer.value >= learn(original, masked, held_out=False, random_state=0).value


@pytest.mark.parametrize("order", [1, 2, 3])
def test_many_variables(order):
    rng = np.random.default_rng(0)
    original = rng.normal(size=(40, 10))
    masked = original + rng.normal(size=(40, 10)) * rng.uniform(0.3, 3, size=10)
    found = learn(original, masked, "maxitive", order=order, effort="quick", random_state=0)
    assert found.value >= max(found.simpler.values())
    assert found.links <= found.most
    assert found.held_out.n == 40
    plain = learn(original, masked, effort="quick", held_out=False, random_state=0)
    assert found.links >= plain.links


def test_certified_by_dominance_only():
    rng = np.random.default_rng(0)
    original = rng.normal(size=(30, 3))
    masked = original + rng.normal(size=(30, 3))
    best = certify(original, masked, "maxitive", effort="quick", random_state=0)
    assert "beats in every variable" in best.method
    assert best.links <= best.most
    sides = align_tables(original, masked)
    for _ in range(50):
        member = drawn(rng, 3, 2)
        counted = link(sides, distance=member)
        assert ((counted.nearer == 0) & (counted.tied == 1)).sum() <= best.most


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: MaxitiveChoquet([1, 1], 2, 3), BadOptionError, "order=3"),
        (lambda: MaxitiveChoquet([1, 1], 2, 0), BadOptionError, "order=0"),
        (lambda: MaxitiveChoquet([1, 1], 2, True), BadOptionError, "order=True"),
        (lambda: MaxitiveChoquet([1, 1, 1], 2), BadOptionError, "2 numbers"),
        (lambda: MaxitiveChoquet([0, 0], 2), BadOptionError, "not all of them 0"),
        (lambda: MaxitiveChoquet([-1, 1], 2), BadOptionError, "at least 0"),
        (lambda: MaxitiveChoquet([1], "one"), BadOptionError, "variables"),
        (lambda: MaxitiveChoquet.largest(40, order=10), BadOptionError, "sets have a number"),
        (lambda: MaxitiveChoquet.largest(3).evaluate([[1.0]]), BadOptionError, "variables"),
        (
            lambda: learn(ORIGINAL, MASKED, "maxitive", order=3, random_state=0),
            BadOptionError,
            "order=3",
        ),
        (
            lambda: certify(ORIGINAL, MASKED, "maxitive", order=0, random_state=0),
            BadOptionError,
            "order=0",
        ),
    ],
)
def test_bad_options(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_sets_are_all_sets():
    for d, order in ((4, 2), (5, 3), (3, 3)):
        expected = [set(s) for k in range(1, order + 1) for s in combinations(range(d), k)]
        assert [set(line) for line in sets_of(d, order).tolist()] == expected
