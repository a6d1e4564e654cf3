"""Plan files: everything about a release in one TOML file that a person can read and edit."""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .model import PlanFile as PlanFile
    from .text import draft as draft
    from .text import parse_plan as parse_plan
    from .text import read_plan as read_plan
else:  # or a checker would believe that every name exists
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed={"to_toml": "PlanFile.to_toml"})
