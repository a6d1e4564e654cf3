"""Memberships by degrees: sweeps of fuzzy clustering, centres drawn, and what a draw gives away.

A sweep goes from centres to degrees to the sums that give new centres. Every function walks over
tiles, see `degrees`, and writes to the rows it is given or adds up over them, so a table may be
worked on in pieces, on any number of cores.
"""

import math
from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from . import kernel
from .degrees import (
    EXPONENTIAL,
    LANES,
    NEAREST,
    POWER,
    TILE,
    TINY,
    Centres,
    Law,
    Room,
    load,
    make_room,
    visit,
)

FAINT = 1e-14  # smaller shares add less than 5e-13 bits each to an entropy, and are left out
EQUAL = 1e-9  # logarithms that differ by less are equal


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
    X: Floats, displaced: Floats, reach: Floats, box: bool, weights: Floats, rows: Integers,
    centres: Centres, law: Law,
) -> Sums:  # fmt: skip
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
    points, weights = np.zeros((n_blocks, d, LANES)), np.zeros((n_blocks, LANES))
    return Sums(points, weights, np.zeros(1), np.zeros(1, dtype=np.int64))


@kernel
def _weigh(
    law: Law, weights: Floats, rows: Integers, first: int, size: int, used: int, room: Room,
    objective: Floats,
) -> None:  # fmt: skip
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
    X: Floats, rows: Integers, centres: Centres, law: Law, expected: Floats, excesses: Floats,
    out: Floats,
) -> None:  # fmt: skip
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


class Draws(NamedTuple):
    """Originals and released records in the same columns, block after block."""

    originals: Floats  # (n, d) sorted by part
    released: Floats  # (m, d) the centre of each block, at the columns of the block
    cuts: Integers  # (blocks + 1,) where the columns of each block begin
    base: Floats  # (n,) what the degrees of an original have in common, as a logarithm
    least: Floats  # (n, blocks) squared distance to the nearest centre
    first: Integers  # (parts + 1,) where the originals of each part begin
    part: Integers  # (m,) the part that a released record comes from, -1 for none


@kernel
def log_chance(draws: Draws, law: Law, i: int, j: int) -> float:
    """Logarithm of the probability that original j was given the centres of released record i."""
    product, total = 1.0, 0.0
    for b in range(draws.cuts.shape[0] - 1):
        square = 0.0
        for column in range(draws.cuts[b], draws.cuts[b + 1]):
            gap = draws.originals[j, column] - draws.released[i, column]
            square += gap * gap
        if law.kind == EXPONENTIAL:
            total -= law.rate * square
        elif law.kind == NEAREST:
            if square > draws.least[j, b] * (1 + EQUAL) + TINY:
                return -np.inf
        elif square < 1e-100 or square > 1e100:
            total -= law.rate * math.log(square + TINY)
        else:
            product *= square  # one logarithm for many blocks
            if product < 1e-150 or product > 1e150:
                total -= law.rate * math.log(product)
                product = 1.0
    if law.kind != EXPONENTIAL and law.kind != NEAREST:
        total -= law.rate * math.log(product)
    return float(draws.base[j] + total)


@kernel
def weigh_originals(draws: Draws, law: Law, rows: Integers, out: Floats) -> None:
    """Write for released records, into out (m, 5): the largest log chance, the log of their sum,
    the entropy in nats, how many originals are possible, and how many are most probable.
    """
    widest = 0
    for p in range(draws.first.shape[0] - 1):
        widest = max(widest, draws.first[p + 1] - draws.first[p])
    logs = np.empty(widest)
    for i in rows:
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = -np.inf, -np.inf, 0.0, 0.0, 0.0
        if draws.part[i] < 0:
            continue
        start, end = draws.first[draws.part[i]], draws.first[draws.part[i] + 1]
        most = -np.inf
        for j in range(start, end):
            logs[j - start] = log_chance(draws, law, i, j)
            most = max(most, logs[j - start])
        if most == -np.inf:
            continue
        total, mean = 0.0, 0.0
        for j in range(end - start):
            away = logs[j] - most
            if away > -np.inf:
                out[i, 3] += 1
            if away > -700.0:
                share = math.exp(away)
                total += share
                mean += share * away
            if away >= -EQUAL:
                out[i, 4] += 1
        out[i, 0], out[i, 1] = most, most + math.log(total)
        out[i, 2] = max(math.log(total) - mean / total, 0.0)


@kernel
def log_chances(draws: Draws, law: Law, rows: Integers, columns: Integers) -> Floats:
    """Return the log chances of pairs of released record and original, one by one."""
    out = np.full(rows.shape[0], -np.inf)
    for at in range(rows.shape[0]):
        part, j = draws.part[rows[at]], columns[at]
        if part >= 0 and draws.first[part] <= j < draws.first[part + 1]:
            out[at] = log_chance(draws, law, rows[at], j)
    return out
