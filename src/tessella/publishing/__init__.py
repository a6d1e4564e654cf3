"""From a plan file to a release on disk, with its reports.

`publish` reads, checks, masks, audits, measures and writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .workflow import Publication as Publication
    from .workflow import publish as publish

_HOMES = {
    "Publication": ".workflow",
    "publish": ".workflow",
}
_RENAMED = {name: f"tessella.auditing.{name}" for name in ("verify", "Verification")}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES, renamed=_RENAMED)
