"""Every page fits a narrow screen, and axe finds nothing serious on it, in light and in dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .browsing import Server, Watched, look
from .tour import tour

pytestmark = pytest.mark.e2e

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
GRAVE = ("serious", "critical")
PAGES = {
    "files", "file", "data", "rules", "rules-mistaken", "plan", "plan-open", "map", "map-chosen",
    "run", "working", "look", "compare", "publish", "published", "toml", "history", "verify",
    "verified", "problem", "refused", "files-after",
}  # fmt: skip


def violations(page: Any) -> list[str]:
    """Return what axe finds that keeps people out."""
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]} {node['failureSummary'][:200]}"
        for one in found
        if one["impact"] in GRAVE
        for node in one["nodes"][:3]
    ]


def test_every_page_fits_and_keeps_nobody_out(browser: Any, server: Server) -> None:
    # The app's policy allows no script but its own: for axe alone it is not enforced.
    watched = Watched(browser, server.address, bypass_csp=True, reduced_motion="reduce")
    seen, wrong = set(), []
    for name in tour(watched, "firms.csv"):
        seen.add(name)
        look(watched.page)
        for scheme in ("light", "dark"):
            watched.page.emulate_media(color_scheme=scheme)
            wrong += [f"{name}, {scheme}: {one}" for one in violations(watched.page)]
        watched.page.emulate_media(color_scheme="light")
    assert wrong == [], "\n".join(wrong)
    assert seen >= PAGES
    watched.end()
