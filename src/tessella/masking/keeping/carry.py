"""Carry out a plan: group each part, find the values of its groups, bring them to the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..._types import Floats, Integers, Name, Truths
from ...exceptions import ContradictionError, RefusedError, UnknownOptionError
from ...frame import Table
from ...fuzzy.base import check_number
from ...fuzzy.drawing import Chance
from ...fuzzy.field import power_law
from ...fuzzy.size_keeping import crisp_groups, draw_keeping_k
from ...kernels.groups import renumber
from ...plan import Block, Plan
from ...schema import Schema
from ..methods import make_grouping
from ..repair import Grid, project_claims
from ..repair_products import project_mixed, project_products
from ..scale import Scale
from .apart import Part, put_apart, repair_products
from .data import Data
from .operators import allowed_of, log_means, means, medians_among, medoids, modes

__all__ = ["Carried", "carry_out"]


SPECIAL = ("geometric mean", "project")
MANY = 64  # categories


@dataclass(eq=False)
class Carried:
    """What came out: numbers, rows from which categories are taken, and groups, by block."""

    numbers: dict[Name, Floats] = field(default_factory=dict)
    rows: dict[Name, Integers] = field(default_factory=dict)
    labels: list[Integers] = field(default_factory=list)
    edited: int = 0  # records in which a product was recomputed before grouping
    merged: int = 0  # records that joined another part


def carry_out(
    plan: Plan,
    table: Table,
    schema: Schema,
    *,
    strata: Integers,
    weights: Floats,
    obedient: Truths,
    chance: Chance,
) -> Carried:
    """Find what every record gets.

    Parameters
    ----------
    plan : Plan
        What to do.
    table, schema : Table, Schema
        The original table.
    strata : ndarray of shape (n,)
        The number of each record's stratum.
    weights : ndarray of shape (n,)
        Positive weights.
    obedient : ndarray of shape (n,)
        Whether each record keeps all rules.
    chance : Chance
        Where random numbers come from.
    """
    out = Carried()
    for block in plan.blocks:
        data = Data.read(table, schema, block.columns, plan.strata)
        out.edited += repair_products(data, block)
        labels = np.empty(table.n_rows, dtype=np.int64)
        for name in block.columns:
            target = out.numbers if _is_number(block, name, data) else out.rows
            target[name] = np.zeros(
                table.n_rows, dtype=np.float64 if target is out.numbers else np.int64
            )
        scale = _scale(data, block, weights, plan)
        count = 0
        for part in put_apart(data, block, plan, strata):
            out.merged += part.merged
            embedded = _embed(data, block, part, scale, plan)
            groups = _group(plan, embedded, weights[part.rows], chance)
            labels[part.rows] = groups + count
            count += int(groups.max()) + 1
            _aggregate(out, plan, data, block, part, groups, embedded, weights, obedient, scale)
        out.labels.append(renumber(labels, count))
    return out


def _is_number(block: Block, name: Name, data: Data) -> bool:
    operator = block.choice(name).operator
    return name not in data.levels and operator in ("mean", "geometric mean", "project")


def _scale(data: Data, block: Block, weights: Floats, plan: Plan) -> Scale:
    """Measure the columns of numbers of a block."""
    numbers = [name for name in block.columns if name not in data.levels]
    values = data.values[:, [data.place(name) for name in numbers]]
    wish = plan.scale
    if isinstance(wish, Mapping):
        wish = {name: wish[name] for name in numbers if name in wish}
    return Scale.of(values, weights, wish, numbers)


def _embed(data: Data, block: Block, part: Part, scale: Scale, plan: Plan) -> Floats:
    """Return the records of a part as points: numbers in units, categories as corners.

    Two different categories are one unit apart, as are two numbers a unit apart; ranks of
    ordinal categories are in units of their own standard deviation.
    """
    numbers = [name for name in block.columns if name not in data.levels]
    places = [data.place(name) for name in numbers]
    values = data.values[:, places]
    pieces = []
    if plan.distance == "representation" and block.signs:
        values = values.copy()
        for (name, offset), sign in zip(block.signs, part.signs):
            if name in numbers and sign in (-1, 1):
                j = numbers.index(name)
                with np.errstate(divide="ignore", invalid="ignore"):
                    values[:, j] = np.log(np.abs(values[:, j] + offset))
        values[~np.isfinite(values)] = np.nan
        scale = Scale.of(values[part.rows], np.ones(len(part.rows)), plan.scale, numbers)
    if numbers:
        pieces.append(scale.apply(values[part.rows]))
    for name in block.columns:
        if name not in data.levels:
            continue
        codes = np.nan_to_num(data.column(name)[part.rows], nan=-1).astype(np.int64)
        if block.choice(name).operator == "median":
            spread = np.nanstd(data.column(name)) or 1.0
            pieces.append((codes / spread)[:, None])
        else:
            pieces.append(_corners(codes, len(data.levels[name]) + 1))
    if not pieces:
        return np.zeros((len(part.rows), 1))
    return np.ascontiguousarray(np.column_stack(pieces))


def _corners(codes: Integers, count: int) -> Floats:
    """Put categories at places that are one unit apart; many of them only nearly so.

    Up to MANY categories stand at the corners of a simplex. More are put at random corners of
    a cube of MANY dimensions, two of which differ in about half of them.
    """
    seen, place = np.unique(codes, return_inverse=True)
    if len(seen) <= MANY:
        return np.asarray(np.eye(len(seen))[place] * np.sqrt(0.5))
    signs = np.random.default_rng(0).integers(0, 2, (count, MANY))
    return np.asarray((2 * signs[codes] - 1) / np.sqrt(2 * MANY))


def _group(plan: Plan, embedded: Floats, weights: Floats, chance: Chance) -> Integers:
    if plan.method == "fuzzy":
        for name in plan.options:
            if name != "m2":
                raise UnknownOptionError("option of the method 'fuzzy'", name, ["m2"])
        second = power_law(check_number("m2", plan.options.get("m2", 1.2), 1.0))
        crisp = crisp_groups(embedded, weights, k=plan.k, chance=chance)
        drawing = draw_keeping_k(
            embedded, weights, crisp, power_law(1.0), second, k=plan.k, chance=chance
        )
        _, labels = np.unique(drawing.labels, return_inverse=True)
        return labels.astype(np.int64)
    seed = int(chance.random(1)[0] * (2**31 - 1))
    grouping = make_grouping(plan.method, k=plan.k, options=plan.options, seed=seed)
    found: Integers = grouping.fit(embedded, sample_weight=weights).labels_
    return found


def _aggregate(
    out: Carried,
    plan: Plan,
    data: Data,
    block: Block,
    part: Part,
    groups: Integers,
    embedded: Floats,
    all_weights: Floats,
    obedient: Truths,
    scale: Scale,
) -> None:
    """Find the values of the groups of a part, and write them to its records."""
    rows, weights, count = part.rows, all_weights[part.rows], int(groups.max()) + 1
    lacking = {name for name in block.columns if data.missing[rows[0], data.place(name)]}
    present = [name for name in block.columns if name not in lacking]
    chosen = {name: block.choice(name).operator for name in present}
    if both := [name for name, operator in chosen.items() if operator == "medoid"]:
        middle = medoids(embedded, weights, groups, count, obedient[rows])
        if (middle < 0).any():
            raise RefusedError(
                f"{', '.join(map(repr, both))} take the values of an original record that keeps "
                "all rules, and a part of the table has none. Edit the table first, or give up a "
                "rule."
            )
        for name in both:
            out.rows[name][rows] = rows[middle][groups]
    for name, operator in chosen.items():
        if operator == "median":
            allowed = allowed_of(data, rows, [name], part.claims, plan.strata)
            at = medians_among(data.column(name)[rows], weights, groups, count, allowed)
            out.rows[name][rows] = rows[at][groups]
        elif operator == "mode":
            found = modes(data, rows, [name], weights, groups, count, part.claims, plan.strata)
            out.rows[name][rows] = found[groups]
    if joint := [name for name, operator in chosen.items() if operator == "joint mode"]:
        found = modes(data, rows, joint, weights, groups, count, part.claims, plan.strata)
        for name in joint:
            out.rows[name][rows] = found[groups]
    for name in lacking & set(out.rows):
        out.rows[name][rows] = rows
    constants = {
        name: float(data.column(name)[rows[0]]) for name in plan.strata if name not in data.levels
    }
    for kind in ("mean", *SPECIAL):
        names = [name for name, operator in chosen.items() if operator == kind]
        if names:
            try:
                settled = _settle(kind, names, data, block, part, groups, weights, constants, scale)
            except ContradictionError as error:
                raise RefusedError(
                    "In a part of the table rules exclude each other, given how its records "
                    f"break them: {', '.join(dict.fromkeys(error.rows))}. Correct these records "
                    "first, or give up a rule."
                ) from None
            for j, name in enumerate(names):
                out.numbers[name][rows] = settled[groups, j] + 0.0  # no minus before a zero


def _settle(
    kind: str,
    names: list[Name],
    data: Data,
    block: Block,
    part: Part,
    groups: Integers,
    weights: Floats,
    constants: dict[Name, float],
    scale: Scale,
) -> Floats:
    """Find the values of some columns of numbers for each group, and bring them to the rules."""
    numbers = [name for name in block.columns if name not in data.levels]
    grid = Grid.of_whole(
        names,
        unit=scale.unit[[numbers.index(name) for name in names]],
        whole=np.array([block.choice(name).whole for name in names]),
    )
    values = data.values[part.rows][:, [data.place(name) for name in names]]
    count = int(groups.max()) + 1
    if kind == "mean":
        found = means(values, weights, groups, count)
        return project_claims(found, grid, part.claims, constants)
    offsets, signs = np.zeros(len(names)), np.full(len(names), 2.0)
    for (name, offset), sign in zip(block.signs, part.signs):
        if name in names:
            offsets[names.index(name)], signs[names.index(name)] = offset, sign
    if kind == "project":
        frozen = signs == 0
        found = means(values, weights, groups, count)
        found[:, frozen] = 0.0 - offsets[frozen]  # also for records that joined from another part
        return project_mixed(found, grid, part.claims, constants, frozen)
    signs[signs == 2] = 1.0
    centres = np.where(signs == 0, 0.0, 1.0) * np.ones((count, len(names)))
    free = np.flatnonzero(signs != 0)
    distances = signs[free] * (values[:, free] + offsets[free])
    # Records that joined from another part may be on the other side: they stand at its edge.
    smallest = np.where(distances > 0, distances, np.inf).min(axis=0)
    distances = np.where(distances > 0, distances, smallest)
    centres[:, free] = signs[free] * log_means(distances, weights, groups, count) - offsets[free]
    return project_products(centres, grid, part.claims, constants, offsets, signs)
