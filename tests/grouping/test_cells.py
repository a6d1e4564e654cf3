"""Large tables in cells: every record in one, k kept whatever the values, no border in the loss."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella import parallel
from tessella.exceptions import InterruptedWarning
from tessella.frame import count_units
from tessella.grouping import Search
from tessella.grouping import search as searching
from tessella.grouping.base import sse_of
from tessella.grouping.cells import CutTree, MemoryCells, keys_of, search_in_cells
from tests.clock import driven_clock

HALT = np.zeros(1, dtype=np.uint8)


def in_cells(X, k, *, units=None, cell=200, rounds=6, seed=0, weights=None, moves=30.0):
    cells = MemoryCells(X, np.ones(len(X)) if weights is None else weights, units, HALT)
    heats = [searching.MIX if 2 * turn < rounds else searching.REFINE for turn in range(rounds)]
    sums = []
    search_in_cells(
        cells, k, np.random.default_rng(seed), [(moves, heat) for heat in heats],
        report=lambda _, sse: sums.append(sse), cell=cell,
    )  # fmt: skip
    assert (np.diff(sums) <= 1e-9 * sums[0]).all()
    return cells


def side_of(tree: CutTree, point, key: float) -> int:
    """Go down the tree by plain Python: an independent way."""
    place = 0 if len(tree.below) else -1
    while place >= 0:
        total = 0.0
        for x, a in zip(point.tolist(), tree.directions[place].tolist()):
            total += x * a
        height = tree.heights[place]
        under = total < height or (total == height and key < tree.ties[place])
        place = int((tree.below if under else tree.above)[place])
    return -1 - place


@pytest.mark.parametrize("values", ["normal", "zeros", "whole", "equal"])
def test_cells_are_those_of_plain_python_and_not_too_large(values):
    random = np.random.default_rng(3)
    X = random.standard_normal((3000, 3))
    if values == "zeros":
        X *= random.random(X.shape) < 0.2
    elif values == "whole":
        X = np.round(X)
    elif values == "equal":
        X[:] = 1.5
    keys = keys_of(np.arange(3000))
    tree = CutTree.grow(X, keys, 100, seed=1)
    cells = tree.cells_of(X, keys)
    assert cells.tolist() == [side_of(tree, x, key) for x, key in zip(X, keys.tolist())]
    sizes = np.bincount(cells, minlength=tree.n_cells)
    assert len(sizes) == tree.n_cells
    assert sizes.max() <= 100  # the sample is the table; equal records are shared out, too
    assert sizes.min() >= 34


def test_a_tree_of_one_cell():
    X = np.zeros((5, 2))
    tree = CutTree.grow(X, np.zeros(5), 10, seed=0)
    assert tree.n_cells == 1
    assert tree.cells_of(X, np.zeros(5)).tolist() == [0] * 5


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30)
def test_cells_without_records_stay_empty(seed):
    random = np.random.default_rng(seed)
    X, keys = random.standard_normal((200, 2)), random.random(200)
    tree = CutTree.grow(X, keys, 20, seed)
    left = list(range(tree.n_cells))
    while len(left) > 1:  # in any order, until all are in one
        gone = left.pop(int(random.integers(len(left))))
        tree = tree.without([gone])
        assert set(np.unique(tree.cells_of(X, keys)).tolist()) <= set(left)


@given(seed=st.integers(0, 10_000), share=st.floats(0.1, 1.0))
@settings(max_examples=30)
def test_of_many_cells_at_once_at_least_half_are_emptied(seed, share):
    random = np.random.default_rng(seed)
    X, keys = random.standard_normal((300, 2)), random.random(300)
    tree = CutTree.grow(X, keys, 10, seed)
    few = np.flatnonzero(random.random(tree.n_cells) < share)
    left = np.unique(tree.without(few).cells_of(X, keys))
    assert len(left) >= 1
    assert len(np.intersect1d(left, few)) <= (len(few) + 1) / 2


def test_ctrl_c_in_a_cell_ends_the_others(monkeypatch):
    monkeypatch.setenv("TESSELLA_CORES", "2")
    halt = np.zeros(1, dtype=np.uint8)

    def work(piece):
        if piece == 0:
            raise KeyboardInterrupt
        while not halt[0]:  # as kernels do
            threading.Event().wait(0.001)

    with pytest.raises(KeyboardInterrupt):
        parallel.each(work, range(2), halt=halt)


@given(
    n=st.integers(250, 900),
    k=st.integers(2, 12),
    values=st.sampled_from(["normal", "whole", "zeros", "heavy", "far"]),
    unit=st.sampled_from([None, 40, 300]),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=60)
def test_k_is_kept_and_sums_are_right(n, k, values, unit, seed):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 3))
    if values == "whole":
        X = np.round(X)
    elif values == "zeros":
        X *= random.random(X.shape) < 0.1
    elif values == "heavy":
        X = random.pareto(0.7, X.shape)
    elif values == "far":  # one record far out has a cell of its own, in a sample of all records
        X[0] = 1e6
    units = None if unit is None else random.integers(unit, size=n)
    weights = random.uniform(0.5, 3.0, n)
    table = in_cells(X, k, units=units, cell=60, rounds=2, seed=seed, weights=weights)
    assert count_units(table.labels, units).min() >= k
    assert table.sse == pytest.approx(sse_of(X, weights, table.labels), rel=1e-9)
    for label in random.integers(table.labels.max() + 1, size=5):
        own = table.labels == label
        np.testing.assert_allclose(
            table.centres[label], np.average(X[own], axis=0, weights=weights[own]), atol=1e-9
        )


def test_rounds_never_make_it_worse_and_no_border_shows(monkeypatch):
    """Small cells, cut anew in each round, lose little; cells that stay as they are, a lot."""
    X = np.random.default_rng(0).standard_normal((12_000, 4))

    def search(cell):
        return in_cells(X, 5, cell=cell, moves=20.0).sse

    anew, whole = search(500), search(12_000)
    grow, trees = CutTree.grow, []

    def first_of_all(*given):
        trees.append(trees[0] if trees else grow(*given))
        return trees[0]

    monkeypatch.setattr(CutTree, "grow", first_of_all)
    walls = search(500)
    assert whole < anew < 1.05 * whole
    assert walls > anew + 2 * (anew - whole)


def test_the_same_on_one_core_and_on_three(monkeypatch):
    X = np.random.default_rng(1).standard_normal((4_000, 3))
    found = []
    for cores in ("1", "3"):
        monkeypatch.setenv("TESSELLA_CORES", cores)
        found.append(in_cells(X, 4, cell=300, rounds=2).labels)
    np.testing.assert_array_equal(*found)


@pytest.mark.usefixtures("few_moves")
def test_search_takes_cells_above_their_size(monkeypatch):
    monkeypatch.setattr(searching, "LARGE", 7_000)
    X = np.random.default_rng(2).standard_normal((9_000, 3))
    seen = []
    found = Search(4, effort="quick", random_state=0, progress=lambda *one: seen.append(one)).fit(X)
    assert np.bincount(found.labels_).min() >= 4
    first = np.unique(found.labels_, return_index=True)[1]
    assert (np.diff(first) > 0).all()  # numbered by first appearance
    assert found.inertia_ == pytest.approx(sse_of(X, np.ones(len(X)), found.labels_))
    assert [one[0] for one in seen] == sorted(one[0] for one in seen)
    assert seen[-1][0] == 1000
    rounds = len(searching.large_rounds(searching.standard_moves(len(X)) / 16))
    assert len(seen) > 2 * rounds  # each round reports its cells, too


@pytest.mark.usefixtures("few_moves")
def test_a_search_in_cells_ends_when_told(monkeypatch):
    """By a time limit (each look at the clock is a second), by `progress`, and by Ctrl-C."""
    monkeypatch.setattr(searching, "LARGE", 500)
    X = np.random.default_rng(2).standard_normal((900, 3))
    least = []
    for limit in (4, 14):
        with driven_clock() as clock:
            found = Search(3, effort="quick", time_limit=limit, random_state=0).fit(X)
        assert found.stopped_ == "time"
        assert limit <= clock.looks <= 2 * limit + 4
        least.append(found.inertia_)
    assert least[1] < least[0]
    seen = []

    def stop(*_):
        seen.append(1)
        return len(seen) == 3

    found = Search(3, effort="quick", progress=stop, random_state=0).fit(X)
    assert found.stopped_ == "callback"
    assert len(seen) == 3

    def interrupt(done, total, name):
        if not name.startswith("start"):
            raise KeyboardInterrupt

    search = Search(3, effort="quick", progress=interrupt, random_state=0)
    with pytest.warns(InterruptedWarning):
        search.fit(X)
    assert search.stopped_ == "interrupt"
    assert np.bincount(search.labels_).min() >= 3


def test_a_row_is_in_the_sample_by_itself():
    cells = MemoryCells(np.zeros((1_000, 1)), np.ones(1_000), None, HALT)
    many = MemoryCells(np.zeros((10_000, 1)), np.ones(10_000), None, HALT)
    few, rows = cells.sample(100, 7)[0], many.sample(1_000, 7)[0]
    assert few.tolist() == rows[rows < 1_000].tolist()
    assert 60 < len(few) < 140


def test_work_within_work_stays_on_its_core(monkeypatch):
    monkeypatch.setenv("TESSELLA_CORES", "2")

    def outer(_: int) -> set[int]:
        return set(parallel.each(lambda _: threading.get_ident(), range(8)))

    assert all(len(found) == 1 for found in parallel.each(outer, range(2)))
    assert parallel.each(lambda x: x, [1, 2]) == [1, 2]
