"""Reports: what was done to a table, for those who use it and for those who answer for it.

`summarise` gathers everything in one plain dict of two parts, "public" and "confidential";
`external_report` and `internal_report` write them as HTML.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .rendering import external_report as external_report
    from .rendering import internal_report as internal_report
    from .summary import summarise as summarise
else:  # or a checker would believe that every name exists
    _RENAMED = {
        "manifest": "tessella.reports.public.manifest",
        "templates": "tessella.reports.rendering.templates",
    }
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed=_RENAMED)
