"""Memberships drawn by degrees: each record's distribution over centres, a draw, its uncertainty.

Every function walks over tiles, see `degrees`, and writes to the rows it is given, so pieces of a
table may be worked on side by side.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from ._jit import kernel
from .degrees import LANES, POWER, TILE, TINY, Centres, Law, Room, load, make_room, visit

FAINT = 1e-14  # smaller shares add less than 5e-13 bits each to an entropy, and are left out


class Outlook(NamedTuple):
    """What is to be expected of each record when its centre is drawn, each of shape (n,)."""

    entropy: Floats  # of its distribution over centres, in bits
    square: Floats  # expected squared distance to the centre drawn
    largest: Floats  # the largest degree
    drawn: Integers  # the centre drawn, or the one of the largest degree


@kernel
def square_of(law: Law, room: Room, place: int, i: int, lane: int) -> float:
    """Squared distance of record i of a tile to the centre in a lane of a visited block."""
    stored = room.squares[place, i * LANES + lane]
    return float((room.least[i] + TINY) / stored - TINY if law.kind == POWER else stored)


@kernel
def write_degrees(X: Floats, rows: Integers, centres: Centres, law: Law, out: Floats) -> None:
    """Write the degrees of some rows into `out`, of shape (n, c)."""
    room = make_room(centres.counts.shape[0], X.shape[1])
    for first in range(0, rows.shape[0], TILE):
        size = load(X, rows, first, room)
        used = visit(centres, law, room)
        for i in range(size):
            for place in range(used):
                block = room.visited[place]
                for lane in range(centres.counts[block]):
                    degree = room.degrees[place, i * LANES + lane] / room.mass[i]
                    out[rows[first + i], centres.order[block * LANES + lane]] = degree


@kernel
def find_nearest(X: Floats, rows: Integers, centres: Centres, law: Law, labels: Integers) -> None:
    """Write the nearest centre of some rows into `labels`; `law` is of the kind NEAREST."""
    room = make_room(centres.counts.shape[0], X.shape[1])
    for first in range(0, rows.shape[0], TILE):
        size = load(X, rows, first, room)
        used = visit(centres, law, room)
        for place in range(used):
            degrees, start = room.degrees[place], room.visited[place] * LANES
            for i in range(size):
                for lane in range(LANES):
                    if degrees[i * LANES + lane] > 0.0:
                        labels[rows[first + i]] = centres.order[start + lane]


@kernel
def draw_memberships(
    X: Floats, rows: Integers, centres: Centres, law: Law, chances: Floats, outlook: Outlook
) -> Floats:
    """Draw a centre for some rows; return the expected number of records of each centre.

    `chances` are uniform in [0, 1), one a row of the table; a negative one takes the centre of the
    largest degree (the least number of several) instead.
    """
    n_blocks = centres.counts.shape[0]
    expected = np.zeros(centres.order.shape[0])
    room = make_room(n_blocks, X.shape[1])
    for first in range(0, rows.shape[0], TILE):
        size = load(X, rows, first, room)
        used = visit(centres, law, room)
        for i in range(size):
            row, mass = rows[first + i], room.mass[i]
            goal, gone = chances[row] * mass, 0.0
            best, best_degree, last = 0, -1.0, -1
            entropy, square = 0.0, 0.0
            for place in range(used):
                block = room.visited[place]
                for lane in range(centres.counts[block]):
                    degree = room.degrees[place, i * LANES + lane]
                    if degree <= 0.0:
                        continue
                    number = centres.order[block * LANES + lane]
                    share = degree / mass
                    expected[number] += share
                    if share > FAINT:
                        entropy -= share * math.log2(share)
                    square += share * square_of(law, room, place, i, lane)
                    if gone <= goal:
                        last = number
                    gone += degree
                    if degree > best_degree or (degree == best_degree and number < best):
                        best, best_degree = number, degree
            outlook.entropy[row], outlook.square[row] = max(entropy, 0.0), square
            outlook.largest[row] = best_degree / mass
            outlook.drawn[row] = last if goal >= 0.0 else best
    return expected


@kernel
def recognise(
    X: Floats,
    rows: Integers,
    centres: Centres,
    law: Law,
    expected: Floats,
    excesses: Floats,
    out: Floats,
) -> None:
    """Write for each row how an intruder fares who knows everything but the draw.

    Seeing a record at centre c, he takes record j for it with probability u_jc / E_c, E_c the
    expected number of records there. Record i stands at c with probability u_ic, so he is right
    with probability sum over c of u_ic^2 / E_c: out[i, 0]. The mean of the centres' `excesses`
    over where record i may stand is out[i, 1].
    """
    room = make_room(centres.counts.shape[0], X.shape[1])
    for first in range(0, rows.shape[0], TILE):
        size = load(X, rows, first, room)
        used = visit(centres, law, room)
        for i in range(size):
            right, beyond = 0.0, 0.0
            for place in range(used):
                block = room.visited[place]
                for lane in range(centres.counts[block]):
                    share = room.degrees[place, i * LANES + lane] / room.mass[i]
                    if share > FAINT:
                        number = centres.order[block * LANES + lane]
                        right += share * share / expected[number]
                        beyond += share * excesses[number]
            out[rows[first + i], 0], out[rows[first + i], 1] = right, beyond


@kernel
def excess(
    X: Floats, rows: Integers, centres: Centres, law: Law, expected: Floats, limit: float
) -> Floats:
    """Add up, for each centre, by how much single records exceed a share of its expected records.

    Returns sum over j of max(0, u_jc / E_c - limit), of shape (c,).
    """
    total = np.zeros(centres.order.shape[0])
    room = make_room(centres.counts.shape[0], X.shape[1])
    for first in range(0, rows.shape[0], TILE):
        size = load(X, rows, first, room)
        used = visit(centres, law, room)
        for i in range(size):
            for place in range(used):
                block = room.visited[place]
                for lane in range(centres.counts[block]):
                    number = centres.order[block * LANES + lane]
                    share = room.degrees[place, i * LANES + lane] / room.mass[i]
                    if share > limit * expected[number]:
                        total[number] += share / expected[number] - limit
    return total


@kernel
def spread(X: Floats, weights: Floats, rows: Integers, centres: Centres, law: Law) -> Floats:
    """Return sums of weight * degree^m and of that times the square, for each centre: (c, 2)."""
    total = np.zeros((centres.order.shape[0], 2))
    room = make_room(centres.counts.shape[0], X.shape[1])
    for first in range(0, rows.shape[0], TILE):
        size = load(X, rows, first, room)
        used = visit(centres, law, room)
        for i in range(size):
            weight, mass = weights[rows[first + i]], room.mass[i]
            for place in range(used):
                block = room.visited[place]
                for lane in range(centres.counts[block]):
                    share = room.degrees[place, i * LANES + lane] / mass
                    if share > 0.0:
                        if law.kind == POWER:
                            share = share ** (1.0 + 1.0 / law.rate)
                        number = centres.order[block * LANES + lane]
                        square = square_of(law, room, place, i, lane)
                        total[number, 0] += weight * share
                        total[number, 1] += weight * share * square
    return total
