"""Fuzzy c-means of a table larger than memory: sums over its pieces.

A sweep computes degrees u from centres, then centres from degrees, v = sum w u^m x / sum w u^m.
Both sums are over records: each piece returns its own, and the driver divides. Centres start where
those of a sample rest. So a plan with a number of centres `c` has the same c of them in every cell;
where k decides how many there are, n / k, cells find theirs by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from .._types import Floats, Integers
from ..engines.base import Engine, Made, Moved
from ..engines.cells import numbers, records
from ..exceptions import CollapsedError
from ..frame import View
from ..fuzzy.field import Field, find_collapse
from ..kernels.cut_tree import keys_of_rows
from ..kernels.degrees import Law
from ..linear import LinearSystem
from ..masking.engine import read_blocks
from ..masking.fuzzy_groups import FALL, FuzzyOptions, FuzzyPart
from ..masking.whole import Whole, find_parts, place_piece, weights_of
from . import jobs
from .jobs import Task, pack, unpack, with_numbers

MOST_CENTRES = 4_096  # a sweep is of all records: of more centres each cell gets its share
OF_CENTRE = 20  # records of the sample for each centre, at least
STARTS = 8  # a stream of the keys of rows

Centres = Mapping[int, Floats]  # by the number of a part


def shares_centres(task: Task) -> bool:
    """Tell if all cells have the same fuzzy centres, of a given number."""
    return task.plan.is_fuzzy and 0 < (task.plan.options.get("c") or 0) <= MOST_CENTRES


@dataclass(eq=False)
class Descent:
    """The centres of one part on their way to rest."""

    sample: FuzzyPart
    law: Law
    tol: float  # in units of the points
    centres: Floats
    objective: float = np.inf
    rests: bool = False

    def step(self, sums: Floats) -> None:
        """Move the centres by sums of u^m x, of u^m, and of the objective: shape (c, d + 2)."""
        weight = sums[:, -2]
        better, held = self.centres.copy(), weight > 0
        better[held] = sums[held, :-2] / weight[held, None]
        better = projected(self.sample.system, better)
        objective = float(sums[:, -1].sum())
        moved = float(((better - self.centres) ** 2).sum(axis=1).max()) ** 0.5
        lowered = self.objective - objective >= FALL * abs(objective)
        self.rests = moved <= self.tol or not lowered
        self.objective = objective
        if not self.rests:
            self.centres = better

    def refuse_collapse(self, given: str) -> None:
        """Refuse centres that coincide, as seen in the sample."""
        field = Field.of(self.sample.records, self.sample.weights, len(self.centres))
        found = find_collapse(field, field.inward(self.centres), field.law(self.law))
        if found is not None:
            advice = "Give a smaller m1 (or a larger lambda1), or a smaller c."
            raise CollapsedError(
                given, coincide=found.coincide, c=found.c, even=found.even, advice=advice
            )


def projected(system: LinearSystem | None, centres: Floats) -> Floats:
    """Move centres to the nearest points that keep a system."""
    return centres if system is None else system.project(centres)


def with_centres(
    engine: Engine, source: Moved, task: Task, wholes: Sequence[Whole], unneeded: list[Moved]
) -> tuple[list[Whole], int]:
    """Find the centres of all parts; return the wholes with them, and how many coincided.

    `unneeded` gets the rows that are not needed after it.
    """
    found, fewer = [], 0
    for whole in wholes:
        options = FuzzyOptions.of(task.plan.options)
        options.size(task.plan.k, task.n)
        shares = [_share(options, int(size), task.n) for size in whole.sizes]
        descents = _start(engine, source, task, whole, options, shares)
        points = engine.work("represent", [source], partial(represent, task, whole))
        unneeded.append(points)
        _descend(engine, points, descents, options)
        for own in descents.values():
            own.refuse_collapse(f"{task.plan.options}")
        fewer += sum(shares) - sum(len(own.centres) for own in descents.values())
        by_key = {whole.parts[part].key: own.centres for part, own in descents.items()}
        found.append(replace(whole, centres=by_key))
    return found, fewer


def _share(options: FuzzyOptions, size: int, n: int) -> int:
    return min(size, max(1, round((options.c or 1) * size / n)))


def _start(
    engine: Engine, source: Moved, task: Task, whole: Whole, options: FuzzyOptions,
    shares: list[int],
) -> dict[int, Descent]:  # fmt: skip
    """Let the centres of a sample of each part come to rest."""
    wanted = [
        min(1.0, max(OF_CENTRE * c / size, jobs.SAMPLED / task.n))
        for c, size in zip(shares, whole.sizes.tolist())
    ]
    facts = engine.work("starts", [source], partial(sample_parts, task, whole, wanted)).facts
    rows = pa.concat_tables([unpack(own["sample"]) for own in facts.values()])
    found = {}
    for part, (own, _) in fuzzy_parts(whole, task.view(rows)).items():
        sample = replace(own, c=min(shares[part], len(own.records)))
        spread = float(np.average(((own.records - _mean(own)) ** 2).sum(1), weights=own.weights))
        centres = sample.fit(options, task.plan.k).cluster_centers_
        found[part] = Descent(sample, options.first, options.tol * spread**0.5, centres)
    return found


def _mean(part: FuzzyPart) -> Floats:
    return np.average(part.records, weights=part.weights, axis=0)


def _descend(
    engine: Engine, points: Moved, descents: Mapping[int, Descent], options: FuzzyOptions
) -> None:
    """Sweep all records until the centres of every part rest."""
    for _ in range(options.max_iter):
        moving = {part: own.centres for part, own in descents.items() if not own.rests}
        if not moving:
            break
        job = partial(sweep_piece, moving, options.first)
        facts = engine.work("sweep", [points], job).facts.values()
        for part in moving:
            descents[part].step(np.sum([own[str(part)] for own in facts if str(part) in own], 0))


def sample_parts(
    task: Task, whole: Whole, shares: Sequence[float], number: int, given: Sequence[Any]
) -> Made:
    """Draw a share of the rows of each part, each by its number alone."""
    rows, row = with_numbers(number, given[0])
    share = np.array(shares)[find_parts(task.view(rows), whole)]
    chosen = np.flatnonzero(keys_of_rows(row, STARTS) < share)
    return Made(facts={"sample": pack(rows.take(pa.array(chosen)))})


def fuzzy_parts(whole: Whole, view: View) -> dict[int, tuple[FuzzyPart, Integers]]:
    """Return some rows in the representation of their parts, by number, and which these are."""
    at = {part.key: number for number, part in enumerate(whole.parts)}
    shard = whole.shard(find_parts(view, whole), None, place_piece(view, whole))
    plan = whole.plan
    options = FuzzyOptions.of(plan.options).with_("c", None)
    (read,) = read_blocks(plan, view, view.strata(plan.strata), weights_of(view), [shard])
    return {at[own.part.key]: (part, own.rows) for own, part in read.in_order(options)}


def represent(task: Task, whole: Whole, number: int, given: Sequence[Any]) -> Made:
    """Return the records of a piece as points in the representation of their parts."""
    rows, row = with_numbers(number, given[0])
    found = [
        records(row[own], part.records, part.weights, None, np.full(len(own), at))
        for at, (part, own) in fuzzy_parts(whole, task.view(rows)).items()
    ]
    return Made(pa.concat_tables(found), np.full(len(row), number))


def sweep_piece(centres: Centres, law: Law, _: int, given: Sequence[Any]) -> Made:
    """Return, for each part, sums over the records of a piece: see `Descent.step`."""
    (rows,) = given
    X, weights, parts = (numbers(rows, name) for name in ("x", "weight", "part"))
    facts = {}
    for part, own in centres.items():
        there = parts == part
        if not there.any():
            continue
        field = Field.of(X[there], weights[there], len(own))
        swept = field.sweep(field.inward(own), field.law(law))
        sums = np.zeros((len(own), own.shape[1] + 2))
        sums[:, :-2] = field.outward(swept.centres) * swept.weights[:, None]
        sums[:, -2] = swept.weights
        sums[0, -1] = field.objective(swept.objective)
        facts[str(part)] = sums
    return Made(facts=facts)
