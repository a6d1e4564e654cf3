"""Compiled inner loops: arrays in, arrays out; no checks, no frames.

A kernel trusts its caller. Every array is C-ordered float64 or int64 unless it says otherwise.

Kernels release the interpreter's lock, so threads run them side by side; they never start threads
of their own, so an answer cannot depend on the number of cores. No fastmath: sums keep their order.

A kernel runs machine code that was compiled ahead of time where there is some for its arguments
(`ahead.py`), and else what numba compiles on the first call and keeps on disk. Both are made by
numba from the same lines. numba itself takes a third of a second to load, and is loaded only when
it is needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, update_wrapper
from typing import Any, TypeVar, cast

from . import ahead

__all__ = ["is_compiled", "kernel", "missed", "spliced", "watch_compilation"]

Function = TypeVar("Function", bound=Callable[..., object])

_MISSED: dict[str, None] = {}  # an ordered set


class Kernel:
    """A function in machine code: compiled ahead of time, or by numba when it is called.

    What else is asked of it, numba's dispatcher answers: so kernels can call each other.
    """

    def __init__(self, function: Callable[..., object], **options: Any) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._options = options

    def __call__(self, *arguments: Any) -> Any:
        missing = self.py_func.__code__.co_argcount - len(arguments)
        if missing:
            arguments += (self.py_func.__defaults__ or ())[-missing:]
        forms = tuple(map(ahead.form_of, arguments))
        code = self._compiled_ahead.get(forms)
        if code is not None:
            return code(*arguments)
        if forms not in self._compiled_ahead:
            self._note(forms)
        return self.dispatcher(*arguments)

    def _note(self, forms: tuple[Any, ...]) -> None:
        """Note for which arguments there was no machine code."""
        self._compiled_ahead[forms] = None
        try:
            texts = ", ".join(map(ahead.write_form, forms))
        except ValueError:
            return
        _MISSED[f"{self.__module__.rpartition('.')[2]}.{self.__name__}: {texts}"] = None

    @cached_property
    def _compiled_ahead(self) -> dict[tuple[Any, ...], Callable[..., Any] | None]:
        home, _, module = self.__module__.rpartition(".")
        if home != __name__ or os.environ.get("TESSELLA_AHEAD") == "0":
            return {}
        return {**ahead.load(module).get(self.__name__, {})}

    @cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function."""
        _listen()
        from numba import njit

        try:
            made = njit(**ahead.OPTIONS, **self._options)(self.py_func)
        except RuntimeError:  # there is no folder to keep machine code in
            return njit(**{**ahead.OPTIONS, **self._options, "cache": False})(self.py_func)
        _stamp(made, self.__module__)
        return made

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __getattr__(self, name: str) -> Any:
        # A missing attribute of our own: else an error in a property would seem to be numba's.
        if name.startswith("__") or name in vars(Kernel) or name in ("py_func", "_options"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # by reference, as a function


def _stamp(dispatcher: Any, module: str) -> None:
    """Let numba keep machine code for as long as all texts that decide what it does are the same.

    By itself it looks at the file of the kernel, and not at those that this one takes kernels and
    constants from. It has no public door for that; a test checks that this one is still there.
    """
    home, _, name = module.rpartition(".")
    if home == __name__ and hasattr(dispatcher, "_cache"):
        with suppress(AttributeError):
            file = dispatcher._cache._cache_file
            file._source_stamp = (file._source_stamp, ahead.digest(name))


def kernel(function: Function) -> Function:
    """Run a function as machine code; what numba compiles is kept on disk."""
    return cast(Function, Kernel(function, cache=True))


def spliced(function: Function) -> Function:
    """Copy a small function into the kernels that call it, where a call would cost too much."""
    return cast(Function, Kernel(function, inline="always"))


def missed() -> list[str]:
    """Return the calls of kernels that had to be compiled, as lines of `signatures.txt`."""
    return sorted(_MISSED)


_WATCHING: list[Callable[[], object]] = []


@cache
def _listen() -> None:
    """Call those who watch when a kernel is compiled; one that is loaded from disk is not."""
    from numba.core import event

    class Compilations(event.Listener):
        def on_start(self, event: Any) -> None:  # noqa: ARG002
            while _WATCHING:
                _WATCHING.pop()()

        def on_end(self, event: Any) -> None:
            """Do nothing."""

    event.register("numba:compile", Compilations())  # type: ignore[no-untyped-call]


@contextmanager
def watch_compilation(call: Callable[[], object]) -> Iterator[None]:
    """Call a function once, when the first kernel is compiled inside of a block, in any thread."""
    if "numba" in sys.modules:
        _listen()
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
    if any(function._compiled_ahead.values()):  # type: ignore[attr-defined]
        return True
    try:
        return bool(function._cache._cache_file._load_index())  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return True
