"""A folder with tables and rules, and a client that may come in."""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from tessella.app import make_app
from tessella.app.desk import Desk
from tessella.app.jobs import Job
from tessella.datasets import make_business_survey

ADDRESS = "http://127.0.0.1:8000"


class Client:
    """Sends requests to an app in this process, one after the other, and keeps cookies."""

    def __init__(self, app: Any) -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url=ADDRESS)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return asyncio.run(self._client.get(path, **options))

    def post(self, path: str, **options: Any) -> httpx.Response:
        return asyncio.run(self._client.post(path, **options))


@cache
def shared_desk() -> Desk:
    """One process for the tables of all tests: its answers depend on what it is asked alone."""
    desk = Desk()
    atexit.register(desk.stop)
    return desk


class Visitor:
    """A browser without scripts: it keeps the cookie, and sends back what a page's form says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.app = make_app(folder, port=8000)
        self.app.site.patience = None  # pages of a test wait for their answers
        self.client = Client(self.app)
        self.client.get("/enter", params={"token": self.app.keys.printed})

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(self.at(path), **options)

    def post(
        self, path: str, /, *, headers: dict[str, str] | None = None, **values: str
    ) -> httpx.Response:
        data = {"token": self.app.keys.form, **values}
        return self.client.post(self.at(path), data=data, headers=headers)

    def at(self, path: str) -> str:
        """The address of a page: below the path of this run."""
        outside = path.startswith((self.app.keys.at, "/enter"))
        return path if outside else self.app.keys.at + path

    def fill(self, text: str, /, **changes: str) -> dict[str, str]:
        """What the form of a page would send: its fields, and some changed."""
        values = dict(
            re.findall(r'<input type="hidden" name="(\S+)"(?: id="\S+")? value="(\S*)"', text)
        )
        for name, options in re.findall(r'<select name="(\S+)".*?>(.*?)</select>', text, re.S):
            chosen = re.search(r"<option(?: value=\"([^\"]*)\")? selected>(.*?)</option>", options)
            said = [one for one in chosen.groups() if one is not None] if chosen else [""]
            values[name] = said[0]
        values |= dict(re.findall(r'<input name="(\S+)"[^>]*? value="([^"]*)"', text))
        values.pop("token", None)
        return values | changes

    def start(self, file: str = "firms.csv", *, k: str = "3", risk: str = "none") -> str:
        """Start a plan for a file; return the path of its pages."""
        answer = self.post(f"/files/{file}/start", k=k)
        assert answer.status_code == 303, answer.text
        name = answer.headers["location"].split("/")[-2]
        path = self.folder / name
        text = path.read_text().replace('risk = "quick"', f'risk = "{risk}"')
        path.write_text(re.sub(r"(?m)^seed = .*$", "seed = 1", text))
        return f"/plans/{name}"

    def text(self, plan: str) -> str:
        """The text of a plan, as it is in the folder."""
        return (self.folder / plan.rpartition("/")[2]).read_text()

    def change(self, page: str, **values: str) -> httpx.Response:
        """Send the form of a page with some fields changed, as a script does."""
        form = self.fill(self.get(page).text) | values
        return self.post(page, headers={"HX-Request": "true"}, **form)

    def run(self, plan: str) -> httpx.Response:
        """Run a plan to its end; return the page of its result."""
        answer = self.post(f"{plan}/run")
        assert answer.status_code == 303, answer.text
        return self.wait(answer.headers["location"])

    def wait(self, address: str) -> httpx.Response:
        """Wait until work has ended, however long; return its page."""
        job = self.app.jobs.get(address.rpartition("/")[2])
        assert job is not None
        job._listener.join()
        answer = self.get(self.get(f"{address}/progress").headers["HX-Redirect"])
        return self.get(answer.headers["location"]) if answer.status_code == 303 else answer


@pytest.fixture(autouse=True)
def _one_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    """All apps of these tests share the process that reads tables."""
    monkeypatch.setattr("tessella.app.site.Desk", shared_desk)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a survey of 40 firms and rules; a secret lies above it."""
    home = tmp_path / "data"
    home.mkdir()
    firms = make_business_survey(40, random_state=0)
    firms[["region", "employees", "turnover", "costs"]].to_csv(home / "firms.csv", index=False)
    (home / "rules.txt").write_text("turnover >= 0\ncosts >= 0\n")
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "secret.html").write_text("<p>secret</p>")
    return home


# Runs first in every process that is started: at the n-th event of a name in Python's own audit,
# counted from the first look at the file of the data, it does what the test wants.
HOOK = """
import os, signal, sys, time
from pathlib import Path

home, event, count = Path({home!r}), {event!r}, {count}
left = [count]
began = []

def note(name, args):
    if name == "open" and str(args[0]).endswith("firms.csv"):
        began.append(True)
    if began and name == event and left[0] >= 0:
        left[0] -= 1
        if left[0] == 0:
            (home / "reached").touch()
            act()

def act():
{action}

if sys.orig_argv[-1] == "tessella.app.jobs":
    sys.addaudithook(note)
    {first}
"""


@pytest.fixture
def worker_does(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Path]:
    """Let the process that works do something at a certain point of its work, or at once.

    Gives the file that is there when the point is reached.
    """

    def prepare(action: str, *, event: str = "open", count: int = 1, first: str = "pass") -> Path:
        home = tmp_path_factory.mktemp("hook")
        text = HOOK.format(
            home=str(home), event=event, count=count, first=first,
            action="\n".join(f"    {line}" for line in action.splitlines()),
        )  # fmt: skip
        (home / "sitecustomize.py").write_text(text)
        others = os.environ.get("PYTHONPATH", "")
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(home), *others.split(os.pathsep)]))
        return home / "reached"

    return prepare


def until_reached(job: Job, mark: Path) -> bool:
    """Wait until the work is at the point of its hook; False if it ended before."""
    while job.state == "running" and not mark.exists():
        time.sleep(0.01)
    return mark.exists()


@pytest.fixture
def visitor(folder: Path) -> Iterator[Visitor]:
    """Somebody who has opened the address that was printed."""
    visitor = Visitor(folder)
    yield visitor
    visitor.app.jobs.stop()
