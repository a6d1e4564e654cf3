"""How often fuzzy c-means finds the objectives published for Census.

Torra, Endo and Miyamoto (2009) print the least objectives of 20 random starts. Their settings
follow from these values: the deviation of the population (ddof = 0) and m = 1.5. Each row counts
how many seeds reach the value, and how many single starts do: spread out (k-means++), or at random
as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.tables import standardised
from benchmarks.tables import table as page_table
from tessella.fuzzy import FuzzyCMeans

M = 1.5
CASES = {  # columns, centres -> what counts as reaching the published 225.26, 107.06, 2826
    (2, 10): 225.27,
    (2, 20): 107.07,
    (13, 10): 2826.3,
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One setting, over many seeds."""

    columns: int
    c: int
    published: float
    seeds: int
    reached: int  # seeds whose best of n_init starts is not above the published value
    worst: float  # the largest objective that a seed ended with
    best: float  # the least seen by any start of any kind
    best_seeds: int  # seeds that end within 1e-6 of it
    spread_share: float  # of single k-means++ starts that reach the published value
    random_starts: int
    random_reached: int
    random_median: float


def measure(seeds: int = 20, n_init: int = 20, random_starts: int = 60) -> list[Row]:
    census, rows = standardised("Census"), []
    for (columns, c), published in CASES.items():
        X = census[:, :columns]
        fits = [FuzzyCMeans(c, m=M, n_init=n_init, random_state=s).fit(X) for s in range(seeds)]
        ends = np.array([fit.objective_ for fit in fits])
        spread = np.concatenate([fit.objectives_ for fit in fits])
        plain = FuzzyCMeans(
            c, m=M, init="records", n_init=random_starts, accelerate=False, random_state=0
        )
        random = plain.fit(X).objectives_
        best = min(spread.min(), random.min())
        rows.append(
            Row(
                columns=columns,
                c=c,
                published=published,
                seeds=seeds,
                reached=int((ends <= published).sum()),
                worst=float(ends.max()),
                best=float(best),
                best_seeds=int((ends <= best * (1 + 1e-6)).sum()),
                spread_share=float((spread <= published).mean()),
                random_starts=random_starts,
                random_reached=int((random <= published).sum()),
                random_median=float(np.median(random)),
            )
        )
    return rows


def page() -> str:
    rows = [
        {
            "columns": r.columns,
            "c": r.c,
            "at most": f"{r.published:g}",
            "seeds that reach it": f"{r.reached} of {r.seeds}",
            "worst seed": f"{r.worst:.3f}",
            "least seen": f"{r.best:.3f}",
            "seeds that find that": f"{r.best_seeds} of {r.seeds}",
            "single spread starts that reach it": f"{r.spread_share:.0%}",
            "single random starts that reach it": f"{r.random_reached} of {r.random_starts}",
            "median of random starts": f"{r.random_median:.2f}",
        }
        for r in measure()
    ]
    return (
        "## Fuzzy c-means: the published objectives\n\n"
        "Census, population deviation, m = 1.5. Torra, Endo and Miyamoto (2009) print 225.26, "
        "107.06 and 2826 (digits cut off). A seed is `FuzzyCMeans(n_init=20)`; its 20 starts "
        "are spread out (k-means++). A random start takes c records, as in the paper, and steps "
        "without leaps. A value below the published one is a better optimum.\n\n" + page_table(rows)
    )


def main() -> None:
    print(page())


if __name__ == "__main__":
    main()
