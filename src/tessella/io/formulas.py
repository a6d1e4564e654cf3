"""Text that a spreadsheet would run as a formula.

A cell such as `=HYPERLINK(...)` is executed when somebody opens a release in a spreadsheet (OWASP:
CSV injection). Numbers with a sign, "-5" or "+3,5", and a lone dash are no formulas.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["neutralise", "neutralise_name"]

# The second half: full-width forms, which some spreadsheets read as the plain ones.
_BEGINS = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_HARMLESS = r"^[+-]([0-9]+([.,][0-9]+)*([eE][+-]?[0-9]+)?)?$"


def neutralise(texts: pa.Array) -> tuple[pa.Array, int]:
    """Put an apostrophe before each text that begins like a formula; return also how many."""
    begins = pc.match_substring_regex(texts, _BEGINS)
    if not pc.any(begins).as_py():
        return texts, 0
    risky = pc.and_not(begins, pc.match_substring_regex(texts, _HARMLESS))
    count = pc.sum(risky).as_py() or 0
    if not count:
        return texts, 0
    marked = pc.binary_join_element_wise("'", texts, "")
    return pc.if_else(risky, marked, texts), int(count)


def neutralise_name(name: str) -> str:
    """Do the same for a name of a column."""
    return str(neutralise(pa.array([name]))[0][0])
