"""The attacks that are tried on every candidate: some of the registry of `tessella.risk`.

What does not fit a candidate is skipped, and its point lacks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..risk.assessing.attacks import ATTACKS as ALL
from ..risk.assessing.attacks import Attack, Case
from ..risk.assessing.attacks import find_attacks as find

__all__ = ["ATTACKS", "SAMPLE", "Attack", "Case", "find_attacks"]

SAMPLE = 10_000  # records that are attacked in a larger table: shares are known to one point

# In the order in which ties for the worst are named.
TRIED = ("euclidean", "mahalanobis", "learned", "transparency", "gower", "interval")
ATTACKS: dict[str, Attack] = {name: ALL[name] for name in TRIED}


def find_attacks(given: Iterable[Any] | None) -> tuple[Attack, ...]:
    """Return attacks by name, or as they are; all of the registry where none are given."""
    return tuple(ATTACKS.values()) if given is None else find(given, ATTACKS)
