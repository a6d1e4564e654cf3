"""What happens to tables on their way: slips of the pen in totals, values that were never given.

Both leave the table's own random numbers alone: a spoiled table is the clean table of the same
seed with some cells changed, so the truth behind every changed cell is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .tables import Column

__all__ = ["leave_out", "make_slips"]


def make_slips(
    columns: dict[str, Column], totals: Sequence[str], share: float, random: np.random.Generator
) -> None:
    """Change one total in `share` of the records: unit, sign, or a few units off.

    Each of `totals` stands alone on one side of an equality, so the change of one of them breaks
    it. The number of changed records is exact: round(share * n).
    """
    n = len(columns[totals[0]])  # type: ignore[arg-type]
    spoiled = random.permutation(n)[: round(share * n)]
    which = random.integers(len(totals), size=len(spoiled))
    how = random.integers(3, size=len(spoiled))
    off = random.integers(1, 10, size=len(spoiled))
    for t, total in enumerate(totals):
        rows, slip = spoiled[which == t], how[which == t]
        column = np.array(columns[total])
        true = column[rows]
        seen = np.select([slip == 0, slip == 1], [1000 * true, -true], true + off[which == t])
        column[rows] = np.where(seen == true, true + 1, seen)  # 1000 times nothing is nothing
        columns[total] = column


def leave_out(
    columns: dict[str, Column], names: Sequence[str], share: float, random: np.random.Generator
) -> None:
    """Make each value of the named columns missing with probability `share`."""
    for name in names:
        values = np.asarray(columns[name])
        columns[name] = np.ma.MaskedArray(values, random.random(len(values)) < share)
