"""Where the loss is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from tessella.exceptions import BadOptionError, UnknownColumnError
from tessella.loss import record_loss, sse_sst, subgroup_loss
from tessella.loss.splitting import CodedColumn, Growing


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"age": rng.integers(20, 70, 500), "pay": rng.normal(100, 10, 500)})
    x["town"] = np.where(rng.random(500) < 0.2, "Reus", "Valls")
    y = x.copy()
    hit = (x.town == "Reus") & (x.age > 50)
    y.loc[hit, "pay"] += 30
    return x, y, hit


def test_records_by_hand():
    x = pd.DataFrame({"pay": [0.0, 2, 4], "town": ["a", "b", "c"]})  # variance 8/3
    y = pd.DataFrame({"pay": [0.0, 4, 4], "town": ["a", "b", "b"]})
    assert record_loss(x, y) == pytest.approx([0, 4 / (8 / 3) / 2, 1 / 2])


def test_groups_of_a_column_by_hand():
    x = pd.DataFrame({"town": ["a", "a", "b", "c"], "pay": [1.0, 2, 3, 4]})
    y = x.assign(pay=[1.0, 2, 4, 4.5])  # squares 0, 0, 1, 1/4
    found = subgroup_loss(x, y, by="town", columns=["pay"])
    assert [group.name for group in found.groups] == ["town = b", "town = c", "town = a"]
    assert [group.carries for group in found.groups] == pytest.approx([0.8, 0.2, 0])
    assert found.groups[2].records == 0.5
    weighted = subgroup_loss(x, y, by="town", columns=["pay"], weights=[1, 1, 1, 4])
    assert [g.carries for g in weighted.groups][:2] == pytest.approx([0.5, 0.5])


def test_the_tree_finds_who_was_hit(pair):
    x, y, hit = pair
    found = subgroup_loss(x, y)
    top = found.groups[0]
    assert top.carries == pytest.approx(1.0)
    assert top.n == hit.sum()
    assert "town = Reus" in top.name
    assert "age > 50.5" in top.name
    assert found.between == pytest.approx(1.0)


def test_ranges_of_numbers_and_missing_values(pair):
    x, y, _ = pair
    x = x.assign(age=x.age.where(x.age != 33).astype(float))
    found = subgroup_loss(x, y, by="age", n_groups=4, columns=["pay"])
    assert len(found.groups) == 5
    assert sum(group.name == "age missing" for group in found.groups) == 1
    assert sum(group.n for group in found.groups) == 500


@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.booleans())
def test_leaves_are_those_of_scikit_learn(seed, n_groups, weighted):
    """An independent way to the same groups: a column of many values has no equal splits."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 3))
    x[rng.random(x.shape) < 0.1] = np.nan
    lost = rng.exponential(size=200) * np.where(np.isnan(x[:, 0]) | (x[:, 1] > 0), 3, 1)
    weights = rng.uniform(0.5, 2, 200) if weighted else np.ones(200)
    columns = []
    for name, values in enumerate(x.T):
        labels, codes = np.unique(values, return_inverse=True)  # NaN is the last
        codes = np.where(np.isnan(values), -1, codes)
        columns.append(CodedColumn(name=name, codes=codes, labels=labels[:-1], is_number=True))
    growing = Growing(
        columns=columns, values=lost, weights=weights, least_records=5, least_fall=0.0
    )
    tree = DecisionTreeRegressor(
        max_leaf_nodes=n_groups, min_samples_leaf=5, max_depth=4, random_state=0
    )
    found = tree.fit(x, lost, sample_weight=weights).apply(x)
    leaves = growing.leaves(n_groups)
    assert len(leaves) == len(np.unique(found))
    assert sorted(leaf.rows.tolist() for leaf in leaves) == sorted(
        np.flatnonzero(found == leaf).tolist() for leaf in np.unique(found)
    )


def test_equal_splits_take_the_first_column_and_label():
    """By hand: both columns split the records alike, and both labels of each."""
    x = pd.DataFrame({"sex": ["m", "m", "f", "f"] * 5, "code": [1, 1, 2, 2] * 5})
    y = x.assign(code=np.where(x.sex == "m", 1, 3))
    assert [group.name for group in subgroup_loss(x, y, min_records=1).groups] == [
        "code > 1.5", "code <= 1.5",
    ]  # fmt: skip
    assert [group.name for group in subgroup_loss(
        x.astype({"code": str}), y.astype({"code": str}), min_records=1
    ).groups] == ["sex = f", "sex = m"]  # fmt: skip


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 0, 1]), st.integers(1, 6))
def test_groups_make_up_the_whole(seed, by, n_groups):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 9, size=(2, 40, 3)).astype(float)
    found = subgroup_loss(x, y, by=by, n_groups=n_groups)
    assert found.value == pytest.approx(sse_sst(x, y).value)
    assert sum(group.n for group in found.groups) == 40
    assert sum(group.records for group in found.groups) == pytest.approx(1)
    assert sum(group.carries for group in found.groups) == pytest.approx(1)
    whole = sum(group.records * group.loss for group in found.groups)
    assert whole == pytest.approx(found.value)
    assert 0 <= found.between <= 1


def test_large_and_close_numbers_are_told_apart():
    """A bug once met in trees: float32 cannot tell 100000001 from 100000002."""
    x = pd.DataFrame({"big": 1e8 + np.arange(40.0), "pay": np.zeros(40)})
    y = x.assign(pay=np.where(np.arange(40) < 20, 0.0, 1.0))
    found = subgroup_loss(x, y, n_groups=2)
    assert found.groups[0].n == 20
    huge = pd.DataFrame({"big": [1e100] * 10 + [2e100] * 10})  # beyond any float32
    assert len(subgroup_loss(huge, huge * 1.1).groups) == 2


def test_no_loss_and_one_record():
    x = np.arange(6.0).reshape(3, 2)
    found = subgroup_loss(x, x)
    assert found.value == 0.0
    assert found.verdict == "no record lost anything"
    assert subgroup_loss(x[:1], x[:1] + 1).groups[0].carries == 1.0


def test_it_prints_and_hands_on(pair):
    found = subgroup_loss(*pair[:2], by="town")
    assert "% of loss" in str(found)
    assert found.to_dict()["groups"][0]["name"] == "town = Reus"
    assert list(found.to_frame()["name"]) == ["town = Reus", "town = Valls"]
    assert list(found.by_column) == ["town = Reus", "town = Valls"]


def test_options_are_checked(pair):
    x, y, _ = pair
    with pytest.raises(UnknownColumnError, match="'town'"):
        subgroup_loss(x, y, by="twon")
    with pytest.raises(BadOptionError, match="n_groups"):
        subgroup_loss(x, y, n_groups=0)
    with pytest.raises(BadOptionError, match="min_records"):
        subgroup_loss(x, y, min_records=2.5)


def test_records_that_lack_a_number_can_be_a_group():
    """A bug once met: a split of known from missing numbers has no finite threshold."""
    random = np.random.default_rng(0)
    x = pd.DataFrame({"age": random.normal(size=400), "pay": random.normal(size=400)})
    x.loc[:79, "age"] = np.nan
    y = x.copy()
    y.loc[:79, "pay"] += 5
    found = subgroup_loss(x, y, n_groups=2)
    assert [group.name for group in found.groups] == ["age missing", "age known"]
    assert found.groups[0].n == 80
    assert found.groups[0].carries == pytest.approx(1.0)


def test_long_codes_keep_their_names():
    """A bug once met: 1234567 and 1234568 had one name, and a group was lost."""
    x = pd.DataFrame({"code": [1234567.0, 1234568.0] * 5, "pay": np.arange(10.0)})
    found = subgroup_loss(x, x.assign(pay=x["pay"] + 1), by="code")
    assert set(found.by_column) == {"code = 1234567", "code = 1234568"}
