"""Which households of rare shapes are masked together.

Households of a pool share their common columns in groups of at least k; members of a class (counted
alike, lacking the same cells) share theirs within such a group, so that in each group a class has
either no member or members of at least k households. Households whose members are of the same
classes can be grouped freely (`alike`); others form one group, whose classes all have k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Integers, Name
from ..exceptions import RefusedError
from ..frame import Strata, View, group_ids
from ..grouping import MDAV
from ..kernels.groups import weighted_centres
from ..rules import Rule, Rules
from ..rules import expressions as tree
from .engine import MaskedBlocks, mask_keeping_rules, write_blocks
from .homes import Cells, Homes, Seeds, one_stratum
from .wide import Slots, bounds_of_each

# How many times k households may share their common columns: with more of them, common columns lose
# more, and members less, who find their like among more households. Which is best is tried by MDAV:
# relative to 1, eusilc, k = 6, loses 105 and 123 % with 2 and 4; testdata, k = 3, 83 and 64 % (with
# 8 less, but categories of households move by a third: too few groups to keep their shares).
TOGETHER = (1, 2, 4)
# Twice as many must lose at least 5 % less: fewer groups keep the shares of common columns worse
# (eusilc, k = 6: 97 % with 2 in its larger pool, and the largest households changed by 36 %).
GAIN = 0.95


@dataclass(frozen=True, eq=False)
class Pool:
    """Units that are masked together; `alike`: all have members of the same classes."""

    units: Integers
    alike: bool


def form_pools(
    rare: Integers, shapes: Sequence[Integers], *, members: Integers, apart: Integers, k: int,
    why: Sequence[str],
) -> tuple[list[Pool], list[Integers]]:  # fmt: skip
    """Pool the rare units; return also the shapes that are left, some of which lend units.

    `members` counts the members of each class in each unit; units that differ in `apart` are never
    together. `why` says what sets a class apart.
    """
    pools: list[Pool] = []
    left = list(shapes)
    for key in np.unique(apart[rare]):
        own = rare[apart[rare] == key]
        kinds = group_ids(list((members[own] > 0).T.astype(np.int64)))
        groups = [own[kinds == kind] for kind in range(int(kinds.max()) + 1)]
        alike = [units for units in groups if len(units) >= k]
        mixed: list[Integers] = []
        waiting = sorted((units for units in groups if len(units) < k), key=len, reverse=True)
        while waiting:
            pool = waiting.pop(0)
            while not _holds(pool, members, k):
                sources = [waiting, left, alike, mixed]
                source, at = _nearest(pool, sources, members, apart, k)
                if source is None:
                    raise _refusal(pool, members, k, why)
                lent, rest = _lend(
                    source[at], pool, members, k, whole=source is waiting or source is mixed
                )
                pool = np.concatenate([pool, lent])
                source[at : at + 1] = [] if rest is None else [rest]
            mixed.append(pool)
        pools += [Pool(np.sort(units), True) for units in alike]
        pools += [Pool(np.sort(units), False) for units in mixed]
    return pools, left


def _lacking(pool: Integers, members: Integers, k: int) -> Integers:
    """Return how many units each class of a pool lacks to k; 0 for a class without members."""
    counts = (members[pool] > 0).sum(axis=0)
    return np.where(counts > 0, np.maximum(k - counts, 0), 0)


def _holds(pool: Integers, members: Integers, k: int) -> bool:
    return len(pool) >= k and not _lacking(pool, members, k).any()


def _nearest(
    pool: Integers, sources: Sequence[list[Integers]], members: Integers, apart: Integers, k: int
) -> tuple[list[Integers] | None, int]:
    """Return the list, and the place in it, of the units that are most like a pool and help it."""
    lacking = _lacking(pool, members, k) > 0
    middle = members[pool].mean(axis=0)
    best: tuple[float, list[Integers] | None, int] = (np.inf, None, -1)
    for source in sources:
        for at, units in enumerate(source):
            helps = (members[units] > 0)[:, lacking].any() or not lacking.any()
            if apart[units[0]] != apart[pool[0]] or not helps:
                continue
            away = float(np.abs(members[units].mean(axis=0) - middle).sum())
            if away < best[0]:
                best = (away, source, at)
    return best[1], best[2]


def _lend(
    units: Integers, pool: Integers, members: Integers, k: int, *, whole: bool
) -> tuple[Integers, Integers | None]:
    """Return the units that join a pool, and those that stay: none, or at least k."""
    need = int(max(k - len(pool), _lacking(pool, members, k).max()))
    if whole or len(units) < need + k:
        return units, None
    return units[:need], units[need:]


def _refusal(pool: Integers, members: Integers, k: int, why: Sequence[str]) -> RefusedError:
    lacking = _lacking(pool, members, k)
    counts = (members[pool] > 0).sum(axis=0)
    if not lacking.any():
        return RefusedError(
            f"k={k} cannot be kept: {len(pool)} units are in strata, or lack cells of columns that "
            "are constant within units, which they share with no other unit. Fill these cells, "
            f"merge strata, or leave the units out{_smaller(len(pool))}."
        )
    named = "; ".join(f"{why[at]} ({counts[at]} units)" for at in np.flatnonzero(lacking)[:5])
    return RefusedError(
        f"k={k} cannot be kept: fewer than {k} units have members of these kinds: {named}. Such "
        "members share no group with others: fill missing cells or leave these columns out, give "
        f"up a rule that counts members, or leave the units out"
        f"{_smaller(int(counts[lacking > 0].min()))}."
    )


def _smaller(k: int) -> str:
    return f", or give k={k}" if k > 1 else ""


def mask_pools(
    homes: Homes, out: Cells, pools: list[Pool], seeds: Seeds, engine: dict[str, Any]
) -> None:
    """Mask pooled households: their common columns, then their members.

    Households that share their common values form one group, of one pool or of several; a class of
    members then has at least k of them there, as it has in each group of each pool.
    """
    if not pools:
        return
    for pool in pools:
        k = _how_many(homes, pool)
        for block in homes.plan.blocks:
            if names := [name for name in block.columns if name in homes.common]:
                _mask_common(homes, out, pool, names, k, seeds, engine)
    common = [name for name in homes.masked if name in homes.common]
    staged = View(
        write_blocks(homes.view, homes.plan, out.finished(common)), homes.view.schema, homes.units
    )
    rows = np.flatnonzero(np.isin(homes.units, np.concatenate([pool.units for pool in pools])))
    for number, block in enumerate(homes.plan.blocks):
        shared = [staged.codes(name) for name in block.columns if name in homes.common]
        groups = group_ids([homes.common_key, *shared])
        if names := [name for name in block.columns if name in homes.persons]:
            _mask_members(homes, out, staged, number, names, rows, groups, seeds, engine)
        else:
            out.label(number, rows, groups[rows], groups[rows])


def _about(rules: Rules, names: Sequence[Name], beside: Sequence[Name]) -> Rules:
    """Return the rules about a record that name some columns and, if any, only these beside."""
    known = {*names, *beside}
    return Rules(
        rule
        for rule in rules
        if rule.unit is None and known.issuperset(rule.columns) and set(names) & set(rule.columns)
    )


def _how_many(homes: Homes, pool: Pool) -> int:
    """Return how many households share their common columns, so that little is lost together."""
    n, k = len(pool.units), homes.plan.k
    if not pool.alike:
        return n
    sizes = [k, *(times * k for times in TOGETHER[1:] if 4 * times * k <= n)]
    if len(sizes) == 1 or not homes.persons:
        return k
    rows = np.concatenate([homes.members[unit] for unit in pool.units])
    at = np.repeat(np.arange(n), homes.sizes[pool.units])
    classes = homes.fine_classes[rows]
    weights, units = homes.weights[rows], homes.units[rows]
    common, members = homes.common_points[rows], homes.member_points[0][rows]
    once = np.bincount(at, weights)
    own = homes.common_points[homes.first[pool.units]]

    def loss(size: int) -> float:
        points = np.hstack([own, homes.composition_for(size)[pool.units]])
        shared = MDAV(size).fit(points, sample_weight=once).labels_[at]
        apart = homes.split(group_ids([shared, classes]), rows)
        inner = MDAV(k).fit(members, sample_weight=weights, strata=apart, units=units).labels_
        centred = (
            at - weighted_centres(at, weights, ids, int(ids.max()) + 1)[ids]
            for at, ids in ((common, shared), (members, inner))
        )
        lost = sum(float(weights @ (away**2).sum(axis=1)) for away in centred)
        return float(lost / GAIN ** np.log2(size / k))

    return min(sizes, key=loss)


def _mask_common(
    homes: Homes, out: Cells, pool: Pool, names: list[Name], k: int, seeds: Seeds,
    engine: dict[str, Any],
) -> None:  # fmt: skip
    """Mask the common columns of the households of a pool, k of which share them.

    Households with members of the same kind are near each other, too: these are masked next.
    """
    source, plan = homes.first[pool.units], homes.plan
    strata = [name for name in plan.strata if name in homes.common]
    slots = Slots(rows=source[:, None], persons=(), signs={})
    view = slots.view(homes.view, [*names, *strata])
    rules = _about(homes.rules, names, strata)
    scale = homes.scale and {n: homes.scale[n] for n in names if n in homes.scale}
    own = homes.plan_for(view, rules, [names], strata, scale or plan.scale, k, matched=True)
    weights = np.array([homes.weights[homes.members[unit]].sum() for unit in pool.units])
    _, masked, _ = mask_keeping_rules(
        own, view, before=rules.confront(view, tolerance=engine["tolerance"]),
        strata=one_stratum(len(source)), weights=weights, random_state=seeds.next(),
        beside=homes.composition_for(k)[pool.units],
        records=homes.sizes[pool.units].astype(np.float64), **engine,
    )  # fmt: skip
    out.counts(masked)
    place = np.full(len(homes.sizes), -1)
    place[pool.units] = np.arange(len(pool.units))
    rows = np.concatenate([homes.members[unit] for unit in pool.units])
    at = place[homes.units[rows]]
    for name in names:
        spread = MaskedBlocks(
            numbers={n: v[at] for n, v in masked.numbers.items() if n == name},
            rows={n: v[at] for n, v in masked.rows.items() if n == name},
            dates={n: v[at] for n, v in masked.dates.items() if n == name},
        )
        out.take(spread, name, rows, source, name)


def _mask_members(
    homes: Homes, out: Cells, staged: View, number: int, names: list[Name], rows: Integers,
    groups: Integers, seeds: Seeds, engine: dict[str, Any],
) -> None:  # fmt: skip
    """Mask the columns of members of pooled households, in groups of at least k households."""
    plan = homes.plan
    apart = homes.fine_classes
    signs = group_ids([homes.common_key, *(s.astype(np.int64) for s in homes.bounds.values())])
    rules = Rules([*homes.rules, *bounds_of_each(homes.rules)])
    common = [n for n in plan.blocks[number].columns if n in homes.common]
    for kind in np.unique(signs[rows]):
        own = rows[signs[rows] == kind]
        first = own[0]
        fixed = [*(n for n in common if not staged.states(n)[first]), *plan.strata]
        about = _about(rules, names, fixed)
        kept = [
            Rule(body=truth if sign[first] > 0 else tree.negated(truth), name=f"counted {at}")
            for at, (truth, sign) in enumerate(homes.bounds.items())
            if sign[first] and {*names, *fixed}.issuperset(own_columns := tree.columns_of(truth))
            if set(names).intersection(own_columns)
        ]
        about = Rules([*about, *kept])
        named = {name for rule in about for name in rule.columns}
        strata = [name for name in fixed if name in named]
        slots = Slots(rows=own[:, None], persons=(), signs={})
        part = slots.view(staged, [*names, *strata])
        part = View(part.table, part.schema, homes.units[own])
        scale = homes.scale and {n: homes.scale[n] for n in names if n in homes.scale}
        made = homes.plan_for(part, about, [names], strata, scale or plan.scale, matched=True)
        ids = homes.split(group_ids([groups[own], apart[own]]), own)
        cells = Strata(ids=ids, names=tuple(f"group {at + 1}" for at in range(int(ids.max()) + 1)))
        _, masked, _ = mask_keeping_rules(
            made, part, before=about.confront(part, tolerance=engine["tolerance"]), strata=cells,
            weights=homes.weights[own], random_state=seeds.next(), **engine,
        )  # fmt: skip
        out.counts(masked)
        for name in names:
            out.take(masked, name, own, own, name)
        out.label(number, own, masked.labels[0], groups[own])
