"""Rank swapping: columns keep their values, and no value moves further than it may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tessella.exceptions import BadOptionError
from tessella.kernels.random_moves import draw_partners
from tessella.masking import RankSwapping


def slow_partners(chances: Any, window: int) -> list[int]:
    """Moore's algorithm as it is told: look at all free ranks of the window, take one."""
    n = len(chances)
    partner = list(range(n))
    free = set(partner)
    for i in range(n):
        if i in free:
            free.discard(i)
            near = [j for j in range(i + 1, min(i + window, n - 1) + 1) if j in free]
            if near:
                j = near[int(chances[i] * len(near))]
                free.discard(j)
                partner[i], partner[j] = j, i
    return partner


# By hand


def test_six_values_with_a_window_of_one() -> None:
    """20 % of 6 is 1.2: one rank. Neighbours in order are exchanged: 21-30, 35-48, 57-62."""
    table = pd.DataFrame({"age": [21, 62, 35, 48, 30, 57]})
    masker = RankSwapping(20, random_state=0)
    assert masker.fit_transform(table)["age"].tolist() == [30, 57, 48, 35, 21, 62]
    assert masker.unswapped_ == {"age": 0}
    assert masker.changed_ == {"age": 1.0}


def test_the_percentage_is_of_n() -> None:
    """Of 200 records 5 % are 10 ranks, exactly; and some pair is that far apart."""
    X = np.arange(200.0)[:, None]
    farthest = max(
        np.abs(RankSwapping(5, random_state=seed).fit_transform(X) - X).max() for seed in range(9)
    )
    assert farthest == 10


# An independent way to the same answer


@given(st.integers(1, 40), st.integers(1, 45), st.integers(0, 2**32 - 1))
def test_partners_against_a_slow_reference(n: int, window: int, seed: int) -> None:
    chances = np.random.default_rng(seed).random(n)
    partner = draw_partners(chances, window)
    assert partner.tolist() == slow_partners(chances, window)
    assert (partner[partner] == np.arange(n)).all()
    assert np.abs(partner - np.arange(n)).max() <= window
    alone = np.flatnonzero(partner == np.arange(n))
    assert len(alone) == n % 2
    assert (alone >= n - window).all()


def test_partners_are_uniform_in_the_window() -> None:
    """The partner of the lowest rank: chi-square over 5 places, 5,000 draws, 1 in a million."""
    rng = np.random.default_rng(1)
    first = [draw_partners(rng.random(9), 5)[0] for _ in range(5000)]
    assert stats.chisquare(np.bincount(first, minlength=6)[1:6]).pvalue > 1e-6


# Invariants


@given(
    arrays(np.float64, st.tuples(st.integers(4, 30), st.integers(1, 3)),
           elements=st.integers(-5, 5).map(float)),
    st.floats(26, 100),
    st.integers(0, 2**31 - 1),
)  # fmt: skip
def test_columns_keep_their_values_and_ranks_stay_near(X: Any, percent: float, seed: int) -> None:
    Y = RankSwapping(percent, random_state=seed).fit_transform(X)
    np.testing.assert_array_equal(np.sort(Y, axis=0), np.sort(X, axis=0))
    n = len(X)
    for x, y in zip(X.T, Y.T):
        # Ties leave open which rank a value had: no pair may need more than the window.
        low = np.searchsorted(np.sort(x), y, side="left")
        high = np.searchsorted(np.sort(x), y, side="right") - 1
        own_low = np.searchsorted(np.sort(x), x, side="left")
        own_high = np.searchsorted(np.sort(x), x, side="right") - 1
        apart = np.maximum(low - own_high, own_low - high)
        assert apart.max() <= percent * n / 100 * (1 + 1e-12)


def test_ties_are_broken_at_random() -> None:
    """Of 60 zeros and one 9 the 9 goes to any of the zeros of its window, not to the last."""
    X = np.zeros((61, 1))
    X[60] = 9.0
    places = {
        int(RankSwapping(50, random_state=seed).fit_transform(X).argmax()) for seed in range(60)
    }
    assert len(places) > 20


def test_values_stay_in_their_stratum() -> None:
    table = pd.DataFrame({"x": np.arange(40.0), "g": ["a", "b"] * 20})
    released = RankSwapping(30, strata="g", random_state=1).fit_transform(table)
    for _, part in released.groupby("g"):
        assert sorted(part["x"]) == sorted(table.loc[part.index, "x"])
        assert (part["x"] != table.loc[part.index, "x"]).all()


def test_an_odd_number_leaves_one_over() -> None:
    masker = RankSwapping(50, random_state=0)
    masker.fit(np.column_stack([np.arange(7.0), np.r_[np.arange(6.0), np.nan]]))
    assert masker.unswapped_ == {0: 1, 1: 0}


# Bad input


@pytest.mark.parametrize("percent", [0, -5, 101, np.nan, np.inf, "5", True, None])
def test_bad_percentages(percent: Any) -> None:
    with pytest.raises(BadOptionError, match="percent"):
        RankSwapping(percent).fit(np.arange(10.0)[:, None])


def test_less_than_one_rank_is_refused() -> None:
    with pytest.raises(BadOptionError, match=r"percent=5 .*of the 10 numbers of 0"):
        RankSwapping(5).fit(np.arange(10.0)[:, None])
    with pytest.raises(BadOptionError, match="of the 1 numbers"):
        RankSwapping(100).fit(np.ones((1, 1)))
