"""The twelve records of the 2020 paper."""

from __future__ import annotations

import numpy as np

from tessella.datasets import load_expenditure
from tests.reference.rules import obeys


def test_the_exact_table_obeys_its_rule_and_the_noisy_one_does_not():
    for noisy in (False, True):
        table, rules = load_expenditure(noisy=noisy, return_rules=True)
        off = table["total"] - 1.16 * table["at_16"] - 1.07 * table["at_7"]
        assert ((off.abs() < 1e-9) != noisy).all()
        assert len(rules) == 1
        rounded = {"at_16": 100, "at_7": 100, "total": 223.0}
        assert obeys(rules[0], rounded)


def test_the_tables_are_those_printed():
    exact, noisy = load_expenditure(frame="numpy"), load_expenditure(noisy=True, frame="numpy")
    assert exact.shape == noisy.shape == (12, 3)
    np.testing.assert_array_equal(exact[0], [15, 23, 42.01])
    np.testing.assert_array_equal(exact[-1], [16, 100, 125.56])
    np.testing.assert_array_equal(noisy[0], [16.91695, 26.67021, 41.37696])
    np.testing.assert_array_equal(noisy[-1], [11.64466, 100.13359, 127.12980])
    printed = load_expenditure(as_printed=True, frame="numpy")
    np.testing.assert_array_equal(printed[-1], [13, 100, 125.56])
    np.testing.assert_array_equal(printed[:-1], exact[:-1])
    assert np.abs(noisy - exact).max() < 4.5  # noise of standard deviation 1.5
