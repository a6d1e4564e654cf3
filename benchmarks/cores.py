"""How a search gains by cores: the same table on one core and on two, and the part that is serial.

    python -m benchmarks.cores [records]

Each number of cores runs in a process of its own, after compilation, in turns; the best of three
counts. The serial part is measured on one core: the time outside of work that `parallel.each` gives
to cores. By Amdahl's law p cores then take s + (1 - s) / p of the time of one; the fit is the s
that the measured ratio of two cores to one stands for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

SCRIPT = """
import json, sys, time
import numpy as np
import tessella.parallel as parallel
import tessella.grouping.cells as cells, tessella.grouping.refining as refining
import tessella.grouping.search as search
inside, depth = [0.0], [0]
def timed(function, pieces, *, plain=parallel.each, **options):
    began = time.perf_counter()
    depth[0] += 1
    try:
        return plain(function, pieces, **options)
    finally:
        depth[0] -= 1
        if not depth[0]:  # what a piece gives to cores again is counted once
            inside[0] += time.perf_counter() - began
cells.each = refining.each = search.each = timed
X = np.random.default_rng(0).normal(size=(int(sys.argv[1]), 10))
search.Search(5, effort="quick", random_state=0).fit(X[:70_000])
inside[0] = 0.0
began, used = time.perf_counter(), time.process_time()
found = search.Search(5, effort="quick", random_state=0).fit(X)
seconds = time.perf_counter() - began
print(json.dumps({
    "seconds": seconds, "processor": time.process_time() - used, "serial": seconds - inside[0],
    "loss": 100 * found.inertia_ / float(((X - X.mean(axis=0)) ** 2).sum()),
}))
"""


def run(cores: int, n: int) -> dict[str, float]:
    """Search a table of n records on some cores, in a process of its own."""
    env = {**os.environ, "TESSELLA_CORES": str(cores)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(n)], env=env, check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    times: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(3):
        for cores, found in times.items():
            found.append(run(cores, n))
    one, two = (min(found, key=lambda own: own["seconds"]) for found in times.values())
    ratio = one["seconds"] / two["seconds"]
    print(f"records {n:,}, loss {one['loss']:.4f} and {two['loss']:.4f} %")
    print(f"one core {one['seconds']:.1f} s, two cores {two['seconds']:.1f} s: {ratio:.2f} times")
    serial = one["serial"] / one["seconds"]
    print(f"serial part, measured on one core: {100 * serial:.2f} %")
    print(f"serial part by Amdahl's law from the ratio: {100 * (2 / ratio - 1):.2f} %")
    print(f"eight cores, projected from the measured part: {1 / (serial + (1 - serial) / 8):.1f}")


if __name__ == "__main__":
    main()
