"""Start-up: importing, the first result of a small table, and the first minute of a newcomer.

The caches of the demo are empty at first, which is what a newcomer meets after the installation.
The same is measured without the machine code that was compiled ahead: then numba compiles.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tessella.datasets import make_business_survey

FIRST_RESULT = """
import numpy as np
from tessella.grouping import {method}
X = np.random.default_rng(0).standard_normal((100, 4))
{method}(3{options}).fit(X)
"""

CASES = {
    "import tessella": "import tessella",
    "first result, MDAV, 100 rows": FIRST_RESULT.format(method="MDAV", options=""),
    "first result, Search(effort='quick'), 100 rows": FIRST_RESULT.format(
        method="Search", options=", effort='quick', random_state=0"
    ),
    "tessella --help": "import sys; sys.argv[1:] = ['--help']; import tessella.cli as c; c.main()",
    "python alone": "pass",
}


# The order counts: the first two fill nothing, the third fills the cache for the fourth.
WAYS = {
    "empty cache": True,
    "again": True,
    "compiled by numba, empty cache": False,
    "compiled by numba, again": False,
}


def seconds_of(code: str) -> float:
    """Run code in a fresh interpreter four times, the first to fill the cache; best of the rest."""
    times = []
    for _ in range(4):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times[1:])


def run_command(
    *arguments: str, cache: Path, ahead: bool = True, until: str | None = None
) -> tuple[float, float]:
    """Run a command; return the seconds until a text is printed, and until it ends."""
    began = time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONUNBUFFERED": "1"}
    environment["TESSELLA_AHEAD"] = "1" if ahead else "0"
    process = subprocess.Popen(
        [sys.executable, "-m", "tessella", *arguments], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    shown = float("nan")
    assert process.stdout is not None
    for line in process.stdout:
        if until is not None and until in line and shown != shown:
            shown = time.perf_counter() - began
    assert process.wait() == 0
    return shown, time.perf_counter() - began


def first_minute() -> list[dict[str, object]]:
    """Measure the demo with an empty cache and again, and a later command on 1,000 records."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for what, ahead in WAYS.items():
            shown, whole = run_command(
                "demo", "--overwrite", "--out", str(home / "demo"), cache=home / "cache",
                ahead=ahead, until="tessella demo:",
            )  # fmt: skip
            rows.append({"what": f"tessella demo, {what}: first screen", "seconds": shown})
            rows.append({"what": f"tessella demo, {what}: whole", "seconds": whole})
        firms, rules = make_business_survey(1000, random_state=1, return_rules=True)
        firms.to_csv(home / "firms.csv", index=False)
        (home / "rules.txt").write_text("\n".join(rules))
        given = ["protect", str(home / "firms.csv"), "-k", "5", "--rules", str(home / "rules.txt"),
                 "--effort", "quick", "--overwrite"]  # fmt: skip
        times = [run_command(*given, cache=home / "cache")[1] for _ in range(4)]
        rows.append({"what": "tessella protect, 1,000 records, later", "seconds": min(times[1:])})
    return rows


def measure() -> list[dict[str, object]]:
    fresh = [{"what": what, "seconds": seconds_of(code)} for what, code in CASES.items()]
    return [*fresh, *first_minute()]


def main() -> None:
    for row in measure():
        print(f"{row['what']:<50} {row['seconds']:6.2f} s")


if __name__ == "__main__":
    main()
