"""Steps that prepare a table, done on some of its rows as they would be on all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .._types import Integers, Name
from ..frame import Table, View, group_ids
from ..keys.sources import names_of_intervals
from ..schema import Schema
from .forms import Form
from .steps import Step, Suppressed, drop, join_patterns, recode


@dataclass(frozen=True, eq=False)
class Suppression:
    """Which cells of a large table are suppressed: what each pattern of missing cells becomes."""

    columns: tuple[Name, ...]
    patterns: Integers  # distinct
    goals: Integers
    source: Integers  # for each cell a pattern whose records have it
    donors: pa.Table  # a row of the table for each pattern
    lost: Suppressed  # in the whole table

    @classmethod
    def of(
        cls, columns: Sequence[Name], pieces: Sequence[Mapping[str, Any]],
        donors: Sequence[pa.Table], k: int,
    ) -> Suppression:  # fmt: skip
        """Decide it from what was counted in the pieces."""
        every = np.concatenate([own["patterns"] for own in pieces])
        place = group_ids(every.T)  # as they first appear, so that ties are as in one table
        first = np.unique(place, return_index=True)[1]
        patterns = every[first]
        records = np.bincount(place, np.concatenate([own["records"] for own in pieces]))
        records = records.astype(np.int64)
        counts, units = records, None
        if "units" in pieces[0]:
            units = [set[int]() for _ in patterns]
            starts = np.cumsum([0, *(len(own["patterns"]) for own in pieces)])
            for own, start in zip(pieces, starts):
                for at, unit in own["units"].tolist():
                    units[place[at + start]].add(unit)
            counts = np.array([len(own) for own in units])
        goals, source = join_patterns(patterns, records, counts, units, k)
        lost = Suppressed.of(columns, patterns, goals, records)
        shown = pa.concat_tables(donors).take(pa.array(first))
        return cls(tuple(columns), patterns, goals, source, shown, lost)

    def apply(self, table: Table, schema: Schema) -> Any:
        """Suppress cells of a table whose last rows are the donors."""
        view = View(table, schema)
        states = np.column_stack([view.states(name).astype(np.int64) for name in self.columns])
        m, n = len(self.patterns), table.n_rows - len(self.patterns)
        ids = group_ids(states.T)
        of_id = np.full(int(ids.max()) + 1, -1)
        of_id[ids[n:]] = np.arange(m)  # the donors have one pattern each, in their order
        own = of_id[ids]
        changed = ((self.goals > 0) & (self.goals != self.patterns))[own]
        if not changed.any():
            return table.native
        rows = np.where(changed, n + self.source[own], np.arange(table.n_rows)[:, None])
        moved = {name: rows[:, j] for j, name in enumerate(self.columns) if changed[:, j].any()}
        return table.rearrange(moved)


def prepared(
    form: Form, steps: Sequence[Step], rows: pa.Table, schema: Schema,
    suppression: Suppression | None = None,
) -> tuple[Table, Schema]:  # fmt: skip
    """Do the steps that prepare a table on some of its rows.

    Cells are suppressed where it is known which; otherwise that step is left out.
    """
    n = rows.num_rows
    if suppression is not None:
        rows = pa.concat_tables([form.plain(rows), suppression.donors])
    table = Table.read(form.dress(rows))
    for step in steps:
        if step.method == "drop":
            made, schema = drop(table, schema, **step.options)
        elif step.method == "recode":
            made, schema = recode(table, schema, **_occurring(table, step.options))
            made = _with_all_intervals(made, step.options)
        else:
            made = table.native if suppression is None else suppression.apply(table, schema)
        table = Table.read(made)
    if suppression is not None:
        table = Table.read(table.take(np.arange(n)))
    return table, schema


def _with_all_intervals(table: pa.Table, options: Mapping[str, Any]) -> pa.Table:
    """Give a column of intervals all of them, in order: other rows may have those missing here."""
    if options.get("breaks") is None:
        return table
    name = options["column"]
    texts = table.column(name).cast(pa.string())
    place = table.column_names.index(name)
    names = names_of_intervals(options["breaks"], options.get("labels"))
    kind = pa.dictionary(pa.int32(), pa.string(), ordered=True)
    return Form({name: kind}, {name: names}).dress(table.set_column(place, name, texts))


def _occurring(table: Table, given: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of a recoding what does not occur in these rows."""
    options = dict(given)
    if options.get("groups") is not None:
        there = set(table.labels(options["column"])[1])
        options["groups"] = {
            name: [old for old in olds if str(old) in there]
            for name, olds in options["groups"].items()
        }
    return options
