"""The judgement: a masked table becomes a release only if its audit finds nothing wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Floats, Name
from ..auditing import audit
from ..exceptions import BadOptionError, RefusedError
from ..frame import Table
from ..masking.scale import Scale
from ..rules import Confrontation, Rules
from ..schema import Schema
from .planned import Planned
from .protocol import Protocol
from .result import Release

__all__ = ["judge", "weights_of"]


def weights_of(source: Table, schema: Schema) -> Floats:
    """Return the weight of each record, ones where no column weighs them."""
    weighing = schema.names("weight")
    if not weighing:
        return np.ones(source.n_rows)
    weight = np.ascontiguousarray(source.numeric(weighing[:1], who="weights").values[:, 0])
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise BadOptionError("weights", weighing[0], "a column of positive numbers")
    return weight


def judge(
    reference: Table,
    released: Any,
    *,
    expected: Any,
    masked: Sequence[Name],
    schema: Schema,
    rules: Rules,
    before: Confrontation,
    planned: Planned | None,
    tolerance: float,
    protocol: Protocol,
) -> Release:
    """Audit a masked table and measure it, or withhold it.

    Parameters
    ----------
    reference : Table
        The original as it is compared with: without dropped columns, recoded.
    released : frame
        The masked table.
    expected : frame
        The reference in the dtypes that the release is to have.
    masked : sequence of names
        The columns that loss is measured in.
    planned : Planned, optional
        The step that promised k.
    """
    plan = None if planned is None else planned.plan
    found = audit(
        expected, released,
        k=None if plan is None else plan.k,
        blocks=None if plan is None else [list(block.columns) for block in plan.blocks],
        strata=(list(plan.strata) or None) if plan is not None else None,
        rules=rules, schema=schema, tolerance=tolerance,
    )  # fmt: skip
    if not found.passed:
        raise RefusedError(
            "The masked table is withheld, for its audit found: " + "; ".join(found.problems) + ". "
            "Correct the records that break a rule, or give up a rule. Columns of float32 or of "
            "fixed decimals hold too few digits for some rules: convert them to float64."
        )
    weight = weights_of(reference, schema)
    squares = _squares(reference, Table.read(released), masked, schema, weight)
    column_loss = {
        name: 100 * float(np.average(own, weights=weight)) for name, own in squares.items()
    }
    away = np.mean(list(squares.values()), axis=0) if squares else np.zeros(reference.n_rows)
    wrong = before.breaking()
    return Release(
        table=released,
        plan=plan,
        audit=found,
        loss=sum(column_loss.values()) / len(column_loss) if column_loss else 0.0,
        column_loss=column_loss,
        inconsistent=len(wrong),
        moved=float(np.sqrt(away.mean())),
        moved_inconsistent=float(np.sqrt(away[wrong].mean())) if len(wrong) else 0.0,
        edited=0 if planned is None else planned.carried.edited,
        merged=0 if planned is None else planned.carried.merged,
        schema=schema,
        rules=rules,
        protocol=protocol,
        labels=[] if planned is None else planned.carried.labels,
    )


def _squares(
    source: Table, released: Table, names: Sequence[Name], schema: Schema, weights: Floats
) -> dict[Name, Floats]:
    """Return squared differences in standard deviations, of each masked column that varies.

    Their weighted mean is SSE / SST. Where a cell is missing, the difference is that of the others
    on average, so that it does not count.
    """
    squares: dict[Name, Floats] = {}
    for name in names:
        if not source.facts(name).numeric or schema[name].kind == "nominal":
            continue
        codes = {name: schema[name].missing}
        old = source.numeric([name], codes=codes)
        seen = ~old.missing[:, 0]
        if not seen.any():
            continue
        x, w = old.values[seen, 0], weights[seen]
        r = released.numeric([name], codes=codes).values[seen, 0]
        spread = Scale.of(x[:, None], w, "zscore", [name]).deviation[0]
        if spread > 0:
            own = ((x - r) / spread) ** 2
            squares[name] = np.full(source.n_rows, float(np.average(own, weights=w)))
            squares[name][seen] = own
    return squares
