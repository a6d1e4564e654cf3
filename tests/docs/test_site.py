"""The site builds without a warning, and asks nothing from outside."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_site(tmp_path):
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    fetched = re.compile(
        r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//"
    )
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert not fetched.search(page.read_text(encoding="utf-8")), page
    for style in tmp_path.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(?:https?:)?//", style.read_text()), style


@pytest.mark.slow
def test_the_picture_can_be_drawn_again_and_is_small():
    drawing = runpy.run_path(str(ROOT / "docs" / "pictures" / "mosaic.py"))["draw"]()
    said = [axes.get_title(loc="left") for axes in drawing.axes]
    kept = (ROOT / "docs" / "pictures" / "mosaic.svg").read_text()
    assert len(kept) < 60_000
    assert all(title in kept for title in said)
