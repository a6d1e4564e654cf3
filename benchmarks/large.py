"""Large tables: Search against n, its memory, and its loss against exact MDAV's.

Normal tables with 10 columns, k = 5. Each size runs in a process of its own, so that the peak of
memory is its own; kernels are compiled before the clock starts.
"""

from __future__ import annotations

import json
import subprocess
import sys

SIZES = (1_000, 10_000, 100_000, 1_000_000)
MDAV_SIZE = 100_000

SCRIPT = """
import json, resource, sys, time
import numpy as np
from tessella.grouping import MDAV, Search

method, n, effort = sys.argv[1], int(sys.argv[2]), sys.argv[3]
X = np.random.default_rng(0).standard_normal((n, 10))
make = lambda: MDAV(5) if method == "MDAV" else Search(5, effort=effort, random_state=0)
before = Search(5, effort="quick", random_state=0, time_limit=0.1)
for size in (200, 7_000):
    (MDAV(5) if method == "MDAV" else before).fit(X[:size])
began = time.perf_counter()
found = make().fit(X)
seconds = time.perf_counter() - began
print(json.dumps({
    "method": method, "effort": effort, "n": n, "seconds": seconds,
    "loss": 100 * found.inertia_ / float(((X - X.mean(axis=0)) ** 2).sum()),
    "smallest": int(np.bincount(found.labels_).min()),
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


def measure(sizes: tuple[int, ...] = SIZES, effort: str = "standard") -> list[dict[str, object]]:
    """Run Search at each size, and MDAV at the largest size where it is affordable."""
    jobs = [("Search", n, effort) for n in sizes] + [("MDAV", MDAV_SIZE, "-")]
    rows = []
    for job in jobs:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *map(str, job)],
            check=True,
            capture_output=True,
            text=True,
        )
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    return rows


def main() -> None:
    for row in measure():
        print(
            f"{row['method']:>7} {row['effort']:>9} n={row['n']:>9,} IL {row['loss']:7.3f} "
            f"{row['seconds']:7.1f} s {row['peak_mb']:7.0f} MB smallest group {row['smallest']}"
        )


if __name__ == "__main__":
    main()
