"""The tree with removable points against SciPy's cKDTree, where no point is removed.

    python -m benchmarks.trees

Both find the nearest others of every record, on one core, in one process, on the same tables.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree

os.environ["TESSELLA_CORES"] = "1"

from tessella.grouping.column_generation import nearest_others


def seconds(function: Callable[[], object]) -> float:
    """Return the least processor time of three calls, after one that may compile."""
    function()
    times = []
    for _ in range(3):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    """Print one line for each table and number of neighbours."""
    random = np.random.default_rng(0)
    print("records columns neighbours  tree  cKDTree  (seconds)")
    for n, d in ((1_000, 13), (20_000, 10), (100_000, 4)):
        X = random.normal(size=(n, d)) @ random.normal(size=(d, d))
        for count in (2, 9):
            ours = seconds(lambda X=X, count=count: nearest_others(X, count))
            scipys = seconds(lambda X=X, count=count: cKDTree(X).query(X, count + 1))
            print(f"{n:7,} {d:7} {count:10} {ours:6.3f} {scipys:6.3f}", flush=True)


if __name__ == "__main__":
    main()
