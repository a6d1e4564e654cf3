"""What masking has cost: measures of information loss, each with its formula, range and source.

`measure(original, masked)` runs every generic one that fits; `specific_loss` and the ready
analyses measure what a user of the table will see; `estimate_loss` compares estimates with their
sampling errors; `subgroup_loss` finds where the loss is.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .categories import contingency_loss as contingency_loss
    from .categories import entropy_loss as entropy_loss
    from .categories import mutual_information_loss as mutual_information_loss
    from .distributions import distribution_loss as distribution_loss
    from .distributions import pil as pil
    from .estimates import estimate_loss as estimate_loss
    from .generic import generic_loss as generic_loss
    from .generic import il1s as il1s
    from .generic import lost_cells as lost_cells
    from .generic import measure as measure
    from .generic import sse_sst as sse_sst
    from .learning import classifier_loss as classifier_loss
    from .learning import clustering_loss as clustering_loss
    from .learning import propensity_loss as propensity_loss
    from .moments import component_loss as component_loss
    from .recoded import recoding_loss as recoding_loss
    from .specific import regression_loss as regression_loss
    from .specific import specific_loss as specific_loss
    from .subgroups import record_loss as record_loss
    from .subgroups import subgroup_loss as subgroup_loss
else:  # or a checker would believe that every name exists
    _RENAMED = {
        "Group": "tessella.loss.subgroups.Group",
        "Loss": "tessella.loss.base.Loss",
        "SubgroupLoss": "tessella.loss.subgroups.SubgroupLoss",
        "Summary": "tessella.loss.base.Summary",
        "eigenvalue_loss": 'tessella.loss.component_loss(of="eigenvalues")',
        "kolmogorov_smirnov": 'tessella.loss.distribution_loss(distance="kolmogorov_smirnov")',
        "principal_component_loss": 'tessella.loss.component_loss(of="directions")',
        "quantile_loss": 'tessella.loss.distribution_loss(distance="quantiles")',
        "wasserstein": 'tessella.loss.distribution_loss(distance="wasserstein")',
    }
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed=_RENAMED)
