"""From file to release: a CSV file of 20 columns, k = 5, quick effort, release and both reports.

An identifier, two categories and 17 correlated numbers, some of them whole. The whole plan runs
in a process of its own, so that the peak of memory is its own. Compiling is not counted: a small
table goes first.

`python -m benchmarks.publishing default` takes 5,000 people in 12 columns of every kind instead:
`protect` as it is by default, best of three, beside standard effort.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

SIZES = (100_000, 1_000_000)
NUMBERS = 17

SCRIPT = """
import json, resource, sys, time
from pathlib import Path
from tessella import publish
from tessella.planfile import read_plan

home = Path(sys.argv[1])
publish(read_plan(home / "small.toml"), overwrite=True)
began, spent = time.perf_counter(), time.process_time()
done = publish(read_plan(home / "large.toml"), overwrite=True)
seconds = time.perf_counter() - began
print(json.dumps({
    "seconds": seconds,
    "cpu_seconds": time.process_time() - spent,
    "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    "steps": {entry.method: round(entry.seconds, 1) for entry in done.protocol},
    "loss": done.release.loss,
    "risk": done.risk.value,
    "attacks": {one.name: round(one.seconds, 1) for one in done.risk.tried},
    "audit": done.release.audit.passed,
}))
"""

PLAN = """
version = 1
seed = 1
[input]
file = "{name}.csv"
{columns}
[[steps]]
method = "drop"
columns = ["id"]
[[steps]]
method = "protect"
k = 5
options = {{ effort = "quick" }}
[measures]
risk = "quick"
[output]
file = "{name}-release.csv"
external_report = "{name}-report.html"
internal_report = "{name}-confidential.html"
manifest = "{name}-manifest.json"
"""


def write(home: Path, name: str, n: int) -> None:
    """Write a table and its plan."""
    import pyarrow as pa
    from pyarrow import csv

    random = np.random.default_rng(0)
    factors = random.standard_normal((n, 4))
    values = factors @ random.standard_normal((4, NUMBERS)) + random.standard_normal((n, NUMBERS))
    table = {
        "id": 10_000_000 + random.permutation(n),
        "region": np.array(["north", "east", "south", "west"])[random.integers(0, 4, n)],
        "branch": np.array(["trade", "crafts", "services"])[random.integers(0, 3, n)],
    }
    kinds = {"id": "integer", "region": "nominal", "branch": "nominal"}
    for j in range(NUMBERS):
        whole = j % 3 == 0
        own = np.round(1000 * np.exp(values[:, j] / 3), 0 if whole else 2)
        table[f"x{j + 1}"] = own.astype(np.int64) if whole else own
        kinds[f"x{j + 1}"] = "integer" if whole else "continuous"
    csv.write_csv(pa.table(table), home / f"{name}.csv")
    columns = "\n".join(
        f'[columns.{column}]\nkind = "{kind}"' + ('\nrole = "identifier"' if column == "id" else "")
        for column, kind in kinds.items()
    )
    (home / f"{name}.toml").write_text(PLAN.format(name=name, columns=columns))


def measure(sizes: tuple[int, ...] = SIZES) -> list[dict[str, object]]:
    """Publish a table of each size."""
    rows = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            write(home, "small", 2_000)
            write(home, "large", n)
            done = subprocess.run(
                [sys.executable, "-c", SCRIPT, folder], check=True, capture_output=True, text=True
            )
            rows.append({"n": n, **json.loads(done.stdout.splitlines()[-1])})
    return rows


def measure_default(n: int = 5_000) -> dict[str, object]:
    """Protect a mixed table by default and with standard effort: seconds after compilation."""
    import warnings

    from benchmarks.risk_speed import made_mixed
    from tessella import protect

    warnings.simplefilter("ignore")
    table = made_mixed(6 * n // 5)[0].drop(columns="c6").dropna()[:n]  # parts would be smaller
    protect(table[: n // 2], k=3, random_state=0)
    found: dict[str, object] = {"n": n, "columns": table.shape[1]}
    for name, options, times in (("default", None, 3), ("standard", {"effort": "standard"}, 1)):
        seconds = []
        for _ in range(times):
            began = perf_counter()
            release = protect(table, k=3, options=options, random_state=0)
            seconds.append(perf_counter() - began)
        found[name] = {"seconds": round(min(seconds), 1), "loss": round(release.loss, 3)}
    return found


def main() -> None:
    if sys.argv[1:] == ["default"]:
        print(json.dumps(measure_default()))
        return
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    for row in measure(sizes):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
