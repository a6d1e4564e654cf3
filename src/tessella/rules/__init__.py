"""What must stay true of every record: read from text, checked, confronted with tables.

`Rules.parse` reads rules that people can read; `rules.confront(table)` says which records break
which; `rules.check()` finds contradictions before any data are touched. The shapes that rules
have are in `tessella.rules.forms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import on_first_use

if TYPE_CHECKING:
    from . import forms as forms
    from .check import Finding as Finding
    from .collection import Rules as Rules
    from .confront import Confrontation as Confrontation
    from .rule import Rule as Rule

_HOMES = {
    "Confrontation": ".confront",
    "Finding": ".check",
    "Rule": ".rule",
    "Rules": ".collection",
    "forms": ".forms",
}

_RENAMED = {"judge": "tessella.Rules.confront"}

__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # or a checker would believe that every name exists
    __getattr__, __dir__ = on_first_use(__name__, _HOMES, renamed=_RENAMED)
