"""Try one candidate: mask, audit, measure, attack."""

from __future__ import annotations

import hashlib
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from .._types import Name
from ..auditing import Audit, audit
from ..exceptions import TessellaError
from ..frame import Table
from ..masking import registry
from ..release import Study
from ..release.steps import disclosed_method
from ..risk.estimate import Estimate
from .candidate import Candidate
from .measures import SAMPLE, Attack, Case, measure_losses
from .point import Point
from .task import Task

__all__ = ["Settings", "evaluate", "seed_of"]

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


def evaluate(candidate: Candidate, task: Task, settings: Settings) -> Point:
    """Try a candidate; a refusal is a point with an error, not an exception."""
    own, began = seed_of(settings.seed, candidate.key), perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            study = candidate.study(task, own)
            masked_in = perf_counter() - began
            point = _judge(candidate, task, settings, study, own)
        except TessellaError as refusal:
            error = f"{type(refusal).__name__}: {refusal}"
            return Point(
                candidate=candidate, error=_short(error), seconds_all=perf_counter() - began
            )
        except Exception as surprise:  # one method's mistake does not end an exploration
            error = f"unexpected {type(surprise).__name__} {_where(surprise)}"
            return Point(
                candidate=candidate, error=_short(error), seconds_all=perf_counter() - began
            )
    notes = tuple(dict.fromkeys(_short(_note(one)) for one in caught))
    return _with(point, notes, masked_in, perf_counter() - began)


def _judge(candidate: Candidate, task: Task, settings: Settings, study: Study, seed: int) -> Point:
    table = Table.read(study.table)
    blocks, promised = _promised(candidate, task, study)
    found = audit(
        task.source, table, k=promised, blocks=blocks or [list(task.masked)], rules=task.rules
    )
    losses = measure_losses(task, table, settings.measures)
    case = Case(
        original=task.source, masked=table, known=tuple(task.masked),
        method=disclosed_method(
            study.steps, task.source, schema=task.schema, rules=task.rules or (), plan=study.plan
        ),
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
    risks = {name: 100 * estimate.value for name, estimate in estimates.items()}
    risks = {one.name: risks[one.name] for one in settings.attacks if one.name in risks}
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


def _promised(
    candidate: Candidate, task: Task, study: Study
) -> tuple[list[list[Name]], int | None]:
    """Return the blocks within which k records share their values, and k; or neither."""
    if study.plan is not None:
        return [list(block.columns) for block in study.plan.blocks], study.plan.k
    groups = registry.find(candidate.method).groups
    if groups is None or task.rules is not None:  # records are moved to keep the rules
        return [], None
    blocks = groups(candidate, task.numbers)
    return blocks, candidate["k"] if blocks else None  # type: ignore[return-value]


def _reached(task: Task, table: Table, blocks: list[list[Name]], found: Audit) -> int:
    """Return how many records share all their masked values, at least."""
    counted = {name for block in blocks for name in block}
    if blocks and counted != set(task.masked):  # categories were drawn beside the groups
        found = audit(task.source, table, blocks=[list(task.masked)])
    assert found.joint is not None  # there is at least one block
    return found.joint.k


def _with(point: Point, notes: tuple[str, ...], seconds: float, whole: float) -> Point:
    known: dict[str, Any] = {name: getattr(point, name) for name in Point.__dataclass_fields__}
    return Point(
        **known | {"notes": (*point.notes, *notes), "seconds": seconds, "seconds_all": whole}
    )


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
