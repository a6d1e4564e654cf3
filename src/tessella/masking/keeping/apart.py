"""Records are put apart: by strata, by cases of rules, by signs, by what they lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import Integers
from ...exceptions import GroupSizeError
from ...plan import Block, Plan
from ...plan.claims import Case, Claim
from ...rules import forms
from .data import Data

__all__ = ["Part", "put_apart", "repair_products"]


@dataclass(eq=False)
class Part:
    """Records that keep the same claims; `signs` are those of the block's factors."""

    rows: Integers
    claims: tuple[Claim, ...]
    signs: tuple[int, ...]
    merged: int = 0  # records that joined from parts too small to stand alone


def put_apart(data: Data, block: Block, plan: Plan, strata: Integers) -> list[Part]:
    """Cut the records into parts that can be grouped on their own, each with at least k."""
    rules = list(block.cases)
    keys = [strata]
    for name in rules:
        keys.append(_case_of_each(data, block.cases[name]))
    for column, offset in block.signs:
        side = np.sign(data.column(column) + offset)
        keys.append(np.where(np.isnan(side), 2, side).astype(np.int64))
    own = [data.place(name) for name in block.columns]
    lacking = data.state[:, own]
    if lacking.any():
        keys += list(lacking.T.astype(np.int64))
    distinct, place = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(place.ravel()))[:-1])
    merged = _join_small(distinct, rows, plan, fixed=1 + len(rules) + len(block.signs))
    parts = []
    for at, (own_rows, joined) in sorted(merged.items()):
        chosen = distinct[at, 1 : 1 + len(rules)]
        claims = [c for n, way in zip(rules, chosen) if way >= 0 for c in block.cases[n][way]]
        signs = distinct[at, 1 + len(rules) : 1 + len(rules) + len(block.signs)]
        parts.append(Part(own_rows, (*block.always, *claims), tuple(map(int, signs)), joined))
    return parts


def _case_of_each(data: Data, cases: Sequence[Case]) -> Integers:
    """Return the first case that each record is in.

    A record that is in none breaks the rule: it goes to the case that it is nearest to. Where
    missing values leave it open, it is in none, at -1, and keeps no claim.
    """
    n = data.table.n_rows
    chosen = np.full(n, -2, dtype=np.int64)
    unknown, least, nearest = np.zeros(n, bool), np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    for number, case in enumerate(cases):
        signs = np.min([data.signs(claim) for claim in case], axis=0) if case else np.ones(n)
        amount = np.sum([data.amounts(claim) for claim in case], axis=0) if case else np.zeros(n)
        chosen[(chosen == -2) & (signs > 0)] = number
        unknown |= signs == 0
        closer = (amount <= least) & (signs < 0)  # of equals the last: the body of a condition
        least[closer], nearest[closer] = amount[closer], number
    return np.where(chosen >= 0, chosen, np.where(unknown, -1, nearest))


def _join_small(
    keys: Integers, rows: list[Integers], plan: Plan, *, fixed: int
) -> dict[int, tuple[Integers, int]]:
    """Let parts below k join another, or refuse them; strata and what is missing never mix."""
    parts = {at: (own, 0) for at, own in enumerate(rows)}
    small = [at for at, own in enumerate(rows) if len(own) < plan.k]
    if small and plan.small == "refuse":
        raise GroupSizeError.small_parts(plan.k, {at: len(rows[at]) for at in small})
    for at in sorted(small, key=lambda at: len(rows[at])):
        own, joined = parts[at]
        if len(own) >= plan.k:
            continue
        others = [
            other
            for other in parts
            if other != at
            and keys[other, 0] == keys[at, 0]
            and (keys[other, fixed:] == keys[at, fixed:]).all()
        ]
        if not others:
            raise GroupSizeError.small_parts(plan.k, {at: len(own)})
        best = min(others, key=lambda o: ((keys[o] != keys[at]).sum(), -len(parts[o][0])))
        rest, earlier = parts[best]
        parts[best] = np.sort(np.concatenate([rest, own])), earlier + joined + len(own)
        del parts[at]
    return parts


def repair_products(data: Data, block: Block) -> int:
    """Recompute a factor where a product cannot hold for its zeros or signs; count the records.

    Hours of 0 and wages of 100 have no nearest point with a geometric mean: the record is first
    edited, by what the rule says of the factor that stands alone.
    """
    changed = np.zeros(data.table.n_rows, dtype=bool)
    for claim in block.always:
        form = claim.form
        if not isinstance(form, forms.Multiplicative) or form.operator != "==":
            continue
        left, right = data.sides(form)
        wrong = (np.sign(left) != np.sign(right)) & ~np.isnan(left) & ~np.isnan(right)
        alone = form.alone
        if alone is None or not wrong.any():
            continue
        others = form.constant ** float(alone.power) * np.ones(data.table.n_rows)
        for factor in form.factors:
            if factor is not alone:
                base = data.column(factor.column) + factor.offset
                with np.errstate(divide="ignore", invalid="ignore"):
                    others = others * base ** (-alone.power * factor.power)
        fixable = wrong & np.isfinite(others)
        data.values[fixable, data.place(alone.column)] = others[fixable] - alone.offset
        changed |= fixable
    return int(changed.sum())
