"""The intruder's side: what the best attack on a masked table finds, measured.

`assess` tries all attacks that fit; `link` links records by distance, `learn` searches the distance
that links most of them, `attack` uses what is known of the masking. Every result is an `Estimate`:
a share with interval, baseline and assumptions.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .anonymity.homogeneity import alpha_k_anonymity as alpha_k_anonymity
    from .anonymity.homogeneity import l_diversity as l_diversity
    from .anonymity.homogeneity import t_closeness as t_closeness
    from .anonymity.individual import individual_risk as individual_risk
    from .anonymity.individual import probabilistic_k_anonymity as probabilistic_k_anonymity
    from .anonymity.keys import k_anonymity as k_anonymity
    from .anonymity.likeness import beta_likeness as beta_likeness
    from .anonymity.population import log_linear_risk as log_linear_risk
    from .anonymity.population import uniques as uniques
    from .anonymity.presence import delta_presence as delta_presence
    from .anonymity.presence import k_map as k_map
    from .anonymity.suda import suda as suda
    from .assessment import Assessment as Assessment
    from .assessment import Attack as Attack
    from .attacks import ATTACKS as ATTACKS
    from .attacks import assess as assess
    from .estimate import Estimate as Estimate
    from .intervals import interval_disclosure as interval_disclosure
    from .learned.certificate import certify as certify
    from .learned.choquet import Choquet as Choquet
    from .learned.families import OWA as OWA
    from .learned.families import Bilinear as Bilinear
    from .learned.families import WeightedMean as WeightedMean
    from .learned.learning import learn as learn
    from .learned.maxitive import MaxitiveChoquet as MaxitiveChoquet
    from .linkage import link as link
    from .linkage import link_by_knowledge as link_by_knowledge
    from .matching import link_one_to_one as link_one_to_one
    from .matching import link_probabilistic as link_probabilistic
    from .prediction import predict_confidential as predict_confidential
    from .transparency.dispatch import attack as attack
else:  # or a checker would believe that every name exists
    # Classes of results are no names of this door; `attack` takes the name of the method.
    _RESULTS = {
        "anonymity.homogeneity": ("AlphaK", "Homogeneity"),
        "anonymity.individual": ("IndividualRisk", "ProbableAnonymity"),
        "anonymity.keys": ("Anonymity",),
        "anonymity.likeness": ("Likeness",),
        "anonymity.population": ("LogLinearRisk", "Uniques"),
        "anonymity.presence": ("KMap", "Presence"),
        "anonymity.suda": ("SpecialUniques",),
        "intervals": ("IntervalDisclosure",),
        "learned.certificate": ("Certified",),
        "learned.learning": ("Learned",),
        "linkage": ("Knowledge", "Linkage"),
        "matching": ("Assignment", "Probabilistic"),
        "prediction": ("Prediction",),
        "transparency.scene": ("Candidates",),
    }
    _METHODS = ("fuzzy microaggregation", "individual ranking", "microaggregation", "rank swapping")
    _RENAMED = {
        **{one: f"tessella.risk.{at}.{one}" for at, names in _RESULTS.items() for one in names},
        **{
            f"attack_{name}".replace(" ", "_"): f'tessella.risk.attack(..., method="{name}")'
            for name in _METHODS
        },
    }
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed=_RENAMED)
