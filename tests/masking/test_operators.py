"""One value for each group: medians, medoids, by hand and against the obvious way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella import Rules, Schema
from tessella.frame import View
from tessella.masking.parts import BlockCells, group_means, log_means, lower_medians, medoids
from tessella.plan.plan import cases_of


def data_of(**columns):
    table = pd.DataFrame(columns)
    numeric = pd.api.types.is_numeric_dtype
    kinds = {n: "continuous" if numeric(table[n]) else "nominal" for n in table}
    schema = Schema({name: {"kind": kind} for name, kind in kinds.items()})
    return BlockCells.read(View(table, schema), list(table))


def claims(*lines):
    return [claim for rule in Rules(lines) for claim in cases_of(rule)[0]]


def naive_lower_median(values, weights):
    order = sorted(range(len(values)), key=lambda i: (values[i], i))
    gone, half = 0.0, sum(weights) / 2
    for i in order:
        gone += weights[i]
        if gone >= half * (1 - 1e-12):
            return i
    return order[-1]


@given(st.integers(0, 10**6))
def test_lower_medians(seed):
    random = np.random.default_rng(seed)
    n, count = int(random.integers(1, 30)), int(random.integers(1, 5))
    labels = np.concatenate([np.arange(count), random.integers(0, count, n)])
    values = random.integers(0, 5, len(labels)).astype(float)
    weights = random.integers(1, 4, len(labels)).astype(float)
    found = lower_medians(values, weights, labels, count)
    for group in range(count):
        own = np.flatnonzero(labels == group)
        expected = own[naive_lower_median(values[own], weights[own])]
        assert values[found[group]] == values[expected]
        assert labels[found[group]] == group


def test_the_lower_median_of_an_even_group_is_a_value():
    values = np.array([1.0, 3.0, 7.0, 9.0])
    found = lower_medians(values, np.ones(4), np.zeros(4, dtype=np.int64), 1)
    assert values[found] == [3.0]


def test_means():
    labels = np.array([0, 0, 1])
    assert group_means(
        np.array([[1.0], [3.0], [5.0]]), np.array([3.0, 1, 1]), labels, 2
    ).tolist() == [
        [1.5],
        [5.0],
    ]
    assert log_means(np.array([[2.0], [8.0], [5.0]]), np.ones(3), labels, 2) == pytest.approx(
        np.array([[4.0], [5.0]])
    )


def test_medoids_are_obedient_records():
    points = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    labels = np.array([0, 0, 0, 1, 1, 1])
    everyone = np.ones(6, dtype=bool)
    assert medoids(points, np.ones(6), labels, 2, everyone).tolist() == [1, 4]
    some = np.array([True, False, False, False, False, False])
    assert medoids(points, np.ones(6), labels, 2, some).tolist() == [0, 0]
    assert medoids(points, np.ones(6), labels, 2, ~everyone).tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a <= 2", [1, 1, -1]), ("a < 2", [1, -1, -1]), ("a + b == 4", [-1, 1, -1]),
        ("a in {1, 3}", [1, -1, 1]), ('t == "u"', [1, -1, 1]), ('t in {"v"}', [-1, 1, -1]),
        ("a * b == 4", [-1, 1, -1]), ("a * b <= 4", [1, 1, -1]), ("observed(a)", [1, 1, 1]),
        ('(a, t) in {(1, "u"), (2, "v")}', [1, 1, -1]), ("a ** 2 + b == 6", [-1, 1, -1]),
        ("known(a)", [1, 1, 1]), ("missing(a)", [-1, -1, -1]), ("a + b == 5 ± 1", [-1, 1, 1]),
    ],
)  # fmt: skip
def test_claims_are_judged_as_rules_are(line, expected):
    """Independent: the confrontation of the same rule."""
    data = data_of(a=[1.0, 2.0, 3.0], b=[1.0, 2.0, 3.0], t=["u", "v", "u"])
    signs = np.min([data.signs(claim) for claim in claims(line)], axis=0)
    assert signs.tolist() == expected
    assert Rules([line]).confront(data.view.table).signs[:, 0].tolist() == expected


def test_missing_means_unknown():
    data = data_of(a=[1.0, np.nan], b=[1.0, 2.0])
    assert data.signs(claims("a <= b")[0]).tolist() == [1, 0]
