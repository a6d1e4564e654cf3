"""Refusing a release whose groups give a record away, with the coding that would release it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Name
from .._wording import counted, listed
from ..exceptions import RefusedError, TessellaError
from ..grouping.dominance import MOST, DominanceRule, find_dominated, least_cap
from .result import Release
from .steps import Step

if TYPE_CHECKING:
    from .study import Study

ROUNDS = 4  # of lowering thresholds: coded values make other groups, each time anew
DIGITS = 3  # of a threshold


class DominatedError(RefusedError):
    """A release that is withheld, for totals of its groups give records away.

    `steps` are those of a study that is released, with coding among them; none where none is known.
    The advice is in Python, or in `plan`.
    """

    def __init__(self, problem: str, steps: Sequence[Step] = (), *, plan: str = "") -> None:
        self.problem, self.steps = problem, list(steps)
        done = "".join(
            f".do({', '.join([repr(step.method), *_arguments(step)])})" for step in self.steps
        )
        advice = f"This would be released: Study(table){done}.release()"
        if not self.steps:
            advice = (
                "No coding helps. Give on_dominance='enlarge', a larger k, or drop the columns."
            )
        super().__init__(f"{problem} {plan or advice}")


def _arguments(step: Step) -> list[str]:
    return [f"{name}={value!r}" for name, value in step.options.items() if value is not None]


def refuse_dominated(study: Study, found: Release, rule: DominanceRule, enlarged: bool) -> None:
    """Raise where records dominate released groups; the coding that is proposed was tried."""
    if not found.audit.dominated:
        return
    names = [line.column for line in found.audit.dominance]
    k = 0 if found.plan is None else found.plan.k
    raise DominatedError(
        f"The masked table is withheld: {counted(found.audit.dominated, 'record')} can be worked "
        f"out from the totals of released groups ({rule}), in {listed(list(map(repr, names)))}"
        + (f", also with groups enlarged up to {MOST * k} records." if enlarged else "."),
        steps=_propose(study, found, rule),
    )


def _propose(study: Study, found: Release, rule: DominanceRule) -> list[Step]:
    """Return the steps with top and bottom coding before protecting, or none that helped."""
    caps: dict[Name, float] = {}
    for _ in range(ROUNDS):
        fresh = _caps(study, found, rule)
        for name, cap in fresh.items():  # a threshold that did not help is halved
            low = cap if cap < caps.get(name, math.inf) else caps[name] / 2
            caps[name] = _rounded(low, study.views[0].table.facts(name).decimals)
        if not fresh or min(caps.values()) <= 0:
            return []
        steps = [s for s in study.steps if s.name != NAME]
        place = next(at for at, step in enumerate(steps) if step.method == "protect")
        steps.insert(place, _coding(study, caps))
        try:
            study = study.replay(steps)
            found = study.judged()
        except TessellaError:
            return []
        if not found.audit.dominated:
            return steps
    return []


NAME = "against dominance"


def _caps(study: Study, found: Release, rule: DominanceRule) -> dict[Name, float]:
    """Return, for each dominated column, below which absolute value nobody dominates a group."""
    reference, released = study.views
    weights = released.weights()
    caps = {}
    lines = {line.column for line in found.audit.dominance if line.rows}
    for block in found.plan.blocks if found.plan is not None else ():
        groups = released.group_ids([*found.plan.strata, *block.columns])  # type: ignore[union-attr]
        for name in lines.intersection(block.columns):
            x, shown = reference.numbers(name), released.numbers(name)
            flagged = np.isin(groups, find_dominated(groups, x, shown, weights, rule).groups)
            heavy = None if weights is None else weights[flagged]
            caps[name] = least_cap(groups[flagged], x[flagged], heavy, rule)
    return caps


def _rounded(value: float, decimals: int | None) -> float:
    """Round down to a few digits, and to what the column can hold."""
    if value <= 0:
        return 0.0
    places = DIGITS - 1 - math.floor(math.log10(value))
    places = places if decimals is None else min(places, decimals)
    down = math.floor(value * 10.0**places) / 10.0**places
    return float(f"{down:.{DIGITS}g}")


def _coding(study: Study, caps: Mapping[Name, float]) -> Step:
    """Return a step that cuts each column at its cap, at the ends that it reaches."""
    reference = study.views[0]
    ends: dict[str, Any] = {"top": None}
    for end, sign in (("top", 1), ("bottom", -1)):
        own = {
            name: sign * cap
            for name, cap in caps.items()
            if np.nanmax(sign * reference.numbers(name)) > cap
        }
        if own:
            ends[end] = own
    columns: Sequence[Name] = list(caps)
    return Step(method="coding", name=NAME, options={"columns": columns, "by": "value", **ends})
