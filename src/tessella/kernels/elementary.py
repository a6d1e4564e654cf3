"""Exponential and power of many numbers at once, without a call for each.

The compiler turns the loops below into vector instructions, which it cannot do with the functions
of the C library. Errors stay below 2 units in the last place of the exponential, and the result is
the same on every machine.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats
from ._jit import kernel

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
