"""What a released table is: counted in the table itself, not taken from what masked it.

`audit(original, released)` counts who shares released values with whom, confronts both tables with
the rules, and compares totals, means, frequencies and missing cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .conduct import audit as audit
    from .lines import ColumnLine as ColumnLine
    from .lines import GroupLine as GroupLine
    from .lines import RuleLine as RuleLine
    from .result import Audit as Audit

_HOMES = {
    "Audit": ".result",
    "ColumnLine": ".lines",
    "GroupLine": ".lines",
    "RuleLine": ".lines",
    "audit": ".conduct",
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES)
