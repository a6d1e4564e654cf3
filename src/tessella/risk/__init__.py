"""The intruder's side: what the best attack on a masked table finds, measured.

`link` links records by distance. Every result is an `Estimate`: a share with interval, baseline and assumptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .choquet import Choquet as Choquet
    from .distances import OWA as OWA
    from .distances import Bilinear as Bilinear
    from .distances import WeightedMean as WeightedMean
    from .estimate import Estimate as Estimate
    from .linkage import Linkage as Linkage
    from .linkage import link as link

_HOMES = {
    "Bilinear": ".distances",
    "Choquet": ".choquet",
    "Estimate": ".estimate",
    "Linkage": ".linkage",
    "OWA": ".distances",
    "WeightedMean": ".distances",
    "link": ".linkage",
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES)
