"""Masking by cells: what search in rounds cannot do, a cell at a time.

*Items* are records, or the units of a table that has some: all records of a unit go to one cell. A
table is cut into cells of items that lie together, by planes found in a sample (see `CutForest`);
the rows of each are a shard, which is grouped, masked and audited as a table of its own, in the
scale of the whole. So any grouping, several blocks and households are masked beyond memory.

Some items share a group with none of another *class*: other strata, cells that are missing, members
that a rule counts. What few items of a cell have goes to the *common cell* of its tree, until every
cell has none of a class, or enough: what k allows in the whole table, it allows in each cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .._types import Integers
from ..engines.base import Engine, Made, Moved
from ..engines.cells import EngineCells, numbers, records
from ..exceptions import RefusedError
from ..frame import View
from ..grouping.cells import CELL, SAMPLED, CutForest, keys_of
from ..masking.homes import constant_columns
from ..masking.households import households_note, needs_whole
from ..masking.unit_classes import UnitClasses, hashed
from ..masking.whole import Whole, find_parts, place_piece
from .centres import shares_centres
from .jobs import ROW, Task, units_of, with_numbers

if TYPE_CHECKING:
    import pandas as pd

# Of a class that k items or more have, a cell has this many times k, or none: with few of them in
# every cell, groups would be of what is there; with many, more of a rare class go to one cell.
ENOUGH = 4
# Records of a cell of fuzzy groups with as many centres as records / k: their time grows with the
# square, 6 s for 4,000 records and 39 s for 16,000. With half as many, twice the groups are cut.
FUZZY_CELL = 8_192
EVERYONE = -1  # the class of all items

Wholes = Sequence[Whole]


@dataclass(frozen=True, eq=False)
class Cutting:
    """Which cell each item goes to.

    `trees` are the names of what the trees of the forest cut; `common` is a cell of each, and
    `moved` are pairs of a cell and a class of which all items go there.
    """

    forest: CutForest
    trees: Integers
    common: Integers
    moved: Integers  # shape (m, 2)

    def cells_of(self, items: pa.Table) -> Integers:
        """Return the cell of each item."""
        tree = np.searchsorted(self.trees, numbers(items, "part"))
        cells = self.forest.cells_of(numbers(items, "x"), keys_of(numbers(items, "row")), tree)
        if len(self.moved):
            place, classes = classes_of(items)
            pairs = hashed([cells[place], classes], len(place))
            gone = place[np.isin(pairs, hashed(list(self.moved.T), len(self.moved)))]
            cells[gone] = self.common[tree[gone]]
        return cells


def classes_of(items: pa.Table) -> tuple[Integers, Integers]:
    """Return pairs of the place of an item and a class that it has."""
    lists = items.column("classes").combine_chunks()
    return (
        np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy()),
        lists.flatten().to_numpy().copy(),
    )


def send_home(task: Task, buckets: int, number: int, given: Sequence[Any]) -> Made:
    """Send the rows of a piece to the bucket of their units, so that these are whole."""
    rows, row = with_numbers(number, given[0])
    units: Any = units_of(task.view(rows))
    return Made(rows.append_column(ROW, pa.array(row)), units % buckets)


def look_at_homes(task: Task, number: int, given: Sequence[Any]) -> Made:
    """Tell which masked columns are constant in the units of a bucket, and if units are several."""
    view = task.view(with_numbers(number, given[0])[0])
    constant: Any = constant_columns(view)
    several = len(np.unique(np.asarray(view.units))) < view.n_rows
    kept = [*task.masked, *task.plan.strata]
    return Made(facts={"constant": [name in constant for name in kept], "several": several})


def place_items(task: Task, wholes: Wholes, number: int, given: Sequence[Any]) -> Made:
    """Return the items of a piece, or of a bucket, as points with their trees and classes."""
    rows, row = with_numbers(number, given[0])
    view = task.view(rows)
    points = np.hstack([place_piece(view, whole) for whole in wholes])
    units = units_of(view)
    name, first, place = np.unique(
        row if units is None else units, return_index=True, return_inverse=True
    )
    tree, at, classes = _classes(task, wholes, view, place, len(name), units is not None)
    sizes = np.bincount(place)
    means = [np.bincount(place, own) / sizes for own in points.T]
    pairs = np.unique(np.column_stack([at, classes]), axis=0)
    ends = np.searchsorted(pairs[:, 0], np.arange(len(name) + 1))
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(pairs[:, 1]))
    found = records(row[first], np.column_stack(means), None, None, tree[first])
    found = found.append_column("item", pa.array(name)).append_column("classes", lists)
    trees, counts = np.unique(tree[first], return_counts=True)
    return Made(found, np.full(len(name), number), {"trees": trees, "sizes": counts})


def _classes(
    task: Task, wholes: Wholes, view: View, place: Integers, n: int, has_units: bool
) -> tuple[Integers, Integers, Integers]:
    """Return the tree of each record, and pairs of an item and a class that it has."""
    at = [place, np.arange(n)]
    everyone = np.full(n, EVERYONE)
    if task.constant is not None:
        found = UnitClasses.of(task.plan, view, task.rules, task.constant, place)
        classes = [found.classes, everyone]
        if task.whole_units or needs_whole(task.plan):
            known = np.flatnonzero(found.shapes)
            at, classes = [*at, known], [*classes, found.shapes[known]]
        return found.apart, np.concatenate(at), np.concatenate(classes)
    parts = [find_parts(view, whole) for whole in wholes]
    classes = [hashed([np.full(len(own), block), own], len(own)) for block, own in enumerate(parts)]
    tree = np.zeros(view.n_rows, dtype=np.int64)
    if not has_units:  # whose records may lie in several parts
        strata = np.array([part.key[0] for part in wholes[0].parts])[parts[0]]
        tree = parts[0] if len(wholes) == 1 else strata
    return (
        tree,
        np.concatenate([*[place] * len(parts), np.arange(n)]),
        np.concatenate([*classes, everyone]),
    )


def count_classes(cutting: Cutting, _: int, given: Sequence[Any]) -> Made:
    """Count the items of each class in each cell, of a piece."""
    import pandas as pd

    cells = cutting.cells_of(given[0])
    place, classes = classes_of(given[0])
    pairs = pd.DataFrame({"cell": cells[place], "class": classes}).value_counts(sort=False)
    found = pairs.reset_index().to_numpy(dtype=np.int64)
    return Made(facts={"counts": found})


def send_to_cells(task: Task, cutting: Cutting, number: int, given: Sequence[Any]) -> Made:
    """Send the rows of a piece, or of a bucket, to the shards of their items' cells."""
    (rows, row), items = with_numbers(number, given[0]), given[1]
    units = units_of(task.view(rows))
    own = row if units is None else units
    names = np.empty(0, dtype=np.int64) if items is None else numbers(items, "item")
    order = np.argsort(names)
    place = order[np.clip(np.searchsorted(names[order], own), 0, len(names) - 1)]
    if not len(names) or (names[place] != own).any():
        raise RefusedError("Records were lost on the way. Nothing is released; start again.")
    cells = cutting.cells_of(items)[place]
    return Made(rows.append_column(ROW, pa.array(row)), cutting.forest.bundles[cells])


def find_homes(engine: Engine, table: Moved, task: Task, buckets: int) -> tuple[Moved, Task]:
    """Send all rows to the buckets of their units, and find out if these are masked whole."""
    homes = engine.work("home", [table], partial(send_home, task, buckets))
    found = list(engine.work("constant", [homes], partial(look_at_homes, task)).facts.values())
    kept = [*task.masked, *task.plan.strata]
    always = np.all([own["constant"] for own in found], axis=0)
    constant = tuple(name for name, own in zip(kept, always) if own)
    across = any(r.unit is not None and {*task.masked} & {*r.columns} for r in task.plan.rules)
    needed = across or not set(task.masked).isdisjoint(constant)
    if task.plan.is_drawn or not needed or not any(bool(own["several"]) for own in found):
        return homes, task
    whole = task.whole_units or needs_whole(task.plan)
    note = households_note(task.plan, constant, whole)
    plan = replace(task.plan, notes=(*task.plan.notes, note))
    return homes, replace(task, plan=plan, constant=constant)


def send_by_cells(
    engine: Engine, source: Moved, task: Task, wholes: Wholes, unneeded: Sequence[Moved] = ()
) -> Moved:
    """Cut a table into cells, and send its rows to them; units are in buckets."""
    items = engine.work("items", [source], partial(place_items, task, wholes), last=unneeded)
    cutting = _cut(engine, items, task)
    job = partial(send_to_cells, task, cutting)
    return engine.work("rows", [source, items], job, last=[source, items])


def _cut(engine: Engine, items: Moved, task: Task) -> Cutting:
    """Cut items into cells of about so many records, of which none has few of a class."""
    facts, k = list(items.facts.values()), task.plan.k
    trees, place = np.unique(np.concatenate([own["trees"] for own in facts]), return_inverse=True)
    sizes = np.bincount(place, np.concatenate([own["sizes"] for own in facts])).astype(np.int64)
    n = int(sizes.sum())
    size = min(CELL, FUZZY_CELL) if task.plan.is_fuzzy and not shares_centres(task) else CELL
    cell = max(size * n // task.n, 5 * ENOUGH * k)
    random = np.random.default_rng(task.seed)
    cells = EngineCells(engine, items, sizes, has_units=False)
    rows, points, parts = cells.sample(SAMPLED * -(-n // cell), int(random.integers(2**31)))
    forest = CutForest.grow(
        points, keys_of(rows), np.searchsorted(trees, parts), sizes, cell,
        int(random.integers(2**31)),
    )  # fmt: skip
    cutting = Cutting(forest, trees, forest.starts[:-1], np.empty((0, 2), dtype=np.int64))
    counts = _count(engine, items, cutting)
    cutting = replace(cutting, common=_largest(forest, counts))
    while len(few := find_few(cutting, counts, ENOUGH * k)):
        cutting = replace(cutting, moved=np.concatenate([cutting.moved, few]))
        counts = _count(engine, items, cutting)
    return cutting


def _count(engine: Engine, items: Moved, cutting: Cutting) -> pd.DataFrame:
    """Count the items of each class in each cell: columns cell, class, count."""
    import pandas as pd

    facts = engine.work("classes", [items], partial(count_classes, cutting)).facts
    found = np.concatenate([own["counts"] for own in facts.values()])
    frame = pd.DataFrame(found, columns=["cell", "class", "count"])
    return frame.groupby(["cell", "class"], as_index=False).sum()


def _largest(forest: CutForest, counts: pd.DataFrame) -> Integers:
    """Return the cell of each tree that has most items."""
    sizes = np.zeros(forest.n_cells, dtype=np.int64)
    everyone = counts[counts["class"] == EVERYONE]
    sizes[everyone["cell"]] = everyone["count"]
    return np.array([a + int(sizes[a:b].argmax()) for a, b in pairwise(forest.starts.tolist())])


def find_few(cutting: Cutting, counts: pd.DataFrame, enough: int) -> Integers:
    """Return pairs of a cell and a class whose items must go to the common cell.

    First what few items of other cells have. Where the common cell has few itself, a cell lends all
    that it has of the class: the one that has fewest, but enough. Other cells only lose items, so
    that this ends.
    """
    tree = np.searchsorted(cutting.forest.starts, counts["cell"], side="right") - 1
    common = cutting.common[tree] == counts["cell"]
    few = counts["count"] < enough
    found = counts[~common & few]
    if found.empty:
        others = counts[~common].assign(tree=tree[~common])
        lacking = counts[common & few].assign(tree=tree[common & few])[["tree", "class"]]
        lenders = lacking.merge(others, on=["tree", "class"]).sort_values(["count", "cell"])
        found = lenders.drop_duplicates(["tree", "class"])
    pairs: Integers = found[["cell", "class"]].to_numpy(dtype=np.int64)
    return pairs
