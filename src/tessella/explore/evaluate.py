"""One candidate, tried: mask, audit, measure, attack; a `Point` is what was found.

Losses and risks are on a scale of 0 to 100. The first of the measures and the worst of the attacks
count in the score.
"""

from __future__ import annotations

import hashlib
import math
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from .._types import Name
from ..auditing import Audit, audit
from ..exceptions import BadOptionError, TessellaError, UnknownOptionError
from ..frame import Pair, View
from ..release import Step, Study
from ..risk import attacks
from ..risk.assessment import Attack, Case
from ..risk.estimate import Estimate
from .candidate import Candidate, PresentPlan, Task, only, steps_to_toml

SAMPLE = 10_000  # records that are attacked in a larger table: shares are known to one point

# In the order in which ties for the worst are named.
TRIED = ("euclidean", "mahalanobis", "learned", "transparency", "gower", "interval", "dominance")
ATTACKS: dict[str, Attack] = {name: attacks.ATTACKS[name] for name in TRIED}


# From a measure to the largest value that it counts up to, which is 100 on the scale of scores.
MEASURES: dict[str, float] = {
    "values": 100.0,  # of its own: see `measure_losses`
    "sse_sst": 1.0,
    "il1s": 1.0,
    "pil": 100.0,
    "quantiles": 1.0,
    "kolmogorov_smirnov": 1.0,
    "wasserstein": 1.0,
    "eigenvalues": 1.0,
    "principal_components": 1.0,
    "correlations_absolute": 2.0,
    "covariances_absolute": 1.0,
    "variances_absolute": 1.0,
    "means_absolute": 1.0,
    "contingency": 1.0,
    "entropy": 1.0,
    "mutual_information": 1.0,
}
DEFAULT = ("values", "sse_sst", "il1s", "pil")


def find_measures(given: Iterable[str] | None) -> tuple[str, ...]:
    """Check names of measures; the default where none are given."""
    if given is None:
        return DEFAULT
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadOptionError("measures", given, "a list of names of measures")
    names = tuple(given)
    for name in names:
        if name not in MEASURES:
            raise UnknownOptionError("measure", name, MEASURES)
    if not names or len(set(names)) < len(names):
        raise BadOptionError("measures", names, "at least one measure, and each once")
    return names


def measure_losses(task: Task, masked: Any, names: tuple[str, ...]) -> dict[str, float]:
    """Measure losses on a scale of 0 to 100; those that do not fit the columns are left out.

    "values" is the share of the variation of values that is lost, averaged over columns: of a
    column of numbers SSE/SST, at most 1; of categories H(X given Y) / H(X).
    """
    from ..loss import measure

    found = measure(task.original, masked, columns=task.masked, schema=task.schema)
    summary = {loss.name: loss for loss in found}
    out = {}
    for name in names:
        if name == "values":
            parts = [summary[part] for part in ("sse_sst", "entropy") if part in summary]
            shares = [min(share, 1.0) for part in parts for share in part.by_column.values()]
            out[name] = 100 * sum(shares) / len(shares)
        elif name in summary:
            out[name] = 100 * min(summary[name].value / MEASURES[name], 1.0)
    return out


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
        What the worst attack reaches by guessing, in per cent; on shuffled records if learned.
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
    def names(self) -> dict[str, str]:
        """What a map calls the candidate: its key, a short label, and all of it in words."""
        one = self.candidate
        return {"key": one.key, "label": one.label, "text": str(one)}

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
        known = vars(self) | {
            "candidate": {"method": self.candidate.method, "options": self.candidate.options},
            "steps": [step.to_dict() for step in self.steps],
            "problems": list(self.problems),
            "notes": list(self.notes),
        }
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in known.items()
        }

    @classmethod
    def from_dict(cls, known: dict[str, Any]) -> Point:
        """Build a point from what `to_dict` gave."""
        given = dict(known)
        named = given["candidate"]
        given["candidate"] = (
            PresentPlan.from_options(named["options"])
            if named["method"] == PresentPlan.NAME
            else Candidate(named["method"], **named["options"])
        )
        given["steps"] = tuple(Step.from_dict(step) for step in given["steps"])
        for name in ("loss", "risk", "baseline", "seconds", "seconds_all"):
            given[name] = math.nan if given[name] is None else float(given[name])
        for name in ("problems", "notes"):
            given[name] = tuple(given[name])
        return cls(**given)


def by_loss(point: Point) -> tuple[float, float, str]:
    """Sort points by loss, then by risk."""
    return point.loss, point.risk, point.candidate.key


def by_risk(point: Point) -> tuple[float, float, str]:
    """Sort points by risk, then by loss."""
    return point.risk, point.loss, point.candidate.key


def by_score(point: Point) -> tuple[float, str]:
    """Sort points by the mean of loss and risk."""
    return point.score, point.candidate.key


def front_of(points: list[Point]) -> list[Point]:
    """Return the points that no other beats in both loss and risk, by ascending loss.

    Only points whose audit is passed count. Of points with the same loss and risk the first stays.
    """
    out: list[Point] = []
    for point in sorted((p for p in points if p.passed), key=by_loss):
        if not out or point.risk < out[-1].risk:
            out.append(point)
    return out


EVERYBODY = 0.995  # found by one attack: an expensive one could add next to nothing
LONGEST = 300  # of a note or error, in characters


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every candidate is tried with."""

    attacks: tuple[Attack, ...]
    measures: tuple[str, ...]
    effort: str
    seed: int

    @property
    def key(self) -> str:
        """The same text for the same settings."""
        attacks = ",".join(attack.name for attack in self.attacks)
        return f"attacks={attacks};measures={','.join(self.measures)};effort={self.effort}"


def seed_of(seed: int, key: str) -> int:
    """Return the seed of a candidate: its own, and the same in whatever order they are tried."""
    digest = hashlib.sha256(f"{seed}|{key}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def evaluate(
    candidate: Candidate,
    task: Task,
    settings: Settings,
    study_of: Callable[[int], Study] | None = None,
) -> Point:
    """Try a candidate; a refusal is a point with an error, not an exception.

    `study_of` makes the study from the candidate's seed, where the candidate does not do so itself.
    """
    own, began = seed_of(settings.seed, candidate.key), perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            study = candidate.study(task, own) if study_of is None else study_of(own)
            masked_in = perf_counter() - began
            point = _judge(candidate, task, settings, study, own)
        except Exception as error:  # one method's mistake does not end an exploration
            if isinstance(error, TessellaError):
                reason = str(error)
            else:
                reason = f"unexpected {type(error).__name__} {_where(error)}"
            seconds = perf_counter() - began
            return Point(candidate=candidate, error=_short(reason), seconds_all=seconds)
    notes = tuple(dict.fromkeys(_short(_note(one)) for one in caught))
    seconds = perf_counter() - began
    return replace(point, notes=(*point.notes, *notes), seconds=masked_in, seconds_all=seconds)


def _judge(candidate: Candidate, task: Task, settings: Settings, study: Study, seed: int) -> Point:
    table = Pair(task.original, _common(task, study), task.schema).masked
    promise = study.promise
    blocks = [] if promise is None else promise.blocks
    promised = None if promise is None else promise.k
    counted = blocks or [list(task.masked)]
    found = audit(
        task.original, table, k=promised, blocks=counted, rules=task.rules, schema=task.schema
    )
    losses = measure_losses(task, table, settings.measures)
    case = Case(
        original=task.original, masked=table, known=tuple(task.masked), schema=task.schema,
        method=study.disclosed,
        effort=settings.effort,
        held_out=False, seed=seed, sample=SAMPLE if task.n > SAMPLE else None, tag=candidate,
    )  # fmt: skip
    estimates, notes = _attack(case, settings.attacks)
    if not estimates:
        named = ", ".join(attack.name for attack in settings.attacks)
        return Point(candidate=candidate, error=f"none of the attacks fits this table: {named}")
    if not losses:
        named = ", ".join(settings.measures)
        return Point(candidate=candidate, error=f"none of the measures fits this table: {named}")
    tried = [one.name for one in settings.attacks if one.name in estimates]
    risks = {name: 100 * estimates[name].value for name in tried}
    worst = max(risks, key=lambda name: risks[name])
    broken = None
    if task.rules is not None:
        broken = len(task.rules.confront(table, schema=task.schema).breaking())
    return Point(
        candidate=candidate,
        loss=next(iter(losses.values())),
        risk=risks[worst],
        worst=worst,
        losses=losses,
        risks=risks,
        baseline=100 * estimates[worst].baseline,
        k_reached=_reached(task, table, blocks, found),
        k_promised=promised,
        rules_broken=broken,
        problems=tuple(_short(problem) for problem in found.problems),
        notes=notes,
        steps=study.steps,
    )


def _common(task: Task, study: Study) -> Any:
    """Return the masked table in the columns of the task; a plan's study may have others."""
    masked = study.views[1].table
    names = [name for name in task.source.columns if masked.has(name)]
    return masked.native if len(names) == len(masked.columns) else masked.select(names)


def _attack(case: Case, attacks: tuple[Attack, ...]) -> tuple[dict[str, Estimate], tuple[str, ...]]:
    """Run the attacks that fit; say which were refused, and which were not needed."""
    estimates: dict[str, Estimate] = {}
    notes = []
    for attack in sorted(attacks, key=lambda one: one.expensive):
        if attack.skip_reason(case):  # `risks` lacks it
            continue
        if attack.expensive and any(found.value >= EVERYBODY for found in estimates.values()):
            notes.append(f"attack {attack.name!r} was not needed: another finds everybody")
            continue
        try:
            estimates[attack.name] = attack.run(case)
        except TessellaError as refusal:
            notes.append(_short(f"attack {attack.name!r} was refused: {refusal}"))
    return estimates, tuple(notes)


def _reached(task: Task, table: View, blocks: list[list[Name]], found: Audit) -> int:
    """Return how many records share all their masked values, at least."""
    counted = {name for block in blocks for name in block}
    if blocks and counted != set(task.masked):  # categories were drawn beside the groups
        found = audit(task.original, table, blocks=[list(task.masked)], schema=task.schema)
    assert found.joint is not None  # there is at least one block
    return found.joint.k


def _where(surprise: BaseException) -> str:
    """Say where an exception comes from. Its message may quote a value, and points are stored."""
    frames = traceback.extract_tb(surprise.__traceback__)
    last = frames[-1] if frames else None
    place = "" if last is None else f"in {Path(last.filename).name}, line {last.lineno}; "
    return f"({place}its message may quote the table and is not kept)"


def _note(warning: warnings.WarningMessage) -> str:
    """Return a warning of ours as it is, and of another library only what kind it is."""
    ours = Path(warning.filename).is_relative_to(Path(__file__).parents[1])
    if ours or warning.category.__module__.startswith("tessella"):
        return str(warning.message)
    place = f"{Path(warning.filename).name}, line {warning.lineno}"
    return f"{warning.category.__name__} in {place}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
