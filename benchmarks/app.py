"""Whether the app stays alive while it works: pages, progress, cancelling, a killed worker.

    python -m benchmarks.app                     200,000 records in 12 columns
    python -m benchmarks.app --records 20000     fewer

The real server runs on a folder with a made-up table. While a plan is run, pages are asked for
again and again. What is measured is what a person meets: the slowest answer, the longest time in
which progress stands still, and how long it takes until Cancelled is shown. Linux only.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pandas as pd

PAGES_MS, STILL_S, CANCEL_S = 200, 3.0, 2.0
WATCHED = 150.0  # seconds for which a run is watched
PAGES = ("", "/data", "/rules", "/toml", "/history")  # of the plan


def made_up(records: int, seed: int = 0) -> pd.DataFrame:
    """Twelve columns: four of codes, eight of skewed amounts that go together."""
    draw = np.random.default_rng(seed)
    size = draw.lognormal(3, 1, records)
    codes = {
        f"code{i}": draw.integers(0, n, records).astype(str) for i, n in enumerate((4, 6, 9, 2))
    }
    amounts = {f"amount{i}": np.round(size * draw.lognormal(0, 0.6, records)) for i in range(8)}
    codes = {name: np.char.add("c", values) for name, values in codes.items()}
    return pd.DataFrame(codes | amounts)


class Visitor:
    """Somebody with the key: asks for pages, and notes how long each took."""

    def __init__(self, address: str) -> None:
        origin = address.partition("/enter")[0]
        self.client = httpx.Client(base_url=origin, timeout=120)
        page = self.client.get(address[len(origin) :])
        found = re.search(r"url=([^\"]*)/\"", page.text)
        assert found, page.text
        self.at = found[1]
        self.slowest: dict[str, float] = defaultdict(float)
        self.waited: dict[str, int] = defaultdict(int)  # answers that only said to wait

    def get(self, path: str, *, name: str = "", **options: object) -> httpx.Response:
        began = time.perf_counter()
        answer = self.client.get(f"{self.at}{path}", **options)  # type: ignore[arg-type]
        took = time.perf_counter() - began
        assert answer.status_code < 400, answer.text
        if name:
            self.waited[name] += "The page comes by itself" in answer.text
            self.slowest[name] = max(self.slowest[name], took)
        return answer

    def post(self, path: str, **values: str) -> httpx.Response:
        token = self.field(self.get("/verify").text, "token")
        return self.client.post(f"{self.at}{path}", data={"token": token, **values})

    def patient(self, path: str, until: str) -> str:
        """Ask for a page until it is there; pages that wait for the table come by themselves."""
        while until not in (text := self.get(path).text):
            time.sleep(0.3)
        return text

    def draft(self, file: str) -> str:
        self.patient(f"/files/{file}", "Use this table")
        answer = self.post(f"/files/{file}/start")
        plan = answer.headers["location"].split("/plans/")[1].partition("/")[0]
        self.patient(f"/plans/{plan}/data", "What is each column?")
        return plan

    def start(self, plan: str) -> str:
        return self.post(f"/plans/{plan}/run").headers["location"].removeprefix(self.at)

    @staticmethod
    def field(text: str, name: str) -> str:
        found = re.search(rf'name="{name}"[^>]* value="([^"]*)"', text)
        assert found, name
        return found[1]


@contextmanager
def served(folder: Path) -> Iterator[tuple[Visitor, int]]:
    """Start the app on a folder; give a visitor and the number of its process."""
    command = [sys.executable, "-m", "tessella", "app", str(folder), "--no-browser", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        visitor = Visitor(server.stdout.readline().strip())
        try:
            yield visitor, server.pid
        finally:
            visitor.client.close()
            server.terminate()
            server.wait(30)


def words(text: str) -> str:
    """The text of a piece of a page, without the clock."""
    shown = re.sub(r"<[^>]*>", " ", text)
    return re.sub(r"\d+(\.\d)? (s|min)\b( \d+ s)?", "", shown)


def watch(visitor: Visitor, plan: str) -> tuple[float, str]:
    """Ask for pages while a plan is run; return the longest time in one place, and which.

    The clock that progress shows is left out: the server writes it, whatever the work does.
    """
    work = visitor.start(plan)
    began = changed = time.perf_counter()
    last, longest, where = "", 0.0, ""
    while time.perf_counter() - began < WATCHED:
        progress = visitor.get(f"{work}/progress", name="progress")
        now = time.perf_counter()
        if now - changed > longest:
            longest, where = now - changed, last
        if "HX-Redirect" in progress.headers:
            break
        if words(progress.text) != last:
            last, changed = words(progress.text), now
        for page in PAGES:
            visitor.get(f"/plans/{plan}{page}", name=f"plan{page}")
        visitor.get("/", name="files")
        visitor.get(work, name="work page")
        time.sleep(0.1)
    print(f"watched for {time.perf_counter() - began:.0f} s, up to: {' '.join(last.split())}")
    return longest, " ".join(where.split())


def cancelled_after(visitor: Visitor, work: str) -> float:
    """Cancel; return the seconds until the page says so."""
    began = time.perf_counter()
    visitor.post(f"{work}/cancel")
    while "<h1>Cancelled</h1>" not in visitor.get(work).text:
        time.sleep(0.02)
    return time.perf_counter() - began


def killed_told(visitor: Visitor, server: int, plan: str) -> float:
    """Kill the process that works; return the seconds until the page says so."""
    work = visitor.start(plan)
    time.sleep(3)
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = (place / "stat").read_text().rpartition(")")[2].split()[1]
            command = (place / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == str(server) and b"tessella.app.jobs" in command:
            os.kill(int(place.name), signal.SIGKILL)
    began = time.perf_counter()
    while "<h1>Ended unexpectedly</h1>" not in visitor.get(work).text:
        if time.perf_counter() - began > 30:
            return float("inf")
        time.sleep(0.02)
    return time.perf_counter() - began


def estimates(folder: Path) -> list[float]:
    """Seconds of estimates for nine k of a table with 2,000 records; the first was made before."""
    made_up(2_000, seed=1).to_csv(folder / "small.csv", index=False)
    with served(folder) as (visitor, _):
        plan = visitor.draft("small.csv")
        was = visitor.field(visitor.get(f"/plans/{plan}").text, "was")
        visitor.post(f"/plans/{plan}/estimate", k="5", was=was)
        token = visitor.field(visitor.get("/verify").text, "token")
        found = []
        for k in range(3, 12):
            began = time.perf_counter()
            data = {"token": token, "was": was, "k": str(k)}
            text = visitor.client.post(f"{visitor.at}/plans/{plan}/estimate", data=data).text
            found.append(time.perf_counter() - began)
            assert "Information loss" in text, text
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    records = parser.parse_args().records
    rows: list[tuple[str, str, str, bool]] = []
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        made_up(records).to_csv(folder / "large.csv", index=False)
        with served(folder) as (visitor, server):
            plan = visitor.draft("large.csv")
            for page in PAGES:
                visitor.get(f"/plans/{plan}{page}")
            still, where = watch(visitor, plan)
            for name, took in sorted(visitor.slowest.items(), key=lambda one: -one[1]):
                good = 1000 * took <= PAGES_MS
                rows.append((f"slowest: {name}", f"{1000 * took:.0f} ms", f"{PAGES_MS} ms", good))
            waited = sum(visitor.waited.values())
            rows.append(("answers that only said to wait", str(waited), "", True))
            rows.append(("progress stood still", f"{still:.1f} s", f"{STILL_S:g} s",
                         still <= STILL_S))  # fmt: skip
            print(f"longest in: {where}")
            running = re.search(r'class="live" href="([^"]*)"', visitor.get("/").text)
            work = running[1].removeprefix(visitor.at) if running else visitor.start(plan)
            took = cancelled_after(visitor, work)
            rows.append(("cancelled after", f"{took:.2f} s", f"{CANCEL_S:g} s", took <= CANCEL_S))
            left = [one.name for one in folder.iterdir() if "release" in one.name]
            rows.append(("left by what was cancelled", str(len(left)), "0", not left))
        with served(folder) as (visitor, server):
            visitor.patient(f"/plans/{plan}/data", "What is each column?")
            took = killed_told(visitor, server, plan)
            rows.append(("a killed worker is told after", f"{took:.2f} s", "told", took < 30))
        took_all = estimates(folder)
        for name, value in (("best", min(took_all)), ("worst", max(took_all))):
            rows.append((f"estimate of 2,000 records, {name} of nine", f"{1000 * value:.0f} ms",
                         "", True))  # fmt: skip
    print(f"{records:,} records; load {', '.join(f'{x:.1f}' for x in os.getloadavg())} on "
          f"{os.cpu_count()} cores")  # fmt: skip
    for what, value, bar, good in rows:
        print(f"{what:45} {value:>10} {bar:>10}  {'' if good else 'MISSED'}")


if __name__ == "__main__":
    main()
