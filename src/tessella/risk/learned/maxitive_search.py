"""Search of k-maxitive measures: one set after the other gets the value that links most.

The integral is not linear in these parameters, but with all others fixed it takes one pass to know
it for many values of one: each step counts the links at all of them, exactly, and goes to the
middle of the widest stretch of the best.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..._types import Floats, Integers, Truths
from ...kernels.competitors import count_positive, lowest
from ...kernels.maxitive import links_along, margins, sorted_pairs
from ...parallel import each
from ..aligned import AlignedTables
from .competitors import Competitors
from .maxitive import MaxitiveChoquet

__all__ = ["search_maxitive"]


PIECE = 256  # records for a piece of work
LOWEST = 8  # rows of each record that a sweep looks at; all are counted after it
TRIES = 12  # values of a set
MOST_STEPS = 150  # sets in one sweep
PATIENCE = 2  # sweeps without a new link


def search_maxitive(
    sides: AlignedTables,
    competitors: Competitors,
    start: MaxitiveChoquet,
    generator: np.random.Generator,
    *,
    sweeps: int = 8,
) -> tuple[MaxitiveChoquet, int]:
    """Return a member that links at least as many of the records as the start."""
    starts = competitors.starts
    best, level = start, _level(sides, competitors, start)
    most = int(count_positive(starts, level, 0.0))
    kept = np.zeros(len(level), dtype=bool)
    idle = 0
    for _ in range(sweeps):
        pieces = _pieces(sides, competitors, best.sets, lowest(starts, level, LOWEST, kept))
        values = best.essential()
        for place in generator.permutation(len(values))[:MOST_STEPS]:
            tries = _tries(values, int(place), generator)
            work = partial(_links, values, int(place), tries)
            values[place] = _middle(tries, np.sum(each(work, pieces), axis=0))
            if not values.any():
                values[place] = 1.0
        moved = best.repair(values)
        new_level = _level(sides, competitors, moved)
        count = int(count_positive(starts, new_level, 0.0))
        idle = 0 if count > most else idle + 1
        if count >= most:
            best, level, most = moved, new_level, count
        else:
            kept |= new_level <= 0  # rows that were overlooked
        if idle >= PATIENCE:
            break
    return best, most


class _Piece(NamedTuple):
    """Some records: their squares and those of their competitors, sorted."""

    own: Any
    theirs: Any
    starts: Integers


def _pieces(
    sides: AlignedTables, competitors: Competitors, sets: Integers, chosen: Truths
) -> list[_Piece]:
    records, which = competitors.records, competitors.which[chosen]
    ends = np.concatenate([[0], np.cumsum(chosen)])[competitors.starts].astype(np.int64)
    out = []
    for first in range(0, len(records), PIECE):
        mine = records[first : first + PIECE]
        starts = ends[first : first + PIECE + 1]
        owner = np.repeat(mine, np.diff(starts))
        theirs = which[starts[0] : starts[-1]]
        out.append(
            _Piece(
                sorted_pairs(sets, sides.A, sides.B, mine, sides.truth[mine]),
                sorted_pairs(sets, sides.A, sides.B, owner, theirs),
                starts - starts[0],
            )
        )
    return out


def _links(values: Floats, place: int, tries: Floats, piece: _Piece) -> Integers:
    return links_along(piece.own, piece.theirs, piece.starts, values, place, tries)


def _level(sides: AlignedTables, competitors: Competitors, member: MaxitiveChoquet) -> Floats:
    """How much farther each competitor is than the own original."""

    def work(first: int) -> Floats:
        starts = competitors.starts[first : first + PIECE + 1]
        return margins(
            member.sets, member.measure, sides.A, sides.B, sides.truth,
            competitors.records[first : first + PIECE], starts - starts[0],
            competitors.which[starts[0] : starts[-1]],
        )  # fmt: skip

    return np.concatenate(each(work, range(0, len(competitors.records), PIECE)))


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


def _middle(tries: Floats, counts: Integers) -> float:
    """Return the middle value of the longest run of the largest count."""
    good = np.flatnonzero(counts == counts.max())
    runs = np.split(good, np.flatnonzero(np.diff(good) > 1) + 1)
    longest = max(runs, key=len)
    return float(tries[longest[len(longest) // 2]])
