"""UnivariateOptimal: a million values, beside microagg1d where that is installed."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tessella.grouping import UnivariateOptimal


def best_of_three(function: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def measure(
    n: int = 1_000_000, ks: tuple[int, ...] = (3, 5, 10, 100, 1000)
) -> list[dict[str, object]]:
    values = np.random.default_rng(0).lognormal(size=n)
    UnivariateOptimal(3).fit(values[:1_000, None])
    UnivariateOptimal(400).fit(values[:9_000, None])
    try:
        from microagg1d import univariate_microaggregation
    except ImportError:
        univariate_microaggregation = None
    rows = []
    for k in ks:
        ours = UnivariateOptimal(k)
        row: dict[str, object] = {
            "n": n,
            "k": k,
            "seconds": best_of_three(lambda ours=ours: ours.fit(values[:, None])),
            "sse": ours.inertia_,
        }
        if univariate_microaggregation is not None:
            univariate_microaggregation(values[:1_000], k=k)
            ordered = np.sort(values)  # its labels are in the order of the values
            labels = univariate_microaggregation(ordered, k=k)
            means = np.bincount(labels, ordered) / np.bincount(labels)
            row["peer_seconds"] = best_of_three(
                lambda k=k: univariate_microaggregation(values, k=k)
            )
            row["peer_sse"] = float(((ordered - means[labels]) ** 2).sum())
        rows.append(row)
    return rows


def main() -> None:
    for row in measure():
        print(row)


if __name__ == "__main__":
    main()
