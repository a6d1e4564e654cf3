"""Originals for which sampled records of a large release could be mistaken.

An intruder who has the whole original takes the nearest of *all* originals. A sample has few of
them: linked within it, more records are found than in the whole table. So every piece of the table
returns the originals that lie near the attacked records: up to NEAREST of them, no farther away
than REACH times their own original. By the distance of this search, the nearest original of all is
then known exactly: either all that are nearer than the own one are there, or NEAREST of them are.
By another distance some that are nearer may be missing, so that too many are found, never too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.spatial import KDTree

from .._types import Floats, Integers
from ..engines.base import Engine, Job, Made, Moved
from ..frame import View
from ..kernels.cut_tree import keys_of_rows
from ..masking.whole import Whole, place_piece
from .jobs import ROW, Task, pack, rows_of_piece, unpack

NEAREST = 24  # originals of a piece that are returned for a record
REACH = 1.5  # times the distance to the own original: other distances are not far from this one
BATCHES = 16  # of records with about the same reach, which a tree is searched for at once
ATTACKED = {"quick": 1_000, "standard": 2_000, "thorough": 5_000}  # records
STREAM = 8  # of the keys of rows


class Keeping:
    """An engine that keeps the rows of a table, though a step needs them no more."""

    def __init__(self, engine: Engine, table: Moved) -> None:
        self.engine, self.table, self.name = engine, table, engine.name

    def load(self, tables: Iterable[pa.Table]) -> Moved:
        """Take another table."""
        return self.engine.load(tables)

    def work(
        self, name: str, given: Sequence[Moved], job: Job, *, last: Sequence[Moved] = ()
    ) -> Moved:
        """Do a job for every number, see `Engine.work`."""
        gone = [one for one in last if one is not self.table]
        return self.engine.work(name, given, job, last=gone)

    def close(self) -> None:
        """End what works for the engine."""
        self.engine.close()


def points_of(view: View, wholes: Sequence[Whole]) -> Floats:
    """Return records as points, in the columns of all blocks."""
    return np.hstack([place_piece(view, whole) for whole in wholes])


def find_rivals(
    engine: Engine, table: Moved, task: Task, wholes: Sequence[Whole], *, sample: pa.Table,
    released: pa.Table, rows: Integers, effort: str,
) -> tuple[Integers, pa.Table]:  # fmt: skip
    """Return which sampled records are attacked, and the originals near them, with their rows.

    `sample` and `released` are the sampled records before and after, `rows` their places in the
    table; of those that are returned none is among them.
    """
    asked = np.sort(np.argsort(keys_of_rows(rows, STREAM), kind="stable")[: ATTACKED[effort]])
    own = points_of(task.view(sample.take(pa.array(asked))), wholes)
    released = task.released.dress(released.take(pa.array(asked)))
    sought = points_of(View.of(released, task.schema), wholes)
    reach = REACH * np.sqrt(((sought - own) ** 2).sum(axis=1))
    job = partial(nearest_originals, task, wholes, sought, reach)
    found = engine.work("rivals", [table], job).facts.values()
    rivals = pa.concat_tables([unpack(one["rivals"]) for one in found])
    new = np.flatnonzero(~np.isin(rivals.column(ROW).to_numpy(), rows))
    return asked, rivals.take(pa.array(new))


def nearest_originals(
    task: Task, wholes: Sequence[Whole], sought: Floats, reach: Floats, number: int,
    given: Sequence[Any],
) -> Made:  # fmt: skip
    """Return the records of a piece that lie near some points."""
    (rows,) = given
    points = points_of(task.view(rows), wholes)
    tree = KDTree(points)
    near = min(NEAREST, len(points))
    found = [np.empty(0, dtype=np.int64)]
    for some in np.array_split(np.argsort(reach, kind="stable"), BATCHES):
        if not len(some):
            continue
        # An upper bound cuts branches off; it excludes what is as far away as itself.
        bound = np.nextafter(reach[some].max(), np.inf)
        away, which = tree.query(sought[some], k=near, distance_upper_bound=bound)
        away, which = away.reshape(len(some), near), which.reshape(len(some), near)
        found.append(which[away <= reach[some][:, None]])
    chosen = np.unique(np.concatenate(found))
    row = rows_of_piece(number, rows)[chosen]
    near = rows.take(pa.array(chosen)).append_column(ROW, pa.array(row))
    return Made(facts={"rivals": pack(near)})
