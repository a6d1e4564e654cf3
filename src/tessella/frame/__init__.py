"""Tables in, the same kind of table out; no other room touches frames."""

from .columns import FIRST_CODE as FIRST_CODE
from .columns import NULL as NULL
from .columns import (
    Facts,
    Numbers,
    count_units,
    group_ids,
    matches_code,
    number_labels,
    text_of,
)
from .pair import Pair, PairedCategories
from .population import common_codes, count_in_population, match_patterns
from .table import Table
from .view import Categories, Strata, View

__all__ = [
    "Categories",
    "Facts",
    "Numbers",
    "Pair",
    "PairedCategories",
    "Strata",
    "Table",
    "View",
    "common_codes",
    "count_in_population",
    "count_units",
    "group_ids",
    "match_patterns",
    "matches_code",
    "number_labels",
    "text_of",
]
