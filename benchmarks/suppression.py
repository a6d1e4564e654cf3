"""Local suppression: cells, bound, gap and seconds, beside what sdcMicro's kAnon empties.

    python -m benchmarks.suppression                      testdata, eusilc, NIST's ten columns
    python -m benchmarks.suppression --tables testdata --k 2 3
    python -m benchmarks.suppression --records 100000     made-up keys, with the peak of memory

sdcMicro's figures (its kAnon with importance by default and alpha = 1, which counts as "wildcard";
it has no counterpart of "category") were measured once, with the sources of its repository.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.nist import TEN
from benchmarks.tables import table as page_table
from tessella.masking import LocalSuppression

KANON = {  # cells that sdcMicro's kAnon empties
    ("testdata", 2): 157, ("testdata", 3): 293, ("testdata", 5): 500,
    ("eusilc", 2): 4109, ("eusilc", 3): 6979, ("eusilc", 5): 10882,
    ("eusilc, age in tens", 2): 1078, ("eusilc, age in tens", 3): 1938,
    ("eusilc, age in tens", 5): 3389,
    ("nist", 2): 15178, ("nist", 3): 19941,
}  # fmt: skip
EUSILC = ["db040", "hsize", "rb090", "pl030", "pb220a", "age"]
TESTDATA = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
TABLES = ["testdata", "eusilc", "eusilc, age in tens", "nist"]
MISSING = ["category", "wildcard"]
SIZES = (9, 8, 2, 7, 5, 12, 6)


def read(name: str) -> pd.DataFrame:
    """Read the keys of a public table, found through TESSELLA_DATA."""
    folder = Path(os.environ["TESSELLA_DATA"])
    if name == "testdata":
        return pd.read_csv(folder / "people" / "testdata.csv")[TESTDATA]
    if name.startswith("eusilc"):
        table = pd.read_csv(folder / "people" / "eusilc.csv", sep=";", decimal=",")[EUSILC]
        return table.assign(age=table.age // 10) if "tens" in name else table
    path = folder / "nist" / "national" / "national2019.csv"
    return pd.read_csv(path, dtype=str, keep_default_na=False)[list(TEN)]


def make(n: int, seed: int = 1) -> pd.DataFrame:
    """Make up seven keys that go together."""
    random = np.random.default_rng(seed)
    common = random.normal(size=n)
    columns = {}
    for j, size in enumerate(SIZES):
        own = 0.6 * common + 0.9 * random.normal(size=n)
        columns[f"key{j}"] = np.clip((own + 2.2) / 4.4 * size, 0, size - 1).astype(int)
    return pd.DataFrame(columns)


def measure(name: str, table: pd.DataFrame, k: int, missing: str) -> dict[str, object]:
    """Suppress once; return a row of the page."""
    began, cpu = time.perf_counter(), time.process_time()
    masker = LocalSuppression(k, columns=list(table), missing=missing)
    masker.fit_transform(table)
    seconds, busy = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    known = KANON.get((name, k)) if missing == "wildcard" else None
    return {
        "table": name, "k": k, "empty cell": missing, "cells": f"{masker.n_suppressed_:,}",
        "bound": f"{masker.bound_:,.0f}", "gap": f"{masker.gap_:.1%}",
        "kAnon": f"{known:,}" if known else "", "seconds": f"{seconds:.1f}",
        "of a core": f"{busy:.1f}", "MB": f"{peak:,.0f}",
    }  # fmt: skip


def rows(
    tables: list[str], sizes: list[int], missing: list[str], records: list[int]
) -> Iterator[dict[str, object]]:
    """Measure public tables, and made-up ones of so many records."""
    for name in tables:
        table = read(name)
        for k, counted in itertools.product(sizes, missing):
            yield measure(name, table, k, counted)
    for n in records:
        for counted in missing:
            yield measure(f"{n:,} made-up records", make(n), 3, counted)


def page() -> str:
    """Write the section of the page."""
    found = rows(TABLES, [2, 3, 5], MISSING, [100_000, 1_000_000])
    return (
        "## Local suppression\n\nCells that are emptied, the lower bound, and what sdcMicro's "
        "`kAnon` empties (its default importance, alpha = 1, which counts an empty cell as "
        "wildcard; measured once with the sources of its repository, NIST's table not at k = 5). "
        f"testdata: {', '.join(TESTDATA)}; eusilc: {', '.join(EUSILC)}; NIST: ten columns. "
        "A process measures all rows, so that MB are those of the largest so far.\n\n"
        + page_table(found)
    )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--k", nargs="*", type=int, default=[2, 3, 5])
    parser.add_argument("--missing", nargs="*", default=MISSING)
    parser.add_argument("--records", type=int, help="of made-up keys, in place of the tables")
    given = parser.parse_args()
    records = [given.records] if given.records else []
    for row in rows([] if records else given.tables, given.k, given.missing, records):
        print(", ".join(f"{name} {value}" for name, value in row.items() if value), flush=True)


if __name__ == "__main__":
    main()
