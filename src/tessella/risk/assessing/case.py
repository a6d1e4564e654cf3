"""What the intruder is given, read once for all attacks, and which records he attacks.

Which records to attack in a large table: some of every kind, so that outliers are not missed.

Records far from the middle are found more easily. They are drawn from strata of equal distance to
the middle, and the share over the whole table is put together from the strata.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ..._types import Floats, Integers, Name
from ...schema import Schema
from ..aligned import AlignedTables, align_tables
from ..estimate import Estimate, wilson
from ..linkage import Linkage

__all__ = ["Case", "Draw", "draw_strata"]

E = TypeVar("E", bound=Estimate)

ENDS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0)  # of strata, as shares of the records


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Records that were drawn, and the stratum of each.

    `shares` has, for each stratum, its share of the whole table.
    """

    records: Integers
    stratum: Integers
    shares: Floats

    def estimate(self, found: E, chance: Floats) -> E:
        """Put the share over the whole table, and its interval, in the place of the sample's.

        Notes
        -----
        With W_h the share of stratum h, p_h the share found in it and m_h its records drawn,

            p = Σ W_h p_h,   Var p = Σ W_h² p_h (1 - p_h) / (m_h - 1),

        and the interval is Wilson's for as many records as would have the same variance.
        """
        counts = np.bincount(self.stratum, minlength=len(self.shares))
        p = self._by_stratum(chance)
        value = float(self.shares @ p)
        variance = float((self.shares**2 * p * (1 - p) / np.maximum(counts - 1, 1)).sum())
        worth = len(chance)
        if variance > 0:
            worth = min(worth, max(1, math.floor(value * (1 - value) / variance)))
        low, high = wilson(value * worth, worth)
        strata = f"{len(self.shares)} strata by distance to the middle"
        note = f"{len(chance):,} records drawn from {strata}"
        more: dict[str, Any] = {}
        if isinstance(found, Linkage):  # far records were drawn more often here, too
            more["within"] = {
                k: float(self.shares @ self._by_stratum(found.chance_within(k)))
                for k in found.within
            }
        return replace(
            found, value=value, low=low, high=high, assumptions=(*found.assumptions, note), **more
        )

    def _by_stratum(self, chance: Floats) -> Floats:
        """Return the share found in each stratum."""
        counts = np.bincount(self.stratum, minlength=len(self.shares))
        sums = np.bincount(self.stratum, weights=chance, minlength=len(self.shares))
        share: Floats = sums / np.maximum(counts, 1)
        return share


def draw_strata(tables: AlignedTables, size: int, random_state: int | None) -> Draw:
    """Draw masked records: as many from the few far ones as from the many near ones."""
    away = _distance_to_middle(tables)
    m = len(away)
    generator = np.random.default_rng(random_state)
    order = np.argsort(away, kind="stable")
    cuts = np.unique([round(end * m) for end in ENDS])
    records, stratum, shares = [], [], []
    strata = [order[a:b] for a, b in pairwise(cuts) if b > a]
    for h, rows in enumerate(strata):
        count = min(len(rows), max(2, size // len(strata)))
        drawn = np.sort(generator.choice(rows, size=count, replace=False))
        records.append(drawn)
        stratum.append(np.full(count, h))
        shares.append(len(rows) / m)
    found = np.concatenate(records)
    along = np.argsort(found, kind="stable")
    return Draw(
        records=found[along],
        stratum=np.concatenate(stratum)[along],
        shares=np.array(shares),
    )


def _distance_to_middle(tables: AlignedTables) -> Floats:
    """Return mean squared deviations; a category counts by how rare it is."""
    away = np.zeros(len(tables.A))
    for place in range(len(tables.columns)):
        x = tables.A[:, place]
        seen = ~np.isnan(x)
        if not seen.any():
            continue
        if tables.nominal[place]:
            own = x[seen].astype(np.int64)  # categories are numbered from 0
            away[seen] += -np.log(np.bincount(own)[own] / len(own))
            continue
        spread = float(x[seen].std())
        if spread > 0:
            away[seen] += ((x[seen] - x[seen].mean()) / spread) ** 2
    return away


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
        """The two tables in the variables of `plain`; not kept, as that may be a copy of both."""
        return self.tables.select(self.plain)

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
