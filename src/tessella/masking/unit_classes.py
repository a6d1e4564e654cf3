"""Classes of units and of their members, by names that are the same in every piece of a table.

What `homes` and `households` number within a table, here has a name that other tables give it, too:
a hash of what sets it apart. So units of a table that is masked in cells can be counted by class,
and each cell gets none of a class, or enough of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Integers, Name
from ..frame import View
from ..plan import Plan
from ..rules import Rules
from .households import MOST_MEMBERS
from .wide import counted_truths, signs_of


@dataclass(frozen=True, eq=False)
class UnitClasses:
    """What keeps units apart: `apart` those that never share a group, in `classes` their members.

    Both are of each record. Of a unit, `shapes` are the number and kinds of its members.
    """

    apart: Integers
    classes: Integers
    shapes: Integers

    @classmethod
    def of(
        cls, plan: Plan, view: View, rules: Rules, common: Collection[Name], units: Integers
    ) -> UnitClasses:
        """Find them for records that are whole `units`, numbered from 0; see `Homes`.

        `common` are the columns that are constant in the units of the whole table.
        """
        names = [*(name for block in plan.blocks for name in block.columns), *plan.strata]
        keys = {
            name: _texts(view, name) if name in plan.strata else view.states(name) for name in names
        }
        apart = hashed([own for name, own in keys.items() if name in common], view.n_rows)
        counted = signs_of(counted_truths(rules), view)
        bounds = signs_of(counted_truths(rules, bounds=True), view)
        coarse = hashed([*keys.values(), *counted.values()], view.n_rows)
        classes = hashed([*keys.values(), *bounds.values()], view.n_rows)
        return cls(apart, classes, _shapes(units, coarse))


def hashed(keys: Sequence[Any], n: int) -> Integers:
    """Return a number for each of n combinations of keys, the same wherever they are."""
    import pandas as pd

    frame = pd.DataFrame({at: np.asarray(own).astype(np.int64) for at, own in enumerate(keys)})
    if not len(keys):
        return np.zeros(n, dtype=np.int64)
    return shortened(pd.util.hash_pandas_object(frame, index=False).to_numpy())


def hash_texts(codes: Integers, texts: Sequence[str]) -> Integers:
    """Return a number for each text that codes stand for, the same wherever they are."""
    import pandas as pd

    own = pd.util.hash_array(np.array([*texts, "\0missing"], dtype=object), categorize=False)
    found: Integers = shortened(own)[codes]
    return found


def shortened(hashes: Any) -> Integers:
    """Return hashes as numbers that are not negative."""
    found: Integers = (hashes >> np.uint64(1)).astype(np.int64)
    return found


def _texts(view: View, name: Name) -> Integers:
    codes, texts = view.table.labels(name)
    return hash_texts(codes, texts)


def _shapes(units: Integers, classes: Integers) -> Integers:
    """Return a number for the classes of each unit's members; 0 of units that have many."""
    order = np.lexsort((classes, units))
    sizes = np.bincount(units)
    starts = np.cumsum([0, *sizes[:-1]])
    shapes = np.zeros(len(sizes), dtype=np.int64)
    for size in np.unique(sizes[sizes <= MOST_MEMBERS]).tolist():
        own = np.flatnonzero(sizes == size)
        members = classes[order[starts[own][:, None] + np.arange(size)]]
        shapes[own] = hashed([np.full(len(own), size), *members.T], len(own))
    return shapes
