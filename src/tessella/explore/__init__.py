"""Which protection is best: many candidates tried on one table, and the map of what they give.

`explore(table)` masks the table in many ways, measures what each costs and what attacks still find,
and returns an `Exploration`: the front, the best within limits, a frame, a picture. What it
recommends is a step of a plan: `exploration.best().to_step()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .candidate import Candidate as Candidate
    from .evaluate import MEASURES as MEASURES
    from .evaluate import Point as Point
    from .exploration import Exploration as Exploration
    from .exploration import load as load
    from .exploring import explore as explore

_HOMES = {
    "Candidate": ".candidate",
    "Exploration": ".exploration",
    "MEASURES": ".evaluate",
    "Point": ".evaluate",
    "explore": ".exploring",
    "load": ".exploration",
}
_RENAMED = {
    "ATTACKS": "tessella.risk.ATTACKS",
    "Attack": "tessella.risk.Attack",
    "Case": "tessella.risk.assessment.Case",
    "METHODS": "tessella.masking.registry.methods()",
    "Masked": "the table that Candidate.mask returns",
    "Progress": "progress(done, total, name)",
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES, renamed=_RENAMED)
