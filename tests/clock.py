"""A clock that a test drives: what a time limit cuts depends on looks at the clock, not on time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from tessella import _clock


class Clock:
    """Each look at it takes one second."""

    def __init__(self) -> None:
        self.looks = 0
        self.lock = threading.Lock()
        self.alarms: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> float:
        with self.lock:
            self.looks += 1
            return float(self.looks)

    def alarm(self, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        """Keep the alarm for the test, which may ring it."""
        self.alarms.append((seconds, ring))
        return lambda: None


@contextmanager
def driven_clock() -> Iterator[Clock]:
    """Put a driven clock in the place of the real one."""
    clock = Clock()
    with mock.patch.multiple(_clock, now=clock.now, alarm=clock.alarm):
        yield clock
