"""Pictures: each takes a result and returns a matplotlib figure; `save` writes it.

Colours are safe for every common colour vision, and shapes and words say the same again.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .figures import group_sizes as group_sizes
    from .figures import membership_uncertainty as membership_uncertainty
    from .figures import save as save
    from .maps import risk_utility_map as risk_utility_map
    from .tables import before_and_after as before_and_after
    from .tables import where_the_loss_is as where_the_loss_is
else:  # or a checker would believe that every name exists
    _RENAMED = {
        name: f'tessella.pictures.before_and_after(show="{name}")'
        for name in ("correlations", "distributions")
    }
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed=_RENAMED)
