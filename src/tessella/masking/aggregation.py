"""One value for each group of a part of a block, by the operator of each column, repaired.

Values are means of records, what the centres of fuzzy groups are, or the cells of a record. What is
computed is moved to the nearest values that keep the rules of the part. `embed` puts the records
where groupings find near ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .._types import Floats, Integers, Name, Truths
from ..exceptions import ContradictionError, NoWholeSolutionError, RefusedError
from ..grouping.base import Chance
from ..plan import Block, Plan
from ..plan.plan import MATCHED
from .fuzzy_groups import DrawnPart, FuzzyOptions, draw_record
from .overlapping_groups import CoveredPart
from .parts import (
    AGGREGATES,
    BlockCells,
    Part,
    allowed_of,
    log_means,
    medians_among,
    medoids,
)
from .repair import Grid, project_claims
from .repair_dates import mend_dates
from .repair_products import at_edge, fit_free, project_mixed, project_products
from .selection import Scale, corners

if TYPE_CHECKING:
    from .engine import MaskedBlocks

# Operators whose values are computed; the others take a cell of a record.
# Means come last: they can be moved to keep rules beside what products have fixed.
COMPUTED = (MATCHED, "geometric mean", "project", "mean", "interpolated median")


class PartOfBlock:
    """A part of the records in a block; `group` numbers its groups from 0."""

    def __init__(
        self, plan: Plan, cells: BlockCells, block: Block, part: Part, scale: Scale,
        weights: Floats, embedded: Floats,
    ) -> None:  # fmt: skip
        self.plan, self.cells, self.block, self.part = plan, cells, block, part
        self.scale, self.weights, self.rows = scale, weights, part.rows
        self.embedded, self.claims, self.strata = embedded, part.claims, plan.strata
        self.lacking = {n for n in block.columns if cells.view.states(n)[part.rows[0]]}
        self.drawn: DrawnPart | None = None  # where groups are fuzzy
        self.covered: CoveredPart | None = None  # where they overlap

    @property
    def constants(self) -> dict[Name, float]:
        """The values of strata of numbers, which are the same in the whole part."""
        names = [name for name in self.strata if name not in self.cells.levels]
        return {name: float(self.cells.column(name)[self.rows[0]]) for name in names}

    def group(self, labels: Integers) -> None:
        """Take the groups of the block's records."""
        own = labels[self.rows]
        distinct, self.groups = np.unique(own, return_inverse=True)
        self.count = len(distinct)
        # The records whose values stand for a group: its own, or those that count in its centre.
        self.members, self.member_groups, self.member_weights = self.rows, self.groups, self.weights
        if self.covered is not None:  # group p stands in the place of the p-th record
            at = self.covered.covering.members
            self.members, self.member_weights = self.rows[at.ravel()], self.weights[at.ravel()]
            self.member_groups = np.repeat(self.groups, at.shape[1])
        if self.drawn is not None:
            self.centres = self.drawn.values(own, distinct)
            if any(c.operator not in COMPUTED for c in self.block.choices):
                options = FuzzyOptions.of(self.plan.options)
                at, groups, weights = self.drawn.members(own, options)
                used = np.isin(groups, distinct)
                self.members, self.member_weights = self.rows[at[used]], weights[used]
                self.member_groups = np.searchsorted(distinct, groups[used])

    def values(self, names: list[Name]) -> Floats:
        """Return the members' cells of some columns of numbers, shape (n, d)."""
        places = np.array([self.cells.place(name) for name in names])
        found: Floats = self.cells.values[np.ix_(self.members, places)]
        return found

    def start(self, names: list[Name], operator: str = "mean") -> Floats:
        """Return the values of the groups before any repair: means, or what is in the centres."""
        if self.drawn is None:
            weights, groups = self.member_weights, self.member_groups
            return AGGREGATES[operator](self.values(names), weights, groups, self.count)
        numbers = self.cells.numbers(self.block)
        return self.centres[:, [numbers.index(name) for name in names]]


def aggregate(
    out: MaskedBlocks, own: PartOfBlock, valid: Truths | None, chance: Chance | None
) -> None:
    """Find the values of the groups of a part, and write them to its records."""
    cells, rows, groups, count = own.cells, own.rows, own.groups, own.count
    members, inner, weights = own.members, own.member_groups, own.member_weights
    chosen = {n: own.block.choice(n).operator for n in own.block.columns if n not in own.lacking}
    if both := [name for name, operator in chosen.items() if operator == "medoid"]:
        points, everyone = own.embedded[members], np.ones(len(members), dtype=bool)
        usable = everyone if valid is None else valid[members]
        middle = medoids(points, weights, inner, count, usable)
        if (middle < 0).any():
            if own.plan.fit != "project":
                raise RefusedError(
                    f"{', '.join(map(repr, both))} take the values of an original record that "
                    "keeps all rules, and a part of the table has none. Edit the table first, "
                    'give up a rule, or give fit="project".'
                )
            middle = medoids(points, weights, inner, count, everyone)
        for name in both:
            out.rows[name][rows] = members[middle][groups]
    for name, operator in chosen.items():
        if operator == "median":
            allowed = allowed_of(cells, members, [name], own.claims, own.strata)
            at = medians_among(cells.column(name)[members], weights, inner, count, allowed)
            out.rows[name][rows] = members[at][groups]
    categories = [name for name, operator in chosen.items() if operator == "member"]
    if chance and categories:  # of other groups: see `keep_shares`
        allowed = allowed_of(cells, members, categories, own.claims, own.strata)
        found = members[draw_record(inner, weights, count, allowed, chance)]
        for name in categories:
            out.rows[name][rows] = found[groups]
    if any(cells.view.table.facts(name).family == "date" for name in chosen):
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
        misfit = ~grid_of(names, own).holds(computed)
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
    means = own.start(names)
    return np.where([own.block.choice(name).whole for name in names], np.round(means), means)


def _compute(
    kind: str, names: list[Name], own: PartOfBlock, fixed: Mapping[Name, Floats]
) -> Floats:
    """Find the values of some columns of numbers for each group, repaired to keep the rules.

    `fixed` has the values of the groups in columns that were computed before.
    """
    both = grid_of([*names, *fixed], own)
    grid = both.part(range(len(names)))
    constants = own.constants
    if kind in ("mean", MATCHED, "interpolated median"):
        found = own.start(names, "median" if kind == "interpolated median" else "mean")
        found = project_claims(found, grid, own.claims, constants)
        values = np.column_stack([found, *fixed.values()])
        moving = range(len(names))
        return fit_free(values, both, moving, own.claims, constants)[:, moving]
    offsets, signs = np.zeros(len(names)), np.full(len(names), 2.0)
    for (name, offset), sign in zip(own.block.signs, own.part.signs):
        if name in names:
            offsets[names.index(name)], signs[names.index(name)] = offset, sign
    if kind == "project":
        frozen = signs == 0
        found = own.start(names)
        found[:, frozen] = 0.0 - offsets[frozen]  # also for records that joined from another part
        return project_mixed(found, grid, own.claims, constants, frozen)
    signs[signs == 2] = 1.0
    if own.drawn is not None:  # centres are means of logarithms
        return project_products(own.start(names), grid, own.claims, constants, offsets, signs)
    centres = np.where(signs == 0, 0.0, 1.0) * np.ones((own.count, len(names)))
    free = np.flatnonzero(signs != 0)
    distances = signs[free] * (own.values(names)[:, free] + offsets[free])
    distances = at_edge(distances)
    centres[:, free] = (
        signs[free] * log_means(distances, own.member_weights, own.member_groups, own.count)
        - offsets[free]
    )
    return project_products(centres, grid, own.claims, constants, offsets, signs)


def grid_of(names: list[Name], own: PartOfBlock) -> Grid:
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


def embed(cells: BlockCells, block: Block, parts: list[Part], scale: Scale, plan: Plan) -> Floats:
    """Return the records as points: numbers in units, categories as corners.

    Two of several categories are one unit apart, as are two numbers a unit apart; two that are all
    there are, such as sexes, are two units apart, as 0 and 1 are in a column that has each of them
    equally often. Ranks of ordinal categories are in units of their own standard deviation. Where
    `plan.scale` is a mapping, it may give categories a unit, too: with 0.5 they count twice as far.
    """
    given = plan.scale if isinstance(plan.scale, Mapping) else {}
    numbers = cells.numbers(block)
    values = cells.matrix(numbers)
    pieces = []
    if plan.distance == "representation" and block.signs and not plan.is_fuzzy:
        pieces.append(_in_logarithms(values, numbers, block, parts, plan))
    elif numbers:
        pieces.append(scale.apply(values))
    for name in block.columns:
        if name not in cells.levels:
            continue
        codes = np.nan_to_num(cells.column(name), nan=0.0).astype(np.int64)
        if cells.view.kind(name) == "ordinal":
            known = ~np.isnan(cells.column(name))
            spread = (np.nanstd(cells.column(name)) if known.any() else 0.0) or 1.0
            pieces.append((codes / (spread * given.get(name, 1.0)))[:, None])
        else:
            pieces.append(corners(codes) / given.get(name, 1.0))
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
