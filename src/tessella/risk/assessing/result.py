"""What an assessment found: every attack, the worst of them, and each record's own risk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._types import Floats
from ..estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Assessment", "Tried"]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One attack that was tried.

    Attributes
    ----------
    name : str
        The attack.
    about : {"identity", "attribute", "table"}
        What it is about.
    scenario : str
        What the intruder knows.
    found : Estimate
        What came of it.
    seconds : float
        How long it took.
    """

    name: str
    about: str
    scenario: str
    found: Estimate
    seconds: float

    def __str__(self) -> str:
        return f"{self.name}: {str(self.found).splitlines()[-1 if self.about == 'table' else 0]}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Assessment:
    """What the attacks that fit found; the worst one counts.

    Attributes
    ----------
    tried : tuple of Tried
        All attacks, in the order in which they were tried.
    skipped : mapping of str to str
        The attacks that were not tried, and why.
    n : int
        The number of masked records.
    seconds : float
        How long all of it took.
    """

    tried: tuple[Tried, ...]
    skipped: Mapping[str, str]
    n: int
    seconds: float
    scenarios: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def about(self, what: str) -> list[Tried]:
        """List the attacks of one kind: "identity", "attribute" or "table"."""
        return [one for one in self.tried if one.about == what]

    @property
    def worst(self) -> Tried | None:
        """The attack that finds most records; None if none was about identity."""
        return max(self.about("identity"), key=lambda one: one.found.value, default=None)

    @property
    def value(self) -> float:
        """The share of records that the worst attack finds; NaN if none was about identity.

        What was not attacked is not safe: NaN is below no limit.
        """
        return math.nan if self.worst is None else self.worst.found.value

    def __getitem__(self, name: str) -> Estimate:
        """Return what an attack found, in the scenario in which it found most."""
        own = [one.found for one in self.tried if one.name == name]
        if not own:
            labels = [label for label in self.skipped if label.startswith(f"{name} (")]
            reason = self.skipped.get(labels[0] if labels else name, "no such attack")
            raise KeyError(f"{name} was not tried: {reason}")
        return max(own, key=lambda one: one.value)

    @property
    def records(self) -> pd.DataFrame:
        """One line for each masked record: who is found, how surely, and by which attack.

        Confidential. A column for each attack on identity holds the chance that it is right about
        the record, missing where the record was not attacked; `chance` is the largest of them and
        `attack` names it; `original` is the record's own row in the original.
        """
        import pandas as pd

        columns: dict[str, Floats] = {}
        truth = np.full(self.n, -1, dtype=np.int64)
        for one in self.about("identity"):
            found: Any = one.found
            rows = np.asarray(getattr(found, "attacked", np.arange(self.n)))
            name = one.name if len(self.scenarios) < 2 else f"{one.name} ({one.scenario})"
            chance = np.full(self.n, np.nan)
            chance[rows] = found.chance
            columns[name] = chance
            if hasattr(found, "truth"):
                truth[rows] = found.truth
        frame = pd.DataFrame(columns)
        table = frame.to_numpy() if columns else np.full((self.n, 1), np.nan)
        known = ~np.isnan(table).all(axis=1)
        best = np.where(known, np.argmax(np.nan_to_num(table, nan=-1.0), axis=1), 0)
        chance = np.where(known, table[np.arange(self.n), best], np.nan)
        names = np.array([*columns] or [""], dtype=object)
        frame.insert(0, "original", truth)
        frame.insert(1, "chance", chance)
        frame.insert(2, "attack", np.where(np.nan_to_num(chance) > 0, names[best], ""))
        return frame

    def frame(self) -> pd.DataFrame:
        """One line for each attack."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "attack": one.name,
                    "about": one.about,
                    "scenario": one.scenario,
                    "value": one.found.value,
                    "low": one.found.low,
                    "high": one.found.high,
                    "baseline": one.found.baseline,
                    "records": one.found.n,
                    "seconds": one.seconds,
                    "how": one.found.attack,
                }
                for one in self.tried
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts for reports; confidential, as all figures of risk are."""
        return {
            "worst": None if self.worst is None else self.worst.name,
            "value": None if self.worst is None else self.value,
            "records": self.n,
            "seconds": round(self.seconds, 3),
            "scenarios": {name: list(columns) for name, columns in self.scenarios.items()},
            "attacks": [
                {
                    "attack": one.name,
                    "about": one.about,
                    "scenario": one.scenario,
                    "value": one.found.value,
                    "low": one.found.low,
                    "high": one.found.high,
                    "baseline": one.found.baseline,
                    "records": one.found.n,
                    "seconds": round(one.seconds, 3),
                    "how": one.found.attack,
                    "assumptions": list(one.found.assumptions),
                    "says": str(one.found),
                }
                for one in self.tried
            ],
            "skipped": dict(self.skipped),
        }

    def __str__(self) -> str:
        worst = self.worst
        lines = [f"{len(self.tried)} attacks on {self.n:,} records in {self.seconds:.1f} s."]
        if worst is not None:
            lines.append(f"The worst, {worst.name}: {str(worst.found).splitlines()[0]}")
        else:
            lines.append("No attack on who is who was tried: that risk is not known.")
        titles = {
            "identity": "Who is who (share of records found):",
            "attribute": "What is true of somebody (share of right statements):",
            "table": "What the table shows by itself:",
        }
        for about, title in titles.items():
            own = self.about(about)
            if not own:
                continue
            lines += ["", title]
            width = max(len(one.name) for one in own)
            for one in own:
                scenario = f" [{one.scenario}]" if len(self.scenarios) > 1 else ""
                lines.append(
                    f"  {one.name:<{width}}  {100 * one.found.value:5.1f} %, by guessing "
                    f"{100 * one.found.baseline:.2g} %{scenario}"
                )
        if self.skipped:
            lines += ["", "Not tried:"]
            lines += [f"  {name}: {why}" for name, why in self.skipped.items()]
        return "\n".join(lines)

    __repr__ = __str__
