"""Tables in, the same kind of table out; no other room touches frames."""

from .columns import Facts, number_labels, text_of
from .pair import Pair, PairedCategories
from .table import FIRST_CODE as FIRST_CODE
from .table import NULL as NULL
from .table import Numbers, Table
from .view import Categories, Strata, View, group_ids, matches_code

__all__ = [
    "Categories",
    "Facts",
    "Numbers",
    "Pair",
    "PairedCategories",
    "Strata",
    "Table",
    "View",
    "group_ids",
    "matches_code",
    "number_labels",
    "text_of",
]
