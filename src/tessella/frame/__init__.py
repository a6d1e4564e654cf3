"""Tables in, the same kind of table out; no other room touches frames."""

from .table import FIRST_CODE as FIRST_CODE
from .table import NULL as NULL
from .table import Facts, Numbers, Table, number_labels

__all__ = ["Facts", "Numbers", "Table", "number_labels"]
