"""From rules and a schema to a plan that keeps the rules, or to the reason why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .plan import Block as Block
    from .plan import Choice as Choice
    from .plan import Plan as Plan
    from .planner import make_plan as make_plan

_HOMES = {
    "Block": ".plan",
    "Choice": ".plan",
    "Plan": ".plan",
    "make_plan": ".planner",
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES)
