"""From rules and a schema to a plan that keeps the rules, or to the reason why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .plan import Block as Block
    from .plan import Choice as Choice
    from .plan import Plan as Plan
    from .planner import make_plan as make_plan
else:  # or a checker would believe that every name exists
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__)
