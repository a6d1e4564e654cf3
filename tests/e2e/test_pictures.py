"""Pictures for the page about the app, made when TESSELLA_SHOTS is set; made-up data."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tessella.datasets import make_business_survey

from .browsing import Server, Watched
from .tour import tour

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not os.environ.get("TESSELLA_SHOTS"), reason="set TESSELLA_SHOTS to make pictures"
    ),
]

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = DOCS / "pictures" / "app"
SHOWN = set(re.findall(r"pictures/app/([\w-]+)-light\.png", (DOCS / "app.md").read_text("utf-8")))
WIDTH, TALLEST = 1200, 1700
COLOURS = 96  # of a palette: text and drawings look the same, and a file is a fourth as large


def test_pictures_that_the_page_shows(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    folder.mkdir()
    firms = make_business_survey(300, random_state=0, inconsistent=0.02)
    firms.to_csv(folder / "firms.csv", index=False)
    PICTURES.mkdir(parents=True, exist_ok=True)
    server = Server(folder)
    try:
        size = {"width": WIDTH, "height": 700}
        watched = Watched(browser, server.address, viewport=size, reduced_motion="reduce")
        met = set()
        for name in tour(watched, "firms.csv", points=40):
            met.add(name)
            if name not in SHOWN:
                continue
            prepare(watched.page, name)
            for scheme in ("light", "dark"):
                watched.page.emulate_media(color_scheme=scheme)
                shoot(watched.page, PICTURES / f"{name}-{scheme}.png")
            watched.page.emulate_media(color_scheme="light")
        watched.end()
    finally:
        server.stop()
    assert met >= SHOWN
    assert sum(one.stat().st_size for one in PICTURES.glob("*.png")) < 3_000_000


def prepare(page: Any, name: str) -> None:
    """Show what a reader would see: a folder of their own, and work that has begun."""
    if name.startswith("files"):
        page.locator(".under code").evaluate("e => { e.textContent = '/home/you/survey' }")
    if name == "working":
        page.wait_for_timeout(2500)
        page.reload()


def shoot(page: Any, path: Path) -> None:
    """Take a picture of a page, the upper part of a long one."""
    page.evaluate("scrollTo(0, 0)")
    tall = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
    page.screenshot(
        path=path, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": tall}
    )
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(path) as taken:
        fewer = taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    fewer.save(path, optimize=True)
