"""What estimates of a survey give: each before and after masking, with its sampling error.

They have figures of the original, and are as confidential as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pandas as pd

from .._types import Name

SHOWN = 20  # estimates that a printed result lists
NAMED = 3  # estimates that a sentence names
SOURCE = (
    "J.-C. Deville (1999). Variance estimation for complex statistics and estimators: "
    "linearization and residual techniques. Survey Methodology 25(2), 193-203"
)


@dataclass(frozen=True, kw_only=True)
class SurveyEstimate:
    """One estimate from the original and from the masked table; confidential.

    `of` is the category of a share and the denominator of a ratio, `within` a column and its
    category where the estimate is about the records of that category, `n` how many of the original
    it is based on, and `error` the sampling error of `before`.
    """

    kind: str
    column: Name
    of: str = ""
    within: tuple[Name, str] | None = None
    n: int
    before: float
    after: float
    error: float

    @property
    def name(self) -> str:
        """The estimate in words."""
        beside = {"share": f" = {self.of}", "ratio": f" to {self.of}"}.get(self.kind, "")
        where = "" if self.within is None else " where {} = {}".format(*self.within)
        return f"{self.kind} of {self.column}{beside}{where}"

    @property
    def difference(self) -> float:
        """The masking error: the masked table's estimate less the original's; 0 if rounding."""
        apart = self.after - self.before
        return apart if abs(apart) > 1e-12 * max(abs(self.before), abs(self.after)) else 0.0

    @property
    def ratio(self) -> float:
        """The size of the masking error over the sampling error; infinite where that is 0."""
        if not self.difference:
            return 0.0
        return abs(self.difference) / self.error if self.error > 0 else math.inf

    @property
    def moved(self) -> bool:
        """Whether masking moved the estimate by more than its sampling error."""
        return self.ratio > 1 + 1e-9

    def to_dict(self) -> dict[str, Any]:
        """Return plain texts and numbers; a ratio without limit is None."""
        return {
            "name": self.name,
            "kind": self.kind,
            "column": str(self.column),
            "of": self.of,
            "within": None if self.within is None else [str(part) for part in self.within],
            "n": self.n,
            "before": self.before,
            "after": self.after,
            "masking_error": self.difference,
            "sampling_error": self.error,
            "ratio": self.ratio if math.isfinite(self.ratio) else None,
            "moved": self.moved,
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class EstimateLoss:
    """Estimates before and after masking, those first that moved most for their sampling error.

    Attributes
    ----------
    estimates : tuple of SurveyEstimate
        Totals, means, shares, ratios, and figures of inequality and poverty of all records.
    within : tuple of SurveyEstimate
        Means within categories, where they were asked for.
    notes : tuple of str
        What was left out, and why.
    """

    estimates: tuple[SurveyEstimate, ...]
    within: tuple[SurveyEstimate, ...] = ()
    notes: tuple[str, ...] = ()
    name: str = "estimates"
    formula: str = (
        "the share of estimates that differ by more than one sampling error of the original's"
    )
    source: str = SOURCE
    range: tuple[float, float] = (0.0, 1.0)

    @property
    def moved(self) -> tuple[SurveyEstimate, ...]:
        """The estimates of all records that moved by more than their sampling error."""
        return tuple(one for one in self.estimates if one.moved)

    @property
    def value(self) -> float:
        """The share of estimates that moved by more than their sampling error."""
        return len(self.moved) / len(self.estimates) if self.estimates else 0.0

    @property
    def by_column(self) -> Mapping[Name, float]:
        """The largest ratio of masking to sampling error of each column's estimates."""
        found: dict[Name, float] = {}
        for one in self.estimates:
            found[one.column] = max(found.get(one.column, 0.0), one.ratio)
        return MappingProxyType(found)

    @property
    def verdict(self) -> str:
        """How many estimates moved by more than their sampling error: kinds and columns only."""
        n, moved = len(self.estimates), self.moved
        if not n:
            return "no estimate could be compared"
        if not moved:
            return f"all {n:,} estimates stayed within their sampling errors"
        what = [f"{'a ' * (one.kind == 'share')}{one.kind} of {one.column}" for one in moved]
        names = list(dict.fromkeys(what))
        more = len(names) - NAMED
        return (
            f"of {n:,} estimates {len(moved):,} moved by more than their sampling error: "
            + ", ".join(names[:NAMED])
            + (f" and {more:,} more" if more > 0 else "")
        )

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        return f"{self.verdict[0].upper()}{self.verdict[1:]}."

    def __str__(self) -> str:
        lines = [f"Estimates beside their sampling errors: {self.verdict}."]
        shown = self.estimates[:SHOWN]
        if shown:
            width = max(len(one.name) for one in shown)
            names = ("before", "after", "masking", "sampling", "ratio")
            lines.append("  " + " " * width + "".join(f"  {name:>11}" for name in names))
            lines += [
                f"  {one.name.ljust(width)}"
                + "".join(f"  {x:11.5g}" for x in (one.before, one.after, one.difference))
                + "".join(f"  {x:11.3g}" for x in (one.error, one.ratio))
                for one in shown
            ]
        if len(self.estimates) > SHOWN:
            lines.append(f"  ... and {len(self.estimates) - SHOWN:,} that moved less")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers."""
        return {
            "name": self.name, "value": self.value, "verdict": self.verdict,
            "formula": self.formula, "source": self.source, "range": list(self.range),
            "estimates": [one.to_dict() for one in self.estimates],
            "within": [one.to_dict() for one in self.within],
            "notes": list(self.notes),
        }  # fmt: skip

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row for each estimate, those within categories last."""
        return pd.DataFrame([one.to_dict() for one in (*self.estimates, *self.within)])
