"""From a plan file to a release on disk, with its reports; and a second look at any release.

`publish` tells the whole story: read, check, mask, audit, measure, write. `verify` audits a
released file, whatever tool has made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .publication import Publication as Publication
    from .second_look import verify as verify
    from .story import publish as publish
    from .verification import Verification as Verification

_HOMES = {
    "Publication": ".publication",
    "Verification": ".verification",
    "publish": ".story",
    "verify": ".second_look",
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES)
