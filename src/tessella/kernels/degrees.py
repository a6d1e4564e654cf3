"""To what degree records belong to centres: distances and degrees, tile by tile.

A *tile* is a few records that lie near each other; centres come in *blocks* of sixteen that lie
near each other, too. For a tile, blocks are visited from the nearest on, until what all others
could add to the mass of any record of the tile is below `neglect`: a bound, not a guess. Nothing of
size n x c is ever held.

The degree of a record at squared distances D to the centres is proportional to

    power:        (least D / D)^(1 / (m - 1))
    exponential:  e^(-lambda (D - least D))
    nearest:      1 at the nearest centre, 0 elsewhere (m = 1)

and what is stored is this proportion, 1 at the nearest centre; the mass is its sum over centres.

Exponentials and powers are computed for many numbers at once: the compiler turns the loops below
into vector instructions, which it cannot do with the functions of the C library. Errors stay below
2 units in the last place of the exponential, and the result is the same on every machine.
"""

import math
from typing import NamedTuple

import numpy as np

from .._types import Floats, Integers
from . import kernel

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # 32 bits, and the rest
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to a whole number, in the low bits
LOWEST = -700.0  # the exponential of less is taken for 0
SMALLEST = 1e-290  # a power of less is taken for 0
HALF_ROOT = 0.7071067811865476
FRACTION = (1 << 52) - 1
HALF = 1022 << 52  # bits of 0.5
WHOLE = 0x433 << 52  # bits of 2^52
WHOLE_VALUE = 4503599627370496.0
LARGEST_POWER = 64  # whole powers up to this one are products
LANES = 16  # centres in a block: two or four vector registers of float64
# Records in a tile: the squares to one block, 32 x 16 doubles, are 4 kB and stay in the L1 cache.
# A larger tile has a larger box, so more blocks are visited; a smaller one shares less work.
TILE = 32
STEP = 4  # columns added up together: fewer loads and stores of the sums; part of the rounding
TINY = 1e-290  # added to both sides of a ratio of squares, so that 0 / 0 is 1
FAR = 1e200  # where the places of a block that hold no centre are
FEW = 4  # with no more blocks than that, all are visited: ordering them would cost more
POWER, EXPONENTIAL, NEAREST = 0, 1, 2


@kernel
def exponentials(x: Floats, room: Floats) -> None:
    """Replace x <= 0 by e^x; `room` has the same length."""
    n = x.shape[0]
    for i in range(n):
        whole = x[i] * LOG2_E + ROUNDER
        room[i] = whole
        whole -= ROUNDER
        # |r| <= ln(2) / 2: the series to the 12th power leaves less than 2e-17.
        r = (x[i] - whole * LN2_HIGH) - whole * LN2_LOW
        q = 1.0 / 479001600.0
        q = q * r + 1.0 / 39916800.0
        q = q * r + 1.0 / 3628800.0
        q = q * r + 1.0 / 362880.0
        q = q * r + 1.0 / 40320.0
        q = q * r + 1.0 / 5040.0
        q = q * r + 1.0 / 720.0
        q = q * r + 1.0 / 120.0
        q = q * r + 1.0 / 24.0
        q = q * r + 1.0 / 6.0
        q = q * r + 0.5
        q = q * r + 1.0
        q = q * r + 1.0
        x[i] = q if x[i] > LOWEST else 0.0
    bits = room.view(np.int64)
    for i in range(n):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(n):
        x[i] = x[i] * room[i] if x[i] > 0.0 else 0.0


@kernel
def logarithms(x: Floats, room: Floats) -> None:
    """Replace x >= SMALLEST by ln(x); `room` has the same length."""
    n = x.shape[0]
    bits, exponents = x.view(np.int64), room.view(np.int64)
    for i in range(n):
        exponents[i] = (bits[i] >> 52) | WHOLE
    for i in range(n):
        bits[i] = (bits[i] & FRACTION) | HALF
    for i in range(n):
        exponent, part = room[i] - WHOLE_VALUE - 1022.0, x[i]
        low = part < HALF_ROOT
        exponent = exponent - 1.0 if low else exponent
        part = part + part if low else part
        # ln(part) = 2 artanh(s), s = (part - 1) / (part + 1), |s| < 0.172.
        s = (part - 1.0) / (part + 1.0)
        z = s * s
        q = 2.0 / 19.0
        q = q * z + 2.0 / 17.0
        q = q * z + 2.0 / 15.0
        q = q * z + 2.0 / 13.0
        q = q * z + 2.0 / 11.0
        q = q * z + 2.0 / 9.0
        q = q * z + 2.0 / 7.0
        q = q * z + 2.0 / 5.0
        q = q * z + 2.0 / 3.0
        x[i] = exponent * LN2_HIGH + ((s * z) * q + 2.0 * s + exponent * LN2_LOW)


@kernel
def powers(x: Floats, power: float, out: Floats, room: Floats) -> None:
    """Write x^power into `out`, for 0 <= x <= 1 and power > 0; x stays."""
    n = x.shape[0]
    whole = int(power)
    if whole == power and 1 <= whole <= LARGEST_POWER:
        top = 1
        while 2 * top <= whole:
            top *= 2
        for i in range(n):
            out[i] = x[i]
        while top > 1:  # square, and multiply where the binary digit is one
            top //= 2
            if whole & top:
                for i in range(n):
                    out[i] = out[i] * out[i] * x[i]
            else:
                for i in range(n):
                    out[i] *= out[i]
        return
    if power == 0.5:
        for i in range(n):
            out[i] = np.sqrt(x[i])
        return
    for i in range(n):
        out[i] = x[i] if x[i] > SMALLEST else SMALLEST
    logarithms(out, room)
    for i in range(n):
        out[i] *= power
    exponentials(out, room)
    for i in range(n):
        out[i] = out[i] if x[i] > SMALLEST else 0.0


class Centres(NamedTuple):
    """Centres in blocks, each with the box that holds it."""

    points: Floats  # (blocks, d, LANES)
    low: Floats  # (d, blocks)
    high: Floats  # (d, blocks)
    counts: Integers  # (blocks,) centres in each
    order: Integers  # (c,) the centre at each place


class Law(NamedTuple):
    """How degrees follow from distances."""

    kind: int  # POWER, EXPONENTIAL, NEAREST
    rate: float  # 1 / (m - 1), or lambda
    neglect: float  # what may be left out of a record's mass, as a share


class Room(NamedTuple):
    """What a tile needs to be worked on."""

    records: Floats  # (TILE, d)
    squares: Floats  # (blocks, TILE * LANES) by place in `visited`; under POWER least / square
    degrees: Floats  # (blocks, TILE * LANES)
    least: Floats  # (TILE,) the least square of each record
    mass: Floats  # (TILE,) the sum of its degrees
    visited: Integers  # (blocks,) the blocks visited, the nearest first
    gaps: Floats  # (blocks,) squared distances from the tile's box to those of the blocks
    lanes: Floats  # (TILE * LANES,)
    more: Floats  # (TILE * LANES,)


@kernel
def pack(centres: Floats, order: Integers) -> Centres:
    """Put centres into blocks, in an order in which neighbours follow each other."""
    c, d = centres.shape
    n_blocks = (c + LANES - 1) // LANES
    points = np.full((n_blocks, d, LANES), FAR)
    low, high = np.full((d, n_blocks), np.inf), np.full((d, n_blocks), -np.inf)
    counts = np.zeros(n_blocks, dtype=np.int64)
    for place in range(c):
        block, lane = place // LANES, place % LANES
        counts[block] += 1
        for j in range(d):
            value = centres[order[place], j]
            points[block, j, lane] = value
            low[j, block] = min(low[j, block], value)
            high[j, block] = max(high[j, block], value)
    return Centres(points, low, high, counts, order)


@kernel
def make_room(n_blocks: int, d: int) -> Room:
    """Allocate, once for many tiles."""
    return Room(
        np.zeros((TILE, d)), np.zeros((n_blocks, TILE * LANES)), np.zeros((n_blocks, TILE * LANES)),
        np.zeros(TILE), np.zeros(TILE), np.zeros(n_blocks, dtype=np.int64), np.zeros(n_blocks),
        np.zeros(TILE * LANES), np.zeros(TILE * LANES),
    )  # fmt: skip


@kernel
def load(X: Floats, rows: Integers, first: int, room: Room) -> int:
    """Copy the records of a tile; return how many there are. The rest repeats the last."""
    size = min(TILE, rows.shape[0] - first)
    for i in range(TILE):
        row = rows[first + min(i, size - 1)]
        for j in range(X.shape[1]):
            room.records[i, j] = X[row, j]
    return int(size)


@kernel
def _squares(points: Floats, records: Floats, out: Floats) -> None:
    """Squared distances of a tile's records to the centres of one block."""
    d = points.shape[0]
    even = d // STEP * STEP
    for i in range(TILE):
        at = i * LANES
        for lane in range(LANES):
            out[at + lane] = 0.0
        for j in range(0, even, STEP):
            a, b, c, e = records[i, j], records[i, j + 1], records[i, j + 2], records[i, j + 3]
            for lane in range(LANES):
                p = points[j, lane] - a
                q = points[j + 1, lane] - b
                r = points[j + 2, lane] - c
                s = points[j + 3, lane] - e
                out[at + lane] += (p * p + q * q) + (r * r + s * s)
        if d - even > 1:
            a, b = records[i, even], records[i, even + 1]
            for lane in range(LANES):
                p = points[even, lane] - a
                q = points[even + 1, lane] - b
                out[at + lane] += p * p + q * q
        if d % 2 == 1:
            a = records[i, d - 1]
            for lane in range(LANES):
                p = points[d - 1, lane] - a
                out[at + lane] += p * p


@kernel
def _order_blocks(centres: Centres, law: Law, room: Room) -> int:
    """Order the blocks that may matter by the squared distance between the boxes; count them.

    Every record of the tile has a centre within the farthest corners of the tile's box and the box
    of a block: `reach`. Blocks so far off that all centres at their distance, together, would
    have less than half of `neglect`, are left out.
    """
    d, n_blocks = room.records.shape[1], centres.counts.shape[0]
    gaps, reaches = room.gaps, np.zeros(n_blocks)
    gaps[:] = 0.0
    for j in range(d):
        low, high = room.records[0, j], room.records[0, j]
        for i in range(1, TILE):
            low, high = min(low, room.records[i, j]), max(high, room.records[i, j])
        lows, highs = centres.low[j], centres.high[j]
        for block in range(n_blocks):
            gap = max(0.0, max(lows[block] - high, low - highs[block]))
            gaps[block] += gap * gap
            reach = max(high - lows[block], highs[block] - low)
            reaches[block] += reach * reach
    # The nearest centre is within sqrt(reach); solve "degree at the limit = share" for the limit.
    reach, share = np.inf, 0.5 * law.neglect / (n_blocks * LANES)
    for block in range(n_blocks):
        reach = min(reach, reaches[block])
    if law.kind == POWER:
        limit = reach * share ** (-1.0 / law.rate)
    elif law.kind == EXPONENTIAL:
        limit = reach - math.log(share) / law.rate
    else:
        limit = reach
    count = 0
    for block in range(n_blocks):
        if gaps[block] <= limit:
            room.visited[count] = block
            reaches[count] = gaps[block]
            count += 1
    order = np.argsort(reaches[:count], kind="mergesort")
    blocks = room.visited[:count].copy()
    for place in range(count):
        room.visited[place] = blocks[order[place]]
        gaps[place] = reaches[order[place]]
    return count


@kernel
def _enough(
    farthest: float, law: Law, centres: Centres, room: Room, place: int, count: int
) -> bool:
    """Tell whether the blocks from a place on add less than half of `neglect` to any mass.

    `farthest` is the largest of the records' least squares. No centre of a block is nearer than
    the block's box, so its degree is at most that of the gap.
    """
    if room.gaps[place] <= farthest:
        return False
    if law.kind == NEAREST:
        return True
    total, allowed = 0.0, 0.5 * law.neglect
    for later in range(place, count):
        if law.kind == POWER:
            degree = (farthest / room.gaps[later]) ** law.rate
        else:
            degree = math.exp(-law.rate * (room.gaps[later] - farthest))
        total += degree * centres.counts[room.visited[later]]
        if total > allowed:
            return False
        if degree * LANES * (count - later) <= allowed - total:
            return True  # those that follow are not nearer
    return True


@kernel
def visit(centres: Centres, law: Law, room: Room) -> int:
    """Fill in squares, degrees and mass of a tile; return the number of blocks visited."""
    n_blocks = centres.counts.shape[0]
    least = room.lanes
    least[:] = np.inf
    sparse = law.neglect > 0.0 and n_blocks > FEW
    count = n_blocks
    if sparse:
        count = _order_blocks(centres, law, room)
    else:
        for block in range(n_blocks):
            room.visited[block] = block
    used = 0
    while used < count:
        # Between looks at the bound a quarter more is visited: the looks, of which there are then
        # O(log blocks), cost little, and at most a quarter of the visits is in vain.
        upto = min(count, used + 1 + used // 4) if sparse else count
        for place in range(used, upto):
            squares = room.squares[place]
            _squares(centres.points[room.visited[place]], room.records, squares)
            for lane in range(TILE * LANES):
                least[lane] = min(least[lane], squares[lane])
        used = upto
        farthest = 0.0
        for i in range(TILE):
            nearest = least[i * LANES]
            for lane in range(1, LANES):
                nearest = min(nearest, least[i * LANES + lane])
            room.least[i] = nearest
            farthest = max(farthest, nearest)
        if used < count and _enough(farthest, law, centres, room, used, count):
            break
    _fill_degrees(law, centres, used, room)
    return used


@kernel
def _fill_degrees(law: Law, centres: Centres, used: int, room: Room) -> None:
    """Turn squares into degrees, and add up the mass.

    Sums run lane by lane over blocks, then over lanes: the same order for every tile, whatever
    the compiler does with a vector.
    """
    sums, least = room.lanes, room.more
    sums[:] = 0.0
    for i in range(TILE):
        for lane in range(LANES):
            least[i * LANES + lane] = room.least[i]
    spare = np.empty(TILE * LANES)
    for place in range(used):
        squares, degrees = room.squares[place], room.degrees[place]
        if law.kind == POWER and _usual_powers(law.rate, least, squares, degrees):
            pass
        elif law.kind == POWER:
            for lane in range(TILE * LANES):
                squares[lane] = (least[lane] + TINY) / (squares[lane] + TINY)
            powers(squares, law.rate, degrees, spare)
        elif law.kind == EXPONENTIAL:
            for lane in range(TILE * LANES):
                degrees[lane] = law.rate * (least[lane] - squares[lane])
            exponentials(degrees, spare)
        else:
            for lane in range(TILE * LANES):
                degrees[lane] = 1.0 if squares[lane] == least[lane] else 0.0
        for lane in range(TILE * LANES):
            sums[lane] += degrees[lane]
    for i in range(TILE):
        total = 0.0
        for lane in range(LANES):
            total += sums[i * LANES + lane]
        room.mass[i] = total
    if law.kind == NEAREST:
        _keep_first(centres, used, room)


@kernel
def _usual_powers(rate: float, least: Floats, squares: Floats, degrees: Floats) -> bool:
    """Replace squares by ratios, and fill in their powers, in one pass where the power is usual.

    The rates 1, 2, 5 and 10 are those of m = 2, 1.5, 1.2 and 1.1. Returns False for others.
    """
    if rate == 1.0:
        for i in range(TILE * LANES):
            ratio = (least[i] + TINY) / (squares[i] + TINY)
            squares[i], degrees[i] = ratio, ratio
    elif rate == 2.0:
        for i in range(TILE * LANES):
            ratio = (least[i] + TINY) / (squares[i] + TINY)
            squares[i], degrees[i] = ratio, ratio * ratio
    elif rate == 5.0:
        for i in range(TILE * LANES):
            ratio = (least[i] + TINY) / (squares[i] + TINY)
            second = ratio * ratio
            squares[i], degrees[i] = ratio, second * second * ratio
    elif rate == 10.0:
        for i in range(TILE * LANES):
            ratio = (least[i] + TINY) / (squares[i] + TINY)
            second = ratio * ratio
            fifth = second * second * ratio
            squares[i], degrees[i] = ratio, fifth * fifth
    else:
        return False
    return True


@kernel
def _keep_first(centres: Centres, used: int, room: Room) -> None:
    """Leave a record with several nearest centres to one of them, the one of the least number."""
    for i in range(TILE):
        if room.mass[i] > 1.0:
            first, at, lane_at = centres.order.shape[0], 0, 0
            for place in range(used):
                for lane in range(i * LANES, (i + 1) * LANES):
                    if room.degrees[place, lane] > 0.0:
                        room.degrees[place, lane] = 0.0
                        number = centres.order[room.visited[place] * LANES + lane % LANES]
                        if number < first:
                            first, at, lane_at = number, place, lane
            room.degrees[at, lane_at] = 1.0
            room.mass[i] = 1.0
