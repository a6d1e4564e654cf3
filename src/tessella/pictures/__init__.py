"""Pictures: each takes a result and returns a matplotlib figure; `save` writes it.

Colours are safe for every common colour vision, and shapes and words say the same again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .figures import group_sizes as group_sizes
    from .figures import membership_uncertainty as membership_uncertainty
    from .figures import save as save
    from .maps import risk_utility_map as risk_utility_map
    from .tables import before_and_after as before_and_after
    from .tables import where_the_loss_is as where_the_loss_is

_HOMES = {
    "before_and_after": ".tables",
    "group_sizes": ".figures",
    "membership_uncertainty": ".figures",
    "risk_utility_map": ".maps",
    "save": ".figures",
    "where_the_loss_is": ".tables",
}
_RENAMED = {
    name: f'tessella.pictures.before_and_after(show="{name}")'
    for name in ("correlations", "distributions")
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES, renamed=_RENAMED)
