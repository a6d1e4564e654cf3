"""The one story: read, check, plan, mask, audit. What comes out has been looked at again.

`protect` gives a `Release`, or an error that says why there is none. The audit is made of the
released table itself, not of what the masking believed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .auditing import Audit, audit
from .exceptions import (
    BadOptionError,
    GroupSizeError,
    MissingValuesError,
    PlanError,
    RefusedError,
)
from .frame import Name, Table
from .fuzzy.drawing import chance_of
from .grouping.checks import check_k
from .masking.alike import number_alike
from .masking.keeping.carry import Carried, carry_out
from .masking.keeping.data import is_code
from .masking.scale import Scale
from .plan import Plan, make_plan
from .rules import Confrontation, Rules
from .schema import Schema

__all__ = ["Release", "protect"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """A masked table, how it came about, and what was found when it was looked at again.

    Attributes
    ----------
    table : the same kind of frame as the original
        With the same columns, dtypes and index.
    plan : Plan
        What was done, and why; `plan.explain()`.
    audit : Audit
        k, rules, totals and means, recomputed from the released table.
    loss : float
        Information loss 100 SSE / SST in per cent over the masked columns of numbers, in standard
        deviations.
    column_loss : dict of name to float
        The same for each masked column of numbers that varies.
    inconsistent : int
        Records of the original that broke a rule.
    moved, moved_inconsistent : float
        How far records are from what is released for them, in standard deviations a column (root
        mean square over the masked columns of numbers): all records, and those that broke a rule.
    edited : int
        Records in which a product was first recomputed, for its zeros or signs could not be kept.
    merged : int
        Records that joined another part, because theirs was too small.
    labels : list of ndarray of shape (n,)
        The group of each record, for each block: confidential.
    """

    table: Any
    plan: Plan
    audit: Audit
    loss: float
    column_loss: dict[Name, float]
    inconsistent: int
    moved: float
    moved_inconsistent: float
    edited: int
    merged: int
    labels: list[Integers]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the groups of single records behind when saved."""
        return self.__dict__ | {"labels": []}

    def __str__(self) -> str:
        lines = [f"Information loss {self.loss:.2f} %."]
        if self.inconsistent:
            lines.append(
                f"{self.inconsistent} records of the original broke a rule; they moved by "
                f"{self.moved_inconsistent:.3g} standard deviations a column, all records by "
                f"{self.moved:.3g}."
            )
        if self.merged:
            lines.append(f"{self.merged} records joined another part, for theirs was too small.")
        return "\n".join([*lines, str(self.audit)])


def protect(
    table: Any,
    *,
    k: int,
    rules: Any = None,
    plan: Plan | None = None,
    schema: Schema | None = None,
    columns: Sequence[Hashable] | None = None,
    strata: Any = (),
    blocks: Sequence[Sequence[Hashable]] | None = None,
    weights: Hashable | None = None,
    fit: str = "closed",
    edit: str = "fix",
    small: str = "refuse",
    missing: str = "pattern",
    distance: str = "original",
    scale: Any = "zscore",
    method: Any = "search",
    options: dict[str, Any] | None = None,
    tolerance: float = 1e-9,
    random_state: Any = None,
) -> Release:
    """Mask a table so that every record stands for at least k and every rule holds, or refuse.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The original table; it is not changed.
    k : int
        The least number of records that share their released values.
    rules : Rules, text, or list of lines, optional
        What must be true of every released record.
    plan : Plan, optional
        A plan of `make_plan`; without it one is made from the arguments that follow.
    schema : Schema, optional
        Kinds and roles of the columns; guessed if not given.
    columns, strata, blocks, fit, edit, small, missing, distance, scale, method, options
        See `tessella.plan.make_plan`.
    weights : name, optional
        The column of sampling weights, if the schema does not say so.
    tolerance : float, default 1e-9
        How far sides of a rule between floats may be off, times the size of the terms.
    random_state : int, RandomState or None, default None
        None draws from the operating system's entropy.

    Returns
    -------
    Release

    Raises
    ------
    PlanError
        If no masking keeps the rules.
    RefusedError
        If the table breaks its rules and `edit` is "refuse", or if the audit of what was masked
        finds a broken promise.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella import protect
    >>> table = pd.DataFrame({"net": [10, 12, 11, 50, 52, 57], "tax": [2, 2, 3, 20, 21, 22]})
    >>> table["gross"] = table.net + table.tax
    >>> release = protect(table, k=3, rules=["net + tax == gross"], random_state=0)
    >>> release.table
       net  tax  gross
    0   11    2     13
    1   11    2     13
    2   11    2     13
    3   53   21     74
    4   53   21     74
    5   53   21     74
    >>> release.audit.passed
    True
    """
    wishes = {
        "rules": rules is not None, "columns": columns is not None,
        "strata": strata is not None and strata != (), "blocks": blocks is not None,
        "fit": fit != "closed", "edit": edit != "fix", "small": small != "refuse",
        "missing": missing != "pattern", "distance": distance != "original",
        "scale": scale != "zscore", "method": method != "search", "options": options is not None,
    }  # fmt: skip
    if plan is not None and not isinstance(plan, Plan):
        raise BadOptionError("plan", type(plan).__name__, "a plan of tessella.make_plan")
    source = Table.read(table)
    check_k(k, source.n_rows)
    known = _schema(source, schema, weights)
    if plan is None:
        given = Rules() if rules is None else Rules.of(rules)
        given = given.fix(source, schema=known)
    else:
        given = plan.rules
    before = given.confront(source, tolerance=tolerance, schema=known)
    if plan is None:
        noticed = _refuse_contradictions(given)
        apart = _names(source, strata)
        plan = make_plan(
            known, given, k=k, columns=columns, strata=apart, blocks=blocks, fit=fit, edit=edit,
            small=small, missing=missing, distance=distance, scale=scale, method=method,
            options=options,
        )  # fmt: skip
        plan = replace(plan, notes=(*plan.notes, *noticed))
    else:
        _refuse_other_plan(plan, source, k, wishes)
    _refuse_inconsistent(before, plan)
    _refuse_missing(source, plan, known)
    weighing = known.names("weight")
    weight = np.ones(source.n_rows)
    if weighing:
        weight = np.ascontiguousarray(source.numeric(weighing[:1], who="weights").values[:, 0])
        if not (np.isfinite(weight) & (weight > 0)).all():
            raise BadOptionError("weights", weighing[0], "a column of positive numbers")
    carried = carry_out(
        plan, source, known,
        strata=_strata(source, plan),
        weights=weight,
        obedient=np.asarray((before.signs >= 0).all(axis=1)),
        chance=chance_of(random_state),
    )  # fmt: skip
    released = _write(source, plan, carried, known)
    found = audit(
        _as_planned(source, plan, table), released, k=k,
        blocks=[list(block.columns) for block in plan.blocks],
        strata=list(plan.strata) or None, rules=given, schema=known, tolerance=tolerance,
    )  # fmt: skip
    if not found.passed:
        raise RefusedError(
            "The masked table is withheld, for its audit found: " + "; ".join(found.problems) + ". "
            "Correct the records that break a rule, or give up a rule. Columns of float32 or of "
            "fixed decimals hold too few digits for some rules: convert them to float64."
        )
    squares = _squares(source, Table.read(released), plan, known, weight)
    column_loss = {
        name: 100 * float(np.average(own, weights=weight)) for name, own in squares.items()
    }
    away = np.mean(list(squares.values()), axis=0) if squares else np.zeros(source.n_rows)
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
        edited=carried.edited,
        merged=carried.merged,
        labels=carried.labels,
    )


def _refuse_other_plan(plan: Plan, source: Table, k: int, wishes: dict[str, bool]) -> None:
    """Refuse a plan that is for another table, or that is given beside what it already says."""
    if plan.k != k:
        raise GroupSizeError.given_twice(k, plan.k)
    if twice := [name for name, given in wishes.items() if given]:
        raise BadOptionError(
            "plan", "a plan", f"either a plan or {', '.join(twice)}; the plan has its own"
        )
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


def _schema(source: Table, schema: Schema | None, weights: Hashable | None) -> Schema:
    """Return the schema, guessed where it is not given; weights are confirmed by naming them."""
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
    if telling := known.names("identifier", "household"):
        named = ", ".join(f"{name!r} ({known[name].role})" for name in telling)
        raise PlanError(
            f"These columns must not be released: {named}. Drop them from the table, or give a "
            "schema that says otherwise."
        )
    return known


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


def _as_planned(source: Table, plan: Plan, table: Any) -> Any:
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
        return table
    numbers = source.numeric(names)
    return source.replace(
        {name: np.nan_to_num(numbers.values[:, j]) for j, name in enumerate(names)},
        keep={name: numbers.missing[:, j] for j, name in enumerate(names)},
        as_float=names,
    )


def _choice(plan: Plan, name: Name) -> Any:
    return next(block.choice(name) for block in plan.blocks if name in block.columns)


def _squares(
    source: Table, released: Table, plan: Plan, schema: Schema, weights: Floats
) -> dict[Name, Floats]:
    """Return squared differences in standard deviations, of each masked column that varies.

    Their weighted mean is SSE / SST. Where a cell is missing, the difference is that of the others
    on average, so that it does not count.
    """
    squares: dict[Name, Floats] = {}
    for name in (name for block in plan.blocks for name in block.columns):
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
