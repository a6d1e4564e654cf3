"""What classes give away: by hand, against SciPy's earth mover, and printed figures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from tessella.exceptions import (
    BadOptionError,
    BadTableError,
    LinkageError,
    UnknownColumnError,
    UnknownOptionError,
)
from tessella.masking import Microaggregation
from tessella.risk import (
    alpha_k_anonymity,
    l_diversity,
    link,
    probabilistic_k_anonymity,
    t_closeness,
)
from tessella.schema import Schema

from .test_anonymity import KEYS, PRINTED

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8)), min_size=1, max_size=40)
FOUR = pd.DataFrame({"age": [30, 30, 40, 40], "ill": ["yes", "no", "no", "no"]})


def frame(rows):
    return pd.DataFrame(rows, columns=["class", "value"])


def by_class(found, table):
    """The figure of each class by its name."""
    _, first = np.unique(found.classes, return_index=True)
    return dict(zip(table["class"].to_numpy()[first], found.by_class))


def test_the_printed_l():
    """Independent figures: distinct l-diversity of the guide's table."""
    found = l_diversity(PRINTED, "health", known=KEYS)
    assert found.records["distinct l"].tolist() == [1, 1, 1, 2, 1, 2, 1, 1, 2, 2]
    assert found.certain == 0.6


def test_by_hand():
    found = l_diversity(FOUR, "ill")
    assert found.worst == 1
    assert found.certain == 0.5
    assert found.chance.tolist() == [0.5, 0.5, 1.0, 1.0]
    assert found.value == 0.75
    assert found.baseline == 0.75
    assert l_diversity(FOUR, "ill", kind="entropy").by_class.tolist() == pytest.approx([2.0, 1.0])
    assert t_closeness(FOUR, "ill").by_class.tolist() == pytest.approx([0.25, 0.25])
    assert t_closeness(FOUR, "ill", groups=["a"] * 4).worst == pytest.approx(0, abs=1e-15)


def test_recursive_by_hand():
    """Counts 4, 2, 1, 1: 4 < 2 (2 + 1 + 1) but not 4 < 2 (1 + 1), so l = 2 at c = 2; 3 at c = 3."""
    table = frame([(0, v) for v in (1, 1, 1, 1, 2, 2, 3, 4)])
    assert l_diversity(table, "value", kind="recursive", c=2).worst == 2
    assert l_diversity(table, "value", kind="recursive", c=3).worst == 3
    assert l_diversity(table, "value", kind="recursive", c=0.5).worst == 0


@given(ROWS, st.floats(0.3, 5))
def test_diversity_is_its_definition(rows, c):
    """An independent way: the definitions, class by class."""
    table = frame(rows)
    kinds = {kind: l_diversity(table, "value", kind=kind, c=c) for kind in ("entropy", "recursive")}
    for name, part in table.groupby("class"):
        r = part["value"].value_counts().to_numpy()
        p = r / r.sum()
        assert by_class(kinds["entropy"], table)[name] == pytest.approx(
            np.exp(-(p * np.log(p)).sum())
        )
        passing = [l + 1 for l in range(len(r)) if r[0] < c * r[l:].sum()]  # noqa: E741
        assert by_class(kinds["recursive"], table)[name] == max(passing, default=0)
    for found in kinds.values():
        most = table.groupby("class")["value"].agg(lambda v: v.value_counts().max())
        assert found.value == pytest.approx(most.sum() / len(table))


@given(ROWS)
def test_t_is_the_earth_movers(rows):
    """An independent way: SciPy's distance between ranks; half the sum of differences."""
    table = frame(rows)
    ranks = table["value"].rank(method="dense").to_numpy() - 1
    m = int(ranks.max()) + 1
    ordered, free = (t_closeness(table, "value", ordered=how) for how in (True, False))
    for name, part in table.groupby("class"):
        far = wasserstein_distance(ranks[part.index], ranks) / max(m - 1, 1)
        assert by_class(ordered, table)[name] == pytest.approx(far, abs=1e-12)
        p = part["value"].value_counts(normalize=True)
        q = table["value"].value_counts(normalize=True)
        half = q.sub(p, fill_value=0).abs().sum() / 2
        assert by_class(free, table)[name] == pytest.approx(half, abs=1e-12)


def test_order_comes_from_the_column():
    order = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    table = pd.DataFrame({"k": [1, 2, 3], "v": pd.Series(["low", "high", "mid"], dtype=order)})
    found = t_closeness(table, "v")
    assert found.by_class.tolist() == pytest.approx([0.5, 0.5, 1 / 3])
    assert "v with order" in found.explain()
    assert t_closeness(table.astype({"v": str}), "v").by_class.tolist() == pytest.approx(
        [2 / 3] * 3
    )
    schema = Schema({"k": {"kind": "integer"}, "w": {"kind": "nominal", "role": "confidential"}})
    coded = pd.DataFrame({"k": [1, 2, 3], "w": [1, 3, 2]})
    assert t_closeness(coded, schema=schema).worst == pytest.approx(2 / 3)


def test_several_confidential_variables():
    table = FOUR.assign(poor=["a", "a", "a", "b"])
    found = l_diversity(table, ["ill", "poor"], known="age")
    assert found.by_variable == {"ill": 1.0, "poor": 1.0}
    assert found.certain == 1.0
    assert found.chance.tolist() == [1.0, 1.0, 1.0, 1.0]


@given(ROWS, st.sampled_from([0.25, 0.5, 0.75, 1.0]), st.integers(1, 4))
def test_alpha_k_is_its_definition(rows, alpha, k):
    table = frame(rows)
    found = alpha_k_anonymity(table, "value", alpha=alpha, k=k, known="class")
    breaks = table.groupby("class")["value"].transform(
        lambda v: len(v) < k or v.value_counts().max() > alpha * len(v)
    )
    assert found.breaks.tolist() == breaks.astype(bool).tolist()
    assert found.holds == (not breaks.any())
    assert found.reached_k == table["class"].value_counts().min()


def test_microaggregation_is_probabilistically_k_anonymous():
    """A promise kept: records of a group cannot be told apart, in either direction."""
    X = np.random.default_rng(2).normal(size=(203, 3))
    masked = Microaggregation(k=4).fit_transform(X)
    for distance in ("euclidean", "mahalanobis", "manhattan", "gower"):
        found = probabilistic_k_anonymity(X, masked, distance=distance)
        assert found.k >= 4
        assert found.below(4) == 0


def test_probabilistic_k_by_hand():
    """Persons 0, 1, 10, 11; two release 0.5 and two are swapped."""
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    found = probabilistic_k_anonymity(
        X, np.array([[0.5], [0.5], [11.0], [10.0]]), standardise="none"
    )
    assert found.from_person.tolist() == [0.5, 0.5, 0.0, 0.0]
    assert found.from_record.tolist() == [0.5, 0.5, 0.0, 0.0]
    assert found.k == 2
    assert found.below(3) == 2
    assert probabilistic_k_anonymity(X, X[[1, 0, 3, 2]], standardise="none").k == 4  # never right


def test_probabilistic_k_is_links_own_chance():
    """Without identical records, the way from records to persons is `link`."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 2))
    Y = X + 0.5 * rng.normal(size=X.shape)
    found = probabilistic_k_anonymity(X, Y)
    assert found.from_record == pytest.approx(link(X, Y).chance)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: l_diversity(FOUR, "il"), UnknownColumnError, "Did you mean 'ill'"),
        (lambda: l_diversity(FOUR), BadOptionError, "confidential"),
        (lambda: l_diversity(FOUR, "ill", known="ill"), BadOptionError, "one part only"),
        (lambda: l_diversity(FOUR[["ill"]], "ill"), BadOptionError, "at least one column"),
        (lambda: l_diversity(FOUR, "ill", kind="x"), UnknownOptionError, "'entropy'"),
        (lambda: l_diversity(FOUR, "ill", c=0), BadOptionError, "above 0"),
        (lambda: l_diversity(FOUR, "ill", groups=[1, 2]), BadTableError, "each of the 4"),
        (lambda: l_diversity(FOUR, "ill", groups=[1] * 4, known="age"), BadOptionError, "not both"),
        (lambda: t_closeness(FOUR, "ill", ordered=True), BadTableError, "has no order"),
        (lambda: alpha_k_anonymity(FOUR, "ill", alpha=0, k=2), BadOptionError, "alpha"),
        (lambda: alpha_k_anonymity(FOUR, "ill", alpha=1.1, k=2), BadOptionError, "alpha"),
        (lambda: alpha_k_anonymity(FOUR, "ill", alpha=0.5, k=0), BadOptionError, "k=0"),
        (lambda: probabilistic_k_anonymity(FOUR, FOUR[:2]), LinkageError, "4 records"),
        (lambda: probabilistic_k_anonymity(FOUR[:1], FOUR[:1]), LinkageError, "one record"),
    ],
)
def test_it_refuses(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_one_class_tells_no_more_than_guessing() -> None:
    """A bug once met: with several variables the baseline was that of the best one alone."""
    release = pd.DataFrame({"key": [0] * 5, "ill": list("aaabb"), "pay": list("xyxxx")})
    for names in (["ill"], ["pay"], ["ill", "pay"]):
        found = l_diversity(release, names, known="key")
        assert found.baseline == pytest.approx(found.value)
    assert found.value == 1.0
