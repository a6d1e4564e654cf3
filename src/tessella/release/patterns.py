"""Rare patterns of missing cells: records that nobody else resembles in what they lack.

Missing cells stay missing, so records share a group only if they lack the same cells. Where fewer
than k do, further cells are suppressed, as few as possible, until every pattern has k records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Integers, Name
from ..exceptions import BadOptionError
from ..frame import Table, View, group_ids
from ..grouping.base import check_k
from ..schema import Schema

__all__ = ["count_rare", "suppress"]


def count_rare(table: Table, schema: Schema, k: int, columns: Sequence[Name] | None = None) -> int:
    """Count the records whose pattern of missing cells fewer than k records have."""
    _, own, sizes = _patterns(table, schema, _chosen(table, schema, columns))
    return int((sizes[own] < k).sum())


def suppress(
    table: Table, schema: Schema, *, k: int, columns: Sequence[Name] | None = None
) -> tuple[Any, Schema, int]:
    """Return the table with further cells missing, the schema, and how many cells these are.

    Parameters
    ----------
    k : int
        How many records must lack the same cells.
    columns : names, optional
        The columns that count; by default all quasi-identifiers.

    Notes
    -----
    The rarest pattern P joins the pattern P' for which the fewest cells are suppressed,

        n(P) |P' - P| + n(P') |P - P'|,

    until no pattern has fewer than k records. Kinds of missing (null, or one code or another) are
    told apart, and the larger pattern's are taken.
    """
    names = _chosen(table, schema, columns)
    check_k(k, table.n_rows)
    patterns, own, sizes = _patterns(table, schema, names)
    donor = np.array([int(np.flatnonzero(own == p)[0]) for p in range(len(patterns))])
    source = np.tile(donor[:, None], (1, len(names)))  # where a pattern's cell can be taken from
    state, alive = patterns.copy(), np.ones(len(patterns), dtype=bool)
    became = np.arange(len(patterns))
    counts = sizes.copy()
    while True:
        living = np.flatnonzero(alive)
        least = living[np.argmin(counts[living])]
        if counts[least] >= k or len(living) == 1:
            break
        others = living[living != least]
        mine, theirs = state[least] > 0, state[others] > 0
        cost = counts[least] * (theirs & ~mine).sum(axis=1)
        cost = cost + counts[others] * (mine & ~theirs).sum(axis=1)
        differ = (theirs & mine & (state[others] != state[least])).sum(axis=1)
        best = others[np.lexsort((differ, cost))[0]]
        fill = mine & (state[best] == 0)  # those of the other pattern lose these cells, too
        state[best, fill], source[best, fill] = state[least, fill], source[least, fill]
        counts[best] += counts[least]
        alive[least] = False
        became[became == least] = best
    goal, taken = state[became[own]], source[became[own]]
    changed = (goal > 0) & (goal != patterns[own])
    lost = int((changed & (patterns[own] == 0)).sum())
    if not changed.any():
        return table.native, schema, 0
    rows = {}
    everyone = np.arange(table.n_rows)
    for j, name in enumerate(names):
        if changed[:, j].any():
            rows[name] = np.where(changed[:, j], taken[:, j], everyone)
    return table.rearrange(rows), schema, lost


def _chosen(table: Table, schema: Schema, columns: Sequence[Name] | None) -> list[Name]:
    if columns is None:
        return [name for name in table.columns if schema[name].role == "quasi-identifier"]
    named: list[Name] = [columns] if isinstance(columns, str) else list(columns)
    for name in named:
        table.place(name, who="suppress")
    if not named:
        raise BadOptionError("columns", columns, "at least one column")
    return named


def _patterns(
    table: Table, schema: Schema, names: Sequence[Name]
) -> tuple[Integers, Integers, Integers]:
    """Return the distinct patterns, the pattern of each record, and how many have each."""
    view = View.of(table, schema)
    own = group_ids([view.states(name).astype(np.int64) for name in names])
    first = np.unique(own, return_index=True)[1]
    patterns = np.column_stack([view.states(name)[first] for name in names]).astype(np.int64)
    return patterns, own, np.bincount(own)
