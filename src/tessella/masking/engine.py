"""Apply a plan: partition each block, group its records, and find the values of the groups.

This is the one engine of microaggregation: crisp, fuzzy and overlapping. `Microaggregation`,
`FuzzyMicroaggregation` and `OverlappingMicroaggregation` are plans; those with rules have groups
whose values keep them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isclass, signature
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import grouping as groupings
from .._estimator import clone
from .._types import Floats, Integers, Name, Truths
from ..exceptions import (
    BadOptionError,
    BadTableError,
    GroupSizeError,
    RefusedError,
    UnknownOptionError,
)
from ..frame import Strata, Table, View, group_ids
from ..grouping.base import Chance, Grouping, chance_of, check_seed
from ..grouping.dominance import MOST, DominanceRule, enlarge
from ..grouping.units import join_few_units
from ..plan import Block, Plan
from ..rules import Confrontation
from .aggregation import COMPUTED, PartOfBlock, aggregate, embed, grid_of
from .base import write_numbers
from .distributions import keep_shares, match_numbers
from .donors import take_from_donors
from .fuzzy_groups import DrawnPart, FuzzyFacts, FuzzyOptions, FuzzyPart, Logarithms
from .overlapping_groups import CoveredPart, OverlappingFacts, dealt, effort_of
from .parts import BlockCells, partition
from .repair_dates import UNMOVED
from .repair_products import recompute_products
from .selection import Scale

if TYPE_CHECKING:
    from .whole import Shard


# The class of each method; the door of `tessella.grouping` loads it when asked for.
METHODS = {
    "search": "Search",
    "mdav": "MDAV",
    "vmdav": "VMDAV",
    "cbfs": "CBFS",
    "ordered": "OrderedGrouping",
    "iterated": "IteratedOrdering",
    "repordmic": "RepOrdMic",
    "igd": "IGD",
    "univariate": "UnivariateOptimal",
}


@dataclass(eq=False)
class MaskedBlocks:
    """The values of all records: numbers, rows that categories are taken from, groups by block."""

    numbers: dict[Name, Floats] = field(default_factory=dict)
    rows: dict[Name, Integers] = field(default_factory=dict)
    dates: dict[Name, Integers] = field(default_factory=dict)  # those moved, see `repair_dates`
    labels: list[Integers] = field(default_factory=list)
    households: list[Integers] = field(default_factory=list)  # groups of units, where masked whole
    groupings: list[Grouping] = field(default_factory=list)  # none where centres are drawn
    drawn: list[list[DrawnPart]] = field(default_factory=list)  # by block, where they are
    known: FuzzyFacts | None = None  # to an intruder who has the original, where they are
    covered: list[CoveredPart] = field(default_factory=list)  # where groups overlap
    overlap: OverlappingFacts | None = None  # what is promised then, counted
    donated: int = 0  # records whose group took the values of a donor
    edited: int = 0  # records in which a product was recomputed before grouping
    merged: int = 0  # records that joined another part
    coincided: int = 0  # fuzzy centres that parts have fewer, for they would coincide

    def members(self, block: int, weights: Floats) -> tuple[Integers, Integers, Floats]:
        """Return the records that stand for the groups of a block: rows, groups and weights."""
        labels = self.labels[block]
        if not self.covered:
            return np.arange(len(labels)), labels, weights
        rows = np.concatenate([part.members.ravel() for part in self.covered])
        k = self.covered[0].covering.members.shape[1]
        groups = np.concatenate([np.repeat(labels[part.rows], k) for part in self.covered])
        return rows, groups, weights[rows]

    def deal(self) -> None:
        """Give the values of overlapping groups to the records that drew them."""
        source = dealt(self.covered, len(self.labels[0]))
        self.numbers = {name: own[source] for name, own in self.numbers.items()}
        self.rows = {name: own[source] for name, own in self.rows.items()}
        self.dates = {name: own[source] for name, own in self.dates.items()}
        self.labels = [self.labels[0][source]]


def apply_plan(plan: Plan, view: View, **given: Any) -> MaskedBlocks:
    """Find the values of all records; `given` is for `find_values`."""
    out = find_values(plan, view, **given)
    if plan.is_overlapping:
        out.deal()
    return out


def find_values(
    plan: Plan,
    view: View,
    *,
    strata: Strata,
    weights: Floats,
    valid: Truths | None = None,
    dominance: DominanceRule | None = None,
    random_state: Any = None,
    beside: Floats | None = None,
    records: Floats | None = None,
    shards: Sequence[Shard] | None = None,
) -> MaskedBlocks:
    """Find the values of the groups of all records; those of different strata share none.

    Groups that a record dominates by `dominance` grow up to MOST times k records. `valid` are the
    records that keep all rules, by default all. Seeds without a `random_state` are the system's.
    Values of overlapping groups are not yet dealt, and must be: see `MaskedBlocks.deal`. `beside`
    has coordinates that count in crisp groups, and are not masked. `records` has how many released
    records a row stands for. `shards` are what is known, by block, of a table that is a shard.
    """
    out = MaskedBlocks()
    chance = chance_of(random_state) if plan.is_drawn else None
    seeds = [0] * len(plan.blocks) if chance else _seeds(random_state, len(plan.blocks))
    if plan.is_overlapping and dominance is not None:
        expected = "'report' or 'refuse' with overlapping groups, all of which have k records"
        raise BadOptionError("on_dominance", "enlarge", expected)
    for read, seed in zip(read_blocks(plan, view, strata, weights, shards), seeds):
        cells, block, parts, embedded = read.cells, read.block, read.parts, read.embedded
        out.edited += read.edited
        out.merged += sum(own.part.merged for own in parts)
        if read.labels is not None:
            labels = group_ids([read.labels])
        elif chance is None:
            labels = _group(out, read, weights, seed, beside)
        else:
            labels = (_draw if plan.is_fuzzy else _cover)(out, read, chance)
        if dominance is not None:
            values = cells.matrix([n for n in cells.numbers(block) if view.is_number(n)])
            rows = [own.rows for own in parts]
            labels = enlarge(labels, embedded, values, weights, dominance, rows, MOST * plan.k)
        computed = block.with_operator(*COMPUTED)
        for name in block.columns:
            if name in computed:
                out.numbers[name] = np.zeros(view.n_rows)
            else:
                out.rows[name] = np.arange(view.n_rows)
        for own in parts:
            own.group(labels)
        if not plan.is_fuzzy:
            keep_shares(out, parts, records)
        for own in parts:
            aggregate(out, own, valid, chance if plan.is_fuzzy else None)
        out.labels.append(labels)
    match_numbers(out, plan, view, weights, valid)
    return out


@dataclass(eq=False)
class ReadBlock:
    """The records of a block as points, cut into parts."""

    plan: Plan
    block: Block
    cells: BlockCells
    scale: Scale
    embedded: Floats
    parts: list[PartOfBlock]
    edited: int
    labels: Integers | None = None  # of groups that were found before
    logarithms: Scale | None = None  # of a larger table
    centres: Mapping[tuple[int, ...], Floats] | None = None  # of its parts, by key

    def in_order(self, options: FuzzyOptions) -> Iterator[tuple[PartOfBlock, FuzzyPart]]:
        """Yield the parts, by strata, cases and what is missing, in their representations."""
        numbers, n = self.cells.numbers(self.block), self.cells.n_rows
        values, weights = self.cells.matrix(numbers), np.empty(n)
        for own in self.parts:
            weights[own.rows] = own.weights
        logs = Logarithms.of(self.block, numbers, values, weights, self.logarithms)
        computed = self.block.with_operator(*COMPUTED)
        for own in sorted(self.parts, key=lambda own: own.part.key):
            size = len(own.rows)
            c = options.c and min(size, max(1, round(options.c * size / n)))
            grid = grid_of([name for name in computed if name not in own.lacking], own)
            yield own, FuzzyPart.of(
                self.embedded[own.rows], own.weights, values[own.rows], self.scale, logs,
                own.part, grid, own.constants, c,
            )  # fmt: skip


def read_blocks(
    plan: Plan, view: View, strata: Strata, weights: Floats, shards: Sequence[Shard] | None = None
) -> Iterator[ReadBlock]:
    """Read the blocks of a plan, one after the other, each cut into its parts."""
    for at, block in enumerate(plan.blocks):
        cells = BlockCells.read(view, block.columns, plan.strata, block.with_operator(*COMPUTED))
        edited = recompute_products(cells, block)
        embedded = labels = logarithms = centres = None
        if shards is None:
            scale = _scale(cells, block, weights, plan)
            wanted = None if plan.diversity is None else plan.diversity.read(view)
            parts = partition(cells, block, strata, k=plan.k, small=plan.small, diversity=wanted)
        else:
            own = shards[at]
            scale, parts, labels = own.scale, list(own.parts), own.labels
            embedded, logarithms, centres = own.embed(plan), own.logarithms, own.centres
        if embedded is None:
            embedded = embed(cells, block, parts, scale, plan)
        owns = [PartOfBlock(plan, cells, block, p, scale, weights[p.rows], embedded) for p in parts]
        read = ReadBlock(plan, block, cells, scale, embedded, owns, edited)
        read.labels, read.logarithms, read.centres = labels, logarithms, centres
        yield read


def mask_keeping_rules(
    plan: Plan,
    view: View,
    *,
    before: Confrontation,
    tolerance: float = 1e-9,
    **given: Any,
) -> tuple[Table, MaskedBlocks, Confrontation]:
    """Apply a plan and confront what is written with its rules; donors are the last resort.

    `before` is the table confronted with the same rules; `given` is for `find_values`.
    """
    schema: Any = view.schema

    def confront(table: Table) -> Confrontation:
        return before.rules.confront(View(table, schema, view.units), tolerance=tolerance)

    valid = np.asarray((before.signs >= 0).all(axis=1))
    masked = find_values(plan, view, valid=valid, **given)
    table = write_blocks(view, plan, masked)
    after = confront(table)
    if plan.fit == "project" and not after.all_hold:
        masked.donated = take_from_donors(
            masked, plan, view, before=before, after=after, weights=given["weights"],
            confront=confront,
        )  # fmt: skip
        table = write_blocks(view, plan, masked)
        after = confront(table)
    if plan.is_overlapping:
        masked.deal()
        table = write_blocks(view, plan, masked)
        after = confront(table)
        masked.overlap = OverlappingFacts.count(
            View(table, schema), plan.blocks[0].columns, masked.covered, plan.k, view.units
        )
    return table, masked, after


def refuse_broken(after: Confrontation) -> None:
    """Refuse a masked table that breaks a rule although donors were asked."""
    if not after.all_hold:
        broken = [rule.name for rule, rows in zip(after.rules, after.rows) if len(rows)]
        raise RefusedError(
            f"The masked table is withheld, for it breaks {', '.join(broken)}, and no record that "
            "keeps these rules can stand for others. Give up one of them."
        )


def _seeds(random_state: Any, count: int) -> list[int]:
    """Return a seed for each block."""
    if random_state is None:
        return [int(share * (2**31 - 1)) for share in chance_of(None).random(count)]
    return [int(seed) for seed in check_seed(random_state).randint(2**31 - 1, size=count)]


def _scale(cells: BlockCells, block: Block, weights: Floats, plan: Plan) -> Scale:
    """Measure the columns of numbers of a block."""
    numbers, wish = cells.numbers(block), plan.scale
    if isinstance(wish, Mapping):
        wish = {name: wish[name] for name in numbers if name in wish}
    return Scale.of(cells.matrix(numbers), weights, wish, numbers)


def _draw(out: MaskedBlocks, read: ReadBlock, chance: Chance) -> Integers:
    """Draw a centre for each record of a block; parts share none."""
    plan, options = read.plan, FuzzyOptions.of(read.plan.options)
    options.size(plan.k if options.c is None else None, read.cells.n_rows)
    labels, first = np.empty(read.cells.n_rows, dtype=np.int64), 0
    drawn: list[DrawnPart] = []
    facts = out.known or FuzzyFacts(public=options.public)
    numbers, ids = read.cells.numbers(read.block), np.empty(read.cells.n_rows, dtype=np.int64)
    for own, part in read.in_order(options):
        known = None if read.centres is None else read.centres[own.part.key]
        drawing = part.draw(options, plan.k, chance, known)
        own.drawn = DrawnPart(rows=own.rows, part=part, drawing=drawing, first=first)
        joined, units = drawing.labels, read.cells.view.units
        if units is not None and options.at_least_k:
            joined = join_few_units(part.records, own.weights, joined, units[own.rows], plan.k)
        labels[own.rows] = joined + first
        first += len(drawing.centres)
        if not options.at_least_k and known is None:
            out.coincided += part.most(plan.k) - len(drawing.centres)
        ids[own.rows] = len(drawn)
        drawn.append(own.drawn)
        facts.units.update(zip(numbers, part.unit.tolist()))
        facts.logarithms.update({numbers[j]: part.offsets[j] for j in np.flatnonzero(part.signs)})
    facts.parts.append(ids)
    out.drawn.append(drawn)
    out.known = facts
    return labels


def _cover(out: MaskedBlocks, read: ReadBlock, chance: Chance) -> Integers:
    """Cover each part by overlapping groups, and draw; group p is in the place of record p."""
    plan, effort = read.plan, effort_of(read.plan.options)
    for own in sorted(read.parts, key=lambda own: own.part.key):
        points = read.embedded[own.rows]
        own.covered = CoveredPart.draw(
            points, own.weights, own.rows, plan.k, effort, chance, read.cells.view.units
        )
        out.covered.append(own.covered)
    return np.arange(read.cells.n_rows)


def _group(
    out: MaskedBlocks, read: ReadBlock, weights: Floats, seed: int, beside: Floats | None
) -> Integers:
    """Return the group of each record, numbered as they first appear; parts share none."""
    plan, embedded, parts = read.plan, read.embedded, read.parts
    if beside is not None:
        embedded = np.column_stack([embedded, beside])
    options = dict(plan.options)
    if plan.grouping == "search" and not options:
        options = {"effort": "quick"}
    grouping = make_grouping(plan.grouping, k=plan.k, options=options, seed=seed)
    if embedded.shape[1] > 1 and grouping.one_column:
        raise BadTableError(
            f"{type(grouping).__name__} groups one column, and a block has {embedded.shape[1]}. "
            "Give blocks=1 to group each column apart, or take another grouping."
        )
    ids = None
    if len(parts) > 1:
        ids = np.empty(len(embedded), dtype=np.int64)
        for number, part in enumerate(parts):
            ids[part.rows] = number
    view = read.cells.view
    wanted = {} if plan.diversity is None else {"diversity": plan.diversity.read(view)}
    out.groupings.append(
        grouping.fit(embedded, sample_weight=weights, strata=ids, units=view.units, **wanted)
    )
    found: Integers = grouping.labels_
    return found


def make_grouping(
    grouping: Any, *, k: int, options: Mapping[str, Any] | None = None, seed: int | None = None
) -> Grouping:
    """Build an unfitted grouping from a name of `METHODS` or by cloning one, which gets this k.

    `options` are arguments of a grouping that is named; `seed` is for one with a `random_state`
    that has none yet.
    """
    if isinstance(grouping, Grouping):
        if grouping.k not in (k, signature(type(grouping)).parameters["k"].default):
            raise GroupSizeError.given_twice(masker=k, method=grouping.k)
        if options:
            raise BadTableError(
                f"options={dict(options)!r} are for a grouping given by name; "
                f"give them to {type(grouping).__name__}(...) itself."
            )
        made: Grouping = clone(grouping).set_params(k=k)
    elif isinstance(grouping, str) and grouping in METHODS:
        kind = getattr(groupings, METHODS[grouping])
        known = [name for name in signature(kind).parameters if name != "k"]
        for name in options or {}:
            if name not in known:
                hidden = ("progress", "random_state")  # nobody writes these into a plan
                offered = [one for one in known if one not in hidden]
                raise UnknownOptionError(f"option of the grouping {grouping!r}", name, offered)
        made = kind(k, **options or {})
    elif isclass(grouping) and issubclass(grouping, Grouping):
        raise BadTableError(
            f"grouping is the class {grouping.__name__}: give {grouping.__name__}()."
        )
    else:
        raise UnknownOptionError("grouping", grouping, [*METHODS, "fuzzy", "overlapping"])
    if seed is not None and made.get_params().get("random_state", seed) is None:
        made.set_params(random_state=seed)
    return made


def write_blocks(view: View, plan: Plan, masked: MaskedBlocks) -> Table:
    """Write numbers and categories into a table of the same kind; missing cells stay."""
    moved = View(view.table.rearrange(masked.rows), view.schema) if masked.rows else view
    for name, dates in masked.dates.items():
        moved = View(moved.table.redate(name, dates, dates != UNMOVED), view.schema)
    numbers = {}
    for name, values in masked.numbers.items():
        decimals = view.table.facts(name).decimals  # not 0 in a dtype of fixed decimals
        numbers[name] = np.round(values, decimals) if decimals else values
    return Table.read(write_numbers(moved, numbers, as_floats(view.table, plan)))


def as_floats(source: Table, plan: Plan) -> list[Name]:
    """List the columns of whole numbers that a plan releases as floats."""
    computed = (one for block in plan.blocks for one in block.choices if one.operator in COMPUTED)
    facts = ((one, source.facts(one.column)) for one in computed if not one.whole)
    return [one.column for one, fact in facts if fact.numeric and fact.decimals == 0]
