"""Masking by a plan: what `protect` does to a table, before the result is judged.

The judgement: a masked table becomes a release only if its audit finds nothing wrong.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._types import Floats, Name
from ..auditing import audit
from ..exceptions import (
    BadOptionError,
    GroupSizeError,
    MissingValuesError,
    PlanError,
    RefusedError,
)
from ..frame import Table, View
from ..grouping.base import check_k
from ..masking.engine import MaskedBlocks, apply_plan, as_floats, write_blocks
from ..masking.selection import Scale
from ..plan import Plan, make_plan
from ..rules import Confrontation, Rules
from ..schema import Schema
from .result import Protocol, Release

__all__ = [
    "DEFAULTS",
    "Planned",
    "as_planned",
    "confirmed_schema",
    "judge",
    "mask_planned",
    "refuse_identifying",
]


def judge(
    reference: View,
    released: Table,
    *,
    expected: Any,
    masked: Sequence[Name],
    before: Confrontation,
    planned: Planned | None,
    tolerance: float,
    protocol: Protocol,
) -> Release:
    """Audit a masked table and measure it, or withhold it.

    Parameters
    ----------
    reference : View
        The original as it is compared with: without dropped columns, recoded.
    released : Table
        The masked table.
    expected : View or frame
        The reference in the dtypes that the release is to have.
    masked : sequence of names
        The columns that loss is measured in.
    before : Confrontation
        The reference confronted with the rules.
    planned : Planned, optional
        The step that promised k.
    """
    schema: Any = reference.schema
    plan = None if planned is None else planned.plan
    view = View(released, schema)
    after = before.rules.confront(view, tolerance=tolerance, schema=schema)
    found = audit(
        expected, view,
        k=None if plan is None else plan.k,
        blocks=None if plan is None else [list(block.columns) for block in plan.blocks],
        strata=(list(plan.strata) or None) if plan is not None else None,
        rules=before.rules, schema=schema, tolerance=tolerance, confronted=(before, after),
    )  # fmt: skip
    if not found.passed:
        raise RefusedError(
            "The masked table is withheld, for its audit found: " + "; ".join(found.problems) + ". "
            "Correct the records that break a rule, or give up a rule. Columns of float32 or of "
            "fixed decimals hold too few digits for some rules: convert them to float64."
        )
    weight = reference.weights()
    squares = _squares(reference, view, masked, weight)
    column_loss = {
        name: 100 * float(np.average(own, weights=weight)) for name, own in squares.items()
    }
    away = np.mean(list(squares.values()), axis=0) if squares else np.zeros(reference.n_rows)
    wrong = before.breaking()
    return Release(
        table=released.native,
        plan=plan,
        audit=found,
        loss=sum(column_loss.values()) / len(column_loss) if column_loss else 0.0,
        column_loss=column_loss,
        inconsistent=len(wrong),
        moved=float(np.sqrt(away.mean())),
        moved_inconsistent=float(np.sqrt(away[wrong].mean())) if len(wrong) else 0.0,
        edited=0 if planned is None else planned.masked.edited,
        merged=0 if planned is None else planned.masked.merged,
        schema=schema,
        rules=before.rules,
        protocol=protocol,
        labels=[] if planned is None else planned.masked.labels,
    )


def _squares(
    original: View, masked: View, names: Sequence[Name], weights: Floats | None
) -> dict[Name, Floats]:
    """Return squared differences in standard deviations, of each masked column that varies.

    Their weighted mean is SSE / SST. Where a cell is missing, the difference is that of the others
    on average, so that it does not count.
    """
    squares: dict[Name, Floats] = {}
    weight = np.ones(original.n_rows) if weights is None else weights
    for name in names:
        if not original.table.facts(name).numeric or original.kind(name) == "nominal":
            continue
        seen = ~original.missing(name)
        if not seen.any():
            continue
        x, w = original.numbers(name)[seen], weight[seen]
        r = masked.numbers(name)[seen]
        spread = Scale.of(x[:, None], w, "zscore", [name]).deviation[0]
        if spread > 0:
            own = ((x - r) / spread) ** 2
            squares[name] = np.full(original.n_rows, float(np.average(own, weights=w)))
            squares[name][seen] = own
    return squares


DEFAULTS: dict[str, Any] = {
    "columns": None, "strata": (), "blocks": None, "fit": "closed", "edit": "fix",
    "small": "refuse", "on_missing": "pattern", "distance": "original", "scale": "zscore",
    "grouping": "search", "options": None,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Planned:
    """A table that was masked by a plan, and all that its judgement needs."""

    table: Table
    plan: Plan
    masked: MaskedBlocks


def mask_planned(
    source: Table,
    schema: Schema,
    *,
    k: int,
    before: Confrontation,
    plan: Plan | None,
    weights: Floats,
    random_state: Any,
    **options: Any,
) -> Planned:
    """Plan and mask; `options` are those of `make_plan`, see `DEFAULTS`.

    `before` is the table confronted with its rules.
    """
    check_k(k, source.n_rows)
    if plan is None:
        noticed = _refuse_contradictions(before.rules)
        apart = _names(source, options["strata"])
        plan = make_plan(schema, before.rules, k=k, **options | {"strata": apart})
        plan = replace(plan, notes=(*plan.notes, *noticed))
    else:
        _refuse_other_plan(plan, source, k)
    _refuse_inconsistent(before, plan)
    view = View.of(source, schema)
    _refuse_missing(view, plan)
    masked = apply_plan(
        plan, view, strata=view.strata(plan.strata), weights=weights,
        valid=np.asarray((before.signs >= 0).all(axis=1)), random_state=random_state,
    )  # fmt: skip
    table = write_blocks(view, plan, masked)
    slim = replace(masked, numbers={}, rows={}, groupings=[])  # what judging needs, no copies
    return Planned(table=table, plan=plan, masked=slim)


def _refuse_other_plan(plan: Plan, source: Table, k: int) -> None:
    """Refuse a plan that is for another table."""
    if plan.k != k:
        raise GroupSizeError.given_twice(masker=k, method=plan.k)
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


def refuse_identifying(known: Schema) -> None:
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


def _refuse_missing(view: View, plan: Plan) -> None:
    if plan.on_missing == "error":
        names = [name for block in plan.blocks for name in block.columns if view.any_missing(name)]
        if names:
            counts = {str(name): int(view.missing(name).sum()) for name in names}
            raise MissingValuesError(counts, view.n_rows)


def as_planned(source: Table, plan: Plan) -> Table:
    """Return the original with those whole columns as floats that the plan releases as floats."""
    names = as_floats(source, plan)
    if not names:
        return source
    numbers = {name: source.raw(name)[0] for name in names}
    return Table.read(
        source.replace(
            {name: np.nan_to_num(values) for name, values in numbers.items()},
            keep={name: np.isnan(values) for name, values in numbers.items()},
            as_float=names,
        )
    )
