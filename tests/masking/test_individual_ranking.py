"""Individual ranking: k holds in each column, and what holds for records is told."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tessella.exceptions import GroupSizeError, UnknownOptionError
from tessella.masking import IndividualRanking, Microaggregation

from .simple import counts

# By hand


def test_fixed_groups_of_three() -> None:
    """In order 1 2 3 | 4 10 12 15: the last group takes the one that is left over."""
    table = pd.DataFrame({"x": [10.0, 1.0, 3.0, 15.0, 4.0, 2.0, 12.0]})
    masker = IndividualRanking(3, grouping="fixed")
    last = (4 + 10 + 12 + 15) / 4
    assert masker.fit_transform(table)["x"].tolist() == [last, 2, 2, last, last, 2, last]
    assert masker.column_k_ == {"x": 3}


def test_optimal_groups_of_the_same() -> None:
    """Better: 1 2 3 4 | 10 12 15."""
    table = pd.DataFrame({"x": [10.0, 1.0, 3.0, 15.0, 4.0, 2.0, 12.0]})
    last = (10 + 12 + 15) / 3
    released = IndividualRanking(3).fit_transform(table)["x"].tolist()
    assert released == pytest.approx([last, 2.5, 2.5, last, 2.5, 2.5, last])


def test_the_k_of_records_is_counted() -> None:
    table = pd.DataFrame({"a": [1.0, 2, 8, 9], "b": [1.0, 8, 2, 9]})
    masker = IndividualRanking(2)
    masker.fit(table)
    assert masker.joint_k_ == 1
    assert masker.column_k_ == {"a": 2, "b": 2}
    assert masker.labels_.shape == (4, 2)


# Invariants


@given(
    arrays(np.float64, st.tuples(st.integers(4, 30), st.integers(1, 3)),
           elements=st.integers(-20, 20).map(float)),
    st.integers(2, 4),
    st.sampled_from(["optimal", "fixed"]),
)  # fmt: skip
def test_k_holds_in_each_column(X: Any, k: int, method: str) -> None:
    masker = IndividualRanking(k, grouping=method)
    Y = masker.fit_transform(X)
    for j in range(X.shape[1]):
        assert counts(Y[:, [j]]).min() >= k
    assert masker.joint_k_ == counts(Y).min()
    np.testing.assert_allclose(Y.mean(axis=0), X.mean(axis=0), atol=1e-9)
    for x, y in zip(X.T, Y.T):  # the order stays
        order = np.argsort(x, kind="stable")
        assert (np.diff(y[order]) >= -1e-12).all()


@given(arrays(np.float64, st.tuples(st.integers(4, 25), st.just(2)),
              elements=st.floats(-100, 100).map(lambda x: round(x, 3))))  # fmt: skip
def test_optimal_loses_no_more_than_fixed(X: Any) -> None:
    optimal, fixed = IndividualRanking(2).fit(X), IndividualRanking(2, grouping="fixed").fit(X)
    for j in range(2):
        assert optimal.column_loss_[j] <= fixed.column_loss_[j] + 1e-9


# An independent way


def test_as_microaggregation_in_blocks_of_one() -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks = Microaggregation(4, grouping="univariate", blocks=1).fit_transform(X)
    np.testing.assert_allclose(IndividualRanking(4).fit_transform(X), blocks)


# Bad input


def test_bad_input() -> None:
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(UnknownOptionError, match="grouping"):
        IndividualRanking(2, grouping="onedims").fit(X)
    for k in (1, 7, 2.5, "3"):
        with pytest.raises(GroupSizeError):
            IndividualRanking(k).fit(X)  # type: ignore[arg-type]
    with pytest.raises(GroupSizeError, match="strata"):
        IndividualRanking(2).fit(X, strata=np.array([0, 0, 0, 0, 0, 1]))
    X[0, 0] = np.nan
    with pytest.raises(GroupSizeError, match="missing pattern"):
        IndividualRanking(2).fit(X)
