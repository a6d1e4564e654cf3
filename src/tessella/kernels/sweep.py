"""One sweep of fuzzy clustering: from centres to degrees to the sums that give new centres.

All sums run over records, so a table may be swept in pieces, on any number of cores.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel
from .degrees import (
    EXPONENTIAL,
    LANES,
    POWER,
    TILE,
    Centres,
    Law,
    Room,
    load,
    make_room,
    visit,
)


class Sums(NamedTuple):
    """What the records of a piece add up to."""

    points: Floats  # (blocks, d, LANES) sums of weight * degree^m * record
    weights: Floats  # (blocks, LANES) sums of weight * degree^m
    objective: Floats  # (1,)
    visited: Integers  # (1,) pairs of record and centre that were looked at


@kernel
def sweep(X: Floats, weights: Floats, rows: Integers, centres: Centres, law: Law) -> Sums:
    """Sweep some rows of a table."""
    n_blocks, d = centres.counts.shape[0], X.shape[1]
    sums = _no_sums(n_blocks, d)
    room = make_room(n_blocks, d)
    for first in range(0, rows.shape[0], TILE):
        size = load(X, rows, first, room)
        used = visit(centres, law, room)
        sums.visited[0] += used * LANES * size
        _weigh(law, weights, rows, first, size, used, room, sums.objective)
        _add(used, room, sums)
    return sums


@kernel
def sweep_tolerant(
    X: Floats,
    displaced: Floats,
    reach: Floats,
    box: bool,
    weights: Floats,
    rows: Integers,
    centres: Centres,
    law: Law,
) -> Sums:
    """Sweep records that may move: `displaced`, in place, within `reach` of X.

    Given degrees, the best place of a record is its degree-weighted mean of the centres, or the
    nearest point to that within its ball of radius reach[i, 0] or its box of half-widths reach[i].
    """
    n_blocks, d = centres.counts.shape[0], X.shape[1]
    sums = _no_sums(n_blocks, d)
    room = make_room(n_blocks, d)
    for first in range(0, rows.shape[0], TILE):
        size = load(displaced, rows, first, room)
        used = visit(centres, law, room)
        sums.visited[0] += used * LANES * size
        _weigh(law, weights, rows, first, size, used, room, sums.objective)
        for i in range(size):
            row = rows[first + i]
            _move(X[row], reach[row], box, i, used, centres, room)
            for j in range(d):
                displaced[row, j] = room.records[i, j]
        _add(used, room, sums)
    return sums


@kernel
def _no_sums(n_blocks: int, d: int) -> Sums:
    return Sums(
        np.zeros((n_blocks, d, LANES)),
        np.zeros((n_blocks, LANES)),
        np.zeros(1),
        np.zeros(1, dtype=np.int64),
    )


@kernel
def _weigh(
    law: Law,
    weights: Floats,
    rows: Integers,
    first: int,
    size: int,
    used: int,
    room: Room,
    objective: Floats,
) -> None:
    """Turn a tile's degrees into weight * degree^m, and add to the objective.

    With t = (least / D)^(1/(m-1)), S the sum of t and u = t / S:  u^m = t (least / D) S^-m, and
    the record adds sum u^m D = least S^(1-m). With entropy, u = t / S, and the record
    adds sum u (D + ln(u) / lambda) = least - ln(S) / lambda.
    """
    scale = room.more
    for i in range(TILE):
        factor = 0.0
        if i < size:
            weight, mass, least = weights[rows[first + i]], room.mass[i], room.least[i]
            if law.kind == POWER:
                narrow = mass ** (-1.0 / law.rate)  # S^(1-m), as rate = 1 / (m - 1)
                factor = weight * narrow / mass
                objective[0] += weight * least * narrow
            else:
                factor = weight / mass
                objective[0] += weight * least
                if law.kind == EXPONENTIAL:
                    objective[0] -= weight * math.log(mass) / law.rate
        for lane in range(i * LANES, (i + 1) * LANES):
            scale[lane] = factor
    for place in range(used):
        degrees, squares = room.degrees[place], room.squares[place]
        if law.kind == POWER:  # squares are least / D by now
            for lane in range(TILE * LANES):
                degrees[lane] *= scale[lane] * squares[lane]
        else:
            for lane in range(TILE * LANES):
                degrees[lane] *= scale[lane]


@kernel
def _add(used: int, room: Room, sums: Sums) -> None:
    """Add a tile's weighted records to the sums of the blocks visited."""
    for place in range(used):
        block = room.visited[place]
        _add_block(room.degrees[place], room.records, sums.points[block], sums.weights[block])


@kernel
def _add_block(degrees: Floats, records: Floats, points: Floats, masses: Floats) -> None:
    """Add to the sums of one block, four records at a time.

    Four products are added before the sum is loaded and stored once. The last tile repeats a
    record; its repeated rows have degree 0 (see `_weigh`), so they add nothing.
    """
    d, lanes = records.shape[1], masses.shape[0]  # not LANES: a known number would be unrolled
    for four in range(TILE // 4):
        a, i = four * 4 * LANES, four * 4
        b, c, e = a + LANES, a + 2 * LANES, a + 3 * LANES
        for lane in range(lanes):
            masses[lane] += (degrees[a + lane] + degrees[b + lane]) + (
                degrees[c + lane] + degrees[e + lane]
            )
        for j in range(d):
            p, q, r, s = records[i, j], records[i + 1, j], records[i + 2, j], records[i + 3, j]
            for lane in range(lanes):
                points[j, lane] += (degrees[a + lane] * p + degrees[b + lane] * q) + (
                    degrees[c + lane] * r + degrees[e + lane] * s
                )


@kernel
def _move(
    home: Floats, reach: Floats, box: bool, i: int, used: int, centres: Centres, room: Room
) -> None:
    """Move record i of a tile to its best place within reach of its home."""
    d = home.shape[0]
    total, sums = 0.0, np.zeros(LANES)
    for place in range(used):
        for lane in range(LANES):
            sums[lane] += room.degrees[place, i * LANES + lane]
    for lane in range(LANES):
        total += sums[lane]
    length = 0.0
    for j in range(d):
        sums[:] = 0.0
        for place in range(used):
            points = centres.points[room.visited[place], j]
            for lane in range(LANES):
                degree = room.degrees[place, i * LANES + lane]
                sums[lane] += degree * (points[lane] - home[j]) if degree > 0.0 else 0.0
        step = 0.0
        for lane in range(LANES):
            step += sums[lane]
        step /= total
        if box:
            step = min(max(step, -reach[j]), reach[j])
        length += step * step
        room.records[i, j] = step
    length = math.sqrt(length)
    shrink = reach[0] / length if not box and length > reach[0] else 1.0
    for j in range(d):
        room.records[i, j] = home[j] + shrink * room.records[i, j]
