"""Linear equations and inequalities between the columns of a table.

`LinearSystem` holds the rows, says who breaks them and which of them contradict each other, and
moves records to the nearest point that keeps them all. `round_whole` finds the nearest such point
with whole numbers where whole numbers are due.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .system import LinearSystem as LinearSystem
    from .system import Violation as Violation
    from .whole import Rounded as Rounded
    from .whole import round_whole as round_whole
else:  # or a checker would believe that every name exists
    _RENAMED = {
        "Implied": "tessella.linear.LinearSystem.implied",
        "Projector": "tessella.linear.LinearSystem.projector",
    }
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed=_RENAMED)
