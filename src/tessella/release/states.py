"""How each step changes the state of a study: a table on its way to a release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Name
from ..auditing.recoded import Recoded
from ..exceptions import BadOptionError
from ..frame import Table, View
from ..masking.fuzzy_groups import FUZZY_OPTIONS, FuzzyOptions
from ..masking.overlapping_groups import OVERLAPPING_OPTIONS
from ..rules import Confrontation
from ..schema import Schema
from . import roles
from .promises import NamingChance, Promise, known_of_plan, naming_chance
from .result import DEFAULTS, Entry, Planned, mask_planned
from .steps import (
    FUZZY,
    OVERLAPPING,
    Step,
    Suppressed,
    drop,
    group_strata,
    mask,
    masked_columns,
    masks_keys,
    recode,
    suppress,
)

if TYPE_CHECKING:
    from .study import Study


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """A table between two steps.

    `reference` is the original, prepared alike: what loss and audit compare with. `before` is the
    reference confronted with the rules about its columns, once that was asked for.
    """

    table: Table
    reference: View
    schema: Schema
    before: list[Confrontation]  # of one or none; states with the same reference share it
    masked: tuple[Name, ...] = ()
    strata: tuple[Name, ...] = ()  # of steps that form groups of at least k
    suppressed: tuple[Name, ...] = ()  # columns of which cells were emptied by masking
    planned: Planned | None = None  # of the last plan; that of "protect" before others
    by_protect: bool = False
    promises: Mapping[int, Promise] = field(default_factory=dict)  # by the place of their step
    uncertain: tuple[Callable[[], NamingChance], ...] = ()  # of probabilistic steps
    recoded: Recoded = field(default_factory=partial(Recoded.of, None))
    entry: Entry | None = None
    step: Step | None = None  # the one that led here


def still_valid(
    before: list[Confrontation], reference: View, changed: Iterable[Name]
) -> list[Confrontation]:
    """Keep what was judged where no rule that is left is about a changed column."""
    if not before:
        return []
    (found,) = before
    about = found.rules.for_columns(reference.columns, only=True)
    if any(set(rule.columns) & set(changed) for rule in about):
        return []
    names = found.rules.names
    places = [names.index(rule.name) for rule in about]
    return [
        Confrontation(
            rules=about,
            signs=found.signs[:, places],
            applies=found.applies[places],
            rows=tuple(found.rows[place] for place in places),
            amounts=tuple(found.amounts[place] for place in places),
        )
    ]


def _prepare(change: Callable[..., tuple[Any, ...]], needed: str) -> Callable[..., State]:
    def carry(study: Study, here: State, step: Step, seed: int | None) -> State:  # noqa: ARG001
        if needed not in step.options:
            raise BadOptionError(needed, None, f"what {step.method!r} needs")
        table, schema, *lost = change(here.table, here.schema, **step.options)
        prepared, account = Table.read(table), []
        if lost:
            account.append(str(lost[0]))
            lost[0].warn(step.options["k"])
        gone = [rule.name for rule in study.rules if not set(rule.columns) <= set(prepared.columns)]
        if gone:
            account.append(f"No longer judged: {', '.join(gone)}.")
        about = step.options.get("columns", step.options.get("column", ()))
        named = about if isinstance(about, list | tuple) else [about]
        entry = Entry(method=step.method, account=" ".join(account), columns=tuple(map(str, named)))
        reference = View(prepared, schema)
        before = still_valid(here.before, reference, () if step.method == "drop" else named)
        return State(table=prepared, reference=reference, schema=schema, before=before, entry=entry)

    return carry


def _protect(study: Study, here: State, step: Step, seed: int | None) -> State:
    after = _mask_by_plan(study, here, step, step.options, here.schema, seed)
    return replace(after, by_protect=True)


def _drawn(study: Study, here: State, step: Step, seed: int | None) -> State:
    """Mask by a plan whose groups are fuzzy, or overlap, with the options of its masker."""
    given, schema, fuzzy = dict(step.options), here.schema, step.method == FUZZY
    names = FUZZY_OPTIONS if fuzzy else OVERLAPPING_OPTIONS
    options = {name: given.pop(name) for name in names if name in given}
    given["k"] = given.get("k", 3)
    if fuzzy:
        given["k"] = FuzzyOptions.of(options).size(given["k"], here.table.n_rows)
    elif (order := given.pop("order")) != "kept":
        expected = '"kept": a study compares records, and publishing shuffles them'
        raise BadOptionError("order", order, expected)
    if isinstance(given.get("columns"), str):
        given["columns"] = [given["columns"]]
    if not given.pop("round_integers", True):
        whole = [column.name for column in schema if column.kind == "integer"]
        schema = schema.override({name: {"kind": "continuous"} for name in whole})
    given |= {"grouping": "fuzzy" if fuzzy else "overlapping", "options": options}
    after = _mask_by_plan(study, here, step, given, schema, seed)
    planned: Any = after.planned
    promises = after.promises
    if planned.plan.keeps_k:
        promises = {**promises, len(study.steps): Promise.of_plan(planned.plan)}
    return replace(after, promises=promises, planned=here.planned if here.by_protect else planned)


def _mask_by_plan(
    study: Study,
    here: State,
    step: Step,
    given: Mapping[str, Any],
    schema: Schema,
    seed: int | None,
) -> State:
    if given.get("k") is None:
        raise BadOptionError("k", None, "the least number of records that share their values")
    roles.refuse_identifying(here.schema)
    given = _beside_keys(study, here, given)
    weights, before = here.reference.weights(), study.confrontation
    if here.masked:  # an earlier step may have moved records off their rules, or onto them
        before = before.rules.confront(here.table, tolerance=study.tolerance, schema=here.schema)
    planned = mask_planned(
        here.table, schema, before=before, random_state=seed,
        tolerance=study.tolerance,
        weights=np.ones(here.table.n_rows) if weights is None else weights,
        **{"plan": None, **DEFAULTS, **given},
    )  # fmt: skip
    return _masked_by_plan(here, step, planned)


def _beside_keys(study: Study, here: State, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let the classes of keys that an earlier step masked be strata: one k over keys and numbers.

    Local suppression and recoding leave classes of at least k that agree in all keys. Groups within
    these classes agree in keys and numbers alike, so that k is counted over all of them together;
    groups across classes would be cut by the keys into smaller ones.
    """
    keys = [
        name
        for at, promise in here.promises.items()
        if masks_keys(study.steps[at])
        for block in promise.blocks
        for name in block
    ]
    if not keys or given.get("plan") is not None:
        return given
    strata = roles.names_of_strata(here.table, given.get("strata"))
    columns = given.get("columns")
    if columns is None:
        known = here.schema.names("quasi-identifier")
        columns = [name for name in known if name not in keys and name not in strata]
    further = [name for name in keys if name not in strata and name not in columns]
    return {**given, "columns": list(columns), "strata": [*strata, *further]}


def suppressed(table: Table, schema: Schema, lost: Suppressed, k: int) -> State:
    """Return the state after cells were suppressed elsewhere."""
    lost.warn(k)
    entry = Entry(method="suppress", account=str(lost))
    return State(
        table=table, reference=View(table, schema), schema=schema, before=[], entry=entry
    )  # fmt: skip


def adopted(here: State, step: Step, planned: Planned) -> State:
    """Return the state after a step "protect" that was taken elsewhere."""
    return replace(_masked_by_plan(here, step, planned), by_protect=True)


def _masked_by_plan(here: State, step: Step, planned: Planned) -> State:
    plan = planned.plan
    columns = [name for block in plan.blocks for name in block.columns]
    fewer = planned.masked.coincided
    note = f"\nCentres of parts coincide: there are {fewer:,} fewer than planned." if fewer else ""
    after = _masked(here, step, planned.table, columns, plan.strata, plan.explain() + note)
    if not plan.keeps_k:
        known = known_of_plan(planned, View(here.table, here.schema), here.schema)
        measure = naming_chance(
            here.table, planned.table.native, known, columns, plan.k, bounded=plan.is_overlapping
        )
        if planned.chance is not None:
            measure = partial(getattr, planned, "chance")
        after = replace(after, uncertain=(*here.uncertain, measure))
    return replace(after, planned=planned)


def mask_by_masker(study: Study, here: State, step: Step, seed: int | None) -> State:
    """Mask by the masker of a step, and keep what it promises."""
    done = mask(
        step, here.table, schema=here.schema, rules=study.confrontation.rules, seed=seed,
        folder=study.folder,
    )  # fmt: skip
    columns, strata = masked_columns(done.masker, here.table), group_strata(step, here.table)
    after = _masked(here, step, Table.read(done.table), columns, strata, done.account)
    promise = Promise.of_step(step, done.masker, columns, here.table)
    kept = {} if promise is None else {len(study.steps): promise}
    emptied = [name for name, cells in getattr(done.masker, "cells_", {}).items() if cells]
    suppressed = tuple(dict.fromkeys([*here.suppressed, *emptied]))
    after = replace(after, promises={**after.promises, **kept}, suppressed=suppressed)
    written = getattr(done.masker, "recoded_", None)
    if written is None:
        return after
    before = here.recoded
    return replace(
        after,
        schema=here.schema.override(
            {name: {"kind": kind, "labels": {}} for name, kind in written.kinds.items()}
        ),
        recoded=Recoded(
            hierarchies={**before.hierarchies, **written.hierarchies},
            emptied=before.emptied + done.masker.n_allowed_,
        ),
    )


def _masked(
    here: State, step: Step, table: Table, columns: list[Name], strata: Sequence[Name], account: str
) -> State:
    kept = {at: p for at, p in here.promises.items() if p.columns.isdisjoint(columns)}
    return replace(
        here,
        table=table,
        promises=kept,
        masked=tuple(dict.fromkeys([*here.masked, *columns])),
        strata=(*here.strata, *strata),
        entry=Entry(method=step.method, account=account, columns=tuple(map(str, columns))),
    )


STEPS: dict[str, Callable[..., State]] = {
    "drop": _prepare(drop, "columns"),
    "recode": _prepare(recode, "column"),
    "suppress": _prepare(suppress, "k"),
    "protect": _protect,
    FUZZY: _drawn,
    OVERLAPPING: _drawn,
}
