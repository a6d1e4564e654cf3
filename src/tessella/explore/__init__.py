"""Which protection is best: many candidates tried on one table, and the map of what they give.

`explore(table)` masks the table in many ways, measures what each costs and what attacks still find,
and returns an `Exploration`: the front, the best within limits, a frame, a picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .attacks import ATTACKS as ATTACKS
    from .attacks import Attack as Attack
    from .attacks import Case as Case
    from .candidate import Candidate as Candidate
    from .exploration import Exploration as Exploration
    from .exploration import load as load
    from .exploring import Progress as Progress
    from .exploring import explore as explore
    from .measures import MEASURES as MEASURES
    from .methods import METHODS as METHODS
    from .point import Point as Point
    from .task import Masked as Masked

_HOMES = {
    "ATTACKS": ".attacks",
    "Attack": ".attacks",
    "Candidate": ".candidate",
    "Case": ".attacks",
    "Exploration": ".exploration",
    "MEASURES": ".measures",
    "METHODS": ".methods",
    "Masked": ".task",
    "Point": ".point",
    "Progress": ".exploring",
    "explore": ".exploring",
    "load": ".exploration",
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES)
