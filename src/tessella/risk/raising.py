"""Climbing over k-maxitive measures: one set after the other gets the value that links most.

The integral is not linear in these parameters, but with all others fixed it takes one pass to know
it for many values of one: each step counts the links at all of them, exactly, and goes to the
middle of the widest stretch of the best.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels.competing import count_positive, lowest
from ..kernels.maxitive import links_along, margins
from .maxitive import MaxitiveChoquet
from .rows import Competitors
from .sides import Sides

__all__ = ["raise_values"]

Floats = NDArray[np.float64]

LOWEST = 8  # rows of each record that a sweep looks at; all are counted after it
TRIES = 12  # values of a set
MOST_STEPS = 150  # sets in one sweep
PATIENCE = 2  # sweeps without a new link


def raise_values(
    sides: Sides,
    competitors: Competitors,
    start: MaxitiveChoquet,
    generator: np.random.Generator,
    *,
    sweeps: int = 8,
) -> tuple[MaxitiveChoquet, int]:
    """Return a member that links at least as many of the records as the start."""
    records, starts, which = competitors.records, competitors.starts, competitors.which
    tables = sides.A, sides.B, sides.truth

    def level_of(member: MaxitiveChoquet) -> Floats:
        return margins(member.sets, member.measure, *tables, records, starts, which)

    best, level = start, level_of(start)
    most = int(count_positive(starts, level, 0.0))
    kept = np.zeros(len(which), dtype=bool)
    idle = 0
    for _ in range(sweeps):
        chosen = lowest(starts, level, LOWEST, kept)
        ends = np.concatenate([[0], np.cumsum(chosen)])[starts].astype(np.int64)
        values = best.essential()
        for place in generator.permutation(len(values))[:MOST_STEPS]:
            tries = _tries(values, int(place), generator)
            counts = links_along(
                best.sets, values, int(place), tries, *tables, records, ends, which[chosen]
            )
            values[place] = _middle(tries, counts)
            if not values.any():
                values[place] = 1.0
        moved = best.repair(values)
        new_level = level_of(moved)
        count = int(count_positive(starts, new_level, 0.0))
        idle = 0 if count > most else idle + 1
        if count >= most:
            best, level, most = moved, new_level, count
        else:
            kept |= new_level <= 0  # rows that were overlooked
        if idle >= PATIENCE:
            break
    return best, most


def _tries(values: Floats, place: int, generator: np.random.Generator) -> Floats:
    """Return values of a set: where it stands, 0, 1, and values between those of other sets."""
    others = np.unique(np.append(np.delete(values, place), [0.0, values.max()]))
    between = (others[1:] + others[:-1]) / 2
    if len(between) > TRIES:
        between = generator.choice(between, size=TRIES, replace=False)
    here = values[place] * np.exp(0.2 * generator.normal(size=2))
    tries = np.concatenate([between, here, [0.0, values[place], values.max()]])
    out: Floats = np.unique(np.minimum(tries, values.max()))
    return out


def _middle(tries: Floats, counts: NDArray[np.int64]) -> float:
    """Return the middle value of the longest run of the largest count."""
    good = np.flatnonzero(counts == counts.max())
    runs = np.split(good, np.flatnonzero(np.diff(good) > 1) + 1)
    longest = max(runs, key=len)
    return float(tries[longest[len(longest) // 2]])
