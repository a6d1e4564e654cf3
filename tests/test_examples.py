"""Every example in a docstring, and the README's, does what it says."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import tessella

ROOT = Path(tessella.__file__).parent
MODULES = [
    ".".join(["tessella", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if ">>>" in path.read_text()
]
README = ROOT.parents[1] / "README.md"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    ran = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert ran.attempted > 0
    assert ran.failed == 0


def test_readme():
    for code in re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL):
        exec(code, {})
