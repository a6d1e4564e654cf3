"""One-to-one linkage, linkage by agreement, and what more knowledge brings."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment

from tessella.exceptions import BadOptionError, LinkageError, UnknownOptionError
from tessella.risk import link, link_by_knowledge, link_one_to_one, link_probabilistic


@settings(max_examples=60)
@given(
    arrays(np.float64, st.tuples(st.integers(2, 30), st.just(2)), elements=st.integers(0, 4)),
    st.data(),
)
def test_one_to_one_is_optimal(original, data):
    """An independent way: the dense assignment, full of ties."""
    masked = data.draw(arrays(np.float64, st.just(original.shape), elements=st.integers(0, 4)))
    found = link_one_to_one(original, masked, standardise="none", candidates=2)
    cost = ((masked[:, None] - original[None]) ** 2).sum(axis=2)
    rows, columns = linear_sum_assignment(cost)
    assert found.optimal
    assert sorted(found.assigned) == list(range(len(original)))
    assert found.cost == pytest.approx(cost[rows, columns].sum())


def test_one_to_one_uses_what_single_links_do_not():
    rng = np.random.default_rng(0)
    original = rng.normal(size=(600, 3))
    masked = original + 0.3 * rng.normal(size=original.shape)
    single, whole = link(original, masked), link_one_to_one(original, masked)
    assert whole.optimal
    assert whole.value > single.value


def test_one_to_one_shares_among_equals():
    """By hand: three equal masked records get originals 0, 1, 2: one third each."""
    original = np.array([[0.0], [1.0], [2.0], [9.0]])
    masked = np.array([[1.0], [1.0], [1.0], [9.0]])
    found = link_one_to_one(original, masked, standardise="none")
    assert found.chance == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])
    twins = link_one_to_one(np.array([[0.0], [0.0], [5.0]]), np.array([[0.0], [0.0], [5.0]]))
    assert twins.chance == pytest.approx([1 / 2, 1 / 2, 1])


def test_one_to_one_ends_on_equal_masked_records():
    """A bug once met: with rounding errors in the costs the solver went round for ever."""
    original = np.random.default_rng(0).normal(size=(1000, 5))
    masked = np.repeat(original.reshape(-1, 5, 5).mean(axis=1), 5, axis=0)
    found = link_one_to_one(original, masked)
    assert found.optimal
    assert len(set(found.assigned)) == 1000


def test_one_to_one_with_fewer_masked_records():
    original = pd.DataFrame({"key": [1, 2, 3, 4, 5], "x": [0.0, 1.0, 2.0, 3.0, 9.0]})
    masked = pd.DataFrame({"key": [5, 2], "x": [8.0, 1.2]})
    found = link_one_to_one(original, masked, id="key", standardise="none", candidates=1)
    assert found.assigned.tolist() == [4, 1]
    assert found.optimal


def test_one_to_one_refuses():
    table = np.zeros((5001, 1))
    with pytest.raises(LinkageError, match="up to 5,000"):
        link_one_to_one(table, table)
    with pytest.raises(UnknownOptionError, match="gower"):
        link_one_to_one(table[:5], table[:5], distance="gower")
    with pytest.raises(BadOptionError, match="candidates=0"):
        link_one_to_one(table[:5], table[:5], candidates=0)


def mixed(n=200, seed=0):
    rng = np.random.default_rng(seed)
    original = pd.DataFrame(
        {
            "town": rng.choice(list("abcdefgh"), size=n),
            "job": rng.choice(list("uvwxyz"), size=n),
            "age": rng.integers(18, 80, size=n),
            "income": np.round(rng.lognormal(size=n), 3),
        }
    )
    masked = original.copy()
    moved = rng.random(n) < 0.2
    masked.loc[moved, "town"] = rng.choice(list("abcdefgh"), size=int(moved.sum()))
    masked["age"] = original["age"] + rng.integers(-1, 2, size=n)
    return original, masked


def test_agreement_by_hand():
    """Four records, two variables: ties share, and a record that agrees in nothing is lost."""
    original = pd.DataFrame({"a": list("xxyz"), "b": list("ppqr")})
    masked = pd.DataFrame({"a": list("xxyz"), "b": list("ppqr")})
    found = link_probabilistic(original, masked)
    assert found.chance.tolist() == [0.5, 0.5, 1, 1]


def test_agreement_against_all_pairs():
    """An independent way: scores of all pairs from the weights that are told."""
    original, masked = mixed()
    found = link_probabilistic(original, masked)
    told = found.agreement.set_index("variable")
    score = np.zeros((200, 200))
    for name in original.columns:
        a, b = masked[name].to_numpy()[:, None], original[name].to_numpy()[None]
        agrees = a == b if name in ("town", "job") else np.abs(a - b) <= told["agrees within"][name]
        score += np.where(agrees, told["if it agrees"][name], told["if not"][name])
    own = np.diag(score)[:, None]
    assert (found.nearer == (score > own + 1e-6).sum(axis=1)).all()
    assert (found.tied == (np.abs(score - own) <= 1e-6).sum(axis=1)).all()


def test_em_finds_the_chances():
    """m is what was done to the table: 0.8 + 0.2 / 8 of the towns stay; u is 1/8, 1/6."""
    original, masked = mixed(1500, 1)
    told = link_probabilistic(original, masked).agreement.set_index("variable")
    assert told["m"]["town"] == pytest.approx(0.825, abs=0.05)
    assert told["m"]["job"] > 0.99
    assert told["u"]["town"] == pytest.approx(1 / 8, abs=0.02)
    assert told["u"]["job"] == pytest.approx(1 / 6, abs=0.02)


def test_blocking_loses_who_moved():
    original, masked = mixed()
    found = link_probabilistic(original, masked, block="town")
    moved = (original["town"] != masked["town"]).to_numpy()
    assert moved.any()
    assert (found.chance[moved] == 0).all()
    assert found.columns == ("job", "age", "income")
    job = link_probabilistic(original, masked, block=["job"], known=["town", "age", "income"])
    assert job.value > found.value


def test_agreement_refuses():
    original, masked = mixed(20)
    with pytest.raises(BadOptionError, match="agree"):
        link_probabilistic(original, masked, agree={"height": 1})
    with pytest.raises(BadOptionError, match="at least 0"):
        link_probabilistic(original, masked, agree={"age": -1})
    with pytest.raises(LinkageError, match="missing values"):
        link_probabilistic(original.assign(age=np.nan), masked, block="age")
    with pytest.raises(LinkageError, match="up to 16"):
        link_probabilistic(np.eye(17), np.eye(17))
    with pytest.raises(LinkageError, match="no variable in common"):
        link_probabilistic(original[["town"]], masked[["town"]], block="town")


def test_the_curve_over_knowledge():
    rng = np.random.default_rng(0)
    original = rng.normal(size=(150, 4))
    masked = original + 0.3 * rng.normal(size=original.shape)
    curve = link_by_knowledge(original, masked, random_state=0).curve
    assert curve["sets"].tolist() == [4, 6, 4, 1]
    assert curve["largest"].iloc[3] == link(original, masked).value
    assert curve["mean"].is_monotonic_increasing
    some = link_by_knowledge(original, masked, most_sets=3, random_state=0)
    assert some.curve["sets"].tolist() == [3, 3, 3, 1]
    assert not some.complete
    first = link_by_knowledge(
        original, masked, choose="first", distance="manhattan", random_state=0
    )
    assert [names for names, _ in first.linkages] == [(0,), (0, 1), (0, 1, 2), (0, 1, 2, 3)]
    assert "known" in str(first)
    assert first.picture().axes
    with pytest.raises(UnknownOptionError, match="choose"):
        link_by_knowledge(original, masked, choose="last", random_state=0)
    with pytest.raises(BadOptionError, match="most_sets"):
        link_by_knowledge(original, masked, most_sets=0, random_state=0)


def test_the_door_says_what_there_is():
    module = importlib.import_module("tessella.risk")
    for name in module.__all__:
        assert getattr(module, name) is not None
    tree = ast.parse(Path(module.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: f".{node.module}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(seen) == module.__all__
    for name, home in seen.items():
        assert getattr(module, name) is getattr(
            importlib.import_module(home, "tessella.risk"), name
        )
