"""Fuzzy c-means against scikit-fuzzy and fuzzy-c-means, and with as many centres as n / k.

Same table, same first centres, same number of sweeps, and the centres are checked to be the same.
All are timed in one process, in turns; memory is measured in a process for each. fuzzy-c-means asks
for an older typer and numpy than tessella runs with, so it is no part of the extra `bench`: install
it with `pip install --no-deps "fuzzy-c-means>=2.3" tabulate tqdm pydantic`, or its column is empty.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.tables import Floats
from benchmarks.tables import table as page_table
from tessella import FuzzyMicroaggregation
from tessella.exceptions import UnfinishedWarning
from tessella.fuzzy import FuzzyCMeans
from tessella.masking import fuzzy_microaggregation

M = 1.2
SWEEPS = (10, 30)  # of two fits: what the second takes longer is of sweeps alone
CASES = ((100_000, 10, 50), (10_000, 10, 100))  # records, columns, centres
MANY = ((100_000, 3), (100_000, 10))  # records, columns; c = n / k
K, M1 = 5, 1.1


def memberships(X: Floats, V: Floats) -> Floats:
    """Degrees of the first centres: the peers start from these, of shape (n, c)."""
    squares = np.stack([((X - v) ** 2).sum(axis=1) for v in V], axis=1)
    squares = np.maximum(squares, np.finfo(float).tiny)
    ratio = (squares / squares.min(axis=1, keepdims=True)) ** (-1 / (M - 1))
    return ratio / ratio.sum(axis=1, keepdims=True)


def ours(X: Floats, V: Floats, U: Floats | None = None, *, sweeps: int = 10) -> Floats:  # noqa: ARG001
    model = FuzzyCMeans(len(V), m=M, init=V, accelerate=False, max_iter=sweeps, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfinishedWarning)
        return model.fit(X).cluster_centers_


def scikit_fuzzy(X: Floats, V: Floats, U: Floats | None = None, *, sweeps: int = 10) -> Floats:
    from skfuzzy.cluster import cmeans

    U = memberships(X, V) if U is None else U
    return cmeans(X.T, len(V), M, error=0, maxiter=sweeps, init=U.T)[0]


def fuzzy_c_means(X: Floats, V: Floats, U: Floats | None = None, *, sweeps: int = 10) -> Floats:
    from fcmeans import FCM

    U = memberships(X, V) if U is None else U

    class Given(FCM):
        def _init_u(self, X: Floats) -> None:  # noqa: ARG002
            self.u = U

    model = Given(n_clusters=len(V), m=M, max_iter=sweeps, error=1e-9)
    model.fit(X)
    return model.centers


METHODS: dict[str, Callable[..., Floats]] = {
    "tessella": ours,
    "scikit-fuzzy": scikit_fuzzy,
    "fuzzy-c-means": fuzzy_c_means,
}


def installed() -> list[str]:
    """Names of the methods that can run here."""
    X, V = table_and_start(300, 3, 4)
    found = []
    for name, method in METHODS.items():
        try:
            method(X, V)
            found.append(name)
        except ImportError:
            pass
    return found


def table_and_start(n: int, d: int, c: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d))
    # Not records themselves: a record on a centre is a special case that each treats in its way.
    return X, X[random.choice(n, c, replace=False)] + 0.01 * random.standard_normal((c, d))


def measure(cases: Iterable[tuple[int, int, int]] = CASES) -> list[dict[str, object]]:
    """Time all methods in turns, best of three; compare their centres and their memory."""
    names, rows = installed(), []
    for n, d, c in cases:
        X, V = table_and_start(n, d, c)
        U = memberships(X, V)  # outside the clock: the peers cannot start from centres
        best, centres = {(name, s): np.inf for name in names for s in SWEEPS}, {}
        for _ in range(3):
            for name, sweeps in best:
                began = time.perf_counter()
                centres[name] = METHODS[name](X, V, U, sweeps=sweeps)
                best[name, sweeps] = min(best[name, sweeps], time.perf_counter() - began)
        few, many = SWEEPS
        sweep = {name: (best[name, many] - best[name, few]) / (many - few) for name in names}
        for name in names:
            memory = alone({"method": name, "n": n, "d": d, "c": c})["beyond_mb"]
            rows.append(
                {
                    "n": n, "d": d, "c": c, "method": name, "sweep": sweep[name],
                    "sweep_ratio": sweep[name] / sweep["tessella"], "fit": best[name, many],
                    "fit_ratio": best[name, many] / best["tessella", many], "beyond_mb": memory,
                    "off": float(np.abs(centres[name] - centres["tessella"]).max()),
                }
            )  # fmt: skip
    return rows


def measure_many(cases: Iterable[tuple[int, int]] = MANY, k: int = K) -> list[dict[str, object]]:
    """Run fuzzy microaggregation with n / k centres, each case in a process of its own."""
    return [alone({"method": "mask", "n": n, "d": d, "k": k}) for n, d in cases]


def alone(job: dict[str, object]) -> dict[str, float]:
    """Run one job in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.fuzzy_speed", "--job", json.dumps(job)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_job(job: dict[str, object]) -> dict[str, object]:
    method, n, d = str(job["method"]), int(job["n"]), int(job["d"])
    if method == "mask":
        return mask(n, d, int(job["k"]))
    X, V = table_and_start(n, d, int(job["c"]))
    METHODS[method](X[:1_000], V)  # compiled, imported
    return {"beyond_mb": peak_beyond(lambda: METHODS[method](X, V))}


def mask(n: int, d: int, k: int) -> dict[str, object]:
    """Mask a normal table, and note what the search for centres took."""
    seen: dict[str, object] = {}
    find = fuzzy_microaggregation.find_centres

    def noted(*given: object) -> FuzzyCMeans:
        began = time.perf_counter()
        fitted = find(*given)
        seen.update(sweeps=fitted.n_iter_, c=fitted.n_clusters_)
        seen["centres_seconds"] = time.perf_counter() - began
        return fitted

    fuzzy_microaggregation.find_centres = noted
    X = np.random.default_rng(0).standard_normal((n, d))
    FuzzyMicroaggregation(k=k, m1=M1, random_state=0).fit(X[:3_000])
    masker = FuzzyMicroaggregation(k=k, m1=M1, random_state=0)
    began = time.perf_counter()
    memory = peak_beyond(lambda: masker.fit(X))
    return seen | {
        "n": n, "d": d, "k": k, "seconds": time.perf_counter() - began, "beyond_mb": memory,
        "expected_loss": masker.expected_loss_, "loss": masker.loss_,
    }  # fmt: skip


def peak_beyond(work: Callable[[], object]) -> float:
    """Return how far the process's memory rises above where it stood, in MB."""
    import psutil

    process, done, peak = psutil.Process(), threading.Event(), 0

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, process.memory_info().rss)

    before = process.memory_info().rss
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return max(0, peak - before) / 2**20


def speeds(rows: Iterable[dict[str, object]]) -> str:
    return page_table(
        {
            "n": f"{row['n']:,}",
            "d": row["d"],
            "c": row["c"],
            "method": row["method"],
            "ms a sweep": f"{1000 * row['sweep']:.1f}",
            "times ours": f"{row['sweep_ratio']:.1f}",
            f"fit of {SWEEPS[1]} sweeps, s": f"{row['fit']:.2f}",
            "times our fit": f"{row['fit_ratio']:.1f}",
            "MB beyond the table": f"{row['beyond_mb']:.0f}",
            "centres differ by": f"{row['off']:.1e}",
        }
        for row in rows
    )


def many(rows: Iterable[dict[str, object]]) -> str:
    return page_table(
        {
            "n": f"{row['n']:,}",
            "d": row["d"],
            "k": row["k"],
            "centres": f"{row['c']:,}",
            "seconds": f"{row['seconds']:.0f}",
            "of these, centres": f"{row['centres_seconds']:.0f}",
            "sweeps": row["sweeps"],
            "MB beyond the table": f"{row['beyond_mb']:.0f}",
            "expected loss": f"{row['expected_loss']:.2f} %",
            "loss": f"{row['loss']:.2f} %",
            "an n x c matrix would be": f"{8 * row['n'] * row['c'] / 2**30:.0f} GB",
        }
        for row in rows
    )


def page() -> str:
    return "\n\n".join([OPENING, speeds(measure())])


def page_of_many() -> str:
    return "\n\n".join([THEN, many(measure_many())])


OPENING = f"""## Fuzzy c-means, time and memory

Normal tables, m = {M:g}, the same first centres, the same number of sweeps, the same centres after
them; best of three, in turns in one process. A sweep is what a fit of {SWEEPS[1]} sweeps takes
longer than one of {SWEEPS[0]}, by sweep; our whole fit also checks for collapse and labels the
records. Ours sweeps as the textbook does (no leaps). The peers start from memberships; computing
these is left out of their time. Memory is the rise of a process above where it stood with the
table."""

THEN = f"""## Fuzzy microaggregation with n / k centres

`FuzzyMicroaggregation`, k = {K}, m1 = {M1:g}, from table to masked table, each in a process of its
own. The peers hold several n x c matrices, and cannot run."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--job", type=json.loads, help="run one job and print what it measured")
    parser.add_argument("--skip-many", action="store_true", help="leave out n / k centres")
    given = parser.parse_args()
    if given.job:
        print(json.dumps(run_job(given.job)))
        return
    print(speeds(measure()))
    if not given.skip_many:
        print("\n" + many(measure_many()))


if __name__ == "__main__":
    main()
