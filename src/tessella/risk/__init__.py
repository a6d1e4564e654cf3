"""The intruder's side: what the best attack on a masked table finds, measured.

`assess` tries all attacks that fit; `link` links records by distance, `learn` searches the distance
that links most of them, `attack` uses what is known of the masking. Every result is an `Estimate`:
a share with interval, baseline and assumptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .anonymity.homogeneity import alpha_k_anonymity as alpha_k_anonymity
    from .anonymity.homogeneity import l_diversity as l_diversity
    from .anonymity.homogeneity import t_closeness as t_closeness
    from .anonymity.individual import individual_risk as individual_risk
    from .anonymity.individual import probabilistic_k_anonymity as probabilistic_k_anonymity
    from .anonymity.keys import k_anonymity as k_anonymity
    from .anonymity.population import log_linear_risk as log_linear_risk
    from .anonymity.population import uniques as uniques
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

_HOMES = {
    "ATTACKS": ".attacks",
    "Assessment": ".assessment",
    "Attack": ".assessment",
    "Bilinear": ".learned.families",
    "Choquet": ".learned.choquet",
    "Estimate": ".estimate",
    "MaxitiveChoquet": ".learned.maxitive",
    "OWA": ".learned.families",
    "WeightedMean": ".learned.families",
    "alpha_k_anonymity": ".anonymity.homogeneity",
    "assess": ".attacks",
    "attack": ".transparency.dispatch",
    "certify": ".learned.certificate",
    "individual_risk": ".anonymity.individual",
    "interval_disclosure": ".intervals",
    "k_anonymity": ".anonymity.keys",
    "l_diversity": ".anonymity.homogeneity",
    "learn": ".learned.learning",
    "link": ".linkage",
    "link_by_knowledge": ".linkage",
    "link_one_to_one": ".matching",
    "link_probabilistic": ".matching",
    "log_linear_risk": ".anonymity.population",
    "predict_confidential": ".prediction",
    "probabilistic_k_anonymity": ".anonymity.individual",
    "suda": ".anonymity.suda",
    "t_closeness": ".anonymity.homogeneity",
    "uniques": ".anonymity.population",
}
# Classes of results are no names of this door; `attack` takes the name of the method.
_RENAMED = {
    "AlphaK": "tessella.risk.anonymity.homogeneity.AlphaK",
    "Anonymity": "tessella.risk.anonymity.keys.Anonymity",
    "Assignment": "tessella.risk.matching.Assignment",
    "Candidates": "tessella.risk.transparency.scene.Candidates",
    "Certified": "tessella.risk.learned.certificate.Certified",
    "Homogeneity": "tessella.risk.anonymity.homogeneity.Homogeneity",
    "IndividualRisk": "tessella.risk.anonymity.individual.IndividualRisk",
    "IntervalDisclosure": "tessella.risk.intervals.IntervalDisclosure",
    "Knowledge": "tessella.risk.linkage.Knowledge",
    "Learned": "tessella.risk.learned.learning.Learned",
    "Linkage": "tessella.risk.linkage.Linkage",
    "LogLinearRisk": "tessella.risk.anonymity.population.LogLinearRisk",
    "Prediction": "tessella.risk.prediction.Prediction",
    "Probabilistic": "tessella.risk.matching.Probabilistic",
    "ProbableAnonymity": "tessella.risk.anonymity.individual.ProbableAnonymity",
    "SpecialUniques": "tessella.risk.anonymity.suda.SpecialUniques",
    "Uniques": "tessella.risk.anonymity.population.Uniques",
    "attack_fuzzy_microaggregation": 'tessella.risk.attack(..., method="fuzzy microaggregation")',
    "attack_individual_ranking": 'tessella.risk.attack(..., method="individual ranking")',
    "attack_microaggregation": 'tessella.risk.attack(..., method="microaggregation")',
    "attack_rank_swapping": 'tessella.risk.attack(..., method="rank swapping")',
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES, renamed=_RENAMED)
