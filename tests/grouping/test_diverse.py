"""l and t in every grouping: counted with fractions, against all partitions of tiny tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessella.diversity import Diversity
from tessella.exceptions import BadOptionError, BadTableError, BrokenPromiseError, DiversityError
from tessella.grouping import MDAV, Grouping, Search, UnivariateOptimal, lower_bound
from tessella.grouping.base import sse_of
from tessella.grouping.cells import MemoryCells, search_in_cells
from tessella.grouping.diverse import mend, merge_lacking

from ..reference.diversity import satisfies
from .test_units import groupings, least_sse

KINDS = ["distinct", "entropy", "recursive", "equal", "ordered"]


def option_of(asked: Any) -> dict[str, Any]:
    kind, limit, c = asked
    if kind == "distinct":
        return {"l": int(limit)}
    if kind == "recursive":
        return {"l": {"recursive": [c, int(limit)]}}
    return {"l" if kind == "entropy" else "t": {kind: limit}}


def random_table(seed: int, n: int | None = None, k: int | None = None) -> Any:
    """Records, confidential values (some missing), weights, k, and what all records together have.

    Keys and values are related in some tables: near records are then alike in their values.
    """
    random = np.random.default_rng(seed)
    n = int(random.integers(6, 60)) if n is None else n
    k = int(random.integers(2, 6)) if k is None else k
    n = max(n, 2 * k)
    m = int(random.integers(2, 7))
    values: Any = random.choice(m, n, p=random.dirichlet(np.full(m, 2.0)))
    X = random.normal(size=(n, 2)) + (3.0 * values[:, None] if seed % 3 == 0 else 0.0)
    if seed % 4 == 0:
        X = X.round(0)
    values = [None if random.random() < 0.1 * (seed % 5 == 0) else int(v) for v in values]
    values[0] = 0
    weights = random.integers(1, 9, n).astype(float) if seed % 7 == 0 else np.ones(n)
    kind = KINDS[seed % 5]
    if kind in ("equal", "ordered"):
        asked = (kind, float(random.choice([0.05, 0.1, 0.2, 0.3])), 0.0)
    else:
        limit = {"distinct": random.integers(2, 4), "entropy": 1.2 + random.random()}
        asked = (kind, float(limit.get(kind, 2)), float(random.choice([1.0, 2.0, 3.0])))
    return X, values, weights, k, asked


def check_promise(seed: int, share: int = 1) -> None:
    X, values, weights, k, asked = random_table(seed)
    wanted = Diversity.of(np.array(values, dtype=float), **option_of(asked))
    possible = satisfies(asked, values, values)
    for grouping in groupings(k, seed)[seed % share :: share]:
        table = X[:, :1] if isinstance(grouping, UnivariateOptimal) else X
        if not possible:
            with pytest.raises(DiversityError):
                grouping.fit(table, sample_weight=weights, diversity=wanted)
            continue
        labels = grouping.fit(table, sample_weight=weights, diversity=wanted).labels_
        for g in range(labels.max() + 1):
            inside = [v for v, at in zip(values, labels) if at == g]
            assert len(inside) >= k
            assert satisfies(asked, inside, values), (type(grouping).__name__, seed)


def test_every_group_of_every_grouping_is_diverse():
    for seed in range(35):
        check_promise(seed, share=5)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize(
    "seeds", [range(35, 135), *(range(s, s + 100) for s in range(1000, 3000, 100))]
)
def test_every_group_of_every_grouping_is_diverse_in_2000_tables(seeds):
    for seed in seeds:
        check_promise(seed, share=2)


def check_against_all_partitions(seed: int, n: int) -> bool:
    """Return whether the search missed the optimum; it never beats it, nor does the bound."""
    X, values, weights, k, asked = random_table(seed, n=n, k=2 + seed % 2)
    if not satisfies(asked, values, values):
        return False
    least = least_sse(
        X, weights,
        lambda part: len(part) >= k and satisfies(asked, [values[i] for i in part], values),
    )  # fmt: skip
    wanted = Diversity.of(np.array(values, dtype=float), **option_of(asked))
    given = {"sample_weight": weights, "diversity": wanted}
    found = Search(k, effort="quick", random_state=0).fit(X, **given)
    assert found.inertia_ >= least * (1 - 1e-9)
    assert MDAV(k).fit(X, **given).inertia_ >= least * (1 - 1e-9)
    quick = lower_bound(X, k, effort="quick", **given).value
    assert quick <= least * (1 + 1e-9)
    assert lower_bound(X, k, effort="quick", sample_weight=weights).value <= quick * (1 + 1e-9)
    better = lower_bound(X, k, effort="thorough", labels=found.labels_, **given).value
    assert better <= least * (1 + 1e-9)
    return bool(found.inertia_ > least * (1 + 1e-9))


def test_search_finds_the_least_of_all_partitions_and_no_bound_is_above():
    missed = sum(check_against_all_partitions(seed, 7) for seed in range(20))
    assert missed <= 2


@pytest.mark.slow
def test_the_same_with_9_records():
    missed = sum(check_against_all_partitions(seed, 9) for seed in range(100, 160))
    assert missed <= 3


@pytest.mark.usefixtures("few_moves")
@pytest.mark.parametrize("kind", KINDS)
def test_units_and_values_together(kind):
    """k counts units, l and t count records."""
    random = np.random.default_rng(3)
    units = np.repeat(np.arange(30), 3)
    X, values = random.normal(size=(90, 2)) + units[:, None] / 9, random.integers(0, 4, 90)
    asked = (kind, 0.25 if kind in ("equal", "ordered") else 2.0, 2.0)
    wanted = Diversity.of(values, **option_of(asked))
    for grouping in (Search(3, effort="quick", random_state=0), MDAV(3)):
        labels = grouping.fit(X, units=units, diversity=wanted).labels_
        for g in range(labels.max() + 1):
            assert len(set(units[labels == g])) >= 3
            assert satisfies(asked, values[labels == g].tolist(), values.tolist())


def test_strata_are_compared_with_the_whole_table_and_refused_by_name():
    values = ["a", "b"] * 6 + ["a"] * 4
    X, strata = np.arange(16.0)[:, None], np.array(["north"] * 12 + ["south"] * 4)
    with pytest.raises(DiversityError, match=r"south \(1\)"):
        Search(2, effort="quick").fit(X, strata=strata, diversity=Diversity.of(values, l=2))
    wanted = Diversity.of(values, t={"equal": 0.4})
    labels = MDAV(2).fit(X, strata=strata, diversity=wanted).labels_
    assert wanted.kept(labels).all()


def test_two_columns_must_each_be_diverse():
    random = np.random.default_rng(0)
    values = random.integers(0, 3, (60, 2))
    labels = Search(3, effort="quick", random_state=0).fit(
        random.normal(size=(60, 2)), diversity=Diversity.of(values, l=2, t={"equal": 0.4})
    ).labels_  # fmt: skip
    for g in range(labels.max() + 1):
        for column in values.T:
            inside = column[labels == g].tolist()
            assert len(set(inside)) >= 2
            assert satisfies(("equal", 0.4, 0.0), inside, column.tolist())


def test_groups_that_satisfy_it_anyway_are_left_as_they_are():
    random = np.random.default_rng(1)
    X, wanted = random.normal(size=(50, 2)), Diversity.of(np.arange(50), l=3)
    assert (MDAV(3).fit(X, diversity=wanted).labels_ == MDAV(3).fit(X).labels_).all()


@pytest.mark.usefixtures("few_moves")
def test_the_same_seed_gives_the_same_groups():
    X, values, _, _, _ = random_table(7, n=200, k=3)
    wanted = Diversity.of(np.array(values, dtype=float), l=2)
    first, again = (
        Search(3, effort="quick", random_state=4).fit(X, diversity=wanted).labels_ for _ in range(2)
    )
    assert (first == again).all()


@pytest.mark.usefixtures("few_moves")
def test_search_loses_less_than_mending_and_mending_less_than_merging():
    random = np.random.default_rng(5)
    X, values = random.normal(size=(300, 2)), random.choice(3, 300, p=[0.7, 0.2, 0.1])
    wanted, weights = Diversity.of(values, l=2, t={"equal": 0.3}), np.ones(300)
    plain = MDAV(3).fit(X).labels_
    losses = [
        Search(3, effort="quick", random_state=0).fit(X, diversity=wanted).inertia_,
        sse_of(X, weights, mend(X, weights, plain, 3, wanted, 0)),
        sse_of(X, weights, merge_lacking(X, weights, plain, 3, wanted)),
    ]
    assert losses == sorted(losses)
    assert losses[0] < 0.7 * losses[2]


@pytest.mark.parametrize("with_units", [False, True])
def test_cells_of_a_large_table(with_units):
    """Values go with a place: cells that hold one value only are given up."""
    random = np.random.default_rng(2)
    X = random.normal(size=(4000, 2))
    values = np.where(X[:, 0] > 1, 0, random.integers(0, 3, 4000))
    units = np.arange(4000) // 2 if with_units else None
    wanted = Diversity.of(values, l=2).with_units(units, 3)
    cells = MemoryCells(X, np.ones(4000), units, np.zeros(1, dtype=np.uint8), wanted)
    rounds = [(20.0, (0.5, 0.1)), (20.0, (0.2, 0.02))]
    search_in_cells(
        cells, 3, np.random.default_rng(0), rounds, report=lambda *_: None, cell=150
    )  # fmt: skip
    assert wanted.kept(cells.labels).all()


def test_what_a_method_breaks_is_withheld():
    class Careless(Grouping):
        def _group(self, X: Any, weights: Any, k: int, random: Any) -> Any:
            return np.arange(len(X)) // k

        def _group_diverse(self, X: Any, weights: Any, k: int, random: Any, *_: Any) -> Any:
            return self._group(X, weights, k, random)

    with pytest.raises(BrokenPromiseError, match="confidential"):
        Careless(2).fit(np.arange(4.0)[:, None], diversity=Diversity.of([0, 0, 1, 1], l=2))


def test_what_is_no_diversity_is_refused():
    X = np.arange(6.0)[:, None]
    with pytest.raises(BadOptionError, match="Diversity"):
        MDAV(2).fit(X, diversity=[1, 2, 3, 4, 5, 6])
    with pytest.raises(BadTableError, match="must be 6, one for each record"):
        MDAV(2).fit(X, diversity=Diversity.of([0, 1], l=2))
    with pytest.raises(BadTableError, match="diversity"):
        lower_bound(
            X, 2, labels=[0, 0, 0, 1, 1, 1], diversity=Diversity.of([0, 0, 0, 1, 1, 1], l=2)
        )


def test_the_gap_knows_what_values_cost():
    """Two places with one value each: {0, 9, 9} and {0, 0, 9} cost 54 each, which is least."""
    X = np.array([[0.0], [0.0], [0.0], [9.0], [9.0], [9.0]])
    fitted = Search(2, effort="quick", random_state=0).fit(
        X, diversity=Diversity.of([0, 0, 0, 1, 1, 1], l=2)
    )
    assert fitted.inertia_ == pytest.approx(108.0)
    assert fitted.gap_ < 0.5
    assert Search(2, effort="quick", random_state=0).fit(X).inertia_ == 0
