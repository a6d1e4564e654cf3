"""Candidates are data: equal, hashed, named and described by what they are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessella.exceptions import BadOptionError, BadTableError, UnknownOptionError
from tessella.explore import METHODS, Candidate
from tessella.explore.blocks import BLOCKINGS, cut_columns


def test_order_of_parameters_does_not_matter():
    """By hand."""
    one = Candidate("blocks", k=3, size=2, by="order")
    other = Candidate("blocks", by="order", size=2, k=3)
    assert one == other
    assert hash(one) == hash(other)
    assert one.key == 'blocks(by="order", k=3, size=2)'
    assert one != Candidate("blocks", by="order", size=3, k=3)


def test_what_is_not_said_is_the_default():
    assert Candidate("mdav") == Candidate("mdav", k=3)
    assert Candidate("noise", scale=np.float64(0.1)) == Candidate("noise", scale=0.1)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_describes_itself_and_can_be_stored(method):
    one = Candidate(method)
    assert str(one) != one.key
    assert one.label in {one.label.strip()} - {""}
    assert pickle.loads(pickle.dumps(one)) == one
    assert METHODS[method].tuned.name in one


def test_unknown_names_are_refused():
    with pytest.raises(UnknownOptionError, match="mdva"):
        Candidate("mdva")
    with pytest.raises(UnknownOptionError, match="size"):
        Candidate("mdav", size=3)
    with pytest.raises(BadOptionError, match="a number"):
        Candidate("mdav", k=[3])


@given(st.integers(1, 9), st.integers(1, 6), st.sampled_from(sorted(BLOCKINGS)), st.integers(0, 9))
def test_blocks_are_a_partition(d, size, by, seed):
    """An invariant: every column in one block, all but one block full."""
    values = np.random.default_rng(seed).normal(size=(20, d))
    blocks = cut_columns(values, size, by, seed=seed)
    assert sorted(place for block in blocks for place in block) == list(range(d))
    assert sorted(map(len, blocks))[1:] == [size] * (len(blocks) - 1)


def test_blocks_by_correlation_and_by_contrast():
    """By hand: a and c are one column, b and d another."""
    a, b = np.random.default_rng(0).normal(size=(2, 60))
    values = np.column_stack([a, b, -3 * a, b])
    assert cut_columns(values, 2, "correlation") == [[0, 2], [1, 3]]
    assert all(set(block) not in ({0, 2}, {1, 3}) for block in cut_columns(values, 2, "contrast"))
    assert cut_columns(values, 3, "order") == [[0, 1, 2], [3]]


def test_blocks_with_missing_cells_and_a_constant_column():
    values = np.random.default_rng(0).normal(size=(20, 4))
    values[3, 1], values[:, 2] = np.nan, 7.0
    for by in BLOCKINGS:
        assert len(cut_columns(values, 2, by)) == 2


def test_a_candidate_masks_a_table():
    """By hand: two groups of three."""
    table = np.array([[1.0], [2.0], [3.0], [11.0], [12.0], [13.0]])
    made = Candidate("mdav", k=3).mask(table)
    assert made.table[:, 0].tolist() == [2, 2, 2, 12, 12, 12]
    assert made.promised_k == 3
    assert made.blocks == [[0]]


def test_categories_need_a_way():
    import pandas as pd

    table = pd.DataFrame({"x": [1.0, 2, 3, 4], "town": list("aabb")})
    with pytest.raises(BadTableError, match=r"pram=0\.8"):
        Candidate("noise").mask(table)
    made = Candidate("noise", pram=0.9).mask(table, random_state=0)
    assert set(made.table["town"]) <= {"a", "b"}
    with pytest.raises(BadTableError, match="hold numbers"):
        Candidate("pram").mask(table)
