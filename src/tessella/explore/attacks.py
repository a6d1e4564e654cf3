"""The attacks that are tried on every candidate: those of `tessella.risk.assess`, and intervals.

What does not fit a candidate is not tried, and its point lacks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._types import Floats, Truths
from ..risk.assessing.attacks import ATTACKS as ALL
from ..risk.assessing.attacks import Attack, Case
from ..risk.assessing.attacks import find_attacks as find
from ..risk.estimate import Estimate

__all__ = ["ATTACKS", "SAMPLE", "Attack", "Case", "find_attacks"]


TRIED = ("euclidean", "mahalanobis", "learned", "transparency", "gower")
WINDOW = 0.01  # interval disclosure: ranks either way, as a share of the records
SAMPLE = 10_000  # records that are attacked in a larger table: shares are known to one point


def _interval(case: Case) -> Estimate:
    r"""Count the numbers that lie within 1 % of the ranks around the released number.

    Notes
    -----
    With F the original's distribution function, a number x is found by its released y if the
    share of originals strictly between x and y is at most 1 %. The baseline is the same count
    if released numbers were shuffled, exactly: about 2 % for a column of different numbers, much
    where few numbers are frequent. `tessella.risk.interval_disclosure` counts ranks in the released
    table, where an interval around a value that many share is wide: guessing would reach much
    there, and a coarser table would seem to tell more. Ranks of the original weigh all alike.
    """
    sides = case.sides
    found = known = guessed = 0.0
    for j in np.flatnonzero(~sides.nominal):
        x, y = sides.B[sides.truth, j], sides.A[:, j]
        both = ~(np.isnan(x) | np.isnan(y))
        x, y = x[both], y[both]
        if not len(x):
            continue
        order = np.sort(x)
        found += float(_near(order, x, y).sum())
        guessed += _guessed(order, y)
        known += len(x)
    estimate: Estimate = Estimate.of(
        found, max(int(known), 1), baseline=guessed / max(known, 1.0),
        attack=f"interval of {WINDOW:.0%} of the ranks around the released number",
        assumptions=("the intruder knows which released record is whose",), exact=True,
    )  # fmt: skip
    return estimate


def _near(order: Floats, x: Floats, y: Floats) -> Truths:
    """Say whether at most WINDOW n originals lie strictly between x and y."""
    low, high = np.minimum(x, y), np.maximum(x, y)
    between = np.searchsorted(order, high, "left") - np.searchsorted(order, low, "right")
    near: Truths = between <= WINDOW * len(order)
    return near


def _guessed(order: Floats, y: Floats) -> float:
    """Return how many numbers would be found, as expected, if released ones were shuffled."""
    n, reach = len(order), int(WINDOW * len(order))
    above = np.searchsorted(order, order, "right") + reach
    below = np.searchsorted(order, order, "left") - 1 - reach
    high = np.where(above < n, order[np.minimum(above, n - 1)], np.inf)
    low = np.where(below >= 0, order[np.maximum(below, 0)], -np.inf)
    released = np.sort(y)
    hits = np.searchsorted(released, high, "right") - np.searchsorted(released, low, "left")
    return float(hits.sum() / n)


# In the order in which ties for the worst are named.
ATTACKS: dict[str, Attack] = {
    **{name: ALL[name] for name in TRIED},
    "interval": Attack(
        name="interval",
        about="attribute",
        says="takes the released number for the original, within 1 % of the ranks",
        run=_interval,
        unfit=lambda case: "there are no numbers" if case.sides.nominal.all() else "",
    ),
}


def find_attacks(given: Iterable[Any] | None) -> tuple[Attack, ...]:
    """Return attacks by name, or as they are; all of the registry where none are given."""
    return tuple(ATTACKS.values()) if given is None else find(given, ATTACKS)
