"""Bring the numbers of groups to where their rules hold: exactly, and nearest to where they were.

Three kinds of systems, each solved for all groups at once:

- linear rows: an orthogonal projection (`tessella.linear`), then whole numbers that keep the rows;
- products: the same in logarithms;
- both at once: a sequence of projections onto the rows and the tangents of the products (SQP).

In products, the factor that stands alone is computed last, so that equations hold to the last digit
and in whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import Floats, Name, Truths
from ...exceptions import RefusedError
from ...linear import LinearSystem, round_whole
from ...plan.claims import Claim, Row, rows_of
from ...rules import forms
from .data import standing_alone

__all__ = [
    "Ground",
    "settle_linear",
    "settle_products",
    "settle_together",
]


MARGIN = 1e-6  # by how much, of a column's unit, a strict inequality is kept
SWEEPS, TRIES = 60, 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Ground:
    """The columns whose values are settled together: names, units of distance, which are whole."""

    columns: tuple[Name, ...]
    unit: Floats
    whole: Truths

    @property
    def metric(self) -> Floats:
        """What a squared difference in each column weighs."""
        return np.asarray(1 / self.unit**2)

    def place(self, name: Name) -> int:
        """Return where a column is."""
        return self.columns.index(name)


def linear_system(
    ground: Ground, claims: Sequence[Claim], constants: dict[Name, float]
) -> LinearSystem | None:
    """Collect the linear rows about these columns; columns of strata are constants."""
    equal: list[tuple[Floats, float, str]] = []
    below: list[tuple[Floats, float, str]] = []
    for claim in claims:
        for row in rows_of(claim):
            names = set(row.coefficients)
            if not names & set(ground.columns) or not names <= {*ground.columns, *constants}:
                continue
            coefficients, right = np.zeros(len(ground.columns)), row.constant
            for name, value in row.coefficients.items():
                if name in ground.columns:
                    coefficients[ground.place(name)] = value
                else:
                    right -= value * constants[name]
            (equal if row.operator == "==" else below).append(
                (coefficients, _closed(row, coefficients, right, ground), claim.rule)
            )
    if not equal and not below:
        return None
    d = len(ground.columns)
    system = LinearSystem(
        np.array([row[0] for row in equal]).reshape(-1, d), np.array([row[1] for row in equal]),
        np.array([row[0] for row in below]).reshape(-1, d), np.array([row[1] for row in below]),
        columns=list(ground.columns), names=[row[2] for row in (*equal, *below)],
    )  # fmt: skip
    system.check()
    return system


def _closed(row: Row, coefficients: Floats, right: float, ground: Ground) -> float:
    """Replace < by <= a little less: one less in whole numbers."""
    if row.operator != "<":
        return right
    used = coefficients != 0
    if ground.whole[used].all() and (coefficients[used] % 1 == 0).all():
        return math.ceil(right) - 1.0
    return right - MARGIN * float((np.abs(coefficients[used]) * ground.unit[used]).max())


def settle_linear(
    values: Floats, ground: Ground, claims: Sequence[Claim], constants: dict[Name, float]
) -> Floats:
    """Return the nearest points that keep the linear claims, whole where they must be."""
    system = linear_system(ground, claims, constants)
    if system is None:
        return np.where(ground.whole, np.round(values), values)
    settled = system.project(values, metric=ground.metric)
    if ground.whole.any():
        settled = round_whole(settled, system, whole=ground.whole, weights=ground.metric).values
    return settled


def settle_products(
    values: Floats,
    ground: Ground,
    claims: Sequence[Claim],
    constants: dict[Name, float],
    offsets: Floats,
    signs: Floats,
) -> Floats:
    """Return points near to geometric means that keep products, and bounds; `signs` as the part's.

    A column at sign 0 has one value only, minus its offset.
    """
    free = np.flatnonzero(signs != 0)
    settled = np.where(signs == 0, 0.0 - offsets, values)
    logs = np.log(np.abs(settled[:, free] + offsets[free]))
    inner = Ground(
        columns=tuple(ground.columns[j] for j in free),
        unit=np.ones(len(free)),
        whole=np.zeros(len(free), dtype=bool),
    )
    system = _log_system(inner, claims, offsets[free], signs[free], ground.whole[free])
    if system is not None:
        logs = system.project(logs)
    settled[:, free] = signs[free] * np.exp(logs) - offsets[free]
    return _finish(settled, ground, claims, constants, frozen=signs == 0)


def _log_system(
    ground: Ground, claims: Sequence[Claim], offsets: Floats, signs: Floats, whole: Truths
) -> LinearSystem | None:
    """Write products, bounds and orders as rows in logarithms."""
    A, b, G, h, equal, below = [], [], [], [], [], []
    d = len(ground.columns)
    for claim in claims:
        form = claim.form
        if isinstance(form, forms.Multiplicative):
            if not {factor.column for factor in form.factors} <= set(ground.columns):
                continue  # both sides are zero in this part
            row = np.zeros(d)
            for factor in form.factors:
                row[ground.place(factor.column)] += factor.power
            A.append(row)
            b.append(math.log(abs(form.constant)))
            equal.append(claim.rule)
        elif isinstance(form, forms.Interval) and form.column in ground.columns:
            j = ground.place(form.column)
            ends = sorted([signs[j] * (form.low + offsets[j]), signs[j] * (form.high + offsets[j])])
            give = claim.tolerance
            for end, side in zip((ends[0] - give, ends[1] + give), (-1.0, 1.0)):
                if not math.isfinite(end) or (side < 0 and end <= 0):
                    continue
                if end <= 0:
                    raise RefusedError(f"{claim.rule} leaves no value for {form.column!r} here.")
                row = np.zeros(d)
                row[j] = side
                G.append(row)
                h.append(side * math.log(end) - (1e-9 if not whole[j] else 0.0))
                below.append(claim.rule)
        elif isinstance(form, forms.Governing):
            pair = (form.lower, form.upper)
            if set(pair) <= set(ground.columns):
                i, j = (ground.place(name) for name in pair)
                if signs[i] > 0 and signs[j] > 0 and offsets[i] == offsets[j]:
                    row = np.zeros(d)
                    row[i], row[j] = 1.0, -1.0
                    G.append(row)
                    h.append(-1e-8 if form.strict else 0.0)
                    below.append(claim.rule)
    if not A and not G:
        return None
    system = LinearSystem(
        np.array(A).reshape(-1, d), np.array(b), np.array(G).reshape(-1, d), np.array(h),
        columns=list(ground.columns), names=[*equal, *below],
    )  # fmt: skip
    system.check()
    return system


def settle_together(
    values: Floats,
    ground: Ground,
    claims: Sequence[Claim],
    constants: dict[Name, float],
    frozen: Truths,
) -> Floats:
    """Return points that keep linear rows and products, near to `values`; `frozen` ones stay.

    Each round replaces products by their tangents and projects the first point, in the metric of
    the units, onto all equations and the inequalities that were ever broken.
    """
    system = linear_system(ground, claims, constants)
    fixed = {ground.columns[j] for j in np.flatnonzero(frozen)}
    products = [c.form for c in claims if _is_equation(c, ground) and not fixed & set(c.columns)]
    n, d = values.shape
    A = np.zeros((0, d)) if system is None else system.A
    b = np.zeros(0) if system is None else system.b
    G = np.zeros((0, d)) if system is None else system.G
    h = np.zeros(0) if system is None else system.h
    pinned = np.eye(d)[frozen]
    A, b = np.vstack([A, pinned]), np.concatenate([b, values[0, frozen] if n else np.zeros(0)])
    active = np.zeros((n, len(h)), dtype=bool)
    settled = values.copy()
    for _ in range(SWEEPS):
        slopes, rights = _tangents(products, ground, settled)
        rows = np.concatenate(
            [np.broadcast_to(A, (n, *A.shape)), slopes, active[:, :, None] * G], axis=1
        )
        right = np.concatenate([np.broadcast_to(b, (n, len(b))), rights, active * h], axis=1)
        moved = _nearest(values, rows, right, ground.unit)
        step = float((np.abs(moved - settled) / ground.unit).max(initial=0.0))
        settled = moved
        broken = settled @ G.T - h > 1e-9 * (1 + np.abs(h)) if len(h) else active
        if step < 1e-12 and not (broken & ~active).any():
            break
        active |= broken
    return _finish(settled, ground, claims, constants, frozen=frozen)


def _is_equation(claim: Claim, ground: Ground) -> bool:
    form = claim.form
    return (
        isinstance(form, forms.Multiplicative)
        and form.operator == "=="
        and {factor.column for factor in form.factors} <= set(ground.columns)
    )


def _tangents(
    products: Sequence[forms.Form], ground: Ground, values: Floats
) -> tuple[Floats, Floats]:
    """Return gradients and right-hand sides of the products' tangents at each point."""
    n, d = values.shape
    slopes, rights = np.zeros((n, len(products), d)), np.zeros((n, len(products)))
    for r, form in enumerate(products):
        assert isinstance(form, forms.Multiplicative)
        sides = []
        for wanted, scale in ((1, 1.0), (-1, form.constant)):
            value, slope = np.full(n, scale), np.zeros((n, d))
            for factor in form.factors:
                if factor.power * wanted > 0:
                    j, p = ground.place(factor.column), abs(factor.power)
                    base = values[:, j] + factor.offset
                    slope = slope * (base**p)[:, None]
                    slope[:, j] += value * p * base ** (p - 1)
                    value = value * base**p
            sides.append((value, slope))
        gap, grade = sides[0][0] - sides[1][0], sides[0][1] - sides[1][1]
        slopes[:, r], rights[:, r] = grade, (grade * values).sum(axis=1) - gap
    return slopes, rights


def _nearest(targets: Floats, rows: Floats, right: Floats, unit: Floats) -> Floats:
    """Project each target onto its own rows, in the metric of the units."""
    scaled = rows * unit
    size = np.linalg.norm(scaled, axis=2, keepdims=True)
    size[size == 0] = 1.0
    scaled, goal = scaled / size, right / size[:, :, 0]
    gap = goal - np.einsum("nij,nj->ni", scaled, targets / unit)
    step = np.einsum("nij,nj->ni", np.linalg.pinv(scaled, rcond=1e-12), gap)
    return np.asarray(targets + unit * step)


def _finish(
    values: Floats,
    ground: Ground,
    claims: Sequence[Claim],
    constants: dict[Name, float],
    frozen: Truths,
) -> Floats:
    """Round what is whole, and compute from it, one after the other, what equations give.

    Where rounding breaks an inequality, other roundings nearby are tried.
    """
    order = _solving_order(ground, claims, frozen)
    if order is None:
        if ground.whole.any():
            raise RefusedError(
                "No order was found in which the rules give whole numbers, one column after the "
                "other. Give a schema in which these columns are continuous, or give up a rule."
            )
        return values
    first = _solved(np.where(ground.whole, np.round(values), values), ground, order)
    system = linear_system(ground, claims, constants)
    if system is None or not ground.whole.any():
        return first
    bad = np.flatnonzero(~system.holds(first))
    random = np.random.default_rng(0)
    for i in bad:
        base = np.where(ground.whole, np.floor(values[i]), values[i])
        steps = random.integers(-1, 3, (TRIES, len(base))) * ground.whole
        steps[:, frozen] = 0
        tried = _solved(np.vstack([base + steps]), ground, order)
        good = tried[system.holds(tried)]
        if len(good):
            away = (((good - values[i]) / ground.unit) ** 2).sum(axis=1)
            first[i] = good[away.argmin()]
    return first


def _solving_order(
    ground: Ground, claims: Sequence[Claim], frozen: Truths
) -> list[tuple[Name, Claim]] | None:
    """Choose for each equation a column that it gives; none is needed before it is given."""
    equations = [c for c in claims if _is_equation(c, ground) or _is_sum(c, ground)]
    fixed = {ground.columns[j] for j in np.flatnonzero(frozen)}
    # A product with a factor at zero says 0 == 0 in this part, whatever its other factors are.
    equations = [
        c
        for c in equations
        if not (set(c.columns) & fixed if _is_equation(c, ground) else set(c.columns) <= fixed)
    ]

    def search(left: list[Claim], given: dict[Name, Claim]) -> dict[Name, Claim] | None:
        if not left:
            return given if _in_turn(given) is not None else None
        claim = left[0]
        for name in _gives(claim, ground):
            if name not in given and name not in fixed:
                found = search(left[1:], {**given, name: claim})
                if found is not None:
                    return found
        return None

    found = search(equations, {})
    return None if found is None else _in_turn(found)


def _in_turn(given: dict[Name, Claim]) -> list[tuple[Name, Claim]] | None:
    """Order columns so that each comes after those that it is computed from; None in a circle."""
    order: list[tuple[Name, Claim]] = []
    waiting = dict(given)
    while waiting:
        ready = [
            name
            for name, claim in waiting.items()
            if not any(other in waiting for other in claim.columns if other != name)
        ]
        if not ready:
            return None
        for name in ready:
            order.append((name, waiting.pop(name)))
    return order


def _is_sum(claim: Claim, ground: Ground) -> bool:
    form = claim.form
    return (
        isinstance(form, forms.Linear)
        and form.operator == "=="
        and claim.tolerance == 0
        and set(form.coefficients) <= set(ground.columns)
    )


def _gives(claim: Claim, ground: Ground) -> list[Name]:
    """List the columns that an equation gives from the others, in whole numbers if they must be."""
    form = claim.form
    if isinstance(form, forms.Linear):
        ones = [
            n
            for n, v in form.coefficients.items()
            if abs(v) == 1 or not ground.whole[ground.place(n)]
        ]
        return sorted(ones, key=lambda name: form.coefficients[name] > 0)
    assert isinstance(form, forms.Multiplicative)
    alone = standing_alone(form)
    first = [] if alone is None or not _stays_whole(form, alone, ground) else [alone.column]
    rest = [f.column for f in form.factors if abs(f.power) == 1 and f is not alone]
    return [*first, *(name for name in rest if not ground.whole[ground.place(name)])]


def _stays_whole(form: forms.Multiplicative, alone: forms.Factor, ground: Ground) -> bool:
    """Say whether a factor that stands alone comes out whole, if it must."""
    if not ground.whole[ground.place(alone.column)]:
        return True
    others = [factor for factor in form.factors if factor is not alone]
    numbers = [form.constant ** float(alone.power), *(factor.offset for factor in form.factors)]
    return all(number % 1 == 0 for number in numbers) and all(
        ground.whole[ground.place(factor.column)] for factor in others
    )


def _solved(values: Floats, ground: Ground, order: Sequence[tuple[Name, Claim]]) -> Floats:
    """Compute columns from others, in order."""
    out = values.copy()
    for name, claim in order:
        form, j = claim.form, ground.place(name)
        if isinstance(form, forms.Linear):
            rest = sum(
                v * out[:, ground.place(n)] for n, v in form.coefficients.items() if n != name
            )
            out[:, j] = (form.constant - rest) / form.coefficients[name]
        elif isinstance(form, forms.Multiplicative):
            alone = next(f for f in form.factors if f.column == name)
            value = np.full(len(out), form.constant ** float(alone.power))
            for factor in form.factors:
                if factor is not alone:
                    base = out[:, ground.place(factor.column)] + factor.offset
                    with np.errstate(divide="ignore", invalid="ignore"):
                        value = value * base ** float(-alone.power * factor.power)
            out[:, j] = value - alone.offset
    return out
