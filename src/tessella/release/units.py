"""Units that are released under new numbers, drawn at random.

Who sees which records are of one unit sees the unit as a whole. So k units must agree in all their
records together, which is more than k units in each group of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._types import Integers, Name
from ..exceptions import BadOptionError, RefusedError
from ..frame import Table, View, group_ids
from ..schema import Column, Schema
from .result import Release

NUMBERS = 2**32 - 2  # the place of new numbers among the seeds: no step stands there


def alike_units(view: View, columns: Sequence[Name]) -> Integers:
    """Return for each unit how many units have the same records in some columns, itself included.

    >>> import numpy as np, pandas as pd
    >>> table = pd.DataFrame({"x": [1, 2, 2, 1, 1]})
    >>> alike_units(View(table, None, np.array([0, 0, 1, 1, 2])), ["x"])
    array([2, 2, 1])
    """
    units: Any = view.units
    sets = view.group_ids(columns)
    order = np.lexsort((sets, units))
    starts = np.flatnonzero(np.diff(units[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    # Units are alike iff they have the same number of records and the same p-th set for every p.
    alike = sizes.astype(np.int64)
    for place in range(int(sizes.max())):
        own = np.full(len(starts), -1)
        has = sizes > place
        own[has] = sets[order][starts[has] + place]
        alike = group_ids([alike, own])
    return np.bincount(alike)[alike]


def renumber_units(
    found: Release,
    table: Table,
    views: tuple[View, View],
    columns: Sequence[Name],
    random_state: int | None,
) -> Release:
    """Return a release with new numbers in its column of units, or refuse it.

    `table` is the masked table with the units' own numbers, `views` the reference and the table as
    it may be seen; `columns` are those that k was promised in.
    """
    unit, k = views[0].unit, found.audit.k
    if unit is None or k is None:
        raise BadOptionError(
            "units", "renumbered", "a column with the role 'unit', and a step that promises k"
        )
    few = alike_units(views[1], columns)
    if (below := int((few < k).sum())) > 0:
        raise RefusedError(
            f"{below:,} of {len(few):,} units are like fewer than {k} in all their records "
            "together, and new numbers would show which records these are. Leave the numbers out "
            '(units = "left out"), leave these units out, or give columns that are constant '
            "within units, which are then masked whole."
        )
    _, texts = table.labels(unit)
    seed = None if random_state is None else [random_state, NUMBERS]
    numbers = 1 + np.random.default_rng(np.random.SeedSequence(seed)).permutation(len(texts))
    every = [str(number) for number in range(1, len(texts) + 1)]  # else in the original's order
    fresh = table.relabel(unit, [str(number) for number in numbers], order=every)
    drawn = Column(name=unit, kind="nominal", role="untouched", why="numbers drawn at random")
    known: Any = views[0].schema
    schema = Schema([drawn if column.name == unit else column for column in known])
    return replace(found, table=fresh, schema=schema)
