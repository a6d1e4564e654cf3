"""What must stay true of every record: read from text, checked, confronted with tables.

`Rules.parse` reads rules that people can read; `rules.confront(table)` says which records break
which; `rules.check()` finds contradictions before any data are touched; `Rules.suggest(table)`
finds rules in the data; `correct_slips` corrects records in which one number is wrong. The
shapes that rules have are in `tessella.rules.forms`.
"""

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from . import forms as forms
    from .check import Finding as Finding
    from .collection import Rules as Rules
    from .confront import Confrontation as Confrontation
    from .correcting import Slip as Slip
    from .correcting import correct_slips as correct_slips
    from .rule import Rule as Rule
    from .suggest import Suggestion as Suggestion
    from .suggest import Suggestions as Suggestions
else:  # or a checker would believe that every name exists
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__, renamed={"judge": "tessella.Rules.confront"})
