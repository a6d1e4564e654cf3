"""One candidate, tried: what it costs, what it protects, what its audit found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from ..release import Step
from .candidate import Candidate, only, steps_to_toml

__all__ = ["Point", "front_of"]


@dataclass(frozen=True, kw_only=True)
class Point:
    """What was found about a candidate; losses and risks from 0 to 100.

    Attributes
    ----------
    candidate : Candidate
        What was tried.
    loss : float
        The first of `losses`; NaN where the candidate was refused.
    risk : float
        The largest of `risks`: the worst attack counts.
    worst : str
        The attack that found most.
    losses, risks : dict of str to float
        Every measure and every attack that fits and was tried, in per cent.
    baseline : float
        What the worst attack reaches by guessing, in per cent.
    k_reached : int or None
        The least number of records that share all their masked values, counted in the table.
    k_promised : int or None
        The k that the method promises within each of its blocks; None if it promises none.
    rules_broken : int or None
        How many records of the released table break a rule; None without rules.
    problems : tuple of str
        What the audit found that must not be so.
    notes : tuple of str
        Warnings of the masker, and attacks that were refused or not needed.
    seconds : float
        For masking alone.
    seconds_all : float
        For masking, audit, measures and attacks.
    error : str
        Why there is no result; empty where there is one.
    steps : tuple of Step
        What was done, with its columns: see `to_steps`.
    """

    candidate: Candidate
    loss: float = math.nan
    risk: float = math.nan
    worst: str = ""
    losses: dict[str, float] = field(default_factory=dict, hash=False)
    risks: dict[str, float] = field(default_factory=dict, hash=False)
    baseline: float = math.nan
    k_reached: int | None = None
    k_promised: int | None = None
    rules_broken: int | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = math.nan
    seconds_all: float = math.nan
    error: str = ""
    steps: tuple[Step, ...] = ()

    @property
    def score(self) -> float:
        """The mean of loss and risk: the lower, the better."""
        return (self.loss + self.risk) / 2

    @property
    def tried(self) -> bool:
        """Whether there is a result."""
        return not self.error

    @property
    def passed(self) -> bool:
        """Whether the audit found no problem: promised k and rules hold."""
        return self.tried and not self.problems

    def __str__(self) -> str:
        if self.error:
            return f"{self.candidate}: refused, {self.error}"
        return (
            f"{self.candidate}: loss {self.loss:.1f}, risk {self.risk:.1f} ({self.worst}), "
            f"score {self.score:.1f}"
        )

    def to_steps(self) -> list[Step]:
        """Return the steps that make this table in a study or a plan, with their columns."""
        return list(self.steps)

    def to_step(self) -> Step:
        """Return the only step; `to_steps` where there are several."""
        return only(self.to_steps())

    def to_toml(self) -> str:
        """Return the steps as a plan file has them, to be pasted."""
        return steps_to_toml(self.to_steps())

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers; NaN is None."""
        known = {field.name: getattr(self, field.name) for field in fields(self)} | {
            "candidate": {"method": self.candidate.method, "options": self.candidate.options},
            "steps": [step.to_dict() for step in self.steps],
            "problems": list(self.problems),
            "notes": list(self.notes),
        }
        return {name: None if _is_nan(value) else value for name, value in known.items()}

    @classmethod
    def from_dict(cls, known: dict[str, Any]) -> Point:
        """Build a point from what `to_dict` gave."""
        given = dict(known)
        named = given["candidate"]
        given["candidate"] = Candidate(named["method"], **named["options"])
        given["steps"] = tuple(Step.from_dict(step) for step in given["steps"])
        for name in ("loss", "risk", "baseline", "seconds", "seconds_all"):
            given[name] = math.nan if given[name] is None else float(given[name])
        for name in ("problems", "notes"):
            given[name] = tuple(given[name])
        return cls(**given)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def front_of(points: list[Point]) -> list[Point]:
    """Return the points that no other beats in both loss and risk, by ascending loss.

    Only points whose audit is passed count. Of points with the same loss and risk the first stays.
    """
    out: list[Point] = []
    least = math.inf
    for point in sorted(
        (p for p in points if p.passed), key=lambda p: (p.loss, p.risk, p.candidate.key)
    ):
        if point.risk < least:
            out.append(point)
            least = point.risk
    return out
