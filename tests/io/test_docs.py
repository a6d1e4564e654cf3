"""The page about files does what it says."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_the_page():
    page = Path(__file__).parents[2] / "docs" / "formats.md"
    ran = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert ran.attempted > 10
    assert ran.failed == 0
