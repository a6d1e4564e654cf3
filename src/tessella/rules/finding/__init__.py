"""Where suggestions of rules come from: each file finds one family, and tests what it found.

A finder looks at a sample of records (`columns.Sample`), and returns `Proposal`s: the text of a
rule, and how many rules that hold as well chance would make in a table whose columns have nothing
to do with each other (`chance`). What is proposed is counted on all records by `suggest`.
"""

from .chance import Proposal
from .columns import Sample
from .implications import find_implications
from .members import find_constant
from .orders import find_bounds, find_orderings, find_values
from .products import find_products
from .sums import find_sums

__all__ = [
    "Proposal",
    "Sample",
    "find_bounds",
    "find_constant",
    "find_implications",
    "find_orderings",
    "find_products",
    "find_sums",
    "find_values",
]
