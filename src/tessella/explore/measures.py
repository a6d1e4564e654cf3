"""The losses that are measured of every candidate, each also on a scale of 0 to 100.

The first of the measures counts in the score.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..exceptions import BadOptionError, UnknownOptionError
from ..risk.assessment import Attack, Case
from ..risk.attacks import ATTACKS as ALL
from ..risk.attacks import find_attacks as find
from .task import Task

__all__ = [
    "ATTACKS",
    "MEASURES",
    "SAMPLE",
    "Attack",
    "Case",
    "find_attacks",
    "find_measures",
    "measure_losses",
]

SAMPLE = 10_000  # records that are attacked in a larger table: shares are known to one point

# In the order in which ties for the worst are named.
TRIED = ("euclidean", "mahalanobis", "learned", "transparency", "gower", "interval")
ATTACKS: dict[str, Attack] = {name: ALL[name] for name in TRIED}


def find_attacks(given: Iterable[Any] | None) -> tuple[Attack, ...]:
    """Return attacks by name, or as they are; all of the registry where none are given."""
    return tuple(ATTACKS.values()) if given is None else find(given, ATTACKS)


# From a measure to the largest value that it counts up to, which is 100 on the scale of scores.
MEASURES: dict[str, float] = {
    "values": 100.0,  # of its own: see `measure_losses`
    "sse_sst": 1.0,
    "il1s": 1.0,
    "pil": 100.0,
    "quantiles": 1.0,
    "kolmogorov_smirnov": 1.0,
    "wasserstein": 1.0,
    "eigenvalues": 1.0,
    "principal_components": 1.0,
    "correlations_absolute": 2.0,
    "covariances_absolute": 1.0,
    "variances_absolute": 1.0,
    "means_absolute": 1.0,
    "contingency": 1.0,
    "entropy": 1.0,
    "mutual_information": 1.0,
}
DEFAULT = ("values", "sse_sst", "il1s", "pil")


def find_measures(given: Iterable[str] | None) -> tuple[str, ...]:
    """Check names of measures; the default where none are given."""
    if given is None:
        return DEFAULT
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadOptionError("measures", given, "a list of names of measures")
    names = tuple(given)
    for name in names:
        if name not in MEASURES:
            raise UnknownOptionError("measure", name, MEASURES)
    if not names or len(set(names)) < len(names):
        raise BadOptionError("measures", names, "at least one measure, and each once")
    return names


def measure_losses(task: Task, masked: Any, names: tuple[str, ...]) -> dict[str, float]:
    """Measure losses on a scale of 0 to 100; those that do not fit the columns are left out.

    "values" is the share of the variation of values that is lost, averaged over columns: of a
    column of numbers SSE/SST, at most 1; of categories H(X given Y) / H(X).
    """
    from ..loss import measure

    summary = {loss.name: loss for loss in measure(task.source, masked, columns=task.masked)}
    out = {}
    for name in names:
        if name == "values":
            shares = [
                min(share, 1.0)
                for part in ("sse_sst", "entropy")
                if part in summary
                for share in summary[part].by_column.values()
            ]
            out[name] = 100 * sum(shares) / len(shares)
        elif name in summary:
            out[name] = 100 * min(summary[name].value / MEASURES[name], 1.0)
    return out
