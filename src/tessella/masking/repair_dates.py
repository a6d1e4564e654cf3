"""Dates that break the order that rules put them in go to the nearest ones that keep it.

Dates are released as values of records that keep the rules. A group that has no such record gets
its median dates, of which as few as possible are moved, the later columns first. What rules say of
dates are bounds x_i - x_j <= b in whole microseconds, where a date that is written in a rule, or
one of a stratum, is a constant. Such a system is solved exactly, without floats: columns are
eliminated one after the other (Fourier and Motzkin) and then fixed in reverse, each at the value
nearest to its own. A column of days stays one: columns of the smallest step are eliminated first,
and each bound is lowered to a multiple of the smaller step of its two columns, so that between two
bounds there is always a date of that step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Integers, Name
from ..plan.plan import Claim
from ..rules.expressions import ColumnRef, Compare, Text, stamp_of
from ..rules.truth import DAY
from .parts import allowed_of, lower_medians

if TYPE_CHECKING:
    from .aggregation import PartOfBlock
    from .engine import MaskedBlocks

STEPS = (DAY, 10**6, 10**3, 1)  # in microseconds
FAR = 2**60  # no bound: 36,000 years; the sum of two is still a whole number of 64 bits
UNMOVED = np.iinfo(np.int64).min  # a date that is that of its row
Order = tuple[Any, str, Any]  # the place of a column, or a constant as a tuple of one; an operator


def mend_dates(out: MaskedBlocks, own: PartOfBlock, names: Iterable[Name]) -> None:
    """Write dates that keep the rules for the groups of a part without a record that keeps them."""
    view, rows, count = own.cells.view, own.rows, own.count
    members, groups = own.members, own.member_groups
    dated = [name for name in (*names, *own.strata) if view.table.facts(name).family == "date"]
    free = [name for name in dated if name not in own.strata]
    known = [c for c in own.claims if not any(view.missing(n)[rows[0]] for n in c.columns)]
    claims: list[Claim] = []
    while free:  # columns of which claims say more than an order of dates are left to donors
        claims = [claim for claim in known if set(claim.columns) & set(free)]
        stuck = {n for c in claims if not _is_order(c, dated) for n in c.columns}
        if not stuck & set(free):
            break
        free = [name for name in free if name not in stuck]
        dated = [name for name in dated if name not in stuck]
    keeps = allowed_of(own.cells, members, free, claims, own.strata)
    poor = np.bincount(groups[keeps], minlength=count) == 0
    if not free or not claims or not poor.any():
        return

    def side(node: Any) -> Any:
        if isinstance(node, Text):
            return (stamp_of(node.value),)
        at = node.name
        return free.index(at) if at in free else (int(own.cells.operands.dates(at)[rows[0]]),)

    stamps = [own.cells.operands.dates(name)[members] for name in free]
    steps = [next(step for step in STEPS if not (column % step).any()) for column in stamps]
    weights = own.member_weights
    middle = [s[lower_medians(s.astype(np.float64), weights, groups, count)] for s in stamps]
    orders = [(side(a), o, side(b)) for claim in claims for a, o, b in claim.truth.pairs]  # type: ignore[attr-defined]
    mended = nearest_dates(np.column_stack(middle)[poor], steps, orders)
    for name, column in zip(free, () if mended is None else mended.T):
        values = np.full(count, UNMOVED)
        values[poor] = column
        moved = out.dates.setdefault(name, np.full(view.n_rows, UNMOVED))
        moved[rows] = values[own.groups]


def _is_order(claim: Claim, dated: Sequence[Name]) -> bool:
    """Whether a claim compares dates, and nothing else."""
    return isinstance(claim.truth, Compare) and all(
        isinstance(node, Text) or (isinstance(node, ColumnRef) and node.name in dated)
        for node in claim.truth.operands
    )


def nearest_dates(
    dates: Integers, steps: Sequence[int], orders: Sequence[Order]
) -> Integers | None:
    """Return dates that keep the orders, shape (groups, columns), or None where there are none.

    An order ``a != b`` is kept as ``a < b`` or as ``a > b``, whichever is nearer.
    """
    unequal = [number for number, order in enumerate(orders) if order[1] == "!="]
    best, least = None, np.full(len(dates), 2 * FAR)
    for signs in product("<>", repeat=min(len(unequal), 6)):
        chosen = dict(zip(unequal, signs))
        known = [(a, chosen.get(i, o), b) for i, (a, o, b) in enumerate(orders)]
        found = _nearest(dates, steps, [order for order in known if order[1] != "!="])
        if found is not None:
            away = np.abs(found - dates).sum(axis=1)
            best = found if best is None else np.where((away < least)[:, None], found, best)
            least = np.minimum(least, away)
    return best


def _nearest(dates: Integers, steps: Sequence[int], orders: Sequence[Order]) -> Integers | None:
    origin = len(steps)  # a column that is 0, to which constants are added
    size = np.array([*steps, FAR])
    lesser = np.minimum.outer(size, size)
    most = np.full((origin + 1, origin + 1), FAR)  # x_i - x_j is at most this
    np.fill_diagonal(most, 0)
    for left, operator, right in orders:
        ends = [(origin, end[0]) if isinstance(end, tuple) else (end, 0) for end in (left, right)]
        for direction, ((i, a), (j, b)) in (("<", ends), (">", ends[::-1])):
            if operator[0] in (direction, "="):
                bound = b - a - (operator in "<>")
                most[i, j] = min(most[i, j], bound // lesser[i, j] * lesser[i, j])
    ordered = sorted(range(origin), key=lambda j: (steps[j], -j))
    for j in ordered:
        through = most[:, j, None] + most[j]
        lowered = through // lesser * lesser
        most = np.minimum(most, np.where(through < FAR, lowered, FAR))
    if (np.diag(most) < 0).any():
        return None
    out, fixed = np.zeros((len(dates), origin + 1), dtype=np.int64), [origin]
    for j in ordered[::-1]:
        low = (out[:, fixed] - most[fixed, j]).max(axis=1)
        high = (out[:, fixed] + most[j, fixed]).min(axis=1)
        out[:, j] = np.clip(dates[:, j], low, high)
        fixed.append(j)
    return out[:, :origin]
