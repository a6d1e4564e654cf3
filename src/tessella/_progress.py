"""Progress that shows itself: a bar in a notebook or on a terminal, lines elsewhere.

`progress=True` shows it; a callable is called with steps done, their number and the name of the
next. A function declares its argument `progress` by the decorator `shows_progress`.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ._clock import in_words, now, reported_to
from .exceptions import BadOptionError

if TYPE_CHECKING:
    from ._types import Progress

Function = TypeVar("Function", bound=Callable[..., Any])
OFTEN = 0.1  # seconds between two updates of a display: each is a message to the browser


def shows_progress(function: Function) -> Function:
    """Give a function, in place of `progress=True`, a display that ends with the call."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with shown(kwargs.get("progress")) as progress:
            if "progress" in kwargs:
                kwargs["progress"] = progress
            return function(*args, **kwargs)

    return cast(Function, called)


def shown(progress: Progress | bool | None) -> AbstractContextManager[Progress | None]:
    """Return the callable to report to while a block lasts; None where nobody waits."""
    if progress is None or progress is False:
        return nullcontext(None)
    if progress is True:
        return _in_notebook() if _kernel_runs() else _in_terminal()
    if not callable(progress):
        raise BadOptionError("progress", progress, "True, False, or progress(done, total, name)")
    return nullcontext(progress)


@contextmanager
def reporting(progress: Progress | bool | None) -> Iterator[None]:
    """Report the long work inside of a block, if anybody asked for it here."""
    with shown(progress) as told:
        if told is None:  # whoever waits for an outer block still does
            yield
        else:
            with reported_to(told):
                yield


def _kernel_runs() -> bool:
    """Return whether this is the kernel of a notebook; IPython is not loaded to find out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _in_notebook() -> Iterator[Progress]:
    display = import_module("IPython.display").display
    began = now()
    last: dict[str, Any] = {"at": began, "done": 0, "total": 1, "name": ""}
    handle = display(_bar(0, 1, "begins"), raw=True, display_id=True)

    def step(done: int, total: int, name: str) -> None:
        last.update(done=done, total=max(total, 1), name=name)
        if now() - last["at"] >= OFTEN:
            last["at"] = now()
            handle.update(_bar(done, total, name), raw=True)

    try:
        yield step
    except BaseException:
        ended = f"stopped at: {last['name']}"
        handle.update(_bar(last["done"], last["total"], ended), raw=True)
        raise
    handle.update(_bar(1, 1, f"done in {in_words(now() - began)}"), raw=True)


def _bar(done: int, total: int, name: str) -> dict[str, str]:
    """Return a display of how far it is, as HTML and as text."""
    share = min(max(done / total, 0.0), 1.0) if total > 0 else 1.0
    far = "" if total == 1 else f"{done:,} of {total:,}: "
    told = html.escape(f"{far}{name}")
    return {
        "text/html": '<div style="font: 13px system-ui, sans-serif">'
        f'<progress value="{share:.4f}" max="1" style="width: 14em; vertical-align: middle">'
        f"</progress> {told}</div>",
        "text/plain": f"{100 * share:.0f} % {far}{name}",
    }


@contextmanager
def _in_terminal() -> Iterator[Progress]:
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        with terminal_bar(console, "begins") as step:
            yield step
        return
    told = ""

    def line(done: int, total: int, name: str) -> None:
        nonlocal told
        stage = name.partition(":")[0]  # one line for each step, not for each part of it
        if stage != told:
            told = stage
            print(f"{done:,} of {total:,}: {stage}", file=sys.stderr, flush=True)

    yield line


@contextmanager
def terminal_bar(console: Any, what: str) -> Iterator[Progress]:
    """Draw a bar on a terminal, which is gone when the block ends."""
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f}"), console=console, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task(what, total=1)

        def step(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=max(total, 1), description=name)

        yield step
