"""A browser, a folder with a survey, a server on it, and somebody who is watched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tessella.datasets import make_business_survey

from .browsing import Server, Watched


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("TESSELLA_BROWSER") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("there is no Chromium; name one in TESSELLA_BROWSER")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"] if root else []
        )
        yield browser
        browser.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """80 firms and their rules, in a folder of their own."""
    home = tmp_path / "survey"
    home.mkdir()
    firms, rules = make_business_survey(80, random_state=0, inconsistent=0.05, return_rules=True)
    names = ["firm", "region", "employees", "turnover", "costs", "profit"]
    firms[names].to_csv(home / "firms.csv", index=False)
    own = [rule for rule in rules if rule.startswith(("turnover >=", "turnover - costs"))]
    (home / "rules.txt").write_text("\n".join(own or ["turnover >= 0"]))
    return home


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    yield server
    server.stop()


@pytest.fixture
def watched(browser: Any, server: Server) -> Iterator[Watched]:
    watched = Watched(browser, server.address)
    yield watched
    watched.end()
