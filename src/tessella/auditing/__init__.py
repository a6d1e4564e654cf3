"""What a masked table is: counted in the table itself, not taken from what masked it.

`audit(original, masked)` counts who shares released values with whom, confronts both tables with
the rules, and compares totals, means, frequencies and missing cells. `verify` audits files of any
tool, in any order, and checks them against a manifest.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .conduct import audit as audit
    from .result import Audit as Audit
    from .verifying import Verification as Verification
    from .verifying import verify as verify
else:  # or a checker would believe that every name exists
    _RENAMED = {
        "ColumnLine": "tessella.auditing.result.ColumnLine",
        "GroupLine": "tessella.auditing.result.GroupLine",
        "RuleLine": "tessella.auditing.result.RuleLine",
    }
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed=_RENAMED)
