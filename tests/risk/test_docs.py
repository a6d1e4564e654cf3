"""The pages about risk show what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["anonymity", "attributes", "risk"])
def test_the_page_is_true(page):
    path = str(DOCS / f"{page}.md")
    assert doctest.testfile(path, module_relative=False, encoding="utf-8").failed == 0
