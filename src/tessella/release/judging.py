"""The judgement: a masked table becomes a release only if its audit finds nothing wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Floats, Name
from ..auditing import audit
from ..exceptions import RefusedError
from ..frame import Table, View
from ..masking.scale import Scale
from ..rules import Confrontation
from .planned import Planned
from .protocol import Protocol
from .result import Release

__all__ = ["judge"]


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
