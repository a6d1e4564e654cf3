"""A whole day: from a file to a release that somebody else can make again; no TOML is touched."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tessella.datasets import data_folders, make_households

from .browsing import PATIENCE, Keyboard, Mouse, Server, Watched, free_point, look

pytestmark = pytest.mark.e2e

POINTS = "8"  # of the map


def made_up() -> pd.DataFrame:
    """Some persons of made-up households."""
    names = ["household", "region", "sex", "age", "earnings", "income", "tax", "net"]
    return make_households(160, random_state=0)[names]


def people() -> pd.DataFrame:
    """The first households of sdcMicro's test data."""
    found = [f / "people" / "testdata.csv" for f in data_folders()]
    path = next((path for path in found if path.exists()), None)
    if path is None:
        pytest.skip("people/testdata.csv is in no folder of TESSELLA_DATA")
    table = pd.read_csv(path)
    return table[table["ori_hid"].isin(table["ori_hid"].unique()[:60])]


def kept(page: Any, words: str) -> None:
    """A change was kept, and the page says so."""
    page.wait_for_selector(f".kept:has-text('{words}')")


def slide_k(hand: Any, key: str) -> tuple[str, str]:
    """Move the slider of k; the estimate follows. Returns the estimates before and after."""
    page = hand.page
    page.wait_for_selector("#estimate dd")
    before, k = page.inner_text("#estimate dl"), int(page.input_value("#f-k"))
    hand.slide("#f-k-slider", key)
    wanted = k + (1 if key == "ArrowRight" else -1)
    assert page.input_value("#f-k") == str(wanted)
    kept(page, f"k: {k} → {wanted}")
    page.wait_for_function(
        "e => document.querySelector('#estimate dl')?.innerText !== e", arg=before
    )
    return before, page.inner_text("#estimate dl")


def watch_the_map(page: Any) -> int:
    """See points come in while others are tried; return in how many steps they came.

    The page looks again by itself, less often than points come where the machine is fast; so the
    same page is asked for as well, without a pause, until this one shows that all is done.
    """
    counts = set()
    while page.locator("#map progress").count():
        counts.add(page.request.get(page.url).text().count("draw-hit"))
    page.wait_for_load_state()  # at the end the page loads itself again
    page.wait_for_selector("#map .draw-hit")
    counts.add(page.locator("#map .draw-hit").count())
    return len(counts - {0})


def run(hand: Any, selector: str = "main button.go:text-is('Run')") -> None:
    """Run the plan, and wait for the result without a reload by hand."""
    hand.press(selector)
    hand.page.wait_for_selector("h1:text-is('Result')", timeout=PATIENCE)


def a_day(hand: Any, folder: Path, *, unit: str, roles: dict[str, str]) -> str:
    """Go the whole way; return the command that makes the release again."""
    page = hand.page
    hand.press("a:text-is('table.csv')")
    hand.press("button:text-is('Use this table')")
    plan = folder / "table-plan.toml"

    page.wait_for_selector("h1:text-is('What is each column?')")
    for column, role in {unit: "identifier", **roles}.items():
        hand.choose(f"[aria-label='Role of {column}']", role)
        kept(page, f"{column} is {role}")
    hand.choose(f"[aria-label='Role of {unit}']", "unit")
    kept(page, f"{unit} is unit")
    hand.press("a:text-is('On to the rules')")

    page.wait_for_selector(".suggestions button", timeout=PATIENCE)
    rule = page.locator(".suggestions code").first.inner_text()
    hand.press(".suggestions button")
    page.wait_for_selector("#judged tbody tr")
    assert rule in page.input_value("#rules")
    hand.press("a:text-is('On to the plan')")

    page.wait_for_selector("text=the fewest units")
    slide_k(hand, "ArrowLeft")
    before = plan.read_text()
    assert "k = 4" in before

    hand.press("a:text-is('See the map')")
    hand.write("[name=budget]", POINTS)
    hand.write("[name=sizes]", "3, 4")
    hand.press("button:text-is('Explore')")
    page.wait_for_selector("#map progress")
    assert watch_the_map(page) > 1
    hand.press(free_point(page))
    point = page.wait_for_selector("#chosen table").inner_text()
    assert "This point" in point
    assert "Present plan" in point
    hand.press("button:text-is('Make it the plan')")
    page.wait_for_selector("h1:text-is('What will be done?')")
    assert plan.read_text() != before
    hand.press("#undo button[value=undo]")
    page.wait_for_selector("#undo button[value=redo]:not([disabled])")
    assert plan.read_text() == before

    run(hand)
    page.wait_for_selector(".grid figure svg")
    hand.choose("[name=x]", page.locator("[name=x] option").nth(2).inner_text())
    page.wait_for_selector("#pair svg")
    assert "by guessing" in page.inner_text("[aria-label=Attacks]")
    hand.press("summary:has-text('The riskiest records')")
    page.wait_for_selector("[aria-label='The riskiest records'] tbody tr")
    assert not list(folder.glob("*release*"))

    hand.press("a:text-is('Change the plan')")
    slide_k(hand, "ArrowRight")
    run(hand)
    hand.press("a:text-is('Compare with another result')")
    page.wait_for_selector("h1:text-is('Two results, side by side')")
    assert page.locator(".diff span").all_inner_texts() == ["-k = 4", "+k = 5"]
    assert page.locator("h2:text-is('Loss of each column') + figure svg").count() == 1

    hand.press(".way a:has-text('Publish')")
    hand.press("button:text-is('Publish')")
    page.wait_for_selector("h1:has-text('Published')")
    return str(page.inner_text("#command"))


def make_again(command: str, folder: Path, copy: Path) -> None:
    """Run the command that was copied in another copy of the folder: the same bytes."""
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".tessella", "*-release*.csv"))
    assert not (copy / "table-release.csv").exists()
    program, *options = shlex.split(command)
    assert program == "tessella"
    subprocess.run([sys.executable, "-m", "tessella", *options], cwd=copy, check=True)
    for name in ("table-release.csv", "table-release-report.html"):
        if (folder / name).exists():
            assert (copy / name).read_bytes() == (folder / name).read_bytes()
    assert (copy / "table-release.csv").exists()


TABLES = {
    "made up": (made_up, "household", {"region": "untouched", "sex": "confidential"}),
    "people": (people, "ori_hid", {"roof": "untouched", "walls": "confidential"}),
}


@pytest.mark.parametrize("hand", [Mouse, Keyboard])
@pytest.mark.parametrize("table", TABLES)
def test_a_whole_day(hand: Callable[..., Any], table: str, browser: Any, tmp_path: Path) -> None:
    make, unit, roles = TABLES[table]
    folder = tmp_path / "survey"
    folder.mkdir()
    make().to_csv(folder / "table.csv", index=False)
    server = Server(folder)
    try:
        watched = Watched(browser, server.address)
        command = a_day(hand(watched.page), folder, unit=unit, roles=roles)
        if hand is Mouse:
            look(watched.page)
        watched.end()
    finally:
        server.stop()
    make_again(command, folder, tmp_path / "copy")
