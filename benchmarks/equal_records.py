"""Tables with many equal records: what they cost a grouping, beside a table without.

Nine values in ten are zero. A structure that takes equal records one by one would take the square
of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tessella.grouping import CBFS, IGD, MDAV, VMDAV, OrderedGrouping, RepOrdMic, Search

GROUPINGS: dict[str, Callable[[], object]] = {
    "MDAV": lambda: MDAV(5),
    "V-MDAV": lambda: VMDAV(5),
    "CBFS": lambda: CBFS(5),
    "IGD": lambda: IGD(3, start=OrderedGrouping(order="zscore")),
    "OrderedGrouping": lambda: OrderedGrouping(3, order="zscore"),
    "RepOrdMic": lambda: RepOrdMic(5, max_clusters=40, random_state=0),
    "Search quick": lambda: Search(3, effort="quick", random_state=0),
}


def seconds_of(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def measure(n: int = 20_000, d: int = 4) -> list[dict[str, object]]:
    random = np.random.default_rng(0)
    usual = random.standard_normal((n, d))
    equal = np.where(random.random((n, d)) < 0.9, 0.0, random.integers(0, 5, (n, d)) * 1.0)
    rows = []
    for name, make in GROUPINGS.items():
        make().fit(usual[:3_000])  # compiled
        rows.append(
            {
                "grouping": name,
                "no equal records": seconds_of(lambda make=make: make().fit(usual)),
                "many equal records": seconds_of(lambda make=make: make().fit(equal)),
            }
        )
    return rows


def main() -> None:
    for row in measure():
        print(
            f"{row['grouping']:<16} {row['no equal records']:7.2f} s without equal records "
            f"{row['many equal records']:7.2f} s with"
        )


if __name__ == "__main__":
    main()
