"""A release of a table larger than memory: the same steps, piece by piece and shard by shard.

A table is loaded in *pieces*. What they must know of the whole is summed up (`masking.whole`), and
each tells where its records lie. Then all rows go to *shards*: of whole groups, where one block of
records is searched (`engines.cells`), else of cells that find groups by themselves
(`release.cells`). Each is masked, audited and measured as a table of its own: where every shard has
k alike and breaks no rule, so has the whole and breaks none. Last the records go to the parts of
the release, in an order drawn anew.

Nothing that a job does depends on the engine, nor on how much memory there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from .._wording import listed
from ..engines import base
from ..engines.base import Engine, Moved
from ..engines.cells import EngineCells
from ..exceptions import BadOptionError, BadTableError, PlanError
from ..frame import View
from ..grouping.cells import search_in_cells
from ..grouping.dominance import checked_dominance
from ..grouping.search import EFFORTS, large_rounds, standard_moves
from ..guessing.values import UNMASKED
from ..masking.homes import constant_columns, numeric_columns
from ..masking.selection import Scale, merge_columns
from ..masking.whole import Whole, plans_of_blocks, put_together
from ..plan import Plan, make_plan
from ..rules import Rules
from ..schema import Schema
from . import roles
from .cells import find_homes, send_by_cells
from .centres import shares_centres, with_centres
from .forms import Form
from .jobs import (
    GROUP,
    KEY,
    PART,
    ROW,
    SAMPLED,
    Task,
    alike_columns,
    count_alike,
    count_alone,
    count_patterns,
    hash_cells,
    hash_part,
    look_at_piece,
    measure_rows,
    place_rows,
    put_in_order,
    send_back,
    send_rows,
    unpack,
)
from .large_release import LargeRelease, add_up
from .preparing import Suppression, prepared
from .result import DEFAULTS, refuse_contradictions, refuse_inconsistent
from .shards import mask_shard, masked_numbers
from .steps import PREPARING, Step, chosen_columns


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
    refuse_diversity(options)
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
    _refuse_time(plan)
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
        whole_units=given["whole_units"],
        asks_units=not plan.is_drawn and not set(covered).isdisjoint(constant_columns(view)),
    )  # fmt: skip


def refuse_diversity(options: Mapping[str, Any]) -> None:
    """Refuse l and t, also those of a plan that is given."""
    planned = getattr(options.get("plan"), "diversity", None)
    if planned is not None or options.get("l") is not None or options.get("t") is not None:
        raise PlanError(
            "l and t are not promised for a table larger than memory, which is grouped in pieces. "
            "Read the table into memory, or leave out l, t and confidential."
        )


def _refuse_time(plan: Plan) -> None:
    """Refuse what is found in a time, which no two machines find alike."""
    if plan.options.get("time_limit") is not None:
        raise PlanError(
            "What a search finds in a time_limit differs from one machine to the next. Of a table "
            'larger than memory give options = { effort = "quick" }, or "thorough".'
        )


def searches(task: Task) -> bool:
    """Tell if a plan is one block of records to be searched: in rounds of cells, cut anew."""
    plan = task.plan
    return (
        plan.grouping == "search"
        and len(plan.blocks) == 1
        and not set(plan.options) - {"effort"}
        and plan.distance == "original"
        and task.constant is None
        and all(rule.unit is None for rule in task.rules)
    )


def release_large(
    engine: Engine, table: Moved, task: Task, *,
    report: Callable[[int, int, str], None] = lambda *_: None,
) -> LargeRelease:  # fmt: skip
    """Mask a table on an engine; every shard is audited, and what they say is added up.

    `report` is called with steps done, steps of all, and the name of the next.
    """
    n = sum(table.sizes.values())
    task = replace(task, n=n)
    task = _without_unique(engine, table, _with_suppression(engine, table, task))
    source, unneeded = table, list[Moved]()
    if task.schema.names("unit") and (task.asks_units or not searches(task)):
        source, task = find_homes(engine, table, task, -(-n // base.PIECE))
        unneeded = [table]
    rounds: list[Any] = []
    if searches(task):
        moves = standard_moves(n) * EFFORTS[task.plan.options.get("effort", "quick")].moves
        rounds = large_rounds(moves)
        source, unneeded = table, [source] if source is not table else []
    grouping = ["place", "cut", *["group"] * len(rounds)] if searches(task) else ["cut"]
    names = ["measure", *grouping, "send", "mask", "order", "count"]
    turn = iter(range(len(names)))

    def say(*_: Any) -> None:
        at = next(turn)
        report(at, len(names), names[at])

    say()
    measuring = partial(measure_rows, task, min(source.sizes))
    measured = engine.work("measure", [source], measuring, last=unneeded)
    task, wholes, shown = _put_together(task, list(measured.facts.values()))
    fewer, unneeded = 0, []
    if shares_centres(task):
        wholes, fewer = with_centres(engine, source, task, wholes, unneeded)
    say()
    if searches(task):
        sent = _search(engine, table, task, wholes[0], rounds, say)
    else:
        sent = send_by_cells(engine, source, task, wholes, unneeded)
        say()
    say()
    masked = engine.work("mask", [sent], partial(mask_shard, task, wholes), last=[sent])
    say()
    ordered = engine.work("order", [masked], put_in_order, last=[masked])
    say()
    counts = []
    for columns in alike_columns(task.plan):
        alike = engine.work("alike", [ordered], partial(hash_part, task, columns))
        sets = engine.work("count", [alike], partial(count_alike, task.plan.k), last=[alike])
        counts.append(list(sets.facts.values()))
    shards = list(masked.facts.values())
    found = add_up(task, wholes, masked_numbers(task, shown), shards, ordered, counts)
    return replace(found, coincided=found.coincided + fewer)


def _put_together(task: Task, pieces: list[Any]) -> tuple[Task, list[Whole], View]:
    """Make the whole of what was measured in its pieces: of each block; and some rows of it."""
    _refuse_unknown_groups(task, pieces)
    _refuse_broken(task, pieces)
    shown = task.view(unpack(pieces[0]["shown"]))
    wholes = []
    for at, plan in enumerate(plans_of_blocks(task.plan)):
        begin = f"{at} "
        own = [
            {name.removeprefix(begin): f for name, f in piece.items() if name.startswith(begin)}
            for piece in pieces
        ]
        wholes.append(put_together(plan, shown, own, partitioned=task.constant is None))
    if task.constant is not None and task.plan.scale in ("zscore", "range"):
        names = numeric_columns(shown, task.masked)
        merged = [merge_columns(list(own)) for own in zip(*(piece["units"] for piece in pieces))]
        units = Scale.of_measures(merged, task.plan.scale, names).unit
        task = replace(task, unit_scale=dict(zip(names, units.tolist())))
    return task, wholes, shown


def _search(
    engine: Engine, table: Moved, task: Task, whole: Whole, rounds: list[Any],
    say: Callable[..., None],
) -> Moved:  # fmt: skip
    """Group all records by search, and send their rows to shards of whole groups."""
    points = engine.work("place", [table], partial(place_rows, task, whole))
    has_units = bool(task.schema.names("unit"))
    cells = EngineCells(engine, points, whole.sizes, has_units=has_units)
    say()
    search_in_cells(cells, task.plan.k, np.random.default_rng(task.seed), rounds, report=say)
    assert cells.current is not None
    back = engine.work("back", [cells.current], send_back, last=[cells.current, points])
    return engine.work("rows", [table, back], send_rows, last=[back, table])


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
        raise BadOptionError("k", None, "the least number of records that lack the same")
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
