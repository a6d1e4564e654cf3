"""The field on which centres move: the records, prepared once for many sweeps.

Records are centred and scaled by a power of two, so that offsets cost no digits and no square
overflows, and cut into pieces that cores may work on side by side. The pieces depend on the table
alone: every number of cores gives the same sums.

On the field runs the one alternating loop (`alternate`): degrees from centres, centres from
degrees, until they rest. Each half minimises the same objective with the other half held fixed, so
it never rises. Variants differ in two parts only: how records are swept (`step`), and where centres
may be (`project`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from .._types import Floats, Integers
from ..exceptions import BadTableError, UnknownOptionError
from ..kernels.degrees import EXPONENTIAL, FEW, LANES, NEAREST, POWER, TILE, Centres, Law, pack
from ..kernels.groups import spread_out
from ..kernels.memberships import (
    Outlook,
    Sums,
    draw_memberships,
    find_nearest,
    spread,
    sweep,
    write_degrees,
)
from ..kernels.tree import order_by_leaves, rounded
from ..parallel import each

__all__ = [
    "Field", "Run", "Swept", "alternate", "arrange", "entropy_law", "first_centres",
    "given_centres", "power_law",
]  # fmt: skip

Result = TypeVar("Result")

HUGE = 1e140  # squares, and sums of them, stay finite
PIECES, LEAST_PIECE = 8, 2048  # pieces at most, and records in a piece at least
STARTS = ("k-means++", "records")
OFF = 0.99  # of the way from the mean to a record
MANY = 10**8  # records times centres beyond which a centre is drawn only once
WINDOW = 6  # steps that a leap looks back on
RIDGE = 1e-10  # relative, against steps that are nearly parallel


def power_law(m: float, neglect: float = 0.0) -> Law:
    """Return degrees proportional to D^(-1/(m-1)); m = 1 is the nearest centre.

    An exponent that is whole but for rounding, as 1 / (1.2 - 1), is taken as whole: products are
    faster than powers, and nearer to what was meant.
    """
    if m == 1:
        return Law(NEAREST, 0.0, neglect)
    rate = 1 / (m - 1)
    whole = round(rate)
    return Law(POWER, float(whole) if abs(rate - whole) < 1e-9 * rate else rate, neglect)


def entropy_law(rate: float, neglect: float = 0.0) -> Law:
    """Return degrees proportional to e^(-lambda D)."""
    return Law(EXPONENTIAL, float(rate), neglect)


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """Records to be clustered, in the field's own units.

    A point x of the table is at (x - origin) * scale.
    """

    records: Floats
    weights: Floats
    origin: Floats
    scale: float
    pieces: list[Integers]
    size: float  # root of the mean squared distance of records to their mean

    @classmethod
    def of(cls, X: Floats, weights: Floats, n_centres: int) -> Field:
        """Prepare a table of shape (n, d) for a number of centres."""
        share = weights / weights.sum()
        records = np.ascontiguousarray(X - X[0])
        drift = share @ records
        records -= drift
        away = max(records.max(initial=0.0), -records.min(initial=0.0))
        if away > HUGE:
            raise BadTableError(
                f"The records lie up to {away:.3g} apart, and squares of that are beyond what "
                "numbers hold. Divide the columns by a power of ten first."
            )
        scale = 0.5 ** math.frexp(away)[1] if away > 0 else 1.0
        records *= scale
        rows = leaf_order(records) if n_centres > FEW * LANES else np.arange(len(X))
        size = math.sqrt(float(share @ np.einsum("ij,ij->i", records, records)))
        return cls(
            records=records, weights=weights, origin=X[0] + drift, scale=scale,
            pieces=_cut(rows), size=size,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.records)

    def inward(self, points: Floats) -> Floats:
        """Bring points of the table into the field."""
        return np.ascontiguousarray((points - self.origin) * self.scale)

    def outward(self, points: Floats) -> Floats:
        """Bring points of the field back to the table's units."""
        return points / self.scale + self.origin

    def law(self, law: Law) -> Law:
        """Bring a law of the table's units into the field: lambda is per squared unit."""
        return (
            law
            if law.kind != EXPONENTIAL
            else Law(law.kind, min(law.rate / self.scale / self.scale, 1e300), law.neglect)
        )

    def objective(self, value: float) -> float:
        """Bring a sum of squares of the field back to the table's units."""
        return value / self.scale / self.scale

    def sweep(self, centres: Floats, law: Law, *, alone: bool = False) -> Swept:
        """Sweep all records once; `alone` keeps to this thread."""
        packed = arrange(centres)
        sums = self.on_pieces(
            lambda rows: sweep(self.records, self.weights, rows, packed, law), alone=alone
        )
        return Swept.of(sums, packed, centres)

    def draw(self, centres: Floats, law: Law, chances: Floats) -> tuple[Outlook, Floats]:
        """Draw a centre for each record; return the outlook and expected sizes, see the kernel."""
        packed, n = arrange(centres), self.n
        outlook = Outlook(np.empty(n), np.empty(n), np.empty(n), np.empty(n, dtype=np.int64))
        parts = self.on_pieces(
            lambda rows: draw_memberships(self.records, rows, packed, law, chances, outlook)
        )
        return outlook, sum(parts, np.zeros(len(centres)))

    def nearest(self, centres: Floats, neglect: float = 0.0) -> Integers:
        """Return for each record the nearest centre, of several the one of the least number."""
        packed, labels = arrange(centres), np.empty(self.n, dtype=np.int64)
        law = power_law(1, neglect)
        self.on_pieces(lambda rows: find_nearest(self.records, rows, packed, law, labels))
        return labels

    def sample(self, count: int) -> Field:
        """Return a field of some of the records, spread over the table."""
        if self.n <= count:
            return self
        rows = np.concatenate(self.pieces)[:: -(-self.n // count)]
        return replace(
            self, records=self.records[rows], weights=self.weights[rows],
            pieces=_cut(np.arange(len(rows))),
        )  # fmt: skip

    def degrees(self, centres: Floats, law: Law) -> Floats:
        """Return all degrees, of shape (n, c)."""
        packed, out = arrange(centres), np.zeros((self.n, len(centres)))
        self.on_pieces(lambda rows: write_degrees(self.records, rows, packed, law, out))
        return out

    def spread(self, centres: Floats, law: Law) -> Floats:
        """Return weight and weighted squares of each centre, of shape (c, 2)."""
        packed = arrange(centres)
        parts = self.on_pieces(lambda rows: spread(self.records, self.weights, rows, packed, law))
        return sum(parts, np.zeros((len(centres), 2)))

    def on_pieces(
        self, function: Callable[[Integers], Result], *, alone: bool = False
    ) -> list[Result]:
        """Apply a function to the rows of each piece, results in order."""
        if alone:
            return [function(rows) for rows in self.pieces]
        return each(function, self.pieces)


@dataclass(frozen=True, kw_only=True, eq=False)
class Swept:
    """What a sweep gives: the objective of the centres it began with, and better centres."""

    objective: float
    centres: Floats
    weights: Floats  # (c,) sums of degree^m; a centre without weight stays where it was
    visited: int  # pairs of record and centre

    @classmethod
    def of(cls, sums: list[Sums], packed: Centres, old: Floats) -> Swept:
        """Add up the pieces, in order."""
        c, d = old.shape
        points = sum((s.points for s in sums[1:]), sums[0].points)
        totals = sum((s.weights for s in sums[1:]), sums[0].weights).ravel()[:c]
        flat = np.moveaxis(points, 1, 2).reshape(-1, d)[:c]
        centres, weights = old.copy(), np.empty(c)
        held = totals > 0
        centres[packed.order[held]] = flat[held] / totals[held, None]
        weights[packed.order] = totals
        return cls(
            objective=float(sum(s.objective[0] for s in sums)),
            centres=centres,
            weights=weights,
            visited=sum(int(s.visited[0]) for s in sums),
        )


def arrange(centres: Floats) -> Centres:
    """Pack centres into blocks, neighbours together where not all blocks are visited anyway."""
    near = len(centres) > FEW * LANES
    return pack(centres, leaf_order(centres) if near else np.arange(len(centres)))


def leaf_order(points: Floats) -> Integers:
    """Order points so that sixteen that follow each other are near each other."""
    middle = points.mean(axis=0)
    order: Integers = order_by_leaves(
        rounded(points, np.arange(len(points)), middle).table, points.shape[1]
    )
    return order


def _cut(rows: Integers) -> list[Integers]:
    """Cut rows into pieces of whole tiles."""
    count = max(1, min(PIECES, len(rows) // LEAST_PIECE))
    size = -(-len(rows) // (count * TILE)) * TILE
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def first_centres(field: Field, c: int, way: str, random: np.random.Generator) -> Floats:
    """Choose c records as first centres, in the field's units.

    "k-means++" draws each next centre by its squared distance from those chosen, and keeps the best
    of 2 + ln(c) draws; "records" takes records at random, as the 2009 paper does. Centres then
    move a hundredth of the way to the mean: exactly on a record, that record alone would hold
    a centre where m is large.

    References
    ----------
    D. Arthur and S. Vassilvitskii (2007). k-means++: the advantages of careful seeding. SODA.
    """
    if way == "records":
        share = field.weights / field.weights.sum()
        return OFF * field.records[random.choice(field.n, c, replace=False, p=share)]
    tries = 2 + int(math.log(c)) if field.n * c <= MANY else 1
    return OFF * field.records[spread_out(field.records, field.weights, random.random((c, tries)))]


def given_centres(init: Any, c: int, d: int) -> Floats | None:
    """Return centres that the caller gives, or None if `init` names a way to choose them."""
    if isinstance(init, str):
        if init not in STARTS:
            raise UnknownOptionError("init", init, [*STARTS, "centres of shape (c, d)"])
        return None
    try:
        centres = np.array(init, dtype=np.float64)
    except (TypeError, ValueError):
        centres = np.empty(0)
    if centres.shape != (c, d) or not np.isfinite(centres).all():
        raise BadTableError(
            f"init must be one of {', '.join(map(repr, STARTS))} or finite centres of shape "
            f"({c}, {d}), one row for each of the n_clusters={c}; it has shape {centres.shape}."
        )
    return centres


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One descent, from a start to a rest."""

    centres: Floats
    history: list[float]  # the objective of the centres of each sweep; the last is theirs
    rests: bool  # whether the centres came to rest

    @property
    def objective(self) -> float:
        """The last, and least, value of the objective."""
        return self.history[-1]


def alternate(
    field: Field,
    centres: Floats,
    law: Law,
    *,
    step: Callable[[Floats], Swept],
    project: Callable[[Floats], Floats],
    max_iter: int,
    tol: float,
    fall: float = 0.0,
    accelerate: bool = False,
) -> Run:
    """Move centres until none moves by more than tol, in units of the table's spread.

    `step` sweeps the records: centres in; objective, better centres and their weights out.
    `project` brings each centre to the nearest place where it may be. Centres rest, too, when a
    sweep lowers the objective by less than the share `fall`. With `accelerate` they leap ahead
    where the last steps lead, if the objective falls there.
    """
    history: list[float] = []
    centres, rests = project(centres), False
    ahead = Ahead()
    safe = centres
    for _ in range(max_iter):
        swept = step(centres)
        if history and swept.objective > history[-1] and ahead.leapt:
            ahead, centres = Ahead(), safe  # the leap went uphill: take the plain step instead
            swept = step(centres)
        history.append(swept.objective)
        better = project(_fill_empty(field, swept, law))
        moved = float(((better - centres) ** 2).sum(axis=1).max()) ** 0.5
        lowered = len(history) < 2 or history[-2] - history[-1] >= fall * abs(history[-1])
        if moved <= tol * field.size or not lowered:
            rests = True  # they stay: a descent from a place of rest ends exactly there
            break
        safe = better
        centres = project(ahead.leap(centres, better)) if accelerate else better
    if not rests:
        last = step(centres).objective
        if last > history[-1]:
            centres, last = safe, step(safe).objective
        history.append(last)
    return Run(centres=centres, history=history, rests=rests)


class Ahead:
    """Anderson's extrapolation: from the last steps to where they lead.

    With steps f_k = g_k - v_k from places v_k to g_k, the combination of the last places whose
    steps nearly cancel is a better guess than the last place alone. The caller checks that the
    objective falls.

    References
    ----------
    H. F. Walker and P. Ni (2011). Anderson acceleration for fixed-point iterations. SIAM Journal on
    Numerical Analysis 49(4).
    """

    def __init__(self) -> None:
        self.places: list[Floats] = []
        self.steps: list[Floats] = []
        self.leapt = False

    def leap(self, place: Floats, better: Floats) -> Floats:
        """Return the next place, after a step from `place` to `better`."""
        self.places, self.steps = self.places[-WINDOW:], self.steps[-WINDOW:]
        self.places.append(better.ravel())
        self.steps.append((better - place).ravel())
        self.leapt = len(self.steps) > 2
        if not self.leapt:
            return better
        steps = np.diff(np.array(self.steps), axis=0)
        places = np.diff(np.array(self.places), axis=0)
        gram = steps @ steps.T
        gram[np.diag_indices_from(gram)] *= 1 + RIDGE
        share = np.linalg.lstsq(gram, steps @ self.steps[-1], rcond=None)[0]
        leap: Floats = self.places[-1] - share @ places
        return leap.reshape(better.shape)


def _fill_empty(field: Field, swept: Swept, law: Law) -> Floats:
    """Move centres that no record belongs to onto the records that are worst off.

    Another centre harms no record, so the objective does not rise.
    """
    empty = np.flatnonzero(swept.weights == 0)
    if len(empty) == 0:
        return swept.centres
    centres = swept.centres.copy()
    outlook, _ = field.draw(centres, power_law(1, law.neglect), np.full(field.n, -1.0))
    worst = np.argsort(-(field.weights * outlook.square), kind="stable")[: len(empty)]
    centres[empty] = field.records[worst]
    return centres
