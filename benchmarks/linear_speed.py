"""Linear systems: projecting and rounding 100,000 records, beside SciPy on a few of them.

SciPy has no solver for many small problems at once: it is timed on few records, and the table gives
its seconds for as many as ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp, minimize

from benchmarks.tables import table
from benchmarks.univariate import best_of_three
from tessella.linear import LinearSystem, round_whole

Floats = NDArray[np.float64]


def with_slsqp(system: LinearSystem, X: Floats) -> Floats:
    """SciPy's projection, one record after the other."""
    rows = [
        {"type": "eq", "fun": lambda v: system.A @ v - system.b, "jac": lambda _: system.A},
        {"type": "ineq", "fun": lambda v: system.h - system.G @ v, "jac": lambda _: -system.G},
    ]
    found = [
        minimize(
            lambda v, x=x: ((v - x) ** 2).sum(),
            x,
            jac=lambda v, x=x: 2 * (v - x),
            method="SLSQP",
            constraints=rows,
            options={"ftol": 1e-14, "maxiter": 300},
        ).x
        for x in X
    ]
    return np.array(found)


def with_milp(system: LinearSystem, X: Floats) -> Floats:
    """SciPy's rounding, one record after the other: the least sum of moves."""
    d = X.shape[1]
    eye, none = np.eye(d), np.zeros_like(system.A)
    found = []
    for x in X:
        rows = [
            LinearConstraint(np.hstack([system.A, none]), system.b, system.b),
            LinearConstraint(np.hstack([eye, -eye]), -np.inf, x),
            LinearConstraint(np.hstack([-eye, -eye]), -np.inf, -x),
        ]
        cost, whole = np.repeat([0.0, 1.0], d), np.repeat([1, 0], d)
        found.append(milp(cost, integrality=whole, bounds=Bounds(0), constraints=rows).x[:d])
    return np.rint(found)


def projecting(n: int, few: int) -> list[dict[str, object]]:
    """Ten columns, five equations and five inequalities, records around a feasible point."""
    rng = np.random.default_rng(0)
    A, G = rng.integers(-2, 3, size=(2, 5, 10)).astype(float)
    inside = rng.normal(size=10) * 10
    system = LinearSystem(A, A @ inside, G, G @ inside + 1)
    X = inside + rng.normal(size=(n, 10)) * 5
    V = system.project(X)
    peer = with_slsqp(system, X[:few])
    return [
        {
            "what": "project, 10 columns, 5 equations, 5 inequalities",
            "n": n,
            "seconds": best_of_three(lambda: system.project(X)),
            "scipy_seconds": best_of_three(lambda: with_slsqp(system, X[:few])) * n / few,
            "worst_violation": float(system.violation(V).relative.max()),
            "nearer_than_scipy_by": float(
                (((peer - X[:few]) ** 2).sum(axis=1) - ((V - X)[:few] ** 2).sum(axis=1)).max()
            ),
        }
    ]


def rounding(n: int, few: int) -> list[dict[str, object]]:
    """Sums of ten, sums of sums, and 1.16 a + 1.07 b = t, all in whole numbers >= 0."""
    rng = np.random.default_rng(1)
    parts = rng.lognormal(2, 1.5, size=(n, 10))
    ten = LinearSystem.equalities([[1] * 10 + [-1]], [0])
    A = np.zeros((3, 13))
    A[0, :5] = A[1, 5:10] = A[2, 10:12] = 1
    A[0, 10] = A[1, 11] = A[2, 12] = -1
    halves = [parts[:, :5].sum(axis=1), parts[:, 5:].sum(axis=1)]
    taxed = rng.uniform(10, 500, size=(n, 2))
    cases = [
        ("round, a sum of ten", ten, np.column_stack([parts, parts.sum(axis=1)])),
        (
            "round, two sums of five and their sum",
            LinearSystem.equalities(A, np.zeros(3)),
            np.column_stack([parts, *halves, parts.sum(axis=1)]),
        ),
        (
            "round, 1.16 a + 1.07 b == t",
            LinearSystem.equalities([[1.16, 1.07, -1]], [0]),
            np.column_stack([taxed, taxed @ [1.16, 1.07]]),
        ),
    ]
    rows: list[dict[str, object]] = []
    for what, system, X in cases:
        ours = round_whole(X, system, low=0)
        peer = with_milp(system, X[:few])
        rows.append(
            {
                "what": what,
                "n": n,
                "seconds": best_of_three(lambda s=system, X=X: round_whole(X, s, low=0)),
                "scipy_seconds": best_of_three(lambda s=system, X=X: with_milp(s, X[:few]))
                * n
                / few,
                "proved_nearest": float(ours.nearest.mean()),
                "distance": float(np.sqrt(ours.distance[:few]).mean()),
                "scipy_distance": float(np.sqrt(((peer - X[:few]) ** 2).sum(axis=1)).mean()),
            }
        )
    return rows


def measure(n: int = 100_000, few: int = 50) -> list[dict[str, object]]:
    return [*projecting(n, few), *rounding(n, few)]


def page() -> str:
    rows = [
        {
            "what": row["what"],
            "records": f"{row['n']:,}",
            "seconds": f"{row['seconds']:.2f}",
            "SciPy, scaled from 50 records": f"{row['scipy_seconds']:.0f}",
        }
        for row in measure()
    ]
    return (
        "## Linear rules: projecting and rounding\n\nNearest points that keep all rows, and "
        "nearest whole numbers that do; SciPy (SLSQP, MILP) one record after the other.\n\n"
        + table(rows)
    )


def main() -> None:
    for row in measure():
        print({name: f"{x:.3g}" if isinstance(x, float) else x for name, x in row.items()})


if __name__ == "__main__":
    main()
