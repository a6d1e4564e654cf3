"""The one alternating loop: degrees from centres, centres from degrees, until they rest.

Each half minimises the same objective with the other half held fixed, so it never rises. Variants
differ in two parts only: how records are swept (`step`), and where centres may be (`settle`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._types import Floats
from ..kernels.degrees import Law
from .field import Field, Swept, power_law

__all__ = ["Run", "alternate"]


WINDOW = 6  # steps that a leap looks back on
RIDGE = 1e-10  # relative, against steps that are nearly parallel


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
    fall: float = 0.0,
    accelerate: bool = False,
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
    fall : float
        Centres rest, too, when a sweep lowers the objective by less than this share.
    accelerate : bool
        Leap ahead where the last steps lead, if the objective falls there; else step.
    """
    history: list[float] = []
    centres, rests = settle(centres), False
    ahead = Ahead()
    safe = centres
    for _ in range(max_iter):
        swept = step(centres)
        if history and swept.objective > history[-1] and ahead.leapt:
            ahead, centres = Ahead(), safe  # the leap went uphill: take the plain step instead
            swept = step(centres)
        history.append(swept.objective)
        better = settle(_fill_empty(field, swept, law))
        moved = float(((better - centres) ** 2).sum(axis=1).max()) ** 0.5
        lowered = len(history) < 2 or history[-2] - history[-1] >= fall * abs(history[-1])
        if moved <= tol * field.size or not lowered:
            rests = True  # they stay: a descent from a place of rest ends exactly there
            break
        safe = better
        centres = settle(ahead.leap(centres, better)) if accelerate else better
    if not rests:
        last = step(centres).objective
        if last > history[-1]:
            centres, last = safe, step(safe).objective
        history.append(last)
    return Run(centres=centres, history=history, rests=rests)


class Ahead:
    """Anderson's extrapolation: from the last steps to where they lead.

    With steps f_k = g_k - v_k from places v_k to g_k, the combination of the last places whose
    steps nearly cancel is a better guess than the last place alone. The caller checks that the
    objective falls.

    References
    ----------
    H. F. Walker and P. Ni (2011). Anderson acceleration for fixed-point iterations. SIAM Journal on
    Numerical Analysis 49(4).
    """

    def __init__(self) -> None:
        self.places: list[Floats] = []
        self.steps: list[Floats] = []
        self.leapt = False

    def leap(self, place: Floats, better: Floats) -> Floats:
        """Return the next place, after a step from `place` to `better`."""
        self.places, self.steps = self.places[-WINDOW:], self.steps[-WINDOW:]
        self.places.append(better.ravel())
        self.steps.append((better - place).ravel())
        self.leapt = len(self.steps) > 2
        if not self.leapt:
            return better
        steps = np.diff(np.array(self.steps), axis=0)
        places = np.diff(np.array(self.places), axis=0)
        gram = steps @ steps.T
        gram[np.diag_indices_from(gram)] *= 1 + RIDGE
        share = np.linalg.lstsq(gram, steps @ self.steps[-1], rcond=None)[0]
        leap: Floats = self.places[-1] - share @ places
        return leap.reshape(better.shape)


def _fill_empty(field: Field, swept: Swept, law: Law) -> Floats:
    """Move centres that no record belongs to onto the records that are worst off.

    Another centre harms no record, so the objective does not rise.
    """
    empty = np.flatnonzero(swept.weights == 0)
    if len(empty) == 0:
        return swept.centres
    centres = swept.centres.copy()
    outlook, _ = field.draw(centres, power_law(1, law.neglect), np.full(field.n, -1.0))
    worst = np.argsort(-(field.weights * outlook.square), kind="stable")[: len(empty)]
    centres[empty] = field.records[worst]
    return centres
