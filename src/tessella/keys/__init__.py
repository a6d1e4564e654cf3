"""Categorical keys: hierarchies, recoding, and suppression with a bound, to bring them to k."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import homes_of, on_first_use

if TYPE_CHECKING:
    from .hierarchy import Hierarchy as Hierarchy
else:  # or a checker would believe that every name exists
    __all__ = sorted(homes_of(__name__))
    __getattr__, __dir__ = on_first_use(__name__)
