"""From a table to a release: `protect` in one call, `Study` step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .protecting import protect as protect
    from .result import Entry as Entry
    from .result import Protocol as Protocol
    from .result import Release as Release
    from .steps import Step as Step
    from .study import Study as Study

_HOMES = {
    "Entry": ".result",
    "Protocol": ".result",
    "Release": ".result",
    "Step": ".steps",
    "Study": ".study",
    "protect": ".protecting",
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES)
