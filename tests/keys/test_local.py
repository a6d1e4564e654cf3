"""Local recoding: kernels against sums made anew, and the embedding against the hierarchy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tessella.frame import View, count_units
from tessella.grouping.base import check_seed
from tessella.keys.coded import read_keys
from tessella.keys.local import LocalRecoder, nodes_of_groups
from tests.amounts import few_or_many
from tests.keys.trees import random_hierarchy, random_table


def recoder_of(seed, *, n=None, numbers=0, units=False, parts=1):
    random = np.random.default_rng(seed)
    n = int(random.integers(12, 80)) if n is None else n
    hierarchies = {
        f"c{j}": random_hierarchy(random, int(random.integers(1, 9)), int(random.integers(1, 5)))
        for j in range(int(random.integers(1, 4)))
    }
    table = random_table(random, n, hierarchies, missing=0.1 * (seed % 2))
    keys = read_keys(View(table), list(table), hierarchies)
    return LocalRecoder(
        keys, random.normal(size=(n, numbers)), k=int(random.integers(2, 4)),
        parts=np.arange(n) % parts, weights=random.integers(1, 4, n).astype(float),
        units=random.integers(0, max(4, n // 2), n) if units else None, effort="quick",
        random_state=check_seed(seed),
    )  # fmt: skip


def plain_loss(recoder, labels, emptied):
    """The loss of a partition, group by group, from the definition."""
    total = 0.0
    for g in np.unique(labels):
        rows = np.flatnonzero(labels == g)
        for j, key in enumerate(recoder.keys):
            mass = recoder.records.mass[rows, j].sum()
            if emptied[rows].all():
                total += mass
                continue
            for level in range(key.n_levels):
                nodes = set(key.table[level][key.codes[rows]].tolist())
                if len(nodes) == 1:
                    total += mass * key.penalty[nodes.pop()]
                    break
        weights = recoder.records.weights[rows]
        for x in recoder.records.numbers[rows].T:
            total += weights @ (x - np.average(x, weights=weights)) ** 2
    return total


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("numbers", [0, 2])
@few_or_many(24, 60)
def test_moves_keep_k_and_the_sums_are_right(units, numbers, count):
    """An independent way: random tables, everything counted anew from the labels."""
    for seed in range(count):
        recoder = recoder_of(seed, numbers=numbers, units=units, parts=1 + seed % 2)
        enough = count_units(recoder.parts, recoder.units).min() >= recoder.k
        if not enough:
            continue
        none = np.zeros(len(recoder.parts), dtype=bool)
        split = recoder.split(recoder.parts, none)
        begun = plain_loss(recoder, split, none)
        assert begun <= plain_loss(recoder, recoder.parts, none) + 1e-9
        found = recoder.improve("parts", split, none, 0)
        assert found.loss == pytest.approx(plain_loss(recoder, found.labels, found.emptied))
        assert found.loss <= begun + 1e-9
        assert count_units(found.labels, recoder.units).min() >= recoder.k
        for g in np.unique(found.labels):
            assert len(set(recoder.parts[found.labels == g])) == 1


def test_emptied_records_are_a_group_within_the_budget():
    tried = 0
    for seed in range(60):
        recoder = recoder_of(seed, n=60)
        emptied = np.zeros(60, dtype=bool)
        emptied[: recoder.k + 2] = True
        labels = recoder.split(recoder.parts, emptied)
        found = recoder.improve("parts", labels, emptied, 8)
        assert found.emptied.sum() in {0, *range(recoder.k, max(9, recoder.k + 3))}
        assert count_units(found.labels, None).min() >= recoder.k
        assert found.loss == pytest.approx(plain_loss(recoder, found.labels, found.emptied))
        tried += found.emptied.any()
    assert tried


def test_the_embedding_has_the_distance_of_the_hierarchy():
    """Squared distances are sums of penalties, where no axis is left out."""
    from tessella.keys import local

    recoder = recoder_of(4, n=20)
    wide, local.DIMENSIONS = local.DIMENSIONS, 10_000
    try:
        X = recoder.coordinates()
    finally:
        local.DIMENSIONS = wide
    for i, j in [(0, 1), (2, 7), (3, 3), (5, 19)]:
        expected = 0.0
        for key in recoder.keys:
            pair = np.array([key.codes[i], key.codes[j]])
            expected += key.penalty[nodes_of_groups(pd_key(key, pair), np.zeros(2, int))[0]]
        assert ((X[i] - X[j]) ** 2).sum() == pytest.approx(expected)


def pd_key(key, codes):
    """The same key with other records."""
    from dataclasses import replace

    return replace(key, codes=codes)


def test_ancestors_of_groups_by_hand():
    from tessella.keys import Hierarchy

    h = Hierarchy([("a", "ab"), ("b", "ab"), ("c", "c2")])
    keys = read_keys(View(pd.DataFrame({"x": list("aabbcca")})), ["x"], {"x": h})
    nodes = nodes_of_groups(keys[0], np.array([0, 0, 1, 2, 2, 3, 1]))
    assert [h.nodes[node] for node in nodes] == ["a", "a", "ab", "*", "*", "c", "ab"]
