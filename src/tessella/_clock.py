"""The clock of every time limit, which a test can drive; and the progress of long work.

Progress is reported to whoever waits for the work, with an estimate of the time left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the types load NumPy, which a command that prints its help does not need
    from ._types import Progress

_WAITING: ContextVar[Progress | None] = ContextVar("waiting", default=None)


def now() -> float:
    """Return seconds since some moment."""
    return time.perf_counter()


def alarm(seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
    """Call `ring` in so many seconds, from another thread; return what cancels it."""
    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    return timer.cancel


@contextmanager
def reported_to(progress: Progress | None) -> Iterator[None]:
    """Report the long work inside of a block to `progress`, however deep it is done."""
    token = _WAITING.set(progress)
    try:
        yield
    finally:
        _WAITING.reset(token)


def waiting() -> Progress | None:
    """Return to whom long work is reported, if to anybody."""
    return _WAITING.get()


class TimeLeft:
    """How long the rest of some work takes, if it goes on as it went so far.

    `limit` are the seconds after which the work ends anyhow.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self._begin()

    def _begin(self) -> None:
        self.began, self.first = now(), 0.0

    def __call__(self, done: float, total: float) -> str:
        """Return ", about 2 min left", or nothing where nothing can be known yet."""
        share = done / total if total > 0 else 1.0
        if share < self.first:  # other work of the same kind has begun
            self._begin()
        self.first = share
        spent = now() - self.began
        if self.limit is not None:
            left = self.limit - spent
        elif share <= 0:
            return ""
        else:
            left = spent * (1.0 - share) / share
        return f", about {in_words(left)} left" if left >= 1 else ""


def in_words(seconds: float) -> str:
    """Write a time as people do.

    Examples
    --------
    >>> from tessella._clock import in_words
    >>> in_words(8.2), in_words(100), in_words(4000)
    ('8 s', '2 min', '1 h 7 min')
    """
    minutes = round(seconds / 60)
    if seconds < 59.5:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
