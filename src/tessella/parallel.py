"""Work shared by the machine's cores: kernels release the lock, threads run them.

The pieces of work never depend on the number of cores, and results come back in the order of the
pieces: one core and many give the same answer.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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


def each(function: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
    """Apply a function to every piece, on all cores, results in the order of the pieces."""
    todo = list(pieces)
    cores = min(n_cores(), len(todo))
    if cores <= 1:
        return [function(piece) for piece in todo]
    pool = ThreadPoolExecutor(cores)
    try:
        return list(pool.map(function, todo))
    finally:  # after Ctrl-C or an error, pieces not yet begun are dropped
        pool.shutdown(wait=True, cancel_futures=True)
