"""What `verify` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._types import Name
from ..loss.result import Summary
from .result import Audit

__all__ = ["Shape", "Verification"]

SHOWN = 30


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How far the distribution of a column is from that of the original, whoever is who.

    Attributes
    ----------
    column : name
        The column.
    distance : float
        Of numbers the largest difference of the two distribution functions (Kolmogorov-Smirnov);
        of categories half the sum of differences of their shares. From 0 to 1.
    mean_change : float or None
        Of numbers, the change of the mean in standard deviations of the original.
    """

    column: Name
    distance: float
    mean_change: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Verification:
    """What is true of a released table, whatever tool has made it.

    Attributes
    ----------
    problems : tuple of str
        What must not be so; empty if the release is verified.
    notes : tuple of str
        What a person should know: what could not be compared, and why.
    audit : Audit
        k and rules, counted in the released table; against the original where records are aligned.
    aligned : bool
        Whether records could be compared one by one.
    loss : Summary or None
        The information loss, where records are aligned.
    shapes : tuple of Shape
        The distributions, which can always be compared.
    hashes : dict of str to bool or None
        For each file of the manifest whether its hash fits; None for a file that is not there.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    audit: Audit
    aligned: bool
    loss: Summary | None
    shapes: tuple[Shape, ...]
    hashes: dict[str, bool | None]

    @property
    def passed(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers, without confidential figures."""
        return {
            "passed": self.passed,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "aligned": self.aligned,
            "audit": self.audit.to_dict(),
            "loss": None if self.loss is None else self.loss.to_dict(),
            "distributions": [
                {"column": str(s.column), "distance": s.distance, "mean_change": s.mean_change}
                for s in self.shapes
            ],
            "hashes": dict(self.hashes),
        }

    def __str__(self) -> str:
        count = len(self.problems)
        verdict = "verified" if self.passed else f"{count} problem{'' if count == 1 else 's'}"
        lines = [f"Release of {self.audit.n_records:,} records: {verdict}."]
        lines += [f"- {problem}" for problem in self.problems]
        for file, fits in self.hashes.items():
            words = {True: "as in the manifest", False: "ANOTHER than in the manifest", None: "?"}
            lines.append(f"Hash of {file}: {words[fits]}")
        if self.audit.blocks:
            smallest = min(line.k for line in self.audit.blocks)
            asked = "" if self.audit.k is None else f", asked for {self.audit.k}"
            lines.append(f"Alike in all masked columns of a block: at least {smallest}{asked}.")
        if self.audit.rules:
            kept = sum(line.breaks_after == 0 for line in self.audit.rules)
            lines.append(
                f"Rules that every released record keeps: {kept} of {len(self.audit.rules)}."
            )
        if self.loss is not None:
            lines += ["", str(self.loss)]
        elif self.shapes:
            width = max(len(str(shape.column)) for shape in self.shapes)
            lines += ["", "Distributions, compared without knowing who is who:"]
            for shape in self.shapes[:SHOWN]:
                moved = (
                    ""
                    if shape.mean_change is None
                    else f", mean {shape.mean_change:+.3g} standard deviations"
                )
                name = str(shape.column).ljust(width)
                lines.append(f"  {name}  {100 * shape.distance:5.1f} points apart{moved}")
        if self.notes:
            lines += ["", "Notes:", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines)

    __repr__ = __str__
