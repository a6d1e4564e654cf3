"""Start-up: importing, and the first result of a small table with kernels in the cache."""

from __future__ import annotations

import subprocess
import sys
import time

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


def seconds_of(code: str) -> float:
    """Run code in a fresh interpreter four times, the first to fill the cache; best of the rest."""
    times = []
    for _ in range(4):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times[1:])


def measure() -> list[dict[str, object]]:
    return [{"what": what, "seconds": seconds_of(code)} for what, code in CASES.items()]


def main() -> None:
    for row in measure():
        print(f"{row['what']:<50} {row['seconds']:6.2f} s")


if __name__ == "__main__":
    main()
