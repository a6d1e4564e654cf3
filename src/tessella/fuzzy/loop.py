"""The one alternating loop: degrees from centres, centres from degrees, until they rest.

Each half minimises the same objective with the other half held fixed, so it never rises. Variants
differ in two parts only: how records are swept (`step`), and where centres may be (`settle`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.degrees import NEAREST, Law
from .field import Field, Swept

__all__ = ["Run", "alternate"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One descent, from a start to a rest."""

    centres: Floats
    history: list[float]  # the objective of the centres of each sweep; the last is theirs
    rests: bool  # whether the centres came to rest

    @property
    def objective(self) -> float:
        """The last, and least, value of the objective."""
        return self.history[-1]


def alternate(
    field: Field,
    centres: Floats,
    law: Law,
    *,
    step: Callable[[Floats], Swept],
    settle: Callable[[Floats], Floats],
    max_iter: int,
    tol: float,
) -> Run:
    """Move centres until none moves by more than tol, in units of the table's spread.

    Parameters
    ----------
    field : Field
        The records.
    centres : ndarray of shape (c, d)
        The start.
    law : Law
        How degrees follow from distances.
    step : function
        Sweeps the records: centres in; objective, better centres and their weights out.
    settle : function
        Brings each centre to the nearest place where it may be.
    max_iter : int
        The largest number of sweeps.
    tol : float
        The distance that counts as rest.
    """
    centres, history, rests = settle(centres), [], False
    for _ in range(max_iter):
        swept = step(centres)
        history.append(swept.objective)
        better = settle(_fill_empty(field, swept, law))
        moved = float(((better - centres) ** 2).sum(axis=1).max()) ** 0.5
        if moved <= tol * field.size:
            rests = True  # they stay: a descent from a place of rest ends exactly there
            break
        centres = better
    if not rests:
        history.append(step(centres).objective)
    return Run(centres=centres, history=history, rests=rests)


def _fill_empty(field: Field, swept: Swept, law: Law) -> Floats:
    """Move centres that no record belongs to onto the records that are worst off.

    Another centre harms no record, so the objective does not rise.
    """
    empty = np.flatnonzero(swept.weights == 0)
    if len(empty) == 0:
        return swept.centres
    centres = swept.centres.copy()
    near = Law(NEAREST, 0.0, law.neglect)
    outlook, _ = field.draw(centres, near, np.full(field.n, -1.0))
    worst = np.argsort(-(field.weights * outlook.square), kind="stable")[: len(empty)]
    centres[empty] = field.records[worst]
    return centres
