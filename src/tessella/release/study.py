"""A study: a table on its way to a release, step by step, each of which can be taken back.

The table after some steps depends on the original, the steps and the seed alone: not on what was
tried and undone in between.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from .._parameters import NONE, OneOf, Whole, parameters
from .._progress import reporting
from .._types import Name, Progress
from ..exceptions import BadOptionError, PlanError, TessellaError
from ..frame import Table, View
from ..loss.base import reason_of
from ..loss.estimates import component_ratios, estimate_loss
from ..loss.survey import EstimateLoss
from ..plan import Plan
from ..rules import Confrontation, Rules
from ..schema import Schema
from . import roles
from .dominance import refuse_dominated
from .promises import (
    Promise,
    as_counted,
    disclosed_method,
)  # fmt: skip
from .result import (
    Entry,
    Planned,
    Protocol,
    Release,
    as_planned,
    judge,
    without_unit,
)  # fmt: skip
from .states import STEPS, State, adopted, mask_by_masker, suppressed
from .steps import PREPARING, Step, Suppressed
from .units import renumber_units


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
    unit : name, optional
        The column that names the units that k counts, if the schema does not say so.
    confidential : name or sequence of names, optional
        Columns that are confidential, if the schema does not say so: released as they are.
    tolerance : float, default 1e-9
        By how much the sides of a rule between floats may differ, times the size of the terms.
    random_state : int or None, default None
        The first masking step has this seed, as a separate masker would; each further one a seed
        derived from this one and its position. So a step that is undone and done again gives
        the same table. None draws from the operating system's entropy: repeating a step then gives
        a different table.
    folder : path, optional
        The folder to which names of files that steps read, such as hierarchies, are relative.
    progress : bool or callable, optional
        True shows a bar while a step searches, also in a notebook; a callable is called with how
        much is done, out of how much, and the name of the task.

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

    @parameters(random_state=[Whole(0), NONE])
    def __init__(
        self,
        table: Any,
        *,
        schema: Schema | None = None,
        rules: Any = None,
        weights: Hashable | None = None,
        unit: Hashable | None = None,
        confidential: Any = None,
        tolerance: float = 1e-9,
        random_state: int | None = None,
        folder: Any = None,
        progress: Progress | bool | None = None,
    ) -> None:
        source = Table.read(table)
        self.rules = Rules() if rules is None else Rules.of(rules)
        known = roles.confirmed_schema(source, schema, weights, unit, self.rules, confidential)
        unknown = [rule for rule in self.rules if not set(rule.columns) <= set(source.columns)]
        Rules(unknown).fix(source, schema=known)  # raises, and names the columns
        self.tolerance, self.folder, self.progress = tolerance, folder, progress
        self.random_state = None if random_state is None else int(random_state)
        self._states = [State(table=source, reference=View(source, known), schema=known, before=[])]
        self._undone: list[State] = []

    @property
    def table(self) -> Any:
        """The table as it is after the last step: not yet judged, and not to be published."""
        return self.views[1].table.native

    @property
    def original(self) -> Any:
        """The table that was given."""
        return self._states[0].table.native

    @property
    def as_read(self) -> View:
        """The original before any step, read with its schema: what suppressed cells held."""
        return self._states[0].reference

    @property
    def masked(self) -> tuple[Name, ...]:
        """The columns that masking steps were about."""
        return self._states[-1].masked

    @property
    def unmasked(self) -> list[Name]:
        """Columns that may identify a respondent and that no step masked: there is no release."""
        here = self._states[-1]
        return roles.find_unmasked(here.schema, (*here.masked, *here.strata))

    @property
    def unique(self) -> list[Name]:
        """Columns released as they are that tell most records apart: there is no release."""
        here = self._states[-1]
        view = View.of(here.table, here.schema)
        return roles.find_unique(view, here.schema, (*here.masked, *here.strata))

    @property
    def reference(self) -> Any:
        """The original without dropped columns, recoded: what loss and risk compare with."""
        return self._states[-1].reference.table.native

    @property
    def recoded(self) -> dict[Name, Any]:
        """The columns that hold coarser values, each with its hierarchy."""
        return dict(self._states[-1].recoded.hierarchies)

    @property
    def confrontation(self) -> Confrontation:
        """The reference confronted with the rules about its columns; judged once, and kept."""
        here = self._states[-1]
        if not here.before:
            about = self.rules.for_columns(here.reference.columns, only=True)
            fixed = about.fix(here.reference, schema=here.schema)
            here.before.append(
                fixed.confront(here.reference, tolerance=self.tolerance, schema=here.schema)
            )
        return here.before[0]

    @property
    def plan(self) -> Plan | None:
        """The plan of the last step "protect", if there is one."""
        planned = self._states[-1].planned
        return None if planned is None else planned.plan

    @property
    def disclosed(self) -> Any:
        """What an intruder knows who knows the method, as `tessella.risk` takes it, or None."""
        here = self._states[-1]
        return disclosed_method(
            self.steps, here.reference.table, schema=here.schema, rules=self.confrontation.rules,
            planned=here.planned,
        )  # fmt: skip

    @property
    def views(self) -> tuple[View, View]:
        """The reference and the table as it is now, read once: what other rooms compare."""
        here = self._states[-1]
        return here.reference, without_unit(here.table, here.reference)

    @property
    def schema(self) -> Schema:
        """What the columns of the table are now."""
        return self._states[-1].schema

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that were taken and not undone."""
        return tuple(s.step for s in self._states if s.step is not None)

    @property
    def promise(self) -> Promise | None:
        """The k that the audit counts, with its blocks and strata; None where none is promised."""
        here = self._states[-1]
        if here.by_protect and here.planned is not None and here.planned.plan.keeps_k:
            return Promise.of_all_beside(here.planned.plan, here.promises.values())
        return Promise.of_all(here.promises.values())

    @property
    def promised(self) -> dict[str, Any]:
        """The same as `audit` takes it."""
        promise, planned = self.promise, self._states[-1].planned
        if promise is None:
            return {}
        counted = {"k": None} if planned is not None and planned.torn else {}
        return promise.audited | counted

    @property
    def protocol(self) -> Protocol:
        """What each step did; a k that the audit does not count is called `aimed_size`."""
        entries = (s.entry for s in self._states if s.entry is not None)
        counted = None if self.promise is None else self.promise.k
        return Protocol(as_counted(entries, self._states[-1].promises, counted))

    def do(self, step: Step | str, /, *, name: str = "", **options: Any) -> Study:
        """Take a step, given as `Step` or as method and options; return the study."""
        if isinstance(step, str):
            step = Step(method=step, options=options, name=name)
        elif not isinstance(step, Step) or options:
            raise BadOptionError("step", type(step).__name__, "a Step, or a method with options")
        began, here = perf_counter(), self._states[-1]
        if step.method in PREPARING and here.masked:
            raise PlanError(f"Do {step.method!r} before any masking: it changes what is compared.")
        seed = self._seed(sum(earlier.method not in PREPARING for earlier in self.steps))
        with reporting(self.progress):
            after = STEPS.get(step.method, mask_by_masker)(self, here, step, seed)
        return self._arrive(after, step, perf_counter() - began, seed)

    def adopt(self, step: Step, planned: Planned, seconds: float) -> Study:
        """Take a step "protect" that was taken elsewhere: this is a sample of a larger table."""
        return self._arrive(adopted(self._states[-1], step, planned), step, seconds, self._seed(0))

    def adopt_prepared(self, step: Step, table: Table, schema: Schema, lost: Suppressed) -> Study:
        """Take a step "suppress" that was decided elsewhere, for all of a larger table."""
        return self._arrive(suppressed(table, schema, lost, step.options["k"]), step, 0.0, None)

    def _arrive(self, after: State, step: Step, seconds: float, seed: int | None) -> Study:
        entry = replace(
            after.entry or Entry(method=step.method),
            name=step.name,
            options=step.options,
            public=step.public,
            seconds=seconds,
            seed=None if step.method in PREPARING else seed,
        )
        self._states.append(replace(after, entry=entry, step=step))
        self._undone = []
        return self

    def undo(self, count: int = 1) -> Study:
        """Undo the last steps; `redo` applies them again, until another step is taken."""
        self._refuse_count(count, len(self.steps), "steps to take back")
        for _ in range(count):
            self._undone.append(self._states.pop())
        return self

    def redo(self, count: int = 1) -> Study:
        """Apply again the steps that were undone, as they were."""
        self._refuse_count(count, len(self._undone), "steps to bring back")
        for _ in range(count):
            self._states.append(self._undone.pop())
        return self

    def replay(self, steps: Iterable[Step] | None = None) -> Study:
        """Return a new study of the same original, with the same or other steps done anew."""
        first = self._states[0]
        again = Study(
            first.table, schema=first.schema, rules=self.rules, tolerance=self.tolerance,
            random_state=self.random_state, folder=self.folder, progress=self.progress,
        )  # fmt: skip
        again._states[0] = first  # with what was read and judged already
        for step in self.steps if steps is None else steps:
            again.do(step)
        return again

    @parameters(units=[OneOf(("left out", "renumbered"))])
    def release(self, *, units: str = "left out") -> Release:
        """Audit the present table: return a release, or raise why there is none.

        `units="renumbered"` releases the column of units with new numbers, drawn at random, if k
        units agree in all their records together.
        """
        found, here = self.judged(), self._states[-1]
        planned = here.planned
        if planned is not None and planned.on_dominance != "report":
            refuse_dominated(self, found, planned.dominance, planned.on_dominance == "enlarge")
        found = replace(found, estimates=self.estimates())
        if units == "left out":
            return found
        columns = [*self.masked, *here.strata]
        return renumber_units(found, here.table, self.views, columns, self.random_state)

    def judged(self) -> Release:
        """Judge the table, whatever records dominate its groups."""
        here = self._states[-1]
        roles.refuse_identifying(here.schema)
        view = View.of(here.table, here.schema)
        for names, refuse in (
            (self.unmasked, roles.refuse_unmasked), (self.unique, roles.refuse_unique)
        ):  # fmt: skip
            refuse(names, roles.in_python(view, here.schema, here.masked, names))
        plan = None if here.planned is None else here.planned.plan
        expected = here.reference
        if plan is not None:
            expected = View.of(as_planned(here.reference.table, plan), here.schema)
        if here.suppressed:  # in dtypes that have missing cells
            none = np.zeros(here.table.n_rows, dtype=bool)
            same = expected.table.empty(dict.fromkeys(here.suppressed, none))
            expected = View.of(same, here.schema)
        found = judge(
            here.reference, here.table, expected=expected, masked=here.masked,
            suppressed=here.suppressed,
            before=self.confrontation, planned=here.planned, promised=self.promised,
            tolerance=self.tolerance, protocol=self.protocol, recoded=here.recoded,
            kinds=here.schema,
        )  # fmt: skip
        return replace(found, probabilistic=tuple(measure() for measure in here.uncertain))

    def estimates(
        self, released: View | None = None, *, columns: list[Any] | None = None
    ) -> EstimateLoss:
        """Compare survey estimates; ratios are those that rules between numbers are about.

        `released` is a file of the release, read again; otherwise the table as it is now. No figure
        about a release is a reason to withhold it: what fails gives its reason.
        """
        reference, masked = self.views
        masked = masked if released is None else released
        recoded = set(self.recoded)  # coarser values have no shares to compare
        about = masked.columns if columns is None else columns
        if recoded:
            columns = [name for name in about if name not in recoded and reference.table.has(name)]
        numbers = [n for n in about if reference.is_number(n) and masked.is_number(n)]
        ratios = component_ratios(self.confrontation.rules, numbers)
        try:
            return estimate_loss(
                reference, masked, columns=columns, schema=self.schema, ratios=ratios, by=True,
                on_unpaired="skip",
            )  # fmt: skip
        except (TessellaError, ArithmeticError, ValueError) as error:
            return EstimateLoss(estimates=(), notes=(reason_of(error),))

    def _seed(self, place: int) -> int | None:
        if self.random_state is None or (place == 0 and self.random_state < 2**32):
            return self.random_state  # what scikit-learn takes for a seed
        return int(np.random.SeedSequence([self.random_state, place]).generate_state(1)[0])

    def _refuse_count(self, count: int, most: int, what: str) -> None:
        if not Whole(1, most).accepts(count):
            raise BadOptionError("count", count, f"from 1 to {most} {what}")

    def __repr__(self) -> str:
        here = self._states[-1].table
        head = f"Study of {here.n_rows} records in {len(here.columns)} columns"
        lines = [
            f"{at}. {replace(entry, account='')}" for at, entry in enumerate(self.protocol, start=1)
        ]
        return "\n".join([head, *lines])
