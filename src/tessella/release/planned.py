"""Masking by a plan: what `protect` does to a table, before the result is judged."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name
from ..exceptions import (
    BadOptionError,
    GroupSizeError,
    MissingValuesError,
    PlanError,
    RefusedError,
)
from ..frame import Table
from ..fuzzy.drawing import chance_of
from ..grouping.checks import check_k
from ..masking.alike import number_alike
from ..masking.keeping.carry import Carried, carry_out
from ..masking.keeping.data import is_code
from ..plan import Plan, make_plan
from ..rules import Confrontation, Rules
from ..schema import Schema

__all__ = [
    "WISHES",
    "Planned",
    "as_planned",
    "confirmed_schema",
    "mask_planned",
    "refuse_telling",
]


WISHES: dict[str, Any] = {
    "columns": None, "strata": (), "blocks": None, "fit": "closed", "edit": "fix",
    "small": "refuse", "missing": "pattern", "distance": "original", "scale": "zscore",
    "method": "search", "options": None,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Planned:
    """A table that was masked by a plan, and all that its judgement needs."""

    table: Any
    plan: Plan
    carried: Carried


def mask_planned(
    source: Table,
    schema: Schema,
    *,
    k: int,
    before: Confrontation,
    plan: Plan | None,
    weights: Floats,
    random_state: Any,
    **wishes: Any,
) -> Planned:
    """Plan and mask; `wishes` are those of `make_plan`, see `WISHES`.

    `before` is the table confronted with its rules.
    """
    check_k(k, source.n_rows)
    if plan is None:
        noticed = _refuse_contradictions(before.rules)
        apart = _names(source, wishes["strata"])
        plan = make_plan(schema, before.rules, k=k, **wishes | {"strata": apart})
        plan = replace(plan, notes=(*plan.notes, *noticed))
    else:
        _refuse_other_plan(plan, source, k)
    _refuse_inconsistent(before, plan)
    _refuse_missing(source, plan, schema)
    carried = carry_out(
        plan, source, schema,
        strata=_strata(source, plan),
        weights=weights,
        obedient=np.asarray((before.signs >= 0).all(axis=1)),
        chance=chance_of(random_state),
    )  # fmt: skip
    return Planned(table=_write(source, plan, carried, schema), plan=plan, carried=carried)


def _refuse_other_plan(plan: Plan, source: Table, k: int) -> None:
    """Refuse a plan that is for another table."""
    if plan.k != k:
        raise GroupSizeError.given_twice(k, plan.k)
    planned = {*plan.untouched, *(name for block in plan.blocks for name in block.columns)}
    if planned != set(source.columns):
        differ = ", ".join(map(repr, planned.symmetric_difference(source.columns)))
        raise PlanError(f"The plan is for a table with other columns; they differ in: {differ}.")


def _names(source: Table, strata: Any) -> tuple[Name, ...]:
    """Return strata as names of columns."""
    if strata is None:
        return ()
    if isinstance(strata, str) or source.has(strata):
        return (strata,)
    if not isinstance(strata, list | tuple):
        raise BadOptionError("strata", type(strata).__name__, "names of columns")
    return tuple(strata)


def confirmed_schema(source: Table, schema: Schema | None, weights: Hashable | None) -> Schema:
    """Return the schema of a table that may still have columns that must not be released."""
    if schema is not None and not isinstance(schema, Schema):
        raise BadOptionError("schema", type(schema).__name__, "a tessella.Schema")
    known = Schema.guess(source) if schema is None else schema
    known.check(source)
    if weights is not None and not isinstance(weights, Hashable):
        raise BadOptionError("weights", type(weights).__name__, "the name of a column")
    if weights is not None:
        known = known.override({weights: {"role": "weight"}})
    elif schema is None:
        guessed = [c.name for c in known if c.role == "weight"]
        known = known.override({name: {"role": "quasi-identifier"} for name in guessed})
    return known


def refuse_telling(known: Schema) -> None:
    """Refuse columns that name a respondent or a household."""
    if telling := known.names("identifier", "household"):
        named = ", ".join(f"{name!r} ({known[name].role})" for name in telling)
        raise PlanError(
            f"These columns must not be released: {named}. Drop them from the table, or give a "
            "schema that says otherwise."
        )


def _refuse_contradictions(rules: Rules) -> list[str]:
    """Refuse rules that no record can keep; return what else there is to be said of them."""
    found = rules.check()
    wrong = [finding for finding in found if finding.kind in ("contradiction", "always false")]
    if wrong:
        raise PlanError("No record can keep these rules. " + " ".join(map(str, wrong)))
    return [str(finding) for finding in found]


def _refuse_inconsistent(before: Confrontation, plan: Plan) -> None:
    if plan.edit == "refuse" and not before.all_hold:
        broken = {rule.name: len(rows) for rule, rows in zip(before.rules, before.rows)}
        named = "; ".join(
            f"{name} ({before.rules[name].text}): {count}"
            for name, count in broken.items()
            if count
        )
        raise RefusedError(
            f"{len(before.breaking())} records of the table break a rule, and edit='refuse': "
            f"{named}. "
            'Correct them, or give edit="fix".'
        )


def _refuse_missing(source: Table, plan: Plan, schema: Schema) -> None:
    if plan.missing != "error":
        return
    counts = {}
    for block in plan.blocks:
        for name in block.columns:
            if source.facts(name).numeric:
                codes = {name: schema[name].missing}
                lost = int(source.numeric([name], codes=codes).missing.sum())
            else:
                place, texts = source.labels(name)
                gone = [at for at, text in enumerate(texts) if is_code(text, schema[name].missing)]
                lost = int(((place < 0) | np.isin(place, gone)).sum())
            if lost:
                counts[str(name)] = lost
    if counts:
        raise MissingValuesError(counts, source.n_rows)


def _strata(source: Table, plan: Plan) -> Integers:
    if not plan.strata:
        return np.zeros(source.n_rows, dtype=np.int64)
    layers = []
    for name in plan.strata:
        place, _ = source.labels(name)
        if (place < 0).any():
            raise BadOptionError("strata", name, "columns without missing values")
        layers.append(place)
    return number_alike(layers)


def _write(source: Table, plan: Plan, carried: Carried, schema: Schema) -> Any:
    """Write numbers and categories into a table of the same kind; missing cells stay."""
    moved = Table.read(source.rearrange(carried.rows)) if carried.rows else source
    keep, numbers = {}, {}
    for name, values in carried.numbers.items():
        lost = source.numeric([name], codes={name: schema[name].missing}).missing[:, 0]
        keep[name], numbers[name] = lost, np.where(lost, 0.0, values)
        decimals = source.facts(name).decimals
        if decimals:  # a dtype of fixed decimals
            numbers[name] = np.round(numbers[name], decimals)
    as_float = [
        name
        for name in numbers
        if source.facts(name).decimals == 0 and not _choice(plan, name).whole
    ]
    return moved.replace(numbers, keep=keep, as_float=as_float)


def as_planned(source: Table, plan: Plan) -> Any:
    """Return the original with those whole columns as floats that the plan releases as floats."""
    names = [
        choice.column
        for block in plan.blocks
        for choice in block.choices
        if source.facts(choice.column).decimals == 0
        and source.facts(choice.column).numeric
        and not choice.whole
        and choice.operator in ("mean", "geometric mean", "project")
    ]
    if not names:
        return source
    numbers = source.numeric(names)
    return source.replace(
        {name: np.nan_to_num(numbers.values[:, j]) for j, name in enumerate(names)},
        keep={name: numbers.missing[:, j] for j, name in enumerate(names)},
        as_float=names,
    )


def _choice(plan: Plan, name: Name) -> Any:
    return next(block.choice(name) for block in plan.blocks if name in block.columns)
