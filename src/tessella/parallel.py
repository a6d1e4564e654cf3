"""Work shared by the machine's cores: kernels release the lock, threads run them.

The pieces of work never depend on the number of cores, and results come back in the order of the
pieces: one core and many give the same answer.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
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
) -> list[Result]:
    """Apply a function to every piece, on all cores, results in the order of the pieces.

    `halt` is set after Ctrl-C or an error, so that kernels which look at it end at once. Pieces
    that are cut further while they are worked on stay on their core; not so without `alone`.
    """
    todo = list(pieces)
    cores = 1 if getattr(_own, "works", False) else min(n_cores(), len(todo))
    if cores <= 1:
        return [function(piece) for piece in todo]
    pool = ThreadPoolExecutor(cores, initializer=stay_on_one_core if alone else None)
    try:
        return list(pool.map(function, todo))
    except BaseException:
        if halt is not None:
            halt[0] = 1
        raise
    finally:  # after Ctrl-C or an error, pieces not yet begun are dropped
        pool.shutdown(wait=True, cancel_futures=True)
