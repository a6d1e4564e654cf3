"""What publishing gives: where everything is, and all that was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..io.writing import Written
from ..loss.result import Summary
from ..release import Protocol, Release
from ..risk import Assessment

__all__ = ["Publication"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Publication:
    """A release on disk, with its reports. **The object itself is confidential.**

    Attributes
    ----------
    paths : mapping of str to Path
        The files, by what they are: "release", "internal report", "summary", "external report",
        "manifest".
    release : Release
        The released table, in the order of the original, and its audit.
    loss : Summary or None
        The information loss by every generic measure.
    risk, risk_before : Assessment or None
        What attacks find in the release, and in the original as it is.
    protocol : Protocol
        Every step from reading to writing, with times.
    summary : dict
        What the reports are made of.
    written : Written
        What the format of the released file asked for.
    warnings : tuple of str
        What was warned of on the way.
    """

    paths: Mapping[str, Path]
    release: Release
    loss: Summary | None
    risk: Assessment | None
    risk_before: Assessment | None
    protocol: Protocol
    summary: dict[str, Any]
    written: Written
    warnings: tuple[str, ...] = field(default=())

    @property
    def seconds(self) -> float:
        """How long all of it took."""
        return sum(entry.seconds for entry in self.protocol)

    def __str__(self) -> str:
        public = self.summary["public"]
        lines = [f"{public['records']:,} records in {len(public['columns'])} columns released."]
        if public["k"] is not None:
            smallest = min(block["smallest"] for block in public["blocks"])
            lines.append(f"Alike: at least {smallest} records, asked for were {public['k']}.")
        if len(self.release.rules):
            lines.append(f"Rules: all {len(self.release.rules)} hold.")
        lines.append(f"Information loss {self.release.loss:.2f} % (SSE/SST).")
        if self.risk is not None and self.risk.worst is not None:
            worst, before = self.risk.worst, self.risk_before
            was = "" if before is None else f", {100 * before.value:.1f} % in the original as it is"
            lines.append(
                f"Risk: the worst of {len(self.risk.tried)} attacks ({worst.name}) finds "
                f"{100 * worst.found.value:.1f} % of the records{was}."
            )
        width = max(map(len, self.paths))
        for what, path in self.paths.items():
            secret = "  (confidential)" if what in ("internal report", "summary") else ""
            lines.append(f"{what.ljust(width)}  {path}{secret}")
        lines += [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    __repr__ = __str__
