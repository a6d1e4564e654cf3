"""The documentation, opened from a folder: search works, and nothing is asked from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from website.build import ROOT, build
from website.sources import Sources

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("zensical", reason="the extra docs is not installed")
    site = tmp_path_factory.mktemp("built") / "site"
    build(Sources.read(ROOT), site)
    return site


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_search_from_a_folder(browser: Any, site: Path, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1300, "height": 900})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "api" / "keys.html").as_uri())
    page.get_by_role("button", name="Search").or_(page.locator(".md-search__button")).first.click()
    box = page.get_by_role("combobox", name="Search")
    box.press_sequentially("rank swapping")
    result = page.get_by_role("option").filter(has_text="Rank swapping").first
    result.wait_for()
    assert box.input_value() == "rank swapping"  # a bug once met: the search emptied its own field
    result.click()
    page.wait_for_url(lambda url: not url.endswith("/api/keys.html"))
    assert "ank swapping" in page.locator("article").inner_text()
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked)
    page.close()


def test_pictures_follow_the_toggle_of_the_site(browser: Any, site: Path) -> None:
    """A bug once met: pictures followed the system, and most had no dark one."""
    page = browser.new_page(color_scheme="light", viewport={"width": 1300, "height": 900})
    page.goto((site / "app.html").as_uri())
    shown = "images => images.filter(one => one.offsetWidth).map(one => one.getAttribute('src'))"
    for other in ("dark", "light"):
        page.locator("label[for^=__palette]:visible").click()
        page.locator(f"article img[src$='#only-{other}']").first.wait_for()
        sources = page.locator("article img").evaluate_all(shown)
        assert sources
        assert all(source.endswith(f"-{other}.png#only-{other}") for source in sources)
    page.close()
