"""From a table to a release: `protect` in one call, `Study` step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .protecting import protect as protect
    from .result import Entry as Entry
    from .result import Protocol as Protocol
    from .result import Release as Release
    from .steps import Step as Step
    from .study import Study as Study
else:  # or a checker would believe that every name exists
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__)
