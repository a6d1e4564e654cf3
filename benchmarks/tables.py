"""What the benchmarks share: the public tables on one scale, and how rows become a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.datasets import load_census, load_eia, load_tarragona

Floats = NDArray[np.float64]

DATASETS = {"Tarragona": load_tarragona, "Census": load_census, "EIA": load_eia}


def zscored(X: ArrayLike) -> Floats:
    """Bring columns to mean zero and variance one, that of the population (ddof = 0)."""
    values = np.asarray(X, dtype=np.float64)
    return (values - values.mean(axis=0)) / values.std(axis=0)


def standardised(name: str) -> Floats:
    return zscored(DATASETS[name](frame="numpy"))


def table(rows: Iterable[Mapping[str, object]]) -> str:
    """Write rows of equal keys as a Markdown table."""
    rows = list(rows)
    lines = ["| " + " | ".join(rows[0]) + " |", "|---" * len(rows[0]) + "|"]
    lines += ["| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows]
    return "\n".join(lines)
