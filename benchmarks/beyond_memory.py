"""Plans on tables larger than memory: time, memory, loss, rules, faults, engines.

    python -m benchmarks.beyond_memory sizes 1000000 2000000 5000000 10000000 20000000
    python -m benchmarks.beyond_memory rules 5000000
    python -m benchmarks.beyond_memory quality 1000000
    python -m benchmarks.beyond_memory faults 20
    python -m benchmarks.beyond_memory engines 600000
    python -m benchmarks.beyond_memory cost

Each plan reads Parquet, masks with k = 5 and quick effort, and writes Parquet, a summary and a
manifest. `sizes`: 10 normal columns, `--memory 1GB`, two cores. Memory is that of all processes
together: what is private to each, and what they share, once (PSS of Linux). `rules`: a business
survey with 14 rules of which 2 % of the records break one; what is broken in the written file is
counted by DuckDB alone. `quality`: against the same plan in memory. `faults` kills the driver or a
worker at random moments, resumes, and compares the released bytes with those of a run that nobody
disturbed. `engines`: local with one and two processes, Spark with one and two workers: the same
bytes? `cost` fits what a run costs to the figures that `sizes` printed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tessella import datasets

SIZE, COLUMNS, K = 131_072, 10, 5
FIGURES = Path(__file__).parent / "beyond_memory.json"  # what `sizes` found, for `cost`

# The rules of the business survey, written by hand for DuckDB.
IN_SQL = (
    "employees >= 0", "hours BETWEEN 0 AND 2400 * employees", "hourly_rate >= 0", "materials >= 0",
    "other_costs >= 0", "turnover >= 0", "export_share BETWEEN 0 AND 1",
    "wages = hours * hourly_rate", "costs = wages + materials + other_costs",
    "profit = turnover - costs", "employees <> 0 OR hourly_rate = 0",
    "turnover <> 0 OR export_share = 0", "region IN ('north', 'east', 'south', 'west')",
    "branch IN ('construction', 'hospitality', 'manufacturing', 'services', 'trade', 'transport')",
)  # fmt: skip

PLAN = """
seed = 1
[input]
file = "table.parquet"
[rules]
lines = {rules}
[[steps]]
method = "drop"
columns = {dropped}
[[steps]]
method = "protect"
k = {k}
options = {{effort = "quick"}}
[measures]
risk = "none"
[output]
file = "release.parquet"
manifest = "manifest.json"
summary = "summary.json"
"""


def write_normal(home: Path, n: int) -> None:
    """Write a table of n records with 10 normal columns and a number, and its plan."""
    writer = None
    for number, first in enumerate(range(0, n, SIZE)):
        random = np.random.default_rng([7, number])
        size = min(SIZE, n - first)
        columns = {f"x{j}": random.standard_normal(size) for j in range(COLUMNS)}
        rows = pa.table({"record_id": np.arange(first, first + size), **columns})
        writer = writer or pq.ParquetWriter(home / "table.parquet", rows.schema)
        writer.write_table(rows)
    assert writer is not None
    writer.close()
    plan = PLAN.format(rules="[]", dropped='["record_id"]', k=K)
    (home / "plan.toml").write_text(plan)


def write_firms(home: Path, n: int) -> list[str]:
    """Write a dirty business survey of n firms, piece by piece, and its plan; return its rules."""
    writer, rules = None, []
    for number, first in enumerate(range(0, n, 500_000)):
        rows, rules = datasets.make_business_survey(
            min(500_000, n - first), random_state=100 + number, inconsistent=0.02,
            return_rules=True, frame="arrow",
        )  # fmt: skip
        rows = rows.cast(pa.schema([
            (one.name, pa.string() if pa.types.is_dictionary(one.type) else one.type)
            for one in rows.schema
        ]))  # fmt: skip
        writer = writer or pq.ParquetWriter(home / "table.parquet", rows.schema)
        writer.write_table(rows)
    assert writer is not None
    writer.close()
    plan = PLAN.format(rules=json.dumps(rules), dropped='["firm"]', k=K)
    (home / "plan.toml").write_text(plan)
    return rules


def command(home: Path, *options: str) -> list[str]:
    """Return the command that runs the plan of a folder."""
    plan = ["protect", "--plan", str(home / "plan.toml"), "--overwrite", "--quiet", "--json"]
    return [sys.executable, "-m", "tessella", *plan, *options]


def descendants(process: int) -> list[int]:
    """Return the processes that a process has started, and theirs."""
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True)
    own = [int(line) for line in found.stdout.split()]
    return [*own, *(other for one in own for other in descendants(one))]


def memory(process: int) -> float:
    """Return the megabytes of a process and those that it has started."""
    total = 0
    for one in (process, *descendants(process)):
        with contextlib.suppress(OSError):  # it has just ended
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def run(home: Path, *options: str) -> dict[str, float]:
    """Run the plan of a folder; return seconds, the most megabytes, and the loss in per cent."""
    peak = 0.0
    began = time.perf_counter()
    process = subprocess.Popen(command(home, *options), stdout=subprocess.DEVNULL)
    over = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.5):
            peak = max(peak, memory(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.wait()
    over.set()
    watcher.join()
    seconds = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"the plan ended with {process.returncode}")
    summary = json.loads((home / "summary.json").read_text())
    return {"seconds": seconds, "megabytes": peak, "loss": summary["confidential"]["total_loss"]}


def sizes(given: list[int]) -> None:
    """Print and keep time and memory against the number of records."""
    for n in given:
        with tempfile.TemporaryDirectory() as folder:
            write_normal(Path(folder), n)
            found = run(Path(folder), "--engine", "local", "--memory", "1GB")
            smallest = count(Path(folder, "release.parquet"), [f"x{j}" for j in range(COLUMNS)])
        print(
            f"{n:,} records: {found['seconds']:.0f} s, {1e6 * found['seconds'] / n:.1f} "
            f"microseconds a record, {found['megabytes']:.0f} MB, loss {found['loss']:.3f} %, "
            f"the fewest alike {smallest}",
            flush=True,
        )
        kept = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        FIGURES.write_text(json.dumps(kept | {str(n): found}, indent=1) + "\n")


def count(release: Path, columns: list[str]) -> int:
    """Count the fewest records that are alike in a written file, by DuckDB."""
    import duckdb

    listed = ", ".join(columns)
    asked = f"SELECT min(n) FROM (SELECT count(*) n FROM '{release}' GROUP BY {listed})"
    return int(duckdb.sql(asked).fetchall()[0][0])


def rules(n: int) -> None:
    """Mask a dirty survey, and count by DuckDB what the written file breaks."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        lines = write_firms(home, n)
        found = run(home, "--engine", "local", "--memory", "2GB")
        broken = {}
        for which in ("table", "release"):
            wrong = " OR ".join(f"NOT ({one})" for one in IN_SQL)
            asked = f"SELECT count(*) FROM '{home / which}.parquet' WHERE {wrong}"
            broken[which] = duckdb.sql(asked).fetchall()[0][0]
        columns = pq.read_schema(home / "release.parquet").names
        smallest = count(home / "release.parquet", columns)
    print(
        f"{n:,} firms, {len(lines)} rules: {found['seconds']:.0f} s, {found['megabytes']:.0f} MB, "
        f"loss {found['loss']:.2f} %; records that break a rule: {broken['table']:,} before and "
        f"{broken['release']:,} after; the fewest alike {smallest}"
    )


def quality(n: int) -> None:
    """Compare the loss with that of the same plan in memory, with and without rules."""
    for name, write in (("no rules", write_normal), ("14 rules", write_firms)):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), n)
            found = {one: run(Path(folder), "--engine", one) for one in ("local", "memory")}
        ratio = found["local"]["loss"] / found["memory"]["loss"]
        print(
            f"{n:,} records, {name}: loss {found['local']['loss']:.3f} % in pieces, "
            f"{found['memory']['loss']:.3f} % in memory, {100 * (ratio - 1):+.2f} %; "
            f"{found['local']['seconds']:.0f} s and {found['memory']['seconds']:.0f} s, "
            f"{found['local']['megabytes']:.0f} MB and {found['memory']['megabytes']:.0f} MB",
            flush=True,
        )


def digest(home: Path) -> str:
    """Return a hash of the released file."""
    return hashlib.sha256((home / "release.parquet").read_bytes()).hexdigest()[:16]


def faults(kills: int, n: int = 400_000) -> None:
    """Kill the driver or a worker, and resume, again and again; compare what is released."""
    random = np.random.default_rng()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_normal(home, n)
        whole = run(home, "--engine", "local")["seconds"]
        expected, done, rounds = digest(home), 0, 0
        while done < kills:
            rounds += 1
            (home / "release.parquet").unlink()
            while True:
                options = ("--engine", "local", "--resume")
                driver = subprocess.Popen(command(home, *options), stdout=subprocess.DEVNULL)
                try:
                    driver.wait(timeout=4 + random.random() * whole / 3)
                    break
                except subprocess.TimeoutExpired:
                    workers = descendants(driver.pid)
                    victim = driver.pid if done % 2 or not workers else int(random.choice(workers))
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
                        done += 1
                    if victim == driver.pid:
                        driver.wait()
                    elif driver.wait() == 0:
                        break
            same = digest(home) == expected
            print(f"round {rounds}: {done} kills so far, the same bytes: {same}", flush=True)


def engines(n: int) -> None:
    """Run one plan on every engine, and compare what is released."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_firms(home, n)
        ways: list[tuple[str, tuple[str, ...]]] = [
            ("local, two processes", ("--engine", "local")),
            ("local, one process", ("--engine", "local", "--memory", "500MB")),
            ("Spark, one worker", ("--engine", "spark", "--master", "local[1]")),
            ("Spark, two workers", ("--engine", "spark", "--master", "local[2]")),
        ]
        for name, options in ways:
            found = run(home, *options)
            print(
                f"{name}: {found['seconds']:.0f} s, {found['megabytes']:.0f} MB, loss "
                f"{found['loss']:.4f} %, bytes {digest(home)}",
                flush=True,
            )


def cost() -> None:
    """Fit seconds = a + b n to what `sizes` found on two cores, and project it."""
    kept = {int(n): found["seconds"] for n, found in json.loads(FIGURES.read_text()).items()}
    n, seconds = np.array(sorted(kept)), np.array([kept[one] for one in sorted(kept)])
    weights = 1 / seconds
    b, a = np.polyfit(n, seconds, 1, w=weights)
    print(f"seconds = {a:.0f} + {1e6 * b:.1f} n / 1,000,000 on two cores")
    for records in (100_000_000, 1_000_000_000):
        for cores in (2, 32, 256):
            hours = (a + b * records * 2 / cores) / 3600
            print(f"{records:,} records on {cores} cores: about {hours:.1f} hours (a projection)")


def main() -> None:
    what, *given = sys.argv[1:]
    if what == "sizes":
        sizes([int(one) for one in given])
    elif what == "cost":
        cost()
    else:
        {"rules": rules, "quality": quality, "faults": faults, "engines": engines}[what](
            int(given[0])
        )


if __name__ == "__main__":
    main()
