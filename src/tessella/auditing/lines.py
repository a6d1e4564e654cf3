"""The lines of an audit: one for each block, each rule, each column.

What could tell a single record's original value is *confidential*: the smallest and largest value
of an original column, by how much the worst record broke a rule, a total that differs in a few
cells only. Such figures are kept, but a line shows them only to those who ask for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._types import Name

__all__ = ["ColumnLine", "GroupLine", "RuleLine"]


def plain(name: Name) -> Any:
    """Return a column's name as text or number, which every format can hold."""
    return name if isinstance(name, str | int) and not isinstance(name, bool) else str(name)


class _Line:
    """A line prints what is public of it."""

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.to_dict().items())
        return f"{type(self).__name__}({shown})"


@dataclass(frozen=True, kw_only=True, repr=False)
class GroupLine(_Line):
    """Who shares released values with whom, in some columns.

    Attributes
    ----------
    columns : tuple
        The columns in which records must agree to be alike.
    records, combinations, smallest : tuple of int, one for each stratum
        How many records there are, how many different combinations of released values they have,
        and how many records share the rarest of them.
    below : tuple of int, one for each stratum, or None
        How many records share their combination with fewer than k; None where no k was asked for.
    """

    columns: tuple[Name, ...]
    records: tuple[int, ...]
    combinations: tuple[int, ...]
    smallest: tuple[int, ...]
    below: tuple[int, ...] | None

    @property
    def k(self) -> int:
        """The k that is reached: the size of the smallest set of records that are alike."""
        return min(self.smallest)

    @property
    def n_below(self) -> int | None:
        """How many records, in all strata, share their values with fewer than k."""
        return None if self.below is None else sum(self.below)

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """Return plain lists and numbers; nothing of it is confidential."""
        return {
            "columns": [plain(name) for name in self.columns],
            "combinations": sum(self.combinations),
            "smallest": self.k,
            "below": self.n_below,
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class RuleLine(_Line):
    """One rule, in the original and in the released table.

    Attributes
    ----------
    name, text : str
        The rule.
    asks_original : bool
        Whether it speaks of the original table: mean(x), observed(x).
    breaks_before, breaks_after, unknown_before, unknown_after : int or None
        How many records break it, and of how many that is unknown; None where it cannot be judged.
    worst_before, worst_after : float or None
        By how much the worst record breaks it. The first is confidential: beside the rule
        age <= 120, "by 3" is an age. So is the second where the rule speaks of the original.
    """

    name: str
    text: str
    asks_original: bool
    breaks_before: int | None
    breaks_after: int | None
    unknown_before: int | None
    unknown_after: int | None
    worst_before: float | None
    worst_after: float | None

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:
        """Return plain texts and numbers; with the confidential ones if asked for."""
        out: dict[str, Any] = {
            "rule": self.name,
            "text": self.text,
            "breaks_before": self.breaks_before,
            "breaks_after": self.breaks_after,
            "unknown_before": self.unknown_before,
            "unknown_after": self.unknown_after,
        }
        if confidential:
            out["worst_before"] = self.worst_before
        out["worst_after"] = None if self.asks_original and not confidential else self.worst_after
        return out


@dataclass(frozen=True, kw_only=True, repr=False)
class ColumnLine(_Line):
    """One column, in the original and in the released table.

    Attributes
    ----------
    name : hashable
        The column.
    kind : {"numbers", "categories"}
        What it was compared as.
    n : int
        The number of records.
    changed : int
        How many cells differ.
    missing_before, missing_after, moved : int
        How many cells are missing, and how many are so in one table and not, or in another way,
        in the other.
    total_before, total_after, mean_before, mean_after : float or None
        Of the known numbers, weighted if there is a weight; None for categories, and for the mean
        of nothing.
    low_before, low_after, high_before, high_after : float or None
        The smallest and the largest number. Those of the original are confidential.
    frequency_change : float or None
        Of categories: the largest change of a relative frequency, missing being a category.
    few : bool
        Whether so few cells are known, or differ, that a total of the original could be solved for
        one of them: then the original's total and mean are confidential.
    """

    name: Name
    kind: str
    n: int
    changed: int
    missing_before: int
    missing_after: int
    moved: int
    total_before: float | None = None
    total_after: float | None = None
    mean_before: float | None = None
    mean_after: float | None = None
    low_before: float | None = None
    low_after: float | None = None
    high_before: float | None = None
    high_after: float | None = None
    frequency_change: float | None = None
    few: bool = False

    @property
    def share_changed(self) -> float:
        """The share of records whose cell differs."""
        return self.changed / self.n

    @property
    def total_change(self) -> float | None:
        """Released total less original total."""
        return _less(self.total_after, self.total_before)

    @property
    def mean_change(self) -> float | None:
        """Released mean less original mean."""
        return _less(self.mean_after, self.mean_before)

    @property
    def relative_change(self) -> float | None:
        """The change of the mean as a share of the original mean; None where that is 0."""
        if self.mean_change is None or not self.mean_before:
            return None
        return self.mean_change / abs(self.mean_before)

    def to_dict(self, *, confidential: bool = False) -> dict[str, Any]:
        """Return plain texts and numbers; with the confidential ones if asked for."""
        public = confidential or not self.few
        out: dict[str, Any] = {
            "column": plain(self.name),
            "kind": self.kind,
            "changed": self.changed,
            "share_changed": self.share_changed,
            "missing_before": self.missing_before,
            "missing_after": self.missing_after,
            "total_before": self.total_before if public else None,
            "total_after": self.total_after,
            "total_change": self.total_change if public else None,
            "mean_before": self.mean_before if public else None,
            "mean_after": self.mean_after,
            "mean_change": self.mean_change if public else None,
            "relative_change": self.relative_change if public else None,
            "frequency_change": self.frequency_change,
        }
        if confidential:
            out |= {"low_before": self.low_before, "high_before": self.high_before}
        return out | {"low_after": self.low_after, "high_after": self.high_after}


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before
