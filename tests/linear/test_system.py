"""Linear systems: who breaks them, what follows, and which rows exclude each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from tessella.datasets import load_expenditure
from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    ContradictionError,
    UnknownColumnError,
)
from tessella.linear import LinearSystem
from tests.amounts import few_or_many, try_examples
from tests.linear.systems import feasible

SUM = LinearSystem([[1, 1, -1]], [0], [[0, 1, -1]], [0], columns=["net", "tax", "gross"])


# by hand


def test_rows_are_written_out():
    system = LinearSystem.equalities([[0, 0, 2], [0, 1, 0], [1.16, 1.07, -1]], [1, 0, 0])
    assert system.names[2] == "row 3: 1.16*v1 + 1.07*v2 - v3 == 0"
    assert repr(SUM).splitlines()[2] == "  row 2: tax - gross <= 0"


def test_violation_in_units_and_in_shares_of_the_scale():
    found = SUM.violation([[80.0, 20.0, 100.0], [80.0, 30.0, 100.0], [1.0, 5.0, 3.0]])
    assert found.absolute.tolist() == [[0, 0], [10, 0], [3, 2]]
    assert found.relative == pytest.approx(np.array([[0, 0], [10 / 210, 0], [3 / 9, 2 / 8]]))
    assert SUM.holds([[80.0, 20.0, 100.0], [80.0, 30.0, 100.0]]).tolist() == [True, False]


def test_missing_is_not_known_to_hold():
    assert np.isnan(SUM.violation([[np.nan, 1.0, 2.0]]).relative[0, 0])
    assert SUM.holds([[np.nan, 1.0, 2.0]]).tolist() == [False]


def test_no_rows_hold_everywhere():
    nothing = LinearSystem(columns=["a", "b"])
    assert nothing.n_rows == 0
    assert nothing.holds(np.zeros((3, 2))).all()
    assert (nothing.project(np.ones((3, 2))) == 1).all()
    assert nothing.implied() == []


def test_rescaled_says_the_same():
    rng = np.random.default_rng(0)
    centre, unit = rng.normal(size=3) * 1e3, np.array([1e6, 1.0, 1e-3])
    X = rng.normal(size=(50, 3)) * 1e3
    there = SUM.rescaled(centre, unit).violation((X - centre) / unit)
    assert there.absolute == pytest.approx(SUM.violation(X).absolute, abs=1e-8)


def test_many_digits_make_no_contradiction():
    """A bug once met: a <= and a >= the same number of 16 digits, and one row was called false."""
    far = 1234567890123456
    system = LinearSystem.inequalities([[-1], [1]], [-far, far])
    assert system.contradiction == ()
    assert system.project([[float(far)]]).tolist() == [[far]]


def test_a_far_centre_makes_no_contradiction():
    """A bug once met: b - A centre is all rounding, which is not the same in each row."""
    A = np.array([[1, 1, -1], [0.3, 0.3, -0.3], [0.7, 0.7, -0.7]])
    system = LinearSystem(A, np.zeros(3), [[-0.1, -0.1, 0.1], [1, 0, -1]], np.zeros(2))
    rng = np.random.default_rng(1)
    for _ in range(20):
        parts = rng.uniform(1e6, 1e7, size=(100, 2))
        X = np.column_stack([parts, parts.sum(axis=1)]) / 7
        centre, unit = X.mean(axis=0), np.array([1.0, 0.1, 1e-2])
        scaled = system.rescaled(centre, unit)
        scaled.check()
        assert len(scaled.redundant) == 2
        Z = rng.normal(size=(50, 3))
        V = centre + unit * scaled.project(Z)
        assert system.holds(V, tolerance=1e-12).all()
        assert scaled.merged(scaled).contradiction == ()
        assert scaled.part([2, 0, 1]).contradiction == ()


def test_part_and_merged():
    other = LinearSystem.inequalities([[1, 0]], [7], columns=["wage", "net"], names=["cap"])
    both = SUM.merged(other)
    assert both.columns == ("net", "tax", "gross", "wage")
    assert both.G.tolist() == [[0, 1, -1, 0], [0, 0, 0, 1]]
    assert both.names == (*SUM.names, "cap")
    assert both.part(["wage"]).names == ("cap",)
    back = both.part(["gross", "net", "tax"])
    assert back.A.tolist() == [[-1, 1, 1]]
    with pytest.raises(BadOptionError, match="also the other columns of 'row 1"):
        both.part(["net", "wage"])
    with pytest.raises(UnknownColumnError, match="Did you mean 'gross'"):
        both.part(["gros"])


def test_merged_without_names():
    one = LinearSystem.equalities([[1, -1]], [0])
    assert one.merged(LinearSystem.inequalities([[1, 0]], [3])).n_rows == 2
    with pytest.raises(BadOptionError, match="2 columns"):
        one.merged(LinearSystem.equalities([[1, 1, 1]], [0]))
    with pytest.raises(BadOptionError, match="named columns"):
        one.merged(SUM)


def test_redundant_equations_are_remembered_by_name():
    A = [[1, 1, -1, 0], [0, 1, 1, -1], [1, 2, 0, -1], [0.1, 0.3, 0.1, -0.2]]
    system = LinearSystem.equalities(A, [0, 0, 0, 0], names=["a", "b", "a + b", "a/10 + b/5"])
    assert system.redundant == ("a + b", "a/10 + b/5")
    assert system.contradiction == ()
    reasons = {one.row: one.because for one in system.implied()}
    assert reasons == {"a + b": ("a", "b"), "a/10 + b/5": ("a", "b")}


def test_redundant_up_to_the_rounding_of_a_coefficient():
    system = LinearSystem.equalities([[1.07, -1], [np.nextafter(1.07, 2), -1]], [0, 0])
    assert len(system.redundant) == 1


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1.0, 1e6, 1e12])
def test_small_and_large_contradictions_are_found(unit):
    rows = [[1, 0], [0, 1], [0, -1]]
    system = LinearSystem.inequalities(rows, [1e6, 1e-3 * unit, -2e-3 * unit], names=list("abc"))
    with pytest.raises(ContradictionError, match="these 2 rules together") as caught:
        system.check()
    assert caught.value.rows == ("b", "c")
    LinearSystem.inequalities(rows, [1e6, 2e-3 * unit, -2e-3 * unit]).check()


def test_contradictory_equations_name_the_circuit_only():
    A = [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]]
    system = LinearSystem.equalities(A, [1e6, 2, 1e6 + 2.1, 5], names=list("abcd"))
    assert system.contradiction == ("a", "b", "c")


def test_a_row_that_is_false_alone():
    assert LinearSystem.equalities([[0, 0]], [1]).contradiction == ("row 1: 0 == 1",)
    with pytest.raises(ContradictionError, match="obey this rule: 'row 2: 0 <= -1'"):
        LinearSystem([[1, 0]], [0], [[0, 0]], [-1]).check()


def test_equations_and_bounds_contradict():
    """Three parts of at least 40 do not add up to 100; the fourth row has no part in it."""
    system = LinearSystem(
        [[1, 1, 1]],
        [100],
        [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 0, 0]],
        [-40, -40, -40, 90],
        names=["sum", "a", "b", "c", "cap"],
    )
    assert system.contradiction == ("sum", "a", "b", "c")


def test_always_true_and_repeated_rows():
    system = LinearSystem(
        [[0, 0]], [0], [[1, 0], [0, 0], [2, 0], [1, 0]], [1, 5, 2, 3], names=list("eabcd")
    )
    told = {one.row: one.because for one in system.implied()}
    assert told == {"e": (), "b": (), "c": ("a",), "d": ("a",)}
    assert str(system.implied()[0]) == "'e' is always true"


def test_an_equation_that_two_bounds_say():
    system = LinearSystem([[1, 0]], [3], [[1, 0], [-1, 0]], [3, -3], names=["x", "upper", "lower"])
    told = {one.row: one.because for one in system.implied()}
    assert told == {"upper": ("x",), "lower": ("x",)}
    loose = LinearSystem([[1, 0]], [3], [[1, 0], [-1, 0]], [4, -3.5], names=["x", "u", "l"])
    assert loose.contradiction == ("x", "l")


def test_the_expenditure_tables():
    rule = LinearSystem.equalities([[1.16, 1.07, -1]], [0], columns=["at_16", "at_7", "total"])
    assert rule.holds(load_expenditure(frame="numpy")).all()
    assert not rule.holds(load_expenditure(noisy=True, frame="numpy")).any()
    printed = rule.violation(load_expenditure(as_printed=True, frame="numpy")).absolute
    assert printed[-1, 0] == pytest.approx(3.48)


# bad input


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"A": [[1, 2]], "b": [1, 2]}, "1 numbers, one for each row of A"),
        ({"A": [[1, 2]]}, "both A and b"),
        ({"A": [[1, 2]], "b": [np.nan]}, "finite numbers"),
        ({"A": [["a", 2]], "b": [0]}, "numbers"),
        ({"A": [[1, 2]], "b": [0], "G": [[1, 2, 3]], "h": [0]}, "2 columns"),
        ({"A": [[1, 2]], "b": [0], "names": ["a", "b"]}, "one name for each of 1 rows"),
        ({"A": [[1, 2]], "b": [0], "columns": ["a", "a"]}, "2 different names"),
        ({}, "a matrix"),
    ],
)
def test_bad_rows(arguments, told):
    with pytest.raises(BadOptionError, match=told):
        LinearSystem(**arguments)


def test_bad_records():
    import pandas as pd

    with pytest.raises(BadTableError, match=r"about 3 columns, and the table has shape \(1, 2\)"):
        SUM.holds([[1.0, 2.0]])
    with pytest.raises(BadTableError, match="reads arrays, and was given a DataFrame"):
        SUM.holds(pd.DataFrame({"gross": [1.0], "net": [2.0], "tax": [3.0]}))
    with pytest.raises(BadTableError, match="cells that are none"):
        SUM.holds([["1", "2", "3"]])


# an independent way, and invariants


@given(feasible())
def test_systems_with_a_solution_do_not_contradict_themselves(made):
    system, point = made
    assert system.contradiction == ()
    assert system.holds(point[None]).all()
    assert len(system.redundant) == len(system.b) - np.linalg.matrix_rank(system.A, tol=1e-9)


def what_is_implied_may_be_left_out(made):
    system, _ = made
    names = [f"r{i}" for i in range(system.n_rows)]
    system = LinearSystem(system.A, system.b, system.G, system.h, names=names)
    out = [names.index(one.row) for one in system.implied()]
    for one in system.implied():
        assert not {names.index(name) for name in one.because} & set(out)
    m = len(system.b)
    rest = [i for i in range(system.n_rows) if i not in out]
    equal, unequal = [i for i in rest if i < m], [i - m for i in rest if i >= m]
    for i in out:
        row, right = (system.A[i], system.b[i]) if i < m else (system.G[i - m], system.h[i - m])
        for sign in (1, -1) if i < m else (1,):
            found = linprog(
                -sign * row,
                A_ub=system.G[unequal] if unequal else None,
                b_ub=system.h[unequal] if unequal else None,
                A_eq=system.A[equal] if equal else None,
                b_eq=system.b[equal] if equal else None,
                bounds=(None, None),
            )
            assert found.status == 0
            assert -found.fun <= sign * right + 1e-6


@few_or_many(35, 100)
def test_what_is_implied_may_be_left_out(count):
    """The rest has the same solutions: each row left out is bounded by the rest, by HiGHS."""
    try_examples(count, what_is_implied_may_be_left_out, feasible())


@given(
    st.integers(1, 4).flatmap(
        lambda d: st.tuples(
            st.lists(st.lists(st.integers(-2, 2), min_size=d + 1, max_size=d + 1), max_size=3),
            st.lists(
                st.lists(st.integers(-2, 2), min_size=d + 1, max_size=d + 1), min_size=1, max_size=7
            ),
            st.just(d),
        )
    )
)
def test_contradictions_are_right_and_least(made):
    """Against HiGHS's own verdict: no solution with all of them, one without any of them."""
    equal, unequal, d = made
    E = np.array(equal, dtype=float).reshape(-1, d + 1)
    U = np.array(unequal, dtype=float).reshape(-1, d + 1)
    system = LinearSystem(E[:, :d], E[:, d], U[:, :d], U[:, d], names=range(len(E) + len(U)))

    def solvable(rows):
        e, u = [i for i in rows if i < len(E)], [i - len(E) for i in rows if i >= len(E)]
        found = linprog(
            np.zeros(d),
            A_ub=U[u][:, :d] if u else None,
            b_ub=U[u][:, d] if u else None,
            A_eq=E[e][:, :d] if e else None,
            b_eq=E[e][:, d] if e else None,
            bounds=(None, None),
        )
        assert found.status in (0, 2)
        return found.status == 0

    rows = [int(name) for name in system.contradiction]
    assert solvable(range(system.n_rows)) == (not rows)
    if rows:
        assert not solvable(rows)
        for row in rows:
            assert solvable([other for other in rows if other != row])
