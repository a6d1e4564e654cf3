"""What came of a table larger than memory: what was counted in all records, and a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from .._types import Integers, Name
from .._wording import counted, listed
from ..auditing.result import GroupLine
from ..engines.base import Moved
from ..exceptions import RefusedError
from ..frame import Table, View
from ..grouping.dominance import MOST
from ..masking.engine import MaskedBlocks
from ..masking.whole import Whole
from ..rules import Rules
from .dominance import DominatedError
from .forms import Form
from .jobs import Task, alike_columns, unpack
from .preparing import prepared
from .promises import NamingChance
from .result import Planned, Release
from .shards import deviations
from .steps import Step
from .study import Study

DOMINANCE = "Dominance ("  # how notes about it begin

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Alike:
    """Sets of records that are alike in some columns, units in the smallest, records below k."""

    columns: tuple[str, ...]
    groups: int
    smallest: int
    below: int

    @classmethod
    def of(cls, at: int, task: Task, counts: Sequence[Facts], shards: Sequence[Facts]) -> Alike:
        """Add up counts of records; where there are units, no `shards` have fewer of these."""
        names = [name for name in alike_columns(task.plan)[at] if name not in task.plan.strata]
        smallest = min(int(own["smallest"]) for own in counts)
        below = sum(int(own["below"]) for own in counts)
        if shards:
            smallest = min(int(own["smallest"][at]) for own in shards)
            below = sum(int(own["below"][at]) for own in shards)
        return cls(tuple(names), sum(int(own["groups"]) for own in counts), smallest, below)


@dataclass(frozen=True, eq=False)
class LargeRelease:
    """What came of a table larger than memory.

    Attributes
    ----------
    rows : Moved
        The released rows, by part of the release, each in its order.
    n : int
        Records.
    alike : tuple of Alike
        Who is alike in the released columns: of each block, then of all together if there are
        several.
    column_loss : dict
        Per cent of each column's variance that is lost, in all records.
    inconsistent : dict
        How many records of the original break each rule.
    dominance : list of str
        How many records the totals of their groups give away, in words, where there are any.
    sample, sample_released, labels, sampled
        Whole groups, units or records, drawn at random (see `Task.sampled_by`): original rows,
        released rows, the group of each, by block, and its place in the table.
    coincided : int
        Fuzzy centres that there are fewer than planned.
    chance : NamingChance or None
        Of a release that only aims at k: how many records an intruder names, of all cells.
    """

    task: Task
    wholes: Sequence[Whole]
    rows: Moved
    n: int
    alike: tuple[Alike, ...]
    column_loss: dict[Name, float]
    inconsistent: dict[str, int]
    dominance: list[str]
    breaking: int
    edited: int
    donated: int
    merged: int
    sample: pa.Table
    sample_released: pa.Table
    labels: Integers
    sampled: Integers
    coincided: int
    chance: NamingChance | None

    @property
    def n_groups(self) -> int:
        """How many sets of records are alike, in any block."""
        return sum(own.groups for own in self.alike[: self.n_blocks])

    @property
    def smallest(self) -> int:
        """How many records, or units, the smallest of them has."""
        return min(own.smallest for own in self.alike[: self.n_blocks])

    @property
    def n_blocks(self) -> int:
        """How many of the lines are about one block."""
        return max(1, len(self.alike) - 1)

    @property
    def loss(self) -> float:
        """The mean of the columns' losses, in per cent."""
        found = list(self.column_loss.values())
        return sum(found) / len(found) if found else 0.0

    def study(
        self, rules: Rules, steps: Sequence[Step], *, seconds: float, seed: int | None
    ) -> Study:
        """Return the study of the sample, masked as it was."""
        task = self.task
        study = Study(
            task.form.dress(self.sample), schema=task.given, rules=rules, tolerance=task.tolerance,
            random_state=seed,
        )  # fmt: skip
        *before, masking = steps
        for at, step in enumerate(before, start=1):
            if step.method != "suppress":
                study.do(step)
                continue
            assert task.suppression is not None
            done, known = prepared(
                task.form, before[:at], self.sample, task.given, task.suppression
            )
            study.adopt_prepared(step, done, known, task.suppression.lost)
        view = study.views[0]
        released = Form.like(self.sample_released, pa.table(view.table.native))
        if view.unit is not None:  # it is left out of what is released, not of what is compared
            own = pa.table(view.table.native).column(str(view.unit))
            released = released.append_column(str(view.unit), own)
        table = Table.read(Table.read(released).select(list(view.columns)))
        about = study.confrontation.rules
        torn = task.sampled_by != "groups"
        planned = Planned(
            table=table, plan=task.plan,
            masked=MaskedBlocks(
                labels=[np.unique(own, return_inverse=True)[1] for own in self.labels],
                coincided=self.coincided,
            ),
            after=about.confront(View(table, task.schema), tolerance=task.tolerance),
            dominance=task.dominance, on_dominance="report" if torn else task.on_dominance,
            torn=torn, chance=self.chance,
        )  # fmt: skip
        return study.adopt(masking, planned, seconds)

    def with_counts(self, found: Release) -> Release:
        """Put what was counted in all records in the place of what the sample has."""
        audit, task = found.audit, self.task
        k = task.plan.k if task.plan.keeps_k else None
        lines = tuple(
            GroupLine(
                columns=own.columns, records=(self.n,), combinations=(own.groups,),
                smallest=(own.smallest,), below=None if k is None else (own.below,),
            )
            for own in self.alike
        )  # fmt: skip
        broken = [
            replace(line, breaks_before=self.inconsistent.get(line.name, line.breaks_before))
            for line in audit.rules
        ]
        notes = [*self._about_blocks(lines), *audit.notes]
        if task.sampled_by != "groups":  # totals of groups of which some records are missing
            notes = [*(note for note in notes if not note.startswith(DOMINANCE)), *self.dominance]
            audit = replace(audit, dominance=())
        audit = replace(
            audit, n_records=self.n, strata=("all records",), blocks=lines[: self.n_blocks],
            joint=lines[-1], rules=tuple(broken), notes=tuple(notes), k=k,
        )  # fmt: skip
        return replace(
            found, audit=audit, loss=self.loss,
            column_loss={**found.column_loss, **self.column_loss}, inconsistent=self.breaking,
            edited=self.edited, merged=self.merged, donated=self.donated,
        )  # fmt: skip

    def _about_blocks(self, lines: Sequence[GroupLine]) -> Iterator[str]:
        """Say how many share their values with fewer than k over all blocks together."""
        joint = lines[-1]
        if len(lines) == 1 or not joint.n_below:
            return
        whom, most = "records", ""
        if units := self.task.schema.names("unit"):  # counted in each cell, where all others may be
            whom, most = f"units of {units[0]!r}", "at most "
        yield (
            f"k={self.task.plan.k} is counted within blocks. Over all blocks together "
            f"{most}{joint.n_below:,} of {self.n:,} records share their released values with fewer "
            f"than {self.task.plan.k} {whom}."
        )


def add_up(
    task: Task, wholes: Sequence[Whole], names: Sequence[Name], shards: Sequence[Facts],
    ordered: Moved, counts: Sequence[Sequence[Facts]],
) -> LargeRelease:  # fmt: skip
    """Add up what shards and counts say; refuse a release that lacks records, or k.

    `counts` are those of who is alike in each of `alike_columns`.
    """
    promised = max(1, len(counts) - 1) if task.plan.keeps_k else 0
    for at, own in enumerate(counts):
        n = sum(int(one["records"]) for one in own)
        smallest = min(int(one["smallest"]) for one in own)
        if n != task.n or (at < promised and smallest < task.plan.k):
            raise RefusedError(
                f"The masked table is withheld: of {task.n:,} records {n:,} were counted, the "
                f"fewest alike {smallest}, and k is {task.plan.k}."
            )
    dominance = _dominance(task, shards)
    squares = np.sum([own["squares"] for own in shards], axis=0)
    losses = {
        name: 100 * float(total / weight)
        for name, (total, weight), spread in zip(names, squares, deviations(wholes))
        if spread > 0 and weight > 0
    }
    broken = np.sum([own["inconsistent"] for own in shards], axis=0).astype(int)
    has_units = bool(task.schema.names("unit"))
    alike = tuple(
        Alike.of(at, task, own, shards if has_units else ()) for at, own in enumerate(counts)
    )

    def total(name: str) -> int:
        return sum(int(own[name]) for own in shards)

    return LargeRelease(
        task=task, wholes=wholes, rows=ordered, n=task.n, alike=alike, column_loss=losses,
        inconsistent=dict(zip(task.rules.names, np.atleast_1d(broken).tolist())),
        dominance=dominance, breaking=total("breaking"), edited=total("edited"),
        donated=total("donated"), coincided=total("coincided"), chance=_naming(task, shards),
        merged=total("merged") + sum(part.merged for own in wholes for part in own.parts),
        sample=pa.concat_tables([unpack(own["sample"]) for own in shards]),
        sample_released=pa.concat_tables([unpack(own["released"]) for own in shards]),
        labels=np.concatenate([own["labels"] for own in shards], axis=1),
        sampled=np.concatenate([own["rows"] for own in shards]),
    )  # fmt: skip


def _naming(task: Task, shards: Sequence[Facts]) -> NamingChance | None:
    """Add up how many records an intruder names in each cell, where no k is promised."""
    if task.plan.keeps_k:
        return None
    kind: dict[str, Any] = {"bounded": task.plan.is_overlapping, "columns": tuple(task.masked)}
    reasons = [str(own["not_named"][0]) for own in shards if int(own["named"]) < 0]
    if reasons:
        return NamingChance(k=task.plan.k, named=None, records=0, reason=reasons[0], **kind)
    named, attacked = (sum(int(own[name]) for own in shards) for name in ("named", "attacked"))
    return NamingChance(k=task.plan.k, named=named, records=attacked, **kind)


def _dominance(task: Task, shards: Sequence[Facts]) -> list[str]:
    """Say how many records totals of groups give away, or refuse them where that was asked for."""
    n = sum(int(own["dominated"]) for own in shards)
    if not n:
        return []
    records = counted(n, "record")
    names = sorted({name for own in shards for name in own["dominated_columns"].tolist()})
    columns = listed(list(map(repr, names)))
    if task.on_dominance == "report":
        told = f"the totals of released groups disclose {records}, in {columns}"
        return [f"{DOMINANCE}{task.dominance}): {told}."]
    enlarged = task.on_dominance == "enlarge"
    wider = f", also with groups enlarged up to {MOST * task.plan.k} records" if enlarged else ""
    other = "" if enlarged else "on_dominance='enlarge', "
    raise DominatedError(
        f"The masked table is withheld: {records} can be worked out from the totals of released "
        f"groups ({task.dominance}), in {columns}{wider}.",
        plan=f"Give {other}a larger k, cut these values in the original, or drop the columns.",
    )
