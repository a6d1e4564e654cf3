"""Exploring a plan: what it prepares, where it lies itself, and what a point would make of it.

The plan's preparing steps (drop, recode, suppress) are done first; what is explored is the table
after them. The plan's own masking steps are a point on the same map: the *present plan*.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._parameters import NONE, OneOf, Whole, parameters
from .._progress import shows_progress
from .._types import Name, Progress
from .._wording import listed
from ..exceptions import UnsureKindWarning
from ..frame import Table
from ..io import Source
from ..planfile import PlanFile
from ..release import Step, Study
from ..release.steps import PREPARING, count_rare, options_of, suppress
from ..risk.attacks import find_attacks
from ..rules import Rules
from ..schema import Schema
from .candidate import PresentPlan, Task
from .crew import Store, fresh_seed
from .evaluate import ATTACKS, Point, Settings, evaluate, find_measures
from .exploration import Exploration
from .exploring import explore

# What a point decides in a step; every other option of the plan's step is the holder's.
TRIED = ("columns", "k", "grouping", "options", "blocks", "plan")


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedPlan:
    """What is explored of a plan.

    Attributes
    ----------
    plan : PlanFile
        The plan.
    table : table
        The columns to mask, with units and weights, after the preparing steps.
    schema : Schema
        What these columns are; those to mask are quasi-identifiers.
    rules : Rules
        The plan's rules about the columns to mask.
    steps : tuple of Step
        The preparing steps: those of the plan, then one that was needed for k.
    notes : tuple of str
        What was done beyond the plan's steps.
    """

    plan: PlanFile
    table: Any
    schema: Schema
    rules: Rules
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns to mask."""
        return tuple(self.schema.names("quasi-identifier"))

    def explore(self, **options: Any) -> PlanExploration:
        """Try candidates on the prepared table; `options` are those of `explore`."""
        found = explore(self.table, rules=self.rules, schema=self.schema, **options)
        return PlanExploration(prepared=self, exploration=found)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PlanExploration:
    """What exploring a plan found: **confidential**.

    Attributes
    ----------
    prepared : PreparedPlan
        What was explored.
    exploration : Exploration
        The points, the front, the best.
    present : Point or None
        The plan's own masking steps on the same scale, where that was asked for.
    """

    prepared: PreparedPlan
    exploration: Exploration
    present: Point | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The preparing steps."""
        return self.prepared.steps

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done beyond the plan's steps."""
        return self.prepared.notes

    def apply(self, point: Point) -> AppliedPoint:
        """Return the steps of the plan with a point's in the place of its masking steps."""
        return apply_point(self.prepared.plan, point, first=self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, texts and numbers."""
        return self.exploration.to_dict() | {
            "first_steps": [step.to_dict() for step in self.steps],
            "notes": list(self.notes),
            "present": None if self.present is None else self.present.to_dict(),
        }

    def __str__(self) -> str:
        lines = [str(self.exploration)]
        if self.present is not None:
            lines += ["", str(self.present)]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__


def prepare_plan(
    plan: PlanFile, source: Source, *, columns: Sequence[Name] | None = None, k: int | None = None
) -> PreparedPlan:
    """Do the preparing steps of a plan.

    Parameters
    ----------
    plan : PlanFile
        The plan.
    source : Source
        Its table: `plan.read()`.
    columns : list of names, optional
        The columns to mask; by default the quasi-identifiers.
    k : int, optional
        The largest size of groups that will be tried. Where fewer records than that lack the same
        cells, no such groups could be made: further cells are then suppressed, and a note says so.
    """
    study = _studied(plan, source, preparing_only=True)
    known = study.schema
    wanted = list(known.names("quasi-identifier")) if columns is None else list(columns)
    beside = [name for name in known.names("unit", "weight") if name not in wanted]
    schema = Schema([known[name] for name in (*wanted, *beside)]).override(
        {name: {"role": "quasi-identifier"} for name in wanted}
    )
    prepared = PreparedPlan(
        plan=plan,
        table=Table.read(study.reference).select([*wanted, *beside]),
        schema=schema,
        rules=study.rules.for_columns(wanted, only=True),
        steps=study.steps,
    )
    return prepared if k is None else _complete_enough(prepared, k)


def _studied(plan: PlanFile, source: Source, *, preparing_only: bool = False) -> Study:
    """Return a study of a plan with its steps done, or those that prepare."""
    with warnings.catch_warnings(action="ignore", category=UnsureKindWarning):
        study = plan.study(source)
    for step in plan.steps:
        if step.method in PREPARING or not preparing_only:
            study.do(step)
    return study


def _complete_enough(prepared: PreparedPlan, k: int) -> PreparedPlan:
    """Suppress cells of records that lack what fewer than k lack, or groups could not be made."""
    read, schema = Table.read(prepared.table), prepared.schema
    if k > read.n_rows or not count_rare(read, schema, k):
        return prepared
    table, _, lost = suppress(read, schema, k=k)
    columns = list(map(str, prepared.columns))
    note = (
        f"{lost.total:,} cells are taken as missing, so that {k} records lack the same; the step "
        "'suppress' does the same in a plan."
    )
    step = Step(method="suppress", options={"k": k, "columns": columns})
    return replace(
        prepared, table=table, steps=(*prepared.steps, step), notes=(*prepared.notes, note)
    )


@shows_progress
@parameters(
    effort=[OneOf(("quick", "standard"))], n_jobs=[Whole(1), NONE], random_state=[Whole(0), NONE]
)
def explore_plan(
    plan: PlanFile,
    source: Source,
    *,
    k: Sequence[int] = (3, 5, 10, 20),
    columns: Sequence[Name] | None = None,
    effort: str = "quick",
    budget: Any = None,
    n_jobs: int | None = None,
    store: Any = None,
    progress: Progress | bool | None = None,
    found: Callable[[Point], object] | None = None,
    present: bool = False,
    random_state: int | None = None,
) -> PlanExploration:
    """Explore the table of a plan, prepared as the plan prepares it.

    Parameters
    ----------
    plan : PlanFile
        Its kinds, roles, rules and preparing steps count.
    source : Source
        The table: `plan.read()`.
    present : bool, default False
        Whether the plan's own masking steps are tried first; `found` is called with this point,
        too. See `evaluate_plan`.
    k, columns, effort, budget, n_jobs, store, progress, found, random_state
        As for `explore`. Without columns, the quasi-identifiers are masked.

    Returns
    -------
    PlanExploration
        With `exploration`, `steps` (those that prepare), `notes` and `present`.
    """
    sizes = (k,) if isinstance(k, int) else tuple(k)
    prepared = prepare_plan(plan, source, columns=columns, k=max(sizes, default=None))
    here = None
    if present:
        here = evaluate_plan(
            plan, source, columns=columns, effort=effort, store=store, random_state=random_state
        )
        if found is not None:
            found(here)
    done = prepared.explore(
        k=sizes, effort=effort, budget=budget, n_jobs=n_jobs, store=store, progress=progress,
        found=found, random_state=random_state,
    )  # fmt: skip
    return replace(done, present=here)


@parameters(effort=[OneOf(("quick", "standard"))], random_state=[Whole(0), NONE])
def evaluate_plan(
    plan: PlanFile,
    source: Source,
    *,
    columns: Sequence[Name] | None = None,
    attacks: Iterable[Any] | None = None,
    measures: Iterable[str] | None = None,
    effort: str = "quick",
    store: Any = None,
    random_state: int | None = None,
) -> Point:
    """Return where a plan lies on the map: its own steps, measured and attacked as candidates are.

    The plan is carried out as it stands: with its seed (or one made of `random_state`), its strata
    and its effort of searching. It is compared with the table as the plan prepares it. What the
    plan refuses is a point with an `error`.

    Parameters
    ----------
    plan, source
        As for `explore_plan`.
    columns, attacks, measures, effort, store, random_state
        As for `explore`: with the same ones, loss and risk are on the same scale.

    Returns
    -------
    Point
        Its candidate is a `PresentPlan`; `steps` are the masking steps of the plan.
    """
    study = _studied(plan, source, preparing_only=True)
    known = study.schema
    wanted = list(known.names("quasi-identifier")) if columns is None else list(columns)
    rules = study.rules.for_columns(wanted, only=True)
    task = Task.of(study.reference, columns=wanted, rules=rules, schema=known)
    kept = None if store is None else Store(store)
    seed = random_state
    if seed is None:
        seed = fresh_seed() if kept is None else kept.seed
    chosen = find_attacks(ATTACKS if attacks is None else attacks, ATTACKS)
    settings = Settings(attacks=chosen, measures=find_measures(measures), effort=effort, seed=seed)
    candidate = PresentPlan(plan.steps, seed=plan.seed)
    held = None if kept is None else kept.find(candidate, task, settings)
    if held is not None:
        return held

    def carry_out(own: int) -> Study:
        return _studied(
            plan.model_copy(update={"seed": own if plan.seed is None else plan.seed}), source
        )

    point = evaluate(candidate, task, settings, carry_out)
    point = replace(point, steps=tuple(s for s in point.steps if s.method not in PREPARING))
    if kept is not None:
        kept.keep(point, task, settings)
    return point


@dataclass(frozen=True, kw_only=True)
class AppliedPoint:
    """A plan's steps with a point's in the place of its masking steps.

    Attributes
    ----------
    steps : tuple of Step
        The preparing steps, then those of the point.
    kept : tuple of str
        Options of the plan that the point's steps were given; it was tried without them.
    lost : tuple of str
        What the plan states and these steps do not.
    """

    steps: tuple[Step, ...]
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def plan(self, plan: PlanFile) -> PlanFile:
        """Return a plan with these steps."""
        return plan.model_copy(update={"steps": list(self.steps)})

    def __str__(self) -> str:
        from .candidate import steps_to_toml

        return "\n".join([steps_to_toml(list(self.steps)), *self.kept, *self.lost])


def apply_point(
    plan: PlanFile | Sequence[Step], point: Point, *, first: Sequence[Step] | None = None
) -> AppliedPoint:
    """Put a point's steps into a plan: the preparing steps stay, the masking steps are replaced.

    Options of the plan's masking step that exploring does not try (strata, dominance, edit, ...)
    are kept where the point's method has them. A column that strata name is not masked.

    Parameters
    ----------
    plan : PlanFile or list of Step
        The plan, or its steps.
    point : Point
        What is to be done instead of the plan's masking steps.
    first : list of Step, optional
        The preparing steps, where these are not the plan's: see `PreparedPlan.steps`.
    """
    steps = list(plan.steps if isinstance(plan, PlanFile) else plan)
    preparing = [s for s in steps if s.method in PREPARING] if first is None else list(first)
    masking = [step for step in steps if step.method not in PREPARING]
    own = dict(masking[0].options) if masking else {}
    holder = {name: value for name, value in own.items() if _is_holders(masking[0], name, value)}
    strata = holder.get("strata") or ()
    apart = [strata] if isinstance(strata, str) else list(strata)
    chosen, taken = list[Step](), set[str]()
    for step in point.to_steps():
        same = masking and step.method == masking[0].method
        fitting = options_of(step.method) if same else ("strata",)
        given = {n: v for n, v in holder.items() if n in fitting and n in options_of(step.method)}
        taken |= set(given)
        options = {**step.options, **given}
        if "strata" in given and "columns" in options:
            options["columns"] = [name for name in options["columns"] if name not in apart]
            if isinstance(options.get("blocks"), list):
                options["blocks"] = _without(options["blocks"], apart)
        if options.get("columns", True):
            chosen.append(Step(method=step.method, options=options))
    kept = [
        f"{name} is kept from the plan; the point was tried without it."
        for name in holder
        if name in taken
    ]
    lost = [
        f"{name} of the plan's step {masking[0].method!r} is lost: {point.candidate} has no such "
        "option."
        for name in holder
        if name not in taken
    ]
    if others := [step.method for step in masking[1:]]:
        lost.append(f"The plan's further steps are replaced: {listed(others)}.")
    if names := [step.name for step in masking if step.name]:
        lost.append(f"The plan's names of its masking steps are lost: {listed(names)}.")
    return AppliedPoint(steps=(*preparing, *chosen), kept=tuple(kept), lost=tuple(lost))


def _is_holders(step: Step, name: str, value: Any) -> bool:
    """Return whether an option is not the method's: no exploration tries values of it."""
    from ..masking import registry
    from ..release.result import DEFAULTS

    entry = registry.find(step.method)
    usual: Mapping[str, Any] = DEFAULTS if step.method == "protect" else entry.signature_defaults
    tuned = () if entry.tuned is None else (entry.tuned.name, *entry.tuned.also)
    if name in TRIED or name in tuned or name in entry.defaults:
        return False
    return name not in usual or value != usual[name]


def _without(blocks: Sequence[Sequence[Name]], apart: Sequence[Name]) -> list[list[Name]]:
    """Return blocks of columns without some; empty ones are gone."""
    left = [[name for name in block if name not in apart] for block in blocks]
    return [block for block in left if block]
