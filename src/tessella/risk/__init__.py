"""The intruder's side: what the best attack on a masked table finds, measured.

`link` links records by distance; `learn` looks for the distance that links most of them. Every
result is an `Estimate`: a share with interval, baseline and assumptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from .anonymity.classes import Anonymity as Anonymity
    from .anonymity.classes import k_anonymity as k_anonymity
    from .anonymity.confidential import AlphaK as AlphaK
    from .anonymity.confidential import Homogeneity as Homogeneity
    from .anonymity.confidential import alpha_k_anonymity as alpha_k_anonymity
    from .anonymity.individual import IndividualRisk as IndividualRisk
    from .anonymity.individual import individual_risk as individual_risk
    from .anonymity.loglinear import LogLinearRisk as LogLinearRisk
    from .anonymity.loglinear import log_linear_risk as log_linear_risk
    from .anonymity.probable import ProbableAnonymity as ProbableAnonymity
    from .anonymity.probable import probabilistic_k_anonymity as probabilistic_k_anonymity
    from .anonymity.suda import SpecialUniques as SpecialUniques
    from .anonymity.suda import suda as suda
    from .anonymity.uniques import Uniques as Uniques
    from .anonymity.uniques import uniques as uniques
    from .assessing.assess import assess as assess
    from .assessing.attacks import ATTACKS as ATTACKS
    from .assessing.attacks import Attack as Attack
    from .assessing.result import Assessment as Assessment
    from .attributes.homogeneity import l_diversity as l_diversity
    from .attributes.homogeneity import t_closeness as t_closeness
    from .attributes.intervals import IntervalDisclosure as IntervalDisclosure
    from .attributes.intervals import interval_disclosure as interval_disclosure
    from .attributes.prediction import Prediction as Prediction
    from .attributes.prediction import predict_confidential as predict_confidential
    from .estimate import Estimate as Estimate
    from .knowledge import Knowledge as Knowledge
    from .knowledge import link_by_knowledge as link_by_knowledge
    from .learned.certificate import Certified as Certified
    from .learned.certificate import certify as certify
    from .learned.choquet import Choquet as Choquet
    from .learned.distances import OWA as OWA
    from .learned.distances import Bilinear as Bilinear
    from .learned.distances import WeightedMean as WeightedMean
    from .learned.learning import Learned as Learned
    from .learned.learning import learn as learn
    from .learned.maxitive import MaxitiveChoquet as MaxitiveChoquet
    from .linkage import Linkage as Linkage
    from .linkage import link as link
    from .one_to_one import Assignment as Assignment
    from .one_to_one import link_one_to_one as link_one_to_one
    from .probabilistic import Probabilistic as Probabilistic
    from .probabilistic import link_probabilistic as link_probabilistic
    from .transparency.candidates import Candidates as Candidates
    from .transparency.dispatch import attack as attack
    from .transparency.fuzzy_microaggregation import (
        attack_fuzzy_microaggregation as attack_fuzzy_microaggregation,
    )
    from .transparency.individual_ranking import (
        attack_individual_ranking as attack_individual_ranking,
    )
    from .transparency.microaggregation import attack_microaggregation as attack_microaggregation
    from .transparency.rank_swapping import attack_rank_swapping as attack_rank_swapping

_HOMES = {
    "ATTACKS": ".assessing.attacks",
    "AlphaK": ".anonymity.confidential",
    "Anonymity": ".anonymity.classes",
    "Assessment": ".assessing.result",
    "Assignment": ".one_to_one",
    "Bilinear": ".learned.distances",
    "Attack": ".assessing.attacks",
    "Candidates": ".transparency.candidates",
    "Certified": ".learned.certificate",
    "Choquet": ".learned.choquet",
    "Estimate": ".estimate",
    "Homogeneity": ".anonymity.confidential",
    "IndividualRisk": ".anonymity.individual",
    "IntervalDisclosure": ".attributes.intervals",
    "Knowledge": ".knowledge",
    "Learned": ".learned.learning",
    "Linkage": ".linkage",
    "LogLinearRisk": ".anonymity.loglinear",
    "MaxitiveChoquet": ".learned.maxitive",
    "OWA": ".learned.distances",
    "Prediction": ".attributes.prediction",
    "Probabilistic": ".probabilistic",
    "ProbableAnonymity": ".anonymity.probable",
    "SpecialUniques": ".anonymity.suda",
    "Uniques": ".anonymity.uniques",
    "WeightedMean": ".learned.distances",
    "alpha_k_anonymity": ".anonymity.confidential",
    "assess": ".assessing.assess",
    "attack": ".transparency.dispatch",
    "attack_fuzzy_microaggregation": ".transparency.fuzzy_microaggregation",
    "attack_individual_ranking": ".transparency.individual_ranking",
    "attack_microaggregation": ".transparency.microaggregation",
    "attack_rank_swapping": ".transparency.rank_swapping",
    "individual_risk": ".anonymity.individual",
    "interval_disclosure": ".attributes.intervals",
    "k_anonymity": ".anonymity.classes",
    "l_diversity": ".attributes.homogeneity",
    "certify": ".learned.certificate",
    "learn": ".learned.learning",
    "link": ".linkage",
    "link_by_knowledge": ".knowledge",
    "link_one_to_one": ".one_to_one",
    "link_probabilistic": ".probabilistic",
    "log_linear_risk": ".anonymity.loglinear",
    "predict_confidential": ".attributes.prediction",
    "probabilistic_k_anonymity": ".anonymity.probable",
    "suda": ".anonymity.suda",
    "t_closeness": ".attributes.homogeneity",
    "uniques": ".anonymity.uniques",
}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES)
