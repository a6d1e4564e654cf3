"""Tables to try things on: made ones with known truth, printed ones, public ones.

`make_...` makes a table from a seed; `load_...` gives one that exists. All take `frame=`: "pandas"
(default), "polars", "arrow" or "numpy".
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .census import make_census_keys as make_census_keys
    from .public import data_folders as data_folders
    from .public import load_census as load_census
    from .public import load_eia as load_eia
    from .public import load_expenditure as load_expenditure
    from .public import load_tarragona as load_tarragona
    from .surveys import make_business_survey as make_business_survey
    from .surveys import make_households as make_households
    from .tables import make_clusters as make_clusters
    from .tables import make_heavy_tailed as make_heavy_tailed
else:  # or a checker would believe that every name exists
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__)
