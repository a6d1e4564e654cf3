"""tessella: statistical disclosure control of microdata.

The small tile of a mosaic: the picture stays, the single record is gone.
"""

from typing import TYPE_CHECKING

from ._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from . import auditing as auditing
    from . import datasets as datasets
    from . import exceptions as exceptions
    from . import explore as explore
    from . import fuzzy as fuzzy
    from . import grouping as grouping
    from . import io as io
    from . import loss as loss
    from . import masking as masking
    from . import pictures as pictures
    from . import plan as plan
    from . import planfile as planfile
    from . import publishing as publishing
    from . import reports as reports
    from . import risk as risk
    from . import rules as rules
    from .auditing.conduct import audit as audit
    from .auditing.verifying import verify as verify
    from .masking.fuzzy_microaggregation import FuzzyMicroaggregation as FuzzyMicroaggregation
    from .masking.microaggregation import Microaggregation as Microaggregation
    from .plan import Plan as Plan
    from .plan import make_plan as make_plan
    from .publishing import publish as publish
    from .release import Release as Release
    from .release import Study as Study
    from .release import protect as protect
    from .rules.collection import Rules as Rules
    from .schema import Schema as Schema
else:  # or a checker would believe that every name exists
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__)

__version__ = "0.2.0"
