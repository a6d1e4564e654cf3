"""The attack on rank swapping: by hand, against all swaps one by one, invariants, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.exceptions import AttackError, BadOptionError, LinkageError, UnknownOptionError
from tessella.masking import RankSwapping
from tessella.risk import attack, link
from tessella.risk.transparency import ranks

from .brute import possible_pairs, swapped

# Four records, 25 % is one rank: in the first variable 1 and 2 were exchanged and 3 and 4; in the
# second the same, among other records.
ORIGINAL = np.array([[1.0, 1.0], [2.0, 3.0], [3.0, 2.0], [4.0, 4.0]])
MASKED = np.array([[2.0, 2.0], [1.0, 4.0], [4.0, 1.0], [3.0, 3.0]])


def listed(found):
    return found.records.columns.tolist()


def test_windows_by_hand():
    """A value comes from the rank below or above, and never from its own."""
    found = attack(ORIGINAL, MASKED, "rank swapping", percent=25, known=[0], effort="quick")
    # 2 can come from 1 and 3; 1 only from 2; 4 only from 3; 3 from 2 and 4.
    assert found.size.tolist() == [2, 1, 1, 2]
    assert found.chance.tolist() == [0.5, 1, 1, 0.5]
    assert found.value == 0.75
    assert found.single == 0.5
    assert found.expected == 1.5
    assert found.covered == 1
    assert found.baseline == 0.25
    assert listed(found) == [
        "masked", "original", "candidates", "effective", "present", "belief", "chance",
    ]  # fmt: skip


def test_without_the_exclusion_of_the_own_rank():
    found = attack(
        ORIGINAL, MASKED, "rank swapping", percent=25, known=[0], effort="quick", everyone=False
    )
    assert found.size.tolist() == [3, 2, 2, 3]


def test_one_to_one_by_hand():
    """2 is left with 1 once 4 has taken 3."""
    found = attack(ORIGINAL, MASKED, "rank swapping", percent=25, known=[0])
    assert found.size.tolist() == [1, 1, 1, 1]
    assert found.value == 1


def test_ties_by_hand():
    """Of 1, 2, 2, 3 with one rank: 2 has ranks 2 and 3, so it can come from all."""
    original = np.array([[1.0], [2.0], [2.0], [3.0]])
    masked = np.array([[2.0], [1.0], [3.0], [2.0]])
    found = attack(original, masked, "rank swapping", percent=25, effort="quick")
    assert found.size.tolist() == [4, 2, 2, 4]
    assert found.covered == 1


def test_exchanges_by_hand():
    """Pairs whose other half is impossible go; windows alone would leave them."""
    rng = np.random.default_rng(5)
    original = rng.normal(size=(200, 2))
    masked = RankSwapping(20, random_state=0).fit_transform(original)
    quick = attack(original, masked, "rank swapping", percent=20, effort="quick")
    one = attack(original, masked, "rank swapping", percent=20, everyone=False)
    full = attack(original, masked, "rank swapping", percent=20)
    assert quick.value < 0.2
    assert one.value < 0.2
    assert full.value > 0.9
    assert full.covered == one.covered == quick.covered == 1


@given(st.data())
@settings(max_examples=60)
def test_no_possible_original_is_lost(data):
    """An independent way: enumerate every swap of every column and every assignment."""
    n = data.draw(st.integers(4, 6))
    column = st.lists(st.integers(0, 5), min_size=n, max_size=n)
    original = np.array(data.draw(st.lists(column, min_size=2, max_size=2)), dtype=float).T
    seed, percent = data.draw(st.integers(0, 100)), data.draw(st.sampled_from([25, 40, 60]))
    masked = RankSwapping(percent, random_state=seed).fit_transform(original)
    window = int(percent * n / 100)
    reachable = [swapped(original[:, v], window) for v in range(2)]
    pairs = possible_pairs([masked[:, v].tolist() for v in range(2)], reachable)
    for effort in ("quick", "standard"):
        found = attack(original, masked, "rank swapping", percent=percent, effort=effort)
        assert (found.size >= pairs.sum(axis=1)).all()
        assert found.covered == 1


def test_often_exactly_what_is_possible():
    """Without ties, two variables: what is left is what enumeration leaves, nearly always."""
    equal = total = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        original = np.column_stack([rng.permutation(6), rng.permutation(6)]).astype(float)
        masked = RankSwapping(40, random_state=seed).fit_transform(original)
        reachable = [swapped(original[:, v], 2) for v in range(2)]
        pairs = possible_pairs([masked[:, v].tolist() for v in range(2)], reachable)
        found = attack(original, masked, "rank swapping", percent=40)
        equal += int((found.size == pairs.sum(axis=1)).sum())
        total += 6
    assert equal / total > 0.8


@given(st.integers(0, 10_000), st.integers(10, 80), st.sampled_from([5, 12.5, 30, 100]))
@settings(max_examples=40)
def test_the_truth_is_always_among_them(seed, n, percent):
    """Invariant: ties, constants and missing values included; more reasons, fewer candidates."""
    rng = np.random.default_rng(seed)
    if percent * n < 300:
        percent = 30
    table = pd.DataFrame(
        {
            "few": rng.integers(0, 4, n),
            "many": rng.normal(size=n),
            "flat": np.ones(n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 50, n)),
            "kept": rng.choice(["a", "b"], n),
        }
    )
    numbers = ["few", "many", "flat", "gaps"]
    try:
        masker = RankSwapping(percent, columns=numbers, random_state=seed)
        masked = masker.fit_transform(table)
    except BadOptionError:
        return
    quick = attack(table, masked, masker, effort="quick")
    full = attack(table, masked, masker)
    assert quick.covered == full.covered == 1
    assert (full.size <= quick.size).all()
    assert (full.size >= 1).all()
    fewer = attack(table, masked, masker, known=["many", "gaps"], effort="quick")
    assert (fewer.size >= quick.size).all()


def test_rows_in_another_order():
    """Invariant: nothing is learned from the order of rows; `id` says who is who."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    masked = RankSwapping(20, random_state=1).fit_transform(table)
    plain = attack(table, masked, "rank swapping", percent=20)
    named, shuffled = table.assign(who=range(60)), masked.assign(who=range(60))
    order = rng.permutation(60)
    found = attack(named, shuffled.iloc[order], "rank swapping", percent=20, id="who")
    assert (found.size == plain.size[order]).all()
    assert (found.truth == order).all()
    half = attack(named, shuffled.iloc[order[:30]], "rank swapping", percent=20, id="who")
    assert half.covered == 1
    assert half.n == 30


def test_strata_and_frames():
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"x": rng.normal(size=80), "y": rng.normal(size=80)})
    table["region"] = np.repeat(["n", "s"], 40)
    masker = RankSwapping(10, strata="region", random_state=1)
    masked = masker.fit_transform(table)
    found = attack(table, masked, masker)
    whole = attack(
        table,
        masked,
        "rank swapping",
        percent=10,
        columns=["x", "y"],
        known=["x", "y"],
        strict=False,
    )
    assert found.covered == 1
    assert (found.size <= 8).all()
    assert whole.covered <= 1
    polars = attack(pl.from_pandas(table), pl.from_pandas(masked), masker)
    assert (polars.size == found.size).all()
    assert "he knows the stratum of each record" in found.explain()


def test_a_sample_has_an_interval():
    rng = np.random.default_rng(4)
    original = rng.normal(size=(500, 3))
    masked = RankSwapping(10, random_state=1).fit_transform(original)
    found = attack(original, masked, "rank swapping", percent=10, sample=50, random_state=0)
    whole = attack(original, masked, "rank swapping", percent=10, effort="quick")
    assert found.n == 50
    assert found.low < found.value < found.high
    assert (found.chance == whole.chance[found.attacked]).all()


@pytest.mark.parametrize("percent", [1, 8, 60])
@pytest.mark.parametrize("levels", [(900, 900, 900, 900), (7, 900, 40, 2), (3,)])
def test_windows_against_all_pairs(percent, levels):
    """By the definition, pair by pair: ranks of y, widened by w, meet ranks of x; ties included."""
    rng = np.random.default_rng(percent)
    n, w = 900, 900 * percent // 100
    original = np.column_stack([rng.integers(0, high, size=n) for high in levels]).astype(float)
    masked = RankSwapping(percent, random_state=1).fit_transform(original)
    possible = np.ones((n, n), dtype=bool)
    for x, y in zip(original.T, masked.T):
        first, last = (np.searchsorted(np.sort(x), x, side=side) for side in ("left", "right"))
        low, high = (np.searchsorted(np.sort(x), y, side=side) for side in ("left", "right"))
        possible &= (last - 1 >= low[:, None] - w) & (first <= high[:, None] - 1 + w)
    options = {"percent": percent, "everyone": False, "effort": "quick"}
    assert (attack(original, masked, "rank swapping", **options).size == possible.sum(axis=1)).all()


def test_too_many_pairs_are_only_counted(monkeypatch):
    """Beyond the largest number of pairs each record is on its own, and it is said."""
    rng = np.random.default_rng(4)
    original = rng.normal(size=(2000, 2))
    masked = RankSwapping(10, random_state=1).fit_transform(original)
    quick = attack(original, masked, "rank swapping", percent=10, effort="quick")
    for most in (0, 1000, int(quick.size.sum()) - 1):
        monkeypatch.setattr(ranks, "MOST_PAIRS", most)
        found = attack(original, masked, "rank swapping", percent=10)
        assert (found.size == quick.size).all()
        assert "too many pairs" in found.explain()
    monkeypatch.setattr(ranks, "MOST_PAIRS", int(quick.size.sum()))
    assert attack(original, masked, "rank swapping", percent=10).single == 1


def test_wrong_parameters_are_told():
    rng = np.random.default_rng(4)
    original = rng.normal(size=(100, 3))
    masked = RankSwapping(20, random_state=1).fit_transform(original)
    with pytest.raises(AttackError, match=r"percent=5: for \d+ of 100 masked records"):
        attack(original, masked, "rank swapping", percent=5)
    found = attack(original, masked, "rank swapping", percent=5, strict=False, effort="quick")
    assert 0 < found.covered < 1
    with pytest.raises(AttackError, match="cannot come from rank swapping: 100 of its released"):
        attack(original, masked + 0.5, "rank swapping", percent=20)


def test_bad_input_is_told():
    with pytest.raises(LinkageError, match="not known which belong together"):
        attack(ORIGINAL, MASKED[:3], "rank swapping", percent=25)
    with pytest.raises(BadOptionError, match="percent"):
        attack(ORIGINAL, MASKED, "rank swapping", percent=120)
    with pytest.raises(BadOptionError, match="less than one rank"):
        attack(ORIGINAL, MASKED, "rank swapping", percent=1)
    with pytest.raises(UnknownOptionError, match="effort"):
        attack(ORIGINAL, MASKED, "rank swapping", percent=25, effort="much")
    with pytest.raises(LinkageError, match="no variable in common"):
        attack(
            pd.DataFrame({"a": [1.0, 2.0]}),
            pd.DataFrame({"b": [1.0, 2.0]}),
            "rank swapping",
            percent=50,
        )
    with pytest.raises(AttackError, match="knows none of the masked columns"):
        attack(ORIGINAL, MASKED, "rank swapping", percent=25, columns=[0], known=[1])


@pytest.mark.parametrize("percent", [2, 6, 10, 14, 20])
def test_census(census, percent):
    """The windows find more than the nearest record at every width, and the exchanges all."""
    masked = RankSwapping(percent, random_state=7).fit_transform(census)
    windows = attack(census, masked, "rank swapping", percent=percent, effort="quick")
    assert windows.covered == 1
    assert windows.value > link(census, masked).value
    assert attack(census, masked, "rank swapping", percent=percent).value > 0.99
