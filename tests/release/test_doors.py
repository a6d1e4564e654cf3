"""One answer by every door: the same seed and table give the same release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella import Microaggregation, Study, protect
from tessella.explore import Candidate
from tessella.masking import NoiseAddition


def firms(n: int = 60) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame({name: random.lognormal(3, 1, n) for name in ("costs", "profit")})


def test_microaggregation_is_a_plan_without_rules() -> None:
    table = firms()
    masked = Microaggregation(3, random_state=0).fit_transform(table)
    pd.testing.assert_frame_equal(masked, protect(table, k=3, random_state=0).table)
    study = Study(table, random_state=0).do("microaggregation", k=3)
    pd.testing.assert_frame_equal(masked, study.table)


def test_strata_are_grouped_alike() -> None:
    table = firms().assign(region=["north", "south", "west"] * 20)
    masked = Microaggregation(3, strata="region", random_state=1).fit_transform(table)
    released = protect(table, k=3, strata="region", random_state=1).table
    pd.testing.assert_frame_equal(masked, released)


def test_floats_that_are_all_whole_stay_whole() -> None:
    """Means of 15, 16 and 16 are 15.67: it was released by one door, and 16 by the other."""
    table = pd.DataFrame({"x": [15.0, 16, 16, 40, 41, 41], "y": [1.5, 2, 3, 8, 9, 10]})
    masked = Microaggregation(3, random_state=0).fit_transform(table)
    assert masked["x"].tolist() == [16.0] * 3 + [41.0] * 3
    pd.testing.assert_frame_equal(masked, protect(table, k=3, random_state=0).table)
    exact = Microaggregation(3, round_integers=False, random_state=0).fit_transform(table)
    assert exact["x"][0] == 47 / 3


@pytest.mark.parametrize("seed", [0, 7])
def test_one_seed_gives_one_noise(seed: int) -> None:
    """Bug once met: a Study gave another table than its masker for the same integer."""
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 3)), columns=list("abc"))
    alone = NoiseAddition(amount=0.3, random_state=seed).fit_transform(table)
    study = Study(table.assign(id=range(60)), random_state=seed).do("drop", columns=["id"])
    pd.testing.assert_frame_equal(study.do("noise", amount=0.3).table, alone)
    candidate = Candidate("noise", amount=0.3)
    pd.testing.assert_frame_equal(candidate.mask(table, random_state=seed), alone)


def test_a_seed_of_more_than_32_bits() -> None:
    table = firms()
    first, again = (Study(table, random_state=2**40).do("noise", amount=0.1) for _ in range(2))
    pd.testing.assert_frame_equal(first.table, again.table)
    assert protect(table, k=3, random_state=2**40).audit.passed
