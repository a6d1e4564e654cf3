"""A real server, a watched page, and two hands: one with a mouse, one with a keyboard alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

NARROW, WIDE = {"width": 400, "height": 800}, {"width": 1400, "height": 900}
PATIENCE = 240_000  # milliseconds in which a release is made, kernels compiled
MOST_TABS = 400  # presses of the tab key after which an element counts as out of reach


class Server:
    """The app in a process of its own, on a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "tessella", "app", str(folder), "--no-browser", "--quiet"]
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    @property
    def port(self) -> str:
        return self.address.split("/")[2].rpartition(":")[2]

    def workers(self) -> list[int]:
        """The processes that work, or wait for work; Linux only."""
        own = str(self.process.pid)
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                parent = (place / "stat").read_text().rpartition(")")[2].split()[1]
                command = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if parent == own and b"tessella.app.jobs" in command:
                found.append(int(place.name))
        return found

    def kill_workers(self) -> None:
        for worker in self.workers():
            os.kill(worker, signal.SIGKILL)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Watched:
    """A page whose requests, errors and dialogs are kept."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": WIDE, **options})
        self.context.set_default_timeout(60_000)
        self.origin = address.partition("/enter")[0]
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.may_lose_the_server = False
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page = self.tab()
        self.page.goto(address)
        self.page.wait_for_selector("h1")
        self.home = self.page.url.rstrip("/")

    def tab(self) -> Any:
        """Open another tab; it is watched, too."""
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: (self.wrong.append("dialog"), dialog.dismiss()))
        page.on("console", self._hear)
        return page

    def _hear(self, message: Any) -> None:
        # Told on the page: a refusal. By design: a later question takes the place of one that is
        # under way, which htmx notes as an abort and the end of a request.
        fine = ["the server responded with a status of 400", "htmx:sendAbort", "htmx:afterRequest"]
        if self.may_lose_the_server:
            fine += ["ERR_CONNECTION_REFUSED", "htmx:sendError"]
        if message.type == "error" and not any(text in message.text for text in fine):
            self.wrong.append(message.text)

    def plan(self, name: str, page: str = "") -> str:
        """The address of a page of a plan."""
        return f"{self.home}/plans/{name}{page}"

    def draft(self, file: str = "firms.csv") -> str:
        """Start a plan for a file; return the plan's name."""
        self.page.goto(f"{self.home}/files/{file}")
        self.page.click("button.go")
        self.page.wait_for_selector("h1:text-is('What is each column?')")
        return self.page.url.split("/plans/")[1].partition("/")[0]

    def end(self) -> None:
        """Close; nothing went wrong, and nothing was asked of anybody else."""
        self.context.close()
        assert self.wrong == [], self.wrong
        assert self.asked
        strangers = [url for url in self.asked if not url.startswith((f"{self.origin}/", "data:"))]
        assert strangers == []


class Mouse:
    """Clicks, chooses and types."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self, selector: str) -> None:
        self.page.locator(selector).first.click()

    def choose(self, selector: str, value: str) -> None:
        self.page.select_option(selector, value)

    def write(self, selector: str, text: str) -> None:
        self.page.fill(selector, text)

    def slide(self, selector: str, key: str) -> None:
        self.page.focus(selector)
        self.page.keyboard.press(key)


class Keyboard:
    """Tab, Shift+Tab, Enter, Space, arrows and letters; never a mouse."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def reach(self, selector: str) -> None:
        """Tab until an element has the focus, the shorter way round."""
        place = self.page.locator(selector).first
        place.wait_for()
        for _ in range(MOST_TABS):
            where = place.evaluate(
                """e => e === document.activeElement ? "here" :
                document.activeElement !== document.body &&
                document.activeElement.compareDocumentPosition(e) & 2 ? "before" : "after" """
            )
            if where == "here":
                return
            self.page.keyboard.press("Shift+Tab" if where == "before" else "Tab")
        raise AssertionError(f"{selector} cannot be reached by the tab key")

    def press(self, selector: str) -> None:
        self.reach(selector)
        self.page.keyboard.press("Enter")

    def choose(self, selector: str, value: str) -> None:
        self.reach(selector)
        self.page.keyboard.type(value)  # a list goes to what begins with the letters
        assert self.page.input_value(selector) == value

    def write(self, selector: str, text: str) -> None:
        self.reach(selector)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def slide(self, selector: str, key: str) -> None:
        self.reach(selector)
        self.page.keyboard.press(key)


def look(page: Any) -> None:
    """Nothing sticks out of a narrow page or a wide one; each field has a name; one heading."""
    page.wait_for_load_state()
    for size in (NARROW, WIDE):
        page.set_viewport_size(size)
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth", timeout=5_000)
        assert page.evaluate("innerWidth") == size["width"]
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea")]
        .filter(e => !e.labels.length && !e.ariaLabel).map(e => e.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("h1").count() == 1


def free_point(page: Any) -> str:
    """Return a selector of a point of the map that no other point covers."""
    key = page.evaluate(
        """() => [...document.querySelectorAll("#map a.draw-point:not(.draw-present)")].find(a => {
            a.scrollIntoView({ block: "center" });
            const box = a.querySelector(".draw-hit").getBoundingClientRect();
            return a.contains(document.elementFromPoint(
                box.x + box.width / 2, box.y + box.height / 2));
        })?.dataset.key"""
    )
    assert key, "every point of the map is covered by another"
    return f"#map a[data-key={json.dumps(key)}]"
