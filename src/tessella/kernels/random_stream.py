"""Random numbers for kernels: a small stream whose whole state is one 64-bit word.

numba's own generator is one a thread, so its numbers would depend on how work is spread over
threads. Here every piece of work carries its stream: xorshift64* (Vigna 2016), seeded through
splitmix64 so that neighbouring seeds give unrelated streams.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Stream
from ._jit import kernel


@kernel
def start_stream(seed: int, number: int) -> Stream:
    """Open stream `number` of the family `seed`; the state has shape (1,)."""
    z = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(number)
    for _ in range(2):
        z += np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    stream = np.empty(1, dtype=np.uint64)
    stream[0] = z | np.uint64(1)  # the state must not be zero
    return stream


@kernel
def next_word(stream: Stream) -> Any:
    """Draw 64 random bits."""
    x = stream[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    stream[0] = x
    return x * np.uint64(0x2545F4914F6CDD1D)


@kernel
def draw(stream: Stream) -> float:
    """Draw a number in [0, 1)."""
    return np.float64(next_word(stream) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def draw_below(stream: Stream, n: int) -> Any:
    """Draw an integer in 0 .. n - 1, for n below 2**32."""
    return np.int64(((next_word(stream) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
