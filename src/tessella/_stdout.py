"""Standard output belongs to Python: what compiled code prints there goes to standard error.

HiGHS prints lines that no option turns off. They pass C's own buffer, so that into a pipe they
come out when the process ends, behind or within what was printed in between.
"""

import contextlib
import ctypes
import io
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

_lock = threading.RLock()
_state: dict[str, Any] = {"holders": 0, "kept": None}


@contextlib.contextmanager
def reserved_stdout() -> Iterator[None]:
    """Point descriptor 1 at standard error, and `sys.stdout` at what descriptor 1 was.

    The descriptor is that of the whole process: in the meantime `print` of every thread reaches
    standard output as ever, and only what goes around `sys.stdout` does not. Calls may be nested
    and overlap; the last to end restores both.
    """
    with _lock:
        _state["holders"] += 1
        if _state["holders"] == 1:
            _reserve()
    try:
        yield
    finally:
        with _lock:
            _state["holders"] -= 1
            if _state["holders"] == 0:
                _restore()


def _reserve() -> None:
    before = sys.stdout
    _state["before"], _state["within"], _state["reserved"] = before, None, False
    if sys.__stdout__ is None:  # it was closed from the start: descriptor 1 may be any file
        return
    _flush_compiled()
    if of_descriptor := _descriptor(before) == 1:
        before.flush()
    try:
        # One descriptor for good: another thread may still print to the stream made from it.
        kept = _state["kept"]
        _state["kept"] = _copy(1) if kept is None else os.dup2(1, kept, inheritable=False)
    except OSError:  # it was closed: nothing can reach it
        return
    if of_descriptor:
        sys.stdout = _state["within"] = _stream(_state["kept"], before)
    _point(1, 2)
    _state["reserved"] = True


def _restore() -> None:
    if not _state["reserved"]:
        return
    _flush_compiled()
    before, within, kept = _state["before"], _state["within"], _state["kept"]
    late = 2  # where it goes if another thread prints to `within` from now on
    try:
        if within is not None:
            within.flush()
    except BaseException:  # whoever read has gone, or the disk is full: the rest is lost
        late = -1
        raise
    finally:
        if sys.stdout is within:
            sys.stdout = before
        os.dup2(kept, 1)
        _point(kept, late)  # or whoever reads our output would never see its end


def _copy(descriptor: int) -> int:
    """Copy a descriptor, but not to the place of a standard one that is closed."""
    copies = [os.dup(descriptor)]
    while copies[-1] < 3:
        copies.append(os.dup(descriptor))
    for one in copies[:-1]:
        os.close(one)
    return copies[-1]


def _point(descriptor: int, target: int) -> None:
    """Let a descriptor be a copy of another; of none if that is closed."""
    try:
        os.dup2(target, descriptor, inheritable=descriptor < 3)
    except OSError:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), descriptor, inheritable=descriptor < 3)


def _stream(descriptor: int, like: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        open(descriptor, "wb", closefd=False), encoding=like.encoding, errors=like.errors,
        line_buffering=like.line_buffering, write_through=getattr(like, "write_through", False),
    )  # fmt: skip


def _descriptor(stream: Any) -> int | None:
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError):  # none, or one in memory
        return None


def _flush_compiled() -> None:
    """Empty the buffers of C; each Windows runtime has its own, of which this is the usual."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("ucrtbase" if os.name == "nt" else None).fflush(None)
