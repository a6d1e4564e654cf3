"""What comes out: a table masked by a plan, and judged before it is released.

A masked table becomes a release only if its audit finds nothing wrong. The protocol tells which
steps led from the original to the release, in order and in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._notebook import Display, Displayed, Figure, Section
from .._types import Floats, Integers, Name
from ..auditing import Audit, audit
from ..auditing.recoded import Recoded
from ..auditing.result import beside_loss
from ..exceptions import (
    GroupSizeError,
    MissingValuesError,
    PlanError,
    RefusedError,
)
from ..frame import Table, View
from ..grouping.base import check_k
from ..grouping.dominance import DominanceRule, checked_dominance
from ..loss.recoded import recoding_loss
from ..loss.survey import EstimateLoss
from ..masking.engine import MaskedBlocks, as_floats, mask_keeping_rules
from ..masking.homes import constant_columns
from ..masking.households import (
    households_note,
    mask_households,
    needs_households,
    needs_whole,
)
from ..masking.selection import repair_loss, standardised_squares
from ..plan import Plan, make_plan
from ..rules import Confrontation, Rules
from ..schema import Schema
from .roles import names_of_strata

if TYPE_CHECKING:
    from ..masking.whole import Shard


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One step that was taken.

    Attributes
    ----------
    method : str
        What was done, such as "noise".
    name : str
        What its holder calls it.
    options : mapping
        The parameters, all of them.
    public : mapping
        The parameters that may be published: without categories that no longer exist.
    account : str
        The result.
    columns : tuple of str
        The columns that it was about.
    seconds : float
        How long it took.
    seed : int or None
        Confidential. None where chance came from the operating system, or had no part.
    """

    method: str
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    public: Mapping[str, Any] = field(default_factory=dict)
    account: str = ""
    columns: tuple[str, ...] = ()
    seconds: float = 0.0
    seed: int | None = None

    def __str__(self) -> str:
        called = f" ({self.name})" if self.name else ""
        given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.method}{called}: {given or 'as usual'}. {self.account}".rstrip()


@dataclass(frozen=True)
class Protocol:
    """The steps, in order; printing it shows no seed.

    Examples
    --------
    >>> from tessella.release.result import Entry, Protocol
    >>> protocol = Protocol((Entry(method="drop", options={"columns": ["id"]}, seconds=0.01),))
    >>> protocol
    1. drop: columns=['id'].
    """

    entries: tuple[Entry, ...] = ()

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        return "\n".join(f"{at}. {entry}" for at, entry in enumerate(self.entries, start=1))

    __repr__ = __str__

    def without_seeds(self) -> Protocol:
        """Return the protocol as it may be saved with a release."""
        return Protocol(tuple(replace(entry, seed=None) for entry in self.entries))

    def public(self) -> list[dict[str, Any]]:
        """Return what may be published of each step: no seed, no category that is gone."""
        return [
            {
                "method": entry.method,
                "name": entry.name,
                "options": dict(entry.public),
                "columns": list(entry.columns),
            }
            for entry in self.entries
        ]

    def confidential(self) -> list[dict[str, Any]]:
        """Return all that is known of each step, seeds included."""
        return [
            shown
            | {
                "options": dict(entry.options),
                "account": entry.account,
                "seconds": round(entry.seconds, 3),
                "seed": entry.seed,
            }
            for shown, entry in zip(self.public(), self.entries)
        ]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Release(Displayed):
    """A masked table, how it was made, and the results of its audit.

    Attributes
    ----------
    table : the same kind of frame as the original
        With the same columns, dtypes and index.
    plan : Plan or None
        What was done, and why; `plan.explain()`. None where no step promised k.
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
    How far records are from their released values, in standard deviations per column (root
        mean square over the masked columns of numbers): all records, and those that broke a rule.
    repair_loss : float
    The part of `loss` that arises because records that broke a rule moved further than the
        others: loss minus the loss of the others alone.
    edited : int
        Records in which a product was recomputed first, because its zeros or signs could not be
        kept.
    merged : int
        Records that joined another part, because theirs was too small.
    donated : int
        Records whose group took the values of a record that keeps all rules, because no point near
        to its centre was found that does.
    schema : Schema
        What the released columns are.
    rules : Rules
        The rules that were audited.
    protocol : Protocol
        The steps that were taken, in order, with times; `protocol.public()` may be published.
    labels : list of ndarray of shape (n,)
        The group of each record, for each block: confidential.
    before : Confrontation or None
    The result of confronting the original, as prepared, with the rules: confidential, and left
        behind when saved. The released table's is in `audit.rules`.
    probabilistic : tuple of NamingChance
        For each step that only aims at groups of k: how many records an intruder identifies.
    estimates : EstimateLoss or None
        Survey estimates before and after, with sampling errors: confidential, not saved either.
    recoding_loss : dict of name to float
        The certainty penalty of each recoded column, in per cent: see `tessella.loss`.
    """

    table: Any
    plan: Plan | None
    audit: Audit
    loss: float
    column_loss: dict[Name, float]
    inconsistent: int
    moved: float
    moved_inconsistent: float
    repair_loss: float
    edited: int
    merged: int
    donated: int
    schema: Schema
    rules: Rules
    protocol: Protocol = field(default_factory=Protocol)
    labels: list[Integers] = field(default_factory=list)
    before: Confrontation | None = None
    probabilistic: tuple[Any, ...] = ()
    estimates: EstimateLoss | None = None
    recoding_loss: dict[Name, float] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind when saved: groups of records, values that rules look up, seeds."""
        return self.__dict__ | {
            "labels": [],
            "before": None,
            "estimates": None,
            "rules": self.rules.unfixed(),
            "protocol": self.protocol.without_seeds(),
        }

    def __str__(self) -> str:
        return "\n".join([*self._sentences(), *map(str, self.probabilistic), str(self.audit)])

    __repr__ = __str__

    def _display(self) -> Display:
        audit = self.audit._display()
        loss = Figure("Information loss", f"{self.loss:.2f} %", "of the variation (SSE/SST)")
        told = [*self._sentences(), *map(str, self.probabilistic)]
        return replace(
            audit,
            title="Release",
            figures=[*audit.figures, *([loss] if self.column_loss else [])],
            sections=[Section(lines=told), *audit.sections],
        )

    def _sentences(self) -> list[str]:
        lines = []
        if self.column_loss or not self.recoding_loss:
            lines.append(f"Information loss {self.loss:.2f} %{beside_loss(self.audit)}.")
        if own := self.recoding_loss:
            shown = ", ".join(f"{name} {lost:.1f}" for name, lost in own.items())
            mean = sum(own.values()) / len(own)
            lines.append(f"Certainty penalty of recoded columns {mean:.2f} % ({shown}).")
        lines += [] if self.estimates is None else [self.estimates.sentence]
        if self.inconsistent:
            lines.append(
                f"{self.inconsistent} records of the original broke a rule; they moved by "
                f"{self.moved_inconsistent:.3g} standard deviations per column, all records by "
                f"{self.moved:.3g}; {self.repair_loss:.2f} points of the loss are due to that."
            )
        if self.merged:
            lines.append(
                f"{self.merged} records joined another part, because their own was too small."
            )
        if self.donated:
            lines.append(
                f"{self.donated} records share the values of a record that keeps all rules, because"
                " no point that keeps them was found nearer to the centre of their group."
            )
        return lines


def judge(
    reference: View,
    released: Table,
    *,
    expected: Any,
    masked: Sequence[Name],
    before: Confrontation,
    planned: Planned | None,
    promised: Mapping[str, Any],
    tolerance: float,
    protocol: Protocol,
    recoded: Recoded | None = None,
    kinds: Schema | None = None,
    suppressed: Sequence[Name] = (),
) -> Release:
    """Audit a masked table and measure it, or withhold it.

    `reference` is the original as it is compared with (without dropped columns, recoded), `before`
    its confrontation with the rules, `expected` the reference in the dtypes that the release is to
    have. Loss is measured in the columns `masked`; `planned` is the step that kept rules by a plan,
    `promised` the k, blocks and strata that the audit counts, `recoded` the columns that hold
    coarser values, `kinds` what the released columns are, `suppressed` the columns of which masking
    emptied cells.
    """
    schema: Any = reference.schema
    plan = None if planned is None else planned.plan
    view = without_unit(released, reference)
    if planned is not None and planned.table is released:
        after = planned.after
    else:
        after = before.rules.confront(view, tolerance=tolerance, schema=schema)
    rule = DEFAULTS["dominance"] if planned is None else planned.dominance
    found = audit(
        expected, view, rules=before.rules, schema=schema, tolerance=tolerance,
        confronted=(before, after), dominance=rule, recoded=recoded, suppressed=suppressed,
        **promised,
    )  # fmt: skip
    if not found.passed:
        raise RefusedError(_withheld(found, before, after, plan))
    weight = reference.weights()
    coarser = _recoding_loss(reference, view, Recoded.of(recoded), weight)
    numbers = [name for name in masked if name not in coarser]
    squares = standardised_squares(reference, view, numbers, weight)
    column_loss = {
        name: 100 * float(np.average(own, weights=weight)) for name, own in squares.items()
    }
    away = np.mean(list(squares.values()), axis=0) if squares else np.zeros(reference.n_rows)
    wrong = before.breaking()
    loss = sum(column_loss.values()) / len(column_loss) if column_loss else 0.0
    return Release(
        table=view.table.native,
        plan=plan,
        audit=found,
        loss=loss,
        column_loss=column_loss,
        inconsistent=len(wrong),
        moved=float(np.sqrt(away.mean())),
        moved_inconsistent=float(np.sqrt(away[wrong].mean())) if len(wrong) else 0.0,
        repair_loss=repair_loss(loss, away, wrong, weight),
        edited=0 if planned is None else planned.masked.edited,
        merged=0 if planned is None else planned.masked.merged,
        donated=0 if planned is None else planned.masked.donated,
        schema=Schema([column for column in kinds or schema if column.role != "unit"]),
        rules=before.rules,
        protocol=protocol,
        labels=[] if planned is None else planned.masked.labels,
        recoding_loss=coarser,
    )


def _recoding_loss(
    reference: View, released: View, recoded: Recoded, weight: Floats | None
) -> dict[Name, float]:
    """Return the certainty penalty of each recoded column, in per cent."""
    if not recoded.hierarchies:
        return {}
    found = recoding_loss(
        reference, released, columns=list(recoded.hierarchies), weights=weight,
        hierarchies={name: own for name, own in recoded.hierarchies.items() if own is not None},
    )  # fmt: skip
    return {name: 100 * value for name, value in found.by_column.items()}


def without_unit(table: Table, reference: View) -> View:
    """Return a masked table as it may be seen: without the column of units, which still count."""
    if reference.unit is None:
        return View.of(table, reference.schema)
    kept = [name for name in table.columns if name != reference.unit]
    return View(table.select(kept), reference.schema, reference.units)


def _withheld(found: Audit, before: Confrontation, after: Confrontation, plan: Plan | None) -> str:
    """Say what an audit found, which records are behind it, and what would release."""
    problems = "; ".join(line.removesuffix(".") for line in found.problems)
    text = f"The masked table is withheld, for its audit found: {problems}."
    places = [place for place, rows in enumerate(after.rows) if len(rows)]
    if not places:
        return text
    names = ", ".join(after.rules[place].name for place in places)
    wrong = np.flatnonzero((before.signs[:, places] < 0).any(axis=1))
    if len(wrong):
        shown = ", ".join(map(str, wrong[:10])) + (", ..." if len(wrong) > 10 else "")
        text += f" In the original, {len(wrong):,} records break {names}: rows {shown} (from 0)."
    if plan is not None and plan.fit == "project":
        if len(wrong) == before.n_records:
            text += " No record keeps them, so that none can stand for others."
    elif plan is not None:
        text += ' Give fit="project" to release the values of records that keep the rules.'
    return f"{text} Correct these records, or give up {'one of ' * (len(places) > 1)}{names}."


DEFAULTS: dict[str, Any] = {
    "columns": None, "strata": (), "blocks": None, "fit": "project", "edit": "fix",
    "small": "merge", "on_missing": "pattern", "distance": "original", "scale": "zscore",
    "grouping": "search", "options": None, "dominance": 10, "on_dominance": "report",
    "whole_units": False, "aggregate": "auto", "l": None, "t": None, "confidential": None,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Planned:
    """A table that was masked by a plan, and all that its judgement needs."""

    table: Table
    plan: Plan
    masked: MaskedBlocks
    after: Confrontation  # of `table` with the rules
    dominance: DominanceRule
    on_dominance: str
    torn: bool = False  # a sample in which groups are not whole: k was counted elsewhere
    chance: Any = None  # what was measured elsewhere of a step that only aims at k: NamingChance


def mask_planned(
    source: Table,
    schema: Schema,
    *,
    k: int,
    before: Confrontation,
    plan: Plan | None,
    weights: Floats,
    tolerance: float,
    dominance: Any,
    on_dominance: str,
    whole_units: bool,
    random_state: Any,
    shards: Sequence[Shard] | None = None,
    **options: Any,
) -> Planned:
    """Plan and mask; `options` are those of `make_plan`, see `DEFAULTS`.

    `before` is the table confronted with its rules; `shards` are for `find_values`.
    """
    rule = checked_dominance(dominance, on_dominance)
    check_k(k, source.n_rows)
    if plan is None:
        noticed = refuse_contradictions(before.rules)
        apart = names_of_strata(source, options["strata"])
        plan = make_plan(schema, before.rules, k=k, **options | {"strata": apart})
        plan = replace(plan, notes=(*plan.notes, *noticed))
    else:
        _refuse_other_plan(plan, source, k)
    if plan.edit == "refuse" and not before.all_hold:
        refuse_inconsistent(before.rules, list(map(len, before.rows)), len(before.breaking()))
    view = View.of(source, schema)
    _refuse_missing(view, plan)
    mask: Any = mask_keeping_rules
    if shards is not None:
        mask = partial(mask, shards=shards)
    elif view.units is not None and needs_households(plan, view):
        if plan.diversity is not None:
            raise PlanError(
                f"{plan.diversity} is not promised where units are masked together, for columns "
                "that are constant within units, or rules across their members. Leave these "
                "columns and rules out, or leave out l and t."
            )
        whole = whole_units or needs_whole(plan)
        plan = replace(
            plan, notes=(*plan.notes, households_note(plan, constant_columns(view), whole))
        )
        mask = partial(mask_households, whole=whole)
    table, masked, after = mask(
        plan, view, before=before, tolerance=tolerance, strata=view.strata(plan.strata),
        weights=weights, random_state=random_state,
        dominance=rule if on_dominance == "enlarge" else None,
    )  # fmt: skip
    slim = replace(masked, numbers={}, rows={}, dates={}, groupings=[], drawn=[], covered=[])
    return Planned(
        table=table, plan=plan, masked=slim, after=after, dominance=rule, on_dominance=on_dominance
    )


def _refuse_other_plan(plan: Plan, source: Table, k: int) -> None:
    """Refuse a plan that is for another table."""
    if plan.k != k:
        raise GroupSizeError.given_twice(masker=k, method=plan.k)
    planned = {*plan.untouched, *(name for block in plan.blocks for name in block.columns)}
    planned |= set() if plan.unit is None else {plan.unit}
    if planned != set(source.columns):
        differ = ", ".join(map(repr, planned.symmetric_difference(source.columns)))
        raise PlanError(f"The plan is for a table with other columns; they differ in: {differ}.")


def refuse_contradictions(rules: Rules) -> list[str]:
    """Refuse rules that no record can keep; return what else there is to be said of them."""
    found = rules.check()
    wrong = [finding for finding in found if finding.is_grave]
    if wrong:
        raise PlanError(
            f"No record can keep these rules: {'; '.join(one.message for one in wrong)}."
        )
    return [str(finding) for finding in found]


def refuse_inconsistent(rules: Rules, counts: Sequence[int], breaking: int) -> None:
    """Refuse a table of which so many records break each rule, and so many any."""
    named = "; ".join(
        f"{rule.name} ({rule.text}): {count}" for rule, count in zip(rules, counts) if count
    )
    raise RefusedError(
        f"{breaking} records of the table break a rule, and edit='refuse': {named}. Correct them, "
        'or give edit="fix".'
    )


def _refuse_missing(view: View, plan: Plan) -> None:
    names = [name for block in plan.blocks for name in block.columns if view.any_missing(name)]
    if plan.on_missing == "error" and names:
        counts = {str(name): int(view.missing(name).sum()) for name in names}
        raise MissingValuesError(counts, view.n_rows)


def as_planned(source: Table, plan: Plan) -> Table:
    """Return the original with those whole columns as floats that the plan releases as floats."""
    names = as_floats(source, plan)
    if not names:
        return source
    numbers = {name: source.raw(name)[0] for name in names}
    keep = {name: np.isnan(values) for name, values in numbers.items()}
    return Table.read(source.replace(numbers, keep=keep, as_float=names))
