"""What the intruder is given, read once for all attacks, and which records he attacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._types import Name
from ...schema import Schema
from ..aligned import AlignedTables, align_tables
from .strata import Draw, draw_strata

__all__ = ["Case"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """What the intruder is given.

    Attributes
    ----------
    original, masked : tables
        The two files; views, so that each column is read once.
    known : tuple of names
        The variables that he knows.
    schema : Schema or None
        Kinds, roles and missing codes.
    id : name or None
        The column that says who is who.
    method : masker, mapping or None
        How the table was masked, if he knows it.
    confidential : tuple of names
        What he wants to know of a person.
    weights, household : name, array or None
        Of a sample.
    effort : {"quick", "standard", "thorough"}
        How hard he tries.
    held_out : bool
        Whether learned distances are also tried on records that they were not learned from.
    seconds : float or None
        How long a single attack may take, where it can be stopped.
    seed : int or None
        Of anything random.
    sample : int or None
        About how many records are attacked in a larger table.
    tag : object
        Whatever tells the caller which case it is; an exploration puts its candidate there.
    """

    original: Any
    masked: Any
    known: tuple[Name, ...]
    schema: Schema | None = None
    id: Name | None = None
    method: Any = None
    confidential: tuple[Name, ...] = ()
    weights: Any = None
    household: Any = None
    effort: str = "standard"
    held_out: bool = True
    seconds: float | None = None
    seed: int | None = None
    sample: int | None = None
    tag: Any = None
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)  # what is read once

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made before under a key, or make it."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    @property
    def tables(self) -> AlignedTables:
        """The two tables in the variables that he knows."""

        def read() -> AlignedTables:
            return align_tables(
                self.original, self.masked, known=self.known, id=self.id, schema=self.schema
            )

        found: AlignedTables = self.keep("tables", read)
        return found

    @property
    def plain(self) -> tuple[Name, ...]:
        """The known variables that are numbers, without a missing one."""

        def find() -> tuple[Name, ...]:
            tables = self.tables
            whole = ~(np.isnan(tables.A).any(axis=0) | np.isnan(tables.B).any(axis=0))
            fit = whole & ~tables.nominal
            return tuple(name for name, fits in zip(tables.columns, fit) if fits)

        names: tuple[Name, ...] = self.keep("plain", find)
        return names

    @property
    def plain_tables(self) -> AlignedTables:
        """The two tables in the variables of `plain`."""
        found: AlignedTables = self.keep("plain tables", lambda: self.tables.select(self.plain))
        return found

    @property
    def mixed(self) -> bool:
        """Whether there is more than plain numbers."""
        return len(self.plain) < len(self.known)

    @property
    def varied(self) -> bool:
        """Whether there are two plain numbers that can be weighed against each other."""
        return len(self.plain) > 1

    @property
    def keys(self) -> tuple[Name, ...]:
        """The known variables, without what is confidential: what classes are made by."""
        left = tuple(name for name in self.known if name not in self.confidential)
        return left or self.known

    def draw(self, pairs: float) -> Draw | None:
        """Return records to attack where all would be too many pairs; None for all."""
        m, n = len(self.tables.A), len(self.tables.B)
        most = int(max(1000, pairs / n))
        if self.sample is not None:
            most = min(most, self.sample)
        if m <= most:
            return None
        drawn: Draw = self.keep(most, lambda: draw_strata(self.tables, most, self.seed))
        return drawn
