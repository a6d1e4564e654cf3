"""The page about exploring shows what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explore.md"


def test_the_page_is_true():
    assert doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8").failed == 0
