"""Which protection is best: many candidates tried on one table, and the map of what they give.

`explore(table)` masks the table in many ways, measures what each costs and what attacks still find,
and returns an `Exploration`: the front, the best within limits, a frame, a picture. What it
recommends is a step of a plan: `exploration.best().to_step()`.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .candidate import Candidate as Candidate
    from .candidate import PresentPlan as PresentPlan
    from .evaluate import MEASURES as MEASURES
    from .evaluate import Point as Point
    from .exploration import Exploration as Exploration
    from .exploration import load as load
    from .exploring import explore as explore
    from .planned import AppliedPoint as AppliedPoint
    from .planned import PlanExploration as PlanExploration
    from .planned import PreparedPlan as PreparedPlan
    from .planned import apply_point as apply_point
    from .planned import evaluate_plan as evaluate_plan
    from .planned import explore_plan as explore_plan
    from .planned import prepare_plan as prepare_plan
    from .previewed import Preview as Preview
    from .previewing import preview as preview
    from .sampling import Sample as Sample
else:  # or a checker would believe that every name exists
    _RENAMED = {
        "ATTACKS": "tessella.risk.ATTACKS",
        "Attack": "tessella.risk.Attack",
        "Case": "tessella.risk.assessment.Case",
        "METHODS": "tessella.masking.registry.methods()",
        "Masked": "the table that Candidate.mask returns",
        "Progress": "progress(done, total, name)",
    }
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed=_RENAMED)
