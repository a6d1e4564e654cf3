"""Exact line search for the parameters that link most records.

Along a line θ + t·v each record is linked on one interval of t (its rows are linear), so the number
of links is a staircase whose every step is known: the best t is found exactly by sorting the ends
of the intervals. Lines are single parameters, random directions, and directions that help a record
that is not linked yet.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._types import Floats, Truths
from ...kernels.competitors import count_positive, lowest, spans, widest_step
from .competitors import Rows
from .family import Family

__all__ = ["MARGIN", "line_search", "links"]


MARGIN = 1e-9  # of standardised squares: a record is linked when its rows exceed it
FAR = 1e3  # how far a line is followed; parameters sum to 1
WORK = 1.5e9  # numbers looked at in one search; a limit of time would depend on the machine
LARGE = 100_000  # numbers in all rows: beyond, lines are searched on the lowest rows
LOWEST = 8  # rows of each record then
PATIENCE = 2  # sweeps without a new link


def links(rows: Rows, theta: Floats) -> int:
    """Count the records that are linked by their rows alone."""
    return int(count_positive(rows.starts, rows.along(theta), MARGIN))


def line_search(
    rows: Rows, start: Family, generator: np.random.Generator, *, sweeps: int = 30
) -> tuple[Family, int]:
    """Return a member of the family that links at least as many of the records as the start.

    Each line goes to the middle of the widest best step, also where the number of links stays the
    same: a wide step leaves room for the next line.
    """
    family, theta = start, start.theta.copy()
    level = rows.along(theta)
    best = int(count_positive(rows.starts, level, MARGIN))
    idle, misled = 0, 0
    kept = np.zeros(len(level), dtype=bool)
    lines = len(theta) / 8 + 40  # single parameters cost little
    affordable = max(3, int(WORK / max(min(rows.cells, LARGE) * lines, 1.0)))
    for _ in range(min(sweeps, affordable)):
        some, chosen = _nearest_to_break(rows, level, kept)
        moved = _sweep(some, family, theta, level[chosen], generator)
        exact = family.repair(moved)  # rounding may have left the feasible set by a hair
        new_level = rows.along(exact.theta)
        count = int(count_positive(rows.starts, new_level, MARGIN))
        if count < best and len(some.starts) and not chosen.all() and misled < PATIENCE:
            kept |= new_level <= MARGIN  # rows that were overlooked: once more from here with them
            misled += 1
            continue
        before = best
        if count >= best:
            theta, level, best = exact.theta.copy(), new_level, count
        idle = 0 if best > before else idle + 1
        if idle >= PATIENCE:
            break
    found = family.repair(theta)
    count = links(rows, found.theta)
    at_start = links(rows, start.theta)
    return (found, count) if count >= at_start else (start, at_start)


def _sweep(
    rows: Rows, family: Family, theta: Floats, level: Floats, generator: np.random.Generator
) -> Floats:
    """Follow one line after the other as long as none of them loses a link."""
    best = int(count_positive(rows.starts, level, MARGIN))
    for direction in _directions(rows, family, theta, level, generator):
        slope = rows.along(direction)
        low, high = _feasible(family, theta, direction)
        count, step = _best_step(rows, level, slope, low, high)
        if count >= best and step != 0:
            theta = theta + step * direction
            scale = _size(family, theta)
            theta, level = theta / scale, (level + step * slope) / scale
            best = count
    return theta


def _nearest_to_break(rows: Rows, level: Floats, kept: Truths) -> tuple[Rows, Truths]:
    """Return the few rows of each record that are lowest, those kept, and which they are.

    Where rows are many, lines are searched on these alone and counted on all after each sweep.
    """
    if rows.cells <= LARGE:
        return rows, np.ones(len(level), dtype=bool)
    chosen = lowest(rows.starts, level, LOWEST, kept)
    ends = np.concatenate([[0], np.cumsum(chosen)])[rows.starts]
    matrix = rows.matrix[np.flatnonzero(chosen)]
    if isinstance(matrix, np.ndarray):
        matrix = np.asfortranarray(matrix)
    return Rows(starts=ends.astype(np.int64), matrix=matrix), chosen


def _size(family: Family, theta: Floats) -> float:
    return float(family.total(theta))


def _directions(
    rows: Rows, family: Family, theta: Floats, level: Floats, generator: np.random.Generator
) -> Iterator[Floats]:
    size = len(theta)
    for place in generator.permutation(size):
        direction = np.zeros(size)
        direction[place] = 1.0
        yield direction
    for _ in range(min(size, 16)):  # towards random members, and away from them
        yield family.repair(theta * generator.exponential(size=size)).theta - theta
    worst = np.minimum.reduceat(level, rows.starts[:-1]) if len(level) else level
    open_ = np.flatnonzero(worst <= MARGIN)
    if not len(open_):
        return
    near = open_[np.argsort(-worst[open_], kind="stable")][: max(8, len(open_) // 2)]
    for at in generator.permutation(near)[: min(2 * size, 24)]:
        first, last = rows.starts[at], rows.starts[at + 1]
        row = rows.matrix[first + int(np.argmin(level[first:last]))]
        row = np.asarray(row.todense()).ravel() if hasattr(row, "todense") else row
        length = float(np.linalg.norm(row))
        if length > 0:
            reach = 10.0 ** generator.uniform(-2.5, 0)
            yield family.repair(theta + reach * row / length).theta - theta


def _feasible(family: Family, theta: Floats, direction: Floats) -> tuple[float, float]:
    """Return the steps that stay in the feasible set, as far as FAR."""
    if family.linear:
        slack, change = family.slack(theta), family.slack(direction)
        slack = np.maximum(slack, 0.0)
        falls, rises = change < -1e-15, change > 1e-15
        high = float((slack[falls] / -change[falls]).min()) if falls.any() else FAR
        low = float((-slack[rises] / change[rises]).max()) if rises.any() else -FAR
        return max(low, -FAR), min(high, FAR)
    return -_reach(family, theta, -direction), _reach(family, theta, direction)


def _reach(family: Family, theta: Floats, direction: Floats) -> float:
    """Return the longest feasible step, by bisection: slacks are concave along a line."""
    tolerance = -1e-12
    inside, outside = 0.0, 1.0
    while outside < FAR and family.slack(theta + outside * direction).min() >= tolerance:
        inside, outside = outside, 4 * outside
    for _ in range(30):
        middle = (inside + outside) / 2
        if family.slack(theta + middle * direction).min() >= tolerance:
            inside = middle
        else:
            outside = middle
    return inside


def _best_step(
    rows: Rows, level: Floats, slope: Floats, low: float, high: float
) -> tuple[int, float]:
    """Return the largest number of links on a line, and the middle of the widest such step."""
    if not low < high:
        return -1, 0.0
    lows, highs = spans(rows.starts, level, slope, low, high, MARGIN)
    open_ = lows < highs
    if not open_.any():
        return 0, 0.0
    most, first, last = widest_step(np.sort(lows[open_]), np.sort(highs[open_]))
    if most == 0:
        return 0, 0.0
    if last - first > 2.0:  # an open end: a moderate step into it
        step = first + 1.0 if first > -FAR else last - 1.0
        return most, 0.0 if first < 0.0 < last else step
    return most, (first + last) / 2
