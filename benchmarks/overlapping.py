"""Loss of overlapping microaggregation beside that of groups, at the same probability of 1/k.

Each row has the expected IL = 100 SSE / SST of the z-scored table when every record is named with a
probability of at most 1/k, its lower bound, the IL of the `Search` that it starts from, and what we
prove that no grouping into k goes below. Seconds are of one processor, without compilation, and
include the `Search`. Run as `python -m benchmarks.overlapping`, with `--large` for 100,000 records.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.tables import DATASETS, Floats, standardised, table
from tessella.grouping import lower_bound
from tessella.grouping.covering import Covering, find_covering
from tessella.kernels.covering import draw_matching


def tables(names: list[str], large: bool) -> Iterator[tuple[str, Floats]]:
    if large:
        yield "normal 100,000 x 10", np.random.default_rng(0).normal(size=(100_000, 10))
    else:
        yield from ((name, standardised(name)) for name in names)


def measure(name: str, X: Floats, k: int, effort: str, bound: str) -> dict[str, object]:
    began = time.process_time()
    found = find_covering(X, np.ones(len(X)), k, effort=effort, seed=0)
    seconds = time.process_time() - began
    held = np.bincount(found.members.ravel(), minlength=len(X))
    distinct = (np.diff(np.sort(found.members, axis=1), axis=1) > 0).all()
    share = 100 / ((X - X.mean(axis=0)) ** 2).sum()
    crisp = None if bound == "none" else share * lower_bound(X, k, effort=bound).value
    return {
        "table": name,
        "k": k,
        "overlapping": f"{share * found.sse:.4f}",
        "its bound": f"{share * found.bound:.4f}",
        "Search": f"{share * found.crisp:.4f}",
        "no grouping below": "" if crisp is None else f"{crisp:.4f}",
        "greatest posterior": f"1/{k}" if distinct and (held == k).all() else "broken",
        "seconds": f"{seconds:.0f}",
    }


def frequencies(covering: Covering, draws: int) -> tuple[Floats, float]:
    """Draw many times; return how often each membership was drawn, and its standard error."""
    n, k = covering.members.shape
    random, counts = np.random.default_rng(1), np.zeros((n, n))
    for seed in range(draws):
        words = random.integers(0, 2**53, n * k + 8)
        counts[np.arange(n), draw_matching(covering.members, words, seed)] += 1
    holds = np.zeros((n, n), bool)
    holds[np.arange(n)[:, None], covering.members] = True
    if counts[~holds].any():
        raise AssertionError("a record was drawn for a group that it is not in")
    return counts[holds] / draws, float(np.sqrt(1 / k * (1 - 1 / k) / draws))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--k", nargs="+", type=int, default=[3, 5, 10])
    parser.add_argument("--effort", default="standard")
    parser.add_argument("--bound", default="standard", help="effort of the crisp bound, or none")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--draws", type=int, help="only draw so often, 300 records, k = 5")
    given = parser.parse_args()
    if given.draws:
        X = np.random.default_rng(0).normal(size=(300, 2))
        covering = find_covering(X, np.ones(300), 5, effort="quick", seed=0)
        found, error = frequencies(covering, given.draws)
        print(f"farthest from 1/5: {np.abs(found - 0.2).max() / error:.2f} standard errors")
        return
    find_covering(
        np.random.default_rng(0).normal(size=(60, 3)), np.ones(60), 3, effort="quick", seed=0
    )
    rows = []
    for name, X in tables(given.datasets, given.large):
        for k in [5] if given.large else given.k:
            rows.append(measure(name, X, k, given.effort, "quick" if given.large else given.bound))
            print(rows[-1], flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
