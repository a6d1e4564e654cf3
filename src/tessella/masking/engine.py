"""Apply a plan: partition each block, group its records, and find the values of the groups.

This is the one engine of crisp microaggregation. `Microaggregation` is a plan without rules;
`protect` one with rules, whose groups get values that keep them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import isclass, signature
from typing import Any

import numpy as np
from sklearn.base import clone

from .. import grouping as groupings
from .._types import Floats, Integers, Name, Truths
from ..exceptions import (
    BadTableError,
    ContradictionError,
    GroupSizeError,
    NoWholeSolutionError,
    RefusedError,
    UnknownOptionError,
)
from ..frame import Strata, Table, View
from ..fuzzy.base import check_number
from ..fuzzy.drawing import chance_of, crisp_groups, draw_keeping_k
from ..fuzzy.field import power_law
from ..grouping.base import Grouping, check_seed
from ..grouping.dominance import MOST, DominanceRule, enlarge
from ..kernels.groups import renumber
from ..plan import Block, Plan
from .base import write_numbers
from .parts import (
    AGGREGATES,
    BlockCells,
    Part,
    allowed_of,
    log_means,
    medians_among,
    medoids,
    modes,
    partition,
    recompute_products,
)
from .repair import Grid, project_claims
from .repair_dates import UNMOVED, mend_dates
from .repair_products import fit_free, project_mixed, project_products
from .selection import Scale

# Operators whose values are computed; the others take a cell of a record.
# Means come last: they can be moved to keep rules beside what products have fixed.
COMPUTED = ("geometric mean", "project", "mean", "interpolated median")
MANY = 64  # categories

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
    groupings: list[Grouping] = field(default_factory=list)  # none where centres are drawn
    donated: int = 0  # records whose group took the values of a donor
    edited: int = 0  # records in which a product was recomputed before grouping
    merged: int = 0  # records that joined another part


def apply_plan(
    plan: Plan,
    view: View,
    *,
    strata: Strata,
    weights: Floats,
    valid: Truths | None = None,
    dominance: DominanceRule | None = None,
    random_state: Any = None,
) -> MaskedBlocks:
    """Find the values of all records; those of different strata share no group.

    Groups that a record dominates by `dominance` grow up to MOST times k records. `valid` are the
    records that keep all rules, by default all. Seeds without a `random_state` are the system's.
    """
    out = MaskedBlocks()
    seeds = _seeds(random_state, len(plan.blocks))
    for block, seed in zip(plan.blocks, seeds):
        measured = block.with_operator(*COMPUTED)
        cells = BlockCells.read(view, block.columns, plan.strata, measured)
        out.edited += recompute_products(cells, block)
        scale = _scale(cells, block, weights, plan)
        parts = partition(cells, block, strata, k=plan.k, small=plan.small)
        out.merged += sum(part.merged for part in parts)
        embedded = _embed(cells, block, parts, scale, plan)
        labels = _group(out, plan, embedded, weights, parts, seed)
        if dominance is not None:
            values = cells.matrix([n for n in cells.numbers(block) if view.is_number(n)])
            rows = [part.rows for part in parts]
            labels = enlarge(labels, embedded, values, weights, dominance, rows, MOST * plan.k)
        for name in block.columns:
            if name in measured:
                out.numbers[name] = np.zeros(view.n_rows)
            else:
                out.rows[name] = np.arange(view.n_rows)
        for part in parts:
            own = PartOfBlock(plan, cells, block, part, scale, weights[part.rows], labels)
            _aggregate(out, own, embedded, valid)
        out.labels.append(labels)
    return out


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


def _embed(cells: BlockCells, block: Block, parts: list[Part], scale: Scale, plan: Plan) -> Floats:
    """Return the records as points: numbers in units, categories as corners.

    Two different categories are one unit apart, as are two numbers a unit apart; ranks of
    ordinal categories are in units of their own standard deviation.
    """
    numbers = cells.numbers(block)
    values = cells.matrix(numbers)
    pieces = []
    if plan.distance == "representation" and block.signs:
        pieces.append(_in_logarithms(values, numbers, block, parts, plan))
    elif numbers:
        pieces.append(scale.apply(values))
    for name in block.columns:
        if name not in cells.levels:
            continue
        codes = np.nan_to_num(cells.column(name), nan=0.0).astype(np.int64)
        if block.choice(name).operator == "median":
            known = ~np.isnan(cells.column(name))
            spread = (np.nanstd(cells.column(name)) if known.any() else 0.0) or 1.0
            pieces.append((codes / spread)[:, None])
        else:
            pieces.append(corners(codes))
    if not any(piece.shape[1] for piece in pieces):  # none, or categories of one level each
        return np.zeros((cells.n_rows, 1))
    return np.ascontiguousarray(pieces[0] if len(pieces) == 1 else np.column_stack(pieces))


def _in_logarithms(
    values: Floats, numbers: list[Name], block: Block, parts: list[Part], plan: Plan
) -> Floats:
    """Scale the columns of numbers, factors of products as logarithms, in each part apart."""
    out = np.empty_like(values)
    for part in parts:
        own = values[part.rows]
        for (name, offset), sign in zip(block.signs, part.signs):
            if name in numbers and sign in (-1, 1):
                j = numbers.index(name)
                with np.errstate(divide="ignore", invalid="ignore"):
                    own[:, j] = np.log(np.abs(own[:, j] + offset))
        own[~np.isfinite(own)] = np.nan
        scale = Scale.of(own, np.ones(len(own)), plan.scale, numbers)
        out[part.rows] = scale.apply(own)
    return out


def corners(codes: Integers) -> Floats:
    """Put categories at places that are one unit apart; many of them only nearly so.

    Up to MANY categories stand at the corners of a regular simplex, q of them in q - 1 dimensions
    (the rows of a Helmert matrix, which is orthonormal, span what is orthogonal to (1, ..., 1)).
    More are put at random corners of a cube of MANY dimensions, two of which differ in about half
    of them.
    """
    seen, place = np.unique(codes, return_inverse=True)
    q = len(seen)
    if q <= MANY:
        steps = np.arange(1, q)
        basis = np.triu(np.ones((q, q - 1)))
        basis[steps, steps - 1] = -steps
        return np.asarray((basis / np.sqrt(2 * steps * (steps + 1)))[place])
    signs = np.random.default_rng(0).integers(0, 2, (q, MANY))
    return np.asarray((2 * signs[place] - 1) / np.sqrt(2 * MANY))


def _group(
    out: MaskedBlocks, plan: Plan, embedded: Floats, weights: Floats, parts: list[Part], seed: int
) -> Integers:
    """Return the group of each record, numbered as they first appear; parts share none."""
    if plan.grouping == "fuzzy":
        return _draw_groups(plan, embedded, weights, parts, seed)
    grouping = make_grouping(plan.grouping, k=plan.k, options=plan.options, seed=seed)
    if embedded.shape[1] > 1 and not grouping.__sklearn_tags__().input_tags.two_d_array:
        raise BadTableError(
            f"{type(grouping).__name__} groups one column, and a block has {embedded.shape[1]}. "
            "Give blocks=1 to group each column apart, or take another grouping."
        )
    ids = None
    if len(parts) > 1:
        ids = np.empty(len(embedded), dtype=np.int64)
        for number, part in enumerate(parts):
            ids[part.rows] = number
    out.groupings.append(grouping.fit(embedded, sample_weight=weights, strata=ids))
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
                raise UnknownOptionError(f"option of {kind.__name__}", name, known)
        made = kind(k, **options or {})
    elif isclass(grouping) and issubclass(grouping, Grouping):
        raise BadTableError(
            f"grouping is the class {grouping.__name__}: give {grouping.__name__}()."
        )
    else:
        raise UnknownOptionError(
            "grouping", grouping, [*METHODS, "a grouping of tessella.grouping"]
        )
    if seed is not None and made.get_params().get("random_state", seed) is None:
        made.set_params(random_state=seed)
    return made


def _draw_groups(
    plan: Plan, embedded: Floats, weights: Floats, parts: list[Part], seed: int
) -> Integers:
    """Draw fuzzy groups of at least k in each part."""
    for name in plan.options:
        if name != "m2":
            raise UnknownOptionError("option of the grouping 'fuzzy'", name, ["m2"])
    second = power_law(check_number("m2", plan.options.get("m2", 1.2), 1.0))
    chance = chance_of(seed)
    labels, count = np.empty(len(embedded), dtype=np.int64), 0
    for part in parts:
        own, weight = embedded[part.rows], weights[part.rows]
        crisp = crisp_groups(own, weight, k=plan.k, chance=chance)
        drawing = draw_keeping_k(
            own, weight, crisp, power_law(1.0), second, k=plan.k, chance=chance
        )
        labels[part.rows] = drawing.labels + count
        count += int(drawing.labels.max()) + 1
    return renumber(labels, count)


class PartOfBlock:
    """A part of the records in a block, with its groups numbered from 0."""

    def __init__(
        self, plan: Plan, cells: BlockCells, block: Block, part: Part, scale: Scale,
        weights: Floats, labels: Integers,
    ) -> None:  # fmt: skip
        self.plan, self.cells, self.block, self.part = plan, cells, block, part
        self.scale, self.weights, self.rows = scale, weights, part.rows
        distinct, self.groups = np.unique(labels[part.rows], return_inverse=True)
        self.count = len(distinct)
        self.claims = part.claims
        self.strata = plan.strata


def _aggregate(out: MaskedBlocks, own: PartOfBlock, embedded: Floats, valid: Truths | None) -> None:
    """Find the values of the groups of a part, and write them to its records."""
    cells, rows, groups, count = own.cells, own.rows, own.groups, own.count
    weights = own.weights
    lacking = {name for name in own.block.columns if cells.view.states(name)[rows[0]]}
    chosen = {n: own.block.choice(n).operator for n in own.block.columns if n not in lacking}
    if both := [name for name, operator in chosen.items() if operator == "medoid"]:
        usable = np.ones(len(rows), dtype=bool) if valid is None else valid[rows]
        middle = medoids(embedded[rows], weights, groups, count, usable)
        if (middle < 0).any():
            if own.plan.fit != "project":
                raise RefusedError(
                    f"{', '.join(map(repr, both))} take the values of an original record that "
                    "keeps all rules, and a part of the table has none. Edit the table first, "
                    'give up a rule, or give fit="project".'
                )
            middle = medoids(embedded[rows], weights, groups, count, np.ones(len(rows), bool))
        for name in both:
            out.rows[name][rows] = rows[middle][groups]
    for name, operator in chosen.items():
        if operator == "median":
            allowed = allowed_of(cells, rows, [name], own.claims, own.strata)
            at = medians_among(cells.column(name)[rows], weights, groups, count, allowed)
            out.rows[name][rows] = rows[at][groups]
    single = [[name] for name, operator in chosen.items() if operator == "mode"]
    joint = [name for name, operator in chosen.items() if operator == "joint mode"]
    for names in [*single, *([joint] if joint else [])]:
        found = modes(cells, rows, names, weights, groups, count, own.claims, own.strata)
        for name in names:
            out.rows[name][rows] = found[groups]
    mend_dates(out, own, [name for name in chosen if name not in both])
    fixed: dict[Name, Floats] = {}
    for kind in COMPUTED:
        names = [name for name, operator in chosen.items() if operator == kind]
        if names:
            computed = _points(kind, names, own, fixed)
            for j, name in enumerate(names):
                fixed[name] = computed[:, j]
                out.numbers[name][rows] = computed[groups, j]


def _points(kind: str, names: list[Name], own: PartOfBlock, fixed: Mapping[Name, Floats]) -> Floats:
    """Find the values of groups; with fit="project" means where there are none: donors follow."""
    try:
        computed = _compute(kind, names, own, fixed)
    except (ContradictionError, NoWholeSolutionError, RefusedError) as error:
        if own.plan.fit == "project":
            return _unrepaired(names, own)
        without_cases = isinstance(error, NoWholeSolutionError) and not own.block.cases
        if isinstance(error, RefusedError) or without_cases:
            raise
        raise RefusedError(
            "In a part of the table no values were found that keep these rules together, given how "
            f"its records break them: {', '.join(dict.fromkeys(error.rows))}. Correct these "
            'records first, give up a rule, or give fit="project".'
        ) from None
    if own.plan.fit == "project":
        misfit = ~_grid(names, own).holds(computed)
        for claim in own.claims:  # no projection knows a divisor, which must not become zero
            for factor in () if claim.product else getattr(claim.form, "factors", ()):
                at, zero = factor.column, 0.0 - factor.offset
                if at in names and not (own.cells.column(at)[own.rows] == zero).any():
                    misfit |= computed[:, names.index(at)] == zero
        if misfit.any():
            computed[misfit] = _unrepaired(names, own)[misfit]
    return computed


def _unrepaired(names: list[Name], own: PartOfBlock) -> Floats:
    """Return the means of groups, whole where they must be, whatever the rules are."""
    places = np.array([own.cells.place(name) for name in names])
    values = own.cells.values[np.ix_(own.rows, places)]
    means = AGGREGATES["mean"](values, own.weights, own.groups, own.count)
    return np.where([own.block.choice(name).whole for name in names], np.round(means), means)


def _compute(
    kind: str, names: list[Name], own: PartOfBlock, fixed: Mapping[Name, Floats]
) -> Floats:
    """Find the values of some columns of numbers for each group, repaired to keep the rules.

    `fixed` has the values of the groups in columns that were computed before.
    """
    cells, block, weights, groups, count = own.cells, own.block, own.weights, own.groups, own.count
    both = _grid([*names, *fixed], own)
    grid = both.part(range(len(names)))
    strata = [name for name in own.strata if name not in cells.levels]
    constants = {name: float(cells.column(name)[own.rows[0]]) for name in strata}
    places = np.array([cells.place(name) for name in names])
    values = cells.values[np.ix_(own.rows, places)]
    if kind in ("mean", "interpolated median"):
        found = AGGREGATES["mean" if kind == "mean" else "median"](values, weights, groups, count)
        found = project_claims(found, grid, own.claims, constants)
        values = np.column_stack([found, *fixed.values()])
        moving = range(len(names))
        return fit_free(values, both, moving, own.claims, constants)[:, moving]
    offsets, signs = np.zeros(len(names)), np.full(len(names), 2.0)
    for (name, offset), sign in zip(block.signs, own.part.signs):
        if name in names:
            offsets[names.index(name)], signs[names.index(name)] = offset, sign
    if kind == "project":
        frozen = signs == 0
        found = AGGREGATES["mean"](values, weights, groups, count)
        found[:, frozen] = 0.0 - offsets[frozen]  # also for records that joined from another part
        return project_mixed(found, grid, own.claims, constants, frozen)
    signs[signs == 2] = 1.0
    centres = np.where(signs == 0, 0.0, 1.0) * np.ones((count, len(names)))
    free = np.flatnonzero(signs != 0)
    distances = signs[free] * (values[:, free] + offsets[free])
    # Records that joined from another part may be on the other side: they stand at its edge.
    smallest = np.where(distances > 0, distances, np.inf).min(axis=0)
    distances = np.where(distances > 0, distances, smallest)
    centres[:, free] = signs[free] * log_means(distances, weights, groups, count) - offsets[free]
    return project_products(centres, grid, own.claims, constants, offsets, signs)


def _grid(names: list[Name], own: PartOfBlock) -> Grid:
    """Describe the numbers that columns can hold; an equation asks for exact sums of float32."""
    cells, block, table = own.cells, own.block, own.cells.view.table
    numbers = cells.numbers(block)
    exact = {n for claim in own.claims if claim.is_equation for n in claim.columns} & set(names)
    return Grid.of_table(
        table,
        names,
        unit=own.scale.unit[[numbers.index(name) for name in names]],
        decimals=[0 if block.choice(n).whole else table.facts(n).decimals or None for n in names],
        largest={name: float(np.abs(cells.column(name)[own.rows]).max()) for name in exact},
    )


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
