"""A study: a table on its way to a release, step by step, each of which can be taken back.

The table after some steps depends on the original, the steps and the seed alone: not on what was
tried and undone in between.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from .._types import Name
from ..exceptions import BadOptionError, PlanError
from ..frame import Table, View
from ..plan import Plan
from ..rules import Rules
from ..schema import Schema
from .judging import judge, weights_of
from .patterns import suppress
from .planned import (
    WISHES,
    Planned,
    as_planned,
    confirmed_schema,
    mask_planned,
    refuse_telling,
)
from .protocol import Entry, Protocol
from .result import Release
from .steps import PREPARING, Step, drop, mask, recode

__all__ = ["Study"]


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """A table between two steps."""

    table: Table
    reference: Table  # the original, prepared alike: what loss and audit compare with
    schema: Schema
    masked: tuple[Name, ...] = ()
    planned: Planned | None = None
    entry: Entry | None = None


class Study:
    """A table, its schema and rules, and the steps towards a release.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table or 2-d numpy.ndarray
        The original; it is not changed. A study holds it, and is as confidential.
    schema : Schema, optional
        Kinds and roles of the columns; guessed if not given.
    rules : Rules, text, or list of lines, optional
        What must be true of every released record.
    weights : name, optional
        The column of sampling weights, if the schema does not say so.
    tolerance : float, default 1e-9
        How far sides of a rule between floats may be off, times the size of the terms.
    random_state : int or None, default None
        Every step has a seed of its own, made of this one and the step's place; so a step that is
        taken back and done again gives the same table. None draws from the operating system's
        entropy: doing it again then gives another table.

    Examples
    --------
    >>> import pandas as pd
    >>> from tessella import Study
    >>> table = pd.DataFrame({"firm_id": range(6), "net": [10, 12, 11, 50, 52, 57]})
    >>> table["gross"] = table.net + 1
    >>> study = Study(table, rules="net <= gross", random_state=0)
    >>> study.do("drop", columns=["firm_id"]).do("noise", amount=0.5).undo().do("protect", k=3)
    Study of 6 records in 2 columns
    1. drop: columns=['firm_id'].
    2. protect: k=3.
    >>> study.release().table["net"].tolist()
    [11, 11, 11, 53, 53, 53]
    """

    def __init__(
        self,
        table: Any,
        *,
        schema: Schema | None = None,
        rules: Any = None,
        weights: Hashable | None = None,
        tolerance: float = 1e-9,
        random_state: int | None = None,
    ) -> None:
        whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
        if random_state is not None and not (whole and random_state >= 0):
            raise BadOptionError("random_state", random_state, "None or a whole number")
        source = Table.read(table)
        known = confirmed_schema(source, schema, weights)
        self.rules = Rules() if rules is None else Rules.of(rules)
        self.tolerance = tolerance
        self.random_state = None if random_state is None else int(random_state)
        self._states = [State(table=source, reference=source, schema=known)]
        self._undone: list[State] = []
        self._steps: list[Step] = []
        self._undone_steps: list[Step] = []

    @property
    def table(self) -> Any:
        """The table as it is after the last step: not yet judged, and not to be published."""
        return _native(self._states[-1].table)

    @property
    def original(self) -> Any:
        """The table that was given."""
        return _native(self._states[0].table)

    @property
    def masked(self) -> tuple[Name, ...]:
        """The columns that masking steps were about."""
        return self._states[-1].masked

    @property
    def reference(self) -> Any:
        """The original without dropped columns, recoded: what loss and risk compare with."""
        return _native(self._states[-1].reference)

    @property
    def plan(self) -> Plan | None:
        """The plan of the last step "protect", if there is one."""
        planned = self._states[-1].planned
        return None if planned is None else planned.plan

    @property
    def views(self) -> tuple[View, View]:
        """The reference and the table as it is now, read once: what other rooms compare."""
        here = self._states[-1]
        return View(here.reference, here.schema), View(here.table, here.schema)

    @property
    def schema(self) -> Schema:
        """What the columns of the table are now."""
        return self._states[-1].schema

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that were taken and not taken back."""
        return tuple(self._steps)

    @property
    def protocol(self) -> Protocol:
        """What each step did."""
        return Protocol(tuple(s.entry for s in self._states if s.entry is not None))

    def do(self, step: Step | str, /, *, name: str = "", **options: Any) -> Study:
        """Take a step, given as `Step` or as method and options; return the study."""
        if isinstance(step, str):
            step = Step(method=step, options=options, name=name)
        elif not isinstance(step, Step) or options:
            raise BadOptionError("step", type(step).__name__, "a Step, or a method with options")
        began, here = perf_counter(), self._states[-1]
        if step.method in PREPARING and here.masked:
            raise PlanError(f"Do {step.method!r} before any masking: it changes what is compared.")
        seed = self._seed(len(self._steps))
        carried = _CARRIERS.get(step.method, _mask)(self, here, step, seed)
        entry = Entry(
            method=step.method,
            name=step.name,
            options=step.options,
            public=step.public,
            account=carried.entry.account if carried.entry else "",
            columns=tuple(map(str, carried.entry.columns if carried.entry else ())),
            seconds=perf_counter() - began,
            seed=None if step.method in PREPARING else seed,
        )
        self._states.append(replace(carried, entry=entry))
        self._steps.append(step)
        self._undone, self._undone_steps = [], []
        return self

    def undo(self, count: int = 1) -> Study:
        """Take the last steps back; `redo` brings them again until another step is taken."""
        self._refuse_count(count, len(self._steps), "steps to take back")
        for _ in range(count):
            self._undone.append(self._states.pop())
            self._undone_steps.append(self._steps.pop())
        return self

    def redo(self, count: int = 1) -> Study:
        """Bring back what was taken back, as it was."""
        self._refuse_count(count, len(self._undone), "steps to bring back")
        for _ in range(count):
            self._states.append(self._undone.pop())
            self._steps.append(self._undone_steps.pop())
        return self

    def replay(self, steps: Iterable[Step] | None = None) -> Study:
        """Return a new study of the same original, with the same or other steps done anew."""
        first = self._states[0]
        again = Study(
            first.table, schema=first.schema, rules=self.rules, tolerance=self.tolerance,
            random_state=self.random_state,
        )  # fmt: skip
        for step in self.steps if steps is None else steps:
            again.do(step)
        return again

    def release(self) -> Release:
        """Judge the table as it is now: a release, or why there is none."""
        here = self._states[-1]
        refuse_telling(here.schema)
        rules = self._rules(here)
        before = rules.confront(here.reference, tolerance=self.tolerance, schema=here.schema)
        plan = None if here.planned is None else here.planned.plan
        expected = here.reference if plan is None else as_planned(here.reference, plan)
        return judge(
            here.reference, _native(here.table), expected=expected, masked=here.masked,
            schema=here.schema, rules=rules, before=before, planned=here.planned,
            tolerance=self.tolerance, protocol=self.protocol,
        )  # fmt: skip

    def _rules(self, here: State) -> Rules:
        """Return the rules about columns that are there, fixed on the prepared original."""
        about = self.rules.for_columns(here.reference.columns, only=True)
        return about.fix(here.reference, schema=here.schema)

    def _seed(self, place: int) -> int | None:
        if self.random_state is None:
            return None
        return int(np.random.SeedSequence([self.random_state, place]).generate_state(1)[0])

    def _refuse_count(self, count: int, most: int, what: str) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
            raise BadOptionError("count", count, f"from 1 to {most} {what}")

    def __repr__(self) -> str:
        here = self._states[-1].table
        head = f"Study of {here.n_rows} records in {len(here.columns)} columns"
        lines = [
            f"{at}. {replace(entry, account='')}" for at, entry in enumerate(self.protocol, start=1)
        ]
        return "\n".join([head, *lines])


def _native(table: Table) -> Any:
    return table.native


def _prepare(change: Callable[..., tuple[Any, ...]], needed: str) -> Callable[..., State]:
    def carry(study: Study, here: State, step: Step, seed: int | None) -> State:  # noqa: ARG001
        if needed not in step.options:
            raise BadOptionError(needed, None, f"what {step.method!r} needs")
        table, schema, *lost = change(here.table, here.schema, **step.options)
        prepared, said = Table.read(table), []
        if lost:
            said.append(f"{lost[0]:,} cells suppressed.")
        gone = [rule.name for rule in study.rules if not set(rule.columns) <= set(prepared.columns)]
        if gone:
            said.append(f"No longer judged: {', '.join(gone)}.")
        about = step.options.get("columns", step.options.get("column", ()))
        named = about if isinstance(about, list | tuple) else [about]
        entry = Entry(method=step.method, account=" ".join(said), columns=tuple(map(str, named)))
        return State(table=prepared, reference=prepared, schema=schema, entry=entry)

    return carry


def _protect(study: Study, here: State, step: Step, seed: int | None) -> State:
    if "k" not in step.options:
        raise BadOptionError("k", None, "the least number of records that share their values")
    refuse_telling(here.schema)
    wishes = WISHES | {name: value for name, value in step.options.items() if name != "k"}
    planned = mask_planned(
        here.table, here.schema, k=step.options["k"], rules=study._rules(here), plan=None,
        weights=weights_of(here.table, here.schema), tolerance=study.tolerance, random_state=seed,
        **wishes,
    )  # fmt: skip
    columns = [name for block in planned.plan.blocks for name in block.columns]
    account = planned.plan.explain()
    return replace(
        here,
        table=Table.read(planned.table),
        masked=tuple(dict.fromkeys([*here.masked, *columns])),
        planned=planned,
        entry=Entry(method=step.method, account=account, columns=tuple(map(str, columns))),
    )


def _mask(study: Study, here: State, step: Step, seed: int | None) -> State:
    table, masker, account = mask(
        step, here.table, schema=here.schema, rules=study._rules(here), seed=seed
    )
    untouched = set(getattr(masker, "untouched_", ()))
    columns = [name for name in here.table.columns if name not in untouched]
    return replace(
        here,
        table=Table.read(table),
        masked=tuple(dict.fromkeys([*here.masked, *columns])),
        entry=Entry(method=step.method, account=account, columns=tuple(map(str, columns))),
    )


_CARRIERS: dict[str, Callable[..., State]] = {
    "drop": _prepare(drop, "columns"),
    "recode": _prepare(recode, "column"),
    "suppress": _prepare(suppress, "k"),
    "protect": _protect,
}
