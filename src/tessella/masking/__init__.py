"""Ways to mask a table: a masker has `fit_transform` and no `transform`.

Masking unseen records with what was learned from others would not protect them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .base import restore as restore
    from .coding import TopBottomCoding as TopBottomCoding
    from .fuzziness import Fuzziness as Fuzziness
    from .fuzziness import choose_fuzziness as choose_fuzziness
    from .fuzzy_microaggregation import FuzzyMicroaggregation as FuzzyMicroaggregation
    from .fuzzy_microaggregation import Uncertainty as Uncertainty
    from .individual_ranking import IndividualRanking as IndividualRanking
    from .local_recoding import LocalRecoding as LocalRecoding
    from .local_suppression import LocalSuppression as LocalSuppression
    from .microaggregation import Microaggregation as Microaggregation
    from .noise import NoiseAddition as NoiseAddition
    from .overlapping_microaggregation import (
        OverlappingMicroaggregation as OverlappingMicroaggregation,
    )
    from .pram import PRAM as PRAM
    from .rank_swapping import RankSwapping as RankSwapping
    from .recoding import Recoding as Recoding
    from .record_swapping import RecordSwapping as RecordSwapping
    from .repair import Restoration as Restoration
    from .rounding import Rounding as Rounding
    from .shuffling import Shuffling as Shuffling
else:  # or a checker would believe that every name exists
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__)
