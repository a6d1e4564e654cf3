"""One door for all attacks: the masker's parameters are what the intruder knows."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tessella.exceptions import AttackError, BadOptionError, UnknownOptionError
from tessella.masking import FuzzyMicroaggregation, NoiseAddition, RankSwapping
from tessella.risk import Estimate, attack
from tessella.risk.transparency.scene import Candidates

PAGE = Path(__file__).parents[3] / "docs" / "attacks.md"


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(50, 3)), columns=list("abc"))


def test_a_masker_and_a_description_agree(table):
    masker = RankSwapping(20, random_state=0)
    masked = masker.fit_transform(table)
    one = attack(table, masked, masker)
    two = attack(table, masked, {"method": "rank swapping", "percent": 20})
    three = attack(table, masked, "rank swapping", percent=20)
    assert isinstance(one, Candidates)
    assert isinstance(one, Estimate)
    assert str(one) == str(two) == str(three)
    assert one.assumptions == three.assumptions


def test_a_masker_that_was_not_fitted(table):
    """Columns that were not masked must agree: the intruder reads them off."""
    named = table.assign(weight=np.arange(50) + 1.0, who=range(50))
    masker = RankSwapping(20, columns=["a", "b"], random_state=0)
    masked = masker.fit_transform(named)
    fresh = RankSwapping(20, columns=["a", "b"])
    found = attack(named, masked, fresh, id="who")
    assert (found.size == 1).all()
    assert "released as they are, so equal in both tables: c, weight" in found.explain()


def test_weights_change_the_scale(table):
    """A masker with weights measures columns in weighted deviations, and so does the attack."""
    rng = np.random.default_rng(1)
    weighted = table.assign(w=rng.random(50) ** 4 + 0.01)
    masker = FuzzyMicroaggregation(5, m2=1.5, weights="w", random_state=0)
    masked = masker.fit_transform(weighted)
    found = attack(weighted, masked, masker, known=list("abc"), effort="quick")
    w, units = weighted["w"], {}
    for name in "abc":
        mean = np.average(table[name], weights=w)
        units[name] = float(np.sqrt(np.average((table[name] - mean) ** 2, weights=w)))
    options = {"m2": 1.5, "columns": list("abc"), "known": list("abc"), "effort": "quick"}
    given = attack(weighted, masked, "fuzzy microaggregation", scale=units, **options)
    plain = attack(weighted, masked, "fuzzy microaggregation", **options)
    assert found.belief == pytest.approx(given.belief)
    assert found.belief != pytest.approx(plain.belief)


def test_it_prints_well(table):
    masker = RankSwapping(20, random_state=0)
    found = attack(table, masker.fit_transform(table), masker, effort="quick")
    assert str(found).startswith(f"{100 * found.value:.1f} % of 50 records (all of them;")
    assert "the truth always among them" in str(found)
    assert found.explain().splitlines()[1] == "- known: a, b, c"


def test_what_no_attack_knows(table):
    with pytest.raises(AttackError, match="No attack here knows the method of NoiseAddition"):
        attack(table, table, NoiseAddition())
    with pytest.raises(AttackError, match="moved numbers once more to keep its rules"):
        attack(table, table, RankSwapping(20, rules="a <= b"))
    with pytest.raises(UnknownOptionError, match="swapping"):
        attack(table, table, {"method": "swapping"})
    with pytest.raises(BadOptionError, match="rank swapping"):
        attack(table, table, {"percent": 3})


def test_the_page_is_true():
    assert doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8").failed == 0
