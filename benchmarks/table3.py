"""Time of RepOrdMic: Table 3 of Mortazavi (2020), with ours beside it.

Algorithm 1 alone, from k-means with 1 to 200 clusters, without the time of k-means, as there.
Seconds are of one processor, so that other jobs on the machine do not count. The paper's machine
was a laptop with an i5-8265U (C++). Run as `python -m benchmarks.table3`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.table2 import KS
from benchmarks.tables import DATASETS, standardised
from tessella.grouping.base import NO_UNITS
from tessella.grouping.ordering import farthest_from_centre
from tessella.grouping.reordering import kmeans_starts
from tessella.kernels.neighbours import all_rows
from tessella.kernels.ordering import repeat_ordering

PUBLISHED = {  # dataset -> k -> (total seconds, total iterations)
    "Tarragona": {3: (5.4, 2525), 5: (4.6, 2755), 10: (5.0, 2988)},
    "Census": {3: (7.3, 2368), 5: (6.6, 2504), 10: (5.7, 2527)},
    "EIA": {3: (51.3, 1643), 5: (36.8, 1811), 10: (25.9, 1922)},
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table, measured."""

    dataset: str
    k: int
    starts: int
    seconds: float
    iterations: int
    loss: float  # IL of the best start, in percent


def measure(datasets: Iterable[str] = tuple(DATASETS), ks: Iterable[int] = KS) -> list[Row]:
    """Run Algorithm 1 from all starts; kernels are compiled before the clock starts."""
    ks, rows = tuple(ks), []
    for name in datasets:
        X = standardised(name)
        weights, tree, first = (
            np.ones(len(X)),
            all_rows(X),
            farthest_from_centre(X, np.ones(len(X))),
        )
        starts = kmeans_starts(X, weights, 200, np.random.default_rng(0))
        repeat_ordering(X, weights, tree, starts[-1], first, 3, 1e-7, NO_UNITS)
        for k in ks:
            begin = time.thread_time()
            traces = [
                repeat_ordering(X, weights, tree, start, first, k, 1e-7, NO_UNITS)[1]
                for start in starts
            ]
            rows.append(
                Row(
                    dataset=name,
                    k=k,
                    starts=len(starts),
                    seconds=time.thread_time() - begin,
                    iterations=sum(len(trace) for trace in traces),
                    loss=100 * min(trace[-1] for trace in traces) / X.size,
                )
            )
    return rows


def table(rows: Sequence[Row]) -> str:
    """Write the rows as a Markdown table; published figures stand in brackets."""
    lines = [
        "| table | k | total s | iterations | iterations a start | ms an iteration | IL |",
        "|---" * 7 + "|",
    ]
    for row in rows:
        total, iterations = PUBLISHED.get(row.dataset, {}).get(row.k, (np.nan, np.nan))
        lines.append(
            f"| {row.dataset} | {row.k} | {row.seconds:.1f} ({total}) "
            f"| {row.iterations} ({iterations}) "
            f"| {row.iterations / row.starts:.2f} ({iterations / 200:.2f}) "
            f"| {1000 * row.seconds / row.iterations:.2f} ({1000 * total / iterations:.2f}) "
            f"| {row.loss:.3f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Table 3 of Mortazavi (2020), measured here.")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--k", nargs="+", type=int, default=list(KS))
    given = parser.parse_args()
    print("RepOrdMic (published)\n")
    print(table(measure(given.datasets, given.k)))


if __name__ == "__main__":
    main()
