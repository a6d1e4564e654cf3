"""All generic measures of a million records: time, and memory beside the two tables.

Each case runs in a process of its own: the peak of resident memory while measuring, above what was
resident with the two tables in memory and everything compiled and imported.
"""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.tables import table as page_table

N, D = 1_000_000, 10

SCRIPT = """
import json, sys, threading, time
import numpy as np
import pandas as pd
import psutil
from tessella.loss import measure

n, d, case = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
random = np.random.default_rng(0)
if case == "categories":
    x = random.integers(0, 30, (n, d))
    y = np.where(random.random((n, d)) < 0.2, random.integers(0, 30, (n, d)), x)
    x, y = (pd.DataFrame(np.char.add("c", t.astype("U2")).astype(object)).astype("category")
            for t in (x, y))
    size = int(x.memory_usage().sum() + y.memory_usage().sum())
else:
    x = random.standard_normal((n, d)) @ random.standard_normal((d, d))
    y = x + 0.3 * random.standard_normal((n, d))
    if case == "missing":
        lacking = random.random((n, d)) < 0.05
        x[lacking] = y[lacking] = np.nan
        del lacking
    size = x.nbytes + y.nbytes
    x, y = pd.DataFrame(x), pd.DataFrame(y)
weights = random.uniform(1, 5, n) if case == "weights" else None
measure(x[:1000], y[:1000], weights=None if weights is None else weights[:1000])
me = psutil.Process()
held, peak, ended = me.memory_info().rss, 0, False

def watch():
    global peak
    while not ended:
        peak = max(peak, me.memory_info().rss)
        time.sleep(0.002)

watcher = threading.Thread(target=watch)
watcher.start()
began = time.perf_counter()
summary = measure(x, y, weights=weights)
seconds = time.perf_counter() - began
ended = True
watcher.join()
print(json.dumps({"seconds": seconds, "tables": size, "beside": peak - held, "many": len(summary)}))
"""


def measure(n: int = N) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = []
    for case in ("numbers", "weights", "missing", "categories"):
        call = [sys.executable, "-c", SCRIPT, str(n), str(D), case]
        done = subprocess.run(call, check=True, capture_output=True, text=True)
        rows.append({"case": case} | json.loads(done.stdout.splitlines()[-1]))
    return rows


CASES = {
    "numbers": "10 of numbers",
    "weights": "10 of numbers, with weights",
    "missing": "10 of numbers, 5 % of the cells missing",
    "categories": "10 of categories, 30 each",
}


def page() -> str:
    rows = [
        {
            "columns": CASES[str(row["case"])],
            "measures": row["many"],
            "seconds": f"{row['seconds']:.1f}",
            "both tables, MB": f"{float(row['tables']) / 1e6:.0f}",
            "beside them, MB": f"{float(row['beside']) / 1e6:.0f}",
        }
        for row in measure()
    ]
    return (
        f"## Information loss of {N:,} records\n\n`tessella.loss.measure`: all generic measures "
        "that fit. Memory is the peak of resident memory above what was there with the two tables."
        "\n\n" + page_table(rows)
    )


def main() -> None:
    for row in measure():
        print(
            f"{row['case']:>10}: {row['seconds']:.1f} s, "
            f"tables {float(row['tables']) / 1e6:.0f} MB, "
            f"beside them {float(row['beside']) / 1e6:.0f} MB"
        )


if __name__ == "__main__":
    main()
