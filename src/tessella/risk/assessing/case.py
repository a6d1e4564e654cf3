"""What the intruder is given, read once for all attacks."""

from __future__ import annotations

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
        The two files.
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
        How long a single attack may take, where it can be told to stop.
    seed : int
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
    seed: int = 0
    sample: int | None = None
    tag: Any = None
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)  # what is read once

    @property
    def sides(self) -> AlignedTables:
        """The two tables in the variables that he knows."""
        if "sides" not in self._kept:
            self._kept["sides"] = align_tables(
                self.original, self.masked, known=self.known, id=self.id, schema=self.schema
            )
        found: AlignedTables = self._kept["sides"]
        return found

    @property
    def plain(self) -> tuple[Name, ...]:
        """The known variables that are numbers, without a missing one."""
        sides = self.sides
        whole = ~(np.isnan(sides.A).any(axis=0) | np.isnan(sides.B).any(axis=0))
        fit = whole & ~sides.nominal
        return tuple(name for name, fits in zip(sides.columns, fit) if fits)

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
        m, n = len(self.sides.A), len(self.sides.B)
        most = int(max(1000, pairs / n))
        if self.sample is not None:
            most = min(most, self.sample)
        if m <= most:
            return None
        if most not in self._kept:
            self._kept[most] = draw_strata(self.sides, most, self.seed)
        drawn: Draw = self._kept[most]
        return drawn
