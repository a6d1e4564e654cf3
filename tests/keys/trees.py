"""Random hierarchies and tables of keys."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tessella.keys import Hierarchy


def random_hierarchy(random, n_leaves, n_levels, name="v"):
    """Leaves that are merged at random from level to level."""
    ids = np.arange(n_leaves)
    rows = [[f"{name}{i}" for i in ids]]
    for level in range(1, n_levels):
        many = max(1, int(random.integers(1, max(2, ids.max() + 1))))
        ids = random.integers(0, many, ids.max() + 1)[ids]
        ids = np.unique(ids, return_inverse=True)[1]
        rows.append([f"{name}{level}-{i}" for i in ids])
    return Hierarchy(list(zip(*rows)))


def random_table(random, n, hierarchies, missing=0.0):
    table = {}
    for name, hierarchy in hierarchies.items():
        leaves = np.array(hierarchy.leaves, dtype=object)
        shares = random.dirichlet(np.full(len(leaves), 0.6))
        column = leaves[random.choice(len(leaves), n, p=shares)]
        column[random.random(n) < missing] = None
        table[name] = column
    return pd.DataFrame(table)
