"""The app in a real browser: the whole way, what can go wrong, and nothing leaves the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tessella.datasets import make_business_survey

pytestmark = pytest.mark.e2e

NARROW, WIDE = {"width": 400, "height": 800}, {"width": 1400, "height": 900}
PATIENCE = 180_000  # milliseconds in which a release is made, kernels compiled
HOSTILE = "<script>document.title='taken'</script>"
QUOTES = "\"'><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
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
    firms, rules = make_business_survey(80, random_state=0, inconsistent=0.05, return_rules=True)
    firms.to_csv(tmp_path / "firms.csv", index=False)
    (tmp_path / "rules.txt").write_text("\n".join(rules))
    return tmp_path


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "tessella", "app", str(folder), "--no-browser", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()
        server.wait(20)


class Watched:
    """A page whose requests, errors and dialogs are kept."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(viewport=WIDE, **options)
        self.context.set_default_timeout(30_000)
        self.page = self.context.new_page()
        self.origin = address.partition("/enter")[0]
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.wrong.append("dialog"), dialog.dismiss()))
        self.page.on("console", self._hear)
        self.page.goto(address)
        self.page.wait_for_selector("h1")
        self.home = self.page.url.rstrip("/")

    def _hear(self, message: Any) -> None:
        refused = "the server responded with a status of 400" in message.text  # told on the page
        if message.type == "error" and not refused:
            self.wrong.append(message.text)

    def draft(self, name: str = "firms.csv", **fields: str) -> None:
        self.page.goto(f"{self.home}/files/{name}")
        for field, value in fields.items():
            self.page.fill(f"[name={field}]", value)
        self.page.click("text=Draft the plan")
        self.page.wait_for_url("**/plans/*")

    def edit(self, old: str, new: str) -> None:
        text = self.page.input_value("#plan")
        assert old in text
        self.page.fill("#plan", text.replace(old, new))

    def end(self) -> None:
        """Close; nothing went wrong, and nothing was asked of anybody else."""
        self.context.close()
        assert self.wrong == []
        assert self.asked
        strangers = [url for url in self.asked if not url.startswith((f"{self.origin}/", "data:"))]
        assert strangers == []


@pytest.fixture
def watched(browser: Any, address: str) -> Iterator[Watched]:
    watched = Watched(browser, address)
    yield watched
    watched.end()


def look(page: Any) -> None:
    """Nothing sticks out of a narrow page, and each field has a name for those who cannot see."""
    page.wait_for_load_state()
    page.set_viewport_size(NARROW)
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth", timeout=5_000)
    assert page.evaluate("innerWidth") == NARROW["width"]
    page.set_viewport_size(WIDE)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea")]
        .filter(e => !e.labels.length && !e.ariaLabel).map(e => e.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("h1").count() == 1


def test_from_the_files_to_a_downloaded_release(watched, folder, tmp_path):
    page = watched.page
    look(page)
    page.click("a:text-is('firms.csv')")
    look(page)
    page.fill("#rules", "turnover >= 0\nprofit = turnover - costs")
    page.click("text=Check the rules")
    page.wait_for_selector("#rules-said a[data-line='2']")
    page.fill("#rules", "")
    page.select_option("[name=rules-file]", "rules.txt")
    page.click("text=Check the rules")
    page.wait_for_selector("#rules-said table")
    page.fill("[name=k]", "4")
    page.click("text=Draft the plan")
    page.wait_for_url("**/plans/firms-plan.toml")
    look(page)
    good = page.input_value("#plan")
    watched.edit('risk = "quick"', 'risk = "quik"')
    page.click("button:text-is('Check')")
    mistake = page.wait_for_selector("#judged a[data-line]")
    line = int(mistake.get_attribute("data-line"))
    mistake.click()
    chosen = page.evaluate(
        "(a => a.value.slice(a.selectionStart, a.selectionEnd))(document.activeElement)"
    )
    assert chosen == 'risk = "quik"'
    assert page.input_value("#plan").split("\n")[line - 1] == chosen
    page.fill("#plan", good)
    page.click("button:text-is('Check')")
    page.wait_for_selector("text=No mistakes.")
    page.click("button:text-is('Protect')")
    page.wait_for_selector("progress")
    look(page)
    page.wait_for_selector("h1:has-text('is released')", timeout=PATIENCE)  # without a reload
    look(page)
    with page.expect_download() as download:
        page.click("a:text-is('Release')")
    copy = tmp_path / "copy.csv"
    download.value.save_as(copy)
    assert copy.read_bytes() == (folder / "firms-release.csv").read_bytes()
    release = pd.read_csv(copy)
    assert len(release) == 80
    assert (release["profit"] == release["turnover"] - release["costs"]).all()
    result = page.url
    for link, text in (("External report", "How this table"), ("Internal report", "Confidential")):
        page.goto(result)
        page.click(f"a:text-is('{link}')")
        page.wait_for_selector(f"text={text}")
    page.goto(result)
    page.click("a.button:text-is('Verify')")
    look(page)
    page.select_option("[name=original]", "firms.csv")
    page.click("button:text-is('Verify')")
    page.wait_for_selector("text=14 of 14", timeout=PATIENCE)
    look(page)
    page.goto(watched.home)
    look(page)


def test_a_refusal_says_why_and_leads_back(watched, folder):
    watched.draft(k="3")
    watched.edit("k = 3", "k = 300")
    watched.page.click("button:text-is('Protect')")
    watched.page.wait_for_selector("text=k = 300 needs at least 300 records", timeout=PATIENCE)
    look(watched.page)
    assert not list(folder.glob("*release*"))
    watched.page.click("text=Back to the plan")
    assert "k = 300" in watched.page.input_value("#plan")


def test_work_is_cancelled(watched, folder):
    watched.draft(k="3")
    watched.page.click("button:text-is('Protect')")
    watched.page.click("button:text-is('Cancel')")
    watched.page.wait_for_selector("h1:text-is('Cancelled')")
    assert not list(folder.glob("*release*"))


def test_hostile_names_are_text(watched, folder):
    name = "<img src=x onerror=alert(2)>.csv"
    table = pd.DataFrame({HOSTILE: range(30), QUOTES: [x * x for x in range(30)]})
    table.to_csv(folder / name, index=False)
    page = watched.page
    page.reload()
    page.click(f"a:text-is('{name}')")
    assert page.locator("th", has_text=HOSTILE).count() == 1
    page.select_option("[name=role-0]", "quasi-identifier")
    page.fill("#rules", f"`{HOSTILE}` >>= 0")
    page.click("text=Check the rules")
    page.wait_for_selector("#rules-said .wrong")
    page.fill("#rules", f"`{HOSTILE}` >= 0")
    page.click("text=Check the rules")
    page.wait_for_selector("#rules-said table")
    page.fill("[name=plan]", "p.toml")
    page.click("text=Draft the plan")
    page.wait_for_url("**/plans/*")
    watched.edit('risk = "quick"', 'risk = "none"')
    page.click("button:text-is('Protect')")
    page.wait_for_selector("h1:has-text('is released')", timeout=PATIENCE)
    assert page.locator("th", has_text=HOSTILE).count() == 1
    assert page.locator("img").count() == 0
    assert page.title() != "taken"
    for report in ("External report", "Internal report"):
        page.click(f"a:text-is('{report}')")
        assert page.locator("img").count() == 0
        assert page.title() != "taken"
        page.go_back()


def test_the_way_without_scripts(browser, address, folder):
    watched = Watched(browser, address, java_script_enabled=False)
    page = watched.page
    page.click("a:text-is('firms.csv')")
    page.fill("#rules", "turnover = 0")
    page.click("text=Check the rules")
    page.wait_for_selector("text=An equality is written with ==")
    page.fill("#rules", "turnover >= 0")
    page.click("text=Draft the plan")
    page.wait_for_url("**/plans/*")
    watched.edit('risk = "quick"', 'risk = "none"')
    page.click("button:text-is('Check')")
    page.wait_for_selector("text=No mistakes.")
    page.click("button:text-is('Protect')")
    page.wait_for_selector("h1:has-text('is released')", timeout=PATIENCE)
    assert (folder / "firms-release.csv").exists()
    watched.end()


def test_who_has_not_the_key_sees_nothing(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.goto(address.partition("/enter")[0])
    assert "for whoever started the app" in page.inner_text("body")
    context.close()
