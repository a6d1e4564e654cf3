"""Information loss on the public tables: Table 2 of Mortazavi (2020), with our columns beside it.

IL = 100 · SSE / SST on columns standardised to variance one. Run as
`python -m benchmarks.table2 [--datasets ...] [--k ...] [--methods ...]`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.tables import DATASETS, standardised
from tessella.grouping import (
    CBFS,
    IGD,
    MDAV,
    VMDAV,
    Grouping,
    IteratedOrdering,
    OrderedGrouping,
    RepOrdMic,
    Search,
)

KS = (3, 5, 10)

PUBLISHED = {  # method -> dataset -> k -> IL
    "MDAV": {
        "Tarragona": {3: 16.93, 5: 22.46, 10: 33.19},
        "Census": {3: 5.69, 5: 9.09, 10: 14.16},
        "EIA": {3: 0.48, 5: 1.67, 10: 3.84},
    },
    "MDAV-MHM": {
        "Tarragona": {3: 16.93, 5: 22.46, 10: 33.19},
        "Census": {3: 5.65, 5: 9.09, 10: 14.22},
        "EIA": {3: 0.41, 5: 1.26, 10: 3.77},
    },
    "IMHM": {
        "Tarragona": {3: 16.93, 5: 22.18, 10: 30.78},
        "Census": {3: 5.37, 5: 8.42, 10: 12.23},
        "EIA": {3: 0.374, 5: 0.76, 10: 2.17},
    },
    "IGD": {
        "Tarragona": {3: 15.60, 5: 21.31, 10: 32.87},
        "Census": {3: 5.33, 5: 8.37, 10: 12.65},
        "EIA": {3: 0.39, 5: 0.76, 10: 2.02},
    },
    "RepOrdMic": {
        "Tarragona": {3: 14.80, 5: 21.13, 10: 31.13},
        "Census": {3: 5.01, 5: 7.94, 10: 12.74},
        "EIA": {3: 0.369, 5: 0.75, 10: 1.99},
    },
}

Methods = Mapping[str, Callable[[int], Grouping]]

# A name of PUBLISHED is the published algorithm; variants of our own say so.
METHODS: Methods = {
    "MDAV": MDAV,
    "MDAV-MHM": lambda k: OrderedGrouping(k, order="mdav-mhm"),
    "IGD": IGD,
    "RepOrdMic": lambda k: RepOrdMic(k, random_state=0),
    "MDAV path (ours)": lambda k: OrderedGrouping(k, order="mdav"),
    "iterated (ours)": IteratedOrdering,
    "RepOrdMic and walks (ours)": lambda k: RepOrdMic(k, walks=100, random_state=0),
    "VMDAV": VMDAV,
    "CBFS": CBFS,
    "CBFS-MHM": lambda k: OrderedGrouping(k, order="cbfs-mhm"),
    "nearest": lambda k: OrderedGrouping(k, order="nearest"),
    "pca": lambda k: OrderedGrouping(k, order="pca"),
    "zscore": lambda k: OrderedGrouping(k, order="zscore"),
    "tour": lambda k: OrderedGrouping(k, order="tour"),
    "Search quick": lambda k: Search(k, effort="quick", random_state=0),
    "Search": lambda k: Search(k, random_state=0),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell of the table, measured."""

    dataset: str
    k: int
    method: str
    loss: float  # IL, in percent
    seconds: float  # after compilation

    @property
    def published(self) -> float | None:
        """The figure of the paper, for its own methods alone."""
        return PUBLISHED.get(self.method, {}).get(self.dataset, {}).get(self.k)


def measure(
    datasets: Iterable[str] = tuple(DATASETS),
    ks: Iterable[int] = KS,
    methods: Methods = METHODS,
) -> list[Row]:
    """Group every table with every method and k; kernels are compiled before the clock starts."""
    ks, rows = tuple(ks), []
    small = np.random.default_rng(0).normal(size=(300, 4))
    for make in methods.values():
        make(3).fit(small)
    for name in datasets:
        X = standardised(name)
        for k in ks:
            for method, make in methods.items():
                start = time.perf_counter()
                grouping = make(k).fit(X)
                seconds = time.perf_counter() - start
                loss = 100 * grouping.inertia_ / X.size
                rows.append(Row(dataset=name, k=k, method=method, loss=loss, seconds=seconds))
    return rows


def losses(rows: Sequence[Row]) -> str:
    """Write the losses as a Markdown table; published figures stand in brackets."""
    methods = list(dict.fromkeys(row.method for row in rows))
    cells = {(row.dataset, row.k, row.method): row for row in rows}
    lines = ["| table | k | " + " | ".join(methods) + " |", "|---" * (len(methods) + 2) + "|"]
    for dataset, k in dict.fromkeys((row.dataset, row.k) for row in rows):
        found = []
        for method in methods:
            row = cells.get((dataset, k, method))
            text = "" if row is None else f"{row.loss:.3f}" if row.loss < 10 else f"{row.loss:.2f}"
            found.append(text + (f" ({row.published:g})" if row and row.published else ""))
        lines.append(f"| {dataset} | {k} | " + " | ".join(found) + " |")
    return "\n".join(lines)


def seconds(rows: Sequence[Row]) -> str:
    """Write the seconds as a Markdown table."""
    methods = list(dict.fromkeys(row.method for row in rows))
    cells = {(row.dataset, row.k, row.method): row.seconds for row in rows}
    lines = ["| table | k | " + " | ".join(methods) + " |", "|---" * (len(methods) + 2) + "|"]
    for dataset, k in dict.fromkeys((row.dataset, row.k) for row in rows):
        found = [cells.get((dataset, k, method)) for method in methods]
        texts = ["" if value is None else f"{value:.2f}" for value in found]
        lines.append(f"| {dataset} | {k} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Table 2 of Mortazavi (2020), measured here.")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--k", nargs="+", type=int, default=list(KS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    given = parser.parse_args()
    rows = measure(given.datasets, given.k, {name: METHODS[name] for name in given.methods})
    print("IL in percent (published)\n")
    print(losses(rows))
    print("\nSeconds\n")
    print(seconds(rows))


if __name__ == "__main__":
    main()
