"""Compiled inner loops: arrays in, arrays out; no checks, no frames.

A kernel trusts its caller. Every array is C-ordered float64 or int64 unless it says otherwise.

Kernels release the interpreter's lock, so threads run them side by side; they never start threads
of their own, so an answer cannot depend on the number of cores. No fastmath: sums keep their order.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

__all__ = ["kernel", "spliced"]

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a function on first call and keep the machine code on disk."""
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))


def spliced(function: Function) -> Function:
    """Copy a small function into the kernels that call it, where a call would cost too much."""
    return cast(Function, njit(nogil=True, error_model="numpy", inline="always")(function))
