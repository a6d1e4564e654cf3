"""Recoding: seconds, optimality and loss of full-domain and local recoding, eight keys.

    python -m benchmarks.recoding            # the made-up census table, and NIST's where it is
    python -m benchmarks.recoding --quick    # local recoding only where nothing is emptied

Enumeration counts every node of the lattice, by the same counting, and compares the least loss.
"""

from __future__ import annotations

import csv
import itertools
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import table as page_table
from tessella.datasets import data_folders, make_census_keys
from tessella.frame import View
from tessella.keys.coded import read_keys
from tessella.keys.lattice import Lattice
from tessella.masking import LocalRecoding, Recoding

SIZES, BUDGETS = (2, 5, 10), (0.0, 0.02, 0.05)
NIST = {
    "PUMA": {"prefix": [2, 0]},
    "AGEP": {"width": [5, 10, 20]},
    "SEX": {"prefix": [0]},
    "MSP": {"tree": {"married": ["1", "2", "3"], "was married": ["4", "5"], "never": ["6", "N"]}},
    "HISP": {"tree": {"no": ["0"], "yes": ["1", "2", "3", "4"]}},
    "RAC1P": {"tree": {"1 or 2": ["1", "2"], "others": ["3", "4", "5", "6", "7", "8", "9"]}},
    "HOUSING_TYPE": {"prefix": [0]},
    "EDU": {"tree": {
        "school": ["1", "2", "3", "4", "5"], "college": ["6", "7", "8", "9"],
        "degree": ["10", "11", "12"], "none": ["N"]}},
}  # fmt: skip


def tables() -> Iterator[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """Give the tables, each with the hierarchies of its keys."""
    table, hierarchies = make_census_keys(random_state=0, return_hierarchies=True)
    yield "census", table, hierarchies
    for folder in data_folders():
        path = folder / "nist" / "national" / "national2019.csv"
        if path.is_file():
            yield "nist", pd.read_csv(path, dtype={name: str for name in NIST if name != "AGEP"},
                                      keep_default_na=False), NIST  # fmt: skip
            return


def least_by_enumeration(table: Any, hierarchies: dict[str, Any], k: int, allowed: int) -> float:
    """Count every node of the lattice."""
    keys = read_keys(View(table), list(hierarchies), hierarchies)
    n = len(table)
    lattice = Lattice(
        keys, k=k, stratum=np.zeros(n, dtype=np.int64), weights=np.ones(n), allowed=allowed
    )
    least = np.inf
    for levels in itertools.product(*map(range, lattice.shape)):
        if lattice.count_violating(levels) <= allowed:
            found = lattice.empty(levels)
            if found.feasible:
                least = min(least, lattice.loss(levels, found))
    return float(least)


def measure_local(
    table: Any, hierarchies: dict[str, Any], k: int, budget: float, effort: str
) -> dict[str, Any]:
    local = LocalRecoding(
        k=k, hierarchies=hierarchies, suppress=budget, effort=effort, random_state=0
    )
    began = time.perf_counter()
    local.fit(table)
    return {
        "local": round(local.loss_, 3), "local_emptied": local.n_emptied_, "start": local.start_,
        "local_seconds": round(time.perf_counter() - began, 2),
    }  # fmt: skip


def measure(
    sizes: tuple[int, ...] = SIZES, budgets: tuple[float, ...] = BUDGETS, *,
    effort: str = "quick", enumerate_budgets: tuple[float, ...] = (0.0,),
    local_budgets: tuple[float, ...] = BUDGETS,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Give a row for each table, k and budget."""
    for name, table, hierarchies in tables():
        small = table.head(500)
        LocalRecoding(k=3, hierarchies=hierarchies, effort="quick", random_state=0).fit(small)
        for k, budget in itertools.product(sizes, budgets):
            full = Recoding(k=k, hierarchies=hierarchies, suppress=budget)
            began = time.perf_counter()
            full.fit(table)
            seconds = time.perf_counter() - began
            row: dict[str, Any] = {
                "table": name, "records": len(table), "k": k, "suppress": budget,
                "nodes": full.n_nodes_, "counted": full.n_counted_, "proved": full.proved_,
                "seconds": round(seconds, 2), "full_domain": round(full.loss_, 3),
                "emptied": full.n_emptied_,
            }  # fmt: skip
            if budget in local_budgets:
                row |= measure_local(table, hierarchies, k, budget, effort)
            if k == sizes[0] and budget in enumerate_budgets:
                least = least_by_enumeration(table, hierarchies, k, int(budget * len(table)))
                row["equal_to_enumeration"] = bool(abs(100 * least - full.loss_) < 1e-6)
            yield row


NAMES = ("table", "records", "k", "suppress", "nodes", "counted", "proved", "seconds",
         "full_domain", "emptied", "local", "local_emptied", "start", "local_seconds",
         "equal_to_enumeration")  # fmt: skip


def page() -> str:
    """Write the section of the page."""
    titles = {
        "suppress": "may be emptied", "full_domain": "full domain, loss", "local": "local, loss",
        "local_emptied": "emptied, local", "local_seconds": "seconds, local",
        "equal_to_enumeration": "equal to enumeration",
    }  # fmt: skip
    rows = [{titles.get(name, name): row.get(name, "") for name in NAMES} for row in measure()]
    return (
        "## Recoding\n\nEight keys with hierarchies; loss is the certainty penalty in per cent. "
        "`counted`: nodes of the lattice that were counted, of all `nodes`. Enumeration counts "
        "every node, at the smallest k without emptied records. Local recoding at quick effort, "
        "`start`: from which groups the best was found.\n\n" + page_table(rows)
    )


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    writer = csv.DictWriter(sys.stdout, NAMES)
    writer.writeheader()
    for row in measure(local_budgets=(0.0,)) if quick else measure():
        writer.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
