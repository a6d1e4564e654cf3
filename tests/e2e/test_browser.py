"""The app in a real browser: what can go wrong, what is kept, and nothing leaves the machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from .browsing import PATIENCE, Server, Watched, look

pytestmark = pytest.mark.e2e

HOSTILE = "<script>document.title='taken'</script>"
QUOTES = "\"'><img src=x onerror=alert(1)>"


def set_k(page: Any, k: int) -> None:
    page.fill("#f-k", str(k))
    page.press("#f-k", "Tab")
    page.wait_for_selector(f".kept:has-text('→ {k}')")


def run(page: Any) -> None:
    page.click("main button.go:text-is('Run')")
    page.wait_for_selector(".progress, h1:text-is('Result')")


# What is kept.


def test_changes_are_undone_after_a_reload_and_after_a_restart(browser, folder):
    server = Server(folder)
    watched = Watched(browser, server.address)
    page, plan = watched.page, watched.draft()
    page.goto(watched.plan(plan))
    for k in (6, 7, 8):
        set_k(page, k)
    page.click("#undo button[value=undo]")
    page.wait_for_selector("#f-k[value='7']")
    page.reload()
    assert page.input_value("#f-k") == "7"
    page.click("#undo button[value=redo]")
    page.wait_for_selector("#f-k[value='8']")
    watched.end()
    server.stop()
    assert "k = 8" in (folder / plan).read_text()

    server = Server(folder)
    watched = Watched(browser, server.address)
    page = watched.page
    page.goto(watched.plan(plan, "/history"))
    changes = page.locator(".versions li span:first-child").all_inner_texts()
    assert changes == ["k: 7 → 8", "k: 6 → 7", "k: 5 → 6", "the plan as it was"]
    page.goto(watched.plan(plan))
    page.click("#undo button[value=undo]")
    page.wait_for_selector("#f-k[value='7']")
    page.click("h1")
    page.keyboard.press("Control+z")
    page.wait_for_selector("#f-k[value='6']")
    page.goto(watched.plan(plan, "/history"))
    page.click("button[aria-label='Make this the plan: the plan as it was']")
    page.wait_for_selector("li[aria-current]:has-text('the plan as it was')")
    assert "k = 5" in (folder / plan).read_text()
    watched.end()
    server.stop()


def test_half_typed_rules_survive_a_reload_and_the_way_back(watched, folder):
    page, plan = watched.page, watched.draft()
    page.goto(watched.plan(plan, "/rules"))
    typed = "turnover >= 0\nprofit = turn"
    page.fill("#rules", typed)
    page.wait_for_selector("#judged a[data-line='2']")
    page.click("#judged a[data-line='2']")
    chosen = page.evaluate(
        "(a => a.value.slice(a.selectionStart, a.selectionEnd))(document.activeElement)"
    )
    assert chosen == "profit = turn"
    page.reload()
    assert page.input_value("#rules") == typed
    page.click(".way a:has-text('Plan')")
    page.wait_for_selector("h1:text-is('What will be done?')")
    page.go_back()
    page.wait_for_selector("#rules")
    assert page.input_value("#rules") == typed
    assert "turn" not in (folder / plan).read_text().partition("[rules]")[2].partition("[")[0]
    page.fill("#rules", "turnover >= 0\nprofit == turnover - costs")
    page.wait_for_selector("#judged tbody tr >> nth=1")
    assert "profit == turnover - costs" in (folder / plan).read_text()


def test_two_tabs_change_different_fields_and_both_survive(watched, folder):
    page, plan = watched.page, watched.draft()
    other = watched.tab()
    page.goto(watched.plan(plan))
    other.goto(watched.plan(plan))
    set_k(page, 7)
    other.locator("summary:has-text('Dominance')").click()
    other.select_option("[name=on_dominance]", "enlarge")
    other.wait_for_selector(".kept")
    text = (folder / plan).read_text()
    assert "k = 7" in text
    assert 'on_dominance = "enlarge"' in text


def test_a_stale_text_is_told_and_changes_nothing(watched, folder):
    page, plan = watched.page, watched.draft()
    other = watched.tab()
    page.goto(watched.plan(plan, "/toml"))
    other.goto(watched.plan(plan))
    set_k(other, 7)
    before = (folder / plan).read_text()
    page.fill("#plan", page.input_value("#plan").replace("k = 5", "k = 9"))
    page.wait_for_selector("#judged :text('was changed elsewhere')")
    assert (folder / plan).read_text() == before


def test_the_text_shows_a_mistake_at_its_line(watched):
    page, plan = watched.page, watched.draft()
    page.goto(watched.plan(plan, "/toml"))
    good = page.input_value("#plan")
    assert 'risk = "quick"' in good
    page.fill("#plan", good.replace('risk = "quick"', 'risk = "quik"'))
    mistake = page.wait_for_selector("#judged a[data-line]")
    line = int(mistake.get_attribute("data-line"))
    mistake.click()
    chosen = page.evaluate(
        "(a => a.value.slice(a.selectionStart, a.selectionEnd))(document.activeElement)"
    )
    assert chosen == 'risk = "quik"'
    assert page.input_value("#plan").split("\n")[line - 1] == chosen
    page.fill("#plan", good)
    page.wait_for_selector("text=No mistakes.")


# What goes wrong.


def test_a_refusal_says_why_and_leads_back(watched, folder):
    page, plan = watched.page, watched.draft()
    page.goto(watched.plan(plan))
    set_k(page, 300)
    page.click("main button.go:text-is('Run')")
    page.wait_for_selector("text=k = 300 needs at least 300 records", timeout=PATIENCE)
    look(page)
    assert not list(folder.glob("*release*"))
    page.click("text=Back to the plan")
    page.wait_for_selector("#f-k")
    assert page.input_value("#f-k") == "300"


def test_work_is_cancelled_and_nothing_is_left(watched, folder):
    page, plan = watched.page, watched.draft()
    before = {one.name for one in folder.iterdir()}
    page.goto(watched.plan(plan))
    run(page)
    page.click("button:text-is('Cancel')")
    page.wait_for_selector("h1:text-is('Cancelled')")
    assert {one.name for one in folder.iterdir()} - before <= {".tessella"}
    assert list((folder / ".tessella" / "runs").iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_killed_worker_is_told_on_the_page(watched, server, folder):
    page, plan = watched.page, watched.draft()
    page.goto(watched.plan(plan))
    run(page)
    server.kill_workers()
    page.wait_for_selector("h1:text-is('Ended unexpectedly')")
    assert "code -9" in page.inner_text("[role=alert]")
    look(page)
    assert not list(folder.glob("*release*"))
    assert list((folder / ".tessella" / "runs").iterdir()) == []


def test_a_lost_server_is_told_on_the_page(browser, folder):
    server = Server(folder)
    watched = Watched(browser, server.address)
    page, plan = watched.page, watched.draft()
    page.goto(watched.plan(plan))
    page.wait_for_selector("#estimate dd")
    watched.may_lose_the_server = True
    server.stop()
    page.fill("#f-k", "7")
    page.press("#f-k", "Tab")
    page.wait_for_selector("#status:has-text('The app does not answer')")
    watched.end()


def test_a_change_made_while_the_page_loads_is_kept(watched):
    """A bug once met: whoever chose before the scripts had come changed nothing, without a word."""
    page, plan = watched.page, watched.draft()
    waiting: list[Any] = []
    page.route("**/static/htmx.min.js", lambda route: waiting.append(route))
    with page.expect_request("**/static/htmx.min.js"):
        page.goto(watched.plan(plan, "/data"), wait_until="commit")
    page.select_option("[aria-label='Role of turnover']", "confidential")
    (held,) = waiting
    held.continue_()
    page.wait_for_selector(".kept:has-text('turnover is confidential')")


def test_hostile_names_are_text_on_every_page(watched, folder):
    name = "<img src=x onerror=alert(2)>.csv"
    table = pd.DataFrame({
        HOSTILE: range(30), QUOTES: [x * x for x in range(30)], "x": [x % 4 for x in range(30)],
    })  # fmt: skip
    table.to_csv(folder / name, index=False)
    page = watched.page

    def is_text() -> None:
        assert page.locator("img").count() == 0
        assert page.title() != "taken"

    page.reload()
    is_text()
    page.click(f"a:text-is('{name}')")
    page.wait_for_selector("button:text-is('Use this table')")
    assert page.locator("th", has_text=HOSTILE).count() == 2
    is_text()
    page.click("button.go")
    page.wait_for_selector("h1:text-is('What is each column?')")
    is_text()
    for at in range(3):
        with page.expect_response("**/data"):
            page.select_option(f"#role-{at}", "quasi-identifier")
    plan = page.url.split("/plans/")[1].partition("/")[0]
    page.goto(watched.plan(plan, "/rules"))
    page.fill("#rules", f"`{HOSTILE}` >>= 0")
    page.wait_for_selector("#judged .wrong")
    is_text()
    page.fill("#rules", f"`{HOSTILE}` >= 0")
    page.wait_for_selector("#judged tbody tr")
    page.wait_for_selector("#suggested .soft:not(:has(.spin))", timeout=PATIENCE)
    is_text()
    page.goto(watched.plan(plan))
    page.wait_for_selector("#estimate p")
    page.wait_for_selector("#explanation pre, #explanation .wrong")
    is_text()
    run(page)
    page.wait_for_selector("h1:text-is('Result')", timeout=PATIENCE)
    page.wait_for_selector(".grid figure svg")
    page.select_option("[name=x]", HOSTILE)
    page.select_option("[name=y]", QUOTES)
    page.wait_for_selector("#pair figcaption:has-text('onerror')")
    assert page.locator("th", has_text=HOSTILE).count() >= 1
    is_text()
    page.goto(watched.plan(plan, "/publish"))
    page.click("button:text-is('Publish')")
    page.wait_for_selector("h1:has-text('Published')")
    is_text()
    for report in ("External report", "Internal report"):
        page.click(f"a:text-is('{report}')")
        page.wait_for_selector("h1")
        is_text()
        page.go_back()
    for where in ("/toml", "/history", "/map", "/run", "/compare"):
        page.goto(watched.plan(plan, where))
        is_text()
    page.goto(f"{watched.home}/verify")
    is_text()
    page.goto(watched.home)
    is_text()


def test_the_way_without_scripts(browser, server, folder):
    watched = Watched(browser, server.address, java_script_enabled=False)
    page = watched.page
    page.click("a:text-is('firms.csv')")
    page.click("button:text-is('Use this table')")
    page.wait_for_selector("h1:text-is('What is each column?')")
    page.select_option("[aria-label='Role of region']", "untouched")
    page.click("button:text-is('Save')")
    page.wait_for_selector("#undo button:has-text('region is untouched')")
    page.click("a:text-is('On to the rules')")
    page.fill("#rules", "turnover = 0")
    page.click("button:text-is('Check and save')")
    page.wait_for_selector("text=An equality is written with ==")
    page.fill("#rules", "turnover >= 0")
    page.click("button:text-is('Check and save')")
    page.wait_for_selector("#judged tbody tr")
    page.click("a:text-is('Show what was found')")
    page.click(".suggestions button >> nth=0")
    page.wait_for_selector("#judged tbody tr >> nth=1")
    page.click("a:text-is('On to the plan')")
    page.fill("#f-k", "4")
    page.click("button:text-is('Save')")
    page.wait_for_selector("#f-k[value='4']")
    run(page)
    page.wait_for_selector("h1:text-is('Result')", timeout=PATIENCE)
    page.click("a:text-is('On to publishing')")
    page.click("button:text-is('Publish')")
    page.wait_for_selector("h1:has-text('Published')")
    assert (folder / "firms-release.csv").exists()
    watched.end()


@pytest.mark.parametrize("link", ["Explain", "Show each column"])
def test_what_scripts_load_is_a_page_without_them(browser, server, link):
    watched = Watched(browser, server.address, java_script_enabled=False)
    page = watched.page
    plan = watched.draft()
    page.goto(watched.plan(plan))
    if link != "Explain":
        run(page)
        page.wait_for_selector("h1:text-is('Result')", timeout=PATIENCE)
    page.click(f"a:text-is('{link}')")
    page.wait_for_selector("h1:not(:has-text('…'))", timeout=10_000)
    watched.end()


def test_a_file_is_brought_by_upload_and_by_its_path(watched, folder, tmp_path):
    for name in ("sent.csv", "named.csv"):
        (tmp_path / name).write_bytes((folder / "firms.csv").read_bytes())
    page = watched.page
    page.click("summary:has-text('Add another file')")
    page.set_input_files("[name=file]", tmp_path / "sent.csv")
    page.click("button:text-is('Upload')")
    page.wait_for_selector("h1:text-is('sent.csv')")
    page.goto(watched.home)
    page.click("summary:has-text('Add another file')")
    page.fill("[name=path]", str(tmp_path / "named.csv"))
    page.click("button:text-is('Copy')")
    page.wait_for_selector("h1:text-is('named.csv')")
    assert (folder / "sent.csv").read_bytes() == (folder / "named.csv").read_bytes()


def test_who_has_not_the_key_sees_nothing(browser: Any, server: Server) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.address.partition("/enter")[0])
    assert "for whoever started the app" in page.inner_text("body")
    context.close()


def test_a_release_is_downloaded_and_verified(watched: Watched, folder: Path, tmp_path: Path):
    page, plan = watched.page, watched.draft()
    page.goto(watched.plan(plan, "/rules"))
    page.select_option("[name=file]", "rules.txt")
    page.click("button:text-is('Load them')")
    page.wait_for_selector("#judged tbody tr")
    page.goto(watched.plan(plan))
    run(page)
    page.wait_for_selector("h1:text-is('Result')", timeout=PATIENCE)
    page.click("a:text-is('On to publishing')")
    page.click("button:text-is('Publish')")
    page.wait_for_selector("h1:has-text('Published')")
    with page.expect_download() as download:
        page.click("a:text-is('Release')")
    copy = tmp_path / "copy.csv"
    download.value.save_as(copy)
    assert copy.read_bytes() == (folder / "firms-release.csv").read_bytes()
    assert len(pd.read_csv(copy)) == 80
    page.click("a.button:text-is('Verify')")
    page.select_option("[name=original]", "firms.csv")
    page.click("button:text-is('Verify')")
    page.wait_for_selector("h1:has-text('verified')", timeout=PATIENCE)
    page.goto(watched.home)
    assert page.locator("h1").inner_text() == "Which table do you want to protect?"
