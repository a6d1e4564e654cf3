"""The clock of every time limit: one place, which a test can drive."""

import threading
import time
from collections.abc import Callable


def now() -> float:
    """Return seconds since some moment."""
    return time.perf_counter()


def alarm(seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
    """Call `ring` in so many seconds, from another thread; return what cancels it."""
    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    return timer.cancel
