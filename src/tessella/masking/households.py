"""Households masked whole, so that k of them agree in everything.

Households of the same *shape* (number of members, how many of them rules count, what is missing)
are wide records (`tessella.masking.wide`), masked by the same engine as any table: k households
then share all values of all members, what is constant in a household stays constant, rules across
members are rules of the wide record.

Shapes that fewer than k households have, and units of more than MOST_MEMBERS members, such as
panels, are *pooled*: a group of at least k households shares its common columns, and within it
members share theirs, in groups that hold at least k households. Members whom a rule counts never
share a group with others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Floats, Integers, Name
from ..exceptions import BrokenPromiseError, PlanError, RefusedError
from ..frame import Strata, Table, View, count_units, group_ids
from ..plan import Plan
from ..rules import Confrontation
from ..rules.expressions import UnitAggregate
from .distributions import match_numbers
from .engine import MaskedBlocks, mask_keeping_rules, write_blocks
from .homes import Cells, Homes, Seeds, constant_columns, one_stratum, table_of
from .pools import Pool, form_pools, mask_pools
from .slots import assign_slots, refine_slots
from .wide import Slots, certain

MOST_MEMBERS = 12  # of a wide record: a household; more are a panel


def needs_households(plan: Plan, view: View) -> bool:
    """Tell if a plan masks columns that are constant in units, or has rules across members."""
    if view.units is None or plan.is_drawn or len(np.unique(view.units)) == view.n_rows:
        return False
    masked = {name for block in plan.blocks for name in block.columns}
    across = any(rule.unit is not None and masked.intersection(rule.columns) for rule in plan.rules)
    return across or bool(masked.intersection(constant_columns(view)))


def needs_whole(plan: Plan) -> bool:
    """Tell if rules compare sums, means or ends over members, which only whole households keep."""
    nodes = (node for rule in plan.rules if rule.unit is not None for node in rule.nodes())
    return any(isinstance(n, UnitAggregate) and n.function != "count" for n in nodes)


def households_note(plan: Plan, columns: Sequence[Name], whole: bool) -> str:
    """Say in a sentence how units are masked, in which some columns are constant."""
    masked = [name for block in plan.blocks for name in block.columns]
    common = [str(name) for name in columns if name in masked]
    constant = f" {', '.join(common)} stay constant within units." if common else ""
    if whole:
        return (
            f"Units are masked whole: at least {plan.k} with the same number and kind of members "
            f"share all values.{constant}"
        )
    return (
        f"Units are put into groups of at least {plan.k}, and records share values within them, "
        f"those of at least {plan.k} units.{constant}"
    )


def mask_households(
    plan: Plan,
    view: View,
    *,
    before: Confrontation,
    weights: Floats,
    strata: Strata | None = None,  # noqa: ARG001
    tolerance: float = 1e-9,
    random_state: Any = None,
    whole: bool = True,
    **given: Any,
) -> tuple[Table, MaskedBlocks, Confrontation]:
    """Mask the households of a view by a plan: see `mask_keeping_rules`.

    `before` is the table confronted with its rules; a household weighs what its members do on
    average. The columns of strata are those of the plan. Without `whole`, all households are
    pooled: k households then share their common columns, and each member's values are those of k
    households, but not all members' together. In what is returned, `labels` are by block the
    groups of records, each of at least k households, and `households` the groups of households.
    """
    if plan.is_drawn:
        raise PlanError(
            'Households are masked in crisp groups: give grouping="search" or another grouping, '
            "or mask records one by one, without a unit."
        )
    homes = Homes(plan, view, before.rules, weights)
    seeds = Seeds(random_state)
    out = Cells(view, plan)
    engine = {"tolerance": tolerance, **given}
    shapes, pools = split_shapes(homes, MOST_MEMBERS if whole else 0)
    for rows, classes in shapes:
        _mask_shape(homes, out, rows, classes, seeds, engine)
    mask_pools(homes, out, pools, seeds, engine)
    masked = out.finished(homes.masked)
    valid = np.asarray((before.signs >= 0).all(axis=1))
    match_numbers(masked, plan, view, weights, valid, common=homes.common)
    table = write_blocks(view, plan, masked)
    after = before.rules.confront(
        View(table, view.schema, view.units),
        tolerance=tolerance,
        schema=view.schema,  # type: ignore[arg-type]
    )
    _refuse_broken(homes, pools, before, after)
    for labels in masked.labels:
        if (fewest := int(count_units(labels, view.units).min())) < plan.k:
            raise BrokenPromiseError.group_too_small(
                k=plan.k, smallest=fewest, method="mask_households"
            )
    return table, masked, after


def split_shapes(homes: Homes, most: int) -> tuple[list[tuple[Integers, Integers]], list[Pool]]:
    """Return the shapes of at least k households, as their rows and classes, and the pools."""
    shapes: list[Integers] = []  # units
    rare: list[Integers] = []
    for size in np.unique(homes.sizes):
        own = np.flatnonzero(homes.sizes == size)
        if size > most:
            rare.append(own)
            continue
        rows = np.array([homes.members[unit] for unit in own])
        keys = np.column_stack([homes.common_key[homes.first[own]], homes.classes[rows]])
        ids = group_ids(list(keys.T))
        for shape in range(int(ids.max()) + 1):
            units = own[ids == shape]
            (shapes if len(units) >= homes.plan.k else rare).append(units)
    pools: list[Pool] = []
    if rare:
        fine = homes.fine_classes
        pools, shapes = form_pools(
            np.concatenate(rare), shapes, members=table_of(homes.units, fine),
            apart=homes.common_key[homes.first], k=homes.plan.k, why=homes.reasons(fine),
        )  # fmt: skip
    found = []
    for units in shapes:
        rows = np.array([homes.members[unit] for unit in units])
        found.append((rows, homes.classes[rows]))
    return found, pools


def _mask_shape(
    homes: Homes, out: Cells, rows: Integers, classes: Integers, seeds: Seeds,
    engine: dict[str, Any],
) -> None:  # fmt: skip
    """Mask the households of one shape as wide records."""
    plan, view = homes.plan, homes.view
    points, keys = homes.member_points
    rows = assign_slots(rows, classes, points, keys)
    # A common cell stands in every member.
    shared = homes.common_points[rows[:, 0]] * np.sqrt(rows.shape[1])
    rows = refine_slots(rows, classes, points, shared, plan.k)
    signs = {truth: own[rows[0]] for truth, own in homes.counted.items()}
    slots = Slots(rows=rows, persons=homes.persons, signs=signs, mark=homes.mark)
    wide = slots.view(view, [*homes.masked, *plan.strata])
    rules = certain(slots.rules(homes.rules, homes.masked), wide)
    # What households have once is released with every member, and counts as often.
    scale = homes.scale and {
        slots.named(name, slot): homes.scale.get(name, 1.0) / (1.0 if own else np.sqrt(slots.size))
        for name in homes.masked
        for own in [name in homes.persons]
        for slot in range(slots.size if own else 1)
    }
    blocks = [slots.names(block.columns) for block in plan.blocks]
    strata = slots.names(plan.strata)
    own = homes.plan_for(wide, rules, blocks, strata, scale)
    _, masked, _ = mask_keeping_rules(
        own, wide, before=rules.confront(wide, tolerance=engine["tolerance"]),
        strata=one_stratum(len(rows)), weights=homes.weights[rows].mean(axis=1),
        random_state=seeds.next(), **engine,
    )  # fmt: skip
    out.counts(masked, slots.size)
    for number, block in enumerate(plan.blocks):
        for name in block.columns:
            for slot in range(slots.size):
                source = rows[:, slot if name in homes.persons else 0]
                out.take(masked, name, rows[:, slot], source, slots.named(name, slot))
        groups = np.repeat(masked.labels[number], slots.size)
        each = np.tile(np.arange(slots.size), len(rows))
        out.label(number, rows.reshape(-1), group_ids([groups, each]), groups)


def _refuse_broken(
    homes: Homes, pools: list[Pool], before: Confrontation, after: Confrontation
) -> None:
    """Refuse pooled households that no longer keep a rule across members which they kept."""
    pooled = np.isin(homes.units, np.concatenate([p.units for p in pools])) if pools else None
    for place, rule in enumerate(homes.rules):
        if pooled is None or rule.unit is None:
            continue
        broken = pooled & (after.signs[:, place] < 0) & (before.signs[:, place] >= 0)
        if not broken.any():
            continue
        count, unit = len(np.unique(homes.units[broken])), homes.view.unit
        raise RefusedError(
            f"{rule.name} ({rule.text}) cannot be kept in {count:,} units that are like fewer than "
            f"{homes.plan.k} others in number and kind of members: they are masked in groups of "
            "other sizes. Give a smaller k, give up the rule, or leave out the column that it "
            "adds up to, which the released members give; or leave these units out, for example "
            f"table[table.groupby({unit!r})[{unit!r}].transform('size') <= {_common(homes)}]."
        )


def _common(homes: Homes) -> int:
    """Return the number of members up to which at least k units have each."""
    counts = np.bincount(homes.sizes)
    few = np.flatnonzero((counts < homes.plan.k) & (np.arange(len(counts)) > 0))
    return int(few[0]) - 1 if len(few) else MOST_MEMBERS
