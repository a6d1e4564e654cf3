"""Groups of at least k records with little spread.

Each grouping is a scikit-learn clusterer: `k` first, then `fit`, `labels_`, `cluster_centers_`,
`inertia_`. `Search` is the one to take; `lower_bound` says how much better any could be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .base import Grouping as Grouping
    from .bound import lower_bound as lower_bound
    from .mdav import CBFS as CBFS
    from .mdav import MDAV as MDAV
    from .mdav import VMDAV as VMDAV
    from .ordering import OrderedGrouping as OrderedGrouping
    from .ordering import UnivariateOptimal as UnivariateOptimal
    from .refining import IGD as IGD
    from .reordering import IteratedOrdering as IteratedOrdering
    from .reordering import RepOrdMic as RepOrdMic
    from .search import Search as Search
else:  # or a checker would believe that every name exists
    _RENAMED = {
        "LowerBound": "tessella.grouping.bound.LowerBound",
        "IMHM": 'IteratedOrdering (ours), or OrderedGrouping(order="given") (the published cut)',
    }
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed=_RENAMED)
