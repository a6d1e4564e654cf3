"""Lower bounds of the nine cells of the literature: how high, how near, how fast.

Each row has a bound on IL = 100 SSE / SST of the z-scored table, the IL that `Search` reaches, and
the share of it that is proved unavoidable. Kernels are compiled before the clock starts.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.tables import DATASETS, standardised
from tessella.grouping import Search, lower_bound

EFFORTS = ("quick", "standard")


def measure(
    ks: tuple[int, ...] = (3, 5, 10),
    efforts: tuple[str, ...] = EFFORTS,
    tables: tuple[str, ...] = tuple(DATASETS),
    search: str | None = "quick",
) -> list[dict[str, object]]:
    """Measure each cell; `search` is the effort of the grouping that bounds are compared with."""
    small = np.random.default_rng(0).normal(size=(60, 3))
    lower_bound(small, 3, labels=Search(3, effort="quick", random_state=0).fit_predict(small))
    rows = []
    for name in tables:
        X = standardised(name)
        for k in ks:
            reached = None
            if search is not None:
                sse = Search(k, effort=search, random_state=0).fit(X).inertia_
                reached = 100 * sse / X.size
            for effort in efforts:
                began = time.perf_counter()
                bound = lower_bound(X, k, effort=effort)
                rows.append(
                    {
                        "table": name,
                        "k": k,
                        "effort": effort,
                        "bound": 100 * bound.value / X.size,
                        "reached": reached,
                        "proved": None if reached is None else 100 * bound.value / X.size / reached,
                        "seconds": time.perf_counter() - began,
                        "method": bound.method,
                    }
                )
    return rows


def measure_large(sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)) -> list[dict[str, object]]:
    """Time the quick bound on normal tables with 10 columns, k = 5."""
    rows: list[dict[str, object]] = []
    random = np.random.default_rng(0)
    lower_bound(random.normal(size=(100, 10)), 5, effort="quick")
    for n in sizes:
        X = random.normal(size=(n, 10))
        bound = lower_bound(X, 5, effort="quick")
        rows.append({"n": n, "k": 5, "bound": 10 * bound.value / n, "seconds": bound.seconds})
    return rows


def main() -> None:
    for row in measure():
        proved = (
            "" if row["proved"] is None else f" of {row['reached']:8.4f} = {row['proved']:6.1%}"
        )
        print(
            f"{row['table']:>9} k={row['k']:<2} {row['effort']:>8}  IL >= {row['bound']:8.4f}"
            f"{proved}  {row['seconds']:6.1f} s  {row['method']}",
            flush=True,
        )
    for row in measure_large():
        print(f"normal n={row['n']:>9,} x 10 k=5 quick  {row['seconds']:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
