"""Repair under products: values that break a * b == c go near to where they were, and keep it.

- Products alone are linear in logarithms, and so are bounds and orders: one projection there.
- Products beside linear rows: a sequence of projections onto the rows and the tangents of the
  products (sequential quadratic programming without a line search).

Rounding follows: the factor that stands alone is computed last, so that equations hold to the last
digit and in whole numbers. Strict rows are closed as in `repair`; in logarithms, whose unit is one,
by the same MARGIN.

References
----------
J. Nocedal, S. J. Wright (2006), "Numerical optimization", chapter 18.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

import numpy as np

from .._types import Floats, Name, Truths
from ..exceptions import RefusedError
from ..linear import LinearSystem
from ..linear.rows import Row
from ..plan.plan import Claim
from ..rules import forms
from .repair import MARGIN, Grid, closed_system, project_claims, rows_about, unclear

if TYPE_CHECKING:
    from ..plan import Block
    from .parts import BlockCells

CONVERGED = 1e-12  # units of the columns: a sweep that moves less is the last
SWEEPS = 60  # 300 random systems of three rules took 4 to 17, half of them 4
TRIES = 200  # roundings of a point that are tried where the nearest breaks an inequality


def _system(grid: Grid, claims: Sequence[Claim], constants: Mapping[Name, float]) -> LinearSystem:
    """Return the linear rows about these columns, checked."""
    system = closed_system(grid.plain, rows_about(grid.columns, claims, constants))
    system.check()
    return system


def project_products(
    values: Floats,
    grid: Grid,
    claims: Sequence[Claim],
    constants: Mapping[Name, float],
    offsets: Floats,
    signs: Floats,
) -> Floats:
    """Return points near to geometric means that keep products, and bounds; `signs` as the part's.

    A column at sign 0 has one value only, minus its offset.
    """
    free = np.flatnonzero(signs != 0)
    moved = np.where(signs == 0, 0.0 - offsets, values)
    logs = np.log(np.abs(moved[:, free] + offsets[free]))
    rows = log_rows(grid.part(free.tolist()).plain, claims, offsets[free], signs[free])
    if rows:
        system = LinearSystem.of_rows(rows, [grid.columns[j] for j in free])
        system.check()
        logs = system.project(logs)
    moved[:, free] = signs[free] * np.exp(logs) - offsets[free]
    return _finish(moved, grid, claims, constants, frozen=signs == 0)


def at_edge(distances: Floats) -> Floats:
    """Return distances to a sign's edge, by column; those beyond it are as near as the nearest.

    Records that joined from another part may be on the other side: they stand at the edge.
    """
    nearest = np.where(distances > 0, distances, np.inf).min(axis=0)
    return np.where(distances > 0, distances, nearest)


def log_rows(grid: Grid, claims: Sequence[Claim], offsets: Floats, signs: Floats) -> list[Row]:
    """Write products, bounds and orders as rows in logarithms of sign * (value + offset)."""
    rows = []
    for claim in claims:
        form = claim.form
        if isinstance(form, forms.Multiplicative):
            if not {factor.column for factor in form.factors} <= set(grid.columns):
                continue  # both sides are zero in this part
            powers: dict[Name, float] = {}
            for factor in form.factors:
                powers[factor.column] = powers.get(factor.column, 0.0) + factor.power
            rows.append(Row(claim.rule, powers, "==", math.log(abs(form.constant))))
        elif isinstance(form, forms.Interval) and form.column in grid.columns:
            rows += _log_bounds(form, claim, grid, offsets, signs)
        elif isinstance(form, forms.Governing) and {form.lower, form.upper} <= set(grid.columns):
            i, j = grid.place(form.lower), grid.place(form.upper)
            if signs[i] > 0 and signs[j] > 0 and offsets[i] == offsets[j]:
                right = -MARGIN if form.strict else 0.0
                rows.append(Row(claim.rule, {form.lower: 1.0, form.upper: -1.0}, "<=", right))
    return rows


def _log_bounds(
    form: forms.Interval, claim: Claim, grid: Grid, offsets: Floats, signs: Floats
) -> list[Row]:
    """Write the ends of an interval in logarithms; whole columns are rounded later."""
    j = grid.place(form.column)
    low, high = (float(signs[j] * (end + offsets[j])) for end in (form.low, form.high))
    is_open = [form.open_low, form.open_high]
    if signs[j] < 0:
        low, high, is_open = high, low, is_open[::-1]
    rows = []
    for end, side, strict in ((low, -1.0, is_open[0]), (high, 1.0, is_open[1])):
        end += side * claim.tolerance
        if not math.isfinite(end) or (side < 0 and end <= 0):
            continue
        if end <= 0:
            raise RefusedError(f"{claim.rule} leaves no value for {form.column!r} here.")
        # Rounding in exp and log must not leave a closed interval either.
        real = MARGIN if strict and not claim.tolerance else 1e-9
        less = 0.0 if grid.whole[j] else real
        rows.append(Row(claim.rule, {form.column: side}, "<=", side * math.log(end) - less))
    return rows


def project_mixed(
    values: Floats,
    grid: Grid,
    claims: Sequence[Claim],
    constants: Mapping[Name, float],
    frozen: Truths,
) -> Floats:
    """Return points that keep linear rows and products, near to `values`; `frozen` ones stay.

    Each round replaces products by their tangents and projects the first point, in the metric of
    the units, onto all equations and the inequalities that were ever broken.
    """
    system = _system(grid, claims, constants)
    fixed = {grid.columns[j] for j in np.flatnonzero(frozen)}
    equations = [c for c in claims if _is_equation(c, grid) and not fixed & set(c.columns)]
    products = [c.product for c in equations if c.product]
    n, d = values.shape
    G, h = system.G, system.h
    A = np.vstack([system.A, np.eye(d)[frozen]])
    b = np.concatenate([system.b, values[0, frozen] if n else np.zeros(0)])
    moved, left = values.copy(), np.arange(n)
    active = np.zeros((n, len(h)), dtype=bool)
    # Points know nothing of each other: who has converged rests, and what a point becomes does not
    # depend on the others. Nearly all rest after a few rounds; a handful takes up to SWEEPS.
    for _ in range(SWEEPS):
        if not len(left):
            break
        own, held = moved[left], active[left]
        slopes, rights = _tangents(products, grid, own)
        rows = np.concatenate(
            [np.broadcast_to(A, (len(left), *A.shape)), slopes, held[:, :, None] * G], axis=1
        )
        right = np.concatenate([np.broadcast_to(b, (len(left), len(b))), rights, held * h], axis=1)
        moved[left] = _nearest(values[left], rows, right, grid.unit)
        step = (np.abs(moved[left] - own) / grid.unit).max(axis=1, initial=0.0)
        broken = moved[left] @ G.T - h > 1e-9 * (1 + np.abs(h)) if len(h) else held
        active[left] |= broken
        left = left[(step >= CONVERGED) | (broken & ~held).any(axis=1)]
    return _finish(moved, grid, claims, constants, frozen=frozen)


def _is_equation(claim: Claim, grid: Grid) -> bool:
    return claim.product is not None and set(claim.columns) <= set(grid.columns)


def _tangents(
    products: Sequence[forms.Multiplicative], grid: Grid, values: Floats
) -> tuple[Floats, Floats]:
    """Return gradients and right-hand sides of the products' tangents at each point."""
    n, d = values.shape
    slopes, rights = np.zeros((n, len(products), d)), np.zeros((n, len(products)))
    for r, form in enumerate(products):
        sides = []
        for wanted, scale in ((1, 1.0), (-1, form.constant)):
            value, slope = np.full(n, scale), np.zeros((n, d))
            for factor in form.factors:
                if factor.power * wanted > 0:
                    j, p = grid.place(factor.column), abs(factor.power)
                    base = values[:, j] + factor.offset
                    if p % 1:  # roots have no tangent at zero, and none below
                        base = np.maximum(base, 1e-9 * grid.unit[j])
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
    grid: Grid,
    claims: Sequence[Claim],
    constants: Mapping[Name, float],
    frozen: Truths,
) -> Floats:
    """Round what is whole, and compute from it, one after the other, what equations give.

    Where rounding breaks an inequality, other roundings nearby are tried.
    """
    order = _solving_order(grid, claims, frozen)
    tied = [name for c in claims if _is_equation(c, grid) or _is_sum(c, grid) for name in c.columns]
    free = [j for j, name in enumerate(grid.columns) if name not in tied and not frozen[j]]
    if order is None:
        if grid.whole.any():
            raise RefusedError(
                "No order was found in which the rules give whole numbers, one column after the "
                "other. Give a schema in which these columns are continuous, or give up a rule."
            )
        return values

    def solved(values: Floats) -> Floats:
        return fit_free(_solved(values, grid, order), grid, free, claims, constants)

    first = solved(grid.rounded(values))
    system = _system(grid, claims, constants)
    if not system.n_rows or not grid.whole.any():
        return first
    bad = np.flatnonzero(~system.holds(first))
    random = np.random.default_rng(0)
    for i in bad:
        base = np.where(grid.whole, np.floor(values[i] * grid.tenfold) / grid.tenfold, values[i])
        steps = random.integers(-1, 3, (TRIES, len(base))) * grid.whole / grid.tenfold
        steps[:, frozen] = 0
        tried = solved(base + steps)
        good = tried[system.holds(tried)]
        if len(good):
            away = (((good - values[i]) / grid.unit) ** 2).sum(axis=1)
            first[i] = good[away.argmin()]
    return first


def fit_free(
    values: Floats,
    grid: Grid,
    free: Sequence[int],
    claims: Sequence[Claim],
    constants: Mapping[Name, float],
) -> Floats:
    """Move the free columns to keep the linear claims that tie them to the others, which stay.

    Each goes to the nearest end of what the rows leave it, given the others; so an order that the
    free columns keep among them is kept. Where rows are still broken, the record is projected.
    """
    loose = {grid.columns[j] for j in free}
    rows = [r for r in rows_about(grid.columns, claims, constants) if loose & {*r.coefficients}]
    if not any({*row.coefficients} - loose for row in rows):
        return values
    system = closed_system(grid.plain, rows)
    low, high = _bounds(values, grid.plain, free, system)
    out = np.minimum(np.maximum(values, low), high)
    strict = [row for row in rows if row.strict]
    part = grid.part(free)
    for i in np.flatnonzero(~system.holds(out) | unclear(out, grid, strict)):
        given = {n: float(v) for n, v in zip(grid.columns, values[i]) if n not in loose}
        out[i, free] = project_claims(values[[i]][:, free], part, claims, {**constants, **given})
    return out


def _bounds(
    values: Floats, grid: Grid, free: Sequence[int], system: LinearSystem
) -> tuple[Floats, Floats]:
    """Return the ends between which rows leave each free column, given the others."""
    low, high = values.copy(), values.copy()
    low[:, free], high[:, free] = -np.inf, np.inf
    rows = np.vstack([system.G, system.A, -system.A])
    right = np.concatenate([system.h, system.b, -system.b])
    for _ in free:  # a chain of orders is no longer
        for row, limit in zip(rows, right):
            least = np.where(row > 0, low, high)[:, row != 0] * row[row != 0]
            for at, j in enumerate(np.flatnonzero(row)):
                end = (limit - np.delete(least, at, axis=1).sum(axis=1)) / row[j]
                if j in free and row[j] > 0:
                    end = np.floor(end + 1e-9) if grid.whole[j] else end
                    high[:, j] = np.minimum(high[:, j], end)
                elif j in free:
                    end = np.ceil(end - 1e-9) if grid.whole[j] else end
                    low[:, j] = np.maximum(low[:, j], end)
    return low, high


def _solving_order(
    grid: Grid, claims: Sequence[Claim], frozen: Truths
) -> list[tuple[Name, Claim]] | None:
    """Choose for each equation a column that it gives; none is needed before it is given."""
    equations = [c for c in claims if _is_equation(c, grid) or _is_sum(c, grid)]
    fixed = {grid.columns[j] for j in np.flatnonzero(frozen)}
    # A product with a factor at zero says 0 == 0 in this part, whatever its other factors are.
    equations = [
        c
        for c in equations
        if not (set(c.columns) & fixed if _is_equation(c, grid) else set(c.columns) <= fixed)
    ]

    def search(left: list[Claim], given: dict[Name, Claim]) -> dict[Name, Claim] | None:
        if not left:
            return given if _in_turn(given) is not None else None
        claim = left[0]
        for name in _gives(claim, grid):
            if name not in given and name not in fixed:
                found = search(left[1:], {**given, name: claim})
                if found is not None:
                    return found
        return None

    found = search(equations, {})
    return None if found is None else _in_turn(found)


def _in_turn(given: dict[Name, Claim]) -> list[tuple[Name, Claim]] | None:
    """Order columns so that each comes after those that it is computed from; None in a circle."""
    needed = {name: set(claim.columns) & set(given) - {name} for name, claim in given.items()}
    try:
        return [(name, given[name]) for name in TopologicalSorter(needed).static_order()]
    except CycleError:
        return None


def _is_sum(claim: Claim, grid: Grid) -> bool:
    form = claim.form
    return (
        isinstance(form, forms.Linear)
        and form.operator == "=="
        and claim.tolerance == 0
        and set(form.coefficients) <= set(grid.columns)
    )


def _gives(claim: Claim, grid: Grid) -> list[Name]:
    """List the columns that an equation gives from the others, in whole numbers if they must be."""
    form = claim.form
    if isinstance(form, forms.Linear):
        terms = form.coefficients
        ones = [
            n
            for n, v in terms.items()
            if _fits(grid, n, [(w / v, [m]) for m, w in terms.items() if m != n], form.constant / v)
        ]
        return sorted(ones, key=lambda name: form.coefficients[name] > 0)
    assert isinstance(form, forms.Multiplicative)
    alone = form.alone
    first = [] if alone is None or not _stays_whole(form, alone, grid) else [alone.column]
    rest = [f.column for f in form.factors if abs(f.power) == 1 and f is not alone]
    return [*first, *(name for name in rest if not grid.whole[grid.place(name)])]


def _stays_whole(form: forms.Multiplicative, alone: forms.Factor, grid: Grid) -> bool:
    """Whether a factor that stands alone comes out on its grid, if it lives on one."""
    others = [factor for factor in form.factors if factor is not alone]
    whole = [factor for factor in form.factors if grid.whole[grid.place(factor.column)]]
    if any(factor.offset % 1 for factor in whole) or any(f.power % 1 for f in others):
        return not grid.whole[grid.place(alone.column)]
    names = [factor.column for factor in others for _ in range(abs(int(factor.power)))]
    return _fits(grid, alone.column, [(form.constant ** float(alone.power), names)], alone.offset)


def _fits(
    grid: Grid, name: Name, terms: Sequence[tuple[float, Sequence[Name]]], constant: float
) -> bool:
    """Whether a sum of products of columns, each with a factor, is on the grid of a column."""
    own = grid.parts[grid.place(name)]
    if own is None:
        return True
    fine = constant * own % 1 == 0
    for factor, names in terms:
        parts = [grid.parts[grid.place(other)] for other in names]
        fine = fine and None not in parts and factor * own / math.prod(filter(None, parts)) % 1 == 0
    return fine


def _solved(values: Floats, grid: Grid, order: Sequence[tuple[Name, Claim]]) -> Floats:
    """Compute columns from others, in order."""
    out = values.copy()
    for name, claim in order:
        form, j = claim.form, grid.place(name)
        if isinstance(form, forms.Linear):
            rest = sum(v * out[:, grid.place(n)] for n, v in form.coefficients.items() if n != name)
            out[:, j] = (form.constant - rest) / form.coefficients[name]
        elif isinstance(form, forms.Multiplicative):
            alone = next(f for f in form.factors if f.column == name)
            out[:, j] = solve_for(form, alone, lambda n: out[:, grid.place(n)])
    return out


def solve_for(
    form: forms.Multiplicative, alone: forms.Factor, column: Callable[[Name], Floats]
) -> Floats:
    """Return the values of a factor's column with which a product holds; others are given."""
    value = np.asarray(form.constant ** float(alone.power))
    for factor in form.factors:
        if factor is not alone:
            with np.errstate(divide="ignore", invalid="ignore"):
                power = float(-alone.power * factor.power)
                value = value * (column(factor.column) + factor.offset) ** power
    return value - alone.offset


def recompute_products(cells: BlockCells, block: Block) -> int:
    """Recompute a factor where a product cannot hold for its zeros or signs; count the records.

    Hours of 0 and wages of 100 have no nearest point with a geometric mean: the record is first
    edited, by what the rule says of the factor that stands alone.
    """
    changed = np.zeros(cells.n_rows, dtype=bool)
    for claim in block.always:
        form = claim.product
        if form is None:
            continue
        left, right = cells.sides(form)
        wrong = (np.sign(left) != np.sign(right)) & ~np.isnan(left) & ~np.isnan(right)
        alone = form.alone
        if alone is None or not wrong.any():
            continue
        solved = solve_for(form, alone, cells.column)
        fixable = wrong & np.isfinite(solved)
        cells.values[fixable, cells.place(alone.column)] = solved[fixable]
        changed |= fixable
    return int(changed.sum())
