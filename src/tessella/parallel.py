"""Work shared by the machine's cores: kernels release the lock, threads run them. Its memory.

The pieces of work never depend on the number of cores, and results come back in the order of the
pieces: one core and many give the same answer.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # the types load NumPy, which who imports this need not have
    from ._types import Bytes

_own = threading.local()  # whether a thread works for others already
Piece = TypeVar("Piece")
Result = TypeVar("Result")


def n_cores() -> int:
    """Count the cores this process may use; TESSELLA_CORES sets another number."""
    wished = os.environ.get("TESSELLA_CORES", "")
    if wished.isdecimal() and int(wished) > 0:
        return int(wished)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def stay_on_one_core() -> None:
    """Let this thread do alone what `each` would give to many: others work beside it."""
    _own.works = True


def each(
    function: Callable[[Piece], Result],
    pieces: Iterable[Piece],
    *,
    halt: Bytes | None = None,
    alone: bool = True,
    done: Callable[[float], None] | None = None,
) -> list[Result]:
    """Apply a function to every piece, on all cores, results in the order of the pieces.

    `halt` is set after Ctrl-C or an error, so that kernels which look at it end at once. Pieces
    that are cut further while they are worked on stay on their core; not so without `alone`.
    `done` is called from the caller's own thread, with the share of the pieces that have ended.
    """
    todo = list(pieces)
    cores = 1 if getattr(_own, "works", False) else min(n_cores(), len(todo))
    if cores <= 1:
        return _collect(map(function, todo), len(todo), done)
    pool = ThreadPoolExecutor(cores, initializer=stay_on_one_core if alone else None)
    try:
        return _collect(pool.map(function, todo), len(todo), done)
    except BaseException:
        if halt is not None:
            halt[0] = 1
        raise
    finally:  # after Ctrl-C or an error, pieces not yet begun are dropped
        pool.shutdown(wait=True, cancel_futures=True)


def _collect(
    results: Iterable[Result], total: int, done: Callable[[float], None] | None
) -> list[Result]:
    """Take results as they come, and report how many there are."""
    found = []
    for result in results:
        found.append(result)
        if done is not None:
            done(len(found) / total)
    return found


@contextmanager
def plain_memory() -> Iterator[None]:
    """Let Arrow take its memory from the C library, and return to it at once what was freed.

    Arrow's own pools keep what their threads have freed: with a million records of 20 columns 200
    megabytes, more than the table.
    """
    import pyarrow as pa

    usual = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(usual)


def return_memory() -> None:
    """Return what was freed to the system, where the C library can be asked to.

    glibc keeps freed columns for later ones of the same size: with a million records, a fifth of
    what a plan seemed to need.
    """
    with suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
