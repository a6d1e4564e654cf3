"""The two tables as a knowing intruder sees them: what was masked together, what stayed as it was.

Columns that he knows and that were not masked are released as they are: there a masked record and
its original agree. So do missing cells, and strata.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import Integers, Name
from ...exceptions import AttackError
from ...frame import Table, View
from ...kernels.duplicates import number_equal
from ...masking.selection import select
from ...schema import Schema
from ..aligned import AlignedTables, align_tables

__all__ = ["Scene", "number_equal_rows", "set_scene"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """Both tables, aligned, in the columns that the intruder knows.

    `masked` are the places of the known columns that were masked, `blocks` those of each block of
    which some column is known, and `whole` says whether all of them are.
    """

    sides: AlignedTables
    masked: list[int]
    blocks: list[list[int]]
    whole: list[bool]
    strata: Integers  # (n,) of the originals
    like: Integers  # (n,) originals with the same number agree in all that was not masked
    likes: Integers  # (m,) the same of masked records; -1 if no original agrees
    notes: tuple[str, ...]

    @property
    def n(self) -> int:
        """The number of originals."""
        return len(self.sides.B)

    @property
    def m(self) -> int:
        """The number of masked records."""
        return len(self.sides.A)

    @property
    def complete(self) -> bool:
        """Whether every original was released."""
        return self.n == self.m

    def need_complete(self, what: str) -> None:
        """Refuse a masked table with fewer records than the original."""
        if not self.complete:
            raise AttackError.incomplete(what, self.n, self.m)


def set_scene(
    original: Any,
    masked: Any,
    *,
    known: Any,
    id: Name | None,
    schema: Schema | None,
    columns: Any,
    strata: Any,
    blocks: Any = None,
) -> Scene:
    """Read both tables and sort their columns, or say why they cannot be compared."""
    original, masked = View.of(original, schema), View.of(masked, schema)
    sides = align_tables(original, masked, known=known, id=id, schema=schema)
    before, after = original.table, masked.table
    if columns is None:
        columns = _numbers(before, after, id, strata, schema)
    chosen = select(
        before, columns=columns, blocks=blocks, strata=strata, weights=None, schema=None
    )
    place = {name: j for j, name in enumerate(sides.columns)}
    hidden = [place[name] for name in chosen.masked if name in place]
    if not hidden:
        raise AttackError.nothing_masked(chosen.masked, sides.columns)
    if text := [sides.columns[j] for j in hidden if sides.nominal[j]]:
        raise AttackError.not_numbers(text)
    seen = [[place[name] for name in block if name in place] for block in chosen.blocks]
    kept = [(own, len(own) == len(block)) for own, block in zip(seen, chosen.blocks) if own]
    open_ = [j for j in range(len(sides.columns)) if j not in set(hidden)]
    layers = chosen.strata.ids
    notes = [f"known: {', '.join(str(sides.columns[j]) for j in hidden)}", *sides.notes]
    if open_:
        named = ", ".join(str(sides.columns[j]) for j in open_)
        notes.append(f"known and released as they are, so equal in both tables: {named}")
    if len(chosen.strata.names) > 1:
        notes.append("he knows the stratum of each record")
    like, likes = _agreeing(sides, open_, layers)
    return Scene(
        sides=sides,
        masked=hidden,
        blocks=[own for own, _ in kept],
        whole=[whole for _, whole in kept],
        strata=layers,
        like=like,
        likes=likes,
        notes=tuple(notes),
    )


def number_equal_rows(columns: Sequence[Any]) -> Integers:
    """Number records 0, 1, ... that agree in all columns; missing cells agree with each other."""
    X = np.column_stack(columns).astype(np.float64)
    lacking = np.isnan(X)
    if lacking.any():
        X = np.hstack([np.where(lacking, 0.0, X), lacking])
    ids: Integers = number_equal(np.ascontiguousarray(X))[0]
    return ids


def _numbers(
    before: Table, after: Table, id: Name | None, strata: Any, schema: Schema | None
) -> list[Name]:
    """Take all columns of numbers for masked that nothing else is said of."""
    named = strata if isinstance(strata, list | tuple) else [strata]
    taken = {id, *(name for name in named if isinstance(name, Hashable) and before.has(name))}
    left_out: set[Name] = set()
    if schema is not None:
        schema.check(before)
        left_out = {
            column.name
            for column in schema
            if column.role != "quasi-identifier" or column.kind in ("ordinal", "nominal")
        }
    return [
        name
        for name in before.columns
        if after.has(name)
        and name not in taken
        and name not in left_out
        and before.facts(name).numeric
    ]


def _agreeing(
    sides: AlignedTables, places: Sequence[int], strata: Integers
) -> tuple[Integers, Integers]:
    """Number originals and masked records that agree in what was not masked."""
    n = len(sides.B)
    columns = [np.concatenate([strata, strata[sides.truth]])]
    for j in places:
        columns.append(np.concatenate([sides.B[:, j], sides.A[:, j]]))
    numbers = number_equal_rows(columns)
    own = np.unique(numbers[:n])
    like = np.searchsorted(own, numbers[:n])
    at = np.minimum(np.searchsorted(own, numbers[n:]), len(own) - 1)
    return like, np.where(own[at] == numbers[n:], at, -1)
