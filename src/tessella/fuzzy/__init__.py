"""Fuzzy clustering: centres, and the degrees to which records belong to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .cmeans import EntropyFuzzyCMeans as EntropyFuzzyCMeans
    from .cmeans import FuzzyCMeans as FuzzyCMeans
    from .comparison import ClusterLoss as ClusterLoss
    from .comparison import Comparison as Comparison
    from .comparison import cluster_loss as cluster_loss
    from .comparison import compare as compare
    from .tolerance import TolerantFuzzyCMeans as TolerantFuzzyCMeans
else:  # or a checker would believe that every name exists
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__)
