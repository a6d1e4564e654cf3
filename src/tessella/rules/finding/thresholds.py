"""Thresholds: an age below which no one has an income, or above which no one is a student.

Numbers of few values, such as ages, are cut in two where an event divides them best. A threshold in
an amount of money would be a figure of the sample, not a rule, and is not looked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import Floats, Integers
from .chance import FEWER, Demands, log_chance, number_text
from .columns import Figure, Sample
from .events import FEWEST, Event, excludes

VALUES = 200  # of a column that thresholds are looked for in: ages and years, no money
SEVERAL = 3  # values at least on the side without the event: one is an event of its own
ABRUPT = math.log(1e-4)  # with 0.01, pay in hospitality is below 22 an hour "by rule"
WINDOW = 50  # records on both sides of a threshold that must differ: see `_is_cliff`


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Events made by thresholds, and the pairs of literals that exclude each other."""

    events: list[Event]
    chances: dict[tuple[int, int], float]


def find_thresholds(sample: Sample, events: Sequence[Event], demands: Demands) -> Thresholds:
    """Find thresholds of numbers of few values below or above which an event never happens."""
    made: list[Event] = []
    chances: dict[tuple[int, int], float] = {}
    figures = [one for one in sample.figures if _has_steps(one)]
    if not events or not figures:
        return Thresholds(made, chances)
    n_events = len(events)
    hypotheses = math.log(2 * n_events * len(figures) * VALUES)
    signs = np.stack([event.signs for event in events]).astype(np.int8)
    for at, figure in enumerate(figures):
        order = np.argsort(figure.values, kind="stable")
        order = order[figure.known[order]]
        values, starts = np.unique(figure.values[order], return_index=True)
        # For each event and value, how many records show the event, and how many do not.
        ordered = signs[:, order]
        counts = [np.add.reduceat(ordered == sign, starts, axis=1, dtype=np.int64)
                  for sign in (1, -1)]  # fmt: skip
        places: dict[float, int] = {}
        for place, event in enumerate(events):
            if event.column == figure.name:
                continue
            for side in (0, 1):  # the event, or its opposite
                hits, others = counts[side][place], counts[1 - side][place]
                step = _step(values, hits, hits + others, demands, hypotheses)
                if step is None:
                    continue
                if step.at not in places:
                    places[step.at] = n_events + len(made)
                    made.append(_below(figure, step.at, n_events + at))
                chances[2 * place + side, 2 * places[step.at] + (not step.below)] = step.chance
    return Thresholds(made, chances)


def _has_steps(figure: Figure) -> bool:
    """Return whether thresholds of a column make sense: whole numbers, many but not too many."""
    if figure.whole is None or figure.decimals:
        return False
    return 8 <= len(np.unique(figure.values[figure.known])) <= VALUES


def _below(figure: Figure, threshold: float, source: int) -> Event:
    signs = np.where(figure.known, np.where(figure.values < threshold, 1, -1), 0)
    value = number_text(threshold)
    text, opposite = f"{figure.text} < {value}", f"{figure.text} >= {value}"
    return Event(figure.name, text, opposite, signs, source)


@dataclass(frozen=True)
class _Step:
    at: float  # the least value above the threshold
    below: bool  # whether the event never happens below it
    chance: float


def _step(
    values: Floats, hits: Integers, records: Integers, demands: Demands, hypotheses: float
) -> _Step | None:
    """Find the threshold that divides values best into those with the event and those without.

    `hits` of the `records` with each value show the event. It is the threshold with the largest
    likelihood of two shares, one on each side (a change point).
    """
    seen = records > 0
    values, hits, records = values[seen], hits[seen], records[seen]
    total, n = int(hits.sum()), int(records.sum())
    if len(values) < 2 * SEVERAL or total < FEWEST or n < 2 * FEWEST:
        return None
    below, size = np.cumsum(hits)[:-1], np.cumsum(records)[:-1]
    likelihood = _log_likelihood(below, size) + _log_likelihood(total - below, n - size)
    cut = int(likelihood.argmax()) + 1  # the number of values below
    first, left = int(below[cut - 1]), int(size[cut - 1])
    is_below = first * (n - left) < (total - first) * left
    both, side = (first, left) if is_below else (total - first, n - left)
    if (cut if is_below else len(values) - cut) < SEVERAL:
        return None
    chance = excludes(both, total, side, n, demands, hypotheses)
    if chance is None or not _is_cliff(hits, records, cut, is_below):
        return None
    return _Step(float(values[cut]), is_below, chance)


def _log_likelihood(hits: Integers, records: Integers) -> Floats:
    share = np.clip(hits / records, 1e-12, 1 - 1e-12)
    return np.asarray(hits * np.log(share) + (records - hits) * np.log1p(-share))


def _is_cliff(hits: Integers, records: Integers, cut: int, below: bool) -> bool:
    """Return whether the event sets in at once, as it does where a rule forbids it before.

    The values next to the threshold, as many as at least 50 records have, are compared: that the
    event is missing on the one side must be unlikely, given how often it happens on the other. A
    share that rises slowly, as that of the retired with age, has no threshold.
    """
    left = _next_to(hits[:cut][::-1], records[:cut][::-1])
    right = _next_to(hits[cut:], records[cut:])
    (missing, without), (happened, within) = (left, right) if below else (right, left)
    share = happened / within
    if happened < 5 or missing / without > FEWER * share:
        return False
    return log_chance(without - missing, without, 1 - share) <= ABRUPT


def _next_to(hits: Integers, records: Integers) -> tuple[int, int]:
    """Return hits and records of the first values that at least 50 records have."""
    last = int(np.searchsorted(np.cumsum(records), WINDOW)) + 1
    return int(hits[:last].sum()), int(records[:last].sum())
