"""A release of a table larger than memory: the same steps, piece by piece and shard by shard.

A table is loaded in *pieces*. What they must know of the whole is summed up (`masking.whole`), and
each tells where its records lie; these are grouped in cells (`engines.cells`). Then all rows go to
*shards* of whole groups, each of which is masked, audited and measured as a table of its own: where
every shard has k alike and breaks no rule, so has the whole and breaks none. Last the records go to
the parts of the release, in an order drawn anew.

Nothing that a job does depends on the engine, nor on how much memory there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from .._types import Integers, Name
from .._wording import counted, listed
from ..engines.base import Engine, Moved
from ..engines.cells import EngineCells
from ..exceptions import BadOptionError, BadTableError, PlanError, RefusedError
from ..frame import Table, View
from ..grouping.cells import search_in_cells
from ..grouping.dominance import MOST, checked_dominance
from ..grouping.search import EFFORTS, large_rounds, standard_moves
from ..guessing.values import UNMASKED
from ..masking.engine import MaskedBlocks
from ..masking.households import needs_households
from ..masking.whole import Whole, put_together
from ..plan import Plan, make_plan
from ..rules import Rules
from ..schema import Schema
from . import roles
from .dominance import DominatedError
from .forms import Form
from .jobs import (
    GROUP,
    KEY,
    PART,
    ROW,
    SAMPLED,
    Task,
    count_alike,
    count_alone,
    count_patterns,
    hash_cells,
    hash_part,
    look_at_piece,
    mask_shard,
    masked_numbers,
    measure_rows,
    place_rows,
    put_in_order,
    send_back,
    send_rows,
    unpack,
)
from .preparing import Suppression, prepared
from .result import DEFAULTS, Planned, Release, refuse_contradictions, refuse_inconsistent
from .steps import PREPARING, Step, chosen_columns
from .study import Study


@dataclass(frozen=True, eq=False)
class LargeRelease:
    """What came of a table larger than memory.

    Attributes
    ----------
    rows : Moved
        The released rows, by part of the release, each in its order.
    n, n_groups, smallest : int
        Records; sets of records that are alike; units in the smallest of them.
    column_loss : dict
        Per cent of each column's variance that is lost, in all records.
    inconsistent : dict
        How many records of the original break each rule.
    dominance : list of str
        How many records the totals of their groups give away, in words, where there are any.
    sample, sample_released, labels, sampled
        Whole groups, drawn by chance: original rows, released rows, the group of each, and its
        place in the table.
    """

    task: Task
    whole: Whole
    rows: Moved
    n: int
    n_groups: int
    smallest: int
    column_loss: dict[Name, float]
    inconsistent: dict[str, int]
    dominance: list[str]
    breaking: int
    edited: int
    donated: int
    merged: int
    sample: pa.Table
    sample_released: pa.Table
    labels: Integers
    sampled: Integers

    @property
    def loss(self) -> float:
        """The mean of the columns' losses, in per cent."""
        found = list(self.column_loss.values())
        return sum(found) / len(found) if found else 0.0

    def study(
        self, rules: Rules, steps: Sequence[Step], *, seconds: float, seed: int | None
    ) -> Study:
        """Return the study of the sample, masked as it was."""
        task = self.task
        study = Study(
            task.form.dress(self.sample), schema=task.given, rules=rules, tolerance=task.tolerance,
            random_state=seed,
        )  # fmt: skip
        *before, masking = steps
        for at, step in enumerate(before, start=1):
            if step.method != "suppress":
                study.do(step)
                continue
            assert task.suppression is not None
            done, known = prepared(
                task.form, before[:at], self.sample, task.given, task.suppression
            )
            study.adopt_prepared(step, done, known, task.suppression.lost)
        view = study.views[0]
        released = Form.like(self.sample_released, pa.table(view.table.native))
        if view.unit is not None:  # it is left out of what is released, not of what is compared
            own = pa.table(view.table.native).column(str(view.unit))
            released = released.append_column(str(view.unit), own)
        table = Table.read(Table.read(released).select(list(view.columns)))
        about = study.confrontation.rules
        planned = Planned(
            table=table, plan=task.plan,
            masked=MaskedBlocks(labels=[np.unique(self.labels, return_inverse=True)[1]]),
            after=about.confront(View(table, task.schema), tolerance=task.tolerance),
            dominance=task.dominance, on_dominance=task.on_dominance,
        )  # fmt: skip
        return study.adopt(masking, planned, seconds)

    def with_counts(self, found: Release) -> Release:
        """Put what was counted in all records in the place of what the sample has."""
        audit = found.audit
        alike = [
            replace(
                line, records=(self.n,), combinations=(self.n_groups,), smallest=(self.smallest,),
                below=(0,),
            )
            for line in (*audit.blocks, audit.joint)
            if line is not None
        ]  # fmt: skip
        broken = [
            replace(line, breaks_before=self.inconsistent.get(line.name, line.breaks_before))
            for line in audit.rules
        ]
        audit = replace(
            audit, n_records=self.n, strata=("all records",), blocks=(alike[0],), joint=alike[-1],
            rules=tuple(broken),
        )  # fmt: skip
        return replace(
            found, audit=audit, loss=self.loss,
            column_loss={**found.column_loss, **self.column_loss}, inconsistent=self.breaking,
            edited=self.edited, merged=self.merged, donated=self.donated,
        )  # fmt: skip


def look(engine: Engine, table: Moved, form: Form) -> pa.Table:
    """Draw about SAMPLED rows of a table, each by its number alone, in their order."""
    n = sum(table.sizes.values())
    found = engine.work("look", [table], partial(look_at_piece, min(1.0, SAMPLED / n))).facts
    return form.dress(pa.concat_tables([unpack(own["sample"]) for own in found.values()]))


def make_task(
    form: Form, schema: Schema, rules: Rules, steps: Sequence[Step], sample: pa.Table, *,
    tolerance: float, seed: int, order: int | None,
) -> Task:  # fmt: skip
    """Plan the steps on a sample of the table, or say what this engine does not do."""
    before, masking = list[Step](), list[Step]()
    for step in steps:
        if step.method in PREPARING:
            before.append(step)
        elif step.method == "protect":
            masking.append(step)
        else:
            raise PlanError(
                "A table larger than memory can be masked by the steps "
                f"{', '.join(PREPARING)} and protect; {step.method!r} needs all records at once."
            )
    if len(masking) != 1 or steps[-1].method != "protect":
        raise PlanError(
            "A table larger than memory is masked by one step 'protect', the last of its steps."
        )
    table, known = prepared(form, before, sample, schema)
    options = {**DEFAULTS, **masking[0].options}
    k = options.pop("k", None)
    if k is None:
        raise BadOptionError("k", None, "the least number of records that share their values")
    roles.refuse_identifying(known)
    given = {n: options.pop(n) for n in ("dominance", "on_dominance", "whole_units")}
    plan = options.pop("plan", None)
    about = rules.for_columns(table.columns, only=True)
    if not about.is_fixed:
        named = ", ".join(rule.name for rule in about if not Rules([rule]).is_fixed)
        raise PlanError(
            f"{named}: what a rule looks up in the whole table, such as mean(x) or observed(x), "
            "is not known where the table is larger than memory. Write the values into the rule."
        )
    about = about.fix(table, schema=known)
    noticed = refuse_contradictions(about)
    if plan is None:
        strata = options["strata"]
        options["strata"] = (strata,) if isinstance(strata, str) else tuple(strata or ())
        plan = make_plan(known, about, k=k, **options)
    plan = _refuse_far(plan, View(table, known), given)
    covered = [*(name for block in plan.blocks for name in block.columns), *plan.strata]
    view = View(table, known)
    unmasked = roles.find_unmasked(known, covered)
    roles.refuse_unmasked(unmasked, roles.in_python(view, known, covered, unmasked))
    doubted = roles.find_unique(view, known, covered)
    if view.unit is not None:  # what a unit has alone is not counted in pieces
        roles.refuse_unique(doubted, roles.in_python(view, known, covered, doubted))
    return Task(
        form=form, released=Form.of(pa.table(table.native)),
        steps=tuple(before), given=schema, schema=known, rules=about,
        plan=replace(plan, notes=(*plan.notes, *noticed)), tolerance=tolerance,
        dominance=checked_dominance(given["dominance"], given["on_dominance"]),
        on_dominance=given["on_dominance"], seed=seed, order=order, doubted=tuple(doubted),
    )  # fmt: skip


def _refuse_far(plan: Plan, sample: View, given: Mapping[str, Any]) -> Plan:
    """Refuse what shards cannot do by themselves."""
    wrong = ""
    if len(plan.blocks) != 1:
        wrong = "several blocks: leave out blocks"
    elif plan.grouping != "search":
        wrong = f"grouping={plan.grouping!r}: groups are made by search"
    elif set(plan.options) - {"effort"}:
        wrong = f"options {sorted(plan.options)}: give effort alone"
    elif plan.distance != "original":
        wrong = f"distance={plan.distance!r}: records are near by their values"
    elif given["whole_units"] or _about_units(plan) or needs_households(plan, sample):
        wrong = "units that are masked whole, for columns are constant in them or rules are about "
        wrong += "their members: make these columns strata, or give up these rules"
    if wrong:
        raise PlanError(f"A table larger than memory cannot be masked with {wrong}.")
    return plan


def _about_units(plan: Plan) -> bool:
    return any(rule.unit is not None for rule in plan.rules)


def release_large(
    engine: Engine, table: Moved, task: Task, *, keep: bool = False,
    report: Callable[[int, int, str], None] = lambda *_: None,
) -> LargeRelease:  # fmt: skip
    """Mask a table on an engine; every shard is audited, and what they say is added up.

    `report` is called with steps done, steps of all, and the name of the next. With `keep` the
    engine keeps the rows of the table.
    """
    n = sum(table.sizes.values())
    task = replace(task, n=n)
    moves = standard_moves(n) * EFFORTS[task.plan.options.get("effort", "quick")].moves
    rounds = large_rounds(moves)
    names = ["measure", "place", "cut", *["group"] * len(rounds), "send", "mask", "order", "count"]
    turn = iter(range(len(names)))

    def say(*_: Any) -> None:
        at = next(turn)
        report(at, len(names), names[at])

    say()
    task = _without_unique(engine, table, _with_suppression(engine, table, task))
    measured = engine.work("measure", [table], partial(measure_rows, task))
    pieces = list(measured.facts.values())
    _refuse_unknown_groups(task, pieces)
    _refuse_broken(task, pieces)
    shown = task.view(unpack(pieces[0]["shown"]))
    whole = put_together(task.plan, shown, pieces)
    say()
    points = engine.work("place", [table], partial(place_rows, task, whole))
    cells = EngineCells(engine, points, whole.sizes, has_units=shown.unit is not None)
    random = np.random.default_rng(task.seed)
    say()
    search_in_cells(cells, task.plan.k, random, rounds, report=say)
    assert cells.current is not None
    back = engine.work("back", [cells.current], send_back, last=[cells.current, points])
    last = [back] if keep else [back, table]
    sent = engine.work("rows", [table, back], send_rows, last=last)
    say()
    masked = engine.work("mask", [sent], partial(mask_shard, task, whole), last=[sent])
    say()
    ordered = engine.work("order", [masked], put_in_order, last=[masked])
    say()
    alike = engine.work("alike", [ordered], partial(hash_part, task))
    sets = engine.work("count", [alike], count_alike, last=[alike])
    columns = masked_numbers(task, shown)
    return _add_up(task, whole, columns, list(masked.facts.values()), ordered, sets)


def _without_unique(engine: Engine, table: Moved, task: Task) -> Task:
    """Refuse columns released as they are that tell most records apart: counted in all of them.

    In a sample more values stand alone than in the whole: what does not there, does nowhere.
    """
    for name in task.doubted:
        found = engine.work("unique", [table], partial(hash_cells, task, str(name)))
        alone = engine.work("alone", [found], count_alone, last=[found]).facts.values()
        if sum(int(own["alone"]) for own in alone) > UNMASKED * task.n:
            shown = task.view(next(table.tables()).slice(0, 1_000))
            columns = [c for block in task.plan.blocks for c in block.columns]
            ways = roles.in_python(shown, task.schema, columns, [name])
            roles.refuse_unique([name], ways)
    kept = {name: {"unique": "kept"} for name in task.doubted}
    return replace(task, given=task.given.override(kept), schema=task.schema.override(kept))


def _with_suppression(engine: Engine, table: Moved, task: Task) -> Task:
    """Count what cells are missing together, where a step suppresses more of them."""
    wanted = [step for step in task.steps if step.method == "suppress"]
    if not wanted:
        return task
    if len(wanted) > 1:
        raise PlanError("A table larger than memory has one step 'suppress'.")
    k, about = wanted[0].options.get("k"), wanted[0].options.get("columns")
    if k is None:
        raise BadOptionError("k", None, "what 'suppress' needs")
    shown = task.view(next(table.tables()).slice(0, 1_000))
    names = chosen_columns(shown.table, task.schema, about)
    facts = engine.work("patterns", [table], partial(count_patterns, task, names, int(k))).facts
    pieces = list(facts.values())
    donors = [unpack(own["donors"]) for own in pieces]
    return replace(task, suppression=Suppression.of(names, pieces, donors, int(k)))


def _refuse_broken(task: Task, pieces: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a table that breaks its rules, where the plan says so."""
    if task.plan.edit != "refuse":
        return
    breaking = sum(int(own["breaking"]) for own in pieces)
    if breaking:
        counts = np.sum([own["broken"] for own in pieces], axis=0).tolist()
        refuse_inconsistent(task.rules, counts, breaking)


def _refuse_unknown_groups(task: Task, pieces: Sequence[Mapping[str, Any]]) -> None:
    """Refuse recodings of values that do not occur in the table."""
    for at, step in enumerate(task.steps):
        if step.options.get("groups") is None:
            continue
        there = {text for own in pieces for text in own[f"texts{at}"].tolist()}
        named = {str(old) for olds in step.options["groups"].values() for old in olds}
        if unknown := sorted(named - there):
            listed = ", ".join(map(repr, unknown[:5]))
            expected = f"values that occur in column {step.options['column']!r}"
            raise BadOptionError("groups", listed, expected)


def _add_up(
    task: Task, whole: Whole, names: Sequence[Name], shards: Sequence[Mapping[str, Any]],
    ordered: Moved, alike: Moved,
) -> LargeRelease:  # fmt: skip
    """Add up what shards and counts say; refuse a release that lacks records, or k."""
    counts = list(alike.facts.values())
    n = sum(int(own["records"]) for own in counts)
    smallest = min(int(own["smallest"]) for own in counts)
    if n != task.n or smallest < task.plan.k:
        raise RefusedError(
            f"The masked table is withheld: of {task.n:,} records {n:,} were counted, the fewest "
            f"alike {smallest}, and k is {task.plan.k}."
        )
    dominance = _dominance(task, shards)
    squares = np.sum([own["squares"] for own in shards], axis=0)
    losses = {
        name: 100 * float(total / weight)
        for name, (total, weight), spread in zip(names, squares, whole.scale.deviation)
        if spread > 0 and weight > 0
    }
    broken = np.sum([own["inconsistent"] for own in shards], axis=0).astype(int)
    fewest = smallest  # of units no shard has fewer
    if task.schema.names("unit"):
        fewest = min(int(own["smallest"]) for own in shards)

    def total(name: str) -> int:
        return sum(int(own[name]) for own in shards)

    return LargeRelease(
        task=task, whole=whole, rows=ordered, n=n,
        n_groups=sum(int(own["groups"]) for own in counts), smallest=fewest, column_loss=losses,
        inconsistent=dict(zip(task.rules.names, np.atleast_1d(broken).tolist())),
        dominance=dominance, breaking=total("breaking"), edited=total("edited"),
        donated=total("donated"),
        merged=sum(part.merged for part in whole.parts),
        sample=pa.concat_tables([unpack(own["sample"]) for own in shards]),
        sample_released=pa.concat_tables([unpack(own["released"]) for own in shards]),
        labels=np.concatenate([own["labels"] for own in shards]),
        sampled=np.concatenate([own["rows"] for own in shards]),
    )  # fmt: skip


def _dominance(task: Task, shards: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say how many records totals of groups give away, or refuse them where that was asked for."""
    n = sum(int(own["dominated"]) for own in shards)
    if not n:
        return []
    records = counted(n, "record")
    names = sorted({name for own in shards for name in own["dominated_columns"].tolist()})
    columns = listed(list(map(repr, names)))
    if task.on_dominance == "report":
        told = f"the totals of released groups give away {records}, in {columns}"
        return [f"Dominance ({task.dominance}): {told}."]
    enlarged = task.on_dominance == "enlarge"
    wider = f", also with groups enlarged up to {MOST * task.plan.k} records" if enlarged else ""
    other = "" if enlarged else "on_dominance='enlarge', "
    raise DominatedError(
        f"The masked table is withheld: {records} can be worked out from the totals of released "
        f"groups ({task.dominance}), in {columns}{wider}.",
        plan=f"Give {other}a larger k, cut these values in the original, or drop the columns.",
    )


def load(engine: Engine, tables: Iterable[pa.Table]) -> tuple[Moved, Form]:
    """Load a table that comes in pieces; the form is that of the first one."""
    kept: list[Form] = []

    def noted() -> Iterable[pa.Table]:
        for table in tables:
            if not kept:
                kept.append(Form.of(table))
                if taken := [
                    name for name in (ROW, GROUP, PART, KEY) if name in table.column_names
                ]:
                    raise BadTableError(
                        f"{listed(taken)}: names that rows are moved by. Rename these columns."
                    )
            yield kept[0].checked(table)

    return engine.load(noted()), kept[0] if kept else Form.of(pa.table({}))
