"""Plans on tables larger than memory: time, memory, loss, rules, faults, engines.

    python -m benchmarks.beyond_memory sizes 1000000 2000000 5000000 10000000 20000000
    python -m benchmarks.beyond_memory rules 5000000
    python -m benchmarks.beyond_memory quality 1000000 ["14 rules"]
    python -m benchmarks.beyond_memory faults 20
    python -m benchmarks.beyond_memory engines 600000
    python -m benchmarks beyond-memory

Each plan reads Parquet, masks with k = 5 and quick effort, and writes Parquet, a summary and a
manifest. `sizes`: 10 normal columns, `--memory 1GB`, two cores. Memory is that of all processes
together: what is private to each, and what they share, once (PSS of Linux). `rules`: a business
survey with 14 rules of which 2 % of the records break one; what is broken in the written file is
counted by DuckDB alone. `quality`: against the same plan in memory. `faults` kills the driver or a
worker at random moments, resumes, and compares the released bytes with those of a run that nobody
disturbed. `engines`: local with one and two processes, Spark with one and two workers: the same
bytes? Each keeps what it found in beyond_memory.json, for these runs take hours; the section of the
page is written from there, with a cost model that is fitted to `sizes`.
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
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tables import table
from tessella import datasets

SIZE, COLUMNS, K = 131_072, 10, 5
FIGURES = Path(__file__).parent / "beyond_memory.json"
CLUSTER = "a cluster of 16 nodes with 16 cores each"

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
        found |= {"smallest": smallest, "megabytes_of_numbers": n * COLUMNS * 8 / 1e6}
        keep("sizes", f"{n:,}", found)


def kept() -> dict[str, dict[str, dict[str, float]]]:
    """Return what was measured: by kind and name."""
    return json.loads(FIGURES.read_text()) if FIGURES.exists() else {}


def keep(kind: str, name: str, found: dict[str, float]) -> None:
    """Print and keep what was measured, with the date and how busy the machine was."""
    found = {**found, "load": os.getloadavg()[2], "date": str(date.today())}
    print(kind, name, json.dumps(found), flush=True)
    known = kept()
    known.setdefault(kind, {})[name] = found
    FIGURES.write_text(json.dumps(known, indent=1) + "\n")


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
        found["smallest"] = count(home / "release.parquet", columns)
    found |= {"rules": len(lines), "before": broken["table"], "after": broken["release"]}
    keep("rules", f"{n:,}", found)


def quality(n: int, *only: str) -> None:
    """Compare the loss with that of the same plan in memory, with and without rules."""
    for name, write in (("no rules", write_normal), ("14 rules", write_firms)):
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), n)
            found = {one: run(Path(folder), "--engine", one) for one in ("local", "memory")}
        for where, own in found.items():
            keep("quality", f"{n:,} records, {name}, {where}", own)


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
        expected, done, rounds, other = digest(home), 0, 0, 0
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
            other += digest(home) != expected
            print(f"round {rounds}: {done} kills so far, other bytes: {other}", flush=True)
    keep("faults", f"{n:,}", {"kills": done, "runs": rounds, "other_bytes": other})


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
            keep("engines", f"{n:,} firms, {name}", {**found, "bytes": digest(home)})


def projection() -> tuple[float, float, list[dict[str, str]]]:
    """Fit seconds = a + b n to `sizes` on two cores; project it, cores sharing b n evenly."""
    found = {int(n.replace(",", "")): own["seconds"] for n, own in kept()["sizes"].items()}
    n, seconds = np.array(sorted(found)), np.array([found[one] for one in sorted(found)])
    b, a = np.polyfit(n, seconds, 1, w=1 / seconds)
    rows = [
        {"records": f"{records:,}", "cores": f"{cores}", "hours": f"{hours:.1f}"}
        for records in (100_000_000, 1_000_000_000)
        for cores in (2, 32, 256)
        for hours in [(a + b * records * 2 / cores) / 3600]
    ]
    return float(a), float(b), rows


def page() -> str:
    """Return the section of the page, from what was kept."""
    known = kept()
    shown = {"sizes": "records", "quality": "plan", "engines": "plan", "rules": "firms"}
    out = [
        "## Larger than memory\n\nPlans from Parquet to Parquet, k = 5, quick effort, two cores: "
        "`python -m benchmarks.beyond_memory`. Memory is that of all processes together. Tables of "
        "10 normal columns, `--engine local --memory 1GB`:"
    ]
    for kind, first in shown.items():
        if kind not in known:
            continue
        if kind == "quality":
            out.append("The same plan in pieces (local) and in memory:")
        elif kind == "engines":
            out.append("One plan and seed on every engine, and the hash of the released file:")
        elif kind == "rules":
            out.append(
                "A business survey with 14 rules; records that break one before, and in the "
                "written file, counted by DuckDB:"
            )
        rows = []
        for name, own in sorted(known[kind].items(), key=lambda one: one[1]["seconds"]):
            row = {first: name, "seconds": f"{own['seconds']:.0f}", "MB": f"{own['megabytes']:.0f}",
                   "loss": f"{own['loss']:.3f}"}  # fmt: skip
            if kind == "sizes":
                row["microseconds a record"] = (
                    f"{1e6 * own['seconds'] / int(name.replace(',', '')):.0f}"
                )
            for more in ("smallest", "before", "after", "bytes"):
                if more in own:
                    row[more] = f"{own[more]:,}" if more != "bytes" else str(own[more])
            rows.append({**row, "load": f"{own['load']:.1f}", "measured": own["date"]})
        out.append(table(rows))
    for name, own in known.get("faults", {}).items():
        out.append(
            f"{own['kills']} times the driver or a worker was killed (kill -9) at a random moment "
            f"of a run on {name} records, and resumed: {own['runs']} releases, "
            f"{own['other_bytes']} of them with other bytes than an undisturbed run."
        )
    a, b, rows = projection()
    out.append(
        f"A cost model, fitted to the first table: {a:.0f} s + {1e6 * b:.0f} microseconds a record "
        f"on two cores. **A projection, not a measurement**, if cores share the work evenly and "
        f"disks and network keep up; 256 cores are {CLUSTER}:\n\n" + table(rows)
    )
    return "\n\n".join(out)


def main() -> None:
    what, *given = sys.argv[1:]
    if what == "sizes":
        sizes([int(one) for one in given])
    else:
        {"rules": rules, "quality": quality, "faults": faults, "engines": engines}[what](
            int(given[0]), *given[1:]
        )


if __name__ == "__main__":
    main()
