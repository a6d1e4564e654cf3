"""How much a test does: little in every run, more in a heavy one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings

from tessella.grouping import covering
from tessella.grouping import search as searching

HEAVY = (pytest.mark.slow, pytest.mark.heavy)


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """Run a test with so many random cases, its argument `count`, and with more in a heavy one."""
    return pytest.mark.parametrize("count", [few, pytest.param(many, marks=HEAVY)])


def try_examples(count: int, check: Callable[..., object], *drawn: Any, **named: Any) -> None:
    """Let hypothesis look for so many examples of a test with these strategies."""
    settings(max_examples=count)(given(*drawn, **named)(check))()


@contextmanager
def fewer_moves() -> Iterator[None]:
    """An eighth of a search's work at every effort, where it does not matter how much is found."""
    standard = searching.standard_moves
    with pytest.MonkeyPatch.context() as patch:
        for module in (searching, covering):
            patch.setattr(module, "standard_moves", lambda n: standard(n) / 8)
        yield
