"""Nearest points under sums, products and both, against a solver of SciPy's."""

from __future__ import annotations

import operator as op
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tessella import Rules
from tessella.exceptions import ContradictionError
from tessella.masking.repair import Grid, project_claims
from tessella.masking.repair_dates import nearest_dates
from tessella.masking.repair_products import project_mixed, project_products
from tessella.plan.plan import cases_of
from tests.amounts import few_or_many, try_examples


def claims(*lines):
    return [claim for rule in Rules(lines) for claim in cases_of(rule)[0]]


def grid(names, unit=None, whole=()):
    ends = np.full(len(names), np.inf)
    return Grid(
        columns=tuple(names),
        unit=np.ones(len(names)) if unit is None else np.asarray(unit, dtype=float),
        parts=tuple(1 if name in whole else None for name in names),
        low=-ends,
        high=ends,
    )


def test_linear_by_hand():
    found = project_claims(np.array([[1.0, 2.0, 6.0]]), grid("abc"), claims("a + b == c"), {})
    assert found == pytest.approx(np.array([[2.0, 3.0, 5.0]]))


def test_the_metric_decides_who_moves():
    far = grid("abc", unit=[1e6, 1.0, 1.0])
    found = project_claims(np.array([[1.0, 2.0, 6.0]]), far, claims("a + b == c"), {})
    assert found == pytest.approx(np.array([[4.0, 2.0, 6.0]]), abs=1e-5)


def test_strict_bounds():
    whole = project_claims(np.array([[16.7]]), grid("a", whole="a"), claims("a < 17"), {})
    assert whole.tolist() == [[16.0]]
    real = project_claims(np.array([[19.0]]), grid("a"), claims("a < 17"), {})
    assert 16.9 < real[0, 0] < 17


def test_a_stratum_is_a_constant():
    found = project_claims(np.array([[9.0]]), grid("a"), claims("a <= limit"), {"limit": 4.0})
    assert found.tolist() == [[4.0]]


def test_contradictory_claims_are_named():
    with pytest.raises(ContradictionError, match="R1"):
        project_claims(np.zeros((1, 1)), grid("a"), claims("a >= 3", "a <= 2"), {})


def test_products_by_hand():
    """log(2) + log(2) against log(16): each log moves by a third of log(4), c the other way."""
    values = np.array([[2.0, 2.0, 16.0]])
    found = project_products(values, grid("abc"), claims("a * b == c"), {}, np.zeros(3), np.ones(3))
    third = 4 ** (1 / 3)
    assert found == pytest.approx(np.array([[2 * third, 2 * third, 16 / third]]))


def test_zeros_stay_zeros():
    found = project_products(
        np.array([[5.0, 0.0, 0.0]]), grid("abc"), claims("a * b == c"), {},
        np.zeros(3), np.array([1.0, 0.0, 0.0]),
    )  # fmt: skip
    assert found[0] == pytest.approx([5.0, 0.0, 0.0])
    assert not np.signbit(found).any()


def test_whole_products():
    found = project_products(
        np.array([[2.6, 3.4, 9.0]]), grid("abc", whole="abc"), claims("c == a * b"), {},
        np.zeros(3), np.ones(3),
    )  # fmt: skip
    assert (found == np.round(found)).all()
    assert found[0, 0] * found[0, 1] == found[0, 2]


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_sums_and_products_together(seed):
    """An independent way: SLSQP from the same point; ours is never farther."""
    random = np.random.default_rng(seed)
    names, unit = list("abcde"), random.uniform(0.5, 2, 5)
    truth = random.uniform(1, 4, 5)
    truth[2], truth[4] = truth[0] * truth[1], truth[0] * truth[1] + truth[3]
    target = truth + random.normal(0, 0.2, 5)
    lines = ("c == a * b", "c + d == e")
    found = project_mixed(
        target[None], grid(names, unit), claims(*lines), {}, np.zeros(5, dtype=bool)
    )[0]
    assert found[2] == pytest.approx(found[0] * found[1], rel=1e-12)
    assert found[4] == pytest.approx(found[2] + found[3], rel=1e-12)
    other = minimize(
        lambda v: (((v - target) / unit) ** 2).sum(), target, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
        constraints=[
            {"type": "eq", "fun": lambda v: v[2] - v[0] * v[1]},
            {"type": "eq", "fun": lambda v: v[2] + v[3] - v[4]},
        ],
    )  # fmt: skip
    ours = (((found - target) / unit) ** 2).sum()
    assert ours <= other.fun * (1 + 1e-4) + 1e-9


def test_inequalities_hold_beside_products():
    found = project_mixed(
        np.array([[4.0, 4.0, 10.0]]), grid("abc"), claims("c == a * b", "a <= 2"), {},
        np.zeros(3, dtype=bool),
    )[0]  # fmt: skip
    assert found[0] <= 2 + 1e-9
    assert found[2] == pytest.approx(found[0] * found[1])


# One strictness through both doors: a plan's groups and the records of a masker


def through_protect(table, rule):
    from tessella import protect

    return protect(table, k=3, rules=[rule], random_state=0).table


def through_a_masker(table, rule):
    from tessella.masking import NoiseAddition

    return NoiseAddition(0.5, rules=[rule], random_state=0).fit_transform(table)


DOORS = pytest.mark.parametrize("door", [through_protect, through_a_masker])


@DOORS
def test_less_between_whole_numbers_is_at_most_one_less(door):
    random = np.random.default_rng(0)
    low = random.integers(0, 50, 60)
    table = pd.DataFrame({"low": low, "high": low + random.integers(1, 3, 60)})
    released = door(table, "low < high")
    assert (released.low <= released.high - 1).all()
    assert (released.low == released.high - 1).any()


@DOORS
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_less_between_real_numbers_has_the_stated_margin(door, far):
    """A millionth of the larger standard deviation, or what confronting takes for rounding."""
    random = np.random.default_rng(1)
    table = pd.DataFrame({"low": far + random.normal(size=60)})
    table["high"] = table.low + random.choice([-1.0, 0.001, 1.0], 60)  # some break the rule
    released = door(table, "low < high")
    gap = (released.high - released.low).min()
    unit = table.std(ddof=0).max()
    assert Rules(["low < high"]).confront(released).all_hold
    if far:
        assert 1e-9 * 2 * far < gap < 64e-9 * 2 * far
    else:
        assert gap == pytest.approx(1e-6 * unit, rel=1e-3)


COMPARE = {"<": op.lt, "<=": op.le, "==": op.eq, "!=": op.ne, ">=": op.ge, ">": op.gt}
DAY = 86_400 * 10**6


def dates_against_every_combination(steps, data):
    # in half days, a column of days, of half days or of microseconds; all within three days
    sides = st.one_of(
        st.integers(0, len(steps) - 1), st.integers(1, 5).map(lambda half: (half * DAY // 2,))
    )
    orders = data.draw(
        st.lists(st.tuples(sides, st.sampled_from(list(COMPARE)), sides), min_size=1, max_size=4)
    )
    orders += [
        (at, sign, (end,)) for at in range(len(steps)) for sign, end in ((">=", 0), ("<=", 3 * DAY))
    ]
    dates = np.array([data.draw(st.integers(0, 3 * DAY // step)) * step for step in steps])
    # three columns and constants use at most three more microseconds beside a half day
    choices = [
        [v for half in range(7) for more in range(-3, 4) if 0 <= (v := half * DAY // 2 + more)
         <= 3 * DAY and v % step == 0] for step in steps
    ]  # fmt: skip

    def keeps(point):
        value = [end[0] if isinstance(end, tuple) else point[end] for o in orders for end in o[::2]]
        return all(COMPARE[o[1]](*value[2 * i : 2 * i + 2]) for i, o in enumerate(orders))

    found = nearest_dates(dates[None], steps, orders)
    if found is None:
        assert not any(map(keeps, product(*choices)))
    else:
        assert keeps(found[0])
        assert not (found[0] % np.array(steps)).any()
        if keeps(dates):
            assert found[0].tolist() == dates.tolist()


@few_or_many(80, 300)
def test_dates_against_every_combination(count):
    try_examples(
        count,
        dates_against_every_combination,
        steps=st.lists(st.sampled_from([1, 1, DAY // 2, DAY]), min_size=2, max_size=3),
        data=st.data(),
    )
