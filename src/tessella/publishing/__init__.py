"""From a plan file to a release on disk, with its reports.

`publish` reads, checks, masks, audits, measures and writes; `reopen` opens what it wrote, to
measure it again.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .outputs import Publication as Publication
    from .reopening import reopen as reopen
    from .workflow import publish as publish
else:  # or a checker would believe that every name exists
    _RENAMED = {name: f"tessella.auditing.{name}" for name in ("verify", "Verification")}
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed=_RENAMED)
