"""Which records to attack in a large table: some of every kind, so that outliers are not missed.

Records far from the middle are found more easily. They are drawn from strata of equal distance to
the middle, and the share over the whole table is put together from the strata.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ..._types import Floats, Integers
from ..aligned import AlignedTables
from ..estimate import Estimate, wilson
from ..linkage import Linkage

__all__ = ["Draw", "draw_strata"]

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
