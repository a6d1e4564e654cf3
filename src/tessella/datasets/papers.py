"""Small tables printed in the papers that tessella builds on."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._parameters import FLAG, parameters
from .tables import COMMON, ColumnData, to_frame

__all__ = ["load_expenditure"]

RULE = "total == 1.16 * at_16 + 1.07 * at_7   # prices with tax"

EXACT = """
15  23  42.01
12  43  59.93
64 229 319.27
12  45  62.07
28  39  74.21
71 102 191.50
23  64  95.16
25 102 138.14
48 230 301.78
32  50  90.62
90 200 318.40
16 100 125.56
"""

NOISY = """
16.91695  26.67021  41.37696
15.48220  42.61481  60.60212
65.86964 228.47892 318.70371
12.97750  45.84617  60.80475
25.93508  38.55444  75.96227
72.14286 103.34332 191.54478
24.43550  65.84895  96.49401
24.56774 101.54299 137.49281
47.97780 226.75840 302.78913
28.43727  48.02995  89.97244
91.86226 197.98087 318.96431
11.64466 100.13359 127.12980
"""


@parameters(noisy=[FLAG], as_printed=[FLAG], **COMMON)
def load_expenditure(
    *,
    noisy: bool = False,
    as_printed: bool = False,
    frame: str = "pandas",
    return_rules: bool = False,
) -> Any:
    """Load twelve records of expenditure that obey one linear rule, or almost obey it.

    Parameters
    ----------
    noisy : bool
        Load the second table: the first with noise of standard deviation 1.5 on every value, so
        that no record obeys the rule any more.
    as_printed : bool
        Leave the last record of the first table as it is printed; see Notes.
    frame : {"pandas", "polars", "arrow", "numpy"}
        The kind of table.
    return_rules : bool
        Also return the rule, as a list with one line of text.

    Returns
    -------
    table : frame of shape (12, 3)
        Expenditure taxed at 16 %, expenditure taxed at 7 %, and the total with tax:
        total = 1.16 at_16 + 1.07 at_7.
    rules : list of str
        Only with `return_rules`.

    Notes
    -----
    The first table is printed with (13, 100, 125.56) as its last record, which breaks the rule by
    3.48, while the paper says that the table obeys it and its centres of that table do, to five
    decimals. 1.16 * 16 + 1.07 * 100 is 125.56: the record is taken to be (16, 100, 125.56).

    References
    ----------
    V. Torra (2020), "Fuzzy clustering-based microaggregation to achieve probabilistic k-anonymity
    for data with constraints", Journal of Intelligent & Fuzzy Systems 39, Tables 1 and 2.

    Examples
    --------
    >>> from tessella.datasets import load_expenditure
    >>> table = load_expenditure()
    >>> off = table["total"] - 1.16 * table["at_16"] - 1.07 * table["at_7"]
    >>> bool(off.abs().max() < 1e-9)
    True
    """
    values = np.array((NOISY if noisy else EXACT).split(), dtype=np.float64).reshape(12, 3)
    if as_printed and not noisy:
        values[-1, 0] = 13.0
    columns: dict[str, ColumnData] = dict(zip(("at_16", "at_7", "total"), values.T.copy()))
    table = to_frame(columns, frame)
    return (table, [RULE]) if return_rules else table
