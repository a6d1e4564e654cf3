"""Full-domain recoding against enumeration of the lattice, record by record."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.exceptions import GroupSizeError
from tessella.frame import View
from tessella.keys.coded import read_keys
from tessella.keys.lattice import Lattice
from tests.amounts import few_or_many
from tests.keys.trees import random_hierarchy, random_table
from tests.reference.recoding import LOSSES, enumerate_lattice


def searched(table, hierarchies, *, units=None, stratum=None, weights=None, **options):
    keys = read_keys(View(table), list(table), hierarchies)
    n = len(table)
    return Lattice(
        keys, stratum=np.zeros(n, dtype=np.int64) if stratum is None else stratum,
        weights=np.ones(n) if weights is None else weights, units=units, **options,
    )  # fmt: skip


def drawn(seed):
    random = np.random.default_rng(seed)
    d, n = int(random.integers(1, 4)), int(random.integers(4, 40))
    hierarchies = {
        f"c{j}": random_hierarchy(random, int(random.integers(1, 7)), int(random.integers(1, 5)))
        for j in range(d)
    }
    table = random_table(random, n, hierarchies, missing=0.15 * (seed % 3 == 0))
    rows = [tuple(x if isinstance(x, str) else None for x in row) for row in table.to_numpy()]
    units = random.integers(0, max(2, n // 2), n) if seed % 4 == 1 else None
    k = int(random.integers(2, 5))
    allowed = int(random.choice([0, 0, 2, 5, n // 3]))
    return table, hierarchies, rows, units, k, allowed


@few_or_many(48, 120)
@pytest.mark.parametrize("measure", LOSSES)
def test_equal_to_enumeration(measure, count):
    """An independent way to the same answer: random tables for each measure."""
    tried = 0
    for seed in range(count):
        table, hierarchies, rows, units, k, allowed = drawn(seed)
        least, where = enumerate_lattice(
            rows, list(hierarchies.values()), k=k, allowed=allowed, measure=measure,
            units=None if units is None else units.tolist(),
        )  # fmt: skip
        lattice = searched(table, hierarchies, k=k, allowed=allowed, units=units, measure=measure)
        if not where:
            with pytest.raises(GroupSizeError):
                lattice.search()
            continue
        found = lattice.search()
        assert found.loss == pytest.approx(least, abs=1e-9), seed
        assert found.levels in where, seed
        assert found.proved, seed
        assert found.emptied.sum() <= allowed
        tried += 1
    assert tried > 2 / 3 * count


def test_a_limit_gives_a_bound():
    random = np.random.default_rng(5)
    hierarchies = {f"c{j}": random_hierarchy(random, 12, 4) for j in range(4)}
    table = random_table(random, 300, hierarchies)
    best = searched(table, hierarchies, k=5).search()
    cut = searched(table, hierarchies, k=5, limit=6).search()
    assert best.proved
    assert cut.n_counted <= 7
    assert cut.bound <= best.loss <= cut.loss


def test_a_function_of_the_table_is_tried_everywhere():
    """Nothing is assumed of it: here coarser is better, and the top is found."""
    random = np.random.default_rng(6)
    hierarchies = {f"c{j}": random_hierarchy(random, 6, 3) for j in range(2)}
    table = random_table(random, 60, hierarchies)
    found = searched(table, hierarchies, k=2, measure=lambda levels, emptied: -sum(levels)).search()
    assert found.levels == tuple(h.n_levels - 1 for h in hierarchies.values())


def test_strata_and_weights():
    """By hand: k holds within strata; a heavy record decides which column is recoded."""
    from tessella.keys import Hierarchy

    h = Hierarchy([("a", "ab"), ("b", "ab")])
    table = __import__("pandas").DataFrame({"x": list("aabb"), "y": list("abab")})
    stratum = np.array([0, 0, 1, 1])
    found = searched(table, {"x": h, "y": h}, k=2, stratum=stratum).search()
    assert found.levels == (0, 1)
    table = __import__("pandas").DataFrame({"x": list("abab"), "y": list("abba")})
    assert searched(table, {"x": h, "y": h}, k=2).search().levels in [(0, 1), (1, 0)]
