"""Systems for the tests: random ones with a known solution, and a slow way to project."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from tessella.linear import LinearSystem


@st.composite
def feasible(draw, max_columns=6, max_rows=4):
    """A system and a point that obeys it: integer coefficients, repeated and dependent rows."""
    d = draw(st.integers(1, max_columns))
    coefficient = st.integers(-3, 3)
    row = st.lists(coefficient, min_size=d, max_size=d)
    A = np.array(draw(st.lists(row, max_size=max_rows)), dtype=float).reshape(-1, d)
    G = np.array(draw(st.lists(row, max_size=max_rows)), dtype=float).reshape(-1, d)
    if draw(st.booleans()) and len(A):
        A = np.vstack([A, 2 * A[0], A.sum(axis=0)])
    if draw(st.booleans()) and len(G):
        G = np.vstack([G, G[0], 3 * G[-1]])
    point = np.array(draw(st.lists(st.integers(-20, 20), min_size=d, max_size=d)), dtype=float)
    room = np.array(draw(st.lists(st.integers(0, 3), min_size=len(G), max_size=len(G))), float)
    return LinearSystem(A, A @ point, G, G @ point + room.reshape(len(G))), point


def slow_projection(system, x, metric=None):
    """Try every active set: least squares on its rows, the nearest feasible answer wins."""
    root = np.sqrt(np.ones(len(x)) if metric is None else np.asarray(metric, dtype=float))
    best, least = None, np.inf
    for size in range(len(system.h) + 1):
        for chosen in combinations(range(len(system.h)), size):
            rows = np.vstack([system.A, system.G[list(chosen)]])
            right = np.concatenate([system.b, system.h[list(chosen)]])
            step = np.linalg.lstsq(rows / root, right - rows @ x, rcond=1e-10)[0]
            v = x + step / root
            if (system.violation(v[None]).absolute <= 1e-7).all():
                distance = ((root * (v - x)) ** 2).sum()
                if distance < least:
                    best, least = v, distance
    return best


CENSUS = [
    "AFNLWGT",
    "AGI",
    "EMCONTRB",
    "FEDTAX",
    "PTOTVAL",
    "STATETAX",
    "TAXINC",
    "POTHVAL",
    "INTVAL",
    "PEARNVAL",
    "FICA",
    "WSALVAL",
    "ERNVAL",
]
EIA = [
    "UTILITYID",
    "RESREVENUE",
    "RESSALES",
    "COMREVENUE",
    "COMSALES",
    "INDREVENUE",
    "INDSALES",
    "OTHREVENUE",
    "OTHRSALES",
    "TOTREVENUE",
    "TOTSALES",
]


def _row(columns, **coefficients):
    return [coefficients.get(name, 0) for name in columns]


def census_rules():
    """The three rules of the table, and no negative numbers."""
    return LinearSystem(
        [_row(CENSUS, PEARNVAL=1, POTHVAL=1, PTOTVAL=-1)],
        [0],
        [_row(CENSUS, FEDTAX=1, TAXINC=-1), _row(CENSUS, TAXINC=1, AGI=-1), *-np.eye(13)],
        np.zeros(15),
        columns=CENSUS,
    )


def eia_rules():
    """Both totals."""
    revenue = dict.fromkeys(["RESREVENUE", "COMREVENUE", "INDREVENUE", "OTHREVENUE"], 1)
    sales = dict.fromkeys(["RESSALES", "COMSALES", "INDSALES", "OTHRSALES"], 1)
    A = [_row(EIA, **revenue, TOTREVENUE=-1), _row(EIA, **sales, TOTSALES=-1)]
    return LinearSystem.equalities(A, [0, 0], columns=EIA)
