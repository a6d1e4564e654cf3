"""MDAV against two plain scans that make the same partition, on one core.

The *row scan* is what one writes first and tightens: records that remain kept together, one fused
pass for distances and extremes, one record after the other. The *block scan* (`plain_mdav`) lays
the table out by columns, so that the processor measures eight records at a time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.plain_mdav import plain_mdav
from tessella.grouping import MDAV

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CASES = ((50_000, 10), (25_000, 4), (50_000, 4), (100_000, 4))


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def row_scan(X: Floats, k: int) -> Integers:
    """MDAV, record by record; remaining records are rows 0 .. left - 1 of a working copy."""
    n, d = X.shape
    rest, rows, left = X.copy(), np.arange(n), n
    labels = np.empty(n, dtype=np.int64)
    total = np.zeros(d)
    for i in range(n):
        for j in range(d):
            total[j] += X[i, j]
    point, near, distance = np.empty(d), np.empty(k, dtype=np.int64), np.empty(k)
    number = 0
    while left >= 2 * k:
        seed, far = -1, -1.0
        for i in range(left):
            square = 0.0
            for j in range(d):
                difference = rest[i, j] - total[j] / left
                square += difference * difference
            if square > far:
                far, seed = square, i
        for _ in range(2 if left >= 3 * k else 1):
            for j in range(d):
                point[j] = rest[seed, j]
            held, far, next_row = 0, -1.0, -1
            for i in range(left):
                square = 0.0
                for j in range(d):
                    difference = rest[i, j] - point[j]
                    square += difference * difference
                if square > far:
                    far, next_row = square, rows[i]
                if held < k or square < distance[held - 1]:
                    place = held if held < k else k - 1
                    while place > 0 and distance[place - 1] > square:
                        distance[place], near[place] = distance[place - 1], near[place - 1]
                        place -= 1
                    distance[place], near[place] = square, i
                    held = min(held + 1, k)
            near[:k] = np.sort(near[:k])
            for a in range(k - 1, -1, -1):
                i = near[a]
                labels[rows[i]] = number
                left -= 1
                rows[i] = rows[left]
                for j in range(d):
                    total[j] -= rest[i, j]
                    rest[i, j] = rest[left, j]
            number += 1
            for i in range(left):
                if rows[i] == next_row:
                    seed = i
    for i in range(left):
        labels[rows[i]] = number
    return labels


def seconds_of(function: Callable[[], object], *, repeats: int = 3) -> float:
    """Best of several runs, in seconds of this process's cores."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def measure(cases: tuple[tuple[int, int], ...] = CASES, k: int = 5) -> list[dict[str, object]]:
    small = np.random.default_rng(0).standard_normal((3_000, 4))
    MDAV(k).fit(small)
    plain_mdav(small, np.ones(len(small)), k)
    row_scan(small, k)
    rows = []
    for n, d in cases:
        X = np.random.default_rng(0).standard_normal((n, d))
        weights = np.ones(n)
        found = MDAV(k).fit(X)
        plain = plain_mdav(X, weights, k)
        ours = seconds_of(lambda X=X: MDAV(k).fit(X))
        block = seconds_of(lambda X=X, w=weights: plain_mdav(X, w, k))
        row = seconds_of(lambda X=X: row_scan(X, k), repeats=1)
        pairs = len(np.unique(found.labels_ * np.int64(n) + plain))
        rows.append(
            {
                "n": n, "d": d, "k": k, "mdav": ours, "row_scan": row, "block_scan": block,
                "row_ratio": row / ours, "block_ratio": block / ours,
                "same": pairs == found.n_groups_ == int(plain.max()) + 1,
            }
        )  # fmt: skip
    return rows


def page() -> str:
    """Write the rows as Markdown, with the growth from the smallest to the largest n of d = 4."""
    rows = measure()
    lines = [
        "| n | d | k | MDAV, s | row scan, s | times | block scan, s | times | same partition |",
        "|---" * 9 + "|",
    ]
    lines += [
        f"| {r['n']:,} | {r['d']} | {r['k']} | {r['mdav']:.2f} | {r['row_scan']:.2f} "
        f"| {r['row_ratio']:.1f} | {r['block_scan']:.2f} | {r['block_ratio']:.1f} "
        f"| {'yes' if r['same'] else 'NO'} |"
        for r in rows
    ]
    flat = sorted((r for r in rows if r["d"] == 4), key=lambda r: r["n"])
    power = math.log(flat[-1]["mdav"] / flat[0]["mdav"]) / math.log(flat[-1]["n"] / flat[0]["n"])
    lines += ["", f"At d = 4, MDAV's time grows like n to the power {power:.2f}; a scan's like 2."]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page())
