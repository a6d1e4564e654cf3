"""Compiled inner loops: arrays in, arrays out; no checks, no frames.

A kernel trusts its caller. Every array is C-ordered float64 or int64 unless it says otherwise.

Kernels release the interpreter's lock, so threads run them side by side; they never start threads
of their own, so an answer cannot depend on the number of cores. No fastmath: sums keep their order.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event

__all__ = ["is_compiled", "kernel", "spliced", "watch_compilation"]

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a function on first call and keep the machine code on disk."""
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))


def spliced(function: Function) -> Function:
    """Copy a small function into the kernels that call it, where a call would cost too much."""
    return cast(Function, njit(nogil=True, error_model="numpy", inline="always")(function))


_WATCHING: list[Callable[[], object]] = []


class _Compilations(event.Listener):
    """Calls those who watch when a kernel is compiled; one that is loaded from disk is not."""

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        while _WATCHING:
            _WATCHING.pop()()

    def on_end(self, event: Any) -> None:
        """Do nothing."""


event.register("numba:compile", _Compilations())  # type: ignore[no-untyped-call]


@contextmanager
def watch_compilation(call: Callable[[], object]) -> Iterator[None]:
    """Call a function once, when the first kernel is compiled inside of a block, in any thread."""
    _WATCHING.append(call)
    try:
        yield
    finally:
        if call in _WATCHING:
            _WATCHING.remove(call)


def is_compiled(function: Callable[..., object]) -> bool:
    """Return whether machine code of a kernel is on disk, for this version and this processor.

    Numba has no public question for that; where its parts have other names, the answer is yes.
    """
    try:
        return bool(function._cache._cache_file._load_index())  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return True
