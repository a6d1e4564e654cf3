"""Files of 1,000,000 x 20: seconds and memory of reading and writing, beside pandas and polars.

Ten columns of numbers, six of whole numbers (one with missing cells), four of text. Each job runs
in a process of its own, so that the peak of memory is its own; kernels are compiled before the
clock starts. tessella looks at every cell before it decides a type, and reads statistical files
back before they count; the peers do neither.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from benchmarks.tables import table

ROWS = 1_000_000
SCRIPT = """
import json, resource, sys, time
from pathlib import Path

who, what, ending, folder, n = *sys.argv[1:5], int(sys.argv[5])
path = Path(folder, f"table.{ending}")

def make():
    import numpy as np, pyarrow as pa
    chance = np.random.default_rng(0)
    columns = {f"x{j}": chance.lognormal(3, 1, n).round(4) for j in range(10)}
    columns |= {f"i{j}": chance.integers(0, 100_000, n) for j in range(5)}
    gaps = chance.random(n) < 0.1
    columns["gaps"] = pa.array(chance.integers(0, 100, n), mask=gaps)
    towns = pa.array(["north", "south", "east", "west"])
    columns |= {f"t{j}": towns.take(pa.array(chance.integers(0, 4, n))) for j in range(4)}
    return pa.table(columns)

def job():
    if who == "tessella":
        from tessella.io import read_file, write_file
        if what == "read":
            return lambda: read_file(path)
        made = make()
        return lambda: write_file(made, path, overwrite=True)
    if who == "pandas":
        import pandas as pd
        readers = {"csv": pd.read_csv, "csv.gz": pd.read_csv, "parquet": pd.read_parquet,
                   "feather": pd.read_feather}
        if what == "read":
            return lambda: readers[ending](path)
        frame = make().to_pandas()
        writers = {"csv": lambda: frame.to_csv(path, index=False),
                   "csv.gz": lambda: frame.to_csv(path, index=False),
                   "parquet": lambda: frame.to_parquet(path),
                   "feather": lambda: frame.to_feather(path)}
        return writers[ending]
    import polars as pl
    if what == "read":
        return lambda: pl.read_csv(path)
    frame = pl.from_arrow(make())
    return lambda: frame.write_csv(path)

if who == "tessella" and what == "read":  # compile before the clock starts
    from tessella.io import read_file
    small = Path(folder, "small.csv")
    small.write_text("a,b\\n1,x\\n")
    read_file(small)
run = job()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
began = time.perf_counter()
run()
seconds = time.perf_counter() - began
print(json.dumps({
    "format": ending, "job": what, "by": who, "seconds": seconds,
    "more_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before,
    "file_mb": path.stat().st_size / 1e6,
}))
"""
JOBS = [
    ("csv", ("tessella", "pandas", "polars")),
    ("csv.gz", ("tessella",)),
    ("csv.zst", ("tessella",)),
    ("parquet", ("tessella", "pandas")),
    ("feather", ("tessella", "pandas")),
]
SMALLER = [(ending, ("tessella",)) for ending in ("xlsx", "sav", "dta", "xpt")]  # 100,000 rows


def measure(rows: int = ROWS) -> list[dict[str, object]]:
    """Write, then read, each format; the peers read and write files of their own."""
    found = []
    for jobs, n in ((JOBS, rows), (SMALLER, rows // 10)):
        for ending, libraries in jobs:
            for library in libraries:
                with tempfile.TemporaryDirectory() as folder:
                    for what in ("write", "read"):
                        done = subprocess.run(
                            [sys.executable, "-c", SCRIPT, library, what, ending, folder, str(n)],
                            check=True,
                            capture_output=True,
                            text=True,
                        )
                        row = json.loads(done.stdout.splitlines()[-1])
                        found.append({**row, "rows": n})
    return found


def page(rows: int = ROWS) -> str:
    """Write the section of the page of benchmarks."""
    shown = [
        {
            "format": row["format"],
            "rows": f"{row['rows']:,}",
            "job": row["job"],
            "by": row["by"],
            "seconds": f"{row['seconds']:.1f}",
            "peak MB above start": f"{row['more_mb']:.0f}",
            "file, MB": f"{row['file_mb']:.0f}",
        }
        for row in measure(rows)
    ]
    return (
        "## Files\n\n20 columns: numbers, whole numbers, text. tessella looks at every cell before "
        "it decides a type and hashes what it wrote; the peers do neither. Peak memory is counted "
        "from when the table to write is made, or the packages are loaded.\n\n" + table(shown)
    )


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    print(page(rows))


if __name__ == "__main__":
    main()
