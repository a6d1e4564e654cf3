"""Tables of counts, mutual information and entropy."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score, normalized_mutual_info_score

from tessella import Schema
from tessella.exceptions import BadTableError, UnknownOptionError
from tessella.loss import (
    contingency_loss,
    entropy_loss,
    generic_loss,
    measure,
    mutual_information_loss,
)
from tests.amounts import few_or_many, try_examples


def frame(**columns):
    return pd.DataFrame({name: list(values) for name, values in columns.items()})


@st.composite
def frames(draw):
    n = draw(st.integers(1, 12))
    words = st.text("pqr", min_size=n, max_size=n)
    return [frame(a=draw(words), b=draw(words)) for _ in range(2)]


def test_tables_of_counts_by_hand():
    x, y = frame(a="uuvv"), frame(a="uvvv")  # shares 1/2, 1/2 and 1/4, 3/4
    assert contingency_loss(x, y, distance="total variation").value == pytest.approx(0.25)
    apart = (math.sqrt(0.5) - math.sqrt(0.25)) ** 2 + (math.sqrt(0.5) - math.sqrt(0.75)) ** 2
    assert contingency_loss(x, y).value == pytest.approx(math.sqrt(apart / 2))


def test_two_way_tables_by_hand():
    x, y = frame(a="uuvv", b="ppqq"), frame(a="uuvv", b="qqpp")  # no two-way cell in common
    found = contingency_loss(x, y, distance="total variation")
    assert found.details["one-way"] == 0.0
    assert found.details["two-way"] == 1.0
    assert found.value == pytest.approx(1 / 3)
    assert found.by_column == {"a": 0.5, "b": 0.5}


def test_weights_by_hand():
    found = contingency_loss(frame(a="uv"), frame(a="vv"), distance="total variation",
                             weights=[3, 1])  # fmt: skip
    assert found.value == pytest.approx(0.75)


def test_mutual_information_by_hand():
    x, y = frame(a="uuvv", b="ppqq"), frame(a="uuvv", b="pqpq")  # from certain to independent
    found = mutual_information_loss(x, y)
    assert found.value == pytest.approx(1.0)
    assert found.details == {"before": pytest.approx(1.0), "after": pytest.approx(0.0)}


def test_entropy_by_hand():
    assert entropy_loss(frame(a="uuvv"), frame(a="uvuv")).value == pytest.approx(1.0)
    assert entropy_loss(frame(a="uuvv"), frame(a="vvuu")).value == pytest.approx(0.0)  # renamed
    assert entropy_loss(frame(a="stuv"), frame(a="ssuu")).value == pytest.approx(0.5)  # 1 of 2 bits
    assert entropy_loss(frame(a="uuuu"), frame(a="uvuv")).value == 0.0  # nothing to lose


def slow_distance(x, y, how):
    """Over dictionaries of counts, one margin at a time."""
    found = []
    for margin in (["a"], ["b"], ["a", "b"]):
        p, q = (Counter(map(tuple, t[margin].to_numpy())) for t in (x, y))
        shares = [(p[cell] / len(x), q[cell] / len(x)) for cell in p | q]
        if how == "hellinger":
            found.append(math.sqrt(sum((u**0.5 - v**0.5) ** 2 for u, v in shares) / 2))
        else:
            found.append(sum(abs(u - v) for u, v in shares) / 2)
    return sum(found) / 3


def tables_of_counts_against_dictionaries(pair):
    for how in ("hellinger", "total variation"):
        found = contingency_loss(*pair, distance=how)
        assert found.value == pytest.approx(slow_distance(*pair, how), abs=1e-12)


@few_or_many(40, 100)
def test_tables_of_counts_against_dictionaries(count):
    try_examples(count, tables_of_counts_against_dictionaries, frames())


def information_against_scikit_learn(pair):
    x, y = pair

    def dependence(t):
        constant = t.a.nunique() == t.b.nunique() == 1  # scikit-learn says 1, we say 0
        return 0.0 if constant else normalized_mutual_info_score(t.a, t.b)

    expected = abs(dependence(x) - dependence(y))
    assert mutual_information_loss(x, y).value == pytest.approx(expected, abs=1e-9)
    own = mutual_info_score(x.a, x.a)
    expected = 1 - mutual_info_score(x.a, y.a) / own if own > 1e-12 else 0.0
    assert entropy_loss(x, y).by_column["a"] == pytest.approx(expected, abs=1e-9)


@few_or_many(40, 100)
def test_information_against_scikit_learn(count):
    try_examples(count, information_against_scikit_learn, frames())


@given(frames())
def test_ranges_and_identity(pair):
    for found in measure(*pair):
        assert 0 <= found.value <= 1
    for found in measure(pair[0], pair[0]):
        assert found.value == 0


def test_more_changes_lose_more_on_average():
    rng = np.random.default_rng(1)
    x = pd.DataFrame({"a": rng.choice(list("uvw"), 500, p=[0.7, 0.2, 0.1])})
    x["b"] = np.where(rng.random(500) < 0.8, x.a, "w")
    means = []
    for share in (0.05, 0.2, 0.6):
        found = []
        for _ in range(10):
            y = x.copy()
            for name in y:
                changed = rng.random(500) < share
                y.loc[changed, name] = rng.choice(list("uvw"), changed.sum())
            found.append([part.value for part in measure(x, y)])
        means.append(np.mean(found, axis=0))
    assert (np.diff(means, axis=0) > 0).all()


def test_many_categories_are_counted_by_sorting():
    """Joint tables beyond the dense limit give the same answer as those below."""
    rng = np.random.default_rng(2)
    n = 3000
    x = pd.DataFrame({"a": rng.integers(0, 2000, n), "b": rng.integers(0, 2000, n)}).astype(str)
    y = pd.DataFrame({"a": rng.permutation(x.a), "b": x.b})
    found = contingency_loss(x, y, distance="total variation")
    assert found.value == pytest.approx(slow_distance(x, y, "total variation"))
    expected = abs(normalized_mutual_info_score(x.a, x.b) - normalized_mutual_info_score(y.a, y.b))
    assert mutual_information_loss(x, y).value == pytest.approx(expected, abs=1e-9)


def test_new_categories_are_cells_that_were_empty_and_are_told():
    x, y = frame(a="uuvv"), frame(a="uuww")
    found = contingency_loss(x, y, distance="total variation")
    assert found.value == 0.5
    assert found.details["new categories"] == 1
    assert "1 new categories" in found.verdict
    assert any("does not have" in note for note in measure(x, y).notes)


def test_numbers_are_categories_if_a_schema_says_so():
    x, y = pd.DataFrame({"code": [1, 1, 2, 2]}), pd.DataFrame({"code": [1.0, 2.0, 2.0, 2.0]})
    schema = Schema({"code": {"kind": "nominal"}})
    found = contingency_loss(x, y, schema=schema, distance="total variation")
    assert found.value == 0.25
    assert found.details["new categories"] == 0


def test_what_does_not_fit_is_refused():
    numbers, words = pd.DataFrame({"a": [1.0, 2.0]}), frame(a="uv")
    with pytest.raises(BadTableError, match="columns of categories"):
        contingency_loss(numbers, numbers)
    with pytest.raises(BadTableError, match="needs at least 2"):
        mutual_information_loss(words, words)
    with pytest.raises(BadTableError, match="columns of numbers"):
        generic_loss(words, words)
    with pytest.raises(UnknownOptionError, match="hellinger"):
        contingency_loss(words, words, distance="euclid")
