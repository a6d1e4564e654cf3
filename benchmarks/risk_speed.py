"""Risk: how long linkage and a whole assessment take.

Linkage is exact. The scan beside it is the straightforward way, all pairs in blocks of NumPy, on a
sample of records and scaled up; sdcMicro's figure is the published one of its own O(n^3) linkage.
"""

from __future__ import annotations

from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import table as page_table
from tessella import Microaggregation
from tessella.datasets import load_census
from tessella.masking import NoiseAddition, RankSwapping
from tessella.risk import assess, attack, link

LINKED = ((4_000, 10), (100_000, 10), (1_000_000, 5), (1_000_000, 8))
MIXED = 100_000  # records of six numbers and seven categories
SCANNED = 400  # records of the plain scan
SHOWN_SCAN = 200_000  # records up to which the scan is measured beside


def made(n: int, d: int) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    original = random.normal(size=(n, d))
    return original, original + 0.3 * random.normal(size=(n, d))


def scan_seconds(original: Any, masked: Any) -> float:
    """Seconds of an all-pairs scan, measured on some records and scaled to all."""
    some = masked[:: max(1, len(masked) // SCANNED)][:SCANNED]
    squares = (original**2).sum(axis=1)
    began = perf_counter()
    for start in range(0, len(some), 50):
        block = some[start : start + 50]
        (squares - 2 * block @ original.T).argmin(axis=1)
    return (perf_counter() - began) * len(masked) / len(some)


def measure_linkage(cases: Any = LINKED) -> list[dict[str, Any]]:
    link(*made(500, 4))  # compiles
    rows = []
    for n, d in cases:
        original, masked = made(n, d)
        repeats = 3 if n <= 100_000 else 1
        times = []
        for _ in range(repeats):
            began = perf_counter()
            found = link(original, masked)
            times.append(perf_counter() - began)
        scan = scan_seconds(original, masked) if n <= SHOWN_SCAN else float("nan")
        rows.append({"n": n, "d": d, "seconds": min(times), "scan": scan, "linked": found.value})
    return rows


def made_mixed(n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Six related numbers and seven categories, 2 % of four columns missing; masked by noise."""
    random = np.random.default_rng(0)
    factors = random.normal(size=(n, 3))
    tables: list[dict[str, Any]] = [{}, {}]
    for j in range(6):
        x = 1000 * np.exp((factors @ random.normal(size=3) + 0.7 * random.normal(size=n)) / 3)
        tables[0][f"x{j}"] = x.round(j % 2)
        tables[1][f"x{j}"] = (x + 0.1 * x.std() * random.normal(size=n)).round(2)
    for j, levels in enumerate((2, 2, 3, 4, 6, 8, 20)):
        score = factors @ random.normal(size=3) + random.normal(size=n)
        codes = np.searchsorted(np.quantile(score, np.sort(random.random(levels - 1))), score)
        names = np.array([f"v{level}" for level in range(levels)])
        tables[0][f"c{j}"] = names[codes]
        tables[1][f"c{j}"] = names[
            np.where(random.random(n) < 0.1, random.permutation(codes), codes)
        ]
    original, masked = map(pd.DataFrame, tables)
    for name in ("x1", "x4", "c2", "c5"):
        lacking = random.random(n) < 0.02
        original[name], masked[name] = (one[name].mask(lacking) for one in (original, masked))
    return original, masked


def measure_mixed(n: int = MIXED) -> list[dict[str, Any]]:
    """Gower's distance, whole assessments of a mixed table, and the attack on rank swapping."""
    numbers = made(n, 10)[0]
    swapped = RankSwapping(10, random_state=0).fit_transform(numbers)
    some = made_mixed(500)
    small = [one[:500] for one in (numbers, RankSwapping(10).fit_transform(numbers[:500]))]
    tables = made_mixed(n)
    work: dict[str, Any] = {
        "link by Gower's distance": (link, {"distance": "gower"}, some, tables),
        "assess, quick": (assess, {"effort": "quick", "random_state": 0}, some, tables),
        "assess, standard": (assess, {"effort": "standard", "random_state": 0}, some, tables),
        "attack on rank swapping, 10 %": (
            attack, {"method": "rank swapping", "percent": 10}, small, (numbers, swapped)
        ),
    }  # fmt: skip
    rows = []
    for name, (run, options, first, both) in work.items():
        run(*first, **options)  # compiles
        began, spent = perf_counter(), process_time()
        found = run(*both, **options)
        seconds, computing = perf_counter() - began, process_time() - spent
        rows.append({"what": name, "seconds": seconds, "computing": computing, "it": found.value})
    return rows


def measure_assessments() -> list[dict[str, Any]]:
    table = load_census()
    maskers = {
        "microaggregation, k = 5": Microaggregation(5, grouping="mdav"),
        "noise of 0.3 deviations": NoiseAddition(0.3, random_state=0),
        "rank swapping, 10 %": RankSwapping(percent=10, random_state=0),
    }
    rows = []
    for name, masker in maskers.items():
        masked = masker.fit_transform(table)
        for effort in ("quick", "standard"):
            assess(table.iloc[:200], masked.iloc[:200], effort=effort, random_state=0)  # compiles
            began = perf_counter()
            found = assess(table, masked, method=masker, effort=effort, random_state=0)
            seconds = perf_counter() - began
            worst = found.worst
            rows.append(
                {
                    "masking": name,
                    "effort": effort,
                    "seconds": seconds,
                    "attacks": len(found.tried),
                    "worst": "" if worst is None else worst.name,
                    "value": found.value,
                    "euclidean": found["euclidean"].value,
                }
            )
    return rows


def page() -> str:
    linked = [
        {
            "records": f"{row['n']:,} x {row['n']:,}",
            "d": row["d"],
            "seconds": f"{row['seconds']:.2f}",
            "all pairs in NumPy": "" if np.isnan(row["scan"]) else f"{row['scan']:.1f}",
            "linked": f"{row['linked']:.1%}",
        }
        for row in measure_linkage()
    ]
    assessed = [
        {
            "Census masked by": row["masking"],
            "effort": row["effort"],
            "seconds": f"{row['seconds']:.1f}",
            "attacks": row["attacks"],
            "worst attack": row["worst"],
            "it finds": f"{row['value']:.1%}",
            "Euclidean linkage": f"{row['euclidean']:.1%}",
        }
        for row in measure_assessments()
    ]
    mixed = [
        {
            f"{MIXED:,} records": row["what"],
            "seconds": f"{row['seconds']:.1f}",
            "seconds of computing": f"{row['computing']:.1f}",
            "it finds": f"{row['it']:.1%}",
        }
        for row in measure_mixed()
    ]
    return (
        "## Risk: time of linkage and assessment\n\nNormal data with noise of 0.3 deviations, "
        "exact ranks; the time of all pairs is measured on 400 records and scaled. sdcMicro's "
        "linkage took 139 s for 4,000 records.\n\n"
        + page_table(linked)
        + "\n\nSix numbers, seven categories, 2 % of four columns missing, masked by noise; rank "
        "swapping: ten unrelated numbers.\n\n"
        + page_table(mixed)
        + "\n\n`assess` on Census (1,080 records, 13 variables), the method known:\n\n"
        + page_table(assessed)
    )


def main() -> None:
    for row in [*measure_linkage(LINKED[:2]), *measure_mixed(), *measure_assessments()]:
        print(row)


if __name__ == "__main__":
    main()
