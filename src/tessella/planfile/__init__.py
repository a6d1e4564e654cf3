"""Plan files: everything about a release in one TOML file that a person can read and edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .model import PlanFile as PlanFile
    from .text import draft as draft
    from .text import parse_plan as parse_plan
    from .text import read_plan as read_plan

_HOMES = {
    "PlanFile": ".model",
    "draft": ".text",
    "parse_plan": ".text",
    "read_plan": ".text",
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES, renamed={"to_toml": "PlanFile.to_toml"})
